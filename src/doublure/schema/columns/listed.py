"""Bases of columns whose values are a list."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, Field, StrictFloat, model_validator
from typing_extensions import override

from doublure.schema.columns.bins import PublicBins
from doublure.schema.columns.column import Column
from doublure.schema.columns.dtypes import FLOATS, WHOLE, Dtype
from doublure.schema.columns.integer_domain import IntegerDomain
from doublure.schema.fact_states import UNDECLARED, Fact, KeyFault, Learn, OptionalFact
from doublure.schema.scalars import Misfit, Token, Value, label
from doublure.support.guessing import suggest

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.sql_words import SqlCell, SqlReading, SqlWords
    from doublure.support.arrays import Floats

MOST_VALUES = 100_000


def _labelled(spellings: object) -> object:
    """Return spellings by the texts of cells."""
    if not isinstance(spellings, Mapping) or not spellings:
        raise ValueError("spellings give other texts of a value; write {Statutory: statutory}")
    return {label(text): label(value) for text, value in spellings.items()}


Spellings: TypeAlias = Annotated[Mapping[str, str], BeforeValidator(_labelled)]
"""Text of a cell -> the declared value that it means."""


class ChoiceColumn(Column):
    """A column with a list of values, which may steer what is drawn."""

    listed: ClassVar[bool] = True
    steers: ClassVar[bool] = True

    shares: OptionalFact[Mapping[str, StrictFloat]] = Field(
        default=None,
        description="public or bought class shares; omitted: conditions are drawn uniformly, but by statistics and "
        "guided on tables as their noisy counts say",
    )

    @property
    def labels(self) -> list[str]:
        """The declared values as texts."""
        return [label(value) for value in self.domain]

    @property
    @override
    def ends(self) -> tuple[float, float] | None:
        return (0.0, len(self.domain) - 1.0) if self.domain else None

    @property
    @override
    def size(self) -> int | None:
        return len(self.domain) or None

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        from doublure.schema.columns.listed_cells import labels

        return labels(raw, self, name, misfit)

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        from doublure.schema.columns.listed_sql import listed_reading

        return listed_reading(self, cell, words)

    @override
    def fitted_in_sql(self, reading: SqlReading, misfit: Misfit) -> SqlReading:
        from doublure.schema.columns.listed_sql import fitted_place

        return fitted_place(self, reading, misfit)

    @override
    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        import numpy as np

        categories = cells.astype("category")
        places = {text: float(place) for place, text in enumerate(self.labels)}
        table = np.array([*(places.get(label(value), np.nan) for value in categories.cat.categories), np.nan])
        return table[categories.cat.codes.to_numpy()]

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        return _categorical(numbers, self._dtype())

    @override
    def loaded_cells_of(self, numbers: Floats) -> pd.Series[Any]:
        import pandas as pd

        return _categorical(numbers, pd.CategoricalDtype(self.labels))

    @override
    def number_of(self, written: object) -> float:
        """Return the place of a written value.

        Raises:
            ValueError: The list has none such; ``message; remedy``.
        """
        text = self.spelt(written)
        if text not in self.labels:
            raise ValueError(f"has no such value; {self.advice_for(written)}")
        return float(self.labels.index(text))

    def spelt(self, written: object) -> str:
        """Return a written value as the list has it; any other text where the list has none."""
        return label(written)

    @override
    def text_of(self, number: float) -> str:
        return self.labels[int(number)]

    def advice_for(self, written: object) -> str:
        """Return the advice to give one of the values: they are public, and named where they are few."""
        return suggest(label(written), self.labels, otherwise="give a value that the schema lists")

    @override
    def integer_domain(self) -> IntegerDomain:
        last = max(0, len(self.domain) - 1)
        return IntegerDomain(first=0, last=last, nullable=self.may_be_missing, ordered=self.ordered)

    @override
    def bins(self, most: int, *, curve: float = 1.0) -> PublicBins:
        import numpy as np

        places = np.arange(len(self.domain) + 1, dtype=np.float64)
        return PublicBins(edges=places, highs=places[:-1], names=tuple(self.labels))

    def _dtype(self) -> pd.CategoricalDtype:
        """Return the schema's values as they are; as labels where no column of a table could hold them together."""
        import pandas as pd

        values = list(self.domain)
        kinds = {"number" if type(value) in (int, float) else type(value).__name__ for value in values}
        large = any(isinstance(value, int) and abs(value) >= 2**63 for value in values)
        return pd.CategoricalDtype(self.labels if len(kinds) > 1 or large else values, ordered=self.ordered)

    @model_validator(mode="before")
    @classmethod
    def _shares_by_label(cls, data: Any) -> Any:
        shares = data.get("shares") if isinstance(data, Mapping) else None
        if isinstance(shares, str):
            raise KeyFault("shares", "are declared, learned or left out; leave them out for a uniform draw")
        if isinstance(shares, Mapping) and "learn" not in shares:
            labelled = {label(key): share for key, share in shares.items()}
            if len(labelled) != len(shares):
                raise KeyFault("shares", "names one value twice; name it once")
            return {**data, "shares": labelled}
        return data

    @model_validator(mode="after")
    def _shares_fit(self) -> ChoiceColumn:
        if self.shares is not None and "condition" not in self.roles:
            raise KeyFault("shares", "steer a condition; add roles: [condition] or remove shares")
        if isinstance(self.shares, Mapping):
            if not self.domain:
                raise KeyFault("shares", "need declared values; declare values or learn shares")
            if set(self.shares) != set(self.labels):
                raise KeyFault("shares", "do not name every value once; list each value, other included")
            if min(self.shares.values()) < 0 or abs(sum(self.shares.values()) - 1) > 0.01:
                raise KeyFault("shares", "do not add up to 1; give shares of at least 0 that do")
        return self


