"""The packaged model: a text has one vector, however it comes to be embedded."""

import numpy as np

from memory.embedding.local import MAX_TOKENS, TEXTS_PER_TURN, LocalEmbedder
from tests.embedding.remembering import RememberingEmbedder

TEXTS = [
    "Mara lives in Berlin.",
    "",
    "Где живёт Мара?",
    "The rent of the cellar is 120 euros. " * 10,
    *(f"The key number {n} hangs behind the door of the shed." for n in range(TEXTS_PER_TURN)),
]


def test_the_vector_of_a_text_does_not_depend_on_what_is_embedded_with_it():
    embedder = LocalEmbedder()
    together = embedder.embed_passages(TEXTS)
    for place, text in enumerate(TEXTS[:8]):
        assert np.array_equal(embedder.embed_passages([text])[0], together[place]), text
    assert np.array_equal(embedder.embed_passages(TEXTS[::-1])[::-1], together)
    questions = embedder.embed_queries(TEXTS)
    for place, text in enumerate(TEXTS[:8]):
        assert np.array_equal(embedder.embed_query(text), questions[place]), text


def test_what_the_tests_remember_is_what_the_model_says():
    real, remembering = LocalEmbedder(), RememberingEmbedder()
    some = ["Mara lives in Oslo.", "Mara lives in Rome.", "Mara lives in Oslo."]
    assert np.array_equal(remembering.embed_passages(some), real.embed_passages(some))
    assert np.array_equal(remembering.embed_query(some[0]), real.embed_query(some[0]))
    # A caller that changes one in place does not change it for others.
    remembering.embed_passages(some)[:] = 0
    remembering.embed_query(some[0])[:] = 0
    assert remembering.embed_passages([]).shape == (0, real.dimension)
    assert np.array_equal(remembering.embed_passages(some[1:]), real.embed_passages(some[1:]))
    assert np.array_equal(remembering.embed_query(some[0]), real.embed_query(some[0]))


def test_no_text_costs_more_than_one_window_of_the_model(monkeypatch):
    embedder, handed = LocalEmbedder(), []
    engine = embedder._engine
    for name, is_query in (("passage", False), ("query", True)):
        real = getattr(engine, name)

        def noted(what, real=real, is_query=is_query):
            handed.extend((text, is_query) for text in ([what] if isinstance(what, str) else what))
            return real(what)

        monkeypatch.setattr(engine, name, noted)
    hostile = [
        "测试文本" * 1000,
        "😀" * 4000,
        "ß" * 4000,
        "a-" * 2000,
        "1" * 4000,
        "\ufdfa" * 4000,
        "The cat sat. " * 300,
    ]
    embedder.embed_passages(hostile)
    embedder.embed_passages(hostile[:1])
    embedder.embed_query(hostile[0])
    assert len(handed) == len(hostile) + 2
    for text, is_query in handed:
        assert MAX_TOKENS - 5 <= engine.token_count(text, is_query) <= MAX_TOKENS
    assert embedder.seconds_spent() > 0


def test_a_text_within_the_window_is_embedded_whole():
    embedder = LocalEmbedder()
    text = "The key of the shed hangs behind the door. " * 20
    assert embedder._window(text, is_query=False) == text
