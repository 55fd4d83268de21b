"""manage.py openapi: writes the OpenAPI document to docs/openapi.json, or checks the existing file."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memory.api.app import api
from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused

DOCUMENT = Path("docs") / "openapi.json"


class Command(BaseCommand):
    help = "Writes the OpenAPI document of the API to docs/openapi.json."
    # System checks need a database, but this command does not.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="Write nothing; exit with 1 unless the committed file is up to date."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        # Sorted, so that a small change of the API gives a small difference.
        schema = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/v1/")))
        text = json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        file = Path(settings.BASE_DIR) / DOCUMENT
        if not options["check"]:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            raise CommandRefused(
                f"{DOCUMENT} differs from the routes; run `python manage.py openapi` and commit it.",
                ProblemCode.GENERATED_FILE_OUTDATED,
            )
