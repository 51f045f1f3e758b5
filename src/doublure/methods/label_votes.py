"""Private labels by noisy voting: what ``noisecritic`` may train on in place of the true ones (2018, §4.1, Theorem 3).

The paper names the noisy votes of Papernot et al. (2016) as a candidate: there an ensemble of teachers votes on each
image, and every vote costs. Here images are put into groups of look-alikes without a look at any label, the images of a
group vote with their labels, each once, and every image gets the label that won in its group. However many images are
labelled, that is one table of counts (groups x labels), released once with discrete Gaussian noise.

Guarantee, for the labels *alone*: with the images held fixed, changing one image's label takes a vote from one cell
of the table and gives it to another, which costs what two tables cost under add/remove, and is priced so. It says
nothing about the images: groups, critic and generator follow from them without protection, and the release as a whole
stays empirical.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from doublure.methods import kept_state
from doublure.methods.base import Job
from doublure.networks.sizes import paths, places
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.records import PrivateRecords
from doublure.private.tabulation import Axis, PrivateTables

if TYPE_CHECKING:
    import numpy.typing as npt
    from sklearn.cluster import MiniBatchKMeans

_CHUNK = 2000
_ROUNDS = 3
_KEPT = "labels"


def voted(job: Job, event: DiscreteGaussianEvent, groups: int) -> Job:
    """Return the job on records whose labels were voted on; its first step is spent on the vote.

    Args:
        job: With images that have a label.
        event: The planned release.
        groups: How many groups of look-alikes vote.

    Raises:
        RunFolderError: The run was cut off between the vote and the first state that was kept.
    """
    vote = job.stage("votes", after=0)
    state = vote.checkpoints.load() or {}
    if _KEPT in state:
        labels = state[_KEPT]
    elif job.taken:
        raise kept_state.lost_release("labels were voted on")
    else:
        labels = _vote(vote, event, groups)
        vote.checkpoints.save(1, {_KEPT: labels})
    conditions = torch.eye(job.encoder.condition_width)[labels.long()]
    return replace(job.stage("critic", after=1), records=job.records.with_conditions(conditions))


def _vote(job: Job, event: DiscreteGaussianEvent, groups: int) -> Tensor:
    """Return each record's voted label ``(N,)``, in the order of the records."""
    job.progress.stage("put the images into groups")
    of_image, labels = _groups(job, groups)
    classes = job.encoder.condition_width
    compact = torch.from_numpy(np.stack([of_image, labels], axis=1))
    ballots = PrivateRecords(compact, np.arange(len(compact)), len(compact), lambda rows: (rows, None))
    tables = PrivateTables(ballots, [event], authorise=job.authorise)
    job.progress.stage("vote on labels")
    (votes,) = tables.release([(Axis.of_codes(0, groups), Axis.of_codes(1, classes))])
    return torch.from_numpy(votes.argmax(axis=1)[of_image])


def _groups(job: Job, groups: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return each image's group and its true label; the groups follow from the images and a public seed. Private."""
    from sklearn.cluster import MiniBatchKMeans

    from doublure.networks.scattering import Scattering

    channels, height, width = job.encoder.body_shape
    shape = (channels, height, width)
    features = Scattering(shape, order=1).to(job.device)
    seen = job.records.mapped(
        lambda images: features(images).flatten(1).cpu(), channels * paths(1) * places(shape), rows=_CHUNK
    )
    chunk = max(_CHUNK, groups)  # the first has to hold as many images as there are groups
    means = MiniBatchKMeans(groups, random_state=job.seed % 2**32, n_init=1)
    for _ in range(_ROUNDS):
        for looks, _ in _bodies(seen, chunk, groups):
            means.partial_fit(looks)
    found = [(_nearest(means, looks), labels) for looks, labels in _bodies(seen, chunk, 1)]
    of_image, labels = (np.concatenate(part) for part in zip(*found, strict=True))
    return of_image, labels


def _nearest(means: MiniBatchKMeans, looks: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    return np.asarray(means.predict(looks), dtype=np.int64)


def _bodies(
    records: PrivateRecords, rows: int, least: int
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    """Yield what is seen of the images and their labels, a chunk at a time; a chunk that is too short is left out."""
    for body, condition in records.expanded(rows):
        if condition is None:
            raise TypeError("a vote needs labels")
        if len(body) >= least:
            yield body.cpu().numpy(), condition.argmax(dim=1).cpu().numpy()
