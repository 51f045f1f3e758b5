"""The public facts of a set of images: their shape, the label that each may have, and attributes beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, model_validator
from typing_extensions import override

from doublure.errors import SchemaError, printable
from doublure.schema.columns import CategoryColumn, Column, Role, label
from doublure.schema.columns.dtypes import Dtype
from doublure.schema.fact_states import UNDECLARED, Frozen, Undeclared, blank_is_undeclared, listed, plain
from doublure.schema.resolving import agree
from doublure.schema.rules.rule import Rule
from doublure.schema.scalars import check_name, whole
from doublure.schema.schema import ResolvedSchema, Schema, Unit
from doublure.schema.series_attributes import Attribute, described
from doublure.support import yaml12 as yaml_text

LABEL, LABELS = "label", "labels"
"""The column, and the array of it beside synthetic images."""
TAKEN = frozenset({LABEL, LABELS, "images", "file", "doublure", "watermark", "guarantee"})
"""The names that files of synthetic images have, which no attribute may take."""
MOST_VALUES = 256
"""Most values of an attribute, whose code is one byte beside the pixels."""
LARGEST_SIDE = 1024

_Side: TypeAlias = Annotated[StrictInt, Field(ge=4, le=LARGEST_SIDE), BeforeValidator(whole)]
_Cut: TypeAlias = Annotated[StrictInt, Field(ge=4, le=50_000), BeforeValidator(whole)]
_Channels: TypeAlias = Annotated[Literal[1, 3], BeforeValidator(whole)]
Shape: TypeAlias = tuple[_Side, _Side, _Channels]
_HELD = {"uint8": (0, 255), "uint16": (0, 65_535), "int16": (-32_768, 32_767)}
"""The least and the most number of each type of whole numbers."""


class Pictures(Frozen):
    """The public facts of every image of a set.

    ``on_mismatch`` is the public rule for an image of another size, or of other colours (grey for colour, with
    transparency, a palette or 16 bits): the data is refused, or the image is converted and resized. It looks at that
    one image and at nothing else.
    """

    shape: Annotated[Shape | Undeclared, BeforeValidator(blank_is_undeclared)] = Field(
        default=UNDECLARED, description="height, width, and 1 (grey) or 3 (colour) channels"
    )
    range: tuple[StrictFloat, StrictFloat] | None = Field(
        default=None,
        description="the numbers that stand for black and for full intensity, in arrays and files; left out, 0 and "
        "255, which arrays of real numbers or 16 bits are not taken for unless it is said",
    )
    dtype: Literal["uint8", "uint16", "int16", "float32"] | None = Field(
        default=None,
        description="the type of the synthetic images' numbers; left out, the smallest unsigned one that holds a range "
        "of whole numbers, and float32 for any other range and for [0, 1]",
    )
    pictures: Literal["aligned", "scenes", "drawings", "photographs"] | None = Field(
        default=None,
        description="whether everything stands in the same place in all images: aligned (faces, scans), or scenes "
        "(things in changing places). drawings: strokes on an even ground, which may stand askew or shifted. "
        "photographs: aligned if grey, scenes if coloured, and so if it is left out",
    )
    on_mismatch: Literal["refuse", "resize"] = "refuse"
    crop: tuple[_Cut, _Cut] | None = Field(
        default=None, description="height and width that are cut out of the middle of each image before its size counts"
    )

    @model_validator(mode="after")
    def _range_fits(self) -> Pictures:
        if not self.ends[0] < self.ends[1]:
            raise ValueError("range is not in order; write [lower, upper] with lower < upper, such as [0, 255]")
        least, most = _HELD.get(self.stored, self.ends)
        if not least <= self.ends[0] < self.ends[1] <= most:
            raise ValueError(f"dtype {self.stored} holds numbers from {least} to {most}, and range goes beyond them")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The numbers that stand for black and for full intensity."""
        return (0, 255) if self.range is None else self.range

    @property
    def aligned(self) -> bool:
        """Whether everything stands in the same place in all images, as declared or as colours suggest."""
        if self.pictures in ("aligned", "scenes"):
            return self.pictures == "aligned"
        return isinstance(self.shape, str) or self.shape[2] == 1

    @property
    def stored(self) -> str:
        """The type of the synthetic images' numbers."""
        if self.dtype is not None:
            return self.dtype
        lower, upper = self.ends
        if (lower, upper) == (0, 1) or lower < 0 or not (float(lower).is_integer() and float(upper).is_integer()):
            return "float32"
        return next((name for name in ("uint8", "uint16") if upper <= _HELD[name][1]), "float32")

    @property
    def deep(self) -> bool:
        """Whether 256 levels are too few for these numbers, so that images are held in 65,536."""
        return self.stored != "uint8"


class LabelColumn(CategoryColumn):
    """The class of an image: one of a list of values; never missing, because it is part of the record.

    Of CelebA's 40 attributes ``attributes`` names those that are the label. One gives 0 and 1, or the other values
    that are listed; several give texts such as ``1 0``, in the order named, so that a sample can be asked for with
    each combination.
    """

    facts: ClassVar[tuple[str, ...]] = ("values",)
    dtypes: ClassVar[tuple[Dtype, ...]] = ()

    missing: Literal[False] = False
    roles: tuple[Role, ...] = ("target", "condition")
    attributes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _values_of_attributes(self) -> Self:
        if len(self.attributes) > 1 and not self.marked:
            raise ValueError(
                "of several attributes each value is 1 or 0 for each, such as '1 0'; list those, or name one attribute"
            )
        return self

    @property
    def marked(self) -> bool:
        """Whether attributes are read as marks: each value listed, but for other, has 1 or 0 for each of them."""
        own = [label(value).split() for value in self.domain if label(value) != self.fallback]
        return all(len(marks) == len(self.attributes) and {*marks} <= {"0", "1"} for marks in own)


