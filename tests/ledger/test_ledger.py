"""What the ledger says: caps, charges, ends, releases, cards."""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublure.errors import BudgetRefused, GateFailed, LedgerError, SettingError
from doublure.ledger import Budget, Ledger, Reservation, disk, store
from doublure.ledger.amounts import Amount, exact
from doublure.ledger.request import new_run_id

HASH = "0f" * 32


def test_a_new_ledger_has_spent_nothing(ledger, path):
    assert (ledger.dataset, ledger.cap) == ("adult", Budget(epsilon=3.0, delta=1e-4))
    assert ledger.spent == Budget(epsilon=0.0, delta=0.0)
    assert ledger.remaining == ledger.cap
    assert ledger.covers_all_releases
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_mode_is_0600_whatever_the_umask(tmp_path):
    before = os.umask(0o277)
    try:
        Ledger.create(tmp_path / "l", dataset="d", epsilon=1.0, delta=0.0)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "l").stat().st_mode) == 0o600


def test_create_never_overwrites(ledger, path, make_plan):
    ledger.reserve(make_plan())
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="already exists"):
        Ledger.create(path, dataset="adult", epsilon=30.0, delta=1e-2)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("epsilon", value) for value in (0, -1.0, math.inf, math.nan, True, "3")),
        *(("delta", value) for value in (-1e-9, 1.0, math.nan, False)),
        *(("dataset", value) for value in ("", 7, "x" * 201)),
    ],
)
def test_a_cap_must_be_a_figure(path, field, value):
    with pytest.raises(SettingError) as caught:
        Ledger.create(path, **({"dataset": "d", "epsilon": 1.0, "delta": 0.0} | {field: value}))
    assert caught.value.field == field
    assert not path.exists()


def test_charges_add_up_and_survive_reopening(ledger, path, make_plan):
    ledger.reserve(make_plan(epsilon=0.5, delta=1e-6))
    Ledger.open(path).reserve(make_plan(epsilon=1.25, delta=2e-6))
    assert ledger.spent == Ledger.open(path).spent == Budget(epsilon=1.75, delta=3e-6)
    assert ledger.remaining == Budget(epsilon=1.25, delta=9.7e-5)


def test_ten_times_0_3_fills_a_cap_of_3_and_no_more(path, make_plan):
    ledger = Ledger.create(path, dataset="adult", epsilon=3.0, delta=1.0 - 1e-9)
    for _ in range(10):
        ledger.reserve(make_plan(epsilon=0.3, delta=0.0))
    assert ledger.remaining.epsilon == 0.0
    with pytest.raises(BudgetRefused):
        ledger.reserve(make_plan(epsilon=5e-324, delta=0.0))


