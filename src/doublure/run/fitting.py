"""``fit()``: reserve -> load -> learn -> resolve -> encode -> train -> save.

Owns the run and holds no mathematics. The ledger's charge is on disk before the first record is opened; every learned
fact and every chunk of noisy steps is marked there before it is drawn; whatever ends the run, what was charged stays
charged, except that a run which drew no noise is closed at zero and its folder removed.

:mod:`doublure.run.running` lists the state that a killed run leaves.

Of several processes that resume one run, one wins, and the others write nothing. Two locks ensure this:

- The folder's lock, from before it is first read until the process ends, however it ends. A process that cannot acquire
  it exits; another process is using the run. It is no file of its own, and the kernel releases it after ``kill -9``.
- The ledger's lock, for copies of a folder, which do not share the first lock. Under it the ledger checks whether one
  of the folder's sessions is the run's last one. Only then, still under it, does the folder record the next session,
  and only after that does the ledger. A crash between the two leaves a folder that knows both.

The winner removes half-written files of a killed process, once the ledger has decided.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from doublure.data.databases.streaming import DatabaseStream
from doublure.data.opening import Given, open_data
from doublure.data.tables.on_disk import refuse_read_whole
from doublure.errors import (
    BudgetRefused,
    CeilingPassed,
    FaultyRecords,
    InputError,
    SettingError,
    printable,
)
from doublure.ledger import Budget, Ledger
from doublure.ledger.places import find_place
from doublure.ledger.request import plan_charge
from doublure.methods import registry as methods
from doublure.planning import Plan, plan
from doublure.planning.machine import RecordPlacement, choose_placement, parse_bytes, refuse_too_large
from doublure.planning.planner import refuse_open_unit
from doublure.run.database_records import DatabaseRecords
from doublure.run.database_units import place_in_database
from doublure.run.engines import LOCAL, Engine, place_data, refuse_held
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.run.ranks import LocalRun
from doublure.run.record_sources import RemoteSource
from doublure.run.rehearsal import rehearse
from doublure.run.running import FitRun
from doublure.run.synthesizer import Synthesizer
from doublure.schema import Schema
from doublure.support import files, seeding
from doublure.support.devices import check_device, threads_of_fit
from doublure.support.extras import require_torch
from doublure.support.progress import Progress, listen

_HEAD = ("number", "file", "rule")
_PRIVATE = 0o600


def fit(
    data: Given | RemoteSource,
    plan: Plan,
    *,
    ledger: Ledger | str | Path,
    out: str | Path | None = None,
    resume: bool = False,
    seed: int | None = None,
    device: str = "cpu",
    threads: int | None = None,
    memory: int | str | None = None,
    engine: Engine = LOCAL,
    scheduler: str | None = None,
    again: bool = False,
    table: str | None = None,
    query: str | None = None,
    progress: Progress | bool | None = None,
    ranks: LocalRun | None = None,
) -> Synthesizer:
    """Fit a plan to private data.

    Args:
        data: A table: CSV, Parquet, a folder or pattern of such files, a DataFrame, or any stream of Arrow. Images:
            NPZ, IDX, Parquet, a folder, a CSV file of names, or a mapping of arrays. Or a remote source, or the URL of
            a database, which counts its own records, or streams them where a method needs them.
        plan: From :func:`doublure.plan`.
        ledger: The ledger that the run is charged to, durably, before the data is opened.
        out: A new run folder. Without one the synthesizer is kept in memory; a run that fails after a purchase stays in
            a temporary folder, which the error names, and can be resumed from there.
        resume: Resume the run in ``out``: what was drawn is told again, what is left is drawn inside its reservation.
        seed: Public: initial weights and public draws. Privacy noise is fresh each time, so that no seed repeats it.
        device: Device to compute on, such as ``cpu`` or ``cuda``.
        threads: CPU threads; left out, one where no torch is needed, as on tables, else as many as torch takes.
        memory: Memory that the process may use, such as ``2GB``, or bytes; None: all that there is. A larger table is
            read in partitions, by a method that can; see docs/scale.md.
        engine: The place of the records: ``local``; or ``dask``, whose workers read a table in files, keep it, and
            answer queries; or a client of Dask. In a script, ``dask`` without a scheduler belongs under
            ``if __name__ == "__main__":``, as its processes import the script.
        scheduler: For ``dask``, the address of an existing cluster; left out, ``threads`` workers are started on this
            machine, or one per processor.
        again: Whether to charge a plan that a run of this ledger is charged for already. Such a fit is refused
            otherwise: it would spend the same (ε, δ) once more. Data are known by the ledger's data set alone.
        table: In a database, the table or view whose rows are the records, such as ``clinic.people``.
        query: Or a query of rows; see docs/sources.md.
        progress: Receives progress events; left out, a line where it can be seen (:mod:`doublure.support.progress`),
            none with False.
        ranks: The first of several processes that fit together (:mod:`doublure.run.ranks`); None: this process alone.

    Returns:
        The synthesizer.

    Raises:
        InputError: The data, the plan or the folder does not fit; the reservation is closed at zero and the folder
            removed if no noise was drawn. Single records that break a rule are listed beside ``out``.
        BudgetRefused: The ledger's cap would be passed, or the plan was charged already and ``again`` is false; the
            data was not opened.
        CeilingPassed: ε_μ came out above the plan's ceiling; the finished run is kept under its worst case.
        Interrupted: Stopped by a signal; the state is kept and the run can be resumed.

    Example:
        >>> ledger = db.Ledger.create("fit.ledger", dataset="people", epsilon=3.0, delta=1e-4)
        >>> syn = db.fit("people.csv", plan, ledger=ledger, seed=1, progress=False)
        >>> syn.guarantee.sentence
        '(ε=1, δ=1e-05)-differentially private for one person, ...'
        >>> ledger.spent.epsilon
        1.0
    """
    if not isinstance(plan, Plan):
        raise SettingError("is no plan", field="plan", remedy="make one with doublure.plan, or read one with Plan.load")
    if not isinstance(ledger, (Ledger, str, Path)):
        remedy = "give a Ledger or its path; Ledger.create makes one"
        raise SettingError("is needed: it pays before the data is opened", field="ledger", remedy=remedy)
    if not resume:  # the reserved plan is compared with the folder's and the ledger's: it was paid for as it is
        _refuse_forged(plan)
        refuse_open_unit(plan.schema)
    chosen, most = methods.method(plan.method), parse_bytes(memory)
    counted = bool(chosen.work(plan.schema, plan.settings).counted_bytes)
    data = place_in_database(data, plan, engine, table, query, counted=counted)
    elsewhere = isinstance(data, RemoteSource) or engine != LOCAL
    place = {"elsewhere": elsewhere, "database": isinstance(data, DatabaseRecords)}
    refuse_too_large(chosen, plan.schema, plan.settings, most, **place)
    placement = choose_placement(chosen, plan.schema, plan.settings, most, **place)
    if engine != LOCAL:
        refuse_held(plan, parted=placement is RecordPlacement.IN_PARTITIONS)
    if ranks is not None:
        ranks.refuse_unfit(plan, parted=placement is not RecordPlacement.HELD)
    if with_torch := chosen.needs_torch(plan.schema, plan.settings):
        require_torch(f"method {chosen.name}")
    if (public := plan.settings.public_place) is not None:
        public.refuse_private(data)
    chosen.ready(plan.schema, plan.settings)
    plan.schema.ready()
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    public_seed = seeding.choose_seed(seed)
    check_device(device)
    with contextlib.ExitStack() as stack:
        stack.enter_context(threads_of_fit(threads, with_torch=with_torch))
        listener = stack.enter_context(listen(progress, "fit"))
        if out is None:
            if resume:
                raise SettingError("needs the run folder", field="resume", remedy="give out")
            path = stack.enter_context(_unnamed())
        else:
            path = Path(out)
        stack.enter_context(list_refused_records(None if out is None else path))
        if not resume:
            if not again:
                RunFolder.refuse_taken(path)  # a better message, where the paid run is there
                book.refuse_repeated(plan)
            refuse_unaffordable(book, plan)
        else:
            folder = stack.enter_context(RunFolder.open(path).lock())
            if (finished := _finished(folder, book)) is not None:
                return _under_the_ceiling(finished, out)
        listener.stage("check the data's header")
        if isinstance(data, DatabaseRecords):
            stack.callback(data.close)
        data = stack.enter_context(place_data(data, plan, engine, scheduler, threads))
        source = data if isinstance(data, RemoteSource) else open_data(data, plan.kind, plan.schema.written)
        source.check(plan.schema)
        if placement is not RecordPlacement.HELD and engine == LOCAL:
            refuse_read_whole(source)
        if resume:
            run = FitRun.resume(folder, plan, book, ranks)
        else:
            listener.stage("try the plan on no record")
            rehearse(plan, device=device)
            folder = RunFolder.create(path, plan)
            # A process that tries to resume it now is refused, and holds the lock no longer than that takes.
            stack.enter_context(folder.lock(wait=True))
            run = FitRun.begin(folder, plan, book, public_seed, ranks, again=again)
        if isinstance(data, DatabaseStream):
            folder.update_run(**data.public)
        return _under_the_ceiling(run.finish(source, device, listener, keeps=out is not None, placement=placement), out)


@contextlib.contextmanager
def _unnamed() -> Iterator[Path]:
    """Yield a path for a temporary run folder; it stays if the run bought something and is not done."""
    room = Path(tempfile.mkdtemp(prefix="doublure-"))
    try:
        yield room / "run"
    finally:
        if not RunFolder.can_go_on(room / "run"):
            shutil.rmtree(room, ignore_errors=True)


def _under_the_ceiling(syn: Synthesizer, out: str | Path | None) -> Synthesizer:
    """Refuse to return a synthesizer as planned if its estimate is above the ceiling.

    Raises:
        CeilingPassed: It holds the synthesizer, which is whole and was paid for; its folder is too.
    """
    if syn.guarantee.kind == syn.plan.guarantee.kind:
        return syn
    found = "internal/estimate.json has the figure; " if out is not None else ""
    remedy = f"{found}use it under its worst case, or plan with more noise or a higher ceiling"
    raise CeilingPassed(syn, field=None if out is None else Path(out), remedy=remedy)


def _refuse_forged(plan: Plan) -> None:
    """Refuse a plan that was changed by hand: σ, q, T and the claim are one calibration (pitfalls.md, rule 2)."""
    Plan.from_json(json.loads(json.dumps(plan.to_json())), name="plan")


def refuse_unaffordable(ledger: Ledger, plan: Plan) -> None:
    """Refuse a plan that the ledger cannot pay, before the header is read; the reservation decides again."""
    asked, left = plan_charge(plan, plan.guarantee.kind), ledger.remaining
    if asked is None:
        return
    passed = [name for name in ("epsilon", "delta") if asked[name] > getattr(left, name)]
    if passed:
        raise BudgetRefused(
            f"the cap of data set {printable(ledger.dataset)} would be passed: asked {Budget(**asked)}, left {left}",
            field=passed[0],
            remedy="plan for no more than what is left",
        )


def _finished(folder: RunFolder, ledger: Ledger) -> Synthesizer | None:
    """Return the synthesizer of a run that was cut off between its ledger's last record and its folder's."""
    if folder.run.get("status") == "done":
        return None
    reservation = folder.reservation.get("reservation")
    for record in ledger.entries:
        if record.kind == "close" and record.body["id"] == reservation and record.body["status"] == "done":
            folder.sweep()
            folder.forget_codes()
            folder.answers.forget_all()
            folder.update_run(status="done", generator_sha256=record.body["artefact_sha256"])
            return read_synthesizer(folder)
    return None


# -- the records that a fit was refused for: an internal list beside the run folder ------------------------------------


def refused_list_path(out: Path) -> Path:
    """Return the path of a refused run's list: beside its folder, which is not made or not kept."""
    place = out.resolve()  # "." has no name
    return place.parent / f"{place.name}-refused.csv"


