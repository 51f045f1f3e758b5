"""Owners in one process, with no network between them: what is said goes from hand to hand."""

from __future__ import annotations

import functools
from pathlib import Path

from parted import replayed

import doublure as db
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.federated.simulate import fit_elsewhere
from doublure.ledger import Ledger

HEAD = "kind: table\nfederated: {max_silos: 1}"


def with_owners(schema, silos=1):
    return schema.replace("kind: table", HEAD.replace("1}", f"{silos}}}"))


@functools.cache
def plan_of(schema, epsilon=20.0):
    return db.plan(
        db.Schema.parse(schema), method="statistics", epsilon=epsilon, delta=1e-4, accountant="rdp", components=4,
        fit_steps=5,
    )  # fmt: skip


def dealt(frame, folder, owners=3, by=None):
    """Deal a table to owners, all records of a unit to one, and return their files."""
    folder.mkdir(parents=True)
    to = (frame.index if by is None else frame[by].map(lambda key: int(key[1:]))) % owners
    for owner in range(owners):
        frame[to == owner].to_csv(folder / f"owner-{owner}.csv", index=False)
    return sorted(folder.iterdir())


class HandToHand:
    """A post that hands each owner what is said to it; ``change`` may change, drop or add answers."""

    def __init__(self, owners, change=None):
        self.owners = owners
        self.change = change or (lambda ask, node, answer: [(node, answer)])
        self.asked = []

    def nodes(self):
        return list(self.owners)

    def sent(self, messages):
        for node, said in messages.items():
            self.asked.append((said.words["ask"], node))
            answer = self.owners[node].heard(said)
            if answer is not None:
                yield from self.change(said.words, node, answer)


class Federation:
    """Some owners, their ledgers, and a coordinator's."""

    def __init__(self, folder, plan, files, *, cap=1000.0, change=None):
        self.folder, self.plan = folder, plan
        self.files = {number: Path(file) for number, file in enumerate(files, start=1)}
        for number in self.files:
            Ledger.create(self.path_of(number), dataset=f"owner {number}", epsilon=cap, delta=0.5)
        self.ledger = Ledger.create(folder / "ledger", dataset="all", epsilon=1000.0, delta=0.5)
        self.post = HandToHand({number: self.owner(number) for number in self.files}, change)
        self.lines = []

    def path_of(self, number):
        (self.folder / f"at {number}").mkdir(exist_ok=True)
        return self.folder / f"at {number}" / "ledger"

    def owner(self, number, plan=None):
        folder = self.folder / f"at {number}"
        return Silo(
            name=self.files[number].stem, data=str(self.files[number]), plan=plan or self.plan,
            ledger=folder / "ledger", folder=folder,
        )  # fmt: skip

    def book(self, number):
        return Ledger.open(self.path_of(number))

    def fitted(self, patch, **more):
        one_unit = more.pop("one_unit", False)
        with patch.context() as inner:
            replayed(inner)
            self.clients = Clients(self.post, self.plan, one_unit=one_unit, said=self.lines.append)
            return fit_elsewhere(self.clients, self.plan, ledger=self.ledger, out=self.folder / "run", seed=1, **more)
