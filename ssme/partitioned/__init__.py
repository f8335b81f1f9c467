"""Estimates from parquet files that are larger than memory, on one machine or on a Dask cluster.

- `_source`: the files as parts and batches of checked arrays.
- `_kept`: the rows that teach the consensus, the same however the rows are split.
- `_engine`: parts one after another, or spread over a cluster.
- `_estimate`: two passes, and the table.
"""

from ._estimate import FilesEstimate, estimate_files, estimate_partitioned

__all__ = ["FilesEstimate", "estimate_files", "estimate_partitioned"]
