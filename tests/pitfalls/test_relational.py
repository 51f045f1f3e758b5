"""Rules 1, 2, 9, 16 and 17 for related tables: a neighbour has one row of the root more, with all that hangs on it.

Record and replay through the whole fit: the noisy tables of one set of units are handed to its neighbours, and nothing
that can be seen changes; what was about to be noised moves by what was paid for, however many rows the unit has.
Mutants beside it.
"""

from __future__ import annotations

import datetime
import decimal
from functools import cache

import numpy as np
import pandas as pd
import pytest

from doublure import planning as plans
from doublure.data.relational import open_related, opening
from doublure.data.relational.records import RelatedRows
from doublure.encode import relational as encoding
from doublure.encode.relational import RelationalEncoder
from doublure.errors import DoublureError
from doublure.methods.statistics.relational import fitting as related_fitting
from doublure.private import mechanism, whole_noise
from doublure.private.queries import facts
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import make_fact_query
from doublure.private.records import PrivateRecords
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.relational import RelationalSchema

UNITS, MOST = 24, 3
PUBLIC = f"""
doublure: 1
kind: relational
unit: {{name: patient}}
units: {UNITS}
tables:
  patients:
    key: nr
    columns:
      nr: {{type: id}}
      sex: {{type: category, values: [f, m], missing: false}}
      born: {{type: integer, bounds: [1930, 2010], missing: true}}
  stays:
    parent: patients
    foreign_key: nr
    max_children: {MOST}
    order: day
    columns:
      nr: {{type: id}}
      day: {{type: integer, bounds: [0, 999], missing: false}}
      ward: {{type: category, values: [heart, lung], other: Other, missing: true}}
  calls:
    parent: patients
    foreign_key: nr
    max_children: 2
    columns:
      nr: {{type: id}}
      minutes: {{type: real, bounds: [0, 90], precision: 1, missing: false}}
"""
BOUGHT = (
    PUBLIC.replace(f"units: {UNITS}\n", f"units: {{learn: 1.0, magnitude: {UNITS}}}\n")
    .replace("values: [heart, lung], other: Other, missing: true",
             "values: {learn: 1.0}, other: Other, missing: {learn: 1.0}")
    .replace("bounds: [1930, 2010]", "bounds: {learn: 1.0}")
    .replace("bounds: [0, 90]", "bounds: {learn: 1.0}")
)  # fmt: skip
ABOVE = PUBLIC.replace("[1930, 2010]", "[0, 3000]").replace("[0, 999]", "[0, 2500]")
ABOVE += "constraints: [{at_most: [patients.born, stays.day]}]\n"
"""A stay's day is counted by its gap above the patient's number, as far as there is one."""
AS_BEFORE = ABOVE.replace("values: [heart, lung]", f"values: [heart, lung, {', '.join('abcdefgh')}]")
"""Of a list this long it is counted whether a ward is the one before."""
FEW = {"components": 2, "fit_steps": 3, "groups": 2, "starts": 1}


def units(count=UNITS):
    """Return ordinary patients, from none to four stays and from none to three calls each."""
    draw = np.random.default_rng(3)
    patients = pd.DataFrame(
        {
            "nr": [f"p{n}" for n in range(count)],
            "sex": draw.choice(["f", "m"], count),
            "born": draw.integers(1930, 2011, count),
        }
    )
    patients["born"] = patients["born"].astype(object).where(draw.random(count) > 0.2, None)
    return {
        "patients": patients,
        "stays": rows([f"p{n}" for n in range(count) for _ in range(n % 5)], draw),
        "calls": calls([f"p{n}" for n in range(count) for _ in range(n % 4)], draw),
    }


def rows(owners, draw):
    many = len(owners)
    return pd.DataFrame(
        {"nr": owners, "day": draw.integers(0, 1000, many), "ward": draw.choice(["heart", "lung", "liver", None], many)}
    )


def calls(owners, draw):
    return pd.DataFrame({"nr": owners, "minutes": np.round(draw.random(len(owners)) * 90, 1)})


def one_more(stays=2, spoken=1, **cells):
    """Return one more patient, with so many stays and calls."""
    draw = np.random.default_rng(9)
    patient = {"nr": "one more", "sex": "f", "born": 1950} | cells
    return {
        "patients": pd.DataFrame([patient]),
        "stays": rows(["one more"] * stays, draw),
        "calls": calls(["one more"] * spoken, draw),
    }


