"""The privacy budget that runs have spent: write-ahead and append-only.

::

    amounts.py   exact sums of ε and δ
    place.py     where the lines are: the interface; places.py finds the place of a path or an address
    disk.py      the only contact with the disk: lock, append, fsync
    server.py    the only contact with PostgreSQL: the same in a transaction
    chain.py     the hash chain: records in, records out
    torn.py      charges and steps of a line that was cut short
    request.py   the facts and the charge of a plan
    shapes.py    the keys and values of each kind of record
    account.py   the rules: the order of records, and their sum
    store.py     the verified ledger: read, check the rules, append
    reservation.py, ledger.py    the objects of a run and of its keeper
    summary.py   the figures of `doublure budget show`

A ledger detects accidents and casual editing: two runs at once, a crash, a full disk, a line changed by hand. It does
not withstand someone who owns the machine and rewrites the whole file; the hash on each release card reveals that.
"""

from __future__ import annotations

from doublure.ledger.amounts import Budget
from doublure.ledger.chain import Record
from doublure.ledger.ledger import Ledger, ReleaseEntry, VerifyReport
from doublure.ledger.request import PlanLike
from doublure.ledger.reservation import Reservation, Status

__all__ = ["Budget", "Ledger", "PlanLike", "Record", "ReleaseEntry", "Reservation", "Status", "VerifyReport"]
