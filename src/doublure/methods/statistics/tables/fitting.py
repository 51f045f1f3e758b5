"""Training of ``statistics`` on tables: the releases, a mixture fitted to them, the tree within it, the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables.borrowing import shrink_groups
from doublure.methods.statistics.tables.leaves import Floats
from doublure.methods.statistics.tables.mixture_fit import NoisyMarginals, fit_mixture, squared_errors
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.methods.statistics.tables.pair_errors import pair_errors
from doublure.methods.statistics.tables.published import name_tables
from doublure.methods.statistics.tables.score_errors import ScoredPairs
from doublure.methods.statistics.tables.target_fit import fit_target
from doublure.methods.statistics.tables.tree_fit import fit_edge
from doublure.methods.statistics.tables.work import rows_drawn
from doublure.networks.tree import TreeGenerator
from doublure.networks.tree_draw import TreeDraw, rake
from doublure.networks.tree_identities import KeptIdentities
from doublure.networks.tree_tables import LastColumn, Tree, TreeNode
from doublure.training.job import Job

_LEAST = 1e-12
_RARE = 1e-4
_FEWEST_ROWS = 1.0
_MOST_MISSING = 1 - 1e-6
_RULED_OUT = -40.0
"""Logit of a value of the target that a pattern of missing cells rules out: not one row in 10^17 has it."""


@dataclass(frozen=True, kw_only=True)
class TableFit:
    """A mixture fitted to noisy tables, before columns are drawn along the tree.

    Attributes:
        tables: The releases.
        sizes: Number of groups of each node, then number of values of the target if it is not a node.
        probabilities: ``(K, W)`` by component: probabilities of all nodes' groups side by side, then of the target's
            values.
        weights: ``(K,)`` probability of each component.
        moments: The noisy tables of each class.
    """

    tables: NoisyTables
    sizes: Sequence[int]
    probabilities: Floats
    weights: Floats
    moments: Sequence[NoisyMarginals]

    def distance(self, probabilities: Floats) -> tuple[float, Floats]:
        """Return a mixture's squared error on the tables, in units of their noise's variance, and its gradient.

        Args:
            probabilities: ``(K, W)`` float32, as :attr:`probabilities`.
        """
        total, gradient = 0.0, np.zeros_like(probabilities)
        parts = np.split(np.arange(len(probabilities)), len(self.moments))
        for moments, rows in zip(self.moments, parts, strict=True):
            width = len(moments.single)
            single, pairs, moved = squared_errors(probabilities[rows, :width], moments)
            total += pairs + float(single.sum()) / moments.cells
            gradient[rows, :width] = moved
        return total, gradient


def release_and_fit(job: Job, settings: TableStatisticsSettings, tables: NoisyTables | None = None) -> TableFit:
    """Release the tables of a job's records and fit a mixture to them.

    Args:
        job: The run, or a stage of it.
        settings: With defaults resolved.
        tables: Makes the releases; None: those of a single table.
    """
    tables = tables or NoisyTables(job, settings)
    tables.count()
    patterns = tables.nodes[0].patterns if tables.nodes else None
    job.hand_out(name_tables(tables.encoder, patterns, tables.blocks, tables.published))
    rng = np.random.default_rng(job.seed)
    classes = len(tables.class_rows)
    moments = [class_marginals(tables, own, each) for own, each in enumerate(rng.spawn(classes))]
    joined = tables.pairs or tables.edges or tables.by_target
    # A class starts from the fit of the largest one, and leaves it as far as its own tables ask for.
    order = np.argsort(-tables.class_rows, kind="stable").tolist()
    fits = [(own, part) for own in order for part in range(len(settings.fits)) if joined]
    total = len(fits) * settings.fit_steps
    job.progress.stage("fit the generator", total)
    parts: dict[tuple[int, int], Floats] = {}
    for number, (own, part) in enumerate(fits):

        def at(step: int, before: int = number * settings.fit_steps) -> None:
            job.check_stop()
            job.progress.at(before + step)

        base = None if own == order[0] else parts[order[0], part][:, : len(moments[own].single)]
        fitted = fit_mixture(
            moments[own],
            components=settings.fits[part],
            steps=settings.fit_steps,
            prior=settings.prior,
            rng=rng,
            base=base,
            at=at,
        )
        job.log({"class": own, "fit_steps": fitted.steps, "misfit": round(fitted.misfit, 4)})
        parts[own, part] = _with_class(fitted.probabilities, own, tables)
    job.progress.at(total)
    found = [parts[each] for each in sorted(parts)] or [own.single[None] for own in moments]
    if tables.pairs_within and tables.nodes:
        for (own, _), shares in zip(sorted(parts), found, strict=False):
            _rule_out(shares[:, : tables.nodes[0].size], tables.target_excluded()[:, own])
    probabilities = np.maximum(np.concatenate(found), _LEAST)
    sizes = [node.size for node in tables.nodes]
    sizes += [probabilities.shape[1] - sum(sizes)] if probabilities.shape[1] > sum(sizes) else []
    components = len(probabilities) // len(tables.class_rows)
    weights = np.repeat(tables.class_rows / tables.class_rows.sum(), components) / components
    return TableFit(tables=tables, sizes=sizes, probabilities=probabilities, weights=weights, moments=moments)


def _with_class(probabilities: Floats, own: int, tables: NoisyTables) -> Floats:
    """Return the probabilities, followed by the target's if pairs were counted within it."""
    if not tables.pairs_within:
        return probabilities
    target = np.zeros((len(probabilities), len(tables.class_rows)), dtype=probabilities.dtype)
    target[:, own] = 1.0
    return np.concatenate([probabilities, target], axis=1)


