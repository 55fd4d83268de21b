"""Importers for files of other systems, by name."""

from memory.transfer.importers.chatgpt_claude import ChatGPT, Claude, ClaudeCode
from memory.transfer.importers.importer import Importer
from memory.transfer.importers.mem0 import Mem0
from memory.transfer.importers.memory_files import ClaudeMemories, MemoryGraph
from memory.transfer.importers.transcripts import Chat

IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (Mem0(), ChatGPT(), Claude(), ClaudeMemories(), ClaudeCode(), MemoryGraph(), Chat())
}


def source_title(name: str) -> str:
    """Return how pages name the format of a file: that of an importer, or else the export of MemState."""
    title = IMPORTERS[name].title if name in IMPORTERS else "export of MemState"
    return title[:1].upper() + title[1:]
