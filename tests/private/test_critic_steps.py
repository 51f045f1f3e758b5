"""A critic's noisy steps: what they are made of, what they add beside, and what is refused before the first of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from critic_steps import Critic, critic_steps, people
from replay_noise import ReplayNoise
from torch import Tensor, nn

from doublure.access import Access
from doublure.errors import SettingError
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.private.clipping import ConstantSchedule, GeometricSchedule
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss, RecordPairs, per_record_reference
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries.lot_gradients import CriticSettings, unpaired
from doublure.private.records import PrivateRecords

NAN = float("nan")
WGAN, PENALISED = CriticLoss(kind="wgan"), CriticLoss(kind="wgan", gradient_penalty=1.0)


SIZE = sum(parameter.numel() for parameter in Critic().parameters())


def records_of(body: Tensor) -> PrivateRecords:
    return PrivateRecords(body, np.arange(len(body)), len(body), lambda rows: (rows, None))


def step_of(body: Tensor | None = None, **changes: object) -> CriticSteps:
    names = ("taken", "noise", "authorise", "allow_test_noise", "mixing")
    more = {key: changes.pop(key) for key in names if key in changes}
    given = {
        "loss": WGAN, "schedule": ConstantSchedule(max_grad_norm=2.0), "noise_multiplier": 1.5, "sample_rate": 0.5,
        "steps": 6, "expected_units": 4.0, "paired": False,
    } | changes  # fmt: skip
    return critic_steps(records_of(people() if body is None else body), given, **more)


def gradients_of(critic: nn.Module, body: Tensor) -> Tensor:
    return per_record_reference(critic, WGAN, RecordPairs(real=body))


# -- real records alone ------------------------------------------------------------------------------------------------


def test_without_partners_the_gradient_is_of_real_records_alone() -> None:
    body, critic = people(), Critic()

    def partner(size: int, condition: Tensor | None) -> Tensor:
        raise AssertionError("asked for a partner")

    step = step_of(
        body, schedule=ConstantSchedule(max_grad_norm=1e6), sample_rate=1.0, allow_test_noise=True,
        noise=ReplayNoise([torch.zeros(SIZE)]),
    )  # fmt: skip
    found = step.gradient(critic, partner) * 4.0
    assert torch.allclose(found.double(), gradients_of(critic, body).sum(0), rtol=1e-4, atol=1e-5)


def test_generated_records_are_clipped_alike_and_not_noised() -> None:
    body, critic = people(), Critic()
    each = gradients_of(critic, body)
    bound = float(np.median(each.norm(dim=1).numpy()))
    step = step_of(body, schedule=ConstantSchedule(max_grad_norm=bound))
    found = step.generated_gradient(critic, body, None)
    short = each * torch.clamp(bound / each.norm(dim=1, keepdim=True), max=1.0)
    assert torch.allclose(found.double(), -short.mean(0), rtol=1e-4, atol=1e-6)
    assert torch.equal(found, step.generated_gradient(critic, body, None))
    assert step.taken == 0
    with pytest.raises(SettingError, match="in the step already"):
        step_of(body, paired=True).generated_gradient(critic, body, None)


def test_generated_records_are_clipped_together_where_real_ones_are() -> None:
    body, critic = people(), Critic()
    mean = gradients_of(critic, body).mean(0)
    for bound in (0.5 * float(mean.norm()), 2.0 * float(mean.norm())):
        step = step_of(body, schedule=ConstantSchedule(max_grad_norm=bound), per_batch=True)
        found = step.generated_gradient(critic, body, None)
        assert torch.allclose(found.double(), -mean * min(1.0, bound / float(mean.norm())), rtol=1e-4, atol=1e-6)


def test_generated_records_are_clipped_by_the_bound_of_the_step_that_was_taken() -> None:
    body, critic = people() * 100, Critic()
    step = step_of(body, schedule=GeometricSchedule(max_grad_norm=1.0, decay=0.5, floor=1e-6), paired=False)
    lengths = []
    for _ in range(3):
        step.gradient(critic, unpaired)
        lengths.append(float(step.generated_gradient(critic, body[:1], None).norm()))
    assert lengths == pytest.approx([1.0, 0.5, 0.25], rel=1e-5)


# -- steps -------------------------------------------------------------------------------------------------------------


def test_a_step_is_the_noisy_sum_over_a_public_divisor() -> None:
    noise = ReplayNoise([torch.arange(float(SIZE))])
    step = step_of(people(0), noise=noise, allow_test_noise=True, schedule=ConstantSchedule(max_grad_norm=0.5))
    found = step.gradient(Critic(), unpaired)  # of no record: noise alone
    assert noise.asked == [(SIZE, 1.5 * 0.5)]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, torch.arange(float(SIZE)) * 0.75 / 4.0)
    assert (step.steps, step.taken) == (6, 1)


def test_steps_of_an_earlier_session_are_not_taken_again() -> None:
    """The clip goes on where it stopped, too."""

    class Silent:
        name, for_tests = "silent", True

        def normal(self, size: int, std: float) -> ScaledNoise:
            asked.append(std)
            return ScaledNoise(np.zeros(size, dtype=np.float32), std)

    asked: list[float] = []
    numbers: list[int] = []
    step = step_of(
        taken=4, authorise=numbers.append, noise=Silent(), allow_test_noise=True,
        schedule=GeometricSchedule(max_grad_norm=1.0, decay=0.5, floor=1e-6),
    )  # fmt: skip
    for _ in range(2):
        step.gradient(Critic(), unpaired)
    assert numbers == [5, 6]
    assert asked == [1.5 * 0.5**4, 1.5 * 0.5**5]
    with pytest.raises(SettingError, match="all noisy steps") as refused:
        step.gradient(Critic(), unpaired)
    assert refused.value.field == "steps"
    assert (len(numbers), len(asked), step.taken) == (2, 2, 6)


# -- what a step may be ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, -1.0, NAN, float("inf")])
def test_a_step_without_noise_is_refused(sigma: float) -> None:
    with pytest.raises(SettingError) as refused:
        step_of(noise_multiplier=sigma)
    assert refused.value.field == "noise_multiplier"


def falling(first: float, floor: float) -> GeometricSchedule:
    return GeometricSchedule(max_grad_norm=first, decay=1e-9, floor=floor)


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": falling(1e38, 1.0)},  # only the first is out of range
        {"schedule": falling(1.0, 1e-35), "steps": 9},  # only the last ones are
        {"schedule": falling(1.0, 1e-35), "steps": 9, "n_critic": 2},
        {"noise_multiplier": 1e31},
        {"schedule": ConstantSchedule(max_grad_norm=1e15), "expected_units": 1e15, "per_batch": True},
    ],
    ids=str,
)
def test_noise_that_could_not_be_drawn_is_refused_before_any_step(changes: dict[str, object]) -> None:
    with pytest.raises(SettingError) as refused:
        step_of(**changes)
    assert refused.value.field == "max_grad_norm"


def test_noise_that_can_be_drawn_at_every_step_is_taken() -> None:
    assert step_of(schedule=falling(1.0, 1e-35), steps=4).steps == 4
    assert step_of(schedule=falling(1.0, 1e-35), steps=8, n_critic=2).steps == 8
    assert step_of(schedule=GeometricSchedule(max_grad_norm=1.0, decay=1e-35, floor=1e-35), steps=1).steps == 1
    assert step_of(schedule=ConstantSchedule(max_grad_norm=1e15), expected_units=1e15).steps == 6


def test_mixing_numbers_that_can_be_repeated_are_for_tests() -> None:
    """Whoever knew where the slopes are taken would know what the guarantee counts on being secret."""
    own = torch.Generator().manual_seed(0)
    with pytest.raises(SettingError, match="tests only") as refused:
        step_of(loss=PENALISED, paired=True, mixing=own)
    assert refused.value.field == "mixing"
    step_of(loss=PENALISED, paired=True, mixing=own, allow_test_noise=True)
    step_of(loss=WGAN, paired=True, mixing=own)  # no slope is taken


def test_an_access_without_gaussian_noise_pays_for_no_step() -> None:
    access = Access(purpose="count", event=DiscreteGaussianEvent(scale=1.0))
    mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: None)
    settings = CriticSettings(loss=WGAN, schedule=ConstantSchedule(max_grad_norm=1.0), expected_units=1.0, paired=False)
    with pytest.raises(TypeError, match="count: is no GaussianEvent"):
        CriticSteps(mechanism, access, records_of(people()), settings)


def test_an_access_of_another_plan_pays_for_no_step() -> None:
    mine, other = (Access(purpose=name, event=GaussianEvent(noise_multiplier=1.0)) for name in ("mine", "other"))
    asked: list[int] = []
    mechanism = Mechanism([mine], noise=OsKeyedNoise(), authorise=lambda access, step: asked.append(step))
    settings = CriticSettings(loss=WGAN, schedule=ConstantSchedule(max_grad_norm=1.0), expected_units=1.0, paired=False)
    step = CriticSteps(mechanism, other, records_of(people()), settings)
    with pytest.raises(SettingError, match="no access of the plan"):
        step.gradient(Critic(), unpaired)
    assert asked == []


def test_an_estimate_goes_on_where_there_is_one(monkeypatch) -> None:
    step, seen = step_of(), []
    step.restore({})
    monkeypatch.setattr(step, "_distances", SimpleNamespace(restore=seen.append))
    step.restore({"sums": np.ones(3)})
    (state,) = seen
    assert list(state) == ["sums"]
