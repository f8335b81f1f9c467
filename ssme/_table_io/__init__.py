"""Files and frames of scores -> :class:`TableParts`, the raw material of a ScoreTable, and back."""

from ssme._table_io._files import naming, read_labels, read_parts, suffix_of, write_parts
from ssme._table_io._frames import frame_to_parts, parts_to_frame
from ssme._table_io._ids import align, class_order, pick_names, pick_rows, rows_of
from ssme._table_io._parts import LAYOUTS, ReadOptions, TableParts

__all__ = [
    "LAYOUTS",
    "ReadOptions",
    "TableParts",
    "align",
    "class_order",
    "frame_to_parts",
    "naming",
    "parts_to_frame",
    "pick_names",
    "pick_rows",
    "read_labels",
    "read_parts",
    "rows_of",
    "suffix_of",
    "write_parts",
]
