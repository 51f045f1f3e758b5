"""Dask's own workers: the release is that of all records in one place, whoever is killed meanwhile."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import threading
import time

import pytest
import torch
from hands import in_files
from parted import BOTH, DECLARED, SCHEMAS, SEVERAL, check_equal, fitted, people, plan_of

import doublure as db
from doublure.data.tables.opening import open_table
from doublure.errors import DataError, InputError, RankLost, SettingError
from doublure.ledger import Ledger

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="Dask is an extra: scripts/test --all installs it beside"
)


@pytest.fixture(scope="module")
def workers():
    """Two processes, as a fit would start them."""
    from doublure.run.engines import start_local_cluster

    torch.set_num_threads(1)
    with start_local_cluster(2) as found:
        yield found


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_release_is_that_of_all_records_in_one_place(monkeypatch, tmp_path, workers, schema):
    data = in_files(people(), tmp_path / "parts")
    held = fitted(monkeypatch, people(), SCHEMAS[schema], tmp_path / "held")
    check_equal(held, fitted(monkeypatch, data, SCHEMAS[schema], tmp_path / "dask", engine=workers._client))
    ran = [json.loads((tmp_path / each / "run" / "executed.json").read_text()) for each in ("held", "dask")]
    assert ran[0] == ran[1]


def wait_for_both(workers):
    """Dask is slow to start workers again that died as they began."""
    workers._client.wait_for_workers(2, timeout=180)


def pids(workers):
    return workers._client.run(os.getpid)


@pytest.mark.parametrize("asked", ["read", "answer"])
def test_a_worker_that_is_killed_changes_nothing(monkeypatch, tmp_path, workers, asked):
    """One dies while pieces are read, or between the first answers: what it held is read again by the other."""
    held = fitted(monkeypatch, people(), BOTH, tmp_path / "held")
    each, killed = type(workers).each, []

    def killing(own, does, *given):
        wanted = each(own, does, *given)
        if does.__name__ == asked and not killed:
            victim = next(iter(pids(own).values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
        return wanted

    with monkeypatch.context() as inner:
        inner.setattr(type(workers), "each", killing)
        data = in_files(people(), tmp_path / "parts")
        syn = fitted(inner, data, BOTH, tmp_path / "dask", engine=workers._client)
    check_equal(held, syn)
    assert len(killed) == 1
    wait_for_both(workers)
    assert killed[0] not in pids(workers).values()


def test_workers_killed_at_random_change_nothing(monkeypatch, tmp_path, workers):
    held = fitted(monkeypatch, people(), SEVERAL, tmp_path / "held")
    over, killed = threading.Event(), []

    def kill():
        while not over.wait(0.7):
            try:
                victim = next(iter(workers._client.run(os.getpid, on_error="ignore").values()))
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
                wait_for_both(workers)
            except (StopIteration, ProcessLookupError, OSError):
                time.sleep(0.1)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        data = in_files(people(), tmp_path / "parts")
        syn = fitted(monkeypatch, data, SEVERAL, tmp_path / "dask", engine=workers._client)
    finally:
        over.set()
        killer.join()
    check_equal(held, syn)
    assert killed
    wait_for_both(workers)  # however often one died
    assert [each["status"] for each in Ledger.open(tmp_path / "dask" / "ledger").show()["runs"]] == ["done"]


def test_data_that_is_changed_before_it_is_read_again_ends_the_run(monkeypatch, tmp_path, workers):
    data = in_files(people(), tmp_path / "parts")
    each, killed = type(workers).each, []

    def killing(own, does, *given):
        if does.__name__ == "answer" and not killed:
            for path in data.iterdir():
                people(100).to_csv(path, index=False)
            killed.extend(pids(own).values())
            for victim in killed:
                os.kill(victim, signal.SIGKILL)
        return each(own, does, *given)

    with monkeypatch.context() as inner:
        inner.setattr(type(workers), "each", killing)
        with pytest.raises(DataError, match="changed during the run"):
            fitted(inner, data, DECLARED, tmp_path / "dask", engine=workers._client)
    wait_for_both(workers)


def test_our_own_workers_speak_tls_and_spill_nothing(workers):
    import dask

    def settings(dask_worker):
        manager = dask_worker.memory_manager
        return manager.memory_target_fraction, manager.memory_spill_fraction, manager.memory_limit

    assert workers._client.scheduler.address.startswith("tls://127.0.0.1:")
    assert {*workers._client.run(settings).values()} == {(False, False, None)}
    assert dask.config.get("distributed.scheduler.work-stealing") is False
    assert all(address.startswith("tls://127.0.0.1:") for address in pids(workers))


def test_nothing_is_left_with_the_workers(tmp_path, workers):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    db.fit(in_files(people(), tmp_path / "parts"), plan_of(BOTH), ledger=ledger, engine=workers._client)
    deadline = time.monotonic() + 20
    while any(workers._client.run(lambda dask_worker: len(dask_worker.data)).values()):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_scheduler_is_found_by_its_address_and_one_that_is_not_there_is_named(monkeypatch, tmp_path):
    import dask
    from distributed import LocalCluster

    data = in_files(people(), tmp_path / "parts")
    held = fitted(monkeypatch, people(), DECLARED, tmp_path / "held")
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        syn = fitted(monkeypatch, data, DECLARED, tmp_path / "dask", engine="dask", scheduler=address)
    check_equal(held, syn)
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        for wrong in ("tcp://127.0.0.1:1", "nowhere://at.all"):
            with pytest.raises(SettingError, match="cannot be reached"):
                db.fit(data, plan_of(DECLARED), ledger=ledger, engine="dask", scheduler=wrong)
    assert [record.kind for record in ledger.entries] == ["open"]


@pytest.mark.parametrize("address", ["localhost", "localhost:8786", "tls://127.0.0.1:1"])
def test_an_address_that_cannot_be_is_refused_at_once(tmp_path, address):
    """Dask's client would wait a minute as it is thrown away, and end with a traceback."""
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    data, began = in_files(people(), tmp_path / "parts"), time.monotonic()
    with pytest.raises(SettingError, match=r"names no protocol|has no certificates") as refused:
        db.fit(data, plan_of(DECLARED), ledger=ledger, engine="dask", scheduler=address)
    assert refused.value.field == "scheduler"
    assert time.monotonic() - began < 30
    assert [record.kind for record in ledger.entries] == ["open"]


