"""Ledger: the write-ahead record of the budget spent on a data set."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doublure.errors import GateFailed, LedgerError, SettingError, escaped, printable
from doublure.ledger import display
from doublure.ledger.account import FORMAT, Account
from doublure.ledger.amounts import Amount, Budget, is_figure
from doublure.ledger.chain import Record
from doublure.ledger.place import LedgerPlace
from doublure.ledger.places import FilePlace, find_place
from doublure.ledger.request import PlanLike, new_run_id, plan_charge, recorded_facts, same_facts
from doublure.ledger.reservation import Reservation
from doublure.ledger.shapes import NONCE
from doublure.ledger.store import LedgerStore
from doublure.ledger.summary import coverage, summary

_LONGEST_ID = 200
_PATIENCE, _PAUSE = 2.0, 0.02


@dataclass(frozen=True, kw_only=True)
class ReleaseEntry:
    """Reference to the ledger's record of a release, for the release card.

    It leaves out the record's place, as the number of records before it would reveal refused fits.

    Attributes:
        dataset: The ledger's data set.
        head_sha256: The record's hash. A nonce in the record prevents guessing its place.
    """

    dataset: str
    head_sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return the value of the card's key `ledger`."""
        return {"dataset": self.dataset, "head_sha256": self.head_sha256}


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """Figures of a ledger that was found intact, up to its last record.

    No chain shows that records after that one were cut off: a card's entry does (:meth:`Ledger.verify_card`).

    Attributes:
        dataset: The ledger's data set.
        sequence: The last record's place, which is the number of records.
        utc: The time of the last record, by the clock.
        head_sha256: The last record's hash.
        runs: Reservations.
        releases: Released bundles.
        torn: Lines cut short by a crash, a full disk or a hand; each counts for all that it can have said.
    """

    dataset: str
    sequence: int
    utc: str
    head_sha256: str
    runs: int
    releases: int
    torn: int


