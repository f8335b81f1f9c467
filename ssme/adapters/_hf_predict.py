"""A loaded model -> logits of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssme._validation import argument
from ssme.adapters._content import open_image
from ssme.adapters._extras import need
from ssme.adapters._hf_files import WHO
from ssme.adapters._hf_load import Source, entailment

TEMPLATES = {"zero-shot text": "This example is {}.", "zero-shot image": "This is a photo of {}."}
ENDLESS = 1_000_000  # tokenizers that know no limit give a huge number


@dataclass(frozen=True)
class Phrases:
    """Classes of a zero-shot model and how they are put into words."""

    words: tuple[str, ...] = ()
    template: str | None = None

    def sentences(self, kind: str) -> list[str]:
        """One sentence a class."""
        template = self.template or TEMPLATES[kind]
        return [template.replace("{}", word) for word in self.words]


class Predictor:
    """Logits of batches.

    Parameters
    ----------
    source : Source
    model, processor
        As :func:`ssme.adapters._hf_load.load` returns them; the model is left in the mode in which it came.
    max_length : int or None
        Longest text in tokens; None takes what the model allows.
    phrases : Phrases
    autocast : bool
        Whether float32 weights compute in half precision where the device has it.
    """

    def __init__(
        self, source: Source, model: Any, processor: Any, max_length: int | None, phrases: Phrases, autocast: bool
    ) -> None:
        self.torch = need("torch", "hf", WHO)
        self.source, self.model, self.processor, self.phrases = source, model, processor, phrases
        weights = next(model.parameters())
        self.device, self.dtype = weights.device, weights.dtype
        self.half = autocast and self.device.type == "cuda" and self.dtype == self.torch.float32
        self.max_length = None
        if source.kind in ("text", "zero-shot text"):
            self.max_length = _longest(source.name, model, processor, max_length)
            if processor.pad_token is None:
                raise ValueError(f"{source.name}: its tokenizer has no padding token; set tokenizer.pad_token.")

    def __call__(self, items: Sequence[Any], ids: Sequence[str]) -> tuple[np.ndarray, int]:
        """Logits (n, K), float32, and how many texts were cut to the longest length."""
        encoded, cut = self._encode(items, ids)
        try:
            logits = self._forward(encoded, self.half)
            if self.half and not np.isfinite(logits).all():  # beyond the range of float16: once more in full
                logits = self._forward(encoded, False)
        except self.torch.OutOfMemoryError as error:
            mend = f"pass a smaller {argument('batch_size')}"
            raise MemoryError(f"{self.source.name}: the device ran out of it; {mend}") from error
        if not np.isfinite(logits).all():
            bad, mend = ids[int(np.argmin(np.isfinite(logits).all(axis=1)))], argument("dtype", "float32")
            what = f"{self.source.name} gives scores that are not finite (row {bad!r})"
            raise ValueError(f"{what}; pass {mend}, or leave the model out.")
        return logits, cut

    def _encode(self, items: Sequence[Any], ids: Sequence[str]) -> tuple[dict[str, Any], int]:
        """Tensors on the device."""
        kind, cut = self.source.kind, 0
        if kind in ("text", "zero-shot text"):
            encoded = self._tokenize(items)
            cut = _n_cut(encoded, self.max_length)
            if kind == "zero-shot text":
                cut = -(-cut // len(self.phrases.words))  # a text that is cut is cut beside every sentence
        else:
            images = [open_image(item, row) for item, row in zip(items, ids, strict=True)]
            if kind == "image":
                encoded = self.processor(images=images, return_tensors="pt")
            else:  # SigLIP was trained on sentences padded to full length
                padding = "max_length" if self.model.config.model_type.startswith("siglip") else True
                sentences = self.phrases.sentences(kind)
                encoded = self.processor(text=sentences, images=images, return_tensors="pt", padding=padding)
        tensors = {name: value.to(self.device) for name, value in encoded.items()}
        # Images come in full precision, the weights may be in half.
        return {k: v.to(self.dtype) if v.is_floating_point() else v for k, v in tensors.items()}, cut

    def _tokenize(self, items: Sequence[Any]) -> Any:
        options: dict[str, Any] = {"padding": True, "return_tensors": "pt", "max_length": self.max_length}
        if self.source.kind == "zero-shot text":
            sentences = self.phrases.sentences(self.source.kind)
            texts = [item for item in items for _ in sentences]
            cut = "only_first" if self.max_length else False
            return self.processor(texts, sentences * len(items), truncation=cut, **options)
        if items and isinstance(items[0], tuple):
            first, second = (list(part) for part in zip(*items, strict=True))
            return self.processor(first, second, truncation=bool(self.max_length), **options)
        return self.processor(list(items), truncation=bool(self.max_length), **options)

    def _forward(self, encoded: dict[str, Any], half: bool) -> np.ndarray:
        torch = self.torch
        with torch.inference_mode(), torch.autocast("cuda", torch.float16) if half else nullcontext():
            out = self.model(**encoded)
        if self.source.kind == "zero-shot image":
            return out.logits_per_image.float().cpu().numpy()
        logits = out.logits.float().cpu().numpy()
        if self.source.kind == "zero-shot text":
            return logits[:, entailment(self.model.config)].reshape(-1, len(self.phrases.words))
        return logits


def _longest(name: str, model: Any, tokenizer: Any, asked: int | None) -> int | None:
    """Longest text in tokens: what was asked for, within what the tokenizer and the positions of the model allow."""
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for module in model.modules():  # RoBERTa and its like count positions from behind the padding token
        table: Any = getattr(module, "position_embeddings", None)
        if getattr(table, "padding_idx", None) is not None:
            limits.append(table.num_embeddings - table.padding_idx - 1)
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < ENDLESS]
    most = min(known, default=None)
    if asked is not None and most is not None and asked > most:
        raise ValueError(f"{argument('max_length', asked)} is more than the {most} tokens that {name} takes.")
    return asked if asked is not None else most


def _n_cut(encoded: Any, max_length: int | None) -> int:
    """How many texts were longer than the longest length."""
    parts = getattr(encoded, "encodings", None)
    if max_length is None:
        return 0
    if parts:
        return sum(bool(part.overflowing) for part in parts)
    return int((encoded["attention_mask"].sum(1) >= max_length).sum())
