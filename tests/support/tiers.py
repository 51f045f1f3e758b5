"""Three tiers of the suite: ``scripts/test --quick`` for every edit, ``scripts/test`` for every commit, and ``--all``.

The exhaustive tier has longer versions of what is tested anyway: each product of settings, more examples, slower
students. No rule of docs/pitfalls.md rests on it alone, and no search in tests of the private core is cut short. The
quick tier leaves out whole files, those that take more than a few seconds of a processor.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).resolve().parents[1]
ALL = os.environ.get("DOUBLURE_TEST_ALL", "") not in ("", "0")
QUICK = os.environ.get("DOUBLURE_TEST_QUICK", "") not in ("", "0")
LONG = frozenset(
    {
        "attack", "auditing", "cli", "end_to_end", "evaluate", "planning",
        "data/test_csv_files.py", "data/test_frames.py", "data/test_single_cells.py",
        "encode/test_gaps.py", "encode/test_round_trip.py",
    }
)  # fmt: skip
"""What the quick tier leaves out: folders and files of tests."""

exhaustive = pytest.mark.exhaustive
_SHARE = 5


def is_long(path: Path) -> bool:
    """Whether the quick tier leaves out a file or a folder of tests."""
    inside = path.relative_to(TESTS)
    return any(part.as_posix() in LONG for part in (inside, *inside.parents))


def by_tier(usual: int, whole: int) -> int:
    """Return the first number, or the second where everything runs."""
    return whole if ALL else usual


def examples(number: int, **more: object) -> settings:
    """Return settings of a search through so many examples where everything runs, and a fifth of them elsewhere."""
    return settings(max_examples=by_tier(max(10, number // _SHARE), number), deadline=None, **more)
