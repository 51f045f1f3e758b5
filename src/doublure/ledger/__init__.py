"""What has been spent: write-ahead, append-only, across runs.

::

    amounts.py   exact sums of ε and δ
    disk.py      the only contact with the disk: lock, append, fsync
    chain.py     the hash-chained file: records in, records out
    torn.py      what a line that was cut short may have spent
    request.py   what a plan asks of the ledger
    shapes.py    what a record of each kind must hold
    account.py   the rules: which record may follow which, and what they add up to
    store.py     the verified file: read, check the rules, append
    reservation.py, ledger.py    what a run and its keeper hold in their hands
    summary.py   what `doublure budget show` prints

A ledger finds accidents and casual editing: two runs at once, a crash, a full disk, a line changed by hand. It does not
withstand someone who owns the machine and rewrites the whole file; the hash on each release card is what shows that.
"""

from __future__ import annotations

from doublure.ledger.amounts import Budget
from doublure.ledger.chain import Record
from doublure.ledger.ledger import Entry, Ledger, VerifyReport
from doublure.ledger.request import PlanLike
from doublure.ledger.reservation import Reservation, Status

__all__ = ["Budget", "Entry", "Ledger", "PlanLike", "Record", "Reservation", "Status", "VerifyReport"]
