#!/usr/bin/env python3
"""Make the pictures of docs/studio.md: the whole way on the bundled census data, in a browser.

Usage: python scripts/studio_pictures.py [FOLDER]    docs/figures if left out

It needs the extra [studio], Playwright and Chromium (DOUBLURE_TEST_CHROMIUM, else /usr/bin/chromium).
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from browsing import Visitor, chromium  # noqa: E402

from doublure.datasets.demo import demo_files  # noqa: E402
from doublure.studio.server import running  # noqa: E402

WIDTH = 960
ROWS = 3_000
"""Rows of the bundled table that are fitted: the pictures show pages, and no results."""


def main() -> None:
    """Walk, and write a picture of each step."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "figures"
    with tempfile.TemporaryDirectory() as room, chromium() as browser:
        folder = Path(room) / "census"
        demo_files(folder)
        _shorten(folder / "adult.csv", ROWS)
        with running(folder) as address:
            visitor = Visitor(browser, address.url)
            walk(visitor, lambda name: write(out / f"studio-{name}.webp", visitor.page))
            visitor.leave()


def walk(visitor: Visitor, shown: Any) -> None:
    """Go the whole way, and show each step."""
    visitor.go("/data")
    visitor.fill(place="adult.csv", codebook="adult.codebook.csv")
    visitor.press("button:has-text('Read the header')")
    visitor.page.locator("#who-one").check()
    visitor.fill(units=str(ROWS))
    visitor.press("button:has-text('Save')")
    shown("columns")
    _decide_the_rest(visitor)
    visitor.go("/budget")
    visitor.fill(epsilon="1", dataset="census")
    visitor.wait("Suppose that a coin")
    visitor.page.locator("label[for=slider]").evaluate("each => each.scrollIntoView()")
    shown("budget")
    visitor.press("button:has-text('Make the plan')")
    visitor.go("/fit")
    visitor.press("#start")
    visitor.page.locator(".progress .faint").wait_for()
    shown("fit")
    visitor.wait("run is finished")
    visitor.go("/look")
    visitor.fill(real="adult.csv", holdout="kept.csv")
    visitor.press("#evaluate")
    visitor.page.locator("iframe").first.scroll_into_view_if_needed()
    visitor.page.frame_locator("iframe").first.locator("h1").wait_for()
    visitor.page.wait_for_timeout(500)
    shown("look")
    visitor.go("/release")
    visitor.fill(rows="3000", title="Synthetic census rows", contact="data@example.org", licence="CC BY 4.0")
    visitor.press("#write")
    visitor.wait("bundle is written")
    visitor.press("#check")
    visitor.wait("It agrees with its card")
    shown("release")
    visitor.go("/received")
    visitor.page.locator("#archive").select_option("bundle.zip")
    visitor.press("#open")
    visitor.wait("It agrees with its card")
    visitor.fill(column="education", where0="sex", is0="Female")
    visitor.press("#count")
    visitor.page.wait_for_timeout(500)  # the form asks 200 ms after the last key
    visitor.page.locator("#explore-title").evaluate("each => each.scrollIntoView()")
    shown("received")


def _decide_the_rest(visitor: Visitor) -> None:
    """Buy what is open, as somebody does who may not say it."""
    visitor.go("/columns?state=undeclared")
    if not visitor.page.locator("#columns-table").count():
        return
    visitor.page.locator("#many summary").click()
    visitor.page.locator("#whom-shown").check()
    visitor.press("button[value=buy]")


def _shorten(path: Path, rows: int) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: rows + 1]))


def write(path: Path, page: Any) -> None:
    """Write what the browser shows."""
    page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    height = round(picture.height * WIDTH / picture.width)
    picture.resize((WIDTH, height), Image.Resampling.LANCZOS).save(path, quality=82, method=6)
    sys.stdout.write(f"{path.name}: {path.stat().st_size // 1024} kB\n")


if __name__ == "__main__":
    main()
