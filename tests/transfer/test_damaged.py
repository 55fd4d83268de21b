"""Files that are cut off, garbled, another's or a newer MemState's: a sentence that says where, and nothing changes."""

import gzip
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.core.errors import MemoryProblem
from memory.models import Topic
from memory.transfer import export as export_room
from memory.transfer.check import import_check
from memory.transfer.importing import import_start
from memory.transfer.work import import_work
from tests.cast import Caller
from tests.forgetting.shop import dump
from tests.transfer.shop import emptied, ended, exported, lines

pytestmark = pytest.mark.django_db


def got(**members: Any) -> Callable[[bytes], bytes]:
    """Change members of the line of the topic; a name with a dot is of the first of the list."""

    def change(content: bytes) -> bytes:
        found = lines(content)
        at = next(place for place, line in enumerate(found) if line.startswith(b'{"type":"topic"'))
        topic = json.loads(found[at])
        for name, value in members.items():
            holder, _, own = name.rpartition("__")
            part = topic[holder][0] if holder else topic
            if own == "revisions":
                value = part[own] * value if isinstance(value, int) else [part[own][0] | value[0]]
            part[own] = value
        found[at] = json.dumps(topic).encode() + b"\n"
        return b"".join(found)

    return change


def swapped(content: bytes) -> bytes:
    found = lines(content)
    return ended([found[0], *lines(content, "link"), *lines(content, "topic")])


