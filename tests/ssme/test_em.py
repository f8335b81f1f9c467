"""ssme._em: pinned labels, what never rises, the limit, edge cases, and a plain transcription of one round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssme._em import e_step, run_em
from ssme.kernel_sums import KernelMatrix, naive_log_kernel_sums


def case(seed: int = 0, n: int = 60, d: int = 2, k: int = 2, n_labeled: int = 12):
    """Scores of k classes around their own centres, labels of the first rows, a noisy start."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = 2.0 * np.eye(max(k, d))[y, :d] + rng.normal(0, 0.8, (n, d))
    labels = np.where(np.arange(n) < n_labeled, y, -1)
    return X, labels, 0.4 * np.eye(k)[y] + rng.dirichlet(np.ones(k), n)


def naive_round(X, labels, r, h, v, exclude_self):
    """Densities and priors written out, then Bayes' rule."""
    prior = (v[:, None] * r).sum(axis=0) / v.sum()
    log_density = naive_log_kernel_sums(X, X, v[:, None] * r, h, exclude_self=exclude_self) - np.log(v @ r)
    joint = np.exp(log_density) * prior
    out = joint / joint.sum(axis=1, keepdims=True)
    out[labels >= 0] = np.eye(r.shape[1])[labels[labels >= 0]]
    likelihood = sum(v[i] * np.log(joint[i, labels[i]] if labels[i] >= 0 else joint[i].sum()) for i in range(len(X)))
    return out, likelihood


@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_rounds_are_those_of_the_formulas(k: int, leave_one_out: bool) -> None:
    X, labels, start = case(k=k)
    w = np.random.default_rng(5).uniform(0.5, 2, len(X))
    v, h = np.where(labels >= 0, w, 0.3 * w), np.array([0.5, 0.8])
    r = start / start.sum(axis=1, keepdims=True)
    r[labels >= 0] = np.eye(k)[labels[labels >= 0]]
    trace = []
    for _ in range(3):
        new, likelihood = naive_round(X, labels, r, h, v, leave_one_out)
        trace.append(likelihood)
        r = 0.5 * (r + new) if leave_one_out else new
    em = run_em(
        KernelMatrix(X, h),
        labels,
        start,
        unlabeled_weight=0.3,
        sample_weight=w,
        max_iter=3,
        leave_one_out=leave_one_out,
    )
    assert em.n_iter == 3 and not em.converged
    np.testing.assert_allclose(em.responsibilities, r, rtol=1e-10)
    np.testing.assert_allclose(em.log_likelihood[:3], trace, rtol=1e-10)
    np.testing.assert_allclose(em.priors, v @ r / v.sum(), rtol=1e-10)


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 40),
    d=st.integers(1, 12),
    k=st.integers(2, 5),
    n_labeled=st.integers(0, 10),
    h=st.floats(0.05, 5),
    leave_one_out=st.booleans(),
)
def test_valid_in_every_case_and_never_rougher(
    seed: int, n: int, d: int, k: int, n_labeled: int, h: float, leave_one_out: bool
) -> None:
    X, labels, start = case(seed, n, d, k, n_labeled)
    em = run_em(KernelMatrix(X, h), labels, start, max_iter=50, leave_one_out=leave_one_out)
    assert np.isfinite(em.responsibilities).all() and (em.responsibilities >= 0).all()
    np.testing.assert_allclose(em.responsibilities.sum(axis=1), 1)
    np.testing.assert_allclose(em.priors.sum(), 1)
    pinned = labels >= 0
    np.testing.assert_array_equal(em.responsibilities[pinned], np.eye(k)[labels[pinned]])
    assert len(em.log_likelihood) == len(em.roughness) == em.n_iter + 1
    assert np.diff(em.roughness).max(initial=-1) <= 1e-12
    assert -1e-12 <= em.roughness.min() and em.roughness.max() <= 1
    assert ((em.self_kernel_share >= 0) & (em.self_kernel_share <= 1)).all()


def test_likelihood_rises_where_labels_correct_a_start_that_knows_nothing() -> None:
    X, labels, start = case(n=200, n_labeled=30)
    em = run_em(KernelMatrix(X, 0.4), labels, np.full_like(start, 0.5), tol=1e-3)
    assert em.converged
    assert np.diff(em.log_likelihood).min() > -1e-9
    assert em.log_likelihood[-1] > em.log_likelihood[0] + 1


def test_likelihood_may_fall_and_the_documentation_says_so() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])  # the start is what the labels like best; the middle rows then mix
    em = run_em(KernelMatrix(X, 0.7), [0, -1, -1, 1], [[1, 0], [1, 0], [0, 1], [0, 1]])
    assert em.log_likelihood[-1] < em.log_likelihood[0]
    assert np.diff(em.roughness).max() <= 1e-15


