"""Rule 2: sampler, clip, noise and accountant are one object, and nobody assembles them by hand (rows 6 and 8)."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
import torch
from replay_noise import ReplayNoise
from scipy import stats
from torch import nn

import doublure
from doublure.data.tables import source as data_tables
from doublure.errors import InputError, NotAsPriced
from doublure.ledger import Ledger
from doublure.methods.dpgan.method import Dpgan
from doublure.methods.statistics.tables import fitting as table_fitting
from doublure.methods.statistics.tables import noisy_tables
from doublure.methods.statistics.tables.method import TableStatistics
from doublure.private import clipping, mechanism
from doublure.private.accounting import GaussianEvent
from doublure.private.clipping import ConstantSchedule
from doublure.private.gradients import CriticLoss
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries import query
from doublure.private.queries.counts import Counts
from doublure.private.records import PrivateRecords
from doublure.run import fitting

SOURCE = Path(doublure.__file__).parent
ALPHA = 1e-6
# What code outside private/ may name; everything else in there gives away a number that was not noised.
PARTS = {
    "accounting": None,
    "mechanism": {"Mechanism"},
    "critic_steps": {"CriticSteps"},
    "kept_answers": {"AnswersInMemory", "KeptAnswer", "Place"},  # noisy, and drawn once: what was given out, kept
    "executed": {"Executed", "as_priced", "steps_of"},
    "queries.query": {"Answer", "Query", "Sensitivity"},
    "sql_partitions": {"CodeTable", "FactColumn", "SqlFactPartitions", "SqlPartitions", "rank_statement"},
    "queries.axes": {
        "AnyAxis",
        "Axis",
        "IntArray",
        "Intervals",
        "Patterns",
        "LARGEST_CODE",
        "Lattices",
        "LinearIdentity",
        "OneRight",
        "PeriodParts",
        "Table",
        "axes_from_message",
        "axes_to_message",
        "whole",
    },
    "queries.nearest": {"LARGEST", "NearestCandidate"},
    "queries.counts": {"Axis", "Countable", "Counts", "Table"},
    "queries.facts": {"Fact", "FactRecords"},
    "queries.dependence": {"Dependence"},
    "queries.sums": {"BoundedSums", "Factors"},
    "queries.trees": {"CountTrees"},
    "queries.votes": {"LabelVotes"},
    "queries.lot_gradients": {"CriticGradients", "CriticSettings", "Partner", "unpaired"},
    "queries.distances": {"DistanceSettings", "distance_sample_rate"},
    "independence": {"refuse_cross_record"},
    "bayesian": {"BayesianAccountant", "group_privacy", "log_moment", "percentiles"},
    "gradients": {"CriticLoss", "RecordPairs"},
    "clipping": {"ConstantSchedule", "GeometricSchedule", "Schedule"},
    "records": {"PrivateRecords", "RecordsElsewhere", "ResumableStore"},
    "partitions": {"Partitions", "SequentialPartitions", "SinglePartition"},
    "ranks": {"FollowerContext", "LeaderContext", "LocalContext"},
    "codes": {"ColumnCodes", "narrowest", "whole_columns"},
    "row_codes": {"RowCodes"},
    "sampling": {"Lot"},
    # What workers hand to the process that adds, as owners do.
    "remote": {"PartitionFacts", "WorkerPartitions", "WorkerResponse", "respond"},
    "owners": {"Owner", "find_fact"},
    "owner_partitions": {"EmptyRecords", "AskOwners", "OwnerPartitions", "RecordView"},
    "noise": {"source", "secret_draws", "SecretDraws", "NoiseSource"},
    "facts": {"learn"},
    "whole_noise": set(),
}
IN_USE = {"noise": {"source", "secret_draws", "SecretDraws"}, "facts": {"learn"}}


def breaches(text):
    """Return what a module outside private/ takes from it and may not."""
    found, modules, nodes = [], {}, list(ast.walk(ast.parse(text)))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("doublure.private"):
            part = node.module.removeprefix("doublure.private").removeprefix(".") or None
            for alias in node.names:
                if part is None:
                    modules[alias.asname or alias.name] = alias.name
                elif part.split(".")[0] == "accounting":
                    continue
                elif part not in PARTS or (PARTS[part] is not None and alias.name not in PARTS[part]):
                    found.append(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("doublure.private.")]
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr == "counted":
            found.append("Fact.counted")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            part = modules[node.value.id]
            allowed = IN_USE.get(part, PARTS.get(part))
            if allowed is not None and node.attr not in allowed:
                found.append(f"{part}.{node.attr}")
    return found


def test_code_outside_the_core_takes_whole_steps_and_no_parts():
    # doctor makes noise on made-up numbers. Attacks, which train their own classifiers, take whole steps like others.
    files = [path for path in SOURCE.rglob("*.py") if not {"private", "doctor.py"} & set(path.parts)]
    assert len(files) > 40
    assert any(path.name == "target_models.py" for path in files)
    assert {str(path): found for path in files if (found := breaches(path.read_text()))} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "from doublure.private.clipping import clipped_sum",
        "from doublure.private.sampling import FixedSizeSampler",
        "from doublure.private.noise import OsKeyedNoise",
        "from doublure.private.queries.facts import count_on_grid",
        "from doublure.private import noise\nx = noise.OsKeyedNoise()",
        "query.counted(records)",
        "from doublure.private.queries.facts import make_fact_query",
        "from doublure.private.gradients import batch_gradient",
        "import doublure.private.clipping as c",
        "from doublure.private.queries.counts import _flat",
        "from doublure.private.queries import counts",
        "from doublure.private import whole_noise\nwhole_noise.gaussian([1], scale=1)",
    ],
)
def test_a_part_taken_out_is_caught(planted):
    assert breaches(planted)


def test_what_reads_noisy_counts_is_given_no_others():
    """It stands outside the core, and asks for nothing in it but a refusal; a query hands it what a mechanism gave."""
    users = [path for path in SOURCE.rglob("*.py") if "noisy_counts import" in path.read_text()]
    columns = {path for path in users if path.parent.name == "columns"}
    assert {path.name for path in users if path not in columns} == {"facts.py"}
    for path in columns:  # a column names a partition, which is public, and is given no count
        nodes = ast.walk(ast.parse(path.read_text()))
        taken = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "doublure.noisy_counts"]
        assert {alias.name for node in taken for alias in node.names} == {"CandidateGrid"}
    asked = {
        node.module
        for node in ast.walk(ast.parse((SOURCE / "noisy_counts.py").read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("doublure")
    }
    assert asked == {"doublure.errors", "doublure.support.checks"}
    facts = ast.parse((SOURCE / "private" / "queries" / "facts.py").read_text())
    for node in ast.walk(facts):
        if isinstance(node, ast.FunctionDef):
            calls = ast.unparse(node)
            if "noisy_counts." in calls or ".bounds(" in calls:
                assert node.name == "read"


def opening_calls(text):
    """Return which methods of private records a module calls that hand out what is in them."""
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return {call.attr for call in calls if isinstance(call, ast.Attribute)} & {
        "lot",
        "expanded",
        "chunks",
        "answer",
        "answers",
        "ask",
    }


def test_no_method_opens_records_by_itself():
    found = {
        path.name: opened
        for path in [*SOURCE.glob("methods/**/*.py"), *SOURCE.glob("training/*.py"), *SOURCE.glob("public/*.py")]
        if (opened := opening_calls(path.read_text()))
    }
    # The first claims nothing; the records of the others are public, and no method trains by the last.
    assert found == {"critic_steps.py": {"lot"}, "public_counts.py": {"answer"}, "training.py": {"lot"}}
    users = {path.name for path in SOURCE.rglob("*.py") if "public.training" in path.read_text()}
    assert users == {"fitting.py"}
    assert "public.training" in (SOURCE / "public" / "fitting.py").read_text()


def test_a_method_that_opens_records_is_caught():
    assert opening_calls("for body, label in records.expanded(500):\n    means.partial_fit(body)")


def check_records_are_opened_by_the_mechanism_alone(lab, patch):
    lot, openers = PrivateRecords.lot, set()

    def watched(records, units):
        caller = inspect.currentframe().f_back
        openers.add((Path(caller.f_code.co_filename).name, caller.f_code.co_name, len(units) == 0))
        return lot(records, units)

    with patch.context() as inner:
        inner.setattr(PrivateRecords, "lot", watched)
        lab.train(lab.people())
    assert {(file, name) for file, name, empty in openers if not empty} == {("lot_gradients.py", "gradients")}


def test_records_are_opened_by_the_mechanism_alone(lab, monkeypatch):
    check_records_are_opened_by_the_mechanism_alone(lab, monkeypatch)


def test_a_method_that_peeks_is_caught(lab, monkeypatch):
    lab.plant(
        Dpgan,
        "train",
        (
            "generator = train(job, settings, teacher, adversaries)",
            ("job.records.lot(__import__('numpy').arange(3))\ngenerator = train(job, settings, teacher, adversaries)"),
        ),
    )
    with lab.caught():
        check_records_are_opened_by_the_mechanism_alone(lab, monkeypatch)


class TwoLayers(nn.Module):
    def __init__(self, inputs=6):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 40), nn.LeakyReLU(0.2), nn.Linear(40, 1))

    def forward(self, x, condition=None):
        return self.body(x).squeeze(1)


def settings(**changes):
    return {
        "loss": CriticLoss(kind="wgan"), "schedule": ConstantSchedule(max_grad_norm=0.5), "noise_multiplier": 2.0,
        "sample_rate": 1.0, "steps": 400, "expected_units": 4.0,
    } | changes  # fmt: skip


def partner(size, condition):
    return torch.zeros(size, 6)


def huge(rows=1):
    return torch.full((rows, 6), 1e4)


def check_one_huge_record_counts_for_exactly_one_clip(lab):
    critic = TwoLayers()
    size = sum(p.numel() for p in critic.parameters())
    step = lab.mechanism(huge(), settings(), noise=ReplayNoise(repeat(torch.zeros(size))))
    norm = float((step.gradient(critic, partner) * 4.0).norm())
    assert norm == pytest.approx(0.5, rel=3e-6)
    assert norm <= 0.5


def check_noise_is_added_after_the_clip(lab):
    critic = TwoLayers()
    step, plain = (lab.mechanism(huge(), settings(), noise=source) for source in (OsKeyedNoise(), Zero()))
    residual = torch.cat([step.gradient(critic, partner) - plain.gradient(critic, partner) for _ in range(60)])
    assert stats.kstest((residual * 4.0).numpy(), stats.norm(scale=1.0).cdf).pvalue > ALPHA


class Zero:
    name, for_tests = "zero", True

    def normal(self, size, std):
        return ScaledNoise(np.zeros(size, dtype=np.float32), std)


def test_clip_then_sum_then_noise(lab):
    check_one_huge_record_counts_for_exactly_one_clip(lab)
    check_noise_is_added_after_the_clip(lab)


RETURNED = "_sum(total, real.values)"


@pytest.mark.parametrize(
    "edit",
    [
        (RETURNED, f"({RETURNED}) * np.float32(min(1.0, moved.l2 / float(np.linalg.norm({RETURNED}))))"),
        (RETURNED, "_sum(total, real.values * np.float32(2 * np.random.default_rng().random()))"),
        ("self._noise.normal(total.size, event.noise_multiplier * moved.l2)",
         "self._noise.normal(1, event.noise_multiplier * moved.l2)"),
    ],
    ids=["clip after noise", "noise scaled by chance", "one draw for all weights"],
)  # fmt: skip
def test_noise_in_the_wrong_place_is_caught(lab, edit):
    lab.plant(mechanism.Mechanism, "_noised", edit)
    with lab.caught():
        check_noise_is_added_after_the_clip(lab)


@pytest.mark.parametrize("layers", [2, 4])
def test_bounds_by_layer_that_are_not_composed_are_caught(lab, monkeypatch, layers):
    factors = clipping.clip_factors
    # Each of L layers clipped to C on its own: a record counts for up to C·√L.
    monkeypatch.setattr(clipping, "clip_factors", lambda norms, bound: factors(norms / np.sqrt(layers), bound))
    with lab.caught():
        check_one_huge_record_counts_for_exactly_one_clip(lab)


def check_sensitivity_is_that_of_add_remove(lab):
    """Adding a unit moves the sum by at most C, and by C where it is clipped; the noise is made for that."""
    critic = TwoLayers()
    size = sum(p.numel() for p in critic.parameters())
    sums = []
    for rows in (2, 3):
        noise = ReplayNoise([torch.zeros(size)])
        sums.append(lab.mechanism(huge(rows), settings(), noise=noise).gradient(critic, partner) * 4.0)
        assert noise.asked == [(size, 2.0 * 0.5)]
    assert float((sums[1] - sums[0]).norm()) == pytest.approx(0.5, rel=1e-5)


def test_sensitivity_is_that_of_add_remove(lab):
    check_sensitivity_is_that_of_add_remove(lab)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_another_sensitivity_is_caught(lab, share):
    lab.plant(clipping, "clipped_sum", ("sensitivity=max_grad_norm", f"sensitivity={share} * max_grad_norm"))
    with pytest.raises((AssertionError, NotAsPriced)):
        check_sensitivity_is_that_of_add_remove(lab)


def test_the_relation_stands_in_plan_claim_and_event(plan):
    assert plan.relation == plan.guarantee.relation == "add-remove"
    assert "add/remove neighbours" in plan.guarantee.sentence


def test_noise_for_tests_is_refused(lab):
    with pytest.raises(doublure.errors.SettingError, match="tests only"):
        lab.mechanism(huge(), settings(), noise=ReplayNoise([]), allow_test_noise=False)


def check_a_plan_changed_by_hand_is_refused(lab, plan, folder):
    """σ, q, T and the claim are one calibration: a plan in which one was changed buys nothing and opens nothing."""
    ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=100.0, delta=0.5)
    (training,) = [access for access in plan.touches if isinstance(access.event, GaussianEvent)]
    weaker = replace(training, event=replace(training.event, noise_multiplier=0.01))
    forged = {
        "noise": replace(plan, noise_multiplier=0.01),
        "rate": replace(plan, sample_rate=1.0),
        "steps": replace(plan, settings=plan.settings.model_copy(update={"steps": 600})),
        "claim": replace(plan, guarantee=plan.guarantee.model_copy(update={"epsilon": 0.1})),
        "total": replace(plan, epsilon=0.1, guarantee=plan.guarantee.model_copy(update={"epsilon": 0.1})),
        "noise, event and claim": replace(
            plan,
            noise_multiplier=0.01,
            touches=(*plan.learned, weaker),
            guarantee=plan.guarantee.model_copy(update={"noise_multiplier": 0.01}),
        ),
    }
    for name, made in forged.items():
        lab.refusal(InputError, partial(lab.fit, lab.people(), made, folder / name, real=True, ledger=ledger))
        assert [record.kind for record in ledger.entries] == ["open"], name


def test_a_plan_changed_by_hand_is_refused(lab, declared_plan, tmp_path):
    check_a_plan_changed_by_hand_is_refused(lab, declared_plan, tmp_path)


def test_a_fit_that_takes_it_is_caught(lab, monkeypatch, declared_plan, tmp_path):
    monkeypatch.setattr(fitting, "_refuse_forged", lambda plan: None)
    with lab.caught():
        check_a_plan_changed_by_hand_is_refused(lab, declared_plan, tmp_path)


# -- tables: counting, noise and event are one object too --------------------------------------------------------------


def check_records_are_counted_by_their_mechanism_alone(lab, patch):
    openers, chunks = set(), PrivateRecords.chunks

    def watched(records, rows):
        caller = inspect.currentframe().f_back
        openers.add((Path(caller.f_code.co_filename).name, caller.f_code.co_name))
        return chunks(records, rows)

    with patch.context() as inner:
        inner.setattr(PrivateRecords, "chunks", watched)
        lab.count(lab.people())
    assert openers == {("counts.py", "answer")}


def test_records_are_counted_by_their_mechanism_alone(lab, monkeypatch):
    check_records_are_counted_by_their_mechanism_alone(lab, monkeypatch)


def test_a_method_that_counts_by_itself_is_caught(lab, monkeypatch):
    lab.plant(table_fitting, "release_and_fit", ("tables.count()", "list(job.records.chunks(9))\n    tables.count()"))
    with lab.caught():
        check_records_are_counted_by_their_mechanism_alone(lab, monkeypatch)


def check_tables_move_by_no_more_than_is_paid_for(lab):
    """One unit more or less moves all tables together by 1/σ in units of their noise, and by no more.

    By a little less where a place among the tables stays unused: what the noise has shown decides it.
    """

    def check_price(found, allowed):
        assert 0.9 * allowed < found <= allowed * (1 + 1e-9)

    base = lab.people()
    kept = lab.count(base)
    paid = 1 / kept.public["noise_multiplier"]
    for record in lab.ODD_RECORDS.values():
        check_price(lab.price(kept, lab.count(lab.with_unit(base, record), like=kept)), paid)
    check_price(lab.price(kept, lab.count(lab.without_unit(base, "p7"), like=kept)), paid)
    base = lab.people(records=2)
    kept = lab.count(base, lab.SEVERAL)
    paid = 1 / kept.public["noise_multiplier"]
    for records, share in ((1, 1 / 3), (3, 1.0), (5, 1.0)):
        more = lab.with_unit(base, lab.ODD_RECORDS["duplicate"], records=records)
        check_price(lab.price(kept, lab.count(more, lab.SEVERAL, like=kept)), paid * share)
    fewer = lab.price(kept, lab.count(lab.without_unit(base, "p7"), lab.SEVERAL, like=kept))
    assert paid / 3 < fewer <= paid * (1 + 1e-9)


def test_tables_move_by_no_more_than_is_paid_for(lab):
    check_tables_move_by_no_more_than_is_paid_for(lab)


LIMIT = (mechanism, "_refuse_dearer", ("not stated.l2 <= priced.l2 * (1 + _ROUNDING)", "False"))
BOUND = (query, "require_records", ("most > allowed", "False"))
WANTED = ("[*repeated, *spare]", "[*repeated, *spare, *repeated]")
CHUNK = "self._rows(slice(first, first + rows))"
NOISE = "whole_noise.gaussian(total, scale=event.scale)"
TABLES = {
    "a record counted twice": [
        (
            Counts,
            "answer",
            (
                "np.bincount(places(table, cells), minlength=len(found[key]))",
                "2 * np.bincount(places(table, cells), minlength=len(found[key]))",
            ),
        )
    ],
    "less noise than the event says": [
        (mechanism.Mechanism, "_noised", (NOISE, NOISE.replace("=event", "=0.9 * event")))
    ],
    "more tables than planned": [LIMIT, (noisy_tables.NoisyTables, "_released", WANTED)],
    "priced as one record": [
        (TableStatistics, "accesses", ("records=schema.most_records", "records=1")),
        LIMIT,
    ],
    "a unit not bounded": [
        (
            data_tables,
            "_bounded",
            (
                "pd.Series(codes).groupby(codes).cumcount() < max_records",
                "pd.Series(codes).groupby(codes).cumcount() >= 0",
            ),
        ),
        BOUND,
    ],
    "the last records counted again": [
        (PrivateRecords, "chunks", (f"yield {CHUNK}", f"yield np.concatenate([{CHUNK}, {CHUNK}[-30:]])"))
    ],
}


@pytest.mark.parametrize("mutant", TABLES)
def test_tables_that_move_by_more_are_caught(lab, mutant):
    for owner, name, edit in TABLES[mutant]:
        lab.plant(owner, name, edit)
    with pytest.raises((AssertionError, NotAsPriced)):
        check_tables_move_by_no_more_than_is_paid_for(lab)


@pytest.mark.parametrize("mutant", ["more tables than planned", "a unit not bounded"])
def test_each_of_them_is_refused_by_a_second_lock(lab, mutant):
    """A method that asks for more tables, or a loader that lets too many records through, gets nothing."""
    owner, name, edit = next(part for part in TABLES[mutant] if part not in (LIMIT, BOUND))
    lab.plant(owner, name, edit)
    five = lab.with_unit(lab.people(records=2), lab.ODD_RECORDS["duplicate"], records=5)
    with pytest.raises(doublure.errors.SettingError, match=r"that was priced|max_records"):
        lab.count(five, lab.SEVERAL)


def check_tables_of_a_forged_plan_are_refused(lab, plan, folder):
    ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=100.0, delta=0.5)
    *others, last = plan.touches
    forged = {
        "noise": replace(plan, noise_multiplier=0.01),
        "scale": replace(plan, touches=(*others, replace(last, event=replace(last.event, scale=0.1)))),
        "tables": replace(plan, touches=(*others, replace(last, event=replace(last.event, tables=1)))),
        "releases": replace(plan, settings=plan.settings.model_copy(update={"within": ""})),
    }
    for name, made in forged.items():
        lab.refusal(InputError, partial(lab.fit, lab.people(), made, folder / name, real=True, ledger=ledger))
        assert [record.kind for record in ledger.entries] == ["open"], name


def test_tables_of_a_forged_plan_are_refused(lab, counting_plan, tmp_path):
    check_tables_of_a_forged_plan_are_refused(lab, counting_plan, tmp_path)


def test_a_fit_that_counts_by_a_forged_plan_is_caught(lab, monkeypatch, counting_plan, tmp_path):
    monkeypatch.setattr(fitting, "_refuse_forged", lambda plan: None)
    with lab.caught():
        check_tables_of_a_forged_plan_are_refused(lab, counting_plan, tmp_path)
