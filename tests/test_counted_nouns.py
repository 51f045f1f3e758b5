"""Messages that count say "1 row" and "2 rows": a number and its noun come from one helper."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from doublure.errors import counted

SOURCE = Path(__file__).parents[1] / "src" / "doublure"
_NOUN = re.compile(r"^ (?:(?:more|new|real|noisy|synthetic|different|public|private) )*([a-z]+(?<!s)s|people)\b")
_NOT_NOUNS = {
    "is",
    "was",
    "has",
    "its",
    "this",
    "as",
    "less",
    "does",
    "times",
    "plus",
    "gives",
    "holds",
    "takes",
    "bytes",
}
_AT_LEAST_TWO = re.compile(r"(?:\b(?:of|among|most|than|to|the)(?: the)?|more and) ?$")
"""Words before a number that is a limit, or a total beside a part of it."""


def _is_count(value: ast.FormattedValue) -> bool:
    """Whether a number is put in: the length of something, or one with thousands separated. A constant is known."""
    spec = "" if value.format_spec is None else ast.unparse(value.format_spec)
    called = isinstance(value.value, ast.Call) and ast.unparse(value.value.func) == "len"
    return (called or ("," in spec and "." not in spec)) and not ast.unparse(value.value).isupper()


def plurals(text: str) -> list[str]:
    """Return each number that stands before a plural, whatever it is."""
    found = []
    for node in ast.walk(ast.parse(text if re.search(r"\} [a-z]", text) else "")):
        if not isinstance(node, ast.JoinedStr):
            continue
        for place, (one, other) in enumerate(zip(node.values, node.values[1:], strict=False)):
            if not (isinstance(one, ast.FormattedValue) and isinstance(other, ast.Constant) and _is_count(one)):
                continue
            before = node.values[place - 1] if place else None
            lead = before.value if isinstance(before, ast.Constant) else ""
            noun = _NOUN.match(str(other.value))
            if noun and noun[1] not in _NOT_NOUNS and not _AT_LEAST_TWO.search(str(lead)):
                found.append(f"line {node.lineno}: {ast.unparse(node)[:110]}")
    return found


@pytest.mark.parametrize(
    ("number", "word", "said"),
    [
        (1, "synthetic row", "1 synthetic row"),
        (0, "row", "0 rows"),
        (1200, "entry", "1,200 entries"),
        (2, "day", "2 days"),
        (3, "class", "3 classes"),
        (2, "series", "2 series"),
    ],
)
def test_a_number_and_its_noun(number, word, said):
    assert counted(number, word) == said


def test_the_check_finds_what_it_is_for():
    assert plurals('f"{len(rows)} synthetic rows"')
    assert plurals('f"{n:,} rows of each"')
    assert not plurals('f"{n:,} of {m:,} rows"')
    assert not plurals('f"{x:.2f} rows"')


def test_no_message_puts_any_number_before_a_plural():
    found = {
        str(path.relative_to(SOURCE)): said
        for path in sorted(SOURCE.rglob("*.py"))
        if (said := plurals(path.read_text(encoding="utf-8")))
    }
    assert not found, "\n".join(f"{path} {line}" for path, lines in found.items() for line in lines)
