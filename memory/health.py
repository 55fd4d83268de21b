"""Health checks for `manage.py doctor`, /readyz and the console. Each check returns a ``Finding`` with a sentence."""

from __future__ import annotations

import datetime as dt
import functools
import time
from collections.abc import Callable
from typing import NamedTuple

from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Min, QuerySet
from django.db.models.fields.json import KT
from django_q.models import Failure

from memory.core.errors import MemoryProblem
from memory.core.scopes import ROOT
from memory.embedding import embedder_get
from memory.embedding.status import embedder_summary
from memory.llm.client import model_summary
from memory.llm.status import model_reach, model_reach_lately
from memory.models import AccessLog, AuditEvent, ForgetRun, Topic, TopicVector, WakeUp
from memory.models.identities import ids_doubled
from memory.policy.draft import draft_check
from memory.policy.effective import policies_current
from memory.stores.citus import cluster_faults
from memory.stores.current import MAIN, store_current
from memory.stores.models import Store, WorkerHeartbeat
from memory.stores.queue import failures_by_store, queued_by_store, queued_here, tasks_here
from memory.stores.replica import replica_is_set, replica_lag
from memory.stores.versions import stores_behind

# In earlier versions, an index scan with a filter could silently return too few rows.
PGVECTOR_AT_LEAST = (0, 8, 4)
# The worker reports every minute, but a busy queue may delay the report.
HEARTBEAT_WITHIN = dt.timedelta(minutes=3)
# After its own start, a web process waits this long for the first report of the worker.
STARTING_SECONDS = 60.0
_LOADED = time.monotonic()
# The check of a backlog fails if its oldest entry waits longer than this.
BACKLOG_WITHIN = dt.timedelta(minutes=10)
FAILURES_WITHIN = dt.timedelta(days=1)
# How long ``health_watch`` caches the success of a check that reads a whole table.
LOOKED_AT_WITHIN = dt.timedelta(minutes=10)
# How long ``health_watch`` caches the result of a check of an embedder on another machine.
ELSEWHERE_WITHIN = dt.timedelta(minutes=2)


class Finding(NamedTuple):
    """The result of one check."""

    ok: bool
    sentence: str


Check = Callable[[dt.datetime], Finding]


def settings_check(_now: dt.datetime) -> Finding:
    """Check that every ``MEMSTATE_`` variable of this process is a known setting. No query."""
    unknown = settings.MEMSTATE_UNKNOWN_VARIABLES
    return Finding(not unknown, " ".join(unknown) or "No unknown MEMSTATE_ variable is set.")


def database_check(_now: dt.datetime) -> Finding:
    """Check that the database answers, and measure the time. One query."""
    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version')")
        (version,) = cursor.fetchone()
    milliseconds = (time.perf_counter() - started) * 1000
    return Finding(True, f"PostgreSQL {version.split()[0]} answers within {milliseconds:.1f} ms.")


def pgvector_check(_now: dt.datetime) -> Finding:
    """Check that the vector extension is installed and new enough. One query."""
    wanted = ".".join(map(str, PGVECTOR_AT_LEAST))
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return Finding(False, "The extension pgvector is missing; run `python manage.py migrate`.")
    if tuple(int(part) for part in row[0].split(".")[:3]) < PGVECTOR_AT_LEAST:
        return Finding(
            False, f"pgvector is {row[0]}, but {wanted} is needed: install it and run `ALTER EXTENSION vector UPDATE`."
        )
    return Finding(True, f"pgvector {row[0]} is at least {wanted}.")


def migrations_check(_now: dt.datetime) -> Finding:
    """Check that all migrations of this release are applied to the shared tables and to ``main``. Two queries."""
    applied = MigrationRecorder(connection).applied_migrations()
    missing = [f"{app}.{name}" for app, name in sorted(_migrations() - applied.keys())]
    if not missing and MAIN in stores_behind():
        return Finding(False, "The tables of main are of another release; run `python manage.py migrate`.")
    if missing:
        named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        return Finding(
            False, f"{_count(len(missing), 'migration')} not applied ({named}); run `python manage.py migrate`."
        )
    return Finding(True, "All migrations are applied.")


