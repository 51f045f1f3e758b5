"""Training of ``statistics`` on related tables: each stage's releases and fit, one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from doublure.access import Access
from doublure.encode.relational import RelationalEncoder
from doublure.methods.statistics.relational.stage_values import StageValues
from doublure.methods.statistics.relational.stages import Stage, purpose_of, stages_of
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables.fitting import finished, fitted_mixture
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.networks.related_units import RelatedGenerator
from doublure.networks.tree import TreeGenerator
from doublure.private.executed import steps_of
from doublure.training.job import Job
from doublure.training.noisy_tables import NoisyTable

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

_FEWEST = {False: 1.0, True: 2.0}
"""How many rows a unit has to have of a child table, to show its first and its next one."""


def initialised(encoder: Encoder) -> RelatedGenerator:
    """Return a generator without tables."""
    return RelatedGenerator(_related(encoder).layout, list(encoder.condition_sizes.values()))


def fitted(job: Job, settings: RelationalStatisticsSettings) -> RelatedGenerator:
    """Release the tables of a job's units and fit a generator to them.

    Args:
        job: The run.
        settings: With defaults resolved.
    """
    encoder, generator = _related(job.encoder), initialised(job.encoder)
    published: list[NoisyTable] = []
    before = 0
    for number, stage in enumerate(stages_of(encoder.schema)):
        prefix = purpose_of(stage, "")
        accesses = tuple(access for access in job.accesses if access.purpose.startswith(prefix))
        own = _staged(job, encoder, stage, accesses, published).stage(f"stage{number}", after=before)
        tables = StageTables(own, settings, prefix, stage.known)
        tree = finished(own, fitted_mixture(own, settings, tables))
        _tree_of(generator, stage).take(tree.tree)
        before += sum(steps_of(access) for access in accesses)
    job.hand_out(tuple(published))
    return generator


class StageTables(NoisyTables):
    """A stage's releases: what is given when rows are drawn stands first in the tree, and hangs on nothing else.

    Args:
        job: The stage.
        settings: Of the method.
        prefix: What its releases' purposes begin with.
        known: How many parts of a row are given; their nodes are the first ones.
    """

    def __init__(self, job: Job, settings: RelationalStatisticsSettings, prefix: str, known: int) -> None:
        super().__init__(job, settings)
        self._known = known
        self._events = {purpose.removeprefix(prefix): event for purpose, event in self._events.items()}
        self._numbers = {purpose.removeprefix(prefix): number for purpose, number in self._numbers.items()}

    def _spanning(self) -> list[tuple[int, int]]:
        """Return the strongest tree in which what is given comes before what is drawn."""
        inside, edges = [0], []
        while len(inside) < len(self.nodes):
            given = len(inside) < self._known
            outside = [n for n in range(len(self.nodes)) if n not in inside and (not given or n < self._known)]
            parent, child = max(
                ((one, other) for one in inside for other in outside), key=lambda pair: float(self.scores[pair])
            )
            edges.append((parent, child))
            inside.append(child)
        return edges


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


def _related(encoder: Encoder) -> RelationalEncoder:
    if not isinstance(encoder, RelationalEncoder):
        raise TypeError("statistics counts units of related tables")
    return encoder