# What is done to a file, and what its sentence says of the place.
LINE = r"^Line \d+: "
FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a compressed file": (gzip.compress, "gunzip"),
    "nothing": (lambda _all: b"", "empty"),
    "a picture": (lambda _all: b"\x89PNG\r\n\x1a\n\x00\xff", "^Line 1 "),
    "text": (lambda _all: b"Dear diary,\n", "^Line 1 "),
    "json of another system": (lambda _all: b'{"results": []}\n', "^Line 1 "),
    "a type of another system": (lambda _all: b'{"type":"message","text":"a"}\n', "^Line 1: "),
    "a newer format": (lambda all_: all_.replace(b'"version":2', b'"version":3', 1), "^Line 1: .*newer"),
    "an older format": (lambda all_: all_.replace(b'"version":2', b'"version":1', 1), "^Line 1: .*format 1"),
    "no format": (lambda all_: all_.replace(b'"version":2', b'"version":null', 1), "^Line 1: .*version"),
    "cut off at a line": (lambda all_: b"".join(lines(all_)[:-1]), r"after line \d"),
    "cut off within a line": (lambda all_: all_[:-60], r"Line \d+"),
    "cut off at its first line": (lambda all_: lines(all_)[0], "after line 1"),
    "a line taken out": (lambda all_: b"".join(lines(all_)[:2] + lines(all_)[3:]), LINE),
    "a count that is none": (lambda all_: re.sub(rb'"lines":.*}', b'"lines":"many"}', all_), f"{LINE}.*lines"),
    "a line too much": (lambda all_: all_ + lines(all_, "topic")[0], LINE),
    "an empty line": (lambda all_: all_.replace(b"\n", b"\n\n", 1), "^Line 2 "),
    "not utf-8": (lambda all_: all_.replace("Wörter".encode(), b"W\xf6rter"), f"{LINE}.*JSON"),
    "half a surrogate": (lambda all_: all_.replace("Wörter".encode(), b"W\\ud800rter"), LINE),
    "a nul": (lambda all_: all_.replace("Wörter".encode(), b"W\\u0000rter"), f"{LINE}.*NUL"),
    "a bracket lost": (lambda all_: all_.replace(b'"fields":[{', b'"fields":[', 1), f"{LINE}.*JSON"),
    "a depth without end": (lambda all_: all_.replace(b'"edits":[]', b'"edits":' + b"[" * 5000 + b"]" * 5000, 1), LINE),
    "an unknown kind": (lambda all_: all_.replace(b'"type":"link"', b'"type":"knot"'), f"{LINE}.*knot"),
    "two lines swapped": (swapped, LINE),
    "a topic twice": (lambda all_: ended([*lines(all_)[:2], lines(all_)[1], *lines(all_)[2:-1]]), LINE),
    "an unknown member": (got(mood="good"), f"{LINE}.*mood"),
    "an endless name": (got(**{"x" * 10_000: 1}), LINE),
    "a member missing": (lambda all_: all_.replace(b'"summary":', b'"sumary":', 1), f"{LINE}.*mary"),
    "a number as text": (got(salience="high"), f"{LINE}.*salience"),
    "no number at all": (got(salience=None), f"{LINE}.*salience"),
    "an unknown rung": (got(rung=7), f"{LINE}.*rung"),
    "no id": (got(id="7"), f"{LINE}.*id"),
    "a day without a time": (got(created_at="2026-01-01"), f"{LINE}.*created_at"),
    "too long a title": (got(title="x" * 1001), f"{LINE}.*title"),
    "too long a value": (got(fields__revisions=[{"value": "x" * 200_001}]), f"{LINE}.*value"),
    "no scope": (got(scope="user/alice"), f"{LINE}.*user/alice"),
    "a scope with a blank": (got(scope="/user alice"), f"{LINE}.*user alice"),
    "revisions that do not come": (got(fields__last_seq=3), f"{LINE}.*city"),
    "revisions beyond the last number": (got(fields__last_seq=1, fields__revisions=2), f"{LINE}.*revisions"),
    "a negative salience": (got(salience=-5.0), f"{LINE}.*salience"),
    "an endless salience": (got(salience="Infinity"), f"{LINE}.*salience"),
    "a count that cannot go on": (got(retrieval_count=2**31 - 1), f"{LINE}.*retrieval_count"),
    "a clock far ahead": (got(created_at="9999-12-30T00:00:00Z"), f"{LINE}.*created_at"),
    "two fields of a name": (
        lambda all_: got(fields=[json.loads(lines(all_, "topic")[0])["fields"][0]] * 2)(all_),
        f"{LINE}.*same name",
    ),
    "an edit of another shape": (
        got(edits=[{"at": "2026-01-01T00:00:00Z", "actor": "", "before": []}]),
        f"{LINE}.*edits.0.before",
    ),
    "a vector of words": (got(vector={"model": "m", "text_hash": "", "embedding": ["a"]}), f"{LINE}.*vector"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_gets_a_sentence_and_changes_nothing(name: str, agent: Caller, tmp_path: Path) -> None:
    one = agent.remember("Wörter", values={"city": "Oslo"})
    agent.ingest("extend_topic", topic_id=one, edges=[{"to_topic_id": one, "kind": "itself"}])
    damage, place = FILES[name]
    content = exported()
    damaged = damage(content)
    assert damaged != content
    emptied()
    path = tmp_path / "file.jsonl"
    path.write_bytes(damaged)
    before = dump()
    with pytest.raises(MemoryProblem, match=place) as refused:
        import_start(path, principal=SYSTEM, now=timezone.now())
    assert len(refused.value.sentence) < 450
    assert dump() == before


def test_older_revisions_have_to_be_those_that_are_missing(
    agent: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_room, "REVISIONS_IN_LINE", 2)
    one = agent.remember("Wörter", values={"city": "Oslo"})
    for number in range(5):
        agent.ingest("version_field", topic_id=one, fields=[{"name": "city", "value": f"City {number}"}])
    content = lines(exported())
    first, second = (place for place, line in enumerate(content) if line.startswith(b'{"type":"history"'))
    path = tmp_path / "file.jsonl"
    for kept in (
        [*content[:first], *content[second:-1]],
        [*content[:second], *content[second + 1 : -1]],
        [*content[:first], content[second], content[first], *content[second + 1 : -1]],
        [*content[: second + 1], content[second], *content[second + 1 : -1]],
        [content[0], content[first], *content[1:-1]],
    ):
        path.write_bytes(ended(kept))
        with pytest.raises(MemoryProblem, match=r"Line \d+: "):
            import_start(path, principal=SYSTEM, now=timezone.now())


def test_merges_that_lead_in_a_circle_are_refused(agent: Caller, tmp_path: Path) -> None:
    """Whoever follows one would not come to an end."""
    made = sorted(agent.remember(f"Topic {number}") for number in range(7))
    for low, high in itertools.pairwise(made):
        Topic.objects.filter(pk=low).update(merged_into=high)
    content = exported()
    path = tmp_path / "file.jsonl"
    emptied()
    for tail in (made[-1], made[2], made[0]):
        merged = [*map(json.loads, lines(content, "merged")), {"topic": made[-1], "into": tail, "released_at": None}]
        rows = [{"type": "merged"} | line for line in sorted(merged, key=lambda line: (line["into"], line["topic"]))]
        kept = [json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows]
        path.write_bytes(ended([*lines(content)[:8], *kept]))
        (problem,) = import_check(path, principal=SYSTEM, now=timezone.now()).problems
        assert any(topic in problem for topic in made)
    path.write_bytes(content)
    job = import_work(import_start(path, principal=SYSTEM, now=timezone.now()).pk, clock=timezone.now, seconds=60)
    assert job.status == "done"
    assert exported() == content


def test_the_command_says_so_too(agent: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent.remember("Wörter")
    path = tmp_path / "file.jsonl"
    path.write_bytes(exported()[:-60])
    before = dump()
    for more in ((), ("--dry-run",)):
        with pytest.raises(CommandError, match=r"Line \d+: "):
            call_command("import", str(path), *more)
    assert dump() == before


def test_a_file_that_is_not_there_is_no_failure_of_the_program(db: None, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(CommandError, match=r"\[invalid-file\]$"):
            call_command("import", str(path))
        with pytest.raises(CommandError, match=r"\[invalid-file\]$"):
            call_command("import", str(path), "--dry-run")
