"""Who is best and how sure: of a table by its intervals, of a fitted estimator by its joint draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ssme._format import MOST_SHOWN, format_level, format_number, shortened
from ssme.metrics import METRICS
from ssme.plots._axes import fitting

if TYPE_CHECKING:
    from ssme.estimator import SSME

IN_TEXT = 60  # letters of a name within a sentence


def names(frame: pd.DataFrame, column: str) -> list[str]:
    return list(dict.fromkeys(frame[column]))


def direction(metric: str) -> bool | None:
    return METRICS[metric].greater_is_better if metric in METRICS else None


def _first_method(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    part = frame[(frame["metric"] == metric) & (frame["group"] == "all")]
    return part[part["method"] == part["method"].iloc[0]] if len(part) else part


def order(frame: pd.DataFrame, metric: str) -> list[str]:
    """The models, best estimate first where the direction is known."""
    part, up = _first_method(frame, metric), direction(metric)
    if up is not None:
        part = part.sort_values("estimate", ascending=not up, kind="stable")
    return names(part, "model")


def leader(frame: pd.DataFrame, metric: str) -> dict[str, Any]:
    """The best estimate of a table, and which intervals reach into its own."""
    part, up = _first_method(frame, metric), direction(metric)
    known = part[part["estimate"].notna()]
    if known.empty or up is None:
        reason = "no model has an estimate" if known.empty else "it is not known whether more of it is better"
        return {"metric": metric, "model": None, "reason": reason, "facts": [], "direction": ""}
    top = known.sort_values("estimate", ascending=not up, kind="stable").iloc[0]
    others = known[known["model"] != top["model"]]
    near = others[(others["upper"] >= top["lower"]) & (others["lower"] <= top["upper"])]
    if others.empty:
        facts = ["There is no other model to compare it with."]
    elif near.empty:
        facts = ["No other model's interval overlaps with its own."]
    else:
        few = len(near) <= MOST_SHOWN // 4
        close = [fitting(m, IN_TEXT) for m in near["model"]]
        said = shortened(close) if few else f"{len(near)} of {len(others)} models"
        facts = [f"Its interval overlaps with that of {said}. Overlap does not mean that they are equally good: make "
                 "the page from the scores to see how sure the order is."]  # fmt: skip
    return _best(metric, top, up, facts)


def _best(metric: str, top: Any, up: bool, facts: list[str], sure: float | None = None) -> dict[str, Any]:
    return {
        "metric": metric,
        "model": top["model"],
        "estimate": top["estimate"],
        "lower": top["lower"],
        "upper": top["upper"],
        "level": format_level(top["level"]),
        "n_labeled": f"{top['n_labeled']:,}",
        "n_unlabeled": f"{top['n_unlabeled']:,}",
        "direction": "higher is better" if up else "lower is better",
        "facts": facts,
        "sure": sure,
        "reason": "",
    }


def ranking(estimator: SSME, frame: pd.DataFrame, metric: str, level: float) -> dict[str, Any]:
    """The best model with its probability of being best, from joint draws."""
    up = direction(metric)
    if up is None or frame["model"].nunique() < 2:
        return leader(frame, metric)
    ranks = estimator.rank(metric, level=level).dropna(subset=["estimate"])
    part = _first_method(frame, metric)
    found = part[part["estimate"].notna()]
    if ranks.empty or found.empty:
        return leader(frame, metric)
    # the models by their place, so that two spellings of one name (7 and "7") do not meet
    choice = estimator.select_best(metric, level=level)
    top = part.iloc[choice.index]
    facts = [
        f"Probability that no other model is better: {choice.p_best:.2f}.",
        f"Taking it costs {format_number(choice.expected_regret, 4)} in expectation against the best model.",
    ]
    if choice.runner_up is not None:
        chance = f"{choice.p_better_than_runner_up:.2f}"
        facts.append(f"It is better than {fitting(choice.runner_up, IN_TEXT)} with probability {chance}.")
    rest = ranks[ranks["p_best"] >= 0.05].sort_values("p_best", ascending=False, kind="stable")
    rest = rest[rest["model"].astype(str) != str(choice.model)]
    also = [f"{fitting(row.model, IN_TEXT)} ({row.p_best:.2f})" for row in rest.itertuples()]
    if also:
        facts.append(f"Others that may be the best, with their probability: {shortened(also)}.")
    return _best(metric, top, up, facts, choice.p_best)
