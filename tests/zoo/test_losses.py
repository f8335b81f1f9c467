"""Losses, ramps, targets and mixing: values by hand, and the faults that silence them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ssl_zoo import losses
from ssl_zoo.mixing import fold, mix, sample_beta
from ssl_zoo.targets import UniformAlignment, VisitMean, annealing_threshold, one_hot, probabilities, sharpen

Z = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], dtype=torch.float64)
EXTREME = torch.tensor([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4]])


def numpy_softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z)
    return e / e.sum(1, keepdims=True)


def test_values_by_hand() -> None:
    p, q = numpy_softmax(Z.numpy()), numpy_softmax(Z.numpy()[::-1])
    y = torch.tensor([2, 1])
    np.testing.assert_allclose(losses.cross_entropy(Z, y), -np.log(p[[0, 1], [2, 1]]))
    np.testing.assert_allclose(losses.soft_cross_entropy(Z, torch.tensor(q)), -(q * np.log(p)).sum(1))
    np.testing.assert_allclose(losses.squared_error(torch.tensor(p), torch.tensor(q)), ((p - q) ** 2).mean(1))
    np.testing.assert_allclose(losses.kl_divergence(Z, Z.flip(0)), (p * np.log(p / q)).sum(1))
    np.testing.assert_allclose(losses.entropy(Z), -(p * np.log(p)).sum(1))


def test_soft_cross_entropy_at_one_hot_is_the_hard_one_and_it_is_linear_in_the_target() -> None:
    y, a, b = torch.tensor([0, 2]), probabilities(Z), probabilities(-2 * Z)
    torch.testing.assert_close(losses.soft_cross_entropy(Z, one_hot(y, 3, Z.dtype)), losses.cross_entropy(Z, y))
    mixed = losses.soft_cross_entropy(Z, 0.3 * a + 0.7 * b)
    torch.testing.assert_close(mixed, 0.3 * losses.soft_cross_entropy(Z, a) + 0.7 * losses.soft_cross_entropy(Z, b))


def test_targets_of_the_wrong_kind_are_errors_and_never_cast() -> None:
    with pytest.raises(TypeError, match="soft targets go to soft_cross_entropy"):
        losses.cross_entropy(Z, probabilities(Z))
    with pytest.raises(TypeError, match="float targets"):
        losses.soft_cross_entropy(Z, torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(TypeError, match="float targets"):
        losses.soft_cross_entropy(Z, torch.zeros(2))


def test_masked_rows_stay_in_the_denominator() -> None:
    assert losses.masked_mean(torch.tensor([3.0, 5.0, 1.0, 7.0]), torch.tensor([1.0, 0.0, 0.0, 0.0])) == 0.75


def test_half_precision_is_lifted() -> None:
    for function in (losses.entropy, lambda z: losses.cross_entropy(z, torch.tensor([0, 1]))):
        assert function(Z.bfloat16()).dtype == torch.float32
    assert losses.full_precision(Z).dtype == torch.float64


def test_extreme_logits_are_finite_with_gradients() -> None:
    y, q = torch.tensor([1, 0]), torch.full((2, 3), 1 / 3)
    for function in (
        lambda z: losses.cross_entropy(z, y),
        lambda z: losses.soft_cross_entropy(z, q),
        lambda z: losses.kl_divergence(z, -z),
        losses.entropy,
        lambda z: losses.one_vs_all_loss(torch.cat([z, -z], 1), y),
        lambda z: losses.fairness(z, torch.ones(2), q[0], q[0])[None],
    ):
        z = EXTREME.clone().requires_grad_()
        value = function(z)
        value.sum().backward()
        assert value.isfinite().all() and z.grad is not None and z.grad.isfinite().all()


def test_fairness_by_hand_and_without_rows() -> None:
    prob, hist = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.6, 0.4, 0.0])  # 1 / 0 counts as 0
    p = numpy_softmax(Z.numpy())
    a = np.array([0.5 / 0.6, 0.3 / 0.4, 0.0])
    b = np.array([p[:, 0].mean() / 0.5, p[:, 1].mean() / 0.5, 0.0])
    want = (a / a.sum() * np.log(b / b.sum() + 1e-12)).sum()
    got = losses.fairness(Z, torch.ones(2), prob, hist)
    assert float(got) == pytest.approx(want, rel=1e-6) and got < 0
    z = Z.clone().requires_grad_()
    none = losses.fairness(z, torch.zeros(2), prob, hist)
    none.backward()
    assert none == 0 and z.grad is not None and (z.grad == 0).all()


def test_one_vs_all_takes_the_hardest_negative() -> None:
    z = torch.tensor([[0.0, 1.0, 0.0, 2.0, 1.5, -1.0]])  # pairs (0, 2), (1, 1.5), (0, -1)
    inlier = [1 / (1 + math.exp(a - b)) for a, b in ((0, 2), (1, 1.5), (0, -1))]
    want = -math.log(inlier[0]) + max(-math.log(1 - inlier[1]), -math.log(1 - inlier[2]))
    assert float(losses.one_vs_all_loss(z, torch.tensor([0]))) == pytest.approx(want, rel=1e-6)
    torch.testing.assert_close(losses.one_vs_all_probs(z)[0, 1], torch.tensor(inlier))


def test_ramps() -> None:
    assert [losses.linear_ramp(t, 0.4) for t in (0.0, 0.2, 0.4, 1.0)] == [0.0, 0.5, 1.0, 1.0]
    assert losses.linear_ramp(0.0, 0.0) == 1.0
    assert losses.exp_ramp(0.5) == pytest.approx(math.exp(-1.25)) and losses.exp_ramp(0.5, 0.5) == 1.0


def test_sharpen() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    want = p**2 / (p**2).sum(1, keepdim=True)
    torch.testing.assert_close(sharpen(p, 0.5), want)
    torch.testing.assert_close(sharpen(p, 1.0), p)
    assert sharpen(p, 1e-4).isfinite().all()


def test_annealing() -> None:
    assert annealing_threshold("linear", 0.0, 4) == 0.25 and annealing_threshold("linear", 1.0, 4) == 1.0
    assert annealing_threshold("exp", 0.5, 2) == pytest.approx(math.exp(-2.5) / 2 + 0.5)
    assert annealing_threshold("log", 0.5, 2) == pytest.approx((1 - math.exp(-2.5)) / 2 + 0.5)


def test_alignment_to_the_uniform_distribution() -> None:
    align = UniformAlignment(3, momentum=0.25)
    p = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]])
    mean = 0.25 / 3 + 0.75 * np.array([0.6, 0.3, 0.1])
    want = p.numpy() / 3 / mean
    np.testing.assert_allclose(align(p), want / want.sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(align.p_mean, mean, rtol=1e-6)


def test_visit_mean_counts_a_sample_that_is_twice_in_a_batch() -> None:
    store = VisitMean(3, 2)
    q = store(torch.tensor([1, 1, 2]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]]))
    torch.testing.assert_close(q, torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]]))
    assert store.count.tolist() == [0.0, 2.0, 1.0]


def test_beta_draws_repeat_with_the_generator_and_differ_by_row() -> None:
    first, second = (
        sample_beta(2000, 0.75, torch.Generator().manual_seed(5), device=torch.device("cpu")) for _ in range(2)
    )
    assert torch.equal(first, second) and len(first.unique()) > 1900
    assert float(first.mean()) == pytest.approx(0.5, abs=0.03)
    assert float(first.var()) == pytest.approx(1 / (4 * (2 * 0.75 + 1)), abs=0.01)  # of Beta(a, a)
    tiny = sample_beta(500, 1e-3, torch.Generator().manual_seed(0), device=torch.device("cpu"))
    assert ((tiny < 1e-6) | (tiny > 1 - 1e-6)).float().mean() > 0.95 and 0.4 < float(tiny.mean()) < 0.6


def test_folded_mixing_stays_near_the_first_parent() -> None:
    lam = fold(torch.rand(50, generator=torch.Generator().manual_seed(0)))
    assert (lam >= 0.5).all()
    a, b = torch.randn(50, 1, 2, 2), torch.randn(50, 1, 2, 2)
    mixed = mix(a, b, lam)
    assert ((mixed - a).flatten(1).norm(dim=1) <= (mixed - b).flatten(1).norm(dim=1) + 1e-6).all()
