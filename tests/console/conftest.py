"""People who are signed in to the console. ``looker`` sees everything and changes nothing, ``op`` changes things,
``administrator`` also makes keys, ``visitor`` has an account that is not staff, ``anonymous`` has none.

They are Django test clients. Tokens of forms are not asked for; tests about them make clients of their own.
"""

import pytest
from django.test import Client

from tests.console.people import person


@pytest.fixture
def administrator(db: None) -> Client:
    return person("administrator")


@pytest.fixture
def op(db: None) -> Client:
    return person("operator")


@pytest.fixture
def looker(db: None) -> Client:
    return person("reader")


@pytest.fixture
def visitor(db: None) -> Client:
    return person("visitor")


@pytest.fixture
def anonymous(db: None) -> Client:
    return person("anonymous")
