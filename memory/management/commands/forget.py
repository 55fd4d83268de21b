"""manage.py forget: runs of forgetting at the terminal, by default as a dry run."""

import datetime as dt
import sys
import time
import uuid
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access.principal import TERMINAL
from memory.core.durations import duration_parse
from memory.core.rules import EVENTS
from memory.core.scopes import ROOT, scope_normalize
from memory.forgetting.apply import run_step
from memory.forgetting.pause import pause_lift, pause_start, pauses_active
from memory.forgetting.plan import run_plan
from memory.forgetting.refusals import run_refuse
from memory.forgetting.run_list import ActionFilter, RunFilter, run_actions, runs_list
from memory.forgetting.runs import run_begin, run_get, run_undo
from memory.management.store_command import StoreCommand
from memory.models import ForgetRun
from memory.policy.effective import policies_current


class Command(StoreCommand):
    """Plans, applies, lists and undoes runs of forgetting, and pauses forgetting. The output of a run or a pause states
    how to undo it."""

    help = "Plan a forget run and show it; with --apply, make it. Apply, approve and undo runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "scope", nargs="?", default=ROOT, help="The scope; scopes below it are included (default /)."
        )
        parser.add_argument(
            "--event",
            choices=EVENTS,
            default="manual",
            help="The event that the run responds to (default manual, which ignores the soft limit).",
        )
        parser.add_argument("--apply", action="store_true", help="Apply the run. Without this option, it is a dry run.")
        parser.add_argument("--show", type=int, default=20, metavar="N", help="The number of topics to list.")
        named = parser.add_mutually_exclusive_group()
        named.add_argument("--runs", action="store_true", help="List the latest runs.")
        named.add_argument("--apply-plan", type=uuid.UUID, metavar="RUN", help="Apply the plan of this dry run.")
        named.add_argument("--approve", type=uuid.UUID, metavar="RUN", help="Approve this held run.")
        named.add_argument("--refuse", type=uuid.UUID, metavar="RUN", help="Refuse this held run.")
        named.add_argument("--undo", type=uuid.UUID, metavar="RUN", help="Undo this run.")
        named.add_argument("--pause", action="store_true", help="Pause all forgetting in the scope.")
        named.add_argument("--resume", action="store_true", help="End the pause of the scope.")
        named.add_argument("--pauses", action="store_true", help="List the current pauses.")
        parser.add_argument(
            "--for",
            dest="duration",
            metavar="TIME",
            help="The length of the pause, such as 12h or 7d (default: until --resume).",
        )
        parser.add_argument(
            "--roll-back",
            action="store_true",
            help="With --refuse: also roll back the policies that are new since the previous run.",
        )
        parser.add_argument("--reason", default="", help="The reason, for the journal.")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["runs"]:
            self._list(scope_normalize(options["scope"]), options["show"])
        elif options["undo"]:
            self._undo(options["undo"], options["reason"])
        elif options["apply_plan"] or options["approve"]:
            self._begin(options)
        elif options["refuse"]:
            self._refuse(options)
        elif options["pause"] or options["resume"]:
            self._pause(options)
        elif options["pauses"]:
            self._pauses(scope_normalize(options["scope"]))
        else:
            self._plan(options)

    def _pause(self, options: dict[str, Any]) -> None:
        scope, reason, now = scope_normalize(options["scope"]), options["reason"], timezone.now()
        if options["resume"]:
            pause_lift(scope, reason=reason, principal=TERMINAL, now=now)
            self.stdout.write(f"Forgetting in {scope} is no longer paused.")
            return
        until = now + dt.timedelta(seconds=duration_parse(options["duration"])) if options["duration"] else None
        pause_start(scope, reason=reason, until=until, principal=TERMINAL, now=now)
        self.stdout.write(f"Forgetting is paused in {scope}. To end the pause: manage.py forget {scope} --resume")

    def _pauses(self, scope: str) -> None:
        for pause in pauses_active(timezone.now(), scope):
            until = f" until {pause.until:%Y-%m-%d %H:%M} UTC" if pause.until else ""
            self.stdout.write(f"{pause.scope}: paused by {pause.actor}{until}. Reason: {pause.reason}")

    def _plan(self, options: dict[str, Any]) -> None:
        now = timezone.now()
        run = run_plan(
            scope_normalize(options["scope"]),
            event=options["event"],
            dry_run=not options["apply"],
            actor=TERMINAL.actor,
            policies=policies_current(),
            judged_at=now,
            now=now,
        )
        if run.status == ForgetRun.Status.APPLYING:
            run = self._work(run)
        self._report(run, options["show"])

    def _begin(self, options: dict[str, Any]) -> None:
        arguments: dict[str, Any] = {"principal": TERMINAL, "reason": options["reason"], "now": timezone.now()}
        # ``seconds=0`` applies nothing yet, so that the progress bar begins at 0.
        run_id, status = options["apply_plan"], ForgetRun.Status.PLANNED
        if not run_id:
            run_id, status = options["approve"], ForgetRun.Status.HELD
        run = run_begin(run_id, status, **arguments, seconds=0.0)
        self._report(self._work(run), options["show"])

    def _refuse(self, options: dict[str, Any]) -> None:
        run = run_refuse(
            options["refuse"],
            principal=TERMINAL,
            reason=options["reason"],
            now=timezone.now(),
            roll_back=options["roll_back"],
        )
        self.stdout.write(f"Run {run.id} over {run.scope} was refused. No memory was changed.")

    def _work(self, run: ForgetRun) -> ForgetRun:
        with tqdm(total=run.planned, initial=run.applied + run.skipped, unit="topic", file=sys.stderr) as bar:
            while run_step(run.id, now=timezone.now()):
                run = run_get(run.id, principal=TERMINAL)
                bar.update(run.applied + run.skipped - bar.n)
        run = run_get(run.id, principal=TERMINAL)
        while run.status == ForgetRun.Status.APPLYING:
            # A worker has taken the last batch and will end the run soon.
            time.sleep(0.05)
            run = run_get(run.id, principal=TERMINAL)
        return run

    def _report(self, run: ForgetRun, show: int) -> None:
        if run.gate:
            self.stdout.write(run.gate)
        counts = ", ".join(f"{count:,} {name}" for name, count in run.counts.items() if count)
        would = "would be " if counts and run.status in (ForgetRun.Status.PLANNED, ForgetRun.Status.HELD) else ""
        self.stdout.write(f"Run {run.id} over {run.scope} is {run.status}: {would}{counts or 'nothing is due'}.")
        page = (
            run_actions(run.id, ActionFilter(), principal=TERMINAL, cursor=None, limit=max(1, show)) if show else None
        )
        actions, more = page or ([], None)
        for action in actions:
            why = action["why"].get("rule") or f"{action['why'].get('threshold')} {action['why'].get('theta')}"
            self.stdout.write(f"  {action['action']:<11} {action['score']:.4f}  {action['title'][:60]}  ({why})")
        if more:
            self.stdout.write(f"  and {run.planned - len(actions):,} more; --show lists more of them")
        if run.skipped:
            self.stdout.write(f"{run.skipped:,} were skipped, because they changed after the plan.")
        if run.left_over:
            self.stdout.write(f"{run.left_over:,} more are due, but a run plans at most max_topics_for_forget_scan.")
        if run.status == ForgetRun.Status.HELD:
            self.stdout.write(f"{run.held_because} To approve it: manage.py forget --approve {run.id}")
            self.stdout.write(f"To refuse it: manage.py forget --refuse {run.id}")
        elif run.status == ForgetRun.Status.PLANNED and run.planned:
            self.stdout.write(f"Nothing was changed. To apply this plan: manage.py forget --apply-plan {run.id}")
        elif run.applied:
            self.stdout.write(f"To undo it: manage.py forget --undo {run.id}")

    def _undo(self, run_id: uuid.UUID, reason: str) -> None:
        undone = run_undo(run_id, principal=TERMINAL, reason=reason, now=timezone.now())
        self.stdout.write(f"{undone.restored:,} topics were restored to their state before run {run_id}.")
        for topic_id, why in undone.conflicts[:20]:
            self.stdout.write(f"  {topic_id} was not restored. {why}")
        if undone.conflict_count > 20:
            self.stdout.write(f"  and {undone.conflict_count - 20:,} more")

    def _list(self, scope: str, show: int) -> None:
        runs, _more = runs_list(RunFilter(scope), cursor=None, limit=max(1, show))
        for run in runs:
            counts = ", ".join(f"{count:,} {name}" for name, count in run.counts.items() if count) or "nothing"
            self.stdout.write(
                f"{run.created_at:%Y-%m-%d %H:%M}  {run.status:<8} {run.event:<15} {run.scope:<20} "
                f"version {run.policy_version:<4} {counts}  {run.id}"
            )
