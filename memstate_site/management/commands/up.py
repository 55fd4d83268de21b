"""`manage.py up`: starts and supervises everything that MemState needs."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = (
        "Starts the database, the web server and the job cluster, restarts what dies, "
        "and stops everything in order on Ctrl-C or SIGTERM."
    )
    # manage.py runs this command without Django. The processes that it starts run the checks.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        from memstate_site.supervisor import run

        sys.exit(run())
