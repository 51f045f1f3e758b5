"""How quickly the studio answers, in a browser, on a table of 150 columns.

    python benchmarks/studio_speed.py

What is timed, in Chromium on this machine, from the key or click to what a person sees:

- first paint of each screen, as the browser tells it (first contentful paint);
- acknowledgement: from a key in a live field to the mark that it was heard;
- saving: from the click that saves a column with a pasted list of 1,800 values to the page that says so;
- a forecast: from a new ε to the figures that follow from it. The page waits 200 ms for the next key, which counts.

Each is made ``ROUNDS`` times; the row holds the median and the largest. It needs [studio], Playwright and Chromium.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from browsing import Visitor, chromium  # noqa: E402

from doublure.studio.server import running  # noqa: E402

MEASURED = Path(__file__).parent / "measured" / "studio_speed.jsonl"
COLUMNS, ROUNDS, UNITS, VALUES = 150, 5, 20_000, 1_800
SCREENS = ("data", "columns", "budget", "fit", "release")
_PAINT = """() => new Promise(done => {
  const ask = () => {
    const [entry] = performance.getEntriesByName('first-contentful-paint');
    if (entry) done(entry.startTime); else setTimeout(ask, 20);
  };
  ask();
})"""
_WATCH = """([field, value, seen]) => new Promise(done => {
  const target = document.querySelector(field), begun = performance.now();
  const old = document.querySelector(seen.where).innerHTML;
  target.value = value;
  target.dispatchEvent(new Event('input', {bubbles: true}));
  const watch = () => {
    const place = document.querySelector(seen.where);
    const heard = seen.what === 'busy'
      ? place.getAttribute('aria-busy')
      : place.innerHTML !== old && !place.getAttribute('aria-busy');
    if (heard) requestAnimationFrame(() => done(performance.now() - begun)); else setTimeout(watch, 5);
  };
  requestAnimationFrame(watch);
})"""


_SAVED = """() => new Promise(done => {
  const begun = performance.now();
  document.querySelector('#edit').requestSubmit();
  const watch = () => {
    const said = document.querySelector('#status').textContent;
    if (said.startsWith('Saved') && !document.querySelector('#edit'))
      requestAnimationFrame(() => done(performance.now() - begun));
    else setTimeout(watch, 5);
  };
  watch();
})"""


def write_project(folder: Path) -> None:
    """Write a table of 150 columns and its schema: a third numbers, a third codes, a third answers."""
    kinds = (
        "{type: integer, bounds: [0, 100], missing: false}",
        "{type: category, values: [a, b, c, d, e], missing: false}",
        "{type: boolean, missing: false}",
    )
    cells = ("7", "a", "true")
    names = [f"Q{number:03d}" for number in range(COLUMNS)]
    lines = [f"  {name}: {kinds[at % 3]}" for at, name in enumerate(names)]
    (folder / "survey.schema.yaml").write_text(
        f"doublure: 1\nkind: table\nunit: {{name: person}}\nunits: {UNITS}\ncolumns:\n" + "\n".join(lines) + "\n"
    )
    (folder / "survey.csv").write_text(",".join(names) + "\n" + ",".join(cells[at % 3] for at in range(COLUMNS)) + "\n")


def main() -> None:
    """Measure, print, and keep."""
    with tempfile.TemporaryDirectory() as room, chromium() as browser:
        folder = Path(room)
        write_project(folder)
        with running(folder) as address:
            visitor = Visitor(browser, address.url, patience=1)
            visitor.go("/data")
            visitor.fill(place="survey.csv", schema="survey.schema.yaml")
            visitor.press("button:has-text('Read the header')")
            visitor.go("/budget")
            epsilons = iter(range(1, 100))

            def changed(seen: str) -> float:
                asked = ["#epsilon", f"{next(epsilons) / 10 + 0.5:g}", {"where": "#forecast", "what": seen}]
                return float(visitor.page.evaluate(_WATCH, asked))

            keep("forecast", "budget", lambda: changed("figures"))
            keep(
                "acknowledgement", "budget", lambda: changed("busy"), pause=lambda: visitor.page.wait_for_timeout(2_000)
            )
            for screen in SCREENS:
                keep("first paint", screen, lambda screen=screen: _painted(visitor, screen))
            drafted = folder / "drafted"
            drafted.mkdir()
            (drafted / "survey.csv").write_bytes((folder / "survey.csv").read_bytes())
            visitor.leave()
        with running(drafted) as address:
            visitor = Visitor(browser, address.url, patience=1)
            visitor.go("/data")
            visitor.fill(place="survey.csv")
            visitor.press("button:has-text('Read the header')")
            keep("saving 1,800 values", "columns", lambda: _saved(visitor))
            visitor.leave()


def _saved(visitor: Visitor) -> float:
    visitor.go("/columns?edit=Q001")
    visitor.page.locator("#edit--values-state-declared").check()
    pasted = "\n".join(f"code {number}" for number in range(VALUES))
    visitor.page.locator("#edit--values").evaluate("(each, text) => { each.value = text; }", pasted)
    return float(visitor.page.evaluate(_SAVED))


def _painted(visitor: Visitor, screen: str) -> float:
    visitor.go(f"/{screen}")
    return float(visitor.page.evaluate(_PAINT))


def keep(what: str, screen: str, measure: Callable[[], float], pause: Callable[[], Any] = lambda: None) -> None:
    """Measure a few times, and append a row."""
    found = []
    for _ in range(ROUNDS):
        found.append(measure())
        pause()
    row = {
        "what": what,
        "screen": screen,
        "columns": COLUMNS,
        "rounds": ROUNDS,
        "median_ms": round(statistics.median(found)),
        "largest_ms": round(max(found)),
        "date": datetime.date.today().isoformat(),
        "load": round(os.getloadavg()[0], 1),
        "command": "python benchmarks/studio_speed.py",
    }
    print(json.dumps(row), flush=True)
    with MEASURED.open("a") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
