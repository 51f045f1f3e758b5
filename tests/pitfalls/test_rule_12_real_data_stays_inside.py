"""Rule 12: what is computed on real data is internal, elsewhere than what is released, and nothing reads it back
(rows 21 and 22)."""

from __future__ import annotations

import ast
import inspect
import json
import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.releasing import issuing
from doublure.releasing.catalogue_names import NAMES
from doublure.releasing.generator import publish
from doublure.report.files import write_private
from doublure.run import loading, running
from doublure.training import gan_loop as adversarial

SOURCE = Path(db.__file__).parent
BUNDLE = {"data.csv", "data.parquet", "card.json", "card.html", "dictionary.json", *NAMES}
# What differs between any two runs: when, and which entry of which ledger.
VOLATILE = {"created", "ledger", "path", "reservation", "session", "review_by", "generator_sha256"}


def public_files(folder):
    """Return the bytes of everything in a run folder that is not internal, without moments and ledger entries."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "internal" not in path.parts:
            content = path.read_bytes()
            if path.name == "run.json":
                content = {key: value for key, value in json.loads(content).items() if key not in VOLATILE}
            if path.suffix == ".safetensors":  # whose keys stand in no order
                size = int.from_bytes(content[:8], "little")
                content = json.loads(content[8 : 8 + size]), content[8 + size :]
            found[str(path.relative_to(folder))] = content
    return found


def bundle_of(folder, name="bundle"):
    card = db.release(db.load(folder / "run"), folder / name, n=40, seed=11).card
    files = {path.name: path.read_bytes() for path in (folder / name).iterdir()}
    assert set(files) == BUNDLE
    card = {key: value for key, value in card.items() if key not in VOLATILE | {"files"}}
    return card, {name: files[name] for name in ("data.csv", "data.parquet", "dictionary.json")}


def check_neighbours_release_the_same(lab, plan, folder):
    """With the noisy outputs frozen, run folder and bundle are equal, byte for byte, whoever was in the table."""
    base = lab.people()
    kept = lab.fit(base, plan, folder / "one")
    for number, name in enumerate(("extreme", "new category", "missing")):
        other = folder / f"other{number}"
        lab.fit(lab.with_unit(base, lab.ODD_RECORDS[name]), plan, other, like=kept)
        assert public_files(other / "run") == public_files(folder / "one/run")
        if number == 0:
            assert bundle_of(other) == bundle_of(folder / "one")


def test_neighbours_release_the_same(lab, declared_plan, tmp_path):
    check_neighbours_release_the_same(lab, declared_plan, tmp_path)


ENCODED = "encoder = encoder_for(schema, plan.settings.encoding)"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (running.FitRun, "_train", (ENCODED, f"{ENCODED}\n    self._folder.update_run(units=loaded.n_units)")),
        (
            running.FitRun,
            "_train",
            (ENCODED, f"{ENCODED}\n    self._folder.log({{'paid': loaded.frame['pay'].mean()}})"),
        ),
        (running.FitRun, "_train", (ENCODED, f"{ENCODED}\n    loaded.frame.to_csv(self._folder.path / 'page')")),
        (adversarial, "train", ("round(loss, 6)", "float(teacher._records._compact.mean())")),
    ],
    ids=["a count", "a mean", "a report beside the artefacts", "a private figure logged"],
)  # fmt: skip
def test_a_figure_of_the_real_data_is_caught(lab, declared_plan, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_neighbours_release_the_same(lab, declared_plan, tmp_path)


GENERATOR = {"generator.safetensors", "schema.yaml", "card.json", "card.html"}


def generator_of(folder):
    """Return what a published generator says: its files, and its card without what differs between any two runs."""
    card = publish(db.load(folder / "run"), folder / "gen").card
    assert {path.name for path in (folder / "gen").iterdir()} == GENERATOR
    files = {name: content for name, content in public_files(folder / "gen").items() if not name.startswith("card")}
    return {key: value for key, value in card.items() if key not in VOLATILE | {"files"}}, files


def check_neighbours_publish_the_same_generator(lab, plan, folder):
    """With the noisy outputs frozen, a published generator is the same to the byte, whoever was in the table."""
    base = lab.people()
    kept = lab.fit(base, plan, folder / "one")
    found = generator_of(folder / "one")
    for name in ("extreme", "new category", "missing"):
        other = folder / name
        lab.fit(lab.with_unit(base, lab.ODD_RECORDS[name]), plan, other, like=kept)
        assert generator_of(other) == found, name


@pytest.mark.parametrize("named", ["declared_plan", "plan"])
def test_neighbours_publish_the_same_generator(lab, request, tmp_path, named):
    check_neighbours_publish_the_same_generator(lab, request.getfixturevalue(named), tmp_path)


TRAINED = "generator = methods.method(plan.method).train(job)"
RESOLVED = "resolved = schema.resolve(learned)"
NARROWED = "resolved.columns['pay'].model_copy(update={'bounds': (0.0, float(loaded.frame['pay'].max()))})"
BOUNDED = f"resolved.model_copy(update={{'columns': {{**resolved.columns, 'pay': {NARROWED}}}}})"
FIRST = "next(generator.parameters()).data.view(-1)[0]"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (running.FitRun, "_train", (TRAINED, f"{TRAINED}\n    {FIRST} = float(loaded.frame['pay'].sum())")),
        (running.FitRun, "_resolve", (RESOLVED, f"{RESOLVED}\n    resolved = {BOUNDED}")),
    ],
    ids=["a sum among the weights", "a maximum for a bound"],
)
def test_a_generator_with_a_private_number_is_caught(lab, declared_plan, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_neighbours_publish_the_same_generator(lab, declared_plan, tmp_path)


def check_nothing_reads_internal(lab, plan, folder):
    """Sampling and releasing give the same with internal/ there, forged, and gone."""
    lab.fit(lab.people(), plan, folder, real=True)
    internal = folder / "run/internal"
    assert (internal / "checkpoint.safetensors").is_file()
    found = []
    for state in ("there", "forged", "gone"):
        if state == "forged":
            for path in internal.iterdir():
                path.write_bytes(b"forged")
            (internal / "report.json").write_text("{}")
        elif state == "gone":
            shutil.rmtree(internal)
        try:
            found.append((bundle_of(folder, state), db.load(folder / "run").sample(30, seed=2).to_csv()))
        except db.errors.DoublureError as error:
            raise AssertionError(state) from error
    assert found[0] == found[1] == found[2]


def test_nothing_reads_internal(lab, declared_plan, tmp_path):
    check_nothing_reads_internal(lab, declared_plan, tmp_path)


LOADED = "tensors = folder.load_weights(schema, plan)"
LOOKS = "__import__('doublure').support.tensors.sha256_of(folder.internal / 'checkpoint.safetensors')"
ADDED = "card['files'] = [*card['files'], file_entry(staging, PAGE)]"
PAGE = "page = draw_page(folder, card, described).encode()"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (loading, "read_synthesizer", (LOADED, f"{LOADED}\n    {LOOKS}")),
        (issuing, "issue", (ADDED, f"{ADDED}\n    card['limits'] = [str([*staging.parent.glob('run/int*/*')])]")),
        (issuing, "write_page", (PAGE, f"{PAGE}\n    (folder / 'report.html').write_text('accuracy 0.93')")),
    ],
    ids=["needs internal", "lists internal", "ships a report"],
)  # fmt: skip
def test_a_release_that_looks_inside_is_caught(lab, declared_plan, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_nothing_reads_internal(lab, declared_plan, tmp_path)


def test_the_length_of_a_release_is_always_asked_for():
    """Row 24: no default says how many units there are."""
    for sampled in (db.release, db.Synthesizer.sample_chunks):
        assert inspect.signature(sampled).parameters["n"].default is inspect.Parameter.empty


def check_reports_are_written_inside(patch, folder):
    """``doublure evaluate`` puts its page under internal/, for its owner's eyes only, unless told where."""
    internal = folder / "run/internal"
    internal.mkdir(parents=True)

    class Report:
        def to_json(self):
            return "{}"

        def save(self, html, figures):
            write_private(Path(html), "page")
            write_private(Path(figures), "{}")

    with patch.context() as inner:
        inner.setattr("doublure.run.loading.load", lambda path: SimpleNamespace())
        inner.setattr("doublure.evaluate.report", lambda *arguments, **named: Report())
        before = os.umask(0)
        try:
            assert run_guarded(app, ["evaluate", str(folder / "run"), "--real", str(folder / "x.csv"), "--json"]) == 0
        finally:
            os.umask(before)
    written = {path for path in folder.rglob("*") if path.is_file()}
    assert written == {internal / "report.html", internal / "report.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}


def test_reports_are_written_inside(monkeypatch, tmp_path, capsys):
    check_reports_are_written_inside(monkeypatch, tmp_path)
    assert json.loads(capsys.readouterr().out)["result"]["internal"] is True


def test_a_report_written_elsewhere_is_caught(lab, monkeypatch, tmp_path):
    from doublure.cli import evaluate

    lab.plant(evaluate, "evaluate", ("run / 'internal' / 'report.html'", "run / 'report.html'"))
    (verb,) = [command for command in app.registered_commands if command.name == "evaluate"]
    monkeypatch.setattr(verb, "callback", evaluate.evaluate)
    with lab.caught():
        check_reports_are_written_inside(monkeypatch, tmp_path)


INSIDE = tuple(
    f"doublure.{name}"
    for name in (
        "evaluate",
        "measures",
        "attack",
        "auditing",
        "data.tables.opening",
        "data.tables.cells",
        "schema.distinct_cells",
        "data.tables.csv_files",
        "private.records",
        "run.fitting",
        "run.running",
        "report.audit",
        "report.comparison",
        "report.evaluation",
        "report.files",
    )
)


def reaches_real_data(text):
    """Return what a module imports that is computed on, or reads, real data."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [name for name in names if name.startswith(INSIDE)]


RELEASING = (
    "releasing/bundle.py",
    "releasing/issuing.py",
    "releasing/reading.py",
    "releasing/examples.py",
    "run/synthesizer.py",
    "run/folder.py",
    "guarantee.py",
    "releasing/card.py",
    "releasing/generator.py",
    "run/published.py",
    "run/weights.py",
    "data/tables/writing.py",
)


@pytest.mark.parametrize("name", RELEASING)
def test_what_releases_knows_nothing_of_real_data(name):
    assert reaches_real_data((SOURCE / name).read_text()) == []


@pytest.mark.parametrize(
    "planted",
    [
        "from doublure import evaluate",
        "from doublure.data.tables.opening import open_table",
        "import doublure.attack.membership",
        "from doublure.report.files import PageResult",
    ],
)
def test_a_release_that_could_is_caught(planted):
    assert reaches_real_data(planted)
