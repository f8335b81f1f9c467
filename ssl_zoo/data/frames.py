"""Parquet and csv files: images, tables or texts, by their columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.image_files import decode_bytes
from ssl_zoo.data.labels import encode_labels, find_label_column
from ssl_zoo.data.splits import files_of_split, split_of, split_rows
from ssl_zoo.data.tabular import TABLE_SUFFIXES, TableEncoder, read_csv
from ssl_zoo.data.text import TEXT_NAMES, TextEncoder, make_text_encoder

FRAME_SUFFIXES = (".parquet", *TABLE_SUFFIXES)
_IMAGE_NAMES = ("image", "img", "picture")


def load_frames(
    path: Path,
    split: str,
    *,
    like: ArrayDataset | None = None,
    size: int | None = None,
    channels: int | None = None,
    image_column: str | None = None,
    label_column: str | int | None = None,
    text_column: str | None = None,
    text_encoder: str | TextEncoder = "tfidf",
    encoder_options: dict[str, Any] | None = None,
    drop_columns: Sequence[str] = (),
    class_names: Sequence[str] | None = None,
    separator: str | None = None,
    header: bool = True,
    n_train: int | None = None,
    test_fraction: float = 0.2,
    split_seed: int = 0,
) -> ArrayDataset:
    """One split of a file or folder of parquet or csv files; the options are those of `load_dataset`."""
    frame, rows, file_names, learn = _read_split(path, split, separator, header, (n_train, test_fraction, split_seed))
    where = str(path)
    image_column = image_column or next((c for c in frame.columns if c in _IMAGE_NAMES), None)
    text_column = text_column or (None if image_column else next((c for c in frame.columns if c in TEXT_NAMES), None))
    for name in (image_column, text_column, *drop_columns):
        if name is not None and name not in frame.columns:
            raise ValueError(f"{where} has no column {name!r}; its columns are {', '.join(frame.columns[:10])}")
    frame = frame.drop(columns=list(drop_columns))
    label = find_label_column(list(frame.columns), label_column, where)
    features_like = like is not None and like.encoder is not None
    names = class_names or (like.class_names if like is not None and features_like else file_names.get(label))
    y, found = encode_labels(frame[label], names, where=f"{where}, column {label!r}")
    part, y, source = frame.iloc[rows], y[rows], f"{path.name} ({split})"
    if image_column is not None:
        if size is None and like is not None and like.is_image:
            size = like.in_shape[-1]
        x = decode_bytes(part[image_column].tolist(), size=size, channels=channels, where=where)
        kind = "digits" if x.shape[1] == 1 and max(x.shape[2:]) <= 32 else "image"
        return ArrayDataset(x, y, found, kind, source)
    if like is not None and features_like:
        encoder = like.encoder
    else:
        learn = learn if learn is not None else _train_rows(path, split, frame, separator, header, where)
        learn = learn.drop(columns=[label, *drop_columns], errors="ignore")
        encoder = _fit(learn, text_column, text_encoder, encoder_options or {})
    kind = "tabular" if isinstance(encoder, TableEncoder) else "text"
    x = encoder.transform(part.drop(columns=label) if kind == "tabular" else _texts(part, text_column, where))
    return ArrayDataset(x, y, found, kind, source, encoder)


def _fit(learn: pd.DataFrame, text_column: str | None, text_encoder: str | TextEncoder, options: dict[str, Any]) -> Any:
    if text_column is None:
        return TableEncoder.fit(learn)
    return make_text_encoder(text_encoder, **options).fit(_texts(learn, text_column, "the train split"))


def _texts(frame: pd.DataFrame, column: str | None, where: str) -> list[str]:
    if column is None:
        raise ValueError(f"{where} has no text column; name it with text_column=")
    return [str(text) for text in frame[column].fillna("")]


def _read_split(
    path: Path, split: str, separator: str | None, header: bool, division: tuple[int | None, float, int]
) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]], pd.DataFrame | None]:
    """Frame, rows of the split, class names the file gives, and the rows to learn features from when known.

    Of a source without splits the whole frame comes back: both splits see the same classes then.
    """
    n_train, test_fraction, split_seed = division
    if path.is_dir():
        files = files_of_split(path, split, FRAME_SUFFIXES)
        everything = files_of_split(path, "all", FRAME_SUFFIXES)
        if not files and len(everything) == 1 and split_of(everything[0]) is None:
            files = everything
        if not files:
            raise FileNotFoundError(
                f"{path} holds no file for split {split!r}; its files are {', '.join(p.name for p in everything[:10])}"
            )
    else:
        files = [path]
        own = split_of(path)
        if own is not None and split not in (own, "all"):
            raise ValueError(f"{path} is named after split {own!r}; asked for {split!r}. Give that split's file")
    read = [_read_file(p, separator, header) for p in files]
    frame = read[0][0] if len(read) == 1 else pd.concat([f for f, _ in read], ignore_index=True)
    if split == "all" or all(split_of(p) == split for p in files):
        learn = frame if split in ("train", "all") else None
        return frame, np.arange(len(frame)), read[0][1], learn
    options: dict[str, Any] = {"n_train": n_train, "test_fraction": test_fraction, "split_seed": split_seed}
    rows = split_rows(len(frame), split, **options)
    return frame, rows, read[0][1], frame.iloc[split_rows(len(frame), "train", **options)]


def _train_rows(
    path: Path, split: str, frame: pd.DataFrame, separator: str | None, header: bool, where: str
) -> pd.DataFrame:
    """Rows of the train files beside this split's, which alone may be learned from."""
    files = files_of_split(path, "train", FRAME_SUFFIXES) if path.is_dir() else []
    if not files:
        raise ValueError(
            f"{where}: the features of split {split!r} rest on the train split; load that first and give it with like="
        )
    return pd.concat([_read_file(p, separator, header)[0] for p in files], ignore_index=True)


def _read_file(path: Path, separator: str | None, header: bool) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """A frame, and the class names that a Hugging Face parquet file carries by column."""
    if not path.name.lower().endswith(".parquet"):
        return read_csv(path, separator=separator, header=header), {}
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} cannot be read as a parquet file: {error}") from error
    columns = {
        name: column.to_pylist() if pa.types.is_struct(column.type) else column.to_pandas()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pd.DataFrame(columns), _huggingface_names(table.schema.metadata or {})


def _huggingface_names(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
        return {name: spec["names"] for name, spec in features.items() if spec.get("_type") == "ClassLabel"}
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
        return {}  # the names are an extra: a file without them still reads
