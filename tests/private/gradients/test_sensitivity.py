"""One unit more or less moves the clipped sum by at most C, whatever is in the records (pitfalls.md, rules 4 and 5).

Each property is a function that raises, so that the mutants at the end can be shown to make it raise.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from doublure.private import clipping
from doublure.private.clipping import clipped_sum
from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs, UnitGradients, per_record_reference
from doublure.private.gradients.terms import OuterTerm, UnitMembership

SLACK = 1e-6
ROUNDING = 2.0**-23
CLIP = 0.7
HOSTILE = [0.0, 1.0, -1.0, 1e-3, 1e-20, 1e-45, 1e20, -1e30, 3e38, -3e38, float("inf"), -float("inf"), float("nan")]
PLAIN, PENALISED = CriticLoss(kind="wgan"), CriticLoss(kind="wgan", gradient_penalty=10.0)
few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def lots(width: int, most: int = 5) -> st.SearchStrategy[Tensor]:
    """Draw lots (B, 2 · width) of hostile numbers: a record and its partner; rows may repeat, or be missing."""
    value = st.one_of(st.sampled_from(HOSTILE), st.floats(-3, 3, width=32))
    row = st.lists(value, min_size=2 * width, max_size=2 * width)
    rows = st.lists(row, max_size=most).flatmap(
        lambda drawn: st.permutations(drawn + drawn[:1]) if drawn else st.just(drawn)
    )
    return rows.map(lambda drawn: torch.tensor(drawn, dtype=torch.float32).view(len(drawn), 2 * width))


def split(lot: Tensor, shape: tuple[int, ...]) -> RecordPairs:
    real, fake = lot.view(len(lot), 2, *shape).unbind(1)
    return RecordPairs(real=real, fake=fake, mix=torch.full((len(lot),), 0.25))


def total(gradients: RecordGradients, records: RecordPairs, **options: object) -> Tensor:
    return clipped_sum(gradients.lot(records, **options), max_grad_norm=CLIP).total.double()


def require_bounded(gradients: RecordGradients, records: RecordPairs, group: Tensor | None = None) -> None:
    """Require that the sum is finite, and that leaving out any one unit moves it by at most C."""
    units = torch.arange(len(records)) if group is None else group
    whole = total(gradients, records, group=group)
    assert whole.isfinite().all()
    # Removing a unit also changes how the others' sum is rounded, by some share of what they add up to.
    others = ROUNDING * CLIP * len(units)
    for unit in units.unique():
        (rows,) = (units != unit).nonzero(as_tuple=True)
        without = total(gradients, records.take(rows), group=None if group is None else group[rows])
        assert (whole - without).norm() <= CLIP * (1 + SLACK) + others
        (own,) = (units == unit).nonzero(as_tuple=True)
        alone = total(gradients, records.take(own), group=torch.zeros_like(own))
        assert alone.norm() <= CLIP * (1 + SLACK)


@pytest.fixture(scope="module")
def engines(make_critic) -> dict[str, RecordGradients]:
    """Return critics that have been looked at already, so that the search spends its time on records."""

    def images() -> nn.Module:
        body = [nn.Conv2d(1, 4, 3, 1, 1), nn.GroupNorm(2, 4), nn.LeakyReLU(0.2), nn.Conv2d(4, 6, 3)]
        return nn.Sequential(*body, nn.Flatten(), nn.Linear(24, 1))

    return {
        "plain": RecordGradients(make_critic(width=3, hidden=12), PLAIN),
        "penalty": RecordGradients(make_critic(width=3, hidden=12), PENALISED),
        "smooth": RecordGradients(make_critic(activation=nn.SiLU(), width=3, hidden=12), PENALISED),
        "without factors": RecordGradients(make_critic(activation=nn.PReLU(), width=3, hidden=8), PLAIN),
        "images": RecordGradients(make_critic(images), PENALISED),
    }


@pytest.mark.parametrize("kind", ["plain", "penalty", "without factors"])
@few
@example(  # what the one huge record adds cancels, and the steps of its size must not change what the others add
    lot=torch.tensor([[0, 0, 0, 0, 1, 0], [0.0] * 6, [0.0] * 6, [0, 0, 1e20, 0, 0, 1e20], [0.0] * 6, [0.0] * 6])
)
@given(lot=lots(3))
def test_hostile_records(engines, kind, lot):
    require_bounded(engines[kind], split(lot, (3,)))
    assert engines[kind].method in (None, "vmap" if kind == "without factors" else "pairs")


@pytest.mark.parametrize("kind", ["plain", "smooth"])
@few
@example(  # a record and its partner are alike and huge: what they add to the gradient has to cancel exactly
    lot=torch.tensor([[0, 0, 1e20, 0, 0, 1e20], [0, 0, 0, 0, 0, 1e20], [0, 0, 1e20, 0, 0, 1e20]]),
    group=[0, 0, 1, 0, 0, 0],
)
@given(lot=lots(3), group=st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_hostile_units_of_several_records(engines, kind, lot, group):
    require_bounded(engines[kind], split(lot, (3,)), torch.tensor(group)[: len(lot)])


@few
@given(lot=lots(16, 3))
def test_hostile_images(engines, lot):
    require_bounded(engines["images"], split(lot, (1, 4, 4)))


@pytest.mark.parametrize(("value", "place"), [(float("nan"), 0), (float("inf"), 2), (-float("inf"), 5)])
def test_a_record_that_is_not_finite_contributes_exactly_zero(paired, make_records, value, place):
    critic, shape = paired
    records = make_records(shape, 6)
    records.real[place].view(-1)[0] = value
    gradients = RecordGradients(critic, PENALISED)
    clipped = clipped_sum(gradients.lot(records), max_grad_norm=CLIP)
    others = records.take(torch.arange(6) != place)
    expected = clipped_sum(gradients.lot(others), max_grad_norm=CLIP)
    assert not clipped.norms[place].isfinite()
    assert torch.allclose(clipped.norms[torch.arange(6) != place], expected.norms, rtol=1e-5)
    assert (clipped.total - expected.total).norm() <= 1e-6 * 6 * CLIP
    alone = clipped_sum(gradients.lot(records.take(slice(place, place + 1))), max_grad_norm=CLIP)
    assert not alone.total.any()


def test_a_unit_with_one_such_record_contributes_zero_and_no_other_does(make_critic, make_records):
    records, group = make_records((5,), 6), torch.tensor([0, 1, 1, 1, 2, 0])
    records.real[2, 3] = float("nan")
    gradients = RecordGradients(make_critic(), PENALISED)
    clipped = clipped_sum(gradients.lot(records, group=group), max_grad_norm=CLIP)
    rest = group != 1
    expected = clipped_sum(gradients.lot(records.take(rest), group=group[rest]), max_grad_norm=CLIP)
    assert clipped.norms.isnan().tolist() == [False, True, False]
    assert torch.allclose(clipped.total, expected.total, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("size", [1e15, 1e25, 3e37])
@pytest.mark.parametrize("hidden", [None, 40], ids=["dense", "factors"])
def test_a_finite_but_huge_record_contributes_norm_c(make_critic, size, hidden):
    """One gradient of 3e37 per number: its square, and the factor C / norm, leave float32."""
    critic = make_critic((lambda: nn.Linear(30, 1)) if hidden is None else None, width=30, hidden=hidden or 1)
    with torch.no_grad():
        next(iter(critic.parameters())).mul_(1e-3)
    real, fake = torch.randn(2, 4, 30, generator=torch.Generator().manual_seed(0))
    real[1] *= size
    gradients = RecordGradients(critic, PLAIN)
    records = RecordPairs(real=real, fake=fake)
    clipped = clipped_sum(gradients.lot(records), max_grad_norm=CLIP)
    alone = clipped_sum(gradients.lot(records.take(slice(1, 2))), max_grad_norm=CLIP)
    expected = per_record_reference(critic, PLAIN, records)[1]
    assert clipped.norms[1].item() == pytest.approx(expected.norm().item(), rel=1e-5)
    assert alone.total.norm().item() == pytest.approx(CLIP, rel=1e-5)
    direction = expected / expected.norm()
    assert (alone.total.double() / CLIP - direction).norm() <= 1e-5
    require_bounded(gradients, records)


def require_cancellation_is_seen(make_critic) -> None:
    """Require the bound to hold where the real and the generated term almost cancel."""
    critic = make_critic(width=40, hidden=48)
    gradients = RecordGradients(critic, PLAIN)
    source = torch.Generator().manual_seed(3)
    for apart in (1e-2, 1e-4, 1e-6, 1e-7):
        real = 1e4 * torch.randn(8, 40, generator=source)
        records = RecordPairs(real=real, fake=real * (1 + apart * torch.randn(8, 40, generator=source)))
        (part,) = gradients.lot(records)
        norms = part.norms()
        for norm, each in zip(norms, torch.eye(8, dtype=torch.float64), strict=True):
            # The exact sum of the very factors that are used, without float32's rounding of products.
            exact = part._weighted(part.terms, each, torch.float64)
            assert exact.norm() <= norm
            assert clipping.clip_factors(norm, CLIP) * part.weighted_sum(each).double().norm() <= CLIP * (1 + SLACK)
        require_bounded(gradients, records)


def test_cancellation_is_seen(make_critic):
    require_cancellation_is_seen(make_critic)


def require_one_clip(make_critic, make_records) -> None:
    """Require the clipped sum of single units to be the reference's, scaled once to C."""
    critic, records = make_critic(width=40, hidden=48), make_records((40,), 6)
    group = torch.tensor([0, 1, 1, 1, 2, 0])
    gradients = RecordGradients(critic, PENALISED)
    reference = per_record_reference(critic, PENALISED, records)
    units = torch.zeros(3, reference.shape[1], dtype=torch.float64).index_add_(0, group, reference)
    bound = float(units.norm(dim=1).median()) * 0.99
    clipped = clipped_sum(gradients.lot(records, group=group), max_grad_norm=bound)
    expected = (units * (bound / units.norm(dim=1)).clamp(max=1)[:, None]).sum(0)
    assert (clipped.total.double() - expected).norm() <= 1e-5 * expected.norm()
    assert clipped.sensitivity == bound


