"""Dask's workers: those of a cluster that is there, or of one on this machine that lives as long as the fit.

A cluster of our own speaks TLS on the loopback with a certificate that nobody else has, for whoever reaches a scheduler
can have anything run. It has no pages, its workers spill nothing, leave work where its records are, and have a folder
of mode 0700. A cluster of somebody else is as its owner has set it up; see docs/scale.md.

Dask sends functions and results with pickle, and is the only part of doublure that does.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import count
from typing import TYPE_CHECKING, Any

from doublure._version import __version__
from doublure.errors import InputError, RankLost, SettingError, printable
from doublure.run import worker_tasks as tasks

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 60
"""Seconds that a fit waits for a worker while there is none."""
_DIES = 100
"""How often a task may have been running on workers that died, before it is taken to be why."""
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
}


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
        """Ask for workers, and which version they have.

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
                        yield future.result(timeout=transfer)  # a result may be lost again, with its worker
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
def of_scheduler(address: str) -> Iterator[DaskWorkers]:
    """Connect to a scheduler; certificates of ``tls://`` are those of Dask's own configuration.

    Raises:
        SettingError: Nobody answers there, the address names no protocol, or certificates are missing for ``tls://``.
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
def of_this_machine(workers: int | None) -> Iterator[DaskWorkers]:
    """Start workers, one thread each, and stop them in the end.

    Args:
        workers: How many; None: one a processor.
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
