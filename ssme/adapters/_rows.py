"""What people have as data -> rows to score, with ids, labels and groups: lists, frames, data sets, files, folders."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ssme._validation import argument, at_row, check_row_ids, counted, first_few

Missing = Literal["error", "drop", "empty"]
Modality = Literal["text", "image"]
IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
ID_NAMES = ("id", "row_id", "index")  # the names that score files know
# Of rows in a file; datasets.Dataset is known by its module so that it need not be imported.
READERS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl")


@dataclass(frozen=True)
class Columns:
    """Which column is what; None takes what is there by its usual name."""

    content: str | None = None
    pair: str | None = None
    id: str | None = None
    label: str | None = None
    groups: Sequence[str] = ()


@dataclass(frozen=True)
class Rows:
    """n rows to score: texts, pairs of texts, or images; labels and groups as they stand in the data."""

    items: Sequence[Any]
    ids: np.ndarray
    labels: Sequence[Any] | None = None
    groups: dict[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)


def read_rows(data: Any, modality: Modality, columns: Columns, missing: Missing = "error") -> Rows:
    """Read data of any of the kinds.

    Parameters
    ----------
    data : list, Series, DataFrame, datasets.Dataset, or path of a file or a folder
        A file is .csv, .tsv, .parquet or .jsonl. A folder holds .txt files or images, at any depth: the id of a row is
        its path in the folder, and the column "folder" is the name of the folder that it lies in.
    modality : {"text", "image"}
    columns : Columns
    missing : {"error", "drop", "empty"}
        What becomes of rows without content: an error, left out with a warning, or taken as empty text.

    Examples
    --------
    >>> rows = read_rows(["fine", "awful"], "text", Columns())
    >>> rows.items, rows.ids.tolist()
    (['fine', 'awful'], ['0', '1'])
    """
    if missing not in ("error", "drop", "empty"):
        raise ValueError(f"{argument('missing')} is {missing!r}; it must be 'error', 'drop' or 'empty'.")
    table = _Table.of(data, modality)
    name = table.content_column(columns.content, modality)
    items = table.images(name) if modality == "image" else table.column(name)
    labels = None if columns.label is None else table.labels(columns.label)
    groups = {group: table.column(group) for group in columns.groups}
    pairs = None if columns.pair is None else table.column(columns.pair)
    ids = check_row_ids(table.ids(columns.id), len(items), f"the id of {argument('data')}")
    if not len(items):
        raise ValueError(f"{argument('data')} has no rows; there is nothing to score.")
    absent = np.array([_is_missing(item) for item in items] if modality == "text" else table.missing_images(items))
    if pairs is not None:
        absent |= np.array([_is_missing(item) for item in pairs])
    keep = _kept(absent, missing, modality, ids)
    if modality == "text":
        items = _texts(items, ids, name, keep)
        if pairs is not None:
            items = list(zip(items, _texts(pairs, ids, str(columns.pair), keep), strict=True))
    elif not keep.all():
        items = _Subset(items, np.flatnonzero(keep))
    rows = np.flatnonzero(keep).tolist()
    return Rows(
        items,
        ids[rows],
        None if labels is None else [labels[i] for i in rows],
        {group: [values[i] for i in rows] for group, values in groups.items()},
    )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def _kept(absent: np.ndarray, missing: str, modality: str, ids: np.ndarray) -> np.ndarray:
    """Mask of the rows that are scored."""
    if not absent.any() or (missing == "empty" and modality == "text"):
        return np.ones(len(absent), dtype=bool)
    what = f"{counted(int(absent.sum()), 'row')} of {argument('data')} (id {first_few(ids[absent])}) without {modality}"
    if missing == "drop" and not absent.all():
        warnings.warn(f"{what}: left out.", UserWarning, stacklevel=5)
        return ~absent
    empty = f", or {argument('missing', 'empty')} to score an empty text" if modality == "text" else ""
    raise ValueError(f"{what}: fill them in, or pass {argument('missing', 'drop')} to leave them out{empty}.")


def _texts(values: Sequence[Any], ids: np.ndarray, name: str, keep: np.ndarray) -> list[str]:
    """The texts that are kept; what is missing among them is empty."""
    found = []
    for i in np.flatnonzero(keep).tolist():
        text = values[i]
        if _is_missing(text):
            text = ""
        if not isinstance(text, str):
            kind = type(text).__name__
            raise TypeError(f"{name!r} holds a {kind} at {at_row(i)} (id {ids[i]!r}); it must hold text.")
        found.append(str(text))
    return found


class _Subset(Sequence[Any]):
    """Some rows of a sequence, read when they are asked for."""

    def __init__(self, items: Sequence[Any], rows: np.ndarray) -> None:
        self.items, self.rows = items, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.items[int(self.rows[i])]


class _Lazy(Sequence[Any]):
    """A column of a datasets.Dataset whose cells are read one by one: images do not all fit into memory."""

    def __init__(self, data: Any, name: str) -> None:
        self.data, self.name = data.select_columns([name]), name

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: Any) -> Any:
        return self.data[int(i)][self.name]


class _Table:
    """Columns by name, whatever holds them."""

    def __init__(self, names: Sequence[str], data: Any, index: Any = None) -> None:
        self.names, self.data, self.index = [str(name) for name in names], data, index

    @classmethod
    def of(cls, data: Any, modality: Modality) -> _Table:
        if isinstance(data, (str, os.PathLike)):
            data = _from_disk(Path(data), modality)
        if type(data).__module__.split(".")[0] == "datasets":
            return _DatasetTable.checked(data)
        if hasattr(data, "columns"):
            return cls(list(data.columns), data, _own_index(data.index))
        if hasattr(data, "index") and hasattr(data, "to_list"):  # a Series
            return cls([modality], {modality: data.to_list()}, _own_index(data.index))
        if isinstance(data, Mapping) or isinstance(data, (bytes, set)) or not hasattr(data, "__getitem__"):
            kind = type(data).__name__
            raise TypeError(f"{argument('data')} must be a list, a DataFrame, a Dataset or a path, got {kind}.")
        items = list(data)
        if items and isinstance(items[0], Mapping):
            import pandas as pd

            return cls.of(pd.DataFrame(items), modality)
        return cls([modality], {modality: items})

    def content_column(self, asked: str | None, modality: Modality) -> str:
        """The column that is scored."""
        option = argument(f"{modality}_column")
        if asked is not None:
            return self._there(asked, option)
        if modality in self.names:
            return modality
        if len(self.names) == 1:
            return self.names[0]
        raise ValueError(f"name the column of the {modality}s with {option}; there is {first_few(self.names, 20)}.")

    def _there(self, name: str, option: str) -> str:
        if name not in self.names:
            raise ValueError(
                f"{argument('data')} has no column {name!r} ({option}); there is {first_few(self.names, 20)}."
            )
        return name

    def column(self, name: str, option: str = "a column asked for") -> Sequence[Any]:
        """Values of one column."""
        values = self.data[self._there(name, option)]
        return values.to_list() if hasattr(values, "to_list") else list(values)

    def images(self, name: str) -> Sequence[Any]:
        """Cells that hold images, or say where they lie."""
        return self.column(name)

    @staticmethod
    def missing_images(items: Sequence[Any]) -> list[bool]:
        """Whether a cell holds nothing."""
        return [_is_missing(item) for item in items]

    def labels(self, name: str) -> Sequence[Any]:
        """Labels as the data have them."""
        return self.column(name, argument("label_column"))

    def ids(self, name: str | None) -> Any:
        """Ids, or None where the rows are numbered."""
        if name is not None:
            return self.column(name, argument("id_column"))
        found = next((each for each in ID_NAMES if each in self.names), None)
        return self.index if found is None else self.column(found)


class _DatasetTable(_Table):
    """A datasets.Dataset: labels by the names that its features give them, images undecoded."""

    @classmethod
    def checked(cls, data: Any) -> _DatasetTable:
        if isinstance(data, Mapping):
            raise TypeError(f"{argument('data')} has the splits {first_few(data)}; pass one of them.")
        if not hasattr(data, "__len__"):
            raise TypeError(f"{argument('data')} is a stream; pass a Dataset, whose rows can be counted.")
        return cls(data.column_names, data.with_format(None))

    def images(self, name: str) -> Sequence[Any]:
        feature = self.data.features[name]
        plain = self.data.cast_column(name, type(feature)(decode=False)) if hasattr(feature, "decode") else self.data
        return _Lazy(plain, name)

    @staticmethod
    def missing_images(items: Sequence[Any]) -> list[bool]:
        return [False] * len(items)  # to look would be to read them all; the reader complains of the row

    def labels(self, name: str) -> Sequence[Any]:
        values = super().labels(name)
        names = getattr(self.data.features[name], "names", None)
        return values if names is None else [None if v is None or v < 0 else names[v] for v in values]


def _own_index(index: Any) -> Any:
    """An index that somebody made gives the ids."""
    import pandas as pd

    return None if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 else index.to_list()


def _from_disk(path: Path, modality: Modality) -> Any:
    """A file of rows, or a folder of one file a row, as a DataFrame."""
    import pandas as pd

    if path.is_dir():
        return pd.DataFrame(_folder_rows(path, modality), columns=["id", "folder", modality])
    name = path.name.lower()
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder.")
    if not name.endswith(READERS):
        raise ValueError(f"{path}: its name must end in one of {', '.join(READERS)}.")
    try:
        if name.endswith(".parquet"):
            return pd.read_parquet(path)
        if name.endswith(".jsonl"):
            return pd.read_json(path, lines=True, dtype=False)
        separator = "\t" if ".tsv" in name else ","
        # Every cell stays text ("007", "NA"); an empty one is missing.
        return pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, na_values=[""], encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: the file is not UTF-8 text (byte {error.start}); save it in UTF-8.") from error
    except ValueError as error:  # also what pandas says of lines that do not fit, and pyarrow of files that are none
        raise ValueError(f"{path}: cannot be read ({' '.join(str(error).split())}).") from error


def _folder_rows(path: Path, modality: Modality) -> Iterator[tuple[str, str, Any]]:
    suffixes = {".txt"} if modality == "text" else IMAGE_SUFFIXES
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in suffixes and p.is_file())
    if not files:
        raise ValueError(f"{path}: the folder holds no {modality} files ({', '.join(sorted(suffixes))}).")
    for file in files:
        content: Any = file
        if modality == "text":
            try:
                content = file.read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{file}: not UTF-8 text (byte {error.start}); save it in UTF-8.") from error
        yield file.relative_to(path).as_posix(), file.parent.relative_to(path).name or ".", content
