"""Mutate what keeps the promise, edit by edit, and ask the tests whether they notice.

All mutants of the mechanism, the queries and the ledger; of the rest of ``private``, of ``planning`` and of the methods
that touch records, 600 drawn by a fixed seed. Each is written into a copy of the checkout, and the tests that fit its
file run there, the quickest first, until one fails. A test that never comes to its end fails too, and that is
noted. What a mutant is: ``mutants.py``.

    python benchmarks/robustness/mutate.py --hours 2                     # goes on where it stopped
    python benchmarks/robustness/mutate.py --only ledger/ --limit 50
    python benchmarks/robustness/mutate.py --table --survivors           # runs nothing
    python benchmarks/robustness/mutate.py --judge "why no test can tell" ID [ID ...]
    python benchmarks/robustness/mutate.py --record

Each mutant is a line of ``benchmarks/out/mutants.jsonl``. It runs again once its function changed, and a survivor once
its tests changed. Who reads a survivor gives it a test, or a sentence on why it is equivalent: these are kept in
``benchmarks/measured/equivalent_mutants.jsonl``, hold as long as the function is what it was, and spare it from running
again. ``--record`` writes the figures by file to ``benchmarks/measured/mutants.jsonl``.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from mutants import Mutant, mutants, required

HERE = Path(__file__).resolve()
OUT = HERE.parents[1] / "out"
MEASURED = HERE.parents[1] / "measured"
SEED = "which mutants"
TARGET = 0.95
KILLED = ("killed", "timeout")
Row: TypeAlias = dict[str, Any]

_RULES = "tests/pitfalls/test_rule_"
SLOW_TO_IMPORT = (
    "hypothesis", "hypothesis.strategies", "numpy", "pandas", "pyarrow.parquet", "torch", "torch.func",
    "torch.nn.functional", "torch.optim", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "pydantic", "yaml",
    "typer.testing", "jinja2", "safetensors.torch", "PIL.Image", "dp_accounting.pld", "dp_accounting.rdp",
)  # fmt: skip
"""What doublure and its tests import and what takes long."""
METHODS = (
    "methods/bayesgan/training.py", "methods/latentgan/moments.py", "methods/latentgan/training.py",
    "methods/method.py", "methods/noisecritic/label_votes.py", "methods/noisecritic/method.py",
    "methods/statistics/images/mean_embedding.py", "methods/statistics/images/method.py",
    "methods/statistics/series/method.py", "methods/statistics/series/step_counts.py",
    "methods/statistics/tables/noisy_tables.py", "methods/statistics/tables/method.py", "training/checkpoints.py",
    "training/critic_steps.py", "training/gan_loop.py", "training/job.py", "training/noisy_sums.py",
    "training/private_classifier.py",
)  # fmt: skip
"""The methods' files that hold records in their hands, or what was released of them."""
TESTS: dict[str, tuple[str, ...]] = {
    "ledger/": (
        "tests/ledger/test_ledger.py", "tests/ledger/test_[!fp]*.py", "tests/pitfalls/test_ledger_*.py",
        "tests/ledger/test_faults.py", f"{_RULES}11*.py", "tests/ledger/test_processes.py",
    ),
    "private/mechanism.py": (
        "tests/private/test_mechanism.py", "tests/private/test_executed.py", f"{_RULES}02*.py", f"{_RULES}03*.py",
        f"{_RULES}06*.py", f"{_RULES}11*.py", f"{_RULES}08*.py", "tests/pitfalls/test_ledger_lost_steps_count.py",
    ),
    "private/queries/": (
        "tests/private/queries/test_*.py", "tests/private/test_mechanism.py", f"{_RULES}02*.py", f"{_RULES}01*.py",
        f"{_RULES}04*.py", f"{_RULES}05*.py", f"{_RULES}15*.py", f"{_RULES}16*.py", f"{_RULES}17*.py",
    ),
    "private/accounting/": ("tests/private/test_accounting*.py", "tests/test_planning.py", f"{_RULES}06*.py"),
    "private/bayesian/": (
        "tests/private/test_bayesian.py", "tests/pitfalls/test_bayesian_dp.py", "tests/planning/test_bayesian.py",
        f"{_RULES}13*.py",
    ),
    "ledger/account.py": ("tests/ledger/test_account.py", "tests/ledger/test_repeated.py"),
    "private/clipping.py": ("tests/private/test_clipping.py", "tests/private/queries/test_distances.py"),
    "private/codes.py": ("tests/private/test_partitions.py",),
    "private/entropy.py": ("tests/private/test_noise.py",),
    "private/gradients/": (
        "tests/private/gradients/test_exactness.py", "tests/private/gradients/test_sensitivity.py",
        "tests/private/gradients/test_*.py", "tests/private/queries/test_lot_gradients.py", f"{_RULES}04*.py",
        f"{_RULES}05*.py", f"{_RULES}09*.py",
    ),
    "private/owners.py": (
        "tests/pitfalls/test_owners.py", "tests/federated/test_steps.py", "tests/federated/test_silos.py",
    ),
    "private/owner_partitions.py": (
        "tests/private/test_owners.py", f"{_RULES}18*.py", "tests/federated/test_steps.py",
        "tests/federated/test_silos.py",
    ),
    "private/records.py": ("tests/private/test_placed_records.py",),
    "private/row_codes.py": ("tests/test_lots_from_disk.py",),
    "private/": (
        "tests/private/test_*.py", "tests/private/queries/test_*.py", f"{_RULES}0[1-9]*.py", f"{_RULES}1[4-7]*.py",
    ),
    "planning/planner.py": (
        "tests/planning/test_what_a_card_says_of_noise.py", "tests/planning/test_exact_claims.py",
        "tests/planning/test_given_noise.py",
    ),
    "planning/machine.py": ("tests/planning/test_forecast.py", "tests/test_larger_than_memory.py"),
    "planning/signal_to_noise.py": ("tests/planning/test_forecast.py",),
    "planning/": (
        "tests/test_planning.py", "tests/planning/test_*.py", "tests/test_guarantee.py", f"{_RULES}03*.py",
        f"{_RULES}07*.py", f"{_RULES}13*.py",
    ),
    "methods/bayesgan/": ("tests/methods/test_bayesgan.py", "tests/pitfalls/test_bayesian_dp.py"),
    "methods/latentgan/": ("tests/methods/test_latentgan.py", "tests/pitfalls/test_sums_of_images.py"),
    "methods/statistics/images/": ("tests/methods/test_mean_embedding.py", "tests/pitfalls/test_sums_of_images.py"),
    "methods/statistics/series/": ("tests/methods/test_series_statistics.py", "tests/pitfalls/test_series.py"),
    "methods/statistics/tables/": ("tests/methods/test_statistics.py", "tests/methods/test_table_guided.py"),
    "training/checkpoints.py": ("tests/methods/test_series_statistics.py", f"{_RULES}08*.py"),
    "training/gan_loop.py": (
        "tests/methods/test_adversarial.py", "tests/methods/test_critic_pace.py",
        "tests/methods/test_series_settings.py",
    ),
    "training/private_classifier.py": ("tests/methods/test_labelling.py",),
    "training/noisy_sums.py": ("tests/methods/test_mean_embedding.py", "tests/pitfalls/test_sums_of_images.py"),
    "training/critic_steps.py": ("tests/methods/test_dpgan.py", "tests/methods/test_refining.py"),
    "training/": ("tests/methods/test_*.py", f"{_RULES}0[1-9]*.py", "tests/test_fitting.py"),
    "methods/": (
        "tests/methods/test_*.py", "tests/pitfalls/test_sums_of_images.py", "tests/pitfalls/test_series.py",
        f"{_RULES}0[1-9]*.py", f"{_RULES}1[0-7]*.py", "tests/test_fitting.py",
    ),
}  # fmt: skip
"""A file's tests by the beginning of its name: all that fit, the longest first.

The test of its own name comes before them, and so do tests that import it, wherever they are.
"""


