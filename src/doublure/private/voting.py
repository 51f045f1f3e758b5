"""Labels replaced by noisy votes of look-alikes: grouping, counting, noise and event in one object.

Images are put into groups by what is seen of them, without a look at any label. The labels of a group are counted, all
counts are released once with discrete Gaussian noise, and every image gets the label that won in its group.

Guarantee, for the labels *alone*: with the images held fixed, changing one image's label takes a vote from one cell of
the table and gives it to another, which moves the table by √2 in L2: what adding a record to two tables moves them by.
An event with fewer tables is refused. Images are ordered by what they show: groups follow from the order too, and in a
folder by class a label that changes moves its image. Nothing protects the images: which group each is in follows from
all of them, and stays in here.

==========================================  =========================================================
edge case                                   what happens
==========================================  =========================================================
fewer images than groups                    as many groups as there are images
no image at all                             noise alone is drawn, and no label comes of it
images without labels                       refused before an image is looked at
a unit with more than one image             refused before an image is looked at
a vote beyond the plan, or not paid for     refused before anything is counted
==========================================  =========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from doublure.errors import SettingError
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.records import PrivateRecords
from doublure.private.tabulation import Axis, PrivateTables
from doublure.seeding import of_32_bits

if TYPE_CHECKING:
    import numpy.typing as npt

    IntArray: TypeAlias = npt.NDArray[np.int64]
    FloatArray: TypeAlias = npt.NDArray[np.float32]

_CHUNK = 2000
_ROUNDS = 3
_CELLS_MOVED = 2  # one label more in one cell, and one less in another


class PrivateVotes:
    """Groups of look-alikes, their votes, noise and event in one object.

    Args:
        records: The private records, one of each unit; their conditions are labels ``(N, K)``.
        event: The planned release: the price of two tables.
        groups: How many groups vote.
        seed: Public; fixes where the groups begin.
        authorise: Called with 1 before the votes are counted, and returns once they are durably paid for.
        taken: 1 where an interrupted run has counted them already.
    """

    def __init__(
        self,
        records: PrivateRecords,
        event: DiscreteGaussianEvent,
        *,
        groups: int,
        seed: int,
        authorise: Callable[[int], None],
        taken: int = 0,
    ) -> None:
        if event.tables < _CELLS_MOVED:
            raise SettingError("must be two: a label moves two cells", field="tables", remedy="make the plan again")
        self._records = records
        self._event = event
        self._groups = groups
        self._seed = seed
        self._authorise = authorise
        self._taken = taken

    def release(self, see: Callable[[Tensor], Tensor], width: int) -> Tensor:
        """Let the groups vote, once.

        Args:
            see: Images ``(B, D…)`` to what look-alikes are found by ``(B, width)``, row by row.
            width: Of what is seen.

        Returns:
            Each record's voted label ``(N,)``, int64, in the order of :meth:`PrivateRecords.by_body`.

        Raises:
            SettingError: The vote is not the planned one.
            TypeError: The records have no labels.
        """
        classes = _classes(self._records)
        if self._records.most_records > 1:
            raise SettingError("a unit has more records than planned", field="max_records", remedy="bound them first")
        of_image, labels = self._grouped(self._records.by_body(), see, width)
        compact = torch.from_numpy(np.stack([of_image, labels], axis=1))
        ballots = PrivateRecords(compact, np.arange(len(compact)), len(compact), lambda rows: (rows, None))
        tables = PrivateTables(ballots, [self._event], authorise=self._authorise, taken=self._taken)
        (votes,) = tables.release([(Axis.of_codes(0, self._groups), Axis.of_codes(1, classes))])
        self._taken = tables.taken
        return torch.from_numpy(votes.argmax(axis=1)[of_image])

    def _grouped(
        self, records: PrivateRecords, see: Callable[[Tensor], Tensor], width: int
    ) -> tuple[IntArray, IntArray]:
        """Return each image's group and its true label; groups follow from images and a public seed. Private."""
        from sklearn.cluster import MiniBatchKMeans

        seen = records.mapped(see, width, rows=_CHUNK)
        labels = np.concatenate([labels for _, labels in _bodies(seen, _CHUNK)])
        groups = min(self._groups, len(labels))
        if not groups:
            return np.empty(0, dtype=np.int64), labels
        chunk = max(_CHUNK, groups)  # the first has to hold as many images as there are groups
        means = MiniBatchKMeans(groups, random_state=of_32_bits(self._seed), n_init=1)
        for _ in range(_ROUNDS):
            for looks, _ in _bodies(seen, chunk):
                if len(looks) >= groups:
                    means.partial_fit(looks)
        found = [np.asarray(means.predict(looks), dtype=np.int64) for looks, _ in _bodies(seen, chunk)]
        return np.concatenate(found), labels


def _classes(records: PrivateRecords) -> int:
    """Return K."""
    _, labels, _, _ = records.lot(np.empty(0, dtype=np.int64))
    if labels is None:
        raise TypeError("a vote needs labels")
    return int(labels.shape[1])


def _bodies(records: PrivateRecords, rows: int) -> Iterator[tuple[FloatArray, IntArray]]:
    """Yield what is seen of the images, and their labels, a chunk at a time. Private."""
    for body, condition in records.expanded(rows):
        if condition is None:
            raise TypeError("a vote needs labels")
        yield body.cpu().numpy(), condition.argmax(dim=1).cpu().numpy()
