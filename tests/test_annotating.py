"""Synthetic images out to somebody, labels back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import doublure as db
from doublure.data.images import open_images
from doublure.errors import DataError, InputError, SchemaError, SettingError
from doublure.guarantee import CHOICE_OF_KIND
from doublure.measures.images.classifiers import learning_curve
from doublure.releasing.labelling import LabelledImages, by_classifier, hand_out, read_back
from doublure.run.synthesizer import Synthesizer

TEXT = "doublure: 1\nkind: images\nunits: 300\nimages: {shape: [6, 5, 3]}\nlabel: {values: [cat, dog]}\n"


class Blurs(nn.Module):
    """Generates images of the noise that it is given."""

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        return torch.tanh(noise.repeat(1, 90)[:, :90]).view(-1, 3, 6, 5)


@pytest.fixture(scope="module")
def synthesizers() -> dict[bool, Synthesizer]:
    made = {}
    for labelled in (True, False):
        schema = db.Schema.parse(TEXT if labelled else TEXT.partition("label")[0])
        plan = db.plan(schema, method="gan")
        made[labelled] = Synthesizer(
            schema=schema.resolve({}), plan=plan, guarantee=plan.guarantee, generator=Blurs()
        )  # fmt: skip
    return made


@pytest.fixture
def task(synthesizers: dict[bool, Synthesizer], tmp_path: Path) -> Path:
    assert hand_out(synthesizers[True], tmp_path / "task", 7, seed=3) == 7
    return tmp_path / "task"


def lines(task: Path) -> list[list[str]]:
    with (task / "labels.csv").open(newline="") as file:
        return list(csv.reader(file))


def write(task: Path, rows: list[list[str]], *, delimiter: str = ",", encoding: str = "utf-8") -> None:
    with (task / "labels.csv").open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)


def fill(task: Path, labels: list[str]) -> None:
    head, *rows = lines(task)
    write(task, [head, *([name, label] for (name, _), label in zip(rows, labels, strict=True))])


def test_what_is_handed_out(task: Path, synthesizers: dict[bool, Synthesizer]) -> None:
    assert {path.name for path in task.iterdir()} == {"schema.yaml", "labels.csv", "about.json", "images"}
    assert lines(task) == [["file", "label"], *([f"{number:06d}.png", ""] for number in range(1, 8))]
    pictures = open_images(task / "images").load(db.Schema.parse(TEXT.partition("label")[0])).content.images
    assert np.array_equal(pictures, synthesizers[True].sample(7, seed=3).images)
    everything = b"".join(path.read_bytes() for path in task.rglob("*") if path.is_file())
    assert b"no privacy guarantee" in everything  # the watermark goes along


def test_labels_come_back_as_numbers_where_the_schema_lists_numbers(tmp_path: Path) -> None:
    schema = db.Schema.parse(TEXT.replace("[cat, dog]", "[0, 1]"))
    plan = db.plan(schema, method="gan")
    own = Synthesizer(schema=schema.resolve({}), plan=plan, guarantee=plan.guarantee, generator=Blurs())
    hand_out(own, tmp_path / "task", 6, seed=3)
    fill(tmp_path / "task", ["0", "1", "0", "1", "1", ""])
    found = read_back(tmp_path / "task")
    assert found.images.labels is not None
    assert found.images.labels.tolist() == [0, 1, 0, 1, 1]
    assert found.images.labels.dtype == own.sample(2, seed=1).labels.dtype
    classes = found.images.labels.to_numpy().astype(np.int64)
    curve = learning_curve("logistic", found.images, classes, found.images, classes, [5], seed=0)
    assert curve[5] > 0.5
    found.save(tmp_path / "back.npz")
    with np.load(tmp_path / "back.npz") as arrays:
        assert arrays["labels"].dtype.kind == "i"


def test_what_is_said_of_the_images_is_what_was_handed_out(task: Path) -> None:
    fill(task, ["cat", "dog", "", "dog", "", "cat", "cat"])
    said = json.loads((task / "about.json").read_text())
    (task / "about.json").write_text(json.dumps(said | {"images": "mine", "licence": "all"}))
    assert read_back(task).about == {key: said[key] for key in ("doublure", "watermark", "guarantee")}


@pytest.mark.parametrize("change", [{"watermark": None}, {"guarantee": 3}, {"sha256": None}, {"sha256": {"a": 1}}])
def test_a_task_that_does_not_say_what_the_images_are_is_refused(task: Path, change: dict[str, object]) -> None:
    fill(task, ["cat"] * 7)
    (task / "about.json").write_text(json.dumps(json.loads((task / "about.json").read_text()) | change))
    with pytest.raises(InputError, match="does not say what the images are; put back the file"):
        read_back(task)


def test_nothing_is_claimed_of_a_picture_that_was_not_handed_out(task: Path) -> None:
    """A private one that found its way into the folder would carry the run's guarantee."""
    first, second = (task / "images" / f"{number:06d}.png" for number in (1, 2))
    theirs = second.read_bytes()
    (task / "images" / "patient.png").write_bytes(theirs)
    write(task, [*lines(task), ["patient.png", "cat"]])
    with pytest.raises(DataError, match="line 9: names no picture of the task"):
        read_back(task)
    write(task, [["file", "label"], [first.name, "cat"], [second.name, ""]])
    first.write_bytes(theirs)
    with pytest.raises(DataError, match=r"000001\.png: is not the picture that was handed out"):
        read_back(task)
    write(task, [["file", "label"], [first.name, ""], [second.name, "cat"]])
    assert read_back(task).left == 6  # lines that are missing have no label either


