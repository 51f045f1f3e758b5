"""Evaluating images: figures between two natural comparisons, classifiers that learn, real images on the page alone."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tiers import exhaustive

from doublure.data.images import Images
from doublure.evaluate import Report
from doublure.measures.images import classifiers as students
from doublure.measures.images import feature_extractors as extractors
from doublure.measures.images.averaging import averaged
from doublure.measures.images.distribution_metrics import frechet_distance
from doublure.measures.images.evaluation import class_means, evaluate_images
from doublure.measures.images.texture import measure_texture
from doublure.schema import Schema
from doublure.support.progress import forecast_rest

TEXT = "doublure: 1\nkind: images\nunits: 90\nimages: {shape: [8, 8, 1]}\nlabel: {values: [left, right, both]}\n"


FIXED = ("EPOCHS", "LEAST_STEPS", "BATCH", "RATE", "_FILTERS", "_UNITS", "_TREES", "_ROUNDS")
AS_FIXED = {name: getattr(students, name) for name in FIXED}


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Let smaller networks learn for fewer steps: bars are simple."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(students, "_FILTERS", (12, 24))
        patched.setattr(students, "LEAST_STEPS", 80)
        yield


def made(n, seed, noise=30.0):
    """Return bars: class 0 on the left, 1 on the right, 2 on both sides."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    pixels = np.zeros((n, 8, 8, 1))
    pixels[codes != 1, 2:6, 1] = 200
    pixels[codes != 0, 2:6, 6] = 200
    noisy = np.clip(pixels + noise * rng.standard_normal(pixels.shape), 0, 255).astype(np.uint8)
    labels = pd.Series(pd.Categorical.from_codes(codes, ["left", "right", "both"]))
    return Images(images=noisy, labels=labels)


@pytest.fixture(scope="module")
def schema():
    return Schema.parse(TEXT)


@pytest.fixture(scope="module")
def evaluation(schema):
    return evaluate_images(schema, made(120, 1), made(150, 2), made(60, 3), classifiers=("cnn", "logistic"))


QUICK = [student for student in students.CLASSIFIERS if student != "resnet"]


@pytest.mark.parametrize("student", [*QUICK, pytest.param("resnet", marks=exhaustive)])
def test_a_student_learns_and_repeats_itself(student):
    training, test = made(120, 1), made(60, 3)
    chances = students.predict(student, training, np.arange(120) % 3, test, 4, seed=5)
    assert chances.shape == (60, 4)
    assert np.allclose(chances.sum(1), 1)
    assert (chances[:, 3] == 0).all()  # a class that was not in the training set
    assert (chances.argmax(1) == np.arange(60) % 3).mean() > 0.9
    assert np.array_equal(chances, students.predict(student, training, np.arange(120) % 3, test, 4, seed=5))


def test_a_seed_of_any_size_will_do():
    training, test = made(30, 1), made(6, 2)
    for student in ("forest", "logistic"):
        chances = students.predict(student, training, np.arange(30) % 3, test, 3, seed=2**63 - 1)
        assert chances.shape == (6, 3)


def test_images_that_come_class_by_class_are_measured_as_any_others(schema, monkeypatch):
    """As folders bring them. Cut in halves as they come, the first would hold half the classes."""
    monkeypatch.setattr("doublure.measures.images.distribution_metrics.MOST", 60)
    trained, image_classifier = [], students.image_classifier
    monkeypatch.setattr(
        "doublure.measures.images.evaluation.image_classifier",
        lambda training, codes, seed: (trained.append(set(codes)), image_classifier(training, codes, seed))[1],
    )

    def by_class(images):
        return images.take(np.argsort(images.labels.cat.codes.to_numpy(), kind="stable"))

    found = {}
    for order in (lambda images: images, by_class):
        sets = made(120, 1), order(made(240, 2)), order(made(150, 3))
        measured = evaluate_images(schema, *sets, classifiers=("logistic",), extractor=extractors.pixels()).resemblance
        for score in measured:
            found.setdefault(score.key, []).append(score.real)
    assert trained == [{0, 1, 2}] * 2
    assert found["inception_score"][1] > 2
    for key, tolerance in {"precision": 0.15, "recall": 0.15, "inception_score": 0.4}.items():
        assert abs(found[key][0] - found[key][1]) < tolerance, (key, found[key])
    one, other = found["frechet"]
    assert max(one, other) < 1.5 * min(one, other)


