"""The rounds of ``evolution``: candidates, noisy votes, and variations of those that were voted for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from doublure.encode.image import of_images
from doublure.methods.evolution.embedding import ROWS, ImageEmbedding, load_extractor
from doublure.methods.evolution.settings import DEVIATIONS, EvolutionSettings
from doublure.methods.evolution.sources import Candidates, CandidateSource, PublicDraw, open_source
from doublure.networks.evolved import KeptImages, to_bytes
from doublure.networks.shares import with_shares
from doublure.private.queries.counts import Counts
from doublure.private.queries.nearest import NearestCandidate
from doublure.training.job import ProgressCounter

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import nn

    from doublure.encode.encoder import Encoder
    from doublure.training.job import Job

    Floats = npt.NDArray[np.float64]

PUBLIC_FOR_ONE = 10
"""The most public images for a candidate: a first step then reaches ten neighbours."""

_STANDARDISED_BY = 2_000
_LEAST, _NEAR = 1.0, 0.15


def build(encoder: Encoder, settings: EvolutionSettings, kept: int, warp: float) -> nn.Module:
    """Return the generator without its images."""
    width, shape = encoder.condition_width, of_images(encoder).body_shape
    made = KeptImages(shape, condition_width=width, kept=kept, warp=warp)
    return with_shares(made, encoder.condition_sizes.values())


def evolve(job: Job[EvolutionSettings, Any], generator: nn.Module) -> nn.Module:
    """Take all rounds of votes and return the generator with the images that they chose.

    Args:
        job: The run.
        generator: Without images.
    """
    encoder, settings = of_images(job.encoder), job.settings
    count, label = settings.population or 1, encoder.schema.label
    labels: list[str | None] = [None] if label is None else [str(value) for value in label.domain]
    job.mechanism.refuse_lost(*job.accesses)
    job.progress.stage("read the public candidates")
    most = max(_STANDARDISED_BY, PUBLIC_FOR_ONE * count * len(labels))
    source = open_source(settings, encoder.schema, most, job.seed)
    people = [source.first(count, _draw(job, 0, name)) for name in labels]
    together = np.concatenate(people)[:: max(1, count * len(labels) // _STANDARDISED_BY)]
    embedding = ImageEmbedding(load_extractor(settings.features, encoder.body_shape), _images(source, together))
    source.learn(embedding, count)
    job.progress.stage("look at the private images", job.units)
    job.agree(embedding.numbers)
    voters: Any = job.seen(partial(embedding.of, progress=ProgressCounter(job, ROWS))).everyone
    job.progress.stage("ask for votes", len(job.accesses))
    votes = np.zeros((len(labels), count))
    totals = np.zeros(len(labels))
    for number, access in enumerate(job.accesses):
        job.check_stop()
        if number:
            degree = 1 - number / len(job.accesses)
            people = [
                _next(source, own, shares, degree, _draw(job, number, name))
                for own, shares, name in zip(people, votes, labels, strict=True)
            ]
        seen = torch.cat([embedding(_images(source, own)) for own in people]).numpy().astype(np.int64)
        classes = np.repeat(np.arange(len(labels)), count)
        axis = NearestCandidate(features=seen, classes=classes, kinds=encoder.condition_width)
        query = Counts(tables=[(axis,)], max_records=encoder.schema.most_records)
        noisy = np.asarray(job.mechanism.release(query, access, voters)).reshape(len(labels), count)
        noise = job.mechanism.deviation(access, query.sensitivity)
        votes = np.stack([candidate_shares(own.astype(np.float64), noise) for own in noisy])
        totals += noisy.sum(axis=1) / len(job.accesses)
        job.progress.at(number + 1)
    inner: Any = generator.generator if label is not None else generator
    for place, (own, shares, name) in enumerate(zip(people, votes, labels, strict=True)):
        draw = _draw(job, len(job.accesses), name)
        inner.images[place] = to_bytes(_images(source, _kept(source, own, shares, inner.images.shape[1], draw)))
    if label is not None:
        generator.knowing(torch.from_numpy(np.maximum(totals, _LEAST)))  # type: ignore[operator]
    return generator.eval()


def candidate_shares(votes: Floats, noise: float) -> Floats:
    """Return the share of each candidate, by its votes beyond the average, or beyond two deviations if that is more.

    Votes that differ by no more than their noise, or none that large, leave all candidates alike.

    Args:
        votes: ``(C,)``, with noise.
        noise: Standard deviation of the noise in each.

    Example:
        >>> candidate_shares(np.array([100.0, 40.0, -4.0, 0.0]), 5.0).round(2).tolist()
        [0.92, 0.08, 0.0, 0.0]
        >>> candidate_shares(np.array([3.0, 1.0, -2.0, 2.0]), 5.0).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    beyond = np.maximum(votes - max(votes.mean(), DEVIATIONS * noise), 0)
    if not beyond.any() or votes.var(ddof=1) <= noise**2:
        return np.full(len(votes), 1 / len(votes))
    shares: Floats = beyond / beyond.sum()
    return shares


def _draw(job: Job[EvolutionSettings, Any], number: int, label: str | None) -> PublicDraw:
    """Return the public randomness of a round and label."""
    said = list(f"{number} {label}".encode())
    return PublicDraw(np.random.default_rng([job.seed, *said]), label)


def _next(source: CandidateSource, own: Candidates, shares: Floats, degree: float, draw: PublicDraw) -> Candidates:
    """Return the next candidates of a label: the best half at most, and variations of candidates by their shares."""
    best = np.argsort(-shares, kind="stable")[: len(own) // 2]
    best = best[shares[best] > 0]
    return np.concatenate([own[best], source.varied(own[_taken(shares, len(own) - len(best), draw)], degree, draw)])


def _taken(shares: Floats, count: int, draw: PublicDraw) -> npt.NDArray[np.int64]:
    """Return ``(count,)`` places of candidates in proportion to their shares: systematic sampling (Madow 1949)."""
    until = np.cumsum(shares) / shares.sum()
    points = (np.arange(count) + draw.rng.random()) / max(1, count)
    found: npt.NDArray[np.int64] = np.searchsorted(until, points).clip(max=len(shares) - 1)
    return found


def _images(source: CandidateSource, candidates: Candidates) -> Tensor:
    """Return the candidates' images, a part at a time."""
    parts = range(0, max(1, len(candidates)), ROWS)
    return torch.cat([source.images(candidates[first : first + ROWS]) for first in parts])


def _kept(source: CandidateSource, own: Candidates, shares: Floats, count: int, draw: PublicDraw) -> Candidates:
    """Return what is kept of a label: the chosen candidates, and near variations of those chosen often."""
    taken = np.sort(_taken(shares, count, draw))
    again = np.flatnonzero(np.diff(taken, prepend=-1) == 0)
    found: Candidates = own[taken]
    found[again] = source.varied(own[taken[again]], _NEAR, draw)
    return found
