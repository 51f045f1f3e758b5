"""Verifying a bundle: its files, its card's own consistency, and its entry in the ledger.

Finds accidents and casual editing. Whoever owns the bundle *and* writes the card anew is found out by the ledger alone,
which recorded the files and the card's claims before the bundle appeared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from doublure.advisories import REMEDY, known_fault
from doublure.errors import GateFailed, InputError, LedgerError, RunFolderError
from doublure.guarantee import FORMER_WATERMARKS, Guarantee, may_state_what_was_measured
from doublure.ledger import Ledger
from doublure.ledger.chain import canonical
from doublure.releasing.repricing import TOLERANCE, epsilon_of
from doublure.releasing.tables import FOLDER
from doublure.support import files
from doublure.support.tensors import sha256_of

VERSION = 1
CARD = "card.json"
_PAGE = "card.html"

_STEPS: dict[str, Callable[[Mapping[str, Any]], int]] = {
    "gaussian": lambda event: int(event["steps"]),
    "discrete-gaussian": lambda _: 1,
    "pure": lambda _: 0,
    "approximate": lambda _: 0,
}
"""How many of a claim's steps an event is; a fact that is learned is none."""


def verify(bundle: str | Path, *, ledger: Ledger | str | Path | None = None) -> dict[str, Any]:
    """Check a bundle.

    Args:
        bundle: The folder.
        ledger: The ledger, if it is at hand.

    Returns:
        What was checked; ``files`` are those that the card lists, ``epsilon`` is what it claims.

    Raises:
        GateFailed: Something does not match; the message names it.
        InputError: There is no bundle, or no ledger.
    """
    folder = Path(bundle)
    card = _read_card(folder)
    listed = _checked_files(folder, card)
    fault = known_fault(card.get("doublure_version"), card)
    if fault is not None:
        raise GateFailed(fault, field=CARD, remedy=REMEDY)
    guarantee = _checked_claim(card)
    priced = _checked_price(card, guarantee)
    checked = {"files": len(listed), "guarantee": guarantee.sentence, "ledger": None, "recomputed_epsilon": priced}
    checked["epsilon"] = guarantee.epsilon
    checked["executed"] = _checked_flag(card)
    if ledger is not None:
        _check_entry(_opened(ledger), card, listed)
        checked["ledger"] = card["ledger"]
    return checked


