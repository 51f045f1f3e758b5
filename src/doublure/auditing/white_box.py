"""What the owner of a run can look at that nobody else can: the critic, the generator's noise, and another fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.attack.attack_data import Refit
from doublure.encode.choice import encoder_for
from doublure.encode.columns import Floats
from doublure.errors import InputError
from doublure.guarantee import Guarantee
from doublure.methods import registry as methods
from doublure.networks.array_generator import ArrayGenerator
from doublure.planning import Plan
from doublure.run.synthesizer import Synthesizer
from doublure.schema import ResolvedSchema
from doublure.support.devices import chosen_device
from doublure.support.tensors import as_array, as_arrays, as_tensor
from doublure.training.job import Job, State, encoded_records

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.encode.encoder import Encoder

_BLOCK = 2000
_CRITICS = ("critic", "critic/critic", "latents/critic")
"""Under which names a run's state holds its critic, all weights in a row."""


class WhiteBoxAccess:
    """The inside of a run; see :class:`doublure.attack.attack_data.WhiteBox`.

    Args:
        syn: The synthesizer.
        kept: The state that the run has kept, if there is any.
    """

    def __init__(self, syn: Synthesizer, kept: State | None) -> None:
        self._syn = syn
        self._kept = kept or {}
        self._settings: Any = syn.plan.settings
        self._encoder: Encoder = encoder_for(syn.schema, self._settings.encoding)

    @cached_property
    def critic(self) -> Callable[[Any], Floats] | None:
        """Records to scores, high for what the critic takes for real; None where none was kept, or can be asked."""
        found = next((self._kept[name] for name in _CRITICS if name in self._kept), None)
        if found is None:
            return None
        import torch

        from doublure.networks.noise_layer import NoiseLayer
        from doublure.training.architectures import critic_of

        try:
            own, encoder, seen = self._judging()
        except InputError:  # latentgan's public generator has gone, or guided's groups were not kept
            return None
        weights = as_tensor(found)
        network: nn.Module = critic_of(own, encoder, torch.Generator().manual_seed(0))
        if sum(part.numel() for part in network.parameters()) != weights.numel():
            return None
        torch.nn.utils.vector_to_parameters(weights.flatten().float(), network.parameters())
        network.eval()
        for part in network.modules():
            if isinstance(part, NoiseLayer):
                part.silence()
        steered = bool(own.condition_width(encoder))

        def scores(content: Any) -> Floats:
            return self._by_block(content, lambda body, condition: network(seen(body), condition if steered else None))

        return scores

    @property
    def searchable(self) -> bool:
        """Whether noise that is near makes records that are near: a network's; of tables it begins the draw."""
        return not isinstance(self._syn.generator, ArrayGenerator)

    def encoded(self, content: Any) -> tuple[Floats, Any]:
        """Return bodies ``(N, D)`` and conditions ``(N, K)``, None where there are none."""
        body, condition = self._encoder.split(self._encoder.encode(content))
        return as_array(body).reshape(len(body), -1).astype(np.float64), condition

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``(n, Z)`` noise as the generator takes it."""
        plan = self._syn.plan
        return rng.standard_normal((n, methods.method(plan.method).sample_noise(plan.settings)))

    def generated(self, noise: Floats, conditions: Any) -> Floats:
        """Return ``(N, D)`` bodies."""
        generator = self._syn.generator.eval()
        if isinstance(generator, ArrayGenerator):
            return generator(noise, conditions)
        import torch

        with torch.inference_mode():
            bodies: Tensor = generator(torch.from_numpy(noise).float(), conditions).flatten(1)
        return np.asarray(bodies.double().numpy())

    def crafted(self, n: int, rng: np.random.Generator) -> Any:
        """Return records drawn uniformly over what the schema allows: like no real one."""
        from doublure.encode.relational import RelationalEncoder
        from doublure.encode.series import SeriesEncoder
        from doublure.encode.series_codes import SeriesCodes
        from doublure.encode.series_places import SeriesPlaces
        from doublure.encode.table import TableEncoder
        from doublure.encode.table_values import TableValues

        encoder = self._encoder
        if isinstance(encoder, TableValues):
            values = [rng.integers(own.first, own.last + own.nullable + 1, n) for own in encoder.wholes]
            return encoder.decode(np.stack(values, axis=1).astype(np.float64), rng)
        if isinstance(encoder, RelationalEncoder):
            return encoder.decode(encoder.uniform(n, rng), rng)
        rows = rng.uniform(-1, 1, (n, encoder.width)).astype(np.float32)
        if isinstance(encoder, TableEncoder):
            for block in encoder.blocks:
                if block.kind == "softmax":
                    rows[:, block.place] = 1.0
            return encoder.decode(rows, rng)
        if isinstance(encoder, SeriesEncoder):
            flat = encoder.width - encoder.condition_width
            body = rows[:, :flat].reshape(n, *encoder.body_shape)
            for planes in encoder.planes:
                body[:, planes.first : planes.place] = 1.0
            rows[:, :flat] = body.reshape(n, -1)
        first = encoder.width - encoder.condition_width
        if isinstance(encoder, SeriesCodes | SeriesPlaces):
            sizes = np.repeat(encoder.sizes, encoder.schema.length)
            rows[:, :first] = rng.integers(0, sizes, (n, first))
        if encoder.condition_width:
            rows[:, first:] = encoder.draw_conditions(n, rng)
        return encoder.decode(rows, rng)

    def _judging(self) -> tuple[Any, Any, Callable[[Tensor], Tensor]]:
        """Return the settings that the critic was made with, the encoder of what it takes, and what it takes of a body.

        ``guided`` has a critic in one of its stages; on tables it takes groups that follow from the noisy tables, and
        stand beside its state. ``latentgan``'s takes latents, which are no secret to whoever has the public generator.

        Raises:
            InputError: The public generator is not where the plan has it, or no groups were kept.
        """
        from doublure.encode.latent import LatentEncoder
        from doublure.methods.guided.critic_stage import critic_of_images, critic_of_tables
        from doublure.methods.guided.settings import ImageGuidedSettings, TableGuidedSettings
        from doublure.methods.latentgan.settings import LatentSettings
        from doublure.methods.latentgan.training import inversion_of, public_networks
        from doublure.methods.statistics.tables.group_rows import InGroups

        settings, encoder = self._settings, self._encoder
        if isinstance(settings, LatentSettings):
            inversion = inversion_of(encoder, settings, *public_networks(encoder, settings)[:2])
            return settings, LatentEncoder(encoder, settings.latent), inversion
        if isinstance(settings, TableGuidedSettings):
            # How much noise its generator takes is nothing to a critic.
            stage = {name.removeprefix("critic/"): own for name, own in self._kept.items()}
            view = InGroups.of_state(stage, self._encoder.width)
            return critic_of_tables(settings, 1), view.shapes(self._syn.schema), view.one_hot
        if isinstance(settings, ImageGuidedSettings):
            settings = critic_of_images(settings)
        return settings, encoder, lambda body: body

    def _by_block(self, content: Any, look: Callable[[Tensor, Tensor | None], Tensor]) -> Floats:
        import torch

        compact = self._encoder.compact(content)
        with torch.no_grad():  # and no inference mode: an inversion follows gradients of its own
            parts = [
                look(*self._encoder.split(self._encoder.expand(as_tensor(compact[first : first + _BLOCK]))))
                for first in range(0, len(compact), _BLOCK)
            ]
            return np.asarray(torch.cat(parts).double().numpy())


class RefittedModel:
    """A synthesizer that was fitted again, in memory, for an attack.

    Args:
        syn: The synthesizer.
        kept: Its last state.
    """

    def __init__(self, syn: Synthesizer, kept: State) -> None:
        self._syn = syn
        self.white_box = WhiteBoxAccess(syn, kept)

    def sample(self, n: int, seed: int) -> Any:
        """Return synthetic records."""
        return self._syn.draw(n, seed=seed)


class _Memory:
    """Keeps the last state of a run in memory."""

    def __init__(self) -> None:
        self.state: State = {}

    def save(self, step: int, state: State) -> None:
        """Replace the checkpoint."""
        del step
        self.state = as_arrays(state)

    def load(self) -> State | None:
        """Return nothing: every fit is a new one."""
        return self.state or None


def _job(
    schema: ResolvedSchema,
    plan: Plan,
    encoder: Encoder,
    compact: Floats,
    memory: _Memory,
    *,
    seed: int,
    device: str,
) -> Job:
    """Return a plan's training on other records, each a unit of its own: canaries and non-members."""
    from doublure.private.mechanism import Mechanism
    from doublure.private.noise import source

    return Job(
        encoder=encoder,
        records=encoded_records(encoder, compact, np.arange(len(compact), dtype=np.int64), len(compact), device),
        settings=plan.settings,
        accesses=plan.training,
        mechanism=Mechanism(plan.training, noise=source(), authorise=lambda access, step: None),
        sample_rate=plan.sample_rate or 1.0,
        units=max(1, schema.public_units),
        authorise=lambda _: None,
        check_stop=lambda: None,
        checkpoints=memory,
        seed=seed,
        device=device,
        delta_mu=plan.guarantee.delta_mu,
    )


def refitting(schema: ResolvedSchema, plan: Plan, guarantee: Guarantee) -> Refit:
    """Return what fits a plan's training to other records. Facts that were bought stay as they were bought."""

    def refit(content: Any, seed: int) -> RefittedModel:
        encoder, memory = encoder_for(schema, plan.settings.encoding), _Memory()
        job = _job(schema, plan, encoder, encoder.compact(content), memory, seed=seed, device=chosen_device())
        made = methods.method(plan.method).train(job)
        generator = made if isinstance(made, ArrayGenerator) else made.cpu()
        return RefittedModel(
            Synthesizer(schema=schema, plan=plan, guarantee=guarantee, generator=generator.eval()), memory.state
        )

    return refit
