"""The tables of a tree of columns, with their stored form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.networks.tree_identities import KeptIdentities
from doublure.support import lattices
from doublure.support.arrays import Ints, Mask

Floats: TypeAlias = npt.NDArray[Any]

LEAST = 1e-13
"""Lower bound of chances, where some entry must be drawn."""
_NEVER = 1e-200
_MOST_OF_A_DAY = 86_400
"""Most integers of a day: its seconds."""
_BESIDE = 64
"""Most columns whose joint tables with a column are kept even; all of several hundred would take most of the time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AllowedLeaves:
    """The leaves of a node's fine groups, cut to allowed values; fields as in :class:`TreeNode`.

    Attributes:
        starts: ``(n,)``.
        widths: ``(n,)``.
        mass: ``(n,)``, none of them zero.
        fine: ``(n,)``.
        fit: ``(f,)`` the allowed share of each fine group.
    """

    starts: Ints
    widths: Floats
    mass: Floats
    fine: Ints
    fit: Floats

    @cached_property
    def by_group(self) -> tuple[Ints, Ints, Ints, Floats]:
        """The leaves in the order of their groups ``(n,)``, each group's first and end there ``(f,)``, and the mass.

        The mass ``(n + 1,)`` is that of the leaves before each place in the order.
        """
        order = np.argsort(self.fine, kind="stable")
        groups, own = np.arange(len(self.fit)), self.fine[order]
        begins, ends = (np.searchsorted(own, groups, side=side) for side in ("left", "right"))
        return order, begins, ends, np.concatenate([[0.0], np.cumsum(self.mass[order])])


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeNode:
    """The tables of one column, or of the patterns of missing cells; m coarse and f fine groups, n leaves.

    Attributes:
        part: Its place in a row; -1 for the patterns.
        parent: The parent node; -1 for the root.
        starts: ``(n,)`` the first value of each leaf.
        widths: ``(n,)`` number of values of each leaf.
        mass: ``(n,)`` frequency of each leaf.
        fine: ``(n,)`` the fine group of each leaf.
        coarse: ``(f,)`` the coarse group of each fine one.
        shares: ``(K, m)`` shares of the coarse groups within each component.
        rake: ``(m,)`` factors that correct the groups' shares along the tree.
        ties: ``(parent's f, m)`` joint frequency of the parent's fine groups and the coarse groups; empty for the root.
        leaning: ``(K, m)`` factors of the components: given component k and parent p, group c has a chance in
            proportion to ``ties[p, c] * leaning[k, c]``; empty for the root.
        inner: ``(parent's f, f)`` frequency of the fine groups given the parent; empty for the root.
        missing: The coarse group of missing cells, the first of them if there are several kinds, or -1.
        steps: ``(L,)`` steps of nested lattices (:mod:`doublure.support.lattices`).
        pulls: ``(L,)`` how much likelier an integer of each lattice is than its neighbours, up to a factor.
        hours: ``(H,)`` how likely the integers of each part of a day are, up to a factor, where the coarsest lattice
            is the days; ``(1,)`` where there are none.
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
    steps: Ints = field(default_factory=lambda: np.ones(1, dtype=np.int64))
    pulls: Floats = field(default_factory=lambda: np.ones(1))
    hours: Floats = field(default_factory=lambda: np.ones(1))

    def weights(self, starts: Ints, widths: Ints) -> Floats:
        """Return the weight ``(n, L)`` of the integers of each lattice in ranges; a range's mass is spread by it."""
        if self.by_hour is not None:
            return self.by_hour.classes(starts, starts + widths.astype(np.int64) - 1)
        found: Floats = lattices.members(starts, starts + widths - 1, self.steps) * self.pulls
        return found

    @cached_property
    def by_hour(self) -> lattices.PeriodWeights | None:
        """The weights of integers by their lattice and hour; None where hours are even, or there are none."""
        even = bool((self.hours == self.hours[0]).all())
        return None if even else lattices.PeriodWeights(self.steps, self.pulls, np.maximum(self.hours, LEAST))

    @cached_property
    def leaves(self) -> AllowedLeaves:
        """All leaves, where every value is allowed."""
        fit = np.ones(len(self.coarse))
        return AllowedLeaves(starts=self.starts, widths=self.widths, mass=self.mass + LEAST, fine=self.fine, fit=fit)

    @cached_property
    def leaf_weights(self) -> Floats:
        """``(n,)`` the weight of all integers of each leaf."""
        found: Floats = np.maximum(self.weights(self.starts, self.widths).sum(1), LEAST)
        return found

    @cached_property
    def groups(self) -> int:
        """Number of coarse groups, m."""
        return int(self.shares.shape[1])

    @cached_property
    def fine_mass(self) -> Floats:
        """``(f,)`` frequency of each fine group."""
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
        """Return the chances ``(..., m)`` of each coarse group, not normalised.

        Args:
            component: ``(...)``.
            above: ``(...)`` the parent's fine group.
            missing: ``(...)`` whether the cell is missing, if that is known already; None: it is not.
            rake: ``(m,)`` factors in place of the node's.
        """
        if self.parent >= 0:
            found = self.ties[above] * self.leaning[component]
            totals = found.sum(-1, keepdims=True)
            never = totals[..., 0] <= _NEVER
            found /= np.maximum(totals, _NEVER)
            if never.any():
                found[never] = np.broadcast_to(self.shares[component], found.shape)[never]
        else:
            found = self.shares[component].astype(np.float64)
        found *= self.rake if rake is None else rake
        if missing is not None:
            missing = np.broadcast_to(missing, found.shape[:-1])
            kinds = np.arange(self.groups) >= self.missing
            found[missing[..., None] != kinds] = 0
            every = np.bincount(self.coarse, self.fine_mass, self.groups)
            none = found.sum(-1) < LEAST
            found[none & ~missing] = np.where(kinds, 0, every)
            found[none & missing] = np.where(kinds, every, 0)
            if kinds.sum() == 1:
                found[missing, self.missing] = 1
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class LastColumn:
    """The column that is drawn last from all others, by a multinomial logistic model.

    Attributes:
        part: Its place in a row.
        bias: ``(V,)`` logit of each value.
        effects: ``(sum of m, V)`` logits added by each coarse group of each node.
        components: ``(K, V)`` logits added by each component.
    """

    part: int
    bias: Floats
    effects: Floats
    components: Floats

    @cached_property
    def of_component(self) -> Floats | None:
        """``(K, V)`` the chances, if the component alone decides; else None."""
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
        nodes: In the order of drawing.
        weights: ``(K,)`` probability of each component.
        bits: ``(patterns, q)`` whether each of q nodes is missing in each pattern, if the root is the patterns.
        about: ``(q,)`` those nodes.
        last: The column that is drawn last, if there is one.
        identities: What all rows keep between their numbers, if anything was found.
    """

    nodes: tuple[TreeNode, ...] = ()
    weights: Floats = field(default_factory=lambda: np.ones(1))
    bits: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    about: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    last: LastColumn | None = None
    identities: KeptIdentities | None = None

    @cached_property
    def sizes(self) -> Ints:
        """``(nodes,)`` number of coarse groups of each node."""
        return np.array([node.groups for node in self.nodes], dtype=np.int64)

    @cached_property
    def beside(self) -> list[Ints]:
        """For each node the earlier ones, nearest along the tree, with which its joint tables are kept even."""
        return _beside([node.parent for node in self.nodes])

    def held(self, place: int, patterns: Ints) -> Mask | None:
        """Return whether a node's cell is missing in each pattern; None if patterns do not cover the node."""
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
            kept |= {
                f"node{place}_{name}": getattr(node, name) for name in (*_NODE_FIELDS, *_LATTICE_FIELDS, *_HOUR_FIELDS)
            }
        if self.last is not None:
            kept |= {f"last_{name}": getattr(self.last, name) for name in _LAST_FIELDS}
        if self.identities is not None:
            kept |= {f"identities_{name}": getattr(self.identities, name) for name in _IDENTITY_FIELDS}
        return kept


