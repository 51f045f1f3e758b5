"""Gaussian noise for sums, and other numbers that have to stay secret.

Sums in whole numbers get whole noise, which is exact: all its bits are the operating system's own stream
(:mod:`doublure.private.exact_normals`). Sums of real numbers (gradients) get float32 of Philox4x64-10
(:class:`OsKeyedNoise`), which is fast and statistically sound, and no cryptographic stream.

A source returns its draws together with their scale (:class:`ScaledNoise`), so that what ran is measured where it ran.

Other numbers that meet a private record (the draw behind its generated partner, the point between the two where a
slope is taken) are secret too: knowing them would undo the pairing that the guarantee relies on. They come from
:class:`OsKeyedDraws`, never from ``torch.Generator``, whose CPU stream keeps 32 bits of its seed however many it
is given, so that trying them all would give the draws of a whole run away.

The real source holds **no state** (:mod:`doublure.private.entropy`). Float32 noise does not hide the holes of
floating-point numbers (Mironov 2012): where it is drawn, the guarantee's sentence excludes them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.private.entropy import freshly_keyed
from doublure.private.exact_normals import rounded_normals

if TYPE_CHECKING:
    import torch

_STD_RANGE = (1e-30, 1e30)  # beyond, float32 noise would vanish or overflow without a word


class ScaledNoise(NamedTuple):
    """Noise with the scale that it was drawn at.

    Attributes:
        values: ``(size,)``.
        scale: Standard deviation, or parameter, of each.
    """

    values: npt.NDArray[Any]
    scale: float


class NoiseSource(Protocol):
    """Source of the mechanism's noise."""

    @property
    def name(self) -> str:
        """The name that the card prints."""

    @property
    def for_tests(self) -> bool:
        """Whether the noise hides nothing, so that the mechanism refuses it."""

    def normal(self, size: int, std: float) -> ScaledNoise:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``."""

    def whole(self, size: int, std: float, unit: float) -> ScaledNoise:
        """Return ``size`` independent draws of N(0, std²), rounded to whole steps of ``unit``, int64 ``(size,)``."""


class SecretDraws(Protocol):
    """Source of secret random numbers other than noise."""

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

    def normal(self, size: int, std: float) -> ScaledNoise:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``.

        Raises:
            SettingError: ``std`` is not a positive number that float32 can carry.
        """
        return _scaled(freshly_keyed().standard_normal(size, dtype=np.float32), std)

    def whole(self, size: int, std: float, unit: float) -> ScaledNoise:
        """Return ``size`` independent draws of N(0, std²), rounded to whole steps of ``unit``, int64 ``(size,)``.

        Raises:
            SettingError: ``std`` is out of range for such steps.
        """
        return _in_steps(size, std, unit)


class OsKeyedDraws(_Unsaved):
    """Secret draws by Philox4x64-10, under a fresh 128-bit key from the operating system for each call."""

    __slots__ = ()

    def normal(self, rows: int, width: int) -> torch.Tensor:
        """Return independent draws of N(0, 1), float32 ``(rows, width)``."""
        import torch

        return torch.from_numpy(freshly_keyed().standard_normal((rows, width), dtype=np.float32))

    def uniform(self, size: int) -> torch.Tensor:
        """Return independent draws from [0, 1), float32 ``(size,)``."""
        import torch

        return torch.from_numpy(freshly_keyed().random(size, dtype=np.float32))


def source() -> NoiseSource:
    """Return the noise source of a run; callers use this function and create none themselves."""
    return OsKeyedNoise()


def secret_draws() -> SecretDraws:
    """Return the source of secret random numbers other than noise."""
    return OsKeyedDraws()


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
    """Return a product rounded upwards, so that noise is never less than was priced."""
    return _upwards(Fraction(one) * Fraction(other))


def _upwards(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _in_steps(size: int, std: float, unit: float) -> ScaledNoise:
    scale = _upwards(Fraction(std) / Fraction(unit))
    return ScaledNoise(rounded_normals(size, scale), scale * unit)


def _scaled(standard: npt.NDArray[np.float32], std: float) -> ScaledNoise:
    require_std(std)
    standard *= np.float32(std)
    return ScaledNoise(standard, std)
