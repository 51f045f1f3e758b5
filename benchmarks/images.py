"""Synthetic images as training sets: classifiers trained on them, tested on real ones; and the expected privacy loss.

    python benchmarks/images.py run --data mnist --epsilon 1 --seeds 0 1 2            # --method auto, no --set
    python benchmarks/images.py run --data mnist --method peer:dp-merf --epsilon 1 --seeds 0 1 2
    python benchmarks/images.py run --data mnist --method noisecritic --students cnn logistic --expected-loss student
    python benchmarks/images.py run --data mnist --method bayesgan --epsilon 2 --sizes 100 300 1000 3000 10000
    python benchmarks/images.py run --data mnist --method guided --epsilon 1 --seeds 0 1 2 --tuning
    python benchmarks/images.py run --data mnist --epsilon 10 --seeds 0 --samples 2000 --shown 2
    python benchmarks/images.py run --data cifar10 --epsilon 10 --beside    # what the accuracy does not say
    python benchmarks/images.py table                # and curves: a picture of --sizes, bayesgan beside real images

All 60,000 training images are the private data set (``--private`` for fewer); a classifier of
``doublure.measures.images.classifiers`` learns from 60,000 synthetic ones and is tested on the 10,000 official test
images; method ``real`` trains it on the training images themselves. Resumable: finished cells are skipped.
``--tune`` keeps the last 10,000 training images aside, tests on those, and never opens the test set: settings were
chosen that way.

Fits are kept under ``out/runs``: one that was cut off goes on, and one that was made is loaded.

``bayesgan``'s ε is the ceiling on ε_μ at δ_μ = 1e-10, annotator included (Triastcyn & Faltings 2022, Table 1: a true
sum of 2). ``--sizes`` also trains the first classifier on the first so many images, as in the paper's Figure 3;
``--method real --sizes …`` is the curve beside.

``--tuning`` also trains a sweep of classifiers on 10,000 synthetic images, and compares their losses on 5,000 others
with those on real ones (2019, §5.3).

``--shown`` says how many images show their label to a classifier that learned from real training images, warped as
strongly as the argument says, and how many real test images do that are warped so, too; no student learns then.

``--expected-loss`` estimates μ (Triastcyn & Faltings 2019) beside it, in one or more spaces of features; its rule is
fixed by ``--pairs`` before any result is seen. CIFAR-10 is a JPEG copy, so that its figures stand beside no published
ones; Olivetti's faces (the first eight of each person, hence ``--pairs 200``) are brought to 48 x 48. SVHN and CelebA
are taken as ``doublure datasets fetch`` brings them.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bayesian_rows
import doublure as db
from doublure.cli.options import settings
from doublure.data.images import Images
from doublure.measures.expected_loss import EstimatorConfig, of_synthesizer
from doublure.measures.images.classifiers import (
    CLASSIFIERS,
    ClassifierName,
    image_classifier,
    learning_curve,
    predict,
)
from doublure.measures.images.distribution_metrics import MOST, frechet_distance, precision_and_recall
from doublure.measures.images.feature_extractors import CLASSIFIER_OF_REAL, NAMES, Extractor, efficientnet_lite0
from doublure.networks.labelled import LabelledGenerator, find_labeller, without_labeller
from doublure.schema import Schema
from fits import kept
from lines import Lines, draw
from peers import dp_merf
from real_images import Arrays, train_and_test, warped_by
from results import FIGURES, Case, finished, mean_and_range, measure, spread
from tuning import tune

SCHEMA = Path(__file__).resolve().parents[1] / "examples" / "schemas" / "mnist.schema.yaml"
DELTA = 1e-5
TAUGHT, TUNED_ON = 10_000, 5_000
COMPARED = 10_000
"""Images of each set in a Fréchet distance, which depends on their number."""
JUDGED_BY = 30_000
PEERS = {"peer:dp-merf": dp_merf}
DATA = ("mnist", "fashion-mnist", "emnist-letters", "cifar10", "olivetti", "svhn", "celeba", "pneumonia", "signs")
UNLIKE_MNIST = ("digits", "emnist-letters", "cifar10", "olivetti", "svhn", "celeba", "pneumonia", "signs")
DRAWINGS = ("digits", "mnist", "emnist-letters")
_TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}
_LOOKS = {
    "real": ("real images", {"color": "grey"}),
    "bayesgan 2": ("bayesgan, sum of ε_μ 2", {"color": "#0b6e8f"}),
    "bayesgan 1": ("bayesgan, sum of ε_μ 1", {"color": "#c8553d"}),
}
UNPROTECTED = ("gan", "noisecritic", "real")


def schema_of(data: str, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> Schema:
    """Return what is public about a data set: its shape, its classes, how many images it has, and of which kind."""
    plain = Schema.load(SCHEMA).to_plain() | {"units": len(images)}
    if data in UNLIKE_MNIST:
        label = {"values": sorted(set(labels.tolist())), "roles": ["target", "condition"]}
        plain |= {"images": {"shape": list(images.shape[1:])}, "label": label}
    plain["images"]["pictures"] = "drawings" if data in DRAWINGS else "photographs"
    return Schema.parse(json.dumps(plain))


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    for seed in options.seeds:
        chosen = f"{options.set}" + (f", sampled with {options.sampled}" if options.sampled else "")
        cell = (private_name(options), options.method, _epsilon(options), seed, options.samples, options.tune, chosen)
        if options.delta != DELTA and _epsilon(options) is not None:
            cell = (*cell, f"δ = {options.delta:g}")
        if options.expected_loss:
            cell = (*cell, f"{options.pairs} pairs in {' '.join(options.expected_loss)}")
        if options.tuning:
            cell = (*cell, "tuning")
        if options.beside:
            cell = (*cell, "beside")
        if options.shown is not None:
            cell = (*cell, f"shown to who learned from real images warped by {options.shown:g}")
        yield {"cell": cell}, partial(one, options, seed)


def private_name(options: argparse.Namespace) -> str:
    """Return the name of the private data: all training images, unless only the first so many."""
    return options.data if options.private is None else f"{options.data}, {options.private} images"


def _epsilon(options: argparse.Namespace) -> float | None:
    """Return the ε of a cell, where there is one."""
    return None if options.method in UNPROTECTED else options.epsilon


def one(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Fit, sample, train, test."""
    (images, labels), (test_images, test_labels) = train_and_test(options.data, options.tune)
    images, labels = images[: options.private], labels[: options.private]
    classes = int(max(labels.max(), test_labels.max())) + 1
    found: dict[str, Any] = {"students": {}}
    if options.method == "real":
        drawn, training = Images(images=images), labels
    elif options.method in PEERS:
        drawn, training, cost = peers(options, images, labels, seed)
        found |= cost
    else:
        synthesizer, cost = fitted(options, images, labels, seed)
        synthesizer = synthesizer.sampling_with(**settings(options.sampled))
        found["annotator"] = bayesian_rows.annotator_accuracy(synthesizer, test_images, test_labels)
        checked = [each for each in _modules(synthesizer) if isinstance(each, LabelledGenerator)]
        if checked:
            found["labeller_asked"] = bool(checked[0].asked)
        drawn = synthesizer.sample(options.samples, seed=seed)
        training = drawn.labels.to_numpy().astype(np.int64)
        found |= cost
        if options.beside:
            found |= beside(options, synthesizer, drawn, (images, labels), (test_images, test_labels), seed)
    found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found |= {"torch": torch.__version__, "python": platform.python_version(), "threads": torch.get_num_threads()}
    if options.shown is not None:
        real = warped_by(test_images, options.shown, seed + 1), test_labels
        judged = {"synthetic": (drawn.images, training), "real": real}
        found["shown"] = showing((images, labels), judged, options.shown, seed)
        print(options.data, options.sampled, found["shown"], flush=True)
        return found
    for student in options.students:
        chances = predict(student, drawn, training, Images(images=test_images), classes, seed)
        found["students"][student] = float((chances.argmax(1) == test_labels).mean())
        print(options.data, options.method, _epsilon(options), seed, student, found["students"][student], flush=True)
    if options.sizes:
        curve = learning_curve(
            options.students[0], drawn, training, Images(images=test_images), test_labels, options.sizes, seed
        )
        found["by_size"] = curve
        print(options.students[0], curve, flush=True)
    if options.tuning:
        validation = Images(images=test_images[:TUNED_ON]), test_labels[:TUNED_ON]
        ends = slice(TAUGHT), slice(TAUGHT, TAUGHT + TUNED_ON)
        own = [(drawn.take(part), training[part]) for part in ends]
        found["tuning"] = json.loads(tune(*own, validation, seed=seed, done=print).model_dump_json())
    if options.expected_loss and options.method not in ("real", *PEERS):
        found["expected_loss"] = losses(options, synthesizer, Images(images=images), seed)
    return found


