"""A Gaussian copula of series: a normal vector over all channels and steps, mapped to each step's own values.

A series' group (its attributes' values, and a level that is drawn) has a mean and a covariance of normal scores over
all steps and channels, and a table from scores to values. Attributes that form no groups shift the scores. Values are
"places": a cell's number plus a fraction within the cell.

Two corrections are exact. Where calm and busy stretches alternate, the fast part of a series is multiplied by a slowly
changing factor; scores are then a mixture of normals with a known distribution, and are mapped back to normal scores.
Where tables are more precise than means, the distribution of all groups together at a step is known too, and is mapped
back to the step's table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from doublure.networks.cosines import cosines
from doublure.networks.look_names import CUTS, NAMES
from doublure.networks.series_summaries import (
    SLOWEST,
    SeriesSummaries,
    summed_leans,
    to_bins,
    whole_scores,
)
from doublure.networks.sizes import copula_noise

SCORE_LIMIT = 3.0
"""Largest absolute normal score."""
CALM_MEMORY = 1 / 6
"""Correlation time of the fast part's factor, as a share of a series' length."""

_LEAST = 1e-6
_BELOW = math.nextafter(1.0, 0.0)
_NODES = 15
_AT_ONCE = 512
"""Series whose candidates are held at once."""


@dataclass(frozen=True, kw_only=True)
class CopulaShape:
    """The sizes of a copula's tensors.

    Attributes:
        sizes: Number of cells of each channel, without that of missing steps.
        missing: Whether each channel may have missing steps.
        length: Steps.
        blocks: Number of values of each attribute, in the order of the condition's blocks.
        grouped: Whether each attribute is part of the groups.
        levels: Groups of levels within each group of attributes.
        own_tables: Whether each group has a table of its own.
        exact: Whether each step's table is reproduced exactly.
        calm: Whether the fast part alternates between calm and busy stretches.
        candidates: Series drawn for each that is kept, by what series look like as a whole; 1: the first is kept.
        steepest: Whether that includes the largest change from a step to the next.
        shared_gaps: Whether gaps of two channels go together.
    """

    sizes: tuple[int, ...]
    missing: tuple[bool, ...]
    length: int
    blocks: tuple[int, ...]
    grouped: tuple[bool, ...]
    levels: int
    own_tables: bool
    exact: bool
    calm: bool
    candidates: int = 1
    steepest: bool = False
    shared_gaps: bool = False

    @property
    def parts(self) -> int:
        """Channels times steps."""
        return len(self.sizes) * self.length

    @property
    def attribute_groups(self) -> int:
        """Groups by attributes alone."""
        return math.prod(size for size, grouped in zip(self.blocks, self.grouped, strict=True) if grouped)

    @property
    def groups(self) -> int:
        """All groups."""
        return self.attribute_groups * self.levels

    @property
    def shifting(self) -> int:
        """Values of the attributes that form no groups."""
        return sum(size for size, grouped in zip(self.blocks, self.grouped, strict=True) if not grouped)

    @property
    def noise_width(self) -> int:
        """Numbers of noise for a series."""
        return copula_noise(len(self.sizes), self.length, missing=sum(self.missing), candidates=self.candidates)

    @property
    def noise_of_one(self) -> int:
        """Numbers of noise for a candidate."""
        return self.noise_width if self.candidates == 1 else self.noise_width // self.candidates - 1

    @property
    def summaries(self) -> int:
        """Numbers that say what a series looks like as a whole."""
        return len(self.sizes) * (len(NAMES) - (not self.steepest)) + sum(self.missing)

    def attribute_group(self, condition: Tensor | None, rows: int) -> Tensor:
        """Return each record's group by attributes ``(rows,)`` int64."""
        found = torch.zeros(rows, dtype=torch.long)
        if condition is None:
            return found
        for block, size, grouped in zip(
            torch.split(condition, list(self.blocks), dim=1), self.blocks, self.grouped, strict=True
        ):
            if grouped:
                found = found * size + block.argmax(dim=1).cpu()
        return found

    def shifts(self, condition: Tensor | None, rows: int) -> Tensor:
        """Return the one-hot blocks ``(rows, K')`` of the attributes that form no groups."""
        if condition is None or not self.shifting:
            return torch.zeros(rows, 0)
        blocks = torch.split(condition, list(self.blocks), dim=1)
        return torch.cat([block for block, grouped in zip(blocks, self.grouped, strict=True) if not grouped], dim=1)


