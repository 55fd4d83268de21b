"""Texts to extract from."""

PLAIN = (
    "Anna Berg lives in Oslo and works at Telenor. She has a dog called Rex. Is that all? Hello!\n\n"
    "Allergies:\n- peanuts\n- shellfish\n"
)
PLAIN_FACTS = [
    "Anna Berg lives in Oslo and works at Telenor. She has a dog called Rex.",
    "Allergies: peanuts",
    "Allergies: shellfish",
]


def long_text(characters: int) -> str:
    """Return a text of that many characters, no sentence of which says the same as another."""
    cities = ("Oslo", "Rome", "Paris", "Berlin", "Lima", "Kyoto", "Quito", "Dakar")
    things = ("a red bicycle", "two cats", "an old piano", "the key of the cellar", "a house by the sea", "seven books")
    parts, number, length = [], 0, 0
    while length < characters:
        number += 1
        part = f"Person {number} of the list lives in {cities[number % 8]} and owns {things[number % 6]}. "
        parts.append(part)
        length += len(part)
    return "".join(parts)[:characters]
