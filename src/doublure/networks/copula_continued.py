"""Series that go on beyond a window of a copula: each next window is drawn given the one before it.

A window's model says how its own steps go together, and nothing across a seam. There two steps of the halves beside it
go together as steps that are as far apart within a window do on average, or as those at the same places of a shorter
season, if a window has several. All else is independent given these halves, so that what lasts for windows fades.

All of it is post-processing: nothing is asked of records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from doublure.networks.copula import CopulaGenerator, calm_memory, slow_scores
from doublure.support.arrays import Floats

_FLOOR = 1e-4
"""Least eigenvalue of the correlations of two windows."""


def seam(within: Floats, season: int) -> Floats:
    """Return the correlations ``(C, L, C, L)`` of a window's steps with those of the next one.

    Args:
        within: ``(C, L, C, L)`` correlations of a window's steps, a channel's by another's.
        season: Steps after which a window's steps are alike; the length, if none within it are.
    """
    channels, length = within.shape[:2]
    half = length // 2
    across = np.zeros((half, channels, half, channels))
    for before in range(half):
        for after in range(half):
            place, lag = length - half + before, half - before + after
            starts = np.arange(length - lag)
            alike = starts[(starts - place) % season == 0]
            starts = alike if len(alike) else starts
            across[before, :, after] = within[:, starts, :, starts + lag].mean(0)
    size = half * channels
    whole = within.transpose(1, 0, 3, 2).reshape(length * channels, -1)  # step by step
    whole = whole + _FLOOR * np.eye(len(whole))
    last, first = slice(len(whole) - size, None), slice(size)
    together = contraction(whole[last, last], across.reshape(size, size), whole[first, first])
    from_last = np.linalg.solve(np.linalg.cholesky(whole[last, last]), whole[last])
    from_first = np.linalg.solve(np.linalg.cholesky(whole[first, first]), whole[first])
    found: Floats = (from_last.T @ together @ from_first).reshape(length, channels, length, channels)
    return found.transpose(1, 0, 3, 2)


def contraction(left: Floats, across: Floats, right: Floats) -> Floats:
    """Return ``(A, B)`` how the white noise of two blocks goes together, of norm 1 at most.

    Correlations across that are taken from elsewhere need not go with those of the blocks: the nearest ones that do are
    taken, by a floor on the eigenvalues of the whole.

    Args:
        left: ``(A, A)`` correlations of one block.
        across: ``(A, B)``.
        right: ``(B, B)``.
    """
    values, vectors = np.linalg.eigh(np.block([[left, across], [across.T, right]]))
    whole = (vectors * np.maximum(values, _FLOOR)) @ vectors.T
    sides = slice(len(left)), slice(len(left), None)
    first, second = (np.linalg.cholesky(whole[side, side]) for side in sides)
    found: Floats = np.linalg.solve(second, np.linalg.solve(first, whole[sides]).T).T
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """The last windows of series that go on.

    Attributes:
        places: ``(B, channels, length)``.
        noise: ``(B, noise of one)`` that they were drawn from.
        group: ``(B,)``.
    """

    places: Tensor
    noise: Tensor
    group: Tensor


class ContinuedCopula:
    """Draws windows that follow one another.

    Args:
        generator: A fitted copula.
        season: See :func:`seam`.
    """

    def __init__(self, generator: CopulaGenerator, season: int) -> None:
        self._made, self._shape = generator, generator.shape
        self._factors = generator.factors.double().numpy()
        deviations = np.sqrt((self._factors**2).sum(2))
        self._unit = self._factors / deviations[:, :, None]
        own = np.mean([factor @ factor.T for factor in self._unit], axis=0)
        sides = (len(self._shape.sizes), self._shape.length) * 2
        self._across = seam(own.reshape(sides), season).reshape(own.shape)
        self._level = self._levels_go_together()
        self._coupled: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    def _levels_go_together(self) -> float:
        """Return the correlation of windows' levels: what a window's halves have in common lasts (Spearman and Brown).

        Halves correlate by c, as they do across a seam. Windows of a common level then do by 2 c / (1 + c).
        """
        shape = self._shape
        if shape.levels == 1:
            return 0.0
        means = self._made.means.double().numpy()
        both = np.mean([
            factor @ factor.T + np.outer(mean, mean) for factor, mean in zip(self._factors, means, strict=True)
        ], axis=0)  # fmt: skip
        both -= np.outer(means.mean(0), means.mean(0))
        scale = np.sqrt(np.diag(both))
        within = (both / np.outer(scale, scale)).reshape(len(shape.sizes), shape.length, len(shape.sizes), -1)
        half = shape.length // 2
        common = within[:, :half, :, -half:].sum() / math.sqrt(
            within[:, :half, :, :half].sum() * within[:, -half:, :, -half:].sum()
        )
        return float(np.clip(2 * common / (1 + max(common, 0.0)), 0, 1 - _FLOOR))

    def first(self, noise: Tensor, condition: Tensor | None) -> Window:
        """Return the first windows, from ``(B, noise width)`` standard normal numbers."""
        return self._kept(noise, condition, None)

    def next(self, before: Window, noise: Tensor, condition: Tensor | None) -> Window:
        """Return the windows after ``before``."""
        return self._kept(noise, condition, before)

    def _kept(self, noise: Tensor, condition: Tensor | None, before: Window | None) -> Window:
        """Return the candidates that are kept."""
        count, rows = self._shape.candidates, len(noise)
        own = noise[:, : self._shape.noise_width]
        own, choice = (own, None) if count == 1 else (own[:, :-count], own[:, -count:])
        own = own.reshape(rows * count, -1)
        beside = None if condition is None else condition.repeat_interleave(count, 0)
        missing = None
        if before is not None:
            again = Window(
                places=before.places.repeat_interleave(count, 0),
                noise=before.noise.repeat_interleave(count, 0),
                group=before.group.repeat_interleave(count, 0),
            )
            own = self._carried(again, own, beside)
            if any(self._shape.missing):
                sizes = torch.tensor(self._shape.sizes)
                missing = (again.places[:, :, -1] >= sizes)[:, list(self._shape.missing)]
        places = self._made.drawn(own, beside, missing)
        group = self._made.group(own, beside)
        if choice is None:
            return Window(places=places, noise=own, group=group)
        best = self._made.choose(places, choice, condition) + torch.arange(rows) * count
        return Window(places=places[best], noise=own[best], group=group[best])

    def _carried(self, before: Window, noise: Tensor, condition: Tensor | None) -> Tensor:
        """Return noise that follows that of the windows before, from independent noise."""
        shape = self._shape
        parts, length = shape.parts, shape.length
        found = noise.clone()
        level = parts + length
        rho = self._level
        found[:, level] = rho * before.noise[:, level] + (1 - rho**2) ** 0.5 * noise[:, level]
        if shape.calm:
            kept = calm_memory(length)
            last = slow_scores(before.noise[:, parts : parts + length].double())[:, -1]
            found[:, parts] = kept * last + (1 - kept**2) ** 0.5 * noise[:, parts]
        if any(shape.missing) and shape.candidates > 1:
            gappy = sum(shape.missing)
            found[:, -gappy:] = before.noise[:, -gappy:]  # what is never measured stays so
        group = self._made.group(found, condition)
        pairs = before.group * shape.groups + group
        for pair in sorted(set(pairs.tolist())):
            there = pairs == pair
            follows, fresh = self._coupling(*divmod(pair, shape.groups))
            own = before.noise[there, :parts].double() @ follows.T + noise[there, :parts].double() @ fresh.T
            found[there, :parts] = own.to(found.dtype)
        return found

    def _coupling(self, before: int, after: int) -> tuple[Tensor, Tensor]:
        """Return what a window's noise is given that of the one before, and what is fresh ``(parts, parts)``."""
        found = self._coupled.get((before, after))
        if found is None:
            own, other = self._unit[before], self._unit[after]
            coupled = np.linalg.solve(own, np.linalg.solve(other, self._across.T).T).T
            out, sizes, back = np.linalg.svd(coupled)
            sizes = np.minimum(sizes, 1.0)
            follows, fresh = (out * sizes) @ back, (out * np.sqrt(1 - sizes**2)) @ out.T
            found = self._coupled[before, after] = torch.from_numpy(follows), torch.from_numpy(fresh)
        return found
