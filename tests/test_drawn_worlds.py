"""Whatever a schema, its units and ε make a plan choose: it can be rehearsed, fitted, sampled, kept and read again.

Schemas are drawn (``drawn_worlds``), and plans are made with defaults, so that combinations are met which nobody
thought of. Settings are given for time alone.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import drawn_worlds
import pytest
import tiers
from drawn_worlds import World
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import doublure as db
from doublure.run.rehearsal import rehearse
from doublure.training import classifier_settings

QUICK_IMAGES: dict[str, dict[str, Any]] = {
    "statistics": {"fit_steps": 2, "features": 64, "batch": 8},
    "guided": {"fit_steps": 2, "features": 64, "batch": 8, "view_images": 100, "labeller_steps": 2, "view_width": 20},
}
DPGAN: dict[str, Any] = {"steps": 2, "lot_size": 20, "generator_batch": 8, "noise_width": 4, "checkpoints": 1}


@pytest.fixture(autouse=True, scope="module")
def few_compared():
    """Judge a labeller by few images: as many as public units are declared take longer than all else of a fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier_settings, "MOST_COMPARED", 200)
        yield


def searched(usual: int, whole: int) -> settings:
    """Return settings of a search that is the same in each run, unless all is tested; a handful of examples of it."""
    number = 3 if tiers.QUICK else tiers.by_tier(usual, whole)
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(
        max_examples=number, deadline=None, derandomize=not tiers.ALL, suppress_health_check=checks,
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if tiers.ALL else [])],
    )  # fmt: skip


def planned(world: World) -> db.Plan:
    """Return the plan of a world."""
    schema, method = world.schema, world.method
    asked = {"epsilon": world.epsilon, "delta": world.delta, "accountant": "rdp"}
    if schema.kind != "images" or method != "auto":
        return db.plan(schema, method=method, **asked, **world.settings)
    chosen = db.plan(schema, **asked).method
    return db.plan(schema, method=chosen, **asked, **QUICK_IMAGES[chosen])


def goes_through(world: World) -> None:
    """Plan, fit, sample, keep, read and sample again."""
    plan = planned(world)
    with TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="drawn", epsilon=100.0, delta=0.5)
        syn = db.fit(world.data, plan, ledger=ledger, seed=1, progress=False)
        some = syn.sample(5, seed=1)
        assert drawn_worlds.beside(syn.schema, some) == []
        assert len(some[syn.schema.root] if syn.schema.kind == "relational" else some) == 5
        syn.save(Path(folder) / "run")
        again = db.load(Path(folder) / "run").sample(5, seed=1)
        assert drawn_worlds.beside(syn.schema, again) == []
        assert ledger.spent.epsilon == pytest.approx(world.epsilon)


@searched(5, 400)
@given(drawn_worlds.tables())
def test_every_table_goes_through(world):
    goes_through(world)


@searched(4, 400)
@given(drawn_worlds.related())
def test_all_related_tables_go_through(world):
    goes_through(world)


@searched(3, 400)
@given(drawn_worlds.visits())
def test_all_visits_go_through(world):
    goes_through(world)


@searched(3, 400)
@given(drawn_worlds.series())
def test_every_set_of_series_goes_through(world):
    goes_through(world)


@searched(3, 200)
@given(drawn_worlds.images())
def test_every_set_of_images_goes_through(world):
    goes_through(world)


@searched(3, 200)
@given(st.one_of(drawn_worlds.tables(), drawn_worlds.series(), drawn_worlds.images()))
def test_a_critic_goes_through(world):
    goes_through(World(world.facts, world.data, world.epsilon, DPGAN, "dpgan"))


@searched(12, 1000)
@given(st.one_of(drawn_worlds.tables(), drawn_worlds.related(), drawn_worlds.series()))
def test_every_plan_can_be_rehearsed(world):
    """Made in a fraction of a second, of all that the defaults choose, in numbers that no fit would let be made."""
    rehearse(db.plan(world.schema, epsilon=world.epsilon, delta=world.delta, accountant="rdp"))
