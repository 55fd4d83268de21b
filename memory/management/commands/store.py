"""manage.py store: creates, moves, lists and drops stores, and gives people roles in them."""

import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access.accounts import ROLES
from memory.access.people import person_find, person_grant, person_remove
from memory.access.principal import TERMINAL
from memory.core.problem_codes import ProblemCode
from memory.jobs.stores import (
    store_create,
    store_create_on,
    store_drop,
    store_get,
    store_here,
    store_list_elsewhere,
    store_move,
    stores_list,
)
from memory.management.store_command import CommandRefused, VerbCommand
from memory.stores.citus import cluster_is, stores_nodes
from memory.stores.current import store_use
from memory.stores.versions import version_current


class Command(VerbCommand):
    """Stores at the terminal."""

    help = (
        "Make, move, list and drop stores, and give people roles in them. A store is a separate memory with keys of "
        "its own: make the first one with `manage.py key --in-store NAME create ...`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="Create an empty store.")
        create.add_argument("name", help="1 to 40 characters a-z, 0-9 and _. The first is a letter.")
        create.add_argument("--node", help="The node of a Citus cluster, HOST or HOST:PORT. By default, Citus chooses.")
        create.add_argument(
            "--cluster", default="", help="Only list the store, which is on this other cluster. No tables are created."
        )
        drop = verbs.add_parser("drop", help="Delete a store and all its contents permanently, and print a receipt.")
        drop.add_argument("name")
        drop.add_argument("--confirm", metavar="NAME", help="The name again, to confirm without a question.")
        drop.add_argument("--reason", default="")
        move = verbs.add_parser("move", help="Move a store to another node of a Citus cluster, while it is in use.")
        move.add_argument("name")
        move.add_argument("--to", metavar="NODE", help="HOST or HOST:PORT. The default is the node with the least.")
        move.add_argument("--seconds", type=int, default=3600, help="The time limit. The default is 3600.")
        move.add_argument("--reason", default="")
        verbs.add_parser("list", help="List all stores, on a cluster with their nodes.")
        grant = verbs.add_parser("grant", help="Give a person a role in a store.")
        revoke = verbs.add_parser("revoke", help="Remove the role of a person in a store. The account stays.")
        for each in (grant, revoke):
            each.add_argument("name", help="The store.")
            each.add_argument("user", help="The name of the account.")
            each.add_argument("--reason", default="")
        grant.add_argument("role", choices=ROLES, help="An administrator of main administers the installation.")

    def _create(self, options: dict[str, Any]) -> None:
        if options["cluster"]:
            store = store_list_elsewhere(options["name"], options["cluster"], actor=TERMINAL.actor)
            self.stdout.write(f"Listed the store {store.name} of the cluster {store.cluster}.")
            return
        name, node = options["name"], options["node"]
        store = store_create_on(name, node, actor=TERMINAL.actor) if node else store_create(name, actor=TERMINAL.actor)
        self.stdout.write(f"Created the store {store.name}.")

    def _move(self, options: dict[str, Any]) -> None:
        with tqdm(unit="B", unit_scale=True, desc="copied", disable=None) as bar:

            def progress(done: int, total: int) -> None:
                bar.total = total
                bar.update(max(0, done - bar.n))

            node = store_move(
                options["name"],
                to=options["to"],
                seconds=options["seconds"],
                actor=TERMINAL.actor,
                reason=options["reason"],
                progress=progress,
            )
        self.stdout.write(f"The store {options['name']} is on {node} now.")

    def _drop(self, options: dict[str, Any]) -> None:
        name = options["name"]
        what = "from the list" if store_get(name).cluster else "with all its memories and keys"
        self.stderr.write(f"This removes the store {name} {what}. This cannot be undone.")
        if (options["confirm"] or input(f"Type {name} to go on: ")) != name:
            raise CommandRefused("The name was not typed; nothing was done.", ProblemCode.INVALID_MEMBER)
        receipt = store_drop(name, actor=TERMINAL.actor, reason=options["reason"])
        self.stdout.write(json.dumps(receipt, indent=2))

    def _list(self, _options: dict[str, Any]) -> None:
        nodes = stores_nodes() if cluster_is() else None
        for store in stores_list():
            if store.cluster:
                state = f"on the cluster {store.cluster}"
            else:
                state = "ready" if store.version == version_current() else "behind: run `python manage.py migrate`"
            if nodes is not None:
                state = f"{', '.join(map(str, nodes.get(store.name, []))) or 'on no node':<30} {state}"
            self.stdout.write(f"{store.name:<40} {store.created_at:%Y-%m-%d} {state}")

    def _grant(self, options: dict[str, Any]) -> None:
        with store_use(store_here(options["name"]).name):
            by: dict[str, Any] = {"reason": options["reason"], "principal": TERMINAL, "now": timezone.now()}
            person = person_grant(options["user"], role=options["role"], **by)
        self.stdout.write(f"{person.name} now has the role {person.role} in the store {options['name']}.")

    def _revoke(self, options: dict[str, Any]) -> None:
        with store_use(store_here(options["name"]).name):
            found = person_find(options["user"])
            person_remove(found.id, reason=options["reason"], principal=TERMINAL, now=timezone.now())
        self.stdout.write(f"{found.name} has no role in the store {options['name']} any more.")
