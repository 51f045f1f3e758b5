"""A published bundle: synthetic data, a card and a data dictionary.

A bundle holds ``data.parquet`` and ``data.csv``, or the forms that were asked for, for images ``data.npz``, for series
all three, for related tables one file a table, under its name; ``card.json``, ``card.html`` and ``dictionary.json``;
the same for catalogues in ``datapackage.json``, ``croissant.json`` and ``README.md``; on request ``tables/*.parquet``,
the noisy tables that the fit bought; and nothing else.
It is made from the generator, the plan, the resolved schema and the mechanism's answers alone; ``internal/`` is never
read.
The ledger records the release before the bundle appears, and the card proves it:
:func:`doublure.releasing.verifying.verify` finds that record again.
"""

from __future__ import annotations

import datetime
import operator
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

from doublure._version import __version__
from doublure.access import COVERED
from doublure.advisories import REMEDY, known_fault
from doublure.data.tables.containers.registry import find_container
from doublure.data.tables.row_forms import check_library
from doublure.errors import InputError, LedgerError, RunFolderError, SettingError, printable
from doublure.guarantee import Kind
from doublure.ledger import Ledger
from doublure.ledger.request import same_facts
from doublure.private.executed import Executed, as_priced
from doublure.releasing.card import draw_page
from doublure.releasing.catalogues.registry import write_catalogues
from doublure.releasing.checking import DICTIONARY
from doublure.releasing.declared import ReleaseDetails
from doublure.releasing.dictionary import dictionary
from doublure.releasing.examples import SHOWN
from doublure.releasing.issuing import Bundle, Card, file_entry, issue
from doublure.releasing.signing import signing_key
from doublure.releasing.tables import LIMIT, count_margins, described, refuse_none, write_noisy_tables
from doublure.releasing.verifying import CARD, VERSION, verify
from doublure.releasing.writing import WRITERS, KeptChunks, Writer, write_released
from doublure.run.synthesizer import Synthesizer
from doublure.run.weights import EDITED
from doublure.schema.kinds import KINDS
from doublure.support import files, seeding
from doublure.support.outputs import find_folder
from doublure.support.progress import Progress, SilentProgress, listen

_REVIEW_YEARS = 2
_NOT_YET = "known once it is written"
_ERROR_LIMIT = "Figures computed from this data carry the error of the generator besides that of sampling."
_COVERAGE_LIMIT = (
    "The guarantee covers what the unit's records add to the release, not what is known about a group from elsewhere."
)
_UNIT_LIMIT: dict[Kind, str] = {
    "dp": _COVERAGE_LIMIT,
    "bayesian-dp": _COVERAGE_LIMIT,
    "empirical": "No guarantee covers the records of any {unit}: the estimate is an average over this data set.",
    "none": "No guarantee covers the records of any {unit}: private ones may stand among these as they are.",
}


