"""The releases of ``statistics`` on tables in order, each adapted to those before it.

The plan (:mod:`doublure.methods.statistics.tables.plan`) has fixed the number of tables of each release and their
noise. :meth:`NoisyTables.count` makes them in this order:

===  =====================================================  ============================================================
1    neighbours that are missing together, ``(2^2,)``       blocks of columns, if many may be missing
2    patterns of missing blocks, ``(2^q,)``                 which patterns are kept, as node 0
3    wide columns in public cells, ``(cells,)``             which cells hold rows
4    wide columns on nested lattices, ``(lattices,)``;      how much values are round;
     moments by hour, ``(hours,)``                          which hours are likely
5    full cells in single and round values, ``(parts,)``    leaves and their masses
6    leaves where a value repeats, evenly, ``(parts,)``     finer leaves
7    long lists of codes, and their groups, ``(codes,)``    masses of codes
8    the target, ``(V,)``                                   rows of each of its values
9    each column in groups of leaves, ``(own groups,)``     number of rows; masses of leaves; coarse groups, m a node
10   each node within the target, ``(m, V)``                margins of nodes and of the target
11   scores of pairs, one number each                       which pairs are counted, and the spanning tree
12   rows that keep an identity of numbers, ``(3,)``        which identities every drawn row keeps
13   pairs in coarse groups, ``(m, m')`` or ``(m, m', V)``  groups' counts, by class; fine groups, f a node
14   the tree's pairs in fine groups, ``(f, f')``           the joint tables that rows are drawn by
===  =====================================================  ============================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from doublure.encode.conditions import shares_of
from doublure.encode.table_values import TableValues
from doublure.methods.statistics.binning import posterior_counts, project_to_simplex
from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.cut_cells import CutCells
from doublure.methods.statistics.tables.focus import FocusedTables
from doublure.methods.statistics.tables.identities import Identity, holding_identities, identities_to_count
from doublure.methods.statistics.tables.leaves import ColumnLeaves, Floats, Ints
from doublure.methods.statistics.tables.missing_blocks import (
    MOST_BLOCKS,
    MissingBlock,
    MissingRows,
    clear_patterns,
    declared_groups,
    explained_bits,
    heaviest,
    join_neighbours,
)
from doublure.methods.statistics.tables.nodes import MissingPatterns, Node, NoisyCounts, is_noise, make_posterior
from doublure.methods.statistics.tables.public_counts import CHANCE, PublicCounts
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.axes import Intervals, Lattices, Patterns, PeriodParts, Table
from doublure.schema.columns import IntegerDomain
from doublure.training.checkpoints import KeptTables
from doublure.training.job import Job

Mask: TypeAlias = npt.NDArray[np.bool_]

_FEWEST, _MOST_OWN = 10, 36
_LEAST_NOISE, _LEAST_ROWS, _NO_ROWS = 1e-9, 1.0, 1e-3
_CHANCE = 0.8
"""√(2/π): the mean absolute deviation of a normal number, in standard deviations."""
_PUBLISHED = {plan.TARGET, plan.COLUMNS, plan.BY_TARGET, plan.PAIRS, plan.TREE}
"""Releases whose tables are informative by themselves."""
_CLEAR, _FALSE_A_NODE = 2.0, 0.25
"""Deviations of its score's noise from which on a pair is counted (one more if units are few), and the most pairs a
node that may pass by chance; with very many pairs, the latter raises the threshold."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedTable:
    """A table that may be published.

    Attributes:
        axes: The axes of its cells.
        noisy: The mean of its counts.
        times: Number of counts.
    """

    axes: Table
    noisy: NoisyCounts
    times: int