def _rule_out(shares: Floats, excluded: npt.NDArray[np.bool_]) -> None:
    """Take groups ``(m,)`` that a class rules out from the shares ``(K, m)`` of its components, in place."""
    if excluded.any() and not excluded.all():
        left = np.maximum(shares[:, ~excluded].sum(1, keepdims=True), _LEAST)
        shares[:, ~excluded] /= left
        shares[:, excluded] = 0.0


def class_marginals(tables: NoisyTables, own: int, rng: np.random.Generator) -> NoisyMarginals:
    """Return the noisy tables of a class as shares of its rows: each node's groups, and every counted pair.

    Args:
        tables: The releases.
        own: The class; 0 if pairs are not counted within the target, which is then a node more.
        rng: Public randomness for the comparison with scores.
    """
    nodes, rows = tables.nodes, float(tables.class_rows[own])
    by_class = tables.by_class
    if tables.pairs_within:
        by_class = [shrink_groups(*each, tables.class_rows) for each in by_class]
    known = [
        (node.likely_counts(counts[:, own], variances[:, own], total=rows), variances[:, own])
        for node, (counts, variances) in zip(nodes, by_class, strict=False)
    ]
    if tables.by_target:
        totals = tables.target_rows
        known.append((totals / totals.sum() * rows, np.full(len(totals), 1 / tables.target_precision)))
    sizes = [len(counts) for counts, _ in known]
    doubles: dict[tuple[int, int], tuple[Floats, Floats]] = {}

    def add(pair: tuple[int, int], counts: Floats, variance: Floats) -> None:
        # Several independent counts of a pair: their mean, weighted by precision.
        if pair[::-1] in doubles:
            pair, counts, variance = pair[::-1], counts.T, variance.T
        table, before = doubles.get(pair, (0.0, 0.0))
        more = rows**2 / variance
        doubles[pair] = (table * before + counts / rows * more) / (before + more), before + more

    for pair, noisy in tables.pairs.items():
        add(pair, noisy.counts[:, :, own], noisy.variances[:, :, own])
    for (parent, child), noisy in zip(tables.edges, tables.fine, strict=True) if not tables.pairs_within else ():
        up, down = nodes[parent].coarse_of_fine, nodes[child].coarse_of_fine
        grouped = np.zeros((sizes[parent], sizes[child]))
        np.add.at(grouped, (up[:, None], down[None]), noisy.counts)
        # A coarse cell's variance is that of the sum of its fine cells.
        variances = np.outer(np.bincount(up), np.bincount(down)) * noisy.variance
        if noisy.each is not None:
            variances = np.zeros(grouped.shape)
            np.add.at(variances, (up[:, None], down[None]), noisy.each)
        add((parent, child), grouped, variances)
    for place, noisy in enumerate(tables.by_target):
        add((place, len(nodes)), noisy.counts, noisy.variances)
    alike = np.zeros(sum(sizes))  # the target's values have no neighbours
    for node, start in zip(nodes, np.cumsum(sizes) - sizes, strict=False):
        alike[start : start + node.size] = node.neighbours
    return NoisyMarginals(
        sizes=sizes,
        single=(np.concatenate([counts for counts, _ in known]) / rows).astype(np.float32),
        single_precision=(rows**2 / np.concatenate([variance for _, variance in known])).astype(np.float32),
        pairs=pair_errors(sizes, doubles),
        alike=alike[:-1].astype(np.float32),
        scored=_uncounted_scores(tables, rng),
    )


def _uncounted_scores(tables: NoisyTables, rng: np.random.Generator) -> ScoredPairs | None:
    """Return the scores of pairs that are not counted; None where there are none, or pairs are those of classes."""
    counted = {frozenset(pair) for pair in (*tables.pairs, *tables.edges)}
    left = [pair for pair in tables.scored if frozenset(pair) not in counted]
    if tables.pairs_within or not left:
        return None
    scores = np.full(tables.scores.shape, np.nan)
    for one, other in left:
        scores[one, other] = scores[other, one] = tables.scores[one, other]
    variance = tables.score_noise**2
    return ScoredPairs(tables.scored_shares, scores, variance=variance, rows=tables.rows, rng=rng)


