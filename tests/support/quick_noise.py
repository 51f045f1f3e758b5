"""OpenDP's discrete Gaussian, drawn a hundred times as quickly: noise takes most of the time of a fit of noisy tables.

What stands in lies in OpenDP alone, below every function of doublure: who is asked for another scale draws another
noise, and what that costs is OpenDP's own privacy map as ever. The distribution is the same, to the digits of a float.
OpenDP itself draws in the tests of what noise is for (``REAL``), in every other process, and in all of the suite where
everything runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import tiers

REAL = ("private", "pitfalls", "auditing", "attack", "end_to_end", "test_audit_fits.py")
"""Folders and files of tests, for which OpenDP draws."""

_FAR = 12  # scales: beyond, a float's uniform number does not reach
_MOST = 20_000  # values in a table; of a scale that needs more, a rounded normal number is as near


def choose(test: Path) -> None:
    """Say for which test noise is drawn next."""
    from opendp import measurements

    _opendps()
    quick = not tiers.ALL and test.relative_to(tiers.TESTS).parts[0] not in REAL
    measurements.make_gaussian = _made if quick else _opendps()


@cache
def _opendps() -> Callable[..., Any]:
    from opendp import measurements

    return measurements.make_gaussian


def _made(domain: Any, metric: Any, scale: float) -> _Quick:
    """Return what draws for integers and prices by OpenDP."""
    if "i64" not in str(metric):
        raise NotImplementedError(metric)
    return _Quick(_opendps()(domain, metric, scale), scale)


class _Quick:
    """A measurement that draws by itself and prices by OpenDP."""

    def __init__(self, exact: Any, scale: float) -> None:
        self.map, self._scale = exact.map, scale

    def __call__(self, counts: list[int]) -> list[int]:
        return [count + noise for count, noise in zip(counts, drawn(len(counts), self._scale).tolist(), strict=True)]


def drawn(size: int, scale: float) -> np.ndarray:
    """Return independent draws of the discrete Gaussian: int64 ``(size,)``."""
    source = np.random.default_rng()  # from the operating system, so that no fork repeats another's
    if 2 * _FAR * scale > _MOST:
        return np.rint(source.normal(0, scale, size)).astype(np.int64)
    values, below = _table(scale)
    return values[np.searchsorted(below, source.random(size), side="right")]


@lru_cache(64)
def _table(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the values, and how likely one of those up to each is; the last is not listed."""
    far = math.ceil(_FAR * scale) + 1
    values = np.arange(-far, far + 1)
    with np.errstate(over="ignore"):  # of next to no noise
        below = np.cumsum(np.exp(-((values / scale) ** 2) / 2))
    return values, below[:-1] / below[-1]
