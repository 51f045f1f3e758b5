"""The documentation site: its pages, its reference, no request to anybody else; built strictly where it can be."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from tiers import exhaustive

import doublure as db
from doublure.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
KEPT = ("papers", "scale", "federated", "relational", "extending", "results", "promise", "pitfalls", "architecture")
"""Pages whose paths others link to."""


@pytest.fixture(scope="module")
def maker():
    script = ROOT / "scripts" / "make_reference.py"
    if not script.is_file():
        pytest.skip("needs the scripts of a checkout")
    spec = importlib.util.spec_from_file_location("make_reference", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and typing look it up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(maker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "docs"
    maker.write(folder)
    return folder


def listed(nav):
    """Yield the pages of a navigation."""
    for entry in nav:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                yield from listed(value)


def test_every_page_is_in_the_navigation_once(pages):
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    named = list(listed(config["nav"]))
    written = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == written
    parts = [next(iter(entry)) for entry in config["nav"]]
    assert parts == ["Home", "Tutorial", "How to", "Reference", "Explanation"]


def test_pages_that_others_link_to_keep_their_paths():
    there = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert set(KEPT) - {"federated"} <= there


def test_every_public_name_and_method_stands_in_the_reference(pages):
    text = (pages / "reference" / "python.md").read_text(encoding="utf-8")
    for name in db.__all__:
        thing = getattr(db, name)
        if inspect.ismodule(thing):
            assert f"({name}.md)" in text
            assert f"## `db.{name}." in (pages / "reference" / f"{name}.md").read_text(encoding="utf-8")
            continue
        assert f"\n## `db.{name}`\n" in text
        first = (inspect.getdoc(thing) or "").splitlines()[0]
        assert re.split(r" :\w+:|`", first)[0] in text
    for method in ("sample", "save", "draw"):
        assert f"### `db.Synthesizer.{method}`" in text


def test_every_command_and_option_stands_in_the_reference(pages):
    text = (pages / "reference" / "command-line.md").read_text(encoding="utf-8")

    def walk(path, command):
        assert f"`{path}`\n" in text
        section = text.split(f"`{path}`\n", 1)[1].split("\n##", 1)[0]
        for name, below in getattr(command, "commands", {}).items():
            walk(f"{path} {name}", below)
        if not hasattr(command, "commands"):
            for parameter in command.params:
                if parameter.param_type_name == "option":
                    assert all(f"`{flag}`" in section for flag in parameter.opts), (path, parameter.name)

    for name, command in typer.main.get_command(app).commands.items():
        walk(f"doublure {name}", command)


def test_a_docstring_becomes_markdown(maker):
    def example(a: int, *, b: str | None = None) -> list[int]:
        """Return what ``a`` says; see :func:`doublure.fit`.

        ====  ====
        a     b
        ====  ====
        1     2
        ====  ====

        Args:
            a: How many, of
                two lines.
            b: A name.

        Raises:
            ValueError: ``a`` is odd.
        """

    text = maker.entry("db", "example", example, 2)
    assert "```python\nexample(a: int, *, b: str | None = None) -> list[int]\n```" in text
    assert "Return what `a` says; see `doublure.fit`." in text
    assert "```text\n====  ====\na     b\n====  ====\n1     2\n====  ====\n```" in text
    assert "- **`a`**: How many, of two lines.\n- **`b`**: A name." in text
    assert "**Raises**\n\n- **`ValueError`**: `a` is odd." in text


@exhaustive
def test_the_site_is_whole_and_asks_nobody_else(pages, tmp_path):
    pytest.importorskip("zensical", reason="needs the extra docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    shutil.copytree(pages, tmp_path / "build" / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "build" / "site"
    html = list(site.rglob("*.html"))
    assert len(html) > len(list(pages.rglob("*.md")))
    loads = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^\s\">]+")
    for page in html:
        assert not loads.findall(page.read_text(encoding="utf-8")), page.name
    assert "var __index" in (site / "search.js").read_text(encoding="utf-8")[:40]  # the search works from files
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", sheet.read_text(encoding="utf-8")), sheet.name
