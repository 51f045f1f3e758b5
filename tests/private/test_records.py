"""Private records: whose they are, in what order, and what becomes of them when a network has seen them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from doublure.errors import SettingError
from doublure.private import independence
from doublure.private import records as module
from doublure.private.records import PrivateRecords

LEFT, RIGHT = 2, 3


def split(rows):
    return rows[:, LEFT:], rows[:, :LEFT]


def records(rows, unit=None, n_units=None, expand=split):
    rows = torch.as_tensor(rows, dtype=torch.float32).reshape(len(rows), -1 if len(rows) else LEFT + RIGHT)
    unit = np.arange(len(rows)) if unit is None else np.asarray(unit)
    n_units = (int(unit.max()) + 1 if len(unit) else 0) if n_units is None else n_units
    return PrivateRecords(rows, unit.astype(np.int64), n_units, expand)


@pytest.fixture
def unasked(monkeypatch):
    """Leave out the look at made-up records, so that functions see the true ones alone."""
    monkeypatch.setattr(independence, "refuse_meeting_rows", lambda *_, **named: None)


# -- what is held ------------------------------------------------------------------------------------------------------


def fingerprint(rows, unit):
    owner = np.asarray(unit)
    return PrivateRecords(torch.tensor(rows), owner, int(owner.max()) + 1, lambda body: (body, None)).fingerprint


def test_a_fingerprint_tells_values_order_and_units(monkeypatch):
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    one = fingerprint(rows, [0, 1, 2])
    assert one == fingerprint(rows, [0, 1, 2])
    others = {fingerprint(rows[::-1], [0, 1, 2]), fingerprint(rows, [0, 0, 1]), fingerprint(rows, [0, 1, 1])}
    others |= {fingerprint([*rows[:2], [5.0, 6.5]], [0, 1, 2]), fingerprint(rows[:2], [0, 1])}
    assert one not in others
    assert len(others) == 5
    monkeypatch.setattr(module, "_HASHED", 2)  # however many are looked at together
    assert one == fingerprint(rows, [0, 1, 2])


def test_some_units_keep_all_of_their_records_and_are_numbered_anew():
    rows = np.arange(25.0).reshape(5, 5)
    whole = records(rows, [2, 0, 1, 2, 0])
    some = whole.of_units(np.array([True, False, True]))
    assert (some.n_units, some.most_records) == (2, 2)
    for number, unit in enumerate((0, 2)):
        (body, _, _, _), (expected, _, _, _) = some.lot(np.array([number])), whole.lot(np.array([unit]))
        assert torch.equal(body, expected)
    nobody = whole.of_units(np.zeros(3, dtype=bool))
    assert (nobody.n_units, nobody.most_records) == (0, 0)


def test_an_order_by_bodies_follows_nothing_else():
    rows = torch.randn(30, 3, generator=torch.Generator().manual_seed(1))
    order, labels = torch.randperm(30, generator=torch.Generator().manual_seed(2)), torch.arange(30) % 2

    def ordered(places):
        kept = torch.cat([rows, labels[:, None].float()], dim=1)[places]
        made = PrivateRecords(kept, np.arange(30), 30, lambda body: (body[:, :3], body[:, 3:]))
        return [torch.cat(parts) for parts in zip(*made.by_body().expanded(7), strict=True)]

    (one, labels_of_one), (other, labels_of_other) = ordered(torch.arange(30)), ordered(order)
    assert torch.equal(one, other)
    assert torch.equal(labels_of_one, labels_of_other)
    assert not torch.equal(one, rows)


def test_conditions_are_one_for_each_record():
    made = PrivateRecords(torch.zeros(3, 2), np.arange(3), 3, lambda body: (body, None))
    with pytest.raises(ValueError, match="one condition for each record"):
        made.with_conditions(torch.zeros(2, 4))


@pytest.mark.parametrize("given", [np.asarray, torch.tensor, list], ids=["array", "tensor", "list"])
def test_records_come_from_whatever_holds_rows(given):
    rows, unit = np.arange(10.0).reshape(5, 2), np.array([1, 0, 2, 0, 1])
    kept = PrivateRecords(given(rows.tolist()), unit, 3, lambda body: (body, None))
    in_order = rows[[1, 3, 0, 4, 2]]  # unit by unit, each unit's as they came
    chunks = list(kept.chunks(2))
    assert all(type(chunk) is np.ndarray for chunk in chunks)
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(chunks), in_order)
    body, condition, group, groups = kept.lot(np.array([0, 2]))
    assert (condition, groups, group.tolist()) == (None, 2, [0, 0, 1])
    np.testing.assert_array_equal(body.numpy(), rows[[1, 3, 2]])
    assert (kept.parts, kept.most_records) == (2, 2)


def test_as_many_records_as_units_need_not_be_one_of_each():
    kept = records(np.arange(10.0).reshape(2, 5), [0, 0], n_units=2)
    body, _, group, groups = kept.lot(np.array([0, 1]))
    assert (len(body), group.tolist(), groups) == (2, [0, 0], 2)
    assert len(kept.lot(np.array([1]))[0]) == 0


def test_no_records_are_one_chunk_of_none():
    """Whoever joins what chunks come to needs something to join."""
    kept = records([])
    ((body, condition),) = kept.expanded(100)
    assert (body.shape, condition.shape) == ((0, RIGHT), (0, LEFT))
    assert [len(chunk) for chunk in kept.chunks(1)] == [0]
    assert [len(chunk) for chunk in records(torch.zeros(4, LEFT + RIGHT)).chunks(2)] == [2, 2]


def test_nobody_is_of_the_shape_of_everybody():
    body, condition = records(torch.zeros(4, LEFT + RIGHT)).empty_lot
    assert (body.shape, condition.shape) == ((0, RIGHT), (0, LEFT))
    assert records(torch.zeros(4, LEFT + RIGHT)).bodies().empty_lot[1] is None


def test_holding_records_needs_no_torch():
    code = (
        "import sys, numpy as np; from doublure.private.records import PrivateRecords; "
        "kept = PrivateRecords([[1.0], [2.0]], np.arange(2), 2, None); "
        "print(sum(len(chunk) for chunk in kept.chunks(1)), kept.fingerprint[:0], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]


# -- the same records in another form ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("unasked")
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("labelled", [True, False])
def test_mapped_records_keep_units_rows_and_conditions(rows, labelled, apart):
    values = torch.arange(5.0 * (LEFT + RIGHT)).reshape(5, -1)
    unit = np.array([2, 0, 2, 1, 0])
    kept = records(values, unit=unit, n_units=4, expand=split if labelled else lambda rows: (rows[:, LEFT:], None))
    sizes = []

    def doubled(body):
        sizes.append(len(body))
        return torch.cat([body * 2, body[:, :1]], dim=1)

    mapped = kept.mapped(doubled, RIGHT + 1, rows=rows, apart=apart)
    assert set(sizes) == {rows} if apart else max(sizes) == min(rows, 5)
    assert (mapped.n_units, mapped.most_records, len(mapped.lot(np.array([3]))[0])) == (4, 2, 0)
    for unit in range(4):
        body, condition, _, _ = kept.lot(np.array([unit]))
        found, label, _, _ = mapped.lot(np.array([unit]))
        assert torch.equal(found, torch.cat([body * 2, body[:, :1]], dim=1))
        assert (label is None) == (not labelled)
        if labelled:
            assert torch.equal(label, condition)
    (whole,) = mapped.expanded(100)
    assert whole[0].dtype == torch.float32
    assert {chunk.dtype for chunk in mapped.chunks(2)} == {np.dtype(np.float16)}  # half of the room


def places_of(rows, size):
    """Return where in its batch a function saw each record, by the record's first number; all batches are full."""
    seen = {}

    def watching(body):
        assert body.shape == (size, RIGHT)
        for place, row in enumerate(body):
            if row.any():
                assert seen.setdefault(float(row[0]), place) == place
        return body

    records(rows).mapped(watching, RIGHT, rows=size, apart=True)
    return seen


