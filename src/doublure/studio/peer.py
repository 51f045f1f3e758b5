"""The owner of the process at the other end of a connection on this machine.

Browsers send a cookie to every port of a host, so that a page of another user at 127.0.0.1 gets the studio's; and a
browser's command line, with the address in it, is shown to all users. Linux tells whose a connection is: neither the
cookie nor the token is of use to another user there.
"""

from __future__ import annotations

import ipaddress
import os
import platform
import sys
from pathlib import Path

_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
_ESTABLISHED = "01"  # of a connection that its process has closed, the kernel says that it is root's
_ROOT = 0


def is_strange(client: tuple[str, int] | None, server: tuple[str, int] | None) -> bool:
    """Return whether a connection comes from another user of this machine; False where the system does not tell.

    Args:
        client: Address and port of who asks.
        server: Those of who is asked.
    """
    if client is None or server is None or "microsoft" in platform.release().lower():  # WSL: a browser outside of it
        return False
    try:
        here, there = ipaddress.ip_address(server[0]), ipaddress.ip_address(client[0])
        if not here.is_loopback:
            return False
        table = _TABLES[here.version].read_text(encoding="ascii")
    except (OSError, ValueError):
        return False
    ends = [f"{_in_hexadecimal(address)}:{port:04X}" for address, port in ((there, client[1]), (here, server[1]))]
    rows = (line.split() for line in table.splitlines()[1:])
    owners = [int(row[7]) for row in rows if row[1:4] == [*ends, _ESTABLISHED]]
    return not owners or any(owner not in (os.getuid(), _ROOT) for owner in owners)


def _in_hexadecimal(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Return an address as the kernel prints it: words of four bytes, in the order of the machine."""
    words = (address.packed[place : place + 4] for place in range(0, len(address.packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
