"""Inspection of a private pipeline from synthetic records alone (Triastcyn & Faltings 2022, tasks T1-T6, §3.1).

Private records may not be looked at, so a bug before the fit stays unseen: a share of the images turned, a table of
labels shifted by one, a lost class, grams for kilograms, two columns exchanged, a clock an hour late. The fit learns
its traces. No real record is read here: an inspection is post-processing, open to all who may see samples.

Each fault test compares a share of the records with the same share of correct runs: older ones, or from other sites.
Runs on the same data differ, too, by the noise of their fits. So a share is held against how several correct runs
differ, at p < 0.01 after Holm's correction for all tests (:mod:`doublure.measures.fault_tests`). A single one does not
say how much runs differ: a difference then counts beyond a margin of five points, and where its images do not show
their labels nothing is tested. Without any correct run nothing is tested either: images are reported if the share
surely exceeds one in ten. Rows and series are not: any share may be right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from doublure.data.images import Images
from doublure.data.images.sheets import contact_sheet, examples, png, rows_of
from doublure.data.records import handed_out
from doublure.errors import DataError, SettingError, counted
from doublure.evaluate.evaluation import about
from doublure.measures.fault_tests import FEW, LEVEL, MARGIN, FaultStatistic, FaultTest, decide
from doublure.measures.images.fault_tests import ROUGH, InspectionSets, count_flops, run_fault_tests
from doublure.measures.images.feature_extractors import encode_labels
from doublure.measures.images.slices import slices
from doublure.measures.series.fault_tests import series_fault_statistics
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.fault_tests import row_fault_statistics
from doublure.planning.machine import estimate_seconds
from doublure.report.inspection import Inspection
from doublure.results import versions
from doublure.run.synthesizer import Synthesizer
from doublure.schema.images import ImageSchema
from doublure.schema.kinds import KINDS, ByKind
from doublure.support.progress import Progress, listen
from doublure.training.settings import Work

LOOKED_AT = 2_000
"""Number of records inspected of each run; the test classifiers learn from twice as many others."""

_A_ROW = 16


def inspect(
    syn: Synthesizer,
    against: Synthesizer | Sequence[Synthesizer] | None = None,
    *,
    images: int = LOOKED_AT,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> Inspection:
    """Inspect a synthesizer's records for traces of a broken pipeline.

    The first stage that ``progress`` receives says what the inspection will cost.

    Args:
        syn: The synthesizer to inspect.
        against: One or several correct runs on the same kind of records; five give a good estimate of their variation
            and nine a better one, and of three only gross differences count. The test classifiers learn from the first.
        images: Number of records inspected of each; twice as many others train the classifiers.
        seed: Fixes the samples and the classifiers' randomness.
        progress: Receives progress events; None: a line where it is seen, False: nothing.

    Raises:
        SettingError: One of the others has other records; or there is none, and the records are no images.

    Example:
        >>> found = db.evaluate.inspect(syn, syn, progress=False)
        >>> found.verdict.headline
        'Nothing stands out in 2,000 synthetic rows.'
    """
    right = tuple(against) if isinstance(against, Sequence) else () if against is None else (against,)
    look = INSPECTIONS[syn.schema.kind]
    if images < 1:
        raise SettingError("must be at least 1", field="images", remedy="leave it out")
    with listen(progress, "inspect") as listener:
        return look(_Request(syn=syn, right=right, size=images, seed=seed, listener=listener))


@dataclass(frozen=True, kw_only=True)
class _Request:
    syn: Synthesizer
    right: tuple[Synthesizer, ...]
    size: int
    seed: int
    listener: Progress

    def drawn(self, flops: float = 0.0, steps: int = 0) -> tuple[Any, Any, list[Any]]:
        """Announce the cost, and draw records: for training, of the inspected run, and of each correct one.

        Args:
            flops: Floating-point operations of the networks.
            steps: Number of their steps.
        """
        runs, size, seed = len(self.right), self.size, self.seed
        seconds = estimate_seconds(Work(flops=flops, steps=steps, memory_bytes=0))
        how = (
            f"then train networks for {counted(steps, 'step')}: some {seconds:.0f} s of a core"
            if steps
            else "train no network"
        )
        records = KINDS[self.syn.schema.kind].records
        self.listener.stage(f"draw {size * (runs + 3 if runs else 3):,} synthetic {records}, {how}")
        first, *others = self.right or (self.syn,)
        both = _drawn(first, 3 * size, seed=seed)
        training, rest = _split(both, 2 * size)
        if not runs:
            return training, rest, []
        of_right = [rest, *(_drawn(other, size, seed=seed + 2 + place) for place, other in enumerate(others))]
        return training, _drawn(self.syn, size, seed=seed + 1), of_right

    def inspection(self, fault_tests: tuple[FaultTest, ...], notes: tuple[str, ...], **shown: Any) -> Inspection:
        """Return the inspection with the results of its tests."""
        return Inspection(
            about=about(self.syn),
            against=tuple(about(each) for each in self.right),
            records=KINDS[self.syn.schema.kind].records,
            images=self.size,
            seed=self.seed,
            fault_tests=fault_tests,
            notes=notes,
            versions=versions(),
            **shown,
        )


def _drawn(syn: Synthesizer, n: int, *, seed: int) -> Any:
    """Return records in the form that measures read."""
    drawn = syn.draw(n, seed=seed)
    return drawn.in_bytes if isinstance(drawn, Images) else handed_out(drawn, syn.schema)


def _split(records: Any, at: int) -> tuple[Any, Any]:
    if hasattr(records, "take") and not hasattr(records, "iloc"):
        return records.take(slice(at)), records.take(slice(at, None))
    return records.iloc[:at].reset_index(drop=True), records.iloc[at:].reset_index(drop=True)


def _images(asked: _Request) -> Inspection:
    syn, right, seed = asked.syn, asked.right, asked.seed
    schema = _common_schema(syn, right)
    classes = 0 if schema.label is None else len(schema.label.domain)
    training, inspected, of_right = asked.drawn(*count_flops(schema.shape, classes, asked.size, len(right)))
    sets = InspectionSets(
        training=(training, encode_labels(schema, training)),
        inspected=(inspected, encode_labels(schema, inspected)),
        right=tuple((each, encode_labels(schema, each)) for each in of_right),
        labels=() if schema.label is None else tuple(str(value) for value in schema.label.domain),
    )
    return asked.inspection(
        run_fault_tests(sets, seed, asked.listener),
        _notes(len(right), len(training), labelled=schema.label is not None),
        slices=slices(sets),
        sheet=_sheet(inspected, schema, syn),
        reference_sheets=tuple(_sheet(each, schema, of) for each, of in zip(of_right, right, strict=True)),
    )


# -- rows and series -------------------------------------------------------------------------------------------------


def _rows(asked: _Request) -> Inspection:
    coder = Coder(schema=asked.syn.schema)

    def signs(training: Any, *seen: Any) -> dict[str, FaultStatistic]:
        read = [coder.read(frame, "the synthetic rows") for frame in (training, *seen)]
        return row_fault_statistics(coder, read[0], read[1:], asked.seed)

    return _others(asked, signs)


def _series(asked: _Request) -> Inspection:
    return _others(asked, lambda training, *seen: series_fault_statistics(training, seen))


def _others(asked: _Request, signs: Callable[..., dict[str, FaultStatistic]]) -> Inspection:
    """Inspect records that cannot be tested without a correct run."""
    records, right = KINDS[asked.syn.schema.kind].records, asked.right
    if not right:
        remedy = "name one run or several that are known to be right (--against)"
        raise SettingError(f"is missing: {records} alone do not say what is wrong", field="against", remedy=remedy)
    _refuse_unlike(asked)
    training, inspected, of_right = asked.drawn()
    asked.listener.stage("look for signs")
    try:
        found = signs(training, inspected, *of_right)
    except DataError:
        raise _unlike(records) from None
    return asked.inspection(decide(found, tested=True), _notes_of_others(len(right), len(training), records), slices=())


def _refuse_unlike(asked: _Request) -> None:
    """Refuse runs with other columns or values; bounds and shares may be bought, and differ between fits."""

    def parts(syn: Synthesizer) -> object:
        schema = syn.schema
        columns = {name: (column.type, column.domain) for name, column in schema.columns.items()}
        return schema.kind, columns

    if any(parts(other) != parts(asked.syn) for other in asked.right):
        raise _unlike(KINDS[asked.syn.schema.kind].records)


def _unlike(records: str) -> SettingError:
    return SettingError(f"makes other {records} than the inspected run", field="against", remedy="name runs like it")


INSPECTIONS = ByKind[Callable[[_Request], Inspection]](
    "inspection", table=_rows, visits=_rows, images=_images, series=_series
)


def _common_schema(syn: Synthesizer, right: Sequence[Synthesizer]) -> ImageSchema:
    remedy = "compare runs with `doublure compare`, or evaluate the run"
    wrong = SettingError(f"is of kind {syn.schema.kind}; images can be inspected", field="run", remedy=remedy)
    schema = ImageSchema.of(syn.schema, wrong)
    for place, found in enumerate((getattr(each, "schema", None) for each in right), start=1):
        which = f"number {place} " if len(right) > 1 else ""
        remedy = "name runs with images of the same shape and labels"
        wrong = SettingError(f"{which}makes other images than the inspected run", field="against", remedy=remedy)
        other = ImageSchema.of(found, wrong)
        if (other.shape, _classes(other)) != (schema.shape, _classes(schema)):
            raise wrong
    return schema


def _classes(schema: ImageSchema) -> Sequence[object] | None:
    """Return the possible labels, without their shares, which may have been bought and differ between fits."""
    return None if schema.label is None else schema.label.domain


def _notes_of_others(right: int, trained: int, records: str) -> tuple[str, ...]:
    return (
        f"What is usual was learned from {trained:,} {records} of the first reference run.",
        *_rule(right),
        f"What changes no share is not seen: {records} that were all copied equally often, or a fault that the method "
        "does not learn.",
    )


def _rule(right: int) -> tuple[str, ...]:
    """Return when a difference counts, beside one correct run or several."""
    if right == 1:
        return (
            f"A difference counts beyond {100 * MARGIN:.0f} points of the reference run, at p below {LEVEL:g} "
            "corrected for all fault tests; p is about these two generators and not about other fits. Two runs on "
            "the same data differ too, and one does not say how much. Name five.",
        )
    return (
        "Shares are compared with how correct runs differ: p is of one more correct run having such a share. A "
        f"difference counts at p below {LEVEL:g} corrected for all fault tests. How much records differ is not shown.",
        *(("So few correct runs show gross differences alone. Name five, or better nine.",) if right < FEW else ()),
    )


def _sheet(images: Images, schema: ImageSchema, syn: Synthesizer) -> bytes:
    order = _classes(schema) or ()
    title = f"Synthetic images made by {syn.plan.method}"
    return png(contact_sheet(rows_of(examples(images, schema, _A_ROW), order), title))


def _notes(right: int, trained: int, *, labelled: bool) -> tuple[str, ...]:
    trained_on = f"Classifiers were trained on {counted(trained, 'image')} of the {{}} and applied to others."
    if right == 1:
        return (
            trained_on.format("reference run"),
            *_rule(right),
            "Very poor images can look like anything: "
            + (
                f"nothing is tested where more than {100 * ROUGH:.0f} in 100 images of the reference run do not show "
                "what their label says."
                if labelled
                else "without labels that is not noticed, and one reference run says little."
            ),
        )
    if right:
        return (
            trained_on.format("first reference run"),
            *_rule(right),
            "Classifiers do better on the run that they were trained on, so that it is left out of the tests of labels "
            "and likeness where there are two others.",
        )
    return (
        f"Classifiers were trained on {counted(trained, 'image')} of the same run and applied to others: a fault in a "
        "minority of the images stands out against the rest.",
        "Nothing was tested. What stands out may lie in the nature of the images (an eight is an eight upside down): "
        "give a reference run that is known to be correct.",
    )
