"""An uploaded file: written to a folder as it arrives, up to a limit, and never held in memory."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

PREFIX = "upload-"


class FolderUpload(FileUploadHandler):
    """Receives the only file of a form. ``path`` is its location. ``refused`` is the reason why it was not accepted, or
    empty."""

    def __init__(self, request: HttpRequest, *, folder: Path, limit: int) -> None:
        super().__init__(request)
        self.folder, self.limit = folder, limit
        self.path: Path | None = None
        self.refused = ""
        self._stream: IO[bytes] | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Create a file that only the account of this process can read."""
        super().new_file(*args, **kwargs)
        if self.path is not None:
            self._stop("Upload one file at a time.")
        with self._storing():
            number, name = tempfile.mkstemp(prefix=PREFIX, dir=self.folder)
            self.path, self._stream = Path(name), os.fdopen(number, "wb")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a chunk. Stop the upload if the file is too large."""
        assert self._stream is not None
        if start + len(raw_data) > self.limit:
            self._stop(
                f"This file is larger than the limit of {self.limit:,} bytes (MEMSTATE_MAX_IMPORT_BYTES). "
                "Use manage.py import for larger files."
            )
        with self._storing():
            self._stream.write(raw_data)

    def file_complete(self, file_size: int) -> "UploadedFile[bytes] | None":
        """Return the name and size of the file for the form. The content is at ``path``."""
        if self._stream is None:
            return None
        with self._storing():
            self._stream.close()
        return UploadedFile(None, self.file_name, self.content_type, file_size)

    def upload_interrupted(self) -> None:
        """Remove a file that did not arrive completely."""
        self.discard()

    def discard(self) -> None:
        """Remove the file, unless ``take`` was called."""
        if self._stream is not None and not self._stream.closed:
            self._stream.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None

    def take(self) -> None:
        """Hand the file over to the caller, who must remove it."""
        self.path = None

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self._stop(f"The file cannot be stored: {problem.strerror}.")

    def _stop(self, sentence: str) -> None:
        self.refused = sentence
        self.discard()
        # The rest of the request is read and dropped, because browsers read the reply only after sending everything.
        raise StopUpload(connection_reset=False)
