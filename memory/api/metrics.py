"""Metrics for /metrics: requests, stages of queries, the worker's backlog, and the numbers of the store."""

import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping

from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memory.embedding.allowance import allowance_begin, allowance_end
from memory.insight.regret import regret_recent
from memory.insight.topic_counts import topic_counts
from memory.stores.current import store_current

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

REQUESTS = Counter("memstate_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram("memstate_request_seconds", "Time to answer a request.", ["method", "route"], buckets=_BUCKETS)
STAGES = Histogram("memstate_query_stage_seconds", "Time of each stage of a query.", ["stage"], buckets=_BUCKETS)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"

_WAITING = ("unfolded_accesses", "topics_without_vector", "wake_ups", "studies")
# The age of a job counts from the time at which it was due. A running job is locked until a later time.
_BACKLOG_SQL = """
SELECT (SELECT count(*) FROM memory_accesslog WHERE folded_at IS NULL),
       (SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL),
       (SELECT count(*) FROM memory_wakeup),
       (SELECT count(*) FROM memory_studyjob WHERE status = 'working'),
       (SELECT count(*) FROM memory_forgetrun WHERE status = 'held'),
       (SELECT coalesce(extract(epoch FROM now() - min(lock)), 0) FROM django_q_ormq WHERE lock <= now())
"""
# The shortest time between two counts of a whole table, however often the metrics are scraped.
STORE_SECONDS = 300.0
_STORE_KEY = "metrics-store-"


class RequestMetrics:
    """Middleware that counts and times every request by its route. URLs are not labels, because they contain ids."""

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
        # A client may send any method. A label for each would let clients exhaust the memory.
        method = request.method if request.method in _METHODS and response.status_code != 405 else "other"
        spent = time.perf_counter() - started
        SECONDS.labels(method, route).observe(spent)
        # Added to the stages of a route: the total time in the server.
        stages = [response["Server-Timing"]] if response.has_header("Server-Timing") else []
        response["Server-Timing"] = ", ".join([*stages, f"total;dur={spent * 1000:.2f}"])
        REQUESTS.labels(method, route, str(response.status_code)).inc()
        return response


def _client_gone(request: HttpRequest) -> bool:
    """Return whether the client has closed its connection; False if the web server does not provide the connection.

    A client that sends nothing more may still wait for the reply. TCP shows the difference only after the server has
    sent something. So the server sends the interim reply, which every client of HTTP/1.1 ignores. If the client is
    gone, the connection is reset, and the next call returns True.
    """
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
    """Count what each stage of a query took."""
    for stage, spent in milliseconds.items():
        STAGES.labels(stage).observe(spent / 1000)


def _gauge(name: str, what: str, label: str, values: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(name, what, labels=[label])
    for value, count in values.items():
        gauge.add_metric([value], count)
    return gauge


class _Store(Collector):
    """Counts rows of the store when the metrics are scraped, because these numbers belong to no process."""

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering needs no database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return the backlog and the numbers of the store; nothing if the database is unavailable.

        Runs one query over partial indexes and the queue, and every ``STORE_SECONDS`` two that read whole tables.
        """
        try:
            with connection.cursor() as cursor:
                cursor.execute(_BACKLOG_SQL)
                *waiting, held, age = cursor.fetchone()
            rungs, archivings = self._counted()
        except DatabaseError:
            return
        backlog = dict(zip(_WAITING, waiting, strict=True))
        yield _gauge("memstate_backlog", "Rows that wait for the worker, by type.", "what", backlog)
        yield GaugeMetricFamily("memstate_runs_held", "Forget runs that wait for approval.", held)
        yield GaugeMetricFamily("memstate_queue_age_seconds", "How long the oldest due job waits.", float(age))
        yield _gauge("memstate_topics", "Topics by rung, and released ones.", "rung", rungs)
        yield _gauge("memstate_archivings", "Archivings by runs in 30 days, and those regretted.", "what", archivings)

    def _counted(self) -> tuple[dict[str, int], dict[str, int]]:
        found: tuple[dict[str, int], dict[str, int]] | None = cache.get(_STORE_KEY + store_current())
        if found is None:
            standing, (archived, regretted) = topic_counts(), regret_recent(now=timezone.now())
            found = {**standing.rungs, "released": standing.released}, {"archived": archived, "regretted": regretted}
            cache.set(_STORE_KEY + store_current(), found, STORE_SECONDS)
        return found


REGISTRY.register(_Store())
