"""Trained models -> predictions, accuracies, and the score table that SSME reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ssl_zoo.algorithms._open_world import open_world_accuracy
from ssl_zoo.algorithms.base import Algorithm
from ssl_zoo.data.loaders import eval_batches

if TYPE_CHECKING:
    from ssl_zoo.data import ArrayDataset, Augmenter
    from ssl_zoo.run_data import RunData
    from ssl_zoo.trainer import Trainer
    from ssme import ScoreTable

__all__ = ["evaluate", "export_scores", "load_run", "predict"]


@torch.no_grad()
def predict(
    algorithm: Algorithm,
    model: nn.Module,
    augment: Augmenter,
    x: Tensor,
    *,
    batch_size: int = 512,
    device: torch.device | str = "cpu",
    amp_dtype: torch.dtype | None = None,
) -> Tensor:
    """Logits (n, outputs) of stored inputs on the CPU; the model is in eval mode meanwhile, nothing is drawn."""
    modes = model.training, algorithm.training
    model.eval()
    algorithm.eval()
    out = []
    try:
        for part in eval_batches(x, batch_size):
            with torch.autocast(torch.device(device).type, dtype=amp_dtype, enabled=amp_dtype is not None):
                out.append(algorithm.predict(model, augment.plain(part.to(device))).float())
    finally:
        model.train(modes[0])
        algorithm.train(modes[1])
    return torch.cat(out).cpu()


def evaluate(logits: Tensor, y: Tensor, n_seen: int, algorithm: type[Algorithm] | Algorithm) -> dict[str, float]:
    """Accuracy; in the open world also that of seen and unseen classes, see `open_world_accuracy`.

    Examples
    --------
    >>> from ssl_zoo.registry import algorithm_class
    >>> evaluate(torch.eye(3), torch.tensor([0, 1, 0]), 3, algorithm_class("fixmatch"))
    {'accuracy': 0.66...}
    """
    if algorithm.open_world:
        found = open_world_accuracy(logits.argmax(-1).numpy(), y.numpy(), n_seen)
        return {"accuracy": found["all"], "seen": found["seen"], "unseen": found["unseen"]}
    return {"accuracy": float((logits.argmax(-1) == y).double().mean())}


def load_run(folder: str | Path, *, device: str = "auto", reuse: RunData | None = None) -> Trainer:
    """The run of a folder with the state that it reports; arrays of another run are reused where they are the same."""
    from ssl_zoo._files import read_json
    from ssl_zoo.config import RunConfig
    from ssl_zoo.run_data import load_run_data
    from ssl_zoo.trainer import Trainer

    config = RunConfig.from_dict(read_json(Path(folder) / "config.json"))
    trainer = Trainer(config, folder, device=device, data=load_run_data(config, reuse=reuse))
    trainer.restore_selected()
    return trainer


def export_scores(
    runs: Sequence[str | Path | Trainer],
    data: ArrayDataset | None = None,
    *,
    names: Sequence[str] | None = None,
    score_type: str = "probability",
    labels: bool = True,
    device: str = "auto",
) -> ScoreTable:
    """Scores of several runs on the same rows.

    Parameters
    ----------
    runs : sequence of folders or Trainers
        Folders are read with the state that they report (``train.select``).
    data : ArrayDataset, optional
        Rows to score, with the classes of the training data; those whose class is not known are scored too. By default
        the test split of the runs.
    names : sequence of str, optional
        Of the models; by default the folders' names.
    score_type : {"probability", "logit"}
        Probabilities unless you ask for logits.
    labels : bool, default=True
        Whether the table holds the true classes; without them it is ready for a few labels of your own.
    device : str

    Returns
    -------
    ScoreTable
        One row for each row of a seen (or unknown) class, its id being its position in the data. Open-world models
        give their scores over the seen classes.
    """
    from ssme.score_table import ScoreTable

    if not runs:
        raise ValueError("export_scores: there are no runs; give at least one folder.")
    if names is not None and len(names) != len(runs):
        raise ValueError(f"export_scores: there are {len(names)} names for {len(runs)} runs.")
    if score_type not in ("probability", "logit"):
        raise ValueError(f"score_type is {score_type!r}; it must be 'probability' or 'logit'.")
    logits, shown, first, loaded = [], [], None, None
    for run in runs:
        trainer = load_run(run, device=device, reuse=loaded) if isinstance(run, (str, Path)) else run
        loaded = trainer.data
        rows = _Rows(trainer, data)
        first = first or rows
        if not rows.same(first):
            raise ValueError(f"{rows.folder} has other rows or classes than {first.folder}; export them apart.")
        logits.append(trainer.logits(rows.x)[:, : trainer.n_seen].double())
        shown.append(trainer.folder.name)
    assert first is not None
    z = torch.stack(logits, 1)
    known = np.asarray([*first.names, None], dtype=object)  # -1 reads the last entry
    return ScoreTable.from_arrays(
        (z.softmax(-1) if score_type == "probability" else z).numpy(),
        known[first.y] if labels else None,
        model_names=list(names) if names is not None else _distinct(shown),
        class_names=first.names,
        row_ids=first.ids,
        score_type=score_type,
    )


class _Rows:
    """Which rows and classes a run is scored on."""

    def __init__(self, trainer: Trainer, data: ArrayDataset | None) -> None:
        pool, train = trainer.data.pool, trainer.data.train
        rows = trainer.data.test if data is None else data
        if rows.in_shape != train.in_shape:
            raise ValueError(
                f"the rows have inputs of shape {rows.in_shape}, the run {train.in_shape}; load them like=."
            )
        if rows.class_names and rows.class_names != train.class_names:
            raise ValueError(
                "the rows have other classes than the training data of the run; give the same class_names."
            )
        y = pool.relabel(rows.y)
        index = np.flatnonzero((rows.y < 0) | ((y >= 0) & (y < pool.n_seen_classes)))
        self.folder, self.fingerprint = trainer.folder, rows.fingerprint()
        self.x, self.y, self.ids = torch.from_numpy(rows.x[index]), y[index], index.astype(str)
        self.names = [train.class_names[k] for k in pool.class_order[: pool.n_seen_classes]]

    def same(self, other: _Rows) -> bool:
        """Whether both are the same."""
        return (self.fingerprint, self.names) == (other.fingerprint, other.names)


def _distinct(names: list[str]) -> list[str]:
    """Names with a number where one is used twice."""
    return [name if names.count(name) == 1 else f"{name}-{names[:k].count(name)}" for k, name in enumerate(names)]