_NODE_FIELDS = ("part", "parent", "starts", "widths", "mass", "fine", "coarse", "shares", "rake", "ties", "leaning",
                "inner", "missing")  # fmt: skip
_LATTICE_FIELDS = ("steps", "pulls")
"""Fields that generators of earlier versions lack: their values are even within a leaf."""
_HOUR_FIELDS = ("hours",)
"""Fields that generators of earlier versions lack: their times are even over a day."""
_LAST_FIELDS = ("part", "bias", "effects", "components")
_IDENTITY_FIELDS = ("weights", "slack", "computed", "ends")
"""Fields that generators without an identity lack."""
_WHOLE = {"starts", "steps", "widths", "fine", "coarse", "part", "parent", "missing"}


def read_tree(kept: Mapping[str, Any], parts: int) -> Tree:
    """Return a tree from its arrays.

    Args:
        kept: Arrays by name.
        parts: Numbers of a row.

    Raises:
        ValueError: The arrays are inconsistent.
    """
    count = len({name.partition("_")[0] for name in kept if name.startswith("node")})
    try:
        nodes = tuple(
            TreeNode(**{name: _read(kept[f"node{place}_{name}"], name) for name in _stored(kept, place)})
            for place in range(count)
        )
        last = None
        if "last_part" in kept:
            last = LastColumn(**{name: _read(kept[f"last_{name}"], name) for name in _LAST_FIELDS})
        identities = None
        if "identities_weights" in kept:
            identities = KeptIdentities(
                **{name: kept[f"identities_{name}"].astype(np.int64) for name in _IDENTITY_FIELDS}
            )
            identities.refuse_unfit(parts)
        tree = Tree(
            nodes=nodes,
            weights=kept["mixture_weights"].astype(np.float64),
            bits=kept["patterns_bits"].astype(np.int64),
            about=kept["patterns_about"].astype(np.int64),
            last=last,
            identities=identities,
        )
        _refuse_unfit(tree, parts)
    except (KeyError, IndexError, TypeError, SettingError) as error:
        raise ValueError("tables do not fit together") from error
    return tree


