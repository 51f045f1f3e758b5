"""A whole noisy step on neighbouring data sets: whatever the records, one unit moves it by at most its clip.

What the guarantee counts on being random is frozen: who is in a lot, which row a record is paired with, where between
the two a slope is taken, and the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from critic_steps import critic_steps
from hypothesis import example, given, settings
from hypothesis import strategies as st
from replay_noise import ReplayNoise
from torch import Tensor, nn

from doublure.errors import NotAsPriced, SettingError
from doublure.private import clipping
from doublure.private.clipping import GeometricSchedule
from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs
from doublure.private.queries import lot_gradients as module
from doublure.private.queries.lot_gradients import CriticGradients, CriticSettings
from doublure.private.records import PrivateRecords
from doublure.private.sampling import PoissonSampler

WIDTH, STEPS, SIGMA, EXPECTED = 3, 2, 1.5, 2.0
SCHEDULE = GeometricSchedule(max_grad_norm=0.7, decay=0.5, floor=0.1)
HOSTILE = [0.0, -1.0, 1e-3, 1e-20, 1e-45, 1e20, -1e30, 3e38, -3e38, float("inf"), float("nan")]
NAN, HUGE = float("nan"), 1e20


class Critic(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WIDTH, 8), activation, nn.Linear(8, 1))
        draw = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=draw) / 2)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.body(x).squeeze(1)


@dataclass(frozen=True)
class Unit:
    """Records, each with its partner and mixing number ``(r, 2 · WIDTH + 1)``, and the lots that the unit is in."""

    records: tuple[tuple[float, ...], ...]
    lots: tuple[bool, ...] = (True,) * STEPS


@st.composite
def units(draw: st.DrawFn) -> Unit:
    value = st.one_of(st.sampled_from(HOSTILE), st.floats(-3, 3, width=32))
    record = st.tuples(*[value] * (2 * WIDTH), st.floats(0, 1, width=32))
    lots = st.tuples(*[st.booleans()] * STEPS)
    return Unit(tuple(draw(st.lists(record, max_size=3))), draw(lots))


@pytest.fixture(scope="module")
def engines() -> dict[str, tuple[nn.Module, RecordGradients]]:
    """Return critics that have been looked at already, so that the search spends its time on records."""
    torch.set_num_threads(1)
    made = {}
    for name, activation, loss in (
        ("wgan-gp", nn.LeakyReLU(0.2), CriticLoss(kind="wgan", gradient_penalty=10.0)),
        ("logistic", nn.SiLU(), CriticLoss(kind="logistic")),
    ):
        critic = Critic(activation)
        made[name] = critic, RecordGradients(critic, loss), loss
    return made


def taken(engine: tuple[nn.Module, RecordGradients, CriticLoss], everyone: list[Unit]) -> tuple[list[Tensor], object]:
    """Take all steps and return what they give, times the divisor, and what can be seen of them."""
    critic, gradients, loss = engine
    size = sum(p.numel() for p in critic.parameters())
    draw = torch.Generator().manual_seed(5)
    noise = ReplayNoise([torch.randn(size, generator=draw) for _ in range(STEPS)])
    rows = [torch.tensor(unit.records, dtype=torch.float32).view(-1, 2 * WIDTH + 1) for unit in everyone]
    owner = np.repeat(np.arange(len(everyone)), [len(own) for own in rows]).astype(np.int64)
    compact = torch.cat([torch.zeros(0, 2 * WIDTH + 1), *rows])
    authorised: list[int] = []
    step = critic_steps(
        PrivateRecords(compact[:, :WIDTH], owner, len(everyone), lambda body: (body, None)),
        {
            "loss": loss, "schedule": SCHEDULE, "noise_multiplier": SIGMA, "sample_rate": 0.5, "steps": STEPS,
            "expected_units": EXPECTED,
        },
        noise=noise, authorise=authorised.append, allow_test_noise=True,
    )  # fmt: skip
    step._query._gradients = critic, gradients
    found = []
    for number in range(STEPS):
        inside = [place for place, unit in enumerate(everyone) if unit.lots[number]]
        lot = torch.cat([torch.zeros(0, 2 * WIDTH + 1), *(rows[place] for place in inside)])
        step._query._mix = lambda size, lot=lot: lot[:, -1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PoissonSampler, "lot", lambda sampler, inside=inside: np.array(inside, dtype=np.int64))
            noisy = step.gradient(critic, lambda size, condition, lot=lot: lot[:, WIDTH:-1])
        found.append(noisy.double() * EXPECTED)
    return found, (noise.asked, authorised, step._mechanism.executed.to_json(), step.taken)


def require_neighbours(engine, everyone: list[Unit], place: int) -> None:
    """Require that leaving one unit out changes nothing to be seen, and each step by at most its clip."""
    without = everyone[:place] + everyone[place + 1 :]
    (one, seen), (other, also_seen) = taken(engine, everyone), taken(engine, without)
    assert seen == also_seen
    for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
        assert mine.isfinite().all()
        assert theirs.isfinite().all()
        bound = SCHEDULE.at(number)
        assert seen[0][number][1] == SIGMA * bound
        # The sums are rounded to float32, with and without the unit, by some share of all that is added up.
        rounding = 2.0**-22 * (float(mine.norm() + theirs.norm()) + bound * len(everyone))
        within = bound * (1 + 1e-6) if everyone[place].lots[number] else 0.0
        assert (mine - theirs).norm() <= within + rounding


@pytest.mark.parametrize("name", ["wgan-gp", "logistic"])
@settings(max_examples=60, deadline=None)
@example(everyone=[Unit(((HUGE,) * 7,) * 3), Unit(()), Unit(((NAN,) * 6 + (0.5,),))], which=0)
@example(everyone=[Unit(()), Unit(((5.0,) * 3 + (1.0,) * 3 + (0.5,),) * 2)], which=1)  # as many records as units
@given(everyone=st.lists(units(), min_size=1, max_size=5), which=st.integers(0, 4))
def test_neighbours_differ_by_one_clip(engines, name, everyone, which):
    require_neighbours(engines[name], everyone, which % len(everyone))


ORDINARY = Unit(((1.0, -2.0, 0.5, 0.0, 1.0, -1.0, 0.25),))
LOUD = Unit((((5.0, -9.0, 7.0, 0.5, 0.0, 0.0, 0.75)),) * 3)
ODD = Unit(((NAN, 1.0, 1.0, 0.0, 0.0, 0.0, 0.5),))


@pytest.mark.parametrize(
    "mutant", ["no clip", "nan kept", "record by record", "as many records as units", "noise by the lot"]
)
def test_mutants_are_caught(monkeypatch, engines, mutant):
    everyone, place = [ORDINARY, LOUD, ORDINARY], 1
    if mutant == "no clip":
        monkeypatch.setattr(clipping, "clip_factors", lambda norms, bound: torch.ones_like(norms))
    elif mutant == "nan kept":
        monkeypatch.setattr(
            clipping, "clip_factors", lambda norms, bound: torch.where(norms > bound, bound / norms, 1.0)
        )
        everyone = [ORDINARY, ODD, ORDINARY]
    elif mutant == "record by record":
        lot = PrivateRecords.lot

        def apart(records, chosen):
            body, condition, _, _ = lot(records, chosen)
            return body, condition, None, len(body)

        monkeypatch.setattr(PrivateRecords, "lot", apart)
    elif mutant == "as many records as units":
        made = PrivateRecords.__init__

        def hasty(records, compact, unit, n_units, expand):
            made(records, compact, unit, n_units, expand)
            records._single = n_units == len(compact)

        monkeypatch.setattr(PrivateRecords, "__init__", hasty)
        everyone = [Unit(()), Unit(LOUD.records[:2])]
    else:
        summed = clipping.clipped_sum

        def by_the_lot(lot, *, max_grad_norm, per_batch=None):
            made = summed(lot, max_grad_norm=max_grad_norm, per_batch=per_batch)
            return clipping.ClippedSum(
                total=made.total, sensitivity=max_grad_norm / max(1, lot.units), norms=made.norms
            )

        monkeypatch.setattr(module, "clipped_sum", by_the_lot)
    with pytest.raises(NotAsPriced if mutant == "noise by the lot" else AssertionError):
        require_neighbours(engines["wgan-gp"], everyone, place)


# -- what a query is ---------------------------------------------------------------------------------------------------


def of(**changes: object) -> CriticSettings:
    return CriticSettings(
        **({"loss": CriticLoss(kind="wgan"), "schedule": SCHEDULE, "expected_units": 3.0} | changes)  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("loss", [CriticLoss(kind="logistic"), CriticLoss(kind="wgan", gradient_penalty=1.0)])
def test_only_a_critic_that_weights_bound_may_leave_partners_out(loss: CriticLoss) -> None:
    with pytest.raises(SettingError, match="needs a generated record") as refused:
        of(loss=loss, paired=False)
    assert refused.value.field == "loss"
    of(loss=loss, paired=True)


@pytest.mark.parametrize("units", [0.0, -1.0, NAN])
def test_a_divisor_is_positive(units):
    with pytest.raises(SettingError) as refused:
        of(expected_units=units)
    assert refused.value.field == "expected_units"


def test_a_query_states_how_far_a_unit_moves_it_before_a_record_is_seen():
    critic = Critic(nn.SiLU())
    size = sum(parameter.numel() for parameter in critic.parameters())
    for changes, moved in (({}, 0.7 / 2), ({"per_batch": True}, 2 * 3.0 * 0.7 / 2), ({"n_critic": 2}, 0.7)):
        stated = CriticGradients(of(**changes)).at(1, critic, lambda size, condition: None).sensitivity
        assert stated.l2 == pytest.approx(moved)
        assert stated.l1 == pytest.approx(moved * size**0.5)


def test_a_critic_that_mixes_records_is_refused_before_its_first_step():
    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(WIDTH, 1)

        def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
            return self.line(x - x.detach().mean(0)).squeeze(1)

    asked: list[int] = []
    noise = ReplayNoise([])
    given = {
        "loss": CriticLoss(kind="wgan"), "schedule": SCHEDULE, "noise_multiplier": 1.0, "sample_rate": 0.5, "steps": 9,
        "expected_units": 1.0,
    }  # fmt: skip
    records = PrivateRecords(torch.zeros(4, WIDTH), np.arange(4), 4, lambda body: (body, None))
    step = critic_steps(records, given, noise=noise, authorise=asked.append, allow_test_noise=True)
    with pytest.raises(SettingError, match="not independent"):
        step.gradient(Centred(), lambda size, condition: torch.zeros(size, WIDTH))
    assert (asked, noise.asked, step.taken) == ([], [], 0)


def test_a_query_is_of_the_first_step_and_of_nobody_until_it_is_told():
    query = CriticGradients(of())
    assert (query.step, query.partner) == (0, module.unpaired)
    assert (query.sensitivity.l1, query.sensitivity.l2) == (0.0, 0.7)


def test_a_partner_is_there_for_paired_records_alone():
    def partner(size, condition):
        return torch.zeros(size, WIDTH)

    critic = Critic(nn.SiLU())
    assert CriticGradients(of()).at(0, critic, partner).partner is partner
    assert CriticGradients(of(paired=False)).at(0, critic, partner).partner is module.unpaired


def test_a_critic_is_looked_at_once_with_records_of_the_shape_of_ours(monkeypatch):
    looked = []
    monkeypatch.setattr(module, "refuse_cross_record", lambda *given: looked.append(given))
    rows = torch.zeros(4, WIDTH + 2)
    plain = PrivateRecords(rows, np.arange(4), 4, lambda body: (body.view(-1, 1, WIDTH + 2), None))
    labelled = PrivateRecords(rows, np.arange(4), 4, lambda body: (body[:, 2:], body[:, :2]))
    one, other = Critic(nn.SiLU()), Critic(nn.SiLU())
    query = CriticGradients(of())
    engines = [query.engine(critic, plain) for critic in (one, one, other)]
    assert looked == [(one, (1, WIDTH + 2), 0), (other, (1, WIDTH + 2), 0)]
    assert engines[0] is engines[1] is not engines[2]
    CriticGradients(of()).engine(one, labelled)
    assert looked[2:] == [(one, (WIDTH,), 2)]


def test_mixing_numbers_of_an_audit_can_be_repeated():
    one, other = (CriticGradients(of(), mixing=torch.Generator().manual_seed(4))._mix(9) for _ in range(2))
    assert torch.equal(one, other)
    assert torch.equal(one, torch.rand(9, generator=torch.Generator().manual_seed(4)))


def test_what_a_lot_is_made_of_reaches_its_gradients(monkeypatch):
    """Labels, partners, mixing numbers, whose records they are, and how many are looked at together."""
    given = []
    monkeypatch.setattr(RecordGradients, "lot", lambda engine, paired, **named: given.append((paired, named)))
    rows = torch.arange(6.0 * (WIDTH + 2)).view(6, WIDTH + 2)
    records = PrivateRecords(rows, np.repeat(np.arange(3), 2), 3, lambda body: (body[:, 2:], body[:, :2]))
    query = CriticGradients(of(), mixing=torch.Generator().manual_seed(4))
    query.at(0, Critic(nn.SiLU()), lambda size, condition: -torch.ones(size, WIDTH) * condition[:, :1])
    query.gradients(records, np.array([0, 2]))
    ((paired, named),) = given
    chosen = rows[[0, 1, 4, 5]]
    assert torch.equal(paired.real, chosen[:, 2:])
    assert torch.equal(paired.condition, chosen[:, :2])
    assert torch.equal(paired.fake, -chosen[:, :1].expand(4, WIDTH))
    assert torch.equal(paired.mix, torch.rand(4, generator=torch.Generator().manual_seed(4)))
    assert (named["group"].tolist(), named["groups"]) == ([0, 0, 1, 1], 2)


def test_an_answer_says_how_its_lot_was_drawn_and_clipped_and_is_measured_before(monkeypatch):
    class Measured:
        def measure(self, gradients, *, n_units, sample_rate, step, bound, joint):
            acts.append(("measured", step, sample_rate))
            assert (n_units, bound, joint) == (4, query.settings.bound(1), query.settings.joint)

    acts: list[object] = []
    lot = PoissonSampler.lot
    monkeypatch.setattr(PoissonSampler, "lot", lambda sampler: acts.append("drawn") or lot(sampler))
    monkeypatch.setattr(PoissonSampler, "sampling", "another")
    records = PrivateRecords(torch.ones(4, WIDTH), np.arange(4), 4, lambda body: (body, None))
    critic = Critic(nn.SiLU())
    query = CriticGradients(of(per_batch=True, paired=False), distances=Measured()).at(1, critic, module.unpaired)
    answer = query.answer(records, sample_rate=0.5)
    assert acts == [("measured", 1, 0.5), "drawn"]
    assert (answer.sample_rate, answer.sampling) == (0.5, "another")
    assert answer.sensitivity.l2 == query.sensitivity.l2 == pytest.approx(2 * 3.0 * 0.7 / 2)
    assert answer.total.shape == (sum(parameter.numel() for parameter in critic.parameters()),)


def test_a_query_without_a_critic_asks_nothing():
    records = PrivateRecords(torch.zeros(4, WIDTH), np.arange(4), 4, lambda body: (body, None))
    query = CriticGradients(of())
    for ask in (lambda: query.refuse_unfit(records), lambda: query.gradients(records, np.arange(2))):
        with pytest.raises(TypeError, match="needs a critic"):
            ask()


def test_mixing_numbers_are_secret():
    """What tests leave out is what a method leaves out: secret numbers, other ones each time, in [0, 1)."""
    query = CriticGradients(of())
    drawn = []
    for _ in range(2):
        torch.manual_seed(0)  # whose stream is no secret
        drawn.append(query._mix(1000))
    one, other = drawn
    assert not torch.equal(one, other)
    assert 0 <= float(torch.cat([one, other]).min()) < 0.02
    assert 0.98 < float(torch.cat([one, other]).max()) < 1


@pytest.mark.parametrize("per_batch", [False, True])
def test_only_a_lot_that_is_clipped_as_a_whole_cannot_be_divided(per_batch):
    assert (CriticGradients(of(per_batch=per_batch)).not_partitionable is not None) is per_batch


def test_lengths_are_told_over_the_bound_where_they_are_asked_for():
    rows = torch.tensor([[1e-3] * WIDTH, [1.0] * WIDTH, [30.0] * WIDTH])
    records = PrivateRecords(rows, np.arange(3), 3, lambda body: (body, None))
    critic = Critic(nn.SiLU())

    schedule = GeometricSchedule(max_grad_norm=6.0, decay=0.5, floor=0.1)

    def asked(**given):
        return CriticGradients(of(paired=False, schedule=schedule), **given).at(1, critic, module.unpaired)

    bound = schedule.at(1)
    assert asked().answer(records, sample_rate=1.0).lengths is None
    told = asked(lengths=1.0).answer(records, sample_rate=0.5).lengths
    engine = RecordGradients(critic, of().loss)
    each = [engine.lot(RecordPairs(real=row[None]), group=None, groups=1, chunk_size=None) for row in rows]
    longest = [min(1.0, float(clipping.clipped_norms(one, max_grad_norm=1e9)) / bound) for one in each]
    assert told == pytest.approx(longest, rel=1e-4)
    assert len(set(told)) > 1


def test_a_critic_in_which_nobody_has_looked_for_records_that_meet_is_asked_nothing():
    with pytest.raises(TypeError, match="is not checked yet"):
        CriticGradients(of()).engine(Critic(nn.SiLU()), None)
