"""A plan: what a run will do and cost, from public facts alone, in a file that cannot be edited into another one."""

from __future__ import annotations

import hashlib
import json
import math
import re

import numpy as np
import pytest
from noisy_facts import noisy_bounds

import doublure as db
from doublure.access import events
from doublure.data.tables import opening as tables
from doublure.errors import DoublureError, InputError, SchemaError, SettingError
from doublure.ledger.chain import canonical_json
from doublure.methods import registry
from doublure.planning import contents, machine, plans
from doublure.private import accounting

KEYS = {
    "version", "method", "kind", "schema_sha256", "epsilon", "delta", "unit", "relation", "accountant", "settings",
    "touches", "sample_rate", "noise_multiplier", "max_grad_norm", "steps", "memory_bytes", "seconds_estimate",
    "warnings", "guarantee",
}  # fmt: skip


@pytest.fixture(scope="module")
def bought(small):
    return make(small, small.bought_text)


def make(small, text=None, **changes):
    asked = (
        {"method": "dpgan", "epsilon": small.epsilon, "delta": small.delta, "accountant": "rdp"} | small.tiny | changes
    )
    return db.plan(db.Schema.parse(text or small.declared_text), **asked)


# -- what it holds -----------------------------------------------------------------------------------------------------


def test_the_file_holds_these_keys_and_the_schema(small, bought, tmp_path):
    for plan in (small.plan, bought, db.plan(small.declared, method="gan", **small.tiny)):
        plan.save(tmp_path / "plan.json")
        written = json.loads((tmp_path / "plan.json").read_text())
        assert set(written) == KEYS | {"schema"}
        for touch in written["touches"]:
            assert set(touch) == {"purpose", "event", "epsilon", "delta"}
        assert written["schema_sha256"] == plan.schema.sha256


def test_a_saved_plan_comes_back_whole(small, bought, tmp_path):
    for plan in (small.plan, bought, db.plan(small.declared, method="gan", **small.tiny)):
        plan.save(tmp_path / "plan.json")
        again = db.Plan.load(tmp_path / "plan.json")
        assert again.to_json() == plan.to_json()
        assert again.touches == plan.touches
        assert again == plan


def test_every_setting_is_decided(small):
    undecided = {name for name, value in small.plan.settings.model_dump().items() if value is None}
    # Without the first, n_critic stays as it is; σ follows from ε; only individual accounting has filters.
    assert undecided <= {"critic_threshold", "noise_multiplier", "filter_steps"}


def test_what_is_learned_is_listed_first_with_its_price(bought):
    learned = bought.learned
    assert bought.touches[: len(learned)] == learned
    prices = {access.path: access.epsilon for access in learned}
    assert prices == {"columns.job.values": 0.1, "columns.hours.bounds": 0.05, "columns.income.shares": 0.05}
    assert [access.purpose for access in bought.touches][-1] == "train the critic"
    assert sum(access.delta for access in bought.touches) == pytest.approx(bought.delta)


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_the_noise_is_just_enough_for_everything_together(small, accountant):
    plan = make(small, small.bought_text, accountant=accountant)
    spent = accounting.epsilon_of(events(plan.touches), plan.delta, accountant=accountant)
    assert 0.98 * plan.epsilon < spent <= plan.epsilon
    training = plan.touches[-1].event
    assert training.noise_multiplier == plan.noise_multiplier
    assert training.steps == plan.steps == 6
    assert training.sample_rate == plan.sample_rate == 32 / 300


def test_less_epsilon_needs_more_noise(small):
    assert make(small, epsilon=0.5).noise_multiplier > 1.5 * make(small, epsilon=4.0).noise_multiplier


def test_facts_leave_less_for_training(small):
    assert make(small, small.bought_text).noise_multiplier > make(small).noise_multiplier


def test_no_data_is_read(small, monkeypatch):
    def opened(*_: object) -> None:
        raise AssertionError("a plan opened the data")

    for name in ("open_table", "_CsvSource", "_FrameSource", "_ParquetSource"):
        monkeypatch.setattr(tables, name, opened)
    assert make(small).explain()


