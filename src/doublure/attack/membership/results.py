"""Results of membership attacks from their scores, by one criterion for all."""

from __future__ import annotations

from doublure.attack import roc
from doublure.attack.attack_data import AttackData
from doublure.attack.results import AttackResult, ThreatModel
from doublure.support.arrays import Floats

MEASURE = "area under ROC"
DESIRED = "0.5: the attacker does no better than a coin"
_SHIFTED = 0.05


def membership_result(
    threat_model: ThreatModel, data: AttackData, inside: Floats, outside: Floats, *, notes: tuple[str, ...] = ()
) -> AttackResult:
    """Return the result of an attacker's scores.

    Args:
        threat_model: The threat model.
        data: The attack data.
        inside: ``(n,)`` scores of ``data.seen``, high for members.
        outside: ``(m,)`` scores of ``data.unseen``.
        notes: Further notes.
    """
    members, others = data.seen.by_unit(inside), data.unseen.by_unit(outside)
    claim = data.claim
    found = roc.roc(members, others, claim.epsilon, claim.delta)
    delta = claim.delta_shown_at
    shown = roc.shown_epsilon(members, others, delta, data.random(1))
    far = data.to_reference
    near = data.seen.by_unit(-far[0]), data.unseen.by_unit(-far[1])
    blind = roc.roc(*near)
    # In either direction: an attacker without the synthetic data may take near records for members, or for others.
    unseeing = max(roc.shown_epsilon(sign * near[0], sign * near[1], delta, data.random(1)) for sign in (1, -1))
    exceeded = claim.epsilon is not None and shown > claim.epsilon
    explained = claim.epsilon is not None and unseeing > claim.epsilon
    said = list(notes)
    low, high = blind.interval or (0.0, 1.0)
    if abs(blind.area - 0.5) > _SHIFTED and not low <= 0.5 <= high:
        said.append(
            "The baseline attacker, who has no synthetic data, separates members from others too: the holdout differs "
            "from the fitted data by itself, and part of the figure is that difference."
        )
    if exceeded and explained:
        said.append(
            "No alarm: the baseline attacker, who has no synthetic data, shows more than is claimed too. The figure "
            "says nothing about the release. Keep a random holdout aside, and attack again."
        )
    if len(members) < len(data.seen):
        said.append("A unit's score is the mean over its records.")
    return AttackResult(
        threat_model=threat_model,
        measure=MEASURE,
        value=found.area,
        interval=found.interval,
        baseline=blind.area,
        desired=DESIRED,
        roc=found,
        claim=claim,
        lower_bound=shown,
        alarm=exceeded and not explained,
        notes=tuple(said),
    )
