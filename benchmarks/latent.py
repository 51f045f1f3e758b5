"""Private data through a public generator: the comparisons of Chen et al. 2021 (tables 1 to 3, figures 4 to 8).

    python benchmarks/latent.py run --task emnist-mnist --method latentgan --epsilon 1 10 --seeds 0 1 2
    python benchmarks/latent.py run --task emnist-mnist --method latentgan --set 'teacher="critic"' --epsilon 10
    python benchmarks/latent.py run --task cifar10 --method evolution --epsilon 1 10
    python benchmarks/latent.py run --task mnist-odd-even --method real gan inversion dpgan xie
    python benchmarks/latent.py run --task mnist-odd-even --protocol paper --method dpmi dpmi-free --epsilon 1 10
    python benchmarks/latent.py time
    python benchmarks/latent.py table
    python benchmarks/latent.py curves
    python benchmarks/latent.py panels

Tasks are those of ``latent_tasks.py``; SVHN is what ``doublure datasets fetch svhn`` brings. Methods: ``real`` (the
private training data itself), ``gan`` (without privacy), ``inversion`` (the private records' inversions with their
labels, without privacy), ``latentgan``, ``evolution`` (the public images are its candidates), ``dpgan``, and ``xie``:
the paper's baseline (Xie et al. 2018: a weight-clipped critic, RMSProp, lots of 64) with what its code leaves out,
clipped gradients and a price. ``dpmi`` is the paper's
system as a whole (``DPMI``, with ``--protocol paper``): a WGAN-GP of public images, inversion from a random beginning
without an encoder, a private WGAN-GP of latents made of half as many numbers and without labels, labels from the
labelling set's classifier; ``dpmi-free`` is the same without clipping and noise (figure 1c), and ``dpmi-inversion``
what both learn: the private records' inversions, with labels from that classifier.

``--protocol paper`` divides data as the paper does: a third of it is a labelling set, and methods see the rest without
labels, which a classifier trained on that third then gives to what they make. That is (ε, δ) for two thirds of the
private records; for the labelling set it is no guarantee, unless that set is public. By default labels are part of the
private record, and all of it is covered.

A classifier learns from as many synthetic records as there are private ones (``--samples`` for fewer) and is tested on
official test data; ``--tune`` keeps training data aside instead. Of images there are a classifier score and Fréchet
distances too, in the features of a network trained on a task's private training images. Resumable: finished cells are
skipped, a public generator that was cut off goes on, and each task's is made once for all seeds and methods, as is the
network that judges. So are inversions, which are the same for every ε and seed: a cell says in ``inverted`` whether its
time holds them. Those of ``dpmi-free`` are kept in a file, so that ``--tune --set steps=…`` costs none. ``time``
inverts 10,000 MNIST images. CIFAR-10 is a JPEG copy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor

import doublure as db
import latent_report
import latent_students
from command_line import choice, command_line, some, told
from doublure import public
from doublure.cli.options import settings
from doublure.cli.terminal import TerminalProgress
from doublure.data.opening import open_data
from doublure.encode.choice import EncodingChoice, encoder_for
from doublure.encode.encoder import Encoder
from doublure.encode.latent import LatentEncoder
from doublure.methods.latentgan import training as latent_training
from doublure.methods.latentgan.settings import LatentSettings
from doublure.networks.inversion import Inversion
from doublure.networks.latent import ThroughPublic
from doublure.private.records import PrivateRecords
from doublure.training.critic_steps import PlainCriticTrainer
from doublure.training.gan_loop import Adversaries
from doublure.training.job import Job, encoded_records
from latent_tasks import TASKS, Task
from results import OUT, Case, measure

DELTA = 1e-5
FREE = ("real", "gan", "inversion", "dpmi-free", "dpmi-inversion")
PUBLISHED = ("dpmi", "dpmi-free", "dpmi-inversion")
THROUGH_LATENTS = ("latentgan", "dpmi")
XIE = {
    "loss": "wgan", "weight_clip": 0.02, "n_critic": 5, "critic_optimizer": "rmsprop", "critic_lr": 5e-5,
    "generator_lr": 5e-5, "lot_size": 64, "steps": 15_000,
}  # fmt: skip

DPMI_PUBLIC = ["objective=wgan-gp", "proposer=false"]  # λ = 10 and five critic steps: Gulrajani et al. 2017
DPMI: dict[str, Any] = {
    "teacher": "critic", "loss": "wgan-gp", "gradient_penalty": 10.0, "n_critic": 5,
    "inversion_restarts": 1, "inversion_steps": 50, "steps": 3000,
}  # fmt: skip


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    task = TASKS[options.task](options.tune)
    if options.private is not None:
        task, options.task = task.of_fewer(options.private), f"{options.task}, {options.private} images"
    if options.protocol != "paper" and set(options.method) & set(PUBLISHED):
        raise SystemExit("dpmi has labels of a labelling set: add --protocol paper")
    if options.protocol == "paper":
        task = task.by_the_paper(options.public_seed)
    for method in options.method:
        for epsilon in [None] if method in FREE else options.epsilon:
            for seed in options.seeds:
                told = [str(options.set if method not in ("real", "inversion") else [])]
                told += [str(options.public_set if method in latent_report.THROUGH_PUBLIC else [])]
                told += [] if task.labelling is None else ["paper"]
                if options.public_seed and (method in latent_report.THROUGH_PUBLIC or task.labelling is not None):
                    told += [f"public seed {options.public_seed}"]
                cell = (options.task, method, epsilon, seed, options.samples, options.epochs, options.tune, *told)
                yield {"cell": cell}, partial(one, options, task, method, epsilon, seed)


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    latent_training.latent_view = once
    measure("latent", cases(options), lambda row: " ".join(map(str, (*row["cell"][:4], row["scores"]))))


def one(options: argparse.Namespace, task: Task, method: str, epsilon: float | None, seed: int) -> dict[str, Any]:
    """Make synthetic records, train a classifier, test it."""
    encoder = encoder_for(task.schema.resolve({}), EncodingChoice())
    start = time.perf_counter(), time.process_time()
    made, labels = artificial(options, task, method, epsilon, seed, encoder)
    spent = {"seconds": round(time.perf_counter() - start[0]), "cpu_seconds": round(time.process_time() - start[1])}
    test, truth = encoded(task, task.test, encoder)
    classes = encoder.condition_width
    model = latent_students.trained(made, labels, classes, epochs=options.epochs, seed=seed)
    found: dict[str, Any] = {"scores": latent_students.scores(model, test, truth), **spent}
    if method in ("latentgan", *PUBLISHED):
        found["inverted"] = once.fresh
    if task.images:
        found |= latent_students.pictures(oracle(options, task, encoder), made, labels, test, truth)
        if not options.tune:
            usual = task.labelling is None and not options.public_seed and options.private is None
            usual = usual and not (method in ("gan", "latentgan", "dpgan") and options.set)
            latent_report.keep(options.task, method, epsilon, made, labels, usual=usual)
    if task.labelling is not None and method not in FREE:
        found["guarantee"] = "of two thirds of the records; none of the labelling set, unless it is public"
    return found | {"torch": torch.__version__, "threads": torch.get_num_threads()}


def artificial(
    options: argparse.Namespace, task: Task, method: str, epsilon: float | None, seed: int, encoder: Encoder
) -> tuple[Tensor, np.ndarray[Any, Any]]:
    """Return records as networks see them, and their labels' codes."""
    units = task.schema.public_units
    size = min(units, options.samples or units)
    if method in ("real", "inversion"):
        rows = torch.from_numpy(np.random.default_rng(seed).permutation(units)[:size])
        records, labels = (part[rows] for part in map(torch.as_tensor, encoded(task, task.private, encoder)))
        if method == "inversion":
            records = through(options, task, records)
        return records, labels.numpy()
    name, chosen = method, settings(options.set)
    if method == "xie":
        name, chosen = "dpgan", XIE | chosen
    if method in ("dpmi-free", "dpmi-inversion"):
        records = unprotected(options, task, seed, size, learned=method == "dpmi-free")
        return records, labelled(options, task, records, seed, encoder)
    if method in THROUGH_LATENTS:
        name, chosen = "latentgan", through_settings(options, task, method)
    if method == "evolution":
        chosen = {"candidates": str(public_images(options, task)), "provenance": task.provenance} | chosen
    budget = {} if method == "gan" else {"epsilon": epsilon, "delta": DELTA}
    data, schema = (task.private, task.schema) if task.labelling is None else task.unlabelled()
    plan = db.plan(schema, method=name, **budget, **chosen)
    with tempfile.TemporaryDirectory() as folder, TerminalProgress() as progress:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset=options.task, epsilon=1000.0, delta=1e-2)
        syn = db.fit(data, plan, ledger=ledger, out=Path(folder) / "run", seed=seed, progress=progress)
        drawn = syn.sample(size, seed=seed)
    if task.labelling is not None:
        records, _ = encoded(task, task.relabelled(drawn), encoder)
        return records, labelled(options, task, records, seed, encoder)
    if task.images:
        return encoded(task, {"images": drawn.images, "labels": drawn.labels.to_numpy().astype(np.int64)}, encoder)
    return encoded(task, drawn, encoder)


