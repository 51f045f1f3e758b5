import json

import numpy as np
import pytest

from doublure import evaluate
from doublure.errors import SettingError
from doublure.measures import registry
from doublure.measures.scores import distance_score

PREDICTIONS = {"accuracy", "auc", "average_precision", "macro_f1", "coefficient_signs", "coefficients"}
KNOWN = "! real: is no further from this run's own rows"  # as is said of the one that knows the real rows by heart


@pytest.fixture
def two(make_synthesizer, real, shuffle_columns):
    """One that knows the real rows by heart, and one that shuffles every column."""
    return {"good": make_synthesizer(real), "poor": make_synthesizer(shuffle_columns(real))}


@pytest.fixture(scope="module")
def compared(make_synthesizer, real, holdout, shuffle_columns):
    """The comparison of two such."""
    two = {"good": make_synthesizer(real), "poor": make_synthesizer(shuffle_columns(real))}
    return evaluate.compare(two, real, holdout, seed=4)


def test_the_same_figures_for_each(compared, two, real, holdout):
    good, poor = compared.contenders
    assert (good.name, poor.name) == ("good", "poor")
    assert {(one.unit, one.max_records) for one in compared.contenders} == {("person", 1)}
    assert [one.guarantee for one in compared.contenders] == ["No privacy guarantee. Do not publish."] * 2
    assert [score.key for score in good.scores] == [score.key for score in poor.scores]
    assert good.scores == evaluate.report(two["good"], real, holdout, seed=4).measured.scores
    for one, other in zip(good.scores, poor.scores, strict=True):
        assert (one.baseline, one.real) == (other.baseline, other.real)
    (ranked,) = (n for n, score in enumerate(good.scores) if score.key == "accuracy")
    assert good.scores[ranked].value > poor.scores[ranked].value


def test_the_table_names_everybody_and_says_that_it_is_internal(compared):
    lines = [line for line in str(compared).splitlines() if not line.startswith(KNOWN)]
    assert lines[0] == "INTERNAL: computed on real data: do not publish"
    assert lines[1].split() == ["good", "poor", "independent", "columns", "real", "rows", "good", "is"]
    shown = [line for line in lines[3:] if line and not line.startswith(("good:", "poor:", "* best"))]
    assert [line.split("  ")[0] for line in shown] == [entry.score.name for entry in compared.side_by_side]
    assert json.loads(compared.to_json())["internal"] == "computed on real data: do not publish"


def test_columns_that_find_no_room_stand_below(compared):
    said = ("good:", "poor:", "* best", KNOWN)
    whole = [line for line in str(compared).splitlines()[1:] if line and not line.startswith(said)]
    assert max(map(len, whole)) > 60
    narrow = compared.text(60).splitlines()[1:]
    table = [line for line in narrow if line and not line.startswith(said)]
    assert max(map(len, table)) <= 60
    assert sorted(set(" ".join(table).split())) == sorted(set(" ".join(whole).split()))
    assert sum(line.startswith("Accuracy ") for line in table) == narrow.count("") > 1
    assert compared.text(10_000) == str(compared)


def test_rows_that_the_fits_have_seen_are_said_to_be(compared, two, real):
    seen, said = "! The test rows are not held out: ", str(evaluate.compare({"good": two["good"]}, real))
    assert [line.startswith((KNOWN, seen)) for line in said.splitlines()[1:3]] == [True, True]
    assert seen in said
    assert seen not in str(compared)


def test_other_columns_are_refused(two, real):
    two["poor"].schema = two["poor"].schema.model_copy(
        update={"columns": dict(list(two["poor"].schema.columns.items())[:-1])}
    )
    with pytest.raises(SettingError, match="different columns"):
        evaluate.compare(two, real)
    with pytest.raises(SettingError, match="names no run"):
        evaluate.compare({}, real)


def test_figures_are_a_frame(compared):
    frame = compared.scores
    names = [one.name for one in compared.contenders]
    assert [*frame.columns] == ["name", *names, "baseline", "real"]
    for (key, row), entry in zip(frame.iterrows(), compared.side_by_side, strict=True):
        assert (key, row["name"]) == (entry.score.key, entry.score.name)
        shown = [float("nan") if score is None else score.value for score in entry.scores]
        assert row[names].tolist() == pytest.approx(shown, nan_ok=True)


