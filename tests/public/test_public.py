"""Public generators: made, adopted, cut off and resumed; hostile files and a provenance that says too little."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch

import doublure as db
from doublure import public
from doublure.encode.choice import encoder_for
from doublure.errors import InputError, Interrupted, RunFolderError, SchemaError, SettingError
from doublure.networks.detail import ImageDetail
from doublure.public import training as public_training
from doublure.public.architectures import inversion_encoder_of
from doublure.public.facts import Provenance, record_form
from doublure.public.folder import PublicFolder, read_weights
from doublure.public.settings import read
from doublure.training.architectures import generator_of

ROWS = """
doublure: 1
kind: table
columns:
  age: {type: integer, bounds: [0, 100], missing: false}
  job: {type: category, values: [cook, nurse], missing: false}
  place: {type: category, values: [hill, coast], missing: false, roles: [condition], shares: {hill: 0.7, coast: 0.3}}
"""


def folder_of(letters, tmp_path):
    shutil.copytree(letters.folder, tmp_path / "public")
    return tmp_path / "public"


# -- making ------------------------------------------------------------------------------------------------------------


def test_an_autoencoder_reproduces_what_it_was_taught_with(letters):
    assert sorted(path.name for path in letters.folder.iterdir()) == [
        "detail.safetensors", "encoder.safetensors", "generator.safetensors", "public.json",
    ]  # fmt: skip
    settings = read("images", dict(letters.facts.settings))
    shapes = encoder_for(db.Schema.parse(letters.PUBLIC).model_copy(update={"units": 1}).resolve({}), settings.encoding)
    generator, encoder = (make(settings, shapes, torch.Generator()) for make in (generator_of, inversion_encoder_of))
    weights, beside, left = PublicFolder(letters.folder).weights(letters.facts)
    generator.load_state_dict(weights)
    encoder.load_state_dict(beside)
    images = torch.from_numpy(letters.public["images"]).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.no_grad():
        found = encoder(images)
        error = (generator(found) - images).square().mean()
    assert error < 0.8 * images.var(0).mean()
    detail = ImageDetail((1, 8, 8))
    detail.load_state_dict(left)
    noise = torch.randn(len(images), detail.width, generator=torch.Generator().manual_seed(1))
    noise[:, 0] = 9.0  # all of it: the energy of what the generator leaves out
    with torch.no_grad():
        assert detail(noise, generator(found)).square().mean() == pytest.approx(float(error), rel=0.2)
    assert 0.3 < found.square().mean() < 1.5  # about N(0, I)


@pytest.mark.parametrize("proposer", [True, False])
def test_a_gan_is_made_with_an_encoder_or_without(letters, tmp_path, proposer):
    facts = letters.made(tmp_path / "gan", objective="wgan-gp", proposer=proposer)
    assert facts.objective == "wgan-gp"
    assert (facts.encoder_sha256 is not None) == proposer
    assert (tmp_path / "gan/encoder.safetensors").exists() == proposer
    assert facts.detail_sha256 is None  # its critic saw to the detail
    assert public.load(tmp_path / "gan") == facts


def test_a_table_is_made_without_its_conditions(letters, tmp_path):
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"age": draw.integers(20, 40, 90), "job": draw.choice(["cook", "nurse"], 90), "place": ["hill"] * 90}
    )
    facts = public.fit(
        frame, db.Schema.parse(ROWS), provenance=Provenance(data="made up", people="nobody", licence="none needed"),
        out=tmp_path / "rows", seed=1, objective="autoencoder", noise_width=3, steps=10, width=8, bins=8,
        critic_width=8,
    )  # fmt: skip
    weights = read_weights(tmp_path / "rows/generator.safetensors")
    assert weights["body.4.bias"].shape == (8 + 2,)
    assert facts.detail_sha256 is None
    assert "shares" not in json.dumps(facts.makes)
    private = db.Schema.parse(ROWS.replace("kind: table", "kind: table\nunits: 90"))
    facts.refuse_unfit(private)
    facts.refuse_unfit(
        db.Schema.parse(ROWS.replace("values: [hill, coast]", "values: [moor]").partition(", shares")[0] + "}")
    )
    facts.refuse_unfit(db.Schema.parse(ROWS.partition("  place")[0]))  # conditions are none of its business
    facts.refuse_unfit(db.Schema.parse(ROWS + "  patient: {type: id}\n"))  # ids are numbered anew
    others = {
        "another column age": ROWS.replace("[0, 100]", "[0, 90]"),
        "another column job": ROWS.replace("[cook, nurse]", "[cook, clown]"),
        "another column place": ROWS.replace(", roles: [condition], shares: {hill: 0.7, coast: 0.3}", ""),
    }
    for said, text in others.items():
        assert said in str(letters.refusal(SettingError, lambda text=text: facts.refuse_unfit(db.Schema.parse(text))))
    age, job = (line for line in ROWS.splitlines(keepends=True) if "age" in line or "job" in line)
    turned = db.Schema.parse(ROWS.replace(age + job, job + age))
    assert "another order" in str(letters.refusal(SettingError, lambda: facts.refuse_unfit(turned)))
    learned = db.Schema.parse(ROWS.replace("kind: table", "kind: table\nunits: 90").replace("[0, 100]", "{learn: 0.1}"))
    asked = {"method": "latentgan", "epsilon": 5.0, "delta": 1e-4, "public": str(tmp_path / "rows")}
    error = letters.refusal(SchemaError, lambda: db.plan(learned, **asked))
    assert (error.field, error.message) == ("columns.age.bounds", "cannot be learned here")
    images = db.Schema.parse("doublure: 1\nkind: images\nimages: {shape: [8, 8, 1]}\n")
    assert "table" in str(letters.refusal(SettingError, lambda: facts.refuse_unfit(images)))


def test_a_table_is_made_by_a_gan_too(letters, tmp_path):
    draw = np.random.default_rng(2)
    frame = pd.DataFrame({"age": draw.integers(20, 40, 90), "job": ["cook"] * 90, "place": ["hill"] * 90})
    facts = public.fit(
        frame, db.Schema.parse(ROWS), provenance=letters.PROVENANCE, out=tmp_path / "rows", seed=1,
        objective="wgan-gp", noise_width=3, steps=10, proposer_steps=5, width=8, bins=8, critic_width=8,
    )  # fmt: skip
    assert (facts.objective, facts.latent) == ("wgan-gp", 3)
    assert facts.encoder_sha256 is not None
    weights, own = tmp_path / "rows/generator.safetensors", {"noise_width": 3, "width": 8}
    given = {"provenance": letters.PROVENANCE, "out": tmp_path / "adopted"}
    wrong = letters.refusal(RunFolderError, lambda: public.adopt(weights, db.Schema.parse(ROWS), **given, **own))
    assert wrong.remedy.endswith("noise_width, width, depth, bins and numerics")


def test_a_shape_that_differs_is_refused(letters):
    other = db.Schema.parse(letters.PRIVATE.replace("[8, 8, 1]", "[9, 8, 1]"))
    assert "[9, 8, 1]" in str(letters.refusal(SettingError, lambda: letters.facts.refuse_unfit(other)))
    assert record_form(other) == {"shape": [9, 8, 1]}


def test_a_seed_makes_it_repeatable(letters, tmp_path):
    one, other, third = (
        letters.made(tmp_path / name, objective="autoencoder", steps=3) for name in ("one", "other", "third")
    )
    assert one == other == third
    assert one != letters.facts


@pytest.mark.parametrize(
    ("objective", "stage"),
    [("autoencoder", "train the autoencoder"), ("wgan-gp", "train"), ("wgan-gp", "train the encoder")],
)
def test_one_that_is_cut_off_goes_on(letters, tmp_path, monkeypatch, objective, stage):
    class Stops:
        """Receives progress events, and asks to stop after a few steps of a stage."""

        def __init__(self):
            self.name = ""
            self.first = {}

        def stage(self, name, total=None):
            self.name = name

        def at(self, done):
            self.first.setdefault(self.name, done)
            if self.name == stage and done >= 8:
                self.asked = True

    stops = Stops()
    monkeypatch.setattr(
        "doublure.support.stopping.StopSignal.check",
        lambda self: (_ for _ in ()).throw(Interrupted("stopped")) if getattr(stops, "asked", False) else None,
    )
    own = letters.NETWORKS | {"objective": objective, "steps": 20, "proposer_steps": 12}
    common = {"provenance": letters.PROVENANCE, "out": tmp_path / "cut"}
    schema = db.Schema.parse(letters.PUBLIC)
    error = letters.refusal(
        Interrupted, lambda: public.fit(letters.public, schema, seed=4, progress=stops, **common, **own)
    )
    assert "resume" in error.remedy
    assert "--resume" in str(letters.refusal(RunFolderError, lambda: public.load(tmp_path / "cut")))
    stops.asked = False
    letters.refusal(RunFolderError, lambda: public.fit(letters.public, schema, **common, **own))
    others = {"images": letters.public["images"][1:]}
    for data, changes in (
        (letters.public, {"steps": 21}),
        (letters.public, {"provenance": letters.PROVENANCE | {"shared_people": "none"}}),
        (others, {}),  # the provenance speaks of the data that it was begun with
    ):
        asked = common | own | changes
        error = letters.refusal(RunFolderError, lambda: public.fit(data, schema, resume=True, **asked))  # noqa: B023
        assert "was begun with" in str(error)
    monkeypatch.setattr("doublure.support.stopping.StopSignal.check", lambda self: None)
    again = Stops()
    facts = public.fit(letters.public, schema, resume=True, progress=again, **common, **own)
    assert stops.first[stage] < 8 <= again.first[stage]
    assert public.load(tmp_path / "cut") == facts
    letters.refusal(RunFolderError, lambda: public.fit(letters.public, schema, resume=True, **common, **own))


def test_who_is_resumed_by_another_process_stops(letters, tmp_path):
    """Two that finished in one folder would each vouch for weights of which one's are gone."""
    own = letters.NETWORKS | {"objective": "autoencoder", "steps": 20}
    given = (letters.public, db.Schema.parse(letters.PUBLIC))
    common = {"provenance": letters.PROVENANCE, "out": tmp_path / "twice"}
    other = []

    class Resumes:
        """Receives progress events; once the first has begun, another process goes on with its fit."""

        def stage(self, name, total=None):
            if name == "train the autoencoder" and not other:
                other.append(None)
                other[0] = public.fit(*given, resume=True, **common, **own)

        def at(self, done): ...

    error = letters.refusal(RunFolderError, lambda: public.fit(*given, seed=4, progress=Resumes(), **common, **own))
    assert error.message == "was resumed by another process"
    assert public.load(tmp_path / "twice") == other[0]


