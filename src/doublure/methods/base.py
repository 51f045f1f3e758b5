"""What a method is: its settings, what it touches, what it costs, and how it trains.

A method's module imports no torch until :meth:`Method.train` or :meth:`Method.build` is called, so that a plan stays
quick. A new method is one file and one line in :mod:`doublure.methods.table`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from doublure.access import Access
from doublure.errors import SettingError
from doublure.guarantee import Kind
from doublure.progress import Progress, Silent
from doublure.schema import ResolvedSchema, Schema

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.encode.table import TableEncoder
    from doublure.private.records import PrivateRecords


class MethodSettings(BaseModel):
    """A method's own settings. ``None`` means: chosen by the plan from public facts."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def read(cls, given: dict[str, Any]) -> Self:
        """Check settings given by name.

        Raises:
            SettingError: A name is unknown or a value is out of range.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"]) or "settings"
            if first["type"] == "extra_forbidden":
                known = ", ".join(sorted(cls.model_fields))
                raise SettingError(
                    "is not a setting of this method", field=name, remedy=f"use one of: {known}"
                ) from None
            message = str(first["msg"]).removeprefix("Value error, ")
            raise SettingError(message[:1].lower() + message[1:], field=name, remedy="see docs/methods.md") from None


@dataclass(frozen=True, kw_only=True)
class Work:
    """How much a fit computes and holds, from public facts.

    Attributes:
        flops: Floating-point operations of all steps.
        steps: Steps, each with an overhead of its own.
        memory_bytes: Peak memory beyond the libraries.
    """

    flops: float
    steps: int
    memory_bytes: int


class Checkpoints(Protocol):
    """Keeps the state of a run that may be cut off."""

    def save(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Replace the kept state."""

    def load(self) -> dict[str, Tensor] | None:
        """Return the kept state, if there is one."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything a method needs to train, and nothing it could use to look at the data another way.

    Attributes:
        encoder: Rows <-> tensors.
        records: The private records, for the mechanism's hands only.
        settings: The method's settings, settled.
        noise_multiplier: σ, from the plan.
        sample_rate: q, from the plan.
        units: N, public or bought: the divisor and nothing else.
        authorise: Returns once the given noisy step is durably paid for.
        taken: Noisy steps already spent by an interrupted run.
        checkpoints: Where state is kept.
        progress: Who listens.
        seed: Public: initial weights and the generator's noise, never the privacy noise.
        device: Where to compute.
        log: Takes one public line of figures at a time.
    """

    encoder: TableEncoder
    records: PrivateRecords
    settings: MethodSettings
    noise_multiplier: float | None
    sample_rate: float
    units: int
    authorise: Callable[[int], None]
    checkpoints: Checkpoints
    taken: int = 0
    progress: Progress = field(default_factory=Silent)
    seed: int = 0
    device: str = "cpu"
    log: Callable[[dict[str, Any]], None] = lambda _: None


class Method(Protocol):
    """One way to train a generator."""

    name: ClassVar[str]
    kinds: ClassVar[frozenset[str]]
    guarantee: ClassVar[Kind]
    settings_type: ClassVar[type[MethodSettings]]

    def settle(self, schema: Schema, settings: MethodSettings) -> MethodSettings:
        """Return the settings with every None decided from public facts."""

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float | None:
        """Return q, if the method draws lots."""

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Return what training touches, at this noise; learned facts are the plan's own accesses."""

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds."""

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Return what the user should know before the data is read."""

    def build(self, encoder: TableEncoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator of the right shape."""

    def train(self, job: Job) -> nn.Module:
        """Train and return the generator to release."""


def encoder_for(schema: ResolvedSchema, settings: MethodSettings) -> TableEncoder:
    """Return the encoder that a method's settings ask for."""
    from doublure.encode.table import TableEncoder

    return TableEncoder(schema, numerics=getattr(settings, "numerics", "bins"), bins=getattr(settings, "bins", 32))
