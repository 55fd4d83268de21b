"""manage.py ingest FILE.jsonl: ingests a file like POST /v1/ingest/batch, with a progress bar. If it was stopped, it
continues."""

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
from memory.management.store_command import CommandRefused, StoreCommand, command_refused

# Small enough to lose little when the command is stopped, large enough to keep the embedder busy.
LINES_PER_BATCH = 200


class Command(StoreCommand):
    """Ingests in batches. The idempotency key of a batch is a hash of the file up to the end of the batch, so a batch
    that was written before a kill is not written twice."""

    help = "Ingest a file of JSON Lines, one item as for POST /v1/ingest on each line."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the file and the scope of its topics."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--scope", default="/", help="scope of items that name none; nothing is written outside it")
        parser.add_argument("--defer", action="store_true", help="leave the embedding to the worker")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ingest the file and print the refused lines. The exit status is 1 if there are any."""
        path: Path = options["file"]
        try:
            scope = scope_normalize(options["scope"])
            with path.open("rb") as file:
                accepted, refused = self._ingest(file, scope=scope, defer=options["defer"])
        except OSError as problem:
            raise CommandRefused(
                f"{path} cannot be read: {problem.strerror}.", ProblemCode.FILE_UNREADABLE
            ) from problem
        except MemoryProblem as problem:
            raise command_refused(problem) from problem
        self.stdout.write(f"{accepted} items are in the store.")
        if refused:
            # The key includes the lines before the batch, so that a changed file is another file.
            raise CommandRefused(
                f"{refused} items were refused, each for the reason given above. Put them, corrected, into a file of "
                "their own: this one, once it is changed, would be written again from the change on.",
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
                # The hash covers the file up to here, so that the same lines at another place are another batch.
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
        """Return (number, item or problem) of each line that is not blank."""
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
