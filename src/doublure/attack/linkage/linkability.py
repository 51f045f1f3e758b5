"""Linkability: an attacker with two halves of a file joins them (WP216, §2.2.2).

One source knows some columns of all people, another the rest, and neither knows names. The attacker matches a row of
the one with a row of the other if both have the same nearest synthetic record.
"""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import AttackData, RealRecords
from doublure.attack.linkage.risk import HitCounts, make_result
from doublure.attack.results import AttackResult, ThreatModel, skip_attack
from doublure.errors import counted
from doublure.measures.divergence import Rows, nearest
from doublure.measures.embedding import Points

THREAT_MODEL = ThreatModel(
    attack="linkability",
    name="Linkability",
    family="linkage",
    holds=("the released records", "two parts of the targets, not known to belong together"),
    does="Looks for the synthetic records nearest to each part: every other column of a table, one half of an image "
    "or of a series.",
    success="The same synthetic record is among the ten nearest to both parts of a target.",
    shows="That released records serve as a bridge between two sources.",
    cannot="What other bridges there are; the columns of each source are our guess.",
    reference="Giomi et al. 2023, §4.2; WP216",
)

_NEIGHBOURS = 10
_MOST = 2000


def attack(data: AttackData) -> AttackResult:
    """Attack by joining two parts of a record through the synthetic ones."""
    halves = _halves(data.seen.points)
    if halves is None:
        return skip_attack(THREAT_MODEL, data.claim, "a record cannot be cut in two")
    n = min(_MOST, len(data.seen), len(data.unseen))
    few = data.with_targets(n)
    k = min(_NEIGHBOURS, len(data.synthetic))
    own, other = (_joined(side, data.synthetic, halves, k) for side in (few.seen, few.unseen))
    rng = data.random(7)
    guesses = [rng.random((n, len(data.synthetic))).argpartition(k - 1, axis=1)[:, :k] for _ in range(2)]
    hits = HitCounts(attack=int(own.sum()), control=int(other.sum()), baseline=int(_meet(*guesses).sum()), trials=n)
    return make_result(THREAT_MODEL, data, hits, f"{counted(n, 'target')} of each side, {k} nearest.")


def _joined(side: RealRecords, released: Points, halves: tuple[Rows, Rows], k: int) -> Rows:
    found = [nearest(released.values[:, half], side.points.values[:, half], k)[1] for half in halves]
    return _meet(*found)


def _meet(first: Rows, second: Rows) -> Rows:
    """Return an ``(N,)`` mask of the rows whose two lists of neighbours ``(N, k)`` have one in common."""
    return np.asarray((first[:, :, None] == second[:, None, :]).any(axis=(1, 2)), dtype=np.int64)


def _halves(points: Points) -> tuple[Rows, Rows] | None:
    """Return the indices of the numbers of the two parts: alternate columns, or the two halves of a body."""
    if points.bodies:
        cut = [_cut(body) for body in points.bodies]
        return np.concatenate([part[0] for part in cut]), np.concatenate([part[1] for part in cut])
    places = [np.arange(block.start, block.stop) for block in points.blocks.values()]
    if len(places) < 2:
        return None
    return np.concatenate(places[::2]), np.concatenate(places[1::2])


def _cut(block: slice) -> tuple[Rows, Rows]:
    middle = (block.start + block.stop) // 2
    return np.arange(block.start, middle), np.arange(middle, block.stop)
