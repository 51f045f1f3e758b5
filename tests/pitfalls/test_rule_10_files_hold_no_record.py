"""Rule 10: no row, count or category that was not public or bought in any byte that is written; no pickle
(rows 2, 3 and 16)."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from safetensors import safe_open

import doublure as db
from doublure.data.tables.opening import open_table
from doublure.encode.columns import ListedEncoding
from doublure.methods.statistics.tables import fitting as table_fitting
from doublure.methods.statistics.tables.plan import SCORES
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.counts import Counts
from doublure.private.records import PrivateRecords
from doublure.private.sampling import PoissonSampler
from doublure.run import running, weights
from doublure.run.answers import AnswersInFolder
from doublure.support.tensors import as_array
from doublure.training import gan_loop as adversarial
from doublure.training.checkpoints import KeptTables

SOURCE = Path(db.__file__).parent
WHO, JOB, PAY = "who-Zq81-Sentinel", "Sentinelle of Qaanaaq", 731.26513728
SIZE = 137


def table(lab):
    """Return a table of 137 units of which one is like no other."""
    odd = {"who": WHO, "age": 77.0, "pay": PAY, "job": JOB, "out": "yes"}
    frame = lab.with_unit(lab.people(SIZE - 1), odd, place=40)
    return frame.assign(who=[name if name != "one more" else WHO for name in frame["who"]])


def needles(lab, plan, frame):
    """Return every way in which the odd record could stand in a file."""
    texts = [JOB, WHO, str(PAY), f"{PAY:.6g}", f"{PAY:.8g}"]
    found = [text.encode(coding) for text in texts for coding in ("utf-8", "utf-16-le", "utf-32-le")]
    found += [struct.pack(form, PAY) for form in ("<d", ">d", "<f", ">f")]
    loaded = open_table(frame).load(plan.schema)
    encoder = lab.encoder(plan.schema.to_yaml())
    compact = encoder.compact(loaded.frame)[40:41]
    for row in (compact, as_array(encoder.rows(compact))):
        found += [row.tobytes(), row.astype("float64").tobytes(), row.astype("int64").tobytes()]
    return found


def contents(path):
    """Return a file's bytes, and what they mean where they are compressed."""
    yield path.read_bytes()
    if path.suffix == ".parquet":
        found = pq.read_table(path)
        yield repr(found.to_pylist()).encode()
        chunks = [chunk for column in found.columns for chunk in column.chunks]
        yield repr([chunk.dictionary for chunk in chunks if hasattr(chunk, "dictionary")]).encode()
        yield repr(found.schema.metadata).encode()


