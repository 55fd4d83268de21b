"""The colours of the console: text can be read, each meaning has its own colour, and people with any kind of sight can
tell the four rungs apart."""

import itertools
import re

import numpy as np
import numpy.typing as npt
import pytest

from memstate_site.folder import CHECKOUT

Colour = npt.NDArray[np.float64]
RUNGS = ("rung-active", "rung-summarized", "rung-detached", "rung-archived")
MEANINGS = ("accent", *RUNGS, "recalls", "measure", "warn", "bad")
# The colours of texts, and of what is behind them.
TEXTS = [
    *itertools.product(("ink", "ink-soft", "link"), ("surface", "paper", "sunken", "accent-soft")),
    *itertools.product(("ink-faint", "good", "warn", "bad"), ("surface", "paper")),
    *((name, f"{name}-soft") for name in ("good", "warn", "bad")),
    *itertools.product(("accent-ink",), ("accent", "link")),
    *itertools.product(("ink",), ("added", "removed", "marked")),
]
# What the eye of a person without one kind of receptor sees, in linear sRGB: Machado, Oliveira and Fernandes (2009).
SIGHT: dict[str, Colour] = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
# From linear sRGB to the responses of the eye, and from their cube roots to Oklab, in which distances are as seen.
TO_CONES = np.array([[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]])
TO_OKLAB = np.array([[0.21045, 0.79362, -0.00407], [1.978, -2.42859, 0.45059], [0.0259, 0.78277, -0.80868]])
# Hundredths of the distance between black and white.
LEAST_DISTANCE = 8


@pytest.fixture(params=["light", "dark"])
def colours(request: pytest.FixtureRequest) -> dict[str, Colour]:
    """The custom properties of a scheme, in linear sRGB."""
    css = (CHECKOUT / "static/console/console.css").read_text()
    blocks = re.findall(r":root \{(.+?)\}", css, re.DOTALL)
    light, dark = (dict(re.findall(r"--([a-z-]+): #([0-9a-f]{6});", block)) for block in blocks[:2])
    return {name: linear(value) for name, value in (light if request.param == "light" else light | dark).items()}


def linear(value: str) -> Colour:
    parts = np.frombuffer(bytes.fromhex(value), np.uint8) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast ratio of WCAG."""
    low, high = sorted(float(np.dot((0.2126, 0.7152, 0.0722), each)) + 0.05 for each in (one, other))
    return high / low


def distance(one: Colour, other: Colour, sight: str = "full") -> float:
    seen = [TO_OKLAB @ np.cbrt(TO_CONES @ np.clip(SIGHT[sight] @ each, 0, 1)) for each in (one, other)]
    return 100 * float(np.linalg.norm(seen[0] - seen[1]))


def test_texts_can_be_read(colours: dict[str, Colour]) -> None:
    found = {(text, ground): contrast(colours[text], colours[ground]) for text, ground in TEXTS}
    assert not {pair: ratio for pair, ratio in found.items() if ratio < 4.5}


def test_marks_are_seen(colours: dict[str, Colour]) -> None:
    marks = (*MEANINGS, "focus", "line-strong")
    found = {
        (mark, ground): contrast(colours[mark], colours[ground]) for mark in marks for ground in ("surface", "paper")
    }
    assert not {pair: ratio for pair, ratio in found.items() if ratio < 3}


def test_each_meaning_has_its_own_colour(colours: dict[str, Colour]) -> None:
    pairs = itertools.combinations(MEANINGS, 2)
    found = {(one, other): distance(colours[one], colours[other]) for one, other in pairs}
    assert not {pair: far for pair, far in found.items() if far < LEAST_DISTANCE}


@pytest.mark.parametrize("sight", SIGHT)
def test_the_rungs_are_reported_apart_with_any_sight(colours: dict[str, Colour], sight: str) -> None:
    pairs = itertools.combinations(RUNGS, 2)
    found = {(one, other): distance(colours[one], colours[other], sight) for one, other in pairs}
    assert not {pair: far for pair, far in found.items() if far < LEAST_DISTANCE}
