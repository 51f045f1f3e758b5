"""Simulated federation in one process, with the files or subfolders of a folder as clients."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from doublure.errors import InputError, SettingError
from doublure.federated import declared
from doublure.federated.clients import Clients, Transport
from doublure.federated.silo import Silo
from doublure.ledger import Ledger
from doublure.planning import Plan
from doublure.run.fitting import fit
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.support import files
from doublure.support.progress import Progress

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp

    from doublure.run.synthesizer import Synthesizer

CLIENTS = "clients"


def simulate(
    clients: str | Path,
    plan: Plan,
    *,
    ledger: Ledger | str | Path,
    out: str | Path,
    resume: bool = False,
    again: bool = False,
    units: Mapping[str, int] | None = None,
    one_unit: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    said: Callable[[str], None] = lambda _: None,
    wrapped: Callable[[ClientApp], ClientApp] = lambda app: app,
) -> Synthesizer:
    """Fit a plan to private data that lies with several clients, all of them in this process.

    Args:
        clients: A folder; each file or subfolder in it is a client's data.
        plan: From :func:`doublure.plan`; its schema has ``federated``.
        ledger: The coordinator's. Each client has one of its own, under ``internal/clients/`` of the run folder.
        out: The run folder.
        resume: Go on with the run in ``out``.
        again: Whether to charge a plan that a run of the ledger is charged for already; for each client likewise.
        units: Public bounds on clients' units, by the name of a client's file or folder, as each owner would declare
            them. They are never counted. A client that is left out is bounded by the plan's units.
        one_unit: Whether each client is one unit, so that its answers have a bound; coins then choose clients.
        seed: Public: of the generator, never of the noise.
        threads: CPU threads; left out, one where no torch is needed.
        progress: Receives progress events.
        said: Called with a line for each client that was refused or missed a round, and the reason; each once.
        wrapped: Changes the app of every node, for tests of bad answers.

    Returns:
        The synthesizer.

    Raises:
        InputError: There is no client, or one has another schema or version; nothing was charged anywhere.
        BudgetRefused: The coordinator's ledger does not pay.
    """
    post_of = _flower()
    found = find_clients(Path(clients))
    declared.refuse_unknown_clients(units or {}, [path.name for path in found])
    folder = Path(out) / "internal" / CLIENTS
    owners = {
        number: Silo(
            name=path.name,
            data=str(path),
            plan=plan,
            ledger=folder / path.name / "ledger",
            folder=folder / path.name,
            units=(units or {}).get(path.name),
            again=again,
            makes_ledger=True,
        )
        for number, path in enumerate(found, start=1)
    }
    asked = Clients(post_of(owners, wrapped), plan, one_unit=one_unit, said=said)
    return fit_remotely(
        asked,
        plan,
        ledger=ledger,
        out=Path(out),
        resume=resume,
        again=again,
        seed=seed,
        threads=threads,
        progress=progress,
    )


def fit_remotely(
    asked: Clients,
    plan: Plan,
    *,
    ledger: Ledger | str | Path,
    out: Path,
    resume: bool = False,
    again: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Synthesizer:
    """Fit a plan by asking owners, and record the rounds that each of them missed."""
    done, fresh = False, not files.holds_anything(out)
    if resume:
        asked.go_on(out / "internal")
    try:
        fit(
            asked,
            plan,
            ledger=ledger,
            out=out,
            resume=resume,
            again=again,
            seed=seed,
            threads=threads,
            progress=progress,
        )
        done = True
    finally:
        asked.end(done=done)
        if (out / "run.json").is_file():
            with contextlib.suppress(InputError):
                if asked.at_work:
                    RunFolder.open(out).update_run(federated=asked.summary())
        elif fresh:  # nothing came of it: remove the clients' files, too
            shutil.rmtree(out / "internal", ignore_errors=True)
            with contextlib.suppress(OSError):
                out.rmdir()
    return read_synthesizer(RunFolder.open(out))


def find_clients(folder: Path) -> list[Path]:
    """Return the clients' data, in the order of their names.

    Raises:
        InputError: There is no folder, or nothing in it.
    """
    if not folder.is_dir():
        raise InputError("is no folder", field=folder, remedy="give one whose files or subfolders are clients")
    found = sorted(path for path in folder.iterdir() if path.name[0] not in "._")
    if not found:
        raise InputError("is empty", field=folder, remedy="put one file or subfolder a client into it")
    return found


def _flower() -> Callable[[dict[int, Silo], Callable[[ClientApp], ClientApp]], Transport]:
    """Return a function that makes a transport of owners in this process.

    Raises:
        SettingError: Flower is not installed.
    """
    require_flower()
    from doublure.federated.flower import FlowerTransport, client_app
    from doublure.federated.grid import InProcessGrid

    def post_of(owners: dict[int, Silo], wrapped: Callable[[ClientApp], ClientApp]) -> Transport:
        app = wrapped(client_app(lambda context: owners[context.node_id]))
        return FlowerTransport(InProcessGrid(app, list(owners)))

    return post_of


def require_flower() -> None:
    """Refuse where Flower is not installed.

    Raises:
        SettingError: It is not.
    """
    import importlib.util

    if importlib.util.find_spec("flwr") is None:
        remedy = "pip install -c constraints-federated.txt 'doublure[federated]'"
        raise SettingError("is not installed", field="flwr", remedy=remedy)
