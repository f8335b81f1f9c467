"""The estimator: orchestration only. The maths is in `consensus`, `_em`, `intervals` and `metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ssme._fitting import (
    FEW_ROWS,
    SAMPLE_SIZE,
    Rows,
    check_parameters,
    diagnose,
    existing_classes,
    group_posterior,
    group_rows,
    labeled_rows,
    normal_draws,
    only_some_labeled,
    read_rows,
    reference_sample,
    warn_few_rows,
)
from ssme._labeled_only import labeled_only as labeled_only_draws
from ssme._metric_bias import MetricBias, metric_biases, shifted
from ssme._mixture import Mixture, density_weights, fit_mixture, log_density
from ssme._questions import Metric, Questions
from ssme._tables import to_frame, warn_coarse, warn_undefined
from ssme._validation import check_level, check_scores, check_seed, effective_rows
from ssme.consensus import PooledNodes, fit_bias, fit_consensus, systematic, votes_of
from ssme.intervals import draw_metrics, row_ranks, spread_ranks
from ssme.kernel_sums import DEFAULT_BUDGET
from ssme.label_design import design_weights
from ssme.metrics import MetricSpec, get_metric
from ssme.posterior import FixedNode, LabelPosterior, Node
from ssme.results import MetricDraws
from ssme.score_table import ScoreTable
from ssme.summaries import SAMPLE_ROWS, draw_metrics_of_many, is_summable
from ssme.transforms import additive_log_ratio, normalize

Floats = NDArray[np.float64]

FEW_LABELS = 10
NOISY_LABELS = 300  # below, noise alone lifts a calibration error of the labels by a point and more
DISAGREEMENT = 2.5  # standard deviations between what the labels and the consensus say


class SSME(Questions, ClassifierMixin, BaseEstimator):
    """Semi-supervised model evaluation: estimate metrics of several classifiers from few labels and many scores.

    The default (`density="recalibrated"`) takes the consensus of the models as a prior for every label, learns from
    agreement, confidence and the labels how sharp that consensus should be and how far each model departs from it, and
    draws labels from the posterior. `density="kde"` is the method as published [1]_: a mixture of class-conditional
    kernel densities over the additive log-ratio of the scores, fitted by EM with the labeled rows pinned.

    Parameters
    ----------
    density : {"recalibrated", "kde"}, default="recalibrated"
        What gives the probability of a label given the scores.
    score_type : {"probability", "logit"}, default="probability"
        What the scores are. A :class:`~ssme.ScoreTable` says so itself.
    consensus : {"mean", "discriminant"}, default="mean"
        How the models are pooled. "discriminant" is for models of one family that share their errors, as those of a
        sweep: clusters of their joint scores come beside the mean (docs/robustness-curves.md).
    init : {"auto", "recalibrated", "mean-score"} or array (n, K), default="auto"
        Start of EM (`density="kde"`); "auto" is "mean-score", as published.
    space : {"joint", "pooled"}, default="joint"
        Where the kernels are: the M (K - 1) log-ratios of all models, or the K - 1 of the pooled score.
    bandwidth : {"isj", "scott", "silverman", "normal-reference"}, float or array (d,), default="isj"
        Bandwidth of the kernels, in log-ratio units.
    unlabeled_weight : float, default=1.0
        Weight of an unlabeled row in the mixture (lambda_U).
    leave_one_out : bool, default=False
        Leave every row's own kernel out of its density (`density="kde"`).
    max_iter : int, default=1000
        Most rounds of EM.
    tol : float, default=1e-6
        EM ends when no responsibility moves by more.
    memory_budget : int, default=2**30
        Bytes for the kernels between all pairs of rows (`density="kde"`). They are kept while they fit (8 n^2 bytes, up
        to 11,585 rows by default) and computed anew in every round beyond.
    kernel_dtype : {"float64", "float32"}, default="float64"
        Floating-point type of the kernels; float32 gives log densities to about 1e-4 in half of the memory.
    backend : {"numpy", "torch"}, default="numpy"
        What computes the kernels. "torch" takes a CUDA device, or Apple's MPS with float32, where there is one.
    correct_bias : {"auto"} or bool, default="auto"
        Correct every model and metric by its labeled residual, shrunk; "auto" does so unless `density="kde"`.
    n_draws : int, default=100
        Posterior draws behind estimates and intervals.
    max_exact_rows : int, default=50_000
        More rows than these are summed once, in cells of the scores, and every draw is made of the sums; fewer are
        drawn row by row. What that costs is in docs/scale.md. Not for `density="kde"`.
    class_names : sequence, optional
        Names of the score columns, in their order, by which labels are matched.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Attributes
    ----------
    classes_ : array (K,)
    responsibilities_ : array (n, K)
        P(class) of the fitted rows, labeled rows pinned.
    priors_ : array (K,)
        Estimated prevalence of the classes.
    n_iter_ : int
        Rounds of EM; 1 where the answer is in closed form.
    converged_ : bool
    log_likelihood_ : array
        Objective of EM at the start and after every round; empty without EM.
    bandwidth_ : array (d,) or None
    self_kernel_share_ : array (n,) or None
        How much of the density at each row is its own kernel. Near 1, EM cannot move.
    diagnostics_ : dict
        Agreement and confidence of the models, the accuracy that they imply without labels, the share of the
        uncertainty that the labels removed, and how far labels and consensus are apart in standard deviations.
    model_names_ : list of str or None

    References
    ----------
    .. [1] Shanmugam, D., Sadhuka, S., Raghavan, M., Guttag, J., Berger, B., Pierson, E. (2025). "Evaluating Multiple
       Models Using Labeled and Unlabeled Data". NeurIPS. arXiv:2501.11866.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> logits = (2 * truth - 1)[:, None] + rng.normal(size=(500, 3))
    >>> y = np.where(np.arange(500) < 20, truth, -1)
    >>> model = SSME(score_type="logit", random_state=0).fit(logits, y)
    >>> table = model.estimate(["accuracy", "roc_auc"], level=0.9)
    >>> table[["metric", "model", "n_labeled"]].head(2)
         metric  model  n_labeled
    0  accuracy      0         20
    1  accuracy      1         20
    """

    def __init__(
        self,
        *,
        density: str = "recalibrated",
        score_type: str = "probability",
        consensus: str = "mean",
        init: str | ArrayLike = "auto",
        space: str = "joint",
        bandwidth: str | float | ArrayLike = "isj",
        unlabeled_weight: float = 1.0,
        leave_one_out: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-6,
        memory_budget: int = DEFAULT_BUDGET,
        kernel_dtype: str = "float64",
        backend: str = "numpy",
        correct_bias: str | bool = "auto",
        n_draws: int = 100,
        max_exact_rows: int = 50_000,
        class_names: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.density = density
        self.score_type = score_type
        self.consensus = consensus
        self.init = init
        self.space = space
        self.bandwidth = bandwidth
        self.unlabeled_weight = unlabeled_weight
        self.leave_one_out = leave_one_out
        self.max_iter = max_iter
        self.tol = tol
        self.memory_budget = memory_budget
        self.kernel_dtype = kernel_dtype
        self.backend = backend
        self.correct_bias = correct_bias
        self.n_draws = n_draws
        self.max_exact_rows = max_exact_rows
        self.class_names = class_names
        self.random_state = random_state

    def fit(
        self,
        scores: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        label_weight: ArrayLike | None = None,
    ) -> SSME:
        """Fit to the scores of all rows and the labels of some.

        Parameters
        ----------
        scores : array (n, M, K) or (n, M), DataFrame (n, M) or ScoreTable
            Scores of M models; two dimensions are P(class 1), or its log-odds, of binary models.
        y : array-like (n,), optional
            Labels; -1, None, NaN or "" where there is none. A ScoreTable brings its own.
        sample_weight : array-like (n,), optional
            What a row counts for; an integer does what repeating the row does (but for the edges of the bins of
            `ece_positive`, which are those of the rows given). Weights are counts of rows: weights that sum to 1 say
            that there is one row, and intervals are as wide as that.
        label_weight : array-like (n,), optional
            What the label of a row counts for beside other labels, where the rows to label were not drawn at random:
            `label_weight` of the batch from :meth:`suggest_labels`. Only the proportions between the labeled rows
            matter to the estimates. The rounds of EM (`density="kde"`) have no use for it.

        Returns
        -------
        SSME
            The fitted estimator itself.

        Raises
        ------
        ValueError
            Where scores, labels or parameters cannot be used; the message names row, model or parameter.
        """
        check_parameters(self.get_params(deep=False))
        check_seed(self.random_state)
        rows = read_rows(scores, y, sample_weight, self.score_type, self.class_names, label_weight)
        if not isinstance(scores, ScoreTable):
            validate_data(self, scores, reset=True, skip_check_array=True)
        warn_few_rows(rows.weights, stacklevel=3)
        sampled = len(rows.codes) > min(SAMPLE_SIZE, self.max_exact_rows)
        rank = (spread_ranks if sampled else row_ranks)(rows.scores, rows.codes, rows.weights)
        return self._fit_rows(rows, rank)

    def _fit_rows(self, rows: Rows, rank: NDArray[np.int64]) -> SSME:
        """Fit to checked rows; those of lowest rank (n,) are a random sample of all."""
        p = normalize(rows.scores)
        self._rows, self._p, self._rank = rows, p, rank
        self._sample = reference_sample(self._rank)
        self._seed = int(check_random_state(check_seed(self.random_state)).randint(2**31 - 1))
        self.classes_, self.model_names_ = rows.classes, rows.model_names
        teach = only_some_labeled(rows.codes, self._rank)
        discriminant = self.consensus == "discriminant"
        self._consensus = fit_consensus(
            p, teach, rows.weights, rows.of_labels, self._sample, self.n_draws, discriminant=discriminant
        )
        self._mixture = self._fit_mixture() if self.density == "kde" else None
        em = self._mixture.em if self._mixture is not None else None
        self.n_iter_, self.converged_ = (max(em.n_iter, 1), em.converged) if em is not None else (1, True)
        self.log_likelihood_ = em.log_likelihood if em is not None else np.empty(0)
        self.self_kernel_share_ = em.self_kernel_share if em is not None else None
        self.bandwidth_ = self._mixture.bandwidth if self._mixture is not None else None
        if em is not None:
            mean = em.responsibilities
            node: Node = FixedNode(mean)
            node_of = np.zeros(self.n_draws, dtype=np.int64)
        else:
            nodes, node_of = self._consensus.nodes.distinct()
            mean, node = self._consensus.nodes.mean(p), PooledNodes(nodes, nodes.pooled(p))
        self._posterior = self._make_posterior(mean, node, node_of)
        self.responsibilities_ = _pinned(mean, rows.codes)
        self.priors_ = np.average(self.responsibilities_, axis=0, weights=rows.weights)
        self.diagnostics_ = diagnose(rows, self._consensus)
        return self

    def estimate(
        self,
        metrics: Metric | Iterable[Metric] = ("accuracy",),
        *,
        level: float = 0.9,
        groups: Any = None,
        labeled_only: bool = False,
    ) -> pd.DataFrame:
        """Estimate metrics of all models, with intervals.

        Parameters
        ----------
        metrics : str, MetricSpec, callable, or an iterable of these
            Names in :data:`ssme.metrics.METRICS`, or functions ``f(y_true, y_score)``.
        level : float, default=0.9
            Probability of the interval: it is for the metric on the population that the rows came from.
        groups : array (n,), dict, DataFrame or list of str, optional
            Also estimate on subgroups. Names are group columns of the ScoreTable that was fitted.
        labeled_only : bool, default=False
            Add rows of method "labeled-only", from the labeled rows alone.

        Returns
        -------
        DataFrame
            Columns metric, model, group, estimate, lower, upper, level, n_labeled, n_unlabeled, method, flags.
        """
        level = check_level(level)
        found = self.posterior_draws(metrics, groups=groups, labeled_only=labeled_only)
        warn_coarse(found, level, stacklevel=3)
        frames = [to_frame(each, level, self.model_names_) for each in found]
        return pd.concat(frames, ignore_index=True)

    def posterior_draws(
        self,
        metrics: Metric | Iterable[Metric] = ("accuracy",),
        *,
        groups: Any = None,
        labeled_only: bool = False,
    ) -> list[MetricDraws]:
        """Joint posterior draws of metrics: one record for each metric and group, the whole ("all") first.

        Row d of ``draws`` (D, M) is one state of what is not known, for all models: a function of several models, such
        as a difference or a slope over models, is drawn by applying it to every row.

        Parameters
        ----------
        metrics, groups, labeled_only
            As in :meth:`estimate`; the records of the labels alone come last.

        Returns
        -------
        list of MetricDraws
        """
        check_is_fitted(self)
        rows, method = self._rows, "ssme" if self.density == "recalibrated" else "ssme-kde"
        specs = self._specs(metrics)
        out: list[list[MetricDraws]] = [[] for _ in specs]
        of_whole: list[MetricBias] | None = None
        for name, members in group_rows(rows, groups):
            posterior, weights, of_labels = self._posterior, rows.weights[members], rows.of_labels[members]
            if name != "all":
                normal = normal_draws(self._p, self.n_draws, [self._seed, 7])
                posterior = group_posterior(posterior.subset(members), weights, of_labels, normal)
            whole = len(members) == len(rows.codes)
            scores = rows.scores if whole else rows.scores[members]
            ranks = self._rank if whole else np.argsort(np.argsort(self._rank[members]))
            large = self._is_large(len(members))
            draw = draw_metrics_of_many if large else draw_metrics
            found = draw(specs, scores, posterior, weights, ranks, self._seed)
            if self._corrects_bias:
                seed, of_rows = [self._seed, 15], (scores, posterior, weights, of_labels, ranks)
                if large:
                    some = labeled_rows(posterior.codes, ranks)
                    of_rows = (scores[some], posterior.subset(some), weights[some], of_labels[some], ranks[some])
                biases = metric_biases(specs, *of_rows, seed=seed, before=of_whole)
                of_whole = biases if name == "all" else of_whole
                unlabeled = float(weights[rows.codes[members] < 0].sum() / weights.sum())
                found = [shifted(*each) for each in zip(specs, found, biases, repeat(unlabeled))]
            for i, (spec, (point, draws)) in enumerate(zip(specs, found, strict=True)):
                flags = self._flags(members)
                if large and len(members) > SAMPLE_ROWS and not is_summable(spec):
                    flags = (*flags, f"from-{SAMPLE_ROWS}-rows")
                out[i].append(self._record(spec, name, members, point, draws, method, flags))
        records = [each for of_metric in out for each in of_metric]
        warn_undefined(records, stacklevel=3)
        return records + self._labeled_only(metrics, groups) if labeled_only else records

    def predict_proba(self, scores: Any) -> Floats:
        """P(class) (n, K) of rows, new or fitted, given their scores; no label is pinned."""
        p = self._read_new(scores)
        if self._mixture is not None:
            return self._mixture.predict_proba(self._space(p))
        return self._consensus.nodes.mean(p)

    def predict(self, scores: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        best = self.predict_proba(scores).argmax(axis=1)
        return self.classes_[best]

    def score_samples(self, scores: Any) -> Floats:
        """Log density (n,) of the mixture at the scores, in log-ratio space."""
        weights = density_weights(self._rows.weights, self._rows.codes, self.unlabeled_weight)
        bandwidth = self.bandwidth if self._mixture is None else self._mixture.bandwidth
        return log_density(self._space(self._read_new(scores)), self._space(self._p), weights, bandwidth, self._kernels)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False  # two dimensions are binary models; three are not for scikit-learn
        tags.input_tags.three_d_array = True
        tags.classifier_tags.poor_score = True  # columns are classifiers, and the checks' columns are features
        tags.target_tags.required = False
        return tags

    # -- fitting -------------------------------------------------------------------------------------------------------

    def _fit_mixture(self) -> Mixture:
        return fit_mixture(
            self._space(self._p),
            self._rows.weights,
            self._rows.codes,
            self._start(self._p),
            self.bandwidth,
            unlabeled_weight=self.unlabeled_weight,
            max_iter=self.max_iter,
            tol=self.tol,
            leave_one_out=self.leave_one_out,
            kernels=self._kernels,
        )

    @property
    def _kernels(self) -> dict[str, Any]:
        return {"memory_budget": self.memory_budget, "dtype": self.kernel_dtype, "backend": self.backend}

    def _start(self, p: Floats) -> Floats:
        if isinstance(self.init, str):
            return self._consensus.nodes.mean(p) if self.init == "recalibrated" else p.mean(axis=1)
        start = np.asarray(self.init, dtype=np.float64)
        if start.shape != (p.shape[0], p.shape[2]):
            raise ValueError(
                f"init must have shape {(p.shape[0], p.shape[2])}, class probabilities of the rows, got {start.shape}."
            )
        return start

    def _is_large(self, n_rows: int) -> bool:
        return n_rows > self.max_exact_rows and self._mixture is None

    @property
    def _corrects_bias(self) -> bool:
        return self.correct_bias is True or (self.correct_bias == "auto" and self.density != "kde")

    def _make_posterior(self, mean: Floats, node: Node, node_of: NDArray[np.int64]) -> LabelPosterior:
        rows, votes = self._rows, votes_of(self._rows.scores)
        bias, tilt, slope = fit_bias(mean, votes, rows.codes, rows.weights, rows.of_labels, self._sample)
        noise = np.zeros((self.n_draws, votes.shape[1]))
        if self._corrects_bias:
            normal, component = (
                normal_draws(self._p, self.n_draws, [self._seed, 5]),
                systematic(bias.weight, self.n_draws),
            )
            component = np.random.default_rng([self._seed, 6]).permutation(component)
            noise = bias.draws(normal, component) / slope
        else:
            tilt = np.zeros(votes.shape[1])
        exists = existing_classes(mean, rows.codes, rows.weights)
        return LabelPosterior(node, node_of, rows.codes, votes, tilt, noise, self.density == "kde", exists)

    def _space(self, p: Floats) -> Floats:
        if self.space == "pooled":
            p = normalize(np.exp(self._consensus.nodes.pooled(p)[-1]))[:, None, :]
        return additive_log_ratio(p)

    # -- estimating ----------------------------------------------------------------------------------------------------

    def _specs(self, metrics: Metric | Iterable[Metric]) -> list[MetricSpec]:
        return model_specs(metrics, len(self.classes_))

    def _labeled_only(self, metrics: Metric | Iterable[Metric], groups: Any) -> list[MetricDraws]:
        rows, specs = self._rows, self._specs(metrics)
        weights = rows.weights
        if rows.label_weight is not None:
            weights = design_weights(rows.codes, rows.weights, rows.label_weight)
        out: list[list[MetricDraws]] = [[] for _ in specs]
        for name, members in group_rows(rows, groups):
            found = labeled_only_draws(
                specs, rows.scores[members], rows.codes[members], weights[members], seed=self._seed
            )
            flags = self._label_flags(members)
            noisy = 0 < (rows.codes[members] >= 0).sum() < NOISY_LABELS
            for i, (spec, (point, draws)) in enumerate(zip(specs, found, strict=True)):
                own = (*flags, "too-high-by-noise") if noisy and spec.rises_with_noise else flags
                out[i].append(self._record(spec, name, members, point, draws, "labeled-only", own))
        return [each for records in out for each in records]

    def _record(
        self,
        spec: MetricSpec,
        group: str,
        members: NDArray[np.int64],
        point: Floats,
        draws: Floats,
        method: str,
        flags: tuple[str, ...],
    ) -> MetricDraws:
        labeled = int((self._rows.codes[members] >= 0).sum())
        return MetricDraws(
            spec.name,
            group,
            point,
            draws,
            spec.bounds,
            spec.greater_is_better,
            labeled,
            len(members) - labeled,
            method,
            flags,
        )

    def _flags(self, members: NDArray[np.int64]) -> tuple[str, ...]:
        flags = [*self._label_flags(members)]
        if abs(self.diagnostics_["labels_against_consensus"]) > DISAGREEMENT:
            flags.append("labels-disagree")
        if self._mixture is not None and self._mixture.is_no_op:
            flags.append("no-op-fit")
        return tuple(flags)

    def _label_flags(self, members: NDArray[np.int64]) -> tuple[str, ...]:
        n_labeled, flags = int((self._rows.codes[members] >= 0).sum()), []
        if n_labeled < FEW_LABELS:
            flags.append("few-labels" if n_labeled else "no-labels")
        if len(members) >= FEW_ROWS > effective_rows(self._rows.weights[members]):
            flags.append("few-effective-rows")
        return tuple(flags)

    def _read_new(self, scores: Any) -> Floats:
        check_is_fitted(self)
        if isinstance(scores, ScoreTable):
            array = check_scores(scores.scores, score_type=scores.score_type)
        else:
            if getattr(scores, "ndim", 2) == 1:
                raise ValueError(
                    "scores has one dimension. Reshape your data: (1, M) for one row, (n, 1) for one model."
                )
            validate_data(self, scores, reset=False, skip_check_array=True)
            array = check_scores(scores, score_type=self.score_type)
        if array.shape[1:] != self._p.shape[1:]:
            raise ValueError(
                f"scores must have {self._p.shape[1]} models and {self._p.shape[2]} classes as in fit, "
                f"got {array.shape[1]} and {array.shape[2]}."
            )
        return normalize(array)


def _pinned(responsibilities: Floats, codes: NDArray[np.int64]) -> Floats:
    out = responsibilities.copy()
    labeled = np.flatnonzero(codes >= 0)
    out[labeled] = np.eye(out.shape[1])[codes[labeled]]
    return out


def model_specs(metrics: Metric | Iterable[Metric], n_classes: int) -> list[MetricSpec]:
    """The specifications of one metric or several, each once."""
    single = isinstance(metrics, (str, MetricSpec)) or callable(metrics)
    if not single and not isinstance(metrics, Iterable):
        raise TypeError(f"metrics must be a name, a function or several of these, got {metrics!r}.")
    asked = [metrics] if single else list(dict.fromkeys(metrics))  # type: ignore[arg-type]
    if not asked:
        raise ValueError("metrics is empty: name at least one metric, such as 'accuracy'.")
    return [get_metric(each, n_classes) for each in asked]  # type: ignore[arg-type]
