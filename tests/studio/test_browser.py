"""The studio in a real browser: the whole way, what may go wrong on it, and that nothing leaves the machine."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pandas as pd
import pytest
import xlsxwriter
from browsing import Server, Visitor, chromium, kept_in, until
from tiers import by_tier

import doublure as db
from doublure.datasets.demo import demo_files
from doublure.releasing.signing import new_keys, sign, signing_key
from doublure.studio.jobs import StudioJobs
from doublure.studio.server import running
from doublure.support import yaml12
from doublure.support.files import write_json

STEPS = ("data", "people", "columns", "budget", "fit", "look", "release", "received")
HOSPITAL = Path(__file__).resolve().parents[3] / "shared" / "cases" / "hospital"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def enter(browser):
    """Enter studios, and leave them; no page asked for anything elsewhere or met an error."""
    visitors: list[Visitor] = []

    def enter(url, **how):
        visitors.append(Visitor(browser, url, **how))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        assert visitor.elsewhere() == []
        unexpected = [each for each in visitor.errors if "422" not in each and "409" not in each]
        assert unexpected == []
        visitor.leave()


def jobs_of(folder):
    return StudioJobs(folder / ".studio" / "jobs", folder)


def planned(visitor, *, data, rows, schema=None, epsilon="1", cap="3"):
    """Go from the data to a plan."""
    visitor.go("/data")
    visitor.fill(place=data, **({} if schema is None else {"schema": schema}))
    visitor.press("form button[type=submit]:has-text('Read the header')")
    visitor.wait("Who is protected?")
    visitor.page.locator("#who-one").check()
    visitor.fill(units=str(rows))
    visitor.press("button:has-text('Save')")
    visitor.go("/budget")
    visitor.fill(epsilon="2")
    visitor.wait("right at most 88")  # the forecast follows the field
    visitor.fill(epsilon=epsilon, dataset="people", cap_epsilon=cap)
    visitor.press("button:has-text('Make the plan')")
    visitor.wait("The plan is made")


def described(visitor, name, **facts):
    """Say what is public of a column."""
    visitor.go(f"/columns?edit={name}#edit")
    visitor.fill(**{f"edit--{key}": text for key, text in facts.items()})
    visitor.press("#edit button[type=submit]")
    visitor.wait(f"Saved: {name}")


def fitted(visitor):
    visitor.go("/fit")
    visitor.press("#start")
    visitor.wait("run is finished")


COLUMNS = ("age", "education", "sex", "capital-gain", "income")


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    """The bundled table: a few of its columns, and its first rows."""
    folder = tmp_path_factory.mktemp("census")
    demo_files(folder)
    for name, rows in (("adult.csv", 300), ("kept.csv", 100)):
        pd.read_csv(folder / name, dtype=str, nrows=rows)[list(COLUMNS)].to_csv(folder / name, index=False)
    schema = yaml12.load(folder / "adult.schema.yaml", "schema")
    columns = {name: facts for name, facts in schema["columns"].items() if name in COLUMNS}
    del schema["constraints"]
    (folder / "adult.schema.yaml").write_text(yaml12.dump({**schema, "columns": columns}))
    return folder


@pytest.fixture(scope="module")
def ready(census, browser, tmp_path_factory):
    """The way up to the fit, on the bundled table, by clicks alone."""
    with running(census) as address:
        visitor = Visitor(browser, address.url)
        assert "token" not in visitor.page.url
        planned(visitor, data="adult.csv", rows=300, schema="adult.schema.yaml", cap="1.5")
        assert visitor.elsewhere() == []
        assert visitor.errors == []
        visitor.leave()
    return Path(shutil.copytree(census, tmp_path_factory.mktemp("ready") / "project"))


@pytest.fixture(scope="module")
def walked(census, ready, browser, forked):
    """The whole way on the bundled table, by clicks alone."""
    with running(census) as address:
        visitor = Visitor(browser, address.url)
        fitted(visitor)
        visitor.press("#go-on")
        visitor.fill(real="adult.csv", holdout="kept.csv")
        visitor.page.locator("#examples").check()
        visitor.press("#evaluate")
        visitor.page.locator("iframe").first.wait_for()
        frame = visitor.page.frame_locator("iframe").first
        assert frame.locator(".band").inner_text().startswith("INTERNAL")
        frame.get_by_text("Real rows beside synthetic ones").first.wait_for()  # the frame may still load
        assert "Real rows beside synthetic ones" in frame.locator("main").inner_text()
        visitor.go("/release")
        visitor.fill(rows="200", title="Synthetic adults", contact="a@example.org", licence="CC BY 4.0")
        visitor.page.locator("#format-parquet").uncheck()
        visitor.press("#write")
        visitor.wait("bundle is written")
        visitor.press("#check")
        visitor.wait("It agrees with its card")
        with visitor.page.expect_download() as download:
            visitor.page.locator("#download").click()
        download.value.save_as(census / "sent.zip")
        assert visitor.elsewhere() == []
        assert visitor.errors == []
        visitor.leave()
    return census


def test_the_whole_way_ends_in_a_bundle_that_verifies(walked):
    assert db.verify(walked / "sent.zip", ledger=walked / "people.ledger")["epsilon"] == 1.0
    assert db.Ledger.open(walked / "people.ledger").spent.epsilon == 1.0
    commands = (walked / "commands.sh").read_text()
    for verb in ("plan", "fit", "evaluate", "release", "verify"):
        assert f"doublure {verb} " in commands


def test_no_cell_is_kept_beside_the_run(walked):
    """Cells of the examples that the evaluation showed are rare enough to be recognised."""
    frame = pd.read_csv(walked / "adult.csv", dtype=str)
    rare = set(frame["capital-gain"].loc[lambda gains: gains.str.len() == 4])
    assert rare
    figures = json.loads((walked / "run" / "run.json").read_text())
    assert figures["status"] == "done"
    for name, text in kept_in(walked).items():
        if Path(name).name == "process":  # a number of the system's, of as many digits
            continue
        words = set(text.replace(",", " ").split())
        assert not words & rare, name


LOOKS = by_tier([("light", 1280), ("dark", 390)], [(s, w) for s in ("light", "dark") for w in (1280, 390)])


def test_every_step_is_accessible(walked, enter):
    with running(walked) as address:
        visitor = enter(address.url)
        found = {}
        for step in STEPS:
            visitor.go(f"/{step}")
            for look in LOOKS:
                visitor.look(*look)
                if said := visitor.violations():
                    found[(step, *look)] = said
                assert visitor.overflow() == 0, (step, *look)
        assert found == {}


def test_a_received_bundle_is_opened_by_a_drop_and_counted(walked, enter, tmp_path):
    with running(tmp_path) as address:
        visitor = enter(address.url)
        visitor.go("/received")
        visitor.page.locator("#archive_file").set_input_files(str(walked / "sent.zip"))
        visitor.press("#open")
        visitor.wait("It agrees with its card")
        visitor.fill(column="sex")
        visitor.page.locator("#where0").select_option("sex")
        visitor.fill(is0="Female")
        visitor.press("#count")
        assert "of 200 synthetic rows" in visitor.page.locator("#counted").inner_text()
        visitor.page.locator("iframe").scroll_into_view_if_needed()
        frame = visitor.page.frame_locator("iframe")
        assert frame.locator("h1").inner_text() == "Synthetic adults"
        assert visitor.page.locator("iframe").get_attribute("sandbox") == ""
        assert visitor.violations() == []


def vouched(bundle, folder):
    """Write a bundle with a hostile page, signed by a publisher whose key the recipient has: its check passes."""
    shutil.copytree(bundle, folder / "bundle")
    new_keys(folder / "key")
    page, card = folder / "bundle" / "card.html", json.loads((bundle / "card.json").read_text())
    hostile = (
        "<script>document.title='ran';parent.document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
    )
    hostile += "<link rel=stylesheet href='http://example.invalid/a.css'>"
    hostile += (
        "<meta http-equiv=refresh content='0;url=http://example.invalid/b'><link rel=preconnect href=//example.invalid>"
    )
    page.write_text(page.read_text().replace("<head>", f"<head>{hostile}").replace("Content-Security-Policy", "x"))
    for entry in card["files"]:
        entry["sha256"] = hashlib.sha256((folder / "bundle" / entry["path"]).read_bytes()).hexdigest()
    write_json(folder / "bundle" / "card.json", card)
    sign(
        folder / "bundle",
        (folder / "bundle" / "card.json").read_bytes(),
        signing_key(folder / "key", folder / "bundle"),
    )


def test_no_script_runs_in_a_page_that_a_trusted_publisher_signed(walked, enter, tmp_path):
    vouched(walked / "bundle", tmp_path)
    assert db.verify(tmp_path / "bundle", key=tmp_path / "key.pub")["page"] == "signature"
    with running(tmp_path) as address:
        visitor = enter(address.url)
        visitor.go("/received?bundle=bundle")
        visitor.page.locator("#key").select_option("key.pub")
        visitor.press("#check")
        visitor.wait("It agrees with its card")
        visitor.page.locator("iframe").scroll_into_view_if_needed()
        frame = visitor.page.frame_locator("iframe")
        frame.locator("h1").wait_for()
        assert frame.locator("html").evaluate("() => self.origin") == "null"
        assert frame.locator("html").evaluate("() => document.title") != "ran"
        assert visitor.page.title() != "ran"
        assert any("Content Security Policy" in each for each in visitor.errors)
        assert visitor.elsewhere() in ([], ["http://example.invalid/a.css"])  # asked for, and refused by the policy
        visitor.errors.clear()
        visitor.asked.clear()


def test_a_second_fit_is_refused_by_the_cap_in_one_line(walked, enter, tmp_path):
    shutil.copytree(walked, tmp_path / "again")
    with running(tmp_path / "again") as address:
        visitor = enter(address.url)
        visitor.go("/fit")
        visitor.wait("would be passed")
        assert "Plan for no more than what is left" in visitor.text()
        assert visitor.page.locator("#start").is_disabled()
        assert visitor.violations() == []


def test_a_killed_server_loses_no_fit(ready, enter, forks, tmp_path):
    folder = tmp_path / "killed"
    shutil.copytree(ready, folder)
    server = Server(folder, forks)
    visitor = enter(server.url)
    visitor.go("/fit")
    visitor.press("#start")
    visitor.wait("Closing this page does not stop it")
    said = server.kill()
    assert [line for line in said.splitlines() if line.startswith("http")] == [server.url]
    assert "GET" not in said
    job = jobs_of(folder).latest("fit")
    assert job.alive
    begun = folder / "run" / "run.json"
    until(lambda: '"sequence"' in (begun.read_text() if begun.is_file() else ""))
    os.kill(int((job.path / "process").read_text()), signal.SIGKILL)
    until(lambda: not job.alive)
    visitor.page.goto("about:blank")
    visitor.errors.clear()  # its polls met no server
    with running(folder) as address:
        visitor = enter(address.url)
        visitor.go("/fit")
        if "run is finished" not in visitor.text():
            assert "Going on costs nothing more" in visitor.text()
            lost = [0]
            visitor.page.route("**/fit/progress*", lambda route: (lost.append(0), route.fulfill(status=422)), times=1)
            visitor.press("#resume")
            # The page asks again, though one answer was an error. One killed between paying and keeping is not gone on.
            ends = ("run is finished", "was cut off between paying for")
            until(lambda: any(end in visitor.text() for end in ends))
            assert jobs_of(folder).latest("fit").state == ("done" if ends[0] in visitor.text() else "refused")
            assert len(lost) == 2
        assert db.Ledger.open(folder / "people.ledger").spent.epsilon == pytest.approx(1.0)
        visitor.page.goto("about:blank")


def test_a_forecast_of_what_was_typed_before_is_marked_and_not_shown(ready, enter, tmp_path):
    folder = Path(shutil.copytree(ready, tmp_path / "project"))
    with running(folder) as address:
        visitor = enter(address.url)
        visitor.go("/budget")
        forecast = visitor.page.locator("#forecast")
        assert forecast.get_attribute("data-stale") is None
        held = []
        visitor.page.route("**/budget/forecast?*", lambda route: held.append(route))
        visitor.page.locator("#decided_name").fill("Jo")
        assert forecast.get_attribute("data-stale") is None  # a name changes no figure
        visitor.page.locator("#epsilon").fill("0.7")
        assert forecast.get_attribute("data-stale") == ""
        assert "not of what stands here now" in visitor.page.locator("#made").inner_text()
        until(lambda: visitor.page.wait_for_timeout(50) is None and len(held) == 1)
        visitor.page.locator("#epsilon").fill("0.9")
        held[0].fulfill(body="<p>of 0.7</p>", content_type="text/html")
        until(lambda: visitor.page.wait_for_timeout(50) is None and len(held) == 2)
        assert "of 0.7" not in forecast.inner_text()
        assert forecast.get_attribute("data-stale") == ""
        held[1].fulfill(body="<p>of 0.9</p>", content_type="text/html")
        visitor.wait("of 0.9")
        assert forecast.get_attribute("data-stale") is None
        assert forecast.get_attribute("aria-busy") is None


def test_two_tabs_overwrite_nothing(walked, enter, tmp_path):
    shutil.copytree(walked, tmp_path / "tabs")
    with running(tmp_path / "tabs") as address:
        one, two = enter(address.url), enter(address.url)
        one.go("/people")
        two.go("/people")
        one.fill(units="610")
        one.press("button:has-text('Save')")
        two.fill(units="620")
        two.press("button:has-text('Save')")
        assert "changed in another tab" in two.text()
        one.go("/people")
        assert one.page.locator("#units").input_value() == "610"


def test_hostile_names_and_cells_are_text(enter, tmp_path):
    names = ["<script>document.title='ran'</script>.csv", "\u05d0\u05d1 \u0645.csv", "-rf.csv", "a'b\"c&d.csv"]
    cell = "x" * 10_000_000
    for name in names:
        (tmp_path / name.replace("/", "_")).write_text(
            "<img src=x onerror=document.title='ran'>,\u05e9\u05dc\u05d5\u05dd,n\na,b,1\n"
        )
    (tmp_path / "long.csv").write_text(f"a,b\n{cell},1\nx,2\n")
    (tmp_path / "\u202efdp.csv").write_text("a\n1\n")
    with running(tmp_path) as address:
        visitor = enter(address.url)
        for name in ("-rf.csv", "a'b\"c&d.csv", "long.csv", names[1]):
            visitor.go("/data")
            visitor.fill(place=name)
            visitor.press("button:has-text('Read the header')")
            assert "xxxxxxxxxx" not in visitor.page.content()
            visitor.go("/columns")
            assert name != names[1] or visitor.violations() == []
        visitor.go("/data")
        assert "\u202e" not in visitor.page.content()
        assert visitor.page.title() != "ran"


def test_a_folder_that_is_not_writable_is_one_line(enter, tmp_path, monkeypatch):
    from doublure.support import files

    (tmp_path / "people.csv").write_text("a,b\n1,2\n")

    def refuse(path, *args, **how):
        raise files.Unwritable(path, PermissionError(13, "Permission denied"))

    monkeypatch.setattr("doublure.studio.visit.write_atomic", refuse)  # root may write everywhere
    with running(tmp_path) as address:
        visitor = enter(address.url)
        visitor.go("/data")
        visitor.fill(place="people.csv")
        visitor.press("button:has-text('Read the header')")
        assert "choose a folder that you may write to" in visitor.text()


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_a_foreign_page_is_refused(tmp_path, headers, code):
    pytest.importorskip("uvicorn")
    with running(tmp_path) as address:
        for path in ("/fit", "/look/page?which=report", "/static/studio.js"):
            request = urllib.request.Request(f"http://127.0.0.1:{address.port}{path}", headers=headers)
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request)
            assert caught.value.code == code
            caught.value.close()


def test_another_site_cannot_use_the_visitors_cookie(enter, tmp_path):
    (tmp_path / "other").mkdir()
    with running(tmp_path) as address, running(tmp_path / "other") as elsewhere:
        visitor = enter(address.url)
        visitor.page.goto(elsewhere.url)  # another port: another origin, of the same site
        said = visitor.page.evaluate(
            "address => fetch(address, {method: 'POST', body: new URLSearchParams({version: '0'}), mode: 'no-cors',"
            " credentials: 'include'}).then(answer => answer.type, error => 'refused')",
            f"http://127.0.0.1:{address.port}/undo",
        )
        assert said in ("opaque", "refused")
        assert not (tmp_path / "project.yaml").exists()
        visitor.errors.clear()
        visitor.asked.clear()


def test_a_table_of_a_database(enter, people, forked, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "clinic.db")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM people")
    with running(tmp_path) as address:
        visitor = enter(address.url)
        visitor.go("/data")
        visitor.page.locator("#database summary").click()
        visitor.fill(url="duckdb:///clinic.db", table="people")
        visitor.press("button:has-text('Read the header')")
        visitor.page.locator("#who-one").check()
        visitor.fill(units="300")
        visitor.press("button:has-text('Save')")
        described(visitor, "sex", values="Female|Male", missing="no")
        described(visitor, "age", lower="0", upper="100", missing="no")
        visitor.go("/budget")
        visitor.fill(epsilon="1", dataset="clinic", cap_epsilon="2")
        visitor.press("button:has-text('Make the plan')")
        fitted(visitor)
        assert "--table people" in visitor.text()
        visitor.go("/look")
        assert "The data are in a database" in visitor.text()
        assert visitor.violations() == []


@pytest.mark.exhaustive
@pytest.mark.skipif(not HOSPITAL.is_dir(), reason="the hospital case is not here")
def test_a_hospital_and_its_codebook_in_excel_become_a_bundle(enter, tmp_path):
    """A steward who writes no Python, with a codebook in Excel: several rows a patient, codes, prices, one refusal."""
    subprocess.run([sys.executable, str(HOSPITAL / "make.py")], cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "project"
    folder.mkdir()
    for path in (tmp_path / "hospital.csv", HOSPITAL / "icd10.txt"):
        shutil.copy(path, folder)
    book = xlsxwriter.Workbook(str(tmp_path / "codebook.xlsx"))
    sheet = book.add_worksheet()
    with (HOSPITAL / "codes.csv").open(newline="") as file:
        for at, line in enumerate(csv.reader(file)):
            for place, cell in enumerate(line):
                sheet.write_string(at, place, cell)
    book.close()
    with running(folder) as address:
        visitor = enter(address.url)
        visitor.go("/data")
        visitor.fill(place="hospital.csv")
        visitor.page.locator("#codebook_file").set_input_files(str(tmp_path / "codebook.xlsx"))
        visitor.press("button:has-text('Read the header')")
        visitor.page.locator("#who-several").check()
        visitor.fill(id="MRN", max_records="2")
        visitor.page.locator("#counted-buy").check()
        visitor.fill(magnitude="2000")
        visitor.press("button:has-text('Save')")
        for names, button in ((("email", "icd10"), "propose"), (("note",), "leave_out")):
            visitor.go("/columns")
            for name in names:
                visitor.page.locator(f"input[name=names][value={name}]").check()
            visitor.page.locator("#many summary").first.click()
            visitor.press(f"button[value={button}]")
        visitor.go("/columns?edit=ZIP#edit")
        visitor.page.locator("[id='edit--values-state-learned']").check()
        visitor.press("#edit button[type=submit]")
        described(visitor, "dob", missing="no")
        described(visitor, "site", values="MAIN", missing="no")
        described(visitor, "icd10", values="icd10.txt")
        visitor.press("button:has-text('It holds')")
        visitor.go("/budget")
        visitor.fill(epsilon="3", dataset="hospital", cap_epsilon="6")
        visitor.press("button:has-text('Make the plan')")
        visitor.go("/fit")
        visitor.press("#start")
        visitor.wait("Nothing was charged")  # "<0.2" stands among numbers, and no codebook says so
        described(visitor, "creatinine", missing="<0.2")
        visitor.go("/budget")
        visitor.press("button:has-text('Make the plan')")
        fitted(visitor)
        visitor.go("/release")
        visitor.fill(rows="4000", title="Synthetic stays", licence="CC BY 4.0")
        visitor.press("#write")
        visitor.wait("bundle is written")
        visitor.press("#check")
        visitor.wait("It agrees with its card")
        assert visitor.violations() == []
    assert db.verify(folder / "bundle.zip", ledger=folder / "hospital.ledger")["epsilon"] == 3.0
