"""``statistics`` on time series by chains: plans, releases, and that synthetic series resemble real ones."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from paying import written
from series_fits import fit_series

import doublure as db
from doublure.encode.series_codes import LEVELS, SeriesCodes
from doublure.errors import InputError, RunFolderError, SettingError
from doublure.methods.statistics.method import METHOD
from doublure.methods.statistics.series import transition_tables as step_tables
from doublure.methods.statistics.settings import SINGLE_SHARE, SeriesStatisticsSettings
from doublure.planning import Plan
from doublure.private.accounting import epsilon_of
from doublure.private.mechanism import Mechanism
from doublure.private.queries.counts import Axis, Counts
from doublure.private.records import PrivateRecords
from doublure.schema import ResolvedSchema

SERIES, LENGTH = 4000, 6
HEAD = f"doublure: 1\nkind: series\nunits: {SERIES}\nseries: {{length: {LENGTH}, gaps: missing}}\n"
WATER = "  litres: {type: real, bounds: [0, 100], precision: 1, zero_inflated: true, missing: true}\n"
PLAIN = "  kw: {type: real, bounds: [-5, 5], precision: 2, missing: false}\n"
BOTH = (
    "attributes:\n  weekend: {type: boolean, missing: false, shares: {true: 0.3, false: 0.7}}\n"
    "  place: {type: category, values: [hill, coast], missing: false, shares: {hill: 0.5, coast: 0.5}}\n"
)
WEEKEND = BOTH.rpartition("  place")[0]
WHOLE = HEAD + "channels:\n" + WATER + PLAIN + BOTH
FEW: dict[str, Any] = {"model": "chains", "fit_steps": 120, "groups": 8, "levels": 4, "bins": 40}
EPSILON, DELTA = 10.0, 1e-5


def days(n: int = SERIES, seed: int = 0) -> dict[str, Any]:
    """Return days on which water runs in the morning, at weekends later, and power goes with it."""
    draw = np.random.default_rng(seed)
    weekend, coast = draw.random(n) < 0.3, draw.random(n) < 0.5
    size = np.exp(draw.normal(0, 0.6, n))  # a household's own
    peak = np.where(weekend, 3, 1)
    shape = np.exp(-0.5 * (np.arange(LENGTH) - peak[:, None]) ** 2)
    litres = np.clip(20 * size[:, None] * shape * draw.gamma(4, 0.25, (n, LENGTH)), 0.1, 100)
    dry = draw.random(n) < 0.2
    litres[dry, 4:] = 0
    litres[draw.random(n) < 0.1, 0] = np.nan
    course = np.cumsum(draw.normal(0, 0.5, (n, LENGTH)), axis=1)
    kw = np.clip(np.log(size)[:, None] * 2 + course + coast[:, None], -5, 5)
    return {
        "litres": np.round(litres, 1),
        "kw": np.round(kw, 2),
        "weekend": weekend,
        "place": np.where(coast, "coast", "hill"),
    }


def planned(text: str = WHOLE, **changes: Any) -> Plan:
    asked = {"epsilon": EPSILON, "delta": DELTA, "accountant": "rdp"} | FEW | changes
    return db.plan(db.Schema.parse(text), method="statistics", **asked)


def fitted(folder: Any, text: str = WHOLE, data: dict[str, Any] | None = None, **changes: Any) -> db.Synthesizer:
    return fit_series(folder, data or days(), planned(text, **changes), text)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def made(whole):
    return whole.sample(SERIES, seed=2)


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_each_attribute_has_its_own_profile(made):
    real, litres = days(), made.channel("litres")
    weekend = made.attributes["weekend"].to_numpy(dtype=bool)
    assert weekend.mean() == pytest.approx(0.3, abs=0.03)
    for value in (True, False):
        wanted = np.nanmean(real["litres"][real["weekend"] == value], axis=0)
        found = np.nanmean(litres[weekend == value], axis=0)
        assert np.corrcoef(wanted, found)[0, 1] > 0.97
        assert found.argmax() == (3 if value else 1)
    coast = made.attributes["place"].to_numpy() == "coast"
    assert made.channel("kw")[coast].mean() - made.channel("kw")[~coast].mean() == pytest.approx(1, abs=0.35)


def test_steps_go_on_from_one_another(made):
    real, found = days()["kw"], made.channel("kw")
    for step in range(LENGTH - 1):
        assert np.corrcoef(real[:, step], real[:, step + 1])[0, 1] > 0.93
        assert np.corrcoef(found[:, step], found[:, step + 1])[0, 1] > (0.75 if step else 0.5)


def test_channels_go_together_by_their_levels(made):
    """They do so less than real ones: what a channel does from step to step knows nothing of the other's steps."""
    real = days()
    wanted = np.corrcoef(np.nanmean(real["litres"], axis=1), real["kw"].mean(axis=1))[0, 1]
    found = np.corrcoef(np.nanmean(made.channel("litres"), axis=1), made.channel("kw").mean(axis=1))[0, 1]
    assert wanted > 0.6
    assert found > 0.2


