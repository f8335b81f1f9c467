"""Score files of every format and layout, and every way in which a file can be bad."""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssme import _table_io as io
from ssme._table_io import _csv
from ssme.score_table import ScoreTable, read_scores

FORMATS = ["npz", "csv", "csv.gz", "tsv", "tsv.gz", "parquet"]
WIDE = "id,bert:no,bert:yes,gpt:no,gpt:yes,label\na,0.1,0.9,0.25,0.75,yes\nb,0.5,0.5,1.0,0.0,\n"


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes to a file of this name."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def table() -> ScoreTable:
    scores = np.random.default_rng(0).dirichlet(np.ones(3), (5, 2))
    return ScoreTable.from_arrays(
        scores,
        ["cat", None, "dog", "", "ape"],
        model_names=["bert, base", 'the "gpt"'],
        class_names=["dog", "cat", "ape"],
        row_ids=["007", "NA", "nan", "1e5", "\u00e9\n'x'"],
        groups={"site": ["A", "B", None, "NA", "1"]},
    )


# -- round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_what_is_written_is_read(tmp_path: Path, table: ScoreTable, suffix: str, layout: Any) -> None:
    path = tmp_path / f"t.{suffix}"
    table.write(path, layout=layout)
    assert read_scores(path).equals(table)
    assert read_scores(str(path), group_columns=["site"], layout="auto").equals(table)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_logits(tmp_path: Path, suffix: str) -> None:
    table = ScoreTable.from_arrays([[3.0, -1.0], [-2.5, 0.1]], [1, None], score_type="logit")
    path = tmp_path / f"t.{suffix}"
    table.write(path)
    assert read_scores(path, score_type="logit").equals(table)
    if suffix == "npz":  # the only format that records it
        assert read_scores(path).equals(table)
    else:
        with pytest.raises(ValueError, match=r"holds -2\.5|holds 3.*these look like logits: pass score_type='logit'"):
            read_scores(path)


# Whatever a spreadsheet may hold; NUL and lone surrogates cannot be stored as text in all formats.
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda s: s.strip() != "" and s.strip() not in {"-1"}
)


def distinct(n: int) -> st.SearchStrategy[list[str]]:
    return st.lists(NAMES, min_size=n, max_size=n, unique_by=lambda s: s.strip())


@st.composite
def tables(draw: st.DrawFn) -> ScoreTable:
    n, n_models, n_classes = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    logits = draw(st.booleans())
    scores = (
        rng.normal(0, 10, (n, n_models, n_classes)) if logits else rng.dirichlet(np.full(n_classes, 0.1), (n, n_models))
    )
    classes = draw(distinct(n_classes))
    labels = [draw(st.sampled_from([*classes, None])) for _ in range(n)]
    return ScoreTable.from_arrays(
        scores,
        labels,
        model_names=draw(distinct(n_models)),
        class_names=classes,
        row_ids=draw(distinct(n)),
        groups={"site": [draw(NAMES) for _ in range(n)]},
        score_type="logit" if logits else "probability",
    )


