"""Inference: an attacker who knows most of a person's record infers the rest (WP216, §2.2.2).

The guess is the value of the synthetic record nearest in the known part.
"""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import AttackData, RealRecords
from doublure.attack.linkage.risk import HitCounts, make_result
from doublure.attack.results import AttackResult, ThreatModel, skip_attack
from doublure.errors import counted
from doublure.measures.divergence import nearest
from doublure.measures.embedding import Points
from doublure.schema.images import LABEL
from doublure.support.arrays import Floats

THREAT_MODEL = ThreatModel(
    attack="inference",
    name="Attribute inference",
    family="linkage",
    holds=("the released records", "all of each target but one attribute"),
    does="Takes the attribute of the synthetic record that is nearest in everything else.",
    success="The guess is right: the same value, or a number within a twentieth of the public range.",
    shows="That the release tells more of records that are in it than of others.",
    cannot="What holds for a whole group: a control that is hit as often does not help people of whom something "
    "unwelcome is then guessed.",
    reference="Giomi et al. 2023, §4.3; WP216",
)

_NEAR = 0.05
_MOST = 2000


def attack(data: AttackData) -> AttackResult:
    """Attack by inferring one attribute from all others."""
    secret = _secret(data)
    if secret is None:
        return skip_attack(THREAT_MODEL, data.claim, "there is no attribute to be inferred")
    n = min(_MOST, len(data.seen), len(data.unseen))
    few = data.with_targets(n)
    released, rng = data.synthetic, data.random(8)
    told = released.of(secret)
    own, other = (_hits(side, released, told, secret) for side in (few.seen, few.unseen))
    truth = few.seen.points.of(secret)
    guessed = int(_right(truth, told[rng.integers(len(told), size=n)]).sum())
    if secret in released.corners:  # the most frequent value is a better guess than a random one
        guessed = max(guessed, int(_right(truth, np.tile(_most_frequent(told), (n, 1))).sum()))
    hits = HitCounts(attack=own, control=other, baseline=guessed, trials=n)
    return make_result(THREAT_MODEL, data, hits, f"The attribute is {secret}; {counted(n, 'target')} of each side.")


def _secret(data: AttackData) -> str | None:
    """Return the attribute to infer: the target, the label, or else the last one with values."""
    points = data.seen.points
    if len(points.blocks) < 2:
        return None
    target = data.schema.target if data.schema.only_columns else None
    if target is not None:
        return data.schema.derived.get(target, target)
    if LABEL in points.corners:
        return LABEL
    names = list(points.blocks)
    return next((name for name in reversed(names) if name in points.corners), names[-1])


def _hits(side: RealRecords, released: Points, told: Floats, secret: str) -> int:
    known = [name for name in released.blocks if name != secret]
    who = nearest(released.of(*known), side.points.of(*known), 1)[1][:, 0]
    return int(_right(side.points.of(secret), told[who]).sum())


def _right(truth: Floats, guess: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    # Two corners differ by 0.7 in two places, so the rule for numbers also serves for values.
    return np.asarray((np.abs(truth - guess) <= _NEAR).all(axis=1))


def _most_frequent(told: Floats) -> Floats:
    values, counts = np.unique(told, axis=0, return_counts=True)
    return np.asarray(values[counts.argmax()])
