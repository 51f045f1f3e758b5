"""What every method shares: settings that are checked by name, and the encoder that they ask for."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from doublure.methods.base import MethodSettings, encoder_for
from doublure.methods.dpgan import DpganSettings
from doublure.schema import ResolvedSchema

SCHEMA = ResolvedSchema.parse(
    """
doublure: 1
kind: table
units: 100
columns:
  pay: {type: real, bounds: [0, 1], missing: false}
  job: {type: category, values: [a, b], missing: false}
"""
)


class Settings(MethodSettings):
    size: int = 3


def test_a_name_that_is_no_setting_is_refused_with_those_that_are(world):
    error = world.refusal(Settings.read, {"colour": 1})
    assert (error.field, error.remedy) == ("colour", "use one of: size")


def test_a_value_that_does_not_fit_is_named(world):
    assert world.refusal(Settings.read, {"size": "large"}).field == "size"


def test_settings_do_not_change():
    with pytest.raises(ValidationError):
        Settings().size = 4


def test_settings_choose_the_encoder():
    def pay(settings):
        return [(block.kind, block.size) for block in encoder_for(SCHEMA, settings).blocks if block.column == "pay"]

    assert pay(Settings()) == [("softmax", 32)]
    assert pay(DpganSettings(bins=5)) == [("softmax", 5)]
    assert pay(DpganSettings(numerics="scaled")) == [("tanh", 1)]
