"""The commands as a person would run them, on bundled census data and, where present, on other real tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tiers import exhaustive

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.releasing.catalogue_names import NAMES

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
SETTINGS = ("steps=6", "lot_size=32", "width=8", "critic_width=8", "checkpoints=3", "accountant=rdp")  # rdp is quick
SMALL = [word for setting in SETTINGS for word in ("--set", setting)]
STEPS = 120  # enough that a signal finds the run at work


def doublure(*words: object) -> tuple[int, dict[str, Any]]:
    """Run one command with --json in this process; return its exit code and its object."""
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run_guarded(app, [*map(str, words), "--json"])
    lines = out.getvalue().splitlines()
    assert len(lines) == 1, "one JSON object on stdout"
    return code, json.loads(lines[0])


@pytest.fixture
def census(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small census table, its schema, and a ledger of ε = 4."""
    monkeypatch.chdir(tmp_path)
    db.datasets.load_adult().head(600).to_csv("adult.csv", index=False)
    schema = db.Schema.load(db.datasets.adult_schema_path())
    schema.save("adult.schema.yaml")
    assert doublure("budget", "init", "L", "--dataset", "adult", "--epsilon", 4, "--delta", "1e-4")[0] == 0
    return tmp_path


def fit(*more: object, out: str = "run", data: str = "adult.csv") -> tuple[int, dict[str, Any]]:
    words = ["--schema", "adult.schema.yaml", "--method", "dpgan", "--epsilon", 3, "--delta", "1e-5", *SMALL]
    return doublure("fit", data, *words, "--ledger", "L", "-o", out, *more)


def test_the_whole_way(census: Path) -> None:
    assert doublure("schema", "check", "adult.schema.yaml", "--data", "adult.csv")[0] == 0
    words = ["--method", "dpgan", "--epsilon", 3, "--delta", "1e-5", *SMALL]
    code, planned = doublure("plan", "adult.schema.yaml", *words, "-o", "plan.json")
    assert code == 0
    assert planned["result"]["steps"] == 6
    code, fitted = doublure("fit", "adult.csv", "--plan", "plan.json", "--ledger", "L", "-o", "run")
    assert code == 0
    assert "differentially private for one person" in fitted["result"]["guarantee"]["sentence"]
    present = {str(path.relative_to("run")) for path in Path("run").rglob("*") if path.is_file()}
    assert present >= {"run.json", "plan.json", "schema.yaml", "guarantee.json", "generator.safetensors", "log.jsonl"}
    assert (Path("run").stat().st_mode & 0o777) == 0o700

    code, sampled = doublure("sample", "run", "-n", 50, "--given", "income=>50K", "--seed", 1, "-o", "rows.csv")
    assert (code, sampled["result"]["rows"]) == (0, 50)
    code, released = doublure("release", "run", "-n", 120, "-o", "bundle")
    assert code == 0
    assert {path.name for path in Path("bundle").iterdir()} == {
        "data.csv",
        "data.parquet",
        "card.json",
        "card.html",
        "dictionary.json",
        *NAMES,
    }
    assert released["result"]["card"]["ledger"]["dataset"] == "adult"
    assert doublure("verify", "bundle", "--ledger", "L")[0] == 0
    assert doublure("budget", "verify", "L")[0] == 0
    code, shown = doublure("budget", "show", "L")
    assert [run["status"] for run in shown["result"]["runs"]] == ["done"]

    (Path("bundle") / "data.csv").write_text("edited\n")
    assert doublure("verify", "bundle", "--ledger", "L")[0] == 4


def test_evaluate_writes_an_internal_page(census: Path) -> None:
    assert fit()[0] == 0
    code, found = doublure("evaluate", "run", "--real", "adult.csv")
    assert code == 0
    assert found["result"]["internal"] is True
    page = Path(found["result"]["page"])
    assert page.parent.name == "internal"
    assert "do not publish" in page.read_text()


