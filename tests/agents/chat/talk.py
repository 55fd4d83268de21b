"""Short words for what the tests of this folder say to the assistant, all of it over HTTP."""

from typing import Any

from tests.cast import Answer, Caller


def say(caller: Caller, text: str, /, **members: Any) -> Answer:
    """Send one message; ``before`` are messages that came before it."""
    before = members.pop("before", [])
    return caller.post("/v1/chat", {"messages": [*before, {"role": "user", "content": text}], **members})


def ask(caller: Caller, text: str, /, **members: Any) -> Any:
    """Send one message that is to be known, and return the reply, which must be a success."""
    return say(caller, text, **{"intent_override": "query", **members}).ok()


def tell(caller: Caller, text: str, /, **members: Any) -> Any:
    """Send one message that is to be remembered, and return the reply, which must be a success."""
    return say(caller, text, **{"intent_override": "ingest", **members}).ok()
