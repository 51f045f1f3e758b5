"""The gradients of a lot, unit by unit: what the mechanism clips and adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.gradients.loss import CriticLoss, Records
from doublure.private.gradients.pairs import factor_pairs
from doublure.private.gradients.reference import looped, per_record_reference, vectorised
from doublure.private.gradients.tape import Untaped
from doublure.private.gradients.terms import Term, Units

# Two roundings of float32, of a weighted factor and of a sum. A gradient added up in float32 differs from the exact
# one by up to this share of what is added up, which is more than this share of the result where summands cancel.
_ROUNDING = 2.0**-23
# Below this, a weight times a factor may leave float32's range although the product with the other factor does not.
_SMALL_WEIGHT = 2.0**-60
# Numbers kept at the same time for one physical batch.
_ROOM = 2**21

# How closely the fast gradients must agree with the reference on made-up records: float32 against float64.
_AGREEMENT = 1e-3

Method = Callable[[nn.Module, Sequence[Tensor], CriticLoss, Records], list[Term]]


@dataclass(frozen=True)
class UnitGradients:
    """The gradients of some units' records. Private.

    Args:
        units: Which units of the lot these are, (G,).
        terms: The gradients' terms, for B records.
        membership: To which of the G units each record belongs.
        parameters: What the gradients are with respect to.
    """

    units: Tensor
    terms: list[Term]
    membership: Units
    parameters: Sequence[Tensor]

    @torch.no_grad()
    def norms(self) -> Tensor:
        """Return for each unit a bound on the norm of its summed gradient, (G,) float64.

        It is the norm, taken in float64 from the very factors that :meth:`weighted_sum` uses, plus what rounding can
        add to their float32 sum: some 1e-7 of the norm, more only where a gradient is a small difference of large
        terms. NaN for a unit with any gradient that is not finite.
        """
        squares, sizes = zip(*(term.measure(self.membership) for term in self.terms), strict=True)
        bound = torch.stack(squares).sum(0).clamp_(min=0).sqrt_() + _ROUNDING * torch.stack(sizes).sum(0).sqrt_()
        return torch.where(bound.isfinite(), bound, torch.nan)

    @torch.no_grad()
    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return Σ w_u g_u over the units.

        Args:
            weights: (G,); a unit of weight zero is left out whatever its gradient.

        Returns:
            Flat, (P,), in the order of ``critic.parameters()``.
        """
        weights = self.membership.spread(weights.double())
        plain = weights >= _SMALL_WEIGHT
        precision = self.parameters[0].dtype
        if plain.all():
            return self._weighted(self.terms, weights, precision)
        total = self._some(plain, weights, precision)
        # Huge gradients: the weights are tiny, and only float64 holds the steps between.
        tiny = (weights > 0) & ~plain
        return total + self._some(tiny, weights, torch.float64).to(precision) if tiny.any() else total

    def _some(self, chosen: Tensor, weights: Tensor, precision: torch.dtype) -> Tensor:
        (rows,) = chosen.nonzero(as_tuple=True)
        return self._weighted([term.select(rows) for term in self.terms], weights[rows], precision)

    def _weighted(self, terms: list[Term], weights: Tensor, precision: torch.dtype) -> Tensor:
        sizes = [p.numel() for p in self.parameters]
        total = torch.zeros(sum(sizes), dtype=precision, device=weights.device)
        into = [piece.view(p.shape) for piece, p in zip(torch.split(total, sizes), self.parameters, strict=True)]
        weights = weights.to(precision)
        for term in terms:
            term.add_to(into, weights)
        return total


@dataclass(frozen=True)
class LotGradients:
    """The gradients of a lot, computed a physical batch at a time while iterated. Private.

    Attributes:
        units: How many units the lot has, G.
        zero: A flat gradient of zeros, (P,): the sum over an empty lot.
    """

    units: int
    zero: Tensor
    _batches: Callable[[], Iterator[UnitGradients]]

    def __iter__(self) -> Iterator[UnitGradients]:
        return self._batches()


