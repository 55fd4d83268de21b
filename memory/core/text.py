"""The text of a topic that is embedded for search by meaning, and indexed for search by words."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from memory.text.search_words import words_for_search

# The beginning of a text is enough to recognize its subject. Embedders have limits too, such as 512 tokens.
MAX_EMBEDDED_CHARS = 4_000
# A document of PostgreSQL has at most a megabyte of lexemes, and a hyphenated word is stored whole and in parts.
MAX_DOCUMENT_BYTES = 250_000
# The maximum number of categories of a topic, from all sources together.
MAX_CATEGORIES = 50


@dataclass(frozen=True, slots=True)
class TopicText:
    """The content of a topic: title, summary and the current values of its fields. Names of fields and texts of linked
    topics are left out. Results are better without them (docs/benchmarks.md). Also, no vector of another topic contains
    the text of a forgotten topic."""

    title: str
    summary: str
    values: Sequence[str] = ()

    def whole(self) -> str:
        """Return the content as one text."""
        return _cut("\n".join(part for part in (self.title, self.summary, *self.values) if part))

    def document(self) -> str:
        """Return the text that is indexed for search by words."""
        return _cut(words_for_search(self.whole()))

    def embedded(self) -> str:
        """Return the text that is embedded."""
        return self.whole()[:MAX_EMBEDDED_CHARS]


def _cut(text: str) -> str:
    return text.encode()[:MAX_DOCUMENT_BYTES].decode(errors="ignore")


def text_normalized(text: str) -> str:
    """Return ``text`` in the Unicode normal form NFKC, with which embedding models were trained."""
    return unicodedata.normalize("NFKC", text)