class InvertedOnce:
    """Inverts the same records through the same generator once in a process, as ``latentgan`` does it."""

    def __init__(self) -> None:
        self._invert = latent_training.latent_view
        self._made: dict[str, PrivateRecords] = {}
        self.by_generator: dict[str, PrivateRecords] = {}
        self.fresh = False

    def __call__(
        self, job: Job, settings: LatentSettings, *networks: Any
    ) -> Callable[[PrivateRecords], PrivateRecords]:
        """Return what makes latents of records."""
        how = (settings.facts.generator_sha256, settings.inversion_steps, settings.inversion_restarts)
        key, invert = f"{latent_training.latents_key(job)} {how}", self._invert(job, settings, *networks)

        def latents(records: PrivateRecords) -> PrivateRecords:
            self.fresh = key not in self._made
            if self.fresh:
                self._made[key] = invert(records)
                self.by_generator[settings.facts.generator_sha256] = self._made[key]
            return self._made[key]

        return latents


class FinishedLatents:
    """Latents that are computed, in a file: ``dpmi-free`` is tuned without inverting again, and goes on where it was.

    Args:
        how: What the latents depend on.
    """

    def __init__(self, how: list[Any]) -> None:
        self._file = OUT / "latents" / f"{hashlib.sha256(json.dumps(how).encode()).hexdigest()[:12]}.npy"

    def load(self, shape: tuple[int, int]) -> Tensor | None:
        """Return the finished rows, if there are any."""
        return torch.from_numpy(np.load(self._file)[: shape[0]]) if self._file.is_file() else None

    def save(self, rows: Tensor, batches: int, *, last: bool) -> None:
        """Keep the rows, now and then."""
        if last or batches % 10 == 0:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.save(part := self._file.with_suffix(".part.npy"), rows.numpy())
            part.replace(self._file)


