"""Two tiers of the suite: what runs at every change, and what ``scripts/test --all`` adds.

The exhaustive tier has longer versions of what is tested anyway: each product of settings, more examples, slower
students. No rule of docs/pitfalls.md and no planted fault rests on it alone.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

ALL = os.environ.get("DOUBLURE_TEST_ALL", "") not in ("", "0")
exhaustive = pytest.mark.exhaustive
_SHARE = 5


def by_tier(usual: int, whole: int) -> int:
    """Return the first number, or the second where everything runs."""
    return whole if ALL else usual


def examples(number: int, **more: object) -> settings:
    """Return settings of a search through so many examples where everything runs, and a fifth of them elsewhere."""
    return settings(max_examples=by_tier(max(10, number // _SHARE), number), deadline=None, **more)
