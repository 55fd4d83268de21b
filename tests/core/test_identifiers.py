import threading
import uuid

from memory.core.ids import BACKWARDS_MS, uuid7

NOW = 1_790_000_000_000


def moment(value: uuid.UUID) -> int:
    return value.int >> 80


def test_an_identifier_is_a_version_7_uuid_that_carries_its_moment():
    value = uuid7(now_ms=NOW)
    assert value.version == 7
    assert value.variant == uuid.RFC_4122
    assert 0 <= moment(value) - NOW < BACKWARDS_MS


def test_identifiers_of_one_moment_keep_their_order():
    values = [uuid7(now_ms=NOW) for _ in range(10_000)]
    assert values == sorted(values)
    assert len(set(values)) == 10_000


def test_a_clock_that_goes_back_a_little_keeps_the_order():
    later = uuid7(now_ms=NOW + 500)
    assert uuid7(now_ms=NOW + 1) > later


def test_ids_for_the_past_carry_the_past():
    uuid7(now_ms=NOW)
    assert moment(uuid7(now_ms=NOW - 86_400_000)) == NOW - 86_400_000
    assert moment(uuid7(now_ms=NOW)) == NOW


def test_ids_made_in_threads_are_unique():
    made: list[uuid.UUID] = []

    def make() -> None:
        made.extend([uuid7(now_ms=NOW) for _ in range(2_000)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(made)) == 16_000
