"""Coverage of the intervals that noisy tables give for shares, means and logistic coefficients; naive ones beside.

A table is the population. Its rows are drawn with replacement, fitted and asked again and again; an interval holds if
the population's own figure lies in it. Figures that the noise leaves open (intervals of all numbers) are counted apart.

    python benchmarks/inference.py run [--tables adult mushroom credit lines] [--repeats 50]
    python benchmarks/inference.py syntheses [--tables adult mushroom credit telco] [--repeats 25]
    python benchmarks/inference.py slopes [--tables adult credit] [--repeats 25]
    python benchmarks/inference.py table
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import doublure as db
from command_line import command_line, some
from doublure.evaluate import inference
from results import by_cell, finished, measure

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
EPSILON, DELTA = 1.0, 1e-6
NO_PENALTY = 1e9
KINDS = ("shares", "mean", "logistic")
OF_SYNTHESES = ("within", "listed")
"""From syntheses: shares of the target's value within groups, and a logistic regression on several listed columns."""
OF_PAIRS = ("slopes",)
"""From tables of pairs: a logistic regression on two numbers that go together, which the plan names in ``focus``."""
LEAST_SHARE = 0.05
SYNTHESES, MOST = 10, 3


class Task(NamedTuple):
    """A population and what is asked of it."""

    frame: pd.DataFrame
    columns: dict[str, dict[str, Any]]
    rows: int
    shares: str
    means: tuple[str, ...]
    target: str
    value: str
    on: tuple[str, ...]


def listed(frame: pd.DataFrame, *names: str) -> dict[str, dict[str, Any]]:
    """Return what is declared of columns with few values, which the population makes public."""
    return {name: {"type": "category", "values": sorted(frame[name].unique().tolist())} for name in names}


def adult() -> Task:
    """Return the census's rows without missing cells."""
    frame = pd.DataFrame(db.datasets.load("adult"))
    names = ["age", "hours-per-week", "relationship", "sex", "race", "income"]
    frame = frame[names].astype({name: str for name in names[2:]})
    columns = listed(frame, *names[2:])
    columns |= {
        "age": {"type": "integer", "bounds": [17, 90]},
        "hours-per-week": {"type": "integer", "bounds": [1, 99]},
    }
    return Task(
        frame, columns, 4000, "relationship", ("age", "hours-per-week"), "income", ">50K", ("age", "sex", "race")
    )


def mushroom() -> Task:
    """Return six of the features of mushrooms."""
    frame = pd.read_csv(SHARED / "mushroom.csv.gz", keep_default_na=False, dtype=str)
    names = [str(name) for name in frame.columns]
    target = next(name for name in names if set(frame[name]) in ({"e", "p"}, {"edible", "poisonous"}))
    few = [name for name in names if 2 <= frame[name].nunique() <= 9 and name != target][:6]
    frame = frame[[*few, target]]
    return Task(frame, listed(frame, *few, target), 2000, few[0], (), target, sorted(frame[target].unique())[1],
                tuple(few[:3]))  # fmt: skip


def credit() -> Task:
    """Return clients of a bank, and whether they paid."""
    frame = pd.read_csv(SHARED / "credit_default.csv.gz")
    frame = frame.rename(columns={"default.payment.next.month": "default"})
    frame = frame[["LIMIT_BAL", "AGE", "SEX", "EDUCATION", "MARRIAGE", "default"]]
    frame = frame.astype({name: str for name in ("SEX", "EDUCATION", "MARRIAGE", "default")})
    columns = listed(frame, "SEX", "EDUCATION", "MARRIAGE", "default")
    columns |= {
        "LIMIT_BAL": {"type": "integer", "bounds": [0, 1_000_000]},
        "AGE": {"type": "integer", "bounds": [18, 100]},
    }
    return Task(frame, columns, 4000, "EDUCATION", ("AGE", "LIMIT_BAL"), "default", "1", ("AGE", "LIMIT_BAL", "SEX"))