def test_a_damaged_checkpoint_cannot_be_gone_on_with(letters, tmp_path):
    folder = PublicFolder.begun(tmp_path / "cut", {"seed": 1}, resume=False)
    folder.save(3, {"a": torch.ones(3)})
    (tmp_path / "cut/checkpoint.safetensors").write_bytes(b"cut")
    assert letters.refusal(RunFolderError, folder.load).remedy == "fit into a new folder"
    (tmp_path / "cut/begun.json").write_text("{")
    error = letters.refusal(RunFolderError, lambda: PublicFolder.begun(tmp_path / "cut", {"seed": 1}, resume=True))
    assert (error.message, error.remedy) == ("holds nothing to go on with", "choose another -o")


@pytest.mark.parametrize("begun", [None, '{"adopted": true}', "[]", '{"seed": "many"}'])
def test_there_has_to_be_something_to_go_on_with(letters, tmp_path, begun):
    if begun is not None:
        (tmp_path / "begun.json").write_text(begun)
    given = {"provenance": letters.PROVENANCE, "out": tmp_path, "resume": True}
    error = letters.refusal(InputError, lambda: public.fit(letters.public, db.Schema.parse(letters.PUBLIC), **given))
    assert ("nothing to go on with" in str(error)) == (begun in (None, "[]"))


