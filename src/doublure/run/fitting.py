"""fit(): reserve -> load -> learn -> resolve -> encode -> train -> save.

Owns the run and holds no mathematics. The ledger's charge is on disk before the first record is opened; every learned
fact and every chunk of noisy steps is marked there before it is drawn; whatever ends the run, what was charged stays
charged, except that a run which drew no noise is closed at zero and its folder removed.

===================================  =================================================================================
killed                               what is left
===================================  =================================================================================
before the reservation               a folder that was only planned; nothing is charged
between it and ``run.json``          the same folder, and the full charge: that nothing was drawn cannot be shown
while facts are learned              the full charge; not resumable, because a fact's price covers one draw
while a release is made              resumable if a signal stopped it before its noise was drawn, once, whatever stops
                                     the sessions in between; after a kill, not: whether it was drawn cannot be shown
while training                       resumable: fresh noise, from the last checkpoint; what was authorised counts
between the ledger's end and the     resumable: the run is found to be finished
folder's
while it is resumed                  resumable: the folder knows the old session and the next, the ledger one of them
===================================  =================================================================================

Of several processes that go on with one run, one wins, and the others write nothing. Two locks see to it:

- The folder's, from before the first look at it until the process ends, however it ends: who does not get it has lost,
  while the winner is at work. It is no file of its own, and the kernel lets go of it after ``kill -9``.
- The ledger's, for copies of a folder, which do not share the first. Under it the ledger finds out whether one of the
  sessions that the folder knows is the run's last one. Only then, still under it, does the folder write down the next
  session, and only after that does the ledger. A crash between the two leaves a folder that knows both.

What a killed process left half-written is swept by the winner, when the ledger has decided.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from doublure.advisories import REMEDY
from doublure.data.opening import Given, Source, open_data
from doublure.data.records import Loaded
from doublure.encode.choice import encoder_for
from doublure.errors import (
    BudgetRefused,
    CeilingPassed,
    InputError,
    Interrupted,
    LedgerError,
    LostRun,
    NotAsPriced,
    RunFolderError,
    SettingError,
    printable,
)
from doublure.ledger import Budget, Ledger, Reservation
from doublure.ledger.request import charge
from doublure.methods import registry as methods
from doublure.planning import Plan
from doublure.planning.budget import DELTA_WITHOUT_PRIVACY, learned_facts
from doublure.planning.machine import refuse_too_large
from doublure.private import facts
from doublure.private.executed import Executed
from doublure.private.mechanism import Mechanism
from doublure.private.noise import source
from doublure.run.folder import RunFolder
from doublure.run.loading import synthesizer_of
from doublure.run.refusals import listing
from doublure.schema import ResolvedSchema
from doublure.support import seeding
from doublure.support.devices import check_device, use_threads
from doublure.support.progress import Progress, Silent
from doublure.support.stopping import StopSignal
from doublure.support.tensors import all_finite
from doublure.training.job import Job, encoded_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from doublure.access import Access
    from doublure.guarantee import Guarantee
    from doublure.private.bayesian import BayesianAccountant
    from doublure.run.synthesizer import Synthesizer
    from doublure.training.noisy_tables import NoisyTable

_NOT_AS_PRICED = "not-as-priced"
"""The status of a run that drew other noise than was priced: nobody may go on with it."""


def fit(
    data: Given,
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
        data: A table: CSV, Parquet, or a DataFrame. Images: NPZ, IDX, Parquet, a folder, a CSV file of names, or a
            mapping of arrays.
        plan: From :func:`doublure.plan`.
        ledger: What the run is charged to, durably, before the data is opened.
        out: A new run folder; without one the synthesizer is kept in memory and cannot be resumed.
        resume: Go on with the run in ``out``: fresh noise, inside its reservation; steps lost in a crash count.
        seed: Public: initial weights and the generator's noise. Privacy noise is never seeded.
        device: Where to compute, such as ``cpu`` or ``cuda``.
        threads: CPU threads for torch.
        progress: Receives progress events.

    Returns:
        The synthesizer.

    Raises:
        InputError: The data, the plan or the folder does not fit; the reservation is closed at zero and the folder
            removed if no noise was drawn. Of single records that break a rule, a list beside ``out`` says which.
        BudgetRefused: The ledger's cap would be passed; the data was not opened.
        CeilingPassed: ε_μ came out above the plan's ceiling; the finished run is kept under its worst case.
        Interrupted: Stopped by a signal; the state is kept and the run can be resumed.
    """
    listener = progress or Silent()
    if not isinstance(plan, Plan):
        raise SettingError("is no plan", field="plan", remedy="make one with doublure.plan, or read one with Plan.load")
    if not isinstance(ledger, (Ledger, str, Path)):
        remedy = "give a Ledger or its path; Ledger.create makes one"
        raise SettingError("is needed: it pays before the data is opened", field="ledger", remedy=remedy)
    _refuse_forged(plan)
    refuse_too_large(methods.method(plan.method), plan.schema, plan.settings)
    methods.method(plan.method).ready(plan.schema, plan.settings)
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    public_seed = seeding.chosen(seed)
    check_device(device)
    if threads is not None:
        use_threads(threads)
    with contextlib.ExitStack() as stack:
        if out is None:
            if resume:
                raise SettingError("needs the run folder", field="resume", remedy="give out")
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="doublure-"))) / "run"
        else:
            path = Path(out)
        stack.enter_context(listing(None if out is None else path))
        if not resume:
            _refuse_unaffordable(book, plan)
        else:
            folder = stack.enter_context(RunFolder.open(path).held())
            if (finished := _finished(folder, book)) is not None:
                return _under_the_ceiling(finished, out)
        listener.stage("check the data's header")
        source = open_data(data, plan.kind)
        source.check(plan.schema)
        if resume:
            run = _Run.resumed(folder, plan, book)
        else:
            folder = RunFolder.create(path, plan)
            # Whoever tries to go on with it now is refused, and holds it no longer than that takes.
            stack.enter_context(folder.held(wait=True))
            run = _Run.begun(folder, plan, book, public_seed)
        return _under_the_ceiling(run.finish(source, device, listener, keeps=out is not None), out)