def telco() -> Task:
    """Return clients of a telephone company, and whether they left."""
    frame = pd.read_csv(SHARED / "telco" / "telco.csv.gz", keep_default_na=False, dtype=str)
    names = ["tenure", "Contract", "InternetService", "PaymentMethod", "SeniorCitizen", "Churn"]
    frame = frame[names].astype({"tenure": int})
    columns = listed(frame, *names[1:]) | {"tenure": {"type": "integer", "bounds": [0, 72]}}
    return Task(
        frame, columns, 3000, "PaymentMethod", ("tenure",), "Churn", "Yes", ("tenure", "Contract", "InternetService")
    )


def lines() -> Task:
    """Return made-up rows whose target follows from two of the columns."""
    draw = np.random.default_rng(0)
    x, group = draw.normal(50, 15, 50_000).round().clip(0, 100).astype(int), draw.choice(["a", "b", "c"], 50_000)
    odds = (x - 50) / 15 + np.where(group == "a", 1.0, -0.5)
    yes = np.where(draw.random(50_000) < 1 / (1 + np.exp(-odds)), "yes", "no")
    frame = pd.DataFrame({"x": x, "other": draw.poisson(4, 50_000).clip(0, 30), "group": group, "yes": yes})
    columns = listed(frame, "group", "yes")
    columns |= {"x": {"type": "integer", "bounds": [0, 100]}, "other": {"type": "integer", "bounds": [0, 30]}}
    return Task(frame, columns, 2000, "group", ("x", "other"), "yes", "yes", ("x", "group"))


TASKS: dict[str, Callable[[], Task]] = {
    "adult": cache(adult), "mushroom": cache(mushroom), "credit": cache(credit), "lines": cache(lines),
    "telco": cache(telco),
}  # fmt: skip


def asked(task: Task, syn: db.Synthesizer) -> Iterator[tuple[str, inference.IntervalEstimate, float]]:
    """Yield each estimate with its kind and the population's own figure."""
    frame = task.frame
    for each in inference.shares(syn, task.shares):
        values = each.name.split(" = ")[1].split(" | ")
        yield "shares", each, float(frame[task.shares].isin(values).mean())
    for name in task.means:
        yield "mean", inference.mean(syn, name), float(frame[name].mean())
    for name in task.on:
        found = inference.logistic(syn, task.target, task.value, [name])
        numeric = name in task.means
        reference = found[0].name.partition(" = ")[2]
        for each in found[1:]:
            level = each.name.partition(" = ")[2]
            yield "logistic", each, slope(task, name) if numeric else contrast(task, name, level, reference)


@cache
def _slope(table: str, name: str) -> float:
    task = TASKS[table]()
    x = task.frame[[name]].to_numpy(dtype=float)
    model = LogisticRegression(C=NO_PENALTY, max_iter=2000).fit(
        (x - x.mean()) / x.std(), task.frame[task.target] == task.value
    )
    return float(model.coef_[0, 0] / x.std())


def slope(task: Task, name: str) -> float:
    """Return the population's coefficient of a number."""
    return _slope(next(table for table, made in TASKS.items() if made() is task), name)


def contrast(task: Task, name: str, level: str, reference: str) -> float:
    """Return the population's difference in log-odds between two cells of a column."""
    odds = []
    for cell in (level, reference):
        share = float((task.frame[task.target] == task.value)[task.frame[name].isin(cell.split(" | "))].mean())
        odds.append(math.log(share / (1 - share)) if 0 < share < 1 else math.copysign(math.inf, share - 0.5))
    return odds[0] - odds[1]


@contextmanager
def fitted(table: str, repeat: int, focus: tuple[str, ...] = ()) -> Iterator[tuple[Task, db.Synthesizer]]:
    """Yield a population, and the fit of one sample of it, with some columns and pairs in focus."""
    task = TASKS[table]()
    rows = task.frame.sample(task.rows, replace=True, random_state=repeat).reset_index(drop=True)
    columns = {name: {**task.columns[name], "missing": False} for name in map(str, task.frame)}
    columns[task.target]["roles"] = ["target"]
    schema = db.Schema.from_plain({"doublure": 1, "kind": "table", "units": task.rows, "columns": columns})
    plan = db.plan(schema, method="statistics", epsilon=EPSILON, delta=DELTA, **({"focus": focus} if focus else {}))
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="inference", epsilon=10.0, delta=0.1)
        yield task, db.fit(rows, plan, ledger=ledger, out=Path(folder) / "run", seed=repeat, threads=1)


