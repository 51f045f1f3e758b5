"""Gaussian noise for sums, and the other numbers that have to stay secret.

======================  ==========================  ==================================================================
source                  stream                      use
======================  ==========================  ==================================================================
:class:`OsKeyedNoise`   Philox4x64-10               the default: fast, statistically sound, not a cryptographic stream
:class:`ChaCha20Noise`  the operating system's own  hardened: an outsider cannot predict it from what he has seen of it
                        (ChaCha20 on Linux)
======================  ==========================  ==================================================================

Sums in whole numbers get whole noise, which is exact and the same from either real source: all its bits are the
operating system's own stream (:mod:`doublure.private.rounded_normals`). Sums of real numbers (gradients) get float32.

A source says with what it draws how far it was scaled (:class:`Drawn`): what ran is measured where it ran.

What meets a private record beside the noise (the draw that its generated partner is made from, the place between the
two where a slope is taken) is secret too: who knew it could undo the pairing that the guarantee counts on. It comes
from :class:`OsKeyedDraws` or :class:`ChaCha20Draws`, never from ``torch.Generator``, whose CPU stream keeps 32 bits of
its seed however many it is given, so that trying them all would give the draws of a whole run away.

The real sources hold **no state** (:mod:`doublure.private.entropy`). Float32 noise does not hide the holes of
floating-point numbers (Mironov 2012): where it is drawn, the guarantee's sentence excludes them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.private.entropy import freshly_keyed, system_words
from doublure.private.rounded_normals import rounded_normals

if TYPE_CHECKING:
    import torch

SourceName = Literal["os-keyed", "chacha20"]

_STD_RANGE = (1e-30, 1e30)  # beyond, float32 noise would vanish or overflow without a word
_CHUNK = 1 << 15  # normals at a time, whose working state stays in the cache


class Drawn(NamedTuple):
    """Noise, and the scale that it was drawn with.

    Attributes:
        values: ``(size,)``.
        scale: Standard deviation, or parameter, of each.
    """

    values: npt.NDArray[Any]
    scale: float


class NoiseSource(Protocol):
    """Where the mechanism gets its noise."""

    @property
    def name(self) -> str:
        """The name that the card prints."""

    @property
    def for_tests(self) -> bool:
        """Whether the noise hides nothing; the mechanism then refuses to claim anything."""

    def normal(self, size: int, std: float) -> Drawn:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``."""

    def whole(self, size: int, std: float, unit: float) -> Drawn:
        """Return ``size`` independent draws of N(0, std²), rounded to whole steps of ``unit``, int64 ``(size,)``."""


class Draws(Protocol):
    """Where numbers come from that are not noise."""

    def normal(self, rows: int, width: int) -> torch.Tensor:
        """Return independent draws of N(0, 1), float32 ``(rows, width)``."""

    def uniform(self, size: int) -> torch.Tensor:
        """Return independent draws from [0, 1), float32 ``(size,)``."""


class _Unsaved:
    """Refuses to be pickled or copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is never saved or copied: noise must not be replayed; make a new one")


class OsKeyedNoise(_Unsaved):
    """Philox4x64-10 under a fresh 128-bit key from the operating system for each draw; float32 ziggurat normals."""

    __slots__ = ()
    name: ClassVar[str] = "os-keyed"
    for_tests: ClassVar[bool] = False

    def normal(self, size: int, std: float) -> Drawn:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``.

        Raises:
            SettingError: ``std`` is not a positive number that float32 can carry.
        """
        return _scaled(freshly_keyed().standard_normal(size, dtype=np.float32), std)

    def whole(self, size: int, std: float, unit: float) -> Drawn:
        """Return ``size`` independent draws of N(0, std²), rounded to whole steps of ``unit``, int64 ``(size,)``.

        Raises:
            SettingError: ``std`` is out of range for such steps.
        """
        return _in_steps(size, std, unit)


