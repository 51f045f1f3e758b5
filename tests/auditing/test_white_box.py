"""The white box is the critic that training ended with, whichever method kept it; a noise layer adds nothing to it."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
import torch

import doublure as db
from doublure.auditing.white_box import WhiteBoxAccess
from doublure.encode.choice import encoder_for
from doublure.methods.latentgan.training import build_inversion, public_networks
from doublure.methods.statistics.tables import group_rows
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.run.synthesizer import Synthesizer
from doublure.training.gan_loop import Adversaries

ROWS = """
doublure: 1
kind: table
units: 60
columns:
  a: {type: real, bounds: [0, 1], missing: false}
  b: {type: category, values: [x, y, z], missing: false}
  c: {type: category, values: [low, high], missing: false, roles: [condition]}
"""
PICTURES = """
doublure: 1
kind: images
units: 60
images: {shape: [8, 8, 1]}
label: {values: [0, 1], roles: [condition]}
"""
GAN = {"steps": 4, "lot_size": 12, "generator_batch": 8, "checkpoints": 1, "noise_width": 4}
TABLE = GAN | {"width": 8, "critic_width": 8}
STAGE = {"critic_share": 0.3, "critic_steps": 3, "critic_lot": 20, "fit_steps": 4}
CASES = {
    "dpgan": (ROWS, TABLE),
    "noisecritic": (ROWS, TABLE | {"features": 4}),
    "guided": (ROWS, STAGE | {"components": 4, "critic_width": 8}),
    "guided on images": (
        PICTURES,
        STAGE | {"features": 64, "batch": 20, "channels": [6, 4], "hidden": 8, "critic_channels": [4],
                 "labeller_share": 0},
    ),
}  # fmt: skip


READINGS = """
doublure: 1
kind: series
units: 60
series: {time: t, length: 6, step: 1h, timezone: UTC, gaps: missing}
channels:
  litres: {type: real, bounds: [0, 10], missing: true}
  valve: {type: integer, bounds: [0, 3], missing: false}
