"""Training of a public generator, as a GAN or an autoencoder, and of its encoder.

No record here is private. ``wgan-gp`` is the loop of ``gan`` (:mod:`doublure.training.gan_loop`) on public records.
``autoencoder`` is a variational autoencoder (Kingma and Welling 2014) whose output deviation is estimated from each
batch (Rybkin et al. 2021, σ-VAE), so that no weight has to be set between reconstruction and prior. The residual on
public images is kept as noise of the same covariance (:mod:`doublure.networks.detail`).
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from doublure.errors import Interrupted
from doublure.networks import optimizers
from doublure.networks.detail import ImageDetail
from doublure.networks.latent import InversionEncoder, PublicNetworks, project_to_ball
from doublure.public.architectures import inversion_encoder_of
from doublure.public.settings import PublicSettings
from doublure.support.tensors import as_tensors
from doublure.training import checkpoints, network_states
from doublure.training import gan_loop as adversarial
from doublure.training.architectures import generator_of
from doublure.training.critic_steps import PlainCriticTrainer
from doublure.training.job import Job

_AVERAGE, _WARMUP = 0.998, 10.0
_LAST_RATE = 0.02
_SMALLEST = 1e-6
_BEYOND = 1.2
_IMAGE = 3  # channels, rows, columns
_MOST_LOOKED_AT, _AT_ONCE = 10_000, 500


def train(job: Job, settings: PublicSettings) -> PublicNetworks:
    """Return a trained public generator, with its encoder and detail where it has them.

    Args:
        job: Public records without conditions.
        settings: With defaults resolved.
    """
    if settings.objective == "autoencoder":
        training = Autoencoding(job, settings, "autoencoder")
        training.run("train the autoencoder", settings.steps or 1)
        return PublicNetworks(training.generator_average, training.encoder_average, training.detail())
    stage = _gan(job, settings)
    adversaries = adversarial.prepare(stage, settings)
    generator = adversarial.train(stage, settings, PlainCriticTrainer(stage, settings), adversaries)
    if not settings.proposer:
        return PublicNetworks(generator)
    proposing = EncoderTraining(job, settings, generator)
    proposing.run("train the encoder", settings.proposer_steps)
    return PublicNetworks(generator, proposing.encoder_average)


def _gan(job: Job, settings: PublicSettings) -> Job:
    """Return the GAN's stage, with the steps that its own checkpoint has taken."""
    stage = job.stage("gan", after=0)
    kept = stage.checkpoints.load() or {}
    done = int(kept["iterations"][0]) * settings.n_critic if "iterations" in kept else 0
    return replace(stage, taken=min(settings.steps or 1, done))


