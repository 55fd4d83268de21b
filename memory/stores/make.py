"""Creating, listing and finding stores."""

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.stores.current import MAIN, NAME_PATTERN, store_schema, store_use
from memory.stores.migrate import version_current
from memory.stores.models import Store
from memory.stores.template import store_statements


def store_create(name: str) -> Store:
    """Create an empty store with the tables of ``main``, in one transaction. Three queries and some 200
    statements: a third of a second.

    Raises ``ValueRefused`` for an invalid name, ``Conflict`` if the name is taken or ``main`` has older tables than
    this release.
    """
    if NAME_PATTERN.fullmatch(name) is None:
        raise ValueRefused(
            "The name of a store has 1 to 40 characters a-z, 0-9 and _, and begins with a letter.",
            code=ProblemCode.INVALID_STORE_NAME,
        )
    with transaction.atomic(), connection.cursor() as cursor:
        if store_get(MAIN).version != version_current():
            raise Conflict("Run `python manage.py migrate` first.", code=ProblemCode.STORE_BEHIND)
        try:
            store = Store.objects.create(name=name, version=version_current(), created_at=timezone.now())
        except IntegrityError as problem:
            raise Conflict(f"There is a store {name} already.", code=ProblemCode.STORE_EXISTS) from problem
        with store_use(MAIN):
            statements = store_statements(cursor)
        with store_use(name):
            cursor.execute(f"CREATE SCHEMA {store_schema(name)}")
            for statement in statements:
                cursor.execute(statement)
    return store


def stores_list() -> list[Store]:
    """Return all stores, the oldest first. One query."""
    return list(Store.objects.order_by("created_at", "name"))


def store_get(name: str) -> Store:
    """Return a store. One query. Raises ``NotVisible``."""
    store = Store.objects.filter(pk=name).first()
    if store is None:
        raise NotVisible(f"There is no store {name}.", code=ProblemCode.STORE_NOT_FOUND)
    return store
