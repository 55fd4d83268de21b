"""Files that are cut off, garbled, another's or a newer MemState's: a sentence that says where, and nothing changes."""

import gzip
import itertools
import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.domain.errors import MemoryProblem
from memory.forgetting.standing import topics_archive
from memory.models import Topic
from memory.transfer.check import import_check
from memory.transfer.importing import import_start
from memory.transfer.work import import_work
from tests.cast import Caller
from tests.forgetting.shop import dump
from tests.transfer.shop import emptied, ended, exported, lines

pytestmark = pytest.mark.django_db


def told(**members: Any) -> Callable[[bytes], bytes]:
    """Change members of the line of the topic; a name with a dot is of the first of the list."""

    def change(content: bytes) -> bytes:
        found = lines(content)
        at = next(place for place, line in enumerate(found) if line.startswith(b'{"type":"topic"'))
        topic = json.loads(found[at])
        for name, value in members.items():
            holder, _, own = name.rpartition("__")
            (topic[holder][0] if isinstance(topic.get(holder), list) else topic.get(holder, topic))[own] = value
        found[at] = json.dumps(topic).encode() + b"\n"
        return b"".join(found)

    return change


def swapped(content: bytes) -> bytes:
    found = lines(content)
    return ended([found[0], *lines(content, "link"), *lines(content, "topic")])


FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a compressed file": (gzip.compress, "is compressed; unpack it first"),
    "nothing": (lambda _all: b"", "The file is empty"),
    "a picture": (lambda _all: b"\x89PNG\r\n\x1a\n\x00\xff", "no export of MemState"),
    "text": (lambda _all: b"Dear diary,\n", "no export of MemState"),
    "json of another system": (lambda _all: b'{"results": []}\n', "no export of MemState"),
    "a type of another system": (lambda _all: b'{"type":"message","text":"a"}\n', 'begins with {"type":"memstate"'),
    "a newer format": (lambda all_: all_.replace(b'"version":1', b'"version":2', 1), "newer MemState, in the format 2"),
    "no format": (lambda all_: all_.replace(b'"version":1', b'"version":null', 1), "does not say in which format"),
    "cut off at a line": (lambda all_: b"".join(lines(all_)[:-1]), r"breaks off after line \d"),
    "cut off within a line": (lambda all_: all_[:-60], r"Line \d+"),
    "cut off at its first line": (lambda all_: lines(all_)[0], "breaks off after line 1"),
    "a line taken out": (lambda all_: b"".join(lines(all_)[:2] + lines(all_)[3:]), r"says that it has \d+ lines"),
    "a count that is none": (
        lambda all_: re.sub(rb'"lines":.*}', lambda _found: rb'"lines":"\u0000\ud800"}', all_),
        "does not say how many lines",
    ),
    "a line too much": (lambda all_: all_ + lines(all_, "topic")[0], "more after the line that ends"),
    "an empty line": (lambda all_: all_.replace(b"\n", b"\n\n", 1), "Line 2 is empty"),
    "not utf-8": (lambda all_: all_.replace("Wörter".encode(), b"W\xf6rter"), "This is not JSON"),
    "half a surrogate": (lambda all_: all_.replace("Wörter".encode(), b"W\\ud800rter"), "This is not JSON"),
    "a nul": (lambda all_: all_.replace("Wörter".encode(), b"W\\u0000rter"), "NUL character"),
    "a bracket lost": (lambda all_: all_.replace(b'"fields":[{', b'"fields":[', 1), "This is not JSON"),
    "an unknown sort": (lambda all_: all_.replace(b'"type":"link"', b'"type":"knot"'), "no sort of line 'knot'"),
    "out of order": (swapped, "has no place behind"),
    "an unknown member": (told(mood="good"), "The member mood of this topic is not known"),
    "an endless name": (told(**{"x" * 10_000: 1}), "The member x*…$"),
    "a member missing": (lambda all_: all_.replace(b'"summary":', b'"sumary":', 1), "of this topic"),
    "a number as text": (told(vitality__salience="high"), "The member vitality.salience of this topic"),
    "no number at all": (told(vitality__salience=None), "The member vitality.salience of this topic"),
    "an unknown rung": (told(rung=7), "The member rung of this topic"),
    "no id": (told(id="7"), "The member id of this topic"),
    "a day without a time": (told(created_at="2026-01-01"), "The member created_at of this topic"),
    "too long a title": (told(title="x" * 1001), "The member title of this topic"),
    "no scope": (told(scope="user/alice"), "is no scope"),
    "a scope with a blank": (told(scope="/user alice"), "scope segment"),
    "a gap in a history": (told(fields__last_seq=3), "have a gap"),
    "a history without its beginning": (
        lambda all_: told(fields__last_seq=2)(all_).replace(b'"seq": 1', b'"seq": 2'),
        "are missing",
    ),
    "an id in capitals": (
        lambda all_: re.sub(rb'(?<="topic","id":")[^"]*', lambda at: at[0].upper(), all_),
        "The member id of this topic",
    ),
    "an id with a prefix": (
        lambda all_: all_.replace(b'"topic","id":"', b'"topic","id":"urn:uuid:'),
        "The member id of this topic",
    ),
    "a negative salience": (told(vitality__salience=-5.0), "The member vitality.salience of this topic"),
    "an endless salience": (told(vitality__salience="Infinity"), "The member vitality.salience of this topic"),
    "no half-life": (told(vitality__half_life=0), "The member vitality.half_life of this topic"),
    "a count that cannot go on": (told(vitality__retrieval_count=2**31 - 1), "The member vitality.retrieval_count of"),
    "a clock far ahead": (told(created_at="9999-12-30T00:00:00Z"), "The member created_at of this topic"),
    "a clock far behind": (
        lambda all_: re.sub(rb'("access".*"at":")[^"]*', rb"\g<1>0001-01-02T00:00:00Z", all_),
        "The member at of this retrieval",
    ),
    "too great a number in a document": (
        lambda all_: re.sub(rb'"after":{', b'"after":{"x":1e400,', all_),
        "The member after of .* too great",
    ),
    "two fields of a name": (
        lambda all_: told(fields=[json.loads(lines(all_, "topic")[0])["fields"][0]] * 2)(all_),
        "same name",
    ),
    "too great a number": (lambda all_: re.sub(rb'k","id":\d+', b'k","id":9' + b"9" * 16, all_), "of this link"),
    "a number that no store has": (
        lambda all_: re.sub(rb'k","id":\d+', b'k","id":%d' % 2**41, all_),
        r"link number 2,199,023,255,552",
    ),
    "a document of another shape": (
        told(edits=[{"at": "2026-01-01T00:00:00Z", "actor": "", "before": []}]),
        "The member edits.0.before of this topic",
    ),
    "counts of another shape": (
        lambda all_: re.sub(rb'"counts":{[^}]*}', b'"counts":{"a":[]}', all_),
        "The member counts.a of this run",
    ),
    "no journal": (lambda all_: re.sub(rb'"after":\{[^}]*\}', b'"after":null', all_), "The member after of"),
}