def stores_check(now: dt.datetime) -> Finding:
    """Check that every store other than ``main`` has the tables of this release, and that its jobs neither failed
    recently nor wait too long. Runs only in ``main``, because only ``main`` may see other stores. At most four
    queries."""
    if store_current() != MAIN:
        return Finding(True, "The other stores are checked in main.")
    others = Store.objects.filter(cluster="").exclude(pk=MAIN).count()
    if not others:
        return Finding(True, "There is no other store than main.")
    behind = stores_behind()
    late = [name for name, queued in queued_by_store(now=now).items() if now - queued.oldest > BACKLOG_WITHIN]
    # Retried jobs count too, because each store records retries in a journal of its own.
    failed = failures_by_store(since=now - FAILURES_WITHIN)
    problems = [
        f"{what} {', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''}."
        for what, found in (
            ("Run `python manage.py migrate` for the tables of", behind),
            ("Jobs wait for more than ten minutes in", [] if _starting() else late),
            ("Jobs failed in the last 24 hours in", failed),
        )
        # The other checks are about main.
        if (names := set(found) - {MAIN})
    ]
    return Finding(not problems, " ".join(problems) or f"All is well in {_number(others, 'other store')}.")


def replica_check(_now: dt.datetime) -> Finding:
    """Check that the replica answers and follows the primary. One query on the replica."""
    lag, most = replica_lag(), settings.MEMSTATE_REPLICA_MAX_LAG
    return Finding(
        lag <= most, f"The replica is {lag:.1f} s behind. It answers reads while it is at most {most:g} s behind."
    )


def cluster_check(_now: dt.datetime) -> Finding:
    """Check the nodes of a Citus cluster. About six queries, three of which run on every node."""
    faults = cluster_faults()
    return Finding(not faults, " ".join(faults) or "The nodes of the cluster agree, and moves have left nothing.")


def worker_check(now: dt.datetime) -> Finding:
    """Check that a worker has run a scheduled job recently. One query.

    A web process starts together with the worker. Therefore a worker without a recent heartbeat counts as starting for
    the first ``STARTING_SECONDS``.
    """
    heartbeat = WorkerHeartbeat.objects.order_by("-seen_at").first()
    if _starting() and (heartbeat is None or now - heartbeat.seen_at > HEARTBEAT_WITHIN):
        return Finding(True, "The worker is starting.")
    if heartbeat is None:
        return Finding(
            False, "No worker has ever reported; start `python manage.py up` or `python manage.py qcluster`."
        )
    age = now - heartbeat.seen_at
    if age > HEARTBEAT_WITHIN:
        return Finding(
            False, f"The worker last reported {_ago(age)}; start `python manage.py up` or `python manage.py qcluster`."
        )
    return Finding(True, f"The worker reported {_ago(age)}.")


def worker_problem(now: dt.datetime, *, waits: bool) -> str | None:
    """Return what is wrong with the worker as a sentence, or None. If ``waits`` is false, no job needs the worker and
    the result is None. At most one query."""
    worker = worker_check(now) if waits else None
    return None if worker is None or worker.ok else worker.sentence


def embedder_check(_now: dt.datetime) -> Finding:
    """Check that the embedder returns vectors that fit the table. One query, and one short text is embedded."""
    try:
        embedder = embedder_get()
        started = time.perf_counter()
        shape = embedder.embed_passages(["Is anybody there?"]).shape
        milliseconds = (time.perf_counter() - started) * 1000
    except (ImproperlyConfigured, MemoryProblem) as problem:
        return Finding(False, f"The embedder does not work: {problem}")
    wanted = settings.MEMSTATE_EMBEDDING_DIMENSION
    if shape != (1, wanted):
        return Finding(
            False, f"The embedder {embedder.model_name} makes vectors of {shape[-1]} numbers instead of {wanted}."
        )
    column = vector_column_dimension()
    if column is not None and column != wanted:
        return Finding(
            False,
            f"The database holds vectors of {column} numbers, but {embedder.model_name} makes {wanted}; "
            "run `python manage.py reembed`.",
        )
    return Finding(
        True, f"The embedder {embedder.model_name} makes vectors of {wanted} numbers in {milliseconds:.0f} ms."
    )


def vectors_check(_now: dt.datetime) -> Finding:
    """Check that all vectors come from the model in use, because search ignores others. Reads the whole vector
    table."""
    model = embedder_get().model_name
    others = TopicVector.objects.filter(embedding__isnull=False).exclude(model=model).count()
    if others:
        return Finding(
            False,
            f"{_count(others, 'vector')} made by another model than {model} and not found by meaning; "
            "run `python manage.py reembed`.",
        )
    return Finding(True, f"All vectors were made by {model}.")


def ids_check(_now: dt.datetime) -> Finding:
    """Check that ids are unique, and that no purge has masked the id of a run in the journal. Reads all topics and the
    whole journal."""
    with connection.cursor() as cursor:
        topics, entries = ids_doubled(cursor)
    if topics:
        return Finding(
            False,
            f"{_number(topics, 'topic')} {'has' if topics == 1 else 'have'} an id that is also the id of something "
            "else, such as a run; purge them and store them again under another id.",
        )
    if entries:
        return Finding(
            False,
            f"In {entries:,} of the entries of the journal, the id of the run was masked by a purge. They are shown "
            "without their run.",
        )
    return Finding(True, "No id is used twice.")