class NoisyTables:
    """All releases of a job, made in order.

    Attributes:
        encoder: The encoder of the records.
        blocks: First part of each block of the patterns -> the parts of its columns, which are missing together.
        nodes: The nodes of pairs: the patterns of missing cells, if they are counted, then the columns.
        rows: Estimated number of rows, from all columns' counts together.
        target: The values of the column that is drawn last; None without one.
        target_part: Its place in a compact record; -1 without one.
        pairs_within: Whether pairs are counted within the target.
        target_rows: ``(V,)`` likely rows of each value of the target, if a column is drawn last.
        target_precision: One over the variance of each, before values share what is known.
        class_rows: ``(V,)`` those rows if pairs are counted within the target; else ``(1,)`` all rows.
        by_class: For each node ``(m, V)`` counts of its groups by class, and ``(m, V)`` variances of their noise.
        by_target: For each node its table with the target, ``(m, V)``.
        scores: ``(nodes, nodes)`` distance of pairs from independence; -inf for pairs that are not scored.
        scored: The pairs whose scores were released.
        score_noise: Standard deviation of each score's noise.
        scored_shares: For each node the shares of its groups, of which independence was said.
        identities: Those that their counts say hold.
        pairs: Node numbers of each counted pair -> its table ``(m, m', V or 1)``.
        edges: The spanning tree from node 0: parent and child, in the order of drawing.
        fine: For each edge its table in fine groups, ``(f, f')``.
        published: All tables of columns and pairs, as released.
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
        rows = settings.read_public_rows(encoder.schema)
        self._public = None if rows is None else PublicCounts(encoder.compact(rows), encoder.domains)
        self._focus = FocusedTables.of(settings.focus, plan.counted_columns(encoder.schema))
        parts = list(enumerate(encoder.domains))
        self._columns = [(part, domain) for part, domain in parts if encoder.columns[part] != settings.within]
        last = [(part, domain) for part, domain in parts if encoder.columns[part] == settings.within]
        self.target: IntegerDomain | None = last[0][1] if last else None
        self.target_part = last[0][0] if last else -1
        self.pairs_within = (
            self.target is not None and plan.BY_TARGET not in self._events and (plan.PAIRS in self._events)
        )
        self.target_rows: Floats = np.zeros(0)
        self.target_precision = 1.0
        self._own_part = -1
        self._own_counts: list[NoisyCounts] = []
        self.class_rows: Floats = np.ones(1)
        self.by_class: list[tuple[Floats, Floats]] = []
        self.blocks: dict[int, tuple[int, ...]] = {}
        self._missing: list[MissingBlock] = []
        self._seen_patterns: list[NoisyCounts] = []
        self.nodes: list[Node] = []
        self.rows, self._rows_variance = 1.0, 1.0
        self.by_target: list[NoisyCounts] = []
        self.scores: Floats = np.zeros((0, 0))
        self.score_noise = 0.0
        self.scored_shares: list[Floats] = []
        self.scored: list[tuple[int, int]] = []
        self.identities: list[Identity] = []
        self.pairs: dict[tuple[int, int], NoisyCounts] = {}
        self.edges: list[tuple[int, int]] = []
        self.fine: list[NoisyCounts] = []
        self.published: list[CountedTable] = []
        job.progress.stage("count", len(counted))

    def count(self) -> None:
        """Make all releases."""
        self._count_patterns()
        self._find_values()
        self._count_target()
        self._count_columns()
        self._count_by_target()
        self._score_pairs()
        self._count_identities()
        self._count_pairs()
        self._count_tree()

    # -- the releases in order ---------------------------------------------------------------------------------------

    def _count_patterns(self) -> None:
        """Count each pattern of missing cells, block by block."""
        self._missing = self._missing_blocks()
        some = sum(len(block.parts) for block in self._missing) > 1
        self._seen_patterns = self._released(plan.PATTERNS, [(_patterns(self._missing),)] if some else [])

    def _keep_patterns(self, most: int, pair_noise: float) -> None:
        """Keep the significant patterns as node 0, once it is known how many rows miss each column."""
        for noisy in self._seen_patterns:
            known = {node.leaves.part: (node.missing_rows(), node.variance) for node in self.nodes}
            kinds = 0 if self.target is None else int(self.target.nullable)
            for own in self._own_counts if kinds else ():
                known[self.target_part] = max(float(own.counts[-kinds:].sum()), 0.0), kinds * own.variance
            each = [np.array([known[part] for part in block.parts]) for block in self._missing]
            missing = MissingRows(
                rows=np.array([own[:, 0].mean() for own in each]),
                variance=np.array([own[:, 1].mean() / len(own) for own in each]),
                columns=np.array([float(len(own)) for own in each]),
                every=self.rows,
            )
            bits, counts, noise = explained_bits(noisy.counts, math.sqrt(noisy.variance), missing)
            blocks = [self._missing[bit] for bit in bits]
            if sum(len(block.parts) for block in blocks) < 2:  # a column alone is better known by its own counts
                bits, blocks, counts = (), [], np.array([self.rows])
            self.blocks = {block.parts[0]: block.parts for block in blocks}
            kept, rows = clear_patterns(counts, noise, missing.of_bits(bits))
            together = MissingPatterns.of(tuple(self.blocks), tuple(block.mark for block in blocks), kept, rows)
            node = Node.of_patterns(together, rows, noise)
            node.take_counts(self.rows, most=most, pair_noise=pair_noise)
            self.nodes.insert(0, node)

    def target_excluded(self) -> Mask:
        """Return ``(m, V)``: which values of the target the groups of node 0 rule out, where it is the patterns.

        A pattern in which the target's bit stands says whether its cell is missing.
        """
        size, values = self.nodes[0].size if self.nodes else 0, len(self.target_rows)
        found = None if self.target is None else self._agrees(self.target_part, self.nodes[0].coarse)
        excluded = np.tile(self.target_rows <= _NO_ROWS, (size, 1))
        if found is None or self.target is None:
            return excluded
        return excluded | ~found[:, (np.arange(values) >= values - self.target.nullable).astype(np.int64)]

    def may_meet(self, parent: int, child: int) -> Mask | None:
        """Return ``(f, f')``: which fine groups of two nodes may meet, where the parent is the patterns; None: all."""
        node = self.nodes[child]
        found = self._agrees(node.leaves.part, self.nodes[0].fine) if parent == 0 else None
        states = np.arange(node.fine_size) >= node.fine_size - node.states
        return None if found is None else found[:, states.astype(np.int64)]

    def _agrees(self, part: int, groups: Ints) -> Mask | None:
        """Return whether a column's cell may be there, and may be missing, ``(groups, 2)``, by groups of patterns.

        None where no pattern that is kept misses it, as patterns then say nothing of it.
        """
        together = self.nodes[0].patterns if self.nodes else None
        bits = [place for place, own in enumerate(self.blocks.values()) if part in own]
        if together is None or not bits or not together.bits[:, bits[0]].any():
            return None
        gone, size = together.bits[:, bits[0]], int(groups.max()) + 1
        return np.stack([np.bincount(groups[gone == bit], minlength=size) > 0 for bit in (0, 1)], axis=1)

    def _missing_blocks(self) -> list[MissingBlock]:
        """Return the blocks whose patterns are counted: declared ones, joined by what neighbours have in common."""
        columns = [*self._columns]
        if self.target is not None and plan.TARGET in self._events:
            columns.insert(sum(part < self.target_part for part, _ in columns), (self.target_part, self.target))
        part_of = {self.encoder.columns[part]: (part, domain) for part, domain in columns if domain.nullable}
        groups = declared_groups(self.encoder.schema.constraints, part_of)
        blocks = [
            MissingBlock(parts=tuple(part_of[name][0] for name in group), mark=part_of[group[0]][1].last + 1.0)
            for group in groups
        ]
        if len(blocks) <= MOST_BLOCKS:
            return blocks
        compared = self._released(plan.NEIGHBOURS, [(_patterns(pair),) for pair in pairwise(blocks)])
        if not compared:
            return []
        counts = [noisy.counts.reshape(2, 2).T for noisy in compared]  # the first column is bit 0
        names = [group[0] for group in groups]
        return heaviest(join_neighbours(blocks, names, counts, math.sqrt(compared[0].variance)))

    def _find_values(self) -> None:
        """Locate the rows of wide columns in public cells, then on lattices and in single values."""
        columns = [Node(leaves=ColumnLeaves.of(own, part, own.initial_partition())) for part, own in self._columns]
        self.nodes += columns
        lists = [node for node in columns if node.listed > plan.NARROW]
        unlisted = [node for node in columns if node.listed <= plan.NARROW]
        wide = [node for node in unlisted if node.leaves.size > (plan.NARROW if node.ordered else plan.LISTED)]
        wide = self._placed(wide, plan.CELLS, plan.COPIES[plan.CELLS])
        looked, runs = self._count_cells(wide)
        numbers = [(node, noisy) for node, noisy in zip(wide, looked, strict=True) if node.leaves.domain.divisible]
        rounded, by_hour = self._count_round([node.leaves for node, _ in numbers])
        cut = [_full(node.leaves, noisy) for node, noisy in numbers]
        parts = self._parts(plan.VALUES, numbers, cut)
        seen = [[each] for each in zip(cut, parts, strict=True)]
        for (node, noisy), on, at, own in zip(numbers, rounded, by_hour, seen, strict=True):
            node.locate(own, noisy, runs.get(node.leaves.part), on, at, self._told_hours(node.leaves))
        # Leaves in which some value clearly repeats are cut once more.
        cut = [_repeated(node, own[0][1]) for (node, _), own in zip(numbers, seen, strict=True)]
        parts = self._parts(plan.REPEATED, numbers, cut)
        for (node, noisy), on, at, own, again, more in zip(numbers, rounded, by_hour, seen, cut, parts, strict=True):
            if len(again.starts):
                told = self._told_hours(node.leaves)
                node.locate([*own, (again, more)], noisy, runs.get(node.leaves.part), on, at, told)
        for node, noisy in zip(wide, looked, strict=True):
            if not node.leaves.domain.divisible:
                total = max(float(noisy.counts.sum()), 1.0)
                node.leaves.mass = posterior_counts(noisy.counts, noisy.variances, total=total)
        for node in columns:
            if node.leaves.domain.divisible and node.posterior is None:  # narrow: counted value by value
                node.posterior = make_posterior(node.leaves.domain, node.leaves.starts)
        codes = self._count_codes(self._placed(lists, plan.CODES, plan.CODE_LEVELS))
        # Each table's counts add up to all rows; the median of the sums is a rough estimate until columns are counted.
        sums = [noisy.counts.sum() for noisy in (*looked, *codes)]
        self._seen = float(np.median(sums)) if sums else 1.0

    def _count_cells(self, wide: Sequence[Node]) -> tuple[list[NoisyCounts], dict[int, NoisyCounts]]:
        """Count wide columns in public cells; numbers, by place, in runs of neighbouring cells too."""
        numbers = [node for node in wide if node.leaves.domain.divisible and node.ordered]
        axes = [node.leaves.axis(np.arange(node.leaves.size)) for node in wide]
        axes += [node.leaves.axis(node.runs()) for node in numbers]
        found = self._released(plan.CELLS, [(axis,) for axis in axes])
        runs = dict(zip((node.leaves.part for node in numbers), found[len(wide) :], strict=bool(found)))
        return found[: len(wide)], runs

    def _count_round(self, numbers: Sequence[ColumnLeaves]) -> tuple[list[NoisyCounts | None], ...]:
        """Count numbers on their lattices, and moments by hour; None where that is not counted."""
        if plan.ROUND not in self._events:
            return [None] * len(numbers), [None] * len(numbers)
        counted = [place for place, leaves in enumerate(numbers) if not self._is_given(leaves.part)]
        places = max(0, self._places(plan.ROUND) - len(counted)) * self._settings.times_of_day
        timed = [place for place in counted if numbers[place].domain.hours()][:places]
        wanted = [(_lattices(leaves),) for leaves in numbers] + [(hours_axis(numbers[place]),) for place in timed]
        found = self._released(plan.ROUND, wanted)
        by_hour = dict(zip(timed, found[len(numbers) :], strict=True))
        return [*found[: len(numbers)]], [by_hour.get(place) for place in range(len(numbers))]

    def _is_given(self, part: int) -> bool:
        """Return whether a column is known before, and not counted."""
        return False

    def _told_hours(self, leaves: ColumnLeaves) -> Floats | None:
        """Return the hours ``(H,)`` that an earlier stage tells of a column; None: none does."""
        return None

    def _count_codes(self, lists: Sequence[Node]) -> list[NoisyCounts]:
        """Count the codes of long lists, and their smallest public groups."""
        axes = [
            node.leaves.axis(groups)
            for node in lists
            for groups in (np.arange(node.leaves.size), node.smallest_groups())
        ]
        counted = self._released(plan.CODES, [(axis,) for axis in axes])
        for place, node in enumerate(lists):
            node.locate_codes(*counted[plan.CODE_LEVELS * place : plan.CODE_LEVELS * (place + 1)])
        return counted

    def _count_target(self) -> None:
        """Count the target's values."""
        name = plan.counted_target(self.encoder.schema, self._settings.within or "")
        self._own_part = self.encoder.columns.index(name) if plan.TARGET in self._events else -1
        wanted = [(_each_value(self.encoder.domains[self._own_part], self._own_part),)] if self._own_part >= 0 else []
        self._own_counts = self._released(plan.TARGET, wanted)

    def _know_target(self, totals: Floats, precision: float) -> None:
        """Estimate the target's rows from other tables' sums, its own count, and shares that are known."""
        for own in self._own_counts:
            totals, precision = totals + own.counts / own.variance, precision + 1 / own.variance
        column = self.encoder.schema.columns[self._settings.within or ""]
        if column.fact("shares") is not None:
            shares = shares_of(column, len(totals))
            self.target_rows, self.target_precision = np.maximum(self.rows * shares, _LEAST_ROWS), 1.0
            return
        counts, variances = totals / precision, np.full(len(totals), 1 / precision)
        gain = self._rows_variance / (self._rows_variance + variances.sum())
        total = max(self.rows + gain * (float(counts.sum()) - self.rows), _LEAST_ROWS)  # all rows, from both
        self.target_rows = np.maximum(posterior_counts(counts, variances, total=total), _LEAST_ROWS)
        first = len(counts) - (0 if self.target is None else self.target.nullable)
        if self.target is not None and is_noise(self.target, counts[first:], variances[first:]):
            self.target_rows[first] = _NO_ROWS
        self.target_precision = precision

    def _count_columns(self) -> None:
        """Count each column in groups of its leaves, and estimate the number of rows."""
        columns = self.nodes
        noise = self._mean_noise(plan.COLUMNS)
        pair_noise = self._mean_noise(plan.PAIRS)
        if self.target is not None and self.pairs_within:
            pair_noise *= math.sqrt(self.target.size)  # a cell of two columns is a sum over the target's values
        # As many groups as possible with so many deviations of noise in each, if all groups had equally many rows.
        most = int(
            np.clip(self._seen / (plan.SEEN_ALONE * noise), _FEWEST, max(_MOST_OWN, self._most_groups(self._seen)))
        )
        for node in columns:
            node.join(most=most, noise=noise, pair_noise=pair_noise)
        focus = [self._weight(node) for node in columns]
        counted = self._released(plan.COLUMNS, [(node.axis(node.own),) for node in columns], focus)
        for node, noisy in zip(columns, counted, strict=True):
            node.counts, node.variance, node.each = noisy.counts, noisy.variance, noisy.each
            for own in self._own_counts if node.leaves.part == self._own_part and node.patterns is None else ():
                gain = noisy.variance / (noisy.variance + own.variance)
                node.each = None
                node.counts, node.variance = noisy.counts + gain * (own.counts - noisy.counts), gain * own.variance
        # Each node's counts add up to all rows, with the noise of all its cells: the sums are weighted by precision.
        weights = np.array([1 / (len(node.counts) * node.variance) for node in self.nodes])
        totals = np.array([node.counts.sum() for node in self.nodes])
        self.rows, self._rows_variance = max(1.0, float((weights * totals).sum() / weights.sum())), 1 / weights.sum()
        most = self._most_groups(self.rows)
        paired = int(np.clip(self.rows / (plan.SEEN * noise), min(plan.FEWEST_PAIRED, most), most))
        for node in self.nodes:
            node.take_counts(self.rows, most=paired, pair_noise=pair_noise)
        self._keep_patterns(paired, pair_noise)

    def _count_by_target(self) -> None:
        """Count each node's groups within the target, and use the margins for the nodes' own counts."""
        if self.target is None or self.pairs_within:
            return
        within = _each_value(self.target, self.target_part)
        wanted = [(node.axis(node.coarse), within) for node in self.nodes]
        self.by_target = self._released(plan.BY_TARGET, wanted, [self._weight(node) for node in self.nodes])
        totals, precision = np.zeros(self.target.size), 0.0
        for noisy in self.by_target:
            totals += noisy.counts.sum(0) / (len(noisy.counts) * noisy.variance)
            precision += 1 / (len(noisy.counts) * noisy.variance)
        self._know_target(totals, precision)
        for node, noisy in zip(self.nodes, self.by_target, strict=True):
            node.take_margin(noisy.counts.sum(1), noisy.counts.shape[1] * noisy.variance)

    def _score_pairs(self) -> None:
        """Score each pair by its total distance from independence, less the distance expected by chance."""
        count = len(self.nodes)
        self.scores = np.zeros((count, count))
        event = self._events.get(plan.SCORES)
        if event is None:
            return
        self.scores -= math.inf
        axes = [node.axis(node.coarse) for node in self.nodes]
        shares = [
            project_to_simplex(node.single, node.single_variance, total=self.rows) / self.rows for node in self.nodes
        ]
        self.scored_shares = shares
        # If not all pairs can be scored, pairs in focus come first, then columns that are near one another.
        both = sorted(self._unknown_pairs(), key=lambda pair: (not self._asked(pair), self._apart(pair)))
        both = both[: event.tables]
        wanted: list[Table] = [(axes[one], axes[other]) for one, other in both]
        wanted += [_nothing()] * (event.tables - len(both))
        expected = ExpectedTables(shares=shares, rows=self.rows, pairs=both, size=event.tables)
        noisy = self._tables.scored(self._numbers[plan.SCORES], wanted, expected)[: len(both)]
        scores, self.score_noise = noisy - np.array(self._by_chance(both, shares)), event.scale
        if self._public is not None:
            scores, variance = self._public.scores_beside(wanted[: len(both)], scores, event.scale**2, self.rows)
            self.score_noise = math.sqrt(variance)
        self.scored = both
        for (one, other), score in zip(both, scores, strict=True):
            self.scores[one, other] = self.scores[other, one] = score

    def _by_chance(self, both: Sequence[tuple[int, int]], shares: Sequence[Floats]) -> list[float]:
        """Return how far independent columns differ from their product: √(2/π) √(N p q) in a cell of share p q."""
        roots = [float(np.sqrt(own).sum()) for own in shares]
        return [CHANCE * math.sqrt(self.rows) * roots[one] * roots[other] for one, other in both]

    def _count_identities(self) -> None:
        """Count the rows in which candidates hold that public facts or earlier noisy answers propose."""
        if plan.IDENTITIES not in self._events:
            return
        schema, names = self.encoder.schema, [self._name(node) for node in self.nodes]
        places, shares = self._places(plan.IDENTITIES), self.scores / self.rows
        wanted = identities_to_count(schema, self.nodes, names, shares if self.scored else np.zeros((0, 0)), places)
        parts = {name: part for part, name in enumerate(self.encoder.columns)}
        axes: list[Table] = [(own.axis(parts, self.encoder.domains),) for own in wanted]
        counted = self._released(plan.IDENTITIES, axes)
        self.identities = holding_identities([*zip(wanted, counted, strict=True)])

    def _unknown_pairs(self) -> Iterable[tuple[int, int]]:
        """Return the pairs whose tables only records tell."""
        return combinations(range(len(self.nodes)), 2)

    def _apart(self, pair: tuple[int, int]) -> int:
        """Return the distance of two columns in the table; it is 0 from the patterns to each nullable column."""
        one, other = pair
        if self.nodes[one].patterns is None:
            return other - one
        return 0 if self.nodes[other].leaves.domain.nullable else len(self.nodes)

    def _count_pairs(self) -> None:
        """Count the pairs that clearly depend on one another; every node is in at least one if places suffice."""
        places = self._places(plan.PAIRS) // plan.COPIES[plan.PAIRS]
        chosen = self._chosen(places)
        axes = [node.axis(node.coarse) for node in self.nodes]
        within = (_each_value(self.target, self.target_part),) if self.target and self.pairs_within else ()
        wanted = [(axes[one], axes[other], *within) for one, other in chosen]
        counted = self._released(plan.PAIRS, wanted, [self._weight(*self._both(pair)) for pair in chosen])
        counted = [
            own if within else replace(own, counts=own.counts[:, :, None], each=own.variances[:, :, None])
            for own in counted
        ]
        self.pairs = dict(zip(chosen, counted, strict=True))
        classes = counted[0].counts.shape[2] if counted else 1
        totals, precision = np.zeros(classes), 0.0  # rows of each class: the precision-weighted mean over all pairs
        for noisy in counted:
            cells = noisy.counts.shape[0] * noisy.counts.shape[1] * noisy.variance
            totals += noisy.counts.sum((0, 1)) / cells
            precision += 1 / cells
        if within:
            self._know_target(totals, precision)
        self.class_rows = self.target_rows if within else np.array([self.rows])
        for place, node in enumerate(self.nodes):
            self.by_class.append(self._within_classes(place, node, classes))
            node.believe(self.rows)

    def _count_tree(self) -> None:
        """Count the pairs of the maximum spanning tree of the scores, in fine groups."""
        self.edges = self._spanning() if plan.TREE in self._events else []
        most = plan.fine_groups(self.rows / max(self._mean_noise(plan.TREE), _LEAST_NOISE))
        for node in self.nodes:
            node.refine(most)
        axes = [node.axis(node.fine) for node in self.nodes]
        wanted = [(axes[parent], axes[child]) for parent, child in self.edges]
        self.fine = self._released(plan.TREE, wanted, [self._weight(*self._both(edge)) for edge in self.edges])

    def _within_classes(self, place: int, node: Node, classes: int) -> tuple[Floats, Floats]:
        """Return a node's groups by class with their variances, ``(m, V)`` each, and update the node by them.

        The margins of the node's pairs, by class, are reconciled with the node's own counts, which sum over classes;
        each is corrected in proportion to its variance.
        """
        counts, precision = np.zeros((node.size, classes)), 0.0
        for pair, noisy in self.pairs.items():  # the precision-weighted mean of the margins of all its pairs
            if place in pair:
                across = 1 - pair.index(place)
                variance = noisy.counts.shape[across] * noisy.variance
                counts += noisy.counts.sum(across) / variance
                precision += 1 / variance
        if not precision:
            return node.single[:, None].copy(), node.single_variance[:, None].copy()
        counts, variance = counts / precision, 1 / precision
        # A Kalman update: pairs measure each class, the node's own counts measure their sum. All classes share the
        # difference equally, and the gain grows with the pairs' variance.
        gain = (variance / (classes * variance + node.single_variance))[:, None]
        together = counts.sum(1)
        counts += gain * (node.single - together)[:, None]
        node.take_margin(together, classes * variance)
        return counts, np.repeat(variance * (1 - gain), classes, axis=1)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _placed(self, nodes: Sequence[Node], purpose: str, places: int) -> list[Node]:
        """Return the first columns for which a release has places, so many each."""
        return list(nodes[: self._places(purpose) // places])

    def _places(self, purpose: str) -> int:
        event = self._events.get(purpose)
        return event.tables if event else 0

    def _mean_noise(self, purpose: str) -> float:
        """Return the noise's deviation in a table with the mean number of counts; 0 without such a release.

        Public rows are expected to take as much of it as of the last release.
        """
        event, left = self._events.get(purpose), 1.0 if self._public is None else self._public.left
        return event.scale * math.sqrt(left / plan.COPIES.get(purpose, 1)) if event else 0.0

    def _most_groups(self, rows: float) -> int:
        """Return the approximate number of a column's groups in pairs, for a number of rows."""
        classes = self.target.size if self.target is not None and self.pairs_within else 1
        over_noise = rows / max(self._mean_noise(plan.PAIRS) * classes, _LEAST_NOISE)
        return self._settings.groups or plan.groups_for(over_noise)

    def _both(self, pair: tuple[int, int]) -> tuple[Node, Node]:
        return self.nodes[pair[0]], self.nodes[pair[1]]

    def _weight(self, *nodes: Node) -> float:
        """Return the weight of the noise of a table of these nodes, relative to others."""
        return self._focus.weight(self._names(nodes), self._settings.within or "", pairs_within=self.pairs_within)

    def _asked(self, pair: tuple[int, int]) -> bool:
        """Say whether a pair is in focus, and so counted at any score."""
        return self._names(self._both(pair)) in self._focus

    def _names(self, nodes: Iterable[Node]) -> frozenset[str]:
        """Return the columns of nodes; the patterns of missing cells have no name."""
        return frozenset(map(self._name, nodes))

    def _name(self, node: Node) -> str:
        return self.encoder.columns[node.leaves.part] if node.patterns is None else ""

    def _released(
        self, purpose: str, wanted: Sequence[Table], weights: Sequence[float] | None = None
    ) -> list[NoisyCounts]:
        """Make a release of as many tables as were planned.

        Args:
            purpose: The release's purpose in the plan.
            wanted: The tables to count, at most as many as planned. Places left over are spent on repeated counts,
                whose mean is used; without any table, on tables without information.
            weights: Weight of each table's noise; None: equal weights.
        """
        event = self._events.get(purpose)
        if event is None:
            return []
        times = _times([math.prod(axis.size for axis in table) for table in wanted], event.tables, weights)
        repeated = [table for table, often in zip(wanted, times, strict=True) for _ in range(often)]
        # The number of released tables is always the planned one, so that it reveals nothing.
        spare = [_nothing()] * (event.tables - len(repeated))
        counted = iter(self._tables.released(self._numbers[purpose], [*repeated, *spare]))
        found = []
        for axes, often in zip(wanted, times, strict=True):
            own = [next(counted) for _ in range(often)]
            found.append(NoisyCounts(counts=np.mean(own, axis=0), variance=event.scale**2 / often))
            if purpose in _PUBLISHED:
                self.published.append(CountedTable(axes=axes, noisy=found[-1], times=often))
        return found if self._public is None else self._public.beside(wanted, found)

    def _parts(
        self, purpose: str, numbers: Sequence[tuple[Node, NoisyCounts]], cut: Sequence[CutCells]
    ) -> list[NoisyCounts]:
        """Release the parts of cut leaves."""
        return self._released(purpose, [(own.axis(node.leaves),) for (node, _), own in zip(numbers, cut, strict=True)])

    def _chosen(self, places: int) -> list[tuple[int, int]]:
        """Return the pairs to count: those in focus, then the strongest by score."""
        both = list(self._unknown_pairs())
        event = self._events.get(plan.SCORES)
        if event is None:
            return both[:places]
        both = sorted((pair for pair in both if self.scores[pair] > -math.inf), key=lambda pair: -self.scores[pair])
        # The threshold in deviations allows at most _FALSE_A_NODE false pairs a node (Bonferroni).
        chance = min(ndtr(-_CLEAR - plan.few_units(self._settings.seen)), _FALSE_A_NODE * len(self.nodes) / len(both))
        clear = [pair for pair in both if self.scores[pair] > -ndtri(chance) * self.score_noise][:places]
        asked = [pair for pair in both if self._asked(pair)]
        chosen = [*asked, *(pair for pair in clear if pair not in asked)][:places]
        chosen = chosen or both[: min(places, len(self.nodes))]
        # The mixture learns a node's dependence from its pairs alone: each node gets one while places last.
        for place in range(len(self.nodes)):
            if len(chosen) < places and not any(place in pair for pair in chosen):
                chosen.append(next(pair for pair in both if place in pair))
        return chosen

    def _spanning(self) -> list[tuple[int, int]]:
        scores = self.scores.copy()
        for pair in combinations(range(len(self.nodes)), 2) if self._focus.asked else ():
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
class ExpectedTables(Sequence[Ints]):
    """Expected tables of pairs under independence, computed on access: a wide table has too many to hold.

    Attributes:
        shares: For each node the shares of its groups.
        rows: Number of rows.
        pairs: Pairs of nodes; places after them are tables without information.
        size: Number of tables, including those.
    """

    shares: Sequence[Floats]
    rows: float
    pairs: Sequence[tuple[int, int]]
    size: int

    def __len__(self) -> int:
        """Return the number of tables."""
        return self.size

    @overload
    def __getitem__(self, at: int) -> Ints: ...
    @overload
    def __getitem__(self, at: slice) -> list[Ints]: ...
    def __getitem__(self, at: int | slice) -> Ints | list[Ints]:
        """Return one table ``(m, m')`` int64, or a list of them."""
        if isinstance(at, slice):
            return [self[place] for place in range(self.size)[at]]
        if range(self.size)[at] >= len(self.pairs):
            return np.zeros(1, dtype=np.int64)
        one, other = self.pairs[at]
        return np.rint(self.rows * np.outer(self.shares[one], self.shares[other])).astype(np.int64)


def _times(cells: Sequence[int], places: int, weights: Sequence[float] | None = None) -> list[int]:
    """Return how often to count each table: once, then greedily where it reduces the total noise most."""
    times = np.ones(len(cells))
    size = np.array(cells, dtype=np.float64) * (1.0 if weights is None else np.array(weights))
    for _ in range(places - len(cells) if cells else 0):
        times[int(np.argmax(size * (1 / np.sqrt(times) - 1 / np.sqrt(times + 1))))] += 1
    return [int(often) for often in times]


def _patterns(blocks: Sequence[MissingBlock]) -> Patterns:
    cells = np.arange(2 ** len(blocks))
    parts, marks = tuple(block.parts[0] for block in blocks), tuple(block.mark for block in blocks)
    return Patterns(parts=parts, marks=marks, cells=cells, size=len(cells))


def _each_value(domain: IntegerDomain, part: int) -> Intervals:
    values = np.arange(domain.first, domain.last + 1 + domain.nullable)
    return Intervals(part=part, starts=values.astype(np.float64), cells=np.arange(len(values)), size=len(values))


def _lattices(leaves: ColumnLeaves) -> Lattices:
    domain = leaves.domain
    return Lattices(part=leaves.part, steps=domain.nested_steps(), mark=domain.last + 1.0 if domain.nullable else None)


def hours_axis(leaves: ColumnLeaves) -> PeriodParts:
    """Return the axis that counts a column by hour."""
    domain = leaves.domain
    mark = domain.last + 1.0 if domain.nullable else None
    return PeriodParts(part=leaves.part, period=domain.lattices()[0], parts=domain.hours(), mark=mark)


def _full(leaves: ColumnLeaves, noisy: NoisyCounts) -> CutCells:
    return CutCells.of_full(leaves, noisy.counts[: len(leaves.starts)], math.sqrt(noisy.variance))


def _repeated(node: Node, parts: NoisyCounts) -> CutCells:
    found = node.posterior.standing_out(math.sqrt(parts.variance)) if node.posterior else np.zeros(0, dtype=bool)
    return CutCells.evenly(node.leaves, found)


def _nothing() -> Table:
    """Return a table of one cell, in which every record counts."""
    return (Intervals(part=0, starts=np.zeros(1), cells=np.zeros(1, dtype=np.int64), size=1),)
