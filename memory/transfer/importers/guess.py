"""What may have written a file, by its first bytes."""

import re
from pathlib import Path

MEMSTATE, MEM0, CHAT = "memstate", "mem0", "chat"
LOOKED_AT = 64 * 1024
_OURS = re.compile(r'\A\s*\{\s*"type"\s*:\s*"memstate"')
_MEM0 = re.compile(r'"(?:memory|relations|hash)"\s*:')
_CHAT = re.compile(r'"(?:role|messages|content|from|author)"\s*:')


def source_guess(path: Path) -> str | None:
    """Return "memstate", "mem0" or "chat", None if the beginning of the file looks like neither. Raises ``OSError``."""
    with path.open("rb") as file:
        text = file.read(LOOKED_AT).decode(errors="replace").removeprefix("\ufeff")
    if _OURS.match(text):
        return MEMSTATE
    if not text.lstrip().startswith(("{", "[")):
        return None
    # Memories of mem0 may have a role as well, but no message has a memory.
    if _MEM0.search(text):
        return MEM0
    return CHAT if _CHAT.search(text) else None
