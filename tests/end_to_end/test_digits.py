"""``statistics`` and ``guided`` on real digits, the whole way; and cut off at every stage, and resumed."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import pytest
import torch
from tiers import crossed

import doublure as db
from doublure.data.images import open_images
from doublure.errors import RunFolderError, SettingError
from doublure.methods.statistics.images import mean_embedding
from doublure.methods.statistics.images.mean_embedding import GeneratorFit
from doublure.private.noise import OsKeyedNoise
from doublure.run.answers import AnswersInFolder
from doublure.support.tensors import read_tensors

UNITS, STEPS = 1797, 5
TEXT = f"""
doublure: 1
kind: images
units: {UNITS}
images: {{shape: [8, 8, 1]}}
label: {{values: [{", ".join(map(str, range(10)))}]}}
"""
SMALL: dict[str, Any] = {
    "features": 64, "fit_steps": 4, "batch": 40, "latent": 3, "hidden": 8, "channels": [6, 4],
}  # fmt: skip
LABELLER: dict[str, Any] = {
    "labeller_steps": STEPS,
    "view_images": 100,
    "view_width": 12,
    "tries": 2,
    "labels_compared": False,
}
METHODS: dict[str, dict[str, Any]] = {"statistics": SMALL, "guided": SMALL | LABELLER}
BY_GAUSSIANS: dict[str, dict[str, Any]] = {
    "statistics": {"model": "gaussian"},
    "guided": {"model": "gaussian"} | LABELLER,
}


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    torch.set_num_threads(1)
    bunch = load_digits()
    return {"images": (bunch.images * 255 / 16).round().astype(np.uint8)[..., None], "labels": bunch.target}


@pytest.fixture
def book(tmp_path):
    return db.Ledger.create(tmp_path / "digits.ledger", dataset="digits", epsilon=5.0, delta=1e-3)


@pytest.fixture(scope="module")
def plans():
    schema = db.Schema.parse(TEXT)
    return {
        name: db.plan(schema, method=name, epsilon=2.0, delta=1e-5, accountant="rdp", **own)
        for name, own in METHODS.items()
    }


@pytest.mark.parametrize(("method", "drawn_by"), crossed([*METHODS], ["networks", "Gaussians"]))
def test_the_whole_way_from_the_command_line(tmp_path, digits, drawn_by, method, run, doublure):
    chosen = {"networks": METHODS, "Gaussians": BY_GAUSSIANS}[drawn_by][method]
    np.savez(tmp_path / "d.npz", **digits)
    (tmp_path / "s.yaml").write_text(TEXT)
    settings = [word for key, value in chosen.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    ledger, out, bundle = tmp_path / "l", tmp_path / "run", tmp_path / "bundle"
    doublure("budget", "init", ledger, "--dataset", "digits", "--epsilon", 2, "--delta", 1e-5)
    asked = ["--method", method, "--epsilon", 2, "--delta", 1e-5, *settings]
    made = doublure("plan", tmp_path / "s.yaml", *asked, "-o", tmp_path / "plan.json")
    assert made["steps"] == (1 + STEPS if method == "guided" else 1)
    doublure("fit", tmp_path / "d.npz", "--plan", tmp_path / "plan.json", "--ledger", ledger, "-o", out)
    again = ("fit", tmp_path / "d.npz", "--plan", tmp_path / "plan.json", "--ledger", ledger, "-o", tmp_path / "second")
    for words, field in (((), "again"), (("--again",), "epsilon")):
        code, said = run(*again, *words)
        assert (code, said["error"]["field"]) == (3, field)
    words = ["--given", "label=7", "--seed", 4]
    assert doublure("sample", out, "-n", 30, *words, "-o", tmp_path / "a.npz")["rows"] == 30
    with np.load(tmp_path / "a.npz") as arrays:
        assert set(arrays["labels"].astype(str)) == {"7"}
        assert arrays["images"].shape == (30, 8, 8, 1)
        assert arrays["images"].std() > 5
    card = doublure("release", out, "-n", 300, "-o", bundle, "--seed", 5)["card"]
    assert (card["method"], card["guarantee"]["kind"], card["guarantee"]["epsilon"]) == (method, "dp", 2.0)
    assert [touch["event"]["steps"] for touch in card["touches"]] == ([1, STEPS] if method == "guided" else [1])
    assert doublure("verify", bundle, "--ledger", ledger)["files"] == 6
    syn = db.load(out)
    assert len(open_images(bundle / "data.npz").load(syn.schema).content) == 300
    assert np.array_equal(syn.sample(30, given={"label": 7}, seed=4).images, np.load(tmp_path / "a.npz")["images"])
    assert len(syn.sample(0)) == 0


@pytest.mark.parametrize("method", METHODS)
def test_what_is_kept_in_memory_and_on_disk_is_the_same(tmp_path, digits, book, plans, method):
    syn = db.fit(digits, plans[method], ledger=book, seed=1)
    syn.save(tmp_path / "run")
    again = db.load(tmp_path / "run")
    assert again.guarantee == syn.guarantee == plans[method].guarantee
    one, two = syn.sample(700, seed=3), again.sample(700, seed=3)
    assert np.array_equal(one.images, two.images)
    assert one.labels.tolist() == two.labels.tolist()
    assert not np.array_equal(syn.sample(700, seed=4).images, one.images)
    assert set(one.labels.astype(str)) == {*map(str, range(10))}


def test_gaussians_draw_what_digits_have_in_common(tmp_path, digits, book):
    """From memory and from the disk, the same; of their own label, and not of another."""
    plan = db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=2.0, delta=1e-5, model="gaussian")
    assert plan.settings.latent == 8 * 8 + 1
    syn = db.fit(digits, plan, ledger=book, out=tmp_path / "run", seed=1)
    drawn = syn.sample(1000, seed=3)
    assert np.array_equal(db.load(tmp_path / "run").sample(1000, seed=3).images, drawn.images)
    labels = drawn.labels.to_numpy().astype(int)
    means = [
        np.stack([images[of == label].mean(0).ravel() for label in range(10)])
        for images, of in ((drawn.images, labels), (digits["images"], digits["labels"]))
    ]
    alike = np.corrcoef(*means)[:10, 10:]
    assert (alike.argmax(axis=1) == range(10)).sum() >= 8


def test_a_critic_refines_no_gaussian():
    asked = {"method": "guided", "epsilon": 2.0, "delta": 1e-5, "model": "gaussian"}
    with pytest.raises(SettingError, match="a Gaussian has none; set model=network"):
        db.plan(db.Schema.parse(TEXT), critic_share=0.2, **asked)


@pytest.mark.parametrize(("at", "lost"), [({"draw": 4}, 1), ({"keep": 3}, 1)])
def test_a_labeller_of_what_gaussians_draw_goes_on_where_it_was(tmp_path, digits, book, watch, at, lost):
    plan = db.plan(
        db.Schema.parse(TEXT), method="guided", epsilon=2.0, delta=1e-5, accountant="rdp", **BY_GAUSSIANS["guided"]
    )
    begun(digits, plan, book, tmp_path, watch, **at)
    taken = len(watch.draws)
    syn = resumed(digits, plan, book, tmp_path)
    assert len(watch.draws) == 1 + STEPS
    assert taken == next(iter(at.values()))
    assert closed(book)[-1] == ("done", 1 + STEPS)
    assert len(syn.sample(9, given={"label": 3})) == 9


def test_what_only_sampling_asks_can_be_changed_for_nothing(tmp_path, digits, book, plans, run, doublure):
    syn = db.fit(digits, plans["guided"], ledger=book, out=tmp_path / "run", seed=1)
    spent, usual = book.spent, syn.sample(50, seed=3).images
    wide = syn.sampling_with(sampled_spread=3.0, sampled_warp=0)
    drawn = wide.sample(50, seed=3).images
    assert not np.array_equal(drawn, usual)
    assert np.array_equal(syn.sample(50, seed=3).images, usual)
    back = {name: getattr(plans["guided"].settings, name) for name in ("sampled_spread", "sampled_warp")}
    assert np.array_equal(wide.sampling_with(**back).sample(50, seed=3).images, usual)
    assert wide.guarantee == syn.guarantee
    assert not np.array_equal(syn.sampling_with(label_margin=100).sample(50, seed=3).images, usual)
    wide.save(tmp_path / "wide")
    assert np.array_equal(db.load(tmp_path / "wide").sample(50, seed=3).images, drawn)
    words = ["--set", "sampled_spread=3", "--set", "sampled_warp=0", "--seed", 3]
    doublure("sample", tmp_path / "run", "-n", 50, *words, "-o", tmp_path / "a.npz")
    assert np.array_equal(np.load(tmp_path / "a.npz")["images"], drawn)
    doublure("release", tmp_path / "run", "-n", 50, *words, "-o", tmp_path / "bundle")
    assert np.array_equal(np.load(tmp_path / "bundle" / "data.npz")["images"], drawn)
    assert book.spent == spent
    for word, field in (("features=128", "features"), ("sampled_spread=-1", "sampled_spread"), ("x=1", "x")):
        code, said = run("sample", tmp_path / "run", "-n", 5, "--set", word, "-o", tmp_path / "b.npz")
        assert (code, said["error"]["field"]) == (2, field)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_fit_depended_on_cannot_be_changed_when_sampling(digits, book, method):
    own = METHODS[method] | ({"labeller_share": 0} if method == "guided" else {})
    made = db.plan(db.Schema.parse(TEXT), method=method, epsilon=1.0, delta=1e-5, accountant="rdp", **own)
    syn = db.fit(digits, made, ledger=book, seed=1)
    with pytest.raises(SettingError, match="fit again"):
        syn.sampling_with(sampled_spread=2)


def test_images_without_labels(tmp_path, digits, book):
    schema = db.Schema.parse(TEXT.partition("label")[0])
    for method, more in (("statistics", {}), ("guided", {"labeller_share": 0})):
        made = db.plan(schema, method=method, epsilon=1.0, delta=1e-5, accountant="rdp", **SMALL, **more)
        syn = db.fit({"images": digits["images"]}, made, ledger=book, seed=1)
        assert syn.sample(20, seed=1).labels is None


# -- cut off and resumed -----------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for the end of the process."""


