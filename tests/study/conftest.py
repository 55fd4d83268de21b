"""Studies for these tests: begun without the assistant, worked on by a turn of the worker."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import Principal
from memory.models import Conversation, StudyJob
from memory.study.start import study_start
from memory.study.work import study_work
from tests.cast import principal_like
from tests.llm.fixtures import model

__all__ = ["model"]

Start = Callable[..., StudyJob]


@pytest.fixture(autouse=True)
def _no_delay(settings: Any) -> None:
    settings.MEMSTATE_STUDY_PHASE_DELAY_SECONDS = 0.0


@pytest.fixture
def start(db: None) -> Start:
    return started


def started(text: str, *, scope: str = "/", principal: Principal | None = None, **more: Any) -> StudyJob:
    """Begin a conversation and the study of a text in it."""
    who = principal or principal_like("agent", scope)
    now = timezone.now()
    talk = Conversation.objects.create(
        id=uuid.uuid4(), scope=scope, actor=who.actor, identity=who.identity, created_at=now, moved_at=now
    )
    return study_start(
        text, conversation_id=talk.id, scope=scope, model=None, principal=who, now=now,
        hand_over=lambda _job: None, **more,
    )  # fmt: skip


def worked(job: StudyJob, *, seconds: float = 60.0, **more: Any) -> StudyJob:
    """Let the worker have a turn at it."""
    return study_work(job.id, clock=timezone.now, seconds=seconds, **more)
