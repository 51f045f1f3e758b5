"""Images and series are attacked as tables are, or it is said why not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.attack import registry as table
from doublure.attack.attack_data import make_attack_data
from doublure.data.images import Images
from doublure.data.series import Series
from doublure.measures.images import classifiers as students
from doublure.schema import Schema

N = 120
IMAGES = """
doublure: 1
kind: images
units: 120
images: {shape: [6, 6, 1]}
label: {values: [a, b]}
"""
SERIES = """
doublure: 1
kind: series
unit: {name: meter, id: meter, max_records: 3}
units: 40
series: {time: t, length: 8, step: 1h, timezone: UTC, gaps: missing}
channels: {litres: {type: real, bounds: [0, 10], missing: true}}
attributes: {size: {type: category, values: [small, large], missing: false}}
"""


def images(n: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    labels = pd.Series(pd.Categorical(rng.choice(["a", "b"], n), categories=["a", "b"]))
    return Images(images=rng.integers(0, 256, (n, 6, 6, 1), dtype=np.uint8), labels=labels)


def series(n: int, seed: int) -> Series:
    rng = np.random.default_rng(seed)
    values = rng.random((n, 8, 1)) * 10
    values[rng.random(values.shape) < 0.1] = np.nan
    attributes = pd.DataFrame({"size": pd.Categorical(rng.choice(["small", "large"], n), ["small", "large"])})
    return Series(values=values, channels=("litres",), attributes=attributes)


KINDS = {"images": (IMAGES, images, np.arange), "series": (SERIES, series, lambda n: np.arange(n) // 3)}


@pytest.fixture(scope="module", params=sorted(KINDS))
def found(request, no_claim):
    text, draw, unit = KINDS[request.param]
    schema = Schema.parse(text).resolve({})
    seen, unseen = draw(N, 1), draw(2 * N, 2)
    world = make_attack_data(
        schema, no_claim, (seen, unit(N)), (unseen, unit(2 * N)),
        lambda n, seed: seen.take(np.random.default_rng(seed).integers(0, N, n)),
    )  # fmt: skip
    return request.param, {entry.threat_model.attack: entry for entry in table.run(world, ["quick"])}


def test_copies_are_found_whatever_the_kind(found):
    kind, entries = found
    for name in ("gan-leaks", "gan-leaks-calibrated", "monte-carlo"):
        assert entries[name].value > 0.95, name
    assert entries["gan-leaks"].roc.inside == (N if kind == "images" else N // 3)
    assert entries["neighbours"].value > 0.95
    assert entries["linkability"].value > 0.5
    assert entries["inference"].rates[0].value > 0.95


class Copier:
    """A synthesizer that hands out what it has seen, each record often enough for none to be left out."""

    def __init__(self, content):
        self.content = content

    def sample(self, n, seed):
        return self.content.take(np.arange(n) % len(self.content))


def by_heart(student, training, classes, test, n_classes, seed, progress=None):
    """A classifier that is sure of what it has seen, and of nothing else."""
    known = {image.tobytes(): code for image, code in zip(training.images, classes, strict=True)}
    codes = [known.get(image.tobytes()) for image in test.images]
    return np.stack([np.full(n_classes, 1 / n_classes) if code is None else np.eye(n_classes)[code] for code in codes])


@pytest.mark.parametrize("leaks", [True, False])
def test_a_student_of_copies_gives_members_away(no_claim, monkeypatch, leaks):
    monkeypatch.setattr(students, "predict", by_heart)
    seen, unseen = images(N, 1), images(2 * N, 2)
    source = Copier(seen if leaks else images(N, 3))
    world = make_attack_data(
        Schema.parse(IMAGES).resolve({}), no_claim, (seen, np.arange(N)), (unseen, np.arange(2 * N)), source.sample,
        refit=lambda content, seed: Copier(content), shadows=6,
    )  # fmt: skip
    (entry,) = table.run(world, ["lira"])
    assert entry.value > 0.95 if leaks else entry.value == pytest.approx(0.5, abs=0.12)


def test_what_makes_no_sense_says_so(found):
    _, entries = found
    assert entries["singling-out"].skipped == "any image or series singles itself out"
    assert entries["critic"].skipped
    assert entries["gan-leaks-partial"].skipped


def test_the_nearest_pairs_are_shown(found):
    kind, entries = found
    (picture,) = entries["neighbours"].pictures
    if kind == "images":
        assert picture.png.startswith(b"\x89PNG")
    else:
        assert picture.rows[0][1:] == picture.rows[1][1:]
