"""Units of related tables: rows of the root, and the rows of each child table that hang on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.records import Loaded
from doublure.data.relational.row_links import NamedRows, choose_rows, every_link, rows_named
from doublure.schema.columns.made_rows import MadeRows
from doublure.schema.relational import RelationalSchema
from doublure.support.arrays import Ints
from doublure.support.mixing import Marks, remarked


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RelatedRows:
    """Units; keys are not among their columns, but where a row belongs.

    Attributes:
        schema: Whose tables these are.
        frames: Table -> its rows in canonical columns, ids left out; the root's are the units.
        parents: Child table -> ``(M,)`` which unit each of its rows belongs to, ascending; a unit's rows in order.
        above: Table whose parent is not the root -> ``(M,)`` which row of its parent each row hangs on, ascending.
        marks: ``(N,)`` a number of each unit that is as good as random and follows from its key: which of its rows a
            statistic looks at.
        seed: Of the columns that are made anew, in synthetic units.
        named: The rows that synthetic ones name beside their parents; empty: not chosen yet.
    """

    schema: RelationalSchema
    frames: Mapping[str, pd.DataFrame]
    parents: Mapping[str, Ints]
    marks: Marks
    above: Mapping[str, Ints] = field(default_factory=dict)
    seed: int = 0
    named: NamedRows = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many units there are."""
        return len(self.frames[self.schema.root])

    def __getitem__(self, name: Any) -> Any:
        """Return a column of the root by ``table.column``; or the units that a mask keeps."""
        if isinstance(name, str):
            table, _, column = name.partition(".")
            return self.frames[table][column]
        return self.take(name)

    def __repr__(self) -> str:
        return f"RelatedRows({', '.join(self.frames)})"

    def counts(self, child: str) -> Ints:
        """Return ``(N,)`` how many rows of a child table each unit has."""
        return np.bincount(self.parents[child], minlength=len(self)).astype(np.int64)

    def hang_on(self, child: str) -> Ints:
        """Return ``(M,)`` the row of its parent that each row of a child table hangs on."""
        return self.above.get(child, self.parents[child])

    def counts_of_rows(self, child: str) -> Ints:
        """Return how many rows of a child table each row of its parent has."""
        parent = self.schema.tables[child].parent or ""
        return np.bincount(self.hang_on(child), minlength=len(self.frames[parent])).astype(np.int64)

    def fingerprints(self) -> Marks:
        """Return a number for each unit ``(N,)``; equal units, with equal rows in equal order, have equal ones."""
        found: Marks = _hashed(self.frames[self.schema.root])
        for number, (child, parent) in enumerate(self.parents.items()):
            own = _hashed(self.frames[child])
            many = self.counts(child)
            turn = np.arange(len(parent)) - np.repeat(np.cumsum(many) - many, many)
            own ^= remarked(turn.astype(np.uint64), number)
            if child in self.above:
                own ^= remarked(self._turns(self.schema.tables[child].parent or "")[self.above[child]], number)
            np.add.at(found, parent, remarked(own, number))
        return found

    def _turns(self, child: str) -> Marks:
        """Return which of its unit's rows each row of a child table is."""
        parent = self.parents[child]
        return (np.arange(len(parent)) - np.searchsorted(parent, parent)).astype(np.uint64)

    def take(self, rows: Any) -> Self:
        """Return some units, by a slice, a mask or places."""
        units: Ints = np.arange(len(self))[rows]
        root, tables = self.schema.root, self.schema.tables
        frames, parents = {root: self.frames[root].iloc[units].reset_index(drop=True)}, dict[str, Ints]()
        taken, above = {root: units}, dict[str, Ints]()
        for child in self.schema.children:
            parent = tables[child].parent or ""
            taken[child], owner = _hung_rows(self.counts_of_rows(child), taken[parent])
            frames[child] = self.frames[child].iloc[taken[child]].reset_index(drop=True)
            parents[child] = owner if parent == root else parents[parent][owner]
            if parent != root:
                above[child] = owner
        return replace(self, frames=frames, parents=parents, above=above, marks=self.marks[units], named={})

    def joined(self, parts: Sequence[RelatedRows]) -> Self:
        """Return several sets of units as one."""
        before = np.cumsum([0, *(len(part) for part in parts)])
        return replace(
            self,
            frames={name: pd.concat([part.frames[name] for part in parts], ignore_index=True) for name in self.frames},
            parents={
                child: np.concatenate([part.parents[child] + first for part, first in zip(parts, before, strict=False)])
                for child in self.parents
            },
            above={
                child: np.concatenate(
                    [part.above[child] + first for part, first in zip(parts, self._begins(child, parts), strict=True)]
                )
                for child in self.above
            },
            marks=np.concatenate([part.marks for part in parts]),
            named={
                name: {own: np.concatenate([part.named[name][own] for part in parts]) for own in columns}
                for name, columns in self.named.items()
            },
        )

    def _begins(self, child: str, parts: Sequence[RelatedRows]) -> Ints:
        """Return how many rows of a table's parent come before those of each part."""
        many = [len(part.frames[self.schema.tables[child].parent or ""]) for part in parts]
        return np.cumsum([0, *many[:-1]])

    def with_made(self, before: int, seed: int) -> Any:
        """Return the same units with the rows that they name; columns made anew follow from this seed.

        Args:
            before: How many rows were handed out already.
            seed: Of the sample.
        """
        return replace(self, seed=seed, named=self._choose_rows(before, seed))

    def _choose_rows(self, before: int, seed: int) -> NamedRows:
        rng = np.random.default_rng([seed, before])
        return choose_rows(self.frames, self._units, self.schema, before, rng)

    @property
    def _units(self) -> dict[str, Ints]:
        """Table -> the unit of each of its rows."""
        return {self.schema.root: np.arange(len(self), dtype=np.int64), **self.parents}

    def handed_out(self, before: Mapping[str, int] | None = None) -> dict[str, pd.DataFrame]:
        """Return each table with fresh keys: 1, 2, 3, …; every foreign key is one of its parent's.

        Args:
            before: Table -> how many rows were handed out already; if left out none, and public tables stand beside.
        """
        done = before or {}
        root, found = self.schema.root, dict[str, pd.DataFrame]()
        named = self.named or self._choose_rows(done.get(root, 0), self.seed)
        for name in (root, *self.schema.children):
            table, rows = self.schema.tables[name], len(self.frames[name])
            numbers = np.arange(1, rows + 1, dtype=np.int64) + done.get(name, 0)
            units = self.parents[name] + 1 + done.get(root, 0) if name in self.parents else numbers
            made = MadeRows(
                seed=self.seed,
                numbers=numbers,
                units=units,
                cells=self.frames[name],
                columns=table.columns,
                table=name,
            )
            columns: dict[str, Any] = {}
            if table.parent is not None:
                above = found[table.parent].iloc[self.hang_on(name)].reset_index(drop=True)
                held = zip(table.foreign_keys, self.schema.tables[table.parent].keys, strict=True)
                columns = {own: above[key] for own, key in held}
            for own, column in table.columns.items():
                if own not in columns:
                    columns[own] = self.frames[name][own] if column.modelled else column.made(made, own)
            found[name] = pd.DataFrame(columns, columns=list(table.columns))
        for name, own, link in every_link(self.schema):
            places = rows_named(named[name][own], link, name, self._units, self.schema, done.get(root, 0))
            key = found[link.to][self.schema.tables[link.to].keys[0]]
            cells = key.astype("Int64") if key.dtype.kind in "iu" else key
            found[name][own] = pd.Series(cells.array.take(places, allow_fill=True))
        found = {name: found[name] for name in self.schema.tables}
        if before is None:
            found |= {name: table.frame for name, table in (self.schema.public or {}).items()}
        return found