@pytest.mark.parametrize("suffix", ["npz", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_any_table_survives_to_the_last_bit(tmp_path_factory: Any, suffix: str, layout: Any) -> None:
    folder = tmp_path_factory.mktemp("round")

    @given(tables())
    def check(table: ScoreTable) -> None:
        path = folder / f"t.{suffix}"
        separator = next(
            s for s in ("::", "||", "=>", "<|>") if s not in "".join(table.model_names + table.class_names)
        )
        table.write(path, layout=layout, separator=separator)
        again = read_scores(
            path, score_type=table.score_type, layout="auto", separator=separator, group_columns=["site"]
        )
        assert again.equals(table)

    check()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_csv_keeps_every_float(tmp_path_factory: Any, values: list[float]) -> None:
    table = ScoreTable.from_arrays(np.array(values)[:, None])
    for number, suffix in enumerate(("csv", "csv.gz")):
        path = tmp_path_factory.getbasetemp() / f"floats{number}.{suffix}"
        table.write(path)
        np.testing.assert_array_equal(read_scores(path).scores, table.scores)


def test_bytes_do_not_depend_on_the_time(tmp_path: Path, table: ScoreTable) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        table.write(tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_an_old_file_stays_when_writing_fails(tmp_path: Path, table: ScoreTable, monkeypatch: Any) -> None:
    def full(self: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        target.write("half") if hasattr(target, "write") else target.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"t.{suffix}"
        path.write_text("old")
        with pytest.raises(OSError, match=f"cannot write .*t.{suffix} .No space left"):
            table.write(path)
        assert path.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2


def test_writing_to_nowhere(tmp_path: Path, table: ScoreTable) -> None:
    with pytest.raises(ValueError, match=r"the suffix '\.xlsx' is unknown; use one of \.npz, \.csv"):
        table.write(tmp_path / "t.xlsx")
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist"):
        table.write(tmp_path / "no" / "t.csv")


# -- text files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        WIDE.encode(),
        b"\xef\xbb\xbf" + WIDE.encode(),  # byte order mark
        WIDE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + WIDE.replace("\n", "\r\n").encode(),
        ('"id","bert:no","bert:yes","gpt:no","gpt:yes","label"' + WIDE[WIDE.index("\n") :]).encode(),
        WIDE.replace(",", ", ").encode(),
        WIDE.replace(",", ";").encode(),
        WIDE.replace(",", "\t").encode(),
        WIDE.rstrip("\n").encode(),
        ("\n\n" + WIDE.replace("\n", "\n\n")).encode(),
        WIDE.replace("\nb,", "\n b ,").encode(),
        WIDE.replace("id,", ",").encode(),  # the unnamed first column that pandas and R write
        WIDE.replace("id,", "Unnamed: 0,").encode(),
        WIDE.replace("id,", "ID,").replace("label", "Label").encode(),
    ],
    ids=lambda b: b[:14].decode("utf-8", "replace"),
)
@pytest.mark.parametrize("limit", [_csv.WIDE, 2], ids=["narrow", "wide"])
def test_spellings_of_one_file(put: Any, content: bytes, limit: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(_csv, "WIDE", limit)
    table = read_scores(put("t.csv", content))
    assert table.model_names == ("bert", "gpt") and table.class_names == ("no", "yes")
    assert table.row_ids.tolist() == ["a", "b"] and table.labels.tolist() == [1, -1]
    np.testing.assert_array_equal(table.scores[:, :, 1], [[0.9, 0.75], [0.5, 0.0]])


@pytest.mark.parametrize("name", ['"bert, base:0"', '"say ""hi"":0"', '"two\nlines:0"', "'q:0"])
@pytest.mark.parametrize("limit", [_csv.WIDE, 2], ids=["narrow", "wide"])
def test_quoted_names(put: Any, name: str, limit: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(_csv, "WIDE", limit)
    table = read_scores(put("t.csv", f'id,{name},{name.replace(":0", ":1")}\n"a,b",0.25,0.75\n'))
    wanted = name.replace('""', "\1").replace('"', "").replace("\1", '"').replace(":0", "")
    assert table.model_names == (wanted,) and table.row_ids.tolist() == ["a,b"]


def test_ids_stay_text(put: Any) -> None:
    table = read_scores(put("t.csv", "id,m\n007,0.5\nNA,0.25\n1.0,0.1\n1e3,0.1\nTrue,0.2\n"))
    assert table.row_ids.tolist() == ["007", "NA", "1.0", "1e3", "True"]


def test_the_file_names_the_model(put: Any) -> None:
    table = read_scores(put("resnet50.v2.csv", "id,cat,dog\na,0.25,0.75\n"))
    assert table.model_names == ("resnet50.v2",)
    assert read_scores(put("gpt.csv", "id,score\na,0.25\n")).model_names == ("gpt",)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", r"t\.csv: the file is empty \(0 bytes\)"),
        ("\n\n \n", "the file is empty; it needs a header"),
        ("\ufeff", "the file is empty; it needs a header"),
        ("id,a:0,a:1\n", "header but not one row"),
        (
            "id,a:0,a:1\nx,0.5\n",
            r"line 2 has 2 cells, but the header has 3; correct that line .*truncated",
        ),
        ("id,a:0,a:1\nx,0.5,0.5\ny\n", "line 3 has 1 cell, but the header has 3"),
        ("id,a:0,a:1,label\nx,0.5,0.5,1\ny,0.5,0.5\n", "line 3 has 3 cells, but the header has 4.*truncated"),
        ("id,a,label\nx,0.5,0.25\ny,0.2,0.75\n", "column 'label' is called like labels but holds fractions"),
        ("id,a:0,a:1\nx,0.5,0.5\ny,0.3,0.\n", r"data row 2 \(line 3\), model 'a' sums to 0\.3"),
        ('id,a:0,a:1\nx,0.5,0.5\n"y,0.3,0.7\n', "a quoted cell is never closed .*may be truncated"),
        ("id,a:0,a:1\nx,0.5,0.5,0.5\n", "more cells than the header has names"),
        ("id,a:0,a:1\nx,0.5,0.5\ny,0.5,0.5,0.5\n", "Expected 3 fields in line 3, saw 4"),
        ("id,a:0,a:1\nx,0.5,half\n", "column 'a:1' holds 'half' at data row 1 \\(line 2\\), which is not a number"),
        ("id,a:0,a:1\nx,0.5,True\n", "column 'a:1' holds 'True' at data row 1 \\(line 2\\)"),
        ('id,a:0,a:1\nx,"0,5",0.5\n', "column 'a:0' holds '0,5' at data row 1 \\(line 2\\)"),
        ("id,a:0,a:1\nx,nan,0.5\ny,NA,0.5\n", "2 scores are missing or NaN in 2 of 2 rows"),
        ("id,a:0,a:1\nx,inf,0.5\n", r"1 infinite \(inf\) value in"),
        ("id,a:0,a:0\nx,0.5,0.5\n", "1 column name comes twice: 'a:0'"),
        ("0.1,0.9\n0.2,0.8\n", "the first line holds numbers .'0.1', '0.9'., not column names; add a header"),
        ("id,a:0,a:1\nx,0.5,0.5\nx,0.5,0.5\n", "1 id is doubled: 'x'"),
        ("id,a:0,a:1\nx,0.5,0.5\n,0.5,0.5\n", r"row_ids is missing in 1 row, the first is data row 2 \(line 3\)"),
        ("id,a:0,a:1\nx,2.5,-0.5\n", "model 'a' holds 2.5; these look like logits: pass score_type='logit'"),
        (
            "id,a:0,a:1,label\nx,0.5,0.5,zebra\n",
            "labels holds 'zebra' at data row 1 \\(line 2\\), which matches no class; .* '0', '1'",
        ),
        ("id,a:0,a:1,split:\nx,0.5,0.5,train\n", "not a full table"),
        (b"\xff\xfei\0d\0", "not UTF-8 text .byte 0.; save it as CSV in UTF-8"),
        ("id,a:0,a:1\n\u00e9,0.5,0.5\n".encode("latin-1"), r"not UTF-8 text \(byte 11\); save it as CSV in UTF-8"),
        (b"PK\x03\x04rest", r"is a zip archive \(npz or xlsx\), not csv text"),
        (b"\x1f\x8brest", "is gzip-compressed, not csv text"),
        (b"PAR1", "is parquet, not csv text"),
        (b"id,\0", "binary or UTF-16"),
        ('"id', "a quoted cell is never closed"),
    ],
)
def test_bad_text_files(put: Any, content: str | bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        read_scores(put("t.csv", content))
    assert "t.csv: " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("id,a:0,a:1\nx,0.5\n", r"line 2 has 2 cells, but the header has 3; correct that line .*truncated"),
        ("id,a:0,a:1\nx,0.5,0.5,0.5\n", "line 2 has 4 cells"),
        ("id,a:0,a:1\nx,0.5,half\n", "column 'a:1' holds 'half' at data row 1 \\(line 2\\), which is not a number"),
        (
            "id,a:0,a:1\nx,,0.5\n",
            "1 score is missing or NaN in 1 of 1 rows, the first in column 'a:0', data row 1 \\(line 2\\)",
        ),
        ("id,a:0,a:1\n", "header but not one row"),
        ('id,a:0,a:1\n"x,0.5,0.5\n', "line 2 has 1 cell"),
    ],
)
def test_bad_text_files_with_many_columns(put: Any, content: str, match: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(_csv, "WIDE", 2)
    with pytest.raises(ValueError, match=match):
        read_scores(put("t.csv", content))


def test_a_cell_without_end(put: Any, monkeypatch: Any) -> None:
    with pytest.raises(ValueError, match="not well-formed CSV"):
        read_scores(put("t.csv", '"' + "x" * 200_000))


def test_damaged_gzip(put: Any) -> None:
    whole = gzip.compress(("id,a:0,a:1\n" + "x,0.5,0.5\n" * 9).encode())
    with pytest.raises(ValueError, match="truncated: its gzip stream stops early"):
        read_scores(put("t.csv.gz", whole[:-9]))
    with pytest.raises(ValueError, match=r"the content is not csv\.gz, it is of another kind"):
        read_scores(put("t.csv.gz", WIDE))
    with pytest.raises(ValueError, match="not gzip, though its name ends in .gz"):
        read_scores(put("t.csv.gz", b"\x1f\x8bno gzip at all"))


def test_paths_that_lead_nowhere(tmp_path: Path, put: Any) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file .*none.csv"):
        read_scores(tmp_path / "none.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_scores(tmp_path / "d.csv")
    with pytest.raises(ValueError, match=r"the suffix '\.xls' is unknown"):
        read_scores(put("t.xls", "x"))
    with pytest.raises(ValueError, match="paths is empty"):
        read_scores([])


# -- size ------------------------------------------------------------------------------------------------------------


def test_a_hundred_thousand_columns(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).dirichlet([1, 1], (3, 50_000))
    table = ScoreTable.from_arrays(scores, [1, None, 0], groups={"g": list("abc")})
    path = tmp_path / "wide.csv"
    table.write(path)
    again = read_scores(path)
    assert again.equals(table)


def test_a_hundred_thousand_rows(tmp_path: Path) -> None:
    p = np.random.default_rng(0).random((100_000, 7)).round(6)
    path = tmp_path / "tall.csv"
    frame = pd.DataFrame({f"m{m}:{k}": np.abs(1 - k - p[:, m]) for m in range(7) for k in (0, 1)})
    frame.insert(0, "id", [f"row-{i}" for i in range(len(p))])
    frame.assign(label="").to_csv(path, index=False)
    table = read_scores(path)
    assert table.scores.shape == (100_000, 7, 2)
    np.testing.assert_array_equal(table.scores[:, :, 1], p)


# -- npz -------------------------------------------------------------------------------------------------------------


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


P3 = np.array([[[0.2, 0.3, 0.5]], [[1.0, 0.0, 0.0]]], dtype=np.float32)  # (2, 1, 3)


def test_plain_npz(tmp_path: Path) -> None:
    table = read_scores(save(tmp_path / "t.npz", scores=P3, labels=[2, -1], model_names=["bert"], other=[1]))
    np.testing.assert_array_equal(table.scores, P3.astype(np.float64))
    assert table.labels.tolist() == [2, -1] and table.class_names == ("0", "1", "2")
    assert table.model_names == ("bert",) and table.row_ids.tolist() == ["0", "1"]
    assert read_scores(save(tmp_path / "u.npz", scores=P3)).model_names == ("model_0",)


def test_plain_npz_of_two_dimensions(tmp_path: Path) -> None:
    one = save(tmp_path / "bert.npz", scores=P3[:, 0], class_names=["a", "b", "c"])
    assert read_scores(one).model_names == ("bert",) and read_scores(one).class_names == ("a", "b", "c")
    many = save(tmp_path / "many.npz", scores=[[0.2, 0.4], [0.5, 0.1]], labels=[1, 0])
    assert read_scores(many).n_models == 2 and read_scores(many).class_names == ("0", "1")
    pair = save(tmp_path / "pair.npz", scores=[[0.2, 0.8], [0.5, 0.5]])
    assert read_scores(pair).n_models == 1 and read_scores(pair, layout="binary").n_models == 2
    assert read_scores(pair, layout="model").n_models == 1
    named = save(
        tmp_path / "named.npz", scores=[[0.2, 0.8], [0.5, 0.5]], model_names=["a", "b"], class_names=["n", "y"]
    )
    assert read_scores(named).n_models == 2 and read_scores(named).class_names == ("n", "y")
    single = save(tmp_path / "single.npz", scores=[[0.2], [0.4]])
    assert read_scores(single).model_names == ("single",)
    logits = save(tmp_path / "logits.npz", scores=[[3.0], [-1.0]], score_type="logit")
    np.testing.assert_array_equal(read_scores(logits).scores[:, 0], [[0, 3], [0, -1]])
    three = save(tmp_path / "three.npz", scores=[[0.2, 0.4, 0.1]], class_names=["no", "yes"])
    assert read_scores(three).n_models == 3


def test_labels_of_an_npz(tmp_path: Path) -> None:
    codes = save(tmp_path / "a.npz", scores=P3, labels=[2, -1], class_names=["a", "b", "c"])
    assert read_scores(codes).labels.tolist() == [2, -1]  # no class is a number, so these are positions
    by_name = save(tmp_path / "b.npz", scores=P3, labels=[2, 0], class_names=["2", "1", "0"])
    assert read_scores(by_name).labels.tolist() == [0, 2]
    table = ScoreTable.from_arrays(P3, [2, 0], class_names=[2, 1, 0])
    table.write(tmp_path / "c.npz")  # our own format holds codes, whatever the classes are called
    assert read_scores(tmp_path / "c.npz").equals(table)
    text = save(tmp_path / "d.npz", scores=P3, labels=["b", ""])
    assert read_scores(text, class_names=["a", "b", "c"]).labels.tolist() == [1, -1]
    turned = read_scores(codes, class_names=["c", "b", "a"])
    assert turned.labels.tolist() == [0, -1] and turned.scores[0, 0, 0] == 0.5


@pytest.mark.parametrize("key", ["scores", "labels", "class_names", "groups__g"])
def test_pickled_arrays_are_refused(tmp_path: Path, key: str) -> None:
    """Unpickling can run code: the marker file would appear."""

    class Trap:
        def __reduce__(self) -> Any:
            return (open, (str(tmp_path / "ran"), "w"))

    arrays = {"scores": P3, key: np.array([Trap()], dtype=object)}
    path = save(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=f"the array '{key}' is pickled, and unpickling can run code: save it as"):
        read_scores(path)
    assert not (tmp_path / "ran").exists()


def test_other_arrays_of_an_npz_are_not_touched(tmp_path: Path) -> None:
    path = save(tmp_path / "t.npz", scores=P3, notes=np.array([{}], dtype=object))
    assert read_scores(path).n_rows == 2


def test_no_file_of_ours_needs_pickle(tmp_path: Path, table: ScoreTable) -> None:
    table.write(tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as archive:
        assert all(archive[key].dtype != object for key in archive.files)
        assert str(archive["format"]) == "ssme-scores/1"


def zipped(content: bytes) -> bytes:
    """Make a zip archive whose member scores.npy has this content."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("scores.npy", content)
    return file.getvalue()


def test_bad_npz(tmp_path: Path, put: Any, table: ScoreTable) -> None:
    table.write(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    damaged = bytearray(whole)
    damaged[200:260] = b"\0" * 60
    cases = [
        (put("t1.npz", whole[: len(whole) // 2]), "truncated or damaged"),
        (put("t2.npz", bytes(damaged)), "truncated or damaged"),
        (put("t15.npz", zipped(b"not an array")), r"truncated or damaged \(scores is no array\)"),
        (put("t16.npz", zipped(b"\x93NUMPY\x01\x00\x20")), "truncated or damaged"),
        (put("t3.npz", ""), r"the file is empty \(0 bytes\)"),
        (put("t4.npz", WIDE), "the content is not npz, it is of another kind"),
        (put("t5.npz", b"\x93NUMPY"), "it is a npy array"),
        (save(tmp_path / "t6.npz", probs=P3), "none of the arrays scores and labels, but 'probs'"),
        (save(tmp_path / "t7.npz", labels=[1]), "no array called scores, but 'labels'"),
        (save(tmp_path / "t8.npz", scores=["a"]), "scores must hold numbers"),
        (save(tmp_path / "t9.npz", scores=P3, labels=[5, 0]), "pass class_names"),
        (save(tmp_path / "t10.npz", scores=P3, row_ids=["a", "a"]), "1 id is doubled"),
        (save(tmp_path / "t11.npz", scores=P3, score_type="odds"), "score_type must be"),
        (
            save(tmp_path / "t12.npz", scores=P3, labels=[3, 0], class_names=list("abc"), format=io._npz.FORMAT),
            "codes from",
        ),
        (save(tmp_path / "t14.npz", scores=P3 * np.nan), "6 NaN values in 2 of 2 rows"),
    ]
    for path, match in cases:
        with pytest.raises(ValueError, match=match) as caught:
            read_scores(path)
        assert path.name in str(caught.value)
    with pytest.raises(ValueError, match="the file says that its scores are 'probability'; leave it out"):
        read_scores(tmp_path / "whole.npz", score_type="logit")


def test_bad_parquet(tmp_path: Path, put: Any, table: ScoreTable) -> None:
    table.write(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for content, match in (
        (whole[: len(whole) // 2], "the parquet file is truncated or damaged"),
        (whole[:40] + whole[-40:], "truncated or damaged"),
        (WIDE.encode(), "the content is not parquet, it is of another kind"),
        (b"", "the file is empty"),
    ):
        with pytest.raises(ValueError, match=match):
            read_scores(put("t.parquet", content))


# -- several files ---------------------------------------------------------------------------------------------------


def test_files_are_joined_by_id_and_class_name(put: Any, table: ScoreTable, tmp_path: Path) -> None:
    a = put("bert.csv", "id,no,yes,label\nx,0.1,0.9,yes\ny,0.75,0.25,\n")
    b = put("gpt.csv", "id,yes,no\ny,0.4,0.6\nx,1.0,0.0\n")
    both = read_scores([a, b])
    np.testing.assert_array_equal(both.scores[:, :, 1], [[0.9, 1.0], [0.25, 0.4]])
    assert both.labels.tolist() == [1, -1] and both.model_names == ("bert", "gpt")
    turned = read_scores([b, a], class_names=["no", "yes"], models=["bert", "gpt"])
    assert turned.row_ids.tolist() == ["y", "x"] and turned.model_names == both.model_names
    np.testing.assert_array_equal(turned.scores, both.scores[::-1])
    both.select(models=["gpt"]).write(tmp_path / "gpt.npz")
    both.select(models=["bert"], rows=[1, 0]).write(tmp_path / "bert.parquet")
    assert read_scores([tmp_path / "gpt.npz", tmp_path / "bert.parquet"], models=["bert", "gpt"]).equals(both)


def test_several_files_go_wrong(put: Any) -> None:
    a = put("a.csv", "id,no,yes\nx,0.1,0.9\ny,0.7,0.3\nz,0.5,0.5\n")
    short = put("short.csv", "id,no,yes\nx,0.1,0.9\nq,0.7,0.3\n")
    bare = put("bare.csv", "no,yes\n0.1,0.9\n0.5,0.5\n0.5,0.5\n")
    other = put("other.csv", "id,no,maybe\nx,0.1,0.9\ny,0.7,0.3\nz,0.5,0.5\n")
    double = put("double.csv", "id,no,yes\nx,0.1,0.9\nx,0.7,0.3\n")
    cases = [
        ([a, short], {}, r"short\.csv lacks 2 row ids of .*a\.csv \('y', 'z'\) and has 1 row id .*\('q'\)"),
        ([a, bare], {}, r"bare\.csv: there is no id column, and several files are joined by row id alone; add"),
        ([a, other], {}, r"classes of .*other\.csv are not those of .*a\.csv: it lacks 'yes' and has 'maybe' as well"),
        ([a, double], {}, r"double\.csv: row_ids must differ .* 'x'"),
        (
            [a, put("sub.csv", "id,a\nx,0.5\ny,0.5\nz,0.5\n")],
            {},
            r"a\.csv and .*sub\.csv both have the model 'a'; rename it",
        ),
        ([a], {"models": ["b"]}, "there is no model 'b' among 'a'"),
        ([a], {"id_column": "key"}, r"a\.csv: there is no column 'key' for id_column"),
        ([a], {"label_column": "truth"}, "no file has the label column 'truth'"),
        ([a], {"group_columns": ["site"]}, "no file has the group column 'site'"),
        ([a], {"class_names": ["no", "never"]}, r"a\.csv|class_names"),
    ]
    for files, options, match in cases:
        with pytest.raises(ValueError, match=match):
            read_scores(files, **options)


def test_columns_that_only_some_files_have(put: Any) -> None:
    a = put("a.csv", "id,p,truth,site,label\nx,0.1,1,A,0\ny,0.7,,B,0\n")
    b = put("b.csv", "id,score\ny,0.4\nx,0.2\n")
    table = read_scores([b, a], label_column="truth", group_columns=["site", "label"])
    assert table.labels.tolist() == [-1, 1] and table.groups["site"].tolist() == ["B", "A"]
    assert table.model_names == ("b", "a")
    c = put("c.csv", "id,score,label\ny,0.4,1\nx,0.2,1\n")  # another label than the one that is asked for
    assert read_scores([c, put("d.csv", "id,p,truth\nx,0.1,1\ny,0.7,\n")], label_column="truth").labels.tolist() == [
        -1,
        1,
    ]


# -- labels of their own file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("l.csv", "id,label\nb,1\n", {}),
        ("l.csv", "label,id\n1.0,b\n,a\n", {}),
        ("l.csv", "id,verdict\nb,True\n", {}),
        ("l.csv", "id,verdict,by\nb,1,me\n", {"label_column": "verdict"}),
        ("l.csv", "key,note,target\nb,n,1\n", {"id_column": "key"}),
        ("l.tsv", "id\tlabel\r\nb\t1\r\na\t-1\r\n", {}),
    ],
)
def test_label_files(put: Any, name: str, content: str, options: dict[str, Any]) -> None:
    scores = put("s.csv", f"{options.get('id_column', 'id')},m,label\na,0.25,1\nb,0.5,0\n")
    table = read_scores(scores, labels=put(name, content), **options)
    assert table.labels.tolist() == [-1, 1]  # they take the place of those in the scores
    assert table.model_names == ("m",)


def test_label_files_of_other_formats(tmp_path: Path, put: Any) -> None:
    scores = put("s.csv", "id,m\na,0.25\nb,0.5\n")
    pd.DataFrame({"id": ["b"], "label": [1]}).to_parquet(tmp_path / "l.parquet")
    assert read_scores(scores, labels=tmp_path / "l.parquet").labels.tolist() == [-1, 1]
    assert read_scores(scores, labels=save(tmp_path / "l.npz", labels=[1], row_ids=["b"])).labels.tolist() == [-1, 1]
    ScoreTable.from_arrays([[0.1]], ["0"], class_names=["1", "0"], row_ids=["b"]).write(tmp_path / "t.npz")
    assert read_scores(scores, labels=tmp_path / "t.npz").labels.tolist() == [-1, 0]


def test_labels_without_ids_belong_to_scores_without_ids(put: Any, tmp_path: Path) -> None:
    scores, labels = put("s.csv", "m\n0.25\n0.5\n"), put("l.csv", "label\n1\n0\n")
    assert read_scores(scores, labels=labels).labels.tolist() == [1, 0]
    assert read_scores(scores, labels=put("k.csv", "id,label\n1,1\n")).labels.tolist() == [-1, 1]  # row numbers
    for own, other in (
        (put("t.csv", "id,m\na,0.25\nb,0.5\n"), labels),
        (scores, put("short.csv", "label\n1\n")),
        (scores, save(tmp_path / "l.npz", labels=[1])),
    ):
        with pytest.raises(
            ValueError, match=r"there is no id column, so its . labels? cannot be matched to the 2 rows"
        ):
            read_scores(own, labels=other)


def test_groups_in_the_file_of_labels(put: Any) -> None:
    scores = put("s.csv", "id,m,site\na,0.25,A\nb,0.5,B\n")
    labels = put("l.csv", "id,label,site,age\nb,1,Z,7\n")
    table = read_scores(scores, labels=labels, group_columns=["age", "site"])
    assert table.groups["site"].tolist() == ["A", "B"] and table.groups["age"].tolist() == ["missing", "7"]


@pytest.mark.parametrize(
    ("content", "options", "match"),
    [
        ("id,label\nq,1\n", {}, r"l\.csv: labels has 1 row id that the scores lack: 'q'; correct or remove"),
        ("id,label\na,1\na,1\n", {}, r"l\.csv: the row id of labels must differ .*'a'"),
        ("id,label\n,1\n", {}, "the row id of labels is missing in 1 row"),
        (
            "id,label\na,0\nb,zebra\n",
            {},
            r"l\.csv: labels holds 'zebra' at data row 2 \(line 3\), .*the classes are '0', '1'",
        ),
        ("id,one,two\na,1,1\n", {}, "which column holds the labels. Name one of 'one', 'two' in label_column"),
        ("id,label\na,1\n", {"label_column": "truth"}, "no column 'truth' for label_column"),
        ("", {}, "the file is empty"),
    ],
)
def test_bad_label_files(put: Any, content: str, options: dict[str, Any], match: str) -> None:
    scores = put("s.csv", "id,m\na,0.25\nb,0.5\n")
    with pytest.raises(ValueError, match=match):
        read_scores(scores, labels=put("l.csv", content), **options)


def test_bad_label_npz(put: Any, tmp_path: Path) -> None:
    scores = put("s.csv", "id,m\na,0.25\n")
    with pytest.raises(ValueError, match="no array called labels, but 'scores'"):
        read_scores(scores, labels=save(tmp_path / "l.npz", scores=P3))


def test_text_labels_of_binary_scores_need_class_names(put: Any) -> None:
    scores, labels = put("s.csv", "id,m\na,0.25\nb,0.5\n"), put("l.csv", "id,label\nb,spam\n")
    with pytest.raises(
        ValueError,
        match="'spam' at data row 1 \\(line 2\\), which matches no class; the classes are '0', '1'.*class_names",
    ):
        read_scores(scores, labels=labels)
    assert read_scores(scores, labels=labels, class_names=["ham", "spam"]).labels.tolist() == [-1, 1]


def test_a_file_cut_off_at_any_byte_of_its_last_line_is_refused_or_whole(tmp_path: Path) -> None:
    lines = ["id,a,b,label,src"] + [f"r{i},0.38712,0.54634,{i % 2},web" for i in range(5)]
    path, whole = tmp_path / "t.csv", "\n".join(lines)
    for cut in range(len(whole) - len(lines[-1]) + 1, len(whole) - len("web")):
        path.write_text(whole[:cut])
        with pytest.raises(ValueError, match="line 6 has . cells?, but the header has 5"):
            read_scores(path, group_columns=["src"])
    path.write_text(whole)
    assert read_scores(path, group_columns=["src"]).n_rows == 5


def test_a_separator_that_no_column_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,a:0,a:1\nx,0.5,0.5\ny,0.2,0.8\n")
    with pytest.raises(ValueError, match="no column of scores holds the separator '_'"):
        read_scores(path, separator="_")
    assert read_scores(path).model_names == ("a",)


def test_fractions_in_a_column_called_like_labels_can_be_declared_a_model(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,a,y\nx,0.5,0.25\nz,0.2,0.75\n")
    assert read_scores(path, layout="binary").model_names == ("a", "y")


@pytest.mark.parametrize(
    ("paths", "options", "match"),
    [
        (3, {}, "paths must be a path or a list of paths, got int"),
        (None, {}, "paths must be a path or a list of paths, got NoneType"),
        (b"t.csv", {}, "paths must be a path or a list of paths, got bytes"),
        (["t.csv", 3], {}, "paths must be a path or a list of paths, got int"),
        ("t.csv", {"labels": [1, 0]}, "labels must be the path of a file, got list; .*with_labels"),
        ("t.csv", {"group_columns": 3}, "group_columns must be a list of names, got 3"),
        ("t.csv", {"class_names": 3}, "class_names must be a list of names, got 3"),
        ("t.csv", {"class_names": "ab"}, "class_names must be a list of names, got 'ab'"),
        ("t.csv", {"models": 3.5}, "a model is named by text or a whole number, got 3.5"),
    ],
)
def test_wrong_types_are_named(
    put: Any, paths: Any, options: dict[str, Any], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(put("t.csv", "id,a\nx,0.5\n").parent)
    with pytest.raises(TypeError, match=match):
        read_scores(paths, **options)


def test_a_file_is_read_once(put: Any) -> None:
    path = put("t.csv", "id,a\nx,0.5\n")
    with pytest.raises(ValueError, match="t.csv is given twice"):
        read_scores([path, path])


@pytest.mark.parametrize("name", ["l.csv", "l.npz"])
def test_a_file_of_labels_without_a_label(put: Any, tmp_path: Path, name: str) -> None:
    scores = put("t.csv", "id,a\nx,0.5\ny,0.5\n")
    put("l.csv", "id,label\n")
    save(tmp_path / "l.npz", labels=np.zeros(0), row_ids=np.zeros(0, dtype=str))
    with pytest.raises(ValueError, match=rf"{name}: the file holds not one label; add labels, or leave labels out"):
        read_scores(scores, labels=tmp_path / name)
    with pytest.warns(UserWarning, match="names 1 row and labels none of them"):
        assert read_scores(scores, labels=put("k.csv", "id,label\nx,\n")).n_labeled == 0


@pytest.mark.parametrize("limit", [2000, 0])
def test_lines_are_those_of_the_file(put: Any, limit: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(_csv, "WIDE", limit)
    path = put("t.csv", '\n\nid,a\n\n"x\nx",0.5\n\ny,0.5\nz,oops\n')
    with pytest.raises(ValueError, match=r"'oops' at data row 3 \(line 9\)"):
        read_scores(path)
    assert [_csv.line_of_row(path, row) for row in range(4)] == [5, 8, 9, None]


def test_a_long_file_names_the_id_and_not_a_row(put: Any) -> None:
    path = put(
        "t.csv", "id,model,class,score\n" + "".join(f"{i},m,{k},{s}\n" for i in "xy" for k, s in ((0, 0.5), (1, 0.6)))
    )
    with pytest.raises(ValueError, match="the row of id 'x', model 'm' sums to 1.1"):
        read_scores(path)


def test_a_damaged_parquet_file_is_named_once(tmp_path: Path, table: ScoreTable) -> None:
    path = tmp_path / "t.parquet"
    table.write(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="damaged") as caught:
        read_scores(path)
    assert str(caught.value).count("t.parquet") == 1
    path.rename(tmp_path / "t.xyz")
    with pytest.raises(ValueError, match="suffix '.xyz' is unknown") as caught:
        read_scores(tmp_path / "t.xyz")
    assert str(caught.value).count("t.xyz") == 1
