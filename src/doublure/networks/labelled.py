"""A generator whose images are checked by a labeller before they are handed out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from doublure.networks.fixed_features import LabelFeatures


class Labeller(nn.Module):
    """A linear model on fixed features: images ``(B, C, H, W)`` to one score a label ``(B, K)``.

    Args:
        shape: ``(C, H, W)``.
        classes: K.

    Attributes:
        centre: ``(D,)`` what is taken off the features.
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


class LabelledGenerator(nn.Module):
    """Gives each image to somebody who asked for the label that the labeller sees in it.

    An image that was drawn for one label and looks like another is not thrown away: where the two meet is what a
    classifier has most to learn from. Who is left without an image draws again, a few times, and has at last the best
    of those that nobody else could use.

    Args:
        generator: Noise ``(B, Z)`` and labels to images.
        labeller: What sees labels.
        noise_width: Z.
        tries: How often images are drawn, at most; who is still left has the best of those that were left to him.
        margin: By how much an image's score for another label has to pass that of the label it was drawn for, before it
            is seen as the other.
    """

    def __init__(
        self, generator: nn.Module, labeller: Labeller, *, noise_width: int, tries: int, margin: float = 0.0
    ) -> None:
        super().__init__()
        self.generator = generator
        self.labeller = labeller
        self._width = noise_width
        self._tries = tries
        self._margin = margin

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        """Return images ``(B, C, H, W)`` for noise ``(B, tries * Z)`` and labels ``(B, K)``."""
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


def _score_margin(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return by how much each image's score for its label passes the best of the others ``(B,)``."""
    own = scores.gather(1, wanted[:, None]).squeeze(1)
    others = scores.scatter(1, wanted[:, None], -torch.inf).amax(dim=1)
    return own - others


def _assigned(wanted: Tensor, seen: Tensor) -> Tensor:
    """Return which image each one gets, every image once ``(B,)``.

    His own if it will do, else the first to ask gets the first that is seen as his label; who gets none of his label
    has his own, or what is left where somebody else has that.
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