def test_the_same_request_gives_the_same_plan(small):
    first, second = make(small).to_json(), make(small).to_json()
    for figure in ("seconds_estimate",):
        first.pop(figure), second.pop(figure)
    assert first == second


def test_numbers_of_numpy_are_numbers(small):
    plan = make(small, epsilon=np.float32(2), delta=np.float64(1e-4))
    assert type(plan.epsilon) is float
    json.dumps(plan.to_json())


def test_a_plan_for_gan_claims_nothing(small):
    plan = db.plan(small.declared, method="gan", **small.tiny)
    assert plan.guarantee.kind == "none"
    assert (plan.epsilon, plan.delta, plan.accountant, plan.noise_multiplier) == (None, None, None, None)
    assert plan.touches[-1].to_json() == {"purpose": "train the critic", "event": None, "epsilon": None, "delta": None}
    assert any("must not be published" in warning for warning in plan.warnings)
    assert "not protected" in plan.explain()
    assert "No budget: nothing is protected" in plan.explain()
    assert "ε =" not in plan.explain()


def test_what_a_plan_without_a_claim_learns_has_noise_and_no_price(small):
    plan = db.plan(db.Schema.parse(small.bought_text), method="gan", **small.tiny)
    assert plan.learned
    assert "(–: with the noise that the schema asks for, and in no total)" in plan.explain()
    assert "in no total" not in db.plan(small.declared, method="gan", **small.tiny).explain()


def test_it_explains_itself(bought):
    text = bought.explain()
    for access in bought.touches:
        assert access.purpose in text
    assert bought.guarantee.sentence in text
    assert "composed, not added up" in text
    assert f"T = {bought.steps}" in text
    assert "one person" in text
    assert all(f"Warning: {warning}" in text for warning in bought.warnings)


def test_it_warns_of_what_is_weak(small):
    text = small.declared_text.replace("roles: [condition], shares: {Female: 0.3, Male: 0.7}", "roles: [condition]")
    warnings = " / ".join(make(small, text, epsilon=20.0, delta=3e-3).warnings)
    for part in ("above a tenth of 1/units", "attacker's odds", "rdp is looser", "sex is a condition without shares"):
        assert part in warnings
    dear = make(small, small.bought_text, epsilon=0.3)
    assert any("more than half of epsilon" in warning for warning in dear.warnings)


PROPOSED = [(1, "1e-01"), (11, "9e-03"), (97, "1e-03"), (1_001, "9e-05"), (3_882, "2e-05"), (124_800, "8e-07")]


@pytest.mark.parametrize(("units", "proposed"), PROPOSED)
def test_a_delta_that_is_proposed_is_never_warned_of(small, units, proposed):
    """A tenth of 1/units is rounded down: at 3,882 units it is 2.6e-5."""
    text = small.declared_text.replace("units: 300", f"units: {units}")
    for delta in (None, 1 / units):
        with pytest.raises(SettingError) as refused:
            make(small, text, epsilon=1.0, delta=delta)
        assert refused.value.remedy.endswith(f"such as {proposed}")
    assert not any("1/units" in warning for warning in make(small, text, epsilon=1.0, delta=float(proposed)).warnings)
    if units > 1:
        loose = make(small, text, epsilon=1.0, delta=0.5 / units).warnings
        assert any(f"{proposed} is customary" in warning for warning in loose)


@pytest.mark.parametrize("method", ["dpgan", "statistics"])
def test_it_warns_once_of_noise_that_hides_everything_and_says_what_would_do(method):
    def drowned(epsilon):
        plan = db.plan(listing(3, units=3_000), method=method, epsilon=epsilon, delta=1e-6, accountant="rdp")
        return [warning for warning in plan.warnings if "hardly anything will be learned" in warning], plan

    for epsilon in (1e-9, 1e-3):
        found, plan = drowned(epsilon)
        (warning,) = found
        assert warning.partition(": the noise is")[0] in {access.purpose for access in plan.touches}
        assert db.Plan.from_json(json.loads(json.dumps(plan.to_json())), reprice=False).warnings == plan.warnings

    def advised(found):
        return float(re.search(r"about epsilon ([0-9.e-]+)", found[0])[1])

    enough = advised(found)
    if more := drowned(1.3 * enough)[0]:  # a plan of more budget may count more tables
        enough = advised(more)
    assert drowned(1.3 * enough)[0] == []
    assert drowned(0.3 * enough)[0] != []


