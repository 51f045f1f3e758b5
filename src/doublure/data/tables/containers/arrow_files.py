"""Tables in files of Arrow: Feather (of version 2), and streams that were written to a file.

Names and types are the file's form. Its batches are read one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.arrow_text import readable
from doublure.data.tables.containers.record_files import RecordFile
from doublure.data.tables.dtypes import dtypes_of_arrow
from doublure.errors import DataError
from doublure.schema.scalars import Misfit
from doublure.support.objects import Place, for_arrow

if TYPE_CHECKING:
    from doublure.schema.written import Written

_FILE = b"ARROW1"


class ArrowFileSource(RecordFile):
    """A file whose names and types have been looked at.

    Args:
        path: The file.
        written: How columns are renamed.

    Raises:
        DataError: The file is damaged, or of the first version of Feather.
    """

    def __init__(self, path: Place, written: Written | None = None) -> None:
        self._path: Place = path
        with self._opened() as reader:
            stored = reader.schema
        super().__init__(path, stored.names, written)
        self.dtypes = dtypes_of_arrow(stored)

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        places = dict(zip(columns, self._places(columns), strict=True))
        with self._opened() as reader:
            for batch in _batches(reader):
                batch.validate()
                yield {name: readable(batch.column(place)) for name, place in places.items()}

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa

        try:
            with for_arrow(self._path) as given, _mapped(given) as file:
                whole = file.read(len(_FILE)) == _FILE
                file.seek(0)
                yield pa.ipc.open_file(file) if whole else pa.ipc.open_stream(file)
        except (pa.ArrowException, OSError, ValueError):
            remedy = "check that the file is whole, or write it as Parquet"
            raise DataError("cannot be read as Arrow", field=self._path.name, remedy=remedy) from None


def _mapped(given: Any) -> Any:
    import pyarrow as pa

    return pa.memory_map(str(given)) if isinstance(given, Path) else pa.PythonFile(given, "r")


def _batches(reader: Any) -> Iterator[Any]:
    """Yield the batches of a file or of a stream."""
    if hasattr(reader, "num_record_batches"):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader
