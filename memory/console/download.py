"""A large file that a page gives out. It is written to disk first: a browser that takes its time with it, or pauses,
then keeps neither a transaction open nor the threads that others need."""

import tempfile
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from django.http import FileResponse, HttpRequest

from memory.core.errors import Conflict, RequestRefused
from memory.core.problem_codes import ProblemCode

# Each occupies a thread of the server until the browser has the whole file.
AT_ONCE = 2
# Seconds without progress after which the connection is closed.
STALLED_SECONDS = 60.0

_slots = threading.BoundedSemaphore(AT_ONCE)


def download(
    request: HttpRequest, parts: Iterable[bytes], *, name: str, content_type: str, folder: Path
) -> FileResponse:
    """Return ``parts`` as a file called ``name``. It waits on disk in ``folder``, without a name there, so that nothing
    is left of it once it was given out, or if the process ends before.

    Raises ``Conflict`` while ``AT_ONCE`` others are given out, ``RequestRefused`` if there is no room for it.
    """
    if not _slots.acquire(blocking=False):
        raise Conflict(
            f"{AT_ONCE} downloads are in progress. Wait until one has finished.", code=ProblemCode.TOO_MANY_DOWNLOADS
        )
    try:
        file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the reply
        try:
            file.writelines(parts)
            file.seek(0)
        except BaseException:
            file.close()
            raise
    except OSError as problem:
        _slots.release()
        raise RequestRefused(
            f"The file cannot be written: {problem.strerror}.", code=ProblemCode.FILE_NOT_WRITABLE
        ) from problem
    except BaseException:
        _slots.release()
        raise
    # What the server writes to; not there in tests.
    if (socket := request.META.get("gunicorn.socket")) is not None:
        socket.settimeout(STALLED_SECONDS)
    return _Download(file, as_attachment=True, filename=name, content_type=content_type)


class _Download(FileResponse):
    """Frees its place when it is closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Also if it is never closed.
        self._release = weakref.finalize(self, _slots.release)

    def close(self) -> None:
        """Close the file; may be called again."""
        super().close()
        self._release()