def test_a_cluster_without_workers_is_refused(monkeypatch, tmp_path):
    from distributed import Client, LocalCluster

    monkeypatch.setattr("doublure.run.engines.PATIENCE", 1)
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    data = in_files(people(), tmp_path / "parts")
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        pytest.raises(InputError, match="has no workers"),
    ):
        db.fit(data, plan_of(DECLARED), ledger=ledger, engine=client)
    assert [record.kind for record in ledger.entries] == ["open"]


def test_a_cluster_that_goes_stops_the_run_and_another_goes_on(monkeypatch, tmp_path):
    from distributed import Client, LocalCluster

    from doublure.run.engines import DaskWorkers

    data, each, asked = in_files(people(), tmp_path / "parts"), DaskWorkers.each, []
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    client = Client(cluster)

    def gone(own, does, *given):
        asked.append(does.__name__)
        found = each(own, does, *given)
        if asked.count("answer") == 3:
            client.cancel(found, force=True)
        return found

    with monkeypatch.context() as inner:
        inner.setattr(DaskWorkers, "each", gone)
        with pytest.raises(RankLost, match="--resume"):
            db.fit(data, plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", engine=client)
    client.close()
    cluster.close()
    goes_on(data, ledger, tmp_path / "run")


def test_workers_that_go_and_do_not_come_back_stop_the_run_and_others_go_on(monkeypatch, tmp_path):
    """The scheduler is there, and waits: Dask would wait without end."""
    from distributed import Client, LocalCluster

    from doublure.run.engines import DaskWorkers

    monkeypatch.setattr("doublure.run.engines.PATIENCE", 2)
    data, each, asked = in_files(people(), tmp_path / "parts"), DaskWorkers.each, []
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)

    def gone(own, does, *given):
        asked.append(does.__name__)
        if asked.count("answer") == 3:
            cluster.scale(0)
            while client.nthreads():
                time.sleep(0.1)
        return each(own, does, *given)

    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        monkeypatch.context() as inner,
    ):
        inner.setattr(DaskWorkers, "each", gone)
        with pytest.raises(RankLost, match="--resume"):
            db.fit(data, plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", engine=client)
    goes_on(data, ledger, tmp_path / "run")


def test_a_result_that_takes_its_time_on_the_wire_is_waited_for(monkeypatch, workers):
    """It would be asked for over and over, each time from the beginning."""
    from distributed import Future

    result, waited = Future.result, []

    def slow(future, timeout=None):
        waited.append(timeout)
        if timeout < 1 and len(waited) < 50:
            raise TimeoutError
        return result(future, timeout)

    monkeypatch.setattr("doublure.run.engines.PATIENCE", 1)
    monkeypatch.setattr(Future, "result", slow)
    assert list(workers.results(workers.each(abs, [-3]))) == [3]
    assert len(waited) < 10


def test_an_error_is_told_though_another_result_is_lost(monkeypatch, workers):
    from distributed import Future, wait

    result = Future.result

    def lost(future, timeout=None):
        if future.status == "finished":
            raise TimeoutError
        return result(future, timeout)

    monkeypatch.setattr(Future, "result", lost)
    for _ in range(5):  # whichever of them comes first
        wanted = workers.each(int, ["3", "no number"])
        with workers._client.as_current():
            wait(wanted)
        with pytest.raises(ValueError, match="no number"):
            list(workers.results(wanted))


def goes_on(data, ledger, run):
    """Resume with workers of our own."""
    from doublure.run.engines import start_local_cluster

    with start_local_cluster(1) as others:
        plan = plan_of(SEVERAL)
        syn = db.fit(data, plan, ledger=ledger, out=run, resume=True, engine=others._client)
    assert len(syn.sample(5)) == 5
    assert open_table(data).columns[0] == "who"
