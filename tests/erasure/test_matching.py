"""What a request to forget finds: by identifiers, by names and by facts. And what stays."""

from typing import Any

import pytest

from memory.models import Topic
from tests.cast import Caller
from tests.erasure.test_forget import forget, found, remember

pytestmark = pytest.mark.meaning


def listed(caller: Caller, query: str, verb: str = "release", **more: Any) -> list[str]:
    """Return the titles of the list that a query makes, without executing it."""
    return [match["title"] for match in forget(caller, verb, query=query, **more)["matches"]]


# Names and identifiers


@pytest.mark.parametrize(
    "query", ["e-reader", "E-reader", "everything about the e-reader", "everything about E-reader"]
)
def test_a_thing_with_a_sign_in_its_name_is_found_by_it(operator: Caller, query: str) -> None:
    operator.remember("E-reader", summary="Library loans work only after signing in.")
    operator.remember("Reader's digest", summary="E is a letter.")

    assert listed(operator, query) == ["E-reader"]


def test_a_name_takes_those_that_mention_it_and_no_longer_name(operator: Caller) -> None:
    remember(operator, "Ann plays chess.")
    remember(operator, "The chess set is Ann's.")
    remember(operator, "Anna plays chess.")
    remember(operator, "Ann-Kathrin plays chess.")
    remember(operator, "Write to ann@x.io about chess.")

    assert sorted(listed(operator, "Ann")) == ["Ann plays chess.", "The chess set is Ann's."]


def test_a_tag_is_the_name_only_where_no_one_writes_it_otherwise(operator: Caller) -> None:
    remember(operator, "@ann posted a picture.")
    assert listed(operator, "Ann") == ["@ann posted a picture."]

    remember(operator, "Ann plays chess.")
    assert listed(operator, "Ann") == ["Ann plays chess."]
    assert listed(operator, "@ann") == ["@ann posted a picture."]


def test_a_word_that_is_a_name_elsewhere_is_left_alone(operator: Caller) -> None:
    remember(operator, "Mark plays the tuba.")
    remember(operator, "Please mark it as read.")

    assert listed(operator, "Mark") == ["Mark plays the tuba."]


def test_a_name_is_followed_to_the_other_names_that_stored_texts_give_it(operator: Caller) -> None:
    remember(operator, "Robert, also known as Bob, moved in.")
    remember(operator, "Bob sold the boat.")
    remember(operator, "Bobby sold the bike.")

    answer = forget(operator, query="everything about Robert")

    assert {match["title"] for match in answer["matches"]} == {
        "Robert, also known as Bob, moved in.",
        "Bob sold the boat.",
    }
    assert {match["by"] for match in answer["matches"]} == {"name"}
    # What one scope says of a name is not said in another.
    remember(operator, "Bob sold the barn.", scope="/farm")
    assert listed(operator, "everything about Robert", scope="/farm") == []


def test_a_name_in_another_script_is_found_and_said_to_be_less_sure(operator: Caller) -> None:
    remember(operator, "Дмитрий играет на гобое.")

    (match,) = forget(operator, query="everything about Dmitry")["matches"]

    assert match["confidence"] < 1
    assert match["by"] == "name"


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("Her number is +49 170 1234567.", "+49-170-123-45-67"),
        ("Her number is +49 170 1234567.", "forget the phone number +491701234567"),
        ("Paid with 4111 1111 1111 1111.", "4111-1111-1111-1111"),
        ("Write to A.Smith@X.IO.", "a.smith@x.io"),
        ("The parcel goes to SW1A 2AB.", "sw1a2ab"),
        ("The plate is B-MW 3301.", "b mw 3301"),
    ],
)
def test_an_identifier_is_found_however_it_is_grouped(operator: Caller, stored: str, query: str) -> None:
    remember(operator, stored)
    remember(operator, "The number 49 is odd, 1234 is not, and 3301 is a prime.")

    assert listed(operator, query) == [stored]