def test_a_collapsed_lesson_is_a_result():
    chances = students.predict("cnn", made(9, 1), np.full(9, 2), made(6, 2), 3, seed=0)
    assert (chances.argmax(1) == 2).all()


def test_good_images_teach_and_wrong_labels_do_not(schema, evaluation):
    good = evaluation.classifiers[0].accuracy
    assert good.value > 0.9
    wrong = made(120, 1)
    turned = Images(images=wrong.images, labels=wrong.labels.iloc[np.roll(np.arange(120), 1)].reset_index(drop=True))
    bad = evaluate_images(schema, turned, made(150, 2), made(60, 3), classifiers=("logistic",))
    assert bad.classifiers[0].accuracy.value < 0.2
    assert bad.verdict.warnings  # classifiers learn more from class means
    assert bad.pixels[0].value > 5 * evaluation.pixels[0].value


def test_distances_stand_between_their_comparisons(evaluation):
    mean, spread = evaluation.pixels
    for score in (mean, spread):
        assert 0 < score.value < 0.1
        assert 0 < score.real < 0.1
    assert [entry.label for entry in evaluation.classes] == ["left", "right", "both"]
    assert evaluation.classes[0].share.value == pytest.approx(1 / 3)


def test_a_pattern_woven_into_images_is_measured_and_said(schema, evaluation):
    board, spread = evaluation.texture
    assert (board.key, spread.key) == ("checkerboard", "block_spread")
    for score in (board, spread):
        assert score.value == pytest.approx(score.real, rel=0.1)  # both are bars and the same noise
        assert score in evaluation.scores
    field = 40 * (-1) ** np.add.outer(np.arange(8), np.arange(8))[..., None]
    plain = made(120, 1)
    woven = Images(images=np.clip(plain.images + field, 0, 255).astype(np.uint8), labels=plain.labels)
    found = evaluate_images(schema, woven, made(150, 2), made(60, 3), classifiers=())
    assert found.texture[0].value > 1.5 * found.texture[0].real
    assert any("regular pattern or speckle" in warning for warning in found.verdict.warnings)
    assert not any("speckle" in warning for warning in evaluation.verdict.warnings)
    page = Report(images=found).to_html()
    assert all(score.name in page for score in found.texture)


def test_texture_is_a_share_of_what_there_can_be():
    field = np.add.outer(np.arange(8), np.arange(8)) % 2 * 255
    sets = [np.repeat(field[None, :, :, None], 700, axis=0), np.full((3, 8, 8, 1), 90), np.zeros((0, 8, 8, 1))]
    found = [measure_texture(Images(images=images.astype(np.uint8))) for images in sets]
    assert found[0] == pytest.approx({"checkerboard": 1.0, "block_spread": 0.5}, rel=1e-5)
    assert found[1] == {"checkerboard": 0.0, "block_spread": 0.0}
    assert found[2] == {"checkerboard": None, "block_spread": None}


def test_resemblance_is_measured_in_a_named_space(schema, evaluation):
    scores = {score.key: score for score in evaluation.resemblance}
    assert all(score.name.endswith("(classifier of real images)") for score in scores.values())
    inverted = Images(images=255 - made(150, 1).images, labels=made(150, 1).labels)
    others = evaluate_images(schema, inverted, made(150, 2), made(60, 3), classifiers=("logistic",)).resemblance
    assert scores["frechet"].value < next(score.value for score in others if score.key == "frechet") / 2
    assert 1 < scores["inception_score"].real <= 3
    assert scores["precision"].value > 0.5
    assert scores["recall"].value > 0.5