@contextlib.contextmanager
def list_refused_records(out: Path | None) -> Iterator[None]:
    """Write a list of the records that are refused inside, and name it in the remedy.

    An earlier list is replaced. Another file of that name stays, and no list is written.

    Args:
        out: The run folder; without one no list is written, and only :class:`FaultyRecords` has it.

    Raises:
        FaultyRecords: The same error, with the list's name in its remedy.
    """
    if out is None:
        yield
        return
    place = refused_list_path(out)
    try:
        yield
    except FaultyRecords as error:
        if not _may_be_written(place):
            raise
        text = io.StringIO()
        csv.writer(text).writerows([_HEAD, *((number or "", name, rule) for number, name, rule in error.faults)])
        content = text.getvalue().encode(errors="surrogateescape")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomic(place, lambda file: file.write(content), mode=_PRIVATE)
        except (InputError, OSError):
            raise error from None
        remedy = f"{error.remedy}; {place.name} beside the run folder names them, and is internal"
        raise FaultyRecords(error.message, field=error.field, remedy=remedy, faults=error.faults) from None


def _may_be_written(place: Path) -> bool:
    """Whether nothing is there, or an earlier list."""
    if not os.path.lexists(place):
        return True
    head = ",".join(_HEAD).encode()
    with contextlib.suppress(OSError), place.open("rb") as file:
        return file.read(len(head)) == head
    return False


