"""Every source that a user may have: names, folders, parquet, npz, csv, text; and the errors of unreadable ones."""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from ssl_zoo.data import datasets as module
from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.datasets import gaussian_noise, list_datasets, load_dataset, load_splits
from ssl_zoo.data.image_files import as_image_array, match_images, read_idx
from ssl_zoo.data.labels import encode_labels, find_label_column
from ssl_zoo.data.splits import split_of, split_rows
from ssl_zoo.data.tabular import TableEncoder
from ssl_zoo.data.text import HuggingFaceEncoder, TfidfEncoder, make_text_encoder

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the development data beside the repository are absent")


def png(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "png")
    return buffer.getvalue()


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# -------------------------------------------------------------------------------------------------------- ArrayDataset


def test_array_dataset_checks_what_it_is_given():
    x, y = np.zeros((3, 1, 2, 2), np.uint8), np.zeros(3, np.int64)
    data = ArrayDataset(x, y.astype(np.int8), ["a"])
    assert data.y.dtype == np.int64 and data.class_names == ("a",) and "3 x (1, 2, 2)" in repr(data)
    assert ArrayDataset(x.astype(np.float64), y, ("a",)).x.dtype == np.float32
    wrong = [
        ({"kind": "video"}, ValueError, "kind must be one of"), ({"y": y[:2]}, ValueError, "one label for each"),
        ({"y": y.astype(float)}, TypeError, "integer"), ({"y": y + 1}, ValueError, r"y\[0\] is 1"),
        ({"y": y - 2}, ValueError, "-2"), ({"x": x[0]}, ValueError, "N, C, H, W"),
        ({"x": x.astype(np.float32) + 3}, ValueError, "Rescale"), ({"x": x.astype(int)}, TypeError, "uint8 or float"),
        ({"kind": "tabular"}, ValueError, r"\(N, F\)"), ({"kind": "text", "x": x[:, 0, 0]}, TypeError, "must be float"),
        ({"kind": "tabular", "x": np.array([[1.0], [np.nan], [2]])}, ValueError, "row 1, column 0"),
    ]  # fmt: skip
    for change, error, message in wrong:
        with pytest.raises(error, match=message):
            ArrayDataset(**{"x": x, "y": y, "class_names": ("a",), **change})


def test_fingerprint_tells_label_orders_apart():
    x = np.zeros((4, 2), np.float32)
    a, b = (ArrayDataset(x, np.array(y), ("a", "b"), "tabular") for y in ([0, 1, 0, 1], [1, 0, 0, 1]))
    assert (
        a.fingerprint() != b.fingerprint()
        and a.fingerprint() == ArrayDataset(x + 1, a.y, ("a", "b"), "tabular", "elsewhere").fingerprint()
    )


# --------------------------------------------------------------------------------------------------------------- names


def test_embedded_digits_are_split_once_and_for_all():
    train, test, everything = (load_dataset("digits", s) for s in ("train", "test", "all"))
    assert (len(train), len(test), len(everything)) == (1438, 359, 1797)
    assert train.x.dtype == np.uint8 and train.x.max() == 255 and train.kind == "digits"
    rows = {row.tobytes() for row in test.x}
    assert len(rows & {row.tobytes() for row in train.x}) < 3
    assert np.array_equal(load_dataset("digits").x, train.x)
    assert not np.array_equal(load_dataset("digits", split_seed=1).x, train.x)
    assert len(load_dataset("Digits", "train", n_train=1000)) == 1000


def fake_torchvision(monkeypatch, **classes):
    from torchvision import datasets

    for name, cls in classes.items():
        monkeypatch.setattr(datasets, name, cls)


