"""The formats of other systems, by name."""

from memory.transfer.importers.chatgpt_claude import chatgpt_read, claude_code_read, claude_read
from memory.transfer.importers.importer import Importer
from memory.transfer.importers.mem0 import mem0_read
from memory.transfer.importers.memory_files import claude_memories_read, graph_read
from memory.transfer.importers.transcripts import chat_read

_MESSAGES = ("message", "messages")
_RELATIONS = ("entity or relation", "entities or relations")
IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        Importer("mem0", "memories of mem0", "memory", "memories", mem0_read),
        Importer("chatgpt", "ChatGPT export", *_MESSAGES, chatgpt_read, forgiving=True),
        Importer("claude", "Claude export", *_MESSAGES, claude_read, forgiving=True),
        Importer("claude-memories", "memories of a Claude account", "paragraph", "paragraphs", claude_memories_read),
        Importer("claude-code", "Claude Code session", *_MESSAGES, claude_code_read, forgiving=True),
        Importer("mcp-memory", "knowledge graph of an MCP memory server", *_RELATIONS, graph_read),
        Importer("chat", "chat transcript", *_MESSAGES, chat_read),
    )
}


def source_title(name: str) -> str:
    """Return how pages name the format of a file: that of an importer, or else the export of MemState."""
    title = IMPORTERS[name].title if name in IMPORTERS else "export of MemState"
    return title[:1].upper() + title[1:]
