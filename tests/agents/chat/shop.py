"""Short words for what the tests of conversations' undo do: a conversation that writes, as its tools would."""

import datetime as dt
import uuid
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from memory.access.principal import Principal
from memory.agents.chat.conversations import conversation_begin
from memory.agents.chat.undo import ConversationUndone, conversation_undo, conversation_undo_preview
from memory.agents.tools.write_log import item_write
from memory.agents.tools.write_tools import PROVENANCE
from memory.duplicates.pair_actions import pair_merge
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.models import Conversation, ConversationWrite, ForgetRun, Revision
from tests.duplicates.shop import pair_make

OPERATOR = Principal("person:1", "Ada", "operator")
LEADER = Principal("key:1", "key:one", "agent")


class Talk:
    """A conversation, and what its tools write."""

    def __init__(self, scope: str = "/") -> None:
        self.row: Conversation = conversation_begin(scope=scope, channel="api", principal=LEADER, now=timezone.now())

    def new(self, title: str, /, links: tuple[str, ...] = (), **values: str) -> str:
        """Make a topic and return its id."""
        return self._ingest("new_topic", title=title, fields=_fields(values), edges=_edges(links))

    def extend(self, topic_id: str, /, links: tuple[str, ...] = (), **values: str) -> None:
        """Add fields and links to a topic."""
        self._ingest("extend_topic", topic_id=topic_id, fields=_fields(values), edges=_edges(links))

    def version(self, topic_id: str, name: str, value: str) -> None:
        """Give a field a new value, as text."""
        fields = [IngestField(name=name, value=value, field_type="string", provenance=PROVENANCE)]
        self._ingest("version_field", topic_id=topic_id, fields=fields)

    def merge(self, one: str, other: str) -> ForgetRun:
        """Merge two topics as a study does: the run is noted."""
        with transaction.atomic():
            run = pair_merge(pair_make(one, other).pk, principal=OPERATOR, reason="the same", now=timezone.now())
        ConversationWrite.objects.create(
            conversation=self.row, topic_id=uuid.UUID(one), at=timezone.now(), what="merged", run_id=run.pk
        )
        return run

    def look(self) -> ConversationUndone:
        """What an undo would do."""
        return conversation_undo_preview(self.row.pk, principal=OPERATOR, now=timezone.now())

    def undo(self, reason: str = "wrong person", now: dt.datetime | None = None) -> ConversationUndone:
        """Undo, and check that it did what was said before."""
        said = self.look()
        done = conversation_undo(
            self.row.pk, principal=OPERATOR, reason=reason, now=now or timezone.now(), digest=said.digest
        )
        assert (said.counts, len(said.left)) == (done.counts, len(done.left))
        return done

    def undo_freely(self) -> ConversationUndone:
        """Undo, where what was said before need not be what is done: others have been at what was merged."""
        return conversation_undo(self.row.pk, principal=OPERATOR, reason="", now=timezone.now())

    def revisions(self) -> set[uuid.UUID]:
        """The revisions that it has written."""
        found = ConversationWrite.objects.filter(conversation=self.row, revision_id__isnull=False)
        return {each for each in found.values_list("revision_id", flat=True) if each}

    @staticmethod
    def newest() -> set[uuid.UUID]:
        """The revisions that fields of the store say now."""
        return set(Revision.objects.filter(seq=F("field__last_seq")).values_list("id", flat=True))

    def _ingest(self, placement: Any, **members: Any) -> str:
        item = IngestItem(placement=placement, **members)
        written = item_write(item, principal=LEADER, now=timezone.now(), conversation_id=self.row.pk)
        return str(written.topic_id)


def _fields(values: dict[str, str]) -> list[IngestField]:
    return [IngestField(name=name, value=value, provenance=PROVENANCE) for name, value in values.items()]


def _edges(links: tuple[str, ...]) -> list[IngestEdge]:
    return [IngestEdge(to_topic_id=uuid.UUID(each), kind="knows") for each in links]
