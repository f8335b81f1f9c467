"""Robustness curves from few labels: simulated sweeps with known curves, properties, hostile input, the command."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ssl_zoo import cli
from ssl_zoo.curves import (
    add_diagnostics,
    curve_of_seeds,
    curves_of,
    estimate_curves,
    interval_of,
    read_curves,
    robustness_draws,
    share_of,
    true_metrics,
    verdict_shares,
)
from ssl_zoo.robustness import curve_metrics, metrics_of_curves
from ssme import ScoreTable

ROOT = Path(__file__).resolve().parents[2]
X = (0.0, 0.25, 0.5, 0.75, 1.0)
ALGORITHMS = {"falls": -0.12, "flat": 0.0, "rises": 0.08}


def sweep(n: int = 800, seeds: int = 1, seed: int = 0) -> tuple[ScoreTable, pd.DataFrame, np.ndarray]:
    """Three classes; the models share what is hard, and lose or gain skill along the factor."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    shared = 2.2 * np.eye(3)[truth] + rng.normal(0, 0.8, (n, 3))
    scores, rows = [], []
    for name, slope in ALGORITHMS.items():
        for s in range(seeds):
            own = rng.normal(0, 1.0, (n, 3))
            for x in X:
                logits = 2.0 * (shared + (0.9 - 5.0 * slope * x) * own + rng.normal(0, 0.2, (n, 3)))
                scores.append(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
                rows.append({"model": f"{name}-{x:g}-{s}", "algorithm": name, "r": x, "seed": s})
    models = pd.DataFrame(rows)
    return ScoreTable.from_arrays(np.stack(scores, axis=1), model_names=list(models["model"])), models, truth


@pytest.fixture(scope="module")
def found():
    table, models, truth = sweep()
    y = np.where(np.arange(len(truth)) < 40, truth, -1)
    return estimate_curves(table, models, y, metrics=["accuracy", "ece"], truth=truth, random_state=0)


def ours(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["method"] == "ssme"]


# ------------------------------------------------------------------------------------------------ pure functions


@given(st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4), st.integers(0, 1000))
def test_metrics_of_many_curves_are_those_of_each(curve: list[float], seed: int) -> None:
    others = np.vstack([curve, np.random.default_rng(seed).random((5, 4))])
    many = metrics_of_curves([0, 1, 2, 4], others)
    for i, each in enumerate(others):
        one = curve_metrics([0, 1, 2, 4], each)
        assert all(many[name][i] == pytest.approx(one[name], abs=1e-12) for name in many)


def test_metrics_of_curves_with_a_nan_are_nan_and_others_are_not() -> None:
    found = metrics_of_curves([0, 1], [[0.5, np.nan], [0.5, 0.4]])
    assert all(np.isnan(values[0]) and np.isfinite(values[1]) for values in found.values())
    assert list(metrics_of_curves([5, 5], [[0.5, 0.4]], ordered=False)) == ["gm"]
    with pytest.raises(ValueError, match="at least 2 points"):
        metrics_of_curves([0], [[0.5]])


@given(st.floats(-0.3, 0.3), st.integers(0, 100))
def test_an_error_common_to_all_points_cancels(size: float, seed: int) -> None:
    """Joint draws, and not intervals of points, decide how wide the interval of a slope is."""
    curve = np.array([0.8, 0.75, 0.6])
    common = np.random.default_rng(seed).normal(0, abs(size), (50, 1))
    x = np.array([0, 0.5, 1])
    apart = np.random.default_rng(seed).normal(0, abs(size), (50, 3))
    joint = robustness_draws(x, curve, curve + common)
    assert all(np.ptp(draws) < 1e-9 for name, (_, draws) in joint.items() if name != "p_ad_nonneg")
    assert joint["r_slope"][0] == pytest.approx(curve_metrics(x, curve).r_slope)
    if abs(size) > 1e-3:
        assert np.ptp(robustness_draws(x, curve, curve + apart)["r_slope"][1]) > 0


