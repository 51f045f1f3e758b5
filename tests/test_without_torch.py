"""A table goes its whole way where torch is not installed; whoever needs torch says so before anything is charged."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torchless

import doublure as db
from doublure.errors import MissingExtra
from doublure.methods import registry

SCHEMA = """
doublure: 1
kind: table
unit: {name: person}
units: 600
columns:
  age: {type: integer, bounds: [18, 90], missing: false}
  town: {type: category, values: [a, b, c], missing: false, roles: [condition]}
  income: {type: category, values: [low, high], missing: false, roles: [target]}
"""
WAY = """
import io, sys
import pandas as pd
import doublure as db
from doublure.cli.terminal import run_guarded
from doublure.cli.main import app
from doublure.measures.tables import utility
from doublure.methods.statistics.tables import work
from doublure.report import plots

utility._TREES, work.DRAWN = 5, 500
plots.draw = lambda width, height, key, alt, paint: alt  # figures are drawn elsewhere

def verb(*words, code=0):
    ended = run_guarded(app, list(words))
    assert ended == code, (words, ended)

verb("schema", "draft", "real.csv", "-o", "draft.yaml")
verb("schema", "check", "schema.yaml", "--data", "real.csv")
verb("plan", "schema.yaml", "--epsilon", "2", "--delta", "1e-5", "-o", "plan.json")
verb("budget", "init", "x.ledger", "--dataset", "x", "--epsilon", "9", "--delta", "1e-3")
for run in (("one",), ("two", "--again")):
    verb("fit", "real.csv", "--plan", "plan.json", "--ledger", "x.ledger", "-o", *run, "--seed", "1")
given = ("--given", "income=high", "--given", "age=40")
verb("sample", "one", "-n", "300", *given, "--seed", "7", "-o", "rows.parquet")
verb("release", "one", "-n", "300", "-o", "bundle")
verb("release", "one", "--generator", "-o", "published")
verb("verify", "bundle", "--ledger", "x.ledger")
verb("sample", "published", "-n", "20", "-o", "more.csv")
verb("evaluate", "one", "--real", "real.csv", "--holdout", "kept.csv", "-o", "report.html")
verb("compare", "one", "two", "--real", "real.csv", "--holdout", "kept.csv", "-o", "compare.html")
verb("audit", "one", "--attack", "quick", "--real", "real.csv", "--holdout", "kept.csv", "-o", "audit.html")
verb("inspect", "one", "--against", "two", "-o", "inspect.html")
verb("doctor")

schema = db.Schema.load("schema.yaml")
plan = db.plan(schema, method="auto", epsilon=1.0, delta=1e-5)
syn = db.fit("real.csv", plan, ledger=db.Ledger.open("x.ledger"), out="three", seed=1)
assert len(syn.sample(50, given={"income": "high"}, seed=1)) == 50
again = db.load("three")
pd.testing.assert_frame_equal(again.sample(50, seed=2), syn.sample(50, seed=2))
assert again.tables and again.tables[0].counts.size
assert "torch" not in sys.modules
print("whole")
"""
RELATED = """
import pandas as pd
import doublure as db
from doublure.methods.statistics.tables import work

work.DRAWN = 500

def people(seed):
    import numpy as np
    rng = np.random.default_rng(seed)
    who = pd.DataFrame({"person": range(400), "tier": rng.choice(["a", "b"], 400)})
    visits = pd.DataFrame({"person": rng.integers(0, 400, 700), "cost": rng.integers(0, 50, 700)})
    return {"people": who, "visits": visits}

schema = db.Schema.load("related.yaml")
plan = db.plan(schema, epsilon=4.0, delta=1e-5, accountant="rdp")
ledger = db.Ledger.create("y.ledger", dataset="y", epsilon=9, delta=1e-3)
syn = db.fit(people(0), plan, ledger=ledger, out="related", seed=1)
assert set(db.load("related").sample(30, seed=1)) == {"people", "visits"}
db.release(syn, "related-bundle", n=30)
print("whole")
"""
OWNERS = """
from pathlib import Path
import doublure as db
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.federated.simulate import fit_remotely
from doublure.methods.statistics.tables import work

work.DRAWN = 500

class Hands:
    def __init__(self, owners):
        self.owners = owners

    def nodes(self):
        return list(self.owners)

    def send(self, messages):
        return ((node, self.owners[node].answer(said)) for node, said in messages.items())

