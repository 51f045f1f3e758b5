"""``latentgan`` from the command line; cut off while it inverts and while it learns, and resumed."""

from __future__ import annotations

import contextlib
import json
import stat
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import doublure as db
from doublure import public
from doublure.errors import DataError, Interrupted, LostRun, SettingError
from doublure.methods.latentgan import training as latent_training
from doublure.networks.inversion import Inversion
from doublure.private import independence
from doublure.private.noise import OsKeyedNoise
from doublure.run.answers import AnswersInFolder
from doublure.run.folder import RunFolder
from doublure.support.tensors import read_tensors

LABELLER = {"labeller_share": 0.5, "labeller_steps": 3, "view_images": 100, "view_width": 10, "tries": 2}


def test_the_whole_way_from_the_command_line(letters, tmp_path, run, doublure):
    np.savez(tmp_path / "odd.npz", **letters.public)
    np.savez(tmp_path / "even.npz", **letters.private)
    (tmp_path / "odd.yaml").write_text(letters.PUBLIC)
    (tmp_path / "even.yaml").write_text(letters.PRIVATE)
    (tmp_path / "p.yaml").write_text("".join(f"{key}: {value}\n" for key, value in letters.PROVENANCE.items()))
    own = letters.NETWORKS | {"objective": "autoencoder", "steps": 20}
    settings = [word for key, value in own.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    folder, ledger = tmp_path / "public", tmp_path / "l"
    asked = ["--schema", tmp_path / "odd.yaml", "--provenance", tmp_path / "p.yaml", "-o", folder]
    made = doublure("public", "fit", tmp_path / "odd.npz", *asked, *settings, "--seed", 1)
    assert doublure("public", "show", folder) == made
    code, said = run("public", "fit", tmp_path / "odd.npz", *asked)
    assert (code, said["error"]["code"]) == (2, "run_folder")
    look = ["public", "overlap", tmp_path / "odd.npz", "--schema", tmp_path / "odd.yaml", "--private"]
    found = doublure(*look, tmp_path / "even.npz")
    assert (found["internal"], found["private"], found["same"]) == (True, len(letters.private["images"]), 0)
    code, said = run("public", "show", tmp_path)
    assert (code, said["error"]["code"]) == (2, "run_folder")
    doublure("budget", "init", ledger, "--dataset", "even", "--epsilon", 2, "--delta", 1e-5)
    words = ["--method", "latentgan", "--epsilon", 2, "--delta", 1e-5, "--set", f"public={folder}"]
    words += ["--set", "teacher=mixture", "--set", "splits=0", "--set", "accountant=rdp"]
    plan = doublure("plan", tmp_path / "even.yaml", *words, "-o", tmp_path / "plan.json")
    assert plan["settings"]["public_facts"]["generator_sha256"] == made["generator_sha256"]
    fit = ["fit", tmp_path / "even.npz", "--plan", tmp_path / "plan.json", "--ledger", ledger, "-o", tmp_path / "run"]
    doublure(*fit)
    assert doublure("sample", tmp_path / "run", "-n", 12, "--given", "label=6", "-o", tmp_path / "a.npz")["rows"] == 12
    card = doublure("release", tmp_path / "run", "-n", 20, "-o", tmp_path / "bundle")["card"]
    sentence = card["guarantee"]["sentence"]
    assert f"and that the public generator (SHA-256 {made['generator_sha256'][:12]}…) was made and chosen" in sentence
    assert sentence.endswith("; what the public data itself tells about people who are in both.")
    assert doublure("verify", tmp_path / "bundle", "--ledger", ledger)["files"] == 6


def test_weights_of_somebody_else_from_the_command_line(letters, tmp_path, run, doublure):
    (tmp_path / "s.yaml").write_text(letters.PUBLIC)
    (tmp_path / "p.yaml").write_text("".join(f"{key}: {value}\n" for key, value in letters.PROVENANCE.items()))
    asked = ["--schema", tmp_path / "s.yaml", "--provenance", tmp_path / "p.yaml", "-o", tmp_path / "adopted"]
    weights = letters.folder / "generator.safetensors"
    code, said = run("public", "adopt", weights, *asked)
    assert not (tmp_path / "adopted").exists()
    assert (code, said["error"]["code"]) == (2, "run_folder")
    sizes = [f"{key}={json.dumps(letters.NETWORKS[key])}" for key in ("noise_width", "channels")]
    made = doublure("public", "adopt", weights, *asked, *[word for size in sizes for word in ("--set", size)])
    assert (made["objective"], made["encoder_sha256"]) == ("given", None)
    code, said = run("public", "adopt", weights, *asked, *[word for size in sizes for word in ("--set", size)])
    assert (code, "resume" in said["error"]["remedy"]) == (2, False)  # there is nothing to go on with


def on_records(monkeypatch, told):
    """Tell of each batch of records that is inverted; made-up ones, by which rows are tried for meeting, are none."""
    trying, tried, inverted = [], independence.refuse_meeting_rows, Inversion.__call__

    def tries(*arguments, **named):
        trying.append(True)
        try:
            tried(*arguments, **named)
        finally:
            trying.pop()

    def inverts(self, records):
        if not trying:
            told(records)
        return inverted(self, records)

    monkeypatch.setattr(independence, "refuse_meeting_rows", tries)
    monkeypatch.setattr(Inversion, "__call__", inverts)


@pytest.fixture(scope="module")
def batches(letters, tmp_path_factory):
    """Return how many batches of latents there are of all records."""
    seen, folder = [], tmp_path_factory.mktemp("batches")
    with pytest.MonkeyPatch.context() as patch:
        on_records(patch, lambda records: seen.append(len(records)))
        ledger = db.Ledger.create(folder / "l", dataset="even", epsilon=9.0, delta=1e-2)
        db.fit(letters.private, letters.plan(teacher="critic"), ledger=ledger)
    return len(seen)


@pytest.fixture
def stopped(letters, batches, tmp_path, monkeypatch):
    """Return a run that was stopped after two batches of latents, its plan, its ledger, the batches that are inverted
    from now on, and how many there are of all records.
    """
    plan = letters.plan(teacher="critic")
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    seen = []
    on_records(monkeypatch, lambda records: seen.append(len(records)))
    with monkeypatch.context() as patch:
        patch.setattr(
            "doublure.support.stopping.StopSignal.check",
            lambda self: (_ for _ in ()).throw(Interrupted("stopped")) if len(seen) >= 2 else None,
        )
        with pytest.raises(Interrupted) as caught:
            db.fit(letters.private, plan, ledger=book, out=tmp_path / "run", seed=1)
    assert str(caught.value).endswith("nothing was drawn yet, and its charge is kept; go on with --resume")
    seen.clear()
    return plan, book, tmp_path / "run", seen, batches


def test_a_stopped_inversion_goes_on_where_it_was(letters, stopped):
    plan, book, out, seen, whole = stopped
    (work,) = (out / "internal").glob("work-*")
    assert stat.S_IMODE(work.stat().st_mode) == 0o600
    metadata, tensors = read_tensors(work)
    assert 32 < len(tensors["latents"]) <= 64  # of two batches, which zeros may have filled up
    assert set(metadata) == {"key"}
    syn = db.fit(letters.private, plan, ledger=book, out=out, resume=True)
    assert len(seen) == whole - 2
    assert set(seen) == {32}
    assert not list((out / "internal").glob("work-*"))
    assert syn.sample(3, seed=1).images.shape == (3, 8, 8, 1)
    assert book.remaining.epsilon == pytest.approx(45.0)


@pytest.mark.parametrize("damage", ["cut", "another key", "gone"])
def test_latents_that_are_damaged_or_of_other_settings_are_found_again(letters, stopped, damage):
    plan, book, out, seen, whole = stopped
    (work,) = (out / "internal").glob("work-*")
    if damage == "cut":
        work.write_bytes(work.read_bytes()[:100])
    elif damage == "gone":
        work.unlink()
    else:
        folder = RunFolder(out)
        folder.keep("latents", read_tensors(work)[1], "another key")
    db.fit(letters.private, plan, ledger=book, out=out, resume=True)
    assert len(seen) == whole


@pytest.mark.parametrize("change", ["threads", "torch", "processor", "device"])
def test_latents_that_were_computed_otherwise_are_found_again(letters, stopped, monkeypatch, change):
    """Their last digits would be others than those of the latents beside them."""
    plan, book, out, seen, whole = stopped
    if change == "threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    elif change == "torch":
        monkeypatch.setattr(torch, "__version__", "9.9.9")
    elif change == "processor":
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "another")
    else:
        kept = latent_training.latents_key
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a large one")
        monkeypatch.setattr(latent_training, "latents_key", lambda job: kept(replace(job, device="cuda")))
    db.fit(letters.private, plan, ledger=book, out=out, resume=True)
    assert len(seen) == whole


