"""Files of a checkpoint: from the hub or a folder, what may be among them, and what they are known by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssme._validation import argument, first_few
from ssme.adapters._extras import need

WHO = "the Hugging Face adapter"
PLAIN_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.safetensors"]
PICKLES = ("pytorch_model", "adapter_model")  # names that pickled weights go by


@dataclass(frozen=True)
class Trust:
    """What may be loaded beside safetensors and the code of transformers."""

    pickle: bool = False
    remote_code: bool = False


def checkpoint_folder(spec: str, trust: Trust, revision: str | None) -> tuple[Path, str]:
    """Folder of a checkpoint and what its state is known by: the commit on the hub, or the hash of local files."""
    path = Path(spec).expanduser()
    if path.is_dir():
        _check_files(spec, path, trust)
        return path, _fingerprint_of_files(path)
    model_id, _, own = spec.partition("@")
    if path.exists() or spec.startswith((".", "/", "~")) or model_id.count("/") > 1 or not model_id.strip():
        raise FileNotFoundError(f"{spec}: there is no such folder; name the folder that holds config.json, or an id.")
    folder = _download(model_id, own or revision, trust)
    _check_files(spec, folder, trust)
    return folder, f"{model_id}@{folder.name}"


def _download(model_id: str, revision: str | None, trust: Trust) -> Path:
    """The snapshot of a model on the hub, or in its cache; pickles and code only where they may be used."""
    hub = need("huggingface_hub", "hf", WHO)
    where = {"repo_id": model_id, "revision": revision, "ignore_patterns": ["*/*"]}  # other formats lie in subfolders
    wanted = [*PLAIN_FILES, *(["*.py"] if trust.remote_code else [])]
    try:
        folder = Path(hub.snapshot_download(allow_patterns=wanted, **where))
        if trust.pickle and not any(folder.glob("*.safetensors")):
            folder = Path(hub.snapshot_download(allow_patterns=[*wanted, "pytorch_model*.bin"], **where))
    except (
        hub.errors.HfHubHTTPError,
        hub.errors.HFValidationError,
        hub.errors.LocalEntryNotFoundError,
        OSError,
    ) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{model_id}: there is no such folder here, and the hub gave nothing ({reason[:300]}); correct the name, "
            "or download the model where there is a network."
        ) from error
    return folder


def _check_files(spec: str, folder: Path, trust: Trust) -> None:
    """Refuse what lacks a configuration, and pickled weights that nobody allowed."""
    names = [p.name for p in folder.iterdir() if p.is_file()]
    if "config.json" not in names:
        if "adapter_config.json" in names:
            raise ValueError(f"{spec}: is an adapter (PEFT), not a whole model; merge it into its base and save that.")
        raise FileNotFoundError(f"{spec}: has no config.json; name the folder that save_pretrained wrote.")
    pickles = sorted(n for n in names if n.startswith(PICKLES) and n.endswith((".bin", ".pt", ".pth")))
    if not any(n.endswith(".safetensors") for n in names) and not trust.pickle:
        found = f"its weights are pickled ({first_few(pickles)})" if pickles else "it has no weights in safetensors"
        raise ValueError(
            f"{spec}: {found}, and only safetensors are loaded, since a pickle can run code; save it again with "
            f"save_pretrained, or pass {argument('allow_pickle=True')} where you trust who made it."
        )


def read_config(name: str, folder: Path, trust: Trust) -> Any:
    """The configuration; code that comes with a model runs only where it is asked for."""
    transformers = need("transformers", "hf", WHO)
    try:
        plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        known = plain.get("model_type") in transformers.models.auto.configuration_auto.CONFIG_MAPPING
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{folder / 'config.json'}: is not a configuration of a model ({error}).") from error
    if "auto_map" in plain and not known and not trust.remote_code:
        raise ValueError(
            f"{name}: needs code that comes with it, which is not run; pass {argument('trust_remote_code=True')} "
            "where you have read that code and trust it."
        )
    with loading(name):
        return transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=trust.remote_code, local_files_only=True
        )


def _fingerprint_of_files(folder: Path) -> str:
    """SHA-256 of the files that make the model; what training left beside them does not count."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        used = path.match("*.py") or any(path.match(pattern) for pattern in PLAIN_FILES)
        if used or path.name.startswith(PICKLES):
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            with open(path, "rb") as file:
                while block := file.read(1 << 22):
                    digest.update(block)
    return digest.hexdigest()


@contextmanager
def loading(name: str) -> Iterator[None]:
    """What transformers complains of in one sentence with the name of the model; its bars and reports are silent."""
    transformers = need("transformers", "hf", WHO)
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(log.CRITICAL)
    log.disable_progress_bar()
    try:
        yield
    except MemoryError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{name}: transformers cannot load it: {reason[:500]}") from error
    except Exception as error:
        if type(error).__module__.startswith(("safetensors", "tokenizers")) or type(error) is Exception:
            raise ValueError(f"{name}: a file of it is damaged ({' '.join(str(error).split())[:500]}).") from error
        raise
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()
