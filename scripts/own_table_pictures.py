#!/usr/bin/env python3
"""Make the pictures of docs/own-table.md: its stays and its codebook in the studio, and their evaluation.

Usage: python scripts/own_table_pictures.py [FOLDER]    docs/figures if left out

It needs the extra [studio], Playwright and Chromium (DOUBLURE_TEST_CHROMIUM, else /usr/bin/chromium).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support"), str(ROOT / "scripts")]

from browsing import Visitor, chromium  # noqa: E402
from hospital import stays  # noqa: E402
from shell import type_in  # noqa: E402
from studio_pictures import write  # noqa: E402

from doublure.studio.server import running  # noqa: E402

PAGE = ROOT / "docs" / "own-table.md"
TALL, FIRST_ROW = 1040, 690
"""Pixels: a window that ends below the last column, and one that ends below the first row of charts."""


def main() -> None:
    """Type what the page shows, and write a picture of the columns and one of their evaluation."""
    out = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "docs" / "figures"
    text = PAGE.read_text(encoding="utf-8")
    (codebook,) = re.findall(r"```\n(column,type.*?)```", text, flags=re.DOTALL)
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room) / "hospital"
        folder.mkdir()
        os.chdir(folder)
        stays().to_csv("hospital.csv", index=False)
        Path("codes.csv").write_text(codebook, encoding="utf-8")
        with chromium() as browser:
            with running(folder) as address:
                _columns(Visitor(browser, address.url), out / "own-table-columns.webp")
            for commands in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
                type_in(commands)
            type_in("doublure evaluate run --real hospital.csv")
            _evaluation(browser, folder / "run" / "internal" / "report.html", out / "own-table-evaluation.webp")


def _columns(visitor: Visitor, path: Path) -> None:
    """Show what the codebook has decided of each column."""
    visitor.go("/data")
    visitor.fill(place="hospital.csv", codebook="codes.csv")
    visitor.press("button:has-text('Read the header')")
    visitor.page.locator("#who-one").wait_for()
    visitor.go("/columns")
    visitor.page.set_viewport_size({"width": 1280, "height": TALL})
    write(path, visitor.page)
    visitor.leave()


def _evaluation(browser: Any, report: Path, path: Path) -> None:
    """Show the three columns that are furthest from the real rows."""
    page = browser.new_page(viewport={"width": 1280, "height": FIRST_ROW}, color_scheme="light")
    page.goto(report.as_uri())
    page.locator("#columns").evaluate("each => each.scrollIntoView()")
    write(path, page)


if __name__ == "__main__":
    main()
