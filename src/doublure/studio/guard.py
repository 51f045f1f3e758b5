"""Access to the studio: one user with a token, from the studio's own pages.

The token stands in the address that the terminal prints. The first request with it gets a cookie and is sent on to the
same address without the token. Every other request needs the cookie. DNS rebinding fails at the host, other pages at
the origin, WebSockets always; another user of this machine at the connection (:mod:`doublure.studio.connection`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

TOKEN = "token"
"""The key of the token in the address."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; frame-ancestors 'self'; base-uri 'none'"
)
"""The content policy of the studio's own pages: nothing inline, nothing evaluated, nothing from elsewhere."""
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # none to others; with no-referrer, browsers send the origin of a form as null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "SAMEORIGIN",
    "x-dns-prefetch-control": "off",  # a link of a received page asks for no name; its policy does not say so
}
"""Headers of every answer; a screen may send another policy."""
_SAFE = ("GET", "HEAD")
_OWN_FETCHES = ("same-origin", "none")
_LONGEST_COOKIE = 8_000


class Guard:
    """An application that lets one user in.

    Args:
        app: The application behind it.
        token: The token in the printed address.
        hosts: Names of this machine that a browser may ask for.
        cookie: The cookie's name; ports share cookies, so that it should name the port.
    """

    def __init__(self, app: Any, *, token: str, hosts: Iterable[str] = LOOPBACK, cookie: str = "doublure") -> None:
        self._app = app
        self._tokens = {token.encode(): True}
        self._session = secrets.token_urlsafe(32).encode()
        self._hosts = frozenset(hosts)
        self._cookie = cookie

    def once(self) -> str:
        """Return another token, which lets in once.

        It is for the command line of a browser, which other users may see, and for its history.
        """
        token = secrets.token_urlsafe(32)
        self._tokens[token.encode()] = False
        return token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or hand on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                own = [(key.encode(), value.encode()) for key, value in HEADERS.items() if key.encode() not in given]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        headers = _headers(scope)
        if refused := self._foreign(scope["method"], headers):
            await _say(sent, 403, refused)
        elif (given := self._given_token(scope)) is not None:
            await self._enter(scope, sent, given)
        elif not self._has_cookie(headers):
            await _say(sent, 401, "Open the address that the terminal printed: it has the token.")
        else:
            await self._app(scope, receive, sent)

    def _foreign(self, method: str, headers: dict[str, list[str]]) -> str | None:
        """Return why a request does not come from the studio's own pages; None if it does."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or _host_name(hosts[0]) not in self._hosts:
            return "This host is not the studio's."
        origins = headers.get("origin", [])
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return "This page is not the studio's."
        if method not in _SAFE and not origins:
            return "This request does not say which page it comes from."
        if any(site not in _OWN_FETCHES for site in headers.get("sec-fetch-site", [])):
            return "This page is not the studio's. Paste the address into the browser."
        return None

    def _given_token(self, scope: Any) -> str | None:
        found = [value for key, value in _query(scope) if key == TOKEN]
        return found[0] if found else None

    async def _enter(self, scope: Any, send: Any, given: str) -> None:
        """Exchange the token for a cookie, and send the browser on to the address without it."""
        matching = [token for token in self._tokens if secrets.compare_digest(given.encode(), token)]
        if scope["method"] not in _SAFE or not matching:
            await _say(send, 403, "This token is not the studio's: open the address that the terminal printed.")
            return
        if not self._tokens[matching[0]]:
            del self._tokens[matching[0]]
        rest = urlencode([(key, value) for key, value in _query(scope) if key != TOKEN])
        path = quote("/" + scope["path"].lstrip("/\\"))  # two slashes at its beginning would name another host
        where = path + (f"?{rest}" if rest else "")
        cookie = f"{self._cookie}={self._session.decode()}; HttpOnly; SameSite=Strict; Path=/"
        await _say(send, 303, "", [(b"location", where.encode()), (b"set-cookie", cookie.encode())])

    def _has_cookie(self, headers: dict[str, list[str]]) -> bool:
        text = "; ".join(headers.get("cookie", []))
        if len(text) > _LONGEST_COOKIE:
            return False
        try:
            found = SimpleCookie(text).get(self._cookie)
        except CookieError:
            return False
        return found is not None and secrets.compare_digest(found.value.encode(), self._session)


def _headers(scope: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _query(scope: Any) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _host_name(host: str) -> str | None:
    """Return the name of a host without its port."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return None if parts.netloc != host or "@" in host or parts.path else parts.hostname


async def _say(send: Any, status: int, text: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    own = [(b"content-type", b"text/plain; charset=utf-8"), *(headers or [])]
    if status >= 400:
        own.append((b"connection", b"close"))  # what is sent after a refusal is not read
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": text.encode()})
