"""Attacks on our own synthesizers: do they work where they should, and what do they find elsewhere?

    python benchmarks/attacks.py run --only control        # a gan that learned 100 census rows by heart
    python benchmarks/attacks.py run --only membership     # every attack on every dp method, 2,000 census rows
    python benchmarks/attacks.py run --only pictures       # the same and LiRA on 300 digits, gan as their control
    python benchmarks/attacks.py run --only canary         # one-run audits, ε claimed 4 and 1, of whole patients, too
    python benchmarks/attacks.py run --only one-run        # the same under f-DP, of every method that claims an ε
    python benchmarks/attacks.py run --only worst-case --runs 1000     # four records or five, every dp method and kind
    python benchmarks/attacks.py run --only inversion      # Olivetti's faces: real, artificial, private
    python benchmarks/attacks.py run --only digits         # MNIST, 64-32-10: attack success against accuracy and μ
    python benchmarks/attacks.py table

``control`` is the positive control: it has to find members, or none of the other figures means anything. ``digits`` is
2019's Figure 3: classifiers trained on synthetic digits of ``noisecritic`` at several strengths of its noise, on the
features of a stacked denoising autoencoder; recognised means that a model trained on other digits takes the
reconstruction for its class. Images are learned with ``gan``'s own rates, also where ``noisecritic`` has slower ones:
some thousand steps have to do. Resumable: finished cells are skipped. All of it is computed on public benchmark data,
not on anybody's.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import denoising_autoencoder
import doublure as db
from doublure import public as db_public
from doublure.attack import inversion
from doublure.attack import target_models as victims
from doublure.auditing import audit, audit_method
from doublure.auditing.worst_case import NEIGHBOURING_SETS
from doublure.data.images import Images
from doublure.data.opening import open_data
from doublure.measures.expected_loss import EstimatorConfig, of_synthesizer
from doublure.report.audit import AttackReport
from doublure.schema import Schema
from real_images import FACE, faces, images_of
from related_data import RELATED
from results import Case, finished, measure, rank_correlation

DP_METHODS = ("statistics", "guided", "dpgan")
CLAIMING = (*DP_METHODS, "latentgan", "bayesgan")
"""On tables; ``evolution`` has images alone."""
COUNTED: dict[str, Any] = {"components": 4, "fit_steps": 20}
GAN: dict[str, Any] = {"steps": 4, "lot_size": 4, "noise_width": 4, "checkpoints": 1}
STAGE: dict[str, Any] = {"critic_share": 0.3, "critic_steps": 4, "critic_lot": 4}
PICTURES: dict[str, Any] = {"features": 64, "batch": 20, "channels": [6, 4], "hidden": 8, "fit_steps": 150,
                            "generator_lr": 2e-2}  # fmt: skip
LABELLER: dict[str, Any] = {"labeller_steps": 4, "view_images": 100, "view_width": 10, "tries": 2}
WORST: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dpgan": ("dpgan", "table", GAN | {"width": 16, "critic_width": 16}),
    "statistics": ("statistics", "table", COUNTED),
    "guided": ("guided", "table", COUNTED),
    "guided, critic": ("guided", "table", COUNTED | STAGE | {"critic_width": 8}),
    "bayesgan": ("bayesgan", "table", GAN | {"generator_batch": 8, "width": 16, "critic_width": 16, "distances": 5}),
    "latentgan": ("latentgan", "table", {"steps": 4, "lot_size": 4, "width": 16, "critic_width": 16,
                                         "inversion_steps": 2, "teacher": "critic", "checkpoints": 1}),
    "statistics, images": ("statistics", "images", PICTURES),
    "guided, images": ("guided", "images", PICTURES | STAGE | LABELLER | {"critic_channels": [4]}),
    "dpgan, series": ("dpgan", "series", {"steps": 4, "lot_size": 4, "generator_batch": 8, "checkpoints": 1,
                                          "critic_channels": [4], "channels": [4, 3], "features": 4, "hidden": 6}),
    "statistics, series": ("statistics", "series", {"bins": 4, "groups": 2, "levels": 2, "fit_steps": 50}),
}  # fmt: skip
NOISE = (None, 0.5, 1.5, 5.0, 15.0, 50.0)
LEARNED: dict[str, Any] = {
    "loss": "logistic", "n_critic": 1, "critic_lr": 3e-4, "generator_lr": 3e-4, "activation": "leaky_relu"
}  # fmt: skip
DIGITS: dict[str, dict[str, Any]] = {
    "gan": LEARNED | {"steps": 1500, "lot_size": 32},
    "statistics": {"features": 1024, "batch": 100, "fit_steps": 300},
    "guided": {"features": 1024, "batch": 100, "fit_steps": 300, "labeller_steps": 30, "view_images": 1000,
               "view_width": 100},
    "dpgan": {"steps": 200, "lot_size": 100},
}  # fmt: skip


def adult(n: int, others: int, seed: int) -> tuple[Schema, pd.DataFrame, pd.DataFrame]:
    """Return the schema of so many census rows, the rows, and others."""
    train, aside = db.datasets.demo_split()
    rows = (train.sample(n, random_state=seed), aside.sample(others, random_state=seed))
    return census(n), rows[0].reset_index(drop=True), rows[1].reset_index(drop=True)


def census(units: int) -> Schema:
    """Return the schema of so many census rows."""
    return Schema.from_plain(db.Schema.load(db.datasets.adult_schema_path()).to_plain() | {"units": units})


def declared(schema: Schema) -> Schema:
    """Return the census' schema with all facts declared, as a public generator of its columns needs them."""
    plain = schema.to_plain()
    plain["columns"]["fnlwgt"]["bounds"] = [0, 1_500_000]
    del plain["columns"]["income"]["shares"]
    return Schema.from_plain(plain)


