"""docs/federated.md runs as it stands, from an empty folder."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from shell import type_in
from tiers import exhaustive

import doublure as db
from doublure.cli.main import app
from doublure.ledger import Ledger

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "federated.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_commands_shown_exist():
    group = typer.main.get_command(app).commands["federate"].commands
    assert set(re.findall(r"^doublure federate (\w+)", PAGE, flags=re.MULTILINE)) == set(group)


def test_nothing_is_promised_that_is_not():
    assert not re.search(r"anonym|\bsafe(?!tensors)", PAGE, flags=re.IGNORECASE)


needs_flower = pytest.mark.skipif(
    importlib.util.find_spec("flwr") is None, reason="Flower is an extra: scripts/test --all installs it beside"
)


@needs_flower
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,), (commands,) = blocks("python"), blocks("sh")
    exec(compile(code, "docs/federated.md", "exec"), {})
    type_in(commands)
    record = json.loads(Path("run/run.json").read_text())
    assert record["federated"]["clients"] == ["north.csv", "south.csv"]
    assert not any(each["missed"] for each in record["federated"]["rounds"])
    assert len(Path("rows.csv").read_text().splitlines()) == 1001


PORTS = "8000", "9094", "9095"


def free_ports(number):
    taken = [socket.socket() for _ in range(number)]
    for each in taken:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return map(str, ports)


def wait_for(port):
    """Return once somebody listens, as a reader who types has seen."""
    for _ in range(600):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail("the SuperLink does not start")


@exhaustive
@needs_flower
def test_two_nodes_on_one_machine_by_the_pages_own_commands(tmp_path, monkeypatch):
    """Over TLS, each process its own; what goes on in the background ends with the test."""
    monkeypatch.chdir(tmp_path)
    (code,), (plans,), (commands,) = blocks("python"), blocks("sh"), blocks("bash")
    exec(compile(code, "docs/federated.md", "exec"), {})
    type_in(plans.splitlines()[0])
    for printed, free in zip(PORTS, free_ports(len(PORTS)), strict=True):
        commands = re.sub(rf"(?<=[ :]){printed}\b", free, commands)
        if printed == PORTS[0]:
            link = int(free)
            commands = re.sub(r"(federate init .*)", rf"\1 --port {free}", commands)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"FLWR_HOME": str(tmp_path / "flower"), "FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1", "PATH": path}
    environment = os.environ | own | {"PYTHONPATH": str(Path(db.__file__).parents[1])}
    beside = []
    try:
        for line in commands.splitlines():
            words = shlex.split(line.removesuffix("&"))
            words = [sys.executable, "-m", *words] if words[0] == "doublure" else words
            if words[0] == "flwr":
                wait_for(link)
            if line.endswith("&"):
                with Path(f"{len(beside)}.log").open("w") as log:
                    beside.append(
                        subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)
                    )
            else:
                done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=1800, check=False)
                assert done.returncode == 0, done.stdout + done.stderr
    finally:
        for process in beside:
            process.terminate()
        for process in beside:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
    record = json.loads(Path("both/run.json").read_text())
    assert record["status"] == "done"
    assert record["federated"]["clients"] == ["north", "south"]
    asked = [each["asked"] for each in record["federated"]["rounds"]]
    assert "the learned facts" not in asked
    assert record["federated"]["units"] == {"north": 2500, "south": 1500}
    assert [Ledger.open(f"{owner}.ledger").spent.epsilon for owner in ("all", "north", "south")] == [1.0] * 3
    assert "Wrote" in done.stderr  # the log, followed to its end
