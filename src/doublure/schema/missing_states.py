"""States of missing numbers, held in the payload of their NaN.

A number stands for every cell, and NaN for a missing one. Its state is the NaN's payload, as in R's tagged ``NA``. Code
that asks for NaN sees a missing cell; a NaN without a payload has the first state.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

_NAN, _PAYLOAD = 0x7FF8_0000_0000_0000, 0xFFFF


def tag_holes(states: Any) -> Any:
    """Return NaN with the state of each ``(N,)``; of one integer, one NaN."""
    if isinstance(states, int):
        return struct.unpack("<d", struct.pack("<Q", _NAN | states))[0]
    import numpy as np

    return (np.asarray(states, dtype=np.int64) | _NAN).view(np.float64)


def hole_states(numbers: Any) -> Any:
    """Return the state of each ``(N,)`` missing number, 0 for others; of one float, its own."""
    if isinstance(numbers, float):
        return struct.unpack("<Q", struct.pack("<d", numbers))[0] & _PAYLOAD if math.isnan(numbers) else 0
    import numpy as np

    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64) & _PAYLOAD
    return np.where(np.isnan(numbers), bits, 0)


def keep_holes(numbers: Floats, before: Floats) -> Floats:
    """Return ``(N,)`` numbers with the missing ones, and their states, of what they were made from."""
    import numpy as np

    return np.where(np.isnan(before), before, numbers)
