"""Decodes and encodes pickles of the queue and sessions, with functions of the libraries that write them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django_q.signing import SignedPackage
from picklefield.fields import dbsafe_decode, dbsafe_encode


@dataclass(frozen=True, slots=True)
class Encoding:
    """The functions that decode and encode a column.

    If ``delete_when_changed`` is true, a row with erased content is deleted and not masked. For example, a queued job
    with such content in its arguments has nothing left to do.
    """

    read: Callable[[str], Any]
    write: Callable[[Any], str]
    delete_when_changed: bool = False


_PICKLED = Encoding(dbsafe_decode, lambda value: str(dbsafe_encode(value, pickle_protocol=-1)))
_SESSIONS = SessionStore()
ENCODINGS = {
    "django_q_task.args": _PICKLED,
    "django_q_task.kwargs": _PICKLED,
    "django_q_task.result": _PICKLED,
    "django_q_ormq.payload": Encoding(SignedPackage.loads, SignedPackage.dumps, delete_when_changed=True),
    "django_session.session_data": Encoding(_SESSIONS.decode, _SESSIONS.encode),
}
