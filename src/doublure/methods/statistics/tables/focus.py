"""Columns and pairs in focus: the questions of a steward, whose tables are counted more often."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from doublure.errors import SettingError, printable
from doublure.schema.columns import Column
from doublure.schema.rules.rule_set import computed_advice

_WHOLE, _IN_PART = 8.0, 2.0
"""Weight of the noise of columns and pairs in focus, and of pairs with one column in focus. A weight of 8 makes a table
be counted some four times as often."""
_AT_MOST = 2


@dataclass(frozen=True)
class FocusedTables:
    """Columns and pairs in focus.

    Attributes:
        asked: Each column or pair, as the names of its columns.
    """

    asked: tuple[frozenset[str], ...] = ()

    @classmethod
    def of(
        cls, texts: Iterable[str], counted: Collection[str], sources: Mapping[str, tuple[str, ...]] | None = None
    ) -> Self:
        """Read the setting.

        Args:
            texts: A column's name, or two joined by ``" & "``.
            counted: The columns that are counted.
            sources: Columns that follow from others and are not, each with all of these.

        Raises:
            SettingError: A text names neither a counted column nor a pair of two.
        """
        found = []
        for text in texts:
            names = [text] if text in counted else [name.strip() for name in text.split(" & ")]
            unknown = [name for name in names if name not in counted]
            if computed := computed_advice(sources or {}, unknown):
                message, remedy = computed
                raise SettingError(f"{message}, and is not counted", field="focus", remedy=remedy)
            if len(names) > _AT_MOST:
                message, remedy = f"{printable(text)} names more than two columns", 'name at most two: "one & other"'
                raise SettingError(message, field="focus", remedy=remedy)
            if unknown or len(set(names)) != len(names):
                raise SettingError(
                    f"{printable(text)} is no column that is counted, and no pair of two",
                    field="focus",
                    remedy='name columns of the schema, a pair as "one & other"',
                )
            found.append(frozenset(names))
        return cls(tuple(found))

    def __contains__(self, names: Collection[str]) -> bool:
        """Say whether a column or a pair is in focus, and a pair so counted at any score."""
        return frozenset(names) in self.asked

    def apart(self, within: str) -> tuple[frozenset[str], ...]:
        """Return the pairs in focus without the column that is drawn last."""
        return tuple(names for names in self.asked if len(names) > 1 and within not in names)

    def weight(self, names: Collection[str], within: str, *, pairs_within: bool) -> float:
        """Return the weight of the noise of a table, relative to others.

        Args:
            names: Its columns.
            within: The column that is drawn last, or an empty text.
            pairs_within: Whether pairs are counted within its values.
        """
        if names in self or {*names, within} in self:
            return _WHOLE
        if pairs_within and any({name, within} in self for name in names):
            return _WHOLE
        return _IN_PART if any({name} in self for name in names) else 1.0


def often(weighted: float) -> float:
    """Return how often a table is counted, up to a factor that all tables of a release share.

    Counting it once more, after t times, takes w · (t^-½ - (t + 1)^-½) of the noise in its cells, about w / (2 t^1.5).
    Places go where that is most, so that it ends up equal for all tables: t grows with w^⅔.

    Args:
        weighted: w, the table's cells times their weight.
    """
    return float(weighted ** (2 / 3))


def refused_slopes(
    columns: Mapping[str, Column], target: str, on: Sequence[str], *, of_pairs: bool
) -> SettingError | None:
    """Return why a logistic regression that only syntheses can answer is refused; None of listed values alone.

    Args:
        columns: The schema's columns.
        target: The column that is explained.
        on: The explaining columns.
        of_pairs: Whether tables of pairs would answer it, if no row missed the target.
    """
    numbers = [name for name in on if not columns[name].listed]
    if not numbers:
        return None
    why = f": {printable(target)} has missing cells, which tables of pairs cannot leave out" if of_pairs else ""
    few = "one column" if of_pairs else "one or two columns"
    return SettingError(
        f"would have a flattened slope, from syntheses{why}",
        field=", ".join(numbers),
        remedy=f"explain by {few} at a time, or declare bands as a category",
    )
