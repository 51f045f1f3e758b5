"""The releases of ``statistics`` on tables, one after the other: what each looks at follows from those before it.

The plan (:mod:`doublure.methods.statistics.tables.plan`) has fixed how many tables each has and how noisy they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import overload

import numpy as np
from scipy.special import ndtr, ndtri

from doublure.encode.table_values import TableValues
from doublure.methods.statistics.binning import closest_counts
from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables import finding, plan
from doublure.methods.statistics.tables.finding import Opened
from doublure.methods.statistics.tables.leaves import Floats, Ints, Leaves
from doublure.methods.statistics.tables.nodes import MissingTogether, Node
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.axes import Intervals, Patterns, Table
from doublure.schema.columns import IntegerDomain
from doublure.training.checkpoints import KeptTables
from doublure.training.job import Job

_FEWEST, _MOST_OWN = 10, 36
_FEWEST_PAIRED = 8
_LEAST_NOISE = 1e-9
_CHANCE = 0.8
"""√(2/π): how far, on average, a normal number lies from its mean, in deviations."""
_PUBLISHED = {plan.COLUMNS, plan.BY_TARGET, plan.PAIRS, plan.TREE}
"""Releases of tables that say something by themselves."""
_FOCUSED, _FOCUSED_IN_PART = 8.0, 2.0
"""How much the noise of what is in focus matters: with 8 times, it is counted some four times as often as else; of a
pair one of whose columns is."""
_CLEAR, _FALSE_A_NODE = 2.0, 0.25
"""A pair is counted from so many deviations of its score's noise on: one more where units are few, and more of very
many pairs, of which else so many would look strong by chance that little is left for those that are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Noisy:
    """A noisy table.

    Attributes:
        counts: Of any shape.
        variance: Of the noise of each.
    """

    counts: Floats
    variance: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """A table that may be published.

    Attributes:
        axes: What it counts.
        noisy: The mean of its counts.
        times: How often it was counted.
    """

    axes: Table
    noisy: Noisy
    times: int


