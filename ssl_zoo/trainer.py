"""The loop: batch, rate, step, moving average, log; at each epoch's end evaluate and save.

No step waits for the device: numbers are read at an epoch's end. A run goes on bit for bit on the CPU from whatever
step it was saved at, because all that moves is saved (`ssl_zoo.run_parts`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ssl_zoo.algorithms.base import EpochContext, StepContext, StepResult
from ssl_zoo.config import RunConfig
from ssl_zoo.data import Batch
from ssl_zoo.metrics_log import MetricsLog
from ssl_zoo.run_data import RunData, load_run_data, select_test_rows, select_validation_rows
from ssl_zoo.run_folder import RunFolder
from ssl_zoo.run_parts import RunParts, seed_default_generators
from ssl_zoo.scores import evaluate, export_scores, load_run, predict
from ssl_zoo.step_diagnostics import measure_step
from ssl_zoo.surroundings import Interrupt, out_of_memory_as_advice, surroundings

__all__ = ["RunResult", "Trainer"]
_PATIENCE = 0.25  # share of the training after which a mask that never let a row pass is worth a warning


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Attributes
    ----------
    status : {"finished", "stopped"}
        "stopped": by Ctrl-C or SIGTERM, saved, to be resumed.
    step : int
        Steps done.
    selected_step : int
        Step of the state that is reported: the last one, or the best on the validation rows (``train.select``).
    metrics : dict
        Of the reported model (the average, or the student where the algorithm says so) at that step.
    folder : Path
    signal : int
        Number of the signal that stopped it, else 0.
    """

    status: str
    step: int
    selected_step: int
    metrics: dict[str, Any]
    folder: Path
    signal: int = 0


