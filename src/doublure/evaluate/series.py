"""Evaluate artificial time series: profiles, autocorrelation, values, peaks and gaps, beside real ones.

Every figure stands between two others. *Independent steps* draws each step on its own from the real values at that
step: right profiles and values, no course through time. *Real* is the best to hope for: other real series. All of it is
computed on real data: internal.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from doublure.data.series import Series
from doublure.encode.columns import Discrete
from doublure.encode.grids import Floats
from doublure.errors import DataError
from doublure.evaluate.scores import Result, Score, finite
from doublure.evaluate.table import INTERNAL, SEEN, Rows, held_back, versions
from doublure.evaluate.words import Verdict
from doublure.schema.series import SeriesSchema

MOST_SERIES = 20_000
"""The most artificial series that are drawn unless asked otherwise."""

_MOST_LAGS = 96
_MOST_DRAWN = 200
_SLIGHT = 0.01
_BAND = (0.1, 0.9)
_PLACES = {"value": "value", "baseline": "baseline", "real": "test"}


class Profile(Result):
    """A channel step by step, real and artificial.

    Attributes:
        channel: The channel.
        steps: Where the figures stand; fewer than all where a series is long.
        real: The real series' mean at each step.
        real_band: Between which two values four in five real series lie.
        synthetic: The artificial series' mean.
        synthetic_band: As ``real_band``.
    """

    channel: str
    steps: tuple[int, ...]
    real: tuple[float, ...]
    real_band: tuple[tuple[float, float], ...]
    synthetic: tuple[float, ...]
    synthetic_band: tuple[tuple[float, float], ...]


class Memory(Result):
    """How a channel goes on: its autocorrelation at each lag, real and artificial."""

    channel: str
    lags: tuple[int, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]


class SeriesEvaluation(Result):
    """Everything that was measured. Computed on real data: internal.

    Attributes:
        scores: The headline figures.
        profiles: Each channel's mean and spread at each step.
        memories: Each channel's autocorrelation.
    """

    version: Literal[1] = 1
    internal: str = INTERNAL
    seed: int
    rows: Rows
    scores: tuple[Score, ...]
    profiles: tuple[Profile, ...]
    memories: tuple[Memory, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str]

    @property
    def verdict(self) -> Verdict:
        """The evaluation in plain words."""
        return _verdict(self)

    def to_json(self) -> str:
        """Return JSON text; what is not known is null."""
        return self.model_dump_json(indent=1)

    def __repr__(self) -> str:
        return f"SeriesEvaluation({INTERNAL})"

    __str__ = __repr__


def evaluate_series(
    schema: SeriesSchema,
    synthetic: Series,
    train: Series,
    holdout: Series | None = None,
    *,
    unit: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    seed: int = 0,
) -> SeriesEvaluation:
    """Compare artificial series with real ones.

    Args:
        schema: Their channels and attributes.
        synthetic: Artificial series.
        train: The real series that they were learned from.
        holdout: Real series kept aside. Without them a fixed quarter of ``train`` takes their place (and leaves
            ``train``), which the notes say: the fit has seen them.
        unit: ``(N,)`` the unit of each series of ``train``, so that a unit's series stay together in the split.
        seed: Fixes every random choice made here.

    Raises:
        DataError: There are too few series.
    """
    rng = np.random.default_rng(seed)
    if holdout is None:
        if len(train) < 2:
            raise DataError("has fewer than 2 series", field="the real set", remedy="give more, or a holdout")
        aside = held_back(np.arange(len(train)) if unit is None else unit, rng)
        real, test = train.take(np.flatnonzero(~aside)), train.take(np.flatnonzero(aside))
    else:
        real, test = train, holdout
    sets = {"value": synthetic, "baseline": independent_steps(real, len(synthetic), rng), "real": real, "test": test}
    looks = {name: _look(schema, each) for name, each in sets.items()}
    return SeriesEvaluation(
        seed=seed,
        rows=Rows(synthetic=len(synthetic), train=len(real), holdout=len(test), kept_aside=holdout is not None),
        scores=_scores(schema, looks),
        profiles=tuple(_profile(name, real, synthetic) for name in schema.channels),
        memories=tuple(_memory(name, looks) for name in schema.channels),
        notes=_notes(holdout is not None),
        versions=versions(),
    )


def independent_steps(real: Series, n: int, rng: np.random.Generator) -> Series:
    """Return the baseline: attributes as frequent as real, and each step of each channel a real value at that step."""
    drawn = rng.choice(len(real), n)
    rows = rng.integers(0, len(real), (n, real.length, len(real.channels)))
    steps, channels = np.arange(real.length)[:, None], np.arange(len(real.channels))
    attributes = real.attributes.iloc[drawn].reset_index(drop=True)
    return Series(values=real.values[rows, steps, channels], channels=real.channels, attributes=attributes)


# -- what is looked at -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What is compared of one set.

    Attributes:
        profiles: Channel -> mean at each step, ``(length,)``.
        by_value: Channel -> mean at each step for each value of each attribute, ``(values, length)``; NaN for none.
        memories: Channel -> autocorrelation at each lag.
        values: Channel -> all values, sorted.
        peaks: Channel -> the highest value of each series, sorted.
        missing: The share of steps without a value.
    """

    profiles: Mapping[str, Floats]
    by_value: Mapping[str, Floats]
    memories: Mapping[str, Floats]
    values: Mapping[str, Floats]
    peaks: Mapping[str, Floats]
    missing: float


