"""The training loop of every GAN: the critic is trained on records, the generator on the critic alone.

The claim depends on the critic's trainer: :class:`doublure.private.critic_steps.CriticSteps` makes it differentially
private, :class:`doublure.training.critic_steps.PlainCriticTrainer` does not. The generator's step is post-processing
either way.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.errors import DoublureError, Interrupted
from doublure.networks import optimizers
from doublure.private import noise
from doublure.private.queries.lot_gradients import Partner
from doublure.support.tensors import all_finite, as_tensor, as_tensors
from doublure.training import checkpoints, network_states
from doublure.training.architectures import critic_of, generator_of
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.job import Job

_WARMUP = 10.0
_PAST = 0.9
_STEPS = "steps"
"""Name in a checkpoint of the number of critic steps that it stands for."""

LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Numbers of critic steps for one generator step that :class:`CriticPace` may take."""

Anchor: TypeAlias = Callable[[nn.Module], Tensor]
"""Maps a generator to a further loss."""


class CriticTrainer(Protocol):
    """Source of the critic's gradients."""

    @property
    def taken(self) -> int:
        """Steps so far."""

    @property
    def steps(self) -> int:
        """T."""

    def skip(self, steps: int) -> None:
        """Go on after the steps that a checkpoint stands for; those that were drawn since are told again."""

    def gradient(self, critic: nn.Module, partner: Partner) -> Tensor:
        """Return the gradient of the critic's mean loss, flat ``(P,)``."""


class CriticPace:
    """Number of critic steps for one generator step: fixed, or raised while the critic falls behind.

    Bie, Kamath and Zhang ("Private GANs, revisited", TMLR 2023) let n_critic climb a ladder while the critic's accuracy
    on generated rows, averaged over the generator's steps, stays at or below a threshold. The rows are synthetic and
    the critic is already paid for, so this costs nothing. The plan fixes the number of noisy steps either way.

    Args:
        n_critic: The number at the start.
        threshold: Accuracy on generated rows at which the number stops rising; None: the number is fixed.
        patience: Fewest generator steps between two rungs.
    """

    def __init__(self, n_critic: int, *, threshold: float | None, patience: int) -> None:
        self.n_critic = n_critic
        self.accuracy = 1.0
        self._threshold = threshold
        self._patience = patience
        self._since = 0

    def saw(self, scores: Tensor) -> None:
        """Update the accuracy by the critic's scores ``(B,)`` for generated rows; below zero is correct."""
        if self._threshold is None or not len(scores):
            return
        told = float((scores < 0).double().mean())
        self._since += 1
        # A plain mean of the first iterations removes the influence of the initial value.
        self.accuracy += (told - self.accuracy) * max(1 - _PAST, 1 / self._since)
        if self._since < self._patience or self.accuracy > self._threshold:
            return
        higher = [rung for rung in LADDER if rung > self.n_critic]
        if higher:
            self.n_critic, self._since = higher[0], 0

    def state(self) -> Tensor:
        """Return what a resumed run needs, ``(3,)`` float64."""
        return torch.tensor([self.n_critic, self.accuracy, self._since], dtype=torch.float64)

    def restore(self, state: Tensor) -> None:
        """Restore a checkpoint."""
        n_critic, self.accuracy, since = (float(value) for value in state)
        self.n_critic, self._since = int(n_critic), int(since)