def numbers(value):
    """Yield every number in JSON or YAML."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from numbers(entry)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def parsed(path):
    text = path.read_text()
    if path.suffix == ".json":
        return [json.loads(text)]
    if path.suffix == ".yaml":
        return [yaml.safe_load(text)]
    return [json.loads(line) for line in text.splitlines()]


def check_nothing_written_holds_a_record(lab, plan, folder):
    frame = table(lab)
    lab.fit(frame, plan, folder, real=True)
    syn = db.load(folder / "run")
    db.release(syn, folder / "bundle", n=60, seed=1)
    syn.save(folder / "copy")
    looked_for = needles(lab, plan, frame)
    files = [path for path in folder.rglob("*") if path.is_file()]
    written = {"generator.safetensors", "log.jsonl", "data.csv", "data.parquet", "ledger"}
    assert {path.name for path in files} >= written
    for path in files:
        for content in contents(path):
            assert not any(needle in content for needle in looked_for), path.name
        if path.suffix in (".json", ".yaml", ".jsonl") or path.name == "ledger":
            assert not {SIZE, SIZE - 1, float(SIZE)} & set(numbers(parsed(path))), path.name
    with safe_open(folder / "run/generator.safetensors", "pt") as file:
        named = {"tables_sha256"} if syn.tables else set()
        assert set(file.metadata()) == {"doublure", "schema", "plan", "watermark"} | named
    assert set(syn.sample(200, seed=3)["job"].astype(str)) <= {"cook", "nurse", "Other"}


def test_the_needles_are_found_where_they_are(lab, declared_plan, tmp_path):
    """The scan itself can fail: it finds the record in the private data."""
    frame = table(lab)
    frame.to_csv(tmp_path / "data.csv")
    frame.to_parquet(tmp_path / "data.parquet")
    looked_for = needles(lab, declared_plan, frame)
    for name in ("data.csv", "data.parquet"):
        assert any(needle in content for content in contents(tmp_path / name) for needle in looked_for)


def test_nothing_written_holds_a_record(lab, declared_plan, tmp_path):
    check_nothing_written_holds_a_record(lab, declared_plan, tmp_path)


ENCODED = "encoder = encoder_for(schema, plan.settings.encoding)"
ENDED = "return adversaries.average"
KEPT = "job.checkpoints.save(teacher.taken, adversaries.state()"
COMPACT = "__import__('torch').from_numpy(teacher._records._compact)"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (running.FitRun, "_train", (ENCODED, f"{ENCODED}\n    self._folder.log(loaded.frame.iloc[40].to_dict())")),
        (running.FitRun, "_train", (ENCODED, f"{ENCODED}\n    self._folder.update_run(rows=len(loaded.frame))")),
        (
            running.FitRun,
            "_train",
            (ENCODED, f"{ENCODED}\n    self._folder.log({{'pay': loaded.frame['pay'].tolist()}})"),
        ),
        (adversarial, "train", (ENDED, f"{KEPT} | {{'real': {COMPACT}}})\n{ENDED}")),
        (adversarial, "train", (ENDED, f"{KEPT} | {{'rows': adversaries._encoder.expand({COMPACT})}})\n{ENDED}")),
        (
            weights,
            "generator_file",
            (
                "to_safetensors(generator.state_dict(), metadata)",
                "to_safetensors(generator.state_dict(), metadata | {'rows': '24'})",
            ),
        ),
    ],
    ids=["a row logged", "a count", "a column logged", "records kept", "rows kept", "more in the generator file"],
)
def test_a_file_that_holds_more_is_caught(lab, declared_plan, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_nothing_written_holds_a_record(lab, declared_plan, tmp_path)


def test_a_category_that_was_not_public_is_caught(lab, monkeypatch, declared_plan, tmp_path):
    seen = open_table(table(lab)).load(declared_plan.schema)
    assert JOB not in set(seen.frame["job"])  # already on loading, it is Other
    resolved = "resolved = schema.resolve(learned)"
    values = f"resolved.columns['job'].model_copy(update={{'values': ('cook', 'nurse', {JOB!r})}})"
    columns = f"{{**resolved.columns, 'job': {values}}}"
    changed = f"{resolved}\n    resolved = resolved.model_copy(update={{'columns': {columns}}})"
    lab.plant(running.FitRun, "_resolve", (resolved, changed))
    with lab.caught():
        check_nothing_written_holds_a_record(lab, declared_plan, tmp_path)


def test_an_unseen_category_has_a_public_place(lab, declared_plan):
    """Row 2: what is not in the list goes to ``other``, in the loader and in the encoder alike."""
    column = declared_plan.schema.columns["job"]
    cells = table(lab)["job"]
    codes = ListedEncoding(column=column).compact(cells)[0]
    assert codes[40] == list(column.domain).index("Other")


# -- tables ------------------------------------------------------------------------------------------------------------


def check_no_exact_count_is_written(lab, patch, plan, folder):
    """Of the tables that were counted, no file holds one as it is, in any form that numbers are written in."""
    exact, counted = [], Counts.answer

    def kept(query, records, *, sample_rate):
        found = counted(query, records, sample_rate=sample_rate)
        exact.extend(table.copy() for table in query.split(found.total))
        return found

    with patch.context() as inner:
        inner.setattr(Counts, "answer", kept)
        inner.setattr(AnswersInFolder, "forget_all", lambda answers: None)
        check_nothing_written_holds_a_record(lab, plan, folder)
    assert len(exact) == sum(access.event.tables for access in plan.touches)
    looked_for = []
    for table in exact:
        if table.size > 3 and len(np.unique(table)) > 2:  # all rows in one cell may be what a generator says by chance
            shares = table / table.sum()
            forms = [table.astype(form) for form in ("<i8", "<i4", "<f8", "<f4", ">i8")]
            forms += [shares.astype(form) for form in ("<f8", "<f4")]
            looked_for += [array.tobytes() for array in forms]
            looked_for += [json.dumps(values.tolist()).encode() for values in (table, table.ravel())]
    assert len(looked_for) >= 9 * 2
    for path in folder.rglob("*"):
        if path.is_file():
            for content in contents(path):
                assert not any(needle in content for needle in looked_for), path.name
    answers = AnswersInFolder(folder / "run/internal")
    noisy = {plan.touches[place].purpose: answers.read((place, number)).noisy for place, number in answers.places()}
    # Of the tables that pairs are scored by, one number each is written, and no table.
    scored = next(access.event.tables for access in plan.touches if access.purpose == SCORES)
    assert noisy.pop(SCORES).shape == (scored,)
    assert len(noisy) == len(plan.touches) - 1
    counted_cells = [table.size for table in exact]
    assert sum(table.size for table in noisy.values()) in [
        sum(counted_cells) - sum(counted_cells[first : first + scored]) for first in range(len(exact))
    ]
    assert all(set(line) == {"class", "fit_steps", "misfit"} for line in parsed(folder / "run/log.jsonl"))


def test_no_exact_count_is_written(lab, monkeypatch, counting_plan, tmp_path):
    check_no_exact_count_is_written(lab, monkeypatch, counting_plan, tmp_path)


RELEASED = "counts.split(job.mechanism.release(counts, access, job.everyone))"
TAKEN = f"counted = {RELEASED}"
BARE = "counts.split(counts.answer(job.records, sample_rate=1.0).total)"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (KeptTables, "released", (RELEASED, f"({RELEASED}, {BARE})[1]")),
        (KeptTables, "released",
         (TAKEN, f"{TAKEN}\n        self._job.log({{'counts': [t.tolist() for t in {BARE}]}})")),
        (KeptTables, "released",
         (TAKEN, f"{TAKEN}\n        job.checkpoints.save(1, {{'rows': np.array([sum({BARE}[0].ravel())])}})")),
        (table_fitting, "release_and_fit", ("round(fitted.misfit, 4)", "job.records.n_units")),
    ],
    ids=["exact tables kept", "exact tables logged", "a total kept", "rows logged"],
)  # fmt: skip
def test_an_exact_count_that_is_written_is_caught(lab, monkeypatch, counting_plan, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_no_exact_count_is_written(lab, monkeypatch, counting_plan, tmp_path)


# -- pickle ------------------------------------------------------------------------------------------------------------

PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle", "skops"}
CALLS = {"torch.load", "torch.save", "torch.jit.load", "torch.jit.save", "yaml.load", "yaml.full_load"}
METHODS = {"read_pickle", "to_pickle", "unsafe_load"}
LAST = METHODS | {name.rpartition(".")[2] for name in CALLS}


def pickles(text):
    """Return what a module does that reads or writes code as data."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in PICKLES]
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in named if name.split(".")[0] in PICKLES or name in CALLS]
        elif isinstance(node, ast.Attribute) and node.attr in LAST:
            found += [name for name in [ast.unparse(node)] if name in CALLS or node.attr in METHODS]
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append("allow_pickle")
        elif isinstance(node, ast.keyword) and node.arg == "weights_only":
            found.append("weights_only")
        elif isinstance(node, ast.Constant) and node.value in PICKLES:
            found.append(str(node.value))
    return found


