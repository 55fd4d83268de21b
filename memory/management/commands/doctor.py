"""manage.py doctor: runs the health checks and prints their results."""

from __future__ import annotations

import sys
from typing import Any

from django.utils import timezone

from memory.health import ALL_CHECKS, cluster_check, health_findings
from memory.management.store_command import StoreCommand
from memory.stores.citus import cluster_is


class Command(StoreCommand):
    help = "Says in sentences what is healthy and what is not; the exit status is 1 if something is not."

    def handle(self, *args: Any, **options: Any) -> None:
        findings = health_findings(ALL_CHECKS, now=timezone.now())
        if findings["database"].ok and cluster_is():
            findings |= health_findings({"cluster": cluster_check}, now=timezone.now())
        for name, finding in findings.items():
            mark = self.style.SUCCESS("ok ") if finding.ok else self.style.ERROR("bad")
            self.stdout.write(f"{mark}  {name:<14} {finding.sentence}")
        bad = [name for name, finding in findings.items() if not finding.ok]
        if bad:
            self.stdout.write(f"Not healthy: {', '.join(bad)}.")
            sys.exit(1)
        self.stdout.write("Everything is healthy.")
