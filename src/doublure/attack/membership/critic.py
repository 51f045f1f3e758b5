"""The attacker who has the critic (LOGAN: Hayes, Melis, Danezis, De Cristofaro 2019).

A critic is trained to tell real records from generated ones. Where it has learned the real ones by heart, it takes them
for more real than others that are just as real.
"""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import World
from doublure.attack.membership.results import judged
from doublure.attack.results import AttackResult, Story, skipped

STORY = Story(
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


def attack(world: World) -> AttackResult:
    """Attack membership through the critic."""
    critic = None if world.white is None else world.white.critic
    if critic is None:
        return skipped(STORY, world.claim, "there is no critic that could be asked")
    scores = [critic(side.content) for side in (world.seen, world.unseen)]
    if not np.isfinite(np.concatenate(scores)).all():
        return skipped(STORY, world.claim, "the critic’s scores are not finite: its training diverged")
    return judged(STORY, world, *scores)
