"""`manage.py restore`: restores a folder of `manage.py backup` into an empty store."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused
from memstate_site.env import envsecret
from memstate_site.folder import data_folder, private_file_read, private_file_replace
from memstate_site.management.commands.backup import DUMP, SECRET
from memstate_site.management.programs import program_run


class Command(BaseCommand):
    help = (
        "Reads a backup into an empty store, before its first `manage.py up`: the database, and the secret key into "
        "the data folder. Everything is restored or nothing is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="The folder that `manage.py backup` wrote.")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"].absolute()
        secret = private_file_read(folder / SECRET)
        if not secret or not (folder / DUMP).is_file():
            raise CommandRefused(f"{folder} is not a backup: it needs {DUMP} and {SECRET}.", ProblemCode.INVALID_FILE)
        if connection.introspection.table_names():
            raise CommandRefused(
                "The database already holds a store. Restore into an empty one: set MEMSTATE_DATA_DIR to a new folder.",
                ProblemCode.CONFLICT,
            )
        given = envsecret("MEMSTATE_SECRET_KEY")
        key_file = data_folder() / SECRET
        before = private_file_read(key_file)
        if given is None:
            # The key comes first. If restoring the database then fails, the store is empty, so the key does no harm.
            private_file_replace(key_file, secret)
        try:
            program_run(
                *("psql", "-q", "-o", "/dev/null", "-v", "ON_ERROR_STOP=1", "--single-transaction"),
                *("-f", str(folder / DUMP)),
            )
        except BaseException:
            if given is None and before is not None:
                private_file_replace(key_file, before)
            raise
        if given is not None and given != secret:
            self.stderr.write(
                "MEMSTATE_SECRET_KEY differs from the secret key of the backup: receipts of purges cannot be verified "
                "with it."
            )
        self.stdout.write(
            f"Restored {folder}. Start the store with `manage.py up`; keys and passwords are those of the backup."
        )
