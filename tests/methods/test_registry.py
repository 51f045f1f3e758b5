"""The table of methods: a name finds one method, and nothing is imported before it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods import registry as table
from doublure.methods.method import settings_of
from doublure.public.settings import TYPES as PUBLIC
from doublure.training.settings import MethodSettings

DOCS = Path(__file__).resolve().parents[2] / "docs" / "methods.md"


@pytest.mark.parametrize("name", table.METHODS)
def test_a_name_finds_its_method(name):
    found = table.method(name)
    assert found.name == name
    assert found.kinds
    assert found.guarantee in ("dp", "bayesian-dp", "empirical", "none")
    types = found.settings_type  # one, or one for each kind of data
    assert all(issubclass(kind, MethodSettings) for kind in ([types] if isinstance(types, type) else types.values()))
    assert isinstance(types, type) or set(types) == found.kinds
    assert all(table.summary(name, kind) for kind in found.kinds)


def test_what_a_method_does_is_said_of_the_kind_at_hand():
    for name, kind in table._OF_KIND:
        assert kind in table.method(name).kinds
    said = {kind: table.summary("statistics", kind) for kind in table.method("statistics").kinds}
    assert len(set(said.values())) == 5
    assert [kind for kind, words in said.items() if "features" in words] == ["images"]
    assert table.summary("gan", "table") == table._SUMMARIES["gan"]


@pytest.mark.parametrize("name", table.METHODS)
def test_a_learning_rate_that_float32_cannot_carry_is_refused_before_anything_is_charged(name):
    method = table.method(name)
    types = method.settings_type
    for kind in sorted(method.kinds):
        fields = (types if isinstance(types, type) else types[kind]).model_fields
        for rate in (field for field in fields if field.endswith("_lr")):
            with pytest.raises(SettingError, match=f"{rate}: must be at most"):
                settings_of(method, kind, {rate: 1e30})


@pytest.mark.parametrize("name", ["wgan", "", "DPGAN", "../dpgan", "table"])
def test_a_name_that_is_none_is_refused_with_those_that_are(name):
    with pytest.raises(SettingError) as caught:
        table.method(name)
    assert caught.value.field == "method"
    assert all(known in caught.value.remedy for known in table.METHODS)
    assert "\n" not in str(caught.value)


def test_no_method_is_imported_before_it_is_asked_for():
    code = (
        "import sys; from doublure.methods import registry; before = 'doublure.methods.dpgan.method' in sys.modules;"
        "registry.method('dpgan'); after = 'doublure.methods.dpgan.method' in sys.modules;"
        "print(before, after, 'torch' in sys.modules, 'doublure.methods.gan.method' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["False", "True", "False", "False"]


def test_every_setting_in_the_docs_is_one():
    """A row of a table of settings names nothing that a plan would refuse."""
    tables = re.findall(r"^\| setting \|.*\n((?:\|.*\n)+)", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = {name for rows in tables for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    types = [table.method(name).settings_type for name in table.METHODS]
    models = [own for each in types for own in ([each] if isinstance(each, type) else each.values())]
    known = {field for own in [*models, *PUBLIC.values()] for field in own.model_fields}
    assert len(named) > 40
    assert named - known == set()


def test_a_name_of_this_package_is_not_taken_from_outside():
    said = dict(table.METHODS), dict(table._SUMMARIES)
    with pytest.raises(SettingError) as caught:
        table.register(table.method("gan"), "another one")
    assert (caught.value.field, caught.value.message) == ("name", "'gan' is a method of doublure")
    assert said == (table.METHODS, table._SUMMARIES)


@pytest.mark.parametrize("name", ["gan", "statistics"])
def test_a_plan_with_another_methods_settings_is_refused_at_no_cost(name, small, tmp_path):
    plan = db.plan(small.declared, method="dpgan", epsilon=1.0, delta=1e-4, accountant="rdp", steps=2)
    ledger = small.book(tmp_path)
    left = ledger.remaining
    with pytest.raises(SettingError):
        db.fit(small.frame(20), replace(plan, method=name), ledger=ledger, out=tmp_path / "other")
    assert (ledger.remaining, (tmp_path / "other").exists()) == (left, False)
