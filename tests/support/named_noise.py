"""Randomness of the operating system that follows from the name of a test, so that no verdict hangs on chance.

What runs within a test or within a fixture's setup draws keys and bytes from a stream of that name alone; which tests
ran before, and in which process, does not matter. The mechanism's own code turns them into noise as ever. It hides
nothing: **for tests**. ``DOUBLURE_TEST_NOISE=fresh`` leaves the operating system in place, which finds a test whose
margin is too narrow. OpenDP and processes that a test starts draw their own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator

import numpy as np

_bytes, _bits = os.urandom, secrets.randbits
_streams: list[str | np.random.Generator] = []


def install() -> None:
    """Let both sources ask for the stream of what runs, if any does."""
    if os.environ.get("DOUBLURE_TEST_NOISE") != "fresh":
        os.urandom, secrets.randbits = _named_bytes, _named_bits


@contextlib.contextmanager
def of(name: str) -> Iterator[None]:
    """Draw from the stream of a name within this block."""
    _streams.append(name)  # most tests draw nothing
    try:
        yield
    finally:
        _streams.pop()


def leave() -> None:
    """Draw from the operating system: in a child, whose parent goes on with the stream."""
    _streams.clear()


def _stream() -> np.random.Generator:
    """Return the stream of what runs, made when it is asked for first."""
    stream = _streams[-1]
    if isinstance(stream, str):
        seed = int.from_bytes(hashlib.sha256(stream.encode()).digest())
        stream = _streams[-1] = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
    return stream


def _named_bytes(size: int) -> bytes:
    return _stream().bytes(size) if _streams else _bytes(size)


def _named_bits(bits: int) -> int:
    return int.from_bytes(_stream().bytes(-(-bits // 8))) % (1 << bits) if _streams else _bits(bits)
