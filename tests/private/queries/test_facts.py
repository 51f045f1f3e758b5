"""Bought facts: how far one unit moves their counts, and that what is learned follows from the noisy ones alone."""

from __future__ import annotations

import datetime
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from planting import plant
from scipy import stats

from doublure.access import Access
from doublure.data.series import open_series
from doublure.data.tables.opening import Table, open_table
from doublure.errors import NotAsPriced, SchemaError, SettingError
from doublure.noisy_counts import CandidateGrid
from doublure.private import facts, whole_noise
from doublure.private.accounting import ApproximateEvent, PureEvent
from doublure.private.executed import as_priced
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries import facts as module
from doublure.private.queries.facts import Categories, Fact, Shares, make_fact_query
from doublure.schema import Schema
from doublure.schema.columns import IntegerColumn, RealColumn
from doublure.schema.scalars import EXACT

ALPHA = 1e-6
SIZE = 24_000
TEXT = """
doublure: 1
kind: table
unit: {name: person, id: who, max_records: 3}
units: {learn: 0.3, magnitude: 50}
misfit: coerce
columns:
  who: {type: id}
  age: {type: integer, bounds: {learn: 0.3}, missing: {learn: 0.3}}
  pay: {type: real, bounds: {learn: 0.3, magnitude: 300}, precision: 2, missing: false}
  day: {type: date, bounds: {learn: 0.3}, missing: false}
  at: {type: datetime, bounds: {learn: 0.3}, missing: false}
  job: {type: category, values: {learn: 0.3}, other: Other, missing: true}
  out: {type: category, values: ["no", "yes"], missing: false, roles: [condition], shares: {learn: 0.3}}
"""
SCHEMA = Schema.parse(TEXT)
QUESTIONS = {question.path: question for question in SCHEMA.questions}
LEARNED = {"columns.job.values": ("cook", "nurse")}
PATHS = list(QUESTIONS)
ORDINARY = {"age": 40, "pay": 12.5, "day": "2024-02-03", "at": "2024-02-03T04:05", "job": "cook", "out": "no"}
UNITS = {
    "ordinary": ORDINARY,
    "extreme": ORDINARY | {"age": 10**15, "pay": 3e38, "day": "1677-01-01", "at": "2262-01-01T00:00", "job": "x" * 99},
    "missing": ORDINARY | {"age": None, "job": None},
    "unknown": ORDINARY | {"job": "astronaut of Kiruna", "out": "perhaps"},
}


def frame_of(units):
    """Return a table of some people's records."""
    rows = [{"who": who} | record for who, records in units.items() for record in records]
    return pd.DataFrame(rows, columns=["who", *ORDINARY])


def loaded(units):
    if not units:
        empty = loaded({"a": [ORDINARY]}).frame[:0]
        return Table(frame=empty, unit=np.zeros(0, dtype=np.int64), n_units=0)
    return open_table(frame_of(units)).load(SCHEMA, at_least=0)


def query(path):
    return make_fact_query(QUESTIONS[path], SCHEMA, LEARNED)


def access_of(path):
    fact, epsilon = QUESTIONS[path].fact, QUESTIONS[path].epsilon
    event = ApproximateEvent(epsilon=epsilon, delta=1e-6) if fact == "values" else PureEvent(epsilon=epsilon)
    return Access(purpose=f"learn {path}", event=event, path=path)


def learned(path, table, authorise=lambda access, step: None):
    access = access_of(path)
    mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=authorise)
    found = facts.learn(
        QUESTIONS[path], table, SCHEMA, mechanism=mechanism, access=access, learned=LEARNED
    )  # fmt: skip
    return found, mechanism


PEOPLE = {
    f"p{number}": [ORDINARY | {"age": 20 + number, "pay": number * 1.5}] * (1 + number % 3) for number in range(20)
}


# -- sensitivity -------------------------------------------------------------------------------------------------------


def apart(one, other):
    """Return by how much two answers differ, in L1."""
    if isinstance(one, dict):
        return sum(abs(one.get(name, 0) - other.get(name, 0)) for name in {*one, *other})
    assert one.shape == other.shape
    return int(np.abs(one - other).sum())


