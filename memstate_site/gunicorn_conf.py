"""How gunicorn serves MemState, under `manage.py up` and standalone.

Standalone: `gunicorn -c python:memstate_site.gunicorn_conf memstate_site.wsgi` with DATABASE_URL set.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from memstate_site.env import envint, envstr
from memstate_site.logs import LOG_FORMATS, LOG_LEVELS, logging_settings
from memstate_site.processes import dies_with_parent

# The supervisor opens the address and passes the socket to gunicorn. During a restart, requests therefore wait instead
# of being refused, and no other process can take the address.
_listening = envint("MEMSTATE_LISTEN_FD", -1)
_host = envstr("MEMSTATE_API_HOST", "127.0.0.1")
bind = (
    f"fd://{_listening}"
    if _listening >= 0
    else f"{f'[{_host}]' if ':' in _host else _host}:{envint('MEMSTATE_API_PORT', 8765)}"
)

# One process with threads, so that the embedding model is in memory once and the threads share database connections.
worker_class = "memstate_site.web_worker.PatientWorker"
workers = envint("MEMSTATE_WEB_WORKERS", 1, minimum=1, maximum=64)
threads = envint("MEMSTATE_WEB_THREADS", 16, minimum=1, maximum=256)
# The URL of a policy draft contains the whole draft with its rules, so that it can be shared.
limit_request_line = 8190
# Connections are kept open for a while, because agents send many small requests.
keepalive = 75
timeout = 60
graceful_timeout = 5
# The heartbeat file is written often, so it is in memory where possible.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - gunicorn makes a private file in it
# The control socket is disabled, because nothing uses it and its path is the same for all installations of a user.
control_socket_disable = True
logconfig_dict = logging_settings(
    style=envstr("MEMSTATE_LOG_FORMAT", "console", choices=LOG_FORMATS),
    level=envstr("MEMSTATE_LOG_LEVEL", "INFO", choices=LOG_LEVELS),
)
accesslog = None


def post_fork(_server: Any, worker: Any) -> None:
    """Make the worker end when its master ends. Otherwise, the worker would keep the port and answer with old code."""
    ask = dies_with_parent(signal.SIGKILL, parent=worker.ppid)
    if ask is not None:
        ask()


def post_worker_init(_worker: Any) -> None:
    """Load the embedding model, so that the first request need not wait for it, and start to watch the worker. Called
    after the fork."""
    from memory.embedding import embedder_get
    from memory.jobs.watch import web_watch_start

    embedder_get()
    web_watch_start()
