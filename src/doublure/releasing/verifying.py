"""Verifying a bundle: its files and their contents, its card, page, ledger entry and signature.

A bundle by itself shows that it agrees with its card: hashes, cells (:mod:`doublure.releasing.checking`), price, and
the page, which is drawn again. A forgery of all of it, card included, is detected only by something kept elsewhere:

===================  ===================================================================================================
the ledger           recorded the hash of every file, page included, and of the card's claims before the bundle appeared
the publisher's key  signed the card, which holds the hash of every file
the fingerprint      of the card, as the publisher tells it through another channel
===================  ===================================================================================================
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from doublure._version import __version__
from doublure.advisories import REMEDY, known_fault
from doublure.errors import (
    DoublureError,
    GateFailed,
    InputError,
    LedgerError,
    RunFolderError,
    SettingError,
    counted,
    printable,
)
from doublure.guarantee import FORMER_WATERMARKS, Guarantee, may_state_measured_epsilon
from doublure.ledger import Ledger
from doublure.ledger.chain import canonical_json
from doublure.ledger.places import find_place
from doublure.ledger.shapes import NONCE
from doublure.releasing.archive import CARD, is_archive, unpacked
from doublure.releasing.card import draw_page, draws_the_same
from doublure.releasing.catalogue_names import NAMES
from doublure.releasing.catalogues.registry import render
from doublure.releasing.checking import PAGE, CheckedRules, check_contents
from doublure.releasing.reading import ContentMismatch
from doublure.releasing.repricing import LEAST_DELTA, TOLERANCE, recompute_epsilon
from doublure.releasing.signing import SIGNATURE, ValidSignature, check_signature, refusal, spelt
from doublure.releasing.tables import FOLDER
from doublure.support import files
from doublure.support.tensors import sha256_of

VERSION = 1

_OF_A_FILE = {"path", "sha256", "rows"}
_OF_AN_ENTRY, _OF_A_FORMER_ENTRY = {"dataset", "head_sha256"}, {"dataset", "head_sha256", "sequence"}

_STEPS: dict[str, Callable[[Mapping[str, Any]], int]] = {
    "gaussian": lambda event: int(event["steps"]),
    "discrete-gaussian": lambda _: 1,
    "pure": lambda _: 0,
    "approximate": lambda _: 0,
}
"""The number of a claim's steps in an event; a learned fact has none."""


def verify(
    bundle: str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    key: str | Path | None = None,
    fingerprint: str | None = None,
) -> dict[str, Any]:
    """Check a bundle.

    Args:
        bundle: The folder, or a ZIP file of it, which is unpacked into a temporary folder
            (:mod:`doublure.releasing.archive`).
        ledger: The ledger, if it is available.
        key: The publisher's public key: a bundle that it did not sign is refused.
        fingerprint: The SHA-256 of ``card.json`` as the publisher tells it, in hexadecimal digits, with or without
            spaces: a bundle of another card is refused.

    Returns:
        The checks made: ``files`` counts those that the card lists, ``epsilon`` is its claim, ``fingerprint`` is
        the SHA-256 of ``card.json``, ``signature`` is None or ``{"key": its fingerprint, "known": whether key was
        given}``, ``rules`` counts the declared rules that every released row keeps (``kept``) and those that the files
        do not say enough for (``unchecked``), None without rows, ``page`` says what vouches for it (``ledger``,
        ``signature`` or ``drawn again``), and ``origin`` says in a sentence who vouches for the card.

    Raises:
        GateFailed: Something does not match; the message names it.
        InputError: There is no bundle, or no ledger, or no key.

    Example:
        >>> found = db.verify("bundle", ledger="people.ledger")
        >>> found["files"], found["epsilon"], found["origin"]
        (7, 1.0, 'its entry is in the ledger')
    """
    if is_archive(bundle):
        with unpacked(bundle) as inside:
            return verify(inside, ledger=ledger, key=key, fingerprint=fingerprint)
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
    vouched = record is not None or (signature is not None and signature.known)
    described, rules = _checked_contents(folder, card, vouched=vouched)
    page = _checked_page(folder, card, described, record, signature)
    _check_catalogues(folder, card, described, record, signature)
    if not _is_written_once(card, content):
        raise refusal("is not as doublure writes it: another reader may read something else in it", CARD)
    found = hashlib.sha256(content).hexdigest()
    if fingerprint is not None:
        _check_fingerprint(found, fingerprint)
    return {
        "files": len(listed),
        "guarantee": guarantee.sentence,
        "ledger": None if record is None else card["ledger"],
        "recomputed_epsilon": priced,
        "epsilon": guarantee.epsilon,
        "executed": executed,
        "rules": None if rules is None else rules._asdict(),
        "fingerprint": found,
        "signature": None if signature is None else {"key": signature.fingerprint, "known": signature.known},
        "page": page,
        "origin": _origin(found, signature, recorded=record is not None, told=fingerprint is not None),
    }


