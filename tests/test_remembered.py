"""What tests remember of dp-accounting is what it computes, to the last bit."""

from __future__ import annotations

import importlib.util
import inspect
import math
from types import FunctionType, ModuleType

import numpy as np
import pytest
import torch
from planting import function_of
from remembered import (
    at_once,
    engine_modules,
    form_of_critic,
    log_a_of_broken_orders,
    log_a_of_whole_orders,
    remembered_curve,
    remembered_price,
)

from doublure.networks.mlp import MlpCritic
from doublure.private.accounting import calibration, composition, curves, events, sampled_gaussian
from doublure.private.gradients import CriticLoss, RecordPairs, choice


@pytest.fixture(scope="module")
def untouched():
    """Return dp-accounting's module as it is before anything in it is replaced."""
    spec = importlib.util.find_spec("dp_accounting.rdp.rdp_privacy_accountant")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("alpha", [2, 3, 17, 64, 512])
def test_a_sum_over_coefficients_is_the_same_to_the_last_bit(untouched, alpha):
    ours, draw = log_a_of_whole_orders(untouched._log_comb), np.random.default_rng(alpha)
    for _ in range(40):
        q, sigma = 10 ** draw.uniform(-5, -1e-3), 10 ** draw.uniform(-0.7, 3)
        assert ours(q, sigma, alpha) == untouched._compute_log_a_int(q, sigma, alpha)


@pytest.mark.parametrize("alpha", [1.1, 1.5, 4.9, 10.9, 63.5])
def test_so_is_that_of_a_broken_order(untouched, alpha):
    slow = untouched._compute_log_a_frac
    ours = log_a_of_broken_orders(untouched._log_comb, lambda *_: math.inf)
    draw = np.random.default_rng(int(10 * alpha))
    for _ in range(40):
        q, sigma = 10 ** draw.uniform(-5, -1e-3), 10 ** draw.uniform(-0.7, 3)
        assert ours(q, sigma, alpha) == slow(q, sigma, alpha)


def test_a_curve_is_computed_once_and_each_asker_has_a_copy(untouched):
    asked, compute = [], untouched._compute_randomized_response_rdp
    ours = remembered_curve(lambda *given: asked.append(given) or compute(*given))
    for relation in (untouched.NeighborRel.REPLACE_ONE, untouched.NeighborRel.REPLACE_SPECIAL):
        for alphas in ([1.5, 4, 32], [1.5, 4]):
            given = (0.3, 2, alphas, relation)
            first = ours(*given)
            first += 1.0
            assert ours(*given).tolist() == compute(*given).tolist()
    assert len(asked) == 4


def test_a_gaussian_that_is_not_sampled_costs_the_same_at_each_order(untouched):
    compute = untouched._compute_rdp_poisson_subsampled_gaussian
    orders = np.append(untouched.RdpAccountant()._orders, np.inf)
    for sigma in (0.0, 1e-2, 0.7, math.pi, 1e8):
        for q in (1.0, 0.5):
            given = (q, sigma, orders if q == 1.0 else orders[:4])
            assert at_once(compute)(*given).tolist() == compute(*given).tolist()


def test_a_price_is_computed_once_while_nothing_is_edited_or_replaced(monkeypatch):
    module = ModuleType("priced")
    exec("def half(x): return x / 2\n\ndef price(x, *, more=0): return half(x) + more", vars(module))
    compute = module.price
    ours = remembered_price(compute, module)
    first = ours(4)
    assert ours(4) is first  # a float of its own each time it is computed
    assert (ours(4), ours(4.0), ours(4, more=1)) == (2, 2, 3)
    for function, told in ((module.half, lambda x: x), (compute, lambda x, *, more=0: 4)):
        with monkeypatch.context() as patch:
            patch.setattr(function, "__code__", told.__code__)
            assert ours(4) == 4
    with monkeypatch.context() as patch:
        patch.setattr(module, "half", lambda x: 9 * x)
        assert ours(4) == 36
    assert ours(4) == 2
    with pytest.raises(TypeError):
        ours("4")


def test_a_price_of_what_only_its_address_tells_apart_is_computed_each_time():
    module = ModuleType("priced")
    exec("def price(x): return sum(x)", vars(module))
    ours = remembered_price(module.price, module)
    key = repr(iter([1]))

    class Alike:
        def __init__(self, number):
            self.number = number

        def __iter__(self):
            return iter([self.number])

        __repr__ = lambda self: key  # noqa: E731 (as of an object that takes the place of one that is gone)

    assert (ours(Alike(1)), ours(Alike(2))) == (1, 2)


def _watched(module):
    """Yield all functions of a module that a fault may be planted in, with their names."""
    for owner in (module, *(each for each in vars(module).values() if isinstance(each, type))):
        if owner is module or owner.__module__ == module.__name__:
            for name, each in vars(owner).items():
                inner = getattr(each, "fget", getattr(each, "__func__", each))
                function = inspect.unwrap(inner) if callable(inner) else inner
                if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                    yield owner, name


ACCOUNTING = [calibration, composition, curves, events, sampled_gaussian]


@pytest.mark.parametrize(
    ("owner", "name"),
    [each for module in ACCOUNTING for each in _watched(module)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_no_price_outlives_a_fault_planted_anywhere_in_the_accountant(monkeypatch, owner, name):
    compute = inspect.unwrap(composition.cost_of)
    given = ([events.GaussianEvent(noise_multiplier=9.0)], 1e-5, "rdp", "add-remove")
    forgets(remembered_price(compute, *ACCOUNTING), given, function_of(owner, name), monkeypatch)


def forgets(ours, given, function, patch):
    """Check that what is remembered is computed anew, once a fault is planted in a function."""
    first = ours(*given)
    assert ours(*given) is first
    patch.setattr(function, "__code__", function.__code__.replace(co_firstlineno=1))
    assert ours(*given) is not first


def asked(critic=None, rows=3, penalty=0.0):
    """Return what an engine is chosen for."""
    critic = critic or MlpCritic(4, condition_width=0, width=3, depth=1, generator=torch.Generator())
    real, fake, mix = torch.rand(rows, 4), torch.rand(rows, 4), torch.rand(rows)
    loss = CriticLoss(kind="wgan", gradient_penalty=penalty)
    return critic, [*critic.parameters()], loss, RecordPairs(real=real, fake=fake, mix=mix)


def test_an_engine_is_chosen_once_for_critics_that_differ_in_numbers_alone(monkeypatch):
    ours = remembered_price(choice.choose, *engine_modules(), told=form_of_critic)
    first = ours(*asked())
    assert ours(*asked()) is first
    assert ours(*asked(penalty=1.0)) is not first
    wider = MlpCritic(4, condition_width=0, width=5, depth=1, generator=torch.Generator())
    assert ours(*asked(wider)) is not first
    hooked = asked()
    hooked[0].register_forward_hook(lambda *_: None)
    monkeypatch.setattr(MlpCritic, "forward", lambda self, x, condition: self.body(x).squeeze(1))
    own = type("Own", (MlpCritic,), {})(4, condition_width=0, width=3, depth=1, generator=torch.Generator())
    for given in (hooked, asked(own)):
        assert form_of_critic(*given) is None
    assert ours(*asked()) is not first


@pytest.mark.parametrize(
    ("owner", "name"),
    [each for module in engine_modules() for each in _watched(module)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_no_engine_outlives_a_fault_planted_where_gradients_are_computed(monkeypatch, owner, name):
    ours = remembered_price(lambda *given: object(), *engine_modules(), told=form_of_critic)
    forgets(ours, asked(), function_of(owner, name), monkeypatch)
