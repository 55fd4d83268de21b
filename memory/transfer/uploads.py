"""Files that came through the console, in the data folder until their import is at its end.

Nobody but the account of the server may read them. Files that a command was given lie elsewhere and are never touched.
"""

import datetime as dt
from pathlib import Path

from django.conf import settings

from memory.access.principal import SYSTEM
from memory.core.errors import Conflict
from memory.models import ImportJob
from memory.transfer.importing import import_cancel

FOLDER = "transfer"
# A check that nobody said yes to, and a file that nobody knows, are kept so long.
KEPT = dt.timedelta(days=1)
Status = ImportJob.Status


def uploads_folder() -> Path:
    """Return the folder, made if it is missing."""
    folder = Path(settings.MEMSTATE_DATA_DIR) / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def upload_discard(file: str) -> None:
    """Remove a file if it lies in the folder and no open import needs it. Raises nothing if it is gone. One query at
    most."""
    path = Path(file)
    if not file or path.parent != Path(settings.MEMSTATE_DATA_DIR) / FOLDER:
        return
    # A file may be checked in two ways at once.
    if not ImportJob.objects.filter(file=file, status__in=ImportJob.UNFINISHED).exists():
        path.unlink(missing_ok=True)


def import_before(job: ImportJob) -> ImportJob | None:
    """Return the last import of the very same file into the same scope that came to its end. One query."""
    same = ImportJob.objects.filter(digest=job.digest, scope=job.scope, status=Status.DONE).exclude(pk=job.pk)
    return same.order_by("-created_at").first() if job.digest else None


def uploads_tidy(*, now: dt.datetime) -> int:
    """Give up imports that have waited for a yes for a day, and remove the files that no open import needs; return how
    many files. Two queries, and a few for each import given up."""
    folder = Path(settings.MEMSTATE_DATA_DIR) / FOLDER
    if not folder.is_dir():
        return 0
    waiting = ImportJob.objects.filter(status=Status.WAITING, created_at__lt=now - KEPT)
    for job in waiting.filter(file__startswith=f"{folder}/")[:100]:
        try:
            import_cancel(job.pk, principal=SYSTEM, now=now)
        except Conflict:
            # Somebody has said yes in this moment.
            continue
    found = list(folder.iterdir())
    jobs = ImportJob.objects.filter(file__in=[str(path) for path in found])
    known = dict(jobs.order_by("created_at").values_list("file", "status"))
    removed = 0
    for path in found:
        # What no import knows may be on its way in. What failed can be started again for a day.
        old = path.stat().st_mtime < (now - KEPT).timestamp()
        status = known.get(str(path))
        if status in (Status.DONE, Status.CANCELLED) or (old and status not in ImportJob.UNFINISHED):
            path.unlink(missing_ok=True)
            removed += 1
    return removed