text = Path("schema.yaml").read_text().replace("kind: table", "kind: table\\nfederated: {max_silos: 1}")
plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=2.0, delta=1e-5)
owners = {
    node: Silo(name=name, data=name, plan=plan, ledger=Path(f"{name}.ledger"), folder=Path(f"at {name}"),
               makes_ledger=True)
    for node, name in enumerate(["real.csv", "kept.csv"], start=1)
}
ledger = db.Ledger.create("all.ledger", dataset="all", epsilon=9.0, delta=1e-3)
asked = Clients(Hands(owners), plan)
syn = fit_remotely(asked, plan, ledger=ledger, out=Path("owned"))
assert not any(each.missed for each in asked.rounds), asked.rounds
assert len(syn.sample(20)) == 20
print("whole")
"""
RELATED_SCHEMA = """
doublure: 1
kind: relational
units: 400
tables:
  people:
    key: person
    columns:
      person: {type: id}
      tier: {type: category, values: [a, b], missing: false}
  visits:
    parent: people
    foreign_key: person
    max_children: 3
    columns:
      person: {type: id}
      cost: {type: integer, bounds: [0, 50], missing: false}
"""


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    income = np.where(rng.random(rows) < age / 120, "high", "low")
    return pd.DataFrame({"age": age, "town": rng.choice(list("abc"), rows), "income": income})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people(600, 0).to_csv(tmp_path / "real.csv", index=False)
    people(300, 1).to_csv(tmp_path / "kept.csv", index=False)
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    (tmp_path / "related.yaml").write_text(RELATED_SCHEMA)
    return tmp_path


@pytest.mark.slow
def test_a_table_goes_its_whole_way(folder: Path) -> None:
    assert torchless.run(WAY, folder)[-1] == "whole"


@pytest.mark.slow
def test_related_tables_are_fitted_sampled_and_released(folder: Path) -> None:
    assert torchless.run(RELATED, folder)[-1] == "whole"


@pytest.mark.slow
def test_owners_are_counted(folder: Path) -> None:
    assert torchless.run(OWNERS, folder)[-1] == "whole"


# -- who needs it ------------------------------------------------------------------------------------------------------


class Absent:
    """Finds no torch, as where it is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])


IMAGES = "doublure: 1\nkind: images\nunits: 400\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 1]}\n"
SERIES = (
    "doublure: 1\nkind: series\nunits: 400\nseries: {length: 4}\n"
    "channels: {flow: {type: integer, bounds: [0, 3], missing: false}}\n"
)
PRICED = {"epsilon": 4.0, "delta": 1e-5}
NEED = [
    ("dpgan", SCHEMA, PRICED | {"accountant": "rdp"}),
    ("bayesgan", IMAGES, PRICED),
    ("gan", SCHEMA, {}),
    ("noisecritic", SCHEMA, {}),
    ("guided", SCHEMA, PRICED | {"accountant": "rdp", "critic_share": 0.2}),
    ("guided", IMAGES, PRICED),
    ("statistics", IMAGES, PRICED),
    ("statistics", SERIES, PRICED),
]


@pytest.mark.parametrize(
    ("method", "schema", "settings"), NEED, ids=lambda given: given if len(str(given)) < 12 else ""
)
def test_who_needs_torch_says_so_in_a_line_before_anything_is_charged(
    absent, tmp_path, method, schema, settings
) -> None:
    plan = db.plan(db.Schema.parse(schema), method=method, **settings)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="x", epsilon=9.0, delta=1e-3)
    with pytest.raises(MissingExtra) as refused:
        db.fit(tmp_path / "is never opened", plan, ledger=ledger, out=tmp_path / "run")
    assert str(refused.value) == f"method {method}: needs torch; pip install 'doublure[torch]'"
    assert refused.value.exit_code == 2
    assert [entry.kind for entry in ledger.entries if entry.kind == "reserve"] == []
    assert ledger.remaining.epsilon == 9.0
    assert not (tmp_path / "run").exists()


def test_every_method_is_asked() -> None:
    """latentgan and evolution are refused with their public sources, which need torch before they do."""
    assert {name for name, *_ in NEED} | {"evolution", "latentgan"} == set(registry.METHODS)
    needs = registry.method("latentgan").needs_torch
    assert needs(db.Schema.parse(IMAGES), None)  # type: ignore[arg-type]