class ListedColumn(ChoiceColumn):
    """A column whose list of values is a fact."""

    facts: ClassVar[tuple[str, ...]] = ("values", "missing")
    placeholders: ClassVar[Mapping[str, str]] = {"values": "values: [VALUE, VALUE]"}
    own_dtype: ClassVar[Dtype | None] = "category"
    dtypes: ClassVar[tuple[Dtype, ...]] = ("category", "str", *WHOLE, *FLOATS)

    values: Fact[tuple[Value, ...]] = UNDECLARED
    other: Token | None = Field(default=None, description="where values outside the list go")
    spellings: Spellings | None = Field(
        default=None, description="other texts of a declared value: Statutory = statutory | STAT = statutory"
    )

    @property
    @override
    def domain(self) -> tuple[Value, ...]:
        if isinstance(self.values, (Learn, str)):
            return ()
        if self.other is None or label(self.other) in map(label, self.values):
            return self.values
        return (*self.values, self.other)

    @property
    @override
    def fallback(self) -> str | None:
        return self.other

    @override
    def spelt(self, written: object) -> str:
        text = super().spelt(written)
        return (self.spellings or {}).get(text, text)

    @override
    def opened(self, texts: Sequence[str]) -> Column | None:
        known = self.values if isinstance(self.values, tuple) else ()
        return self.model_copy(update={"values": (*known, *texts)})

    @property
    @override
    def stored_ends(self) -> tuple[float, float] | None:
        numbers = [value for value in self.domain if type(value) in (int, float)]
        return (float(min(numbers)), float(max(numbers))) if numbers and len(numbers) == len(self.domain) else None

    @model_validator(mode="after")
    def _values_fit(self) -> ListedColumn:
        tokens = set(self.missing_tokens)
        if self.other is not None and label(self.other) in tokens:
            raise KeyFault("other", "is also a text for missing; name another one")
        if isinstance(self.values, Learn):
            if self.other is None:
                raise KeyFault("values", "are learned, so rare ones need a place; name an other, such as other: Other")
        elif isinstance(self.values, tuple):
            if not self.domain:
                raise KeyFault("values", "is empty; list the values or write undeclared")
            if len(self.values) > MOST_VALUES:
                raise KeyFault("values", f"has more than {MOST_VALUES} entries; group them or use type id")
            labels = {label(value) for value in self.values}
            if min(len(labels), len(set(self.values))) < len(self.values):
                raise KeyFault("values", "names one value twice; name it once (1, 1.0 and '1' are one value)")
            if labels & tokens:
                raise KeyFault(
                    "missing", "is also a text for missing, or empty; keep it in one place", subject="a value"
                )
        self._check_spellings(tokens)
        return self

    def _check_spellings(self, tokens: Collection[str]) -> None:
        if self.spellings is None:
            return
        if isinstance(self.values, Learn):
            raise KeyFault("spellings", "are of declared values, and values are learned; declare the values")
        known = {label(value) for value in self.domain}
        if known and not {*self.spellings.values()} <= known:
            raise KeyFault("spellings", "name a value that is not declared; write {TEXT: VALUE} with one that is")
        if {*self.spellings} & (known | {*tokens}):
            raise KeyFault("spellings", "have a text that is a value, or means missing; keep it in one place")


def _categorical(places: Floats, dtype: pd.CategoricalDtype) -> pd.Series[Any]:
    """Return ``(N,)`` places as cells; NaN, and places after the last, are missing."""
    import numpy as np
    import pandas as pd

    codes = np.where(np.isnan(places) | (places >= len(dtype.categories)), -1, places).astype(np.int64)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
