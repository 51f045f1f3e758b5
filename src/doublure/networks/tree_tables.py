"""The tables that a tree of columns is drawn by, and how they are kept and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[Any]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

LEAST = 1e-13
"""What no chance is below, where something has to be drawn all the same."""
_NEVER = 1e-200
_BESIDE = 64
"""Columns that another is kept even with; with all of several hundred it would take most of the time."""


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
        ties: ``(parent's f, m)`` how often each group goes with each of the parent's; empty of the root.
        leaning: ``(K, m)`` what each component makes of that: given component k and parent p, group c has a chance in
            proportion to ``ties[p, c] * leaning[k, c]``; empty of the root.
        inner: ``(parent's f, f)`` the fine groups given the parent; empty of the root.
        missing: The coarse group that stands for missing, or -1.
    """

    part: int
    parent: int
    starts: Ints
    widths: Ints
    mass: Floats
    fine: Ints
    coarse: Ints
    shares: Floats
    rake: Floats
    ties: Floats
    leaning: Floats
    inner: Floats
    missing: int

    @cached_property
    def groups(self) -> int:
        """M."""
        return int(self.shares.shape[1])

    @cached_property
    def fine_mass(self) -> Floats:
        """``(f,)``."""
        found: Floats = np.bincount(self.fine, self.mass, len(self.coarse)) + LEAST
        return found

    @cached_property
    def within(self) -> Floats:
        """``(parent's f or 1, f)`` each fine group's share of its coarse group, given the parent."""
        rows = self.inner if self.parent >= 0 else self.fine_mass[None]
        rows = np.where(rows.sum(1, keepdims=True) > 0, rows, self.fine_mass[None]) + LEAST * self.fine_mass[None]
        totals = rows @ self.membership
        found: Floats = rows / totals[:, self.coarse]
        return found

    @cached_property
    def membership(self) -> Floats:
        """``(f, m)`` one where a fine group is in a coarse one."""
        found: Floats = np.eye(self.groups)[self.coarse]
        return found

    def chances(self, component: Ints, above: Ints, missing: Mask | None, rake: Floats | None = None) -> Floats:
        """Return how likely each coarse group is, ``(..., m)``, not adding up to 1.

        Args:
            component: ``(...)``.
            above: ``(...)`` the parent's fine group.
            missing: ``(...)`` whether the cell is missing, where that is known already; None: it is not.
            rake: ``(m,)`` in the place of what is kept.
        """
        if self.parent >= 0:
            found = self.ties[above] * self.leaning[component]
            totals = found.sum(-1, keepdims=True)
            found = np.where(totals > _NEVER, found / np.maximum(totals, _NEVER), self.shares[component])
        else:
            found = self.shares[component].astype(np.float64)
        found *= self.rake if rake is None else rake
        if missing is not None:
            missing = np.broadcast_to(missing, found.shape[:-1])
            found[~missing, self.missing] = 0
            none = ~missing & (found.sum(-1) < LEAST)
            others = np.bincount(self.coarse, self.fine_mass, self.groups)
            others[self.missing] = 0
            found[none] = others
            found[missing] = 0
            found[missing, self.missing] = 1
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

    @cached_property
    def of_component(self) -> Floats | None:
        """``(K, V)`` the chances, where the component alone decides; None where others do, too."""
        return None if self.effects.any() else _softmax(self.bias + self.components)

    def chances(self, groups: Ints, component: Ints, sizes: Ints) -> Floats:
        """Return ``(N, V)`` from coarse groups ``(N, nodes)``."""
        first = np.cumsum(sizes) - sizes
        logits = self.bias + self.components[component]
        for node, start in enumerate(first):
            logits = logits + self.effects[start + groups[:, node]]
        return _softmax(logits)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """All tables of a tree.

    Attributes:
        nodes: In the order in which they are drawn.
        weights: ``(K,)`` how likely each component is.
        bits: ``(patterns, q)`` which of some nodes are missing in each pattern, where the root is the patterns.
        about: ``(q,)`` those nodes.
        last: The column that is drawn last, if there is one.
    """

    nodes: tuple[TreeNode, ...] = ()
    weights: Floats = field(default_factory=lambda: np.ones(1))
    bits: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    about: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    last: LastColumn | None = None

    @cached_property
    def sizes(self) -> Ints:
        """``(nodes,)`` how many coarse groups each has."""
        return np.array([node.groups for node in self.nodes], dtype=np.int64)

    @cached_property
    def beside(self) -> list[Ints]:
        """Of each node the ones drawn before it that its tables are kept even with: the nearest along the tree."""
        return _beside([node.parent for node in self.nodes])

    def held(self, place: int, patterns: Ints) -> Mask | None:
        """Return whether a node's cell is missing in each of some patterns; None where patterns do not say."""
        found = np.flatnonzero(self.about == place)
        return self.bits[patterns, found[0]] == 1 if len(found) else None

    def kept(self) -> dict[str, Any]:
        """Return all arrays by name."""
        kept: dict[str, Any] = {
            "mixture_weights": self.weights,
            "patterns_bits": self.bits,
            "patterns_about": self.about,
        }
        for place, node in enumerate(self.nodes):
            kept |= {f"node{place}_{name}": getattr(node, name) for name in _NODE_FIELDS}
        if self.last is not None:
            kept |= {f"last_{name}": getattr(self.last, name) for name in _LAST_FIELDS}
        return kept


