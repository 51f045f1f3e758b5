"""--config run.yaml: every flag can stand in a file, and a flag on the command line wins."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def config(tmp_path):
    def write(text: str):
        (tmp_path / "run.yaml").write_text(text)
        return tmp_path / "run.yaml"

    return write


@pytest.fixture
def schema(small, tmp_path):
    (tmp_path / "people.schema.yaml").write_text(small.declared_text)
    return tmp_path / "people.schema.yaml"


GAN = "method: gan\nset: {steps: 6, lot_size: 32, critic_lr: 1e-3, loss: hinge}\n"


def test_flags_stand_in_a_file(doublure, config, schema, tmp_path):
    said = doublure("plan", schema, "--config", config(GAN + f"out: {tmp_path / 'plan.json'}\njson: true\n"))
    settings = said.result["result"]["settings"]
    assert (settings["steps"], settings["lot_size"], settings["critic_lr"], settings["loss"]) == (6, 32, 1e-3, "hinge")
    assert json.loads((tmp_path / "plan.json").read_text())["method"] == "gan"


def test_a_flag_on_the_command_line_wins(doublure, config, schema, tmp_path):
    file = config(GAN + f"out: {tmp_path / 'one.json'}\nepsilon: 1.0\n")
    said = doublure("plan", schema, f"--config={file}", "--set", "steps=9", "-o", tmp_path / "two.json", "--method=gan")
    assert said.code == 2  # epsilon is the file's, and gan takes none
    file = config(GAN + f"out: {tmp_path / 'one.json'}\nepsilon: null\n")
    said = doublure("plan", schema, f"--config={file}", "--set", "steps=9", "-o", tmp_path / "two.json", "--json")
    assert said.result["result"]["steps"] == 9
    assert (tmp_path / "two.json").is_file()
    assert not (tmp_path / "one.json").exists()


def test_the_file_may_come_before_the_verb(doublure, config, schema):
    found = doublure("--config", config(GAN), "plan", schema, "--json").result
    assert (found["ok"], found["command"]) == (True, "plan")


def test_short_flags_and_values_like_flags(doublure, config, small, tmp_path):
    file = config(f"n: 4\no: {tmp_path / 'bundle'}\ntitle: --json\n")
    (tmp_path / "copies").mkdir()
    run, _ = small.copies(tmp_path / "copies")
    said = doublure("release", run, "--config", file)
    assert (said.code, "\nWrote " in said.out) == (0, True)
    assert json.loads((tmp_path / "bundle" / "card.json").read_text())["title"] == "--json"


def test_a_config_file_in_a_config_file_is_refused(doublure, config, schema):
    assert "--config: cannot stand in a config file" in doublure("plan", schema, "--config", config("config: x")).line


def test_every_verb_takes_one(doublure, config, small, tmp_path):
    ledger = small.book(tmp_path).path
    assert doublure("budget", "show", ledger, "--config", config("json: true\n")).result["command"] == "budget show"
    (tmp_path / "copies").mkdir()
    run, _ = small.copies(tmp_path / "copies")
    given = "given: {sex: Female, age: 40, job: [cook, null]}"
    text = f"rows: 4\nout: {tmp_path / 'rows.csv'}\nseed: 3\n{given}\nspreadsheet-safe: true\n"
    assert doublure("sample", run, "--config", config(text)).code == 0
    assert (tmp_path / "rows.csv").read_text().count("Female") == 4
    text = f"rows: 4\nout: {tmp_path / 'bundle'}\nformat: [csv, parquet]\nspreadsheet_safe: true\ntitle: People\n"
    assert doublure("release", run, "--config", config(text)).code == 0
    assert (tmp_path / "bundle" / "data.parquet").is_file()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("- a\n- b\n", "not a mapping"),
        ("a: [1\n", "not valid YAML"),
        ("colour: red\n", "--colour"),
        ("epsilon: much\nmethod: dpgan\n", "--epsilon"),
        ("threads: {a: 1}\n", "--threads"),
        ("", "not a mapping"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(doublure, config, schema, text, hint):
    said = doublure("plan", schema, "--config", config(text))
    assert said.code == 2
    assert hint in said.line


def test_a_file_that_is_not_there_is_refused(doublure, schema, tmp_path):
    assert "no such file" in doublure("plan", schema, "--config", tmp_path / "none.yaml").line
    assert "needs a file" in doublure("plan", schema, "--config").line
    found = doublure("plan", schema, "--config", tmp_path / "none.yaml", "--json").result
    assert found["error"]["code"] == "input"
