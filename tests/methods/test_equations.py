"""The equations of docs/evidence/statistics.md: its program prints what the page says, and fits as doublure does."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.methods.statistics.tables import fitting, mixture_fit
from doublure.training.checkpoints import KeptTables

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evidence" / "statistics.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
SIZES = (3, 2, 5)
EQUAL = 2e-3
"""Apart from rounding to float32, of which up to 1,500 steps make more."""


def test_the_program_prints_what_the_page_says(capsys):
    exec(compile(CODE, "statistics.md", "exec"), {})
    printed = capsys.readouterr().out
    assert f"```text\n{printed}```" in PAGE
    assert "1,000.2" in PAGE.rpartition("By hand")[2]
    assert "rows 1000.2" in printed


class Fitted:
    """A fit of three columns of categories, whose noisy answers are kept."""

    def __init__(self, patch, folder, rows, epsilon):
        draw = np.random.default_rng(rows)
        one = draw.choice(3, rows, p=[0.5, 0.3, 0.2])
        two = np.where(draw.random(rows) < 0.6, one % 2, draw.integers(0, 2, rows))
        three = np.where(draw.random(rows) < 0.5, two * 2, draw.choice(5, rows, p=[0.5, 0.3, 0.15, 0.03, 0.02]))
        frame = pd.DataFrame({name: own.astype(str) for name, own in zip("abc", (one, two, three), strict=True)})
        columns = "".join(
            f"  {name}: {{type: category, values: {[str(value) for value in range(size)]}, missing: false}}\n"
            for name, size in zip("abc", SIZES, strict=True)
        )
        head = f"doublure: 1\nkind: table\nunit: {{name: record, id: none}}\nunits: {rows}\ncolumns:\n"
        self.plan = db.plan(
            db.Schema.parse(head + columns), method="statistics", epsilon=epsilon, delta=1e-5, accountant="rdp",
            structure="tree",
        )  # fmt: skip
        self.answers = []
        with patch.context() as inner:
            for name in ("released", "scored"):
                inner.setattr(KeptTables, name, self.keeping(getattr(KeptTables, name)))
            build = fitting.build_generator
            inner.setattr(fitting, "build_generator", lambda job, fit: self.kept(job, fit, build(job, fit)))
            ledger = db.Ledger.create(folder / "ledger", dataset="equations", epsilon=epsilon, delta=1e-5)
            self.syn = db.fit(frame, self.plan, ledger=ledger, out=folder / "run", seed=7, progress=False)

    def keeping(self, asked):
        def ask(tables, number, wanted, *more):
            self.answers.append(asked(tables, number, wanted, *more))
            return self.answers[-1]

        return ask

    def kept(self, job, fit, generator):
        self.seed, self.fit, self.generator = job.seed, fit, generator
        return generator

    def by_the_page(self):
        """Return what the page's program makes of the same answers."""
        purposes = ("columns", "scores", "pairs", "tree")
        events = {name: access.event for name, access in zip(purposes, self.plan.touches, strict=True)}
        answers = iter(self.answers[-len(purposes) :])  # those before are of the rehearsal

        def ask(purpose, which, groups, more):
            found = iter(next(answers))
            if purpose == "scores":
                return [next(found) for _ in which]
            means = [np.mean([next(found) for _ in range(times)], axis=0) for times in more]
            assert [own.shape for own in means] == [tuple(len(set(of)) for of in own) for own in groups]
            return means

        program = {}
        exec(compile(CODE.partition("NOISY = {")[0], "statistics.md", "exec"), program)
        few = min(1.0, max(0.0, math.log(4500 / self.plan.settings.seen) / math.log(3)))
        scale = {name: event.scale for name, event in events.items()}
        places = {name: event.tables for name, event in events.items()}
        found = program["reproduce"](ask, SIZES, scale, places, few, self.seed)
        return found, program["draw"](found, 20_000, np.random.default_rng(1))


def check_equal(made):
    found, drawn = made.by_the_page()
    assert found.rows == pytest.approx(made.fit.tables.rows)
    assert found.edges == made.fit.tables.edges
    assert np.abs(np.concatenate(found.p, axis=1) - made.fit.probabilities).max() < EQUAL
    for (_, child), (law, _) in zip(found.edges, found.laws, strict=True):
        (node,) = (own for own in made.generator.tree.nodes if own.part == child)
        theirs = node.ties[None] * node.leaning[:, None]
        assert np.abs(theirs / theirs.sum(2, keepdims=True) - law).max() < EQUAL
    frame = made.syn.sample(20_000, seed=3).astype(int).to_numpy()
    ends = [np.arange(size + 1) - 0.5 for size in SIZES]
    mine, theirs = (np.histogramdd(rows, ends)[0] / len(rows) for rows in (drawn, frame))
    assert np.abs(mine - theirs).sum() / 2 < 0.03


@pytest.mark.parametrize(("rows", "epsilon"), [(300, 1.0), (2000, 0.3), (2000, 2.0), (20_000, 1.0)])
def test_the_program_fits_as_this_package_does(monkeypatch, tmp_path, rows, epsilon):
    check_equal(Fitted(monkeypatch, tmp_path, rows, epsilon))


def test_shares_and_scales_are_those_of_the_page(monkeypatch, tmp_path):
    made = Fitted(monkeypatch, tmp_path, 2000, 2.0)
    few = min(1.0, max(0.0, math.log(4500 / made.plan.settings.seen) / math.log(3)))
    shares = [0.22 + 0.08 * few, 0.06, 0.48, 0.24 - 0.08 * few]
    for access, share, tables in zip(made.plan.touches, shares, (12, 3, 6, 6), strict=True):
        assert access.event.tables == tables
        assert access.event.scale == pytest.approx(made.plan.noise_multiplier * math.sqrt(tables / share), rel=1e-3)


def test_another_step_of_the_fit_is_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(mixture_fit, "_RATE", 0.08)
    with pytest.raises(AssertionError):
        check_equal(Fitted(monkeypatch, tmp_path, 2000, 2.0))
