"""The encoder interface of all kinds of data, so that a method need not know the kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from doublure.encode import conditions
from doublure.encode.numeric import Floats
from doublure.support.tensors import Array, as_tensor

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from doublure.networks.steering import IntRanges
    from doublure.schema import Schema
    from doublure.schema.allowed import Allowed
    from doublure.support.row_files import StoredRows


class Encoder(ABC):
    """Records <-> ``(N, width)`` float32 rows: the body, flat, then the condition as one-hot blocks.

    Attributes:
        schema: Every fact known.
        width: D + K, the length of an expanded row.
        condition_width: K, the length of its last part, the condition; of rows that are whole numbers, of what they are
            asked for.
        condition_sizes: Condition -> how many values it has, side by side as in that part.
        most_rows: The most rows that a record is handed out as.
        most_at_once: The most records that memory has room for while they are drawn.
        fewest_rows: So many rows are decoded together at least, where some lend others what a rule asks of them.
        body_shape: The shape of one body, as networks take it: ``(D,)`` for a table, ``(C, H, W)`` for images.
        code_parts: How many parts a compact record has, as tables of counts know them, unless a row is such.
        of_wholes: Whether a row is the whole numbers of its compact record, so that it need not become a tensor.
    """

    schema: Schema
    width: int
    condition_width: int
    condition_sizes: Mapping[str, int]
    most_rows: int = 1
    most_at_once: int = 1_000_000
    fewest_rows: int = 0
    body_shape: tuple[int, ...]
    code_parts: int = 1
    of_wholes: ClassVar[bool] = False

    @abstractmethod
    def compact(self, content: Any) -> Array:
        """Return ``(N, P)``: records small enough to keep the whole data set in."""

    def compacted(self, content: Any) -> Array | StoredRows:
        """Return the same of records that may lie on disk, as rows that are made when they are asked for."""
        return self.compact(content)

    @abstractmethod
    def expand(self, compact: Tensor) -> Tensor:
        """Return ``(B, width)`` rows."""

    def encode(self, content: Any) -> Any:
        """Return the rows of records, ``(N, width)``; see :meth:`rows`."""
        return self.rows(self.compact(content))

    def rows(self, compact: Array) -> Any:
        """Return the rows of compact records, ``(N, width)``: a float32 tensor, or an array of whole numbers."""
        return compact if self.of_wholes else self.expand(as_tensor(compact))

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return bodies ``(B, *body_shape)`` and conditions ``(B, K)``, None where there are none."""
        flat = self.width - self.condition_width
        body = rows[:, :flat].reshape(len(rows), *self.body_shape)
        return body, rows[:, flat:] if self.condition_width else None

    def uniform(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``(n, width)`` rows drawn uniformly over what the schema allows; conditions by their shares."""
        rows = rng.uniform(-1, 1, (n, self.width)).astype("float32")
        flat = self.width - self.condition_width
        rows[:, :flat] = self.uniform_bodies(rows[:, :flat], rng)
        if self.condition_width:
            rows[:, flat:] = self.draw_conditions(n, rng)
        return rows

    def uniform_bodies(self, numbers: Array, rng: np.random.Generator) -> Array:
        """Return bodies ``(n, D)`` of as many uniform numbers from -1 to 1: those themselves, if all of it is such."""
        return numbers

    @abstractmethod
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> Any:
        """Return records of the schema's own types from ``(N, width)`` rows."""

    def spans(self, asked: Mapping[str, Allowed]) -> Mapping[int, IntRanges]:
        """Return the numbers that parts of a row must have, so that its record has the cells asked for.

        Empty where a row does not tell: records then are decoded first.
        """
        return {}

    def may_change(self, name: str) -> bool:
        """Whether a rule may give a record another cell than its row says."""
        return False

    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the code of each given value of a discrete column.

        Raises:
            SettingError: There is no such column, it has no list of values, or the value is not in its list.
        """
        return conditions.condition_codes(self.schema, given)

    def draw_conditions(
        self, n: int, rng: np.random.Generator, fixed: Mapping[str, int | Sequence[int]] | None = None
    ) -> Array:
        """Return ``(n, K)`` float32 one-hot conditions from public or bought shares, uniform where there are none.

        Args:
            n: How many.
            rng: Draws them.
            fixed: Condition -> the code that is asked for, or several, any of which will do.
        """
        shares = {name: self.condition_shares(name) for name in self.condition_sizes}
        return conditions.drawn(self.condition_sizes, shares, n, rng, fixed)

    def condition_shares(self, name: str) -> Floats:
        """Return how frequent a condition's values are, in the order of its codes: what is public or bought."""
        return conditions.shares_of(self.schema.columns[name], self.condition_sizes[name])
