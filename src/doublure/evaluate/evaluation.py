"""Evaluate a synthesizer: sample it, and hold the sample against the real table."""

from __future__ import annotations

import dataclasses
import datetime
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from doublure.attack.results import AttackResult, Claim, Claimed
from doublure.data.opening import Given, Loaded, open_data
from doublure.data.series import Series
from doublure.errors import DataError, SettingError
from doublure.evaluate.reports import ImageReport, Report, SeriesReport
from doublure.measures.expected_loss import EstimatorConfig, ExpectedLoss, of_synthesizer
from doublure.measures.images.evaluation import MOST_IMAGES, evaluate_images
from doublure.measures.images.feature_extractors import Extractor, refuse_other_kinds
from doublure.measures.series import MOST_SERIES, evaluate_series
from doublure.measures.tables.evaluation import evaluate_table
from doublure.methods import registry as methods
from doublure.results import About
from doublure.schema import ResolvedSchema
from doublure.schema.images import ImageSchema
from doublure.schema.series import SeriesSchema
from doublure.support.progress import Progress, Silent

MOST_SAMPLED = 200_000
"""The most artificial rows that are drawn unless asked otherwise."""

IN_SHORT = ("gan-leaks", "neighbours")
"""The attacks that an evaluation makes; ``doublure audit`` makes the others."""

_MOST = {"table": MOST_SAMPLED, "images": MOST_IMAGES, "series": MOST_SERIES}
_ALL_OF_A_UNIT = 2**31
_MOST_SHARED = 0.5


class _Guarantee(Claimed, Protocol):
    @property
    def unit(self) -> str: ...

    @property
    def max_records(self) -> int: ...


class _Plan(Protocol):
    @property
    def method(self) -> str: ...

    @property
    def settings(self) -> Any: ...


class AnySynthesizer(Protocol):
    """What is evaluated: a fitted synthesizer."""

    @property
    def schema(self) -> ResolvedSchema:
        """Every fact known."""

    @property
    def guarantee(self) -> _Guarantee:
        """What may be claimed."""

    @property
    def plan(self) -> _Plan:
        """What was done."""

    def sample(self, n: int, *, seed: int | None = None) -> Any:
        """Return ``n`` synthetic records."""


def report(
    syn: AnySynthesizer,
    real: Given,
    holdout: Given | None = None,
    *,
    rows: int | None = None,
    seed: int = 0,
    rule: EstimatorConfig | None = None,
    loss: bool = True,
    extractor: Extractor | None = None,
    progress: Progress | None = None,
) -> Report | ImageReport | SeriesReport:
    """Compare what a synthesizer says with real records. The result is internal: do not publish it.

    Args:
        syn: A fitted synthesizer.
        real: The data it was fitted on.
        holdout: Real records it has never seen. Without them a fixed quarter of ``real`` is used for testing.
        rows: How many synthetic records to draw; as many as ``real`` has, at most 200,000 rows, 5,000 images or
            20,000 series, if not given.
        seed: Fixes the sample and every random choice of the evaluation.
        rule: How the expected privacy loss is estimated; left out, as the plan says for a guarantee that is empirical,
            and not at all for others.
        loss: Whether it is estimated at all.
        extractor: Of images, in which features they are compared (:mod:`doublure.measures.images.feature_extractors`);
            those of a classifier that learned from real images if not given. The expected privacy loss is estimated in
            it only if it is the one that the rule names.
        progress: Receives progress events.

    Raises:
        DataError: The data does not fit the schema.
        SettingError: ``rows`` is not positive, features are chosen for other data than images, or the holdout is the
            data that the fit has seen.
    """
    if rows is not None and rows < 1:
        raise SettingError("must be at least 1", field="rows", remedy="leave it out to draw as many as the real table")
    if extractor is not None:
        refuse_other_kinds(syn.schema)
    listener = progress or Silent()
    listener.stage("read the real records")
    train, aside = load_both(syn.schema, real, holdout)
    kept = None if aside is None else aside.content
    wanted = rows if rows is not None else min(len(train.unit), _MOST[syn.schema.kind])
    listener.stage("draw synthetic records")
    artificial = syn.sample(wanted, seed=seed)
    listener.stage("compare")
    chosen = (rule or _planned(syn)) if loss else None
    lost, skipped = _expected_loss(syn, train.content, chosen, extractor, listener)
    found, why = _attacked(syn, (artificial, wanted), train, aside, seed, listener)
    common: dict[str, Any] = {
        "about": about(syn),
        "expected_loss": lost,
        "expected_loss_skipped": skipped,
        "attacks": found,
        "attacks_skipped": why,
    }
    if isinstance(syn.schema, ImageSchema):
        more: dict[str, Any] = {"unit": train.unit, "extractor": extractor, "seed": seed, "progress": listener}
        seen = evaluate_images(syn.schema, artificial, train.content, kept, **more)
        return ImageReport(images=seen, **common)
    if isinstance(syn.schema, SeriesSchema):
        courses = evaluate_series(syn.schema, artificial, train.content, kept, unit=train.unit, seed=seed)
        return SeriesReport(series=courses, **common)
    table = evaluate_table(syn.schema, artificial, train.content, kept, unit=train.unit, seed=seed)
    return Report(table=table, **common)


