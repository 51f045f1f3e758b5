"""A few made-up images and their schema."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.schema import Schema

TEXT = """
doublure: 1
kind: images
units: 12
images: {shape: [6, 5, 1]}
label: {values: [cat, dog, 3]}
"""


@pytest.fixture
def schema():
    return Schema.parse(TEXT)


@pytest.fixture
def colour():
    return Schema.parse(TEXT.replace("[6, 5, 1]", "[6, 5, 3]"))


@pytest.fixture
def resizing():
    return Schema.parse(TEXT.replace("[6, 5, 1]}", "[6, 5, 1], on_mismatch: resize}"))


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, (12, 6, 5, 1), dtype=np.uint8)


@pytest.fixture
def labels():
    return np.array(["cat", "dog", "3"] * 4)
