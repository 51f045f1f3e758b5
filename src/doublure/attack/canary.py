"""Canaries: an audit in one fit (Steinke, Nasr, Jagielski 2023).

The attacker crafts records unlike any other, the canaries, and a coin decides for each whether it joins the data. After
one fit the attacker guesses "in" for the quarter with the highest scores, "out" for the quarter with the lowest, and
abstains from the rest. Under (ε, δ)-DP the probability of this many right guesses is bounded, however the canaries
interact; where it is below 5 %, the claim is refuted.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from doublure.attack import bounds
from doublure.attack.attack_data import AttackData, RefittedSynthesizer
from doublure.attack.results import ABSENCE, LOWER_BOUND, AttackResult, Claim, RateEstimate, ThreatModel, skip_attack
from doublure.attack.roc import clopper_pearson
from doublure.data.records import joined
from doublure.errors import counted
from doublure.measures.divergence import nearest
from doublure.measures.embedding import embed_records
from doublure.support.arrays import Floats

THREAT_MODEL = ThreatModel(
    attack="canary",
    name="Canaries in one run",
    family="audit",
    holds=("records of the attacker’s making among the data, or not", "the method and its settings", "the critic, if "
    "one is kept, or else the synthetic records"),
    does="Writes records drawn uniformly over what the schema allows, has the plan fitted once to the data with about "
    "half of them, and ranks them by the critic’s score, or by their distance to the nearest synthetic record.",
    success="More guesses are correct than the claim allows.",
    shows="With a confidence of 95 %, that the true ε is at least so large, without assumptions on the records.",
    cannot="That ε is small: with so few canaries the bound stays far below a true ε.",
    reference="Steinke, Nasr, Jagielski 2023, algorithm 2",
)  # fmt: skip

Coins: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"

CANARIES = 400
_MOST_SHARE = 0.5
_ABSTAIN_ABOVE = 4


def attack(data: AttackData) -> AttackResult:
    """Audit the plan by one fit with canaries."""
    found = fit_with_canaries(data, purpose=10)
    if found is None:
        return skip_attack(THREAT_MODEL, data.claim, "the run cannot be refitted")
    return canary_result(data, *found)


def fit_with_canaries(data: AttackData, *, purpose: int) -> tuple[Floats, Coins] | None:
    """Fit the plan once to the records that were seen and about half of the canaries.

    Args:
        data: The attack data.
        purpose: The attack's number, for its own coins.

    Returns:
        ``(m,)`` scores, high for likely members, and ``(m,)`` the coins; None where nothing can be refitted.
    """
    if data.refit is None or data.crafted is None:
        return None
    rng = data.random(purpose)
    count = max(8, min(CANARIES, int(_MOST_SHARE * len(data.seen))))
    canaries = data.crafted(count, rng)
    inside = rng.random(count) < 0.5
    data.progress.stage("fit with canaries")
    drawn = canaries.loc[inside] if hasattr(canaries, "loc") else canaries.take(np.flatnonzero(inside))
    fitted = data.refit(joined([data.seen.content, drawn]), data.seed + 501)
    return score(data, fitted, canaries, rng), inside


def score(data: AttackData, fitted: RefittedSynthesizer, canaries: object, rng: np.random.Generator) -> Floats:
    """Return ``(m,)`` membership scores of the canaries; ties are broken at random."""
    critic = fitted.white_box.critic
    found = None if critic is None else critic(canaries)
    if found is None or not np.isfinite(found).all():  # no critic was kept, or its training diverged
        drawn = embed_records(data.schema, fitted.sample(len(data.released), data.seed), "the synthetic records")
        found = -nearest(drawn.values, embed_records(data.schema, canaries, "the canaries").values, 1)[0][:, 0]
    order = np.lexsort([rng.random(len(found)), found])
    ranks = np.empty(len(found))
    ranks[order] = np.arange(len(found))
    return ranks


def guess(scores: Floats, inside: Coins) -> tuple[int, int]:
    """Return how many guesses are right, and how many are made: on the highest and the lowest quarter of the scores.

    Example:
        >>> guess(np.array([0.9, 0.1, 0.5, 0.4]), np.array([True, True, False, False]))
        (1, 2)
    """
    each = len(scores) // _ABSTAIN_ABOVE
    order = np.argsort(scores, kind="stable")
    return int(inside[order[-each:]].sum() + (~inside[order[:each]]).sum()), 2 * each


def canary_result(data: AttackData, scores: Floats, inside: Coins) -> AttackResult:
    """Return the result of guesses on the highest and the lowest quarter of the scores.

    Args:
        data: The attack data.
        scores: ``(m,)`` high for likely members.
        inside: ``(m,)`` the truth.
    """
    (right, guesses), canaries, claim = guess(scores, inside), len(scores), data.claim
    delta = claim.delta_shown_at
    shown = bounds.one_run_epsilon(right, guesses, canaries, delta)
    refuted = None if claim.epsilon is None else bounds.one_run_p_value(right, guesses, canaries, claim.epsilon, delta)
    notes = [ABSENCE]
    if refuted is not None:
        notes.insert(0, f"Under the claim, as many right guesses or more have a probability of at most {refuted:.3g}.")
    ceiling = bounds.one_run_epsilon(guesses, guesses, canaries, delta)
    notes.append(f"All guesses right would have shown ε ≥ {ceiling:.2f}: so many canaries can show no more.")
    alarm = claim.epsilon is not None and shown > claim.epsilon
    return guessing_result(THREAT_MODEL, claim, scores, inside, shown, alarm, *notes)


def guessing_result(
    threat_model: ThreatModel, claim: Claim, scores: Floats, inside: Coins, shown: float, alarm: bool, *notes: str
) -> AttackResult:
    """Return the result of :func:`guess`, whatever bounds it.

    Args:
        threat_model: The attack.
        claim: The claim under attack.
        scores: ``(m,)`` high for likely members.
        inside: ``(m,)`` the truth.
        shown: The lower bound on ε.
        alarm: Whether the guesses refute the claim.
        notes: What a reader needs beside the counts.
    """
    right, guesses = guess(scores, inside)
    return AttackResult(
        threat_model=threat_model,
        measure=LOWER_BOUND,
        value=shown,
        desired="below the claim",
        rates=(RateEstimate(name="right guesses", value=right / guesses, interval=clopper_pearson(right, guesses)),),
        claim=claim,
        lower_bound=shown,
        alarm=alarm,
        notes=(
            f"{counted(len(scores), 'canary')}, {int(inside.sum())} of them in; {guesses} guesses, {right} right.",
            *notes,
        ),
    )
