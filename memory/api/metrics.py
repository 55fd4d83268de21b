"""Metrics for /metrics: requests, stages of queries, the worker's backlog."""

import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memory.embedding.allowance import allowance_begin, allowance_end

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

REQUESTS = Counter("memstate_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram("memstate_request_seconds", "Time to answer a request.", ["method", "route"], buckets=_BUCKETS)
STAGES = Histogram("memstate_query_stage_seconds", "Time of each stage of a query.", ["stage"], buckets=_BUCKETS)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"

_WAITING = ("unfolded_accesses", "topics_without_vector", "wake_ups", "studies")
_BACKLOG_SQL = """
SELECT (SELECT count(*) FROM memory_accesslog WHERE folded_at IS NULL),
       (SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL),
       (SELECT count(*) FROM memory_wakeup),
       (SELECT count(*) FROM memory_studyjob WHERE status = 'working')
"""


class RequestMetrics:
    """Middleware that counts and times every request by its route; URLs contain ids, so they are not labels."""

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
        # A client may send any method; a label for each, or for each method that a route refuses, would let clients
        # exhaust the memory.
        method = request.method if request.method in _METHODS and response.status_code != 405 else "other"
        spent = time.perf_counter() - started
        SECONDS.labels(method, route).observe(spent)
        # Added to the stages of a route: the total time in the server.
        stages = [response["Server-Timing"]] if response.has_header("Server-Timing") else []
        response["Server-Timing"] = ", ".join([*stages, f"total;dur={spent * 1000:.2f}"])
        REQUESTS.labels(method, route, str(response.status_code)).inc()
        return response


def _client_gone(request: HttpRequest) -> bool:
    """Return whether the client has closed its connection; no, where the web server does not show it.

    A client that sends no more may still wait for the reply, and TCP tells the two apart only by an answer to something
    sent. So it is sent the interim reply that every client of HTTP/1.1 ignores; one that is gone resets the connection,
    which the next call sees.
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


class _Backlog(Collector):
    """Counts the backlog at each scrape, because it is a number of the store and not of a process."""

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering needs no database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Count the worker's backlog. One query over partial indexes; nothing if the database is unavailable."""
        try:
            with connection.cursor() as cursor:
                cursor.execute(_BACKLOG_SQL)
                row = cursor.fetchone()
        except DatabaseError:
            return
        gauge = GaugeMetricFamily("memstate_backlog", "Rows that wait for the worker, by type.", labels=["what"])
        for what, count in zip(_WAITING, row, strict=True):
            gauge.add_metric([what], count)
        yield gauge


REGISTRY.register(_Backlog())
