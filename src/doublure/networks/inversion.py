"""Inversion of a public generator, record by record (Chen et al. 2021, section III-A, equation 4).

For a record x the inversion seeks the latent z that minimises ‖G(z) − x‖² subject to ‖z‖ ≤ ‖z₀‖, by projected gradient
descent from z₀ ~ N(0, I), with fixed steps and rates. Of a fixed number of restarts it keeps the one with the smallest
error for this record. (The paper calls the problem convex; the constraint is, the objective is not.)

Guarantee: none of its own, and none is spent. A latent is a function of its own record and of public numbers alone.
Adding or removing one record adds or removes one latent and leaves every other unchanged, so that a mechanism that is
differentially private for one latent is so for one record. The requirements, and the measures taken:

====================================  ================================================================================
pitfall                               measure
====================================  ================================================================================
z₀ depends on other records           the restarts' z₀ come from a public seed and are the same for every record. Draws
                                      of each record's own would have to be secret and kept through a crash; they
                                      would add nothing, as the claim never counts on them
batch normalisation, minibatch        a generator or encoder in training mode is refused, and so is one whose output
statistics                            for a latent changes with the latents beside it
steps that follow the data            every record takes the same number of steps, at rates that depend on the step
                                      alone; no sum over records decides anything
a batch's size                        losses are summed, never averaged; every batch is padded to one size
a place in a batch                    the last digits of a matrix product depend on a row's place, and a long descent
                                      amplifies them: a record's place follows from its own content
                                      (``PrivateRecords.mapped`` with ``apart``), not from the records before it
other data when a run is resumed      kept latents are used only if the records are the same
normalising over the data set         latents are kept within ‖z₀‖ and the public radius √d, whichever is smaller, from
                                      the first step on, and are not shifted or scaled
a record that is not finite           its latent is zero
====================================  ================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.networks.latent import project_to_ball

Proposal = Callable[[Tensor], Tensor]
"""Records ``(B, D…)`` to latents ``(B, d)``, row by row."""

_BETAS = (0.9, 0.99)
_FLOOR = 1e-8
_TRIED = 4
_TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class InversionSettings:
    """Settings of an inversion, fixed in the plan.

    Attributes:
        steps: Steps of gradient descent for each record and restart; 0 keeps the proposal.
        restarts: Number of z₀ for each record.
        rate: Learning rate of the first step; rates fall to zero along a half cosine.
        seed: Public seed of the z₀.
        batch: Records in a batch. Small batches stay in a processor's cache.
    """

    steps: int
    restarts: int
    rate: float
    seed: int = 0
    batch: int = 256


class Inversion:
    """Map of records to latents; see the module.

    Args:
        generator: G, ``(B, d) -> (B, D…)``, in evaluation mode.
        width: d.
        settings: Steps, restarts and rates.
        proposer: An encoder, trained on public data alone, that proposes the start of the first restart (projected into
            that restart's ball); in evaluation mode.
        shape: Shape of one record, for the check that records do not interact in the encoder.

    Raises:
        SettingError: A network is in training mode, or rows interact in it.
    """

    def __init__(
        self,
        generator: nn.Module,
        width: int,
        settings: InversionSettings,
        *,
        proposer: nn.Module | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        if settings.steps == 0 and proposer is None:
            raise SettingError("needs steps, or an encoder", field="inversion_steps", remedy="take at least one step")
        refuse_interaction(generator, (width,), "public generator")
        if proposer is not None:
            refuse_interaction(proposer, shape, "encoder")
        self.width = width
        self.settings = settings
        self._generator = generator
        self._proposer = proposer
        source = torch.Generator().manual_seed(settings.seed)
        self.starts = torch.randn(settings.restarts, width, generator=source)

    def __call__(self, records: Tensor) -> Tensor:
        """Return latents ``(B, d)`` of records ``(B, D…)``, a batch at a time.

        Private records come in full batches, each at its own place (``PrivateRecords.mapped`` with ``apart``).
        """
        if not len(records):
            return torch.zeros(0, self.width, device=records.device)
        return torch.cat([self._inverted(batch) for batch in torch.split(records, self.settings.batch)])

    def _inverted(self, records: Tensor) -> Tensor:
        best = torch.zeros(len(records), self.width, device=records.device)
        least = torch.full((len(records),), math.inf, device=records.device)
        for number, start in enumerate(self.starts.to(records.device)):
            radius = start.norm().clamp(max=math.sqrt(self.width))
            latents = project_to_ball(start.expand(len(records), -1), radius)
            if self._proposer is not None and number == 0:
                with torch.no_grad():
                    latents = project_to_ball(self._proposer(records), radius)
            latents, errors = self._descended(records, latents.clone(), radius)
            better = errors < least  # never true of an error that is not finite
            best[better], least[better] = latents[better], errors[better]
        return best

    def _descended(self, records: Tensor, latents: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
        """Return each record's latent after all steps of Adam, and its error; Adam's moments are elementwise."""
        first, second = torch.zeros_like(latents), torch.zeros_like(latents)
        for step in range(self.settings.steps):
            latents.requires_grad_(True)
            with torch.enable_grad():
                (slope,) = torch.autograd.grad(self._errors(records, latents).sum(), latents)
            first = _BETAS[0] * first + (1 - _BETAS[0]) * slope
            second = _BETAS[1] * second + (1 - _BETAS[1]) * slope.square()
            unbiased = first / (1 - _BETAS[0] ** (step + 1))
            scale = (second / (1 - _BETAS[1] ** (step + 1))).sqrt() + _FLOOR
            rate = self.settings.rate * (1 + math.cos(math.pi * step / self.settings.steps)) / 2
            latents = project_to_ball(latents.detach() - rate * unbiased / scale, radius)
        with torch.no_grad():
            return latents.detach(), self._errors(records, latents)

    def _errors(self, records: Tensor, latents: Tensor) -> Tensor:
        """Return ‖G(z) − x‖² ``(B,)``."""
        errors: Tensor = (self._generator(latents) - records).square().flatten(1).sum(1)
        return errors


def refuse_interaction(network: nn.Module, shape: tuple[int, ...], name: str) -> None:
    """Refuse a network whose output for one row depends on the rows beside it.

    Batch normalisation mixes rows in training mode only, which is refused before the network is called.

    Raises:
        SettingError: The network is in training mode, its outputs are not finite, or an output changes with other rows
            or with their number.
    """
    if any(layer.training for layer in network.modules()):
        raise SettingError("is in training mode, where rows may meet", field=name, remedy="call eval() on it first")
    source = torch.Generator().manual_seed(0)
    like = next(network.parameters(), torch.zeros(()))
    rows = torch.randn((_TRIED, *shape), generator=source).to(like.device, like.dtype)
    moved = torch.cat([rows[:1], 3 * rows[1:] + 1])
    with torch.no_grad():
        whole, others, alone = network(rows)[:1], network(moved)[:1], network(rows[:1])
    if not bool(torch.isfinite(torch.cat([whole, others, alone])).all()):
        raise SettingError("makes numbers that are not finite", field=name, remedy="use one that has not run away")
    for beside in (others, alone):
        if not torch.allclose(whole, beside, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise SettingError("lets rows meet", field=name, remedy="use one without minibatch statistics")
