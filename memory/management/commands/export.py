"""manage.py export FILE: writes the topics and policies of a store, or of a scope, as JSON Lines."""

import fcntl
import os
import stat
import sys
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access.principal import Principal
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.management.store_command import CommandRefused, StoreCommand
from memory.transfer.export import export_note, export_size, store_export

STDOUT = "-"


class Command(StoreCommand):
    """Writes ``FILE.part`` and renames it at the end, so that ``FILE`` is always complete."""

    help = (
        "Export topics and policies as JSON Lines; - writes to the standard output. An exact copy is made by pg_dump."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="The file to write, or - for the standard output.")
        parser.add_argument("--scope", default="/", help="Export this scope and all scopes below it (default /).")
        parser.add_argument(
            "--vectors", action="store_true", help="Include the embeddings. Otherwise, an import computes them again."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            scope = scope_normalize(options["scope"])
            principal = Principal(identity=f"terminal:{scope}", actor="terminal", role="operator", scope=scope)
            if options["file"] == STDOUT:
                self._write(sys.stdout.buffer, principal, vectors=options["vectors"])
                return
            path = Path(options["file"])
            part = path.with_name(path.name + ".part")
            if path.exists():
                raise CommandRefused(
                    f"{path} is there already; give another name, or remove it.", ProblemCode.ALREADY_EXISTS
                )
            lines = self._part(part, principal, vectors=options["vectors"])
            part.replace(path)
        except OSError as problem:
            raise CommandRefused(
                f"{options['file']} cannot be written: {problem.strerror}.", ProblemCode.FILE_NOT_WRITABLE
            ) from problem
        self.stdout.write(f"{lines:,} lines were written to {path}.")

    def _part(self, part: Path, principal: Principal, *, vectors: bool) -> int:
        # No other account may read the file.
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b") as file:
            _own_check(file, part)
            _file_lock(file, part)
            # The file may contain the lines of an export that was stopped.
            file.truncate(0)
            lines = self._write(file, principal, vectors=vectors)
            file.flush()
            os.fsync(file.fileno())
        return lines

    def _write(self, file: IO[bytes], principal: Principal, *, vectors: bool) -> int:
        lines = 0
        export_note(principal=principal, now=timezone.now(), vectors=vectors)
        total = export_size(principal=principal, sample=0)[0]
        with tqdm(total=total, unit=" lines", desc="Exporting", dynamic_ncols=True) as bar:
            for line in store_export(principal=principal, vectors=vectors):
                file.write(line)
                bar.update()
                lines += 1
        return lines


def _file_lock(file: IO[bytes], part: Path) -> None:
    """Lock the file until it is closed. Raise ``CommandRefused`` if another process is writing the file."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        raise CommandRefused(
            f"Another export writes {part} at the moment; let it finish, or stop it.", ProblemCode.BUSY
        ) from problem


def _own_check(file: IO[bytes], part: Path) -> None:
    """Forbid other accounts to read the file. Raise ``CommandRefused`` unless the file belongs to this account."""
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise CommandRefused(
            f"{part} belongs to another account. Remove it, or use another name.", ProblemCode.FILE_NOT_WRITABLE
        )
    os.fchmod(file.fileno(), 0o600)
