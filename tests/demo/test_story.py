"""The demo story: believable in its proportions, sound in its references, the same every time."""

import json
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from memory.demo.build import story_build
from memory.demo.material import material_read
from memory.demo.phrases import phrase_draw
from memory.demo.records import KINDS, LINK_KINDS, Story, topic_id
from memory.demo.schedule import Calendar
from memory.demo.usage import windows_of

NOW = datetime(2026, 8, 20, 9, 30, tzinfo=UTC)
DAY_ZERO = Calendar(NOW).day_zero
SPAN = timedelta(days=183)


@pytest.fixture(scope="module")
def story() -> Story:
    return story_build(now=NOW)


def test_the_same_arguments_tell_the_same_story(story: Story) -> None:
    assert story_build(now=NOW) == story


def test_another_seed_tells_another_story(story: Story) -> None:
    assert story_build(now=NOW, seed=8).topics != story.topics


def test_a_key_always_yields_the_same_identifier(story: Story) -> None:
    assert str(topic_id("mara")) == "48796078-0ad4-5837-97e3-03132afce986"
    assert len({topic_id(topic.key) for topic in story.topics}) == len(story.topics)


def test_there_are_as_many_topics_as_asked_for_and_the_rest_in_proportion(story: Story) -> None:
    assert len(story.topics) == 2000
    assert 700 <= len(story.revisions) <= 1000
    assert 3000 <= len(story.retrievals) <= 4000
    actions = Counter(change.action for change in story.changes)
    assert 120 <= actions["archive"] <= 180
    assert 5 <= actions["restore"] <= 20
    assert actions["pin"]
    assert actions["unpin"]


@pytest.mark.parametrize("size", [1, 60, 300, 4000])
def test_a_story_of_another_size_is_sound_as_well(size: int) -> None:
    small = story_build(now=NOW, topics=size)
    keys = {topic.key for topic in small.topics}
    assert len(small.topics) == size
    assert {link.to_key for topic in small.topics for link in topic.links} <= keys
    assert {revision.key for revision in small.revisions} <= keys
    assert {key for retrieval in small.retrievals for key in retrieval.keys} <= keys


@pytest.mark.parametrize("days", range(7))
def test_it_can_be_reported_on_any_day_of_the_week(days: int) -> None:
    now = datetime(2027, 1, 4, 0, 5, tzinfo=timezone(timedelta(hours=-7))) + timedelta(days=days)
    got = story_build(now=now, topics=400)
    for part in (got.topics, got.revisions, got.retrievals, got.changes):
        assert all(now - SPAN < item.at < now for item in part)


def test_a_now_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        story_build(now=NOW.replace(tzinfo=None))


def test_everything_happens_within_the_half_year_and_in_order(story: Story) -> None:
    for part in (story.topics, story.revisions, story.retrievals, story.changes):
        times = [item.at for item in part]
        assert times == sorted(times)
        assert times[0] > NOW - SPAN
        assert times[-1] < NOW


def test_links_and_references_point_to_topics_that_were_there_before(story: Story) -> None:
    born = {topic.key: topic.at for topic in story.topics}
    for topic in story.topics:
        assert len({(link.to_key, link.kind) for link in topic.links}) == len(topic.links)
        for link in topic.links:
            assert link.kind in LINK_KINDS
            assert born[link.to_key] < topic.at
        for field in topic.fields:
            assert field.ref_key is None or born[field.ref_key] < topic.at
    assert sum(1 for topic in story.topics for field in topic.fields if field.ref_key) >= 100


def test_a_revision_changes_a_field_that_its_topic_has(story: Story) -> None:
    topics = {topic.key: topic for topic in story.topics}
    current: dict[tuple[str, str], tuple[str, datetime]] = {
        (topic.key, field.name): (field.value, topic.at) for topic in story.topics for field in topic.fields
    }
    unchanged = 0
    for revision in story.revisions:
        value, since = current[revision.key, revision.name]
        assert revision.at > since, revision
        unchanged += revision.value == value
        types = {field.name: field.field_type for field in topics[revision.key].fields}
        assert types[revision.name] == revision.field_type
        current[revision.key, revision.name] = (revision.value, revision.at)
    assert unchanged <= 5, "measured again and found the same, now and then"


def test_a_few_fields_have_a_long_history(story: Story) -> None:
    versions = Counter((revision.key, revision.name) for revision in story.revisions)
    long = [count + 1 for count in versions.values() if count + 1 >= 10]
    assert len(long) >= 15
    assert max(long) <= 30


def test_a_retrieval_returns_only_what_could_be_found_then(story: Story) -> None:
    windows = windows_of(story.topics, story.changes, now=NOW)
    for retrieval in story.retrievals:
        assert retrieval.query
        assert retrieval.actor
        assert 1 <= len(retrieval.keys) <= 8
        assert len(set(retrieval.keys)) == len(retrieval.keys)
        assert all(windows[key].holds(retrieval.at) for key in retrieval.keys)


def test_an_operator_acts_on_a_topic_that_exists_and_restores_only_what_was_archived(story: Story) -> None:
    born = {topic.key: topic.at for topic in story.topics}
    archived: set[str] = set()
    for change in story.changes:
        assert change.at > born[change.key]
        assert change.reason
        if change.action == "archive":
            assert change.key not in archived
            archived.add(change.key)
        elif change.action == "restore":
            archived.remove(change.key)


