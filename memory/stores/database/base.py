"""Django's backend for PostgreSQL: every statement and COPY has the schema of the current store in its ``search_path``.

The path is set for a transaction and never for a session, so that a pooled connection or pgbouncer cannot pass it on to
another request. The path needs no round trip of its own, because it is sent with BEGIN or, outside a transaction, with
the statement. Without a store, the path of the session applies: ``public``, where stores have no tables.

Psycopg calls its private method ``_start_query`` before each statement, to send BEGIN. ``StoreConnection`` overrides
it, so that the path is also set for cursors that Django does not know. ``tests/stores/test_door.py`` fails if psycopg
changes this.
"""

import contextlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg import errors, generators, sql
from psycopg.pq import ExecStatus, TransactionStatus

from memory.stores.current import store_or_none, store_schema, store_use

# The type stubs declare Django's cursors for another driver.
_Cursor: Any = base.Cursor
_ServerSideCursor: Any = base.ServerSideCursor
_SUCCESS = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


def path_set() -> bytes | None:
    """Return the statement that sets the path of the current store for a transaction; None without a store."""
    name = store_or_none()
    return None if name is None else b'SET LOCAL search_path TO "%s", public' % store_schema(name).encode()


class StoreConnection(psycopg.Connection[Any]):
    """A connection whose statements run in the current store."""

    # The path that is set in the running transaction.
    _path: bytes | None = None
    # True while a statement outside a transaction is sent with its path.
    _covered = False

    def path_forget(self) -> None:
        """Set the path again before the next statement, because a savepoint was rolled back."""
        self._path = b""

    def _get_tx_start_command(self) -> bytes:
        self._path = None
        return super()._get_tx_start_command()

    def _start_query(self) -> Generator[Any, Any, None]:
        wanted = path_set()
        status = self.pgconn.transaction_status
        if status == TransactionStatus.INERROR:
            return
        if status == TransactionStatus.IDLE:
            if self._autocommit:
                if wanted is not None and not self._covered:
                    raise psycopg.InterfaceError("A statement on a store needs a transaction or a cursor of Django.")
                return
            begin = self._get_tx_start_command()
            if self._pipeline:
                yield from self._exec_command(begin)
                yield from self._pipeline._sync_gen()
            else:
                yield from self._send(begin if wanted is None else begin + b"; " + wanted)
                self._path = wanted
        if self._path != wanted:
            yield from self._exec_command(wanted or b"SET LOCAL search_path TO public")
            self._path = wanted

    def _send(self, command: bytes) -> Generator[Any, Any, None]:
        """Run several commands in one round trip."""
        self._check_connection_ok()
        self.pgconn.send_query(command)
        for result in (yield from generators.execute(self.pgconn)):
            if result.status not in _SUCCESS:
                raise errors.error_from_result(result, encoding=self.pgconn._encoding)

    def path_needed(self) -> bytes | None:
        """Return the statement that sets the path, or None within a transaction or without a store."""
        if self.autocommit and self.pgconn.transaction_status == TransactionStatus.IDLE:
            return path_set()
        return None

    @contextmanager
    def covered(self) -> Iterator[None]:
        """Allow a statement outside a transaction. The caller sends the path with the statement."""
        self._covered, self._path = True, b""
        try:
            yield
        finally:
            self._covered = False


class StoreCursor(_Cursor):  # type: ignore[misc]
    """Django's cursor. A statement outside a transaction is sent with its path, as one transaction."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> Any:
        """Run a statement. One round trip."""
        connection: StoreConnection = self.connection
        path = connection.path_needed()
        if path is None:
            return super().execute(query, params, **more)
        if isinstance(query, sql.Composable):
            query = sql.SQL(path.decode() + "; ") + query
        else:
            query = path + b"; " + query if isinstance(query, bytes) else f"{path.decode()}; {query}"
        with connection.covered():
            super().execute(query, params, **more)
        # Moves from the result of the path to the result of the query.
        self.nextset()
        return self

    def executemany(self, query: Any, params_seq: Any, **more: Any) -> None:
        """Run a statement once for each element of ``params_seq``, in one transaction."""
        if self.connection.path_needed() is None:
            super().executemany(query, params_seq, **more)
        else:
            with self.connection.transaction():
                super().executemany(query, params_seq, **more)

    @contextmanager
    def copy(self, *args: Any, **more: Any) -> Iterator[Any]:
        """Run COPY, in a new transaction if none is running."""
        own = contextlib.nullcontext() if self.connection.path_needed() is None else self.connection.transaction()
        with own, super().copy(*args, **more) as copy:
            yield copy


class StoreServerCursor(_ServerSideCursor):  # type: ignore[misc]
    """Django's cursor for results that are fetched in parts."""

    def execute(self, *args: Any, **more: Any) -> Any:
        """Declare the cursor, in a new transaction if none is running. It stays open afterwards if it is declared WITH
        HOLD."""
        if self.connection.path_needed() is None:
            return super().execute(*args, **more)
        with self.connection.transaction():
            return super().execute(*args, **more)


class PreparedCursor(psycopg.Cursor[Any]):
    """A cursor that sends the parameters separately from the statement, so that the database can keep the plan."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> Any:
        """Run a statement. One round trip."""
        connection: StoreConnection = self.connection  # type: ignore[assignment]
        path = connection.path_needed()
        if path is None:
            return super().execute(query, params, **more)
        # Several statements in one string cannot be prepared. A pipeline is one transaction.
        with connection.covered(), connection.pipeline():
            psycopg.ClientCursor(connection).execute(path)
            return super().execute(query, params, **more)


class DatabaseWrapper(base.DatabaseWrapper):
    """The connection of a thread."""

    # The driver, with ``StoreConnection`` as the class of its connections.
    Database: Any = SimpleNamespace(**{**vars(psycopg), "connect": StoreConnection.connect})

    def get_connection_params(self) -> dict[str, Any]:
        """Return the arguments of ``connect``."""
        return {**super().get_connection_params(), "cursor_factory": StoreCursor}

    @property
    def pool(self) -> Any:
        """The pool of the process, if it has one."""
        if options := self.settings_dict["OPTIONS"].get("pool"):
            options["connection_class"] = StoreConnection
        return super().pool

    def create_cursor(self, name: str | None = None) -> Any:
        """Return a cursor. With a ``name``, it is a server-side cursor."""
        if name is None:
            return super().create_cursor()
        return StoreServerCursor(self.connection, name=name, scrollable=False, withhold=self.connection.autocommit)

    @contextmanager
    def _nodb_cursor(self) -> Iterator[Any]:
        # CREATE DATABASE cannot run in a transaction, so it is sent without a store and its path.
        with store_use(None), super()._nodb_cursor() as cursor:
            yield cursor

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self.connection.path_forget()
