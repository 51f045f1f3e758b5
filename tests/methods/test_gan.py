"""``gan``: the baseline learns, repeats itself under one seed, and claims nothing."""

from __future__ import annotations

import pytest
import torch

from doublure.methods.gan.method import METHOD
from doublure.schema import Schema
from doublure.training.gan_settings import TableAdversarialSettings

LEARN = {"steps": 120, "generator_lr": 5e-3}


def flat(generator):
    return torch.cat([value.reshape(-1) for value in generator.state_dict().values()])


@pytest.mark.parametrize(
    "settings",
    [{"loss": "wgan-gp"}, {"loss": "wgan", "weight_clip": 0.2}, {"loss": "logistic"}, {"loss": "hinge"}],
    ids=lambda settings: settings["loss"],
)
def test_every_loss_moves_towards_the_data(world, settings):
    job = world.job("gan", **LEARN, **settings)
    before = world.distance(METHOD.build(job.encoder, job.settings, seed=1), job)
    assert world.distance(METHOD.train(job), job) < before / 2


def test_one_seed_gives_one_generator(world):
    first, again, other = (flat(METHOD.train(world.job("gan", seed=seed))) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_it_promises_nothing_and_says_so():
    schema = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: false}}")
    settings = METHOD.resolve_defaults(schema, TableAdversarialSettings())
    assert METHOD.guarantee == "none"
    (access,) = METHOD.accesses(schema, settings, noise_multiplier=1.0)
    assert (access.event, access.epsilon) == (None, None)
    assert any("must not be published" in warning for warning in METHOD.warnings(schema, settings))
    assert (
        METHOD.sample_rate(schema, TableAdversarialSettings(lot_size=50)) == 1.0
    )  # a lot is never more than everybody


def test_settings_of_privacy_are_none_of_its_own(world):
    for name in ("max_grad_norm", "clipping_decay", "noise_source"):
        assert world.refusal(TableAdversarialSettings.read, {name: 1}).message == "is not a setting of this method"
