"""The page: what it says, that every name is text, and that it needs nothing from outside."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

pytest.importorskip("matplotlib", reason="matplotlib is missing (extra report)")
pytest.importorskip("jinja2", reason="jinja2 is missing (extra report)")

from ssme import SSME, ScoreTable  # noqa: E402
from ssme.cli import app  # noqa: E402
from ssme.html_report import estimates_page, is_estimates, read_estimates, scores_page, sweep_page  # noqa: E402

HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" & 'single' $x_1$ {{ 7 * 7 }}",
    "🤖 emoji",
    "x" * 500,
    "نموذج عربي",
    "</style><img src=x onerror=alert(1)>",
]


class Reader(HTMLParser):
    """The elements of a page, with the text in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data.strip())

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def make_table(names: list[str], n: int = 240, n_labeled: int = 24) -> ScoreTable:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, n)
    logits = rng.normal(size=(n, len(names), 3))
    logits[np.arange(n)[:, None], np.arange(len(names)), truth[:, None]] += 1.5
    p = np.exp(logits)
    return ScoreTable(
        scores=p / p.sum(axis=2, keepdims=True),
        labels=np.where(np.arange(n) < n_labeled, truth, -1),
        model_names=tuple(names),
        class_names=("<i>a</i>", 'b"', "ج"),
        row_ids=np.arange(n),
        groups={"g<u>": np.array(["<img src=x onerror=alert(1)>", "y" * 500])[np.arange(n) % 2]},
    )


@pytest.fixture(scope="module")
def hostile_page() -> str:
    table = make_table(HOSTILE)
    model = SSME(random_state=0, n_draws=40).fit(table)
    return scores_page(model, table, ["accuracy", "ece"], groups=["g<u>"], labeled_only=True, title="<b>Title</b>")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    table = make_table(["a", "b"])
    return SSME(random_state=0, n_draws=40).fit(table).estimate(["accuracy", "ece"])


def test_no_name_becomes_an_element(hostile_page: str) -> None:
    page = Reader(hostile_page)
    assert page.count("script") == 1 and page.count("style") == 1 and page.count("h1") == 1
    assert {"img", "i", "u", "b"} & {tag for tag, _ in page.tags} == set()
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    for name in [*HOSTILE, "<b>Title</b>"]:
        assert name in page.text
    assert "49" not in [t for t in page.text if "quoted" in t]


def test_the_page_needs_nothing_from_outside(hostile_page: str) -> None:
    for tag, attributes in Reader(hostile_page).tags:
        for name in ("src", "href", "action", "data"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), f"<{tag} {name}={target}>"
    assert "default-src 'none'" in hostile_page and "@import" not in hostile_page
    assert len(hostile_page.encode()) < 5e6


def test_ids_are_unique_and_references_lead_to_them(hostile_page: str) -> None:
    tags = Reader(hostile_page).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = {a["href"] for _, a in tags if (a.get("href") or "").startswith("#")}
    named |= {f"#{each}" for each in re.findall(r"url\(#([^)]+)\)", hostile_page)}
    assert named <= {f"#{each}" for each in ids}


def test_every_part_is_there(hostile_page: str) -> None:
    ids = {attributes.get("id") for _, attributes in Reader(hostile_page).tags}
    parts = "best estimates intervals reliability roc precision_recall agreement groups diagnostics meaning cite"
    assert set(parts.split()) <= ids
    assert Reader(hostile_page).count("svg") == 2 + 3 * len(HOSTILE)


def test_the_numbers_are_those_of_the_estimator(frame: pd.DataFrame) -> None:
    page = Reader(estimates_page(frame))
    for row in frame.itertuples():
        assert f"{row.lower:.3f} to {row.upper:.3f}" in page.text
        assert any(a.get("data-value") == str(row.estimate) for _, a in page.tags)
    best = frame[frame["metric"] == "accuracy"].sort_values("estimate", ascending=False)["model"].iloc[0]
    at = next(i for i, (_, a) in enumerate(page.tags) if a.get("class") == "winner")
    assert page.tags[at][0] == "p" and best in page.text


def test_lower_is_better_where_it_is(frame: pd.DataFrame) -> None:
    text = estimates_page(frame[frame["metric"] == "ece"])
    winner = re.search(r'class="winner"><bdi>(\w)</bdi>', text)
    ece = frame[frame["metric"] == "ece"].set_index("model")["estimate"]
    assert winner is not None and winner[1] == ece.idxmin() and "lower is better" in text


