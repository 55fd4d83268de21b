"""How the console names a memory without a title."""

UNTITLED = "untitled"
# About as much of a summary as fits into a heading.
MOST = 80


def titled(title: str, summary: str = "") -> str:
    """Return the title, or the beginning of the summary, or else ``untitled``."""
    if title:
        return title
    text = " ".join(summary.split())
    return f"{text[:MOST].rstrip()}…" if len(text) > MOST else text or UNTITLED
