"""Pages on a telephone: nothing scrolls sideways but a wide table in its own region, and a card shows its prices."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from doublure.releasing.card import card_page
from doublure.report import page_of

WIDTH = 400
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MEASURE = """<!doctype html><meta charset="utf-8"><iframe width="%d" height="800" style="border:0" srcdoc="%s"></iframe>
<script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument, width = page.documentElement.scrollWidth;
  const regions = [...page.querySelectorAll(".wide")]
    .map(box => [box.getAttribute("aria-label"), box.scrollWidth, box.clientWidth]);
  document.body.textContent = "FOUND" + JSON.stringify({width, regions}) + "END";
});
</script>"""


@pytest.fixture
def measured(tmp_path):
    """Return the width that a page takes in a window of 400 points, and those of its wide regions."""
    if BROWSER is None:
        pytest.skip("no browser is here")

    def of(page):
        file = tmp_path / "page.html"
        file.write_text(MEASURE % (WIDTH, html.escape(page)))
        words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        said = subprocess.run([*words, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
        return json.loads(html.unescape(re.search("FOUND(.*)END", said.stdout).group(1)))

    return of


def test_an_evaluation_does_not_scroll_sideways(hostile_report, measured):
    assert measured(page_of(hostile_report))["width"] <= WIDTH


def test_a_card_shows_what_each_access_cost(card, measured):
    found = measured(card_page(card))
    assert found["width"] <= WIDTH
    (touched,) = (region for region in found["regions"] if region[0] == "What touched private data")
    assert touched[1] <= touched[2]


def test_what_is_unseen_in_a_table_scrolls_with_the_table():
    """It is placed absolutely, so that without a positioned region around it it would widen the page."""
    style = (files("doublure.report") / "templates" / "style.css").read_text()
    rules = dict(re.findall(r"^(\.[a-z]+) \{([^}]*)\}", style, flags=re.MULTILINE))
    assert "position: absolute" in rules[".unseen"]
    assert "position: relative" in rules[".wide"]


def test_scroll_regions_are_told_apart(hostile_report, card, parse):
    for page in (parse(page_of(hostile_report)), parse(card_page(card))):
        names = page.attribute("div", "aria-label")
        assert len(names) == len(set(names)) > 1
        assert "Table" not in names
