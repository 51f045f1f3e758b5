"""Shares of series' summaries from noisy counts, and the leans that give a model these shares.

Bins are cut at quantiles of what the model draws. A count says by how much a bin is more frequent than that. Deviations
of neighbouring bins are alike, and their size is averaged over by its evidence: where noise hides them, the model stays
as it was. All of it is post-processing.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import logit
from torch import Tensor

from doublure.networks.series_summaries import summed_leans

Floats: TypeAlias = npt.NDArray[np.float64]

_SIZES = np.append(0.0, 2.0 ** np.arange(-6, 7))
"""Candidates of how large bins' relative deviations are, up to a bin that only the truth has often."""
_REACHES = (0.5, 2.0, 8.0)
"""Candidates of how far along the logits of quantiles deviations are alike."""
_SWEEPS = 40
_LEAST, _MOST, _DAMPED = 1e-4, 6.0, 0.1


def posterior_shares(counted: Floats, drawn: Floats, *, noise: float, draws: int) -> Floats:
    """Return the shares ``(bins,)`` of a summary, from noisy shares and those of the model's draws.

    Args:
        counted: ``(bins,)`` with noise.
        drawn: ``(bins,)`` shares of the model's draws, adding up to 1.
        noise: Standard deviation of each of the noisy shares.
        draws: Number of the model's draws.
    """
    used = drawn > 0
    own, apart = drawn[used], (counted - drawn)[used]
    places = logit(np.clip(np.cumsum(own) - own / 2, 1e-4, 1 - 1e-4))
    far = np.abs(np.subtract.outer(places, places))
    noisy = np.diag(noise**2 + own * (1 - own) / draws)
    evidence, means = [], []
    for reach in _REACHES:
        like = np.outer(own, own) * np.exp(-far / reach)
        for size in _SIZES:
            prior = size**2 * like
            whole = np.linalg.cholesky(prior + noisy)
            solved = np.linalg.solve(whole, apart)
            evidence.append(-(solved**2).sum() / 2 - np.log(np.diag(whole)).sum())
            means.append(prior @ np.linalg.solve(whole.T, solved))
    chances = np.exp(np.array(evidence) - max(evidence))
    found = np.zeros_like(drawn)
    found[used] = np.maximum(own + (chances / chances.sum()) @ np.array(means), 0)
    shares: Floats = found / max(found.sum(), 1e-12) if found.sum() > 0 else drawn
    return shares


def leans_for(
    bins: Tensor, waves: Tensor, wanted: Tensor, conditions: Tensor | None = None, *, candidates: int
) -> tuple[Tensor, Tensor]:
    """Return the leans with which kept candidates have the wanted shares, and the waves' means (raking).

    Means are kept over all series and within each attribute's value. Series of a value whose kept means are off by no
    more than chance may explain stay so (James and Stein).

    Args:
        bins: ``(series * candidates, summaries)``, the candidates of a series in a row.
        waves: ``(series * candidates, W)`` numbers whose means are kept.
        wanted: ``(summaries, bins)`` shares.
        conditions: ``(series, K)`` one-hot blocks; None without attributes.
        candidates: Their number a series.

    Returns:
        ``(summaries, bins)`` of bins, and ``(1 + K, W)`` of waves: over all series, and beside them for each value.
    """
    summaries, size = wanted.shape
    series = len(waves) // candidates
    there = torch.zeros(series, 0) if conditions is None else conditions
    there = torch.cat([torch.ones(series, 1, dtype=torch.float64), there.double()], dim=1)
    leans = torch.zeros(summaries, size, dtype=torch.float64)
    holds = torch.zeros(there.shape[1], waves.shape[1], dtype=torch.float64)
    own = waves.view(series, candidates, -1)
    own = own - own.mean(1, keepdim=True)
    within = own.flatten(0, 1)
    curvature = within.T @ within / len(waves)
    damped = _DAMPED * float(curvature.diagonal().mean()) + _LEAST
    curvature += damped * torch.eye(len(curvature), dtype=torch.float64)
    total = summed_leans(bins, leans)
    for _ in range(_SWEEPS):
        for one in range(summaries):
            chances = torch.softmax(total.view(-1, candidates), dim=1).flatten()
            reached = torch.zeros(size, dtype=torch.float64).index_add_(0, bins[:, one], chances)
            more = torch.log((wanted[one] + _LEAST) / (reached / reached.sum() + _LEAST))
            more = (leans[one] + more).clamp(-_MOST, _MOST) - leans[one]
            leans[one] += more
            total += more[bins[:, one]]
        moved = torch.einsum("sc,scw->sw", torch.softmax(total.view(-1, candidates), dim=1), own)
        more = _beyond_chance(moved, there, curvature)
        holds -= more
        total -= torch.einsum("sw,scw->sc", there @ more, own).flatten()
    return leans, holds


def _beyond_chance(moved: Tensor, there: Tensor, curvature: Tensor) -> Tensor:
    """Return the holds ``(1 + K, W)`` that take back by how much more than chance kept waves have moved.

    Args:
        moved: ``(series, W)`` of each series.
        there: ``(series, 1 + K)`` one, and one-hot blocks.
        curvature: ``(W, W)`` covariance of a series' candidates.
    """
    count = there.sum(0)[:, None].clamp(min=1)
    mean = there.T @ moved / count
    apart = torch.cat([mean[:1], mean[1:] - mean[0]])
    whole = torch.linalg.inv(torch.linalg.cholesky(curvature))
    size = (apart @ whole.T).square().sum(1, keepdim=True)
    spread = there.T @ (moved @ whole.T).square().sum(1, keepdim=True) / count
    spread = spread - (mean @ whole.T).square().sum(1, keepdim=True)
    share = (1 - spread / count / size.clamp(min=1e-30)).clamp(min=0)
    share[0] = 1
    share[1:] /= max(1.0, float(there[0, 1:].sum()))  # attributes' values share what moved
    found: Tensor = share * apart @ whole.T @ whole
    return found
