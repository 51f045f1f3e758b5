"""Columns of type ``code``: a public list with chapters and blocks above it, such as ICD-10, ATC or NACE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StrictStr, model_validator
from typing_extensions import override

from doublure.schema.allowed import Allowed
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.code_tree import CodeDomain, CodeList, numbered
from doublure.schema.columns.column import MissingState
from doublure.schema.columns.integer_domain import IntegerDomain
from doublure.schema.columns.listed import ListedColumn
from doublure.schema.columns.sql_words import Expr, NotInSql, SqlCell, SqlReading, SqlWords
from doublure.schema.fact_states import KeyFault, Learn
from doublure.schema.scalars import Positive, Value, label

_ALL = "*"
"""The mark behind a group's name where all of its codes are meant."""


def _texts(given: object) -> object:
    """Return what YAML holds as texts; the name of a file stands for its lines in a schema's own file alone."""
    if isinstance(given, str):
        raise ValueError("parents names a file, and only a schema's own file can; load the schema from a file")
    return {label(key): label(value) for key, value in given.items()} if isinstance(given, Mapping) else given


class CodeColumn(ListedColumn):
    """Codes of a public list, and the groups above them."""

    like: ClassVar[str] = "code"

    type: Literal["code"] = "code"
    levels: Annotated[tuple[Positive, ...], Field(min_length=1)] | None = Field(
        default=None, description="letters and digits of the prefixes that name groups, separators not counted"
    )
    parents: Annotated[Mapping[StrictStr, StrictStr], Field(min_length=1), BeforeValidator(_texts)] | None = Field(
        default=None, description="the group above each code and group, or a CSV file code,parent of them"
    )
    unlisted: Literal["chapter", "name"] | None = Field(
        default=None,
        description="a code outside the list counts as the smallest group that it shares with it, and comes out as a "
        "listed code of that group (chapter), or under the group's name (name)",
    )

    @property
    @override
    def domain(self) -> tuple[Value, ...]:
        return self._codes.domain

    @property
    @override
    def labels(self) -> list[str]:
        return list(self._codes.labels)

    @property
    @override
    def told(self) -> Mapping[str, Any]:
        return {"parents": dict(self.parents or {})} if self.levels is None else {"levels": list(self.levels)}

    @property
    @override
    def level_numbers(self) -> tuple[int, ...]:
        return self._codes.tree.numbers

    @override
    def grouped(self, level: int) -> tuple[str, ...]:
        if level not in (numbers := self.level_numbers):
            raise ValueError(f"has no level {level}; name one of {', '.join(map(str, numbers))}")
        return tuple(above[numbers.index(level)] for above in self._codes.above)

    @override
    def stand_ins(self) -> Callable[[str], str | None]:
        if self.unlisted is None:
            return super().stand_ins()
        codes, other = self._codes, super().stand_ins()

        def stand_in(text: str) -> str | None:
            shared = [group for group in codes.tree.above(text) if group in codes.places]
            return shared[-1] if shared else other(text)

        return stand_in

    @override
    def stand_in_sql(self, said: Expr, words: SqlWords) -> Expr | None:
        """Return the place of the smallest group, which a text of a longer code begins with, or has above it."""
        if self.unlisted is None:
            return None
        codes, stand_in = self._codes, self.stand_ins()
        if self.parents is not None:
            found = {text: group for text in self.parents if text not in codes.places and (group := stand_in(text))}
            return words.look_up(said, {text: codes.places[group] for text, group in found.items()})
        begun = []
        for level in reversed(range(codes.tree.depth)):
            groups = {above[level] for above in codes.above}
            groups = {each for each in groups if each in codes.places and codes.tree.ends_at(each, level)}
            for length, own in groupby(sorted(groups, key=lambda each: (len(each), each)), key=len):
                places = {group: codes.places[group] for group in own}
                begun.append(words.look_up(words.piece(said, 1, length), places))
        return sql.call("COALESCE", *begun) if begun else None

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        texts = isinstance(self.values, tuple) and any(isinstance(value, str) for value in self.values)
        if self.unlisted is not None and not (texts and cell.kind == "text"):
            raise NotInSql("counts unlisted codes by the begin of texts, and is of numbers; make a view that casts it")
        return super().in_sql(cell, words)

    @override
    def number_of(self, written: object) -> float:
        place = self._codes.places.get(self.spelt(written))
        return super().number_of(written) if place is None else float(place)

    @override
    def integer_domain(self) -> IntegerDomain:
        base = super().integer_domain()
        groups = tuple(map(numbered, zip(*self._codes.above, strict=True))) or ((0,),)
        return CodeDomain(
            first=base.first, last=base.last, nullable=base.nullable, groups=groups, proxies=self._proxies
        )

    @property
    def _proxies(self) -> tuple[int, ...]:
        """Places of groups that are no value of the list, and are drawn as one of their codes."""
        if self.unlisted != "chapter" or not isinstance(self.values, tuple):
            return ()
        end = len(self.domain) - (self.other is not None and label(self.other) not in map(label, self.values))
        return tuple(range(len(self.values), end))

    @override
    def one_of(self, cells: Sequence[object]) -> Allowed:
        """Return single cells, and all codes of each group that is named: ``A00``, or ``A00*`` where that is a code."""
        groups = dict(self._groups_named(cells))
        found = super().one_of([cell for cell in cells if not self._names_group(cell) or label(cell) not in groups])
        within = dict.fromkeys(float(place) for places in groups.values() for place in places)
        return replace(found, values=tuple(dict.fromkeys((*found.values, *within))))

    def _names_group(self, cell: object) -> bool:
        """Return whether a cell may name a group: it is no declared code, and no missing cell."""
        if cell is None or isinstance(cell, MissingState):
            return False
        declared = len(self.values) if isinstance(self.values, tuple) else 0
        return self._codes.places.get(label(cell), declared) >= declared

    def _groups_named(self, cells: Sequence[object]) -> Iterator[tuple[str, list[int]]]:
        for text in {label(cell) for cell in cells if self._names_group(cell)}:
            name = text.removesuffix(_ALL)
            places = [place for place, groups in enumerate(self._codes.above) if name in groups]
            if places:
                yield text, places

    @override
    def learnable(self, fact: str) -> bool:
        return fact != "values" and super().learnable(fact)  # a public list

    @property
    def _codes(self) -> CodeList:
        codes = self.values if isinstance(self.values, tuple) else ()
        with_groups = self.unlisted is not None
        return CodeList.of(codes, self.levels, self.parents, with_groups=with_groups, other=self.other)

    @model_validator(mode="after")
    def _tree_fits(self) -> CodeColumn:
        if isinstance(self.values, Learn):
            raise KeyFault(
                "values", "are a public list, and not learned; write values: {file: codes.txt}", subject="codes"
            )
        if (self.levels is None) == (self.parents is None):
            raise KeyFault(
                "levels",
                "needs levels or parents, one of the two; write levels: [1, 3] or parents: FILE",
                subject="code",
            )
        if self.levels is not None and tuple(sorted(set(self.levels))) != self.levels:
            raise KeyFault("levels", "are not in ascending order; write the shortest prefix first, such as [1, 3]")
        if self.domain and not self._codes.tree.depth:
            raise KeyFault("parents", "have no group above any code; list code,parent for the codes in values")
        return self
