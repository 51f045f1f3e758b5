"""The column types that a schema can name, and columns read by their ``type``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from inspect import getattr_static
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from doublure.errors import SettingError
from doublure.schema.columns.boolean import BooleanColumn
from doublure.schema.columns.category import CategoryColumn
from doublure.schema.columns.code import CodeColumn
from doublure.schema.columns.column import Column
from doublure.schema.columns.constant import ConstantColumn
from doublure.schema.columns.date import DateColumn
from doublure.schema.columns.datetime import DatetimeColumn
from doublure.schema.columns.duration import DurationColumn
from doublure.schema.columns.fake import FakeColumn
from doublure.schema.columns.identifier import IdColumn
from doublure.schema.columns.integer import IntegerColumn
from doublure.schema.columns.lookup import PublicColumn
from doublure.schema.columns.month import MonthColumn
from doublure.schema.columns.ordinal import OrdinalColumn
from doublure.schema.columns.parsed import ParsedColumn, check_parsing
from doublure.schema.columns.real import RealColumn
from doublure.schema.columns.time import TimeColumn
from doublure.schema.columns.year import YearColumn

MODELS: tuple[type[Column], ...] = (
    IntegerColumn,
    RealColumn,
    CategoryColumn,
    OrdinalColumn,
    CodeColumn,
    BooleanColumn,
    DateColumn,
    DatetimeColumn,
    MonthColumn,
    YearColumn,
    TimeColumn,
    DurationColumn,
    IdColumn,
    FakeColumn,
    PublicColumn,
    ConstantColumn,
)
_NAMED: Mapping[str, type[Column]] = {model.model_fields["type"].default: model for model in MODELS}
TYPES: tuple[str, ...] = tuple(_NAMED)
_MEET_CELLS = (
    "read", "read_at_once", "reread", "spelling", "numbers_of", "cells_of", "loaded_cells_of", "rounded", "snap",
    "snapped_numbers_of", "csv_cells", "stored_cells", "snapped", "kept_numbers", "kept_cells", "loaded_cells",
    "in_sql", "fitted_in_sql",
)  # fmt: skip
"""Methods that are given whole columns of private cells, each to be read by itself, or that write what those read."""
_HOOKS = (
    "__getattribute__", "__getattr__", "__setattr__", "__init__", "__new__", "__post_init__", "model_post_init",
)  # fmt: skip
"""Methods by which a class could put others in the place of those."""
_BASES: tuple[Any, ...] = (*MODELS, ParsedColumn)
_TYPE_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_REGISTERED: dict[str, type[Column]] = {}
_WITH_REGISTERED: list[TypeAdapter[Any]] = []
"""The union of all types, once there are some from elsewhere."""


class _Registered:
    """Reads, writes and describes columns whose type is registered from elsewhere; all others as ever."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        own = handler(source)
        written = core_schema.wrap_serializer_function_ser_schema(_write, schema=own, info_arg=True)
        return core_schema.no_info_wrap_validator_function(_read, own, serialization=written)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(_WITH_REGISTERED[-1].core_schema if _WITH_REGISTERED else core)


def _read(data: Any, handler: core_schema.ValidatorFunctionWrapHandler) -> Any:
    name = data.get("type") if isinstance(data, Mapping) else getattr(data, "type", None)
    known = isinstance(name, str) and name in _REGISTERED
    return _WITH_REGISTERED[-1].validate_python(data) if known else handler(data)


def _write(column: Any, handler: core_schema.SerializerFunctionWrapHandler, info: core_schema.SerializationInfo) -> Any:
    if getattr(column, "type", None) not in _REGISTERED:
        return handler(column)
    return column.model_dump(mode=info.mode, exclude_none=info.exclude_none, exclude_defaults=info.exclude_defaults)


if TYPE_CHECKING:
    AnyColumn: TypeAlias = Column
else:
    AnyColumn = Annotated[reduce(or_, MODELS), Field(discriminator="type"), _Registered]
    """A column of a schema file: its ``type`` says which. The only place where column types are a union."""


def register(model: type[Any]) -> None:
    """Let the schema of a table name a column type that is defined elsewhere. It holds for this process.

    Args:
        model: A subclass of one of :data:`MODELS`, which it behaves like, or of ``ParsedColumn``, which says what one
            cell means; with a type of its own: ``type: Literal["percent"] = "percent"``. Another one of its name that
            was registered before is replaced.

    Raises:
        SettingError: It is no column, has no name of its own, reads private cells in its own way, in which one record
            could change how others are counted, or does not read its own examples as it says.
    """
    if not (isinstance(model, type) and issubclass(model, _BASES)):
        classes = ", ".join(each.__name__ for each in _BASES)
        raise SettingError(
            "is not the class of a column", field="column type", remedy=f"derive it from one of {classes}"
        )
    field, own = model.model_fields["type"], 'write type: Literal["NAME"] = "NAME" in its class'
    name = field.default
    if not isinstance(name, str) or get_args(field.annotation) != (name,) or _TYPE_NAME.fullmatch(name) is None:
        raise SettingError(f"{model.__name__} has no type of its own", field="column type", remedy=own)
    if name in TYPES:
        raise SettingError(
            f"{name!r} is a column type of doublure", field="column type", remedy=f"{own}, with a NAME that is free"
        )
    base: Any = next(each for each in model.__mro__ if each in _BASES)
    if model.like not in (base.like, name):
        raise SettingError(
            f"{model.__name__} is like another type than {base.__name__}",
            field="column type",
            remedy="take its like out",
        )
    for method in _MEET_CELLS:
        if getattr(model, method) is not getattr(base, method):
            raise SettingError(
                f"{model.__name__} has a {method} of its own, which would be given private cells",
                field="column type",
                remedy=f"take it out: cells are read as those of {base.__name__}",
            )
    own_classes = [each for each in model.__mro__ if each not in base.__mro__]
    hooks = [hook for hook in _HOOKS if any(hook in vars(each) for each in own_classes)]
    if hooks or type(model) is not type(base):
        raise SettingError(
            f"{model.__name__} has {hooks[0] if hooks else 'a metaclass'} of its own, which could read cells otherwise",
            field="column type",
            remedy="take it out: declare fields, and override methods that are given one cell or public facts",
        )
    if issubclass(model, ParsedColumn) and any(
        getattr_static(model, word) is not getattr_static(base, word) for word in ("parse", "format")
    ):
        check_parsing(model)
    _REGISTERED[name] = model
    every: Any = reduce(or_, models())
    _WITH_REGISTERED[:] = [TypeAdapter(Annotated[every, Field(discriminator="type")])]


def models() -> tuple[type[Column], ...]:
    """Return all column types, those that are registered from elsewhere last."""
    return (*MODELS, *_REGISTERED.values())


def unmodelled_types() -> tuple[str, ...]:
    """Return the names of the column types whose cells are not learned."""
    return tuple(model.model_fields["type"].default for model in models() if not model.modelled)


def type_named(name: str) -> type[Column]:
    """Return a column type by its name.

    Raises:
        KeyError: There is none of this name.
    """
    return _NAMED[name] if name in _NAMED else _REGISTERED[name]


def types() -> tuple[str, ...]:
    """Return the names of all column types, those that are registered from elsewhere last."""
    return (*TYPES, *_REGISTERED)
