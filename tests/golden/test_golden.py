"""Golden fits say what they said: plans, what ran, cards, ledgers, spreads of rows, drafts and texts of refusals.

The words and figures here hold on every machine. What a change leaves equal to the byte, ``record.py`` shows.
"""

from __future__ import annotations

import json

import pytest
from fixed_noise import FixedNoise
from golden.recording import record

from doublure.schema import columns
from golden import cases, drafts, portable, refused

ON_PURPOSE = "if it is meant to: python tests/golden/record.py --keep"


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Let the types of the cases be known for a test."""
    for name, empty in (("_REGISTERED", {}), ("_WITH_REGISTERED", [])):
        monkeypatch.setattr(columns.registry, name, empty)
    cases.register()


@pytest.mark.parametrize("name", [name for name, case in cases.CASES.items() if case.kept])
def test_a_fit_leaves_what_it_left(name, tmp_path, monkeypatch):
    FixedNoise().install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    evaluated = name == portable.EVALUATED
    found = portable.portable(record(cases.CASES[name], tmp_path, rows=portable.ROWS, evaluated=evaluated))
    changed = [*portable.differences(portable.kept(name), found)]
    assert not changed, f"{ON_PURPOSE} {name}"


def test_a_refusal_says_what_it_said():
    changed = [(line["of"], line["asked"], line["said"], found) for line in refused.table()
               if (found := refused.said(line)) != line["said"]]  # fmt: skip
    assert not changed, ON_PURPOSE


def test_drafts_and_checks_say_what_they_said():
    kept = json.loads(drafts.KEPT.read_text(encoding="utf-8"))
    assert drafts.shortened(drafts.record()) == kept, ON_PURPOSE
