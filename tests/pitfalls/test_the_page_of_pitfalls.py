"""``docs/evidence/pitfalls.md`` names every rule and every row, and each test it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GRADES = ("## Critical", "## Theoretical", "## Negligible", "## Not applicable, or not yet")


def rules_and_rows(text):
    """Return the rules and rows that the first cells of the page's tables name."""
    rules, rows = set(), set()
    for cell in re.findall(r"^\| (R[^|]*) \|", text, re.MULTILINE):
        left, _, right = cell.partition("·")
        rules |= {int(number) for number in re.findall(r"R(\d+)", left)}
        rows |= {int(number) for number in re.findall(r"\d+", right)}
    return rules, rows


def others_testing(rule, text):
    """Return the files of other folders that a row of the rule names, and that say they are its tests."""
    lines = [line for line in text.splitlines() if re.match(rf"\| R{rule}\b", line)]
    named = {ROOT / name for line in lines for name in re.findall(r"`(tests/\w+/test_\w+\.py)`", line)}
    return [path for path in named if path.read_text(encoding="utf-8").startswith(f'"""Design rule {rule}:')]


def check_page(text):
    rules, rows = rules_and_rows(text)
    assert rules == set(range(1, 22))
    assert rows == set(range(1, 26))
    assert [line for line in text.splitlines() if line.startswith("## ")] == list(GRADES)
    named = set(re.findall(r"`((?:tests/[\w/]*)?test_\w+\.py)`", text))
    assert len(named) >= 20
    for name in named:
        assert (ROOT / name if "/" in name else HERE / name).is_file(), name
    for short in re.findall(r"`(test_rule_\d\d_)…`", text):
        assert [*HERE.glob(f"{short}*.py")], short
    for rule in rules:
        assert [*HERE.glob(f"test_rule_{rule:02}_*.py")] or others_testing(rule, text), rule
    for path in HERE.glob("test_*.py"):
        assert path.name in text or path == Path(__file__), path.name


def test_the_page_is_whole():
    check_page((ROOT / "docs/evidence/pitfalls.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mutant", ["a row left out", "a test that is not there", "a rule untested"])
def test_a_page_with_a_hole_is_caught(lab, mutant):
    text = (ROOT / "docs/evidence/pitfalls.md").read_text(encoding="utf-8")
    if mutant == "a row left out":
        text = re.sub(r"^\| R12 · 21 .*$", "", text, flags=re.MULTILINE)
    elif mutant == "a rule untested":
        text = text.replace(", `tests/end_to_end/test_what_was_bought_is_kept.py`", "")
    else:
        text = text.replace("test_rule_09_records_do_not_meet_in_a_network.py", "test_rule_09_something.py")
    with lab.caught():
        check_page(text)
