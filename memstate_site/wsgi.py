"""The web application, as gunicorn loads it."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstate_site.settings")
# Settings read this: a web process shares connections between its threads and ends slow statements early.
os.environ.setdefault("MEMSTATE_PROCESS", "web")

application = get_wsgi_application()
