"""Rules 1, 3, 4 and 16 for time series: what is cut out of readings is a unit's own, and bounded as its noise expects.

Record and replay through the whole fit, as the other rules do it: a neighbour has one meter more, and nothing that can
be seen changes when the noisy outputs are frozen. Mutants beside it.
"""

from __future__ import annotations

import sys
import traceback
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from doublure import planning as plans
from doublure.data.series import clock, lengths, open_series, rows, sources
from doublure.data.series.records import SeriesSet
from doublure.encode.series import SeriesEncoder
from doublure.encode.series_codes import SeriesCodes
from doublure.errors import DoublureError
from doublure.methods.dpgan.method import METHOD
from doublure.methods.dpgan.settings import SeriesDpganSettings
from doublure.methods.statistics.series import chains
from doublure.methods.statistics.series.step_counts import StepCounts
from doublure.planning.planner import learned_facts
from doublure.private import executed, mechanism, whole_noise
from doublure.run import running
from doublure.schema import Schema
from doublure.schema.series import SeriesSchema
from doublure.support.progress import SilentProgress
from doublure.training.checkpoints import KeptTables

METERS, DAYS, MOST = 12, 2, 3
PUBLIC = f"""
doublure: 1
kind: series
unit: {{name: meter, id: who, max_records: {MOST}}}
units: {METERS}
series: {{time: when, length: 4, step: 6h, timezone: Europe/Paris, gaps: missing, irregular: mean}}
channels: {{kw: {{type: real, bounds: [0, 10], precision: 1, missing: true}}}}
attributes:
  place: {{type: category, values: [hill, coast], other: Other, missing: false,
           shares: {{hill: 0.5, coast: 0.4, Other: 0.1}}}}
  weekend: {{type: boolean, missing: false, from_time: weekend}}
"""
BOUGHT = (
    PUBLIC.replace(f"units: {METERS}", f"units: {{learn: 1.0, magnitude: {METERS}}}")
    .replace(
        "bounds: [0, 10], precision: 1, missing: true", "bounds: {learn: 1.0}, precision: 1, missing: {learn: 1.0}"
    )
    .replace("shares: {hill: 0.5, coast: 0.4, Other: 0.1}", "shares: {learn: 1.0}")
)
FEW = {
    "steps": 4, "checkpoints": 2, "lot_size": 8, "generator_batch": 6, "noise_width": 4, "hidden": 6, "channels": [4],
    "critic_width": 8, "critic_depth": 1, "max_grad_norm": 0.1,
}  # fmt: skip
WINTER, SUMMER = "2024-03-29", "2024-03-30"  # the clock goes forward on the last day


def readings(meters=METERS, days=DAYS, first=WINTER):
    """Return readings of ordinary meters, each a few days, with a gap here and there."""
    draw = np.random.default_rng(8)
    frames = []
    for one in range(meters):
        values = draw.random(4 * days) * 9
        values[one % 5 :: 5] = np.nan
        frames.append(meter(values, first=first, place=["hill", "coast"][one % 2], who=f"m{one}"))
    return pd.concat(frames, ignore_index=True)


def meter(values, first=WINTER, place="hill", who="one more"):
    """Return one more meter's readings."""
    moments = pd.date_range(first, periods=len(values), freq="6h").strftime("%Y-%m-%dT%H:%M:%S")
    return pd.DataFrame({"who": who, "when": moments, "kw": values, "place": place})


ODD_METERS = {
    "extreme": meter([3.4e38, -1.7e308, 0.0, 5e-324]),
    "a single reading": meter([7.0]),
    "gaps": meter([1.0, np.nan, np.nan, 2.0, np.nan, 9.0]),
    "a new place": meter([5.0] * 4, place="the mine of Kiruna"),
    "more days than are used": meter([float(number % 9) for number in range(4 * (MOST + 4))]),
    "clock changes": meter([5.0] * 12, first=SUMMER),
    "another century": meter([5.0] * 8, first="1999-12-31"),
    "many in one step": pd.concat([meter([8.0])] * 50),
}


def with_meter(base, more, place=11):
    """Return the neighbour that has one meter more, its readings in the midst of the others'."""
    return pd.concat([base[:place], more, base[place:]], ignore_index=True)


