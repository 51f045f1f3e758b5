"""Public bins of a column, with edges and names: one a value, or of equal width or ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from doublure.schema.columns.integer_domain import Scale

if TYPE_CHECKING:
    import numpy as np

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

_WIDE_RATIO = 1_000.0


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicBins:
    """Public bins; bin i holds ``edges[i] <= x < edges[i + 1]``.

    Attributes:
        edges: ``(B + 1,)`` increasing.
        highs: ``(B,)`` the highest value of each.
        names: ``(B,)`` as labels show them.
    """

    edges: Floats
    highs: Floats
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BinRules:
    """Facts that decide the bins of a number beside its bounds; without them, wide counts go by equal ratio.

    Attributes:
        unit: The spacing of adjacent values; 0 for the continuum.
        zero_apart: Zero has a state of its own: no bin begins or ends with it, where there is another value.
        scale: ``linear`` for bins of equal width, ``log`` of equal ratio where values are positive.
        cuts: Where bins begin, if that is declared.
        curve: Bins are of equal width in this power of the share of the bounds, where values cannot be negative.
    """

    unit: float
    zero_apart: bool = False
    scale: Scale | None = None
    cuts: tuple[float, ...] = ()
    curve: float = 1.0

    def edges(self, lower: float, upper: float, most: int) -> Floats:
        """Return ``(B + 1,)`` increasing edges between bounds, B <= most."""
        import numpy as np

        first, last, unit = lower, upper, self.unit
        if self.zero_apart and unit and round((upper - lower) / unit):  # zero alone keeps its bin, which stays empty
            first, last = first + unit * (first == 0), last - unit * (last == 0)
        inner = self._cut(first, last, most) if self.curve == 1 or first < 0 else self._bent(first, last, most)
        if not unit:
            return np.unique(np.concatenate([[first], inner, [last]]))
        start, stop = round((first - lower) / unit), round((last - lower) / unit) + 1
        if stop - start <= most:
            steps = np.arange(start, stop + 1)
        else:
            cut = np.ceil((inner - lower) / unit - 1e-9)
            steps = np.unique(np.clip(np.concatenate([[start], cut, [stop]]), start, stop))
        return lower + steps.astype(np.float64) * unit

    def _cut(self, first: float, last: float, most: int) -> Floats:
        """Return the inner cuts: of equal ratio from 1 or the lower bound if that spans three orders of magnitude."""
        import numpy as np

        inside = [edge for edge in self.cuts if first < edge < last]
        if inside:
            return np.array(inside[:: -(-len(inside) // max(1, most - 1))])
        smallest = first if first > 0 else max(self.unit, 1.0)
        ratio = {"linear": math.inf, "log": 1.0}.get(self.scale or "", _WIDE_RATIO)
        if first >= 0 and last > smallest and last / smallest >= ratio:
            return np.geomspace(smallest, last, most + 1)[1:-1]
        return np.linspace(first, last + self.unit, most + 1)[1:-1]

    def _bent(self, first: float, last: float, most: int) -> Floats:
        """Return the inner cuts at even places of a curve: narrow bins for small values."""
        import numpy as np

        places: Floats = np.linspace(0, 1, most + 1)[1:-1] ** (1 / self.curve)
        return first + places * (last + self.unit - first)
