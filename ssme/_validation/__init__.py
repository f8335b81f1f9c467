"""Every check of what a caller hands in, once, at the door: the rest of the package sees canonical arrays only."""

from ssme._validation._labels import check_class_names, check_labels
from ssme._validation._numbers import (
    check_label_weight,
    check_level,
    check_sample_weight,
    check_score_type,
    check_seed,
    effective_rows,
)
from ssme._validation._scores import check_score_array, check_scores
from ssme._validation._text import as_text, check_groups, check_names, check_row_ids, first_few, to_text
from ssme._validation._wording import argument, at_row, calling, counted

__all__ = [
    "argument",
    "as_text",
    "at_row",
    "calling",
    "check_class_names",
    "check_groups",
    "check_label_weight",
    "check_labels",
    "check_level",
    "check_names",
    "check_row_ids",
    "check_sample_weight",
    "check_score_array",
    "check_score_type",
    "check_scores",
    "check_seed",
    "counted",
    "effective_rows",
    "first_few",
    "to_text",
]
