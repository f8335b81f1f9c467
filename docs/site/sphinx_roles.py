"""The roles of docstrings (:func:`name`) as code: the site reads Markdown, which does not know them."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|obj|exc):`~?([^`]+)`")


class SphinxRoles(griffe.Extension):
    """Rewrite the docstring of every object before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)
