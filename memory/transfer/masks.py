"""What a purge has erased here, taken out of journals that come with a file, as the purge would have.

A file is older than the purge, or the purge was between two batches: what it says of the topics is left out by
``marks``, and what journals of others and conversations repeat of them is masked here, before anything is decided.
"""

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from memory.command.belongings import DOCUMENTS, TEXT_ARRAYS, TEXTS, column_kept
from memory.command.receipts import is_anchor
from memory.command.sought import SoughtEraser, receipts_wanted
from memory.models import ErasureReceipt
from memory.transfer import shape
from memory.transfer.shape import Rows

# The rows of a line that are not what a topic says, each with the member that it stands in; none is the line itself.
_ROWS: dict[str, tuple[tuple[str, Rows], ...]] = {
    "policy": (("versions", shape.POLICY_VERSION),),
    "topic": (("vitality", shape.VITALITY),),
    "run": (("", shape.RUN),),
    "action": (("", shape.ACTION),),
    "pair": (("", shape.PAIR),),
    "access": (("", shape.ACCESS),),
    "shadow": (("", shape.SHADOW),),
    "audit": (("", shape.AUDIT),),
    "conversation": (("", shape.CONVERSATION), ("told", shape.TURN), ("writes", shape.WRITE)),
}
# When a row was written, where its columns tell.
_MOMENTS = ("at", "created_at")
# Members of a call in which ids of topics stand.
_IDS = ("topic_ids", "seen")
_SORTS = TEXTS | DOCUMENTS | TEXT_ARRAYS


def lines_masked(sort: str, lines: Sequence[bytes], *, receipts: tuple[int, int]) -> Iterator[str]:
    """Yield the lines of a batch with what was erased here masked; the receipts from ``receipts[0]`` to ``receipts[1]``
    came with the file. One query, and one more after each purge; a line that holds nothing is as it was."""
    eraser = _eraser(receipts) if sort in _ROWS else None
    for line in lines:
        yield line.decode() if eraser is None else _line_masked(sort, line.decode(), eraser)


def _eraser(receipts: tuple[int, int]) -> SoughtEraser | None:
    rows = ErasureReceipt.objects.exclude(number__range=receipts)
    last = rows.order_by("-number").values_list("hash", flat=True).first()
    return None if last is None else _eraser_make(last, receipts)


@lru_cache(maxsize=2)
def _eraser_make(_last: str, receipts: tuple[int, int]) -> SoughtEraser:
    # A receipt holds the hash of the one before, so the last stands for all of them.
    return SoughtEraser(receipts_wanted(but=receipts))


def _line_masked(sort: str, line: str, eraser: SoughtEraser) -> str:
    told = json.loads(line)
    changed = False
    if sort == "conversation":
        changed = _conversation_empty(told, eraser.ids)
    for member, rows in _ROWS[sort]:
        held = told[member] if member else told
        for row in held if isinstance(held, list) else [held]:
            changed = _row_mask(row, rows, eraser) or changed
    return json.dumps(told, ensure_ascii=False) if changed else line


def _row_mask(row: dict[str, Any], rows: Rows, eraser: SoughtEraser) -> bool:
    """Mask the texts of a row where it stands; return whether there was anything."""
    table = rows.table
    written = next((row[name] for name in _MOMENTS if row.get(name)), None)
    own = eraser.at(_moment(written) if table != "memory_vitality" else None)
    changed = False
    for column in rows.columns:
        value = row[column.member]
        if not value or column.is_scope or column.base_sort not in _SORTS or column_kept(table, column.name):
            continue
        if table == "memory_auditevent" and is_anchor(value):
            continue
        masked = own.masked(value) if isinstance(value, str) else own.masked_value(value)
        if masked is not value:
            limit = column.field.max_length if isinstance(masked, str) else None
            row[column.member] = masked[:limit] if limit else masked
            # What is made from a text goes with it.
            row |= dict.fromkeys({f"{column.member}_hash"} & row.keys(), "")
            changed = True
    return changed


def _moment(written: str | None) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(written) if written else None
    except ValueError:
        # The database reads what Python does not; then nothing is taken to be later than the purge.
        return None


def _conversation_empty(told: dict[str, Any], ids: set[str]) -> bool:
    """Empty the first turn that had to do with what was erased, and all behind it: whoever has read of it may have
    paraphrased it. Return whether there was one."""
    writes = [write["at"] for write in told["writes"] if write["topic_id"] in ids]
    turns: list[dict[str, Any]] = told["told"]
    touched = [turn["place"] for turn in turns if not ids.isdisjoint(_ids_called(turn))]
    # A write is of the last turn that had begun.
    touched += [max((turn["place"] for turn in turns if _not_after(turn["at"], at)), default=1) for at in writes]
    if not touched:
        return False
    for turn in turns:
        if turn["place"] < min(touched):
            continue
        turn |= {"message": "", "reply": "", "erased": True}
        for call in turn["tool_log"]:
            call |= {"arguments": {}, "said": ""}
            call |= {name: [each for each in _listed(call, name) if each not in ids] for name in _IDS if name in call}
    return True


def _not_after(one: str, other: str) -> bool:
    first, second = _moment(one), _moment(other)
    return first is None or second is None or first <= second


def _ids_called(turn: dict[str, Any]) -> Iterator[str]:
    for call in turn["tool_log"]:
        for name in _IDS:
            yield from map(str, _listed(call, name))


def _listed(call: dict[str, Any], name: str) -> list[Any]:
    held = call.get(name)
    return held if isinstance(held, list) else []