class Ledger:
    """The budget spent on one data set, against a cap.

    Make one with `Ledger.create` or `Ledger.open`. Every figure is read from the disk or the server when it is asked
    for. All of it is compared with what this object saw before, so that a restored older copy is noticed.

    Guarantee: the sum of (ε, δ) of everything ever reserved, plus a new plan, stays within the cap, for any number of
    processes and threads that share it and for plans chosen one after seeing the results of the other (basic
    composition, see `account.py`). A charge is durable before `reserve` returns. It returns to zero only where
    nothing was drawn.

    Example:
        >>> ledger = db.Ledger.create("own.ledger", dataset="people", epsilon=3.0, delta=1e-4)
        >>> reservation = ledger.reserve(plan)  # as db.fit does, before it opens the data
        >>> ledger
        Ledger('own.ledger': people, spent (ε=1, δ=1e-05) of (ε=3, δ=0.0001))
        >>> reservation.close("no-noise-drawn", steps=0)
        >>> ledger.spent.epsilon
        0.0
    """

    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    @classmethod
    def create(cls, path: str | Path, *, dataset: str, epsilon: float, delta: float) -> Ledger:
        """Create a ledger with its cap.

        Args:
            path: A path where nothing lies yet, on a local disk; or ``postgresql://user@host/database/name``, with
                ``pip install 'doublure[sql]'``.
            dataset: The declared id of the data set; caps belong to the id, whatever file holds the data.
            epsilon: The cap on ε over all runs, above 0.
            delta: The cap on δ over all runs, from 0 to below 1.

        Raises:
            LedgerError: It exists, is where locks or writes mean too little, or could not be made durable.
            SettingError: An argument is out of its range.

        Example:
            >>> ledger = db.Ledger.create("new.ledger", dataset="people", epsilon=3.0, delta=1e-4)
            >>> ledger.remaining.epsilon, ledger.remaining.delta
            (3.0, 0.0001)
        """
        if not isinstance(dataset, str) or not 0 < len(dataset) <= _LONGEST_ID:
            raise SettingError(f"must be 1 to {_LONGEST_ID} characters", field="dataset", remedy="give a short id")
        if escaped(dataset) != dataset:
            raise SettingError("has an invisible character", field="dataset", remedy="give a plain word")
        if not is_figure(epsilon) or epsilon == 0:
            raise SettingError("must be a finite number above 0", field="epsilon", remedy="give the cap on ε")
        if not is_figure(delta) or delta >= 1:
            raise SettingError("must be a number from 0 to below 1", field="delta", remedy="give the cap on δ")
        body = {"format": FORMAT, "dataset": dataset, "epsilon": float(epsilon), "delta": float(delta)}
        return cls(LedgerStore.create(find_place(path), body))

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Open a ledger and verify all of it.

        Raises:
            LedgerError: It is missing, damaged, or was never completed.

        Example:
            >>> db.Ledger.open("people.ledger").dataset
            'people'
        """
        return cls._opened(find_place(path))

    @classmethod
    def _opened(cls, place: LedgerPlace) -> Ledger:
        store = LedgerStore(place)
        store.view()
        return cls(store)

    @classmethod
    def open_or_create(cls, path: str | Path, *, dataset: str, epsilon: float, delta: float) -> Ledger:
        """Open a ledger, or create it where none is, for notebooks that are run again.

        Args:
            path: As :meth:`create`.
            dataset: As :meth:`create`; a ledger that is there must be of this data set.
            epsilon: The cap on ε; a ledger that is there must have this one, as a cap is fixed for good.
            delta: The cap on δ, likewise.

        Raises:
            LedgerError: It is of another data set or has another cap, or as :meth:`open` and :meth:`create`.
            SettingError: An argument is out of its range.

        Example:
            >>> first = db.Ledger.open_or_create("again.ledger", dataset="people", epsilon=3.0, delta=1e-4)
            >>> again = db.Ledger.open_or_create("again.ledger", dataset="people", epsilon=3.0, delta=1e-4)
            >>> first.head == again.head
            True
        """
        place = find_place(path)
        if not place.exists():
            try:
                return cls.create(path, dataset=dataset, epsilon=epsilon, delta=delta)
            except LedgerError:
                if not place.exists():  # else another process has just made it, or is about to
                    raise
        book = cls._once_made(place)
        if book.dataset != dataset:
            message = f"is the ledger of data set {printable(book.dataset)}"
            raise LedgerError(message, field=place.address, remedy="give each data set a ledger of its own")
        if (book.cap.epsilon, book.cap.delta) != (epsilon, delta):
            remedy = "give that cap, which was fixed when the ledger was made, or open it with Ledger.open"
            raise LedgerError(f"has another cap: {book.cap}", field=place.address, remedy=remedy)
        return book

    @classmethod
    def _once_made(cls, place: LedgerPlace) -> Ledger:
        """Open a ledger; wait for an empty file, which another process may be about to write."""
        until = time.monotonic() + _PATIENCE
        while True:
            begun = place.begun  # looked at first: it may be written meanwhile
            try:
                return cls._opened(place)
            except LedgerError:
                if not begun or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)

    def __repr__(self) -> str:
        """Return the file and the budget spent of the cap; the file alone where it cannot be read."""
        try:
            account = self._store.view().account
        except (LedgerError, OSError):
            return f"Ledger({self._store.place.name!r})"
        said = f"{printable(account.dataset)}, spent {account.spent.rounded_up()} of {account.cap.rounded_down()}"
        return f"Ledger({self._store.place.name!r}: {said})"

    def _repr_html_(self) -> str:
        return display.html(self._store.place.name, self.show())

    @property
    def path(self) -> Path | str:
        """The file; of a ledger on a server its address."""
        place = self._store.place
        return place.path if isinstance(place, FilePlace) else place.address

    @property
    def dataset(self) -> str:
        """The declared id of the data set."""
        return self._store.view().account.dataset

    @property
    def beside(self) -> tuple[str, ...]:
        """The names of other files in its folder that are ledgers of the same data set: no cap holds for all."""
        here, dataset, found = self.path, self.dataset, []
        for each in sorted(here.parent.glob(f"*{here.suffix}")) if isinstance(here, Path) else ():
            with suppress(LedgerError, OSError):
                if each.is_file() and not each.samefile(here) and Ledger.open(each).dataset == dataset:
                    found.append(escaped(each.name))
        return tuple(found)

    @property
    def cap(self) -> Budget:
        """The cap over all runs.

        Example:
            >>> ledger.cap.epsilon, ledger.cap.delta
            (3.0, 0.0001)
        """
        return self._store.view().account.cap.rounded_down()

    @property
    def spent(self) -> Budget:
        """The sum of all charges: dp runs at their total, bayesian-dp runs at their worst case.

        Example:
            >>> ledger.spent.epsilon, ledger.spent.delta
            (1.0, 1e-05)
        """
        return self._store.view().account.spent.rounded_up()

    @property
    def remaining(self) -> Budget:
        """The budget left under the cap; a plan for exactly this much fits.

        Example:
            >>> ledger.remaining.epsilon
            2.0
        """
        account = self._store.view().account
        return (account.cap - account.spent).rounded_down()

    @property
    def entries(self) -> tuple[Record, ...]:
        """All records, oldest first."""
        return self._store.view().chain.records

    @property
    def head(self) -> tuple[int, str]:
        """Sequence and SHA-256 of the last record."""
        return self._store.view().chain.head

    @property
    def covers_all_releases(self) -> bool:
        """Whether the total covers all releases: false once an empirical or none bundle was released."""
        return self._store.view().account.uncovered() == 0

    @property
    def coverage(self) -> str:
        """One sentence on the releases that the total covers."""
        return coverage(self._store.view().account)

    def refuse_repeated(self, plan: PlanLike) -> None:
        """Refuse a plan that a run of this ledger is charged for already, whatever became of that run.

        Plans are the same if their facts are and, where the run's id holds it, their hash. Data are known by the
        ledger's data set alone, which is public: no record is read. Runs that cost nothing are no reason to refuse.

        Raises:
            BudgetRefused: Naming the earlier reservation and the remedy.
        """
        self._store.view().account.refuse_repeated(plan)

    def refuse_beyond_cap(self, plan: PlanLike) -> None:
        """Refuse a plan whose charge would pass the cap, without charging it.

        Raises:
            BudgetRefused: Naming what is left.
        """
        charge = plan_charge(plan, recorded_facts(plan)["kind"])
        self._store.view().account.refuse_beyond_cap(Amount() if charge is None else Amount.of(**charge))

    def reserve(
        self,
        plan: PlanLike,
        *,
        run_id: str | None = None,
        again: bool = True,
        promise: Callable[[str, str], None] = lambda *_: None,
    ) -> Reservation:
        """Charge a whole plan, durably, before any record is opened.

        Args:
            plan: The plan to run. Kinds dp and bayesian-dp are charged; empirical and none are recorded at zero.
            run_id: The run's id, never used before in this ledger; a fresh one by default.
            again: Whether a plan may be charged that a run is charged for already; decided under the lock.
            promise: Stores the reservation's id and session durably before the charge is, so that a crash in between
                leaves no unknown charge. Called under the ledger's lock, once it may be charged.

        Returns:
            The reservation. The charge is durable when this returns, and not before.

        Raises:
            BudgetRefused: The cap would be passed, or the plan was charged already and ``again`` is false.
            LedgerError: The ledger is damaged, on a network file system, or could not be written durably.
            SettingError: The plan contradicts itself.
        """
        self._store.place.refuse_unsafe()
        plan_facts = recorded_facts(plan)
        reservation_id, session = secrets.token_hex(8), secrets.token_hex(16)
        body = {
            "id": reservation_id,
            "run_id": new_run_id(plan, reservation_id) if run_id is None else run_id,
            "session": session,
            "plan": plan_facts,
            "charge": plan_charge(plan, plan_facts["kind"]),
        }

        def checked(account: Account) -> Mapping[str, Any]:
            if not again:
                account.refuse_repeated(plan)
            return body

        _, account = self._store.append("reserve", checked, before=lambda _: promise(reservation_id, session))
        return Reservation(self._store, account.find(reservation_id))

    def resume(
        self,
        reservation_id: str,
        session: str,
        *,
        plan: PlanLike | None = None,
        next_session: str | None = None,
        promise: Callable[[str], None] = lambda _: None,
    ) -> Reservation:
        """Resume a reservation that was not finished; its charge stays as it is.

        Steps authorised earlier count towards T whether or not their results survived; see `.authorised`.

        Args:
            reservation_id: Its id or its run's id.
            session: The nonce the run folder remembers.
            plan: The run folder's plan, to be compared with what was reserved.
            next_session: A fresh nonce. Drawn here by default.
            promise: Stores that nonce durably beside the old one, so that a crash between this call and the run
                folder's next write leaves a folder that knows both. Called under the ledger's lock, once it is certain
                that the run may be resumed, so that a refused process writes nothing.

        Returns:
            The reservation, with a new `.session` that the run folder must remember from now on.

        Raises:
            LedgerError: It is unknown, was closed as done or no-noise-drawn, was resumed elsewhere from another copy of
                the run folder, or was reserved for another plan.
        """
        self._store.place.refuse_unsafe()

        def body(account: Account) -> Mapping[str, Any]:
            run = account.find(reservation_id)
            if plan is not None and not same_facts(plan, run.plan):
                raise LedgerError(
                    "was reserved for another plan", field=run.run_id, remedy="resume with the plan it began with"
                )
            return {"id": run.id, "session": next_session or secrets.token_hex(16), "from_session": session}

        record, account = self._store.append("resume", body, before=lambda record: promise(record.body["session"]))
        return Reservation(self._store, account.find(record.body["id"]))

    def refuse_release(self, run: str, guarantee_kind: str) -> None:
        """Refuse beforehand what :meth:`record_release` would refuse.

        Args:
            run: The id of the reservation or run.
            guarantee_kind: The kind it is to be released under.

        Raises:
            LedgerError: The run is unknown, drew nothing, or cannot be released under this kind.
        """
        self._store.view().account.refuse_release(run, guarantee_kind)

    def refuse_other_generator(self, run: str, sha256: object) -> None:
        """Refuse a generator other than the one that the run ended with.

        Args:
            run: The id of the reservation or run.
            sha256: SHA-256 of the ``generator.safetensors`` that is to be released.

        Raises:
            LedgerError: The run is unknown or has not ended, or ended with another generator.
        """
        self._store.view().account.refuse_other_generator(run, sha256)

    def record_release(self, run: str, files: Mapping[str, str], guarantee_kind: str) -> ReleaseEntry:
        """Record that a bundle was released.

        Args:
            run: The id of the reservation or run it was made from.
            files: SHA-256 by file name in the bundle.
            guarantee_kind: The kind it is released under: as it claims, or weaker.

        Returns:
            The reference for the release card.

        Raises:
            LedgerError: The run is unknown, drew nothing, or cannot be released under this kind.
        """
        told = {**files, NONCE: secrets.token_hex(32)} if files else {}
        record, account = self._store.append(
            "release", lambda account: {"id": account.find(run).id, "kind": guarantee_kind, "files": told}
        )
        return ReleaseEntry(dataset=account.dataset, head_sha256=record.sha256)

    def verify(self) -> VerifyReport:
        """Verify every record, from the first.

        Raises:
            LedgerError: A record was edited, moved, removed or added, or breaks the rules; or the last line is cut
                short, and what it charged or allowed cannot be read.

        Example:
            >>> report = ledger.verify()
            >>> report.runs, report.torn
            (1, 0)
        """
        view = self._store.view()
        if view.unread:
            raise view.refusal(self._store.place.name)
        sequence, sha256 = view.chain.head
        return VerifyReport(
            dataset=view.account.dataset,
            sequence=sequence,
            utc=view.chain.records[-1].utc,
            head_sha256=sha256,
            runs=len(view.account.runs),
            releases=len(view.account.releases),
            torn=sum(record.after_torn for record in view.chain.records) + bool(view.chain.torn),
        )

    def verify_card(self, entry: Mapping[str, Any]) -> Record:
        """Verify that the ledger still contains the record that a release card names.

        A chain alone cannot show that its end was cut off or that an older copy was restored; a card outside it can.

        Args:
            entry: The card's `ledger`: `dataset` and `head_sha256`, and `sequence` on the cards of 0.2.0 and before.

        Returns:
            The record.

        Raises:
            GateFailed: It does not.
            LedgerError: The ledger is damaged.
        """
        view = self._store.view()
        if entry.get("dataset") != view.account.dataset:
            raise GateFailed(
                "is not this ledger's data set", field="ledger.dataset", remedy="verify with its own ledger"
            )
        found = [record for record in view.chain.records if record.sha256 == entry.get("head_sha256")]
        place = entry.get("sequence", found[0].sequence if found else None)
        if not found or type(place) is not int or found[0].sequence != place:
            raise GateFailed(
                "the ledger has no such record: it was cut short, put back or rewritten, or the card was changed",
                field="ledger.head_sha256",
                remedy="look for the newest copy of the ledger, and trust no total until it is found",
            )
        return found[0]

    def show(self) -> dict[str, Any]:
        """Return the figures of `doublure budget show` as plain JSON values (see `summary.py`).

        Example:
            >>> [run["status"] for run in ledger.show()["runs"]]
            ['done']
        """
        return summary(self._store.view().account)
