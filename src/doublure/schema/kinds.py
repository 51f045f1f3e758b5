"""The kinds of data: the public facts of each, and tables of the parts that handle it.

A :class:`Kind` holds public facts: the models of its schema, its words and its limits. What is done with its records
stands in the folder that does it, as that folder's :class:`ByKind`: how data is opened (:mod:`doublure.data.opening`),
drafted, checked, encoded, measured, evaluated, shown and written. No other code asks for the kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from doublure.errors import SettingError
from doublure.schema.images import ImageSchema, ResolvedImageSchema
from doublure.schema.relational import RelationalSchema, ResolvedRelationalSchema
from doublure.schema.schema import MODELS, SPLIT, ResolvedSchema, Schema
from doublure.schema.series import ResolvedSeriesSchema, SeriesSchema
from doublure.schema.tables import ResolvedTableSchema, TableSchema
from doublure.schema.visits import ResolvedVisitsSchema, VisitsSchema

T = TypeVar("T")


class ByKind(dict[str, T]):
    """Kind of data -> what a folder does with it. A kind from elsewhere is added by its name.

    Args:
        part: What it is, for the refusal of a kind that has none.
        known: Of the kinds of this package.

    Attributes:
        unlisted: Of kinds that no file names by themselves, and no list shows.
    """

    def __init__(self, part: str, **known: T) -> None:
        super().__init__(known)
        self.part = part
        self.unlisted: dict[str, T] = {}

    def __missing__(self, kind: str) -> T:
        """Return the part of a kind that is not listed; refuse one that has none.

        Raises:
            SettingError: Naming both.
        """
        if kind in self.unlisted:
            return self.unlisted[kind]
        raise SettingError(f"is of kind {kind}, which has no {self.part}", field="data", remedy="see docs/extending.md")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of data, as far as it is public.

    Attributes:
        name: What stands under ``kind`` in a schema's file.
        schema: The model of its schema.
        resolved: The same with every fact known.
        records: What its records are called.
        lines: What the lines of its files are called.
        least: What the baseline is called: records whose parts are drawn independently.
        limits: What a card says first of synthetic records.
        chunk: How many records are drawn at once.
        fitted: What a method has to take, in words; its records if None.
    """

    name: str
    schema: type[Schema]
    resolved: type[ResolvedSchema]
    records: str
    lines: str
    least: str
    limits: tuple[str, ...]
    chunk: int
    fitted: str | None = None

    @property
    def called(self) -> str:
        """The name of its records in a title, in the plural."""
        return self.records.removeprefix("units of ")


KINDS: ByKind[Kind] = ByKind("schema")


def register(kind: Kind) -> None:
    """Make a kind of data known, to schema files as well. It holds for this process.

    Raises:
        SettingError: There is one of that name.
    """
    if kind.name in KINDS:
        raise SettingError(f"{kind.name!r} is known already", field="kind", remedy="choose another name")
    KINDS[kind.name] = kind
    MODELS[kind.name] = (kind.schema, kind.resolved)


TABLES = Kind(
    name="table",
    schema=TableSchema,
    resolved=ResolvedTableSchema,
    records="rows",
    lines="rows",
    least="independent columns",
    limits=(
        "Every row is synthetic; one may still equal a real one.",
        "Rare combinations and small groups are approximated worst; check them before relying on them.",
    ),
    chunk=50_000,
)
IMAGES = Kind(
    name="images",
    schema=ImageSchema,
    resolved=ResolvedImageSchema,
    records="images",
    lines="images",
    least="class means",
    limits=(
        "Every image is synthetic; one may still look like a real one.",
        "Rare classes and unusual images are approximated worst; check them before relying on them.",
    ),
    chunk=500,
)
SERIES = Kind(
    name="series",
    schema=SeriesSchema,
    resolved=ResolvedSeriesSchema,
    records="series",
    lines="readings",
    least="independent steps",
    limits=(
        "Every series is synthetic; one may still look like a real one. None belongs to a day of the calendar.",
        "Peaks, rare attributes and what happens seldom are approximated worst; check them before relying on them.",
    ),
    chunk=5_000,
)
RELATIONAL = Kind(
    name="relational",
    schema=RelationalSchema,
    resolved=ResolvedRelationalSchema,
    records="units of related tables",
    lines="rows",
    least="independent tables",
    limits=(
        "Every row is synthetic, and so is every key; one unit may still equal a real one.",
        "The unit is a row of the root with everything that hangs on it, up to max_children rows of each table.",
        "A unit's rows follow one another by pairs of successive rows; what only longer histories show is not there.",
        "Rare combinations and small groups are approximated worst; check them before relying on them.",
    ),
    chunk=10_000,
)
VISITS = Kind(
    name=SPLIT,
    schema=VisitsSchema,
    resolved=ResolvedVisitsSchema,
    records="rows",
    lines="rows",
    least=TABLES.least,
    limits=(
        "Every row is synthetic, and so is every id; one may still equal a real one.",
        "Rows of one id belong together, as real ones do; of each unit at most max_records rows were used.",
        "A unit's rows follow one another by pairs of successive rows; what only longer histories show is not there.",
        "Rare combinations and small groups are approximated worst; check them before relying on them.",
    ),
    chunk=20_000,
    fitted="rows that belong together (unit.per_unit)",
)
for _kind in (TABLES, IMAGES, SERIES, RELATIONAL):
    register(_kind)
KINDS.unlisted[SPLIT] = VISITS
MODELS[SPLIT] = (VisitsSchema, ResolvedVisitsSchema)
