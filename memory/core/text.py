"""The text by which a topic is found: by meaning through its embedding, by word through its search document."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# The title of a topic that was given none.
UNTITLED = "untitled"
# What a topic is about shows in its beginning. Embedders have limits of their own besides; the packaged one reads 512
# tokens.
MAX_EMBEDDED_CHARS = 4_000
# PostgreSQL holds at most a megabyte of lexemes in one document, and keeps a hyphenated word whole and in its parts.
MAX_DOCUMENT_BYTES = 250_000
# Of one topic, over everything that adds to it.
MAX_CATEGORIES = 50


@dataclass(frozen=True, slots=True)
class TopicText:
    """What a topic says: title, summary and the current values of its fields, in the order of their creation.

    Values stand without the names of their fields: "Berlin" says where somebody lives, "city" says it of everybody.
    What linked topics say is not mixed in. Recall lets neighbours speak for each other at query time instead, which
    measured better (docs/benchmarks.md) and leaves nothing of a forgotten topic in the vectors of others.
    """

    title: str
    summary: str
    values: Sequence[str] = ()

    def document(self) -> str:
        """Return the text whose words the topic is found by."""
        text = "\n".join(part for part in (self.title, self.summary, *self.values) if part)
        return text.encode()[:MAX_DOCUMENT_BYTES].decode(errors="ignore")

    def embedded(self) -> str:
        """Return the text that is embedded."""
        return self.document()[:MAX_EMBEDDED_CHARS]


def text_normalized(text: str) -> str:
    """Return ``text`` in Unicode's compatibility composition, which embedding models were trained on (NFKC)."""
    return unicodedata.normalize("NFKC", text)
