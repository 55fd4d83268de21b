"""The file of an import, and whoever began it, while it is at work: a file that changes, a caller who may no more."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.core.errors import RequestRefused
from memory.models import AuditEvent, ImportJob
from memory.stores.models import StoreRole
from memory.transfer import importing as importing_room
from memory.transfer import lines as lines_room
from memory.transfer.check import file_digest, import_check
from memory.transfer.importing import import_cancel, import_confirm, import_offer, import_start
from memory.transfer.uploads import upload_discard, uploads_folder
from memory.transfer.work import import_work
from tests.cast import Cast
from tests.console.people import account_make
from tests.transfer.shop import emptied, exported
from tests.transfer.test_jobs import anonymous, done, kept

pytestmark = pytest.mark.django_db


def taken_out(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, topics: int) -> tuple[Path, bytes]:
    """Export a store, empty it, and return the file and what is in it; it will come two lines at a time."""
    for number in range(topics):
        cast.agent.remember(f"Topic {number}")
    content = exported()
    emptied()
    monkeypatch.setattr(lines_room, "LINES", 2)
    return kept(tmp_path, "file", content), content


def test_an_import_stops_when_whoever_began_it_may_not_import_any_more(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content = taken_out(cast, tmp_path, monkeypatch, topics=5)
    account = account_make("operator")
    gone = Principal(f"user:{account.pk}", "person:mara", "operator", "/")
    got: dict[str, Any] = {"now": timezone.now(), "enqueue": anonymous}

    def checked(principal: Principal) -> ImportJob:
        return import_work(import_offer(path, principal=principal, **got).pk, clock=timezone.now, seconds=60)

    def switched_off(*_progress: int) -> None:
        account.is_active = False
        account.save()

    # Whoever says yes is who imports, however has offered the file.
    job = import_confirm(checked(SYSTEM).pk, principal=gone, **got)
    job = import_work(job.pk, clock=timezone.now, seconds=60, progress=switched_off)
    assert (job.status, job.actor, job.done) == ("failed", "person:mara", 1)
    assert "person:mara" in job.failure
    events = AuditEvent.objects.filter(action__startswith="import_").order_by("id").values_list("action", "actor")
    assert list(events) == [("import_started", "person:mara"), ("import_failed", "person:mara")]
    # Nor is a file checked for such a one, and an operator who is none any more is one of them.
    assert "person:mara" in checked(gone).failure
    account.is_active = True
    account.save()
    StoreRole.objects.filter(user=account).delete()
    assert "person:mara" in checked(gone).failure
    # Someone else goes on where it stopped.
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    assert job.done == 1
    done(job)
    assert exported() == content


def test_a_file_that_changes_while_it_is_read_ends_its_import(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content = taken_out(cast, tmp_path, monkeypatch, topics=8)

    def changed(*_progress: int) -> None:
        # As long as it was, and as old.
        before = os.stat(path)
        path.write_bytes(content.replace(b"Topic 7", b"Topic X"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(RequestRefused) as refused:
        import_check(path, principal=SYSTEM, now=timezone.now(), progress=changed)
    assert refused.value.code == "changed-meanwhile"
    path.write_bytes(content)
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    job = import_work(job.pk, clock=timezone.now, seconds=60, progress=changed)
    assert (job.status, job.done, job.failure) == ("failed", 1, "The file has changed since it was checked.")
    # What is touched and stays the same is the same file, and is read to its end once more.
    path.write_bytes(content)
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    job = import_work(job.pk, clock=timezone.now, seconds=60, progress=lambda *_progress: path.touch())
    assert job.status == "done"
    assert exported() == content


def test_a_file_that_no_one_touches_is_read_once_for_its_digest(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast.agent.remember("Something")
    path = kept(tmp_path, "file", exported())
    opened: list[str] = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, mode="r", **more: opened.append(mode) or real(self, mode, **more))
    first = file_digest(path)
    for _again in range(3):
        assert file_digest(path) == first
    assert opened.count("rb") == 1
    path.write_bytes(b"other")
    assert file_digest(path) != first


def test_a_check_with_problems_is_never_one_that_waits_for_a_yes(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast.agent.remember("Something")
    path = kept(tmp_path, "file", exported()[:-60])
    job = import_offer(path, principal=SYSTEM, now=timezone.now(), enqueue=anonymous)

    def killed(*_args: Any, **_named: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(importing_room, "job_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            import_work(job.pk, clock=timezone.now, seconds=60)
    job.refresh_from_db()
    assert job.status != "waiting"
    assert import_work(job.pk, clock=timezone.now, seconds=60).status == "failed"


def test_a_file_that_another_import_needs_is_not_discarded(cast: Cast, settings: Any, tmp_path: Path) -> None:
    settings.MEMSTATE_DATA_DIR = tmp_path
    path = kept(uploads_folder(), "upload-1", b"[]")
    got: dict[str, Any] = {"principal": SYSTEM, "now": timezone.now()}
    jobs = [import_offer(path, source=source, enqueue=anonymous, **got) for source in ("chat", "mem0")]
    for job, left in zip(jobs, (True, False), strict=True):
        import_cancel(job.pk, **got)
        upload_discard(job.file)
        assert path.exists() == left
    # What was not uploaded is no one's to remove.
    elsewhere = kept(tmp_path, "mine", b"[]")
    upload_discard(str(elsewhere))
    assert elsewhere.exists()
