"""Guesses the source of a file from its first bytes."""

import re
from pathlib import Path

from memory.core.errors import RequestRefused
from memory.core.problem_codes import ProblemCode

LOOKED_AT = 64 * 1024
_OURS = re.compile(r'\A\s*\{\s*"type"\s*:\s*"memstate"')
# Patterns by source. The pattern that matches first in the file decides, because later parts are texts and metadata.
# A later group is searched only if no pattern before it matches, because memories of mem0 may have a role too.
_SIGNS = (
    {
        "chatgpt": re.compile(r'"mapping"\s*:\s*\{'),
        "claude": re.compile(r'"chat_messages"\s*:'),
        "claude-code": re.compile(r'"(?:parentUuid|leafUuid)"\s*:'),
        "claude-memories": re.compile(r'"(?:conversations_memory|project_memories)"\s*:'),
        "mcp-memory": re.compile(r'"(?:entityType|relationType)"\s*:'),
        "mem0": re.compile(r'"(?:memory|relations|hash)"\s*:'),
    },
    {"chat": re.compile(r'"(?:role|messages|content|from|author)"\s*:')},
    # A memory of mem0 with nothing but its text.
    {"mem0": re.compile(r'"(?:text|data)"\s*:')},
)


def archive_refuse(path: Path) -> None:
    """Raise ``RequestRefused`` if a file is a ZIP archive, as services send their exports. Raises ``OSError``."""
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise RequestRefused(
                "This is a ZIP archive. Unpack it, and import its files: conversations.json, memories.json.",
                code=ProblemCode.INVALID_FILE,
            )


def source_guess(path: Path) -> str | None:
    """Return the name of the source of a file, or None if no pattern matches its beginning. Raises ``OSError``, and
    ``RequestRefused`` for a ZIP archive."""
    archive_refuse(path)
    with path.open("rb") as file:
        text = file.read(LOOKED_AT).decode(errors="replace").removeprefix("\ufeff")
    if _OURS.match(text):
        return "memstate"
    if not text.lstrip().startswith(("{", "[")):
        return None
    for signs in _SIGNS:
        found = {name: match.start() for name, sign in signs.items() if (match := sign.search(text))}
        if found:
            return min(found, key=found.__getitem__)
    return None
