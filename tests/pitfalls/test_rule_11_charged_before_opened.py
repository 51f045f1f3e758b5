"""Rule 11: the charge is on disk before the first record is opened; a fit that the cap does not allow opens nothing
(rows 23 and 25; the ledger alone is in ``test_ledger_charge_before_data.py``)."""

from __future__ import annotations

from functools import partial

import pytest

from doublure.data.tables import opening as tables
from doublure.errors import BudgetRefused, DataError, NotAsPriced, SettingError
from doublure.ledger import Ledger, disk
from doublure.ledger.amounts import Amount
from doublure.private import whole_noise
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.private.records import PrivateRecords
from doublure.run import fitting, running

ASKED = "self._authorise(access, 0 if access.path is not None else self._before[access] + taken + 1)"
PAID = "self._pay(access)"
NOISY = "noisy, ran = self._noised(answer, access)"
DRAWN_FIRST = [(PAID, "pass"), (NOISY, f"{NOISY}\nself._pay(access)")]


class Watch:
    """What happened to the ledger's file and to the private table, in order."""

    def __init__(self, patch):
        self.acts = []
        fsync, chunks, normal = disk._fsync, tables._FrameSource.chunks, OsKeyedNoise.normal

        def synced(fd):
            fsync(fd)
            self.acts.append("durable")

        def opened(source, columns):
            self.acts.append("opened")
            return chunks(source, columns)

        def drawn(source, size, std):
            self.acts.append("noise")
            return normal(source, size, std)

        patch.setattr(disk, "_fsync", synced)
        patch.setattr(tables._FrameSource, "chunks", opened)
        patch.setattr(OsKeyedNoise, "normal", drawn)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", dataset="people", epsilon=4.0, delta=0.5)


def check_the_charge_comes_first(lab, patch, plan, ledger, folder):
    with patch.context() as inner:
        watch = Watch(inner)
        lab.fit(lab.people(), plan, folder, real=True, ledger=ledger)
    assert watch.acts.index("durable") < watch.acts.index("opened") < watch.acts.index("noise")
    # After the charge, each draw was authorised durably before it was taken, two steps at a time.
    noisy = [place for place, act in enumerate(watch.acts) if act == "noise"]
    assert len(noisy) == plan.steps
    for step, place in enumerate(noisy):
        assert watch.acts[:place].count("durable") >= 1 + 1 + step // 2
    assert ledger.spent.epsilon == plan.epsilon
    body = next(record.body for record in ledger.entries if record.kind == "reserve")
    assert body["charge"] == {"epsilon": plan.epsilon, "delta": plan.delta}


def test_the_charge_comes_first(lab, monkeypatch, declared_plan, ledger, tmp_path):
    check_the_charge_comes_first(lab, monkeypatch, declared_plan, ledger, tmp_path)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (fitting, "fit", ("source.check(plan.schema)", "source.load(plan.schema)")),
        (running.FitRun, "_authorise", ("step > self._reservation.authorised", "False")),
        (running.FitRun, "_authorise", ("self._reservation.advance", "lambda step: None")),
    ],
    ids=["data before charge", "nobody asked", "steps not authorised"],
)
def test_a_charge_that_comes_later_is_caught(lab, monkeypatch, declared_plan, ledger, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with pytest.raises((AssertionError, NotAsPriced, lab.REFUSED)):
        check_the_charge_comes_first(lab, monkeypatch, declared_plan, ledger, tmp_path)


def check_each_fact_is_marked_before_it_is_learned(lab, patch, plan, folder):
    """What is about to be learned stands in the ledger's file, under its own name, before its noise is drawn."""
    learned, noised = [], Mechanism._noised

    def watched(mechanism, answer, access):
        marked = [record.body["what"] for record in Ledger.open(folder / "ledger").entries if record.kind == "noise"]
        if access.path is not None:
            learned.append((access.path, marked))
        return noised(mechanism, answer, access)

    with patch.context() as inner:
        inner.setattr(Mechanism, "_noised", watched)
        lab.fit(lab.people(), plan, folder, real=True)
    purposes = [access.purpose for access in plan.learned]
    assert len(learned) == len(purposes) > 3
    assert all(marked == purposes[:number] for number, (_, marked) in enumerate(learned, start=1))


def test_each_fact_is_marked_before_it_is_learned(lab, monkeypatch, plan, tmp_path):
    check_each_fact_is_marked_before_it_is_learned(lab, monkeypatch, plan, tmp_path)


MARKED = "self._reservation.noise_drawn(self._reservation.mark_of(self._plan.answered_facts.index(access)))"


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (Mechanism, "release", DRAWN_FIRST),
        (running.FitRun, "_authorise", [(MARKED, "pass")]),
    ],
    ids=["marked afterwards", "not marked"],
)
def test_a_fact_that_is_marked_later_is_caught(lab, monkeypatch, plan, tmp_path, owner, name, edits):
    lab.plant(owner, name, *edits)
    with lab.caught():
        check_each_fact_is_marked_before_it_is_learned(lab, monkeypatch, plan, tmp_path)


