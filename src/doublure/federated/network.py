"""Files beside a Flower app that connect machines: certificates, Flower's config entry, and the commands to type."""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doublure.errors import InputError, SettingError
from doublure.support import files

if TYPE_CHECKING:
    from cryptography import x509

TLS = "tls"
AUTHORITY, CERTIFICATE, KEY = "ca.pem", "server.pem", "server.key"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this machine: the SuperLink's own processes reach it there."""
_VALID = datetime.timedelta(days=365)
"""The certificate's life, from the hour before; after a year ``init`` makes another."""
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
NODE_PORT = 9094
"""Flower's port of the first SuperNode on a machine."""


def require_hosts(hosts: Sequence[str]) -> None:
    """Refuse names that no certificate can hold.

    Raises:
        SettingError: One is neither a host's name nor an address.
    """
    for host in hosts:
        if _address(host) is None and not _HOST.fullmatch(host):
            remedy = "give a name or an address without a port, such as link.example.org"
            raise SettingError("is no host", field="host", remedy=remedy)


def write_certificates(folder: Path, hosts: Sequence[str]) -> list[str]:
    """Write an authority's certificate, and the server's certificate and key for these hosts.

    The authority's key signs once and is dropped, so that nothing else can be signed by it.

    Args:
        folder: A new folder.
        hosts: Names and addresses by which owners reach the server.

    Returns:
        The files' names.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    signed = _certificates(authority, server, [*dict.fromkeys([*hosts, *_LOOPBACK])])
    folder.mkdir(mode=0o700)
    pem = serialization.Encoding.PEM
    key = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files.write_atomic(folder / KEY, lambda file: file.write(key), mode=0o600)
    for name, certificate in zip((AUTHORITY, CERTIFICATE), signed, strict=True):
        content = certificate.public_bytes(pem)
        files.write_atomic(folder / name, lambda file, content=content: file.write(content))  # type: ignore[misc]
    return [AUTHORITY, KEY, CERTIFICATE]


def _certificates(authority: object, server: object, hosts: Sequence[str]) -> tuple[x509.Certificate, ...]:
    """Return the certificates of an authority and of a server."""
    from typing import Any, cast

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    signing, keys = cast("Any", authority), {"doublure authority": authority, hosts[0][:64]: server}
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "doublure authority")])
    now = datetime.datetime.now(datetime.UTC)
    told = [_address(host) or host for host in hosts]
    names = [x509.DNSName(each) if isinstance(each, str) else x509.IPAddress(each) for each in told]
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    own: tuple[list[tuple[x509.ExtensionType, bool]], ...] = (
        [
            (x509.BasicConstraints(True, 0), True),
            (x509.SubjectKeyIdentifier.from_public_key(signing.public_key()), False),
            (usage, True),
        ],
        [
            (x509.SubjectAlternativeName(names), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), False),
        ],
    )
    made = []
    for (name, key), extensions in zip(keys.items(), own, strict=True):
        built = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(cast("Any", key).public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + _VALID)
        )
        for extension, critical in extensions:
            built = built.add_extension(extension, critical)
        made.append(built.sign(signing, hashes.SHA256()))
    return tuple(made)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


# -- Flower's own configuration --------------------------------------------------------------------------------------


def flower_config() -> Path:
    """Return the path of Flower's configuration, which ``flwr`` reads."""
    home = os.environ.get("FLWR_HOME")
    return (Path(home) if home else Path.home() / ".flwr") / "config.toml"


def require_free_entry(name: str) -> None:
    """Refuse a connection's name that Flower's configuration has already.

    Raises:
        InputError: It has, or it cannot be read.
    """
    path = flower_config()
    try:
        known = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError):
        raise InputError(
            "cannot be read", field=path, remedy="put it right, or set FLWR_HOME to a new folder"
        ) from None
    if name in known.get("superlink", {}):
        remedy = f"remove [superlink.{name}] there, or give the app another name"
        raise InputError(f"names a connection {name} already", field=path, remedy=remedy)


def add_entry(name: str, *, host: str, port: int, authority: Path) -> Path:
    """Add a connection to Flower's configuration; all else in it stays as it is.

    Returns:
        The configuration's path.
    """
    path = flower_config()
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    entry = f"[superlink.{name}]\naddress = {toml_text(with_port(host, port))}\n"
    content = (before + gap + entry + f"root-certificates = {toml_text(str(authority.absolute()))}\n").encode()
    mode = path.stat().st_mode & 0o777 if before else 0o600
    files.write_atomic(path, lambda file: file.write(content), mode=mode)
    return path


def toml_text(text: str) -> str:
    """Return a text as TOML has it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def with_port(host: str, port: int) -> str:
    """Return ``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# -- what to type ----------------------------------------------------------------------------------------------------


def commands(app: Path, *, host: str, port: int) -> list[str]:
    """Return the commands of the coordinator and of an owner, in their order.

    Args:
        app: The app's folder.
        host: The name by which owners reach the SuperLink.
        port: Its port.
    """
    tls = app / TLS
    listens = "127.0.0.1" if host in _LOOPBACK else "0.0.0.0"
    node = 'name="…" units=… data="…" plan="…" ledger="…" folder="…"'
    return [
        f"flower-superlink --host {listens} --port {port} --ssl-ca-certfile {tls / AUTHORITY} "
        f"--ssl-certfile {tls / CERTIFICATE} --ssl-keyfile {tls / KEY} --disable-runtime-dependency-installation",
        f"flower-supernode --superlink {with_port(host, port)} --root-certificates {AUTHORITY} --port {NODE_PORT} "
        f"--node-config '{node}'",
        f"flwr run {app} {app.name}",
        f"doublure federate logs {app} --follow",
    ]
