"""Latents in place of bodies: what a network that learns them sees of an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import override

from doublure.encode.encoder import Encoder
from doublure.support.tensors import Array

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class LatentBlock:
    """The one block of a latent vector.

    Attributes:
        size: d.
        kind: As it is, without a squashing function.
    """

    size: int
    kind: Literal["linear"] = "linear"


class LatentEncoder(Encoder):
    """Shapes and conditions of latents; records become latents elsewhere, in the private core.

    Args:
        records: Of the records that the latents stand for.
        width: d.
    """

    def __init__(self, records: Encoder, width: int) -> None:
        self._records = records
        self.schema, self.body_shape = records.schema, (width,)
        self.condition_width, self.condition_sizes = records.condition_width, records.condition_sizes
        self.width = width + self.condition_width
        self.body_blocks = (LatentBlock(size=width),)

    @override
    def compact(self, content: Any) -> Array:
        raise TypeError("records become latents by inversion")

    @override
    def expand(self, compact: Tensor) -> Tensor:
        return compact

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> Any:
        raise TypeError("latents are decoded by the public generator")

    @override
    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        return self._records.condition_codes(given)