def check_the_cap_stops_the_second_fit(lab, patch, plan, ledger, folder):
    lab.fit(lab.people(), plan, folder / "one", real=True, ledger=ledger)
    before = ledger.path.read_bytes()
    with patch.context() as inner:
        watch = Watch(inner)
        again = partial(lab.fit, lab.people(), plan, folder / "two", real=True, ledger=ledger, again=True)
        error = lab.refusal(BudgetRefused, again)
    assert (error.exit_code, error.field) == (3, "epsilon")
    assert "opened" not in watch.acts
    assert "noise" not in watch.acts
    assert ledger.path.read_bytes() == before
    assert ledger.spent.epsilon <= ledger.cap.epsilon


def test_the_cap_stops_the_second_fit(lab, monkeypatch, declared_plan, ledger, tmp_path):
    check_the_cap_stops_the_second_fit(lab, monkeypatch, declared_plan, ledger, tmp_path)


def test_a_cap_that_is_not_kept_is_caught(lab, monkeypatch, declared_plan, ledger, tmp_path):
    monkeypatch.setattr(Amount, "fits", lambda self, cap: True)
    monkeypatch.setattr(fitting, "refuse_unaffordable", lambda *arguments: None, raising=False)
    with lab.caught():
        check_the_cap_stops_the_second_fit(lab, monkeypatch, declared_plan, ledger, tmp_path)


SPENT = "reservation.authorised > 0 or bool(reservation.drawn)"


def check_what_an_early_end_costs(lab, patch, plan, ledger, folder):
    """An error in the data before any noise is free; an error after the first draw costs the whole charge."""
    with pytest.raises(DataError):
        lab.fit(lab.people().assign(pay="much"), plan, folder / "one", real=True, ledger=ledger)
    assert ledger.spent.epsilon == 0
    assert ledger.entries[-1].body.get("status") == "no-noise-drawn"
    with patch.context() as inner:
        normal, draws = OsKeyedNoise.normal, []

        def second_fails(self, size, std):
            draws.append(size)
            if len(draws) == 2:
                raise MemoryError
            return normal(self, size, std)

        inner.setattr(OsKeyedNoise, "normal", second_fails)
        with pytest.raises(MemoryError):
            lab.fit(lab.people(), plan, folder / "two", real=True, ledger=ledger)
    assert ledger.spent.epsilon == plan.epsilon
    assert ledger.entries[-1].body.get("status") == "aborted"