class NoisyTables:
    """All releases of a job, made in order.

    Attributes:
        encoder: Whose records are counted.
        nodes: What is paired: the patterns of missing cells, if there are some, then the columns.
        rows: How many rows there are, by all columns' counts together.
        target: What stands for the values of the column that is drawn last, if there is one.
        target_part: Its place in a compact record.
        pairs_within: Whether pairs are counted within the target.
        class_rows: ``(V,)`` how many rows each of its values has then; one number where they are not.
        by_class: Of each node then ``(m, V)`` its groups within each value, and their noise's variances.
        by_target: Of each node its groups within the target.
        scores: ``(nodes, nodes)`` how far pairs are from independence.
        pairs: Node numbers of each pair that was counted -> its table.
        edges: The spanning tree from node 0: parent and child, in the order in which they are drawn.
        fine: Of each edge its table in fine groups.
        published: All tables of columns and pairs, as they were released.
    """

    def __init__(self, job: Job, settings: TableStatisticsSettings) -> None:
        encoder = job.encoder
        if not isinstance(encoder, TableValues):
            raise TypeError("statistics counts whole numbers")
        self.encoder = encoder
        self._settings = settings
        counted = [access for access in job.accesses if isinstance(access.event, DiscreteGaussianEvent)]
        self._events: dict[str, DiscreteGaussianEvent] = {}
        self._numbers: dict[str, int] = {}
        for number, access in enumerate(counted, start=1):
            if isinstance(access.event, DiscreteGaussianEvent):
                self._events[access.purpose], self._numbers[access.purpose] = access.event, number
        self._tables = KeptTables(job)
        self._focus = plan.focused(encoder.schema, settings.focus, settings.within or "")
        parts = list(enumerate(encoder.domains))
        self._columns = [(part, domain) for part, domain in parts if encoder.columns[part] != settings.within]
        last = [(part, domain) for part, domain in parts if encoder.columns[part] == settings.within]
        self.target: IntegerDomain | None = last[0][1] if last else None
        self.target_part = last[0][0] if last else -1
        self.pairs_within = (
            self.target is not None and plan.BY_TARGET not in self._events and (plan.PAIRS in self._events)
        )
        self.class_rows: Floats = np.ones(1)
        self.by_class: list[tuple[Floats, Floats]] = []
        self.nodes: list[Node] = []
        self.rows = 1.0
        self.by_target: list[Noisy] = []
        self.scores: Floats = np.zeros((0, 0))
        self.pairs: dict[tuple[int, int], Noisy] = {}
        self.edges: list[tuple[int, int]] = []
        self.fine: list[Noisy] = []
        self.published: list[Counted] = []
        job.progress.stage("count", len(counted))

    def count(self) -> None:
        """Make all releases."""
        self._count_patterns()
        self._find_values()
        self._count_columns()
        self._count_by_target()
        self._score_pairs()
        self._count_pairs()
        self._count_tree()

    # -- one after the other -----------------------------------------------------------------------------------------

    def _count_patterns(self) -> None:
        """Release how often each pattern of missing cells occurs."""
        nullable = [(part, domain) for part, domain in self._columns if domain.nullable]
        some = 2 <= len(nullable) <= plan.MOST_PATTERNS
        parts, marks = tuple(part for part, _ in nullable), tuple(domain.last + 1.0 for _, domain in nullable)
        cells = np.arange(2 ** len(parts) if some else 1)
        wanted = [(Patterns(parts=parts, marks=marks, cells=cells, size=len(cells)),)] if some else []
        for noisy in self._released(plan.PATTERNS, wanted):
            noise = math.sqrt(noisy.variance)
            together = MissingTogether.of(parts, marks, noisy.counts, noise)
            self.nodes.append(Node.of_patterns(together, noisy.counts, noise))

    def _find_values(self) -> None:
        """Release where the rows of wide columns are, then which single values they have."""
        columns = [Node(leaves=Leaves.of(own, part, own.initial_partition())) for part, own in self._columns]
        self.nodes += columns
        wide = [node.leaves for node in columns if node.leaves.size > (plan.NARROW if node.ordered else plan.LISTED)]
        wide = wide[: self._places(plan.CELLS) // plan.COPIES[plan.CELLS]]
        looked = self._released(plan.CELLS, [(leaves.axis(np.arange(leaves.size)),) for leaves in wide])
        noises = {}
        for leaves, noisy in zip(wide, looked, strict=True):
            leaves.mass, noises[id(leaves)] = noisy.counts.copy(), math.sqrt(noisy.variance)
        numbers = [leaves for leaves in wide if leaves.domain.divisible]
        opened = [finding.full_cells(leaves, noises[id(leaves)]) for leaves in numbers]
        parts = self._opened(plan.VALUES, numbers, opened)
        part_noises = [math.sqrt(noisy.variance) for noisy in parts]
        for leaves, own, noisy, part_noise in zip(numbers, opened, parts, part_noises, strict=True):
            if (leaves.ends > leaves.starts).any():
                finding.take_values(leaves, own, noisy.counts, noises[id(leaves)], part_noise)
            else:
                finding.take_cells(leaves, noises[id(leaves)])
        again = [finding.outstanding_gaps(*each) for each in zip(numbers, opened, part_noises, strict=True)]
        parts = self._opened(plan.REPEATED, numbers, again)
        for leaves, own, noisy in zip(numbers, again, parts, strict=True):
            finding.take_repeated(leaves, own, noisy.counts, math.sqrt(noisy.variance))
        for leaves in wide:
            if leaves.domain.divisible:
                leaves.mark_empty()
            else:
                finding.take_categories(leaves, noises[id(leaves)])
        # Each table's counts add up to all rows: their median is rough, and enough until columns are counted.
        self._seen = float(np.median([noisy.counts.sum() for noisy in looked])) if wide else 1.0

    def _count_columns(self) -> None:
        """Release each column's own groups."""
        columns = [node for node in self.nodes if node.patterns is None]
        noise = self._mean_noise(plan.COLUMNS)
        pair_noise = self._mean_noise(plan.PAIRS)
        if self.target is not None and self.pairs_within:
            pair_noise *= math.sqrt(self.target.size)  # a cell of two columns is a sum over the target's values
        # As many groups as there can be with SEEN deviations of noise in each, if rows were shared out evenly.
        most = int(np.clip(self._seen / (plan.SEEN * noise), _FEWEST, max(_MOST_OWN, self._most_groups(self._seen))))
        for node in columns:
            node.join(most=most, noise=noise, pair_noise=pair_noise)
        focus = [self._weight(node) for node in columns]
        counted = self._released(plan.COLUMNS, [(node.axis(node.own),) for node in columns], focus)
        for node, noisy in zip(columns, counted, strict=True):
            node.counts, node.variance = noisy.counts, noisy.variance
        # Each node's counts add up to all rows with the noise of all its cells: weigh by precision.
        weights = np.array([1 / (len(node.counts) * node.variance) for node in self.nodes])
        totals = np.array([node.counts.sum() for node in self.nodes])
        self.rows = max(1.0, float((weights * totals).sum() / weights.sum()))
        most = self._most_groups(self.rows)
        paired = int(np.clip(self.rows / (plan.SEEN * noise), min(_FEWEST_PAIRED, most), most))
        for node in self.nodes:
            node.take_counts(self.rows, most=paired, pair_noise=pair_noise)

    def _count_by_target(self) -> None:
        """Release each node's groups within the target."""
        if self.target is None or self.pairs_within:
            return
        within = _each_value(self.target, self.target_part)
        wanted = [(node.axis(node.coarse), within) for node in self.nodes]
        self.by_target = self._released(plan.BY_TARGET, wanted, [self._weight(node) for node in self.nodes])
        for node, noisy in zip(self.nodes, self.by_target, strict=True):
            node.take_margin(noisy.counts.sum(1), noisy.counts.shape[1] * noisy.variance)

    def _score_pairs(self) -> None:
        """Release how far each pair is from what its columns alone make one expect."""
        count = len(self.nodes)
        self.scores = np.zeros((count, count))
        event = self._events.get(plan.SCORES)
        if event is None:
            return
        self.scores -= math.inf
        axes = [node.axis(node.coarse) for node in self.nodes]
        shares = [closest_counts(node.single, node.single_variance, total=self.rows) / self.rows for node in self.nodes]
        # Where not all pairs can be scored, those asked for come first, then columns that stand near one another.
        both = sorted(combinations(range(count), 2), key=lambda pair: (not self._asked(pair), self._apart(pair)))
        both = both[: event.tables]
        wanted: list[Table] = [(axes[one], axes[other]) for one, other in both]
        wanted += [_nothing()] * (event.tables - len(both))
        expected = Products(shares=shares, rows=self.rows, pairs=both, size=event.tables)
        noisy = self._tables.scored(self._numbers[plan.SCORES], wanted, expected)
        roots = [float(np.sqrt(own).sum()) for own in shares]
        for (one, other), score in zip(both, noisy, strict=False):
            # Rows of independent columns are off their product, too: by √(2/π) √(N p q) on average in each cell.
            by_chance = _CHANCE * math.sqrt(self.rows) * roots[one] * roots[other]
            self.scores[one, other] = self.scores[other, one] = score - by_chance

    def _apart(self, pair: tuple[int, int]) -> int:
        """Return how far apart two columns stand; the patterns of missing cells stand beside what they are about."""
        one, other = pair
        if self.nodes[one].patterns is None:
            return other - one
        return 0 if self.nodes[other].leaves.domain.nullable else len(self.nodes)

    def _count_pairs(self) -> None:
        """Release the pairs that clearly depend on one another; every node is in one at least."""
        places = self._places(plan.PAIRS) // plan.COPIES[plan.PAIRS]
        chosen = self._chosen(places)
        axes = [node.axis(node.coarse) for node in self.nodes]
        within = (_each_value(self.target, self.target_part),) if self.target and self.pairs_within else ()
        wanted = [(axes[one], axes[other], *within) for one, other in chosen]
        counted = self._released(plan.PAIRS, wanted, [self._weight(*self._both(pair)) for pair in chosen])
        counted = [
            noisy if within else Noisy(counts=noisy.counts[:, :, None], variance=noisy.variance) for noisy in counted
        ]
        self.pairs = dict(zip(chosen, counted, strict=True))
        classes = counted[0].counts.shape[2] if counted else 1
        totals, precision = np.zeros(classes), 0.0  # of classes, as every pair's table says them
        for noisy in counted:
            cells = noisy.counts.shape[0] * noisy.counts.shape[1] * noisy.variance
            totals += noisy.counts.sum((0, 1)) / cells
            precision += 1 / cells
        self.class_rows = np.maximum(totals / precision, 1.0) if within else np.array([self.rows])
        for place, node in enumerate(self.nodes):
            self.by_class.append(self._within_classes(place, node, classes))
            node.believe(self.rows)

    def _count_tree(self) -> None:
        """Release the pairs of the maximum spanning tree of the scores in fine groups."""
        self.edges = self._spanning()
        most = plan.fine_groups(self.rows / max(self._mean_noise(plan.TREE), _LEAST_NOISE), self.rows)
        for node in self.nodes:
            node.refine(most)
        axes = [node.axis(node.fine) for node in self.nodes]
        wanted = [(axes[parent], axes[child]) for parent, child in self.edges]
        self.fine = self._released(plan.TREE, wanted, [self._weight(*self._both(edge)) for edge in self.edges])

    def _within_classes(self, place: int, node: Node, classes: int) -> tuple[Floats, Floats]:
        """Return a node's groups within each class, and the variances, and let them say what they know of the node.

        What the pairs say of it, by class, is made to agree with what the column's own table says of all classes
        together, each giving way by how noisy it is.
        """
        counts, precision = np.zeros((node.size, classes)), 0.0
        for pair, noisy in self.pairs.items():
            if place in pair:
                across = 1 - pair.index(place)
                variance = noisy.counts.shape[across] * noisy.variance
                counts += noisy.counts.sum(across) / variance
                precision += 1 / variance
        if not precision:
            return node.single[:, None].copy(), node.single_variance[:, None].copy()
        counts, variance = counts / precision, 1 / precision
        # A Kalman update: pairs know each class, the column's own table knows the sum of all. The difference goes to
        # all classes alike, and the more of it the noisier the pairs are.
        gain = (variance / (classes * variance + node.single_variance))[:, None]
        together = counts.sum(1)
        counts += gain * (node.single - together)[:, None]
        node.take_margin(together, classes * variance)
        return counts, np.repeat(variance * (1 - gain), classes, axis=1)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _places(self, purpose: str) -> int:
        event = self._events.get(purpose)
        return event.tables if event else 0

    def _mean_noise(self, purpose: str) -> float:
        """Return the noise's deviation in a table that is counted as often as others; 0 where there is no release."""
        event = self._events.get(purpose)
        return event.scale / math.sqrt(plan.COPIES.get(purpose, 1)) if event else 0.0

    def _most_groups(self, rows: float) -> int:
        """Return into how many groups a column is joined for pairs, about, where there are so many rows."""
        classes = self.target.size if self.target is not None and self.pairs_within else 1
        over_noise = rows / max(self._mean_noise(plan.PAIRS) * classes, _LEAST_NOISE)
        return self._settings.groups or plan.groups_for(over_noise)

    def _both(self, pair: tuple[int, int]) -> tuple[Node, Node]:
        return self.nodes[pair[0]], self.nodes[pair[1]]

    def _weight(self, *nodes: Node) -> float:
        """Return how much the noise of a table of these nodes matters beside that of others."""
        names = self._names(nodes)
        within = frozenset([self._settings.within])
        if names in self._focus or names | within in self._focus:
            return _FOCUSED
        return _FOCUSED_IN_PART if any(frozenset([name]) in self._focus for name in names) else 1.0

    def _asked(self, pair: tuple[int, int]) -> bool:
        """Say whether a pair is asked for, whatever its score."""
        return self._names(self._both(pair)) in self._focus

    def _names(self, nodes: Iterable[Node]) -> frozenset[str]:
        """Return the columns of nodes; the patterns of missing cells have no name."""
        return frozenset(self.encoder.columns[node.leaves.part] if node.patterns is None else "" for node in nodes)

    def _released(self, purpose: str, wanted: Sequence[Table], weights: Sequence[float] | None = None) -> list[Noisy]:
        """Make a release of as many tables as were planned.

        Args:
            purpose: Which.
            wanted: What to count, at most as many as planned. Places that are left over are spent on these tables once
                more, and their mean is taken; where there is none, on tables that say nothing.
            weights: How much each one's noise matters; None: alike.
        """
        event = self._events.get(purpose)
        if event is None:
            return []
        times = _times([math.prod(axis.size for axis in table) for table in wanted], event.tables, weights)
        repeated = [table for table, often in zip(wanted, times, strict=True) for _ in range(often)]
        # As many tables are released as were paid for, whatever was found: their number tells nothing.
        spare = [_nothing()] * (event.tables - len(repeated))
        counted = iter(self._tables.released(self._numbers[purpose], [*repeated, *spare]))
        found = []
        for axes, often in zip(wanted, times, strict=True):
            own = [next(counted) for _ in range(often)]
            found.append(Noisy(counts=np.mean(own, axis=0), variance=event.scale**2 / often))
            if purpose in _PUBLISHED:
                self.published.append(Counted(axes=axes, noisy=found[-1], times=often))
        return found

    def _opened(self, purpose: str, numbers: list[Leaves], opened: list[Opened]) -> list[Noisy]:
        """Release the parts of full cells."""
        return self._released(purpose, [(own.axis(leaves),) for leaves, own in zip(numbers, opened, strict=True)])

    def _chosen(self, places: int) -> list[tuple[int, int]]:
        """Return the pairs to count, the strongest first."""
        both = list(combinations(range(len(self.nodes)), 2))
        event = self._events.get(plan.SCORES)
        if event is None:
            return both[:places]
        both = sorted((pair for pair in both if self.scores[pair] > -math.inf), key=lambda pair: -self.scores[pair])
        chance = min(ndtr(-_CLEAR - plan.few_seen(self._settings.seen)), _FALSE_A_NODE * len(self.nodes) / len(both))
        clear = [pair for pair in both if self.scores[pair] > -ndtri(chance) * event.scale][:places]
        asked = [pair for pair in both if self._asked(pair)]
        chosen = [*asked, *(pair for pair in clear if pair not in asked)][:places]
        chosen = chosen or both[: min(places, len(self.nodes))]
        # The mixture hears of a node's kin from its pairs alone: each node gets one, as long as there are places.
        for place in range(len(self.nodes)):
            if len(chosen) < places and not any(place in pair for pair in chosen):
                chosen.append(next(pair for pair in both if place in pair))
        return chosen

    def _spanning(self) -> list[tuple[int, int]]:
        scores = self.scores.copy()
        for pair in combinations(range(len(self.nodes)), 2) if self._focus else ():
            if self._asked(pair):
                scores[pair] = scores[pair[::-1]] = math.inf
        # Prim's algorithm: the strongest edge that leads out of the tree, until all nodes are in it.
        nearest, best = np.zeros(len(self.nodes), dtype=np.int64), scores[0].copy()
        outside, edges = np.arange(len(self.nodes)) > 0, []
        while outside.any():
            left = np.flatnonzero(outside)
            child = int(left[np.argmax(best[left])])
            edges.append((int(nearest[child]), child))
            outside[child] = False
            closer = scores[child] > best
            nearest[closer], best[closer] = child, scores[child][closer]
        return edges


@dataclass(frozen=True, kw_only=True, eq=False)
class Products(Sequence[Ints]):
    """The tables that independent columns would have: of a wide table so many that each is made when it is looked at.

    Attributes:
        shares: Of each node its groups.
        rows: How many there are.
        pairs: Of nodes; behind them stand tables of nothing.
        size: How many tables with those.
    """

    shares: Sequence[Floats]
    rows: float
    pairs: Sequence[tuple[int, int]]
    size: int

    def __len__(self) -> int:
        """Return how many tables."""
        return self.size

    @overload
    def __getitem__(self, at: int) -> Ints: ...
    @overload
    def __getitem__(self, at: slice) -> list[Ints]: ...
    def __getitem__(self, at: int | slice) -> Ints | list[Ints]:
        """Return a table, or some."""
        if isinstance(at, slice):
            return [self[place] for place in range(self.size)[at]]
        if range(self.size)[at] >= len(self.pairs):
            return np.zeros(1, dtype=np.int64)
        one, other = self.pairs[at]
        return np.rint(self.rows * np.outer(self.shares[one], self.shares[other])).astype(np.int64)


def _times(cells: Sequence[int], places: int, weights: Sequence[float] | None = None) -> list[int]:
    """Return how often to count each table: once at least, then where that takes most from the sum of all noise."""
    times = np.ones(len(cells))
    size = np.array(cells, dtype=np.float64) * (1.0 if weights is None else np.array(weights))
    for _ in range(places - len(cells) if cells else 0):
        times[int(np.argmax(size * (1 / np.sqrt(times) - 1 / np.sqrt(times + 1))))] += 1
    return [int(often) for often in times]


def _each_value(domain: IntegerDomain, part: int) -> Intervals:
    values = np.arange(domain.first, domain.last + 1 + domain.nullable)
    return Intervals(part=part, starts=values.astype(np.float64), cells=np.arange(len(values)), size=len(values))


def _nothing() -> Table:
    """Return a table of one cell, in which every record counts."""
    return (Intervals(part=0, starts=np.zeros(1), cells=np.zeros(1, dtype=np.int64), size=1),)