class CopulaGenerator(nn.Module):
    """Map of noise and attributes to places; see the module.

    Args:
        shape: The tensors' sizes.

    Attributes:
        tables: ``(groups or 1, parts, cells + 1)`` cumulative shares from 0 to 1, padded with ones.
        step_tables: ``(parts, cells + 1)`` likewise, of all groups together.
        mixed: ``(parts, cells + 1)`` the model's cumulative shares of all groups together at the cells' ends, where
            step tables are exact.
        means: ``(groups, parts)`` of scores.
        factors: ``(groups, parts, parts)`` of their covariance, lower triangular.
        effects: ``(K', parts)`` shifts of the scores by attributes.
        level_ends: ``(attribute groups, levels)`` cumulative shares of the levels.
        calm: ``(1,)`` strength of the difference between calm and busy stretches.
        gaps: ``(missing channels, length, 2)`` chance of a missing step after a present one and after a missing one.
        gap_factor: ``(missing channels, missing channels)`` how the numbers that gaps are drawn from go together; this
            and the next only where gaps do.
        gap_share: ``(1,)`` share of series in which they do.
        high, frequent: See :class:`SeriesSummaries`; these and the next four only where there are several candidates.
        cuts: ``(summaries, CUTS)`` increasing; a number is in the bin after the last cut that is not above it.
        leans: ``(summaries, CUTS + 1)`` logarithm of how much more likely a candidate in a bin is to be kept.
        holds: ``(1 + K, channels * slowest)`` likewise of the lowest cosines of scores, which keep their means: over
            all series, and within each attribute's value.
        never: ``(missing channels,)`` chance that a series has no value of a channel at all.
    """

    tables: Tensor
    step_tables: Tensor
    mixed: Tensor
    means: Tensor
    factors: Tensor
    effects: Tensor
    level_ends: Tensor
    calm: Tensor
    gaps: Tensor
    gap_factor: Tensor
    gap_share: Tensor
    high: Tensor
    frequent: Tensor
    cuts: Tensor
    leans: Tensor
    holds: Tensor
    never: Tensor

    def __init__(self, shape: CopulaShape) -> None:
        super().__init__()
        self.shape = shape
        self.noise_width = shape.noise_width
        parts, most = shape.parts, max(shape.sizes) + 1
        even = torch.ones(parts, most)
        for channel, size in enumerate(shape.sizes):
            own = slice(channel * shape.length, (channel + 1) * shape.length)
            even[own, : size + 1] = torch.linspace(0, 1, size + 1)
        self.register_buffer("tables", even.repeat(shape.groups if shape.own_tables else 1, 1, 1))
        self.register_buffer("step_tables", even.clone())
        self.register_buffer("mixed", even.clone() if shape.exact else torch.zeros(0, 0))
        self.register_buffer("means", torch.zeros(shape.groups, parts))
        self.register_buffer("factors", torch.eye(parts).repeat(shape.groups, 1, 1))
        self.register_buffer("effects", torch.zeros(shape.shifting, parts))
        ends = torch.arange(1, shape.levels + 1) / shape.levels
        self.register_buffer("level_ends", ends.repeat(shape.attribute_groups, 1))
        self.register_buffer("calm", torch.zeros(1))
        self.register_buffer("gaps", torch.zeros(sum(shape.missing), shape.length, 2))
        if shape.shared_gaps:
            self.register_buffer("gap_factor", torch.eye(sum(shape.missing)))
            self.register_buffer("gap_share", torch.ones(1))
        if shape.candidates > 1:
            channels, looks = len(shape.sizes), shape.summaries
            self.register_buffer("high", torch.zeros(channels, dtype=torch.long))
            self.register_buffer("frequent", torch.full((channels,), -1))
            self.register_buffer("cuts", torch.zeros(looks, CUTS, dtype=torch.long))
            self.register_buffer("leans", torch.zeros(looks, CUTS + 1))
            self.register_buffer("never", torch.zeros(sum(shape.missing)))
            self.register_buffer("holds", torch.zeros(1 + sum(shape.blocks), channels * min(SLOWEST, shape.length)))

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return places ``(B, channels, length)``.

        Args:
            noise: ``(B, noise_width)`` standard normal.
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        noise = noise[:, : self.shape.noise_width]
        if self.shape.candidates == 1:
            return self.drawn(noise, condition)
        kept = [torch.zeros(0, len(self.shape.sizes), self.shape.length).to(noise)]
        for first in range(0, len(noise), _AT_ONCE):
            own = slice(first, first + _AT_ONCE)
            kept.append(self._chosen(noise[own], None if condition is None else condition[own]))
        return torch.cat(kept)

    def _chosen(self, noise: Tensor, condition: Tensor | None) -> Tensor:
        """Return the candidate that is kept of each series."""
        count = self.shape.candidates
        drawn, choice = noise[:, :-count], noise[:, -count:]
        beside = None if condition is None else condition.repeat_interleave(count, 0)
        places = self.drawn(drawn.reshape(len(noise) * count, -1), beside)
        best = self.choose(places, choice, condition)
        return places.view(len(noise), count, len(self.shape.sizes), -1)[torch.arange(len(noise)), best]

    def choose(self, places: Tensor, choice: Tensor, condition: Tensor | None) -> Tensor:
        """Return which candidate of each series is kept ``(B,)``.

        Args:
            places: ``(B * candidates, channels, length)``, the candidates of a series in a row.
            choice: ``(B, candidates)`` standard normal.
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        looks = SeriesSummaries(
            sizes=self.shape.sizes,
            scores=whole_scores(self.step_tables),
            high=self.high,
            frequent=self.frequent,
            missing=self.shape.missing,
            steepest=self.shape.steepest,
        )
        found, waves = looks.with_waves(places)
        holds = self.holds[:1].double().expand(len(choice), -1)
        if condition is not None:
            holds = holds + condition.double() @ self.holds[1:].double()
        leans = summed_leans(to_bins(found, self.cuts), self.leans.double()).view(choice.shape)
        leans = leans + torch.einsum("bcw,bw->bc", waves.view(*choice.shape, -1), holds)
        # The largest of these sums is as likely a candidate's as its exponential says (Gumbel).
        chance = torch.special.ndtr(choice.double()).clamp(1e-12, 1 - 1e-12)
        return (leans - torch.log(-torch.log(chance))).argmax(1)

    def drawn(self, noise: Tensor, condition: Tensor | None = None, missing: Tensor | None = None) -> Tensor:
        """Return places ``(B, channels, length)``, the first candidate of each, from its own noise.

        Args:
            noise: ``(B, noise of one)`` standard normal.
            condition: ``(B, K)`` one-hot blocks, or None.
            missing: ``(B, missing channels)`` whether the step before the first has no value; None: there is none.
        """
        shape, rows = self.shape, len(noise)
        gappy = sum(shape.missing)
        own, slow, _, gaps, measured = torch.split(
            noise,
            [shape.parts, shape.length, 1, shape.length * gappy, gappy if shape.candidates > 1 else 0],
            dim=1,
        )
        group = self.group(noise, condition)
        if shape.shared_gaps:
            there, factor = self._gaps_join(noise, group)[:, None], self.gap_factor.double()
            gaps, measured = gaps.double(), measured.double()
            joined = torch.einsum("cd,bdt->bct", factor, gaps.view(rows, gappy, -1)).flatten(1)
            gaps = torch.where(there, joined, gaps)
            measured = torch.where(there, measured @ factor.T, measured) if measured.numel() else measured
        scores = torch.empty(rows, shape.parts, dtype=torch.float64)
        for number in sorted(set(group.tolist())):
            there = group == number
            scores[there] = self._scores(number, own[there], slow[there])
        scores += (shape.shifts(condition, rows) @ self.effects).double()
        shares = torch.special.ndtr(scores.T.contiguous()).clamp_(_LEAST, 1 - _LEAST)  # part by part, as tables are
        if shape.own_tables:
            flat = torch.empty_like(shares)
            for number in sorted(set(group.tolist())):
                there = torch.nonzero(group == number)[:, 0]
                flat[:, there] = self._placed(self.tables[number], shares[:, there])
        else:
            flat = self._placed(self.tables[0], shares)
        if shape.exact:
            flat = self._placed(self.step_tables, shares_in(self.mixed, flat).clamp_(0, _BELOW))
        places = flat.T.contiguous()
        places = self._with_gaps(places.view(rows, len(shape.sizes), shape.length), gaps, missing)
        if measured.numel():
            channels = [channel for channel, may_be in enumerate(shape.missing) if may_be]
            for place, channel in enumerate(channels):
                never = torch.special.ndtr(measured[:, place].double()) < self.never[place].double()
                places[never, channel] = shape.sizes[channel] + 0.5
        return places.to(noise.dtype)

    def group(self, noise: Tensor, condition: Tensor | None) -> Tensor:
        """Return the group ``(B,)`` of each candidate: its attributes', and a level drawn from its own noise."""
        shape = self.shape
        attribute = shape.attribute_group(condition, len(noise))
        place = torch.special.ndtr(noise[:, shape.parts + shape.length].double()).float()
        level = (place[:, None] >= self.level_ends[attribute]).sum(1).clamp(max=shape.levels - 1)
        found: Tensor = attribute * shape.levels + level
        return found

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if self.shape.shared_gaps:
            state_dict.setdefault(f"{prefix}gap_share", torch.ones(1))  # it had none before, and gaps joined
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _gaps_join(self, noise: Tensor, group: Tensor) -> Tensor:
        """Return whether gaps of channels go together ``(B,)``, by what the level leaves of its number."""
        shape = self.shape
        place = torch.special.ndtr(noise[:, shape.parts + shape.length].double())
        ends = torch.nn.functional.pad(self.level_ends, (1, 0)).double()
        attribute, level = group // shape.levels, group % shape.levels
        low, high = ends[attribute, level], ends[attribute, level + 1]
        found: Tensor = place - low < self.gap_share.double() * (high - low)
        return found

    def _scores(self, group: int, own: Tensor, slow: Tensor) -> Tensor:
        """Return one group's scores ``(B, parts)`` float64."""
        shape, factor = self.shape, self.factors[group].double()
        scores = own.double() @ factor.T
        if not shape.calm:
            return scores + self.means[group].double()
        fast, factors = self.fast_part(), self.slow_factors(slow)
        by_channel = scores.view(len(own), len(shape.sizes), shape.length)
        quick = by_channel @ fast.T
        busy = (by_channel - quick + quick * factors[:, None]).flatten(1)
        return self._normal_again(busy, factor) + self.means[group].double()

    def fast_part(self) -> Tensor:
        """Return the projection ``(length, length)`` on changes within a few steps."""
        return fast_projection(self.shape.length)

    def slow_factors(self, slow: Tensor) -> Tensor:
        """Return the factors ``(B, length)`` of each step's fast part: log-normal with a mean square of one."""
        return calm_factors(slow.double(), float(self.calm))

    def _normal_again(self, scores: Tensor, factor: Tensor) -> Tensor:
        """Return scores with each step's mixture of normals mapped back to the step's normal distribution."""
        shape = self.shape
        fast = self.fast_part()
        rows = factor.view(len(shape.sizes), shape.length, -1)
        quick = torch.einsum("st,ctk->csk", fast, rows)
        slow = rows - quick
        slow_var, quick_var = slow.square().sum(2).flatten(), quick.square().sum(2).flatten()
        both = (slow * quick).sum(2).flatten()
        deviation = rows.square().sum(2).flatten().sqrt()
        nodes = torch.linspace(-3.5, 3.5, _NODES, dtype=torch.float64)
        weights = torch.exp(-nodes.square() / 2)
        weights /= weights.sum()
        strength, total = float(self.calm), torch.zeros_like(scores)
        for node, weight in zip(nodes, weights, strict=True):
            times = torch.exp(strength * node - strength**2)
            variance = (slow_var + 2 * times * both + times.square() * quick_var).clamp(min=1e-9)
            total += weight * torch.special.ndtr(scores / variance.sqrt())
        found: Tensor = torch.special.ndtri(total.clamp(_LEAST, 1 - _LEAST)) * deviation
        return found

    def _placed(self, tables: Tensor, shares: Tensor) -> Tensor:
        """Return the places ``(parts, B)`` of cumulative shares ``(parts, B)``."""
        return places_at(tables, shares, self._last_cells())

    def _last_cells(self) -> Tensor:
        return torch.tensor(self.shape.sizes).repeat_interleave(self.shape.length) - 1

    def _with_gaps(self, places: Tensor, noise: Tensor, before: Tensor | None) -> Tensor:
        """Return places with missing steps, drawn by a Markov chain, which may go on from a step before."""
        shape, first = self.shape, 0
        uniform = torch.special.ndtr(noise.double())
        for place, channel in enumerate(c for c, may_be in enumerate(shape.missing) if may_be):
            chances = self.gaps[place].double()
            missing = torch.zeros(len(places), dtype=torch.bool)
            if before is not None:
                chances, missing = _going_on(chances), before[:, place]
            for step in range(shape.length):
                chance = torch.where(missing, chances[step, 1], chances[step, 0])
                missing = uniform[:, first + step] < chance
                places[missing, channel, step] = shape.sizes[channel] + 0.5
            first += shape.length
        return places


