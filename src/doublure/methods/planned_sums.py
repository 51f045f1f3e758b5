"""The mechanism of noisy sums, as a plan's access before it pays for them."""

from __future__ import annotations

from collections.abc import Sequence

from doublure.methods.base import Job
from doublure.private import noise
from doublure.private.accounting import GaussianEvent
from doublure.private.noise import SourceName
from doublure.private.sums import PrivateSums


def planned_sums(job: Job, events: Sequence[GaussianEvent], source: SourceName) -> PrivateSums:
    """Return the mechanism with the releases of some accesses before it, in order.

    Args:
        job: The run, or its stage.
        events: What the plan pays for.
        source: Where the noise comes from.
    """
    return PrivateSums(
        job.records,
        [event.noise_multiplier for event in events for _ in range(event.steps)],
        max_records=job.encoder.schema.unit.max_records,
        noise=noise.source(source),
        authorise=job.authorise,
        taken=job.taken,
    )
