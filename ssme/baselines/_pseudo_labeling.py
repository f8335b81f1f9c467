"""Labels predicted by a logistic regression on the scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats, all_undefined, labeled_rows
from ssme.baselines._label_draws import metrics_of_shared_labels
from ssme.metrics import MetricSpec
from ssme.transforms import normalize

MAX_ITER = 1000


def pseudo_labeling(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """The class that a logistic regression of the labels on the scores of all models predicts, taken for the label.

    The regression is scikit-learn's with its default penalty (C = 1) on the M K probabilities (M for two classes). A
    class without a label is never predicted; with labels of one class all predictions are that class. Known labels are
    kept. The intervals know of the rows being a sample, and not that a prediction may be wrong.

    References
    ----------
    Lee, D.-H. (2013). "Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method for Deep Neural
    Networks". ICML Workshop on Challenges in Representation Learning.
    """
    labeled = labeled_rows(codes, weights)
    if len(labeled) == 0:
        return all_undefined(specs, scores.shape[1], n_draws)
    p = np.eye(scores.shape[2])[predicted_labels(scores, codes, weights, labeled)]
    return metrics_of_shared_labels(specs, scores, codes, weights, p, seed=seed, n_draws=n_draws)


def predicted_labels(scores: Floats, codes: Codes, weights: Floats, labeled: Codes) -> Codes:
    """Predicted class codes (n,)."""
    n, _, n_classes = scores.shape
    seen = np.unique(codes[labeled])
    if len(seen) == 1:
        return np.full(n, seen[0])
    p = normalize(scores)
    features = p[:, :, 1] if n_classes == 2 else p.reshape(n, -1)
    model = LogisticRegression(max_iter=MAX_ITER)
    model.fit(features[labeled], codes[labeled], sample_weight=weights[labeled])
    return np.asarray(model.predict(features), dtype=np.int64)
