"""``manage.py client``: write the generated part of the Python client, or check that it fits the routes."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memory.api.app import api
from memory.domain.problem_codes import ProblemCode
from memory.management.client_text import client_text
from memory.management.refused import CommandRefused

PLACE = Path("memory") / "client.py"


class Command(BaseCommand):
    help = "Writes the types and methods of the API into memory/client.py."
    # Checks would ask for a database, and this needs none.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare ``--check``."""
        parser.add_argument(
            "--check", action="store_true", help="Write nothing; exit with 1 unless the client fits the routes."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write or compare."""
        file = Path(settings.BASE_DIR) / PLACE
        module = file.read_text(encoding="utf-8")
        text = client_text(api.get_openapi_schema(path_prefix="/v1/"), module)
        if not options["check"]:
            file.write_text(text, encoding="utf-8")
            self.stdout.write(f"Wrote {PLACE}.")
        elif module != text:
            raise CommandRefused(
                f"{PLACE} differs from the routes; run `python manage.py client` and commit it.",
                ProblemCode.GENERATED_FILE_OUTDATED,
            )
        else:
            self.stdout.write(f"{PLACE} fits the routes.")
