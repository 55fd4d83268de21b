"""Columns whose text is not what it says: pickles of the queue, and sessions. Read and written as their owners do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django_q.signing import SignedPackage
from picklefield.fields import dbsafe_decode, dbsafe_encode


@dataclass(frozen=True, slots=True)
class Coded:
    """How a column is read into plain values and written back. A row that is ``void_when_changed`` is taken away
    rather than changed: a job whose arguments name what is gone has nothing left to do."""

    read: Callable[[str], Any]
    write: Callable[[Any], str]
    void_when_changed: bool = False


def _unpickled(text: str) -> Any:
    return dbsafe_decode(text)


def _pickled(value: Any) -> str:
    return str(dbsafe_encode(value, pickle_protocol=-1))


def _queued(text: str) -> Any:
    return SignedPackage.loads(text)


def _session(text: str) -> Any:
    return SessionStore().decode(text)


CODED = {
    "django_q_task.args": Coded(_unpickled, _pickled),
    "django_q_task.kwargs": Coded(_unpickled, _pickled),
    "django_q_task.result": Coded(_unpickled, _pickled),
    "django_q_ormq.payload": Coded(_queued, SignedPackage.dumps, void_when_changed=True),
    "django_session.session_data": Coded(_session, lambda value: SessionStore().encode(value)),
}