class ChaCha20Noise(_Unsaved):
    """The operating system's own cryptographic stream, which is ChaCha20 on Linux; normals by the inverse CDF.

    Of each 64-bit word one bit is the sign and 52 bits are the place k in the lower half: z = ±Φ⁻¹((k + ½)·2⁻⁵³),
    symmetric by construction, |z| < 8.3, computed in float64 and then rounded to float32.
    """

    __slots__ = ()
    name: ClassVar[str] = "chacha20"
    for_tests: ClassVar[bool] = False

    def normal(self, size: int, std: float) -> Drawn:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``.

        Raises:
            SettingError: ``std`` is not a positive number that float32 can carry.
        """
        return _scaled(_system_normals(size), std)

    def whole(self, size: int, std: float, unit: float) -> Drawn:
        """Return ``size`` independent draws of N(0, std²), rounded to whole steps of ``unit``, int64 ``(size,)``.

        Raises:
            SettingError: ``std`` is out of range for such steps.
        """
        return _in_steps(size, std, unit)


class OsKeyedDraws(_Unsaved):
    """Secret draws by Philox4x64-10, under a fresh 128-bit key from the operating system for each call."""

    __slots__ = ()
    name: ClassVar[str] = "os-keyed"

    def normal(self, rows: int, width: int) -> torch.Tensor:
        """Return independent draws of N(0, 1), float32 ``(rows, width)``."""
        import torch

        return torch.from_numpy(freshly_keyed().standard_normal((rows, width), dtype=np.float32))

    def uniform(self, size: int) -> torch.Tensor:
        """Return independent draws from [0, 1), float32 ``(size,)``."""
        import torch

        return torch.from_numpy(freshly_keyed().random(size, dtype=np.float32))


class ChaCha20Draws(_Unsaved):
    """Secret draws from the operating system's own cryptographic stream."""

    __slots__ = ()
    name: ClassVar[str] = "chacha20"

    def normal(self, rows: int, width: int) -> torch.Tensor:
        """Return independent draws of N(0, 1), float32 ``(rows, width)``; see :class:`ChaCha20Noise`."""
        import torch

        return torch.from_numpy(_system_normals(rows * width)).view(rows, width)

    def uniform(self, size: int) -> torch.Tensor:
        """Return independent draws from [0, 1), float32 ``(size,)``: the upper 24 bits of a word, times 2⁻²⁴."""
        import torch

        uniform = np.empty(size, dtype=np.float32)
        for start in range(0, size, _CHUNK):
            part = uniform[start : start + _CHUNK]
            part[:] = (system_words(part.size) >> np.uint64(40)) * 2.0**-24
        return torch.from_numpy(uniform)


def source(name: SourceName) -> NoiseSource:
    """Return the source that a setting names.

    Raises:
        SettingError: There is none of that name.
    """
    if name == "os-keyed":
        return OsKeyedNoise()
    if name == "chacha20":
        return ChaCha20Noise()
    raise SettingError("is unknown", field="noise_source", remedy="choose os-keyed or chacha20")


def secret_draws(name: SourceName) -> OsKeyedDraws | ChaCha20Draws:
    """Return what secret numbers beside the noise are drawn from, by the same setting as the noise.

    Raises:
        SettingError: There is none of that name.
    """
    return ChaCha20Draws() if source(name).name == "chacha20" else OsKeyedDraws()


def require_std(std: float, field: str = "std") -> None:
    """Refuse a standard deviation that float32 noise cannot have: it would vanish or overflow without a word.

    Raises:
        SettingError: It is not a number between 1e-30 and 1e30.
    """
    if not _STD_RANGE[0] <= std <= _STD_RANGE[1]:
        raise SettingError(
            "the noise's standard deviation must lie between 1e-30 and 1e30",
            field=field,
            remedy="check noise_multiplier × max_grad_norm",
        )


def product_upwards(one: float, other: float) -> float:
    """Return a product, rounded upwards and not to the nearest: noise is never less than was priced."""
    return _upwards(Fraction(one) * Fraction(other))


def _upwards(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _in_steps(size: int, std: float, unit: float) -> Drawn:
    scale = _upwards(Fraction(std) / Fraction(unit))
    return Drawn(rounded_normals(size, scale), scale * unit)


def _system_normals(size: int) -> npt.NDArray[np.float32]:
    from scipy.special import ndtri

    standard = np.empty(size, dtype=np.float32)
    for start in range(0, size, _CHUNK):
        part = standard[start : start + _CHUNK]
        words = system_words(part.size)
        half = ndtri(((words >> np.uint64(12)) + 0.5) * 2.0**-53)
        part[:] = np.where(words & np.uint64(1), half, -half)
    return standard


def _scaled(standard: npt.NDArray[np.float32], std: float) -> Drawn:
    require_std(std)
    standard *= np.float32(std)
    return Drawn(standard, std)