class Watch:
    """Counts draws and steps of the generator, and ends the run where it is told to.

    A rehearsal draws nothing, and is over before anything is drawn: its steps do not count.
    """

    def __init__(self, patch):
        self.draws, self.steps, self.at = [], 0, {}
        whole, step, room = OsKeyedNoise.whole, GeneratorFit.step, AnswersInFolder.room

        def drawn(source, size, std, unit):
            self.draws.append(size)
            self.end("draw", len(self.draws))
            return whole(source, size, std, unit)

        def stepped(generator_fit):
            if self.draws:
                self.steps += 1
                self.end("step", self.steps)
            step(generator_fit)

        @contextlib.contextmanager
        def kept(answers, place, size):
            with room(answers, place, size) as put:

                def keeps(answer):
                    self.end("keep", len(self.draws))
                    put(answer)

                yield keeps

        patch.setattr(OsKeyedNoise, "whole", drawn)
        patch.setattr(GeneratorFit, "step", stepped)
        patch.setattr(AnswersInFolder, "room", kept)

    def end(self, what, number):
        if self.at.get(what) == number:
            self.at.clear()
            raise Killed


@pytest.fixture
def watch(monkeypatch):
    return Watch(monkeypatch)


def closed(book):
    return [(record.body["status"], record.body["steps"]) for record in book.entries if record.kind == "close"]