def _going_on(chances: Tensor) -> Tensor:
    """Return a chain of missing steps ``(length, 2)`` whose first step follows the last one of another series.

    A gap goes on as it does within a series, and one begins so often that the first step's share stays.
    """
    share = chances[0, 0]
    for after_value, after_gap in chances[1:]:
        share = share * after_gap + (1 - share) * after_value
    now = chances[0, 0]
    goes_on = torch.minimum(chances[1:, 1].max(), now / share.clamp(min=1e-12))
    begins = ((now - share * goes_on) / (1 - share).clamp(min=1e-12)).clamp(0, 1)
    return torch.cat([torch.stack([begins, goes_on])[None], chances[1:]])


def fast_projection(length: int) -> Tensor:
    """Return the projection ``(length, length)``, float64, on all but the lowest sixth of cosines."""
    waves = cosines(length)
    waves = waves[max(2, length // 6) :]
    return waves.T @ waves


def calm_memory(length: int) -> float:
    """Return the correlation of the fast part's factor from one step to the next."""
    return math.exp(-1 / (CALM_MEMORY * length))


def calm_factors(slow: Tensor, strength: float) -> Tensor:
    """Return log-normal factors ``(B, length)`` of mean square one, from standard normal numbers ``(B, length)``."""
    return torch.exp(strength * slow_scores(slow) - strength**2)


def slow_scores(slow: Tensor) -> Tensor:
    """Return standard normal numbers ``(B, length)`` that follow one another slowly, from independent ones."""
    length = slow.shape[1]
    steps = torch.arange(length, dtype=torch.float64)
    correlated = torch.linalg.cholesky(calm_memory(length) ** (steps[:, None] - steps).abs())
    found: Tensor = slow @ correlated.T
    return found


def places_at(tables: Tensor, shares: Tensor, last: Tensor) -> Tensor:
    """Return places ``(parts, B)`` float64 from cumulative shares.

    Args:
        tables: ``(parts, cells + 1)`` from 0 to 1.
        shares: ``(parts, B)`` in (0, 1).
        last: ``(parts,)`` each part's last cell.
    """
    tables = tables.double()
    cell = torch.searchsorted(tables, shares, right=True).sub_(1).clamp_(min=0)
    cell = torch.minimum(cell, last[:, None])
    below = tables.gather(1, cell)
    width = tables.gather(1, cell + 1).sub_(below).clamp_(min=1e-12)
    within = torch.sub(shares, below).div_(width).clamp_(0, 1 - 2.0**-10)
    return within.add_(cell)


def shares_at(tables: Tensor, places: Tensor) -> Tensor:
    """Return cumulative shares ``(…, parts)`` at places ``(…, parts)``, from tables ``(parts, cells + 1)``.

    Each number depends on its own place only, so that a query may apply this to records.
    """
    flat = places.double().reshape(-1, places.shape[-1])
    return shares_in(tables, flat.T.contiguous()).T.reshape(places.shape)


def shares_in(tables: Tensor, places: Tensor) -> Tensor:
    """Return the same ``(parts, B)`` of places ``(parts, B)``."""
    tables = tables.double()
    cell = places.detach().floor().clamp_(0, tables.shape[1] - 2).long()
    below = tables.gather(1, cell)
    return below + (places - cell).clamp(0, 1) * (tables.gather(1, cell + 1) - below)


def normal_scores(shares: Tensor) -> Tensor:
    """Return standard normal numbers at cumulative shares, within the limit."""
    found: Tensor = torch.special.ndtri(shares.clamp(_LEAST, 1 - _LEAST))
    return found.clamp(-SCORE_LIMIT, SCORE_LIMIT)


def over_gaps(scores: Tensor, known: Tensor) -> Tensor:
    """Return scores ``(B, channels, length)`` with gaps interpolated linearly, and ends filled with the nearest.

    Args:
        scores: Values in gaps are ignored; a channel without any value gets zeros.
        known: ``(B, channels, length)`` whether a step has a value.
    """
    length = scores.shape[2]
    steps = torch.arange(length, device=scores.device).expand_as(known)
    before = torch.where(known, steps, -1).cummax(dim=2).values
    after = torch.where(known, steps, length).flip(2).cummin(dim=2).values.flip(2)
    left = torch.where(before >= 0, before, torch.where(after < length, after, 0))
    right = torch.where(after < length, after, left)
    left = torch.where(before >= 0, left, right)
    share = (steps - left) / (right - left).clamp(min=1)
    bridged = scores.gather(2, left) * (1 - share) + scores.gather(2, right) * share
    return torch.where(known, scores, torch.where(known.any(dim=2, keepdim=True), bridged, 0.0))