@pytest.mark.parametrize("field", ["epsilon", "delta"])
def test_either_figure_can_refuse_and_the_message_says_all_four(ledger, make_plan, field):
    ledger.reserve(make_plan(epsilon=2.0, delta=4e-5))
    asked = {"epsilon": 0.5, "delta": 1e-5} | {field: {"epsilon": 1.5, "delta": 7e-5}[field]}
    before = ledger.head
    with pytest.raises(BudgetRefused) as caught:
        ledger.reserve(make_plan(**asked))
    assert caught.value.field == field
    for part in ("cap (ε=3, δ=0.0001)", "spent (ε=2, δ=4e-05)", "left (ε=1, δ=6e-05)", f"{asked[field]:.10g}"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ledger.head == before


@given(st.lists(st.floats(1e-12, 3.0), max_size=12))
def test_what_is_left_always_fits_and_never_passes_the_cap(charges):
    cap, spent = Amount.of(3.0, 0.0), Amount()
    for charge in charges:
        if (spent + Amount.of(charge, 0.0)).fits(cap):
            spent = spent + Amount.of(charge, 0.0)
    left = (cap - spent).rounded_down()
    assert (spent + Amount.of(left.epsilon, 0.0)).fits(cap)
    assert exact(spent.rounded_up().epsilon) >= spent.epsilon
    above = math.nextafter(left.epsilon, math.inf)
    assert not (spent + Amount.of(above, 0.0)).fits(cap)


def test_only_no_noise_drawn_gives_the_charge_back(ledger, make_plan):
    for status in ("done", "aborted", "interrupted"):
        before = ledger.spent.epsilon
        ledger.reserve(make_plan()).close(status, steps=0)
        assert ledger.spent.epsilon == before + 0.5
    before = ledger.spent
    reservation = ledger.reserve(make_plan())
    reservation.close("no-noise-drawn", steps=None)
    assert ledger.spent == before
    assert reservation.charge == Budget(epsilon=0.0, delta=0.0)


@pytest.mark.parametrize("draw", [lambda r: r.advance(1), lambda r: r.noise_drawn("bounds of hours")])
def test_no_noise_drawn_is_impossible_once_anything_may_be_drawn(ledger, make_plan, draw):
    reservation = ledger.reserve(make_plan())
    draw(reservation)
    with pytest.raises(LedgerError, match="may have drawn noise"):
        reservation.close("no-noise-drawn", steps=0)
    assert ledger.spent.epsilon == 0.5
    reservation.close("aborted", steps=None)
    assert ledger.spent.epsilon == 0.5


def test_no_noise_drawn_cannot_report_steps(ledger, make_plan):
    with pytest.raises(LedgerError):
        ledger.reserve(make_plan(kind="none")).close("no-noise-drawn", steps=3)


def test_nothing_happens_after_a_close(ledger, make_plan):
    reservation = ledger.reserve(make_plan())
    reservation.noise_drawn("bounds")
    reservation.close("done", steps=0, artefact_sha256=HASH)
    for act in (
        lambda: reservation.advance(1),
        lambda: reservation.noise_drawn("bounds"),
        lambda: reservation.close("done", steps=0),
    ):
        with pytest.raises(LedgerError, match="was closed"):
            act()


@pytest.mark.parametrize("through", [101, 10, 9, 0, -1, True, 10.5, "11", None])
def test_advance_refuses_beyond_the_plan_backwards_and_nonsense(ledger, make_plan, through):
    reservation = ledger.reserve(make_plan())
    reservation.advance(10)
    with pytest.raises(LedgerError):
        reservation.advance(through)
    assert reservation.authorised == 10
    reservation.advance(100)
    assert reservation.authorised == reservation.steps == 100


def test_close_cannot_report_steps_nobody_authorised(ledger, make_plan):
    reservation = ledger.reserve(make_plan())
    reservation.advance(10)
    with pytest.raises(LedgerError, match="11 noisy steps where 10"):
        reservation.close("done", steps=11)
    reservation.close("done", steps=10)


@pytest.mark.parametrize("value", [{"steps": -1}, {"status": "fine"}, {"artefact_sha256": "abc"}])
def test_close_checks_its_values(ledger, make_plan, value):
    reservation = ledger.reserve(make_plan())
    with pytest.raises(LedgerError) as caught:
        reservation.close(**({"status": "aborted", "steps": 0} | value))
    assert caught.value.field == next(iter(value))


def test_a_mark_is_written_once_in_a_session(ledger, make_plan):
    reservation = ledger.reserve(make_plan())
    for what in ("bounds", "bounds", "categories", "bounds"):
        reservation.noise_drawn(what)
    assert reservation.drawn == ("bounds", "categories")
    assert sum(record.kind == "noise" for record in ledger.entries) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": None},
        {"epsilon": math.nan},
        {"epsilon": -0.1},
        {"delta": None},
        {"delta": 1.0},
        {"steps": -1},
        {"steps": 1.0},
        {"kind": "anonymous"},
        {"unit": {"name": object()}},
        {"unit": {"name": math.inf}},
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(ledger, make_plan, change):
    before = ledger.head
    with pytest.raises(SettingError):
        ledger.reserve(make_plan(**change))
    assert ledger.head == before


def test_keys_may_be_numbers(ledger, path, make_plan):
    ledger.reserve(make_plan(unit={10: (1, 2), 9: "b"}))
    assert Ledger.open(path).entries[-1].body["plan"]["unit"] == {"10": [1, 2], "9": "b"}


def test_a_refused_plan_leaves_no_trace_in_memory_either(ledger, make_plan):
    reservation = ledger.reserve(make_plan(), run_id="run")
    for _ in range(2):
        with pytest.raises(LedgerError, match="beyond"):
            reservation.advance(101)
        with pytest.raises(SettingError):
            ledger.reserve(make_plan(unit={"name": object()}), run_id="other")
    ledger.reserve(make_plan(), run_id="other")
    assert [run["run_id"] for run in ledger.show()["runs"]] == ["run", "other"]


def test_a_run_id_is_used_once(ledger, make_plan):
    ledger.reserve(make_plan(), run_id="run-1")
    with pytest.raises(LedgerError, match="reserved already"):
        ledger.reserve(make_plan(), run_id="run-1")
    assert ledger.spent.epsilon == 0.5


def test_order_is_by_sequence_when_the_clock_goes_backwards(ledger, path, make_plan, monkeypatch):
    for utc in ("2026-01-02T00:00:00Z", "1970-01-01T00:00:00Z"):
        monkeypatch.setattr(store, "_utc", lambda utc=utc: utc)
        ledger.reserve(make_plan())
    assert [run["utc"][:4] for run in Ledger.open(path).show()["runs"]] == ["2026", "1970"]
    assert Ledger.open(path).verify().sequence == 3


def test_a_card_is_verified_against_the_ledger(ledger, path, make_plan):
    reservation = ledger.reserve(make_plan())
    entry = ledger.record_release(reservation.run_id, {"data.csv": HASH, "card.json": HASH}, "dp")
    assert entry.to_json() == {"dataset": "adult", "head_sha256": ledger.head[1]}
    ledger.reserve(make_plan())
    record = Ledger.open(path).verify_card(entry.to_json())
    assert (record.kind, record.body["files"]["data.csv"]) == ("release", HASH)
    former = entry.to_json() | {"sequence": 3}  # as cards of 0.2.0 and before have it
    assert Ledger.open(path).verify_card(former) == record


def test_nobody_guesses_where_a_card_s_record_stands(ledger, make_plan):
    """All but the nonce may be known to somebody: without it, the hash would tell a guess of the place."""
    reservation = ledger.reserve(make_plan())
    nonces = set()
    for _ in range(3):
        ledger.record_release(reservation.id, {"data.csv": HASH}, "dp")
        nonces.add(ledger.entries[-1].body["files"]["nonce"])
    assert len(nonces) == 3
    assert {len(bytes.fromhex(nonce)) for nonce in nonces} == {32}


def test_a_run_is_released_with_the_generator_that_it_ended_with(ledger, path, make_plan):
    reservation = ledger.reserve(make_plan())
    with pytest.raises(LedgerError, match="no finished generator"):
        ledger.refuse_other_generator(reservation.id, HASH)
    reservation.close("interrupted", steps=0, artefact_sha256=HASH)
    with pytest.raises(LedgerError, match="no finished generator"):
        ledger.refuse_other_generator(reservation.id, HASH)
    ledger.resume(reservation.id, reservation.session).close("done", steps=0, artefact_sha256=HASH)
    Ledger.open(path).refuse_other_generator(reservation.run_id, HASH)
    for other in ("00" * 32, None, HASH.upper()):
        with pytest.raises(LedgerError, match="another generator"):
            Ledger.open(path).refuse_other_generator(reservation.id, other)


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "other"},
        {"sequence": 2},
        {"sequence": 4},
        {"sequence": 0},
        {"sequence": True},
        {"sequence": "3"},
        {"head_sha256": HASH},
        {"head_sha256": None},
    ],
)
def test_a_changed_card_fails_the_gate(ledger, make_plan, change):
    entry = ledger.record_release(ledger.reserve(make_plan()).id, {"data.csv": HASH}, "dp")
    with pytest.raises(GateFailed):
        ledger.verify_card(entry.to_json() | change)