@pytest.mark.parametrize("rates", [{"autoencoder_lr": 1.0}, {"objective": "wgan-gp", "gradient_penalty": 1e38}])
def test_one_that_runs_away_is_refused_and_leaves_nothing(letters, tmp_path, monkeypatch, rates):
    monkeypatch.setattr(public_training, "_SMALLEST", float("nan"))
    error = letters.refusal(SettingError, lambda: letters.made(tmp_path / "p", **{"objective": "autoencoder"} | rates))
    assert "diverged" in str(error)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("setting", "rate", "most"),
    [("critic_lr", 1e30, "10"), ("generator_lr", 1e30, "10"), ("autoencoder_lr", 1.5, "1")],
)
def test_a_rate_that_is_too_large_is_refused_beforehand(letters, tmp_path, setting, rate, most):
    error = letters.refusal(SettingError, lambda: letters.made(tmp_path / "p", **{setting: rate}))
    assert f"{setting}: must be at most {most}.0;" in str(error)
    assert not (tmp_path / "p").exists()


def test_weights_that_somebody_else_has_taught(letters, tmp_path):
    own = {key: letters.NETWORKS[key] for key in ("noise_width", "channels", "encoder_channels", "encoder_features")}
    common = {"provenance": letters.PROVENANCE, "out": tmp_path / "adopted"}
    schema = db.Schema.parse(letters.PUBLIC)
    weights = letters.folder / "generator.safetensors"
    facts = public.adopt(weights, schema, encoder=letters.folder / "encoder.safetensors", **common, **own)
    assert (facts.objective, facts.generator_sha256) == ("given", letters.facts.generator_sha256)
    assert facts.encoder_sha256 == letters.facts.encoder_sha256
    common["out"] = tmp_path / "other"
    wrong = lambda: public.adopt(weights, schema, **common, **own | {"noise_width": 7})  # noqa: E731
    assert "settings" in str(letters.refusal(RunFolderError, wrong))
    assert not (tmp_path / "other").exists()
    letters.refusal(
        RunFolderError, lambda: public.adopt(letters.folder / "encoder.safetensors", schema, **common, **own)
    )
    nowhere = lambda: public.adopt("nowhere.safetensors", schema, **common, **own)  # noqa: E731
    assert letters.refusal(RunFolderError, nowhere).field == "nowhere.safetensors"


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "data is missing"),
        ({"data": "x", "people": "nobody", "licence": "none"}, "data cannot be read"),
        ({"data": "faces", "people": "nobody"}, "licence is missing"),
        ({"data": "faces", "people": "   ", "licence": "none"}, "people cannot be read"),
        ({"data": "...", "people": "nobody", "licence": "none"}, "letters among them"),
        ({"data": "faces", "people": 3 * chr(0x200B), "licence": "none"}, "people cannot be read"),
        ({"data": "faces", "people": "nobody", "licence": "none", "who\nelse": 1}, "is not known"),
        ({"data": "faces", "people": "nobody", "licence": "none", "shared_people": "perhaps"}, "shared_people"),
        ("just words", "no such file"),
        ({"data": 12345, "people": "nobody", "licence": "none"}, "data is no text; put it in quotes"),
        (["a"], "mapping"),
    ],
)
def test_a_provenance_that_says_too_little(letters, tmp_path, given, named):
    def act():
        public.fit(letters.public, db.Schema.parse(letters.PUBLIC), provenance=given, out=tmp_path / "p")

    assert named in str(letters.refusal(InputError, act))
    assert not (tmp_path / "p").exists()


