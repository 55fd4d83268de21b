"""manage.py doctor: runs the health checks and prints their results."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from memory.health import ALL_CHECKS, health_findings


class Command(BaseCommand):
    help = "Says in sentences what is healthy and what is not; the exit status is 1 if something is not."
    # The command must work even if Django's checks fail.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        findings = health_findings(ALL_CHECKS, now=timezone.now())
        for name, finding in findings.items():
            mark = self.style.SUCCESS("ok ") if finding.ok else self.style.ERROR("bad")
            self.stdout.write(f"{mark}  {name:<14} {finding.sentence}")
        bad = [name for name, finding in findings.items() if not finding.ok]
        if bad:
            self.stdout.write(f"Not healthy: {', '.join(bad)}.")
            sys.exit(1)
        self.stdout.write("Everything is healthy.")
