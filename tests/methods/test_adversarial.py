"""The training loop, and what it moves: networks, optimisers, the average, the checkpoint."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch.nn import functional

from doublure.errors import RunFolderError
from doublure.methods.dpgan import method as dpgan
from doublure.methods.gan import method as gan
from doublure.private.noise import OsKeyedDraws
from doublure.schema import Schema
from doublure.training.gan_loop import Adversaries, prepare, train

CONDITIONS = """
doublure: 1
kind: table
units: 400
columns:
  rain: {type: integer, bounds: [0, 3], missing: false}
  place: {type: category, values: [hill, coast], missing: false, roles: [condition], shares: {hill: 0.9, coast: 0.1}}
  season: {type: ordinal, values: [1, 2, 3, 4], missing: false, roles: [condition]}
  sun: {type: category, values: [none, some, much], missing: false, roles: [condition], shares: {learn: 0.5}}
"""
NONE = CONDITIONS.replace(", roles: [condition], shares: {hill: 0.9, coast: 0.1}", "").replace(
    ", roles: [condition], shares: {learn: 0.5}", ""
).replace(", roles: [condition]", "")  # fmt: skip


def made(job):
    return Adversaries(job, job.settings)


def flat(module):
    return torch.cat([value.detach().reshape(-1) for value in module.parameters()])


def gradients(adversaries, number):
    draw = torch.Generator().manual_seed(7)
    return [torch.randn(len(adversaries.flat), generator=draw) for _ in range(number)]


class CriticTrainer:
    """Trains nothing, and counts."""

    def __init__(self, adversaries, steps, taken=0, told=None):
        self.size, self.steps, self.taken, self.told = len(adversaries.flat), steps, taken, told

    def skip(self, steps):
        assert steps == 0  # nothing was restored

    def gradient(self, critic, partner):
        self.taken += 1
        if self.told is not None:
            self.told.append("critic")
        return torch.ones(self.size)


# -- the critic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adam", "sgd", "rmsprop"])
def test_the_critic_follows_its_optimizer(world, name):
    """The flat buffer moves as torch's own optimiser moves the weights one by one."""
    adversaries = made(world.job(critic_optimizer=name, critic_lr=0.01))
    twin = [value.detach().clone().requires_grad_() for value in adversaries.critic.parameters()]
    by_hand = {
        "adam": lambda: torch.optim.Adam(twin, 0.01, betas=(0.5, 0.9)),
        "sgd": lambda: torch.optim.SGD(twin, 0.01),
        "rmsprop": lambda: torch.optim.RMSprop(twin, 0.01),
    }[name]()
    for gradient in gradients(adversaries, 4):
        adversaries.follow(gradient.clone())
        for value, part in zip(twin, gradient.split([value.numel() for value in twin]), strict=True):
            value.grad = part.view_as(value)
        by_hand.step()
    for mine, theirs in zip(adversaries.critic.parameters(), twin, strict=True):
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=1e-5, atol=1e-7)
        assert not mine.requires_grad


@pytest.mark.parametrize("loss", ["wgan-gp", "wgan", "logistic", "hinge"])
def test_weights_are_clipped_for_wgan_alone(world, loss):
    adversaries = made(world.job(loss=loss, weight_clip=0.01, critic_optimizer="sgd", critic_lr=1.0))
    adversaries.follow(gradients(adversaries, 1)[0])
    largest = float(flat(adversaries.critic).abs().max())
    assert largest == pytest.approx(0.01) if loss == "wgan" else largest > 0.5


def test_rows_paired_with_records_are_rows_for_their_conditions(world):
    adversaries = made(world.job())
    condition = torch.eye(2)[[0] * 50 + [1] * 50]
    with torch.no_grad():
        adversaries.generator.by_class.weight[:3] = torch.tensor([[30.0, 0.0], [0.0, 0.0], [0.0, 30.0]])
    rows = adversaries.partner(100, condition).detach()
    assert rows.shape == (100, 7)
    assert (rows[:50, 0] > 0.99).all()
    assert (rows[50:, 2] > 0.99).all()
    assert not torch.equal(rows, adversaries.partner(100, condition))  # fresh ones each time


