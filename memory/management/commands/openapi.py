"""manage.py openapi: writes the OpenAPI document and the list of routes to docs/, or checks the existing files."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memory.api.app import api
from memory.api.reference import reference
from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused

DOCUMENT, PAGE = Path("docs") / "openapi.json", Path("docs") / "api.md"
# The text above this line of the page is written by hand.
MARK = "<!-- Below this line: made by manage.py openapi from the routes. -->\n"


def files_made(base: Path) -> dict[Path, str]:
    """Return the text of each file below ``base`` that is generated from the routes.

    The document is sorted, so that a small change of the API gives a small difference.
    """
    schema = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/v1/")))
    page = base / PAGE
    lead = page.read_text(encoding="utf-8").partition(MARK)[0] if page.exists() else ""
    return {
        base / DOCUMENT: json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n",
        page: f"{lead}{MARK}\n{reference(schema)}",
    }


class Command(BaseCommand):
    help = "Writes the OpenAPI document of the API to docs/openapi.json, and its routes to docs/api.md."
    # System checks need a database, but this command does not.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="Write nothing; exit with 1 unless the committed files are up to date."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        for file, text in files_made(Path(settings.BASE_DIR)).items():
            name = file.relative_to(settings.BASE_DIR)
            if not options["check"]:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
                self.stdout.write(f"Wrote {name}.")
            elif not file.exists() or file.read_text(encoding="utf-8") != text:
                raise CommandRefused(
                    f"{name} differs from the routes; run `python manage.py openapi` and commit it.",
                    ProblemCode.GENERATED_FILE_OUTDATED,
                )
            else:
                self.stdout.write(f"{name} is up to date.")
