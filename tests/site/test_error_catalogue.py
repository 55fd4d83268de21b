"""The catalogue of errors: one file has all sentences, the docs have all codes, and no other test repeats a sentence.

After a change of a sentence or a code: ``python -m tests.site.error_catalogue``.
"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from memory.core.problem_codes import ProblemCode
from tests.site import error_catalogue

TESTS = Path(__file__).resolve().parents[1]
# A text of fewer words may stand in a sentence by chance.
FEWEST_WORDS = 3
# So many words in a row are a long part of a sentence.
LONG_PART = 5
# Texts of what is no problem, or of data, that have the words of a sentence by chance.
ALLOWED: dict[str, set[str]] = {
    "benchmarks/likenesses.py": {"does not speak"},
    "api/test_chat.py": {"(A text of "},
    "api/test_conversations.py": {"(A text of "},
    "browser/test_duplicates.py": {"2 pairs were merged"},
    "browser/test_without_script.py": {"all of them"},
    "console/test_bulk.py": {"the first 50 of them", "It was changed while you looked: 1."},
    "console/test_forget.py": {"1 of those you picked is not there any more."},
    "console/test_lookup.py": {"field:city=berlin", 'field:"due date"=""'},
    "console/test_transfer.py": {"Export of MemState", "Nothing was changed"},
    "crash/test_killed.py": {"There was no "},
    "text/test_aliases.py": {"the name of "},
    "predicates/test_search_text.py": {"-field:city=Berlin", "field:city=Berlin", 'field:"due date"="next week"'},
    "forgetting/test_by_hand.py": {"It was changed while you looked."},
    "insight/test_backtest_figures.py": {
        "There were no topics in this scope by then, so there is nothing to tell.",
        "none of them",
    },
    "site/test_env.py": {"X is 'maybe', but it must be true or false", "a whole number"},
    "site/test_up.py": {"cannot be reached"},
}
GENERAL = {ProblemCode.REFUSED, ProblemCode.NOT_VISIBLE, ProblemCode.CONFLICT, ProblemCode.INVALID_VALUE}


def test_every_sentence_is_in_the_catalogue():
    assert error_catalogue.SENTENCES.read_text(encoding="utf-8") == error_catalogue.sentences_text()


def test_the_docs_have_every_code():
    lead, begins, table = error_catalogue.DOCS.read_text(encoding="utf-8").partition(error_catalogue.TABLE_BEGINS)
    assert lead
    assert begins + table == error_catalogue.docs_table()


def test_codes_are_words_with_hyphens_and_each_has_a_description():
    for code in ProblemCode:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code), code
        assert code.name == code.replace("-", "_").upper()
        assert code.description.endswith("."), code
        assert code.urn == f"urn:memstate:problem:{code}"


def test_every_problem_has_a_code_of_its_own():
    assert [got for got in error_catalogue.catalogue() if got.code in GENERAL] == []


def test_every_code_is_given_somewhere():
    product = [path for room in ("memory", "memstate_site") for path in (error_catalogue.ROOT / room).rglob("*.py")]
    given = {name for path in product for name in re.findall(r"ProblemCode\.([A-Z_]+)", path.read_text())}
    assert {code.name for code in ProblemCode} - given == set()


def test_a_few_sentences_stand_below_their_codes():
    got = {(each.code, each.teller, each.status) for each in error_catalogue.catalogue()}
    assert {
        ("scope-not-found", "NotVisible", 404),
        ("topic-not-found", "RequestRefused", 400),
        ("still-in-progress", "StillInProgress", 409),
        ("address-not-found", "problem_response", 404),
        ("database-busy", "Failure", 503),
        ("model-timeout", "ModelUnavailable", 503),
        ("role-too-low", "refusal", None),
        ("wrong-confirmation", "ValidationError", None),
        ("file-exists", "CommandRefused", None),
        ("body-in-chunks", "BodyInChunks", 400),
    } <= got


def files() -> Iterator[Path]:
    """Every file of tests that may hold no sentence."""
    own = {Path(__file__), Path(error_catalogue.__file__)}
    for path in sorted(TESTS.rglob("*.py")):
        if path not in own:
            yield path


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every text that a file asserts or compares: all but docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in lone:
            yield node.lineno, node.value


def words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_][\w'-]*", text.lower())


def parts(text: str, length: int) -> set[tuple[str, ...]]:
    """Every so many words in a row."""
    found = words(text)
    return {tuple(found[at : at + length]) for at in range(len(found) - length + 1)}


@functools.cache
def got(length: int) -> set[tuple[str, ...]]:
    """Every so many words in a row of all sentences, none across a value."""
    return {part for piece in error_catalogue.fixed_pieces() for part in parts(piece, length)}


def repeated(text: str) -> str | None:
    """Return what of a sentence a text repeats: all of the text, if it is short, or a long part of both."""
    length = min(len(words(text)), LONG_PART)
    if length < FEWEST_WORDS:
        return None
    return next((" ".join(part) for part in sorted(parts(text, length) & got(length))), None)


def test_a_repeated_sentence_is_found():
    piece = max(error_catalogue.fixed_pieces(), key=len)
    assert repeated(piece)
    assert repeated(f"409: The request was refused: {piece}, and more")
    assert not repeated("Anna plays the oboe in the harbor every Sunday.")


def test_no_test_repeats_the_sentence_of_a_problem():
    found = {
        f"{name}:{line}: {text!r} repeats {part!r}"
        for path in files()
        for name in [str(path.relative_to(TESTS))]
        for line, text in texts(path)
        if text not in ALLOWED.get(name, set()) and (part := repeated(text))
    }
    assert found == set(), "Assert the code of the problem and what it left undone instead of its sentence."
