"""A ledger in PostgreSQL: what it refuses, what it survives, and what it never says."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from planting import plant

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import LedgerError, MissingExtra, SettingError
from doublure.ledger import Ledger
from doublure.ledger import server as ledger_server
from doublure.ledger.places import find_place
from doublure.releasing.verifying import _opened
from doublure.support.postgres import PostgresAddress

CAP = {"dataset": "adult", "epsilon": 3.0, "delta": 1e-4}
WITHOUT = {"PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE", "PGSSLROOTCERT"}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WITHOUT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def book(url: str) -> Ledger:
    return Ledger.create(url, **CAP)


def rows(server, url: str) -> list[str]:
    name = url.rpartition("/")[2]
    with server.connect() as connection:
        found = connection.execute("SELECT line FROM doublure.ledger WHERE name = %s ORDER BY sequence", (name,))
        return [line for (line,) in found]


def forced(server, *statements: str) -> None:
    """Do what the trigger forbids, as one who owns the server can."""
    with server.connect() as connection:
        connection.execute("ALTER TABLE doublure.ledger DISABLE TRIGGER only_grows")
        for statement in statements:
            connection.execute(statement)
        connection.execute("ALTER TABLE doublure.ledger ENABLE TRIGGER only_grows")


def set_globally(server, setting: str) -> None:
    with server.connect() as connection:
        connection.execute(f"ALTER SYSTEM {setting}")
        connection.execute("SELECT pg_reload_conf()")
    time.sleep(0.2)


def test_its_rows_are_the_lines_of_the_file(book, url, server, path, make_plan):
    book.reserve(make_plan(), run_id="run").advance(10)
    path.write_text("".join(f"{line}\n" for line in rows(server, url)))
    there, here = Ledger.open(url), Ledger.open(path)
    assert there.show() == here.show()
    assert there.head == here.head == book.head
    assert there.verify() == here.verify()


def test_open_or_create_makes_it_once(url, make_plan):
    first = Ledger.open_or_create(url, **CAP)
    first.reserve(make_plan())
    assert Ledger.open_or_create(url, **CAP).spent.epsilon == 0.5
    with pytest.raises(LedgerError, match="another cap"):
        Ledger.open_or_create(url, **CAP | {"epsilon": 4.0})
    with pytest.raises(LedgerError, match="never overwritten"):
        Ledger.create(url, **CAP)


def test_eight_that_create_it_at_once_make_one(url):
    made, refused = [], []

    def create() -> None:
        try:
            made.append(Ledger.create(url, **CAP))
        except LedgerError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert all("never overwritten" in said for said in refused)
    assert len(refused) == 7


def test_a_shorter_chain_is_refused_by_who_has_read_the_longer_one(book, url, server, make_plan):
    reservation = book.reserve(make_plan())
    name = url.rpartition("/")[2]
    forced(server, f"DELETE FROM doublure.ledger WHERE name = '{name}' AND sequence = 2")
    for act in (lambda: book.spent, lambda: reservation.advance(5), lambda: book.reserve(make_plan())):
        with pytest.raises(LedgerError, match="lost entries that were read a moment ago"):
            act()
    with pytest.raises(LedgerError, match="is not a reservation of this ledger"):
        Ledger.open(url).resume(reservation.id, reservation.session)


def test_a_client_that_trusts_what_it_remembers_is_caught(book, url, server, make_plan, monkeypatch):
    """The test above can fail: without the comparison on the server, a charge that is gone is still believed in."""
    book.reserve(make_plan())
    plant(monkeypatch, ledger_server.ServerPlace, "_read", ("found != hashlib.sha256(known).hexdigest()", "False"))
    forced(server, f"DELETE FROM doublure.ledger WHERE name = '{url.rpartition('/')[2]}' AND sequence = 2")
    assert book.spent.epsilon == 0.5


@pytest.mark.parametrize("change", ["line = replace(line, '3.0', '9.0')", "sequence = sequence + 10"])
def test_an_edited_row_is_found(book, url, server, make_plan, change):
    book.reserve(make_plan())
    name = url.rpartition("/")[2]
    forced(server, f"UPDATE doublure.ledger SET {change} WHERE name = '{name}' AND sequence = 1")
    with pytest.raises(LedgerError):
        book.verify()
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(url)


@pytest.mark.parametrize("change", ["UPDATE doublure.ledger SET line = ''", "DELETE FROM doublure.ledger",
                                    "TRUNCATE doublure.ledger"])  # fmt: skip
def test_the_table_refuses_every_change_but_growth(book, server, change):
    import psycopg

    with server.connect() as connection, pytest.raises(psycopg.errors.RaiseException, match="only grows"):
        connection.execute(change)


@pytest.mark.parametrize(
    "made",
    [
        "CREATE RULE taken AS ON INSERT TO doublure.ledger DO INSTEAD NOTHING",
        "CREATE TRIGGER taken BEFORE INSERT ON doublure.ledger FOR EACH ROW EXECUTE FUNCTION taken('drop')",
        "CREATE TRIGGER taken BEFORE INSERT ON doublure.ledger FOR EACH ROW EXECUTE FUNCTION taken('edit')",
    ],
)
def test_a_row_that_a_rule_or_a_trigger_takes_away_is_not_taken_for_a_charge(book, url, server, make_plan, made):
    """Rule 11: such an INSERT succeeds, and so does its commit."""
    before, kind = rows(server, url), made.split()[1]
    with server.connect() as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF TG_ARGV[0] = 'drop' THEN RETURN NULL; END IF; NEW.line := '{}'; RETURN NEW; END $$"
        )
        connection.execute(made)
    try:
        with pytest.raises(LedgerError):
            book.reserve(make_plan())
        with pytest.raises(LedgerError):
            Ledger.create(f"{url}-other", **CAP)
    finally:
        with server.connect() as connection:
            connection.execute(f"DROP {kind} taken ON doublure.ledger")
    assert rows(server, url) == before
    book.verify()


def test_without_the_lock_two_writers_do_not_both_commit(book, url, make_plan, monkeypatch):
    """A row's place is its primary key, so that even then nothing is spent twice."""
    both_have_read, won, refused = threading.Barrier(2, timeout=20), [], []
    insert = ledger_server.ServerPlace._insert

    def late(*arguments: object) -> None:
        both_have_read.wait()
        insert(*arguments)

    monkeypatch.setattr(ledger_server, "_lock", lambda *_: None)
    monkeypatch.setattr(ledger_server.ServerPlace, "_insert", late)

    def spend() -> None:
        try:
            won.append(Ledger.open(url).reserve(make_plan(epsilon=2.0)).id)
        except LedgerError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=spend) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(refused)) == (1, 1)
    assert "23505" in refused[0]
    assert Ledger.open(url).verify().runs == 1