def _look(schema: SeriesSchema, series: Series) -> _Look:
    channels = {name: series.channel(name) for name in schema.channels}
    known = {name: values[~np.isnan(values)] for name, values in channels.items()}
    return _Look(
        profiles={name: _mean(values) for name, values in channels.items()},
        by_value={name: _by_value(schema, series, values) for name, values in channels.items()},
        memories={name: autocorrelation(values) for name, values in channels.items()},
        values={name: np.sort(values) for name, values in known.items()},
        peaks={name: np.sort(_highest(values)) for name, values in channels.items()},
        missing=float(np.isnan(series.values).mean()) if series.values.size else 0.0,
    )


def _mean(values: Floats) -> Floats:
    """Return the mean of what is there at each step, NaN where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        mean: Floats = np.nanmean(values, axis=0) if len(values) else np.full(values.shape[1], np.nan)
    return mean


def _highest(values: Floats) -> Floats:
    known = ~np.isnan(values)
    highest: Floats = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    return highest[known.any(axis=1)]


def _by_value(schema: SeriesSchema, series: Series, values: Floats) -> Floats:
    """Return mean profiles ``(values, length)``, one for each value of each attribute."""
    rows = []
    for name, column in schema.attributes.items():
        discrete = Discrete(column=column)
        codes = discrete.compact(series.attributes[name])[0]
        rows += [_mean(values[codes == code]) for code in range(len(column.domain))]
    return np.stack(rows) if rows else np.zeros((0, values.shape[1]))


def autocorrelation(values: Floats) -> Floats:
    """Return the mean over series of each one's autocorrelation, ``(lags,)`` from lag 1 to half the length.

    Gaps count as the series' own mean; a series that never changes has none.

    Args:
        values: ``(N, length)``.
    """
    lags = lags_of(values.shape[1])
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    centred = np.where(known, values - np.where(known, values, 0.0).sum(axis=1, keepdims=True) / count, 0.0)
    power = (centred**2).sum(axis=1)
    moving = centred[power > 1e-12 * np.maximum(1.0, np.nanmax(np.abs(values), initial=0.0) ** 2)]
    power = (moving**2).sum(axis=1)
    if not len(moving):
        return np.zeros(len(lags))
    return np.array([float(((moving[:, :-lag] * moving[:, lag:]).sum(axis=1) / power).mean()) for lag in lags])


def lags_of(length: int) -> tuple[int, ...]:
    """Return the lags that are looked at: from 1 to half the length, at most 96."""
    return tuple(range(1, min(length // 2, _MOST_LAGS) + 1))


def furthest(first: Floats, second: Floats) -> float | None:
    """Return the Kolmogorov distance of two sorted samples: by how much the share below any value differs at most."""
    if not len(first) or not len(second):
        return None
    points = np.concatenate([first, second])
    shares = [np.searchsorted(each, points, side="right") / len(each) for each in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def correlation(first: Floats, second: Floats) -> float | None:
    """Return how two profiles go together, -1 to 1; null where one of them is flat or unknown."""
    known = ~(np.isnan(first) | np.isnan(second))
    first, second = first[known], second[known]
    if len(first) < 2 or np.ptp(first) <= 1e-12 or np.ptp(second) <= 1e-12:
        return None
    return finite(float(np.corrcoef(first, second)[0, 1]))


# -- scores ----------------------------------------------------------------------------------------------------------


def _scores(schema: SeriesSchema, looks: Mapping[str, _Look]) -> tuple[Score, ...]:
    real = looks["real"]

    def over(compare: Any) -> dict[str, float | None]:
        """Return the mean over channels, for each of the sets that are compared with the real one."""
        return {
            role: _average([compare(looks[place], name) for name in schema.channels]) for role, place in _PLACES.items()
        }

    scores = [
        _score(
            "profile", "Profile", "high", (-1.0, 1.0),
            over(lambda look, name: correlation(real.profiles[name], look.profiles[name])),
            "How the mean at each step goes together with the real mean: a correlation, mean over channels.",
        ),
        _score(
            "autocorrelation", "Autocorrelation", "low", (0.0, 2.0),
            over(lambda look, name: float(np.abs(real.memories[name] - look.memories[name]).mean())),
            "How far the autocorrelation is off, mean over lags up to half a series.",
        ),
        _score(
            "values", "Values", "low", (0.0, 1.0),
            over(lambda look, name: furthest(real.values[name], look.values[name])),
            "By how much the share of values below any value differs at most (Kolmogorov’s distance).",
        ),
        _score(
            "peaks", "Peaks", "low", (0.0, 1.0),
            over(lambda look, name: furthest(real.peaks[name], look.peaks[name])),
            "The same for the highest value of each series.",
        ),
    ]  # fmt: skip
    if schema.attributes:
        by_value = over(lambda look, name: _average(_each(real.by_value[name], look.by_value[name])))
        meaning = "The profile’s correlation for each value of each attribute by itself, mean over them."
        scores.insert(1, _score("profile_by_attribute", "Profile by attribute", "high", (-1.0, 1.0), by_value, meaning))
    if any(schema.may_be_missing(name) for name in schema.channels):
        missing = {role: looks[place].missing for role, place in _PLACES.items()}
        scores.append(_score("missing", "Missing", "near", (0.0, 1.0), missing, "The share of steps without a value."))
    return tuple(scores)


def _each(first: Floats, second: Floats) -> list[float | None]:
    return [correlation(one, other) for one, other in zip(first, second, strict=True)]


def _average(figures: list[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return float(np.mean(known)) if known else None


def _score(
    key: str,
    name: str,
    goal: Literal["low", "high", "near"],
    ends: tuple[float, float],
    figures: Mapping[str, float | None],
    meaning: str,
) -> Score:
    return Score(key=key, name=name, goal=goal, range=ends, meaning=meaning, **figures)


# -- drawings and words ----------------------------------------------------------------------------------------------


def _profile(name: str, real: Series, synthetic: Series) -> Profile:
    length = real.length
    steps = np.unique(np.linspace(0, length - 1, min(length, _MOST_DRAWN)).astype(int))
    drawn: dict[str, Any] = {}
    for role, series in (("real", real), ("synthetic", synthetic)):
        values = series.channel(name)[:, steps]
        known = np.where(np.isnan(values), _mean(values), values)
        ends = np.nan_to_num(np.quantile(known, _BAND, axis=0)) if len(known) else np.zeros((2, len(steps)))
        drawn |= {role: tuple(np.nan_to_num(_mean(values)).tolist())}
        drawn |= {f"{role}_band": tuple((float(low), float(high)) for low, high in ends.T)}
    return Profile(channel=name, steps=tuple(steps.tolist()), **drawn)


def _memory(name: str, looks: Mapping[str, _Look]) -> Memory:
    found = {
        role: tuple(looks[place].memories[name].tolist()) for role, place in (("real", "real"), ("synthetic", "value"))
    }
    return Memory(channel=name, lags=tuple(range(1, len(found["real"]) + 1)), **found)


def _notes(kept_aside: bool) -> tuple[str, ...]:
    notes = [
        "Independent steps draws each step on its own from the real values at that step: right profiles, no course.",
        "All series of a unit are looked at, not only those that a fit may use.",
    ]
    if not kept_aside:
        notes.append(
            "No holdout was given. A fixed quarter of the units is used as the floor. The fit has seen these series; "
            "keep some aside before fitting for a test that it has not seen."
        )
    return tuple(notes)


def _verdict(found: SeriesEvaluation) -> Verdict:
    scores = {score.key: score for score in found.scores}
    profile = scores["profile"]
    headline = (
        f"The mean profile goes together with the real one at a correlation of {_said(profile.value)} "
        f"(other real series: {_said(profile.real)})."
    )
    lines = []
    by_value = scores.get("profile_by_attribute")
    if by_value is not None:
        lines.append(f"Within each attribute’s values it is {_said(by_value.value)} ({_said(by_value.real)}).")
    for key, what in (("autocorrelation", "autocorrelation"), ("values", "values"), ("peaks", "peaks")):
        score = scores[key]
        lines.append(
            f"Distance of the {what}: {_said(score.value)} (other real series: {_said(score.real)}; independent steps: "
            f"{_said(score.baseline)})."
        )
    warnings_ = [] if found.rows.kept_aside else [SEEN.replace("rows", "series")]
    course = scores["autocorrelation"]
    if course.value is not None and course.baseline is not None and course.value - course.baseline > _SLIGHT:
        warnings_.append("Independent steps, which know no course through time, have the better autocorrelation.")
    return Verdict(headline=headline, lines=tuple(lines), warnings=tuple(warnings_))


def _said(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