class Stage:
    """Runs ``dpgan`` on series as ``fit`` does, in memory."""

    def __init__(self, lab):
        parts = sys.modules[type(lab).__module__]
        self.lab, self.Trace, self.Memory, self.Primitives = lab, parts.Trace, parts.Memory, parts.Primitives

    def train(self, frame, text=PUBLIC, *, like=None):
        """Load, learn, resolve, encode and train, and return what happened."""
        schema, own, trace = Schema.parse(text), SeriesDpganSettings(**FEW), self.Trace()
        memory = self.Memory(trace, own.steps)
        bought, training = learned_facts(schema, 0.01), METHOD.accesses(schema, own, 1.5)
        plan = SimpleNamespace(
            schema=schema, settings=own, method="dpgan", steps=own.steps, training=training,
            guarantee=SimpleNamespace(kind="dp", delta_mu=None),
            sample_rate=own.lot_size / schema.public_units,
            learned=bought, answered_facts=bought, answered=(*bought, *training),
        )  # fmt: skip
        days = frame.assign(day=frame["when"].str[:10])[frame["kw"].notna()].drop_duplicates(["who", "day"])
        run = running.FitRun(memory, plan, memory, 1)
        with self.lab._patch.context() as patch:
            self.Primitives(days, MOST, trace, like).install(patch)
            # Which of a unit's series are used is drawn by key too: here always the first.
            first = lambda codes, most: np.flatnonzero(pd.Series(codes).groupby(codes).cumcount() < most)  # noqa: E731
            patch.setattr(sources, "at_most", first)
            loaded = open_series(frame).load(schema, at_least=0)
            resolved = run._resolve(loaded, SilentProgress())
            generator = run._train(loaded, resolved, "cpu", SilentProgress())
        trace.public |= {"generator": generator.state_dict(), "resolved": resolved.to_yaml()}
        return trace


@pytest.fixture
def stage(lab):
    return Stage(lab)


def check_neighbours(stage, text=PUBLIC):
    """Nothing but the clipped sums and the answers differ, and the sums by no more than their noise is made for."""
    lab, base = stage.lab, readings()
    kept, worst = stage.train(base, text), 0.0
    for more in ODD_METERS.values():
        other = stage.train(with_meter(base, more), text, like=kept)
        lab.assert_same_public(kept, other)
        worst = max(worst, lab.assert_within_sensitivity(kept, other))
    other = stage.train(base[base["who"] != "m7"], text, like=kept)
    lab.assert_same_public(kept, other)
    lab.assert_within_sensitivity(kept, other)
    assert worst > 0.99  # a whole unit's worth: its series are clipped once, on their sum
    return kept


@pytest.mark.parametrize("text", [PUBLIC, BOUGHT], ids=["declared", "bought"])
def test_neighbours_differ_by_what_the_noise_is_made_for(stage, text):
    kept = check_neighbours(stage, text)
    assert kept.allowed == pytest.approx([FEW["max_grad_norm"]] * FEW["steps"])


CODED = "number.coded(series.held(planes.channel).reshape(-1))"
MUTANTS = {
    "units that are not bounded": None,
    "a scale read off the data": (
        SeriesEncoder,
        "compact",
        (CODED, CODED.replace("channel).reshape(-1)", "channel).reshape(-1) - np.nanmean(series.values)")),
    ),
    "gaps filled with everybody's mean": (
        rows.Readings,
        "block",
        ("return values", "return np.where(np.isnan(values), np.nanmean(self._values), values)"),
    ),
    "clock changes by what the data shows": (
        clock,
        "changes_in",
        ("skipped=skipped[place, :-1]", "skipped=skipped[place, :-1] | (len(distinct) > 2)"),
    ),
}


LENGTHS = PUBLIC + "  steps: {type: integer, bounds: [1, 4], missing: false, from_length: true}\n"
ENDS = "return last"


def test_neighbours_of_different_lengths_differ_by_what_the_noise_is_made_for(stage):
    check_neighbours(stage, LENGTHS)


def test_an_end_that_all_series_share_is_caught(stage):
    stage.lab.plant(
        lengths, "ends_of", (ENDS, "return np.full_like(last, 1 + last.sum() % values.shape[1]) if len(last) else last")
    )
    with stage.lab.caught():
        check_neighbours(stage, LENGTHS)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(stage, mutant, monkeypatch):
    if MUTANTS[mutant] is None:
        # The stage draws by key instead of at random: there, the bound is left out.
        monkeypatch.setattr(Stage, "train", _unbounded(Stage.train))
    else:
        owner, name, *edits = MUTANTS[mutant]
        stage.lab.plant(owner, name, *edits)
    with stage.lab.caught():
        check_neighbours(stage)


def _unbounded(train):
    def run(self, frame, text=PUBLIC, **more):
        return train(self, frame, text.replace(f"max_records: {MOST}", "max_records: 99"), **more)

    return run


def check_each_unit_is_bounded():
    """The production draw itself: at most so many series of each unit, whatever it has."""
    codes = np.repeat(np.arange(5), [1, 2, 3, 9, 40])
    for _ in range(20):
        chosen = sources.at_most(codes, MOST)
        assert np.bincount(codes[chosen], minlength=5).tolist() == [1, 2, 3, 3, 3]
        assert len(set(chosen.tolist())) == len(chosen)
        assert (np.diff(chosen) > 0).all()


