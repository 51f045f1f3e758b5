"""Rows of the five papers at their full width, and of DPImageBench, for a machine with a GPU, in parts of some minutes.

    python benchmarks/gpu_rows.py                                    # which rows are left
    python benchmarks/gpu_rows.py run --minutes 9 --device cuda      # go on for nine minutes, then say what is left
    python benchmarks/gpu_rows.py run --only triastcyn2022

A part ends by a stop signal: a fit of ``images.py`` writes its checkpoint and goes on in the next part; steps that were
lost are paid for. A cell of the other programs starts anew, and one that a part cannot finish is named. Rows go where
each program keeps its own, and the command that makes a row is printed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

from doublure.errors import DoublureError, Interrupted
from doublure.support.devices import use_device
from results import Case, known

_FULL = "channels=[256,128,64] critic_channels=[32,64,128,256]"
"""4,096 numbers behind the generator's first layer (256 of 4 x 4) and four convolutions (2019, §5.2)."""

_PAPERS = "loss=wgan-gp n_critic=5 activation=selu critic_lr=1e-4 generator_lr=1e-4 steps=30000"
"""2019's rates without its layer."""


class Row(NamedTuple):
    """A row of ``docs/evidence/papers.md``: the paper's preset, and the program's command."""

    paper: str
    command: str

    @property
    def program(self) -> str:
        """The benchmark's module."""
        return self.command.split()[0]


def _images(data: str, method: str, settings: str, more: str = "") -> str:
    return f"images run --data {data} --method {method} --seeds 0 1 2 --students cnn logistic {more} --set {settings}"


ROWS = (
    Row("triastcyn2018", _images("mnist", "noisecritic", f"recipe=paper-2018 {_FULL}")),
    Row("triastcyn2018", _images("svhn", "noisecritic", f"recipe=paper-2018 {_FULL}")),
    Row("triastcyn2019", _images("mnist", "noisecritic", f"recipe=paper {_FULL}", "--expected-loss pixels")),
    Row("triastcyn2019", _images("mnist", "gan", f"{_PAPERS} {_FULL}")),
    Row("triastcyn2019", _images("svhn", "noisecritic", f"recipe=paper {_FULL}")),
    Row("triastcyn2019", _images("celeba", "noisecritic", f"recipe=paper {_FULL}")),
    Row("frigerio2019", "series run --method dpgan --data daiad london --unit day --seeds 0 1 2 "
        '--settings {"generator_type":"lstm","critic_type":"mlp","lstm_units":256,"critic_width":512}'),
    *(Row("chen2021", f"latent run --task {task} --protocol paper --method dpmi dpmi-free dpgan gan --epsilon 1 10 50 "
          "--seeds 0 1 2") for task in ("mnist-odd-even", "emnist-mnist", "cifar10", "svhn")),
    Row("triastcyn2022", _images("mnist", "bayesgan", "recipe=paper", "--epsilon 1")),
    Row("triastcyn2022", _images("fashion-mnist", "bayesgan", "recipe=paper-fashion", "--epsilon 1")),
    *(Row("dpimagebench",
          f"dpimagebench run --folder dataset/{data} --epsilon 1 10 --seeds 0 1 2 --pictures {pictures}")
      for data, pictures in (("mnist", "drawings"), ("fmnist", "photographs"))),
)  # fmt: skip
"""In the order in which they are made; 400 epochs of 2022's rows are 375,000 steps."""


class Left(NamedTuple):
    """A row, and those of its cells that are not kept yet; None where its data is not at hand."""

    row: Row
    cells: list[Any] | None


@contextmanager
def _asked(row: Row, measure: Callable[..., None] | None = None) -> Iterator[Any]:
    """Let a program's ``main`` read the row's command, and measure in this way."""
    module = importlib.import_module(row.program)
    words, honest = sys.argv, module.measure
    sys.argv = [f"{row.program}.py", *_words(row)]
    if measure is not None:
        module.measure = measure  # type: ignore[attr-defined]
    try:
        yield module
    finally:
        sys.argv, module.measure = words, honest  # type: ignore[attr-defined]


def _words(row: Row) -> list[str]:
    """Return the arguments; JSON stays as it is."""
    return [word for word in row.command.split() if word][1:]


def left(row: Row) -> Left:
    """Return what is left of a row, without making anything."""
    found: list[Any] = []

    def look(name: str, cases: Iterable[Case], *_: object) -> None:
        found.extend(key for key, _ in cases if not known(name, key))

    try:
        with _asked(row, look) as module:
            module.main()
    except SystemExit:  # the data is not at hand
        return Left(row, None)
    return Left(row, found)


@contextmanager
def _for(seconds: float) -> Iterator[None]:
    """Stop what runs after so many seconds, as a user would."""

    def stop(number: int, frame: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def go_on(rows: Sequence[Row], seconds: float) -> None:
    """Make what is left, row by row, until the time is over."""
    end = time.monotonic() + seconds
    for row in rows:
        if not left(row).cells:
            continue
        remaining = end - time.monotonic()
        if remaining <= 0:
            return
        print(f"python benchmarks/{row.program}.py {shlex.join(_words(row))}", flush=True)
        begun = time.monotonic()
        before = len(left(row).cells or ())
        try:
            with _for(remaining), _asked(row) as module:
                module.main()
        except (KeyboardInterrupt, Interrupted):
            whole = time.monotonic() - begun > 0.95 * seconds
            if whole and row.program != "images" and len(left(row).cells or ()) == before:
                print(
                    f"{row.paper}: no cell of this row ends within {seconds / 60:g} minutes; give it more", flush=True
                )
            return
        except (DoublureError, SystemExit) as error:
            print(f"{row.paper}: {error}", flush=True)


def say_what_is_left(rows: Sequence[Row]) -> int:
    """Print a line for each row, and return the number of cells that can be made here."""
    total = 0
    for row, cells in map(left, rows):
        said = "its data is not at hand" if cells is None else f"{len(cells)} left" if cells else "done"
        total += len(cells or ())
        print(f"{row.paper:<14} {said:<24} {row.command}")
    print(f"{total} cells are left")
    return total


def main(line: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", nargs="?", choices=["left", "run"], default="left")
    parser.add_argument("--only", nargs="+", choices=sorted({row.paper for row in ROWS}))
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args(line)
    rows = [row for row in ROWS if not options.only or row.paper in options.only]
    if options.verb == "run":
        use_device(options.device)
        go_on(rows, 60 * options.minutes)
    say_what_is_left(rows)


if __name__ == "__main__":
    main()
