"""HTTP requests to the endpoint of the language model, and their exceptions.

A request contains only the configured key and the given data. Its time and the size of the reply are limited.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
from django.conf import settings

from memory.core.endpoints import retry_after_seconds
from memory.core.errors import MemoryProblem
from memory.core.problem_codes import MODEL_CODES, ProblemCode

OPENAI_URL = "https://api.openai.com/v1"
# Larger replies are refused. No expected reply is as large as this.
MAX_REPLY_BYTES = 1024 * 1024
# A longer wait in a Retry-After counts as this number of seconds.
MAX_WAIT_SECONDS = 86_400.0
# Compressed replies are not accepted, because a small one could be huge in memory.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "memstate"}


class ModelProblem(MemoryProblem):
    """A request to the language model has failed."""

    code = ProblemCode.MODEL_UNAVAILABLE
    # The label in metrics. It never contains a text of the endpoint.
    kind = "other"

    def __init__(self, sentence: str, *, kind: str | None = None, wait: float | None = None) -> None:
        self.kind = kind or self.kind
        super().__init__(sentence, code=MODEL_CODES.get(self.kind))
        # Seconds until a retry may succeed, if known.
        self.wait = wait


class ModelUnavailable(ModelProblem):
    """No model is configured, or the model is down, too slow, refuses the key, or limits the rate for too long."""

    kind = "unavailable"


class ModelUnusable(ModelProblem):
    """The request was refused, or its answer is unusable: for example cut off, too long, empty or malformed twice."""

    code = ProblemCode.MODEL_UNAVAILABLE
    kind = "unusable"


class RateLimited(ModelUnavailable):
    """The endpoint limits the rate of requests. ``wait`` is in seconds; None if the endpoint does not state a time."""

    kind = "rate_limited"

    def __init__(self, wait: float | None) -> None:
        super().__init__("The language model is rate-limiting requests.", wait=wait)


class CircuitOpen(ModelUnavailable):
    """The circuit is open: after a rate limit if ``limited``, otherwise after other failures."""

    kind = "circuit_open"

    def __init__(self, wait: float, *, limited: bool) -> None:
        failed = "The language model failed recently, so no requests are sent to it for a while."
        super().__init__("The language model is rate-limiting requests." if limited else failed, wait=wait)
        self.limited = limited


class TransientError(ModelUnavailable):
    """The endpoint answered with a server error, or the connection broke. The request is repeated once."""

    kind = "error"


class RequestRejected(ModelUnusable):
    """The endpoint rejected the request (400, 422). ``detail`` is its message, which callers must not see."""

    kind = "rejected"

    def __init__(self, detail: str) -> None:
        super().__init__("The endpoint of the language model rejected the request.")
        self.detail = detail


def base_url() -> str:
    """Return the configured address of the endpoint; by default, the address of OpenAI."""
    return settings.MEMSTATE_LLM_BASE_URL or OPENAI_URL


def endpoint_ask(path: str, body: Mapping[str, Any] | None = None, *, seconds: float) -> bytes:
    """Post ``body`` to ``path`` of the endpoint; without ``body``, get ``path``. Return the body of the reply.

    Raises ``ModelProblem``, for example if the reply does not arrive within ``seconds``.
    """
    result = _within(seconds, lambda: _exchange(path, body, seconds))
    if isinstance(result, bytes):
        return result
    # ``from None``, because exceptions of the HTTP client contain the request, and therefore the text that was sent.
    raise (result if isinstance(result, ModelProblem) else _problem(result)) from None


def _within(seconds: float, exchange: Callable[[], bytes | ModelProblem]) -> bytes | Exception:
    """Return the result of an exchange or its exception; after ``seconds``, a timeout.

    The client limits only single reads, so a slow reply or name server could block the caller. Therefore a thread sends
    the request, and the caller stops waiting.
    """
    answer: list[bytes | Exception] = []

    def run() -> None:
        try:
            answer.append(exchange())
        except Exception as problem:
            answer.append(problem)

    thread = threading.Thread(target=run, name="language-model", daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0] if answer else httpx2.ReadTimeout("No answer came in time.")


def _exchange(path: str, body: Mapping[str, Any] | None, seconds: float) -> bytes | ModelProblem:
    # A problem is returned and not raised, so that no traceback contains the request.
    until, method = time.monotonic() + seconds, "GET" if body is None else "POST"
    with _client().stream(method, path, json=body, timeout=seconds) as response:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.RemoteProtocolError("The reply is compressed, which was not requested.")
        content = bytearray()
        for part in response.iter_raw():
            content += part
            if len(content) > MAX_REPLY_BYTES:
                return ModelUnusable("The language model's answer is too long.", kind="too_long")
            if time.monotonic() > until:
                raise httpx2.ReadTimeout("The reply comes too slowly.")
    return bytes(content) if response.is_success else _status_problem(response, bytes(content))


def _problem(problem: Exception) -> ModelProblem:
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
        return RateLimited(None if wait is None else min(wait, MAX_WAIT_SECONDS))
    if status in (400, 422):
        return RequestRejected(content.decode(errors="replace")[:2000])
    if status == 413:
        return ModelUnusable("The text is too long for the language model.", kind="too_long")
    if status in (401, 403):
        return ModelUnavailable(f"The language model refuses the key ({status}).", kind="key")
    if status == 404:
        return ModelUnavailable("The endpoint does not have the model, or the address is wrong (404).", kind="absent")
    if 300 <= status < 400:
        return ModelUnavailable(f"The endpoint redirects ({status}), which is not followed.", kind="redirect")
    if status >= 500:
        return TransientError(f"The endpoint of the language model has a server error ({status}).", kind="error")
    return ModelUnavailable(f"The endpoint of the language model refused the request ({status}).", kind="error")


def connections_close() -> None:
    """Close all connections of this process. For tests."""
    while _clients:
        _clients.popitem()[1].close()


# One client for each address, key and process.
_clients: dict[tuple[str, str | None, int], httpx2.Client] = {}
_making = threading.Lock()


def _client() -> httpx2.Client:
    # A forked process needs its own connections.
    wanted = (base_url(), settings.MEMSTATE_LLM_API_KEY, os.getpid())
    with _making:
        if wanted not in _clients:
            _clients[wanted] = _client_make(wanted[0], wanted[1])
        return _clients[wanted]


def _client_make(address: str, api_key: str | None, *, transport: httpx2.BaseTransport | None = None) -> httpx2.Client:
    """Return a client of the endpoint. Tests give a ``transport`` that answers by a script."""

    def sign(request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = f"Bearer {api_key}"
        return request

    # Texts go only to the configured address: no redirects, no proxy, no .netrc.
    return httpx2.Client(
        base_url=address,
        headers=_HEADERS,
        transport=transport,
        # Without a key, the client uses the credentials in the address.
        auth=sign if api_key else None,
        follow_redirects=False,
        trust_env=False,
    )
