import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from doublure import evaluate
from doublure.auditing.audit import read_attack_data
from doublure.data.images import Images
from doublure.errors import DataError, DataWarning, SettingError
from doublure.evaluate.evaluation import load_both
from doublure.evaluate.real_data import _recorded, hash_records, seen_before
from doublure.guarantee import Guarantee
from doublure.ledger import Ledger
from doublure.methods.noisecritic.settings import ESTIMATE_SEED, ESTIMATED_ON, NoisecriticSettings
from doublure.results import MeanInterval
from doublure.schema import Schema
from doublure.support.progress import SilentProgress
from doublure.support.tensors import sha256_of

SENTENCE = "No privacy guarantee. Do not publish."


@pytest.fixture
def synthesizer(make_synthesizer, drawn):
    return make_synthesizer(drawn(500, 3))


@pytest.fixture(scope="module")
def seen(make_synthesizer, drawn, real):
    """A report without rows that were kept aside."""
    return evaluate.report(make_synthesizer(drawn(500, 3)), real)


@pytest.fixture(scope="module")
def kept(make_synthesizer, drawn, real, holdout):
    """A report with a holdout."""
    return evaluate.report(make_synthesizer(drawn(500, 3)), real, holdout)


@pytest.fixture(scope="module")
def pages(seen, kept):
    """Their pages."""
    return seen.to_html(), kept.to_html()


def test_a_report_from_files(tmp_path, synthesizer, real, holdout):
    real.to_csv(tmp_path / "real.csv", index=False)
    holdout.to_parquet(tmp_path / "holdout.parquet")
    report = evaluate.report(synthesizer, tmp_path / "real.csv", tmp_path / "holdout.parquet", seed=5)
    assert synthesizer.asked == (len(real), 5)
    assert report.table.rows.model_dump() == {"synthetic": 900, "train": 900, "holdout": 600, "kept_aside": True}
    assert report.about.method == "gan"
    assert report.about.guarantee == SENTENCE
    assert report.about.schema_sha256 == synthesizer.schema.sha256
    assert list(report.scores.index) == [score.key for score in report.table.scores]


def test_printing_a_report_says_that_it_is_internal(synthesizer, real):
    report = evaluate.report(synthesizer, real, rows=200)
    assert synthesizer.asked == (200, 0)
    assert str(report).startswith("INTERNAL: computed on real data: do not publish\n")
    assert report.verdict.headline in str(report)
    assert repr(report) == "Report(computed on real data: do not publish)"


