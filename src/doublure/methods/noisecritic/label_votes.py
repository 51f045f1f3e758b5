"""Private labels by noisy voting, an alternative to true labels for ``noisecritic`` (2018, §4.1, Theorem 3).

The paper names the noisy votes of Papernot et al. (2016) as a candidate: there an ensemble of teachers votes on each
image, and every vote costs. Here groups of similar images vote, each image once, and every image gets the winning label
of its group (:mod:`doublure.private.queries.votes`). Any number of images is labelled by one release of one table.

Images stay unprotected: groups, critic and generator depend on them without noise, and the release as a whole stays
empirical.
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


def vote_on_labels(job: Job[S], access: Access, groups: int) -> Job[S]:
    """Return the job on records with voted labels, in an order that follows from the images alone.

    Its first step is the vote.

    Args:
        job: A job on images with a label.
        access: The planned release.
        groups: Number of groups of similar images that vote.

    Raises:
        LostRun: The run was cut off after the vote and before it was saved.
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
