"""Public sources of candidates, and how each varies those that were chosen.

A source sees public data, public seeds, and which of its own candidates the noisy votes chose: nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import override

from doublure.data.images import open_images
from doublure.data.images.records import as_bytes
from doublure.encode.image import ImageEncoder
from doublure.errors import SettingError, printable
from doublure.methods.evolution.facts import CandidateFacts, Propose, import_function
from doublure.methods.evolution.settings import EvolutionSettings
from doublure.networks.evolved import from_bytes
from doublure.networks.sizes import WARP_WIDTH
from doublure.networks.upsampling import warp_images
from doublure.public.facts import with_placeholder_answers
from doublure.public.folder import PublicFolder
from doublure.public.settings import read as read_public
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
from doublure.training.architectures import generator_of

if TYPE_CHECKING:
    from collections.abc import Callable

Candidates = npt.NDArray[Any]
"""``(n, …)`` what a source makes images of, one row a candidate."""

_FIELD = "candidates"
_CHUNK = 256
_SEEDS = 2**31
_LIGHT = 0.3
"""Largest change of an image's brightness, and of its contrast's logarithm, as a share of the range."""


@dataclass(frozen=True)
class PublicDraw:
    """Public randomness of one round and label.

    Attributes:
        rng: Follows from the run's public seed.
        label: The label, as text; None without one.
    """

    rng: np.random.Generator
    label: str | None


class CandidateSource(ABC):
    """Candidates and their variations."""

    @abstractmethod
    def first(self, count: int, draw: PublicDraw) -> Candidates:
        """Return the candidates of the first round."""

    @abstractmethod
    def varied(self, chosen: Candidates, degree: float, draw: PublicDraw) -> Candidates:
        """Return one variation of each of the chosen candidates.

        Args:
            chosen: ``(n, …)`` candidates with votes.
            degree: How far to go, from 1 down to 0.
            draw: Public randomness.
        """

    @abstractmethod
    def images(self, candidates: Candidates) -> Tensor:
        """Return the candidates' images ``(n, C, H, W)`` in [-1, 1]."""

    def learn(self, embed: Callable[[Tensor], Tensor], population: int) -> None:
        """Take what is known before the first vote.

        Args:
            embed: Images to features ``(n, D)``.
            population: Candidates of each label in a round.
        """
        del embed, population