def test_labels_come_back_in_the_schemas_own_values(task: Path, synthesizers: dict[bool, Synthesizer]) -> None:
    fill(task, ["cat", "dog", "", " dog ", "", "cat", "cat"])
    found = read_back(task)
    assert isinstance(found, LabelledImages)
    assert (len(found.images), found.left) == (5, 2)
    assert found.images.labels is not None
    assert found.images.labels.tolist() == ["cat", "dog", "dog", "cat", "cat"]
    assert list(found.images.labels.cat.categories) == ["cat", "dog"]
    sampled = synthesizers[True].sample(7, seed=3).images
    assert np.array_equal(found.images.images, sampled[[0, 1, 3, 5, 6]])


def test_a_spreadsheet_may_have_saved_it(task: Path) -> None:
    """A byte-order mark, another order, an empty line, a further column, semicolons between cells."""
    head, *rows = lines(task)
    filled = [[*head, "note"], *([name, "cat", "sure"] for name, _ in reversed(rows)), ["", "", ""]]
    for delimiter in ",;":
        write(task, filled, delimiter=delimiter, encoding="utf-8-sig")
        assert read_back(task).images.labels.tolist() == ["cat"] * 7  # type: ignore[union-attr]


def test_what_is_labelled_can_be_saved_and_learned_from(task: Path, tmp_path: Path) -> None:
    fill(task, ["cat", "dog"] * 3 + [""])
    found = read_back(task)
    for name in ("set.npz", "folder"):
        found.save(tmp_path / name)
        again = open_images(tmp_path / name).load(db.Schema.parse(TEXT)).content
        assert sorted(map(str, again.labels)) == ["cat"] * 3 + ["dog"] * 3  # type: ignore[arg-type]


