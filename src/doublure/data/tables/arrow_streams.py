"""Tables from Arrow streams: pyarrow tables and readers, Polars, DuckDB relations, ADBC, Spark 4.

An object with ``__arrow_c_stream__`` need not know this package, nor this package its library (the Arrow PyCapsule
protocol). The stream is asked for its header first, and for records only once they are paid for. Many streams can be
read only once, so each is read once here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.arrow_text import readable
from doublure.data.tables.dtypes import dtypes_of_arrow
from doublure.data.tables.header import header_names
from doublure.data.tables.source import TableSource
from doublure.errors import DataError, DoublureError
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    from doublure.schema.written import Written

PROTOCOL = "__arrow_c_stream__"
_READ = "has been read already, and can be read once only"


class StreamSource(TableSource):
    """A stream whose header has been looked at."""

    def __init__(self, given: Any, written: Written | None = None) -> None:
        import pyarrow as pa

        name = type(given).__name__
        try:
            self._reader: pa.RecordBatchReader | None = pa.RecordBatchReader.from_stream(given)
            stored, dtypes = self._reader.schema.names, dtypes_of_arrow(self._reader.schema)
        except DoublureError:  # of a database, which has said what is wrong
            raise
        except Exception:  # a foreign library's own; its message may show a cell
            raise DataError("gives no stream of Arrow", field=name, remedy="give it anew, unread") from None
        self._names = header_names(stored, name, written)
        super().__init__(name, self._names)
        self.dtypes = dtypes

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        """Yield the raw columns batch by batch, once.

        Raises:
            DataError: The stream breaks, or has been read.
        """
        reader, self._reader = self._reader, None
        if reader is None:
            raise DataError(_READ, field=self.name, remedy="give it anew")
        places = {name: self._names.index(name) for name in columns}
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except DoublureError:
                raise
            except Exception:  # likewise
                raise DataError("broke off while it was read", field=self.name, remedy="give it anew") from None
            yield {name: readable(batch.column(place)) for name, place in places.items()}
