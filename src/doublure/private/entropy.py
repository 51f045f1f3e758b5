"""Fresh keys from the operating system, for all secret randomness except exact noise.

Nothing here holds state. Each draw takes a key of 128 bits from the operating system, so that there is nothing to seed,
save, copy or replay, and processes after a fork, ranks and resumed runs cannot share a stream (pitfalls.md, rule 8).
"""

from __future__ import annotations

import secrets

import numpy as np


def freshly_keyed() -> np.random.Generator:
    """Return Philox4x64-10 under a key of its own: fast, statistically sound, not a cryptographic stream."""
    return np.random.Generator(np.random.Philox(key=secrets.randbits(128)))
