"""manage.py extract FILE: extracts the same facts from a file as POST /v1/extract, with a progress bar."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access.principal import Principal
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.extraction.dropped_text import dropped_words
from memory.extraction.replies import ExtractReply
from memory.extraction.request import extract
from memory.jobs.tasks import upkeep_request
from memory.management.store_command import CommandRefused, StoreCommand


class Command(StoreCommand):
    """Prints the facts of a text, one per line. With ``--store``, the new facts are stored."""

    help = "Extract facts from a text file; --store remembers those that are not known yet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="A UTF-8 text file.")
        parser.add_argument(
            "--scope",
            default="/",
            help="The scope in which facts are stored and compared with existing ones (default /).",
        )
        parser.add_argument("--kind", help="The kind of the new topics (default fact).")
        parser.add_argument("--store", action="store_true", help="Store the facts that are new.")

    def handle(self, *_args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            content = path.read_text(encoding="utf-8-sig")
            scope = scope_normalize(options["scope"])
            found = self._extract(content, scope=scope, kind=options["kind"], store=options["store"])
        except OSError as problem:
            raise CommandRefused(f"{path} cannot be read: {problem.strerror}.", ProblemCode.INVALID_FILE) from problem
        except UnicodeDecodeError as problem:
            raise CommandRefused(f"{path} is not UTF-8 text.", ProblemCode.INVALID_FILE) from problem
        for fact in found["extracted"]:
            self.stdout.write(fact)
        for line in _summary_lines(found):
            self.stderr.write(line)

    def _extract(self, content: str, *, scope: str, kind: str | None, store: bool) -> ExtractReply:
        principal = Principal(identity=f"terminal:{scope}", actor="terminal", role="operator", scope=scope)
        with tqdm(unit=" parts", desc="Extracting", dynamic_ncols=True) as bar:

            def tick(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            found = extract(
                content.replace("\x00", " "),
                scope=scope,
                kind=kind,
                store=store,
                principal=principal,
                now=timezone.now(),
                tick=tick,
            )
        if found["stored"]:
            upkeep_request()
        return found


def _summary_lines(found: ExtractReply) -> list[str]:
    facts, known, stored = len(found["extracted"]), len(found["skipped_duplicates"]), len(found["stored"])
    left_out = dropped_words(found["dropped"])
    lines = [
        f"{facts} facts, {known} of them known, {stored} stored.",
        f"Left out: {left_out}." if left_out else "",
        found["warning"] or "",
        found["note"],
    ]
    return [line for line in lines if line]
