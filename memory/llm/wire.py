"""One request to the endpoint of the language model, and what goes wrong with it.

Nothing but the configured key and the request itself is sent: no proxy, no redirect, no header of other programs. Of
the reply a bounded number of bytes is read, for a bounded time. ``chat_request`` sends completions by this, and
``status`` asks for the list of models. What goes wrong is raised as ``ModelUnavailable`` or ``ModelUnusable``.
"""

import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx2
from django.conf import settings

from memory.core.endpoints import retry_after_seconds
from memory.core.errors import MemoryProblem
from memory.core.problem_codes import MODEL_CODES, ProblemCode

OPENAI_URL = "https://api.openai.com/v1"
# More than any answer that is used here; what is longer is not read to its end.
MAX_REPLY_BYTES = 1024 * 1024
# Nobody is told to come again later than that.
MOST_WAIT_SECONDS = 86_400.0
# A packed reply could be small here and huge in memory.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "memstate"}


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
    """No model is configured, or it is down, too slow, refuses the key, or is rate limited for too long."""

    kind = "unavailable"


class ModelUnusable(ModelProblem):
    """The model answered, and the answer will not do: refused, cut off, too long, or malformed twice."""

    code = ProblemCode.MODEL_UNUSABLE
    kind = "unusable"


class RateLimited(ModelUnavailable):
    """The endpoint asks to wait; ``wait`` is for how many seconds, or None where it does not say."""

    kind = "rate_limited"

    def __init__(self, wait: float | None) -> None:
        super().__init__("The language model is rate-limiting requests.", wait=wait)


class CircuitOpen(ModelUnavailable):
    """The model is not asked at present: it has failed lately, or its endpoint has asked to wait (``limited``)."""

    kind = "circuit_open"

    def __init__(self, wait: float, *, limited: bool) -> None:
        failed = "The language model failed lately and is not asked for a while."
        super().__init__("The language model is rate-limiting requests." if limited else failed, wait=wait)
        self.limited = limited


class TransientError(ModelUnavailable):
    """The endpoint answered with a server error, or the connection broke. Worth one more try."""

    kind = "error"


class RequestRejected(ModelUnusable):
    """The endpoint does not take the request as it stands (400, 422); ``said`` is its message, for our eyes only."""

    kind = "rejected"

    def __init__(self, said: str) -> None:
        super().__init__("The endpoint of the language model does not take the request.")
        self.said = said


def base_url() -> str:
    """Return the address of the endpoint; never from a variable that was set for something else."""
    return settings.MEMSTATE_LLM_BASE_URL or OPENAI_URL


def completion_ask(body: Mapping[str, Any], *, seconds: float) -> bytes:
    """Send one chat completion and return the body of the reply, after ``seconds`` at most. Raises ``ModelProblem``."""
    return _asked("POST", "chat/completions", body, seconds)


def models_ask(*, seconds: float) -> bytes:
    """Return the endpoint's list of models as it sent it, after ``seconds`` at most. Raises ``ModelProblem``."""
    return _asked("GET", "models", None, seconds)


def _asked(method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> bytes:
    """Ask in a thread of its own, which is left behind when the time is up.

    The client limits single reads only, so a trickle, or a name server that does not answer, could hold up the caller.
    """
    answer: list[bytes | Exception] = []

    def run() -> None:
        try:
            answer.append(_exchange(method, path, body, seconds))
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
    raise (said if isinstance(said, ModelProblem) else _problem(said)) from None


def _exchange(method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> bytes | ModelProblem:
    # A problem is returned and not raised, so that no traceback holds what was sent.
    until = time.monotonic() + seconds
    with _client().stream(method, path, json=body, timeout=seconds) as response:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.RemoteProtocolError("The reply is packed, which was not asked for.")
        content = bytearray()
        for part in response.iter_raw():
            content += part
            if len(content) > MAX_REPLY_BYTES:
                return ModelUnusable("The language model's answer is too long.", kind="too_long")
            if time.monotonic() > until:
                raise httpx2.ReadTimeout("The reply comes too slowly.")
    return bytes(content) if response.is_success else _status_problem(response, bytes(content))


def _problem(problem: Exception) -> ModelProblem:
    """Return what an exception of the client amounts to, in our words. What the endpoint wrote is not repeated."""
    if isinstance(problem, httpx2.TimeoutException):
        return ModelUnavailable("The language model did not answer in time.", kind="timeout")
    if isinstance(problem, httpx2.ConnectError | httpx2.UnsupportedProtocol):
        return ModelUnavailable("The endpoint of the language model cannot be reached.", kind="unreachable")
    if isinstance(problem, httpx2.RequestError):
        return TransientError("The connection to the language model broke.", kind="broken")
    return ModelUnavailable(f"The language model could not be asked ({type(problem).__name__}).")


def _status_problem(response: httpx2.Response, content: bytes) -> ModelProblem:
    status = response.status_code
    if status == 429:
        wait = retry_after_seconds(response.headers.get("retry-after", ""))
        return RateLimited(None if wait is None else min(wait, MOST_WAIT_SECONDS))
    if status in (400, 422):
        return RequestRejected(content.decode(errors="replace")[:2000])
    if status == 413:
        return ModelUnusable("The text is too long for the language model.", kind="too_long")
    if status in (401, 403):
        return ModelUnavailable(f"The language model refuses the key ({status}).", kind="key")
    if status == 404:
        return ModelUnavailable("The endpoint does not know the model, or is another one (404).", kind="absent")
    if 300 <= status < 400:
        return ModelUnavailable(f"The endpoint points elsewhere ({status}), which is not followed.", kind="redirect")
    if status >= 500:
        return TransientError(f"The endpoint of the language model is in trouble ({status}).", kind="error")
    return ModelUnavailable(f"The endpoint of the language model refuses ({status}).", kind="error")


def connections_close() -> None:
    """Close what connections this process keeps open. For tests."""
    while _clients:
        _clients.popitem()[1].close()


# One for each address and key, of which there is one unless settings change.
_clients: dict[tuple[str, str | None, int], httpx2.Client] = {}
_making = threading.Lock()


def _client() -> httpx2.Client:
    # A process that was forked makes connections of its own.
    wanted = (base_url(), settings.MEMSTATE_LLM_API_KEY, os.getpid())
    with _making:
        if wanted not in _clients:
            _clients[wanted] = _client_make(wanted[0], wanted[1])
        return _clients[wanted]


def _client_make(address: str, api_key: str | None) -> httpx2.Client:
    def sign(request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = f"Bearer {api_key}"
        return request

    # Texts go to the configured address and are not passed on to another; no proxy, no .netrc.
    return httpx2.Client(
        base_url=address,
        headers=_HEADERS,
        # Without a key, a name and a password in the address count.
        auth=sign if api_key else None,
        follow_redirects=False,
        trust_env=False,
    )