def claims_sha256(card: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a card says, apart from what is only known once the ledger has recorded it."""
    claims = {key: value for key, value in card.items() if key != "ledger"}
    claims["files"] = [file for file in card["files"] if file.get("path") != _PAGE]
    return hashlib.sha256(canonical(claims)).hexdigest()


def _failed(what: str, field: object) -> GateFailed:
    return GateFailed(what, field=field, remedy="do not rely on this bundle; ask its contact")


def _read_card(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    if not path.is_file():
        raise RunFolderError("is not a bundle", field=folder, remedy="give the folder that doublure release -o made")
    try:
        card: dict[str, Any] = files.read_json(path, "bundle")
    except InputError as error:
        raise _failed(error.message, path) from None
    if card.get("version") != VERSION:
        raise RunFolderError("is of another version", field=path, remedy="use the doublure that made it")
    return card


def _checked_files(folder: Path, card: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each listed file, once all are what the card says and nothing else lies beside them."""
    try:
        listed = {str(file["path"]): str(file["sha256"]) for file in card["files"]}
    except (KeyError, TypeError):
        raise _failed("does not list its files", folder / CARD) from None
    present = _present(folder, listed)
    if (folder / CARD).is_symlink():
        raise _failed("is a link and not a file", CARD)
    for name in sorted(set(listed) | present - {CARD}):
        if name not in present:
            raise _failed("is listed on the card and not in the bundle", name)
        if name not in listed:
            raise _failed("is in the bundle and not on its card", name)
        path = folder / name
        if path.is_symlink() or not path.is_file() or sha256_of(path) != listed[name]:
            raise _failed("is not the file that the card names", name)
    return listed


def _present(folder: Path, listed: Iterable[str]) -> set[str]:
    """Return what lies in a bundle: names of files, and of those in its folder of tables where the card lists one."""
    present = {path.name for path in folder.iterdir()}
    tables = folder / FOLDER
    if any(name.startswith(f"{FOLDER}/") for name in listed) and tables.is_dir() and not tables.is_symlink():
        present.remove(FOLDER)
        present |= {f"{FOLDER}/{path.name}" for path in tables.iterdir()}
    return present


def _checked_claim(card: dict[str, Any]) -> Guarantee:
    written = card.get("guarantee")
    if not isinstance(written, dict) or "sentence" not in written:
        raise _failed("states no guarantee", "card guarantee")
    try:
        guarantee = Guarantee.from_json(written)
    except RunFolderError:
        measured = may_state_what_was_measured(written)
        old = ", or states ε_μ as it was measured, as an older doublure did" if measured else ""
        raise _failed(f"is inconsistent{old}", "card guarantee") from None
    if card.get("watermark") not in (guarantee.watermark, FORMER_WATERMARKS[guarantee.kind]):
        raise _failed("is not the one that goes with the guarantee", "card watermark")
    return guarantee


def _checked_price(card: dict[str, Any], guarantee: Guarantee) -> float | None:
    """Return the ε that the card's accesses cost, by dp-accounting alone; None where it claims none."""
    if guarantee.epsilon is None or guarantee.delta is None:
        return None
    try:
        found = epsilon_of(card["touches"], guarantee.delta)
        steps = sum(_STEPS[touch["event"]["type"]](touch["event"]) for touch in card["touches"])
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise _failed("does not say what touched private data", "card touches") from None
    if found is not None and found > guarantee.epsilon * (1 + TOLERANCE):
        raise _failed(f"claims ε = {guarantee.epsilon:g}, and its accesses cost {found:.4g}", "card guarantee")
    if guarantee.steps is not None and steps != guarantee.steps:
        raise _failed(f"claims {guarantee.steps} steps, and its accesses have {steps}", "card guarantee")
    return found


def _checked_flag(card: dict[str, Any]) -> bool | None:
    """Return whether the card says that what ran is what was priced; None where it does not say."""
    said = card.get("executed")
    if said is not None and not isinstance(said, bool):
        raise _failed("does not say whether what ran is what was priced", "card executed")
    return said


def _opened(ledger: Ledger | str | Path) -> Ledger:
    if isinstance(ledger, Ledger):
        return ledger
    if not Path(ledger).is_file():
        raise LedgerError("there is no such file", field=ledger, remedy="give the path of the ledger")
    try:
        return Ledger.open(ledger)
    except LedgerError as error:
        raise GateFailed(error.message, field=error.field, remedy=error.remedy) from None


def _check_entry(book: Ledger, card: dict[str, Any], listed: dict[str, str]) -> None:
    if not isinstance(card.get("ledger"), dict):
        raise _failed("names no entry", "card ledger")
    try:
        record = book.verify_card(card["ledger"])
    except LedgerError:
        raise _failed("is not in this ledger", "card ledger") from None
    if record.kind != "release":
        raise _failed("is not the entry of a release", "card ledger")
    recorded = dict(record.body["files"])
    claims = recorded.pop(CARD, None)
    if any(listed.get(name) != digest for name, digest in recorded.items()):
        raise _failed("lists other files than the ledger recorded", "card files")
    if record.body["kind"] != card["guarantee"]["kind"]:
        raise _failed("is of another kind than the ledger recorded", "card guarantee")
    if claims is not None and claims != claims_sha256(card):
        raise _failed("says something else than the ledger recorded", CARD)


__all__ = ["CARD", "VERSION", "claims_sha256", "verify"]
