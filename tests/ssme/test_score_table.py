"""The table in memory: made from arrays and frames, joined by id, cut, relabeled."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssme._validation import check_scores
from ssme.score_table import ScoreTable, read_scores

P = np.array([[0.9, 0.7], [0.2, 0.4], [0.5, 0.6]])


def simplex(n: int, n_models: int, n_classes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), (n, n_models))


@pytest.fixture
def table() -> ScoreTable:
    return ScoreTable.from_arrays(
        simplex(4, 2, 3),
        ["cat", None, "dog", ""],
        model_names=["bert", "gpt"],
        class_names=["dog", "cat", "ape"],
        row_ids=["w", "x", "y", "z"],
        groups={"site": ["A", "B", None, "A"]},
    )


# -- from arrays -----------------------------------------------------------------------------------------------------


def test_everything_in_its_place(table: ScoreTable) -> None:
    assert (table.n_rows, table.n_models, table.n_classes, table.n_labeled) == (4, 2, 3, 2)
    assert table.labels.tolist() == [1, -1, 0, -1] and table.labels.dtype == np.int64
    assert table.labeled.tolist() == [True, False, True, False]
    assert table.model_names == ("bert", "gpt") and table.class_names == ("dog", "cat", "ape")
    assert table.groups["site"].tolist() == ["A", "B", "missing", "A"]
    assert repr(table) == "ScoreTable(4 rows, 2 models, 3 classes, 2 labeled, groups 'site')"


def test_defaults() -> None:
    table = ScoreTable.from_arrays(P)
    assert table.model_names == ("model_0", "model_1")
    assert table.class_names == ("0", "1")
    assert table.row_ids.tolist() == ["0", "1", "2"]
    assert table.n_labeled == 0 and table.groups == {} and table.score_type == "probability"
    assert ScoreTable.from_arrays(pd.DataFrame(P, columns=["a", "b"])).model_names == ("a", "b")
    assert ScoreTable.from_arrays(P, ["spam", "ham", None]).class_names == ("ham", "spam")


def test_arrays_are_read_only_copies() -> None:
    scores, labels, ids = simplex(3, 2, 2), np.array([0, 1, -1]), np.array(["a", "b", "c"], dtype=object)
    before = scores.copy()
    table = ScoreTable.from_arrays(scores, labels, row_ids=ids, groups={"g": ids})
    scores[:] = 0
    np.testing.assert_array_equal(table.scores, before)
    for array in (table.scores, table.labels, table.row_ids, table.groups["g"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    labels[0] = ids[0] = 1  # the caller's own are still writable
    with pytest.raises(AttributeError):
        table.labels = labels  # type: ignore[misc]


def test_the_constructor_leaves_its_arguments_writable_and_checks_sizes(table: ScoreTable) -> None:
    scores = np.array(table.scores)
    again = ScoreTable(scores, table.labels, table.model_names, table.class_names, table.row_ids, {}, "probability")
    assert scores.flags.writeable and not again.scores.flags.writeable
    with pytest.raises(ValueError, match="do not fit together"):
        ScoreTable(scores, table.labels[:2], table.model_names, table.class_names, table.row_ids)
    with pytest.raises(ValueError, match="do not fit together"):
        ScoreTable(scores, table.labels, table.model_names[:1], table.class_names, table.row_ids)


def test_logits_are_kept_when_declared() -> None:
    table = ScoreTable.from_arrays([[3.0], [-2.0]], score_type="logit")
    np.testing.assert_array_equal(table.scores, [[[0, 3]], [[0, -2]]])
    assert repr(table).endswith("0 labeled, logits)")
    with pytest.raises(
        ValueError, match="row 0, model 'bert' holds 3; these look like logits: pass score_type='logit'"
    ):
        ScoreTable.from_arrays([[3.0], [-2.0]], model_names=["bert"])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"model_names": ["a"]}, "model_names has 1 name, but the scores have 2"),
        ({"model_names": ["a", "a"]}, "'a' comes twice"),
        ({"class_names": ["a"]}, "class_names has 1 name"),
        ({"row_ids": ["a", "b"]}, "row_ids has 2 entries, but there are 3 rows"),
        ({"row_ids": ["a", "b", "a"]}, "1 id is doubled: 'a'"),
        ({"groups": [1]}, "but there are 3 rows"),
        ({"labels": [0, 1]}, "labels has 2 entries, but there are 3 rows"),
        ({"labels": ["zebra", "0", "1"], "class_names": [0, 1]}, "labels holds 'zebra' at row 0"),
    ],
)
def test_bad_arrays(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ScoreTable.from_arrays(P, **options)


def test_copies_and_pickles(table: ScoreTable) -> None:
    assert pickle.loads(pickle.dumps(table)).equals(table)
    assert copy.deepcopy(table).equals(table)


def test_equals(table: ScoreTable) -> None:
    assert table.equals(table.select()) and not table.equals("table")
    others = [
        table.select(models=[1, 0]),
        table.select(rows=[0, 1]),
        table.with_labels(None),
        table.with_groups({"site": "AAAA"[:0] or list("AAAA")}),
        table.with_groups({"more": list("AAAA")}),
        table.order_classes(["cat", "dog", "ape"]),
    ]
    assert not any(table.equals(o) or o.equals(table) for o in others)


# -- frames ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("ask", [True, False])
def test_frame_there_and_back(table: ScoreTable, layout: Any, ask: bool) -> None:
    frame = table.to_frame(layout)
    again = ScoreTable.from_frame(frame, layout=layout if ask else "auto")
    assert again.equals(table)


def test_columns_of_the_layouts(table: ScoreTable) -> None:
    wide, long = table.to_frame(), table.to_frame("long")
    assert list(wide.columns[:4]) == ["id", "label", "site", "bert:dog"] and len(wide.columns) == 3 + 6
    assert list(long.columns) == ["id", "model", "class", "score", "label", "site"] and len(long) == 4 * 6
    assert wide["label"].tolist() == ["cat", None, "dog", None]
    assert table.to_frame(separator="|").columns[-1] == "gpt|ape"
    with pytest.raises(ValueError, match="layout must be 'wide' or 'long'"):
        table.to_frame("binary")  # type: ignore[arg-type]


def test_reordered_columns_are_told_apart_by_name(table: ScoreTable) -> None:
    frame = table.to_frame()
    shuffled = frame[list(frame.columns[:3]) + list(frame.columns[:2:-1])]
    again = ScoreTable.from_frame(shuffled, class_names=["dog", "cat", "ape"]).select(models=["bert", "gpt"])
    assert again.equals(table)


def test_the_frame_is_not_changed(table: ScoreTable) -> None:
    frame = table.to_frame()
    frame.columns = pd.Index([f" {c}" for c in frame.columns])
    before = frame.copy()
    ScoreTable.from_frame(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_model_layout() -> None:
    frame = pd.DataFrame({"id": [7, 8], "cat": [0.2, 0.9], "dog": [0.8, 0.1], "label": ["dog", None]})
    table = ScoreTable.from_frame(frame)
    assert table.model_names == ("model",) and table.class_names == ("cat", "dog")
    assert table.row_ids.tolist() == ["7", "8"] and table.labels.tolist() == [1, -1]
    turned = ScoreTable.from_frame(frame, class_names=["dog", "cat"], model_name="bert")
    assert turned.model_names == ("bert",) and turned.labels.tolist() == [0, -1]
    np.testing.assert_array_equal(turned.scores[:, 0, 0], [0.8, 0.1])
    with pytest.raises(ValueError, match=r"it lacks 'ape' and has 'cat' as well"):
        ScoreTable.from_frame(frame, layout="model", class_names=["dog", "ape"])


def test_binary_layout() -> None:
    frame = pd.DataFrame({"bert": [0.2, 0.9], "gpt": [0.1, 0.3], "y": [1, -1]})
    table = ScoreTable.from_frame(frame)
    assert table.model_names == ("bert", "gpt") and table.class_names == ("0", "1")
    assert table.labels.tolist() == [1, -1]
    named = ScoreTable.from_frame(frame.assign(y=["yes", ""]), class_names=["no", "yes"])
    assert named.labels.tolist() == [1, -1]
    with pytest.raises(
        ValueError, match="labels holds 'yes' at row 0, which matches no class; the classes are '0', '1'"
    ):
        ScoreTable.from_frame(frame.assign(y=["yes", ""]))  # which of them P(class 1) means cannot be guessed


def test_binary_layout_of_three_models_with_two_class_names() -> None:
    frame = pd.DataFrame({"a": [0.2], "b": [0.3], "c": [0.5]})  # sums to 1 by accident
    assert ScoreTable.from_frame(frame, class_names=["no", "yes"]).n_models == 3


def test_a_single_column_of_a_generic_name_takes_the_name_of_the_model() -> None:
    frame = pd.DataFrame({"id": ["a"], "score": [0.2]})
    assert ScoreTable.from_frame(frame, model_name="bert").model_names == ("bert",)
    assert ScoreTable.from_frame(frame).model_names == ("score",)
    assert ScoreTable.from_frame(frame.rename(columns={"score": "gpt"}), model_name="bert").model_names == ("gpt",)


def test_opposite_models_need_their_layout() -> None:
    frame = pd.DataFrame({"a": [0.2, 0.7], "b": [0.8, 0.3]})
    assert ScoreTable.from_frame(frame).n_models == 1
    assert ScoreTable.from_frame(frame, layout="binary").n_models == 2


def test_auto_refuses_to_guess() -> None:
    frame = pd.DataFrame({"cat": [0.2, 0.5, 0.5], "dog": [0.8, 0.4, 0.5]})
    with pytest.raises(
        ValueError, match=r"sum to 1 in 2 of 3 rows, but to 0\.9 in row 1.*layout='model'.*layout='binary'"
    ):
        ScoreTable.from_frame(frame)
    with pytest.raises(ValueError, match=r"row 1, model 'model' sums to 0\.9"):
        ScoreTable.from_frame(frame, layout="model")
    with pytest.raises(ValueError, match="logits do not show"):
        ScoreTable.from_frame(frame * 9, score_type="logit")
    assert ScoreTable.from_frame(frame * 9, score_type="logit", layout="model").n_classes == 2
    assert ScoreTable.from_frame(frame * 9, score_type="logit", layout="binary").n_models == 2


def test_a_score_without_its_separator_is_told() -> None:
    frame = pd.DataFrame({"a:0": [0.2], "a:1": [0.8], "b": [0.25]})
    with pytest.raises(ValueError, match=r"'a:0', 'a:1' carry the separator ':', but 'b' does not"):
        ScoreTable.from_frame(frame)
    assert ScoreTable.from_frame(frame, group_columns=["b"]).groups["b"].tolist() == ["0.25"]
    assert ScoreTable.from_frame(frame, group_columns="b").n_models == 1
    assert ScoreTable.from_frame(frame.assign(b=[3])).groups["b"].tolist() == ["3"]


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (["a:0", "a:1", "b:0"], "not a full table of models and classes: column 'b:1' is missing"),
        (["a:0", "a: 0", "b:0"], "two columns are the same pair"),
        (["a:1", "b:1"], "at least 2 are needed"),
    ],
)
def test_wide_columns_that_do_not_make_a_table(columns: list[str], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ScoreTable.from_frame(pd.DataFrame([[0.5] * len(columns)], columns=columns))


def test_names_that_hold_the_separator() -> None:
    scores = simplex(2, 2, 2)
    for models, classes in ((["a:x", "b:x"], ["0", "1"]), (["a", "b"], ["x:0", "y:1"])):
        table = ScoreTable.from_arrays(scores, model_names=models, class_names=classes)
        assert ScoreTable.from_frame(table.to_frame()).equals(table)
    table = ScoreTable.from_arrays(scores, model_names=["a:x", "b:x"], class_names=["x:0", "y:1"])
    with pytest.raises(ValueError, match="hold the separator ':'"):
        table.to_frame()
    assert ScoreTable.from_frame(table.to_frame(separator="|"), separator="|").equals(table)


def test_wide_without_a_marked_column() -> None:
    with pytest.raises(ValueError, match="no column is called 'model:class'"):
        ScoreTable.from_frame(pd.DataFrame({"a": [0.1]}), layout="wide")


def test_long_frames_in_any_order(table: ScoreTable) -> None:
    long = table.to_frame("long")
    mixed = long.sample(frac=1, random_state=0)
    again = ScoreTable.from_frame(mixed, class_names=table.class_names).select(table.model_names, table.row_ids)
    assert again.equals(table)
    upper = long.rename(columns={"model": "Model", "class": "CLASS", "score": "Score", "id": "ID"})
    assert ScoreTable.from_frame(upper).equals(table)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: pd.concat([f, f.iloc[[3]]]), "1 score comes twice, such as id 'w', model 'gpt', class 'dog'; drop"),
        (lambda f: f.drop(index=3), "1 score is missing, such as id 'w', model 'gpt', class 'dog'; each id"),
        (lambda f: f.iloc[:-1], "1 score is missing, such as id 'z', model 'gpt', class 'ape'"),
        (lambda f: f.drop(columns="id"), "needs an id column"),
        (lambda f: f.drop(columns="score"), "needs the columns id, model, class and score"),
        (lambda f: f.assign(model=f["model"].where(f.index > 0)), "column 'model' is empty at row 0"),
        (lambda f: f.assign(label=f["class"]), "column 'label' differs between rows of one 'id'"),
        (lambda f: f.assign(score=np.nan), "24 scores are missing or NaN in 24 of 24 rows"),
    ],
)
def test_bad_long_frames(table: ScoreTable, change: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ScoreTable.from_frame(change(table.to_frame("long")), layout="long")


def test_long_columns_that_vary_within_an_id_are_no_groups(table: ScoreTable) -> None:
    long = table.to_frame("long").assign(run=range(24))
    assert list(ScoreTable.from_frame(long).groups) == ["site"]
    with pytest.raises(ValueError, match="column 'run' differs"):
        ScoreTable.from_frame(long, group_columns=["run"])


@pytest.mark.parametrize(
    ("frame", "options", "match"),
    [
        (pd.DataFrame({"a": [], "b": []}), {}, "header but not one row"),
        (pd.DataFrame({"id": [1], "label": [1]}), {}, "no column of scores is left"),
        (pd.DataFrame([[0.1, 0.2]], columns=["a", "a"]), {}, "1 column name comes twice: 'a'"),
        (pd.DataFrame([[0.1, 0.2]], columns=["a", " a"]), {}, "column name comes twice"),
        (pd.DataFrame([[0.1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), {}, "several levels"),
        (pd.DataFrame({"a": [0.1, "x"]}), {}, "column 'a' holds 'x' at row 1, which is not a number.*group_columns"),
        (pd.DataFrame({"a": [True, False]}), {}, "column 'a' holds 'True' at row 0"),
        (
            pd.DataFrame({"a": [0.1, None]}),
            {},
            "1 score is missing or NaN in 1 of 2 rows, the first in column 'a', row 1",
        ),
        (pd.DataFrame({"a": [0.1]}), {"id_column": "key"}, "no column 'key' for id_column among 'a'"),
        (pd.DataFrame({"truth": [1], "a": [0.1]}), {"label_column": "trut"}, "did you mean 'truth'"),
        (pd.DataFrame({"a": [0.1]}), {"group_columns": ["site"]}, "no column 'site' for group_columns"),
        (pd.DataFrame({"id": [1, 1], "a": [0.1, 0.2]}), {}, "1 id is doubled: '1'"),
        (pd.DataFrame({"id": ["a", None], "a": [0.1, 0.2]}), {}, "is missing in 1 row"),
        (pd.DataFrame({"a": [0.1]}), {"layout": "tall"}, "layout must be one of 'auto', 'wide'"),
        (pd.DataFrame({"a": [0.1]}), {"separator": " "}, "separator must be text"),
        (pd.DataFrame({"a": [3.1]}), {}, "model 'a' holds 3.1; these look like logits"),
        (pd.DataFrame({"a": [0.1]}), {"score_type": "odds"}, "score_type must be"),
    ],
)
def test_bad_frames(frame: pd.DataFrame, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ScoreTable.from_frame(frame, **options)


def test_pandas_dtypes_of_columns() -> None:
    frame = pd.DataFrame(
        {
            "id": pd.Categorical(["x", "y"]),
            "a": pd.array([0.1, 0.25], dtype="Float64"),
            "b": np.array([0.5, 0.25], dtype=np.float32),
            "c": np.array(["0.5", 0.75], dtype=object),
            "d": pd.array([0, 1], dtype="Int64"),
            "label": pd.array([1, None], dtype="Int64"),
        }
    )
    table = ScoreTable.from_frame(frame, layout="binary")
    np.testing.assert_array_equal(table.scores[:, :, 1], [[0.1, 0.5, 0.5, 0], [0.25, 0.25, 0.75, 1]])
    assert table.labels.tolist() == [1, -1]
    with pytest.raises(ValueError, match="1 score is missing or NaN"):
        ScoreTable.from_frame(frame.assign(a=pd.array([0.1, None], dtype="Float64")), layout="binary")


def test_a_class_called_like_a_label_or_id_column() -> None:
    """Fractions are scores, whatever the column is called: "y" for yes, "id" for Indonesian."""
    frame = pd.DataFrame({"id": [0.2, 0.5], "y": [0.8, 0.5]})
    table = ScoreTable.from_frame(frame)
    assert table.class_names == ("id", "y") and table.n_labeled == 0 and table.row_ids.tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("index", "ids"),
    [
        (None, ["0", "1"]),
        (pd.Index([5, 3]), ["5", "3"]),
        (pd.Index([4, 4]), ["0", "1"]),
        (pd.Index(["a", "b"], name="key"), ["a", "b"]),
    ],
    ids=str,
)
def test_the_index_gives_the_ids_where_it_tells_something(index: Any, ids: list[str]) -> None:
    frame = pd.DataFrame({"m": [0.1, 0.4]}, index=index)
    assert ScoreTable.from_frame(frame).row_ids.tolist() == ids
    assert ScoreTable.from_frame(frame.assign(id=["q", "r"])).row_ids.tolist() == ["q", "r"]
    if index is not None and index.name:
        assert ScoreTable.from_frame(frame, id_column="key").row_ids.tolist() == ids


def test_groups_that_would_be_taken_for_something_else() -> None:
    for name, layout in (("id", "wide"), ("y", "wide"), ("a:b", "wide"), ("Model", "long")):
        table = ScoreTable.from_arrays(P, groups={name: list("abc")})
        with pytest.raises(ValueError, match=f"the group {name!r} cannot be told"):
            table.to_frame(layout)  # type: ignore[arg-type]


# -- join ------------------------------------------------------------------------------------------------------------


def test_join_goes_by_id_and_class_name(table: ScoreTable) -> None:
    one = table.select(models=["bert"])
    two = table.select(models=["gpt"], rows=[2, 0, 3, 1]).order_classes(["ape", "dog", "cat"])
    assert ScoreTable.join([one, two]).equals(table)
    assert ScoreTable.join([table]).equals(table)


def test_join_fills_labels_and_groups(table: ScoreTable) -> None:
    one = table.select(models=["bert"]).with_labels(["cat"], row_ids=["w"])
    bare = ScoreTable.from_arrays(
        table.scores[:, 1:],
        model_names=["gpt"],
        class_names=table.class_names,
        row_ids=table.row_ids,
        groups={"site": ["A", None, "C", "A"], "age": [1, 2, 3, 4]},
    )
    joined = ScoreTable.join([one, bare.with_labels(["dog"], row_ids=["y"])])
    assert joined.labels.tolist() == [1, -1, 0, -1]
    assert joined.groups["site"].tolist() == ["A", "B", "C", "A"] and joined.groups["age"].tolist() == list("1234")


def test_join_says_what_is_wrong(table: ScoreTable) -> None:
    one, two = table.select(models=["bert"]), table.select(models=["gpt"])
    cases = [
        ([], "no table to join"),
        ([one, one], "table 0 and table 1 both have the model 'bert'"),
        (
            [one, two.select(rows=[0, 1])],
            r"table 1 lacks 2 row ids of table 0 \('y', 'z'\); the tables must hold the same",
        ),
        ([one.select(rows=[0]), two], r"table 1 has 3 row ids that table 0 lacks \('x', 'y', 'z'\)"),
        ([one, two.with_labels(["ape"], row_ids=["w"])], r"the label in table 1 contradicts .* 1 row \('w'\)"),
        ([one, two.with_groups({"site": list("BBBA")})], r"the group 'site' in table 1 contradicts .* \('w'\)"),
    ]
    for tables, match in cases:
        with pytest.raises(ValueError, match=match):
            ScoreTable.join(tables)
    other = ScoreTable.from_arrays(P, model_names=["p", "q"], row_ids=["w", "x", "y"])
    with pytest.raises(ValueError, match=r"b\.csv lacks 1 row id of a\.csv \('z'\); "):
        ScoreTable.join([one, other], names=["a.csv", "b.csv"])
    with pytest.raises(
        ValueError, match=r"classes of table 1 are not those of table 0: it lacks .* and has '0', '1' as"
    ):
        ScoreTable.join([one.select(rows=[0, 1, 2]), other])
    logits = ScoreTable.from_arrays(P, model_names=["r", "s"], row_ids=other.row_ids, score_type="logit")
    with pytest.raises(ValueError, match="table 1 holds logit scores, but earlier tables probability scores"):
        ScoreTable.join([other, logits])


@given(st.permutations(list(range(6))), st.permutations(list(range(3))), st.integers(0, 99))
def test_join_undoes_any_shuffle(rows: list[int], classes: list[int], seed: int) -> None:
    names = np.array(["p", "q", "r"])
    labels = np.random.default_rng(seed).integers(-1, 3, 6)
    table = ScoreTable.from_arrays(
        simplex(6, 3, 3, seed),
        [None if c < 0 else names[c] for c in labels],
        class_names=names,
        row_ids=list("abcdef"),
    )
    parts = [table.select(models=[m], rows=np.roll(rows, m)).order_classes(names[np.roll(classes, m)]) for m in (1, 2)]
    assert ScoreTable.join([table.select(models=[0]), *parts]).equals(table)


# -- changed copies --------------------------------------------------------------------------------------------------


def test_with_labels(table: ScoreTable) -> None:
    assert table.with_labels(["ape", "dog", None, -1]).labels.tolist() == [2, 0, -1, -1]
    assert table.with_labels(pd.Series(["ape", "cat"]), row_ids=["z", "w"]).labels.tolist() == [1, -1, -1, 2]
    assert table.with_labels(None).n_labeled == 0
    assert table.n_labeled == 2  # the old table stays
    cases: list[tuple[Any, Any, str]] = [
        (["ape"], None, "labels has 1 entry, but there are 4 rows"),
        (["ape"], ["q"], "labels has 1 row id that the scores lack: 'q'"),
        (["ape", "dog"], ["w", "w"], "1 id is doubled: 'w'"),
        (["ape", "dog"], ["w"], "labels has 2 entries, but there is 1 row"),
        (["ape", "eel"], ["w", "x"], "holds 'eel' at row 1"),
    ]
    for labels, ids, match in cases:
        with pytest.raises(ValueError, match=match):
            table.with_labels(labels, row_ids=ids)


def test_with_groups(table: ScoreTable) -> None:
    more = table.with_groups({"age": [1, 2, 3, 4], "site": list("DDDD")})
    assert list(more.groups) == ["site", "age"] and more.groups["site"].tolist() == list("DDDD")
    some = table.with_groups({"age": [4, 1]}, row_ids=["z", "w"])
    assert some.groups["age"].tolist() == ["1", "missing", "missing", "4"]
    assert list(table.groups) == ["site"]
    with pytest.raises(ValueError, match="groups has 1 row id that the scores lack"):
        table.with_groups({"age": [4]}, row_ids=["q"])


def test_select(table: ScoreTable) -> None:
    for rows in (
        [1, 3],
        [False, True, False, True],
        np.array([1, 3]),
        ["x", "z"],
        table.row_ids[[1, 3]],
        slice(1, 4, 2),
    ):
        got = table.select(models=["gpt"], rows=rows)
        assert got.row_ids.tolist() == ["x", "z"] and got.groups["site"].tolist() == ["B", "A"]
        np.testing.assert_array_equal(got.scores, table.scores[[1, 3]][:, [1]])
    assert table.select(models="gpt").model_names == table.select(models=-1).model_names == ("gpt",)
    assert table.select(models=["gpt", 0]).model_names == ("gpt", "bert")
    assert table.select(rows=[]).n_rows == 0
    cases: list[tuple[dict[str, Any], str]] = [
        ({"models": ["brt"]}, "there is no model 'brt' among 'bert', 'gpt'; did you mean 'bert'?"),
        ({"models": [2]}, "there is no model 2; the positions are 0 to 1"),
        ({"models": []}, "no model is selected"),
        ({"models": ["gpt", 1]}, "names a model twice"),
        ({"rows": ["q"]}, "there is no row id 'q'"),
        ({"rows": [0, 0]}, "1 id is doubled: 'w'"),
    ]
    for options, match in cases:
        with pytest.raises(ValueError, match=match.replace("?", r"\?")):
            table.select(**options)


def test_order_classes(table: ScoreTable) -> None:
    turned = table.order_classes(["ape", "cat", "dog"])
    np.testing.assert_array_equal(turned.scores, table.scores[:, :, ::-1])
    assert turned.labels.tolist() == [1, -1, 2, -1]
    with pytest.raises(ValueError, match="the classes of the table are not those of class_names: it lacks 'eel'"):
        table.order_classes(["ape", "cat", "eel"])


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda t: ScoreTable.from_frame(3), "frame must be a DataFrame, got int"),
        (lambda t: ScoreTable.from_frame(np.ones((2, 2))), "frame must be a DataFrame, got ndarray"),
        (lambda t: ScoreTable.join(3), "tables must be ScoreTables, got int"),
        (lambda t: ScoreTable.join([t, 4]), "tables must be ScoreTables, got int"),
        (lambda t: t.select(rows=3.5), "rows must be a mask, positions, a slice or ids, got 3.5"),
        (lambda t: t.select(rows=[0.5]), "rows must be a mask, positions, a slice or ids, got float64"),
        (lambda t: t.with_labels([1], row_ids=3), "row_ids must be a one-dimensional array or list, got int"),
        (lambda t: t.with_groups(["a"], row_ids=3), "row_ids must be a one-dimensional array or list, got int"),
        (lambda t: t.order_classes(3), "class_names must be a one-dimensional array or list, got int"),
        (lambda t: t.write(3), "path must be text or a path, got int"),
    ],
)
def test_wrong_types_are_named(table: ScoreTable, act: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        act(table)


def test_rows_that_are_not_there(table: ScoreTable) -> None:
    with pytest.raises(ValueError, match="positions from 0 to 9, but those of the table end at 3"):
        table.select(rows=[0, 9])
    with pytest.raises(ValueError, match="the mask of rows has 2 entries, but the table has 4"):
        table.select(rows=[True, False])
    assert table.select(rows="x").row_ids.tolist() == ["x"] and table.select(rows=-1).row_ids.tolist() == ["z"]


def test_doubled_columns_of_a_frame() -> None:
    frame = pd.DataFrame([[0.1, 0.2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="'a' comes twice"):
        ScoreTable.from_arrays(frame)
    with pytest.raises(ValueError, match="scores has several columns called 'a'; rename or drop one"):
        check_scores(frame)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_label_weights_go_round(tmp_path, suffix, layout):
    table = ScoreTable.from_arrays(
        [[0.9, 0.7], [0.2, 0.4], [0.5, 0.6]],
        ["yes", None, "no"],
        class_names=["no", "yes"],
        label_weight=[0.1 + 0.2, float("nan"), 2.0],
    )
    assert table.label_weight.tolist() == [0.1 + 0.2, 1.0, 2.0]
    path = tmp_path / f"t{suffix}"
    table.write(path, layout=layout)
    again = read_scores(path)
    assert again.equals(table) and not again.equals(table.with_labels(["yes", None, "no"]))
    assert again.select(rows=[2, 0]).label_weight.tolist() == [2.0, 0.1 + 0.2]


def test_label_weights_are_joined_by_id_and_go_with_their_labels(tmp_path):
    one = ScoreTable.from_arrays([[0.9], [0.2]], [1, -1], model_names=["a"], row_ids=["x", "y"], label_weight=[3, 1])
    two = ScoreTable.from_arrays([[0.3], [0.8]], [0, -1], model_names=["b"], row_ids=["y", "x"], label_weight=[5, 1])
    assert ScoreTable.join([one, two]).label_weight.tolist() == [3, 5]
    clash = ScoreTable.from_arrays([[0.3], [0.8]], [1, -1], model_names=["b"], row_ids=["x", "y"], label_weight=[4, 1])
    with pytest.raises(ValueError, match="label_weight in table 1 contradicts an earlier table in 1 row"):
        ScoreTable.join([one, clash])
    assert one.with_labels([0], row_ids=["y"]).label_weight is None
    assert one.with_labels([0], row_ids=["y"], label_weight=[7]).label_weight.tolist() == [1, 7]


@pytest.mark.parametrize(
    ("cell", "said"),
    [("", "nan at data row 1"), ("-1", "is -1 at data row 1"), ("heavy", "'heavy'"), ("inf", "is inf")],
)
def test_bad_label_weights_in_a_file(tmp_path, cell, said):
    path = tmp_path / "t.csv"
    path.write_text(f"id,label,label_weight,a,b\nx,1,{cell},0.2,0.9\ny,,,0.5,0.6\n")
    with pytest.raises(ValueError, match=said):
        read_scores(path)


def test_a_group_called_like_the_weights_is_not_written(tmp_path):
    table = ScoreTable.from_arrays([[0.9], [0.2]], groups={"label_weight": ["a", "b"]})
    with pytest.raises(ValueError, match="label_weight"):
        table.write(tmp_path / "t.csv")
