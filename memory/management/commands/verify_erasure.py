"""manage.py verify_erasure: proves that what was purged is gone."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from tqdm import tqdm

from memory.core.problem_codes import ProblemCode
from memory.erasure.verify import MOST_TOLD, Trace, Verdict, erasure_verify, rows_expected
from memory.management.refused import CommandRefused


class Command(BaseCommand):
    """Exits with 1 if anything is left, or if a receipt is not as it was written."""

    help = (
        "Verify the chain of receipts, and look in every table of the database for what they say was erased: ids, "
        "texts, identifiers. Tells where something is, never what it says."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare ``--quiet``."""
        parser.add_argument("--quiet", action="store_true", help="Say nothing unless something is wrong.")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Read everything and say what was found."""
        began = time.monotonic()
        with tqdm(total=rows_expected(), unit="row", desc="Reading", disable=options["quiet"] or None) as bar:

            def progress(table: str, rows: int) -> None:
                bar.set_postfix_str(table, refresh=False)
                bar.update(rows)

            verdict = erasure_verify(progress=progress)
        self._tell(verdict, quiet=options["quiet"], seconds=time.monotonic() - began)
        if not verdict.ok:
            raise CommandRefused(self._conclusion(verdict), ProblemCode.ERASURE_NOT_PROVEN)

    def _tell(self, verdict: Verdict, *, quiet: bool, seconds: float) -> None:
        for sentence in verdict.chain.sentences:
            self.stderr.write(sentence)
        self._list(verdict.traces, self.stderr)
        if verdict.unread:
            self.stderr.write(f"Not read, as the account of the store may not: {', '.join(verdict.unread)}.")
        if quiet:
            return
        if verdict.again:
            self.stdout.write(f"Stored again since: {len(verdict.again):,}. These were written after the purge:")
            self._list(verdict.again, self.stdout)
        if verdict.addresses:
            self.stdout.write(
                f"In names of scopes, keys and accounts: {len(verdict.addresses):,}. These are not memory; rename them "
                "if they should go too:"
            )
            self._list(verdict.addresses, self.stdout)
        self.stdout.write(
            f"Read {verdict.rows:,} rows of {verdict.tables} tables in {seconds:.1f} seconds, against "
            f"{verdict.chain.count:,} {'receipt' if verdict.chain.count == 1 else 'receipts'}."
        )
        if verdict.ok:
            self.stdout.write("The chain of receipts is whole, and nothing is left of what was erased.")

    def _list(self, traces: list[Trace], out: Any) -> None:
        for trace in traces:
            out.write(f"  {trace.sentence()}")
        if len(traces) == MOST_TOLD:
            out.write(f"  ... and perhaps more: only {MOST_TOLD:,} are told.")

    def _conclusion(self, verdict: Verdict) -> str:
        if verdict.traces:
            count = len(verdict.traces)
            return f"{count:,} {'trace is' if count == 1 else 'traces are'} left of what was erased."
        if not verdict.ours:
            return "The receipts were made with another secret key, so texts and identifiers cannot be looked for."
        return f"The chain of receipts is broken at receipt {verdict.chain.broken_at}."