class _Training:
    """Training by Adam under a cosine schedule, with averaged weights and checkpoints.

    Args:
        job: Checkpoints, progress and seed.
        settings: The learning rate.
        name: The key of the state.
        modules: The trained modules; each has an average.
    """

    def __init__(self, job: Job, settings: PublicSettings, name: str, modules: dict[str, nn.Module]) -> None:
        self._job = job
        self._settings = settings
        self._checkpoints = job.stage(name, after=0).checkpoints
        self._learning = {key: module.to(job.device) for key, module in modules.items()}
        self._averages = {key: copy.deepcopy(module) for key, module in self._learning.items()}
        weights = [weight for module in self._learning.values() for weight in module.parameters()]
        self._optimizer = optimizers.EagerAdam(weights, settings.autoencoder_lr)
        self.done = 0
        kept = self._checkpoints.load()
        if kept is not None:
            with checkpoints.restoring():
                network_states.restore(as_tensors(kept), self._modules(), {"optimizer": self._optimizer})
                self.done = int(kept["done"][0])
        self._draw = np.random.default_rng([job.seed, self.done, 7])
        self._noise = torch.Generator().manual_seed(int(self._draw.integers(2**31)))

    def run(self, stage: str, steps: int) -> None:
        """Train to the end."""
        job = self._job
        job.progress.stage(stage, steps)
        every = -(-steps // self._settings.checkpoints)
        try:
            while self.done < steps:
                job.check_stop()
                self._optimizer.param_groups[0]["lr"] = self._settings.autoencoder_lr * (
                    _LAST_RATE + (1 - _LAST_RATE) * (1 + math.cos(math.pi * self.done / steps)) / 2
                )
                loss = self.loss()
                self._optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self._optimizer.step()
                self.done += 1
                self._follow()
                job.progress.at(self.done)
                if self.done % every == 0:
                    self._keep()
                    job.log({"step": self.done, "loss": round(float(loss.detach()), 5)})
        except Interrupted:
            self._keep()
            raise
        self._keep()

    def loss(self) -> Tensor:
        """Return the loss of the next step."""
        raise NotImplementedError

    @torch.no_grad()
    def _follow(self) -> None:
        past = min(_AVERAGE, self.done / (_WARMUP + self.done))  # a short window at first forgets the initial weights
        for key, module in self._learning.items():
            for kept, new in zip(self._averages[key].parameters(), module.parameters(), strict=True):
                kept.lerp_(new, 1 - past)
            for buffer, latest in zip(self._averages[key].buffers(), module.buffers(), strict=True):
                buffer.copy_(latest)

    def _modules(self) -> dict[str, nn.Module]:
        return self._learning | {f"{key} average": module for key, module in self._averages.items()}

    def _keep(self) -> None:
        state = network_states.to_tensors(self._modules(), {"optimizer": self._optimizer})
        self._checkpoints.save(self.done, state | {"done": torch.tensor([self.done])})


class Autoencoding(_Training):
    """Training of an autoencoder, an encoder and a generator that invert each other, on public records."""

    def __init__(self, job: Job, settings: PublicSettings, name: str) -> None:
        initial = torch.Generator().manual_seed(job.seed % 2**63)
        modules = {
            "generator": generator_of(settings, job.encoder, initial),
            "encoder": inversion_encoder_of(settings, job.encoder, initial),
        }
        super().__init__(job, settings, name, modules)

    @property
    def generator_average(self) -> nn.Module:
        """The generator's averaged weights."""
        return self._averages["generator"]

    @property
    def encoder_average(self) -> InversionEncoder:
        """The encoder's averaged weights."""
        return _as_proposer(self._averages["encoder"])

    @torch.no_grad()
    def detail(self) -> ImageDetail | None:
        """Return the residual detail of a sample of public images; None for rows."""
        shape, records = self._job.encoder.body_shape, self._job.records
        if len(shape) != _IMAGE:
            return None
        self._job.progress.stage("measure what the autoencoder leaves out")
        rows = np.random.default_rng([self._job.seed, 8]).permutation(records.n_units)[:_MOST_LOOKED_AT]
        found = ImageDetail((shape[0], shape[1], shape[2]))
        found.learn(self._with_made(part) for part in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)))
        return found

    def _with_made(self, units: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        bodies, _, _, _ = self._job.records.lot(units)
        return bodies, self.generator_average(self.encoder_average(bodies))

    @override
    def loss(self) -> Tensor:
        records = self._job.records
        size = min(self._settings.lot_size or 1, records.n_units)
        bodies, _, _, _ = records.lot(self._draw.choice(records.n_units, size, replace=False))
        mean, logarithm = _as_proposer(self._learning["encoder"]).both(bodies)
        noise = torch.randn(mean.shape, generator=self._noise).to(mean.device)
        made = self._learning["generator"](mean + (logarithm / 2).exp() * noise)
        error = (made - bodies).square().flatten(1).mean(1).mean()
        dimensions = bodies[0].numel()
        reconstruction = dimensions / 2 * (error + _SMALLEST).log()
        divergence = (mean.square() + logarithm.exp() - 1 - logarithm).sum(1).mean() / 2
        loss: Tensor = reconstruction + divergence
        return loss


class EncoderTraining(_Training):
    """Training of an encoder that finds the latents of generated records.

    Latents are drawn a little wider than the prior, because records that a generator was not trained on have latents
    further out.
    """

    def __init__(self, job: Job, settings: PublicSettings, generator: nn.Module) -> None:
        self._generator = copy.deepcopy(generator).to(job.device).eval().requires_grad_(False)
        initial = torch.Generator().manual_seed((job.seed + 1) % 2**63)
        super().__init__(job, settings, "proposer", {"encoder": inversion_encoder_of(settings, job.encoder, initial)})

    @property
    def encoder_average(self) -> InversionEncoder:
        """The encoder's averaged weights."""
        return _as_proposer(self._averages["encoder"])

    @override
    def loss(self) -> Tensor:
        width = self._settings.noise_width
        latents = torch.randn(self._settings.lot_size or 1, width, generator=self._noise).to(self._job.device)
        latents = project_to_ball(latents * _BEYOND, math.sqrt(width) * _BEYOND)
        with torch.no_grad():
            records = self._generator(latents)
        found = _as_proposer(self._learning["encoder"])(records)
        again = self._generator(found)
        loss: Tensor = functional.mse_loss(found, latents) + functional.mse_loss(again, records)
        return loss


def _as_proposer(module: nn.Module) -> InversionEncoder:
    if not isinstance(module, InversionEncoder):
        raise TypeError("an encoder of latents is an InversionEncoder")
    return module
