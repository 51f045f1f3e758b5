"""Canaries under f-DP: the same fit, judged by the plan's whole trade-off curve (Mahloujifar, Melis, Chaudhuri 2025).

One pair (ε, δ) says little of Gaussian noise, which is never as bad as the pair allows. The plan says every δ(ε) of its
noise, and so how many right guesses it allows (:mod:`doublure.attack.f_dp`). Where that probability is
below 5 %, the plan is refuted: noise, sampling or clipping is not as it says.
"""

from __future__ import annotations

from doublure.attack import bounds, f_dp
from doublure.attack.attack_data import AttackData
from doublure.attack.canary import THREAT_MODEL as CANARY
from doublure.attack.canary import Coins, fit_with_canaries, guess, guessing_result
from doublure.attack.results import (
    ABSENCE,
    CONFIDENCE,
    AttackResult,
    ThreatModel,
    skip_attack,
)
from doublure.support.arrays import Floats

THREAT_MODEL = ThreatModel(
    attack="one-run",
    name="Canaries in one run, under f-DP",
    family="audit",
    holds=CANARY.holds,
    does=CANARY.does,
    success="More guesses are correct than the plan’s noise allows, at all its ε at once.",
    shows="With a confidence of 95 %, that the true ε is at least so large, whatever the noise is.",
    cannot="That ε is small: with so few canaries the bound stays below a true ε.",
    reference="Mahloujifar, Melis, Chaudhuri 2025; Xiang et al. 2025 refine the game further, which is not built",
)


def attack(data: AttackData) -> AttackResult:
    """Audit the plan by one fit with canaries, under its own trade-off curve."""
    found = fit_with_canaries(data, purpose=12)
    if found is None:
        return skip_attack(THREAT_MODEL, data.claim, "the run cannot be refitted")
    return one_run_result(data, *found)


def one_run_result(data: AttackData, scores: Floats, inside: Coins) -> AttackResult:
    """Return the result of guesses on the highest and the lowest quarter of the scores.

    Args:
        data: The attack data.
        scores: ``(m,)`` high for likely members.
        inside: ``(m,)`` the truth.
    """
    (right, guesses), canaries, claim = guess(scores, inside), len(scores), data.claim
    delta, alpha = claim.delta_shown_at, 1 - CONFIDENCE
    shown = bounds.gaussian_epsilon(f_dp.refuted(right, guesses, canaries, f_dp.of_gaussian, alpha), delta)
    any_noise = f_dp.refuted(right, guesses, canaries, lambda epsilon: f_dp.of_profile([(epsilon, delta)]), alpha)
    profile = () if data.profile is None else data.profile()
    if not profile and claim.epsilon is not None:
        profile = ((claim.epsilon, delta),)
    chance = f_dp.p_value(right, guesses, canaries, f_dp.of_profile(profile)) if profile else None
    notes = []
    if chance is not None:
        noise = "the plan’s noise" if data.profile is not None else "the claim"
        notes.append(f"Under {noise}, as many right guesses or more have a probability of at most {chance:.3g}.")
    notes.append(f"Whatever the noise, ε ≥ {any_noise:.2f} is shown; if it is Gaussian, ε ≥ {shown:.2f}.")
    alarm = chance is not None and chance <= alpha
    return guessing_result(THREAT_MODEL, claim, scores, inside, any_noise, alarm, *notes, ABSENCE)
