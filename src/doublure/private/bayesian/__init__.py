"""The Bayesian accountant of Triastcyn and Faltings (Algorithms 2022, section 2.4, equations 5 to 9).

Where differential privacy bounds the privacy loss for the worst record, the Bayesian accountant bounds it **in
expectation over a record x′ drawn from the data's own distribution μ**. It is fed, at every noisy step, with sampled
distances ‖g − g′‖ between gradients with and without one record, and returns (ε_μ, δ_μ)-Bayesian DP:

    c_t(λ) = (1/T) log E_x′[ E_{k~Bin(λ+1,q)}[exp((k² − k) ‖g − g′‖² / 2σ²)]^T ]      (6), "c_L"
    log δ_μ ≤ Σ_t c_t(λ) − λ ε_μ                                                    (9), Theorem 1

Read before using the figures:

- They are estimates from private gradients. They are not ε, never add to one, and protect no record from elsewhere.
- T, the number of noisy steps, is fixed in advance: it is an exponent. An upper bound is fine, an overrun is not.
- The expectation is replaced by an upper confidence bound from m sampled distances (equation 8). Its failure
  probability is charged against δ_μ, once for each call of :meth:`BayesianAccountant.step`. The paper has a bound at
  each λ and takes the best afterwards; ``union`` spends the failure probability over all of them.
- With a ``max_distance`` no step costs more than at that distance: what is certain bounds what is estimated.
- ``student-t`` is the paper's bound. It is a heuristic: e^(Tc) is so heavy-tailed that its coverage collapses for
  λ >= 4 (``benchmarks/bayesian_coverage.py``). ``bernstein`` holds for any distribution of distances up to a public
  maximum, and is often no better than that maximum.
- The paper takes the larger of c_L and a second cost c_R (7). For lots drawn by Poisson sampling under add/remove the
  first already dominates (Mironov, Talwar and Zhang 2019, Theorem 5), and c_R is merely loose; the authors' own code
  uses c_L only, and so does this accountant unless ``paper_literal``.
"""

from doublure.private.bayesian.accountant import (
    DEFAULT_ORDERS,
    FEWEST_DISTANCES,
    BayesianAccountant,
    Bound,
    EqualDistancesWarning,
    StepsOverrunWarning,
)
from doublure.private.bayesian.moments import bernstein_log_mean, log_moment, student_t_log_mean
from doublure.private.bayesian.statements import Percentile, group_privacy, percentiles

__all__ = [
    "DEFAULT_ORDERS",
    "FEWEST_DISTANCES",
    "BayesianAccountant",
    "Bound",
    "EqualDistancesWarning",
    "Percentile",
    "StepsOverrunWarning",
    "bernstein_log_mean",
    "group_privacy",
    "log_moment",
    "percentiles",
    "student_t_log_mean",
]
