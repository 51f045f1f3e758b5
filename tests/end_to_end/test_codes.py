"""A table with a long list of codes, from a draft to a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.drafting.draft import drafted
from doublure.schema import Schema

CHAPTERS = "ABCDEFGHIJKLMNOPQRST"
LISTED = [f"{chapter}{block:02}.{code}" for chapter in CHAPTERS for block in range(15) for code in range(5)]
UNITS = 3_700


def people(count: int) -> pd.DataFrame:
    """Return stays, most of whose codes are a twelfth of the list, and a ward that follows from the chapter."""
    rng = np.random.default_rng(7)
    blocks = rng.choice([code[:3] for code in LISTED[::5] if code < "N"], 45, replace=False)
    used = rng.permutation([code for code in LISTED if code[:3] in blocks])[:120]
    codes = rng.choice(used, count, p=rng.dirichlet(np.full(120, 0.3)))
    strange = rng.random(count) < 0.01
    codes = np.where(strange, np.char.add(codes.astype("U3"), ".9"), codes)  # not in the list
    ward = np.where(codes < "H", "east", "west")
    age = np.clip(rng.normal(40 + 2 * (ward == "east"), 15, count), 0, 99).astype(int)
    return pd.DataFrame({"icd10": codes, "ward": ward, "age": age, "sex": rng.choice(["f", "m"], count)})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, db.Synthesizer, Path]:
    folder = tmp_path_factory.mktemp("codes")
    rows = people(2 * UNITS)[:UNITS]
    (folder / "icd.txt").write_text("\n".join(LISTED))
    (folder / "wards.csv").write_text(
        "icd10,ward\n" + "".join(f"{c},{'east' if c < 'H' else 'west'}\n" for c in CHAPTERS)
    )
    (folder / "codebook.csv").write_text(
        "column,type,values,lower,upper,missing\nicd10,category,{file: icd.txt},,,false\n"
        "ward,category,east|west,,,false\nage,integer,,0,99,false\nsex,category,f|m,,,false\n"
    )
    draft = drafted(rows, folder / "codebook.csv")
    proposed = dict(draft.proposals["icd10"].column or {})
    assert proposed == {"type": "code", "values": {"file": "icd.txt"}, "levels": [1, 3]}
    text = draft.to_yaml(folder)
    own = next(line for line in text.splitlines() if line.startswith("  icd10:"))
    text = text.replace(
        own, "  icd10: {type: code, values: {file: icd.txt}, levels: [1, 3], unlisted: chapter, missing: false}"
    ).replace("units: undeclared", f"units: {UNITS}")
    text += "\nconstraints:\n- {determines: [{column: icd10, level: 1}, ward], map: wards.csv}\n"
    (folder / "s.yaml").write_text(text)
    schema = Schema.load(folder / "s.yaml")
    plan = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6)
    ledger = db.Ledger.create(folder / "l", dataset="stays", epsilon=1.0, delta=1e-6)
    return rows, db.fit(rows, plan, ledger=ledger, out=folder / "run"), folder


def counted_as(codes: pd.Series) -> pd.Series:
    """Return codes as the schema counts them: of those outside the list their block."""
    return codes.where(codes.isin(set(LISTED)), codes.str[:3])


def distance(one: pd.Series, other: pd.Series) -> float:
    shares = [each.value_counts(normalize=True) for each in (one, other)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def test_few_rows_have_codes_that_nobody_has_and_chapters_are_right(made):
    rows, synthesizer, _ = made
    codes = synthesizer.sample(UNITS, seed=1).icd10.astype(str)
    real = counted_as(rows.icd10)
    assert 1 - codes.isin(set(real)).mean() <= 0.06
    assert set(codes) <= set(LISTED)  # and no block's name, though 1 row in 100 counts as one
    assert distance(codes.str[0], real.str[0]) < 0.06
    assert distance(codes.str[:3], real.str[:3]) < 0.3


def test_the_ward_follows_from_the_chapter_in_every_row(made):
    _, synthesizer, _ = made
    sample = synthesizer.sample(2_000, seed=2)
    east = sample.icd10.astype(str).str[0] < "H"
    assert (sample.ward.astype(str) == np.where(east, "east", "west")).all()


@pytest.mark.parametrize("asked", ["D", "A, D*", "C0"])
def test_a_sample_is_asked_for_by_groups(made, asked):
    _, synthesizer, _ = made
    if asked == "C0":
        with pytest.raises(db.errors.DoublureError, match="icd10: has no such value"):
            synthesizer.sample(10, seed=3, given={"icd10": asked})
        return
    sample = synthesizer.sample(200, seed=3, given={"icd10": asked})
    assert len(sample) == 200
    assert set(sample.icd10.astype(str).str[0]) <= set(asked) - {" ", ",", "*"}


def test_the_bundle_verifies_and_says_the_levels(made):
    _, synthesizer, folder = made
    db.release(synthesizer, folder / "bundle", n=500, seed=4)
    assert db.verify(folder / "bundle")
    told = json.loads((folder / "bundle/dictionary.json").read_text())["columns"][0]
    assert (told["type"], told["levels"]) == ("code", [1, 3])
    fields = json.loads((folder / "bundle/datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    assert (fields[0]["name"], fields[0]["type"]) == ("icd10", "string")
    again = db.load(folder / "run").sample(5, seed=1)
    assert again.icd10.dtype == "category"


def test_a_report_has_the_levels(made, tmp_path):
    rows, synthesizer, _ = made
    report = db.evaluate.report(synthesizer, rows[:800], people(2 * UNITS)[UNITS : UNITS + 800])
    report.save(tmp_path / "page.html")
    assert report.scores.loc["unseen_codes", "synthetic"] <= 0.07
    assert report.scores.loc["code_groups", "synthetic"] < 0.2
    assert "icd10, level 1" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("nullable", ["false", "true"])
def test_codes_of_several_stays_are_counted_with_their_groups(tmp_path, nullable):
    rng = np.random.default_rng(1)
    codes = [f"{chapter}{block}.{code}" for chapter in "ABCD" for block in range(4) for code in range(5)]
    nr = np.repeat(np.arange(900), rng.integers(1, 3, 900))
    stays = pd.DataFrame({"nr": nr, "sex": nr % 2, "code": rng.choice(codes[:12], len(nr))})
    if nullable == "true":
        stays.loc[rng.random(len(nr)) < 0.2, "code"] = None
    schema = Schema.parse(
        "doublure: 1\nkind: table\nunit: {name: patient, id: nr, per_unit: [sex], max_records: 2}\nunits: 900\n"
        "columns:\n  nr: {type: id}\n  sex: {type: category, values: [0, 1], missing: false}\n"
        f"  code: {{type: code, values: [{', '.join(codes)}], levels: [1, 2], missing: {nullable}}}\n"
    )
    plan = db.plan(schema, method="statistics", epsilon=20.0, delta=1e-6, accountant="rdp")
    assert "count codes of long lists, and their groups" in str(plan.to_json())
    ledger = db.Ledger.create(tmp_path / "l", dataset="stays", epsilon=20.0, delta=1e-6)
    sample = db.fit(stays, plan, ledger=ledger, out=tmp_path / "run").sample(1_500, seed=1)
    assert sample.code.dropna().astype(str).isin(codes[:12]).mean() > 0.97
    assert sample.code.isna().mean() == pytest.approx(stays.code.isna().mean(), abs=0.05)
