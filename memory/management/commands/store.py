"""manage.py store: make, list and drop stores."""

import json
from typing import Any

from django.core.management.base import CommandParser

from memory.core.problem_codes import ProblemCode
from memory.jobs.stores import store_create, store_drop, store_get, stores_list
from memory.management.store_command import CommandRefused, VerbCommand
from memory.stores.migrate import version_current


class Command(VerbCommand):
    """Stores at the terminal."""

    help = (
        "Make, list and drop stores. A store is a separate memory with keys of its own: make the first one with "
        "`manage.py key --in-store NAME create ...`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add one subcommand per verb."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make an empty store")
        create.add_argument("name", help="1 to 40 characters a-z, 0-9 and _, beginning with a letter")
        drop = verbs.add_parser("drop", help="remove a store with everything in it, for good; prints a receipt")
        drop.add_argument("name")
        drop.add_argument("--confirm", metavar="NAME", help="the name once more, instead of typing it")
        drop.add_argument("--reason", default="")
        verbs.add_parser("list", help="list all stores")

    def _create(self, options: dict[str, Any]) -> None:
        store = store_create(options["name"], actor="terminal")
        self.stdout.write(f"Created the store {store.name}.")

    def _drop(self, options: dict[str, Any]) -> None:
        name = options["name"]
        store_get(name)
        self.stderr.write(f"This removes the store {name} with all its memories and keys. This cannot be undone.")
        if (options["confirm"] or input(f"Type {name} to go on: ")) != name:
            raise CommandRefused("The name was not typed; nothing was done.", ProblemCode.INVALID_ARGUMENT)
        receipt = store_drop(name, actor="terminal", reason=options["reason"])
        self.stdout.write(json.dumps(receipt, indent=2))

    def _list(self, _options: dict[str, Any]) -> None:
        for store in stores_list():
            state = "ready" if store.version == version_current() else "behind: run `python manage.py migrate`"
            self.stdout.write(f"{store.name:<40} {store.created_at:%Y-%m-%d} {state}")