def about(syn: AnySynthesizer) -> About:
    """Return whose records a synthesizer's are, and what may be claimed about them."""
    return About(
        method=syn.plan.method,
        guarantee_kind=syn.guarantee.kind,
        guarantee=syn.guarantee.sentence,
        unit=syn.schema.unit.name,
        schema_sha256=syn.schema.sha256,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def load_both(schema: ResolvedSchema, real: Given, holdout: Given | None) -> tuple[Loaded, Loaded | None]:
    """Read the records that a fit has seen, and those that it has not, if there are any.

    Raises:
        DataError: The data does not fit the schema.
        SettingError: The holdout is the data that was fitted, in whatever order, or most of it is.
    """
    lenient = _lenient(schema)
    if holdout is not None and _same_file(real, holdout):
        raise _not_kept_aside()
    train = open_data(real, schema.kind).load(lenient)
    kept = None if holdout is None else open_data(holdout, schema.kind).load(lenient, at_least=1)
    if kept is not None and _seen_before(_marks(train.content), _marks(kept.content)):
        raise _not_kept_aside()
    return train, kept


def _planned(syn: AnySynthesizer) -> EstimatorConfig | None:
    """Return the rule that an empirical plan fixed before any record was read."""
    if syn.guarantee.kind != "empirical":
        return None
    fixed = methods.method(syn.plan.method).estimation(syn.plan.settings)
    return None if fixed is None else EstimatorConfig(**dataclasses.asdict(fixed))


def _expected_loss(
    syn: AnySynthesizer, real: Any, rule: EstimatorConfig | None, extractor: Extractor | None, progress: Progress
) -> tuple[ExpectedLoss | None, str | None]:
    """Return the estimate, or why there is none."""
    if rule is None:
        return None, None
    progress.stage("estimate the expected privacy loss")
    try:
        meant = extractor if extractor is not None and extractor.name == rule.features else None
        return of_synthesizer(syn, real, rule, extractor=meant), None
    except (DataError, SettingError) as error:  # a package that the plan's features need may not be here
        return None, f"{error.field} {error.message}" + ("" if error.remedy is None else f" ({error.remedy})")


def _attacked(
    syn: AnySynthesizer, released: tuple[Any, int], train: Loaded, aside: Loaded | None, seed: int, progress: Progress
) -> tuple[tuple[AttackResult, ...], str | None]:
    """Return what the two quickest attacks find, or why they were not made."""
    if aside is None:
        return (), "no holdout was given, and an attack on members has to be compared with one on others"
    from doublure.attack import registry as table
    from doublure.attack.attack_data import attack_data_of, taken

    progress.stage("attack")
    artificial, drawn = released
    try:
        world = attack_data_of(
            syn.schema,
            Claim.of(syn.guarantee),
            (train.content, train.unit),
            (aside.content, aside.unit),
            lambda n, _: taken(artificial, np.arange(min(n, drawn))),
            seed=seed,
        )
    except DataError as error:
        return (), f"{error.field} {error.message}"
    return table.run(world, IN_SHORT), None


def _same_file(real: Given, holdout: Given) -> bool:
    paths = [Path(given) for given in (real, holdout) if isinstance(given, (str, os.PathLike))]
    return len(paths) == 2 and all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def _marks(content: Any) -> np.ndarray[Any, np.dtype[np.generic]]:
    """Return a number for each record of a frame, of images or of series ``(N,)``; equal records have equal ones."""
    if isinstance(content, pd.DataFrame):
        return pd.util.hash_pandas_object(content, index=False).to_numpy()
    body = content.values if isinstance(content, Series) else content.images
    beside = content.attributes if isinstance(content, Series) else pd.DataFrame(content.labels)
    told = pd.util.hash_pandas_object(beside, index=False).tolist() if len(beside.columns) else [0] * len(body)
    return np.array([hash((one.tobytes(), other)) for one, other in zip(body, told, strict=True)])


def _seen_before(fitted: np.ndarray[Any, Any], aside: np.ndarray[Any, Any]) -> bool:
    """Whether records kept aside are the fitted ones, or, for the most part, some of them.

    Where few records are possible, some are equal by chance: about as many of those kept aside are among the fitted
    ones as fitted ones are among one another.
    """
    if len(fitted) == len(aside) and np.array_equal(np.sort(fitted), np.sort(aside)):
        return True
    _, place, counts = np.unique(fitted, return_inverse=True, return_counts=True)
    return bool(np.isin(aside, fitted).mean() - (counts[place] > 1).mean() > _MOST_SHARED)


def _not_kept_aside() -> SettingError:
    return SettingError(
        "is the data that was fitted",
        field="holdout",
        remedy="give records that were kept aside, or leave it out",
    )


def _lenient(schema: ResolvedSchema) -> ResolvedSchema:
    """Allow missing cells where a noisy answer said that there are none: the measure counts them as missing.

    Of series, all that a unit has are looked at: which of them a fit may use is drawn at random, and a measure repeats
    itself.
    """
    if isinstance(schema, SeriesSchema):
        kept = schema.series.gaps == "missing"
        channels = {
            name: channel.model_copy(update={"missing": True}) if kept and channel.missing is False else channel
            for name, channel in schema.channels.items()
        }
        unit = schema.unit.model_copy(update={"max_records": _ALL_OF_A_UNIT})
        return schema.model_copy(update={"channels": channels, "unit": unit})
    if schema.kind != "table":
        return schema
    columns = {
        name: column if column.may_be_missing else column.model_copy(update={"missing": True})
        for name, column in schema.columns.items()
    }
    return schema.model_copy(update={"columns": columns})
