"""Reservation: one run's charge and its permission to draw noise."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from doublure.errors import LedgerError
from doublure.ledger.account import CLAIM, Account, ReservedRun
from doublure.ledger.amounts import Budget
from doublure.ledger.store import LedgerStore

Status = Literal["done", "no-noise-drawn", "aborted", "interrupted"]


class Reservation:
    """One run's charge and its permission to draw noise.

    Mark first, then draw: `noise_drawn` before a learned fact, `advance` before noisy steps. Both return only when
    their record is durable, and raise otherwise. After an error nothing may be drawn.
    """

    def __init__(self, store: LedgerStore, run: ReservedRun) -> None:
        self._store = store
        self._run = run
        self._marked: set[str] = set()

    def __repr__(self) -> str:
        return f"Reservation({self.run_id!r}, authorised={self.authorised}, status={self.status!r})"

    @property
    def id(self) -> str:
        """The reservation's id."""
        return self._run.id

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run.run_id

    @property
    def sequence(self) -> int:
        """The place of the record that reserved it."""
        return self._run.sequence

    @property
    def session(self) -> str:
        """The nonce that a run folder must remember to resume; a new one after each resume."""
        return self._run.sessions[-1]

    @property
    def charge(self) -> Budget:
        """The run's current charge."""
        return self._run.charge.rounded_up()

    @property
    def plan(self) -> Mapping[str, Any]:
        """The recorded facts of the plan, read-only."""
        return MappingProxyType(dict(self._run.plan))

    @property
    def steps(self) -> int:
        """Noisy steps that the plan may draw, T."""
        return int(self._run.plan["steps"])

    @property
    def authorised(self) -> int:
        """Noisy steps authorised so far, durably, over all sessions."""
        return self._run.authorised

    @property
    def drawn(self) -> tuple[str, ...]:
        """TextMarks of `noise_drawn`, over all sessions."""
        return self._run.drawn

    def mark_of(self, number: int) -> str:
        """Return the mark of a plan's access, by its place: its purpose, as it was worded when it was reserved."""
        return str(self._run.plan["touches"][number]["purpose"])

    @property
    def claimed(self) -> str:
        """The kind that it claims: the reserved one, or a weaker one that was marked at its end."""
        return self._run.claimed

    @property
    def status(self) -> str:
        """The status that it was closed with, or "open"."""
        return self._run.status

    def noise_drawn(self, what: str) -> None:
        """Mark durably that something is about to be learned, before it is drawn.

        From here on the run keeps its full charge. A repeated mark in this session writes nothing. A mark of an
        *earlier* session is refused, as its price covers one draw, which may have been handed out.

        Args:
            what: A public name for it, such as "bounds of hours"; never a value.

        Raises:
            LedgerError: It was drawn in an earlier session, the run is closed or resumed elsewhere, or the mark is
                not durable: draw nothing.
        """
        if what not in self._marked or self.status != "open":
            self._append("noise", what=what)
            self._marked.add(what)

    def advance(self, through_step: int) -> None:
        """Authorise noisy steps up to and including `through_step`, durably, before they are drawn.

        Args:
            through_step: Above `.authorised`, at most `.steps`; steps count from 1.

        Raises:
            LedgerError: The step is beyond the plan or authorised already, the run is closed or resumed elsewhere, or
                the authorisation is not durable: draw nothing.
        """
        self._append("advance", through_step=through_step)

    def close(
        self, status: Status, steps: int | None, artefact_sha256: str | None = None, *, claimed: str | None = None
    ) -> None:
        """Record the end of the run, or of this session of it.

        Args:
            status: "no-noise-drawn" brings the charge to zero and is refused once anything was marked or authorised;
                "done", "aborted" and "interrupted" keep it. The last two can be resumed.
            steps: Noisy steps taken, at most `.authorised` (for kinds without ε: at most `.steps`), or None.
            artefact_sha256: SHA-256 of the generator file.
            claimed: The kind that it ends with. A weaker kind than the reserved one is marked first, as a learned fact
                is, and nothing of the run is released under a stronger one. (It is a mark, and no key of its own, so
                that every version of doublure reads it.)

        Raises:
            LedgerError: The status or the claim is not possible, or the run is closed or resumed elsewhere.
        """
        if claimed is not None and claimed != self.claimed:
            self.noise_drawn(f"{CLAIM}{claimed}")
        self._append("close", status=status, steps=steps, artefact_sha256=artefact_sha256)

    def _append(self, kind: str, **values: Any) -> None:
        def body(account: Account) -> Mapping[str, Any]:
            # Two processes sharing one session, after a fork, would each draw what only one of them was given.
            run = account.find(self.id)
            if run.sessions[-1] == self.session and (run.authorised, run.drawn) != (self.authorised, self.drawn):
                raise LedgerError(
                    "is drawn from by another process with the same session",
                    field=self.run_id,
                    remedy="let one process alone hold the reservation",
                )
            return {"id": self.id, "session": self.session, **values}

        _, account = self._store.append(kind, body)
        self._run = account.find(self.id)