@dataclass(frozen=True, kw_only=True)
class Project:
    """What is mutated.

    Attributes:
        root: The checkout.
        package: The package's folder in it.
        everything: Beginnings of the files whose mutants all run.
        sampled: Beginnings of the files from which some are drawn.
        sample: How many.
        tests: The tests of a file.
        imported: What the process imports from which each test run is forked.
        patience: Seconds, and seconds of processor time, that tests of a mutant have beyond several times their own.
        out: Where rows are kept.
        measured: Where judgements and figures are kept.
    """

    root: Path
    package: str = "src/doublure"
    everything: tuple[str, ...] = ("private/mechanism.py", "private/queries/", "ledger/")
    sampled: tuple[str, ...] = ("private/", "planning/", *METHODS)
    sample: int = 600
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: TESTS)
    imported: tuple[str, ...] = SLOW_TO_IMPORT
    patience: tuple[float, float] = (60.0, 10.0)
    out: Path = OUT
    measured: Path = MEASURED

    @property
    def files(self) -> list[str]:
        """The package's files, as they are called in it."""
        folder = self.root / self.package
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))

    def mutants(self) -> list[Mutant]:
        """Return the mutants that are to run, file by file."""
        texts = {file: (self.root / self.package / file).read_text(encoding="utf-8") for file in self.files}
        needed = required(ast.parse(text) for text in texts.values())
        chosen: list[Mutant] = []
        rest: list[Mutant] = []
        for file, text in texts.items():
            if file.startswith(self.everything):
                chosen += mutants(file, text, needed)
            elif file.startswith(self.sampled):
                rest += mutants(file, text, needed)
        rest.sort(key=lambda mutant: hashlib.sha256(f"{SEED}: {mutant.id}".encode()).digest())
        return sorted(chosen + rest[: self.sample], key=lambda mutant: mutant.file)  # a stable sort

    def tests_of(self, file: str) -> list[str]:
        """Return the test files of a file, the most specific first.

        Raises:
            SystemExit: A pattern fits no file.
        """
        folder, _, name = file.rpartition("/")
        own = Path("tests", folder, f"test_{name}").as_posix()
        found = [own] if (self.root / own).is_file() else []
        found += self._importing(file)
        for start in sorted(self.tests, key=len, reverse=True):
            for pattern in self.tests[start] if file.startswith(start) else ():
                fitting = sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))
                if not fitting:
                    raise SystemExit(f"{pattern} fits no file: fix the tests of {start} in {HERE.name}")
                found += fitting
        return list(dict.fromkeys(found))

    def _importing(self, file: str) -> list[str]:
        """Return the test files that import a file by its name."""
        *folders, name = file.removesuffix(".py").split("/")
        package = ".".join([Path(self.package).name, *folders])
        says = re.compile(
            rf"(from|import) {re.escape(package)}\.{name}\b|from {re.escape(package)} import .*\b{name}\b"
        )
        tests = [test for test, lines in _lines_that_import(self.root).items() if says.search(lines)]
        return sorted(tests, key=lambda test: not test.startswith("/".join(["tests", *folders, "test_"])))

    def hash_of(self, tests: Iterable[str]) -> str:
        """Return a hash of test files and of what they share."""
        shared = [*(self.root / "tests").rglob("conftest.py"), *(self.root / "tests/support").glob("*.py")]
        digest = hashlib.sha256()
        for path in [*sorted(self.root / test for test in tests), *sorted(shared)]:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:12]


