"""The real images of benchmarks: from the shared data where they are at hand, else as they are published.

CIFAR-10 is a JPEG copy, in random order: its file is sorted by label, and what is kept aside for tuning are the last
training images. Digits are scikit-learn's 1,797 of 8 x 8 pixels, the first 1,500 for training. Olivetti's faces are
brought to 48 x 48; the first eight of each person are for training. CelebA's are cut to 128 x 128 and brought to 48 x
48 (Triastcyn & Faltings 2019, §5.1); their label is whether somebody smiles. ``pneumonia`` are a balanced copy of
MedMNIST's chest films, ``signs`` traffic signs (GTSRB, Stallkamp et al. 2012) in a published copy of 32 x 32 pixels.
Nobody tuned for these two; their files are put into benchmarks/out/fetched as they are published.
"""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from PIL import Image

import doublure as db
from doublure.errors import DoublureError
from doublure.networks.sizes import WARP_WIDTH
from doublure.networks.upsampling import warp_images

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
FETCHED = Path(__file__).resolve().parent / "out" / "fetched"
KEPT_ASIDE = 10_000
FACE = 48
_FILES = {
    "mnist": "mnist.npz",
    "fashion-mnist": "fashion_mnist.npz",
    "emnist-letters": "emnist_letters.npz",
    "cifar10": "cifar10_jpegq75_bytes.npz",
    "svhn": "svhn.npz",
    "olivetti": "orl_olivetti_faces.npz",
    "celeba": "celeba.npz",
}
_ATTRIBUTE = "Smiling"
_FACES_TAUGHT = 8
_DIGITS_TAUGHT = 1_500

Arrays: TypeAlias = "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]"


def images_of(name: str, split: str) -> Arrays:
    """Return images ``(N, H, W, C)`` and labels, ``train`` or ``test``."""
    if name == "digits":
        return _small_digits(split)
    if name == "pneumonia":
        with np.load(FETCHED / "pneumoniamnist.npz", allow_pickle=False) as arrays:
            return arrays[f"{split}_images"][..., None], arrays[f"{split}_labels"].reshape(-1).astype(np.int64)
    if name == "signs":
        return _signs(split)
    file = SHARED / _FILES[name]
    if not file.is_file():
        try:
            found: Any = db.datasets.load(name, split)
        except DoublureError as error:
            raise SystemExit(f"{file.name} is not at hand, and {error}") from None
        return found["x"], _labels(found)
    with np.load(file, allow_pickle=False) as arrays:
        if name == "olivetti":
            return _faces_of(arrays, split)
        if name == "cifar10":
            return _unpacked(arrays, split)
        found = arrays[f"x_{split}"]
        return found.reshape(*found.shape[:3], -1), arrays[f"y_{split}"].astype(np.int64)


def _signs(split: str) -> Arrays:
    folder = FETCHED / "GTSRB"
    tables = [folder / "Final_Test" / "GT-final_test.csv"]
    if split == "train":
        tables = sorted(folder.glob("Final_Training/Images/*/GT-*.csv"))
    images: list[np.ndarray[Any, Any]] = []
    labels: list[int] = []
    for table in tables:
        pictures = table.parent if split == "train" else table.parent / "Images"
        listed = pd.read_csv(table, sep=";")
        images.extend(np.asarray(Image.open(pictures / name).convert("RGB")) for name in listed["Filename"])
        labels.extend(listed["ClassId"])
    mixed = np.random.default_rng(0).permutation(len(images))
    return np.stack(images)[mixed], np.array(labels, dtype=np.int64)[mixed]


def _labels(found: Any) -> np.ndarray[Any, Any]:
    """Return one label an image; of several attributes, the one that the benchmarks take."""
    marks: np.ndarray[Any, Any] = found["y"]
    return marks[:, found["names"].tolist().index(_ATTRIBUTE)] if "names" in found else marks


def train_and_test(name: str, tune: bool) -> tuple[Arrays, Arrays]:
    """Return training and test images; while tuning, the last training images stand in for the test set."""
    images, labels = images_of(name, "train")
    if not tune:
        return (images, labels), images_of(name, "test")
    cut = len(images) - KEPT_ASIDE
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def warped_by(images: np.ndarray[Any, Any], strength: float, seed: int) -> np.ndarray[Any, Any]:
    """Return images ``(N, H, W, C)``, each warped at random, as a generator warps its own."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1
    turns = torch.randn(len(pixels), WARP_WIDTH, generator=torch.Generator().manual_seed(seed))
    moved = (warp_images(pixels, turns, strength) + 1) * 127.5
    return moved.round().byte().permute(0, 2, 3, 1).numpy()


def faces() -> Arrays:
    """Return Olivetti's faces ``(400, 48, 48, 1)`` and whose they are: persons in order, ten images each."""
    with np.load(SHARED / _FILES["olivetti"], allow_pickle=False) as arrays:
        return _small(arrays)


def _small(arrays: Any) -> Arrays:
    small = [np.asarray(Image.fromarray(face).resize((FACE, FACE))) for face in arrays["olivetti64_x"]]
    return np.stack(small)[..., None], arrays["olivetti64_identity"].astype(np.int64)


def _faces_of(arrays: Any, split: str) -> Arrays:
    small, who = _small(arrays)
    number = np.arange(len(who)) - np.searchsorted(who, who)  # of this person's images
    mine = (number < _FACES_TAUGHT) == (split == "train")
    return small[mine], who[mine]


def _small_digits(split: str) -> Arrays:
    from sklearn.datasets import load_digits

    found = load_digits()
    images = np.rint(found.images * (255 / 16)).astype(np.uint8)[..., None]
    half = slice(_DIGITS_TAUGHT) if split == "train" else slice(_DIGITS_TAUGHT, None)
    return images[half], found.target[half].astype(np.int64)


def _unpacked(arrays: Any, split: str) -> Arrays:
    content, ends = arrays[f"jpeg_{split}"].tobytes(), arrays[f"offset_{split}"]
    pictures = [np.asarray(Image.open(io.BytesIO(content[a:b])).convert("RGB")) for a, b in pairwise(ends)]
    mixed = np.random.default_rng(0).permutation(len(pictures))
    return np.stack(pictures)[mixed], arrays[f"y_{split}"].astype(np.int64)[mixed]
