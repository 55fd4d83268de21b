"""Metrics for /metrics: requests, stages of queries, the worker's backlog, and row counts of the store."""

import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.core.cache import cache
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memory.embedding.allowance import allowance_begin, allowance_end
from memory.explain.regret import regret_recent_by_store
from memory.explain.topic_counts import topic_counts_by_store
from memory.models.statements import rows_by_store
from memory.stores.current import MAIN
from memory.stores.metrics import MAX_STORES, WORKED_WITHIN, per_store, store_label
from memory.stores.pending import stores_at_work
from memory.stores.queue import queued_by_store

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

REQUESTS = per_store(Counter("memstate_requests", "Requests answered.", ["store", "method", "route", "status"]))
SECONDS = per_store(
    Histogram("memstate_request_seconds", "Time to answer a request.", ["store", "method", "route"], buckets=_BUCKETS)
)
STAGES = per_store(
    Histogram("memstate_query_stage_seconds", "Time of each stage of a query.", ["store", "stage"], buckets=_BUCKETS)
)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"

_WAITING = ("unfolded_accesses", "topics_without_vector", "outdated_documents", "wake_ups", "studies")
_BACKLOG_SQL = """
SELECT (SELECT count(*) FROM memory_accesslog WHERE folded_at IS NULL),
       (SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL),
       (SELECT count(*) FROM memory_topicdocument WHERE outdated),
       (SELECT count(*) FROM memory_wakeup),
       (SELECT count(*) FROM memory_studyjob WHERE status = 'working'),
       (SELECT count(*) FROM memory_forgetrun WHERE status = 'held')
"""
# Seconds between two counts of whole tables, however often the metrics are scraped.
STORE_SECONDS = 300.0
_TABLES_KEY = "metrics-tables"

# The keys are pairs of a store and a further label; the values are counts.
_Counts = dict[tuple[str, str], int]


class RequestMetrics:
    """Middleware that counts and times every request by its store and route. It runs inside ``StoreMiddleware``, so
    that the store is still known after the request. URLs are not labels, because they contain ids."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request and count it."""
        started = time.perf_counter()
        allowance_begin(lambda: _client_gone(request))
        try:
            response = self._get_response(request)
        finally:
            allowance_end()
        route = request.resolver_match.route if request.resolver_match else "unknown"
        # A client may send any method. A label for each method would let clients exhaust the memory.
        method = request.method if request.method in _METHODS and response.status_code != 405 else "other"
        spent = time.perf_counter() - started
        store = store_label()
        SECONDS.labels(store, method, route).observe(spent)
        # The header has the times of the stages, if the route has stages, and then the total time in the server.
        stages = [response["Server-Timing"]] if response.has_header("Server-Timing") else []
        response["Server-Timing"] = ", ".join([*stages, f"total;dur={spent * 1000:.2f}"])
        REQUESTS.labels(store, method, route, str(response.status_code)).inc()
        return response


def _client_gone(request: HttpRequest) -> bool:
    """Return whether the client has closed its connection. A client that has closed only its sending side still waits
    for the reply. TCP shows the difference only after the server has sent something, so the server sends an interim
    reply. Every client of HTTP/1.1 ignores it."""
    connected = request.META.get("gunicorn.socket")
    if connected is None:
        return False
    try:
        waiting = select.poll()
        waiting.register(connected, select.POLLIN)
        events = dict(waiting.poll(0)).get(connected.fileno(), 0)
        if events & (select.POLLHUP | select.POLLERR):
            return True
        if events and connected.recv(1, socket.MSG_PEEK) == b"":
            if request.META.get("SERVER_PROTOCOL") != "HTTP/1.1":
                return True
            connected.send(_INTERIM, socket.MSG_DONTWAIT)
    except OSError:
        return True
    return False


def stages_observe(milliseconds: Mapping[str, float]) -> None:
    """Record the time of each stage of a query."""
    for stage, spent in milliseconds.items():
        STAGES.labels(store_label(), stage).observe(spent / 1000)


def _gauge(name: str, what: str, labels: Sequence[str], values: Mapping[Any, float]) -> Metric:
    gauge = GaugeMetricFamily(name, what, labels=labels)
    for value, count in values.items():
        gauge.add_metric(value, count)
    return gauge


class _Stores(Collector):
    """Counts rows of stores when the metrics are scraped, because no single process knows these numbers."""

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering needs no database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return the backlog and the row counts of the stores, or nothing if the database is unavailable. Three queries
        for any number of stores. Every ``STORE_SECONDS`` seconds, it runs two further queries, which read whole tables.
        """
        now = timezone.now()
        try:
            names = stores_at_work(now=now, within=WORKED_WITHIN, most=MAX_STORES)
            rows = rows_by_store(_BACKLOG_SQL, names)
            ages = {MAIN: 0.0} | {
                name: (now - queued.oldest).total_seconds() for name, queued in queued_by_store(now=now).items()
            }
            rungs, archivings = self._tables_counted(names)
        except DatabaseError:
            return
        backlog = {(row[0], what): count for row in rows for what, count in zip(_WAITING, row[1:-1], strict=True)}
        held = {(row[0],): row[-1] for row in rows}
        yield _gauge("memstate_backlog", "Rows that wait for the worker, by type.", ["store", "what"], backlog)
        yield _gauge("memstate_runs_held", "Forget runs that wait for approval.", ["store"], held)
        queue = {(name,): age for name, age in ages.items()}
        yield _gauge("memstate_queue_age_seconds", "How long the oldest due job waits.", ["store"], queue)
        yield _gauge("memstate_topics", "Topics by rung, and released ones.", ["store", "rung"], rungs)
        what = "Topics archived by runs in 30 days; those regretted."
        yield _gauge("memstate_archivings", what, ["store", "what"], archivings)

    def _tables_counted(self, names: Sequence[str]) -> tuple[_Counts, _Counts]:
        """Return the number of topics by store and rung, and the number of archivings by store and outcome."""
        found: tuple[_Counts, _Counts] | None = cache.get(_TABLES_KEY)
        if found is None:
            rungs: _Counts = {}
            archivings: _Counts = {}
            for name, counts in topic_counts_by_store(names).items():
                rungs |= {(name, rung): count for rung, count in counts.rungs.items()}
                rungs[name, "released"] = counts.released
            for name, (archived, regretted) in regret_recent_by_store(names, now=timezone.now()).items():
                archivings |= {(name, "archived"): archived, (name, "regretted"): regretted}
            found = rungs, archivings
            cache.set(_TABLES_KEY, found, STORE_SECONDS)
        return found


REGISTRY.register(_Stores())