def is_unchanged(bundle: Path, fingerprint: object) -> bool:
    """Return whether a bundle lies as it was written, so that another one of the same run would be alike.

    Args:
        bundle: The folder.
        fingerprint: The SHA-256 of its card as it was written.
    """
    try:
        card, content = _read_card(bundle)
        _checked_files(bundle, card)
    except DoublureError:
        return False
    return hashlib.sha256(content).hexdigest() == fingerprint


def _check_fingerprint(found: str, wanted: str) -> None:
    """Refuse a card whose fingerprint is another than the publisher's.

    Raises:
        SettingError: What was given is no SHA-256.
        GateFailed: It is another.
    """
    plain = "".join(wanted.split()).lower()
    if len(plain) != len(found) or set(plain) - set(string.hexdigits):
        message, remedy = "is no SHA-256", f"give the {len(found)} hexadecimal digits that the publisher tells"
        raise SettingError(message, field="fingerprint", remedy=remedy)
    if plain != found:
        said = f"has the fingerprint {spelt(found)}, and not the one that was given"
        raise GateFailed(said, field=CARD, remedy="do not use the bundle; ask the publisher")


def _origin(fingerprint: str, signature: ValidSignature | None, *, recorded: bool, told: bool) -> str:
    """Return a sentence about the evidence for a card's origin.

    Args:
        fingerprint: The card's.
        signature: Of the card, if there is one.
        recorded: Whether its entry is in the ledger.
        told: Whether the fingerprint is the one that was given.
    """
    evidence = ["its fingerprint is the one that was given"] if told else []
    if recorded:
        evidence.append("its entry is in the ledger")
    if signature is not None:
        by = "the given key" if signature.known else "an unknown key"
        evidence.append(f"it is signed by {by}, {spelt(signature.fingerprint)}")
    if not told and not recorded and (signature is None or not signature.known):
        evidence.append(
            "who wrote the card is not checked: compare this fingerprint with the publisher's: " + spelt(fingerprint)
        )
    return "; ".join(evidence)