def test_it_warns_of_columns_in_a_handful_of_groups_and_says_what_would_do():
    def warned(epsilon, units=3_000):
        plan = db.plan(listing(3, units=units), method="statistics", epsilon=epsilon, delta=1e-6, accountant="rdp")
        return [warning for warning in plan.warnings if "groups of a column above its noise" in warning]

    (found,) = warned(0.2)
    enough = float(re.search(r"about epsilon ([0-9.e-]+)", found)[1])
    assert warned(1.3 * enough) == []
    assert warned(0.6 * enough) != []
    assert warned(0.2, units=300_000) == []


def test_it_warns_of_bounds_between_which_tables_see_little():
    def warned(column, method="statistics"):
        schema = db.Schema.parse(
            f"doublure: 1\nkind: table\nunits: 30000\ncolumns:\n  a: {{{column}, missing: false}}\n"
            "  b: {type: boolean, missing: false}\n"
        )
        made = db.plan(schema, method=method, epsilon=4.0, delta=1e-6, accountant="rdp")
        return [warning for warning in made.warnings if warning.startswith("columns.a")]

    (found,) = warned("type: date, bounds: [1000-01-01, 9999-12-31]")
    assert "803 of each other" in found.replace("days within about 803", "803")
    assert "narrow" in found
    assert warned("type: date, bounds: [1900-01-01, 2099-12-31]") == []
    (found,) = warned("type: integer, bounds: [0, 100000000], scale: linear")
    assert "leave scale out" in found
    assert warned("type: integer, bounds: [0, 100000000]") == []  # cells of one ratio: width hardly matters
    (found,) = warned("type: real, bounds: [0.0, 1.0e+9]")
    assert "declare precision or step" in found
    assert warned("type: real, bounds: [0.0, 1.0e+9], precision: 2") == []


def test_it_warns_of_bounds_that_will_be_noise_and_says_what_would_do():
    """Where it warns, the noise alone decides; where it does not, most of the data lies within."""

    def planned(units, epsilon, more=""):
        schema = db.Schema.parse(
            "doublure: 1\nkind: series\nunit: {name: meter, id: who, max_records: 5}\n"
            f"units: {units}\nseries: {{length: 4, gaps: refuse}}\n"
            f"channels: {{kw: {{type: integer, bounds: {{learn: {epsilon}{more}}}, missing: false}}}}\n"
        )
        made = db.plan(schema, method="statistics", epsilon=100, delta=1e-5, accountant="rdp")  # rdp is quick
        return [warning for warning in made.warnings if "bounds will be noise" in warning]

    def found(units, epsilon):
        values = np.random.default_rng(0).integers(3, 90, units * 10)
        return noisy_bounds(values, epsilon=epsilon, max_records=10, integer=True)

    (warning,) = planned(12, 0.5)
    assert warning.startswith("channels.kw.bounds: at epsilon 0.5 ")
    assert max(abs(end) for _ in range(20) for end in found(12, 0.5)) > 1000  # seven in ten draws are
    enough = float(re.search(r"pay about ([0-9.]+)", warning)[1])
    assert planned(12, enough) == planned(12, 0.5, ", magnitude: 100") == planned(5000, 0.5) == []
    assert np.median([found(12, enough)[1] for _ in range(9)]) in (50, 100)  # noise moves one in a hundred further


