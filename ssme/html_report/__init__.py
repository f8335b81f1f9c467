"""Results as one self-contained HTML page: it opens from disk, needs no network, and escapes every name.

:func:`scores_page` of a fitted estimator, :func:`estimates_page` of a table of estimates, :func:`sweep_page` of the
frames of a sweep. Needs the extra `report`.
"""

from ssme.html_report._estimates import estimates_page, scores_page
from ssme.html_report._read import is_estimates, read_estimates, read_sweep
from ssme.html_report._sweep import sweep_page

__all__ = ["estimates_page", "is_estimates", "read_estimates", "read_sweep", "scores_page", "sweep_page"]
