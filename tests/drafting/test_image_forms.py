"""Lists of picture files: a draft of a table says that it is one, and a draft of images what it leaves out."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.drafting.draft import drafted
from doublure.drafting.image_forms import names_pictures
from doublure.support import yaml12 as yaml_text

ROWS = 40


@pytest.fixture
def listed(tmp_path):
    """Return a list of files that lie deeper than is looked for."""
    frame = pd.DataFrame({
        "file": [f"scans/left/1/{number}.png" for number in range(ROWS)],
        "age": [30 + number % 9 for number in range(ROWS)],
        "camera": ["nikon", "canon"] * (ROWS // 2),
        "patient_id": [number // 2 for number in range(ROWS)],
        "label": ["well", "ill"] * (ROWS // 2),
    })  # fmt: skip
    path = tmp_path / "faces.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_table_of_picture_files_is_called_one(listed, tmp_path, capsys):
    assert run_guarded(app, ["schema", "draft", str(listed), "-o", str(tmp_path / "s.yaml")]) == 0
    said = "file names picture files, so this looks like a list of images: draft it with --kind images."
    assert said in capsys.readouterr().out
    assert said in (tmp_path / "s.yaml").read_text()
    again = ["schema", "draft", str(listed), "-o", str(tmp_path / "s.yaml"), "--force", "--json"]
    assert run_guarded(app, again) == 0
    assert json.loads(capsys.readouterr().out)["result"]["first"] == [said]
    renamed = pd.read_csv(listed).rename(columns={"file": "scan"})
    assert "call the column file, and draft with --kind images" in drafted(renamed).first[0]


def test_only_names_of_pictures_are_taken_for_some():
    assert names_pictures({"a": pd.Series(["x.png"] * 19 + ["x.txt"])}) == "a"
    assert names_pictures({"a": pd.Series(["x.png"] * 18 + ["x.txt"] * 2)}) is None
    assert names_pictures({"a": pd.Series(["x.png"] * 19)}) is None  # of so few, one cell would decide
    assert names_pictures({"a": pd.Series(range(40)), "b": pd.Series(["K/X.JPG"] * 40)}) == "b"
    assert drafted(pd.DataFrame({"a": ["x"] * 40})).first == []


def test_each_column_that_is_left_out_is_named_with_its_remedy(listed):
    text = drafted(listed, kind="images").to_yaml()
    assert "columns that are left out: no synthetic image has them" in text
    assert "#   age: {type: integer, bounds: [LOW, HIGH], missing: false}\n" in text
    assert "#   camera: {type: category, values: [VALUE, VALUE], missing: false}\n" in text
    assert "# unit: {name: patient, id: patient_id, max_records: NUMBER}  # if it says whose an image is\n" in text
    taken = text[text.index("# attributes:") :].replace("# ", "").replace("[LOW, HIGH]", "[0, 99]")
    plain = drafted(listed, kind="images").schema.to_plain()
    plain |= yaml_text.parse(taken.replace("[VALUE, VALUE]", "[nikon, canon]"), "taken")
    assert [*db.Schema.from_plain(plain).attributes] == ["age", "camera"]


def test_a_list_without_a_label_asks_for_one(listed):
    assert drafted(listed, kind="images").first == []
    frame = pd.read_csv(listed).rename(columns={"label": "state"})
    frame.to_csv(listed, index=False)
    (said,) = drafted(listed, kind="images").first
    assert said.startswith("Nothing is called label, and images follow their label alone. Is one of age, camera, state")
    assert "add label: {attributes: [age], values: [VALUES]}" in said
    frame[["file", "patient_id"]].to_csv(listed, index=False)
    assert drafted(listed, kind="images").first == []


def test_a_range_is_explained_where_one_is_written(listed):
    import numpy as np

    assert "range:" not in drafted(listed, kind="images").to_yaml()
    text = drafted({"images": np.zeros((3, 8, 8), dtype=np.uint8)}).to_yaml()
    assert "# range: the numbers that stand for black" in text
    assert "range: [0, 255]" in text
    assert "left out" not in text
