"""Columns of type ``fake``: made-up names, addresses and numbers, from a library or a public pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import Field, SerializerFunctionWrapHandler, StrictStr, model_serializer, model_validator
from typing_extensions import override

from doublure.schema.columns.made import MadeColumn
from doublure.schema.columns.patterns import EXAMPLE, PatternText

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.made_rows import MadeRows

Subject: TypeAlias = Literal[
    "person_name", "first_name", "last_name", "email", "phone", "street", "city", "company", "iban", "pattern"
]
SUBJECTS: tuple[str, ...] = get_args(Subject)
WITHOUT_LIBRARY: tuple[Subject, ...] = ("phone", "pattern")
"""Subjects that are made of public patterns alone."""


class FakeColumn(MadeColumn):
    """Made-up names and addresses: public, seeded, the same for a unit in each of its rows and tables.

    Attributes:
        subject: What cells hold; ``as`` in a file.
        locale: Of names, addresses and numbers, as the library Faker has it.
        pattern: The form of the texts, of ``as: pattern``.
        who: A word for the person; columns with the same word are about the same one of a unit.
        per: Whether each unit, or each row of a table, has a person of its own.
    """

    verbatim: ClassVar[bool] = True
    noun: ClassVar[str] = "a made-up column"

    type: Literal["fake"] = "fake"
    subject: Subject = Field(alias="as")
    locale: StrictStr = Field(default="en_US", pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$")
    pattern: PatternText | None = None
    who: StrictStr = ""
    per: Literal["unit", "row"] = "unit"

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
        facts = FakeFacts(subject=self.subject, locale=self.locale, pattern=self.pattern, who=self.who, per=self.per)
        return pd.Series(fake_texts(facts, rows), dtype="str")

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        return {"as" if key == "subject" else key: value for key, value in found.items()}

    @model_validator(mode="after")
    def _pattern_fits(self) -> FakeColumn:
        if (self.subject == "pattern") != (self.pattern is not None):
            raise ValueError(f"pattern goes with as: pattern, and there it is needed; write one such as {EXAMPLE}")
        return self
