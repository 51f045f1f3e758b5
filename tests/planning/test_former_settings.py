"""Plans made while constants of today were settings: they load where they hold that constant, and else are refused.

The plans are of the commit before, written by ``doublure plan``; ``sha256`` is what their runs and ledgers know.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest

from doublure.errors import SettingError
from doublure.guarantee import claim_as_worded_now
from doublure.methods import registry
from doublure.methods.dpgan.settings import DpganSettings
from doublure.planning import Plan

FORMER = json.loads((Path(__file__).parents[1] / "vectors" / "former_plans.json").read_text(encoding="utf-8"))
KEPT = [name for name in FORMER if name != "images-latentgan-embedding"]


def settings_type(name):
    plan = FORMER[name]["plan"]
    return registry.method(plan["method"]).settings_type[plan["kind"]]


CONSTANTS = [(name, setting) for name in KEPT for setting in settings_type(name).all_constants()]


@pytest.mark.parametrize("name", KEPT)
def test_a_plan_of_before_is_the_same_plan(name):
    """A ledger finds a reservation by the plan's hash, and a folder is resumed by it."""
    plan = Plan.from_json(FORMER[name]["plan"])
    assert plan.sha256 == FORMER[name]["sha256"]
    assert told(json.loads(json.dumps(plan.to_json()))) == told(FORMER[name]["plan"])


def told(plan):
    """Return a plan without its warnings, which are today's, and its claim as it is worded today."""
    kept = {name: value for name, value in plan.items() if name != "warnings"}
    return kept | {"guarantee": claim_as_worded_now(plan["guarantee"])}


@pytest.mark.parametrize(("name", "setting"), CONSTANTS)
def test_another_value_than_the_constant_is_refused(name, setting):
    edited = deepcopy(FORMER[name]["plan"])
    for other in (0.123, True, "a"):
        edited["settings"][setting] = other
        with pytest.raises(SettingError) as caught:
            Plan.from_json(edited)
        assert caught.value.field == setting
        assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{setting}: is no setting any more, and always ")
    assert "version" in caught.value.remedy


def test_a_former_setting_may_be_given_as_it_is():
    kind = settings_type("series-statistics")
    assert kind.read({"table_share": 0.4}) == kind.read({})
    with pytest.raises(SettingError, match=r"^table_share: is no setting any more, and always 0\.4; leave it out"):
        kind.read({"table_share": 0.5})


def test_a_teacher_that_is_gone_is_refused():
    with pytest.raises(SettingError, match=r"^teacher: must be one of 'mixture' or 'critic'"):
        Plan.from_json(FORMER["images-latentgan-embedding"]["plan"])


def test_a_constant_is_no_setting_of_its_class():
    for name in KEPT:
        kind = settings_type(name)
        assert not kind.all_constants().keys() & kind.model_fields.keys()
        assert kind.all_constants().keys() <= FORMER[name]["plan"]["settings"].keys()


def test_settings_from_elsewhere_may_have_a_former_name():
    class Own(DpganSettings):
        chunk_size: int = 7

    own = Own.read({"chunk_size": 9})
    assert (own.chunk_size, own.to_json()["chunk_size"], own.to_json()["noise_source"]) == (9, 9, "os-keyed")
