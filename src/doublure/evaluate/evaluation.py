"""Evaluation of a synthesizer: its sample against real records."""

from __future__ import annotations

import dataclasses
import datetime
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from doublure.attack.results import AttackResult, Claim
from doublure.data.images import Images
from doublure.data.opening import Given
from doublure.data.records import Loaded, taken
from doublure.encode.choice import encoder_for
from doublure.encode.table_values import TableValues
from doublure.errors import DataError, DataWarning, SettingError, printable
from doublure.evaluate.inference import means_beside_real
from doublure.evaluate.real_data import (
    LIKE_DRAWN,
    OWN,
    hash_records,
    keep_unlisted,
    perhaps_swapped,
    read_again,
    read_both,
    seen_before,
)
from doublure.measures.evaluation import Evaluation
from doublure.measures.expected_loss import EstimatorConfig, ExpectedLoss, of_synthesizer
from doublure.measures.images.classifiers import map_batches
from doublure.measures.images.evaluation import MOST_IMAGES, evaluate_images
from doublure.measures.images.feature_extractors import Extractor, encode_labels, refuse_other_kinds
from doublure.measures.relational import MOST_UNITS, evaluate_related
from doublure.measures.relational.evaluation import visit_scores
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score
from doublure.measures.series import MOST_SERIES, evaluate_series
from doublure.measures.tables.evaluation import evaluate_table
from doublure.measures.tables.one_source import differ
from doublure.methods import registry as methods
from doublure.networks.tree import TreeGenerator
from doublure.report.evaluation import ExampleRows, Report
from doublure.results import MeanInterval, SynthesizerFacts
from doublure.run.synthesizer import Synthesizer
from doublure.schema import ResolvedSchema
from doublure.schema.images import ImageSchema
from doublure.schema.kinds import ByKind
from doublure.support.progress import Progress, listen

MOST_SAMPLED = 200_000
"""Default limit of synthetic rows drawn."""

IN_SHORT = ("gan-leaks", "neighbours")
"""Attacks of an evaluation; ``doublure audit`` makes the others."""

_ALL_OF_A_UNIT = 2**31


def report(
    syn: Synthesizer,
    real: Given,
    holdout: Given | None = None,
    *,
    rows: int | None = None,
    seed: int = 0,
    rule: EstimatorConfig | None = None,
    loss: bool = True,
    extractor: Extractor | None = None,
    examples: int = 0,
    progress: Progress | bool | None = None,
) -> Report:
    """Compare a synthesizer's records with real ones. The result is internal: do not publish it.

    Args:
        syn: A fitted synthesizer.
        real: The data it was fitted on.
        holdout: Real records it has never seen. Without them a fixed quarter of ``real`` is used for testing.
        rows: Number of synthetic records to draw; as many as ``real`` has, at most 200,000 rows, 5,000 images, 20,000
            series or 100,000 units of related tables, if not given.
        seed: Fixes the sample and every random choice of the evaluation.
        rule: Configuration of the expected privacy loss; by default that of the plan for an empirical guarantee, and
            none for others.
        loss: Whether the expected privacy loss is estimated at all.
        extractor: Features in which images are compared (:mod:`doublure.measures.images.feature_extractors`); those of
            a classifier trained on real images if not given. The expected privacy loss uses it only if the rule names
            it.
        examples: Number of real rows of a table that the page shows, beside as many synthetic ones.
        progress: Receives progress events; None: a line where it is seen, False: nothing.

    Raises:
        DataError: The data does not fit the schema.
        SettingError: ``rows`` is not positive, examples are asked for of no table, features are chosen for other data
            than images, or the holdout is the data that the fit has seen.

    Example:
        >>> report = db.evaluate.report(syn, "people.csv", holdout="kept.csv", progress=False)
        >>> print(report)
        INTERNAL: computed on real data: do not publish
        ...
    """
    return make_report(
        syn,
        real,
        holdout,
        rows=rows,
        seed=seed,
        rule=rule,
        loss=loss,
        attacks=True,
        extractor=extractor,
        examples=examples,
        progress=progress,
        resamples=Resamples(seed=seed),
    )