def begun(digits, plan, book, folder, watch, **at):
    """Fit, and end where it is said."""
    watch.at = dict(at)
    with pytest.raises(Killed):
        db.fit(digits, plan, ledger=book, out=folder / "run", seed=1)
    assert not watch.at


def resumed(digits, plan, book, folder):
    return db.fit(digits, plan, ledger=book, out=folder / "run", resume=True)


def kept(folder):
    """Return what a run has kept; the statistics' part under its own names, whether there are other stages or not."""
    found = read_tensors(folder / "run" / "internal" / "checkpoint.safetensors")[1]
    return {name.removeprefix("statistics/"): value for name, value in found.items()}


def answers(folder):
    """Return what a run has drawn and kept."""
    return AnswersInFolder(folder / "run" / "internal")


@pytest.mark.parametrize("method", METHODS)
def test_cut_off_after_the_release(tmp_path, digits, book, plans, watch, method):
    begun(digits, plans[method], book, tmp_path, watch, step=1)
    assert answers(tmp_path).places() == {(0, 0)}
    syn = resumed(digits, plans[method], book, tmp_path)
    steps = plans[method].steps
    assert len(watch.draws) == steps  # nothing was drawn twice
    assert not answers(tmp_path).places()
    assert [status for status, _ in closed(book)] == ["aborted", "done"]
    assert closed(book)[-1] == ("done", steps)
    assert book.spent.epsilon == 2.0
    assert len(syn.sample(9)) == 9


@pytest.mark.parametrize("method", METHODS)
def test_other_records_do_not_go_on_with_what_these_have_taught(tmp_path, digits, book, plans, watch, method):
    """Each would be protected, and the run would speak of neither data set."""
    begun(digits, plans[method], book, tmp_path, watch, step=1)
    negative, relabelled = (digits[name].copy() for name in ("images", "labels"))
    negative[3] = 255 - negative[3]
    relabelled[3] = (relabelled[3] + 1) % 10
    changed = {
        "an image": digits | {"images": negative},
        "a label": digits | {"labels": relabelled},
        "fewer": {name: values[1:] for name, values in digits.items()},
        "another order": {name: values[::-1] for name, values in digits.items()},
    }
    drawn, before = len(watch.draws), answers(tmp_path).read((0, 0)).noisy
    for others in [*changed.values(), changed["an image"]]:  # nor does one that was refused before
        with pytest.raises(RunFolderError, match="was begun with other records, or in another order"):
            resumed(others, plans[method], book, tmp_path)
    assert len(watch.draws) == drawn
    assert np.array_equal(answers(tmp_path).read((0, 0)).noisy, before)
    resumed(digits, plans[method], book, tmp_path)
    assert closed(book)[-1] == ("done", plans[method].steps)
    assert book.spent.epsilon == 2.0