def test_archived_topics_are_found_and_released_ones_by_a_purge_alone(operator: Caller) -> None:
    archived = remember(operator, "Anna Berg plays the oboe.")
    operator.post(f"/v1/topics/{archived}/archive", {"reason": "old"}).ok()
    released = remember(operator, "Anna Berg sings.")
    forget(operator, filter={"ids": [released]}, dry_run=False)

    assert listed(operator, "Anna Berg") == ["Anna Berg plays the oboe."]
    assert sorted(listed(operator, "Anna Berg", "purge")) == ["Anna Berg plays the oboe.", "Anna Berg sings."]


def test_where_nothing_matches_the_list_says_so_and_cannot_be_executed(operator: Caller) -> None:
    remember(operator, "Anna Berg plays the oboe.")

    answer = forget(operator, query="everything about Ben Holm", dry_run=False)

    assert (answer["count"], answer["token"], answer["executed"]) == (0, None, False)
    assert answer["question"]


# Facts


@pytest.mark.parametrize(
    ("query", "meant", "others"),
    [
        ("where Maria lives", "Maria lives in Madrid.", ["Pedro lives in Madrid.", "Maria works in Madrid."]),
        ("Maria's home town", "Maria lives in Madrid.", ["Maria's sister lives in Rome.", "Pedro lives in Madrid."]),
        (
            "that Ben does not eat fish",
            "Ben does not eat fish.",
            ["Ben eats fish on Fridays.", "Ana does not eat fish."],
        ),
        ("the rent of flat 12", "The rent of flat 12 is 900.", ["The rent of flat 2 is 900.", "Flat 12 is blue."]),
        ("the door code", "The door code is 4471.", ["The door is green.", "The wifi password is 4471-x."]),
        ("the meeting on 3 May", "The meeting on 3 May is in Oslo.", ["The meeting on 5 May is in Oslo."]),
        ("when the bins are emptied", "The bins are emptied on Tuesdays.", ["The bins are behind the house."]),
    ],
)
def test_of_facts_that_are_much_alike_the_one_that_is_meant_is_found(
    operator: Caller, query: str, meant: str, others: list[str]
) -> None:
    for text in (*others, meant):
        remember(operator, text)

    answer = forget(operator, query=query)

    assert [match["title"] for match in answer["matches"]] == [meant]
    assert not answer["ambiguous"]


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("that Anna lives in Oslo", "Ben lives in Oslo."),
        ("Anna's phone number", "Anna's sister's phone number is 0444 120 555."),
        ("the rent of flat 12", "The rent of flat 2 is 900."),
        ("that Ben eats fish", "Ben does not eat fish."),
        ("the wifi password", "The garden has three apple trees."),
    ],
)
def test_what_is_near_and_not_meant_is_not_taken_for_want_of_better(operator: Caller, query: str, stored: str) -> None:
    remember(operator, stored)

    assert listed(operator, query) == []


def test_what_says_the_same_in_other_words_goes_too(operator: Caller) -> None:
    remember(operator, "Nils lives in Bergen.")
    remember(operator, "Nils's home is Bergen.")
    remember(operator, "Nils works in Bergen.")

    done = forget(operator, query="Nils lives in Bergen", dry_run=False)

    assert done["executed"]
    assert "Nils works in Bergen." in found(operator, "Nils Bergen")
    assert "Nils lives in Bergen." not in found(operator, "Nils lives in Bergen.")


def test_a_field_of_a_topic_is_forgotten_and_its_other_fields_stay(operator: Caller) -> None:
    topic = operator.remember(
        "Maria Lopez",
        values={"city": "Madrid", "phone": "+34 600 000 111"},
        scope="/people",
        topic_kind="person",
        categories=["friends"],
        pinned=True,
    )
    friend = operator.remember("Pedro", scope="/people")
    operator.ingest("extend_topic", topic_id=topic, edges=[{"to_topic_id": friend, "kind": "knows"}])

    done = forget(operator, query="Maria Lopez's city", dry_run=False)

    assert done["matches"][0]["keeps"] == "Maria Lopez · +34 600 000 111"
    (rest,) = Topic.objects.exclude(pk__in=[topic, friend])
    said = operator.topic(str(rest.pk))
    assert {field["name"]: field["current"]["value"] for field in said["fields"]} == {"phone": "+34 600 000 111"}
    assert (rest.scope.path, rest.kind, rest.categories) == ("/people", "person", ["friends"])
    assert rest.vitality.pinned
    assert {(link["kind"], link["topic_id"]) for link in said["neighbors"]} >= {("knows", friend)}