class ImageSchema(Schema):
    """The public facts of a set of images."""

    record: ClassVar[str] = "image"

    kind: Literal["images"]
    unit: Unit = Unit(name="image")
    images: Pictures = Pictures()
    label: LabelColumn | None = None
    attributes: dict[str, Attribute] = Field(
        default_factory=dict,
        description="what stands beside each image, such as age and scanner: drawn together with the label",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.unit.id == LABEL:
            raise ValueError("unit.id names the label; name the array or column that identifies units")
        for name, attribute in self.attributes.items():
            check_name(name)
            if name in TAKEN or name == self.unit.id:
                raise ValueError(f"{printable(name)} is a name that images use; give the attribute another")
            if attribute.from_moments or attribute.from_length:
                raise ValueError(f"{printable(name)} follows from a time or a length, which no image has; remove from_")
            if set(attribute.roles) != {"condition"} or attribute.fact("shares") is not None:
                raise ValueError(f"{printable(name)}: roles and shares are for the label; remove them")
            if attribute.listed and len(attribute.domain) > MOST_VALUES:
                raise ValueError(f"{printable(name)} has more than {MOST_VALUES} values; join rare ones as other")
        if len(self.attributes) == 1 and self.label is None:
            raise ValueError("attributes are counted in pairs; declare a label, or a second attribute")
        if self.attributes and self.label is not None and len(self.label.domain) > MOST_VALUES:
            raise ValueError(f"a label of more than {MOST_VALUES} values has no attributes beside it; remove them")
        return self

    @property
    @override
    def unit_in_words(self) -> str:
        return f"{self.unit.name} (one image)"

    @property
    def columns(self) -> Mapping[str, Column]:
        """The label, where there is one, then the attributes."""
        return {**({} if self.label is None else {LABEL: self.label}), **self.attributes}

    @property
    def label_of_attributes(self) -> LabelColumn | None:
        """The label, if it is made of the data's attributes."""
        return self.label if self.label is not None and self.label.attributes else None

    @property
    def named_beside(self) -> list[str]:
        """The columns of the data, beside pixels and label, that are read: the unit's id, then the attributes."""
        return [*([] if self.unit.id is None else [self.unit.id]), *self.attributes]

    @property
    def constraints(self) -> tuple[Rule, ...]:
        """None: they go between columns."""
        return ()

    @property
    def shape(self) -> Shape:
        """Height, width, channels."""
        if isinstance(self.images.shape, str):
            raise SchemaError("is not known yet", field="images.shape", remedy="declare [height, width, channels]")
        return self.images.shape

    @property
    def pixel_bytes(self) -> int:
        """The bytes of one image's pixels, as they are held."""
        return math.prod(self.shape) * (2 if self.images.deep else 1)

    @property
    @override
    def undeclared(self) -> tuple[str, ...]:
        return (*super().undeclared, *(("images.shape",) if self.images.shape == UNDECLARED else ()))

    @property
    @override
    def summary(self) -> str:
        return self.kind

    @override
    def path_of(self, name: str) -> str:
        return f"attributes.{name}" if name in self.attributes else name

    @override
    def _fixed(self, learned: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers, made to agree with the declared facts.

        Beside attributes a value's code is one byte: of more values the most frequent are kept.
        """
        answers = agree(self.columns, (), learned, self.path_of)
        for path in (f"{self.path_of(name)}.values" for name in (self.columns if self.attributes else ())):
            if path in answers:
                answers[path] = answers[path][: MOST_VALUES - 1]  # and the other ones
        return answers

    @override
    def _place(self, data: dict[str, Any], column: str) -> dict[str, Any]:
        place: dict[str, Any] = data["attributes"][column] if column in self.attributes else data[column]
        return place

    @override
    def to_plain(self) -> dict[str, Any]:
        data = super().to_plain()
        if self.images.range is not None:
            data["images"]["range"] = [whole(end) for end in self.images.range]
        if self.label is not None:
            written = self.label.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
            data[LABEL] = {"values": listed(plain(self.label.values)), "roles": list(self.label.roles)} | written
        data.pop("attributes", None)
        if self.attributes:
            data["attributes"] = {name: described(column) for name, column in self.attributes.items()}
        return data

    @override
    def to_yaml(self) -> str:
        text = ""
        for key, value in self.to_plain().items():
            if key == "attributes":
                lines = (f"  {yaml_text.inline(name)}: {yaml_text.inline(own)}\n" for name, own in value.items())
                text += f"{key}:\n" + "".join(lines)
            else:
                text += f"{key}: {yaml_text.inline(value)}\n"
        return text


class ResolvedImageSchema(ImageSchema, ResolvedSchema):
    """The facts of a set of images, all of them known."""


__all__ = ["LABEL", "LABELS", "LARGEST_SIDE", "ImageSchema", "LabelColumn", "Pictures", "ResolvedImageSchema", "Shape"]
