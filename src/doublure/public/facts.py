"""Facts about a public generator: its provenance, the form of its records and the hashes of its weights.

These facts stand in ``public.json``. A plan of ``latentgan`` carries a copy, so that a fit can refuse another
generator, and a run folder can be read without the public folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, StrictStr, StringConstraints, ValidationError, model_validator

from doublure._version import __version__
from doublure.errors import SettingError, escaped, printable
from doublure.guarantee import NO_SHARED_PEOPLE, PUBLIC_GENERATOR, SHARED_PEOPLE
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.fact_states import Frozen
from doublure.schema.images import ImageSchema
from doublure.support import yaml12 as yaml_text

VERSION: Literal[1] = 1


def _said(words: str) -> str:
    """Refuse words without a letter or a digit."""
    if not any(letter.isalnum() for letter in words):
        raise ValueError("no letters")
    return words


Words: TypeAlias = Annotated[
    StrictStr, StringConstraints(strip_whitespace=True, min_length=3, max_length=500), AfterValidator(_said)
]
Sha256: TypeAlias = Annotated[StrictStr, StringConstraints(pattern="^[0-9a-f]{64}$")]
_KEYS = "data, people, licence, shared_people"
_WORDS = "give 3 to 500 characters, letters among them"
_SAY_ALL = "say what data, whose people, which licence; see docs/latent.md"
_ALLOWED = {"shared_people": "say possible or none"} | dict.fromkeys(("data", "people", "licence", "source"), _WORDS)


class Provenance(Frozen):
    """The origin of public data, in the words of the person who vouches for it; a card repeats them.

    Attributes:
        data: The data set, such as ``EMNIST letters, NIST 2017``.
        people: The people in the data, and why they are in it.
        licence: The licence under which the data is public.
        shared_people: Whether people of the public data may be among the private records: ``possible`` unless none are
            known to be. Then the claim is about a person's private records, not about the person.
        source: Where the data can be found.
    """

    data: Words
    people: Words
    licence: Words
    shared_people: Literal["possible", "none"] = "possible"
    source: Words | None = None

    @property
    def line(self) -> str:
        """One line: the data, the people and the licence."""
        said = {name: _one_line(words) for name, words in self.model_dump(exclude_none=True).items()}
        where = f" ({said['source']})" if "source" in said else ""
        return f"{said['data']}{where}. People: {said['people']}. Licence: {said['licence']}."

    @classmethod
    def read(cls, given: Provenance | str | Path | dict[str, Any]) -> Provenance:
        """Return a provenance from a YAML file or a mapping.

        Raises:
            SettingError: A key is missing, unknown or empty.
        """
        if isinstance(given, Provenance):
            return given
        named = "provenance"
        if isinstance(given, (str, Path)):
            named, given = Path(given).name, yaml_text.load(Path(given), "provenance")
        if not isinstance(given, dict):
            remedy = f"write the keys {_KEYS}"
            raise SettingError("is not a mapping of keys", field=named, remedy=remedy)
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            key = printable(".".join(str(part) for part in first["loc"]))
            kinds = {"missing": "is missing", "extra_forbidden": "is not known", "string_type": "is no text"}
            said, remedy = kinds.get(first["type"], "cannot be read"), _SAY_ALL
            remedy = {"cannot be read": _ALLOWED.get(key, remedy), "is no text": "put it in quotes"}.get(said, remedy)
            raise SettingError(f"{key} {said}", field=named, remedy=remedy) from None


class PublicFacts(Frozen):
    """The content of ``public.json``.

    Attributes:
        version: The file format's version.
        doublure_version: The version of doublure that wrote it.
        kind: ``images`` or ``table``.
        objective: The training objective; ``given`` where the weights came from elsewhere.
        makes: The form of its records; see :func:`record_form`.
        schema_sha256: Hash of the public data's schema.
        settings: The settings of its networks.
        latent: d, latent numbers for a record.
        provenance: The origin of its data.
        generator_sha256: Hash of ``generator.safetensors``.
        encoder_sha256: Hash of ``encoder.safetensors``; None without one.
        detail_sha256: Hash of ``detail.safetensors``; None without one.
    """

    version: Literal[1] = VERSION
    doublure_version: str = __version__
    kind: Literal["images", "table"]
    objective: Literal["wgan-gp", "autoencoder", "given"]
    makes: dict[str, Any]
    schema_sha256: Sha256
    settings: dict[str, Any]
    latent: int = Field(ge=1, le=4096)
    provenance: Provenance
    generator_sha256: Sha256
    encoder_sha256: Sha256 | None = None
    detail_sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.settings.get("noise_width") != self.latent:
            raise ValueError("latent is not what the settings say")
        return self

    @property
    def source(self) -> str:
        """One line for a card: the objective, the weights' hash and the provenance."""
        return f"Public generator, {self.objective}, SHA-256 {self.generator_sha256}, from {self.provenance.line}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of a claim that was made through this generator."""
        weights = f"SHA-256 {self.generator_sha256[:12]}…"
        found = f"{PUBLIC_GENERATOR} ({weights}) was made and chosen without the private records"
        return (found, NO_SHARED_PEOPLE) if self.provenance.shared_people == "none" else (found,)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Exclusions from such a claim."""
        if self.provenance.shared_people == "none":
            return ()
        return (SHARED_PEOPLE,)

    def refuse_unfit(self, schema: Schema) -> None:
        """Refuse private data whose records this generator cannot make.

        Raises:
            SettingError: Naming what differs.
        """
        if self.kind != schema.kind:
            remedy = f"give a public generator of kind {schema.kind}"
            raise SettingError(f"makes {self.kind}, and the schema's kind is {schema.kind}", **_of(remedy))
        asked, made = _without_ids(record_form(schema)), _without_ids(self.makes)
        for part, value in asked.items():
            theirs = made.get(part)
            if theirs == value:
                continue
            remedy = "declare both schemas alike, or fit a public generator for this schema"
            if not isinstance(theirs, dict) or not isinstance(value, dict):
                raise SettingError(f"was made for other {part}: {theirs}, and the schema's are {value}", **_of(remedy))
            name = next(
                (key for key in {**value, **theirs} if theirs.get(key) != value.get(key)), next(iter(value), part)
            )
            raise SettingError(f"was made for another {part[:-1]} {printable(name)}", **_of(remedy))
        if list(asked.get("columns", {})) != list(made.get("columns", {})):
            raise SettingError("was made for columns in another order", **_of("put both schemas in one order"))


def record_form(schema: Schema) -> dict[str, Any]:
    """Return the form of the records that a generator makes, without their number or their units.

    For images it is their shape; for tables every column that is not a condition, with its facts, and the constraints.
    """
    if not schema.only_columns:
        return {"shape": list(ImageSchema.of(schema).shape)}
    plain, given = schema.to_plain(), schema.with_role("condition")
    columns = {name: dict(column) for name, column in plain["columns"].items() if name not in given}
    for column in columns.values():
        for unmade in ("shares", "roles"):
            column.pop(unmade, None)
    return {"columns": columns, "constraints": plain.get("constraints") or []}


def _without_ids(makes: dict[str, Any]) -> dict[str, Any]:
    """Return the form of records without their ids, which are numbered afresh and not learned."""
    columns = makes.get("columns")
    if not isinstance(columns, dict):
        return makes
    return makes | {"columns": {name: column for name, column in columns.items() if column.get("type") != "id"}}


def with_placeholder_answers(schema: Schema) -> ResolvedSchema:
    """Return a schema with placeholder answers to its open questions; the networks' shapes depend on none of them.

    Args:
        schema: The schema of private data that a generator fits (:meth:`PublicFacts.refuse_unfit`): only the number of
            units and the shares of classes are left open.
    """
    plain = schema.to_plain()
    for question in schema.questions:
        if question.fact == "shares":
            place = plain["columns"][question.column] if "columns" in plain else plain["label"]
            place.pop("shares")
    return Schema.from_plain(plain | {"units": 1}).resolve({})


def parse_facts(data: dict[str, Any]) -> PublicFacts:
    """Return the facts of a JSON object.

    Raises:
        ValueError: It is not a set of facts.
    """
    return PublicFacts.model_validate(data)  # pydantic's own error is a ValueError


def _one_line(words: str) -> str:
    """Return words fit for one line of a terminal or a card."""
    return escaped(" ".join(words.split())).rstrip(".")


def _of(remedy: str) -> dict[str, str]:
    return {"field": "public", "remedy": remedy}
