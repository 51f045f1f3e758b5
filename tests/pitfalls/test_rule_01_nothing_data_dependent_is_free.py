"""Rule 1: bounds, categories, class shares, counts and missingness are declared or bought (rows 1 and 2)."""

from __future__ import annotations

import numpy as np
import pytest

from doublure import planning as plans
from doublure.errors import NotAsPriced, SchemaError
from doublure.methods.statistics.tables import fitting as table_fitting
from doublure.methods.statistics.tables import noisy_tables
from doublure.private import accounting, whole_noise
from doublure.private.mechanism import Mechanism
from doublure.private.queries import counts, facts
from doublure.run import running
from doublure.schema import Schema
from doublure.training.checkpoints import KeptTables

DPGAN = {"method": "dpgan", "epsilon": 3.0, "delta": 1e-3}


def check_encoder_is_public(lab, schema):
    base = lab.people()
    kept = lab.train(base, schema)
    for record in lab.ODD_RECORDS.values():
        found = lab.train(lab.with_unit(base, record), schema, like=kept)
        assert found.public["resolved"] == kept.public["resolved"]
        one, other = (lab.encoder(trace.public["resolved"]) for trace in (kept, found))
        assert repr((one.columns, one.blocks, one._encodings)) == repr((other.columns, other.blocks, other._encodings))
        assert found.queries[0].shape == kept.queries[0].shape


@pytest.mark.parametrize("schema", ["PUBLIC", "BOUGHT"])
def test_no_record_changes_schema_or_encoder(lab, schema):
    check_encoder_is_public(lab, getattr(lab, schema))


OWN = {
    "bounds": ("pay", "{'bounds': (0.0, float(loaded.frame['pay'].max()))}"),
    "missingness": ("age", "{'missing': bool(loaded.frame['age'].isna().any())}"),
    "categories": ("job", "{'values': tuple(f'{n}' for n in range(len(loaded.frame)))}"),
}


@pytest.mark.parametrize("mutant", OWN)
def test_a_fact_taken_from_the_data_is_caught(lab, mutant):
    name, update = OWN[mutant]
    resolved = "resolved = schema.resolve(learned)"
    columns = f"{{**resolved.columns, '{name}': resolved.columns['{name}'].model_copy(update={update})}}"
    taken = f"{resolved}\n    resolved = resolved.model_copy(update={{'columns': {columns}}})"
    lab.plant(running.FitRun, "_resolve", (resolved, taken))
    with lab.caught():
        check_encoder_is_public(lab, lab.PUBLIC)


class Bought:
    """What each bought fact hands to its noise."""

    def __init__(self, patch):
        self.asked = []
        noisy, threshold = whole_noise.laplace, whole_noise.thresholded

        def recorded(counts, *, epsilon, moved):
            self.asked.append((np.asarray(counts), epsilon, moved))
            return noisy(counts, epsilon=epsilon, moved=moved)

        def thresholded(counts, *, epsilon, delta, moved):
            self.asked.append((np.sort(list(counts.values()))[::-1], epsilon, moved))
            return threshold(counts, epsilon=epsilon, delta=delta, moved=moved)

        patch.setattr(whole_noise, "laplace", recorded)
        patch.setattr(whole_noise, "thresholded", thresholded)


def check_counts_fit_their_noise(lab, patch):
    """One unit of three records moves what is noised by no more than the noise was made for, at the plan's price."""
    schema = lab.BOUGHT.replace("units: {", "unit: {name: person, id: who, max_records: 3}\nunits: {").replace(
        "columns:", "columns:\n  who: {type: id}"
    )
    base = lab.people(records=2)
    moved = []
    with patch.context() as inner:
        bought = Bought(inner)
        kept = lab.train(base, schema)
        lab.train(lab.with_unit(base, lab.ODD_RECORDS["missing"], records=5), schema, like=kept)
    half = len(bought.asked) // 2
    assert half == len(Schema.parse(schema).questions)
    assert [epsilon for _, epsilon, _ in bought.asked] == [1.0] * (2 * half)
    for (one, _, most), (other, _, _) in zip(bought.asked[:half], bought.asked[half:], strict=True):
        size = max(one.size, other.size)
        gap = np.abs(np.pad(one, (0, size - one.size)) - np.pad(other, (0, size - other.size))).sum()
        assert gap <= most
        moved.append(int(gap))
    assert max(moved) == 3


def test_what_is_bought_moves_by_no_more_than_its_noise_allows(lab, monkeypatch):
    check_counts_fit_their_noise(lab, monkeypatch)