def require_neighbours(path, unit, records):
    """Require that one unit more moves the counts by no more than noise and price are made for."""
    asked = query(path)
    one, other = loaded(PEOPLE), loaded(PEOPLE | {"one more": [unit] * records})
    answers = [asked.answer(table, sample_rate=1.0) for table in (one, other)]
    moved = apart(*(answer.total for answer in answers))
    assert moved <= asked.sensitivity.l1
    assert all(answer.sensitivity == asked.sensitivity for answer in answers)
    return moved


def bounds_over(points):
    """Return the query of bounds over a partition that a column type of somebody else has."""

    class Theirs(IntegerColumn):
        def partition(self, magnitude):
            return CandidateGrid(points=np.array(points))

        def numbers_of(self, cells):
            raise AssertionError("no method of a column is given a private cell")

    question = query("columns.age.bounds").question
    return module.Bounds(question=question, max_records=3, moved=3, column=Theirs(), name="age")


@pytest.mark.parametrize("points", [[3.0], [0.0, 1e9], [-1e300, 0.0, 35.5]], ids=str)
@pytest.mark.parametrize("unit", UNITS)
def test_another_partition_raises_no_sensitivity(points, unit):
    """The query clips cells onto the partition itself: each falls in one cell at most."""
    asked = bounds_over(points)
    totals = [asked.counted(loaded(units)) for units in (PEOPLE, PEOPLE | {"one more": [UNITS[unit]] * 3})]
    assert apart(*totals) <= asked.sensitivity.l1


@pytest.mark.parametrize("points", [[0.0, 0.0], [90.0, 40.0, 0.0], [5.0, -5.0, 60.0], [0.0, np.nan, 2.0]], ids=str)
@pytest.mark.parametrize("units", [{}, PEOPLE], ids=["nobody", "people"])
def test_a_partition_out_of_order_is_refused_whatever_the_records(points, units):
    with pytest.raises(SchemaError, match="partition that is not in order"):
        bounds_over(points).counted(loaded(units))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("path", PATHS)
def test_one_unit_moves_counts_by_no_more_than_is_stated(path, unit):
    for records in (1, 2, 3, 7):
        require_neighbours(path, UNITS[unit], records)