@pytest.mark.parametrize("method", METHODS)
def test_cut_off_before_the_release_was_kept(tmp_path, digits, book, plans, watch, method):
    """Its price covers one draw: what was lost is not drawn again, and stays charged."""
    begun(digits, plans[method], book, tmp_path, watch, keep=1)
    assert len(watch.draws) == 1
    with pytest.raises(RunFolderError):
        resumed(digits, plans[method], book, tmp_path)
    assert len(watch.draws) == 1
    assert book.spent.epsilon == 2.0


def test_cut_off_before_anything_was_drawn(tmp_path, digits, book, plans, monkeypatch):
    asked = mean_embedding.FeatureSum.__call__

    def dies(summand, records, labels):
        if (tmp_path / "run").exists():  # and the rehearsal is over
            raise Killed
        return asked(summand, records, labels)

    monkeypatch.setattr(mean_embedding.FeatureSum, "__call__", dies)
    with pytest.raises(Killed):
        db.fit(digits, plans["guided"], ledger=book, out=tmp_path / "run")
    assert book.spent.epsilon == 0
    assert closed(book) == [("no-noise-drawn", 0)]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", METHODS)
def test_cut_off_while_the_generator_is_taught(tmp_path, digits, book, plans, watch, monkeypatch, method):
    monkeypatch.setattr(mean_embedding, "_KEPT_EVERY", 2)
    begun(digits, plans[method], book, tmp_path, watch, step=4)
    assert kept(tmp_path)["fit_step"].tolist() == [2]
    watch.steps = 0
    resumed(digits, plans[method], book, tmp_path)
    assert watch.steps == 2  # steps 3 and 4: they are free, and what was kept is gone on from
    assert len(watch.draws) == plans[method].steps
    assert closed(book)[-1] == ("done", plans[method].steps)
    assert book.spent.epsilon == 2.0


@pytest.mark.parametrize(("at", "lost"), [({"draw": 4}, 1), ({"keep": 4}, 1), ({"draw": 2}, 1)])
def test_cut_off_while_the_labeller_is_taught(tmp_path, digits, book, plans, watch, at, lost):
    """Steps that were authorised and lost count: so many fewer are left."""
    begun(digits, plans["guided"], book, tmp_path, watch, **at)
    step = next(iter(at.values()))
    assert len(watch.draws) == step
    states = kept(tmp_path)
    assert states["fit_step"].tolist() == [4]
    assert "labeller/centre" in states
    watch.steps = 0
    syn = resumed(digits, plans["guided"], book, tmp_path)
    assert watch.steps == 0
    assert len(watch.draws) == 1 + STEPS  # the lost one is among them
    assert watch.draws == [10 * 65, *[10 * 12] * STEPS]
    assert closed(book)[-1] == ("done", 1 + STEPS)
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {"resumed_at": step, "from_state_of": 1} in log
    assert [entry["lost"] for entry in db.load(tmp_path / "run").executed] == [0, lost]
    assert len(syn.sample(9, given={"label": 3})) == 9


def test_cut_off_when_the_last_step_was_drawn(tmp_path, digits, book, plans, watch):
    """Nothing is left to draw: the labeller ends with the steps that were kept."""
    begun(digits, plans["guided"], book, tmp_path, watch, keep=1 + STEPS)
    resumed(digits, plans["guided"], book, tmp_path)
    assert len(watch.draws) == 1 + STEPS
    assert closed(book)[-1] == ("done", 1 + STEPS)


def test_cut_off_again_and_again(tmp_path, digits, book, plans, watch):
    begun(digits, plans["guided"], book, tmp_path, watch, draw=2)
    for at in ({"draw": 3}, {"keep": 4}, {"draw": 5}):
        watch.at = dict(at)
        with pytest.raises(Killed):
            resumed(digits, plans["guided"], book, tmp_path)
    resumed(digits, plans["guided"], book, tmp_path)
    assert len(watch.draws) == 1 + STEPS
    assert book.spent.epsilon == 2.0
    with pytest.raises(RunFolderError, match="is finished"):
        resumed(digits, plans["guided"], book, tmp_path)
