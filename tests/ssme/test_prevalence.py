"""Class shares: values by hand where theory gives them, coverage where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from ssme import SSME
from ssme.posterior import FixedNode, LabelPosterior
from ssme.prevalence import (
    GROUP_ROWS,
    ClassTilt,
    Shares,
    _rake,
    _tilted,
    class_tilt,
    prevalence_draws,
    prevalence_table,
)

COLUMNS = "group class estimate lower upper level n_labeled n_unlabeled".split()


def posterior_of(p, codes, n_draws=100):
    return LabelPosterior(
        FixedNode(p),
        np.zeros(n_draws, dtype=np.int64),
        codes,
        p.argmax(axis=1)[:, None],
        np.zeros(1),
        np.zeros((n_draws, 1)),
    )


def whole(n):
    return [("all", np.arange(n))]


def test_with_all_labels_known_the_shares_are_those_of_the_labels():
    codes = np.repeat([0, 1, 2], [50, 30, 20])
    p = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    found = prevalence_draws(posterior_of(p, codes), np.ones(100), whole(100))[0]
    assert np.allclose(found.point, [0.5, 0.3, 0.2]) and (found.n_labeled, found.n_unlabeled) == (100, 0)
    # the draws are those of a Dirichlet: the Bayesian bootstrap with one row spread over the classes
    many = prevalence_draws(posterior_of(p, codes, 4000), np.ones(100), whole(100))[0].draws
    expected = (np.array([50, 30, 20]) + 1 / 3) / 101
    assert np.allclose(many.mean(axis=0), expected, atol=0.004)
    assert np.allclose(many.std(axis=0), np.sqrt(expected * (1 - expected) / 102), rtol=0.07)


def test_without_labels_the_shares_are_those_of_the_consensus():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    found = prevalence_draws(posterior_of(p, np.full(200, -1)), np.ones(200), whole(200))[0]
    assert np.allclose(found.point, p.mean(axis=0), atol=1e-8)
    assert found.n_labeled == 0 and not found.seen.any()
    table = prevalence_table([found], "abc")
    assert (table.lower == 0).all() and (table.upper > table.estimate).all()


def test_correction_is_the_conjugate_one():
    """Rows that all look alike: the share is p, moved by r n_l / (n_l + n_0) for labels that are off by r."""
    n, p1, n0 = 400, 0.3, 60.0
    p = np.tile([1 - p1, p1], (n, 1))
    codes = np.full(n, -1)
    codes[:40] = np.repeat([1, 0], [20, 20])  # half, and not .3
    tilt = class_tilt(p, codes, np.ones(n), np.ones(n), ((n0, 1.0),), 20_000, np.random.default_rng(0))
    shifted = _tilted(p[:1], tilt.mean)[0, 1]
    assert shifted == pytest.approx(p1 + 0.2 * 40 / (40 + n0), abs=1e-6)
    # its spread is that of a share seen on n_l + n_0 rows, here in log-odds
    spread = (tilt.noise[:, 1] - tilt.noise[:, 0]).std() * p1 * (1 - p1)
    assert spread == pytest.approx(np.sqrt(p1 * (1 - p1) / (40 + n0)), rel=0.03)


def test_evidence_chooses_between_a_good_and_a_bad_consensus():
    p = np.tile([0.7, 0.3], (1000, 1))
    right, wrong = np.full(1000, -1), np.full(1000, -1)
    right[:100], wrong[:100] = np.repeat([1, 0], [30, 70]), np.repeat([1, 0], [70, 30])

    def shift(codes):
        rows = ((1000.0, 0.5), (20.0, 0.5))
        tilt = class_tilt(p, codes, np.ones(1000), np.ones(1000), rows, 10, np.random.default_rng(0))
        return _tilted(p[:1], tilt.mean)[0, 1] - 0.3

    assert shift(right) == pytest.approx(0, abs=1e-9)
    assert shift(wrong) == pytest.approx(0.4 * 100 / 120, rel=0.01)  # n_0 = 20, not 1,000


def test_raking_reaches_its_target():
    p = np.random.default_rng(0).dirichlet([0.2, 0.5, 1, 0.1], 300)
    w = np.random.default_rng(1).uniform(size=300)
    w /= w.sum()
    target = np.array([0.3, 0.3, 0.3, 0.1])
    assert np.allclose(w @ _tilted(p, _rake(p, target, w)), target, atol=1e-8)
    assert np.allclose(_rake(p, w @ p, w), 0, atol=1e-7)


def test_many_labels_win():
    random = np.random.default_rng(0)
    truth = (random.random(5000) < 0.6).astype(np.int64)
    p = np.tile([0.8, 0.2], (5000, 1))  # quite wrong
    errors = []
    for n_labeled in (0, 100, 2500):
        codes = np.where(np.arange(5000) < n_labeled, truth, -1)
        found = prevalence_draws(posterior_of(p, codes), np.ones(5000), whole(5000))[0]
        errors.append(abs(found.point[1] - truth.mean()))
    assert errors[0] > 0.35 and errors[2] < 0.03 and errors[0] > errors[1] > errors[2]


def test_rows_count_by_their_weight():
    p = np.random.default_rng(0).dirichlet(np.ones(2), 60)
    codes = np.where(np.arange(60) < 10, np.arange(60) % 2, -1)
    w = np.tile([1.0, 3.0], 30)
    found = prevalence_draws(posterior_of(p, codes), w, whole(60))[0]
    without = prevalence_draws(posterior_of(p, np.full(60, -1)), w, whole(60))[0]
    assert np.allclose(without.point, np.average(p, axis=0, weights=w), atol=1e-8)
    assert not np.allclose(found.point, without.point)


def test_labels_count_by_their_weight():
    """Labels that favour class 1 threefold, with weights 1/3: the bias is gone."""
    n, found = 20_000, {True: [], False: []}
    for seed in range(20):
        random = np.random.default_rng(seed)
        truth = (random.random(n) < 0.3).astype(np.int64)
        rate = np.where(truth == 1, 3.0, 1.0)
        rows = random.choice(n, 400, replace=False, p=rate / rate.sum())
        codes = np.full(n, -1)
        codes[rows] = truth[rows]
        p = np.tile([0.7, 0.3], (n, 1))
        for weighted in found:
            label_weight = 1 / rate if weighted else None
            each = prevalence_draws(posterior_of(p, codes, 2), np.ones(n), whole(n), label_weight=label_weight)[0]
            found[weighted].append(each.point[1] - 0.3)
    assert abs(np.mean(found[True])) < 0.02 and np.mean(found[False]) > 0.05


def test_a_class_without_any_label_may_have_no_share():
    p = np.tile([0.9, 0.05, 0.05], (500, 1))
    codes = np.where(np.arange(500) < 30, np.arange(500) % 2, -1)
    table = prevalence_table(prevalence_draws(posterior_of(p, codes), np.ones(500), whole(500)), [0, 1, 2])
    assert table.lower[2] == 0 and table.upper[2] > 0 and (table.lower[:2] > 0).all()


def test_groups_start_from_the_whole_and_go_to_their_own_labels():
    random = np.random.default_rng(0)
    n = 3000
    group = np.arange(n) % 3
    share = np.array([0.2, 0.5, 0.8])[group]
    truth = (random.random(n) < share).astype(np.int64)
    p = np.tile([0.5, 0.5], (n, 1))  # the models see nothing
    members = [(f"system={g}", np.flatnonzero(group == g)) for g in range(3)]
    for n_labeled, tolerance in ((0, None), (1500, 0.04)):
        codes = np.where(np.arange(n) < n_labeled, truth, -1)
        found = prevalence_draws(posterior_of(p, codes), np.ones(n), whole(n) + members)
        points = np.array([each.point[1] for each in found])
        assert [each.group for each in found] == ["all", "system=0", "system=1", "system=2"]
        assert [each.n_labeled for each in found] == [n_labeled] + [n_labeled // 3] * 3
        if tolerance is None:
            assert np.allclose(points, 0.5)
        else:
            assert np.allclose(points, [truth.mean(), 0.2, 0.5, 0.8], atol=tolerance)


def test_group_without_labels_is_wide_by_what_groups_may_differ():
    n = 2000
    p = np.tile([0.5, 0.5], (n, 1))
    codes = np.where(np.arange(n) < 500, np.arange(n) % 2, -1)
    found = prevalence_draws(posterior_of(p, codes, 4000), np.ones(n), [("g", np.arange(1000, 2000))])[0]
    rows = np.array([each for each, _ in GROUP_ROWS])
    share = np.array([w for _, w in GROUP_ROWS])
    assert found.draws[:, 1].std() > 0.8 * np.sqrt(0.25 * (share / rows).sum() / share.sum())


def test_table_and_draws_are_tidy_and_repeat():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    codes = np.where(np.arange(100) < 20, np.arange(100) % 3, -1)
    found = prevalence_draws(posterior_of(p, codes), np.ones(100), whole(100), seed=3)
    again = prevalence_draws(posterior_of(p, codes), np.ones(100), whole(100), seed=3)
    assert (found[0].draws == again[0].draws).all()
    assert np.allclose(found[0].draws.sum(axis=1), 1) and found[0].point.sum() == pytest.approx(1)
    table = prevalence_table(found, ["a", "b", "c"], level=0.5)
    wide = prevalence_table(found, ["a", "b", "c"], level=0.95)
    assert list(table.columns) == COLUMNS and list(table["class"]) == ["a", "b", "c"]
    assert ((table.lower <= table.estimate) & (table.estimate <= table.upper)).all()
    assert (wide.upper - wide.lower > table.upper - table.lower).all()


def test_no_tilt_of_a_class_that_nobody_sees():
    p = np.tile([0.6, 0.4, 0.0], (50, 1))
    codes = np.where(np.arange(50) < 10, np.arange(50) % 2, -1)
    tilt = class_tilt(p, codes, np.ones(50), np.ones(50), ((100.0, 1.0),), 50, np.random.default_rng(0))
    assert isinstance(tilt, ClassTilt) and np.isfinite(tilt.mean).all() and np.isfinite(tilt.noise).all()
    found = prevalence_draws(posterior_of(p, codes), np.ones(50), whole(50))[0]
    assert found.point[2] < 1e-3 and np.isfinite(found.draws).all()


def test_win_rates_of_systems_are_covered():
    """Judges with unlike bias, systems with unlike win rates, 60 human labels for 4 systems of 150 comparisons."""
    covered, errors, labels_only = [], [], []
    for seed in range(40):
        random = np.random.default_rng(seed)
        rate = np.array([0.3, 0.45, 0.55, 0.7])
        system = np.repeat(np.arange(4), 150)
        win = (random.random(600) < rate[system]).astype(np.int64)
        scale = random.uniform(0.5, 1.2, 3)
        logits = (2 * win - 1)[:, None] * scale + random.normal(0.2, 1.0, (600, 3))
        y = np.full(600, -1)
        rows = random.permutation(600)[:60]
        y[rows] = win[rows]
        model = SSME(score_type="logit", random_state=0).fit(logits, y)
        groups = [(str(g), np.flatnonzero(system == g)) for g in range(4)]
        table = prevalence_table(prevalence_draws(model._posterior, np.ones(600), groups, seed=seed), [0, 1])
        wins = table[table["class"] == 1]
        covered += list((wins.lower.to_numpy() <= rate) & (rate <= wins.upper.to_numpy()))
        errors += list(np.abs(wins.estimate.to_numpy() - rate))
        labels_only += [abs(win[rows][system[rows] == g].mean() - rate[g]) for g in range(4)]
    assert 0.82 <= np.mean(covered) <= 1.0
    assert np.mean(errors) < 0.8 * np.mean(labels_only)


def test_a_class_that_may_be_absent_leaves_all_to_the_other() -> None:
    draws = np.random.default_rng(0).dirichlet([30, 20], size=200)
    shares = Shares("all", draws.mean(axis=0), draws, 3, 100, np.array([True, False]))
    table = prevalence_table([shares], ["a", "b"])
    assert table["lower"].tolist()[1] == 0.0 and table["upper"].tolist()[0] == pytest.approx(1.0)
    assert table["upper"].tolist()[1] < 0.7  # a was seen, so b is not all there is