once = InvertedOnce()
_labelling: dict[int, torch.nn.Sequential] = {}  # the labelling set's classifier by seed: one process has one task


def unprotected(options: argparse.Namespace, task: Task, seed: int, size: int, *, learned: bool = True) -> Tensor:
    """Return images from ``dpmi``'s networks, loss and steps on the same latents, without clipping and noise.

    Args:
        options: Of the command line.
        task: The task, by the paper's protocol.
        seed: Of training and sampling.
        size: Images to make.
        learned: False: the images of the private records' own latents.
    """
    data, schema = task.unlabelled()
    chosen = through_settings(options, task, "dpmi")
    own = db.plan(schema, method="latentgan", epsilon=1.0, delta=DELTA, **chosen).settings
    if not isinstance(own, LatentSettings):
        raise TypeError("latentgan has settings of its own")
    encoder = encoder_for(schema.resolve({}), own.encoding)
    generator, proposer, _ = latent_training.public_networks(encoder, own)
    units = schema.public_units
    latents = once.by_generator.get(own.facts.generator_sha256)
    once.fresh = latents is None
    if latents is None:
        inversion = latent_training.build_inversion(encoder, own, generator, proposer)
        compact = encoder.compact(open_data(data, schema.kind).load(schema).content)
        records = encoded_records(encoder, compact, np.arange(units), units)
        how = [options.task, options.tune, options.public_seed, own.facts.generator_sha256]
        how += [own.inversion_steps, own.inversion_restarts]
        latents = records.mapped(
            inversion, inversion.width, rows=inversion.settings.batch, apart=True, resumable=FinishedLatents(how)
        )
        once.by_generator[own.facts.generator_sha256] = latents
    if not learned:
        (found, _), *_ = latents.expanded(units)
        drawn = torch.randperm(units, generator=torch.Generator().manual_seed(seed))[:size]
        return latent_students.seen(generator, found[drawn])
    job: Any = SimpleNamespace(
        encoder=LatentEncoder(encoder, own.latent), records=latents, sample_rate=(own.lot_size or 1) / units,
        device="cpu", seed=seed, taken=0, private=False, authorise=lambda step: None,
    )  # fmt: skip
    adversaries, teacher = Adversaries(job, own), PlainCriticTrainer(job, own)
    while teacher.taken < teacher.steps:
        for _ in range(own.n_critic):
            adversaries.follow(teacher.gradient(adversaries.critic, adversaries.partner))
        adversaries.improve_generator()
    whole = ThroughPublic(adversaries.average, generator, width=own.latent).eval()
    noise = torch.randn(size, own.noise_width, generator=torch.Generator().manual_seed(seed))
    return latent_students.seen(whole, noise)