def test_what_the_fit_has_seen_is_no_holdout(tmp_path, synthesizer, real, holdout):
    real.to_csv(tmp_path / "real.csv", index=False)
    real.to_csv(tmp_path / "copy.csv", index=False)
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    pairs = [(tmp_path / "real.csv", tmp_path / name) for name in ("real.csv", "link.csv", "copy.csv")]
    turned, part = real.sample(frac=1, random_state=1), real.sample(frac=0.3, random_state=1)
    for kept in (real, real.copy(), turned, part, pd.concat([part, holdout[: len(part) // 2]])):
        pairs.append((real, kept))
    for data, kept in (*pairs, (tmp_path / "real.csv", real)):
        with pytest.raises(SettingError, match="that was fitted") as caught:
            evaluate.report(synthesizer, data, kept)
        assert (caught.value.field, caught.value.exit_code) == ("holdout", 2)


def test_what_was_released_is_no_real_data(tmp_path, synthesizer, real, holdout):
    """A copy of it, too: a card beside the file names it, or the run's ledger does, by its hash."""
    bundle, other = tmp_path / "bundle", tmp_path / "other"
    bundle.mkdir()
    other.mkdir()
    synthesizer.sample(300, seed=9).to_csv(bundle / "data.csv", index=False)
    released = {"path": "data.csv", "sha256": sha256_of(bundle / "data.csv")}
    (bundle / "card.json").write_text(json.dumps({"files": [released]}))
    real.to_csv(bundle / "real.csv", index=False)  # beside a card, and not on it
    (other / "data.csv").write_bytes((bundle / "data.csv").read_bytes())
    assert evaluate.report(synthesizer, bundle / "real.csv", holdout).table.rows.train == len(real)
    pairs = [(bundle / "data.csv", None, "real"), (real, bundle / "data.csv", "holdout")]
    pairs += [(bundle / "d*.csv", None, "real"), (str(tmp_path / "bund*" / "data.csv"), None, "real")]
    for data, kept, field in pairs:
        with pytest.raises(SettingError, match="is synthetic data: a file that was released") as caught:
            evaluate.report(synthesizer, data, kept)
        assert (caught.value.field, caught.value.exit_code) == (field, 2)
        with pytest.raises(SettingError, match="that was released"):
            evaluate.compare({"one": synthesizer}, data, kept)
        with pytest.raises(SettingError, match="that was released"):
            read_attack_data(synthesizer, data, kept, inside=None, seed=0, shadows=1, progress=SilentProgress())
    assert [each.name for each in other.iterdir()] == ["data.csv"]
    assert not set(_recorded(synthesizer))
    ledger = Ledger.create(tmp_path / "book.ledger", dataset="d", epsilon=1.0, delta=1e-5)
    synthesizer.run = {"ledger": {"path": str(ledger.path), "reservation": "r"}}
    record = SimpleNamespace(kind="release", body={"files": {"data.csv": released["sha256"]}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "entries", (record,))
        with pytest.raises(SettingError, match="that was released"):
            evaluate.report(synthesizer, other / "data.csv")


def test_real_records_that_the_run_draws_are_warned_of(synthesizer, real):
    drawn = load_both(synthesizer, synthesizer.rows, None)[0].content
    synthesizer.draw = lambda n, given=None, seed=None: drawn.iloc[:n].copy()
    with pytest.warns(DataWarning, match="drawn by the run itself"):
        evaluate.report(synthesizer, drawn.sample(frac=1, random_state=3))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Most of these real records", DataWarning)
        evaluate.report(synthesizer, real, rows=400)


def test_records_that_are_equal_by_chance_may_be_kept_aside():
    """Of eight possible rows each is in both tables; of many, a few are."""
    draw = np.random.default_rng(0)
    few = [pd.DataFrame(draw.integers(0, 2, (size, 3))).astype(bool) for size in (300, 100)]
    many = [pd.DataFrame({"a": draw.random(size)}) for size in (300, 100)]
    many[1].loc[:30] = many[0].loc[:30]
    for one, other in (few, many):
        assert not seen_before(hash_records(one), hash_records(other))
    for other, seen in ((many[0][:100], True), (few[0].sample(frac=1, random_state=0), True), (few[0][:100], False)):
        assert seen_before(hash_records(few[0] if len(other.columns) == 3 else many[0]), hash_records(other)) == seen


def test_drawn_moments_equal_loaded_ones_in_every_zone():
    """Samples have the zone of the schema, loaded tables the clock's time alone."""
    loaded = pd.DataFrame(
        {"at": pd.to_datetime(["2021-01-05 10:00", None, "2021-07-05 10:00"]).astype("datetime64[s]")}
    )
    for zone in ("UTC", "Europe/Paris"):
        drawn = loaded.assign(at=loaded["at"].dt.tz_localize(zone))
        assert (hash_records(drawn) == hash_records(loaded)).all()


def test_images_in_another_order_are_the_same_images():
    draw = np.random.default_rng(0)
    pixels, labels = draw.integers(0, 256, (40, 3, 3, 1), dtype=np.uint8), pd.Series(draw.integers(0, 2, 40))
    order = draw.permutation(40)
    for kept in (None, labels):
        own = Images(images=pixels, labels=kept)
        assert seen_before(hash_records(own), hash_records(own.take(order)))
        assert seen_before(hash_records(own), hash_records(own.take(order[:10])))
        assert not seen_before(hash_records(own), hash_records(Images(images=255 - pixels, labels=kept)))
    relabelled = Images(images=pixels, labels=1 - labels)
    assert not seen_before(hash_records(Images(images=pixels, labels=labels)), hash_records(relabelled))


def test_what_the_fit_has_seen_is_said_before_the_figures(seen, kept, pages):
    caveat = "The test rows are not held out"
    assert kept.table.rows.kept_aside
    assert f"! {caveat}" in str(seen)
    assert caveat not in str(kept)
    for page, said in zip(pages, (True, False), strict=True):
        assert (caveat in page[: page.index('<section id="scores"')]) == said


def test_no_rows_are_refused(synthesizer, real):
    with pytest.raises(SettingError, match="rows"):
        evaluate.report(synthesizer, real, rows=0)


def test_a_missing_file_is_refused(synthesizer, tmp_path):
    with pytest.raises(DataError, match="no such file"):
        evaluate.report(synthesizer, tmp_path / "real.csv")


def test_missing_cells_that_a_noisy_answer_denied_are_counted_not_refused(synthesizer, real):
    holed = real.astype({"number": float})
    holed.loc[::10, "number"] = np.nan
    report = evaluate.report(synthesizer, holed, rows=100)
    number = next(entry for entry in report.table.frequencies if entry.column == "number")
    assert number.missing[0] == pytest.approx(0.1, abs=0.03)
    assert number.missing[1] == 0


def test_the_rows_of_a_unit_are_split_together(make_synthesizer):
    schema = Schema.parse(
        """
        doublure: 1
        kind: table
        unit: {name: household, id: key, max_records: 4}
        units: 50
        columns:
          key: {type: id}
          x: {type: integer, bounds: [0, 49], missing: false}
          y: {type: boolean, missing: false}
        """
    ).resolve({})
    keys = np.repeat(np.arange(50), 4)
    real = pd.DataFrame({"key": keys, "x": keys, "y": keys % 2 == 0})
    synthesizer = make_synthesizer(pd.DataFrame({"key": 1, "x": keys, "y": keys % 2 == 0}), schema)
    report = evaluate.report(synthesizer, real)
    assert (report.table.rows.train, report.table.rows.holdout) == (152, 48)
    x = next(column for column in report.table.fidelity.columns if column.name == "x")
    # No household stands on both sides of the split, and x names the household.
    assert x.variation.real > 0.3
    assert any("Intervals treat rows as independent" in note for note in report.table.notes)


def empirical(synthesizer):
    synthesizer.guarantee = Guarantee(kind="empirical")
    synthesizer.plan = SimpleNamespace(
        method="noisecritic",
        settings=NoisecriticSettings(estimate_pairs=40),
    )
    return synthesizer


def test_the_loss_of_an_empirical_synthesizer_is_estimated_as_its_plan_says(monkeypatch, synthesizer, real, tmp_path):
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(
            "doublure.evaluate.evaluation.of_synthesizer", lambda *given, **named: asked.append((given, named))
        )
        table = evaluate.report(synthesizer, real, rows=100).table
        monkeypatch.setattr("doublure.evaluate.evaluation.evaluate_table", lambda *given, **named: table)
        evaluate.compare({"a": empirical(synthesizer)}, real)  # compares figures, and prints no loss
        assert not asked
        evaluate.report(synthesizer, real, rows=100, seed=3)
        ((_, records, rule), named) = asked[0]
        assert len(records) == len(real)  # all that the fit has seen, whatever is kept aside for tests
        assert (rule.pairs, rule.features, rule.artificial, rule.seed) == (40, "rows", ESTIMATED_ON, ESTIMATE_SEED)
        assert named == {"extractor": None}
        evaluate.report(
            synthesizer, real, rows=100, rule=evaluate.expected_loss.EstimatorConfig(pairs=7, features="rows")
        )
        assert asked[1][0][2].pairs == 7

    # One that cannot be estimated is said: these rows are drawn from 500 with replacement, so that most have a twin.
    report = evaluate.report(synthesizer, real, rows=100)
    assert report.expected_loss is None
    assert "no density" in report.expected_loss_skipped
    assert "No privacy loss:" in str(report)
    report.save(tmp_path / "page.html")
    assert "No privacy loss:" in (tmp_path / "page.html").read_text()


def test_a_holdout_brings_attacks_and_what_they_cannot_show(kept, pages, make_synthesizer, real, holdout):
    assert [found.threat_model.attack for found in kept.attacks] == ["gan-leaks", "neighbours"]
    for found in kept.attacks:
        low, high = found.interval
        assert low - 0.05 < 0.5 < high + 0.05, found.sentence
    assert "The nearest synthetic record: area under ROC" in str(kept)
    page = pages[1]
    assert "NOT A PRIVACY MEASURE" in page
    assert "doublure audit run/ --attack all" in page
    copied = evaluate.report(make_synthesizer(real), real, holdout)
    assert all(found.interval[0] > 0.6 for found in copied.attacks)


def test_means_with_intervals_stand_on_the_page_and_in_the_json(seen, pages):
    assert seen.means == ()
    assert "means" not in json.loads(seen.to_json())
    assert "Which intervals hold?" not in pages[0]
    one = MeanInterval(column="number", value=41.5, low=40.25, high=42.75, naive_low=41.2, naive_high=41.8, real=42.0)
    told = seen.model_copy(update={"means": (one,)})
    assert json.loads(told.to_json())["means"] == [one.model_dump()]
    assert type(told).model_validate_json(told.to_json()).means == (one,)
    page = told.to_html()
    assert "40.2 to 42.8" in page
    assert "41.2 to 41.8" in page
    assert "Of 1 here, 1 hold the real mean, and 0 of the naive ones." in page


def test_without_a_holdout_no_attack_is_made_and_the_page_says_why(pages, seen, synthesizer, real):
    assert seen.attacks == ()
    assert "No attack was made: no holdout was given" in pages[0]
    assert "too few" in evaluate.report(synthesizer, real, real[:30].assign(number=1, copy=1)).attacks_skipped


def test_swapped_arguments_get_a_line_and_no_traceback():
    real = pd.DataFrame({"a": [1, 2]})
    with pytest.raises(SettingError, match="syn: is a DataFrame, not a synthesizer"):
        evaluate.report(real, real)
    with pytest.raises(SettingError, match="syn: is a DataFrame"):
        evaluate.compare({"one": real}, real, real)
