"""The body of ``ssl-zoo curves``: read, estimate, write, and say the main thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ssl_zoo.curves._estimate import CurveEstimates, estimate_curves
from ssl_zoo.curves._figure import draw_curves
from ssl_zoo.curves._masking import add_diagnostics


def run_curves(
    scores: list[Path],
    labels: Path | None,
    models: Path,
    out: Path,
    *,
    diagnostics: Path | None,
    truth: Path | None,
    figure: bool,
    **options: Any,
) -> str:
    """Estimate curves from files and write tables and figure into a folder; returns what to print."""
    from ssme.score_table import read_scores

    table = read_scores(list(scores), labels=labels)
    if not table.n_labeled:
        raise ValueError("no row has a label: give a file with some labels by --labels.")
    frame = read_models(models)
    if diagnostics is not None:
        frame = add_diagnostics(frame, read_models(diagnostics))
    known = None
    if truth is not None:
        codes = read_scores(list(scores), labels=truth).labels
        known = np.array([*table.class_names, None], dtype=object)[codes]  # -1 reads the last entry
    found = estimate_curves(table, frame, truth=known, **options)
    written = found.write(out)
    if figure:
        for metric in dict.fromkeys(found.points["metric"]):
            written.append(out / f"curves-{metric}.png")
            draw_curves(found.points, found.robustness, written[-1], metric)
    return in_words(found) + "\nwritten: " + ", ".join(str(path) for path in written)


def read_models(path: Path) -> pd.DataFrame:
    """The table of models, csv or parquet."""
    if not path.exists():
        raise FileNotFoundError(2, "there is no such table of models", str(path))
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a table of models: {error}") from error


def read_deltas(text: str) -> tuple[float, float, float]:
    """delta_g,delta_w,delta_b -> numbers.

    Examples
    --------
    >>> read_deltas("-0.05, -0.2, 0")
    (-0.05, -0.2, 0.0)
    """
    try:
        g, w, b = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--deltas takes three numbers with commas between them, such as -0.05,-0.2,0; got {text!r}."
        ) from None
    return g, w, b


def in_words(found: CurveEstimates) -> str:
    """Robustness of accuracy (or of the first metric), the most robust algorithm first, as plain text."""
    metric = "accuracy" if (found.points["metric"] == "accuracy").any() else found.points["metric"].iloc[0]
    table = found.robustness[found.robustness["metric"] == metric]
    measure = "r_slope" if (table["measure"] == "r_slope").any() else "gm"
    own = table[(table["measure"] == measure) & (table["method"] != "labeled-only")].set_index("algorithm")
    shown = own[["estimate", "lower", "upper"] + ["truth"] * ("truth" in own)].round(4)
    alone = table[(table["measure"] == measure) & (table["method"] == "labeled-only")].set_index("algorithm")
    if len(alone):
        shown["labels alone"] = alone["estimate"].round(4)
    if len(found.ranking):
        places = found.ranking
        places = places[
            (places["metric"] == metric) & (places["measure"] == measure) & (places["method"] != "labeled-only")
        ]
        shown = shown.join(places.set_index("algorithm")[["p_best", "expected_rank"]].round(2))
        shown = shown.loc[places["algorithm"]]
    if len(found.verdicts):
        own_verdicts = found.verdicts[found.verdicts["method"] != "labeled-only"].set_index("algorithm")
        shown = shown.join(own_verdicts[["p_global", "p_local"]].round(2))
    first = own.iloc[0]
    head = (
        f"{measure} of {metric}: estimate with {first['level']:.0%} interval from {first['n_labeled']} labeled and "
        f"{first['n_unlabeled']} unlabeled rows, method {first['method']}"
    )
    flags = f"\nflags: {first['flags']}" if first["flags"] else ""
    masked = found.masking
    if len(masked):
        masked = masked[(masked["verdict"] == "masked") & (masked["method"] != "labeled-only")]
        names = ", ".join(f"{row.algorithm} at {row.x:g} ({row.worsened})" for row in masked.itertuples()) or "none"
        flags += f"\naccuracy masking: {names}"
    return f"{head}\n{shown.reset_index().to_string(index=False)}{flags}"
