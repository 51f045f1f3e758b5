"""``docs/evidence/papers.md``: a row has a figure or a reason, and its place; a command is one that there is.

Where each figure comes from is in ``test_evidence.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "evidence" / "papers.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?):.*?\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE))
ROWS = [
    (name, [cell.strip() for cell in line.split("|")])
    for name, text in SECTIONS.items()
    for line in re.findall(r"^\| (?!row \|)(.+)\|$", text, flags=re.MULTILINE)
    if not line.startswith(("-", ":"))
]
COMMANDS = dict(re.findall(r"^- `(\w+)`: (.+)$", PAGE, flags=re.MULTILINE))
LONGEST = 330
"""Letters of a cell: what is longer is two rows."""
PLACE = re.compile(r"(§|Table |Tables |Figure |Figures |equation )")


def test_there_is_a_section_a_paper():
    assert len(SECTIONS) == 6  # the five, and Private Evolution
    for text in SECTIONS.values():
        assert all(f"**{part}" in text for part in ("Here:", "Changed, and why.", "What does not hold."))
    assert len(ROWS) > 50


@pytest.mark.parametrize(("paper", "cells"), ROWS, ids=lambda value: value if isinstance(value, str) else value[0])
def test_a_row_has_a_figure_or_a_reason(paper, cells):
    what, _, here, again = cells
    assert max(map(len, (what, here))) <= LONGEST
    measured = not here.startswith("–")
    assert re.search(r"\d", here) if measured else len(here) > len("– not run")
    if measured:
        assert again, "a figure without its command"
    for name in re.findall(r"`(\w+)`", again):
        assert name in COMMANDS
    assert not re.sub(r"`\w+`|, ", "", again), "the last column holds names of commands"
    assert PLACE.search(what) or what.startswith(("the same", "dp-GAN", "σ = 7", "DPMI as published", "CelebA, all"))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_is_one_that_there_is(name):
    shown = re.findall(r"`(python benchmarks/[\w/]+\.py .+?)`", COMMANDS[name])
    others = re.findall(r"`(\w+)` with\b", COMMANDS[name])
    assert shown or others
    assert set(others) <= set(COMMANDS)
    for command in shown:
        _, file, verb, *words = command.split()
        program = (ROOT / file).read_text(encoding="utf-8")
        assert f'"{verb}"' in program
        for flag in (word for word in words if word.startswith("--")):
            assert f'"{flag}"' in program, (file, flag)


def test_what_does_not_hold_names_where_it_stands():
    for name, text in SECTIONS.items():
        listed = text.partition("**What does not hold.**")[2].partition("\n| row")[0]
        for line in re.findall(r"^- (.+)$", listed, flags=re.MULTILINE):
            assert re.search(r"§|Table|Figure|Algorithm|Theorem|Corollary|does not use", line), (name, line)