def one_cell(table: str, repeat: int) -> dict[str, Any]:
    """Fit one sample of a population, and count which intervals hold its figures."""
    began = time.process_time()
    with fitted(table, repeat) as (task, syn):
        return {**counted(asked(task, syn), KINDS), "seconds": round(time.process_time() - began, 1)}


def counted(
    estimates: Iterable[tuple[str, inference.IntervalEstimate, float]], kinds: tuple[str, ...]
) -> dict[str, Any]:
    """Return for each kind how many intervals there are, how many hold, naively and not, and how wide they are."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    wider: dict[str, list[float]] = {kind: [] for kind in kinds}
    for kind, each, true in estimates:
        if not math.isfinite(each.high) or not math.isfinite(true):
            found[kind]["open"] += 1
            continue
        found[kind]["intervals"] += 1
        found[kind]["hold"] += each.low <= true <= each.high
        found[kind]["naive"] += each.naive[0] <= true <= each.naive[1]
        wider[kind].append((each.high - each.low) / max(1e-12, each.naive[1] - each.naive[0]))
    return {
        kind: {**own, "wider": round(float(np.median(wider[kind])), 2)} for kind, own in found.items() if wider[kind]
    }


def within(task: Task, rows: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return the share of the target's value within each large group, and its variance."""
    yes, found = rows[task.target].astype(str) == task.value, {}
    for value, share in task.frame[task.shares].value_counts(normalize=True).items():
        own = yes[rows[task.shares].astype(str) == value]
        if share >= LEAST_SHARE:
            mean = float(own.mean()) if len(own) else math.nan
            found[str(value)] = (mean, mean * (1 - mean) / max(1, len(own)))
    return found


def several(task: Task, found: tuple[inference.IntervalEstimate, ...]) -> dict[str, float]:
    """Return the population's coefficients of a regression on the levels that an estimate has found."""
    names = {each.name: each for each in found[1:]}
    reference = dict(part.split(" = ") for part in found[0].name.split(", ")[1:])
    design, keep = {}, np.ones(len(task.frame), dtype=bool)
    for name, each in names.items():
        column, _, level = name.partition(" = ")
        here = task.frame[column].isin(level.split(" | ")) if level else task.frame[column]
        if math.isfinite(each.value):
            design[name] = here.to_numpy(dtype=float)
        elif level:
            keep &= ~here.to_numpy()
    for column, levels in reference.items():
        keep &= task.frame[column].isin(
            [part for name in [f"{column} = {levels}", *design] if name.startswith(f"{column} = ")
             for part in name.partition(" = ")[2].split(" | ")]
        ).to_numpy()  # fmt: skip
    x = np.stack([*design.values()], axis=1)[keep]
    scale = np.maximum(x.std(0), 1e-12)
    y = (task.frame[task.target] == task.value)[keep]
    model = LogisticRegression(C=NO_PENALTY, max_iter=5000).fit((x - x.mean(0)) / scale, y)
    return dict(zip(design, (model.coef_[0] / scale).tolist(), strict=True))


def counted_with(task: Task, syn: db.Synthesizer) -> list[str]:
    """Return three listed columns, or fewer, that were counted in pairs with one another and with the target."""
    together, found = [set(table.columns) for table in syn.tables], list[str]()
    for name in dict.fromkeys([*task.on, *task.columns]):
        pairs = [{name, other} for other in (*found, task.target)]
        if name in (task.target, *task.means) or len(found) == MOST:
            continue
        if all(any(pair <= own for own in together) for pair in pairs):
            found.append(name)
    return found


