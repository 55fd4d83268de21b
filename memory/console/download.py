"""Downloads of large files. A file is first written to disk, so that a slow browser does not keep a transaction open.
The number of simultaneous downloads is limited, so that slow browsers do not occupy all threads of the server."""

import tempfile
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from django.http import FileResponse, HttpRequest

from memory.core.errors import Conflict, RequestRefused
from memory.core.problem_codes import ProblemCode

# The maximum number of simultaneous downloads. Each occupies a thread of the server until the browser has the file.
AT_ONCE = 2
# Seconds without progress after which the connection is closed.
STALLED_SECONDS = 60.0

_slots = threading.BoundedSemaphore(AT_ONCE)


def download(
    request: HttpRequest, parts: Iterable[bytes], *, name: str, content_type: str, folder: Path
) -> FileResponse:
    """Return ``parts`` as a download called ``name``. They are first written to a temporary file in ``folder``. The
    file disappears after the download or when the process ends.

    Raises ``Conflict`` while ``AT_ONCE`` other downloads are in progress, and ``RequestRefused`` if writing fails.
    """
    if not _slots.acquire(blocking=False):
        raise Conflict(
            f"{AT_ONCE} downloads are in progress. Wait until one has finished.", code=ProblemCode.TOO_MANY_REQUESTS
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
    # The socket to the browser. It is missing in tests.
    if (socket := request.META.get("gunicorn.socket")) is not None:
        socket.settimeout(STALLED_SECONDS)
    return _Download(file, as_attachment=True, filename=name, content_type=content_type)


class _Download(FileResponse):
    """A download that makes room for another one when it is closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The slot is also released if the reply is never closed.
        self._release = weakref.finalize(self, _slots.release)

    def close(self) -> None:
        """Close the file and release the slot. Further calls do nothing."""
        super().close()
        self._release()
