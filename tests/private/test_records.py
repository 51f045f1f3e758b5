"""Private records: a fingerprint is that of the records, of their order and of whose they are."""

from __future__ import annotations

import numpy as np
import pytest
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


def test_an_order_by_bodies_follows_nothing_else():
    rows = torch.randn(30, 3, generator=torch.Generator().manual_seed(1))
    order, labels = torch.randperm(30, generator=torch.Generator().manual_seed(2)), torch.arange(30) % 2

    def ordered(places):
        kept = torch.cat([rows, labels[:, None].float()], dim=1)[places]
        records = PrivateRecords(kept, np.arange(30), 30, lambda body: (body[:, :3], body[:, 3:]))
        return [torch.cat(parts) for parts in zip(*records.by_body().expanded(7), strict=True)]

    (one, labels_of_one), (other, labels_of_other) = ordered(torch.arange(30)), ordered(order)
    assert torch.equal(one, other)
    assert torch.equal(labels_of_one, labels_of_other)
    assert not torch.equal(one, rows)


def test_conditions_are_one_for_each_record():
    records = PrivateRecords(torch.zeros(3, 2), np.arange(3), 3, lambda body: (body, None))
    with pytest.raises(ValueError, match="one condition for each record"):
        records.with_conditions(torch.zeros(2, 4))
