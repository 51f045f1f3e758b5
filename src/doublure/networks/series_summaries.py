"""Summaries of a whole series: level, spread, peak, runs, and its steepest step.

They are computed from cells alone, in whole numbers, so that each depends on its own series and on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doublure.networks.cosines import cosines
from doublure.networks.look_names import QUANTILES

SLOWEST = 8
"""Most cosines of a channel whose means candidates keep."""
_FINE = 2**10
"""Denominator of normal scores; squares of sums over a few thousand steps stay below 2^63."""
_LEAST = 1e-3
_HIGH = 0.9
"""Share of a channel's values below a run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesSummaries:
    """Map of series to whole numbers.

    Attributes:
        sizes: Number of cells of each channel, without that of missing steps.
        scores: ``(parts, cells)`` int64 normal scores of cells' middles, in steps of 1/1024.
        high: ``(channels,)`` the last cell that is not high.
        frequent: ``(channels,)`` the cell of a frequent single value; -1 where there is none.
        missing: Whether each channel may have missing steps.
        steepest: Whether the largest change from a step to the next is a summary, too.
    """

    sizes: tuple[int, ...]
    scores: Tensor
    high: Tensor
    frequent: Tensor
    missing: tuple[bool, ...]
    steepest: bool = False

    @classmethod
    def of(
        cls,
        sizes: tuple[int, ...],
        tables: Tensor,
        single: Tensor,
        *,
        missing: tuple[bool, ...],
        steepest: bool = False,
    ) -> SeriesSummaries:
        """Return the map that released tables give.

        Args:
            sizes: Number of cells of each channel.
            tables: ``(parts, cells + 1)`` cumulative shares of each step's cells.
            single: ``(channels, cells)`` whether a cell holds one value alone.
            missing: Whether each channel may have missing steps.
            steepest: Whether the largest change is a summary, too.
        """
        shares = tables.double().view(len(sizes), -1, tables.shape[1]).mean(1)
        most, frequent = torch.where(single, shares[:, 1:] - shares[:, :-1], 0.0).max(1)
        length = len(tables) // len(sizes)
        return cls(
            sizes=sizes,
            scores=whole_scores(tables),
            high=(shares[:, 1:] < _HIGH).sum(1),
            frequent=torch.where(most * length >= 1, frequent, -1),
            missing=missing,
            steepest=steepest,
        )

    @property
    def slowest(self) -> int:
        """Number of the lowest cosines of each channel, whose means are kept."""
        return min(SLOWEST, len(self.scores) // len(self.sizes))

    def _scores(self, body: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return cells, whether a step has a value, and its score, or else 0 ``(B, channels, length)``."""
        size = torch.tensor(self.sizes)[:, None]
        known = (body >= 0) & (body < size)
        cell = body.detach().clamp(0, self.scores.shape[1] - 1).floor().long()
        flat = self.scores.T.gather(0, cell.flatten(1)).view(cell.shape)
        return cell, known, torch.where(known, flat, 0)

    def waves(self, body: Tensor) -> Tensor:
        """Return the lowest cosines of scores ``(B, channels * slowest)``, float64."""
        return self._waves(self._scores(body)[2])

    def _waves(self, score: Tensor) -> Tensor:
        waves = cosines(score.shape[2])[: self.slowest]
        return (score.double() / _FINE @ waves.T).flatten(1)

    def __call__(self, body: Tensor) -> Tensor:
        """Return ``(B, summaries)`` int64 of places ``(B, channels, length)``: of channels, then missing steps."""
        return self._summaries(body, *self._scores(body))

    def with_waves(self, body: Tensor) -> tuple[Tensor, Tensor]:
        """Return both the summaries and the waves."""
        scores = self._scores(body)
        return self._summaries(body, *scores), self._waves(scores[2])

    def _summaries(self, body: Tensor, cell: Tensor, known: Tensor, score: Tensor) -> Tensor:
        count = known.sum(2).clamp(min=1)
        total = score.sum(2)
        both = known[:, :, 1:] & known[:, :, :-1]
        steps = torch.where(both, score[:, :, 1:] - score[:, :, :-1], 0).square().sum(2)
        jumps = [torch.where(both, cell[:, :, 1:] - cell[:, :, :-1], 0).abs().amax(2)] if self.steepest else []
        above = known & (cell > self.high[:, None])
        place = torch.arange(body.shape[2]).expand_as(above)
        begun = above & ~torch.nn.functional.pad(above, (1, 0))[:, :, :-1]
        longest = (place - torch.where(above, -1, place).cummax(2).values).amax(2)
        low = torch.where(known, cell, self.scores.shape[1]).amin(2)
        often = (known & (cell == self.frequent[:, None])).sum(2)
        found = [
            total.div(count, rounding_mode="floor"),
            (score.square().sum(2) * count - total.square()).div(count * count, rounding_mode="floor"),
            steps.div(both.sum(2).clamp(min=1), rounding_mode="floor"),
            torch.where(known, cell, -1).amax(2),
            torch.where(self.frequent >= 0, often, low),
            begun.sum(2),
            longest,
            *jumps,
        ]
        gone = ((body >= torch.tensor(self.sizes)[:, None]) & (body < torch.tensor(self.sizes)[:, None] + 1)).sum(2)
        return torch.cat([torch.stack(found, dim=2).flatten(1), gone[:, list(self.missing)]], dim=1)

    def cuts(self, found: Tensor) -> Tensor:
        """Return cuts ``(summaries, CUTS)`` of the bins, at quantiles of what a model draws ``(n, summaries)``.

        Series without any value of a channel have a bin of their own.
        """
        levels = torch.tensor(QUANTILES, dtype=torch.float64)
        cuts = torch.quantile(found.double(), levels, dim=0).ceil().long().T.contiguous()
        if any(self.missing):
            cuts[-sum(self.missing) :, -1] = len(self.scores) // len(self.sizes)
        return cuts


def whole_scores(tables: Tensor) -> Tensor:
    """Return the normal scores of cells' middles ``(parts, cells)`` int64, of tables ``(parts, cells + 1)``."""
    middles = (tables[:, 1:].double() + tables[:, :-1].double()) / 2
    found: Tensor = (torch.special.ndtri(middles.clamp(_LEAST, 1 - _LEAST)) * _FINE).round().long()
    return found


def to_bins(found: Tensor, cuts: Tensor) -> Tensor:
    """Return the bins ``(B, summaries)`` of summaries, by cuts ``(summaries, CUTS)``."""
    return torch.searchsorted(cuts, found.T.contiguous(), right=True).T


def summed_leans(bins: Tensor, leans: Tensor) -> Tensor:
    """Return the sums ``(B,)`` of the leans ``(summaries, CUTS + 1)`` of bins ``(B, summaries)``."""
    return leans.gather(1, bins.T).sum(0)
