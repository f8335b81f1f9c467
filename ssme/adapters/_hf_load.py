"""Ids, folders, pipelines and pairs of Hugging Face -> models that are known, and then models that are loaded."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ssme._validation import argument, first_few
from ssme.adapters._extras import need
from ssme.adapters._hf_files import WHO, Trust, checkpoint_folder, loading, read_config

Kind = Literal["text", "image", "zero-shot text", "zero-shot image"]
DTYPES = ("auto", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Source:
    """A model whose files or parts are at hand, and what its configuration says; weights are loaded later."""

    name: str
    config: Any
    kind: Kind
    fingerprint: str
    folder: Path | None = None  # of a checkpoint
    parts: tuple[Any, Any] | None = None  # of a model that is in memory already: model, tokenizer or processor

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in their order."""
        return [str(self.config.id2label[k]) for k in sorted(self.config.id2label)]


def is_one(model: Any) -> bool:
    """Whether this is one model: a path, a pipeline, or a pair (model, tokenizer or processor)."""
    pair = isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "config")
    return isinstance(model, (str, os.PathLike)) or not isinstance(model, (list, tuple)) or pair


def name_of(model: Any) -> str:
    """Name of a model that was given without one."""
    if isinstance(model, (str, os.PathLike)):
        return Path(model).resolve().as_posix() if Path(model).is_dir() else str(model)
    part = model[0] if isinstance(model, tuple) and model else getattr(model, "model", model)
    return str(getattr(getattr(part, "config", None), "_name_or_path", "") or type(part).__name__)


def find(name: str, model: Any, trust: Trust, revision: str | None, *, zero_shot: bool) -> Source:
    """Bring what a model is from the hub, or look at what there is.

    Raises
    ------
    ValueError, TypeError, OSError
        Where there is no such model, or none that can be used; the message says why.
    """
    if isinstance(model, (str, os.PathLike)):
        folder, fingerprint = checkpoint_folder(str(model), trust, revision)
        config = read_config(name, folder, trust)
        return Source(name, config, _kind(name, config, zero_shot), fingerprint, folder=folder)
    pair = _parts(name, model)
    config = pair[0].config
    return Source(name, config, _kind(name, config, zero_shot), _fingerprint_of_parts(*pair), parts=pair)


def _parts(name: str, model: Any) -> tuple[Any, Any]:
    if hasattr(model, "model") and hasattr(model, "tokenizer"):  # a pipeline
        pair = (model.model, model.tokenizer or getattr(model, "image_processor", None))
        if (
            getattr(model, "image_processor", None) is not None
        ):  # zero-shot of images has both; their processor is a pair
            pair = (
                model.model,
                _Both(model.tokenizer, model.image_processor) if model.tokenizer else model.image_processor,
            )
    elif isinstance(model, tuple) and len(model) == 2:
        pair = model
    else:
        pair = (None, None)
    if not hasattr(pair[0], "config") or pair[1] is None:
        raise TypeError(
            f"the model {name!r} must be an id, a path, a pipeline or a pair (model, tokenizer or processor), "
            f"got {type(model).__name__}."
        )
    return pair


class _Both:
    """Tokenizer and image processor of a pipeline, called as one processor is."""

    def __init__(self, tokenizer: Any, image_processor: Any) -> None:
        self.tokenizer, self.image_processor = tokenizer, image_processor

    def __call__(self, *, text: Any, images: Any, return_tensors: str, **options: Any) -> dict[str, Any]:
        pixels = self.image_processor(images=images, return_tensors=return_tensors)
        return {**self.tokenizer(text, return_tensors=return_tensors, **options), **pixels}