def test_what_the_server_has_confirmed_survives_its_crash(book, url, server, make_plan):
    """Records are appended while the server is killed as by a power cut; then it recovers."""
    reservation = book.reserve(make_plan(steps=100_000))
    confirmed: list[int] = []

    def draw() -> None:
        try:
            while True:
                reservation.advance(reservation.authorised + 1)
                confirmed.append(reservation.authorised)
        except LedgerError:
            pass

    ledger_server_patience, ledger_server._PATIENCE = ledger_server._PATIENCE, 0.0
    try:
        drawing = threading.Thread(target=draw)
        drawing.start()
        while len(confirmed) < 5:
            time.sleep(0.01)
        server.stop(signal.SIGQUIT)
        drawing.join()
    finally:
        ledger_server._PATIENCE = ledger_server_patience
        server.start()
    found = Ledger.open(url)._store.view().account.find(reservation.id)
    assert confirmed[-1] <= found.authorised <= confirmed[-1] + 1


def test_a_server_that_restarts_is_waited_for(book, server, make_plan):
    reservation = book.reserve(make_plan())
    server.stop()
    threading.Timer(1.0, server.start).start()
    reservation.advance(10)
    assert reservation.authorised == 10


def test_a_commit_that_its_standby_did_not_confirm_is_a_failure(book, server, make_plan):
    """PostgreSQL commits with a warning where its wait for a standby is cancelled."""
    reservation = book.reserve(make_plan())
    set_globally(server, "SET synchronous_standby_names = 'absent'")
    try:
        caught: list[BaseException] = []

        def draw() -> None:
            try:
                reservation.advance(10)
            except LedgerError as error:
                caught.append(error)

        drawing = threading.Thread(target=draw)
        drawing.start()
        waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        until = time.monotonic() + 20
        with server.connect() as connection:
            while not connection.execute(waiting).fetchall() and time.monotonic() < until:
                time.sleep(0.05)
        drawing.join(20)
    finally:
        set_globally(server, "RESET synchronous_standby_names")
    assert "not sure that its standby" in str(caught[0])
    with pytest.raises(LedgerError, match="an earlier write failed"):
        reservation.advance(20)


