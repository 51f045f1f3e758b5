"""Seeds: public numbers for initial weights and sampling, never for privacy noise."""

from __future__ import annotations

import operator
import secrets
from typing import SupportsIndex

from doublure.errors import SettingError

_BITS = 63


def choose_seed(seed: SupportsIndex | None) -> int:
    """Return the seed as an int, or a fresh one.

    Raises:
        SettingError: It is no whole number from 0 to 2^63 - 1.
    """
    if seed is None:
        return secrets.randbits(_BITS)
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number < 2**_BITS:
        raise SettingError("must be a whole number from 0 to 2^63 - 1", field="seed", remedy="give one such as 7")
    return number


def to_32_bits(seed: int) -> int:
    """Return the seed as scikit-learn takes it: its last 32 bits."""
    return seed % 2**32