# -- the generator -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["wgan-gp", "wgan", "logistic", "hinge"])
def test_the_generator_climbs_towards_the_critics_favour(world, loss):
    adversaries = made(world.job(loss=loss, generator_lr=0.01))
    noise = torch.randn(200, 4, generator=torch.Generator().manual_seed(3))
    condition = torch.eye(2)[[0, 1] * 100]

    def score():
        with torch.no_grad():
            return float(adversaries.critic(adversaries.generator(noise, condition), condition).mean())

    before, critic = score(), adversaries.flat.detach().clone()
    for _ in range(30):
        adversaries.improve_generator()
    assert score() > before + 0.1
    assert torch.equal(adversaries.flat.detach(), critic)
    assert adversaries.iterations == 30


@pytest.mark.parametrize("loss", ["wgan-gp", "wgan", "logistic", "hinge"])
def test_the_generators_loss_is_the_losss_own(world, loss):
    adversaries, seen = made(world.job(loss=loss)), []
    adversaries.critic.register_forward_hook(lambda module, inputs, scores: seen.append(scores.detach()))
    value = adversaries.improve_generator()
    (scores,) = seen
    assert len(scores) == 64
    # Saturating for nobody: the logistic generator's is Goodfellow's alternative loss, the others' the score itself.
    expected = functional.softplus(-scores).mean() if loss == "logistic" else -scores.mean()
    assert value == pytest.approx(float(expected), rel=1e-5)


def test_an_anchor_is_added_to_the_generators_loss(world):
    """And pulls at it: here at its size."""
    free, held = (
        Adversaries(job, job.settings, anchor=anchor)
        for job, anchor in (
            (world.job(generator_lr=0.01), None),
            (world.job(generator_lr=0.01), lambda generator: 5.0 + 1e3 * flat_of(generator).square().mean()),
        )
    )
    size = float(flat(held.generator).square().mean())
    assert held.improve_generator() == pytest.approx(free.improve_generator() + 5.0 + 1e3 * size, rel=1e-4)
    for _ in range(20):
        held.improve_generator()
    assert float(flat(held.generator).square().mean()) < 0.8 * size


def flat_of(module):
    return torch.cat([value.reshape(-1) for value in module.parameters()])


