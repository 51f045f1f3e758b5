"""Settings of clipping and noise in a private critic's steps, for any kind of data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import Field

from doublure.private.accounting import GaussianEvent
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.settings import LearningRate

if TYPE_CHECKING:
    from doublure.private.clipping import Schedule

# Bounds on C and on its decay keep σ·C_t within float32 for every σ of a plan: a value that the noise would refuse must
# be refused before anything is charged.
Norm: TypeAlias = Annotated[float, Field(ge=1e-9, le=1e9)]
_LEAST_DECAY = 1e-6
Sigma: TypeAlias = Annotated[float, Field(ge=1e-4, le=1e7)]


class PrivateSettings(AdversarialSettings):
    """Clipping and noise of a private critic on any kind of data.

    Attributes:
        max_grad_norm: C, the bound on a unit's gradient, from 1e-9 to 1e9.
        noise_multiplier: σ, the noise's standard deviation over C, given in place of ε: the run's cost then follows
            from it. None: calibrated to the requested ε.
        local_steps: Steps of the critic that each unit takes on its own records in one step of the run; the mean of
            their gradients is clipped to C. 1: its gradient.
        local_lr: Learning rate of these steps.
        clipping_decay: The share of C that is left at the end (Frigerio's clipping decay, geometric in the generator's
            iterations), from 1e-6; 1 keeps C constant.
    """

    constants: ClassVar[dict[str, Any]] = {"noise_source": "os-keyed", "chunk_size": None}

    max_grad_norm: Norm = 4.0
    noise_multiplier: Sigma | None = None
    local_steps: int = Field(default=1, ge=1, le=1_000)
    local_lr: LearningRate = 1e-2
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