def test_equal_models_have_no_slope_however_draws_are_rounded() -> None:
    draws = np.full((30, 3), 0.7) + np.random.default_rng(0).normal(0, 1e-16, (30, 3))
    own = curves_of(draws, np.array([[0, 1, 2]]))
    found = {name: values for name, (_, values) in robustness_draws(np.array([0, 1, 2]), own[0], own).items()}
    assert not found["r_slope"].any() and (found["p_ad_nonneg"] == 1).all()
    assert verdict_shares(found, delta_g=0, delta_w=0, delta_b=0) == (30.5 / 31,) * 3


def test_intervals_over_seeds_hold_the_scatter_of_the_seeds() -> None:
    rng = np.random.default_rng(0)
    of_seeds = rng.normal(0.7, 0.05, 8)
    draws = np.tile(of_seeds, (4000, 1))  # accuracies are known exactly; only seeds vary
    mean = curve_of_seeds(draws, np.arange(8)[:, None], seed=1)[:, 0]
    assert mean.std() == pytest.approx(of_seeds.std(ddof=1) / np.sqrt(8), rel=0.05)
    with pytest.raises(ValueError, match="at least 2 seeds"):
        curve_of_seeds(draws, np.array([[0]]))


def test_shares_and_intervals() -> None:
    assert 0 < share_of(np.zeros(10, bool)) < 0.05 and share_of(np.zeros(0, bool)) == 0.5
    assert interval_of(2.0, np.arange(2.0), 0.5)[1] == 2.0
    assert np.isnan(interval_of(0.5, np.full(5, np.nan), 0.9)).all()
    draws = {"r_slope": np.array([-0.1, 0.1, np.nan]), "wad": np.array([-0.5, -0.1, np.nan]), "bad": np.ones(3)}
    assert verdict_shares(draws, delta_g=0, delta_w=-0.2, delta_b=0) == (0.5, 0.5, 0.5)


# --------------------------------------------------------------------------------------------- known populations


def test_curves_of_a_known_population_are_found(found) -> None:
    points = ours(found.points).query("metric == 'accuracy'")
    assert (points["estimate"] - points["truth"]).abs().mean() < 0.04
    assert ((points["lower"] <= points["truth"]) & (points["truth"] <= points["upper"])).mean() > 0.7
    slopes = found.robustness.query("metric == 'accuracy' and measure == 'r_slope'")
    assert {"ssme", "labeled-only"} == set(slopes["method"])
    slopes = ours(slopes).set_index("algorithm")
    steep = slopes["truth"].abs() > 0.03
    assert steep.any() and (np.sign(slopes["estimate"]) == np.sign(slopes["truth"]))[steep].all()
    assert (slopes["n_labeled"] == 40).all() and (slopes["n_unlabeled"] == 760).all() and (slopes["level"] == 0.9).all()


def test_slopes_of_few_labels_are_closer_than_those_of_the_labels_alone() -> None:
    ratio = []
    for seed in range(6):
        table, models, truth = sweep(seed=seed)
        y = np.where(np.arange(len(truth)) < 20, truth, -1)
        robustness = estimate_curves(table, models, y, truth=truth, n_draws=20, random_state=seed).robustness
        own = robustness.query("measure == 'r_slope'")
        error = (own["estimate"] - own["truth"]).abs().groupby(own["method"]).mean()
        ratio.append(error["ssme"] / error["labeled-only"])
    assert np.exp(np.mean(np.log(ratio))) < 0.6


def test_ranking_and_verdicts_follow_the_curves(found) -> None:
    ranking = ours(found.ranking).query("metric == 'accuracy' and measure == 'r_slope'").set_index("algorithm")
    true = ours(found.robustness).query("metric == 'accuracy' and measure == 'r_slope'").set_index("algorithm")["truth"]
    assert ranking["rank"].idxmin() == true.idxmax() and ranking["rank"].idxmax() == true.idxmin()
    assert ranking["p_best"].sum() == pytest.approx(1)
    verdicts = ours(found.verdicts).set_index("algorithm")
    assert verdicts.loc[true.idxmin(), "p_global"] < 0.1 and not verdicts.loc[true.idxmin(), "true_global"]
    assert (verdicts["p_both"] <= verdicts[["p_global", "p_local"]].min(axis=1)).all()
    ece = ours(found.ranking).query("metric == 'ece' and measure == 'r_slope'")
    assert ece.sort_values("rank")["estimate"].is_monotonic_increasing  # a loss: less growth is more robust