def test_budget_refused_before_the_data_is_opened(census: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from doublure.data.tables import opening as tables

    assert fit()[0] == 0
    monkeypatch.setattr(tables.TableSource, "load", lambda *_, **__: pytest.fail("the data was opened"))
    code, refused = fit("--again", out="second")
    assert code == 3
    assert refused["error"]["code"] == "budget"
    assert not Path("second").exists()


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["plan", "adult.schema.yaml", "--method", "dpgan", "--epsilon", "0", "--delta", "1e-6"], "epsilon"),
        (["plan", "adult.schema.yaml", "--method", "dpgan", "--epsilon", "1", "--delta", "0.01"], "delta"),
        (["plan", "adult.schema.yaml", "--method", "dpgan", "--epsilon", "0.05", "--delta", "1e-6"], "epsilon"),
        (["plan", "adult.schema.yaml", "--method", "dpgan", "--delta", "1e-6"], "epsilon"),
        (["plan", "adult.schema.yaml", "--method", "gan", "--epsilon", "1", "--delta", "1e-6"], "epsilon"),
        (["plan", "adult.schema.yaml", "--method", "nothing", "--epsilon", "1", "--delta", "1e-6"], "method"),
        (["sample", "nowhere", "-n", "1", "-o", "x.csv"], "nowhere"),
        (["verify", "nowhere"], "nowhere"),
        (["datasets", "fetch", "nothing"], None),
    ],
)
def test_bad_arguments_get_one_clear_line(census: Path, words: list[str], field: str | None) -> None:
    code, failed = doublure(*words)
    assert code == 2
    assert failed["ok"] is False
    assert field is None or field in str(failed["error"]["field"])
    assert failed["error"]["remedy"]
    assert "\n" not in failed["error"]["message"]