# What looks as it should, and what the database would not store.
NOT_STORED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a moment as a number": (told(created_at="1700000000"), '"1700000000"'),
    "too small a number": (
        lambda all_: re.sub(rb'"salience":[0-9.e-]+', b'"salience":1e-400', all_, count=1),
        r'"0\.0000',
    ),
    "no document": (told(document="'anna:1A"), "tsvector"),
    "no vector": (told(vector={"model": "m", "text_hash": "", "embedding": "[1,"}), "vector"),
}


@pytest.mark.parametrize("name", NOT_STORED)
def test_what_cannot_be_stored_is_known_before_anything_is(name: str, agent: Caller, tmp_path: Path) -> None:
    one = agent.remember("Wörter", values={"city": "Oslo"})
    agent.ingest("extend_topic", topic_id=one, edges=[{"to_topic_id": one, "kind": "itself"}])
    damage, sentence = NOT_STORED[name]
    path = tmp_path / "file.jsonl"
    path.write_bytes(damage(exported()))
    emptied()
    report = import_check(path, principal=SYSTEM, now=timezone.now())
    assert re.match(f"Line 2 cannot be stored: .*{sentence}", report.problems[0])
    assert not Topic.objects.exists()


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_gets_a_sentence_and_changes_nothing(name: str, agent: Caller, tmp_path: Path) -> None:
    one = agent.remember("Wörter", values={"city": "Oslo"})
    agent.ingest("extend_topic", topic_id=one, edges=[{"to_topic_id": one, "kind": "itself"}])
    agent.query("Wörter")
    topics_archive([uuid.UUID(one)], principal=SYSTEM, reason="seldom", now=timezone.now())
    damage, sentence = FILES[name]
    content = exported()
    damaged = damage(content)
    assert damaged != content
    path = tmp_path / "file.jsonl"
    path.write_bytes(damaged)
    before = dump()
    with pytest.raises(MemoryProblem, match=sentence) as refused:
        import_start(path, principal=SYSTEM, now=timezone.now())
    assert len(refused.value.sentence) < 450
    assert dump() == before


def test_merges_that_lead_in_a_circle_are_refused(agent: Caller, tmp_path: Path) -> None:
    """Whoever follows one would not come to an end."""
    made = [agent.remember(f"Topic {number}") for number in range(7)]
    for low, high in itertools.pairwise(made):
        Topic.objects.filter(pk=low).update(merged_into=high)
    content = exported()
    merged = lines(content, "merged")
    path = tmp_path / "file.jsonl"
    emptied()
    for tail in (made[-1], made[2], made[0]):
        closing = merged[0].replace(made[0].encode(), made[-1].encode()).replace(made[1].encode(), tail.encode())
        kept = lines(content)[:-1]
        kept.insert(kept.index(merged[-1]) + 1, closing)
        path.write_bytes(ended(kept))
        problem = import_check(path, principal=SYSTEM, now=timezone.now()).problems[0]
        assert re.match(r"Merges of this file lead in a circle, for instance from topic [0-9a-f-]{36}\.$", problem)
    # A topic is merged once: what the file says of it again is not brought.
    path.write_bytes(ended([line for line in lines(content)[:-1] for _twice in range(1 + (line in merged))]))
    report = import_check(path, principal=SYSTEM, now=timezone.now())
    assert (report.problems, report.sorts["merged"]) == ([], {"brought": 6, "there": 6})
    job = import_work(import_start(path, principal=SYSTEM, now=timezone.now()).pk, clock=timezone.now, seconds=60)
    assert (job.status, job.counts) == ("done", report.sorts)
    assert lines(exported(), "merged") == merged


def test_the_command_says_so_too(agent: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent.remember("Wörter")
    path = tmp_path / "file.jsonl"
    path.write_bytes(exported()[:-60])
    before = dump()
    for more in ((), ("--dry-run",)):
        with pytest.raises(CommandError, match=r"breaks off|not JSON"):
            call_command("import", str(path), *more)
    assert dump() == before


def test_a_file_that_is_not_there_is_no_failure_of_the_program(db: None, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(CommandError, match="cannot be read"):
            call_command("import", str(path))
        with pytest.raises(CommandError, match="cannot be read"):
            call_command("import", str(path), "--dry-run")
