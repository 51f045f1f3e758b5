"""What one private critic step costs: time and memory beside the same step without privacy, vmap and Opacus.

A step takes a lot to an updated critic: gradients, clipping, sum, optimiser. Sampling and noise are left out, as they
are the same for all. Before anything is timed, all ways are shown to compute the same gradient. Contenders run in
turns of a few steps, so that a busy machine slows all of them; ratios are medians over rounds.

    python benchmarks/step.py                    all tables, one thread
    python benchmarks/step.py --threads 2 --case conv --rounds 40
    python benchmarks/step.py --clock cpu        processor time instead of wall time, for a machine with other work

Opacus is compared with where it is installed; it has no gradient penalty, and its ghost clipping takes each use of a
layer for itself, so that it can only be compared on losses of real records alone.
"""

from __future__ import annotations

import copy
import ctypes
import importlib.util
import math
import multiprocessing
import resource
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from command_line import choice, command_line, told
from doublure.private.clipping import clipped_sum
from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs, UnitGradients
from doublure.private.gradients.reference import vectorised
from doublure.private.gradients.terms import UnitMembership
from gpus import finished, named, there

CLIP = 1.0
SAME = 1e-3
TURN = 3
"""Steps in a turn: a trainer, too, makes several steps of the critic before anything else."""

Step = Callable[[RecordPairs], Tensor | None]
"""One step; returns the flat gradient where that costs nothing, for the comparison."""


class Critic(nn.Module):
    """A body that gives one number a record."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return the scores (B,)."""
        return self.body(x).flatten()


def mlp(width: int, hidden: int) -> Critic:
    return Critic(
        nn.Sequential(
            nn.Linear(width, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2),
            nn.Linear(hidden, 1),
        )
    )  # fmt: skip


def conv() -> Critic:
    return Critic(
        nn.Sequential(
            nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Flatten(), nn.Linear(64 * 49, 1),
        )
    )  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A critic, a lot and a loss."""

    name: str
    critic: Callable[[], Critic]
    shape: tuple[int, ...]
    lot: int
    penalty: float = 0.0
    paired: bool = True

    @property
    def loss(self) -> CriticLoss:
        """The critic's loss."""
        return CriticLoss(kind="wgan", gradient_penalty=self.penalty)

    def records(self, device: str = "cpu") -> RecordPairs:
        """Return the lot, the same every time."""
        source = torch.Generator().manual_seed(0)
        real, fake = torch.rand(2, self.lot, *self.shape, generator=source).to(device)
        mix = torch.rand(self.lot, generator=source).to(device)
        return RecordPairs(real=real, fake=fake if self.paired else None, mix=mix)


CASES = {
    "mlp": [
        Case("MLP 120-256-256-1, lot 512, real alone", lambda: mlp(120, 256), (120,), 512, paired=False),
        Case("MLP 120-256-256-1, lot 512", lambda: mlp(120, 256), (120,), 512),
        Case("MLP 120-256-256-1, lot 512, gradient penalty", lambda: mlp(120, 256), (120,), 512, 10.0),
    ],
    "conv": [
        Case("conv 1x28x28 (32, 64), lot 256", conv, (1, 28, 28), 256),
        Case("conv 1x28x28 (32, 64), lot 256, gradient penalty", conv, (1, 28, 28), 256, 10.0),
    ],
    "memory": [
        Case("MLP 120-1024-1024-1, lot 4096", lambda: mlp(120, 1024), (120,), 4096),
        Case("MLP 120-1024-1024-1, lot 4096, gradient penalty", lambda: mlp(120, 1024), (120,), 4096, 10.0),
    ],
}


