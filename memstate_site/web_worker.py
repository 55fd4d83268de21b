"""A gunicorn worker that limits how long a slow client can occupy a thread. The main loop waits for all connections,
and reads the head and a short body of each request. A thread reads a longer body, which must arrive at a minimum
rate."""

from __future__ import annotations

import errno
import re
import selectors
import socket
import time
from concurrent import futures
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

# Seconds for a request to arrive after its first byte. A body longer than SHORT_BODY_BYTES has more time. A new
# connection without a request is closed after the same time.
REQUEST_SECONDS = 15.0
SHORT_BODY_BYTES = 64 * 1024
# The most bytes of a head that the main loop reads. gunicorn then checks the number and the length of its lines.
HEAD_BYTES = 64 * 1024
# A longer body must arrive within REQUEST_SECONDS plus its length divided by this rate.
BODY_BYTES_PER_SECOND = 16 * 1024
# Seconds for which a client may stop reading its reply.
SEND_SECONDS = 30.0
# A closing connection stays open this long, so that the client can read the end of the reply (RFC 9112, 9.6).
LINGER_SECONDS = 2.0
LINGER_BYTES = 64 * 1024

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n", re.IGNORECASE)
# Headers that announce a body of unknown length, or a body that follows an interim reply. A thread reads these bodies.
_UNKNOWN = re.compile(rb"\r\n(?:transfer-encoding|expect)[ \t]*:", re.IGNORECASE)
_LIVENESS = re.compile(rb"(?:GET|HEAD) /livez[ ?]")


class Arrival:
    """The received part of a request. If ``closing`` is true, received bytes are discarded and counted in
    ``dropped``."""

    def __init__(self, seconds: float, *, closing: bool = False) -> None:
        self.deadline = time.monotonic() + seconds
        self.closing = closing
        self.received = bytearray()
        self.dropped = 0

    def complete(self) -> bool:
        """Return whether a thread can work on the request without waiting, except for a long body."""
        head = self._head()
        if not head:
            return len(self.received) > HEAD_BYTES
        length = _LENGTH.search(head)
        if length is None or _UNKNOWN.search(head) or int(length[1]) > SHORT_BODY_BYTES:
            return True
        return len(self.received) - len(head) >= int(length[1])

    def asks_for_liveness(self) -> bool:
        """Return whether the request is for `/livez` and has no body for which its thread would have to wait."""
        head = self._head()
        return bool(_LIVENESS.match(head)) and not _LENGTH.search(head) and not _UNKNOWN.search(head)

    def _head(self) -> bytes:
        """Return the head of the request with the empty line after it, or nothing before this line has arrived."""
        end = self.received.find(b"\r\n\r\n")
        return b"" if end < 0 else bytes(self.received[: end + 4])


class PacedSocket:
    """The socket from which a thread reads a request. If the client is too slow, reads fail with "connection reset"."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._limit: float | None = None
        self._began: float | None = None
        self._received = 0

    def gettimeout(self) -> float | None:
        """Return the longest wait of one read, in seconds."""
        return self._limit

    def settimeout(self, seconds: float | None) -> None:
        """Limit the time of one read. gunicorn sets it for the unread rest of a body."""
        self._limit = seconds

    def recv(self, size: int) -> bytes:
        """Return the available bytes. Raises ``ConnectionResetError`` when the client is too slow."""
        now = time.monotonic()
        # The time starts with the first read, because the application may be busy before it.
        self._began = now if self._began is None else self._began
        left = self._began + REQUEST_SECONDS + self._received / BODY_BYTES_PER_SECOND - now
        limits = [min(left, REQUEST_SECONDS), *([] if self._limit is None else [self._limit])]
        try:
            if min(limits) <= 0:
                raise TimeoutError
            self._socket.settimeout(min(limits))
            piece = self._socket.recv(size)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "The client sends too slowly.") from None
        finally:
            self._socket.settimeout(SEND_SECONDS)
        self._received += len(piece)
        return piece


class PatientWorker(ThreadWorker):  # type: ignore[misc] # gunicorn has no types
    """The worker that the module describes. Methods without an underscore override those of gunicorn's worker."""

    def init_process(self) -> None:
        self.liveness = futures.ThreadPoolExecutor(max_workers=1)
        super().init_process()

    def enqueue_req(self, conn: TConn) -> None:
        """Read the available bytes and pass a complete request to a thread. Called in the main loop when the connection
        may have data."""
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
            return
        arrival = getattr(conn, "arrival", None)
        if arrival is None:
            arrival = conn.arrival = Arrival(REQUEST_SECONDS)
            if conn.initialized:
                arrival.received += conn.parser.unreader.take_buffered()
        open_still = self._receive(conn, arrival)
        if not open_still:
            self._drop(conn)
        elif arrival.closing or not arrival.complete():
            self._wait(conn)
        else:
            conn.data_ready = True
            pool = self.liveness if arrival.asks_for_liveness() else self.tpool
            done = pool.submit(self.handle, conn)
            done.add_done_callback(lambda result: self.method_queue.defer(self.finish_request, conn, result))

    def handle(self, conn: TConn) -> Any:
        """Answer one request. Runs in a thread."""
        arrival = getattr(conn, "arrival", None)
        if arrival is not None:
            conn.arrival = None
            conn.init()
            conn.parser.unreader.sock = PacedSocket(conn.sock)
            conn.parser.unreader.unread(bytes(arrival.received))
        return super().handle(conn)

    def handle_request(self, req: Any, conn: TConn) -> Any:
        """Answer a request whose head was read. Runs in a thread."""
        conn.sock.settimeout(SEND_SECONDS)
        return super().handle_request(req, conn)

    def finish_request(self, conn: TConn, fs: futures.Future[Any]) -> None:
        """Keep the connection or close it. Called in the main loop."""
        if not self.cfg.is_ssl and (fs.cancelled() or fs.exception() is not None or not fs.result()):
            # gunicorn would wait in the main loop until the client has closed its side.
            self._close_slowly(conn)
        else:
            super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Disconnect clients that are too slow. Called about once a second."""
        if self.cfg.is_ssl:
            super().murder_pending()
            return
        now = time.monotonic()
        for conn in list(self.pending_conns):
            unused = not conn.arrival.received and not conn.arrival.closing
            if now >= conn.arrival.deadline or (unused and not self.alive):
                self.pending_conns.remove(conn)
                self.poller.unregister(conn.sock)
                self._drop(conn)

    def _receive(self, conn: TConn, arrival: Arrival) -> bool:
        """Receive the available bytes without waiting. Return False if the connection has ended."""
        try:
            conn.sock.setblocking(False)
            while arrival.closing or not arrival.complete():
                piece = conn.sock.recv(64 * 1024)
                if not piece:
                    return False
                if arrival.closing:
                    arrival.dropped += len(piece)
                    if arrival.dropped > LINGER_BYTES:
                        return False
                else:
                    arrival.received += piece
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def _wait(self, conn: TConn) -> None:
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _close_slowly(self, conn: TConn) -> None:
        conn.arrival = Arrival(LINGER_SECONDS, closing=True)
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(conn)
        else:
            self.enqueue_req(conn)

    def _drop(self, conn: TConn) -> None:
        self.nr_conns -= 1
        conn.close()
