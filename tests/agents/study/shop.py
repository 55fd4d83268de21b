"""Short words for studies: begun without the assistant, worked on by a turn of the worker."""

import uuid
from typing import Any

from django.test import override_settings
from django.utils import timezone

from memory.access.principal import Principal
from memory.agents.study.control import study_start
from memory.agents.study.work import study_work
from memory.models import ApiKey, Conversation, StudyJob
from memory.resumable import job_cancel
from tests.cast import principal_like


def started(text: str, *, scope: str = "/", principal: Principal | None = None) -> StudyJob:
    """Begin a conversation and the study of a text in it."""
    who = principal or principal_like("agent")
    now = timezone.now()
    talk = Conversation.objects.create(
        id=uuid.uuid4(), scope=scope, actor=who.actor, identity=who.identity, created_at=now, moved_at=now
    )
    return study_start(
        text, conversation_id=talk.id, scope=scope, model=None, principal=who, now=now, enqueue=lambda _job: None
    )


def principal_of_key(key: ApiKey) -> Principal:
    """Return the caller that a key stands for."""
    return Principal(identity=f"key:{key.pk}", actor=f"key:{key.name}", role=key.role, scope=key.scope)


def worked(job: StudyJob, *, seconds: float = 60.0, **more: Any) -> StudyJob:
    """Let the worker have a turn at it."""
    return study_work(job.id, clock=timezone.now, seconds=seconds, **more)


def study_ready(verb: str = "", *, scope: str = "/") -> str:
    """Return the id of a study with which ``verb`` is possible, whether there is a model or not. The agent of the cast
    has begun it, if there is one."""
    key = ApiKey.objects.filter(name="agent").first()
    with override_settings(MEMSTATE_LLM_MODEL="small", MEMSTATE_STUDY_MOST_OPEN_PER_KEY=1000):
        job = started("Tea is green. Coffee is black.", scope=scope, principal=key and principal_of_key(key))
    if verb == "resume":
        job_cancel(StudyJob, job.id, principal=principal_like("operator"), now=timezone.now())
    return str(job.id)
