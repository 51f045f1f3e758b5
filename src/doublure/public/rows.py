"""Public rows beside private ones: last year's release, another region, or a public sample.

They are one more observation of every count that ``statistics`` buys, of unknown bias: see
:mod:`doublure.methods.statistics.tables.random_effects`. A plan names the file by its hash and its provenance, and a
fit reads no other. The rows are read as the private ones would be with ``misfit: coerce``, and none is handed out. This
is the idea of Chen et al. 2021 (DPMI), public data as a prior of private data, for tables.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import pandas as pd
from pydantic import BeforeValidator, StrictStr
from typing_extensions import override

from doublure.data.opening import open_data
from doublure.data.tables.rules import checked
from doublure.data.tables.source import TableSource
from doublure.errors import DataError, InputError, RunFolderError, SettingError, escaped
from doublure.guarantee import NO_SHARED_PEOPLE, PUBLIC_ROWS, UNPROTECTED_ROWS, figure
from doublure.public.facts import Provenance, Sha256
from doublure.public.part import Place
from doublure.schema import Schema
from doublure.schema.fact_states import Frozen
from doublure.support.tensors import sha256_of
from doublure.training.settings import MethodSettings, PublicPlace

_CARD = "card.json"


class PublicRows(Frozen):
    """The public rows of a plan.

    Attributes:
        name: The file's name.
        sha256: Its hash.
        provenance: The origin of its rows.
        epsilon: Of a bundle of ours, the ε that its card claims; None of other rows, and without a claim.
        delta: Likewise δ.
    """

    name: StrictStr
    sha256: Sha256
    provenance: Provenance
    epsilon: float | None = None
    delta: float | None = None

    @classmethod
    def of(cls, given: str, provenance: Provenance, schema: Schema) -> Self:
        """Return the facts of a file, or of the rows of a bundle.

        Args:
            given: A file, or a bundle's folder.
            provenance: The origin of its rows.
            schema: The private rows' schema, whose columns the public rows must have.

        Raises:
            SettingError: The file is missing, is no table, or lacks a column.
        """
        path = _rows_in(Path(given))
        try:
            _source(path, schema)
            digest = sha256_of(path)
        except InputError as error:
            raise _unfit(f"{error.field} {error.message}", error.remedy) from None
        claim = _claim_beside(path, digest)
        if claim.get("kind") in ("empirical", "none"):
            message = f"{escaped(path.name)} is a release without an ε, which would stand beside this claim"
            raise _unfit(message, "give public rows themselves, or a release with differential privacy")
        return cls(
            name=path.name, sha256=digest, provenance=provenance, epsilon=claim.get("epsilon"), delta=claim.get("delta")
        )

    @property
    def line(self) -> str:
        """One line for a plan and a card: the file, its hash, its provenance, and the claim of a bundle."""
        found = f"Public rows of {escaped(self.name)}, SHA-256 {self.sha256}, from {self.provenance.line}"
        if self.epsilon is None:
            return found
        claim = f"ε={figure(self.epsilon)}" + ("" if self.delta is None else f", δ={figure(self.delta)}")
        return f"{found} They are a release of ({claim}), which adds to this claim for people who are in both."


class PublicRowsPart(MethodSettings):
    """The public rows within a method's settings.

    Attributes:
        public: A file of public rows, or a bundle's folder.
        provenance: Their origin, as a YAML file or a mapping; the plan keeps it with the file's hash.
        public_rows: Their facts; the plan fills them in, and a fit refuses another file.
    """

    unsaid: ClassVar[dict[str, Any]] = {"public": "", "provenance": None, "public_rows": None}

    public: Place = ""
    provenance: Annotated[Provenance | None, BeforeValidator(lambda given: _provenance(given))] = None
    public_rows: PublicRows | None = None

    def with_public_rows(self, schema: Schema) -> Self:
        """Return the settings with the facts of the public rows, read from their file if the plan has none.

        Raises:
            SettingError: The file does not fit, or one of file and provenance is missing.
        """
        if self.public_rows is not None:
            return self
        if not self.public and self.provenance is not None:
            raise SettingError("is of no public rows", field="provenance", remedy="name their file: public")
        if not self.public:
            return self
        if self.provenance is None:
            remedy = "say what data, whose people, which licence; see docs/methods.md"
            raise SettingError("is needed beside public rows", field="provenance", remedy=remedy)
        found = PublicRows.of(self.public, self.provenance, schema)
        return self.model_copy(update={"public_rows": found, "provenance": None})

    def refuse_other_rows(self) -> None:
        """Refuse a file that is not the plan's.

        Raises:
            SettingError: It is missing, or has another hash.
        """
        if self.public_rows is None:
            return
        path = _rows_in(Path(self.public))
        try:
            same = sha256_of(path) == self.public_rows.sha256
        except RunFolderError:
            same = False
        if not same:
            raise _unfit(f"{escaped(path.name)} is not the file of the plan", "give that file, or plan again")

    def read_public_rows(self, schema: Schema) -> pd.DataFrame | None:
        """Return the public rows in canonical form; None where there are none.

        Args:
            schema: The private rows' schema. Cells that do not fit are coerced.

        Raises:
            SettingError: The file is not the plan's, or cannot be read.
        """
        if self.public_rows is None:
            return None
        self.refuse_other_rows()
        coerced = schema.model_copy(update={"misfit": "coerce"})
        wanted = {name: column for name, column in schema.columns.items() if column.modelled}
        try:
            found, _ = _source(_rows_in(Path(self.public)), schema).read(wanted, {}, "coerce")
            found = checked(found, coerced)
        except DataError as error:
            raise _unfit(f"{error.field} {error.message}", error.remedy) from None
        if found.empty:
            raise _unfit(f"{escaped(self.public_rows.name)} has no rows", "give a file with rows, or plan without it")
        return found

    @property
    @override
    def public_place(self) -> PublicPlace | None:
        return PublicPlace("public", self.public, self.public_rows) if self.public else None

    @property
    @override
    def public_sources(self) -> tuple[str, ...]:
        return () if self.public_rows is None else (self.public_rows.line,)

    @property
    @override
    def assumptions(self) -> tuple[str, ...]:
        if self.public_rows is None:
            return ()
        chosen = f"{PUBLIC_ROWS} (SHA-256 {self.public_rows.sha256[:12]}…) were chosen without the private records"
        return (chosen, NO_SHARED_PEOPLE) if self.public_rows.provenance.shared_people == "none" else (chosen,)

    @property
    @override
    def excluded(self) -> tuple[str, ...]:
        return () if self.public_rows is None else (UNPROTECTED_ROWS,)

    @override
    def published(self) -> Self:
        return self.model_copy(update={"public": ""}) if self.public_rows else self

    @override
    def shown(self) -> dict[str, Any]:
        return {name: value for name, value in super().shown().items() if name not in ("provenance", "public_rows")}


def _provenance(given: object) -> object:
    return given if given is None or isinstance(given, Provenance) else Provenance.read(given)  # type: ignore[arg-type]


def _rows_in(path: Path) -> Path:
    """Return the file of rows of a bundle's folder; another path as it is."""
    if not (path / _CARD).is_file():
        return path
    return next((found for found in sorted(path.glob("data.*")) if found.is_file()), path)


def _source(path: Path, schema: Schema) -> TableSource:
    if not path.is_file():
        raise SettingError("is no file", field=escaped(path.name), remedy="name a file of rows, or a bundle's folder")
    source = open_data(path, schema.kind, schema.written)
    if not isinstance(source, TableSource):
        raise SettingError("is no table", field=escaped(path.name), remedy="name a CSV or Parquet file")
    source.check_names(name for name, column in schema.columns.items() if column.modelled)
    return source


def _claim_beside(path: Path, digest: str) -> dict[str, Any]:
    """Return kind, ε and δ of a bundle's card, if the card lists this file with its hash; nothing else."""
    try:
        card = json.loads((path.parent / _CARD).read_text("utf-8"))
        listed = {entry["path"]: entry["sha256"] for entry in card["files"]}
        claim = card["guarantee"] if listed.get(path.name) == digest else {}
        figures = {name: float(claim[name]) for name in ("epsilon", "delta") if claim.get(name) is not None}
        return figures | {name: str(claim[name]) for name in ("kind",) if name in claim}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _unfit(message: str, remedy: str | None) -> SettingError:
    return SettingError(message, field="public", remedy=remedy)
