"""From sections to a page: templates with autoescape, style and script inside, and a policy that forbids all else."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources
from typing import Any

from ssme._format import format_interval, format_number


def _part(name: str) -> str:
    return (resources.files("ssme.html_report") / "templates" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        import matplotlib  # noqa: F401
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("the report needs jinja2 and matplotlib: pip install 'ssme[report]'.") from error
    environment = Environment(
        loader=PackageLoader("ssme.html_report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = format_number
    environment.globals["interval"] = format_interval
    return environment


def render(template: str, **content: Any) -> str:
    """Fill a template; whatever is not said to be markup there is escaped."""
    from ssme import __version__

    environment = _environment()
    script, style = _part("table.js"), _part("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text: str = environment.get_template(template).render(
        **content, script=script, style=style, digest=digest, version=__version__
    )
    # what no UTF-8 file can hold, as half of a surrogate pair, becomes a question mark
    return text.encode("utf-8", "replace").decode("utf-8")


def shade(value: float, low: float, high: float) -> int:
    """How dark a cell is, 0 to 90 in tens, for a value between the least and the greatest; 0 where it is unknown.

    Examples
    --------
    >>> shade(0.5, 0.0, 1.0), shade(float("nan"), 0.0, 1.0), shade(1.0, 1.0, 1.0)
    (50, 0, 0)
    """
    if not low <= value <= high or high <= low:
        return 0
    return int(min(9, 10 * (value - low) / (high - low))) * 10
