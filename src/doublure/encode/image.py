"""ENCODE: images under a resolved schema -> tensors in [-1, 1], and back.

Kept compact, an image is its bytes (two a pixel where the range has 16 bits), its label's code and its attributes', one
``uint8`` row. Expanded, it is a row as tables have them: the pixels, channels first, black -1 and full intensity 1,
then label and attributes as one-hot conditions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from doublure.data.images.records import LEVELS, Images, ImagesOnDisk, as_bytes
from doublure.encode.attributes import Attributes
from doublure.encode.columns import ListedEncoding
from doublure.encode.encoder import Encoder
from doublure.encode.numeric import Floats
from doublure.errors import InputError, SettingError, printable
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
        labels: K, the number of classes; 0 where the schema has no label.
        condition_width: K, and the values of all attributes.
    """

    schema: ImageSchema
    body_shape: tuple[int, int, int]

    def __init__(self, schema: Schema) -> None:
        self.schema = schema = ImageSchema.of(schema)
        height, width, channels = schema.shape
        self.body_shape = (channels, height, width)
        self._label = None if schema.label is None else ListedEncoding(column=schema.label)
        self._attributes = Attributes(schema.attributes)
        self.labels = 0 if self._label is None else self._label.parts[0].size
        self.condition_width = self.labels + self._attributes.width
        self.condition_sizes = ({LABEL: self.labels} if self._label else {}) | self._attributes.sizes
        self._pixels = math.prod(self.body_shape)
        self.width = self._pixels + self.condition_width
        self._stored = _DEEP if schema.images.deep else np.dtype(np.uint8)
        self._full = int(np.iinfo(self._stored).max)
        # Base 256: one byte holds the codes of up to 256 classes.
        self._code_bytes = max(1, math.ceil(math.log(self.labels, 256))) if self.labels > 1 else 1
        self.code_parts = self.first_code + len(self.condition_sizes)

    @property
    def first_code(self) -> int:
        """The part of a compact record that is the first condition's code; the others' follow, of one part each."""
        return self._pixels * self._stored.itemsize

    @property
    def condition_numbers(self) -> tuple[Floats | None, ...]:
        """The middles of each condition's groups of numbers; None where its values are no numbers."""
        return (*([] if self._label is None else [None]), *self._attributes.numbers)

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
        if self._attributes.width:
            if images.attributes is None:
                remedy = "give each image a row"
                raise InputError("are not there, and the schema has some", field="attributes", remedy=remedy)
            parts.append(self._attributes.codes(images.attributes).astype(np.uint8))
        return np.concatenate(parts, axis=1)

    @override
    def compacted(self, images: Images | ImagesOnDisk) -> Array | StoredRows:
        return self.compact(images) if isinstance(images, Images) else _CompactOnDisk(self, images)

    @override
    def expand(self, compact: Tensor) -> Tensor:
        held = self.first_code
        pixels = compact[:, :held].float()
        if self._stored.itemsize > 1:
            pixels = pixels[:, 0::2] * _BASE + pixels[:, 1::2]
        pixels = pixels / (self._full / 2) - 1
        if self._label is None:
            return torch.cat([pixels, self._attributes.one_hot(compact[:, held:])], dim=1)
        digits = compact[:, held : held + self._code_bytes].long()
        codes = sum(
            (digits[:, place] << 8 * place for place in range(self._code_bytes)), torch.zeros_like(digits[:, 0])
        )
        one_hot = torch.zeros(len(compact), self.labels, device=compact.device)
        others = self._attributes.one_hot(compact[:, held + self._code_bytes :])
        return torch.cat([pixels, one_hot.scatter_(1, codes[:, None], 1.0), others], dim=1)

    # -- decoding ------------------------------------------------------------------------------------------------

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> Images:
        """Return images, labels and attributes of the schema's own values.

        Args:
            rows: ``(N, width)``.
            rng: Draws an attribute's number within its group; without it the middle is taken.

        Raises:
            InputError: A value is not finite.
        """
        values = as_tensor(rows).detach().to("cpu")
        if not bool(torch.isfinite(values).all()):
            raise InputError(
                "has values that are not finite", field="generator", remedy="fit again, with smaller steps"
            )
        bodies, conditions = self.split(values)
        pixels = ((bodies + 1) * (self._full / 2)).round().clamp(0, self._full).permute(0, 2, 3, 1).numpy()
        images = np.ascontiguousarray(pixels.astype(self._stored.newbyteorder("=")))
        if conditions is None:
            return Images(images=images)
        attributes = None
        if self._attributes.width:
            attributes = self._attributes.restored(conditions[:, self.labels :], len(values), rng)
        if self._label is None:
            return Images(images=images, attributes=attributes)
        codes = conditions[:, : self.labels].argmax(dim=1).numpy().astype(np.float64) if len(values) else np.zeros(0)
        return Images(images=images, labels=self._label.restore([codes], None), attributes=attributes)

    # -- conditions ----------------------------------------------------------------------------------------------

    @override
    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the code of the label that is asked for.

        Raises:
            SettingError: Something else than a value of the label is asked for.
        """
        strange = next((name for name in given if name not in self.schema.columns), None)
        if strange is not None:
            names = " or ".join(map(printable, self.condition_sizes))
            remedy = f"ask for {names}" if names else "leave it out: these images have no label"
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
