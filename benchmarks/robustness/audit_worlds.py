"""Pairs of worlds that differ in one record, and what a reader sees in what a fit makes of them.

Each case is a tiny data set with and without one record, the canary, and a method made so quick that it can be fitted
thousands of times. Of each fit two readers take a few numbers. The one of the *generator* holds what is released. The
one of the *checkpoint* holds all that the noise was added to: noisy tables and sums, as the run keeps them until it is
finished, the critic after its last step, the moments of its optimiser; the same guarantee covers it, and nothing that
is released can show more. Both know the data but for the canary, the plan, and the public seed. Where the likelihood
ratio is known (noisy counts and sums) the reader computes it; else the numbers are what a linear rule can be trained
on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import doublure as db
from doublure.auditing.worst_case import NEIGHBOURING_SETS
from doublure.encode.choice import encoder_for
from doublure.methods.guided.critic_stage import critic_of_images
from doublure.methods.latentgan.moments import moment_vectors
from doublure.methods.latentgan.training import build_inversion, public_networks
from doublure.methods.statistics.images.mean_embedding import COUNTED, build_features
from doublure.methods.statistics.tables.plan import SCORES
from doublure.networks.tree import TreeGenerator
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.private.mechanism import Mechanism
from doublure.private.queries.counts import Counts
from doublure.private.queries.sums import BoundedSums
from doublure.schema import Schema
from doublure.support.tensors import Array, as_array, as_tensor
from doublure.training.architectures import critic_of

sys.path.append(str(Path(__file__).resolve().parents[1]))  # where the other benchmarks are
from attacks import public_rows

State: TypeAlias = Mapping[str, Tensor | Array]
Numbers: TypeAlias = list[float]
COMMON, LIKE_THE_CANARY = 600, 30
_DRAWN = 20_000
COUNTS: dict[str, Any] = {"components": 4, "fit_steps": 30}
STAGE: dict[str, Any] = {"critic_share": 0.4, "critic_steps": 2}
GAN: dict[str, Any] = {
    "steps": 2, "lot_size": 4, "width": 4, "depth": 0, "critic_depth": 0, "generator_batch": 16, "checkpoints": 1,
    "critic_optimizer": "sgd", "critic_lr": 1.0, "gradient_penalty": 0.0, "max_grad_norm": 1.0,
}  # fmt: skip
IMAGES: dict[str, Any] = {
    "features": 32, "batch": 10, "channels": [4], "hidden": 4, "fit_steps": 4, "critic_channels": [4], "critic_lot": 4,
    "labeller_steps": 2, "view_images": 100, "view_width": 10, "tries": 2, "labeller_share": 0.3,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Case:
    """One method in two worlds.

    Attributes:
        method: Its name.
        kind: Of data.
        schema: What is public.
        data: Whether the canary is there, to what is fitted.
        settings: Of the method.
        kept: What the reader of the checkpoint takes.
        generator: What the reader of the generator takes.
        fits: Fits a world.
    """

    method: str
    kind: str
    schema: Schema
    data: Callable[[bool], Any]
    settings: Mapping[str, Any]
    kept: Callable[[db.Synthesizer, State], Numbers]
    generator: Callable[[db.Synthesizer], Numbers]
    fits: int

    def plan(self, epsilon: float, delta: float) -> db.Plan:
        """Return what is fitted."""
        return db.plan(self.schema, method=self.method, epsilon=epsilon, delta=delta, **self.settings)

    def read(self, syn: db.Synthesizer, kept: State) -> dict[str, Numbers]:
        """Return what each reader takes of a fit."""
        return {"kept": self.kept(syn, kept), "generator": self.generator(syn)}


def cases(public: Path) -> dict[str, Case]:
    """Return all cases, the cheapest first.

    Args:
        public: The folder of ``latentgan``'s public generator; it is made if it is not there.
    """
    if not public.is_dir():
        public_rows(public)
    many, few = _rows(COMMON, LIKE_THE_CANARY), _rows(2, 2)
    counted: dict[str, Any] = {"kind": "table", "schema": _schema(COMMON + LIKE_THE_CANARY), "data": many}
    tiny: dict[str, Any] = {"kind": "table", "schema": NEIGHBOURING_SETS["table"].schema}
    latent = {"public": str(public), "inversion_steps": 1}
    pictures, moments = _Pictures(), _Moments()
    return {
        "statistics": Case(
            method="statistics", settings=COUNTS, fits=3000, **counted, kept=lambda syn, kept: [counts(syn.plan, kept)],
            generator=lambda syn: shares(syn.generator),
        ),
        "dpgan": Case(
            method="dpgan", settings=GAN | {"noise_width": 2}, fits=3000, **tiny, data=few,
            kept=lambda syn, kept: numbers(kept["critic"]), generator=lambda syn: weights(syn.generator),
        ),
        "latentgan, mixture": Case(
            method="latentgan", settings=latent, **tiny, data=_rows(4, 0), kept=moments, fits=2000,
            generator=lambda syn: _mixture(syn.generator),
        ),
        "latentgan, critic": Case(
            method="latentgan", settings=latent | GAN | {"teacher": "critic"}, **tiny, data=few, fits=2000,
            kept=lambda syn, kept: numbers(kept["latents/critic"]), generator=lambda syn: weights(syn.generator.latent),
        ),
        "guided": Case(
            method="guided", settings=COUNTS | STAGE | {"critic_depth": 0, "critic_lot": COMMON}, **counted, fits=2000,
            kept=lambda syn, kept: [counts(syn.plan, kept), *_critic(kept)],
            generator=lambda syn: shares(syn.generator),
        ),
        "guided, images": Case(
            method="guided", kind="images", schema=NEIGHBOURING_SETS["images"].schema, settings=STAGE | IMAGES,
            data=_images, kept=pictures.kept, generator=pictures.generator, fits=1200,
        ),
    }  # fmt: skip


# -- what is fitted ----------------------------------------------------------------------------------------------------


def _schema(units: int) -> Schema:
    return Schema.from_plain(NEIGHBOURING_SETS["table"].schema.to_plain() | {"units": units})


def _rows(no: int, yes: int) -> Callable[[bool], pd.DataFrame]:
    """Return rows that say no, or yes, three times; the canary says yes."""
    return lambda canary: pd.DataFrame({name: np.arange(no + yes + canary) >= no for name in "abc"})


def _images(canary: bool) -> dict[str, Any]:
    made = NEIGHBOURING_SETS["images"].side(canary)
    return {"images": made.images, "labels": np.asarray(made.labels)}


# -- what is read ------------------------------------------------------------------------------------------------------


@contextmanager
def answers_heard() -> Iterator[dict[str, Array]]:
    """Yield the noisy answers of what is fitted within, by purpose and number: tables one by one, sums in their shape.

    They are those that a run keeps. What follows from the others is in its checkpoint.
    """
    heard: dict[str, list[Array]] = {}
    found: dict[str, Array] = {}
    release = Mechanism.release

    def told(self: Mechanism, query: Any, access: Any, records: Any, *, keep: bool = True) -> Any:
        noisy = release(self, query, access, records, keep=keep)
        if keep:
            before = heard.setdefault(access.purpose, [])
            for answer in _parts(query, noisy):
                found[f"{access.purpose}_{len(before)}"] = answer
                before.append(answer)
        return noisy

    with patch.object(Mechanism, "release", told):
        yield found


def _parts(query: Any, noisy: Any) -> list[Array]:
    if isinstance(query, Counts):
        return list(query.split(noisy))
    return [noisy.reshape(query.shape) if isinstance(query, BoundedSums) else noisy]


def numbers(values: Tensor | Array) -> Numbers:
    """Return the numbers of a tensor or an array."""
    return [float(value) for value in as_array(values).reshape(-1)]


def weights(network: Any) -> Numbers:
    """Return all that a network has learned."""
    return [value for part in network.parameters() for value in numbers(part)]


def counts(plan: db.Plan, kept: State) -> float:
    """Return the log-likelihood ratio of noisy tables, up to a constant: the canary is in the last cell of each.

    Under discrete Gaussian noise of scale s one count more in a cell is worth its noisy count over s². What scores of
    pairs tell beside is left out.

    Raises:
        KeyError: There is no table of one of the plan's releases.
    """
    total = 0.0
    for access in plan.training:
        if not isinstance(access.event, DiscreteGaussianEvent) or access.purpose == SCORES:
            continue
        tables = [kept[f"{access.purpose}_{number}"] for number in range(access.event.tables)]
        total += sum(float(as_array(table).flatten()[-1]) for table in tables) / access.event.scale**2
    return total


def shares(generator: TreeGenerator) -> Numbers:
    """Return how often each column, each pair and all three say yes in drawn rows."""
    yes = torch.from_numpy(generator(np.random.default_rng(0).standard_normal((_DRAWN, 1))))
    together = torch.stack([yes[:, 0] * yes[:, 1], yes[:, 0] * yes[:, 2], yes[:, 1] * yes[:, 2], yes.prod(1)], dim=1)
    return numbers(torch.cat([yes, together], dim=1).mean(0))


def _critic(kept: State) -> Numbers:
    """Return a linear critic, and the running mean of its noisy gradients."""
    return numbers(kept["critic/critic"]) + numbers(kept["critic/critic_optimizer.0.exp_avg"])


def _mixture(generator: Any) -> Numbers:
    """Return a latents' mixture's mean and covariance: so few records are not split, and all components are alike."""
    means, factors = generator.latent.means[:1], generator.latent.factors[:1]
    return numbers(means) + numbers(factors @ factors.transpose(1, 2))


class _Moments:
    """The log-likelihood ratio of noisy sums of latents' moments, up to a constant."""

    def __call__(self, syn: db.Synthesizer, kept: State) -> Numbers:
        """Return it: a sum's length along the canary's vector, over the noise's variance, release by release."""
        total = 0.0
        for access in syn.plan.training:
            event = access.event
            if not isinstance(event, GaussianEvent):
                raise TypeError("moments are noised by Gaussian noise")
            total += (
                float(as_array(kept[f"{access.purpose}_0"]).sum(0) @ as_array(self._vector(syn)))
                / event.noise_multiplier**2
            )
        return [total]

    def _vector(self, syn: db.Synthesizer) -> Tensor:
        if not hasattr(self, "_made"):
            settings: Any = syn.plan.settings
            encoder = encoder_for(syn.schema, settings.encoding)
            body, _ = encoder.split(encoder.encode(_rows(0, 1)(False)))
            generator, proposer, _ = public_networks(encoder, settings)
            self._made = moment_vectors(build_inversion(encoder, settings, generator, proposer)(body))[0]
        return self._made


