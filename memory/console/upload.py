"""A file that a form brings: written to a folder as it arrives, up to a limit, and never held in memory."""

import os
import tempfile
from pathlib import Path
from typing import IO, Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

PREFIX = "upload-"


class FolderUpload(FileUploadHandler):
    """Takes the one file of a form. ``path`` is where it is, ``refused`` why it is not there."""

    def __init__(self, request: HttpRequest, *, folder: Path, limit: int) -> None:
        super().__init__(request)
        self.folder, self.limit = folder, limit
        self.path: Path | None = None
        self.refused = ""
        self._size = 0
        self._stream: IO[bytes] | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin a file that nobody else can read."""
        super().new_file(*args, **kwargs)
        if self.path is not None:
            self._stop("Upload one file at a time.")
        try:
            number, name = tempfile.mkstemp(prefix=PREFIX, dir=self.folder)
        except OSError as problem:
            self._stop(f"The file cannot be stored: {problem.strerror}.")
        self.path, self._stream = Path(name), os.fdopen(number, "wb")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write what has arrived."""
        assert self._stream is not None
        self._size += len(raw_data)
        if self._size > self.limit:
            self._stop(
                f"This file is larger than the limit of {self.limit:,} bytes (MEMSTATE_MAX_IMPORT_BYTES). "
                "Use manage.py import for larger files."
            )
        try:
            self._stream.write(raw_data)
        except OSError as problem:
            self._stop(f"The file cannot be stored: {problem.strerror}.")

    def file_complete(self, file_size: int) -> "UploadedFile[bytes] | None":
        """Return the name and size of the file for the form; what it holds is at ``path``."""
        if self._stream is None:
            return None
        try:
            self._stream.close()
        except OSError as problem:
            self._stop(f"The file cannot be stored: {problem.strerror}.")
        return UploadedFile(None, self.file_name, self.content_type, file_size)

    def upload_interrupted(self) -> None:
        """Leave nothing of a file that did not arrive whole."""
        self.discard()

    def discard(self) -> None:
        """Remove the file, unless it was taken (``take``)."""
        if self._stream is not None and not self._stream.closed:
            self._stream.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None

    def take(self) -> None:
        """Leave the file where it is; from now on the caller has it."""
        self.path = None

    def _stop(self, sentence: str) -> None:
        self.refused = sentence
        self.discard()
        # The rest is read and dropped: a browser listens only when it has said everything.
        raise StopUpload(connection_reset=False)