class PublicImages(CandidateSource):
    """A set of public images, each altered by a warp, its light, and perhaps a mirror.

    A variation goes to one of the image's neighbours in the set half of the time, and moves all alterations. The first
    candidates stand for as many images each as the set has for one, so that a first step reaches as many neighbours.

    Args:
        images: ``(N, C, H, W)`` uint8.
        mirrored: Whether a mirrored image shows the same.
    """

    def __init__(self, images: Tensor, *, mirrored: bool) -> None:
        self._images = images
        self._mirrored = mirrored
        self._seen = torch.empty(0)
        self._reach = 1

    @override
    def first(self, count: int, draw: PublicDraw) -> Candidates:
        pool = len(self._images)
        places = np.concatenate([draw.rng.permutation(pool) for _ in range(-(-count // pool))])[:count]
        return np.column_stack([places, np.zeros((count, WARP_WIDTH + 3))])

    @override
    def varied(self, chosen: Candidates, degree: float, draw: PublicDraw) -> Candidates:
        found, count = chosen.copy(), len(chosen)
        found[:, 1 : WARP_WIDTH + 3] += degree * draw.rng.normal(size=(count, WARP_WIDTH + 2))
        if self._mirrored:
            found[:, -1] = (found[:, -1] + (draw.rng.random(count) < 0.5)) % 2
        moved = np.flatnonzero(draw.rng.random(count) < 0.5)
        reach = min(len(self._images) - 1, math.ceil(degree * self._reach))
        for first in range(0, len(moved) if reach else 0, _CHUNK):
            rows = moved[first : first + _CHUNK]
            alike = self._seen[found[rows, 0].astype(np.int64)] @ self._seen.T
            near = alike.topk(reach + 1, dim=1).indices[:, 1:].numpy()
            found[rows, 0] = near[np.arange(len(rows)), draw.rng.integers(0, reach, len(rows))]
        return found

    @override
    def images(self, candidates: Candidates) -> Tensor:
        numbers = torch.from_numpy(candidates).float()
        found = from_bytes(self._images[numbers[:, 0].long()])
        found = torch.where((numbers[:, -1] > 0)[:, None, None, None], found.flip(3), found)
        light = _LIGHT * torch.tanh(numbers[:, -3:-1])[:, :, None, None, None]
        found = (found * light[:, 0].exp() + light[:, 1]).clamp(-1, 1)
        return warp_images(found, numbers[:, 1 : WARP_WIDTH + 1], 1.0)

    @override
    def learn(self, embed: Callable[[Tensor], Tensor], population: int) -> None:
        parts = [embed(from_bytes(part)).float() for part in torch.split(self._images, _CHUNK)]
        self._seen = torch.nn.functional.normalize(torch.cat(parts), dim=1)
        self._reach = math.ceil(len(self._images) / population)


class GeneratedCandidates(CandidateSource):
    """Latents of a public generator; a variation turns a latent towards a new one.

    Args:
        generator: Latents ``(n, d)`` to images.
        width: d.
    """

    def __init__(self, generator: torch.nn.Module, width: int) -> None:
        self._generator = generator
        self._width = width

    @override
    def first(self, count: int, draw: PublicDraw) -> Candidates:
        return draw.rng.normal(size=(count, self._width))

    @override
    def varied(self, chosen: Candidates, degree: float, draw: PublicDraw) -> Candidates:
        turn = degree * math.pi / 4  # halfway to a latent that has nothing of the first
        return math.cos(turn) * chosen + math.sin(turn) * draw.rng.normal(size=chosen.shape)

    @override
    @torch.no_grad()
    def images(self, candidates: Candidates) -> Tensor:
        found: Tensor = self._generator(torch.from_numpy(candidates).float())
        return found.clamp(-1, 1)


class ProposedCandidates(CandidateSource):
    """Images that a Python function makes: candidates are the images themselves.

    Args:
        propose: ``propose(seeds, parents=None, degree=1.0, label=None)`` returns one image a seed, ``(n, H, W, C)``
            uint8: a new one, or a variation of its parent.
        shape: ``(H, W, C)``.
    """

    def __init__(self, propose: Propose, shape: tuple[int, int, int]) -> None:
        self._propose = propose
        self._shape = shape

    @override
    def first(self, count: int, draw: PublicDraw) -> Candidates:
        return self._asked(count, draw)

    @override
    def varied(self, chosen: Candidates, degree: float, draw: PublicDraw) -> Candidates:
        return self._asked(len(chosen), draw, parents=chosen, degree=degree)

    @override
    def images(self, candidates: Candidates) -> Tensor:
        return from_bytes(torch.from_numpy(candidates).permute(0, 3, 1, 2))

    def _asked(self, count: int, draw: PublicDraw, **how: Any) -> Candidates:
        if not count:
            return np.empty((0, *self._shape), dtype=np.uint8)
        try:
            found = np.asarray(self._propose(draw.rng.integers(0, _SEEDS, count), label=draw.label, **how))
        except Exception as error:  # the user's function may raise anything
            raise SettingError(
                f"ended with {type(error).__name__}: {printable(str(error))}", field=_FIELD, remedy="fix the function"
            ) from error
        if found.shape != (count, *self._shape) or found.dtype != np.uint8:
            wanted = "x".join(map(str, (count, *self._shape)))
            remedy = "return one image a seed, from 0 to 255"
            raise SettingError(f"must return uint8 of {wanted}", field=_FIELD, remedy=remedy)
        return found


def open_source(settings: EvolutionSettings, schema: Schema, most: int, seed: int) -> CandidateSource:
    """Return the plan's source of candidates.

    Args:
        settings: With defaults resolved.
        schema: The private data's schema, as planned.
        most: The most public images that are used.
        seed: Public; draws these.

    Raises:
        SettingError: The source is not the plan's, or makes other images.
    """
    asked, known = ImageSchema.of(schema), settings.known
    if CandidateFacts.of(settings.candidates, settings.provenance) != known:
        remedy = "give the plan's, or make the plan again"
        raise SettingError("are not those of the plan", field=_FIELD, remedy=remedy)
    if known.source == "function":
        return ProposedCandidates(import_function(settings.candidates), asked.shape)
    if known.source == "generator":
        folder = PublicFolder(settings.candidates)
        facts = folder.facts
        facts.refuse_unfit(schema)
        networks: Any = read_public(facts.kind, dict(facts.settings))
        encoder = ImageEncoder(with_placeholder_answers(schema))
        generator = generator_of(networks, encoder, torch.Generator().manual_seed(0))
        generator.load_state_dict(folder.weights(facts).generator)
        return GeneratedCandidates(generator.eval().requires_grad_(False), facts.latent)
    images = _read(settings.candidates, asked)
    rows = np.sort(np.random.default_rng(seed).permutation(len(images))[:most])
    return PublicImages(torch.from_numpy(images[rows]).permute(0, 3, 1, 2), mirrored=asked.images.pictures == "scenes")


def _read(place: str, schema: ImageSchema) -> npt.NDArray[np.uint8]:
    """Return public images ``(N, H, W, C)`` of the schema's shape; others are converted and resized."""
    path, _, split = place.partition("#")
    source = open_images(f"{Path(path)}#{split}" if "#" in place else Path(path))
    rule = {"shape": list(schema.shape), "on_mismatch": "resize", "range": list(source.usual_range)}
    public = Schema.from_plain({"doublure": 1, "kind": "images", "units": 1, "misfit": "coerce", "images": rule})
    loaded: Any = source.load(public.resolve({}))
    found: npt.NDArray[np.uint8] = as_bytes(loaded.content.images)
    return found
