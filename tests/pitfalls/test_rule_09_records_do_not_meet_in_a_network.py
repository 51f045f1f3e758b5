"""Rule 9: no batch norm, minibatch statistics or packing in a critic, nor in the generator beside it (row 11)."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from replay_noise import ReplayNoise
from torch import nn

from doublure.errors import SettingError
from doublure.networks.mlp import MlpGenerator
from doublure.private.clipping import ConstantSchedule
from doublure.private.gradients import CriticLoss
from doublure.private.independence import refuse_cross_record
from doublure.private.queries import lot_gradients
from doublure.training import critic_steps as private_critic_trainer
from doublure.training import gan_loop as adversarial


class Body(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x, condition=None):
        return self.body(x).squeeze(1)


class MinibatchDeviation(nn.Module):
    def forward(self, x):
        return x * (1 + (x - x.mean(0)).square().mean())


class Packed(nn.Module):
    """Judges two records together, as PacGAN does."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 1)

    def forward(self, x, condition=None):
        return self.body(torch.cat([x, x.roll(1, 0)], 1)).squeeze(1)


class Relativistic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x, condition=None):
        scores = self.body(x).squeeze(1)
        return scores - scores.detach().mean()


def spectral():
    return nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))


MIXING = {
    "batch norm": lambda: Body(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)),
    "batch norm, frozen": lambda: Body(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).eval(),
    "minibatch statistics": lambda: Body(nn.Linear(4, 4), MinibatchDeviation(), nn.Linear(4, 1)),
    "packing": Packed,
    "relativistic scores": Relativistic,
    "spectral norm": lambda: Body(spectral(), nn.Linear(4, 1)),
}


def partner(size, condition):
    return torch.zeros(size, 4)


def check_mixing_critics_are_refused(lab):
    for name, make in MIXING.items():
        asked = []
        settings = dict(
            loss=CriticLoss(kind="wgan"), schedule=ConstantSchedule(max_grad_norm=1.0), noise_multiplier=1.0,
            sample_rate=1.0, steps=1, expected_units=5.0,
        )  # fmt: skip
        critic = make()
        size = sum(p.numel() for p in critic.parameters())
        noise = ReplayNoise([torch.zeros(size)])
        step = lab.mechanism(torch.rand(5, 4), settings, noise=noise, authorise=asked.append)
        error = lab.refusal(SettingError, partial(step.gradient, critic, partner))
        assert error.field == "critic or generator", name
        assert "records are not independent" in error.message
        assert "LayerNorm" in error.remedy
        assert (asked, noise.asked, step.taken) == ([], [], 0)


def test_mixing_critics_are_refused_before_anything_is_drawn(lab):
    check_mixing_critics_are_refused(lab)


@pytest.mark.parametrize("mutant", ["no check", "check of the layers alone"])
def test_a_check_that_lets_them_pass_is_caught(lab, monkeypatch, mutant):
    def layers_alone(module, shape, width=0):
        if any(isinstance(layer, nn.BatchNorm1d) for layer in module.modules()):
            refuse_cross_record(module, shape, width)

    monkeypatch.setattr(lot_gradients, "refuse_cross_record", layers_alone if "layers" in mutant else lambda *_: None)
    with lab.caught():
        check_mixing_critics_are_refused(lab)


class MixingGenerator(MlpGenerator):
    def forward(self, noise, condition=None):
        rows = super().forward(noise, condition)
        return rows - rows.mean(0)


def check_mixing_generators_are_refused(lab, patch):
    build = adversarial.generator_of

    def mixing(*arguments):
        made = build(*arguments)
        made.__class__ = MixingGenerator
        return made

    with patch.context() as inner:
        inner.setattr(adversarial, "generator_of", mixing)
        error = lab.refusal(SettingError, lambda: lab.train(lab.people()))
        assert "records are not independent" in error.message


def test_mixing_generators_are_refused(lab, monkeypatch):
    check_mixing_generators_are_refused(lab, monkeypatch)


def test_a_generator_that_is_not_looked_at_is_caught(lab, monkeypatch):
    monkeypatch.setattr(private_critic_trainer, "refuse_cross_record", lambda *_: None)
    with lab.caught():
        check_mixing_generators_are_refused(lab, monkeypatch)


def test_a_mixing_generator_breaks_the_bound(lab, monkeypatch):
    """Why it is refused: with the check out of the way, one unit moves a step by more than its noise is made for."""
    monkeypatch.setattr(private_critic_trainer, "refuse_cross_record", lambda *_: None)
    forward = MlpGenerator.forward
    # A row depends on no other row's content, and yet on how many there are.
    monkeypatch.setattr(MlpGenerator, "forward", lambda self, z, c=None: forward(self, z, c) * (1 + 4 * (len(z) % 2)))
    base = lab.people()
    kept = lab.train(base)
    with lab.caught():
        lab.assert_within_sensitivity(kept, lab.train(lab.without_unit(base, "p7"), like=kept))


def check_the_shipped_networks_are_independent(lab):
    """d out_i / d x_j = 0 for i ≠ j, on the networks that a run really uses."""
    settings = lab.settings()
    encoder = lab.encoder(lab.train(lab.people(), steps=1).public["resolved"])
    generator = adversarial.generator_of(settings, encoder, torch.Generator().manual_seed(0))
    noise = torch.randn(5, settings.noise_width, requires_grad=True)
    condition = torch.eye(encoder.condition_width)[[0, 1, 0, 1, 1]].requires_grad_()
    rows = generator(noise, condition)
    for row in range(5):
        found = torch.autograd.grad(rows[row].square().sum(), [noise, condition], retain_graph=True)
        for gradient in found:
            assert bool((gradient[row] != 0).any())
            assert not bool((gradient[torch.arange(5) != row] != 0).any())


def test_the_shipped_networks_are_independent(lab):
    check_the_shipped_networks_are_independent(lab)


def test_a_shipped_network_that_mixes_is_caught(lab, monkeypatch):
    forward = MlpGenerator.forward
    monkeypatch.setattr(private_critic_trainer, "refuse_cross_record", lambda *_: None)
    monkeypatch.setattr(MlpGenerator, "forward", lambda self, z, c=None: forward(self, z - z.mean(0), c))
    with lab.caught():
        check_the_shipped_networks_are_independent(lab)
