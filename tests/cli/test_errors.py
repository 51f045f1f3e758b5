"""Whatever is wrong: one line that names it and the way out, the right exit code, no traceback, an unharmed ledger."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import resource
import signal
import sys

import pytest

import doublure as db
from doublure import cli
from doublure.cli import main
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import defect_place
from doublure.report.evaluation import Report
from doublure.run import loading, running
from doublure.run.folder import RunFolder
from doublure.support import files

SECRET = "Sentinelle"


@pytest.fixture
def world(small, tmp_path):
    """Return the paths of a plan, its data and a ledger."""

    class AttackData:
        plan, schema, ledger, run = (tmp_path / name for name in ("plan.json", "s.yaml", "people.ledger", "run"))
        data = small.csv(tmp_path)

        def fit(self, data=None, **changes):
            words = {"--plan": self.plan, "--ledger": self.ledger, "-o": self.run} | changes
            return ["fit", data or self.data, *(part for pair in words.items() for part in pair)]

    small.plan.save(AttackData.plan)
    AttackData.schema.write_text(small.declared_text)
    small.book(tmp_path)
    return AttackData()


def check_nothing_happened(world, spent=0.0):
    book = db.Ledger.open(world.ledger)
    book.verify()
    assert book.spent.epsilon == spent
    assert not world.run.exists()


# -- bad data ----------------------------------------------------------------------------------------------------------


def lines_of(small):
    return small.frame(50).to_csv(index=False).encode().splitlines(keepends=True)


def replaced(small, name, cell, rows=slice(10, 12)):
    frame = small.frame(50).astype(object)
    frame.iloc[rows, list(frame.columns).index(name)] = cell
    return frame.to_csv(index=False).encode()


BAD_DATA = {
    "an empty file": ("people.csv", lambda small: b""),
    "blank lines": ("people.csv", lambda small: b"\n\n\n"),
    "a header alone": ("people.csv", lambda small: lines_of(small)[0]),
    "one record": ("people.csv", lambda small: b"".join(lines_of(small)[:2])),
    "no header": ("people.csv", lambda small: b"".join(lines_of(small)[1:])),
    "a column twice": ("people.csv", lambda small: b"".join(lines_of(small)).replace(b"age,", b"age,age,", 1)),
    "a column is gone": ("people.csv", lambda small: small.frame(50).drop(columns="job").to_csv(index=False).encode()),
    "an empty name": ("people.csv", lambda small: b"".join(lines_of(small)).replace(b"age,", b",", 1)),
    "lines of other lengths": ("people.csv", lambda small: b"".join(lines_of(small)) + b"1,2,3\n"),
    "an open quote": ("people.csv", lambda small: b"".join(lines_of(small)) + b'"1,2,3\n'),
    "NUL bytes": ("people.csv", lambda small: replaced(small, "code", "\0")),
    "latin-1": ("people.csv", lambda small: replaced(small, "code", "é").decode().encode("latin-1")),
    "text in a number": ("people.csv", lambda small: replaced(small, "age", SECRET)),
    "a number that is too large": ("people.csv", lambda small: replaced(small, "hours", "1e999")),
    "a decimal comma": ("people.csv", lambda small: replaced(small, "hours", "1,5")),
    "halves in an integer": ("people.csv", lambda small: replaced(small, "age", "40.5")),
    "a value outside the list": ("people.csv", lambda small: replaced(small, "code", SECRET)),
    "no truth value": ("people.csv", lambda small: replaced(small, "member", SECRET)),
    "no date": ("people.csv", lambda small: replaced(small, "day", "2021-02-30")),
    "missing cells": ("people.csv", lambda small: replaced(small, "age", "")),
    "bytes": ("people.csv", lambda small: bytes(range(256)) * 40),
    "half a gzip file": ("people.csv.gz", lambda small: gzip.compress(b"".join(lines_of(small)))[:-50]),
    "no gzip file": ("people.csv.gz", lambda small: b"".join(lines_of(small))),
    "no zip file": ("people.csv.zip", lambda small: b"".join(lines_of(small))),
    "no parquet file": ("people.parquet", lambda small: b"".join(lines_of(small))),
    "half a parquet file": ("people.parquet", lambda small: b"PAR1" + bytes(300)),
    "another ending": ("people.xlsx", lambda small: b"".join(lines_of(small))),
    "no ending": ("people", lambda small: b"".join(lines_of(small))),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(doublure, world, small, tmp_path, name):
    (tmp_path / "bad").mkdir()
    data = tmp_path / "bad" / BAD_DATA[name][0]
    data.write_bytes(BAD_DATA[name][1](small))
    said = doublure(*world.fit(data))
    assert said.code == 2
    assert SECRET not in said.line
    assert "; " in said.line  # what is wrong; what to do
    check_nothing_happened(world)


@pytest.mark.parametrize("where", ["nowhere.csv", ".", "people.csv/more.csv"])
def test_data_that_is_not_there(doublure, world, tmp_path, where):
    said = doublure(*world.fit(tmp_path / where))
    assert said.code == 2
    assert ("has files of several forms" if where == "." else "there is no such file") in said.line
    check_nothing_happened(world)


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "../../etc/passwd", "__class__", "evil\u202ename"]
)
def test_hostile_names_are_only_names(doublure, world, small, tmp_path, name):
    (tmp_path / "bad").mkdir()
    data = tmp_path / "bad" / "people.csv"
    frame = small.frame(50).rename(columns={"job": name})
    frame.to_csv(data, index=False)
    said = doublure(*world.fit(data))
    assert said.code == 2
    assert "job: is not a column" in said.line
    said = doublure("schema", "draft", data, "-o", tmp_path / "draft.yaml")
    assert "Traceback" not in said.err
    assert "\u202e" not in said.out + said.err


def test_a_byte_order_mark_is_no_error(doublure, world, small, tmp_path):
    world.data.write_bytes(b"\xef\xbb\xbf" + world.data.read_bytes())
    assert doublure(*world.fit()).code == 0


# -- bad schemas, plans, ledgers, flags --------------------------------------------------------------------------------

BAD_SCHEMAS = {
    "no YAML": lambda text: "a: [",
    "not a mapping": lambda text: "- a\n",
    "nothing": lambda text: "",
    "an unknown key": lambda text: text + "colour: red\n",
    "a key twice": lambda text: text + "units: 4\n",
    "another version": lambda text: text.replace("doublure: 1", "doublure: 2"),
    "an undeclared fact": lambda text: text.replace("bounds: [17, 90]", "bounds: undeclared"),
    "bounds the wrong way round": lambda text: text.replace("[17, 90]", "[90, 17]"),
    "a code as object": lambda text: text.replace("[17, 90]", "!!python/object/apply:os.system ['true']"),
    "images": lambda text: text.replace("kind: table", "kind: images"),
    "no text": lambda text: "\x00\x01",
}


@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_bad_schemas(doublure, world, small, name):
    world.schema.write_text(BAD_SCHEMAS[name](small.declared_text))
    asked = ["--schema", world.schema, "--method", "dpgan", "--epsilon", 1, "--delta", 1e-4]
    said = doublure("fit", world.data, *asked, "--ledger", world.ledger, "-o", world.run)
    assert said.code == 2
    assert said.line
    check_nothing_happened(world)
    assert doublure("plan", world.schema, "--method", "gan").code == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x00", b'{"version": 1}', b'{"version": 99}'])
def test_bad_plans(doublure, world, content):
    world.plan.write_bytes(content)
    said = doublure(*world.fit())
    assert said.code == 2
    assert "plan" in said.line
    check_nothing_happened(world)


def test_bad_ledgers(doublure, world, tmp_path):
    said = doublure(*world.fit(**{"--ledger": tmp_path / "none"}))
    assert said.code == 2
    assert "doublure budget init" in said.line
    whole = world.ledger.read_bytes()
    for content in (b"", b"{}\n", whole.replace(b'"epsilon":10.0', b'"epsilon":99.0'), whole[:40] + b"\n" + whole):
        world.ledger.write_bytes(content)
        said = doublure(*world.fit())
        assert said.code == 2
        assert said.line
        assert world.ledger.read_bytes() == content
    said = doublure("budget", "init", world.ledger, "--dataset", "people", "--epsilon", 1, "--delta", 1e-5)
    assert said.code == 2
    assert "already exists" in said.line


MAKES_PUBLIC = ["{data}", "--schema", "{schema}", "--provenance", "{data}", "-o", "{run}", "--set"]
BAD_FLAGS = {
    "no such verb": ["fly"],
    "no such flag": ["plan", "s.yaml", "--colour", "red"],
    "no argument": ["plan"],
    "neither method nor epsilon": ["plan", "{schema}"],
    "a plan of no schema": ["plan", "nowhere.yaml"],
    "no epsilon": ["plan", "{schema}", "--method", "dpgan", "--delta", "1e-4"],
    "epsilon of text": ["plan", "{schema}", "--method", "dpgan", "--epsilon", "much", "--delta", "1e-4"],
    "epsilon nan": ["plan", "{schema}", "--method", "dpgan", "--epsilon", "nan", "--delta", "1e-4"],
    "epsilon below 0": ["plan", "{schema}", "--method", "dpgan", "--epsilon", "-1", "--delta", "1e-4"],
    "epsilon for gan": ["plan", "{schema}", "--method", "gan", "--epsilon", "1"],
    "delta too large": ["plan", "{schema}", "--method", "dpgan", "--epsilon", "1", "--delta", "0.1"],
    "unknown method": ["plan", "{schema}", "--method", "magic"],
    "unknown setting": ["plan", "{schema}", "--method", "gan", "--set", "colour=red"],
    "a setting of nothing": ["plan", "{schema}", "--method", "gan", "--set", "steps"],
    "a setting that is no YAML": ["plan", "{schema}", "--method", "gan", "--set", "steps=["],
    "a setting twice": ["plan", "{schema}", "--method", "gan", "--set", "steps=1", "--set", "steps=2"],
    "a setting that is a flag": ["plan", "{schema}", "--method", "gan", "--set", "method=dpgan"],
    "a setting of true": ["plan", "{schema}", "--method", "gan", "--set", "steps=true"],
    "a plan over its schema": ["plan", "{schema}", "--method", "gan", "-o", "{schema}"],
    "a draft over its data": ["schema", "draft", "{data}", "-o", "{data}"],
    "a page over its data": ["evaluate", "{made}", "--real", "{data}", "-o", "{data}"],
    "no figure to reach": ["evaluate", "{made}", "--real", "{data}", "--at-least", "overall"],
    "a page in no folder": ["evaluate", "{made}", "--real", "{data}", "-o", "nowhere/page.html"],
    "a page of no name": ["evaluate", "{made}", "--real", "{data}", "-o", ""],
    "two config files": ["plan", "{schema}", "--config", "a.yaml", "--config", "b.yaml"],
    "a data set of an invisible name": [
        "budget",
        "init",
        "new.ledger",
        "--dataset",
        "a\u202eb",
        "--epsilon",
        "1",
        "--delta",
        "0",
    ],
    "a ledger in no folder": [
        "budget",
        "init",
        "nowhere/new.ledger",
        "--dataset",
        "people",
        "--epsilon",
        "1",
        "--delta",
        "0",
    ],
    "an argument of a public fit as a setting": ["public", "fit", *MAKES_PUBLIC, "out=3"],
    "a progress as a setting": ["public", "fit", *MAKES_PUBLIC, "progress=3"],
    "weights as a setting": ["public", "adopt", *MAKES_PUBLIC, "weights=3"],
    "a schema as a setting": ["plan", "{schema}", "--method", "gan", "--set", "schema=x"],
    "a plan and a method": [
        "fit",
        "{data}",
        "--plan",
        "{plan}",
        "--method",
        "gan",
        "--ledger",
        "{ledger}",
        "-o",
        "{run}",
    ],
    "no plan": ["fit", "{data}", "--ledger", "{ledger}", "-o", "{run}"],
    "a device that is none": [
        "fit",
        "{data}",
        "--plan",
        "{plan}",
        "--ledger",
        "{ledger}",
        "-o",
        "{run}",
        "--device",
        "abacus",
    ],
    "no threads": ["fit", "{data}", "--plan", "{plan}", "--ledger", "{ledger}", "-o", "{run}", "--threads", "0"],
    "nothing to resume": ["fit", "{data}", "--ledger", "{ledger}", "-o", "{run}", "--resume"],
    "no run folder": ["sample", "{run}", "-n", "5", "-o", "rows.csv"],
    "rows of no format": ["sample", "{made}", "-n", "5", "-o", "rows.pdf"],
    "no rows": ["sample", "{made}", "-n", "0", "-o", "rows.csv"],
    "rows below 0": ["sample", "{made}", "-n", "-5", "-o", "rows.csv"],
    "rows in no folder": ["sample", "{made}", "-n", "5", "-o", "nowhere/rows.csv"],
    "given nothing": ["sample", "{made}", "-n", "5", "-o", "rows.csv", "--given", "sex"],
    "given what is not there": ["sample", "{made}", "-n", "5", "-o", "rows.csv", "--given", "colour=red"],
    "given what cannot be": ["sample", "{made}", "-n", "5", "-o", "rows.csv", "--given", "age=300"],
    "seed below 0": ["sample", "{made}", "-n", "5", "-o", "rows.csv", "--seed", "-1"],
    "seed too large": ["sample", "{made}", "-n", "5", "-o", "rows.csv", "--seed", "9" * 30],
    "a bundle of nothing": ["release", "{made}", "-n", "0", "-o", "bundle"],
    "a bundle of no format": ["release", "{made}", "-n", "5", "-o", "bundle", "--format", "pdf"],
    "a bundle in a full folder": ["release", "{made}", "-n", "5", "-o", "."],
    "no bundle": ["verify", "nowhere"],
    "no data to compare": ["evaluate", "{made}", "--real", "nowhere.csv"],
    "a table to inspect": ["inspect", "{made}"],
    "nothing to inspect": ["inspect", "nowhere"],
    "nothing to hold it against": ["inspect", "{made}", "--against", "nowhere"],
    "no ledger to show": ["budget", "show", "nowhere"],
    "no ledger to verify": ["budget", "verify", "nowhere"],
    "a cap of nothing": ["budget", "init", "new.ledger", "--dataset", "people", "--epsilon", "0", "--delta", "1e-4"],
    "a cap of nan": ["budget", "init", "new.ledger", "--dataset", "people", "--epsilon", "nan", "--delta", "1e-4"],
    "no data set of that name": ["datasets", "fetch", "nothing"],
    "a schema of nothing": ["schema", "check", "nowhere.yaml"],
    "a draft of nothing": ["schema", "draft", "nowhere.csv", "-o", "draft.yaml"],
}


@pytest.mark.parametrize("name", BAD_FLAGS)
def test_bad_flags(doublure, world, small, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    made = small.run
    paths = {
        "schema": world.schema,
        "plan": world.plan,
        "data": world.data,
        "ledger": world.ledger,
        "run": world.run,
        "made": made,
    }
    words = [word.format(**paths) for word in BAD_FLAGS[name]]
    before = {path.name for path in tmp_path.iterdir()}
    said = doublure(*words)
    assert said.code == 2
    assert said.line
    found = doublure(*words, "--json")
    assert found.code == 2
    assert found.result["ok"] is False
    error = found.result["error"]
    assert set(error) == {"code", "field", "message", "remedy"}
    assert error["code"] in ("input", "schema", "data", "setting", "run_folder", "ledger")
    assert error["remedy"]
    check_nothing_happened(world)
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("verb", ["plan", "fit"])
@pytest.mark.parametrize(
    ("text", "field"),
    [(None, "s.yaml"), ("kind: [table,\n", "s.yaml"), ("[table]", "s.yaml"), ("doublure: 1\nkind: tabel\n", "kind")],
)
def test_a_schema_that_is_none_is_named_before_any_flag(doublure, world, tmp_path, verb, text, field):
    schema = tmp_path / "other" / "s.yaml"
    schema.parent.mkdir()
    if text is not None:
        schema.write_text(text)
    fitted = ["fit", world.data, "--ledger", world.ledger, "-o", world.run, "--schema", schema]
    said = doublure(*(["plan", schema] if verb == "plan" else fitted), "--json")
    assert said.code == 2
    assert said.result["error"]["field"].endswith(field)
    check_nothing_happened(world)


# -- exit codes --------------------------------------------------------------------------------------------------------


def test_a_passed_budget_is_exit_3_and_the_data_is_never_opened(doublure, world, small, tmp_path, monkeypatch):
    world.ledger.unlink()
    small.book(tmp_path, epsilon=1.0)
    opened = []
    watched = str(world.data)

    def hook(event, arguments):
        if event == "open" and str(arguments[0]) == watched and opened is not None:
            opened.append(event)

    sys.addaudithook(hook)
    said = doublure(*world.fit())
    assert said.code == 3
    assert said.line.startswith("doublure: epsilon: the cap of data set people would be passed")
    found = doublure(*world.fit(), "--json")
    assert (found.code, found.result["error"]["code"], found.result["error"]["field"]) == (3, "budget", "epsilon")
    assert opened == []
    world.data.read_bytes()
    assert opened == ["open"]  # the watch works
    opened = None
    check_nothing_happened(world)


def test_a_passed_budget_is_said_even_where_the_data_would_block_for_ever(doublure, world, small, tmp_path):
    world.ledger.unlink()
    small.book(tmp_path, epsilon=1.0)
    os.mkfifo(tmp_path / "pipe.csv")
    assert doublure(*world.fit(tmp_path / "pipe.csv")).code == 3


def test_a_gate_that_failed_is_exit_4(doublure, world, small, tmp_path):
    run, ledger = small.copies(tmp_path)
    assert doublure("release", run, "-n", 5, "-o", tmp_path / "bundle").code == 0
    (tmp_path / "bundle" / "more.txt").write_text("more")
    said = doublure("verify", tmp_path / "bundle", "--ledger", ledger)
    assert said.code == 4
    assert "more.txt: is in the bundle and not on its card" in said.line
    found = doublure("verify", tmp_path / "bundle", "--json")
    assert (found.code, found.result["error"]["code"]) == (4, "gate")
    ledger.write_bytes(ledger.read_bytes().replace(b"people", b"others"))
    said = doublure("budget", "verify", ledger)
    assert said.code == 4
    assert said.line


def test_a_second_ledger_of_the_same_records_is_told_apart(doublure, tmp_path):
    asked = ("--dataset", "people", "--epsilon", 1, "--delta", 1e-5)
    assert "another ledger" not in doublure("budget", "init", tmp_path / "a.ledger", *asked).out
    assert "another ledger of people (a.ledger)" in doublure("budget", "init", tmp_path / "b.ledger", *asked).out
    other = ("--dataset", "visits", *asked[2:])
    assert "another ledger" not in doublure("budget", "init", tmp_path / "c.ledger", *other).out


USAGE = {
    "": (None, "a command is missing"),
    "schema": (None, "a command is missing"),
    "plan s.yaml --colour red": ("--colour", "is not an option of this command"),
    "sample run -n x -o rows.csv": ("--rows", "input should be a valid integer"),
    "sample run -n 5": ("--out", "is missing (-o for short)"),
    "sample": ("run", "is missing"),
}


@pytest.mark.parametrize("words", USAGE)
def test_a_usage_error_names_the_flag(doublure, words):
    error = doublure(*words.split(), "--json").result["error"]
    field, message = USAGE[words]
    assert error["field"] == field
    assert message in error["message"] or "valid" in error["message"]  # click and typer word it in their own ways
    assert error["remedy"].startswith("see doublure")


@pytest.mark.parametrize("words", ["budget show", "budget verify", "fit people.csv --plan plan.json -o run"])
def test_a_ledger_that_is_not_named_can_be_found(doublure, words):
    line = doublure(*words.split()).line
    assert "run.json of a fit says where its ledger is, and doublure budget init makes one; see doublure" in line


MEANT = {
    "budgte show x.ledger": "doublure has no command 'budgte'; did you mean budget? see doublure",
    "ledger x.ledger": "did you mean doublure budget? see doublure --help",
    "schema chek s.yaml": "did you mean check? use one of: draft, check",
    "fly": "use one of: demo, studio, plan, fit",
    "plan s.yaml --epsilom 1": "did you mean --epsilon? see doublure plan --help",
    "plan s.yaml --epsilon 1,0 --delta 1e-6": "write one such as 0.5 or 1e-6, with a decimal point; see doublure plan",
    "plan {schema} --method statistic --epsilon 1 --delta 1e-6": "did you mean statistics? use one of: auto, ",
    "plan {schema} --method dpgan --epsilon 1 --delta 1e-4 --set stepz=3": "did you mean steps?",
    "sample {made} -n 5 -o rows.csv --given jop=cook": "did you mean job?",
    "datasets fetch mushrom": "did you mean mushroom? use one of: ",
    "audit {made} --attack quik --real a --holdout b": "did you mean quick?",
}


@pytest.mark.parametrize("typed", MEANT)
def test_a_slip_is_told_what_was_meant(doublure, world, small, tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    words = typed.format(schema=world.schema, made=small.run).split()
    said = doublure(*words)
    assert said.code == 2
    assert MEANT[typed] in said.line


def test_two_settings_after_one_flag_are_told_how_to_stand(doublure):
    error = doublure("plan", "s.yaml", "--set", "steps=10", "width=20", "--json").result["error"]
    assert "width=20" in error["message"]
    assert error["remedy"].startswith("a flag takes one KEY=VALUE: repeat it for each")


def test_termination_ends_a_command_as_an_interrupt_does(doublure, small, tmp_path, monkeypatch):
    draw = db.Synthesizer._draw

    def terminated(self, *arguments):
        signal.raise_signal(signal.SIGTERM)
        return draw(self, *arguments)

    monkeypatch.setattr(db.Synthesizer, "_draw", terminated)
    before = signal.getsignal(signal.SIGTERM)
    said = doublure("sample", small.run, "-n", 5, "-o", tmp_path / "rows.csv")
    assert (said.code, "stopped by the user" in said.line) == (130, True)
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupt_while_loading_is_one_line(monkeypatch, capsys):
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "run", stopped)
    with pytest.raises(SystemExit) as ended:
        cli.run()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "doublure: stopped by the user\n"


def test_an_interrupt_is_exit_130(doublure, small, monkeypatch):
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "load", stopped)
    said = doublure("sample", small.run, "-n", 5, "-o", "rows.csv")
    assert said.code == 130
    assert "stopped by the user" in said.err
    assert "Traceback" not in said.err
    found = doublure("sample", small.run, "-n", 5, "-o", "rows.csv", "--json")
    assert (found.code, found.result["error"]["code"]) == (130, "interrupted")


def test_a_defect_is_placed_in_the_package_wherever_that_lies():
    """A library below a folder of this name was taken for it."""
    elsewhere = compile("raise RuntimeError", "/home/anna/doublure/.venv/lib/library.py", "exec")
    with pytest.raises(RuntimeError) as caught:
        exec(elsewhere)
    assert defect_place(caught.value) == "an unknown place"


def test_a_defect_shows_where_and_not_what(doublure, small, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.delenv("DOUBLURE_DEBUG", raising=False)
    monkeypatch.setattr(loading, "load", broken)
    said = doublure("sample", small.run, "-n", 5, "-o", "rows.csv")
    assert said.code == 1
    assert "a defect of doublure: RuntimeError at sample.py:" in said.line
    assert SECRET not in said.err
    monkeypatch.setenv("DOUBLURE_DEBUG", "1")
    with pytest.raises(RuntimeError):
        doublure("sample", small.run, "-n", 5, "-o", "rows.csv")


def test_out_of_memory_is_one_line(doublure, world, monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(running.FitRun, "_train", greedy)
    said = doublure(*world.fit())
    assert said.code == 2
    assert "ran out of memory" in said.line
    check_nothing_happened(world)


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def copies(small, tmp_path):
    return small.copies(tmp_path)


@pytest.fixture
def small_files():
    """Let no file grow above 20 kB, as a disk that fills up would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_write_that_is_cut_off_leaves_nothing(doublure, small, tmp_path, small_files, ending):
    said = doublure("sample", small.run, "-n", 5000, "-o", tmp_path / f"rows.{ending}")
    assert said.code == 2
    assert "cannot be written: file too large" in said.line
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_is_cut_off_leaves_nothing(doublure, copies, tmp_path, small_files):
    run, _ = copies
    before = {path.name for path in tmp_path.iterdir()}
    said = doublure("release", run, "-n", 5000, "-o", tmp_path / "bundle")
    assert said.code == 2
    assert f"{str(tmp_path / 'bundle')[-60:]}: cannot be written: file too large" in said.line  # not the hidden place
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_disk_that_is_full_before_noise_costs_nothing(doublure, world, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    said = doublure(*world.fit())
    monkeypatch.undo()
    assert said.code == 2
    assert "no space left on device" in said.line
    check_nothing_happened(world)


def test_a_disk_that_fills_up_while_training_keeps_the_charge_and_the_run(doublure, world, small, monkeypatch):
    save = RunFolder.save
    taken = []

    def fills_up(self, step, tensors):
        taken.append(step)
        if len(taken) == 2:
            raise files.Unwritable(self.path, OSError(errno.ENOSPC, "No space left on device"))
        save(self, step, tensors)

    monkeypatch.setattr(RunFolder, "save", fills_up)
    assert "no space left" in doublure(*world.fit()).line
    monkeypatch.undo()
    assert db.Ledger.open(world.ledger).spent.epsilon == small.epsilon
    assert doublure("fit", world.data, "--ledger", world.ledger, "-o", world.run, "--resume").code == 0
    assert db.Ledger.open(world.ledger).spent.epsilon == small.epsilon


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_full_stdout_is_an_error(world, capsys, monkeypatch, as_json):
    with contextlib.suppress(OSError), open("/dev/full", "w") as full:  # noqa: PTH123 - closing it fails too
        monkeypatch.setattr(sys, "stdout", full)
        code = run_guarded(app, ["budget", "show", str(world.ledger), *as_json])
        monkeypatch.undo()
    assert code == 2
    assert "no space left on device" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_a_full_stderr_changes_nothing(world, small, capsys, monkeypatch):
    assert small.plan.warnings  # which a fit repeats there
    codes = []
    for words in (world.fit(), ["verify", "nowhere"]):  # who cannot write there once goes on without
        with contextlib.suppress(OSError), open("/dev/full", "w") as full:  # noqa: PTH123 - closing it fails too
            monkeypatch.setattr(sys, "stderr", full)
            codes.append(run_guarded(app, [str(word) for word in words]))
            monkeypatch.undo()
    assert codes == [0, 2]
    assert db.Ledger.open(world.ledger).spent.epsilon == small.epsilon


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_closed_stdout_is_no_error(world, capsys, monkeypatch, as_json):
    monkeypatch.setattr(sys, "stdout", None)
    assert run_guarded(app, ["budget", "show", str(world.ledger), *as_json]) == 0
    sys.stdout.close()


def test_a_page_without_its_figures_is_not_left(doublure, small, tmp_path, monkeypatch):
    def full(report):
        raise files.Unwritable(tmp_path / "page.html", OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(Report, "to_html", full)
    (tmp_path / "data").mkdir()
    said = doublure("evaluate", small.run, "--real", small.csv(tmp_path / "data"), "-o", tmp_path / "page.html")
    assert said.code == 2
    assert "no space left" in said.line
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_table_that_is_not_as_good_as_wanted_ends_with_4(doublure, small, tmp_path):
    page, command = tmp_path / "page.html", ["evaluate", small.run, "--real", small.csv(tmp_path)]
    said = doublure(*command, "--at-least", "overall=101", "-o", page)
    assert said.code == 4
    assert "not at least 101.0; see" in said.err
    assert page.is_file()
    assert doublure(*command, "--at-least", "overall=0", "--at-least", "pairs=1", "-o", page).code == 0


# -- terminals ---------------------------------------------------------------------------------------------------------


def test_no_color_is_respected(doublure, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31m" in doublure("verify", "nowhere").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in doublure("verify", "nowhere").err


def test_a_pipe_gets_no_escapes(doublure, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b" not in doublure("verify", "nowhere").err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_will_do(world, small, monkeypatch, encoding):
    for words in (["plan", "--method", "gan", str(world.schema)], ["budget", "show", str(world.ledger)]):
        for as_json in ([], ["--json"]):
            with io.TextIOWrapper(io.BytesIO(), encoding=encoding) as out:
                monkeypatch.setattr(sys, "stdout", out)
                code = run_guarded(app, [*words, *as_json])
                monkeypatch.undo()
                out.flush()
                text = out.buffer.getvalue().decode(encoding)
            assert code == 0
            assert text
            if as_json:
                assert json.loads(text)["ok"]
