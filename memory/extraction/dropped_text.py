"""What extraction left out, in words for people."""

from collections.abc import Mapping

# One of a kind, and several. What is left out of a text, and what is wrong with what a model told.
_WORDS = {
    "question": ("question", "questions"),
    "filler": ("greeting or filler", "greetings and fillers"),
    "repeat": ("sentence said before", "sentences said before"),
    "leaning": ("sentence that says of whom only with another", "sentences that say of whom only with others"),
    "speaker": ("sentence of somebody the text does not name", "sentences of somebody the text does not name"),
    "quote": ("quoted line", "quoted lines"),
    "header": ("header line", "header lines"),
    "signature": ("line of a signature", "lines of signatures"),
    "heading": ("heading", "headings"),
    "identifier": (
        "fact with an identifier that is not in the text",
        "facts with identifiers that are not in the text",
    ),
    "number": ("fact with a number that is not in the text", "facts with numbers that are not in the text"),
    "name": ("fact with a name that is not in the text", "facts with names that are not in the text"),
    "negation": ("fact that says the opposite of the text", "facts that say the opposite of the text"),
    "words": ("fact in words that are not the text's", "facts in words that are not the text's"),
    "length": ("fact that is too long", "facts that are too long"),
}


def dropped_words(dropped: Mapping[str, int]) -> str:
    """Return what was left out as a list in words: "2 questions, 1 heading"; empty if nothing was."""
    return ", ".join(
        f"{count:,} {_WORDS.get(what, (what, what))[count != 1]}" for what, count in dropped.items() if count
    )