def labelled(
    options: argparse.Namespace, task: Task, records: Tensor, seed: int, encoder: Encoder
) -> np.ndarray[Any, Any]:
    """Return what a classifier of the labelling set says of records."""
    if seed not in _labelling:
        known, truth = encoded(task, task.labelling, encoder)
        classes, epochs = encoder.condition_width, options.epochs
        _labelling[seed] = latent_students.trained(known, truth, classes, epochs=epochs, seed=seed + 1)
    return latent_students.seen(_labelling[seed], records).argmax(1).numpy()


def oracle(options: argparse.Namespace, task: Task, encoder: Encoder) -> torch.nn.Sequential:
    """Return the classifier of a task's private images that scores images, trained if it is not there yet."""
    what = [options.task, options.tune, options.epochs, task.labelling is None]
    if options.public_seed and task.labelling is not None:  # it divides the private images too
        what += [options.public_seed]
    told = json.dumps(what)
    file = OUT / "oracles" / f"{options.task}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.safetensors"
    if not file.is_file():
        records, labels = encoded(task, task.private, encoder)
        model = latent_students.trained(records, labels, encoder.condition_width, epochs=options.epochs, seed=1000)
        file.parent.mkdir(parents=True, exist_ok=True)
        save_model(model, str(file))
    model = latent_students.four_convolutions(encoder.body_shape, encoder.condition_width)
    load_model(model, file)
    return model.eval()


def encoded(task: Task, data: Any, encoder: Encoder) -> tuple[Tensor, np.ndarray[Any, Any]]:
    """Return real or synthetic records as networks see them, and their labels' codes."""
    content = open_data(data, task.schema.kind).load(task.schema).content
    bodies, conditions = encoder.split(encoder.encode(content))
    if conditions is None:
        raise TypeError("tasks have labels")
    return bodies, conditions.argmax(1).numpy()


# -- the public generator --------------------------------------------------------------------------------------------


def through_settings(options: argparse.Namespace, task: Task, method: str) -> dict[str, Any]:
    """Return the settings of a method that sees records through the task's public generator."""
    published = method in PUBLISHED
    folder = public_generator(options, task, DPMI_PUBLIC if published else [])
    return (DPMI if published else {}) | settings(options.set) | {"public": str(folder)}


