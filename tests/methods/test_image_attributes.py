"""Attributes beside images: read from a table or arrays, counted in pairs with the label, and drawn with it."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.images import Images, open_images
from doublure.data.images.writing import write_images
from doublure.errors import DataError, GateFailed, SchemaError
from doublure.measures.images import classifiers
from doublure.measures.images.evaluation import evaluate_images
from doublure.methods.statistics.images.attributes import PAIRS, cells_by_forecast
from doublure.schema.images import ImageSchema

UNITS = 1500
TEXT = f"""
doublure: 1
kind: images
units: {UNITS}
images: {{shape: [8, 8, 1], pictures: aligned}}
label: {{values: [left, right], roles: [target, condition]}}
"""
BESIDE = """attributes:
  age: {type: integer, bounds: [0, 99], missing: false}
  scanner: {type: category, values: [A, B, C], missing: false}
  nodule: {type: boolean, missing: false}
"""
FEW = {"labeller_steps": 3, "view_images": 100, "view_width": 10, "tries": 2}


def films(units=UNITS):
    """Return films with a bright half; the old are bright on the right, are seen by scanner A, and have nodules."""
    draw = np.random.default_rng(0)
    right = draw.random(units) < 0.5
    age = (40 + 25 * right + 8 * draw.normal(size=units)).round().clip(0, 99).astype(int)
    images = draw.integers(0, 80, (units, 8, 8), dtype=np.uint8)
    images[~right, :, :4] += 150
    images[right, :, 4:] += 150
    return {
        "images": images,
        "labels": np.where(right, "right", "left"),
        "age": age,
        "scanner": np.where(draw.random(units) < np.where(age > 50, 0.8, 0.1), "A", draw.choice(["B", "C"], units)),
        "nodule": draw.random(units) < np.where(age > 60, 0.7, 0.1),
    }


def plan_of(text=TEXT + BESIDE, method="statistics", epsilon=10.0, **settings):
    return db.plan(db.Schema.parse(text), method=method, epsilon=epsilon, delta=1e-5, **settings)


def fit(folder, plan, data, **more):
    ledger = db.Ledger.create(folder / "ledger", dataset="films", epsilon=100.0, delta=0.01)
    return db.fit(data, plan, ledger=ledger, seed=1, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("films")


@pytest.fixture(scope="module")
def syn(folder):
    return fit(folder, plan_of(model="gaussian"), films(), out=folder / "run")


def lower(cell):
    return str(cell).lower()


def relations(labels, attributes):
    """Return the correlations of right, age, scanner A and nodule."""
    columns = [labels.astype(str) == "right", attributes["age"], attributes["scanner"] == "A", attributes["nodule"]]
    found: np.ndarray = np.corrcoef([np.asarray(own, dtype=float) for own in columns])
    return found


def test_they_go_together_and_with_the_label(syn):
    made, real = syn.sample(4000, seed=1), films()
    kept = relations(made.labels, made.attributes)
    apart = np.abs(kept - relations(real["labels"], real))
    assert apart.max() < 0.12
    assert kept[0, 1] > 0.7  # of .84
    assert set(made.attributes["scanner"]) == {"A", "B", "C"}
    assert made.attributes["age"].dtype.kind == "i"
    assert made.attributes["age"].between(0, 99).all()
    right = (made.labels == "right").to_numpy()
    assert made.images[right][:, :, 4:].mean() > made.images[right][:, :, :4].mean() + 50  # pixels go with their label


def test_asking_for_one_moves_label_pixels_and_the_others(syn):
    old = syn.sample(300, given={"age": (70, 99), "scanner": "A"}, seed=1)
    young = syn.sample(300, given={"age": (10, 35)}, seed=1)
    assert old.attributes["age"].between(70, 99).all()
    assert (old.attributes["scanner"] == "A").all()
    assert (old.labels == "right").mean() > 0.85 > 0.2 > (young.labels == "right").mean()
    assert old.images[:, :, 4:].mean() > young.images[:, :, 4:].mean() + 50
    assert old.attributes["nodule"].mean() > young.attributes["nodule"].mean() + 0.3


def test_a_labeller_checks_labels_and_leaves_attributes(folder, tmp_path):
    plan = plan_of(method="guided", model="gaussian", **FEW)
    assert [access.purpose for access in plan.touches if PAIRS in access.purpose] == [PAIRS]
    made = fit(tmp_path, plan, films()).sample(2000, seed=1)
    assert np.abs(relations(made.labels, made.attributes) - relations(films()["labels"], films())).max() < 0.2


@pytest.mark.parametrize("method", ["statistics", "guided"])
def test_the_pairs_are_paid_for_out_of_the_statistics(method):
    own, without = (plan_of(text, method=method, model="gaussian") for text in (TEXT + BESIDE, TEXT))
    assert own.guarantee.epsilon == without.guarantee.epsilon == 10.0
    pairs = next(access for access in own.touches if access.purpose == PAIRS)
    assert pairs.event.tables == math.comb(4, 2)
    features, before = (plan.touches[0].event.noise_multiplier for plan in (own, without))
    assert features == pytest.approx(before / math.sqrt(0.95), rel=0.01)
    assert pairs.event.scale == pytest.approx(before * math.sqrt(6 / 0.05), rel=0.01)
    said = own.explain()
    assert "age, scanner, nodule and the label are counted in 6 pairs for 5% of the statistics' budget" in said
    assert "Pixels follow from the label alone, and age, scanner and nodule do not change them" in said
    assert "pairs" not in without.explain()


def test_another_label_less_set_is_counted_in_pairs_of_attributes(tmp_path):
    text = TEXT.replace("label: {values: [left, right], roles: [target, condition]}\n", "")
    made = fit(tmp_path, plan_of(text + BESIDE, model="network", fit_steps=2), films()).sample(1000, seed=1)
    assert made.labels is None
    assert made.attributes.groupby("nodule")["age"].mean().diff().iloc[-1] > 10


@pytest.mark.parametrize("method", ["dpgan", "bayesgan", "noisecritic", "latentgan", "gan"])
def test_other_methods_say_that_they_draw_none(method):
    with pytest.raises(SchemaError, match="attributes: are beside the images, and this method draws none; use method"):
        db.plan(db.Schema.parse(TEXT + BESIDE), method=method, epsilon=3.0, delta=1e-5)


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ("  labels: {type: boolean}\n", "labels is a name that images use"),
        ("  w: {type: boolean, from_time: weekend}\n", "w follows from a time or a length"),
        ("  n: {type: integer, bounds: [1, 9], from_length: true}\n", "n follows from a time or a length"),
        ("  w: {type: boolean, roles: [target]}\n", "w: roles and shares are for the label"),
        (f"  w: {{type: category, values: {[*range(300)]}}}\n", "w has more than 256 values"),
    ],
)
def test_what_no_attribute_can_be_is_refused_by_name(beside, said):
    with pytest.raises(SchemaError, match=said):
        db.Schema.parse(TEXT + BESIDE + beside)


def test_one_attribute_needs_a_label_and_too_many_combinations_are_refused_before_a_charge():
    bare = TEXT.replace("label: {values: [left, right], roles: [target, condition]}\n", "")
    with pytest.raises(SchemaError, match="declare a label, or a second attribute"):
        db.Schema.parse(bare + "attributes:\n  age: {type: integer, bounds: [0, 99]}\n")
    findings = "".join(f"  finding {number}: {{type: boolean, missing: false}}\n" for number in range(14))
    chest = TEXT + "attributes:\n" + findings
    assert plan_of(chest).touches[1].event.tables == math.comb(15, 2)  # the pairs, not the product of values
    with pytest.raises(
        SchemaError, match="make 327,680 combinations with the label, and 100,000 are the most; declare"
    ):
        plan_of(chest + "  age: {type: integer, bounds: [0, 99], missing: false}\n")


LEARNED = "  site{}: {{type: category, values: {{learn: 0.5}}, other: rest, missing: false}}\n"


def test_values_that_were_bought_are_never_refused_for_their_number(tmp_path):
    """A code is one byte: of more values the most frequent are kept, and others count as the other one."""
    text = (
        TEXT.replace("values: [left, right]", "values: {learn: 0.5}, other: rest") + "attributes:\n" + LEARNED.format(1)
    )
    bought = {
        name: tuple(f"v{number}" for number in range(400)) for name in ("label.values", "attributes.site1.values")
    }
    schema = db.Schema.parse(text).resolve(bought)
    for column in schema.columns.values():
        assert column.domain == (*bought["label.values"][:255], "rest")
    assert plan_of(text).touches[-1].purpose == PAIRS
    with pytest.raises(SchemaError, match="make 131,072 combinations with the label"):
        plan_of(TEXT + "attributes:\n" + LEARNED.format(1) + LEARNED.format(2))  # as many as there may be


def test_a_table_of_files_brings_them_and_a_folder_takes_them_out_again(syn, tmp_path):
    made = syn.sample(40, seed=3)
    write_images([made], tmp_path / "out", syn.schema, 40, about={})
    table = pd.read_csv(tmp_path / "out" / "images.csv")
    assert table.columns.tolist() == ["file", "label", "age", "scanner", "nodule"]
    assert table["age"].tolist() == made.attributes["age"].tolist()
    read = open_images(tmp_path / "out" / "images.csv").load(db.Schema.parse(TEXT + BESIDE)).content
    assert isinstance(read, Images)
    assert read.attributes["age"].tolist() == made.attributes["age"].tolist()
    for name in ("scanner", "nodule"):
        assert [*map(lower, read.attributes[name])] == [*map(lower, made.attributes[name])]
    assert np.array_equal(read.images, made.images)
    again = open_images(made).load(db.Schema.parse(TEXT + BESIDE)).content
    assert again.attributes["age"].tolist() == made.attributes["age"].tolist()


def test_a_container_without_them_is_refused_before_a_charge(tmp_path):
    schema = db.Schema.parse(TEXT + BESIDE)
    data = films(20)
    data.pop("age")
    with pytest.raises(DataError, match="age: is no array of arrays, and the schema names it"):
        open_images(data).check(schema)
    (tmp_path / "left").mkdir()
    syn_like = db.Schema.parse(TEXT)
    from PIL import Image

    for number in range(3):
        Image.fromarray(films(3)["images"][number]).save(tmp_path / "left" / f"{number}.png")
    open_images(tmp_path).check(syn_like)
    with pytest.raises(DataError, match="has no columns, and the schema names age; use NPZ, Parquet or a CSV of files"):
        open_images(tmp_path).check(schema)


def test_a_misfit_is_refused_without_its_cell():
    data = films(30) | {"scanner": np.array(["A"] * 29 + ["Siemens 4711"])}
    with pytest.raises(DataError, match="scanner") as refused:
        open_images(data).load(db.Schema.parse(TEXT + BESIDE))
    assert "4711" not in str(refused.value)


def test_a_bundle_holds_them_and_a_changed_one_is_seen(syn, folder, tmp_path):
    limits = db.release(syn, tmp_path / "bundle", n=60).card["limits"]
    said = "Pixels follow from the label alone, and age, scanner and nodule do not change them."
    assert said in limits
    page = (tmp_path / "bundle" / "README.md").read_text()
    assert said in page
    assert "| age | integer |  | 0 to 99 |" in page
    assert "| scanner | category |  | A, B, C |" in page
    assert "os-keyed" not in page + (tmp_path / "bundle" / "card.html").read_text()
    described = json.loads((tmp_path / "bundle" / "dictionary.json").read_text())
    assert described["images"]["arrays"]["age"] == "(n,)"
    with np.load(tmp_path / "bundle" / "data.npz") as held:
        arrays = dict(held)
    assert set(arrays["scanner"]) <= {"A", "B", "C"}
    assert db.verify(tmp_path / "bundle")["executed"]
    shutil.copytree(tmp_path / "bundle", tmp_path / "changed")
    np.savez(tmp_path / "changed" / "data.npz", **arrays | {"age": arrays["age"] + 1000})
    with pytest.raises(GateFailed):
        db.verify(tmp_path / "changed")


def test_a_run_is_loaded_with_them(syn, folder):
    one, other = (each.sample(50, seed=5) for each in (syn, db.load(folder / "run")))
    assert one.attributes.equals(other.attributes)


@pytest.fixture
def hurried(monkeypatch):
    """Let classifiers learn next to nothing: no figure of attributes hangs on them."""
    monkeypatch.setattr(classifiers, "LEAST_STEPS", 5)
    monkeypatch.setattr(classifiers, "EPOCHS", 1)


@pytest.mark.usefixtures("hurried")
def test_evaluation_sees_attributes_that_go_with_nothing():
    schema, data = db.Schema.parse(TEXT + BESIDE).resolve({}), films(1200)
    content = open_images(data).load(schema).content
    mixed = np.random.default_rng(1).permutation(len(content))
    apart = Images(
        images=content.images, labels=content.labels, attributes=content.attributes.iloc[mixed].reset_index(drop=True)
    )
    half = np.arange(600)
    figures = {
        name: evaluate_images(schema, own.take(half), content.take(half + 600), classifiers=()).attributes[0]
        for name, own in (("as they are", content), ("mixed", apart))
    }
    assert figures["as they are"].value < 0.08 < 0.12 < figures["mixed"].value
    assert figures["mixed"].baseline > 0.12


@pytest.mark.parametrize(("epsilon", "groups"), [(0.2, 2), (1.0, 4), (3.0, 5), (10.0, 10)])
def test_numbers_are_counted_in_as_many_groups_as_forecast_the_smallest_error(epsilon, groups):
    schema = ImageSchema.of(db.Schema.parse(TEXT + BESIDE))
    plan = plan_of(model="gaussian", epsilon=epsilon)
    noise = plan.touches[-1].event.scale
    cells = cells_by_forecast(schema, noise)
    assert {name: own.max() + 1 for name, own in cells.items()} == {
        "label": 2,
        "age": groups,
        "scanner": 3,
        "nodule": 2,
    }
    assert (f"age in {groups} groups" in plan.explain()) is (groups < 10)
    edges = TEXT + BESIDE.replace("bounds: [0, 99]", "bounds: [0, 99], edges: [0, 18, 40, 65]")
    kept = cells_by_forecast(ImageSchema.of(db.Schema.parse(edges)), noise)["age"]
    assert np.array_equal(kept, np.arange(len(kept)))  # cut where the schema says


def test_joined_groups_leave_a_number_with_its_label(tmp_path):
    made = fit(tmp_path, plan_of(model="gaussian", epsilon=3.0), films()).sample(4000, seed=1)
    assert relations(made.labels, made.attributes)[0, 1] > 0.6  # of .86, by fresh noise
    assert made.attributes["age"].between(0, 99).all()


def test_a_pair_whose_noise_exceeds_its_cells_is_named_in_plan_and_card():
    many = TEXT + BESIDE.replace("values: [A, B, C]", f"values: {[*range(60)]}")
    plan = plan_of(many, model="gaussian", epsilon=1.0)
    (said,) = [line for line in plan.explain().splitlines() if "mostly noise" in line]
    assert "Warning: pairs are mostly noise of ±41 images a cell: age × scanner (some 6.2 images a cell)" in said
    assert "label × age" not in said
    assert "mostly noise" not in plan_of(model="gaussian").explain()


@pytest.mark.usefixtures("hurried")
def test_the_verdict_looks_at_each_attribute_and_at_what_goes_with_it():
    real = open_images(films(400)).load(db.Schema.parse(TEXT + BESIDE)).content
    schema = ImageSchema.of(db.Schema.parse(TEXT + BESIDE))
    order = np.random.default_rng(0).permutation(400)
    apart = real.attributes.iloc[order].reset_index(drop=True).assign(scanner="A")
    found = evaluate_images(
        schema, Images(images=real.images, labels=real.labels, attributes=apart), real, classifiers=()
    )
    assert any(line.startswith("Worst attribute: scanner, total variation") for line in found.verdict.lines)
    assert any(line.startswith("Worst association: label × age, Cramér’s V 0.88") for line in found.verdict.lines)
    assert any(
        line.startswith("At least half of the association is lost: label × age") for line in found.verdict.warnings
    )
    assert {"attribute age", "attribute scanner", "attribute nodule"} <= {score.key for score in found.scores}
    same = evaluate_images(schema, real, real, classifiers=()).verdict
    assert not any("lost" in warning for warning in same.warnings)


def test_the_noise_of_sums_and_counts_is_named_as_it_is():
    exact = "the operating system's own stream, exact rounded normals"
    assert plan_of(method="guided").guarantee.noise_source == f"{exact}; exact discrete Gaussian"
    assert plan_of(TEXT, model="gaussian").guarantee.noise_source == exact