@pytest.mark.parametrize("setting", ["full_page_writes"])
def test_a_server_that_may_lose_what_it_confirmed_is_refused(book, url, server, make_plan, setting):
    set_globally(server, f"SET {setting} = off")
    try:
        with pytest.raises(LedgerError, match=f"may lose what it has confirmed: {setting} is off"):
            Ledger.open(url)
        with pytest.raises(LedgerError, match=f"{setting} is off"):
            book.reserve(make_plan())
    finally:
        set_globally(server, f"RESET {setting}")
    assert Ledger.open(url).spent.epsilon == 0


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [(0, "off", "synchronous_commit is off"), (0, "local", "synchronous_commit is local"), (1, "off", "fsync is off"),
     (3, True, "standby"), (4, "ru", "no plain, logged table"), (4, "vp", "no plain, logged table")],
)  # fmt: skip
def test_each_state_that_is_not_safe_is_refused(book, make_plan, monkeypatch, place, value, said):
    one = ledger_server._one

    def changed(connection, query, *values):
        found = list(one(connection, query, *values))
        if query == ledger_server._STATE:
            found[place] = value
        return tuple(found)

    monkeypatch.setattr(ledger_server, "_one", changed)
    with pytest.raises(LedgerError, match=said):
        book.reserve(make_plan())


def test_a_role_that_commits_asynchronously_still_waits(book, url, server, make_plan):
    with server.connect() as connection:
        connection.execute(f"ALTER ROLE {server.user} SET synchronous_commit = off")
    try:
        Ledger.open(url).reserve(make_plan())
    finally:
        with server.connect() as connection:
            connection.execute(f"ALTER ROLE {server.user} RESET synchronous_commit")
    assert book.spent.epsilon == 0.5


def test_a_user_may_append_without_the_right_to_change(book, url, server, make_plan):
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE runner LOGIN PASSWORD '{server.password}'")
        connection.execute("GRANT USAGE ON SCHEMA doublure TO runner")
        connection.execute("GRANT SELECT ON doublure.ledger TO runner")
    other = url.replace(f"{server.user}@", "runner@")
    try:
        with pytest.raises(LedgerError, match="grant SELECT and INSERT"):
            Ledger.open(other).reserve(make_plan())
        with server.connect() as connection:
            connection.execute("GRANT INSERT ON doublure.ledger TO runner")
        Ledger.open(other).reserve(make_plan())
    finally:
        with server.connect() as connection:
            connection.execute("DROP OWNED BY runner")
            connection.execute("DROP ROLE runner")
    assert book.spent.epsilon == 0.5


def test_a_policy_that_hides_rows_is_an_error(book, url, server):
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE blind LOGIN PASSWORD '{server.password}'")
        connection.execute("GRANT USAGE ON SCHEMA doublure TO blind")
        connection.execute("GRANT SELECT ON doublure.ledger TO blind")
        connection.execute("CREATE POLICY few ON doublure.ledger USING (sequence < 2)")
        connection.execute("ALTER TABLE doublure.ledger ENABLE ROW LEVEL SECURITY")
    try:
        with pytest.raises(LedgerError, match="did not do it"):
            Ledger.open(url.replace(f"{server.user}@", "blind@"))
    finally:
        with server.connect() as connection:
            connection.execute("ALTER TABLE doublure.ledger DISABLE ROW LEVEL SECURITY")
            connection.execute("DROP POLICY few ON doublure.ledger")
            connection.execute("DROP OWNED BY blind")
            connection.execute("DROP ROLE blind")


