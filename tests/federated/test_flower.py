"""Through Flower's own messages: in this process without Ray, and over TLS between processes."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from owners import dealt, plan_of, with_owners
from parted import BOTH, SEVERAL, check_equal, people, replayed
from tiers import exhaustive
from typer.testing import CliRunner

import doublure as db
from doublure.cli.main import app as cli
from doublure.errors import InputError, OwnerLost, SettingError
from doublure.ledger import Ledger

if importlib.util.find_spec("flwr") is None:
    pytest.skip("Flower is an extra: scripts/test --all installs it beside", allow_module_level=True)

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.app import Message as FlowerMessage

from doublure.federated.flower import client_app, decode, encode, open_node_owner
from doublure.federated.simulate import simulate
from doublure.support.messages import Message


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def coordinators(folder):
    return Ledger.create(folder / "ledger", dataset="all", epsilon=1000.0, delta=0.5)


@pytest.mark.parametrize("schema", [SEVERAL, BOTH])
def test_the_release_through_flower_is_that_of_all_records_in_one_place(monkeypatch, tmp_path, schema):
    plan = plan_of(with_owners(schema))
    dealt(people(), tmp_path / "clients", 3, "who")
    with monkeypatch.context() as inner:
        replayed(inner)
        syn = simulate(tmp_path / "clients", plan, ledger=coordinators(tmp_path), out=tmp_path / "run", seed=1)
    (tmp_path / "one").mkdir()
    with monkeypatch.context() as inner:
        replayed(inner)
        one = db.fit(people(), plan, ledger=coordinators(tmp_path / "one"), out=tmp_path / "one" / "run", seed=1)
    check_equal(one, syn)
    assert "ray" not in sys.modules
    for owner in range(3):
        book = Ledger.open(tmp_path / "run" / "internal" / "clients" / f"owner-{owner}.csv" / "ledger")
        assert book.spent == Ledger.open(tmp_path / "ledger").spent


def test_a_message_survives_the_way_and_nothing_else_is_read():
    """What its bytes may hold is in ``tests/test_messages.py``."""
    said = Message({"ask": "counts", "é": [1, None, "x"]}, {"0.cells": np.arange(4), "0.starts": np.array([0.5])})
    heard = decode(encode(said))
    assert heard.words == said.words
    assert heard.sha256 == said.sha256
    hostile = [b"", b"{}", said.to_bytes()[:-1]]
    for content in (
        RecordDict(),
        RecordDict({"message": ConfigRecord({"message": said.to_bytes()})}),
        RecordDict({"message": ArrayRecord()}),
        *(RecordDict({"message": ArrayRecord({"message": Array("x", (1,), "x", data)})}) for data in hostile),
    ):
        assert decode(content) is None


def test_a_client_app_that_fails_ends_the_run_which_then_goes_on(tmp_path):
    failed = []

    def wrapped(app):
        def called(message, context):
            said = decode(message.content)
            if context.node_id == 2 and said and said.words["ask"] == "counts" and not failed:
                failed.append(said)
                return FlowerMessage(RecordDict(), reply_to=message)
            return app(message, context)

        return called

    dealt(people(), tmp_path / "clients", 3, "who")
    plan, ledger = plan_of(with_owners(SEVERAL)), coordinators(tmp_path)
    asked = {"ledger": ledger, "out": tmp_path / "run", "wrapped": wrapped}
    with pytest.raises(OwnerLost, match=r"owner-1\.csv sent something unreadable .* go on with --resume"):
        simulate(tmp_path / "clients", plan, **asked)
    syn = simulate(tmp_path / "clients", plan, **asked, resume=True)
    assert len(syn.sample(3)) == 3
    assert syn.run["owners"] == {"answered": 3, "of": 3}
    assert ledger.spent.epsilon == 20.0
    for owner in range(3):
        book = Ledger.open(tmp_path / "run" / "internal" / "clients" / f"owner-{owner}.csv" / "ledger")
        assert book.spent.epsilon == 20.0


def test_flowers_garbage_is_answered_by_a_refusal(tmp_path):
    (file,) = dealt(people(), tmp_path / "clients", 1)
    from doublure.federated.silo import Silo

    owner = Silo(name="a", data=str(file), plan=plan_of(with_owners(SEVERAL)), ledger=tmp_path / "x", folder=tmp_path)
    from doublure.federated.grid import InProcessGrid

    grid = InProcessGrid(client_app(lambda _: owner), [1])
    (reply,) = grid.send_and_receive([FlowerMessage(RecordDict(), 1, "query.doublure")])
    assert decode(reply.content).words["refused"] == "it speaks another version"


def test_the_command_says_what_came_of_it(tmp_path):
    dealt(people(), tmp_path / "clients", 3, "who")
    plan_of(with_owners(SEVERAL)).save(tmp_path / "plan.json")
    coordinators(tmp_path)
    asked = [
        "federate", "simulate", "--plan", str(tmp_path / "plan.json"), "--clients", str(tmp_path / "clients"),
        "--ledger", str(tmp_path / "ledger"), "-o", str(tmp_path / "run"),
    ]  # fmt: skip
    outcome = CliRunner().invoke(cli, asked, standalone_mode=False).return_value
    assert "3 of 3 clients, " in outcome.text
    assert "none was missed" in outcome.text
    assert outcome.data["federated"]["clients"] == ["owner-0.csv", "owner-1.csv", "owner-2.csv"]
    assert db.load(tmp_path / "run").guarantee.epsilon == 20.0
    (tmp_path / "none").mkdir()
    asked[asked.index(str(tmp_path / "clients"))] = str(tmp_path / "none")
    with pytest.raises(InputError, match="is empty"):
        CliRunner().invoke(cli, asked, standalone_mode=False, catch_exceptions=False)


def test_a_file_says_how_many_units_clients_have(tmp_path):
    dealt(people(), tmp_path / "clients", 3, "who")
    plan_of(with_owners(SEVERAL)).save(tmp_path / "plan.json")
    coordinators(tmp_path)
    (tmp_path / "units.yaml").write_text("owner-0.csv: 90\nowner-2.csv: 80\n")
    asked = [
        "federate", "simulate", "--plan", str(tmp_path / "plan.json"), "--clients", str(tmp_path / "clients"),
        "--ledger", str(tmp_path / "ledger"), "-o", str(tmp_path / "run"), "--units", str(tmp_path / "units.yaml"),
    ]  # fmt: skip
    outcome = CliRunner().invoke(cli, asked, standalone_mode=False, catch_exceptions=False).return_value
    assert outcome.data["federated"]["units"] == {"owner-0.csv": 90, "owner-1.csv": 300, "owner-2.csv": 80}
    with pytest.raises(SettingError, match="units owner-3: is no client"):
        simulate(
            tmp_path / "clients", plan_of(with_owners(SEVERAL)), ledger=tmp_path / "ledger", out=tmp_path / "other",
            units={"owner-3": 1},
        )  # fmt: skip


def test_a_nodes_configuration_says_its_units_and_whether_it_pays_again(tmp_path):
    plan_of(with_owners(SEVERAL)).save(tmp_path / "plan.json")

    def owner(folder, **more):
        config = {"data": "x.csv", "plan": str(tmp_path / "plan.json"), "ledger": "l", "folder": str(tmp_path / folder)}
        return open_node_owner(SimpleNamespace(node_id=1, node_config=config | more))

    assert (owner("a")._units, owner("a")._again) == (None, False)
    assert (owner("b", units=90, again=True)._units, owner("b", units=90, again=True)._again) == (90, True)
    for wrong, field in (({"units": "90"}, "units"), ({"units": True}, "units"), ({"again": "yes"}, "again")):
        with pytest.raises(SettingError, match=f"node-config {field}"):
            owner("c", **wrong)


# -- SuperLink and SuperNodes ------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Network:
    """A SuperLink and SuperNodes on loopback, with TLS."""

    def __init__(self, folder, files):
        self.folder, self.files, self.port, self.running = folder, files, free_port(), {}
        source = str(Path(db.__file__).parents[1])
        self.environment = os.environ | {
            "FLWR_HOME": str(folder / "flower"), "FLWR_TELEMETRY_ENABLED": "0", "PYTHONPATH": source,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
        }  # fmt: skip

    def start(self, name, *command):
        with (self.folder / f"{name}.log").open("a") as log:
            self.running[name] = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def link(self):
        self.start(
            "link", "flower-superlink", "--ssl-ca-certfile", "hospitals/tls/ca.pem", "--ssl-certfile",
            "hospitals/tls/server.pem", "--ssl-keyfile", "hospitals/tls/server.key", "--port", str(self.port),
            "--disable-runtime-dependency-installation",
        )  # fmt: skip

    def node(self, number):
        own = self.folder / f"site-{number}"
        config = {"data": self.files[number], "plan": own / "plan.json", "ledger": own / "ledger", "folder": own}
        said = " ".join(f'{key}="{value}"' for key, value in {**config, "name": f"site-{number}"}.items())
        self.start(
            f"node-{number}", "flower-supernode", "--root-certificates", "hospitals/tls/ca.pem", "--superlink",
            f"127.0.0.1:{self.port}", "--port", str(free_port()), "--node-config", f"{said} units=150",
        )  # fmt: skip

    def kill(self, name):
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self):
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for name in list(self.running):
            try:
                self.running[name].wait(20)
                os.killpg(self.running[name].pid, signal.SIGKILL)
            except (subprocess.TimeoutExpired, ProcessLookupError, PermissionError):
                self.running[name].kill()


def until(found, seconds, what):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.5)


@exhaustive
def test_hospitals_over_tls_one_of_which_is_killed_and_comes_back(tmp_path, monkeypatch):
    """It is killed while it is asked: that ends the run, which goes on once the hospital is back."""
    network = Network(tmp_path, dealt(people(), tmp_path / "clients", 2, "who"))
    monkeypatch.setenv("FLWR_HOME", network.environment["FLWR_HOME"])
    plan = plan_of(with_owners(SEVERAL))
    plan.save(tmp_path / "plan.json")
    coordinators(tmp_path)
    for number in range(2):
        (tmp_path / f"site-{number}").mkdir()
        plan.save(tmp_path / f"site-{number}" / "plan.json")
        Ledger.create(tmp_path / f"site-{number}" / "ledger", dataset=f"site {number}", epsilon=30.0, delta=0.5)
    init = [
        "federate", "init", str(tmp_path / "hospitals"), "--plan", str(tmp_path / "plan.json"), "--clients", "2",
        "--ledger", str(tmp_path / "ledger"), "-o", str(tmp_path / "run"), "--timeout", "120",
        "--port", str(network.port),
    ]  # fmt: skip
    CliRunner().invoke(cli, init, standalone_mode=False, catch_exceptions=False)
    try:
        network.link()
        until(lambda: "started" in (tmp_path / "link.log").read_text().lower(), 90, "the link does not start")
        for number in range(2):
            network.node(number)

        def submitted():
            run = ["flwr", "run", "hospitals", "hospitals"]
            found = subprocess.run(
                run, cwd=tmp_path, env=network.environment, capture_output=True, text=True, timeout=120, check=False
            )
            assert found.returncode == 0, found.stdout + found.stderr

        def status():
            record = tmp_path / "run" / "run.json"
            return json.loads(record.read_text()) if record.is_file() else {}

        submitted()
        until((tmp_path / "site-1" / "asked.jsonl").is_file, 600, "nothing was asked")
        network.kill("node-1")
        before = len((tmp_path / "site-1" / "asked.jsonl").read_text().splitlines())
        until(lambda: "federated" in status(), 1800, "the run does not end")
        assert status()["status"] == "interrupted"
        network.node(1)
        until(lambda: (tmp_path / "link.log").read_text().count("Activated node_id") == 3, 90, "it does not come back")
        config = tmp_path / "hospitals" / "pyproject.toml"
        config.write_text(config.read_text().replace("resume = false", "resume = true"))
        submitted()

        def done():
            # Flower may name the node that was killed for a while: it is asked who is there, and does not answer.
            rounds = status()["federated"]["rounds"]
            missed = any(each["missed"] for each in rounds if each["asked"] != "who is there")
            return status()["status"] == "done" and not missed  # rounds are written down last

        until(done, 1800, "the run does not end")
    finally:
        network.stop()
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "done"
    assert record["federated"]["clients"] == ["site-0", "site-1"]
    assert record["owners"] == {"answered": 2, "of": 2}
    assert len((tmp_path / "site-1" / "asked.jsonl").read_text().splitlines()) > before
    assert len(db.load(tmp_path / "run").sample(5)) == 5
    for number in range(2):
        book = Ledger.open(tmp_path / f"site-{number}" / "ledger")
        assert book.spent.epsilon == 20.0  # charged once, whatever was killed
        assert len(book.show()["runs"]) == 1
