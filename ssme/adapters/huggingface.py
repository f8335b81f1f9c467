"""Hugging Face classifiers of texts and images -> ScoreTable (extra ``hf``).

Nothing of a model is run but the code of transformers, and no weights are read but safetensors, unless the caller
allows it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ssme._validation import argument, check_groups, check_labels, first_few
from ssme.adapters._cache import ChunkCache, default_folder
from ssme.adapters._classes import LabelMapping, find_classes, log_softmax, rename_outputs, to_classes
from ssme.adapters._content import fingerprint
from ssme.adapters._extras import need
from ssme.adapters._hf_files import WHO, Trust
from ssme.adapters._hf_load import DTYPES, Source, find, is_one, name_of, pick_device
from ssme.adapters._hf_predict import TEMPLATES, Phrases
from ssme.adapters._hf_run import Settings, cache_key, run_model
from ssme.adapters._labels import labels_by_name
from ssme.adapters._named import named_models
from ssme.adapters._progress import Progress, advancing
from ssme.adapters._rows import Columns, Missing, read_rows
from ssme.score_table import ScoreTable

__all__ = ["collect_scores"]


def collect_scores(
    models: Any,
    data: Any,
    *,
    text_column: str | None = None,
    text_pair_column: str | None = None,
    image_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    group_columns: Sequence[str] = (),
    class_names: Sequence[Any] | None = None,
    label_mapping: LabelMapping | None = None,
    candidate_labels: Sequence[str] | Mapping[str, str] | None = None,
    hypothesis_template: str | None = None,
    missing: Missing = "error",
    batch_size: int = 32,
    max_length: int | None = None,
    device: Any = "auto",
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto",
    revision: str | None = None,
    cache_dir: str | os.PathLike[str] | Literal[False] | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    score_type: Literal["probability", "logit"] = "probability",
    progress: Progress = False,
) -> ScoreTable:
    """Run several classifiers on the same rows.

    Parameters
    ----------
    models : str, path, pipeline, pair, or a list or dict of these
        Ids of models on the hub (``"id@revision"`` names a commit, branch or tag), folders that ``save_pretrained``
        wrote, pipelines, or pairs ``(model, tokenizer)``, for images ``(model, processor)``. They classify sequences or
        images, or are zero-shot models: of natural language inference for texts, CLIP and its like for images. The
        names are the keys of a dict, else the shortest ends of ids and paths that differ. Of pipelines the model and
        the tokenizer or processor are used, not their options; models in memory stay where they are.
    data : list, Series, DataFrame, datasets.Dataset, or path of a file or folder
        Files are .csv, .tsv, .parquet or .jsonl. Folders hold .txt files or images at any depth; ids are then the
        paths within, and the column "folder" is the name of the folder that a file lies in. Images are paths, PIL
        images, arrays (height, width, 3) of bytes, or the images of a Dataset.
    text_column, text_pair_column, image_column : str, optional
        By default "text" and "image", or the only column. With a pair, models that compare two texts get both.
    id_column : str, optional
        By default id, row_id or index, or the index of a DataFrame; else rows are "0", "1", ...
    label_column : str, optional
        Labels to carry into the table; blank where unlabeled. None carries none. Numbers that stand for named classes
        need `class_names`, unless the features of a Dataset name them.
    group_columns : sequence of str
    class_names : sequence, optional
        Classes of the table in their order; by default those of the first model.
    label_mapping : dict, optional
        Where models call the same class by other names: ``{label: class}`` for all of them, or
        ``{model: {label: class}}``, or ``{model: [classes in the order of its outputs]}``. Labels that become the same
        class are added up.
    candidate_labels : sequence of str, or dict of class to words, optional
        Classes of zero-shot models. Other models keep their own outputs, so that both kinds can stand side by side.
    hypothesis_template : str, optional
        Sentence that holds ``{}`` for the words; by default "This example is {}.", for images "This is a photo of {}."
    missing : {"error", "drop", "empty"}
        What becomes of rows without text or image. "" is a text, and is scored.
    batch_size : int, default=32
        Rows at a time. Texts are sorted by length, so that little of a batch is padding.
    max_length : int, optional
        Longest text in tokens; by default what the model takes. Longer ones are cut, with a warning that counts them.
    device : {"auto"} or torch device
        "auto" is the GPU where there is one.
    dtype : {"auto", "float32", "float16", "bfloat16"}
        "auto" computes in half precision on CUDA (batches that leave its range again in full), in float32 elsewhere.
    revision : str, optional
        Of the ids that name none.
    cache_dir : path, False or None
        Where outputs are kept as they come, so that a run that was stopped goes on, to the same numbers. By default
        ``$SSME_CACHE``, else ``ssme`` in the user's cache folder; False keeps nothing. What decides the numbers is
        part of the key: the commit of the model (or the content of its files), the content of the data, the settings
        here, and the versions of torch and transformers.
    allow_pickle : bool, default=False
        Also load weights that are no safetensors.
    trust_remote_code : bool, default=False
        Also run code that comes with a model.
    score_type : {"probability", "logit"}
        "logit" gives log probabilities.
    progress : bool or callable
        True shows a bar on a terminal; a function is called ``progress(model, done, total)`` after every batch.

    Returns
    -------
    ScoreTable
        Of shape (n, M, K), rows in the order of the data.

    Raises
    ------
    ImportError
        Where transformers or torch is not installed.
    ValueError, TypeError, OSError
        For what is wrong with models, data, names or folders. All of it is looked at before the first batch but the
        weights, which are loaded one model at a time.

    Notes
    -----
    The probability of a class is the softmax of the logits; for zero-shot text, of the logits of entailment over the
    classes (Yin, Hay and Roth, 2019, arXiv:1909.00161), for zero-shot images, of the similarities (Radford et al.,
    2021, arXiv:2103.00020).

    Examples
    --------
    >>> table = collect_scores(["runs/bert", "runs/tiny"], "reviews.csv", text_column="text")  # doctest: +SKIP
    >>> table  # doctest: +SKIP
    ScoreTable(6 rows, 2 models, 2 classes, 0 labeled)
    """
    _check(batch_size, max_length, dtype, score_type, hypothesis_template)
    need("transformers", "hf", WHO)
    trust = Trust(bool(allow_pickle), bool(trust_remote_code))
    words = _words(candidate_labels)
    named = named_models(models, name_of, is_one)
    sources = [find(name, each, trust, revision, zero_shot=words is not None) for name, each in named.items()]
    modality = _modality(sources)
    outputs = rename_outputs(
        {s.name: list(words or {}) if s.kind in TEMPLATES else s.outputs for s in sources}, label_mapping
    )
    classes = find_classes(outputs, class_names)
    column = text_column if modality == "text" else image_column
    columns = Columns(column, text_pair_column, id_column, label_column, group_columns)
    rows = read_rows(data, modality, columns, missing)
    if text_pair_column is not None and any(s.kind != "text" for s in sources):
        raise ValueError(
            f"{argument('text_pair_column')} is for models that compare two texts, not for zero-shot or images."
        )
    labels = labels_by_name(rows.labels, classes, given=class_names is not None)
    check_labels(labels, len(rows), len(classes), class_names=classes, name=argument("labels"))  # before the work
    groups = check_groups(rows.groups, len(rows))
    place = default_folder() if cache_dir is None else (None if cache_dir is False else cache_dir)
    phrases = Phrases(tuple((words or {}).values()), hypothesis_template)
    settings = Settings(batch_size, max_length, pick_device(device), dtype, phrases, trust, place)
    scores = np.empty((len(rows), len(sources), len(classes)))
    content = fingerprint(rows.items, paths=modality == "image")
    caches = [ChunkCache(place, s.name, cache_key(s, content, settings)) for s in sources]
    with advancing(len(rows) * len(sources), progress) as advance:
        for m, (source, cache) in enumerate(zip(sources, caches, strict=True)):
            logits = run_model(source, rows, settings, cache, advance)
            log_p = to_classes(log_softmax(logits), outputs[source.name], classes)
            scores[:, m] = log_p if score_type == "logit" else np.exp(log_p)
    return ScoreTable.from_arrays(
        scores,
        labels,
        model_names=list(named),
        class_names=classes,
        row_ids=rows.ids,
        groups=groups,
        score_type=score_type,
    )


def _check(batch_size: Any, max_length: Any, dtype: Any, score_type: Any, template: Any) -> None:
    for name, value in (("batch_size", batch_size), ("max_length", 1 if max_length is None else max_length)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{argument(name)} must be a whole number from 1 on, got {value!r}.")
    if dtype not in DTYPES:
        raise ValueError(f"{argument('dtype')} must be one of {first_few(DTYPES, 4)}, got {dtype!r}.")
    if score_type not in ("probability", "logit"):
        raise ValueError(f"{argument('score_type')} must be 'probability' or 'logit', got {score_type!r}.")
    if template is not None and "{}" not in template:
        raise ValueError(f"{argument('hypothesis_template')} must hold {{}} where the words go, got {template!r}.")


def _words(candidate_labels: Sequence[str] | Mapping[str, str] | None) -> dict[str, str] | None:
    """Class -> words of zero-shot models."""
    if candidate_labels is None:
        return None
    if isinstance(candidate_labels, str):
        raise TypeError(f"{argument('candidate_labels')} must be a list of classes, got the text {candidate_labels!r}.")
    if isinstance(candidate_labels, Mapping):
        return {str(name): str(words) for name, words in candidate_labels.items()}
    return {str(name): str(name) for name in candidate_labels}


def _modality(sources: Sequence[Source]) -> Literal["text", "image"]:
    images = [s.name for s in sources if s.kind in ("image", "zero-shot image")]
    texts = [s.name for s in sources if s.name not in images]
    if images and texts:
        raise ValueError(f"{images[0]!r} classifies images, {texts[0]!r} texts; collect their scores apart.")
    return "image" if images else "text"
