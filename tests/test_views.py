"""What a notebook shows of each object: self-contained, escaped, readable on any ground, and no private value."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

import doublure as db
from doublure.evaluate import Report
from doublure.schema import Schema
from doublure.support import views

HOSTILE = '<script>alert("x")</script>'
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NAMES = ("schema", "bought", "resolved", "plan", "ledger", "synthesizer", "bundle", "card", "report")
EACH = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def objects(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    run, ledger = small.copies(folder)
    syn = db.load(run)
    bundle = db.release(syn, folder / "bundle", n=300, title="People", contact="us@example.org")
    found = db.evaluate.report(syn, small.frame(), rows=200)
    book = db.Ledger.open(ledger)
    return dict(
        zip(
            NAMES,
            (small.declared, small.bought, syn.schema, small.plan, book, syn, bundle, bundle.card, found),
            strict=True,
        )
    )


def text_of(shown):
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", shown, flags=re.DOTALL))


@EACH
def test_nothing_is_loaded_and_nothing_runs(objects, name):
    shown = objects[name]._repr_html_()
    assert not re.search(r"<script|\bsrc=|\bhref=|url\(|@import|\bon\w+=|https?:", shown)
    assert 500 < len(shown) < 30_000


@EACH
def test_its_colours_are_those_of_the_page_around_it(objects, name):
    shown = objects[name]._repr_html_()
    style = shown[: shown.index("</style>")]
    assert {colour.strip() for colour in re.findall(r"[;{\s]color:([^;}]+)", style)} == {"inherit"}
    # What has a ground of its own is see-through, or a bar without text.
    grounds = re.findall(r"([^{}]+)\{[^}]*background:([^;}]+)", style)
    assert all("dv-bar" in rule or "rgba(" in ground or ground == "transparent" for rule, ground in grounds)


@EACH
def test_tags_are_closed(objects, name, parsed):
    assert parsed(objects[name]._repr_html_()) == []


@pytest.fixture
def parsed():
    """Return a function that returns the tags which a browser would find open at the end."""

    def left_open(shown):
        stack = []
        for closing, tag in re.findall(
            r"<(/?)([a-z]+)\b[^>]*>", re.sub(r"<style>.*?</style>", "", shown, flags=re.DOTALL)
        ):
            if closing:
                assert stack.pop() == tag
            else:
                stack.append(tag)
        return stack

    return left_open


def test_a_schema_shows_each_fact_with_its_state(objects, small):
    declared, bought = (text_of(objects[name]._repr_html_()) for name in ("schema", "bought"))
    assert "17 to 90" in declared
    assert "Female, Male" in declared
    assert "to buy, ε = 0.1" in bought
    assert "3, at ε = 0.2 together" in bought
    opened = Schema.parse("doublure: 1\nkind: table\ncolumns: {age: {type: integer}}\n")
    shown = text_of(opened._repr_html_())
    assert "Undeclared, and to be decided: units, columns.age.missing, columns.age.bounds" in shown
    assert repr(opened) == "TableSchema(1 column, units: undeclared, 3 undeclared)"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ("kind: images\nimages: {shape: [8, 8, 1]}\nlabel: {values: [cat, dog]}", ["8 × 8 × 1", "cat, dog"]),
        (
            "kind: series\nseries: {length: 12, gaps: missing}\n"
            "channels: {a: {type: real, bounds: [-5, 5], missing: true}}",
            ["length", "12", "-5 to 5"],
        ),
        (
            "kind: relational\ntables:\n  p: {key: k, columns: {k: {type: id}, age: {type: integer, bounds: [0, 9], "
            "missing: false}}}\n  s: {parent: p, foreign_key: k, max_children: 2, columns: {k: {type: id}, "
            "w: {type: boolean, missing: false}}}",
            ["0 to 9", "false, true"],
        ),
    ],
)
def test_every_kind_of_schema_is_shown(facts, said):
    schema = Schema.parse(f"doublure: 1\nunits: 40\n{facts}\n")
    shown = text_of(schema._repr_html_())
    assert all(word in shown for word in said)


def test_a_plan_shows_the_claim_and_every_price(objects, small):
    shown = text_of(objects["plan"]._repr_html_())
    assert small.plan.guarantee.sentence in shown
    assert "No record has been read" in shown
    assert all(access.purpose in shown for access in small.plan.touches)
    assert "total (composed, not added up)" in shown
    unprotected = db.plan(small.declared, method="gan", **small.tiny)
    assert "not protected" in text_of(unprotected._repr_html_())
    assert "total" not in text_of(unprotected._repr_html_())
    assert len(repr(small.plan)) < 400


def test_a_ledger_shows_what_is_spent(objects, small):
    shown = text_of(objects["ledger"]._repr_html_())
    assert re.search(r"spent\s+ε = 2, δ = 0.0001\s+left\s+ε = 8, δ = 0.0009\s+cap over all runs\s+ε = 10", shown)
    assert "1 release is recorded" in shown
    assert 'style="width:20.0%"' in objects["ledger"]._repr_html_()


def test_an_attempt_that_cost_nothing_is_folded(small, tmp_path):
    book = small.book(tmp_path)
    assert "No run has been charged" in book._repr_html_()
    book.reserve(small.plan).close("no-noise-drawn", steps=0)
    assert "1 more drew no noise and cost nothing" in book._repr_html_()


def test_a_synthesizer_shows_what_may_be_said(objects):
    syn, shown = objects["synthesizer"], text_of(objects["synthesizer"]._repr_html_())
    assert syn.guarantee.sentence in shown
    assert re.search(r"method\s+dpgan\s+data set\s+people\s+kind of data\s+table, 11 columns", shown)
    assert re.search(r"rows, by default\s+300", shown)


def test_a_bundle_is_shown_with_its_files(objects):
    bundle = objects["bundle"]
    shown = text_of(bundle._repr_html_())
    assert all(path.is_file() for path in bundle.files)
    assert {path.name for path in bundle.files} == {path.name for path in bundle.path.iterdir()}
    assert bundle.page.name == "card.html"
    assert all(path.name in shown for path in bundle.files[:-1])
    assert bundle.card == json.loads((bundle.path / "card.json").read_text())
    assert bundle.card["files"][0]["rows"] == 300
    assert bundle.card["guarantee"]["sentence"] in repr(bundle)
    assert "us@example.org" in text_of(bundle.card._repr_html_())


def test_no_private_value_is_shown(objects, small):
    """Jobs outside the declared list, and every number with a decimal, are the records' alone."""
    frame = small.frame()
    assert "clown" in set(frame["job"])
    heights = {f"{height:.6f}" for height in frame["height"]}
    for shown in (each._repr_html_() for each in objects.values()):
        assert "clown" not in shown
        assert not any(height in shown for height in heights)