def fitted(folder: Path, schema: Schema, data: Any, seed: int, **asked: Any) -> Path:
    """Return the run folder of a fit."""
    ledger = db.Ledger.create(folder / "ledger", dataset="benchmark", epsilon=1e3, delta=0.1)
    db.fit(data, db.plan(schema, **asked), ledger=ledger, out=folder / "run", seed=seed)
    return folder / "run"


def figures(report: AttackReport) -> dict[str, Any]:
    """Return what is kept of a report: no threat model, no curve."""
    kept = ("value", "interval", "baseline", "lower_bound", "alarm", "skipped", "rates", "notes")
    return {
        "claimed": report.claim.epsilon,
        "attacks": {
            found.threat_model.attack: {key: getattr(found, key) for key in kept if key not in ("rates",)}
            | {"rates": {rate.name: [rate.value, rate.interval] for rate in found.rates}}
            | {"at": [] if found.roc is None else [entry.model_dump() for entry in found.roc.at]}
            for found in report.attacks
        },
    }


def attacked(
    attack: str | Sequence[str], schema: Schema, own: Any, others: Any, seed: int, *, shadows: int = 16, **asked: Any
) -> dict[str, Any]:
    """Fit, and return what attacks on the run find."""
    with tempfile.TemporaryDirectory() as folder:
        run = fitted(Path(folder), schema, own, seed, **asked)
        return figures(audit(run, attack, own, others, shadows=shadows, seed=seed))


def control(seed: int) -> dict[str, Any]:
    """Attack a gan that has seen 100 rows for some 2,000 epochs."""
    return attacked("quick", *adult(100, 1000, seed), seed, method="gan", steps=3000)