def test_one_clip_for_all_layers_and_all_records_of_a_unit(make_critic, make_records):
    require_one_clip(make_critic, make_records)


def test_an_empty_lot_gives_zeros(paired, make_records):
    critic, shape = paired
    gradients, nothing = RecordGradients(critic, PENALISED), make_records(shape, 0)
    for options in ({}, {"group": torch.zeros(0, dtype=torch.long), "groups": 3}):
        clipped = clipped_sum(gradients.lot(nothing, **options), max_grad_norm=CLIP)
        assert clipped.total.shape == (sum(p.numel() for p in critic.parameters()),)
        assert not clipped.total.any()
        assert clipped.norms.shape == (3 if options else 0,)
        assert not clipped.norms.any()


@pytest.mark.parametrize("chunk_size", [1, 3, 100])
def test_chunks_change_nothing(paired, make_records, chunk_size):
    critic, shape = paired
    records, group = make_records(shape, 7), torch.tensor([2, 0, 2, 5, 2, 0, 1])
    records.real[3].view(-1)[0] = float("nan")
    gradients = RecordGradients(critic, PENALISED)
    for options in ({}, {"group": group, "groups": 6}):
        whole = clipped_sum(gradients.lot(records, **options), max_grad_norm=CLIP)
        parts = list(gradients.lot(records, chunk_size=chunk_size, **options))
        chunked = clipped_sum(gradients.lot(records, chunk_size=chunk_size, **options), max_grad_norm=CLIP)
        assert len(parts) > 1 or chunk_size >= 7
        assert (chunked.total - whole.total).norm() <= 1e-5 * whole.total.norm()
        assert torch.allclose(chunked.norms, whole.norms, rtol=1e-5, equal_nan=True)


