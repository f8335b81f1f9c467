"""Of the pages as a git host shows them, what the site needs otherwise."""

import re

from mkdocs.plugins import event_priority


@event_priority(-100)  # after the parts of README have been included
def on_page_markdown(markdown: str, **_: object) -> str:
    """Turn the file name behind the language of a block into its title, which is how the site shows it."""
    return re.sub(r"^```(\w+) ([\w.-]+\.\w+)$", r'```\1 title="\2"', markdown, flags=re.M)
