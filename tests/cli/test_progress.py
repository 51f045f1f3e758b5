"""Progress on a terminal of the least usual width."""

from __future__ import annotations

import re

import pytest

from doublure.cli import terminal
from doublure.cli.terminal import TerminalProgress, clock, folded
from doublure.support import yaml12 as yaml_text


def test_both_times_are_named_and_a_line_has_room_for_an_interrupt(monkeypatch, capsys):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    with TerminalProgress() as progress:
        progress.stage("train the generator", 12_000)
        progress.at(7_560)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r" 7560/12000 elapsed 0:00:0\d, left [-0-9]:[-0-9]{2}:[-0-9]{2}", shown)
    assert progress._console.width == 77


def test_a_stage_that_counts_nothing_shows_how_long_it_takes(monkeypatch, capsys):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    with TerminalProgress() as progress:
        progress.stage("compare counts")
        progress.stage("train models", 9)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    lines = [each for each in re.split(r"[\r\n]+", shown) if "compare counts" in each]
    assert all(re.search(r"compare counts +[━╸╺]+ +elapsed 0:00:0\d *$", line) for line in lines)
    assert lines


@pytest.mark.parametrize("forced", ["", "1"])
def test_the_environment_switches_stages_off_and_no_warning(monkeypatch, capsys, forced):
    monkeypatch.setenv("FORCE_COLOR", forced)
    monkeypatch.setenv("DOUBLURE_PROGRESS", "0")
    with TerminalProgress() as progress:
        progress.tell(["Warning: a wide column"])
        progress.stage("train the generator", 12)
        progress.at(12)
    assert capsys.readouterr().err.split() == ["Warning:", "a", "wide", "column"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0, "0:00:00"), (558.9, "0:09:18"), (90_000, "1 day, 1:00:00"), (None, "-:--:--")]
)
def test_clock(seconds, said):
    assert clock(seconds) == said


def test_lines_are_broken_between_words_and_lose_none():
    text = (
        "Claim: (ε=1, δ=1e-06)-differentially private for one person, add/remove neighbours, full batch, 8 noisy steps"
    )
    shown = folded(f"short\n  {text}", 40)
    assert all(len(line) <= 40 for line in shown.splitlines())
    assert shown.split() == ["short", *text.split()]
    assert [line[:4] for line in shown.splitlines()[1:3]] == ["  Cl", "    "]
    path = "/a/" + "b" * 60
    assert folded(f"Wrote {path} now", 40).splitlines()[1].strip() == path


def test_yaml_that_is_broken_for_a_terminal_stays_yaml():
    text = "columns:\n  job: {type: category, values: [cook, nurse, driver, clerk], missing: ['?', 'n/a', 'none']}\n"
    assert yaml_text.parse(folded(text, 40), "s") == yaml_text.parse(text, "s")
    comment = "# every record counts as another person; where one has several, name the column"
    assert all(line.startswith("# ") for line in folded(comment, 40).splitlines())


def test_yaml_to_paste_keeps_its_lines_in_a_terminal(tmp_path, monkeypatch, doublure):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "60", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    values = ", ".join(f"value{number}" for number in range(12))
    column = f"job: {{type: category, values: [{values}], missing: undeclared}}"
    (tmp_path / "s.yaml").write_text(f"doublure: 1\nkind: table\nunits: 9\ncolumns:\n  {column}\n")
    lines = doublure("schema", "check", tmp_path / "s.yaml").out.splitlines()
    pasted = [line for line in lines if "job:" in line]
    assert len(pasted) == 2
    assert all(line.endswith("}") and "value11" in line for line in pasted)
    assert all(len(line) <= 60 for line in lines if line.startswith("# "))


def test_a_pipe_gets_lines_as_they_are(doublure):
    said = doublure("datasets", "list")
    assert max(map(len, said.out.splitlines())) > 80


def test_quiet_says_nothing_but_errors(doublure, tmp_path, monkeypatch):
    words = ["budget", "init", tmp_path / "a.ledger", "--dataset", "a", "--epsilon", 1, "--delta", "1e-5"]
    for flag in ("-q", "--quiet"):
        said = doublure(*words, flag)
        assert (said.code, said.out, said.err) == (0, "", "")
        assert doublure(flag, *words).line.startswith("doublure: ")
        (tmp_path / "a.ledger").unlink()
    assert doublure(*words).out
    monkeypatch.setattr(terminal, "_quiet", True)
    with TerminalProgress() as progress:
        progress.stage("fit", 10)
        progress.at(5)
    found = doublure("datasets", "list", "--json", "-q")
    assert found.result["ok"]
