"""Lists of words, written as one text."""


def wordset(text: str) -> frozenset[str]:
    """Return the words of ``text``, which are parted by spaces."""
    return frozenset(text.split())
