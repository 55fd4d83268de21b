"""How the console names a memory without any text."""

UNTITLED = "untitled"


def titled(label: str) -> str:
    """Return the label of a memory (see ``label_sql``), or ``untitled`` if it is empty."""
    return label or UNTITLED