@cache
def _lines_that_import(root: Path) -> dict[str, str]:
    """Return of each test file the lines that may import something."""
    paths = [path for path in sorted((root / "tests").rglob("test_*.py")) if not _elsewhere(path)]
    lines = ((path, re.findall(".*(?:from|import) .*", path.read_text("utf-8"))) for path in paths)
    return {path.relative_to(root).as_posix(): "\n".join(found) for path, found in lines}


def _elsewhere(test: Path) -> bool:
    """Whether a test file needs an environment of its own, or starts processes of its own for long."""
    return bool({"federated", "on_dask", "end_to_end"} & set(test.parts))


class Rows:
    """What was found, and what was judged: the last line on a mutant counts."""

    def __init__(self, project: Project) -> None:
        self.path = project.out / "mutants.jsonl"
        self.judgements = project.measured / "equivalent_mutants.jsonl"
        self.figures = project.measured / "mutants.jsonl"
        self._rows = {row["id"]: row for row in _lines(self.path)}
        self._judged = {row["id"]: row for row in _lines(self.judgements)}

    def of(self, mutant: Mutant) -> Row | None:
        """Return what was found of a mutant, unless its function has changed."""
        row = self._rows.get(mutant.id)
        return row if row is not None and row["code"] == mutant.code else None

    def is_done(self, mutant: Mutant, tests: str) -> bool:
        """Whether a mutant need not run; a survivor that is not judged runs again once its tests have changed."""
        row = self.of(mutant)
        if row is None or row["verdict"] != "survived":
            return row is not None
        return row["tests"] == tests or self.why(mutant) is not None

    def why(self, mutant: Mutant) -> str | None:
        """Return why a mutant was judged equivalent, unless its function has changed."""
        row = self._judged.get(mutant.id)
        return row["why"] if row is not None and row["code"] == mutant.code else None

    def add(self, row: Row) -> None:
        """Append what was found."""
        self._rows[row["id"]] = row
        _append(self.path, row)

    def judge(self, mutant: Mutant, why: str) -> None:
        """Write why a mutant is equivalent, in place of what was said of it before."""
        row = {"id": mutant.id, "before": mutant.before, "after": mutant.after, "code": mutant.code, "why": why}
        self._judged[mutant.id] = row | {"date": _today()}
        others = [line for line in _lines(self.judgements) if line["id"] != mutant.id]
        _rewrite(self.judgements, [*others, self._judged[mutant.id]])


