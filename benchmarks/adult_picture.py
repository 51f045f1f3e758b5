"""The picture that README and docs begin with: real census rows beside synthetic ones at ε = 1.

    python benchmarks/adult_picture.py

The bundled rows of UCI Adult that the demo learns from, and as many synthetic ones, by the demo's own settings. The
fit is kept under ``out/adult-picture``.
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd

import doublure as db
from results import FIGURES, OUT

mpl.use("Agg")
from matplotlib import pyplot as plt

EPSILON, DELTA = 1.0, 1e-5
REAL, SYNTHETIC = "#1a1a1a", "#7fb0de"
EDUCATION = ("HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate")
NAMES = ("high school", "some college", "bachelor", "master", "doctorate")


def synthetic(real: pd.DataFrame) -> pd.DataFrame:
    """Return as many synthetic rows."""
    run = OUT / "adult-picture" / "run"
    if not (run / "generator.safetensors").is_file():
        run.parent.mkdir(parents=True, exist_ok=True)
        ledger = db.Ledger.create(run.with_suffix(".ledger"), dataset="adult", epsilon=EPSILON, delta=DELTA)
        plan = db.plan(db.Schema.load(db.datasets.adult_schema_path()), epsilon=EPSILON, delta=DELTA)
        db.fit(real, plan, ledger=ledger, out=run, seed=1)
    return db.load(run).sample(len(real), seed=7)


def main() -> None:
    """Fit if need be, and draw."""
    real = db.datasets.demo_split()[0]
    both = {"real": real, "synthetic, ε = 1": synthetic(real)}
    figure, panes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for name, rows in both.items():
        own = name == "real"
        look = {"color": REAL if own else SYNTHETIC, "label": name}
        line = {"histtype": "step", "linewidth": 1.6} if own else {"histtype": "stepfilled"}
        weights = np.full(len(rows), 100 / len(rows))
        panes[0].hist(rows["age"].astype(float), bins=np.arange(17, 92, 3), weights=weights, **line, **look)
        hours = rows["hours-per-week"].astype(float)
        panes[2].hist(hours, bins=np.arange(0, 101, 5), weights=weights, **line, **look)
        rich = [100 * (rows.loc[rows["education"] == each, "income"] == ">50K").mean() for each in EDUCATION]
        shift = -0.2 if own else 0.2
        bars = {"color": "white", "edgecolor": REAL, "linewidth": 1.6} if own else {"color": SYNTHETIC}
        panes[1].bar(np.arange(len(EDUCATION)) + shift, rich, width=0.38, label=name, **bars)
    titles = ("Age", "Who earns more than 50,000", "Hours a week")
    for pane, title, axis in zip(panes, titles, ("years", "", "hours"), strict=True):
        pane.set(title=title, xlabel=axis, ylabel="% of rows" if axis else "% of each")
        pane.spines[["top", "right"]].set_visible(False)
    panes[1].set_xticks(range(len(NAMES)), [name.replace(" ", "\n") for name in NAMES], fontsize=9)
    panes[0].legend(frameon=False)
    figure.savefig(FIGURES / "adult.png", dpi=110)
    print(FIGURES / "adult.png")


if __name__ == "__main__":
    main()
