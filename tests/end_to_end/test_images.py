"""The whole way of images from the command line, and of a few hundred real digits where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import doublure as db
from doublure.data.images import open_images
from doublure.private.records import PrivateRecords
from doublure.releasing.catalogue_names import NAMES

MNIST = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "mnist.npz"
TEXT = """
doublure: 1
kind: images
units: 120
images: {shape: [8, 8, 1]}
label: {values: [a, b, c], shares: {learn: 0.2}}
"""
TINY = {
    "steps": 6, "n_critic": 2, "lot_size": 12, "generator_batch": 6, "critic_channels": [4, 6], "channels": [6, 4],
    "features": 5, "checkpoints": 3, "noise_width": 4,
}  # fmt: skip


@pytest.fixture
def private():
    rng = np.random.default_rng(2)
    return {"images": rng.integers(0, 256, (120, 8, 8, 1), dtype=np.uint8), "labels": rng.choice(list("abc"), 120)}


@pytest.fixture
def ledger(tmp_path):
    return db.Ledger.create(tmp_path / "l", dataset="letters", epsilon=5.0, delta=1e-3)


def plan(method="dpgan", **changes):
    budget = {} if method == "gan" else {"epsilon": 2.0, "delta": 1e-4, "accountant": "rdp"}
    return db.plan(db.Schema.parse(TEXT), method=method, **(TINY | budget | changes))


def test_the_whole_way_from_the_command_line(tmp_path, private, run, doublure):
    np.savez(tmp_path / "d.npz", images=private["images"], y=private["labels"])
    (tmp_path / "s.yaml").write_text(TEXT)
    settings = [word for key, value in TINY.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    book, out, bundle = tmp_path / "l", tmp_path / "run", tmp_path / "bundle"
    assert doublure("schema", "draft", tmp_path / "d.npz", "-o", tmp_path / "draft.yaml")["undeclared"]
    assert doublure("schema", "check", tmp_path / "s.yaml", "--data", tmp_path / "d.npz")["ok"]
    doublure("budget", "init", book, "--dataset", "letters", "--epsilon", 2, "--delta", 1e-4)
    asked = ["--schema", tmp_path / "s.yaml", "--method", "dpgan", "--epsilon", 2, "--delta", 1e-4]
    doublure("fit", tmp_path / "d.npz", *asked, *settings, "--ledger", book, "-o", out)
    for name, given in (("a.npz", ["--given", "label=b"]), ("a.png", []), ("folder", [])):
        assert doublure("sample", out, "-n", 30, *given, "--seed", 4, "-o", tmp_path / name)["rows"] == 30
    with np.load(tmp_path / "a.npz") as arrays:
        assert set(arrays["labels"]) == {"b"}
        assert arrays["images"].shape == (30, 8, 8, 1)
    assert "differential-privacy" in Image.open(tmp_path / "a.png").text["watermark"]
    schema = db.load(out).schema
    assert len(open_images(tmp_path / "folder").load(schema).content) == 30
    card = doublure("release", out, "-n", 600, "-o", bundle, "--seed", 5)["card"]
    assert {path.name for path in bundle.iterdir()} == {"data.npz", "card.json", "card.html", "dictionary.json", *NAMES}
    assert card["files"][0]["rows"] == 600
    assert doublure("verify", bundle, "--ledger", book)["files"] == 6
    assert len(open_images(bundle / "data.npz").load(schema).content) == 600
    assert (bundle / "card.html").read_text().count("data:image/png;base64,") == 3  # a class each
    described = json.loads((bundle / "dictionary.json").read_text())
    assert described["images"]["shape"] == [8, 8, 1]
    assert described["columns"][0]["values"] == ["a", "b", "c"]
    code, said = run("release", out, "-n", 5, "-o", tmp_path / "b2", "--format", "csv")
    assert (code, said["error"]["field"]) == (2, "format csv")


def test_evaluate_from_the_command_line(tmp_path, private, ledger, monkeypatch, doublure):
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 1)
    monkeypatch.setattr("doublure.measures.images.classifiers.LEAST_STEPS", 5)
    np.savez(tmp_path / "d.npz", **private)
    db.fit(private, plan("gan"), ledger=ledger, out=tmp_path / "run", seed=1)
    found = doublure("evaluate", tmp_path / "run", "--real", tmp_path / "d.npz", "-o", tmp_path / "page.html")
    assert found["internal"]
    assert len(found["report"]["images"]["classifiers"]) == 4
    assert "INTERNAL" in (tmp_path / "page.html").read_text()


def test_inspect_against_several_runs_from_the_command_line(tmp_path, private, ledger, monkeypatch, run, doublure):
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 1)
    monkeypatch.setattr("doublure.measures.images.classifiers.LEAST_STEPS", 5)
    monkeypatch.setattr("doublure.measures.images.alterations.FEWEST", 100)
    for name in ("run", "last", "north"):
        db.fit(private, plan("gan"), ledger=ledger, out=tmp_path / name)
    against = [word for name in ("last", "north") for word in ("--against", tmp_path / name)]
    for words, others in (([], 0), (against[:2], 1), (against, 2)):
        found = doublure("inspect", tmp_path / "run", *words, "--images", 40, "-o", tmp_path / "page.html")[
            "inspection"
        ]
        assert len(found["against"]) == others
        assert {len(entry["references"]) for entry in found["fault_tests"]} == {others}
        assert (tmp_path / "page.html").read_text().count("data:image/png") == 1 + others
        assert json.loads((tmp_path / "page.json").read_text()) == found
    (tmp_path / "again").symlink_to(tmp_path / "last")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for names, said in (
        (("last", "again"), "names a run twice"),
        (("run",), "names a run twice"),
        (("loop",), "run folder"),
    ):
        words = [word for name in names for word in ("--against", tmp_path / name)]
        code, refused = run("inspect", tmp_path / "run", *words)
        assert code == 2
        assert said in refused["error"]["message"] + refused["error"]["code"].replace("_", " ")


def test_images_are_compared_in_the_features_that_are_named(tmp_path, private, ledger, monkeypatch, doublure, run):
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 1)
    monkeypatch.setattr("doublure.measures.images.classifiers.LEAST_STEPS", 5)
    np.savez(tmp_path / "d.npz", **private)
    db.fit(private, plan("gan"), ledger=ledger, out=tmp_path / "run", seed=1)
    asked = ["evaluate", tmp_path / "run", "--real", tmp_path / "d.npz", "--features"]
    found = doublure(*asked, "pixels", "-o", tmp_path / "page.html")["report"]["images"]["resemblance"]
    assert [score["name"].partition(" (")[2] for score in found] == [
        "pixels)",
        "classifier of real images)",
        "pixels)",
        "pixels)",
    ]
    assert "Recall (pixels)" in (tmp_path / "page.html").read_text()
    for words in ("eyes", "inception-v3", "pixels=x"):
        code, said = run(*asked, words)
        assert (code, said["error"]["field"]) == (2, "features")


def test_samples_repeat_themselves_in_memory_and_on_disk(tmp_path, private, ledger):
    syn = db.fit(private, plan(), ledger=ledger, out=tmp_path / "run", seed=1)
    one, two = syn.sample(1203, seed=3), db.load(tmp_path / "run").sample(1203, seed=3)
    assert one.images.shape == (1203, 8, 8, 1)
    assert np.array_equal(one.images, two.images)
    assert one.labels.tolist() == two.labels.tolist()
    assert [len(part) for part in syn.sample_chunks(1203)] == [500, 500, 203]
    assert len(syn.sample(0)) == 0
    assert set(syn.sample(5, given={"label": "c"}).labels) == {"c"}
    assert sum(syn.schema.label.shares.values()) == pytest.approx(1)  # bought


def test_batch_normalisation_survives_saving(tmp_path, private, ledger):
    syn = db.fit(private, plan("gan", normalisation="batch"), ledger=ledger, seed=1)
    moved = [value for name, value in syn.generator.state_dict().items() if "running_mean" in name]
    assert all(bool((value != 0).any()) for value in moved)
    syn.save(tmp_path / "run")
    assert np.array_equal(db.load(tmp_path / "run").sample(9, seed=2).images, syn.sample(9, seed=2).images)


@pytest.mark.parametrize("kind", ["one image short of labels", "a cut-off file", "another size"])
def test_bad_data_costs_nothing(tmp_path, private, ledger, kind):
    data = dict(private)
    if kind == "one image short of labels":
        data["labels"] = data["labels"][:-1]
    elif kind == "another size":
        data["images"] = data["images"][:, :7]
    if kind == "a cut-off file":
        np.savez(tmp_path / "d.npz", **data)
        (tmp_path / "d.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:-200])
        data = tmp_path / "d.npz"
    with pytest.raises(db.errors.DataError):
        db.fit(data, plan(), ledger=ledger, out=tmp_path / "run")
    assert ledger.remaining.epsilon == 5.0
    assert not (tmp_path / "run").exists()


def test_no_image_is_opened_before_the_ledger_has_the_charge(tmp_path, private, ledger, monkeypatch):
    """Containers and headers are looked at first; a picture is a record."""
    for number, (pixels, label) in enumerate(zip(private["images"], private["labels"], strict=True)):
        place = tmp_path / "set" / label
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[:, :, 0]).save(place / f"{number}.png")
    from doublure.data.images import files

    content, seen = files.content_of, []

    def watched(path):
        seen.append(ledger.remaining.epsilon)
        return content(path)

    monkeypatch.setattr(files, "content_of", watched)
    db.fit(tmp_path / "set", plan(), ledger=ledger, seed=1)
    assert len(seen) == 120
    assert set(seen) == {3.0}


def test_what_a_run_keeps_holds_no_private_image(tmp_path, private, ledger):
    """Nothing that was kept contains a row of an image's pixels; the records themselves are bytes, and never saved."""
    made = []
    old = PrivateRecords.__init__

    def remembering(records, compact, *rest, **more):
        made.append((str(compact.dtype), len(compact)))
        old(records, compact, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateRecords, "__init__", remembering)
        db.fit(private, plan(), ledger=ledger, out=tmp_path / "run", seed=1)
    assert made == [("uint8", 0), ("uint8", 120)]  # a rehearsal's are of nobody
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    rows = {image[row].tobytes() for image in private["images"] for row in range(8)}
    assert not any(row in kept for row in rows)


def test_a_few_hundred_real_digits(tmp_path, ledger):
    if not MNIST.exists():
        pytest.skip("mnist.npz is not here")
    with np.load(MNIST) as arrays:
        data = {"x": arrays["x_train"][:300], "y": arrays["y_train"][:300]}
    text = TEXT.replace("[8, 8, 1]", "[28, 28, 1]").replace("[a, b, c], shares: {learn: 0.2}", str(list(range(10))))
    made = db.plan(db.Schema.parse(text), method="gan", **(TINY | {"steps": 12}))
    syn = db.fit(data, made, ledger=ledger, seed=1)
    assert syn.sample(20, seed=1).images.shape == (20, 28, 28, 1)
    loaded = open_images(f"{MNIST}#test")
    assert loaded.shape == (28, 28, 1)
