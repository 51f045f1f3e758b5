"""``docs/evidence/papers.md``: a row has a figure, or is listed with what it would take; commands exist.

Where each figure comes from is in ``test_evidence.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sentences import read

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "docs" / "evidence"
PAGE = (EVIDENCE / "papers.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n:]+):[^\n]*\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE))
MISSING = PAGE.partition("\n## Not measured\n")[2].partition("\n## ")[0]


def _rows(text: str) -> list[list[str]]:
    lines = re.findall(r"^\| (?!row \|)(.+)\|$", text, flags=re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


ROWS = [(name, cells) for name, text in SECTIONS.items() for cells in _rows(text)]
HOW = (EVIDENCE / "journal" / "papers.md").read_text(encoding="utf-8")
COMMANDS = dict(re.findall(r"^- `(\w+)`: (.+)$", HOW, flags=re.MULTILINE))
LONGEST = 220
"""Letters of a cell: what is longer is two rows."""
READ = 2_700
"""Words, those of tables among them: ten minutes at 270 a minute."""
PLACE = re.compile(r"(§|Table |Tables |Figure |Figures |equation )")


def test_there_is_a_section_a_paper():
    assert len(SECTIONS) == 6  # the five, and Private Evolution
    for text in SECTIONS.values():
        assert all(f"**{part}" in text for part in ("Here:", "Changed, and why.", "What does not hold."))
    assert len(ROWS) > 40


@pytest.mark.parametrize(("paper", "cells"), ROWS, ids=lambda value: value if isinstance(value, str) else value[0])
def test_a_row_has_a_figure_and_its_command(paper, cells):
    what, _, here, again = cells
    assert max(map(len, (what, here))) <= LONGEST
    assert re.search(r"\d", here)
    assert again
    _check_names(again)
    assert PLACE.search(what) or what.startswith(("the same", "dp-GAN", "σ = 7", "DPMI as published"))


def _check_names(again: str) -> None:
    for name in re.findall(r"`(\w+)`", again):
        assert name in COMMANDS
    assert not re.sub(r"`\w+`|, ", "", again), "the last column holds names of commands"


def test_what_is_not_measured_says_what_it_would_take():
    found = _rows(MISSING)
    assert found
    for what, why, again in found:
        assert max(map(len, (what, why))) <= LONGEST
        assert why
        assert again or not re.search(r"\d", why), (what, "a time without its command")
        _check_names(again)
    for text in SECTIONS.values():  # a row without a figure stands there, and nowhere else
        assert not re.search(r"\| – (?!\|)|not measured|two cores", text)


def test_it_is_read_in_ten_minutes():
    assert read(PAGE) <= READ


def test_every_command_is_one_that_a_row_names():
    named = set(re.findall(r"`(\w+)`", "\n".join(cells[-1] for _, cells in ROWS) + MISSING))
    within = {name for text in COMMANDS.values() for name in re.findall(r"`(\w+)` with\b", text)}
    assert set(COMMANDS) <= named | within


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_is_one_that_there_is(name):
    shown = re.findall(r"`(python benchmarks/[\w/]+\.py .+?)`", COMMANDS[name])
    others = re.findall(r"`(\w+)` with\b", COMMANDS[name])
    assert shown or others
    assert set(others) <= set(COMMANDS)
    for command in shown:
        _, file, verb, *words = command.split()
        program = (ROOT / file).read_text(encoding="utf-8")
        assert f'"{verb}"' in program or verb.endswith(".npz")
        for flag in (word for word in words if word.startswith("--")):
            named = flag.removeprefix("--").replace("-", "_")  # as benchmarks/command_line.py takes it
            assert f'"{flag}"' in program or f" {named}=" in program or f"({named}=" in program, (file, flag)


def test_what_does_not_hold_names_where_it_stands():
    for name, text in SECTIONS.items():
        listed = text.partition("**What does not hold.**")[2].partition("\n| row")[0]
        for line in re.findall(r"^- (.+)$", listed, flags=re.MULTILINE):
            assert re.search(r"§|Table|Figure|Algorithm|Theorem|Corollary|does not use", line), (name, line)
