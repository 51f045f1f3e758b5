"""Rules that a schema declares hold in every sampled row, drawn as chains across a unit's and its rows' columns."""

from __future__ import annotations

import io
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planting import plant

import doublure as db
from doublure.data.relational.visits import VisitRows
from doublure.data.tables.rules import find_violations
from doublure.encode import across_tables
from doublure.encode.relational import RelationalEncoder
from doublure.encode.table import LENDERS
from doublure.encode.visits import VisitsEncoder
from doublure.errors import InputError, SchemaError
from doublure.schema import ResolvedSchema

FEW = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
PER_UNIT, OF_ROWS = ("u0", "u1", "u2"), ("r0", "r1", "r2")


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a date's or a moment's facts, of which any is at most some other one's."""
    first = date(2000, 1, 1) + timedelta(days=draw(st.integers(0, 4000)))
    last = date(2012, 1, 1) + timedelta(days=draw(st.integers(0, 4000)))
    kind = draw(
        st.sampled_from([{"type": "date"}, {"type": "date"}, {"type": "datetime", "step": 60}, {"type": "year"}])
    )
    bounds = [first.year, last.year] if kind["type"] == "year" else [str(first), str(last)]
    return {**kind, "bounds": bounds, "missing": draw(st.booleans())}


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a schema of visits: chains of two to five columns in one overall order, and rules of other words."""
    every = draw(st.permutations([*PER_UNIT, *OF_ROWS]))
    facts = {name: draw(columns()) for name in every}
    facts["r0"]["missing"] = False
    every = [name for name in every if name != "r0"]  # the order of rows: what is below it is of the unit
    own = draw(st.integers(0, len(every)))
    every = [*(name for name in every[:own] if name in PER_UNIT), "r0", *every[own:]]
    rules: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 4))):
        chosen = draw(st.sets(st.sampled_from(every), min_size=2, max_size=5))
        rules.append({"at_most": [name for name in every if name in chosen]})
    if draw(st.booleans()):
        rules.append({"implies": {"when": {"flag": True}, "then": {"r2": "missing"}}})
        facts["r2"]["missing"] = True
    columns_of = {"nr": {"type": "id"}, **facts, "flag": {"type": "boolean", "missing": False}}
    order = draw(st.sampled_from([{"order": "r0"}, {}]))
    unit = {"name": "one", "id": "nr", "max_records": draw(st.integers(2, 4)), "per_unit": [*PER_UNIT], **order}
    return {"doublure": 1, "kind": "table", "unit": unit, "units": 200, "columns": columns_of, "constraints": rules}


def broken(rows: pd.DataFrame, schema: db.Schema) -> dict[str, int]:
    """Return how many rows break each rule, and all orders together."""
    found = {
        json.dumps(rule.names): int(find_violations(rule, rows, schema.columns).sum()) for rule in schema.constraints
    }
    return {names: many for names, many in found.items() if many}


@FEW
@given(worlds(), st.integers(0, 2**31), st.sampled_from([1, 7, 300]))
def test_every_drawn_row_keeps_any_chain(facts: dict[str, Any], seed: int, units: int) -> None:
    try:
        schema = db.Schema.parse(json.dumps(facts)).resolve({})
    except SchemaError:
        return
    rng = np.random.default_rng(seed)
    encoder = VisitsEncoder(schema)
    try:
        rows = encoder.decode(encoder.uniform(units, rng), rng).with_made(0, 1)
    except InputError:
        assert units < 300  # said, never silent: with more units one lends another
        return
    assert not broken(rows, schema)
    for name, column in schema.columns.items():
        if column.bounded:
            numbers = column.numbers_of(rows[name])
            assert np.nanmin(numbers, initial=np.inf) >= column.limits[0]
            assert np.nanmax(numbers, initial=-np.inf) <= column.limits[1]
    assert (rows.groupby("nr")[[*PER_UNIT]].nunique(dropna=False) <= 1).all(axis=None)


SHELTER = """
doublure: 1
kind: table
unit: {name: animal, id: nr, per_unit: [born, kind], max_records: 3, order: taken}
units: 1500
columns:
  nr: {type: id}
  kind: {type: category, values: [cat, dog], missing: false, roles: [condition]}
  born: {type: date, bounds: [1990-01-01, 2025-01-01], missing: true}
  taken: {type: date, bounds: [2017-01-01, 2025-01-01], missing: false}
  left: {type: date, bounds: [2017-01-01, 2025-01-01], missing: true}
constraints:
  - {at_most: [born, taken]}
  - {at_most: [taken, left]}
