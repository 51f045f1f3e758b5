"""The verified ledger that `Ledger` and `Reservation` share: read, check the rules, append."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from doublure.errors import BudgetRefused, LedgerError
from doublure.ledger.account import Account
from doublure.ledger.chain import Record, RecordChain, read, seal
from doublure.ledger.place import LedgerPlace


@dataclass(frozen=True, kw_only=True)
class LedgerView:
    """A ledger as read at one moment under the lock.

    Attributes:
        data: Its bytes.
        chain: Its records.
        folded: The sum of the records.
        account: The same, with a last line that was cut short.
        unread: Whether that line cannot be read.
    """

    data: bytes
    chain: RecordChain
    folded: Account
    account: Account
    unread: bool = False

    def refusal(self, name: str) -> LedgerError:
        """Return the refusal to record anything after a last line that cannot be read."""
        line = self.data.count(b"\n") + 1
        return LedgerError(
            f"line {line} is cut short, and what it charged or allowed cannot be read: nothing more is recorded",
            field=name,
            remedy=f"if no run was begun for it, remove it: truncate -s {self.chain.good} {name}; if one was, bring "
            "back the newest whole copy",
        )


class LedgerStore:
    """One ledger, compared with what was last verified so that a restored older copy is noticed."""

    def __init__(self, place: LedgerPlace) -> None:
        self.place = place
        self._seen: LedgerView | None = None
        self._failed = False

    @classmethod
    def create(cls, place: LedgerPlace, body: Mapping[str, Any]) -> LedgerStore:
        """Create the ledger with its first record.

        Raises:
            LedgerError: It exists, is in a place that loses or overspends, or could not be made durable.
        """
        record, line = seal(RecordChain(), kind="open", body=body, utc=_utc(), tool=_tool())
        Account().add(record)
        place.create(line)
        store = cls(place)
        store.view()
        return store

    def view(self) -> LedgerView:
        """Read and verify the ledger under its lock.

        Raises:
            LedgerError: It is missing, damaged, or was replaced.
        """
        with self.place.locked(to_append=False, known=self._known) as (_, data):
            return self._read(data)

    @property
    def _known(self) -> bytes:
        return b"" if self._seen is None else self._seen.data

    def _read(self, data: bytes) -> LedgerView:
        """Verify the bytes just read under the lock; bytes verified before are compared, not parsed again."""
        name, base = self.place.name, self._seen
        if base is not None and not data.startswith(base.data):
            raise LedgerError(
                "has lost entries that were read a moment ago",
                field=name,
                remedy="another copy was put in its place: bring back the newest one",
            )
        chain = read(data, base=base.chain if base else None, name=name)
        if not chain.records:
            raise LedgerError("was never completed", field=name, remedy="remove it and create it again")
        account = base.folded.copy() if base else Account()
        for record in chain.records[len(base.chain.records) if base else 0 :]:
            try:
                account.add(record)
            except (LedgerError, BudgetRefused) as error:
                raise LedgerError(
                    f"damaged: record {record.sequence} breaks the ledger's rules: {error.message}",
                    field=name,
                    remedy="bring back the newest intact copy",
                ) from error
        standing = account
        if chain.torn:
            standing = account.copy()
        unread = bool(chain.torn) and not standing.cut_short(chain.torn)
        view = LedgerView(data=data, chain=chain, folded=account, account=standing, unread=unread)
        if chain.clean:
            self._seen = view
        return view

    def append(
        self,
        kind: str,
        body: Callable[[Account], Mapping[str, Any]],
        *,
        before: Callable[[Record], None] = lambda _: None,
    ) -> tuple[Record, Account]:
        """Lock, verify, check the rules, write, make durable, and only then return.

        Args:
            kind: The record's kind.
            body: Makes the record's body from the account as it is under the lock.
            before: Called under the lock with a record that may follow, before it is written; if it raises, it is not.

        Returns:
            The record, and the account with it.

        Raises:
            LedgerError: The ledger is damaged, the record may not follow, or it could not be made durable.
            BudgetRefused: The cap would be passed.
        """
        if self._failed:
            raise LedgerError(
                "an earlier write failed, so what the ledger holds is unknown and nothing more may be drawn",
                field=self.place.name,
                remedy="fix the disk or the server, then resume the run",
            )
        with self.place.locked(to_append=True, known=self._known) as (append, data):
            view = self._read(data)
            if view.unread:
                raise view.refusal(self.place.name)
            record, line = seal(view.chain, kind=kind, body=body(view.account), utc=_utc(), tool=_tool())
            account = view.folded.copy()
            account.add(record)
            before(record)
            try:
                append(line)
            except BaseException:
                # An interrupt counts too: what has become durable is unknown, and nothing more may be built on it.
                self._failed = True
                raise
            chain = RecordChain(records=(*view.chain.records, record), good=len(data) + len(line))
            self._seen = LedgerView(data=data + line, chain=chain, folded=account, account=account)
            return record, account


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@cache
def _tool() -> str:
    try:
        return f"doublure {version('doublure')}"
    except PackageNotFoundError:
        return "doublure"
