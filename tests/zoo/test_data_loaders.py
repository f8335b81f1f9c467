"""Samplers visit everything once a pass; the two streams are independent; resume is exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.contamination import ContaminationSpec, build_pool
from ssl_zoo.data.loaders import Batch, IndexSampler, SemiLoader, eval_batches, make_loader, place


def make(n_l=5, n_u=9, **options) -> SemiLoader:
    x_l = np.arange(n_l, dtype=np.float32)[:, None]
    x_u = 100 + np.arange(n_u, dtype=np.float32)[:, None]
    return SemiLoader(x_l, np.arange(n_l), x_u, ood_u=np.arange(n_u) >= 6, **{"batch_size": 2, "mu": 2, **options})


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 5))
def test_every_index_once_a_pass_and_every_batch_full(n, batch_size, seed):
    sampler = IndexSampler(n, batch_size, seed=seed)
    batches = [sampler.next() for _ in range(3 * n // batch_size + 2)]
    assert all(len(batch) == batch_size for batch in batches)
    drawn = torch.cat(batches)
    for start in range(0, len(drawn) - n + 1, n):
        assert sorted(drawn[start : start + n].tolist()) == list(range(n))
    assert sampler.passes == len(drawn) // n


def test_nine_samples_in_batches_of_four():
    drawn = [IndexSampler(9, 4, seed=1)][0]
    first, second, third = (drawn.next() for _ in range(3))
    assert len({*first.tolist(), *second.tolist(), int(third[0])}) == 9  # the ninth opens the third batch


def test_passes_are_in_different_orders_and_seeds_matter():
    a, b = IndexSampler(20, 20, seed=0), IndexSampler(20, 20, seed=1)
    first = a.next()
    assert not torch.equal(first, a.next()) and not torch.equal(first, b.next())


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 6))
def test_sampler_resumes_index_for_index(n, batch_size, steps):
    a, b = IndexSampler(n, batch_size, seed=3), IndexSampler(n, batch_size, seed=8)
    for _ in range(steps):
        a.next()
    b.load_state_dict({k: v.clone() for k, v in a.state_dict().items()})
    assert a.passes == b.passes
    assert all(torch.equal(a.next(), b.next()) for _ in range(5))


def test_loader_resumes_batch_for_batch():
    a, b = make(seed=1), make(seed=2)
    for _ in range(7):
        a.next()
    state = a.state_dict()
    assert all(isinstance(v, torch.Tensor) for v in state.values())  # fit for safetensors
    wanted = [a.next() for _ in range(6)]  # a saved state does not move on with the loader
    b.load_state_dict(state)
    for batch in wanted:
        got = b.next()
        for name in Batch.__dataclass_fields__:
            assert torch.equal(getattr(batch, name), getattr(got, name))


def test_batches_hold_what_their_indices_say():
    for batch, _ in zip(make(), range(10), strict=False):
        assert torch.equal(batch.x_l[:, 0].long(), batch.idx_l) and torch.equal(batch.y_l, batch.idx_l)
        assert torch.equal(batch.x_u[:, 0].long() - 100, batch.idx_u)
        assert torch.equal(batch.ood_u, batch.idx_u >= 6)
        assert batch.x_u.shape == (4, 1) and batch.y_l.dtype == torch.int64 and batch.ood_u.dtype == torch.bool


def test_streams_are_independent():
    base, larger, none = make(), make(n_u=30, mu=5), make(mu=0)
    for _ in range(6):
        one, two, three = base.next(), larger.next(), none.next()
        assert torch.equal(one.idx_l, two.idx_l) and torch.equal(one.idx_l, three.idx_l)
        assert three.x_u is None and three.idx_u is None and three.ood_u is None
    equal = make(n_l=9, n_u=9, batch_size=9, mu=1).next()
    assert not torch.equal(equal.idx_l, equal.idx_u)  # and equal sizes do not make equal orders


def test_the_callers_arrays_are_not_the_loaders():
    x = np.ones((3, 2), np.float32)
    loader = SemiLoader(x, np.arange(3), batch_size=3, mu=0)
    loader.x_l.zero_()
    assert x.all()


def test_loader_of_a_pool_uses_seen_classes_first():
    y = np.repeat(np.arange(4), 10)
    data = ArrayDataset(np.arange(40, dtype=np.float32)[:, None], y, tuple("abcd"), "tabular")
    pool = build_pool(ContaminationSpec((2, 0), 6, r=0.5), data)
    loader = make_loader(data, pool, batch_size=6, mu=2, seed=0)
    batch = loader.next()
    assert loader.n_unlabeled == pool.n_unlabeled and loader.n_labeled == 6
    raw = batch.x_l[:, 0].long().numpy()
    assert np.array_equal(pool.relabel(y[raw]), batch.y_l.numpy()) and set(batch.y_l.tolist()) == {0, 1}
    unlabeled = batch.x_u[:, 0].long().numpy()
    assert np.array_equal(np.isin(y[unlabeled], [1, 3]), batch.ood_u.numpy())


def test_evaluation_covers_everything_in_order():
    x = torch.arange(10)
    assert torch.equal(torch.cat(list(eval_batches(x, 4))), x) and [len(b) for b in eval_batches(x, 4)] == [4, 4, 2]


def test_place_copies():
    array = np.arange(4)
    assert place(array, "cpu").data_ptr() != array.ctypes.data


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make(n_u=0), "the unlabeled pool is empty"),
        (lambda: make(n_l=0), "the labeled set is empty"),
        (lambda: make(mu=-1), "mu"),
        (lambda: make(batch_size=0), "batch_size"),
        (lambda: SemiLoader(np.zeros((3, 1)), np.zeros(2)), "3 labeled inputs, but 2 labels"),
        (lambda: SemiLoader(np.zeros((3, 1)), np.zeros(3), np.zeros((4, 1)), ood_u=np.zeros(3)), "ood_u has 3"),
        (lambda: IndexSampler(4, 2).load_state_dict(IndexSampler(5, 2).state_dict()), "over 5 samples, this one has 4"),
        (lambda: make(mu=0).load_state_dict(make().state_dict()), "unlabeled stream"),
    ],
)
def test_wrong_inputs(build, message):
    with pytest.raises(ValueError, match=message):
        build()
