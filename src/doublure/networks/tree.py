"""A generator that draws a table's columns along a tree, within the components of a mixture.

Each row has a component. The root's group is drawn from the component; every other column's from the component and the
group of its parent in the tree (a joint table of both within each component), finely where the parent is known finely;
then a value within the group. Which cells are missing together may be the root: it is then held wherever it says
something. One column may be drawn last, from all others, by a logistic model of their groups.

All that it draws by are tables; there is nothing to differentiate, and it is NumPy inside. How many rows fall on each
group is shared out evenly: rows of a kind are put next to one another and take the terms of a sequence of low
discrepancy, in a random order otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from doublure.networks import even_tables

Floats: TypeAlias = npt.NDArray[Any]
Ints: TypeAlias = npt.NDArray[np.int64]

_GOLDEN = 0.6180339887498949
_AT_ONCE = 20_000
_LEAST = 1e-13
_TRIES = 60
_MOST_MORE = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeNode:
    """One column, or the patterns of missing cells, as it is drawn; m coarse and f fine groups, n leaves.

    Attributes:
        part: Its place in a row; -1 of the patterns.
        parent: The node that it is drawn from; -1 of the root.
        starts: ``(n,)`` the first value of each leaf.
        widths: ``(n,)`` how many values it has.
        mass: ``(n,)`` how often each leaf occurs.
        fine: ``(n,)`` its fine group.
        coarse: ``(f,)`` the coarse group of each fine one.
        shares: ``(K, m)`` the coarse groups within each component.
        rake: ``(m,)`` what corrects the shares of the groups along the tree.
        joint: ``(K, parent's f, m)`` given component and parent; empty of the root.
        inner: ``(parent's f, f)`` the fine groups given the parent; empty of the root.
        missing: The coarse group that stands for missing, or -1.
    """

    part: int
    parent: int
    starts: Ints
    widths: Floats
    mass: Floats
    fine: Ints
    coarse: Ints
    shares: Floats
    rake: Floats
    joint: npt.NDArray[np.float32]
    inner: Floats
    missing: int

    @cached_property
    def groups(self) -> int:
        """M."""
        return int(self.shares.shape[1])

    @cached_property
    def fine_mass(self) -> Floats:
        """``(f,)``."""
        found: Floats = np.bincount(self.fine, self.mass, len(self.coarse)) + _LEAST
        return found

    @cached_property
    def within(self) -> Floats:
        """``(parent's f or 1, f)`` each fine group's share of its coarse group, given the parent."""
        rows = self.inner if self.parent >= 0 else self.fine_mass[None]
        rows = np.where(rows.sum(1, keepdims=True) > 0, rows, self.fine_mass[None]) + _LEAST * self.fine_mass[None]
        totals = rows @ self.membership
        found: Floats = rows / totals[:, self.coarse]
        return found

    @cached_property
    def membership(self) -> Floats:
        """``(f, m)`` one where a fine group is in a coarse one."""
        found: Floats = np.eye(self.groups)[self.coarse]
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class LastColumn:
    """The column that is drawn from all others.

    Attributes:
        part: Its place in a row.
        bias: ``(V,)`` log-odds of each value.
        effects: ``(sum of m, V)`` what each coarse group of each node adds.
        components: ``(K, V)`` what each component adds.
    """

    part: int
    bias: Floats
    effects: Floats
    components: Floats

    def chances(self, groups: Ints, component: Ints, sizes: Ints) -> Floats:
        """Return ``(N, V)`` from coarse groups ``(N, nodes)``."""
        first = np.cumsum(sizes) - sizes
        logits = self.bias + self.components[component]
        for node, start in enumerate(first):
            logits = logits + self.effects[start + groups[:, node]]
        chances = np.exp(logits - logits.max(1, keepdims=True))
        found: Floats = chances / chances.sum(1, keepdims=True)
        return found


_NODE_FIELDS = ("part", "parent", "starts", "widths", "mass", "fine", "coarse", "shares", "rake", "joint", "inner",
                "missing")  # fmt: skip
_LAST_FIELDS = ("part", "bias", "effects", "components")
_WHOLE = {"starts", "fine", "coarse", "part", "parent", "missing"}


class TreeGenerator(nn.Module):
    """Noise and conditions in, rows of whole numbers out.

    Args:
        parts: How many numbers a row has.
        conditions: How many of the last ones may be asked for.

    Attributes:
        nodes: In the order in which they are drawn.
        weights: ``(K,)`` how likely each component is.
        bits: ``(patterns, q)`` which of some nodes are missing in each pattern, where the root is the patterns.
        about: ``(q,)`` those nodes.
        last: The column that is drawn last, if there is one.
    """

    nodes: tuple[TreeNode, ...]
    weights: Floats
    bits: Ints
    about: Ints
    last: LastColumn | None

    def __init__(self, parts: int, conditions: int) -> None:
        super().__init__()
        self.parts = parts
        self.conditions = conditions
        self.take((), np.ones(1), np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64), None)

    def take(
        self, nodes: tuple[TreeNode, ...], weights: Floats, bits: Ints, about: Ints, last: LastColumn | None
    ) -> None:
        """Draw by these tables from now on."""
        self.nodes, self.weights, self.bits, self.about, self.last = nodes, weights, bits, about, last
        self._buffers.clear()
        held: dict[str, Any] = {"mixture_weights": weights, "patterns_bits": bits, "patterns_about": about}
        held |= {
            f"node{place}_{name}": getattr(node, name) for place, node in enumerate(nodes) for name in _NODE_FIELDS
        }
        if last is not None:
            held |= {f"last_{name}": getattr(last, name) for name in _LAST_FIELDS}
        for name, value in held.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(value)).reshape(np.shape(value)))

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take tables of any shape that fit together.

        Raises:
            RuntimeError: They do not.
        """
        del strict, assign
        held = {name: value.numpy() for name, value in state_dict.items()}
        count = len({name.partition("_")[0] for name in held if name.startswith("node")})
        try:
            nodes = tuple(
                TreeNode(**{name: _read(held[f"node{place}_{name}"], name) for name in _NODE_FIELDS})
                for place in range(count)
            )
            last = None
            if "last_part" in held:
                last = LastColumn(**{name: _read(held[f"last_{name}"], name) for name in _LAST_FIELDS})
            weights, bits, about = held["mixture_weights"], held["patterns_bits"], held["patterns_about"]
            self._refuse_unfit(nodes, weights, bits, about, last)
            self.take(nodes, weights.astype(np.float64), bits.astype(np.int64), about.astype(np.int64), last)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise RuntimeError("tables do not fit together") from error

    def _refuse_unfit(self, nodes: tuple[TreeNode, ...], weights: Any, bits: Any, about: Any, last: Any) -> None:
        count = len(weights)
        for place, node in enumerate(nodes):
            groups, fine = node.shares.shape[1], len(node.coarse)
            above = len(nodes[node.parent].coarse) if node.parent >= 0 else 0
            fits = (
                -1 <= node.part < self.parts and -1 <= node.parent < place and node.shares.shape == (count, groups)
                and len(node.starts) == len(node.widths) == len(node.mass) == len(node.fine) and fine > 0
                and node.fine.min() >= 0 and node.fine.max() < fine and node.coarse.min() >= 0
                and node.coarse.max() < groups and node.rake.shape == (groups,) and node.missing < groups
                and (node.parent < 0) == (node.joint.size == 0) == (node.inner.size == 0)
                and (node.parent < 0 or (node.joint.shape == (count, above, groups)
                                         and node.inner.shape == (above, fine)))
            )  # fmt: skip
            if not fits:
                raise ValueError(f"node {place}")
        if bits.shape[1:] != about.shape or (about.size and not 0 <= about.min() <= about.max() < len(nodes)):
            raise ValueError("patterns")
        if last is not None and (
            len(last.effects) != sum(node.groups for node in nodes) or last.components.shape[0] != count
        ):
            raise ValueError("last")

    # -- drawing -----------------------------------------------------------------------------------------------------

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows ``(B, parts)`` float64.

        Args:
            noise: ``(B, 1)`` standard normal; all of it together begins the draw.
            condition: ``(B, conditions)`` values of the last parts, negative where one is not asked for; or None.
        """
        rng = np.random.default_rng(np.frombuffer(noise.numpy().tobytes(), dtype=np.uint32))
        asked = np.full((len(noise), self.conditions), -1.0)
        if condition is not None:
            asked = condition.double().numpy()
        rows = np.zeros((len(noise), self.parts))
        if len(noise):
            distinct, which = np.unique(asked, axis=0, return_inverse=True)
            for number, values in enumerate(distinct):
                own = np.flatnonzero(which.reshape(-1) == number)
                rows[own] = self._asked(len(own), values, rng)
        return torch.from_numpy(rows)

    def groups(self, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return the coarse groups ``(count, nodes)`` of so many rows, and their components."""
        drawn = Draw(self, {}, count, rng)
        drawn.draw()
        return drawn.coarse, drawn.component

    def _asked(self, count: int, values: Floats, rng: np.random.Generator) -> Floats:
        """Return rows with these values of the conditions."""
        first = self.parts - self.conditions
        fixed = {first + place: value for place, value in enumerate(values) if value >= 0}
        wanted = None if self.last is None else fixed.pop(self.last.part, None)
        rows = self._drawn(count, fixed, rng)
        if wanted is None or self.last is None:
            return rows
        part, found = self.last.part, rows
        missing = np.flatnonzero(found[:, part] != wanted)
        for _ in range(_TRIES):
            if not len(missing):
                break
            rate = max(1 - len(missing) / max(1, count), 1 / _MOST_MORE)
            more = self._drawn(min(int(len(missing) / rate) + 1, _MOST_MORE * len(missing)), fixed, rng)
            more = more[more[:, part] == wanted][: len(missing)]
            found[missing[: len(more)]] = more
            missing = missing[len(more) :]
        found[missing, part] = wanted
        return found

    def _drawn(self, count: int, fixed: Mapping[int, float], rng: np.random.Generator) -> Floats:
        drawn = Draw(self, fixed, count, rng)
        drawn.draw()
        rows = np.zeros((count, self.parts))
        for place, node in enumerate(self.nodes):
            if node.part >= 0:
                value = fixed.get(node.part)
                rows[:, node.part] = drawn.values(place) if value is None else value
        if self.last is not None:
            sizes = np.array([node.groups for node in self.nodes])
            chances = self.last.chances(drawn.coarse, drawn.component, sizes)
            order = np.argsort(chances[:, -1], kind="stable")
            drawn_last = _even(chances, order, rng)
            rows[:, self.last.part] = even_tables.pairwise_swapped(drawn_last, chances, drawn.coarse, sizes, order, rng)
        return rows[rng.permutation(count)]


class Draw:
    """Rows that are being drawn, node by node."""

    def __init__(
        self, generator: TreeGenerator, fixed: Mapping[int, float], count: int, rng: np.random.Generator
    ) -> None:
        self._of = generator
        self._rng = rng
        self._fixed: dict[int, int] = {}
        for place, node in enumerate(generator.nodes):
            if node.part in fixed:
                leaf = int(np.searchsorted(node.starts, fixed[node.part], side="right")) - 1
                self._fixed[place] = int(node.fine[max(leaf, 0)])
        self._ahead = self._messages()
        weights = generator.weights
        if self._fixed:
            root = generator.nodes[0]
            chances = root.shares[:, root.coarse] * root.within * self._ahead[0][1]
            likely = weights * chances.sum(1)
            weights = likely if likely.sum() > 0 else weights
        cumulative = np.cumsum(weights / weights.sum())
        even = (np.arange(count) + rng.random()) / max(1, count)
        self.component = np.minimum(np.searchsorted(cumulative, even, side="right"), len(weights) - 1)
        self.coarse = np.zeros((count, len(generator.nodes)), dtype=np.int64)
        self.fine = np.zeros((count, len(generator.nodes)), dtype=np.int64)

    def draw(self, *, rake: dict[int, Floats] | None = None) -> None:
        """Draw all groups.

        Args:
            rake: Takes, for each node, what brings its groups to the shares that it has there; None: as they are kept.
        """
        for place in range(len(self._of.nodes)):
            self._draw_node(place, rake)

    def values(self, place: int) -> Floats:
        """Return a value of each row's fine group."""
        node, fine = self._of.nodes[place], self.fine[:, place]
        order = np.argsort(node.fine, kind="stable")
        ends = np.searchsorted(node.fine[order], np.arange(len(node.coarse)), side="right")
        begins = np.searchsorted(node.fine[order], np.arange(len(node.coarse)), side="left")
        cumulative = np.concatenate([[0.0], np.cumsum(node.mass[order] + _LEAST)])
        u = np.empty(len(fine))
        rows = np.lexsort((self._rng.random(len(fine)), fine))
        count = np.bincount(fine, minlength=len(node.coarse))
        first = (np.cumsum(count) - count)[fine[rows]]
        u[rows] = (np.arange(len(rows)) - first + self._rng.random(len(count))[fine[rows]]) / count[fine[rows]]
        low, high = cumulative[begins[fine]], cumulative[ends[fine]]
        at = np.searchsorted(cumulative, low + u * (high - low), side="right") - 1
        leaf = order[np.clip(at, begins[fine], ends[fine] - 1)]
        found: Floats = node.starts[leaf] + np.floor(self._rng.random(len(fine)) * node.widths[leaf])
        return found

    # -- inside ------------------------------------------------------------------------------------------------------

    def _draw_node(self, place: int, rake: dict[int, Floats] | None) -> None:
        node = self._of.nodes[place]
        count = len(self.component)
        if place in self._fixed:
            self.fine[:, place] = self._fixed[place]
            self.coarse[:, place] = node.coarse[self._fixed[place]]
            return
        above = self.fine[:, node.parent] if node.parent >= 0 else np.zeros(count, dtype=np.int64)
        order = np.lexsort((self._rng.random(count), above, self.component))
        if rake is not None:
            wanted = rake[place]
            some = order[:: max(1, count // 15_000)]
            rake[place] = _raked(self._chances(place, some, above), wanted)
        factor = node.rake if rake is None else rake[place]
        start = self._rng.random()
        all_chances = np.empty((count, node.groups), dtype=np.float32)
        for first in range(0, count, _AT_ONCE):
            rows = order[first : first + _AT_ONCE]
            chances = self._chances(place, rows, above) * factor
            self.coarse[rows, place] = _at(chances, (start + (first + np.arange(len(rows))) * _GOLDEN) % 1)
            all_chances[rows] = chances / np.maximum(chances.sum(1, keepdims=True), _LEAST)
        if rake is None and place:
            sizes = np.array([self._of.nodes[other].groups for other in range(place)])
            near = np.lexsort((self._rng.random(count), above))
            self.coarse[:, place] = even_tables.pairwise_swapped(
                self.coarse[:, place], all_chances, self.coarse[:, :place], sizes, near, self._rng
            )
        if len(node.coarse) == node.groups:  # nested, and as many: the same
            self.fine[:, place] = np.argsort(node.coarse)[self.coarse[:, place]]
            return
        order = np.lexsort((self._rng.random(count), above, self.coarse[:, place]))
        start = self._rng.random()
        for first in range(0, count, _AT_ONCE):
            rows = order[first : first + _AT_ONCE]
            chances = node.within[above[rows]] * (node.coarse[None] == self.coarse[rows, place][:, None])
            if place in self._ahead:
                chances = chances * self._ahead[place][1][self.component[rows]] + _LEAST * chances
            self.fine[rows, place] = _at(chances, (start + (first + np.arange(len(rows))) * _GOLDEN) % 1)

    def _chances(self, place: int, rows: Ints, above: Ints) -> Floats:
        """Return the chances ``(rows, m)`` of the coarse groups of a node."""
        node, component = self._of.nodes[place], self.component[rows]
        if node.parent >= 0:
            chances = node.joint[component, above[rows]].astype(np.float64)
            none = chances.sum(1) < _LEAST
            chances[none] = node.shares[component[none]]
        else:
            chances = node.shares[component].copy()
        if place in self._ahead:
            towards = self._ahead[place][0]
            ahead = towards[component, above[rows]] if node.parent >= 0 else towards[component, 0]
            chances = chances * ahead + _LEAST * chances
        return self._with_missing_held(place, chances, rows)

    def _with_missing_held(self, place: int, chances: Floats, rows: Ints) -> Floats:
        """Let the patterns decide which cells are missing, where they are drawn."""
        found = np.flatnonzero(self._of.about == place)
        if not len(found):
            return chances
        node = self._of.nodes[place]
        missing = self._of.bits[self.fine[rows, 0], found[0]] == 1
        chances[~missing, node.missing] = 0
        none = ~missing & (chances.sum(1) < _LEAST)
        others = np.bincount(node.coarse, node.fine_mass, node.groups)
        others[node.missing] = 0
        chances[none] = others
        chances[missing] = 0
        chances[missing, node.missing] = 1
        return chances

    def _messages(self) -> dict[int, tuple[Floats, Floats]]:
        """Return, of each node from which something that is asked for hangs, how likely it makes that.

        Of each node: by component, parent's fine group and own coarse group; and by component and own fine group.
        (Belief propagation: Pearl 1988.)
        """
        found: dict[int, tuple[Floats, Floats]] = {}
        nodes = self._of.nodes
        for place in range(len(nodes) - 1, -1, -1):
            node = nodes[place]
            children = [other for other in found if nodes[other].parent == place]
            if place not in self._fixed and not children:
                continue
            own = np.ones((len(self._of.weights), len(node.coarse)))
            if place in self._fixed:
                own[:] = 0
                own[:, self._fixed[place]] = 1
            for other in children:
                child = nodes[other]
                joint = child.joint.astype(np.float64)
                chances = joint / np.maximum(joint.sum(2, keepdims=True), _LEAST)
                own = own * (chances * found[other][0]).sum(2)
            towards = (own[:, None, :] * node.within[None]) @ node.membership
            found[place] = (towards, own)
        if self._fixed and 0 not in found:  # pragma: no cover - every node hangs from the root
            raise RuntimeError("a node has no way to the root")
        return found


def raked(generator: TreeGenerator, wanted: list[Floats], count: int, rng: np.random.Generator) -> list[Floats]:
    """Return what brings each node's groups to wanted shares, along the tree.

    Args:
        generator: With all other tables.
        wanted: Of each node ``(m,)`` shares.
        count: From how many drawn rows.
        rng: Public randomness.
    """
    factors = dict(enumerate(wanted))
    Draw(generator, {}, count, rng).draw(rake=factors)
    return [factors[place] for place in range(len(wanted))]


def _raked(chances: Floats, wanted: Floats) -> Floats:
    factor = np.ones(len(wanted))
    for _ in range(8):
        found = chances * factor
        found /= np.maximum(found.sum(1, keepdims=True), _LEAST)
        factor = factor * np.clip((wanted + 1e-6) / (found.mean(0) + 1e-6), 0.5, 2)
    return factor


def _at(chances: Floats, uniform: Floats) -> Ints:
    """Return which entry of each row of chances a number in [0, 1) falls on."""
    cumulative = np.cumsum(chances, axis=1)
    found: Ints = np.minimum((uniform[:, None] * cumulative[:, -1:] >= cumulative).sum(1), chances.shape[1] - 1)
    return found


def _even(chances: Floats, order: Ints, rng: np.random.Generator) -> Ints:
    """Return one entry a row, shared out evenly along an order."""
    uniform = np.empty(len(chances))
    uniform[order] = (rng.random() + np.arange(len(chances)) * _GOLDEN) % 1
    return _at(chances, uniform)


def _read(value: Any, name: str) -> Any:
    if value.ndim == 0:
        return int(value)
    if name == "joint":
        return value.astype(np.float32)
    return value.astype(np.int64 if name in _WHOLE else np.float64)