def test_it_warns_of_bounds_that_cut_off_what_units_with_few_values_have():
    """A unit that may have 25 rows makes 25 times the noise, however few rows it has."""

    def planned(most, epsilon):
        schema = db.Schema.parse(
            f"""
doublure: 1
kind: relational
unit: {{name: customer}}
units: 6000
tables:
  customers: {{key: nr, columns: {{nr: {{type: id}}, sex: {{type: category, values: [f, m], missing: false}}}}}}
  orders:
    parent: customers
    foreign_key: nr
    max_children: {most}
    columns: {{nr: {{type: id}}, paid: {{type: integer, bounds: {{learn: {epsilon}}}, missing: false}}}}
"""
        )
        return [
            found for found in db.plan(schema, epsilon=10, delta=1e-6, accountant="rdp").warnings if "cut off" in found
        ]

    def cut_off(epsilon):
        """Return the share of 24,000 purchases beyond the bounds, in nine draws of the noise."""
        spent = np.round(np.random.default_rng(0).lognormal(6, 1, 24_000)).astype(int)
        ends = [noisy_bounds(spent, epsilon=epsilon, max_records=25, integer=True) for _ in range(9)]
        return np.mean([(spent < low) | (spent > high) for low, high in ends])

    (warning,) = planned(25, 0.05)
    assert warning.startswith("tables.orders.columns.paid.bounds: at epsilon 0.05 ")
    assert cut_off(0.05) > 0.1
    enough = float(re.search(r"pay about ([0-9.]+)", warning)[1])
    assert planned(25, enough) == planned(2, 0.05) == []
    assert cut_off(enough) < 0.02


def test_small_figures_are_not_printed_as_nothing(small):
    plan = make(small, epsilon=1e-9, delta=1e-7)
    assert "ε = 1e-09" in plan.explain()
    assert "ε = 0\n" not in plan.explain() + "\n"
    assert "0.0000" not in plan.explain()


def test_what_does_not_apply_is_left_out(small, bought):
    lines = bought.explain().splitlines()
    (bounds,) = [line for line in lines if "find bounds" in line]
    assert "ε = 0.05" in bounds
    assert "δ" not in bounds  # a pure fact has none
    (values,) = [line for line in lines if "discover the values" in line]
    assert "δ = " in values
    (noise,) = [line for line in lines if line.startswith("Noise: ")]
    assert re.fullmatch(r"Noise: σ = [\d.]+, C = [\d.]+, q = [\d.]+, T = 6", noise)
    tables = db.plan(small.declared, method="statistics", epsilon=1.0, delta=1e-4, accountant="rdp").explain()
    assert "None" not in tables
    assert re.search(
        r"Noise to count each column in groups: standard deviation [\d.]+ in each cell of \d+ tables of counts", tables
    )


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "hint"),
    [
        ({"epsilon": None}, "epsilon", "has no default"),
        ({"delta": None}, "delta", "has no default"),
        ({"epsilon": 0}, "epsilon", "above 0"),
        ({"epsilon": -1.0}, "epsilon", "above 0"),
        ({"epsilon": math.nan}, "epsilon", "above 0"),
        ({"epsilon": math.inf}, "epsilon", "above 0"),
        ({"epsilon": 10**400}, "epsilon", "above 0"),
        ({"epsilon": True}, "epsilon", "above 0"),
        ({"epsilon": "1"}, "epsilon", "above 0"),
        ({"delta": 0.0}, "delta", "between 0 and 1"),
        ({"delta": 1.0}, "delta", "between 0 and 1"),
        ({"delta": math.nan}, "delta", "between 0 and 1"),
        ({"delta": 1 / 300}, "delta", "at least 1/units"),
        ({"method": "magic"}, "method", "there is no method"),
        ({"accountant": "moments"}, "accountant", "is not an accountant"),
        ({"colour": 3}, "colour", "is not a setting"),
        ({"steps": 0}, "steps", ""),
        ({"steps": 2.5}, "steps", ""),
        ({"critic_lr": math.nan}, "critic_lr", "finite"),
        ({"critic_lr": "fast"}, "critic_lr", "number"),
        ({"loss": "wgan", "gradient_penalty": 10.0}, None, "weights"),
        ({"max_grad_norm": 0.0}, "max_grad_norm", ""),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(small, changes, field, hint):
    with pytest.raises(SettingError) as caught:
        make(small, **changes)
    line = str(caught.value)
    assert "\n" not in line
    assert caught.value.remedy
    assert hint in line
    assert field is None or caught.value.field == field


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("steps", 0, "must be at least 1"),
        ("steps", 2.5, "must be a whole number"),
        ("critic_lr", "fast", "must be a number"),
        ("critic_lr", math.nan, "must be a finite number"),
        ("critic_lr", 0, "must be above 0"),
        ("critic_lr", 1e30, "must be at most 10"),
        ("loss", "sad", "must be one of "),
        ("width", True, "must not be true or false"),
    ],
)
def test_settings_are_refused_in_our_own_words(small, setting, value, message):
    with pytest.raises(SettingError) as caught:
        make(small, **{setting: value})
    assert caught.value.message.startswith(message)


