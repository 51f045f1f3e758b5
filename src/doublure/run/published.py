"""A published generator on disk: all that sampling needs, and nothing private.

::

    gen/
      generator.safetensors   weights, schema and plan; nothing else
      schema.yaml             resolved, with the bought facts
      card.json               the claim, and the hash of every file
      card.html               the same as a page

It can sample any number of records under any conditions. The card vouches for the files, and the keeper's ledger for
the card (:func:`doublure.releasing.verifying.verify`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from doublure.advisories import REMEDY, known_fault
from doublure.errors import InputError, RunFolderError, SettingError
from doublure.guarantee import Guarantee
from doublure.planning import Plan
from doublure.run import weights
from doublure.run.synthesizer import Synthesizer
from doublure.schema import ResolvedSchema
from doublure.support import files
from doublure.support.tensors import read_arrays, sha256_of

SCHEMA, CARD = "schema.yaml", "card.json"
FILES = (weights.FILE, SCHEMA)
"""Files beside the card and its page."""

_VERSION = 1
_REMEDY = "get it again from its publisher"


def write(syn: Synthesizer, folder: Path) -> None:
    """Write the weights and the schema; the caller writes the card.

    The plan is included, without facts of this machine. It was made before any record was read.

    Args:
        syn: A fitted synthesizer.
        folder: An empty folder.
    """
    plan = replace(syn.plan, settings=syn.plan.settings.published())
    content = weights.generator_file(syn.generator, syn.schema, plan, syn.guarantee)
    files.write_atomic(folder / weights.FILE, lambda file: file.write(content))
    text = syn.schema.to_yaml().encode()
    files.write_atomic(folder / SCHEMA, lambda file: file.write(text))


def is_published(folder: Path) -> bool:
    """Say whether a folder is a published generator, and no run."""
    return (folder / CARD).is_file() and (folder / weights.FILE).is_file() and not (folder / "run.json").exists()


def refuse_inside(folder: Path, out: Path | None) -> None:
    """Refuse to write a report into a published generator, which holds its own files only.

    Args:
        folder: A run, or a published generator.
        out: Path of the report; None for the run's own.

    Raises:
        SettingError: No path was given, and the folder is a published generator.
    """
    if out is None and is_published(folder):
        remedy = "say where the report goes, outside of what is published"
        raise SettingError("is needed with a published generator", field="-o", remedy=remedy)


def read(folder: Path) -> Synthesizer:
    """Read a published generator.

    Raises:
        RunFolderError: A file is missing or is not the one that the card names, the plan does not give the claim, or
            the claim is known to be wrong.
    """
    card, schema, plan, guarantee, _ = _vouched_for(folder)
    path = folder / weights.FILE
    tensors = weights.read(path, schema, plan, guarantee)
    generator, schema = weights.load_generator(tensors, schema, plan, path)
    facts = {key: card.get(key) for key in ("doublure_version", "created", "method")}
    return Synthesizer(schema=schema, plan=plan, guarantee=guarantee, generator=generator, run=facts, published=True)


def documents(folder: Path) -> tuple[ResolvedSchema, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a published generator's schema and data accesses, without building a network.

    The accesses are returned as its file words them, as a card of it does, and as this version words them.

    Raises:
        RunFolderError: As :func:`read`.
    """
    _, schema, plan, guarantee, touches = _vouched_for(folder)
    weights.read(folder / weights.FILE, schema, plan, guarantee)
    return schema, touches, [access.to_json() for access in plan.touches]


def _vouched_for(folder: Path) -> tuple[dict[str, Any], ResolvedSchema, Plan, Guarantee, list[dict[str, Any]]]:
    """Return a card, and the schema, plan and claim that it vouches for, after checking their consistency.

    The plan's accesses come last, as its file words them.
    """
    card = _card(folder)
    for name in FILES:
        if card["sha256"].get(name) != sha256_of(folder / name):
            raise _broken("is not the file that the card names", folder / name)
    try:
        schema = ResolvedSchema.load(folder / SCHEMA)
        written = json.loads(read_arrays(folder / weights.FILE)[0]["plan"])
    except (InputError, KeyError, ValueError):
        raise _broken("does not hold together", folder) from None
    made = card["doublure_version"]
    if not isinstance(written, dict):
        raise _broken("does not hold together", folder)
    if (fault := known_fault(made, written)) is not None:
        raise RunFolderError(fault, field=folder, remedy=REMEDY)
    plan, said = weights.read_plan(written, made, folder), Guarantee.from_json(card["guarantee"])
    if (fault := known_fault(made, plan.to_json())) is not None:
        raise RunFolderError(fault, field=folder, remedy=REMEDY)
    guarantee = said.without(schema.assumed)
    if not plan.may_claim(guarantee):
        raise _broken("is not what the plan gives", folder / CARD)
    return card, schema, plan, guarantee, list(written["touches"])


def _card(folder: Path) -> dict[str, Any]:
    """Return the card's content, with its files' hashes by name.

    Raises:
        RunFolderError: It is no card, or of another version.
    """
    try:
        card: dict[str, Any] = files.read_json(folder / CARD, "card")
    except InputError as error:
        raise _broken(error.message, folder / CARD) from None
    if card.get("version") != _VERSION:
        raise RunFolderError("is of another version", field=folder / CARD, remedy="use the doublure that made it")
    try:
        hashes = {entry["path"]: entry["sha256"] for entry in card["files"]}
        if not isinstance(card["guarantee"], dict):
            raise TypeError
        return {**card, "doublure_version": card["doublure_version"], "sha256": hashes}
    except (KeyError, TypeError):
        raise _broken("does not say what belongs to it", folder / CARD) from None


def _broken(what: str, path: Path) -> RunFolderError:
    return RunFolderError(what, field=f"{path.parent.name}/{path.name}", remedy=_REMEDY)
