"""Which tests rehearse a fit before it is charged, as every fit does: those of rehearsals, and whole ways through.

Elsewhere a fit is not tried on no record first: tests that stop, spy on or break a step of a fit would meet the step
twice, and a rehearsal of tiny networks takes as long as their fit.
"""

from __future__ import annotations

from pathlib import Path

import tiers

from doublure.run import fitting
from doublure.run.rehearsal import rehearse

REHEARSED = (
    "end_to_end/test_bayesgan.py",
    "end_to_end/test_commands.py",
    "end_to_end/test_digits.py",
    "end_to_end/test_images.py",
    "end_to_end/test_latentgan.py",
    "end_to_end/test_noisecritic.py",
    "end_to_end/test_presets.py",
    "end_to_end/test_series.py",
    "end_to_end/test_tables.py",
    "test_rehearsal.py",
)
"""Folders and files of tests in which a fit is rehearsed; so it is in every process that a test starts."""


def choose(test: Path) -> None:
    """Say whether the next fits are rehearsed."""
    rehearsed = tiers.is_among(test, REHEARSED)
    fitting.rehearse = rehearse if rehearsed else lambda plan, *, device: None