def test_what_is_no_schema_is_refused():
    with pytest.raises(SchemaError, match="neither a schema nor a path"):
        db.plan(None, method="gan")


@pytest.mark.parametrize("figures", [{"epsilon": 1.0}, {"delta": 1e-5}, {"epsilon": 1.0, "delta": 1e-5}])
def test_gan_takes_no_budget(small, figures):
    with pytest.raises(SettingError, match="gives no guarantee"):
        db.plan(small.declared, method="gan", **figures)


def test_an_undeclared_fact_is_named_with_the_ways_out(small):
    text = small.declared_text.replace("bounds: [17, 90]", "bounds: undeclared").replace(
        "units: 300", "units: undeclared"
    )
    with pytest.raises(SchemaError) as caught:
        make(small, text)
    assert caught.value.field == "units"
    assert "1 more" in str(caught.value)
    assert "{learn: epsilon}" in str(caught.value)


def test_facts_that_cost_more_than_epsilon_are_refused_with_what_would_do(small):
    with pytest.raises(SettingError) as caught:
        make(small, small.bought_text, epsilon=0.15)
    assert caught.value.field == "epsilon"
    feasible = float(re.search(r"above ([0-9.]+),", caught.value.remedy)[1])
    assert 0.15 < feasible <= 0.2
    assert make(small, small.bought_text, epsilon=1.2 * feasible).noise_multiplier


def test_many_facts_may_cost_less_together_than_added_up(small):
    columns = "".join(f"  more{i}: {{type: boolean, missing: {{learn: 0.02}}}}\n" for i in range(60))
    plan = make(small, small.declared_text + columns, epsilon=1.1, accountant="rdp")
    assert sum(access.epsilon for access in plan.learned) > plan.epsilon
    assert accounting.epsilon_of(events(plan.touches), plan.delta, accountant="rdp") <= plan.epsilon


def test_a_delta_too_small_for_pld_falls_back_to_rdp_and_says_so(small, tmp_path):
    plan = make(small, delta=1e-18, accountant="auto")
    plan.save(tmp_path / "plan.json")
    for made in (plan, db.Plan.load(tmp_path / "plan.json")):
        assert made.accountant == "rdp"
        assert "\nNote: accountant rdp composes this plan, as pld cannot" in made.explain()
        assert "rdp is looser" not in made.explain()  # which is a warning to those who choose it
    with pytest.raises(SettingError, match="rdp"):
        make(small, delta=1e-18, accountant="pld")


# -- the file ----------------------------------------------------------------------------------------------------------


def edits(path, value):
    def change(data):
        *way, last = path
        for key in way:
            data = data[key]
        data[last] = value

    return change


