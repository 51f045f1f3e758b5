"""Contents of a plan, as ``plan.json`` holds them: figures, accesses, settings and the claim.

None of them depends on the data: a plan can be shown, signed and published before the data is opened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from doublure.access import Access
from doublure.guarantee import Guarantee
from doublure.private import accounting
from doublure.schema import Schema
from doublure.training.settings import MethodSettings

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class PlanContents:
    """A planned run in figures; :class:`doublure.Plan` reads, writes and explains it.

    Attributes:
        method: The name of the method that trains.
        schema: The public facts; what is to be learned is among :attr:`touches`.
        epsilon: The total, learned facts included; None where nothing is claimed. For a Bayesian claim the ceiling on
            ε_μ: above it the run is stated under its :attr:`worst_case` alone.
        delta: The total, or δ_μ.
        accountant: The accountant that composes the accesses.
        settings: The method's settings, with defaults resolved.
        touches: Every private access.
        sample_rate: q.
        noise_multiplier: σ, or what the accesses' own noises were calibrated by, where they are not one Gaussian; the
            guarantee then states none.
        max_grad_norm: C.
        steps: T, noisy steps.
        memory_bytes: An estimate of the peak.
        seconds_estimate: An estimate of the time that a fit takes one core of this machine.
        warnings: Warnings to read before the data is.
        guarantee: The claim that may be made afterwards.
    """

    method: str
    schema: Schema
    epsilon: float | None
    delta: float | None
    accountant: str | None
    settings: MethodSettings
    touches: tuple[Access, ...]
    sample_rate: float | None
    noise_multiplier: float | None
    max_grad_norm: float | None
    steps: int
    memory_bytes: int
    seconds_estimate: float
    warnings: tuple[str, ...]
    guarantee: Guarantee
    relation: Literal["add-remove"] = "add-remove"

    @property
    def kind(self) -> str:
        """The kind of data."""
        return self.schema.kind

    @property
    def unit(self) -> dict[str, Any]:
        """The unit of privacy."""
        return self.schema.unit.model_dump(mode="json")

    @property
    def schema_sha256(self) -> str:
        """The schema's hash."""
        return self.schema.sha256

    @property
    def worst_case(self) -> tuple[float, float] | None:
        """The (ε, δ) that holds for any record where the claim is Bayesian; the ledger is charged this."""
        said = self.guarantee.worst_case
        if said is self.guarantee or said.epsilon is None or said.delta is None:
            return None
        return said.epsilon, said.delta

    @property
    def learned(self) -> tuple[Access, ...]:
        """The accesses that buy facts, in the schema's order."""
        return tuple(access for access in self.touches if access.path is not None)

    @property
    def exact(self) -> bool:
        """Whether all noise is exact, so that floating-point numbers are no side channel."""
        return all(access.exact for access in self.touches)

    @property
    def training(self) -> tuple[Access, ...]:
        """The accesses that train, in the order in which they are made."""
        return tuple(access for access in self.touches if access.path is None)

    def to_json(self) -> dict[str, Any]:
        """Return what ``plan.json`` holds.

        Example:
            >>> plan.to_json()["touches"][0]["purpose"]
            'count wide columns in public cells'
        """
        names = ("method", "kind", "schema_sha256", "epsilon", "delta", "unit", "relation", "accountant")
        figures = ("sample_rate", "noise_multiplier", "max_grad_norm", "steps", "memory_bytes", "seconds_estimate")
        return {
            "version": VERSION,
            **{name: getattr(self, name) for name in names},
            "kind": self.schema.file_kind,
            "settings": self.settings.to_json(),
            "touches": [access.to_json() for access in self.touches],
            **{name: getattr(self, name) for name in figures},
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_json(),
            "schema": self.schema.to_plain(),
        }


def with_prices(made: PlanContents) -> PlanContents:
    """Return the plan with what each access for training would cost alone."""
    return replace(made, touches=tuple(_priced(access, made.accountant) for access in made.touches))


def is_priced(access: Access) -> bool:
    """Whether a price follows from an access's event; that of a fact is the schema's, and some have none."""
    return access.path is None and access.event is not None and bool(access.delta)


def _priced(access: Access, accountant: str | None) -> Access:
    if access.event is None or not is_priced(access):
        return access
    alone = accounting.epsilon_of([access.event], access.delta, accountant=accountant or "pld")  # type: ignore[arg-type]
    return replace(access, epsilon=alone)
