"""Importers for files of other systems, registered by name."""

from memory.transfer.importers.chatgpt_claude import ChatGPT, Claude, ClaudeCode
from memory.transfer.importers.mem0 import Mem0
from memory.transfer.importers.transcripts import Chat
from memory.transfer.sources import SOURCES

for source in (Mem0(), ChatGPT(), Claude(), ClaudeCode(), Chat()):
    SOURCES[source.name] = source
