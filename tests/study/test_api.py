"""Studies over HTTP: read, listed, cancelled and resumed, by those in whose scope they are."""

from django_q.models import OrmQ

from tests.cast import Caller
from tests.study.shop import study_ready


def test_studies_are_listed_newest_first_and_of_one_conversation(agent: Caller) -> None:
    ids = [study_ready(scope=f"/s{number}") for number in range(3)]
    page = agent.get("/v1/studies?limit=2").ok()
    assert [each["study_id"] for each in page["items"]] == ids[:0:-1]
    rest = agent.get(f"/v1/studies?limit=2&cursor={page['next']}").ok()
    assert ([each["study_id"] for each in rest["items"]], rest["next"]) == (ids[:1], None)
    one = agent.get(f"/v1/studies/{ids[0]}").ok()
    assert one == rest["items"][0]
    assert (one["status"], one["phase"], one["segments"], one["progress"]) == ("working", "building", 1, 0)
    of_one = agent.get(f"/v1/studies?conversation_id={one['conversation_id']}").ok()["items"]
    assert of_one == [one]
    assert agent.get("/v1/studies?cursor=elsewhere").status == 422


def test_a_study_is_cancelled_and_resumed_which_calls_the_worker(agent: Caller) -> None:
    study = study_ready()
    assert agent.post(f"/v1/studies/{study}/cancel").ok()["status"] == "cancelled"
    assert "cancelled" in agent.post(f"/v1/studies/{study}/cancel").detail
    before = OrmQ.objects.count()
    resumed = agent.post(f"/v1/studies/{study}/resume").ok()
    assert (resumed["status"], resumed["finished_at"]) == ("working", None)
    assert OrmQ.objects.count() == before + 1
    answer = agent.post(f"/v1/studies/{study}/resume")
    assert (answer.status, "nothing to resume" in answer.detail) == (409, True)


def test_studies_of_other_scopes_are_not_there(alice: Caller, stranger: Caller, reader: Caller) -> None:
    study = study_ready(scope="/user/alice")
    assert stranger.get(f"/v1/studies/{study}").status == 404
    assert stranger.post(f"/v1/studies/{study}/cancel").status == 404
    assert stranger.post(f"/v1/studies/{study}/resume").status == 404
    assert stranger.get("/v1/studies").ok()["items"] == []
    assert [each["study_id"] for each in alice.get("/v1/studies").ok()["items"]] == [study]
    assert reader.post(f"/v1/studies/{study}/cancel").status == 403