def test_zeros_and_gaps_are_where_they_were(made):
    litres = made.channel("litres")
    assert np.isnan(litres[:, 0]).mean() == pytest.approx(0.1, abs=0.03)
    assert np.isnan(litres[:, 1:]).mean() < 0.01
    assert (litres[:, 5] == 0).mean() == pytest.approx(0.2, abs=0.04)
    dry = litres[:, 4] == 0
    assert (litres[dry, 5] == 0).mean() > 0.8  # for the rest of the day
    assert not np.isnan(made.channel("kw")).any()


def test_values_are_of_the_schema(made):
    litres = made.channel("litres")[~np.isnan(made.channel("litres"))]
    assert litres.min() >= 0
    assert litres.max() <= 100
    assert np.array_equal(litres, np.round(litres, 1))
    assert np.abs(made.channel("kw")).max() <= 5


def test_it_is_saved_loaded_and_released(whole, tmp_path):
    whole.save(tmp_path / "run")
    again = db.load(tmp_path / "run")
    one, two = whole.sample(50, seed=8), again.sample(50, given={"weekend": True}, seed=8)
    assert np.array_equal(one.values, again.sample(50, seed=8).values, equal_nan=True)
    assert two.attributes["weekend"].all()
    db.release(again, tmp_path / "bundle", n=60, seed=1)
    card = json.loads((tmp_path / "bundle/card.json").read_text())
    assert (card["method"], card["guarantee"]["kind"]) == ("statistics", "dp")
    assert card["guarantee"]["noise_source"] == "exact discrete Gaussian"
    assert [touch["event"]["type"] for touch in card["touches"]] == ["discrete-gaussian"] * 2


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "channels:\n" + PLAIN,
        HEAD + "channels:\n" + WATER + PLAIN,
        HEAD + "channels:\n" + WATER + WEEKEND,
        HEAD + "channels:\n" + PLAIN + BOTH.replace("shares: {true: 0.3, false: 0.7}", "shares: {learn: 0.5}"),
    ],
    ids=["one channel", "two channels", "one attribute", "shares bought"],
)
def test_other_shapes(tmp_path, text):
    syn = fitted(tmp_path, text, fit_steps=30, levels=1 if "place" in text else 3)
    found, real = syn.sample(300, seed=1), days()
    for name in found.channels:
        assert abs(np.nanmedian(found.channel(name)) - np.nanmedian(real[name])) < 0.2 * np.nanstd(real[name])
    assert set(found.attributes.columns) == set(syn.schema.attributes)


def test_few_series_and_much_noise_still_make_series(tmp_path):
    data = {name: cells[:40] for name, cells in days().items()}
    text = WHOLE.replace(f"units: {SERIES}", "units: 40")
    syn = fitted(tmp_path, text, data, epsilon=0.5, delta=1e-3)
    assert any("few" in warning for warning in syn.plan.warnings)
    found = syn.sample(200, seed=1)
    assert found.values.shape == (200, LENGTH, 2)


def test_all_series_the_same(tmp_path):
    data = days(1000) | {"litres": np.full((1000, LENGTH), 7.0), "kw": np.tile(np.arange(LENGTH) - 2.0, (1000, 1))}
    found = fitted(tmp_path, WHOLE.replace(f"units: {SERIES}", "units: 1000"), data).sample(300, seed=1)
    assert np.abs(np.nanmedian(found.channel("litres"), axis=0) - 7).max() < 3
    assert np.abs(np.median(found.channel("kw"), axis=0) - np.arange(LENGTH) + 2).max() < 0.5