def asked_of_syntheses(task: Task, syn: db.Synthesizer) -> Iterator[tuple[str, inference.IntervalEstimate, float]]:
    """Yield each estimate from syntheses with its kind and the population's own figure; none where it is refused."""
    true = within(task, task.frame)
    drawn = syn.sample(syntheses=SYNTHESES, seed=0)
    try:
        columns = [task.shares, task.target]
        for each in inference.estimate(syn, lambda rows: within(task, rows), columns, syntheses=drawn):
            yield "within", each, true[each.name][0]
    except db.errors.SettingError:
        pass
    try:
        found = inference.logistic(syn, task.target, task.value, counted_with(task, syn), syntheses=drawn)
    except db.errors.SettingError:
        return
    coefficients = several(task, found) if any(math.isfinite(each.value) for each in found[1:]) else {}
    for each in found[1:]:
        yield "listed", each, coefficients.get(each.name, math.nan)


def of_pairs(table: str, repeat: int, _: str) -> dict[str, Any]:
    """Fit one sample with two numbers in focus, and count which intervals of their slopes hold."""
    began, numbers = time.process_time(), TASKS[table]().means

    def slopes(task: Task, syn: db.Synthesizer) -> Iterator[tuple[str, inference.IntervalEstimate, float]]:
        found = inference.logistic(syn, task.target, task.value, numbers)
        for each in found[1:]:
            yield "slopes", each, coefficients(table)[each.name]

    with fitted(table, repeat, (*numbers, " & ".join(numbers))) as (task, syn):
        found = counted(slopes(task, syn), OF_PAIRS)
    return {**found, "seconds": round(time.process_time() - began, 1)}


@cache
def coefficients(table: str) -> dict[str, float]:
    """Return the population's coefficients of a regression on all numbers."""
    task = TASKS[table]()
    x = task.frame[list(task.means)].to_numpy(dtype=float)
    model = LogisticRegression(C=NO_PENALTY, max_iter=2000).fit(
        (x - x.mean(0)) / x.std(0), task.frame[task.target] == task.value
    )
    return dict(zip(task.means, (model.coef_[0] / x.std(0)).tolist(), strict=True))


def of_syntheses(table: str, repeat: int, _: str) -> dict[str, Any]:
    """Fit one sample, and count which intervals from syntheses hold."""
    began = time.process_time()
    with fitted(table, repeat) as (task, syn):
        found = counted(asked_of_syntheses(task, syn), OF_SYNTHESES)
    return {**found, "seconds": round(time.process_time() - began, 1)}


def rows() -> Iterator[str]:
    """Yield the table of coverage, a line a table and kind."""
    yield "| table | kind | fits | intervals | hold | naive hold | wider than naive | left open |"
    yield "|---|---|---|---|---|---|---|---|"
    for table in TASKS:
        own = [row for row in finished("inference") if row["cell"][0] == table]
        for kind in (*KINDS, *OF_PAIRS, *OF_SYNTHESES):
            cells = [row[kind] for row in own if kind in row]
            total = sum(cell["intervals"] for cell in cells)
            if total:
                held, naive = (sum(cell.get(key, 0) for cell in cells) / total for key in ("hold", "naive"))
                wider = float(np.median([cell["wider"] for cell in cells]))
                left = sum(cell.get("open", 0) for cell in cells)
                yield f"| {table} | {kind} | {len(cells)} | {total} | {held:.3f} | {naive:.3f} | {wider:.1f} | {left} |"


def main() -> None:
    """Read the command line and measure, or print."""
    own = command_line(__doc__, ["run", "syntheses", "slopes", "table"], tables=some(TASKS), repeats=50)
    if own.verb == "syntheses":
        several_cells = [(table, repeat, "listed") for repeat in range(own.repeats) for table in own.tables]
        measure("inference", by_cell(several_cells, of_syntheses))
        return
    if own.verb == "slopes":
        of_two = [(table, repeat, "slopes") for repeat in range(own.repeats) for table in own.tables]
        measure("inference", by_cell(of_two, of_pairs))
        return
    if own.verb == "run":
        cells = [(table, repeat) for repeat in range(own.repeats) for table in own.tables]
        measure("inference", by_cell(cells, one_cell))
        return
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
