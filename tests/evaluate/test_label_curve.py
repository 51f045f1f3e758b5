"""The accuracy that labels that came back give a classifier, beside as many real ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from doublure import Schema
from doublure.data.images import Images
from doublure.errors import DataError, SchemaError, SettingError
from doublure.measures.images.label_curve import LabelCurve, find_classifier, label_curve
from doublure.schema.images import ImageSchema

TEXT = "doublure: 1\nkind: images\nunits: 200\nimages: {shape: [6, 6, 1]}\nlabel: {values: [dark, bright]}\n"


@pytest.fixture(scope="module")
def schema() -> ImageSchema:
    return Schema.parse(TEXT).resolve({})  # type: ignore[return-value]


def shades(n: int, wrong: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return dark and bright images, and what they are called; a share by the other's name."""
    rng = np.random.default_rng(n)
    bright = np.arange(n) % 2
    images = rng.integers(0, 100, size=(n, 6, 6, 1)) + 120 * bright[:, None, None, None]
    called = np.where(rng.random(n) < wrong, 1 - bright, bright)
    return images.astype(np.uint8), np.array(["dark", "bright"], dtype=object)[called]


def labelled(n: int, wrong: float = 0.0) -> Images:
    images, labels = shades(n, wrong)
    return Images(images=images, labels=pd.Series(labels).astype(pd.CategoricalDtype(["dark", "bright"])))


def real(n: int) -> dict[str, np.ndarray]:
    images, labels = shades(n)
    return {"images": images, "labels": labels.astype(str)}


def test_right_labels_teach_as_much_as_real_images_and_wrong_ones_nothing(schema: ImageSchema) -> None:
    right = label_curve(labelled(150), schema, real(200), classifier="logistic")
    assert [each.labels for each in right.points] == [10, 30, 100, 150]
    assert right.tested == 100
    assert right.points[-1].artificial.value == 1
    assert [each.real is None for each in right.points] == [False, False, False, True]  # 100 real ones are for training
    wrong = label_curve(labelled(150, wrong=1.0), schema, real(200), classifier="logistic")
    assert wrong.points[-1].artificial.value == 0
    assert [each.real for each in wrong.points] == [each.real for each in right.points]


def test_a_curve_repeats_itself_and_reads_back(schema: ImageSchema) -> None:
    found = [
        label_curve(labelled(40, wrong=0.45), schema, real(60), classifier="logistic", seed=seed) for seed in (1, 1, 2)
    ]
    assert found[0] == found[1] != found[2]
    assert LabelCurve.model_validate(json.loads(found[0].model_dump_json())) == found[0]
    said = str(found[0])
    assert said.startswith("INTERNAL")
    assert "tested on 30 real images" in said


def test_what_no_student_can_be_tested_on_is_refused(schema: ImageSchema, tmp_path: Path) -> None:
    bare = Schema.parse(TEXT.partition("label")[0]).resolve({})
    with pytest.raises(SchemaError, match="lists no classes"):
        label_curve(labelled(40), bare, real(60))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="too few images"):
        label_curve(labelled(40), schema, real(19))
    with pytest.raises(SettingError, match="use one of: cnn"):
        find_classifier("svm")
