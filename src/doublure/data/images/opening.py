"""Open a set of images by its form: a file, a folder, an archive, a table of names, or arrays.

No image is read. The array or column of pixels is called ``images``, ``image``, ``img`` or ``x``; that of labels
``labels``, ``label``, ``class`` or ``y``. In an NPZ file or a mapping a split may follow, as in ``x_train`` and
``y_train``; of several splits one is named behind the path: ``mnist.npz#train``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from doublure.data.images import archives, arrays, files, lists
from doublure.data.images.records import Images
from doublure.data.images.sources import ImageSource
from doublure.data.splits import split_off
from doublure.errors import DataError
from doublure.support.objects import find_path

Source: TypeAlias = "str | os.PathLike[str] | Images | Mapping[str, Any]"


_IN_A_STORE = ("is no path, and pictures are read from a disk alone", "copy them to a disk")


def open_images(source: Source) -> ImageSource:
    """Look at the container of a set of images; no image is read.

    Args:
        source: A path to NPZ, IDX, Parquet, a folder, an archive or a CSV file of pictures' names, with ``#split``
            behind it where it holds several; a mapping of arrays; or :class:`Images`.

    Raises:
        DataError: There is nothing there, or nothing that is read.
    """
    if isinstance(source, Images):
        given = {"images": source.images} | ({} if source.labels is None else {"labels": source.labels.to_numpy()})
        if source.attributes is not None:
            given |= {str(name): cells.to_numpy() for name, cells in source.attributes.items()}
        return arrays.open_mapping(given, "images", None)
    if isinstance(source, Mapping):
        return arrays.open_mapping(source, "arrays", None)
    if not isinstance(source, (str, os.PathLike)):
        remedy = "give a file, a folder, or arrays named images and labels"
        raise DataError("is neither a path nor arrays", field="data", remedy=remedy)
    path, split = split_off(find_path(source, *_IN_A_STORE))
    if not path.exists():
        raise DataError("there is no such file or folder", field=path, remedy="give the path of the images")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError("is empty", field=path.name, remedy="give the images that the schema describes")
    if path.suffix.lower() == ".npz" and path.is_file():
        return arrays.open_npz(path, split)
    if path.suffix.lower() == ".mat" or (path / "list_attr_celeba.txt").is_file():
        dataset = "svhn" if path.is_file() else "celeba"
        remedy = f"give an NPZ file, such as doublure datasets fetch {dataset} writes"
        raise DataError("is not read in its publisher's form", field=path.name, remedy=remedy)
    if split is not None:
        remedy = "leave out what stands behind the #, and give the file or folder of the split"
        raise DataError("is no NPZ file, of which alone a split can be named", field=path.name, remedy=remedy)
    if archives.is_archive(path):
        return archives.ArchiveSource(path)
    if path.is_dir():
        return files.FolderSource(path)
    if arrays.is_idx(path):
        return arrays.IdxSource(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return files.ParquetSource(path)
    if lists.is_list(path):
        return lists.ListSource(path)
    remedy = (
        "give .npz, .parquet, an IDX file (…-idx3-ubyte, .gz or not), a folder of pictures by class, "
        "a .zip with dataset.json, or a .csv of their names"
    )
    raise DataError("is no set of images by its ending", field=path.name, remedy=remedy)