def test_facts_that_would_have_to_be_learned_are_refused(letters, tmp_path):
    text = ROWS.replace("bounds: [0, 100]", "bounds: {learn: 0.1}")
    given = {"provenance": {"data": "made up", "people": "nobody", "licence": "none"}, "out": tmp_path / "p"}
    error = letters.refusal(SchemaError, lambda: public.fit(pd.DataFrame(), db.Schema.parse(text), **given))
    assert error.field == "columns.age.bounds"


@pytest.mark.parametrize("kind", ["images", "table"])
def test_a_gan_is_taught_by_the_loss_that_its_facts_name(letters, kind):
    own = {"objective": "wgan-gp", "loss": "hinge"}
    assert "loss" in str(letters.refusal(SettingError, lambda: read(kind, own)))


def test_series_and_unknown_settings_are_refused(letters, tmp_path):
    series = db.Schema.parse(
        "doublure: 1\nkind: series\nunits: 3\nseries: {length: 4}\nchannels: {a: {type: real, bounds: [0, 1],"
        " missing: false}}\n"
    )
    given = {"provenance": letters.PROVENANCE, "out": tmp_path / "p"}
    assert "series" in str(letters.refusal(SettingError, lambda: public.fit(letters.public, series, **given)))
    schema = db.Schema.parse(letters.PUBLIC)
    letters.refusal(SettingError, lambda: public.fit(letters.public, schema, **given, epsilon=1.0))
    letters.refusal(InputError, lambda: public.fit({"images": np.zeros((5, 9, 9, 1), np.uint8)}, schema, **given))
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("name", ["generator.safetensors", "encoder.safetensors", "detail.safetensors", "public.json"])
@pytest.mark.parametrize("damage", ["cut", "empty", "another byte", "gone", "junk"])
def test_a_damaged_folder_is_one_line(letters, tmp_path, name, damage):
    folder = folder_of(letters, tmp_path)
    content = (folder / name).read_bytes()
    if damage == "gone":
        (folder / name).unlink()
    else:
        forms = {"cut": content[: len(content) // 2], "empty": b"", "junk": b"\x80\x04cos\nsystem\n."}
        (folder / name).write_bytes(forms.get(damage, content[:-9] + b"#" + content[-8:]))
    letters.refusal(RunFolderError, lambda: public.load(folder))


@pytest.mark.parametrize(
    "edit",
    [
        {"version": 2}, {"latent": 0}, {"latent": 7},
        {"provenance": {}}, {"generator_sha256": "../../etc/passwd"}, {"more": 1},
        {"kind": "series"}, {"settings": []}, {"settings": {"noise_width": 6, "chanels": [8]}},
        {"settings": {"noise_width": 6, "channels": "wide"}},
    ],
)  # fmt: skip
def test_edited_facts_are_refused(letters, tmp_path, edit):
    folder = folder_of(letters, tmp_path)
    facts = json.loads((folder / "public.json").read_text())
    (folder / "public.json").write_text(json.dumps(facts | edit))
    letters.refusal(RunFolderError, lambda: public.load(folder))


def test_a_source_is_one_line_whatever_was_written(letters):
    said = letters.facts.provenance.model_copy(
        update={"people": "many\n\nlines\u202e of \x1b[31mred.", "source": "here"}
    )
    line = letters.facts.model_copy(update={"provenance": said}).source
    assert "\n" not in line
    assert "People: many lines\\u202e of \\x1b[31mred. Licence" in line
    assert "(here)" in line


def test_weights_that_are_not_finite_are_refused(letters, tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.tensor([1.0, float("nan")])}, tmp_path / "w.safetensors")
    letters.refusal(RunFolderError, lambda: read_weights(tmp_path / "w.safetensors"))


def test_adopted_weights_that_overflow_are_refused_before_anything_is_planned(letters, tmp_path):
    from safetensors.torch import load_file, save_file

    weights = {name: 1e30 * values for name, values in load_file(letters.folder / "generator.safetensors").items()}
    save_file(weights, tmp_path / "w.safetensors")
    own = {name: letters.NETWORKS[name] for name in ("noise_width", "channels")}
    given = {"provenance": letters.PROVENANCE, "out": tmp_path / "public"}
    schema = db.Schema.parse(letters.PUBLIC)
    error = letters.refusal(InputError, lambda: public.adopt(tmp_path / "w.safetensors", schema, **given, **own))
    assert "not finite" in str(error)
    assert not (tmp_path / "public").exists()


@pytest.mark.parametrize("kind", [torch.complex64, torch.int32, torch.bool, torch.float8_e4m3fn])
def test_adopted_weights_that_are_no_real_numbers_are_refused(letters, tmp_path, kind):
    from safetensors.torch import load_file, save_file

    weights = {name: values.to(kind) for name, values in load_file(letters.folder / "generator.safetensors").items()}
    save_file(weights, tmp_path / "w.safetensors")
    own = {name: letters.NETWORKS[name] for name in ("noise_width", "channels")}
    given = {"provenance": letters.PROVENANCE, "out": tmp_path / "public"}
    schema = db.Schema.parse(letters.PUBLIC)
    error = letters.refusal(RunFolderError, lambda: public.adopt(tmp_path / "w.safetensors", schema, **given, **own))
    assert error.remedy.endswith("float32")
    assert not (tmp_path / "public").exists()


@pytest.mark.parametrize(
    ("change", "way"), [({"shared_people": "perhaps"}, "possible or none"), ({"data": "a"}, "3 to")]
)
def test_a_provenance_that_cannot_be_read_says_what_could_be(letters, tmp_path, change, way):
    given = {"provenance": letters.PROVENANCE | change, "out": tmp_path / "public"}
    error = letters.refusal(
        InputError, lambda: public.fit(letters.public, db.Schema.parse(letters.PUBLIC), **given, **letters.NETWORKS)
    )
    assert way in error.remedy
