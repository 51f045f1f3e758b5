"""Engines of a fit: this process, or the workers of a Dask cluster.

The cluster is an existing one, or one on this machine that lives as long as the fit. A cluster of our own uses TLS on
the loopback with a private certificate, because a scheduler runs any code that it is sent. It has no pages. Its workers
spill nothing, leave work where its records are, and have a folder of mode 0700. The owner of an existing cluster is
responsible for its set-up; see docs/scale.md.

Dask sends functions and results with pickle, and is the only part of doublure that does.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from doublure._version import __version__
from doublure.data.opening import Given, open_data
from doublure.data.tables.source import TableSource
from doublure.errors import DataError, InputError, RankLost, SettingError, printable
from doublure.run import worker_tasks as tasks
from doublure.run.record_sources import RemoteSource
from doublure.run.worker_records import WorkerRecords
from doublure.support.extras import require_dask
from doublure.support.objects import find_place

if TYPE_CHECKING:
    from distributed import Client

    from doublure.planning import Plan

Engine: TypeAlias = str | Any
"""A name, or a client of Dask, which need not be installed."""

LOCAL = "local"
PATIENCE = 60
"""Seconds that a fit waits for a worker while there is none."""
_DIES = 100
"""Number of dead workers after which a task is taken to be the cause."""
_QUIET = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.scheduler.allowed-failures": _DIES,
    "distributed.admin.large-graph-warning-threshold": "1GB",
    # else a worker that is down at one moment, 15 seconds after any death of it, is given up though it is being started
    "distributed.deploy.lost-worker-timeout": "365 days",
}


def refuse_held(plan: Plan, *, parted: bool) -> None:
    """Refuse a method that has to hold all records, as workers keep theirs.

    Raises:
        SettingError: The method has to.
    """
    if not parted:
        remedy = "plan a table with statistics, or fit an export without an engine"
        raise SettingError(f"{plan.method} holds its records", field="engine", remedy=remedy)


@contextlib.contextmanager
def place_data(
    data: Given | RemoteSource, plan: Plan, engine: Engine, scheduler: str | None, threads: int | None
) -> Iterator[Given | RemoteSource]:
    """Yield the data as this engine reads it; a cluster lives as long as the context.

    Args:
        data: The given data.
        plan: The plan of the run.
        engine: ``local``, ``dask``, or a client of Dask.
        scheduler: Of an existing cluster; None: one on this machine.
        threads: Number of workers on this machine.

    Raises:
        SettingError: There is no such engine, or it has no scheduler.
        MissingExtra: It is not installed.
        DataError: The data is no table in files.
    """
    begin = _ENGINES.get(engine) if isinstance(engine, str) else partial(_of_client, engine)
    if begin is None:
        raise SettingError("is no engine", field="engine", remedy=f"choose {' or '.join(_ENGINES)}")
    with begin(scheduler, threads) as workers:
        if workers is None:
            yield data
            return
        records = _on(data, plan, workers)
        try:
            yield records
        finally:
            records.forget()


def _on(data: Any, plan: Plan, workers: DaskWorkers) -> WorkerRecords:
    place = find_place(data) if isinstance(data, (str, os.PathLike)) else data
    source = open_data(place.absolute() if isinstance(place, Path) else place, plan.kind, plan.schema.written)
    if not isinstance(source, TableSource):
        raise DataError("is no table", field="data", remedy="fit it without an engine")
    return WorkerRecords(source, plan, workers)


@contextlib.contextmanager
def _local(scheduler: str | None, threads: int | None) -> Iterator[None]:
    if scheduler is not None:
        raise SettingError("is for engine dask", field="scheduler", remedy="leave it out, or give the engine")
    yield None


@contextlib.contextmanager
def _dask(scheduler: str | None, threads: int | None) -> Iterator[DaskWorkers]:
    require_dask("engine dask")
    with start_local_cluster(threads) if scheduler is None else connect_to_scheduler(scheduler) as workers:
        yield workers


@contextlib.contextmanager
def _of_client(client: Client, scheduler: str | None, threads: int | None) -> Iterator[DaskWorkers]:
    require_dask("engine")
    from distributed import Client

    if not isinstance(client, Client) or scheduler is not None:
        raise SettingError("is no engine", field="engine", remedy="give dask and a scheduler's address, or a client")
    yield DaskWorkers(client)


_ENGINES: Mapping[str, Callable[[str | None, int | None], contextlib.AbstractContextManager[DaskWorkers | None]]] = {
    LOCAL: _local,
    "dask": _dask,
}


# -- Dask --------------------------------------------------------------------------------------------------------------


class DaskWorkers:
    """The workers of a client.

    Args:
        client: Connected.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._name = f"doublure-{secrets.token_hex(8)}"
        self._numbers = count()

    def check(self) -> None:
        """Check that there are workers, and their version.

        Raises:
            InputError: There is none, or one has another version.
        """
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InputError("has no workers", field="scheduler", remedy="start some, and fit again") from None
        for worker, found in self._client.run(tasks.version, on_error="return").items():
            if found != __version__:
                has = f"has doublure {found}" if isinstance(found, str) else "cannot import doublure"
                raise InputError(has, field=f"worker {printable(worker)}", remedy=f"install {__version__} there")

    def each(self, does: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """Submit a task for each."""
        name = f"{self._name}-{does.__name__}"
        return [
            self._client.submit(does, *own, key=f"{name}-{next(self._numbers)}", pure=False)
            for own in zip(*given, strict=True)
        ]

    def results(self, wanted: Sequence[Any]) -> Iterator[Any]:
        """Yield results as they come."""
        from distributed import wait
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        pending, seen, transfer = set(wanted), time.monotonic(), PATIENCE / 10
        try:
            while pending:
                done: set[Any] = set()
                try:
                    with self._client.as_current():
                        done = wait(pending, timeout=PATIENCE / 10, return_when="FIRST_COMPLETED").done
                    for future in done:
                        yield future.result(timeout=transfer)  # a result may be lost again with its worker
                        pending.remove(future)
                        seen = time.monotonic()
                except TimeoutError:  # tasks may take long, but not without workers
                    for future in pending:
                        if future.status == "error":
                            future.result(timeout=PATIENCE)
                    if self._client.nthreads():
                        seen = time.monotonic()
                        transfer *= 2 if done else 1  # or it is large, and would never be there in time
                    elif time.monotonic() - seen > PATIENCE:
                        raise
        except (KilledWorker, CommClosedError, CancelledError, TimeoutError, OSError):
            raise RankLost("the workers are gone", field="engine", remedy="see why, and go on with --resume") from None


@contextlib.contextmanager
def connect_to_scheduler(address: str) -> Iterator[DaskWorkers]:
    """Connect to a scheduler; certificates of ``tls://`` are those of Dask's own configuration.

    Raises:
        SettingError: It does not answer, the address names no protocol, or certificates are missing for ``tls://``.
    """
    from distributed import Client
    from distributed.security import Security

    if "://" not in address:
        raise SettingError("names no protocol", field="scheduler", remedy="write tls://host:port, or tcp://")
    try:
        if address.startswith("tls://") and Security().get_connection_args("client")["ssl_context"] is None:
            remedy = "set them in Dask's configuration, as docs/scale.md says"
            raise SettingError("has no certificates for tls://", field="scheduler", remedy=remedy)
        client = Client(address, set_as_default=False)
    except (OSError, ValueError, TimeoutError, TypeError) as error:
        remedy = "see that it runs, and that certificates are in Dask's configuration"
        raise SettingError(f"cannot be reached ({type(error).__name__})", field=address, remedy=remedy) from None
    with client:
        yield DaskWorkers(client)


@contextlib.contextmanager
def start_local_cluster(workers: int | None) -> Iterator[DaskWorkers]:
    """Start workers, one thread each, and stop them in the end.

    Args:
        workers: Number of workers; None: one per processor.
    """
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    with tempfile.TemporaryDirectory(prefix="doublure-") as folder, dask.config.set(_QUIET):
        cluster = LocalCluster(
            n_workers=workers or os.cpu_count(),
            threads_per_worker=1,
            host="127.0.0.1",
            protocol="tls://",
            security=Security.temporary(),
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            local_directory=folder,
            silence_logs="CRITICAL",
        )
        with cluster, Client(cluster, set_as_default=False) as client:
            yield DaskWorkers(client)