def _under_the_ceiling(syn: Synthesizer, out: str | Path | None) -> Synthesizer:
    """Refuse to pass a synthesizer off as what was planned, where its estimate came out above the ceiling.

    Raises:
        CeilingPassed: It holds the synthesizer, which is whole and was paid for; its folder is too.
    """
    if syn.guarantee.kind == syn.plan.guarantee.kind:
        return syn
    found = "internal/estimate.json has the figure; " if out is not None else ""
    remedy = f"{found}use it under its worst case, or plan with more noise or a higher ceiling"
    raise CeilingPassed(syn, field=None if out is None else Path(out), remedy=remedy)


def _refuse_forged(plan: Plan) -> None:
    """Refuse a plan that was changed by hand: σ, q, T and the claim are one calibration (design §5, rule 2)."""
    Plan.from_json(json.loads(json.dumps(plan.to_json())), name="plan")


def _refuse_unaffordable(ledger: Ledger, plan: Plan) -> None:
    """Refuse before even the header is read; the reservation decides again, under the ledger's lock."""
    asked, left = charge(plan, plan.guarantee.kind), ledger.remaining
    if asked is None:
        return
    passed = [name for name in ("epsilon", "delta") if asked[name] > getattr(left, name)]
    if passed:
        raise BudgetRefused(
            f"the cap of data set {printable(ledger.dataset)} would be passed: asked {Budget(**asked)}, left {left}",
            field=passed[0],
            remedy="plan for no more than what is left",
        )


def _fewest(plan: Plan) -> int:
    """Return how many records a fit needs: none where misfits are coerced, for a refusal would tell how many there are.

    Without a claim there is nobody to protect from that, and a generator without noise has nothing to learn.
    """
    return 0 if plan.schema.misfit == "coerce" and plan.guarantee.epsilon is not None else 2


def _finished(folder: RunFolder, ledger: Ledger) -> Synthesizer | None:
    """Return the synthesizer of a run that was cut off between the ledger's last word and its folder's."""
    if folder.run.get("status") == "done":
        return None
    reservation = folder.reservation.get("reservation")
    for record in ledger.entries:
        if record.kind == "close" and record.body["id"] == reservation and record.body["status"] == "done":
            folder.sweep()
            folder.update_run(status="done", generator_sha256=record.body["artefact_sha256"])
            return synthesizer_of(folder)
    return None