def membership(method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Make every attack on a dp method; the public generator of ``latentgan`` learns from other census rows."""
    cell: dict[str, Any] = {"method": method, "epsilon": epsilon, "delta": 1e-5}
    schema, own, others = adult(2000, 4000, seed)
    with tempfile.TemporaryDirectory() as folder:
        if method == "latentgan":
            schema, cell["public"] = declared(schema), public_census(Path(folder) / "public", own, seed)
        return attacked(["quick", "shadow"], schema, own, others, seed, **cell)


def pictures(method: str, epsilon: float | None, seed: int) -> dict[str, Any]:
    """Make every attack on a method that learned 300 digits."""
    asked = {"method": method, **DIGITS[method], **({"epsilon": epsilon, "delta": 1e-5} if epsilon else {})}
    return attacked(["quick", "lira"], *some_digits(300, 2000, seed), seed, shadows=8, **asked)


def some_digits(n: int, others: int, seed: int) -> tuple[Schema, Any, Any]:
    """Return the schema of so many digits, the digits, and others."""
    x, y = images_of("mnist", "train")
    rows = np.random.default_rng(seed).permutation(len(x))
    parts = ({"images": x[part], "labels": y[part]} for part in (rows[:n], rows[n : n + others]))
    return images_schema(n, 28, range(10)), *parts


def canaries(attack: str, method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Audit a dp method in one run: of census rows, or of digits whose candidates are letters."""
    asked: dict[str, Any] = {"method": method, "epsilon": epsilon, "delta": 1e-5}
    with tempfile.TemporaryDirectory() as folder:
        if method == "evolution":
            asked["candidates"] = letters(Path(folder) / "letters.npz")
            schema, *parts = some_digits(1000, 2000, seed)
        else:
            schema, *parts = adult(1000, 2000, seed)
        if method == "latentgan":
            schema, asked["public"] = declared(schema), public_census(Path(folder) / "public", parts[0], seed)
        return attacked(attack, schema, *parts, seed, **asked)


def letters(file: Path) -> str:
    """Write public images without labels, and return the file."""
    np.savez(file, images=images_of("emnist-letters", "train")[0][:4000])
    return str(file)


def patients(epsilon: float, seed: int) -> dict[str, Any]:
    """Attack and audit related tables: a target, and a canary, is a patient of Diabetes-130 with all stays."""
    stays = RELATED["stays"]
    tables = stays.tables()
    drawn = np.random.default_rng(seed).permutation(tables["patients"]["patient"])
    own, others = (
        {name: table[table["patient"].isin(some)].reset_index(drop=True) for name, table in tables.items()}
        for some in (drawn[:1000], drawn[1000:3000])
    )
    schema = Schema.from_plain(stays.schema.to_plain() | {"units": len(own["patients"])})
    return attacked(["quick", "canary"], schema, own, others, seed, method="statistics", epsilon=epsilon, delta=1e-5)


def worst_case(name: str, epsilon: float, runs: int) -> dict[str, Any]:
    """Audit a dp method by four records and five."""
    method, kind, settings = WORST[name]
    with tempfile.TemporaryDirectory() as folder:
        if method == "latentgan":
            settings = settings | {"public": public_rows(Path(folder) / "public")}
        return figures(audit_method(method, kind=kind, epsilon=epsilon, delta=1e-5, runs=runs, **settings))


def public_rows(folder: Path) -> str:
    """Train a public generator of the worst case's rows on thrown coins, and return its folder."""
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (500, 3)).astype(bool), columns=list("abc"))
    provenance = {"data": "coins thrown by a program", "people": "nobody at all", "licence": "CC0"}
    db_public.fit(
        rows, NEIGHBOURING_SETS["table"].schema, provenance=provenance, out=folder, seed=0, objective="autoencoder",
        noise_width=3, steps=300, width=32, critic_width=32,
    )  # fmt: skip
    return str(folder)


def public_census(folder: Path, private: pd.DataFrame, seed: int) -> str:
    """Train a public generator on census rows that are not among the private ones, and return its folder."""
    train, _ = db.datasets.demo_split()
    others = train.drop(train.sample(len(private), random_state=seed).index)
    rows = others.sample(5000, random_state=seed).reset_index(drop=True)
    provenance = {"data": "Adult, rows that are not private here", "people": "US, 1994", "licence": "CC BY 4.0"}
    db_public.fit(
        rows, declared(census(len(rows))), provenance=provenance, out=folder, seed=seed, objective="autoencoder"
    )
    return str(folder)


