"""Where a fit has its records computed: in this process, or by the workers of a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from doublure.data.opening import Given, open_data
from doublure.data.tables.source import TableSource
from doublure.errors import DataError, SettingError
from doublure.run.elsewhere import Elsewhere
from doublure.support.extras import require_dask

if TYPE_CHECKING:
    from distributed import Client

    from doublure.planning import Plan
    from doublure.run.dask_workers import DaskWorkers

Engine: TypeAlias = "str | Client"

LOCAL = "local"


def refuse_held(plan: Plan, *, parted: bool) -> None:
    """Refuse a method that has to hold its records, as workers keep theirs.

    Raises:
        SettingError: It has to.
    """
    if not parted:
        remedy = "plan a table with statistics, or fit without an engine"
        raise SettingError(f"{plan.method} holds its records", field="engine", remedy=remedy)


@contextlib.contextmanager
def placed(
    data: Given | Elsewhere, plan: Plan, engine: Engine, scheduler: str | None, threads: int | None
) -> Iterator[Given | Elsewhere]:
    """Hand out data as this engine reads it; what it needs is there as long as the context is.

    Args:
        data: What was given.
        plan: What is run.
        engine: ``local``, ``dask``, or a client of Dask.
        scheduler: Of a cluster that is there; None: one on this machine.
        threads: How many workers such a one has.

    Raises:
        SettingError: There is no such engine, or it has no scheduler.
        MissingExtra: It is not installed.
        DataError: The data is no table in files.
    """
    begin = _ENGINES.get(engine) if isinstance(engine, str) else partial(_of_client, engine)
    if begin is None:
        raise SettingError("is no engine", field="engine", remedy=f"choose {' or '.join(_ENGINES)}")
    with begin(scheduler, threads) as workers:
        yield data if workers is None else _on(data, plan, workers)


def _on(data: Any, plan: Plan, workers: DaskWorkers) -> Elsewhere:
    from doublure.run.on_workers import RecordsOnWorkers

    path = Path(data).absolute() if isinstance(data, (str, os.PathLike)) else data
    source = open_data(path, plan.kind, plan.schema.written)
    if not isinstance(source, TableSource):
        raise DataError("is no table", field="data", remedy="fit it without an engine")
    return RecordsOnWorkers(source, plan, workers)


@contextlib.contextmanager
def _local(scheduler: str | None, threads: int | None) -> Iterator[None]:
    if scheduler is not None:
        raise SettingError("is for engine dask", field="scheduler", remedy="leave it out, or give the engine")
    yield None


@contextlib.contextmanager
def _dask(scheduler: str | None, threads: int | None) -> Iterator[DaskWorkers]:
    require_dask("engine dask")
    from doublure.run import dask_workers as dask

    begun = dask.of_this_machine(threads) if scheduler is None else dask.of_scheduler(scheduler)
    with begun as workers:
        yield workers


@contextlib.contextmanager
def _of_client(client: Client, scheduler: str | None, threads: int | None) -> Iterator[DaskWorkers]:
    require_dask("engine")
    from distributed import Client

    from doublure.run.dask_workers import DaskWorkers

    if not isinstance(client, Client) or scheduler is not None:
        raise SettingError("is no engine", field="engine", remedy="give dask and a scheduler's address, or a client")
    yield DaskWorkers(client)


_ENGINES: Mapping[str, Callable[[str | None, int | None], contextlib.AbstractContextManager[DaskWorkers | None]]] = {
    LOCAL: _local,
    "dask": _dask,
}
