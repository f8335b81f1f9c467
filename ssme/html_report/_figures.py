"""Displays as inline SVG whose colours are CSS variables, so that one picture serves the light and the dark theme."""

from __future__ import annotations

import io
import itertools
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"
N_COLOURS = 8
# Colours that stand for CSS variables while matplotlib draws.
INK = "#010203"
STANDING = {INK: "var(--ink)", **{f"#0{i}0a0b": f"var(--c{i})" for i in range(N_COLOURS)}}
WIDE, SMALL = (4.7, 9.0), (2.3, 7.5)  # width in inches, size of the font


@dataclass(frozen=True)
class Figure:
    """A picture (SVG, safe to insert), and what it shows."""

    svg: str
    title: str


def style(font_size: float) -> Any:
    """Settings of matplotlib under which a display is drawn for a page."""
    from cycler import cycler

    colours = list(STANDING)[1:]
    ink = dict.fromkeys(
        ["text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color",
         "xtick.labelcolor", "ytick.labelcolor", "grid.color"], INK)  # fmt: skip
    return {
        **ink,
        "axes.prop_cycle": cycler(color=colours),
        "font.size": font_size,
        "svg.fonttype": "none",
        "svg.hashsalt": "ssme",
        "text.parse_math": False,
        "text.usetex": False,
        "grid.alpha": 0.15,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.facecolor": "none",
    }


def draw(
    plot: Callable[[Any], Any], title: str, number: itertools.count[int], *, height: float, small: bool = False
) -> Figure:
    """Draw on axes of a figure of its own (``plot(ax)``) and return it as SVG."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    width, font_size = SMALL if small else WIDE
    with matplotlib.rc_context(style(font_size)), warnings.catch_warnings():
        # a letter that matplotlib's own font lacks is drawn by the browser, with its fonts
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        figure = Canvas(figsize=(width, height), layout="constrained")
        plot(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return Figure(_inline(text.getvalue(), f"f{next(number)}-", title), title)


def _inline(text: str, prefix: str, title: str) -> str:
    """The SVG element alone: names of its own for its parts, CSS variables for colours, the width of what holds it."""
    ET.register_namespace("", SVG)
    root = ET.fromstring(text[text.index("<svg") :])
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):  # a style inside would hold for the whole page
                parent.remove(child)
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            element.set(key, _attribute(key, value, prefix))
        if HREF in element.attrib:
            element.set("href", element.attrib.pop(HREF))
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-label", title)
    return ET.tostring(root, encoding="unicode")


def _attribute(key: str, value: str, prefix: str) -> str:
    if key == "id":
        return prefix + value
    if key == HREF:
        return value.replace("#", f"#{prefix}", 1)
    value = re.sub(r"url\(#", f"url(#{prefix}", value)
    for colour, variable in STANDING.items():
        value = value.replace(colour, variable)
    if key == "style" and "font" in value:  # the font is that of the page
        value = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", value)
        value = re.sub(r"font-family: [^;]*;?", "", value)
    return value
