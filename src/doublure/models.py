"""The base of frozen, validated models, listed without pydantic's names.

``dir`` of such a class or object lists the names of its subject. Pydantic's methods, deprecated ones included, can
still be called; tab completion does not show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

_OF_EVERYTHING = frozenset(dir(object))
_PYDANTICS = frozenset(dir(BaseModel)) | {"model_fields", "model_computed_fields", "model_post_init"}
_HIDDEN = _PYDANTICS - _OF_EVERYTHING
_PRIVATE = ("__pydantic_", "_abc_")

_WORDS = {
    "missing": "is missing",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
    "finite_number": "must be a finite number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text",
    "multiple_of": "must be a multiple of {multiple_of}",
    "tuple_type": "must be a list",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
    "model_type": "is filled in by the plan; leave it out",
}


class _Listed(ModelMetaclass):
    """Classes whose names are listed as those of their objects are."""

    def __dir__(cls) -> list[str]:
        return _own(cls, super().__dir__())


class Model(BaseModel, metaclass=_Listed):
    """A frozen model that refuses unknown keys, NaN and infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __dir__(self) -> Iterable[str]:
        """Return the names of fields, methods and properties, and those that every object has."""
        return _own(type(self), super().__dir__())


def _own(of: type, names: Iterable[str]) -> list[str]:
    """Return the names that are not pydantic's, or that one of our classes overrides."""
    ours = {
        name
        for each in of.__mro__
        if issubclass(each, BaseModel) and each.__module__ != __name__ and each is not BaseModel
        for name in (*vars(each), *getattr(each, "__pydantic_fields__", ()))
        if not name.startswith(("_", "model_"))
    }
    return sorted(name for name in {*names} if name in ours or not (name in _HIDDEN or name.startswith(_PRIVATE)))


def worded(error: Mapping[str, Any]) -> str:
    """Return pydantic's message in doublure's wording."""
    if error["type"] in _WORDS:
        return _WORDS[error["type"]].format(**error.get("ctx", {}))
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


__all__ = ["Model", "worded"]
