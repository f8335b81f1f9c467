"""The body of ``ssl-zoo demo``: tables on the terminal; tables, figures and a page in a folder."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ssl_zoo._files import write_bytes
from ssl_zoo.demo import ALONE, Demo, compare, cscore_table, robustness_table, summary
from ssl_zoo.masking import DIAGNOSTICS

if TYPE_CHECKING:
    from rich.console import RenderableType

PROVENANCE = ("metric", "level", "n_labeled", "n_unlabeled", "method", "measure")
WORSE = {name: "up" if sign > 0 else "down" for name, sign in DIAGNOSTICS.items()}


def sections(demo: Demo) -> list[tuple[str, pd.DataFrame, str]]:
    """Title, table and closing sentence of every part, in the order in which they are shown."""
    points, slopes = compare(demo.curves.points), robustness_table(demo.curves)
    first = points.iloc[0]
    how = (
        f"{first['n_labeled']} labeled and {first['n_unlabeled']} unlabeled test rows, {first['level']:.0%} intervals, "
        f"method {first['method']}; labels alone beside"
    )
    found = [
        (f"Accuracy along r, the share of unseen digits in the pool ({how})", points, _in_words(points, "accuracies")),
        (f"r_slope: change of accuracy from r = 0 to 1 ({how})", slopes, _in_words(slopes, "slopes")),
    ]
    for measure in ("gm", "wad", "bad"):
        if (demo.curves.robustness["measure"] == measure).any():
            table = robustness_table(demo.curves, measure)
            found.append((f"{measure} of accuracy ({how})", table, _in_words(table, f"values of {measure}")))
    found.append(("C-Score: diagnostics of training, which need no label", cscore_table(demo), _worse_words()))
    masking = demo.curves.masking
    if len(masking):
        own = masking[masking["method"] != ALONE].drop(columns=["level", "method"])
        found.append(("Accuracy masking: r > 0 beside r = 0, from the estimated accuracies", own, _masking_words(own)))
    return found


def to_tables(demo: Demo) -> list[RenderableType]:
    """What the terminal shows."""
    from ssme._format import frame_to_table

    shown: list[RenderableType] = []
    for title, table, words in sections(demo):
        columns = table.rename(columns={"x": "r", "lower": "ssme_lower", "upper": "ssme_upper"})
        columns = columns.rename(columns={"estimate": "ssme"})
        shown += [frame_to_table(columns, hide=PROVENANCE, title=title), words + "\n"]
    return shown


def write_demo(demo: Demo, folder: Path) -> tuple[list[Path], list[str]]:
    """Tables always, figures and the page where the extra `report` is there; returns files and what is missing."""
    from ssme._format import frame_to_markdown

    written = demo.curves.write(folder)
    points = demo.curves.points
    curves = points[points["method"] != ALONE].rename(columns={"x": "value"}).assign(factor="r")
    frames = {"curves": curves, "cscore": demo.epochs, "compared": compare(points), "cscore-by-r": cscore_table(demo)}
    for name, frame in frames.items():
        written.append(folder / f"{name}.csv")
        write_bytes(written[-1], frame.to_csv(index=False).encode())
    parts = [f"## {title}\n\n{frame_to_markdown(table)}\n\n{words}\n" for title, table, words in sections(demo)]
    written.append(folder / "demo.md")
    write_bytes(written[-1], ("# Digits, unseen digits in the pool, few labels\n\n" + "\n".join(parts)).encode())
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError:
        return written, ["figures and page are left out: they need pip install 'ssme[report]'"]
    return [*written, *_draw(demo, curves, folder)], []


def _draw(demo: Demo, curves: pd.DataFrame, folder: Path) -> list[Path]:
    from ssl_zoo.curves._figure import draw_curves
    from ssme.html_report import sweep_page

    paths = [folder / name for name in ("curves-accuracy.png", "cscore.png", "report.html")]
    draw_curves(demo.curves.points, demo.curves.robustness, paths[0])
    write_bytes(paths[1], _cscore_figure(demo.models))
    masking = demo.curves.masking
    worst = demo.epochs[demo.epochs["x"] == demo.epochs["x"].max()]  # all values at once would be a tangle of lines
    known = worst.dropna(how="all", subset=list(DIAGNOSTICS))[["algorithm", "value", "seed", "epoch", *DIAGNOSTICS]]
    own = masking[masking["method"] != ALONE] if len(masking) else None
    title = "Digits with unseen digits in the pool"
    page = sweep_page(curves, cscore=known if len(known) else None, masking=own, title=title)
    write_bytes(paths[2], page.encode())
    return paths


def _cscore_figure(models: pd.DataFrame) -> bytes:
    """Every diagnostic along r: the mean over seeds, the band from the least to the greatest."""
    from matplotlib.figure import Figure

    from ssme.plots import plot_robustness_curves

    known = [name for name in DIAGNOSTICS if models[name].notna().any()]
    figure = Figure(figsize=(3.6 * max(1, len(known)), 3.6), layout="constrained")
    for panel, name in zip(np.atleast_1d(figure.subplots(1, max(1, len(known)))), known, strict=False):
        spread = models.groupby(["algorithm", "x"], sort=False)[name].agg(["mean", "min", "max"]).dropna()
        frame = spread.set_axis(["estimate", "lower", "upper"], axis=1).reset_index()
        frame = frame.rename(columns={"x": "value"}).assign(factor="r", metric=name)
        plot_robustness_curves(frame, ax=panel)
        panel.set_title(f"{name} (worse: {WORSE[name]})", fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()


def _in_words(frame: pd.DataFrame, what: str) -> str:
    s: dict[str, Any] = summary(frame)
    n, labels = s["figures"], frame["n_labeled"].iloc[0]
    return (
        f"Of {n} {what}, ssme was closer to the truth in {s['closer']}, the {labels} labels alone in "
        f"{n - s['closer'] - s['even']}, even in {s['even']}. Mean error {s['error']:.4f} against "
        f"{s['alone_error']:.4f}. The {frame['level'].iloc[0]:.0%} interval holds the truth in {s['held']} of {n}, "
        f"that of the labels alone in {s['alone_held']}."
    )


def _worse_words() -> str:
    ends = ", ".join(f"{name} {way}" for name, way in WORSE.items())
    return f"Worse is: {ends}. Accuracies are ssme's estimates; a verdict compares with r = 0."


def _masking_words(own: pd.DataFrame) -> str:
    counts = own["verdict"].value_counts()
    said = ", ".join(f"{counts.get(name, 0)} {name}" for name in ("stable", "masked", "open collapse"))
    seeds, least, most = int(own["n_seeds"].max()), own["detectable_drop"].min(), own["detectable_drop"].max()
    return (
        f"Of {len(own)} points: {said}. With {seeds} seeds the smallest drop that the test detects with probability "
        f"0.8 is {least:.1f} to {most:.1f} points, so a verdict of stable or masked is weak evidence."
    )