def test_a_card_shows_a_rollback_that_the_chain_cannot(ledger, path, make_plan):
    reservation = ledger.reserve(make_plan())
    entry = ledger.record_release(reservation.id, {"data.csv": HASH}, "dp").to_json()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    rolled_back = Ledger.open(path)
    rolled_back.verify()
    with pytest.raises(GateFailed, match="no such record"):
        rolled_back.verify_card(entry)
    rolled_back.reserve(make_plan())
    with pytest.raises(GateFailed, match="no such record"):
        rolled_back.verify_card(entry)


def test_an_open_ledger_notices_its_own_rollback(ledger, path, make_plan):
    before = path.read_bytes()
    ledger.reserve(make_plan())
    path.write_bytes(before)
    for act in (lambda: ledger.spent, ledger.verify, lambda: ledger.reserve(make_plan())):
        with pytest.raises(LedgerError, match="has lost entries"):
            act()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"run": "nobody"}, "not a reservation"),
        ({"files": {}}, "files"),
        ({"files": {"data.csv": "abc"}}, "files"),
        ({"guarantee_kind": "bayesian-dp"}, "cannot be released as"),
        ({"guarantee_kind": "empirical"}, "cannot be released as"),
    ],
)
def test_a_release_must_fit_its_run(ledger, make_plan, change, what):
    reservation = ledger.reserve(make_plan())
    with pytest.raises(LedgerError, match=what):
        ledger.record_release(**({"run": reservation.id, "files": {"a": HASH}, "guarantee_kind": "dp"} | change))


