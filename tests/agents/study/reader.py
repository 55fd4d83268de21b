"""A text about people, and a model that takes notes of it as it was asked to: by what it is sent alone, so that it says
the same whenever it is asked the same."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

from tests.llm.server import Asked, Step, calling, said

CITIES = ("Oslo", "Bergen", "Tromso", "Hamar")
_FILLER = "the harbour was quiet and nobody spoke of it for long before the rain came over the hills again".split()  # noqa: SIM905
_STATED = re.compile(r"(Person \d+): (\w+) is (\w+)\.")
_KNOWS = re.compile(r"(Person \d+) knows (Person \d+)\.")
_PART = re.compile(r"Part (\d+) of (\d+)")


def text_about(people: int, *, chars: int, seed: int = 7) -> str:
    """Return a text of this length that states things of so many people, over and over."""
    chance, got, length = random.Random(seed), [], 0
    while length < chars:
        who = chance.randrange(people)
        if len(got) % 9 == 0:
            got.append(f"# Chapter {len(got) // 9 + 1}")
        stated = f"Person {who}: fact{chance.randrange(6)} is value{chance.randrange(100)}."
        if chance.random() < 0.3:
            stated = f"Person {who}: city is {chance.choice(CITIES)}."
        knows = f"Person {who} knows Person {chance.randrange(people)}."
        rest = " ".join(chance.choices(_FILLER, k=50))
        got.append(f"{stated} {knows} {rest[0].upper()}{rest[1:]}.")
        length += len(got[-1]) + 2
    return "\n\n".join(got)[:chars]


def part_of(asked: Asked) -> int:
    """Which part of the text is asked about; 0 in phase B."""
    found = _PART.search(asked.messages[1]["content"])
    return int(found[1]) if found else 0


def rounds_of(asked: Asked) -> int:
    """How often tools were used before."""
    return sum(1 for each in asked.messages if each.get("tool_calls"))


def reader(asked: Asked) -> Step:
    """Notes people with what is stated of them and whom they know; merges and links them afterwards."""
    return noting(asked) if part_of(asked) else placing(asked)


def noting(asked: Asked) -> Step:
    """Phase A: looks what is there, makes or extends a topic for each person, links those who know each other."""
    part = asked.data["part"]
    match rounds_of(asked):
        case 0:
            return calling(("session_topics", {}))
        case 1:
            ids = _ids(asked)
            calls = []
            for who, stated in _stated(part).items():
                fields = [{"name": name, "value": value} for name, value in stated.items()]
                if who in ids:
                    calls.append(("extend_topic", {"topic_id": ids[who], "fields": fields}))
                else:
                    calls.append(("new_topic", {"title": who, "kind": "person", "fields": fields}))
            return calling(*calls) if calls else said("done")
        case 2:
            ids = _ids(asked)
            pairs = dict.fromkeys(_KNOWS.findall(part))
            links = [
                ("link", {"from_topic_id": ids[one], "to_topic_id": ids[other], "kind": "knows"})
                for one, other in pairs
                if one in ids and other in ids and one != other
            ]
            return calling(*links[:30]) if links else said("done")
    return said("done")


def placing(asked: Asked) -> Step:
    """Phase B: asks for each topic, merges it into a person of the same name, links it to its city."""
    topics = asked.data
    wanted = [(topic, name) for topic in topics for name in (topic["title"], topic["fields"].get("city")) if name]
    match rounds_of(asked):
        case 0:
            asks = {"kinds": ["person", "city"], "top_k": 3}
            return calling(*(("query", {"q": name, **asks}) for _topic, name in wanted))
        case 1:
            calls: list[tuple[str, Any]] = []
            for (topic, name), found in zip(wanted, asked.results, strict=True):
                same = next((each for each in found["topics"] if each["title"] == name), None)
                if same is None:
                    continue
                if same["kind"] == "city":
                    link = {"from_topic_id": topic["topic_id"], "to_topic_id": same["topic_id"], "kind": "lives_in"}
                    calls.append(("link", link))
                else:
                    calls.append(("merge_into", {"topic_id": topic["topic_id"], "into_topic_id": same["topic_id"]}))
            calls.sort(key=lambda call: call[0])
            return calling(*calls) if calls else said("done")
    return said("done")


def after(times: int, first: Any, then: Any) -> Callable[[Asked], Any]:
    """A model that does one thing so many times, and another from then on."""
    left = [times]

    def step(_asked: Asked) -> Any:
        left[0] -= 1
        return first if left[0] >= 0 else then

    return step


def _stated(part: str) -> dict[str, dict[str, str]]:
    people: dict[str, dict[str, str]] = {}
    for who, name, value in _STATED.findall(part):
        people.setdefault(who, {})[name] = value
    return people


def _ids(asked: Asked) -> dict[str, str]:
    """The ids of people: those that were listed, and those that were made in this dialogue."""
    ids: dict[str, str] = {}
    made: list[str] = []
    for message in asked.messages:
        for call in message.get("tool_calls") or ():
            if call["function"]["name"] == "new_topic":
                made += re.findall(r'"title": "(Person \d+)"', call["function"]["arguments"])
    for result in _results(asked):
        if isinstance(result, dict) and "of" in result:
            ids |= {each["title"]: each["topic_id"] for each in result["topics"]}
        elif any(each.startswith("created_topic:") for each in result.get("applied", ())):
            ids[made.pop(0)] = result["topic_id"]
    return ids


def _results(asked: Asked) -> list[Any]:
    found = re.compile(r"^<data-[0-9a-f]+>\n(.*)\n</data-[0-9a-f]+>$", re.DOTALL)
    got = [each["content"] for each in asked.messages if each["role"] == "tool"]
    return [json.loads(match.group(1)) for each in got if (match := found.match(each))]