TIGHT = {
    "units": ("ordinary", 1), "columns.age.missing": ("missing", 3), "columns.job.values": ("unknown", 3),
    "columns.age.bounds": ("extreme", 3), "columns.pay.bounds": ("extreme", 3), "columns.day.bounds": ("extreme", 3),
    "columns.at.bounds": ("extreme", 3), "columns.out.shares": ("ordinary", 3),
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_what_is_stated_is_tight(path):
    """A scale for one record less would be too small."""
    unit, moved = TIGHT[path]
    assert require_neighbours(path, UNITS[unit], 9) == moved
    assert query(path).sensitivity.l1 == query(path).sensitivity.l2 == moved


@pytest.mark.parametrize("path", [path for path in PATHS if path != "units"])
def test_a_price_of_one_record_is_caught(monkeypatch, path):
    plant(monkeypatch, module, "make_fact_query", ("most * schema.cells_of(name, question.fact)", "1"))
    with pytest.raises(AssertionError):
        require_neighbours(path, UNITS[TIGHT[path][0]], 9)


SERIES = """
doublure: 1
kind: series
unit: {name: meter, id: meter, max_records: 2}
units: 50
series: {time: at, length: 4, step: 6h, timezone: UTC, gaps: missing}
channels:
  kw: {type: real, bounds: {learn: 0.3}, missing: {learn: 0.3}}
"""


def readings(meters, low, high):
    """Return two days of each meter: one reading low, one high, one missing."""
    steps = pd.date_range("2024-01-01", periods=8, freq="6h", tz="UTC").strftime("%Y-%m-%dT%H:%MZ")
    kw = np.tile([low, high, np.nan, (low + high) / 2], 2)
    parts = [pd.DataFrame({"meter": meter, "at": steps, "kw": kw}) for meter in meters]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(("fact", "moved"), [("bounds", 4), ("missing", 2)])
def test_a_series_adds_as_many_cells_as_the_schema_says(fact, moved):
    schema = Schema.parse(SERIES)
    (question,) = (one for one in schema.questions if one.fact == fact)
    asked = make_fact_query(question, schema, {})
    few = readings([f"m{number}" for number in range(5)], 1.5, 3.0)
    more = pd.concat([few, readings(["one more"], -700.0, 7e5)], ignore_index=True)
    one, other = (
        asked.answer(open_series(frame).load(schema, at_least=0), sample_rate=1.0).total for frame in (few, more)
    )
    assert apart(one, other) == asked.sensitivity.l1 == moved


@pytest.mark.parametrize("path", [path for path in PATHS if path != "units"])
def test_units_with_more_records_than_planned_are_refused_before_anything_is_asked(path):
    table = loaded(PEOPLE)
    crowded = Table(frame=table.frame, unit=table.unit // 2, n_units=table.n_units)
    asked = []
    with pytest.raises(SettingError, match="more records than planned") as refused:
        learned(path, crowded, authorise=lambda access, step: asked.append(step))
    assert refused.value.field == "max_records"
    assert asked == []


def test_opendp_counts_by_the_sensitivity_we_use():
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import symmetric_distance
    from opendp.mod import enable_features
    from opendp.transformations import make_count_by

    enable_features("contrib")
    count_by = make_count_by(vector_domain(atom_domain(T=str)), symmetric_distance(), TV="i64")
    assert count_by.map(3) == (3, 3, 3)


# -- counts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_nobody_is_counted_as_zeros(path):
    total = query(path).answer(loaded({}), sample_rate=1.0).total
    assert not any(total.values()) if isinstance(total, dict) else not total.any()


def test_counts_are_those_of_the_table():
    table = loaded({"a": [ORDINARY, ORDINARY | {"age": None}], "b": [ORDINARY | {"job": "clown", "out": "yes"}]})

    def counted(path):
        return query(path).answer(table, sample_rate=1.0).total

    assert counted("units").tolist() == [2]
    assert counted("columns.age.missing").tolist() == [1]
    assert counted("columns.job.values") == {"cook": 2, "clown": 1}
    assert counted("columns.out.shares").tolist() == [2, 1]
    assert counted("columns.age.bounds").sum() == 2  # no cell for what is missing
    assert counted("columns.day.bounds").sum() == counted("columns.pay.bounds").sum() == 3


def test_discovery_counts_texts_and_leaves_out_what_is_missing():
    values = ["b", "a", None, "b", float("nan"), "c\0", ""]
    table = Table(frame=pd.DataFrame({"job": pd.Series(values, dtype=object)}), unit=np.arange(7), n_units=7)
    found = query("columns.job.values").answer(table, sample_rate=1.0).total
    assert found == {"b": 2, "a": 1, "c\0": 1, "": 1}
    assert all(type(name) is str and type(count) is int for name, count in found.items())


def test_shares_of_what_is_unknown_go_to_other_or_nowhere():
    shared = Schema.parse(TEXT.replace("missing: true}", "missing: false, roles: [condition], shares: {learn: 0.3}}"))
    (question,) = (one for one in shared.questions if one.path == "columns.job.shares")
    asked = make_fact_query(question, shared, LEARNED)
    assert asked.domain == ("cook", "nurse", "Other")
    table = Table(frame=pd.DataFrame({"job": ["cook", "clown", None, "nurse", "judge"]}), unit=np.arange(5), n_units=5)
    assert asked.answer(table, sample_rate=1.0).total.tolist() == [1, 1, 2]
    table = Table(frame=pd.DataFrame({"out": ["no", "perhaps", "yes", "no"]}), unit=np.arange(4), n_units=4)
    assert query("columns.out.shares").answer(table, sample_rate=1.0).total.tolist() == [2, 1]


def test_numbers_are_counted_on_the_grid_and_at_its_ends():
    grid = query("columns.pay.bounds").grid
    first, second, last = grid.points[0], grid.points[1], grid.points[-1]
    values = np.array([-math.inf, first, (first + second) / 2, second, np.nan, last, math.inf])
    assert np.flatnonzero(module.count_on_grid(values, grid)).tolist() == [0, 1, 2, grid.cells - 1]
    assert module.count_on_grid(values, grid)[[0, 1, 2, -1]].tolist() == [2, 1, 1, 2]


def test_a_grid_is_as_fine_as_its_column():
    pay = query("columns.pay.bounds").grid
    assert pay.points.tolist() == CandidateGrid.from_decades(integer=False, precision=2, magnitude=300).points.tolist()
    assert (
        pay.points.tolist() != CandidateGrid.from_decades(integer=False, precision=None, magnitude=300).points.tolist()
    )


def test_the_values_of_shares_are_those_found_and_what_others_are_called_once():
    job = SCHEMA.columns["job"]
    assert module._domain(job, ("cook", "Other")) == ("cook", "Other")
    assert module._domain(job, ("cook",)) == ("cook", "Other")
    assert module._domain(job.model_copy(update={"other": None}), ("cook",)) == ("cook",)


def test_a_lot_is_no_place_for_a_fact():
    with pytest.raises(SettingError) as refused:
        query("units").answer(loaded(PEOPLE), sample_rate=0.5)
    assert refused.value.field == "sample_rate"


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_costs_what_was_priced(path):
    asked = []
    _, mechanism = learned(path, loaded(PEOPLE), authorise=lambda access, step: asked.append((access.path, step)))
    assert asked == [(path, 0)]
    assert as_priced(mechanism.executed.to_json())
    with pytest.raises(SettingError, match="all noisy steps"):
        mechanism.release(query(path), access_of(path), loaded(PEOPLE))


@pytest.mark.parametrize("path", [path for path in PATHS if path != "units"])
def test_counts_of_less_than_is_stated_stop_the_run(monkeypatch, path):
    plant(monkeypatch, Fact, "answer", ("sensitivity=self.sensitivity", "sensitivity=Sensitivity.of_cells(1, 1)"))
    with pytest.raises(NotAsPriced):
        learned(path, loaded(PEOPLE))


def frozen(patch, counts):
    """Hold what noise gives out fixed, whatever goes in."""
    held = {
        "none": lambda place: 0,
        "noise": lambda place: (7 * place) % 5 - 2,
        "some": lambda place: 10**6 * (place % 3 == 1),
    }[counts]

    def laplace(exact, *, epsilon, moved):
        return ScaledNoise(np.array([held(place) for place in range(len(exact))]), moved / epsilon)

    def thresholded(exact, *, epsilon, delta, moved):
        return whole_noise.Released({"nurse": 9, "cook": 9, "judge": 12}, moved / epsilon, delta)

    patch.setattr(whole_noise, "laplace", laplace)
    patch.setattr(whole_noise, "thresholded", thresholded)


TABLES = [
    {}, {"a": [ORDINARY]}, PEOPLE, {"a": [UNITS["extreme"]] * 3}, PEOPLE | {"one": [UNITS["unknown"]] * 2},
    {"a": [UNITS["missing"]], "b": [UNITS["unknown"]]}, {f"p{number}": [ORDINARY] * 3 for number in range(40)},
    {f"p{number}": [ORDINARY | {"job": "judge", "out": "yes"}] * 3 for number in range(40)},
]  # fmt: skip


def check_answers_follow_from_noisy_counts_alone(patch, path, counts):
    with patch.context() as inner:
        frozen(inner, counts)
        found = [learned(path, loaded(units))[0] for units in TABLES]
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("counts", ["none", "noise", "some"])
@pytest.mark.parametrize("path", PATHS)
def test_answers_follow_from_public_numbers_and_noisy_counts_alone(monkeypatch, path, counts):
    """With the noisy counts held fixed, no record has a say: not even the total that shares are taken of."""
    check_answers_follow_from_noisy_counts_alone(monkeypatch, path, counts)


@pytest.mark.parametrize(
    ("owner", "path", "read"),
    [
        (Shares, "columns.out.shares", ("noisy", "np.array(self.__dict__['kept'])")),
        (Categories, "columns.job.values", ("(-noisy[name], name)", "(-self.__dict__['kept'].get(name, 0), name)")),
    ],
    ids=["shares of the exact counts", "names by their exact counts"],
)
def test_answers_that_look_behind_the_noise_are_caught(monkeypatch, owner, path, read):
    counted = owner.counted

    def keeping(self, records):
        self.__dict__["kept"] = counted(self, records)
        return self.__dict__["kept"]

    monkeypatch.setattr(owner, "counted", keeping)
    plant(monkeypatch, owner, "read", read)
    with pytest.raises(AssertionError):
        check_answers_follow_from_noisy_counts_alone(monkeypatch, path, "some")


def test_counts_become_what_the_schema_holds(monkeypatch):
    frozen(monkeypatch, "none")
    table = loaded(PEOPLE)
    answers = {path: learned(path, table)[0] for path in PATHS}
    assert answers["units"] == 1  # at least one, whatever noise says
    assert answers["columns.age.missing"] is False
    assert answers["columns.job.values"] == ("judge", "cook", "nurse")  # the most frequent first, equals by name
    assert answers["columns.out.shares"] == {"no": 0.5, "yes": 0.5}
    assert answers["columns.pay.bounds"] == (-500.0, 500.0)
    assert answers["columns.day.bounds"] == (datetime.date(1850, 1, 1), datetime.date(2150, 1, 1))
    assert answers["columns.at.bounds"] == (datetime.datetime(1850, 1, 1), datetime.datetime(2150, 1, 1))
    assert all(type(end) is int for end in answers["columns.age.bounds"])
    SCHEMA.resolve(answers)
    frozen(monkeypatch, "some")
    assert learned("columns.age.missing", table)[0] is False  # a count of nought
    monkeypatch.setattr(whole_noise, "thresholded", lambda exact, **_: whole_noise.Released({}, 3 / 0.3, 1e-6))
    assert learned("columns.job.values", table)[0] == ("Other",)


# -- use ---------------------------------------------------------------------------------------------------------------


def bought(text, cells, name="x", fact="values", epsilon=0.5, delta=1e-10):
    """Return noisy counts, and what they say, of one column; a record each."""
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 100\ncolumns:\n  {name}: {text}\n")
    (question,) = schema.questions
    event = PureEvent(epsilon=epsilon) if fact != "values" else ApproximateEvent(epsilon=epsilon, delta=delta)
    access = Access(purpose="learn", event=event, path=question.path)
    mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: None)
    asked = make_fact_query(question, schema, {})
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object)})
    table = Table(frame=frame, unit=np.arange(len(cells)), n_units=len(cells))
    noisy = mechanism.release(asked, access, table)
    return noisy, asked.read(noisy)


