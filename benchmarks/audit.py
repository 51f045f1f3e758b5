"""The trainer's audit at length: how tight it is on the production mechanism, and which faults it catches.

The production mechanism is attacked at ε = 4, full batches, 5,000 runs a world; then again with one fault at a time
patched into it. What is honest should never be accused; each fault should be, every time. The mechanism writes down
what it does and would end where that shows, so that each fault misleads it or puts its check to sleep.

    python benchmarks/audit.py                 # about twenty minutes on one core; resumable
    python benchmarks/audit.py --table
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch

from command_line import command_line
from doublure.auditing.trainer import audit_trainer
from doublure.private import clipping
from doublure.private.critic_steps import CriticSteps
from doublure.private.executed import Executed
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries import lot_gradients
from results import add, finished, known


def half_the_noise() -> AbstractContextManager[Any]:
    honest = OsKeyedNoise.normal

    def misleading(self: OsKeyedNoise, size: int, std: float) -> ScaledNoise:
        return honest(self, size, std / 2)._replace(scale=std)

    return patch.object(OsKeyedNoise, "normal", misleading)


def twice_the_clip() -> AbstractContextManager[Any]:
    honest = clipping.clipped_sum

    def misleading(
        lot: clipping.GradientLot, *, max_grad_norm: float, per_batch: float | None = None
    ) -> clipping.ClippedSum:
        found = honest(lot, max_grad_norm=2 * max_grad_norm, per_batch=per_batch)
        return replace(found, sensitivity=max_grad_norm)

    return patch.object(lot_gradients, "clipped_sum", misleading)


def no_clip() -> AbstractContextManager[Any]:
    return patch.object(clipping, "clip_factors", lambda norms, bound: torch.ones_like(norms))


@contextmanager
def one_step_counted_of_five() -> Iterator[None]:
    """A mechanism whose n_critic = 5 steps are counted as one."""
    honest = CriticSteps.gradient
    calls = {"made": 0}

    def uncounted(self: CriticSteps, *arguments: Any) -> torch.Tensor:
        before = self.taken
        gradient = honest(self, *arguments)
        calls["made"] += 1
        self._mechanism._taken[self._access] = before + (calls["made"] % 5 == 0)
        return gradient

    asleep = patch.object(Executed, "note", lambda *_: None)
    with asleep, patch.object(CriticSteps, "gradient", uncounted):
        yield


CASES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "production": nullcontext,
    "noise halved": half_the_noise,
    "C doubled": twice_the_clip,
    "clip skipped": no_clip,
    "n_critic = 5 counted as 1": one_step_counted_of_five,
}


def run(repeats: int, runs: int) -> None:
    """Make the audits that are missing."""
    torch.set_num_threads(1)
    for repeat in range(repeats):
        for case, fault in CASES.items():
            if known("audit", {"case": case, "repeat": repeat, "runs": runs}):
                continue
            start = time.perf_counter()
            with fault():
                found = audit_trainer(epsilon=4.0, delta=1e-5, sample_rate=1.0, iterations=1, runs=runs)
            own = {"case": case, "repeat": repeat, **found.to_json(), "seconds": time.perf_counter() - start}
            add("audit", own)
            print(f"{case}: ε ≥ {found.gaussian_lower_bound:.2f}, violated {found.violated}", flush=True)


def table() -> None:
    """Print the medians."""
    print("| mechanism | audits | runs a side | Clopper–Pearson ε ≥ | Gaussian ε ≥ | accused |")
    print("|---|--:|--:|--:|--:|--:|")
    for case in CASES:
        rows = [r for r in finished("audit") if r["case"] == case]
        if rows:
            bounds = [statistics.median(r[key] for r in rows) for key in ("lower_bound", "gaussian_lower_bound")]
            accused = f"{sum(r['violated'] for r in rows)} of {len(rows)}"
            print(f"| {case} | {len(rows)} | {rows[0]['runs']} | {bounds[0]:.2f} | {bounds[1]:.2f} | {accused} |")


def main() -> None:
    """Read the command line."""
    arguments = command_line(__doc__, repeats=9, runs=5000, table=False)
    if not arguments.table:
        run(arguments.repeats, arguments.runs)
    table()


if __name__ == "__main__":
    main()
