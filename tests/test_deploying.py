"""Files under deploy/: checked by schemas, their commands run, cut off and run again."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from forked_program import forked_program
from parted import DECLARED, people, plan_of
from tiers import exhaustive

import doublure as db
from doublure.cli.terminal import TerminalProgress
from doublure.methods.statistics.tables import work
from doublure.support.stopping import StopSignal

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="deploy/ is not here")
RESUMABLE, REFUSALS = 130, [2, 3, 4]
OPTIONS = {
    "job-name": r"[a-z-]+", "ntasks": r"\d+", "cpus-per-task": r"\d+", "mem": r"\d+[KMGT]",
    "time": r"\d\d:\d\d:\d\d", "requeue": "", "signal": r"(?:[BR]:)?(?:TERM|\d+)(?:@\d+)?",
    "open-mode": "append|truncate",
}  # fmt: skip
"""Options of sbatch that are used, and the values that its manual allows."""


def stay(file: Path) -> None:
    """Let a fit stay between charge and counting until a signal comes, while a file is there."""
    stage, seen = TerminalProgress.stage, StopSignal._seen

    def staying(self, name, *rest):
        stage(self, name, *rest)
        while name == "count" and file.exists():
            time.sleep(0.01)

    def leaving(self, *signal):
        file.unlink(missing_ok=True)
        seen(self, *signal)

    TerminalProgress.stage, StopSignal._seen, work.DRAWN = staying, leaving, 500


def manifests():
    return list(yaml.safe_load_all((DEPLOY / "job.yaml").read_text()))


def instructions():
    """Return the Dockerfile's instructions, a list of (name, rest); continued lines are joined."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with data, plan and ledger, and on the path doublure, fit.sh and a scontrol that keeps its words."""
    people().to_csv(tmp_path / "people.csv", index=False)
    plan_of(DECLARED).save(tmp_path / "plan.json")
    db.Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    (tmp_path / "bin").mkdir()
    shutil.copy(DEPLOY / "fit.sh", tmp_path / "bin" / "doublure-fit")
    (tmp_path / "bin" / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/scontrol\n')
    for path in (tmp_path / "bin").iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("STAY", str(tmp_path / "stay"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("DOUBLURE_DEPLOY", str(DEPLOY))
    with forked_program(tmp_path / "bin" / "doublure", lambda: stay(tmp_path / "stay")):
        yield tmp_path


def begun(run: Path) -> bool:
    try:
        return "sequence" in json.loads((run / "run.json").read_text())["ledger"]
    except (OSError, ValueError, KeyError):
        return False


def cut_off(command: list[str], run: Path, how: signal.Signals) -> int:
    """Start a command, send it a signal once the run is charged, and return its exit code."""
    stay = Path(os.environ["STAY"])
    stay.touch()
    process = subprocess.Popen(command)
    until = time.monotonic() + 120
    while not begun(run) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(how)
    code = process.wait(120)
    stay.unlink(missing_ok=True)
    return code


def check_went_on(place: Path, run: Path, command: list[str]) -> None:
    """Run it again: it is done, and was charged once."""
    assert subprocess.run(command, check=False).returncode == 0
    assert json.loads((run / "run.json").read_text())["status"] == "done"
    assert db.Ledger.open(place / "ledger").spent.epsilon == plan_of(DECLARED).epsilon


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=exhaustive)])  # Slurm's, below
def test_the_command_of_the_job_goes_on_in_its_next_pod(place, how):
    (container,) = manifests()[1]["spec"]["template"]["spec"]["containers"]
    here = {"/work/run": "run", "s3://hospital/visits/": "people.csv", "/plan/plan.json": "plan.json"}
    here |= {"postgresql://runner@db.example/privacy/visits": "ledger"}
    assert here.keys() <= {*container["command"]}
    command = [str(place / here[word]) if word in here else word for word in container["command"]]
    assert cut_off(command, place / "run", how) == (RESUMABLE if how is signal.SIGTERM else -signal.SIGKILL)
    check_went_on(place, place / "run", command)


def test_a_refusal_ends_the_job_and_an_interruption_does_not(place):
    (container,) = manifests()[1]["spec"]["template"]["spec"]["containers"]
    evicted, refused = manifests()[1]["spec"]["podFailurePolicy"]["rules"]
    assert evicted["action"] == "Ignore"
    assert (refused["action"], refused["onExitCodes"]["values"]) == ("FailJob", REFUSALS)
    assert refused["onExitCodes"]["containerName"] == container["name"]
    poor = place / "poor"
    db.Ledger.create(poor, dataset="people", epsilon=0.1, delta=0.5)
    words = [str(place / "run"), str(place / "people.csv"), "--plan", str(place / "plan.json"), "--ledger", str(poor)]
    assert subprocess.run(["doublure-fit", *words], check=False).returncode in REFUSALS
    assert not (place / "run").exists()


def test_the_job_of_slurm_queues_itself_again(place):
    words = [str(place / "run"), str(place / "people.csv"), "--plan", str(place / "plan.json")]
    command = ["bash", str(DEPLOY / "fit.sbatch"), *words, "--ledger", str(place / "ledger")]
    assert cut_off(command, place / "run", signal.SIGTERM) == RESUMABLE
    assert (place / "scontrol").read_text() == "requeue 17\n"
    check_went_on(place, place / "run", command)
    assert (place / "scontrol").read_text() == "requeue 17\n"


def test_options_of_slurm_are_those_of_its_manual():
    found = re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", (DEPLOY / "fit.sbatch").read_text(), re.MULTILINE)
    assert len(found) == (DEPLOY / "fit.sbatch").read_text().count("#SBATCH")
    assert all(re.fullmatch(OPTIONS[name], value) for name, value in found)


def test_manifests_are_of_kubernetes_own_schema():
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate has the schemas")
    for manifest in manifests():
        validate.validate(manifest, validate.latest_version(), strict=True)
    broken = manifests()[1]
    broken["spec"]["template"]["spec"]["restart"] = "Never"
    with pytest.raises(validate.ValidationError):
        validate.validate(broken, validate.latest_version(), strict=True)


def test_the_pod_has_no_right_that_it_does_not_need():
    pod = manifests()[1]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    user = str(pod["securityContext"]["runAsUser"])
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert [rest for name, rest in instructions() if name == "USER"] == [f"{user}:{user}"]


def test_the_image_is_made_from_what_it_copies(tmp_path):
    """A wheel is built from the copied files alone, and the last stage holds no source."""
    copied = [rest.split() for name, rest in instructions() if name == "COPY"]
    for *sources, target in copied[:2]:
        for source in sources:
            path = tmp_path / (target if target != "./" else "") / ("" if target != "./" else source)
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, path)
    pytest.importorskip("hatchling", reason="the extra dev is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "dist").glob("doublure-*.whl"))) == 1
    assert all(words[0].startswith("--") for words in copied[2:])
    assert (ROOT / copied[3][1]).is_file()


def test_the_image_runs():
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no builder of images: the docker daemon does not answer")
    build = ["docker", "build", "-q", "-f", str(DEPLOY / "Dockerfile"), str(ROOT)]
    image = subprocess.run(build, capture_output=True, text=True, check=True).stdout.strip()
    said = subprocess.run(["docker", "run", "--rm", image, "doctor"], capture_output=True, text=True, check=True)
    assert "doublure" in said.stdout