def test_truth_is_the_curve_of_all_labels(found) -> None:
    table, models, truth = sweep()
    right = (table.scores.argmax(axis=2) == truth[:, None]).mean(axis=0)
    assert true_metrics(table, truth, ["accuracy"])["accuracy"] == pytest.approx(right)
    one = ours(found.robustness).query("metric == 'accuracy' and algorithm == 'falls' and measure == 'gm'")
    own = right[models["algorithm"] == "falls"]
    assert one["truth"].item() == pytest.approx(np.abs(own - own.mean()).sum())


def test_the_same_seed_gives_the_same_tables_and_the_input_stays() -> None:
    table, models, truth = sweep(n=200)
    y, before = np.where(np.arange(200) < 20, truth, -1), models.copy()
    first, second = (estimate_curves(table, models, y, n_draws=20, random_state=3) for _ in range(2))
    pd.testing.assert_frame_equal(first.robustness, second.robustness)
    pd.testing.assert_frame_equal(models, before)
    shuffled = estimate_curves(table, models.sample(frac=1, random_state=0), y, n_draws=20, random_state=3)
    keys = ["algorithm", "measure", "method"]
    pd.testing.assert_frame_equal(*(f.robustness.sort_values(keys, ignore_index=True) for f in (first, shuffled)))


def test_names_of_classes_are_not_taken_for_positions() -> None:
    """Classes called by numbers in another order, as an export of a pool has them."""
    table, models, truth = sweep(n=300)
    names = ("2", "0", "1")
    renamed = ScoreTable.from_arrays(
        table.scores,
        np.where(np.arange(300) < 30, np.array(names, object)[truth], None),
        class_names=names,
        model_names=list(table.model_names),
    )
    y = np.where(np.arange(300) < 30, truth, -1)
    a = estimate_curves(renamed, models, n_draws=20, random_state=0, truth=np.array(names)[truth])
    b = estimate_curves(table, models, y, n_draws=20, random_state=0, truth=truth)
    assert a.points["truth"].tolist() == b.points["truth"].tolist()
    assert a.points["estimate"].to_numpy() == pytest.approx(b.points["estimate"].to_numpy(), abs=0.02)


# ------------------------------------------------------------------------------------------------ masking, seeds


def test_masking_is_found_from_estimated_accuracy() -> None:
    table, models, truth = sweep(n=400, seeds=3)
    rng = np.random.default_rng(0)
    models["cci"] = 0.1 + 0.5 * models["r"] + rng.normal(0, 0.01, len(models))
    models["sem_drift"] = np.nan
    y = np.where(np.arange(400) < 40, truth, -1)
    found = estimate_curves(table, models, y, random_state=0, over_seeds=True)
    masking = ours(found.masking).set_index(["algorithm", "x"])
    assert len(masking) == 3 * 4 and (masking["worsened"] == "cci").all()
    assert masking.loc[("rises", 1.0), "verdict"] == "masked"
    assert masking.loc[("falls", 1.0), "verdict"] == "open collapse"
    assert masking.loc[("falls", 1.0), "p_drop_beyond_margin"] > masking.loc[("rises", 1.0), "p_drop_beyond_margin"]
    assert (masking["drop_lower"] <= masking["accuracy_drop"]).all()
    fixed = estimate_curves(table, models, y, random_state=0)
    width = [(f.points["upper"] - f.points["lower"]).mean() for f in (found, fixed)]
    assert width[0] > width[1] and (found.points["n_seeds"] == 3).all()


def test_one_seed_gives_no_masking_verdict_and_says_so() -> None:
    table, models, truth = sweep(n=200)
    models["cci"] = 0.1
    with pytest.warns(UserWarning, match="at least 2 seeds"):
        found = estimate_curves(table, models, truth, n_draws=20, random_state=0)
    assert not len(found.masking)
    with pytest.raises(ValueError, match="over_seeds"):
        estimate_curves(table, models, truth, over_seeds=True)


# ------------------------------------------------------------------------------------------------- hostile input