def test_classes_that_nobody_declared_are_the_labellers_own(synthesizers, tmp_path: Path) -> None:
    hand_out(synthesizers[False], tmp_path / "task", 4, seed=1)
    fill(tmp_path / "task", ["tabby", "lion", "", "lion"])
    found = read_back(tmp_path / "task")
    assert found.images.labels is not None
    assert list(found.images.labels.cat.categories) == ["lion", "tabby"]
    found.save(tmp_path / "set.npz")
    with np.load(tmp_path / "set.npz") as arrays:
        assert arrays["labels"].tolist() == ["tabby", "lion", "lion"]


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda rows: rows[1:], "labels.csv"),
        (lambda rows: [rows[0], *([name, ""] for name, _ in rows[1:])], "labels.csv"),
        (lambda rows: [*rows, ["elsewhere.png", "cat"]], "labels.csv line 9"),
        (lambda rows: [*rows, ["../schema.yaml", "cat"]], "labels.csv line 9"),
        (lambda rows: [*rows, ["0" * 5000, "cat"]], "labels.csv line 9"),
        (lambda rows: [*rows, [rows[2][0], "cat"]], "labels.csv line 9"),
        (lambda rows: [*rows[:4], [rows[4][0], "horse"]], "labels.csv line 5"),
    ],
    ids=["no header", "no label", "no picture", "a path", "a long name", "twice", "no class"],
)
def test_what_cannot_be_read_is_refused_in_one_line(task: Path, edit, field: str) -> None:
    write(task, edit(lines(task)))
    with pytest.raises(DataError) as refused:
        read_back(task)
    assert refused.value.field == field
    assert refused.value.remedy
    assert "horse" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_picture_that_is_damaged_is_refused(task: Path) -> None:
    fill(task, ["cat"] * 7)
    (task / "images" / "000003.png").unlink()
    with pytest.raises(DataError, match=r"000003\.png: is missing"):
        read_back(task)
    (task / "images" / "000003.png").write_bytes(b"another")
    with pytest.raises(DataError, match=r"000003\.png: is not the picture"):
        read_back(task)
    (task / "labels.csv").write_bytes(b"file,label\n\xff\xfe,cat\n")
    with pytest.raises(DataError, match="cannot be read as CSV"):
        read_back(task)


def test_what_is_no_task_is_refused(tmp_path: Path, small, task: Path) -> None:
    with pytest.raises(InputError, match="no labelling task"):
        read_back(tmp_path)
    with pytest.raises(SettingError, match="is of kind table"):
        hand_out(db.load(small.run), tmp_path / "rows", 3)
    (task / "schema.yaml").write_text(small.declared_text)
    with pytest.raises(InputError, match="no images"):
        read_back(task)


def test_a_folder_that_is_not_empty_is_left_alone(task: Path, synthesizers: dict[bool, Synthesizer]) -> None:
    before = (task / "labels.csv").read_bytes()
    with pytest.raises(InputError, match="is not empty"):
        hand_out(synthesizers[True], task, 3)
    assert (task / "labels.csv").read_bytes() == before
    (task.parent / "empty").mkdir()
    assert hand_out(synthesizers[True], task.parent / "empty", 3) == 3
    assert [path.name for path in task.parent.iterdir() if path.name.startswith(".")] == []


# -- by a classifier of public data ------------------------------------------------------------------------------------

PUBLIC = "doublure: 1\nkind: images\nimages: {shape: [6, 5, 3]}\nlabel: {values: [dark, grey, light]}\n"
PROVENANCE = {"data": "shades of nothing", "people": "nobody at all", "licence": "CC0"}


def shades(size: int) -> dict[str, np.ndarray]:
    """Return images and what is to be said of them: how light they are."""
    levels = np.random.default_rng(0).integers(0, 3, size)
    pixels = np.random.default_rng(1).integers(0, 80, (size, 6, 5, 3)) + 85 * levels[:, None, None, None]
    return {"images": pixels.astype(np.uint8), "labels": np.array(["dark", "grey", "light"])[levels]}


class Shades(nn.Module):
    """Generates dark and light images in turn."""

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        light = torch.where(torch.arange(len(noise)) % 2 == 0, -0.9, 0.9)
        return light[:, None, None, None].expand(-1, 3, 6, 5).contiguous()


def of_shades() -> Synthesizer:
    schema = db.Schema.parse(TEXT.partition("label")[0])
    plan = db.plan(schema, method="gan")
    return Synthesizer(schema=schema.resolve({}), plan=plan, guarantee=plan.guarantee, generator=Shades())


