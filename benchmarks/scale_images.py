"""What a fit on more pictures than memory holds takes: processor seconds by stage and peak memory, a line a size.

Made-up pictures are written as one NPZ file, or as a folder of PNG, once a size; each fit is a process of its own.

    python benchmarks/scale_images.py --pictures 200_000 --memory 4GB --folder /var/tmp/scale
    python benchmarks/scale_images.py --pictures 5_000 --memory 4GB --container folder --method statistics
"""

from __future__ import annotations

import argparse
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from command_line import choice, command_line, told
from scaling import SEED, by_child, keep, measured_fit

SIDE, COLOURS, CLASSES = 64, 3, 10
EPSILON, DELTA = 1.0, 1e-7
COMMAND = "python benchmarks/scale_images.py --pictures {pictures} --memory {memory} --container {container}"
SCHEMA = """
doublure: 1
kind: images
units: {pictures}
images: {{shape: [64, 64, 3]}}
label: {{values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], roles: [condition]}}
"""
SETTINGS: dict[str, dict[str, Any]] = {
    "dpgan": {"steps": 4, "lot_size": 256, "n_critic": 2},
    "statistics": {"fit_steps": 2},
}
_AT_ONCE = 2_000


def blocks(pictures: int) -> Any:
    """Yield made-up pictures, their classes' shades under noise, some at a time, and their labels."""
    for number, first in enumerate(range(0, pictures, _AT_ONCE)):
        draw, size = np.random.default_rng([SEED, number]), min(_AT_ONCE, pictures - first)
        labels = draw.integers(0, CLASSES, size)
        noise = draw.integers(0, 160, (size, SIDE, SIDE, COLOURS), dtype=np.uint8)
        yield noise + (9 * labels).astype(np.uint8)[:, None, None, None], labels


def write_pictures(folder: Path, pictures: int, container: str) -> Path:
    """Write made-up pictures, and return where they lie."""
    out = folder / f"{pictures}.{container}"
    if out.exists():
        return out
    made = Path(tempfile.mkdtemp(dir=folder))
    if container == "npz":
        labels = []
        with zipfile.ZipFile(made / "set", "w") as archive:
            with archive.open("images.npy", "w", force_zip64=True) as file:
                header = {"descr": "|u1", "fortran_order": False, "shape": (pictures, SIDE, SIDE, COLOURS)}
                np.lib.format.write_array_header_1_0(file, header)
                for images, own in blocks(pictures):
                    file.write(images.tobytes())
                    labels.append(own)
            with archive.open("labels.npy", "w") as file:
                np.lib.format.write_array(file, np.concatenate(labels))
    else:
        from PIL import Image

        for name in range(CLASSES):
            (made / "set" / str(name)).mkdir(parents=True)
        for number, (images, own) in enumerate(blocks(pictures)):
            for place, (image, name) in enumerate(zip(images, own, strict=True)):
                Image.fromarray(image).save(made / "set" / str(name) / f"{number * _AT_ONCE + place:08}.png")
    (made / "set").rename(out)
    made.rmdir()
    return out


def fit(data: Path, given: argparse.Namespace) -> None:
    """Fit, and print what it took of this process: the way of a child."""
    import torch

    import doublure as db

    torch.set_num_threads(1)
    pictures = given.pictures[0]
    schema = db.Schema.parse(SCHEMA.format(pictures=pictures))
    plan = db.plan(schema, method=given.method, epsilon=EPSILON, delta=DELTA, **SETTINGS[given.method])
    options: dict[str, Any] = {} if given.memory == "all" else {"memory": given.memory}
    with tempfile.TemporaryDirectory(dir=data.parent) as folder:
        _, row = measured_fit(data, plan, Path(folder), **options)
    row |= {
        "pictures": pictures, "shape": [SIDE, SIDE, COLOURS], "container": given.container, "memory": given.memory,
        "settings": SETTINGS[given.method], "planned_mb": plan.memory_bytes // 10**6,
        "command": COMMAND.format(pictures=pictures, memory=given.memory, container=given.container)
        + f" --method {given.method}",
    }  # fmt: skip
    print(json.dumps(row))


def main() -> None:
    """Read the command line."""
    given = command_line(
        __doc__, pictures=[200_000], memory=told("4GB", "'all' holds the pictures"),
        container=choice(["npz", "folder"], "npz"), method=choice(SETTINGS, "dpgan"),
        folder=Path(tempfile.gettempdir()), child=told(Path, argparse.SUPPRESS),
    )  # fmt: skip
    if given.child:
        fit(given.child, given)
        return
    for pictures in given.pictures:
        data = write_pictures(given.folder, pictures, given.container)
        words = ["--memory", given.memory, "--container", given.container, "--method", given.method]
        row = by_child(__file__, "--child", data, "--pictures", pictures, *words)
        print(json.dumps(row), flush=True)
        keep("scale_images", row)


if __name__ == "__main__":
    main()
