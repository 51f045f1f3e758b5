"""Ranks of one program under ``torchrun``, and messages between rank 0 and the others.

``torchrun`` starts the processes and numbers them. They talk over gloo on the CPU, whatever they compute on, as only
sums and short words are exchanged. Rank 0 *leads*: it alone uses a ledger and a folder. Every message has a word that
names its point of the program; an unexpected word ends the run.

===============================  ======================================================================================
edge case                        what happens
===============================  ======================================================================================
a rank dies                      its connection closes, which rank 0 notices when it next receives (``RankLost``)
ranks that do not meet           are given up after five minutes
rank 0 dies                      the others end when they next receive
a rank fails by itself           it sends the reason, without private values, and rank 0 ends the run with it
rank 0 ends the run              the others receive that in place of the message they expect (``RunEnded``)
other versions of doublure       refused when ranks meet
===============================  ======================================================================================

A message (:mod:`doublure.support.messages`) is not encrypted; see docs/scale.md.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

import numpy as np

from doublure._version import __version__
from doublure.errors import DoublureError, InputError, RankLost, SettingError
from doublure.support.messages import MalformedMessage, Message
from doublure.support.tensors import Array

Words: TypeAlias = "Mapping[str, Any]"
Arrays: TypeAlias = "Mapping[str, Array]"

_PATIENCE = timedelta(hours=12)  # a rank that dies is noticed at once; one that works may take long
_MEETING = timedelta(minutes=5)
_LAST_WORD = timedelta(seconds=10)
_WORD = "word"
_ENDED, _FAILED, _MEET = "ended", "failed", "meet"


class RunEnded(Exception):
    """Raised where rank 0 has ended the run, which reports the reason."""


class RankLink(Protocol):
    """A connection to the other ranks, on which bytes arrive complete and in order.

    Attributes:
        rank: Number of this process, from 0.
        size: Number of processes.
    """

    rank: int
    size: int

    def send(self, content: bytes, to: int, within: timedelta | None = None) -> None:
        """Send bytes to a rank.

        Raises:
            OSError, RuntimeError: It is gone, or does not receive them in time.
        """

    def receive(self, of: int) -> bytes:
        """Return the next bytes from a rank.

        Raises:
            OSError, RuntimeError: It is gone.
        """


class GlooLink:
    """The ranks that ``torchrun`` has started, over gloo: rank 0 to each of the others.

    A thread receives each rank's bytes, so that a sender never waits for the receiver, and receiving can be
    interrupted.
    """

    def __init__(self) -> None:
        from torch import distributed

        # A rank that dies before the ranks have met would be waited for as long as one that works.
        meeting = threading.Thread(target=self._meet, daemon=True)
        meeting.start()
        meeting.join(_MEETING.total_seconds())
        if not distributed.is_initialized():
            raise RankLost("the ranks have not met", field="ranks", remedy="see that all are started; fit again")
        self._ranks = distributed
        self.rank: int = distributed.get_rank()
        self.size: int = distributed.get_world_size()
        peers = [0] if self.rank else range(1, self.size)
        self._inbox: dict[int, queue.SimpleQueue[bytes | None]] = {rank: queue.SimpleQueue() for rank in peers}
        self._threads = [threading.Thread(target=self._take_in, args=[rank], daemon=True) for rank in peers]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _meet() -> None:
        from torch import distributed

        with contextlib.suppress(OSError, RuntimeError):
            distributed.init_process_group("gloo", timeout=_PATIENCE)

    def send(self, content: bytes, to: int, within: timedelta | None = None) -> None:
        """Send bytes."""
        import torch

        length, numbers = torch.tensor([len(content)]), torch.from_numpy(np.frombuffer(content, np.uint8).copy())
        for part in (length, numbers) if content else (length,):
            work = self._ranks.isend(part, to)
            if work is None:
                raise TypeError("a rank sends to another one")
            work.wait(within or _PATIENCE)

    def receive(self, of: int) -> bytes:
        """Return the next bytes."""
        content = self._inbox[of].get()
        if content is None:
            self._inbox[of].put(None)
            raise ConnectionError
        return content

    def _take_in(self, of: int) -> None:
        import torch

        length = torch.empty(1, dtype=torch.int64)
        with contextlib.suppress(RuntimeError):
            while self._ranks.recv(length, of) is not None and (size := int(length)):
                content = torch.empty(size, dtype=torch.uint8)
                self._ranks.recv(content, of)
                self._inbox[of].put(content.numpy().tobytes())
        self._inbox[of].put(None)

    def close(self) -> None:
        """Close the connections, and wait until the others have closed theirs."""
        for rank in self._inbox:
            with contextlib.suppress(OSError, RuntimeError):
                self.send(b"", rank, _LAST_WORD)
        for thread in self._threads:
            thread.join(_LAST_WORD.total_seconds())
        if not any(thread.is_alive() for thread in self._threads):
            self._ranks.destroy_process_group()


class Leader:
    """Rank 0's side of the messages.

    Args:
        link: Connection to the others.

    Attributes:
        others: Numbers of the other ranks.
    """

    def __init__(self, link: RankLink) -> None:
        self._link = link
        self.others = range(1, link.size)

    def broadcast(self, word: str, words: Words | None = None, arrays: Arrays | None = None) -> None:
        """Send a message to all others; a rank that is gone is noticed when it is next received from."""
        content = _content(word, words, arrays)
        for rank in self.others:
            with contextlib.suppress(OSError, RuntimeError):
                self._link.send(content, rank)

    def gather(self, word: str) -> list[Message]:
        """Return the next message of each of the others, in their order.

        Raises:
            RankLost: One is gone.
            InputError: One has failed, with its reason; or is at another point of the program.
        """
        heard = []
        for rank in self.others:
            with _lost(rank):
                said, message = _read(self._link.receive(rank))
            if said == _FAILED:
                told = message.words
                raise InputError(f"rank {rank}: {told['message']}", field=told["field"], remedy=told["remedy"])
            if said != word:
                raise _out_of_step(rank)
            heard.append(message)
        return heard

    def meet(self) -> None:
        """Refuse ranks that run another version."""
        for rank, message in enumerate(self.gather(_MEET), start=1):
            if message.words["version"] != __version__:
                raise SettingError(
                    f"rank {rank} runs another version of doublure", field="ranks", remedy="install one everywhere"
                )

    def end(self) -> None:
        """Make the others end, as far as they can be reached."""
        content = _content(_ENDED)
        for rank in self.others:
            with contextlib.suppress(OSError, RuntimeError):
                self._link.send(content, rank, _LAST_WORD)


class Follower:
    """The side of any other rank.

    Args:
        link: Connection to rank 0.
    """

    def __init__(self, link: RankLink) -> None:
        self._link = link
        self.rank = link.rank

    def send(self, word: str, words: Words | None = None, arrays: Arrays | None = None) -> None:
        """Send a message to rank 0.

        Raises:
            RankLost: It is gone.
        """
        with _lost(0):
            self._link.send(_content(word, words, arrays), 0)

    def receive(self, word: str) -> Message:
        """Return the next message of rank 0.

        Raises:
            Ended: It has ended the run.
            RankLost: It is gone.
            InputError: It is at another point of the program.
        """
        with _lost(0):
            said, message = _read(self._link.receive(0))
        if said == _ENDED:
            raise RunEnded
        if said != word:
            raise _out_of_step(0)
        return message

    def meet(self) -> None:
        """Send this rank's version."""
        self.send(_MEET, {"version": __version__})

    def fail(self, error: Exception) -> None:
        """Send the reason why this rank failed, and wait until rank 0 has ended the run."""
        known = error if isinstance(error, DoublureError) else None
        message = f"failed with {type(error).__name__}" if known is None else known.message
        told = {"message": message, "field": known and known.field, "remedy": known and known.remedy}
        with contextlib.suppress(RankLost):
            self.send(_FAILED, told)
            with contextlib.suppress(RunEnded):
                while True:  # what was under way when this rank failed comes first
                    with contextlib.suppress(InputError):
                        self.receive(_ENDED)


