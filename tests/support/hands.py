"""Workers in this process: what they are asked is done at once, and results come in another order."""

from __future__ import annotations

import numpy as np

from doublure.data.tables.opening import open_table
from doublure.run.worker_records import WorkerRecords


class Hands:
    """Workers that write down what they are asked; ``change`` may change, drop or double results."""

    def __init__(self, change=lambda results: results):
        self.asked = []
        self.change = change

    def check(self):
        """Nobody is missing."""

    def each(self, does, *given):
        self.asked += [(does.__name__, own) for own in zip(*given, strict=True)]
        return [does(*own) for own in zip(*given, strict=True)]

    def results(self, wanted):
        yield from self.change([*wanted][::-1])


def in_files(frame, folder, files=4, ending=".csv", group=None):
    """Write a table in several files, in its order, and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), files)):
        own, path = frame.iloc[rows], folder / f"part-{number}{ending}"
        own.to_parquet(path, index=False, row_group_size=group) if group else own.to_csv(path, index=False)
    return folder


def on_hands(data, plan, change=lambda results: results):
    """Return a table's records on such workers."""
    return WorkerRecords(open_table(data, plan.schema.written), plan, Hands(change))
