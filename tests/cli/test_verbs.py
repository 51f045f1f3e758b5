"""Every verb says what it did to a person, and to a program with --json: one object on stdout and nothing else."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import doublure as db
from doublure.support.files import temporary_path

TINY = [
    "--set", "steps=6", "--set", "lot_size=32", "--set", "width=8", "--set", "critic_width=8", "--set", "noise_width=4",
    "--set", "generator_batch=32", "--set", "checkpoints=3", "--set", "accountant=rdp",
]  # fmt: skip


@pytest.fixture
def schema(small, tmp_path):
    path = tmp_path / "people.schema.yaml"
    path.write_text(small.declared_text)
    return path


@pytest.fixture
def plan(small, tmp_path):
    small.plan.save(tmp_path / "plan.json")
    return tmp_path / "plan.json"


def test_schema_draft(doublure, small, tmp_path):
    data, out = small.csv(tmp_path), tmp_path / "draft.yaml"
    found = doublure("schema", "draft", data, "-o", out, "--json").result
    assert found["command"] == "schema draft"
    assert found["result"]["path"] == str(out)
    assert found["result"]["columns"] == 11
    assert "columns.age.bounds" in found["result"]["undeclared"]
    assert "age" in db.Schema.load(out).columns
    out.unlink()
    said = doublure("schema", "draft", data, "-o", out)
    assert "facts still undeclared" in said.out
    assert f"doublure schema check {out}" in said.out


def test_schema_draft_with_a_codebook(doublure, small, tmp_path):
    (tmp_path / "codebook.csv").write_text("column,type,values,lower,upper,missing\nage,integer,,17,90,false\n")
    out = tmp_path / "draft.yaml"
    doublure("schema", "draft", small.csv(tmp_path), "--codebook", tmp_path / "codebook.csv", "-o", out)
    assert db.Schema.load(out).columns["age"].bounds == (17, 90)


def test_schema_check(doublure, schema, small, tmp_path):
    found = doublure("schema", "check", schema, "--data", small.csv(tmp_path), "--json").result
    assert found["command"] == "schema check"
    assert found["result"]["ok"] is True
    assert f"\n# Next: doublure plan {schema} " in doublure("schema", "check", schema).out
    schema.write_text(schema.read_text().replace("bounds: [17, 90]", "bounds: undeclared"))
    said = doublure("schema", "check", schema)
    assert said.code == 4  # a check said no
    assert "# Next" not in said.out
    assert "age: {type: integer, bounds: [LOWER, UPPER]" in said.out
    assert said.err.startswith("doublure: columns.age.bounds: is undeclared; ")
    found = doublure("schema", "check", schema, "--json")
    assert (found.code, found.result["ok"]) == (4, False)
    assert found.result["error"]["code"] == "gate"
    assert found.result["error"]["field"] == "columns.age.bounds"


def test_budget(doublure, tmp_path):
    ledger = tmp_path / "people.ledger"
    made = doublure("budget", "init", ledger, "--dataset", "people", "--epsilon", 3, "--delta", 1e-4, "--json").result
    assert made["command"] == "budget init"
    assert made["result"]["cap"] == {"epsilon": 3.0, "delta": 1e-4}
    shown = doublure("budget", "show", ledger, "--json").result
    assert shown["result"]["remaining"] == {"epsilon": 3.0, "delta": 1e-4}
    said = doublure("budget", "show", ledger)
    assert "remaining  ε = 3" in said.out
    assert "covers all fits recorded" in said.out
    assert doublure("budget", "verify", ledger, "--json").result["result"]["sequence"] == 1


def test_plan(doublure, schema, small, tmp_path):
    out = tmp_path / "new.json"
    words = ["plan", schema, "--method", "dpgan", "--epsilon", 2, "--delta", 1e-4, *TINY, "-o", out]
    found = doublure(*words, "--json").result
    assert found["command"] == "plan"
    assert found["result"] == json.loads(out.read_text())
    assert db.Plan.load(out).settings == small.plan.settings
    said = doublure(*words)
    assert "train the critic" in said.out
    assert said.out.endswith(f"\n{out} holds this plan already\n")
    out.unlink()
    assert doublure(*words).out.endswith(f"\nWrote {out}\n")


def test_fit_sample_release_verify(doublure, plan, small, tmp_path):
    data, ledger, run, bundle = small.csv(tmp_path), small.book(tmp_path).path, tmp_path / "run", tmp_path / "bundle"
    found = doublure("fit", data, "--plan", plan, "--ledger", ledger, "-o", run, "--seed", 1, "--threads", 1, "--json")
    assert found.result["result"]["run"] == str(run)
    assert found.result["result"]["guarantee"]["sentence"] == small.plan.guarantee.sentence
    assert set(found.result["result"]["ledger"]) == {"dataset", "path", "reservation", "sequence"}
    assert "train" in found.err

    rows = tmp_path / "rows.csv"
    words = ["sample", run, "-n", 25, "--given", "sex=Female", "--given", "age=40", "--seed", 3, "-o"]
    sampled = doublure(*words, rows, "--json").result["result"]
    assert (sampled["rows"], sampled["path"]) == (25, str(rows))
    assert set(pd.read_csv(rows)["age"]) == {40}
    said = doublure(*words, tmp_path / "rows.parquet")
    assert "Wrote 25 synthetic rows" in said.out
    assert pd.read_parquet(tmp_path / "rows.parquet")["age"].tolist() == pd.read_csv(rows)["age"].tolist()

    card = doublure("release", run, "-n", 40, "-o", bundle, "--title", "People", "--json").result["result"]["card"]
    assert card == json.loads((bundle / "card.json").read_text())
    assert doublure("verify", bundle, "--ledger", ledger, "--json").result["result"]["files"] == 7
    said = doublure("verify", bundle)
    assert "agrees with its card" in said.out
    assert "who wrote the card is not checked" in said.out
    for form in (["--format", "csv"], ["--format", "csv,parquet"], ["--format", "csv", "--format", "parquet"]):
        target = tmp_path / f"bundle{len(form)}{len(form[1])}"
        said = doublure("release", run, "-n", 5, "-o", target, "--spreadsheet-safe", *form)
        assert said.code == 0
        assert small.plan.guarantee.sentence in said.out


def test_the_same_plan_is_paid_for_again_only_if_that_is_said(doublure, plan, small, tmp_path):
    _, ledger = small.copies(tmp_path)
    words = ["fit", small.csv(tmp_path), "--plan", plan, "--ledger", ledger, "-o", tmp_path / "second"]
    said = doublure(*words)
    assert said.code == 3
    assert "the same plan was charged to people already: entry 2 of" in said.line
    assert "use that run, which costs nothing, or pay once more with again=True (--again)" in said.line
    assert doublure(*words, "--again").code == 0


def test_fit_from_a_schema(doublure, schema, small, tmp_path):
    ledger = small.book(tmp_path).path
    words = ["fit", small.csv(tmp_path), "--schema", schema, "--method", "gan", *TINY[:-2], "--ledger", ledger]
    said = doublure(*words, "-o", tmp_path / "run")
    assert said.code == 0
    assert "No privacy guarantee. Do not publish." in said.out


def test_fit_repeats_what_its_plan_warns_of_before_it_reads(doublure, schema, small, tmp_path):
    ledger = small.book(tmp_path).path
    words = ["fit", small.csv(tmp_path), "--schema", schema, "--method", "statistics", "--epsilon", 0.05]
    said = doublure(*words, "--delta", 1e-5, "--ledger", ledger, "-o", tmp_path / "run")
    assert said.code == 0, said.err
    made = db.plan(schema, method="statistics", epsilon=0.05, delta=1e-5)
    assert made.warnings
    place = said.err.index("  check")
    assert all(0 <= said.err.find(f"  Warning: {warning}") < place for warning in made.warnings)
    quiet = doublure("-q", *words, "--delta", 1e-5, "--ledger", ledger, "-o", tmp_path / "again", "--again")
    assert (quiet.code, quiet.err) == (0, "")


def test_evaluate_is_internal(doublure, small, tmp_path):
    run, _ = small.copies(tmp_path)
    found = doublure("evaluate", run, "--real", small.csv(tmp_path), "--json").result["result"]
    assert found["internal"] is True
    assert found["page"] == str(run / "internal" / "report.html")
    assert (run / "internal" / "report.json").is_file()
    said = doublure("evaluate", run, "--real", small.csv(tmp_path), "-o", tmp_path / "page.html")
    assert "do not publish" in said.out
    assert (tmp_path / "page.html").is_file()


def test_a_release_without_a_guarantee_says_so_first(doublure, schema, small, tmp_path):
    words = ["fit", small.csv(tmp_path), "--schema", schema, "--method", "gan", *TINY[:-2]]
    assert doublure(*words, "--ledger", small.book(tmp_path).path, "-o", tmp_path / "run").code == 0
    said = doublure("release", tmp_path / "run", "-n", 5, "-o", tmp_path / "bundle")
    assert said.out.startswith("*** No privacy guarantee. Do not publish. ***\n")


def test_attempts_that_came_to_nothing_are_folded(doublure, plan, small, tmp_path):
    ledger = small.book(tmp_path).path
    (tmp_path / "bad.csv").write_text(small.csv(tmp_path).read_text().replace("nurse", "", 1).replace("cook", "\0", 1))
    words = ["--plan", plan, "--ledger", ledger, "-o", tmp_path / "run"]
    for _ in range(2):
        assert doublure("fit", tmp_path / "bad.csv", *words).code == 2
    said = doublure("budget", "show", ledger)
    assert "and 2 attempts that drew no noise and cost nothing" in said.out
    assert "no-noise-drawn" not in said.out
    assert len(doublure("budget", "show", ledger, "--json").result["result"]["runs"]) == 2


def test_help_fits_its_lines(doublure, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], ["schema"], ["budget"], ["datasets"]):
        assert "..." not in doublure(*words, "--help").out.split("Commands:")[1]


def test_a_finished_run_says_that_it_is_finished(doublure, plan, small, tmp_path):
    run, ledger = small.copies(tmp_path)
    said = doublure("fit", small.csv(tmp_path), "--plan", plan, "--ledger", ledger, "-o", run)
    assert said.code == 2
    assert "holds a finished run; choose another -o, or sample from it" in said.line


def test_long_work_says_what_it_is_doing(doublure, small, tmp_path):
    run, _ = small.copies(tmp_path)
    data = small.csv(tmp_path)
    for words, stage in (
        (["sample", run, "-n", 5, "-o", tmp_path / "rows.csv"], "draw rows.csv"),
        (["release", run, "-n", 5, "-o", tmp_path / "bundle"], "draw data.parquet"),
        (["evaluate", run, "--real", data], "draw synthetic records"),
        (["compare", run, "--real", data], "draw synthetic records"),
    ):
        said = doublure(*words)
        assert said.code == 0
        assert f"  {stage}" in said.err.splitlines()
        assert stage not in said.out


def test_datasets(doublure):
    found = doublure("datasets", "list", "--json").result
    assert "adult" in {entry["name"] for entry in found["result"]["datasets"]}
    lines = doublure("datasets", "list").out.splitlines()
    assert any(line.startswith("adult") for line in lines)
    assert (
        len({line.index(entry["licence"]) for line, entry in zip(lines, found["result"]["datasets"], strict=True)}) == 1
    )


def test_doctor_names_records_that_were_left_behind(doublure, tmp_path):
    assert doublure("doctor", str(tmp_path), "--json").result["result"]["left_behind"] == []
    for run in ("run", "more/run"):
        (tmp_path / run / "internal").mkdir(parents=True)
        (tmp_path / run / "internal" / "codes").write_bytes(b"x")
    found = doublure("doctor", str(tmp_path))
    assert [line for line in found.out.splitlines() if "Left behind" in line and "--resume" in line]
    left = doublure("doctor", str(tmp_path), "--json").result["result"]["left_behind"]
    assert left == [str(tmp_path / run / "internal" / "codes") for run in ("more/run", "run")]


def test_doctor_names_records_of_a_run_that_was_killed_while_it_wrote_them(doublure, tmp_path):
    codes = tmp_path / "run" / "internal" / "codes"
    codes.parent.mkdir(parents=True)
    half = temporary_path(codes)
    half.write_bytes(b"1")
    left = doublure("doctor", str(tmp_path), "--json").result["result"]["left_behind"]
    assert left == [str(half)]


def test_doctor(doublure):
    found = doublure("doctor", "--json").result["result"]
    assert found["doublure"] == db.__version__
    assert found["problems"] == []
    assert "Everything works." in doublure("doctor").out


def test_version_and_help(doublure):
    assert doublure("--version").out.strip() == db.__version__
    said = doublure("--help")
    assert said.code == 0
    for verb in (
        "schema",
        "budget",
        "plan",
        "fit",
        "sample",
        "evaluate",
        "release",
        "verify",
        "datasets",
        "doctor",
        "demo",
    ):
        assert verb in said.out
        assert doublure(verb, "--help").code == 0
    for words in ([], ["schema"], ["budget"]):
        said = doublure(*words)
        assert (said.code, said.out) == (2, "")
        assert "Usage:" in said.err


def test_json_before_the_verb_means_the_same(doublure, tmp_path, small):
    ledger = small.book(tmp_path).path
    assert doublure("--json", "budget", "show", ledger).result == doublure("budget", "show", ledger, "--json").result


def test_a_plan_of_what_readers_want_says_what_is_granted(doublure, tmp_path):
    schema, wants, out = tmp_path / "s.yaml", tmp_path / "wants.yaml", tmp_path / "plan.json"
    schema.write_text(
        "doublure: 1\nkind: table\nunits: 9000\ncolumns:\n  age: {type: integer, bounds: [0, 9], missing: false}\n"
    )
    wants.write_text("- {column: age, within: 0.1}\n")
    said = doublure("plan", schema, "--want", wants, "--delta", 1e-5, "-o", out)
    assert said.code == 0, said.err
    epsilon = db.Plan.load(out).epsilon
    assert f"Least ε that grants all wants: {epsilon:g}\nWanted: age within 0.1; forecast 0." in said.out
    both = doublure("plan", schema, "--want", wants, "--epsilon", 1, "--delta", 1e-5)
    assert both.code == 2
    assert both.line == "doublure: --want: stands beside --epsilon, which follows from it; leave one out"