def test_latents_of_other_data_are_found_again(letters, stopped):
    """A record that was among the first before and is among the last now would else count in two places."""
    plan, book, out, seen, whole = stopped
    turned = {name: values[::-1] for name, values in letters.private.items()}
    db.fit(turned, plan, ledger=book, out=out, resume=True)
    assert len(seen) == whole


def test_a_mistaken_resume_loses_no_latents(letters, stopped):
    """Hours of work must not go because the wrong file was named once."""
    plan, book, out, seen, whole = stopped
    strange = letters.private | {"labels": letters.private["labels"] + 1}
    with pytest.raises(DataError, match="outside the schema's list"):
        db.fit(strange, plan, ledger=book, out=out, resume=True)
    assert list((out / "internal").glob("work-*"))
    syn = db.fit(letters.private, plan, ledger=book, out=out, resume=True)
    assert len(seen) == whole - 2
    assert syn.guarantee.epsilon == 5.0
    assert book.remaining.epsilon == pytest.approx(45.0)


def test_a_run_in_memory_that_is_stopped_while_inverting_costs_nothing(letters, tmp_path, monkeypatch):
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    asked = []
    monkeypatch.setattr(
        "doublure.support.stopping.StopSignal.check",
        lambda self: (_ for _ in ()).throw(Interrupted("stopped")) if asked else None,
    )
    on_records(monkeypatch, lambda records: asked.append(1))
    with pytest.raises(Interrupted):
        db.fit(letters.private, letters.plan(), ledger=book)
    assert book.remaining.epsilon == 50.0


