"""fit(): reserve -> load -> learn -> resolve -> encode -> train -> save.

Owns the run and holds no mathematics. The ledger's charge is on disk before the first record is opened; every learned
fact and every chunk of noisy steps is marked there before it is drawn; whatever ends the run, what was charged stays
charged, except that a run which drew no noise is closed at zero.
"""

from __future__ import annotations

import contextlib
import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from doublure.data.tables import Table, TableSource, open_table
from doublure.errors import Interrupted, LedgerError, RunFolderError, SettingError
from doublure.ledger import Ledger, Reservation
from doublure.methods import table as methods
from doublure.methods.base import Job, encoder_for
from doublure.planning import Plan
from doublure.private import facts
from doublure.progress import Progress, Silent
from doublure.run_folder import RunFolder
from doublure.schema import ResolvedSchema

if TYPE_CHECKING:
    import pandas as pd

    from doublure.synthesizer import Synthesizer


def fit(
    data: str | Path | pd.DataFrame,
    plan: Plan,
    *,
    ledger: Ledger | str | Path,
    out: str | Path | None = None,
    resume: bool = False,
    seed: int | None = None,
    device: str = "cpu",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Synthesizer:
    """Fit a plan to private data.

    Args:
        data: CSV, Parquet, or a DataFrame.
        plan: From :func:`doublure.plan`.
        ledger: What the run is charged to, durably, before the data is opened.
        out: A new run folder; without one the understudy is kept in memory and cannot be resumed.
        resume: Go on with the run in ``out``: fresh noise, inside its reservation; steps lost in a crash count.
        seed: Public: initial weights and the generator's noise. Privacy noise is never seeded.
        device: Where to compute, such as ``cpu`` or ``cuda``.
        threads: CPU threads for torch.
        progress: Who listens.

    Returns:
        The understudy.

    Raises:
        InputError: The data, the plan or the folder does not fit; the reservation is closed at zero if no noise was
            drawn.
        BudgetRefused: The ledger's cap would be passed; the data was not opened.
        Interrupted: Stopped by a signal; the state is kept and the run can be resumed.
    """
    listener = progress or Silent()
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    check_device(device)
    if threads is not None:
        _use_threads(threads)
    with contextlib.ExitStack() as stack:
        if out is None:
            if resume:
                raise SettingError("needs the run folder", field="resume", remedy="give out")
            out = stack.enter_context(tempfile.TemporaryDirectory(prefix="doublure-")) + "/run"
        listener.stage("check the data's header")
        source = open_table(data)
        source.check(plan.schema)
        run = _Run.resumed(Path(out), plan, book) if resume else _Run.begun(Path(out), plan, book, seed)
        return run.finish(source, device, listener)


class _Run:
    """One run: its folder and its reservation."""

    def __init__(self, folder: RunFolder, plan: Plan, reservation: Reservation, seed: int) -> None:
        self._folder = folder
        self._plan = plan
        self._reservation = reservation
        self._seed = seed
        self._kept_step = reservation.authorised
        self._stop = threading.Event()

    @classmethod
    def begun(cls, path: Path, plan: Plan, ledger: Ledger, seed: int | None) -> _Run:
        """Make the folder and reserve."""
        folder = RunFolder.create(path, plan)
        chosen = secrets.randbits(63) if seed is None else seed
        folder.update_run(seed=chosen, ledger={"dataset": ledger.dataset, "path": str(ledger.path)})
        reservation = ledger.reserve(plan)
        run = cls(folder, plan, reservation, chosen)
        run._note(status="reserved", ledger=ledger)
        return run

    @classmethod
    def resumed(cls, path: Path, plan: Plan, ledger: Ledger) -> _Run:
        """Open the folder and take the reservation up again."""
        folder = RunFolder.open(path)
        facts_of_run = folder.run
        if facts_of_run.get("status") == "done":
            raise RunFolderError("is finished", field=path, remedy="sample from it, or fit into a new folder")
        if folder.plan.to_json() | _machine(plan) != plan.to_json():
            raise RunFolderError("was begun with another plan", field=path, remedy=f"use {path / 'plan.json'}")
        kept = facts_of_run.get("ledger", {})
        if "reservation" not in kept:
            raise RunFolderError("was cut off before anything was reserved", field=path, remedy="remove it, fit anew")
        session = kept["session"]
        fresh = secrets.token_hex(16)
        folder.update_run(ledger={**kept, "next_session": fresh})
        try:
            reservation = ledger.resume(kept["reservation"], session, plan=plan, next_session=fresh)
        except LedgerError:
            earlier = kept.get("next_session")
            if earlier is None:
                raise
            reservation = ledger.resume(kept["reservation"], earlier, plan=plan, next_session=fresh)
        run = cls(folder, plan, reservation, int(facts_of_run["seed"]))
        run._note(status="resumed", ledger=ledger)
        return run

    def _note(self, *, status: str, ledger: Ledger) -> None:
        """Remember the reservation durably, so that the run can be resumed."""
        reservation = self._reservation
        entry = {"dataset": ledger.dataset, "path": str(ledger.path), "reservation": reservation.id}
        self._folder.update_run(
            status=status, ledger={**entry, "session": reservation.session, "sequence": reservation.sequence}
        )

    # -- the way through -----------------------------------------------------------------------------------------

    def finish(self, source: TableSource, device: str, progress: Progress) -> Synthesizer:
        """Load, learn, train, save; close the reservation whatever happens."""
        try:
            with self._listening():
                progress.stage("read the records")
                table = source.load(self._plan.schema)
                schema = self._resolve(table, progress)
                generator = self._train(table, schema, device, progress)
            progress.stage("save")
            return self._save(schema, generator)
        except (Interrupted, KeyboardInterrupt):
            self._close("interrupted")
            raise Interrupted(
                "stopped; what was spent stays spent", field=self._folder.path, remedy="go on with --resume"
            ) from None
        except BaseException:
            self._close("aborted")
            raise

    def _resolve(self, table: Table, progress: Progress) -> ResolvedSchema:
        kept = self._folder.schema
        if kept is not None:
            return kept
        schema = self._plan.schema
        learned: dict[str, Any] = {}
        progress.stage("learn what was bought", len(self._plan.learned))
        for number, (access, question) in enumerate(zip(self._plan.learned, schema.questions, strict=True)):
            self._check_stop()
            self._reservation.noise_drawn(access.purpose)
            learned[question.path] = facts.learn(question, table, schema, delta=access.delta or 0.0, learned=learned)
            progress.at(number + 1)
        resolved = schema.resolve(learned)
        self._folder.save_schema(resolved)
        return resolved

    def _train(self, table: Table, schema: ResolvedSchema, device: str, progress: Progress) -> Any:
        from doublure.private.records import PrivateRecords

        plan = self._plan
        progress.stage("encode")
        encoder = encoder_for(schema, plan.settings)
        records = PrivateRecords(
            encoder.compact(table.frame), table.unit, table.n_units, lambda rows: encoder.split(encoder.expand(rows)), device
        )
        job = Job(
            encoder=encoder,
            records=records,
            settings=plan.settings,
            noise_multiplier=plan.noise_multiplier,
            sample_rate=plan.sample_rate or 1.0,
            units=max(1, schema.public_units),
            authorise=self._authorise,
            checkpoints=self._folder,
            taken=self._reservation.authorised,
            progress=progress,
            seed=self._seed,
            device=device,
            log=self._folder.log,
        )
        return methods.method(plan.method).train(job)

    def _save(self, schema: ResolvedSchema, generator: Any) -> Synthesizer:
        plan = self._plan
        sha256 = self._folder.save_generator(generator, schema, plan)
        self._folder.save_guarantee(plan.guarantee)
        steps = self._reservation.authorised if plan.noise_multiplier is not None else plan.steps
        self._reservation.close("done", steps=steps, artefact_sha256=sha256)
        self._folder.update_run(status="done", generator_sha256=sha256)
        return self._folder.synthesizer()

    # -- spending ------------------------------------------------------------------------------------------------

    def _authorise(self, step: int) -> None:
        """Return once this noisy step is durably authorised; steps are authorised a checkpoint's distance at a time."""
        self._check_stop()
        if step <= self._reservation.authorised:
            return
        every = getattr(self._plan.settings, "checkpoint_every", self._plan.steps)
        self._reservation.advance(min(self._plan.steps, step - 1 + every))

    def _close(self, status: Literal["interrupted", "aborted"]) -> None:
        """Close the reservation; at zero if nothing was drawn."""
        reservation = self._reservation
        with contextlib.suppress(LedgerError):
            if reservation.authorised == 0 and not reservation.drawn:
                reservation.close("no-noise-drawn", steps=0)
                status_of_run = "refused"
            else:
                reservation.close(status, steps=None)
                status_of_run = status
            with contextlib.suppress(Exception):
                self._folder.update_run(status=status_of_run)

    # -- stopping ------------------------------------------------------------------------------------------------

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise Interrupted("stopped")

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Let the first SIGINT or SIGTERM end the run between two steps; a second one ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[signal.Signals, Any] = {}

        def stop(number: int, _: object) -> None:
            self._stop.set()
            signal.signal(number, before[signal.Signals(number)])

        for watched in (signal.SIGINT, signal.SIGTERM):
            before[watched] = signal.signal(watched, stop)
        try:
            yield
        finally:
            for watched, handler in before.items():
                signal.signal(watched, handler)


def _machine(plan: Plan) -> dict[str, Any]:
    """The figures of a plan that differ between machines and bind nobody."""
    return {"seconds_estimate": plan.seconds_estimate, "memory_bytes": plan.memory_bytes}


def check_device(device: str) -> None:
    """Refuse a device that torch does not have here.

    Raises:
        SettingError: Naming the remedy.
    """
    if device == "cpu":
        return
    import torch

    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise SettingError(f"torch has no {device!r} here", field="device", remedy="use cpu; see doctor") from None


def _use_threads(threads: int) -> None:
    import torch

    if threads < 1:
        raise SettingError("must be at least 1", field="threads", remedy="leave it out")
    torch.set_num_threads(threads)


