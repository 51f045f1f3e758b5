"""UTF-16 text, such as Excel's "Unicode text", as a stream of UTF-8.

The mark at the file's head is its form: it says that all that follows is units of two bytes, and in which order. Half
of a pair of units, which is no character, becomes bytes that are no UTF-8 where it stands, so that its record alone
cannot be read; an odd byte at the end does so, too.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO

from typing_extensions import override

MARKS: Mapping[bytes, str] = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_AT_ONCE = 2**20
_ODD = b"\xff"


def in_utf_8(file: IO[bytes], codec: str) -> IO[bytes]:
    """Return a stream of UTF-8 for one of UTF-16.

    Args:
        file: At its mark.
        codec: That the mark names.
    """
    file.read(2)
    return io.BufferedReader(_Utf8Stream(file, codec))


class _Utf8Stream(io.RawIOBase):
    def __init__(self, file: IO[bytes], codec: str) -> None:
        self._file, self._codec = file, codec
        self._held = self._ready = b""

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._ready:
            more = self._file.read(_AT_ONCE)
            if not more:
                self._ready, self._held = _ODD * bool(self._held), b""
                break
            self._ready = self._decoded(self._held + more)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _decoded(self, units: bytes) -> bytes:
        """Return whole characters as UTF-8, and keep what is none yet: an odd byte, or the first half of a pair."""
        whole = len(units) // 2 * 2
        last = units[whole - 2 : whole]
        high = last[1 if self._codec.endswith("le") else 0] if last else 0
        whole -= 2 * (0xD8 <= high < 0xDC)
        self._held = units[whole:]
        return units[:whole].decode(self._codec, "surrogatepass").encode("utf-8", "surrogatepass")
