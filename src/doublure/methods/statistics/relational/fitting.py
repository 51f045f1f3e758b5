"""Training of ``statistics`` on related tables: each stage's releases and fit, one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from doublure.access import Access
from doublure.encode.relational import RelationalEncoder
from doublure.encode.wholes import Whole
from doublure.methods.statistics.relational.stage_tables import StageTables
from doublure.methods.statistics.relational.stages import Stage, StageValues, purpose_of, stages_of
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables.fitting import finished, fitted_mixture
from doublure.methods.statistics.tables.leaves import Floats, Leaves
from doublure.methods.statistics.tables.nodes import Node
from doublure.networks.given_columns import drawn_given
from doublure.networks.related_layout import Layout
from doublure.networks.related_units import RelatedGenerator
from doublure.networks.tree import TreeGenerator
from doublure.private.executed import steps_of
from doublure.training.job import Job
from doublure.training.noisy_tables import NoisyTable

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

_SIMULATED = 100_000
"""So many units are drawn, of which later stages know how what is given goes together."""
_FEWEST = {False: 1.0, True: 2.0}
"""How many rows a unit has to have of a child table, to show its first and its next one."""


def initialised(encoder: Encoder) -> RelatedGenerator:
    """Return a generator without tables."""
    return RelatedGenerator(_related(encoder).layout, encoder.condition_width)


def fitted(job: Job, settings: RelationalStatisticsSettings) -> RelatedGenerator:
    """Release the tables of a job's units and fit a generator to them.

    Args:
        job: The run.
        settings: With defaults resolved.
    """
    encoder, generator = _related(job.encoder), initialised(job.encoder)
    layout, rng = encoder.layout, np.random.default_rng(job.seed)
    published: list[NoisyTable] = []
    nodes: dict[tuple[int, bool], list[Node]] = {}
    units, before = np.zeros((0, 0)), 0
    for number, stage in enumerate(stages_of(encoder.schema)):
        prefix = purpose_of(stage, "")
        accesses = tuple(access for access in job.accesses if access.purpose.startswith(prefix))
        own = _staged(job, encoder, stage, accesses, published).stage(f"stage{number}", after=before)
        given: list[Node] = []
        drawn = None
        if stage.child >= 0:
            given = list(nodes[-1, False])
            drawn = _drawn(units, layout, stage, rng)
        if stage.following:
            last = Whole(column="", first=0, last=1, nullable=False, ordered=False)
            given += [Node(leaves=Leaves.of(last, 0, np.arange(2)), own=np.arange(2)), *nodes[stage.child, False]]
        tables = StageTables(own, settings, prefix, given, drawn)
        _take(_tree_of(generator, stage), finished(own, fitted_mixture(own, settings, tables)))
        some = [node for node in tables.nodes[tables.known :] if node.patterns is None]
        nodes[stage.child, stage.following] = sorted(some, key=lambda node: node.leaves.part)
        if stage.child < 0:
            units = generator.units.drawn(_SIMULATED, rng)
        elif not stage.following:
            units = _with_first_rows(units, layout, stage, generator, rng)
        before += sum(steps_of(access) for access in accesses)
    job.hand_out(tuple(published))
    return generator


def _drawn(units: Floats, layout: Layout, stage: Stage, rng: np.random.Generator) -> Floats:
    """Return ``(S, parts)`` rows of a stage, as earlier stages draw what is given in it.

    The row before the next one is taken for a first one of those units that have two; where it stands is drawn evenly,
    as it is for real units.

    Args:
        units: ``(S, …)`` as :func:`_with_first_rows` returns them.
        layout: Where the numbers of a unit stand.
        stage: Which.
        rng: Public randomness.
    """
    head, child = len(layout.children) + layout.root, layout.children[stage.child]
    many = units[:, stage.child]
    some = units[many >= _FEWEST[stage.following]]
    some = some if len(some) else units[:1]
    rows = np.zeros((len(some), len(stage.schema.columns)))
    rows[:, :head] = some[:, :head]
    if stage.following:
        rows[:, head] = rng.random(len(some)) * (some[:, stage.child] - 1) < 1
        rows[:, head + 1 : head + 1 + child.parts] = some[:, child.first]
    return rows


def _with_first_rows(
    units: Floats, layout: Layout, stage: Stage, generator: RelatedGenerator, rng: np.random.Generator
) -> Floats:
    """Return units as they are counted, with a child table's first rows drawn."""
    head, child = len(layout.children) + layout.root, layout.children[stage.child]
    found = np.zeros((len(units), layout.counted_width))
    found[:, : units.shape[1]] = units
    some = np.flatnonzero(found[:, stage.child] >= 1)
    rows = np.zeros((len(some), head + child.parts))
    rows[:, :head] = found[some, :head]
    found[some, child.first] = drawn_given(_tree_of(generator, stage), rows, head, rng)[:, head:]
    return found


def _staged(
    job: Job, encoder: RelationalEncoder, stage: Stage, accesses: tuple[Access, ...], published: list[NoisyTable]
) -> Job:
    """Return the job as a stage's table asks it."""
    values, records = StageValues(encoder, stage), job.records
    part, least = (stage.child, _FEWEST[stage.following]) if stage.child >= 0 else (0, 0.0)
    return replace(
        job,
        encoder=values,
        records=records.having(part, least, values.parts),
        accesses=accesses,
        hand_out=published.extend,
    )


def _tree_of(generator: RelatedGenerator, stage: Stage) -> TreeGenerator:
    if stage.child < 0:
        return generator.units
    found = (generator.following if stage.following else generator.first)[stage.child]
    if not isinstance(found, TreeGenerator):
        raise TypeError("a stage has a tree")
    return found


def _take(tree: TreeGenerator, made: TreeGenerator) -> None:
    tree.take(made.nodes, made.weights, made.bits, made.about, made.last)


def _related(encoder: Encoder) -> RelationalEncoder:
    if not isinstance(encoder, RelationalEncoder):
        raise TypeError("statistics counts units of related tables")
    return encoder