def test_a_few_core_facts_are_asked_for_often_and_most_noise_never(story: Story) -> None:
    used = Counter(key for retrieval in story.retrievals for key in retrieval.keys)
    outputs = [topic.key for topic in story.topics if topic.kind == "tool_output"]
    assert sum(1 for key in outputs if key not in used) >= 0.85 * len(outputs)
    assert min(used[key] for key in ("mara", "ivo-hazelnut", "thyroid-dose", "atlas")) >= 50
    busiest = sum(count for _, count in used.most_common(50))
    assert busiest >= 0.3 * used.total()
    assert len(used) <= 0.6 * len(story.topics)


def test_the_weeks_have_a_rhythm(story: Story) -> None:
    by_weekday = Counter(topic.at.weekday() for topic in story.topics)
    assert max(by_weekday[5], by_weekday[6]) < 0.7 * min(by_weekday[day] for day in range(5))
    first = min(topic.at for topic in story.topics).date()
    asked = Counter((retrieval.at.date() - first).days // 7 for retrieval in story.retrievals)
    ordinary = sum(asked[week] for week in range(2, 12)) / 10
    assert max(asked[14], asked[15]) < 0.6 * ordinary
    assert asked[21] > 1.5 * ordinary


def test_titles_and_summaries_are_varied_and_short(story: Story) -> None:
    titles = [topic.title for topic in story.topics]
    summaries = [topic.summary for topic in story.topics]
    assert len(set(titles)) >= 0.95 * len(titles)
    assert len(set(summaries)) >= 0.98 * len(summaries)
    assert all(1 <= len(title.split()) <= 12 for title in titles)
    assert all(10 <= len(summary) <= 260 for summary in summaries)


def test_no_placeholder_is_left_in_any_text(story: Story) -> None:
    texts = [text for topic in story.topics for text in (topic.title, topic.summary, topic.pin_reason)]
    texts += [text for revision in story.revisions for text in (revision.value, revision.why_changed)]
    texts += [field.value for topic in story.topics for field in topic.fields if field.field_type != "json"]
    assert not [text for text in texts if "{" in text or "}" in text]


def test_all_kinds_and_many_scopes_are_present(story: Story) -> None:
    kinds = Counter(topic.kind for topic in story.topics)
    assert set(kinds) == set(KINDS)
    assert kinds["tool_output"] + kinds["session_state"] > len(story.topics) / 2
    scopes = {topic.scope for topic in story.topics}
    assert {
        "/user/mara",
        "/user/mara/health",
        "/user/jonas",
        "/home",
        "/home/kitchen",
        "/studio",
        "/project/atlas",
        "/project/atlas/api",
        "/project/lantern",
        "/project/old-site",
    } <= scopes
    assert sum(1 for scope in scopes if scope.startswith("/session/20")) >= 100
    assert 10 <= sum(topic.pinned for topic in story.topics) <= 40
    assert all(topic.pin_reason for topic in story.topics if topic.pinned)


def test_a_session_topic_lies_in_the_scope_of_its_day(story: Story) -> None:
    for topic in story.topics:
        if topic.scope.startswith("/session/"):
            assert topic.scope == f"/session/{topic.at.date().isoformat()}"


def test_every_value_fits_its_type(story: Story) -> None:
    values = [(field.field_type, field.value) for topic in story.topics for field in topic.fields]
    values += [(revision.field_type, revision.value) for revision in story.revisions]
    for field_type, value in values:
        match field_type:
            case "int":
                assert str(int(value)) == value
            case "float":
                float(value)
            case "bool":
                assert value in ("true", "false")
            case "date":
                date.fromisoformat(value)
            case "datetime":
                assert datetime.fromisoformat(value).tzinfo
            case "list":
                assert isinstance(json.loads(value), list)
            case "json":
                assert isinstance(json.loads(value), dict)
            case "string":
                assert value
    assert {field_type for field_type, _ in values} == {
        "string",
        "int",
        "float",
        "bool",
        "date",
        "datetime",
        "list",
        "json",
    }


def test_salience_at_creation_follows_the_kind(story: Story) -> None:
    def _mean(kind: str) -> float:
        values = [topic.salience for topic in story.topics if topic.kind == kind]
        return sum(values) / len(values)

    assert all(0 < topic.salience <= 10 for topic in story.topics)
    assert _mean("identity") > _mean("decision") > _mean("observation") > _mean("tool_output")


def test_questions_and_hand_made_changes_name_only_topics_of_the_story(story: Story) -> None:
    keys = {topic.key for topic in story.topics}
    material = material_read(day_zero=DAY_ZERO)
    assert {key for question in material.questions for key in question.topics} <= keys
    assert {key for change in material.changes for key in change.topics} <= keys
    assert {key for family in material.families for key in family.about} <= keys


def test_every_place_that_a_family_uses_can_be_filled() -> None:
    rng = random.Random(1)
    for family in material_read(day_zero=DAY_ZERO).families:
        drawn = {phrase_draw(family, rng=rng, at=NOW) for _ in range(200)}
        assert len({phrase.summary for phrase in drawn}) >= 20, family.key
