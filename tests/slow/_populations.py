"""Populations of scores whose truth is known: what the slow tests draw rows from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

Sample = tuple[np.ndarray, np.ndarray]  # scores (n, M, K), classes (n,)

PREVALENCE = 0.35
SKILLS = np.array([0.7, 0.9, 1.1, 1.3, 1.5])
KINDS = ("overconfident", "underconfident", "correlated", "duplicated", "adversarial", "mostly adversarial")


def gaussian_mixture(n: int, n_models: int, separation: float, random: np.random.Generator) -> Sample:
    """Two classes alike in number; each model sees +-separation plus noise of its own, and doubles its log-odds."""
    y = random.integers(0, 2, n)
    seen = (2 * y - 1)[:, None] * separation + random.normal(size=(n, n_models))
    return binary_scores(2 * 2 * separation * seen), y


def gaussian_mixture_truth(separation: float) -> np.ndarray:
    """Accuracy and area under the ROC curve of every model of that mixture."""
    return np.array([norm.cdf(separation), norm.cdf(np.sqrt(2) * separation)])


def binary_scores(log_odds: np.ndarray) -> np.ndarray:
    """Scores (n, M, 2) of log-odds (n, M) of class 1."""
    return softmax(np.stack([-log_odds / 2, log_odds / 2], axis=2), axis=2)


def five_models(kind: str, n: int, random: np.random.Generator) -> Sample:
    """Five binary models of different skill, errors partly shared; `kind` (see KINDS) says what is wrong with them."""
    y = (random.random(n) < PREVALENCE).astype(np.int64)
    shared = 0.9 if kind == "correlated" else 0.4
    noise = np.sqrt(shared) * random.normal(size=(n, 1)) + np.sqrt(1 - shared) * random.normal(size=(n, 5))
    log_odds = 2 * SKILLS * ((2 * y - 1)[:, None] * SKILLS + noise) + np.log(PREVALENCE / (1 - PREVALENCE))
    log_odds *= {"overconfident": 3.0, "underconfident": 1 / 3, "correlated": 1.5}.get(kind, 1.0)
    if kind == "duplicated":
        log_odds = log_odds[:, [1, 1, 1, 1, 4]]
    wrong = {"adversarial": 2, "mostly adversarial": 3}.get(kind, 0)
    log_odds[:, :wrong] *= -1
    return binary_scores(log_odds), y


def random_population(seed: int, inequality: float) -> Callable[[int, np.random.Generator], Sample]:
    """A population drawn at random: 2 to 5 classes, 2 to 8 models whose skills differ by the standard deviation given.

    The share of the noise that the models have in common, prevalences, and temperatures are random too.
    """
    about = np.random.default_rng([seed, 0])
    n_classes, n_models = int(about.choice([2, 3, 5])), int(about.choice([2, 4, 8]))
    shared = about.uniform(0.3, 0.9)
    skill = np.clip(about.uniform(1, 2) + inequality * about.normal(size=n_models), 0.5, 3.0)
    temperature = np.exp(about.normal(about.normal(0, 0.3), 0.3, n_models))
    prevalence = about.dirichlet(np.full(n_classes, 5.0))

    def draw(n: int, random: np.random.Generator) -> Sample:
        y = random.choice(n_classes, n, p=prevalence)
        common, own = random.normal(size=(n, 1, n_classes)), random.normal(size=(n, n_models, n_classes))
        seen = skill[:, None] * np.eye(n_classes)[y][:, None, :] + np.sqrt(shared) * common + np.sqrt(1 - shared) * own
        logits = temperature[:, None] * (skill[:, None] * seen + np.log(prevalence))
        return softmax(logits, axis=2), y

    return draw
