"""Public readings beside private series, such as temperatures: given for each moment, never counted, never drawn.

``series.exogenous: weather.csv`` names a CSV with a header: the moments, on the wall clock of the series, and a column
a reading. ``from_exogenous: mean`` makes an attribute of the column of its name, or of that named as ``reading``: what
the file has within a series' window, or within a ``part`` of its steps, so that steps follow the hours' own readings.
The file is part of the schema and its hash. That a window lies where it does is the record's, and is protected
as any attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field, StrictStr, model_validator

from doublure.errors import printable
from doublure.schema.fact_states import Frozen
from doublure.schema.scalars import check_name
from doublure.support.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

FromExogenous: TypeAlias = Literal["mean", "lowest", "highest", "sum"]
"""Summary of the readings within a window, which an attribute is."""

Whole: TypeAlias = npt.NDArray[np.int64]

_Row: TypeAlias = tuple[StrictStr, ...]
_OF: Mapping[str, Callable[[Floats], Any]] = {"mean": np.mean, "lowest": np.min, "highest": np.max, "sum": np.sum}


class ExogenousReadings(Frozen):
    """Public readings, as their file has them.

    Attributes:
        columns: The moments' column, then at least one of readings.
        rows: Their cells, in the order of time.
    """

    columns: _Row = Field(min_length=2)
    rows: tuple[_Row, ...] = Field(min_length=1)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> ExogenousReadings:
        """Return the readings of a frame.

        Raises:
            ValueError: ``message; remedy``: it is no such file.
        """
        cells = (frame[name].astype(str) for name in frame.columns)
        return cls(columns=tuple(map(str, frame.columns)), rows=tuple(zip(*cells, strict=True)))

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for name in self.columns:
            check_name(name)
        if len({*self.columns}) != len(self.columns) or any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("exogenous has a column twice, or rows of several lengths; fix its file")
        if len(self.rows) > 1 and (np.diff(self.moments) <= 0).any():
            raise ValueError("exogenous has moments that do not increase; sort its file, each moment once")
        for name in self.columns[1:]:
            if not np.isfinite(self.readings(name)).all():
                raise ValueError(f"exogenous has cells of {printable(name)} that are no numbers; fix its file")
        return self

    @property
    def moments(self) -> Whole:
        """The moments ``(rows,)`` in seconds since 1970 on the wall clock.

        Raises:
            ValueError: One is no moment.
        """
        try:
            found = np.array([row[0].replace(" ", "T") for row in self.rows], dtype="datetime64[s]")
        except ValueError:
            raise ValueError("exogenous has moments that are no ISO 8601; write 2024-01-31 18:00") from None
        if np.isnat(found).any():
            raise ValueError("exogenous has moments that are empty; fix its file")
        return found.astype(np.int64)

    def readings(self, name: str) -> Floats:
        """Return a column's readings ``(rows,)``; NaN for cells that are no numbers."""
        place = self.columns.index(name)

        def number(cell: str) -> float:
            try:
                return float(cell)
            except ValueError:
                return float("nan")

        return np.array([number(row[place]) for row in self.rows])

    def of_windows(self, name: str, attribute: Any, starts: Whole, duration: int, step: int) -> Floats:
        """Return what windows have of the readings that an attribute follows ``(windows,)``; NaN where there are none.

        Args:
            name: The attribute's.
            attribute: The attribute.
            starts: ``(windows,)`` in seconds since 1970 on the wall clock.
            duration: Of a window, in seconds.
            step: Of a step, in seconds.
        """
        moments, readings = self.moments, self.readings(attribute.reading or name)
        distinct, place = np.unique(starts, return_inverse=True)
        begin, end = (
            (0, duration) if attribute.part is None else (attribute.part[0] * step, (attribute.part[1] + 1) * step)
        )
        first, last = np.searchsorted(moments, distinct + begin), np.searchsorted(moments, distinct + end)
        summed = _OF[attribute.from_exogenous]
        found = [summed(readings[one:other]) if other > one else np.nan for one, other in zip(first, last, strict=True)]
        return np.array(found, dtype=np.float64)[place]

    def whole_windows(self, origin: int, duration: int) -> Whole:
        """Return the beginnings of the windows that begin and end within the file, counted from ``origin``."""
        moments = self.moments
        step = int(np.diff(moments).min()) if len(moments) > 1 else duration
        first = -(-(int(moments[0]) - origin) // duration)
        last = (int(moments[-1]) + step - origin) // duration
        found: Whole = origin + duration * np.arange(first, max(first, last), dtype=np.int64)
        return found


def check_exogenous(
    exogenous: ExogenousReadings | None, attributes: Any, *, origin: int, duration: int | None, step: int | None
) -> None:
    """Refuse attributes that do not follow from the public readings, and readings that no attribute follows.

    Args:
        exogenous: The readings; None where there are none.
        attributes: The schema's, by name.
        origin: Beginning of a window, in seconds.
        duration: Of a window, in seconds; None where that is not declared.
        step: Of a step, likewise.

    Raises:
        ValueError: ``message; remedy``, naming the attribute.
    """
    followed = {name: each for name, each in attributes.items() if each.from_exogenous is not None}
    if exogenous is None:
        for name in followed:
            raise ValueError(f"{printable(name)} follows from public readings; name their file as series.exogenous")
        return
    if not followed:
        raise ValueError("exogenous has readings that no attribute follows; write from_exogenous: mean at one")
    for name, column in followed.items():
        if (column.reading or name) not in exogenous.columns[1:]:
            said = f"{printable(column.reading or name)} is no column of the file of exogenous"
            raise ValueError(f"{said}; name the attribute as there, or its column as reading")
        if not isinstance(column.bounds, tuple):
            raise ValueError(f"{printable(name)} is public; declare its bounds")
        if duration is None or step is None:
            continue
        if column.part is not None and (column.part[1] + 1) * step > duration:
            raise ValueError(f"{printable(name)} has a part beyond series.length; name steps of the series, from 0")
        starts = exogenous.whole_windows(origin, duration)
        if not len(starts):
            raise ValueError("exogenous covers no whole window; give a longer file")
        found = exogenous.of_windows(name, column, starts, duration, step)
        if np.isnan(found).any():
            raise ValueError(f"{printable(name)} has a part without readings; give more of them, or name a longer part")
        low, high = float(np.nanmin(found)), float(np.nanmax(found))
        if low < column.bounds[0] or high > column.bounds[1]:
            raise ValueError(f"{printable(name)} goes from {low:g} to {high:g} in its file; widen the bounds")
