"""Data for attacks: records the fit has seen, records it has not, and the released ones.

Each attack uses only the parts that its threat model grants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from doublure.attack.f_dp import Profile
from doublure.attack.results import Claim
from doublure.data.records import taken
from doublure.errors import DataError
from doublure.measures.divergence import nearest
from doublure.measures.embedding import Points, embed_records
from doublure.schema import ResolvedSchema
from doublure.schema.images import ImageSchema
from doublure.support.arrays import Floats
from doublure.support.progress import Progress, SilentProgress

MOST_TARGETS = 10_000
"""Most records of either side that are attacked; of more, a uniform sample of units.

This number of non-members resolves a false positive rate of one in a thousand.
"""

MOST_SYNTHETIC = 10_000
FEWEST = 20

Units: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, kw_only=True)
class RealRecords:
    """Real records of one side: members, non-members or reference.

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
        """Return the selected records."""
        return RealRecords(content=taken(self.content, rows), points=self.points.take(rows), unit=self.unit[rows])

    def draw_half(self, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return an ``(N,)`` mask of the records of half of the units."""
        units = np.unique(self.unit)
        return np.isin(self.unit, rng.permutation(units)[: len(units) // 2])

    def by_unit(self, scores: Floats) -> Floats:
        """Return one score per unit: the mean over its records."""
        place = np.unique(self.unit, return_inverse=True)[1]
        return np.asarray(np.bincount(place, scores) / np.bincount(place), dtype=np.float64)


class WhiteBox(Protocol):
    """Access to the training's internals, or to the weights of the generator."""

    @property
    def critic(self) -> Callable[[Any], Floats] | None:
        """Records -> the critic's scores, high for records it takes as real; None where no critic was kept."""

    @property
    def searchable(self) -> bool:
        """Whether close noise makes close records; otherwise noise only starts a draw, like a seed."""

    def encoded(self, content: Any) -> tuple[Floats, Any]:
        """Return records ``(N, D)`` in the generator's form, and their conditions for it."""

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``(n, Z)`` noise for the generator."""

    def generated(self, noise: Floats, conditions: Any) -> Floats:
        """Return ``(N, D)`` the generator's output for noise ``(N, Z)`` under these conditions."""


class RefittedSynthesizer(Protocol):
    """A synthesizer that was refitted for an attack."""

    @property
    def white_box(self) -> WhiteBox:
        """Its internals."""

    def sample(self, n: int, seed: int) -> Any:
        """Return synthetic records."""


Refit: TypeAlias = Callable[[Any, int], RefittedSynthesizer]
"""Records and a seed -> a synthesizer fitted to them as the plan says."""


@dataclass(frozen=True, kw_only=True)
class AttackData:
    """Everything that attacks may use.

    Attributes:
        schema: Every fact known.
        claim: The claim under attack.
        fitted: All records of the fit, at most ``MOST_TARGETS``: to train a classifier on real records.
        seen: Targets that the fit has seen: as many as ``unseen`` holds.
        unseen: Records of the same kind that it has not seen; the attacker has to separate both. Without a holdout
            none, as of ``reference``.
        reference: Other records that it has not seen, held by the attacker.
        sample: A number and a seed -> synthetic records.
        white_box: Internals, for white-box attacks.
        refit: Refits the plan, for attacks with shadow models.
        crafted: Draws records uniformly over the schema, for attacks with canaries.
        profile: Returns δ at several ε of what a refit draws noise for; None where that is not known.
        seed: Fixes every random choice.
        shadows: Number of refits of an attack.
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
    profile: Callable[[], Profile] | None = None
    seed: int = 0
    shadows: int = 16
    progress: Progress = field(default_factory=SilentProgress)

    @property
    def labelled_images(self) -> ImageSchema | None:
        """The schema if it is of labelled images, which image classifiers need; otherwise None."""
        return self.schema if isinstance(self.schema, ImageSchema) and self.schema.label is not None else None

    @cached_property
    def released(self) -> Any:
        """The synthetic records held by attackers: as many as were seen, and at least a thousand."""
        return self.sample(min(MOST_SYNTHETIC, max(1000, len(self.seen))), self.seed)

    @cached_property
    def synthetic(self) -> Points:
        """The same as points."""
        return embed_records(self.schema, self.released, "the synthetic records")

    @cached_property
    def to_synthetic(self) -> tuple[Floats, Floats]:
        """Distance of each target to the nearest synthetic record: ``(n,)`` of those seen, ``(m,)`` of those not."""
        return self._far_from(self.synthetic)

    @cached_property
    def to_reference(self) -> tuple[Floats, Floats]:
        """Distance of each target to the nearest record that the attacker holds, likewise."""
        return self._far_from(self.reference.points)

    def with_targets(self, most: int) -> AttackData:
        """Return the same attack data with at most this many targets on either side, drawn uniformly."""
        rng = self.random(0)
        sides = [side.take(_some(side.unit, np.arange(len(side)), most, rng)) for side in (self.seen, self.unseen)]
        return replace(self, seen=sides[0], unseen=sides[1])

    def random(self, purpose: int) -> np.random.Generator:
        """Return the random generator of one attack."""
        return np.random.default_rng([self.seed, purpose])

    def _far_from(self, points: Points) -> tuple[Floats, Floats]:
        seen, unseen = (nearest(points.values, side.points.values, 1)[0][:, 0] for side in (self.seen, self.unseen))
        return seen, unseen


def make_attack_data(
    schema: ResolvedSchema,
    claim: Claim,
    seen: tuple[Any, Units],
    unseen: tuple[Any, Units] | None,
    sample: Callable[[int, int], Any],
    *,
    seed: int = 0,
    **more: Any,
) -> AttackData:
    """Return the attack data: equal numbers of targets on both sides, and half of the unseen records for the attacker.

    Args:
        schema: Every fact known.
        claim: The claim under attack.
        seen: The records of the fit, and the unit of each.
        unseen: Other records, likewise; None where no attack compares with them.
        sample: A number and a seed -> synthetic records.
        seed: Fixes every random choice.
        more: Further fields of :class:`AttackData`.

    Raises:
        DataError: There are too few records.
    """
    rng = np.random.default_rng([seed, 0])
    content, unit = seen
    if unseen is None:
        if len(unit) < FEWEST:
            raise DataError("has too few records to attack with", field="real", remedy=f"give at least {FEWEST}")
        drawn = _some(unit, np.arange(len(unit)), MOST_TARGETS, rng)
        own = _records(schema, content, unit, drawn, "the real records")
        none = own.take(np.zeros(0, dtype=np.int64))
        return AttackData(
            schema=schema, claim=claim, fitted=own.content, seen=own, unseen=none, reference=none, sample=sample,
            seed=seed, **more,
        )  # fmt: skip
    kept, kept_unit = unseen
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
    return RealRecords(content=some, points=embed_records(schema, some, what), unit=unit[rows])


def _some(unit: Units, rows: Units, most: int, rng: np.random.Generator) -> Units:
    """Return at most this many of the rows, whole units at a time."""
    if len(rows) <= most:
        return rows
    order = rng.permutation(np.unique(unit[rows]))
    place = np.empty(int(unit.max()) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    by_place = rows[np.argsort(place[unit[rows]], kind="stable")]
    return np.sort(by_place[:most])
