"""Runs tables of cases for forgetting on command against the whole HTTP stack, and counts what went wrong.

A table is a directory of JSON files, one per family, each a list of cases::

    {"id": "...", "family": "...", "note": "...",
     "facts": [{"text": "..."} | {"title": "...", "fields": {name: value}, "summary"?, "scope"?, "kind"?, ...}],
     "operations": [{"op": "release" | "purge", "query": "..."} | {"op": ..., "filter": {...}}
                    | {"op": "supersede", "old_query": "...", "new_text": "..."} | {"op": "ingest", ...fact}],
     "final_query": "...", "must": [...], "must_not": [...], "once"?: [...],
     "expect"?: "ambiguous", "listed"?: [...]}

Each case has a scope of its own; the ``scope`` of a fact and of a filter is relative to it. ``must`` are fragments of
text that the final query, or a query by the fragment itself, still returns. ``must_not`` are fragments that neither
these, nor a query by the exact stored text, nor the list of topics returns. ``once`` are fragments that exactly one
topic holds. A case that expects ``ambiguous`` wants
that its last operation removes nothing, says so, and lists all of ``listed``.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.core.cache import cache

from tests.cast import Answer, Caller

FOLDER = Path(__file__).parent / "cases"
EXTRA = "MEMSTATE_TEST_CASES"
FAMILIES = (
    "substring_traps",
    "identifier_prefixes",
    "paraphrased_supersession",
    "negation",
    "dated_chains",
    "shared_attributes",
    "compound_facts",
    "identifier_spellings",
    "other_scripts",
    "there_and_back",
)
MEMBERS = {"id", "family", "note", "facts", "operations", "final_query", "must", "must_not", "once", "expect", "listed"}
FACT_MEMBERS = {"text", "title", "fields", "summary", "scope", "kind", "categories", "valid_from", "created_at"}
REFUSED = 409
"""The status of an ambiguous supersede, which has no list to answer with."""


@dataclass(frozen=True)
class Case:
    """One case as it stands in a file."""

    raw: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def family(self) -> str:
        return str(self.raw["family"])

    @property
    def scope(self) -> str:
        return f"/case/{self.id}"

    @property
    def must(self) -> list[str]:
        return list(self.raw["must"])

    @property
    def must_not(self) -> list[str]:
        return list(self.raw["must_not"])

    @property
    def once(self) -> list[str]:
        return list(self.raw.get("once", []))

    @property
    def ambiguous(self) -> bool:
        return bool(self.raw.get("expect") == "ambiguous")

    @cached_property
    def texts(self) -> list[str]:
        """Every text that the case stores, at any time."""
        got = [*self.raw["facts"], *(step for step in self.raw["operations"] if step["op"] in ("ingest", "supersede"))]
        return [text for fact in got for text in fact_texts(fact)]

    @cached_property
    def stored(self) -> list[str]:
        """The texts of the facts that are there before any operation, for comparison."""
        return [plain(text) for fact in self.raw["facts"] for text in fact_texts(fact)]

    def exact(self, fragment: str) -> list[str]:
        """Return the fragment and the stored texts that hold it: what someone would ask for by its exact text."""
        return [fragment, *(text for text in self.texts if plain(fragment) in plain(text) and text != fragment)]


@dataclass
class Outcome:
    """What became of a case: fragments wrongly gone, never taken in, still there, and other complaints."""

    case: Case
    lost: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not (self.lost or self.missed or self.left or self.doubled or self.complaints)

    @property
    def reason(self) -> str:
        """One line that says what is wrong, without the texts of the case."""
        parts = [
            f"{len(self.lost)} of {len(self.case.must)} wrongly gone" if self.lost else "",
            f"{len(self.missed)} of the new not taken in" if self.missed else "",
            f"{len(self.left)} of {len(self.case.must_not)} still there" if self.left else "",
            f"{len(self.doubled)} stored more or less than once" if self.doubled else "",
            *self.complaints,
        ]
        return "; ".join(part for part in parts if part)


def plain(text: str) -> str:
    """Return ``text`` without case and with its white space collapsed, for comparison."""
    return " ".join(text.casefold().split())


def fact_texts(fact: Mapping[str, Any]) -> list[str]:
    """Return the texts that a fact, an ingest or a supersede brings into the store."""
    got = [fact.get(member, "") for member in ("text", "title", "summary", "new_text")]
    return [str(text) for text in [*got, *fact.get("fields", {}).values()] if text]


def texts_within(reply: Any) -> Iterator[str]:
    """Yield every text value in a reply, at any depth."""
    if isinstance(reply, str):
        yield reply
    elif isinstance(reply, Mapping):
        for value in reply.values():
            yield from texts_within(value)
    elif isinstance(reply, list):
        for value in reply:
            yield from texts_within(value)


def directories() -> list[Path]:
    """Return the directory of the table, and the further one that the environment names."""
    extra = os.environ.get(EXTRA, "")
    return [FOLDER, *([Path(extra)] if extra else [])]


def cases_load(folder: Path, family: str) -> list[Case]:
    """Return the cases of a family, in the order of the file; none where there is no such file."""
    path = folder / f"{family}.json"
    return [Case(raw) for raw in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def case_faults(case: Case) -> list[str]:
    """Return what is wrong with the case itself, so that no slip of the pen passes for a failure or a success."""
    raw = case.raw
    found = [f"unknown member {name}" for name in set(raw) - MEMBERS]
    found += [f"missing {name}" for name in ("note", "final_query") if not raw.get(name)]
    stored = [plain(text) for text in case.texts]
    for fact in [*raw["facts"], *(step for step in raw["operations"] if step["op"] == "ingest")]:
        found += [f"unknown member {name} of a fact" for name in set(fact) - FACT_MEMBERS - {"op"}]
    for step in raw["operations"]:
        wanted = {"supersede": {"old_query", "new_text"}, "ingest": set()}.get(step["op"], {"query", "filter"})
        if step["op"] != "ingest" and not (set(step) - {"op"} and set(step) - {"op"} <= wanted):
            found.append(f"members of {step['op']}: {sorted(step)}")
    found += [f"stored nowhere: {part}" for part in [*case.must, *case.must_not] if not _held(part, stored)]
    for part in case.must:
        found += [f"{part!r} holds {other!r}" for other in case.must_not if plain(other) in plain(part)]
    for fact in raw["facts"]:
        if not any(plain(part) in plain(text) for part in [*case.must, *case.must_not] for text in fact_texts(fact)):
            found.append(f"nothing is said about {fact_texts(fact)}")
    if case.ambiguous == (not raw.get("listed")):
        found.append("an ambiguous case, and no other, names what is listed")
    if not case.must_not and not case.ambiguous and raw["operations"][-1]["op"] != "ingest":
        found.append("nothing has to go")
    return found


def _held(part: str, stored: Iterable[str]) -> bool:
    return any(plain(part) in text for text in stored)


def case_run(case: Case, operator: Caller) -> Outcome:
    """Store the facts, do the operations, ask, and compare. Costs about a query for every fragment."""
    cache.clear()  # Requests are counted there, and a table of cases asks more than a key may in a minute.
    outcome = Outcome(case)
    for fact in case.raw["facts"]:
        _ingest(fact, case.scope, operator)
    answers = [_operate(step, case.scope, operator) for step in case.raw["operations"]]
    _answers_judge(answers, outcome)
    final = _asked(case.raw["final_query"], case.scope, operator)
    reached = {part for part in [*case.must, *case.must_not] if _reached(part, final, case, operator)}
    values = list(_values_written(case, answers))
    gone = [
        part
        for part in case.must
        if part not in reached
        and not any(plain(part) in new and _reached(value, final, case, operator) for new, value in values)
    ]
    outcome.lost = [part for part in gone if _held(part, case.stored)]
    outcome.missed = [part for part in gone if part not in outcome.lost]
    outcome.left = [
        part for part in case.must_not if part in reached or plain(part) in _listed(part, case.scope, operator)
    ]
    outcome.doubled = [part for part in case.once if _topics_holding(part, case.scope, operator) != 1]
    return outcome


def _ingest(fact: Mapping[str, Any], scope: str, operator: Caller) -> Answer:
    fields = fact["fields"] if "fields" in fact else {"fact": fact["text"]}
    same = {name: fact[name] for name in ("summary", "categories", "valid_from", "created_at") if name in fact}
    item = {
        "placement": "new_topic",
        "title": fact["title"] if "title" in fact else fact.get("text", ""),
        "fields": [{"name": name, "value": value} for name, value in fields.items()],
        "scope": scope + fact.get("scope", ""),
        "topic_kind": fact.get("kind", ""),
        **same,
    }
    answer = operator.post("/v1/ingest", item)
    answer.ok()
    return answer


def _operate(step: Mapping[str, Any], scope: str, operator: Caller) -> Answer:
    reason = "a case"
    if step["op"] == "ingest":
        return _ingest(step, scope, operator)
    if step["op"] == "supersede":
        got = {"old_query": step["old_query"], "new_text": step["new_text"]}
        return operator.post("/v1/supersede", {**got, "scope": scope, "reason": reason})
    asked: dict[str, Any] = {"verb": step["op"], "dry_run": False, "scope": scope, "reason": reason}
    if "query" in step:
        asked["query"] = step["query"]
    if "filter" in step:
        chosen = dict(step["filter"])
        asked["filter"] = {**chosen, "scope": scope + chosen["scope"]} if "scope" in chosen else chosen
    return operator.post("/v1/forget", asked)


def _answers_judge(answers: list[Answer], outcome: Outcome) -> None:
    case = outcome.case
    for number, answer in enumerate(answers, 1):
        last = number == len(answers)
        if answer.status != 200 and not (last and case.ambiguous and answer.status == REFUSED):
            outcome.complaints.append(f"operation {number} answered {answer.status}")
        elif answer.json.get("ambiguous") and not case.ambiguous:
            outcome.complaints.append(f"operation {number} was found ambiguous")
    if case.ambiguous and not outcome.complaints:
        answer = answers[-1]
        got = plain("\n".join(texts_within(answer.json)))
        if answer.status == 200 and not answer.json.get("ambiguous"):
            outcome.complaints.append("was not found ambiguous")
        elif missing := [part for part in case.raw["listed"] if plain(part) not in got]:
            outcome.complaints.append(f"{len(missing)} of {len(case.raw['listed'])} candidates were not listed")


def _reached(part: str, final: str, case: Case, operator: Caller) -> bool:
    return plain(part) in final or any(plain(part) in _asked(q, case.scope, operator) for q in case.exact(part))


def _asked(q: str, scope: str, operator: Caller) -> str:
    reply = operator.query(q, scope=scope, top_k=20)
    return plain("\n".join(texts_within([reply["candidates"], reply["summary_text"]])))


def _listed(text: str, scope: str, operator: Caller) -> str:
    page = operator.get(f"/v1/topics?scope={quote(scope)}&text={quote(text)}&rung=any").ok()
    return plain("\n".join(texts_within(page["items"])))


def _values_written(case: Case, answers: list[Answer]) -> Iterator[tuple[str, str]]:
    """Yield each new text of which a named field took only the value, with that value."""
    for step, answer in zip(case.raw["operations"], answers, strict=True):
        if step["op"] == "supersede" and answer.status == 200:
            for entry in answer.json["superseded"]:
                if entry["after"] and plain(entry["after"]) in plain(step["new_text"]) != plain(entry["after"]):
                    yield plain(step["new_text"]), entry["after"]


def _topics_holding(text: str, scope: str, operator: Caller) -> int:
    """Return how many topics hold a text in their title, summary or fields."""
    page = operator.get(f"/v1/topics?scope={quote(scope)}&rung=any&limit=200").ok()
    ids = [item["topic_id"] for item in page["items"]]
    got = [operator.topic(topic_id) for topic_id in ids]
    said = [
        [topic["title"], topic["summary"] or "", *(field["current"]["value"] for field in topic["fields"])]
        for topic in got
    ]
    return sum(plain(text) in plain("\n".join(one)) for one in said)


def _wrong(outcome: Outcome) -> tuple[list[str], list[str], list[str]]:
    return outcome.lost, outcome.missed, outcome.left


def table_reported(outcomes: Iterable[Outcome]) -> str:
    """Return a table by family: cases, passed, and how many fragments were wrongly gone, not taken in, still there."""
    of: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        of.setdefault(outcome.case.family, []).append(outcome)
    rows: list[tuple[str, ...]] = [
        ("family", "cases", "passed", "share", "wrongly gone", "not taken in", "still there")
    ]
    for family, those in [*of.items(), ("all", [outcome for group in of.values() for outcome in group])]:
        counts = Counter(outcome.passed for outcome in those)
        share = f"{counts[True] / len(those):.0%}" if those else "-"
        wrong = [str(sum(len(part) for part in parts)) for parts in zip(*map(_wrong, those), strict=True)]
        rows.append((family, str(len(those)), str(counts[True]), share, *wrong))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def failures_list(outcomes: Iterable[Outcome]) -> str:
    """Return a line per failed case: its id and what is wrong."""
    return "\n".join(f"  {one.case.id}: {one.reason}" for one in outcomes if not one.passed)
