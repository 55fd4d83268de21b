"""One request to the endpoint and its answer, within bounds: no redirect, no proxy, no key and no header of others.

The client's library is imported when a model is first asked: it is a seventh of what a process takes to start, and many
installations have no model.

``asking`` sends completions by this, and the list of models is asked for by it (``told``). What goes wrong is raised
as ``ModelUnavailable`` or ``ModelUnusable``.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpx2
from django.conf import settings

from memory.domain.errors import MemoryProblem
from memory.domain.problem_codes import MODEL_CODES, ProblemCode

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"
# More than any answer that is used here; what is longer is not read to its end.
MAX_REPLY_BYTES = 1024 * 1024
# Nobody is told to come again later than that.
MOST_WAIT_SECONDS = 86_400.0
# What a request may carry. The client adds headers about this machine, and some from variables set for others.
_HEADERS = frozenset(
    {
        "host",
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "user-agent",
        "authorization",
    }
)


class ModelProblem(MemoryProblem):
    """The language model is of no help this time. Every caller has an answer without one."""

    code = ProblemCode.MODEL_UNAVAILABLE
    # What is counted; a word of ours, never of the endpoint.
    kind = "other"

    def __init__(self, sentence: str, *, kind: str | None = None, wait: float | None = None) -> None:
        self.kind = kind or self.kind
        super().__init__(sentence, code=MODEL_CODES.get(self.kind))
        # In so many seconds it may be worth asking again, as far as anybody knows.
        self.wait = wait


class ModelUnavailable(ModelProblem):
    """No model is configured, or it is down, too slow, refuses the key, or is rate limited beyond patience."""

    kind = "unavailable"


class ModelUnusable(ModelProblem):
    """The model answered, and the answer will not do: refused, cut off, too long, or malformed twice."""

    code = ProblemCode.MODEL_UNUSABLE
    kind = "unusable"


class RateLimited(ModelUnavailable):
    """The endpoint asks to wait; ``wait`` is for how many seconds, or None where it does not say."""

    kind = "rate_limited"

    def __init__(self, wait: float | None) -> None:
        super().__init__("The language model asks to be left alone for a while.", wait=wait)


class Resting(ModelUnavailable):
    """It is not asked at present, since it has failed lately, or (``limited``) has asked to be left alone so long."""

    kind = "rests"

    def __init__(self, wait: float, *, limited: bool) -> None:
        super().__init__("The language model failed lately and is left alone for a while.", wait=wait)
        self.limited = limited


class Stumbled(ModelUnavailable):
    """An error of the moment: the endpoint is in trouble, or the connection broke. Worth one more try."""

    kind = "error"


class RequestRejected(ModelUnusable):
    """The endpoint does not take the request as it stands (400, 422); ``said`` is its message, for our eyes only."""

    kind = "rejected"

    def __init__(self, said: str) -> None:
        super().__init__("The endpoint of the language model does not take the request.")
        self.said = said


class _TooLarge(httpx2.TransportError):
    """The reply has more bytes than will be read."""


def base_url() -> str:
    """Return the address of the endpoint; never from a variable that was set for something else."""
    return settings.MEMSTATE_LLM_BASE_URL or OPENAI_URL


def completion_ask(body: Mapping[str, Any], *, seconds: float) -> bytes:
    """Send one chat completion and return the body of the reply, after ``seconds`` at most. Raises ``ModelProblem``."""
    return _asked(lambda client: client.chat.completions.with_raw_response.create(**body, timeout=seconds), seconds)


def models_ask(*, seconds: float) -> bytes:
    """Return the endpoint's list of models as it sent it, after ``seconds`` at most. Raises ``ModelProblem``."""
    return _asked(lambda client: client.models.with_raw_response.list(timeout=seconds), seconds)


def _asked(ask: Callable[[openai.OpenAI], Any], seconds: float) -> bytes:
    """Ask in a thread of its own, which is left behind when the time is up.

    The client limits single reads only, so a trickle, or a name server that does not answer, could hold up the caller.
    """
    # Here, so that the first one to ask has all of the time for the answer.
    import openai  # noqa: F401

    answer: list[bytes | Exception] = []

    def run() -> None:
        try:
            answer.append(bytes(ask(_client()).content))
        except Exception as problem:
            answer.append(problem)

    thread = threading.Thread(target=run, name="language-model", daemon=True)
    thread.start()
    thread.join(seconds)
    if not answer:
        raise ModelUnavailable("The language model did not answer in time.", kind="timeout")
    (said,) = answer
    if isinstance(said, bytes):
        return said
    # Without its cause: what the client raised holds the request, and with it the text that was sent.
    raise _problem(said) from None


def _problem(problem: Exception) -> ModelProblem:
    """Return what an exception of the client amounts to, in our words. What the endpoint wrote is not repeated."""
    import openai

    if isinstance(problem, openai.APIStatusError):
        return _status_problem(problem)
    if isinstance(problem, openai.APITimeoutError):
        return ModelUnavailable("The language model did not answer in time.", kind="timeout")
    if isinstance(problem, openai.APIConnectionError):
        if isinstance(problem.__cause__, _TooLarge):
            return ModelUnusable("The language model's answer is too long.", kind="too_long")
        if isinstance(problem.__cause__, (httpx2.ConnectError, httpx2.UnsupportedProtocol)):
            return ModelUnavailable("The endpoint of the language model cannot be reached.", kind="unreachable")
        return Stumbled("The connection to the language model broke.", kind="broken")
    return ModelUnavailable(f"The language model could not be asked ({type(problem).__name__}).")


