"""The optional language model: requests to it and checks of its answers.

All requests go through ``client`` and ``dialogue``. Every feature also works without a model.
"""

from memory.llm.summaries import Summary, revisions_summarize

__all__ = ["Summary", "revisions_summarize"]
