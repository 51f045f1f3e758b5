"""Time series in memory: synthetic ones, as sampling returns them, and private ones with their units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.records import Loaded
from doublure.errors import DataError, counted
from doublure.schema.series import SERIES, STEP

Values: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
"""``(N, length, channels)`` float64, NaN for a step without a value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """Time series and what each was recorded under.

    Attributes:
        values: ``(N, length, channels)`` float64, NaN where a step is missing, and after a series' end.
        channels: The channels' names.
        attributes: ``(N, …)``, a column an attribute; none where the schema has none.
        states: The values of channels that are no numbers; ``values`` has their places in the list.
        ends_at: The attribute that says how many steps a series has; None where all have as many.
        window: Steps of each of the windows that follow one another in a series; None where each is one window.
        by_window: ``(N * windows, …)`` the attributes that change from window to window, series by series.
        starts: ``(N,)`` where series begin, in seconds since 1970 on the wall clock; None: by their attributes.
    """

    values: Values
    channels: tuple[str, ...]
    attributes: pd.DataFrame
    states: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    ends_at: str | None = None
    window: int | None = None
    by_window: pd.DataFrame = field(default_factory=pd.DataFrame)
    starts: np.ndarray[Any, np.dtype[np.int64]] | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape[2] != len(self.channels):
            raise DataError("must be (N, length, channels)", field="values", remedy="give an axis for each")
        if len(self.attributes) != len(self.values):
            raise DataError("have another length than the values", field="attributes", remedy="give each series a row")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def length(self) -> int:
        """Steps in a series, or in the longest."""
        return int(self.values.shape[1])

    @property
    def steps(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of steps of each series, ``(N,)``."""
        if self.ends_at is None:
            return np.full(len(self), self.length, dtype=np.int64)
        return self.attributes[self.ends_at].to_numpy(dtype=np.int64).clip(0, self.length)

    @property
    def inside(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """The mask of steps before each series' end, ``(N, length)``."""
        found: np.ndarray[Any, np.dtype[np.bool_]] = np.arange(self.length) < self.steps[:, None]
        return found

    def held(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return one channel, ``(N, length)``, in which a series' last step goes on after its end."""
        values = self.channel(name)
        if self.ends_at is None:
            return values
        place = np.minimum(np.arange(self.length), np.maximum(self.steps, 1)[:, None] - 1)
        return np.take_along_axis(values, place, axis=1)

    def channel(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return one channel, ``(N, length)``."""
        return self.values[:, :, self.channels.index(name)]

    def cells(self, name: str) -> Any:
        """Return one channel's cells in a row, ``(N * length,)``: numbers, or a categorical of states."""
        numbers = self.channel(name).reshape(-1)
        if name not in self.states:
            return numbers
        codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(list(self.states[name]))))

    @property
    def windows(self) -> int:
        """The number of windows that follow one another in a series."""
        return 1 if self.window is None else -(-self.length // self.window)

    def take(self, rows: slice | np.ndarray[Any, Any]) -> Series:
        """Return some of the series."""
        attributes = self.attributes.iloc[rows].reset_index(drop=True)
        starts = None if self.starts is None else self.starts[rows]
        places = np.arange(len(self) * self.windows).reshape(len(self), self.windows)[rows].reshape(-1)
        by_window = (
            self.by_window.iloc[places].reset_index(drop=True) if len(self.by_window.columns) else self.by_window
        )
        return replace(self, values=self.values[rows], attributes=attributes, starts=starts, by_window=by_window)

    @staticmethod
    def joined(parts: Sequence[Series]) -> Series:
        """Return several sets of series of one schema as one."""
        attributes = pd.concat([part.attributes for part in parts], ignore_index=True)
        values = np.concatenate([part.values for part in parts])
        by_window = pd.concat([part.by_window for part in parts], ignore_index=True)
        starts = None if parts[0].starts is None else np.concatenate([np.asarray(part.starts) for part in parts])
        return replace(parts[0], values=values, attributes=attributes, by_window=by_window, starts=starts)

    def frame(self, first: int = 1) -> pd.DataFrame:
        """Return the long form: a row a step, with ``series`` from ``first`` and ``step`` from 0 telling them apart.

        The rows of a series end where it ends.
        """
        n, length = len(self), self.length
        columns: dict[str, Any] = {
            SERIES: np.repeat(np.arange(first, first + n, dtype=np.int64), length),
            STEP: np.tile(np.arange(length, dtype=np.int64), n),
        }
        place = np.repeat(np.arange(n), length)
        columns |= {str(name): cells.take(place).reset_index(drop=True) for name, cells in self.attributes.items()}
        of_window = place * self.windows + columns[STEP] // (self.window or length)
        columns |= {str(name): cells.take(of_window).reset_index(drop=True) for name, cells in self.by_window.items()}
        columns |= {name: self.cells(name) for name in self.channels}
        frame = pd.DataFrame(columns)
        return frame if self.ends_at is None else frame[self.inside.reshape(-1)].reset_index(drop=True)

    def __repr__(self) -> str:
        return f"Series({len(self)} of {self.length} steps, {counted(len(self.channels), 'channel')})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SeriesSet(Loaded):
    """Private series.

    Attributes:
        content: The series and their attributes.
    """

    content: Series

    @property
    def frame(self) -> pd.DataFrame:
        """The attributes, in canonical form."""
        return self.content.attributes

    @override
    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return what a statistic looks at: at most :meth:`SeriesSchema.cells_of` cells of each series.

        ======================  ============================================================================
        an attribute            its value
        bounds of a channel     the lowest and the highest of the series' values: two cells, not one a step
        missing in a channel    one cell, missing if any step of the series is
        ======================  ============================================================================
        """
        if column not in self.content.channels:
            return self.content.attributes[column]
        values = self.content.held(column)
        if fact == "bounds":
            known = ~np.isnan(values)
            lowest = np.where(known, values, np.inf).min(axis=1)
            highest = np.where(known, values, -np.inf).max(axis=1)
            return pd.Series(np.where(np.tile(known.any(axis=1), 2), np.concatenate([lowest, highest]), np.nan))
        return pd.Series(np.where(np.isnan(values).any(axis=1), np.nan, 0.0))