def _status_problem(problem: openai.APIStatusError) -> ModelProblem:
    status = problem.status_code
    if status == 429:
        return RateLimited(_wait(problem.response.headers))
    if status in (400, 422):
        return RequestRejected(str(problem.body)[:2000])
    if status == 413:
        return ModelUnusable("The text is too long for the language model.", kind="too_long")
    if status in (401, 403):
        return ModelUnavailable(f"The language model refuses the key ({status}).", kind="key")
    if status == 404:
        return ModelUnavailable("The endpoint does not know the model, or is another one (404).", kind="absent")
    if 300 <= status < 400:
        return ModelUnavailable(f"The endpoint points elsewhere ({status}), which is not followed.", kind="redirect")
    if status >= 500:
        return Stumbled(f"The endpoint of the language model is in trouble ({status}).", kind="error")
    return ModelUnavailable(f"The endpoint of the language model refuses ({status}).", kind="error")


def _wait(headers: Mapping[str, str]) -> float | None:
    """Return for how many seconds Retry-After asks, as a number or a date (RFC 9110, 10.2.3); None if for nothing."""
    said = headers.get("retry-after", "").strip()
    try:
        wait = float(said)
    except ValueError:
        try:
            until = parsedate_to_datetime(said)
        except (ValueError, OverflowError):
            return None
        until = until if until.tzinfo else until.replace(tzinfo=dt.UTC)
        wait = until.timestamp() - time.time()
    # What is no number, or has no end, says nothing; what is past asks for nothing.
    return min(max(0.0, wait), MOST_WAIT_SECONDS) if math.isfinite(wait) else None


def connections_close() -> None:
    """Close what connections this process keeps open. For tests."""
    while _clients:
        _clients.popitem()[1].close()


# One for each address and key, of which there is one unless settings change.
_clients: dict[tuple[str, str | None, int], openai.OpenAI] = {}
_making = threading.Lock()


def _client() -> openai.OpenAI:
    # A process that was forked makes connections of its own.
    wanted = (base_url(), settings.MEMSTATE_LLM_API_KEY, os.getpid())
    with _making:
        if wanted not in _clients:
            _clients[wanted] = _client_make(wanted[0], wanted[1])
        return _clients[wanted]


def _client_make(address: str, api_key: str | None) -> openai.OpenAI:
    import openai

    return openai.OpenAI(
        # Local endpoints need no key, and the client insists on one; the transport takes it off again.
        api_key=api_key or "none",
        base_url=address,
        # How often, and how long in between, is decided by who asks.
        max_retries=0,
        http_client=httpx2.Client(
            transport=_Guarded(api_key),
            # What is stored here goes to the configured address and is not passed on to another.
            follow_redirects=False,
            # No proxy, no .netrc.
            trust_env=False,
        ),
    )


class _Guarded(httpx2.BaseTransport):
    """Sends what was asked for and nothing else, and reads a bounded reply for a bounded time."""

    def __init__(self, api_key: str | None) -> None:
        self._inner = httpx2.HTTPTransport(trust_env=False)
        self._key = api_key

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request with headers of ours alone."""
        started = time.monotonic()
        # The client's own request stays as it is: it reads its headers again when the reply is there.
        sent = httpx2.Request(
            request.method,
            request.url,
            headers=[(name, value) for name, value in request.headers.multi_items() if name.lower() in _HEADERS],
            stream=request.stream,
            extensions=request.extensions,
        )
        # Not one that a variable such as OPENAI_CUSTOM_HEADERS put in its place.
        if self._key:
            sent.headers["Authorization"] = f"Bearer {self._key}"
        elif not request.url.userinfo:
            sent.headers.pop("Authorization", None)
        # A packed reply could be small here and huge in memory.
        sent.headers["Accept-Encoding"] = "identity"
        response = self._inner.handle_request(sent)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            response.close()
            raise httpx2.RemoteProtocolError("The reply is packed, which was not asked for.")
        assert isinstance(response.stream, httpx2.SyncByteStream)
        seconds = request.extensions.get("timeout", {}).get("read")
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Bounded(response.stream, None if seconds is None else started + seconds),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class _Bounded(httpx2.SyncByteStream):
    """A reply that ends with an exception when it has too many bytes, or comes too slowly."""

    def __init__(self, stream: httpx2.SyncByteStream, until: float | None) -> None:
        self._stream = stream
        self._until = until

    def __iter__(self) -> Iterator[bytes]:
        """Give the parts of the reply."""
        size = 0
        for part in self._stream:
            size += len(part)
            if size > MAX_REPLY_BYTES:
                raise _TooLarge("The reply is too long.")
            if self._until is not None and time.monotonic() > self._until:
                raise httpx2.ReadTimeout("The reply comes too slowly.")
            yield part

    def close(self) -> None:
        """Give the connection back."""
        self._stream.close()
