"""Label-budget studies: how wrong is each method with few labels, on data whose labels are all known.

:func:`run_study` hides labels, lets every method estimate, and sets the truth beside it; :func:`summarize_cells` and
:func:`summarize_methods` condense that, and :func:`write_report` writes it as markdown with a figure.
"""

from ssme.study._methods import DEFAULT_METHODS, REFERENCES, method_names
from ssme.study._report import report_to_markdown, write_report
from ssme.study._run import run_study
from ssme.study._summary import summarize_cells, summarize_methods

__all__ = [
    "DEFAULT_METHODS",
    "REFERENCES",
    "method_names",
    "report_to_markdown",
    "run_study",
    "summarize_cells",
    "summarize_methods",
    "write_report",
]
