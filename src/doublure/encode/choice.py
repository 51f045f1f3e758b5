"""Choose the encoder of a schema's records by the options of a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doublure.schema.kinds import ByKind

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.encode.numeric import Numerics
    from doublure.schema import ResolvedSchema


@dataclass(frozen=True, kw_only=True)
class EncodingChoice:
    """Encoding options, where a kind of data leaves a choice.

    Attributes:
        numerics: Numbers as public bins, as scaled values or, in tables, in steps of their unit. None: tables in bins,
            series scaled.
        bins: The most bins that a number is cut into. None: 32 in tables, 128 in series.
        curve: The power that shares of the bounds are taken to, for channels of series that cannot be negative.
        places: Series as places among public cells, not as codes of bins.
    """

    numerics: Numerics | None = None
    bins: int | None = None
    curve: float = 1.0
    places: bool = False


def encoder_for(schema: ResolvedSchema, encoding: EncodingChoice) -> Encoder:
    """Return the encoder of the schema's kind.

    Args:
        schema: Every fact known.
        encoding: What a method chooses; see :attr:`doublure.training.settings.MethodSettings.encoding`.
    """
    return ENCODERS[schema.kind](schema, encoding)


def _of_rows(schema: ResolvedSchema, encoding: EncodingChoice) -> Encoder:
    if encoding.numerics == "steps":
        from doublure.encode.table_values import TableValues

        return TableValues(schema)
    from doublure.encode.table import TableEncoder

    return TableEncoder(schema, numerics=encoding.numerics or "bins", bins=encoding.bins or 32)


def _of_images(schema: ResolvedSchema, encoding: EncodingChoice) -> Encoder:
    from doublure.encode.image import ImageEncoder

    return ImageEncoder(schema)


def _of_series(schema: ResolvedSchema, encoding: EncodingChoice) -> Encoder:
    if encoding.places:
        from doublure.encode.series_places import SeriesPlaces

        return SeriesPlaces(schema, bins=encoding.bins or 256, curve=encoding.curve)
    if encoding.numerics == "bins":
        from doublure.encode.series_codes import SeriesCodes

        return SeriesCodes(schema, bins=encoding.bins or 128, curve=encoding.curve)
    from doublure.encode.series import SeriesEncoder

    return SeriesEncoder(schema, curve=encoding.curve)


def _of_related(schema: ResolvedSchema, encoding: EncodingChoice) -> Encoder:
    from doublure.encode.relational import RelationalEncoder

    return RelationalEncoder(schema)


def _of_visits(schema: ResolvedSchema, encoding: EncodingChoice) -> Encoder:
    from doublure.encode.visits import VisitsEncoder

    return VisitsEncoder(schema)


ENCODERS: ByKind[Callable[[ResolvedSchema, EncodingChoice], Encoder]] = ByKind(
    "encoder", table=_of_rows, images=_of_images, series=_of_series, relational=_of_related, visits=_of_visits
)
