"""What the undo of a conversation did, or would do, in a sentence."""

from memory.agents.chat.turns import AT_WORK
from memory.agents.chat.undo import ConversationUndone

# Of each sort: one, several, and what becomes of them.
_SORTS = {
    "topic": ("topic", "topics", "released"),
    "value": ("value", "values", "put back"),
    "field": ("new field", "new fields", "emptied"),
    "link": ("link", "links", "removed"),
    "merge": ("merge", "merges", "taken apart"),
}


def undo_summary(undone: ConversationUndone, *, done: bool) -> str:
    """Return it as a sentence or two: ``Taken back: 2 topics are released, 1 value is put back. 1 thing is left.``"""
    parts = [
        f"{number:,} {_SORTS[what][number != 1]} {'is' if number == 1 else 'are'} {_SORTS[what][2]}"
        for what, number in undone.counts.items()
        if number
    ]
    left = len(undone.left)
    rest = "" if not left else " 1 thing is left as it is." if left == 1 else f" {left:,} things are left as they are."
    if undone.at_work:
        rest += f" {AT_WORK}"
    if not parts:
        return f"Nothing is left to take back.{rest}"
    return f"{'Taken back' if done else 'To be taken back'}: {', '.join(parts)}.{rest}"
