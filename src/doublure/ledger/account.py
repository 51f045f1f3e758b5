"""Rules of the ledger: the records that may follow one another, and their sum.

Runs compose by *basic composition*, ε with ε and δ with δ. That is a valid privacy filter: the sum may be compared with
a cap fixed beforehand even though each plan is chosen after seeing earlier results (Rogers, Roth, Ullman & Vadhan 2016,
"Privacy Odometers and Filters: Pay-as-you-Go Composition"). Composing the runs' privacy loss distributions would be
tighter, but is no valid filter for plans chosen one after the other.

The account is a fold over the records. Writing and reading use the same fold: the writer adds the new record to a
copy of the account before it touches the disk, and the reader adds every record again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from doublure.access import COVERED
from doublure.errors import BudgetRefused, LedgerError, counted, printable
from doublure.ledger.amounts import Amount
from doublure.ledger.chain import Record
from doublure.ledger.request import PlanLike, same_plan
from doublure.ledger.shapes import NO_NOISE, check_shape
from doublure.ledger.torn import parse_torn_line, torn_lines

FORMAT = 1
CLAIM = "the claim: "
"""Prefix of the mark for a run's claim, where the claim is weaker than the one it was reserved under."""

_ENDED = {"open": "under way or cut off", "aborted": "ended by an error"}
_FINAL = frozenset({"done", NO_NOISE})
# A run may be released under what it claims, or under less: bayesgan above its ceiling claims plain dp.
RELEASABLE: Mapping[str, tuple[str, ...]] = {
    "dp": ("dp", "none"),
    "bayesian-dp": ("bayesian-dp", "dp", "none"),
    "empirical": ("empirical", "none"),
    "none": ("none",),
}


@dataclass(frozen=True, kw_only=True)
class ReservedRun:
    """One reservation, as given by its records.

    Attributes:
        id: The reservation's id.
        run_id: The run's id.
        sequence: The record that reserved it.
        utc: When, by the clock.
        plan: The recorded facts of its plan.
        charge: Its current charge; zero for kinds without (ε, δ), and after "no-noise-drawn".
        sessions: Its session nonces, the last one valid.
        drawn: TextMarks of draws other than noisy steps.
        authorised: Noisy steps authorised, drawn or not.
        status: "open" or how it was closed.
        taken: Noisy steps reported at its close.
        artefact: SHA-256 of the generator that it was closed with as done.
    """

    id: str
    run_id: str
    sequence: int
    utc: str
    plan: Mapping[str, Any]
    charge: Amount
    sessions: tuple[str, ...]
    drawn: tuple[str, ...] = ()
    authorised: int = 0
    status: str = "open"
    taken: int | None = None
    artefact: str | None = None

    @property
    def kind(self) -> str:
        """The kind of guarantee it was reserved under."""
        return str(self.plan["kind"])

    @property
    def claimed(self) -> str:
        """The kind that it claims: the reserved one, or a weaker one that was marked at its end."""
        found = self.kind
        for what in self.drawn:
            if what.startswith(CLAIM) and _falls(kind := what.removeprefix(CLAIM), found):
                found = kind
        return found

    @property
    def noise_drawn(self) -> bool:
        """Whether anything may have been drawn."""
        return bool(self.drawn) or self.authorised > 0