def test_what_a_purge_keeps_leads_nowhere_near_what_went(operator: Caller) -> None:
    topic = remember(operator, "Nils lives in Bergen and works as a glazier.")

    forget(operator, "purge", query="Nils lives in Bergen", dry_run=False)

    (rest,) = Topic.objects.all()
    assert str(rest.pk) != topic
    kept = operator.topic(str(rest.pk))
    assert kept["label"] == "Nils works as a glazier."
    assert "Bergen" not in str(kept)


@pytest.mark.parametrize(
    ("name", "other"),
    [("Müller", "Mueller"), ("José", "Josué"), ("Дмитрий", "Дмитриев"), ("Анна", "Антон"), ("Łukasz", "Lukas")],
)
def test_everything_about_a_name_with_letters_beyond_ascii_is_found_however_much_there_is(
    operator: Caller, name: str, other: str
) -> None:
    texts = [f"{name} has job number {number} in hall {number}." for number in range(30)]
    for text in [*texts, *(f"The {word} is broken." for word in ("door", "lamp", "roof", "gate"))]:
        remember(operator, text)
    assert sorted(listed(operator, f"everything about {name}", "purge")) == sorted(texts)


def test_of_several_names_or_identifiers_each_counts_though_one_text_has_them_all(operator: Caller) -> None:
    texts = ["Anna lives in Oslo.", "Ben sails on Sundays.", "Anna and Ben met in Rome.", "Cleo paints."]
    codes = ["NOVA-7 is in hall 1.", "NOVA-8 is broken.", "NOVA-7 and NOVA-8 share a cable.", "NOVA-9 is new."]
    for text in texts + codes:
        remember(operator, text)
    assert sorted(listed(operator, "everything about Anna and Ben")) == sorted(texts[:3])
    assert sorted(listed(operator, "everything about NOVA-7 and NOVA-8", "purge")) == sorted(codes[:3])
    assert sorted(listed(operator, "NOVA-7, NOVA-8")) == sorted(codes[:3])


def test_a_short_value_goes_alone_though_another_text_holds_its_word(operator: Caller) -> None:
    fields = [{"name": "children", "value": "2"}, {"name": "pets", "value": "She has 2 dogs and 12 hens."}]
    topic = operator.post("/v1/ingest", {"placement": "new_topic", "title": "Olga Holm", "fields": fields}).ok()[
        "topic_id"
    ]

    (match,) = forget(operator, "release", query="how many children Olga Holm has")["matches"]

    assert match["topic_id"] == topic
    assert "12 hens" in match["keeps"]


def test_what_is_excepted_stays_though_it_has_common_words_only(operator: Caller) -> None:
    remember(operator, "Olga Holm's phone number is 0444 120 555.")
    for text in ("Olga Holm lives in Riga.", "Olga Holm plays chess."):
        remember(operator, text)

    assert sorted(listed(operator, "everything about Olga Holm except her phone number")) == [
        "Olga Holm lives in Riga.",
        "Olga Holm plays chess.",
    ]


def test_everything_about_a_name_takes_its_other_spelling_too(operator: Caller) -> None:
    for text in ("Müller plays chess.", "Mueller's office is on the first floor.", "Maller paints."):
        remember(operator, text)

    assert sorted(listed(operator, "everything about Müller", "purge")) == [
        "Mueller's office is on the first floor.",
        "Müller plays chess.",
    ]
