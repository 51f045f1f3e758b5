"""Noise against all there is to see: how it is told, where it is told, and which ε is advised instead."""

from __future__ import annotations

import math

import pytest

import doublure as db
from doublure.access import Access
from doublure.methods.statistics.tables.plan import SCORES
from doublure.planning.signal_to_noise import MOST, bounds_warnings, noise_warnings, values_warnings
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, GaussianEvent, PureEvent


def access(event, purpose="train", path=None):
    return Access(purpose=purpose, event=event, path=path)


def lots(noise, rate=1.0, steps=1):
    return access(GaussianEvent(noise_multiplier=noise, sample_rate=rate, steps=steps))


def counts(scale, records=1, tables=1, purpose="count"):
    return access(DiscreteGaussianEvent(scale=scale, records=records, tables=tables), purpose)


@pytest.mark.parametrize(
    ("touch", "units", "told"),
    [
        (lots(20.0), 100, "0.2"),
        (lots(2.0, rate=0.01), 1000, "0.2"),  # a lot of 10
        (lots(2.0, rate=1e-5), 1000, "2"),  # a lot of one unit at least
        (lots(9.9), 100, None),
        (counts(30.0), 100, "0.3"),
        (counts(30.0, records=2), 100, "0.15"),
        (counts(30.0, records=3), 100, None),
        (counts(30.0, purpose=SCORES), 100, "0.15"),
        (counts(15.0, purpose=SCORES), 100, None),
        (access(PureEvent(epsilon=1e-9)), 100, None),
    ],
)
def test_noise_is_told_in_shares_of_all_that_units_can_add(touch, units, told):
    found = noise_warnings((touch,), units, 1e-5, 0.0)
    if told is None:
        assert found == ()
    else:
        assert len(found) == 1
        assert found[0].startswith(f"{touch.purpose}: the noise is {told} times all that {units} units can add")
    assert noise_warnings((touch,), units, None, 0.0) == ()


@pytest.mark.parametrize(
    ("touches", "rho"),
    [
        ((lots(20.0),), 1 / 800),
        ((lots(20.0, steps=9),), 9 / 800),
        ((counts(20.0, tables=4),), 4 / 800),
        ((counts(40.0, records=2, tables=4),), 4 / 800),
        ((lots(20.0), counts(20.0)), 2 / 800),
        ((lots(4.0, rate=0.2),), 1 / 800),
    ],
)
@pytest.mark.parametrize("facts", [0.0, 0.5])
def test_the_advice_is_what_a_tenth_of_all_would_cost(touches, rho, facts):
    """Noise that is twice too loud has to be halved: four times ρ, and ε = ρ + 2 √(ρ ln 1/δ) beside the facts."""
    rho *= (0.2 / MOST) ** 2
    found = noise_warnings(touches, 100, 1e-5, facts)
    enough = facts + rho + 2 * math.sqrt(rho * math.log(1e5))
    (said,) = found
    assert f"give about epsilon {enough:.2g}, or more units" in said
    assert ("the noisiest of 2 such releases" in said) == (len(touches) == 2)


def test_an_epsilon_that_is_no_advice_is_not_given():
    (found,) = noise_warnings((lots(1.0, steps=10**6),), 5, 1e-5, 0.0)
    assert "give far more epsilon" in found


SERIES = """
doublure: 1
kind: series
unit: {{name: meter, id: who, max_records: {most}}}
units: {units}
series: {{length: 4, gaps: refuse}}
channels: {{kw: {{type: integer, bounds: {{learn: {epsilon}{more}}}, missing: false}}}}
"""


def bounds(units, epsilon, most=1, more="", priced=True):
    text = SERIES.format(units=units, epsilon=epsilon, most=most, more=more)
    return bounds_warnings(db.Schema.parse(text), priced=priced)


def test_bounds_that_noise_decides_are_told_apart_from_those_that_cut_off():
    assert bounds(10**6, 0.5) == bounds(10, 0.5, more=", magnitude: 100") == ()
    (noise,) = bounds(10, 0.5)
    assert "so the bounds will be noise" in noise
    assert noise.startswith("channels.kw.bounds: at epsilon 0.5 a bin is found only if it holds")
    (cut,) = bounds(1000, 0.5, most=20)
    assert "because one unit may have 40, so values rarer than that are cut off" in cut


@pytest.mark.parametrize(("units", "most"), [(10, 1), (1000, 20)])
def test_the_bounds_advised_are_seen(units, most):
    (found,) = bounds(units, 0.5, most=most)
    enough = float(found.rpartition("pay about ")[2])
    assert bounds(units, 1.05 * enough, most=most) == ()
    (unpriced,) = bounds(units, 0.5, most=most, priced=False)
    assert "epsilon" not in unpriced
    assert "pay" not in unpriced


def test_a_value_is_rare_from_a_two_hundredth_of_all_records_on():
    town = "{type: category, values: {learn: 0.1}, other: Other}"
    event = ApproximateEvent(epsilon=0.1, delta=math.exp(-9.95) / 2)  # found from 1 + 9.95 / 0.1 records on
    learned = (access(PureEvent(epsilon=0.1), path="units"), access(event, path="columns.town.values"))

    def told(units):
        schema = db.Schema.parse(f"doublure: 1\nkind: table\nunits: {units}\ncolumns:\n  town: {town}\n")
        return values_warnings(schema, learned)

    (found,) = told(20_000)
    assert "found only if some 101 records have it (0.5% of all)" in found
    assert told(20_200) == ()
