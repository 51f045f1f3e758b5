"""Signing a release: Ed25519 over the bytes of ``card.json``, which holds the SHA-256 of every other file.

A private key is PEM (PKCS 8, not encrypted) of mode 0600, a public key PEM (SubjectPublicKeyInfo); OpenSSL reads both.
``SIGNATURE`` is three lines of text with the public key, so that a recipient without the key can name it; only the
publisher can say whose key it is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from doublure.errors import GateFailed, InputError
from doublure.support import files

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE = "SIGNATURE"
"""The one file of a bundle that its card does not list."""

PUBLIC = ".pub"
_HEAD = "doublure-signature: 1"
_LARGEST = 10_000
_CARDS = ("card.json", "run.json")
_MAKE = "make a pair with doublure keys new -o KEY"


@dataclass(frozen=True, kw_only=True)
class ValidSignature:
    """A signature that fits the card.

    Attributes:
        fingerprint: The fingerprint of its key.
        known: Whether that is the requested key.
    """

    fingerprint: str
    known: bool


def new_keys(path: str | Path) -> tuple[Path, str]:
    """Make a key pair: a private key of mode 0600, and beside it the public one, ``.pub``.

    Args:
        path: The path of the private key, where nothing is yet.

    Returns:
        The public key's path, and its fingerprint.

    Raises:
        InputError: Something is there, or the key would lie in a bundle or a run folder.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Path(path)
    public = private.with_name(f"{private.name}{PUBLIC}")
    for folder in (*private.absolute().parents, *private.resolve().parents):  # as written, and with links resolved
        if any((folder / name).is_file() for name in _CARDS):
            remedy = "keep keys in a folder of their own, which is never published"
            raise InputError("would lie in a bundle or a run folder", field=private, remedy=remedy)
    for each in (private, public):
        if os.path.lexists(each):
            raise InputError("already exists, and a key is never written over", field=each, remedy="choose another -o")
    key = Ed25519PrivateKey.generate()
    _write_new(private, _private_pem(key), mode=0o600)
    try:
        _write_new(public, _public_pem(key.public_key()), mode=0o644)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
    return public, key_fingerprint(key.public_key())


def signing_key(path: str | Path, out: Path) -> Ed25519PrivateKey:
    """Read a private key, before anything is written.

    Args:
        path: The key.
        out: The folder of the release.

    Raises:
        InputError: It is no private key of this form, or lies in the release.
    """
    given = Path(path)
    if given.resolve().is_relative_to(out.resolve()):
        raise InputError(
            "lies in the folder that is released", field=given, remedy="keep it elsewhere, and make a new one"
        )
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    content = _content(given)
    if b"PUBLIC KEY" in content:
        raise InputError("is a public key", field=given, remedy=f"sign with the private one, without {PUBLIC}")
    found = _loaded(content, given)
    if not isinstance(found, Ed25519PrivateKey):
        raise InputError("is no Ed25519 key", field=given, remedy=_MAKE)
    return found


def verifying_key(path: str | Path) -> Ed25519PublicKey:
    """Read a public key.

    Raises:
        InputError: It is none of this form.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    given, content = Path(path), _content(Path(path))
    if b"PRIVATE KEY" in content:
        remedy = f"give the publisher's public key, which ends in {PUBLIC}; a private key stays with who signs"
        raise InputError("is a private key", field=given, remedy=remedy)
    found = _loaded(content, given)
    if not isinstance(found, Ed25519PublicKey):
        raise InputError("is no Ed25519 key", field=given, remedy="ask the publisher for the key of doublure keys new")
    return found


def sign(folder: Path, card: bytes, key: Ed25519PrivateKey) -> str:
    """Write the signature of a card beside it; return the key's fingerprint."""
    text = _written(key.public_key(), key.sign(card)).encode("ascii")
    files.write_atomic(folder / SIGNATURE, lambda file: file.write(text))
    return key_fingerprint(key.public_key())


