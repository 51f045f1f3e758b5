"""Gaussian noise for the sum of clipped gradients, and the other numbers that have to stay secret.

======================  ==========================  ==================================================================
source                  stream                      use
======================  ==========================  ==================================================================
:class:`OsKeyedNoise`   Philox4x64-10               the default: fast, statistically sound, not a cryptographic stream
:class:`ChaCha20Noise`  ChaCha20 (RFC 8439)         hardened: an outsider cannot predict it from what he has seen of it
:class:`ReplayNoise`    what a test hands in        tests only; no setting can name it
======================  ==========================  ==================================================================

What meets a private record beside the noise (the draw that its generated partner is made from, the place between the
two where a slope is taken) is secret too: who knew it could undo the pairing that the guarantee counts on. It comes
from :class:`OsKeyedDraws` or :class:`ChaCha20Draws`, never from ``torch.Generator``, whose CPU stream keeps 32 bits of
its seed however many it is given, so that trying them all would give the draws of a whole run away.

The real sources hold **no state**: each draw takes a fresh key of 128 or 256 bits from the operating system and
forgets it. So there is nothing to seed, save, copy or replay, and processes after a fork, ranks and resumed runs
cannot share a stream (design §5, rule 8). Neither hides the holes of floating-point numbers (Mironov 2012): the
guarantee's sentence excludes them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError

if TYPE_CHECKING:
    import torch

SourceName = Literal["os-keyed", "chacha20"]

_STD_RANGE = (1e-30, 1e30)  # beyond, float32 noise would vanish or overflow without a word
_CHUNK = 1 << 15  # normals a key; 4096 ChaCha20 blocks, whose working state stays in the cache
_ROUNDS = 10


class NoiseSource(Protocol):
    """Where the mechanism gets its noise."""

    @property
    def name(self) -> str:
        """The name that the card prints."""

    @property
    def for_tests(self) -> bool:
        """Whether the noise hides nothing; the mechanism then refuses to claim anything."""

    def normal(self, size: int, std: float, *, device: torch.device | str = "cpu") -> torch.Tensor:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``."""


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

    def normal(self, size: int, std: float, *, device: torch.device | str = "cpu") -> torch.Tensor:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``.

        Raises:
            SettingError: ``std`` is not a positive number that float32 can carry.
        """
        generator = np.random.Generator(np.random.Philox(key=secrets.randbits(128)))
        return _scaled(generator.standard_normal(size, dtype=np.float32), std, device)


class ChaCha20Noise(_Unsaved):
    """ChaCha20 under a fresh 256-bit key from the operating system for each chunk; normals by the inverse CDF.

    Of each 64-bit word one bit is the sign and 52 bits are the place k in the lower half: z = ±Φ⁻¹((k + ½)·2⁻⁵³),
    symmetric by construction, |z| < 8.3, computed in float64 and then rounded to float32.
    """

    __slots__ = ()
    name: ClassVar[str] = "chacha20"
    for_tests: ClassVar[bool] = False

    def normal(self, size: int, std: float, *, device: torch.device | str = "cpu") -> torch.Tensor:
        """Return ``size`` independent draws of N(0, std²), float32 ``(size,)``.

        Raises:
            SettingError: ``std`` is not a positive number that float32 can carry.
        """
        return _scaled(_chacha20_normals(size), std, device)


class OsKeyedDraws(_Unsaved):
    """Secret draws by Philox4x64-10, under a fresh 128-bit key from the operating system for each call."""

    __slots__ = ()
    name: ClassVar[str] = "os-keyed"

    def normal(self, rows: int, width: int) -> torch.Tensor:
        """Return independent draws of N(0, 1), float32 ``(rows, width)``."""
        import torch

        return torch.from_numpy(_freshly_keyed().standard_normal((rows, width), dtype=np.float32))

    def uniform(self, size: int) -> torch.Tensor:
        """Return independent draws from [0, 1), float32 ``(size,)``."""
        import torch

        return torch.from_numpy(_freshly_keyed().random(size, dtype=np.float32))


class ChaCha20Draws(_Unsaved):
    """Secret draws by ChaCha20, under a fresh 256-bit key from the operating system for each chunk."""

    __slots__ = ()
    name: ClassVar[str] = "chacha20"

    def normal(self, rows: int, width: int) -> torch.Tensor:
        """Return independent draws of N(0, 1), float32 ``(rows, width)``; see :class:`ChaCha20Noise`."""
        import torch

        return torch.from_numpy(_chacha20_normals(rows * width)).view(rows, width)

    def uniform(self, size: int) -> torch.Tensor:
        """Return independent draws from [0, 1), float32 ``(size,)``: the upper 24 bits of a word, times 2⁻²⁴."""
        import torch

        uniform = np.empty(size, dtype=np.float32)
        for start in range(0, size, _CHUNK):
            part = uniform[start : start + _CHUNK]
            part[:] = (_chacha20_words(part.size) >> np.uint64(40)) * 2.0**-24
        return torch.from_numpy(uniform)


class ReplayNoise:
    """Plays back standard normal draws, one a call, times ``std``; **for tests**: it hides nothing.

    Args:
        draws: Tensors of the sizes that will be asked for, each used once; ``itertools.repeat`` of one for ever.

    Attributes:
        asked: The ``(size, std)`` of each call so far.
    """

    name: ClassVar[str] = "replay"
    for_tests: ClassVar[bool] = True

    def __init__(self, draws: Iterable[torch.Tensor]) -> None:
        self._draws = iter(draws)
        self.asked: list[tuple[int, float]] = []

    def normal(self, size: int, std: float, *, device: torch.device | str = "cpu") -> torch.Tensor:
        """Return the next draw times ``std``.

        Raises:
            ValueError: No draw is left, or the next has another size.
        """
        self.asked.append((size, std))
        draw = next(self._draws, None)
        if draw is None or draw.shape != (size,):
            raise ValueError("no draw is left to replay" if draw is None else "the next draw has another size")
        return draw.to(device) * std


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


def chacha20(key: bytes, *, nonce: bytes, counter: int, blocks: int) -> bytes:
    """Return the ChaCha20 key stream (RFC 8439, §2.3), ``blocks`` blocks of 64 bytes side by side.

    Args:
        key: 32 bytes.
        nonce: 12 bytes.
        counter: Number of the first block; the last one's must stay below 2³².
        blocks: How many.

    Raises:
        ValueError: A length is wrong.
    """
    if len(key) != 32 or len(nonce) != 12 or not 0 <= counter <= counter + blocks <= 2**32:
        raise ValueError("ChaCha20 takes a key of 32 bytes, a nonce of 12 and a 32-bit counter")
    start = np.empty((4, 4, blocks), dtype=np.uint32)  # four rows of four words, for each block
    words = np.frombuffer(b"expand 32-byte k" + key + bytes(4) + nonce, dtype="<u4")
    start[:] = words.reshape(4, 4, 1)
    start[3, 0] = np.arange(counter, counter + blocks, dtype=np.uint64)
    a, b, c, d = start.copy()
    for _ in range(_ROUNDS):
        _quarter_rounds(a, b, c, d)  # the columns
        b, c, d = b[[1, 2, 3, 0]], c[[2, 3, 0, 1]], d[[3, 0, 1, 2]]
        _quarter_rounds(a, b, c, d)  # the diagonals, turned into columns
        b, c, d = b[[3, 0, 1, 2]], c[[2, 3, 0, 1]], d[[1, 2, 3, 0]]
    mixed = np.stack((a, b, c, d)) + start
    return np.ascontiguousarray(mixed.reshape(16, blocks).T, dtype="<u4").tobytes()


def _quarter_rounds(
    a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32], c: npt.NDArray[np.uint32], d: npt.NDArray[np.uint32]
) -> None:
    """Apply the quarter round (RFC 8439, §2.1) to four words of every block at once, in place."""
    for left, right, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        left += right
        turned ^= left
        low = turned >> np.uint32(32 - bits)
        turned <<= np.uint32(bits)
        turned |= low


def _freshly_keyed() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=secrets.randbits(128)))


def _chacha20_words(size: int) -> npt.NDArray[np.uint64]:
    """Return at most a chunk of 64-bit words under a fresh key."""
    stream = chacha20(os.urandom(32), nonce=bytes(12), counter=0, blocks=-(-size // 8))
    return np.frombuffer(stream, dtype="<u8")[:size]


def _chacha20_normals(size: int) -> npt.NDArray[np.float32]:
    from scipy.special import ndtri

    standard = np.empty(size, dtype=np.float32)
    for start in range(0, size, _CHUNK):
        part = standard[start : start + _CHUNK]
        words = _chacha20_words(part.size)
        half = ndtri(((words >> np.uint64(12)) + 0.5) * 2.0**-53)
        part[:] = np.where(words & np.uint64(1), half, -half)
    return standard


def _scaled(standard: npt.NDArray[np.float32], std: float, device: torch.device | str) -> torch.Tensor:
    import torch

    require_std(std)
    return torch.from_numpy(standard).mul_(std).to(device)
