"""The whole numbers that stand for a column's values: public facts, known without any network library."""

from __future__ import annotations

from dataclasses import dataclass

from doublure.encode.columns import Discrete, RowEncoding, Stepped, encodings
from doublure.encode.differences import Gap
from doublure.schema import Schema
from doublure.schema.columns import Scale


@dataclass(frozen=True, kw_only=True)
class Whole:
    """The whole numbers that stand for one column's values; all of it is public.

    Attributes:
        column: Its name.
        first: The lowest.
        last: The highest.
        nullable: Whether ``last + 1`` stands for missing.
        ordered: Whether neighbours belong together.
        number: Whether they are values of a number, of which there may be many.
        calendar: Whether it is a date or a moment, which has no small and no round values.
        scale: How wide public cells are, if that is declared.
        edges: Where public cells begin, if that is declared.
        spikes: What is declared to stand out.
    """

    column: str
    first: int
    last: int
    nullable: bool
    ordered: bool
    number: bool = False
    calendar: bool = False
    scale: Scale | None = None
    edges: tuple[int, ...] = ()
    spikes: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many values there are, missing included."""
        return self.last - self.first + 1 + self.nullable


def whole_of(schema: Schema, name: str) -> Whole:
    """Return what stands for a column's values.

    Raises:
        SchemaError: A fact of it is not known yet.
    """
    return whole_of_encoding(schema, name, encodings(schema, [name], "steps", 1)[name])


def whole_of_encoding(schema: Schema, name: str, encoding: RowEncoding) -> Whole:
    """Return what stands for a column's values, from its encoding in steps."""
    column = schema.columns[name]
    if isinstance(encoding, Discrete):
        last = max(0, len(encoding.column.domain) - 1)
        return Whole(column=name, first=0, last=last, nullable=column.may_be_missing, ordered=column.ordered)
    steps = encoding.steps if isinstance(encoding, Gap) else encoding
    if not isinstance(steps, Stepped):
        raise TypeError("numbers are not in steps")
    (first, last), unit = steps.ends, steps.unit
    own = steps.column  # a gap's own facts, if it is one
    edges = tuple(sorted({round(edge / unit) for edge in own.cuts}))
    spikes = tuple(sorted({round(value / unit) for value in own.repeated}))
    return Whole(
        column=name,
        first=first,
        last=last,
        nullable=own.may_be_missing,
        ordered=True,
        number=True,
        calendar=own.clock is not None,
        scale=own.declared_scale,
        edges=tuple(edge for edge in edges if first < edge <= last),
        spikes=tuple(value for value in spikes if first <= value <= last),
    )