EDITS = {
    "version": edits(["version"], 2),
    "method": edits(["method"], "gan"),
    "another method": edits(["method"], "magic"),
    "epsilon": edits(["epsilon"], 0.1),
    "no epsilon": edits(["epsilon"], None),
    "delta": edits(["delta"], 1e-6),
    "unit": edits(["unit", "max_records"], 5),
    "relation": edits(["relation"], "replace-one"),
    "accountant": edits(["accountant"], "moments"),
    "kind": edits(["kind"], "images"),
    "schema": edits(["schema", "units"], 30_000),
    "schema hash": edits(["schema_sha256"], "0" * 64),
    "steps": edits(["steps"], 60),
    "steps in the settings": edits(["settings", "steps"], 60),
    "unknown setting": edits(["settings", "colour"], 1),
    "sample rate": edits(["sample_rate"], 0.001),
    "noise": edits(["noise_multiplier"], 0.1),
    "no noise": edits(["noise_multiplier"], None),
    "endless noise": edits(["noise_multiplier"], math.inf),
    "noise as text": edits(["noise_multiplier"], "much"),
    "norm": edits(["max_grad_norm"], 100.0),
    "event": edits(["touches", 0, "event", "steps"], 1),
    "price": edits(["touches", 0, "epsilon"], 0.5),
    "price as text": edits(["touches", 0, "epsilon"], "cheap"),
    "no touches": edits(["touches"], []),
    "touches as text": edits(["touches"], "all"),
    "claim": edits(["guarantee", "epsilon"], 0.1),
    "sentence": edits(["guarantee", "sentence"], "Perfectly private."),
    "memory": edits(["memory_bytes"], "much"),
    "time": edits(["seconds_estimate"], -1),
    "endless time": edits(["seconds_estimate"], math.nan),
    "more": edits(["more"], 1),
    "settings as text": edits(["settings"], "fast"),
    "schema as text": edits(["schema"], "adult"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_file_is_refused(small, tmp_path, name):
    data = json.loads(json.dumps(small.plan.to_json()))
    EDITS[name](data)
    (tmp_path / "plan.json").write_text(json.dumps(data))
    with pytest.raises(DoublureError) as caught:
        db.Plan.load(tmp_path / "plan.json")
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_warnings_are_said_anew_and_not_believed(small):
    data = json.loads(json.dumps(small.plan.to_json())) | {"warnings": ["all is well"]}
    assert db.Plan.from_json(data).warnings == small.plan.warnings != ("all is well",)


@pytest.mark.parametrize("key", sorted(KEYS | {"schema"}))
def test_a_file_without_a_key_is_refused(small, key):
    data = json.loads(json.dumps(small.plan.to_json()))
    del data[key]
    with pytest.raises(DoublureError):
        db.Plan.from_json(data)


def test_less_noise_that_is_consistently_written_is_still_too_dear(small):
    """The composition is computed again: a file whose every figure agrees, but which costs more than it says."""
    data = small.plan.to_json()
    cheaper = 0.5 * small.plan.noise_multiplier
    text = json.dumps(data).replace(json.dumps(small.plan.noise_multiplier), json.dumps(cheaper))
    edited = json.loads(text)
    event = accounting.event_from_json(edited["touches"][0]["event"])
    edited["touches"][0]["epsilon"] = accounting.epsilon_of([event], small.delta, accountant="rdp")
    with pytest.raises(InputError, match="cost"):
        db.Plan.from_json(edited)


def test_a_price_of_another_machine_is_accepted(small):
    """Prices are floating-point results; a last digit that differs is no edit."""
    data = json.loads(json.dumps(small.plan.to_json()))
    data["touches"][0]["epsilon"] *= 1 - 1e-9
    assert db.Plan.from_json(data).touches[0].epsilon == data["touches"][0]["epsilon"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"plan"', "{}", '{"version": 1}', '{"version": NaN}', "\x00"])
def test_what_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InputError) as caught:
        db.Plan.load(tmp_path / "plan.json")
    assert "plan" in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        db.Plan.load(tmp_path / "plan.json")


def test_a_plan_cannot_be_changed(small):
    with pytest.raises(AttributeError):
        small.plan.epsilon = 0.1
    assert contents.VERSION == 1


# -- what a machine can hold -------------------------------------------------------------------------------------------


def listing(values: int, units: int = 30_000) -> db.Schema:
    column = {"type": "category", "values": [f"v{number}" for number in range(values)], "missing": False}
    small_one = {"type": "boolean", "missing": False}
    return db.Schema.from_plain(
        {"doublure": 1, "kind": "table", "units": units, "columns": {"small": small_one, "wide": column}}
    )


@pytest.mark.parametrize("method", ["gan", "dpgan"])
def test_a_run_that_cannot_be_held_is_refused_by_the_column_that_makes_it_wide(monkeypatch, method):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 8_000_000_000)
    asked = {} if method == "gan" else {"epsilon": 1.0, "delta": 1e-6, "accountant": "rdp"}
    with pytest.raises(SettingError) as caught:
        db.plan(listing(100_000), method=method, lot_size=4096, **asked)
    assert caught.value.field == "columns.wide"
    assert re.fullmatch(
        r"it has 100000 values: a run would need about [\d.]+ GB, and this machine has 8 GB", caught.value.message
    )
    assert "group rare values under other" in caught.value.remedy
    assert db.plan(listing(100_000), method=method, lot_size=256, **asked).memory_bytes < 8_000_000_000
    monkeypatch.setattr(machine, "memory_bytes", lambda: 10**12)
    assert db.plan(listing(100_000), method=method, lot_size=4096, **asked).memory_bytes > 8_000_000_000


def test_where_no_column_is_wide_the_lot_is_to_blame(monkeypatch):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 1_000_000_000)
    with pytest.raises(SettingError, match="smaller lot_size") as caught:
        db.plan(listing(3, units=10**6), method="gan", lot_size=10**6)
    assert caught.value.field == "memory"
    monkeypatch.setattr(machine, "memory_bytes", lambda: None)  # nobody knows
    db.plan(listing(3, units=10**6), method="gan", lot_size=10**6)


