"""Columns that are missing together, in any number: declared, or found among neighbours by noisy counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fixed_noise import FixedNoise

import doublure as db
from doublure.errors import SchemaError
from doublure.methods.statistics.binning import posterior_states
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.missing_blocks import (
    MOST_BLOCKS,
    MissingBlock,
    MissingRows,
    clear_patterns,
    explained_bits,
    heaviest,
    join_neighbours,
    pattern_bits,
)
from doublure.schema import Schema
from doublure.schema.missing_states import hole_states

NONVOTERS = Path(__file__).resolve().parents[3] / "shared" / "data" / "nonvoters.csv.gz"


def pair(both: float, one_alone: float, rows: float = 1000.0) -> np.ndarray:
    return np.array([[rows - both - one_alone, one_alone / 2], [one_alone / 2, both]])


def blocks(count: int) -> list[MissingBlock]:
    return [MissingBlock(parts=(place,), mark=2.0) for place in range(count)]


def test_neighbours_are_joined_where_noise_lets_it_be_seen() -> None:
    pairs = [pair(300, 0), pair(90, 210), pair(300, 9), pair(40, 0)]
    joined = join_neighbours(blocks(5), list("vwxyz"), pairs, 5.0)
    assert [block.parts for block in joined] == [(0, 1), (2, 3, 4)]
    assert [block.parts for block in join_neighbours(blocks(5), list("vwxyz"), pairs, 20.0)] == [(0, 1), (2, 3), (4,)]
    assert [len(block.parts) for block in join_neighbours(blocks(5), list("vwxyz"), pairs, 100.0)] == [1] * 5


def test_names_of_one_stem_are_judged_together() -> None:
    noise, rng = 60.0, np.random.default_rng(0)
    pairs = [pair(100, 0) + rng.normal(0, noise, (2, 2)) for _ in range(24)]
    names = [f"Q7_{number}" for number in range(25)]
    assert [len(block.parts) for block in join_neighbours(blocks(25), names, pairs, noise)] == [25]
    alone = join_neighbours(blocks(25), [f"q{number}x{number}y" for number in range(25)], pairs, noise)
    assert max(len(block.parts) for block in alone) < 25
    random = [pair(10, 180) + rng.normal(0, noise, (2, 2)) for _ in range(24)]  # 100 rows each, by chance
    assert max(len(block.parts) for block in join_neighbours(blocks(25), names, random, noise)) == 1


def test_the_heaviest_blocks_are_counted_in_the_order_of_the_columns() -> None:
    every = [MissingBlock(parts=(place,), mark=1.0, weight=float(place % 7)) for place in range(30)]
    kept = heaviest(every)
    assert len(kept) == MOST_BLOCKS
    assert [block.parts for block in kept] == sorted(block.parts for block in kept)
    assert min(block.weight for block in kept) >= 3


def test_a_column_that_is_missing_at_random_leaves_the_patterns() -> None:
    rng = np.random.default_rng(0)
    block = rng.random(20_000) < 0.3
    chance = [rng.random(20_000) < 0.02 for _ in range(8)]
    bits = np.stack([block, *chance, block], axis=1)
    counts = np.bincount((bits << np.arange(10)).sum(1), minlength=2**10).astype(float)
    missing = MissingRows(
        rows=bits.sum(0).astype(float), variance=np.full(10, 50.0**2), columns=np.ones(10), every=20_000.0
    )
    noisy = counts + rng.normal(0, 40, 2**10)
    kept, summed, noise = explained_bits(noisy, 40.0, missing)
    assert {0, 9} <= set(kept)
    assert noise == pytest.approx(40.0 * 2 ** ((10 - len(kept)) / 2))
    assert summed.size == 2 ** len(kept)
    assert len(kept) < 10
    again, same, still = explained_bits(counts, 1e-9, missing)
    assert (again, still) == (tuple(range(10)), 1e-9)
    assert same is counts
    # A block of many columns is torn last.
    wide = replace(missing, columns=np.array([9.0, *[1.0] * 9]))
    assert 0 in explained_bits(noisy + rng.normal(0, 80, 2**10), 90.0, wide)[0]


def test_rows_of_patterns_agree_with_the_rows_of_each_block() -> None:
    """Rows of rare patterns count nowhere, but each block's share of missing rows is known from its columns."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        # Blocks 0 and 1 miss 300 and 200 of 1,000 rows, but some of those are in patterns that noise hides.
        missing = MissingRows(
            rows=np.array([300.0, 200.0]) + rng.normal(0, 2, 2),
            variance=np.full(2, 4.0),
            columns=np.ones(2),
            every=1000.0,
        )
        seen = np.array([500.0, 250.0, 160.0, 0.0])
        kept, rows = clear_patterns(seen + rng.normal(0, 7, 4), 7.0, missing)
        assert {0, 1, 2} <= set(kept.tolist())
        assert rows[:3] == pytest.approx([500, 300, 200], abs=35)
    kept, rows = clear_patterns(rng.normal(0, 1, 4), 12.0, missing)  # where noise hides all, one pattern has all rows
    assert len(kept) == 1


