"""Gaps that channels share: the question asked of a series, and the correlations that noisy answers give.

Each channel's gaps are a chain (:mod:`doublure.methods.statistics.series.gap_chains`), drawn from a normal number a
step, and another says whether it is measured at all. These numbers correlate between two channels, so that both lack a
value at as many steps as the noisy mean says, and each channel's own chain stays. What noise hides falls back to what
all pairs have in common, and that to independent channels.

Two pairs of three channels may lack values at the same steps, of one cause, or at others. So with three channels or
more the steps at which any two lack one are asked for, too. In some series numbers correlate, in the others they do
not: the fewer correlate, and so the more, the more steps the pairs have in common.
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from doublure.methods.statistics.series.marginal_tables import shrink

Floats: TypeAlias = npt.NDArray[np.float64]

_ANGLES = np.linspace(0, np.arcsin(1 - 1e-9), 65)
_STRENGTHS: Floats = np.sin(_ANGLES)
"""Candidates of a correlation, in order."""
_LEAST = 1e-9
_SIMULATED, _PARTS = 4000, 5


def shared_steps(body: Tensor, sizes: tuple[int, ...], missing: tuple[bool, ...]) -> Tensor:
    """Return ``(B, pairs)`` the share of steps at which both of two channels that may have gaps have one.

    Of three channels or more, that at which any two have one follows.

    Args:
        body: ``(B, channels, length)`` places.
        sizes: Number of cells of each channel.
        missing: Whether each channel may have missing steps.
    """
    beyond = body - torch.tensor(sizes)[:, None]
    gone = ((beyond >= 0) & (beyond < 1))[:, list(missing)]
    found = [(gone[:, one] & gone[:, other]).double().mean(1) for one, other in combinations(range(gone.shape[1]), 2)]
    if gone.shape[1] > 2:
        found.append((gone.sum(1) > 1).double().mean(1))
    return torch.stack(found, dim=1) if found else torch.zeros(len(body), 0, dtype=torch.float64)


def expected_steps(chances: Floats, never: Floats, reach: Floats) -> Floats:
    """Return the shares ``(pairs, strengths)`` that the chains of two channels give, by their correlation.

    Args:
        chances: ``(channels, length, 2)`` of the chains.
        never: ``(channels,)`` share of series without any value of a channel.
        reach: ``(length,)`` share of series that reach each step.
    """
    cuts = ndtri(np.clip(chances, _LEAST, 1 - _LEAST))
    at_all = ndtri(np.clip(never, _LEAST, 1 - _LEAST))
    found = []
    for one, other in combinations(range(len(chances)), 2):
        both = _both_below(cuts[one][:, :, None], cuts[other][:, None, :])
        nothing = _both_below(at_all[one], at_all[other])
        alone, beside = np.maximum(never[one] - nothing, 0), np.maximum(never[other] - nothing, 0)
        neither = np.maximum(1 - nothing - alone - beside, 0)
        states = np.zeros((len(_STRENGTHS), 2, 2))
        states[:, 0, 0] = 1.0
        total = np.zeros(len(_STRENGTHS))
        for step, share in enumerate(reach):
            joint = both[:, step]
            gone = (states * joint).sum((1, 2))
            first = (states * chances[one, step][:, None]).sum((1, 2))
            second = (states * chances[other, step]).sum((1, 2))
            states = np.stack([1 - first - second + gone, second - gone, first - gone, gone], axis=1)
            states = np.maximum(states, 0).reshape(-1, 2, 2)
            total += share * (nothing + alone * second + beside * first + neither * gone)
        found.append(total / len(reach))
    return np.maximum.accumulate(np.array(found), axis=1)


def _both_below(first: Floats, second: Floats) -> Floats:
    """Return ``(strengths, …)`` the chance that two normal numbers both lie below limits (Plackett 1954)."""
    angles = _ANGLES.reshape(-1, *([1] * np.broadcast(first, second).ndim))
    density = np.exp(-(first**2 + second**2 - 2 * first * second * np.sin(angles)) / (2 * np.cos(angles) ** 2))
    pieces = (density[1:] + density[:-1]) / 2 * np.diff(angles, axis=0) / (2 * np.pi)
    gained = np.concatenate([np.zeros_like(density[:1]), np.cumsum(pieces, axis=0)])
    together = ndtr(first) * ndtr(second) + gained
    return np.asarray(np.minimum(together, np.minimum(ndtr(first), ndtr(second))), dtype=np.float64)


def count_asked(channels: int) -> int:
    """Return how many shares of steps are asked for, of so many channels that may have gaps."""
    return channels * (channels - 1) // 2 + (channels > 2)


def join_gaps(
    counted: Floats, expected: Floats, *, noise: float, chances: Floats, never: Floats, reach: Floats
) -> tuple[float, Floats]:
    """Return in which share of series gaps go together, and the factor ``(channels, channels)`` by which they do there.

    Args:
        counted: Noisy shares of steps: ``(pairs,)``, and of three channels or more that of any two.
        expected: ``(pairs, strengths)``; see :func:`expected_steps`.
        noise: Standard deviation of the noisy shares.
        chances: ``(channels, length, 2)`` of the chains.
        never: ``(channels,)`` share of series without any value of a channel.
        reach: ``(length,)`` share of series that reach each step.
    """
    pairs, channels = len(expected), len(chances)
    wanted, apart = _wanted(counted[:pairs], expected, noise), expected[:, 0]
    room = np.maximum(expected[:, -1] - apart, _LEAST)
    least = float(np.clip(((wanted - apart) / room).max(), 0, 1))
    if channels < 3 or least < _LEAST:
        return 1.0, _factor(wanted, expected, channels)
    numbers = np.random.default_rng(0).standard_normal((_SIMULATED, len(reach) + 1, channels))
    shares = np.linspace(least, 1, _PARTS)
    alone, found = _any_two(numbers, chances, never, reach), []
    for share in shares:
        factor = _factor(apart + (wanted - apart) / share, expected, channels)
        found.append(share * _any_two(numbers @ factor.T, chances, never, reach) + (1 - share) * alone)
    # Where noise hides it, pairs have one cause.
    sought = found[0] + shrink(counted[pairs:] - found[0], noise**2)[0]
    share = float(np.interp(sought, np.maximum.accumulate(found), shares))
    return share, _factor(apart + (wanted - apart) / share, expected, channels)


def _wanted(counted: Floats, expected: Floats, noise: float) -> Floats:
    """Return the shares of steps ``(pairs,)`` that noisy ones say."""
    common = int(((counted[:, None] - expected) ** 2).sum(0).argmin())
    apart = expected[:, common] - expected[:, 0]
    length = float((apart**2).sum())
    kept = max(0.0, 1 - noise**2 / length) if length > 0 else 0.0
    found: Floats = expected[:, 0] + kept * apart + shrink(counted - expected[:, common], noise**2)
    return found


def _factor(wanted: Floats, expected: Floats, channels: int) -> Floats:
    """Return what makes independent normal numbers correlate as far as shares of steps say."""
    whole = np.eye(channels)
    for place, (one, other) in enumerate(combinations(range(channels), 2)):
        whole[one, other] = whole[other, one] = np.interp(wanted[place], expected[place], _STRENGTHS)
    values, vectors = np.linalg.eigh(whole)
    found = vectors * np.sqrt(np.maximum(values, 0))  # numbers of one cause are the same, and no floor keeps them apart
    return np.asarray(found / np.sqrt((found**2).sum(1, keepdims=True)), dtype=np.float64)


def _any_two(numbers: Floats, chances: Floats, never: Floats, reach: Floats) -> float:
    """Return the share of steps at which two channels lack a value, of normal numbers ``(series, length + 1, C)``."""
    uniform = ndtr(numbers)
    nothing, gone, total = uniform[:, -1] < never, np.zeros_like(numbers[:, 0], dtype=bool), 0.0
    for step, share in enumerate(reach):
        gone = uniform[:, step] < np.where(gone, chances[:, step, 1], chances[:, step, 0])
        total += share * float(((gone | nothing).sum(1) > 1).mean())
    return total / len(reach)