def _lines(path: Path) -> list[Row]:
    """Return the lines of a file; the last may have been cut short."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def _append(path: Path, row: Row) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(_line(row))


def _rewrite(path: Path, rows: Iterable[Row]) -> None:
    """Replace a file's lines, all at once: who is cut off leaves what was there."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text("".join(map(_line, rows)), encoding="utf-8")
    beside.replace(path)


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


class Copy(AbstractContextManager["Copy"]):
    """A copy of the checkout in which one mutant at a time stands, and tests run."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._usual: dict[str, tuple[float, float]] = {}

    def __enter__(self) -> Copy:
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        self._root = Path(self._folder.name).resolve()
        for path in _tracked(self._project.root):
            target = self._root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._project.root / path, target)
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.kill()
        self._server.communicate()
        self._folder.cleanup()

    def _start(self) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(self._root / "src")}
        self._server = subprocess.Popen(
            [sys.executable, HERE.parent / "pytest_server.py", *self._project.imported],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=self._root,
        )  # fmt: skip

    def learn(self, tests: Iterable[str]) -> list[str]:
        """Run tests on what is right, remember how long they took, and return those that failed."""
        failed = []
        for test in tests:
            found = self._run(test, 1800.0, 1800.0, compiled=True)
            if found["rc"] in (0, 5):  # 5: all of its tests are slow ones
                self._usual[test] = (found["seconds"], found["processor_seconds"])
            else:
                said = (self._root / "log").read_text(errors="replace").strip().splitlines()
                failed.append("\n  ".join([f"{test}: {found['by'] or found['rc']}", *said[-3:]]))
        return failed

    def cheapest_first(self, tests: Iterable[str]) -> list[str]:
        """Return the test files that were learned and passed, by how long they took."""
        return sorted((test for test in tests if test in self._usual), key=lambda test: self._usual[test][1])

    def verdict(self, mutant: Mutant, tests: Sequence[str]) -> Row:
        """Return what the tests say of a mutant.

        Args:
            mutant: Which.
            tests: Their files, in order; all of them were learned.
        """
        path, began = self._root / self._project.package / mutant.file, time.monotonic()
        source = path.read_text(encoding="utf-8")
        written = mutant.written(source)
        row: Row = {"id": mutant.id, "before": mutant.before, "after": mutant.after, "code": mutant.code}
        found, by = "survived", ""
        try:
            compile(written, str(path), "exec", dont_inherit=True)
        except SyntaxError:
            return row | {"verdict": "invalid", "by": "", "seconds": 0.0}
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()
        path.write_text(written, encoding="utf-8")
        try:
            for test in tests:
                (seconds, processor), (more, more_processor) = self._usual[test], self._project.patience
                said = self._run(test, more + 20 * seconds, more_processor + 5 * processor, compiled=False)
                if said["timeout"]:
                    found, by = "timeout", test
                elif said["rc"] not in (0, 5):
                    found, by = "killed", said["by"] or f"{test}: {_REASONS.get(said['rc'], 'crash')}"
                if found != "survived":
                    break
        finally:
            path.write_text(source, encoding="utf-8")
        return row | {"verdict": found, "by": by, "seconds": round(time.monotonic() - began, 2)}

    def _run(self, test: str, seconds: float, processor_seconds: float, *, compiled: bool) -> Row:
        temporary = self._root / "tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        package = Path(self._project.package).name
        request = {"root": str(self._root), "tests": [test], "package": package, "compiled": compiled}
        limits = {"seconds": seconds, "processor_seconds": processor_seconds}
        said: Row = {"rc": -1, "by": "", "timeout": False, "package": "", "seconds": 0.0, "processor_seconds": 0.0}
        for _ in range(2):  # the process that forks may have been ended, by a test or from outside
            answer = self._asked(json.dumps(request | limits))
            if answer:
                said = json.loads(answer)
                break
            self._server.communicate()
            self._start()
        if said["package"] and not Path(said["package"]).is_relative_to(self._root):
            raise RuntimeError(f"the tests ran {said['package']}, not the copy")
        return said

    def _asked(self, request: str) -> str:
        """Return the server's answer, empty if it is gone."""
        if self._server.stdin is None or self._server.stdout is None:
            raise RuntimeError("no pipe")
        try:
            self._server.stdin.write(request + "\n")
            self._server.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._server.stdout.readline()