@pytest.mark.usefixtures("unasked")
def test_a_records_place_in_its_batch_is_its_own():
    """Whoever is added in front, between or behind, and in whatever order: nobody else's place changes."""
    rows = 1.0 + torch.arange(60.0 * (LEFT + RIGHT)).reshape(60, -1)
    whole = places_of(rows, 7)
    assert len(whole) == 60
    assert len(set(whole.values())) == 7
    for some in (
        rows[1:],
        rows[:-1],
        rows[::3],
        rows.flip(0),
        rows[torch.randperm(60, generator=torch.Generator().manual_seed(1))],
        rows[:1],
    ):
        found = places_of(some, 7)
        assert len(found) == len(some)
        assert found.items() <= whole.items()


@pytest.mark.usefixtures("unasked")
def test_equal_records_are_computed_once_and_come_to_the_same():
    rows = 1.0 + torch.arange(6.0 * (LEFT + RIGHT)).reshape(6, -1)
    repeated = torch.arange(6).repeat(50)
    calls = []
    kept = records(rows[repeated], expand=split).mapped(
        lambda body: calls.append(len(body)) or body * 2, RIGHT, rows=4, apart=True
    )
    assert len(calls) <= 6
    ((found, labels),) = kept.expanded(1000)
    assert torch.equal(found, 2 * rows[repeated, LEFT:])
    assert torch.equal(labels, split(rows[repeated])[1])


