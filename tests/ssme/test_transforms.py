"""ssme.transforms: round trips, exact values, extremes, and the caller's arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax as scipy_log_softmax

from ssme.transforms import (
    additive_log_ratio,
    clip_probabilities,
    inverse_additive_log_ratio,
    log_softmax,
    normalize,
    softmax,
)

shapes = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(2, 6))
scores = shapes.flatmap(lambda s: arrays(np.float64, s, elements=st.floats(0.0, 1.0))).map(
    lambda a: np.where(a.sum(axis=2, keepdims=True) > 1e-3, a, 1.0)
)


@given(scores)
def test_round_trip_of_the_log_ratio(raw: np.ndarray) -> None:
    p = normalize(raw)
    before = p.copy()
    z = additive_log_ratio(p)
    assert z.shape == (p.shape[0], p.shape[1] * (p.shape[2] - 1)) and np.isfinite(z).all()
    np.testing.assert_allclose(inverse_additive_log_ratio(z, p.shape[1]), clip_probabilities(p), rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(p, before)


@given(scores, st.randoms(use_true_random=False))
def test_models_may_be_permuted(raw: np.ndarray, random) -> None:
    p = normalize(raw)
    order = list(range(p.shape[1]))
    random.shuffle(order)
    blocks = additive_log_ratio(p).reshape(p.shape[0], p.shape[1], -1)
    again = additive_log_ratio(p[:, order]).reshape(blocks.shape)
    np.testing.assert_array_equal(again, blocks[:, order])


def test_two_classes_are_the_log_odds_of_the_first() -> None:
    p1 = np.array([[0.2, 0.9]])
    z = additive_log_ratio(np.stack([1 - p1, p1], axis=2))
    np.testing.assert_allclose(z, np.log((1 - p1) / p1))


@pytest.mark.parametrize("n_classes", [2, 3, 150])
def test_certainty_stays_finite(n_classes: int) -> None:
    p = np.eye(n_classes)[:, None, :]
    clipped = clip_probabilities(p)
    assert clipped.min() > 0 and clipped.max() < 1
    np.testing.assert_allclose(clipped.sum(axis=2), 1)
    assert np.isfinite(additive_log_ratio(p)).all()


def test_results_are_float64_copies() -> None:
    p = np.full((2, 1, 2), 0.5, dtype=np.float32)
    for result in (normalize(p), clip_probabilities(p), additive_log_ratio(p), softmax(p), log_softmax(p)):
        assert result.dtype == np.float64
        assert not np.shares_memory(result, p)
    exact = np.full((2, 1, 2), 0.5)
    assert not np.shares_memory(normalize(exact), exact)


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-1e300, 1e300)))
def test_softmax_sums_to_one(z: np.ndarray) -> None:
    p = softmax(z)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=-1), 1)
    np.testing.assert_allclose(log_softmax(z, axis=0), scipy_log_softmax(z, axis=0), rtol=1e-12, atol=1e-12)


def test_softmax_of_impossible_classes() -> None:
    z = np.array([[0.0, -np.inf], [-np.inf, -np.inf]])
    assert softmax(z).tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_far_log_ratios_have_an_inverse() -> None:
    p = inverse_additive_log_ratio(np.array([[1e9, -1e9]]), n_models=2)
    assert p.tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: normalize([[0.5, 0.5], [0.0, 0.0]]), r"row \(1,\)"),
        (lambda: normalize([[np.nan, 0.5]]), r"row \(0,\)"),
        (lambda: clip_probabilities([[0.5, 0.5]], eps=0.0), "eps must be above 0"),
        (lambda: clip_probabilities([[0.5, 0.5]], eps=0.5), "below 1 / K = 0.5"),
        (lambda: additive_log_ratio([[0.5, 0.5]]), r"shape \(n, M, K\)"),
        (lambda: additive_log_ratio([[[1.0]]]), "K >= 2"),
        (lambda: inverse_additive_log_ratio(np.zeros((2, 3)), 2), "n_models = 2"),
        (lambda: inverse_additive_log_ratio(np.zeros(3), 1), "n_models = 1"),
    ],
)
def test_errors_name_what_is_wrong(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
