"""Our images by the data layout, splits and classifiers of DPImageBench (Gong et al. 2025, arXiv 2503.14681).

    python benchmarks/dpimagebench.py archive --data mnist -o dataset/mnist     # train_28.zip and test_28.zip
    python benchmarks/dpimagebench.py run --folder dataset/mnist --epsilon 1 10 --seeds 0 1 2
    python benchmarks/dpimagebench.py run --folder dataset/mnist --epsilon 10 --classifiers resnet --epochs 2 --depth 20
    python benchmarks/dpimagebench.py export --folder dataset/mnist --epsilon 10 -o exp/doublure-mnist
    python benchmarks/dpimagebench.py table

``export`` writes ``gen/gen.npz``, which DPImageBench's own ``eval.py --exp_path`` reads: its classifiers and its
Fréchet distance then judge our images. ``run`` judges them here, by classifiers written from their papers: ResNet-110
(He et al. 2016), WRN-40-4 (Zagoruyko and Komodakis 2016) and ResNeXt-29 (Xie et al. 2017). Theirs are trained for 50
epochs by Adam at .01, divided by five every 20, 256 images a step, and judged by an average of their weights.

A twelfth of the training images (5,000 of MNIST's 60,000) are kept from the fit to choose the epoch. δ = 1 / (N ln N)
of what is left. The choice is private too. The count of right answers has Laplace noise and only the best epoch is
taken (report noisy max: Dwork and Roth 2014, Claim 3.9). Three classifiers choose on the same images, so that each has
ε / 3. Those images are in no fit, so that the whole is ε. Beside stand the accuracy without noise on the choice, which
their program averages, and that of the epoch chosen by synthetic images, which costs nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import time
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

import doublure as db
from doublure.cli.options import settings
from doublure.data.images import open_images
from doublure.schema import Schema
from doublure.support.devices import chosen_device
from fits import kept
from real_images import images_of
from results import Case, finished, mean_and_range, measure

KEPT_FROM_THE_FIT = 1 / 12
CHOICES = 3
"""Classifiers that choose on the same images."""
_RATE, _EVERY, _FACTOR, _BATCH, _DECAY = 0.01, 20, 0.2, 256, 0.9999
Array: TypeAlias = "np.ndarray[Any, Any]"


class Labelled(NamedTuple):
    """Images ``(N, H, W, C)`` in bytes, and the class of each."""

    images: Array
    labels: Array

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Return pixels ``(N, C, H, W)`` from -1 to 1, and classes."""
        pixels = torch.from_numpy(self.images).permute(0, 3, 1, 2).float() / 127.5 - 1
        return pixels, torch.from_numpy(self.labels)

    def taken(self, rows: Array) -> Labelled:
        """Return some of them."""
        return Labelled(self.images[rows], self.labels[rows])


# -- their layout ------------------------------------------------------------------------------------------------------


def write_archive(path: Path, images: Array, labels: Array) -> None:
    """Write images as ``preprocess_dataset.py`` does: colour PNG files in order of their number, and dataset.json."""
    path.parent.mkdir(parents=True, exist_ok=True)
    index = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            name = f"{f'{number:08d}'[:5]}/img{number:08d}.png"
            content = io.BytesIO()
            Image.fromarray(np.broadcast_to(image, (*image.shape[:2], 3))).save(content, "png", compress_level=0)
            archive.writestr(name, content.getvalue())
            index.append([name, int(label)])
        archive.writestr("dataset.json", json.dumps({"labels": index}))


def read_split(folder: Path, split: str, channels: int) -> Labelled:
    """Return the images of ``train_28.zip``, or ``test_28.zip``, whatever their size; grey where that is asked for."""
    found = sorted(folder.glob(f"{split}_*.zip"))
    if not found:
        raise SystemExit(f"{folder} has no {split}_28.zip: make it by DPImageBench's data_preparation.sh, or `archive`")
    with zipfile.ZipFile(found[0]) as archive:
        index = json.loads(archive.read("dataset.json"))["labels"]
        side = Image.open(io.BytesIO(archive.read(index[0][0]))).size[::-1]
    plain = {
        "doublure": 1,
        "kind": "images",
        "units": len(index),
        "images": {"shape": [*side, channels], "on_mismatch": "resize"},
        "label": {"values": sorted({label for _, label in index})},
    }
    content = open_images(found[0]).load(Schema.parse(json.dumps(plain))).content
    return Labelled(content.images, content.labels.cat.codes.to_numpy().astype(np.int64))


