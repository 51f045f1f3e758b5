"""Where all secret randomness begins: fresh keys and words of the operating system, asked for and forgotten.

Nothing here holds state. Each draw takes a key of 128 bits, or all of its bits, from the operating system, so that
there is nothing to seed, save, copy or replay, and processes after a fork, ranks and resumed runs cannot share a stream
(design §5, rule 8).
"""

from __future__ import annotations

import os
import secrets

import numpy as np
import numpy.typing as npt


def freshly_keyed() -> np.random.Generator:
    """Return Philox4x64-10 under a key of its own: fast, statistically sound, not a cryptographic stream."""
    return np.random.Generator(np.random.Philox(key=secrets.randbits(128)))


def system_words(size: int) -> npt.NDArray[np.uint64]:
    """Return 64-bit words ``(size,)`` of the operating system's own cryptographic stream, ChaCha20 on Linux."""
    return np.frombuffer(os.urandom(8 * size), dtype="<u8")
