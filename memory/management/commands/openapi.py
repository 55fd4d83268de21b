"""``manage.py openapi``: write the OpenAPI document into docs/, or check that the one there is up to date."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memory.api.app import api
from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused

PLACE = Path("docs") / "openapi.json"


def openapi_text() -> str:
    """Return the OpenAPI document as it is committed: sorted, so that a change of the API is a small difference."""
    schema = api.get_openapi_schema(path_prefix="/v1/")
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


class Command(BaseCommand):
    help = "Writes the OpenAPI document of the API to docs/openapi.json."
    # Checks would ask for a database, and this needs none.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare ``--check``."""
        parser.add_argument(
            "--check",
            action="store_true",
            help="Write nothing; exit with 1 unless the committed document is up to date.",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write or compare."""
        file = Path(settings.BASE_DIR) / PLACE
        text = openapi_text()
        if not options["check"]:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            self.stdout.write(f"Wrote {PLACE}.")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            raise CommandRefused(
                f"{PLACE} differs from the routes; run `python manage.py openapi` and commit it.",
                ProblemCode.GENERATED_FILE_OUTDATED,
            )
        else:
            self.stdout.write(f"{PLACE} is up to date.")