def check_signature(folder: Path, card: bytes, key: str | Path | None) -> ValidSignature | None:
    """Check the signature of a card.

    Args:
        folder: The bundle.
        card: The bytes of ``card.json``.
        key: The only public key that is accepted; None: any key.

    Returns:
        The signature and its key; None where there is no signature, and none was required.

    Raises:
        GateFailed: The signature does not fit the card, is another key's, or is missing where one is required.
        InputError: The key cannot be read.
    """
    wanted = None if key is None else verifying_key(key)
    path = folder / SIGNATURE
    if not os.path.lexists(path):
        if wanted is None:
            return None
        raise refusal("is missing: this bundle is not signed")
    from cryptography.exceptions import InvalidSignature

    if path.is_symlink() or not path.is_file():
        raise refusal("is a link and not a file")
    if path.stat().st_size > _LARGEST:
        raise refusal("is no signature of doublure")
    made_by, signature = _read(_content(path))
    try:
        made_by.verify(signature, card)
    except InvalidSignature:
        raise refusal("does not fit card.json: one of them was changed") from None
    found = key_fingerprint(made_by)
    if wanted is not None and found != key_fingerprint(wanted):
        given = spelt(key_fingerprint(wanted))
        raise refusal(f"was made by another key than the given one: by {spelt(found)}, and the given one is {given}")
    return ValidSignature(fingerprint=found, known=wanted is not None)


def key_fingerprint(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key's 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def spelt(sha256: str) -> str:
    """Return a SHA-256 in groups of eight, as people compare it.

    Example:
        >>> spelt("0123456789abcdef" * 4)[:26]
        '01234567 89abcdef 01234567'
    """
    return " ".join(sha256[at : at + 8] for at in range(0, len(sha256), 8))


def _written(key: Ed25519PublicKey, signature: bytes) -> str:
    lines = (("public-key", key.public_bytes_raw()), ("signature", signature))
    return "\n".join([_HEAD, *(f"{name}: {base64.b64encode(value).decode()}" for name, value in lines), ""])


def _read(content: bytes) -> tuple[Ed25519PublicKey, bytes]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        _, key, signature = (line.partition(": ")[2] for line in content.decode("ascii").splitlines())
        made_by = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
        found = base64.b64decode(signature, validate=True)
    except (ValueError, binascii.Error):
        raise refusal("is no signature of doublure") from None
    if _written(made_by, found).encode() != content:  # no further text
        raise refusal("is no signature of doublure")
    return made_by, found


def refusal(what: str, field: object = SIGNATURE) -> GateFailed:
    """Return the error of a bundle that fails a check."""
    return GateFailed(
        what,
        field=field,
        remedy="do not rely on this bundle; ask the publisher, at an address that you have from elsewhere",
    )


def _content(path: Path) -> bytes:
    if "PRIVATE KEY" in str(path):  # a message would print it
        raise InputError("is the text of a key and not its path", field="key", remedy="give the path of the file")
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError("is too large for a key", field=path, remedy=_MAKE)
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", field=path, remedy=_MAKE) from None
    except OSError as error:
        raise InputError("cannot be read", field=path, remedy=files.remedy_of(error)) from None


def _loaded(content: bytes, path: Path) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    if b"ENCRYPTED" in content:
        remedy = "decrypt it into a file of mode 0600, or make a pair with doublure keys new"
        raise InputError("is an encrypted key", field=path, remedy=remedy)
    read = serialization.load_pem_public_key if b"PUBLIC KEY" in content else _load_private
    try:
        return read(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError("is no key in PEM", field=path, remedy=_MAKE) from None


def _load_private(content: bytes) -> object:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(content, password=None)


def _private_pem(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _public_pem(key: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _write_new(path: Path, content: bytes, *, mode: int) -> None:
    """Write a new file; never replace one, even if it appears meanwhile.

    Raises:
        Unwritable: It is there, or cannot be written.
    """
    files.refuse_unwritable(path)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        files.sync_folder(path.parent)
    except OSError as error:
        raise files.Unwritable(path, error) from None
