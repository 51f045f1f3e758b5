"""The attacker who asks where the generator is too sure of itself (DOMIAS: van Breugel et al. 2023).

Much is generated where much is real. What gives a member away is that more is generated there than other real records
explain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from doublure.attack.attack_data import AttackData
from doublure.attack.membership.results import membership_result
from doublure.attack.results import AttackResult, ThreatModel
from doublure.encode.columns import Floats

THREAT_MODEL = ThreatModel(
    attack="domias",
    name="Density ratio (DOMIAS)",
    family="membership",
    holds=("the released records", "other real records of the same kind", "the targets"),
    does="Estimates how dense synthetic and other real records are around each target, and takes the ratio.",
    success="The ratio is higher for members.",
    shows="Local overfitting, with what is simply common taken off.",
    cannot="Anything in directions that were left out: densities are estimated in a few principal components.",
    reference="van Breugel, Sun, Qian, van der Schaar 2023 (DOMIAS), with kernel densities",
)

_COMPONENTS = 5
_MOST_CENTRES = 4000
_JITTER = 1e-3


def attack(data: AttackData) -> AttackResult:
    """Attack membership by the ratio of two densities."""
    rng = data.random(3)
    generated, real = data.synthetic.values, data.reference.points.values
    project = _projection(np.concatenate([_few(generated, rng), _few(real, rng)]))
    densities = [_density(project(_few(points, rng)), rng) for points in (generated, real)]

    def scores(targets: Floats) -> Floats:
        places = project(targets)
        return densities[0](places) - densities[1](places)

    note = f"Gaussian kernels, Scott’s width, {_COMPONENTS} principal components at most."
    return membership_result(
        THREAT_MODEL, data, scores(data.seen.points.values), scores(data.unseen.points.values), notes=(note,)
    )


def _few(points: Floats, rng: np.random.Generator) -> Floats:
    return points if len(points) <= _MOST_CENTRES else points[rng.choice(len(points), _MOST_CENTRES, replace=False)]


def _projection(points: Floats) -> Callable[[Floats], Floats]:
    from sklearn.decomposition import PCA

    components = min(_COMPONENTS, points.shape[1], len(points) - 1)
    fitted = PCA(components, random_state=0).fit(points)
    return lambda places: np.asarray(fitted.transform(places), dtype=np.float64)


def _density(points: Floats, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    from scipy.stats import gaussian_kde

    # Equal records have no covariance: a little noise gives them one.
    spread = _JITTER * max(float(points.std()), 1e-9)
    fitted = gaussian_kde((points + spread * rng.standard_normal(points.shape)).T)
    return lambda places: np.asarray(fitted.logpdf(places.T), dtype=np.float64)
