"""What the displays put on the axes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is missing (extra report)")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from ssme import SSME  # noqa: E402
from ssme.plots import (  # noqa: E402
    BudgetCurveDisplay,
    EstimatesDisplay,
    ReliabilityDisplay,
    RocDisplay,
    plot_budget_curve,
    plot_cscore,
    plot_estimates,
    plot_precision_recall,
    plot_reliability,
    plot_robustness_curves,
    plot_roc,
)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model() -> SSME:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    p = 1 / (1 + np.exp(-2 * (2 * truth - 1)[:, None] - rng.normal(scale=2, size=(300, 3))))
    return SSME(random_state=0).fit(p, np.where(np.arange(300) < 20, truth, -1))


def test_forest_shows_estimates_and_ends_of_intervals(model: SSME) -> None:
    display = EstimatesDisplay.from_estimator(model, ["accuracy"]).plot(best="high")
    frame = display.frame.sort_values("estimate", ascending=False)
    (bars,) = display.ax_.containers
    np.testing.assert_allclose(bars.lines[0].get_xdata(), display.frame["estimate"])
    ends = np.array([s[:, 0] for s in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends, display.frame[["lower", "upper"]])
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == [str(m) for m in frame["model"]]


def test_forest_of_a_frame_and_both_methods(model: SSME) -> None:
    frame = model.estimate(["accuracy", "ece"], labeled_only=True)
    display = plot_estimates(frame, "ece", best="low")
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["ssme", "labeled-only"]
    with pytest.raises(ValueError, match="there is no metric 'f1'; choose from accuracy, ece"):
        plot_estimates(frame, "f1")


@pytest.mark.parametrize("plot", [plot_reliability, plot_roc, plot_precision_recall])
def test_curves_lie_on_the_axes_given_with_a_band_each(model: SSME, plot: object) -> None:
    _, ax = plt.subplots()
    display = plot(model, ax=ax, models=["0", "2"])  # type: ignore[operator]
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert len(ax.collections) == 2
    low, high = display.curve.band(0.9)
    there = np.isfinite(display.curve.point[2])
    corners = ax.collections[1].get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(low[2][there].min()) and corners.max() == pytest.approx(high[2][there].max())


def test_curve_displays_refuse_what_they_cannot_draw(model: SSME) -> None:
    display = RocDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="there is no model 'z'; choose from 0, 1, 2"):
        display.plot(models="z")
    with pytest.raises(ValueError, match="curve must be of kind 'reliability'"):
        ReliabilityDisplay.from_draws(display.curve)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        RocDisplay.from_draws(display.curve, level=90)


def study() -> pd.DataFrame:
    methods = (("ssme", 1.0, 1.0), ("labeled-only", 2.0, 0.9), ("label-curve", 3.0, 1.0))
    rows = [("accuracy", m, b, s, e / b, c) for m, e, c in methods for b in (20, 50) for s in (0, 1)]
    return pd.DataFrame(rows, columns=["metric", "method", "n_labeled", "seed", "abs_err", "covered"])


def test_budget_curve() -> None:
    ax = plot_budget_curve(study()).ax_
    assert [line.get_label() for line in ax.lines] == ["ssme", "labeled-only"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1 / 20, 1 / 50])
    np.testing.assert_allclose(plot_budget_curve(study(), value="coverage").ax_.lines[1].get_ydata(), [0.9, 0.9])
    with pytest.raises(ValueError, match="the column abs_err is missing"):
        BudgetCurveDisplay.from_frame(study().drop(columns="abs_err"))


def test_robustness_curves_in_the_order_of_the_values_with_the_truth() -> None:
    frame = pd.DataFrame({"algorithm": "a", "value": [0.5, 0.0], "estimate": [0.7, 0.9], "lower": [0.6, 0.8],
                          "upper": [0.8, 1.0], "truth": [0.72, 0.88]})  # fmt: skip
    ax = plot_robustness_curves(frame).ax_
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.0, 0.9], [0.5, 0.7]])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0.88, 0.72])
    named = plot_robustness_curves(frame.assign(value=["cat", "$dog$"])).ax_
    assert [t.get_text() for t in named.get_xticklabels()] == ["cat", "$dog$"]


def test_cscore_a_panel_for_each_indicator_and_the_mean_over_seeds() -> None:
    frame = pd.DataFrame({"epoch": [1, 2, 1, 2], "seed": [0, 0, 1, 1], "algorithm": "x", "PLE": [0.2, 0.4, 0.4, 0.6],
                          "CCI": [1.0, 1.0, 1.0, 1.0]})  # fmt: skip
    display = plot_cscore(frame)
    assert [ax.get_title() for ax in display.axes_] == ["PLE", "CCI"]
    np.testing.assert_allclose(display.axes_[0].lines[0].get_ydata(), [0.3, 0.5])
    with pytest.raises(ValueError, match="one of the axes for each of 2 indicators, got 1"):
        plot_cscore(frame, ax=plt.subplots()[1])
    with pytest.raises(ValueError, match="numeric column for each indicator"):
        plot_cscore(frame[["epoch", "seed"]])


def test_hostile_names_are_drawn_as_they_are(model: SSME) -> None:
    frame = model.estimate(["accuracy"]).assign(model=["$x_1", "<b>\n" + "y" * 500, "$\\frac{$"])
    ax = plot_estimates(frame).ax_
    ax.figure.canvas.draw()
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels[0] == "$x_1" and len(labels[1]) == 28


def test_a_missing_matplotlib_is_said_with_its_extra() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import pandas as pd; from ssme.plots import plot_cscore\n"
        "try: plot_cscore(pd.DataFrame({'epoch': [1], 'PLE': [0.1]}))\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "figures need matplotlib: pip install 'ssme[report]'."
