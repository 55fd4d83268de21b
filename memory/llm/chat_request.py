"""Sends one request to the language model, with a circuit breaker, framed data, retries and time limits.

``client`` uses this module to request a text or JSON. ``dialogue`` uses it to request the next message of a
conversation with tools. Neither texts nor keys are logged.
"""

import json
import random
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from django.conf import settings

from memory.llm.circuit_breaker import call_counted
from memory.llm.wire import (
    ModelUnavailable,
    ModelUnusable,
    RateLimited,
    RequestRejected,
    TransientError,
    base_url,
    endpoint_ask,
)

Purpose = Literal["summary", "facts", "refine", "supersede", "intent", "chat", "study"]

# The wait after the first reply 429 without Retry-After, in seconds. It doubles with each further 429.
BACKOFF_SECONDS = 1.0
# The wait before the only retry after a transient error, in seconds.
RETRY_SECONDS = 0.5
# MemState waits only if at least this number of seconds remains for the request after the wait.
LEAST_SECONDS = 0.1
# A timeout counts as a failure of the model only if the caller has allowed at least this share of the usual time limit.
FAIR_SHARE = 0.25

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
# The finish reasons of complete answers. The protocol specifies "stop"; some servers send another reason, or none.
_ENDED = (None, "stop", "eos", "eos_token", "end_turn", "stop_sequence")
_ENDED_WITH_TOOLS = (*_ENDED, "tool_calls", "function_call")


def model_configured() -> bool:
    """Return whether a model is configured. Sends no request."""
    return bool(settings.MEMSTATE_LLM_MODEL)


@contextmanager
def asking(purpose: Purpose, within: float | None, *, model: str | None = None) -> Iterator[float]:
    """Admit one request, count its outcome, and yield the time of the monotonic clock at which the request must end.

    ``model`` is the model that the caller has chosen, if any. If it is not the configured model, its failures do not
    count as failures of the configured model. Raises ``ModelUnavailable`` if no model is configured or if the circuit
    is open, and ``ModelUnusable`` if the endpoint does not have ``model``.
    """
    if not model_configured():
        raise ModelUnavailable("No language model is configured.", kind="not_configured")
    usual: float = settings.MEMSTATE_LLM_TIMEOUT_SECONDS
    seconds = usual if within is None else within
    other = model if model != settings.MEMSTATE_LLM_MODEL else None
    with call_counted(purpose, model=other, fair=seconds >= usual * FAIR_SHARE):
        try:
            yield time.monotonic() + seconds
        except ModelUnavailable as problem:
            if other is not None and problem.kind == "absent":
                sentence = f"The model {model!r} does not exist at the endpoint of the language model."
                raise ModelUnusable(sentence, kind="absent") from None
            raise


# The request options that endpoints have rejected, by address and model. These options are not sent again.
_refused: dict[tuple[str, str], frozenset[str]] = {}
_MAX_REFUSED = 64


def refusals_forget() -> None:
    """Forget the options that endpoints have rejected. For tests."""
    _refused.clear()


def mark_make() -> str:
    """Return a random mark for ``framed`` that cannot be guessed."""
    return secrets.token_hex(8)


def framed(data: object, mark: str) -> str:
    """Return data as JSON between two marked lines. The data cannot contain such a line, because "<" is escaped."""
    text = storable(json.dumps(data, ensure_ascii=False, indent=1)).replace("<", "\\u003c")
    return f"<data-{mark}>\n{text}\n</data-{mark}>"


def message_ask(
    members: Mapping[str, Any], until: float, *, model: str | None = None, schema: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Send ``members`` (messages, tools ...) and return the message of the reply, without a ``<think>`` block.

    ``schema`` (name, schema, strict) requests structured output. Options that the endpoint rejects are left out. Waits
    for rate limits if time remains. Raises ``ModelProblem``.
    """
    named = model or settings.MEMSTATE_LLM_MODEL
    endpoint = (base_url(), named)
    refused = set(_refused.get(endpoint, ()))
    while True:
        body: dict[str, Any] = {"model": named, **members}
        if "temperature" not in refused:
            body["temperature"] = 0
        if schema is not None and "json_schema" not in refused:
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif schema is not None and "json_object" not in refused:
            body["response_format"] = {"type": "json_object"}
        try:
            raw = _with_retries(body, until)
        except RequestRejected as problem:
            option = _option_to_drop(body, problem.detail)
            if option is None:
                raise
            refused.add(option)
            continue
        if refused:
            if len(_refused) >= _MAX_REFUSED:
                # Callers may choose any number of different models, so the number of entries must be limited.
                _refused.clear()
            _refused[endpoint] = frozenset(refused)
        return _message_of(raw, _ENDED_WITH_TOOLS if "tools" in members else _ENDED)


def _option_to_drop(body: Mapping[str, Any], detail: str) -> str | None:
    if "temperature" in body and "temperature" in detail.lower():
        return "temperature"
    if "response_format" in body:
        return str(body["response_format"]["type"])
    return "temperature" if "temperature" in body else None


def _with_retries(body: Mapping[str, Any], until: float) -> bytes:
    waits = retries = 0
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise ModelUnavailable("No time was left for the language model.", kind="timeout")
        try:
            return endpoint_ask("chat/completions", body, seconds=min(left, settings.MEMSTATE_LLM_TIMEOUT_SECONDS))
        except RateLimited as problem:
            wait = _backoff(waits, problem.wait)
            waits += 1
            if wait is None or waits > settings.MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES or _too_late(wait, until):
                raise
        except TransientError:
            wait = RETRY_SECONDS * (1 + random.random())  # noqa: S311
            retries += 1
            if retries > 1 or _too_late(wait, until):
                raise
        time.sleep(wait)


def _too_late(wait: float, until: float) -> bool:
    return time.monotonic() + wait + LEAST_SECONDS >= until


def _backoff(waits: int, asked: float | None) -> float | None:
    """Return the seconds to wait after a reply 429. ``asked`` are the seconds of its Retry-After, if any.

    With Retry-After, the wait is a little longer than ``asked``. Return None if ``asked`` exceeds the configured
    maximum. Without Retry-After, the wait is 1, 2, 4, ... seconds with jitter.
    """
    cap: float = settings.MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS
    if asked:
        # The jitter keeps callers with the same Retry-After from retrying at the same time.
        return min(cap, asked * (1 + random.random() / 10)) if asked <= cap else None  # noqa: S311
    return min(cap, BACKOFF_SECONDS * 2.0 ** min(waits, 30)) * (0.5 + random.random() / 2)  # noqa: S311


def storable(text: str) -> str:
    """Return ``text`` without NUL and surrogates, which PostgreSQL cannot store."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()


def _message_of(raw: bytes, endings: tuple[str | None, ...]) -> dict[str, Any]:
    """Return the message of a reply. Raises ``ModelProblem`` if the model refuses or the reply is cut off."""
    try:
        choice = json.loads(raw)["choices"][0]
        message, ended = dict(choice["message"]), choice.get("finish_reason")
        content, refusal = message.get("content") or "", message.get("refusal")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        content = None
    if not isinstance(content, str):
        raise ModelUnavailable("The endpoint does not speak the chat protocol.", kind="protocol")
    if refusal or ended == "content_filter":
        raise ModelUnusable("The language model refuses to answer.", kind="refused")
    if ended not in endings:
        raise ModelUnusable("The language model's answer was cut off.", kind="cut_off")
    return {**message, "content": _THOUGHTS.sub("", content, count=1)}
