"""What all commands on the store share: a database without tables, and a reader that ends early."""

import subprocess
import sys

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection


@pytest.mark.django_db
@pytest.mark.parametrize("words", [("policy", "show"), ("key", "list")], ids="-".join)
def test_a_database_without_tables_is_no_traceback(words: tuple[str, ...]):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path TO pg_catalog")
    with pytest.raises(CommandError) as error:
        call_command(*words)
    assert error.value.returncode == 2


def test_a_reader_that_ends_early_is_no_traceback():
    with subprocess.Popen(
        [sys.executable, "manage.py", "help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        assert b"Traceback" not in command.stderr.read()
    assert command.returncode == 1
