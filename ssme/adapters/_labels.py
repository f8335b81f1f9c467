"""Labels of the data -> classes of the table, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ssme._validation import argument, as_text, first_few

NUMBER = re.compile(r"[+-]?\d+")


def labels_by_name(labels: Sequence[Any] | None, classes: Sequence[str], *, given: bool) -> list[Any] | None:
    """Labels as the table takes them.

    Numbers stand for the classes in their order only where the caller gave that order (`given`): the order of some
    model's outputs is no order of the data.

    Raises
    ------
    ValueError
        Where the labels are numbers, the classes are not, and nobody said which is which.

    Examples
    --------
    >>> labels_by_name(["0", "1", ""], ["no", "yes"], given=True)
    [0, 1, None]
    >>> labels_by_name([0, 1], ["no", "yes"], given=False)
    Traceback (most recent call last):
    ValueError: the labels are numbers ('0', '1'), but the classes are 'no', 'yes'; pass class_names in
    the order of the numbers.
    """
    if labels is None:
        return None
    texts = as_text(labels, argument("labels"))
    there = sorted({text for text in texts if text is not None})
    numbers = all(NUMBER.fullmatch(text) for text in there)
    if not there or not numbers or any(NUMBER.fullmatch(name) for name in classes):
        return list(texts)
    if not given and there != ["-1"]:
        raise ValueError(
            f"the labels are numbers ({first_few(there, 5)}), but the classes are {first_few(classes, 20)}; pass "
            f"{argument('class_names')} in the order of the numbers."
        )
    return [None if text is None else int(text) for text in texts]
