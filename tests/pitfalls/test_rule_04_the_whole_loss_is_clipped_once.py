"""Rule 4: each unit's whole paired loss is clipped once, to C; several records of a unit together (rows 12 and 20)."""

from __future__ import annotations

from itertools import repeat
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from critic_steps import critic_steps
from replay_noise import ReplayNoise
from torch import nn
from torch.func import functional_call

from doublure.data.tables import source as tables
from doublure.encode.table import Block
from doublure.methods.dpgan.settings import DpganSettings
from doublure.private.clipping import ConstantSchedule
from doublure.private.gradients import CriticLoss, RecordPairs, batch_gradient
from doublure.private.queries import lot_gradients
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.private.records import PrivateRecords
from doublure.private.sampling import PoissonSampler
from doublure.run import running
from doublure.support.progress import SilentProgress
from doublure.training.gan_loop import Adversaries, train

LAMBDA = 10.0


def check_neighbours_stay_within_the_clip(lab, schema, frames):
    base, *others = frames
    kept = lab.train(base, schema)
    worst = 0.0
    for frame in others:
        found = lab.train(frame, schema, like=kept)
        lab.assert_same_public(kept, found)
        worst = max(worst, lab.assert_within_sensitivity(kept, found))
    assert worst > 0.99  # the unit was there, and was clipped


def one_record_each(lab):
    base = lab.people()
    odd = [
        lab.with_unit(base, record, place=place)
        for place, record in zip((0, 3, 24, 9, 5), lab.ODD_RECORDS.values(), strict=True)
    ]
    return [base, *odd, lab.without_unit(base, "p7")]


def several_records_each(lab):
    """Units of two records, joined by one of nine of which three may be used, or robbed of one."""
    base = lab.people(records=2)
    odd = [lab.with_unit(base, record, records=9, place=7) for record in lab.ODD_RECORDS.values()]
    return [base, *odd, lab.without_unit(base, "p7")]


def test_no_unit_moves_a_step_by_more_than_its_noise_was_made_for(lab):
    check_neighbours_stay_within_the_clip(lab, lab.PUBLIC, one_record_each(lab))


def test_no_unit_of_several_records_does_either(lab):
    check_neighbours_stay_within_the_clip(lab, lab.SEVERAL, several_records_each(lab))


@pytest.mark.parametrize(
    "settings", [{"loss": "wgan", "weight_clip": 0.5}, {"loss": "hinge"}, {"loss": "logistic"}, {"numerics": "scaled"}]
)
def test_nor_under_another_loss_or_encoding(lab, settings):
    base, odd, *_ = one_record_each(lab)
    kept = lab.train(base, **settings)
    assert lab.assert_within_sensitivity(kept, lab.train(odd, like=kept, **settings)) > 0.5


TOTAL = "clipped.total.cpu().numpy()"
BOUND = "self.settings.bound(self.step)"
STATED = ("Sensitivity.of_length(clipped.sensitivity, len(total))", "self.sensitivity")
ALONE = "RecordPairs(real=self.seen.fake, condition=self.seen.condition)"
MEAN = "(batch_gradient(self._critic, self.settings.loss, self.seen) / max(1, len(self.seen.real)))"
MUTANTS = {
    "generated term outside the clip": [
        (TOTAL, f"(clipped.total + batch_gradient(self._critic, CriticLoss(kind='wgan'), {ALONE})).cpu().numpy()")
    ],
    "mean of the lot clipped": [
        (TOTAL, f"({MEAN} * self.settings.expected_units * min(1.0, clipped.sensitivity / "
                f"float({MEAN}.norm() + 1e-9))).cpu().numpy()"),
    ],
    "not clipped at all": [(BOUND, f"1e30 + 0 * {BOUND}"), STATED],
    "clipped to 2 C": [(BOUND, f"2 * {BOUND}"), STATED],
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_loss_that_is_not_clipped_as_a_whole_is_caught(lab, monkeypatch, mutant):
    monkeypatch.setattr(lot_gradients, "batch_gradient", batch_gradient, raising=False)
    engine = "return self.engine(self.critic, records).lot(paired, group=group, groups=groups)"
    lab.plant(CriticGradients, "gradients", (engine, f"self.seen = paired\n{engine}"))
    for edit in MUTANTS[mutant]:
        lab.plant(CriticGradients, "_clipped" if edit[0] == BOUND else "answer", edit)
    with lab.caught() as found:
        check_neighbours_stay_within_the_clip(lab, lab.PUBLIC, one_record_each(lab))
    assert "moved" in str(found.traceback[-1].statement)


RANKED = "pd.Series(codes).groupby(codes).cumcount() < max_records"


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (CriticGradients, "gradients", [("group=group, groups=groups", "")]),
        (running.FitRun, "_train",
         [("loaded.unit", "loaded.frame.index.to_numpy()"), ("loaded.n_units", "len(loaded.frame)")]),
        (tables, "_bounded", [(RANKED, f"{RANKED} + 99")]),
    ],
    ids=["records clipped one by one", "records drawn one by one", "records not bounded"],
)  # fmt: skip
def test_a_unit_that_counts_several_times_is_caught(lab, owner, name, edits):
    lab.plant(owner, name, *edits)
    with lab.caught():
        check_neighbours_stay_within_the_clip(lab, lab.SEVERAL, several_records_each(lab))


