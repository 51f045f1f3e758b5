"""Remember what other libraries computed from plain numbers: most of a suite's time would go into computing it again.

A plan is priced when it is made, read, fitted, sampled and released, and many tests have the same plan. What is
remembered lies in dp-accounting and typer alone, below every function of doublure: an edit of ours asks them for
something else, and is answered with something else. An order that dp-accounting leaves out is computed every time,
since it says so in a log. Its sum over binomial coefficients is added up here in the same order, to the same bits
(``test_remembered.py``), without computing the coefficients anew.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

_DISTRIBUTIONS = 48  # a few megabytes each
_done: set[str] = set()


def install() -> None:
    """Remember what the libraries that are imported by now return."""
    for name, replace in (("dp_accounting.pld", _distributions), ("dp_accounting.rdp", _curves), ("typer", _commands)):
        if name in sys.modules and name not in _done:
            replace()
            _done.add(name)


def log_a_of_whole_orders(log_comb: Callable[[float, float], float]) -> Callable[[float, float, int], float]:
    """Return what computes log A of a whole order α from q and σ, as dp-accounting does term by term.

    Args:
        log_comb: The logarithm of a binomial coefficient.
    """

    @cache
    def coefficients(alpha: int) -> np.ndarray:
        return np.array([float(log_comb(alpha, i)) for i in range(alpha + 1)])

    def log_a(q: float, sigma: float, alpha: int) -> float:
        i = np.arange(alpha + 1.0)
        terms = coefficients(alpha) + i * math.log(q) + (alpha - i) * math.log1p(-q) + (i * i - i) / (2 * (sigma**2))
        total, *rest = terms.tolist()
        for term in rest:
            less, more = (total, term) if total < term else (term, total)
            total = math.log1p(math.exp(less - more)) + more
        return total

    return log_a


def _curves() -> None:
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    rdp._compute_log_a_int = log_a_of_whole_orders(rdp._log_comb)
    known: dict[tuple[float, float, float], float] = {}
    compute = rdp._compute_log_a

    def remembered(q: float, noise_multiplier: float, alpha: float) -> float:
        key = (q, noise_multiplier, alpha)
        if key not in known:
            found = compute(q, noise_multiplier, alpha)
            if not math.isfinite(found):
                return found
            known[key] = found
        return known[key]

    rdp._compute_log_a = remembered


def _distributions() -> None:
    from dp_accounting.pld import privacy_loss_distribution as losses

    losses.from_gaussian_mechanism = lru_cache(_DISTRIBUTIONS)(losses.from_gaussian_mechanism)


def _commands() -> None:
    import typer.main

    compute: Callable[..., Any] = typer.main.get_params_from_function
    known: dict[Any, Any] = {}

    def remembered(func: Callable[..., Any]) -> Any:
        key = (func, getattr(func, "__code__", None))
        if key not in known:
            known[key] = compute(func)
        return dict(known[key])

    typer.main.get_params_from_function = remembered