ODD_UNITS = {
    "alone": one_more(0, 0),
    "one row": one_more(1, 0),
    "as many as are used": one_more(MOST, 2),
    "many more than are used": one_more(40, 40),
    "a key like no other": one_more(2, 2, born=None),
    "at the ends": {
        **one_more(5, 2, born=None),
        "stays": rows(["one more"] * 5, np.random.default_rng(9)).assign(day=999),
    },
    "on one day": {**one_more(3, 1), "stays": pd.DataFrame({"nr": ["one more"] * 3, "day": [5] * 3, "ward": "heart"})},
}
OF_DAYS = ("at the ends", "on one day")
"""Units that are odd by their days, which are ordered in each schema, and are gaps above the root in one."""


def with_unit(base, more, place=7):
    """Return the neighbour that has one unit more, its rows in the midst of the others'."""
    return {name: pd.concat([base[name][:place], more[name], base[name][place:]], ignore_index=True) for name in base}


def without_unit(base, nr):
    """Return the neighbour that lacks one unit, and everything that hangs on it."""
    return {name: table[table["nr"] != nr].reset_index(drop=True) for name, table in base.items()}


@cache
def planned(text=PUBLIC):
    return plans.plan(Schema.parse(text), method="statistics", epsilon=9.0 if text == BOUGHT else 0.1, delta=1e-3,
                      accountant="rdp", **FEW)  # fmt: skip


def counted(lab, tables, text=PUBLIC, like=None):
    return lab.counted(open_related(tables), planned(text), like=like)


@pytest.fixture(scope="module", params=[PUBLIC, BOUGHT, ABOVE], ids=["declared", "bought", "above the root"])
def runs(request, watching):
    """Return a run, and its neighbours' by name, which meet its noise again; whether all is declared."""
    base = units()
    kept = counted(watching, base, request.param)
    odd = {name: more for name, more in ODD_UNITS.items() if request.param == ABOVE or name not in OF_DAYS}
    near = {name: with_unit(base, more) for name, more in odd.items()} | {"one less": without_unit(base, "p7")}
    others = {name: counted(watching, each, request.param, like=kept) for name, each in near.items()}
    return kept, others, request.param != BOUGHT


def test_whole_units_move_what_was_paid_for(lab, runs):
    """A unit moves all tables together by 1/σ in units of their noise if it shows all that one can, never by more."""
    kept, others, declared = runs
    paid = 1 / kept.public["noise_multiplier"]
    moved = {name: lab.price(kept, other) for name, other in others.items()}
    assert max(moved.values()) <= paid * (1 + 1e-9)
    assert 0 < moved["alone"] < moved["one row"] < paid
    for full in ("as many as are used", "many more than are used", "a key like no other") if declared else ():
        assert moved[full] == pytest.approx(paid, rel=1e-9)


def check_a_unit_moves_no_more_than_was_paid_for(lab):
    """Three neighbours, for mutants: the marks of a run decide which rows each unit shows."""
    base = units()
    kept = counted(lab, base)
    for place in (7, 13, 19):
        moved = lab.price(kept, counted(lab, with_unit(base, one_more(MOST, 2), place), like=kept))
        assert moved <= (1 + 1e-9) / kept.public["noise_multiplier"]


def test_a_unit_moves_no_more_than_was_paid_for(lab):
    check_a_unit_moves_no_more_than_was_paid_for(lab)


def test_nothing_seen_depends_on_a_unit(lab, runs):
    kept, others, _ = runs
    for other in others.values():
        lab.assert_same_public(kept, other)


def test_every_stage_counts_a_unit_in_one_cell_of_each_table_at_most(runs):
    """However many rows it has: it moves each table by one in one cell, or not at all."""
    kept, others, _ = runs
    moved = [
        (theirs - mine).abs().max()
        for other in others.values()
        for mine, theirs in zip(kept.queries, other.queries, strict=True)
    ]
    assert max(moved) == 1


def alike(ward):
    """Return a unit whose cells all fall in one cell of every histogram."""
    more = one_more(40, 40)
    return more | {"stays": more["stays"].assign(ward=ward), "calls": more["calls"].assign(minutes=5.0)}


def distance(one, other):
    """Return how far two exact answers are apart, in L1."""
    if isinstance(one, dict):
        return sum(abs(one.get(name, 0) - other.get(name, 0)) for name in one.keys() | other.keys())
    return int(np.abs(other - one).sum())


