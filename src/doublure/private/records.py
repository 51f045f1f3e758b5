"""Private records, indexed by unit, for drawing lots and for counting.

Nothing here computes; the class exists so that private records have one home, show nothing in ``repr``, and cannot be
pickled into an artefact. They are NumPy arrays in memory, or rows on disk of which a lot is read
(:mod:`doublure.support.row_files`); torch is imported where they are expanded for a network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from doublure.support.row_files import Chosen, StoredRows

if TYPE_CHECKING:
    import torch
    from torch import Tensor

IntArray = npt.NDArray[np.int64]

_HASHED = 10_000
_EXPANDED = 256
_FINENESS = 1000


class ResumableStore(Protocol):
    """Private storage for numbers that take long to compute."""

    def load(self, shape: tuple[int, int]) -> Tensor | None:
        """Return the finished rows ``(≤ shape[0], shape[1])`` of an earlier session, if there are any."""

    def save(self, rows: Tensor, batches: int, *, last: bool) -> None:
        """Save the rows finished so far, after so many batches; may raise to stop."""


class _Batches(NamedTuple):
    """Batches of distinct records.

    Attributes:
        first: ``(D,)`` index of each distinct record, batch by batch.
        place: ``(D,)`` its place in its batch.
        ends: Where batches end.
        of: ``(N,)`` for each record the distinct record that it equals.
    """

    first: IntArray
    place: IntArray
    ends: list[int]
    of: IntArray


class PrivateRecords:
    """Compact private records and how to expand those of a lot.

    Args:
        compact: ``(N, P)``, every record; in memory or on disk.
        unit: ``(N,)`` int64, each record's unit, 0 … n_units - 1.
        n_units: Number of units.
        expand: ``(B, P) -> (body (B, D…), condition (B, K) or None)``, row i from row i alone.
        device: Device on which lots are expanded.
        places: ``(N,)`` indices into the rows on disk; None: all of them, in order.
    """

    def __init__(
        self,
        compact: npt.ArrayLike | StoredRows,
        unit: IntArray,
        n_units: int,
        expand: Callable[[Tensor], tuple[Tensor, Tensor | None]],
        device: str | torch.device = "cpu",
        places: IntArray | None = None,
    ) -> None:
        self.n_units = n_units
        order = None if bool((unit[1:] >= unit[:-1]).all()) else np.argsort(unit, kind="stable")
        self._places: IntArray | None = None
        self._compact: npt.NDArray[Any] | StoredRows
        if isinstance(compact, StoredRows):
            self._compact = compact
            self._places = order if places is None else places if order is None else places[order]
        else:
            held = np.asarray(compact)
            self._compact = held if order is None else held[order]
        self._first = np.concatenate([[0], np.cumsum(np.bincount(unit, minlength=n_units))])
        self._count = len(unit)
        self._single = n_units == self._count and self.most_records <= 1
        self._expand = expand
        self._device = device
        self._batches: dict[int, _Batches] = {}
        self._numbered = False

    def lot(self, units: IntArray) -> tuple[Tensor, Tensor | None, Tensor | None, int]:
        """Return the records of the drawn units.

        Args:
            units: ``(G,)`` the units in the lot; none is a lot too.

        Returns:
            Body ``(B, D…)``, condition ``(B, K)`` or None, each record's place among the drawn units ``(B,)`` (None
            where every unit has one record), and G.
        """
        import torch

        if self._single:
            rows = self._first[:-1][units]
            group = None
        else:
            counts = self._first[units + 1] - self._first[units]
            place = np.repeat(np.arange(len(units)), counts)
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            rows = self._first[units][place] + within
            group = torch.from_numpy(place).to(self._device)
        body, condition = self._expanded(self._rows(rows))
        return body, condition, group, len(units)

    @property
    def empty_lot(self) -> tuple[Tensor, Tensor | None]:
        """Body ``(0, D…)`` and condition of no record, for their shapes."""
        return self._expanded(self._rows(slice(0)))

    @property
    def parts(self) -> int:
        """Number of parts of a compact record: public, from the schema."""
        return int(self._compact.shape[1])

    @property
    def most_records(self) -> int:
        """Largest number of records of a unit. Private."""
        return int(np.diff(self._first).max(initial=0))

    @property
    def fingerprint(self) -> str:
        """Hash of all records, their units and their order. Private: for a run's internal folder alone."""
        found = hashlib.sha256(self._first.tobytes())
        for first in range(0, self._count, _HASHED):
            found.update(self._rows(slice(first, first + _HASHED)).tobytes())
        return found.hexdigest()

    def chunks(self, rows: int) -> Iterator[npt.NDArray[Any]]:
        """Yield the compact records ``(≤ rows, P)``, a chunk at a time; of no records one that is empty. Private."""
        for first in range(0, max(1, self._count), rows):
            yield self._rows(slice(first, first + rows))

    def expanded(self, rows: int) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield bodies ``(≤ rows, D…)`` and conditions of all records, a chunk at a time. Private."""
        for chunk in self.chunks(rows):
            yield self._expanded(chunk)

    def placed(self, rows: int) -> Iterator[tuple[Tensor, Tensor | None, Tensor]]:
        """Yield all records in batches of one size, each at a place that follows from its own content. Private.

        A result for a record is then the same to the last digit, whatever the other records, on a machine that computes
        the same from the same numbers at the same place.

        Args:
            rows: Records in a batch; places that are left empty hold zeros.

        Yields:
            Bodies ``(rows, D…)``, conditions ``(rows, K)`` or None, and how many records are equal to each ``(rows,)``
            int64, zero for an empty place. Of no records there is one batch, and it is empty.
        """
        import torch

        batches = self._placed(rows)
        equal = np.bincount(batches.of, minlength=len(batches.first))
        for first, end in zip([0, *batches.ends], batches.ends or [0], strict=False):
            places = torch.from_numpy(batches.place[first:end])
            times = torch.zeros(rows, dtype=torch.int64)
            times[places] = torch.from_numpy(equal[first:end])

            def filled(some: Tensor, places: Tensor = places) -> Tensor:
                found = some.new_zeros(rows, *some.shape[1:])
                found[places.to(some.device)] = some
                return found

            body, condition = self._expanded(self._rows(batches.first[first:end]))
            yield filled(body), None if condition is None else filled(condition), times

    def _rows(self, wanted: Chosen) -> npt.NDArray[Any]:
        """Return some compact records, in the order of their units."""
        return self._compact[wanted if self._places is None else self._places[wanted]]

    def _some(self, places: IntArray, unit: IntArray, n_units: int) -> PrivateRecords:
        """Return some records with new units; records on disk stay there."""
        if isinstance(self._compact, StoredRows):
            own = places if self._places is None else self._places[places]
            return PrivateRecords(self._compact, unit, n_units, self._expand, self._device, own)
        return PrivateRecords(self._compact[places], unit, n_units, self._expand, self._device)

    def _expanded(self, compact: npt.NDArray[Any]) -> tuple[Tensor, Tensor | None]:
        import torch

        return self._expand(torch.from_numpy(np.ascontiguousarray(compact)).to(self._device))

    def mapped(
        self,
        function: Callable[[Tensor], Tensor],
        width: int,
        *,
        rows: int,
        apart: bool = False,
        resumable: ResumableStore | None = None,
    ) -> PrivateRecords:
        """Return the same records with a body that is computed once and kept as float16.

        Args:
            function: Bodies ``(B, D…)`` to ``(B, width)``, row by row (which is checked on made-up ones, unless an
                earlier session has computed all), with nothing learned from private records but what was released.
            width: Of the new bodies.
            rows: How many records are handled at a time.
            apart: Whether a record's result may not depend on other records even in its last digit, as where a long
                computation amplifies last digits. A matrix product depends in its last digits on a row's place; so
                batches are then all of one size, filled up with zeros, and a record's place in its batch follows from
                the record itself. Equal records give equal results, computed once.
            resumable: Storage for finished bodies, if it takes long.

        Raises:
            SettingError: Rows meet in the function.
        """
        import torch

        from doublure.private.independence import refuse_meeting_rows

        body, conditions = self.empty_lot
        beside = 0 if conditions is None else conditions.shape[1]
        batches = self._placed(rows) if apart else self._in_order(rows)
        found = np.empty((len(batches.first), width), dtype=np.float16)
        ready = None if resumable is None else resumable.load((len(found), width))
        done = 0 if ready is None else len(ready)
        if ready is not None:
            found[:done] = ready.numpy()
        if done < len(found) or not len(found):  # also without records, so that a refusal tells nothing of them
            whole = rows if apart else None
            refuse_meeting_rows(lambda body, _: function(body), body, None, field="function", batch=whole)
        labels = np.empty((len(found), beside), dtype=np.float16)
        for number, end in enumerate(batches.ends):
            batch = slice(batches.ends[number - 1] if number else 0, end)
            filled, condition = self._expanded(self._rows(batches.first[batch]))
            if condition is not None:
                labels[batch] = condition.cpu().numpy()
            if end <= done:
                continue
            places = torch.from_numpy(batches.place[batch])
            if apart:
                body, filled = filled, filled.new_zeros(rows, *filled.shape[1:])
                filled[places.to(filled.device)] = body
            found[batch] = function(filled).cpu()[places].half().numpy()
            if resumable is not None:
                resumable.save(torch.from_numpy(found[:end]), number + 1, last=end == len(found))
        kept = np.concatenate([found, labels], axis=1)[batches.of]

        def expand(rows: Tensor) -> tuple[Tensor, Tensor | None]:
            return rows[:, :width].float(), rows[:, width:].float() if beside else None

        return PrivateRecords(kept, self._units, self.n_units, expand)

    def having(self, part: int, least: float, parts: IntArray) -> PrivateRecords:
        """Return the records in which one part is large enough, reduced to some parts, each a unit of its own.

        Whether a record is kept, and its reduced form, follow from that record alone.

        Args:
            part: Index of the part that is compared.
            least: Its least value.
            parts: ``(Q,)`` indices of the parts that are kept, in order.

        Raises:
            TypeError: Some unit has several records, or a record is more than its compact parts.
        """
        if not self._single:
            raise TypeError("records of one unit would count as several units")
        kept = np.concatenate([rows[rows[:, part] >= least][:, parts] for rows in self.chunks(_HASHED)])
        return PrivateRecords(kept, np.arange(len(kept)), len(kept), lambda rows: (rows, None), self._device)

    def _in_order(self, rows: int) -> _Batches:
        """Return batches of the records as they stand."""
        count = self._count
        order = np.arange(count)
        return _Batches(order, order % rows, [*range(rows, count, rows), count] if count else [], order)

    def _placed(self, rows: int) -> _Batches:
        """Return batches in which a record's place is a hash of its content; equal records are computed once.

        Records with the same place go to successive batches, in their order. One record more changes which records
        share a batch, and no record's place.
        """
        if self._numbered:
            raise TypeError("places would follow from the order of the records")
        if rows in self._batches:
            return self._batches[rows]
        content = (row.tobytes() for chunk in self.chunks(_HASHED) for row in chunk)
        digests = (hashlib.blake2b(row, digest_size=16).digest() for row in content)
        known: dict[bytes, int] = {}
        of = np.fromiter((known.setdefault(each, len(known)) for each in digests), np.int64, self._count)
        places = np.fromiter((int.from_bytes(digest[:8], "big") % rows for digest in known), np.int64, len(known))
        by_place = np.argsort(places, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=rows))])
        batch = np.empty(len(places), dtype=np.int64)
        batch[by_place] = np.arange(len(places)) - first[places[by_place]]
        order = np.argsort(batch, kind="stable")
        self._batches[rows] = _Batches(
            first=np.unique(of, return_index=True)[1][order],
            place=places[order],
            ends=np.cumsum(np.bincount(batch)).tolist(),
            of=np.argsort(order)[of],
        )
        return self._batches[rows]

    def of_units(self, chosen: npt.NDArray[np.bool_]) -> PrivateRecords:
        """Return all records of some units.

        Args:
            chosen: ``(n_units,)`` whether each unit is kept.
        """
        kept = np.flatnonzero(chosen[self._units])
        numbers = np.cumsum(chosen) - 1
        return self._some(kept, numbers[self._units[kept]], int(chosen.sum()))

    def by_body(self) -> PrivateRecords:
        """Return the same records in an order that follows from their bodies alone, each a unit of its own.

        The order must not reveal a condition where only the body may be learned: a folder by class is read class by
        class, so that a changed label moves its record. Bodies that agree to a thousandth, such as twins, keep their
        order, which makes no difference where they are treated alike.
        """
        digests = [
            hashlib.blake2b(row.tobytes(), digest_size=16).digest()
            for body, _ in self.expanded(_EXPANDED)
            for row in (body * _FINENESS).round().cpu().int().numpy()  # the last digits are a processor's own
        ]
        order = np.array(sorted(range(len(digests)), key=digests.__getitem__), dtype=np.int64)
        return self._some(order, np.arange(len(order)), len(order))

    def with_conditions(self, conditions: Tensor) -> PrivateRecords:
        """Return the same records with other conditions ``(N, K)``, in the order of :meth:`expanded`.

        Raises:
            ValueError: They are not one for each record.
        """
        if len(conditions) != self._count:
            raise ValueError("there has to be one condition for each record")
        numbered = np.arange(self._count)

        def expand(rows: Tensor) -> tuple[Tensor, Tensor | None]:
            places = rows.cpu()
            return self._expanded(self._rows(places.numpy()))[0], conditions[places].to(self._device)

        made = PrivateRecords(numbered, self._units, self.n_units, expand, self._device)
        made._numbered = True
        return made

    @property
    def _units(self) -> IntArray:
        """Each record's unit; records are in the order of their units already."""
        return np.repeat(np.arange(self.n_units), np.diff(self._first))

    def bodies(self) -> PrivateRecords:
        """Return the same records without their conditions."""
        alone = object.__new__(PrivateRecords)
        alone.__dict__ = {**self.__dict__, "_expand": lambda rows: (self._expand(rows)[0], None)}
        return alone

    def __repr__(self) -> str:
        return "PrivateRecords(private)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private records are never serialised")


class RecordsElsewhere(PrivateRecords):
    """Placeholder for records that lie in partitions: every attribute is refused."""

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise TypeError("records lie in partitions")