class Account:
    """The sum of the records so far.

    Attributes:
        dataset: The data set the ledger is about.
        cap: Its cap.
        spent: The sum of all charges, dp and bayesian-dp (worst case) together.
        runs: Reservations by id, oldest first.
        releases: The records of released bundles.
    """

    def __init__(self) -> None:
        self.dataset = ""
        self.cap = Amount()
        self.spent = Amount()
        self.runs: dict[str, ReservedRun] = {}
        self.releases: tuple[Record, ...] = ()
        self._run_ids: dict[str, str] = {}

    def copy(self) -> Account:
        """Return an independent copy."""
        twin = Account()
        twin.dataset, twin.cap, twin.spent, twin.releases = self.dataset, self.cap, self.spent, self.releases
        twin.runs, twin._run_ids = dict(self.runs), dict(self._run_ids)
        return twin

    def find(self, name: str) -> ReservedRun:
        """Return the run of a reservation id or run id.

        Raises:
            LedgerError: There is none.
        """
        run = self.runs.get(self._run_ids.get(name, name))
        if run is None:
            raise LedgerError(
                "is not a reservation of this ledger", field=name, remedy="give the ledger the run was made with"
            )
        return run

    def uncovered(self) -> int:
        """Return the number of bundles released under a kind that the total does not cover."""
        return sum(record.body["kind"] not in COVERED for record in self.releases)

    def add(self, record: Record) -> None:
        """Add the next record, and the lines cut short before it; do not use the account if this raises.

        Raises:
            LedgerError: The record may not follow.
            BudgetRefused: It would pass the cap.
        """
        if record.torn:
            self.cut_short(record.torn)
        check_shape(record.kind, record.body)
        if (record.kind == "open") != (record.sequence == 1):
            raise LedgerError("the cap is recorded once, in the first record")
        match record.kind:
            case "open":
                self._open(record.body)
            case "reserve":
                self._reserve(record)
            case "release":
                self._release(record)
            case _:
                before = self.find(record.body["id"])
                after = _NEXT[record.kind](before, record.body)
                self.runs[after.id] = after
                if after.charge != before.charge:
                    self.spent = self.spent - before.charge + after.charge

    def cut_short(self, torn: bytes) -> bool:
        """Charge lines that were cut short with all that they can have said; return whether they could be read."""
        read = True
        for line in torn_lines(torn):
            found = parse_torn_line(line)
            if found is None or (found.run is not None and found.run not in self.runs):
                read = False
                continue
            self.spent = self.spent + found.charge
            if found.run is not None:
                run = self.runs[found.run]
                steps = run.plan["steps"] if found.through_step is None else min(found.through_step, run.plan["steps"])
                drawn = run.drawn if found.what is None or found.what in run.drawn else (*run.drawn, found.what)
                self.runs[run.id] = replace(run, drawn=drawn, authorised=max(run.authorised, steps))
        return read

    def _open(self, body: Mapping[str, Any]) -> None:
        if body["format"] != FORMAT:
            raise LedgerError("a ledger of another format", remedy="use a newer doublure")
        self.dataset, self.cap = body["dataset"], Amount.of(body["epsilon"], body["delta"])

    def _reserve(self, record: Record) -> None:
        body, plan = record.body, record.body["plan"]
        if any(name in self.runs or name in self._run_ids for name in (body["id"], body["run_id"])):
            raise LedgerError("is reserved already", field=body["run_id"], remedy="resume it, or give a new run id")
        if (body["charge"] is not None) != (plan["kind"] in COVERED):
            raise LedgerError("a charge that does not fit its kind")
        charge = Amount() if body["charge"] is None else Amount.of(**body["charge"])
        self.refuse_beyond_cap(charge)
        self.spent = self.spent + charge
        self._run_ids[body["run_id"]] = body["id"]
        self.runs[body["id"]] = ReservedRun(
            id=body["id"],
            run_id=body["run_id"],
            sequence=record.sequence,
            utc=record.utc,
            plan=plan,
            charge=charge,
            sessions=(body["session"],),
        )

    def refuse_beyond_cap(self, charge: Amount) -> None:
        """Refuse a charge that would pass the cap.

        Raises:
            BudgetRefused: Naming what is left.
        """
        if not (self.spent + charge).fits(self.cap):
            raise self._refusal(charge)

    def refuse_repeated(self, plan: PlanLike) -> None:
        """Refuse a plan that a run of this ledger is charged for already.

        Raises:
            BudgetRefused: Naming that run and the remedy.
        """
        for run in reversed(self.runs.values()):
            if run.charge != Amount() and same_plan(plan, run.run_id, run.plan):
                done = run.status == "done"
                free = "use that run, which costs nothing" if done else "go on with that run (resume), at no new charge"
                when, ended = run.utc[:16].replace("T", " "), _ENDED.get(run.status, run.status)
                raise BudgetRefused(
                    f"the same plan was charged to {printable(self.dataset)} already: entry {run.sequence} of {when} "
                    f"UTC, {run.charge.rounded_up()}, {ended}",
                    field="again",
                    remedy=f"{free}, or pay once more with again=True (--again)",
                )

    def _release(self, record: Record) -> None:
        self.refuse_release(record.body["id"], record.body["kind"])
        self.releases = (*self.releases, record)

    def refuse_release(self, name: str, kind: str) -> None:
        """Refuse to release an unknown run, one that drew nothing, or one under a stronger kind than it claims.

        Raises:
            LedgerError: Naming the run.
        """
        run = self.find(name)
        if run.status == NO_NOISE:
            raise LedgerError(
                'was closed as "no-noise-drawn" and cost nothing, so nothing of it may be released',
                field=run.run_id,
                remedy="run the plan again",
            )
        if kind not in RELEASABLE.get(run.claimed, ()):
            said = f"was reserved as {run.kind}" if run.claimed == run.kind else f"ended as {printable(run.claimed)}"
            raise LedgerError(f"{said} and cannot be released as {kind}", field=run.run_id, remedy="reserve it so")

    def refuse_other_generator(self, name: str, sha256: object) -> None:
        """Refuse a generator other than the one that a run was closed with.

        Raises:
            LedgerError: Naming the run.
        """
        run = self.find(name)
        if run.artefact is None:
            raise LedgerError(
                "has no finished generator in this ledger",
                field=run.run_id,
                remedy="finish it with doublure fit --resume, and release its own run folder",
            )
        if sha256 != run.artefact:
            raise LedgerError(
                "ended with another generator than this one, by the ledger's own record",
                field=run.run_id,
                remedy="release the run folder as fit left it; this entry covers nothing of another generator",
            )

    def _refusal(self, charge: Amount) -> BudgetRefused:
        passed = "epsilon" if self.spent.epsilon + charge.epsilon > self.cap.epsilon else "delta"
        return BudgetRefused(
            f"the cap of data set {printable(self.dataset)} would be passed: cap {self.cap.rounded_down()}, spent "
            f"{self.spent.rounded_up()}, asked {charge.rounded_up()}, left {(self.cap - self.spent).rounded_down()}",
            field=passed,
            remedy="plan for no more than what is left",
        )


