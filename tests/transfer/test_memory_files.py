"""The memory files of assistants: a knowledge graph of an MCP memory server, and the memories of a Claude account; and
what Claude and Claude Code write beside what was said."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.core.errors import RequestRefused
from memory.models import ImportJob, Link, Topic
from memory.transfer.check import import_check
from memory.transfer.importers.guess import source_guess
from memory.transfer.importing import import_start
from memory.transfer.report import ImportReport
from memory.transfer.work import import_work
from tests.cast import Caller, store_rows, worker_turn

pytestmark = pytest.mark.django_db

GRAPH = [
    {"type": "relation", "from": "Mara", "to": "Telenor", "relationType": "works_at"},
    {"type": "entity", "name": "Mara", "entityType": "person", "observations": ["Speaks Welsh.", "薬は1日2錠。"]},
    {"type": "entity", "name": "Telenor", "entityType": "company", "observations": []},
    {"type": "relation", "from": "Telenor", "to": "Nobody", "relationType": "knows"},
    {"type": "entity", "name": "Анна", "entityType": "person", "observations": ["Живёт в Осло.", "", 7]},
    {"type": "relation", "from": "Анна", "to": "Mara", "relationType": "knows"},
    {"type": "entity", "name": "Mara", "entityType": "person", "observations": ["Another one."]},
]
CLAUDE = [
    {
        "account_uuid": "a-1",
        "conversations_memory": "**Work context**\n\nMara is a glazier in Porto.\n\nمارا تتعلم العربية.\n\n"
        "**Personal**\nShe has two cats.\n\nShe has two cats.",
        "project_memories": {"p-1": "## Plan\n\n本项目使用六边形架构。"},
        "memory_files": ["x.md"],
    }
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.json"


def lines(path: Path, values: list[Any]) -> None:
    path.write_text("\n".join(json.dumps(each, ensure_ascii=False) for each in values))


def checked(path: Path, source: str) -> ImportReport:
    return import_check(path, principal=SYSTEM, now=timezone.now(), source=source, scope="/brought")


def brought(path: Path, source: str) -> ImportJob:
    job = import_start(path, principal=SYSTEM, now=timezone.now(), source=source, scope="/brought")
    job = import_work(job.pk, clock=timezone.now, seconds=60)
    assert job.status == "done"
    return job


def texts() -> set[str]:
    return set(Topic.objects.values_list("fields__revisions__value", flat=True)) - {None}


@pytest.mark.parametrize("form", ["lines", "object"])
def test_a_knowledge_graph_becomes_topics_with_links(operator: Caller, file: Path, form: str) -> None:
    if form == "lines":
        lines(file, GRAPH)
    else:
        parts = {"entity": [], "relation": []}
        for each in GRAPH:
            parts[each["type"]].append({name: value for name, value in each.items() if name != "type"})
        file.write_text(json.dumps({"entities": parts["entity"], "relations": parts["relation"]}))
    assert source_guess(file) == "mcp-memory"
    report = checked(file, "mcp-memory")
    assert report.problems == []
    assert report.sorts["topic"] == {"brought": 3}
    assert report.sorts["link"] == {"brought": 2}
    assert len(report.losses) == 3
    job = brought(file, "mcp-memory")
    assert (job.counts["topic"], job.counts["link"]) == ({"brought": 3}, {"brought": 2})
    topics = {topic.title: topic for topic in Topic.objects.all()}
    assert {name: topic.kind for name, topic in topics.items()} == {
        "Mara": "person",
        "Telenor": "company",
        "Анна": "person",
    }
    assert texts() == {"Speaks Welsh.", "薬は1日2錠。", "Живёт в Осло."}
    links = Link.objects.values_list("source__title", "kind", "target__title")
    assert set(links) == {("Mara", "works_at", "Telenor"), ("Анна", "knows", "Mara")}
    worker_turn()
    assert str(topics["Mara"].pk) in operator.found("Speaks Welsh", scope="/brought")
    before = store_rows()
    again = brought(file, "mcp-memory")
    assert again.counts["topic"] == {"there": 3}
    assert {name: count for name, count in store_rows().items() if count != before[name]}.keys() <= {
        "memory_importjob",
        "memory_auditevent",
    }


def test_what_claude_has_noted_becomes_memories(operator: Caller, file: Path) -> None:
    file.write_text(json.dumps(CLAUDE))
    assert source_guess(file) == "claude-memories"
    report = checked(file, "claude-memories")
    assert report.problems == []
    assert report.sorts["topic"] == {"brought": 4}
    assert len(report.losses) == 2
    brought(file, "claude-memories")
    stored = {
        topic["label"]: {each["name"]: each["current"]["value"] for each in topic["fields"][1:]}
        for topic in (operator.topic(str(pk)) for pk in Topic.objects.values_list("pk", flat=True))
    }
    assert stored == {
        "Mara is a glazier in Porto.": {"section": "Work context"},
        "مارا تتعلم العربية.": {"section": "Work context"},
        "She has two cats.": {"section": "Personal"},
        "本项目使用六边形架构。": {"section": "Plan", "project": "p-1"},
    }
    assert brought(file, "claude-memories").counts["topic"] == {"there": 4}


def test_a_zip_archive_is_refused_with_what_to_do(file: Path) -> None:
    file.write_bytes(b"PK\x03\x04" + b"\0" * 40)
    for look in (source_guess, lambda path: checked(path, "claude")):
        with pytest.raises(RequestRefused) as refused:
            look(file)
        assert refused.value.code == "invalid-file"
    assert not ImportJob.objects.exists()


def session(*messages: tuple[str, str | None, str, str]) -> list[dict[str, Any]]:
    """Return the lines of a session of Claude Code from (id, parent, type, text)."""
    return [
        {
            "type": kind,
            "uuid": key,
            "parentUuid": parent,
            "sessionId": "s",
            "timestamp": f"2026-05-01T10:{minute:02d}:00Z",
            "message": {"role": kind, "content": [{"type": "text", "text": text}]},
        }
        for minute, (key, parent, kind, text) in enumerate(messages)
    ]


def test_an_abandoned_branch_of_claude_code_is_left_out(file: Path) -> None:
    lines(
        file,
        session(
            ("1", None, "user", "I live in Porto."),
            ("2", "1", "assistant", "Noted."),
            ("3", "2", "user", "I have a dog."),
            ("4", "3", "assistant", "A dog!"),
            # The person went back to the second message.
            ("5", "2", "user", "I have a cat."),
            ("6", "5", "assistant", "A cat!"),
            ("7", "6", "user", "She is called Mia."),
        ),
    )
    report = checked(file, "claude-code")
    assert report.sorts["topic"] == {"brought": 5}
    assert sum("branch" in loss for loss in report.losses) == 1
    brought(file, "claude-code")
    assert {"I have a cat.", "She is called Mia.", "I live in Porto."} <= texts()
    assert not {"I have a dog.", "A dog!"} & texts()


PROGRAM = [
    "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
    "<local-command-stdout>Total cost: $0.12</local-command-stdout>",
    "<system-reminder>\nThe file was changed.\n</system-reminder>",
    "<task-notification>\n<task-id>b1</task-id>\n</task-notification>",
    "<bash-input>ls</bash-input><bash-stdout>a.txt</bash-stdout>",
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
]


def test_texts_of_the_program_are_not_those_of_the_person(file: Path) -> None:
    said = ["Use tabs.", "我喜欢喝茶。", "Пиши коротко.", "أكتب بالعربية.", "Look at <my-element> in <b>bold</b>."]
    messages = [*PROGRAM, *said[:-1], f"{said[-1]}\n<system-reminder>Be brief.</system-reminder>"]
    chain = [(str(at), str(at - 1) if at else None, "user", text) for at, text in enumerate(messages)]
    lines(file, session(*chain))
    report = checked(file, "claude-code")
    assert report.sorts["topic"] == {"brought": len(said)}
    brought(file, "claude-code")
    assert texts() - {"user"} == set(said)


def test_the_branch_shown_last_of_a_claude_account_is_kept(file: Path) -> None:
    messages = [
        ("a", "", "human", "I live in Porto."),
        ("b", "a", "assistant", "Nice."),
        ("c", "b", "human", "住在波尔图"),
    ]
    messages += [("d", "b", "human", "Живу в Порту"), ("e", "d", "assistant", "Хорошо.")]
    file.write_text(
        json.dumps(
            [
                {
                    "uuid": "k",
                    "name": "Home",
                    "chat_messages": [
                        {"uuid": key, "parent_message_uuid": parent, "sender": sender, "text": text}
                        for key, parent, sender, text in messages
                    ],
                }
            ]
        )
    )
    brought(file, "claude")
    assert {"I live in Porto.", "Nice.", "Живу в Порту", "Хорошо."} <= texts()
    assert "住在波尔图" not in texts()
