"""Each paper's system by its preset, from a stranger's files to a verified card; and refusals that name presets."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.methods.presets import PRESETS, sentence

IMAGES = "doublure: 1\nkind: images\nunits: 80\nimages: {shape: [8, 8, 3]}\n"
IMAGES += "label: {values: [left, right], shares: {left: 0.5, right: 0.5}}\n"
TABLE = """
doublure: 1
kind: table
units: 120
unit: {name: order}
columns:
  price: {type: real, bounds: [0, 100], missing: false}
  shop: {type: category, values: [north, south], missing: false}
"""
SERIES = """
doublure: 1
kind: series
units: 10
unit: {name: pump, id: pump}
series: {time: at, length: 8, step: 3h, timezone: UTC, gaps: drop}
channels: {flow: {type: real, bounds: [0, 9], missing: false}}
"""
NETWORKS = {"features": 5, "channels": [6, 4], "critic_channels": [4, 6]}
TINY = {"steps": 6, "lot_size": 8, "generator_batch": 6, "noise_width": 4, "checkpoints": 2}
EXACT = {"epsilon": 4, "delta": 1e-3}


def pictures(folder, labels=("left", "right")):
    rng = np.random.default_rng(0)
    for label in labels:
        (folder / label).mkdir(parents=True, exist_ok=True)
        for one in range(80 // len(labels)):
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / label / f"{one}.png")
    return folder


def orders(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"price": rng.random(120) * 100, "shop": rng.choice(["north", "south"], 120)})
    frame.to_csv(folder / "orders.csv", index=False)
    return folder / "orders.csv"


def flows(folder):
    at = pd.date_range("2024-01-01", periods=8, freq="3h")
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"pump": n, "at": at, "flow": rng.random(8) * 9}) for n in range(10)]
    pd.concat(frames).to_csv(folder / "flows.csv", index=False)
    return folder / "flows.csv"


def public_pictures(folder, doublure):
    """Return the setting that names a WGAN-GP of public pictures, made from a folder of PNG files."""
    (folder / "public.yaml").write_text("doublure: 1\nkind: images\nimages: {shape: [8, 8, 3]}\n")
    (folder / "from.yaml").write_text("data: noise\npeople: nobody\nlicence: CC0\n")
    own = {"objective": "wgan-gp", "steps": 6, "noise_width": 6, "encoder_channels": [4], "encoder_features": 6}
    made = words(own | NETWORKS | {"proposer_steps": 2})
    data = pictures(folder / "public", [""])
    asked = ["--schema", folder / "public.yaml", "--provenance", folder / "from.yaml", "-o", folder / "G"]
    doublure("public", "fit", data, *asked, *made, "--seed", 1)
    return {"public": str(folder / "G"), "inversion_steps": 2, "width": 6, "critic_width": 6, "labeller_steps": 2,
            "view_images": 100, "view_width": 8, "tries": 2, "noise_width": 3}  # fmt: skip


def words(given):
    return [word for key, value in given.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def whole_way(folder, doublure, preset, schema, data, claim, settings):
    """Plan, fit, sample, release and verify; return the plan and the card."""
    (folder / "s.yaml").write_text(schema)
    budget = [word for key, value in claim.items() for word in (f"--{key}", value)]
    asked = [*budget, *words(TINY | settings), "-o", folder / "plan.json"]
    planned = doublure("plan", folder / "s.yaml", "--preset", preset, *asked)
    doublure("budget", "init", folder / "l", "--dataset", "own", "--epsilon", 1e9, "--delta", 0.1)
    doublure("fit", data, "--plan", folder / "plan.json", "--ledger", folder / "l", "-o", folder / "run")
    drawn = folder / ("drawn.npz" if "images" in schema else "drawn.csv")
    assert doublure("sample", folder / "run", "-n", 9, "-o", drawn)["rows"] == 9
    card = doublure("release", folder / "run", "-n", 20, "-o", folder / "bundle")["card"]
    doublure("verify", folder / "bundle", "--ledger", folder / "l")
    return planned, card


@pytest.mark.parametrize(
    ("preset", "schema", "made", "claim", "settings", "kind"),
    [
        ("frigerio2019", TABLE, orders, EXACT, {"width": 6, "critic_width": 6}, "dp"),
        ("frigerio2019", SERIES, flows, EXACT, {"lstm_units": 4, "critic_width": 6, "noise_width": 0}, "dp"),
        ("triastcyn2018", IMAGES, pictures, {}, NETWORKS | {"estimate_features": "pixels"}, "empirical"),
        ("triastcyn2019", IMAGES, pictures, {}, NETWORKS | {"estimate_features": "pixels"}, "empirical"),
    ],
)
def test_a_strangers_files_become_a_card(tmp_path, run, doublure, capsys, preset, schema, made, claim, settings, kind):
    data = made(tmp_path / "files") if made is pictures else made(tmp_path)
    planned, card = whole_way(tmp_path, doublure, preset, schema, data, claim, settings)
    assert card["guarantee"]["kind"] == kind
    assert planned["warnings"][0] == sentence(preset, db.Schema.parse(schema).kind)
    run_guarded(app, ["sample", str(tmp_path / "run"), "-n", "9", "-o", str(tmp_path / "again.npz")])
    said = capsys.readouterr().out
    assert ("othing limits what these images tell of" in said) == (kind == "empirical")  # as release says


def test_an_estimate_above_its_ceiling_leaves_the_worst_case_in_plain_words(tmp_path, run, doublure, capsys):
    """The paper's noise is little, so that ε_μ passes the ceiling of a small set: exit 4, and a card all the same."""
    data, last = pictures(tmp_path / "files"), {"labeller_steps": 2, "view_images": 100, "view_width": 8, "tries": 2}
    (tmp_path / "s.yaml").write_text(IMAGES)
    settings = words(TINY | NETWORKS | last | {"distances": 4})
    asked = ["--preset", "triastcyn2022", "--epsilon", 3, "--delta", 1e-6, *settings, "-o", tmp_path / "plan.json"]
    assert doublure("plan", tmp_path / "s.yaml", *asked)["settings"]["recipe"] == "paper"
    doublure("budget", "init", tmp_path / "l", "--dataset", "own", "--epsilon", 1e9, "--delta", 0.1)
    fit = ["fit", data, "--plan", tmp_path / "plan.json", "--ledger", tmp_path / "l", "-o", tmp_path / "run"]
    assert run(*fit)[0] == 4
    run_guarded(app, ["sample", str(tmp_path / "run"), "-n", "9", "-o", str(tmp_path / "drawn.npz")])
    said = capsys.readouterr().out
    assert "is right up to 100 times in 100, whatever else they know. " in said
    assert "This protects hardly anybody." in said
    card = doublure("release", tmp_path / "run", "-n", 20, "-o", tmp_path / "bundle")["card"]
    assert (card["guarantee"]["kind"], card["guarantee"]["epsilon"] > 1000) == ("dp", True)
    doublure("verify", tmp_path / "bundle", "--ledger", tmp_path / "l")


