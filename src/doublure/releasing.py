"""What leaves the house: a bundle of artificial data, its card and its data dictionary; and how to verify one.

A bundle holds ``data.parquet`` and ``data.csv``, ``card.json``, ``card.html`` and ``dictionary.json``, and nothing else. It is made
from the generator, the plan and the resolved schema alone; ``internal/`` is never read. The ledger records the release before
the bundle appears, and the card proves it: :func:`verify` finds that record again.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from doublure import files
from doublure._version import __version__
from doublure.data.writing import write_table
from doublure.errors import GateFailed, InputError, LedgerError, RunFolderError, SettingError
from doublure.guarantee import Guarantee
from doublure.ledger import Ledger
from doublure.schema import ResolvedSchema
from doublure.schema.columns import label
from doublure.synthesizer import Synthesizer

VERSION = 1
FORMATS = ("csv", "parquet")
_CARD, _PAGE, _DICTIONARY = "card.json", "card.html", "dictionary.json"
_REVIEW_YEARS = 2
_LIMITS = (
    "Every row is artificial; none describes a real person or thing.",
    "Rare combinations and small groups are approximated worst; check them before relying on them.",
    "Figures computed from this data carry the error of the generator besides that of sampling.",
    "The guarantee covers what the unit's records add to the release, not what is known about a group from elsewhere.",
)


def release(
    syn: Synthesizer,
    out: str | Path,
    *,
    n: int,
    seed: int | None = None,
    ledger: Ledger | str | Path | None = None,
    formats: Sequence[str] = FORMATS,
    spreadsheet_safe: bool = False,
    title: str | None = None,
    contact: str | None = None,
) -> dict[str, Any]:
    """Write a bundle.

    Args:
        syn: A fitted understudy.
        out: A folder that does not exist yet, or is empty.
        n: Artificial rows.
        seed: Makes the rows repeatable.
        ledger: Where the release is recorded; found through the run when left out.
        formats: ``csv``, ``parquet`` or both.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula.
        title: The card's title.
        contact: Whom to ask.

    Returns:
        The card.

    Raises:
        InputError: The folder is not empty, or the ledger is not found.
    """
    target = Path(out)
    _check_arguments(target, n, formats)
    book = _ledger_of(syn, ledger)
    staging = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        staging.mkdir(parents=True)
    except OSError as error:
        raise files.unwritable(target, error) from None
    try:
        rows = _write_data(syn, staging, n, seed, formats, spreadsheet_safe)
        files.write_json(staging / _DICTIONARY, dictionary(syn.schema))
        listed = [_entry(staging / f"data.{form}", rows) for form in formats] + [_entry(staging / _DICTIONARY, None)]
        entry = book.record_release(
            syn.run["ledger"]["reservation"], {file["path"]: file["sha256"] for file in listed}, syn.guarantee.kind
        )
        card = _card(syn, listed, entry.to_json(), title, contact)
        _write_card(staging, card)
        if target.exists():
            target.rmdir()
        staging.rename(target)
        files.sync_folder(target.parent)
    except OSError as error:
        raise files.unwritable(target, error) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return card


def _check_arguments(target: Path, n: int, formats: Sequence[str]) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("is not empty", field=target, remedy="choose another -o")
    if not isinstance(n, int) or n < 1:
        raise SettingError("must be at least 1", field="n", remedy="say how many rows to release")
    if not formats or any(form not in FORMATS for form in formats):
        raise SettingError("has an unknown format", field="format", remedy=f"use {' or '.join(FORMATS)}")


def _ledger_of(syn: Synthesizer, ledger: Ledger | str | Path | None) -> Ledger:
    if isinstance(ledger, Ledger):
        return ledger
    kept = syn.run.get("ledger", {})
    if "reservation" not in kept:
        raise RunFolderError("names no ledger entry", field="run.json", remedy="fit with a ledger")
    try:
        return Ledger.open(ledger if ledger is not None else kept["path"])
    except LedgerError as error:
        remedy = f"{error.remedy or 'put it back'}, or name it with --ledger"
        raise LedgerError(error.message, field=error.field or "ledger", remedy=remedy) from None


def _write_data(
    syn: Synthesizer, folder: Path, n: int, seed: int | None, formats: Sequence[str], spreadsheet_safe: bool
) -> int:
    import secrets

    chosen = secrets.randbits(63) if seed is None else seed
    metadata = {"doublure": __version__, "watermark": syn.guarantee.watermark, "guarantee": syn.guarantee.sentence}
    rows = 0
    for form in formats:
        rows = write_table(
            syn.sample_chunks(n, seed=chosen),
            folder / f"data.{form}",
            syn.schema,
            spreadsheet_safe=spreadsheet_safe,
            metadata=metadata,
        )
    return rows


def dictionary(schema: ResolvedSchema) -> dict[str, Any]:
    """Return the data dictionary: every column with its type and domain, from public or bought facts."""
    columns = []
    for name, column in schema.columns.items():
        bounds = getattr(column, "bounds", None)
        columns.append(
            {
                "name": name,
                "type": column.type,
                "values": [label(value) for value in getattr(column, "domain", ())] or None,
                "bounds": None if bounds is None else [_plain(end) for end in bounds],
                "precision": getattr(column, "precision", None),
                "missing": list(column.missing_tokens[1:]) if isinstance(column.missing, tuple) else column.missing,
                "roles": list(column.roles),
                "derived_from": schema.derived.get(name),
            }
        )
    constraints = [constraint.model_dump(mode="json") for constraint in schema.constraints]
    return {"version": VERSION, "kind": schema.kind, "columns": columns, "constraints": constraints}


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _entry(path: Path, rows: int | None) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"path": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest(), "rows": rows}


def _card(
    syn: Synthesizer, listed: list[dict[str, Any]], entry: Mapping[str, Any], title: str | None, contact: str | None
) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC)
    guarantee = syn.guarantee.to_json()
    for estimate in ("distances", "bound"):
        if guarantee[estimate] is None:
            del guarantee[estimate]
    return {
        "version": VERSION,
        "doublure_version": __version__,
        "created": now.isoformat(timespec="seconds"),
        "title": title or f"Artificial {syn.schema.kind} for {entry['dataset']}",
        "contact": contact,
        "method": syn.plan.method,
        "watermark": syn.guarantee.watermark,
        "guarantee": guarantee,
        "touches": [access.to_json() for access in syn.plan.touches],
        "schema_sha256": syn.plan.schema_sha256,
        "public_sources": [],
        "ledger": dict(entry),
        "files": listed,
        "limits": list(_LIMITS),
        "review_by": now.replace(year=now.year + _REVIEW_YEARS, day=min(now.day, 28)).date().isoformat(),
    }


def _write_card(folder: Path, card: dict[str, Any]) -> None:
    """Write the page first, so that the card can list its hash."""
    from doublure.report import card_page

    page = card_page(card).encode()
    files.write_atomic(folder / _PAGE, lambda file: file.write(page))
    card["files"] = [*card["files"], _entry(folder / _PAGE, None)]
    files.write_json(folder / _CARD, card)


# -- verifying -------------------------------------------------------------------------------------------------------


def verify(bundle: str | Path, *, ledger: Ledger | str | Path | None = None) -> dict[str, Any]:
    """Check a bundle: its files' hashes, its card's own consistency, and its entry in the ledger.

    Args:
        bundle: The folder.
        ledger: The ledger, if it is at hand.

    Returns:
        What was checked.

    Raises:
        GateFailed: Something does not match; the message names it.
        InputError: There is no bundle.
    """
    folder = Path(bundle)
    card = files.read_json(folder / _CARD, "bundle")
    if card.get("version") != VERSION:
        raise RunFolderError("is of another version", field=folder / _CARD, remedy="use the doublure that made it")
    listed = _checked_files(folder, card)
    _check_claim(card)
    checked = {"files": len(listed), "guarantee": card["guarantee"]["sentence"], "ledger": None}
    if ledger is not None:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        _check_entry(book, card, listed)
        checked["ledger"] = card["ledger"]
    return checked


def _failed(what: str, field: object) -> GateFailed:
    return GateFailed(what, field=field, remedy="do not rely on this bundle; ask its contact")


def _checked_files(folder: Path, card: dict[str, Any]) -> dict[str, str]:
    try:
        listed = {str(file["path"]): str(file["sha256"]) for file in card["files"]}
    except (KeyError, TypeError):
        raise _failed("does not list its files", folder / _CARD) from None
    present = {path.name for path in folder.iterdir()}
    for name in sorted(set(listed) | present - {_CARD}):
        if name not in present or Path(name).name != name:
            raise _failed("is listed on the card and not in the bundle", name)
        if name not in listed:
            raise _failed("is in the bundle and not on its card", name)
        path = folder / name
        if path.is_symlink() or not path.is_file() or _entry(path, None)["sha256"] != listed[name]:
            raise _failed("is not the file that the card names", name)
    return listed


def _check_claim(card: dict[str, Any]) -> None:
    try:
        guarantee = Guarantee.from_json(card["guarantee"])
    except (RunFolderError, KeyError, TypeError):
        raise _failed("does not hold together", "card guarantee") from None
    if card.get("watermark") != guarantee.watermark:
        raise _failed("is not the one that goes with the guarantee", "card watermark")


def _check_entry(book: Ledger, card: dict[str, Any], listed: dict[str, str]) -> None:
    try:
        book.verify_card(card["ledger"])
    except (LedgerError, KeyError, TypeError):
        raise _failed("is not in this ledger", "card ledger") from None
    record = book.entries[int(card["ledger"]["sequence"]) - 1]
    recorded = record.body.get("files", {})
    if any(listed.get(name) != digest for name, digest in recorded.items()):
        raise _failed("lists other files than the ledger recorded", "card files")
    if record.body.get("kind") != card["guarantee"]["kind"]:
        raise _failed("is of another kind than the ledger recorded", "card guarantee")


__all__ = ["dictionary", "release", "verify"]
