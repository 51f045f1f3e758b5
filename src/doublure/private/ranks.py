"""Records spread over several processes that train together, each holding whole units.

Every rank runs the same program with the same public seed. Where it comes to a release, each asks the query of its own
units, with coins, pairing and mixing numbers of its own operating system; rank 0 adds the answers, has the release paid
for, adds the noise once, and sends the others the noisy sum, with which all go on. Training code need not know that
there are ranks.

Guarantee: that of :class:`doublure.private.mechanism.Mechanism`, which rank 0 runs unchanged. A unit is with one rank
alone (:func:`rank_of_units`), so that the sum moves as far as that rank's answer does. Lots that ranks draw by
themselves at one rate, each unit by its own coin, are together one Poisson lot. Rank 0 and the wires between ranks see
exact sums: ranks are one trusted party (docs/scale.md).

==========================================  ==========================================================================
edge case                                   what happens
==========================================  ==========================================================================
a rank without a unit                       answers with zeros
a rank at another step, or query            ends the run before anything is added up
records that do not fit one rank            refused before the release is paid for
a rank that dies before it has answered     ends the run; the step is not paid for
an answer that an earlier session has kept  is sent to all ranks when the run goes on, and none is asked
facts of a schema                           are learned by rank 0 alone, of all units, before they are dealt
a query that is no sum over partitions      refused before the release is paid for
==========================================  ==========================================================================
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from doublure.access import Access
from doublure.errors import DataError, NotAsPriced
from doublure.private.executed import DEFECT
from doublure.private.mechanism import Mechanism
from doublure.private.partitions import (
    CompositeQuery,
    Partitions,
    as_partitions,
    inconsistent_answers,
    require_partitionable,
)
from doublure.private.queries.query import Answer, Query, query_digest
from doublure.private.remote import Exchange, RemotePartitions
from doublure.support.tensors import as_array

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.private.records import PrivateRecords
    from doublure.support.messages import Message
    from doublure.support.ranks import Follower, Leader

R = TypeVar("R")
P = TypeVar("P")

KEY_BITS = 128
_FITS, _ASKED, _ANSWER, _RELEASED, _DEAL, _READ, _AGREE = "fits", "asked", "answer", "released", "deal", "read", "agree"


class LocalContext:
    """The context of a run in one process; subclasses are those of ranks."""

    def mechanism(self, accesses: Sequence[Access], **arguments: Any) -> Mechanism:
        """Return the mechanism that answers queries; see :class:`Mechanism`."""
        return Mechanism(accesses, **arguments)

    def assigned(self, records: PrivateRecords, fingerprint: str) -> PrivateRecords:
        """Return the records that are assigned to this process.

        Args:
            records: All records.
            fingerprint: Of all records; empty where each load draws others.
        """
        return records

    def agree(self, tensors: Sequence[Tensor]) -> None:
        """Set tensors to those of rank 0, in place, as ranks' results may differ by rounding."""


# -- rank 0 ----------------------------------------------------------------------------------------------------------


class LeaderContext(LocalContext):
    """Rank 0 of several.

    Args:
        leader: To the others.
        size: Number of ranks, this one included.
    """

    def __init__(self, leader: Leader, size: int) -> None:
        self._leader = leader
        self._size = size

    @override
    def mechanism(self, accesses: Sequence[Access], **arguments: Any) -> Mechanism:
        return LeaderMechanism(accesses, leader=self._leader, **arguments)

    @override
    def assigned(self, records: PrivateRecords, fingerprint: str) -> PrivateRecords:
        """Return this rank's units, and send the others the key that assigns theirs; it is fresh and never kept.

        Raises:
            DataError: A rank has read other records, or it cannot be known.
        """
        if not fingerprint:
            message = "draws records of units that have too many, which each rank would do otherwise"
            raise DataError(message, field="records", remedy="give no unit more than max_records, or take one process")
        key = secrets.randbits(KEY_BITS)
        self._leader.broadcast(_DEAL, {"key": f"{key:x}", "size": self._size})
        if any(message.words["fingerprint"] != fingerprint for message in self._leader.gather(_READ)):
            raise DataError("are not the same on all ranks", field="records", remedy="give every rank equal files")
        return records.of_units(rank_of_units(key, records.n_units, self._size) == 0)

    @override
    def agree(self, tensors: Sequence[Tensor]) -> None:
        self._leader.broadcast(_AGREE, arrays={str(n): as_array(tensor) for n, tensor in enumerate(tensors)})


class LeaderMechanism(Mechanism):
    """The mechanism of a run whose units lie with several ranks.

    Args:
        accesses: See :class:`Mechanism`.
        leader: To the other ranks.
        arguments: See :class:`Mechanism`.
    """

    def __init__(self, accesses: Sequence[Access], *, leader: Leader, **arguments: Any) -> None:
        super().__init__(accesses, **arguments)
        self._leader = leader

    @override
    def release(self, query: Query[R], access: Access, records: R | Partitions[R], *, keep: bool = True) -> Any:
        if access.path is not None or self.keeps(access):  # all ranks were sent what is kept
            return super().release(query, access, records, keep=keep)
        step = {"access": self._places[access], "taken": self.taken(access)}
        noisy = super().release(query, access, RankPartitions(as_partitions(records), self._leader, step), keep=keep)
        self._leader.broadcast(_RELEASED, arrays={"noisy": noisy})
        return noisy


