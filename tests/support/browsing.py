"""A real browser before a running studio: what it asks for, what it says, and whether its pages are accessible."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = Path(os.environ.get("DOUBLURE_TEST_CHROMIUM", "/usr/bin/chromium"))
SOURCE = str(Path(__file__).parents[2] / "src")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
_PATIENCE = 90_000  # milliseconds: the machine may be busy


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser; skip where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    pytest.importorskip("uvicorn", reason="the extra studio is not installed")
    if not CHROMIUM.is_file():
        pytest.skip(f"there is no {CHROMIUM}")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=_FLAGS)
        yield browser
        browser.close()


class Server:
    """A studio in a process of its own.

    Args:
        folder: The project's folder.
        start: What starts a command (:mod:`forked_jobs`).
    """

    def __init__(self, folder: Path, start: Any) -> None:
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as out:
            words = [sys.executable, "-P", "-m", "doublure", "studio", str(folder), "--no-browser"]
            environment = {**os.environ, "PYTHONPATH": SOURCE}
            process = start(words, cwd=folder, stdout=out, stderr=out, env=environment, pass_fds=[])
        self._number: int = process.pid
        self._out = os.fdopen(reading, encoding="utf-8")
        self.said: list[str] = []
        for line in self._out:
            self.said.append(line)
            if line.startswith("http://"):
                break
        assert self.said, "the studio said nothing"
        self.url = self.said[-1].strip()

    def kill(self) -> str:
        """Kill it without a word, and return all that it said."""
        os.kill(self._number, signal.SIGKILL)
        with self._out:
            return "".join(self.said) + self._out.read()


class Visitor:
    """Somebody in front of the studio.

    Args:
        browser: The browser.
        url: The address that the terminal printed.
        scheme: ``light`` or ``dark``.
        width: Pixels.
        patience: How long the page waits, for the next key or to ask again, in shares of what it waits for users.
    """

    def __init__(self, browser: Any, url: str, scheme: str = "light", width: int = 1280, patience: float = 0.2) -> None:
        self._context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        self._context.set_default_timeout(_PATIENCE)
        self._context.add_init_script(
            f"const waits = setTimeout; setTimeout = (act, time, ...given) => waits(act, time * {patience}, ...given)"
        )
        self._patience = patience
        self.page = self._context.new_page()
        self.asked: list[str] = []
        self.errors: list[str] = []
        self._context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.page.goto(url)

    def go(self, address: str) -> None:
        """Go to a page, and wait until it is there."""
        self.page.goto(self.origin + address)
        self.settle()

    def settle(self) -> None:
        """Wait until the script has put the page in place."""
        self.page.locator(".busy[hidden]").wait_for(state="attached")

    def fill(self, **fields: str) -> None:
        """Fill fields in by their ids."""
        for name, text in fields.items():
            field = self.page.locator(f"#{name}")
            if field.evaluate("each => each.tagName") == "SELECT":
                field.select_option(text)
            else:
                field.fill(text)

    def press(self, selector: str) -> None:
        """Press a button, and wait for what follows."""
        asks = self.page.locator("form[data-live], form[data-search]").count()
        self.page.locator(selector).click()
        if asks:
            self.page.wait_for_timeout(250 * self._patience)  # longer than such a form waits for the next key
        self.settle()

    def wait(self, text: str) -> None:
        """Wait until a text is seen on the page; in what is folded it is not."""
        self.page.get_by_text(text).filter(visible=True).first.wait_for(timeout=_PATIENCE)

    def text(self) -> str:
        """Return what stands on the screen."""
        found: str = self.page.locator("#main").inner_text()
        return found

    def elsewhere(self) -> list[str]:
        """Return requests to anything but the studio."""
        return [url for url in self.asked if not url.startswith((f"{self.origin}/", "data:", "about:", "blob:"))]

    def violations(self) -> list[str]:
        """Return what axe says against the page in front, a line each."""
        axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
        if not self.page.evaluate("typeof axe !== 'undefined'"):
            self.page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
        said = self.page.evaluate(
            "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})", RULES
        )
        return [
            f"{each['id']}: {node['target']}: {node['failureSummary'].splitlines()[-1].strip()}"
            for each in said["violations"]
            for node in each["nodes"]
        ]

    def look(self, scheme: str, width: int) -> None:
        """Show the page that is in front in another scheme and width, without asking for it again."""
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size({"width": width, "height": 900})

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        found: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return max(0, found)

    def leave(self) -> None:
        """Close the window."""
        self._context.close()


def until(condition: Any, seconds: float = 90) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def kept_in(folder: Path) -> dict[str, str]:
    """Return the text of everything that the studio keeps beside runs: jobs, project, commands."""
    names = [*folder.glob(".studio/**/*"), folder / "project.yaml", folder / "commands.sh"]
    return {str(path): path.read_text(errors="replace") for path in names if path.is_file()}


__all__ = ["Server", "Visitor", "chromium", "kept_in", "until"]
