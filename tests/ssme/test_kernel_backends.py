"""Every backend and type of `ssme.kernel_sums` against the definition; memory stays within the budget."""

from __future__ import annotations

import builtins
import importlib.util
import tracemalloc
from itertools import product

import numpy as np
import pytest

from ssme import SSME
from ssme.kernel_sums import DEFAULT_BUDGET, KernelMatrix, _tiles, log_kernel_sums, naive_log_kernel_sums

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
WAYS = [
    pytest.param({"dtype": dtype, "backend": backend}, id=f"{backend}-{dtype}", marks=marks)
    for (backend, marks), dtype in product([("numpy", ()), ("torch", needs_torch)], ["float64", "float32"])
]
TOLERANCE = {"float64": 1e-8, "float32": 2e-4}


def assert_logs_equal(actual: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    """The same -inf, and the rest to the tolerance of the type; relative where exponents are large."""
    assert actual.dtype == np.float64 and not np.isnan(actual).any()
    np.testing.assert_array_equal(np.isneginf(actual), np.isneginf(expected))
    finite, tol = np.isfinite(expected), TOLERANCE[dtype]
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=min(tol, 1e-6), atol=tol)


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


def rows_of(d: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    X = scale * rng.normal(size=(30, d)) + 5
    X[10] = X[11]  # duplicates
    X[20] = 1e3 * scale  # far from all others
    return X


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("budget", [700, 3_000, DEFAULT_BUDGET])
@pytest.mark.parametrize("kind", ["dense", "zeros", "of all sizes", "one-hot"])
def test_every_way_is_the_definition(way: dict[str, str], budget: int, kind: str) -> None:
    for d, scale in product([1, 2, 7, 50], [0.05, 1.0, 30.0]):
        rng = np.random.default_rng(d)
        X, h = rows_of(d, scale, rng), rng.uniform(0.2, 2.0, d)
        w = weights_of(kind, 30, rng)
        kernel = KernelMatrix(X, h, memory_budget=budget, **way)
        assert kernel.kept == (budget == DEFAULT_BUDGET)
        for exclude in (False, True):
            expected = naive_log_kernel_sums(X, X, w, h, exclude_self=exclude)
            for _ in range(2):  # the second product starts where the first one ended
                assert_logs_equal(kernel.log_dot(w, exclude), expected, way["dtype"])
            single = log_kernel_sums(X, X, w, h, exclude_self=exclude, memory_budget=budget, **way)
            assert_logs_equal(single, expected, way["dtype"])


@pytest.mark.parametrize("way", WAYS)
def test_queries_of_their_own(way: dict[str, str]) -> None:
    rng = np.random.default_rng(0)
    X, centers, w = rng.normal(size=(40, 5)), rng.normal(size=(25, 5)), rng.random((25, 2))
    X[0], X[1], X[2] = 1e6, -30.0, 1e170
    expected = naive_log_kernel_sums(X[:2], centers, w, 0.4)
    assert_logs_equal(log_kernel_sums(X[:2], centers, w, 0.4, **way), expected, way["dtype"])
    expected = naive_log_kernel_sums(X[3:], centers, w, 0.4)
    assert_logs_equal(log_kernel_sums(X[3:], centers, w, 0.4, **way), expected, way["dtype"])
    assert not np.isnan(log_kernel_sums(X, centers, w, 0.4, **way)).any()
    assert log_kernel_sums(X[:0], centers, w, 0.4, **way).shape == (0, 2)


@pytest.mark.parametrize("way", WAYS)
def test_one_point_and_no_weight(way: dict[str, str]) -> None:
    kernel = KernelMatrix([[3.0, 4.0]], [2.0, 0.5], **way)
    assert kernel.log_dot([[1.0, 0.0]])[0].tolist() == [kernel.log_own, -np.inf]
    assert np.isneginf(kernel.log_dot([[1.0, 0.0]], exclude_self=True)).all()
    assert np.isneginf(log_kernel_sums([[0.0], [1.0]], [[0.0]], [0.0], 1.0, **way)).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", [1, -1])
def test_a_later_tile_that_is_far_nearer(way: dict[str, str], order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of four rows; exponents of a row rise, or fall, by hundreds from tile to tile."""
    monkeypatch.setattr(_tiles, "_TILE_ROWS", 2)
    X = np.linspace(0, 40, 41)[::order, None]
    w = np.random.default_rng(1).random((41, 2))
    expected = naive_log_kernel_sums(X, X, w, 0.6)
    assert_logs_equal(log_kernel_sums(X, X, w, 0.6, memory_budget=8 * 32, **way), expected, way["dtype"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("d", [3, 30, 300])
def test_many_columns_and_dimensions(way: dict[str, str], d: int) -> None:
    rng = np.random.default_rng(d)
    X, w = rng.normal(size=(700, d)), rng.random((700, 150))
    expected = naive_log_kernel_sums(X[:10], X, w[:, :3], 1.5)
    for budget in (100_000, DEFAULT_BUDGET):
        found = KernelMatrix(X, 1.5, memory_budget=budget, **way).log_dot(w, exact_tails=False)
        assert_logs_equal(found[:10, :3], expected, way["dtype"])


@pytest.mark.parametrize("way", WAYS)
def test_inexact_tails_leave_the_shares_alone(way: dict[str, str]) -> None:
    rng = np.random.default_rng(6)
    X = np.r_[rng.normal(size=(40, 3)), rng.normal(60, 1, size=(40, 3))]
    w = np.zeros((80, 2))
    w[:40, 0] = w[40:, 1] = 1.0
    for budget, exclude in product([4_000, DEFAULT_BUDGET], [False, True]):
        quick = KernelMatrix(X, 1.0, memory_budget=budget, **way).log_dot(w, exclude, exact_tails=False)
        exact = naive_log_kernel_sums(X, X, w, 1.0, exclude_self=exclude)
        near = exact > exact.max(axis=1, keepdims=True) - 10
        assert_logs_equal(quick[near], exact[near], way["dtype"])
        share = np.exp(quick - np.logaddexp.reduce(quick, axis=1, keepdims=True))
        np.testing.assert_allclose(share, w, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("far", [False, True])
def test_memory_follows_the_budget_and_not_the_pairs(dtype: str, far: bool) -> None:
    n, budget = 3_000, 400_000
    X = np.random.default_rng(0).normal(size=(n, 2))
    if far:
        X[0] = 1e5  # exponents by differences
    w = np.ones((n, 2))
    of_rows = 8 * n * (3 * X.shape[1] + 30)  # scaled copies, sums, masks
    tracemalloc.start()
    try:
        KernelMatrix(X, 0.3, memory_budget=budget, dtype=dtype).log_dot(w, exact_tails=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < budget + of_rows < 8 * n * n / 20


def test_a_matrix_is_kept_up_to_the_budget() -> None:
    X = np.zeros((100, 1))
    assert KernelMatrix(X, 1.0, memory_budget=80_000).kept
    assert not KernelMatrix(X, 1.0, memory_budget=79_999).kept
    assert KernelMatrix(X, 1.0, memory_budget=40_000, dtype="float32").kept
    assert DEFAULT_BUDGET == 2**30


@needs_torch
def test_without_a_device_the_best_one_is_taken() -> None:
    import torch

    from ssme.kernel_sums._torch import pick_device

    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert pick_device(torch, "float64", None).type == expected
    assert pick_device(torch, "float32", "cpu").type == "cpu"


class FakeTorch:
    """What `pick_device` asks of PyTorch, on a machine with other devices."""

    class cuda:  # noqa: N801
        there = False

        @classmethod
        def is_available(cls) -> bool:
            return cls.there

        @classmethod
        def device_count(cls) -> int:
            return int(cls.there)

    class backends:  # noqa: N801
        class mps:  # noqa: N801
            @staticmethod
            def is_available() -> bool:
                return True

    @staticmethod
    def device(name: str) -> object:
        kind, _, index = name.partition(":")
        return type("device", (), {"type": kind, "index": int(index) if index else None})()


def test_devices_that_are_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from ssme.kernel_sums._torch import pick_device

    assert pick_device(FakeTorch, "float32", None).type == "mps"
    assert pick_device(FakeTorch, "float64", None).type == "cpu"  # MPS has no float64
    with pytest.raises(ValueError, match="has no float64"):
        pick_device(FakeTorch, "float64", "mps")
    monkeypatch.setattr(FakeTorch.cuda, "there", True)
    assert pick_device(FakeTorch, "float32", None).type == "cuda"
    assert pick_device(FakeTorch, "float64", "cuda:0").index == 0
    with pytest.raises(ValueError, match="device='cuda:1' is not available"):
        pick_device(FakeTorch, "float64", "cuda:1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16"}, "dtype must be 'float64' or 'float32', got 'float16'"),
        ({"backend": "jax"}, "backend must be 'numpy' or 'torch', got 'jax'"),
        ({"device": "cpu"}, "device='cpu' needs backend='torch'"),
        ({"memory_budget": 0}, "memory_budget must be a positive number of bytes, got 0"),
        ({"memory_budget": "1 GiB"}, "memory_budget must be a positive number of bytes"),
        ({"memory_budget": float("nan")}, "memory_budget must be a positive number of bytes"),
        pytest.param({"backend": "torch", "device": "tpu9"}, "device must be a name", marks=needs_torch),
        pytest.param({"backend": "torch", "device": "meta"}, "'meta' is not available", marks=needs_torch),
    ],
)
def test_errors_name_what_is_wrong(options: dict[str, object], message: str) -> None:
    for call in (
        lambda: log_kernel_sums([[0.0]], [[0.0]], [1.0], 1.0, **options),
        lambda: KernelMatrix([[0.0]], 1.0, **options),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_torch_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name == "torch":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="needs PyTorch: pip install torch"):
        log_kernel_sums([[0.0]], [[0.0]], [1.0], 1.0, backend="torch")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("space", ["joint", "pooled"])
def test_the_mixture_is_the_same_whatever_computes_its_kernels(way: dict[str, str], space: str) -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 300)
    p = 1 / (1 + np.exp(-(1.5 * (2 * truth - 1)[:, None] + rng.normal(size=(300, 3)))))
    y = np.where(np.arange(300) < 30, truth, -1)
    options = {"density": "kde", "space": space, "bandwidth": 0.8, "max_iter": 20, "random_state": 0}
    plain = SSME(**options).fit(p, y)
    other = SSME(**options, memory_budget=5_000, kernel_dtype=way["dtype"], backend=way["backend"]).fit(p, y)
    tol = 1e-9 if way["dtype"] == "float64" else 1e-3
    np.testing.assert_allclose(other.responsibilities_, plain.responsibilities_, atol=tol)
    np.testing.assert_allclose(other.self_kernel_share_, plain.self_kernel_share_, atol=tol)
    np.testing.assert_allclose(other.predict_proba(p[:20]), plain.predict_proba(p[:20]), atol=tol)
    np.testing.assert_allclose(other.score_samples(p[:20]), plain.score_samples(p[:20]), atol=tol)
