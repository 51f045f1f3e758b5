"""A generator whose images are checked by a labeller before they are returned."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from doublure.networks.fixed_features import LabelFeatures
from doublure.networks.upsampling import UNLIMITED


class Labeller(nn.Module):
    """A linear model on fixed features: images ``(B, C, H, W)`` to one score a label ``(B, K)``.

    Args:
        shape: ``(C, H, W)``.
        classes: K.

    Attributes:
        centre: ``(D,)`` subtracted from the features.
        weights: ``(K, D)``.
    """

    def __init__(self, shape: tuple[int, int, int], *, classes: int) -> None:
        super().__init__()
        self.features = LabelFeatures(shape)
        self.centre: Tensor
        self.weights: Tensor
        self.register_buffer("centre", torch.zeros(self.features.width))
        self.register_buffer("weights", torch.zeros(classes, self.features.width))

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores."""
        scores: Tensor = (self.features(images) - self.centre) @ self.weights.T
        return scores


class OfLabel(nn.Module):
    """A generator of images among whose conditions the label comes first; pixels follow from it alone.

    Args:
        generator: Maps noise ``(B, Z)`` and labels to images.
        labels: K; 0 without labels.
    """

    def __init__(self, generator: nn.Module, labels: int) -> None:
        super().__init__()
        self.generator = generator
        self._labels = labels

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        """Return images ``(B, C, H, W)`` for noise and conditions ``(B, K + …)``."""
        images: Tensor = self.generator(noise, condition[:, : self._labels] if self._labels else None)
        return images


class LabelledGenerator(nn.Module):
    """Generator that assigns each image to a request for the label that the labeller predicts.

    An image that was drawn for one label and predicted as another is kept: images near the class boundary are the most
    informative for a classifier. A request without a matching image is drawn again a few times, and in the end gets the
    best of the images that no other request could use.

    Args:
        generator: Maps noise ``(B, Z)`` and labels to images.
        labeller: Predicts labels.
        noise_width: Z.
        tries: Most draws; a request that is still open then gets the best image left to it.
        margin: Amount by which an image's score for another label must exceed the score for its own before it counts as
            the other.
        unchecked: Most warp and spread of images that no labeller checks; None: the generator's own.

    Attributes:
        asked: Whether the labeller is asked at all, or images keep the label that they were drawn for.
        unchecked: ``(2,)`` as above, kept with the weights: an earlier version's run, without it, stays as it was.
    """

    asked: Tensor
    unchecked: Tensor | None

    def __init__(
        self,
        generator: nn.Module,
        labeller: Labeller,
        *,
        noise_width: int,
        tries: int,
        margin: float = 0.0,
        unchecked: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        self.generator = generator
        self.labeller = labeller
        self._width = noise_width
        self._tries = tries
        self._margin = margin
        self.register_buffer("asked", torch.ones(1, dtype=torch.bool))
        self.register_buffer("unchecked", None if unchecked is None else torch.tensor(unchecked))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        state_dict.setdefault(f"{prefix}asked", torch.ones(1, dtype=torch.bool))  # of an earlier version
        if self.unchecked is not None:
            state_dict.setdefault(f"{prefix}unchecked", torch.tensor(UNLIMITED))  # likewise
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        """Return images ``(B, C, H, W)`` for noise ``(B, tries * Z)`` and labels ``(B, K)``."""
        if not self.asked:
            return self.drawn_once(noise, condition)
        wanted = condition.argmax(dim=1)
        left = torch.arange(len(noise), device=noise.device)
        images, best = torch.empty(0), torch.empty(0)
        for start in range(0, self._tries * self._width, self._width):
            asked, own = condition[left], wanted[left]
            drawn: Tensor = self.generator(noise[left, start : start + self._width], asked)
            scores = self.labeller(drawn) + self._margin * asked
            seen = scores.argmax(dim=1)
            assigned = _assigned(own, seen)
            drawn, margin, agreed = drawn[assigned], _score_margin(scores[assigned], own), seen[assigned] == own
            if not start:
                images, best = drawn, margin
            better = agreed | (margin > best[left])
            images[left[better]], best[left[better]] = drawn[better], margin[better]
            left = left[~agreed]
            if not len(left):
                break
        return images

    def drawn_once(self, noise: Tensor, condition: Tensor) -> Tensor:
        """Return images with the labels that they were drawn for, no more widely than where no labeller is asked."""
        most = () if self.unchecked is None else (self.unchecked.tolist(),)
        images: Tensor = self.generator(noise[:, : self._width], condition, *most)
        return images


def find_labeller(generator: object) -> Labeller | None:
    """Return the labeller within a generator; None without one."""
    if not isinstance(generator, nn.Module):
        return None
    return next((each for each in generator.modules() if isinstance(each, Labeller)), None)


def without_labeller(generator: nn.Module) -> nn.Module:
    """Return a copy of a generator whose images keep the labels that they were drawn for."""
    alone = copy.deepcopy(generator)
    for each in alone.modules():
        if isinstance(each, LabelledGenerator):
            each.asked.fill_(0)
    return alone


def _score_margin(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return the margin ``(B,)`` of each image's score for its label over the best other score."""
    own = scores.gather(1, wanted[:, None]).squeeze(1)
    others = scores.scatter(1, wanted[:, None], -torch.inf).amax(dim=1)
    return own - others


def _assigned(wanted: Tensor, seen: Tensor) -> Tensor:
    """Return the image ``(B,)`` of each request, every image once.

    A request keeps its own image if the label matches; else requests for a label get the free images predicted as that
    label, in order. The rest keep their own image, or take one that is left if their own was given away.
    """
    assigned = torch.full_like(wanted, -1)
    free = torch.ones(len(wanted), dtype=torch.bool, device=wanted.device)

    def give(takers: Tensor, images: Tensor) -> None:
        size = min(len(takers), len(images))
        assigned[takers[:size]] = images[:size]
        free[images[:size]] = False

    own = torch.nonzero(wanted == seen).squeeze(1)
    give(own, own)
    for label in torch.unique(wanted):
        asking = torch.nonzero((wanted == label) & (assigned < 0)).squeeze(1)
        give(asking, torch.nonzero((seen == label) & free).squeeze(1))
    own = torch.nonzero((assigned < 0) & free).squeeze(1)
    give(own, own)
    give(torch.nonzero(assigned < 0).squeeze(1), torch.nonzero(free).squeeze(1))
    return assigned