def _optimiser(critic: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(critic.parameters(), lr=1e-6, fused=True)


def _update(critic: nn.Module, optimiser: torch.optim.Optimizer, flat: Tensor) -> Tensor:
    parameters = list(critic.parameters())
    for parameter, piece in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = piece.view_as(parameter)
    optimiser.step()
    return flat


def apart(critic: Critic, loss: CriticLoss) -> Step:
    """No privacy: real and generated records in two forward passes, as most training scripts do."""
    optimiser = _optimiser(critic)

    def step(records: RecordPairs) -> None:
        optimiser.zero_grad()
        loss.per_record(critic, records).sum().backward()
        optimiser.step()

    return step


def together(critic: Critic, loss: CriticLoss) -> Step:
    """No privacy: real and generated records in one forward pass."""
    optimiser = _optimiser(critic)

    def step(records: RecordPairs) -> None:
        optimiser.zero_grad()
        real, fake = critic(torch.cat([records.real, records.fake])).chunk(2)
        values = loss.on_real(real) + loss.on_fake(fake)
        if loss.gradient_penalty:
            mixed = records.mixed().requires_grad_()
            (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
            values = values + loss.on_slope(slope)
        values.sum().backward()
        optimiser.step()

    return step


def doublure(critic: Critic, loss: CriticLoss, clip: float = CLIP) -> Step:
    """Factor pairs: this package."""
    optimiser, gradients = _optimiser(critic), RecordGradients(critic, loss)

    def step(records: RecordPairs) -> Tensor:
        return _update(critic, optimiser, clipped_sum(gradients.lot(records), max_grad_norm=clip).total)

    return step


def vmapped(critic: Critic, loss: CriticLoss) -> Step:
    """``torch.func.vmap(grad)``, every record's gradient written out."""
    optimiser, parameters = _optimiser(critic), list(critic.parameters())

    def step(records: RecordPairs) -> Tensor:
        terms = vectorised(critic, parameters, loss, records)
        index = torch.arange(len(records), device=records.real.device)
        part = UnitGradients(index, terms, UnitMembership(index, len(index), single=True), parameters)
        norms = torch.stack([term.values.flatten(1).square().sum(1) for term in terms]).sum(0).sqrt()
        return _update(critic, optimiser, part.weighted_sum((CLIP / norms).clamp(max=1)))

    return step


def opacus_hooks(critic: Critic, loss: CriticLoss) -> Step:
    """Opacus's hooks: every record's gradient written out on ``p.grad_sample``."""
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    wrapped = GradSampleModule(critic, loss_reduction="sum")
    optimiser = DPOptimizer(
        _optimiser(critic), noise_multiplier=0.0, max_grad_norm=CLIP, expected_batch_size=1, loss_reduction="sum"
    )

    def step(records: RecordPairs) -> Tensor:
        optimiser.zero_grad()
        loss.per_record(wrapped, records).sum().backward()
        optimiser.step()
        return torch.cat([p.grad.flatten() for p in critic.parameters()])

    return step


def opacus_ghost(critic: Critic, loss: CriticLoss) -> Step:
    """Opacus's ghost clipping: norms in one backward pass, the clipped sum in a second."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    class OnReal:
        reduction = "sum"

        def __call__(self, scores: Tensor, _: object) -> Tensor:
            return loss.on_real(scores)

    wrapped = GradSampleModuleFastGradientClipping(critic, loss_reduction="sum", max_grad_norm=CLIP)
    optimiser = DPOptimizerFastGradientClipping(
        _optimiser(critic), noise_multiplier=0.0, max_grad_norm=CLIP, expected_batch_size=1, loss_reduction="sum"
    )
    total = DPLossFastGradientClipping(wrapped, optimiser, OnReal(), loss_reduction="sum")

    def step(records: RecordPairs) -> Tensor:
        optimiser.zero_grad()
        total(wrapped(records.real, None), None).backward()
        optimiser.step()
        return torch.cat([p.grad.flatten() for p in critic.parameters()])

    return step


def contenders(case: Case, device: str) -> dict[str, Step]:
    """Return every way of making the step, each on its own copy of the critic, on a device."""
    makers: dict[str, Callable[[Critic, CriticLoss], Step]] = {"no privacy": apart, "doublure": doublure}
    if case.paired:
        makers["no privacy, one pass"] = together
    makers["vmap"] = vmapped
    if importlib.util.find_spec("opacus") is not None and not case.penalty:
        makers["Opacus hooks"] = opacus_hooks
        if not case.paired:
            makers["Opacus ghost"] = opacus_ghost
    critic = case.critic().to(device)
    return {name: make(copy.deepcopy(critic), case.loss) for name, make in makers.items()}


def require_equal_work(case: Case, device: str) -> None:
    """Require every private way to give the same clipped sum, and the unclipped sum to be autograd's."""
    records, critic = case.records(device), case.critic().to(device)
    expected = vmapped(copy.deepcopy(critic), case.loss)(records)
    private = {"doublure": doublure}
    if importlib.util.find_spec("opacus") is not None and not case.penalty:
        private["Opacus hooks"] = opacus_hooks
        if not case.paired:
            private["Opacus ghost"] = opacus_ghost
    for name, make in private.items():
        found = make(copy.deepcopy(critic), case.loss)(records)
        difference = float((found - expected).norm() / expected.norm())
        if not difference <= SAME:
            raise SystemExit(f"{case.name}: {name} computes something else (relative difference {difference:.1e})")
    for make in (apart, together) if case.paired else (apart,):
        plain = copy.deepcopy(critic)
        make(plain, case.loss)(records)
        free = torch.cat([p.grad.flatten() for p in plain.parameters()])
        ours = doublure(copy.deepcopy(critic), case.loss, math.inf)(records)
        if not float((free - ours).norm() / free.norm()) <= SAME:
            raise SystemExit(f"{case.name}: the step without privacy computes something else")


def keep_memory() -> None:
    """Have the C library keep what is given back to it, so that no step pays for fresh pages.

    This favours the ways that need much memory: they pay most where it is not so.
    """
    try:
        library = ctypes.CDLL(None)
        never_map, never_trim = library.mallopt(-4, 0), library.mallopt(-1, 2**31 - 1)
    except (OSError, AttributeError):
        never_map = never_trim = 0
    if not (never_map and never_trim):
        print("the C library does not say how it keeps memory; times include fresh pages")


def timed(case: Case, rounds: int, clock: Callable[[], float], device: str) -> None:
    """Print one table."""
    require_equal_work(case, device)
    records, steps = case.records(device), contenders(case, device)
    for step in steps.values():
        step(records)
    finished(device)
    times: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = clock()
            for _ in range(TURN):
                steps[name](records)
            finished(device)
            times[name].append((clock() - start) / TURN)
    base = min(("no privacy", "no privacy, one pass"), key=lambda name: statistics.median(times.get(name, [math.inf])))
    print(f"\n{case.name}, {named(device)}\n\n| way | ms | of the step without privacy |\n|---|---:|---:|")
    for name, each in times.items():
        ratio = statistics.median(one / free for one, free in zip(each, times[base], strict=True))
        print(f"| {name} | {1e3 * statistics.median(each):.2f} | {ratio:.2f} |")


def _resident() -> float:
    """Return the process's resident memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak(case_name: str, way: str, threads: int, results: multiprocessing.Queue) -> None:
    torch.set_num_threads(threads)
    (case,) = (case for case in CASES["memory"] if case.name == case_name)
    make = {"no privacy": together, "doublure": doublure}[way]
    # The libraries' own first-use memory is not the step's: a small critic goes ahead.
    make(mlp(120, 8), case.loss)(case.records().take(slice(0, 2)))
    records = case.records()
    before, seen, done = _resident(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(5e-4):
            seen.append(_resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    step = make(case.critic(), case.loss)
    for _ in range(3):
        step(records)
    done.set()
    watcher.join()
    results.put(max(seen) - before)


def memory(case: Case, threads: int) -> None:
    """Print the peak memory of a critic, its optimiser and three steps, each way in its own process."""
    context = multiprocessing.get_context("spawn")
    peaks = {}
    for way in ("no privacy", "doublure"):
        results = context.Queue()
        process = context.Process(target=_peak, args=(case.name, way, threads, results))
        process.start()
        peaks[way] = results.get()
        process.join()
    print(f"\n{case.name}\n\n| way | peak MiB | of the step without privacy |\n|---|---:|---:|")
    for way, peak in peaks.items():
        print(f"| {way} | {peak:.0f} | {peak / peaks['no privacy']:.2f} |")


def main() -> None:
    options = command_line(
        __doc__.splitlines()[0], case=choice([*CASES, "all"], "all"), threads=1, rounds=30,
        device=told(str, "one alone; left out, the processor, and a GPU where torch has one"),
        clock=choice(["wall", "cpu"], "wall"),
    )  # fmt: skip
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.allow_tf32 = False  # so that all ways compute the same on a GPU, too
    print(f"torch {torch.__version__}, {options.threads} thread(s), {options.clock} time, {options.rounds} rounds")
    if options.case != "memory":
        keep_memory()
    for name in CASES if options.case == "all" else [options.case]:
        for case in CASES[name]:
            if name == "memory":
                memory(case, options.threads)
            else:
                for device in [options.device] if options.device else there():
                    # A processor's time says nothing of a GPU.
                    wall = options.clock == "wall" or device != "cpu"
                    timed(case, options.rounds, time.perf_counter if wall else time.process_time, device)


if __name__ == "__main__":
    main()
