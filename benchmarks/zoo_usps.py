"""All algorithms of ssl_zoo on USPS with 40 labels: test accuracy over seeds, and new digits found in the open world.

    python benchmarks/zoo_usps.py USPS.npz --out DIR [--seeds 0,1,2] [--steps 1000] [--algorithms a,b] [--device cpu]

Closed set: ten digits, four labels each, every other training picture unlabeled. Open world (ORCA, SORL): the digits 0
to 4 have labels, `--open-labels` in all, the pool holds all ten; unseen accuracy matches the novel clusters to the
unseen digits. Beside them k-means with as many clusters, on the pixels and on the features of a network trained on the
same labels alone: once with the seen centres fixed at the labeled means (as SORL's are), once with ten free clusters
that are matched to all digits, which is the kinder count.

All algorithms share the network, the batch, the number of steps, the split and the options of the method's paper. The
reported state is the last one, of the model that the algorithm reports (average or student). DIR gets runs.csv (a line
a run, written when it ends: what is there is not trained again), table.csv and table.md.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from sklearn.cluster import KMeans  # noqa: E402

from ssl_zoo import RunConfig, Trainer, list_algorithms  # noqa: E402
from ssl_zoo.algorithms._open_world import open_world_accuracy, seeded_kmeans  # noqa: E402
from ssl_zoo.registry import algorithm_class  # noqa: E402
from ssl_zoo.run_data import RunData, load_run_data  # noqa: E402

FIELDS = ("setting", "algorithm", "seed", "accuracy", "seen", "unseen", "steps", "wall_seconds", "cpu_seconds")
SEEN = 5
BASELINES = ("k-means, pixels", "k-means, features", "k-means from the labels, pixels",
             "k-means from the labels, features")  # fmt: skip


def words(text: str) -> list[str]:
    """a,b -> ["a", "b"]"""
    return [part.strip() for part in text.split(",") if part.strip()]


def run_config(name: str, seed: int, asked: argparse.Namespace, *, open_world: bool) -> RunConfig:
    """What is trained."""
    cls = algorithm_class(name)
    options = {"mu": asked.mu} if cls.uses_unlabeled else {}
    steps = round(asked.steps * asked.stretch)
    pool = {"n_labeled": asked.labels}
    if open_world:
        pool = {"n_labeled": asked.open_labels, "seen_classes": SEEN, "r": 1.0}
    return RunConfig.from_dict({
        "algorithm": {"name": name, "options": options}, "data": {"name": str(asked.usps)}, "pool": pool,
        "model": {"name": "small_cnn", "options": {"width": asked.width}}, "seed": seed,
        "train": {"steps": steps, "epoch_steps": max(1, steps // 10), "batch_size": asked.batch_size},
    })  # fmt: skip


class Bench:
    """Runs that are not there yet, and their lines."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.path = asked, asked.out / "runs.csv"
        self.data: RunData | None = None
        asked.out.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.path.write_text(",".join(FIELDS) + "\n")

    def rows(self) -> list[dict[str, str]]:
        """All lines so far."""
        with open(self.path, newline="") as stream:
            return list(csv.DictReader(stream))

    def done(self, setting: str, name: str, seed: int) -> bool:
        """Whether a line is there."""
        key = (setting, name, str(seed))
        return any((row["setting"], row["algorithm"], row["seed"]) == key for row in self.rows())

    def add(self, **values: Any) -> None:
        """Write a line."""
        shown = {k: f"{v:.4f}" if isinstance(v, float) else v for k, v in values.items()}
        with open(self.path, "a", newline="") as stream:
            csv.DictWriter(stream, FIELDS, restval="").writerow(shown)
        print("  ".join(f"{k}={v}" for k, v in shown.items()), flush=True)

    def train(self, name: str, seed: int, setting: str) -> Trainer:
        """One run from its start; its folder is made anew when an earlier one was cut short."""
        config = run_config(name, seed, self.asked, open_world=setting == "open")
        self.data = load_run_data(config, reuse=self.data)
        folder = self.asked.out / setting / f"{name}-s{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        trainer = Trainer(config, folder, device=self.asked.device, data=self.data)
        wall, cpu = time.perf_counter(), time.process_time()
        metrics = trainer.fit().metrics
        if trainer.step < config.train.steps:
            raise SystemExit(130)
        if not self.done(setting, name, seed):
            self.add(setting=setting, algorithm=name, seed=seed, steps=trainer.step, **metrics,
                     wall_seconds=time.perf_counter() - wall, cpu_seconds=time.process_time() - cpu)  # fmt: skip
        return trainer

    def baselines(self, seed: int) -> None:
        """k-means on pixels and on the features of a network that was trained on the same labels."""
        if all(self.done("open", name, seed) for name in BASELINES):
            return
        trainer = self.train("supervised", seed, "open")
        data = trainer.data
        index = np.flatnonzero(data.pool.relabel(data.test.y) >= 0)
        y_test = data.pool.relabel(data.test.y[index])
        y_l = data.pool.relabel(data.train.y[data.pool.labeled_idx])
        pools = {
            "l": data.train.x[data.pool.labeled_idx],
            "u": data.pool.unlabeled(data.train)[0],
            "t": data.test.x[index],
        }
        for kind in ("pixels", "features"):
            z = {key: self._inputs(trainer, x, kind) for key, x in pools.items()}
            n = int(y_test.max()) + 1
            free = KMeans(n, n_init=10, random_state=seed).fit(torch.cat([z["l"], z["u"]]).numpy())
            matched = _match_all(free.predict(z["t"].numpy()), y_test, SEEN)
            seeds = torch.stack([z["l"][torch.from_numpy(y_l == k)].mean(0) for k in range(SEEN)])
            centres = seeded_kmeans(z["u"], seeds, n - SEEN)
            fixed = open_world_accuracy(torch.cdist(z["t"], centres).argmin(1).numpy(), y_test, SEEN)
            for name, found in (("k-means", matched), ("k-means from the labels", fixed)):
                self.add(setting="open", algorithm=f"{name}, {kind}", seed=seed, accuracy=found["all"],
                         seen=found["seen"], unseen=found["unseen"])  # fmt: skip

    def _inputs(self, trainer: Trainer, x: np.ndarray, kind: str) -> torch.Tensor:
        net = trainer.parts.ema.model.eval()
        with torch.no_grad():
            plain = [trainer.parts.augment.plain(part.to(trainer.device)) for part in torch.from_numpy(x).split(512)]
            out = [part.flatten(1) if kind == "pixels" else net.features(part) for part in plain]
        return torch.cat(out).float().cpu()


