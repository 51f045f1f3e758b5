"""Pages in a real browser: no wider than a phone, legible in light and in dark, and no request leaves them."""

from __future__ import annotations

import html
import json
import re
import shutil
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from tests.support.tiers import exhaustive

from doublure.attack.results import AttackResult, Claim, Picture, RateEstimate, ThreatModel
from doublure.attack.roc import roc
from doublure.data.series import Series
from doublure.evaluate import Report
from doublure.measures.series import evaluate_series
from doublure.releasing.card import card_page
from doublure.releasing.examples import ExampleRecords
from doublure.report.audit import AttackReport
from doublure.report.comparison import ComparedRun, Comparison
from doublure.schema import Schema

WIDTH = 390
SHEET = 688
"""What an A4 sheet leaves between its margins, in CSS pixels."""
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
TEXT, LARGE_TEXT = 4.5, 3.0
"""What WCAG 2.2 AA asks for."""

MEASURE = """<!doctype html><meta charset="utf-8"><iframe width="%d" height="800" style="border:0" srcdoc="%s"></iframe>
<script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument, width = page.documentElement.scrollWidth;
  for (const each of page.querySelectorAll("details")) each.open = true;
  const open = page.documentElement.scrollWidth;
  const regions = [...page.querySelectorAll(".wide")]
    .map(box => [box.getAttribute("aria-label"), box.scrollWidth, box.clientWidth]);
  const view = page.defaultView;
  const channels = text => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, place) => sum + c * [.2126, .7152, .0722][place], 0);
  const behind = box => {
    for (let one = box; one; one = one.parentElement) {
      const colour = channels(view.getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const texts = [], walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const box = walker.currentNode.parentElement, style = view.getComputedStyle(box);
    if (!walker.currentNode.data.trim() || !box.getClientRects().length || box.closest(".watermark, .unseen")) continue;
    const colour = channels(box.closest("svg") ? style.fill : style.color), paper = behind(box);
    const [low, high] = [light(colour), light(paper)].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    texts.push([walker.currentNode.data.trim().slice(0, 40), (high + .05) / (low + .05), large]);
  }
  const paper = channels(view.getComputedStyle(page.body).backgroundColor);
  document.body.textContent = "FOUND" + JSON.stringify({width, open, regions, texts, paper}) + "END";
});
</script>"""


@pytest.fixture(scope="module")
def series_page():
    schema = Schema.from_plain(
        {
            "doublure": 1, "kind": "series", "units": 100, "series": {"time": "t", "length": 24, "step": "1h"},
            "channels": {"litres": {"type": "real", "bounds": [0, 10], "missing": False}},
            "attributes": {"sort": {"type": "category", "values": ["a", "b"], "missing": False}},
        }
    )  # fmt: skip

    def made(n, seed):
        draw = np.random.default_rng(seed)
        attributes = pd.DataFrame({"sort": pd.Categorical(draw.choice(["a", "b"], n), ["a", "b"])})
        return Series(values=draw.random((n, 24, 1)) * 5, channels=tuple(schema.channels), attributes=attributes)

    found = evaluate_series(schema, made(40, 1), made(40, 2), made(30, 3), classifiers=False)
    return Report(series=found).to_html()


@pytest.fixture(scope="module")
def audit_page():
    claim = Claim(kind="dp", epsilon=1.0, delta=1e-5, sentence="a claim of ε = 1")
    rng = np.random.default_rng(0)
    curve = roc(rng.normal(0.2, 1, 500), rng.normal(0, 1, 500), 1.0, 1e-5)
    made = {"holds": ("a key",), "does": "Turns it.", "success": "It opens.", "shows": "That it fits.", "cannot": "No."}
    models = [ThreatModel(attack=name, name=name, family=name, **made) for name in ("membership", "neighbours")]
    rows = tuple((f"row {number}", "1", "<=50K", "Self-emp-not-inc") for number in range(20))
    attacks = (
        AttackResult(threat_model=models[0], measure="area", value=0.6, interval=(0.5, 0.7), baseline=0.5, claim=claim,
                     roc=curve, lower_bound=0.1),
        AttackResult(threat_model=models[1], measure="share", value=0.4, claim=claim,
                     rates=(RateEstimate(name="equal", value=0.1, interval=(0.0, 0.2)),),
                     pictures=(Picture(title="Pairs", header=("", "age", "income", "work"), rows=rows),)),
    )  # fmt: skip
    return AttackReport(claim=claim, attacks=attacks, seed=3, versions={"doublure": "1"}).to_html()


@pytest.fixture(scope="module")
def comparison_page(hostile_report):
    about = {"kind": "dp", "guarantee": "a claim", "epsilon": 1.0, "delta": 1e-5, "unit": "person", "max_records": 1}
    runs = [
        ComparedRun(name=f"runs/number-{place}", method="statistics", scores=hostile_report.measured.scores, **about)
        for place in range(4)
    ]
    return Comparison(kept_aside=True, contenders=tuple(runs)).to_html()


