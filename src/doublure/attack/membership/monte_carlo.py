"""The attacker who counts how much is generated nearby (Hilprecht, Härterich, Bernau 2019)."""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import AttackData, RealRecords
from doublure.attack.membership.results import membership_result
from doublure.attack.results import AttackResult, ThreatModel
from doublure.encode.columns import Floats
from doublure.measures.embedding import Points

THREAT_MODEL = ThreatModel(
    attack="monte-carlo",
    name="How much is generated nearby",
    family="membership",
    holds=("the released records", "the targets"),
    does="Counts the synthetic records within a radius of each target: the median distance, over all targets, to the "
    "nearest.",
    success="More is generated around members than around other real records.",
    shows="That the generator overfits to its training records without copying them.",
    cannot="Anything about a record in whose neighbourhood nothing is generated.",
    reference="Hilprecht et al. 2019, Monte Carlo attack with the median heuristic",
)

_BLOCK = 500


def attack(data: AttackData) -> AttackResult:
    """Attack membership by the share of synthetic records within a radius."""
    radius = float(np.median(np.concatenate(data.to_synthetic)))
    return membership_result(
        THREAT_MODEL, data, *(share_within(data.synthetic, side, radius) for side in (data.seen, data.unseen))
    )


def share_within(points: Points, records: RealRecords, radius: float) -> Floats:
    """Return ``(N,)`` the share of points no further than a radius from each record."""
    from sklearn.metrics import pairwise_distances

    values = records.points.values
    parts = [
        (pairwise_distances(values[first : first + _BLOCK], points.values) <= radius).mean(axis=1)
        for first in range(0, len(values), _BLOCK)
    ]
    return np.concatenate(parts)