def key_names(epsilon):
    return f"{{type: category, values: {{learn: {epsilon}}}, other: Other, missing: false}}"


def test_discovery_finds_the_frequent_and_hides_the_rare():
    values = ["common"] * 5000 + ["usual"] * 3000 + [f"secret {i}" for i in range(2000)]
    noisy, found = bought(key_names(0.5), values)
    assert found == ("common", "usual")
    assert abs(noisy["common"] - 5000) < 100
    assert set(noisy) == {"common", "usual"}


def test_discovery_does_not_depend_on_the_order_of_records():
    values = list("aabbbcddddd" * 100)
    found = [bought(key_names(5.0), order, epsilon=5.0)[1] for order in (values, values[::-1], sorted(values))]
    assert found == [("d", "b", "a", "c")] * 3


@pytest.mark.parametrize("values", [[], [None, None], ["alone"]])
def test_discovery_of_nothing_is_empty(values):
    assert bought(key_names(1.0), values, epsilon=1.0) == ({}, ("Other",))


def test_many_distinct_values_are_no_trouble():
    values = np.concatenate([np.arange(10**5).astype(str), np.repeat(["often"], 2000)])
    assert bought(key_names(1.0), values, epsilon=1.0, delta=1e-12)[1] == ("often",)


def test_numbers_of_units_are_close_and_at_least_one():
    column = "x: {type: boolean, missing: false}"
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: {{learn: 0.1, magnitude: 9}}\ncolumns:\n  {column}\n")
    (question,) = schema.questions
    asked = make_fact_query(question, schema, {})

    def found(units):
        access = Access(purpose="count units", event=PureEvent(epsilon=0.1), path="units")
        mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: None)
        frame = pd.DataFrame(index=range(units))
        table = Table(frame=frame, unit=np.arange(units), n_units=units)
        return asked.read(mechanism.release(asked, access, table))

    assert abs(found(30_000) - 30_000) < 200
    empty = [found(0) for _ in range(200)]
    assert min(empty) == 1
    assert 50 < empty.count(1) < 160  # more than half of them: clipped, not reflected