_REASONS = {2: "not imported", 3: "pytest fell", 4: "not imported"}


def _tracked(root: Path) -> list[str]:
    """Return the files that git knows or would take, and all files where there is no git."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode:
        return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    return [name for name in asked.stdout.split("\0") if name and (root / name).is_file()]


def run(
    project: Project,
    only: Sequence[str],
    *,
    limit: int | None = None,
    hours: float | None = None,
    first: int | None = None,
    without_failing: bool = False,
) -> int:
    """Run what is not done yet, and return how many that were.

    Args:
        project: What is mutated.
        only: Beginnings of files; all files without one.
        limit: At most so many mutants.
        hours: At most so long.
        first: With so many test files alone, the first of each; who survives them runs again with all.
        without_failing: Leave out test files that fail on what is right, where libraries are not those of
            ``constraints.txt``. Who is killed by the others is killed; who survives them runs again elsewhere.

    Raises:
        SystemExit: A test fails on what is right.
    """
    rows, ends = Rows(project), time.monotonic() + 3600 * hours if hours else None
    wanted = [mutant for mutant in project.mutants() if not only or mutant.file.startswith(tuple(only))]
    tests = {file: project.tests_of(file)[:first] for file in dict.fromkeys(mutant.file for mutant in wanted)}
    hashes = {file: project.hash_of(own) for file, own in tests.items()}
    open_ones = [mutant for mutant in wanted if not rows.is_done(mutant, hashes[mutant.file])][:limit]
    if not open_ones:
        return 0
    done, learned = 0, set[str]()
    with Copy(project) as copy:
        for mutant in open_ones:
            if ends is not None and time.monotonic() > ends:
                break
            if mutant.file not in learned:
                before = {test for file in learned for test in tests[file]}
                failed = copy.learn(test for test in tests[mutant.file] if test not in before)
                if failed and not without_failing:
                    raise SystemExit("fails without a mutant:\n" + "\n".join(failed))
                print(*(f"left out: {said}" for said in failed), sep="\n", end="\n" if failed else "")
                tests[mutant.file] = copy.cheapest_first(tests[mutant.file])
                hashes[mutant.file] = project.hash_of(tests[mutant.file])
                learned.add(mutant.file)
            if not tests[mutant.file]:
                continue
            row = copy.verdict(mutant, tests[mutant.file]) | {"tests": hashes[mutant.file]}
            rows.add(row)
            done += 1
            print(f"{row['verdict']:9} {row['seconds']:6.1f} s  {mutant.id}", flush=True)
    return done


def counted(project: Project, only: Sequence[str] = ()) -> list[Row]:
    """Return by file: its mutants, how many ran, were killed (of them by time), survived, and are equivalent."""
    rows, found = Rows(project), defaultdict[str, Row](lambda: dict.fromkeys(_COUNTED, 0))
    for mutant in project.mutants():
        if only and not mutant.file.startswith(tuple(only)):
            continue
        own, row = found[mutant.file], rows.of(mutant)
        own["mutants"] += 1
        if row is None:
            continue
        own["invalid"] += row["verdict"] == "invalid"
        own["killed"] += row["verdict"] in KILLED
        own["by_time"] += row["verdict"] == "timeout"
        if row["verdict"] == "survived":
            own["equivalent" if rows.why(mutant) else "survived"] += 1
    return [{"file": file, **numbers} for file, numbers in sorted(found.items())]


_COUNTED = ("mutants", "killed", "by_time", "survived", "equivalent", "invalid")


def shares(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return which share of the mutants that ran was killed, and which of those that are not equivalent."""
    real = row["killed"] + row["survived"]
    every = real + row["equivalent"]
    return row["killed"] / every if every else None, row["killed"] / real if real else None