def test_no_sum_of_noise_is_a_pattern() -> None:
    """The largest of many noisy sums is noise; a pattern has no more rows than the columns' own counts leave it."""
    rng = np.random.default_rng(8)
    counts = np.zeros(2**10)
    counts[[0, 2**10 - 1, 2**10 - 2, 1]] = 620, 110, 20, 30
    rows = counts @ pattern_bits(np.arange(2**10), 10)
    kept_some = 0
    for _ in range(100):
        missing = MissingRows(
            rows=rows + rng.normal(0, 60, 10), variance=np.full(10, 60.0**2), columns=np.ones(10), every=780.0
        )
        bits, summed, noise = explained_bits(counts + rng.normal(0, 40, 2**10), 40.0, missing)
        kept, likely = clear_patterns(summed, noise, missing.of_bits(bits))
        shown = pattern_bits(kept, len(bits))
        gone = likely @ shown / 780
        assert gone[shown.any(0)] == pytest.approx(rows[list(bits)][shown.any(0)] / 780, abs=0.3)
        kept_some += bool(bits)
    assert kept_some


def survey(rows: int) -> tuple[pd.DataFrame, list[list[str]]]:
    rng = np.random.default_rng(1)
    groups = [[f"Q1_{n}" for n in range(8)], [f"Q2_{n}" for n in range(9)], ["fare", "gate"]]
    cells: dict[str, np.ndarray] = {}
    for group, share in zip(groups, (0.1, 0.75, 0.4), strict=True):
        gone = rng.random(rows) < share
        cells |= {name: np.where(gone, "", rng.choice(["a", "b"], rows)) for name in group}
    cells["alone"] = np.where(rng.random(rows) < 0.2, "", rng.choice(["a", "b"], rows))
    return pd.DataFrame(cells), groups


def mixed(rows: pd.DataFrame, group: list[str]) -> float:
    gone = rows[group].isna().sum(axis=1)
    return float(((gone > 0) & (gone < len(group))).mean())


@pytest.mark.parametrize("declared", [False, True])
def test_blocks_stay_together_in_any_number_of_columns(declared: bool, tmp_path: Path) -> None:
    data, groups = survey(4000)
    text = "doublure: 1\nkind: table\nunits: 4000\ncolumns:\n"
    text += "".join(f"  {name}: {{type: category, values: [a, b], missing: true}}\n" for name in data.columns)
    schema = Schema.parse(text + ("missing_together: [[Q1_*], [Q2_*], [fare, gate]]\n" if declared else ""))
    made = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp")
    tables: Mapping[str, int] = {access.purpose: access.event.tables for access in made.touches}
    assert tables.get(plan.NEIGHBOURS, 0) == (0 if declared else len(data.columns) - 1)
    assert tables[plan.PATTERNS] == 1
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=1.0, delta=1e-6)
    rows = db.fit(data, made, ledger=ledger, out=tmp_path / "run").sample(4000, seed=1)
    for group in groups:
        assert mixed(rows, group) == 0
        real = (data[group[0]] == "").mean()
        # Rows of rare patterns count as the most similar ones.
        assert rows[group[0]].isna().mean() == pytest.approx(real, abs=0.08)
    assert rows.alone.isna().mean() == pytest.approx(0.2, abs=0.04)


def test_a_target_stays_in_its_declared_group(tmp_path: Path) -> None:
    """The target is drawn last, after all patterns: without the rule, noise takes it out of its group."""
    data, (group, *_) = survey(1000)
    data, named = data[[*group, "alone"]], f"[{', '.join(group)}]"
    columns = "".join(f"{name}: {{type: category, values: [a, b], missing: true}}, " for name in group[1:])
    schema = Schema.parse(f"""{{doublure: 1, kind: table, units: 1000, missing_together: [{named}], columns: {{{columns}
      alone: {{type: category, values: [a, b], missing: true}},
      {group[0]}: {{type: category, values: [a, b], missing: true, roles: [target]}}}}}}""")
    made = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", fit_steps=50)
    assert getattr(made.settings, "within", "") == group[0]
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=1.0, delta=1e-6)
    rows = db.fit(data, made, ledger=ledger, out=tmp_path / "run").sample(1000, seed=1)
    assert mixed(rows, group) == 0


