"""The settings that every GAN on tables shares."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from doublure.encode.columns import Numerics, estimated_width
from doublure.methods.base import MethodSettings, Work
from doublure.schema import Schema

_BYTES = 4
_PASSES = 12  # forward, backward, penalty, per-record factors: passes over the critic for one paired record


class AdversarialSettings(MethodSettings):
    """Networks, losses and optimisers.

    Attributes:
        loss: The critic's loss: ``wgan-gp`` and ``logistic`` with a gradient penalty, ``wgan`` with weight clipping,
            ``hinge``.
        gradient_penalty: λ; None: 5 for ``wgan-gp``, 1 for ``logistic`` and ``hinge``, 0 for ``wgan``.
        weight_clip: Bound on each weight of the critic, for ``wgan``.
        n_critic: Critic steps in one iteration of the generator.
        lot_size: Expected units in a lot; None: chosen from the public number of units.
        steps: Critic steps in all, T; None: chosen by the method.
        critic_optimizer: What follows the critic's gradient.
        critic_lr: Its learning rate.
        generator_lr: The generator's learning rate (Adam).
        generator_batch: Generated rows in a generator step.
        generator_average: Weight of the past in the moving average of the generator's weights that is released.
        width: Hidden units a layer of the generator.
        depth: Hidden layers of the generator.
        critic_width: Hidden units a layer of the critic.
        critic_depth: Hidden layers of the critic.
        noise_width: Z, numbers of noise a row.
        numerics: Numbers as public bins or as scaled values.
        bins: The most bins a number is cut into.
        checkpoints: How many times a run keeps its state.
    """

    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "wgan-gp"
    gradient_penalty: float | None = Field(default=None, ge=0)
    weight_clip: float = Field(default=0.05, gt=0)
    n_critic: int = Field(default=1, ge=1, le=1000)
    lot_size: int | None = Field(default=None, ge=1)
    steps: int | None = Field(default=None, ge=1, le=10_000_000)
    critic_optimizer: Literal["adam", "sgd", "rmsprop"] = "adam"
    critic_lr: float = Field(default=6e-3, gt=0)
    generator_lr: float = Field(default=5e-4, gt=0)
    generator_batch: int = Field(default=512, ge=1)
    generator_average: float = Field(default=0.9, ge=0, lt=1)
    width: int = Field(default=128, ge=1, le=8192)
    depth: int = Field(default=2, ge=0, le=10)
    critic_width: int = Field(default=128, ge=1, le=8192)
    critic_depth: int = Field(default=2, ge=0, le=10)
    noise_width: int = Field(default=64, ge=1, le=4096)
    numerics: Numerics = "bins"
    bins: int = Field(default=32, ge=2, le=1000)
    checkpoints: int = Field(default=50, ge=1, le=1000)

    @property
    def penalty(self) -> float:
        """λ, decided."""
        if self.gradient_penalty is not None:
            return self.gradient_penalty
        return {"wgan-gp": 5.0, "logistic": 1.0, "hinge": 1.0, "wgan": 0.0}[self.loss]

    @property
    def checkpoint_every(self) -> int:
        """Critic steps between two kept states: what a crash can lose."""
        each = -(-(self.steps or 1) // self.checkpoints)
        return -(-each // self.n_critic) * self.n_critic

    def with_public_sizes(
        self, schema: Schema, *, lot_share: float, smallest_lot: int, largest_lot: int, steps: int
    ) -> AdversarialSettings:
        """Return the settings with λ, the lot size and the number of steps decided, from the public number of units."""
        units = schema.public_units
        chosen = min(largest_lot, max(smallest_lot, round(lot_share * units)))
        lot = chosen if self.lot_size is None else self.lot_size
        decided = {"lot_size": min(lot, units), "steps": self.steps or steps, "gradient_penalty": self.penalty}
        return self.model_copy(update=decided)

    def work(self, schema: Schema) -> Work:
        """Return what a fit computes and holds, from public facts."""
        row = estimated_width(schema, self.numerics, self.bins)
        records = (self.lot_size or 1) * schema.unit.max_records
        critic = _weights(row, self.critic_width, self.critic_depth, 1)
        generator = _weights(self.noise_width, self.width, self.depth, row)
        steps = self.steps or 1
        flops = 2.0 * steps * (records * (_PASSES * critic + generator))
        flops += 2.0 * (steps / self.n_critic) * self.generator_batch * 3 * (critic + generator)
        held = schema.public_units * schema.unit.max_records * (len(schema.columns) + 2)
        lot = records * (row + self.critic_width * self.critic_depth) * _PASSES
        return Work(flops=flops, steps=steps, memory_bytes=_BYTES * (held * 3 + lot + 8 * (critic + generator)))


def _weights(inputs: int, width: int, depth: int, outputs: int) -> int:
    if depth == 0:
        return inputs * outputs
    return inputs * width + (depth - 1) * width * width + width * outputs