# -- no noise and no bound: the same as a loop that anybody can read ---------------------------------------------------


class Kept:
    def __init__(self):
        self.steps = []

    def save(self, step, tensors):
        self.steps.append(step)

    def load(self):
        return None


def job_of(settings, body, condition):
    """Return what ``train`` takes, over rows that need no schema."""
    encoder = SimpleNamespace(
        width=body + condition, condition_width=condition,
        body_blocks=(Block(column="a", kind="tanh", start=0, size=body),),
        draw_conditions=lambda n, rng: torch.eye(condition)[torch.from_numpy(rng.integers(condition, size=n))],
    )  # fmt: skip
    return SimpleNamespace(
        encoder=encoder, settings=settings, private=False, device="cpu", seed=3, taken=0, checkpoints=Kept(),
        progress=SilentProgress(), log=lambda line: None, check_stop=lambda: None,
        agree=lambda tensors: None,
    )  # fmt: skip


def by_hand(adversaries, rows, conditions, settings, draws):
    """WGAN-GP as its paper writes it, a record at a time, with torch's own autograd and optimisers."""
    generator, critic = adversaries.generator, adversaries.critic
    weights = {name: value.detach().clone().requires_grad_() for name, value in critic.named_parameters()}
    shapes = [value.shape for value in weights.values()]
    flat = nn.Parameter(torch.cat([value.detach().reshape(-1) for value in weights.values()]))
    critic_step = torch.optim.SGD([flat], settings.critic_lr)
    generator_step = torch.optim.Adam(generator.parameters(), settings.generator_lr, betas=(0.5, 0.9))

    def score(x, condition):
        parts = [part.view(shape) for part, shape in zip(flat.split([s.numel() for s in shapes]), shapes, strict=True)]
        return functional_call(critic, dict(zip(weights, parts, strict=True)), (x, condition))

    for _ in range(settings.steps // settings.n_critic):
        for _ in range(settings.n_critic):
            noise, mix = draws.pop(0)
            total = torch.zeros(())
            for x, c, z, u in zip(rows, conditions, noise, mix, strict=True):
                fake = generator(z[None], c[None]).detach()
                between = (u * x[None] + (1 - u) * fake).requires_grad_()
                (slope,) = torch.autograd.grad(score(between, c[None]).sum(), between, create_graph=True)
                penalty = LAMBDA * (slope.norm() - 1) ** 2
                total = total + score(fake, c[None])[0] - score(x[None], c[None])[0] + penalty
            critic_step.zero_grad()
            (total / len(rows)).backward()
            critic_step.step()
        noise, condition = draws.pop(0)
        generator_step.zero_grad()
        (-score(generator(noise, condition), condition).mean()).backward()
        generator_step.step()
    return torch.cat([p.detach().reshape(-1) for p in generator.parameters()]), flat.detach()


def check_without_noise_and_bound_it_is_plain_training(lab, patch):
    rows, conditions = (
        torch.randn(7, 3, generator=torch.Generator().manual_seed(0)),
        torch.eye(2)[[0, 1, 1, 0, 0, 1, 1]],
    )
    settings = DpganSettings(**(lab.TINY | {"steps": 6, "n_critic": 2, "critic_optimizer": "sgd", "critic_lr": 0.05}))
    job = job_of(settings, 3, 2)
    twin, adversaries = Adversaries(job, settings), Adversaries(job, settings)
    draws, pending, noise, mix = [], [], Adversaries._noise, CriticGradients._mix

    def drawn(self, size, stream):
        z = noise(self, size, stream)
        (pending if stream is self._paired else draws).append(z)
        return z

    def mixed(self, size):
        u = mix(self, size)
        draws.append((pending.pop(), u))
        return u

    choose = job.encoder.draw_conditions

    def chosen(n, rng):
        pending.append(choose(n, rng))
        return pending[-1]

    size = sum(p.numel() for p in adversaries.critic.parameters())
    step = critic_steps(
        PrivateRecords(torch.cat([rows, conditions], 1), torch.arange(7).numpy(), 7, lambda x: (x[:, :3], x[:, 3:])),
        dict(
            loss=CriticLoss(kind="wgan", gradient_penalty=LAMBDA), schedule=ConstantSchedule(max_grad_norm=1e6),
            noise_multiplier=1.0, sample_rate=1.0, steps=6, expected_units=7.0, n_critic=2,
        ),
        noise=ReplayNoise(repeat(torch.zeros(size))),
        mixing=torch.Generator().manual_seed(1), allow_test_noise=True,
    )  # fmt: skip
    with patch.context() as inner:
        inner.setattr(Adversaries, "_noise", drawn)
        inner.setattr(CriticGradients, "_mix", mixed)
        job.encoder.draw_conditions = chosen
        train(job, settings, step, adversaries)
    # The generator's own draws are its noise and its conditions, in this order of happening: condition, noise.
    kept = [draw if isinstance(draw, tuple) else (draw, pending.pop(0)) for draw in draws]
    start = torch.cat([p.detach().reshape(-1) for p in twin.generator.parameters()])
    generator, critic = by_hand(twin, rows, conditions, settings, kept)
    assert float((generator - start).norm()) > 1e-3
    made = torch.cat([p.detach().reshape(-1) for p in adversaries.generator.parameters()])
    for mine, theirs in ((adversaries.flat.detach(), critic), (made, generator)):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_without_noise_and_bound_it_is_plain_training(lab, monkeypatch):
    check_without_noise_and_bound_it_is_plain_training(lab, monkeypatch)


@pytest.mark.parametrize(
    ("owner", "name", "make"),
    [
        (CriticLoss, "on_slope", lambda old: lambda self, gradient: gradient.flatten(1).sum(1) * 0),
        (CriticLoss, "on_fake", lambda old: lambda self, scores: scores * 0),
        (Adversaries, "follow", lambda old: lambda self, gradient: old(self, -gradient)),
        (RecordPairs, "mixed", lambda old: lambda self: self.real.clone()),
    ],
    ids=["penalty dropped", "generated term dropped", "ascent", "penalty at the real record"],
)
def test_another_loss_is_caught(lab, monkeypatch, owner, name, make):
    monkeypatch.setattr(owner, name, make(getattr(owner, name)))
    with lab.caught():
        check_without_noise_and_bound_it_is_plain_training(lab, monkeypatch)


def check_a_window_of_one_unit_stays_with_it(lab, patch):
    """A unit is in a lot with all of its records or with none."""
    drawn, lot = [], PrivateRecords.lot

    def watched(records, units):
        found = lot(records, units)
        drawn.append((found[2], len(found[0]), len(units)))
        return found

    with patch.context() as inner:
        inner.setattr(PrivateRecords, "lot", watched)
        inner.setattr(PoissonSampler, "lot", lambda sampler: np.array([1, 4, 20]))
        step = lab.mechanism(
            torch.ones(48, 3),
            dict(
                loss=CriticLoss(kind="wgan"), schedule=ConstantSchedule(max_grad_norm=1.0), noise_multiplier=1.0,
                sample_rate=0.1, steps=1, expected_units=2.4,
            ),
            unit=[i // 2 for i in range(48)], noise=ReplayNoise([torch.zeros(3)]),
        )  # fmt: skip
        critic = nn.Linear(3, 1, bias=False)
        critic.forward = lambda x, condition=None: x @ critic.weight[0]
        step.gradient(critic, lambda size, condition: torch.zeros(size, 3))
    group, records, units = drawn[-1]
    assert (records, units) == (6, 3)
    assert group.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_unit_comes_with_all_its_records(lab, monkeypatch):
    check_a_window_of_one_unit_stays_with_it(lab, monkeypatch)


def test_half_a_unit_is_caught(lab, monkeypatch):
    place = "place = np.repeat(np.arange(len(units)), counts)"
    lab.plant(PrivateRecords, "lot", (place, f"counts = counts - 1\n{place}"))
    with lab.caught():
        check_a_window_of_one_unit_stays_with_it(lab, monkeypatch)
