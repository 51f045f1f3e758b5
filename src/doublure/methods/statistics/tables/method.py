"""``statistics`` on tables: a generator fitted to noisy counts.

There are up to fourteen releases, each with exact discrete Gaussian noise
(:mod:`doublure.methods.statistics.tables.plan`). The
first ones locate each column's rows and repeated values, the next count columns in groups that follow from that, a
score selects the pairs that depend on one another, and those are counted. A mixture of products is fitted to the
tables, a spanning tree of the strongest pairs is drawn within its components, and the target is drawn last. There are
no noisy gradients, and the fit can be repeated without cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from doublure.access import Access
from doublure.errors import SettingError, printable
from doublure.methods.method import ErrorForecast, Released
from doublure.methods.statistics.of_kind import StatisticsStrategy, counting
from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables.focus import FocusedTables
from doublure.methods.statistics.tables.forecast import (
    NoiseForecast,
    described_relations,
    keeps_relations,
    relation_limits,
)
from doublure.methods.statistics.tables.identities import (
    decided_identities,
    possible_identities,
    proposed_identities,
)
from doublure.methods.statistics.tables.plan import (
    IDENTITIES,
    PlannedReleases,
    affordable_pairs,
    better_together,
    counted_columns,
    counted_target,
    plan_releases,
    target_share,
)
from doublure.methods.statistics.tables.work import estimate_work
from doublure.schema import Schema
from doublure.training.job import Job
from doublure.training.settings import Work

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator

S = TypeVar("S", bound=TableStatisticsSettings)

_FROM_TABLES = (
    "Note: a unit may have several rows, so intervals come from these tables alone; syntheses need one row each"
)
_FEW_VALUES = 4
_OF_PAIRS = ("within", "focus", "pairs", "paired", "scored", "groups")


class TableStatistics(StatisticsStrategy[S]):
    """``statistics`` on tables; see the module."""

    @override
    def resolve_defaults(self, schema: Schema, settings: S) -> S:
        settings = settings.with_public_rows(schema)
        counted = counted_columns(schema)
        FocusedTables.of(settings.focus, counted, schema.sources)
        within = _few_valued(schema) if settings.within is None else settings.within
        if within and (within not in counted or not _values(schema, within)):
            raise SettingError(
                "is not a column with declared values", field="within", remedy='name one, or none: within=""'
            )
        within = within if len(counted) > 1 else ""
        target = counted_target(schema, "")
        asked = next((name for name in _OF_PAIRS if getattr(settings, name)), None)
        structure = settings.structure or ("tree" if asked else None)
        if structure == "columns" and asked:
            raise SettingError(
                "counts no pair, and nothing within a column",
                field="structure",
                remedy=f"leave it out, or leave out {asked}",
            )
        within = "" if structure == "columns" else within
        # Whether a target of more values is drawn last is decided by the forecast, once the noise is known.
        later = settings.within is None and structure is None and not within and len(counted) > 1
        later = later and bool(target and _values(schema, target))
        return settings.model_copy(update={"within": None if later else within, "structure": structure})

    @override
    def ready(self, settings: S) -> None:
        settings.refuse_other_rows()

    @override
    def decide_noise(self, schema: Schema, settings: S, noise_multiplier: Callable[[], float]) -> S:
        if settings.seen is not None:
            raise SettingError("is filled in by the plan", field="seen", remedy="leave it out")
        focus = FocusedTables.of(settings.focus, counted_columns(schema))
        target = counted_target(schema, settings.within or "")
        _refuse_idle(schema, settings, focus, target)
        noise = noise_multiplier()
        seen = float(f"{schema.public_units / noise:.4g}")
        structure = settings.structure
        if structure is None:
            lasts = ["", target] if settings.within is None else [settings.within]
            last = better_together(schema, lasts, noise, round_values=settings.round_values)
            if last is None and settings.target_share and not counted_target(schema, ""):
                last = settings.within
            structure = "columns" if last is None else "tree"
            settings = settings.model_copy(update={"within": last or ""})
        if structure == "columns":
            settings = settings.model_copy(update={"within": "", "pairs": None})
        target = settings.within or counted_target(schema, "")
        share = settings.target_share
        if share is None or not target:
            share = target_share(schema, target, focus)
        counted = _identities(schema, settings.identities, seen)
        update = {"seen": seen, "structure": structure, "target_share": share, "identities": counted}
        settings = settings.model_copy(update=update)
        if structure == "columns":
            return settings
        ways = {way: _with_pairs(schema, settings, way, noise) for way in ("within", "beside")}
        if not plan_releases(schema, settings.within or "").pairs_within:
            return ways["beside"].model_copy(update={"pairs": None})
        apart = focus.apart(settings.within or "")  # a pair by itself is noisier as the margin of a third column
        if settings.pairs is None and settings.paired is None and not apart:
            hidden = [
                _forecast(schema, own, self.accesses(schema, own, noise)).hidden_relations() for own in ways.values()
            ]
            return ways["within" if keeps_relations(*hidden) else "beside"]
        return ways[settings.pairs or "beside"]

    @override
    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        planned = _planned(schema, settings)
        return counting(
            ((purpose, tables, planned.shares[purpose]) for purpose, tables in planned.tables.items()),
            records=schema.most_records,
            noise_multiplier=noise_multiplier,
        )

    @override
    def warnings(self, schema: Schema, settings: S) -> tuple[str, ...]:
        wide = [
            f"{printable(schema.path_of(name))}: {note}"
            for name in counted_columns(schema)
            for note in schema.columns[name].notes()
        ]
        return (*super().warnings(schema, settings), *wide)

    @override
    def explained(self, schema: Schema, settings: S, touches: tuple[Access, ...]) -> tuple[str, ...]:
        forecast = _forecast(schema, settings, touches)
        hidden = forecast.hidden_relations()
        limits = (*relation_limits(hidden), *forecast.rare_values(tuple), *forecast.gap_limits())
        said = (
            *(f"Focus: {each.words}" for each in forecast.questions),
            *(f"Limit: {refused}" for each in forecast.questions for refused in each.refused),
            *([_FROM_TABLES] if forecast.questions and schema.unit.max_records > 1 else []),
            *described_relations(hidden),
            *forecast.described_target(),
            *_described_identities(schema, settings, touches),
            *(f"Limit: {limit}" for limit in limits),
        )
        if settings.structure != "columns":
            return said
        target = counted_target(schema, "")
        kept = (
            f"; to keep what goes with the target, count each column within it, --set within={printable(target)}, or "
            f"some, --set 'focus=[\"COLUMN & {printable(target)}\"]'"
        )
        return (
            "Structure: each column is counted and drawn by itself. At this ε noise would hide most pairs of so few "
            f"records; structure=tree counts them all the same{kept if target else ''}",
            *said,
        )

    @override
    def expected_errors(self, schema: Schema, settings: S, touches: tuple[Access, ...]) -> ErrorForecast:
        return _forecast(schema, settings, touches)

    @override
    def noise_limits(
        self, schema: Schema, settings: S, touches: tuple[Access, ...], released: Released
    ) -> tuple[str, ...]:
        forecast = _forecast(schema, settings, touches)
        return (*relation_limits(forecast.hidden_relations()), *forecast.rare_values(released))

    @override
    def needs_torch(self, settings: S) -> bool:
        return False

    @override
    def work(self, schema: Schema, settings: S) -> Work:
        return estimate_work(schema, settings, _planned(schema, settings))

    @override
    def build(self, encoder: Encoder, settings: S, seed: int) -> AnyGenerator:
        from doublure.networks.tree import TreeGenerator

        return TreeGenerator(encoder.width, list(encoder.condition_sizes.values()))

    @override
    def train(self, job: Job, settings: S) -> AnyGenerator:
        from doublure.methods.statistics.tables.fitting import build_generator, release_and_fit

        return build_generator(job, release_and_fit(job, settings))


def _planned(schema: Schema, own: TableStatisticsSettings) -> PlannedReleases:
    return plan_releases(
        schema,
        own.within or "",
        scored=own.scored,
        paired=own.paired,
        seen=own.seen,
        round_values=own.round_values,
        times_of_day=own.times_of_day,
        together=own.structure != "columns",
        target=own.target_share or 0.0,
        beside=own.pairs == "beside",
        identities=own.identities or 0,
    )


def _identities(schema: Schema, asked: int | None, seen: float) -> int:
    """Return how many candidates for identities are counted.

    Args:
        schema: The public facts.
        asked: What was asked for; None: what names and bounds propose.
        seen: Units over the noise of all releases together.

    Raises:
        SettingError: More are asked for than there may be, or than noise can decide.
    """
    decided = decided_identities(seen)
    if asked is None:
        return min(len(proposed_identities(schema)), decided)
    most = min(decided, possible_identities(schema))
    if asked > most:
        raise SettingError(
            f"are more than there may be between numbers that no rule names, or than noise can decide, {most}",
            field="identities",
            remedy=f"give at most {most}, or leave it out",
        )
    return asked


def _refuse_idle(schema: Schema, own: TableStatisticsSettings, focus: FocusedTables, target: str) -> None:
    """Refuse a setting that would choose nothing.

    Args:
        schema: The public facts.
        own: The settings.
        focus: What they put in focus.
        target: The column whose values may have a count of their own, or an empty text.

    Raises:
        SettingError: Naming it.
    """
    within = own.within or ""
    if own.target_share and not target:
        raise SettingError(
            "has no target with declared values", field="target_share", remedy="leave it out, or declare its values"
        )
    if [within] in focus and (own.target_share is not None or schema.columns[within].fact("shares") is not None):
        raise SettingError(
            f"{printable(within)} is drawn last, and its own count has its share already",
            field="focus",
            remedy=f'leave it out, or name what it should go with: "{printable(within)} & ..."',
        )
    if own.pairs and not plan_releases(schema, within).pairs_within:
        raise SettingError(
            "chooses nothing: pairs have too many cells to be counted within a column, or none is drawn last",
            field="pairs",
            remedy="leave it out",
        )
    if own.pairs == "within" and own.paired:
        raise SettingError(
            f"chooses nothing: all pairs are counted, within the values of {printable(within)}",
            field="paired",
            remedy="leave it out, or set pairs=beside",
        )


def _with_pairs(schema: Schema, own: S, way: str, noise: float) -> S:
    """Return the settings with pairs counted one way, and as many as noise allows."""
    scored, paired = affordable_pairs(
        schema, own.within or "", noise, round_values=own.round_values, beside=way == "beside"
    )
    update = {"pairs": way, "scored": own.scored or scored or 1, "paired": own.paired or paired or 1}
    return own.model_copy(update=update)


def _described_identities(schema: Schema, own: TableStatisticsSettings, touches: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a line about the identities that are looked for, and their price."""
    if IDENTITIES not in (access.purpose for access in touches):
        return ()
    count, share = own.identities or 0, _planned(schema, own).shares[IDENTITIES]
    named = [printable(str(each)) for each in proposed_identities(schema)[:count]]
    more = [f"{count - len(named)} that noisy answers allow"] if count > len(named) else []
    return (
        f"Identities: a count of the rows in which each holds, for {100 * share:.2g} % of the budget, decides which "
        f"are kept by every row: {', '.join([*named, *more])}",
    )


def _forecast(schema: Schema, own: TableStatisticsSettings, touches: tuple[Access, ...]) -> NoiseForecast:
    focus = FocusedTables.of(own.focus, counted_columns(schema))
    return NoiseForecast.of(schema, touches, within=own.within or "", groups=own.groups, focus=focus)


def _values(schema: Schema, name: str) -> int:
    """Return the number of a column's declared values, missing included; 0 if it is not public."""
    column = schema.columns[name]
    domain, missing = column.domain, column.missing
    known = domain and (missing is False or isinstance(missing, (bool, tuple, list)))
    return len(domain) + (column.missing_states or missing is not False) if known else 0


def _few_valued(schema: Schema) -> str:
    """Return the target, else a condition, with few enough values to count all else within each; empty for none."""
    for name in (*schema.with_role("target"), *schema.with_role("condition")):
        if name in counted_columns(schema) and 2 <= _values(schema, name) <= _FEW_VALUES:
            return name
    return ""
