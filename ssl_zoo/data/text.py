"""Texts -> float features: tf-idf, or the mean token vector of a Hugging Face encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

TEXT_NAMES = ("text", "sentence", "content", "document")


class TextEncoder(Protocol):
    """What turns texts into features once it has seen those of the train split."""

    def fit(self, texts: Sequence[str]) -> Any:
        """Learn from the train split."""
        ...

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Features (N, F)."""
        ...


class TfidfEncoder:
    """Tf-idf of words (and word pairs), rows of unit length, optionally reduced by a truncated SVD.

    Parameters
    ----------
    max_features : int, default=2000
        The most frequent terms that are kept. Features are dense, so memory is 4 bytes x rows x terms.
    n_components : int, optional
        Dimensions of the truncated SVD; by default the terms themselves are the features.
    ngrams : int, default=1
        Longest run of words that counts as a term.

    Examples
    --------
    >>> encoder = TfidfEncoder(max_features=3).fit(["a red apple", "a red car", "a blue car"])
    >>> encoder.transform(["red car", "green"]).round(1)  # of four terms, the rarest is dropped
    array([[0. , 0.7, 0.7],
           [0. , 0. , 0. ]], dtype=float32)
    """

    def __init__(self, max_features: int = 2000, *, n_components: int | None = None, ngrams: int = 1) -> None:
        self.max_features, self.n_components, self.ngrams = max_features, n_components, ngrams
        self._tfidf: Any = None
        self._svd: Any = None

    def fit(self, texts: Sequence[str]) -> TfidfEncoder:
        """Learn terms, their weights and the SVD."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._tfidf = TfidfVectorizer(max_features=self.max_features, ngram_range=(1, self.ngrams), sublinear_tf=True)
        try:
            terms = self._tfidf.fit_transform(texts)
        except ValueError as error:
            raise ValueError(f"the texts of the train split give no terms: {error}") from error
        if self.n_components is not None:
            if self.n_components >= terms.shape[1]:
                raise ValueError(f"n_components must be below the {terms.shape[1]} terms; got {self.n_components}")
            self._svd = TruncatedSVD(self.n_components, random_state=0).fit(terms)
        return self

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Features (N, F)."""
        if self._tfidf is None:
            raise ValueError("the tf-idf encoder has not seen a train split yet; call fit first")
        terms = self._tfidf.transform(texts)
        return np.asarray(terms.toarray() if self._svd is None else self._svd.transform(terms), dtype=np.float32)


class HuggingFaceEncoder:
    """Mean token vector of a pretrained Hugging Face encoder; it learns nothing from the train split.

    Parameters
    ----------
    model : str
        Name or folder of the model, as `transformers.AutoModel` takes it.
    batch_size, max_length : int
        Texts a forward pass, tokens a text.
    device : str, optional
        Default: a GPU when there is one.
    """

    def __init__(self, model: str, *, batch_size: int = 64, max_length: int = 128, device: str | None = None) -> None:
        self.model, self.batch_size, self.max_length, self.device = model, batch_size, max_length, device

    def fit(self, texts: Sequence[str]) -> HuggingFaceEncoder:
        """Nothing to learn."""
        return self

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Features (N, F)."""
        import torch

        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            raise ImportError("text features from a Hugging Face encoder need the package transformers") from error
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        tokenizer = AutoTokenizer.from_pretrained(self.model)
        model = AutoModel.from_pretrained(self.model).to(device).eval()
        parts = []
        with torch.inference_mode():
            for start in range(0, len(texts), self.batch_size):
                batch = tokenizer(
                    list(texts[start : start + self.batch_size]),
                    padding=True, truncation=True, max_length=self.max_length, return_tensors="pt",
                ).to(device)  # fmt: skip
                hidden = model(**batch).last_hidden_state
                mask = batch["attention_mask"][..., None].to(hidden.dtype)  # padding is no token
                parts.append(((hidden * mask).sum(1) / mask.sum(1).clamp_min(1)).float().cpu().numpy())
        return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)


def make_text_encoder(encoder: str | TextEncoder, **options: Any) -> TextEncoder:
    """The encoder "tfidf", "hf:MODEL", or one that is given ready."""
    if not isinstance(encoder, str):
        return encoder
    if encoder == "tfidf":
        return TfidfEncoder(**options)
    if encoder.startswith("hf:"):
        return HuggingFaceEncoder(encoder[3:], **options)
    raise ValueError(f"text_encoder must be 'tfidf', 'hf:MODEL' or an object with fit and transform; got {encoder!r}")
