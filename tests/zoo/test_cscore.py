"""Diagnostics against hand formulas, NaN where undefined, and the detector on the published tables."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ssl_zoo.cscore import (
    EpochPool,
    Summary,
    cci,
    detect_masking,
    grad_align,
    last_layer_gradient,
    ood_f,
    over_seeds,
    ple,
    sem_drift,
    skipping_mean,
)
from ssl_zoo.masking import _holm

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "published"
needs_tables = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the published tables beside the repository are absent"
)


def probs(n: int, k: int, seed: int = 0, sharp: float = 1.0) -> torch.Tensor:
    logits = torch.randn(n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * sharp
    return logits.softmax(1)


def isnan(value: torch.Tensor) -> bool:
    return value.ndim == 0 and bool(value.isnan())


# ---------------------------------------------------------------------------------------------------------- diagnostics


@given(st.integers(1, 40), st.integers(2, 12), st.integers(0, 9))
def test_entropy_and_collapse_formulas(n, k, seed):
    p = probs(n, k, seed, sharp=3.0)
    a = p.numpy()
    assert float(ple(p)) == pytest.approx(-(a * np.log(a + 1e-12)).sum(1).mean(), abs=1e-9)
    mean = a.mean(0)
    assert float(cci(p)) == pytest.approx((mean * np.log(mean * k)).sum(), abs=1e-9)
    assert 0 <= float(cci(p)) <= math.log(k) + 1e-9 and -1e-9 <= float(ple(p)) <= math.log(k) + 1e-9


def test_extremes_of_entropy_and_collapse():
    one_hot = torch.eye(5)
    assert float(ple(one_hot)) == pytest.approx(0, abs=1e-6) and float(cci(one_hot)) == pytest.approx(0, abs=1e-6)
    assert float(cci(one_hot[[2] * 7])) == pytest.approx(math.log(5))
    assert isnan(ple(torch.zeros(0, 3))) and isnan(cci(torch.zeros(0, 3)))
    with pytest.raises(ValueError, match=r"\(N, K\)"):
        ple(torch.zeros(3))


def test_low_precision_inputs_are_summed_in_float32():
    p = probs(512, 10).float()
    assert float(ple(p.bfloat16())) == pytest.approx(float(ple(p)), abs=0.02)
    assert ple(p.bfloat16()).dtype == torch.float32 and ple(p.double()).dtype == torch.float64


def test_collapse_is_biased_in_small_batches_and_not_when_pooled():
    k, n, batches = 10, 60, 400
    classes = torch.randint(k, (batches, n), generator=torch.Generator().manual_seed(0))
    pool, values = EpochPool(), []
    for batch in classes:
        p = torch.eye(k)[batch]
        pool.update(p)
        values.append(cci(p))
    mean, skipped = skipping_mean(values)
    assert skipped == 0 and mean == pytest.approx((k - 1) / (2 * n), rel=0.15)
    assert float(pool.cci()) < 0.002 and pool.count == n * batches


def test_drift_formula_by_loops():
    g = torch.Generator().manual_seed(0)
    z_l, z_u = torch.randn(20, 6, generator=g), torch.randn(50, 6, generator=g)
    y, pseudo = torch.randint(5, (20,), generator=g), torch.randint(1, 6, (50,), generator=g)
    mask = (torch.rand(50, generator=g) < 0.5).float()
    distances = []
    for c in range(6):
        left, right = z_l[y == c], z_u[(pseudo == c) & (mask > 0)]
        if len(left) and len(right):
            distances.append((left.mean(0) - right.mean(0)).norm())
    assert float(sem_drift(z_l, y, z_u, pseudo, mask)) == pytest.approx(float(torch.stack(distances).mean()), rel=1e-5)
    assert torch.equal(sem_drift(z_l, y, z_u, pseudo, mask.bool()), sem_drift(z_l, y, z_u, pseudo, mask))
    soft = sem_drift(z_l[:2], torch.tensor([0, 0]), z_u[:2], torch.tensor([0, 0]), torch.tensor([0.25, 0.75]))
    by_hand = (z_l[:2].mean(0) - (0.25 * z_u[0] + 0.75 * z_u[1])).norm()
    assert float(soft) == pytest.approx(float(by_hand), rel=1e-5)


def test_drift_is_undefined_without_a_common_class():
    z, y = torch.randn(4, 3), torch.tensor([0, 0, 1, 1])
    assert isnan(sem_drift(z, y, z, torch.full((4,), 2), torch.ones(4)))
    assert isnan(sem_drift(z, y, z, y, torch.zeros(4)))
    assert isnan(sem_drift(z, y, z, torch.full((4,), -1), torch.ones(4)))
    assert float(sem_drift(z, y, z, y, torch.ones(4))) == pytest.approx(0, abs=1e-6)


def test_alignment_of_the_last_layer_matches_autograd():
    torch.manual_seed(0)
    head, h_l, h_u = torch.nn.Linear(7, 3), torch.randn(5, 7), torch.randn(9, 7)
    y_l, y_u = torch.randint(3, (5,)), torch.randint(3, (9,))
    gradients, outputs = [], []
    for h, y in ((h_l, y_l), (h_u, y_u)):
        z = head(h)
        z.retain_grad()
        head.zero_grad()
        torch.nn.functional.cross_entropy(z, y).backward()
        gradients.append(torch.cat([head.weight.grad.flatten(), head.bias.grad]))
        outputs.append(last_layer_gradient(h, z.grad))
    for a, b in zip(gradients, outputs, strict=True):
        assert torch.allclose(a, b, atol=1e-7)
    expected = torch.cosine_similarity(*gradients, dim=0)
    assert float(grad_align(*outputs)) == pytest.approx(float(expected), abs=1e-6)


def test_alignment_is_undefined_without_a_gradient():
    g = torch.randn(4)
    assert isnan(grad_align(g, torch.zeros(4))) and isnan(grad_align(torch.zeros(4), g))
    assert isnan(grad_align(g, None)) and isnan(grad_align(None, g)) and isnan(grad_align(None, None))
    assert float(grad_align(g, g)) == pytest.approx(1, abs=1e-6)
    assert float(grad_align(g * 1e-3, -g * 1e-3)) == pytest.approx(-1, abs=1e-4)


def test_filtering_ratio():
    ood = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]).bool()
    mask = torch.tensor([1, 0, 0, 0, 1, 1, 1, 0, 0, 0]).float()
    assert float(ood_f(mask, ood)) == pytest.approx(0.5, rel=1e-6)
    assert float(ood_f(torch.ones(10), ood)) == pytest.approx(1, rel=1e-6)
    weights = torch.linspace(0.1, 1, 10)
    assert float(ood_f(weights, ood)) == pytest.approx(float(weights[:4].mean() / weights[4:].mean()), rel=1e-6)
    assert float(ood_f(1 - ood.float(), ood)) == 0  # perfect filtering is 0, and defined
    for undefined in (
        ood_f(mask, None),
        ood_f(mask, torch.zeros(10)),
        ood_f(mask, torch.ones(10)),
        ood_f(mask * 0, ood),
    ):
        assert isnan(undefined)
    pool = EpochPool()
    for rows in (slice(0, 3), slice(3, 6), slice(6, 10)):
        pool.update(probs(10, 4)[rows], mask[rows], ood[rows])
    assert float(pool.ood_f()) == pytest.approx(0.5, rel=1e-6)
    assert float(pool.ple()) == pytest.approx(float(ple(probs(10, 4))), rel=1e-5)
    empty = EpochPool()
    assert isnan(empty.cci()) and isnan(empty.ple()) and isnan(empty.ood_f())


def test_diagnostics_keep_no_graph():
    z = torch.randn(6, 3, requires_grad=True)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    values = [ple(z.softmax(1)), cci(z.softmax(1)), sem_drift(z, y, z, y, torch.ones(6)), ood_f(z[:, 0], y == 0),
              grad_align(z[0], z[1]), last_layer_gradient(z, z)]  # fmt: skip
    assert not any(v.requires_grad for v in values)


def test_averages_skip_what_is_undefined():
    nan = float("nan")
    assert skipping_mean([torch.tensor(2.0), nan, 4.0]) == (3.0, 1)
    assert math.isnan(skipping_mean([nan, nan])[0]) and skipping_mean([nan, nan])[1] == 2
    mean, std, skipped = over_seeds([[9, 1, nan, 3], [9, 4, 4, 4], [9, 6, 6, 6]], last=3)
    assert mean == pytest.approx(4) and std == pytest.approx(np.std([2, 4, 6], ddof=1)) and skipped == 1
    assert over_seeds([[1.0]])[0] == 1.0 and math.isnan(over_seeds([[1.0]])[1])
    assert math.isnan(over_seeds([[nan]])[0])
    with pytest.raises(ValueError, match="last"):
        over_seeds([[1.0]], last=0)


# ------------------------------------------------------------------------------------------------------------- masking


def rows(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / name).open() as handle:
        return list(csv.DictReader(handle))


def side(row: dict[str, str]) -> dict[str, Summary]:
    names = {"accuracy": "acc_pct", **{k: k for k in ("ple", "cci", "sem_drift", "grad_align", "ood_f")}}
    return {name: Summary(float(row[c]), float(row[f"{c}_std"]), int(row["n_seeds"])) for name, c in names.items()}


@needs_tables
def test_published_verdicts_of_fixmatch():
    table = {(r["ood_source"], r["r"]): side(r) for r in rows("cscore_tableA1_fixmatch_cifar10_ood_sources.csv")}
    clean = table["SVHN", "0.0"]
    masked = detect_masking(clean, table["SVHN", "0.5"])
    assert masked.verdict == "masked" and masked.worsened == ("cci",)
    assert masked.accuracy_drop == pytest.approx(0.83) and masked.accuracy_p > 0.05
    assert masked.detectable_drop > masked.margin and "would have been missed" in str(masked)
    assert "ood_f" in masked.skipped  # printed as 0 in a pool that has no such sample
    for source in {s for s, _ in table}:
        same = detect_masking(clean, table[source, "0.0"])
        assert same.verdict == "stable" and not same.worsened and same.accuracy_p == pytest.approx(0.5)
    assert detect_masking(clean, table["CIFAR-100", "0.5"]).verdict == "open collapse"


@needs_tables
def test_published_verdicts_of_other_algorithms():
    table = {(r["algorithm"], r["r"]): side(r) for r in rows("cscore_tableA3_algorithms_cifar10_svhn.csv")}
    collapse = detect_masking(table["FlexMatch", "0.0"], table["FlexMatch", "0.5"])
    assert collapse.verdict == "open collapse" and collapse.accuracy_drop == pytest.approx(9.76)
    assert detect_masking(table["DS3L", "0.0"], table["DS3L", "0.5"]).verdict == "masked"
    for algorithm in ("FlexMatch", "SoftMatch", "DS3L"):
        assert detect_masking(table[algorithm, "0.0"], table[algorithm, "0.0"]).verdict == "stable"


def runs(rng: np.random.Generator, n: int = 5, drop: float = 0.0, collapse: float = 0.0) -> dict[str, np.ndarray]:
    return {
        "accuracy": rng.normal(71 - drop, 1.0, n), "cci": rng.normal(0.15 + collapse, 0.05, n),
        "ple": rng.normal(0.5, 0.1, n), "sem_drift": rng.normal(0.13, 0.01, n), "grad_align": rng.normal(0.1, 0.05, n),
    }  # fmt: skip


def test_verdicts_on_simulated_seeds():
    rng = np.random.default_rng(0)
    cases = {"stable": {}, "masked": {"collapse": 0.4}, "open collapse": {"drop": 8.0, "collapse": 0.4}}
    for verdict, change in cases.items():
        found = [detect_masking(runs(rng), runs(rng, **change)).verdict for _ in range(100)]
        assert found.count(verdict) >= 88, (verdict, found)


def test_stable_runs_are_rarely_called_otherwise():
    rng = np.random.default_rng(1)
    wrong = sum(detect_masking(runs(rng), runs(rng)).verdict != "stable" for _ in range(400))
    assert wrong / 400 < 0.08  # Holm holds the level over four diagnostics


def test_welch_and_paired_p_values_match_scipy():
    rng = np.random.default_rng(2)
    a, b = runs(rng), runs(rng, drop=2)
    found = detect_masking(a, b)
    expected = stats.ttest_ind(b["accuracy"], a["accuracy"], equal_var=False, alternative="less").pvalue
    assert found.accuracy_p == pytest.approx(expected)
    by_name = {d.name: d for d in found.diagnostics}
    assert by_name["grad_align"].p_value == pytest.approx(
        stats.ttest_ind(b["grad_align"], a["grad_align"], equal_var=False, alternative="less").pvalue
    )
    assert by_name["cci"].p_value == pytest.approx(
        stats.ttest_ind(b["cci"], a["cci"], equal_var=False, alternative="greater").pvalue
    )
    summaries = [{k: Summary(v.mean(), v.std(ddof=1), len(v)) for k, v in s.items()} for s in (a, b)]
    assert detect_masking(*summaries).accuracy_p == pytest.approx(expected)
    paired = detect_masking(a, b, paired=True)
    assert paired.accuracy_p == pytest.approx(stats.ttest_rel(b["accuracy"], a["accuracy"], alternative="less").pvalue)


def test_pairing_sees_what_is_lost_in_the_scatter_between_seeds():
    level = np.array([60.0, 65, 70, 75, 80])
    a = {"accuracy": level, "cci": level / 100}
    b = {
        "accuracy": level - np.array([1.0, 1.1, 0.9, 1, 1]),
        "cci": level / 100 + 0.02 + np.array([0, 0.01, 0, 0.01, 0]),
    }
    assert detect_masking(a, b).verdict == "stable"
    paired = detect_masking(a, b, paired=True)
    assert paired.worsened == ("cci",) and paired.verdict == "open collapse" and paired.detectable_drop < 0.2


def test_detectable_drop_is_detected_with_its_power():
    rng, n, sd = np.random.default_rng(3), 5, 2.0
    first = detect_masking(
        {"accuracy": Summary(70, sd, n)}, {"accuracy": Summary(70, sd, n)}, power=0.8
    ).detectable_drop
    hits = sum(
        stats.ttest_ind(rng.normal(70 - first, sd, n), rng.normal(70, sd, n), equal_var=False,
                        alternative="less").pvalue < 0.05
        for _ in range(1000)
    )  # fmt: skip
    assert 0.74 < hits / 1000 < 0.86
    more = detect_masking({"accuracy": Summary(70, sd, 20)}, {"accuracy": Summary(70, sd, 20)}).detectable_drop
    assert more < first / 1.9


def test_undefined_and_absent_diagnostics_are_named():
    nan = float("nan")
    a = {"accuracy": [70.0, 71, 72], "cci": [0.1, 0.2, 0.15], "sem_drift": [nan, nan, 0.1], "ood_f": [0.0, 0, 0]}
    b = {"accuracy": [70.0, 71, 72], "cci": [0.1, 0.2, nan], "sem_drift": [0.1, 0.2, 0.1], "ood_f": [0.3, 0.2, 0.1]}
    found = detect_masking(a, b)
    assert [d.name for d in found.diagnostics] == ["cci"] and found.verdict == "stable"
    assert found.skipped["sem_drift"] == "it is defined in fewer than two seeds of the clean runs"
    assert found.skipped["ood_f"] == "the clean pool holds nothing out of distribution"
    assert detect_masking(a, b, diagnostics=["ple"]).skipped == {"ple": "it is missing from the clean runs"}
    a["ood_f"] = [0.01, 0.02, 0.03]
    assert detect_masking(a, b, diagnostics=["ood_f"]).worsened == ("ood_f",)
    printed = {"accuracy": a["accuracy"], "ple": Summary(0.3, nan, 5)}
    assert "standard deviation" in detect_masking(printed, printed).skipped["ple"]


def test_runs_without_scatter():
    a = {"accuracy": [70.0, 70], "cci": [0.1, 0.1]}
    same, worse = detect_masking(a, a), detect_masking(a, {"accuracy": [70.0, 70], "cci": [0.2, 0.2]})
    assert same.verdict == "stable" and worse.verdict == "masked" and worse.detectable_drop == 0


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm(p_values):
    adjusted = _holm(p_values)
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True)) and all(a <= 1 for a in adjusted)
    assert not p_values or min(adjusted) == pytest.approx(min(1, len(p_values) * min(p_values)))


@pytest.mark.parametrize(
    ("clean", "other", "options", "message"),
    [
        ({}, {"accuracy": [1, 2]}, {}, "clean runs lack 'accuracy'"),
        ({"accuracy": [70.0]}, {"accuracy": [70, 71]}, {}, "at least two seeds"),
        ({"accuracy": [70, float("nan")]}, {"accuracy": [70, 71]}, {}, "finite"),
        ({"accuracy": [0.7, 0.71]}, {"accuracy": [0.7, 0.71]}, {}, "look like shares"),
        ({"accuracy": [70, 71]}, {"accuracy": [70, 71]}, {"diagnostics": ["f1"]}, "unknown diagnostic 'f1'"),
        ({"accuracy": [70, 71]}, {"accuracy": [70, 71]}, {"alpha": 0}, "alpha and power"),
        ({"accuracy": [70, 71]}, {"accuracy": [70, 71, 72]}, {"paired": True}, "2 clean and 3 contaminated"),
        ({"accuracy": Summary(70, 1, 5)}, {"accuracy": [70, 71]}, {"paired": True}, "needs the value of every seed"),
        (
            {"accuracy": [70, 71], "cci": [0.1, 0.2, math.nan]}, {"accuracy": [70, 71], "cci": [math.nan, 0.2, 0.3]},
            {"paired": True}, "cci: fewer than two seeds",
        ),
    ],
)  # fmt: skip
def test_wrong_inputs(clean, other, options, message):
    with pytest.raises(ValueError, match=message):
        detect_masking(clean, other, **options)