@pytest.mark.usefixtures("unasked")
def test_what_was_mapped_is_taken_up_where_it_stopped():
    rows = 1.0 + torch.arange(20.0 * (LEFT + RIGHT)).reshape(20, -1) / 100
    whole = records(rows).mapped(lambda body: body * 2, RIGHT, rows=4, apart=True)

    class Kept:
        def __init__(self, ready=None):
            self.ready, self.told = ready, []

        def load(self, shape):
            assert shape == (20, RIGHT)
            return self.ready

        def save(self, found, batches, *, last):
            self.told.append((found.clone(), batches, last))

    first = Kept()
    records(rows).mapped(lambda body: body * 2, RIGHT, rows=4, apart=True, resumable=first)
    assert [batches for _, batches, _ in first.told] == list(range(1, len(first.told) + 1))
    assert [last for _, _, last in first.told] == [False] * (len(first.told) - 1) + [True]
    calls = []
    again = records(rows).mapped(
        lambda body: calls.append(len(body)) or body * 2, RIGHT, rows=4, apart=True, resumable=Kept(first.told[1][0])
    )
    assert len(calls) == len(first.told) - 2  # two batches were done
    (one,), (other,) = whole.expanded(100), again.expanded(100)
    assert torch.equal(one[0], other[0])


def test_rows_are_tried_for_meeting_where_something_is_left_to_compute():
    rows, calls = 1.0 + torch.arange(20.0 * (LEFT + RIGHT)).reshape(20, -1) / 100, []

    class Kept:
        def __init__(self, ready):
            self.ready = ready

        def load(self, shape):
            return self.ready[: shape[0]]

        def save(self, found, batches, *, last):
            self.ready = found.clone()

    def mapped(rows, function, ready):
        kept = Kept(ready)
        return records(rows).mapped(function, RIGHT, rows=4, apart=True, resumable=kept), kept.ready

    whole, ready = mapped(rows, lambda body: body * 2, torch.zeros(0, RIGHT))
    again, _ = mapped(rows, lambda body: calls.append(1) or centred(body), ready)  # computed before, and tried then
    assert not calls
    (one,), (other,) = whole.expanded(100), again.expanded(100)
    assert torch.equal(one[0], other[0])
    for some, left in ((rows, ready[:-1]), (rows[:0], ready[:0])):  # nobody's absence is told by a refusal either
        with pytest.raises(SettingError, match="not independent"):
            mapped(some, centred, left)


@pytest.mark.parametrize("apart", [True, False])
def test_mapped_records_may_be_none(apart):
    mapped = records([]).mapped(lambda body: body, RIGHT, rows=3, apart=apart)
    assert mapped.n_units == 0
    ((body, condition),) = mapped.expanded(100)
    assert (body.shape, condition.shape) == ((0, RIGHT), (0, LEFT))


def test_mapped_records_are_private_still():
    mapped = records(torch.ones(3, LEFT + RIGHT)).mapped(lambda body: body, RIGHT, rows=3)
    assert repr(mapped) == "PrivateRecords(private)"
    with pytest.raises(TypeError, match="never serialised"):
        pickle.dumps(mapped)


def centred(body):
    return body - body.mean(0)


def centred_and_detached(body):
    return body - body.detach().mean(0)


def normalised(body):
    return torch.nn.functional.batch_norm(body, None, None, training=True)


def ranked(body):
    return body.sort(0).values


def above_the_median(body):
    return (body > body.median(0).values).float()


def turned(body):
    return body.flip(0)


def running(body):
    return body + body.detach().cumsum(0) - body.detach()


def running_back(body):
    return running(body.flip(0)).flip(0)


MEETING = [centred, centred_and_detached, normalised, ranked, above_the_median, turned, running, running_back]


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("rows", [2, 5, 100])
@pytest.mark.parametrize("function", MEETING)
def test_a_function_in_which_rows_meet_is_refused_before_a_record_is_looked_at(monkeypatch, function, rows, apart):
    seen, expanded = [], PrivateRecords._expanded
    monkeypatch.setattr(
        PrivateRecords, "_expanded", lambda kept, compact: (seen.append(len(compact)), expanded(kept, compact))[1]
    )
    with pytest.raises(SettingError, match="not independent") as refused:
        records(torch.ones(9, LEFT + RIGHT)).mapped(function, RIGHT, rows=rows, apart=apart)
    assert refused.value.field == "function"
    assert seen == [0]


def shared(body):
    return body / len(body)


def test_how_many_rows_there_are_may_matter_where_all_batches_are_of_one_size():
    kept = records(torch.ones(9, LEFT + RIGHT))
    with pytest.raises(SettingError, match="number of records"):
        kept.mapped(shared, RIGHT, rows=4)
    ((body, _),) = kept.mapped(shared, RIGHT, rows=4, apart=True).expanded(100)
    assert torch.equal(body, torch.full((9, RIGHT), 0.25))


def test_a_function_without_a_derivative_is_looked_at_too():
    kept = records(torch.ones(9, LEFT + RIGHT))
    ((body, _),) = kept.mapped(lambda body: (body > 0.5).float(), RIGHT, rows=4).expanded(100)
    assert body.all()
    with pytest.raises(SettingError, match="not independent"):
        kept.mapped(lambda body: (body > body.mean()).float(), RIGHT, rows=4)