def make_report(
    syn: Synthesizer,
    real: Given,
    holdout: Given | None,
    *,
    rows: int | None = None,
    seed: int,
    rule: EstimatorConfig | None = None,
    loss: bool = False,
    attacks: bool = False,
    extractor: Extractor | None = None,
    examples: int = 0,
    progress: Progress | bool | None,
    resamples: Resamples,
) -> Report:
    """Return the report of :func:`report`, and store the figures' resamples.

    Args:
        syn: As there, and so are all but the following.
        real: The data it was fitted on.
        holdout: Real records it has never seen.
        rows: Number of synthetic records to draw.
        seed: Fixes every random choice.
        rule: Configuration of the expected privacy loss.
        loss: Whether it is estimated.
        attacks: Whether the two quickest attacks are made.
        extractor: Features of images.
        examples: Number of real and of synthetic rows that the page shows.
        progress: Receives progress events.
        resamples: Receives the figures' resamples.
    """
    require_synthesizer(syn)
    if rows is not None and rows < 1:
        raise SettingError("must be at least 1", field="rows", remedy="leave it out to draw as many as the real table")
    if extractor is not None:
        refuse_other_kinds(syn.schema)
    if examples and not syn.schema.flat.only_columns:
        remedy = "leave it out: pages of images and series show records in any case"
        raise SettingError("are rows of one table", field="examples", remedy=remedy)
    evaluated = EVALUATIONS[syn.schema.kind]
    with listen(progress, "report") as listener:
        listener.stage("read the real records")
        real, holdout = read_again(real), read_again(holdout)
        train, aside = load_both(syn, real, holdout)
        kept = None if aside is None else aside.content
        wanted = rows if rows is not None else min(len(train.unit), evaluated.most)
        listener.stage("draw synthetic records")
        artificial = syn.draw(wanted, seed=seed)
        suspicion = perhaps_swapped(syn, train, aside) or _suspicion(syn, artificial, train.content, seed)
        if suspicion is not None:
            warnings.warn(suspicion, DataWarning, stacklevel=3)
        chosen = (rule or _planned(syn)) if loss else None
        lost, skipped = _expected_loss(syn, train.content, chosen, extractor, listener)
        found, why = _attacked(syn, (artificial, wanted), train, aside, seed, listener) if attacks else ((), None)
        asked: dict[str, Any] = {"unit": train.unit, "seed": seed, "resamples": resamples, "progress": listener}
        asked |= {"extractor": extractor} if evaluated.takes_extractor else {}
        listener.stage("compare")
        lists = evaluated.lenient(syn.schema)
        fitted = keep_unlisted(lists, real, train.content)
        others = None if holdout is None else keep_unlisted(lists, holdout, kept)
        figures = evaluated.evaluate(syn.schema.flat, artificial, fitted, others, **asked)
        if evaluated.more is not None:
            aside_units = None if aside is None else (others, aside.unit)
            figures = figures.plus(
                (*figures.added, *evaluated.more(syn.schema, artificial, (fitted, train.unit), aside_units, seed))
            )
        said = [] if syn.schema.row_note is None else [f"{syn.schema.row_note}.".capitalize()]
        said += _found_by_noise(syn)
        said += _labeller_note(syn, train.content if kept is None else kept, holdout=kept is not None)
        if said:
            figures = figures.model_copy(update={"notes": (*figures.notes, *said)})
    return Report(
        measured=figures,
        about=about(syn),
        suspicion=suspicion,
        expected_loss=lost,
        expected_loss_skipped=skipped,
        attacks=found,
        attacks_skipped=why,
        means=evaluated.means(syn, train.content, seed) if attacks else (),
        examples=_example_rows(syn.schema, train.content, artificial, examples, seed) if examples else None,
    )


def require_synthesizer(given: object) -> None:
    """Refuse what is no synthesizer, such as the real data in its place.

    Raises:
        SettingError: It is none.
    """
    if not isinstance(getattr(given, "schema", None), ResolvedSchema):
        remedy = "give what db.fit or db.load returned, and the real data after it"
        raise SettingError(f"is a {type(given).__name__}, not a synthesizer", field="syn", remedy=remedy)


