"""Colours of the pages: WCAG 2.2 AA for text and for marks, in light, dark and print, computed from the style sheet."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("doublure.report") / "templates" / "style.css").read_text()
PALETTES = dict(zip(("light", "dark", "print"), re.findall(r":root \{([^}]*)\}", STYLE), strict=True))
GROUNDS = ("paper", "sheet", "tint")
TEXTS = [(text, ground) for text in ("ink", "faint", "synthetic", "link", "warn") for ground in GROUNDS]
TEXTS += [("warn", "warn-tint"), ("on-warn", "warn")]
MARKS = [(mark, ground) for mark in ("real", "synthetic", "baseline") for ground in ("paper", "sheet")]


def colours(name):
    """Return a palette's colours; print takes from light what it leaves as it is."""
    found = {}
    for each in dict.fromkeys(("light", name)):
        found |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", PALETTES[each]))
    return found


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_is_that_of_wcag():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#dd5522", "#ffffff") < 4.5  # the orange that small text once had


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(("text", "ground"), TEXTS)
def test_text_stands_out(palette, text, ground):
    known = colours(palette)
    assert contrast(known[text], known[ground]) >= 4.5


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(("mark", "ground"), MARKS)
def test_marks_stand_out(palette, mark, ground):
    known = colours(palette)
    assert contrast(known[mark], known[ground]) >= 3


def test_real_and_synthetic_differ_by_shape_where_colours_are_grey():
    rules = dict(re.findall(r"^\.dot\.([a-z]+) \{([^}]*)\}", STYLE, flags=re.MULTILINE))
    assert "border-radius: 50%" in rules["real"]
    assert "background: var(--sheet)" in rules["real"]  # a ring
    assert "rotate(45deg)" in rules["synthetic"]
    assert "background: var(--synthetic)" in rules["synthetic"]  # a full diamond
    assert "width: .28rem" in rules["baseline"]  # a bar