class Trainer:
    """One run.

    Parameters
    ----------
    config : RunConfig
    folder : path, optional
        Of this run; by default ``runs/`` and the run's name.
    device : str or torch.device, default="auto"
        "auto" is a GPU when there is one.
    data : RunData, optional
        Loaded before; by default what the config says is loaded.
    tensorboard : bool, default=False
        Write event files into ``folder/tensorboard`` too.
    compiled : bool, default=False
        Take the student through torch.compile while it trains. The first steps are slow, those after them faster.

    Attributes
    ----------
    parts : RunParts
        Student, average, algorithm, optimiser, loader, augmenter.
    step : int
        Steps done.

    Examples
    --------
    >>> import tempfile
    >>> config = RunConfig.from_dict({"algorithm": "supervised", "model": "mlp", "train": {"steps": 20}})
    >>> trainer = Trainer(config, tempfile.mkdtemp(), device="cpu")
    >>> result = trainer.fit()
    >>> result.status, result.step, 0 < result.metrics["accuracy"] < 1
    ('finished', 20, True)
    """

    passed: bool  # whether any unlabeled row has passed the mask, or there is no mask
    warned: bool
    best: dict[str, Any] | None  # value, step and metrics of the best state on the validation rows
    last_metrics: dict[str, Any]

    def __init__(
        self,
        config: RunConfig,
        folder: str | Path | None = None,
        *,
        device: torch.device | str = "auto",
        data: RunData | None = None,
        tensorboard: bool = False,
        compiled: bool = False,
    ) -> None:
        self.config, self.compiled = config, compiled
        self.folder = Path("runs", config.run_name) if folder is None else Path(folder)
        if str(device) == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        if config.train.precision == "bf16" and self.device.type != "cuda":
            raise ValueError("train.precision='bf16' needs a GPU; use 'auto' or 'fp32' on the CPU.")
        half = self.device.type == "cuda" and config.train.precision != "fp32"
        self.amp_dtype = torch.bfloat16 if half else None
        self.data = load_run_data(config) if data is None else data
        self.n_seen = self.data.pool.n_seen_classes
        self.log = MetricsLog(self.folder, tensorboard=tensorboard)
        self.store = RunFolder(self.folder, config, self.data.pool, self.device.type)
        with out_of_memory_as_advice(self.folder):
            self._build()
            open_world = self.parts.algorithm.open_world
            self.test = select_test_rows(self.data, open_world=open_world, device=self.device)
            self.validation = select_validation_rows(self.data, device=self.device)

    def _build(self) -> None:
        self.parts = RunParts(self.config, self.data, self.device, compiled=self.compiled)
        self.step, self.passed, self.warned, self.best, self.last_metrics = 0, False, False, None, {}
        self._untouched = True

    # ------------------------------------------------------------------------------------------------- the loop

    def fit(self, *, resume: bool = True, on_step: Callable[[Trainer, StepResult], None] | None = None) -> RunResult:
        """Train to the end, or until Ctrl-C or SIGTERM.

        Parameters
        ----------
        resume : bool, default=True
            Go on from the folder's last checkpoint when there is one; False starts anew and clears the folder's run.
        on_step : callable, optional
            Called after every step; reading a tensor there waits for the device.
        """
        with surroundings(self.device, self.folder) as interrupt:
            if not self._untouched:
                self._build()
            self._untouched = False
            seed_default_generators(self.config.seed, self.device)
            self.store.open(fresh=not resume)
            if self.store.has("last"):
                self.restore("last")
            try:
                self.log.open(self.step)
                self._train(interrupt, on_step)
            finally:
                self.log.close()
        return self._finish(interrupt.signal)

    def _train(self, interrupt: Interrupt, on_step: Callable[[Trainer, StepResult], None] | None) -> None:
        parts, train = self.parts, self.config.train
        parts.student.train()
        self._clock = (time.perf_counter(), self.step)
        while self.step < train.steps:
            batch = parts.loader.next()
            parts.set_rate(self.step)
            result = parts.algorithm.step(self._context(batch), parts.optimizer)
            parts.ema.update(parts.student)
            parts.meter.add({"loss": result.loss, "loss_l": result.loss_l, "loss_u": result.loss_u, **result.logs})
            self.step += 1
            if on_step is not None:
                on_step(self, result)
            if self.step % train.epoch_steps == 0 or self.step == train.steps:
                self._end_epoch((self.step - 1) // train.epoch_steps)
            elif interrupt.signal:
                self._check_finite()
                self._save("last")
            if interrupt.signal:
                return

    def _context(self, batch: Batch) -> StepContext:
        parts, train = self.parts, self.config.train
        measured = train.diagnostics_every and batch.x_u is not None and self.step % train.diagnostics_every == 0
        return StepContext(
            model=parts.student, teacher=parts.ema.model, augment=parts.augment, batch=batch,
            progress=self.step / train.steps, epoch=self.step // train.epoch_steps, generator=parts.generator,
            amp_dtype=self.amp_dtype,
            probe=(lambda result: parts.meter.add(measure_step(result, batch, parts.student.head)))
            if measured else None,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------ an epoch's end

    def _end_epoch(self, epoch: int) -> None:
        parts, steps = self.parts, self.step - self._clock[1]
        self._check_finite()  # waits for the device, so the clock is read after it
        seconds = time.perf_counter() - self._clock[0]
        parts.algorithm.epoch_end(EpochContext(
            model=parts.student, augment=parts.augment, teacher=parts.ema.model, epoch=epoch,
            progress=self.step / self.config.train.steps, generator=parts.generator, x_l=parts.loader.x_l,
            y_l=parts.loader.y_l, x_u=parts.loader.x_u, x_val=self.validation.x if len(self.validation.x) else None,
            batch_size=self.config.train.eval_batch_size,
        ))  # fmt: skip
        means, skipped = parts.meter.read()
        record: dict[str, Any] = {
            "step": self.step, "epoch": epoch, "lr": parts.optimizer.param_groups[0]["lr"], "train": means,
            "skipped": skipped, **self.evaluate(), "seconds": round(seconds, 3),
            "samples_per_second": round(steps * parts.samples_per_step / max(seconds, 1e-9), 1),
        }  # fmt: skip
        self.last_metrics = record["test"][self.reported]
        if self.config.train.select == "validation":
            self._keep_best(record)
        self.log.write(record)
        rate = means.get("pass_rate")
        self.passed = self.passed or rate is None or rate > 0
        never = not self.passed and not self.warned and self.step >= _PATIENCE * self.config.train.steps
        self.warned = self.warned or never
        self._save("last")
        if never:
            self._warn_of_empty_mask()
        parts.student.train()
        self._clock = (time.perf_counter(), self.step)

    def _keep_best(self, record: dict[str, Any]) -> None:
        value = record["validation"][self.reported]["accuracy"]
        if self.best is None or value > self.best["value"]:
            self.best = {"value": value, "step": self.step, "metrics": self.last_metrics}
            self._save("best")

    @property
    def reported(self) -> str:
        """Whose numbers are reported: "ema" or "student"."""
        return self.parts.algorithm.predict_with

    def evaluate(self) -> dict[str, Any]:
        """Metrics of the student and of the average, on the test rows and, when there are any, the validation rows."""
        out: dict[str, Any] = {}
        for split, (_, x, y) in (("test", self.test), ("validation", self.validation)):
            if len(x):
                whose = ("student", "ema") if self.reported == "ema" else ("student",)
                algorithm = self.parts.algorithm
                out[split] = {who: evaluate(self.logits(x, who), y, self.n_seen, algorithm) for who in whose}
        return out

    def logits(self, x: Tensor, who: str | None = None) -> Tensor:
        """Logits (n, outputs) of stored inputs by "student" or "ema"; by default by the reported one."""
        model = self.parts.ema.model if (who or self.reported) == "ema" else self.parts.student
        return predict(
            self.parts.algorithm, model, self.parts.augment, x, batch_size=self.config.train.eval_batch_size,
            device=self.device, amp_dtype=self.amp_dtype,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------ what can go wrong

    def _check_finite(self) -> None:
        """NaN must not be saved: neither a loss that was, nor weights that the last step spoilt."""
        ago = self.parts.meter.first_bad("loss")
        if ago is None and self.parts.weights_are_finite():
            return
        what = "the weights" if ago is None else "the loss"
        saved = self.store.notes("last").get("step")
        kept = "nothing was saved before" if saved is None else f"the state of step {saved} is saved and good"
        raise FloatingPointError(
            f"{what} of {self.parts.algorithm.name} became NaN or infinite at step {self.step - (ago or 0)}; {kept}. "
            f"Lower train.lr (it is {self.parts.base_lr:g}) or the weight of the unlabeled loss."
        )

    def _warn_of_empty_mask(self) -> None:
        warnings.warn(
            f"{self.parts.algorithm.name}: no unlabeled sample has passed the mask in {self.step} steps, so the masked "
            "loss was 0 all along. Lower the threshold, or train longer before you judge.",
            stacklevel=2,
        )

    # ------------------------------------------------------------------------------------------ save and restore

    def _save(self, name: str) -> None:
        notes = {"passed": self.passed, "warned": self.warned, "best": self.best, "metrics": self.last_metrics}
        self.store.save(name, self.step, self.parts.state(), notes)

    def restore(self, name: str = "last") -> None:
        """Take on the whole state of the folder's checkpoint "last" or "best", random numbers included."""
        state, notes = self.store.read(name, to_train=True)
        self.parts.load_state(state)
        self._take_notes(notes)

    def restore_selected(self) -> None:
        """Take on the weights that are reported, on whatever device; to train on, call `fit`."""
        state, notes = self.store.read("best" if self.config.train.select == "validation" else "last")
        self.parts.load_weights(state)
        self._take_notes(notes)

    def _take_notes(self, notes: dict[str, Any]) -> None:
        self._untouched = False
        self.step, self.passed, self.warned = notes["step"], notes["passed"], notes["warned"]
        # A run that was killed between the two has a best state that is newer than the last one and still the best.
        self.best = (self.store.notes("best") or notes)["best"]
        self.last_metrics = notes["metrics"]

    def _finish(self, signal: int) -> RunResult:
        done = self.step >= self.config.train.steps
        chosen = self.best if self.config.train.select == "validation" else None
        metrics, step = (chosen["metrics"], chosen["step"]) if chosen else (self.last_metrics, self.step)
        result = RunResult("finished" if done else "stopped", self.step, step, metrics, self.folder,
                           0 if done else signal)  # fmt: skip
        if done:
            self._write_scores(from_best=chosen is not None)  # before the result, which says that all is there
            self.store.write_result({
                "status": result.status, "step": result.step, "selected_step": step, "metrics": metrics,
                "selection": self.config.train.select, "whose": self.reported, "mask_ever_passed": self.passed,
            })  # fmt: skip
        return result

    def _write_scores(self, *, from_best: bool) -> None:
        """``scores.npz``: probabilities of the reported model on the test rows of the seen classes, with labels."""
        reported = load_run(self.folder, device=str(self.device), reuse=self.data) if from_best else self
        export_scores([reported], names=[self.folder.name]).write(self.folder / "scores.npz")