def frame(**changes) -> pd.DataFrame:
    rows = {"model": ["a", "b", "c", "d"], "algorithm": ["u", "u", "v", "v"], "r": [0, 1, 0, 1.0], "seed": 0}
    return pd.DataFrame(rows | changes)


NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (frame(model=["a", "a2", "c", "d"]), "'a2'"),
        (frame(model=["a", None, "c", "d"]), "no model in row 1"),
        (frame(algorithm=["u", "u", None, "v"]), "no algorithm in row 2"),
        (frame(r=[0, np.nan, 0, 1]), "no r in row 1"),
        (frame(r=[0, np.inf, 0, 1]), "no finite number"),
        (frame(r=["0", "far", "0", "1"]), "ordered=False"),
        (frame(r=[0, 0, 0, 1]), "two models at 0.0 with seed 0"),
        (frame().drop(columns="r"), "'x' or 'r' or 'value'"),
        (frame().drop(columns="model"), "'model' or 'run'"),
        (frame().drop(columns="algorithm"), "'algorithm'"),
        (frame(status="failed"), "finished"),
    ],
)
def test_a_broken_table_of_models_is_an_error_that_names_the_place(models: pd.DataFrame, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            read_curves(models, NAMES)


def test_diagnostics_come_from_a_log_by_epoch() -> None:
    models = pd.DataFrame({"run": ["a", "b", "b"], "algorithm": "u", "x": [0, 0.5, 1]})
    cci = [9.0, 9.0, *[1.0] * 10, 2, 4]
    log = pd.DataFrame({"run": ["a"] * 12 + ["b"] * 2, "epoch": [*range(12), 1, 0], "cci": cci})
    log.loc[11, "cci"] = np.nan
    assert add_diagnostics(models, log)["cci"].tolist() == [1, 3, 3]
    assert np.isnan(add_diagnostics(models, log[:12])["cci"].tolist()[1])
    with pytest.raises(ValueError, match="column epoch"):
        add_diagnostics(models, log.drop(columns="epoch"))


def test_one_of_several_factors_is_read() -> None:
    both = pd.concat([frame(factor="r").rename(columns={"r": "x"}), frame(factor="c_n").rename(columns={"r": "x"})])
    assert len(read_curves(both, NAMES, factor="c_n")) == 2
    with pytest.raises(ValueError, match="factors r, c_n"):
        read_curves(both, NAMES)


def test_one_ratio_alone_is_no_curve() -> None:
    with pytest.warns(UserWarning, match="v has one point only"):
        curves = read_curves(frame(r=[0, 1, 0, 0], seed=[0, 0, 0, 1]), NAMES)
    assert [curve.algorithm for curve in curves] == ["u"]
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="at least 2 values"):
        read_curves(frame(r=0.5, seed=[0, 1, 0, 1]), NAMES)


def test_unfinished_runs_and_seeds_that_lack_a_point_are_left_out_with_a_warning() -> None:
    models = pd.DataFrame(
        {"run": list("abcdef"), "algorithm": "u", "x": [0, 1, 0, 1, 0, 1], "seed": [0, 0, 1, 1, 2, 2],
         "status": ["finished"] * 5 + ["failed"]}
    )  # fmt: skip
    with pytest.warns(UserWarning) as caught:
        [curve] = read_curves(models, list("abcdef"))
    assert curve.seeds == (0, 1) and curve.models.tolist() == [[0, 1], [2, 3]] and curve.rows.shape == (2, 2)
    words = " ".join(str(w.message) for w in caught)
    assert "1 runs" in words and "1 seeds lack a point" in words and "1 of the 6 models" in words


def test_one_model_at_several_points_is_a_flat_curve() -> None:
    table, models, truth = sweep(n=200)
    flat = pd.DataFrame({"model": models["model"][0], "algorithm": "supervised", "r": X, "seed": 0})
    both = pd.concat([models, flat], ignore_index=True)
    found = estimate_curves(table, both, np.where(np.arange(200) < 20, truth, -1), n_draws=20, random_state=0)
    own = ours(found.robustness).query("algorithm == 'supervised'").set_index("measure")
    assert own.loc["r_slope", ["estimate", "lower", "upper"]].tolist() == [0, 0, 0]