_NODE_FIELDS = ("part", "parent", "starts", "widths", "mass", "fine", "coarse", "shares", "rake", "ties", "leaning",
                "inner", "missing")  # fmt: skip
_LAST_FIELDS = ("part", "bias", "effects", "components")
_WHOLE = {"starts", "widths", "fine", "coarse", "part", "parent", "missing"}


def read(kept: Mapping[str, Any], parts: int) -> Tree:
    """Return the tree whose arrays were kept.

    Args:
        kept: By name.
        parts: How many numbers a row has.

    Raises:
        ValueError: They do not fit together.
    """
    count = len({name.partition("_")[0] for name in kept if name.startswith("node")})
    try:
        nodes = tuple(
            TreeNode(**{name: _read(kept[f"node{place}_{name}"], name) for name in _NODE_FIELDS})
            for place in range(count)
        )
        last = None
        if "last_part" in kept:
            last = LastColumn(**{name: _read(kept[f"last_{name}"], name) for name in _LAST_FIELDS})
        tree = Tree(
            nodes=nodes,
            weights=kept["mixture_weights"].astype(np.float64),
            bits=kept["patterns_bits"].astype(np.int64),
            about=kept["patterns_about"].astype(np.int64),
            last=last,
        )
        _refuse_unfit(tree, parts)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("tables do not fit together") from error
    return tree


def _refuse_unfit(tree: Tree, parts: int) -> None:
    nodes, count, about, last = tree.nodes, len(tree.weights), tree.about, tree.last
    for place, node in enumerate(nodes):
        groups, fine = node.shares.shape[1], len(node.coarse)
        above = len(nodes[node.parent].coarse) if node.parent >= 0 else 0
        fits = (
            -1 <= node.part < parts and -1 <= node.parent < place and node.shares.shape == (count, groups)
            and len(node.starts) == len(node.widths) == len(node.mass) == len(node.fine) and fine > 0
            and node.fine.min() >= 0 and node.fine.max() < fine and node.coarse.min() >= 0
            and node.coarse.max() < groups and node.rake.shape == (groups,) and node.missing < groups
            and (node.parent < 0) == (node.ties.size == 0) == (node.leaning.size == 0) == (node.inner.size == 0)
            and (node.parent < 0 or (node.ties.shape == (above, groups) and node.leaning.shape == (count, groups)
                                     and node.inner.shape == (above, fine)))
        )  # fmt: skip
        if not fits:
            raise ValueError(f"node {place}")
    if tree.bits.shape[1:] != about.shape or (about.size and not 0 <= about.min() <= about.max() < len(nodes)):
        raise ValueError("patterns")
    if last is not None and (
        len(last.effects) != sum(node.groups for node in nodes) or last.components.shape[0] != count
    ):
        raise ValueError("last")


def _read(value: Any, name: str) -> Any:
    if value.ndim == 0:
        return int(value)
    return value.astype(np.int64 if name in _WHOLE else np.float64)


def _beside(parents: list[int]) -> list[Ints]:
    """Return, of each node, the numbers of the earlier ones that are nearest along the tree."""
    steps = np.zeros((len(parents), len(parents)), dtype=np.int64)
    for place, parent in enumerate(parents[1:], start=1):
        steps[place, :place] = steps[:place, place] = steps[parent, :place] + 1
    return [np.sort(np.argsort(steps[place, :place], kind="stable")[:_BESIDE]) for place in range(len(parents))]


def _softmax(logits: Floats) -> Floats:
    chances = np.exp(logits - logits.max(1, keepdims=True))
    found: Floats = chances / chances.sum(1, keepdims=True)
    return found