def test_a_unit_is_never_split(make_critic, make_records):
    gradients = RecordGradients(make_critic(), PLAIN)
    parts = list(gradients.lot(make_records((5,), 7), group=torch.tensor([4, 1, 1, 1, 0, 4, 1]), chunk_size=2))
    assert [part.units.tolist() for part in parts] == [[0], [1], [2, 3, 4]]


def _coarse_gram(term: OuterTerm, factors: tuple[Tensor, ...], units: UnitMembership, some: slice) -> Tensor:
    rows = torch.cat([units.side_by_side(factor, term.groups, some) for factor in factors], 1)
    return (rows @ rows.transpose(1, 2)).double()


def _layer_by_layer(lot: object, *, max_grad_norm: float) -> clipping.ClippedSum:
    out, norms = lot.zero.clone(), torch.zeros(lot.units, dtype=torch.float64)
    for part in lot:
        norms[part.units] = part.norms()
        for term in part.terms:
            own = UnitGradients(part.units, [term], part.membership, part.parameters)
            out += own.weighted_sum(clipping.clip_factors(own.norms(), max_grad_norm))
    return clipping.ClippedSum(total=out, sensitivity=max_grad_norm, norms=norms)


def _not_finite_ignored(norms: Tensor, bound: float) -> Tensor:
    return torch.where(norms > bound, bound / norms, 1.0)


def require_nan_is_left_out(make_critic, make_records) -> None:
    """Require a bounded sum where one record is not a number."""
    records = make_records((5,), 4)
    records.real[1, 1] = float("nan")
    require_bounded(RecordGradients(make_critic(), PENALISED), records)


def test_not_a_number_is_left_out(make_critic, make_records):
    require_nan_is_left_out(make_critic, make_records)


@pytest.mark.parametrize("mutant", ["no clip", "layer by layer", "record by record", "coarse norms", "nan kept"])
def test_mutants_are_caught(monkeypatch, make_critic, make_records, mutant):
    """Each property above fails on the fault that it is there for."""
    require = partial(require_one_clip, make_critic, make_records)
    if mutant == "no clip":
        monkeypatch.setattr(clipping, "clip_factors", lambda norms, bound: torch.ones_like(norms))
    elif mutant == "layer by layer":
        monkeypatch.setitem(globals(), "clipped_sum", _layer_by_layer)
    elif mutant == "record by record":
        monkeypatch.setattr(UnitMembership, "sum", lambda self, values: values[: self.count])
        monkeypatch.setattr(
            UnitMembership, "gather", lambda self, values, some: values[: self.count][some].unsqueeze(1)
        )
        monkeypatch.setattr(UnitMembership, "largest", 1)
    elif mutant == "coarse norms":
        monkeypatch.setattr(OuterTerm, "_gram", _coarse_gram)
        require = partial(require_cancellation_is_seen, make_critic)
    elif mutant == "nan kept":
        monkeypatch.setattr(clipping, "clip_factors", _not_finite_ignored)
        require = partial(require_nan_is_left_out, make_critic, make_records)
    with pytest.raises(AssertionError):
        require()
