"""Images -> tensors and back: exact for every byte, compact in memory, labels as one-hot conditions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from doublure.data.images import Images
from doublure.encode.image import ImageEncoder
from doublure.errors import InputError, SettingError
from doublure.schema import ResolvedSchema

TEXT = """
doublure: 1
kind: images
units: 9
images: {shape: [4, 16, 1]}
label: {values: [a, b, 3], shares: {a: 0.2, b: 0.8, 3: 0}}
"""


@pytest.fixture
def encoder():
    return ImageEncoder(ResolvedSchema.parse(TEXT))


@pytest.fixture
def images():
    every = np.arange(256, dtype=np.uint8).reshape(4, 4, 16, 1)
    return Images(images=every, labels=pd.Series(["3", "a", "b", "a"], dtype="category"))


def test_every_byte_comes_back(encoder, images):
    rows = encoder.encode(images)
    assert (rows.shape, rows.dtype) == ((4, 67), torch.float32)
    assert (rows[:, :64].min(), rows[:, :64].max()) == (-1, 1)
    back = encoder.decode(rows)
    assert np.array_equal(back.images, images.images)
    assert back.labels.tolist() == ["3", "a", "b", "a"]  # mixed values are texts, as in tables


def test_the_whole_set_is_held_as_bytes(encoder, images):
    compact = encoder.compact(images)
    assert (compact.shape, compact.dtype) == ((4, 65), np.uint8)


def test_a_body_is_channels_first():
    schema = ResolvedSchema.parse("doublure: 1\nkind: images\nunits: 9\nimages: {shape: [4, 5, 3]}")
    encoder = ImageEncoder(schema)
    images = Images(images=np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3), dtype=np.uint8))
    body, condition = encoder.split(encoder.encode(images))
    assert (body.shape, condition) == ((2, 3, 4, 5), None)
    assert torch.equal(((body[1, 2] + 1) * 127.5).round().byte(), torch.from_numpy(images.images[1, :, :, 2]))
    assert np.array_equal(encoder.decode(encoder.encode(images)).images, images.images)
    with pytest.raises(SettingError, match="no label"):
        encoder.condition_codes({"label": 3})


def test_more_classes_than_a_byte_holds():
    values = list(range(300))
    schema = ResolvedSchema.from_plain(
        {"doublure": 1, "kind": "images", "units": 9, "images": {"shape": [4, 4, 1]}, "label": {"values": values}}
    )
    encoder = ImageEncoder(schema)
    asked = [0, 255, 256, 299]
    images = Images(
        images=np.zeros((4, 4, 4, 1), np.uint8), labels=pd.Series([str(v) for v in asked], dtype="category")
    )
    compact = encoder.compact(images)
    assert compact.shape == (4, 18)
    _, condition = encoder.split(encoder.rows(compact))
    assert condition.argmax(1).tolist() == asked
    assert torch.equal(condition.sum(1), torch.ones(4))


def test_conditions_follow_the_shares_or_what_is_asked(encoder):
    drawn = encoder.draw_conditions(4000, np.random.default_rng(0)).mean(0)
    assert np.allclose(drawn, [0.2, 0.8, 0.0], atol=0.02)
    codes = encoder.condition_codes({"label": "3"})
    fixed = encoder.draw_conditions(5, np.random.default_rng(0), codes)
    assert fixed.tolist() == [[0, 0, 1]] * 5
    for given in ({"label": "c"}, {"size": 3}):
        with pytest.raises(SettingError):
            encoder.condition_codes(given)


def test_what_is_not_finite_is_refused(encoder):
    rows = torch.zeros(2, 67)
    rows[1, 5] = float("nan")
    with pytest.raises(InputError, match="not finite"):
        encoder.decode(rows)
    assert encoder.decode(torch.full((1, 67), 3.0)).images.max() == 255
    assert len(encoder.decode(torch.zeros(0, 67))) == 0
