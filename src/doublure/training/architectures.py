"""Networks of a GAN from its settings, untrained or restored from a run.

Each function dispatches on the type of the settings. A method with another critic registers its own builder in its
folder (``@critic_of.register(ItsSettings)``); settings that inherit from known ones are built as those are. Torch is
imported only where a network is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeAlias

from doublure.support.tensors import as_tensor
from doublure.training.gan_settings import AdversarialSettings, PerceptronSettings
from doublure.training.image_gan_settings import ImageAdversarialSettings
from doublure.training.job import State
from doublure.training.series_gan_settings import SeriesAdversarialSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from doublure.encode.encoder import Encoder

Critic: TypeAlias = "Callable[[Tensor, Tensor | None], Tensor]"
"""Bodies ``(B, *body_shape)`` and conditions ``(B, K)`` or None to scores ``(B,)``, high for what looks real."""


@singledispatch
def generator_of(settings: AdversarialSettings, encoder: Encoder, initial: torch.Generator) -> nn.Module:
    """Return an untrained generator, ``(noise (B, Z), condition (B, K) or None) -> (B, *body_shape)``.

    Args:
        settings: With defaults resolved.
        encoder: The records' shape.
        initial: Public randomness for the initial weights.

    Raises:
        NotImplementedError: No builder is registered for such settings.
    """
    raise NotImplementedError(f"no generator is registered for {type(settings).__name__}")


@singledispatch
def critic_of(settings: AdversarialSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1) -> nn.Module:
    """Return an untrained critic, ``(bodies (B, *body_shape), condition (B, K) or None) -> (B,)``.

    Args:
        settings: With defaults resolved.
        encoder: The records' shape.
        initial: Public randomness for the initial weights.
        outputs: Numbers in place of the score, ``(B, outputs)``, for what goes through further layers.

    Raises:
        NotImplementedError: No builder is registered for such settings.
    """
    raise NotImplementedError(f"no critic is registered for {type(settings).__name__}")


def kept_critic(
    kept: State,
    settings: AdversarialSettings,
    shapes: Any,
    view: Callable[[Tensor], Tensor] | None = None,
    names: Sequence[str] = ("critic", "critic/critic"),
) -> Critic | None:
    """Return a run's critic, with any noise layer silenced; None if the state holds no critic that fits.

    Args:
        kept: The run's last state.
        settings: The settings of the critic's network.
        shapes: The encoder, or an object with the shapes that the network reads.
        view: Maps bodies to the critic's input; None: the critic takes bodies.
        names: Keys of its weights in the state, of the whole run or of a stage.
    """
    import torch

    from doublure.networks.noise_layer import NoiseLayer

    found = next((kept[name] for name in names if name in kept), None)
    if found is None:
        return None
    network, weights = critic_of(settings, shapes, torch.Generator().manual_seed(0)), as_tensor(found)
    if sum(part.numel() for part in network.parameters()) != weights.numel():
        return None
    torch.nn.utils.vector_to_parameters(weights.flatten().float(), network.parameters())
    network.eval()
    for part in network.modules():
        if isinstance(part, NoiseLayer):
            part.silence()
    steered = bool(settings.condition_width(shapes))

    def critic(bodies: Tensor, condition: Tensor | None) -> Tensor:
        scores: Tensor = network(bodies if view is None else view(bodies), condition if steered else None)
        return scores

    return critic


# -- vectors ---------------------------------------------------------------------------------------------------------


@generator_of.register(PerceptronSettings)
def _vector_generator(settings: PerceptronSettings, encoder: Encoder, initial: torch.Generator) -> nn.Module:
    from doublure.networks.mlp import MlpGenerator

    return MlpGenerator(
        encoder.body_blocks,  # type: ignore[attr-defined]
        condition_width=settings.condition_width(encoder),
        noise_width=settings.noise_width,
        width=settings.width,
        depth=settings.depth,
        generator=initial,
    )


@critic_of.register(PerceptronSettings)
def vector_critic(
    settings: PerceptronSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1
) -> nn.Module:
    """Return an untrained critic of vectors, such as rows; see :func:`critic_of`."""
    from doublure.networks.mlp import MlpCritic

    return MlpCritic(
        encoder.width - encoder.condition_width,
        condition_width=settings.condition_width(encoder),
        width=settings.critic_width,
        depth=settings.critic_depth,
        generator=initial,
        outputs=outputs,
        offset=settings.offset,
    )


# -- images ----------------------------------------------------------------------------------------------------------


@generator_of.register(ImageAdversarialSettings)
def _image_generator(settings: ImageAdversarialSettings, encoder: Encoder, initial: torch.Generator) -> nn.Module:
    from doublure.networks.conv import ConvGenerator

    channels, height, width = encoder.body_shape
    return ConvGenerator(
        (channels, height, width),
        condition_width=settings.condition_width(encoder),
        noise_width=settings.noise_width,
        channels=settings.channels,
        activation_name=settings.activation,
        normalisation=settings.normalisation,
        generator=initial,
    )


@critic_of.register(ImageAdversarialSettings)
def image_critic(
    settings: ImageAdversarialSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1
) -> nn.Module:
    """Return an untrained critic of images; see :func:`critic_of`."""
    from doublure.networks.conv import ConvCritic

    channels, height, width = encoder.body_shape
    return ConvCritic(
        (channels, height, width),
        condition_width=settings.condition_width(encoder),
        channels=settings.critic_channels,
        features=settings.features,
        activation_name=settings.activation,
        generator=initial,
        outputs=outputs,
        offset=settings.offset,
    )


# -- series ----------------------------------------------------------------------------------------------------------


@generator_of.register(SeriesAdversarialSettings)
def _series_generator(settings: SeriesAdversarialSettings, encoder: Encoder, initial: torch.Generator) -> nn.Module:
    from doublure.networks.series import ConvSeriesGenerator, LstmGenerator

    planes, length = encoder.planes, encoder.body_shape[1]  # type: ignore[attr-defined]
    sizes = {"condition_width": encoder.condition_width, "noise_width": settings.noise_width}
    if settings.generator_type == "lstm":
        return LstmGenerator(planes, length, hidden=settings.lstm_units, generator=initial, **sizes)
    return ConvSeriesGenerator(
        planes, length, hidden=settings.hidden, channels=settings.channels, generator=initial, **sizes
    )


@critic_of.register(SeriesAdversarialSettings)
def _series_critic(
    settings: SeriesAdversarialSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1
) -> nn.Module:
    from doublure.networks.conv import ConvCritic
    from doublure.networks.series import MlpSeriesCritic

    if settings.critic_type == "mlp":
        return MlpSeriesCritic(
            encoder.width - encoder.condition_width,
            condition_width=encoder.condition_width,
            width=settings.critic_width,
            depth=settings.critic_depth,
            generator=initial,
            outputs=outputs,
            shared=True,
        )
    return ConvCritic(
        encoder.body_shape,
        condition_width=encoder.condition_width,
        channels=settings.critic_channels,
        features=settings.features,
        activation_name="leaky_relu",
        generator=initial,
        outputs=outputs,
    )
