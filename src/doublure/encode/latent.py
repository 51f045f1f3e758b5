"""Latents in place of bodies: what a network that learns them sees of an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from doublure.encode.encoder import Encoder

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from doublure.schema import Schema


@dataclass(frozen=True, kw_only=True)
class LatentBlock:
    """The one block of a latent vector.

    Attributes:
        size: d.
        kind: As it is, without a squashing function.
    """

    size: int
    kind: Literal["linear"] = "linear"


class LatentEncoder:
    """Shapes and conditions of latents; records become latents elsewhere, in the private core.

    Args:
        records: Of the records that the latents stand for.
        width: d.
    """

    def __init__(self, records: Encoder, width: int) -> None:
        self._records = records
        self._latent = width
        self.body_blocks = (LatentBlock(size=width),)

    @property
    def schema(self) -> Schema:
        """The records' schema."""
        return self._records.schema

    @property
    def width(self) -> int:
        """D + K."""
        return self._latent + self.condition_width

    @property
    def condition_width(self) -> int:
        """K."""
        return self._records.condition_width

    @property
    def condition_sizes(self) -> tuple[int, ...]:
        """How many values each condition has, side by side as in the condition vector."""
        blocks = getattr(self._records, "condition_blocks", None)
        if blocks is not None:
            return tuple(block.size for block in blocks)
        return (self.condition_width,) if self.condition_width else ()

    @property
    def body_shape(self) -> tuple[int, ...]:
        """``(d,)``."""
        return (self._latent,)

    def compact(self, content: Any) -> Tensor:
        """Refuse: a record becomes a latent by inversion only."""
        raise TypeError("records become latents by inversion")

    def expand(self, compact: Tensor) -> Tensor:
        """Return the rows, which are kept as they are."""
        return compact

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return latents and conditions."""
        condition = rows[:, self._latent :]
        return rows[:, : self._latent], condition if self.condition_width else None

    def decode(self, rows: Tensor, rng: np.random.Generator | None = None) -> Any:
        """Refuse: latents are decoded by the public generator."""
        raise TypeError("latents are decoded by the public generator")

    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the code of each given value of a discrete column."""
        return self._records.condition_codes(given)

    def draw_conditions(self, n: int, rng: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Tensor:
        """Return ``(n, K)`` one-hot conditions from public or bought shares."""
        return self._records.draw_conditions(n, rng, fixed)