@pytest.fixture(scope="module")
def public_page(card):
    values = [f"a long value {number}" for number in range(40)]
    columns = [
        {"name": "education", "type": "category", "values": values, "missing": True},
        {"name": "age", "type": "integer", "bounds": [0, 99], "description": "in years, " * 40},
    ]
    examples = ExampleRecords(
        rows={"": {"education": tuple(values[:3]), "age": ("1", "2", "3")}},
        series=tuple({"litres": (0.0, 1.0, float(number))} for number in range(3)),
    )
    margins = {"confidence": 0.95, "units": 30_000, "columns": {"education": 120, "age": 66}}
    said = {"licence": "CC BY 4.0", "links": ["https://example.org/" + "a" * 300], "margins": margins}
    return card_page({**card, **said}, "rows", {"columns": columns}, examples)


PAGES = ("evaluation", "series_page", "audit_page", "comparison_page", "public_page")
HOSTILE = {"evaluation": "hostile_report"}
"""The page -> the fixture that makes it, where it has another name."""


@pytest.fixture
def a_page(request):
    found = request.getfixturevalue(HOSTILE.get(request.param, request.param))
    return found if isinstance(found, str) else found.to_html()


@pytest.fixture(scope="module")
def launched():
    """What starts a browser, with options of its command line."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if BROWSER is None:
        pytest.skip("no browser is here")
    with api.sync_playwright() as playwright:

        def launch(*options):
            words = ["--no-sandbox", "--disable-gpu", *QUIET, *options]
            return playwright.chromium.launch(
                executable_path=BROWSER, args=words, ignore_default_args=["--hide-scrollbars"]
            )

        yield launch


@pytest.fixture(scope="module")
def browser(launched):
    """One browser for all pages; each is loaded in a context of its own, which shares nothing with another."""
    found = launched()
    yield found
    found.close()


@pytest.fixture
def measured(browser, tmp_path):
    """Return what a page is like in a window, as wide as a phone: its width, its wide regions, its texts' contrast."""

    def of(page, scheme="light", width=WIDTH):
        said = loaded(browser, tmp_path, MEASURE % (width, html.escape(page)), scheme)
        return json.loads(re.search("FOUND(.*)END", said, re.DOTALL).group(1))

    return of


def loaded(browser, folder, text, scheme="light"):
    """Return what stands in a page once it is loaded from a file."""
    file = folder / "page.html"
    file.write_text(text)
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1600, "height": 900})
    page = context.new_page()
    page.goto(file.as_uri())
    found = page.evaluate("document.body.textContent")
    context.close()
    return found


def too_faint(found):
    return [text for text in found["texts"] if text[1] < (LARGE_TEXT if text[2] else TEXT) - 0.01]


@exhaustive
@pytest.mark.parametrize("a_page", PAGES, indirect=True)
def test_no_page_is_wider_than_a_phone_folded_or_not(a_page, measured):
    found = measured(a_page)
    assert found["width"] <= WIDTH
    assert found["open"] <= WIDTH


@exhaustive
def test_a_page_that_is_wider_is_found(public_page, measured):
    assert measured(public_page.replace("<main>", '<main><p style="width:600px">x</p>'))["width"] > WIDTH


@exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("a_page", PAGES, indirect=True)
def test_every_text_is_legible(a_page, scheme, measured):
    found = measured(a_page, scheme)
    assert (sum(found["paper"][:3]) < 200) == (scheme == "dark")  # the browser shows what was asked for
    assert len(found["texts"]) > 40
    assert too_faint(found) == []


@exhaustive
def test_text_that_is_too_faint_is_found(public_page, measured):
    faint = public_page.replace("<main>", '<main><p style="color:#999">unreadable</p>')
    assert [text[0] for text in too_faint(measured(faint))] == ["unreadable"]


@exhaustive
def test_a_table_of_scales_fits_a_phone_without_them(hostile_report, measured):
    regions = {name: (whole, seen) for name, whole, seen in measured(hostile_report.to_html())["regions"]}
    for name in ("Prediction", "Parts of the score"):
        whole, seen = regions[name]
        assert whole <= seen, name


@exhaustive
def test_no_cell_of_a_card_hides_beside_a_phone(public_page, measured):
    (columns,) = (region for region in measured(public_page)["regions"] if region[0] == "Columns")
    assert columns[1] <= columns[2]


@exhaustive
def test_no_cell_of_a_card_hides_beside_a_screen_where_addresses_are_long(public_page, measured):
    mail = "apollonia.ullmann-ruppersberger@example.org"
    page = re.sub(r'(<td data-label="row \d">)[^<]*', rf"\g<1>{mail}", public_page)
    assert mail in page
    (columns,) = (region for region in measured(page, width=1280)["regions"] if region[0] == "Columns")
    assert columns[1] <= columns[2]


def printed(page):
    """Return a page that looks on a screen as it looks on paper."""
    return page.replace("@media screen and", "@media speech and").replace("@media print", "@media screen")