class _Checkpoints:
    """Keeps the state of a run, and before it what ran until then."""

    def __init__(self, folder: RunFolder, write_what_ran: Callable[[], None]) -> None:
        self._folder = folder
        self._write_what_ran = write_what_ran

    def save(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Replace the checkpoint."""
        self._write_what_ran()
        self._folder.save(step, tensors)

    def load(self) -> dict[str, Tensor] | None:
        """Return the checkpoint, if there is one."""
        return self._folder.load()


class _Run:
    """One run: its folder, its reservation, and what of it has run."""

    def __init__(
        self,
        folder: RunFolder,
        plan: Plan,
        reservation: Reservation,
        seed: int,
        executed: Executed | None = None,
        *,
        tells_what_ran: bool = True,
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._reservation = reservation
        self._seed = seed
        self._stop = StopSignal()
        self._mechanism = Mechanism(
            _accesses(plan),
            noise=source(plan.settings.stream),
            authorise=self._authorise,
            taken=reservation.authorised,
            executed=executed,
        )
        self._tells_what_ran = tells_what_ran
        self._estimate: BayesianAccountant | None = None
        self._tables: tuple[NoisyTable, ...] = ()

    @classmethod
    def begun(cls, folder: RunFolder, plan: Plan, ledger: Ledger, seed: int) -> _Run:
        """Reserve; leave neither folder nor charge behind if that fails."""
        try:
            folder.update_run(seed=seed, ledger={"dataset": ledger.dataset, "path": str(ledger.path)})
            reservation = ledger.reserve(plan)
        except BaseException:
            folder.discard()
            raise
        run = cls(folder, plan, reservation, seed)
        try:
            run._note(status="reserved", ledger=ledger)
        except BaseException:
            run._close("aborted")
            raise
        return run

    @classmethod
    def resumed(cls, folder: RunFolder, plan: Plan, ledger: Ledger) -> _Run:
        """Take the reservation up again; write nothing before the ledger has decided that this process may."""
        path = folder.path
        if (fault := folder.fault) is not None:
            raise RunFolderError(fault, field=path, remedy=REMEDY)
        begun, seed, kept = folder.plan, folder.run.get("seed"), folder.reservation
        if folder.run.get("status") == _NOT_AS_PRICED:
            remedy = "report it as a defect of doublure, and fit into a new folder"
            raise RunFolderError("ran otherwise than was priced", field=path, remedy=remedy)
        if folder.run.get("status") == "done":
            raise RunFolderError("is finished", field=path, remedy="sample from it, or fit into a new folder")
        if begun.to_json() | _machine(plan) != plan.to_json():
            raise RunFolderError("was begun with another plan", field=path, remedy=f"use {path / 'plan.json'}")
        if not isinstance(kept.get("reservation"), str):
            raise RunFolderError("was cut off before it could begin", field=path, remedy="remove it, and fit anew")
        known = [kept.get("session"), *(kept.get("next_sessions") or [])]
        if not all(isinstance(session, str) for session in known) or not isinstance(seed, int):
            raise RunFolderError("run.json is damaged", field=path, remedy="fit into a new folder")
        executed = _executed(folder, begun)
        reservation = _take_up(ledger, folder, known, begun)
        folder.sweep()
        # the plan in the folder, with its estimates
        run = cls(folder, begun, reservation, seed, executed, tells_what_ran=executed is not None)
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

    def finish(self, source: Source, device: str, progress: Progress, *, keeps: bool) -> Synthesizer:
        """Load, learn, train, save; close the reservation whatever happens.

        Args:
            source: The private data, its header checked.
            device: Where to compute.
            progress: Receives progress events.
            keeps: Whether the folder stays, so that the run can be resumed.
        """
        with self._stop.listening():
            try:
                self._refuse_what_is_lost()
                progress.stage("read the records")
                with self._stop.at_once():
                    table = source.load(self._plan.schema, at_least=_fewest(self._plan))
                schema = self._resolve(table, progress)
                generator = self._train(table, schema, device, progress)
                progress.stage("save")
                return self._save(schema, generator, keeps=keeps)
            except (Interrupted, KeyboardInterrupt):
                self._stop.close()
                spent = self._close("interrupted", keeps=keeps)
                raise self._stopped(spent=spent, keeps=keeps) from None
            except LostRun:
                self._stop.close()
                with contextlib.suppress(OSError):
                    self._folder.forget_all()  # nobody can go on with it, and it is as private as the records
                self._close("aborted", keeps=keeps)
                raise
            except NotAsPriced:
                self._stop.close()
                with contextlib.suppress(OSError):
                    self._folder.forget_state()  # what it has learned is not protected as was promised
                self._close("aborted", keeps=keeps)
                with contextlib.suppress(OSError, RunFolderError):
                    self._folder.update_run(status=_NOT_AS_PRICED)
                raise
            except BaseException:
                self._stop.close()
                self._close("aborted", keeps=keeps)
                raise

    def _refuse_what_is_lost(self) -> None:
        """Refuse to go on where what was bought did not survive the crash and cannot be bought again."""
        folder, reservation = self._folder, self._reservation
        if reservation.drawn and folder.schema is None:
            raise LostRun(
                "was cut off while facts were learned, and their price covers one draw",
                field=folder.path,
                remedy="fit into a new folder; what was charged stays charged",
            )
        kept = folder.kept_step
        if kept is None and reservation.authorised and reservation.authorised >= self._plan.steps:
            raise LostRun(
                "kept no state and has no steps left, so there is nothing to go on from",
                field=folder.path,
                remedy="fit into a new folder; what was charged stays charged",
            )
        if reservation.authorised:
            folder.log({"resumed_at": reservation.authorised, "from_state_of": kept or 0})

    def _resolve(self, table: Loaded, progress: Progress) -> ResolvedSchema:
        kept = self._folder.schema
        if kept is not None:
            return kept
        schema = self._plan.schema
        learned: dict[str, Any] = {}
        # All or none: a run that is stopped between two facts could not be resumed.
        self._stop.check()
        progress.stage("learn what was bought", len(self._plan.learned))
        for number, (access, question) in enumerate(zip(_facts(self._plan), schema.questions, strict=True)):
            learned[question.path] = facts.learn(
                question, table, schema, mechanism=self._mechanism, access=access, learned=learned
            )
            progress.at(number + 1)
        resolved = schema.resolve(learned)
        self._write_what_ran()
        self._folder.save_schema(resolved)
        return resolved

    def _train(self, table: Loaded, schema: ResolvedSchema, device: str, progress: Progress) -> Any:
        plan = self._plan
        progress.stage("encode")
        encoder = encoder_for(schema, plan.settings.encoding)
        with self._stop.at_once():
            records = encoded_records(encoder, encoder.compact(table.content), table.unit, table.n_units, device)
            fingerprint = records.fingerprint if table.repeatable else ""
        self._folder.refuse_other_records(fingerprint)
        job = Job(
            encoder=encoder,
            records=records,
            settings=plan.settings,
            accesses=plan.training,
            mechanism=self._mechanism,
            sample_rate=plan.sample_rate or 1.0,
            units=max(1, schema.public_units),
            authorise=self._advance,
            check_stop=self._stop.check,
            checkpoints=_Checkpoints(self._folder, self._write_what_ran),
            workspace=self._folder,
            taken=self._reservation.authorised,
            session=self._reservation.session,
            take_up_undrawn=self._reservation.take_up_undrawn,
            progress=progress,
            seed=self._seed,
            device=device,
            log=self._folder.log,
            delta_mu=plan.guarantee.delta_mu,
            measured=self._measure,
            hand_out=self._keep_tables,
        )
        generator = methods.method(plan.method).train(job)
        if not all_finite(generator.state_dict()):
            remedy = "fit into a new folder with smaller learning rates; what was spent stays spent"
            raise InputError("diverged: nothing could be sampled from it", field=plan.method, remedy=remedy)
        return generator

    def _save(self, schema: ResolvedSchema, generator: Any, *, keeps: bool) -> Synthesizer:
        plan = self._plan
        self._write_what_ran()
        if all(access.event is not None for access in plan.training):
            self._mechanism.executed.refuse_unequal(self._reservation.authorised)
        claim = self._claim()
        if not plan.may_claim(claim):
            remedy = "report it as a defect of the method"
            raise SettingError("claims what its plan does not give", field=plan.method, remedy=remedy)
        self._folder.save_tables(self._tables)
        sha256 = self._folder.save_generator(generator, schema, plan, claim)
        self._folder.save_guarantee(claim)
        self._reservation.close("done", steps=self._reservation.authorised, artefact_sha256=sha256, claimed=claim.kind)
        self._folder.update_run(status="done", generator_sha256=sha256)
        syn, tables = synthesizer_of(self._folder), self._tables
        return syn if keeps else replace(syn, read_tables=lambda: tables)

    def _write_what_ran(self) -> None:
        """Write down what ran; not where the word of an earlier session is gone, as then nobody knows."""
        if self._tells_what_ran:
            self._folder.save_executed(self._mechanism.ran())

    def _measure(self, estimate: BayesianAccountant) -> None:
        self._estimate = estimate

    def _keep_tables(self, tables: tuple[NoisyTable, ...]) -> None:
        self._tables = tables

    def _claim(self) -> Guarantee:
        """Return what may be claimed: what was planned, or what has been measured since."""
        plan, method = self._plan, methods.method(self._plan.method)
        guarantee, figures = method.final_claim(plan.guarantee, plan.settings, plan.touches, self._estimate)
        if self._reservation.claimed != plan.guarantee.kind:  # an earlier session found so, and was cut off
            guarantee = plan.guarantee.worst_case
        if figures is not None:
            self._folder.save_estimate({**figures, "claimed": guarantee.kind})
        return guarantee

    # -- spending ------------------------------------------------------------------------------------------------

    def _authorise(self, access: Access, step: int) -> None:
        """Return once an access's draw of noise is durably paid for: a fact is marked, a step authorised."""
        if access.path is not None:
            self._reservation.noise_drawn(access.purpose)
        else:
            self._advance(step)

    def _advance(self, step: int) -> None:
        """Return once this step is durably authorised; steps are authorised a checkpoint's distance at a time."""
        if step <= self._reservation.authorised:
            return
        every = self._plan.settings.checkpoint_interval(step, self._plan.steps)
        self._reservation.advance(min(self._plan.steps, step - 1 + every))

    def _close(self, status: Literal["interrupted", "aborted"], *, keeps: bool = False) -> bool:
        """Close the reservation and return whether it stays charged; if nothing was drawn it is closed at zero.

        Then the folder goes too, so that it does not stand in the way of another try. A ledger that cannot be written
        any more keeps the charge, and the folder stays for when it can. Where the folder holds long work that a resumed
        run goes on with (and ``keeps`` says that the folder stays), the charge stays with it.
        """
        reservation = self._reservation
        free = reservation.authorised == 0 and not reservation.drawn and not (keeps and self._folder.works)
        try:
            reservation.close("no-noise-drawn" if free else status, steps=0 if free else None)
        except LedgerError:
            return True
        if free:
            self._folder.discard()
        else:
            with contextlib.suppress(Exception):
                self._folder.update_run(status=status)
        return not free

    # -- stopping ------------------------------------------------------------------------------------------------

    def _stopped(self, *, spent: bool, keeps: bool) -> Interrupted:
        """Return what to say to somebody who stopped the run."""
        if not spent:
            return Interrupted("stopped before anything was drawn; nothing was spent", remedy="fit again")
        if not keeps:
            remedy = "give a run folder next time, to be able to go on"
            return Interrupted("stopped; what was spent stays spent", remedy=remedy)
        if self._reservation.drawn and self._folder.schema is None:
            said = "stopped while facts were learned, and their price covers one draw; what was spent stays spent"
            return Interrupted(said, field=self._folder.path, remedy="fit into a new folder")
        drew = self._reservation.authorised or self._reservation.drawn
        said = "what was spent stays spent" if drew else "nothing was drawn yet, and its charge is kept"
        return Interrupted(f"stopped; {said}", field=self._folder.path, remedy="go on with --resume")


def _take_up(ledger: Ledger, folder: RunFolder, known: list[str], plan: Plan) -> Reservation:
    """Resume with the session that the ledger holds: the folder's last one, or one that it had just been promised.

    A crash between the folder's record and the ledger's, or the other way round, leaves a folder that knows both.
    """
    kept, refusal = folder.reservation, None
    for session in known:

        def promise(fresh: str, session: str = session) -> None:
            folder.update_run(ledger={**kept, "session": session, "next_sessions": [fresh]})

        try:
            return ledger.resume(kept["reservation"], session, plan=plan, promise=promise)
        except LedgerError as error:
            refusal = refusal or error
    raise refusal or LedgerError("knows no session", field=kept["reservation"], remedy="fit into a new folder")


def _facts(plan: Plan) -> tuple[Access, ...]:
    """Return the accesses that buy facts; a plan without a claim names no price, and they are noised all the same."""
    priced = all(access.event is not None for access in plan.learned)
    return plan.learned if priced else learned_facts(plan.schema, DELTA_WITHOUT_PRIVACY)


def _accesses(plan: Plan) -> tuple[Access, ...]:
    """Return all accesses of a plan, as they are answered."""
    return (*_facts(plan), *plan.training)


def _executed(folder: RunFolder, plan: Plan) -> Executed | None:
    """Return what earlier sessions of a run have done; None where they have learned, and their word is gone.

    Raises:
        RunFolderError: What they wrote down does not belong to this plan.
    """
    executed = Executed(access for access in _accesses(plan) if access.event is not None)
    if (written := folder.executed) is not None:
        executed.take_up(written)
    elif folder.schema is not None:
        return None
    return executed


def _machine(plan: Plan) -> dict[str, Any]:
    """The figures of a plan that differ between machines and bind nobody."""
    return {"seconds_estimate": plan.seconds_estimate, "memory_bytes": plan.memory_bytes}