def test_undefined_estimates_and_unknown_metrics(frame: pd.DataFrame) -> None:
    odd = frame.assign(metric="own", estimate=np.nan, lower=np.nan, upper=np.nan, flags="undefined-in-100%-of-draws")
    text = estimates_page(odd)
    assert "No model is named best: no model has an estimate" in text and "undefined" in text
    assert "it is not known whether more of it is better" in estimates_page(frame.assign(metric="own"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_tables_that_estimate_wrote_read_back(suffix: str, tmp_path: Path) -> None:
    scores, out, page = tmp_path / "scores.npz", tmp_path / f"out{suffix}", tmp_path / "page.html"
    make_table(["NA", "7"]).write(scores)
    assert CliRunner().invoke(app, ["estimate", str(scores), "--out", str(out), "-q"]).exit_code == 0
    assert is_estimates(out) and not is_estimates(scores)
    frame, settings, _ = read_estimates(out)
    assert list(frame["model"].unique()) == ["NA", "7"] and (settings != {}) == (suffix == ".json")
    result = CliRunner().invoke(app, ["report", str(out), "--out", str(page), "--title", "Mine", "-q"])
    assert result.exit_code == 0 and result.output == "", result.output
    text = page.read_text(encoding="utf-8")
    assert "<bdi>Mine</bdi>" in text and "<bdi>NA</bdi>" in text


def test_the_command_gives_the_numbers_of_estimate(tmp_path: Path) -> None:
    scores, out, page = tmp_path / "s.npz", tmp_path / "out.csv", tmp_path / "p.html"
    make_table(["a", "b"]).write(scores)
    options = [str(scores), "--metrics", "accuracy", "--seed", "3", "--draws", "40", "--labeled-only", "-q", "--out"]
    assert CliRunner().invoke(app, ["estimate", *options, str(out)]).exit_code == 0
    result = CliRunner().invoke(app, ["report", *options, str(page)])
    assert result.exit_code == 0, result.output
    shown = Reader(page.read_text(encoding="utf-8")).text
    for row in read_estimates(out)[0].itertuples():
        assert f"{row.lower:.3f} to {row.upper:.3f}" in shown


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad.json", "{", "is not a JSON document"),
        ("other.json", json.dumps({"format": "else"}), "its format is not ssme-estimates/1"),
        ("empty.csv", "metric,model,group,estimate,lower,upper,level,n_labeled,n_unlabeled,method,flags\n", "no rows"),
        (
            "text.csv",
            "metric,model,group,estimate,lower,upper,level,n_labeled,n_unlabeled,method,flags\na,b,all,?,0,1,0.9,1,1,m,\n",
            "estimate of data row 1 is '?', not a number",
        ),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    result = CliRunner().invoke(app, ["report", str(tmp_path / name), "--out", str(tmp_path / "p.html")])
    assert result.exit_code == 1 and said in result.output, result.output
    assert not (tmp_path / "p.html").exists()


def test_out_must_be_html_and_not_the_input(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", "x.csv", "--out", "x.csv"])
    assert result.exit_code == 2 and ".html" in result.output


def sweep_frames() -> dict[str, pd.DataFrame]:
    names = ["fixmatch", *HOSTILE[:2]]
    cells = [(a, f, v) for a in names for f in ("ood", "<u>") for v in (0, 0.5)]
    points = [(a, f, v, 0.9 - v / 5, 0.85 - v / 5, 0.95 - v / 5) for a, f, v in cells]
    return {
        "curves": pd.DataFrame(points, columns=["algorithm", "factor", "value", "estimate", "lower", "upper"]),
        "cscore": pd.DataFrame([(a, e, 0.1 * e, 1.0) for a in names for e in range(3)],
                               columns=["algorithm", "epoch", "PLE", "CCI"]),
        "masking": pd.DataFrame({"algorithm": names, "verdict": ["masked", "stable", "open collapse"]}),
        "factors": pd.DataFrame([(a, f, 0.1) for a in names for f in ("ood", "<u>")],
                                columns=["algorithm", "factor", "score"]),
    }  # fmt: skip


def test_sweep_page_has_a_figure_for_each_factor_and_indicator() -> None:
    page = Reader(sweep_page(**sweep_frames()))
    assert {"curves", "masking", "factors", "cscore"} <= {a.get("id") for _, a in page.tags}
    assert page.count("svg") == 2 + 2 and page.count("script") == 1 and page.count("u") == 0
    assert Reader(sweep_page(masking=sweep_frames()["masking"])).count("svg") == 0


def test_sweep_of_a_folder(tmp_path: Path) -> None:
    for name, each in sweep_frames().items():
        each.to_csv(tmp_path / f"{name}.csv", index=False)
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(page), "-q"])
    assert result.exit_code == 0, result.output
    assert page.read_text(encoding="utf-8") == sweep_page(**sweep_frames())


def test_sweep_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give at least one frame"):
        sweep_page()
    with pytest.raises(ValueError, match="masking must have the columns algorithm, verdict; verdict is missing"):
        sweep_page(masking=pd.DataFrame({"algorithm": ["a"]}))
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(tmp_path / "p.html")])
    assert result.exit_code == 1 and "holds none of curves.csv" in result.output


def test_a_missing_template_engine_is_said_with_its_extra() -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import pandas as pd; from ssme.html_report import sweep_page\n"
        "try: sweep_page(masking=pd.DataFrame({'algorithm': ['a'], 'verdict': ['stable']}))\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "the report needs jinja2 and matplotlib: pip install 'ssme[report]'."
