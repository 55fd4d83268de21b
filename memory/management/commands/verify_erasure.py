"""manage.py verify_erasure: verifies that no purged text is left."""

import time
from argparse import ArgumentParser
from typing import Any

from tqdm import tqdm

from memory.core.problem_codes import ProblemCode
from memory.erasure.verify import MAX_LISTED, Trace, VerificationReport, erasure_verify, rows_expected
from memory.management.store_command import CommandRefused, StoreCommand


class Command(StoreCommand):
    """Exits with 1 if a trace is left, if a receipt was changed or made with another secret key, or if a node was not
    searched."""

    help = (
        "Verify the chain of receipts, and search every table of the database for what they say was erased: ids, "
        "texts, identifiers. Reports where something is, never its content."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--quiet", action="store_true", help="Print only what is wrong.")

    def handle(self, *_args: Any, **options: Any) -> None:
        began = time.monotonic()
        with tqdm(total=rows_expected(), unit="row", desc="Reading", disable=options["quiet"] or None) as bar:

            def progress(table: str, rows: int) -> None:
                bar.set_postfix_str(table, refresh=False)
                bar.update(rows)

            report = erasure_verify(progress=progress)
        self._print(report, quiet=options["quiet"], seconds=time.monotonic() - began)
        if not report.ok:
            raise CommandRefused(self._conclusion(report), ProblemCode.ERASURE_NOT_PROVEN)

    def _print(self, report: VerificationReport, *, quiet: bool, seconds: float) -> None:
        for sentence in report.chain.sentences:
            self.stderr.write(sentence)
        self._list(report.traces, self.stderr)
        if report.unreadable:
            self.stderr.write(f"Not read for lack of permission: {', '.join(report.unreadable)}.")
        if report.nodes_away:
            self.stderr.write(f"The statistics on these nodes were not searched: {', '.join(report.nodes_away)}.")
        if quiet:
            return
        if report.stored_again:
            self.stdout.write(f"Stored again since: {len(report.stored_again):,}. These were written after the purge:")
            self._list(report.stored_again, self.stdout)
        if report.addresses:
            self.stdout.write(
                f"In names of scopes, keys and accounts: {len(report.addresses):,}. These are not memories; "
                "rename them if they should go too:"
            )
            self._list(report.addresses, self.stdout)
        self.stdout.write(
            f"Read {report.rows:,} rows of {report.tables} tables in {seconds:.1f} seconds, against "
            f"{report.chain.count:,} {'receipt' if report.chain.count == 1 else 'receipts'}."
        )
        if report.ok:
            self.stdout.write("The chain of receipts is complete, and no erased content was found.")

    def _list(self, traces: list[Trace], out: Any) -> None:
        for trace in traces:
            out.write(f"  {trace.sentence()}")
        if len(traces) == MAX_LISTED:
            out.write(f"  ... and perhaps more: only {MAX_LISTED:,} are listed.")

    def _conclusion(self, report: VerificationReport) -> str:
        if report.traces:
            count = len(report.traces)
            return f"{count:,} {'trace is' if count == 1 else 'traces are'} left of what was erased."
        if not report.ours:
            return "The receipts were made with another secret key, so texts and identifiers cannot be searched."
        if report.chain.ok:
            return "Some nodes of the cluster could not be searched, so nothing is proven. Try again when they answer."
        return f"The chain of receipts is broken at receipt {report.chain.broken_at}."
