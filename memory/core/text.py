"""The text by which a topic is found: by meaning through its embedding, by words through its search document."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# The title of a topic that was stored without one.
UNTITLED = "untitled"
# The beginning of a text is enough to recognize the subject of a topic. Embedders have limits of their own besides; the
# packaged one reads 512 tokens.
MAX_EMBEDDED_CHARS = 4_000
# PostgreSQL holds at most a megabyte of lexemes in one document, and stores a hyphenated word whole and in parts.
MAX_DOCUMENT_BYTES = 250_000
# For one topic, from all sources together.
MAX_CATEGORIES = 50


@dataclass(frozen=True, slots=True)
class TopicText:
    """The content of a topic: title, summary and the current values of its fields, in the order of their creation.

    Names of fields are left out: "Berlin" distinguishes a topic, "city" does not. Texts of linked topics are left out
    too. Recall adds the words of neighbours at query time instead, which measured better (docs/benchmarks.md) and
    leaves nothing of a forgotten topic in the vectors of others.
    """

    title: str
    summary: str
    values: Sequence[str] = ()

    def document(self) -> str:
        """Return the text that is indexed for search by words."""
        text = "\n".join(part for part in (self.title, self.summary, *self.values) if part)
        return text.encode()[:MAX_DOCUMENT_BYTES].decode(errors="ignore")

    def embedded(self) -> str:
        """Return the text that is embedded."""
        return self.document()[:MAX_EMBEDDED_CHARS]


def text_normalized(text: str) -> str:
    """Return ``text`` in Unicode's compatibility composition, which embedding models were trained on (NFKC)."""
    return unicodedata.normalize("NFKC", text)
