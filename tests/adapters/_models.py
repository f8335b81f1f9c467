"""A vocabulary, a tokenizer and a small BERT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] good bad fine awful film plot very not the a this example is . world sport".split()
)
TEXTS = ["good film", "awful plot", "", "very very very good", "not a good film", "the zzz", "bad", "fine . " * 60]


def tokenizer(folder: Path, max_length: int = 24) -> Any:
    from transformers import BertTokenizerFast

    vocabulary = folder / "words.txt"
    vocabulary.write_text("\n".join(WORDS), encoding="utf-8")
    return BertTokenizerFast(str(vocabulary), model_max_length=max_length)


def bert(labels: list[str], seed: int = 0, **options: Any) -> Any:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, initializer_range=0.5, id2label=dict(enumerate(labels)),
        label2id={name: k for k, name in enumerate(labels)}, **options,
    )  # fmt: skip
    return BertForSequenceClassification(config).eval()
