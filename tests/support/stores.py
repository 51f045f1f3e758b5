"""An S3 server of the tests' own on the loopback (moto's), and a web server with a certificate."""

from __future__ import annotations

import datetime
import http.server
import importlib.util
import ipaddress
import itertools
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SECRET = "a-secret-that-no-message-holds"
_BUCKETS = itertools.count()


def session() -> Iterator[str]:
    """Start the server, with its address and credentials in the environment; skip with a reason without it."""
    missing = [name for name in ("s3fs", "moto", "flask") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"no S3 server: pip install 'doublure[stores]' 'moto[server]' (without {missing[0]})")
    from moto.server import ThreadedMotoServer

    with pytest.MonkeyPatch.context() as patch:
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
            patch.setenv("AWS_ACCESS_KEY_ID", "tests")
            patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            yield f"http://{host}:{port}"
        finally:
            server.stop()


def new_bucket() -> str:
    """Make a bucket, and return its name."""
    import s3fs

    name = f"bucket{next(_BUCKETS)}"
    s3fs.S3FileSystem().mkdir(name)
    return name


def upload(local: Path, url: str) -> str:
    """Write a file, or the files of a folder, past doublure; return the address."""
    import s3fs

    files = s3fs.S3FileSystem(use_listings_cache=False)
    for path in [local] if local.is_file() else sorted(local.rglob("*")):
        if path.is_file():
            files.put_file(str(path), url if local.is_file() else f"{url}/{path.relative_to(local).as_posix()}")
    return url


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves ranges, as web servers do and Python's own does not."""

    version = True

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None or not path.is_file():
            super().do_GET()
            return
        content = path.read_bytes()
        first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(content[first : last + 1])

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Last-Modified" or self.version:
            super().send_header(keyword, value)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def web_server(folder: Path, patch: pytest.MonkeyPatch, *, version: bool = True) -> Iterator[str]:
    """Serve a folder over TLS, with a certificate that this process trusts."""
    certificate = _certificate(folder.parent / "server.pem")
    handler = type("Handler", (_Handler,), {"version": version})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: handler(*given, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    patch.setenv("SSL_CERT_FILE", str(certificate))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(path: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path
