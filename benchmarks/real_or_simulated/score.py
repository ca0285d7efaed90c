"""How well a classifier tells simulated connections from real ones on set-ups that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

Floats = npt.NDArray[np.float64]

_FOLDS = 6
_RESAMPLES = 1000
_REPEATS = 2


@dataclass(frozen=True, slots=True)
class Table:
    """Connections: one row each, with the set-up it comes from and whether it was simulated."""

    names: tuple[str, ...]
    values: Floats
    set_up: npt.NDArray[np.int64]
    is_simulated: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Score:
    """The area under the ROC curve, and what the classifier went by."""

    rows: int
    area: float
    #: 95 %, by resampling whole set-ups.
    interval: tuple[float, float]
    #: By how much the area falls if a feature is shuffled on held-out set-ups, largest first.
    features: tuple[tuple[str, float], ...]

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rows": self.rows,
            "area": self.area,
            "interval": list(self.interval),
            "features": [{"name": name, "area_lost": lost} for name, lost in self.features],
        }


def score(table: Table, *, seed: int = 1, most_features: int = 15) -> Score:
    """Cross-validate by set-ups: each connection is judged by a classifier that saw none of its set-up."""
    with threadpool_limits(limits=1):  # tables are small: threads would cost more than they save
        return _score(table, seed, most_features)


def _score(table: Table, seed: int, most_features: int) -> Score:
    # scikit-learn takes a second to import, and every worker of the tests imports this module.
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import GroupKFold

    judged = np.zeros(len(table.values))
    lost = np.zeros(len(table.names))
    for train, test in GroupKFold(_FOLDS, shuffle=True, random_state=seed).split(
        table.values, table.is_simulated, table.set_up
    ):
        model = HistGradientBoostingClassifier(max_iter=100, learning_rate=0.1, min_samples_leaf=8, random_state=seed)
        known = ~np.isnan(table.values[train]).all(axis=0)
        values = table.values[:, known]
        model.fit(values[train], table.is_simulated[train])
        judged[test] = model.predict_proba(values[test])[:, 1]
        shuffled = permutation_importance(
            model, values[test], table.is_simulated[test],
            scoring="roc_auc", n_repeats=_REPEATS, random_state=seed,
        )  # fmt: skip
        lost[known] += shuffled.importances_mean / _FOLDS
    order = np.argsort(-lost)[:most_features]
    return Score(
        rows=len(table.values),
        area=_area(table.is_simulated, judged),
        interval=_interval(table, judged, seed),
        features=tuple((table.names[at], float(lost[at])) for at in order if lost[at] > 0.001),
    )


def alone(table: Table, *, most_features: int = 20) -> tuple[tuple[str, float], ...]:
    """The area of each feature by itself, by its ranks, the most telling first: what shuffling hides where several say
    the same."""
    areas = []
    for at, name in enumerate(table.names):
        column = table.values[:, at]
        is_missing = np.isnan(column)
        filled = np.where(is_missing, np.nanmin(column) - 1 if not is_missing.all() else 0.0, column)
        area = _area(table.is_simulated, filled)
        areas.append((name, max(area, 1 - area)))
    return tuple(sorted(areas, key=lambda pair: -pair[1])[:most_features])


def _interval(table: Table, judged: Floats, seed: int) -> tuple[float, float]:
    chance = np.random.default_rng(seed)
    groups = np.unique(table.set_up)
    rows_of = {group: np.flatnonzero(table.set_up == group) for group in groups}
    areas = []
    for _ in range(_RESAMPLES):
        rows = np.concatenate([rows_of[group] for group in chance.choice(groups, len(groups))])
        areas.append(_area(table.is_simulated[rows], judged[rows]))
    low, high = np.quantile(areas, (0.025, 0.975))
    return float(low), float(high)


def _area(truth: npt.NDArray[np.bool_], judged: Floats) -> float:
    """Under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, judged))