def inverted_faces(method: str, steps: int, seed: int) -> dict[str, Any]:
    """Invert classifiers trained on Olivetti's faces: five pictures of each person are fitted, five are kept aside."""
    shown, who = faces()
    place = np.concatenate([np.random.default_rng([seed, person]).permutation(10) for person in range(40)])
    parts = [{"images": shown[rows], "labels": who[rows]} for rows in (place < 5, place >= 5)]
    schema, asked = images_schema(200, FACE, range(40)), LEARNED | {"method": method, "steps": steps}
    return attacked("inversion", schema, *parts, seed, **asked)


def digits(noise: float | None, steps: int, seed: int) -> dict[str, Any]:
    """Attack a 64-32-10 classifier trained on synthetic digits or real ones: accuracy, success, μ at one strength."""
    (x, y), (test, truth) = images_of("mnist", "train"), images_of("mnist", "test")
    trained, own = {"images": x[:20_000], "labels": y[:20_000]}, (x[40_000:50_000], y[40_000:50_000])
    schema = images_schema(20_000, 28, range(10))
    private = open_data(trained, "images").load(schema.resolve({})).content
    if noise is None:
        return inverted_digits(private.take(slice(10_000)), schema, (test, truth), own, seed)
    with tempfile.TemporaryDirectory() as folder:
        asked = LEARNED | {"steps": steps, "feature_noise": noise}
        run = fitted(Path(folder), schema, trained, seed, method="noisecritic", **asked)
        syn = db.load(run)
    training = syn.sample(10_000, seed=seed)
    loss = of_synthesizer(syn, private, EstimatorConfig(pairs=200, features="student", artificial=2000, seed=seed))
    return {"mu": loss.mu, **inverted_digits(training, schema, (test, truth), own, seed)}


def inverted_digits(
    training: Images, schema: Any, test: tuple[Any, Any], own: tuple[Any, Any], seed: int
) -> dict[str, Any]:
    """Return a 64-32-10 classifier's accuracy, and how many of its reconstructions are taken for their class."""
    source = torch.Generator().manual_seed(seed)
    resolved = schema.resolve({})
    inputs, codes = inversion.tensors(resolved, training)
    pair = denoising_autoencoder.autoencoder((784, 256, 64), source)
    denoising_autoencoder.compress(pair, inputs, source, epochs=20)
    student = victims.perceptron(64, (32,), 10, source)
    with torch.no_grad():
        seen = pair[0](inputs)
    victims.train(student, seen, codes, source)
    whole = torch.nn.Sequential(pair[0], student)
    looked = torch.from_numpy(test[0].reshape(-1, 784) / 255).float()
    with torch.inference_mode():
        accuracy = float((whole(looked).argmax(1).numpy() == test[1]).mean())
    judge = victims.perceptron(784, (256, 128), 10, source)
    victims.train(judge, torch.from_numpy(own[0].reshape(-1, 784) / 255).float(), torch.from_numpy(own[1]), source, 3)
    # 2019 attacks in the 64 features: the image is what the decoder makes of them.
    back = torch.from_numpy(inversion.invert(student, np.arange(10), (1, 1, 64))).float()
    with torch.inference_mode():
        chances = torch.softmax(judge(pair[1](back)), dim=1)[torch.arange(10), torch.arange(10)]
    return {"accuracy": accuracy, "success": float(chances.mean()), "recognised": float((chances > 0.5).float().mean())}