def test_without_labels_the_unlabeled_part_of_the_likelihood_stays() -> None:
    X, labels, start = case()
    em = run_em(KernelMatrix(X, 0.4), np.full(len(X), -1), start, max_iter=20)
    np.testing.assert_allclose(em.log_likelihood, em.log_likelihood[0], rtol=1e-12)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_the_limit_is_harmonic_and_forgets_the_start(leave_one_out: bool) -> None:
    X, labels, start = case(d=1, n=40)
    kernel = np.exp(-0.5 * ((X - X.T) / 0.5) ** 2)
    L, U = labels >= 0, labels < 0
    laplacian = np.diag(kernel.sum(axis=1)) - kernel
    limit = np.linalg.solve(laplacian[np.ix_(U, U)], kernel[np.ix_(U, L)] @ np.eye(2)[labels[L]])
    for begin in (start, np.ones_like(start)):
        em = run_em(KernelMatrix(X, 0.5), labels, begin, max_iter=20_000, tol=1e-10, leave_one_out=leave_one_out)
        assert em.converged
        np.testing.assert_allclose(em.responsibilities[U], limit, atol=1e-6)


def test_two_rows_that_see_each_other_only_come_to_rest() -> None:
    X = np.array([[0.0], [0.1], [50.0]])
    em = run_em(KernelMatrix(X, 1.0), [-1, -1, 0], [[1, 0], [0, 1], [1, 0]], leave_one_out=True)
    assert em.converged
    np.testing.assert_allclose(em.responsibilities[:2], 0.5, atol=1e-6)


def test_a_class_that_is_empty_at_the_start() -> None:
    X, labels, start = case(k=3, n_labeled=0)
    start[:, 1] = 0.0
    em = run_em(KernelMatrix(X, 0.5), labels, start, max_iter=10)
    assert em.priors[1] == 0 and (em.responsibilities[:, 1] == 0).all() and np.isfinite(em.log_likelihood).all()
    labels[0] = 1  # a label brings it to life
    em = run_em(KernelMatrix(X, 0.5), labels, start, max_iter=10)
    assert em.priors[1] > 0 and np.isfinite(em.log_likelihood).all()


def test_a_class_with_one_label_and_leave_one_out() -> None:
    X, labels, start = case()
    start[:, 1] = 0.0
    labels[:] = 0
    labels[0] = 1
    em = run_em(KernelMatrix(X, 0.5), labels, start, leave_one_out=True)
    assert np.isneginf(em.log_likelihood[0]) and np.isfinite(em.responsibilities).all()


@pytest.mark.parametrize("n", range(1, 11))
@pytest.mark.parametrize("leave_one_out", [False, True])
def test_a_handful_of_rows(n: int, leave_one_out: bool) -> None:
    X, labels, start = case(n=n, n_labeled=min(2, n - 1))
    em = run_em(KernelMatrix(X, 0.5), labels, start, leave_one_out=leave_one_out)
    np.testing.assert_allclose(em.responsibilities.sum(axis=1), 1)


def test_constant_columns_and_duplicates() -> None:
    X, labels, start = case(d=3)
    X[:, 1] = 7.0
    X[5:15] = X[5]
    full = run_em(KernelMatrix(X, 0.5), labels, start, max_iter=20)
    without = run_em(KernelMatrix(X[:, [0, 2]], 0.5), labels, start, max_iter=20)
    np.testing.assert_allclose(full.responsibilities, without.responsibilities, rtol=1e-9)
    everywhere = run_em(KernelMatrix(np.zeros((60, 3)), 1.0), labels, start, max_iter=500)
    np.testing.assert_allclose(everywhere.responsibilities[12:, 0], (labels[:12] == 0).mean(), atol=1e-3)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_far_rows_keep_valid_responsibilities(leave_one_out: bool) -> None:
    X, labels, start = case()
    X[20], X[21] = 1e8, -1e200
    em = run_em(KernelMatrix(X, 1e-3), labels, start, max_iter=20, leave_one_out=leave_one_out)
    assert np.isfinite(em.responsibilities).all()
    assert em.self_kernel_share[20] == em.self_kernel_share[21] == 1


def test_a_narrow_kernel_cannot_move_and_says_so() -> None:
    X, labels, start = case(d=12)
    em = run_em(KernelMatrix(X, 0.02), labels, start)
    assert em.converged and em.n_iter == 1
    assert em.self_kernel_share.mean() > 0.999
    r = start / start.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(em.responsibilities[12:], r[12:], atol=1e-6)
    assert run_em(KernelMatrix(X, 3.0), labels, start).self_kernel_share.mean() < 0.1


@given(seed=st.integers(0, 1000))
def test_integer_weights_are_repeated_rows(seed: int) -> None:
    X, labels, start = case(seed, n=25)
    w = np.random.default_rng(seed).integers(0, 4, 25)
    w[0] = 1
    weighted = run_em(KernelMatrix(X, 0.6), labels, start, sample_weight=w, max_iter=15, tol=0)
    X, labels, start = (np.repeat(a, w, axis=0) for a in (X, labels, start))
    repeated = run_em(KernelMatrix(X, 0.6), labels, start, max_iter=15, tol=0)
    np.testing.assert_allclose(np.repeat(weighted.responsibilities, w, axis=0), repeated.responsibilities, atol=1e-10)
    np.testing.assert_allclose(weighted.log_likelihood, repeated.log_likelihood, rtol=1e-10)
    np.testing.assert_allclose(weighted.priors, repeated.priors, atol=1e-10)