def build_generator(job: Job, fit: TableFit) -> TreeGenerator:
    """Return the generator that draws along the tree within a mixture's components, and the target last."""
    tables = fit.tables
    nodes = tables.nodes
    encoder = job.encoder
    weights = fit.weights / fit.weights.sum()
    cuts = np.cumsum([node.size for node in nodes])
    *shares, by_component = np.split(fit.probabilities.astype(np.float64), cuts, axis=1)  # (K, 0) without a target
    shares = [_with_states(*each, weights) for each in zip(nodes, shares, strict=True)]
    order = [0, *(child for _, child in tables.edges)] if tables.edges else list(range(len(nodes)))
    turn = {place: number for number, place in enumerate(order)}
    drawn: list[TreeNode] = []
    for place in order:
        node = nodes[place]
        edge = next((number for number, (_, child) in enumerate(tables.edges) if child == place), None)
        (ties, leaning, inner), parent = (np.zeros((0, 0)),) * 3, -1
        if edge is not None:
            above = tables.edges[edge][0]
            parent = turn[above]
            both, seen = (shares[above], shares[place]), _seen(tables, edge)
            may = tables.may_meet(above, place)
            ties, leaning, inner = fit_edge(nodes[above], node, seen, both, weights, may, within=tables.pairs_within)
        leaves = node.leaves
        missing = leaves.domain.nullable > 0 and node.patterns is None
        drawn.append(
            TreeNode(
                part=leaves.part,
                parent=parent,
                starts=leaves.all_starts,
                widths=leaves.width.astype(np.int64),
                mass=leaves.mass,
                fine=node.fine,
                coarse=node.coarse_of_fine,
                shares=shares[place],
                rake=np.ones(node.size),
                ties=ties,
                leaning=leaning,
                inner=inner,
                missing=int(node.coarse[len(leaves.starts)]) if missing else -1,
                steps=leaves.domain.nested_steps(),
                pulls=leaves.pulls,
                hours=leaves.hours,
            )
        )
    bits, about = np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    if nodes[0].patterns is not None:
        together = nodes[0].patterns
        of_part = {node.leaves.part: turn[place] for place, node in enumerate(nodes) if node.patterns is None}
        shown = [
            bit for bit in range(len(together.parts)) if together.bits[:, bit].any()
        ]  # others: by their own counts
        members = [(bit, of_part[own]) for bit in shown for own in tables.blocks[together.parts[bit]] if own in of_part]
        bits, about = together.bits[:, [bit for bit, _ in members]], np.array([place for _, place in members])
    tree = Tree(nodes=tuple(drawn), weights=weights, bits=bits, about=about)
    rng = np.random.default_rng(job.seed)
    wanted = [_wanted(nodes[place], weights @ shares[place]) for place in order]
    tree, rows = rake(tree, wanted, rows_drawn(len(nodes)), rng)
    generator = TreeGenerator(encoder.width, list(encoder.condition_sizes.values()))
    generator.take(tree)
    if tables.target is not None:
        generator.take(replace(tree, last=_last_column(tables, rows, order, by_component)))
    if tables.identities:
        drawn_anew = generator(rng.standard_normal((rows_drawn(len(nodes)), 1)))
        generator.take(replace(generator.tree, identities=_kept_identities(tables, drawn_anew, rng)))
        job.log({"found by noise": [*map(str, tables.identities)]})
    return generator


