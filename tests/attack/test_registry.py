"""Attacks are found by name, in a fixed order, and may be added from outside."""

from __future__ import annotations

from copy import copy

import pytest

from doublure.attack import registry
from doublure.errors import SettingError


def test_names_and_groups_come_once_and_in_order():
    assert registry.named(["neighbours", "linkage", "linkability"]) == (*registry.GROUPS["linkage"], "neighbours")
    assert registry.named(["all"]) == tuple(registry.ATTACKS)


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """Let what is registered here end with each test."""
    monkeypatch.setattr(registry, "ATTACKS", copy(registry.ATTACKS))


def test_an_attack_from_outside_is_found_and_made():
    registry.register("guess", lambda world: ("made", world))
    assert registry.named(["guess", "domias"]) == ("domias", "guess")
    assert registry.ATTACKS["guess"]("here") == ("made", "here")
    assert "guess" not in registry.named(["all"])


@pytest.mark.parametrize("name", ["lira", "all", "quick"])
def test_a_name_of_this_package_is_not_taken_from_outside(name):
    with pytest.raises(SettingError) as caught:
        registry.register(name, lambda world: world)
    assert (caught.value.field, caught.value.message) == ("name", f"{name!r} is an attack of doublure")


def test_an_unknown_name_is_refused_with_those_that_are():
    registry.register("guess", lambda world: world)
    with pytest.raises(SettingError) as caught:
        registry.named(["guesses"])
    assert caught.value.remedy == "did you mean guess?"