def _modules(synthesizer: db.Synthesizer) -> list[torch.nn.Module]:
    """Return the parts of a synthesizer's network, if it is one."""
    generator = synthesizer.generator
    return list(generator.modules()) if isinstance(generator, torch.nn.Module) else []


def beside(
    options: argparse.Namespace, synthesizer: db.Synthesizer, drawn: Images, train: Arrays, test: Arrays, seed: int
) -> dict[str, Any]:
    """Return what an accuracy does not say: that without the labeller, and how alike images are in shipped extractors.

    The Fréchet distance is that of as many synthetic images as ``COMPARED`` from as many real test images, precision
    and recall of as many as ``MOST``; beside each stands that of real training images. The extractor is a classifier of
    other real training images, as in an evaluation, and EfficientNet-lite0 where it is installed. No figure in
    Inception features compares.
    """
    classes = int(max(train[1].max(), test[1].max())) + 1
    found: dict[str, Any] = {}
    own: dict[str, Any]
    if find_labeller(synthesizer.generator) is not None:
        alone = replace(synthesizer, generator=without_labeller(synthesizer.generator))
        other = alone.sample(options.samples, seed=seed)
        codes = other.labels.to_numpy().astype(np.int64)
        found["without_labeller"] = {
            student: float(
                (predict(student, other, codes, Images(images=test[0]), classes, seed).argmax(1) == test[1]).mean()
            )
            for student in options.students
        }
    half = len(train[0]) // 2
    judge = image_classifier(Images(images=train[0][:half]), train[1][:half], seed)
    for extractor in (Extractor(name=CLASSIFIER_OF_REAL, extract=judge.features), *_photographs()):
        seen = {
            name: extractor.extract(Images(images=each[:COMPARED]))
            for name, each in (("synthetic", drawn.images), ("real", train[0][half:]), ("test", test[0]))
        }
        own = {"images": min(COMPARED, len(seen["real"])), "frechet": {}, "precision": {}, "recall": {}}
        for name in ("synthetic", "real"):
            own["frechet"][name] = frechet_distance(seen[name], seen["test"])
            pair = precision_and_recall(seen[name][:MOST], seen["test"][:MOST])
            own["precision"][name], own["recall"][name] = pair
        found.setdefault("spaces", {})[extractor.name] = own
    print(found, flush=True)
    return found