def _kept_identities(tables: NoisyTables, drawn: Floats, rng: np.random.Generator) -> KeptIdentities:
    """Return the identities that rows keep, each with the column computed that then agrees best with its own counts.

    Args:
        tables: The releases.
        drawn: ``(N, parts)`` rows of the fit without identities.
        rng: Public randomness.
    """
    encoder = tables.encoder
    part_of = {name: part for part, name in enumerate(encoder.columns)}
    node_of = {node.leaves.part: node for node in tables.nodes if node.patterns is None}
    ends = np.array([(own.first, own.last) for own in encoder.domains], dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    found = KeptIdentities(weights=none.reshape(0, len(ends)), slack=none, computed=none, ends=ends)
    settled = set[int]()
    for own in tables.identities:
        weights = np.zeros((1, len(ends)), dtype=np.int64)
        parts = [part_of[name] for name in own.names]
        weights[0, parts] = own.weights
        ways = []
        for part in (
            part for part in parts if part not in settled and (part == parts[0] or abs(weights[0, part]) == 1)
        ):
            way = KeptIdentities(
                weights=np.concatenate([found.weights, weights]),
                slack=np.append(found.slack, own.slack),
                computed=np.append(found.computed, part),
                ends=ends,
            )
            rows = way.keep(drawn, {}, rng)
            ways.append((sum(_distance(node_of[each], rows) for each in parts), part, way))
        found = min(ways, key=lambda each: each[:2])[2]
        settled |= {*parts}
    return found


def _distance(node: Node, rows: Floats) -> float:
    """Return the total variation of a column's groups in drawn rows from what its counts say."""
    size = int(node.own.max()) + 1
    drawn = np.bincount(node.axis(node.own).of(rows), minlength=size) / len(rows)
    counted = np.bincount(node.own, np.maximum(node.leaves.mass, 0.0), size)
    return float(np.abs(drawn - counted / max(counted.sum(), _LEAST)).sum()) / 2


def _with_states(node: Node, shares: Floats, weights: Floats) -> Floats:
    """Return a node's shares ``(K, m)`` in each component, with its kinds of missing cells as often as counted.

    A mixture takes rare kinds for noise. A component keeps how much more of them it has than others.
    """
    shares = shares / shares.sum(1, keepdims=True)
    if not node.states:
        return shares
    body, states = np.split(shares, [node.size - node.states], axis=1)
    wanted = _believed_shares(node)[-node.states :]
    states = states * (wanted / np.maximum(weights @ states, _LEAST))
    states *= np.minimum(1.0, _MOST_MISSING / np.maximum(states.sum(1, keepdims=True), _LEAST))
    return np.concatenate([body * (1 - states.sum(1, keepdims=True)) / body.sum(1, keepdims=True), states], axis=1)


def _wanted(node: Node, fitted: Floats) -> Floats:
    """Return the shares of a node's groups in drawn rows.

    A column's own counts and the mixture estimate the same shares, each with errors of its own: their mean has less.
    """
    own = _believed_shares(node)
    both: Floats = (own + fitted) / 2
    both[node.size - node.states :] = own[node.size - node.states :]
    both /= both.sum()
    return both


def _believed_shares(node: Node) -> Floats:
    return node.believed / max(float(node.believed.sum()), _FEWEST_ROWS)


def _seen(tables: NoisyTables, edge: int) -> NoisyCounts:
    """Return an edge's table in fine groups, combined with the count of its pair in coarse groups, if any.

    The two are independent: the best unbiased estimate of a coarse cell is their mean, weighted by precision, and its
    difference from the fine cells' sum is shared equally among those (Hay et al. 2010, section 4.2, one level).
    """
    (parent, child), fine = tables.edges[edge], tables.fine[edge]
    pair = tables.pairs.get((parent, child)) or tables.pairs.get((child, parent))
    if pair is None:
        return fine
    counts, times = pair.counts.sum(2), pair.counts.shape[2]
    counts = counts if (parent, child) in tables.pairs else counts.T
    up, down = tables.nodes[parent].coarse_of_fine, tables.nodes[child].coarse_of_fine
    grouped = np.zeros(counts.shape)
    np.add.at(grouped, (up[:, None], down[None]), fine.counts)
    many = np.outer(np.bincount(up, minlength=len(counts)), np.bincount(down, minlength=counts.shape[1]))
    gain = many * fine.variance / (many * fine.variance + times * pair.variance)
    moved = (gain * (counts - grouped) / many)[np.ix_(up, down)]
    left = 1 - (gain / many)[np.ix_(up, down)]
    return NoisyCounts(counts=fine.counts + moved, variance=fine.variance * float(left.mean()))


def _last_column(tables: NoisyTables, rows: TreeDraw, order: list[int], by_component: Floats) -> LastColumn:
    """Return the model of the target: by the component alone if pairs were counted within it, else by all columns.

    It is fitted to the rows by which the tree was raked.
    """
    values = by_component.shape[1]
    sizes = [tables.nodes[place].size for place in order]
    if tables.pairs_within:
        return LastColumn(
            part=tables.target_part,
            bias=np.zeros(values),
            effects=np.zeros((sum(sizes), values)),
            components=np.log(np.maximum(by_component, _LEAST)),
        )
    nodes, by_target = [tables.nodes[place] for place in order], [tables.by_target[place] for place in order]
    totals = tables.target_rows
    odds = np.log(np.maximum(by_component, _RARE) / (totals / totals.sum()))
    ruled_out = np.zeros((sum(sizes), values))  # node 0 comes first in the order
    excluded = tables.target_excluded()
    ruled_out[: len(excluded)] = np.where(excluded, _RULED_OUT, 0.0)
    known = (totals, tables.target_precision)
    bias, effects = fit_target(nodes, by_target, known, rows.coarse, odds[rows.component], ruled_out)
    return LastColumn(part=tables.target_part, bias=bias, effects=effects, components=odds)
