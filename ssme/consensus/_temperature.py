"""How sharp the consensus should be: posterior of its log temperature g, and for two classes of an offset.

The consensus says ``softmax(exp(g) L)`` of the pooled log scores L; for two classes ``exp(g) (L_1 - L_0) + a`` are the
log-odds of class 1, a ~ N(0, 1). Prior of g: a mixture of normals around what is known without labels,

- 0: the pool as it is,
- the g at which the mean accuracy that the consensus implies for the models equals the lesser of their mean agreement
  and their mean confidence, and half as far again (a mean of probabilities is underconfident as a rule),
- the g at which it equals their agreement,
- the g at which it equals the accuracy that their agreement implies if they err independently. Trained classifiers do
  not, and this component counts only as far as their scores look independent.

Both agreement and confidence overstate accuracy as a rule; models that copy each other break the one, scores that are
no probabilities the other, and the labels tell which. Every component has a scale mixture of standard deviations, wider
the farther it is from 0. The labels' log likelihood is multiplied by 1/2: the calibration curve is not exactly of this
form and labeled rows are often drawn in a stratified way, and half the weight gave smaller errors at every budget.

The posterior is a finite list of nodes: cells in g are split until none holds much of the mass; a is integrated on a
grid around its mode. Reference for agreement as an estimate of accuracy: Jiang et al. (2022), Assessing generalization
of SGD via disagreement; for confidence: Guillory et al. (2021), Predicting with confidence on unseen distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from scipy.stats import norm

from ssme.transforms import log_softmax

from ._pool import BISECTIONS, LARGEST_AGREEMENT

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

LABEL_POWER = 0.5
SCALES = (0.03, 0.1, 0.3, 1.0)
SCALE_WEIGHTS = (32.0, 16.0, 4.0, 0.5)
RELATIVE_SCALE = 0.25  # further standard deviation, as a share of the distance of a component from 0
OFFSET_SCALE = 1.0
INDEPENDENT_BELOW = 0.35  # dependence at which independent errors are as likely as not
STEEPNESS = 6
REACH = 0.98  # share of the way to a consensus without doubt beyond which no component lies
RANGE = (-4.0, 8.0)
_STEPS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 2.0])
STEPS = np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
LARGEST_CELL = 0.03  # share of the mass above which a cell is split
ROUNDS_OF_SPLITTING = 5
OFFSET_NODES = np.linspace(-2.4, 2.4, 9)  # in standard deviations around the mode
NEWTON_STEPS = 25


@dataclass(frozen=True, eq=False)
class Nodes:
    """Discrete posterior: log temperature, offset and weight, each (J,); weights sum to 1."""

    log_temperature: Floats
    offset: Floats
    weight: Floats


@dataclass(frozen=True)
class Clues:
    """What is known without labels, in the mean over the models.

    Attributes
    ----------
    agreement, confidence : float
        How often two models vote alike, and how sure they are of their votes. Agreement is NaN for one model.
    independent_accuracy : float
        Accuracy that the agreement implies if the models err independently.
    dependence : float
        How far they do not, from 0 to 1.
    """

    agreement: float
    confidence: float
    independent_accuracy: float
    dependence: float


@dataclass(frozen=True, eq=False)
class TemperaturePrior:
    """Mixture prior of the log temperature: centers (C,) and weights (C,) that sum to 1."""

    centers: Floats
    weights: Floats

    def log_density(self, g: Floats) -> Floats:
        """Log density at g, up to a constant."""
        scales = np.sqrt(np.square(SCALES)[:, None] + (RELATIVE_SCALE * self.centers) ** 2)
        density = norm.pdf(g[:, None, None], self.centers, scales) @ self.weights
        return np.log(density @ np.array(SCALE_WEIGHTS) + 1e-300)


def responsibilities(log_scores: Floats, log_temperature: float, offset: float) -> Floats:
    """P(class) (n, K) of the consensus at one node."""
    if log_scores.shape[1] == 2:
        both = np.empty(log_scores.shape)
        both[:, 1] = expit(np.exp(log_temperature) * (log_scores[:, 1] - log_scores[:, 0]) + offset)
        np.subtract(1.0, both[:, 1], out=both[:, 0])
        return both
    out = np.exp(np.exp(log_temperature) * log_scores)  # the best class has log score 0: no overflow
    out /= out.sum(axis=1, keepdims=True)
    return out


def implied_accuracy(log_scores: Floats, shares: Floats, weights: Floats, log_temperature: float) -> float:
    """Mean accuracy that the consensus implies for models that vote as in shares (n, K)."""
    implied = np.einsum("nk,nk->n", responsibilities(log_scores, log_temperature, 0.0), shares)
    return float(np.average(implied, weights=weights))


def _implied_accuracy_of(log_scores: Floats, shares: Floats, weights: Floats) -> Callable[[float], float]:
    """Implied accuracy as a function of the log temperature; what does not depend on it is computed once."""
    if log_scores.shape[1] > 2:
        return lambda log_temperature: implied_accuracy(log_scores, shares, weights, log_temperature)
    share, gap = weights / weights.sum(), log_scores[:, 1] - log_scores[:, 0]
    of_first, more = share @ shares[:, 0], share * (shares[:, 1] - shares[:, 0])
    return lambda log_temperature: float(of_first + more @ expit(np.exp(log_temperature) * gap))


def temperature_for(log_scores: Floats, shares: Floats, target: float, weights: Floats) -> float:
    """Log temperature at which the consensus implies the mean accuracy `target` for models that vote as in shares."""
    low, high = RANGE
    implied = _implied_accuracy_of(log_scores, shares, weights)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if implied(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def temperature_prior(log_scores: Floats, shares: Floats, clues: Clues, weights: Floats) -> TemperaturePrior:
    """The prior for a pool; one model has no agreement, which leaves its scores as they are."""
    if not np.isfinite(clues.agreement):
        return TemperaturePrior(np.zeros(1), np.ones(1))

    reachable = implied_accuracy(log_scores, shares, weights, RANGE[1])
    largest = reachable - (1 - REACH) * abs(reachable - implied_accuracy(log_scores, shares, weights, 0.0))

    def at(target: float) -> float:
        return temperature_for(log_scores, shares, min(target, LARGEST_AGREEMENT, largest), weights)

    least = at(min(clues.agreement, clues.confidence))
    independent = 1.0 / (1.0 + (clues.dependence / INDEPENDENT_BELOW) ** STEEPNESS)
    return TemperaturePrior(
        np.array([0.0, least, 1.5 * least, at(clues.agreement), at(clues.independent_accuracy)]),
        np.array([*np.full(4, (1.0 - independent) / 4), independent]),
    )


def posterior_nodes(
    log_scores: Floats, codes: Codes, weights: Floats, prior: TemperaturePrior, power: float | None = None
) -> tuple[Nodes, float]:
    """Posterior given labeled rows: log scores (n_l, K), class codes (n_l,), row weights (n_l,); and its log evidence.

    With power 0 (or no labels) this is the prior.
    """

    power = LABEL_POWER if power is None else power

    def log_mass(g: Floats, width: Floats) -> tuple[Floats, Floats, Floats]:
        log_post, offset, log_share = _label_posterior(log_scores, codes, weights * power, g)
        return prior.log_density(g) + np.log(width) + log_post, offset, log_share

    edges = np.unique(np.clip((prior.centers[:, None] + STEPS).ravel(), *RANGE))
    while True:
        g, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        mass, offset, log_share = log_mass(g, width)
        evidence = float(np.logaddexp.reduce(mass))
        share = np.exp(mass - evidence)
        large = share > LARGEST_CELL
        if not (large & (width > 2e-3)).any() or len(edges) > 400:
            break
        edges = np.sort(np.concatenate([edges, *(edges[:-1][large] + width[large] * f for f in (0.25, 0.5, 0.75))]))
    weight = (share[:, None] * np.exp(log_share)).ravel()
    keep = weight > 1e-3 * weight.max()
    nodes = Nodes(np.repeat(g, offset.shape[1])[keep], offset.ravel()[keep], weight[keep] / weight[keep].sum())
    return nodes, evidence - float(np.logaddexp.reduce(prior.log_density(g) + np.log(width)))


def _label_posterior(log_scores: Floats, codes: Codes, weights: Floats, g: Floats) -> tuple[Floats, Floats, Floats]:
    """Log likelihood (G,) of the labels at every g, with the offsets (G, A) and the log share (G, A) of each."""
    if log_scores.shape[1] == 2:
        return _integrate_offset(log_scores[:, 1] - log_scores[:, 0], codes == 1, weights, g)
    rows = np.arange(len(codes))
    total = np.array([weights @ log_softmax(np.exp(each) * log_scores)[rows, codes] for each in g])
    return total, np.zeros((len(g), 1)), np.zeros((len(g), 1))


def _integrate_offset(
    odds: Floats, positive: NDArray[np.bool_], weights: Floats, g: Floats
) -> tuple[Floats, Floats, Floats]:
    """Two classes: the offset a ~ N(0, OFFSET_SCALE^2) integrated on a grid around its mode at every g."""
    u = np.exp(g)[:, None] * odds
    sign = np.where(positive, 1.0, -1.0)
    mode = np.zeros(len(g))
    for _ in range(NEWTON_STEPS):
        p = expit(u + mode[:, None])
        gradient = (positive - p) @ weights - mode / OFFSET_SCALE**2
        curvature = (p * (1 - p)) @ weights + 1 / OFFSET_SCALE**2
        step = np.clip(gradient / curvature, -1.0, 1.0)
        mode += step
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    p = expit(u + mode[:, None])
    deviation = 1.0 / np.sqrt((p * (1 - p)) @ weights + 1 / OFFSET_SCALE**2)
    offset = mode[:, None] + deviation[:, None] * OFFSET_NODES
    log_joint = np.stack([log_expit(sign * (u + a[:, None])) @ weights for a in offset.T], axis=1)
    log_joint += (
        norm.logpdf(offset, scale=OFFSET_SCALE) + np.log(deviation * (OFFSET_NODES[1] - OFFSET_NODES[0]))[:, None]
    )
    total = np.logaddexp.reduce(log_joint, axis=1)
    return total, offset, log_joint - total[:, None]
