"""The mechanism of noisy sums, as a plan's access before it pays for them."""

from __future__ import annotations

from doublure.methods.base import Job
from doublure.private import noise
from doublure.private.accounting import GaussianEvent
from doublure.private.noise import SourceName
from doublure.private.sums import PrivateSums


def planned_sums(job: Job, event: GaussianEvent, source: SourceName) -> PrivateSums:
    """Return the mechanism with the releases of one access before it.

    Args:
        job: The run, or its stage.
        event: What the plan pays for.
        source: Where the noise comes from.
    """
    return PrivateSums(
        job.records,
        [event.noise_multiplier] * event.steps,
        max_records=job.encoder.schema.unit.max_records,
        noise=noise.source(source),
        authorise=job.authorise,
        taken=job.taken,
    )