def test_the_average_follows_the_weights_faster_at_first(world):
    adversaries = made(world.job(generator_average=0.5, generator_lr=0.05))
    kept = flat(adversaries.generator)
    for weight in [2 / 11, 3 / 12, 4 / 13, 5 / 14, 6 / 15, 7 / 16, 8 / 17, 9 / 18, 0.5, 0.5]:
        adversaries.improve_generator()
        kept = weight * kept + (1 - weight) * flat(adversaries.generator)
        torch.testing.assert_close(flat(adversaries.average), kept, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(flat(adversaries.average), flat(adversaries.generator), atol=1e-3)


def test_without_an_average_the_last_weights_are_given_out(world):
    job = world.job(generator_average=0.0)
    adversaries = made(job)
    given = train(job, job.settings, CriticTrainer(adversaries, 6), adversaries)
    assert torch.equal(flat(given), flat(adversaries.generator))
    assert given is adversaries.average


def test_conditions_come_by_declared_bought_or_equal_shares(world):
    schema = Schema.parse(CONDITIONS).resolve({"columns.sun.shares": {"none": 0.2, "some": 0.3, "much": 0.5}})
    frame = world.frame().assign(season=np.arange(400) % 4 + 1)
    job = world.job(text=CONDITIONS, schema=schema, frame=frame, generator_batch=4000)
    adversaries, given = made(job), {}
    adversaries.generator.register_forward_hook(lambda module, inputs, rows: given.update(generator=inputs[1]))
    adversaries.critic.register_forward_hook(lambda module, inputs, scores: given.update(critic=inputs[1]))
    adversaries.improve_generator()
    drawn = given["generator"]
    assert torch.equal(drawn, given["critic"])
    assert drawn.shape == (4000, 2 + 4 + 3)
    for part in drawn.split([2, 4, 3], dim=1):
        assert (part.sum(1) == 1).all()
    shares = [0.9, 0.1] + [0.25] * 4 + [0.2, 0.3, 0.5]
    assert drawn.mean(0).tolist() == pytest.approx(shares, abs=5 * np.sqrt(0.25 / 4000))


@pytest.mark.parametrize("loss", ["wgan-gp", "hinge"])
def test_a_table_without_conditions_trains(world, loss):
    job = world.job(text=NONE, frame=world.frame().assign(season=np.arange(400) % 4 + 1), loss=loss)
    assert job.encoder.condition_width == 0
    before = flat(made(job).generator)
    assert not torch.equal(flat(gan.METHOD.train(job)), before)


def test_scaled_numbers_train(world):
    job = world.job("dpgan", numerics="scaled")
    rows = dpgan.METHOD.train(job)(torch.randn(9, 4, generator=torch.Generator().manual_seed(3)), torch.eye(2)[[0] * 9])
    assert "tanh" in [block.kind for block in job.encoder.body_blocks]
    assert torch.isfinite(rows).all()


def test_networks_are_as_large_as_asked(world):
    sizes = {"width": 5, "depth": 3, "critic_width": 6, "critic_depth": 2, "noise_width": 7}
    adversaries = made(world.job(**sizes))
    shapes = [
        [tuple(layer.weight.shape) for layer in module.body if isinstance(layer, torch.nn.Linear)]
        for module in (adversaries.generator, adversaries.critic)
    ]
    assert shapes[0] == [(5, 7 + 2), (5, 5), (5, 5), (7, 5)]
    assert shapes[1] == [(6, 2 * 7 + 2), (6, 6), (1, 6)]


# -- the loop ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_critic", "taken", "order"),
    [(1, 0, "cgcgcgcgcgcgcg"), (3, 0, "cccgcccgcg"), (3, 5, "ccg"), (9, 0, "cccccccg"), (1, 7, "")],
)
def test_every_iteration_has_n_critic_steps_and_the_last_what_is_left(world, monkeypatch, n_critic, taken, order):
    told = []
    job = world.job(steps=7, n_critic=n_critic)
    adversaries = made(job)
    monkeypatch.setattr(adversaries, "improve_generator", lambda: told.append("generator") or 0.0)
    teacher = CriticTrainer(adversaries, 7, taken, told)
    train(job, job.settings, teacher, adversaries)
    assert "".join(act[0] for act in told) == order
    assert teacher.taken == 7


def test_states_and_lines_are_kept_on_the_way(world):
    memory, lines = world.Memory(), []
    job = world.job(steps=7, n_critic=3, checkpoints=2, memory=memory, log=lines.append)
    adversaries = made(job)
    train(job, job.settings, CriticTrainer(adversaries, 7), adversaries)
    assert memory.steps == [6, 7]
    assert [line["step"] for line in lines] == [6]
    assert np.isfinite(lines[0]["generator_loss"])
    assert int(memory.kept["iterations"][0]) == 3


