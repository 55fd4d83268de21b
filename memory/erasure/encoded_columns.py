"""Columns with encoded text: pickles of the queue, and sessions. Decoded and encoded as their libraries do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django_q.signing import SignedPackage
from picklefield.fields import dbsafe_decode, dbsafe_encode


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a column is decoded into plain values and encoded again. With ``delete_when_changed`` a row that would change
    is deleted instead: a queued job whose arguments name erased content has nothing to do."""

    read: Callable[[str], Any]
    write: Callable[[Any], str]
    delete_when_changed: bool = False


def _unpickled(text: str) -> Any:
    return dbsafe_decode(text)


def _pickled(value: Any) -> str:
    return str(dbsafe_encode(value, pickle_protocol=-1))


def _queued(text: str) -> Any:
    return SignedPackage.loads(text)


def _session(text: str) -> Any:
    return SessionStore().decode(text)


ENCODINGS = {
    "django_q_task.args": Encoding(_unpickled, _pickled),
    "django_q_task.kwargs": Encoding(_unpickled, _pickled),
    "django_q_task.result": Encoding(_unpickled, _pickled),
    "django_q_ormq.payload": Encoding(_queued, SignedPackage.dumps, delete_when_changed=True),
    "django_session.session_data": Encoding(_session, lambda value: SessionStore().encode(value)),
}