def test_a_run_that_ends_with_less_is_released_as_no_more(ledger, path, make_plan):
    reservation = ledger.reserve(make_plan(kind="bayesian-dp"))
    reservation.advance(5)
    reservation.close("done", steps=5, claimed="dp")
    again = Ledger.open(path)
    assert [record.kind for record in again.entries] == ["open", "reserve", "advance", "noise", "close"]
    for check in (again.refuse_release, lambda *asked: again.record_release(asked[0], {"data.csv": HASH}, asked[1])):
        with pytest.raises(LedgerError, match="ended as dp"):
            check(reservation.id, "bayesian-dp")
    for kind in ("dp", "none"):
        again.refuse_release(reservation.id, kind)
        again.record_release(reservation.id, {"data.csv": HASH}, kind)
    assert Ledger.open(path).verify().releases == 2
    assert Ledger.open(path).spent.epsilon == 0.5


@pytest.mark.parametrize(("kind", "claimed"), [("dp", "bayesian-dp"), ("empirical", "dp"), ("none", "empirical")])
def test_no_run_ends_with_more_than_was_reserved(ledger, make_plan, kind, claimed):
    reservation = ledger.reserve(make_plan(kind=kind))
    with pytest.raises(LedgerError, match="cannot claim"):
        reservation.close("done", steps=0, claimed=claimed)
    reservation.close("done", steps=0, claimed=kind)
    assert [record.kind for record in ledger.entries] == ["open", "reserve", "close"]


@pytest.mark.parametrize(("kind", "claimed"), [("dp", "bayesian-dp"), ("empirical", "dp"), ("none", "dp")])
def test_no_mark_makes_a_claim_rise(ledger, path, make_plan, kind, claimed):
    reservation = ledger.reserve(make_plan(kind=kind))
    with pytest.raises(LedgerError, match="cannot claim"):
        reservation.noise_drawn(f"the claim: {claimed}")
    reservation.close("done", steps=0)
    for book in (ledger, Ledger.open(path)):
        with pytest.raises(LedgerError, match="cannot be released"):
            book.refuse_release(reservation.id, claimed)


def test_a_claim_that_fell_stays_where_it_is(ledger, make_plan):
    reservation = ledger.reserve(make_plan(kind="bayesian-dp", epsilon=9.0, worst_case=(0.5, 1e-6)))
    reservation.noise_drawn("the claim: dp")
    with pytest.raises(LedgerError, match="cannot claim"):
        reservation.noise_drawn("the claim: bayesian-dp")
    run = replace(ledger._store.view().account.find(reservation.id), drawn=("the claim: dp", "the claim: bayesian-dp"))
    assert run.claimed == "dp"  # nor where somebody wrote such a mark himself


def test_a_run_that_cost_nothing_releases_nothing(ledger, make_plan):
    reservation = ledger.reserve(make_plan())
    reservation.close("no-noise-drawn", steps=0)
    with pytest.raises(LedgerError, match="cost nothing"):
        ledger.record_release(reservation.id, {"data.csv": HASH}, "dp")


