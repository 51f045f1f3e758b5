"""Private labels by noisy voting: what ``noisecritic`` may train on in place of the true ones (2018, §4.1, Theorem 3).

The paper names the noisy votes of Papernot et al. (2016) as a candidate: there an ensemble of teachers votes on each
image, and every vote costs. Here groups of look-alikes vote, each image once, and every image gets the label that won
in its group (:mod:`doublure.private.queries.votes`). However many images are labelled, it is one release of one table.

It says nothing about the images: groups, critic and generator follow from them without protection, and the release as a
whole stays empirical.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from doublure.access import Access
from doublure.methods.method import S
from doublure.networks.scattering import Scattering
from doublure.networks.sizes import paths, places
from doublure.private.queries.votes import LabelVotes
from doublure.training.job import Job


def voted(job: Job[S], access: Access, groups: int) -> Job[S]:
    """Return the job on records whose labels were voted on, in an order that follows from the images alone.

    Its first step is spent on the vote.

    Args:
        job: With images that have a label.
        access: The planned release.
        groups: How many groups of look-alikes vote.

    Raises:
        LostRun: The run was cut off between the vote and its keeping.
    """
    records = job.records.by_body()
    vote = job.stage("votes", after=0)
    vote.mechanism.refuse_lost(access)
    vote.check_stop()
    conditions = torch.eye(job.encoder.condition_width)[_vote(vote, access, groups).long()]
    return replace(job.stage("critic", after=1), records=records.with_conditions(conditions))


def _vote(job: Job, access: Access, groups: int) -> Tensor:
    """Return each record's voted label ``(N,)``, in the order of their bodies."""
    job.progress.stage("let similar images vote on labels")
    channels, height, width = job.encoder.body_shape
    shape = (channels, height, width)
    features = Scattering(shape, order=1).to(job.device)
    votes = LabelVotes(
        groups=groups,
        seed=job.seed,
        see=lambda images: features(images).flatten(1).cpu(),
        width=channels * paths(1) * places(shape),
    )
    return votes.winners(job.mechanism.release(votes, access, job.records), job.records)
