"""Files that were uploaded in the console stay in the data folder until their import ends. Files imported by a command
stay where they are and are never removed."""

import datetime as dt
import shutil
from pathlib import Path

from django.conf import settings

from memory.access.principal import SYSTEM
from memory.core.errors import Conflict
from memory.models import ImportJob
from memory.stores.current import MAIN, SCHEMA_PREFIX, store_current, store_schema
from memory.stores.models import Store
from memory.transfer.importing import import_cancel

FOLDER = "transfer"
# Unconfirmed imports and files without an import are removed after this time.
KEPT = dt.timedelta(days=1)
Status = ImportJob.Status


def _folder() -> Path:
    """Return the folder of the current store. The folders of stores other than ``main`` are in the folder of
    ``main``."""
    store = store_current()
    folder = Path(settings.MEMSTATE_DATA_DIR) / FOLDER
    return folder if store == MAIN else folder / store_schema(store)


def uploads_folder() -> Path:
    """Return the folder of the current store, created if it is missing."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def uploads_remove() -> None:
    """Remove the folder of the current store with its files. No query."""
    shutil.rmtree(_folder(), ignore_errors=True)


def uploads_dropped_remove() -> None:
    """Remove the folders of dropped stores, which remain if a drop was interrupted. One query if any store other than
    ``main`` has a folder."""
    folder = Path(settings.MEMSTATE_DATA_DIR) / FOLDER
    if found := [path for path in folder.glob(f"{SCHEMA_PREFIX}*") if path.is_dir()]:
        kept = {store_schema(name) for name in Store.objects.values_list("name", flat=True)}
        for path in found:
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)


def upload_discard(file: str) -> None:
    """Remove a file if it is in the folder of the current store and no unfinished import needs it. A missing file is
    not an error. At most one query."""
    path = Path(file)
    if not file or path.parent != _folder():
        return
    # Two imports may use the same file.
    if not ImportJob.objects.filter(file=file, status__in=ImportJob.UNFINISHED).exists():
        path.unlink(missing_ok=True)


def import_before(job: ImportJob) -> ImportJob | None:
    """Return the last finished import of the file of ``job`` into the same scope, or None. The import ``job`` itself is
    left out. At most one query."""
    same = ImportJob.objects.filter(digest=job.digest, scope=job.scope, status=Status.DONE).exclude(pk=job.pk)
    return same.order_by("-created_at").first() if job.digest else None


def uploads_tidy(*, now: dt.datetime) -> int:
    """Cancel imports that were not confirmed within a day, and remove files that no unfinished import needs. Return the
    number of removed files. Two queries, and a few for each cancelled import."""
    folder = _folder()
    if not folder.is_dir():
        return 0
    waiting = ImportJob.objects.filter(status=Status.WAITING, created_at__lt=now - KEPT)
    for job in waiting.filter(file__startswith=f"{folder}/")[:100]:
        try:
            import_cancel(job.pk, principal=SYSTEM, now=now)
        except Conflict:
            # The import was confirmed meanwhile.
            continue
    found = [path for path in folder.iterdir() if path.is_file()]
    jobs = ImportJob.objects.filter(file__in=[str(path) for path in found])
    known = dict(jobs.order_by("created_at").values_list("file", "status"))
    removed = 0
    for path in found:
        # A file without an import may still be uploading. A failed import can be retried for a day.
        old = path.stat().st_mtime < (now - KEPT).timestamp()
        status = known.get(str(path))
        if status in (Status.DONE, Status.CANCELLED) or (old and status not in ImportJob.UNFINISHED):
            path.unlink(missing_ok=True)
            removed += 1
    return removed