def test_show_is_plain_json_with_the_agreed_keys(ledger, make_plan):
    done = ledger.reserve(make_plan(), run_id="first")
    done.advance(60)
    done.close("done", steps=55)
    ledger.reserve(make_plan(kind="bayesian-dp", epsilon=9.0, worst_case=(1.5, 2e-6))).advance(7)
    ledger.reserve(make_plan()).close("no-noise-drawn", steps=0)
    ledger.record_release("first", {"data.csv": HASH}, "dp")
    shown = json.loads(json.dumps(ledger.show(), allow_nan=False))
    assert set(shown) == {
        "dataset",
        "cap",
        "spent",
        "remaining",
        "runs",
        "apart",
        "releases",
        "covers_all_releases",
        "note",
    }
    assert shown["spent"]["kinds"] == {
        "dp": {"runs": 2, "epsilon": 0.5, "delta": 1e-6},
        "bayesian-dp": {"runs": 1, "epsilon": 1.5, "delta": 2e-6},
        "empirical": {"runs": 0, "epsilon": None, "delta": None},
        "none": {"runs": 0, "epsilon": None, "delta": None},
    }
    assert (shown["spent"]["epsilon"], shown["remaining"]["epsilon"]) == (2.0, 1.0)
    keys = ("sequence", "method", "kind", "epsilon", "status", "steps")
    assert [tuple(run[key] for key in keys) for run in shown["runs"]] == [
        (2, "dpgan", "dp", 0.5, "done", 55),
        (5, "dpgan", "bayesian-dp", 1.5, "open", 7),
        (7, "dpgan", "dp", 0.0, "no-noise-drawn", 0),
    ]
    assert [(release["run_id"], release["kind"]) for release in shown["releases"]] == [("first", "dp")]
    assert "covers all fits recorded of adult" in shown["note"]


MOUNTS = r"""sysfs /sys sysfs rw 0 0
/dev/sda1 / ext4 rw 0 0
server:/home /srv/nfs\040home nfs4 rw 0 0
//win/share /srv/share cifs rw 0 0
/dev/sdb1 /srv/share/local ext4 rw 0 0
server:/late /srv/over ext4 rw 0 0
server:/late /srv/over nfs rw 0 0
short line
"""


@pytest.mark.parametrize(
    ("directory", "kind"),
    [
        ("/srv", "ext4"),
        ("/srv/nfs home/me", "nfs4"),
        ("/srv/share/x", "cifs"),
        ("/srv/shared", "ext4"),
        ("/srv/share/local/x", "ext4"),
        ("/srv/over", "nfs"),
    ],
)
def test_the_innermost_and_last_mount_counts(tmp_path, monkeypatch, directory, kind):
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(disk, "_MOUNTS", tmp_path / "mounts")
    assert disk._file_system(Path(directory)) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3"])
def test_network_file_systems_are_refused_for_spending_but_not_for_reading(ledger, path, make_plan, monkeypatch, kind):
    reservation = ledger.reserve(make_plan())
    (path.parent / "mounts").write_text(
        f"/dev/sda1 / ext4 rw 0 0\nserver:/x {os.path.realpath(path.parent)} {kind} rw\n"
    )
    monkeypatch.setattr(disk, "_MOUNTS", path.parent / "mounts")
    for act in (
        lambda: Ledger.create(path.parent / "other", dataset="d", epsilon=1.0, delta=0.0),
        lambda: ledger.reserve(make_plan()),
        lambda: ledger.resume(reservation.id, reservation.session),
    ):
        with pytest.raises(LedgerError, match=rf"network file system \({kind}\)"):
            act()
    assert Ledger.open(path).verify().runs == 1


def test_an_unknown_table_of_mounts_refuses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "_MOUNTS", tmp_path / "absent")
    Ledger.create(tmp_path / "l", dataset="d", epsilon=1.0, delta=0.0)


def test_a_system_without_flock_is_named(path, ledger, monkeypatch):
    monkeypatch.setattr(disk, "fcntl", None)
    for act in (lambda: Ledger.open(path), lambda: Ledger.create(path, dataset="d", epsilon=1.0, delta=0.0)):
        with pytest.raises(LedgerError, match=r"fcntl\.flock"):
            act()