def _fingerprint_of_parts(model: Any, processor: Any) -> str:
    """SHA-256 of weights, configuration and vocabulary of what is in memory."""
    torch = need("torch", "hf", WHO)
    digest = hashlib.sha256(f"{type(model).__qualname__} {model.config.to_json_string(use_diff=False)}".encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    for part in (processor, *(getattr(processor, kind, None) for kind in ("tokenizer", "image_processor"))):
        if hasattr(part, "backend_tokenizer"):
            state = json.loads(part.backend_tokenizer.to_str())
            state |= {"truncation": None, "padding": None}  # what the last call left there
            digest.update(json.dumps(state).encode())
        elif hasattr(part, "get_vocab"):
            digest.update(json.dumps(part.get_vocab(), sort_keys=True).encode())
        elif hasattr(part, "to_json_string"):
            digest.update(part.to_json_string().encode())
        digest.update(f"{getattr(part, 'model_max_length', '')} {getattr(part, 'padding_side', '')}".encode())
    return digest.hexdigest()


# -- what a model is -------------------------------------------------------------------------------------------------


def _kind(name: str, config: Any, zero_shot: bool) -> Kind:
    """What the model does, from its configuration."""
    auto = need("transformers.models.auto.modeling_auto", "hf", WHO)
    architecture = (getattr(config, "architectures", None) or [""])[0]
    problem = getattr(config, "problem_type", None)
    if problem in ("multi_label_classification", "regression") or _n_outputs(config) < 2:
        what = "several labels at once" if problem == "multi_label_classification" else "a number"
        raise ValueError(
            f"{name}: gives {what} and not one class of several; make probabilities of your own from its outputs and "
            "hand them to ScoreTable.from_arrays."
        )
    if (
        config.model_type in auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES
        and "Classif" not in architecture
    ):
        if not zero_shot:
            raise ValueError(f"{name}: compares images with words; say which with {argument('candidate_labels')}.")
        return "zero-shot image"
    image = auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES
    text = auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES
    if "ImageClassification" in architecture or (config.model_type in image and config.model_type not in text):
        return "image"
    return "zero-shot text" if zero_shot and entailment(config) is not None else "text"


def _n_outputs(config: Any) -> int:
    return len(getattr(config, "id2label", None) or {})


def entailment(config: Any) -> int | None:
    """The output of a natural language inference model that says that the text entails the hypothesis."""
    return next((int(k) for k, v in config.id2label.items() if str(v).casefold().startswith("entail")), None)


# -- loading ---------------------------------------------------------------------------------------------------------


def load(source: Source, trust: Trust, device: Any, dtype: str) -> tuple[Any, Any]:
    """Model and tokenizer or processor; what is in memory already is taken as it is."""
    if source.parts is not None:
        return source.parts
    transformers, torch = need("transformers", "hf", WHO), need("torch", "hf", WHO)
    model_class, processor_class = {
        "text": ("AutoModelForSequenceClassification", "AutoTokenizer"),
        "zero-shot text": ("AutoModelForSequenceClassification", "AutoTokenizer"),
        "image": ("AutoModelForImageClassification", "AutoImageProcessor"),
        "zero-shot image": ("AutoModelForZeroShotImageClassification", "AutoProcessor"),
    }[source.kind]
    if dtype == "auto":  # half precision comes from autocast on the device, or from the checkpoint itself
        wanted: Any = "auto" if device.type == "cuda" else torch.float32
    else:
        wanted = getattr(torch, dtype)
    options = {"trust_remote_code": trust.remote_code, "local_files_only": True}
    with loading(source.name):
        processor = getattr(transformers, processor_class).from_pretrained(source.folder, **options)
        model, report = getattr(transformers, model_class).from_pretrained(
            source.folder,
            dtype=wanted,
            use_safetensors=None if trust.pickle else True,
            output_loading_info=True,
            **options,
        )
    if report["missing_keys"]:
        raise ValueError(
            f"{source.name}: the checkpoint has no weights for {first_few(sorted(report['missing_keys']))}, so its "
            "scores would be random; it is not a trained classifier."
        )
    _complete_padding(model, processor)
    return model.to(device).eval(), processor


def _complete_padding(model: Any, processor: Any) -> None:
    """Decoders often come without a padding token: they get the one that ends a text, as their authors advise."""
    if hasattr(processor, "pad_token") and processor.pad_token is None and processor.eos_token is not None:
        processor.pad_token = processor.eos_token
    if getattr(model.config, "pad_token_id", None) is None and getattr(processor, "pad_token_id", None) is not None:
        model.config.pad_token_id = processor.pad_token_id


def pick_device(asked: Any) -> Any:
    """The device asked for; with "auto" a GPU where there is one."""
    torch = need("torch", "hf", WHO)
    if asked != "auto":
        try:
            device = torch.device(asked)
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError, TypeError) as error:
            raise ValueError(f"{argument('device', asked)} is not there ({str(error).splitlines()[0]}).") from error
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
