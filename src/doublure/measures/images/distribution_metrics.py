"""Similarity of sets of images in a feature space: Fréchet distance, precision and recall, Inception score.

A figure holds only in the feature space it was measured in, so each figure's name includes the space's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from doublure.data.images import Images
from doublure.encode.grids import Floats
from doublure.measures.images.feature_extractors import CLASSIFIER_OF_REAL, Extractor
from doublure.measures.scores import Score

NEIGHBOURS = 3
"""k of precision and recall, as in their paper."""

MOST = 2_000
"""Most images used for precision and recall: the first of a set."""

_FAR = "Squared distance to the real test images, between normal distributions fitted to the features."
_SHARP = "How sure a classifier is of each image, and how even the classes are: 1 to the number of classes."
_AMONG = {
    "precision": f"The share of images within the {NEIGHBOURS}-nearest-neighbour radius of a real test image.",
    "recall": f"The share of real test images within the {NEIGHBOURS}-nearest-neighbour radius of one of the images.",
}


def resemblance(
    seen: Extractor,
    images: Mapping[str, Images],
    chances: Callable[[Images], Floats] | None = None,
    n_classes: int = 1,
) -> tuple[Score, ...]:
    """Return the similarity of each set of images to the test images; every figure names its features.

    Args:
        seen: The features, learned from none of these images.
        images: ``value``, ``baseline``, ``real`` and ``test``, each in random order: not class by class.
        chances: A classifier's N images -> probabilities ``(N, K)``, for the Inception score; None: without it.
        n_classes: K.
    """
    roles = ("value", "baseline", "real")
    features = {name: seen.extract(each) for name, each in images.items()}
    far = {role: frechet_distance(features[role], features["test"]) for role in roles}
    both = {role: precision_and_recall(features[role][:MOST], features["test"][:MOST]) for role in roles}
    among = [(key, {role: pair[which] for role, pair in both.items()}) for which, key in enumerate(_AMONG)]
    name, low = f"Fréchet distance ({seen.name})", (0.0, max(*far.values(), 1.0))
    found = [Score(key="frechet", name=name, goal="low", range=low, meaning=_FAR, **far)]
    if chances is not None:
        sharp = {role: inception_score(chances(images[role])) for role in roles}
        name, high = f"Inception score ({CLASSIFIER_OF_REAL})", (1.0, float(n_classes))
        found.append(Score(key="inception_score", name=name, goal="near", range=high, meaning=_SHARP, **sharp))
    for key, figures in among:
        name = f"{key.capitalize()} ({seen.name})"
        found.append(Score(key=key, name=name, goal="high", range=(0.0, 1.0), meaning=_AMONG[key], **figures))
    return tuple(found)


def frechet_distance(first: Floats, second: Floats) -> float:
    """Return the squared Fréchet distance of two normal distributions with the sets' means and covariances.

    Args:
        first: ``(N, d)`` features.
        second: ``(M, d)`` features. With fewer than d images in either set the covariance lacks full rank, and the
            distance is biased upwards.

    References:
        Heusel et al. (2017), GANs trained by a two time-scale update rule converge to a local Nash equilibrium,
        equation 6.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> near, far = rng.normal(size=(4000, 3)), rng.normal(size=(4000, 3)) + [2, 0, 0]
        >>> round(frechet_distance(near, far))
        4
    """
    means, spreads = zip(*((each.mean(0), np.cov(each, rowvar=False, ddof=1)) for each in (first, second)), strict=True)
    one, other = (np.atleast_2d(each) for each in spreads)
    # tr √(AB) = Σ √λ(AB), and AB has the eigenvalues of √A B √A, which is symmetric.
    values, vectors = np.linalg.eigh(one)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    crossed = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ other @ root), 0)).sum()
    found = np.square(means[0] - means[1]).sum() + np.trace(one) + np.trace(other) - 2 * crossed
    return float(max(found, 0.0))


def inception_score(chances: Floats) -> float:
    """Return the exponential of the mean divergence of an image's class distribution from the overall one: 1 to K.

    Args:
        chances: ``(N, K)`` probabilities of a classifier.

    References:
        Salimans et al. (2016), Improved techniques for training GANs, section 4; there by Inception-v3.

    Example:
        >>> inception_score(np.eye(4)), inception_score(np.full((5, 4), 0.25))
        (4.0, 1.0)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(chances > 0, chances * np.log(chances / chances.mean(0)), 0.0)
    return round(float(np.exp(terms.sum(1).mean())), 12)


def precision_and_recall(artificial: Floats, real: Floats) -> tuple[float, float]:
    """Return the share of synthetic images inside the real set, and of real ones inside the synthetic set.

    An image is inside a set if it is as near to one of its images as that image's third neighbour in the set.

    Args:
        artificial: ``(N, d)`` features.
        real: ``(M, d)`` features.

    References:
        Kynkäänniemi et al. (2019), Improved precision and recall metric for assessing generative models, equation 2.
    """
    return _covered(artificial, real), _covered(real, artificial)


def _covered(points: Floats, by: Floats) -> float:
    """Return the share of points within a ball around a point of the other set; distances at once fit into a GiB."""
    from sklearn.metrics import pairwise_distances_chunked

    if len(by) < 2 or not len(points):
        return 0.0
    order = min(NEIGHBOURS, len(by) - 1)  # the first neighbour is the point itself
    reach = pairwise_distances_chunked(by, reduce_func=lambda far, _: np.partition(far, order, axis=1)[:, order])
    radius = np.concatenate(list(reach))
    inside = pairwise_distances_chunked(points, by, reduce_func=lambda far, _: (far <= radius).any(axis=1))
    return float(np.concatenate(list(inside)).mean())
