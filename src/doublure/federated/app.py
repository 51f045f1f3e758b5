"""Server and client of a Flower app, and the app folder that ``doublure federate init`` writes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from doublure.errors import InputError, SettingError
from doublure.federated.clients import Clients
from doublure.federated.flower import FlowerTransport, client_app, open_node_owner
from doublure.federated.network import (
    TLS,
    add_entry,
    require_free_entry,
    require_hosts,
    toml_text,
    write_certificates,
)
from doublure.federated.rounds_log import LOG, LoggedStages, RoundsLog
from doublure.federated.simulate import fit_remotely
from doublure.ledger.places import find_place
from doublure.planning import Plan
from doublure.support import files

_POLL = 1.0
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_CONFIG = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.0.0"
description = "Ask owners who keep their records, with doublure"
license = "Apache-2.0"
dependencies = ["doublure[federated]"]

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "doublure"

[tool.flwr.app.components]
serverapp = "{name}.server_app:app"
clientapp = "{name}.client_app:app"

[tool.flwr.app.config]
plan = {plan}
ledger = {ledger}
out = {out}
clients = {clients}
timeout = {timeout}
log = {log}
resume = false
again = false
"""
_HALVES = {
    "__init__.py": '"""Ask owners who keep their records, with doublure."""\n',
    "server_app.py": '"""Adds the owners\' answers up, and the noise."""\n\n'
    "from doublure.federated.app import server_app\n\napp = server_app()\n",
    "client_app.py": '"""One owner."""\n\nfrom doublure.federated.app import node_app\n\napp = node_app()\n',
}


def node_app() -> ClientApp:
    """Return the app of a SuperNode, whose owner is described by its ``--node-config``."""
    return client_app(open_node_owner)


def server_app() -> ServerApp:
    """Return the app of the server, which fits as the run's configuration says."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        run(grid, context.run_config)

    return app


def run(grid: Grid, config: Mapping[str, Any]) -> None:
    """Fit as a run's configuration says, once the number of nodes that it names are connected.

    Raises:
        DoublureError: The run was refused, or failed; Flower then marks it failed, too.
    """
    log = RoundsLog(Path(str(config["log"])) if "log" in config else None, _tell)
    out, resume = Path(str(config["out"])), bool(config["resume"])
    with log.run(f"{'goes on with' if resume else 'begins'} {out}"):
        plan, timeout = Plan.load(str(config["plan"])), float(config["timeout"])
        invited, federated = int(config["clients"]), plan.schema.federated
        need = invited if federated is None or federated.need is None else federated.need
        _wait_for(grid, invited, timeout, need=need)
        post = FlowerTransport(grid, timeout=timeout)
        asked = Clients(post, plan, said=log.add, asked=log.add, invited=invited)
        made = fit_remotely(
            asked,
            plan,
            ledger=str(config["ledger"]),
            out=out,
            resume=resume,
            again=bool(config.get("again", False)),
            progress=LoggedStages(log),
        )
        log.add(made.guarantee.sentence)
        log.add(f"Wrote {out}.")


def _wait_for(grid: Grid, clients: int, timeout: float, *, need: int) -> None:
    """Return once all named nodes are connected, or in the end if as many as are needed are."""
    until = time.monotonic() + timeout
    while len(found := list(grid.get_node_ids())) < clients:
        if time.monotonic() > until:
            if len(found) >= need:
                return
            raise InputError(
                f"{len(found)} of {clients} are there", field="clients", remedy="start the others, or name fewer"
            )
        time.sleep(_POLL)


def _tell(line: str) -> None:
    import logging

    logging.getLogger("flwr").info(line)


def init(
    app: Path,
    *,
    plan: Path,
    ledger: str | Path,
    out: Path,
    clients: int,
    timeout: float,
    hosts: Sequence[str] = ("localhost",),
    port: int = 8000,
) -> list[str]:
    """Write a Flower app, certificates for its SuperLink, and Flower's config entry of the app's name.

    Args:
        app: A new folder; its name is the app's.
        plan: The coordinator's copy of the plan.
        ledger: The coordinator's ledger.
        out: The run folder to make.
        clients: Number of owners.
        timeout: Seconds to wait for all answers to one question.
        hosts: Names and addresses by which owners reach the SuperLink; the first is the entry's.
        port: The SuperLink's port.

    Returns:
        The files' names in the folder.

    Raises:
        SettingError: The folder's name is no name of a Python package, or a host is none.
        InputError: The folder is not empty, or Flower knows a connection of this name.
    """
    name = app.name
    if not _NAME.fullmatch(name):
        raise SettingError("is no name of a package", field="APP", remedy="use a to z, 0 to 9 and _, such as hospitals")
    if files.holds_anything(app):
        raise InputError("is not empty", field=app, remedy="give a new folder")
    require_hosts(hosts)
    require_free_entry(name)
    Plan.load(plan)
    config = _CONFIG.format(
        name=name,
        plan=toml_text(str(plan.absolute())),
        ledger=toml_text(find_place(ledger).address),
        out=toml_text(str(out.absolute())),
        log=toml_text(str((app / LOG).absolute())),
        clients=clients,
        timeout=float(timeout),
    )
    (app / name).mkdir(parents=True)
    written = {"pyproject.toml": config, **{f"{name}/{half}": text for half, text in _HALVES.items()}}
    for path, text in written.items():
        (app / path).write_text(text, encoding="utf-8")
    made = write_certificates(app / TLS, hosts)
    add_entry(name, host=hosts[0], port=port, authority=app / TLS / made[0])
    return sorted([*written, *(f"{TLS}/{each}" for each in made)])
