"""Whether faults of a table's or of series' pipeline are found from private samples alone, each planted before a fit.

    python benchmarks/inspection_of_records.py run --data adult daiad --epsilon 1 --right 6
    python benchmarks/inspection_of_records.py table

Fits of ``statistics``: ``--right`` of them on the records as they are, each with a noise of its own, and one for each
fault, which a quarter of the records have (of the lost class: all). Each is inspected against the right ones, and
each right one against the others, which says whether something is found where nothing is wrong. A fault is found if
its own sign stands out. Nothing but synthetic records is looked at. Resumable: a fit is made again where its cell is
not measured yet.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import doublure as db
import series
from command_line import command_line, some
from doublure.evaluate import inspect
from doublure.results import percent
from peers import tasks
from results import Case, finished, measure

DELTA, SHARE = 1e-5, 0.25
Which = np.ndarray[Any, np.dtype[np.bool_]]
Fault = Callable[[Any, Which], Any]

# -- what is planted ---------------------------------------------------------------------------------------------------


def _scaled(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    """Hours a week as hours a working day."""
    frame.loc[which, "hours-per-week"] = (frame.loc[which, "hours-per-week"] / 5).round()
    return frame


def _exchanged(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    pair = ["age", "hours-per-week"]
    frame.loc[which, pair] = frame.loc[which, pair[::-1]].to_numpy()
    return frame


def _constant(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    frame.loc[which, "age"] = 17
    return frame


def _copied(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    frame.loc[which] = frame.iloc[[0] * int(which.sum())].set_axis(frame.index[which])
    return frame


def _twice(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    """Each of a quarter of the rows stands where another should: copies of different rows."""
    frame.loc[which] = frame.loc[~which].iloc[: int(which.sum())].set_axis(frame.index[which])
    return frame


def _mislabelled(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    frame.loc[which, "income"] = np.where(frame.loc[which, "income"] == ">50K", "<=50K", ">50K")
    return frame


def _torn(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    """Ages of other rows, of all that are marked."""
    moved = np.random.default_rng(3).permutation(frame.loc[which, "age"].to_numpy())
    frame.loc[which, "age"] = moved
    return frame


def _lost(frame: pd.DataFrame, which: Which) -> pd.DataFrame:
    """No woman is left: an unseen value."""
    del which
    frame.loc[frame["sex"] == "Female", "sex"] = "Male"
    return frame


def _series(change: Callable[[Any], Any]) -> Fault:
    def fault(content: Any, which: Which) -> Any:
        values = content.values.copy()
        values[which] = change(values[which])
        return replace(content, values=values)

    return fault


FAULTS: dict[str, dict[str, tuple[Fault, str]]] = {
    "adult": {
        "hours by the day": (_scaled, "below_hours-per-week"),
        "age and hours exchanged": (_exchanged, "exchanged_age_hours-per-week"),
        "one age": (_constant, "constant_age"),
        "one row": (_copied, "alike"),
        "rows twice": (_twice, "alike"),
        "wrong income": (_mislabelled, "label_income"),
        "ages of other rows": (_torn, "torn"),
        "no women": (_lost, "rare_sex_"),
    },
    "daiad": {
        "clock four hours late": (_series(lambda values: np.roll(values, 4, axis=1)), "shifted_"),
        "a tenth of the unit": (_series(lambda values: values / 10), "below_"),
        "a still meter": (_series(np.zeros_like), "constant_"),
        "one day": (_series(lambda values: np.repeat(values[:1], len(values), 0)), "alike"),
    },
}

# -- fits and looks ----------------------------------------------------------------------------------------------------


@cache
def _data(name: str) -> tuple[Any, Any]:
    """Return the schema and the private records."""
    if name == "adult":
        task = tasks.load(name)
        return task.schema, task.train
    own = series.split(name, "day", tune=False)
    return own.schema, own


def fitted(name: str, epsilon: float, fault: Fault | None, seed: int) -> db.Synthesizer:
    """Plant a fault and fit."""
    schema, records = _data(name)
    if fault is not None:
        content = records.copy() if isinstance(records, pd.DataFrame) else records.train
        content = fault(content, np.random.default_rng([seed, 1]).random(len(content)) < SHARE)
        records = content if isinstance(records, pd.DataFrame) else replace(records, train=content)
    plan = db.plan(schema, method="statistics", epsilon=epsilon, delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset=name, epsilon=100.0, delta=0.01)
        opened = records if isinstance(records, pd.DataFrame) else series.given(records)
        return db.fit(opened, plan, ledger=ledger, seed=seed, threads=1)


def one(options: argparse.Namespace, name: str, fault: str | None, right: Callable[[], list[db.Synthesizer]]) -> Any:
    """Fit with a fault, or without, and inspect."""
    start = time.process_time()
    if fault is None:
        return _flagged(options, right(), start)
    planted, key = FAULTS[name][fault]
    broken = fitted(name, options.epsilon, planted, 100 + options.seed)
    found = inspect(broken, right(), images=options.looked_at, seed=options.seed)
    own = [entry for entry in found.fault_tests if entry.key.startswith(key)]
    best = min(own, key=lambda entry: (not entry.found, 1.0 if entry.p is None else entry.p))
    return {
        "sign": key,
        "found": best.found,
        "share": best.share,
        "reference": best.reference,
        "usual": best.usual,
        "p": best.p,
        "stands_out": [entry.key for entry in found.found],
        "signs": len(found.fault_tests),
        "cpu_seconds": round(time.process_time() - start),
    }


def _flagged(options: argparse.Namespace, right: list[db.Synthesizer], start: float) -> dict[str, Any]:
    """Hold each correct fit against all others."""
    each = [
        inspect(one, [other for other in right if other is not one], images=options.looked_at, seed=options.seed)
        for one in right
    ]
    return {
        "correct_fits": len(each),
        "flagged": sum(bool(found.found) for found in each),
        "stands_out": [[entry.key for entry in found.found] for found in each],
        "cpu_seconds": round(time.process_time() - start),
    }


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield nothing wrong, and each fault."""
    for name in options.data:

        @cache
        def right(name: str = name) -> list[db.Synthesizer]:
            return [fitted(name, options.epsilon, None, options.seed + place) for place in range(options.right)]

        for fault in (None, *FAULTS[name]):
            cell = (name, "statistics", options.epsilon, options.seed, options.right, options.looked_at, fault)
            yield {"cell": cell}, partial(one, options, name, fault, right)


def table() -> None:
    """Print the results as Markdown."""
    heads = [
        "data",
        "ε",
        "planted in a quarter",
        "its sign",
        "inspected",
        "worst of the right",
        "found beyond",
        "found",
        "all",
    ]
    print("|", " | ".join(heads), "|")
    print("|---|--:|---|---|--:|--:|--:|---|---|")
    for row in finished("inspection_of_records"):
        name, _, epsilon, *_, fault = row["cell"]
        if fault is None:
            print(f"| {name} | {epsilon:g} | nothing | {row['flagged']} of {row['correct_fits']} flagged | | | | | |")
            continue
        shares = [percent(row.get(key)) for key in ("share", "reference", "usual")]
        out = ", ".join(row["stands_out"]) or "–"
        said = "yes" if row["found"] else "no"
        print("|", " | ".join([name, f"{epsilon:g}", fault, row["sign"], *shares, said, out]), "|")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table"], data=some(sorted(FAULTS)), epsilon=1.0, right=6, looked_at=2_000, seed=0,
    )  # fmt: skip
    torch.set_num_threads(1)
    if options.verb == "table":
        table()
    else:
        measure("inspection_of_records", cases(options))


if __name__ == "__main__":
    main()