attributes: {place: {type: category, values: [hill, coast], missing: false}}
"""


def records(text):
    rng = np.random.default_rng(0)
    if text is PICTURES:
        return {"images": rng.integers(0, 256, (60, 8, 8, 1), dtype=np.uint8), "labels": rng.integers(0, 2, 60)}
    draws = {"a": rng.random(60), "b": rng.choice(list("xyz"), 60), "c": rng.choice(["low", "high"], 60)}
    return pd.DataFrame(draws)


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_the_critic_that_was_taught(case, tmp_path, monkeypatch):
    trained: list[Adversaries] = []
    made = Adversaries.__init__
    monkeypatch.setattr(
        Adversaries, "__init__", lambda self, *given, **more: (made(self, *given, **more), trained.append(self))[0]
    )
    text, settings = CASES[case]
    method = case.split()[0]
    of_groups, tables = group_rows.with_group_view, []
    monkeypatch.setattr(
        group_rows, "with_group_view", lambda job, own, count: (tables.append(own), of_groups(job, own, count))[1]
    )
    budget = {} if method == "noisecritic" else {"epsilon": 4.0, "delta": 1e-4, "accountant": "rdp"}
    plan = db.plan(db.Schema.parse(text), method=method, **budget, **settings)
    book = db.Ledger.create(tmp_path / "l", dataset="x", epsilon=9.0, delta=1e-3)
    db.fit(records(text), plan, ledger=book, out=tmp_path / "run", seed=1)
    folder = RunFolder.open(tmp_path / "run")
    syn = read_synthesizer(folder)
    content = db.evaluate.evaluation.load_both(syn, records(text), None)[0].content
    encoder = encoder_for(syn.schema, plan.settings.encoding)
    (adversaries,) = trained
    if method == "noisecritic":
        adversaries.critic.layer.forward = adversaries.critic.layer.clipped  # the score that no noise is added to
    rows = encoder.split(encoder.encode(content))
    if tables:  # guided's critic of a table takes the groups that pairs were counted in
        rows = group_rows.make_group_view(tables[0]).one_hot(torch.from_numpy(rows[0])), None
    with torch.no_grad():
        wanted = adversaries.critic.eval()(*rows)
    found = WhiteBoxAccess(syn, folder.load()).critic(content)
    assert found == pytest.approx(wanted.double().numpy(), rel=1e-5, abs=1e-6)
    assert len(set(found.round(6))) > (3 if tables else 10)  # of groups there are few, by the noise


def test_the_critic_of_latents_is_asked_through_the_public_generator(letters, tmp_path, monkeypatch):
    trained: list[Adversaries] = []
    made = Adversaries.__init__
    monkeypatch.setattr(
        Adversaries, "__init__", lambda self, *given, **more: (made(self, *given, **more), trained.append(self))[0]
    )
    public = tmp_path / "public"
    shutil.copytree(letters.folder, public)
    plan = letters.plan(public=str(public))
    book = db.Ledger.create(tmp_path / "l", dataset="x", epsilon=9.0, delta=1e-3)
    db.fit(letters.private, plan, ledger=book, out=tmp_path / "run", seed=1)
    folder = RunFolder.open(tmp_path / "run")
    syn = read_synthesizer(folder)
    content = db.evaluate.evaluation.load_both(syn, letters.private, None)[0].content.take(np.arange(20))
    encoder = encoder_for(syn.schema, plan.settings.encoding)
    body, condition = encoder.split(encoder.encode(content))
    latents = build_inversion(encoder, plan.settings, *public_networks(encoder, plan.settings)[:2])(body)
    with torch.no_grad():
        wanted = trained[0].critic.eval()(latents, condition)
    critic = WhiteBoxAccess(syn, folder.load()).critic
    assert critic(content) == pytest.approx(wanted.double().numpy(), rel=1e-5, abs=1e-6)
    assert len(set(critic(content).round(6))) > 10
    shutil.rmtree(public)
    assert WhiteBoxAccess(syn, folder.load()).critic is None


@pytest.mark.parametrize("method", ["statistics", "dpgan"])
def test_series_are_crafted_whatever_the_encoder(method):
    """Statistics sees series as codes, a critic as numbers; of either, canaries are made."""
    plan = db.plan(db.Schema.parse(READINGS), method=method, epsilon=4.0, delta=1e-4, accountant="rdp")
    schema = plan.schema.resolve({})
    synthesizer = Synthesizer(schema=schema, plan=plan, guarantee=plan.guarantee, generator=torch.nn.Identity())
    crafted = WhiteBoxAccess(synthesizer, None).crafted(200, np.random.default_rng(0))
    litres, valve = (crafted.channel(name) for name in ("litres", "valve"))
    assert set(np.unique(valve)) == {0, 1, 2, 3}
    assert np.nanmin(litres) < 1 < 9 < np.nanmax(litres)
    assert set(crafted.attributes["place"]) == {"hill", "coast"}
    assert len({row.tobytes() for row in crafted.values}) > 180


def test_what_is_crafted_is_all_over_the_schema():
    plan = db.plan(db.Schema.parse(ROWS), method="statistics", epsilon=4.0, delta=1e-4, accountant="rdp")
    synthesizer = Synthesizer(
        schema=plan.schema.resolve({}), plan=plan, guarantee=plan.guarantee, generator=torch.nn.Identity()
    )
    crafted = WhiteBoxAccess(synthesizer, None).crafted(300, np.random.default_rng(0))
    assert crafted["a"].min() < 0.1 < 0.9 < crafted["a"].max()
    assert set(crafted["b"]) == set("xyz")
    assert set(crafted["c"]) == {"low", "high"}


def test_a_critic_whose_groups_were_not_kept_is_not_asked(tmp_path):
    text, settings = CASES["guided"]
    plan = db.plan(db.Schema.parse(text), method="guided", epsilon=4.0, delta=1e-4, accountant="rdp", **settings)
    book = db.Ledger.create(tmp_path / "l", dataset="x", epsilon=9.0, delta=1e-3)
    db.fit(records(text), plan, ledger=book, out=tmp_path / "run", seed=1)
    folder = RunFolder.open(tmp_path / "run")
    kept, syn = folder.load(), read_synthesizer(folder)
    assert not folder.answers.places()
    assert WhiteBoxAccess(syn, kept).critic is not None
    groups = [name for name in kept if name.startswith("critic/groups.")]
    assert "critic/groups.words" in groups
    for lost in groups:
        assert WhiteBoxAccess(syn, {name: value for name, value in kept.items() if name != lost}).critic is None
    for words in (b"{", b"7", b"[" * 200_000, b'{"axes": [], "components": 1}'):
        damaged = kept | {"critic/groups.words": np.frombuffer(words, dtype=np.uint8)}
        assert WhiteBoxAccess(syn, damaged).critic is None