def _found_by_noise(syn: Synthesizer) -> list[str]:
    """Return a note of the identities between numbers that noisy counts, and no schema, said to hold."""
    made = getattr(syn, "generator", None)  # one from elsewhere may have none
    found = made.tree.identities if isinstance(made, TreeGenerator) else None
    encoder = None if found is None else encoder_for(syn.schema, syn.plan.settings.encoding)
    if found is None or not isinstance(encoder, TableValues):
        return []
    names = [printable(name) for name in encoder.columns]
    return [f"Found by noise, and kept by every row: {'; '.join(found.equations(names))}."]


def _example_rows(
    schema: ResolvedSchema, real: pd.DataFrame, artificial: pd.DataFrame, n: int, seed: int
) -> ExampleRows:
    """Return real rows, chosen at random, and the first synthetic ones, as text."""
    chosen = np.random.default_rng(seed).permutation(len(real))[:n]
    names = [str(name) for name in artificial if name in real]

    def texts(frame: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
        formed = schema.cell_form.formed(frame[names], as_text=True)
        cells = [["(missing)" if pd.isna(cell) else str(cell) for cell in formed[name]] for name in names]
        return tuple(zip(*cells, strict=True))

    return ExampleRows(columns=tuple(names), real=texts(real.iloc[chosen]), synthetic=texts(artificial.iloc[:n]))


def about(syn: Synthesizer) -> SynthesizerFacts:
    """Return the name, settings and claim of a synthesizer.

    Example:
        >>> db.evaluate.about(syn).method
        'statistics'
    """
    return SynthesizerFacts(
        method=syn.plan.method,
        guarantee_kind=syn.guarantee.kind,
        guarantee=syn.guarantee.sentence,
        unit=syn.schema.unit.name,
        schema_sha256=syn.schema.sha256,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        generator_sha256=syn.run.get("generator_sha256"),
    )


def load_both(syn: Synthesizer, real: Given, holdout: Given | None) -> tuple[Loaded, Loaded | None]:
    """Read the fitted records, and the records kept aside, as :func:`read_both` does.

    Raises:
        DataError: The data does not fit the schema.
        SettingError: The data is not real data, or no holdout.
    """
    return read_both(syn, EVALUATIONS[syn.schema.kind].lenient(syn.schema), real, holdout)


def _labeller_note(syn: Synthesizer, content: Any, *, holdout: bool) -> list[str]:
    """Return what the labeller of synthetic images itself is worth: no synthetic image is needed for that accuracy."""
    if not isinstance(content, Images):
        return []
    from doublure.networks.labelled import find_labeller

    labeller = find_labeller(syn.generator)
    if labeller is None:
        return []
    codes = encode_labels(ImageSchema.of(syn.schema), content)
    right = float((map_batches(labeller, content).argmax(axis=1) == codes).mean())
    images = "real images kept aside" if holdout else "the fitted images"
    return [
        f"The private labeller, which labels synthetic images, is itself right for {100 * right:.1f} % of {images}. "
        "Where the accuracy alone is wanted, it needs no image."
    ]


def _suspicion(syn: Synthesizer, artificial: Any, real: Any, seed: int) -> str | None:
    """Return the reason to suspect that the real records are the run's own, if there is one."""
    if seen_before(hash_records(artificial), hash_records(real)):
        return OWN
    apart = EVALUATIONS[syn.schema.kind].differs
    if apart is None or apart(syn.schema.flat, artificial, real, seed=seed, draw=lambda n, own: syn.draw(n, seed=own)):
        return None
    return LIKE_DRAWN


def _planned(syn: Synthesizer) -> EstimatorConfig | None:
    """Return the rule that an empirical plan fixed before any record was read."""
    if syn.guarantee.kind != "empirical":
        return None
    fixed = methods.method(syn.plan.method).estimation(syn.plan.settings)
    return None if fixed is None else EstimatorConfig(**dataclasses.asdict(fixed))


def _expected_loss(
    syn: Synthesizer, real: Any, rule: EstimatorConfig | None, extractor: Extractor | None, progress: Progress
) -> tuple[ExpectedLoss | None, str | None]:
    """Return the estimate, or the reason why there is none."""
    if rule is None:
        return None, None
    progress.stage("estimate the expected privacy loss")
    try:
        meant = extractor if extractor is not None and extractor.name == rule.features else None
        return of_synthesizer(syn, real, rule, extractor=meant), None
    except (DataError, SettingError) as error:  # a package for the plan's features may be missing
        return None, f"{error.field} {error.message}" + ("" if error.remedy is None else f" ({error.remedy})")


def _attacked(
    syn: Synthesizer, released: tuple[Any, int], train: Loaded, aside: Loaded | None, seed: int, progress: Progress
) -> tuple[tuple[AttackResult, ...], str | None]:
    """Return the results of the two quickest attacks, or the reason why they were not made."""
    if aside is None:
        return (), "no holdout was given, and an attack on members has to be compared with one on others"
    from doublure.attack import registry as table
    from doublure.attack.attack_data import make_attack_data

    progress.stage("prepare the attacks")
    artificial, drawn = released
    try:
        data = make_attack_data(
            ResolvedSchema.of(syn.schema.flat),
            Claim.of(syn.guarantee),
            (train.content, train.unit),
            (aside.content, aside.unit),
            lambda n, _: taken(artificial, np.arange(min(n, drawn))),
            seed=seed,
            progress=progress,
        )
    except DataError as error:
        return (), f"{error.field} {error.message}"
    return table.run(data, IN_SHORT), None


# -- kinds of data ---------------------------------------------------------------------------------------------------


def _lenient_series(schema: Any) -> Any:
    """Include all series of a unit: a fit uses a random choice of them, while a measure has to be repeatable."""
    kept = schema.series.gaps == "missing"
    channels = {
        name: channel.model_copy(update={"missing": True}) if kept and channel.missing is False else channel
        for name, channel in schema.channels.items()
    }
    unit = schema.unit.model_copy(update={"max_records": _ALL_OF_A_UNIT})
    return schema.model_copy(update={"channels": channels, "unit": unit})


def _lenient_table(schema: Any) -> Any:
    """Allow missing cells where a noisy answer denied them: the measure counts them as missing."""
    flat = schema.flat
    columns = {
        name: column if column.may_be_missing else column.model_copy(update={"missing": True})
        for name, column in flat.columns.items()
    }
    most = _ALL_OF_A_UNIT if flat.one_each else flat.unit.max_records  # a run of 0.2.0 was not refused for more
    return flat.model_copy(update={"columns": columns, "unit": flat.unit.model_copy(update={"max_records": most})})


@dataclasses.dataclass(frozen=True, kw_only=True)
class KindEvaluation:
    """Evaluation of one kind of data.

    Attributes:
        most: Default limit of synthetic records drawn.
        evaluate: Schema, synthetic records, real ones and those kept aside -> the evaluation.
        differs: Tests whether real records differ from synthetic ones by more than chance; None where no test is
            cheap.
        lenient: Schema -> one that also accepts records a measure counts and a fit refuses.
        more: Schema, synthetic records, fitted and other real records with their units, and a seed -> further figures.
        takes_extractor: Whether it uses classifiers, whose feature extractor may be chosen.
        means: Synthesizer, real records and a seed -> intervals of means by the noisy tables.
    """

    most: int
    evaluate: Callable[..., Evaluation]
    differs: Callable[..., bool] | None = None
    lenient: Callable[[Any], Any] = lambda schema: schema
    more: Callable[..., tuple[Score, ...]] | None = None
    takes_extractor: bool = False
    means: Callable[[Synthesizer, Any, int], tuple[MeanInterval, ...]] = lambda syn, real, seed: ()


EVALUATIONS = ByKind(
    "evaluation",
    table=(
        _ROWS := KindEvaluation(
            most=MOST_SAMPLED, evaluate=evaluate_table, differs=differ, lenient=_lenient_table, means=means_beside_real
        )
    ),
    visits=dataclasses.replace(_ROWS, more=visit_scores),
    images=KindEvaluation(most=MOST_IMAGES, evaluate=evaluate_images, takes_extractor=True),
    series=KindEvaluation(most=MOST_SERIES, evaluate=evaluate_series, lenient=_lenient_series),
    relational=KindEvaluation(most=MOST_UNITS, evaluate=evaluate_related),
)
