"""Controlled variables, held over random specs; sizes of the paper; errors that name what is possible."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.contamination import ContaminationSpec, build_pool
from ssl_zoo.data.divisions import allocate
from ssl_zoo.data.pools import Pool

PARTS = ("labeled_idx", "validation_idx", "seen_idx", "unseen_idx", "ood_idx")


def toy(sizes: list[int], seed: int = 0, name: str = "toy") -> ArrayDataset:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    x = np.arange(len(y), dtype=np.float32)[:, None]
    return ArrayDataset(x, y, tuple(f"class {k}" for k in range(len(sizes))), "tabular", name)


DATA = toy([40, 50, 45, 60, 30, 40, 50])  # classes 0..2 are seen
FAR = toy([20, 30, 25], seed=1, name="far")
CIFAR = ArrayDataset(
    np.zeros((50_000, 1), np.float32), np.tile(np.arange(10), 5000), tuple(map(str, range(10))), "tabular"
)

specs = st.builds(
    ContaminationSpec,
    seen_classes=st.sampled_from([3, (0, 2, 5), 4]),
    n_labeled=st.integers(5, 30),
    r=st.sampled_from([0.0, 0.1, 0.2, 0.25]),
    r_s=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    c_n=st.sampled_from([None, 1, 2, 3]),
    c_ib=st.sampled_from([None, 0.05, 0.2, 1.0]),
    nearness=st.sampled_from(["near", "far"]),
    n_validation=st.sampled_from([0, 6]),
    protocol=st.sampled_from(["re-ssl", "c-score"]),
)
seeds = st.integers(0, 3)


def make(spec: ContaminationSpec, seed: int = 0) -> Pool | None:
    try:
        return build_pool(spec, DATA, ood=FAR, seed=seed)
    except ValueError as error:
        assert "can be at most" in str(error)
        return None


def same(a: Pool, b: Pool, parts: tuple[str, ...]) -> bool:
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in parts)


@given(specs, seeds, st.data())
def test_two_pools_that_differ_in_one_factor_share_every_other_index(spec, seed, data):
    factor = data.draw(st.sampled_from(["r", "r_s", "c_n", "c_ib", "nearness", "total"]))
    values = {
        "r": [0.0, 0.1, 0.2, 0.3], "r_s": [0.0, 0.2, 0.6, 1.0], "c_n": [1, 2, 3], "c_ib": [0.05, 0.1, 1.0],
        "nearness": ["near", "far"], "total": ["fixed", "paper"],
    }  # fmt: skip
    if factor == "total":
        spec = dataclasses.replace(spec, c_ib=spec.c_ib or 0.2)
    one, two = (dataclasses.replace(spec, **{factor: data.draw(st.sampled_from(values[factor]))}) for _ in range(2))
    a, b = make(one, seed), make(two, seed)
    assume(a is not None and b is not None)
    varied = {"r_s": ("seen_idx",)}.get(factor, ("unseen_idx", "ood_idx"))
    if factor == "r_s" and spec.protocol == "c-score":
        varied += ("unseen_idx", "ood_idx")  # there the size of the unseen part is a share of the whole
    assert same(a, b, tuple(part for part in PARTS if part not in varied))
    if factor not in ("nearness", "c_n", "c_ib", "total"):  # and what varies in size alone is nested
        for part in varied:
            small, large = sorted((getattr(a, part), getattr(b, part)), key=len)
            assert set(small) <= set(large)


@given(specs, seeds)
def test_parts_hold_what_they_say(spec, seed):
    pool = make(spec, seed)
    assume(pool is not None)
    seen = list(pool.class_order[: pool.n_seen_classes])
    assert set(DATA.y[pool.labeled_idx]) == set(seen)
    assert len(pool.labeled_idx) == spec.n_labeled and len(pool.validation_idx) == spec.n_validation
    assert np.ptp(np.bincount(DATA.y[pool.labeled_idx], minlength=7)[seen]) <= 1
    assert set(DATA.y[pool.seen_idx]) <= set(seen)
    assert not set(DATA.y[pool.unseen_idx]) & set(seen)
    near = np.concatenate([pool.labeled_idx, pool.validation_idx, pool.seen_idx, pool.unseen_idx])
    assert len(set(near)) == len(near)  # disjoint, and nothing twice
    assert len(set(pool.ood_idx)) == len(pool.ood_idx)
    assert len(pool.unseen_idx) == 0 if spec.nearness == "far" else len(pool.ood_idx) == 0
    n_unseen = len(pool.unseen_idx) + len(pool.ood_idx)
    if spec.protocol == "c-score":
        assert n_unseen == int(np.floor(len(pool.seen_idx) * spec.r / (1 - spec.r) + 1e-9))
    elif spec.c_ib is None:
        reference = int(np.isin(DATA.y, seen, invert=True).sum())
        assert n_unseen == int(spec.r * reference + 1e-9)


@given(specs, seeds)
def test_a_pool_is_a_function_of_spec_and_seed(spec, seed):
    a, b = make(spec, seed), make(spec, seed)
    assume(a is not None)
    assert a.hash == b.hash and same(a, b, PARTS)
    other = make(spec, seed + 1)
    assert other is None or (other.hash != a.hash and set(other.labeled_idx) != set(a.labeled_idx))


@given(specs, st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_an_impossible_r_names_the_largest_one(spec, r):
    assume(not (spec.protocol == "c-score" and r == 1))
    spec = dataclasses.replace(spec, r=r)
    try:
        build_pool(spec, DATA, ood=FAR)
    except ValueError as error:
        largest = re.search(r"only (\d+) can be served.*r can be at most ([\d.]+)$", str(error))
        assert largest is not None, error
        size, named = int(largest[1]), float(largest[2])
        pool = build_pool(dataclasses.replace(spec, r=named), DATA, ood=FAR)
        got = len(pool.unseen_idx) + len(pool.ood_idx)
        assert got == size or spec.total == "paper"
        assert named < r
        with pytest.raises(ValueError, match="at most"):  # one sample more cannot be had
            seen = len(pool.seen_idx)
            more = (size + 1) / (seen + size + 1) if spec.protocol == "c-score" else (size + 1) / _reference(spec)
            build_pool(dataclasses.replace(spec, r=more + 1e-9), DATA, ood=FAR)


def _reference(spec: ContaminationSpec) -> int:
    seen = range(spec.seen_classes) if isinstance(spec.seen_classes, int) else spec.seen_classes
    return int(np.isin(DATA.y, list(seen), invert=True).sum())


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=8), st.integers(0, 200))
def test_a_division_is_complete_near_its_shares_and_never_takes_back(weights, size):
    ties = list(range(len(weights)))
    counts, more = allocate(size, weights, ties), allocate(size + 1, weights, ties)
    assert sum(counts) == size and sum(more) == size + 1
    assert all(a <= b for a, b in zip(counts, more, strict=True))
    share = np.array(weights) / np.sum(weights) * size
    assert np.abs(np.array(counts) - share).max() <= max(1, len(weights) / 2)


# ------------------------------------------------------------------------------------------- the settings of the paper


def cifar(**changes) -> Pool:
    return build_pool(ContaminationSpec(**{"seen_classes": 5, "n_labeled": 100, "r_s": 0.2, **changes}), CIFAR, seed=0)


def test_sizes_on_cifar10():
    pool = cifar(r=0.2)
    assert (len(pool.labeled_idx), len(pool.seen_idx), len(pool.unseen_idx)) == (100, 4980, 5000)
    assert np.bincount(CIFAR.y[pool.unseen_idx]).tolist() == [0] * 5 + [1000] * 5
    assert [len(cifar(r=r).unseen_idx) for r in (0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)] == [
        0, 5000, 10000, 12500, 15000, 20000, 25000,
    ]  # fmt: skip
    assert [len(cifar(r=0.2, r_s=s).seen_idx) for s in (0, 0.5, 1)] == [0, 12450, 24900]


def test_category_number_and_index_keep_the_size():
    for c_n in range(1, 6):
        pool = cifar(r=0.2, c_n=c_n)
        assert len(pool.unseen_idx) == 5000
        assert sorted(set(CIFAR.y[pool.unseen_idx])) == list(range(10 - c_n, 10))
    for c_i in range(5, 10):
        assert set(CIFAR.y[cifar(r=0.2, c_i=c_i).unseen_idx]) == {c_i}
    assert np.array_equal(cifar(r=0.2, c_n=1).unseen_idx, cifar(r=0.2, c_i=9).unseen_idx)


@pytest.mark.parametrize(("c_ib", "paper"), [(0.01, 2915), (0.20, 5229)])
def test_imbalance_with_fixed_total_or_the_papers(c_ib, paper):
    fixed = cifar(r=0.2, c_ib=c_ib)
    assert len(fixed.unseen_idx) == 5000
    theirs = cifar(r=0.2, c_ib=c_ib, total="paper")
    assert len(theirs.unseen_idx) == paper
    for pool in (fixed, theirs):
        counts = np.sort(np.bincount(CIFAR.y[pool.unseen_idx], minlength=10)[5:])[::-1]
        assert np.allclose(counts / counts[0], c_ib ** (np.arange(5) / 4), rtol=0.02, atol=0.002)
    orders = {tuple(np.argsort(np.bincount(CIFAR.y[p.unseen_idx], minlength=10)[5:])) for p in (fixed, theirs)}
    assert len(orders) == 1  # the same classes are the large ones
    shuffled = {
        tuple(np.argsort(np.bincount(CIFAR.y[build_pool(
            ContaminationSpec(5, 100, r=0.2, c_ib=0.01), CIFAR, seed=s).unseen_idx], minlength=10)[5:]))
        for s in range(4)
    }  # fmt: skip
    assert len(shuffled) > 1  # by the seed


def test_one_class_guards_the_imbalance_formula():
    for total in ("fixed", "paper"):
        assert len(cifar(r=0.2, c_ib=0.01, c_n=1, total=total).unseen_idx) == 5000


def test_near_and_far_have_the_same_size_and_seen_part():
    far = ArrayDataset(np.zeros((20_000, 1), np.float32), np.tile(np.arange(10), 2000), CIFAR.class_names, "tabular")
    spec = ContaminationSpec(5, 100, r=0.2, r_s=0.2)
    near_pool = build_pool(spec, CIFAR, ood=far)
    far_pool = build_pool(dataclasses.replace(spec, nearness="far", c_n=3), CIFAR, ood=far)
    assert len(far_pool.ood_idx) == len(near_pool.unseen_idx) == 5000 and not len(far_pool.unseen_idx)
    assert same(near_pool, far_pool, ("labeled_idx", "seen_idx"))
    assert set(far.y[far_pool.ood_idx]) == {7, 8, 9}
    assert near_pool.manifest["ood"] is None and far_pool.manifest["ood"]["n"] == 20_000


def test_c_score_ratio_with_all_classes_seen():
    spec = ContaminationSpec(7, 14, r=0.2, nearness="far", protocol="c-score", r_s=0.3)
    pool = build_pool(spec, DATA, ood=FAR)
    n_id = len(pool.seen_idx)
    assert len(pool.ood_idx) == n_id // 4
    with pytest.raises(
        ValueError, match="r=0.5 asks for 90 unseen samples, but only 75 can be served with the far sou"
    ):
        build_pool(dataclasses.replace(spec, r=0.5), DATA, ood=FAR)
    with pytest.raises(ValueError, match="below 1"):
        dataclasses.replace(spec, r=1.0)


def test_decimal_r_is_read_as_written():
    data = toy([1000, 1100])
    for r, expected in ((0.29, 319), (0.57, 627), (np.float32(0.2), 220)):  # 0.29 * 1100 is 318.99999999999994
        assert len(build_pool(ContaminationSpec(1, 5, r=r), data).unseen_idx) == expected


def test_previous_protocol_keeps_the_total_and_shrinks_the_seen_part():
    pools = [build_pool(ContaminationSpec(3, 9, r=r, r_s=0.5, protocol="previous"), DATA) for r in (0, 0.25, 0.5, 1)]
    assert [len(p.seen_idx) for p in pools] == [63, 48, 32, 0]
    assert [len(p.unseen_idx) for p in pools] == [0, 15, 31, 63]
    assert all(set(b.seen_idx) <= set(a.seen_idx) for a, b in zip(pools, pools[1:], strict=False))
    with pytest.raises(ValueError, match="seen pool holds 126; total_size can be at most 168"):
        build_pool(ContaminationSpec(3, 9, r=0.25, protocol="previous", total_size=300), DATA)
    build_pool(ContaminationSpec(3, 9, r=0.25, protocol="previous", total_size=168), DATA)


def test_labeled_rows_may_stay_in_the_pool_when_asked():
    spec = ContaminationSpec(3, 9, disjoint=False)
    pool = build_pool(spec, DATA)
    assert set(pool.labeled_idx) <= set(pool.seen_idx)
    assert np.array_equal(pool.labeled_idx, build_pool(dataclasses.replace(spec, disjoint=True), DATA).labeled_idx)


def test_validation_leaves_labels_alone_and_joins_no_pool():
    with_validation = build_pool(ContaminationSpec(3, 9, n_validation=12), DATA)
    assert np.array_equal(with_validation.labeled_idx, build_pool(ContaminationSpec(3, 9), DATA).labeled_idx)
    assert not set(with_validation.validation_idx) & set(with_validation.seen_idx)


# -------------------------------------------------------------------------------------------------- manifest and use


def test_manifest_round_trip_and_tampering():
    pool = build_pool(ContaminationSpec((0, 2), 4, r=0.2), DATA, seed=3)
    again = Pool.from_json(pool.to_json())
    assert same(pool, again, PARTS) and again.hash == pool.hash and len(pool.hash) == 64
    assert json.loads(pool.to_json())["spec"]["seen_classes"] == [0, 2]
    changed = json.loads(pool.to_json())
    changed["indices"]["seen"][0] += 1
    with pytest.raises(ValueError, match="does not match its hash"):
        Pool.from_json(json.dumps(changed))
    changed["format"] = "ssl-zoo-pool/99"
    with pytest.raises(ValueError, match="99"):
        Pool.from_json(json.dumps(changed))


def test_hash_depends_on_the_pool_and_not_on_the_place_of_the_files():
    spec = ContaminationSpec(3, 9, r=0.2)
    base = build_pool(spec, DATA).hash
    assert build_pool(spec, dataclasses.replace(DATA, source="elsewhere")).hash == base
    assert build_pool(dataclasses.replace(spec, c_n=4), DATA).hash != base  # equal rows, another spec
    assert build_pool(spec, DATA, seed=1).hash != base


def test_use_of_a_pool():
    pool = build_pool(ContaminationSpec((2, 0), 4, r=0.1, nearness="far"), DATA, ood=FAR)
    assert pool.relabel([2, 0, 1, -1]).tolist() == [0, 1, 2, -1]
    x, ood = pool.unlabeled(DATA, FAR)
    assert len(x) == pool.n_unlabeled == len(ood) and ood.sum() == len(pool.ood_idx)
    assert np.array_equal(x[:3, 0], pool.seen_idx[:3]) and np.array_equal(x[ood, 0], pool.ood_idx)
    classes = pool.unlabeled_classes(DATA)
    assert set(classes[ood]) == {-1} and set(classes[~ood]) == {0, 1}
    test = pool.select_seen(DATA)
    assert len(test) == 85 and test.class_names == ("class 2", "class 0")
    with pytest.raises(ValueError, match="drawn from another dataset"):
        pool.unlabeled(toy([3, 3]), FAR)
    with pytest.raises(ValueError, match="give its source"):
        pool.unlabeled(DATA)


def test_far_images_are_brought_to_the_number_type_of_the_data():
    byte = ArrayDataset(np.full((8, 1, 4, 4), 100, np.uint8), np.repeat([0, 1], 4), ("a", "b"))
    real = ArrayDataset(np.full((8, 1, 4, 4), 0.5, np.float32), np.zeros(8, np.int64), ("n",))
    spec = ContaminationSpec(2, 2, r=0.5, nearness="far", protocol="c-score")
    x, ood = build_pool(spec, byte, ood=real).unlabeled(byte, real)
    assert x.dtype == np.uint8 and set(x[ood].ravel()) == {128} and set(x[~ood].ravel()) == {100}
    one = ArrayDataset(real.x, byte.y, ("a", "b"))
    two = ArrayDataset(byte.x, np.zeros(8, np.int64), ("n",))
    x, ood = build_pool(spec, one, ood=two).unlabeled(one, two)
    assert x.dtype == np.float32 and np.allclose(x[ood], 100 / 255)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_labeled": 2}, "at least 3"),
        ({"n_labeled": 200}, "n_labeled=200, spread over 3 classes, exceeds a class; it can be at most 120"),
        ({"n_validation": 500}, "n_validation=500.*at most 120"),
        ({"seen_classes": 9}, "at most 7"),
        ({"seen_classes": (0, 0)}, "distinct"),
        ({"r": 1.5}, "r must be"),
        ({"r": float("nan")}, "r must be"),
        ({"r_s": -0.1}, "r_s must"),
        ({"c_ib": 0.0}, "c_ib must"),
        ({"c_n": 9, "r": 0.1}, "c_n can be at most 4"),
        ({"c_i": 1, "r": 0.1}, "can be 3, 4, 5, 6"),
        ({"c_i": 4, "c_n": 2}, "excludes"),
        ({"total": "paper"}, "give c_ib"),
        ({"total_size": 5}, "previous"),
        ({"n_validation": -1}, "0 or more"),
        ({"protocol": "other"}, "protocol must be one of"),
        ({"nearness": "far", "r": 0.2}, "give it with ood="),
        ({"seen_classes": 7, "n_labeled": 7, "r": 0.2}, "no unseen classes; r can be at most 0"),
        ({"r": 0.9, "c_i": 4}, r"r=0.9 asks for 162 unseen samples, but only 30 can be served with c_i=4"),
    ],
)
def test_requests_that_cannot_be_served(changes, message):
    with pytest.raises(ValueError, match=message):
        build_pool(ContaminationSpec(**{"seen_classes": 3, "n_labeled": 9, **changes}), DATA)


def test_largest_label_counts_are_the_largest():
    for n in (120, 121):
        if n == 120:
            build_pool(ContaminationSpec(3, n), DATA)
        else:
            with pytest.raises(ValueError, match="at most 120"):
                build_pool(ContaminationSpec(3, n), DATA)


def test_other_wrong_inputs():
    with pytest.raises(ValueError, match="seed"):
        build_pool(ContaminationSpec(3, 9), DATA, seed=-1)
    with pytest.raises(ValueError, match="match_images"):
        build_pool(
            ContaminationSpec(3, 9),
            DATA,
            ood=ArrayDataset(np.zeros((3, 2), np.float32), np.zeros(3, int), ("a",), "text"),
        )
    empty = ArrayDataset(DATA.x, np.where(DATA.y == 1, -1, DATA.y), DATA.class_names, "tabular")
    with pytest.raises(ValueError, match=r"class 1 \(class 1\) has no rows"):
        build_pool(ContaminationSpec(3, 9), empty)