def release(
    syn: Synthesizer,
    out: str | Path,
    *,
    n: SupportsIndex,
    seed: SupportsIndex | None = None,
    ledger: Ledger | str | Path | None = None,
    formats: Sequence[str] | None = None,
    spreadsheet_safe: bool = False,
    tables: bool = False,
    title: str | None = None,
    description: str | None = None,
    licence: str | None = None,
    citation: str | None = None,
    contact: str | None = None,
    links: Sequence[str] = (),
    sign: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> Bundle:
    """Write a bundle.

    Args:
        syn: A fitted synthesizer.
        out: A folder that does not exist yet, or is empty.
        n: Synthetic rows, images or series.
        seed: Makes them repeatable.
        ledger: The ledger that records the release; found through the run when left out.
        formats: Of tables ``csv`` and ``parquet``, of images ``npz``, of series all three, if left out; where they are
            asked for, also ``xlsx``, ``jsonl``, ``feather``, ``dta`` and ``sav``, but of images.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula.
        tables: Publish the noisy contingency tables that the fit bought, with their standard errors: free, as they
            are answers of the mechanism already.
        title: The card's title; what is left out of this and the following is as the schema's ``release`` says.
        description: A description of the data, in a sentence or a few.
        licence: The licence of the bundle.
        citation: How to cite it.
        contact: An address for questions.
        links: Addresses of further pages.
        sign: The private key that signs the card, as :func:`doublure.releasing.signing.new_keys` makes it.
        progress: Receives progress events; None: a line where it is seen, False: nothing.

    Returns:
        The bundle: its folder, its card and files, and the card's fingerprint.

    Raises:
        InputError: The folder is not empty, the guarantee is not one that the plan gives, something else ran than was
            priced, the ledger is not found or knows another generator, or the key cannot be used.
        SettingError: An argument is out of its range, or tables are asked for and the fit bought none.

    Example:
        >>> bundle = db.release(syn, "bundle", n=100, title="Synthetic people", seed=1, progress=False)
        >>> sorted(path.name for path in bundle.files)
        ['README.md', 'card.html', 'card.json', 'croissant.json', 'data.csv', ...]
    """
    asked = find_folder(out)
    declared = ReleaseDetails(
        title=title, description=description, licence=licence, citation=citation, contact=contact, links=links
    ).over(syn.schema.release)
    rows, forms = _check_arguments(asked, n, formats, WRITERS[syn.schema.kind])
    key = None if sign is None else signing_key(sign, asked)
    executed = check_executed(syn)
    if tables:
        refuse_none(syn.tables)
    book, reservation = check_payment(syn, ledger)
    with files.staged_folder(asked) as staging, listen(progress, "release") as listener:
        entropy = seeding.choose_seed(seed)
        holds: dict[str, int | None] = {}
        kept = KeptChunks(WRITERS[syn.schema.kind].held if len(forms) > 1 else None, syn.plan.memory_bytes)
        for form in forms:
            holds |= write_released(
                syn,
                staging,
                form,
                rows,
                seed=entropy,
                spreadsheet_safe=spreadsheet_safe,
                progress=listener,
                kept=kept,
            )
        cells = write_noisy_tables(staging, syn.tables, syn.guarantee.about) if tables else {}
        words = dictionary(syn.schema, spreadsheet_safe=spreadsheet_safe, forms=forms) | (
            {"tables": described(cells)} if tables else {}
        )
        files.write_json(staging / DICTIONARY, {"watermark": syn.guarantee.watermark, **words})
        holds |= cells | {DICTIONARY: None}
        listed = [file_entry(staging, name, count) for name, count in holds.items()]
        named = declared.titled(f"Synthetic {KINDS[syn.schema.kind].called} for {book.dataset}")
        card = make_card(syn, listed, executed, declared=named, limits=[LIMIT] if tables else [])
        card["files"] = [*listed, *(file_entry(staging, name) for name in write_catalogues(staging, card, words))]
        return issue(staging, asked, card, words, book, reservation, key)


def preview(
    syn: Synthesizer,
    *,
    n: SupportsIndex,
    title: str | None = None,
    description: str | None = None,
    licence: str | None = None,
    citation: str | None = None,
    contact: str | None = None,
    links: Sequence[str] = (),
) -> str:
    """Return the page of the card that :func:`release` would write. No ledger records anything, and no file stays.

    Its example rows are others than those of the release, and hashes are not known yet.

    Args:
        syn: A fitted synthesizer.
        n: The number of records of the release.
        title: As in :func:`release`, and so are all others.
        description: What the data are.
        licence: The licence of the bundle.
        citation: How to cite it.
        contact: An address for questions.
        links: Addresses of further pages.

    Example:
        >>> from doublure.releasing.bundle import preview
        >>> "Synthetic people" in preview(syn, n=100, title="Synthetic people")
        True
    """
    declared = ReleaseDetails(
        title=title, description=description, licence=licence, citation=citation, contact=contact, links=links
    ).over(syn.schema.release)
    kept = syn.run.get("ledger")
    dataset = str(kept.get("dataset")) if isinstance(kept, dict) else "this data set"
    writer = WRITERS[syn.schema.kind]
    words = dictionary(syn.schema, spreadsheet_safe=False, forms=list(writer.forms))
    with tempfile.TemporaryDirectory(prefix="doublure-") as room:
        folder = Path(room)
        held: dict[str, int | None] = {}
        for form in writer.forms:
            held |= write_released(
                syn,
                folder,
                form,
                SHOWN,
                seed=seeding.choose_seed(None),
                spreadsheet_safe=False,
                progress=SilentProgress(),
            )
        rows = operator.index(n)
        listed = [
            {"path": name, "sha256": _NOT_YET, "rows": rows if count == SHOWN else None} for name, count in held.items()
        ]
        named = declared.titled(f"Synthetic {KINDS[syn.schema.kind].called} for {dataset}")
        card = make_card(syn, listed, check_executed(syn), declared=named) | {"ledger": {"dataset": dataset}}
        return draw_page(folder, card, words)


def refuse_taken(target: Path) -> None:
    """Refuse a folder that holds anything.

    Raises:
        InputError: It does.
    """
    if files.holds_anything(target):
        what = "holds a bundle already" if (target / CARD).is_file() else "is not empty"
        raise InputError(what, field=target, remedy="choose another -o")


def _check_arguments(
    target: Path, n: SupportsIndex, formats: Sequence[str] | None, writer: Writer
) -> tuple[int, list[str]]:
    refuse_taken(target)
    try:
        rows = operator.index(n)
    except TypeError:
        rows = 0
    if isinstance(n, bool) or rows < 1:
        raise SettingError("must be a whole number of at least 1", field="n", remedy="say how many rows to release")
    known = (*writer.forms, *writer.others)
    forms = [formats] if isinstance(formats, str) else list(dict.fromkeys(writer.forms if formats is None else formats))
    lost = next((form for form in forms if form not in known), None)
    if not forms or lost is not None:
        read = lost is not None and find_container(Path(f"data.{lost}")) is not None
        what = "is a format that is read, and not written" if read else "has an unknown format"
        raise SettingError(what, field=f"format {lost}" if read else "format", remedy=f"use {' or '.join(known)}")
    for form in forms:
        check_library(f".{form}", f"format {form}")
    return rows, forms


def check_payment(syn: Synthesizer, ledger: Ledger | str | Path | None) -> tuple[Ledger, str]:
    """Return the ledger and the reservation that paid, once it has paid for this plan and this claim.

    Raises:
        RunFolderError: The run names no entry, or the ledger's entry is of another plan.
        LedgerError: The ledger is not found, does not know the run, or knows that it claims less or ended with another
            generator.
    """
    kept = syn.run.get("ledger")
    if syn.published:
        raise RunFolderError(
            "is a published generator, whose release is recorded already",
            field="run",
            remedy="write rows with doublure sample; its card covers them",
        )
    if not isinstance(kept, dict) or not isinstance(kept.get("reservation"), str):
        raise RunFolderError("names no ledger entry", field="run.json", remedy="fit with a ledger")
    try:
        book = (
            ledger if isinstance(ledger, Ledger) else Ledger.open(ledger if ledger is not None else str(kept["path"]))
        )
        mine = [record for record in book.entries if record.body.get("id") == kept["reservation"]]
    except (LedgerError, KeyError) as error:
        found = error if isinstance(error, LedgerError) else LedgerError("is not named", field="ledger")
        remedy = found.remedy if ledger is not None else "put it back as it was, or name it with --ledger"
        raise LedgerError(found.message, field=found.field, remedy=remedy) from None
    for record in mine:
        if record.kind == "reserve" and not same_facts(syn.plan, record.body["plan"]):
            raise RunFolderError("is not the plan that the ledger paid for", field="plan.json", remedy=EDITED)
    book.refuse_release(kept["reservation"], syn.guarantee.kind)
    book.refuse_other_generator(kept["reservation"], syn.run.get("generator_sha256"))
    return book, kept["reservation"]


def check_executed(syn: Synthesizer) -> bool | None:
    """Return whether the run was recorded and is as priced; None where nothing has a price.

    Raises:
        RunFolderError: Something else ran, the claim is not one that the plan gives, or it is known to be wrong.
    """
    fault = known_fault(syn.run.get("doublure_version"), syn.plan.to_json())
    if fault is not None:
        raise RunFolderError(fault, field=syn.plan.method, remedy=REMEDY)
    if not syn.plan.may_claim(syn.guarantee):
        raise RunFolderError("is not what the plan gives", field="guarantee", remedy="release what load returns")
    if any(access.event is None for access in syn.plan.touches):
        return None
    if syn.executed is None:
        return False
    Executed(syn.plan.touches).restore(syn.executed)
    return as_priced(syn.executed)


def make_card(
    syn: Synthesizer,
    listed: list[dict[str, Any]],
    executed: bool | None,
    *,
    declared: ReleaseDetails,
    limits: Sequence[str] = (),
) -> Card:
    """Return the card, its ledger entry and its page still to come.

    Args:
        syn: The synthesizer that is released, or whose records are.
        listed: The files, as :func:`file_entry` returns them.
        executed: The answer of :func:`check_executed`.
        declared: The steward's words, with a title.
        limits: Limits of this release, besides those of all.
    """
    now, covered = datetime.datetime.now(datetime.UTC), syn.guarantee.kind in COVERED
    return Card(
        {
            "version": VERSION,
            "doublure_version": __version__,
            "created": now.isoformat(timespec="seconds"),
            **declared.to_json(),
            "method": syn.plan.method,
            "watermark": syn.guarantee.watermark,
            "guarantee": (syn.guarantee.assuming(syn.schema.assumed) if covered else syn.guarantee).to_json(),
            "touches": [access.to_json() for access in syn.plan.touches],
            "executed": executed,
            "owners": syn.run.get("owners"),
            "columns": {name: said for name, one in syn.schema.columns.items() if (said := one.description)},
            "margins": count_margins(syn.schema, syn.tables) if syn.guarantee.epsilon is not None else None,
            "schema_sha256": syn.plan.schema_sha256,
            "public_sources": list(syn.plan.settings.public_sources),
            "ledger": None,
            "files": listed,
            "limits": [
                *(f"{note}." for note in syn.notes),
                *_of_a_database(syn.run),
                *KINDS[syn.schema.kind].limits,
                *syn.schema.limits,
                _ERROR_LIMIT,
                _UNIT_LIMIT[syn.guarantee.kind].format(unit=syn.guarantee.unit),
                *limits,
            ],
            "review_by": now.replace(year=now.year + _REVIEW_YEARS, day=min(now.day, 28)).date().isoformat(),
        }
    )


def _of_a_database(run: Mapping[str, Any]) -> list[str]:
    """Return the limit of a claim about rows that a database made, of a run's public facts; none of other rows."""
    found = run.get("database")
    if not isinstance(found, Mapping):
        return []
    rows = f"table or view {printable(str(found['table']))}" if "table" in found else "a query of one table"
    if "tables" in found:
        rows = f"tables or views {', '.join(map(printable, found['tables']))}"
    return [f"The claim is about rows of {rows} in a database, not about records that a view made them from."]


__all__ = ["check_executed", "check_payment", "dictionary", "make_card", "preview", "refuse_taken", "release", "verify"]
