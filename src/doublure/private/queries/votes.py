"""Votes on labels by groups of similar images.

Images are grouped by their features, without reading any label; the labels of a group are counted.

Sensitivity, for the labels *alone*: with the images held fixed, changing one image's label takes a vote from one cell
of the table and gives it to another, which moves the table by √2 in L2, as adding a record does to two tables. Images
are ordered by their content: groups follow from the order too, and in a folder by class a changed label moves its
image. Nothing protects the images: the group of each follows from all of them, and stays in this module.

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
from doublure.support.arrays import Ints
from doublure.support.seeding import to_32_bits

if TYPE_CHECKING:
    import numpy.typing as npt

    from doublure.private.records import PrivateRecords

    FloatArray: TypeAlias = npt.NDArray[np.float32]

_CHUNK = 2000
_ROUNDS = 3
_CELLS_MOVED = 2  # one label more in one cell, and one less in another


class LabelVotes:
    """The number of images of each group with each label; the groups of images stay private.

    Args:
        groups: Number of groups that vote.
        seed: Public; fixes the initial centres of the groups.
        see: Maps images ``(B, D…)`` to features ``(B, width)``, row by row.
        width: Number of features.
    """

    sensitivity = Sensitivity.of_cells(_CELLS_MOVED, 1)
    not_partitionable = "groups follow from all images"

    def __init__(self, *, groups: int, seed: int, see: Callable[[Tensor], Tensor], width: int) -> None:
        self._groups = groups
        self._seed = seed
        self._see = see
        self._width = width
        self._of_image: Ints | None = None

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

    def winners(self, votes: Ints, records: PrivateRecords) -> Tensor:
        """Return each record's voted label ``(N,)``, int64, in the order of :meth:`PrivateRecords.by_body`.

        Args:
            votes: With noise; perhaps drawn in an earlier session, for the same records.
            records: The records whose groups voted.
        """
        if self._of_image is None:
            self._of_image, _ = self._grouped(records.by_body())
        return torch.from_numpy(votes.reshape(self._groups, -1).argmax(axis=1)[self._of_image])

    def _grouped(self, records: PrivateRecords) -> tuple[Ints, Ints]:
        """Return each image's group and its true label; groups follow from images and a public seed. Private."""
        from sklearn.cluster import MiniBatchKMeans

        seen = records.mapped(self._see, self._width, rows=_CHUNK)
        labels = np.concatenate([labels for _, labels in _bodies(seen, _CHUNK)])
        groups = min(self._groups, len(labels))
        if not groups:
            return np.empty(0, dtype=np.int64), labels
        chunk = max(_CHUNK, groups)  # the first has to hold as many images as there are groups
        means = MiniBatchKMeans(groups, random_state=to_32_bits(self._seed), n_init=1)
        for _ in range(_ROUNDS):
            for looks, _ in _bodies(seen, chunk):
                if len(looks) >= groups:
                    means.partial_fit(looks)
        found = [np.asarray(means.predict(looks), dtype=np.int64) for looks, _ in _bodies(seen, chunk)]
        return np.concatenate(found), labels


def _classes(records: PrivateRecords) -> int:
    """Return the number of labels, K."""
    _, labels = records.empty_lot
    if labels is None:
        raise TypeError("a vote needs labels")
    return int(labels.shape[1])


def _bodies(records: PrivateRecords, rows: int) -> Iterator[tuple[FloatArray, Ints]]:
    """Yield the features of the images, and their labels, a chunk at a time. Private."""
    for body, condition in records.expanded(rows):
        if condition is None:
            raise TypeError("a vote needs labels")
        yield body.cpu().numpy(), condition.argmax(dim=1).cpu().numpy()
