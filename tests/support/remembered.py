"""Remember what other libraries computed from plain numbers: most of a suite's time would go into computing it again.

A plan is priced when it is made, read, fitted, sampled and released, and many tests have the same plan. What is
remembered lies in dp-accounting and typer, below every function of doublure: an edit of ours asks them for something
else, and is answered with something else. Prices of whole plans and cards are remembered too, and which engine takes
the gradients of our critics, as long as nothing in the modules that find them is replaced or edited. An order that
dp-accounting leaves out is computed every time, since it says so in a log. Its sums over binomial coefficients are
added up here in the same order, to the same bits (``test_remembered.py``), without computing the coefficients anew.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator
from functools import cache, lru_cache, wraps
from operator import attrgetter, is_
from types import FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

_DISTRIBUTIONS = 48  # a few megabytes each
_COMPOSED = 16  # tens of megabytes each
_TERMS, _MOST_TERMS = 100, 1000  # at a time, and in all
_CODE = attrgetter("__code__")
_done: set[str] = set()


def install() -> None:
    """Remember what the libraries that are imported by now return."""
    for name, replace in (
        ("dp_accounting.pld", _distributions), ("dp_accounting.rdp", _curves), ("typer", _commands),
        ("doublure.private.accounting", _prices), ("doublure.releasing.verifying", _prices_again),
        ("doublure.private.gradients", _engines),
    ):  # fmt: skip
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
        return float(_sums(terms)[-1])

    return log_a


def log_a_of_broken_orders(
    log_comb: Callable[[float, float], float], fails: Callable[[float, float, float], float]
) -> Callable[[float, float, float], float]:
    """Return what computes log A of any other order, as dp-accounting does term by term.

    Args:
        log_comb: The logarithm of a binomial coefficient.
        fails: What is called where the sum does not end.
    """
    from scipy.special import log_ndtr

    @cache
    def coefficients(alpha: float, start: int) -> np.ndarray:
        return np.array([float(log_comb(alpha, i)) for i in range(start, start + _TERMS)])

    def log_a(q: float, sigma: float, alpha: float) -> float:
        log_q, log1mq = math.log(q), math.log1p(-q)
        z0 = sigma**2 * math.log(1 / q - 1) + 0.5
        below = above = last0 = last1 = -math.inf
        for start in range(0, _MOST_TERMS, _TERMS):
            i = np.arange(start, start + _TERMS, dtype=np.float64)
            j, coefficient = alpha - i, coefficients(alpha, start)
            reach = math.sqrt(2) * sigma
            tail0, tail1 = (
                math.log(0.5) + (math.log(2) + log_ndtr(-(far / reach) * 2**0.5)) for far in (i - z0, z0 - j)
            )
            s0 = coefficient + i * log_q + j * log1mq + (i * i - i) / (2 * (sigma**2)) + tail0
            s1 = coefficient + j * log_q + i * log1mq + (j * j - j) / (2 * (sigma**2)) + tail1
            sums0, sums1 = _sums(s0, below), _sums(s1, above)
            total = np.logaddexp(sums0, sums1)
            small = np.maximum(s0, s1) < total - 30
            small[1:] &= (s0[1:] < s0[:-1]) & (s1[1:] < s1[:-1])
            small[0] &= s0[0] < last0 and s1[0] < last1
            if small.any():
                return float(total[small.argmax()])
            below, above, last0, last1 = sums0[-1], sums1[-1], s0[-1], s1[-1]
        return fails(q, sigma, alpha)

    return log_a


def _sums(terms: np.ndarray, before: float = -math.inf) -> np.ndarray:
    """Return log(exp(before) + exp(term₀) + …) after each term, added up one by one."""
    return np.logaddexp.accumulate(np.concatenate(([before], terms)))[1:]


def _curves() -> None:
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    def fails(q: float, sigma: float, alpha: float) -> float:
        """Leave an order out, in dp-accounting's words."""
        rdp.logging.warning(
            "_compute_log_a_frac failed to converge after %d iterations with q=%f, sigma=%f, alpha=%f."
            " Excluding this order from the epsilon computation.", _MOST_TERMS, q, sigma, alpha,
        )  # fmt: skip
        return math.inf

    rdp._compute_log_a_int = log_a_of_whole_orders(rdp._log_comb)
    rdp._compute_log_a_frac = log_a_of_broken_orders(rdp._log_comb, fails)
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
    rdp._compute_rdp_poisson_subsampled_gaussian = at_once(rdp._compute_rdp_poisson_subsampled_gaussian)
    rdp._compute_randomized_response_rdp = remembered_curve(rdp._compute_randomized_response_rdp)