def test_torchvision_sets_by_name(monkeypatch, tmp_path):
    calls = []

    class Cifar:
        classes = ["cat", "dog"]

        def __init__(self, root, train, download):
            calls.append((train, download))
            if not download and len(calls) == 1:
                raise RuntimeError("Dataset not found or corrupted.")
            self.data = rng().integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
            self.targets = [0, 1] * 3

    class Svhn:
        def __init__(self, root, split, download):
            self.data, self.labels = np.zeros((4, 3, 8, 8), np.uint8), np.array([0, 1, 2, 1])

    class Stl:
        classes = ["a", "b"]

        def __init__(self, root, split, download):
            self.data, self.labels = np.zeros((4, 3, 8, 8), np.uint8), np.full(4, -1)

    class Mnist:
        classes = ["0 - zero", "1 - one"]

        def __init__(self, root, train, download):
            self.data, self.targets = torch.zeros(4, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 0, 1])

    class Dtd:
        classes = ["banded", "dotted"]

        def __init__(self, root, split, download):
            paths = [tmp_path / f"{k}.png" for k in range(2)]
            for k, path in enumerate(paths):
                Image.new("RGB", (20 + 10 * k, 30)).save(path)
            self._image_files, self._labels = paths, [0, 1]

    fake_torchvision(monkeypatch, CIFAR10=Cifar, SVHN=Svhn, STL10=Stl, MNIST=Mnist, DTD=Dtd)
    data = load_dataset("CIFAR-10", "test", root=tmp_path)
    assert calls == [(False, False), (False, True)]  # downloads only what is not there
    assert data.in_shape == (3, 8, 8) and data.class_names == ("cat", "dog") and data.kind == "image"
    assert np.array_equal(data.x[0], np.moveaxis(rng().integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)[0], 2, 0))
    assert load_dataset("svhn", root=tmp_path).kind == "digits"
    assert load_dataset("stl10", "unlabeled", root=tmp_path).y.tolist() == [-1] * 4
    assert load_dataset("mnist", root=tmp_path).in_shape == (1, 8, 8)
    assert load_dataset("mnist", root=tmp_path, size=4, channels=3).in_shape == (3, 4, 4)
    assert load_dataset("dtd", "validation", root=tmp_path).in_shape == (3, 48, 48)
    assert load_dataset("dtd", root=tmp_path, like=data).in_shape == (3, 8, 8)
    with pytest.raises(ValueError, match="cifar10 has the splits train, test"):
        load_dataset("cifar10", "unlabeled", root=tmp_path)


def test_a_missing_set_without_a_network_is_said_clearly(monkeypatch, tmp_path):
    from urllib.error import URLError

    class Offline:
        def __init__(self, root, train, download):
            raise URLError("no route") if download else RuntimeError("not found")

    fake_torchvision(monkeypatch, CIFAR100=Offline)
    with pytest.raises(ConnectionError, match="cifar100 is not in .* could not be downloaded .*no route"):
        load_dataset("cifar100", root=tmp_path / "new")
    with pytest.raises(FileNotFoundError, match="allow download=True"):
        load_dataset("cifar100", root=tmp_path, download=False)
    monkeypatch.setenv("SSL_ZOO_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        load_dataset("cifar100", download=False)


def test_unknown_names_splits_and_options():
    with pytest.raises(FileNotFoundError, match="did you mean 'cifar10'"):
        load_dataset("cifar-1o")
    with pytest.raises(FileNotFoundError, match="known names are cifar10"):
        load_dataset("qqqq")
    with pytest.raises(ValueError, match="split must be one of"):
        load_dataset("digits", "half")
    with pytest.raises(ValueError, match="serves train, test and all"):
        load_dataset("digits", "validation")
    with pytest.raises(TypeError, match="unknown option 'sise'; this source knows n_train"):
        load_dataset("digits", sise=3)
    assert {"cifar10", "cifar100", "svhn", "mnist", "stl10", "dtd", "digits"} <= set(list_datasets())


def test_splits_share_one_feature_space():
    parts = load_splits("digits", ("train", "test", "all"))
    assert [len(p) for p in parts.values()] == [1438, 359, 1797]


def test_gaussian_noise_fits_any_shape_and_is_repeatable():
    data = gaussian_noise(5000, (3, 4, 4), seed=1)
    assert data.x.dtype == np.uint8 and abs(data.x.mean() - 127.5) < 1 and len(data) == 5000
    assert np.array_equal(data.x, gaussian_noise(5000, (3, 4, 4), seed=1).x)
    with pytest.raises(ValueError, match="at least 1"):
        gaussian_noise(0, (1, 2, 2))


# --------------------------------------------------------------------------------------------------------------- files


def write_parquet(path: Path, columns: dict, names: list[str] | None = None) -> Path:
    table = pa.table(columns)
    if names:
        info = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(info)})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def image_columns(n: int, side: int = 6) -> tuple[dict, np.ndarray]:
    x = rng().integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    return {"image": [{"bytes": png(a), "path": None} for a in x], "label": [k % 3 for k in range(n)]}, x


