"""The page of a release, from its card and the files beside it: whoever has a bundle draws the same page again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from doublure.releasing.card import card_page
from doublure.releasing.checking import PAGE
from doublure.releasing.drawings import unpacked
from doublure.releasing.examples import examples_of
from doublure.schema.kinds import KINDS

_OF_THE_RECORD = frozenset({"dataset"})  # what is known of a release's record before it is made


def page_of(folder: Path, card: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """Return the HTML of a release's page.

    Args:
        folder: The release's.
        card: What ``card.json`` holds, or will hold: the page's own hash and the record's do not stand on the page.
        described: The data dictionary, as its file has it; of a generator that of its schema.

    Raises:
        Misread: A file is not what the dictionary describes.
        SettingError: The data are of a kind that is not known here.
    """
    said, described = json.loads(json.dumps(card)), json.loads(json.dumps(described))
    entry = said.get("ledger") or {}
    said["ledger"] = {key: entry[key] for key in _OF_THE_RECORD & entry.keys()}
    said["files"] = [file for file in said["files"] if file["path"] != PAGE]
    listed = [str(file["path"]) for file in said["files"]]
    return card_page(said, KINDS[described["kind"]].records, described, examples_of(folder, listed, described))


def draws_the_same(one: str, other: str) -> bool:
    """Return whether two pages are the same byte for byte, pictures by their pixels."""
    return one == other or unpacked(one) == unpacked(other)
