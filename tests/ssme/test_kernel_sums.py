"""ssme.kernel_sums: every way of computing a sum against the definition, over dimensions, weights and extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gaussian_kde, norm

from ssme.kernel_sums import KernelMatrix, _points, log_kernel_sums, naive_log_kernel_sums

TINY_BUDGET = 4_000  # bytes: blocks of a row or two, and no kept matrix


def assert_logs_equal(actual: np.ndarray, expected: np.ndarray, tol: float = 1e-8) -> None:
    """The same -inf, and the rest to `tol`, relative to the exponent where that is large."""
    assert not np.isnan(actual).any()
    np.testing.assert_array_equal(np.isneginf(actual), np.isneginf(expected))
    finite = np.isfinite(expected)
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=tol, atol=tol)


def assert_all_ways_agree(X: np.ndarray, weights: np.ndarray, h: np.ndarray, tol: float = 1e-8) -> None:
    kept, blocked = KernelMatrix(X, h), KernelMatrix(X, h, memory_budget=TINY_BUDGET)
    assert kept.kept and (not blocked.kept or len(X) < 23)
    for exclude in (False, True):
        expected = naive_log_kernel_sums(X, X, weights, h, exclude_self=exclude)
        assert_logs_equal(kept.log_dot(weights, exclude), expected, tol)
        assert_logs_equal(blocked.log_dot(weights, exclude), expected, tol)
        assert_logs_equal(log_kernel_sums(X, X, weights, h, exclude_self=exclude), expected, tol)
        assert_logs_equal(
            log_kernel_sums(X, X, weights, h, exclude_self=exclude, memory_budget=TINY_BUDGET), expected, tol
        )


def weights_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    w = rng.random((n, 3))
    if kind == "zeros":
        w[rng.random(w.shape) < 0.7] = 0.0
        w[:, 2] = 0.0
    elif kind == "of all sizes":
        w = 10.0 ** -rng.integers(0, 300, (n, 3))
    elif kind == "one-hot":
        w = np.eye(3)[rng.integers(0, 3, n)]
    return w


@pytest.mark.parametrize("kind", ["dense", "zeros", "of all sizes", "one-hot"])
@pytest.mark.parametrize("scale", [0.3, 3.0, 100.0])
@pytest.mark.parametrize("d", [1, 2, 7, 50])
def test_against_the_definition(d: int, scale: float, kind: str) -> None:
    rng = np.random.default_rng(d)
    X = scale * rng.normal(size=(60, d)) + 5
    X[10] = X[11]  # duplicates
    X[20] = 1e3 * scale  # far from all others
    assert_all_ways_agree(X, weights_of(kind, 60, rng), rng.uniform(0.2, 2.0, d))


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    d=st.integers(1, 50),
    spread=st.floats(-3, 6),
    kind=st.sampled_from(["dense", "zeros", "of all sizes", "one-hot"]),
)
def test_against_the_definition_anywhere(seed: int, n: int, d: int, spread: float, kind: str) -> None:
    rng = np.random.default_rng(seed)
    X = 10.0**spread * rng.standard_t(2, size=(n, d))
    assert_all_ways_agree(X, weights_of(kind, n, rng), np.full(d, 0.7))


@pytest.mark.parametrize("d", [7, 50, 70])
@pytest.mark.parametrize("n_columns", [2, 150])
def test_large_products_and_their_pieces(d: int, n_columns: int) -> None:
    rng = np.random.default_rng(d)
    X, w = rng.normal(size=(700, d)), rng.random((700, n_columns))
    kernel = KernelMatrix(X, 0.8)
    expected = naive_log_kernel_sums(X[:20], X, w[:, :2], 0.8)
    assert_logs_equal(kernel.log_dot(w)[:20, :2], expected)
    assert_logs_equal(log_kernel_sums(X, X, w, 0.8)[:20, :2], expected)
    assert_logs_equal(KernelMatrix(X, 0.8, memory_budget=400_000).log_dot(w)[:20, :2], expected)


@pytest.mark.parametrize("d", [1, 5])
def test_queries_of_their_own(d: int) -> None:
    rng = np.random.default_rng(0)
    X, centers, w = rng.normal(size=(40, d)), rng.normal(size=(25, d)), rng.random((25, 2))
    X[0], X[1] = 1e6, -30.0
    h = np.full(d, 0.4)
    assert_logs_equal(log_kernel_sums(X, centers, w, h), naive_log_kernel_sums(X, centers, w, h))
    assert log_kernel_sums(X[:0], centers, w, h).shape == (0, 2)


def test_it_is_a_kernel_density_estimate() -> None:
    x = np.random.default_rng(1).normal(size=200)
    kde = gaussian_kde(x, bw_method="scott")
    h = np.sqrt(kde.covariance[0])
    points = np.linspace(-3, 3, 20)
    ours = log_kernel_sums(points[:, None], x[:, None], np.full(200, 1 / 200), h)
    np.testing.assert_allclose(np.exp(ours[:, 0]), kde(points))
    one = log_kernel_sums([[0.3]], [[0.0]], [[1.0]], 0.5)
    assert one[0, 0] == pytest.approx(norm(scale=0.5).logpdf(0.3))


def test_one_point() -> None:
    kernel = KernelMatrix([[3.0, 4.0]], [2.0, 0.5])
    assert kernel.log_own == pytest.approx(-np.log(2 * np.pi))
    assert kernel.log_dot([[1.0, 0.0]])[0].tolist() == [kernel.log_own, -np.inf]
    for exact_tails in (True, False):
        assert np.isneginf(kernel.log_dot([[1.0, 0.0]], exclude_self=True, exact_tails=exact_tails)).all()


def test_the_own_kernel_does_not_drown_the_others() -> None:
    """Leave-one-out sums keep all digits where the own kernel holds all but 1e-200 of the density."""
    X = np.array([[0.0], [30.0], [31.0]])
    loo = KernelMatrix(X, [1.0]).log_dot(np.ones((3, 1)), exclude_self=True)
    assert loo[0, 0] == pytest.approx(np.logaddexp(norm.logpdf(30), norm.logpdf(31)), rel=1e-14)


def test_distances_beyond_float64_are_no_nan() -> None:
    X = np.array([[0.0, 0.0], [1e200, 0.0], [-1e300, 1e300]])
    kernel = KernelMatrix(X, [1e-10, 1e-10])
    for exclude in (False, True):
        out = kernel.log_dot(np.ones((3, 2)), exclude)
        assert not np.isnan(out).any()
    assert np.isfinite(kernel.log_dot(np.ones((3, 2)))).all()


def test_inexact_tails_leave_the_shares_alone() -> None:
    rng = np.random.default_rng(6)
    X = np.r_[rng.normal(size=(40, 3)), rng.normal(60, 1, size=(40, 3))]
    w = np.zeros((80, 2))
    w[:40, 0] = w[40:, 1] = 1.0
    kernel = KernelMatrix(X, np.ones(3))
    for exclude in (False, True):
        exact, quick = (kernel.log_dot(w, exclude, exact_tails=e) for e in (True, False))
        near = exact > exact.max(axis=1, keepdims=True) - 200
        np.testing.assert_allclose(quick[near], exact[near], rtol=1e-13)
        assert (quick[~near] < exact.max(axis=1) - 200).all()
    # where the nearest rows have no weight at all the sums are still right
    w[:40, 0] = 0.0
    w[0, 0] = 1e-290
    quick = kernel.log_dot(w, exact_tails=False)
    assert_logs_equal(quick[1:40, 0], naive_log_kernel_sums(X, X, w, np.ones(3))[1:40, 0])


@given(seed=st.integers(0, 1000))
def test_integer_weights_are_repeated_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, w, queries = rng.normal(size=(20, 3)), rng.integers(0, 4, 20), rng.normal(size=(5, 3))
    repeated = np.repeat(X, w, axis=0)
    if len(repeated):
        expected = log_kernel_sums(queries, repeated, np.ones(len(repeated)), 0.5)
        np.testing.assert_allclose(log_kernel_sums(queries, X, w, 0.5), expected, rtol=1e-10)


@given(seed=st.integers(0, 1000))
def test_rows_columns_and_dimensions_may_be_permuted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, w, h = rng.normal(size=(15, 4)), rng.random((15, 3)), rng.uniform(0.1, 1, 4)
    rows, dims, cols = rng.permutation(15), rng.permutation(4), rng.permutation(3)
    out = KernelMatrix(X, h).log_dot(w)
    again = KernelMatrix(X[rows][:, dims], h[dims]).log_dot(w[rows][:, cols])
    np.testing.assert_allclose(again, out[rows][:, cols], rtol=1e-10)


def test_the_callers_arrays_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(30, 2)), rng.random((30, 2)), np.ones(2)]
    copies = [a.copy() for a in arrays]
    X, w, h = arrays
    KernelMatrix(X, h).log_dot(w, True)
    log_kernel_sums(X, X, w, h, exclude_self=True)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert np.allclose(log_kernel_sums(X.astype(np.float32), X, w, h), log_kernel_sums(X, X, w, h), atol=1e-5)


@pytest.fixture
def grid_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_points, "GRID_PAIRS", 0)


def grid_case() -> tuple[np.ndarray, np.ndarray]:
    """Two clusters far apart, a lone row; a class that lives in one cluster only, one without weight."""
    rng = np.random.default_rng(9)
    x = np.r_[rng.normal(size=300), rng.normal(60, 1, 100), 200.0][:, None]
    w = np.c_[rng.random((401, 2)), np.zeros(401)]
    w[:300, 0] = 0.0
    return x, w


@pytest.mark.usefixtures("grid_for_all")
@pytest.mark.parametrize("h", [0.2, 1.0])
def test_the_grid_agrees_with_the_exact_sums(h: float) -> None:
    x, w = grid_case()
    queries = np.r_[x[:, 0], np.linspace(-60, 300, 400), -1e3, 5e3][:, None]
    out, exact = log_kernel_sums(queries, x, w, h), naive_log_kernel_sums(queries, x, w, h)
    assert not np.isnan(out).any()
    assert np.isneginf(out[:, 2]).all()
    out, exact = out[:, :2], exact[:, :2]
    error, depth = np.abs(out - exact), exact.max() - exact
    # a kernel t bandwidths away is off by (t^2 + 1) / (8 * 64^2), and depth is about t^2 / 2
    assert (error <= 3 * (2 * depth + 20) / (8 * 64**2)).all()
    assert error[depth < 5].max() < 1e-3


@pytest.mark.usefixtures("grid_for_all")
def test_the_grid_serves_the_kernel_matrix_and_leave_one_out_stays_exact() -> None:
    x, w = grid_case()
    kernel = KernelMatrix(x, 0.5)
    assert not kernel.kept
    np.testing.assert_allclose(kernel.log_dot(w)[:, 1], naive_log_kernel_sums(x, x, w, 0.5)[:, 1], atol=1e-2)
    exact = naive_log_kernel_sums(x, x, w, 0.5, exclude_self=True)
    assert_logs_equal(kernel.log_dot(w, exclude_self=True), exact)
    assert_logs_equal(log_kernel_sums(x, x, w, 0.5, exclude_self=True), exact)


@pytest.mark.usefixtures("grid_for_all")
def test_no_grid_where_it_would_not_fit() -> None:
    x, w = grid_case()
    assert_logs_equal(log_kernel_sums(x, x, w, 1e-6), naive_log_kernel_sums(x, x, w, 1e-6))
    plane = np.c_[x, x]
    assert_logs_equal(log_kernel_sums(plane, plane, w, 0.5), naive_log_kernel_sums(plane, plane, w, 0.5))


def test_the_grid_takes_over_by_itself() -> None:
    x = np.random.default_rng(0).normal(size=(30_000, 1))
    w = np.ones(30_000)
    some = x[:200]
    np.testing.assert_allclose(log_kernel_sums(x, x, w, 0.1)[:200], log_kernel_sums(some, x, w, 0.1), atol=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_kernel_sums(np.zeros(3), np.zeros((3, 1)), np.ones(3), 1.0), r"X must have the shape"),
        (lambda: log_kernel_sums(np.zeros((2, 1)), np.zeros((0, 1)), np.ones(0), 1.0), "centers must have the shape"),
        (lambda: log_kernel_sums([[0.0], [np.nan]], [[1.0]], [1.0], 1.0), "X has NaN .* row 1"),
        (lambda: log_kernel_sums(np.zeros((2, 2)), np.zeros((3, 1)), np.ones(3), 1.0), "2 columns and centers have 1"),
        (lambda: log_kernel_sums([[0.0]], [[0.0]], [1.0], [1.0, 2.0]), "bandwidth must be one positive"),
        (lambda: log_kernel_sums([[0.0]], [[0.0]], [1.0], 0.0), "bandwidth must be one positive"),
        (lambda: log_kernel_sums([[0.0]], [[0.0]], [1.0, 2.0], 1.0), r"weights must have the shape \(1, C\)"),
        (lambda: log_kernel_sums([[0.0]], [[0.0]], [-1.0], 1.0), "weights must be finite"),
        (lambda: log_kernel_sums([[0.0]], [[0.0]], [np.inf], 1.0), "weights must be finite"),
        (lambda: log_kernel_sums([[0.0]], [[0.0], [1.0]], [1.0, 1.0], 1.0, exclude_self=True), "1 and 2 rows"),
    ],
)
def test_errors_name_what_is_wrong(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