def test_groups_are_all_combinations_or_a_sample_that_keeps_each_share():
    draw = np.random.default_rng(0)
    for sizes in ([], [3], [2, 4], [40, 9], [300, 2, 2]):
        shares = [own / own.sum() for own in (draw.random(size) + 0.01 for size in sizes)]
        values, weights = step_tables.value_groups(shares)
        assert len(values) == (math.prod(sizes) if math.prod(sizes) <= 128 else max(128, *sizes))
        assert weights.sum() == pytest.approx(1)
        assert (values.sum(1) == len(sizes)).all()
        found = (values * weights[:, None]).sum(0)
        assert np.abs(found.numpy() - np.concatenate([np.zeros(0), *shares])).max(initial=0) < 1e-3


# -- plans -------------------------------------------------------------------------------------------------------------


def test_what_is_planned_is_what_is_priced():
    """The noise of both releases is together that of one Gaussian of the plan's multiplier."""
    for records in (1, 3):
        unit = f"unit: {{name: meter, id: unit, max_records: {records}}}\n"
        schema = db.Schema.parse(WHOLE.replace("units:", unit + "units:"))
        own = METHOD.resolve_defaults(schema, SeriesStatisticsSettings(model="chains"))
        events = [access.event for access in METHOD.accesses(schema, own, 7.0)]
        assert [event.records for event in events] == [records] * 2
        assert [event.tables for event in events] == [2 * 7, 2 * (5 + 2 * 7) + 1]
        costs = [event.tables * (records / event.scale) ** 2 for event in events]
        assert sum(costs) == pytest.approx(1 / 7.0**2)
        assert costs[0] / sum(costs) == pytest.approx(SINGLE_SHARE)


@pytest.mark.parametrize("text", [WHOLE, HEAD + "channels:\n" + PLAIN, HEAD + "channels:\n" + WATER + WEEKEND])
def test_what_is_released_is_what_was_planned(tmp_path, monkeypatch, text):
    made, released = [], Mechanism.release

    def watched(mechanism, query, access, records, **more):
        found = released(mechanism, query, access, records)
        made.append((access.event, len(query.tables)))
        return found

    monkeypatch.setattr(Mechanism, "release", watched)
    syn = fitted(tmp_path, text, fit_steps=2)
    assert [event for event, _ in made] == [access.event for access in syn.plan.touches if access.path is None]
    assert [size for _, size in made] == [event.tables for event, _ in made]
    assert [each["event"] for each in syn.executed if each["drawn"]] == [written(event) for event, _ in made]
    assert syn.plan.steps == len(made)


def test_a_plan_is_written_and_read_and_repriced(tmp_path):
    plan = planned(accountant="auto")
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    assert epsilon_of([access.event for access in plan.touches], DELTA) <= EPSILON
    written = json.loads((tmp_path / "plan.json").read_text())
    for touch, key, value in ((0, "scale", 1.0), (1, "scale", 1.0), (1, "tables", 3)):
        forged = json.loads(json.dumps(written))
        forged["touches"][touch]["event"][key] = value
        (tmp_path / "forged.json").write_text(json.dumps(forged))
        with pytest.raises(InputError):
            Plan.load(tmp_path / "forged.json")


def test_the_noise_of_a_series_is_not_chosen():
    assert planned().settings.noise_width == 2 * (1 + 2 * LENGTH)
    with pytest.raises(SettingError, match="noise_width"):
        planned(noise_width=3)


@pytest.mark.parametrize(("series", "length", "channels", "attributes", "seconds"), [
    (26_000, 48, 1, "weekday", 15), (725, 96, 7, "", 49), (725, 96, 7, "weekday", 240),
])  # fmt: skip
def test_the_estimated_work_is_what_it_was_measured_to_be(series, length, channels, attributes, seconds):
    """Within a factor of three, on a core that multiplies matrices at 3.1e10 operations a second in a plan's eyes."""
    text = HEAD.replace(str(SERIES), str(series)).replace(f"length: {LENGTH}", f"length: {length}") + "channels:\n"
    text += "".join(WATER.replace("litres", f"c{number}") for number in range(channels))
    if attributes:
        text += "attributes:\n  weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false}\n"
    work = METHOD.work(db.Schema.parse(text), SeriesStatisticsSettings(model="chains"))
    assert seconds / 3 < work.flops / 3.1e10 < 3 * seconds


# -- interrupted -------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """Stands for a process that is killed."""