def test_each_unit_is_bounded(lab):
    check_each_unit_is_bounded()
    lab.plant(sources, "at_most", ("rank < max_records", "rank <= max_records"))
    with lab.caught():
        check_each_unit_is_bounded()


# -- statistics by chains: tables of neighbours -----------------------------------------------------------------------

COUNTED_FEW = {"model": "chains", "fit_steps": 3, "groups": 3, "levels": 2, "bins": 8}
COUNTED_METERS = ODD_METERS | {
    "the same every day": meter([5.0] * 12, first="2024-03-25"),
    "nothing but gaps, and one zero": meter([np.nan] * 7 + [0.0]),
}


@cache
def counting_plan(text):
    """Return the plan that every run of a schema has in common."""
    priced = {"epsilon": 5.0, "delta": 1e-3, "accountant": "rdp"}
    return plans.plan(Schema.parse(text), method="statistics", **priced, **COUNTED_FEW)


@pytest.fixture
def counts(lab, monkeypatch):
    """Run ``statistics`` on readings as ``fit`` does; of each unit the first series are used, not a draw of them."""
    first = lambda codes, most: np.flatnonzero(pd.Series(codes).groupby(codes).cumcount() < most)  # noqa: E731
    monkeypatch.setattr(sources, "at_most", first)

    def run(frame, text=PUBLIC, *, like=None):
        return lab.counted(open_series(frame), counting_plan(text), like=like)

    return run


def check_tables_of_neighbours(lab, counts, text=PUBLIC):
    """Nothing but the tables differs, and all of them together by what is paid for: reached, and never passed."""
    base = readings()
    kept, worst = counts(base, text), 0.0
    paid = 1 / kept.public["noise_multiplier"]
    for other in (*(with_meter(base, more) for more in COUNTED_METERS.values()), base[base["who"] != "m7"]):
        trace = counts(other, text, like=kept)
        lab.assert_same_public(kept, trace)
        price = lab.price(kept, trace)
        assert 0 < price <= paid * (1 + 1e-9)
        worst = max(worst, price)
    assert worst == pytest.approx(paid, rel=1e-9)  # as many series as are used, alike in everything that is counted
    one_series = counts(with_meter(base, COUNTED_METERS["a single reading"]), text, like=kept)
    assert lab.price(kept, one_series) == pytest.approx(paid / MOST, rel=1e-9)


@pytest.mark.parametrize("text", [PUBLIC, BOUGHT], ids=["declared", "bought"])
def test_tables_of_neighbours_differ_by_what_is_paid_for(lab, counts, text):
    check_tables_of_neighbours(lab, counts, text)


BOUND = (mechanism, "_refuse_dearer", ("not stated.l2 <= priced.l2 * (1 + _ROUNDING)", "False"))
NOTED = (executed, "_covers", ("ran.records == priced.records", "True"))
SHARES = ("(SINGLE_SHARE, 1 - SINGLE_SHARE)", "(1.0, 1.0)")
FLOORED = "np.minimum(np.floor(means * LEVELS), LEVELS - 1)"
RELEASED = "counts.split(job.mechanism.release(counts, access, job.everyone))"
BARE = "counts.split(counts.answer(job.records, sample_rate=1.0).total)"
COUNTING_MUTANTS = {
    "a scale read off the data": [
        (SeriesCodes, "compact", ("values.reshape", "(values - np.nanmean(values)).reshape"))
    ],
    "levels by the data's quantiles": [
        (SeriesCodes, "_level", (FLOORED, "np.floor(np.argsort(np.argsort(means)) / len(means) * LEVELS)"))
    ],
    "levels beside the data's mean": [
        (SeriesCodes, "_level", ("np.where(known, places, 0)",
                                 "np.where(known, places * 0.5 / places[known].mean(), 0)"))
    ],
    "priced as one series a unit": [
        (chains, "accesses", ("records=schema.most_records", "records=1")), BOUND, NOTED
    ],
    "both releases at the price of one": [(chains, "accesses", SHARES)],
    "groups that follow from exact counts": [
        (KeptTables, "released", (RELEASED, f"({RELEASED}, {BARE})[1]"))
    ],
    "as many series as there are": [
        (StepCounts, "__init__", ("self._rows()", "float(sum(len(chunk) for chunk in job.records.chunks(99)))"))
    ],
}  # fmt: skip


@pytest.mark.parametrize("mutant", COUNTING_MUTANTS)
def test_a_mutant_that_counts_is_caught(lab, counts, mutant):
    for owner, name, edit in COUNTING_MUTANTS[mutant]:
        lab.plant(owner, name, edit)
    counting_plan.cache_clear()  # the plan is made with the mutant, as a user's would be
    try:
        with lab.caught():
            check_tables_of_neighbours(lab, counts)
    finally:
        counting_plan.cache_clear()


