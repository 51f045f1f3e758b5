"""The screens, one file each, in the order of the way."""

from __future__ import annotations

from doublure.studio.step import Step
from doublure.studio.steps import budget, columns, data, fit, look, people, received, release

STEPS: tuple[Step, ...] = (
    data.STEP,
    people.STEP,
    columns.STEP,
    budget.STEP,
    fit.STEP,
    look.STEP,
    release.STEP,
    received.STEP,
)
"""The way; a step is done before the next one is offered, and each can be gone back to."""