def synthesize(
    data: Given,
    schema: Schema | str | Path,
    *,
    epsilon: float,
    delta: float,
    ledger: Ledger | str | Path,
    n: int | None = None,
    method: str = "auto",
    seed: int | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Any:
    """Return synthetic records of private ones: a plan, its ledger, a fit and a sample in one call.

    Args:
        data: The records, as :func:`doublure.fit` takes them.
        schema: What is public of them, or its file.
        epsilon: The ε of the fit.
        delta: Its δ.
        ledger: What the data set has spent. Where none is, one is made whose cap is this fit alone: a second call is
            refused until a larger cap is decided on, by :meth:`doublure.Ledger.create`.
        n: Number of records; left out, the schema's public number of units.
        method: As :func:`doublure.plan` takes it.
        seed: As :func:`doublure.fit` takes it.
        out: A new run folder, from which :func:`doublure.load` goes on: to release, evaluate or sample again.
        settings: Of the method.

    Returns:
        As :meth:`doublure.Synthesizer.sample`: of a table a ``pandas.DataFrame``.

    Raises:
        InputError: As :func:`doublure.plan` and :func:`doublure.fit`.
        BudgetRefused: The ledger's cap would be passed; the data was not opened.

    Example:
        >>> import pandas as pd
        >>> rows = db.synthesize(
        ...     pd.read_csv("people.csv"), "people.schema.yaml", epsilon=1.0, delta=1e-5, ledger="once.ledger", n=5
        ... )
        >>> len(rows)
        5
    """
    made = plan(schema, method=method, epsilon=epsilon, delta=delta, **settings)
    if not isinstance(ledger, Ledger):
        place = find_place(ledger)
        dataset = place.name.removesuffix(".ledger")
        known = place.exists()
        ledger = Ledger.open(ledger) if known else Ledger.create(ledger, dataset=dataset, epsilon=epsilon, delta=delta)
    return fit(data, made, ledger=ledger, out=out, seed=seed).sample(n, seed=seed)
