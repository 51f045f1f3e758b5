"""``doublure label out|read|curve|public``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json, Seed, Threads
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.cli.verb import VerbApp
from doublure.errors import counted

_Task = Annotated[Path, typer.Argument(help="A task's folder, labels.csv filled in.")]
_Classes = Annotated[
    Path | None, typer.Option("--schema", help="A schema that lists the labels; needed where the run's lists none.")
]
_Labelled = Annotated[
    Path, typer.Option("-o", "--out", help="Where to write them: .npz, a folder by class, or a contact sheet .png.")
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = VerbApp(help="Label synthetic images by hand or by a classifier.")
    group.command("out")(out)
    group.command("read")(read)
    group.command("curve")(curve)
    group.command("public")(public)
    app.add_typer(group, name="label")


def out(
    run: Annotated[Path, typer.Argument(help="A run folder of images.")],
    rows: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many images, at least 1.")],
    folder: Annotated[Path, typer.Option("-o", "--out", help="The task's folder, for the people who label.")],
    seed: Seed = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Write synthetic images, and a labels.csv to fill in."""
    from doublure.releasing.labelling import hand_out
    from doublure.run.loading import load
    from doublure.support.files import check_output

    check_output(folder)
    count = hand_out(load(run), folder, rows, seed=seed)
    text = f"Wrote {counted(count, 'synthetic image')} to {folder / 'images'}. Fill in {folder / 'labels.csv'}."
    return VerbResult(data={"task": str(folder), "images": count}, text=text)


def read(
    task: _Task,
    out: _Labelled,
    schema: _Classes = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Read the labels back, with the images that have one."""
    from doublure.releasing.labelling import read_back
    from doublure.support.files import check_output

    check_output(out)
    found = read_back(task, schema)
    found.save(out)
    said = f"Wrote {counted(len(found.images), 'labelled image')} to {out}"
    left = f"; {found.left} have no label yet." if found.left else "."
    return VerbResult(data={"path": str(out), "images": len(found.images), "left": found.left}, text=said + left)


def curve(
    task: _Task,
    real: Annotated[Path, typer.Option(help="Labelled real images, best of those kept aside: half of them test.")],
    schema: _Classes = None,
    classifier: Annotated[
        str, typer.Option("--classifier", "--student", help="Which classifier: {classifiers}.")
    ] = "cnn",
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Say how accurate a classifier gets with so many labels, beside as many real images. Internal."""
    from doublure.measures.images.label_curve import find_classifier, label_curve
    from doublure.releasing.labelling import read_back
    from doublure.support.devices import use_threads

    who = find_classifier(classifier)
    if threads is not None:
        use_threads(threads)
    found = read_back(task, schema)
    with TerminalProgress() as progress:
        learned = label_curve(found.images, found.schema, real, classifier=who, seed=seed or 0, progress=progress)
    return VerbResult(data=learned.model_dump(mode="json"), text=str(learned))


def public(
    run: Annotated[Path, typer.Argument(help="A run folder of images.")],
    data: Annotated[Path, typer.Argument(help="Labelled public images.")],
    schema: Annotated[Path, typer.Option(help="Their schema, with a label and its values.")],
    provenance: Annotated[Path, typer.Option(help="YAML: what data, whose people, which licence; see docs/latent.md.")],
    rows: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many images, at least 1.")],
    out: _Labelled,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Write synthetic images, labelled by a classifier that is trained on labelled public images."""
    from doublure.data.images.writing import check_ending
    from doublure.releasing.labelling import by_classifier
    from doublure.run.loading import load
    from doublure.support.devices import use_threads
    from doublure.support.files import check_output

    check_output(out)
    check_ending(out, rows)
    if threads is not None:
        use_threads(threads)
    with TerminalProgress() as progress:
        found = by_classifier(load(run), data, schema, rows, provenance=provenance, seed=seed, progress=progress)
    found.save(out)
    said = f"Wrote {counted(len(found.images), 'image')} to {out}, labelled by {found.about['labelled_by']}"
    text = f"{said}\n{found.about['guarantee']}"
    said_of = {key: found.about[key] for key in ("guarantee", "labelled_by")}
    return VerbResult(data={"path": str(out), "images": len(found.images), **said_of}, text=text)