def reinforcement_check(now: dt.datetime) -> Finding:
    """Check that retrievals are applied to salience. Two queries on the index of pending rows."""
    waiting = AccessLog.objects.filter(folded_at__isnull=True)
    return _backlog(
        now,
        waiting.count(),
        waiting.aggregate(oldest=Min("at"))["oldest"],
        "retrieval",
        "to be counted as reinforcement",
    )


def embedding_backlog_check(now: dt.datetime) -> Finding:
    """Check that topics get their vectors. Two queries on the index of pending rows."""
    waiting = TopicVector.objects.filter(embedding__isnull=True)
    oldest = Topic.objects.filter(pk__in=waiting.values("pk")).aggregate(oldest=Min("updated_at"))["oldest"]
    return _backlog(now, waiting.count(), oldest, "topic", "for a vector")


def reasoner_check(now: dt.datetime) -> Finding:
    """Check that the worker processes the events that may start forget runs. Two queries on a small table."""
    count, oldest = WakeUp.objects.count(), WakeUp.objects.aggregate(oldest=Min("first_at"))["oldest"]
    return _backlog(now, count, oldest, "event", "to be processed")


def runs_check(now: dt.datetime) -> Finding:
    """Check that no forget run failed recently, and mention held runs. Two queries."""
    since = now - FAILURES_WITHIN
    failed = ForgetRun.objects.filter(status=ForgetRun.Status.FAILED, finished_at__gte=since, applied__gt=0).count()
    held = ForgetRun.objects.filter(status=ForgetRun.Status.HELD).count()
    waiting = f" {_number(held, 'run')} {'waits' if held == 1 else 'wait'} for approval." if held else ""
    if failed:
        return Finding(
            False,
            f"{_number(failed, 'forget run')} failed in the last 24 hours. See the page Runs in the console for the "
            f"reason.{waiting}",
        )
    return Finding(True, f"No forget run failed in the last 24 hours.{waiting}")


def policies_check(_now: dt.datetime) -> Finding:
    """Check that the policies do not contradict the environment, which may have changed since a policy was saved."""
    policies = policies_current()
    try:
        draft_check(policies, ROOT)
    except MemoryProblem as problem:
        return Finding(False, problem.sentence)
    if policies.rekeying:
        # A scope is named once, even if its policy has several changes.
        scopes = ", ".join(list(dict.fromkeys(policies.rekeying))[:3])
        return Finding(True, f"A new half-life or clock is being applied to the topics of {scopes}.")
    count = len(policies.policies)
    return Finding(
        True, "No policy is set; the defaults are in force." if not count else f"Policies in force: {count}."
    )


def queue_check(now: dt.datetime) -> Finding:
    """Check that jobs of the store are taken from the queue. Two queries on a small table."""
    # The lock of a running job is in the future. The lock of a due job is the time at which it became due.
    due = queued_here().filter(lock__lte=now)
    return _backlog(now, due.count(), due.aggregate(oldest=Min("lock"))["oldest"], "job", "in the queue")


def failure_check(now: dt.datetime) -> Finding:
    """Check that no job of the store failed recently without a retry. One query."""
    failed = failures_open(since=now - FAILURES_WITHIN)
    failures = list(failed.order_by("-stopped").values_list("func", flat=True))
    if failures:
        names = ", ".join(sorted(set(map(str, failures)))[:3])
        return Finding(
            False,
            f"{_number(len(failures), 'job')} failed in the last 24 hours ({names}). See the page Jobs in "
            "the console for the reason.",
        )
    return Finding(True, "No job failed in the last 24 hours without a retry.")


def model_check(_now: dt.datetime) -> Finding:
    """If a language model is configured, check that it answers. One small request without texts."""
    return Finding(*model_reach())


# The checks of /readyz. If one of them fails, no request can succeed.
READY_CHECKS: dict[str, Check] = {"database": database_check, "migrations": migrations_check}

# Each check comes after the checks on which it depends.
ALL_CHECKS: dict[str, Check] = {
    "database": database_check,
    "pgvector": pgvector_check,
    "migrations": migrations_check,
    "embedder": embedder_check,
    "vectors": vectors_check,
    "ids": ids_check,
    "model": model_check,
    "worker": worker_check,
    "queue": queue_check,
    "reinforcement": reinforcement_check,
    "policies": policies_check,
    "reasoner": reasoner_check,
    "runs": runs_check,
    "embeddings": embedding_backlog_check,
    "failures": failure_check,
    "stores": stores_check,
    "settings": settings_check,
    **({"replica": replica_check} if replica_is_set() else {}),
}


