"""What every method shares: settings that are checked by name, and the encoder that they ask for."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from doublure.encode.choice import encoder_for
from doublure.methods.dpgan.settings import DpganSettings
from doublure.schema import ResolvedSchema
from doublure.training.settings import MethodSettings

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
        return [
            (block.kind, block.size) for block in encoder_for(SCHEMA, settings.encoding).blocks if block.column == "pay"
        ]

    assert pay(Settings()) == [("softmax", 32)]
    assert pay(DpganSettings(bins=5)) == [("softmax", 5)]
    assert pay(DpganSettings(numerics="scaled")) == [("tanh", 1)]


# -- stages ------------------------------------------------------------------------------------------------------------


def test_a_stage_counts_its_own_steps_and_the_run_counts_all(world):
    authorised = []
    job = world.job(authorise=authorised.append, taken=7)
    assert [job.stage("s", after=after).taken for after in (0, 5, 7, 9)] == [7, 2, 0, 0]
    job.stage("s", after=5).authorise(3)
    assert authorised == [8]


def test_stages_keep_their_states_side_by_side(world):
    memory = world.Memory()
    job = world.job(memory=memory)
    one = job.stage("one", after=0).checkpoints
    assert one.load() is None
    one.save(1, {"weights": torch.tensor([1.0])})
    two = job.stage("two", after=1).checkpoints
    assert two.load() is None
    two.save(2, {"weights": torch.tensor([2.0])})
    two.save(3, {"weights": torch.tensor([3.0]), "one/weights": torch.tensor([9.0])})
    assert memory.steps == [1, 3, 4]
    assert {name: float(value) for name, value in job.stage("one", after=0).checkpoints.load().items()} == {
        "weights": 1
    }
    again = job.stage("two", after=1).checkpoints.load()
    assert {name: float(value) for name, value in again.items()} == {"weights": 3, "one/weights": 9}
