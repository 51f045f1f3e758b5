"""The attacker who has the critic (LOGAN: Hayes, Melis, Danezis, De Cristofaro 2019).

A critic is trained to tell real records from generated ones. Where it has learned the real ones by heart, it takes them
for more real than others that are just as real.
"""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import AttackData
from doublure.attack.membership.results import membership_result
from doublure.attack.results import AttackResult, ThreatModel, skipped

THREAT_MODEL = ThreatModel(
    attack="critic",
    name="The critic’s score",
    family="membership",
    holds=("the critic as training left it", "the targets"),
    does="Takes the critic’s score of each target.",
    success="Members get higher scores than other real records.",
    shows="What the critic has memorised, more directly than any attack on samples.",
    cannot="What the release alone reveals: no bundle holds a critic.",
    reference="Hayes et al. 2019 (LOGAN)",
)


def attack(data: AttackData) -> AttackResult:
    """Attack membership through the critic."""
    critic = None if data.white_box is None else data.white_box.critic
    if critic is None:
        return skipped(THREAT_MODEL, data.claim, "there is no critic that could be asked")
    scores = [critic(side.content) for side in (data.seen, data.unseen)]
    if not np.isfinite(np.concatenate(scores)).all():
        return skipped(THREAT_MODEL, data.claim, "the critic’s scores are not finite: its training diverged")
    return membership_result(THREAT_MODEL, data, *scores)