def _hung_rows(many: Ints, parents: Ints) -> tuple[Ints, Ints]:
    """Return the places of the rows that hang on some rows of their parent, and which of these each hangs on.

    Args:
        many: ``(P,)`` how many rows each row of the parent has.
        parents: ``(Q,)`` places of rows of the parent.
    """
    first, own = np.cumsum(many) - many, many[parents]
    owner = np.repeat(np.arange(len(parents)), own)
    return first[parents][owner] + np.arange(len(owner)) - np.repeat(np.cumsum(own) - own, own), owner


def _hashed(frame: pd.DataFrame) -> Marks:
    return pd.util.hash_pandas_object(frame, index=False).to_numpy().astype(np.uint64)


def marked(units: int) -> Marks:
    """Return numbers as good as random for units without keys, such as synthetic ones: by their place."""
    mixed = np.arange(units, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    return remarked(mixed)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RelatedSet(Loaded):
    """Private units.

    Attributes:
        content: All of them.
    """

    content: RelatedRows

    @property
    def frame(self) -> pd.DataFrame:
        """The root's columns, as ``table.column``."""
        root = self.content.schema.root
        return self.content.frames[root].add_prefix(f"{root}.")

    @override
    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        table, _, own = column.partition(".")
        return self.content.frames[table][own]