def _stored(kept: Mapping[str, Any], place: int) -> tuple[str, ...]:
    said = (("steps", _LATTICE_FIELDS), ("hours", _HOUR_FIELDS))
    return _NODE_FIELDS + tuple(name for first, own in said if f"node{place}_{first}" in kept for name in own)


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
            and node.pulls.shape == node.steps.shape and bool((node.pulls > 0).all())
            and (node.parent < 0) == (node.ties.size == 0) == (node.leaning.size == 0) == (node.inner.size == 0)
            and (node.parent < 0 or (node.ties.shape == (above, groups) and node.leaning.shape == (count, groups)
                                     and node.inner.shape == (above, fine)))
        )  # fmt: skip
        if not fits:
            raise ValueError(f"node {place}")
        lattices.refuse_unnested(node.steps)
        hours = node.hours
        timed = hours.ndim == 1 and hours.size > 0 and bool(np.isfinite(hours).all() and (hours >= 0).all())
        if not timed or (hours.size > 1 and (node.steps[0] > _MOST_OF_A_DAY or node.steps[0] % hours.size)):
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
    """Return for each node the earlier nodes that are nearest along the tree."""
    steps = np.zeros((len(parents), len(parents)), dtype=np.int64)
    for place, parent in enumerate(parents[1:], start=1):
        steps[place, :place] = steps[:place, place] = steps[parent, :place] + 1
    return [np.sort(np.argsort(steps[place, :place], kind="stable")[:_BESIDE]) for place in range(len(parents))]


def _softmax(logits: Floats) -> Floats:
    chances = np.exp(logits - logits.max(1, keepdims=True))
    found: Floats = chances / chances.sum(1, keepdims=True)
    return found
