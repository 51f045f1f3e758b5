"""The base of frozen, validated models, listed without pydantic's names.

``dir`` of such a class or object lists the names of its subject. Pydantic's methods, deprecated ones included, can
still be called; tab completion does not show them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

_OF_EVERYTHING = frozenset(dir(object))
_PYDANTICS = frozenset(dir(BaseModel)) | {"model_fields", "model_computed_fields", "model_post_init"}
_HIDDEN = _PYDANTICS - _OF_EVERYTHING
_PRIVATE = ("__pydantic_", "_abc_")


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


__all__ = ["Model"]
