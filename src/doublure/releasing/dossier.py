"""A privacy officer's file of a run, as a page: what is claimed, what to sign, and what was published.

Files of the run folder are compared with one another and with the ledger. A part that is missing, edited or of another
run is left out, and the page begins with it: an officer gets a file in any case, and is told what not to sign. It reads
no record. Of an audit or an evaluation it repeats what attacks showed, which was
computed on real records: the page is internal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from doublure._version import __version__
from doublure.access import COVERED
from doublure.attack.results import AttackResult
from doublure.errors import DoublureError, InputError, LedgerError, RunFolderError, SettingError, counted
from doublure.ledger import Ledger
from doublure.planning.explain import settings_in_words
from doublure.planning.forecasts import forecast_questions
from doublure.releasing.bundle import check_executed, check_payment, make_card
from doublure.releasing.card import context
from doublure.releasing.declared import ReleaseDetails
from doublure.releasing.examples import ExampleRecords
from doublure.releasing.plain_words import coin_sentence
from doublure.report import page
from doublure.report.audit import AttackReport
from doublure.report.evaluation import Report
from doublure.results import INTERNAL, WasEdited
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.run.published import CARD
from doublure.run.synthesizer import Synthesizer
from doublure.schema.display import facts_in_words
from doublure.schema.kinds import KINDS
from doublure.schema.release_words import NO_WORDS, is_words

_TITLE, _TEMPLATE = "Privacy file", "dossier.html.j2"
_AUDIT = "audit.json"
_FOUND: dict[str, type[AttackReport] | type[Report]] = {_AUDIT: AttackReport, "report.json": Report}
"""Files under ``internal/`` that tell of attacks, the fuller one first, and what reads them."""
_NOT_ITS_OWN = "trust none of its figures; ask who put it there, or make it again with doublure audit or evaluate"
_UNRECORDED = "executed.json: is missing, so that nothing says what ran. Ask who removed it, or fit anew."
_UNDECIDED = "Nobody is named who decided on cap and ε: doublure dossier RUN --name … --role … --date …"
_UNATTACKED = (
    "No attack was made, or its result was removed: doublure audit RUN --attack quick --real DATA --holdout DATA"
)
_NO_AUDIT = "No audit was made, or its result was removed: the attacks below are those of an evaluation."
_CUT_SHORT = (
    "A line of the ledger was cut short. Ask why, and compare each bundle that was given out (doublure verify)."
)
_SECOND = "Beside the ledger lies another of the same data set ({}): no cap holds for both."
_BLANKS = (
    "controller", "purpose, and its legal basis", "impact assessment, of which date", "who may receive the release",
    "how long the run folder and internal/ are kept", "who answers the people in the data",
    "whether published rows may still be personal data", "what is done if somebody asks to be erased",
)  # fmt: skip
"""Facts that law often asks for and no run folder knows (GDPR, articles 6, 13, 30 and 35)."""
_ONE_PLACE = (
    (
        "the person who ran the fit",
        "the records; noisy answers; the run folder, which holds private checkpoints until it is done",
    ),
    ("readers of internal/", "evaluations and audits, which were computed on real records without noise"),
    ("recipients of a release", "synthetic records, the card, noisy tables if they were released"),
)
_OWNERS = (
    ("each owner", "its own records; the questions, which follow from noisy sums"),
    ("the coordinator", "exact sums of every owner, no record; it is trusted with them"),
    ("the network between them", "exact sums, unless TLS ends at the coordinator"),
    ("recipients of a release", "synthetic records, the card; not who took part"),
)
_DATABASE = (
    ("the database", "the records; every statement"),
    ("the person who ran the fit", "exact counts, never a record; noisy answers; the run folder"),
    ("accounts of that database", "what each may read, and statements in the server's log: public facts alone"),
    ("recipients of a release", "synthetic records, the card, noisy tables if they were released"),
)


@dataclass(frozen=True, kw_only=True)
class CapDecision:
    """The person who decided on cap and ε, as the caller names them; nothing of it is published.

    Attributes:
        name: A name.
        role: An office, such as data protection officer.
        date: A day.

    Raises:
        SettingError: One is too long or has invisible characters.
    """

    name: str | None = None
    role: str | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        for key in ("name", "role", "date"):
            said = getattr(self, key)
            if said is not None and not is_words(said):
                raise SettingError(NO_WORDS[0], field=key, remedy=NO_WORDS[1])


@dataclass(frozen=True, kw_only=True)
class PrivacyFile:
    """A privacy officer's file.

    Attributes:
        page: The page, as HTML.
        problems: What is missing, was edited or is of another run, a sentence each. The page begins with them.
    """

    page: str
    problems: tuple[str, ...]


def dossier(
    run: str | Path, *, ledger: Ledger | str | Path | None = None, decision: CapDecision | None = None
) -> PrivacyFile:
    """Return the file of a finished run. One whose files do not agree has a page that says so, and no claim.

    Args:
        run: A run folder.
        ledger: The ledger that it was charged to; left out, the one that the run names, if it is still there.
        decision: Who decided on cap and ε.

    Raises:
        RunFolderError: It is no finished run folder.

    Example:
        >>> syn.save("kept")
        >>> from doublure.releasing.dossier import dossier
        >>> made = dossier("kept", ledger="people.ledger")
        >>> "To be signed" in made.page, made.problems
        (True, ())
    """
    folder = RunFolder.open(Path(run))
    if folder.run.get("status") != "done":
        raise RunFolderError("is not finished", field=folder.path, remedy="go on with doublure fit --resume")
    shown: dict[str, Any] = {"title": _TITLE, "internal": INTERNAL}
    try:
        syn = read_synthesizer(folder)
        executed = check_executed(syn)
        card = make_card(syn, [], executed, declared=ReleaseDetails(title=_TITLE))
    except InputError as error:
        return _drawn(shown, [_problem(error)])
    about = {key: syn.run.get(key) for key in ("created", "seed", "generator_sha256")}
    internal, problems = _internal(folder, str(about["generator_sha256"]))
    spent, missing = _spent(syn, ledger)
    if syn.guarantee.kind in COVERED:
        unrecorded = None if executed is not False else _UNRECORDED
        problems = [*filter(None, (missing, unrecorded)), *problems]
    shown |= {
        **context(card, KINDS[syn.schema.kind].records, {}, ExampleRecords()),
        **shown,
        "decision": decision,
        "blanks": _BLANKS,
        "card_file": CARD,
        "open_points": [
            *([] if decision is not None and decision.name else [_UNDECIDED]),
            *_unaudited(internal),
            *([_CUT_SHORT] if spent is not None and spent["torn"] else []),
            *([_SECOND.format(", ".join(spent["beside"]))] if spent is not None and spent["beside"] else []),
        ],
        "unit": syn.guarantee.unit,
        "sees": _who_sees(syn.run),
        "facts": facts_in_words(syn.plan.schema),
        "focus": [question.words for question in forecast_questions(syn.plan)],
        "bought": syn.bought,
        "internals": internal,
        "attacks": next((each for each in internal if each["lines"]), None),
        "account": spent,
        "account_missing": missing,
        "releases": [] if spent is None else [each for each in spent["releases"] if each["run_id"] == spent["own"]],
        "made": [
            *((name.replace("_", " "), str(value)) for name, value in about.items() if value is not None),
            ("plan, SHA-256", syn.plan.sha256),
            ("schema, SHA-256", syn.plan.schema_sha256),
            ("settings", settings_in_words(syn.plan)),
            ("this file, by doublure", __version__),
        ],
    }
    return _drawn(shown, problems)


def _drawn(shown: Mapping[str, Any], problems: Sequence[str]) -> PrivacyFile:
    said = {"problems": problems, "distrusted": counted(len(problems), "part")}
    return PrivacyFile(page=page.render(_TEMPLATE, {**shown, **said}), problems=tuple(problems))


def _problem(error: DoublureError) -> str:
    """Return an error as a sentence, without the folders that lead to a file."""
    field = error.field or ""
    named = PurePath(field).name if PurePath(field).is_absolute() or field.startswith("…") else field
    remedy = "" if error.remedy is None else f" {error.remedy[:1].upper()}{error.remedy[1:]}."
    return f"{named}: {error.message}.{remedy}"


def _who_sees(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return who saw what, by where the records were."""
    if run.get("owners"):
        return [*_OWNERS]
    return [*(_DATABASE if run.get("database") else _ONE_PLACE)]