class Adversaries:
    """A generator, its moving average, a critic and their optimisers.

    The critic's parameters are views of one flat buffer, so that a gradient is applied in one call.

    Args:
        job: The run.
        settings: With defaults resolved.
        start: The generator to begin with; None: an untrained one.
        anchor: A further term of the generator's loss, from public or released numbers only.

    Attributes:
        iterations: Steps of the generator.
        restored: Critic steps that the restored checkpoint stands for.
    """

    def __init__(
        self,
        job: Job,
        settings: AdversarialSettings,
        *,
        start: nn.Module | None = None,
        anchor: Anchor | None = None,
    ) -> None:
        self._settings = settings
        self._anchor = anchor
        self.pace = CriticPace(
            settings.n_critic, threshold=settings.critic_threshold, patience=settings.critic_patience
        )
        self._encoder = job.encoder
        self._device = torch.device(job.device)
        self._random = SeededDraws(_mixed(job.seed, job.taken, 1))
        self._paired = _paired_draws(job, settings)
        self._conditions = np.random.default_rng([job.seed, job.taken, 2])
        initial = torch.Generator().manual_seed(_mixed(job.seed, 0, 0))
        fresh = generator_of(settings, job.encoder, initial) if start is None else copy.deepcopy(start)
        self.generator = fresh.to(self._device)
        self.average = copy.deepcopy(self.generator)
        self.critic = critic_of(settings, job.encoder, initial).to(self._device)
        self.flat = _flatten(self.critic)
        self._critic_optimizer = _optimizer(settings, self.flat)
        self._generator_optimizer = optimizers.EagerAdam(
            self.generator.parameters(), settings.generator_lr, betas=settings.betas
        )
        self.iterations = 0
        self.restored = 0

    # -- what the teacher calls ----------------------------------------------------------------------------------

    def partner(self, size: int, condition: Tensor | None) -> Tensor:
        """Return one generated row for each condition; row i depends on condition i alone."""
        rows: Tensor = self.generator(self._noise(size, self._paired), condition)
        return rows

    def follow(self, gradient: Tensor) -> None:
        """Move the critic along the teacher's gradient."""
        self.flat.grad = gradient
        self._critic_optimizer.step()
        if self._settings.loss == "wgan":
            with torch.no_grad():
                self.flat.clamp_(-self._settings.weight_clip, self._settings.weight_clip)

    # -- the generator -------------------------------------------------------------------------------------------

    def improve_generator(self) -> float:
        """Take one step of the generator and return its loss."""
        records, condition = self.generated(self._settings.generator_batch)
        scores = self.critic(records, condition)
        loss = functional.softplus(-scores).mean() if self._settings.loss == "logistic" else -scores.mean()
        self.pace.saw(scores.detach())
        if self._anchor is not None:
            loss = loss + self._anchor(self.generator)
        gradients = torch.autograd.grad(loss, list(self.generator.parameters()))
        for parameter, gradient in zip(self.generator.parameters(), self.tempered(gradients), strict=True):
            parameter.grad = gradient
        self._generator_optimizer.step()
        self.iterations += 1
        self._slow_down()
        self._average()
        return float(loss.detach())

    def generated(self, size: int) -> tuple[Tensor, Tensor | None]:
        """Return generated records and their conditions, both drawn by the public seed."""
        condition = None
        if self._settings.condition_width(self._encoder):
            condition = as_tensor(self._encoder.draw_conditions(size, self._conditions)).to(self._device)
        return self.generator(self._noise(size, self._random), condition), condition

    def tempered(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the generator's gradients as its optimiser takes them; they follow from the critic alone."""
        return gradients

    def _slow_down(self) -> None:
        """Set both learning rates by the iteration alone: late steps are small, so that less noise stays."""
        left = self._settings.rate_left(self.iterations)
        self._critic_optimizer.param_groups[0]["lr"] = self._settings.critic_lr * left
        self._generator_optimizer.param_groups[0]["lr"] = self._settings.generator_lr * left

    @torch.no_grad()
    def _average(self) -> None:
        # The averaging window starts short, so that the average forgets the first iterations soon.
        weight = min(self._settings.generator_average, (1 + self.iterations) / (_WARMUP + self.iterations))
        for kept, new in zip(self.average.parameters(), self.generator.parameters(), strict=True):
            kept.lerp_(new, 1 - weight)
        for buffer, latest in zip(self.average.buffers(), self.generator.buffers(), strict=True):
            buffer.copy_(latest)  # averages of batch normalisation already

    def _noise(self, size: int, draws: noise.SecretDraws) -> Tensor:
        return draws.normal(size, self._settings.noise_width).to(self._device)

    # -- keeping state -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Return everything a resumed run needs; no random state is kept."""
        tensors = network_states.to_tensors(self._modules(), self._optimizers())
        counts = {"iterations": torch.tensor([self.iterations]), "pace": self.pace.state()}
        return tensors | {"critic": self.flat.detach().cpu().clone(), **counts}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore a checkpoint."""
        network_states.restore(tensors, self._modules(), self._optimizers())
        with torch.no_grad():
            self.flat.copy_(tensors["critic"])
        self.iterations = int(tensors["iterations"][0])
        self.restored = int(tensors[_STEPS][0]) if _STEPS in tensors else 0  # earlier versions kept no step
        self.pace.restore(tensors["pace"])
        self._slow_down()

    def agree(self, make_equal: Callable[[Sequence[Tensor]], None]) -> None:
        """Make processes that have taken the same step continue from the same numbers.

        Args:
            make_equal: Replaces tensors by those of the first process, in place.
        """
        pace = self.pace.state()
        make_equal([*self.generator.parameters(), *self.generator.buffers(), self.flat, pace])
        self.pace.restore(pace)

    def _modules(self) -> dict[str, nn.Module]:
        return {"generator": self.generator, "average": self.average}

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        return {"critic_optimizer": self._critic_optimizer, "generator_optimizer": self._generator_optimizer}


def train(job: Job, settings: AdversarialSettings, teacher: CriticTrainer, adversaries: Adversaries) -> nn.Module:
    """Alternate critic and generator until the teacher has no steps left; return the averaged generator."""
    every = settings.checkpoint_every
    teacher.skip(adversaries.restored)
    kept = teacher.taken
    job.progress.stage("train", teacher.steps)
    job.progress.at(teacher.taken)
    while teacher.taken < teacher.steps:
        with _kept_if_it_fails(job, teacher, adversaries):
            for _ in range(adversaries.pace.n_critic):
                if teacher.taken >= teacher.steps:  # a step that is lost counts as soon as those before are told again
                    break
                job.check_stop()
                adversaries.follow(teacher.gradient(adversaries.critic, adversaries.partner))
            loss = adversaries.improve_generator()
            adversaries.agree(job.agree)
        job.progress.at(teacher.taken)
        if teacher.taken - kept >= every:
            kept = teacher.taken
            job.checkpoints.save(kept, _state(adversaries, teacher))
            # JSON knows no NaN and no infinity.
            job.log({"step": kept, "generator_loss": round(loss, 6) if math.isfinite(loss) else None})
    job.checkpoints.save(teacher.taken, _state(adversaries, teacher))
    return adversaries.average


def _state(adversaries: Adversaries, teacher: CriticTrainer) -> dict[str, Tensor]:
    return adversaries.state() | {_STEPS: torch.tensor([teacher.taken])}


@contextlib.contextmanager
def _kept_if_it_fails(job: Job, teacher: CriticTrainer, adversaries: Adversaries) -> Iterator[None]:
    """Save a checkpoint of the steps so far when the next one ends the run by a stop or a defect.

    A refusal saves nothing: the process that is refused may have lost the run to another.
    """
    try:
        yield
    except Exception as error:
        state = _state(adversaries, teacher)
        if (isinstance(error, Interrupted) or not isinstance(error, DoublureError)) and all_finite(state):
            with contextlib.suppress(Exception):  # the error that ended the run is raised below
                job.checkpoints.save(teacher.taken, state)
        raise


def prepare(
    job: Job, settings: AdversarialSettings, *, start: nn.Module | None = None, anchor: Anchor | None = None
) -> Adversaries:
    """Build the networks, and restore them if the run was cut off; see :class:`Adversaries`."""
    adversaries = Adversaries(job, settings, start=start, anchor=anchor)
    kept = job.checkpoints.load()
    if kept is not None:
        with checkpoints.restoring():
            adversaries.restore(as_tensors(kept))
    return adversaries


class SeededDraws:
    """Draws from a public seed; never used where a private record is protected by a guarantee.

    Args:
        seed: Public.
    """

    def __init__(self, seed: int) -> None:
        self._stream = torch.Generator().manual_seed(seed)

    def normal(self, rows: int, width: int) -> Tensor:
        """Return the next draws of N(0, 1), ``(rows, width)``."""
        return torch.randn(rows, width, generator=self._stream)

    def uniform(self, size: int) -> Tensor:
        """Return the next draws from [0, 1), ``(size,)``."""
        return torch.rand(size, generator=self._stream)


def _paired_draws(job: Job, settings: AdversarialSettings) -> noise.SecretDraws:
    """Return the source of noise for generated rows that are paired with private ones.

    The members of a lot decide how much noise it uses and which record is paired with which row. If the stream were
    known, one more unit would shift all later draws: the partners of all later records, which clipping does not bound,
    and the generator's own noise, if it came from the same stream. Under a guarantee each lot draws under a fresh key
    from the operating system, which is never kept; the seed governs these draws only where nothing is claimed.
    """
    if not job.private:
        return SeededDraws(_mixed(job.seed, job.taken, 4))
    return noise.secret_draws()


def _optimizer(settings: AdversarialSettings, flat: nn.Parameter) -> torch.optim.Optimizer:
    if settings.critic_optimizer == "adam":
        return optimizers.EagerAdam([flat], settings.critic_lr, betas=settings.betas)
    if settings.critic_optimizer == "rmsprop":
        return optimizers.EagerRMSprop([flat], settings.critic_lr)
    return optimizers.EagerSGD([flat], settings.critic_lr)


def _flatten(module: nn.Module) -> nn.Parameter:
    """Make the module's parameters views of one flat buffer, and return it."""
    parameters = list(module.parameters())
    flat = nn.Parameter(torch.cat([parameter.detach().reshape(-1) for parameter in parameters]))
    start = 0
    for parameter in parameters:
        parameter.data = flat.data[start : start + parameter.numel()].view_as(parameter)
        parameter.requires_grad_(False)
        start += parameter.numel()
    return flat


def _mixed(*numbers: int) -> int:
    """Return one 63-bit seed from several public numbers."""
    return int(np.random.SeedSequence([number % 2**64 for number in numbers]).generate_state(1, np.uint64)[0] >> 1)
