"""The gradients of a lot, unit by unit, for the mechanism to clip and add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.gradients.choice import GradientEngine, choose, full_convolutions
from doublure.private.gradients.loss import CriticLoss, RecordPairs
from doublure.private.gradients.reference import run_gradients
from doublure.private.gradients.terms import UnitMembership
from doublure.private.gradients.units import UnitGradients

# Numbers kept at the same time for one physical batch: few enough to stay in the processor's cache.
_ROOM = 2**21


@dataclass(frozen=True)
class LotGradients:
    """The gradients of a lot, computed a physical batch at a time while iterated. Private.

    Attributes:
        units: Number of units in the lot, G.
        zero: A flat gradient of zeros, (P,): the sum over an empty lot.
    """

    units: int
    zero: Tensor
    _batches: Callable[[], Iterator[UnitGradients]]
    _runs: Callable[[Sequence[int]], Tensor]

    def __iter__(self) -> Iterator[UnitGradients]:
        return self._batches()

    def sums(self, sizes: Sequence[int]) -> Tensor:
        """Return the sums over runs of the lot's units, (runs, P); not finite where a unit's gradient is not.

        Args:
            sizes: Number of units in each run, one run after another; together all units.
        """
        return self._runs(sizes)


class RecordGradients:
    """Per-record gradients of one critic under one loss.

    Linear, convolutional, embedding and affine normalisation layers are handled by factor pairs. Before the first
    lot the pairs are compared with a loop over made-up records; a critic for which they differ, or which has other
    parameters, is handled by ``torch.func`` as a whole. The choice depends on no private record.

    Args:
        critic: ``critic(x, condition) -> (B,)``; all of its parameters take part, whatever their ``requires_grad``,
            and none of them is changed. It must not mix records (:func:`refuse_cross_record`).
        loss: The loss of one record.
    """

    def __init__(self, critic: nn.Module, loss: CriticLoss) -> None:
        self._critic = critic
        self._parameters = list(critic.parameters())
        self._loss = loss
        self._way: GradientEngine | None = None

    @property
    def method(self) -> str | None:
        """``"pairs"``, ``"vmap"`` or ``"loop"``, once a lot was seen."""
        return None if self._way is None else self._way.name

    def lot(
        self,
        records: RecordPairs,
        *,
        group: Tensor | None = None,
        groups: int | None = None,
        chunk_size: int | None = None,
    ) -> LotGradients:
        """Return the gradients of a lot.

        Args:
            records: B records; none is an empty lot.
            group: Each record's unit, integers (B,) in [0, G); each record its own unit when left out.
            groups: G.
            chunk_size: Number of records to hold at a time; chosen by memory when left out. It changes only time and
                rounding. A unit is never split.
        """
        records.check(self._loss)
        if chunk_size is not None and chunk_size < 1:
            raise SettingError(f"{chunk_size} is less than 1", field="chunk_size", remedy="leave it out")
        zero = self._parameters[0].detach().new_zeros(sum(p.numel() for p in self._parameters))
        if group is None:
            return LotGradients(
                len(records), zero, lambda: self._single(records, chunk_size), lambda sizes: self._runs(records, sizes)
            )
        count = _checked_groups(group, groups, len(records))
        return LotGradients(
            count,
            zero,
            lambda: self._grouped(records, group, count, chunk_size),
            lambda sizes: self._grouped_runs(records, group, count, sizes),
        )

    def _runs(self, records: RecordPairs, sizes: Sequence[int]) -> Tensor:
        """Return the summed gradients of runs of records."""
        with full_convolutions():
            return run_gradients(self._critic, self._loss, records, sizes)

    def _grouped_runs(self, records: RecordPairs, group: Tensor, count: int, sizes: Sequence[int]) -> Tensor:
        """Return the summed gradients of runs of units."""
        order = torch.argsort(group, stable=True)
        each = torch.split(torch.bincount(group, minlength=count).cpu(), list(sizes))
        return self._runs(records.take(order), [int(run.sum()) for run in each])

    def _single(self, records: RecordPairs, chunk_size: int | None) -> Iterator[UnitGradients]:
        """Yield the gradients of records that are their own units."""
        if not len(records):
            return
        # Batches of equal size: a small last one would cost nearly as much as a full one.
        batches = math.ceil(len(records) / (chunk_size or self._room(records)))
        size = math.ceil(len(records) / batches)
        for start in range(0, len(records), size):
            part = records if size >= len(records) else records.take(slice(start, start + size))
            units = torch.arange(start, start + len(part), device=part.real.device)
            yield self._gradients(part, units, UnitMembership(units, len(part), single=True))

    def _grouped(self, records: RecordPairs, group: Tensor, count: int, limit: int | None) -> Iterator[UnitGradients]:
        """Yield the gradients of units, each with all of its records."""
        if not len(records):
            return
        size = limit or self._room(records)
        order = torch.argsort(group, stable=True)
        sizes = torch.bincount(group, minlength=count)
        start, ends = 0, sizes.cumsum(0).tolist()
        for first, last in _packed(sizes.tolist(), size):
            rows = order[start : ends[last]]
            start = ends[last]
            units = torch.arange(first, last + 1, device=group.device)
            membership = UnitMembership(group[rows] - first, len(units), single=False)
            yield self._gradients(records.take(rows), units, membership)

    def _gradients(self, records: RecordPairs, units: Tensor, membership: UnitMembership) -> UnitGradients:
        chosen = self._chosen(records)
        with full_convolutions():
            terms = chosen.compute(self._critic, self._parameters, self._loss, records)
        return UnitGradients(units, terms, membership, self._parameters)

    def _room(self, records: RecordPairs) -> int:
        """Return the number of records to hold at a time."""
        return max(1, _ROOM // self._chosen(records).numbers)

    def _chosen(self, records: RecordPairs) -> GradientEngine:
        """Return the gradient engine, chosen by the shape of the first records alone."""
        if self._way is None:
            self._way = choose(self._critic, self._parameters, self._loss, records)
        return self._way


def _checked_groups(group: Tensor, groups: int | None, records: int) -> int:
    """Return the number of units; refuse an index that does not fit."""
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
