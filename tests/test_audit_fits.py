"""``benchmarks/robustness/audit_fits.py`` in short: its bounds are right, its readers read, its fits go on."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from programs import program

from doublure.methods.statistics.tables.plan import COLUMNS, PAIRS, SCORES
from doublure.private import whole_noise
from doublure.private.noise import OsKeyedNoise

NAMES = ("statistics", "dpgan", "latentgan, mixture", "latentgan, critic", "guided", "guided, images")
NUMBERS = {
    "statistics": (1, 7), "dpgan": (13, 18), "latentgan, mixture": (1, 12), "latentgan, critic": (7, 6),
    "guided": (27, 7), "guided, images": (6, 4),
}  # fmt: skip


@pytest.fixture(scope="module")
def audits():
    torch.set_num_threads(1)
    return program("audit_fits")


@pytest.fixture(scope="module")
def cases(audits, tmp_path_factory):
    return audits.cases(tmp_path_factory.mktemp("audits") / "public")


@pytest.fixture(scope="module")
def plan(audits, cases):
    return cases["statistics"].plan(audits.EPSILON, audits.DELTA)


def gaussian(mu, numbers=1, fits=3000):
    """Return numbers of fits with and without the canary, which moves the first one by μ."""
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(size=(2, fits, numbers))
    inside[:, 0] += mu
    return inside, outside


def test_the_claim_allows_its_own_gaussian_curve(audits, plan):
    assert audits.mu_of_area(audits.Allowed(plan).area) == pytest.approx(1 / plan.noise_multiplier, rel=0.03)


def test_what_is_as_loud_as_the_claim_is_shown_nearly_whole_and_not_accused(audits, plan):
    mu = 1 / plan.noise_multiplier
    found = audits.judged(*gaussian(mu), plan)
    assert 0.85 * mu < found["curve_mu"] <= mu
    assert 0.7 * audits.EPSILON < found["gaussian_epsilon"] <= audits.EPSILON
    assert 0.5 < found["epsilon_shown"] < found["gaussian_epsilon"]
    assert (found["fits"], found["judged"], found["accused"]) == (3000, 2400, False)


def test_half_of_the_noise_is_accused(audits, plan):
    found = audits.judged(*gaussian(2 / plan.noise_multiplier, fits=200), plan)
    assert found["accused"]
    assert found["gaussian_epsilon"] > audits.EPSILON
    assert found["curve_mu"] > found["allowed_mu"]


def test_a_rule_is_taught_on_other_fits_than_the_bounds_rest_on(audits, plan):
    """Of many numbers that are noise alone some always fit the fits that the rule was trained on."""
    found = audits.judged(*gaussian(0.0, numbers=60, fits=300), plan)
    assert found["curve_mu"] < 0.1
    assert found["gaussian_epsilon"] < 0.5


def test_a_rule_finds_the_number_that_tells_and_leaves_out_what_never_moves(audits):
    inside, outside = gaussian(1.0, numbers=3)
    inside[:, 2] = outside[:, 2] = 7.0
    rule = audits.direction(inside, outside)
    assert rule[0] > 10 * abs(rule[1])
    assert rule[2] == 0
    assert not audits.direction(inside[:, 2:], outside[:, 2:]).any()


def test_counts_make_the_likelihood_ratio(audits, plan):
    events = {access.purpose: access.event for access in plan.training}
    kept = {
        f"{purpose}_{number}": np.array([9, 0]) for purpose, event in events.items() for number in range(event.tables)
    }
    kept |= {
        f"{COLUMNS}_0": torch.tensor([5, 2]),
        f"{COLUMNS}_1": torch.tensor([0, 3]),
        f"{PAIRS}_0": torch.tensor([[1, 2], [3, 4]]),
        f"{SCORES}_0": torch.tensor([7, 7, 7]),
    }
    counts = program("audit_worlds").counts
    assert counts(plan, kept) == pytest.approx(5 / events[COLUMNS].scale ** 2 + 4 / events[PAIRS].scale ** 2)
    with pytest.raises(KeyError):  # what was not heard is not read as zero
        counts(plan, {name: table for name, table in kept.items() if name != f"{PAIRS}_1"})


def test_every_case_is_here(cases):
    assert tuple(cases) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_both_readers_read_every_method(audits, cases, name):
    case = cases[name]
    found = audits.one(case, case.plan(audits.EPSILON, audits.DELTA), canary=True)
    assert tuple(len(found[reader]) for reader in audits.READERS) == NUMBERS[name]
    assert all(map(math.isfinite, [*found["kept"], *found["generator"]]))


def test_without_noise_the_canary_is_one_count_in_each_table(audits, cases, plan, monkeypatch):
    monkeypatch.setattr(
        whole_noise, "gaussian", lambda exact, *, scale: whole_noise.ScaledNoise(np.asarray(exact), scale)
    )
    there, gone = (audits.one(cases["statistics"], plan, canary=canary)["kept"][0] for canary in (True, False))
    counted = [access.event for access in plan.training if access.purpose != SCORES]
    assert there - gone == pytest.approx(sum(event.tables / event.scale**2 for event in counted))


def test_fits_go_on_where_they_were(audits, cases, plan, tmp_path):
    fits = audits.Fits(tmp_path / "out" / "fits.jsonl")
    case, more = cases["statistics"], {"planted": False, "until": math.inf}
    fits.make("statistics", case, plan, 1, **more)
    first = fits.of("statistics", plan, planted=False)
    with fits.path.open("a") as file:
        file.write('{"case": "statistics", "cut sh\n')
    fits.make("statistics", case, plan, 2, **more)
    made = fits.of("statistics", plan, planted=False)
    assert made[:2] == first
    assert [line["canary"] for line in made] == [False, True, False, True]
    assert made[0]["kept"] != made[2]["kept"]  # the seed is the same, the noise is not
    assert fits.of("statistics", plan, planted=True) == []
    assert fits.of("statistics", case.plan(1.0, audits.DELTA), planted=False) == []
    fits.make("statistics", case, plan, 9, planted=False, until=0.0)
    assert len(fits.of("statistics", plan, planted=False)) == 4


def test_the_planted_fault_hides_from_the_mechanism(audits, cases, plan, tmp_path):
    fits = audits.Fits(tmp_path / "fits.jsonl")
    fits.make("statistics", cases["statistics"], plan, 1, planted=True, until=math.inf)
    assert [line["planted"] for line in fits.of("statistics", plan, planted=True)] == [True, True]
    with audits.half_the_noise():
        drawn = [whole_noise.gaussian(np.zeros(4000, dtype=np.int64), scale=10.0), OsKeyedNoise().normal(4000, 10.0),
                 OsKeyedNoise().whole(4000, 10.0, 1.0)]  # fmt: skip
    for each in drawn:
        assert each.scale == pytest.approx(10.0)
        assert np.std(each.values) == pytest.approx(5.0, rel=0.1)


def test_figures_are_kept_once(audits, monkeypatch, tmp_path):
    monkeypatch.setattr("results.MEASURED", tmp_path)
    monkeypatch.setattr(audits, "MEASURED", tmp_path)
    row = {"case": "statistics", "reader": "kept", "planted": False, "fits": 1000, "epsilon_shown": 1.0}
    audits.record([row, row | {"reader": "generator"}])
    audits.record([row | {"epsilon_shown": 2.0}])
    kept = [json.loads(line) for line in (tmp_path / "audit_fits.jsonl").read_text().splitlines()]
    assert [(each["reader"], each["epsilon_shown"]) for each in kept] == [("generator", 1.0), ("kept", 2.0)]
    assert kept[1]["command"] == 'python benchmarks/robustness/audit_fits.py --method "statistics" --fits 1000'
    assert {"seed", "date", "confidence"} <= kept[1].keys()