def claims_sha256(card: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a card's claims, without the parts that exist only after the ledger has recorded them."""
    claims = {key: value for key, value in card.items() if key != "ledger"}
    claims["files"] = [file for file in card["files"] if file.get("path") != PAGE]
    return hashlib.sha256(canonical_json(claims)).hexdigest()


def _read_card(folder: Path) -> tuple[dict[str, Any], bytes]:
    path = folder / CARD
    if not path.is_file():
        raise RunFolderError("is not a bundle", field=folder, remedy="give the folder that doublure release -o made")
    try:
        card: dict[str, Any] = files.read_json(path, "bundle")
        content = path.read_bytes()
    except InputError as error:
        raise refusal(error.message, path) from None
    if card.get("version") != VERSION:
        raise RunFolderError("is of another version", field=path, remedy="use the doublure that made it")
    return card, content


def _is_written_once(card: dict[str, Any], content: bytes) -> bool:
    """Return whether a card can be read in one way alone: no key twice, no other spelling, nothing before or after."""
    try:
        return files.json_bytes(card) == content
    except (ValueError, RecursionError):
        return False


def _checked_files(folder: Path, card: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each listed file, once all match the card and no other file lies beside them.

    The card cannot list its own signature.
    """
    try:
        listed = {str(file["path"]): str(file["sha256"]) for file in card["files"]}
    except (KeyError, TypeError):
        raise refusal("does not list its files", folder / CARD) from None
    if len(listed) != len(card["files"]) or any(file.keys() != _OF_A_FILE for file in card["files"]):
        raise refusal("lists a file twice, or says something else of one", folder / CARD)
    present = _present(folder, listed)
    if (folder / CARD).is_symlink():
        raise refusal("is a link and not a file", CARD)
    for name in sorted(set(listed) | present - {CARD, SIGNATURE}):
        if name not in present:
            raise refusal("is listed on the card and not in the bundle", name)
        if name in (CARD, SIGNATURE):
            raise refusal("cannot be listed on the card", name)
        if name not in listed:
            raise refusal("is in the bundle and not on its card", name)
        path = folder / name
        if path.is_symlink() or not path.is_file() or sha256_of(path) != listed[name]:
            raise refusal("is not the file that the card names", name)
    return listed


def _present(folder: Path, listed: Iterable[str]) -> set[str]:
    """Return the names of a bundle's files, and of those in its folder of tables where the card lists one."""
    present = {path.name for path in folder.iterdir()}
    tables = folder / FOLDER
    if any(name.startswith(f"{FOLDER}/") for name in listed) and tables.is_dir() and not tables.is_symlink():
        present.remove(FOLDER)
        present |= {f"{FOLDER}/{path.name}" for path in tables.iterdir()}
    return present


def _checked_claim(card: dict[str, Any]) -> Guarantee:
    written = card.get("guarantee")
    if not isinstance(written, dict) or "sentence" not in written:
        raise refusal("states no guarantee", "card guarantee")
    try:
        guarantee = Guarantee.from_json(written)
    except RunFolderError as error:
        measured = may_state_measured_epsilon(written)
        old = ", or states ε_μ as it was measured, as an older doublure did" if measured else ""
        raise refusal(f"{error.message}{old}", f"card {error.field}") from None
    if card.get("watermark") not in (guarantee.watermark, FORMER_WATERMARKS[guarantee.kind]):
        raise refusal("is not the one that goes with the guarantee", "card watermark")
    return guarantee


def _checked_price(card: dict[str, Any], guarantee: Guarantee) -> float | None:
    """Return the ε of the card's accesses, by dp-accounting alone; None where the card claims none."""
    if guarantee.epsilon is None or guarantee.delta is None:
        return None
    try:
        # At a smaller δ the accountant has too few digits. ε only grows as δ falls, so this ε is a lower bound there.
        least = recompute_epsilon(card["touches"], max(guarantee.delta, LEAST_DELTA))
        found = least if guarantee.delta >= LEAST_DELTA else None
        steps = sum(_STEPS[touch["event"]["type"]](touch["event"]) for touch in card["touches"])
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise refusal("does not say what touched private data", "card touches") from None
    if least is not None and least > guarantee.epsilon * (1 + TOLERANCE):
        raise refusal(f"claims ε = {guarantee.epsilon:g}, and its accesses cost {least:.4g}", "card guarantee")
    if guarantee.steps is not None and steps != guarantee.steps:
        raise refusal(f"claims {counted(guarantee.steps, 'step')}, and its accesses have {steps:,}", "card guarantee")
    return found


def _checked_flag(card: dict[str, Any]) -> bool | None:
    """Return the card's statement that the run is as priced; None where it has none."""
    said = card.get("executed")
    if said is not None and not isinstance(said, bool):
        raise refusal("does not say whether what ran is what was priced", "card executed")
    return said


def _opened(ledger: Ledger | str | Path) -> Ledger:
    if isinstance(ledger, Ledger):
        return ledger
    find_place(ledger).refuse_missing()
    try:
        return Ledger.open(ledger)
    except LedgerError as error:
        raise GateFailed(error.message, field=error.field, remedy=error.remedy) from None


def _checked_contents(
    folder: Path, card: dict[str, Any], *, vouched: bool
) -> tuple[dict[str, Any], CheckedRules | None]:
    """Return the data dictionary and the rules that all rows keep, once the files match it and the card."""
    about = {"watermark": str(card["watermark"]), "guarantee": str(card["guarantee"]["sentence"])}
    try:
        return check_contents(folder, card, about, vouched=vouched)
    except ContentMismatch as error:
        raise refusal(error.what, error.field) from None


def _check_entry(book: Ledger, card: dict[str, Any], listed: dict[str, str]) -> dict[str, str]:
    """Return the hashes that the ledger recorded of a release, once the card and its files agree with them."""
    if not isinstance(card.get("ledger"), dict):
        raise refusal("names no entry", "card ledger")
    try:
        record = book.verify_card(card["ledger"])
    except LedgerError:
        raise refusal("is not in this ledger", "card ledger") from None
    if record.kind != "release":
        raise refusal("is not the entry of a release", "card ledger")
    recorded = {name: digest for name, digest in record.body["files"].items() if name != NONCE}
    claims = recorded.pop(CARD, None)
    for name, digest in recorded.items():
        if listed.get(name) != digest:
            raise refusal("is not the file that the ledger recorded", name)
    if record.body["kind"] != card["guarantee"]["kind"]:
        raise refusal("is of another kind than the ledger recorded", "card guarantee")
    if claims is not None and claims != claims_sha256(card):
        raise refusal("says something else than the ledger recorded", CARD)
    # the claims' hash leaves the entry out
    if card["ledger"].keys() not in (_OF_AN_ENTRY, *(() if PAGE in recorded else (_OF_A_FORMER_ENTRY,))):
        raise refusal("says something else than the ledger recorded", "card ledger")
    return recorded


def _checked_page(
    folder: Path,
    card: Mapping[str, Any],
    described: Mapping[str, Any],
    recorded: Mapping[str, str] | None,
    signature: ValidSignature | None,
) -> str:
    """Return the evidence for the page: its hash in the ledger, a signature, or a second drawing.

    Another version may draw another page of the same card, so only a hash can decide then. Records of 0.2.0 and before
    hold no hash of the page: then there is no evidence for it, though the ledger vouches for the card.
    """
    pages = [entry["rows"] for entry in card["files"] if entry["path"] == PAGE]
    if pages != [None]:  # the ledger's hash of the claims leaves its entry out
        raise refusal("is not listed on the card as a page is", PAGE)
    if recorded is not None and PAGE in recorded:
        return "ledger"
    if signature is not None and signature.known:
        return "signature"
    entry = card.get("ledger")
    former = card.get("doublure_version") != __version__ or (isinstance(entry, dict) and "sequence" in entry)
    try:
        written = (folder / PAGE).read_bytes().decode("utf-8")
        if draws_the_same(draw_page(folder, card, described), written):
            return "drawn again"
    except (ContentMismatch, SettingError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        if not former:
            raise refusal("cannot be drawn again from the card", PAGE) from None
    if not former:
        raise refusal("is not the page that the card gives", PAGE)
    raise _unvouched(card, PAGE, "drawn", "draw", recorded)


def _check_catalogues(
    folder: Path,
    card: Mapping[str, Any],
    described: Mapping[str, Any],
    recorded: Mapping[str, str] | None,
    signature: ValidSignature | None,
) -> None:
    """Check the descriptions for catalogues: by their hashes in the ledger, a signature, or writing them again.

    A bundle of an earlier version has none.
    """
    if signature is not None and signature.known:
        return
    for name in (name for name in NAMES if any(entry["path"] == name for entry in card["files"])):
        if recorded is not None and name in recorded:
            continue
        try:
            same = render(name, card, described) == (folder / name).read_bytes()
        except (LookupError, TypeError, ValueError, AttributeError):
            same = False
        if same:
            continue
        if card.get("doublure_version") == __version__:
            raise refusal("is not what the card gives", name)
        raise _unvouched(card, name, "written", "write", recorded)


def _unvouched(
    card: Mapping[str, Any], name: str, made: str, make: str, recorded: Mapping[str, str] | None
) -> GateFailed:
    """Return the refusal of a file that another version made and that nothing vouches for."""
    version = printable(str(card.get("doublure_version")))
    return GateFailed(
        f"was {made} by doublure {version}, which this doublure {__version__} cannot {make} again, and nothing else "
        "vouches for it",
        field=name,
        remedy="verify with the doublure that made it, or ask for a new release"
        if recorded is not None
        else "give the ledger (--ledger) or the publisher's key (--key), or ask for a new release",
    )


__all__ = ["CARD", "VERSION", "claims_sha256", "is_unchanged", "verify"]
