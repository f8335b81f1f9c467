"""ssme.bandwidth: against scipy, KDEpy and a plain transcription of the published algorithm; scale, weights, ties."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import gaussian_kde

from ssme.bandwidth import BANDWIDTH_RULES, select_bandwidth

RULES = sorted(BANDWIDTH_RULES)


def naive_isj(x: np.ndarray, bracket: tuple[float, float], size: int = 2**12) -> float:
    """Botev, Grotowski and Kroese (2010) written out: linear binning, cosine sums, root of t - xi gamma^[7](t)."""
    low, span = x.min() - 0.5 * np.ptp(x), 2 * np.ptp(x)
    position = (x - low) / span * size - 0.5
    counts = np.zeros(size)
    for u in position:
        counts[int(u)] += 1 - (u - int(u))
        counts[int(u) + 1] += u - int(u)
    k = np.arange(1, 600)
    centres = (np.arange(size) + 0.5) / size
    a = np.array([(counts / len(x) * np.cos(np.pi * j * centres)).sum() for j in k])

    def excess(t: float) -> float:
        for s in range(7, 1, -1):
            if s < 7:
                k0 = np.prod(np.arange(1, 2 * s, 2)) / np.sqrt(2 * np.pi)
                time = (2 * (1 + 0.5 ** (s + 0.5)) / 3 * k0 / (len(x) * f)) ** (2 / (3 + 2 * s))  # noqa: F821
            else:
                time = t
            f = 2 * np.pi ** (2 * s) * (k ** (2.0 * s) * a**2 * np.exp(-(k**2.0) * np.pi**2 * time)).sum()
        return t - (2 * len(x) * np.sqrt(np.pi) * f) ** -0.4

    return float(np.sqrt(brentq(excess, *((b / span) ** 2 for b in bracket), xtol=1e-16)) * span)


def sample(kind: str, n: int = 400, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: rng.normal(size=n),
        "two modes": lambda: np.r_[rng.normal(-4, 1, n // 2), rng.normal(4, 0.5, n - n // 2)],
        "heavy tails": lambda: rng.standard_t(3, n),
        "uniform": lambda: rng.random(n),
        "log odds": lambda: np.clip(3 * rng.normal(size=n) - 4, -13.8, 13.8),
    }[kind]()


@pytest.mark.parametrize("kind", ["normal", "two modes", "heavy tails", "uniform", "log odds"])
def test_isj_is_the_published_fixed_point(kind: str) -> None:
    x = sample(kind)
    h = select_bandwidth(x[:, None], "isj")[0]
    assert h == pytest.approx(naive_isj(x, (h / 1.5, h * 1.5)), rel=1e-6)


@pytest.mark.parametrize("kind", ["normal", "two modes", "heavy tails", "log odds"])
def test_isj_equals_kdepy_once_its_grid_is_put_right(kind: str) -> None:
    kdepy = pytest.importorskip("KDEpy.bw_selection")
    x = sample(kind)
    span = np.ptp(x)
    theirs = kdepy.improved_sheather_jones(x[:, None])
    corrected = (
        theirs * (span + 2 * max(6.0, 0.5 * span)) / span
    )  # it multiplies by the span of the data, not of the grid
    assert select_bandwidth(x[:, None])[0] == pytest.approx(corrected, rel=0.02)


def test_isj_beats_the_normal_reference_on_two_modes() -> None:
    x = sample("two modes", n=2000)[:, None]
    assert select_bandwidth(x, "isj")[0] < 0.3 * select_bandwidth(x, "scott")[0]


def test_isj_finds_narrow_clusters_that_the_first_grid_cannot_show() -> None:
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(0, 0.01, 500), rng.normal(10, 0.01, 500)][:, None]
    assert 0.001 < select_bandwidth(x)[0] < 0.01
    x[0] = 1e7  # beyond every grid
    with pytest.warns(UserWarning, match="no fixed point"):
        select_bandwidth(x)


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_isj_does_not_follow_the_rounding(digits: int) -> None:
    x = np.random.default_rng(1).normal(size=2000)
    assert select_bandwidth(x.round(digits)[:, None])[0] == pytest.approx(select_bandwidth(x[:, None])[0], rel=0.1)


@pytest.mark.parametrize("d", [1, 3, 30])
def test_scott_and_silverman_are_those_of_scipy(d: int) -> None:
    X = np.random.default_rng(d).normal(size=(200, d)) * np.arange(1, d + 1)
    for rule in ("scott", "silverman"):
        expected = gaussian_kde(X.T, bw_method=rule).factor * X.std(axis=0, ddof=1)
        np.testing.assert_allclose(select_bandwidth(X, rule), expected)


def test_normal_reference_is_robust_and_normal() -> None:
    x = np.random.default_rng(5).normal(size=(5000, 1))
    clean = select_bandwidth(x, "normal-reference")[0]
    assert clean == pytest.approx(select_bandwidth(x, "silverman")[0], rel=0.05)
    x[:50] = 1e3
    assert select_bandwidth(x, "normal-reference")[0] == pytest.approx(clean, rel=0.05)
    tied = np.where(np.arange(1000) < 900, 0.0, np.arange(1000.0))[:, None]  # the quartiles say 0
    assert select_bandwidth(tied, "normal-reference")[0] == pytest.approx(select_bandwidth(tied, "silverman")[0])


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 1000), exponent=st.floats(-6, 6), n=st.integers(30, 200), tied=st.booleans())
def test_scale(rule: str, seed: int, exponent: float, n: int, tied: bool) -> None:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    X = X.round(1) if tied else X
    c = 10.0**exponent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the stand-ins of tied data are equivariant too
        np.testing.assert_allclose(select_bandwidth(c * X, rule), c * select_bandwidth(X, rule), rtol=1e-6)
        np.testing.assert_allclose(select_bandwidth(-X, rule), select_bandwidth(X, rule), rtol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 1000))
def test_integer_weights_are_repeated_rows(rule: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 2)), rng.integers(0, 4, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted, repeated = select_bandwidth(X, rule, weights=w), select_bandwidth(np.repeat(X, w, axis=0), rule)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-6)
        order = rng.permutation(60)
        np.testing.assert_allclose(
            select_bandwidth(X[order][:, ::-1], rule, weights=w[order]), weighted[::-1], rtol=1e-6
        )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", range(1, 11))
def test_a_handful_of_rows(rule: str, n: int) -> None:
    X = np.random.default_rng(n).normal(size=(n, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        h = select_bandwidth(X, rule)
    assert h.shape == (3,) and np.isfinite(h).all() and (h > 0).all()


@pytest.mark.parametrize("rule", RULES)
def test_constant_columns_get_one_unit_and_one_warning(rule: str) -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    X[:, 1], X[:, 3] = 0.0, 0.1 + 1e-17 * np.arange(100)
    with pytest.warns(UserWarning, match="2 of 4 columns are constant") as caught:
        h = select_bandwidth(X, rule)
    assert len(caught) == 1 and h[1] == h[3] == 1.0 and h[0] != 1.0


@pytest.mark.parametrize("kind", ["two values", "three values", "nine tenths", "an atom of a fifth", "integers"])
def test_isj_stands_in_for_tied_columns_with_a_warning(kind: str) -> None:
    rng = np.random.default_rng(2)
    x = {
        "two values": lambda: rng.integers(0, 2, 500) * 1.0,
        "three values": lambda: rng.integers(0, 3, 500) * 1.0,
        "nine tenths": lambda: np.where(rng.random(500) < 0.9, 0.0, rng.normal(size=500)),
        "an atom of a fifth": lambda: np.where(rng.random(500) < 0.2, -13.8, 4 * rng.normal(size=500)),
        "integers": lambda: rng.normal(size=500).round(),
    }[kind]()
    with pytest.warns(UserWarning, match="1 of 1 columns .* normal reference"):
        h = select_bandwidth(x[:, None], "isj")
    np.testing.assert_allclose(h, select_bandwidth(x[:, None], "normal-reference"))


def test_float32_and_the_callers_array() -> None:
    x = sample("log odds").astype(np.float32)[:, None]
    before = x.copy()
    assert select_bandwidth(x)[0] == pytest.approx(select_bandwidth(x.astype(np.float64))[0])
    np.testing.assert_array_equal(x, before)


def test_many_columns_are_solved_each_on_its_own() -> None:
    X = np.random.default_rng(4).normal(size=(300, 70)) * np.geomspace(0.01, 100, 70)
    h = select_bandwidth(X)
    for j in (0, 33, 69):
        assert h[j] == pytest.approx(select_bandwidth(X[:, [j]])[0], rel=1e-6)


def test_numbers_and_arrays_are_taken_as_they_are() -> None:
    X = np.zeros((3, 2))
    given_h = np.array([1.0, 2.0])
    h = select_bandwidth(X, given_h)
    assert h.tolist() == [1.0, 2.0] and h is not given_h
    assert select_bandwidth(X, 3).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: select_bandwidth(np.zeros((3, 1)), "scot"), "did you mean 'scott'"),
        (lambda: select_bandwidth(np.zeros((3, 1)), "?"), "one of isj, scott, silverman, normal-reference; got '\\?'$"),
        (lambda: select_bandwidth(np.zeros((3, 2)), [1.0, 2.0, 3.0]), "one number or 2 of them"),
        (lambda: select_bandwidth(np.zeros((3, 2)), 0.0), "positive and finite"),
        (lambda: select_bandwidth(np.zeros((3, 2)), [1.0, np.nan]), "positive and finite"),
        (lambda: select_bandwidth(np.zeros(3)), r"shape \(n, d\)"),
        (lambda: select_bandwidth(np.zeros((0, 3))), r"at least one row"),
        (lambda: select_bandwidth([[np.nan], [1.0]]), "NaN or infinite entries in 1 rows"),
        (lambda: select_bandwidth([[1e308], [-1e308]]), "rescale it first"),
        (lambda: select_bandwidth([[0.0], [1.0]], weights=[0.0, 0.0]), "not all 0"),
        (lambda: select_bandwidth([[0.0], [1.0]], weights=[1.0, -1.0]), ">= 0"),
        (lambda: select_bandwidth([[0.0], [1.0]], weights=[1.0]), "weights must be 2"),
    ],
)
def test_errors_name_what_is_wrong(call, message: str) -> None:
    with pytest.raises(ValueError, match=message), np.errstate(over="ignore"):
        call()
