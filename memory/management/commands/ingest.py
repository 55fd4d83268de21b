"""manage.py ingest FILE.jsonl: ingests a file of JSON Lines, as POST /v1/ingest/batch does, and shows a progress bar.
After an interruption, the same command continues."""

import codecs
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access.principal import Principal
from memory.api.problems import problem_status
from memory.core.errors import MemoryProblem
from memory.core.json_limits import json_guarded
from memory.core.problem_codes import URN_PREFIX, ProblemCode
from memory.core.scopes import scope_normalize
from memory.ingest.batch import batch_ingest
from memory.jobs.tasks import upkeep_request
from memory.management.store_command import CommandRefused, StoreCommand

# Small enough to lose little when the command is stopped, large enough to keep the embedder busy.
LINES_PER_BATCH = 200


class Command(StoreCommand):
    """Ingests in batches. The idempotency key of a batch is a hash of the file up to the end of the batch, so that a
    repeated command does not write a batch twice."""

    help = "Ingest a file of JSON Lines, one item as for POST /v1/ingest on each line."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--scope", default="/", help="The scope of items without a scope. Items outside it are refused."
        )
        parser.add_argument("--defer", action="store_true", help="Let the worker compute the embeddings later.")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ingest the file and print the refused lines. The exit status is 1 if there are any."""
        path: Path = options["file"]
        try:
            scope = scope_normalize(options["scope"])
            with path.open("rb") as file:
                accepted, refused = self._ingest(file, scope=scope, defer=options["defer"])
        except OSError as problem:
            raise CommandRefused(f"{path} cannot be read: {problem.strerror}.", ProblemCode.INVALID_FILE) from problem
        self.stdout.write(f"{accepted} items were stored.")
        if refused:
            # The idempotency key of a batch is computed from all lines up to its end. A changed line therefore changes
            # the keys of its batch and of all later batches.
            raise CommandRefused(
                f"{refused} items were refused, each for the reason given above. Put the corrected items "
                "into another file. If you change this file and ingest it again, everything after the first change is "
                "stored twice.",
                ProblemCode.ITEMS_REFUSED,
            )

    def _ingest(self, file: IO[bytes], *, scope: str, defer: bool) -> tuple[int, int]:
        principal = Principal(identity=f"terminal:{scope}", actor="terminal", role="operator", scope=scope)
        accepted = refused = 0
        digest = hashlib.sha256()
        size = os.fstat(file.fileno()).st_size
        with tqdm(total=size, unit="B", unit_scale=True, desc="Ingesting", dynamic_ncols=True) as bar:
            for first, lines in _batches(file):
                numbers, items = self._parse(first, lines)
                # The hash covers the file up to here, so that the same lines at another place are a different batch.
                digest.update(b"".join(lines))
                _status, reply = batch_ingest(
                    items,
                    status_of=problem_status,
                    idempotency_key=f"file:{digest.hexdigest()}",
                    principal=principal,
                    now=timezone.now(),
                    defer=defer,
                    on_deferred=upkeep_request,
                )
                accepted += reply["accepted"]
                refused += reply["refused"]
                for result in reply["results"]:
                    if "detail" in result:
                        code = str(result.get("type", "")).removeprefix(URN_PREFIX)
                        tqdm.write(f"Line {numbers[result['index']]}: {result['detail']} [{code}]")
                bar.update(sum(map(len, lines)))
        return accepted, refused

    def _parse(self, first: int, lines: list[bytes]) -> tuple[list[int], list[object]]:
        numbers: list[int] = []
        items: list[object] = []
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                continue
            numbers.append(number)
            try:
                items.append(json_guarded(line, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH))
            except MemoryProblem as problem:
                items.append(problem)
        return numbers, items


def _batches(file: IO[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    first, lines = 1, []
    for number, line in enumerate(file, start=1):
        # Some editors write a byte order mark before the first line.
        lines.append(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)
        if len(lines) == LINES_PER_BATCH:
            yield first, lines
            first, lines = number + 1, []
    if lines:
        yield first, lines
