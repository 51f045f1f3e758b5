"""The attacker who looks how well the generator can say a record (GAN-Leaks: Chen, Yu, Zhang, Fritz 2020).

Three of them. The first has samples alone; the second may choose the generator's noise, and searches for the noise that
comes nearest; the third knows other real records, and takes off how near any real record is to its like.
"""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import AttackData, RealRecords, WhiteBox
from doublure.attack.membership.results import membership_result
from doublure.attack.results import AttackResult, ThreatModel, skipped
from doublure.encode.columns import Floats
from doublure.measures.divergence import nearest
from doublure.measures.embedding import points_of

_TARGETS = "the targets"
_CANNOT = "That a record is protected: its membership can be known although nothing near it is ever generated."

SAMPLES = ThreatModel(
    attack="gan-leaks",
    name="The nearest synthetic record",
    family="membership",
    holds=("the released records", _TARGETS),
    does="Looks for the synthetic record that is nearest to each target.",
    success="Members have nearer ones than other real records.",
    shows="Copies, and what is almost one.",
    cannot=_CANNOT,
    reference="Chen et al. 2020 (GAN-Leaks), full black box",
)
CHOSEN = ThreatModel(
    attack="gan-leaks-partial",
    name="The nearest that can be generated",
    family="membership",
    holds=("a generator that takes noise and conditions of the attacker’s choice", _TARGETS),
    does="Searches the noise for what comes nearest to each target.",
    success="The generator comes nearer to members than to other real records.",
    shows="What the generator could say, and not only what it happened to say.",
    cannot=_CANNOT,
    reference="Chen et al. 2020 (GAN-Leaks), partial black box",
)
CALIBRATED = ThreatModel(
    attack="gan-leaks-calibrated",
    name="Nearer than real ones are to one another",
    family="membership",
    holds=("the released records", "other real records of the same kind", _TARGETS),
    does="Takes the distance to the nearest synthetic record, less the distance to the nearest other real one.",
    success="The difference is smaller for members.",
    shows="Copies, also of records that are far from all others.",
    cannot=_CANNOT,
    reference="Chen et al. 2020 (GAN-Leaks), calibrated by records in place of a second generator",
)

_SEARCHED = 200
_BEGUN = 500
_ROUNDS = 12
_TRIES = 16
_DRAWN = 20_000


def attack(data: AttackData) -> AttackResult:
    """Attack membership by the nearest sample."""
    return membership_result(SAMPLES, data, *(-far for far in data.to_synthetic))


def attack_calibrated(data: AttackData) -> AttackResult:
    """Attack membership by the nearest sample, less the nearest other real record."""
    scores = (other - far for other, far in zip(data.to_reference, data.to_synthetic, strict=True))
    return membership_result(CALIBRATED, data, *scores)


def attack_partial(data: AttackData) -> AttackResult:
    """Attack membership by the nearest that a search of the noise finds."""
    if data.white_box is None:
        return skipped(CHOSEN, data.claim, "there is no generator to be asked")
    white_box, rng = data.white_box, data.random(2)
    few = data.with_targets(_SEARCHED)
    data.progress.stage("search the generator's noise", 2)
    scores = []
    drawn = None if white_box.searchable else points_of(data.schema, data.sample(_DRAWN, data.seed + 2)).values
    for number, side in enumerate((few.seen, few.unseen)):
        far = _found(white_box, side, rng) if drawn is None else nearest(drawn, side.points.values, 1)[0][:, 0]
        scores.append(-far)
        data.progress.at(number + 1)
    trials = f"{_BEGUN + _ROUNDS * _TRIES}" if white_box.searchable else f"the same {_DRAWN}"
    note = f"At most {_SEARCHED} targets of either side, {trials} trials each."
    return membership_result(CHOSEN, few, *scores, notes=(note,))


def _found(white_box: WhiteBox, side: RealRecords, rng: np.random.Generator) -> Floats:
    """Return ``(N,)`` how near a random search comes: from the best of many draws, by ever smaller steps."""
    wanted, conditions = white_box.encoded(side.content)
    noise, best = white_box.noise(len(wanted), rng), np.full(len(wanted), np.inf)
    # A step that keeps the noise's spread, so that the search stays where the generator was trained; 1: a fresh draw.
    for step in (*np.ones(_BEGUN), *np.geomspace(0.5, 0.02, _ROUNDS).repeat(_TRIES)):
        trial = np.sqrt(1 - step**2) * noise + step * white_box.noise(len(wanted), rng)
        far = np.square(white_box.generated(trial, conditions) - wanted).sum(axis=1)
        better = far < best
        noise, best = np.where(better[:, None], trial, noise), np.where(better, far, best)
    return np.asarray(np.sqrt(best), dtype=np.float64)
