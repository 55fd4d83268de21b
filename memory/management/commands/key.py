"""manage.py key: creates, lists and revokes API keys at the terminal."""

import datetime as dt
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access.keys import key_create, key_revoke, secret_generate
from memory.access.principal import ROLES
from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused, StoreCommand, VerbCommand
from memory.models import ApiKey
from memory.stores.keys import keys_of_installation


class Command(VerbCommand, StoreCommand):
    """API keys at the terminal. A secret is shown only once."""

    help = "Make, list and revoke API keys."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="Create a key and show its secret once.")
        create.add_argument("name")
        create.add_argument("--role", choices=ROLES, default="agent")
        create.add_argument(
            "--scope", default="/", help="The key can read and write only this scope and those below it."
        )
        create.add_argument("--may-forget", action="store_true", help="Allow an agent to release topics of its scope.")
        create.add_argument(
            "--installation",
            action="store_true",
            help="Let each request name its store by the header X-MemState-Store.",
        )
        create.add_argument("--days", type=int, help="The time until the key expires (default: never).")
        verbs.add_parser("list", help="List all keys.")
        revoke = verbs.add_parser("revoke", help="Revoke a key permanently.")
        revoke.add_argument("prefix", help="The first characters of the key, as in the list.")
        revoke.add_argument("--reason", default="")

    def _create(self, options: dict[str, Any]) -> None:
        days = options["days"]
        if days is not None and not 1 <= days <= 36_500:
            raise CommandRefused("--days must lie between 1 and 36500.", ProblemCode.INVALID_MEMBER)
        secret = secret_generate()
        expires = timezone.now() + dt.timedelta(days=days) if days else None
        key = key_create(
            name=options["name"],
            role=options["role"],
            scope=options["scope"],
            secret=secret,
            expires_at=expires,
            actor="terminal",
            may_forget=options["may_forget"],
            installation=options["installation"],
        )
        self.stdout.write(f"{key.role} key {key.name!r} for {key.scope}, shown only once:\n{secret}")

    def _list(self, _options: dict[str, Any]) -> None:
        of_installation = keys_of_installation()
        for key in ApiKey.objects.order_by("created_at"):
            state = "revoked" if key.revoked_at else "expired" if key.is_expired(timezone.now()) else "valid"
            used = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never used"
            name = key.name + (", may forget" if key.may_forget else "")
            name += ", for all stores" if key.secret_hash in of_installation else ""
            self.stdout.write(f"{key.prefix:<10} {key.role:<9} {state:<8} {key.scope:<20} {used:<22} {name}")

    def _revoke(self, options: dict[str, Any]) -> None:
        key = key_revoke(options["prefix"], actor="terminal", reason=options["reason"], now=timezone.now())
        self.stdout.write(f"{key.name!r} is revoked.")
