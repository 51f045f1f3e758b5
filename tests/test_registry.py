"""A register knows names, refuses others with the nearest, and lets nothing take a name of this package."""

from __future__ import annotations

import subprocess
import sys

import pytest

from doublure.errors import SettingError
from doublure.support.guessing import Registry


@pytest.fixture
def colours():
    return Registry("ink", {"red": 1, "green": 2}, field="--ink", beside=["any"])


def test_an_entry_from_elsewhere_comes_last_and_may_be_replaced(colours):
    colours.register("blue", 3)
    colours.register("blue", 4)
    assert (colours["blue"], colours.names) == (4, ("any", "red", "green", "blue"))


def test_an_unknown_name_is_refused_with_the_nearest(colours):
    with pytest.raises(SettingError) as caught:
        colours["gren"]
    assert str(caught.value) == ("--ink: there is no ink 'gren'; did you mean green? use one of: any, red, green")
    assert colours.get("gren") is None


@pytest.mark.parametrize("name", ["red", "any"])
def test_a_name_of_this_package_is_not_taken(colours, name):
    with pytest.raises(SettingError) as caught:
        colours.register(name, 5, field="key", remedy="choose another key")
    assert str(caught.value) == f"key: '{name}' is an ink of doublure; choose another key"
    assert colours["red"] == 1


def test_it_is_as_light_as_a_schema():
    code = "import sys, doublure.support.guessing; print({'numpy', 'pandas', 'torch'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