def test_no_pickle_anywhere():
    files = list(SOURCE.rglob("*.py"))
    assert len(files) > 60
    found = {path.name: found for path in files if (found := pickles(path.read_text()))}
    assert found == {"yaml12.py": ["yaml.load"]}  # with a loader of its own, below


def test_schemas_are_read_as_data():
    for text in ("!!python/object/apply:builtins.print [x]", "!!python/name:builtins.eval", "a: !!python/tuple [1]"):
        with pytest.raises(db.errors.SchemaError):
            db.Schema.parse(text)


@pytest.mark.parametrize(
    "planted",
    [
        "import pickle", "from joblib import dump", "import torch\ntorch.save(x, f)", "from torch import load",
        "np.load(f, allow_pickle=True)", "pd.read_pickle(f)", "frame.to_pickle(f)",
        "importlib.import_module('cloudpickle')", "yaml.load(f)", "torch.load(f, weights_only=False)",
    ],
)  # fmt: skip
def test_a_pickle_is_caught(planted):
    assert pickles(planted)


def test_private_objects_refuse_to_be_pickled(lab):
    table_of = open_table(lab.people()).load(db.Schema.parse(lab.PUBLIC))
    compact = lab.encoder(lab.PUBLIC).compact(table_of.frame)
    records = PrivateRecords(compact, table_of.unit, table_of.n_units, lambda rows: (rows, None))
    for kept in (records, OsKeyedNoise(), PoissonSampler(24, 0.5)):
        with pytest.raises(TypeError):
            pickle.dumps(kept)
        with pytest.raises(TypeError):
            copy.deepcopy(kept)
    assert repr(records) == "PrivateRecords(private)"
    assert repr(table_of) == "Table(private)"
