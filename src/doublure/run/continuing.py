"""Series that go on beyond the window that a fit learned: windows that follow one another on a public calendar."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from doublure.data.series.in_memory import of_moments
from doublure.data.series.records import Series
from doublure.data.series.stamps import following_windows
from doublure.data.tables import cells
from doublure.encode.attribute_groups import codes_of
from doublure.errors import SettingError, counted, printable
from doublure.run import conditions as asking
from doublure.schema.series import SeriesSchema
from doublure.schema.series_exogenous import ExogenousReadings
from doublure.support.frames import with_columns

if TYPE_CHECKING:
    import pandas as pd

    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator
    from doublure.networks.copula import CopulaGenerator
    from doublure.run.conditions import Conditions
    from doublure.schema import ResolvedSchema

LONGEST = 10_000_000
_AT_ONCE = 5_000_000
"""Numbers of a chunk of series."""
_MOST_TRIES = 100
_PERIODS = (86_400, 7 * 86_400)
"""A day and a week, in seconds: windows of several have a shorter season."""


class LongSeries:
    """Draws series of more steps than a window, from a generator that knows windows.

    Args:
        schema: Of series.
        encoder: Of the generator.
        generator: A fitted copula.
        steps: Of each series.
        given: Attributes that every series has; those of the calendar follow from the moments.
        exogenous: Public readings of the moments; None: the schema's.

    Raises:
        SettingError: Series of this schema or generator do not go on, or an attribute cannot be asked for.
    """

    def __init__(
        self,
        schema: ResolvedSchema,
        encoder: Encoder,
        generator: AnyGenerator,
        steps: object,
        given: Mapping[str, object],
        exogenous: ExogenousReadings | None = None,
    ) -> None:
        self._schema, self._copula = _going_on(schema, generator)
        self._generator: Any = generator
        self._encoder = encoder
        self._steps = _steps(steps)
        self._windows = -(-self._steps // self._schema.length)
        if exogenous is not None:
            _refuse_other_readings(exogenous, self._schema)
        self._exogenous = exogenous or self._schema.series.exogenous
        self._starts = following_windows(self._schema, self._windows, self._first_day(exogenous))
        self._calendar = {name: each for name, each in self._schema.attributes.items() if each.from_moments}
        self._given = self._wanted(given, schema)
        self._cells = {name: self._cells_of(name) for name in self._calendar}
        self._codes = {
            name: codes_of(self._calendar[name], found).astype(np.int64) for name, found in self._cells.items()
        }

    @property
    def most_at_once(self) -> int:
        """The most series of a chunk."""
        return max(1, _AT_ONCE // (self._windows * self._schema.length * len(self._schema.channels)))

    def chunks(self, n: int, seed: int) -> Iterator[Series]:
        """Yield ``n`` series in chunks, at least one."""
        done = number = 0
        while done < n or number == 0:
            size = min(self.most_at_once, n - done)
            yield self._drawn(size, np.random.default_rng([seed, number]))
            done, number = done + size, number + 1

    def _wanted(self, given: Mapping[str, object], schema: ResolvedSchema) -> Conditions:
        """Return what every series is asked to be.

        Raises:
            SettingError: It names what follows from the moments, or several shares.
        """
        own = next((name for name in given if name in self._calendar), None)
        if own is not None:
            remedy = "leave it out"
            raise SettingError("follows from the moments of a series that goes on", field=f"given {own}", remedy=remedy)
        wanted = asking.read(given, schema, self._encoder).groups
        if len(wanted) > 1:
            raise SettingError("has no shares in series that go on", field="given", remedy="draw each value by itself")
        return wanted[0][0]

    def _first_day(self, exogenous: ExogenousReadings | None) -> str | None:
        """Return the moment from which windows follow one another; None: that of the schema.

        Readings that are given for a sample begin it; those of the schema do where it names no day.
        """
        windows = self._schema.series
        public = exogenous if windows.stamped_from is not None else self._exogenous
        return None if public is None else str(public.moments[:1].astype("datetime64[s]")[0])

    def _cells_of(self, name: str) -> pd.Series[Any]:
        """Return the cells ``(windows,)`` of an attribute that follows from the moments.

        Raises:
            SettingError: The schema does not list a value that the calendar has, or public readings end before, or are
                not within the bounds.
        """
        column = self._calendar[name]
        if self._starts is None:
            raise TypeError("an attribute follows from no moments")
        made = of_moments(name, self._starts, self._schema, self._exogenous)
        found = cells.canonical(made, column, name, "coerce")
        if column.from_exogenous is not None:
            if made.isna().any():
                first = str(self._starts[made.isna().to_numpy()][:1].astype("datetime64[s]")[0])
                message = f"have no {printable(name)} for the window that begins at {first}"
                raise SettingError(message, field="exogenous", remedy="give more of them, or ask for fewer steps")
            low, high = column.limits
            if made.min() < low or made.max() > high:
                message = f"go beyond the bounds of {printable(name)}, of which nothing is known"
                raise SettingError(message, field="exogenous", remedy=f"give values from {low:g} to {high:g}")
            return found
        if found.isna().any():
            message = f"lists not all that {column.from_time} is in {counted(self._steps, 'step')}"
            raise SettingError(message, field=printable(name), remedy="ask for fewer steps")
        return found

    def _drawn(self, size: int, rng: np.random.Generator) -> Series:
        import torch

        from doublure.networks.copula_continued import ContinuedCopula

        condition, attributes = self._conditions(size, rng)
        source = torch.Generator().manual_seed(int(rng.integers(2**62)))
        width = self._copula.noise_width
        going_on = ContinuedCopula(self._copula, season_of(self._schema))
        length = self._schema.length
        values = np.empty((size, self._windows * length, len(self._schema.channels)))
        by_window: list[pd.DataFrame] = []
        window = None
        with torch.inference_mode():
            for number in range(self._windows):
                own = self._of_window(condition, number)
                noise = torch.randn(size, width, generator=source)
                window = going_on.first(noise, own) if window is None else going_on.next(window, noise, own)
                rows = window.places.flatten(1) if own is None else torch.cat([window.places.flatten(1), own], dim=1)
                made = self._encoder.decode(rows, rng)
                values[:, number * length : (number + 1) * length] = made.values
                public = {
                    name: self._cells[name].iloc[number]
                    for name, each in self._calendar.items()
                    if each.from_exogenous is not None
                }
                by_window.append(with_columns(made.attributes[list(self._calendar)], public))
        return Series(
            values=values[:, : self._steps],
            channels=tuple(self._schema.channels),
            attributes=attributes,
            states=self._schema.states,
            window=length,
            by_window=_series_by_series(by_window, size),
            starts=None if self._starts is None else np.repeat(self._starts[:1], size),
        )

    def _conditions(self, size: int, rng: np.random.Generator) -> tuple[Any, pd.DataFrame]:
        """Return one-hot blocks ``(size, K)`` of the first window, or None, and the attributes that do not change.

        Raises:
            SettingError: Hardly any series has the attributes that are asked for.
        """
        import pandas as pd
        import torch

        from doublure.networks.steering import ConditionPrior

        names = [name for name in self._schema.attributes if name not in self._calendar]
        if not self._encoder.condition_width:
            return None, pd.DataFrame(index=pd.RangeIndex(size))
        first = {name: (int(codes[0]),) for name, codes in self._codes.items()}
        fixed = {**self._given.fixed, **first}
        blocks, found, there = [], [], 0
        source = torch.Generator().manual_seed(int(rng.integers(2**62)))
        for _ in range(_MOST_TRIES):
            known = torch.zeros(max(size, 1), self._encoder.condition_width)
            begun = 0
            for name, width in self._encoder.condition_sizes.items():
                known[:, [begun + code for code in fixed.get(name, ())]] = 1.0
                begun += width
            if isinstance(self._generator, ConditionPrior):
                known = self._generator.draw_conditions(known, source)
            body = torch.zeros(len(known), math.prod(self._encoder.body_shape))
            attributes = self._encoder.decode(torch.cat([body, known], dim=1), rng).attributes
            fits = np.ones(len(known), dtype=np.bool_)
            for name, asked in self._given.checked.items():
                fits &= asked.has(self._schema.columns[name].snapped_numbers_of(attributes[name]))
            blocks.append(known[torch.from_numpy(fits)])
            found.append(attributes.loc[fits, names])
            there += int(fits.sum())
            if there >= size:
                whole = pd.concat(found, ignore_index=True).iloc[:size]
                return torch.cat(blocks)[:size], whole
        raise SettingError("are those of hardly any series", field="given", remedy="ask for more of them")

    def _of_window(self, condition: Any, number: int) -> Any:
        """Return the blocks with those of the calendar as they are in a window."""
        if condition is None or not self._codes:
            return condition
        found, begun = condition.clone(), 0
        for name, width in self._encoder.condition_sizes.items():
            if name in self._codes:
                found[:, begun : begun + width] = 0.0
                found[:, begun + int(self._codes[name][number])] = 1.0
            begun += width
        return found


def read_readings(path: Path) -> pd.DataFrame:
    """Return the cells of a CSV of public readings, as texts.

    Raises:
        SettingError: There is none.
    """
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError):
        remedy = "name a CSV in UTF-8 with a column of moments and one of numbers"
        raise SettingError("is no CSV", field=f"exogenous {printable(path.name)}", remedy=remedy) from None


def read_exogenous(frame: pd.DataFrame) -> ExogenousReadings:
    """Return public readings, the moments in the first column.

    Raises:
        SettingError: They are none.
    """
    try:
        return ExogenousReadings.of(frame)
    except ValidationError as error:
        first = error.errors()[0]
        message, _, remedy = str(first.get("ctx", {}).get("error", "")).partition("; ")
        message = message.removeprefix("exogenous ") or "are no moments and numbers"
        remedy = remedy or "give a column of moments, and one of numbers"
        raise SettingError(message, field="exogenous", remedy=remedy) from None


def season_of(schema: SeriesSchema) -> int:
    """Return after how many steps a window's steps are alike: a day or a week, if it has several, or its length."""
    seconds = schema.series.seconds
    for period in _PERIODS if seconds else ():
        season, rest = divmod(period, seconds or 1)
        if not rest and 1 < season < schema.length and schema.length % season == 0:
            return season
    return schema.length


