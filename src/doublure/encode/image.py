"""ENCODE: images under a resolved schema -> tensors in [-1, 1], and back.

Kept compact, an image is its bytes (two a pixel where the range has 16 bits) and its label's code, one ``uint8`` row;
expanded, it is a row as tables have them: the pixels, channels first, black -1 and full intensity 1, then the label as
one-hot condition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from doublure.data.images.records import LEVELS, Images, ImagesOnDisk, as_bytes
from doublure.encode.columns import ListedEncoding
from doublure.encode.encoder import Encoder
from doublure.errors import InputError, SettingError
from doublure.schema import Schema
from doublure.schema.images import LABEL, ImageSchema
from doublure.support.row_files import Chosen, StoredRows
from doublure.support.tensors import Array, as_tensor

_DEEP = np.dtype(">u2")
_BASE = 256


class ImageEncoder(Encoder):
    """The two-way mapping between images and ``(N, width)`` float32 tensors.

    Args:
        schema: Every fact known.

    Attributes:
        body_shape: ``(C, H, W)``.
        width: D + K, the length of an expanded row.
        condition_width: K, the number of classes; 0 where the schema has no label.
    """

    schema: ImageSchema
    body_shape: tuple[int, int, int]

    def __init__(self, schema: Schema) -> None:
        self.schema = schema = ImageSchema.of(schema)
        height, width, channels = schema.shape
        self.body_shape = (channels, height, width)
        self._label = None if schema.label is None else ListedEncoding(column=schema.label)
        self.condition_width = 0 if self._label is None else self._label.parts[0].size
        self.condition_sizes = {LABEL: self.condition_width} if self._label else {}
        self._pixels = math.prod(self.body_shape)
        self.width = self._pixels + self.condition_width
        self._stored = _DEEP if schema.images.deep else np.dtype(np.uint8)
        self._full = int(np.iinfo(self._stored).max)
        # Base 256: one byte holds the codes of up to 256 classes.
        self._code_bytes = max(1, math.ceil(math.log(self.condition_width, 256))) if self.condition_width > 1 else 1

    # -- encoding ------------------------------------------------------------------------------------------------

    @override
    def compact(self, images: Images) -> Array:
        given = images.images
        if given.dtype.itemsize != self._stored.itemsize:
            given = as_bytes(given) if self._full == np.iinfo(np.uint8).max else given * np.uint16(LEVELS)
        pixels = np.ascontiguousarray(given.transpose(0, 3, 1, 2), dtype=self._stored)
        parts = [pixels.reshape(len(images), self._pixels).view(np.uint8)]
        if self._label is not None:
            if images.labels is None:
                raise InputError("are not there, and the schema has one", field="labels", remedy="give each image one")
            codes = self._label.compact(images.labels)[0].astype(np.int64)
            parts += [(codes >> 8 * place)[:, None].astype(np.uint8) for place in range(self._code_bytes)]
        return np.concatenate(parts, axis=1)

    @override
    def compacted(self, images: Images | ImagesOnDisk) -> Array | StoredRows:
        return self.compact(images) if isinstance(images, Images) else _CompactOnDisk(self, images)

    @override
    def expand(self, compact: Tensor) -> Tensor:
        held = self._pixels * self._stored.itemsize
        pixels = compact[:, :held].float()
        if self._stored.itemsize > 1:
            pixels = pixels[:, 0::2] * _BASE + pixels[:, 1::2]
        pixels = pixels / (self._full / 2) - 1
        if self._label is None:
            return pixels
        digits = compact[:, held:].long()
        codes = sum(
            (digits[:, place] << 8 * place for place in range(self._code_bytes)), torch.zeros_like(digits[:, 0])
        )
        one_hot = torch.zeros(len(compact), self.condition_width, device=compact.device)
        return torch.cat([pixels, one_hot.scatter_(1, codes[:, None], 1.0)], dim=1)

    # -- decoding ------------------------------------------------------------------------------------------------

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> Images:
        """Return images and labels of the schema's own values; an image draws nothing, so ``rng`` is not used.

        Raises:
            InputError: A value is not finite.
        """
        del rng
        values = as_tensor(rows).detach().to("cpu")
        if not bool(torch.isfinite(values).all()):
            raise InputError(
                "has values that are not finite", field="generator", remedy="fit again, with smaller steps"
            )
        bodies, labels = self.split(values)
        pixels = ((bodies + 1) * (self._full / 2)).round().clamp(0, self._full).permute(0, 2, 3, 1).numpy()
        images = np.ascontiguousarray(pixels.astype(self._stored.newbyteorder("=")))
        if self._label is None or labels is None:
            return Images(images=images)
        codes = labels.argmax(dim=1).numpy().astype(np.float64) if len(labels) else np.zeros(0)
        return Images(images=images, labels=self._label.restore([codes], None))

    # -- conditions ----------------------------------------------------------------------------------------------

    @override
    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the code of the label that is asked for.

        Raises:
            SettingError: Something else than a value of the label is asked for.
        """
        strange = next((name for name in given if name not in self.schema.columns), None)
        if strange is not None:
            remedy = f"ask for {LABEL}" if self._label is not None else "leave it out: these images have no label"
            raise SettingError("is not known of images", field=f"given {strange}", remedy=remedy)
        return super().condition_codes(given)


class _CompactOnDisk(StoredRows):
    """Images on disk, as rows that are made of those that are asked for."""

    def __init__(self, encoder: ImageEncoder, images: ImagesOnDisk) -> None:
        self._encoder = encoder
        self._images = images
        nobody = self[slice(0)]
        self.shape, self.dtype = (len(images), *nobody.shape[1:]), nobody.dtype

    def __getitem__(self, rows: Chosen) -> Array:
        return self._encoder.compact(self._images.take(rows))


def of_images(encoder: object) -> ImageEncoder:
    """Return an encoder as one of images.

    Raises:
        TypeError: It is of something else.
    """
    if not isinstance(encoder, ImageEncoder):
        raise TypeError("needs an encoder of images")
    return encoder
