"""``generator.safetensors``: a generator's weights, with the schema and the plan that they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from doublure._version import __version__
from doublure.access import same_accesses
from doublure.encode.choice import encoder_for
from doublure.errors import InputError, RunFolderError, printable
from doublure.guarantee import Guarantee, claim_as_worded_now, may_state_measured_epsilon
from doublure.methods import registry as methods
from doublure.networks.array_generator import AnyGenerator
from doublure.networks.sampling import load_state
from doublure.planning import Plan
from doublure.planning.plans import WORDS
from doublure.schema import ResolvedSchema
from doublure.support.extras import torch_for
from doublure.support.tensors import Array, damaged_file, read_arrays, to_safetensors

FILE = "generator.safetensors"
"""Its name in a run folder and in a published generator."""
_TABLES, _TOUCHES = "tables_sha256", "touches"
EDITED = "the folder was edited: use it as fit left it, or ask who changed it"
"""Remedy for a folder whose files do not belong together, for its maker as for its receiver."""


def generator_file(
    generator: AnyGenerator, schema: ResolvedSchema, plan: Plan, guarantee: Guarantee, tables: str | None = None
) -> bytes:
    """Return the file's content: weights, schema, plan, and the claim where the plan has two.

    Args:
        generator: The weights.
        schema: The resolved schema.
        plan: The plan.
        guarantee: The claim.
        tables: SHA-256 of the noisy tables beside it, which the ledger's record of the generator then covers too.
    """
    # The schema within the plan is the public one; the bought facts are in the schema beside it.
    documents = _documents(schema, plan, guarantee)
    written = {name: json.dumps(document, ensure_ascii=False) for name, document in documents.items()}
    metadata = {"doublure": __version__, "watermark": guarantee.watermark, **written}
    metadata |= {} if tables is None else {_TABLES: tables}
    return to_safetensors(generator.state_dict(), metadata)


def read(
    path: Path, schema: ResolvedSchema, plan: Plan, guarantee: Guarantee, tables: object = None
) -> dict[str, Array]:
    """Return the weights.

    Raises:
        RunFolderError: The file is missing or damaged, or does not match the schema, plan, claim or noisy tables
            (SHA-256) beside it.
    """
    metadata, state = read_arrays(path)
    if metadata.get(_TABLES, tables) != tables:  # earlier files name none
        field = f"{path.parent.name}/{path.name}"
        raise RunFolderError("was made with other noisy tables", field=field, remedy=EDITED)
    for name, document in _documents(schema, plan, guarantee).items():
        if not _same(_facts(metadata.get(name)), _facts(json.dumps(document, ensure_ascii=False))):
            field = f"{path.parent.name}/{path.name}"
            raise RunFolderError(f"was made with another {name}", field=field, remedy=EDITED)
    return state


def load_generator(
    state: dict[str, Array], schema: ResolvedSchema, plan: Plan, path: Path
) -> tuple[AnyGenerator, ResolvedSchema]:
    """Put weights into a generator of the shape that the plan gives, and return the schema that it is of.

    Before declared texts of missing were kinds of their own, a generator had one state for all of them. Such weights
    are read with a schema in which they are one kind.

    Args:
        state: As :func:`read` returns them.
        schema: The resolved schema.
        plan: Gives the method and its settings.
        path: The weights' file, for errors.

    Raises:
        RunFolderError: They are of another shape.
        MissingExtra: It is a network, and torch is not installed.
    """
    method = methods.method(plan.method)
    for each in _readings(schema):
        with torch_for(f"method {method.name}"):
            generator = method.build(encoder_for(each, plan.settings.encoding), plan.settings, seed=0)
        try:
            load_state(generator, state)
        except RuntimeError:
            continue
        return generator.eval(), each
    raise damaged_file(path)


def _readings(schema: ResolvedSchema) -> Iterator[ResolvedSchema]:
    yield schema
    if schema.only_columns and any(column.missing_states > 1 for column in schema.columns.values()):
        yield schema.model_copy(update={"columns": {name: each.of_one_kind() for name, each in schema.columns.items()}})


def read_plan(written: dict[str, Any], made: object, field: Path) -> Plan:
    """Read a plan that was paid for.

    Args:
        written: The JSON object.
        made: The version of doublure that wrote it.
        field: The folder, for errors.

    Raises:
        InputError: It is no plan, or was edited.
        RunFolderError: It is of another version of doublure, with other settings.
    """
    try:
        return Plan.from_json(written, reprice=False)
    except InputError:
        claim = written.get("guarantee")
        if isinstance(claim, dict) and may_state_measured_epsilon(claim):
            message = "states a Bayesian claim that this doublure does not make"
            remedy = "plan again, and fit anew; do not release it with an older one, which states the measured ε_μ"
            raise RunFolderError(message, field=field, remedy=remedy) from None
        if made == __version__ or not isinstance(made, str):
            raise
        known = printable(made)
        message = f"was made by doublure {known}, whose plans doublure {__version__} does not read"
        raise RunFolderError(message, field=field, remedy=f"use doublure {known} with it") from None


def _documents(schema: ResolvedSchema, plan: Plan, guarantee: Guarantee) -> dict[str, dict[str, Any]]:
    """Return the schema and the plan; the claim, where the plan has two."""
    documents = {"schema": schema.to_plain(), "plan": plan.to_json()}
    if plan.worst_case is not None:
        documents["guarantee"] = guarantee.to_json()
    return documents


def _same(written: Any, own: Any) -> bool:
    """Whether a document that a file holds is this one; versions may word the purposes of accesses differently."""
    if isinstance(written, dict) and same_accesses(written.get(_TOUCHES), own.get(_TOUCHES, ())):
        written = {**written, _TOUCHES: own[_TOUCHES]}
    return bool(written == own)


def _facts(written: str | None) -> Any:
    """Return a document without a plan's words, which may differ by version; None for no document."""
    try:
        document = json.loads(written or "")
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict) and isinstance(claim := document.get("guarantee"), dict):
        document = {**document, "guarantee": claim_as_worded_now(claim)}
    elif isinstance(document, dict) and "sentence" in document:
        document = claim_as_worded_now(document)
    return {key: said for key, said in document.items() if key not in WORDS} if isinstance(document, dict) else None
