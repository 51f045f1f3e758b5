"""The recorder keeps the cases that are named, and refuses names of none."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture
def recorder(monkeypatch):
    spec = importlib.util.spec_from_file_location("golden_recorder", Path(__file__).with_name("record.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.cases, "register", lambda: None)
    kept = []
    monkeypatch.setattr(module, "_found", lambda name, **more: {"case": name})
    monkeypatch.setattr(module.portable, "keep", lambda name, found: kept.append(name))
    monkeypatch.setattr(module.refused, "table", list)
    monkeypatch.setattr(module.refused, "keep", lambda lines: kept.append("refusals"))
    monkeypatch.setattr(module.drafts, "record", dict)
    monkeypatch.setattr(module.drafts, "keep", lambda found: kept.append("drafts"))

    def called(*words):
        monkeypatch.setattr(sys, "argv", ["record.py", *words])
        module.main()
        return kept

    return called


def test_only_named_cases_are_kept(recorder):
    assert recorder("--keep", "people-statistics", "meters-dpgan") == ["people-statistics", "meters-dpgan"]


def test_refusals_and_drafts_are_kept_by_their_names(recorder):
    assert recorder("--keep", "drafts", "refusals") == ["drafts", "refusals"]


def test_without_names_all_that_the_suite_compares_is_kept(recorder):
    *fits, refusals, drafts = recorder("--keep")
    assert "people-statistics" in fits
    assert (refusals, drafts) == ("refusals", "drafts")


@pytest.mark.parametrize(
    "words", [("--keep", "people-statistic"), ("before", "people-statistic"), ("--keep", "people-gan")]
)
def test_a_name_of_no_such_case_is_refused(recorder, capsys, words):
    with pytest.raises(SystemExit) as caught:
        recorder(*words)
    assert caught.value.code == 2
    assert words[1] in capsys.readouterr().err