def test_resemblance_is_measured_in_any_features(schema):
    """Whichever they are, their name stands in every figure's name; only chances are always a classifier's."""
    means = extractors.Extractor(
        name="row means", extract=lambda images: images.images.mean(axis=2)[..., 0].astype(float)
    )
    sets = [made(60, 1), made(80, 2), made(60, 3)]
    found = {score.key: score for score in evaluate_images(schema, *sets, classifiers=(), extractor=means).resemblance}
    assert [score.name for score in found.values()] == [
        "Fréchet distance (row means)", "Inception score (classifier of real images)",
        "Precision (row means)", "Recall (row means)",
    ]  # fmt: skip
    artificial, test = (means.extract(sets[place]) for place in (0, 2))
    assert found["frechet"].value == pytest.approx(frechet_distance(artificial, test))
    unlabelled = Schema.parse(TEXT.partition("label")[0])
    bare = [Images(images=each.images) for each in sets]
    assert evaluate_images(unlabelled, *bare).resemblance == ()
    keys = [score.key for score in evaluate_images(unlabelled, *bare, extractor=means).resemblance]
    assert keys == ["frechet", "precision", "recall"]


def test_students_are_what_was_fixed_beforehand(monkeypatch):
    """Figures of different days stand beside one another only if the classifiers that made them are the same."""
    fixed = {
        "EPOCHS": 10, "LEAST_STEPS": 200, "BATCH": 128, "RATE": 1e-3, "_FILTERS": (32, 64), "_UNITS": (128, 64),
        "_TREES": 100, "_ROUNDS": 100,
    }  # fmt: skip
    assert fixed == AS_FIXED
    monkeypatch.setattr(students, "_FILTERS", AS_FIXED["_FILTERS"])
    training, codes = made(60, 1), np.arange(60) % 3
    sizes = {
        name: [
            tuple(weights.shape) for weights in students.train_network(name, training, codes, 0, epochs=1).parameters()
        ]
        for name in ("cnn", "mlp")
    }
    kernels = [shape for shape in sizes["cnn"] if len(shape) == 4]
    assert [shape[:2] for shape in kernels] == [(32, 1), (64, 32)]
    assert [shape for shape in sizes["cnn"] if len(shape) == 2] == [(128, 64 * 2 * 2), (64, 128), (3, 64)]
    assert [shape[0] for shape in sizes["mlp"] if len(shape) == 2] == [256, 128, 3]


def test_each_sheet_shows_its_own_images(schema):
    dark, bright = (
        Images(images=np.full((60, 8, 8, 1), shade, np.uint8), labels=made(60, 1).labels) for shade in (20, 230)
    )
    found = evaluate_images(schema, dark, bright, dark, classifiers=())
    artificial, real = (
        np.asarray(Image.open(io.BytesIO(sheet)).convert("L")) for sheet in (found.artificial_sheet, found.real_sheet)
    )
    assert (artificial == 20).mean() > 0.2 > 0.01 > (artificial == 230).mean()
    assert (real == 230).mean() > 0.2 > 0.01 > (real == 20).mean()


def test_the_nearest_real_image_stands_below_each_artificial_one(schema, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "doublure.measures.images.evaluation.contact_sheet", lambda rows, title: drawn.append((rows, title))
    )
    monkeypatch.setattr("doublure.measures.images.evaluation.png", lambda picture: b"")
    artificial, real = made(40, 1), made(90, 2, noise=60.0)
    evaluate_images(schema, artificial, real, made(30, 3), classifiers=())
    ((_, above), (_, below)), title = next(sheet for sheet in drawn if "nearest" in sheet[1])
    assert "REAL" in title
    assert len(above) == len(below) == 18  # six of each class
    far = np.square(above.reshape(18, 1, -1).astype(float) - real.images.reshape(1, 90, -1)).sum(2)
    assert np.array_equal(below, real.images[far.argmin(1)])


