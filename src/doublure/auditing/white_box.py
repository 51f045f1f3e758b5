"""White-box access for attacks: a run's critic, generator and noise, and refits of its plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.attack.attack_data import Refit
from doublure.encode.choice import encoder_for
from doublure.errors import InputError
from doublure.guarantee import Guarantee
from doublure.methods import registry as methods
from doublure.networks.array_generator import ArrayGenerator
from doublure.planning import Plan
from doublure.run.synthesizer import Synthesizer
from doublure.schema import ResolvedSchema
from doublure.support.arrays import Floats
from doublure.support.devices import chosen_device
from doublure.support.tensors import as_array, as_arrays, as_tensor
from doublure.training.architectures import Critic
from doublure.training.job import Job, State, encoded_records

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.encode.encoder import Encoder

_BLOCK = 2000


class WhiteBoxAccess:
    """White-box access to a run; see :class:`doublure.attack.attack_data.WhiteBox`.

    Args:
        syn: The synthesizer.
        kept: The kept state of the run, if there is any.
    """

    def __init__(self, syn: Synthesizer, kept: State | None) -> None:
        self._syn = syn
        self._kept = kept or {}
        self._encoder: Encoder = encoder_for(syn.schema, syn.plan.settings.encoding)

    @cached_property
    def critic(self) -> Callable[[Any], Floats] | None:
        """Records -> scores, high for records the critic takes as real; None where none was kept or it is unusable."""
        plan = self._syn.plan
        try:
            critic = methods.method(plan.method).white_box(self._encoder, plan.settings, self._kept)
        except InputError:  # the inputs it takes of a record cannot be rebuilt
            return None
        return None if critic is None else partial(self._by_block, critic)

    @property
    def searchable(self) -> bool:
        """Whether close noise makes close records: for a network; of tables it only starts the draw."""
        return not isinstance(self._syn.generator, ArrayGenerator)

    def encoded(self, content: Any) -> tuple[Floats, Any]:
        """Return bodies ``(N, D)`` and conditions ``(N, K)``, None where there are none."""
        body, condition = self._encoder.split(self._encoder.encode(content))
        return as_array(body).reshape(len(body), -1).astype(np.float64), condition

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``(n, Z)`` noise for the generator."""
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
        """Return records drawn uniformly over the schema: like no real one."""
        return self._encoder.decode(self._encoder.uniform(n, rng), rng)

    def _by_block(self, critic: Critic, content: Any) -> Floats:
        import torch

        compact = self._encoder.compact(content)
        with torch.no_grad():  # not inference mode: an inversion takes gradients of its own
            parts = [
                critic(*self._encoder.split(self._encoder.expand(as_tensor(compact[first : first + _BLOCK]))))
                for first in range(0, len(compact), _BLOCK)
            ]
            return np.asarray(torch.cat(parts).double().numpy())


class RefittedModel:
    """A synthesizer refitted in memory for an attack.

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
    """Checkpoint store that keeps the last state of a run in memory."""

    def __init__(self) -> None:
        self.state: State = {}

    def save(self, step: int, state: State) -> None:
        """Replace the checkpoint."""
        del step
        self.state = as_arrays(state)

    def load(self) -> State | None:
        """Return nothing: every fit starts anew."""
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
    """Return the training job of a plan on other records, canaries and non-members, each a unit of its own."""
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


def make_refit(schema: ResolvedSchema, plan: Plan, guarantee: Guarantee) -> Refit:
    """Return a function that fits a plan's training to other records. Bought facts keep their values."""

    def refit(content: Any, seed: int) -> RefittedModel:
        encoder, memory = encoder_for(schema, plan.settings.encoding), _Memory()
        job = _job(schema, plan, encoder, encoder.compact(content), memory, seed=seed, device=chosen_device())
        made = methods.method(plan.method).train(job)
        generator = made if isinstance(made, ArrayGenerator) else made.cpu()
        return RefittedModel(
            Synthesizer(schema=schema, plan=plan, guarantee=guarantee, generator=generator.eval()), memory.state
        )

    return refit