class _Pictures:
    """What is read of ``guided`` on images: the embedding, the critic's gradients, the labeller's margin."""

    @cached_property
    def bodies(self) -> Tensor:
        """The canary and one of the others ``(2, C, H, W)``."""
        from doublure.encode.image import ImageEncoder

        made = NEIGHBOURING_SETS["images"].side(True)
        encoder = ImageEncoder(NEIGHBOURING_SETS["images"].schema.resolve({}))
        return encoder.split(encoder.encode(made.take(np.array([4, 0]))))[0]

    def kept(self, syn: db.Synthesizer, kept: State) -> Numbers:
        """Return how far each stage's noisy sums point where the canary points."""
        settings: Any = syn.plan.settings
        encoder = encoder_for(syn.schema, settings.encoding)
        seen = build_features(encoder, settings)(self.bodies)[0]
        there = torch.cat([seen * np.sqrt(1 - COUNTED**2), torch.tensor([COUNTED])])
        released = kept[f"{syn.plan.training[0].purpose}_0"]
        found = [float(as_array(released)[1] @ as_array(there))]
        network = critic_of(critic_of_images(settings), encoder, torch.Generator().manual_seed(0))
        torch.nn.utils.vector_to_parameters(as_tensor(kept["critic/critic"]), network.parameters())
        steps = as_tensor(kept["critic/critic_optimizer.0.exp_avg"])
        labels = torch.eye(2).flip(0)
        drawn = self._labelled(syn).generator(torch.zeros(1, settings.image_noise), labels[:1]).detach()
        for body, label in zip((*self.bodies, drawn[0]), (*labels, labels[0]), strict=True):
            score = network(body[None], label[None]).sum()
            slope = torch.cat([part.flatten() for part in torch.autograd.grad(score, list(network.parameters()))])
            found.append(float(steps @ slope / slope.norm()))
        return [*found, *self._margins(syn)]

    def generator(self, syn: db.Synthesizer) -> Numbers:
        """Return the labeller's margins, and how bright images of each label are."""
        generator = self._labelled(syn).generator
        width = syn.plan.settings.image_noise  # type: ignore[attr-defined]
        noise = torch.randn(64, width, generator=torch.Generator().manual_seed(0))
        bright = [float(generator(noise, torch.eye(2)[[label] * 64]).detach().mean()) for label in (0, 1)]
        return [*self._margins(syn), *bright]

    @staticmethod
    def _labelled(syn: db.Synthesizer) -> Any:
        """Return the generator with its labeller, without the shares of labels around it."""
        return syn.generator.generator

    def _margins(self, syn: db.Synthesizer) -> Numbers:
        scores = self._labelled(syn).labeller(self.bodies).detach()
        return numbers(scores[:, 1] - scores[:, 0])
