"""The codes of problems: their form, their use, and their table in the docs."""

import re
from pathlib import Path

from memory.core.problem_codes import ProblemCode

ROOT = Path(__file__).parents[2]


def test_codes_are_words_with_hyphens_and_each_has_a_description():
    for code in ProblemCode:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code), code
        assert code.name == code.replace("-", "_").upper()
        assert code.description.endswith("."), code
        assert code.urn == f"urn:memstate:problem:{code}"


def test_every_code_is_used():
    product = [path for room in ("memory", "memstate_site") for path in (ROOT / room).rglob("*.py")]
    used = {name for path in product for name in re.findall(r"ProblemCode\.([A-Z_]+)", path.read_text())}
    assert {code.name for code in ProblemCode} == used


def test_the_docs_have_every_code_with_its_description():
    rows = re.findall(r"^`([a-z-]+)` \| [^|]+ \| (.+)$", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert rows == sorted((code.value, code.description) for code in ProblemCode)
