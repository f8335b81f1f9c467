"""One model over all rows, in chunks that are kept."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssme._validation import argument, counted
from ssme.adapters._cache import ChunkCache
from ssme.adapters._extras import need
from ssme.adapters._hf_files import WHO, Trust
from ssme.adapters._hf_load import Source, load
from ssme.adapters._hf_predict import TEMPLATES, Phrases, Predictor
from ssme.adapters._progress import Advance
from ssme.adapters._rows import Rows

CHUNK_BATCHES = 16  # of so many batches the outputs are written to disk together


@dataclass(frozen=True)
class Settings:
    """How models are run; all but the chunks decides the numbers."""

    batch_size: int
    max_length: int | None
    device: Any
    dtype: str
    phrases: Phrases
    trust: Trust
    cache: str | os.PathLike[str] | None


def cache_key(source: Source, content: str, settings: Settings) -> dict[str, Any]:
    """All that decides the numbers."""
    torch, transformers = need("torch", "hf", WHO), need("transformers", "hf", WHO)
    device = settings.device.type if source.parts is None else next(source.parts[0].parameters()).device.type
    zero_shot = source.kind in TEMPLATES
    return {
        "format": "ssme-outputs/1",
        "model": source.fingerprint,
        "kind": source.kind,
        "data": content,
        "sentences": settings.phrases.sentences(source.kind) if zero_shot else [],
        "batch_size": settings.batch_size,
        "chunk_batches": CHUNK_BATCHES,
        "max_length": settings.max_length,
        "device": device,
        "dtype": settings.dtype,
        "versions": [torch.__version__, transformers.__version__],
    }


def run_model(source: Source, rows: Rows, settings: Settings, cache: ChunkCache, advance: Advance) -> np.ndarray:
    """Logits (n, K) of one model, in the order of the rows; what is on disk is not computed again."""
    order = _order(rows.items, source.kind)
    size = settings.batch_size * CHUNK_BATCHES
    chunks = [order[start : start + size] for start in range(0, len(order), size)]
    predictor: Predictor | None = None
    parts, n_cut = [], 0
    with _evaluating(source):
        for number, chunk in enumerate(chunks):
            found = cache.get(number, len(chunk))
            if found is None:
                if predictor is None:
                    model, processor = load(source, settings.trust, settings.device, settings.dtype)
                    autocast = settings.dtype == "auto" and source.parts is None
                    predictor = Predictor(source, model, processor, settings.max_length, settings.phrases, autocast)
                found = _run_chunk(predictor, rows, chunk, settings.batch_size, lambda n: advance(source.name, n))
                cache.put(number, *found)
            else:
                advance(source.name, len(chunk))
            parts.append(found[0])
            n_cut += found[1]
    if n_cut:
        most = "the model takes" if settings.max_length is None else argument("max_length", settings.max_length)
        warnings.warn(
            f"{source.name}: {counted(n_cut, 'text is', 'texts are')} longer than {most} and "
            f"{'was' if n_cut == 1 else 'were'} cut ({n_cut / len(rows):.1%} of the rows).",
            UserWarning,
            stacklevel=3,
        )
    logits = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
    logits[order] = np.concatenate(parts)
    return logits


def _run_chunk(
    predictor: Predictor, rows: Rows, chunk: np.ndarray, batch_size: int, advance: Any
) -> tuple[np.ndarray, int]:
    """Logits of the rows of one chunk and how many were cut. A zero-shot model reads a text once for every class."""
    step = batch_size
    if predictor.source.kind == "zero-shot text":
        step = max(1, batch_size // len(predictor.phrases.words))
    parts, n_cut = [], 0
    for start in range(0, len(chunk), step):
        batch = chunk[start : start + step]
        logits, cut = predictor([rows.items[i] for i in batch], [rows.ids[i] for i in batch])
        parts.append(logits)
        n_cut += cut
        advance(len(batch))
    return np.concatenate(parts), n_cut


def _order(items: Sequence[Any], kind: str) -> np.ndarray:
    """Longest texts first: what does not fit into memory fails at once. Images stay as they are."""
    if kind in ("image", "zero-shot image"):
        return np.arange(len(items))
    lengths = np.array([sum(map(len, each)) if isinstance(each, tuple) else len(each) for each in items])
    return np.argsort(-lengths, kind="stable")


@contextmanager
def _evaluating(source: Source) -> Iterator[None]:
    """A model of the caller goes into evaluation mode meanwhile and comes back as it was."""
    model = None if source.parts is None else source.parts[0]
    modes = [] if model is None else [(module, module.training) for module in model.modules()]
    if model is not None:
        model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