def _current(run: ReservedRun, body: Mapping[str, Any]) -> None:
    """Refuse a record that is not of the run's last session, or that comes after its end."""
    if body["session"] != run.sessions[-1]:
        raise LedgerError(
            "was resumed elsewhere, from another copy of its run folder",
            field=run.run_id,
            remedy="go on with the copy that was resumed last",
        )
    if run.status != "open":
        raise LedgerError(f"was closed ({run.status})", field=run.run_id, remedy="resume it, or reserve a new run")


def _noise(run: ReservedRun, body: Mapping[str, Any]) -> ReservedRun:
    _current(run, body)
    if body["what"] in run.drawn:
        raise LedgerError(
            f"{printable(body['what'])} was drawn already, and its price covers one draw",
            field=run.run_id,
            remedy="use what was drawn, or reserve a new run",
        )
    if body["what"].startswith(CLAIM) and not _falls(claimed := body["what"].removeprefix(CLAIM), run.claimed):
        raise LedgerError(
            f"cannot claim {printable(claimed)}, being {printable(run.claimed)}",
            field=run.run_id,
            remedy="claim no more than that",
        )
    return replace(run, drawn=(*run.drawn, body["what"]))


def _falls(claimed: str, before: str) -> bool:
    """Whether a claim is no stronger than the one before; an unknown kind counts as none, which releases nothing."""
    return claimed in RELEASABLE.get(before, ()) or claimed not in RELEASABLE


def _advance(run: ReservedRun, body: Mapping[str, Any]) -> ReservedRun:
    _current(run, body)
    through, steps = body["through_step"], run.plan["steps"]
    if through > steps:
        raise LedgerError(
            f"the plan has {counted(steps, 'noisy step')}, and step {through} is beyond",
            field=run.run_id,
            remedy="stop there",
        )
    if through <= run.authorised:
        raise LedgerError(
            f"steps up to {run.authorised} are authorised already and may not be authorised again",
            field=run.run_id,
            remedy=f"go on with step {run.authorised + 1}",
        )
    return replace(run, authorised=through)


def _resume(run: ReservedRun, body: Mapping[str, Any]) -> ReservedRun:
    if run.status in _FINAL:
        raise LedgerError(f"was closed ({run.status})", field=run.run_id, remedy="reserve a new run")
    _current(replace(run, status="open"), {"session": body["from_session"]})
    if body["session"] in run.sessions:
        raise LedgerError("needs a session nonce never used before", field=run.run_id, remedy="draw a new one")
    return replace(run, sessions=(*run.sessions, body["session"]), status="open", taken=None)


def _close(run: ReservedRun, body: Mapping[str, Any]) -> ReservedRun:
    _current(run, body)
    status, steps = body["status"], body["steps"]
    # A kind without (ε, δ) may train without asking for each step; a charged one may not have drawn one unasked.
    most = run.authorised if run.kind in COVERED else run.plan["steps"]
    if status == NO_NOISE and (run.noise_drawn or steps):
        raise LedgerError(
            'may have drawn noise, so it cannot be closed as "no-noise-drawn"',
            field=run.run_id,
            remedy='close it as "aborted" at the full charge',
        )
    if steps is not None and steps > most:
        raise LedgerError(
            f"reports {counted(steps, 'noisy step')} where {most:,} were authorised",
            field=run.run_id,
            remedy="stop using this run",
        )
    charge, artefact = Amount() if status == NO_NOISE else run.charge, body["artefact_sha256"]
    return replace(run, status=status, taken=steps, charge=charge, artefact=artefact if status == "done" else None)


_NEXT: dict[str, Callable[[ReservedRun, Mapping[str, Any]], ReservedRun]] = {
    "noise": _noise,
    "advance": _advance,
    "resume": _resume,
    "close": _close,
}
