"""Private records: a fingerprint is that of the records, of their order and of whose they are."""

from __future__ import annotations

import numpy as np
import torch

from doublure.private import records
from doublure.private.records import PrivateRecords


def fingerprint(rows, unit):
    owner = np.asarray(unit)
    return PrivateRecords(torch.tensor(rows), owner, int(owner.max()) + 1, lambda body: (body, None)).fingerprint


def test_a_fingerprint_tells_values_order_and_units(monkeypatch):
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    one = fingerprint(rows, [0, 1, 2])
    assert one == fingerprint(rows, [0, 1, 2])
    others = {fingerprint(rows[::-1], [0, 1, 2]), fingerprint(rows, [0, 0, 1]), fingerprint(rows, [0, 1, 1])}
    others |= {fingerprint([*rows[:2], [5.0, 6.5]], [0, 1, 2]), fingerprint(rows[:2], [0, 1])}
    assert one not in others
    assert len(others) == 5
    monkeypatch.setattr(records, "_HASHED", 2)  # however many are looked at together
    assert one == fingerprint(rows, [0, 1, 2])