def split_train(whole: Labelled) -> tuple[Labelled, Labelled]:
    """Return what is fitted, and what chooses the epoch: theirs by the same generator and seed."""
    keep = round(KEPT_FROM_THE_FIT * len(whole.labels))
    order = torch.randperm(len(whole.labels), generator=torch.Generator().manual_seed(0)).numpy()
    return whole.taken(order[: len(order) - keep]), whole.taken(order[len(order) - keep :])


def export(path: Path, made: Labelled) -> Path:
    """Write ``gen/gen.npz``: x ``(N, C, H, W)`` from 0 to 1, and y."""
    file = path / "gen" / "gen.npz"
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, x=made.images.transpose(0, 3, 1, 2).astype(np.float32) / 255, y=made.labels)
    return file


# -- classifiers -------------------------------------------------------------------------------------------------------


def _convolution(inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)


class _Block(nn.Module):
    """A residual block; activated before its convolutions (WRN), or after their sum."""

    def __init__(self, body: nn.Sequential, shortcut: nn.Module, before: nn.Module | None) -> None:
        super().__init__()
        self.body, self.shortcut, self.before = body, shortcut, before

    def forward(self, images: Tensor) -> Tensor:
        """Return features."""
        if self.before is None:
            return functional.relu(self.body(images) + self.shortcut(images))
        ready = self.before(images)
        skipped = images if isinstance(self.shortcut, nn.Identity) else self.shortcut(ready)
        total: Tensor = self.body(ready) + skipped
        return total


def _resnet_block(inputs: int, outputs: int, stride: int) -> _Block:
    body = nn.Sequential(
        _convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(),
        _convolution(outputs, outputs, 3), nn.BatchNorm2d(outputs),
    )  # fmt: skip
    return _Block(body, _projection(inputs, outputs, stride), None)


def _wide_block(inputs: int, outputs: int, stride: int) -> _Block:
    body = nn.Sequential(
        _convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(), nn.Dropout(0.3),
        _convolution(outputs, outputs, 3),
    )  # fmt: skip
    shortcut = nn.Identity() if inputs == outputs else _convolution(inputs, outputs, 1, stride)
    return _Block(body, shortcut, nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU()))


def _next_block(inputs: int, outputs: int, stride: int, groups: int = 8, widening: int = 4) -> _Block:
    width = groups * outputs // widening
    body = nn.Sequential(
        _convolution(inputs, width, 1), nn.BatchNorm2d(width), nn.ReLU(),
        _convolution(width, width, 3, stride, groups), nn.BatchNorm2d(width), nn.ReLU(),
        _convolution(width, outputs, 1), nn.BatchNorm2d(outputs),
    )  # fmt: skip
    return _Block(body, _projection(inputs, outputs, stride), None)


