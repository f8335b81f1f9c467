"""Between the simplex and the plane: clip, additive log-ratio (ALR) and its inverse, softmax.

Densities of scores live on the log-ratio scale: a model that answers .999 and one that answers .99999 are far apart
there, and a Gaussian kernel cannot leave the simplex. Every function returns a fresh float64 array; nothing is written
into the caller's.

References
----------
.. [1] Aitchison, J. (1982). "The Statistical Analysis of Compositional Data". JRSS B 44(2), 139-177.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

DEFAULT_EPS = 1e-6


def normalize(p: ArrayLike) -> Floats:
    """Divide by the sum over the last axis, so that every row sums to 1.

    Parameters
    ----------
    p : array-like (..., K)
        Non-negative numbers, not all zero in any row.

    Returns
    -------
    array (..., K)

    Examples
    --------
    >>> normalize([[1.0, 3.0]]).tolist()
    [[0.25, 0.75]]
    """
    p = np.asarray(p, dtype=np.float64)
    total = p.sum(axis=-1, keepdims=True)
    if not np.all(total > 0):
        row = tuple(int(i) for i in np.argwhere(~(total[..., 0] > 0))[0])
        raise ValueError(f"p has no positive sum in row {row}; every row needs at least one probability above 0")
    return np.asarray(p / total)


def clip_probabilities(p: ArrayLike, eps: float = DEFAULT_EPS) -> Floats:
    """Lift every probability to at least `eps`, then renormalise, so that logarithms are finite.

    Parameters
    ----------
    p : array-like (..., K)
        Probabilities; exact 0 and 1 are welcome.
    eps : float
        The floor, above 0 and below 1 / K. After renormalisation entries are at least ``eps / (1 + K eps)``.

    Returns
    -------
    array (..., K)

    Examples
    --------
    >>> clip_probabilities([[0.0, 1.0]], eps=0.001).round(6).tolist()
    [[0.000999, 0.999001]]
    """
    p = np.asarray(p, dtype=np.float64)
    if not 0 < eps < 1 / p.shape[-1]:
        raise ValueError(f"eps must be above 0 and below 1 / K = {1 / p.shape[-1]:.3g}, got {eps!r}")
    return normalize(np.clip(p, eps, 1.0))


def additive_log_ratio(p: ArrayLike, *, eps: float = DEFAULT_EPS) -> Floats:
    """Additive log-ratio of each model's probabilities, the last class being the reference [1]_.

    Parameters
    ----------
    p : array-like (n, M, K)
        Scores of M models over K >= 2 classes; clipped at `eps` and renormalised first.
    eps : float
        See `clip_probabilities`.

    Returns
    -------
    array (n, M (K - 1))
        ``log(p_k / p_K)``, model by model: columns 0..K-2 belong to the first model.

    References
    ----------
    .. [1] Aitchison, J. (1982). "The Statistical Analysis of Compositional Data". JRSS B 44(2), 139-177.

    Examples
    --------
    >>> additive_log_ratio([[[0.5, 0.5], [0.2, 0.8]]]).round(3).tolist()
    [[0.0, -1.386]]
    """
    p = np.asarray(p, dtype=np.float64)
    if p.ndim != 3 or p.shape[2] < 2:
        raise ValueError(f"p must have the shape (n, M, K) with K >= 2, got {p.shape}")
    logs = np.log(clip_probabilities(p, eps))
    return np.asarray(logs[:, :, :-1] - logs[:, :, -1:]).reshape(len(p), -1)


def inverse_additive_log_ratio(z: ArrayLike, n_models: int) -> Floats:
    """Scores (n, M, K) from their additive log-ratios (n, M (K - 1)).

    Parameters
    ----------
    z : array-like (n, M (K - 1))
        As `additive_log_ratio` returns them. Any finite numbers, however large, give finite probabilities.
    n_models : int
        M; it must divide the number of columns.

    Returns
    -------
    array (n, M, K)

    Examples
    --------
    >>> z = additive_log_ratio([[[0.1, 0.2, 0.7]]])
    >>> inverse_additive_log_ratio(z, n_models=1).round(12).tolist()
    [[[0.1, 0.2, 0.7]]]
    """
    z = np.asarray(z, dtype=np.float64)
    if z.ndim != 2 or n_models < 1 or z.shape[1] == 0 or z.shape[1] % n_models:
        raise ValueError(f"z must have the shape (n, M (K - 1)) with M = n_models = {n_models}, got {z.shape}")
    z = z.reshape(len(z), n_models, -1)
    return softmax(np.concatenate([z, np.zeros((len(z), n_models, 1))], axis=2))


def log_softmax(z: ArrayLike, axis: int = -1) -> Floats:
    """Logarithm of the softmax; no overflow and no log of 0 for finite input.

    Parameters
    ----------
    z : array-like
        Logits. ``-inf`` is the log of an impossible class; a slice of nothing but ``-inf`` becomes uniform.
    axis : int
        The axis that holds the classes.

    Examples
    --------
    >>> log_softmax([1000.0, 0.0]).tolist()
    [0.0, -1000.0]
    """
    z = np.asarray(z, dtype=np.float64)
    top = z.max(axis=axis, keepdims=True)
    z = np.where(np.isneginf(top), 0.0, z)  # nothing is known of such a slice: uniform, and not NaN
    shifted = z - np.where(np.isneginf(top), 0.0, top)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)))


def softmax(z: ArrayLike, axis: int = -1) -> Floats:
    """Softmax; slices sum to 1 and are finite for finite input. See `log_softmax`.

    Examples
    --------
    >>> softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    return np.exp(log_softmax(z, axis=axis))