def _match_all(cluster: np.ndarray, y: np.ndarray, n_seen: int) -> dict[str, float]:
    """Accuracies with all clusters matched one to one to all classes."""
    from scipy.optimize import linear_sum_assignment

    n = int(max(cluster.max(), y.max())) + 1
    table = np.zeros((n, n), dtype=np.int64)
    np.add.at(table, (cluster, y), 1)
    to = linear_sum_assignment(table, maximize=True)[1]
    right = to[cluster] == y
    return {"all": right.mean(), "seen": right[y < n_seen].mean(), "unseen": right[y >= n_seen].mean()}


def write_tables(rows: list[dict[str, str]], folder: Path) -> str:
    """table.csv and table.md: mean, least and largest over the seeds."""
    lines, records = [], []
    for setting, measures in (("closed", ("accuracy",)), ("open", ("unseen", "seen", "accuracy"))):
        here = [row for row in rows if row["setting"] == setting]
        names = list(dict.fromkeys(row["algorithm"] for row in here))
        if setting == "open":
            names = [name for name in names if name != "supervised"]
        means = {n: np.mean([float(r[measures[0]]) for r in here if r["algorithm"] == n]) for n in names}
        base = means.get("supervised")
        columns = [f"{m} (min, max)" for m in measures]
        last = ["over Supervised", "CPU s a run"] if setting == "closed" else ["CPU s a run"]
        if names:
            lines += [
                "",
                "| " + " | ".join(["algorithm", *columns, *last]) + " |",
                "|---" * (1 + len(columns) + len(last)) + "|",
            ]
        for name in sorted(names, key=lambda n: -means[n]):
            mine = [r for r in here if r["algorithm"] == name]
            record: dict[str, Any] = {"setting": setting, "algorithm": name, "seeds": len(mine)}
            cells = [name]
            for m in measures:
                v = 100 * np.array([float(r[m]) for r in mine])
                record |= {m: round(v.mean(), 2), f"{m}_min": round(v.min(), 2), f"{m}_max": round(v.max(), 2)}
                cells.append(f"{v.mean():.1f} ({v.min():.1f}, {v.max():.1f})")
            if setting == "closed":
                cells.append("" if base is None else f"{100 * (means[name] - base):+.1f}")
            cpu = [float(r["cpu_seconds"]) for r in mine if r["cpu_seconds"]]
            record["cpu_seconds"] = round(float(np.mean(cpu)), 1) if cpu else ""
            cells.append(f"{np.mean(cpu):.0f}" if cpu else "")
            lines.append("| " + " | ".join(cells) + " |")
            records.append(record)
    text = "\n".join(lines).strip() + "\n"
    (folder / "table.md").write_text(text)
    with open(folder / "table.csv", "w", newline="") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(k for r in records for k in r)), restval="")
        writer.writeheader()
        writer.writerows(records)
    return text


def main(arguments: list[str] | None = None) -> None:
    """Train what is not there yet, then write the tables."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("usps", type=Path, help="npz file with x_train, y_train, x_test, y_test")
    about.add_argument("--out", type=Path, required=True)
    about.add_argument("--seeds", type=lambda text: [int(each) for each in words(text)], default=[0, 1, 2])
    about.add_argument("--algorithms", type=words, default=None, help="a,b; by default all")
    about.add_argument("--steps", type=int, default=1000)
    about.add_argument("--stretch", type=float, default=1.0, help="factor on the steps, to see what a longer run gives")
    about.add_argument("--labels", type=int, default=40)
    about.add_argument("--open-labels", type=int, default=100)
    about.add_argument("--batch-size", type=int, default=16)
    about.add_argument("--mu", type=int, default=2)
    about.add_argument("--width", type=int, default=16)
    about.add_argument("--threads", type=int, default=1)
    about.add_argument("--device", default="cpu")
    asked = about.parse_args(arguments)
    torch.set_num_threads(asked.threads)
    names = list_algorithms() if asked.algorithms is None else [algorithm_class(name).name for name in asked.algorithms]
    open_world = [name for name in names if algorithm_class(name).open_world]
    bench = Bench(asked)
    for seed in asked.seeds:
        for name in [n for n in names if n not in open_world]:
            if not bench.done("closed", name, seed):
                bench.train(name, seed, "closed")
        for name in open_world:
            if not bench.done("open", name, seed):
                bench.train(name, seed, "open")
        if open_world:
            bench.baselines(seed)
        print(write_tables(bench.rows(), asked.out), flush=True)


if __name__ == "__main__":
    main()