def _projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(_convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class Family(NamedTuple):
    """A family of classifiers: its block, stem, widths, depth, and layers beside and within its blocks."""

    block: Any
    stem: int
    widths: tuple[int, int, int]
    depth: int
    beside: int
    within: int


FAMILIES = {
    "resnet": Family(_resnet_block, 16, (16, 32, 64), 110, 2, 2),
    "wrn": Family(_wide_block, 16, (64, 128, 256), 40, 4, 2),
    "resnext": Family(_next_block, 64, (256, 512, 1024), 29, 2, 3),
}


def classifier(name: str, channels: int, classes: int, depth: int | None = None) -> nn.Sequential:
    """Return a network of three stages, the second and third at half the size of the one before.

    Args:
        name: Its family.
        channels: Of the images.
        classes: How many there are.
        depth: Of its layers; the published depth by default.
    """
    family = FAMILIES[name]
    each = ((depth or family.depth) - family.beside) // (3 * family.within)
    layers: list[nn.Module] = [_convolution(channels, family.stem, 3)]
    if name != "wrn":
        layers += [nn.BatchNorm2d(family.stem), nn.ReLU()]
    inputs = family.stem
    for stage, outputs in enumerate(family.widths):
        for place in range(max(1, each)):
            layers.append(family.block(inputs, outputs, 2 if stage and not place else 1))
            inputs = outputs
    if name == "wrn":
        layers += [nn.BatchNorm2d(inputs), nn.ReLU()]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return network


class Epoch(NamedTuple):
    """Right answers after an epoch: of those kept from the fit, of synthetic ones kept apart, and of the test set."""

    kept: int
    synthetic: int
    test: float


def trained(
    network: nn.Module, made: Labelled, judged: Sequence[Labelled], epochs: int, seed: int
) -> Iterator[list[int]]:
    """Yield how many of each set the averaged network is right for, after each epoch."""
    device = chosen_device()
    network.to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, _EVERY, _FACTOR)
    average = torch.optim.swa_utils.AveragedModel(
        network, avg_fn=lambda old, new, done: old + (1 - min(_DECAY, (1 + done) / (10 + done))) * (new - old)
    )
    pixels, labels = made.tensors()
    shuffle = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        network.train()
        for rows in torch.randperm(len(pixels), generator=shuffle).split(_BATCH):
            if len(rows) < 2:  # of one image there is no batch to normalise by
                continue
            loss = functional.cross_entropy(network(pixels[rows].to(device)), labels[rows].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(network)
        schedule.step()
        for own, running in zip(average.module.buffers(), network.buffers(), strict=True):
            own.copy_(running)  # theirs averages weights alone
        average.eval()
        yield [_right(average, each, device) for each in judged]


@torch.no_grad()
def _right(network: nn.Module, judged: Labelled, device: str) -> int:
    pixels, labels = judged.tensors()
    found = [network(part.to(device)).argmax(1).cpu() for part in pixels.split(1_000)]
    return int((torch.cat(found) == labels).sum())


def chosen(epochs: Sequence[Epoch], epsilon: float | None, rng: np.random.Generator) -> dict[str, float]:
    """Return the test accuracy of the epoch that each rule chooses.

    Args:
        epochs: Counts after each epoch.
        epsilon: ε of one choice by report noisy max; None for real images, without noise.
        rng: Of the noise. It is seeded: good for a measurement, and not for a release.
    """
    counts = np.array([each.kept for each in epochs], dtype=float)
    noisy = counts if epsilon is None else counts + rng.laplace(scale=1 / epsilon, size=len(counts))
    rules = {
        "private": int(noisy.argmax()),
        "noiseless": int(counts.argmax()),
        "synthetic": int(np.argmax([each.synthetic for each in epochs])),
        "last": len(epochs) - 1,
    }
    return {rule: round(epochs[place].test, 4) for rule, place in rules.items()}


# -- one cell ----------------------------------------------------------------------------------------------------------


def synthetic(options: argparse.Namespace, folder: Path, epsilon: float, seed: int) -> tuple[Labelled, dict[str, Any]]:
    """Fit on what their split leaves, and return as many images as the training set has."""
    whole = read_split(folder, "train", options.channels)
    train, _ = split_train(whole)
    plain = {
        "doublure": 1,
        "kind": "images",
        "units": len(train.labels),
        "images": {"shape": list(train.images.shape[1:]), "pictures": options.pictures},
        "label": {"values": sorted(set(whole.labels.tolist())), "roles": ["target", "condition"]},
    }
    delta = 1 / (len(train.labels) * math.log(len(train.labels)))
    schema = Schema.parse(json.dumps(plain))
    plan = db.plan(schema, method=options.method, epsilon=epsilon, delta=delta, **settings(options.set))
    cell = ("dpimagebench", folder.name, options.method, epsilon, options.set, seed)
    made, took, _ = kept(plan, {"images": train.images, "labels": train.labels}, cell, seed)
    drawn = made.draw(len(whole.labels), seed=seed).in_bytes
    labels = drawn.labels.cat.codes.to_numpy().astype(np.int64)
    return Labelled(drawn.images, labels), {"delta": delta, **took}


def one(options: argparse.Namespace, folder: Path, epsilon: float, seed: int, name: str) -> dict[str, Any]:
    """Fit, and train one classifier."""
    start = time.process_time()
    whole, test = (read_split(folder, split, options.channels) for split in ("train", "test"))
    train, aside = split_train(whole)
    made, facts = (train, dict[str, Any]()) if epsilon == math.inf else synthetic(options, folder, epsilon, seed)
    order = np.random.default_rng(0).permutation(len(made.labels))
    apart = round(KEPT_FROM_THE_FIT * len(order))
    learned, apart_ones = made.taken(order[: len(order) - apart]), made.taken(order[len(order) - apart :])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = classifier(name, options.channels, int(whole.labels.max()) + 1, options.depth)
        counts = list(trained(network, learned, (aside, apart_ones, test), options.epochs, seed))
    epochs = [Epoch(kept=a, synthetic=b, test=c / len(test.labels)) for a, b, c in counts]
    each = None if epsilon == math.inf else epsilon / CHOICES
    return {
        **chosen(epochs, each, np.random.default_rng(seed)),
        **facts,
        "weights": sum(weight.numel() for weight in network.parameters()),
        "images": len(learned.labels),
        "cpu_seconds": round(time.process_time() - start),
        "torch": torch.__version__,
    }


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield a classifier at a time; a fit is made once."""
    read_split(options.folder, "test", options.channels)
    for epsilon in options.epsilon:
        for seed in options.seeds:
            for name in options.classifiers:
                cell = (options.folder.name, options.method, epsilon if epsilon < math.inf else None, seed)
                how = (" ".join(options.set), name, options.depth or FAMILIES[name].depth, options.epochs)
                yield {"cell": (*cell, *how)}, partial(one, options, options.folder, epsilon, seed, name)


def table() -> None:
    """Print the results as Markdown."""
    print("| data | method | ε | classifier | chosen with noise | without | by synthetic images |")
    print("|---|---|--:|---|--:|--:|--:|")
    groups = dict[tuple[object, ...], list[dict[str, Any]]]()
    for row in finished("dpimagebench"):
        data, method, epsilon, _, _, name, depth, epochs = row["cell"]
        key = (data, method, "∞" if epsilon is None else epsilon, f"{name}-{depth}, {epochs} epochs")
        groups.setdefault(key, []).append(row)
    for key, rows in groups.items():
        shares = (mean_and_range([row[rule] for row in rows], ".1%") for rule in ("private", "noiseless", "synthetic"))
        print("|", " | ".join(map(str, (*key, *shares))), "|")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    writing = verbs.add_parser("archive")
    writing.add_argument("--data", required=True)
    writing.add_argument("-o", "--out", type=Path, required=True)
    verbs.add_parser("table")
    for name in ("run", "export"):
        own = verbs.add_parser(name)
        own.add_argument("--folder", type=Path, required=True, help="where train_28.zip and test_28.zip lie")
        own.add_argument("--channels", type=int, choices=[1, 3], default=1)
        own.add_argument("--pictures", choices=["drawings", "photographs"], default="drawings")
        own.add_argument("--method", default="guided")
        own.add_argument("--epsilon", type=float, nargs="+", default=[10.0], help="inf for the real images")
        own.add_argument("--seeds", type=int, nargs="+", default=[0])
        own.add_argument("--set", nargs="*", default=[], help="settings of the method, as name=JSON")
        own.add_argument("--classifiers", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
        own.add_argument("--epochs", type=int, default=50)
        own.add_argument("--depth", type=int, help="of the classifiers; the published one by default")
        own.add_argument("-o", "--out", type=Path, help="of export: the folder that eval.py is given")
    options = parser.parse_args()
    if options.verb == "table":
        return table()
    if options.verb == "archive":
        for split in ("train", "test"):
            images, labels = images_of(options.data, split)
            write_archive(options.out / f"{split}_{images.shape[1]}.zip", images, labels)
        return None
    if options.verb == "export":
        if options.out is None:
            parser.error("--out: name the folder")
        made, _ = synthetic(options, options.folder, options.epsilon[0], options.seeds[0])
        print(export(options.out, made))
        return None
    return measure("dpimagebench", cases(options))


if __name__ == "__main__":
    main()