class RankPartitions(RemotePartitions[P]):
    """The records of all ranks, as rank 0 asks them.

    Args:
        own: Those of rank 0.
        leader: To the others.
        step: The release that all ranks have to be at.
    """

    def __init__(self, own: Partitions[P], leader: Leader, step: Mapping[str, Any]) -> None:
        super().__init__()
        self._own = own
        self._leader = leader
        self._step = step

    @override
    def refuse_unfit(self, query: Query[P]) -> None:
        """Refuse what does not fit the records of some rank.

        Raises:
            NotAsPriced: A rank is at another release.
        """
        require_partitionable(query)
        self._own.refuse_unfit(query)
        if any(message.words != self._step for message in self._leader.gather(_FITS)):
            raise _out_of_step(query)

    @override
    def exchange(self, query: Query[P], *, sample_rate: float) -> Exchange[Message]:
        self._leader.broadcast(_ASKED)
        own = self._own.ask(query, sample_rate=sample_rate)

        def validated(rank: int, response: Message) -> Answer:
            if response.words.get("asked") != query_digest(query):
                raise _out_of_step(query)
            if response.words.get("stated") != own.stated:
                raise inconsistent_answers(query)
            return own.from_message(response)

        heard = zip(self._leader.others, self._leader.gather(_ANSWER), strict=True)
        return Exchange(parties=self._leader.others, responses=heard, validated=validated, own=own)


# -- the others ------------------------------------------------------------------------------------------------------


class FollowerContext(LocalContext):
    """A rank beside rank 0.

    Args:
        follower: To rank 0.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    @override
    def mechanism(self, accesses: Sequence[Access], **arguments: Any) -> Mechanism:
        return FollowerMechanism(accesses, follower=self._follower, **arguments)

    @override
    def assigned(self, records: PrivateRecords, fingerprint: str) -> PrivateRecords:
        deal = self._follower.receive(_DEAL).words
        self._follower.send(_READ, {"fingerprint": fingerprint})
        ranks = rank_of_units(int(deal["key"], 16), records.n_units, deal["size"])
        return records.of_units(ranks == self._follower.rank)

    @override
    def agree(self, tensors: Sequence[Tensor]) -> None:
        import torch

        told = self._follower.receive(_AGREE).arrays.values()
        with torch.no_grad():
            for own, theirs in zip(tensors, told, strict=True):
                own.copy_(torch.from_numpy(theirs))


class FollowerMechanism(Mechanism):
    """The mechanism of another rank: it answers rank 0, which pays for releases and adds the noise.

    Args:
        accesses: See :class:`Mechanism`.
        follower: To rank 0.
        arguments: See :class:`Mechanism`.
    """

    def __init__(self, accesses: Sequence[Access], *, follower: Follower, **arguments: Any) -> None:
        super().__init__(accesses, **arguments)
        self._follower = follower

    @override
    def release(self, query: Query[R], access: Access, records: R | Partitions[R], *, keep: bool = True) -> Any:
        taken, places = self.taken(access), as_partitions(records)
        if self.keeps(access):
            return self._recalled(query, access, keep=keep)
        require_partitionable(query)
        places.refuse_unfit(query)
        self._follower.send(_FITS, {"access": self._places[access], "taken": taken})
        for each in query.sums() if isinstance(query, CompositeQuery) else [query]:
            self._follower.receive(_ASKED)
            answer = places.ask(each, sample_rate=getattr(access.event, "sample_rate", 1.0))
            message = answer.to_message()
            words = {**message.words, "asked": query_digest(each), "stated": answer.stated}
            self._follower.send(_ANSWER, words, message.arrays)
        noisy = self._follower.receive(_RELEASED).arrays["noisy"]
        self._taken[access] = taken + 1
        return noisy


# -- shared by all --------------------------------------------------------------------------------------------------


def rank_of_units(key: int, units: int, size: int) -> npt.NDArray[np.int64]:
    """Return the rank of each unit, ``(units,)`` from 0 to ``size - 1``: a keyed hash of the unit's number.

    The hash is Philox4x64-10 in counter mode: a unit's word follows from the key and its number alone.

    Args:
        key: 128 bits, drawn afresh for each session.
        units: Number of units.
        size: Number of ranks.
    """
    words = np.random.Philox(key=key).random_raw(units)
    return (words % np.uint64(size)).astype(np.int64)


def _out_of_step(query: Query[Any]) -> NotAsPriced:
    return NotAsPriced("is not asked alike of all ranks", field=type(query).__name__, remedy=DEFECT)
