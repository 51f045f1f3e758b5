"""What a method is: its settings, what it touches, what it costs, and how it trains.

A method's module imports no torch until :meth:`Method.train` or :meth:`Method.build` is called, so that a plan stays
quick. A new method is one folder and one line in :mod:`doublure.methods.registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from doublure.access import Access
from doublure.errors import SettingError
from doublure.guarantee import Kind
from doublure.schema import Schema
from doublure.training.job import Job
from doublure.training.settings import MethodSettings, Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder


class Method(Protocol):
    """One way to train a generator.

    Attributes:
        name: As it is asked for.
        kinds: The kinds of data that it takes.
        guarantee: The kind of its claim.
        settings_type: The model of its settings; one for each kind of data, if they differ.
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[str]]
    guarantee: ClassVar[Kind]
    settings_type: ClassVar[type[MethodSettings] | Mapping[str, type[MethodSettings]]]

    def resolve_defaults(self, schema: Schema, settings: MethodSettings) -> MethodSettings:
        """Return the settings with every None decided from public facts."""

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float | None:
        """Return q, if the method draws lots."""

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Return what training touches, at this noise; learned facts are the plan's own accesses."""

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds."""

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Return what the user should know before the data is read."""

    def ready(self, schema: Schema, settings: MethodSettings) -> None:
        """Look whether all that a fit needs beside the private data is there, before anything is charged.

        Args:
            schema: Of the private data, as planned.
            settings: With defaults resolved.
        """

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator of the right shape."""

    def train(self, job: Job) -> nn.Module:
        """Train and return the generator to release."""


def settings_of(method: Method, kind: str, given: dict[str, Any]) -> MethodSettings:
    """Read a method's settings for a kind of data.

    Raises:
        SettingError: The method does not take this kind, or a setting is wrong.
    """
    if kind not in method.kinds:
        raise SettingError(f"does not take kind {kind}", field=f"method {method.name}", remedy="choose another method")
    types = method.settings_type
    return (types if isinstance(types, type) else types[kind]).read(given)


def refuse_loose_delta(delta: float, units: int, *, field: str) -> None:
    """Refuse a chance that would allow publishing one unit's record outright.

    Args:
        delta: What was asked for.
        units: The public number of units.
        field: Where it was asked for.

    Raises:
        SettingError: It is 1/units or more.
    """
    if delta >= 1 / units:
        raise SettingError(
            f"{delta:g} is at least 1/units, which allows publishing one unit's record outright",
            field=field,
            remedy=f"give one well below {1 / units:.2g}, such as {0.1 / units:.0e}",
        )
