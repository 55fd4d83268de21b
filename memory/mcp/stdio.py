"""MCP over stdin and stdout: one client with one key, until the client closes the pipe."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from django.db import connections
from mcp.server.stdio import stdio_server

from memory.access.keys import key_authenticate
from memory.access.limits import request_count
from memory.access.principal import Principal
from memory.core.callbacks import Clock
from memory.mcp.server import Work, server_make

T = TypeVar("T")
# The largest number of concurrent requests; further requests wait.
THREADS = 8


def stdio_serve(secret: str, *, clock: Clock) -> None:
    """Serve until stdin ends, with the permissions of the key ``secret``. For each request, the key is checked again
    and the request is counted."""

    async def serve() -> None:
        server = server_make(_work_make(secret, clock=clock), clock=clock)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def _work_make(secret: str, *, clock: Clock) -> Work:
    limiter = anyio.CapacityLimiter(THREADS)

    async def work(function: Callable[[Principal], T], /) -> T:
        def run() -> T:
            try:
                now = clock()
                principal = key_authenticate(secret, now=now)
                request_count(principal, now=now)
                return function(principal)
            finally:
                # Close the connections, because a client may be idle for hours, and threads end.
                connections.close_all()

        # A cancelled request counts towards the limit until its thread has ended, so that a client cannot exceed it.
        return await anyio.to_thread.run_sync(run, limiter=limiter)

    return work
