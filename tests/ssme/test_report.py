"""Results as text: nothing is lost, nothing is rounded where it must not be, and no name is read as markup."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ssme import _format, report

HOSTILE = "[red]|<b>*x*\nnext"


def frame(**changes: object) -> pd.DataFrame:
    rows = {
        "metric": ["accuracy", "accuracy", "roc_auc"],
        "model": ["bert", HOSTILE, "bert"],
        "group": ["all", "all", "all"],
        "estimate": [1 / 3, 0.5, np.nan],
        "lower": [0.25, 0.4, np.nan],
        "upper": [0.75, 0.6, np.nan],
        "level": [0.9, 0.9, 0.9],
        "n_labeled": [20, 20, 20],
        "n_unlabeled": [1000, 1000, 1000],
        "method": ["ssme", "labeled-only", "ssme"],
        "flags": ["", "", ""],
    }
    return pd.DataFrame(rows | changes)


def test_table_says_what_every_number_is() -> None:
    text = report.to_text(report.estimates_to_table(frame(), title="a title"))
    head = next(line for line in text.splitlines() if "metric" in line)
    for word in ("metric", "model", "estimate", "90% interval", "n labeled", "n unlabeled", "method"):
        assert word in head
    assert "0.333" in text and "0.250 to 0.750" in text and "1,000" in text and "labeled-only" in text
    assert text.strip().startswith("a title")


def test_undefined_is_said_in_a_word() -> None:
    assert report.to_text(report.estimates_to_table(frame())).count("undefined") == 2  # estimate and interval


def test_group_and_flags_columns_appear_when_they_say_something() -> None:
    plain = report.to_text(report.estimates_to_table(frame()))
    assert "group" not in plain and "flags" not in plain
    said = frame(group=["all", "a=b", "all"], flags=["", "few;one-class", ""])
    full = report.to_text(report.estimates_to_table(said))
    assert "a=b" in full and "few; one-class" in full


def test_names_are_literal_in_the_terminal_and_escaped_in_markdown() -> None:
    assert "[red]|<b>*x*" in report.to_text(report.estimates_to_table(frame()))
    markdown = report.estimates_to_markdown(frame())
    assert "<b>" not in markdown and r"\[red\]\|&lt;b&gt;\*x\* next" in markdown
    rows = markdown.splitlines()
    assert len(rows) == 2 + 3  # a line feed in a name starts no new row
    assert len({line.replace(r"\|", "").count("|") for line in rows}) == 1


def test_json_keeps_every_digit_and_has_no_nan() -> None:
    given = frame()
    document = json.loads(report.estimates_to_json(given, settings={"seed": np.int64(3)}, warnings=["careful"]))
    assert document["format"] == "ssme-estimates/1"
    assert document["settings"] == {"seed": 3} and document["warnings"] == ["careful"]
    back = pd.DataFrame(document["estimates"])
    assert list(back.columns) == list(given.columns)
    assert back["estimate"][0] == 1 / 3 and document["estimates"][2]["estimate"] is None
    assert document["estimates"][1]["model"] == HOSTILE
    assert any("population" in line for line in document["meaning"])


def test_json_of_a_model_index() -> None:
    document = json.loads(report.estimates_to_json(frame(model=[np.int64(0), 1, 2])))
    assert [row["model"] for row in document["estimates"]] == [0, 1, 2]


def test_explanation_names_methods_level_and_metrics() -> None:
    lines = "\n".join(report.explain(frame(), {"accuracy": "Share of rows that are right.", "ece": "not asked for"}))
    assert "90%" in lines and "labeled-only" in lines and "Share of rows" in lines and "not asked for" not in lines


def test_flags_are_explained_in_plain_words() -> None:
    lines = "\n".join(report.explain(frame(flags=["few-labels;undefined-in-12%-of-draws", "", ""])))
    assert "flag few-labels: very few rows" in lines and "flag undefined: in some draws" in lines
    assert "no-op-fit" not in lines and "flag" not in "\n".join(report.explain(frame()))


def test_methods_of_a_model_stand_below_each_other() -> None:
    rows = pd.concat([frame(model=["z", "a", "z"], method=m) for m in ("ssme", "labeled-only")], ignore_index=True)
    lines = report.estimates_to_markdown(rows).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == ["z", "z", "a", "a", "z", "z"]
    assert [line.split(" | ")[-1] for line in lines] == ["ssme |", "labeled-only |"] * 3


def test_several_levels_and_a_missing_column() -> None:
    mixed = report.to_text(report.estimates_to_table(frame(level=[0.9, 0.8, 0.9])))
    assert "90%" not in mixed and "interval" in mixed
    with pytest.raises(ValueError, match="lower is missing"):
        report.estimates_to_table(frame().drop(columns="lower"))


def test_fixed_width_folds_and_loses_nothing() -> None:
    text = report.to_text(report.estimates_to_table(frame()), width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert "bert" in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5), (np.inf, None), (np.array([[1, 2]]), [[1, 2]]), (np.bool_(True), True), ("x", "x"),
        ({1: (np.nan,)}, {"1": [None]}), (frozenset({3}), "frozenset({3})"),
    ],
)  # fmt: skip
def test_plain(value: object, expected: object) -> None:
    assert _format.plain(value) == expected


def test_inspection_tables() -> None:
    content = {
        "rows": 1200, "labeled": 20, "unlabeled": 1180, "models": ["a", "b"], "classes": ["no", "yes"],
        "score_type": "probability", "labels_by_class": {"no": 15, "yes": 5},
        "groups": {"source": {"web": {"rows": 700, "labeled": 12}, "mail": {"rows": 500, "labeled": 8}}},
    }  # fmt: skip
    pairs = pd.DataFrame([[1, 0.75], [0.75, 1]], index=["a", "b"], columns=["a", "b"])
    agreement = SimpleNamespace(with_others=pd.Series([0.75, 0.75], index=["a", "b"]), pairs=pairs, mean=0.75)
    shares = {"no": 0.8, "yes": 0.2}
    fit = {"density": "kde", "converged": True, "class shares": shares, "range": [0.1, 0.2], "share": 0.5, "rounds": 3}
    text = "\n".join(report.to_text(t) for t in report.inspection_to_tables(content, agreement, fit))
    for piece in ("1,200", "no 15, yes 5", "web 700 (12 labeled)", "0.75", "no 0.800, yes 0.200", "0.1 to 0.2"):
        assert piece in text
    single = SimpleNamespace(with_others=pd.Series([np.nan], index=["a"]), pairs=pairs.iloc[:1, :1], mean=np.nan)
    assert len(report.inspection_to_tables(content, single, {})) == 1  # one model agrees with nobody