def test_class_means_have_the_right_averages_and_no_relations(schema):
    """Two pixels that always agree no longer do."""
    real = made(300, 4, noise=0.0)
    together = real.images.copy()
    together[:, 0, 0] = together[:, 0, 1] = np.random.default_rng(0).integers(0, 2, (300, 1)) * 200
    drawn = class_means(schema, Images(images=together, labels=real.labels), 3000, np.random.default_rng(1)).images
    one, two = drawn[:, 0, 0, 0].astype(float), drawn[:, 0, 1, 0].astype(float)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.1
    assert abs(drawn[:, 3, 1].mean() - real.images[:, 3, 1].mean()) < 8


def enlarged(images, times):
    """Return the same images with each pixel drawn as a block."""
    return Images(images=images.images.repeat(times, axis=1).repeat(times, axis=2), labels=images.labels)


def test_large_images_are_averaged_down_by_a_whole_factor():
    small = made(5, 1)
    assert averaged(small) is small
    there = averaged(enlarged(small, 9))  # 72 pixels, in blocks of 3
    assert np.array_equal(there.images, enlarged(small, 3).images)
    wide = Images(images=np.arange(2 * 70 * 33, dtype=np.uint8).reshape(2, 70, 33, 1))
    assert averaged(wide).images.shape == (2, 23, 11, 1)
    assert averaged(wide).images[0, 0, 0, 0] == np.rint(wide.images[0, :3, :3].mean())


def test_classifiers_see_large_images_averaged_down_and_the_page_says_so(schema, monkeypatch):
    """A convolutional classifier of 100 x 100 pixels took a third of an hour."""
    seen = []
    learn = students.predict
    monkeypatch.setattr(
        "doublure.measures.images.evaluation.predict",
        lambda name, training, *rest: seen.append(training.images.shape[1:]) or learn(name, training, *rest),
    )
    own = extractors.Extractor(name="own size", extract=lambda images: widths(images, seen), resizes=True)
    sets = [enlarged(each, 9) for each in (made(60, 1), made(80, 2), made(40, 3))]
    found = evaluate_images(schema, *sets, classifiers=("logistic",), extractor=own)
    assert seen[:3] == [(24, 24, 1)] * 3
    assert set(seen[3:]) == {(72, 72, 1)}
    assert any("averaged down to 24 × 24 pixels" in note for note in found.notes)
    assert not any("averaged down" in note for note in evaluate_images(schema, *sets_of_8(), classifiers=()).notes)


def widths(images, seen):
    seen.append(images.images.shape[1:])
    return images.images.reshape(len(images), -1)[:, :3].astype(float)


def sets_of_8():
    return made(60, 1), made(80, 2), made(40, 3)


def test_the_baseline_is_said_to_be_no_private_one_where_its_figure_stands(schema, evaluation):
    (line,) = (line for line in evaluation.verdict.lines if "Trained on class means" in line)
    assert "must not be published" in line


def test_images_that_the_fit_has_seen_are_said_to_be(schema, evaluation):
    seen = evaluate_images(schema, made(60, 1), made(80, 2), classifiers=())
    assert seen.verdict.warnings[0].startswith("The test images are not held out")
    assert not any("not held out" in warning for warning in evaluation.verdict.warnings)