def _going_on(schema: ResolvedSchema, generator: AnyGenerator) -> tuple[SeriesSchema, CopulaGenerator]:
    """Return the schema and the copula.

    Raises:
        SettingError: There is none, or series end early.
    """
    refusal = SettingError("are for time series", field="steps", remedy="leave it out")
    described = SeriesSchema.of(schema, refusal)
    from doublure.networks.copula import CopulaGenerator

    copula: Any = getattr(generator, "generator", generator)
    if not isinstance(copula, CopulaGenerator):
        message = "need a copula: method statistics with model copula"
        raise SettingError(message, field="steps", remedy=f"leave it out: series have {described.length} steps")
    if described.ends_at is not None:
        raise SettingError("are not for series that end", field="steps", remedy=f"ask for {described.ends_at} by given")
    return described, copula


def _refuse_other_readings(exogenous: ExogenousReadings, schema: SeriesSchema) -> None:
    """Refuse readings that no attribute follows, or that lack one that an attribute does.

    Raises:
        SettingError: They do not fit.
    """
    followed = {name: each for name, each in schema.attributes.items() if each.from_exogenous is not None}
    if not followed:
        raise SettingError("are followed by no attribute", field="exogenous", remedy="leave it out")
    for name, each in followed.items():
        needed = each.reading or name
        if needed not in exogenous.columns[1:]:
            remedy = "give a column of its name"
            raise SettingError(f"have no {printable(needed)}", field="exogenous", remedy=remedy)


def _steps(steps: object) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= LONGEST:
        raise SettingError(f"must be a whole number from 1 to {LONGEST:,}", field="steps", remedy="say how many")
    return steps


def _series_by_series(by_window: list[pd.DataFrame], size: int) -> pd.DataFrame:
    """Return attributes window by window as series by series."""
    import pandas as pd

    whole = pd.concat(by_window, ignore_index=True)
    order = np.arange(len(whole)).reshape(len(by_window), size).T.reshape(-1)
    return whole.iloc[order].reset_index(drop=True)
