"""A run on disk: these files, private to their owner, whole, versioned, and believed only as far as they agree."""

from __future__ import annotations

import json
import os
import stat

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import doublure as db
from doublure.errors import DoublureError, InputError, RunFolderError
from doublure.run.folder import RunFolder
from doublure.support import files
from doublure.support.tensors import read_tensors

FILES = {
    "run.json", "plan.json", "schema.yaml", "guarantee.json", "generator.safetensors", "log.jsonl", "executed.json",
    "internal",
}  # fmt: skip
READ = sorted(FILES - {"log.jsonl", "internal"})
NEEDED = sorted({*READ} - {"executed.json"})  # a run of an earlier version has none


def change(path, **keys):
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


# -- what is there -----------------------------------------------------------------------------------------------------


def test_these_files_and_no_others(small):
    assert {path.name for path in small.run.iterdir()} == FILES
    assert {path.name for path in (small.run / "internal").iterdir()} == {"checkpoint.safetensors"}


def test_nobody_else_may_look(small):
    assert stat.S_IMODE(small.run.stat().st_mode) == 0o700
    assert stat.S_IMODE((small.run / "internal").stat().st_mode) == 0o700
    assert stat.S_IMODE((small.run / "internal" / "checkpoint.safetensors").stat().st_mode) == 0o600


def test_a_folder_that_was_there_is_closed_too(small, tmp_path):
    (tmp_path / "run").mkdir(mode=0o755)
    db.load(small.run).save(tmp_path / "run")
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_run_json_says_where_it_stands(small):
    run = json.loads((small.run / "run.json").read_text())
    assert (run["version"], run["status"], run["method"], run["seed"]) == (1, "done", "dpgan", 1)
    assert run["ledger"]["dataset"] == "people"
    assert set(run["ledger"]) == {"dataset", "path", "reservation", "session", "sequence"}


def test_the_log_is_one_object_a_line(small):
    lines = [json.loads(line) for line in (small.run / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4, 6]
    assert all(set(line) == {"step", "generator_loss"} for line in lines)


def test_the_generator_file_holds_weights_schema_and_plan(small):
    with safe_open(small.run / "generator.safetensors", "pt") as file:
        metadata = file.metadata()
        assert all(file.get_tensor(name).is_floating_point() for name in file.keys())  # noqa: SIM118
    assert set(metadata) == {"doublure", "watermark", "schema", "plan"}
    assert json.loads(metadata["plan"]) == json.loads((small.run / "plan.json").read_text())


# -- loading -----------------------------------------------------------------------------------------------------------


def test_a_run_comes_back(small):
    syn = db.load(small.run)
    assert syn.plan == small.plan
    assert syn.guarantee == small.plan.guarantee
    assert syn.sample(5, seed=1).equals(db.load(str(small.run)).sample(5, seed=1))


def test_a_run_of_an_earlier_version_does_not_know_what_ran(small, tmp_path):
    run, _ = small.copies(tmp_path)
    (run / "executed.json").unlink()
    syn = db.load(run)
    assert syn.executed is None
    assert syn.sample(5, seed=1).equals(db.load(small.run).sample(5, seed=1))
    syn.save(tmp_path / "copy")
    assert not (tmp_path / "copy" / "executed.json").exists()


def test_loading_needs_nothing_internal(small, tmp_path):
    run, _ = small.copies(tmp_path)
    (run / "internal" / "checkpoint.safetensors").write_bytes(b"damaged")
    assert len(db.load(run).sample(3)) == 3


def test_a_saved_copy_is_a_run_folder_too(small, tmp_path):
    syn = db.load(small.run)
    syn.save(tmp_path / "copy")
    again = db.load(tmp_path / "copy")
    assert again.sample(20, seed=4).equals(syn.sample(20, seed=4))
    assert again.run["ledger"] == syn.run["ledger"]
    assert again.executed == syn.executed
    assert (tmp_path / "copy" / "executed.json").read_bytes() == (small.run / "executed.json").read_bytes()
    with pytest.raises(RunFolderError, match="holds a finished run"):
        syn.save(tmp_path / "copy")


def test_a_save_that_fails_leaves_nothing(small, tmp_path, monkeypatch):
    syn = db.load(small.run)

    def full(self, *_: object) -> None:
        raise files.Unwritable(self.path, OSError(28, "No space left on device"))

    monkeypatch.setattr(RunFolder, "save_generator", full)
    with pytest.raises(InputError, match="no space left"):
        syn.save(tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_file_is_refused(small, tmp_path, name):
    run, _ = small.copies(tmp_path)
    (run / name).unlink()
    with pytest.raises(RunFolderError) as caught:
        db.load(run)
    assert caught.value.remedy


DAMAGED = [b"", b"{", b"\x00\xff\xfe", b"[]", b"null", b'{"version": 1}', b"[" * 100_000]


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name in READ for content in DAMAGED if (name, content) != ("executed.json", b"[]")],
)
def test_a_damaged_file_is_refused_in_one_line(small, tmp_path, name, content):
    run, _ = small.copies(tmp_path)
    (run / name).write_bytes(content)
    with pytest.raises(DoublureError) as caught:
        db.load(run)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused(small, tmp_path, version):
    run, _ = small.copies(tmp_path)
    change(run / "run.json", version=version)
    with pytest.raises(RunFolderError, match="version"):
        db.load(run)