def _photographs() -> list[Extractor]:
    """Return EfficientNet-lite0 where it is installed."""
    try:
        return [efficientnet_lite0()]
    except db.errors.SettingError as error:
        print(error, flush=True)
        return []


def showing(real: Arrays, judged: Mapping[str, Arrays], strength: float, seed: int) -> dict[str, float]:
    """Return the share of images, by whose they are, that show their label to who learned from real ones, warped."""
    images, labels = warped_by(real[0][:JUDGED_BY], strength, seed), real[1][:JUDGED_BY]
    looked_at = Images(images=np.concatenate([each for each, _ in judged.values()]))
    classes = int(max(own.max() for own in (labels, *(truth for _, truth in judged.values())))) + 1
    seen = predict("cnn", Images(images=images), labels, looked_at, classes, seed).argmax(1)
    ends = np.cumsum([len(truth) for _, truth in judged.values()])[:-1]
    return {
        name: float((part == truth).mean())
        for (name, (_, truth)), part in zip(judged.items(), np.split(seen, ends), strict=True)
    }


def fitted(
    options: argparse.Namespace, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], seed: int
) -> tuple[db.Synthesizer, dict[str, Any]]:
    """Plan and fit, and say what it took."""
    spent = {} if options.method in UNPROTECTED else {"epsilon": options.epsilon, "delta": options.delta}
    if options.method == bayesian_rows.METHOD:
        spent["delta"] = bayesian_rows.DELTA_MU
    plan = db.plan(schema_of(options.data, images, labels), method=options.method, **spent, **settings(options.set))
    cell = (private_name(options), options.epsilon, seed, options.tune, options.set)
    if options.delta != DELTA:
        cell = (*cell, options.delta)
    if options.method != bayesian_rows.METHOD:
        cell = (*cell, options.method)
    synthesizer, cost, run = kept(plan, {"images": images, "labels": labels}, cell, seed)
    return synthesizer, cost | (
        bayesian_rows.claims(synthesizer, run) if options.method == bayesian_rows.METHOD else {}
    )