@pytest.mark.parametrize("beside", [False, True])
def test_a_target_is_in_a_group_that_nobody_declared(beside: bool, tmp_path: Path) -> None:
    """It is drawn last: where it is missing stands in the patterns, whichever way its pairs are counted."""
    rng = np.random.default_rng(2)
    gone = rng.random(3000) < 0.3
    cells = {name: np.where(gone, "", rng.choice(["a", "b"], 3000)) for name in ("q0", "q1", "q2")}
    cells |= {f"x{n}": rng.choice([*"abcdefgh"], 3000) for n in range(11 if beside else 2)}
    data = pd.DataFrame(cells)
    columns = "".join(
        f"{name}: {{type: category, values: {sorted({*own} - {''})}, missing: {str('' in {*own}).lower()}"
        f"{', roles: [target]' if name == 'q0' else ''}}}, "
        for name, own in data.items()
    )
    schema = Schema.parse(f"{{doublure: 1, kind: table, units: 3000, columns: {{{columns}}}}}")
    made = db.plan(schema, method="statistics", epsilon=3.0, delta=1e-6, accountant="rdp", fit_steps=50)
    assert any(access.purpose == plan.BY_TARGET for access in made.touches) == beside
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-6)
    syn = db.fit(data, made, ledger=ledger, out=tmp_path / "run")
    rows = syn.sample(3000, seed=1)
    assert (rows["q0"].isna() == rows["q1"].isna()).all()
    assert rows["q0"].isna().mean() == pytest.approx(0.3, abs=0.04)
    assert syn.sample(200, given={"q0": None}, seed=1)["q1"].isna().all()
    assert syn.sample(200, given={"q0": "a"}, seed=1)["q1"].notna().all()
    assert syn.sample(200, given={"q1": None}, seed=1)["q0"].isna().all()


def test_a_rare_kind_of_missing_comes_out(tmp_path: Path) -> None:
    """1 % of the cells are unknown: patterns of so few are noise, and no pattern may take the column's place."""
    rng = np.random.default_rng(3)
    job = rng.permutation(["unknown"] * 52 + [""] * 500 + [*rng.choice(["a", "b", "c"], 4448)])
    day = rng.permutation(["unknown"] * 52 + [*(np.datetime64("2020-01-01") + rng.integers(0, 900, 4948)).astype(str)])
    data = pd.DataFrame({"job": job, "day": day} | {f"x{n}": rng.choice([*"abcdef"], 5000) for n in range(6)})
    columns = "".join(f"x{n}: {{type: category, values: [a, b, c, d, e, f], missing: false}}, " for n in range(6))
    schema = Schema.parse(f"""{{doublure: 1, kind: table, units: 5000, columns: {{{columns}
      job: {{type: category, values: [a, b, c], missing: ["", unknown]}},
      day: {{type: date, bounds: [2020-01-01, 2024-12-31], missing: ["", unknown]}}}}}}""")
    made = db.plan(schema, method="statistics", epsilon=3.0, delta=1e-6, accountant="rdp", fit_steps=50)
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-6)
    rows = db.fit(data, made, ledger=ledger, out=tmp_path / "run").sample(5000, seed=1)
    for name in ("job", "day"):
        assert 10 < (rows[name] == "unknown").sum() < 110
    assert rows["day"].isna().sum() < 50  # a kind that is declared and that nobody has
    assert rows["job"].isna().sum() == pytest.approx(500, abs=70)


