"""What every kind's encoder does, so that a method need not know the kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from doublure.schema import Schema


class Encoder(Protocol):
    """Records <-> ``(N, width)`` float32 rows: the body, flat, then the condition as one-hot blocks."""

    @property
    def schema(self) -> Schema:
        """Every fact known."""

    @property
    def width(self) -> int:
        """D + K, the length of an expanded row."""

    @property
    def condition_width(self) -> int:
        """K, the length of its last part, the condition."""

    @property
    def body_shape(self) -> tuple[int, ...]:
        """The shape of one body, as networks see it: ``(D,)`` for a table, ``(C, H, W)`` for images."""

    def compact(self, content: Any) -> Tensor:
        """Return ``(N, P)``: records small enough to keep the whole data set in."""

    def expand(self, compact: Tensor) -> Tensor:
        """Return ``(B, width)`` rows."""

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return bodies ``(B, *body_shape)`` and conditions ``(B, K)``, None where there are none."""

    def decode(self, rows: Tensor, rng: np.random.Generator | None = None) -> Any:
        """Return records of the schema's own types from ``(N, width)`` rows."""

    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the code of each given value of a discrete column; raises SettingError."""

    def draw_conditions(self, n: int, rng: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Tensor:
        """Return ``(n, K)`` one-hot conditions from public or bought shares."""
