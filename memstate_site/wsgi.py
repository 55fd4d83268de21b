"""The web application, as gunicorn loads it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.core.wsgi import get_wsgi_application

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstate_site.settings")
# The settings depend on this variable: the threads of a web process share connections, and slow statements end early.
os.environ.setdefault("MEMSTATE_PROCESS", "web")

_django = get_wsgi_application()


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request. Refuses HTTP/1.1 requests without a Host header (RFC 9112, section 3.2). Django would assume
    the name of the server, and whitenoise would serve static files."""
    if environ.get("SERVER_PROTOCOL") == "HTTP/1.1" and not environ.get("HTTP_HOST"):
        start_response("400 Bad Request", [("Content-Type", "text/plain"), ("Content-Length", "0")])
        return []
    return _django(environ, start_response)
