"""What a plan says of its time: how it follows from the work, and not what a busy machine makes of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import doublure as db
from doublure.methods import registry as table
from doublure.planning import machine
from doublure.training.settings import Work

IMAGES = """
doublure: 1
kind: images
units: {units}
images: {{shape: [{side}, {side}, 1]}}
label: {{values: [a, b], roles: [target, condition]}}
"""
LITTLE = Work(flops=1e9, steps=10, memory_bytes=1)


def work(method, side=8, units=2000, **settings):
    schema = db.Schema.parse(IMAGES.format(side=side, units=units))
    claimed = {} if method == "gan" else {"epsilon": 5.0, "delta": 1e-5, "accountant": "rdp"}
    made = db.plan(schema, method=method, **claimed, **settings)
    return table.method(method).work(schema, made.settings)


@pytest.fixture
def steady(monkeypatch):
    monkeypatch.setattr(machine, "_flops_a_second", lambda: 1e10)


def test_time_is_that_of_the_work_and_of_every_step(steady):
    base = machine.estimate_seconds(replace(LITTLE, flops=0.0, steps=0))
    assert base > 0  # opening the data, and keeping what was learned
    assert machine.estimate_seconds(replace(LITTLE, flops=1e12, steps=0)) == pytest.approx(base + 100)
    noisy = machine.estimate_seconds(replace(LITTLE, flops=0.0, steps=5000))
    assert noisy > base + 5
    assert machine.estimate_seconds(replace(LITTLE, flops=0.0, steps=0, free_steps=5000)) == noisy


def test_how_fast_the_machine_is_does_not_ask_what_else_it_does(monkeypatch):
    """Only the thread's own clock counts: the clock on the wall runs a thousand times as fast here."""
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(machine.time, "perf_counter", lambda: float(next(ticks)))
    monkeypatch.setattr(machine.time, "monotonic", lambda: float(next(ticks)))
    assert machine._flops_a_second() > 1e8


@pytest.mark.parametrize("method", ["statistics", "guided"])
def test_steps_without_noise_take_time_too(method):
    short, long = (work(method, fit_steps=steps) for steps in (50, 500))
    assert (short.free_steps, long.free_steps) == (50, 500)
    assert short.steps == long.steps
    assert long.flops > short.flops


def test_a_labeller_draws_images_and_looks_at_them():
    without, few, many = (
        work("guided", fit_steps=10, **changes)
        for changes in ({"labeller_share": 0}, {"view_images": 1000}, {"view_images": 10_000})
    )
    assert without.flops < few.flops < many.flops
    wide = work("guided", fit_steps=10, view_images=10_000, hidden=2048)
    drawn = 2.0 * 9000 * 2048  # at least the generator's first layer, for each image that was not drawn before
    assert (
        wide.flops - work("guided", fit_steps=10, view_images=1000, hidden=2048).flops > many.flops - few.flops + drawn
    )


@pytest.mark.parametrize("method", ["statistics", "guided", "dpgan", "gan"])
def test_work_grows_with_records_and_sides(method):
    few = {"steps": 20} if method in ("dpgan", "gan") else {"fit_steps": 20}
    small = work(method, **few)
    assert work(method, side=16, **few).flops > 1.5 * small.flops
    more = {"lot_size": 512} if "steps" in few else {"batch": 4000}
    assert work(method, **few, **more).flops > 1.5 * small.flops


def test_random_features_cost_their_waves_too():
    small, large = (work("statistics", fit_steps=20, features=features) for features in (512, 4096))
    assert large.flops > small.flops + 2.0 * 20 * 400 * 1500 * 100


def test_the_words_say_whose_time_it_is(small):
    made = replace(small.plan, seconds_estimate=200.0)
    assert re.search(r"^A fit needs about [0-9.]+ GB, and 3 minutes of one core of this machine$", made.explain(), re.M)


def test_a_bought_list_says_how_many_records_a_value_needs():
    """The threshold that hides whoever alone has a value, from ε and δ; many units make it small."""
    text = """
    doublure: 1
    kind: table
    units: {units}
    columns:
      town: {{type: category, values: {{learn: 0.1}}, other: Other, missing: false}}
      age: {{type: integer, bounds: [0, 99], missing: false}}
    """
    few, many = (
        db.plan(
            db.Schema.parse(text.format(units=units)), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp"
        ).warnings
        for units in (20_000, 200_000)
    )
    assert [said for said in few if "columns.town.values: at epsilon 0.1" in said and "some 156 records" in said]
    assert not [said for said in many if "columns.town.values" in said]


@pytest.mark.parametrize(("columns", "units"), [(10, 5_000), (100, 5_000), (500, 20_000)])
def test_time_and_memory_of_tables_follow_their_width(steady, columns, units):
    """About what benchmarks/wide.py measured of such columns on a core of 2e10: 4, 27 and 112 to 160 seconds."""
    taken = {10: 4.0, 100: 27.0, 500: 135.0}[columns] * 1.95
    kinds = ("{type: integer, bounds: [0, 100], missing: false}",
             "{type: integer, bounds: [0, 1000000], missing: false}",
             "{type: category, values: [a, b, c, d, e, f, g], missing: false}",
             "{type: category, values: [a, b], missing: false}")  # fmt: skip
    lines = "".join(f"  c{number}: {kinds[number % 4]}\n" for number in range(columns))
    schema = db.Schema.parse(
        f"doublure: 1\nkind: table\nunits: {units}\ncolumns:\n{lines}".replace(
            "  c3: {type: category, values: [a, b], missing: false}",
            "  c3: {type: category, values: [a, b], missing: false, roles: [target]}",
        )
    )
    made = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp")
    assert taken / 2 < made.seconds_estimate < 2 * taken
    assert made.memory_bytes < 2e9
