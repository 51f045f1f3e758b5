"""The critic's loss, one value per record, which is clipped as a whole (pitfalls.md, rule 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from doublure.errors import SettingError, counted

Critic = Callable[[Tensor, Tensor | None], Tensor]

# The slope's square root needs a floor: at a gradient of exactly zero its derivative is infinite.
_SLOPE_FLOOR = 1e-12


@dataclass(frozen=True, kw_only=True)
class CriticLoss:
    """The loss of one real record and its generated partner.

    ============ ===============================================
    ``wgan``     −D(x) + D(x̃)
    ``hinge``    max(0, 1 − D(x)) + max(0, 1 + D(x̃))
    ``logistic`` softplus(−D(x)) + softplus(D(x̃))
    ============ ===============================================

    plus λ (‖∇D(x̂)‖ − 1)² at x̂ = u x + (1 − u) x̃ (Gulrajani et al. 2017, equation 3).

    Args:
        kind: Which of the three.
        gradient_penalty: λ, zero for none.

    Raises:
        SettingError: The kind is unknown, or λ is negative or not finite.
    """

    kind: Literal["wgan", "hinge", "logistic"]
    gradient_penalty: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("wgan", "hinge", "logistic"):
            raise SettingError(
                f"{self.kind!r} is not a critic loss", field="loss", remedy="use wgan, hinge or logistic"
            )
        if not math.isfinite(self.gradient_penalty) or self.gradient_penalty < 0:
            raise SettingError(
                f"{self.gradient_penalty} is not a finite number of at least 0",
                field="gradient_penalty",
                remedy="use 10 for WGAN-GP, 0 for no penalty",
            )

    def on_real(self, scores: Tensor) -> Tensor:
        """Return the loss of real records from their scores, element by element."""
        if self.kind == "wgan":
            return -scores
        return functional.relu(1 - scores) if self.kind == "hinge" else functional.softplus(-scores)

    def on_fake(self, scores: Tensor) -> Tensor:
        """Return the loss of generated records from their scores, element by element."""
        if self.kind == "wgan":
            return scores
        return functional.relu(1 + scores) if self.kind == "hinge" else functional.softplus(scores)

    def on_slope(self, gradient: Tensor) -> Tensor:
        """Return the penalty (B,) of the critic's input gradients (B, D…)."""
        slope = torch.sqrt(gradient.flatten(1).square().sum(1) + _SLOPE_FLOOR)
        return self.gradient_penalty * (slope - 1).square()

    def per_record(self, critic: Critic, records: RecordPairs) -> Tensor:
        """Return each record's loss (B,), differentiable with respect to whatever the critic uses."""
        losses = self.on_real(scored(critic, records.real, records.condition))
        if records.fake is None:
            return losses
        losses = losses + self.on_fake(scored(critic, records.fake, records.condition))
        if not self.gradient_penalty:
            return losses
        mixed = records.mixed().requires_grad_()
        scores = scored(critic, mixed, records.condition)
        (gradient,) = torch.autograd.grad(scores.sum(), mixed, create_graph=True)
        return losses + self.on_slope(gradient)


@dataclass(frozen=True, kw_only=True)
class RecordPairs:
    """Real records with their generated partners, conditions and mixing numbers. Private.

    Args:
        real: Real records, (B, D…).
        fake: One fresh generated record for each, (B, D…); none for a loss on real records alone.
        condition: Labels or attributes, (B, K) or integers (B,); shared by a record and its partner.
        mix: u, the point between real and generated where the slope is taken, (B,) in [0, 1].

    Raises:
        SettingError: The shapes do not go together.
    """

    real: Tensor
    fake: Tensor | None = None
    condition: Tensor | None = None
    mix: Tensor | None = None

    def __post_init__(self) -> None:
        if self.fake is not None and self.fake.shape != self.real.shape:
            raise SettingError(
                f"shape {tuple(self.fake.shape)} differs from the real records' {tuple(self.real.shape)}",
                field="fake",
                remedy="pair each real record with one generated record",
            )
        if self.condition is not None and len(self.condition) != len(self.real):
            raise SettingError(
                f"{counted(len(self.condition), 'row')} for {counted(len(self.real), 'record')}",
                field="condition",
                remedy="give one condition a record",
            )
        if self.mix is not None and self.mix.shape != self.real.shape[:1]:
            raise SettingError(
                f"shape {tuple(self.mix.shape)} is not ({len(self.real)},)",
                field="mix",
                remedy="draw one number in [0, 1] a record",
            )

    def __len__(self) -> int:
        return len(self.real)

    def take(self, rows: Tensor | slice) -> RecordPairs:
        """Return some of the records."""
        fake, condition, mix = (None if x is None else x[rows] for x in (self.fake, self.condition, self.mix))
        return RecordPairs(real=self.real[rows], fake=fake, condition=condition, mix=mix)

    def to(self, dtype: torch.dtype) -> RecordPairs:
        """Return the records in another precision; integers stay integers."""
        parts = (self.real, self.fake, self.condition, self.mix)
        real, fake, condition, mix = (x.to(dtype) if x is not None and x.is_floating_point() else x for x in parts)
        return RecordPairs(real=self.real if real is None else real, fake=fake, condition=condition, mix=mix)

    def mixed(self) -> Tensor:
        """Return x̂ = u x + (1 − u) x̃, (B, D…), detached."""
        if self.fake is None or self.mix is None:
            raise SettingError(
                "a gradient penalty needs a generated record and a mixing number for each real record",
                field="gradient_penalty",
                remedy="give fake and mix, or set gradient_penalty to 0",
            )
        mix = self.mix.view(-1, *[1] * (self.real.dim() - 1)).to(self.real.dtype)
        return (mix * self.real + (1 - mix) * self.fake).detach()

    def check(self, loss: CriticLoss) -> None:
        """Refuse records that lack what the loss needs."""
        if loss.gradient_penalty and (self.fake is None or self.mix is None):
            self.mixed()


def scored(critic: Critic, records: Tensor, condition: Tensor | None) -> Tensor:
    """Return the critic's scores (B,), refusing any other shape."""
    scores = critic(records, condition)
    if scores.shape != records.shape[:1]:
        raise SettingError(
            f"returned shape {tuple(scores.shape)} for {counted(len(records), 'record')}",
            field="critic",
            remedy="return one score a record, shape (B,)",
        )
    return scores
