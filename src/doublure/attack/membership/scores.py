"""Attacks that score each target, in one table: members should have higher scores than other real records.

==================  ===================================================================================================
critic              LOGAN: a critic that has memorised real records gives them higher scores than others (Hayes, Melis,
                    Danezis, De Cristofaro 2019)
gan-leaks           GAN-Leaks: reconstruction error (Chen, Yu, Zhang, Fritz 2020): by samples alone; by a search of the
                    noise, with white-box access; and calibrated by the distance to other real records
monte-carlo         density of generated records nearby (Hilprecht, Härterich, Bernau 2019)
domias              local overfitting: generated density against that of other real records (van Breugel et al. 2023)
==================  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from doublure.attack.attack_data import AttackData, RealRecords, WhiteBox
from doublure.attack.membership.results import membership_result
from doublure.attack.results import AttackResult, ThreatModel, skip_attack
from doublure.measures.divergence import nearest
from doublure.measures.embedding import Points, embed_records
from doublure.support.arrays import Floats

_TARGETS = "the targets"
_CANNOT = "That a record is protected: its membership can be known although nothing near it is ever generated."
_SEARCHED = 200
_BEGUN = 500
_ROUNDS = 12
_TRIES = 16
_DRAWN = 20_000
_BLOCK = 500
_COMPONENTS = 5
_MOST_CENTRES = 4000
_JITTER = 1e-3


@dataclass(frozen=True)
class TargetScores:
    """Scores of seen targets, ``(n,)``, and of unseen ones, ``(m,)``; high for members."""

    inside: Floats
    outside: Floats
    note: str = field(default="", kw_only=True)


@dataclass(frozen=True, kw_only=True)
class ScoreAttack:
    """A membership attack defined by a score of each target.

    Attributes:
        threat_model: Its threat model.
        score: The attack data -> the scores, or the reason why there are none, as it goes on after "because".
        most: Most targets of either side that are scored; all if not given.
    """

    threat_model: ThreatModel
    score: Callable[[AttackData], TargetScores | str]
    most: int | None = None

    def __call__(self, data: AttackData) -> AttackResult:
        """Attack membership by the scores."""
        scored = data if self.most is None else data.with_targets(self.most)
        found = self.score(scored)
        if isinstance(found, str):
            return skip_attack(self.threat_model, data.claim, found)
        notes = (found.note,) if found.note else ()
        return membership_result(self.threat_model, scored, found.inside, found.outside, notes=notes)


def _critic(data: AttackData) -> TargetScores | str:
    critic = None if data.white_box is None else data.white_box.critic
    if critic is None:
        return "there is no critic that could be asked"
    scores = [critic(side.content) for side in (data.seen, data.unseen)]
    if not np.isfinite(np.concatenate(scores)).all():
        return "the critic’s scores are not finite: its training diverged"
    return TargetScores(*scores)


# -- distances to generated records ----------------------------------------------------------------------------------


def _nearest_sample(data: AttackData) -> TargetScores:
    return TargetScores(*(-far for far in data.to_synthetic))


def _nearer_than_real(data: AttackData) -> TargetScores:
    return TargetScores(*(other - far for other, far in zip(data.to_reference, data.to_synthetic, strict=True)))


def _searched(data: AttackData) -> TargetScores | str:
    if data.white_box is None:
        return "there is no generator to be asked"
    white_box, rng = data.white_box, data.random(2)
    data.progress.stage("search the generator's noise", 2)
    scores = []
    drawn = None if white_box.searchable else embed_records(data.schema, data.sample(_DRAWN, data.seed + 2)).values
    for number, side in enumerate((data.seen, data.unseen)):
        far = _found(white_box, side, rng) if drawn is None else nearest(drawn, side.points.values, 1)[0][:, 0]
        scores.append(-far)
        data.progress.at(number + 1)
    trials = f"{_BEGUN + _ROUNDS * _TRIES}" if white_box.searchable else f"the same {_DRAWN}"
    note = f"At most {_SEARCHED} targets of either side, {trials} trials each."
    return TargetScores(*scores, note=note)


def _found(white_box: WhiteBox, side: RealRecords, rng: np.random.Generator) -> Floats:
    """Return ``(N,)`` the distance reached by a random search: from the best of many draws, by shrinking steps."""
    wanted, conditions = white_box.encoded(side.content)
    noise, best = white_box.noise(len(wanted), rng), np.full(len(wanted), np.inf)
    # The step keeps the noise's spread, so the search stays where the generator was trained; 1: a fresh draw.
    for step in (*np.ones(_BEGUN), *np.geomspace(0.5, 0.02, _ROUNDS).repeat(_TRIES)):
        trial = np.sqrt(1 - step**2) * noise + step * white_box.noise(len(wanted), rng)
        far = np.square(white_box.generated(trial, conditions) - wanted).sum(axis=1)
        better = far < best
        noise, best = np.where(better[:, None], trial, noise), np.where(better, far, best)
    return np.asarray(np.sqrt(best), dtype=np.float64)


# -- density of generated records ------------------------------------------------------------------------------------


def _share_nearby(data: AttackData) -> TargetScores:
    radius = float(np.median(np.concatenate(data.to_synthetic)))
    return TargetScores(*(share_within(data.synthetic, side, radius) for side in (data.seen, data.unseen)))


def share_within(points: Points, records: RealRecords, radius: float) -> Floats:
    """Return ``(N,)`` the share of points within a radius of each record."""
    from sklearn.metrics import pairwise_distances

    values = records.points.values
    parts = [
        (pairwise_distances(values[first : first + _BLOCK], points.values) <= radius).mean(axis=1)
        for first in range(0, len(values), _BLOCK)
    ]
    return np.concatenate(parts)


def _density_ratio(data: AttackData) -> TargetScores:
    rng = data.random(3)
    generated, real = data.synthetic.values, data.reference.points.values
    project = _projection(np.concatenate([_few(generated, rng), _few(real, rng)]))
    densities = [_density(project(_few(points, rng)), rng) for points in (generated, real)]

    def scores(targets: Floats) -> Floats:
        places = project(targets)
        return densities[0](places) - densities[1](places)

    note = f"Gaussian kernels, Scott’s width, {_COMPONENTS} principal components at most."
    return TargetScores(scores(data.seen.points.values), scores(data.unseen.points.values), note=note)


def _few(points: Floats, rng: np.random.Generator) -> Floats:
    return points if len(points) <= _MOST_CENTRES else points[rng.choice(len(points), _MOST_CENTRES, replace=False)]


def _projection(points: Floats) -> Callable[[Floats], Floats]:
    from sklearn.decomposition import PCA

    components = min(_COMPONENTS, points.shape[1], len(points) - 1)
    fitted = PCA(components, random_state=0).fit(points)
    return lambda places: np.asarray(fitted.transform(places), dtype=np.float64)


def _density(points: Floats, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    from scipy.stats import gaussian_kde

    # Equal records have no covariance; a little noise gives them one.
    spread = _JITTER * max(float(points.std()), 1e-9)
    fitted = gaussian_kde((points + spread * rng.standard_normal(points.shape)).T)
    return lambda places: np.asarray(fitted.logpdf(places.T), dtype=np.float64)


# -- the table -------------------------------------------------------------------------------------------------------

CRITIC = ScoreAttack(
    threat_model=ThreatModel(
        attack="critic",
        name="The critic’s score",
        family="membership",
        holds=("the critic as training left it", "the targets"),
        does="Takes the critic’s score of each target.",
        success="Members get higher scores than other real records.",
        shows="What the critic has memorised, more directly than any attack on samples.",
        cannot="What the release alone reveals: no bundle holds a critic.",
        reference="Hayes et al. 2019 (LOGAN)",
    ),
    score=_critic,
)
GAN_LEAKS = ScoreAttack(
    threat_model=ThreatModel(
        attack="gan-leaks",
        name="The nearest synthetic record",
        family="membership",
        holds=("the released records", _TARGETS),
        does="Looks for the synthetic record that is nearest to each target.",
        success="Members have nearer ones than other real records.",
        shows="Copies, and what is almost one.",
        cannot=_CANNOT,
        reference="Chen et al. 2020 (GAN-Leaks), full black box",
    ),
    score=_nearest_sample,
)
GAN_LEAKS_PARTIAL = ScoreAttack(
    threat_model=ThreatModel(
        attack="gan-leaks-partial",
        name="The nearest that can be generated",
        family="membership",
        holds=("a generator that takes noise and conditions of the attacker’s choice", _TARGETS),
        does="Searches the noise for what comes nearest to each target.",
        success="The generator comes nearer to members than to other real records.",
        shows="What the generator could say, and not only what it happened to say.",
        cannot=_CANNOT,
        reference="Chen et al. 2020 (GAN-Leaks), partial black box",
    ),
    score=_searched,
    most=_SEARCHED,
)
GAN_LEAKS_CALIBRATED = ScoreAttack(
    threat_model=ThreatModel(
        attack="gan-leaks-calibrated",
        name="Nearer than real ones are to one another",
        family="membership",
        holds=("the released records", "other real records of the same kind", _TARGETS),
        does="Takes the distance to the nearest synthetic record, less the distance to the nearest other real one.",
        success="The difference is smaller for members.",
        shows="Copies, also of records that are far from all others.",
        cannot=_CANNOT,
        reference="Chen et al. 2020 (GAN-Leaks), calibrated by records in place of a second generator",
    ),
    score=_nearer_than_real,
)
MONTE_CARLO = ScoreAttack(
    threat_model=ThreatModel(
        attack="monte-carlo",
        name="How much is generated nearby",
        family="membership",
        holds=("the released records", "the targets"),
        does="Counts the synthetic records within a radius of each target: the median distance, over all targets, to "
        "the nearest.",
        success="More is generated around members than around other real records.",
        shows="That the generator overfits to its training records without copying them.",
        cannot="Anything about a record in whose neighbourhood nothing is generated.",
        reference="Hilprecht et al. 2019, Monte Carlo attack with the median heuristic",
    ),
    score=_share_nearby,
)
DOMIAS = ScoreAttack(
    threat_model=ThreatModel(
        attack="domias",
        name="Density ratio (DOMIAS)",
        family="membership",
        holds=("the released records", "other real records of the same kind", "the targets"),
        does="Estimates how dense synthetic and other real records are around each target, and takes the ratio.",
        success="The ratio is higher for members.",
        shows="Local overfitting, with what is simply common taken off.",
        cannot="Anything in directions that were left out: densities are estimated in a few principal components.",
        reference="van Breugel, Sun, Qian, van der Schaar 2023 (DOMIAS), with kernel densities",
    ),
    score=_density_ratio,
)
