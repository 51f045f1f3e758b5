"""``README.md``: a release as CKAN, Zenodo and Hugging Face show it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from doublure.errors import counted
from doublure.releasing.card import holds
from doublure.releasing.catalogues.contents import CatalogueEntry, is_noisy, stem
from doublure.releasing.reading import DescribedTable
from doublure.support import yaml12 as yaml_text

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_LARGEST = "n>10M"
_LOADED = (".csv", ".jsonl", ".parquet")
"""The endings of files of rows that Hugging Face loads."""
_MOST_VALUES = 8
_MARKUP = re.compile(r"([\\`*_\[\]<>#|~&$])")
_CHECK = (
    "`card.html` and `card.json` say the same in full. `doublure verify FOLDER` checks the files against the card. It "
    "does not check who wrote the card: compare its fingerprint with the publisher's."
)


def render(entry: CatalogueEntry) -> bytes:
    """Return the file: YAML that Hugging Face reads, and a page in Markdown."""
    lines = ["---", yaml_text.dump(_front(entry)).rstrip("\n"), "---", "", *_page(entry)]
    return ("\n".join(lines) + "\n").encode()


def _front(entry: CatalogueEntry) -> dict[str, Any]:
    found: dict[str, Any] = {"pretty_name": entry.card["title"]}
    if entry.licence is not None:
        name, _, words = entry.licence
        found |= {"license": name} | ({"license_name": words} if name == "other" else {})
    found["tags"] = [keyword.replace(" ", "-") for keyword in entry.keywords]
    number = max((file["rows"] for file in entry.data), default=0)
    found["size_categories"] = [next((name for end, name in _SIZES if number < end), _LARGEST)]
    configs = [
        {"config_name": re.sub(r"[<>:/\\|?*]", "-", name), "data_files": path}
        for name in entry.tables
        for path in sorted(
            file["path"] for file in entry.data if stem(file["path"]) == name and file["path"].endswith(_LOADED)
        )[-1:]
    ]
    return found | ({"configs": configs} if configs else {})


def _page(entry: CatalogueEntry) -> Iterator[str]:
    card = entry.card
    yield from (f"# {plain(card['title'])}", "", f"**{plain(card['watermark'].rstrip('.'))}.**", "")
    if card.get("description"):
        yield from (plain(card["description"]), "")
    yield from ("## Guarantee", "", plain(card["guarantee"]["sentence"]), "")
    yield from (f"- {plain(limit)}" for limit in card["limits"])
    yield from ("", "## Files", "", f"| file | {entry.records} |", "|---|---|")
    yield from (f"| {plain(file['path'])} | {_count(file)} |" for file in entry.files)
    for table in entry.described_tables:
        yield from ("", f"## Columns of {plain(table.name)}" if len(entry.described_tables) > 1 else "## Columns", "")
        yield from ("| column | type | means | holds |", "|---|---|---|---|")
        yield from _columns(entry, table)
    words = (("licence", "Licence"), ("citation", "Citation"), ("contact", "Contact"), ("review_by", "Review by"))
    yield from ("", "## Use", "")
    yield from (f"- {said}: {plain(card[key])}" for key, said in words if card.get(key))
    yield from (f"- <{link}>" for link in card.get("links", ()))
    yield from ("", _CHECK)


def _count(file: Any) -> str:
    if file["rows"] is None:
        return ""
    return f"{counted(file['rows'], 'noisy count')}" if is_noisy(file["path"]) else f"{file['rows']:,}"


def _columns(entry: CatalogueEntry, table: DescribedTable) -> Iterator[str]:
    for column in entry.columns(table):
        own = entry.told(table, column)
        cells = (
            column.written,
            entry.column_type(table, column),
            entry.meaning(table, column) or "",
            holds(own) if own else "",
        )
        yield "| " + " | ".join(map(plain, cells)) + " |"


def plain(text: str) -> str:
    r"""Return a text on one line that no reader of Markdown takes for markup.

    Example:
        >>> print(plain("a|b <script>"))
        a\|b \<script\>
    """
    return _MARKUP.sub(r"\\\1", " ".join(str(text).split()))
