"""What a caller may hand in, what becomes of it, and what is said when it will not do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.special import expit, softmax

from ssme import _validation as v
from ssme._validation._text import did_you_mean

BINARY = np.array([[0.1, 0.7], [0.5, 1.0], [0.0, 0.3]])
THREE = np.array([[[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], [[1.0, 0.0, 0.0], [0.3, 0.3, 0.4]]])  # (2, 2, 3)


# -- scores ----------------------------------------------------------------------------------------------------------


def test_binary_scores_get_a_class_axis() -> None:
    got = v.check_scores(BINARY)
    assert got.shape == (3, 2, 2) and got.dtype == np.float64
    np.testing.assert_array_equal(got[:, :, 1], BINARY)
    np.testing.assert_array_equal(got[:, :, 0], 1 - BINARY)


@pytest.mark.parametrize("score_type", ["probability", "logit"])
@pytest.mark.parametrize("scores", [BINARY, THREE], ids=["2d", "3d"])
def test_the_result_is_a_copy_and_the_argument_is_untouched(scores: np.ndarray, score_type: str) -> None:
    mine = scores = scores * (3 if score_type == "logit" else 1)
    scores = scores.copy()
    mine.flags.writeable = False
    got = v.check_scores(mine, score_type=score_type)
    assert not np.shares_memory(got, mine)
    got[:] = 7
    np.testing.assert_array_equal(mine, scores)


def test_logits_become_probabilities() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 30, (5, 2, 4))
    np.testing.assert_allclose(v.check_scores(z, score_type="logit"), softmax(z, axis=2), rtol=1e-13)
    np.testing.assert_allclose(v.check_scores(z[:, :, 0], score_type="logit")[:, :, 1], expit(z[:, :, 0]), rtol=1e-13)


def test_extreme_logits_neither_overflow_nor_give_nan() -> None:
    got = v.check_scores([[1e4], [-1e4]], score_type="logit")
    np.testing.assert_array_equal(got[:, 0], [[0, 1], [1, 0]])


def test_logits_stay_logits_for_the_table() -> None:
    np.testing.assert_array_equal(v.check_score_array([[2.0]], score_type="logit"), [[[0, 2]]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_short_floats_are_accepted(dtype: Any) -> None:
    p = softmax(np.random.default_rng(1).normal(0, 3, (50, 3, 150)), axis=2).astype(dtype)
    got = v.check_scores(p)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, p.astype(np.float64))


@pytest.mark.parametrize("excess", [1e-7, -1e-7, 1e-6, 5e-3])
def test_rows_that_miss_one_by_rounding_are_accepted_as_they_are(excess: float) -> None:
    scores = THREE.copy()
    scores[0, 1, 0] += excess
    np.testing.assert_array_equal(v.check_scores(scores), scores)


def test_a_row_that_sums_to_nine_tenths_is_named() -> None:
    scores = THREE.copy()
    scores[1, 0, 0] = 0.9
    with pytest.raises(ValueError, match=r"must sum to 1 .* row 1, model 0 sums to 0\.9 \(it is off .* in 1 of 2 rows"):
        v.check_scores(scores)
    with pytest.raises(ValueError, match=r"row 1, model 'bert' sums to 0\.9"):
        v.check_score_array(scores, model_names=["bert", "gpt"])


def test_a_hair_outside_the_unit_interval_is_clipped() -> None:
    np.testing.assert_array_equal(v.check_scores([[-1e-7], [1 + 1e-7]])[:, 0, 1], [0, 1])


@pytest.mark.parametrize("scores", [np.array([[0.2], [-3.0]]), np.array([[0.2], [1.7]]), np.array([[[-2.0, 1.0]]])])
def test_logits_given_by_mistake_are_told(scores: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"these look like logits: pass score_type='logit'"):
        v.check_scores(scores)


def test_percentages_are_told() -> None:
    with pytest.raises(ValueError, match="look like percentages: divide them by 100"):
        v.check_scores(THREE * 100)


def test_probabilities_declared_as_logits_are_told() -> None:
    with pytest.warns(UserWarning, match="pass score_type='probability'"):
        v.check_scores(THREE, score_type="logit")


def test_predict_proba_of_one_model_is_told() -> None:
    with pytest.warns(UserWarning, match=r"classes of ONE model, pass scores\[:, None, :\]"):
        v.check_scores([[0.2, 0.8], [0.7, 0.3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        v.check_scores([[0.5, 0.5], [0.5, 0.5]])  # two constant models


def test_nan_is_counted_and_never_dropped() -> None:
    scores = BINARY.copy()
    scores[1:, 1] = np.nan
    with pytest.raises(ValueError, match=r"holds 2 NaN values in 2 of 3 rows, the first at row 1, model 1"):
        v.check_scores(scores)
    with pytest.raises(ValueError, match="2 NaN"):
        v.check_scores(pd.DataFrame(scores))
    with pytest.raises(ValueError, match="2 NaN"):
        v.check_scores(np.ma.masked_invalid(scores))


@pytest.mark.parametrize("score_type", ["probability", "logit"])
def test_infinite_scores(score_type: str) -> None:
    with pytest.raises(ValueError, match=r"1 infinite \(inf\) value in"):
        v.check_scores([[0.1], [-np.inf]], score_type=score_type)


@pytest.mark.parametrize(
    ("scores", "error", "match"),
    [
        (np.array([0.1, 0.9]), ValueError, r"Reshape your data: scores\.reshape\(-1, 1\)"),
        (0.5, ValueError, "must have the shape"),
        (np.zeros((2, 2, 2, 2)), ValueError, r"must have the shape \(n, M, K\)"),
        (np.zeros((0, 3)), ValueError, "scores is empty"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (np.ones((3, 2, 1)), ValueError, "at least 2 are needed"),
        (sparse.csr_matrix(BINARY), TypeError, "sparse"),
        (sparse.csr_array(BINARY), TypeError, "toarray"),
        ([["a", "b"]], TypeError, "must hold numbers"),
        (np.array([["0.5"]], dtype=object), TypeError, "holds the text '0.5'"),
        (np.array([[{"a": 1}]], dtype=object), TypeError, "argument must be .* string.* number"),
        (np.array([[0.5 + 1j]]), ValueError, "Complex data not supported"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, "must hold numbers"),
        ([[0.1, 0.2], [0.3]], ValueError, "rows differ in length"),
        (pd.DataFrame({"a": [0.1], "b": ["x"]}), TypeError, "column 'b' of scores"),
        (pd.DataFrame({"a": [0.1], "b": [None]}, dtype=object), TypeError, "column 'a' of scores"),
    ],
)
def test_what_cannot_be_scores(scores: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        v.check_scores(scores)


def test_kinds_of_numbers_that_are_accepted() -> None:
    wanted = v.check_scores([[0, 1], [1, 1]])
    for same in (np.array([[False, True], [True, True]]), np.array([[0, 1], [1, 1]], dtype=object)):
        np.testing.assert_array_equal(v.check_scores(same), wanted)
    frame = pd.DataFrame({"a": [0, 1], "b": [1, 1]}, index=[7, 3])
    for same in (frame, frame.astype("Float64"), frame.astype("Int64")):
        np.testing.assert_array_equal(v.check_scores(same), wanted)
    with pytest.raises(ValueError, match="1 NaN"):
        v.check_scores(pd.DataFrame({"a": pd.array([0.5, None], dtype="Float64")}))


def test_unknown_score_type() -> None:
    with pytest.raises(ValueError, match="score_type must be 'probability' or 'logit', got 'odds'"):
        v.check_scores(BINARY, score_type="odds")


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=3, max_dims=3, min_side=2, max_side=5), elements=st.floats(-50, 50)
    )
)
def test_softmax_is_finite_sums_to_one_and_follows_permuted_classes(z: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = v.check_scores(z, score_type="logit")
        q = v.check_scores(z[:, :, ::-1], score_type="logit")
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=2), 1, rtol=1e-14)
    np.testing.assert_allclose(q, p[:, :, ::-1], rtol=1e-14)


# -- labels ----------------------------------------------------------------------------------------------------------


def codes(y: Any, n_classes: int, **options: Any) -> list[int]:
    return v.check_labels(y, len(y), n_classes, **options)[0].tolist()


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, -1],
        np.array([0, 1, -1]),
        np.array([0, 1, -1], dtype=np.int8),
        [0.0, 1.0, np.nan],
        np.array([0, 1, np.nan], dtype=np.float16),
        [0, 1, None],
        [0, 1.0, ""],
        pd.Series([0, 1, None], index=[5, 6, 7]),
        pd.Series([0, 1, None], dtype="Int64"),
        pd.array([0, 1, pd.NA], dtype="Int64"),
        np.ma.masked_array([0, 1, 1], mask=[0, 0, 1]),
        [False, True, None],
        pd.Categorical([0, 1, None]),
    ],
    ids=str,
)
def test_every_marker_of_an_unlabeled_row(y: Any) -> None:
    got, classes = v.check_labels(y, 3, 2)
    assert got.tolist() == [0, 1, -1] and got.dtype == np.int64
    assert classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", None],
        ["b", "a", np.nan],
        ["b", "a", ""],
        [" b", "a ", "  "],
        ["b", "a", "-1"],
        ["b", "a", -1],
        np.array(["b", "a", np.nan]),  # numpy makes it the text "nan"
        np.array([b"b", b"a", b""]),
        pd.Series(["b", "a", None]),
        pd.Series(["b", "a", None], dtype="string"),
        pd.Series(["b", "a", None], dtype="category"),
        pd.Index(["b", "a", None]),
        ("b", "a", pd.NA),
    ],
    ids=str,
)
def test_text_labels_take_the_order_of_scikit_learn(y: Any) -> None:
    got, classes = v.check_labels(y, 3, 2)
    assert got.tolist() == [1, 0, -1] and classes.tolist() == ["a", "b"]
    assert codes(y, 2, class_names=["b", "a"]) == [0, 1, -1]


def test_no_labels() -> None:
    got, classes = v.check_labels(None, 2, 3)
    assert got.tolist() == [-1, -1] and classes.tolist() == [0, 1, 2]
    assert v.check_labels(None, 2, 2, class_names=["x", "y"])[1].tolist() == ["x", "y"]
    assert codes([-1, None], 3) == [-1, -1]
    assert codes([], 2) == []


def test_integers_in_range_are_themselves_even_when_classes_are_absent() -> None:
    got, classes = v.check_labels([149, 3, -1], 3, 150)
    assert got.tolist() == [149, 3, -1] and len(classes) == 150


def test_other_integers_need_every_class_to_be_seen() -> None:
    got, classes = v.check_labels([5, 2, 9], 3, 3)
    assert got.tolist() == [1, 0, 2] and classes.tolist() == [2, 5, 9]
    with pytest.raises(ValueError, match=r"2 labels \('2', '5'\), but the scores have 3 classes; pass class_names"):
        v.check_labels([5, 2], 2, 3)
    with pytest.raises(ValueError, match=r"4 labels .* the scores have 3 classes"):
        v.check_labels(list("abcd"), 4, 3)


def test_booleans() -> None:
    got, classes = v.check_labels(np.array([True, True]), 2, 2)
    assert got.tolist() == [1, 1] and classes.tolist() == [False, True]
    assert codes([True, False], 2, class_names=["0", "1"]) == [1, 0]
    assert codes(["True", "false"], 2, class_names=["0", "1"]) == [1, 0]
    assert codes([True, False], 2, class_names=["True", "False"]) == [0, 1]


@pytest.mark.parametrize("names", [["1", "0"], [1, 0], [1.0, 0.0], np.array([1, 0])], ids=str)
@pytest.mark.parametrize("y", [[0, 1], [0.0, 1.0], ["0", "1"], ["0.0", " 1.0"], [np.float32(0), np.int8(1)]], ids=str)
def test_one_number_in_any_spelling_is_one_class(names: Any, y: Any) -> None:
    got, classes = v.check_labels(y, 2, 2, class_names=names)
    assert got.tolist() == [1, 0]
    assert classes.tolist() == list(names)


def test_spellings_that_are_classes_of_their_own() -> None:
    assert codes(["1", "1.0"], 2, class_names=["1.0", "1"]) == [1, 0]


def test_words_for_missing_are_labels_when_a_class_has_that_name() -> None:
    assert codes(["None", "NA", "yes"], 2, class_names=["yes", "None"]) == [1, -1, 0]


def test_integers_are_positions_where_no_class_is_a_number() -> None:
    assert codes([1, 0, -1], 2, class_names=["neg", "pos"]) == [1, 0, -1]
    assert codes([1.0, np.nan], 2, class_names=["neg", "pos"]) == [1, -1]
    with pytest.raises(ValueError, match="holds 2 at row 1, which matches no class"):
        codes([1, 2], 2, class_names=["neg", "pos"])
    with pytest.raises(ValueError, match="holds '1' at row 0, which matches no class"):
        codes(["1"], 2, class_names=["neg", "pos"])
    with pytest.raises(ValueError, match="holds 1 at row 1"):
        codes(["neg", 1], 2, class_names=["neg", "pos"])


def test_a_class_called_minus_one() -> None:
    with pytest.warns(UserWarning, match="a class is called -1"):
        assert codes([-1, 1, None], 2, class_names=[-1, 1]) == [0, 1, -1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert codes([1, None], 2, class_names=[-1, 1]) == [1, -1]


def test_a_label_that_no_class_matches_is_named_with_its_row() -> None:
    with pytest.raises(
        ValueError, match=r"y holds 'zebra' at row 2, which matches no class; the classes are 'cat', 'dog'"
    ):
        codes(["cat", "dog", "zebra"], 2, class_names=["cat", "dog"])
    with pytest.raises(ValueError, match=r"'ape' at row 0, .*\(2 distinct labels match none\).*'c9' and 40 more"):
        codes(["ape", "zebra", "zebra"], 50, class_names=[f"c{i}" for i in range(50)])


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        ([0.5, 1.0], ValueError, "Unknown label type: continuous"),
        ([np.inf, 0], ValueError, "Unknown label type"),
        ([0, "a"], ValueError, "mixes text such as 'a' with numbers such as 0"),
        ([0], ValueError, "y has 1 entry, but there are 2 rows"),
        ([[0], [1]], TypeError, "lists or dicts"),
        (np.array([[0], [1]]), ValueError, "must be one-dimensional"),
        ("ab", TypeError, "got str"),
        (5, TypeError, "got int"),
        ([[0, 1], {"a": 1}], TypeError, "lists or dicts"),
    ],
)
def test_what_cannot_be_labels(y: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        v.check_labels(y, 2, 2)


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["a"], "class_names has 1 name, but the scores have 2"),
        (["a", "a"], "'a' comes twice"),
        (["a", " "], r"class_names\[1\] is empty"),
        ([1, "1"], "'1' comes twice"),
    ],
)
def test_bad_class_names(names: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        v.check_labels([None], 1, 2, class_names=names)


@given(st.lists(st.sampled_from(["ant", "bee", "cat", None]), min_size=1, max_size=30), st.permutations([0, 1, 2]))
def test_permuted_class_names_permute_the_codes(y: list[str | None], order: list[int]) -> None:
    names = np.array(["ant", "bee", "cat"])
    here, there = (np.array(codes(y, 3, class_names=n)) for n in (names, names[order]))
    known = here >= 0
    np.testing.assert_array_equal(known, there >= 0)
    np.testing.assert_array_equal(names[here[known]], names[order][there[known]])


# -- names, ids, groups ----------------------------------------------------------------------------------------------


def test_text_of_numbers_dates_and_bytes() -> None:
    assert [v.to_text(x) for x in (7.0, np.float32(7), np.int8(7), " 7 ", b"7", 0.5, True, np.inf)] == [
        *["7"] * 5,
        "0.5",
        "True",
        "inf",
    ]
    assert v.as_text(np.array(["2020-01-02"], dtype="datetime64[ns]"))[0].startswith("2020-01-02")
    assert v.as_text([1 + 2j]).tolist() == ["(1+2j)"]
    assert v.as_text(np.array([1 + 2j])).tolist() == ["(1+2j)"]


def test_the_first_few() -> None:
    assert v.first_few("abc") == "'a', 'b', 'c'"
    assert v.first_few("abcde", 2) == "'a', 'b' and 3 more"
    assert v.first_few([]) == ""
    assert did_you_mean("brt", ["bert", "gpt"]) == "; did you mean 'bert'?"
    assert did_you_mean("xyz", ["bert"]) == "."


def test_row_ids() -> None:
    assert v.check_row_ids(None, 2).tolist() == ["0", "1"]
    assert v.check_row_ids([7, "a"], 2).tolist() == ["7", "a"]
    with pytest.raises(ValueError, match=r"row_ids is missing in 2 rows, the first is row 1"):
        v.check_row_ids(["a", None, ""], 3)
    with pytest.raises(ValueError, match=r"4 ids are doubled: 'a', 'b', 'c' and 1 more"):
        v.check_row_ids(list("aabbccddddx"), 11)


def test_groups() -> None:
    assert v.check_groups(None, 3) == {}
    cases: list[tuple[Any, str]] = [
        ([1, None, "x"], "group"),
        (pd.Series([1, np.nan, "x"]), "group"),
        (pd.Series([1, None, "x"], name="site"), "site"),
        ({"site": [1.0, "", "x"]}, "site"),
        (pd.DataFrame({"site": ["1", None, "x"]}, index=[3, 2, 1]), "site"),
        (pd.DataFrame({"site": pd.Categorical(["1", None, "x"])}), "site"),
    ]
    for groups, name in cases:
        got = v.check_groups(groups, 3)
        assert list(got) == [name]
        assert got[name].tolist() == ["1", "missing", "x"] and got[name].dtype == object
    assert v.check_groups({"a": [1.0, np.nan]}, 2)["a"].tolist() == ["1", "missing"]  # whole numbers stay whole


def test_bad_groups() -> None:
    with pytest.raises(ValueError, match=r"groups\['a'\] has 1 entry, but there are 2 rows"):
        v.check_groups({"a": [1]}, 2)
    with pytest.raises(ValueError, match="two columns of the same name"):
        v.check_groups({"a": [1], " a": [1]}, 1)
    with pytest.raises(ValueError, match="has no name"):
        v.check_groups({"": [1]}, 1)


# -- numbers ---------------------------------------------------------------------------------------------------------


def test_level() -> None:
    assert v.check_level(0.9) == 0.9 and v.check_level("0.5") == 0.5
    for level in (0, 1, 90, -0.1, np.nan):
        with pytest.raises(ValueError, match=r"strictly between 0 and 1.*pass level=0\.9"):
            v.check_level(level)
    for wrong in (None, "high", [0.9, 0.8]):
        with pytest.raises(TypeError, match="level must be a number"):
            v.check_level(wrong)


def test_sample_weight() -> None:
    np.testing.assert_array_equal(v.check_sample_weight(None, 2), [1, 1])
    np.testing.assert_array_equal(v.check_sample_weight(3, 2), [3, 3])
    mine = np.array([0.0, 2.0])
    got = v.check_sample_weight(mine, 2)
    assert not np.shares_memory(got, mine)
    np.testing.assert_array_equal(got, mine)


@pytest.mark.parametrize(
    ("weights", "error", "match"),
    [
        ([1.0], ValueError, r"shape \(1,\), but there are 2 rows"),
        ([[1.0], [1.0]], ValueError, "shape"),
        ([1.0, -1.0], ValueError, "it is -1 at row 1"),
        ([np.nan, 1.0], ValueError, "it is nan at row 0"),
        ([np.inf, 1.0], ValueError, "it is inf at row 0"),
        ([1e300, 1.0], ValueError, r"between 0 and 1e\+09, but it is 1e\+300 at row 0"),
        ([1e-12, 1e-12], ValueError, "sums to 2e-12, less than a row"),
        ([0, 0], ValueError, "zero in every row"),
        (["a", "b"], TypeError, "must hold numbers"),
    ],
)
def test_bad_sample_weight(weights: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        v.check_sample_weight(weights, 2)


def test_effective_rows() -> None:
    assert v.effective_rows(np.ones(7)) == 7
    assert v.effective_rows(np.full(10, 0.1)) == pytest.approx(1)
    assert v.effective_rows(np.array([1e9, 1.0, 1.0])) == pytest.approx(1)
    assert v.effective_rows(np.zeros(3)) == 0


@pytest.mark.parametrize("seed", [None, 0, 2**32 - 1, np.int64(3), np.random.RandomState(0)])
def test_seeds(seed: Any) -> None:
    assert v.check_seed(seed) is seed


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "x", True, [1], np.random.default_rng(0)])
def test_bad_seeds(seed: Any) -> None:
    with pytest.raises(ValueError, match="random_state must be None, a whole number from 0 to 4294967295"):
        v.check_seed(seed)