def test_without_a_holdout_a_quarter_of_the_units_is_kept_aside(schema):
    found = evaluate_images(schema, made(60, 1), made(80, 2), unit=np.arange(80) // 4, classifiers=())
    assert (found.rows.train, found.rows.holdout, found.rows.kept_aside) == (60, 20, False)
    assert any("No holdout" in note for note in found.notes)


def test_without_labels_or_with_few_images_nothing_is_taught(schema):
    unlabelled = Schema.parse(TEXT.partition("label")[0])
    bare = [Images(images=made(30, seed).images) for seed in (1, 2, 3)]
    found = evaluate_images(unlabelled, *bare)
    assert found.classifiers == ()
    assert "no label" in found.verdict.headline
    few = evaluate_images(schema, made(9, 1), made(9, 2), made(9, 3))
    assert "fewer than 20" in few.classifiers_skipped


@pytest.mark.parametrize("sizes", [(1, 1, 1), (30, 4, 1), (30, 30, 19)])
def test_of_few_images_no_features_are_compared(schema, sizes):
    """A single one has no covariance."""
    unlabelled = Schema.parse(TEXT.partition("label")[0])
    sets = [made(size, seed) for seed, size in enumerate(sizes)]
    bare = [Images(images=each.images) for each in sets]
    for about, given in ((schema, sets), (unlabelled, bare)):
        found = evaluate_images(about, *given, extractor=extractors.pixels())
        assert found.resemblance == ()
        assert "no features were compared: a set has fewer than 20 images" in found.verdict.headline


def test_a_lost_class_is_said(schema):
    only = made(120, 1).take(np.flatnonzero(np.arange(120) % 3 != 2))
    found = evaluate_images(schema, only, made(60, 2), made(60, 3), classifiers=())
    assert any("both" in warning for warning in found.verdict.warnings)


def test_the_figures_hold_no_image_and_the_page_marks_the_real_ones(evaluation, tmp_path):
    report = Report(images=evaluation)
    figures = report.to_json()
    assert "sheet" not in figures
    assert json.loads(figures)["images"]["internal"]
    assert "do not publish" in repr(report)
    page = report.to_html()
    assert page.count("data:image/png;base64,") == 3
    assert "private: do not publish" in page
    assert page.count("computed on real data: do not publish") >= 3
    report.save(tmp_path / "page.html", tmp_path / "page.json")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600


class Told:
    """Remembers stages, and how far the last of each came."""

    def __init__(self):
        self.stages, self.reached = {}, {}

    def stage(self, name, total=None):
        self.stages[name] = total

    def at(self, done):
        self.reached[list(self.stages)[-1]] = done


def test_the_rest_is_forecast_by_what_each_classifier_takes(schema, monkeypatch):
    """A forest after the network is no second network: the forecast is right where each takes what is said."""
    told, forecasts, took = Told(), [], 0
    told.at = lambda done: forecasts.append((took, forecast_rest(took, done, told.stages["train classifiers"])))

    def predict(name, training, classes, test, n_classes, *more):
        nonlocal took
        took += students.COSTS[name]
        return np.full((len(test), n_classes), 1 / n_classes)

    monkeypatch.setattr("doublure.measures.images.evaluation.predict", predict)
    evaluate_images(schema, made(60, 1), made(80, 2), made(40, 3), progress=told)
    said = [(gone, left) for gone, left in forecasts if left is not None]
    assert len(said) == 3 * len(students.USUAL) - 1
    assert all(gone + left == pytest.approx(took) for gone, left in said)
    assert students.COSTS.keys() == students.CLASSIFIERS.keys()


def test_it_is_told_how_far_students_are(schema, monkeypatch):
    told, sets = Told(), (made(60, 1), made(80, 2), made(40, 3))
    with monkeypatch.context() as patched:
        patched.setattr(students, "LEAST_STEPS", 1)
        evaluate_images(schema, *sets, classifiers=("cnn", "logistic"), progress=told)
    assert told.stages == {"train classifiers": 63, "compare images": None}
    assert told.reached == {"train classifiers": 63}
    monkeypatch.setattr(students, "LEAST_STEPS", AS_FIXED["LEAST_STEPS"])
    steps = students.count_steps(300)
    told.stage("train", steps)
    training = made(300, 1)
    students.predict("mlp", training, np.arange(300) % 3, training, 3, seed=0, progress=told)
    assert told.reached["train"] == steps
    assert steps == 200
    assert students.count_steps(12_800) == 1000