class RecordGradients:
    """Per-record gradients of one critic under one loss.

    Linear, convolutional, embedding and affine normalisation layers are handled by factor pairs. Before the first
    lot the pairs are compared with a loop over made-up records; a critic for which they differ, or which has other
    parameters, is handled by ``torch.func`` as a whole. The choice depends on no private record.

    Args:
        critic: ``critic(x, condition) -> (B,)``; all of its parameters take part, whatever their ``requires_grad``,
            and none of them is changed. It must not mix records (:func:`refuse_cross_record`).
        loss: The loss of one record.

    Attributes:
        method: ``"pairs"``, ``"vmap"`` or ``"loop"``, once the first lot was seen.
    """

    def __init__(self, critic: nn.Module, loss: CriticLoss) -> None:
        self.method: str | None = None
        self._critic = critic
        self._parameters = list(critic.parameters())
        self._loss = loss
        self._compute: Method | None = None
        self._numbers = 1

    def lot(
        self, records: Records, *, group: Tensor | None = None, groups: int | None = None, chunk_size: int | None = None
    ) -> LotGradients:
        """Return the gradients of a lot.

        Args:
            records: B records; none is an empty lot.
            group: Each record's unit, integers (B,) in [0, G); each record its own unit when left out.
            groups: G.
            chunk_size: How many records to hold at a time; chosen by memory when left out. Changes nothing but
                time and rounding. A unit is never split.
        """
        records.check(self._loss)
        if chunk_size is not None and chunk_size < 1:
            raise SettingError(f"{chunk_size} is less than 1", field="chunk_size", remedy="leave it out")
        parameters = [p.detach() for p in self._parameters]
        zero = parameters[0].new_zeros(sum(p.numel() for p in parameters))
        if group is None:
            return LotGradients(len(records), zero, lambda: self._single(records, chunk_size))
        count = _checked_groups(group, groups, len(records))
        return LotGradients(count, zero, lambda: self._grouped(records, group, count, chunk_size))

    def _single(self, records: Records, chunk_size: int | None) -> Iterator[UnitGradients]:
        """Yield the gradients of records that are their own units."""
        if not len(records):
            return
        size = chunk_size or self._prepared(records)
        for start in range(0, len(records), size):
            part = records.take(slice(start, start + size))
            index = torch.arange(len(part), device=part.real.device)
            yield self._gradients(part, start + index, Units(index, len(part), single=True))

    def _grouped(self, records: Records, group: Tensor, count: int, chunk_size: int | None) -> Iterator[UnitGradients]:
        """Yield the gradients of units, each with all of its records."""
        if not len(records):
            return
        size = chunk_size or self._prepared(records)
        order = torch.argsort(group, stable=True)
        sizes = torch.bincount(group, minlength=count)
        start, ends = 0, sizes.cumsum(0).tolist()
        for first, last in _packed(sizes.tolist(), size):
            rows = order[start : ends[last]]
            start = ends[last]
            units = torch.arange(first, last + 1, device=group.device)
            membership = Units(group[rows] - first, len(units), single=False)
            yield self._gradients(records.take(rows), units, membership)

    def _prepared(self, records: Records) -> int:
        """Choose the method if that was not done, and return how many records fit."""
        if self._compute is None:
            self.method, self._compute, self._numbers = _choose(self._critic, self._parameters, self._loss, records)
        return max(1, _ROOM // self._numbers)

    def _gradients(self, records: Records, units: Tensor, membership: Units) -> UnitGradients:
        self._prepared(records)
        if self._compute is None:  # pragma: no cover - _prepared has just set it
            raise RuntimeError("no method")
        terms = self._compute(self._critic, self._parameters, self._loss, records)
        return UnitGradients(units, terms, membership, self._parameters)


def _checked_groups(group: Tensor, groups: int | None, records: int) -> int:
    """Return how many units there are, refusing an index that does not fit."""
    if group.shape != (records,) or group.is_floating_point():
        raise SettingError(
            f"shape {tuple(group.shape)} of {group.dtype} is not one integer a record",
            field="group",
            remedy=f"give integers of shape ({records},)",
        )
    count = groups if groups is not None else (int(group.max()) + 1 if records else 0)
    if records and (int(group.min()) < 0 or int(group.max()) >= count):
        raise SettingError("a unit's number is out of range", field="group", remedy="number the units from 0 up")
    return count


def _packed(sizes: list[int], limit: int) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of consecutive units that together have at most ``limit`` records, or are alone."""
    first, held = 0, 0
    for unit, size in enumerate(sizes):
        if held and held + size > limit:
            yield first, unit - 1
            first, held = unit, 0
        held += size
    if held:
        yield first, len(sizes) - 1


def _choose(
    critic: nn.Module, parameters: Sequence[Tensor], loss: CriticLoss, like: Records
) -> tuple[str, Method, int]:
    """Return the fastest method that agrees with a loop over made-up records, and the numbers it keeps a record."""
    methods: tuple[tuple[str, Method], ...] = (("pairs", factor_pairs), ("vmap", vectorised))
    with _evaluating(critic):
        for name, method in methods:
            # Two sizes: a tensor whose first axis only happens to be as long as the lot fails one of them.
            kept = [_agreed(method, critic, parameters, loss, _made_up(like, size)) for size in (2, 3)]
            if all(kept):
                return name, method, max(kept)
    return "loop", looped, sum(p.numel() for p in parameters)


def _agreed(
    method: Method, critic: nn.Module, parameters: Sequence[Tensor], loss: CriticLoss, records: Records
) -> int:
    """Return the numbers kept a record if the method gives each record its gradient, else zero."""
    try:
        terms = method(critic, parameters, loss, records)
    except (Untaped, RuntimeError, NotImplementedError):
        return 0
    index = torch.arange(len(records), device=records.real.device)
    found = UnitGradients(index, terms, Units(index, len(index), single=True), parameters)
    expected = per_record_reference(critic, loss, records)
    norms = expected.norm(dim=1)
    close = torch.allclose(found.norms(), norms, rtol=_AGREEMENT, atol=0)
    for row, each in enumerate(torch.eye(len(records), device=index.device)):
        difference = found.weighted_sum(each).double() - expected[row]
        close = close and bool(difference.norm() <= _AGREEMENT * norms[row])
    return -(-sum(term.numbers() for term in terms) // len(records)) if close else 0


def _made_up(like: Records, size: int) -> Records:
    """Return records of the same shapes and types that no one's data went into."""
    source = torch.Generator().manual_seed(size)

    def draw(values: Tensor | None) -> Tensor | None:
        if values is None:
            return None
        shape = (size, *values.shape[1:])
        drawn = torch.rand(shape, generator=source) if values.is_floating_point() else torch.zeros(shape)
        return drawn.to(values.device, values.dtype)

    real = draw(like.real)
    return Records(
        real=like.real[:0] if real is None else real,
        fake=draw(like.fake), condition=draw(like.condition), mix=draw(like.mix),
    )  # fmt: skip


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Switch dropout off for a comparison, and back to what it was."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training
