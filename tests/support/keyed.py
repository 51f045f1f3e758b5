"""Coins, pairing and noise that follow from a unit's number and the step alone: equal however units are dealt.

A unit is in a lot, and its records meet the same generated rows and mixing numbers, whether it is with one process or
with one of several ranks; noise follows from how many draws there were before. What is left is the order in which
numbers are added.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from doublure.private import whole_noise
from doublure.private.noise import OsKeyedDraws, OsKeyedNoise, ScaledNoise
from doublure.private.records import PrivateRecords
from doublure.private.sampling import FixedSizeSampler, PoissonSampler


class Keyed:
    """Stands in for the primitives' randomness.

    Attributes:
        drawn: The sizes of all noise that was drawn, by which thread.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self.drawn: list[tuple[int, int]] = []

    def _drawn(self, *what: object) -> np.random.Generator:
        return np.random.default_rng(list(repr(what).encode()))

    def _of_noise(self, size: int) -> np.random.Generator:
        self.drawn.append((threading.get_ident(), size))
        return self._drawn("noise", len(self.drawn))

    def _rows(self, what: str, rows: int, width: int) -> torch.Tensor:
        own = self._own
        assert len(own.rows) == rows  # each unit in the lot with all of its records
        numbers = [self._drawn(what, getattr(own, "step", 0), *row).normal(size=width) for row in own.rows]
        return torch.tensor(np.array(numbers).reshape(-1, width), dtype=torch.float32)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Take the place of the primitives' randomness."""
        own = self._own
        of_units, lot = PrivateRecords.of_units, PrivateRecords.lot

        def dealt(records: PrivateRecords, chosen: Any) -> PrivateRecords:
            own.units, own.step = np.flatnonzero(chosen), 0
            return of_units(records, chosen)

        def coins(sampler: PoissonSampler) -> np.ndarray[Any, Any]:
            units = getattr(own, "units", None)
            units = np.arange(sampler._population) if units is None else units
            assert len(units) == sampler._population
            if not len(units):
                return units  # of nobody, as a rehearsal asks of rank 0 alone: it is no step of the run
            own.step = getattr(own, "step", 0) + 1
            inside = [self._drawn("lot", own.step, int(unit)).random() < sampler.sample_rate for unit in units]
            return np.flatnonzero(inside)

        def looked_at(records: PrivateRecords, units: np.ndarray[Any, Any]) -> Any:
            numbers = getattr(own, "units", None)
            counts = records._first[units + 1] - records._first[units]
            known = units if numbers is None else numbers[units]
            own.rows = [(int(unit), i) for unit, count in zip(known, counts, strict=True) for i in range(count)]
            return lot(records, units)

        def normal(source: object, size: int, std: float) -> ScaledNoise:
            return ScaledNoise((self._of_noise(size).normal(size=size) * std).astype(np.float32), std)

        def whole(source: object, size: int, std: float, unit: float) -> ScaledNoise:
            return ScaledNoise(np.rint(self._of_noise(size).normal(size=size) * (std / unit)).astype(np.int64), std)

        def gaussian(counts: np.ndarray[Any, Any], *, scale: float) -> Any:
            noise = np.rint(self._of_noise(counts.size).normal(size=counts.shape) * scale).astype(np.int64)
            return ScaledNoise(counts + noise, scale)

        patch.setattr(PrivateRecords, "of_units", dealt)
        patch.setattr(PrivateRecords, "lot", looked_at)
        patch.setattr(PoissonSampler, "lot", coins)
        patch.setattr(FixedSizeSampler, "lot", lambda sampler: np.arange(sampler.size))
        patch.setattr(OsKeyedDraws, "normal", lambda draws, rows, width: self._rows("paired", rows, width))
        patch.setattr(OsKeyedDraws, "uniform", lambda draws, size: self._rows("mix", size, 1)[:, 0].sigmoid())
        patch.setattr(OsKeyedNoise, "normal", normal)
        patch.setattr(OsKeyedNoise, "whole", whole)
        patch.setattr(whole_noise, "gaussian", gaussian)

    def begin(self) -> None:
        """Forget what this thread has done: another run begins."""
        self._own.__dict__.clear()
        self.drawn.clear()
