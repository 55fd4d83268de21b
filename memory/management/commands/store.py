"""manage.py store: make and list stores."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from memory.core.errors import MemoryProblem
from memory.management.store_command import command_refused
from memory.policy.schedules import cron_schedules_sync
from memory.stores.current import store_use
from memory.stores.make import store_create, stores_list
from memory.stores.migrate import version_current


class Command(BaseCommand):
    """Stores at the terminal."""

    requires_system_checks = ()
    help = (
        "Make and list stores. A store is a separate memory with keys of its own: make the first one with "
        "`manage.py key --store NAME create ...`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add one subcommand per verb."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make an empty store")
        create.add_argument("name", help="1 to 40 characters a-z, 0-9 and _, beginning with a letter")
        verbs.add_parser("list", help="list all stores")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the verb."""
        try:
            getattr(self, f"_{options['verb']}")(options)
        except MemoryProblem as problem:
            raise command_refused(problem) from problem

    def _create(self, options: dict[str, Any]) -> None:
        store = store_create(options["name"])
        with store_use(store.name):
            cron_schedules_sync(now=timezone.now())
        self.stdout.write(f"Created the store {store.name}.")

    def _list(self, _options: dict[str, Any]) -> None:
        for store in stores_list():
            state = "ready" if store.version == version_current() else "behind: run `python manage.py migrate`"
            self.stdout.write(f"{store.name:<40} {store.created_at:%Y-%m-%d} {state}")