"""


def animals(many: int = 1500) -> pd.DataFrame:
    """Return stays of a few weeks; half of the animals are taken in the year of their birth."""
    draw = np.random.default_rng(5)
    who = np.repeat(np.arange(many), draw.integers(1, 3, many))
    first = draw.integers(0, 2600, many)
    born = first - np.where(draw.random(many) < 0.5, draw.integers(0, 60, many), draw.integers(60, 4000, many))
    again = np.arange(len(who)) - np.searchsorted(who, who)
    taken = first[who] + again * draw.integers(30, 200, len(who))
    left = taken + draw.integers(20, 95, len(who))
    zero = np.datetime64("2017-01-01")
    known = draw.random(many) < 0.9
    return pd.DataFrame(
        {
            "nr": who, "kind": draw.choice(["cat", "dog"], many)[who],
            "born": pd.Series((zero + born).astype(str)).where(known)[who].to_numpy(),
            "taken": (zero + taken).astype(str),
            "left": pd.Series((zero + left).astype(str)).where(draw.random(len(who)) < 0.9),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def shelter(tmp_path_factory: pytest.TempPathFactory) -> tuple[db.Synthesizer, db.Ledger, Path]:
    folder = tmp_path_factory.mktemp("shelter")
    plan = db.plan(db.Schema.parse(SHELTER), epsilon=3.0, delta=1e-5)
    ledger = db.Ledger.create(folder / "ledger", dataset="animals", epsilon=3, delta=0.1)
    return db.fit(animals(), plan, ledger=ledger, out=folder / "run", seed=1, progress=False), ledger, folder


def test_stays_after_a_late_birth_keep_their_length(shelter: tuple[db.Synthesizer, db.Ledger, Path]) -> None:
    world, ledger, folder = shelter
    schema = db.Schema.parse(SHELTER).resolve({})
    for seed, n in ((1, 1), (2, 10), (3, 4000)):
        rows = world.sample(n, seed=seed)
        assert not broken(rows, schema)
    stays = (rows["left"] - rows["taken"]).dt.days
    assert 40 <= stays.median() <= 80  # the real one is 57
    assert (stays == 0).mean() < 0.05
    young = rows[(rows["taken"] - rows["born"]).dt.days < 60]
    assert 30 <= (young["left"] - young["taken"]).dt.days.median() <= 90
    asked = world.sample(200, seed=4, given={"kind": "cat", "born": ("2020-01-01", "2024-01-01")})
    assert not broken(asked, schema)
    assert (asked["kind"] == "cat").all()
    assert asked["born"].between("2020-01-01", "2024-01-01").all()
    db.release(world, folder / "bundle", n=2000, ledger=ledger)
    text = (folder / "bundle" / "data.csv").read_text(encoding="utf-8")
    written = pd.read_csv(io.StringIO(text), parse_dates=["born", "taken", "left"])
    assert not ((written["born"] > written["taken"]) | (written["taken"] > written["left"])).any()
    assert not (written["born"] > written["left"]).any()


UNORDERED = ("_ordered(frames, steps, schema).items()", "dict[str, Any]().items()")


def decoded(schema: ResolvedSchema, units: int, seed: int = 0) -> VisitRows:
    rng = np.random.default_rng(seed)
    encoder = VisitsEncoder(schema)
    return encoder.decode(encoder.uniform(units, rng), rng)


def test_a_unit_that_breaks_an_order_becomes_another_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are kept in order by construction; what that leaves is replaced, and never handed out."""
    schema = db.Schema.parse(SHELTER.replace("2017-01-01, 2025", "1995-01-01, 2025")).resolve({})
    kinds = decoded(schema, 300).frames["people"]["kind"]
    plant(monkeypatch, across_tables, "keep", UNORDERED)
    units = decoded(schema, 300)
    assert not broken(units.with_made(0, 1), schema)
    assert units.frames["people"]["kind"].tolist() == kinds.tolist()
    with pytest.raises(InputError, match="cannot be kept by all units"):
        _ = [decoded(schema, 1, seed) for seed in range(50)]
    plant(monkeypatch, across_tables, "lent", ("not off.any()", "True"))
    assert broken(decoded(schema, 300).with_made(0, 1), schema)


RELATED = """
doublure: 1
kind: relational
unit: {{name: animal}}
units: 500
tables:
  animals:
    key: nr
    columns:
      nr: {{type: id}}
      born: {{type: year, bounds: [1990, 2024], missing: false}}
      chipped: {{type: date, bounds: [1990-01-01, 2024-12-31], missing: false}}
    {own}
  stays:
    parent: animals
    foreign_key: nr
    max_children: 2
    columns: {{nr: {{type: id}}, taken: {{type: date, bounds: [2017-01-01, 2025-01-01], missing: false}}}}
{every}
"""
PLACES = {
    "of the table": {"own": "constraints: [{at_most: [born, chipped]}]", "every": ""},
    "of all tables": {"own": "", "every": "constraints: [{at_most: [animals.born, animals.chipped]}]"},
}


@pytest.mark.parametrize("place", PLACES)
def test_a_rule_of_one_table_is_kept_by_cells_of_other_rows_wherever_it_is_written(place: str) -> None:
    """Without others' cells half of the animals would be chipped on the first of January."""
    schema = db.Schema.parse(RELATED.format(**PLACES[place])).resolve({})
    encoder, rng = RelationalEncoder(schema), np.random.default_rng(0)
    animals = encoder.decode(encoder.uniform(2000, rng), rng).frames["animals"]
    assert (animals["born"] <= animals["chipped"].dt.year).all()
    assert (animals["chipped"].dt.strftime("%m-%d") == "01-01").mean() < 0.02
    assert encoder.fewest_rows == LENDERS  # few rows have no others


def test_orders_of_one_calendar_ask_for_no_other_rows() -> None:
    text = RELATED.format(own="", every="constraints: [{at_most: [animals.chipped, stays.taken]}]")
    assert RelationalEncoder(db.Schema.parse(text).resolve({})).fewest_rows == 0
