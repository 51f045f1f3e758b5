"""Six figures of synthetic series beside real ones, each in units of a channel's standard deviation or a share.

They are for comparisons between methods; the package's own evaluation is :mod:`doublure.measures.series`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

Floats = npt.NDArray[np.float64]

MEASURES = {
    "mean": "mean profile",
    "sd": "sd profile",
    "autocorrelation": "autocorrelation",
    "forecast": "forecasting",
    "apart": "two-sample AUC",
    "correlation": "channel correlation",
    "values": "TVD by step",
}
_BEFORE, _TASKS, _MOST = 8, 6_000, 1_000
_PARTS = 20


def figures(made: Floats, train: Floats, aside: Floats) -> dict[str, float]:
    """Return the figures of synthetic series ``(N, length, channels)``.

    ``mean`` and ``sd``: mean absolute difference of the profiles. ``autocorrelation``: within a series, mean absolute
    difference over lags. ``forecast``: boosted trees learn from synthetic series to forecast a step from eight before
    it and the other channels' last one; mean absolute error on the series kept aside. ``apart``: the area under ROC
    with which boosted trees tell synthetic series from those kept aside, by values and differences. ``correlation``:
    mean absolute difference of channels' correlations. ``values``: total variation of each step's values in parts.
    """
    scale = train.std((0, 1))
    made, train, aside = made / scale, train / scale, aside / scale
    channels = train.shape[2]
    found = {
        "mean": float(np.abs(made.mean(0) - train.mean(0)).mean()),
        "sd": float(np.abs(made.std(0) - train.std(0)).mean()),
        "autocorrelation": float(np.abs(_autocorrelation(made) - _autocorrelation(train)).mean()),
        "forecast": float(np.mean([_forecast(made, aside, channel) for channel in range(channels)])),
        "apart": _apart(made, aside if len(aside) >= _MOST // 2 else np.concatenate([train, aside])),
        "values": _values(made, train),
    }
    if channels > 1:
        above = np.triu_indices(channels, 1)
        found["correlation"] = float(np.abs(_correlations(made) - _correlations(train))[above].mean())
    return {name: round(figure, 4) for name, figure in found.items()}


def _autocorrelation(series: Floats) -> Floats:
    apart = series - series.mean(1, keepdims=True)
    variance = (apart**2).mean((0, 1)) + 1e-12
    lags = range(1, min(24, series.shape[1]))
    return np.array([(apart[:, lag:] * apart[:, :-lag]).mean((0, 1)) / variance for lag in lags])


def _correlations(series: Floats) -> Floats:
    found: Floats = np.corrcoef(series.reshape(-1, series.shape[2]).T)
    return found


def _tasks(series: Floats, channel: int, seed: int) -> tuple[Floats, Floats]:
    draw = np.random.default_rng(seed)
    step, row = draw.integers(_BEFORE, series.shape[1], _TASKS), draw.integers(0, len(series), _TASKS)
    known = [series[row, step - lag, channel] for lag in range(1, _BEFORE + 1)]
    known += [series[row, step - 1, other] for other in range(series.shape[2]) if other != channel]
    return np.stack([*known, step], axis=1), series[row, step, channel]


def _forecast(made: Floats, aside: Floats, channel: int) -> float:
    model: Any = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(*_tasks(made, channel, 0))
    known, wanted = _tasks(aside, channel, 9)
    return float(np.abs(model.predict(known) - wanted).mean())


def _apart(made: Floats, real: Floats) -> float:
    draw = np.random.default_rng(0)
    most = min(len(made), len(real), _MOST)
    both = np.concatenate([each[draw.permutation(len(each))[:most]] for each in (made, real)])
    rows = np.concatenate([both.reshape(2 * most, -1), np.diff(both, axis=1).reshape(2 * most, -1)], axis=1)
    which = np.repeat([1, 0], most)
    model: Any = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    chances = cross_val_predict(model, rows, which, cv=3, method="predict_proba")[:, 1]
    return float(roc_auc_score(which, chances))


def _values(made: Floats, train: Floats) -> float:
    found = []
    for channel in range(train.shape[2]):
        ends = np.unique(np.quantile(train[:, :, channel], np.linspace(0, 1, _PARTS + 1)[1:-1]))
        for step in range(train.shape[1]):
            shares = [
                np.bincount(np.searchsorted(ends, each[:, step, channel], "right"), minlength=len(ends) + 1) / len(each)
                for each in (made, train)
            ]
            found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))
