"""Writes rows by COPY, which is the fastest way. Errors are raised as Django's exceptions."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from django.db.backends.utils import CursorWrapper

from memory.embedding.base import Vectors


def rows_copy(cursor: CursorWrapper, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
    """Append ``rows`` to ``table``. ``columns`` contains the names of the columns, separated by spaces. One statement.
    Raises ``IntegrityError``."""
    with cursor.db.wrap_database_errors, cursor.copy(f"COPY {table} ({columns.replace(' ', ', ')}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def array_literal(words: Sequence[str]) -> str:
    """Return a PostgreSQL array literal of texts. This is much faster than psycopg's own conversion of lists."""
    if not words:
        return "{}"
    joined = '","'.join(words)
    if "\\" in joined or joined.count('"') > 2 * (len(words) - 1):
        joined = '","'.join(word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return f'{{"{joined}"}}'


def vector_binary(vector: Vectors) -> bytes:
    """Return a vector in pgvector's wire format: the dimension, two unused bytes, big-endian single floats."""
    return struct.pack(">HH", len(vector), 0) + np.asarray(vector, dtype=">f4").tobytes()


def vector_text(vector: Vectors) -> str:
    """Return a vector in pgvector's text format, for SQL statements that cannot use the binary format."""
    return "[" + ",".join(f"{number:.7g}" for number in vector.tolist()) + "]"


@contextmanager
def vectors_copying(
    cursor: CursorWrapper, columns: str, types: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Iterator[None]:
    """Append rows to the vector table in binary format. The ``with`` block runs while the database updates the vector
    index, because the update takes most of the time of a batch. The block must not send SQL statements."""
    copying = f"COPY memory_topicvector ({columns.replace(' ', ', ')}) FROM STDIN (FORMAT BINARY)"
    with cursor.db.wrap_database_errors, cursor.copy(copying) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
        yield