def check_facts_move_what_was_paid_for():
    """Each learned fact's counts move by its query's sensitivity, which its noise is scaled by, and never by more."""
    schema, base = Schema.parse(BOUGHT), units()
    sources = [base, *(with_unit(base, more) for more in (*ODD_UNITS.values(), alike("heart"), alike(None)))]
    kept, *others = [open_related(tables).load(schema, at_least=0) for tables in (*sources, without_unit(base, "p7"))]
    reached = {}
    for question in schema.questions:
        query = make_fact_query(question, schema, {})
        alone = query.answer(kept, sample_rate=1.0).total
        moved = [distance(alone, query.answer(each, sample_rate=1.0).total) for each in others]
        assert max(moved) <= query.sensitivity.l1 == query.sensitivity.l2
        reached[question.path] = max(moved)
    assert reached == {
        "units": 1, "tables.patients.columns.born.bounds": 1, "tables.stays.columns.ward.values": MOST,
        "tables.stays.columns.ward.missing": MOST, "tables.calls.columns.minutes.bounds": 2,
    }  # fmt: skip


def test_facts_move_what_was_paid_for():
    check_facts_move_what_was_paid_for()


@pytest.mark.parametrize(
    "edit",
    [
        (RelationalSchema, "cells_of", ("self.most(column.partition('.')[0])", "1")),
        (opening, "kept_rows", ("np.arange(len(placed)) - begins < most", "begins >= 0")),
        (facts, "make_fact_query", ("moved = most * schema.cells_of(name, question.fact)", "moved = most")),
    ],
    ids=["one cell a unit", "rows that are not bounded", "the records of a unit alone"],
)
def test_facts_that_move_further_are_caught(lab, edit):
    lab.plant(*edit)
    with lab.caught():
        check_facts_move_what_was_paid_for()