def test_what_an_early_end_costs(lab, monkeypatch, declared_plan, ledger, tmp_path):
    check_what_an_early_end_costs(lab, monkeypatch, declared_plan, ledger, tmp_path)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (running.FitRun, "_close", (SPENT, "False")),
        (running.FitRun, "_close", (SPENT, "True")),
        (Mechanism, "_pay", (ASKED, "pass")),
    ],
    ids=["a later end for nothing", "an early end at full price", "noise without leave"],
)
def test_another_price_is_caught(lab, monkeypatch, declared_plan, ledger, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_what_an_early_end_costs(lab, monkeypatch, declared_plan, ledger, tmp_path)


# -- tables ------------------------------------------------------------------------------------------------------------


def check_tables_are_charged_before_they_are_drawn(lab, patch, plan, ledger, folder):
    with patch.context() as inner:
        watch = Watch(inner)
        counted, noisy = PrivateRecords.chunks, whole_noise.gaussian
        inner.setattr(
            PrivateRecords, "chunks", lambda kept, rows: (watch.acts.append("counted"), counted(kept, rows))[1]
        )
        inner.setattr(
            whole_noise,
            "gaussian",
            lambda counts, scale: (watch.acts.append("noise"), noisy(counts, scale=scale))[1],
        )
        lab.fit(lab.people(), plan, folder, real=True, ledger=ledger)
    acts = watch.acts
    assert acts.index("durable") < acts.index("opened") < acts.index("counted") < acts.index("noise")
    opened = acts.index("opened")
    for act, leaves in (("counted", 0), ("noise", 1)):
        places = [place for place, done in enumerate(acts) if done == act]
        assert len(places) == plan.steps
        for release, place in enumerate(places):  # each draw had its own leave, durably, once all was counted
            assert acts[opened:place].count("durable") == release + leaves
    assert ledger.spent.epsilon == plan.epsilon


def test_tables_are_charged_before_they_are_drawn(lab, monkeypatch, counting_plan, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=8.0, delta=0.5)
    check_tables_are_charged_before_they_are_drawn(lab, monkeypatch, counting_plan, ledger, tmp_path)


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (fitting, "fit", [("source.check(plan.schema)", "source.load(plan.schema)")]),
        (running.FitRun, "_authorise", [("self._reservation.advance", "lambda step: None")]),
        (Mechanism, "_pay", [(ASKED, "pass")]),
        (Mechanism, "release", DRAWN_FIRST),
    ],
    ids=["data before charge", "releases not authorised", "releases without leave", "drawn before leave"],
)  # fmt: skip
def test_tables_that_are_charged_later_are_caught(lab, monkeypatch, counting_plan, tmp_path, owner, name, edits):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=8.0, delta=0.5)
    lab.plant(owner, name, *edits)
    with pytest.raises((AssertionError, NotAsPriced, lab.REFUSED)):
        check_tables_are_charged_before_they_are_drawn(lab, monkeypatch, counting_plan, ledger, tmp_path)


def check_what_an_early_end_of_counting_costs(lab, patch, plan, folder):
    """A table that cannot be counted as planned costs nothing; noise that was drawn costs all."""
    ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=80.0, delta=0.5)
    with patch.context() as inner:
        inner.setattr(PrivateRecords, "most_records", 9)
        refused = partial(lab.fit, lab.people(), plan, folder / "one", real=True, ledger=ledger)
        assert lab.refusal(SettingError, refused).field == "max_records"
    assert ledger.spent.epsilon == 0
    assert ledger.entries[-1].body.get("status") == "no-noise-drawn"
    with patch.context() as inner:

        def fails(counts, *, scale):
            raise MemoryError

        inner.setattr(whole_noise, "gaussian", fails)
        with pytest.raises(MemoryError):
            lab.fit(lab.people(), plan, folder / "two", real=True, ledger=ledger)
    assert ledger.spent.epsilon == plan.epsilon
    assert ledger.entries[-1].body.get("status") == "aborted"


def test_what_an_early_end_of_counting_costs(lab, monkeypatch, counting_plan, tmp_path):
    check_what_an_early_end_of_counting_costs(lab, monkeypatch, counting_plan, tmp_path)


def test_counting_without_leave_is_caught(lab, monkeypatch, counting_plan, tmp_path):
    lab.plant(Mechanism, "_pay", (ASKED, "pass"))
    with lab.caught():
        check_what_an_early_end_of_counting_costs(lab, monkeypatch, counting_plan, tmp_path)