def peers(
    options: argparse.Namespace, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], seed: int
) -> tuple[Images, np.ndarray[Any, Any], dict[str, Any]]:
    """Return a peer's images and labels, and what it took, sampling included."""
    start = time.perf_counter(), time.process_time()
    own = {
        "data": options.data,
        "epsilon": options.epsilon,
        "delta": options.delta,
        "size": options.samples,
        "seed": seed,
    }
    made, classes, facts = PEERS[options.method].artificial(images, labels, **own)
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    return Images(images=made), classes, {"fit_seconds": round(wall), "fit_cpu_seconds": round(cpu), **facts}


def losses(
    options: argparse.Namespace, synthesizer: db.Synthesizer, images: Images, seed: int
) -> dict[str, dict[str, Any]]:
    """Return the expected loss in each space of features; null where there is none."""
    found: dict[str, dict[str, Any]] = {}
    for name in options.expected_loss:
        rule = EstimatorConfig(pairs=options.pairs, features=name, seed=seed)
        start = time.process_time()
        try:
            estimate = of_synthesizer(synthesizer, images, rule)
            found[name] = json.loads(estimate.model_dump_json()) | {"cpu_seconds": round(time.process_time() - start)}
            print(*estimate.lines, sep="\n", flush=True)
        except db.errors.DataError as error:
            found[name] = {"refused": str(error)}
            print(error, flush=True)
    return found


