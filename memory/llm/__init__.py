"""The optional language model: what it is asked, and what of its answers is believed.

``client`` is the one way to it. Everything else here asks it something, and has an answer without it.
"""

from memory.llm.summaries import Summary, revisions_summarize

__all__ = ["Summary", "revisions_summarize"]