def health_findings(checks: dict[str, Check], *, now: dt.datetime) -> dict[str, Finding]:
    """Run the checks in order and return their findings by name. If a check raises an error, its finding says so. After
    an error of the check ``database``, no further check runs."""
    findings: dict[str, Finding] = {}
    for name, check in checks.items():
        try:
            findings[name] = check(now)
        except (DatabaseError, ImproperlyConfigured, MemoryProblem) as problem:
            reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            findings[name] = Finding(False, f"The {name} could not be checked: {reason}")
            if name == "database":
                # All other checks need the database.
                break
    return findings


def health_watch(*, now: dt.datetime) -> dict[str, Finding]:
    """Run all checks for a page that polls every few seconds. About twenty queries on small tables.

    The results of checks that read a whole table or call another machine are cached for a few minutes.
    """
    seldom: dict[str, Check] = {
        "embedder": _embedder_check_seldom,
        "vectors": _vectors_check_seldom,
        "ids": _ids_check_seldom,
    }
    return health_findings({**ALL_CHECKS, **seldom, "model": lambda _now: Finding(*model_reach_lately())}, now=now)


def outside_check() -> Finding:
    """Check whether texts of the store are sent to other machines. No query."""
    embedder, model = embedder_summary(), model_summary()
    sentences = [embedder.sentence] if embedder.address or not embedder.local else []
    if model.configured:
        sentences.append(model.sentence)
    if embedder.local and model.local:
        return Finding(True, " ".join(["Nothing leaves this machine.", *sentences]))
    return Finding(False, " ".join(sentences))


def _embedder_check_seldom(now: dt.datetime) -> Finding:
    embedder = embedder_summary()
    if not embedder.address:
        return embedder_check(now)
    # Cached, because a request to an endpoint takes time and may cost money.
    key = f"health-embedder-{embedder.address}-{embedder.model}".replace(" ", "-")
    found: Finding = cache.get(key) or embedder_check(now)
    cache.add(key, found, ELSEWHERE_WITHIN.total_seconds())
    return found


def _vectors_check_seldom(now: dt.datetime) -> Finding:
    return _seldom(f"health-vectors-{embedder_get().model_name}", vectors_check, now)


def _ids_check_seldom(now: dt.datetime) -> Finding:
    return _seldom("health-ids", ids_check, now)


def _starting() -> bool:
    return settings.MEMSTATE_PROCESS == "web" and time.monotonic() - _LOADED < STARTING_SECONDS


def _seldom(key: str, check: Check, now: dt.datetime) -> Finding:
    key = f"{key}-{store_current()}"
    kept: str | None = cache.get(key)
    if kept is not None:
        return Finding(True, kept)
    found = check(now)
    if found.ok:
        cache.set(key, found.sentence, LOOKED_AT_WITHIN.total_seconds())
    return found


@functools.cache
def _migrations() -> frozenset[tuple[str, str]]:
    """Return all migrations of this release. Cached, because the files do not change while a process runs."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).graph.nodes)


def vector_column_dimension() -> int | None:
    """Return the length of the stored vectors, or None before the first migration. One query."""
    with connection.cursor() as cursor:
        # to_regclass uses the search path, so it finds the table of the present schema.
        cursor.execute(
            "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'embedding'",
            [TopicVector._meta.db_table],
        )
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def _backlog(now: dt.datetime, count: int, oldest: dt.datetime | None, noun: str, why: str) -> Finding:
    if count == 0 or oldest is None:
        return Finding(True, f"No {noun} waits {why}.")
    age = now - oldest
    verb = "waits" if count == 1 else "wait"
    sentence = f"{_number(count, noun)} {verb} {why}, the oldest for {_span(age)}."
    # While the worker starts, entries from before the start are not a problem.
    return Finding(age <= BACKLOG_WITHIN or _starting(), sentence)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _count(count: int, noun: str) -> str:
    return f"{_number(count, noun)} {'was' if count == 1 else 'were'}"


def _ago(age: dt.timedelta) -> str:
    return f"{_span(age)} ago"


def _span(age: dt.timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def failures_open(*, since: dt.datetime) -> QuerySet[Failure]:
    """Return the jobs of the current store that failed at ``since`` or later and were not retried."""
    # The subquery names no column of the jobs, because Citus joins no table of a store with one in ``public``.
    retried = AuditEvent.objects.filter(action="job_retried", at__gte=since, before__has_key="task")
    return tasks_here(Failure).filter(stopped__gte=since).exclude(id__in=retried.values(task=KT("before__task")))
