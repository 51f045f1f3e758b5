"""Real test records: a holdout the fit never saw, or a quarter of the fitted records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from doublure.errors import DataError
from doublure.intervals import Result

_HELD_BACK = 4


class SplittableRecords(Protocol):
    """Real records of any kind."""

    def __len__(self) -> int:
        """Return their number."""

    def take(self, rows: np.ndarray[Any, Any]) -> Self:
        """Return the selected records."""


Kind = TypeVar("Kind", bound=SplittableRecords)


class RowCounts(Result):
    """Number of rows compared, by set.

    Attributes:
        synthetic: Synthetic rows.
        train: Real rows they are compared with.
        holdout: Other real rows, for testing and as the floor.
        kept_aside: Whether the fit never saw the holdout; otherwise it is a quarter of the fitted rows.
    """

    synthetic: int
    train: int
    holdout: int
    kept_aside: bool


@dataclass(frozen=True, kw_only=True)
class RealSplit(Generic[Kind]):
    """Real records for comparison and for testing.

    Attributes:
        train: Compared with synthetic records.
        test: Test records, and the floor.
        kept_aside: Whether the fit never saw the test records.
    """

    train: Kind
    test: Kind
    kept_aside: bool

    def rows(self, synthetic: int) -> RowCounts:
        """Return the number of records compared, given that of synthetic ones."""
        return RowCounts(synthetic=synthetic, train=len(self.train), holdout=len(self.test), kept_aside=self.kept_aside)


def split_real(
    train: Kind,
    holdout: Kind | None,
    unit: npt.NDArray[np.integer[Any]] | None,
    rng: np.random.Generator,
    *,
    field: str,
    records: str,
) -> RealSplit[Kind]:
    """Return the real records for comparison and for testing; without a holdout, a quarter of the fitted ones tests.

    Args:
        train: The N records the fit has seen.
        holdout: Records the fit has not seen.
        unit: ``(N,)`` the unit of each, so that a unit's records stay together; each its own if not given.
        rng: Draws the quarter; unused where there is a holdout.
        field: Name of the real records in errors.
        records: Plural of one record in errors.

    Raises:
        DataError: There are too few records to split.
    """
    if holdout is not None:
        return RealSplit(train=train, test=holdout, kept_aside=True)
    if len(train) < 2:
        raise DataError(f"has fewer than 2 {records}", field=field, remedy="give more, or a holdout")
    aside = draw_holdout(np.arange(len(train)) if unit is None else unit, rng)
    return RealSplit(train=train.take(np.flatnonzero(~aside)), test=train.take(np.flatnonzero(aside)), kept_aside=False)


def draw_holdout(unit: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the rows set aside: those of a quarter of the units, and of one at least."""
    units = np.unique(unit)
    if len(units) < 2:
        units = unit = np.arange(len(unit))
    chosen = rng.permutation(units)[: max(1, len(units) // _HELD_BACK)]
    return np.asarray(np.isin(unit, chosen), dtype=np.bool_)


def seen_warning(kept_aside: bool, records: str = "rows") -> list[str]:
    """Return the warning that comes before any figure where the fit saw all real records; otherwise nothing."""
    if kept_aside:
        return []
    return [
        f"The test {records} are not held out: no holdout was given, so they are a quarter of the fitted {records}."
    ]


def seen_note(kept_aside: bool, records: str, quartered: str) -> list[str]:
    """Return the same as a note: which records were split, and how to avoid it."""
    if kept_aside:
        return []
    return [
        f"No holdout was given. A fixed quarter of the {quartered} is used for testing and as the reference; these "
        f"{records} were fitted too. For an independent test, keep some aside before fitting."
    ]
