"""Verifying a bundle: its files and what they hold, its card and page, its entry in the ledger, its signature.

A bundle by itself shows that it agrees with its card: hashes, cells (:mod:`doublure.releasing.checking`), price, and
the page, which is drawn again. Whoever writes all of it anew, the card too, is found out by what lies elsewhere alone:

===================  ===================================================================================================
the ledger           recorded the hash of every file, page included, and of the card's claims before the bundle appeared
the publisher's key  signed the card, which holds the hash of every file
the fingerprint      of the card, as the publisher tells it by another way
===================  ===================================================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from doublure._version import __version__
from doublure.advisories import REMEDY, known_fault
from doublure.errors import GateFailed, InputError, LedgerError, RunFolderError, SettingError, printable
from doublure.guarantee import FORMER_WATERMARKS, Guarantee, may_state_what_was_measured
from doublure.ledger import Ledger
from doublure.ledger.chain import canonical_json
from doublure.ledger.shapes import NONCE
from doublure.releasing.card import draws_the_same, page_of
from doublure.releasing.checking import PAGE, check_contents
from doublure.releasing.reading import Misread
from doublure.releasing.repricing import LEAST_DELTA, TOLERANCE, epsilon_of
from doublure.releasing.signing import SIGNATURE, Signed, check_signature, spelt
from doublure.releasing.tables import FOLDER
from doublure.support import files
from doublure.support.tensors import sha256_of

VERSION = 1
CARD = "card.json"

_OF_A_FILE = {"path", "sha256", "rows"}
_OF_AN_ENTRY, _OF_A_FORMER_ENTRY = {"dataset", "head_sha256"}, {"dataset", "head_sha256", "sequence"}

_STEPS: dict[str, Callable[[Mapping[str, Any]], int]] = {
    "gaussian": lambda event: int(event["steps"]),
    "discrete-gaussian": lambda _: 1,
    "pure": lambda _: 0,
    "approximate": lambda _: 0,
}
"""How many of a claim's steps an event is; a fact that is learned is none."""


def verify(
    bundle: str | Path, *, ledger: Ledger | str | Path | None = None, key: str | Path | None = None
) -> dict[str, Any]:
    """Check a bundle.

    Args:
        bundle: The folder.
        ledger: The ledger, if it is at hand.
        key: The publisher's public key: a bundle that it did not sign is refused.

    Returns:
        What was checked; ``files`` are those that the card lists, ``epsilon`` is what it claims, ``fingerprint`` is
        the SHA-256 of ``card.json``, ``signature`` is None or ``{"key": its fingerprint, "known": whether key was
        given}``, ``page`` says what vouches for it (``ledger``, ``signature`` or ``drawn again``), and ``origin`` says
        in a sentence who vouches for the card.

    Raises:
        GateFailed: Something does not match; the message names it.
        InputError: There is no bundle, or no ledger, or no key.
    """
    folder = Path(bundle)
    card, content = _read_card(folder)
    listed = _checked_files(folder, card)
    fault = known_fault(card.get("doublure_version"), card)
    if fault is not None:
        raise GateFailed(fault, field=CARD, remedy=REMEDY)
    guarantee = _checked_claim(card)
    priced = _checked_price(card, guarantee)
    executed = _checked_flag(card)
    signature = check_signature(folder, content, key)
    record = None if ledger is None else _check_entry(_opened(ledger), card, listed)
    described = _checked_contents(folder, card, guarantee)
    page = _checked_page(folder, card, described, record, signature)
    if not _is_written_once(card, content):
        raise _failed("is not as doublure writes it: another reader may read something else in it", CARD)
    fingerprint = hashlib.sha256(content).hexdigest()
    return {
        "files": len(listed),
        "guarantee": guarantee.sentence,
        "ledger": None if record is None else card["ledger"],
        "recomputed_epsilon": priced,
        "epsilon": guarantee.epsilon,
        "executed": executed,
        "fingerprint": fingerprint,
        "signature": None if signature is None else {"key": signature.fingerprint, "known": signature.known},
        "page": page,
        "origin": _origin(fingerprint, signature, record is not None),
    }


def _origin(fingerprint: str, signature: Signed | None, recorded: bool) -> str:
    """Return who vouches for a card."""
    told = []
    if recorded:
        told.append("its entry is in the ledger")
    if signature is not None:
        by = "the given key" if signature.known else "an unknown key"
        told.append(f"it is signed by {by}, {spelt(signature.fingerprint)}")
    if not recorded and (signature is None or not signature.known):
        told.append(
            "who wrote the card is not checked: compare this fingerprint with the publisher's: " + spelt(fingerprint)
        )
    return "; ".join(told)