def test_a_report_says_that_it_is_internal(objects):
    shown = text_of(objects["report"]._repr_html_())
    assert "INTERNAL: computed on real data: do not publish" in shown
    assert "Evaluation of dpgan" in shown


def test_hostile_names_are_only_names(small):
    text = small.declared_text.replace("age:", json.dumps(HOSTILE) + ":").replace("cook", json.dumps(HOSTILE))
    shown = Schema.parse(text)._repr_html_()
    assert "<script" not in shown
    assert HOSTILE in html.unescape(shown)
    assert "\u202e" not in views.view("safe\u202egnp", views.line("\u202e"))


def test_a_long_table_is_cut_and_says_so():
    shown = views.grid(("a",), [(number,) for number in range(views.MOST_ROWS + 40)])
    assert shown.count("<tr") == views.MOST_ROWS
    assert "and 41 more" in shown


# -- in a browser ------------------------------------------------------------------------------------------------------

PROBE = """<!doctype html><meta charset="utf-8"><body style="margin:8px;background:%s;color:%s">%s<script>
const number = text => text.match(/[0-9.]+/g).map(Number);
const over = (top, ground) => [0, 1, 2].map(i => (top[3] ?? 1) * top[i] + (1 - (top[3] ?? 1)) * ground[i]);
const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = c => { const [r, g, b] = c.map(v => linear(v / 255)); return .2126 * r + .7152 * g + .0722 * b; };
function contrast(element) {
  const path = [];
  for (let up = element; up !== document.body; up = up.parentElement) path.unshift(up);
  let ground = number(getComputedStyle(document.body).backgroundColor), opacity = 1;
  for (const up of path) {
    ground = over(number(getComputedStyle(up).backgroundColor), ground);
    opacity *= getComputedStyle(up).opacity;
  }
  const own = number(getComputedStyle(element).color);
  const text = over([...own.slice(0, 3), (own[3] ?? 1) * opacity], ground);
  const [low, high] = [light(text), light(ground)].sort((a, b) => a - b);
  return (high + .05) / (low + .05);
}
addEventListener("load", () => {
  const speaks = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  const all = [...document.querySelectorAll(".doublure-view *")].filter(speaks).map(contrast);
  const width = document.documentElement.scrollWidth, loaded = performance.getEntriesByType("resource").length;
  const found = {least: Math.min(...all), all: all.length, width, loaded};
  document.body.textContent = "FOUND" + JSON.stringify(found) + "END";
});
</script>"""
GROUNDS = {"light": ("#ffffff", "rgba(0,0,0,.87)"), "dark": ("#111111", "rgba(255,255,255,.87)")}


@pytest.mark.skipif(BROWSER is None, reason="no browser is here")
@pytest.mark.parametrize("ground", GROUNDS)
def test_it_can_be_read_on_light_and_dark_ground(objects, tmp_path, ground):
    """WCAG AA asks for a contrast of 4.5; and nothing is wider than the window, or loaded."""
    file = tmp_path / "page.html"
    file.write_text(PROBE % (*GROUNDS[ground], "".join(each._repr_html_() for each in objects.values())))
    words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=700,900"]
    words += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", file.as_uri()]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120)
    found = json.loads(html.unescape(re.search("FOUND(.*)END", said.stdout).group(1)))
    assert found["all"] > 100
    assert found["least"] >= 4.5
    assert found["width"] <= 700
    assert found["loaded"] == 0


def test_a_report_from_elsewhere_is_shown_too(objects):
    again = Report.model_validate_json(objects["report"].to_json())
    assert again._repr_html_() == objects["report"]._repr_html_()