def torchrun_rank() -> tuple[int, int] | None:
    """Return this process's rank and the number of ranks; None where it runs alone.

    Raises:
        SettingError: The environment holds something other than numbers.
    """
    told = [os.environ.get(name) for name in ("RANK", "WORLD_SIZE")]
    if "TORCHELASTIC_RUN_ID" not in os.environ or None in told:
        return None
    try:
        rank, size = (int(value or "") for value in told)
    except ValueError:
        raise SettingError("is no number", field="RANK", remedy="start the ranks with torchrun") from None
    return None if size < 2 else (rank, size)


def rank_device(device: str) -> str:
    """Return a rank's own device, of several on a machine.

    Args:
        device: As given; ``cuda`` becomes ``cuda:`` and the rank's number on its machine.
    """
    return f"{device}:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" and torchrun_rank() else device


def _content(word: str, words: Words | None = None, arrays: Arrays | None = None) -> bytes:
    return Message({_WORD: word, **(words or {})}, arrays or {}).to_bytes()


def _read(content: bytes) -> tuple[str, Message]:
    message = Message.from_bytes(content)
    words = {**message.words}
    return words.pop(_WORD), Message(words, message.arrays)


def _out_of_step(rank: int) -> InputError:
    return InputError(f"rank {rank} is at another point of the run", field="ranks", remedy="go on with --resume")


@contextlib.contextmanager
def _lost(rank: int) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError, KeyError, MalformedMessage):
        raise RankLost(f"rank {rank} is gone", field="ranks", remedy="go on with --resume") from None
