"""Rules 11 and 13: every run under its own kind; empirical and Bayesian figures never enter the DP total."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from doublure.errors import BudgetRefused, LedgerError, SettingError
from doublure.ledger import Ledger

FILES = {"data.csv": "0" * 64}


def plan(kind="dp", epsilon=1.0, delta=1e-6, **other):
    other.setdefault("worst_case", (epsilon, delta) if kind == "bayesian-dp" else None)
    return SimpleNamespace(
        method={"dp": "dpgan", "bayesian-dp": "bayesgan", "empirical": "noisecritic", "none": "gan"}[kind],
        guarantee=SimpleNamespace(kind=kind),
        epsilon=epsilon,
        delta=delta,
        unit={"name": "person", "id": None, "max_records": 1},
        relation="add/remove",
        accountant=None,
        schema_sha256="0" * 64,
        sha256="0" * 64,
        touches=[],
        steps=100,
        **other,
    )


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", dataset="adult", epsilon=3.0, delta=1e-5)


@pytest.mark.parametrize("kind", ["empirical", "none"])
def test_kinds_without_epsilon_are_recorded_and_add_nothing(ledger, kind):
    ledger.reserve(plan(epsilon=3.0))
    run = ledger.reserve(plan(kind, None, None))
    run.close("done", steps=100)
    assert (run.charge.epsilon, ledger.spent.epsilon) == (0.0, 3.0)
    shown = ledger.show()
    assert shown["spent"]["kinds"][kind] == {"runs": 1, "epsilon": None, "delta": None}
    assert (shown["runs"][1]["kind"], shown["runs"][1]["epsilon"]) == (kind, None)


@pytest.mark.parametrize("kind", ["empirical", "none"])
@pytest.mark.parametrize("figures", [(1.0, None), (None, 1e-6), (0.0, 0.0)])
def test_kinds_without_epsilon_refuse_one(ledger, kind, figures):
    with pytest.raises(SettingError, match="has no epsilon"):
        ledger.reserve(plan(kind, *figures))


def test_a_bayesian_run_is_charged_its_worst_case(ledger):
    ledger.reserve(plan("bayesian-dp", epsilon=0.2, delta=1e-7, worst_case=(2.5, 2e-6)))
    assert (ledger.spent.epsilon, ledger.spent.delta) == (2.5, 2e-6)
    with pytest.raises(BudgetRefused):
        ledger.reserve(plan(epsilon=0.6))
    with pytest.raises(SettingError, match="no worst case"):
        ledger.reserve(plan("bayesian-dp", epsilon=0.5, worst_case=None))
    ledger.reserve(plan("bayesian-dp", epsilon=0.2, worst_case=(0.5, 1e-6)))
    assert ledger.spent.epsilon == 3.0
    kinds = ledger.show()["spent"]["kinds"]
    assert (kinds["bayesian-dp"]["epsilon"], kinds["dp"]["epsilon"]) == (3.0, 0.0)


def test_a_dp_run_cannot_name_a_smaller_worst_case(ledger):
    ledger.reserve(plan(epsilon=2.0, worst_case=(0.1, 0.0)))
    assert ledger.spent.epsilon == 2.0


@pytest.mark.parametrize("worst", [(None, 1e-6), (1.0, None), (float("inf"), 0.0)])
def test_a_bayesian_run_without_a_worst_case_is_refused(ledger, worst):
    with pytest.raises(SettingError):
        ledger.reserve(plan("bayesian-dp", worst_case=worst))


@pytest.mark.parametrize("kind", ["empirical", "none"])
def test_after_such_a_release_the_total_no_longer_covers_everything(ledger, kind):
    good = ledger.reserve(plan())
    ledger.record_release(good.id, FILES, "dp")
    run = ledger.reserve(plan(kind, None, None))
    assert ledger.covers_all_releases
    assert "covers all" in ledger.coverage
    ledger.record_release(run.id, FILES, kind)
    for found in (ledger, Ledger.open(ledger.path)):
        assert not found.covers_all_releases
        assert "no longer covers all releases" in found.coverage
        assert found.show()["covers_all_releases"] is False
        assert found.show()["note"] == found.coverage
    ledger.record_release(good.id, FILES, "dp")
    assert not ledger.covers_all_releases


def test_a_dp_run_released_under_no_guarantee_is_not_covered_either(ledger):
    ledger.record_release(ledger.reserve(plan()).id, FILES, "none")
    assert not ledger.covers_all_releases


def test_a_bayesian_run_above_its_ceiling_falls_back_to_dp(ledger):
    run = ledger.reserve(plan("bayesian-dp"))
    ledger.record_release(run.id, FILES, "bayesian-dp")
    ledger.record_release(run.id, FILES, "dp")
    assert ledger.covers_all_releases


@pytest.mark.parametrize(("reserved", "released"), [("empirical", "dp"), ("none", "empirical"), ("dp", "bayesian-dp")])
def test_no_run_is_released_under_more_than_it_was_reserved_for(ledger, reserved, released):
    figures = (1.0, 1e-6) if reserved == "dp" else (None, None)
    run = ledger.reserve(plan(reserved, *figures))
    with pytest.raises(LedgerError, match="cannot be released"):
        ledger.record_release(run.id, FILES, released)


def test_no_forbidden_word_is_printed(ledger):
    ledger.record_release(ledger.reserve(plan("none", None, None)).id, FILES, "none")
    texts = [ledger.coverage, Ledger.create(ledger.path.parent / "b", dataset="b", epsilon=1.0, delta=0.0).coverage]
    for text in texts:
        assert "anonymous" not in text
        assert "safe" not in text