def public_images(options: argparse.Namespace, task: Task) -> Path:
    """Return a file of the task's public images, without labels, written if it is not there yet."""
    file = OUT / "public" / f"{options.task}.npz"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, images=task.public["images"])
    return file


def public_generator(options: argparse.Namespace, task: Task, first: list[str]) -> Path:
    """Return the folder of the task's public generator, made if it is not there yet.

    Args:
        options: Of the command line.
        task: Whose public data it learns.
        first: Settings before those of the command line.
    """
    divided = [name for name, is_so in (("paper", task.labelling is not None), ("tune", options.tune)) if is_so]
    told = json.dumps([options.task, [*first, *options.public_set], options.public_seed, *divided])
    folder = OUT / "public" / f"{options.task}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    if (folder / "public.json").is_file():
        return folder
    with TerminalProgress() as progress:
        public.fit(
            task.public,
            task.public_schema,
            provenance=task.provenance,
            out=folder,
            resume=(folder / "begun.json").is_file(),
            seed=options.public_seed,
            progress=progress,
            **settings([*first, *options.public_set]),
        )
    return folder


def through(options: argparse.Namespace, task: Task, records: Tensor) -> Tensor:
    """Return what the public generator makes of records' latents."""
    generator, inversion = inverting(options, task)
    latents = inversion(records)
    return latent_students.seen(generator, latents)


def inverting(options: argparse.Namespace, task: Task) -> tuple[torch.nn.Module, Inversion]:
    """Return a task's public generator, and the inversion as ``latentgan`` does it by default."""
    folder = str(public_generator(options, task, []))
    settings = db.plan(task.schema, method="latentgan", epsilon=1.0, delta=DELTA, public=folder).settings
    if not isinstance(settings, LatentSettings):
        raise TypeError("latentgan has settings of its own")
    encoder = encoder_for(task.schema.resolve({}), settings.encoding)
    generator, proposer, _ = latent_training.public_networks(encoder, settings)
    return generator, latent_training.build_inversion(encoder, settings, generator, proposer)


def timing(options: argparse.Namespace) -> None:
    """Say how long ``latentgan`` takes to invert 10,000 images of MNIST."""
    options.task = "emnist-mnist"
    task, size = TASKS[options.task](False), 10_000
    schema = task.schema.resolve({})
    generator, inversion = inverting(options, task)
    encoder = encoder_for(schema, EncodingChoice())
    compact = encoder.compact(open_data(task.private, schema.kind).load(schema).content)[:size]
    records = encoded_records(encoder, compact, np.arange(size), size)
    start = time.perf_counter()
    latents = records.mapped(inversion, inversion.width, rows=inversion.settings.batch, apart=True)
    took = time.perf_counter() - start
    (images, _), (found, _) = (next(part.expanded(size)) for part in (records, latents))
    error = float((latent_students.seen(generator, found) - images).square().mean())
    print(f"10,000 images: {took:.0f} s on {torch.get_num_threads()} thread(s), mean squared error {error:.4f}")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "time", "table", "curves", "panels"], task=choice(sorted(TASKS), "emnist-mnist"),
        method=some(latent_report.METHODS, ["latentgan"]), epsilon=[1.0, 5.0, 10.0, 20.0, 50.0], seeds=[0, 1, 2],
        samples=told(int, "synthetic records; as many as private ones"),
        private=told(int, "private images, if not all"), epochs=10,
        set=told([], "settings of the method, name=JSON"),
        public_set=told([], "settings of the public generator, name=JSON"), public_seed=0,
        protocol=told(choice(["labels", "paper"], "labels"), "where labels come from"),
        tune=told(False, "test on training data that was kept aside"), threads=2,
    )  # fmt: skip
    torch.set_num_threads(options.threads)
    if options.verb in ("run", "time"):
        (run if options.verb == "run" else timing)(options)
    else:
        {"table": latent_report.table, "curves": latent_report.curves, "panels": latent_report.panels}[options.verb]()


if __name__ == "__main__":
    main()