def test_huggingface_images(tmp_path):
    columns, x = image_columns(5)
    write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet", columns, ["ant", "bee", "cow"])
    write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet", columns)
    write_parquet(
        tmp_path / "data" / "test-00000-of-00001.parquet", {k: v[:2] for k, v in columns.items()}, ["ant", "bee", "cow"]
    )
    train, test = load_splits(tmp_path).values()
    assert len(train) == 10 and train.class_names == ("ant", "bee", "cow") == test.class_names
    assert np.array_equal(train.x[:5], np.moveaxis(x, 3, 1)) and train.kind == "image"
    assert len(load_dataset(tmp_path, "all")) == 12
    assert load_dataset(tmp_path, size=4).in_shape == (3, 4, 4)
    assert load_dataset(tmp_path, channels=1).in_shape == (1, 6, 6)
    with pytest.raises(FileNotFoundError, match="no file for split 'validation'; its files are test-00000"):
        load_dataset(tmp_path, "validation")
    named = tmp_path / "root" / "cifar10"
    write_parquet(named / "test.parquet", columns)
    assert len(load_dataset("cifar10", "test", root=tmp_path / "root")) == 5


def test_broken_images_are_named(tmp_path):
    columns, _ = image_columns(3)
    columns["image"][1] = {"bytes": b"no image", "path": None}
    with pytest.raises(ValueError, match="image 1 cannot be read"):
        load_dataset(write_parquet(tmp_path / "a.parquet", columns), "all")
    columns["image"][1] = {"bytes": None, "path": "x.png"}
    with pytest.raises(ValueError, match="row 1 holds no image bytes"):
        load_dataset(write_parquet(tmp_path / "b.parquet", columns), "all")
    columns["image"][1] = {"bytes": png(np.zeros((9, 6, 3), np.uint8)), "path": None}
    path = write_parquet(tmp_path / "c.parquet", columns)
    with pytest.raises(ValueError, match="image 1 is 9 x 6, the first one 6 x 6; give size="):
        load_dataset(path, "all")
    assert load_dataset(path, "all", size=6).in_shape == (3, 6, 6)
    columns["image"][1] = {"bytes": png(np.zeros((6, 6), np.uint16)), "path": None}
    with pytest.raises(ValueError, match="convert it to 8 bits"):
        load_dataset(write_parquet(tmp_path / "d.parquet", columns), "all")
    (tmp_path / "e.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match="cannot be read as a parquet file"):
        load_dataset(tmp_path / "e.parquet", "all")


def test_grey_images_among_coloured_ones(tmp_path):
    grey, colour = np.full((4, 4), 9, np.uint8), np.zeros((4, 4, 3), np.uint8)
    both = write_parquet(tmp_path / "a.parquet", {"image": [png(grey), png(colour)], "label": [0, 1]})
    assert load_dataset(both, "all").x[0].tolist() == np.full((3, 4, 4), 9).tolist()
    alone = write_parquet(tmp_path / "b.parquet", {"image": [png(grey), png(grey)], "label": [0, 1]})
    data = load_dataset(alone, "all")
    assert data.in_shape == (1, 4, 4) and data.kind == "digits"
    assert load_dataset(alone, "all", kind="image").kind == "image"


def test_image_folders(tmp_path):
    for split, n in (("train", 4), ("val", 2)):
        for name in ("bee", "ant"):
            folder = tmp_path / "split" / split / name
            folder.mkdir(parents=True)
            for k in range(n):
                Image.new("RGB", (8, 8), (k, 0, 0)).save(folder / f"{k}.png")
            (folder / "notes.txt").write_text("not an image")
    train = load_dataset(tmp_path / "split", "train")
    assert len(train) == 8 and train.class_names == ("ant", "bee") and train.x[:4, 0, 0, 0].tolist() == [0, 1, 2, 3]
    assert len(load_dataset(tmp_path / "split", "validation")) == 4
    with pytest.raises(ValueError, match="no folder for split 'test'; it has train, validation"):
        load_dataset(tmp_path / "split", "test")
    whole = tmp_path / "split" / "train"
    assert len(load_dataset(whole, "train")) == 8
    (tmp_path / "plain").mkdir()
    for name in ("ant", "bee"):
        (whole / name).rename(tmp_path / "plain" / name)
    parts = load_splits(tmp_path / "plain", test_fraction=0.25)
    assert [len(p) for p in parts.values()] == [6, 2]
    (tmp_path / "nothing" / "sub").mkdir(parents=True)
    with pytest.raises(ValueError, match="no class folders with images"):
        load_dataset(tmp_path / "nothing")
    with pytest.raises(ValueError, match="neither parquet, csv, npz"):
        load_dataset(tmp_path / "nothing" / "sub")


def idx(array: np.ndarray) -> bytes:
    return struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx_files(tmp_path):
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    x, y = rng().integers(0, 256, (7, 5, 5), dtype=np.uint8), np.array([0, 1, 2, 3, 0, 1, 2], np.uint8)
    (raw / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(x)))
    (raw / "t10k-labels-idx1-ubyte").write_bytes(idx(y))
    for data in (load_dataset(tmp_path / "MNIST", "test"), load_dataset("mnist", "test", root=tmp_path)):
        assert np.array_equal(data.x[:, 0], x) and data.y.tolist() == y.tolist() and data.kind == "digits"
    assert len(load_dataset(raw / "t10k-labels-idx1-ubyte", "test")) == 7
    with pytest.raises(FileNotFoundError, match="no idx files of images and labels for split 'train'"):
        load_dataset(tmp_path / "MNIST", "train")
    (raw / "t10k-labels-idx1-ubyte").write_bytes(idx(y[:3]))
    with pytest.raises(ValueError, match="7 images"):
        load_dataset(tmp_path / "MNIST", "test")
    for content in (b"", b"hello world", idx(x)[:40], gzip.compress(idx(x))[:20]):
        path = tmp_path / ("bad.gz" if content[:2] == b"\x1f\x8b" else "bad")
        path.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as an idx file"):
            read_idx(path)


