"""White-box audit of the production trainer.

The threat model: the attacker chose the data, and sees every noised gradient that leaves
:class:`doublure.private.critic_steps.CriticSteps`. In one data set every record's gradient is zero; the other has one
more record, whose gradient is enormous and points along a known direction. From the mechanism's output the attacker
guesses the data set. Guesses better than the claimed (ε, δ) allows refute the claim: the noise is too small, the clip
too wide, or more steps were taken than were paid for.

Mechanism, sampler, clipping, filters and noise are those that ``dpgan`` uses, not copies. The score is the
log-likelihood ratio of a subsampled Gaussian (Nasr et al. 2023), which for full batches is the sum of the observations.
Where units have privacy filters, the additional record has room for B steps. The attacker adds up either these or all
T, in which a filter that does not cut it off shows, as separate runs have shown more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.access import Access
from doublure.attack import bounds
from doublure.attack.results import ABSENCE
from doublure.errors import SettingError
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent
from doublure.private.ranks import LocalContext
from doublure.support.devices import chosen_device
from doublure.support.extras import require_torch
from doublure.support.progress import Progress, SilentProgress

Ratios: TypeAlias = npt.NDArray[np.float64]

_WIDTH = 8
_OTHERS = 4
_HUGE = 1e6


@dataclass(frozen=True, kw_only=True)
class TrainerAudit:
    """Results of an audit.

    Attributes:
        claimed_epsilon: The ε that the accountant claims for the audited run.
        delta: The δ of all three figures.
        lower_bound: Clopper–Pearson lower bound on ε at the confidence, without assumptions.
        gaussian_lower_bound: The same from the Gaussian trade-off: tight, and assumes a nearly Gaussian mechanism.
        false_positives: The attacker's false positive rate.
        false_negatives: The attacker's false negative rate.
        allowed_false_negatives: The smallest rate the claim allows at the upper bound of the false positives.
        violated: Whether the attacker refuted the claim, at the confidence.
        confidence: Confidence of the bounds.
        runs: Runs on each side behind the bounds; as many again chose the threshold.
        sample_rate: q.
        steps: T.
        noise_multiplier: σ.
        filter_steps: B of each unit's privacy filter; None: there is none.
    """

    claimed_epsilon: float
    delta: float
    lower_bound: float
    gaussian_lower_bound: float
    false_positives: float
    false_negatives: float
    allowed_false_negatives: float
    violated: bool
    confidence: float
    runs: int
    sample_rate: float
    steps: int
    noise_multiplier: float
    filter_steps: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the figures."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """The result in words."""
        verdict = "VIOLATED: the mechanism leaks more than it claims" if self.violated else "no violation found"
        return (
            f"Claimed ε={self.claimed_epsilon:.3g} at δ={self.delta:g}; an attacker with every noised gradient "
            f"shows ε ≥ {self.lower_bound:.2f} (Clopper–Pearson), ≥ {self.gaussian_lower_bound:.2f} (Gaussian) at "
            f"confidence {self.confidence:g} over {self.runs} runs with the record and as many without: {verdict}. "
            f"{ABSENCE}"
        )


def audit_trainer(
    *,
    epsilon: float = 4.0,
    delta: float = 1e-5,
    sample_rate: float = 1.0,
    iterations: int = 2,
    n_critic: int = 1,
    runs: int = 1000,
    confidence: float = 0.95,
    max_grad_norm: float = 1.0,
    filter_steps: int | None = None,
    progress: Progress | None = None,
    ranks: LocalContext | None = None,
) -> TrainerAudit:
    """Attack the production mechanism at a claimed ε.

    Args:
        epsilon: The mechanism's target ε.
        delta: Its δ.
        sample_rate: q; 1 is the attacker's best case.
        iterations: Iterations of the generator.
        n_critic: Noisy steps in each.
        runs: Runs on each side for the bounds; as many again are used to choose the threshold.
        confidence: Confidence of the bounds.
        max_grad_norm: C.
        filter_steps: B of each unit's privacy filter, with full batches; None: there is none.
        progress: Receives progress events.
        ranks: Set where several processes share the mechanism's records, and all audit it; None: this process alone.

    Returns:
        The bounds beside the claim.

    Raises:
        SettingError: Too few runs to say anything, or filters are asked for with lots.
    """
    require_torch("--trainer")
    if runs < 20:
        raise SettingError("must be at least 20", field="runs", remedy="use 1000 or more")
    steps = iterations * n_critic

    def event_at(noise: float) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=noise, sample_rate=sample_rate, steps=steps, filter_steps=filter_steps)

    noise = accounting.calibrate(lambda noise: [event_at(noise)], epsilon=epsilon, delta=delta)
    event = event_at(noise)
    listener = progress or SilentProgress()
    listener.stage("audit the trainer", 4 * runs)
    sides = []
    for side, planted in enumerate((True, False)):
        observed = _observations(planted, event, max_grad_norm, n_critic, 2 * runs, ranks or LocalContext())
        ratios = np.empty((2 * runs, steps))
        for number in range(2 * runs):
            ratios[number] = next(observed)
            if number % 50 == 49:
                listener.at(side * 2 * runs + number + 1)
        sides.append(ratios)
    inside, outside, threshold = _best_sums(sides[0], sides[1], runs, {event.paid_steps, steps}, confidence)
    rates = bounds.error_rates(inside[runs:], outside[runs:], threshold, confidence)
    allowed = bounds.trade_off(lambda at: accounting.delta_of([event], at), rates.upper_false_positives)
    mu = _shown_mu(rates)
    return TrainerAudit(
        claimed_epsilon=epsilon,
        delta=delta,
        lower_bound=bounds.epsilon_from_rates(rates.upper_false_positives, rates.upper_false_negatives, delta),
        gaussian_lower_bound=bounds.gaussian_epsilon(mu, delta),
        false_positives=rates.false_positives,
        false_negatives=rates.false_negatives,
        allowed_false_negatives=allowed,
        violated=rates.upper_false_negatives < allowed,
        confidence=confidence,
        runs=runs,
        sample_rate=sample_rate,
        steps=steps,
        noise_multiplier=noise,
        filter_steps=filter_steps,
    )


def _best_sums(
    inside: Ratios, outside: Ratios, runs: int, lengths: Iterable[int], confidence: float
) -> tuple[Ratios, Ratios, float]:
    """Return each run's sum over its first steps, and the threshold: how many steps, the first half of runs decides.

    Args:
        inside: ``(2 runs, T)`` log-likelihood ratios of steps with the record.
        outside: Without it.
        runs: Runs that choose.
        lengths: Numbers of steps to choose from.
        confidence: Confidence of the bounds.
    """
    found = []
    for length in lengths:
        one, other = (ratios[:, :length].sum(axis=1) for ratios in (inside, outside))
        threshold = bounds.best_threshold(one[:runs], other[:runs], _shown_mu, confidence)
        shown = _shown_mu(bounds.error_rates(one[:runs], other[:runs], threshold, confidence))
        found.append((shown, one, other, threshold))
    return max(found, key=lambda each: each[0])[1:]


def _observations(
    planted: bool, event: GaussianEvent, max_grad_norm: float, n_critic: int, runs: int, ranks: LocalContext
) -> Iterator[Ratios]:
    """Run the production mechanism repeatedly and yield the attacker's log-likelihood ratios of each run's steps.

    One mechanism makes all runs, each being T of its counted steps. It keeps nothing between steps but their number,
    and its setup takes longer than a run. Only where units have filters, which remember, each run has its own.
    """
    import torch

    from doublure.private import noise
    from doublure.private.clipping import ConstantSchedule
    from doublure.private.critic_steps import CriticSteps
    from doublure.private.gradients import CriticLoss
    from doublure.private.queries.lot_gradients import CriticSettings
    from doublure.private.records import PrivateRecords

    rows, device = torch.zeros(_OTHERS + planted, _WIDTH), chosen_device()
    if planted:
        rows[-1, 0] = -_HUGE  # the gradient of −D(x) = −⟨w, x⟩ is −x: it points along the first weight
    units = np.arange(len(rows), dtype=np.int64)
    critic = _linear_critic().to(device)
    together = runs if event.filter_steps is None else 1
    access = Access(purpose="train the critic", event=replace(event, steps=event.steps * together))
    records = PrivateRecords(rows, units, len(rows), lambda compact: (compact, None), device)
    settings = CriticSettings(
        loss=CriticLoss(kind="wgan"),
        schedule=ConstantSchedule(max_grad_norm=max_grad_norm),
        expected_units=1.0,
        n_critic=n_critic,
    )
    for _ in range(runs // together):
        mechanism = ranks.mechanism([access], noise=noise.source(), authorise=lambda access, step: None)
        step = CriticSteps(mechanism, access, ranks.assigned(records, records.fingerprint), settings)
        for _ in range(together):
            ratios, begun, number = np.zeros(event.steps), step.taken, 0
            while step.taken < begun + event.steps:  # as a training goes on: a step that is not counted is one more
                gradient = step.gradient(critic, lambda size, _: torch.zeros(size, _WIDTH, device=device))
                ratios[min(number, event.steps - 1)] += _likelihood_ratio(float(gradient[0]) / max_grad_norm, event)
                number += 1
            yield ratios


def _linear_critic() -> Any:
    """Return D(x) = ⟨w, x⟩, whose gradient is the record itself."""
    from torch import Tensor, nn

    class LinearCritic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score = nn.Linear(_WIDTH, 1, bias=False)

        def forward(self, rows: Tensor, condition: Tensor | None = None) -> Tensor:
            return self.score(rows).squeeze(1)  # type: ignore[no-any-return]

    return LinearCritic()


def _likelihood_ratio(observed: float, event: GaussianEvent) -> float:
    """Return log of (1 − q) + q N(1, σ²)/N(0, σ²) at the observation."""
    q, variance = event.sample_rate, event.noise_multiplier**2
    return float(np.logaddexp(np.log1p(-q) if q < 1 else -np.inf, np.log(q) + (observed - 0.5) / variance))


def _shown_mu(rates: bounds.ErrorRates) -> float:
    return bounds.gaussian_mu(rates.upper_false_positives, rates.upper_false_negatives)
