"""Inspecting images: what a pipeline broke is found in samples, and what it did not break is not."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.stats import t as student_t

from doublure.data.images import Images
from doublure.errors import SettingError
from doublure.evaluate import inspect
from doublure.measures.fault_tests import FaultStatistic, decide, holm, p_beyond
from doublure.measures.images import alterations, classifiers, fault_tests
from doublure.measures.images.alterations import ALTERATIONS, alter, list_alterations
from doublure.measures.images.fault_tests import InspectionSets
from doublure.results import p_value, percent
from doublure.schema import Schema
from doublure.support.progress import SilentProgress

TEXT = "doublure: 1\nkind: images\nunits: 900\nimages: {shape: [12, 12, 1]}\nlabel: {values: [F, L, T]}\n"
SEEN = 200

_GLYPHS = [
    np.array([[int(cell) for cell in row] for row in rows.split()])
    for rows in ("11110 10000 11100 10000 10000", "10000 10000 10000 10000 11110", "11100 01000 01000 01000 01011")
]


def glyphs(n, rng):
    """Return letters that look like themselves in one position only, shifted and with noise; and the class of each."""
    codes = rng.integers(3, size=n)
    pixels = np.zeros((n, 12, 12))
    for place, code in enumerate(codes):
        drawn = np.kron(_GLYPHS[code], np.ones((2, 2)))
        down, right = rng.integers(0, 3, size=2)
        pixels[place, down : down + 10, right : right + 10] = 180 * drawn
    noisy = np.clip(pixels + 25 * rng.standard_normal(pixels.shape), 0, 255).astype(np.uint8)
    return noisy[..., None], codes


def nothing(pixels, codes, rng):
    return pixels, codes


@dataclass(frozen=True)
class Pretended:
    """A synthesizer that draws glyphs, which something may have been done to."""

    schema: Any
    broken: Any = nothing
    run: Any = field(default_factory=dict)

    @property
    def guarantee(self):
        return SimpleNamespace(kind="dp", sentence="claim of dp", epsilon=1.0, delta=1e-5)

    @property
    def plan(self):
        return SimpleNamespace(method="guided", settings=None)

    def draw(self, n, *, seed=None):
        rng = np.random.default_rng(seed)
        pixels, codes = self.broken(*glyphs(n, rng), rng)
        return Images(images=pixels, labels=pd.Series(pd.Categorical.from_codes(codes, ["F", "L", "T"])))


def altering(name, share=0.25):
    """Return the bug that alters a share of the images."""

    def broken(pixels, codes, rng):
        which = rng.random(len(pixels)) < share
        pixels[which] = alter(pixels[which], name)
        return pixels, codes

    return broken


def shifted_labels(pixels, codes, rng):
    return pixels, np.where(rng.random(len(codes)) < 0.3, (codes + 1) % 3, codes)


def a_class_lost(pixels, codes, rng):
    kept = np.flatnonzero((codes != 1) | (rng.random(len(codes)) < 0.02))
    again = rng.choice(kept, len(codes))
    return pixels[again], codes[again]


def strangers(pixels, codes, rng):
    which = rng.random(len(pixels)) < 0.2
    pixels[which] = 200 * (np.indices((12, 12)).sum(0) % 4 < 2)[..., None]
    return pixels, codes


def few(pixels, codes, rng):
    """Return what a collapsed generator makes: the same few images, and a little noise."""
    again = rng.integers(20, size=len(codes))
    return np.clip(pixels[again] + rng.integers(-3, 4, pixels.shape), 0, 255).astype(np.uint8), codes[again]


def blanks(pixels, codes, rng):
    which = rng.random(len(pixels)) < 0.2
    pixels[which] = 7
    return pixels, codes


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Let smaller classifiers learn from fewer images, for fewer steps, and of the same images once."""
    known, train = {}, classifiers.train_network

    def once(student, training, classes, seed, *, progress):
        if classifiers.EPOCHS == 1 or not isinstance(progress, SilentProgress):  # hurried, or listened to
            return train(student, training, classes, seed, progress=progress)
        key = (student, training.images.tobytes(), classes.tobytes(), seed)
        if key not in known:
            known[key] = train(student, training, classes, seed, progress=progress)
        return known[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(classifiers, "train_network", once)
        patched.setattr(classifiers, "_FILTERS", (24, 24))
        patched.setattr(alterations, "FEWEST", 1_000)
        patched.setattr(classifiers, "LEAST_STEPS", 80)
        patched.setattr(classifiers, "EPOCHS", 8)
        yield


@pytest.fixture
def hurried(monkeypatch):
    """Let classifiers learn next to nothing: of what is looked at, no figure is."""
    monkeypatch.setattr(classifiers, "LEAST_STEPS", 5)
    monkeypatch.setattr(classifiers, "EPOCHS", 1)


@pytest.fixture(scope="module")
def schema():
    return Schema.parse(TEXT).resolve({})


@pytest.fixture(scope="module")
def right(schema):
    return Pretended(schema)


def both(first, second):
    return lambda pixels, codes, rng: second(*first(pixels, codes, rng), rng)


def held(schema, right, broken):
    return inspect(Pretended(schema, broken), right, images=SEEN)


@pytest.fixture(scope="module")
def turned(schema, right):
    return held(schema, right, altering("turned left"))


def test_a_run_that_is_right_is_not_flagged(schema, right):
    found = held(schema, right, nothing)
    assert found.found == ()
    assert found.verdict.headline == f"Nothing stands out in {SEEN} synthetic images."
    assert {"rare_0", "label", "flat", "unlike", "alike", *(name.replace(" ", "_") for name in ALTERATIONS)} <= {
        entry.key for entry in found.fault_tests
    }


@pytest.mark.parametrize(
    ("broken", "keys"),
    [
        (both(altering("upside down"), altering("negative")), {"upside_down", "negative"}),
        (both(a_class_lost, shifted_labels), {"rare_1", "label"}),
        (both(strangers, blanks), {"unlike", "flat"}),
        (few, {"alike"}),
    ],
    ids=["altered twice", "classes", "other images", "collapsed"],
)
def test_what_is_broken_is_found_in_samples(schema, right, broken, keys):
    found = held(schema, right, broken)
    said = found.verdict.headline + " ".join(found.verdict.lines)
    entries = {entry.key: entry for entry in found.fault_tests}
    for key in keys:
        entry = entries[key]
        assert entry.found
        assert entry.p < 1e-3
        assert entry.interval[0] <= entry.share <= entry.interval[1]
        assert entry.clause in said
        if key == "rare_1":
            assert entry.share < entry.reference / 2
        else:
            assert entry.share > entry.reference + 0.05


@pytest.mark.exhaustive
def test_a_run_too_rough_to_be_held_against_flags_nobody(schema):
    """Two fits whose images look like nothing differ in every way."""

    def noise(pixels, codes, rng):
        return rng.integers(0, 256, pixels.shape).astype(np.uint8), codes

    found = inspect(Pretended(schema, altering("negative")), Pretended(schema, noise), images=SEEN)
    assert found.found == ()
    assert all(entry.p is None and entry.reference is not None for entry in found.fault_tests)
    assert found.verdict.headline.startswith("The reference run is too rough: 6")
    assert "Nothing was tested. Look at both sheets, or give several correct reference runs" in found.to_html()


def own_way(turn):
    """Return what poor fits do: each puts another share of its images upside down, and half of all labels are wrong."""

    def broken(pixels, codes, rng):
        mixed = np.where(rng.random(len(codes)) < 0.7, rng.integers(3, size=len(codes)), codes)
        return altering("upside down", 0.1 * turn)(pixels, mixed, rng)

    return broken


@pytest.mark.exhaustive
def test_what_is_usual_among_rough_runs_is_not_flagged(schema):
    right = [Pretended(schema, own_way(turn)) for turn in (1, 3, 2, 0)]
    one = inspect(right[1], right[3], images=SEEN)
    assert one.verdict.headline.startswith("The reference run is too rough")
    for others in (right[2:], [right[0], *right[2:]]):
        found = inspect(right[1], others, images=SEEN)
        assert found.found == ()
        assert all(entry.p is not None and len(entry.references) == len(others) for entry in found.fault_tests)
        (turned,) = (entry for entry in found.fault_tests if entry.key == "upside_down")
        assert max(turned.references) < turned.share < turned.usual


def test_what_goes_beyond_the_usual_is_found_among_rough_runs(schema):
    right = [Pretended(schema, own_way(turn)) for turn in (3, 2, 0, 1, 2)]
    turned = inspect(Pretended(schema, both(own_way(2), altering("turned left", 0.5))), right, images=SEEN)
    assert "turned_left" in [entry.key for entry in turned.found]
    assert "in the worst of 5 reference runs" in turned.verdict.headline


def shown(*shares, fewer=False):
    """Return a sign that such shares of 2,000 images show, the inspected run's first."""
    masks = [np.arange(2_000) < 2_000 * share for share in shares]
    return FaultStatistic(clause="", meaning="", shown=masks, fewer=fewer)


def alone(sign, others=()):
    """Return the decision on a sign among others."""
    return decide({"own": sign} | {f"other {place}": each for place, each in enumerate(others)}, tested=True)[0]


def test_one_test_has_students_t_of_one_more_run_in_the_stabilised_shares():
    """Without others to pool with: mean, standard deviation and Student's quantile of the angles alone."""
    shares = (0.3, 0.1, 0.2, 0.15)
    angles = np.arcsin(np.sqrt([(2_000 * share + 0.375) / 2_000.75 for share in shares]))
    error = np.std(angles[1:], ddof=1) * np.sqrt(4 / 3)
    found = alone(shown(*shares))
    assert found.p == pytest.approx(student_t.sf((angles[0] - angles[1:].mean()) / error, 2), rel=1e-3)
    assert found.usual == pytest.approx(np.sin(angles[1:].mean() + student_t.isf(0.01, 2) * error) ** 2, abs=2e-3)
    assert not found.found


def test_a_share_beyond_the_limit_is_found_and_one_within_is_not():
    rng = np.random.default_rng(4)
    others = [shown(*rng.normal(0.1, 0.01, 6)) for _ in range(30)]
    limit = alone(shown(0.1, 0.1, 0.11, 0.09, 0.1, 0.1), others).usual
    for fewer in (False, True):
        right = (0.1, 0.11, 0.09, 0.1, 0.1)
        limit = alone(shown(0.1, *right, fewer=fewer), others).usual
        assert (limit < 0.08) if fewer else (0.12 < limit < 0.25)
        beyond, within = (limit - 0.02, limit + 0.01) if fewer else (limit + 0.02, limit - 0.01)
        assert alone(shown(beyond, *right, fewer=fewer), others).found
        assert not alone(shown(within, *right, fewer=fewer), others).found


def test_runs_say_more_where_other_tests_vary_alike():
    rng = np.random.default_rng(5)
    right = (0.2, 0.21, 0.19, 0.2)
    alike = [shown(*rng.normal(0.3, 0.01, 5)) for _ in range(40)]
    unlike = [shown(*np.clip(rng.normal(0.3, rng.choice([0.001, 0.2]), 5), 0, 1)) for _ in range(40)]
    assert alone(shown(0.2, *right), alike).usual < alone(shown(0.2, *right), unlike).usual


def test_a_test_and_its_family_say_half_of_its_variance_each():
    """Held against six runs: five degrees of its own and as many of its family, of which eight count."""
    shares, others = (0.3, 0.1, 0.2, 0.15, 0.12, 0.18, 0.14), (0.2, 0.2, 0.3, 0.25, 0.15, 0.2, 0.22)
    angles = np.arcsin(np.sqrt((2_000 * np.array([shares, others]) + 0.375) / 2_000.75))
    own, other = angles[:, 1:].var(axis=1, ddof=1)
    error = np.sqrt((own + (own + other) / 2) / 2 * (7 / 6))
    t = (angles[0, 0] - angles[0, 1:].mean()) / error
    assert alone(shown(*shares), [shown(*others)]).p == pytest.approx(2 * student_t.sf(t, 8), rel=1e-3)


@pytest.mark.parametrize("runs", [3, 5, pytest.param(9, marks=pytest.mark.exhaustive), 20])
def test_of_correct_runs_few_are_flagged_however_many_there_are(runs):
    """Beta-distributed runs, skewed, some tests twenty times as variable as others: the stated level is one in 100."""
    rng, flagged = np.random.default_rng(runs), 0
    for _ in range(300):
        base, precision = rng.beta(1, 6, 20), rng.uniform(30, 600, 20)
        shares = rng.beta(base * precision, (1 - base) * precision, (runs + 1, 20))
        signs = {str(place): shown(*rng.binomial(2_000, each) / 2_000) for place, each in enumerate(shares.T)}
        flagged += any(test.found for test in decide(signs, tested=True))
    assert flagged <= 6  # of 300


def test_who_taught_says_nothing_of_what_is_usual_where_two_others_do():
    masks = shown(0.3, 0.01, 0.2, 0.21, 0.19).shown
    learned = FaultStatistic(clause="", meaning="", shown=masks, learned=True)
    assert alone(learned).usual < 0.3 < alone(FaultStatistic(clause="", meaning="", shown=masks)).usual
    two = FaultStatistic(clause="", meaning="", shown=masks[:3], learned=True)
    assert alone(two).usual == alone(shown(0.3, 0.01, 0.2)).usual


def test_a_class_that_stands_on_its_head_is_found_where_a_third_of_all_hides_it(schema):
    def one_class(pixels, codes, rng):
        which = (codes == 1) & (rng.random(len(codes)) < 0.5)
        pixels[which] = alter(pixels[which], "upside down")
        return pixels, codes

    right = [Pretended(schema, altering("upside down", share)) for share in (0.02, 0.1, 0.06, 0.03, 0.08)]
    found = inspect(Pretended(schema, both(altering("upside down", 0.05), one_class)), right, images=SEEN)
    (own,) = (entry for entry in found.found if entry.key == "upside_down_of_1")
    assert own.of_class == "L"
    assert "with the label L look upside down" in str(found)
    assert "look upside down (label L)" in found.to_html()
    assert "(label F)" not in found.to_html()


@pytest.mark.usefixtures("hurried")
def test_a_run_is_never_looked_at_in_what_it_taught(schema, right):
    asked = []

    @dataclass(frozen=True)
    class Watched(Pretended):
        def draw(self, n, *, seed=None):
            asked.append(seed)
            return super().draw(n, seed=seed)

    inspect(Watched(schema), [Watched(schema)] * 3, images=30)
    assert len(set(asked)) == len(asked) == 4


@pytest.mark.usefixtures("hurried")
def test_one_label_in_the_lesson_is_said_to_hide_the_classes(schema, right):
    def collapsed(pixels, codes, rng):
        return pixels, np.zeros_like(codes)

    found = inspect(right, [Pretended(schema, collapsed), right], images=SEEN)
    assert "label" not in {entry.key for entry in found.fault_tests}
    assert found.verdict.warnings == ("Classes were not tested: the training images have one label.",)


def test_of_several_right_runs_the_worst_is_the_measure_and_all_are_shown(schema, right):
    found = inspect(right, [right, Pretended(schema, altering("negative", 0.5)), right], images=SEEN)
    entries = {entry.key: entry for entry in found.fault_tests}
    assert entries["negative"].reference == max(entries["negative"].references) > 0.3
    assert entries["rare_0"].reference == min(entries["rare_0"].references)
    assert entries["unlike"].references[0] == pytest.approx(0.01)  # of its own images, one in a hundred is unusual
    assert entries["unlike"].references[1] > 0.3
    assert len(found.against) == 3
    html = found.to_html()
    assert html.count("data:image/png") == 4
    assert "Reference run 1 (classifiers were trained on it)" in html
    assert f"<small>usual: up to {percent(entries['negative'].usual)}</small>" in html
    assert found.slices[0].reference == pytest.approx(1 / 3, abs=0.1)


def test_what_a_class_is_told_by_lies_where_it_lay_when_another_class_is_lost():
    images = np.zeros((3, 12, 12, 1), dtype=np.uint8)
    codes = np.array([0, 1, 2])
    hinted = alterations._with_class(images, codes, 5).images
    assert (alterations._with_class(images[:1], codes[:1], 5).images == hinted[:1]).all()
    assert len(np.unique(hinted.reshape(3, -1), axis=0)) == 3


def test_turned_images_are_found_in_samples(turned):
    assert turned.found[0].key == "turned_left"
    assert turned.found[0].p < 1e-3
    assert turned.verdict.headline.startswith("2")
    assert f"({p_value(turned.found[0].p, 'p')})." in turned.verdict.headline
    assert turned.found[0].classes.keys() == {"F", "L", "T"}


@pytest.mark.exhaustive
def test_a_minority_stands_out_against_the_rest_of_its_own_run(schema, monkeypatch):
    monkeypatch.setattr(alterations, "FEWEST", 2_500)  # alone, it has to be sure
    found = inspect(Pretended(schema, altering("negative", 0.2)), images=SEEN)
    assert [entry.key for entry in found.found] == ["negative"]
    assert found.against == ()
    assert all(entry.p is None and entry.reference is None for entry in found.fault_tests)
    assert any(said.startswith("Nothing was tested. ") for said in found.verdict.warnings)
    assert inspect(Pretended(schema, nothing), images=SEEN).verdict.headline.startswith("Nothing was tested, and ")


def test_a_class_without_images_is_said_to_be(schema, right):
    def lost(pixels, codes, rng):
        return pixels[codes != 1], codes[codes != 1]

    def none_of(pixels, codes, rng):
        some, classes = lost(pixels, codes, rng)
        again = rng.integers(len(some), size=len(pixels))
        return some[again], classes[again]

    found = held(schema, right, none_of)
    lost_label, one_measure = found.verdict.warnings
    assert lost_label == "No image has the label L."
    assert one_measure.startswith("Two correct runs can differ")
    assert found.slices[1].share == 0
    assert found.slices[1].brightness is None
    assert "rare_1" in {entry.key for entry in found.found}


def test_the_page_says_what_may_be_claimed_and_shows_both(turned):
    html = turned.to_html()
    assert html.count("data:image/png") == 2
    assert "claim of dp" in html
    assert "stands out" in html
    assert "look turned left" in html
    assert "Do not publish" not in html
    for kind in ("empirical", "none"):
        unlike = turned.about.model_copy(update={"guarantee_kind": kind})
        for update in ({"about": unlike}, {"against": (unlike,)}):
            loud = turned.model_copy(update=update).to_html()
            assert "No privacy guarantee. Do not publish." in loud


@pytest.mark.usefixtures("hurried")
def test_runs_whose_shares_were_bought_are_held_against_one_another(right):
    """Each fit buys its own noisy shares; the labels are the same."""
    shares = [Schema.parse(TEXT.replace("[F, L, T]", f"[F, L, T], shares: {text}")).resolve({}) for text in (
        "{F: 0.3, L: 0.3, T: 0.4}", "{F: 0.31, L: 0.29, T: 0.4}",
    )]  # fmt: skip
    found = inspect(Pretended(shares[0]), Pretended(shares[1]), images=SEEN)
    assert found.found == ()


@pytest.mark.usefixtures("hurried")
def test_each_sheet_shows_its_own_run(schema, right):
    found = inspect(Pretended(schema, altering("negative", 1.0)), right, images=SEEN)
    sheets = [np.asarray(Image.open(io.BytesIO(png)).convert("L")) for png in (found.sheet, *found.reference_sheets)]
    bright, dark = (sheet[60:].mean() for sheet in sheets)
    assert bright > dark + 30  # of letters on black, negatives are on white


@pytest.mark.usefixtures("hurried")
def test_it_repeats_itself_and_survives_json(schema, right, turned):
    one, other = (held(schema, right, altering("turned left")).fault_tests for _ in range(2))
    assert one == other
    plain = json.loads(turned.to_json())
    assert {"about", "against", "fault_tests", "slices"} <= plain.keys()
    assert "sheet" not in plain


def test_images_without_labels_are_inspected(right):
    schema = Schema.parse(TEXT.split("label")[0]).resolve({})

    @dataclass(frozen=True)
    class Unlabelled(Pretended):
        def draw(self, n, *, seed=None):
            return Images(images=super().draw(n, seed=seed).images)

    found = inspect(Unlabelled(schema, altering("negative")), Unlabelled(schema), images=SEEN)
    assert "negative" in {entry.key for entry in found.found}
    assert found.slices == ()
    assert {"label", "rare_0"}.isdisjoint(entry.key for entry in found.fault_tests)
    assert any("without labels that is not noticed" in note for note in found.notes)


def test_what_cannot_be_inspected_is_refused(schema, right):
    with pytest.raises(SettingError, match="relational"):
        inspect(SimpleNamespace(schema=SimpleNamespace(kind="relational")))
    other = Schema.parse(TEXT.replace("[F, L, T]", "[F, L, X]")).resolve({})
    with pytest.raises(SettingError, match="other images"):
        inspect(right, Pretended(other))
    with pytest.raises(SettingError, match="number 2 makes other images"):
        inspect(right, [right, Pretended(other)])
    for odd in ("run", [None], 3):
        with pytest.raises(SettingError, match="makes other images"):
            inspect(right, odd)
    with pytest.raises(SettingError, match="at least 1"):
        inspect(right, images=0)


def test_alterations_are_what_they_are_called():
    image = np.array([[1, 2], [3, 4]], dtype=np.uint8).reshape(1, 2, 2, 1)
    shown = {name: alter(image, name)[0, :, :, 0].tolist() for name in ALTERATIONS}
    assert shown["turned left"] == [[2, 4], [1, 3]]
    assert shown["turned right"] == [[3, 1], [4, 2]]
    assert shown["upside down"] == [[4, 3], [2, 1]]
    assert shown["mirrored"] == [[2, 1], [4, 3]]
    assert shown["flipped"] == [[3, 4], [1, 2]]
    assert shown["transposed"] == [[1, 3], [2, 4]]
    assert shown["negative"] == [[254, 253], [252, 251]]
    wide = Images(images=np.zeros((1, 2, 3, 1), dtype=np.uint8))
    assert list_alterations(wide) == ("upside down", "mirrored", "flipped", "negative")


def test_p_values_hold_at_the_margin():
    """At the margin itself no more than the stated share of tests is surprised."""
    rng = np.random.default_rng(0)
    found = np.array([p_beyond(rng.random(2000) < 0.15, rng.random(2000) < 0.1, margin=0.05) for _ in range(2000)])
    assert 0.03 < (found < 0.05).mean() < 0.07
    halves = np.array([p_beyond(rng.random(2000) < 0.1, rng.random(2000) < 0.05, part=0.5) for _ in range(2000)])
    assert 0.03 < (halves < 0.05).mean() < 0.07
    assert p_beyond(np.ones(2000, dtype=bool), np.zeros(2000, dtype=bool), margin=0.05) < 1e-100


def test_corrected_p_values_keep_their_order():
    assert holm({"a": 0.04, "b": 0.01, "c": 0.9}) == {"b": 0.03, "a": 0.08, "c": 0.9}
    assert holm({"a": 0.6, "b": 0.6}) == {"a": 1.0, "b": 1.0}


def test_what_is_unlike_any_is_further_than_the_slow_way_says_is_usual():
    rng = np.random.default_rng(1)
    training, inspected, reference = (
        Images(images=rng.integers(low, 256, (n, 3, 3, 1), dtype=np.uint8)) for n, low in ((300, 0), (7, 100), (90, 0))
    )
    codes = [np.zeros(len(each), dtype=np.int64) for each in (training, inspected, reference)]
    inspected.images[0] = training.images[5]
    inspected.images[1] = 255
    points = [each.images.reshape(len(each), -1) / 255 for each in (training, inspected, reference)]
    far = [np.linalg.norm(each[:, None] - points[0][None], axis=2).min(1) for each in points[1:]]
    usual = np.quantile(far[1], 0.99)
    sets = InspectionSets(
        training=(training, codes[0]), inspected=(inspected, codes[1]), right=((reference, codes[2]),), labels=()
    )
    inspected_shown, reference_shown = fault_tests._unlike(sets)["unlike"].shown
    assert inspected_shown.tolist() == (far[0] > usual).tolist()
    assert reference_shown.tolist() == (far[1] > usual).tolist()
    assert inspected_shown[:2].tolist() == [False, True]


def test_what_is_alike_is_nearer_than_the_slow_way_says_is_usual():
    rng = np.random.default_rng(2)
    training, inspected, reference = (
        Images(images=rng.integers(0, 256, (90, 3, 3, 1), dtype=np.uint8)) for _ in range(3)
    )
    inspected.images[:3] = inspected.images[3]
    codes = np.zeros(90, dtype=np.int64)
    points = [each.images.reshape(90, -1) / 255 for each in (inspected, reference)]
    apart = [np.linalg.norm(each[:, None] - each[None], axis=2) + 1e9 * np.eye(90) for each in points]
    near = [each.min(1) for each in apart]
    usual = np.quantile(near[1], 0.01)
    sets = InspectionSets(
        training=(training, codes), inspected=(inspected, codes), right=((reference, codes),), labels=()
    )
    inspected_shown, reference_shown = fault_tests._alike(sets)["alike"].shown
    assert inspected_shown.tolist() == (near[0] <= usual).tolist()
    assert reference_shown.tolist() == (near[1] <= usual).tolist()
    assert inspected_shown[:4].all()
    assert (
        fault_tests._alike(
            InspectionSets(training=(training, codes), inspected=(inspected, codes), right=(), labels=())
        )
        == {}
    )


@pytest.mark.usefixtures("hurried")
def test_one_image_alone_can_be_inspected(schema, right):
    keys = {entry.key for entry in inspect(Pretended(schema), right, images=1).fault_tests}
    assert "unlike" in keys
    assert "alike" not in keys


@pytest.mark.usefixtures("hurried")
def test_it_is_told_what_is_learned_and_how_far_it_is(schema, right):
    told, counts = [], []
    listener = SimpleNamespace(stage=lambda name, total=None: told.append((name, total)), at=counts.append)
    inspect(right, images=60, seed=1, progress=listener)
    names = ["draw 180 synthetic images", "train a classifier of alterations", "train a classifier of the classes"]
    assert all(name.startswith(start) for (name, _), start in zip(told, names, strict=True))
    assert re.fullmatch(
        r"draw 180 synthetic images, then train networks for \d+ steps: some \d+ s of a core", told[0][0]
    )
    assert all(total > 0 for _, total in told[1:])
    assert all(total in counts for _, total in told[1:])


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("runs", "said"), [(2, True), (4, True), (5, False)])
def test_few_correct_runs_are_said_to_show_gross_differences_alone(schema, right, runs, said):
    found = inspect(right, [right] * runs, images=30)
    assert any("So few correct runs show gross differences alone" in note for note in found.notes) is said