@pytest.mark.parametrize("drawn_last", [{"within": ""}, {"pairs": "beside"}, {"pairs": "within"}])
@pytest.mark.parametrize("empty", [0.0, 0.3])
def test_an_empty_cell_that_nobody_declared_comes_out_of_no_noise(
    drawn_last: Mapping[str, str], empty: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may occur, and is in the domain; where it does, it comes out in its share."""
    FixedNoise().install(monkeypatch)
    rng, rows = np.random.default_rng(3), 2000
    shares = [0.0, 0.4, 0.3, 0.2, 0.1] if not empty else [empty, 0.3, 0.2, 0.1, 0.1]
    cells = {"job": ["", "a", "b", "NA", "DK"], "n": ["", "1", "7", "-7", "-8"], "day": ["", "2020-02-03", "2021-04-05",
             "never", "unknown"], "y": ["", "no", "yes", "NA", "DK"]}  # fmt: skip
    data = pd.DataFrame({name: rng.choice(own, rows, p=shares) for name, own in cells.items()})
    schema = Schema.parse("""{doublure: 1, kind: table, units: 2000, columns: {
      job: {type: category, values: [a, b], missing: [NA, DK]},
      n: {type: integer, bounds: [0, 99], missing: [-7, -8]},
      day: {type: date, bounds: [2020-01-01, 2024-12-31], missing: [never, unknown]},
      y: {type: category, values: ["no", "yes"], missing: [NA, DK], roles: [target]}}}""")
    made = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", fit_steps=50,
                   **({} if "within" in drawn_last else {"within": "y"}), **drawn_last)  # fmt: skip
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=1.0, delta=1e-6)
    syn = db.fit(data, made, ledger=ledger, seed=1)
    drawn = syn.sample(rows, seed=1)
    for name in cells:
        states = hole_states(syn.schema.columns[name].kept_numbers(drawn[name]))
        assert (states > 0).mean() == pytest.approx(sum(shares[3:]), abs=0.08)
        gone = np.isnan(syn.schema.columns[name].kept_numbers(drawn[name])) & (states == 0)
        assert gone.mean() == (pytest.approx(empty, abs=0.08) if empty else 0.0)


def test_kinds_of_missing_that_noise_hides_are_rare_and_many_of_them_few() -> None:
    rng = np.random.default_rng(4)
    drawn = [posterior_states(np.array([1500.0, 250, 52]) + rng.normal(0, 28, 3), np.full(3, 784.0), total=5000.0)
             for _ in range(300)]  # fmt: skip
    assert np.mean(drawn, axis=0) == pytest.approx([1500, 248, 33], abs=6)
    assert np.min(drawn) > 0
    sas = [posterior_states(np.append(1500.0, rng.normal(0, 28, 27)), np.full(28, 784.0), total=5000.0)[1:].sum()
           for _ in range(100)]  # fmt: skip
    assert np.mean(sas) < 60  # of 27 letters that no cell has


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("[[a, q]]", "not a column"),
        ("[[z*]]", "fits no column"),
        ("[[a, c]]", "never missing"),
        ("[[a, b], [b, d]]", "names b twice"),
        ("[a, b]", "no list of groups"),
        ("[[a]]", "missing_together does not have its form"),
    ],
)
def test_groups_that_do_not_fit_are_refused(groups: str, words: str) -> None:
    columns = ", ".join(f"{name}: {{type: boolean, missing: {name != 'c'}}}" for name in "abcd").lower()
    with pytest.raises(SchemaError) as caught:
        Schema.parse(f"{{doublure: 1, kind: table, units: 9, columns: {{{columns}}}, missing_together: {groups}}}")
    assert words in f"{caught.value}; {caught.value.remedy}"


@pytest.mark.skipif(not NONVOTERS.exists(), reason="needs ../shared/data")
def test_a_real_survey_has_no_mixed_blocks(tmp_path: Path) -> None:
    """At ε = 1 the noise splits a block in one fit of four, and some 4 % of the rows are mixed."""
    every = pd.read_csv(NONVOTERS, dtype=str, keep_default_na=False)
    holes = [name for name in every.columns if (every[name] == "NA").any()]
    data = every[[*holes, "gender", "voter_category"]]
    text = f"doublure: 1\nkind: table\nunits: {len(data)}\ncolumns:\n"
    for name in data.columns:
        values = sorted(set(data[name]) - {"NA"})
        text += (
            f"  {name}: {{type: category, values: {values}, missing: {'{style: r}' if name in holes else 'false'}}}\n"
        )
    made = db.plan(Schema.parse(text), method="statistics", epsilon=3.0, delta=1e-6, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-6)
    rows = db.fit(data, made, ledger=ledger, out=tmp_path / "run").sample(len(data), seed=1)
    for stem, share in (("Q28_", 0.092), ("Q29_", 0.770)):
        group = [name for name in holes if name.startswith(stem)]
        assert mixed(rows, group) < 0.01
        assert rows[group[0]].isna().mean() == pytest.approx(share, abs=0.08)