@pytest.fixture(scope="module")
def untargeted(make_synthesizer, schema, real):
    """The same columns under a schema that names no target and binds no column to another."""
    label = schema.columns["label"].model_copy(update={"roles": ()})
    columns = {**schema.columns, "label": label}
    return make_synthesizer(real, schema.model_copy(update={"columns": columns, "constraints": ()}))


@pytest.fixture(scope="module")
def unalike(make_synthesizer, untargeted, real, holdout):
    """Comparisons of two such schemas, by whose comes first."""
    runs = {"targeted": make_synthesizer(real), "untargeted": untargeted}
    return {
        first: evaluate.compare({name: runs[name] for name in (first, other)}, real, holdout)
        for first, other in ((*runs,), (*reversed(runs),))
    }


@pytest.mark.parametrize("first", ["targeted", "untargeted"])
def test_scores_meet_by_their_key_whichever_run_comes_first(first, unalike):
    found = unalike[first]
    order = [first, *(name for name in unalike if name != first)]
    known = {one.name: {score.key: score for score in one.scores} for one in found.contenders}
    assert set(known["targeted"]) - set(known["untargeted"]) == PREDICTIONS
    for entry in found.side_by_side:
        asked = sum(entry.score.key in each for each in known.values())
        assert [score.key for score in entry.scores if score is not None] == [entry.score.key] * asked
        assert entry.scores == tuple(known[name].get(entry.score.key) for name in order)
    assert [entry.score.key for entry in found.side_by_side[:3]] == ["overall", "closeness", "usefulness"]


def test_what_a_run_was_not_asked_is_said_and_is_a_dash(unalike):
    found = unalike["targeted"]
    not_asked, scales = found.differences
    assert not_asked.startswith("Not measured for untargeted")
    assert "Accuracy" in not_asked
    assert "scales" in scales  # without the constraint one more column counts
    rows = [line for line in str(found).splitlines() if " – " in line]
    assert len(rows) == len(PREDICTIONS)


def test_the_same_schema_asks_the_same(compared):
    assert compared.differences == ()


def test_other_targets_are_refused(make_synthesizer, schema, real, holdout):
    swapped = {
        **schema.columns,
        "label": schema.columns["label"].model_copy(update={"roles": ()}),
        "member": schema.columns["member"].model_copy(update={"roles": ("target",)}),
    }
    runs = {
        "one": make_synthesizer(real),
        "other": make_synthesizer(real, schema.model_copy(update={"columns": swapped})),
    }
    with pytest.raises(SettingError, match="different targets"):
        evaluate.compare(runs, real, holdout)


def test_one_generator_has_no_winner_over_itself_and_a_worse_one_loses(make_synthesizer, shuffle_columns, drawn):
    """Two samples of one generator, and its columns shuffled; the same answers for the same seed."""
    runs = {"one": drawn(900, 11), "same": drawn(900, 12), "poor": shuffle_columns(drawn(900, 13))}
    runs = {name: make_synthesizer(rows) for name, rows in runs.items()}
    real, aside = drawn(900, 1), drawn(600, 2)
    found = evaluate.compare(runs, real, aside, seed=4)
    for entry in found.side_by_side:
        assert not entry.difference(0, 1).significant
        assert not entry.difference(1, 0).significant
        assert entry.best in (set(), {0, 1})
    won = {entry.score.key for entry in found.side_by_side if entry.best}
    assert {"overall", "usefulness", "accuracy", "auc", "average_precision", "macro_f1"} <= won
    assert not won & {"columns", "quantile_columns", "wasserstein"}  # each column alone is right in all three
    assert evaluate.compare(runs, real, aside, seed=4).paired == found.paired
    assert {each.first for each in found.paired} | {each.second for each in found.paired} == set(runs)


def test_what_is_not_resampled_has_no_winner(two, real, holdout, monkeypatch):
    """A metric from elsewhere, however far apart."""
    monkeypatch.setattr(registry, "_REGISTERED", {})

    def made(coder, tables, rng):
        value = float(len(np.unique(tables.synthetic.codes, axis=0)) > 640)
        return distance_score("made", "Made", {"value": value, "baseline": 0.5, "real": 0.0})

    registry.register("made", made)
    (entry,) = (entry for entry in evaluate.compare(two, real, holdout).side_by_side if entry.score.key == "made")
    assert entry.first is not None
    assert entry.best == frozenset()