def test_guided_without_a_critic_and_statistics_of_tables_need_none() -> None:
    schema = db.Schema.parse(SCHEMA)
    for method in ("statistics", "guided"):
        plan = db.plan(schema, method=method, **PRICED)
        assert not registry.method(method).needs_torch(schema, plan.settings)


def test_a_public_generator_the_trainers_audit_and_another_device_say_so_too(absent, tmp_path) -> None:
    from doublure.auditing.trainer import audit_trainer
    from doublure.auditing.worst_case import audit_method
    from doublure.support.devices import check_device

    asked = {
        "a public generator": lambda: db.public.fit(tmp_path, IMAGES, provenance={}, out=tmp_path / "public"),
        "--trainer": audit_trainer,
        "method dpgan": lambda: audit_method("dpgan"),
        "device cuda": lambda: check_device("cuda"),
    }
    for what, ask in asked.items():
        with pytest.raises(MissingExtra) as refused:
            ask()
        assert str(refused.value) == f"{what}: needs torch; pip install 'doublure[torch]'"


def test_a_run_of_a_network_cannot_be_loaded_and_says_why(tmp_path, monkeypatch) -> None:
    plan = db.plan(db.Schema.parse(SCHEMA), method="gan", steps=2, width=8, depth=1)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="x", epsilon=9.0, delta=1e-3)
    db.fit(people(600, 0), plan, ledger=ledger, out=tmp_path / "run")
    (line,) = torchless.run(
        "from doublure.cli.main import app\nfrom doublure.cli.terminal import run_guarded\nimport contextlib, sys\n"
        "with contextlib.redirect_stderr(sys.stdout):\n"
        "    code = run_guarded(app, ['sample', 'run', '-n', '3', '-o', 'x.csv'])\n"
        "assert code == 2, code",
        tmp_path,
    )
    assert line == "doublure: method gan: needs torch; pip install 'doublure[torch]'"


# -- modules -----------------------------------------------------------------------------------------------------------

NETWORKS = {
    "networks", "private.clipping", "private.critic_steps", "private.gradients", "private.independence",
    "private.queries.distances", "private.queries.lot_gradients", "private.queries.sums", "private.queries.votes",
    "public.training", "training.critic_steps", "training.gan_loop", "training.network_states", "training.noisy_sums",
    "training.feature_view", "training.label_check",
    "training.private_classifier", "encode.image", "encode.series", "encode.series_codes", "encode.series_places",
    "encode.attributes", "methods.bayesgan.training", "methods.evolution.embedding", "methods.evolution.evolving",
    "methods.evolution.sources", "methods.guided.refining", "methods.latentgan.moments",
    "methods.latentgan.training", "methods.noisecritic.label_votes", "methods.statistics.images.mean_embedding",
    "methods.statistics.series.chain_fit", "methods.statistics.series.copula_fit",
    "methods.statistics.series.coarse_scores", "methods.statistics.series.group_scores",
    "methods.statistics.series.joint_attributes", "methods.statistics.series.looks",
    "methods.statistics.series.shared_gaps", "methods.statistics.series.step_counts",
    "methods.statistics.series.transition_tables", "methods.statistics.tables.group_rows",
}  # fmt: skip
"""What computes in torch, and may import it; every other module is imported without."""
FLOWER = {"federated.app", "federated.flower", "federated.grid"}
"""What imports Flower, which is an extra."""


def test_modules_beside_the_networks_import_no_torch(tmp_path: Path) -> None:
    root = Path(db.__file__).parent
    parts = (path.relative_to(root).with_suffix("").parts for path in sorted(root.rglob("*.py")))
    names = [".".join(part).removesuffix(".__init__") for part in parts if "__main__" not in part]
    left_out = NETWORKS | (FLOWER if importlib.util.find_spec("flwr") is None else set())
    light = [name for name in names if not any(name == heavy or name.startswith(f"{heavy}.") for heavy in left_out)]
    assert len(light) > 300
    of_tables = ["networks.tree", "networks.related_units", "networks.sampling", "networks.steering"]
    looked_at = [f"doublure.{name}" for name in light + of_tables if name != "__init__"]
    code = f"import importlib\nfor name in {looked_at}:\n    importlib.import_module(name)\nprint('all')"
    assert torchless.run(code, tmp_path) == ["all"]
    for name in sorted(NETWORKS - {"networks"}):
        importlib.import_module(f"doublure.{name}")  # is still there
