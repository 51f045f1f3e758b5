"""The settings that every GAN shares, and those of a GAN on tables."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.encode.choice import EncodingChoice
from doublure.encode.columns import Numerics, estimated_width
from doublure.errors import SettingError
from doublure.networks.sizes import perceptron_weights
from doublure.schema import Schema
from doublure.training.settings import LearningRate, MethodSettings, Work

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

_BYTES = 4
_PASSES = 12  # forward, backward, penalty, per-record factors: passes over the critic for one paired record
_HELD = 8  # a lot's rows at the peak, and the like of them: real, generated, mixed, their gradients


class AdversarialSettings(MethodSettings):
    """Losses, optimisers and sizes of a GAN on any kind of data.

    Attributes:
        loss: The critic's loss: ``wgan-gp`` and ``logistic`` with a gradient penalty, ``wgan`` with weight clipping,
            ``hinge``.
        gradient_penalty: λ; None: chosen for the loss.
        weight_clip: Bound on each weight of the critic, for ``wgan``.
        n_critic: Critic steps in one iteration of the generator; at the start, if there is a ``critic_threshold``.
        critic_threshold: ``n_critic`` climbs while the critic tells no more than this share of generated rows
            (:class:`doublure.training.gan_loop.CriticPace`); None: it stays.
        critic_patience: Iterations of the generator, at least, before it climbs again.
        lot_size: Expected units in a lot; None: chosen from the public number of units.
        steps: Critic steps in all, T; None: chosen by the method.
        critic_optimizer: The critic's optimiser.
        critic_lr: Its learning rate.
        generator_lr: The generator's learning rate (Adam).
        lr_decay: The share of both learning rates that is left at the end (geometric in the generator's iterations):
            late steps are small, so that less of the noise stays; 1: they stay as they are.
        generator_batch: Generated rows in a generator step.
        generator_average: Weight of the past in the moving average of the generator's weights that is released.
        noise_width: Z, numbers of noise a record.
        checkpoints: How many times a run keeps its state.
    """

    sizes: ClassVar[dict[str, Any]]
    """Arguments of :meth:`resolve_defaults`, which derives lots and steps from the public number of units."""

    penalties: ClassVar[dict[str, float]] = {"wgan-gp": 5.0, "logistic": 1.0, "hinge": 1.0, "wgan": 0.0}
    betas: ClassVar[tuple[float, float]] = (0.5, 0.9)

    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "wgan-gp"
    gradient_penalty: float | None = Field(default=None, ge=0)
    weight_clip: float = Field(default=0.05, gt=0)
    n_critic: int = Field(default=1, ge=1, le=1000)
    critic_threshold: float | None = Field(default=None, ge=0, le=1)
    critic_patience: int = Field(default=200, ge=1, le=1_000_000)
    lot_size: int | None = Field(default=None, ge=1)
    steps: int | None = Field(default=None, ge=1, le=10_000_000)
    critic_optimizer: Literal["adam", "sgd", "rmsprop"] = "adam"
    critic_lr: LearningRate = 6e-3
    generator_lr: LearningRate = 5e-4
    lr_decay: float = Field(default=1.0, gt=0, le=1)
    generator_batch: int = Field(default=512, ge=1)
    generator_average: float = Field(default=0.9, ge=0, lt=1)
    noise_width: int = Field(default=64, ge=1, le=4096)
    checkpoints: int = Field(default=50, ge=1, le=1000)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.loss == "wgan" and self.gradient_penalty:
            raise ValueError("loss wgan clips weights instead of a penalty; use wgan-gp, or gradient_penalty=0")
        if self.critic_threshold is not None and self.loss.startswith("wgan"):
            raise ValueError("critic_threshold needs a critic whose zero means undecided; use loss logistic or hinge")
        return self

    @property
    def penalty(self) -> float:
        """λ, decided."""
        if self.gradient_penalty is not None:
            return self.gradient_penalty
        return self.penalties[self.loss]

    @property
    @override
    def checkpoint_every(self) -> int:
        each = -(-(self.steps or 1) // self.checkpoints)
        return -(-each // self.n_critic) * self.n_critic

    def resolve_defaults(
        self, schema: Schema, *, lot_share: float, smallest_lot: int, largest_lot: int, steps: int
    ) -> Self:
        """Return the settings with λ, the lot size and the number of steps chosen from the public number of units.

        Args:
            schema: The data's schema.
            lot_share: Share of all units in a lot.
            smallest_lot: Fewest units in a lot, if there are so many.
            largest_lot: Most units in a lot.
            steps: T.

        Raises:
            SettingError: There is no column to generate.
        """
        refuse_nothing_to_generate(schema)
        units = schema.public_units
        chosen = min(largest_lot, max(smallest_lot, round(lot_share * units)))
        lot = chosen if self.lot_size is None else self.lot_size
        decided = {"lot_size": min(lot, units), "steps": self.steps or steps, "gradient_penalty": self.penalty}
        return type(self).model_validate(self.model_copy(update=decided).with_length(schema).model_dump())

    def rate_left(self, iterations: int) -> float:
        """Return the share of both learning rates that is left after so many of the generator's iterations."""
        share: float = self.lr_decay ** (iterations * self.n_critic / (self.steps or 1))
        return share

    def with_length(self, schema: Schema) -> Self:
        """Return the settings with those chosen that depend on a record's length; unchanged by default."""
        return self

    @property
    def sample_noise(self) -> int:
        """Numbers of noise that a sample takes for a record."""
        return self.noise_width

    @property
    def offset(self) -> bool:
        """Whether the critic's score has a constant of its own."""
        return True

    def condition_width(self, encoder: Encoder) -> int:
        """Return K, how wide a condition the networks take; 0 for none."""
        return encoder.condition_width

    # -- decided by the kind of data -----------------------------------------------------------------------------

    @abstractmethod
    def work(self, schema: Schema) -> Work:
        """Return a fit's computation and memory, from public facts."""


def refuse_nothing_to_generate(schema: Schema) -> None:
    """Refuse a table without a column to generate.

    Raises:
        SettingError: There is no column to generate.
    """
    given = {*schema.with_role("condition"), *schema.derived}
    if schema.only_columns and all(n in given or not c.modelled for n, c in schema.columns.items()):
        raise SettingError(
            "has no column to generate: all are conditions, ids or made anew, or follow from others",
            field="columns",
            remedy="take the role condition from one, or use method statistics",
        )


class PerceptronSettings(AdversarialSettings):
    """Multilayer perceptrons as generator and critic, for records that are one vector each.

    Attributes:
        width: Hidden units a layer of the generator.
        depth: Hidden layers of the generator.
        critic_width: Hidden units a layer of the critic.
        critic_depth: Hidden layers of the critic.
    """

    width: int = Field(default=128, ge=1, le=8192)
    depth: int = Field(default=2, ge=0, le=10)
    critic_width: int = Field(default=128, ge=1, le=8192)
    critic_depth: int = Field(default=2, ge=0, le=10)


class TableAdversarialSettings(PerceptronSettings):
    """The networks of a GAN on tables.

    Attributes:
        numerics: Encoding of numbers, as public bins or as scaled values.
        bins: The most bins of a number.
    """

    data: ClassVar[str] = "table"
    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.05, "smallest_lot": 64, "largest_lot": 512, "steps": 4000}

    numerics: Numerics = "bins"
    bins: int = Field(default=32, ge=2, le=1000)

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice(numerics=self.numerics, bins=self.bins)

    @override
    def work(self, schema: Schema) -> Work:
        row = estimated_width(schema, self.numerics, self.bins)
        records = (self.lot_size or 1) * schema.unit.max_records
        critic = perceptron_weights(row, self.critic_width, self.critic_depth, 1)
        generator = perceptron_weights(self.noise_width, self.width, self.depth, row)
        steps = self.steps or 1
        flops = 2.0 * steps * (records * (_PASSES * critic + generator))
        flops += 2.0 * (steps / self.n_critic) * self.generator_batch * 3 * (critic + generator)
        held = schema.public_units * schema.unit.max_records * (len(schema.columns) + 2)
        lot = records * (row + self.critic_width * self.critic_depth) * _HELD
        return Work(
            flops=flops,
            steps=steps,
            memory_bytes=_BYTES * (held * 3 + lot + 8 * (critic + generator)),
            drawn_bytes=_BYTES * held * 3,
        )
