"""The base class of all methods' settings, with reading, validation and error messages."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from doublure.encode.choice import EncodingChoice
from doublure.errors import SettingError
from doublure.models import Model, worded
from doublure.support.guessing import suggest

S = TypeVar("S", bound="MethodSettings")
LearningRate: TypeAlias = Annotated[float, Field(gt=0, le=10)]
"""Larger rates have no use, and the largest diverge: they are refused before anything is charged."""


@dataclass(frozen=True)
class PublicPlace:
    """A public source that a setting names.

    Attributes:
        setting: Its name.
        path: The file or folder, or what else it may be.
        facts: The facts of it that a plan has; None before it has any.
    """

    setting: str
    path: str
    facts: object

    def refuse_private(self, data: object) -> None:
        """Refuse private data that is this source: records would come out as public ones do, without noise.

        Args:
            data: As it is given to a fit; no record is looked at.

        Raises:
            SettingError: It is the same file or folder, or one of the two folders lies in the other.
        """
        if not isinstance(data, (str, os.PathLike)):
            return
        (place, _, split), (its, _, its_split) = (os.fspath(each).partition("#") for each in (data, self.path))
        if split and its_split and split != its_split:  # of one set, and apart
            return
        own, other = Path(place).resolve(), Path(its).resolve()
        if own.is_dir() and other.is_dir():
            same = own == other or own in other.parents or other in own.parents
        else:
            same = own.exists() and other.exists() and own.samefile(other)
        if same:
            remedy = "name what is public without the private records"
            raise SettingError("is the private data itself", field=self.setting, remedy=remedy)


class MethodSettings(Model):
    """A method's own settings. ``None`` means: chosen by the plan from public facts."""

    data: ClassVar[str]
    """The kind of data that the settings are for, where a method has settings for several kinds."""

    constants: ClassVar[Mapping[str, Any]] = {}
    """Former settings of a class, as JSON: every plan still holds them, so that its hash stays the same."""

    unsaid: ClassVar[Mapping[str, Any]] = {}
    """Later settings of a class, as JSON, with what plans mean that do not say them."""

    @classmethod
    def all_constants(cls) -> dict[str, Any]:
        """Return the former settings of the class and its bases, without those that are fields again."""
        own = [vars(each).get("constants", {}) for each in reversed(cls.__mro__)]
        found = {name: value for constants in own for name, value in constants.items()}
        return {name: value for name, value in found.items() if name not in cls.model_fields}

    @classmethod
    def read(cls, given: dict[str, Any]) -> Self:
        """Check settings given by name; a former one may be given as the constant that it is now.

        Raises:
            SettingError: A name is unknown, a value is out of range, or a former setting has another value.
        """
        constants = cls.all_constants()
        for name, value in given.items():
            form = cls.model_fields[name].annotation if name in cls.model_fields else constants.get(name, bool)
            if isinstance(value, bool) and bool not in (form, *get_args(form)):  # pydantic would read true as 1
                raise SettingError("must not be true or false", field=name, remedy="see docs/methods.md")
        own = cls._validated({name: value for name, value in given.items() if name not in constants})
        for name in (name for name in given if name in constants and given[name] != constants[name]):
            message = f"is no setting any more, and always {json.dumps(constants[name])}"
            raise SettingError(message, field=name, remedy="leave it out, or use the version that made the plan")
        return own

    @classmethod
    def _validated(cls, given: dict[str, Any]) -> Self:
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"]) or "settings"
            if first["type"] == "extra_forbidden":
                remedy = suggest(name, sorted(cls.model_fields))
                raise SettingError("is not a setting of this method", field=name, remedy=remedy) from None
            raise SettingError(worded(first), field=name, remedy="see docs/methods.md") from None

    @property
    def summary(self) -> str | None:
        """A line about a method of optional parts, with those that run; None: the registry's says it."""
        return None

    @property
    def quicker(self) -> tuple[str, Self] | None:
        """The setting that makes a fit quicker, with the settings under it; None where there is none."""
        return None

    @property
    def sampling_only_fields(self) -> frozenset[str]:
        """Names of the settings that only sampling reads, so that they may be changed after a fit."""
        return frozenset()

    def sampling_with(self, changed: Mapping[str, Any]) -> Self:
        """Return the settings with changes to some that only sampling reads.

        Raises:
            SettingError: A setting is not one of them, or a value is out of range.
        """
        for name in sorted(set(changed) - self.sampling_only_fields):
            remedy = (
                f"change {' or '.join(sorted(self.sampling_only_fields))}, or fit again"
                if self.sampling_only_fields
                else "fit again"
            )
            raise SettingError("is no setting that can be changed when sampling", field=name, remedy=remedy)
        return self.read({**dict(self), **changed})

    @property
    def checkpoint_every(self) -> int | None:
        """Steps between two checkpoints; None: all steps."""
        return None

    @property
    def encoding(self) -> EncodingChoice:
        """The encoding of records, where a kind of data leaves a choice."""
        return EncodingChoice()

    def published(self) -> Self:
        """Return the settings without those of this machine, such as the path of a folder."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a plan file holds them, former ones included."""
        said = {name: value for name, value in self.model_dump(mode="json").items() if self._is_said(name, value)}
        return {**said, **self.all_constants()}

    @property
    def public_place(self) -> PublicPlace | None:
        """The public source that a setting names; None without one."""
        return None

    @classmethod
    def of_plan(cls, given: Mapping[str, Any]) -> Self:
        """Read the settings of a plan file, which may be of an earlier version, or forged: no source is opened.

        Raises:
            SettingError: As :meth:`read`, or the plan lacks the facts of a public source, which would be read.
        """
        if isinstance(given.get("provenance"), str):  # which a person may give as the name of a file
            raise SettingError("is no mapping of keys", field="provenance", remedy="make the plan again")
        own = cls.read({**cls.unsaid, **given})
        place = own.public_place
        if place is not None and place.facts is None:
            remedy = "make the plan again"
            raise SettingError("is a public source of which the plan has no facts", field=place.setting, remedy=remedy)
        return own

    def _is_said(self, name: str, value: object) -> bool:
        return name not in self.unsaid or value != self.unsaid[name]

    def shown(self) -> dict[str, Any]:
        """Return the settings that the explanation of a plan shows."""
        return self.model_dump()

    @property
    def public_sources(self) -> tuple[str, ...]:
        """Public data and networks in the synthesizer, one line each, as a card repeats them."""
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of a claim that these settings add."""
        return ()

    @property
    def excluded(self) -> tuple[str, ...]:
        """Exclusions from a claim that these settings add."""
        return ()


class RecipeSettings(MethodSettings):
    """Settings with recipes: sets of defaults by name, for settings that are not given.

    Attributes:
        recipe: The name of one.
    """

    recipes: ClassVar[Mapping[str, Mapping[str, Any]]]
    beside: ClassVar[frozenset[str]] = frozenset()
    """Keys of recipes that are no settings."""

    recipe: str

    @model_validator(mode="before")
    @classmethod
    def _as_named(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        named = cls.recipes.get(given.get("recipe", cls.model_fields["recipe"].default), {})
        return {key: value for key, value in named.items() if key not in cls.beside} | dict(given)

    @field_validator("recipe")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in cls.recipes:
            raise ValueError(f"there is no recipe of this name; use one of {', '.join(cls.recipes)}")
        return name


def by_kind(*types: type[S]) -> dict[str, type[S]]:
    """Return settings of one method under the kind of data that each is for."""
    return {one.data: one for one in types}


@dataclass(frozen=True, kw_only=True)
class Work:
    """Estimate of a fit's computation and memory, from public facts.

    Attributes:
        flops: Floating-point operations of all steps.
        steps: Noisy steps.
        memory_bytes: Peak memory beyond the libraries.
        records_bytes: The part of ``memory_bytes`` for records that can be queried in partitions instead; 0 for a
            method that must hold them.
        database_bytes: The part of ``memory_bytes`` for records that a database can count instead, and other partitions
            cannot; else 0.
        drawn_bytes: The part of ``memory_bytes`` for records that can stay on disk and be read lot by lot; 0 for a
            method that must hold them, or that queries partitions.
        free_steps: Steps of networks trained on earlier releases; they cost time and no budget.
    """

    flops: float
    steps: int
    memory_bytes: int
    free_steps: int = 0
    records_bytes: int = 0
    database_bytes: int = 0
    drawn_bytes: int = 0

    @property
    def counted_bytes(self) -> int:
        """The part of ``memory_bytes`` for records that a database can count instead."""
        return self.records_bytes or self.database_bytes


def lower_settings(settings: S, **most: int) -> S:
    """Return settings with some numbers capped; missing and undecided ones are left as they are."""
    held = {name: getattr(settings, name, None) for name in most}
    return settings.model_copy(update={name: min(each, most[name]) for name, each in held.items() if each is not None})
