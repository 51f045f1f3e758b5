"""ENCODE: rows of a table as whole numbers, one a column, and back: what is counted and drawn cell by cell.

Of a category the number is its place in the list; of a number, a date or a moment its value in steps of the column's
unit; missing is the number after the last. Nothing is joined to bins: which values belong together is decided where
they are counted (:mod:`doublure.methods.statistics.tables`). Constraints are kept as :class:`TableEncoder` keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from doublure.encode import conditions
from doublure.encode.cell_names import axis_name, interval_names
from doublure.encode.columns import Discrete, Floats, RowEncoding, Stepped, encodings
from doublure.encode.differences import Gap
from doublure.encode.pairwise_swapping import Ints
from doublure.encode.table import TableEncoder
from doublure.errors import InputError
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.columns import DateColumn, DatetimeColumn, OrdinalColumn, Scale

NOT_ASKED = -1.0
"""Stands for a condition that is neither asked for nor has declared shares: it is drawn like any column."""


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
    return _whole(schema, name, encodings(schema, [name], "steps", 1)[name])


def _whole(schema: Schema, name: str, encoding: RowEncoding) -> Whole:
    column = schema.columns[name]
    if isinstance(encoding, Discrete):
        last, ordered = max(0, len(encoding.column.domain) - 1), isinstance(column, OrdinalColumn)
        return Whole(column=name, first=0, last=last, nullable=column.may_be_missing, ordered=ordered)
    steps = encoding.steps if isinstance(encoding, Gap) else encoding
    if not isinstance(steps, Stepped):
        raise TypeError("numbers are not in steps")
    (first, last), unit = steps.ends, steps.unit
    own = steps.column  # a gap's own facts, if it is one
    calendar = isinstance(own, (DateColumn, DatetimeColumn))
    edges = tuple(sorted({round(edge / unit) for edge in getattr(own, "edges", ())}))
    spikes = tuple(sorted({round(value / unit) for value in getattr(own, "repeated", ())}))
    return Whole(
        column=name,
        first=first,
        last=last,
        nullable=own.may_be_missing,
        ordered=True,
        number=True,
        calendar=calendar,
        scale=getattr(own, "scale", None),
        edges=tuple(edge for edge in edges if first < edge <= last),
        spikes=tuple(value for value in spikes if first <= value <= last),
    )


class TableValues(TableEncoder):
    """The two-way mapping between a table and ``(N, P)`` float64 whole numbers.

    Args:
        schema: Every fact known.

    Attributes:
        wholes: Of each part what its numbers stand for, in order; conditions last.
    """

    def __init__(self, schema: ResolvedSchema) -> None:
        super().__init__(schema, numerics="steps", bins=1)
        self.wholes = tuple(_whole(schema, name, self._encodings[name]) for name in self.columns)
        self.width = len(self.wholes)
        self.condition_width = len(self.condition_blocks)
        self.body_shape = (self.width,)

    def axis(self, part: int, starts: Floats, cells: Ints, size: int) -> tuple[str, tuple[str, ...]]:
        """Return what a part of a record is called, and each cell that its values are counted in.

        Args:
            part: Its place.
            starts: ``(n,)`` where intervals of its values begin.
            cells: ``(n,)`` the cell of each.
            size: How many cells.
        """
        column = self.wholes[part].column
        own = self._encodings[column]
        return axis_name(column, own), interval_names(own, starts, cells, size)

    def compact(self, frame: pd.DataFrame) -> Tensor:
        """Return ``(N, P)`` float64."""
        return torch.from_numpy(self._compact(frame))

    def expand(self, compact: Tensor) -> Tensor:
        """Return the numbers as they are."""
        return compact

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return whole rows: conditions are columns like others."""
        return rows, None

    def decode(self, rows: Tensor, rng: np.random.Generator | None = None) -> pd.DataFrame:
        """Return rows of the schema's own dtypes, every constraint kept.

        Args:
            rows: ``(N, P)``; what stands behind (the conditions that were asked for) is not looked at.
            rng: Not needed: each number is one value.

        Raises:
            InputError: A number is not finite.
        """
        values = rows.detach().to("cpu", torch.float64).numpy()[:, : self.width]
        if not np.isfinite(values).all():
            raise InputError("has values that are not finite", field="generator", remedy="fit again")
        ends = [(whole.first, whole.last + whole.nullable) for whole in self.wholes]
        return self._decoded([np.clip(values[:, at], *ends[at]) for at in range(self.width)], rng)

    def draw_conditions(self, n: int, rng: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Tensor:
        """Return ``(n, K)`` values of the conditions: asked for, drawn from declared shares, or ``NOT_ASKED``."""
        rows = np.full((n, self.condition_width), NOT_ASKED)
        for place, block in enumerate(self.condition_blocks):
            column = self.schema.columns[block.column]
            code = (fixed or {}).get(block.column)
            if code is not None or isinstance(getattr(column, "shares", None), Mapping):
                rows[:, place] = conditions.drawn_codes(column, len(column.domain), n, rng, code)  # type: ignore[union-attr]
        return torch.from_numpy(rows)
