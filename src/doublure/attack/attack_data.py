"""What there is to attack with: records that the fit has seen, records that it has not, and what was released.

An attack takes from it what its attacker holds, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from doublure.attack.results import Claim
from doublure.data.records import taken
from doublure.encode.columns import Floats
from doublure.errors import DataError
from doublure.measures.divergence import nearest
from doublure.measures.embedding import Points, points_of
from doublure.schema import ResolvedSchema
from doublure.schema.images import ImageSchema
from doublure.support.progress import Progress, SilentProgress

MOST_TARGETS = 10_000
"""The most records of either side that are attacked; of more, a uniform sample of units.

So many others say what an attacker does at one false alarm in a thousand.
"""

MOST_SYNTHETIC = 10_000
FEWEST = 20

Units: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, kw_only=True)
class RealRecords:
    """Real records of one side.

    Attributes:
        content: As the schema's source loads them.
        points: The same as points.
        unit: ``(N,)`` the unit of each.
    """

    content: Any
    points: Points
    unit: Units

    def __len__(self) -> int:
        return len(self.unit)

    def take(self, rows: Units) -> RealRecords:
        """Return some of the records."""
        return RealRecords(content=taken(self.content, rows), points=self.points.take(rows), unit=self.unit[rows])

    def by_unit(self, scores: Floats) -> Floats:
        """Return one score a unit: the mean over its records."""
        place = np.unique(self.unit, return_inverse=True)[1]
        return np.asarray(np.bincount(place, scores) / np.bincount(place), dtype=np.float64)


class WhiteBox(Protocol):
    """What somebody sees who has the training's internals, or the weights of the generator."""

    @property
    def critic(self) -> Callable[[Any], Floats] | None:
        """Records to the critic's scores, high for what it takes for real; None where no critic was kept."""

    @property
    def searchable(self) -> bool:
        """Whether noise that is near makes records that are near; else it only begins a draw, as a seed does."""

    def encoded(self, content: Any) -> tuple[Floats, Any]:
        """Return records ``(N, D)`` as the generator makes them, and what it takes as their conditions."""

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``(n, Z)`` noise as the generator takes it."""

    def generated(self, noise: Floats, conditions: Any) -> Floats:
        """Return ``(N, D)`` what the generator makes of noise ``(N, Z)`` under these conditions."""


class Fitted(Protocol):
    """A synthesizer that was fitted again, for an attack."""

    @property
    def white_box(self) -> WhiteBox:
        """Its internals."""

    def sample(self, n: int, seed: int) -> Any:
        """Return synthetic records."""


Refit: TypeAlias = Callable[[Any, int], Fitted]
"""Records and a seed to a synthesizer that was fitted to them as the plan says."""


@dataclass(frozen=True, kw_only=True)
class AttackData:
    """Everything that attacks may draw on.

    Attributes:
        schema: Every fact known.
        claim: What was claimed.
        fitted: All records that the fit has seen, at most ``MOST_TARGETS``: to train a classifier on real records.
        seen: Targets that the fit has seen: as many of those as ``unseen`` holds.
        unseen: Records of the same kind that it never saw; the attacker is to tell both apart.
        reference: Other records that it never saw, which the attacker holds.
        sample: A number and a seed to synthetic records.
        white_box: Internals, for attacks that look inside.
        refit: Fits again, for attacks that do.
        crafted: Makes records drawn uniformly over what the schema allows, for attacks that plant some.
        seed: Fixes every random choice.
        shadows: How many times attacks fit again.
        progress: Receives progress events.
    """

    schema: ResolvedSchema
    claim: Claim
    fitted: Any
    seen: RealRecords
    unseen: RealRecords
    reference: RealRecords
    sample: Callable[[int, int], Any]
    white_box: WhiteBox | None = None
    refit: Refit | None = None
    crafted: Callable[[int, np.random.Generator], Any] | None = None
    seed: int = 0
    shadows: int = 16
    progress: Progress = field(default_factory=SilentProgress)

    @property
    def labelled_images(self) -> ImageSchema | None:
        """The schema where it is one of images with labels, which classifiers of images learn."""
        return self.schema if isinstance(self.schema, ImageSchema) and self.schema.label is not None else None

    @cached_property
    def released(self) -> Any:
        """The synthetic records that attackers hold: as many as were seen, and at least a thousand."""
        return self.sample(min(MOST_SYNTHETIC, max(1000, len(self.seen))), self.seed)

    @cached_property
    def synthetic(self) -> Points:
        """The same as points."""
        return points_of(self.schema, self.released, "the synthetic records")

    @cached_property
    def to_synthetic(self) -> tuple[Floats, Floats]:
        """How far each target is from the nearest synthetic record: ``(n,)`` of those seen, ``(m,)`` of those not."""
        return self._far_from(self.synthetic)

    @cached_property
    def to_reference(self) -> tuple[Floats, Floats]:
        """How far each target is from the nearest record that the attacker holds, likewise."""
        return self._far_from(self.reference.points)

    def with_targets(self, most: int) -> AttackData:
        """Return the same attack data with at most so many targets on either side, drawn uniformly."""
        rng = self.random(0)
        sides = [side.take(_some(side.unit, np.arange(len(side)), most, rng)) for side in (self.seen, self.unseen)]
        return replace(self, seen=sides[0], unseen=sides[1])

    def random(self, purpose: int) -> np.random.Generator:
        """Return the draws of one attack."""
        return np.random.default_rng([self.seed, purpose])

    def _far_from(self, points: Points) -> tuple[Floats, Floats]:
        seen, unseen = (nearest(points.values, side.points.values, 1)[0][:, 0] for side in (self.seen, self.unseen))
        return seen, unseen


def attack_data_of(
    schema: ResolvedSchema,
    claim: Claim,
    seen: tuple[Any, Units],
    unseen: tuple[Any, Units],
    sample: Callable[[int, int], Any],
    *,
    seed: int = 0,
    **more: Any,
) -> AttackData:
    """Set up the attack data: equally many targets on both sides, half of what was never seen for the attacker.

    Args:
        schema: Every fact known.
        claim: What was claimed.
        seen: The records that the fit has seen, and the unit of each.
        unseen: Records that it has not, likewise.
        sample: A number and a seed to synthetic records.
        seed: Fixes every random choice.
        more: Further fields of :class:`AttackData`.

    Raises:
        DataError: There are too few records.
    """
    rng = np.random.default_rng([seed, 0])
    (content, unit), (kept, kept_unit) = seen, unseen
    if min(len(unit), len(kept_unit) // 2) < FEWEST:
        remedy = f"give at least {2 * FEWEST} records that the fit never saw, and {FEWEST} that it did"
        raise DataError("has too few records to attack with", field="holdout", remedy=remedy)
    units = rng.permutation(np.unique(kept_unit))
    half = np.isin(kept_unit, units[: max(1, len(units) // 2)])
    ours, theirs = np.flatnonzero(half), np.flatnonzero(~half)
    if min(len(ours), len(theirs)) < FEWEST:
        raise DataError("has too few units to attack with", field="holdout", remedy="keep more units aside")
    most = min(MOST_TARGETS, max(FEWEST, len(ours)))
    everyone = np.arange(len(unit))
    return AttackData(
        schema=schema,
        claim=claim,
        fitted=taken(content, _some(unit, everyone, MOST_TARGETS, np.random.default_rng([seed, 1]))),
        seen=_records(schema, content, unit, _some(unit, everyone, most, rng), "the real records"),
        unseen=_records(schema, kept, kept_unit, _some(kept_unit, ours, MOST_TARGETS, rng), "the holdout"),
        reference=_records(schema, kept, kept_unit, _some(kept_unit, theirs, MOST_TARGETS, rng), "the holdout"),
        sample=sample,
        seed=seed,
        **more,
    )


def _records(schema: ResolvedSchema, content: Any, unit: Units, rows: Units, what: str) -> RealRecords:
    some = taken(content, rows)
    return RealRecords(content=some, points=points_of(schema, some, what), unit=unit[rows])


def _some(unit: Units, rows: Units, most: int, rng: np.random.Generator) -> Units:
    """Return at most so many of the rows, whole units at a time."""
    if len(rows) <= most:
        return rows
    order = rng.permutation(np.unique(unit[rows]))
    place = np.empty(int(unit.max()) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    by_place = rows[np.argsort(place[unit[rows]], kind="stable")]
    return np.sort(by_place[:most])
