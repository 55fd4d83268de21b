"""Labels for the text that extraction left out."""

from collections.abc import Mapping

# Maps each type of left-out text, and each fault of a model's fact, to its label in singular and plural.
_WORDS = {
    "question": ("question", "questions"),
    "filler": ("greeting or filler", "greetings and fillers"),
    "repeat": ("repeated sentence", "repeated sentences"),
    "leaning": ("sentence without a subject of its own", "sentences without a subject of their own"),
    "speaker": ("sentence of an unnamed speaker", "sentences of an unnamed speaker"),
    "quote": ("quoted line", "quoted lines"),
    "header": ("header line", "header lines"),
    "signature": ("signature line", "signature lines"),
    "heading": ("heading", "headings"),
    "identifier": (
        "fact with an identifier that is not in the text",
        "facts with identifiers that are not in the text",
    ),
    "number": ("fact with a number that is not in the text", "facts with numbers that are not in the text"),
    "name": ("fact with a name that is not in the text", "facts with names that are not in the text"),
    "negation": ("fact that contradicts the text", "facts that contradict the text"),
    "words": ("fact in words that are not in the text", "facts in words that are not in the text"),
    "length": ("fact that is too long", "facts that are too long"),
}


def dropped_words(dropped: Mapping[str, int]) -> str:
    """Return the numbers of dropped parts in words: "2 questions, 1 heading"; empty if nothing was dropped."""
    return ", ".join(
        f"{count:,} {_WORDS.get(what, (what, what))[count != 1]}" for what, count in dropped.items() if count
    )