LAPLACE = "whole_noise.laplace(total, epsilon=event.epsilon, moved=round(moved.l1))"
THRESHOLDED = "whole_noise.thresholded(total, epsilon=event.epsilon, delta=event.delta, moved=round(moved.l1))"
BOUGHT_TOO_CHEAPLY = {
    "records counted as units": (facts.Units, "counted", ("records.n_units", "len(records.frame)")),
    "one record assumed": (facts, "make_fact_query", ("most * schema.cells_of(name, question.fact)", "1")),
    "every record twice": (
        facts.Bounds,
        "counted",
        ("self.cells(records).dropna()", "pd.concat([self.cells(records)] * 2).dropna()"),
    ),
    "less noise than paid for": (Mechanism, "_noised", (LAPLACE, LAPLACE.replace("event.", "2 * event."))),
    "less noise on categories": (
        Mechanism,
        "_noised",
        (THRESHOLDED, THRESHOLDED.replace("=event.eps", "=2 * event.eps")),
    ),
    "a scale that is halved": (
        whole_noise,
        "_laplace",
        ("moved / epsilon", "0.5 * moved / epsilon"),
        ("_loss(make_laplace(*space, scale), moved) > epsilon", "False"),
    ),
}


@pytest.mark.parametrize("mutant", BOUGHT_TOO_CHEAPLY)
def test_a_fact_bought_too_cheaply_is_caught(lab, monkeypatch, mutant):
    owner, name, *edits = BOUGHT_TOO_CHEAPLY[mutant]
    lab.plant(owner, name, *edits)
    with pytest.raises((AssertionError, NotAsPriced)):
        check_counts_fit_their_noise(lab, monkeypatch)


OPEN = {
    "units": ("units: 24", "units: undeclared"),
    "columns.pay.bounds": ("bounds: [0, 1000], ", ""),
    "columns.age.missing": (", missing: true}", "}"),
    "columns.job.values": ("values: [cook, nurse], ", ""),
}


def check_plan_refuses(lab):
    for path, (old, new) in OPEN.items():
        text = lab.PUBLIC.replace(old, new)
        assert text != lab.PUBLIC
        error = lab.refusal(SchemaError, lambda text=text: plans.plan(Schema.parse(text), **DPGAN))
        assert error.field == path
        assert "learn" in error.remedy


def test_a_plan_refuses_what_nobody_has_decided(lab):
    check_plan_refuses(lab)


def test_a_plan_that_lets_it_pass_is_caught(lab, monkeypatch):
    monkeypatch.setattr(Schema, "undeclared", ())
    monkeypatch.setattr(accounting, "calibrate", lambda *arguments, **named: 1.0)
    with lab.caught():
        check_plan_refuses(lab)


def test_what_is_bought_is_among_the_accesses_and_in_the_price(plan):
    bought = [access.path for access in plan.learned]
    assert bought == [question.path for question in plan.schema.questions]
    assert len(bought) == 6
    assert all(access.epsilon == 1.0 for access in plan.learned)
    assert plan.touches[: len(bought)] == plan.learned


# -- tables ------------------------------------------------------------------------------------------------------------


def check_all_follows_from_released_tables(lab):
    """With the noisy tables frozen, groups, log, checkpoint and generator are the same for every neighbour."""
    base = lab.people()
    kept = lab.count(base)
    for frame in (*(lab.with_unit(base, record) for record in lab.ODD_RECORDS.values()), lab.without_unit(base, "p3")):
        lab.assert_same_public(kept, lab.count(frame, like=kept))


def test_all_follows_from_released_tables(lab):
    check_all_follows_from_released_tables(lab)


COUNTED = "Counts(tables=[(node.axis(node.own),)], max_records=1)"
EXACT = f"{COUNTED}.answer(self._tables._job.records, sample_rate=1.0).total.astype(np.float64)"
RELEASED = "counts.split(job.mechanism.release(counts, access, job.everyone))"
BARE = "counts.split(counts.answer(job.records, sample_rate=1.0).total)"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (noisy_tables.NoisyTables, "_count_columns",
         ("(noisy.counts, noisy.variance, noisy.each)", f"({EXACT}, noisy.variance, noisy.each)")),
        (KeptTables, "released", (RELEASED, f"({RELEASED}, {BARE})[1]")),
        (noisy_tables.NoisyTables, "_count_columns", ("max(1.0, float((weights * totals).sum() / weights.sum()))",
                                                      "float(self._tables._job.records.n_units)")),
        (table_fitting, "release_and_fit", ("fitted.steps", "job.records.n_units")),
        (table_fitting, "release_and_fit", ("job.seed", "job.records.n_units")),
    ],
    ids=["groups", "tables", "rows", "log", "seed"],
)  # fmt: skip
def test_what_follows_from_exact_counts_is_caught(lab, monkeypatch, owner, name, edit):
    monkeypatch.setattr(noisy_tables, "Counts", counts.Counts, raising=False)
    lab.plant(owner, name, edit)
    with lab.caught():
        check_all_follows_from_released_tables(lab)