HEADER = "age,job\n"
BAD_TABLES = {
    "missing column": b"age,other\n1,a\n2,b\n",
    "wrong type": HEADER.encode() + b"1,a\nSENTINEL,b\n",
    "unknown category": HEADER.encode() + b"1,a\n2,SENTINEL\n",
    "empty file": b"",
    "one row": HEADER.encode() + b"1,a\n",
    "ragged": HEADER.encode() + b"1,a\n2\n",
    "NUL": HEADER.encode() + b"1,a\n2,\0SENTINEL\n",
    "not finite": HEADER.encode() + b"1,a\n1e999,b\n",
    "missing cell": HEADER.encode() + b"1,a\n,b\n",
    "duplicated names": b"age,age,job\n1,2,a\n3,4,b\n",
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables_get_one_clear_line_and_cost_nothing(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(BAD_TABLES[what])
    Path("s.yaml").write_text(
        "doublure: 1\nkind: table\nunits: 1000\ncolumns:\n"
        "  age: {type: integer, bounds: [0, 9], missing: false}\n"
        "  job: {type: category, values: [a, b], missing: false}\n"
    )
    ledger = db.Ledger.create("L", dataset="t", epsilon=1.0, delta=1e-4)
    words = ["fit", "t.csv", "--schema", "s.yaml", "--method", "dpgan", "--epsilon", "1", "--delta", "1e-5", *SMALL]
    assert run_guarded(app, [*words, "--ledger", "L", "-o", "run"]) == 2
    error = capsys.readouterr().err
    assert error.splitlines()[-1].startswith("doublure: ")
    assert "Traceback" not in error
    assert "SENTINEL" not in error
    assert ledger.spent.epsilon == 0
    assert not Path("run").exists() or db.Ledger.open("L").remaining.epsilon == 1.0


def test_flags_from_a_file(census: Path) -> None:
    Path("run.yaml").write_text(
        "method: dpgan\nepsilon: 3\ndelta: 1e-5\nset: {steps: 5, lot_size: 32, accountant: rdp}\n"
    )
    code, planned = doublure("plan", "adult.schema.yaml", "--config", "run.yaml", "--epsilon", 2)
    assert code == 0
    assert (planned["result"]["steps"], planned["result"]["epsilon"]) == (5, 2.0)


@contextmanager
def started(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a fit in a process of its own; however the test ends, so does the process, and its pipes are closed."""
    words = ["--schema", "adult.schema.yaml", "--method", "dpgan", "--epsilon", "3", "--delta", "1e-5"]
    settings = (f"steps={STEPS}", "lot_size=16", "checkpoints=30", "width=8", "accountant=rdp")
    words += [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "doublure", "fit", "adult.csv", *words, "--ledger", "L", "-o", "run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def authorised() -> int:
    return max((r.body["through_step"] for r in db.Ledger.open("L").entries if r.kind == "advance"), default=0)


def wait_for_steps(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while authorised() < 8:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.1)


@exhaustive
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_cut_off_goes_on_inside_its_reservation(census: Path, signal_number: int) -> None:
    """As ``test_kill.py`` does at every turning point, with the terminal's own process."""
    with started(census) as process:
        wait_for_steps(process)
        process.send_signal(signal_number)
        process.communicate(timeout=60)
    assert process.returncode == (130 if signal_number == signal.SIGINT else -signal.SIGKILL)
    before = authorised()
    assert 0 < before < STEPS
    assert db.Ledger.open("L").spent.epsilon == 3.0

    code, resumed = doublure("fit", "adult.csv", "--ledger", "L", "-o", "run", "--resume")
    assert code == 0, resumed
    ledger = db.Ledger.open("L")
    assert ledger.spent.epsilon == 3.0
    steps = [record.body["through_step"] for record in ledger.entries if record.kind == "advance"]
    assert steps == sorted(set(steps)), "no step was authorised twice"
    assert steps[-1] == STEPS
    assert len(db.load("run").sample(10)) == 10


@pytest.mark.parametrize(
    ("name", "roles"), [("mushroom", "class"), pytest.param("diabetes130", "readmitted", marks=exhaustive)]
)
def test_the_same_commands_on_other_tables(
    name: str, roles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = SHARED / f"{name}.csv.gz"
    if not data.is_file():
        pytest.skip("shared data is not here")
    monkeypatch.chdir(tmp_path)
    schema = ROOT / "examples" / "schemas" / f"{name}.schema.yaml"
    assert doublure("schema", "check", schema, "--data", data)[0] == 0
    assert doublure("budget", "init", "L", "--dataset", name, "--epsilon", 3, "--delta", "1e-5")[0] == 0
    words = ["--schema", schema, "--method", "dpgan", "--epsilon", 3, "--delta", "1e-6", *SMALL]
    assert doublure("fit", data, *words, "--ledger", "L", "-o", "run")[0] == 0
    value = str(db.load("run").schema.columns[roles].domain[0])
    code, sampled = doublure("sample", "run", "-n", 40, "--given", f"{roles}={value}", "-o", "rows.parquet")
    assert (code, sampled["result"]["rows"]) == (0, 40)
    assert doublure("release", "run", "-n", 40, "-o", "bundle")[0] == 0
    assert doublure("verify", "bundle", "--ledger", "L")[0] == 0


def test_an_internal_page_cannot_land_among_what_is_kept_or_published(census: Path) -> None:
    assert fit()[0] == 0
    assert doublure("release", "run", "-n", 20, "-o", "bundle")[0] == 0
    before = Path("run/plan.json").read_bytes()
    for place in ("run/plan.html", "bundle/page.html", "page.json"):
        code, refused = doublure("evaluate", "run", "--real", "adult.csv", "-o", place)
        assert (code, refused["error"]["field"]) == (2, place)
    assert Path("run/plan.json").read_bytes() == before
    assert doublure("verify", "bundle", "--ledger", "L")[0] == 0


def test_edited_row_counts_on_a_card_are_noticed(census: Path) -> None:
    assert fit()[0] == 0
    assert doublure("release", "run", "-n", 20, "-o", "bundle")[0] == 0
    card = json.loads(Path("bundle/card.json").read_text())
    card["files"][0]["rows"] = 999_999
    Path("bundle/card.json").write_text(json.dumps(card))
    assert doublure("verify", "bundle", "--ledger", "L")[0] == 4
