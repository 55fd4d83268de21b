"""Writes rows by COPY, the fastest way. The plan has already checked them for conflicts.

Django passes ``copy`` to psycopg unchanged, so errors are converted to Django's exceptions here.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from django.db.backends.utils import CursorWrapper

from memory.embedding.base import Vectors


def rows_copy(cursor: CursorWrapper, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Append ``rows`` to ``table``. One statement. A conflict raises ``IntegrityError`` and aborts the transaction."""
    with cursor.db.wrap_database_errors, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def array_literal(words: Sequence[str]) -> str:
    """Return a PostgreSQL array literal of texts. Much faster than psycopg's own conversion of lists."""
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
    """Return a vector in pgvector's text format, for statements that cannot use the binary format."""
    return "[" + ",".join(f"{number:.7g}" for number in vector.tolist()) + "]"


@contextmanager
def vectors_copying(
    cursor: CursorWrapper, columns: Sequence[str], types: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Iterator[None]:
    """Append rows to the vector table in binary format: a third of the size of text, and no parsing.

    One statement, which ends with the block. The block runs while the database updates the vector index; this takes
    most of the time of a batch. The block must not send other statements.
    """
    copying = f"COPY memory_topicvector ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    with cursor.db.wrap_database_errors, cursor.copy(copying) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
        yield