LIMIT = (mechanism, "_refuse_dearer", ("not stated.l2 <= priced.l2 * (1 + _ROUNDING)", "False"))
DEARER = {
    "rows that are not bounded": [(opening, "kept_rows", ("np.arange(len(placed)) - begins < most", "begins >= 0"))],
    "a unit that counts for each of its rows": [
        (Counts, "answer", ("np.bincount(places(table, cells), minlength=len(found[key]))",
                            "2 * np.bincount(places(table, cells), minlength=len(found[key]))")),
    ],
    "less noise than the event says": [
        (mechanism.Mechanism, "_noised", ("whole_noise.gaussian(total, scale=event.scale)",
                                          "whole_noise.gaussian(total, scale=0.9 * event.scale)")),
    ],
    "records doubled for a stage": [
        (PrivateRecords, "having", ("rows[rows[:, part] >= least][:, parts]",
                                    "np.repeat(rows[rows[:, part] >= least][:, parts], 2, axis=0)")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("edits", list(DEARER.values())[1:], ids=list(DEARER)[1:])
def test_dearer_counts_are_caught(lab, edits):
    for edit in (*edits, LIMIT):
        lab.plant(*edit)
    with pytest.raises((AssertionError, DoublureError)):
        check_a_unit_moves_no_more_than_was_paid_for(lab)


# -- what belongs to whom --------------------------------------------------------------------------------------------


def loaded(tables, text=PUBLIC):
    return open_related(tables).load(Schema.parse(text), at_least=0)


def shown(tables, text):
    """Return each unit's numbers as it is counted, by what tells it apart: the number of its key."""
    found = loaded(tables, text)
    encoder = RelationalEncoder(ResolvedSchema.of(Schema.parse(text).resolve({})))
    compact = encoder.compact(found.content)
    return dict(zip(found.content.marks.tolist(), map(tuple, compact.tolist()), strict=True))


def check_a_unit_shows_the_same_whoever_else_there_is(text=PUBLIC):
    base = units()
    alone = shown(base, text)
    assert len(alone) == UNITS
    for more in ODD_UNITS.values():
        beside = shown(with_unit(base, more), text)
        assert len(beside) == UNITS + 1
        assert alone.items() <= beside.items()


@pytest.mark.parametrize("text", [PUBLIC, ABOVE, AS_BEFORE], ids=["alone", "above the root", "as before"])
def test_a_unit_shows_the_same_whoever_else_there_is(text):
    check_a_unit_shows_the_same_whoever_else_there_is(text)


@pytest.mark.parametrize(
    "edit",
    [
        (
            encoding.RelationalEncoder,
            "compact",
            ("remarked(content.marks, number)", "remarked(content.marks[::-1], number)"),
        ),
        (
            opening,
            "kept_rows",
            (
                "np.lexsort((np.arange(len(unit)), by, unit))",
                "np.lexsort((by - by.mean() * (np.arange(len(unit)) % 2), unit))",
            ),
        ),
        (
            opening.RelatedSource,
            "load",
            ("mark_keys(keys[link.name])", "mark_keys(pd.Series(np.arange(len(keys[link.name]))))"),
        ),
    ],
    ids=["another unit's mark", "an order that others decide", "marks by place"],
)
def test_units_that_meet_are_caught(lab, edit):
    lab.plant(*edit)
    with lab.caught():
        check_a_unit_shows_the_same_whoever_else_there_is()


ANYWHERE = {
    "the mark of another": ("remarked(marks, ANY)", "remarked(marks[::-1], ANY)"),
    "the place of the units among all": ("remarked(marks, ANY)", "remarked(units.astype(np.uint64), ANY)"),
    "how many units there are": ("remarked(marks, ANY)", "remarked(marks, ANY + len(found))"),
    "how many rows another has": ("anywhere = _among(remarked(marks, ANY), many)",
                                  "anywhere = np.minimum(np.roll(many, 1), many) - 1"),
    "what others' rows hold": ("remarked(marks, ANY)", "remarked(marks + np.uint64(rows.sum()), ANY)"),
    # Exchanged rows alone would move nothing but pairs with what is given, which noise may leave uncounted.
    "a row of another": ("rows[begins + anywhere]", "rows[(begins + anywhere) // 5 * 5]"),
}  # fmt: skip
"""Rows at any place of a unit that others decide, by what decides."""


@pytest.mark.parametrize("edit", ANYWHERE.values(), ids=ANYWHERE)
def test_a_row_at_any_place_that_another_unit_decides_is_caught(lab, edit):
    lab.plant(encoding.RelationalEncoder, "_show", edit)
    with lab.caught():
        check_a_unit_shows_the_same_whoever_else_there_is()
    lab.plant(*LIMIT)
    with lab.caught():
        check_a_unit_moves_no_more_than_was_paid_for(lab)


@pytest.mark.parametrize(
    "edit",
    [
        ("each.gaps(found[those, at], found[those, child.head.start + each.below])",
         "each.gaps(found[those, at], found[np.roll(those, 1), child.head.start + each.below])"),
        ("rows[begins + following, place] == rows[begins + before, place]",
         "rows[begins + following, place] == rows[np.roll(begins + before, 1), place]"),
    ],
    ids=["a gap above another's", "as before in another"],
)  # fmt: skip
def test_numbers_measured_from_another_unit_are_caught(lab, edit):
    lab.plant(encoding.RelationalEncoder, "_show", edit)
    with lab.caught():
        check_a_unit_shows_the_same_whoever_else_there_is(AS_BEFORE)


def check_the_rules_drop_and_never_refuse():
    base = units()
    again = base["patients"][5:6].assign(sex="m")
    nobody = pd.DataFrame({"nr": ["nobody", None, ""], "day": [1, 2, 3], "ward": "lung"})
    strange = {
        "patients": pd.concat([base["patients"], again, one_more()["patients"].assign(nr=None)]),
        "stays": pd.concat([base["stays"], nobody]),
        "calls": base["calls"],
    }
    for text in (PUBLIC, PUBLIC.replace(f"units: {UNITS}\n", f"units: {UNITS}\nmisfit: coerce\n", 1)):
        clean, odd = loaded(base, text).content, loaded(strange, text).content
        assert len(clean) == len(odd) == UNITS
        for name in base:
            pd.testing.assert_frame_equal(clean.frames[name], odd.frames[name])
    assert clean.counts("stays").tolist() == [min(n % 5, MOST) for n in range(UNITS)]
    assert clean.counts("calls").tolist() == [min(n % 4, 2) for n in range(UNITS)]
    assert loaded({name: table[:0] for name, table in base.items()}, text).n_units == 0


def test_the_rules_drop_and_never_refuse():
    check_the_rules_drop_and_never_refuse()


@pytest.mark.parametrize(
    "edit",
    [
        (opening, "kept_rows", ("np.arange(len(placed)) - begins < most", "begins >= 0")),
        (opening, "kept_rows", ("unit[placed] >= 0", "unit[placed] >= -1")),
        (opening.RelatedSource, "linked", ("keys.notna() & ~keys.duplicated()", "keys.notna()")),
    ],
    ids=["rows beyond the most", "orphans", "second rows of a key"],
)
def test_rows_that_are_kept_against_the_rules_are_caught(lab, edit):
    lab.plant(*edit)
    with pytest.raises(Exception):  # noqa: B017  -- a row too many is found out by whoever meets it first
        check_the_rules_drop_and_never_refuse()


# -- the domain ------------------------------------------------------------------------------------------------------

COERCED = PUBLIC.replace(f"units: {UNITS}\n", f"units: {UNITS}\nmisfit: coerce\n", 1)
ODD_CELLS = (
    None, "", "?", "Qv9", float("nan"), float("inf"), -(10**400), 2**70, 1j, b"1", [1], {"a": 1}, object, True, -0.0,
    decimal.Decimal("sNaN"), "\ud800", "1e999", pd.NaT, pd.Timestamp("2001-01-01"), datetime.date.max, "7",
)  # fmt: skip


def cells(cell, many):
    """Return a column of one cell of any type, as it is."""
    column = np.empty(many, dtype=object)
    for place in range(many):
        column[place] = cell
    return pd.Series(column, dtype=object)


def by_mark(tables):
    """Return what each unit holds, by its mark: its row of the root, then its rows of each child table."""
    units = loaded(tables, COERCED).content
    texts = {name: [tuple(map(str, row)) for row in frame.itertuples(index=False)] for name, frame in
             units.frames.items()}  # fmt: skip
    found = {}
    for place, mark in enumerate(units.marks.tolist()):
        rows = {name: [texts[name][row] for row in np.flatnonzero(owner == place)] for name, owner in
                units.parents.items()}  # fmt: skip
        found[mark] = (texts["patients"][place], rows)
    return found


def check_no_cell_refuses_tables_or_changes_another_unit():
    """Any cell, in any column of any table, a key's among them, is read by itself or belongs to nobody."""
    base, of_others = {name: table.astype(object) for name, table in units().items()}, by_mark(units())
    for number, cell in enumerate(ODD_CELLS):
        more = {}
        for name, table in one_more(2, 2).items():
            odd = pd.DataFrame({own: cells(cell, len(table)) for own in table})
            more[name] = pd.concat([odd, odd.assign(nr=table["nr"])], ignore_index=True)  # a stranger's, and one's own
        try:
            found = by_mark(with_unit(base, more, place=number))
        except DoublureError as error:
            raise AssertionError("refused") from error
        assert of_others.items() <= found.items()
        assert len(found) - len(of_others) in (1, 2)


def test_no_cell_refuses_tables_or_changes_another_unit():
    check_no_cell_refuses_tables_or_changes_another_unit()


STRICT = "schema.model_copy(update={'misfit': 'refuse'})"


@pytest.mark.parametrize(
    "edit",
    [
        ("frames.append(_canonical(raw, wanted, schema))",
         f"frames.append(_canonical(raw, wanted, schema if name == schema.root else {STRICT}))"),
        ("cells.unit_ids(raw[key], key, tokens, 'coerce')", "cells.unit_ids(raw[key], key, tokens)"),
        ("cells.unit_ids(raw[key], key, tokens, 'coerce')", "cells.unit_ids(raw[key], key, tokens, 'coerce').ffill()"),
    ],
    ids=["children are refused", "keys are refused", "a key of the row before"],
)  # fmt: skip
def test_a_cell_that_refuses_tables_or_goes_to_another_is_caught(lab, edit):
    lab.plant(opening.RelatedSource, "_read", edit)
    with lab.caught():
        check_no_cell_refuses_tables_or_changes_another_unit()


def test_records_are_taken_by_their_own_numbers_alone():
    whole = np.arange(12.0).reshape(4, 3)
    some = PrivateRecords(whole, np.arange(4), 4, lambda rows: (rows, None)).having(0, 3.0, np.array([2, 1]))
    assert some.n_units == 3
    assert np.concatenate(list(some.chunks(10))).tolist() == [[5, 4], [8, 7], [11, 10]]
    several = PrivateRecords(whole, np.zeros(4, dtype=np.int64), 1, lambda rows: (rows, None))
    with pytest.raises(TypeError, match="several units"):
        several.having(0, 0.0, np.array([0]))


def test_units_are_not_shown_in_text():
    found = loaded(units())
    assert "p7" not in repr(found) + repr(found.content)
    assert isinstance(found.content, RelatedRows)


def test_refusals_name_no_value():
    odd = with_unit(units(), one_more())
    odd["stays"]["day"] = odd["stays"]["day"].astype(object)
    odd["stays"].loc[3, "day"] = "the eighth of May"
    with pytest.raises(DoublureError) as found:
        loaded(odd)
    assert "May" not in str(found.value)
    assert "day" in str(found.value)


def test_a_stage_takes_its_own_accesses(lab):
    """Each release is drawn once, with the noise that its own access has."""
    plan, drawn = planned(), []
    noisy = whole_noise.gaussian

    def watched(counts, *, scale):
        drawn.append(scale)
        return noisy(counts, scale=scale)

    with lab._patch.context() as patch:
        patch.setattr(whole_noise, "gaussian", watched)
        counted(lab, units())
    assert drawn == [access.event.scale for access in plan.training]
    assert len({access.purpose for access in plan.training}) == len(plan.training)
    assert {len(stage) for stage in [related_fitting.list_stages(plan.schema, anywhere=True)]} == {6}