def test_a_plan_of_another_doublure_names_the_one_that_reads_it(small, tmp_path):
    run, _ = small.copies(tmp_path)
    plan = json.loads((run / "plan.json").read_text())
    plan["settings"].pop("n_critic")
    (run / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(InputError, match="make the plan again"):
        db.load(run)
    change(run / "run.json", doublure_version="0.0.7\n")
    with pytest.raises(RunFolderError, match=r"use doublure 0\.0\.7\\n with it") as caught:
        db.load(run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("status", ["planned", "reserved", "resumed", "interrupted", "aborted", None])
def test_an_unfinished_run_is_refused(small, tmp_path, status):
    run, _ = small.copies(tmp_path)
    change(run / "run.json", status=status)
    with pytest.raises(RunFolderError, match="--resume"):
        db.load(run)


def test_weights_that_are_not_the_runs_are_refused(small, tmp_path):
    run, _ = small.copies(tmp_path)
    path = run / "generator.safetensors"
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    save_file({name: 2 * tensor for name, tensor in load_file(path).items()}, path, metadata)
    with pytest.raises(RunFolderError, match=r"generator\.safetensors"):
        db.load(run)


@pytest.mark.parametrize(("key", "said"), [("warnings", ["In the words of another version."]), ("epsilon", 0.1)])
def test_another_version_may_warn_in_other_words_and_nothing_else(small, tmp_path, key, said):
    run, _ = small.copies(tmp_path)
    path = run / "generator.safetensors"
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    plan = json.loads(metadata["plan"])
    assert plan[key] != said
    save_file(load_file(path), path, metadata | {"plan": json.dumps(plan | {key: said})})
    change(run / "run.json", generator_sha256=files_sha256(path))
    if key == "warnings":
        change(run / "plan.json", **{key: said})
        assert len(db.load(run).sample(3)) == 3
    else:
        with pytest.raises(RunFolderError, match="was made with another plan"):
            db.load(run)


def test_weights_of_another_shape_are_refused(small, tmp_path):
    run, _ = small.copies(tmp_path)
    path = run / "generator.safetensors"
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    save_file({"body.0.weight": load_file(path)["body.0.weight"][:2].clone()}, path, metadata)
    change(run / "run.json", generator_sha256=files_sha256(path))
    with pytest.raises(RunFolderError, match="damaged"):
        db.load(run)


def files_sha256(path):
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_claim_that_is_not_the_plans_is_refused(small, tmp_path):
    run, _ = small.copies(tmp_path)
    better = small.plan.guarantee.model_copy(update={"epsilon": 0.1})
    (run / "guarantee.json").write_text(json.dumps(better.to_json()))
    with pytest.raises(RunFolderError, match="not what the plan gives"):
        db.load(run)


def test_an_edited_schema_is_refused(small, tmp_path):
    run, _ = small.copies(tmp_path)
    text = (run / "schema.yaml").read_text()
    (run / "schema.yaml").write_text(text.replace("[17, 90]", "[18, 91]"))
    with pytest.raises(RunFolderError, match="another schema"):
        db.load(run)


def test_what_is_no_run_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(RunFolderError, match="is not a run folder"):
            db.load(path)


def test_a_pickle_is_never_read(small, tmp_path):
    import pickle

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    for name in READ:
        run, _ = small.copies(tmp_path)
        (run / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(DoublureError):
            db.load(run)
        assert not (tmp_path / "exploded").exists()
        __import__("shutil").rmtree(run)


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_folder_with_something_in_it_is_never_used(small, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("precious")
    with pytest.raises(RunFolderError, match="is not empty"):
        RunFolder.create(tmp_path / "run", small.plan)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_of_two_processes_one_gets_the_folder(small, tmp_path, monkeypatch):
    """Both find the folder empty; the second one comes to make ``internal`` when the first one has."""
    from pathlib import Path

    monkeypatch.setattr(Path, "iterdir", lambda self: iter(()))
    RunFolder.create(tmp_path / "run", small.plan)
    with pytest.raises(RunFolderError):
        RunFolder.create(tmp_path / "run", small.plan)


def test_what_a_crash_left_half_written_is_swept(small, tmp_path):
    run, _ = small.copies(tmp_path)
    for left in (run / ".run.json.0a1b2c.part", run / "internal" / ".checkpoint.safetensors.0a1b2c.part"):
        left.write_bytes(b"half")
    with (run / "log.jsonl").open("a") as log:
        log.write('{"step": 7, "gener')
    before = (run / "plan.json").read_bytes()
    RunFolder.open(run).sweep()
    assert {path.name for path in run.iterdir()} == FILES
    assert {path.name for path in (run / "internal").iterdir()} == {"checkpoint.safetensors"}
    assert [json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines()] == [2, 4, 6]
    assert (run / "plan.json").read_bytes() == before


def test_discarding_spares_what_is_not_ours(small, tmp_path):
    folder = RunFolder.create(tmp_path / "run", small.plan)
    (tmp_path / "run" / "thesis.txt").write_text("precious")
    folder.discard()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]
    (tmp_path / "run" / "thesis.txt").unlink()
    folder.discard()
    (tmp_path / "run").rmdir()


@pytest.mark.parametrize(("begun", "asked"), [("a", "b"), ("a", ""), ("", "a")])
def test_a_state_names_the_records_that_taught_it(small, tmp_path, begun, asked):
    folder = RunFolder.create(tmp_path / "run", small.plan)
    folder.save(1, {})
    RunFolder(tmp_path / "run").refuse_other_records(begun)  # a state of before there were names
    folder.refuse_other_records(begun)
    folder.save(2, {})
    RunFolder(tmp_path / "run").refuse_other_records(begun)
    error = refused(RunFolder(tmp_path / "run"), asked)
    assert error.remedy == "give the same data, or fit into a new folder"
    assert RunFolder(tmp_path / "run").kept_step == 2


def refused(folder, fingerprint):
    with pytest.raises(RunFolderError, match="was begun with other records, or in another order") as caught:
        folder.refuse_other_records(fingerprint)
    return caught.value


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "run.json"
    files.write_json(path, {"old": 1})

    def fails(file) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="no space left"):
        files.write_atomic(path, fails)
    assert json.loads(path.read_text()) == {"old": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_neither_nan_nor_infinity_is_written(tmp_path):
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            files.write_json(tmp_path / "run.json", {"figure": value})
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_place_of_weights_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "weights.safetensors")
    with pytest.raises(RunFolderError):
        read_tensors(tmp_path / "weights.safetensors")