def test_an_interrupted_run_draws_no_noise_twice(tmp_path, monkeypatch):
    """Killed while it learns; resumed, it restores both releases."""
    ledger = db.Ledger.create(tmp_path / "l", dataset="days", epsilon=5000.0, delta=0.5)
    plan, counted, fit_chain = planned(fit_steps=10), [], step_tables.fit_chain
    noised = Mechanism._noised

    def watched(mechanism, answer, access):
        counted.append(access.purpose)
        return noised(mechanism, answer, access)

    def killed(*_: Any, **__: Any) -> float:
        raise Refused

    monkeypatch.setattr(Mechanism, "_noised", watched)
    monkeypatch.setattr(step_tables, "fit_chain", killed)
    with pytest.raises(Refused):
        db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    assert len(counted) == 2
    monkeypatch.setattr(step_tables, "fit_chain", fit_chain)
    syn = db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1, resume=True)
    assert len(counted) == 2
    assert len(syn.sample(5)) == 5


def test_a_lost_release_is_not_drawn_again(tmp_path, monkeypatch):
    """Killed after paying and before the tables are kept."""
    ledger = db.Ledger.create(tmp_path / "l", dataset="days", epsilon=5000.0, delta=0.5)
    plan = planned(fit_steps=10)

    def killed(*_: Any, **__: Any) -> None:
        raise Refused

    with monkeypatch.context() as patch:
        patch.setattr("doublure.private.whole_noise.gaussian", killed)
        with pytest.raises(Refused):
            db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    with pytest.raises(RunFolderError, match="price covers one draw"):
        db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1, resume=True)


# -- sensitivity -------------------------------------------------------------------------------------------------------


def test_one_series_counts_in_one_cell_of_each_table():
    """Exact counts of neighbours: whatever the odd series holds, each table moves by one in one cell."""
    schema = ResolvedSchema.parse(WHOLE)
    codes = SeriesCodes(schema, bins=40, curve=1 / 3)
    odd = days(1, seed=5)
    odd["litres"] = np.array([[np.nan, 0.0, 100.0, 0.1, np.nan, 0.0]])
    base = [_compact(codes, days(50)), _compact(codes, {k: np.concatenate([days(50)[k], odd[k]]) for k in odd})]
    tables = []
    for compact in base:
        records = PrivateRecords(compact, np.arange(len(compact)), len(compact), lambda rows: (rows, None))
        query = Counts(tables=[(Axis.of_codes(part, size),) for part, size in _parts(codes)], max_records=1)
        tables.append(query.split(query.answer(records, sample_rate=1.0).total))
    for one, other in zip(*tables, strict=True):
        assert np.abs(other - one).sum() == 1


def _compact(codes: SeriesCodes, data: dict[str, Any]) -> Any:
    from doublure.data.series import Series

    values = np.stack([data["litres"], data["kw"]], axis=2).astype(np.float64)
    weekend = pd.Categorical([str(bool(one)).lower() for one in data["weekend"]], categories=["false", "true"])
    place = pd.Categorical(data["place"], categories=["hill", "coast"])
    attributes = pd.DataFrame({"weekend": weekend, "place": place})
    return codes.compact(Series(values=values, channels=("litres", "kw"), attributes=attributes))


def _parts(codes: SeriesCodes) -> list[tuple[int, int]]:
    sizes = [size for size in codes.sizes for _ in range(LENGTH)] + [LEVELS] * len(codes.sizes)
    return list(enumerate([*sizes, *codes.condition_sizes.values()]))


def test_attributes_without_shares_are_as_frequent_as_the_counts_say(tmp_path):
    free = WHOLE.replace(", shares: {true: 0.3, false: 0.7}", "").replace(", shares: {hill: 0.5, coast: 0.5}", "")
    syn = fitted(tmp_path, free, fit_steps=5)
    assert syn.notes == ()
    found = syn.sample(2000, seed=1).attributes
    assert found["weekend"].mean() == pytest.approx(days()["weekend"].mean(), abs=0.04)
    assert (found["place"] == "coast").mean() == pytest.approx(0.5, abs=0.04)
    assert set(syn.sample(40, given={"place": ["coast"]}).attributes["place"]) == {"coast"}
    half = syn.sample(100, given={"weekend": {True: 0.5, False: 0.5}}, seed=1).attributes
    assert half["weekend"].sum() == 50
    syn.save(tmp_path / "run")
    again = db.load(tmp_path / "run").sample(300, seed=4).attributes
    pd.testing.assert_frame_equal(again, syn.sample(300, seed=4).attributes)