def test_a_factor_without_order_has_gm_alone() -> None:
    table, models, truth = sweep(n=200)
    models["r"] = models["r"].map(dict(zip(X, ["frog", "horse", "ship", "truck", "deer"], strict=True)))
    found = estimate_curves(table, models, truth, ordered=False, n_draws=20, random_state=0)
    assert set(found.robustness["measure"]) == {"gm"} and not len(found.verdicts)
    assert set(found.points["x"]) == {"frog", "horse", "ship", "truck", "deer"}


def test_a_doubled_model_counts_once_and_changes_little() -> None:
    table, models, truth = sweep(n=400)
    y = np.where(np.arange(400) < 30, truth, -1)
    both = np.concatenate([table.scores, table.scores[:, :5]], axis=1)
    copies = models[:5].assign(model=[f"copy{i}" for i in range(5)], algorithm="copy")
    doubled = ScoreTable.from_arrays(both, model_names=[*table.model_names, *copies["model"]])
    found = estimate_curves(doubled, pd.concat([models, copies]), y, n_draws=40, random_state=0)
    slopes = ours(found.robustness).query("measure == 'r_slope'").set_index("algorithm")
    assert slopes.loc["copy", "estimate"] == pytest.approx(slopes.loc["falls", "estimate"], abs=1e-9)
    alone = estimate_curves(table, models, y, n_draws=40, random_state=0)
    before = ours(alone.robustness).query("measure == 'r_slope'").set_index("algorithm")
    assert slopes.loc["rises", "estimate"] == pytest.approx(before.loc["rises", "estimate"], abs=0.03)


def test_scores_with_a_nan_are_refused_before_anything_is_made() -> None:
    table, models, _ = sweep(n=50)
    scores = np.array(table.scores)
    scores[3, 2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN|nan|finite"):
        ScoreTable.from_arrays(scores, model_names=list(models["model"]))


def test_curves_need_no_torch() -> None:
    code = "import sys, ssl_zoo.curves; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "False", done.stderr


def test_truth_without_labels_is_an_error() -> None:
    table, models, truth = sweep(n=100)
    with pytest.raises(ValueError, match="truth holds no label"):
        estimate_curves(table, models, truth, truth=np.full(100, -1))


# --------------------------------------------------------------------------------------------------- the command


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, ["curves", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    table, models, truth = sweep(n=300)
    paths = {name: tmp_path / name for name in ("scores.npz", "models.csv", "few.csv", "all.csv")}
    table.write(paths["scores.npz"])
    models.to_csv(paths["models.csv"], index=False)
    labels = pd.DataFrame({"id": table.row_ids, "label": truth})
    labels[:30].to_csv(paths["few.csv"], index=False)
    labels.to_csv(paths["all.csv"], index=False)
    return paths


def test_the_command_writes_tables_and_a_figure(files: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    words = run(files["scores.npz"], "--labels", files["few.csv"], "--truth", files["all.csv"], "--models",
                files["models.csv"], "--out", out, "--draws", 40)  # fmt: skip
    assert "30 labeled and 270 unlabeled rows" in words and "falls" in words and "90% interval" in words
    table = pd.read_csv(out / "robustness.csv")
    assert set(table["algorithm"]) == set(ALGORITHMS) and table["truth"].notna().all()
    assert (out / "curves-accuracy.png").read_bytes().startswith(b"\x89PNG")
    assert {p.name for p in out.iterdir()} == {
        "points.csv", "robustness.csv", "verdicts.csv", "ranking.csv", "curves-accuracy.png"}  # fmt: skip


def test_the_command_says_what_is_wrong(files: dict[str, Path], tmp_path: Path) -> None:
    base = [files["scores.npz"], "--out", tmp_path / "out", "--no-figure"]
    assert "no row has a label" in run(*base, "--models", files["models.csv"], code=1)
    labeled = [*base, "--labels", files["few.csv"]]
    assert "no such table" in run(*labeled, "--models", tmp_path / "none.csv", code=1)
    assert "three numbers" in run(*labeled, "--models", files["models.csv"], "--deltas", "0,x", code=1)
    (tmp_path / "empty.csv").write_text("")
    assert "cannot be read" in run(*labeled, "--models", tmp_path / "empty.csv", code=1)
    assert not (tmp_path / "out").exists()
