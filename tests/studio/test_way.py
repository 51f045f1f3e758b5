"""The steps from a fit to a received bundle, without a browser: what they start, show, and refuse."""

from __future__ import annotations

import io
import json
import re
import shutil
import time
import zipfile
from argparse import Namespace
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from studios import StudioClient, said_again

import doublure as db
from doublure.studio.pages import render
from doublure.studio.runs import jobs_in
from doublure.studio.steps.release import STEP as RELEASE
from doublure.support.progress import StageProgress

pytestmark = pytest.mark.usefixtures("forked")

SCHEMA = """
doublure: 1
kind: table
unit: {name: person}
units: 300
columns:
  sex: {type: category, values: [Female, Male], missing: false}
  age: {type: integer, bounds: [0, 100], missing: false}
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, people, forked):
    """A project that is planned: data, schema, ledger, plan."""
    folder = tmp_path_factory.mktemp("planned")
    people.to_csv(folder / "people.csv", index=False)
    (folder / "people.schema.yaml").write_text(SCHEMA)
    client = StudioClient(folder)
    assert client.post("/data/choose", place="people.csv", schema="people.schema.yaml").status_code == 200
    said = {"cap_epsilon": "1.5", "cap_delta": "1e-3", "epsilon": "1", "delta": "1e-6", "dataset": "people"}
    answer = client.post("/budget/keep", **said)
    assert (folder / "plan.json").is_file(), answer.text
    return folder


@pytest.fixture
def client(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "project")
    return StudioClient(tmp_path / "project")


def ended(client, verb, **about):
    until = time.monotonic() + 90
    while (job := jobs_in(client.studio).latest(verb, **about)).alive:
        assert time.monotonic() < until, job.messages
        time.sleep(0.05)
    return job


@pytest.fixture(scope="module")
def fitted(prepared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted") / "project"
    shutil.copytree(prepared, folder)
    client = StudioClient(folder)
    client.post("/fit/start")
    assert ended(client, "fit").state == "done", ended(client, "fit").line
    return folder


@pytest.fixture
def done(fitted, tmp_path):
    shutil.copytree(fitted, tmp_path / "done")
    return StudioClient(tmp_path / "done")


def test_a_fit_runs_by_itself_and_its_page_shows_what_it_costs(fitted):
    client = StudioClient(fitted)
    shown = client.get("/fit").text
    assert "✓ run is finished" in shown
    assert "doublure fit people.csv --plan plan.json --ledger people.ledger -o run" in shown
    assert "doublure fit people.csv" in (fitted / "commands.sh").read_text()
    assert db.load(fitted / "run").guarantee.epsilon == 1.0


def test_the_same_plan_is_not_charged_twice_by_mistake(done):
    jobs = len(jobs_in(done.studio).all())
    answer = done.post("/fit/start")
    assert answer.status_code == 422
    assert "charged to people already" in answer.text.split('id="again-error"')[1]
    assert "--again" not in answer.text
    assert len(jobs_in(done.studio).all()) == jobs
    assert "✓ run is finished" in done.get("/fit").text  # the run that was paid for stays the one of the next steps


def test_a_fit_that_is_refused_hides_no_finished_run(done):
    done.studio.change(done.project.version, lambda before: before.answer("fit", run="run-2"), "")
    for path in ("/look", "/release"):
        shown = done.get(path).text
        assert "run-2 is not finished, and run is." in shown
        assert "Fit one first" not in shown
    done.post("/fit/choose", run="run")
    assert "run-2" not in done.get("/release").text


def test_a_fit_beyond_the_cap_says_why_it_cannot_begin(done):
    ledger, plan = db.Ledger.open(done.studio.root / "people.ledger"), db.Plan.load(done.studio.root / "plan.json")
    while ledger.remaining.epsilon >= plan.epsilon:
        assert "disabled" not in done.get("/fit").text
        ledger.reserve(plan)
    shown = done.get("/fit").text
    assert 'id="start" disabled aria-describedby="beyond"' in shown
    assert "would be passed" in shown.split('id="beyond"')[1].split("</p>")[0]
    assert re.search(r'id="again"[^>]* disabled', shown)
    assert 'href="/budget?most=left"' in shown
    left = ledger.remaining.epsilon
    form = said_again(done.get("/budget", params={"most": "left"}), "/budget/keep")
    assert 0 < float(form["epsilon"]) <= left < plan.epsilon
    more = done.post("/budget/keep", **form | {"epsilon": str(2 * left)})
    assert more.status_code == 422
    assert "that is left" in more.text
    assert float(said_again(more, "/budget/keep")["delta"]) <= ledger.remaining.delta
    done.post("/fit/start", again="yes")  # of a page that was shown before
    assert "would be passed" in ended(done, "fit").line
    assert done.post("/budget/keep", **form).status_code == 200
    ledger.refuse_beyond_cap(db.Plan.load(done.studio.root / "plan.json"))  # it fits now
    assert 'id="beyond"' not in done.get("/fit").text
    ledger.reserve(db.Plan.load(done.studio.root / "plan.json"))
    shown = done.get("/fit").text
    assert "Nothing is left" in shown
    assert "most=left" not in shown
    assert "no more than what is left" not in done.get("/budget", params={"most": "left"}).text


def test_a_second_tab_starts_no_second_fit(client):
    client.post("/fit/start")
    stale = client.post("/fit/start", version=client.project.version - 1)
    assert stale.status_code in (409, 422)
    second = client.post("/fit/start")
    assert second.status_code == 422
    assert "runs already" in second.text
    jobs_in(client.studio).latest("fit").stop()
    ended(client, "fit")
    assert len(jobs_in(client.studio).all()) == 1


def test_a_stale_plan_is_not_fitted(client):
    path = client.studio.root / "people.schema.yaml"
    client.post("/data/choose", place="people.csv", schema=path.name)
    path.write_text(SCHEMA.replace("[0, 100]", "[0, 90]"))
    client.post("/data/choose", place="people.csv", schema=path.name)
    assert "was changed after the plan" in client.get("/fit").text
    assert "older schema" in client.post("/fit/start").text


@pytest.fixture(scope="module")
def released(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("released") / "project"
    shutil.copytree(fitted, folder)
    client = StudioClient(folder)
    client.post("/release/write", what="bundle", rows="200", formats="csv", title="Synthetic <b>people</b>",
                contact="a@example.org", licence="CC BY 4.0", tables="yes")  # fmt: skip
    assert ended(client, "release").state == "done", ended(client, "release").line
    unchecked = client.get("/release").text
    assert "/release/archive" not in unchecked
    assert 'id="unverified"' in unchecked
    unsent = client.get("/release/archive")
    assert (unsent.status_code, unsent.text.count("\n")) == (409, 0)
    assert not RELEASE.done(client.studio)
    client.post("/release/check")
    assert ended(client, "verify").state == "done"
    return folder


def test_the_release_says_what_goes_to_whom(released):
    client = StudioClient(released)
    shown = client.get("/release").text
    assert "✓ It agrees with its card" in shown
    assert "bundle.zip" in shown
    assert "Send the fingerprint" in shown
    assert "What doublure release said" in shown
    assert "What doublure verify said" in shown
    assert shown.index("doublure verify bundle") > shown.index("What doublure verify said")
    assert db.verify(released / "bundle", ledger=released / "people.ledger")["epsilon"] == 1.0
    assert zipfile.is_zipfile(io.BytesIO(client.get("/release/archive").content))
    card = client.get("/release/written")
    assert "Synthetic &lt;b&gt;people&lt;/b&gt;" in card.text
    assert card.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_a_bundle_that_does_not_agree_with_its_card_is_not_to_be_sent(released, tmp_path):
    client = StudioClient(shutil.copytree(released, tmp_path / "changed"))
    rows = tmp_path / "changed" / "bundle" / "synthetic.csv"
    rows = rows if rows.is_file() else next((tmp_path / "changed" / "bundle").rglob("*.csv"))
    rows.write_text(rows.read_text() + "Female,20\n")
    client.post("/release/check")
    assert ended(client, "verify").state == "refused"
    shown = client.get("/release").text
    assert "Send nothing of it" in shown
    assert "Send the bundle" not in shown
    assert "/release/archive" not in shown
    assert '<details id="another" open>' in shown
    assert "Write another</a> below" in shown
    assert client.get("/release/archive").status_code == 409
    assert not RELEASE.done(client.studio)


def test_a_bundle_that_was_written_wrong_is_not_to_be_written_again(released, tmp_path):
    """Its card and files are as they were written, and the check refuses it all the same: by its ledger, say."""
    client = StudioClient(shutil.copytree(released, tmp_path / "wrong"))
    (check,) = [job for job in jobs_in(client.studio).all() if job.verb == "verify"]
    said = {"code": "gate", "field": "data.parquet", "message": "does not hold the cells of data.csv", "remedy": None}
    check.outcome_file.write_text(json.dumps({"ok": False, "result": None, "error": said}))
    shown = client.get("/release").text
    assert "Nothing in bundle was changed after it was written" in shown
    assert "Write another</a>" not in shown
    assert '<details id="another">' in shown
    assert client.get("/release/archive").status_code == 409


def test_a_check_of_another_bundle_offers_nothing(released, tmp_path):
    client = StudioClient(shutil.copytree(released, tmp_path / "other"))
    assert RELEASE.done(client.studio)
    assert client.get("/release/archive").status_code == 200
    card = client.studio.root / "bundle" / "card.json"
    card.write_text(card.read_text().replace("CC BY 4.0", "CC0 1.0"))
    assert not RELEASE.done(client.studio)
    assert client.get("/release/archive").status_code == 409


def test_a_page_of_rows_to_compare_with_lists_files_of_rows_alone(released):
    listed = re.findall(r'<option value="([^"]+)"', StudioClient(released).get("/look").text)
    assert set(listed) == {"people.csv"}


def test_what_is_left_in_the_ledger_follows_its_charge(client):
    assert "ε = 1.5" in client.get("/fit/left").text
    client.post("/fit/start")
    ended(client, "fit")
    assert "ε = 0.5" in client.get("/fit/left").text
    assert "data-poll" not in client.get("/fit/left").text


def test_a_stage_whose_work_is_done_shows_no_full_bar(fitted):
    job = jobs_in(StudioClient(fitted).studio).latest("fit")
    asked = {"job": job, "alive": True, "step": "fit"}
    now = StageProgress(stage="noise", number=2, total=6_000, done=6_000, elapsed=3.0, left=None)
    shown = render("progress.html.j2", asked | {"job": Namespace(name=job.name, progress=now)})
    assert "6,000 of 6,000" not in shown
    assert "<progress max" not in shown
    shown = render("progress.html.j2", asked | {"job": Namespace(name=job.name, progress=replace(now, done=5_999))})
    assert "5,999 of 6,000" in shown


def test_the_forecast_of_a_plan_that_is_made_stands_there_at_once(client):
    shown = client.get("/budget").text
    assert "Of the plan that is made" in shown
    assert "Reading the plan" not in shown


def test_the_saved_commands_are_those_that_ran(released):
    text = (released / "commands.sh").read_text()
    ran = {job.command for job in jobs_in(StudioClient(released).studio).all()}
    assert {line for line in ran if line.startswith("doublure ")} <= set(text.splitlines())


def test_the_card_as_it_will_be_is_framed_and_nothing_is_written(done):
    before = sorted(done.studio.root.iterdir())
    card = done.get("/release/card?" + urlencode({"title": "A <script>title</script>", "rows": "123"}))
    assert "A &lt;script&gt;title" in card.text
    assert card.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert sorted(done.studio.root.iterdir()) == before
    assert (
        '<iframe class="sheet-frame" sandbox loading="lazy" title=' in done.get("/release/preview?title=x&rows=5").text
    )
    assert done.get("/release/preview?title=x%22%3E%3Cscript%3E&rows=5").text.count("<script") == 0


def test_a_second_run_on_the_same_data_says_what_choosing_costs(done):
    assert "Choosing among runs" not in done.get("/look").text
    shutil.copytree(done.studio.root / "run", done.studio.root / "run-2")
    assert "Choosing among runs by looking at real data is not in ε" in done.get("/look").text


def test_what_is_compared_is_internal_and_framed(done):
    internal = done.studio.root / "run" / "internal"
    assert done.get("/look/page?which=report").status_code == 422
    (internal / "report.html").write_text("<!doctype html>INTERNAL")
    page = done.get("/look/page?which=report")
    assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert done.get("/look/page?which=../run.json").status_code == 422
    assert "INTERNAL" in done.get("/look").text


def opened(client, content, name="bundle.zip", **fields):
    files = {"archive_file": (name, content, "application/zip")}
    return client.post("/received/take", files=files, **fields)


def test_a_received_bundle_is_checked_shown_and_counted(released, tmp_path):
    (tmp_path / "there").mkdir()
    client = StudioClient(tmp_path / "there")
    shown = opened(client, (released / "bundle.zip").read_bytes(), "Bündel <b>.zip")
    assert ended(client, "verify").state == "done"
    name = str(shown.url).rpartition("bundle=")[2]
    shown = client.get(f"/received?bundle={name}&column=age&where0=sex&is0=Female").text
    assert "It agrees with its card" in shown
    assert "of 200 synthetic rows" in shown
    assert "compare this fingerprint" in shown
    frame = re.search(
        r'<iframe class="sheet-frame" sandbox loading="lazy" title="[^"]*" src="([^"]*)"></iframe>', shown
    )
    card = client.get(frame[1].replace("&amp;", "&"))
    assert card.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "allow-same-origin" not in shown
    wrong = client.get(f"/received?bundle={name}&where0=age&is0=old")
    assert "cannot be asked for that" in wrong.text


def test_a_forged_bundle_is_refused_and_its_card_is_not_shown(released, tmp_path):
    (tmp_path / "there").mkdir()
    client = StudioClient(tmp_path / "there")
    forged = io.BytesIO()
    with zipfile.ZipFile(forged, "w") as archive:
        for each in sorted(released.joinpath("bundle").rglob("*")):
            if each.is_file():
                content = each.read_bytes()
                content += b"<script>alert(1)</script>" if each.name == "card.html" else b""
                archive.writestr(each.relative_to(released).as_posix(), content)
    name = str(opened(client, forged.getvalue()).url).rpartition("bundle=")[2]
    assert ended(client, "verify").state == "refused"
    shown = client.get(f"/received?bundle={name}").text
    assert "Do not rely on this bundle" in shown
    assert "iframe" not in shown
    assert client.get(f"/received/card?bundle={name}").status_code == 422


def test_a_bundle_that_changed_after_its_check_is_not_shown(released, tmp_path):
    shutil.copytree(released / "bundle", tmp_path / "bundle")
    client = StudioClient(tmp_path)
    client.post("/received/take", archive="bundle")
    assert ended(client, "verify").state == "done"
    assert client.get("/received/card?bundle=bundle").status_code == 200
    card = tmp_path / "bundle" / "card.json"
    card.write_text(card.read_text() + " ")
    assert client.get("/received/card?bundle=bundle").status_code == 422


@pytest.mark.parametrize("name", ["../../etc", "/etc", "run/internal", "received/../..", "x\u202ey", "%2e%2e"])
def test_no_name_leads_out_of_the_folder(done, name):
    for address in (f"/received?{urlencode({'bundle': name})}", f"/received/card?{urlencode({'bundle': name})}"):
        assert done.get(address).status_code == 422
    assert done.post("/received/take", archive=name).status_code == 422
    assert done.post("/fit/choose", run=name).status_code in (200, 422)
    assert done.get("/look/page?which=report").status_code == 422


def test_an_archive_that_leads_out_is_one_line(tmp_path):
    client = StudioClient(tmp_path)
    hostile = io.BytesIO()
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr("b/card.json", "{}")
        archive.writestr("../escaped.txt", "x")
    answer = opened(client, hostile.getvalue())
    assert answer.status_code == 422
    assert "leads elsewhere" in answer.text
    assert not list(tmp_path.rglob("escaped.txt"))
    assert not list((tmp_path / "received").iterdir())
    assert "no ZIP file" in opened(client, b"nothing", "<script>alert(1)</script>.zip").text


def test_a_wrong_number_of_rows_is_said_beside_its_field(done):
    answer = done.post("/release/write", what="bundle", rows="many")
    assert answer.status_code == 422
    assert "not a number" in answer.text
    assert jobs_in(done.studio).latest("release") is None