def table() -> None:
    """Print the table for docs/evidence/journal: mean and range over seeds."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in finished("images"):
        data, method, epsilon, _, samples, tune, chosen, *loss = entry["cell"]
        cells.setdefault((data, method, epsilon, samples, tune, chosen, *loss), []).append(entry)
    names = [student for student in CLASSIFIERS if any(student in e["students"] for es in cells.values() for e in es)]
    print("| data | method | ε | " + " | ".join(names) + " | fit, s | CPU s | MiB | images | seeds | settings |")
    print("|---|---|--:|" + "--:|" * len(names) + "--:|--:|--:|--:|--:|---|")
    for (data, method, epsilon, samples, tune, chosen, *_), entries in cells.items():
        if "shown" in entries[0]:
            print("|", data, chosen, *(entry["shown"] for entry in entries), "|")
            continue
        scores = []
        for name in names:
            values = [100 * entry["students"][name] for entry in entries if name in entry["students"]]
            scores.append(mean_and_range(values, ".1f"))
        whole = [entry for entry in entries if not entry.get("resumed")] or entries  # what was cut off tells no time
        means = [
            round(statistics.mean(entry.get(key, 0) for entry in whole))
            for key in ("fit_seconds", "fit_cpu_seconds", "peak_mib")
        ]
        setting = ("held-out training images; " if tune else "") + (chosen if chosen != "[]" else "default")
        shown = "–" if epsilon is None else epsilon
        row = (data, method, shown, *scores, *means, samples, len(entries), setting)
        print("|", " | ".join(map(str, row)), "|")
    honest_table(cells)
    bayesian_rows.table(cells)
    loss_table(cells)


def honest_table(cells: dict[tuple[Any, ...], list[dict[str, Any]]]) -> None:
    """Print what stands beside an accuracy: the labeller's own, that without it, and distances; means over seeds."""
    print(
        "\n| data | method | ε | CNN | labeller alone | CNN without it | Fréchet distance | of real images |"
        " precision | recall | features |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for (data, method, epsilon, *_), entries in cells.items():
        own = [entry for entry in entries if "spaces" in entry or "without_labeller" in entry]
        if not own:
            continue
        columns = (
            [100 * entry["students"]["cnn"] for entry in own if "cnn" in entry["students"]],
            [100 * entry["annotator"] for entry in own if entry.get("annotator") is not None],
            [100 * entry["without_labeller"]["cnn"] for entry in own if "cnn" in entry.get("without_labeller", {})],
        )
        accuracies = [mean_and_range(values, ".1f") if values else "–" for values in columns]
        for space in sorted({name for entry in own for name in entry.get("spaces", {})}) or ["–"]:
            seen = [entry["spaces"][space] for entry in own if space in entry.get("spaces", {})]
            distances = ([one["frechet"][whose] for one in seen] for whose in ("synthetic", "real"))
            shares = ([100 * one[name]["synthetic"] for one in seen] for name in ("precision", "recall"))
            figures = [mean_and_range(values, ".1f") if values else "–" for values in (*distances, *shares)]
            print("|", " | ".join([data, method, f"{epsilon}", *accuracies, *figures, space]), "|")


def loss_table(cells: dict[tuple[Any, ...], list[dict[str, Any]]]) -> None:
    """Print the expected losses, one run a line: a mean over seeds would hide how far they are apart."""
    heads = ["data", "method", "seed", "features", "k", "mean", "σ₊", "μ at γ", "95 %", "μ at 1e-5 as in the paper"]
    print("\n|", " | ".join([*heads, "95 %", "settings"]), "|")
    print("|---|---|--:|---|--:|--:|--:|--:|---|--:|---|---|")
    for (data, method, _, _, _, chosen, *_), entries in cells.items():
        for entry in entries:
            for name, one in entry.get("expected_loss", {}).items():
                if "refused" in one:
                    print(
                        "|", " | ".join([data, method, str(entry["cell"][3]), name, one["refused"]]), "| | | | | | | |"
                    )
                    continue
                ends = ["–".join(f"{end:.3g}" for end in one[key]) for key in ("interval", "interval_paper")]
                figures = [f"{one[key]:.3g}" for key in ("mean", "upper_deviation")]
                at = f"{one['mu']:.3g} at {one['gamma']:.2g}"
                k = f"{one['k']}{'' if one['k_reached'] else ' (most)'}"
                row = [
                    data,
                    method,
                    entry["cell"][3],
                    name,
                    k,
                    *figures,
                    at,
                    ends[0],
                    f"{one['mu_paper']:.3g}",
                    ends[1],
                ]
                print("|", " | ".join(str(x) for x in (*row, chosen if chosen != "[]" else "default")), "|")


def curves() -> None:
    """Draw accuracy by the number of labelled training images (2022, Figure 3): ``bayesgan``'s and real ones."""
    found: dict[str, dict[str, dict[int, list[float]]]] = {}
    for entry in finished("images"):
        data, method, epsilon, _, samples, held_out, chosen, *_ = entry["cell"]
        name = method if epsilon is None else f"{method} {epsilon:g}"
        if not entry.get("by_size") or next(iter(entry["students"])) != "cnn":  # the first classifier's curve
            continue
        if name in _LOOKS and not held_out and chosen == "[]":
            for size, right in {**entry["by_size"], samples: entry["students"]["cnn"]}.items():
                found.setdefault(data, {}).setdefault(name, {}).setdefault(int(size), []).append(right)
    panes: list[tuple[str, Lines]] = [
        (_TITLES.get(data, data), {name: {at: spread(all_) for at, all_ in line.items()} for name, line in own.items()})
        for data, own in found.items()
    ]
    title = "accuracy of the CNN on real test images, mean and range of the seeds"
    draw(panes, _LOOKS, title=title, over="labelled images that it learned from", path=FIGURES / "label-curves.svg")


def arguments(line: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, or what stands for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table", "curves"])
    parser.add_argument("--data", choices=sorted(DATA), default="mnist")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--epsilon", type=float, default=1.0)
    told = "bayesgan's δ_μ stays 1e-10; published figures on images have 1.7e-6"
    parser.add_argument("--delta", type=float, default=DELTA, help=told)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--private", type=int, default=None, help="only the first so many training images are private")
    parser.add_argument("--students", nargs="+", choices=sorted(CLASSIFIERS), default=list[ClassifierName](["cnn"]))
    parser.add_argument("--expected-loss", nargs="*", choices=sorted(NAMES), default=[], metavar="FEATURES")
    parser.add_argument("--pairs", type=int, default=1000, help="real records that a loss is estimated from")
    told = "numbers of images for the first classifier, where its cell is not measured yet"
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help=told)
    parser.add_argument("--set", nargs="*", default=[], help="settings, name=JSON")
    parser.add_argument("--sampled", nargs="*", default=[], help="sampled_warp=, sampled_spread= after the fit")
    parser.add_argument("--tuning", action="store_true", help="train a sweep of classifiers, and compare their losses")
    told = "in place of students: how many images show their label to who learned from real ones, warped as strongly"
    parser.add_argument("--shown", type=float, default=None, metavar="WARP", help=told)
    told = "also measure accuracy without the labeller, and Fréchet distance, precision and recall"
    parser.add_argument("--beside", action="store_true", help=told)
    parser.add_argument("--tune", action="store_true", help="test on training images that were kept aside")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(line)
    others = options.tuning or options.sizes or options.expected_loss or options.method == "real"
    if options.shown is not None and others:
        parser.error("--shown stands alone: leave out --tuning, --sizes, --expected-loss and --method real")
    return options


def main() -> None:
    """Do what the command line says."""
    options = arguments()
    torch.set_num_threads(options.threads)
    if options.verb == "table":
        table()
    elif options.verb == "curves":
        curves()
    else:
        measure("images", cases(options))


if __name__ == "__main__":
    main()
