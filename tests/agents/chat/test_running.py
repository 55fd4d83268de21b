"""A turn in a thread of its own: it ends with its listener, and leaves its place whatever happens."""

import threading
from typing import Any

import pytest

from memory.agents.chat.background_turn import Running, turn_slot
from memory.api import chat


@pytest.mark.parametrize("heard", [0, 1])
def test_whoever_leaves_before_the_first_event_ends_the_work(heard: int):
    left, went_on, at_end = threading.Event(), [], threading.Event()

    def work(tell: Any, go_on: Any) -> None:
        tell("intent", {"intent": "query"})
        left.wait(10)
        went_on.append(go_on())

    events = chat._events(Running(work, at_end=at_end.set))
    for _time in range(1 + heard):
        next(events)
    events.close()  # type: ignore[attr-defined]
    left.set()
    assert at_end.wait(10)
    assert went_on == [False]


def test_a_place_is_free_again_if_there_is_no_thread_to_be_had(monkeypatch: pytest.MonkeyPatch, settings: Any):
    settings.MEMSTATE_WEB_THREADS = 2

    def start(_thread: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    for _time in range(2):
        place = turn_slot()
        place.__enter__()
        with pytest.raises(RuntimeError):
            Running(lambda _tell, _go_on: None, at_end=lambda place=place: place.__exit__(None, None, None))  # type: ignore[misc]
