"""One run in one process: its folder, its reservation, and the record of what ran.

It loads, learns, resolves, encodes, trains and saves; pays for each draw of noise before it is made; and closes the
reservation whatever happens. :mod:`doublure.run.fitting` decides which process may resume it.

A release asks, is paid for, drawn, kept in the run folder and handed out, in this order
(:mod:`doublure.private.mechanism`).

===================================  =================================================================================
killed                               state that is left
===================================  =================================================================================
before the reservation               a folder that never began; nothing is charged
between it and ``run.json``          resumable: the folder knew of the reservation before the ledger did
while records are read or counted    resumable: nothing of that was drawn, and it is done again
between a payment and its answer     a fact, or one of few releases: the full charge; not resumable, because its price
                                     covers one draw. One of many steps: resumable, and that step is lost. It takes as
                                     long as noise, and two files on the disk
while training by many steps         resumable: from the last checkpoint through the steps that were kept since
after a release, while what follows  resumable: the answer is read again, nothing is asked
is computed or saved
between the ledger's end and the     resumable: the run is found to be finished
folder's
while it is resumed                  resumable: the folder knows the old session and the next, the ledger one of them
===================================  =================================================================================

A run that ends by an error, a full disk or a defect leaves the same state as a killed one, and is closed so that it can
be resumed: by this version or by one in which the defect is fixed, as long as the plan is the same. A draw and its
keeping are not interrupted: a signal waits for them.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from doublure._version import __version__
from doublure.advisories import REMEDY
from doublure.data.images.sources import ImageSource
from doublure.data.opening import Source
from doublure.data.records import Loaded
from doublure.data.tables.source import TableSource
from doublure.encode.choice import encoder_for
from doublure.errors import (
    Advice,
    InputError,
    Interrupted,
    LedgerError,
    LostRun,
    NotAsPriced,
    OwnerLost,
    RankLost,
    RunFolderError,
    SettingError,
)
from doublure.ledger import Ledger, Reservation
from doublure.ledger.torn import SOMETHING
from doublure.methods import registry as methods
from doublure.planning import Plan
from doublure.planning.machine import RecordPlacement
from doublure.private import facts
from doublure.private.codes import ColumnCodes
from doublure.private.executed import Executed
from doublure.private.noise import source as noise_source
from doublure.private.records import PrivateRecords, RecordsElsewhere
from doublure.private.row_codes import RowCodes
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.run.ranks import LocalRun
from doublure.run.record_sources import OnDiskRecords, RecordSource, RemoteSource
from doublure.schema import ResolvedSchema
from doublure.support.progress import Progress
from doublure.support.stopping import StopSignal
from doublure.support.tensors import all_finite
from doublure.training.job import Job, State, encoded_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from doublure.access import Access
    from doublure.guarantee import Guarantee
    from doublure.private.bayesian import BayesianAccountant
    from doublure.private.mechanism import Mechanism
    from doublure.run.synthesizer import Synthesizer
    from doublure.training.noisy_tables import NoisyTable

_NOT_AS_PRICED = "not-as-priced"
"""The status of a run that drew other noise than was priced, which cannot be resumed."""


class _Checkpoints:
    """Keeps the state of a run, and before it the record of what ran."""

    def __init__(self, folder: RunFolder, write_what_ran: Callable[[], None], mechanism: Mechanism) -> None:
        self._folder = folder
        self._write_what_ran = write_what_ran
        self._mechanism = mechanism

    def save(self, step: int, state: State) -> None:
        """Replace the checkpoint."""
        self._write_what_ran()
        self._folder.save(step, state)
        self._mechanism.saved()

    def load(self) -> State | None:
        """Return the checkpoint, if there is one."""
        return self._folder.load()


class FitRun:
    """One run: its folder, its reservation, and the record of what ran."""

    def __init__(
        self,
        folder: RunFolder,
        plan: Plan,
        reservation: Reservation,
        seed: int,
        executed: Executed | None = None,
        *,
        tells_what_ran: bool = True,
        ranks: LocalRun | None = None,
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._reservation = reservation
        self._seed = seed
        self._stop = StopSignal()
        self._ranks: LocalRun = LocalRun() if ranks is None else ranks
        self._mechanism = self._ranks.mechanism(
            plan.answered,
            noise=noise_source(),
            authorise=self._authorise,
            taken=reservation.authorised,
            learned=_learned(plan, reservation),
            executed=executed,
            answers=folder.answers,
            unbroken=self._stop.unbroken,
        )
        self._tells_what_ran = tells_what_ran
        self._estimate: BayesianAccountant | None = None
        self._tables: tuple[NoisyTable, ...] = ()
        self._asked: RemoteSource | None = None

    @classmethod
    def begin(
        cls, folder: RunFolder, plan: Plan, ledger: Ledger, seed: int, ranks: LocalRun | None = None, *, again: bool
    ) -> FitRun:
        """Reserve, after a promise to the folder; a failure leaves neither folder nor charge."""
        entry = {"dataset": ledger.dataset, "path": str(ledger.path)}

        def promise(reservation: str, session: str) -> None:
            folder.update_run(status="reserved", ledger={**entry, "reservation": reservation, "session": session})

        try:
            folder.update_run(seed=seed, ledger=entry)
            reservation = ledger.reserve(plan, again=again, promise=promise)
        except BaseException:
            folder.discard()
            raise
        run = cls(folder, plan, reservation, seed, ranks=ranks)
        try:
            run._note(status="reserved", ledger=ledger)
        except BaseException:
            run._close("aborted")
            raise
        return run

    @classmethod
    def resume(cls, folder: RunFolder, plan: Plan, ledger: Ledger, ranks: LocalRun | None = None) -> FitRun:
        """Resume the reservation; write nothing before the ledger has decided that this process may."""
        path = folder.path
        if (fault := folder.fault) is not None:
            raise RunFolderError(fault, field=path, remedy=REMEDY)
        begun, seed, kept = folder.plan, folder.run.get("seed"), folder.reservation
        if folder.run.get("status") == _NOT_AS_PRICED:
            remedy = "report it as a defect of doublure, and fit into a new folder"
            raise RunFolderError("ran otherwise than was priced", field=path, remedy=remedy)
        if folder.run.get("status") == "done":
            raise RunFolderError("is finished", field=path, remedy="sample from it, or fit into a new folder")
        if begun.sha256 != plan.sha256:
            raise RunFolderError("was begun with another plan", field=path, remedy=f"use {path / 'plan.json'}")
        if not isinstance(kept.get("reservation"), str) or _never_charged(kept, ledger):
            raise RunFolderError("was cut off before it could begin", field=path, remedy="remove it, and fit anew")
        known = [kept.get("session"), *(kept.get("next_sessions") or [])]
        if not all(isinstance(session, str) for session in known) or not isinstance(seed, int):
            raise RunFolderError("run.json is damaged", field=path, remedy="fit into a new folder")
        executed = _executed(folder, begun)
        reservation = _restore(ledger, folder, known, begun)
        folder.sweep()
        # the plan in the folder, with its estimates
        run = cls(folder, begun, reservation, seed, executed, tells_what_ran=executed is not None, ranks=ranks)
        made, others = folder.run.get("doublure_version"), folder.run.get("resumed_by") or []
        if __version__ not in (made, *others):
            folder.update_run(resumed_by=[*others, __version__])
        run._note(status="resumed", ledger=ledger)
        return run

    def _note(self, *, status: str, ledger: Ledger) -> None:
        """Remember the reservation durably, so that the run can be resumed."""
        reservation = self._reservation
        entry = {"dataset": ledger.dataset, "path": str(ledger.path), "reservation": reservation.id}
        self._folder.update_run(
            status=status, ledger={**entry, "session": reservation.session, "sequence": reservation.sequence}
        )

    # -- stages --------------------------------------------------------------------------------------------------

    def finish(
        self,
        source: Source | RemoteSource,
        device: str,
        progress: Progress,
        *,
        keeps: bool,
        placement: RecordPlacement = RecordPlacement.HELD,
    ) -> Synthesizer:
        """Load, learn, train, save; close the reservation whatever happens.

        Args:
            source: The private data, its header checked; or a remote source.
            device: Device to compute on.
            progress: Receives progress events.
            keeps: Whether the folder stays, so that the run can be resumed.
            placement: The place of the records during training.
        """
        with self._stop.listening():
            try:
                self._refuse_what_is_lost()
                self._ranks.begin(self._plan, self._seed)
                progress.stage("read the records")
                with self._stop.at_once():
                    loaded = self._read(source, placement)
                    self._ranks.loaded()
                schema = self._resolve(loaded, progress)
                generator = self._train(loaded, schema, device, progress, keeps=keeps)
                progress.stage("save")
                return self._save(schema, generator, keeps=keeps)
            except (Interrupted, KeyboardInterrupt) as stop:
                self._stop.close()
                spent = self._close("interrupted", keeps=keeps)
                raise self._stopped(stop, spent=spent, keeps=keeps) from None
            except LostRun:
                self._stop.close()
                with contextlib.suppress(OSError):
                    self._folder.forget_all()  # it cannot be resumed, and is as private as the records
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
            except BaseException as error:
                self._stop.close()
                if self._close("aborted", keeps=keeps):
                    error.add_note(Advice(f"what was bought is kept: go on with -o {self._folder.path} --resume"))
                raise

    def _refuse_what_is_lost(self) -> None:
        """Refuse to resume where a purchase did not survive the crash and cannot be repeated."""
        folder, reservation = self._folder, self._reservation
        if folder.schema is None:
            self._mechanism.refuse_lost(*self._plan.answered_facts)
        kept = folder.kept_step
        left = kept is not None or self._mechanism.recalls(*self._plan.training)
        if not left and reservation.authorised and reservation.authorised >= self._plan.steps:
            raise LostRun(
                "kept no state and has no steps left, so there is nothing to go on from",
                field=folder.path,
                remedy="what was charged stays charged; fit into a new folder and pay again (again=True, --again)",
            )
        if reservation.authorised:
            folder.log({"resumed_at": reservation.authorised, "from_state_of": kept or 0})

    def _read(self, source: Source | RemoteSource, placement: RecordPlacement) -> Loaded | RecordSource:
        """Return the records in memory, or their source; those that an interrupted run kept, if it did."""
        if isinstance(source, RemoteSource):
            source.begin(self._folder.internal)
            self._asked = source
            self._folder.update_run(**source.public)
            source.read()
            return source
        plan, at_least = self._plan, self._plan.fewest_records
        kept = ColumnCodes.open(self._folder.codes) or RowCodes.open(self._folder.codes)
        if placement is RecordPlacement.HELD and kept is None:
            return source.load(plan.schema, at_least=at_least)
        if isinstance(source, ImageSource):
            return source.load(plan.schema, at_least=at_least, room=self._folder.internal)
        if not isinstance(source, TableSource):
            raise TypeError("only tables and images need not be held")
        records = OnDiskRecords(
            source,
            plan.schema,
            self._folder.internal,
            kept=kept,
            at_least=at_least,
            drawn=placement is RecordPlacement.ON_DISK,
        )
        records.read()
        return records

    def _resolve(self, loaded: Loaded | RecordSource, progress: Progress) -> ResolvedSchema:
        kept = self._folder.schema
        if kept is not None:
            return kept
        schema = self._plan.schema
        learned: dict[str, Any] = {}
        progress.stage("learn what was bought", len(self._plan.learned))
        for number, (access, question) in enumerate(zip(self._plan.answered_facts, schema.questions, strict=True)):
            self._stop.check()
            asked = loaded.facts() if isinstance(loaded, RecordSource) else loaded
            learned[question.path] = facts.learn(
                question, asked, schema, mechanism=self._mechanism, access=access, learned=learned
            )
            progress.at(number + 1)
        resolved = schema.resolve(learned)
        self._write_what_ran()
        self._folder.save_schema(resolved)
        return resolved

    def _train(
        self,
        loaded: Loaded | RecordSource,
        schema: ResolvedSchema,
        device: str,
        progress: Progress,
        *,
        keeps: bool = False,
    ) -> Any:
        plan = self._plan
        progress.stage("encode")
        encoder = encoder_for(schema, plan.settings.encoding)
        records: PrivateRecords = RecordsElsewhere()
        partitions = None
        with self._stop.at_once():
            codes_path = self._folder.codes if keeps else None
            if isinstance(loaded, OnDiskRecords) and loaded.drawn:
                drawn = loaded.in_rows(encoder, codes_path)
                records = encoded_records(encoder, drawn.rows, drawn.unit, drawn.n_units, device)
                fingerprint = records.fingerprint
            elif isinstance(loaded, RecordSource):
                codes = loaded.encoded(encoder, codes_path)
                partitions = codes.partitions(self._stop.check)
                fingerprint = codes.fingerprint
            else:
                records = encoded_records(
                    encoder, encoder.compacted(loaded.content), loaded.unit, loaded.n_units, device
                )
                fingerprint = records.fingerprint if loaded.repeatable else ""
        try:
            self._folder.refuse_other_records(fingerprint)
        except RunFolderError:
            self._folder.forget_codes()  # they are of other records: the right data will be read again
            raise
        self._ranks.train(
            schema,
            self._folder.load,
            lambda: self._mechanism.kept_answers(*plan.training),
            taken=self._reservation.authorised,
            executed=self._mechanism.ran(),
        )
        records = self._ranks.assigned(records, fingerprint)
        job = Job(
            encoder=encoder,
            records=records,
            partitions=partitions,
            settings=plan.settings,
            accesses=plan.training,
            mechanism=self._mechanism,
            sample_rate=plan.sample_rate or 1.0,
            units=max(1, schema.public_units),
            authorise=self._advance,
            check_stop=self._stop.check,
            checkpoints=_Checkpoints(self._folder, self._write_what_ran, self._mechanism),
            workspace=self._ranks.workspace(self._folder),
            taken=self._reservation.authorised,
            progress=progress,
            seed=self._seed,
            device=device,
            log=self._folder.log,
            delta_mu=plan.guarantee.delta_mu,
            measured=self._measure,
            hand_out=self._keep_tables,
            agree=self._ranks.agree,
        )
        generator = methods.method(plan.method).train(job)
        if not all_finite(generator.state_dict()):
            remedy = "fit into a new folder with smaller learning rates; what was spent stays spent"
            if self._folder.kept_step is not None:  # a resumed run would begin where it has diverged
                raise LostRun("diverged: nothing could be sampled from it", field=plan.method, remedy=remedy)
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
        self._folder.forget_codes()
        self._reservation.close("done", steps=self._reservation.authorised, artefact_sha256=sha256, claimed=claim.kind)
        self._folder.answers.forget_all()
        self._folder.update_run(status="done", generator_sha256=sha256)
        syn, tables = read_synthesizer(self._folder), self._tables
        return syn if keeps else replace(syn, read_tables=lambda: tables)

    def _write_what_ran(self) -> None:
        """Write the record of what ran, unless an earlier session's is lost, which leaves it unknown."""
        if self._tells_what_ran:
            self._folder.save_executed(self._mechanism.ran())

    def _measure(self, estimate: BayesianAccountant) -> None:
        self._estimate = estimate

    def _keep_tables(self, tables: tuple[NoisyTable, ...]) -> None:
        self._tables = tables

    def _claim(self) -> Guarantee:
        """Return the claim: the planned one, or the one that the measurements give."""
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
            self._reservation.noise_drawn(self._reservation.mark_of(self._plan.answered_facts.index(access)))
        elif step > self._reservation.authorised:
            self._reservation.advance(step)

    def _advance(self, step: int) -> None:
        """Return once this step without noise is durably counted; steps are counted up to the next checkpoint."""
        if step > self._reservation.authorised:
            every = self._plan.settings.checkpoint_every or self._plan.steps
            self._reservation.advance(min(self._plan.steps, step - 1 + every))

    def _close(self, status: Literal["interrupted", "aborted"], *, keeps: bool = False) -> bool:
        """Close the reservation and return whether it stays charged; if nothing was drawn it is closed at zero.

        Then the folder is removed, too, to make room for another try. If the ledger cannot be written any more, the
        charge and the folder stay. If the folder holds long work that a resumed run would use, or remote ledgers are
        charged for the run (and ``keeps`` says that the folder stays), the charge stays with it.
        """
        reservation = self._reservation
        spent = reservation.authorised > 0 or bool(reservation.drawn)
        free = not spent and not (keeps and self._has_to_stay(status))
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

    def _has_to_stay(self, status: str) -> bool:
        """Whether long work, or a remote charge, would be lost with the folder."""
        counted = status == "interrupted" and self._folder.codes.is_file()
        return self._folder.works or counted or not (self._asked is None or self._asked.release_charges())

    # -- stopping ------------------------------------------------------------------------------------------------

    def _stopped(self, stop: BaseException, *, spent: bool, keeps: bool) -> Interrupted:
        """Return the error for a run that was stopped by a signal, or ended by a rank or an owner."""
        kind, why, go_on = Interrupted, "stopped", "go on with --resume"
        if not keeps:  # the folder is a temporary one, so it is named in full
            go_on = f"go on with -o {self._folder.path} --resume"
        if isinstance(stop, OwnerLost | RankLost):
            kind, why = type(stop), f"{stop.message}, so that the run was stopped"
        if isinstance(stop, OwnerLost):
            go_on += " when that owner is back and answers alike; nothing of the run is published until then"
        if not spent:
            return kind(f"{why} before anything was drawn; nothing was spent", remedy="fit again")
        drew = self._reservation.authorised or self._reservation.drawn
        said = "what was spent stays spent" if drew else "nothing was drawn yet, and its charge is kept"
        return kind(f"{why}; {said}", field=self._folder.path, remedy=go_on)


