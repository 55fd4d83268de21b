from tests.cast import Caller, Cast


def test_a_fact_is_found(agent: Caller):
    topic = agent.remember("Where Mara lives", values={"city": "Berlin"})
    assert agent.found("Berlin") == [topic]


def test_a_fact_is_found_over_http(http_cast: Cast):
    topic = http_cast.agent.remember("Where Mara lives", values={"city": "Berlin"})
    assert http_cast.reader.found("Berlin") == [topic]
