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
from doublure.methods.presets import PRESETS, written
from doublure.methods.registry import METHODS
from doublure.methods.registry import method as method_of

ROOT = Path(__file__).resolve().parents[1]
KEPT = ("scale", "federated", "relational", "extending", "results", "promise", "architecture")
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
    assert parts == ["Home", "Tutorial", "How to", "Reference", "Explanation", "Evidence"]


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


def test_every_setting_stands_in_the_reference(pages):
    text = (pages / "reference" / "settings.md").read_text(encoding="utf-8")
    for name in METHODS:
        (section,) = re.findall(rf"^## `{name}`\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
        types = method_of(name).settings_type
        for settings in [types] if isinstance(types, type) else types.values():
            meanings = {own: rf"^\| `{own}` \| .* \| \S.* \|$" for own in settings.model_fields}
            assert [own for own, row in meanings.items() if not re.search(row, section, flags=re.MULTILINE)] == []


def test_no_name_in_braces_is_left_unfilled_in_the_reference(pages):
    """Help names lists of names, such as {methods}; a brace in code, or in a path such as {table}.parquet, is one."""
    for page in (pages / "reference").glob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert re.findall(r"\{[a-z_]+\}", text) == [], page.name
    said = (pages / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert "frigerio2019, triastcyn2018" in said
    assert "statistics, guided, dpgan" in said


def test_what_each_preset_sets_stands_in_the_reference(pages):
    text = (pages / "reference" / "settings.md").read_text(encoding="utf-8")
    for name, preset in PRESETS.items():
        for own in preset.settings.values():
            assert re.search(rf"^\| `{name}` .*`{re.escape(written(own))}` \|$", text, flags=re.MULTILINE)


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


@pytest.fixture(scope="module")
def site(pages, tmp_path_factory):
    """Return the built site."""
    pytest.importorskip("zensical", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("built")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(pages, folder / "build" / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


@exhaustive
def test_the_site_is_whole_and_asks_nobody_else(site, pages):
    html = list(site.rglob("*.html"))
    assert len(html) > len(list(pages.rglob("*.md")))
    loads = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^\s\">]+")
    for page in html:
        assert not loads.findall(page.read_text(encoding="utf-8")), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", sheet.read_text(encoding="utf-8")), sheet.name


def shown(page):
    """Return what a browser makes of a page that lies in a file."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("needs Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=30000", "--dump-dom"]
    done = subprocess.run([browser, *options, page.as_uri()], capture_output=True, text=True, timeout=500)
    return done.stdout


def scripted(site, name, script):
    """Add a script to a page."""
    page = site / name
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", f"<script>{script}</script></body>"))


@exhaustive
@pytest.mark.slow
def test_no_page_is_wider_than_a_phone(site, tmp_path):
    copy = Path(shutil.copytree(site, tmp_path / "site"))
    names = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*.html") if path.name != "404.html")
    tell = 'addEventListener("load", () => setTimeout(() => parent.postMessage("NAME " + WIDTH, "*"), 300))'
    for name in names:
        width = "document.documentElement.scrollWidth"
        scripted(copy, name, tell.replace("NAME", name).replace("WIDTH", width))
    told = 'addEventListener("message", (event) => document.querySelector("pre").append(event.data + "\\n"))'
    frames = "".join(f'<iframe src="{name}" width="390" height="600"></iframe>' for name in names)
    (copy / "all.html").write_text(f"<pre></pre><script>{told}</script>{frames}", encoding="utf-8")
    widths = dict(re.findall(r"([\w/-]+\.html) (\d+)$", shown(copy / "all.html"), flags=re.MULTILINE))
    assert set(widths) >= set(names) - {names[0]}  # the first stands behind the tag
    assert {name: width for name, width in widths.items() if int(width) > 390} == {}


@exhaustive
@pytest.mark.slow
def test_the_search_finds_something_in_a_file(site, tmp_path):
    """Without a server a browser starts no worker: docs/javascripts/iframe-worker.js stands in for it."""
    copy = Path(shutil.copytree(site, tmp_path / "site"))
    script = """
      const inner = (e) => (e.shadowRoot ? all(e.shadowRoot) : []);
      const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...inner(e)]);
      addEventListener("load", () => setTimeout(() => {
        document.querySelector(".md-search__button").click();
        setTimeout(() => {
          const field = all(document).find((e) => e.getAttribute("role") === "combobox");
          field.value = "ledger";
          field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
          setTimeout(() => {
            const found = all(document).filter((e) => e.tagName === "LI" && e.getRootNode() !== document);
            document.title = "found " + found.length;
          }, 3000);
        }, 1500);
      }, 1500));
    """
    scripted(copy, "index.html", script)
    (count,) = re.findall(r"<title>found (\d+)</title>", shown(copy / "index.html"))
    assert int(count) > 0
