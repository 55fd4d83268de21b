"""`manage.py backup`: writes the database and the secret key to a folder that only this account can read."""

from __future__ import annotations

import os
import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused
from memstate_site.folder import private_file_create
from memstate_site.management.programs import program_run

DUMP, SECRET = "memstate.sql", "secret-key"


class Command(BaseCommand):
    help = (
        "Writes a backup to a new folder: the database, and the secret key that its receipts and sessions are signed "
        "with. Only this account can read it. `manage.py restore` reads it into an empty store."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="The folder to write. It must not exist.")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"].absolute()
        # The dump contains all texts, and the hashes of passwords and keys.
        os.umask(0o077)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise CommandRefused(f"{folder} already exists. Name a new folder.", ProblemCode.ALREADY_EXISTS) from None
        except OSError as problem:
            raise CommandRefused(
                f"{folder} cannot be written: {problem.strerror}.", ProblemCode.FILE_NOT_WRITABLE
            ) from problem
        complete = False
        try:
            # Comments on extensions, owners and privileges are left out, because only a superuser could restore them.
            program_run("pg_dump", "--no-comments", "--no-owner", "--no-privileges", "-f", str(folder / DUMP))
            private_file_create(folder / SECRET, settings.SECRET_KEY)
            complete = True
        finally:
            if not complete:
                shutil.rmtree(folder, ignore_errors=True)
        size = (folder / DUMP).stat().st_size
        self.stdout.write(f"The backup is in {folder} ({size:,} bytes). Store it as safely as the data folder.")