# -- what is bought ----------------------------------------------------------------------------------------------------


def check_counts_fit_their_noise(stage, patch):
    """One meter of as many series as are used moves what is noised by no more than the noise was made for."""
    asked = []
    noisy = whole_noise.laplace

    def recorded(counts, *, epsilon, moved):
        asked.append((np.asarray(counts, dtype=float), moved))
        return noisy(counts, epsilon=epsilon, moved=moved)

    patch.setattr(whole_noise, "laplace", recorded)
    base, reached = readings(), set()
    stage.train(base, BOUGHT)
    kept = list(asked)
    full = meter([float(number % 7) for number in range(4 * MOST)])
    gaps = meter([np.nan if number % 4 == 0 else 3.0 for number in range(4 * MOST)])
    for more in (*ODD_METERS.values(), full, gaps):
        asked.clear()
        stage.train(with_meter(base, more), BOUGHT)
        assert len(asked) == len(kept) == 4
        for number, ((counts, most), (others, _)) in enumerate(zip(asked, kept, strict=True)):
            moved = np.abs(counts - others).sum()
            assert moved <= most
            if moved == most:
                reached.add(number)
    # units, gaps, bounds, shares: each bound is reached, so that a smaller one would not do
    assert reached == {0, 1, 2, 3}
    assert [most for _, most in kept] == [1, MOST, 2 * MOST, MOST]


def test_counts_fit_their_noise(stage, monkeypatch):
    check_counts_fit_their_noise(stage, monkeypatch)


TWO = "return pd.Series(np.where(np.tile(known.any(axis=1), 2), np.concatenate([lowest, highest]), np.nan))"
ONE = "return pd.Series(np.where(np.isnan(values).any(axis=1), np.nan, 0.0))"
COUNTED = {
    "bounds counted as one cell a series": (SeriesSchema, "cells_of", ("2", "1")),
    "a cell a step": (SeriesSet, "cells", (TWO, "return pd.Series(values.reshape(-1))")),
    "a gap a step": (SeriesSet, "cells", (ONE, "return pd.Series(values.reshape(-1))")),
}


@pytest.mark.parametrize("mutant", COUNTED)
def test_counts_that_do_not_fit_are_caught(stage, monkeypatch, mutant):
    owner, name, *edits = COUNTED[mutant]
    stage.lab.plant(owner, name, *edits)
    with stage.lab.caught():
        check_counts_fit_their_noise(stage, monkeypatch)


# -- what is said ------------------------------------------------------------------------------------------------------

TEXT, NUMBER = "Qv9Sentinel", 918273.5546
SECRETS = (TEXT, "918273", "5546", "1937", "03-21")


def secrets():
    """Yield readings with something private in the wrong place."""
    base = readings(meters=3)
    for column, bad in (
        ("kw", TEXT), ("kw", np.inf), ("kw", f"{NUMBER},1"), ("when", TEXT), ("when", "1937-03-21T25:00"),
        ("when", NUMBER), ("when", None), ("place", [TEXT]), ("place", None), ("who", None),
    ):  # fmt: skip
        frame = base.astype(object)
        frame.at[4, column] = bad
        yield frame, PUBLIC
    for column, bad in (("when", "1937-03-21T05:46"), ("place", "coast"), ("kw", None)):
        frame = base.astype(object)
        frame.at[4, column] = bad
        yield frame, PUBLIC.replace("irregular: mean", "irregular: refuse").replace("gaps: missing", "gaps: refuse")
    yield pd.concat([base, base]), PUBLIC.replace("irregular: mean", "irregular: refuse")


def refusal(frame, text):
    """Return the refusal of readings, None if they are taken."""
    try:
        open_series(frame).load(Schema.parse(text))
    except DoublureError as error:
        return error
    return None


def check_errors_tell_nothing():
    refused = [error for error in (refusal(frame, text) for frame, text in secrets()) if error is not None]
    for error in refused:
        shown = "".join(traceback.format_exception(error))
        lines = [line for line in shown.splitlines() if not line.startswith(("  ", "Traceback"))]
        assert not any(secret in "\n".join([str(error), *lines]) for secret in SECRETS)
        assert error.field
        assert error.remedy
    assert len(refused) >= 13


def test_errors_tell_nothing():
    check_errors_tell_nothing()


def test_a_message_that_shows_a_value_is_caught(lab):
    lab.plant(
        rows._Timed,
        "cut",
        ("'has moments that stand beside the steps'", "f'{frame[time].min()} stands beside the steps'"),
    )
    with lab.caught():
        check_errors_tell_nothing()
