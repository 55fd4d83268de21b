"""What is decided about a pair: merge, keep both, supersede, and undo. Each in one transaction, with its journal."""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.access.principal import Principal
from memory.models import ForgetRun


@dataclass(frozen=True, slots=True)
class PairUndone:
    """What an undo did: whether both topics are as before, and if not, why, topic by topic."""

    restored: bool
    conflicts: list[tuple[uuid.UUID, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PairsMerged:
    """What merging many pairs did: the runs, and the pairs that were left alone, each with the reason."""

    merged: list[tuple[uuid.UUID, ForgetRun]]
    left: list[tuple[uuid.UUID, str]]


def pair_merge(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Make one topic of two: the one that was written to last takes in the other. About thirty statements.

    Fields that only the other had move over, histories of the same name are joined by time, links are re-pointed,
    categories united; the other is ``merged_into`` the survivor and on no read path any more. Returns the run (event
    ``by_hand``, ``revise`` for the system) that takes it back; its result reads ``merged:<other>->:<survivor>``.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the pair is decided already, or one of the two has left
    queries.
    """
    raise NotImplementedError


def pairs_merge(
    pair_ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime, seen_at: dt.datetime
) -> PairsMerged:
    """Merge the pairs in which nothing that matters differs, each in a transaction of its own; the others are left
    alone and told, as are those with a topic that changed after ``seen_at``. At most 200. Raises ``NotAllowed`` and
    ``ValueRefused``."""
    raise NotImplementedError


def pair_keep_both(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Note that both stay; the pair is not offered again unless one of the texts changes. Five statements.

    Raises ``NotAllowed``, ``NotVisible``, ``Conflict`` if it is merged or superseded.
    """
    raise NotImplementedError


def pair_supersede(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Let the newer topic replace the older: the older is released, a link ``supersedes`` leads from the newer to it.

    About fifteen statements. Returns the run that takes it back. Raises as ``pair_merge`` does.
    """
    raise NotImplementedError


def pair_undo(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> PairUndone:
    """Take back what was decided. A merge or supersede is the undo of its run; of *keep both*, the pair is open again.

    Both topics are byte for byte what they were if neither was changed since; else nothing is touched and the reasons
    are told. Raises ``NotAllowed``, ``NotVisible``, ``Conflict`` if nothing was decided.
    """
    raise NotImplementedError