# -- what is said and kept ---------------------------------------------------------------------------------------------


def test_no_message_and_no_file_holds_the_password(book, url, server, small, tmp_path, monkeypatch):
    import doublure as db

    roomy = Ledger.create(f"{url}-roomy", dataset="people", epsilon=100.0, delta=0.5)
    syn = db.fit(small.frame(), small.plan, ledger=f"{url}-roomy", out=tmp_path / "run", seed=1)
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    assert kept["ledger"]["path"] == f"{url}-roomy" == roomy.path
    assert all(server.password.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    bundle = db.release(syn, tmp_path / "bundle", n=20)  # finds the ledger by its address
    assert db.verify(tmp_path / "bundle", ledger=f"{url}-roomy")
    assert url.rpartition("/")[2] not in json.dumps(bundle.card)
    monkeypatch.setenv("PGPASSWORD", "a wrong secret")
    with pytest.raises(LedgerError, match="cannot be reached") as caught:
        Ledger.open(url)
    assert "wrong secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_verbs_take_the_address(url, server, capfd):
    def ran(*words: str) -> tuple[int, str]:
        capfd.readouterr()
        return run_guarded(app, [*words, "--json"]), capfd.readouterr().out

    code, said = ran("budget", "init", url, "--dataset", "adult", "--epsilon", "3", "--delta", "1e-4")
    assert (code, json.loads(said)["result"]["remaining"]["epsilon"]) == (0, 3.0)
    code, said = ran("budget", "init", url, "--dataset", "adult", "--epsilon", "3", "--delta", "1e-4")
    assert (code, "is the ledger of adult already" in said) == (2, True)
    assert ran("budget", "verify", url)[0] == 0
    assert ran("budget", "verify", f"{url}-none")[0] == 2


def test_a_missing_one_is_named(url, book):
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger.open(f"{url}-none")
    with pytest.raises(LedgerError, match="no such ledger"):
        _opened(f"{url}-none")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:secret@db.example/x/l", "holds a password"),
        ("postgresql://me@db.example/x/l?password=secret", "holds a password"),
        ("postgresql://me@db.example/x/l?sslmode=prefer", "without TLS"),
        ("postgresql://me@db.example/x/l?options=-csynchronous_commit%3Doff", "unknown parameter: options"),
        ("postgresql://me@db.example", "names no database"),
        ("postgresql://me@db.example:port/x", "no address of a server"),
    ],
)
def test_an_address_that_would_give_something_away_is_refused(url, said):
    with pytest.raises(SettingError, match=said) as caught:
        PostgresAddress.parse(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://db.example/x", "verify-full"),
        ("postgresql://db.example/x?sslmode=require", "require"),
        ("postgresql://127.0.0.1/x", None),
        ("postgresql://[::1]:5433/x/l", None),
        ("postgresql:///x?host=/run/postgresql", None),
    ],
)
def test_tls_is_asked_for_unless_the_server_is_here(url, mode):
    address = PostgresAddress.parse(url)
    assert address.arguments().get("sslmode") == mode
    assert PostgresAddress.parse(str(address)) == address


def test_the_environment_cannot_lead_elsewhere_without_tls(monkeypatch):
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    assert PostgresAddress.parse("postgresql://localhost/x").arguments()["sslmode"] == "verify-full"
    monkeypatch.delenv("PGHOSTADDR")
    monkeypatch.setenv("PGHOST", "db.example")
    assert PostgresAddress.parse("postgresql:///x").arguments()["sslmode"] == "verify-full"


def test_tls_is_really_asked_for(server, url, monkeypatch):
    """A server without TLS that is not taken for this machine is refused before the password is sent."""
    monkeypatch.setattr(PostgresAddress, "local", property(lambda _: False))
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger.open(url)


@pytest.mark.parametrize("given", ["s3://bucket/ledger", Path("postgresql://host/db/l"), "mysql://host/db"])
def test_an_address_of_nothing_that_keeps_a_ledger_is_refused(given):
    with pytest.raises(LedgerError, match="keeps no ledger"):
        find_place(given)


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=re.escape("doublure[sql]")):
        find_place("postgresql://localhost/db/l")