# -- checkpoints -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adam", "sgd", "rmsprop"])
def test_a_kept_state_goes_on_as_if_nothing_had_happened(world, monkeypatch, name):
    """Networks, average, both optimisers and the count: bit for bit, through a file and back."""
    job = world.job(critic_optimizer=name)
    adversaries, steps = made(job), gradients(made(job), 5)
    fixed = torch.randn(64, 4, generator=torch.Generator().manual_seed(3))
    monkeypatch.setattr(Adversaries, "_noise", lambda self, size, stream: fixed[:size])
    monkeypatch.setattr(job.encoder, "draw_conditions", lambda size, rng: torch.eye(2)[[0, 1] * (size // 2)])
    for gradient in steps[:3]:
        adversaries.follow(gradient.clone())
        adversaries.improve_generator()
    content = save(adversaries.state())
    kept = load(content)
    fresh = made(job)
    assert not torch.equal(fresh.flat, adversaries.flat)
    resumed = prepare(world.job(critic_optimizer=name, memory=world.Memory(kept), taken=3), job.settings)
    resumed._encoder = job.encoder
    assert save(resumed.state()) == content
    for gradient in steps[3:]:
        for both in (adversaries, resumed):
            both.follow(gradient.clone())
            both.improve_generator()
    assert save(resumed.state()) == save(adversaries.state())
    assert not torch.equal(adversaries.flat.detach(), kept["critic"])


def test_a_kept_state_does_not_move_with_the_run(world):
    adversaries = made(world.job())
    kept = adversaries.state()
    before = copy.deepcopy(kept)
    adversaries.follow(gradients(adversaries, 1)[0])
    adversaries.improve_generator()
    assert all(torch.equal(kept[name], before[name]) for name in kept)


@pytest.mark.parametrize("what", ["another width", "without the critic", "without the average", "of nothing"])
def test_a_state_that_does_not_fit_is_refused_in_one_line(world, what):
    kept = made(world.job(critic_width=9, width=9) if what == "another width" else world.job()).state()
    if what == "without the critic":
        del kept["critic"]
    elif what == "without the average":
        kept = {name: value for name, value in kept.items() if not name.startswith("average.")}
    elif what == "of nothing":
        kept["iterations"] = torch.zeros(0)
    job = world.job(memory=world.Memory(kept))
    with pytest.raises(RunFolderError) as caught:
        prepare(job, job.settings)
    assert caught.value.field == "checkpoint"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number_is_logged_as_null(world, monkeypatch, loss):
    """JSON knows no NaN: a reader of ``log.jsonl`` would stop at it."""
    lines = []
    monkeypatch.setattr(Adversaries, "improve_generator", lambda self: loss)
    gan.METHOD.train(world.job(steps=2, checkpoints=2, log=lines.append))
    assert [line["generator_loss"] for line in lines] == [None, None]
    assert json.loads(json.dumps(lines, allow_nan=False)) == lines


# -- seeds -------------------------------------------------------------------------------------------------------------


def test_a_seed_fixes_the_first_weights_wherever_a_run_goes_on(world):
    first, again, later, other = (
        made(world.job(name, seed=seed, taken=taken))
        for name, seed, taken in (("dpgan", 4, 0), ("gan", 4, 0), ("dpgan", 4, 3), ("dpgan", 5, 0))
    )
    for twin in (again, later):
        assert torch.equal(twin.flat, first.flat)
        assert torch.equal(flat(twin.generator), flat(first.generator))
    assert not torch.equal(other.flat, first.flat)
    assert not torch.equal(flat(other.generator), flat(first.generator))


def test_without_a_claim_the_seed_governs_the_paired_rows_too(world):
    """And never under one: there they are drawn in secret."""
    rows = [made(world.job(seed=seed, taken=taken)).partner(5, torch.eye(2)[[0] * 5]) for seed, taken in
            ((4, 0), (4, 0), (5, 0), (4, 3))]  # fmt: skip
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    assert not torch.equal(rows[0], rows[3])
    secret = [made(world.job("dpgan", seed=4)) for _ in range(2)]
    assert {type(each._paired) for each in secret} == {OsKeyedDraws}
    assert not torch.equal(*(each.partner(5, torch.eye(2)[[0] * 5]) for each in secret))


def test_a_resumed_run_does_not_repeat_what_the_generator_was_shown(world):
    """The same public streams twice would show it the same noise and the same conditions again."""
    shown = []
    for taken in (0, 0, 3):
        adversaries = made(world.job(seed=4, taken=taken))
        adversaries.generator.register_forward_hook(lambda module, inputs, rows: shown.append(inputs))
        adversaries.improve_generator()
    for first, again, later in zip(*shown, strict=True):
        assert torch.equal(first, again)
        assert not torch.equal(first, later)


def test_no_global_randomness_decides_the_weights(world):
    weights = []
    for seed in (0, 1):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            adversaries = made(world.job(seed=2))
            weights.append(torch.cat([adversaries.flat.detach(), flat(adversaries.generator)]))
    assert torch.equal(*weights)
