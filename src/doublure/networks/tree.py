"""A generator that draws a table's columns along a tree, within the components of a mixture.

Each row has a component. The root's group is drawn given the component, every other column's group given the component
and the fine group of its parent, then a value within the group. The joint table of parent and child within a component
is a product of a common table and factors of the component (as from iterative proportional fitting), so that a wide
table's generator stays small. The root may be the pattern of missing cells, which then fixes the cells that it covers.
One column may be drawn last, from all others, by a logistic model of their groups. Identities between numbers that a
fit has found are kept by every row (:mod:`doublure.networks.tree_identities`).

Rows can be conditioned on any column (:mod:`doublure.networks.tree_asked`). For the last column, rows are drawn until
enough have the requested value, unless the component alone decides.

The generator consists of tables (:mod:`doublure.networks.tree_tables`) without gradients, and draws with NumPy
(:mod:`doublure.networks.tree_draw`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from typing_extensions import override

from doublure.networks import swapped_tables, tree_tables
from doublure.networks.array_generator import ArrayGenerator
from doublure.networks.steering import IntRanges
from doublure.networks.tree_asked import TreeEvidence
from doublure.networks.tree_draw import TreeDraw, draw_evenly
from doublure.networks.tree_tables import Floats, Tree
from doublure.support.arrays import Ints, Mask

_TRIES = 60
_MOST_MORE = 20
_PILOT = 4_000
_AT_ONCE = 200_000
_RARE = 1e-300


class TreeGenerator(ArrayGenerator):
    """Map of noise and conditions to rows of whole numbers.

    Args:
        parts: Numbers of a row.
        conditions: Number of values of each condition; conditions are a row's last numbers.
        spans: Part of a row -> its allowed values.

    Attributes:
        tree: The tables.
    """

    tree: Tree

    def __init__(
        self, parts: int, conditions: Sequence[int], spans: Mapping[int, IntRanges] = MappingProxyType({})
    ) -> None:
        self.parts = parts
        self._sizes = list(conditions)
        self._spans = dict(spans)
        self.take(Tree())

    def take(self, tree: Tree) -> None:
        """Replace the tables."""
        self.tree = tree
        self._found: dict[bytes, float] = {}  # evidence that was asked for: each sample asks again

    @override
    def state_dict(self) -> dict[str, Floats]:
        return {name: np.asarray(value, order="C") for name, value in self.tree.kept().items()}

    @override
    def load_state_dict(self, state: Mapping[str, Floats]) -> None:
        """Load tables of any consistent shapes.

        Raises:
            RuntimeError: The tables are inconsistent.
        """
        try:
            self.take(tree_tables.read_tree(dict(state), self.parts))
        except ValueError as error:
            raise RuntimeError("tables do not fit together") from error

    # -- conditions --------------------------------------------------------------------------------------------------

    def draw_conditions(self, known: Floats, source: np.random.Generator) -> Floats:
        """Return conditions ``(n, K)`` unchanged; open ones are drawn with the row, from the tables."""
        del source
        return known

    def narrowed(self, spans: Mapping[int, IntRanges]) -> TreeGenerator:
        """Return the same generator, conditioned on allowed values.

        Args:
            spans: Part of a row -> its allowed values.
        """
        narrow = TreeGenerator(self.parts, self._sizes, spans)
        narrow.take(self.tree)
        return narrow

    def evidence(self, known: Floats) -> Floats:
        """Return the log probability ``(n,)`` of conditions (all zeros: any), jointly with the allowed values.

        It is exact except for the column that is drawn last from all others, whose chance is the mean of some thousand
        rows.
        """
        distinct, which = _distinct(known)
        for mask in distinct:
            if mask.tobytes() not in self._found:
                self._found[mask.tobytes()] = self._evidence_of(mask)
        return np.array([self._found[mask.tobytes()] for mask in distinct])[which]

    def _evidence_of(self, mask: Floats) -> float:
        spans, last = self._asked_of(mask)
        asked = TreeEvidence(self.tree, spans)
        weights, decided = self._weights(last)
        likely = float((weights * asked.likely).sum())
        if last is not None and not decided and likely > 0:
            drawn = TreeDraw(self.tree, asked, _PILOT, np.random.default_rng(0))
            drawn.draw()
            likely *= float(self._last_chances(drawn)[:, last].sum(1).mean())
        return float(np.log(max(likely, _RARE)))

    def _every_span(self, mask: Floats) -> dict[int, IntRanges]:
        """Return the allowed values of each part of a row that is conditioned on."""
        spans = dict(self._spans)
        first = self.parts - len(self._sizes)
        for place, block in enumerate(np.split(mask, np.cumsum(self._sizes)[:-1]) if self._sizes else []):
            if block.any():
                spans[first + place] = tuple((int(code), int(code)) for code in np.flatnonzero(block))
        return spans

    def _asked_of(self, mask: Floats) -> tuple[dict[int, IntRanges], Mask | None]:
        """Return the allowed values of each node, and a mask of the last column's; None if all are allowed."""
        spans, last = self._every_span(mask), None
        if self.tree.last is not None and self.tree.last.part in spans:
            last = np.zeros(len(self.tree.last.bias), dtype=np.bool_)
            for low, high in spans.pop(self.tree.last.part):
                last[max(0, low) : high + 1] = True
        of_part = {node.part: place for place, node in enumerate(self.tree.nodes)}
        return {of_part[part]: own for part, own in spans.items() if part in of_part}, last

    def _weights(self, last: Mask | None) -> tuple[Floats, bool]:
        """Return each component's probability jointly with the last column, and whether the component decides it."""
        weights = self.tree.weights / self.tree.weights.sum()
        if last is None or self.tree.last is None or self.tree.last.of_component is None:
            return weights, False
        return weights * self.tree.last.of_component[:, last].sum(1), True

    # -- drawing -----------------------------------------------------------------------------------------------------

    def __call__(self, noise: Floats, condition: Floats | None = None) -> Floats:
        """Return rows ``(B, parts)`` float64.

        Args:
            noise: ``(B, 1)`` standard normal; all of it together seeds the draw.
            condition: ``(B, K)`` one block a condition: ones at the allowed values, zeros where all are; or None.
        """
        rng = np.random.default_rng(np.frombuffer(noise.tobytes(), dtype=np.uint32))
        masks = np.zeros((len(noise), sum(self._sizes))) if condition is None else condition
        rows = np.zeros((len(noise), self.parts))
        if len(noise):
            distinct, which = _distinct(masks)
            for number, mask in enumerate(distinct):
                own = np.flatnonzero(which == number)
                rows[own] = self._asked(len(own), mask, rng)
                if self.tree.identities is not None:
                    rows[own] = self.tree.identities.keep(rows[own], self._every_span(mask), rng)
        return rows

    def _asked(self, count: int, mask: Floats, rng: np.random.Generator) -> Floats:
        """Return rows with these values of the conditions, by rejection if the last column is conditioned on."""
        spans, last = self._asked_of(mask)
        asked = TreeEvidence(self.tree, spans)
        weights, decided = self._weights(last)
        if last is None or decided:
            return self._drawn(TreeDraw(self.tree, asked, count, rng, weights), last, rng)
        found: list[Floats] = []
        missing = count
        pilot = TreeDraw(self.tree, asked, min(_PILOT, _MOST_MORE * count), rng)
        pilot.draw()
        fits = self._last_chances(pilot)[:, last].sum(1)
        most = max(float(fits.max()), _RARE)
        rate = max(float(fits.mean()) / most, 1 / _MOST_MORE)
        for _ in range(_TRIES):
            drawn = TreeDraw(self.tree, asked, min(_AT_ONCE, int(1.1 * missing / rate) + 8), rng)
            rows = self._drawn(drawn, last, rng, most)[:missing]
            found.append(rows)
            missing -= len(rows)
            if not missing:
                break
        if missing:  # nearly impossible given the rest: accept without rejection
            found.append(self._drawn(TreeDraw(self.tree, asked, missing, rng), last, rng))
        return np.concatenate(found)

    def _drawn(self, drawn: TreeDraw, last: Mask | None, rng: np.random.Generator, most: float | None = None) -> Floats:
        """Return rows in a random order; with ``most``, only those that pass rejection on the last column.

        Args:
            drawn: The draw of groups.
            last: ``(V,)`` mask of the last column's allowed values.
            rng: Public randomness.
            most: The largest chance that a row's last column is allowed.
        """
        drawn.draw()
        chances = None if self.tree.last is None else self._last_chances(drawn)
        if chances is not None and last is not None:
            chances = chances * last
            if most is not None:
                kept = np.flatnonzero(rng.random(len(chances)) * most < chances.sum(1))
                drawn.keep(kept)
                chances = chances[kept]
            chances = np.where(chances.sum(1, keepdims=True) > 0, chances, last)
            chances /= chances.sum(1, keepdims=True)
        rows = np.zeros((len(drawn.component), self.parts))
        for place, node in enumerate(self.tree.nodes):
            if node.part >= 0:
                rows[:, node.part] = drawn.values(place)
        if chances is not None and self.tree.last is not None and len(rows):
            order = np.argsort(chances[:, -1], kind="stable")
            codes = draw_evenly(chances, order, rng)
            rows[:, self.tree.last.part] = swapped_tables.swap_pairs(
                codes, chances, drawn.coarse, self.tree.sizes, order, rng
            )
        return rows[rng.permutation(len(rows))]

    def _last_chances(self, drawn: TreeDraw) -> Floats:
        if self.tree.last is None:
            raise TypeError("no column is drawn last")
        return self.tree.last.chances(drawn.coarse, drawn.component, self.tree.sizes)


def _distinct(masks: Floats) -> tuple[Floats, Ints]:
    """Return the distinct rows of masks ``(n, K)`` of zeros and ones, and each row's index among them."""
    if (masks == masks[:1]).all():
        return masks[:1], np.zeros(len(masks), dtype=np.int64)
    bits = np.packbits(masks > 0, axis=1)
    _, first, which = np.unique(bits.view(f"V{bits.shape[1]}").ravel(), return_index=True, return_inverse=True)
    return masks[first], which
