"""CPU time of the trainer's FixMatch step against bare forward + backward + optimiser, step by step in turns.

    python benchmarks/speed/zoo_step.py [--data digits] [--steps 60] [--width 16] [--batch-size 16]

The bare step takes a batch of the same shape that lies ready through a copy of the net; the trainer's step also draws
the batch and its three views, masks, averages the weights and logs. The ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from ssl_zoo import RunConfig, Trainer  # noqa: E402


def main() -> None:
    """Measure and print."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--data", default="digits")
    about.add_argument("--steps", type=int, default=60)
    about.add_argument("--width", type=int, default=16)
    about.add_argument("--batch-size", type=int, default=16)
    asked = about.parse_args()
    torch.set_num_threads(1)
    config = RunConfig.from_dict({
        "algorithm": "fixmatch", "data": {"name": asked.data}, "pool": {"n_labeled": 40},
        "model": {"name": "small_cnn", "options": {"width": asked.width}},
        "train": {"steps": asked.steps, "epoch_steps": asked.steps, "batch_size": asked.batch_size},
    })  # fmt: skip
    trainer = Trainer(config, tempfile.mkdtemp(), device="cpu")
    net = copy.deepcopy(trainer.parts.student).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)
    x = torch.randn(asked.batch_size * (1 + 2 * trainer.parts.algorithm.mu), *trainer.data.train.in_shape)
    y = torch.randint(trainer.n_seen, (len(x),))
    ours: list[float] = []
    bare: list[float] = []
    clock = [time.process_time()]

    def in_turn(_trainer: Any, _result: Any) -> None:
        start = time.process_time()
        ours.append(start - clock[0])
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net.head(net.features(x)), y).backward()
        optimizer.step()
        clock[0] = time.process_time()
        bare.append(clock[0] - start)

    trainer.fit(on_step=in_turn)
    a, b = median(ours[5:]), median(bare[5:])
    print(f"batch {tuple(x.shape)}: trainer {1e3 * a:.2f} ms, bare {1e3 * b:.2f} ms, ratio {a / b:.2f}")


if __name__ == "__main__":
    main()
