"""Every link of the documentation leads somewhere: to a file that there is, and to a heading in it."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


def prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())
    text = unicodedata.normalize("NFC", text).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} (.+)$", prose(path), flags=re.MULTILINE):
        own = slug(heading)
        found.append(own if own not in found else f"{own}-{found.count(own)}")
    return {*found, *re.findall(r'<a id="([^"]+)"', prose(path))}


def links(path: Path) -> list[str]:
    text = re.sub(r"(?<!`)`[^`\n]+`(?!`)", "", prose(path))
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            assert link.startswith(("https://", "mailto:")), link
            continue
        name, _, anchor = link.partition("#")
        if name.removeprefix("../").startswith("reference/"):  # made by scripts/make_reference.py
            assert f'"{name.removeprefix("../")}"' in (ROOT / "zensical.toml").read_text(encoding="utf-8"), link
            continue
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), f"{link}: no such file"
        assert page.name == "README.md" or target.is_relative_to(ROOT / "docs"), f"{link}: not on the site"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


def test_a_slug_is_githubs():
    assert slug("Is a bug found from private samples?") == "is-a-bug-found-from-private-samples"
    assert slug("What `auto` takes, at ε = 1 & above") == "what-auto-takes-at-ε--1--above"


def test_files_that_the_table_of_places_names_are_there():
    page = (ROOT / "docs" / "evidence" / "extending.md").read_text(encoding="utf-8")
    table = page.partition("## Adding things\n")[2].partition("\n## ")[0]
    named = re.findall(r"`((?:\w+/)*\w+\.(?:py|html\.j2|yaml|json))`", table)
    there = [path.as_posix() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.*")]
    assert len(named) > 20
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in there)] == []