def test_what_is_no_ledger_is_refused_in_one_line(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "deep").write_bytes(b"[" * 100_000 + b"\n")
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing", "folder", "empty", "binary", "deep", "fifo", "empty/below"):
        with pytest.raises(LedgerError) as caught:
            Ledger.open(tmp_path / name)
        assert caught.value.field == name.rsplit("/", 1)[-1]
        assert caught.value.remedy
        assert "\n" not in str(caught.value)
    with pytest.raises(LedgerError, match="not a regular file"):
        Ledger.open(tmp_path / "fifo")
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.create(tmp_path / "nowhere" / "l", dataset="d", epsilon=1.0, delta=0.0)


def test_a_data_set_has_a_short_visible_name(tmp_path):
    for number, name in enumerate(("d", "x" * 200)):
        assert Ledger.create(tmp_path / str(number), dataset=name, epsilon=1.0, delta=0.0).dataset == name
    for name in ("a\u200bb", "a\nb"):
        with pytest.raises(SettingError, match="invisible"):
            Ledger.create(tmp_path / "other", dataset=name, epsilon=1.0, delta=0.0)


def test_names_and_nonces_are_drawn_long_enough_and_anew(ledger, make_plan):
    first, second = ledger.reserve(make_plan()), ledger.reserve(make_plan(), run_id="own")
    again = ledger.resume(first.id, first.session)
    assert (new_run_id(make_plan(), first.id), second.run_id) == (first.run_id, "own")
    assert [len(text) for text in (first.id, second.id, first.session, second.session, again.session)] == [
        16, 16, 32, 32, 32,
    ]  # fmt: skip
    assert len({first.id, second.id, first.session, second.session, again.session}) == 5
    promised = []
    assert ledger.resume(second.id, second.session, next_session="next", promise=promised.append).session == "next"
    assert promised == ["next"]


def test_the_first_and_the_last_record_stand_on_a_card_too(ledger, make_plan):
    ledger.reserve(make_plan())
    for record in ledger.entries:
        card = {"dataset": "adult", "sequence": record.sequence, "head_sha256": record.sha256}
        assert ledger.verify_card(card) == record


def test_a_cap_that_may_not_stand_there_is_not_written(path):
    with pytest.raises(LedgerError, match="another format"):
        store.LedgerStore.create(path, {"format": 2, "dataset": "d", "epsilon": 1.0, "delta": 0.0})
    assert not path.exists()


def test_a_ledger_is_known_from_when_it_was_created_opened_or_looked_at(path, tmp_path, make_plan):
    created = Ledger.create(path, dataset="adult", epsilon=3.0, delta=1e-4)
    start = path.read_bytes()
    looked, opened = Ledger.open(path), None
    Ledger.open(path).reserve(make_plan())
    assert looked.spent.epsilon == 0.5
    opened = Ledger.open(path)
    path.write_bytes(start)
    for ledger in (looked, opened):
        with pytest.raises(LedgerError, match="has lost entries"):
            ledger.verify()
    Ledger.create(tmp_path / "other", dataset="adult", epsilon=9.0, delta=1e-4)
    path.write_bytes((tmp_path / "other").read_bytes())
    with pytest.raises(LedgerError, match="has lost entries"):
        created.verify()


def test_what_a_session_says_is_that_of_the_last_one(ledger, make_plan):
    first = ledger.reserve(make_plan())
    second = ledger.resume(first.id, first.session, next_session="second")
    third = ledger.resume(first.id, second.session, next_session="third")
    assert (second.session, third.session) == ("second", "third")
    third.advance(5)
    for stale in (first, second):
        with pytest.raises(LedgerError, match="resumed elsewhere"):
            stale.advance(6)
    other = ledger.resume(first.id, "third", next_session="fourth")
    twin = Reservation(ledger._store, other._run)
    other.noise_drawn("bounds")
    with pytest.raises(LedgerError, match="another process with the same session"):
        twin.advance(6)
    assert other.drawn == ("bounds",)
    other.advance(6)
    assert ledger.show()["runs"][0]["steps"] == 6