def images_schema(units: int, side: int, labels: range) -> Schema:
    """Return the schema of square grey images."""
    return Schema.from_plain(
        {
            "doublure": 1,
            "kind": "images",
            "units": units,
            "images": {"shape": [side, side, 1]},
            "label": {"values": list(labels), "roles": ["condition", "target"]},
        }
    )


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for, and how to get it."""
    only, seeds, steps, runs = arguments.only, arguments.seeds, arguments.steps, arguments.runs
    for seed in seeds:
        if "control" in only:
            yield {"case": "control", "seed": seed}, partial(control, seed)
        asked = (name for name in (*CLAIMING, "evolution") if name in arguments.methods)
        for method, epsilon in product(asked, arguments.epsilon):
            cell = {"method": method, "epsilon": epsilon}
            if "membership" in only and method in CLAIMING:
                yield {"case": "membership", **cell, "seed": seed}, partial(membership, method, epsilon, seed)
            for attack in ("canary", "one-run") if method in DP_METHODS else ("one-run",):
                if attack in only:
                    yield {"case": attack, **cell, "seed": seed}, partial(canaries, attack, method, epsilon, seed)
        for epsilon in arguments.epsilon if "canary" in only and "statistics" in arguments.methods else ():
            cell = {"case": "canary", "method": "statistics, patients", "epsilon": epsilon, "seed": seed}
            yield cell, partial(patients, epsilon, seed)
        for method in (name for name in DIGITS if "pictures" in only and name in arguments.methods):
            for epsilon in arguments.epsilon if method in DP_METHODS else (None,):
                cell = {"case": "pictures", "method": method, "epsilon": epsilon, "seed": seed}
                yield cell, partial(pictures, method, epsilon, seed)
        for name, epsilon in product(WORST, arguments.epsilon):
            if "worst-case" in only and seed == seeds[0] and WORST[name][0] in arguments.methods:
                cell = {"case": "worst-case", "method": name, "epsilon": epsilon, "runs": runs}
                yield cell, partial(worst_case, name, epsilon, runs)
        for method in ("gan", "noisecritic") if "inversion" in only else ():
            yield (
                {"case": "inversion", "method": method, "steps": steps, "seed": seed},
                partial(inverted_faces, method, steps, seed),
            )
        for noise in NOISE if "digits" in only else ():
            yield {"case": "digits", "noise": noise, "steps": steps, "seed": seed}, partial(digits, noise, steps, seed)


def timed(make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is measured, and what it took."""
    start = time.process_time()
    return {**make(), "cpu_seconds": round(time.process_time() - start, 1)}


def run(arguments: argparse.Namespace) -> None:
    """Make the cells that are missing."""
    torch.set_num_threads(1)
    made = ((key, partial(timed, make)) for key, make in cases(arguments))
    measure("attacks", made, lambda row: f"{about(row)}: {row['cpu_seconds']} s")


def about(row: Mapping[str, Any]) -> str:
    """Return in words which cell a result is of."""
    return ", ".join(str(row[key]) for key in ("case", "method", "epsilon", "seed") if key in row)


def table() -> None:
    """Print what was found."""
    print("| case | claimed ε | attack | value | 95 % | baseline | shows ε ≥ | alarm |")
    print("|---|--:|---|--:|---|--:|--:|---|")
    for row in finished("attacks"):
        for name, found in row.get("attacks", {}).items():
            if found["skipped"] is None:
                ends = "" if found["interval"] is None else "{:.3f} to {:.3f}".format(*found["interval"])
                measured = (found["value"], ends, found["baseline"], found["lower_bound"], found["alarm"])
                print("| " + " | ".join(map(_written, (about(row), row["claimed"], name, *measured))) + " |")
    points = [row for row in finished("attacks") if row["case"] == "digits" and "mu" in row]
    if len(points) > 3:
        print(correlation(points))


def correlation(points: list[dict[str, Any]]) -> str:
    """Return Spearman's correlation of μ with attack success, and where 95 of 100 resamples put it."""
    low, middle, high = rank_correlation([row["mu"] for row in points], [row["success"] for row in points])
    return f"rank correlation of μ and success: {middle:.2f} ({low:.2f} to {high:.2f})"


def _written(cell: object) -> str:
    return "–" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("run")
    kinds = ["control", "membership", "pictures", "canary", "one-run", "worst-case", "inversion", "digits"]
    making.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    known = list(dict.fromkeys([*DIGITS, *(method for method, _, _ in WORST.values()), "evolution"]))
    making.add_argument("--methods", nargs="+", choices=known, default=known)
    making.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 4.0])
    making.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    making.add_argument("--runs", type=int, default=1000)
    making.add_argument("--steps", type=int, default=2000, help="of the image GANs")
    verbs.add_parser("table")
    arguments = parser.parse_args()
    if arguments.verb == "run":
        run(arguments)
    else:
        table()


if __name__ == "__main__":
    main()
