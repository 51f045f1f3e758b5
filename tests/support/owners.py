"""Owners in one process, with no network between them: what is said goes from hand to hand."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
from keyed import Keyed
from parted import replayed

import doublure as db
from doublure.errors import OwnerLost
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.federated.simulate import fit_remotely
from doublure.ledger import Ledger
from doublure.private.mechanism import Mechanism
from doublure.private.sampling import PoissonSampler
from doublure.support.messages import Message

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


def sent(message):
    """Return a message as it comes out of its own bytes."""
    return Message.from_bytes(message.to_bytes())


class HandToHand:
    """A post that hands each owner what is said to it; ``change`` may change, drop or add answers."""

    def __init__(self, owners, change=None):
        self.owners = owners
        self.change = change or (lambda ask, node, answer: [(node, answer)])
        self.asked = []

    def nodes(self):
        return list(self.owners)

    def send(self, messages):
        for node, said in messages.items():
            self.asked.append((said.words["ask"], node))
            answer = self.owners[node].answer(sent(said))
            if answer is not None:
                yield from self.change(said.words, node, sent(answer))


class Federation:
    """Some owners, their ledgers, and a coordinator's."""

    def __init__(self, folder, plan, files, *, cap=1000.0, change=None, units=None, again=False):
        if units is None and plan.guarantee.kind == "bayesian-dp":  # then each has to declare some
            units = [plan.schema.public_units // len(files)] * len(files)
        self.units, self.again = units, again
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
            ledger=folder / "ledger", folder=folder, again=self.again,
            units=None if self.units is None else self.units[number - 1],
        )  # fmt: skip

    def book(self, number):
        return Ledger.open(self.path_of(number))

    def fitted(self, patch, **more):
        one_unit = more.pop("one_unit", False)
        with patch.context() as inner:
            replayed(inner)
            self.clients = Clients(self.post, self.plan, one_unit=one_unit, said=self.lines.append)
            return fit_remotely(self.clients, self.plan, ledger=self.ledger, out=self.folder / "run", seed=1, **more)

    def ended(self, patch, **more):
        """Fit, and return what an owner failed by; a run that goes on all the same is none that may."""
        try:
            self.fitted(patch, **more)
        except OwnerLost as lost:
            return lost
        raise AssertionError("the run went on")

    def fitted_at_last(self, patch, **more):
        """Fit, and go on with the run when an owner has failed; begin anew where nothing is left of it.

        Each owner may fail once, as each is killed once at most: after that the run has to come to its end.
        """
        resume = False
        for _ in self.files:
            try:
                return self.fitted(patch, resume=resume, **more)
            except OwnerLost:
                resume = (self.folder / "run" / "run.json").is_file()
        return self.fitted(patch, resume=resume, **more)


class Killed(BaseException):
    """A process ends: nothing that it would have done is done."""


class Mortal:
    """An owner whose process ends as it writes for the n-th time; the next message goes to another process."""

    def __init__(self, made, number, at, patch):
        self.made, self.number, self.left = made, number, at
        self.owner, self.dies = made.owner(number), 0
        self.answered = []
        fsync = os.fsync

        def written(file):
            if not self.inside:
                return fsync(file)
            self.left -= 1
            if self.left == 0:
                raise Killed  # what was written may be on the disk, or not: here it is
            return fsync(file)

        self.inside = False
        patch.setattr(os, "fsync", written)

    def answer(self, said):
        self.inside = True
        try:
            answer = self.owner.answer(said)
        except Killed:
            self.dies += 1
            self.owner = self.made.owner(self.number)
            return None
        finally:
            self.inside = False
        if answer.arrays or "names" in answer.words:
            self.answered.append(said.words["access"])
        return answer


class KeyedOwners(Keyed):
    """Coins, partners and mixing numbers by a unit's number and the step, whoever is asked."""

    def install(self, patch):
        from doublure.private.queries.lot_gradients import CriticGradients

        super().install(patch)
        own, at = self._own, CriticGradients.at

        def stepped(query, step, *networks):
            own.step = step
            return at(query, step, *networks)

        def coins(sampler):
            mine = getattr(own, "units", None)
            numbers = range(sampler._population) if mine is None else mine
            assert len(numbers) == sampler._population
            return np.flatnonzero([self._drawn(own.step, int(n)).random() < sampler.sample_rate for n in numbers])

        patch.setattr(CriticGradients, "at", stepped)
        patch.setattr(PoissonSampler, "lot", coins)

    def who_answers(self, units):
        self._own.units = None if units is None else np.array(units)


class Numbered(HandToHand):
    """A post that says whose units answer."""

    def __init__(self, owners, change, keyed, units):
        super().__init__(owners, change)
        self.keyed, self.units = keyed, units

    def send(self, messages):
        for node, said in messages.items():
            self.asked.append((said.words["ask"], node))
            self.keyed.who_answers(self.units[node])
            answer = self.owners[node].answer(said)
            self.keyed.who_answers(None)
            yield from self.change(said.words, node, answer)


def keeping_sums(patch, sums):
    honest = Mechanism._noised

    def noised(mechanism, answer, access):
        sums.append(np.asarray(answer.total).copy())
        return honest(mechanism, answer, access)

    patch.setattr(Mechanism, "_noised", noised)