def test_missing_cells_are_noticed():
    """An alarm at nothing is false once in a hundred times."""
    text = "{type: integer, bounds: [0, 9], missing: {learn: 0.05}}"
    asked = {"fact": "missing", "epsilon": 0.05}
    alarms = sum(bought(text, [1.0] * 50, **asked)[1] for _ in range(300))
    assert stats.binomtest(alarms, 300, 0.01, alternative="greater").pvalue > ALPHA
    assert bought(text, [1.0] * 50 + [None] * 800, **asked)[1]


def test_bounds_of_numbers_that_are_no_array_of_numbers_are_found():
    found = bought("{type: integer, bounds: {learn: 0.5}, missing: false}", [3, 40] * 2000, fact="bounds")[1]
    assert found[0] <= 3 < 40 <= found[1] <= 100


def test_bounds_in_days_and_seconds_are_bounds_of_years():
    draw = np.random.default_rng(0)
    days = np.datetime64("2001-03-04") + draw.integers(0, 2_000, SIZE)
    first, last = bought("{type: date, bounds: {learn: 0.5}, missing: false}", pd.Series(days), fact="bounds")[1]
    assert (first, last) == (datetime.date(2001, 1, 1), datetime.date(2007, 1, 1))
    moments = days.astype("datetime64[s]") + draw.integers(0, 86_400, SIZE)
    text = "{type: datetime, bounds: {learn: 0.5}, missing: false}"
    first, last = bought(text, pd.Series(moments), fact="bounds")[1]
    assert (first, last) == (datetime.datetime(2001, 1, 1), datetime.datetime(2007, 1, 1))


