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
    student has most to learn from. Who is left without an image draws again, a few times.

    Args:
        generator: Noise ``(B, Z)`` and labels to images.
        labeller: What sees labels.
        noise_width: Z.
        tries: How often images are drawn, at most; who is still left has the best of his own.
    """

    def __init__(self, generator: nn.Module, labeller: Labeller, *, noise_width: int, tries: int) -> None:
        super().__init__()
        self.generator = generator
        self.labeller = labeller
        self._width = noise_width
        self._tries = tries

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        """Return images ``(B, C, H, W)`` for noise ``(B, tries * Z)`` and labels ``(B, K)``."""
        wanted = condition.argmax(dim=1)
        left = torch.arange(len(noise), device=noise.device)
        images, best = torch.empty(0), torch.empty(0)
        for start in range(0, self._tries * self._width, self._width):
            drawn: Tensor = self.generator(noise[left, start : start + self._width], condition[left])
            scores = self.labeller(drawn)
            lead = _lead(scores, wanted[left])
            takers, taken = _matched(wanted[left], scores.argmax(dim=1))
            lead[taken] = -torch.inf  # what somebody else gets is not kept as well
            if not start:
                images, best = drawn.clone(), lead
            better = lead > best[left]
            images[left[better]], best[left[better]] = drawn[better], lead[better]
            images[left[takers]] = drawn[taken]
            open_rows = torch.ones(len(left), dtype=torch.bool, device=noise.device)
            open_rows[takers] = False
            left = left[open_rows]
            if not len(left):
                break
        return images


def _lead(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return by how much each image's score for its label passes the best of the others ``(B,)``."""
    own = scores.gather(1, wanted[:, None]).squeeze(1)
    others = scores.scatter(1, wanted[:, None], -torch.inf).amax(dim=1)
    return own - others


def _matched(wanted: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Return who gets an image, and which: his own if it will do, else the first to ask gets the first that is left."""
    own = torch.nonzero(wanted == seen).squeeze(1)
    takers, taken = [own], [own]
    for label in range(int(seen.amax()) + 1 if len(seen) else 0):
        asking = torch.nonzero((wanted == label) & (seen != label)).squeeze(1)
        offered = torch.nonzero((seen == label) & (wanted != label)).squeeze(1)
        size = min(len(asking), len(offered))
        takers.append(asking[:size])
        taken.append(offered[:size])
    return torch.cat(takers), torch.cat(taken)
