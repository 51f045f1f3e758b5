import json
import re

import pytest

from doublure.evaluate import Report
from doublure.report import tables, tiles
from doublure.report.cells import make_card
from doublure.report.evaluation import PAGES


@pytest.fixture(scope="module")
def html(hostile_report):
    return hostile_report.to_html()


@pytest.fixture(scope="module")
def page(html, parse):
    return parse(html)


def test_nothing_hostile_becomes_markup(html, page):
    assert "script" not in page.tags
    assert "<script" not in html
    assert "&lt;script&gt;alert" in html
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_text_cannot_be_turned_round(html):
    assert "\u202e" not in html
    assert r"safe\u202egnp.exe" in html


def test_long_names_are_shortened(html):
    assert "a name that goes on and on a name that goes on…"[:40] in html
    assert "a name that goes on and on " * 3 not in html


def test_the_page_is_one_file_and_loads_nothing(html, page):
    policy = page.attribute("meta", "content")[0]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert not {"link", "iframe", "object", "embed", "form", "base", "audio", "video"} & set(page.tags)
    for _, name, value in page.attributes:
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("data:image/png;base64,", "#"))
    assert not re.findall(r"@import|url\((?!#)", html)
    assert not re.findall(r"https?://(?!www\.w3\.org/)", html)


def test_every_page_says_internal_on_screen_and_in_print(html, page):
    assert page.text.count("computed on real data: do not publish") >= 3
    band = html[html.index('class="band"') :][:120]
    assert "INTERNAL" in band
    assert '@top-center { content: "INTERNAL: computed on real data: do not publish"; }' in html
    assert "position: fixed" in html[html.index("@media print") :]
    assert 'class="watermark"' in html


def test_ids_are_unique_and_references_resolve(html, page):
    assert len(set(page.ids)) == len(page.ids)
    wanted = set(re.findall(r"url\(#([^)]*)\)", html)) | {
        value[1:] for _, name, value in page.attributes if name == "xlink:href" and value.startswith("#")
    }
    assert wanted
    assert wanted <= set(page.ids)


def test_every_drawing_has_an_alternative_text(page):
    drawings = page.tags.count("svg")
    assert drawings == 6 + 4 + 4 + 3  # frequencies, quantile bins, densities, maps
    assert page.attribute("svg", "role") == ["img"] * drawings
    assert all(page.attribute("svg", "aria-label"))


def test_the_verdict_and_the_guarantee_stand_first(hostile_report, page):
    said = hostile_report.verdict
    text = " ".join(page.text.split()).replace("\u00a0", " ")
    places = [
        text.index(part.replace("\u00a0", " ").replace("\u202e", r"\u202e"))
        for part in (said.headline, "No privacy guarantee. Do not publish.", "Prediction (TSTR)", "How this was made")
    ]
    assert places == sorted(places)


def test_the_baseline_stands_beside_every_figure(hostile_report):
    content = PAGES["table"].content(hostile_report.table)
    cells, shown = [make_card(score)["cell"] for score in content.cards], content.more
    cells += [cell for metric in shown["utility"]["metrics"] for _, cell in metric["rows"]]
    cells += [group["cell"] for group in shown["groups"]["rows"]]
    cells += [entry["variation"] for entry in (*shown["columns"], *shown["pairs"])]
    assert len(cells) > 20
    assert all(cell.baseline != "–" and set(cell.dots) == {"baseline", "real", "synthetic"} for cell in cells)
    assert all(0 <= place <= 100 for cell in cells for place in cell.dots.values())


def test_only_groups_that_stand_out_are_marked(hostile_report, html):
    clear = sum(group.clear for group in hostile_report.table.groups.groups)
    assert clear == 0
    assert "loses more</span>" not in html


def test_a_bare_table_has_a_page_too(hostile_report, parse):
    html = Report(table=hostile_report.table).to_html()
    assert "Evaluation of rows" in parse(html).text
    assert "No privacy guarantee. Do not publish." not in html


def test_the_page_of_a_table_without_target(hostile_report, parse):
    plain = hostile_report.table.model_copy(
        update={"utility": None, "groups": None, "utility_skipped": "The schema names no target."}
    )
    text = parse(Report(table=plain).to_html()).text
    assert "The schema names no target." in text
    assert "Subgroup accuracy" not in text


def test_written_files_are_private_and_whole_and_of_the_same_bytes(tmp_path, hostile_report, html):
    hostile_report.save(tmp_path / "page.html", tmp_path / "page.json")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html
    written = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert re.fullmatch("[0-9a-f]{64}", written.pop("sha256"))
    assert written == json.loads(hostile_report.to_json())
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "page.json"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


def test_saving_is_writing(tmp_path, hostile_report, monkeypatch):
    monkeypatch.setattr(Report, "to_html", lambda self: "a page")
    hostile_report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "a page"


def test_three_tiles_stand_on_top_and_terms_are_explained(hostile_report, html):
    names = [tile.name for tile in tiles.table_tiles(hostile_report.table.overall)]
    assert names
    assert re.findall(r'<article class="tile">\n<h2>([A-Za-z]+)</h2>', html) == names
    assert html.index('id="verdict"') < html.index('class="tiles"')  # the worst comes first
    assert html.index("the least to expect: each column drawn on its own") < html.index("<h2>Figures</h2>")


def test_what_is_worst_heads_its_table(hostile_report):
    shown = tables.table_context(hostile_report.table)
    finer = {entry.column: entry.variation for entry in hostile_report.table.marginals.columns}
    public = {entry.name: entry.variation.value for entry in hostile_report.table.fidelity.columns}
    far = [max(public[entry["name"]], finer.get(entry["name"], 0.0)) for entry in shown["columns"]]
    assert far == sorted(far, reverse=True)
    assert far[0] > far[-1]
    drawn = [entry["name"] for entry in shown["frequencies"]["drawings"]]
    assert drawn == [entry["name"] for entry in shown["columns"] if entry["name"] in drawn]


def test_groups_that_stand_out_head_theirs(hostile_report):
    groups = hostile_report.table.groups
    last = groups.groups[-1].model_copy(update={"clear": True})
    changed = groups.model_copy(update={"groups": (*groups.groups[:-1], last)})
    shown = tables.table_context(hostile_report.table.model_copy(update={"groups": changed}))["groups"]["rows"]
    assert [row["stands_out"] for row in shown[:2]] == [True, False]


def test_long_tables_are_folded_and_short_ones_are_not(html):
    folded = re.findall(r"<summary>([^<]*)</summary>", html)
    assert "The parts of the score, and how each follows from figures below" in folded
    assert any(re.fullmatch(r"\d+ figures", name) for name in folded)
    assert not [name for name in folded if re.match(r"6 columns", name)]


def test_scales_have_ends_and_say_which_way_is_better(hostile_report, html):
    assert all(entry.ends[0] and entry.ends[3] for _, entry in tables.table_context(hostile_report.table)["figures"])
    assert "← better" in html
    assert "better →" in html


def test_a_tile_says_a_thing_once(html, hostile_report):
    """Its question says what its score is; a page that says it again is read twice."""
    overall = hostile_report.table.overall
    tiles_of_page = html[html.index('class="tiles"') : html.index("<h2>Figures</h2>")]
    for component in overall.components:
        assert component.score.meaning not in tiles_of_page
    assert tiles_of_page.count("Are frequencies close to those of real records?") == 1
