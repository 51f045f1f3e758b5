"""Plans fitted one after the other, by one process or by two ranks, given equal coins, pairing and noise.

Ranks are forks, numbered as ``torchrun`` does, whose own start is tested elsewhere. What was about to be noised is kept
beside each run, for a test to compare.
"""

from __future__ import annotations

import os
import signal
import socket
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from keyed import Keyed
from killed import ended, started

import doublure as db
from doublure.private.mechanism import Mechanism
from doublure.run import fitting
from doublure.run.fitting import fit
from doublure.run.ranks import FollowerRun, lead_ranks
from doublure.support.ranks import GlooLink


def fit_all(folder: Path, out: Path, patch: pytest.MonkeyPatch, link: GlooLink | None = None) -> None:
    """Fit ``NAME.plan.json`` to ``NAME.data`` for each name, into ``out / NAME``.

    Args:
        folder: Of plans and data.
        out: Of runs, a ledger each, and ``NAME.npz``: the exact sum of each release.
        patch: What undoes the keyed draws.
        link: To the other ranks, if there are any.
    """
    torch.set_num_threads(1)
    keyed, sums = Keyed(), []
    keyed.install(patch)
    honest = Mechanism._noised

    def noised(mechanism: Mechanism, answer: Any, access: Any) -> Any:
        if access.path is None:
            sums.append(np.asarray(answer.total).copy())
        return honest(mechanism, answer, access)

    patch.setattr(Mechanism, "_noised", noised)
    patch.setattr(fitting, "rehearse", lambda plan, *, device: None)  # it would draw coins where one rank alone has any
    for file in sorted(folder.glob("*.plan.json")):
        name = file.name.removesuffix(".plan.json")
        (data,) = (path for path in folder.glob(f"{name}.data*"))
        keyed.begin()
        sums.clear()
        if link is not None and link.rank:
            FollowerRun(link).follow(data)
            assert not keyed.drawn, "a rank that is not the first has drawn noise"
            continue
        out.mkdir(exist_ok=True)
        ledger = db.Ledger.create(out / f"{name}.ledger", dataset=name, epsilon=100.0, delta=0.5)
        given = {"ledger": ledger, "out": out / name, "seed": 1}
        if link is None:
            fit(data, db.Plan.load(file), **given)
        else:
            with lead_ranks(link) as ranks:
                fit(data, db.Plan.load(file), **given, ranks=ranks)
        np.savez(out / f"{name}.npz", *sums)


def fit_on_two(folder: Path, out: Path) -> list[int]:
    """Do so on two ranks over gloo, in children of this process; return their exit codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}

    def run(rank: int) -> None:
        signal.alarm(300)
        os.environ |= place | {"RANK": str(rank)}
        link = GlooLink()
        fit_all(folder, out, pytest.MonkeyPatch(), link)
        link.close()

    return [ended(child) for child in [started(partial(run, rank)) for rank in range(2)]]
