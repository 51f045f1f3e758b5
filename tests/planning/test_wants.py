"""The least ε for what readers want: by the forecast of the plan itself, or refused by name."""

from __future__ import annotations

import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods import registry
from doublure.planning import least_epsilon

SCHEMA = db.Schema.parse("""
doublure: 1
kind: table
unit: {id: row}
units: 20000
columns:
  row: {type: id}
  age: {type: integer, bounds: [0, 99], missing: false}
  job: {type: category, values: [a, b, c, d], missing: false}
  ill: {type: boolean, missing: false, roles: [target]}
  sex: {type: category, values: [f, m], missing: false, roles: [condition], shares: {f: 0.25, m: 0.75}}
""")
DELTA = 1e-6


def least(*wants, **more):
    return least_epsilon(SCHEMA, list(wants), delta=DELTA, accountant="rdp", **more)


def forecast(epsilon):
    made = db.plan(SCHEMA, epsilon=epsilon, delta=DELTA, accountant="rdp")
    return registry.method("statistics").expected_errors(SCHEMA, made.settings, made.touches)


def test_the_least_epsilon_grants_and_a_smaller_one_does_not():
    found = least({"pair": ["age", "job"], "within": 0.05}, {"column": "age", "within": 0.05})
    assert [error <= want.within for want, error in found.errors] == [True, True]
    assert found.plan.guarantee.epsilon == found.plan.epsilon
    smaller = forecast(0.9 * found.plan.epsilon)
    assert max(smaller.distance(("age", "job")), smaller.distance(("age",))) > 0.05


def test_smaller_errors_cost_more():
    spent = [least({"pair": ["age", "job"], "within": within}).plan.epsilon for within in (0.2, 0.1, 0.05)]
    assert spent[0] < spent[1] < spent[2]
    by_rows = [least({"column": "ill", "value": True, "rows": rows, "within": 0.05}).plan.epsilon for rows in (900, 90)]
    assert by_rows[0] < by_rows[1]


def test_a_declared_share_stands_for_rows():
    alone = least({"column": "sex", "value": "f", "within": 0.01})
    given = least({"column": "sex", "value": "f", "rows": 5000, "within": 0.01})
    assert alone.errors[0][1] == given.errors[0][1]
    assert alone.explain().splitlines()[1].startswith("Wanted: sex = f ± 1%; forecast ± 0.")


def test_every_want_that_cannot_be_answered_is_named_at_once():
    with pytest.raises(SettingError) as caught:
        least({"column": "row", "within": 0.1}, {"pair": ["age", "age"], "within": 0.1},
              {"column": "age", "within": 2},
              {"column": "age", "value": "40", "rows": 9, "within": 0.1},
              {"column": "ill", "value": "true", "within": 0.1},
              {"column": "job", "value": "z", "rows": 9, "within": 0.1}, {"column": "age", "rows": 9, "within": 0.1},
              {"within": 0.1, "colum": "age"})  # fmt: skip
    said = str(caught.value)
    assert all(f"want {number} " in said for number in range(1, 9))
    for part in ("no column that is counted (row)", "two columns as a pair", "no listed value of age", "needs rows",
                 "no listed value of job", "colum"):  # fmt: skip
        assert part in said, said


def test_a_column_that_is_counted_beside_another_has_no_error_of_its_own():
    """The forecast says which columns are counted: of a point that is the first alone."""
    number = {"type": "real", "bounds": [0, 10], "precision": 2, "missing": False}
    plain = SCHEMA.to_plain()
    columns = {**plain["columns"], "lon": number, "lat": number}
    places = db.Schema.from_plain({**plain, "columns": columns, "constraints": [{"point": ["lon", "lat"]}]})
    with pytest.raises(SettingError, match=r"want 2 names no column that is counted \(lat\)"):
        least_epsilon(places, [{"column": "lon", "within": 0.2}, {"column": "lat", "within": 0.2}], delta=DELTA)


def test_a_want_of_another_key_names_the_keys_and_one_of_a_computed_column_its_source():
    with pytest.raises(SettingError, match=r"within must be at most 1"):
        least({"column": "age", "within": 2})
    with pytest.raises(SettingError, match=r"want 1 is no mapping, such as \{column: age, within: 0\.02\}"):
        least("age")
    with pytest.raises(SettingError, match=r"within is missing"):
        least({"column": "age"})
    with pytest.raises(SettingError, match=r"do not know \(mean\); they know column, pair, value, rows, within"):
        least({"mean": "age", "within": 100})
    plain = SCHEMA.to_plain()
    plain["columns"]["old"] = {"type": "integer", "bounds": [0, 198], "missing": False}
    schema = db.Schema.from_plain({**plain, "constraints": [{"formula": {"of": "old", "from": "2 * age"}}]})
    with pytest.raises(SettingError, match=r"not counted: old is computed from age \(ask for age\)"):
        least_epsilon(schema, [{"column": "old", "within": 0.1}], delta=DELTA)


@pytest.mark.parametrize("given", [[], {}, "x: [", "age"])
def test_what_is_no_list_of_wants_is_refused(given, tmp_path):
    if isinstance(given, str):
        (tmp_path / "wants.yaml").write_text(given)
        given = tmp_path / "wants.yaml"
    with pytest.raises(db.errors.InputError) as caught:
        least_epsilon(SCHEMA, given, delta=DELTA)
    assert caught.value.remedy


def test_what_no_epsilon_grants_and_methods_without_a_forecast_are_refused():
    with pytest.raises(SettingError, match=r"not granted by any ε up to 100: age within 0\.0001"):
        least({"column": "age", "within": 0.0001})
    with pytest.raises(SettingError, match="forecasts no errors"):
        least({"column": "age", "within": 0.1}, method="dpgan")
