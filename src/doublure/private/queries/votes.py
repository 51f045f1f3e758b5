"""Votes of look-alikes on labels.

Images are put into groups by what is seen of them, without a look at any label; the labels of a group are counted.

Sensitivity, for the labels *alone*: with the images held fixed, changing one image's label takes a vote from one cell
of the table and gives it to another, which moves the table by √2 in L2: what adding a record to two tables moves them
by. Images are ordered by what they show: groups follow from the order too, and in a folder by class a label that
changes moves its image. Nothing protects the images: which group each is in follows from all of them, and stays in
here.

==========================================  =========================================================
edge case                                   what happens
==========================================  =========================================================
fewer images than groups                    as many groups as there are images
no image at all                             zeros, and no label comes of it
images without labels                       refused before an image is looked at
a unit with more than one image             refused before an image is looked at
==========================================  =========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records
from doublure.support.seeding import of_32_bits

if TYPE_CHECKING:
    import numpy.typing as npt

    from doublure.private.records import PrivateRecords

    IntArray: TypeAlias = npt.NDArray[np.int64]
    FloatArray: TypeAlias = npt.NDArray[np.float32]

_CHUNK = 2000
_ROUNDS = 3
_CELLS_MOVED = 2  # one label more in one cell, and one less in another


class LabelVotes:
    """How many images of each group have each label; the group of each image stays in here.

    Args:
        groups: How many groups vote.
        seed: Public; fixes where the groups begin.
        see: Images ``(B, D…)`` to what look-alikes are found by ``(B, width)``, row by row.
        width: Of what is seen.
    """

    sensitivity = Sensitivity.of_cells(_CELLS_MOVED, 1)
    not_partitionable = "groups follow from all images"

    def __init__(self, *, groups: int, seed: int, see: Callable[[Tensor], Tensor], width: int) -> None:
        self._groups = groups
        self._seed = seed
        self._see = see
        self._width = width
        self._of_image: IntArray | None = None

    def refuse_unfit(self, records: PrivateRecords) -> None:
        """Refuse units with several images.

        Raises:
            SettingError: One has.
            TypeError: The records have no labels.
        """
        _classes(records)
        require_records(records.most_records, 1)

    def answer(self, records: PrivateRecords, *, sample_rate: float) -> Answer:
        """Return the votes, ``(groups · K,)`` int64, flat."""
        require_everyone(sample_rate)
        classes = _classes(records)
        self._of_image, labels = self._grouped(records.by_body())
        votes = np.bincount(self._of_image * classes + labels, minlength=self._groups * classes)
        return Answer(total=votes, sensitivity=Sensitivity.of_cells(_CELLS_MOVED, 1))

    def winners(self, votes: IntArray, records: PrivateRecords) -> Tensor:
        """Return each record's voted label ``(N,)``, int64, in the order of :meth:`PrivateRecords.by_body`.

        Args:
            votes: With noise; drawn in an earlier session, maybe, of the same records.
            records: Whose groups have voted.
        """
        if self._of_image is None:
            self._of_image, _ = self._grouped(records.by_body())
        return torch.from_numpy(votes.reshape(self._groups, -1).argmax(axis=1)[self._of_image])

    def _grouped(self, records: PrivateRecords) -> tuple[IntArray, IntArray]:
        """Return each image's group and its true label; groups follow from images and a public seed. Private."""
        from sklearn.cluster import MiniBatchKMeans

        seen = records.mapped(self._see, self._width, rows=_CHUNK)
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
    _, labels = records.nobody
    if labels is None:
        raise TypeError("a vote needs labels")
    return int(labels.shape[1])


def _bodies(records: PrivateRecords, rows: int) -> Iterator[tuple[FloatArray, IntArray]]:
    """Yield what is seen of the images, and their labels, a chunk at a time. Private."""
    for body, condition in records.expanded(rows):
        if condition is None:
            raise TypeError("a vote needs labels")
        yield body.cpu().numpy(), condition.argmax(dim=1).cpu().numpy()