@given(seed=st.integers(0, 1000), leave_one_out=st.booleans())
def test_rows_and_classes_may_be_permuted(seed: int, leave_one_out: bool) -> None:
    X, labels, start = case(seed, n=30, k=3)
    rng = np.random.default_rng(seed)
    rows, classes = rng.permutation(30), rng.permutation(3)
    em = run_em(KernelMatrix(X, 0.6), labels, start, max_iter=30, tol=0, leave_one_out=leave_one_out)
    back = np.argsort(classes)
    moved = np.where(labels >= 0, back[labels], -1)
    again = run_em(
        KernelMatrix(X[rows], 0.6),
        moved[rows],
        start[rows][:, classes],
        max_iter=30,
        tol=0,
        leave_one_out=leave_one_out,
    )
    np.testing.assert_allclose(again.responsibilities, em.responsibilities[rows][:, classes], atol=1e-9)
    np.testing.assert_allclose(again.log_likelihood, em.log_likelihood, rtol=1e-9)


def test_blocks_and_kept_matrix_give_the_same() -> None:
    X, labels, start = case(n=100)
    kept = run_em(KernelMatrix(X, 0.5), labels, start, max_iter=10)
    blocked = run_em(KernelMatrix(X, 0.5, memory_budget=10_000), labels, start, max_iter=10)
    np.testing.assert_allclose(kept.responsibilities, blocked.responsibilities, atol=1e-12)


def test_no_rounds_no_weight_for_unlabeled_rows_and_rows_without_weight() -> None:
    X, labels, start = case()
    kernel = KernelMatrix(X, 0.5)
    em = run_em(kernel, labels, start, max_iter=0)
    assert em.n_iter == 0 and not em.converged and len(em.log_likelihood) == 1
    supervised = run_em(kernel, labels, start, unlabeled_weight=0.0)
    assert supervised.n_iter == 2 and supervised.converged
    onehot = np.eye(2)[labels[:12]]
    expected = naive_log_kernel_sums(X[12:], X[:12], onehot, [0.5, 0.5])
    np.testing.assert_allclose(supervised.responsibilities[12:], e_step(expected, start[12:])[0], rtol=1e-9)
    w = np.ones(60)
    w[3] = w[30] = 0.0
    weightless = run_em(kernel, labels, start, sample_weight=w, leave_one_out=True)
    assert np.isfinite(weightless.responsibilities).all() and np.isfinite(weightless.log_likelihood).all()
    assert weightless.self_kernel_share[3] == 0


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_self_kernel_share_is_the_definition(leave_one_out: bool) -> None:
    X, labels, start = case(n=30)
    v = np.random.default_rng(0).random(30)
    v[4] = 0.0
    kernel = np.exp(-0.5 * ((X[:, None] - X[None]) / 0.5) ** 2).prod(axis=2)
    em = run_em(KernelMatrix(X, 0.5), labels, start, sample_weight=v, max_iter=5, leave_one_out=leave_one_out)
    np.testing.assert_allclose(em.self_kernel_share, v / (kernel @ v))


def test_the_callers_arrays_are_left_alone() -> None:
    X, labels, start = case()
    copies = [a.copy() for a in (X, labels, start)]
    run_em(KernelMatrix(X, 0.5), labels, start, leave_one_out=True)
    for array, copy in zip((X, labels, start), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1]}, r"labels \(3,\)"),
        ({"start": np.ones(3)}, r"start \(3, K\)"),
        ({"labels": [0, 2, -1]}, "class code 2, but start has columns for 2"),
        ({"start": np.array([[1.0, 1], [0, 0], [1, 1]])}, "positive sum in every row"),
        ({"start": np.array([[1.0, 1], [np.nan, 0], [1, 1]])}, "finite"),
        ({"start": np.array([[1.0, 1], [-1, 3], [1, 1]])}, ">= 0"),
        ({"unlabeled_weight": -1.0}, "unlabeled_weight"),
        ({"unlabeled_weight": np.nan}, "unlabeled_weight"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight must be 3"),
        ({"sample_weight": [1.0, 2.0, -1.0]}, ">= 0"),
        ({"labels": [-1, -1, -1], "unlabeled_weight": 0.0}, "no row carries weight"),
    ],
)
def test_errors_name_what_is_wrong(change: dict, message: str) -> None:
    arguments = {"labels": [0, 1, -1], "start": np.full((3, 2), 0.5)} | change
    with pytest.raises(ValueError, match=message):
        run_em(KernelMatrix(np.arange(3.0)[:, None], 1.0), **arguments)
