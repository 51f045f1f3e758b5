"""The worst case, many runs: does a method tell four people from five?

The attacker chose the data. Four rows are all alike; one of two data sets has a fifth that is as different as can be.
The method is fitted a thousand times on each, and from the synthetic rows alone, from how often each of the eight
possible rows occurs, the attacker guesses which it was. Nothing inside is looked at, so that every method can be
audited, and everything that a method does to data counts, not the noise alone (Ganev, Annamalai, De Cristofaro 2024,
who found six of six PATE-GANs to leak more than they claim).

A part of the runs trains a classifier, a part chooses its threshold, and the rest is what the bounds rest on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from doublure.attack import bounds
from doublure.attack.results import ABSENCE, LOWER_BOUND, AttackResult, Claim, Rate, ThreatModel
from doublure.encode.columns import Floats
from doublure.errors import SettingError
from doublure.support.progress import Progress, Silent

THREAT_MODEL = ThreatModel(
    attack="worst-case",
    name="Distinguishing four rows from five",
    family="audit",
    holds=("the data, but for whether it has the fifth row", "the method and its settings", "the synthetic rows"),
    does="Counts how often each of the eight possible rows occurs, and asks a classifier trained on other runs.",
    success="Runs with and without the record are distinguished more often than the claim allows.",
    shows="With a confidence of 95 %, that a method leaks more than it claims, wherever the fault lies.",
    cannot="That it leaks no more: synthetic rows show far less than the gradients of the training.",
    reference="Ganev et al. 2024; Annamalai et al. 2024; bounds: Dong, Roth, Su 2022 by Clopper–Pearson",
)

FEWEST = 20
_TRAINED, _CHOSEN = 0.4, 0.2

Make = Callable[[bool, int], Floats]
"""Whether the fifth row is there, and the number of the run, to counts ``(8,)`` of synthetic rows."""


def audit(
    make: Make, claim: Claim, *, runs: int = 1000, confidence: float = 0.95, progress: Progress | None = None
) -> AttackResult:
    """Audit a method by many runs on both data sets.

    Args:
        make: Fits to one of the data sets and counts what is sampled.
        claim: What the method claims.
        runs: Runs on each data set.
        confidence: Of the bounds.
        progress: Receives progress events.

    Raises:
        SettingError: Too few runs to say anything.
    """
    if runs < FEWEST:
        raise SettingError(f"must be at least {FEWEST}", field="runs", remedy="use 1000 or more")
    listener = progress or Silent()
    listener.stage("audit by many runs", 2 * runs)
    sides: list[list[Floats]] = [[], []]
    for number in range(runs):
        for side in (0, 1):
            sides[side].append(make(bool(side), number))
        listener.at(2 * (number + 1))
    return result_of_counts(np.stack(sides[1]), np.stack(sides[0]), claim, confidence)


def result_of_counts(inside: Floats, outside: Floats, claim: Claim, confidence: float = 0.95) -> AttackResult:
    """Return what counts from both sides show.

    Args:
        inside: ``(R, 8)`` counts with the fifth row.
        outside: ``(R, 8)`` counts without.
        claim: What the method claims.
        confidence: Of the bounds.
    """
    from sklearn.ensemble import RandomForestClassifier

    trained, chosen = int(_TRAINED * len(inside)), int((_TRAINED + _CHOSEN) * len(inside))
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    answers = np.repeat([1, 0], trained)
    forest.fit(np.concatenate([inside[:trained], outside[:trained]]), answers)
    scores = [np.asarray(forest.predict_proba(side[trained:])[:, 1]) for side in (inside, outside)]
    delta = 0.0 if claim.delta is None else claim.delta
    aside = chosen - trained

    def shown(threshold: float, first: int, last: int | None) -> float:
        rates = bounds.error_rates(scores[0][first:last], scores[1][first:last], threshold, confidence)
        return bounds.epsilon_from_rates(rates.upper_false_positives, rates.upper_false_negatives, delta)

    candidates = np.unique(np.concatenate([score[:aside] for score in scores]))
    threshold = float(max(candidates, key=lambda at: shown(float(at), 0, aside)))
    rates = bounds.error_rates(scores[0][aside:], scores[1][aside:], threshold, confidence)
    lower = shown(threshold, aside, None)
    mu = bounds.gaussian_mu(rates.upper_false_positives, rates.upper_false_negatives)
    judges = len(inside) - chosen
    return AttackResult(
        threat_model=THREAT_MODEL,
        measure=LOWER_BOUND,
        value=lower,
        desired="below the claim",
        rates=(
            Rate(name="false alarms", value=rates.false_positives),
            Rate(name="missed", value=rates.false_negatives),
        ),
        claim=claim,
        lower_bound=lower,
        alarm=claim.epsilon is not None and lower > claim.epsilon,
        notes=(
            f"{len(inside):,} runs on each side; the bounds rest on {judges:,} of them.",
            f"If the trade-off were Gaussian: ε ≥ {bounds.gaussian_epsilon(mu, max(delta, 1e-12)):.2f}.",
            f"A perfect attack would have shown ε ≥ {_perfect(judges, confidence, delta):.2f}.",
            ABSENCE,
        ),
    )


def _perfect(runs: int, confidence: float, delta: float) -> float:
    least = bounds.upper_rate(0, runs, (1 - confidence) / 2)
    return bounds.epsilon_from_rates(least, least, delta)