@pytest.mark.parametrize(
    ("lower", "upper", "cut"),
    [
        (-3.0, 4.0, (-3.0, 4.0)), (-9.0, 9.0, (-5.0, 5.0)), (7.0, 9.0, (0.0, 5.0)), (-9.0, -7.0, (-5.0, 0.0)),
        (0.5, 0.5, (0.0, 0.5)), (-0.5, -0.5, (-0.5, 0.0)), (-9.0, 2.0, (-5.0, 2.0)), (2.0, 9.0, (2.0, 5.0)),
    ],
)  # fmt: skip
def test_bounds_beyond_what_can_be_counted_are_cut_off(lower, upper, cut):
    column = RealColumn(step=5.0 / EXACT)  # float64 counts its steps up to 5
    assert column.bought(lower, upper) == cut


@pytest.mark.parametrize(
    ("kind", "most"), [("integer", 2**53), ("real", math.inf), ("real, precision: 2", 2**53 / 100)]
)
def test_bounds_are_never_wider_than_can_be_counted(monkeypatch, kind, most):
    """Noise may put an end anywhere on the grid: both beyond what float64 counts, too."""
    text = f"{{type: {kind}, bounds: {{learn: 0.5}}, missing: false}}"
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 100\ncolumns:\n  x: {text}\n")
    (question,) = schema.questions
    asked = make_fact_query(question, schema, {})
    size = asked.grid.cells
    for ends in itertools.combinations_with_replacement((0, 1, size // 4, size // 2, size - 2, size - 1), 2):
        noisy = np.zeros(size, dtype=np.int64)
        noisy[list(ends)] = 10**9
        lower, upper = asked.read(noisy)
        assert -math.inf < lower < upper < math.inf
        assert max(-lower, upper) <= most
        if kind == "integer":
            assert type(lower) is type(upper) is int
        schema.resolve({question.path: (lower, upper)})