def at_once(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return what computes all orders of a Gaussian that is not sampled as one array, equal to the last bit."""

    def computed(q: float, noise_multiplier: float, orders: Any) -> Any:
        if q == 1.0 and noise_multiplier > 0:
            return np.asarray(orders) / (2 * noise_multiplier**2)
        return compute(q, noise_multiplier, orders)

    return computed


def remembered_curve(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return what remembers the curve of randomised response: its orders are always the same few lists."""
    known: dict[tuple[float, int, tuple[float, ...], Any], Any] = {}

    def remembered(noise_parameter: float, num_buckets: int, alphas: Any, neighboring_relation: Any) -> Any:
        key = (noise_parameter, num_buckets, tuple(alphas), neighboring_relation)
        if key not in known:
            known[key] = compute(noise_parameter, num_buckets, alphas, neighboring_relation)
        return known[key].copy()

    return remembered


def _distributions() -> None:
    from dp_accounting.pld import privacy_loss_distribution as losses

    losses.from_gaussian_mechanism = lru_cache(_DISTRIBUTIONS)(losses.from_gaussian_mechanism)
    composed = losses.PrivacyLossDistribution
    composed.self_compose = lru_cache(_COMPOSED)(composed.self_compose)  # of an object, which nothing changes
    composed.get_epsilon_for_delta = lru_cache(_COMPOSED)(composed.get_epsilon_for_delta)


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


def _prices() -> None:
    from doublure.private.accounting import calibration, composition, curves, events, sampled_gaussian

    remember = remembered_price(composition.cost_of, calibration, composition, curves, events, sampled_gaussian)
    calibration.cost_of = composition.cost_of = remember


def _prices_again() -> None:
    from doublure.releasing import repricing, verifying

    recompute = remembered_price(repricing.recompute_epsilon, repricing)
    verifying.recompute_epsilon = lambda touches, delta: recompute([*touches], delta)


def _engines() -> None:
    from doublure.private.gradients import choice, lots

    lots.choose = remembered_price(choice.choose, *engine_modules(), told=form_of_critic)


def engine_modules() -> list[ModuleType]:
    """Return where gradients are computed, unit by unit, and compared."""
    from doublure.private.gradients import choice, layers, loss, pairs, reference, tape, terms, units

    return [choice, layers, loss, pairs, reference, tape, terms, units]


def form_of_critic(critic: Any, parameters: Any, loss: Any, like: Any) -> Hashable:
    """Return all but the numbers of what an engine is chosen for; None for a critic that is not our own.

    Args:
        critic: As :func:`doublure.private.gradients.choice.choose` takes them.
        parameters: Its parameters.
        loss: Its loss.
        like: Records.
    """
    layers = [(name, type(each), type(each).forward.__code__, _facts(each)) for name, each in critic.named_modules()]
    tensors = (*parameters, like.real, like.fake, like.condition, like.mix)
    forms = (each if each is None else (each.shape, each.dtype, each.device) for each in tensors)
    return None if any(facts is None for *_, facts in layers) else (*layers, loss, *forms)


def _facts(layer: Any) -> Hashable:
    from torch import nn

    own = {name: each for name, each in vars(layer).items() if name not in vars(nn.Module())}
    ours = type(layer).__module__.partition(".")[0] in ("torch", "doublure")
    plain = all(isinstance(each, (bool, int, float, str, tuple, NoneType)) for each in own.values())
    hooked = layer._forward_hooks or layer._forward_pre_hooks
    return (*own.items(),) if ours and plain and not hooked else None


def _as_said(*given: Any, **named: Any) -> Hashable:
    key = repr((given, named))
    return None if " at 0x" in key else key  # an address says nothing, and is another's next


def remembered_price(
    compute: Callable[..., Any], *modules: ModuleType, told: Callable[..., Hashable] = _as_said
) -> Callable[..., Any]:
    """Return what remembers prices by all that is asked, while nothing in the modules is replaced or edited.

    Args:
        compute: A function of one of them.
        modules: Where prices are computed.
        told: Says all that its arguments are, or None, where that cannot be said: computed each time. By default their
            repr says it.
    """
    known: dict[Hashable, Any] = {}
    spaces = [vars(module) for module in modules]
    spaces += [vars(each) for space in spaces for each in space.values() if _is_ours(each, modules)]
    found = [(space, {name: each for name, each in space.items() if each is not compute}) for space in spaces]
    every = (compute, *(each for _, own in found for each in own.values()))
    functions = [*{function for each in every for function in functions_in(each)}]
    codes = [*map(_CODE, functions)]

    @wraps(compute)
    def remembered(*given: Any, **named: Any) -> Any:
        as_it_was = all(map(is_, map(_CODE, functions), codes))
        if not as_it_was or not all(all(map(is_, map(space.get, own), own.values())) for space, own in found):
            return compute(*given, **named)
        if (key := told(*given, **named)) is None:
            return compute(*given, **named)
        if key not in known:
            known[key] = compute(*given, **named)
        return known[key]

    return remembered


def functions_in(each: Any) -> Iterator[FunctionType]:
    """Yield the functions that something in a module or a class calls: itself, a property's, or a wrapped one."""
    if isinstance(each, type):
        return
    for inner in ("fget", "func", "__func__", "__wrapped__"):
        if hasattr(each, inner):
            yield from functions_in(getattr(each, inner))
    if isinstance(each, FunctionType):
        yield each


def _is_ours(each: Any, modules: tuple[ModuleType, ...]) -> bool:
    return isinstance(each, type) and each.__module__ in {module.__name__ for module in modules}