@exhaustive
@pytest.mark.parametrize("a_page", PAGES, indirect=True)
def test_nothing_is_wider_than_a_sheet_of_paper(a_page, measured):
    """A browser shrinks all pages of a print to fit what is too wide, and cuts what is wider still."""
    found = measured(printed(a_page), width=SHEET)
    assert found["open"] <= SHEET
    assert {name: (whole, seen) for name, whole, seen in found["regions"] if whole > seen} == {}


@exhaustive
def test_a_table_that_is_wider_than_a_sheet_is_found(audit_page, measured):
    wide = '<main><div class="wide" aria-label="planted"><p style="width:900px">x</p></div>'
    found = measured(printed(audit_page.replace("<main>", wide)), width=SHEET)
    assert [name for name, whole, seen in found["regions"] if whole > seen] == ["planted"]


@exhaustive
@pytest.mark.parametrize("columns", [15, 90])
def test_nearest_pairs_of_many_columns_fit_a_sheet_of_paper(columns, measured):
    header = ("", *(f"column-number-{place}" for place in range(columns)))
    rows = tuple((side, *["Self-emp-not-inc"] * columns) for side in ("synthetic", "real") * 3)
    claim = Claim(kind="dp", epsilon=1.0, delta=1e-5, sentence="a claim of ε = 1")
    model = ThreatModel(attack="neighbours", name="neighbours", family="neighbours", holds=("a key",), does="Turns it.",
                        success="It opens.", shows="That it fits.", cannot="No.")  # fmt: skip
    found = AttackResult(threat_model=model, measure="share", value=0.4, claim=claim,
                         pictures=(Picture(title="Pairs", header=header, rows=rows),))  # fmt: skip
    page = AttackReport(claim=claim, attacks=(found,), seed=3, versions={"doublure": "1"}).to_html()
    regions = {name: (whole, seen) for name, whole, seen in measured(printed(page), width=SHEET)["regions"]}
    assert regions["Pairs"][0] <= regions["Pairs"][1]


@exhaustive
def test_a_card_shows_what_each_access_cost(card, measured):
    found = measured(card_page(card))
    (touched,) = (region for region in found["regions"] if region[0] == "What touched private data")
    assert touched[1] <= touched[2]


PLANTED = '<main><img src="http://elsewhere.invalid/%s.png"><a href="http://example.org/%s">a</a>'


@pytest.fixture(scope="module")
def asked(request, launched, tmp_path_factory):
    """The addresses that any page asked for outside of this machine's files, by the log of a browser of its own."""
    folder = tmp_path_factory.mktemp("requests")
    log = folder / "net.json"
    pages = {name: value for name in PAGES if (value := request.getfixturevalue(HOSTILE.get(name, name)))}
    pages = {name: value if isinstance(value, str) else value.to_html() for name, value in pages.items()}
    pages["open"] = pages["public_page"].replace("default-src 'none'", "default-src *")
    pages["open"] = pages["open"].replace("img-src data:", "img-src *")
    own = launched(f"--log-net-log={log}")
    for name, page in pages.items():
        loaded(own, folder, page.replace("<main>", PLANTED % (name, name)))
    own.close()
    text = log.read_text()
    found = json.loads(text if text.rstrip().endswith("}") else text.rstrip().rstrip(",") + "]}")
    every = {str(event.get("params", {}).get("url", "")) for event in found["events"]}
    return {url for url in every if "elsewhere.invalid" in url or "example.org" in url}


@exhaustive
@pytest.mark.parametrize("name", PAGES)
def test_no_request_leaves_a_page(name, asked, request):
    assert not [url for url in asked if url.endswith((f"/{name}", f"/{name}.png"))]  # the page's own policy forbids it
    page = request.getfixturevalue(HOSTILE.get(name, name))
    text = page if isinstance(page, str) else page.to_html()
    addresses = re.findall(r'(?:src|srcset|poster|data|xlink:href)="([^"]*)"', text)
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in addresses)


@exhaustive
def test_a_request_that_leaves_is_found(asked):
    assert asked == {"http://elsewhere.invalid/open.png"}


def test_what_is_unseen_in_a_table_scrolls_with_the_table():
    """It is placed absolutely, so that without a positioned region around it it would widen the page."""
    style = (files("doublure.report") / "templates" / "style.css").read_text()
    rules = dict(re.findall(r"^(\.[a-z]+) \{([^}]*)\}", style, flags=re.MULTILINE))
    assert "position: absolute" in rules[".unseen"]
    assert "position: relative" in rules[".wide"]


def test_scroll_regions_are_told_apart(hostile_report, public_page, parse):
    for page in (parse(hostile_report.to_html()), parse(public_page)):
        names = page.attribute("div", "aria-label")
        assert len(names) == len(set(names)) > 1
        assert "Table" not in names


@pytest.mark.parametrize("a_page", PAGES, indirect=True)
def test_the_contents_bar_names_every_section_that_has_an_id(a_page, parse):
    page = parse(a_page)
    wanted = [value.removeprefix("#") for value in page.attribute("a", "href") if value.startswith("#")]
    assert len(wanted) == len(set(wanted)) >= 3
    assert wanted == page.attribute("section", "id")
    assert set(wanted) <= set(page.ids)
