"""Truncation of texts."""


def text_cut(text: str, most: int) -> str:
    """Return the first ``most`` characters of a text, and an ellipsis if there were more."""
    return text if len(text) <= most else f"{text[:most]}…"


def line_cut(text: str, most: int) -> str:
    """Return a text as one line of at most ``most`` characters. If it is longer, an ellipsis replaces the end."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
