"""Settings of clipping and noise in a private critic's steps, for any kind of data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.training.gan_settings import AdversarialSettings

if TYPE_CHECKING:
    from doublure.private.clipping import Schedule

# Bounds on C and on its decay keep σ·C_t within float32 for every σ of a plan: a value that the noise would refuse must
# be refused before anything is charged.
Norm: TypeAlias = Annotated[float, Field(ge=1e-9, le=1e9)]
_LEAST_DECAY = 1e-6
_THIRD = 3
Sigma: TypeAlias = Annotated[float, Field(ge=1e-4, le=1e7)]


class PrivateSettings(AdversarialSettings):
    """Clipping and noise of a private critic on any kind of data.

    Attributes:
        max_grad_norm: C, the bound on a unit's gradient, from 1e-9 to 1e9.
        noise_multiplier: σ, the noise's standard deviation over C, given in place of ε: the run's cost then follows
            from it. None: calibrated to the requested ε.
        clipping_decay: The share of C that is left at the end (Frigerio's clipping decay, geometric in the generator's
            iterations), from 1e-6; 1 keeps C constant.
    """

    constants: ClassVar[dict[str, Any]] = {
        "noise_source": "os-keyed", "chunk_size": None, "local_steps": 1, "local_lr": 1e-2
    }  # fmt: skip

    max_grad_norm: Norm = 4.0
    noise_multiplier: Sigma | None = None
    clipping_decay: float = Field(default=1.0, ge=_LEAST_DECAY, le=1)

    @property
    def schedule(self) -> Schedule:
        """C_t by the generator's iteration."""
        from doublure.private.clipping import ConstantSchedule, GeometricSchedule

        if self.clipping_decay == 1:
            return ConstantSchedule(max_grad_norm=self.max_grad_norm)
        iterations = max(1, (self.steps or 1) // self.n_critic)
        return GeometricSchedule(
            max_grad_norm=self.max_grad_norm,
            decay=self.clipping_decay ** (1 / iterations),
            floor=self.max_grad_norm * self.clipping_decay,
        )

    @property
    def filter_bound(self) -> int | None:
        """B of each unit's privacy filter, in steps at full length; None: units have none."""
        return None


class IndividualSettings(PrivateSettings):
    """Individual privacy accounting: each unit takes part until it has cost what was planned for the worst one.

    Attributes:
        accounting: ``individual``: on all units in every step, each is used until its own loss reaches that of
            ``filter_steps`` steps at full length C; ``worst-case``: in all steps, each of which counts as one at C.
        filter_steps: B, with ``individual``. None: a third of ``steps``, which a unit has room for whose gradient's
            length is any share of C as often (the mean square of a uniform share is 1/3).
    """

    unsaid: ClassVar[dict[str, Any]] = {"accounting": "worst-case", "filter_steps": None}

    accounting: Literal["worst-case", "individual"] = "worst-case"
    filter_steps: int | None = Field(default=None, ge=1, le=10_000_000)

    @model_validator(mode="after")
    def _has_filters(self) -> Self:
        if self.filter_steps is not None and self.accounting != "individual":
            raise ValueError("filter_steps is for units that are accounted for one by one; set accounting=individual")
        return self

    @property
    @override
    def filter_bound(self) -> int | None:
        return self.filter_steps

    @override
    def resolve_defaults(self, schema: Schema, **sizes: Any) -> Self:
        if self.accounting != "individual":
            return super().resolve_defaults(schema, **sizes)
        units = schema.public_units
        if self.lot_size is not None and self.lot_size < units:
            message = "is for lots, and individual accounting needs every unit in every step"
            raise SettingError(message, field="lot_size", remedy="leave it out, or set accounting=worst-case")
        bound = self.filter_steps or (sizes["steps"] if self.steps is None else max(1, self.steps // _THIRD))
        steps = self.steps or _THIRD * bound
        if bound > steps:
            raise SettingError(f"is above the {steps} steps there are", field="filter_steps", remedy="lower it")
        decided = self.model_copy(update={"lot_size": units, "steps": steps, "filter_steps": bound})
        return super(IndividualSettings, decided).resolve_defaults(schema, **sizes)


def share_event(noise_multiplier: float, share: float, rate: float, steps: int) -> GaussianEvent:
    """Return steps that together have the precision of a share of one Gaussian mechanism, in 1/σ².

    Args:
        noise_multiplier: σ of the whole.
        share: The share of the whole, above 0.
        rate: q of each step's lot.
        steps: T.
    """
    precision = share / noise_multiplier**2
    if rate == 1:
        return GaussianEvent(noise_multiplier=math.sqrt(steps / precision), steps=steps)
    # Many Poisson lots are nearly one Gaussian mechanism of 1/σ² = q² T (exp(1/σ_t²) - 1) (Bu et al. 2020,
    # arXiv:1911.11607). This only splits the budget; the total cost is computed exactly.
    each = 1 / math.sqrt(math.log1p(precision / (rate**2 * steps)))
    return GaussianEvent(noise_multiplier=each, sample_rate=rate, steps=steps)
