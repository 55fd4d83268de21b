"""The optional language model: what it is asked, and what of its answers is believed."""

from memory.llm.summaries import Summary, revisions_summarize

__all__ = ["Summary", "revisions_summarize"]
