"""``doublure evaluate``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import PLACE, Config, Device, Json, Threads
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.errors import GateFailed, SettingError, escaped


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("evaluate")(evaluate)


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    real: Annotated[str, typer.Option(metavar=PLACE, help="The data it was fitted on.")],
    holdout: Annotated[str | None, typer.Option(metavar=PLACE, help="Real data kept aside.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the page.")] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Features in which images are compared: student (a classifier of real images, the default), pixels, "
            "efficientnet-lite0, inception-v3=FILE."
        ),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            "--at-least", metavar="KEY=FIGURE", help="End with exit code 4 if worse, as in overall=80; may be repeated."
        ),
    ] = None,
    claim: Annotated[
        bool, typer.Option("--claim", help="State the estimate of an empirical run: bundles will print μ, see docs.")
    ] = False,
    examples: Annotated[
        int, typer.Option(min=0, help="Show so many real rows beside synthetic ones, on the page in the run's folder.")
    ] = 0,
    device: Device = "cpu",
    threads: Threads = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Compare synthetic with real data. Internal: do not publish the page."""
    from doublure import evaluate as measures
    from doublure.measures.images.feature_extractors import parse_extractor
    from doublure.measures.scores import fallen_short
    from doublure.methods.bayesgan.claim import explain_estimate
    from doublure.report import check_places, named_page
    from doublure.run.folder import RunFolder
    from doublure.run.loading import load
    from doublure.run.published import refuse_inside
    from doublure.support.devices import use_device, use_threads

    refuse_inside(run, out)
    wanted = read_figures(at_least or ())
    if examples and out is not None:
        remedy = "leave out -o: the page then lies in the run's internal folder"
        raise SettingError("shows private records, which stay with the run", field="--examples", remedy=remedy)
    use_device(device)
    syn = load(run)
    if claim:
        syn.require_estimate()
    page = named_page(out) if out is not None else run / "internal" / "report.html"
    figures = page.with_name(f"{page.stem}.json") if page.name else page
    check_places(page, figures, real, holdout)
    extractor = None if features is None else parse_extractor(features, syn.schema)
    if threads is not None:
        use_threads(threads)
    with TerminalProgress() as progress:
        report = measures.report(syn, real, holdout, extractor=extractor, examples=examples, progress=progress)
    stated = syn.with_estimate(report.expected_loss) if claim and report.expected_loss is not None else None
    if stated is not None:
        report = report.model_copy(update={"about": measures.about(stated)})
    report.save(page, figures)
    text = f"{report}\nWrote {page} (internal: computed on real data, do not publish)."
    if claim and stated is None:
        why = f"there is no estimate to state: {report.expected_loss_skipped}"
        raise SettingError(why, field="claim", remedy=f"leave it out; the page is {escaped(str(page))}")
    if stated is not None:
        RunFolder.open(run).save_guarantee(stated.guarantee)
        text = f"{text}\nBundles of {run} now state: {stated.guarantee.sentence}"
    data = {"page": str(page), "internal": True, "report": json.loads(report.to_json())}
    if (estimate := RunFolder(run).estimate) is not None:
        data["estimate"] = estimate
        text = f"{text}\n{explain_estimate(estimate)} Only the ceiling is published."
    gate = None
    if wanted and (missed := fallen_short(report.measured.scores, wanted)):
        gate = GateFailed("; ".join(missed), field="--at-least", remedy=f"see {escaped(str(page))}")
    return VerbResult(data=data, text=text, gate=gate)


def read_figures(given: Sequence[str]) -> dict[str, float]:
    """Return the figures of ``KEY=FIGURE``.

    Raises:
        SettingError: One is not of that form.
    """
    found = {}
    for each in given:
        key, mark, figure = each.partition("=")
        try:
            found[key] = float(figure)
        except ValueError:
            mark = ""
        if not mark or not math.isfinite(found[key]):
            remedy = "write the key of a figure and a number, as in overall=80"
            raise SettingError("is no figure to reach", field=f"--at-least {escaped(each)}", remedy=remedy)
    return found