def test_pictures_go_through_a_public_generator_to_a_card(tmp_path, doublure):
    own = public_pictures(tmp_path, doublure)
    data = pictures(tmp_path / "files")
    planned, card = whole_way(tmp_path, doublure, "chen2021", IMAGES, data, EXACT, own)
    assert (planned["settings"]["teacher"], card["guarantee"]["kind"]) == ("critic", "dp")
    assert "public generator" in card["guarantee"]["sentence"]


def test_a_preset_is_its_method_with_the_papers_settings():
    schema = db.Schema.parse(TABLE)
    own = db.plan(schema, preset="frigerio2019", steps=6, lot_size=8, **EXACT)
    same = db.plan(schema, method="dpgan", numerics="scaled", loss="wgan-gp", steps=6, lot_size=8, **EXACT)
    assert own.sha256 == same.sha256
    assert f"Note: {sentence('frigerio2019', 'table')}" in own.explain()
    assert db.plan(schema, preset="frigerio2019", numerics="bins", steps=6, **EXACT).settings.numerics == "bins"


def test_a_plan_of_a_preset_is_read_back_with_its_sentence(tmp_path):
    plan = db.plan(db.Schema.parse(TABLE), preset="frigerio2019", steps=6, **EXACT)
    plan.save(tmp_path / "plan.json")
    assert db.Plan.load(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"method": "dpmi"}, "there is no method 'dpmi'; write --preset chen2021"),
        ({"method": "triastcyn2018"}, "write --preset triastcyn2018"),
        ({"method": "magic"}, "a paper's system is a preset: frigerio2019, triastcyn2018"),
        ({"preset": "frigero2019"}, "did you mean frigerio2019"),
        ({"preset": "triastcyn2018"}, "triastcyn2018 makes images; leave it out, or use frigerio2019, chen2021"),
        ({"preset": "frigerio2019", "method": "gan"}, "method: stands beside preset frigerio2019, which is dpgan"),
    ],
)
def test_refusals_name_presets(asked, said):
    with pytest.raises(db.errors.SettingError) as caught:
        db.plan(db.Schema.parse(TABLE), **asked, **EXACT)
    assert said in str(caught.value)


def test_help_and_wants_know_presets(tmp_path, run):
    from typer.testing import CliRunner

    helped = " ".join(CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "300"}).output.split())
    assert all(name in helped for name in PRESETS)
    (tmp_path / "s.yaml").write_text(TABLE)
    (tmp_path / "w.yaml").write_text("[]")
    code, said = run("plan", tmp_path / "s.yaml", "--preset", "chen2021", "--want", tmp_path / "w.yaml")
    assert (code, said["error"]["field"]) == (2, "--preset")
