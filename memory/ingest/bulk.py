"""COPY: the fastest way into a table, for rows that a plan has already proved free of conflicts.

Django hands ``copy`` through to psycopg as it is, so what goes wrong is turned into Django's exceptions here.
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
    """Return an array of texts as PostgreSQL writes it. Given as lists, psycopg looks at each word several times."""
    if not words:
        return "{}"
    told = '","'.join(words)
    if "\\" in told or told.count('"') > 2 * (len(words) - 1):
        told = '","'.join(word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return f'{{"{told}"}}'


def vector_binary(vector: Vectors) -> bytes:
    """Return a vector in pgvector's wire format: the dimension, two unused bytes, big-endian single floats."""
    return struct.pack(">HH", len(vector), 0) + np.asarray(vector, dtype=">f4").tobytes()


def vector_text(vector: Vectors) -> str:
    """Return a vector in pgvector's text format, for statements that cannot take the binary one."""
    return "[" + ",".join(f"{number:.7g}" for number in vector.tolist()) + "]"


@contextmanager
def vectors_copying(
    cursor: CursorWrapper, columns: Sequence[str], types: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Iterator[None]:
    """Append rows to the vector table; a binary vector is a third of the size of its text and needs no parsing.

    One statement, which ends with the block. The block must send no other: it runs while the database works, and of
    the time of a batch, putting vectors into their index takes more than everything else.
    """
    copying = f"COPY memory_topicvector ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    with cursor.db.wrap_database_errors, cursor.copy(copying) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
        yield