def _never_charged(kept: dict[str, Any], ledger: Ledger) -> bool:
    """Whether a promised reservation was cut off before the ledger recorded it."""
    promised = "sequence" not in kept and kept.get("dataset") == ledger.dataset
    return promised and not any(record.body.get("id") == kept["reservation"] for record in ledger.entries)


def _restore(ledger: Ledger, folder: RunFolder, known: list[str], plan: Plan) -> Reservation:
    """Resume with the session that the ledger holds: the folder's last one, or the one just promised to it.

    A crash between the folder's record and the ledger's leaves a folder that knows both.
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


def _executed(folder: RunFolder, plan: Plan) -> Executed | None:
    """Return the record of earlier sessions; None if they learned facts and their record is lost.

    Raises:
        RunFolderError: The record does not belong to this plan.
    """
    executed = Executed(access for access in plan.answered if access.event is not None)
    if (written := folder.executed) is not None:
        executed.restore(written)
    elif folder.schema is not None:
        return None
    return executed


def _learned(plan: Plan, reservation: Reservation) -> frozenset[str]:
    """Return the purposes of the facts whose draw is spent; all of them, where the ledger cannot tell which."""
    if SOMETHING in reservation.drawn:
        return frozenset(access.purpose for access in plan.answered_facts)
    facts = enumerate(plan.answered_facts)  # the first of a plan's accesses
    return frozenset(access.purpose for number, access in facts if reservation.mark_of(number) in reservation.drawn)