def table(rows: Sequence[Row]) -> None:
    """Print the figures by file, and together."""
    print("| file | mutants | killed | by time | equivalent | survived | invalid | killed % | of the others % |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    total = {"file": "**all**"} | {name: sum(row[name] for row in rows) for name in _COUNTED}
    for row in (*rows, total):
        said = ("–" if share is None else f"{100 * share:.1f}" for share in shares(row))
        names = ("mutants", "killed", "by_time", "equivalent", "survived", "invalid")
        print("| " + " | ".join([row["file"], *(str(row[name]) for name in names), *said]) + " |")


def survivors(project: Project, only: Sequence[str] = ()) -> list[Mutant]:
    """Return the mutants that survived and are not judged equivalent."""
    rows, found = Rows(project), []
    for mutant in project.mutants():
        row = rows.of(mutant)
        chosen = not only or mutant.file.startswith(tuple(only))
        if chosen and row is not None and row["verdict"] == "survived" and rows.why(mutant) is None:
            found.append(mutant)
    return found


def judge(project: Project, why: str, ids: Sequence[str]) -> None:
    """Keep why mutants are equivalent.

    Raises:
        SystemExit: There is no such mutant, or it did not survive.
    """
    rows, known = Rows(project), {mutant.id: mutant for mutant in project.mutants()}
    for each in ids:
        row = rows.of(known[each]) if each in known else None
        if row is None or row["verdict"] != "survived":
            raise SystemExit(f"{each} did not survive")
        rows.judge(known[each], why)


def record(project: Project, only: Sequence[str] = ()) -> None:
    """Write the figures of files whose mutants all ran, in place of what was measured of them before."""
    path = Rows(project).figures
    kept = {row["file"]: row for row in _lines(path) if row["file"] in project.files}
    for row in counted(project, only):
        if row["mutants"] == row["killed"] + row["survived"] + row["equivalent"] + row["invalid"]:
            kept[row["file"]] = row | {"date": _today()}
    _rewrite(path, [kept[file] for file in sorted(kept)])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="FILE", help="a file, or the beginning of some")
    parser.add_argument("--limit", type=int, help="run at most so many mutants")
    parser.add_argument("--hours", type=float, help="run at most so long")
    parser.add_argument("--first", type=int, metavar="N", help="of a file's tests, the first few; survivors run again")
    parser.add_argument("--without-failing", action="store_true", help="leave out tests that fail on what is right")
    parser.add_argument("--out", type=Path, default=OUT, help="where rows are kept")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--survivors", action="store_true", help="list what survived, and run nothing")
    parser.add_argument("--judge", nargs="+", metavar=("WHY", "ID"), help="keep why mutants are equivalent")
    parser.add_argument("--record", action="store_true", help="keep the figures of files that are done")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the copy goes, too
    project = Project(root=HERE.parents[2], out=arguments.out)
    if arguments.judge:
        judge(project, arguments.judge[0], arguments.judge[1:])
    elif arguments.record:
        record(project, arguments.only)
    elif not arguments.table and not arguments.survivors:
        wanted = {name: getattr(arguments, name) for name in ("limit", "hours", "first", "without_failing")}
        run(project, arguments.only, **wanted)
    if arguments.survivors:
        for mutant in survivors(project, arguments.only):
            print(f"{mutant.id}\n  - {mutant.before}\n  + {mutant.after}")
    table(counted(project, arguments.only))


if __name__ == "__main__":
    main()
