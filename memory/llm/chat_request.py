"""One question to the language model: whether to ask, how to frame what is sent, and how long to wait for what.

``client`` asks for a text or for JSON, ``dialogue`` for the next turn of a conversation with tools. No text and no key
ever reaches a log line from here.
"""

import json
import random
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
    completion_ask,
)

Purpose = Literal["summary", "facts", "refine", "supersede", "intent", "chat", "study"]

# The wait after the first 429 that names none; it doubles with each.
BACKOFF_SECONDS = 1.0
# The wait before the one more try after a transient error.
RETRY_SECONDS = 0.5
# What is left after a wait has to be enough to ask in, or it was no use to wait.
LEAST_SECONDS = 0.1
# Whoever gives less than this share of an answer's usual time learns nothing from getting none.
FAIR_SHARE = 0.25

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
# The protocol says "stop"; these are what other servers say, or leave out.
_ENDED = (None, "stop", "eos", "eos_token", "end_turn", "stop_sequence")
_ENDED_WITH_TOOLS = (*_ENDED, "tool_calls", "function_call")


def model_configured() -> bool:
    """Return whether there is a model to ask. No request."""
    return bool(settings.MEMSTATE_LLM_MODEL)


@dataclass(frozen=True, slots=True)
class Call:
    """One question: until when an answer is of use, by the monotonic clock."""

    until: float

    def left(self) -> float:
        """Seconds that are left."""
        return self.until - time.monotonic()


@contextmanager
def asking(purpose: Purpose, within: float | None, *, model: str | None = None) -> Iterator[Call]:
    """Ask if there is a model and it has not failed lately. Raises ``ModelUnavailable``.

    ``model`` is one that the caller named. Whatever becomes of it is not held against the usual one.
    """
    if not model_configured():
        raise ModelUnavailable("No language model is configured.", kind="not_configured")
    usual: float = settings.MEMSTATE_LLM_TIMEOUT_SECONDS
    seconds = usual if within is None else within
    other = model if model != settings.MEMSTATE_LLM_MODEL else None
    with call_counted(purpose, model=other, fair=seconds >= usual * FAIR_SHARE):
        try:
            yield Call(time.monotonic() + seconds)
        except ModelUnavailable as problem:
            if other is not None and problem.kind == "absent":
                sentence = f"The endpoint of the language model knows no model {model!r}."
                raise ModelUnusable(sentence, kind="absent") from None
            raise


# What endpoints have refused to understand, by address and model; not asked for again.
_refused: dict[tuple[str, str], frozenset[str]] = {}
_MOST_REFUSED = 64


def refusals_forget() -> None:
    """Forget what endpoints refuse. For tests."""
    _refused.clear()


# What goes out


def mark_make() -> str:
    """Return a mark that nobody can guess."""
    return secrets.token_hex(8)


def framed(data: object, mark: str) -> str:
    """Return data between lines that it cannot forge: nobody can guess the mark, and no "<" is in it."""
    said = storable(json.dumps(data, ensure_ascii=False, indent=1)).replace("<", "\\u003c")
    return f"<data-{mark}>\n{said}\n</data-{mark}>"


def message_ask(
    members: Mapping[str, Any], call: Call, *, model: str | None = None, schema: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Send ``members`` (messages, tools ...) and return the message that comes back, without the thoughts before it.

    ``schema`` asks for structured output: name, schema, strict. What the endpoint refuses to understand is left out.
    Waits where the endpoint asks to, as long as the answer is still of use afterwards. Raises ``ModelProblem``.
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
            raw = _with_retries(body, call)
        except RequestRejected as problem:
            less = _less(body, problem.said)
            if less is None:
                raise
            refused.add(less)
            continue
        if refused:
            if len(_refused) >= _MOST_REFUSED:
                # Callers name models.
                _refused.clear()
            _refused[endpoint] = frozenset(refused)
        return _message_of(raw, _ENDED_WITH_TOOLS if "tools" in members else _ENDED)


def _less(body: Mapping[str, Any], said: str) -> str | None:
    """Return what to leave out of a request that was rejected; None if there is nothing left to leave out."""
    if "temperature" in body and "temperature" in said.lower():
        return "temperature"
    if "response_format" in body:
        return str(body["response_format"]["type"])
    return "temperature" if "temperature" in body else None


def _with_retries(body: Mapping[str, Any], call: Call) -> bytes:
    """Return the raw reply; wait where the endpoint asks to, as long as the answer is still of use afterwards."""
    waits = retries = 0
    while True:
        left = call.left()
        if left <= 0:
            raise ModelUnavailable("There was no time left for the language model.", kind="timeout")
        try:
            return completion_ask(body, seconds=min(left, settings.MEMSTATE_LLM_TIMEOUT_SECONDS))
        except RateLimited as problem:
            wait = _backoff(waits, problem.wait)
            waits += 1
            if wait is None or waits > settings.MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES or _too_late(wait, call):
                raise
        except TransientError:
            wait = RETRY_SECONDS * (1 + random.random())  # noqa: S311
            retries += 1
            if retries > 1 or _too_late(wait, call):
                raise
        time.sleep(wait)


def _too_late(wait: float, call: Call) -> bool:
    return wait + LEAST_SECONDS >= call.left()


def _backoff(waits: int, told: float | None) -> float | None:
    """Return how many seconds to wait after a 429: what it tells and a little more, else 1, 2, 4 ... with jitter.

    No wait is longer than the cap; None if the endpoint asks for more than that, since asking earlier would be rude.
    """
    cap: float = settings.MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS
    if told:
        # Whoever was told the same moment should not come back at the same moment.
        return min(cap, told * (1 + random.random() / 10)) if told <= cap else None  # noqa: S311
    return min(cap, BACKOFF_SECONDS * 2.0 ** min(waits, 30)) * (0.5 + random.random() / 2)  # noqa: S311


# What comes back


def storable(text: str) -> str:
    """Return text that PostgreSQL can hold."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()


def _message_of(raw: bytes, endings: tuple[str | None, ...]) -> dict[str, Any]:
    """Return the message of a reply. Raises ``ModelProblem`` if the model refuses or does not come to its end."""
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