def claims_sha256(card: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a card says, apart from what is only known once the ledger has recorded it."""
    claims = {key: value for key, value in card.items() if key != "ledger"}
    claims["files"] = [file for file in card["files"] if file.get("path") != PAGE]
    return hashlib.sha256(canonical_json(claims)).hexdigest()


def _failed(what: str, field: object) -> GateFailed:
    return GateFailed(what, field=field, remedy="do not rely on this bundle; ask its contact")


def _read_card(folder: Path) -> tuple[dict[str, Any], bytes]:
    """Return the card, and its bytes."""
    path = folder / CARD
    if not path.is_file():
        raise RunFolderError("is not a bundle", field=folder, remedy="give the folder that doublure release -o made")
    try:
        card: dict[str, Any] = files.read_json(path, "bundle")
        content = path.read_bytes()
    except InputError as error:
        raise _failed(error.message, path) from None
    if card.get("version") != VERSION:
        raise RunFolderError("is of another version", field=path, remedy="use the doublure that made it")
    return card, content


def _is_written_once(card: dict[str, Any], content: bytes) -> bool:
    """Return whether a card has no second reading: no key twice, no other spelling, nothing before or behind."""
    try:
        return files.json_bytes(card) == content
    except (ValueError, RecursionError):
        return False


def _checked_files(folder: Path, card: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each listed file, once all are what the card says and nothing else lies beside them.

    The card cannot list its own signature.
    """
    try:
        listed = {str(file["path"]): str(file["sha256"]) for file in card["files"]}
    except (KeyError, TypeError):
        raise _failed("does not list its files", folder / CARD) from None
    if len(listed) != len(card["files"]) or any(file.keys() != _OF_A_FILE for file in card["files"]):
        raise _failed("lists a file twice, or says something else of one", folder / CARD)
    present = _present(folder, listed)
    if (folder / CARD).is_symlink():
        raise _failed("is a link and not a file", CARD)
    for name in sorted(set(listed) | present - {CARD, SIGNATURE}):
        if name not in present:
            raise _failed("is listed on the card and not in the bundle", name)
        if name in (CARD, SIGNATURE):
            raise _failed("cannot be listed on the card", name)
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
        # Of a smaller δ the accountant cannot say; ε only grows towards it, so that a claim is held to more than this.
        least = epsilon_of(card["touches"], max(guarantee.delta, LEAST_DELTA))
        found = least if guarantee.delta >= LEAST_DELTA else None
        steps = sum(_STEPS[touch["event"]["type"]](touch["event"]) for touch in card["touches"])
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise _failed("does not say what touched private data", "card touches") from None
    if least is not None and least > guarantee.epsilon * (1 + TOLERANCE):
        raise _failed(f"claims ε = {guarantee.epsilon:g}, and its accesses cost {least:.4g}", "card guarantee")
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


def _checked_contents(folder: Path, card: dict[str, Any], guarantee: Guarantee) -> dict[str, Any]:
    """Return the data dictionary, once the files hold what it and the card say."""
    about = {"watermark": str(card["watermark"]), "guarantee": guarantee.sentence}
    try:
        return check_contents(folder, card, about)
    except Misread as error:
        raise _failed(error.what, error.field) from None


def _check_entry(book: Ledger, card: dict[str, Any], listed: dict[str, str]) -> dict[str, str]:
    """Return the hashes that the ledger recorded of a release, once the card and its files agree with them."""
    if not isinstance(card.get("ledger"), dict):
        raise _failed("names no entry", "card ledger")
    try:
        record = book.verify_card(card["ledger"])
    except LedgerError:
        raise _failed("is not in this ledger", "card ledger") from None
    if record.kind != "release":
        raise _failed("is not the entry of a release", "card ledger")
    recorded = {name: digest for name, digest in record.body["files"].items() if name != NONCE}
    claims = recorded.pop(CARD, None)
    for name, digest in recorded.items():
        if listed.get(name) != digest:
            raise _failed("is not the file that the ledger recorded", name)
    if record.body["kind"] != card["guarantee"]["kind"]:
        raise _failed("is of another kind than the ledger recorded", "card guarantee")
    if claims is not None and claims != claims_sha256(card):
        raise _failed("says something else than the ledger recorded", CARD)
    # what the claims' hash leaves out
    if card["ledger"].keys() not in (_OF_AN_ENTRY, *(() if PAGE in recorded else (_OF_A_FORMER_ENTRY,))):
        raise _failed("says something else than the ledger recorded", "card ledger")
    return recorded


def _checked_page(
    folder: Path,
    card: Mapping[str, Any],
    described: Mapping[str, Any],
    recorded: Mapping[str, str] | None,
    signature: Signed | None,
) -> str:
    """Return what vouches for the page: a hash of it that lies elsewhere, or else that it is drawn again.

    Another version may draw another page of the same card, so that a hash alone can decide. Records of 0.2.0 and before
    hold none of the page: then nothing vouches for it, though the ledger vouches for the card.
    """
    pages = [entry["rows"] for entry in card["files"] if entry["path"] == PAGE]
    if pages != [None]:  # the ledger's hash of the claims leaves its entry out
        raise _failed("is not listed on the card as a page is", PAGE)
    if recorded is not None and PAGE in recorded:
        return "ledger"
    if signature is not None and signature.known:
        return "signature"
    entry = card.get("ledger")
    former = card.get("doublure_version") != __version__ or (isinstance(entry, dict) and "sequence" in entry)
    try:
        written = (folder / PAGE).read_bytes().decode("utf-8")
        if draws_the_same(page_of(folder, card, described), written):
            return "drawn again"
    except (Misread, SettingError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        if not former:
            raise _failed("cannot be drawn again from the card", PAGE) from None
    if not former:
        raise _failed("is not the page that the card gives", PAGE)
    made = printable(str(card.get("doublure_version")))
    raise GateFailed(
        f"was drawn by doublure {made}, which this doublure {__version__} cannot draw again, and nothing else vouches "
        "for it",
        field=PAGE,
        remedy="verify with the doublure that made it, or ask for a new release"
        if recorded is not None
        else "give the ledger (--ledger) or the publisher's key (--key), or ask for a new release",
    )


__all__ = ["CARD", "VERSION", "claims_sha256", "verify"]
