"""Where a topic belongs on the ladder, and that judging twice is judging once."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.formulas.ladder import CLIMB_MARGIN, rung_target

ACTIVE, SUMMARIZED, DETACHED, ARCHIVED = range(4)

scores = st.one_of(
    st.floats(-10, 1000),
    st.sampled_from([0.12, 0.25, 0.12 * CLIMB_MARGIN, 0.25 * CLIMB_MARGIN, 0.0]),
    st.floats(0.1, 0.3),
)
thetas = st.one_of(
    st.just((0.25, 0.12)),
    st.tuples(st.floats(0, 1000), st.floats(0, 1)).map(lambda pair: (pair[0], pair[0] * pair[1])),
    st.floats(0, 10).map(lambda theta: (theta, theta)),
)


@pytest.mark.parametrize(
    ("rung", "score", "target"),
    [
        (ACTIVE, 1.0, ACTIVE),
        (ACTIVE, 0.25, ACTIVE),
        (ACTIVE, 0.249, SUMMARIZED),
        (ACTIVE, 0.12, SUMMARIZED),
        (ACTIVE, 0.119, DETACHED),
        # Back to active only above 0.275.
        (SUMMARIZED, 0.26, SUMMARIZED),
        (SUMMARIZED, 0.275, SUMMARIZED),
        (SUMMARIZED, 0.276, ACTIVE),
        (SUMMARIZED, 0.119, DETACHED),
        # Up from detached only above 0.132, and to active at once only above 0.275.
        (DETACHED, 0.13, DETACHED),
        (DETACHED, 0.132, DETACHED),
        (DETACHED, 0.133, SUMMARIZED),
        (DETACHED, 0.27, SUMMARIZED),
        (DETACHED, 0.28, ACTIVE),
        (DETACHED, 0.0, DETACHED),
        (ARCHIVED, 10.0, ARCHIVED),
    ],
)
def test_the_default_thresholds_with_a_margin_of_a_tenth_for_the_way_back(rung: int, score: float, target: int) -> None:
    assert rung_target(rung, score, archive_due=False, theta_summary=0.25, theta_detach=0.12) == target


@pytest.mark.parametrize("rung", [ACTIVE, SUMMARIZED, DETACHED, ARCHIVED])
@pytest.mark.parametrize("score", [0.0, 0.2, 10.0])
def test_what_is_due_for_the_archive_goes_there_from_any_rung(rung: int, score: float) -> None:
    assert rung_target(rung, score, archive_due=True, theta_summary=0.25, theta_detach=0.12) == ARCHIVED


@given(st.integers(0, 3), scores, st.booleans(), thetas)
def test_judging_again_at_the_same_moment_changes_nothing(
    rung: int, score: float, due: bool, theta: tuple[float, float]
) -> None:
    once = rung_target(rung, score, archive_due=due, theta_summary=theta[0], theta_detach=theta[1])
    # The archive does not ask again whether it is due.
    for again in (due, False) if once == ARCHIVED else (due,):
        assert rung_target(once, score, archive_due=again, theta_summary=theta[0], theta_detach=theta[1]) == once


@given(st.integers(0, 3), st.lists(scores, min_size=2, max_size=2).map(sorted), st.booleans(), thetas)
def test_a_higher_score_never_leads_lower(rung: int, pair: list[float], due: bool, theta: tuple[float, float]) -> None:
    low, high = (
        rung_target(rung, score, archive_due=due, theta_summary=theta[0], theta_detach=theta[1]) for score in pair
    )
    assert high <= low


@given(st.integers(0, 2), st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.001, 1))
def test_a_score_that_wavers_around_a_threshold_moves_a_topic_once_at_most(
    rung: int, places: list[float], theta: float
) -> None:
    # Anywhere from 5 percent below to 10 percent above one threshold, the other one being far away.
    for summary, detach in ((theta, 0.0), (theta * 100, theta)):
        at = rung
        path = [at]
        for place in places:
            wavering = theta * (0.95 + place * 0.15) * (1 - 1e-12)
            at = rung_target(at, wavering, archive_due=False, theta_summary=summary, theta_detach=detach)
            path.append(at)
        moves = [pair for pair in itertools.pairwise(path) if pair[0] != pair[1]]
        # Once up from where it began, at most, and once down.
        assert len(moves) <= 2, path
        assert path[1:] == sorted(path[1:]), path


@given(st.integers(0, 2), scores, thetas)
def test_without_being_due_nothing_is_archived(rung: int, score: float, theta: tuple[float, float]) -> None:
    target = rung_target(rung, score, archive_due=False, theta_summary=theta[0], theta_detach=theta[1])
    assert target in (ACTIVE, SUMMARIZED, DETACHED)