def _internal(folder: RunFolder, generator: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what an audit and an evaluation of this run showed, and what is wrong with others in its folder.

    Args:
        folder: The run folder.
        generator: SHA-256 of its generator.
    """
    shown: list[dict[str, Any]] = []
    problems: list[str] = []
    for name, reads in _FOUND.items():
        try:
            found = _read(folder, name, reads, generator)
        except RunFolderError as error:
            problems.append(_problem(error))
            continue
        if found is None:
            continue
        made: tuple[AttackResult, ...] = found.attacks
        shown.append(
            {
                "headline": found.verdict.headline if isinstance(found, AttackReport) else None,
                "file": name,
                "created": found.about.created if found.about is not None else "",
                "lines": [each.sentence for each in made],
                "alarm": any(each.alarm for each in made),
            }
        )
    return shown, problems


def _unaudited(internal: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is still open about attacks."""
    if not any(each["lines"] for each in internal):
        return [_UNATTACKED]
    return [] if any(each["file"] == _AUDIT for each in internal) else [_NO_AUDIT]


def _read(
    folder: RunFolder, name: str, reads: type[AttackReport] | type[Report], generator: str
) -> AttackReport | Report | None:
    """Return an audit or an evaluation of this run; None if there is none.

    Raises:
        RunFolderError: It was edited or is of another generator, or cannot be read.
    """
    field = f"{folder.path.name}/internal/{name}"
    try:
        found = reads.read((folder.internal / name).read_bytes())
    except OSError:
        return None
    except WasEdited:
        said = "is not as doublure wrote it: it was edited, or an earlier version wrote it"
        raise RunFolderError(said, field=field, remedy=_NOT_ITS_OWN) from None
    except ValueError:
        raise RunFolderError("cannot be read", field=field, remedy="make it again") from None
    of = None if found.about is None else found.about.generator_sha256
    if of != generator:
        said = "does not say of which generator it is" if of is None else f"is of another generator ({of[:12]}…)"
        raise RunFolderError(f"{said}, and this run's is {generator[:12]}…", field=field, remedy=_NOT_ITS_OWN)
    return found


def _spent(syn: Synthesizer, ledger: Ledger | str | Path | None) -> tuple[dict[str, Any] | None, str | None]:
    """Return the ledger's account with the run's own id in it; None without one that paid for this run, and why."""
    entry = syn.run.get("ledger")
    if not isinstance(entry, Mapping):
        return None, "The run was charged to no ledger."
    place = ledger if ledger is not None else entry.get("path")
    if place is None:
        return None, "run.json: names no ledger. Name it with --ledger."
    try:
        book = place if isinstance(place, Ledger) else Ledger.open(str(place))
    except InputError as error:
        named = Path(str(place)).name
        return None, f"{named}: {error.message}. Put it back as it was, or name it with --ledger."
    account = book.show()
    charged = [record.body for record in book.entries if "run_id" in record.body]
    own = [str(body["run_id"]) for body in charged if body.get("id") == entry.get("reservation")]
    try:
        if account["dataset"] != entry.get("dataset") or not own:
            raise LedgerError("does not know this run", field=book.path, remedy="give the ledger that paid for it")
        check_payment(syn, book)
    except InputError as error:
        return None, _problem(error)
    last, total = book.entries[-1], account["spent"]
    fits = sum(1 for each in account["runs"] if each["epsilon"])
    return {
        **account,
        "own": own[0],
        "last": f"record {last.sequence} of {last.utc}",
        "torn": book.verify().torn,
        "beside": book.beside,
        "together": coin_sentence({**total, "unit": syn.guarantee.unit}) if total["epsilon"] else "",
        "fits": f"{counted(fits, 'fit')} {'was' if fits == 1 else 'were'} charged",
    }, None
