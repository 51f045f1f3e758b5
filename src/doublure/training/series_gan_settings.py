"""The settings that every GAN on time series shares."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field
from typing_extensions import override

from doublure.encode.attribute_groups import groups_of
from doublure.encode.choice import EncodingChoice
from doublure.errors import SettingError
from doublure.networks.sizes import CLOCK, critic_work, perceptron_weights, recurrent_work, series_work
from doublure.schema import Schema
from doublure.schema.series import SeriesSchema
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.settings import Work

_BYTES = 4
_PASSES = {True: 12, False: 6}  # passes over the critic for one paired series, with a gradient penalty and without
_HELD = 8
_NOISE, _COMMON = 32, 8

Channels = Annotated[int, Field(ge=1, le=1024)]


class SeriesAdversarialSettings(AdversarialSettings):
    """The networks of a GAN on time series.

    Attributes:
        generator_type: ``conv``, quick, or ``lstm``, Frigerio's, with fresh noise at every step.
        critic_type: ``conv``, convolutions along the series, or ``mlp`` over the whole, Frigerio's.
        noise_width: Z; 0: chosen from the length.
        hidden: Units of the convolutional generator's first layer.
        channels: Its channels, from few steps to many; each doubles the steps.
        lstm_units: Units of the LSTM.
        critic_width: Hidden units a layer of the multilayer perceptron.
        critic_depth: Its hidden layers.
        critic_channels: Output channels of the critic's convolutions, each of which halves the steps.
        features: Numbers between the critic's convolutions and its score.
        curve: The power that shares of the bounds are taken to, for channels that cannot be negative; 1 is none.
    """

    data: ClassVar[str] = "series"
    constants: ClassVar[dict[str, Any]] = {"lstm_layers": 1}
    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.02, "smallest_lot": 64, "largest_lot": 256, "steps": 3000}
    betas: ClassVar[tuple[float, float]] = (0.5, 0.9)

    noise_width: int = Field(default=0, ge=0, le=65_536)
    generator_average: float = Field(default=0.98, ge=0, lt=1)
    lr_decay: float = Field(default=0.1, gt=0, le=1)
    generator_type: Literal["conv", "lstm"] = "conv"
    critic_type: Literal["mlp", "conv"] = "conv"
    hidden: int = Field(default=128, ge=1, le=8192)
    channels: tuple[Channels, ...] = Field(default=(32, 16, 8), min_length=1, max_length=8)
    lstm_units: int = Field(default=64, ge=1, le=2048)
    critic_width: int = Field(default=128, ge=1, le=8192)
    critic_depth: int = Field(default=2, ge=0, le=10)
    critic_channels: tuple[Channels, ...] = Field(default=(16, 32, 32), min_length=1, max_length=8)
    features: int = Field(default=64, ge=1, le=4096)
    curve: float = Field(default=1 / 3, gt=0, le=1)

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice(curve=self.curve)

    @override
    def with_length(self, schema: Schema) -> Self:
        """Return the settings with the generator's noise chosen from the public length of a series.

        Raises:
            SettingError: An LSTM has fewer numbers of noise than steps.
        """
        length = SeriesSchema.of(schema).length
        if self.generator_type == "conv":
            return self.model_copy(update={"noise_width": self.noise_width or _NOISE})
        width = self.noise_width or length + _COMMON
        if width < length:
            remedy = f"give at least {length}, or leave it out"
            raise SettingError("leaves steps of the LSTM without noise", field="noise_width", remedy=remedy)
        return self.model_copy(update={"noise_width": width})

    @override
    def work(self, schema: Schema) -> Work:
        schema = SeriesSchema.of(schema)
        planes, length, condition = count_planes(schema), schema.length, count_values(schema)
        critic, kept = self._critic_work((planes, length), condition)
        generator, drawn = self._generator_work((planes, length), condition)
        records, steps = (self.lot_size or 1) * schema.unit.max_records, self.steps or 1
        flops = 2.0 * steps * records * (_PASSES[self.penalty > 0] * critic + generator)
        flops += 2.0 * (steps / self.n_critic) * self.generator_batch * 3 * (critic + generator)
        numbers = planes * length
        held = schema.public_units * schema.unit.max_records * numbers * (2 + 1 + 1)  # as read (float64), compact twice
        lot = records * (kept * 2 + numbers * _HELD) + self.generator_batch * (drawn * 3 + kept * 2)
        return Work(flops=flops, steps=steps, memory_bytes=_BYTES * (held + lot))

    def _critic_work(self, shape: tuple[int, int], condition: int) -> tuple[int, int]:
        if self.critic_type == "conv":
            return critic_work(shape, condition, self.critic_channels, self.features)
        inputs = shape[0] * shape[1] + condition
        kept = inputs + self.critic_width * self.critic_depth
        return perceptron_weights(inputs, self.critic_width, self.critic_depth, 1), kept

    def _generator_work(self, shape: tuple[int, int], condition: int) -> tuple[int, int]:
        if self.generator_type == "conv":
            return series_work(shape, self.noise_width + condition, condition, self.hidden, self.channels)
        each, common = divmod(self.noise_width, shape[1])
        return recurrent_work(shape, each + common + condition + CLOCK, condition, self.lstm_units)


def count_planes(schema: SeriesSchema) -> int:
    """Return the number of a series' planes, as far as it is public; facts that may be bought count as present."""
    extra = [int(one.zero_apart) + int(one.missing is not False) for one in schema.channels.values()]
    return sum(1 + (states + 1 if states else 0) for states in extra)


def count_values(schema: SeriesSchema) -> int:
    """Return the number of values of all attributes together, as far as it is public."""
    return sum(map(groups_of, schema.attributes.values()))
