"""manage.py extract: the facts of a file, shown or stored."""

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memory.models import Topic
from tests.cast import store_rows
from tests.extraction.texts import PLAIN, PLAIN_FACTS

pytestmark = pytest.mark.django_db


def extract(path: Path, *options: str) -> tuple[list[str], str]:
    out, got = io.StringIO(), io.StringIO()
    call_command("extract", str(path), *options, stdout=out, stderr=got)
    return out.getvalue().splitlines(), got.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text(PLAIN, encoding="utf-8")
    return path


def test_without_store_facts_are_only_shown(file: Path) -> None:
    before = store_rows()
    facts, got = extract(file)
    assert facts == PLAIN_FACTS
    assert "3 facts, 0 of them known, 0 stored." in got
    assert "1 question" in got
    assert store_rows() == before


def test_with_store_facts_are_remembered_once(file: Path) -> None:
    extract(file, "--store", "--scope", "/notes", "--kind", "note")
    assert Topic.objects.filter(kind="note", scope__path="/notes").count() == len(PLAIN_FACTS)
    _facts, got = extract(file, "--store", "--scope", "/notes", "--kind", "note")
    assert "3 facts, 3 of them known, 0 stored." in got


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="invalid-file"):
        extract(tmp_path / "nothing.txt")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(CommandError, match="invalid-file"):
        extract(tmp_path / "picture.png")
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(CommandError, match="missing-member"):
        extract(tmp_path / "empty.txt")
