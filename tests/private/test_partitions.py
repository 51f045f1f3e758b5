"""OwnerPartitions of partitions add up to the answer of all, and what does not belong together is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planting import plant

from doublure.access import Access
from doublure.errors import NotAsPriced, SettingError
from doublure.private import partitions, whole_noise
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.codes import ColumnCodes, narrowest
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.private.partitions import Partitions, SequentialPartitions, add_totals
from doublure.private.queries.axes import Axis, Intervals, Patterns
from doublure.private.queries.counts import Counts
from doublure.private.queries.dependence import Dependence
from doublure.private.queries.query import Sensitivity
from doublure.private.records import PrivateRecords

ROWS = np.random.default_rng(3).integers(0, [3, 40, 70_000], size=(500, 3)).astype(np.float64)
TABLES = [
    (Axis.of_codes(0, 3),),
    (
        Axis.of_codes(0, 3),
        Intervals(part=1, starts=np.array([0.0, 7.0, 9.5, 38.0]), cells=np.array([2, 0, 1, 2]), size=3),
    ),
    (Intervals(part=2, starts=np.arange(0.0, 70_000, 999), cells=np.arange(71) % 5, size=5),),
    (Patterns(parts=(0, 1), marks=(2.0, 30.0), cells=np.arange(4), size=4), Axis.of_codes(0, 3)),
]
EXPECTED = [np.full([axis.size for axis in table], 10, dtype=np.int64) for table in TABLES]
QUERIES = {
    "counts": Counts(tables=TABLES, max_records=2),
    "scores": Dependence(tables=TABLES, expected=EXPECTED, max_records=2),
}


def held(rows=ROWS, unit=None):
    unit = np.arange(len(rows)) if unit is None else unit
    return PrivateRecords(rows, unit, len(set(unit)), lambda some: (some, None))


def on_disk(folder, rows=ROWS, block=64, most=1, path=None):
    blocks = [rows[first : first + block] for first in range(0, max(1, len(rows)), block)]
    types = [narrowest(0, 2), narrowest(-1, 40), narrowest(0, 70_000)]
    return ColumnCodes.write(blocks, types, most_records=lambda: most, folder=folder, path=path)


def total(query, records):
    places = records if isinstance(records, Partitions) else partitions.as_partitions(records)
    places.refuse_unfit(query)
    return places.ask(query, sample_rate=1.0).total


@pytest.mark.parametrize("size", [1, 64, 1000])
@pytest.mark.parametrize("query", QUERIES)
def test_partitions_add_up_to_the_whole(tmp_path, monkeypatch, query, size):
    monkeypatch.setattr("doublure.private.codes.PARTITION_RECORDS", size)
    codes = on_disk(tmp_path)
    assert len([*codes.partitions()._parts()]) == (1 if size == 1000 else 8)
    found, expected = total(QUERIES[query], codes.partitions()), total(QUERIES[query], held())
    assert found.dtype == expected.dtype == np.int64
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("query", QUERIES)
def test_in_whatever_order_and_company(query):
    parts = [held(ROWS[start::7]) for start in range(7)]
    expected = total(QUERIES[query], held()).tolist()
    for order in (parts, parts[::-1], [*parts, held(ROWS[:0])]):
        assert total(QUERIES[query], SequentialPartitions(lambda order=order: order)).tolist() == expected


def test_scores_are_counted_some_at_once(tmp_path, monkeypatch):
    expected = total(QUERIES["scores"], held()).tolist()
    for cells in (1, 13, 10**9):
        monkeypatch.setattr("doublure.private.queries.dependence._CELLS_AT_ONCE", cells)
        assert len([*QUERIES["scores"].sums()]) == {1: 4, 13: 3, 10**9: 1}[cells]
        assert total(QUERIES["scores"], on_disk(tmp_path).partitions()).tolist() == expected


def test_no_record_at_all(tmp_path):
    assert total(QUERIES["counts"], on_disk(tmp_path, ROWS[:0]).partitions()).tolist() == [0] * 29
    assert total(QUERIES["scores"], on_disk(tmp_path, ROWS[:0]).partitions()).tolist() == [
        each.sum() for each in EXPECTED
    ]


def test_a_unit_in_two_partitions_moves_the_sum_by_what_was_stated():
    """A border cuts a unit in two: its records move each table by as many as it has, and no more."""
    query, unit = QUERIES["counts"], np.repeat(ROWS[:1], 2, axis=0)
    without = [ROWS[:9], ROWS[9:20]]
    cut = [np.concatenate([ROWS[:9], unit[:1]]), np.concatenate([unit[1:], ROWS[9:20]])]
    counted = [
        total(query, SequentialPartitions(lambda parts=parts: [held(part) for part in parts]))
        for parts in (without, cut)
    ]
    moved = np.abs(counted[0] - counted[1])
    assert moved.sum() == query.sensitivity.l1
    assert np.sqrt((moved**2).sum()) == pytest.approx(query.sensitivity.l2)


def test_a_unit_with_too_many_records_in_all_partitions_is_refused(tmp_path):
    with pytest.raises(SettingError, match="more records than planned"):
        total(QUERIES["counts"], on_disk(tmp_path, most=3).partitions())
    with pytest.raises(SettingError, match="more records than planned"):
        total(QUERIES["counts"], SequentialPartitions(lambda: [held(), held(ROWS, np.arange(500) // 3)]))


class Stated(Partitions):
    """Partitions of which one states otherwise."""

    def __init__(self, **changes):
        self.changes = changes

    def refuse_unfit(self, query):
        """Refuse nothing."""

    def answers(self, query, *, sample_rate):
        answer = query.answer(held(), sample_rate=sample_rate)
        yield answer
        yield replace(answer, **self.changes)


OTHERWISE = {
    "sensitivity": {"sensitivity": Sensitivity(l1=8.0, l2=4.1)},
    "rate": {"sample_rate": 0.5},
    "unit": {"unit": 0.5},
    "shape": {"total": np.zeros(3, dtype=np.int64)},
    "type": {"total": np.zeros(29)},
}


def mechanism(authorised=None):
    event = DiscreteGaussianEvent(scale=10.0, tables=len(TABLES), records=2)
    access = Access(purpose="count", event=event)
    asked = [] if authorised is None else authorised
    made = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: asked.append(step))
    return made, access


@pytest.mark.parametrize("what", OTHERWISE)
def test_answers_that_state_otherwise_end_the_run(what):
    made, access = mechanism()
    with pytest.raises(NotAsPriced):
        made.release(QUERIES["counts"], access, Stated(**OTHERWISE[what]))


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_sum_that_looks_at_nothing_is_caught(monkeypatch, what):
    plant(monkeypatch, Partitions, "ask", ("answer.stated != found.stated", "False"))
    plant(
        monkeypatch,
        partitions,
        "add_totals",
        ("one.shape != other.shape or not (real or one.dtype == other.dtype)", "False"),
    )
    made, access = mechanism()
    with pytest.raises((pytest.fail.Exception, ValueError, SettingError)), pytest.raises(NotAsPriced):
        made.release(QUERIES["counts"], access, Stated(**OTHERWISE[what]))


def test_noise_is_added_once_and_paid_for_first(monkeypatch):
    """However many partitions there are (rules 2 and 6)."""
    acts = []
    made, access = mechanism(acts)
    noisy = whole_noise.gaussian

    def drawn(counts, *, scale):
        acts.append(("noise", scale, counts.tolist()))
        return noisy(counts, scale=scale)

    def parts():
        for start in range(7):
            acts.append("part")
            yield held(ROWS[start::7])

    monkeypatch.setattr(whole_noise, "gaussian", drawn)
    made.release(QUERIES["counts"], access, SequentialPartitions(parts))
    expected = total(QUERIES["counts"], held()).tolist()
    assert acts == ["part"] * 7 + ["part"] * 7 + [1] + [("noise", 10.0, expected)]  # looked at whether they fit first
    (ran,) = made.ran()
    assert ran["event"] == ran["expected"]
    with pytest.raises(SettingError, match="have been taken"):
        made.release(QUERIES["counts"], access, SequentialPartitions(parts))


def test_a_partition_that_fails_leaves_its_step_spent_and_gives_nothing_out():
    made, access = mechanism()

    def parts():
        yield held()
        if len(asked) > 1:
            raise OSError("a worker is gone")
        asked.append(1)

    asked = []
    asked.append(1)
    with pytest.raises(OSError, match="gone"):
        made.release(QUERIES["counts"], access, SequentialPartitions(parts))


def test_counts_by_name_are_added():
    assert add_totals({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": 1, "b": 5, "c": 4}


def test_an_answer_is_a_function_of_its_partition():
    """Asked again after a failure, a partition says the same, whatever was asked of others (a worker that is lost)."""
    parts = [held(ROWS[start::7]) for start in range(7)]
    alone = [query.answer(part, sample_rate=1.0).total.tolist() for query in QUERIES.values() for part in parts]
    again = [query.answer(part, sample_rate=1.0).total.tolist() for query in QUERIES.values() for part in parts[::-1]]
    assert alone[:7] == again[:7][::-1]
    assert alone[7:] == again[7:][::-1]


# -- codes on disk ----------------------------------------------------------------------------------------------------


def test_codes_that_are_to_stay_are_their_owners_alone(tmp_path):
    codes = on_disk(tmp_path, path=tmp_path / "codes")
    (file,) = tmp_path.iterdir()
    assert file.name == "codes"
    assert file.stat().st_mode & 0o777 == 0o600
    again = ColumnCodes.open(file)
    assert again.fingerprint == codes.fingerprint
    assert total(QUERIES["counts"], again.partitions()).tolist() == total(QUERIES["counts"], held()).tolist()
    for damage in (b"", file.read_bytes()[:-1], b"x" * 100, file.read_bytes()[-40:]):
        (tmp_path / "damaged").write_bytes(damage)
        assert ColumnCodes.open(tmp_path / "damaged") is None
    assert ColumnCodes.open(tmp_path / "nowhere") is None


def test_other_codes_have_no_name(tmp_path):
    codes = on_disk(tmp_path)
    assert [*tmp_path.iterdir()] == []
    assert repr(codes) == "ColumnCodes(private)"
    assert repr(codes.partitions()) == "SequentialPartitions(private)"
    with pytest.raises(TypeError, match="never serialised"):
        codes.__reduce__()


def test_a_code_that_does_not_fit_its_type_is_no_code(tmp_path):
    for odd in (0.5, 128.0, np.nan):
        rows = ROWS.copy()
        rows[7, 0] = odd
        with np.errstate(invalid="ignore"), pytest.raises(TypeError, match="no whole number"):
            on_disk(tmp_path, rows, path=tmp_path / "codes")
        assert [*tmp_path.iterdir()] == []


def test_a_fingerprint_is_of_all_records_in_their_order(tmp_path):
    one = on_disk(tmp_path).fingerprint
    assert one == on_disk(tmp_path).fingerprint
    for other in (ROWS[::-1], ROWS[1:], np.where(ROWS == 2, 1.0, ROWS)):
        assert on_disk(tmp_path, other).fingerprint != one


def test_narrowest():
    ranges = [(0, 127), (0, 128), (-129, 0), (0, 2**31 - 1), (0, 2**31), (-(2**53), 2**53)]
    assert [narrowest(*ends).itemsize for ends in ranges] == [1, 2, 2, 4, 8, 8]