@pytest.mark.parametrize("release", [1, 2])
def test_a_lost_release_is_not_drawn_again_and_no_latents_are_left(letters, tmp_path, monkeypatch, release):
    plan = letters.plan(teacher="mixture", splits=1)
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    draws, whole = [], OsKeyedNoise.whole

    @contextlib.contextmanager
    def loses(answers, place, size):
        if place[0] == release - 1:
            yield lambda answer: (_ for _ in ()).throw(Interrupted("stopped"))
        with room(answers, place, size) as put:
            yield put

    monkeypatch.setattr(OsKeyedNoise, "whole", lambda self, *a, **k: (draws.append(1), whole(self, *a, **k))[1])
    with monkeypatch.context() as patch:
        room = AnswersInFolder.room
        patch.setattr(AnswersInFolder, "room", loses)
        with pytest.raises(Interrupted):
            db.fit(letters.private, plan, ledger=book, out=tmp_path / "run", seed=1)
    assert list((tmp_path / "run/internal").glob("work-*"))
    for _ in range(2):
        letters.refusal(LostRun, lambda: db.fit(letters.private, plan, ledger=book, out=tmp_path / "run", resume=True))
    assert len(draws) == release
    assert not list((tmp_path / "run/internal").glob("work-*"))  # nobody can go on with them
    assert book.remaining.epsilon == pytest.approx(45.0)


def test_a_generator_that_cannot_be_inverted_is_refused_before_anything_is_charged(letters, tmp_path, monkeypatch):
    weights = read_tensors(letters.folder / "generator.safetensors")[1]
    save_file({name: value * 1e30 for name, value in weights.items()}, tmp_path / "loud.safetensors")
    schema, own = (
        db.Schema.parse(letters.PUBLIC),
        {name: letters.NETWORKS[name] for name in ("noise_width", "channels")},
    )
    with monkeypatch.context() as patch:
        patch.setattr("doublure.public.fitting._refuse_unfit_to_invert", lambda *_: None)  # somebody else let it pass
        public.adopt(
            tmp_path / "loud.safetensors", schema, provenance=letters.PROVENANCE, out=tmp_path / "public", **own
        )
    plan = letters.plan(public=str(tmp_path / "public"))
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    error = letters.refusal(SettingError, lambda: db.fit(letters.private, plan, ledger=book, out=tmp_path / "run"))
    assert error.message == "makes numbers that are not finite"
    assert [record.kind for record in book.entries] == ["open"]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "draws"),
    [
        ({"teacher": "critic"}, 1),
        ({"teacher": "mixture", "splits": 1}, 1),
        ({"teacher": "mixture", "splits": 0} | LABELLER, 2),  # the labeller's first
    ],
)
def test_a_run_that_is_stopped_while_it_learns_goes_on(letters, tmp_path, monkeypatch, settings, draws):
    plan = letters.plan(**settings)
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    with monkeypatch.context() as patch:
        drawn = []
        for name in ("normal", "whole"):
            kept = getattr(OsKeyedNoise, name)
            patch.setattr(OsKeyedNoise, name, lambda self, *a, kept=kept: (drawn.append(1), kept(self, *a))[1])
        patch.setattr(
            "doublure.support.stopping.StopSignal.check",
            lambda self: (_ for _ in ()).throw(Interrupted("stopped")) if len(drawn) >= draws else None,
        )
        with pytest.raises(Interrupted):
            db.fit(letters.private, plan, ledger=book, out=tmp_path / "run", seed=1)
    assert len(drawn) == draws
    assert list((tmp_path / "run/internal").glob("work-*"))
    on_records(monkeypatch, lambda records: pytest.fail("inverted again"))
    syn = db.fit(letters.private, plan, ledger=book, out=tmp_path / "run", resume=True)
    assert not list((tmp_path / "run/internal").glob("work-*"))
    assert syn.sample(3, seed=1).images.shape == (3, 8, 8, 1)
    assert syn.guarantee.epsilon == 5.0
    assert book.remaining.epsilon == pytest.approx(45.0)