def test_npz_files(tmp_path):
    x, y = rng().integers(0, 256, (10, 4, 4), dtype=np.uint8), np.arange(10) % 2
    np.savez(tmp_path / "own.npz", x_train=x[:7], y_train=y[:7], x_test=x[7:], y_test=y[7:])
    assert [len(p) for p in load_splits(tmp_path / "own.npz", ("train", "test", "all")).values()] == [7, 3, 10]
    np.savez(tmp_path / "plain.npz", images=x, labels=np.array(["no", "yes"])[y])
    data = load_dataset(tmp_path / "plain.npz", "test")
    assert len(data) == 2 and data.class_names == ("no", "yes")
    np.savez(tmp_path / "flat.npz", x=x.reshape(10, 16) / 255)
    flat = load_dataset(tmp_path / "flat.npz", "all")
    assert flat.kind == "tabular" and flat.y.tolist() == [-1] * 10
    np.savez(tmp_path / "odd.npz", pictures=x, answers=y)
    assert len(load_dataset(tmp_path / "odd.npz", x_key="pictures", y_key="answers")) == 10
    with pytest.raises(ValueError, match="its arrays are pictures, answers; name them with x_key="):
        load_dataset(tmp_path / "odd.npz")
    np.savez(tmp_path / "short.npz", x=x, y=y[:4])
    with pytest.raises(ValueError, match="10 inputs, but 4 labels"):
        load_dataset(tmp_path / "short.npz")
    np.savez(tmp_path / "pickled.npz", x=np.array([{}], dtype=object))
    (tmp_path / "broken.npz").write_bytes(b"PK no")
    for name in ("pickled", "broken"):
        with pytest.raises(ValueError, match="cannot be read as an npz file without pickle"):
            load_dataset(tmp_path / f"{name}.npz")
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "own.npz").rename(folder / "own.npz")
    assert len(load_dataset(folder, "test")) == 3
    (folder / "more.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="0 npz files for split 'test'"):
        load_dataset(folder, "test")
    (tmp_path / "a.xyz").write_text("")
    with pytest.raises(ValueError, match="the suffix is none of"):
        load_dataset(tmp_path / "a.xyz")


def test_image_layouts_and_ranges():
    byte = rng().integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
    assert np.array_equal(as_image_array(byte), np.moveaxis(byte, 3, 1))
    assert as_image_array(byte.astype(int)).dtype == np.uint8
    unit = byte / 255
    assert np.allclose(as_image_array(unit), np.moveaxis(unit, 3, 1))
    assert np.allclose(as_image_array(unit * 2 - 1), np.moveaxis(unit, 3, 1), atol=1e-6)
    assert np.allclose(as_image_array(byte.astype(float)), np.moveaxis(unit, 3, 1))
    with pytest.raises(ValueError, match="Rescale"):
        as_image_array(unit * 900)
    with pytest.raises(ValueError, match="got shape"):
        as_image_array(np.zeros((5, 2)))


def test_matching_images_to_another_shape():
    data = ArrayDataset(np.full((3, 3, 6, 6), 200, np.uint8), np.zeros(3, int), ("a",))
    assert match_images(data, (3, 6, 6)) is data
    for shape in ((1, 6, 6), (3, 12, 12), (1, 4, 4)):
        other = match_images(data, shape)
        assert other.in_shape == shape and (other.x == 200).all()
    real = match_images(ArrayDataset(np.full((3, 1, 6, 6), 0.25), np.zeros(3, int), ("a",)), (3, 3, 3))
    assert real.x.dtype == np.float32 and np.allclose(real.x, 0.25)
    with pytest.raises(ValueError, match="only images"):
        match_images(ArrayDataset(np.zeros((2, 2)), np.zeros(2, int), ("a",), "tabular"), (1, 2, 2))


# ------------------------------------------------------------------------------------------------------ labels, splits


def test_labels_of_every_sort():
    cases = [
        ([0, 1, 2, 1], [0, 1, 2, 1], ("0", "1", "2")), ([0, 3], [0, 3], ("0", "1", "2", "3")),
        ([-1, 0, 1], [-1, 0, 1], ("0", "1")), ([-1, 1, 1], [0, 1, 1], ("-1", "1")),
        ([1, 7, 2, 10], [0, 2, 1, 3], ("1", "2", "7", "10")), ([0.0, np.nan, 2.0], [0, -1, 2], ("0", "1", "2")),
        (["b", "a", "", None], [1, 0, -1, -1], ("a", "b")), ([True, False], [1, 0], ("False", "True")),
    ]  # fmt: skip
    for values, codes, names in cases:
        got = encode_labels(values)
        assert (got[0].tolist(), got[1]) == (codes, names), values
    assert encode_labels([2, 1, -1], ["a", "b", "c"])[0].tolist() == [2, 1, -1]  # positions
    assert encode_labels([5, 3], ["3", "5"])[0].tolist() == [1, 0]  # names
    with pytest.raises(ValueError, match="row 1 holds 'z', which is none of the 2 classes a, b"):
        encode_labels(["a", "z"], ["a", "b"])
    with pytest.raises(ValueError, match="row 0 holds '7'"):
        encode_labels([7], ["a", "b"])


def test_label_columns():
    assert find_label_column(["x", "Label"], None, "t") == "Label" and find_label_column(["x", "z"], -1, "t") == "z"
    for columns, wanted, message in (
        (["a", "b"], None, "no column with a usual name"), (["y", "label"], None, "several: y, label"),
        (["a"], "q", "is not in t; its columns are a"), (["a"], 4, "has 1 columns"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            find_label_column(columns, wanted, "t")


def test_splits_of_rows_and_names():
    for split, n in (("train", 3), ("test", 2)):
        assert len(split_rows(5, split, test_fraction=0.4)) == n
    assert len(split_rows(3, "test", test_fraction=0.01)) == 1
    with pytest.raises(ValueError, match="n_train must lie between 1 and 4"):
        split_rows(5, "train", n_train=5)
    with pytest.raises(ValueError, match="test_fraction"):
        split_rows(5, "train", test_fraction=1.0)
    names = {"train-00000-of-00005.parquet": "train", "agnews_train8k.parquet": "train", "val.csv": "validation",
             "testing_data.csv": "test", "contest.csv": None, "train_test.csv": None}  # fmt: skip
    assert {name: split_of(Path(name)) for name in names} == names


# ------------------------------------------------------------------------------------------------------- tables, texts


def test_csv_tables(tmp_path):
    frame = pd.DataFrame({
        "id": range(10), "size": [1.5, None, *range(8)], "town": list("abcab") * 2, "open": [True, False] * 5,
        "label": ["no", "yes"] * 5,
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    train, test = load_splits(tmp_path / "t.csv", drop_columns=["id"], n_train=8).values()
    assert (len(train), len(test)) == (8, 2) and train.kind == "tabular" and train.class_names == ("no", "yes")
    assert train.encoder.feature_names == (
        "size", "size missing", "town=a", "town=b", "town=c", "open=False", "open=True",
    )  # fmt: skip
    assert train.x[1].tolist() == [2, 1, 0, 1, 0, 1, 0] and test.in_shape == train.in_shape
    alone = load_dataset(tmp_path / "t.csv", "test", drop_columns=["id"], n_train=8)
    assert np.array_equal(alone.x, test.x)  # a test split is encoded by the train rows of its file, like or not
    with gzip.open(tmp_path / "u.csv.gz", "wt") as handle:
        handle.write("\ufeff3,1,2\n4,5,6\n")
    assert load_dataset(tmp_path / "u.csv.gz", "all", label_column=0, header=False).x.tolist() == [[1, 2], [5, 6]]
    (tmp_path / "v.tsv").write_text("y\tx\n1\t2\n")
    assert load_dataset(tmp_path / "v.tsv", "all").class_names == ("1",)
    assert load_dataset(tmp_path / "v.tsv", "all", class_names=["0", "1"]).y.tolist() == [1]


def test_tables_that_cannot_be_read(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match="cannot be read as a table"):
        load_dataset(tmp_path / "empty.csv")
    (tmp_path / "a.csv").write_text("p,q\n1,2\n")
    with pytest.raises(ValueError, match="name it with label_column="):
        load_dataset(tmp_path / "a.csv", "all")
    with pytest.raises(ValueError, match="no column 'w'"):
        load_dataset(tmp_path / "a.csv", "all", label_column="p", drop_columns=["w"])
    (tmp_path / "train.csv").write_text("x,y\n1,0\n2,1\n")
    with pytest.raises(ValueError, match="named after split 'train'; asked for 'test'"):
        load_dataset(tmp_path / "train.csv", "test")
    (tmp_path / "test.csv").write_text("x,y\n3,1\n")
    with pytest.raises(ValueError, match="give it with like="):
        load_dataset(tmp_path / "test.csv", "test")
    train = load_dataset(tmp_path / "train.csv", "train")
    assert load_dataset(tmp_path / "test.csv", "test", like=train).x.tolist() == [[3]]
    assert load_dataset(tmp_path, "test").x.tolist() == [[3]]  # in a folder, the train file is found


def test_table_encoder_on_rows_it_has_not_seen():
    encoder = TableEncoder.fit(pd.DataFrame({"a": [1.0, 3.0], "b": ["x", "y"], "c": [None, None]}))
    assert encoder.transform(pd.DataFrame({"a": [np.nan], "b": ["z"], "c": [None]})).tolist() == [[2, 0, 0]]
    with pytest.raises(ValueError, match="lacks the columns b"):
        encoder.transform(pd.DataFrame({"a": [1.0], "c": [None]}))
    with pytest.raises(ValueError, match="'a' held numbers in the train split"):
        encoder.transform(pd.DataFrame({"a": ["u"], "b": ["x"], "c": [None]}))
    with pytest.raises(ValueError, match="holds 100 different texts"):
        TableEncoder.fit(pd.DataFrame({"name": [f"n{k}" for k in range(100)]}))


def test_text_through_tfidf(tmp_path):
    texts = ["good film", "bad film", "good book", "bad play", "good play", None]
    columns = {"text": texts, "label": [1, 0, 1, 0, 1, 0]}
    write_parquet(tmp_path / "train.parquet", columns)
    write_parquet(tmp_path / "test.parquet", {"text": ["good good", "unseen words"], "label": [1, 0]})
    train, test = load_splits(tmp_path, encoder_options={"max_features": 4}).values()
    assert train.kind == "text" and train.in_shape == (4,) == test.in_shape
    norms = np.linalg.norm(train.x, axis=1)
    assert np.allclose(norms[:5], 1) and norms[5] == 0 and not test.x[1].any()
    small = load_dataset(tmp_path, "train", encoder_options={"n_components": 2})
    assert small.in_shape == (2,)
    write_parquet(tmp_path / "other.parquet", {"words": texts, "label": [1, 0] * 3})
    assert load_dataset(tmp_path / "other.parquet", "all", text_column="words").kind == "text"
    with pytest.raises(ValueError, match="call fit first"):
        TfidfEncoder().transform(["a"])
    with pytest.raises(ValueError, match="give no terms"):
        TfidfEncoder().fit(["", ""])
    with pytest.raises(ValueError, match="n_components must be below"):
        TfidfEncoder(n_components=9).fit(texts[:5])
    with pytest.raises(ValueError, match="'tfidf', 'hf:MODEL'"):
        make_text_encoder("bow")
    assert make_text_encoder(small.encoder) is small.encoder


def test_text_through_a_huggingface_encoder(monkeypatch, tmp_path):
    class Tokens(dict):
        def to(self, device):
            return self

    class Tokenizer:
        def __call__(self, texts, **options):
            width = max(len(t) for t in texts)
            ids = torch.tensor([[ord(c) for c in t.ljust(width, "\0")] for t in texts])
            return Tokens(input_ids=ids, attention_mask=(ids > 0).long())

    class Model:
        def to(self, device):
            return self

        def eval(self):
            return self

        def __call__(self, input_ids, attention_mask):
            return types.SimpleNamespace(last_hidden_state=input_ids[..., None].float().expand(-1, -1, 3))

    fake = types.ModuleType("transformers")
    fake.AutoModel = types.SimpleNamespace(from_pretrained=lambda name: Model())
    fake.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda name: Tokenizer())
    monkeypatch.setitem(sys.modules, "transformers", fake)
    write_parquet(tmp_path / "t.parquet", {"text": ["a", "ac", "b"], "label": [0, 1, 0]})
    data = load_dataset(tmp_path / "t.parquet", "all", text_encoder="hf:tiny", encoder_options={"batch_size": 2})
    assert data.x[:, 0].tolist() == [97, 98, 98]  # means over tokens, without padding
    assert HuggingFaceEncoder("tiny").transform([]).shape == (0, 0)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="need the package transformers"):
        HuggingFaceEncoder("tiny").transform(["a"])


def test_lazy_exports():
    import ssl_zoo.data as data

    assert data.load_dataset is module.load_dataset and "Batch" in dir(data)
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        data.nope  # noqa: B018
    for name in data.__all__:
        assert getattr(data, name) is not None


# ----------------------------------------------------------------------------------------------------------- real files


@needs_shared
@pytest.mark.parametrize(
    ("path", "split", "options", "n", "shape", "classes"),
    [
        ("images/usps/usps.npz", "train", {}, 7291, (1, 16, 16), 10),
        ("images/usps/usps.npz", "test", {}, 2007, (1, 16, 16), 10),
        ("images/MNIST", "test", {}, 10_000, (1, 28, 28), 10),
        ("images/dtd10", "train", {"size": 32}, 1200, (3, 32, 32), 10),
        ("tabular/letter.csv", "train", {"label_column": "letter", "n_train": 16_000}, 16_000, (16,), 26),
        ("tabular/covertype20k.csv.gz", "test", {"label_column": 0}, 4000, (54,), 7),
    ],
)
def test_real_files(path, split, options, n, shape, classes):
    data = load_dataset(SHARED / path, split, **options)
    assert (len(data), data.in_shape, data.n_classes) == (n, shape, classes)


@needs_shared
def test_a_far_source_is_brought_to_the_shape_of_the_data():
    like = gaussian_noise(1, (3, 32, 32))
    assert load_dataset("mnist", "test", root=SHARED / "images", like=like).in_shape == (3, 32, 32)


@needs_shared
def test_agnews_learns_to_tell_topics_apart():
    from sklearn.linear_model import RidgeClassifier

    train, test = load_splits(SHARED / "text", encoder_options={"max_features": 500}).values()
    score = RidgeClassifier().fit(train.x, train.y).score(test.x, test.y)
    assert (len(train), len(test)) == (8000, 7600) and score > 0.7
