"""Secret numbers that follow from an access's purpose and step alone: equal runs, before a change of code and after.

What stands in lies below every release: the operating system's keys and words, discrete normals, and OpenDP's
measurements.
Noise of one access does not depend on how many draws another one made, nor on how many names and nonces were drawn, so
that a change of one part shows in that part. It hides nothing: **for tests**.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from doublure.private.mechanism import Mechanism

_OUTSIDE = "outside of any access"
_AT_ONCE = 2**15  # counts of one draw, so that fits stay equal to those that are kept


class FixedNoise:
    """Stands in for the operating system's randomness and for OpenDP's."""

    def __init__(self) -> None:
        self._within = _OUTSIDE
        self._asked: Counter[tuple[str, str]] = Counter()

    def begin(self) -> None:
        """Forget what was drawn: another run begins."""
        self._asked.clear()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Take the place of what is random until the patch is undone."""
        from opendp import measurements

        released, unseeded = Mechanism.release, np.random.default_rng

        def release(mechanism: Mechanism, query: Any, access: Any, records: Any, **more: Any) -> Any:
            with self._in(f"{access.purpose}, step {mechanism.taken(access)}"):
                return released(mechanism, query, access, records, **more)

        with contextlib.suppress(ImportError):
            patch.setattr("doublure.planning.machine._flops_a_second", lambda: 1e10, raising=False)  # it is measured
        patch.setattr(Mechanism, "release", release)
        patch.setattr(os, "urandom", lambda size: self._drawn("words").bytes(size))
        patch.setattr(secrets, "randbits", lambda bits: int.from_bytes(self._drawn("keys").bytes(32)) % (1 << bits))
        patch.setattr(secrets, "token_bytes", lambda size=32: self._drawn("names").bytes(size))
        patch.setattr(
            np.random, "default_rng", lambda seed=None: unseeded(self._seed("order") if seed is None else seed)
        )
        patch.setattr("doublure.private.whole_noise.discrete_normals", self._normals)
        for name, make in (("make_laplace", _Laplace), ("make_laplace_threshold", _Above)):
            patch.setattr(measurements, name, self._measurements(getattr(measurements, name), make))

    def _normals(self, size: int, scale: float) -> np.ndarray[Any, Any]:
        parts = [min(_AT_ONCE, size - first) for first in range(0, size, _AT_ONCE)]
        drawn = [np.rint(self._drawn("counts").normal(0, scale, part)).astype(np.int64) for part in parts]
        return np.concatenate([np.zeros(0, np.int64), *drawn])

    def _measurements(self, exact: Callable[..., Any], make: Callable[..., Any]) -> Callable[..., Any]:
        def made(domain: Any, metric: Any, *sizes: Any) -> Any:
            return make(exact(domain, metric, *sizes), lambda: self._drawn("counts"), *sizes)

        return made

    @contextlib.contextmanager
    def _in(self, place: str) -> Iterator[None]:
        before, self._within = self._within, place
        for key in [key for key in self._asked if key[0] == place]:
            del self._asked[key]  # the same access of another run, as a rehearsal's before it
        try:
            yield
        finally:
            self._within = before

    def _seed(self, what: str) -> int:
        key = (self._within, what)
        self._asked[key] += 1
        return int.from_bytes(hashlib.sha256(repr((key, self._asked[key])).encode()).digest())

    def _drawn(self, what: str) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(self._seed(what))))


class _Measurement:
    """Noise of NumPy's, priced by OpenDP's own map."""

    def __init__(self, exact: Any, drawn: Callable[[], np.random.Generator], scale: float) -> None:
        self.map, self._drawn, self._scale = exact.map, drawn, scale

    def noise(self, size: int) -> list[int]:
        raise NotImplementedError

    def __call__(self, counts: Any) -> Any:
        return [count + noise for count, noise in zip(counts, self.noise(len(counts)), strict=True)]


class _Laplace(_Measurement):
    def noise(self, size: int) -> list[int]:
        success = -np.expm1(-1 / self._scale)
        up, down = self._drawn().geometric(success, (2, size))
        return (up - down).tolist()


class _Above(_Laplace):
    def __init__(self, exact: Any, drawn: Callable[[], np.random.Generator], scale: float, threshold: int) -> None:
        super().__init__(exact, drawn, scale)
        self._threshold = threshold

    def __call__(self, counts: Any) -> Any:
        found = dict(zip(counts, super().__call__(list(counts.values())), strict=True))
        return {name: count for name, count in found.items() if count >= self._threshold}