def test_a_classifier_of_public_images_says_what_it_sees(tmp_path: Path) -> None:
    syn, schema = of_shades(), db.Schema.parse(PUBLIC)
    found = by_classifier(syn, shades(600), schema, 20, provenance=PROVENANCE, seed=4)
    assert found.images.labels is not None
    assert found.images.labels.tolist() == ["dark", "light"] * 10
    assert list(found.images.labels.cat.categories) == ["dark", "grey", "light"]
    again = by_classifier(syn, shades(600), schema, 20, provenance=PROVENANCE, seed=4)
    assert np.array_equal(found.images.images, again.images.images)
    assert found.images.labels.equals(again.images.labels)
    assert found.left == 0
    found.save(tmp_path / "set.npz")
    with np.load(tmp_path / "set.npz") as arrays:
        assert arrays["labels"].tolist() == ["dark", "light"] * 10
        assert "shades of nothing. People: nobody at all. Licence: CC0." in str(arrays["labelled_by"])
        assert str(arrays["guarantee"]) == syn.guarantee.sentence


def test_a_claim_rests_on_the_public_images_too() -> None:
    schema = db.Schema.parse(TEXT.partition("label")[0])
    plan = db.plan(schema, method="dpgan", epsilon=3, delta=1e-4, accountant="rdp")
    syn = Synthesizer(schema=schema.resolve({}), plan=plan, guarantee=plan.guarantee, generator=Shades())
    found = by_classifier(syn, shades(20), db.Schema.parse(PUBLIC), 4, provenance=PROVENANCE)
    sentence = found.about["guarantee"]
    assert "given the declared schema, and that the public labelling set was made and chosen without" in sentence
    assert sentence.endswith("; what the public data itself tells about people who are in both.")
    nobody = by_classifier(
        syn, shades(20), db.Schema.parse(PUBLIC), 4, provenance=PROVENANCE | {"shared_people": "none"}
    )
    assert "what the public data itself tells" not in nobody.about["guarantee"]
    assert "and that no person of the public labelling set is among the private records." in nobody.about["guarantee"]
    assert "labelling set" not in syn.guarantee.sentence


def test_a_bayesian_claim_rests_on_them_too() -> None:
    plan = db.plan(db.Schema.parse(TEXT), method="bayesgan", epsilon=3, delta=1e-8)
    unsure = plan.guarantee.model_copy(update={"excluded": (*plan.guarantee.excluded, CHOICE_OF_KIND)})
    for claim, link in ((plan.guarantee, ", and"), (unsure, "; given")):
        given = f"{link} that the public labelling set was made and chosen without the private records. "
        sentence = claim.with_public_labels(shared_people=False).sentence
        assert f"{link} that the public labelling set was made and chosen without the private records and" in sentence
        assert given in claim.with_public_labels(shared_people=True).sentence


@pytest.mark.parametrize(
    ("change", "kind", "field"),
    [
        ({"schema": PUBLIC.replace("[6, 5, 3]", "[5, 6, 3]")}, SchemaError, "schema"),
        ({"schema": PUBLIC.partition("label")[0]}, SchemaError, "label"),
        ({"schema": PUBLIC.replace("[dark, grey, light]", "{learn: 0.1}, other: rest")}, SchemaError, "label"),
        ({"schema": "doublure: 1\nkind: table\ncolumns:\n  a: {type: boolean}\n"}, SchemaError, "schema"),
        ({"provenance": {"data": "shades"}}, SettingError, "provenance"),
        ({"public": {"images": shades(9)["images"]}}, DataError, "arrays"),
        ({"schema": PUBLIC.replace("grey", "grey, green")}, DataError, "label"),
        (
            {"public": {name: values[shades(9)["labels"] == "grey"] for name, values in shades(9).items()}},
            DataError,
            "label",
        ),
    ],
)
def test_public_images_that_teach_no_label_are_refused(change, kind, field) -> None:
    given = {"public": shades(9), "schema": PUBLIC, "provenance": PROVENANCE} | change
    schema = db.Schema.parse(given["schema"])
    with pytest.raises(kind) as refused:
        by_classifier(of_shades(), given["public"], schema, 5, provenance=given["provenance"])
    assert refused.value.field == field
    assert refused.value.remedy
    assert "\n" not in str(refused.value)
