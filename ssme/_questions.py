"""What one asks of a fitted estimator beyond the estimates: which model, which labels next, which shares, any shift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ssme import decisions, label_design
from ssme._fitting import Rows, group_rows
from ssme._validation import check_level
from ssme.metrics import MetricSpec
from ssme.prevalence import prevalence_draws, prevalence_table
from ssme.shift import ALPHA, ShiftTest, shift_test

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ssme.posterior import LabelPosterior
    from ssme.results import MetricDraws

Metric = str | MetricSpec | Callable[..., Any]


class Questions:
    """Methods of :class:`ssme.SSME` that read its posterior."""

    classes_: NDArray[Any]
    model_names_: list[str] | None
    _posterior: LabelPosterior
    _rows: Rows
    _p: NDArray[np.float64]
    _seed: int

    if TYPE_CHECKING:

        def posterior_draws(self, metrics: Any = ..., *, groups: Any = None) -> list[MetricDraws]: ...

    def compare(
        self,
        metric: Metric = "accuracy",
        *,
        level: float = 0.9,
        groups: Any = None,
        greater_is_better: bool | None = None,
    ) -> pd.DataFrame:
        """Compare every two models, on the same rows and with the same draws.

        Parameters
        ----------
        metric : str, MetricSpec or callable, default="accuracy"
            One metric.
        level : float, default=0.9
            Probability of the interval of the difference.
        groups : array (n,), dict, DataFrame or list of str, optional
            As in :meth:`estimate`.
        greater_is_better : bool, optional
            For a metric that does not say so itself.

        Returns
        -------
        DataFrame
            See :func:`ssme.decisions.compare_models`.

        Raises
        ------
        ValueError
            Where it is not known whether more of the metric is better.
        """
        return pd.concat(
            decisions.compare_models(
                each, self.model_names_, level=check_level(level), greater_is_better=greater_is_better
            )
            for each in self.posterior_draws(_single(metric), groups=groups)
        ).reset_index(drop=True)

    def rank(
        self,
        metric: Metric = "accuracy",
        *,
        level: float = 0.9,
        groups: Any = None,
        greater_is_better: bool | None = None,
    ) -> pd.DataFrame:
        """Rank the models: probability of being best, expected rank and an interval of the rank.

        Parameters
        ----------
        metric, level, groups, greater_is_better
            As in :meth:`compare`.

        Returns
        -------
        DataFrame
            See :func:`ssme.decisions.rank_models`.
        """
        return pd.concat(
            decisions.rank_models(
                each, self.model_names_, level=check_level(level), greater_is_better=greater_is_better
            )
            for each in self.posterior_draws(_single(metric), groups=groups)
        ).reset_index(drop=True)

    def select_best(
        self, metric: Metric = "accuracy", *, level: float = 0.9, greater_is_better: bool | None = None
    ) -> decisions.Selection:
        """Choose the model of least expected regret.

        Parameters
        ----------
        metric, level, greater_is_better
            As in :meth:`compare`.

        Returns
        -------
        Selection
            The model, the probability that none is better, and by how much the best one may be better.
        """
        return decisions.select_best(
            self.posterior_draws(_single(metric))[0],
            self.model_names_,
            level=check_level(level),
            greater_is_better=greater_is_better,
        )

    def suggest_labels(self, k: int, *, models: Sequence[Any] | None = None) -> label_design.LabelBatch:
        """Draw k rows to label next, those more readily whose labels shrink the intervals more.

        The design is the same for all metrics (docs/choosing-labels.md). Give `label_weight` of the batch to the next
        :meth:`fit`, or the models look worse than they are.

        Parameters
        ----------
        k : int
            Size of the batch.
        models : sequence of names or numbers, optional
            The models that matter; all of them by default.

        Returns
        -------
        LabelBatch
            Rows, the probability that each of them had, and `label_weight` (n,) for the next fit.

        Raises
        ------
        ValueError
            Where k is no whole number from 1 to the number of rows without a label, or a model is not known.

        Examples
        --------
        >>> import numpy as np
        >>> from ssme import SSME
        >>> second = np.random.default_rng(0).beta(0.3, 0.3, size=(500, 2))
        >>> model = SSME(random_state=0).fit(second)
        >>> batch = model.suggest_labels(20)
        >>> y = np.full(500, -1)
        >>> y[batch.rows] = second[batch.rows, 0] > 0.5
        >>> model.fit(second, y, label_weight=batch.label_weight).diagnostics_["n_labeled"]
        20
        """
        check_is_fitted(self)
        return label_design.suggest_labels(
            self._posterior,
            self._rows.weights,
            k,
            models=None if models is None else [self._model_number(each) for each in models],
            label_weight=self._rows.label_weight,
            seed=[self._seed, 13],
        )

    def prevalence(self, *, level: float = 0.9, groups: Any = None) -> pd.DataFrame:
        """Estimate the share of every class, overall and by subgroup.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the interval: it is for the share in the population that the rows came from.
        groups : array (n,), dict, DataFrame or list of str, optional
            As in :meth:`estimate`.

        Returns
        -------
        DataFrame
            Columns group, class, estimate, lower, upper, level, n_labeled, n_unlabeled.
        """
        check_is_fitted(self)
        rows = self._rows
        found = prevalence_draws(
            self._posterior, rows.weights, group_rows(rows, groups), label_weight=rows.label_weight, seed=self._seed
        )
        return prevalence_table(found, self.classes_, check_level(level))

    def check_shift(self, *, alpha: float = ALPHA) -> ShiftTest:
        """Test whether the labeled rows could have been drawn from all rows as they should be, and warn if not.

        Parameters
        ----------
        alpha : float, default=0.01
            The warning is given where the p value is at most this.

        Returns
        -------
        ShiftTest
        """
        check_is_fitted(self)
        rows = self._rows
        inclusion = (
            None
            if rows.label_weight is None
            else label_design.inclusion_probability(rows.codes, rows.weights, rows.label_weight)
        )
        return shift_test(self._p, rows.codes >= 0, probability=inclusion, alpha=alpha, seed=self._seed).warn(
            stacklevel=3
        )

    def _model_number(self, model: Any) -> int:
        names, n_models = self.model_names_, self._p.shape[1]
        if names is not None and model in names:
            return names.index(model)
        if not isinstance(model, (str, bool)) and model in range(n_models):
            return int(model)
        known = f"0 to {n_models - 1}" if names is None else ", ".join(names[:8]) + (", ..." if n_models > 8 else "")
        raise ValueError(f"models names {model!r}, which is no model; there are: {known}.")


def _single(metric: Metric) -> Metric:
    if isinstance(metric, (str, MetricSpec)) or callable(metric):
        return metric
    raise TypeError(f"metric must be one metric, a name or a function, got {type(metric).__name__}.")