def test_what_a_larger_machine_planned_is_refused_before_it_is_charged(small, tmp_path, monkeypatch):
    book = small.book(tmp_path)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 1_000)
    with pytest.raises(SettingError, match="this machine has"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert book.spent.epsilon == 0
    assert [record.kind for record in book.entries] == ["open"]
    assert not (tmp_path / "run").exists()


def test_this_machine_has_memory():
    assert machine.memory_bytes() is None or machine.memory_bytes() > 10**8


@pytest.mark.parametrize("name", ["steps", "critic_lr", "lot_size", "width"])
def test_true_is_no_number(small, name):
    with pytest.raises(SettingError, match="true or false") as caught:
        make(small, **{name: True})
    assert caught.value.field == name


# -- methods from outside ----------------------------------------------------------------------------------------------


class Odd(type(registry.method("statistics"))):
    name = "odd"
    needs_torch = False


def test_a_method_whose_function_is_none_is_refused_where_it_is_registered():
    with pytest.raises(SettingError, match=r"^odd\.needs_torch: is called, and is no function; write it as a function"):
        registry.register(Odd(), "an odd one")
    assert "odd" not in registry.METHODS


def test_a_plan_of_a_method_that_is_not_registered_says_so(small):
    written = make(small).to_json() | {"method": "histograms"}
    with pytest.raises(InputError, match="is of the method histograms, which is not registered") as caught:
        db.Plan.from_json(written)
    assert "doublure.methods.registry.register" in caught.value.remedy
    assert "preset" not in str(caught.value)


def test_a_plan_of_one_step_is_the_one_that_was_written_before():
    """Its sentence said "1 noisy steps"; ledgers and folders know the plan by its hash."""
    text = "doublure: 1\nkind: images\nunits: 900\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 1]}\n"
    plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=1.0, delta=1e-5)
    assert ", 1 noisy step, " in plan.guarantee.sentence
    written = plan.to_json()
    written["guarantee"]["sentence"] = plan.guarantee.former_sentence
    former = json.loads(json.dumps(written, ensure_ascii=False).replace("1 noisy step,", "1 noisy steps,"))
    kept = {key: value for key, value in former.items() if key not in plans._BINDS_NOBODY}
    assert db.Plan.from_json(former) == plan
    assert plan.sha256 == hashlib.sha256(canonical_json(kept)).hexdigest()


def test_a_plan_that_coerces_says_that_no_fit_tells_how_much(small):
    schema = db.Schema.parse(small.declared_text + "misfit: coerce\n")
    plan = db.plan(schema, epsilon=1.0, delta=1e-5, accountant="rdp")
    assert any("misfit: coerce changes what does not fit" in warning for warning in plan.warnings)
    schema = db.Schema.parse(small.declared_text)
    assert not any("coerce" in each for each in db.plan(schema, epsilon=1.0, delta=1e-5, accountant="rdp").warnings)
