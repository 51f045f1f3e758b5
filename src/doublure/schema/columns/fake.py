"""Columns of type ``fake``: made-up names, addresses and numbers, from a library or a public pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, StrictStr, model_serializer, model_validator
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns.column import Column
from doublure.schema.columns.made import MadeColumn
from doublure.schema.columns.patterns import EXAMPLE, PatternText
from doublure.schema.fact_states import Frozen, KeyFault
from doublure.schema.scalars import Value, label

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.made_rows import KeyColumn, MadeRows

Subject: TypeAlias = Literal[
    "person_name", "first_name", "last_name", "email", "phone", "street", "city", "company", "iban", "pattern"
]
SUBJECTS: tuple[str, ...] = get_args(Subject)
WITHOUT_LIBRARY: tuple[Subject, ...] = ("phone", "pattern")
"""Subjects that are made of public patterns alone."""
_OF_PERSONS: tuple[Subject, ...] = ("person_name", "first_name", "last_name", "email")
_FORM = re.compile(r"[^{}]*(\{first\}[^{}]*\{last\}|\{last\}[^{}]*\{first\})[^{}]*")


def _read_sex(given: object) -> object:
    """Read the name of a column as one whose values are known."""
    return {"by": given} if isinstance(given, str) else given


class SexColumn(Frozen):
    """The drawn column that tells a person's sex, so that names follow it.

    Attributes:
        by: The column.
        female: Its values for women and girls; ISO 5218 and English words if left out.
        male: Its values for men and boys.
    """

    by: StrictStr
    female: tuple[Value, ...] = ("female", "f", "w", "woman", "2")
    male: tuple[Value, ...] = ("male", "m", "man", "1")

    def known(self, column: Column | KeyColumn) -> dict[float, bool]:
        """Return the numbers of a column's values of which the sex is known -> whether it is female."""
        found: dict[float, bool] = {}
        for values, female in ((self.female, True), (self.male, False)):
            for value in values:
                for written in {label(value), label(value).upper(), label(value).capitalize()}:
                    with suppress(ValueError):
                        found[column.number_of(written)] = female
        return found


class FakeColumn(MadeColumn):
    """Made-up names and addresses: public, seeded, the same for a unit in each of its rows and tables.

    Attributes:
        subject: What cells hold; ``as`` in a file.
        locale: Of names, addresses and numbers, as the library Faker has it.
        pattern: The form of the texts, of ``as: pattern``.
        who: A word for the person; columns with the same word are about the same one of a unit.
        per: Whether each unit, or each row of a table, has a person of its own.
        sex: The column that first names follow.
        form: How a full name is written: ``{last}, {first}``.
    """

    verbatim: ClassVar[bool] = True
    noun: ClassVar[str] = "a made-up column"

    type: Literal["fake"] = "fake"
    subject: Subject = Field(alias="as", description="what each cell holds")
    locale: StrictStr = Field(
        default="en_US", pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$", description="language and country, such as de_DE"
    )
    pattern: PatternText | None = Field(default=None, description=f"of pattern alone: the form, such as {EXAMPLE}")
    who: StrictStr = Field(default="", description="a word for the person; columns with the same one tell of the same")
    per: Literal["unit", "row"] = Field(default="unit", description="whether each person or each row has its own")
    sex: Annotated[SexColumn, BeforeValidator(_read_sex)] | None = Field(
        default=None, description="the column that tells the person's sex; first names and e-mails follow it"
    )
    form: StrictStr | None = Field(default=None, description="how a full name is written, such as {last}, {first}")

    @property
    @override
    def found_by(self) -> str | None:
        return None if self.sex is None else self.sex.by

    @override
    def check_beside(self, columns: Mapping[str, Column], name: str) -> None:
        if self.sex is None:
            return
        by = columns.get(self.sex.by)
        if by is None or not by.modelled:
            message = f"{printable(name)} follows {printable(self.sex.by)}, which is no column that is drawn"
            raise ValueError(f"{message}; name the table's column of sex in sex")
        if by.listed and by.size and not self.sex.known(by):
            message = f"{printable(name)} follows {printable(self.sex.by)}, of which no value is known as a sex"
            raise ValueError(f"{message}; write sex: {{by: {printable(self.sex.by)}, female: [VALUE], male: [VALUE]}}")

    @property
    @override
    def origin(self) -> str:
        made_by = (
            "from a public pattern" if self.subject in WITHOUT_LIBRARY else f"by the library Faker ({self.locale})"
        )
        return f"made up {made_by}; tells nothing about anybody"

    @override
    def ready(self, name: str, rows: int) -> None:
        from doublure.schema.columns.fake_cells import refuse_unready

        if self.subject not in WITHOUT_LIBRARY:
            refuse_unready(self.locale, name)

    @override
    def made(self, rows: MadeRows, name: str) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.fake_cells import FakeFacts, fake_texts

        self.ready(name, 0)
        facts = FakeFacts(
            subject=self.subject,
            locale=self.locale,
            pattern=self.pattern,
            who=self.who,
            per=self.per,
            form=self.form,
            female=self._female(rows),
        )
        return pd.Series(fake_texts(facts, rows), dtype="str")

    def _female(self, rows: MadeRows) -> pd.Series[Any] | None:
        """Return whether each row's person is female; missing where that is unknown, None where nothing tells."""
        import pandas as pd

        if self.sex is None:
            return None
        column = rows.columns[self.sex.by]
        return pd.Series(column.numbers_of(rows.cells[self.sex.by])).map(self.sex.known(column))

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        return {"as" if key == "subject" else key: value for key, value in found.items()}

    @model_validator(mode="after")
    def _pattern_fits(self) -> FakeColumn:
        if (self.subject == "pattern") != (self.pattern is not None):
            raise KeyFault("pattern", f"goes with as: pattern, and there it is needed; write one such as {EXAMPLE}")
        if self.sex is not None and self.subject not in _OF_PERSONS:
            raise KeyFault("sex", f"goes with as: {', '.join(_OF_PERSONS)}; leave it out")
        if self.form is not None and (self.subject != "person_name" or not _FORM.fullmatch(self.form)):
            raise KeyFault("form", 'goes with as: person_name, and has both names; write one such as "{last}, {first}"')
        return self
