"""Inverting records: it finds latents, keeps within the ball, and treats each record by itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.networks.inversion import Inversion, InversionSettings, refuse_interaction

WIDTH, PIXELS = 4, 9
PATIENT = InversionSettings(steps=300, restarts=2, rate=0.2, batch=16)


class Curved(nn.Module):
    """A smooth generator whose records tell its latents apart."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(WIDTH, PIXELS)
        draw = torch.Generator().manual_seed(3)
        with torch.no_grad():
            self.body.weight.copy_(torch.randn(PIXELS, WIDTH, generator=draw) / 2)
        self.eval()

    def forward(self, latents: Tensor) -> Tensor:
        return torch.tanh(self.body(latents))


@pytest.fixture(scope="module")
def generator():
    return Curved()


@pytest.fixture(scope="module")
def records(generator):
    latents = torch.randn(40, WIDTH, generator=torch.Generator().manual_seed(5)) / 3
    return latents, generator(latents).detach()


def test_it_finds_the_latents(generator, records):
    latents, made = records
    found = Inversion(generator, WIDTH, PATIENT)(made)
    assert (generator(found) - made).square().mean() < 1e-4
    assert (found - latents).abs().mean() < 0.05


@pytest.mark.parametrize(("seed", "within"), [(0, False), (1, True)])
def test_it_stays_within_the_ball_of_its_beginning(generator, seed, within):
    """And within √d: of the two balls each is the smaller one once."""
    far = generator(torch.full((3, WIDTH), 5.0))
    inversion = Inversion(generator, WIDTH, InversionSettings(steps=60, restarts=1, rate=0.5, batch=4, seed=seed))
    found, radius = inversion(far), float(inversion.starts[0].norm())
    assert (radius < math.sqrt(WIDTH)) == within
    assert (found.norm(dim=1) <= min(radius, math.sqrt(WIDTH)) * (1 + 1e-5)).all()
    assert (found.norm(dim=1) > min(radius, math.sqrt(WIDTH)) * 0.9).all()  # it had reason to leave


@pytest.mark.parametrize("seed", [0, 1])
def test_it_never_leaves_the_ball_on_its_way(generator, monkeypatch, seed):
    """Where it went and came back from is no place that the paper's descent would have been at."""
    far, tried = generator(torch.full((3, WIDTH), 5.0)), []
    inversion = Inversion(generator, WIDTH, InversionSettings(steps=60, restarts=1, rate=0.5, batch=4, seed=seed))
    errors = Inversion._errors
    monkeypatch.setattr(
        Inversion, "_errors", lambda self, records, latents: tried.append(latents) or errors(self, records, latents)
    )
    inversion(far)
    radius = min(float(inversion.starts[0].norm()), math.sqrt(WIDTH))
    assert len(tried) == 61
    assert torch.cat(tried).norm(dim=1).max() <= radius * (1 + 1e-5)


def test_without_steps_it_stays_within_the_ball_too(generator, records):
    def propose(images):
        return torch.full((len(images), WIDTH), 9.0)

    proposer = torch.nn.Module()
    proposer.eval().forward = propose
    settings = InversionSettings(steps=0, restarts=8, rate=0.1)
    inversion = Inversion(generator, WIDTH, settings, proposer=proposer, shape=tuple(records[1].shape[1:]))
    assert inversion.starts.norm(dim=1).max() > math.sqrt(WIDTH)
    assert inversion(records[1]).norm(dim=1).max() <= math.sqrt(WIDTH) * (1 + 1e-5)


def test_beginnings_are_the_same_for_every_record_and_follow_from_the_seed(generator, records):
    def starts(seed):
        return Inversion(generator, WIDTH, InversionSettings(steps=1, restarts=3, rate=0.1, seed=seed)).starts

    assert starts(1).shape == (3, WIDTH)
    assert torch.equal(starts(1), starts(1))
    assert not torch.equal(starts(1), starts(2))
    one = records[1][:1]
    twice = Inversion(generator, WIDTH, PATIENT)(torch.cat([one, one]))
    assert torch.equal(twice[0], twice[1])


def test_the_best_restart_is_each_records_own(generator, records):
    _, made = records
    settings = {"steps": 5, "rate": 0.3, "batch": 16}
    several = Inversion(generator, WIDTH, InversionSettings(restarts=4, **settings))
    apart = []
    for number in range(4):
        alone = Inversion(generator, WIDTH, InversionSettings(restarts=4, **settings))
        alone.starts = several.starts[number : number + 1]
        apart.append((generator(alone(made)) - made).square().sum(1))
    best, found = torch.stack(apart).amin(0), (generator(several(made)) - made).square().sum(1)
    assert len({int(row.argmin()) for row in torch.stack(apart).T}) > 1
    assert torch.allclose(found, best, rtol=1e-4)


def test_an_encoder_says_where_to_begin(generator, records):
    latents, made = records

    class Knows(nn.Module):
        def forward(self, asked: Tensor) -> Tensor:
            return latents[[int((made - one).square().sum(1).argmin()) for one in asked]]

    settings = InversionSettings(steps=0, restarts=1, rate=0.1, batch=16)
    found = Inversion(generator, WIDTH, settings, proposer=Knows().eval(), shape=(PIXELS,))(made)
    assert torch.allclose(found, latents, atol=1e-5)
    with pytest.raises(SettingError):
        Inversion(generator, WIDTH, settings)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_record_that_is_not_finite_has_the_latent_zero_and_changes_nobody_elses(generator, records, broken):
    _, made = records
    inversion = Inversion(generator, WIDTH, InversionSettings(steps=4, restarts=2, rate=0.1, batch=16))
    hostile = made.clone()
    hostile[3, 0] = broken
    before, after = inversion(made), inversion(hostile)
    assert (after[3] == 0).all()
    others = torch.arange(len(made)) != 3
    assert torch.equal(before[others], after[others])


def test_no_record_at_all(generator):
    assert Inversion(generator, WIDTH, PATIENT)(torch.zeros(0, PIXELS)).shape == (0, WIDTH)


def test_networks_in_which_rows_meet_are_refused(generator):
    normalised = nn.Sequential(nn.Linear(WIDTH, 6), nn.BatchNorm1d(6), nn.Linear(6, PIXELS))
    with pytest.raises(SettingError, match="training mode"):
        refuse_interaction(normalised.train(), (WIDTH,), "public generator")
    refuse_interaction(normalised.eval(), (WIDTH,), "public generator")

    class Centred(nn.Module):
        def forward(self, rows: Tensor) -> Tensor:
            return rows - rows.mean(0)

    class Counted(nn.Module):
        def forward(self, rows: Tensor) -> Tensor:
            return rows / len(rows)

    for meeting in (Centred(), Counted()):
        with pytest.raises(SettingError, match="lets rows meet"):
            Inversion(meeting.eval(), WIDTH, PATIENT)
        with pytest.raises(SettingError, match="encoder"):
            Inversion(generator, WIDTH, PATIENT, proposer=meeting.eval(), shape=(PIXELS,))
