"""Digits as devices: MNIST dealt to users by uneven shares of the digits, beside the same plan with all in one place.

    python benchmarks/digits_devices.py mnist.npz OUT METHOD [--epsilon 10] [--each 60] [--set KEY=VALUE] [--way WAY]

A user's shares of the ten digits are drawn from a Dirichlet distribution of 0.5 each, and their images from the
training images without repetition, as long as there are some of a digit. The guarantee is at user level. Federated and
central runs have the same plan, hence the same noise and the same ε. Measured of both: how many of 2,000 test images a
logistic regression names rightly that was fitted to 5,000 synthetic ones, and processor seconds; federated also rounds
and bytes a client, and ε where lots are known. A row of each goes to ``measured/devices.jsonl``. Needs
doublure[federated,torch].
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import doublure as db
from devices import SEED, fitted, keep
from doublure.cli.options import settings

DIGITS, SHARES = 10, 0.5
SYNTHETIC, TESTED = 5_000, 2_000

Arrays = dict[str, np.ndarray[Any, Any]]


def dealt(
    images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], users: int, each: int
) -> list[np.ndarray[Any, Any]]:
    """Return the places of each user's images."""
    draw = np.random.default_rng(SEED)
    left = [draw.permutation(np.flatnonzero(labels == digit)).tolist() for digit in range(DIGITS)]
    found = []
    for _ in range(users):
        shares = draw.dirichlet(np.full(DIGITS, SHARES))
        own: list[int] = []
        while len(own) < each and any(left):
            there = np.array([bool(pile) for pile in left]) * (shares + 1e-9)
            own.append(left[draw.choice(DIGITS, p=there / there.sum())].pop())
        found.append(np.array(own, dtype=np.int64))
    return found


def accuracy(syn: db.Synthesizer, test: Arrays) -> float:
    """Return the share of test images that are named rightly by what synthetic ones teach."""
    made = syn.sample(SYNTHETIC, seed=SEED)
    student = LogisticRegression(max_iter=200).fit(_flat(made.images), np.asarray(made.labels).astype(int))
    return float(student.score(_flat(test["images"][:TESTED]), test["labels"][:TESTED]))


def _flat(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return images.reshape(len(images), -1) / 255.0


def main() -> None:
    """Fit both ways, and keep a row of each."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("data", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("method")
    asked.add_argument("--epsilon", type=float, default=10.0)
    asked.add_argument("--users", type=int, default=1000)
    asked.add_argument("--each", type=int, default=60)
    asked.add_argument("--set", action="append", default=[])
    asked.add_argument("--way", nargs="*", default=["central", "federated"])
    given = asked.parse_args()
    with np.load(given.data) as arrays:
        train = {"images": arrays["x_train"], "labels": arrays["y_train"]}
        test = {"images": arrays["x_test"], "labels": arrays["y_test"]}
    schema = db.Schema.parse(
        f"doublure: 1\nkind: images\nunit: {{name: user, id: user, max_records: {given.each}}}\nunits: {given.users}\n"
        "federated: {max_silos: 1}\nimages: {shape: [28, 28, 1], pictures: drawings}\n"
        f"label: {{values: {list(range(DIGITS))}, roles: [target, condition]}}\n"
    )
    plan = db.plan(schema, method=given.method, epsilon=given.epsilon, delta=1e-4, **settings(given.set))
    clients, whose = given.out / "clients", dealt(train["images"], train["labels"], given.users, given.each)
    clients.mkdir(parents=True)
    for user, own in enumerate(whose):
        np.savez(
            clients / f"{user:04d}.npz", user=np.full(len(own), user), **{key: of[own] for key, of in train.items()}
        )
    together = np.concatenate(whose)
    np.savez(
        given.out / "all.npz",
        user=np.repeat(np.arange(len(whose)), [len(own) for own in whose]),
        **{key: of[together] for key, of in train.items()},
    )
    most = np.mean([np.bincount(train["labels"][own]).max() / len(own) for own in whose])
    epsilon, delta = plan.worst_case or (given.epsilon, 1e-4)
    row = {"data": "mnist", "method": given.method, "epsilon": given.epsilon, "delta": 1e-4, "users": given.users}
    row |= {"each": given.each, "largest_share": round(float(most), 3), "set": given.set}
    for way in given.way:
        room = {"epsilon": 2 * epsilon, "delta": 2 * delta}
        syn, took = fitted(way, clients, given.out / "all.npz", plan, given.out, room)
        keep(row | took | {"accuracy": round(accuracy(syn, test), 4)}, syn, plan)


if __name__ == "__main__":
    main()
