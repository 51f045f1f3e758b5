"""Remember what other libraries computed from plain numbers: most of a suite's time would go into computing it again.

A plan is priced when it is made, read, fitted, sampled and released, and many tests have the same plan. What is
remembered lies in dp-accounting and typer alone, below every function of doublure: an edit of ours asks them for
something else, and is answered with something else. An order that dp-accounting leaves out is computed every time,
since it says so in a log.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

_DISTRIBUTIONS = 48  # a few megabytes each
_done: set[str] = set()


def install() -> None:
    """Remember what the libraries that are imported by now return."""
    for name, replace in (("dp_accounting.pld", _distributions), ("dp_accounting.rdp", _curves), ("typer", _commands)):
        if name in sys.modules and name not in _done:
            replace()
            _done.add(name)


def _curves() -> None:
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

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
