"""A series' group and its normal scores, computed by released tables.

A query applies this to records, so that each series is computed by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtri
from torch import Tensor

from doublure.networks.copula import CopulaShape, normal_scores, over_gaps, shares_at

Floats: TypeAlias = npt.NDArray[np.float64]

_LEVEL_SPREAD = 0.75
"""Approximate deviation of series' mean scores; levels are cut at its quantiles."""
_FINE = 2**20
"""Denominator of the scores that decide a level: as whole numbers, their sum does not depend on the order."""


def level_scores(levels: int) -> Floats:
    """Return the mean and deviation ``(levels, 2)`` of scores in each level, if mean scores are normal: public."""
    cuts = ndtri(np.arange(levels + 1) / levels)
    heights = np.exp(-(cuts**2) / 2) / np.sqrt(2 * np.pi)
    means = -np.diff(heights) * levels
    ends = np.where(np.isinf(cuts), 0.0, cuts) * heights
    inside = 1 - np.diff(ends) * levels - means**2
    spreads = np.sqrt(1 - _LEVEL_SPREAD**2 + _LEVEL_SPREAD**2 * inside) if levels > 1 else np.ones(1)
    return np.stack([_LEVEL_SPREAD * means, spreads], axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreMap:
    """Map of a series to its group and its normal scores in that group's tables.

    Attributes:
        shape: The generator's sizes.
        tables: ``(groups or 1, parts, cells + 1)`` cumulative shares.
        levels: ``(parts, cells)`` scores of cells' middles as whole numbers, which decide the level.
    """

    shape: CopulaShape
    tables: Tensor
    levels: Tensor

    @classmethod
    def of(cls, shape: CopulaShape, step_tables: Tensor, tables: Tensor | None = None) -> ScoreMap:
        """Return the map of step tables, or of groups' own tables if given; levels follow from step tables."""
        middles = (step_tables[:, 1:] + step_tables[:, :-1]) / 2
        return cls(
            shape=shape,
            tables=step_tables[None] if tables is None else tables,
            levels=(normal_scores(middles) * _FINE).round().long(),
        )

    def known(self, body: Tensor) -> Tensor:
        """Return a mask ``(B, channels, length)`` of the steps with a value."""
        sizes = torch.tensor(self.shape.sizes, device=body.device)[:, None]
        return (body >= 0) & (body < sizes)

    def group(self, body: Tensor, condition: Tensor | None) -> Tensor:
        """Return each series' group ``(B,)`` int64, by attributes, then by public cuts of its mean score."""
        found = self.shape.attribute_group(condition, len(body))
        if self.shape.levels == 1:
            return found
        known = self.known(body).flatten(1)
        cell = body.detach().flatten(1).clamp(0, self.levels.shape[1] - 1).long()
        total = torch.where(known, self.levels.T.gather(0, cell), 0).sum(1)
        cuts = ndtri(np.arange(1, self.shape.levels) / self.shape.levels) * _LEVEL_SPREAD * _FINE
        above = total[:, None] > known.sum(1)[:, None] * torch.from_numpy(np.rint(cuts).astype(np.int64))
        return found * self.shape.levels + above.sum(1)

    def scores(self, body: Tensor, group: Tensor) -> Tensor:
        """Return normal scores ``(B, channels, length)`` float64, with gaps interpolated."""
        flat = body.double().flatten(1)
        if len(self.tables) == 1:
            shares = shares_at(self.tables[0], flat)
        else:
            shares = torch.zeros_like(flat)
            for number in range(len(self.tables)):
                own = shares_at(self.tables[number], flat)
                shares = torch.where((group == number)[:, None], own, shares)
        return over_gaps(normal_scores(shares).view(body.shape), self.known(body))
