"""What tests remember of dp-accounting is what it computes, to the last bit."""

from __future__ import annotations

import importlib.util
import math
from types import ModuleType

import numpy as np
import pytest
from remembered import log_a_of_broken_orders, log_a_of_whole_orders, remembered_curve, remembered_price


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
