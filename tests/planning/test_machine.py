"""What a run holds against what there is, where its records then lie, and amounts of memory as they are written."""

from __future__ import annotations

import os

import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods import registry
from doublure.planning import machine
from doublure.planning.machine import PARTITION_BYTES, RecordPlacement, choose_placement, parse_bytes, refuse_too_large
from doublure.training.settings import Work

GB = 10**9
SCHEMA = """
doublure: 1
kind: table
unit: {{name: person, id: who, max_records: {most}}}
units: {units}
columns:
  who: {{type: id}}
  job: {{type: category, values: [{values}], missing: false}}
"""


def schema(units=1000, most=2, values=3):
    listed = ", ".join(f"v{number}" for number in range(values))
    return db.Schema.parse(SCHEMA.format(units=units, most=most, values=listed))


class Asked:
    """A method that does a given work."""

    name = "asked"

    def __init__(self, *, torch=True, **work):
        self._work = Work(flops=1.0, steps=1, **work)
        self._torch = torch

    def needs_torch(self, schema, settings):
        return self._torch

    def work(self, schema, settings):
        return self._work


@pytest.fixture
def there(monkeypatch):
    """A machine of 2 GB."""
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2 * GB)


@pytest.mark.parametrize(
    ("limit", "found"), [("1000", 1000), ("max", None), ("9" * 19, None), (None, None)], ids=["less", "no", "more", "-"]
)
def test_a_container_may_have_less_than_the_machine(monkeypatch, tmp_path, limit, found):
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr(machine, "_CONTAINER", tmp_path / "memory.max")
    assert machine.memory_bytes() == (whole if found is None else found)


def placed(*asked, **where):
    """Return where records lie, which is not refused."""
    refuse_too_large(*asked, **where)
    return choose_placement(*asked, **where)


@pytest.mark.parametrize(
    ("work", "placement"),
    [
        ({"memory_bytes": GB, "records_bytes": GB}, RecordPlacement.HELD),
        ({"memory_bytes": GB, "drawn_bytes": GB}, RecordPlacement.HELD),
        ({"memory_bytes": 5 * GB, "records_bytes": 5 * GB}, RecordPlacement.IN_PARTITIONS),
        ({"memory_bytes": 5 * GB, "drawn_bytes": 5 * GB}, RecordPlacement.ON_DISK),
    ],
)
def test_records_are_held_where_there_is_room_for_them(there, work, placement):
    assert placed(Asked(**work), schema(), None) is placement


def test_records_lie_apart_where_memory_is_given_and_stay_with_their_owners(there):
    counted, drawn = Asked(memory_bytes=1, records_bytes=1), Asked(memory_bytes=1, drawn_bytes=1)
    assert placed(counted, schema(), None, 2 * GB) is RecordPlacement.IN_PARTITIONS
    assert placed(drawn, schema(), None, 2 * GB) is RecordPlacement.ON_DISK
    assert placed(counted, schema(), None, elsewhere=True) is RecordPlacement.IN_PARTITIONS
    assert placed(drawn, schema(), None, elsewhere=True) is RecordPlacement.HELD


def test_what_is_held_of_records_apart_counts_too(there):
    """Of those on a disk: whose each is. Of those in partitions: one at a time."""
    held = Asked(memory_bytes=5 * GB, drawn_bytes=5 * GB)
    assert placed(held, schema(units=10**6, most=1), None) is RecordPlacement.ON_DISK
    for units, most in ((10**8, 1), (10**6, 100)):
        with pytest.raises(SettingError, match="this machine has 2 GB"):
            refuse_too_large(held, schema(units=units, most=most), None)
    rest = 2 * GB - machine.LIBRARIES_BYTES - PARTITION_BYTES
    counts = Asked(memory_bytes=GB + rest, records_bytes=GB, torch=False)
    assert placed(counts, schema(), None) is RecordPlacement.IN_PARTITIONS
    for more in (
        Asked(memory_bytes=GB + rest + 1, records_bytes=GB, torch=False),
        Asked(memory_bytes=GB + rest, records_bytes=GB),
    ):
        with pytest.raises(SettingError):
            refuse_too_large(more, schema(), None)


def test_a_small_table_is_counted_in_a_gigabyte():
    """It peaks at 0.3 GB."""
    asked = db.Schema.parse(SCHEMA.format(units=30_000, most=1, values="a, b, c"))
    plan = db.plan(asked, epsilon=1.0, delta=1e-6)
    refuse_too_large(registry.method(plan.method), plan.schema, plan.settings, GB)


@pytest.mark.parametrize(("values", "field"), [(999, "memory"), (1000, "columns.job")])
def test_a_long_list_is_to_blame_before_the_lot(there, values, field):
    with pytest.raises(SettingError) as caught:
        refuse_too_large(Asked(memory_bytes=5 * GB), schema(values=values), None)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("written", "size"),
    [("2GB", 2 * GB), ("1.5 GiB", 3 * 2**29), ("500 kb", 500_000), ("7", 7), (7, 7), (" 3 b ", 3), (None, None)],
)
def test_amounts_of_memory(written, size):
    assert parse_bytes(written) == size


@pytest.mark.parametrize("wrong", ["", "2 XB", "-1GB", "0", 0, True, "GB", "0.2b"])
def test_what_is_no_amount_of_memory_is_refused(wrong):
    with pytest.raises(SettingError, match="such as 2GB") as caught:
        parse_bytes(wrong)
    assert caught.value.field == "memory"
