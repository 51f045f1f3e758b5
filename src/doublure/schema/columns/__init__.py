"""The column types of a table, one file a type, with facts to be declared, learned or refused."""

from doublure.schema.columns.bins import PublicBins
from doublure.schema.columns.boolean import BooleanColumn, truth_of
from doublure.schema.columns.calendar import EPOCH, SECONDS, CalendarColumn
from doublure.schema.columns.category import CategoryColumn
from doublure.schema.columns.code import CodeColumn
from doublure.schema.columns.column import Column
from doublure.schema.columns.column_facts import Clock, Role
from doublure.schema.columns.date import DateColumn
from doublure.schema.columns.datetime import DatetimeColumn
from doublure.schema.columns.identifier import IdColumn
from doublure.schema.columns.integer import IntegerColumn
from doublure.schema.columns.integer_domain import IntegerDomain, NumberDomain, Scale, TimeDomain
from doublure.schema.columns.listed import MOST_VALUES, ChoiceColumn, ListedColumn
from doublure.schema.columns.number import BoundedColumn, NumberColumn
from doublure.schema.columns.ordinal import OrdinalColumn
from doublure.schema.columns.parsed import ParsedColumn
from doublure.schema.columns.real import RealColumn
from doublure.schema.columns.registry import (
    MODELS,
    TYPES,
    AnyColumn,
    models,
    register,
    type_named,
    types,
    unmodelled_types,
)
from doublure.schema.scalars import Value, label

__all__ = [
    "EPOCH",
    "MODELS",
    "MOST_VALUES",
    "SECONDS",
    "TYPES",
    "AnyColumn",
    "BooleanColumn",
    "BoundedColumn",
    "CalendarColumn",
    "CategoryColumn",
    "ChoiceColumn",
    "Clock",
    "CodeColumn",
    "Column",
    "DateColumn",
    "DatetimeColumn",
    "IdColumn",
    "IntegerColumn",
    "IntegerDomain",
    "ListedColumn",
    "NumberColumn",
    "NumberDomain",
    "OrdinalColumn",
    "ParsedColumn",
    "PublicBins",
    "RealColumn",
    "Role",
    "Scale",
    "TimeDomain",
    "Value",
    "label",
    "models",
    "register",
    "truth_of",
    "type_named",
    "types",
    "unmodelled_types",
]
