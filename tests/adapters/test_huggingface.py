"""Checkpoints that save_pretrained wrote -> scores: right numbers, right columns, and what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the Hugging Face adapter needs torch")
pytest.importorskip("transformers", reason="the Hugging Face adapter needs transformers")

import torch
import transformers

sys.path.insert(0, str(Path(__file__).parent))
from _models import TEXTS, WORDS, bert, tokenizer

from ssme import SSME, ScoreTable
from ssme.adapters.huggingface import collect_scores

LONG = pytest.warns(UserWarning, match="1 text is longer than the model takes and was cut")


def by_hand(folder: Path, texts: list[str]) -> np.ndarray:
    """Probabilities, one text at a time, without padding."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    rows = []
    for text in texts:
        with torch.no_grad():
            rows.append(model(**words(text, truncation=True, max_length=24, return_tensors="pt")).logits[0])
    return torch.stack(rows).double().softmax(-1).numpy()


@pytest.fixture(scope="module")
def table(two: tuple[Path, Path]) -> ScoreTable:
    with LONG:
        return collect_scores(list(two), TEXTS, cache_dir=False, batch_size=3)


def test_scores_are_those_of_the_models_row_by_row_and_class_by_name(table: ScoreTable, two: tuple[Path, Path]) -> None:
    assert table.model_names == ("small", "large") and table.class_names == ("neg", "pos")
    small, large = by_hand(two[0], TEXTS), by_hand(two[1], TEXTS)
    np.testing.assert_allclose(table.scores[:, 0], small, atol=1e-5)
    np.testing.assert_allclose(table.scores[:, 1], large[:, ::-1], atol=1e-5)
    assert np.ptp(small[:, 0]) > 0.05  # the models tell the texts apart, so that a mixed-up row would show


@pytest.mark.parametrize("batch_size", [1, 2, 8, 100])
def test_the_size_of_a_batch_does_not_matter(table: ScoreTable, two: tuple[Path, Path], batch_size: int) -> None:
    with LONG:
        other = collect_scores(list(two), TEXTS, cache_dir=False, batch_size=batch_size)
    np.testing.assert_allclose(other.scores, table.scores, atol=1e-5)


def test_pairs_pipelines_and_paths_give_the_same(table: ScoreTable, two: tuple[Path, Path]) -> None:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(two[0]).train()
    words = transformers.AutoTokenizer.from_pretrained(two[0])
    pipe = transformers.pipeline("text-classification", model=str(two[1]), device="cpu")
    with LONG:
        other = collect_scores({"small": (model, words), "large": pipe}, TEXTS, cache_dir=False, batch_size=3)
    assert model.training and all(m.training for m in model.modules())  # as it came
    assert other.equals(table)


def test_one_model_alone_and_names_of_a_sweep(save: Callable[..., Path], tmp_path: Path) -> None:
    a, b = (save("last", ["no", "yes"], seed, folder=tmp_path / run) for seed, run in enumerate("ab"))
    assert collect_scores(str(a), ["good"], cache_dir=False).model_names == ("last",)
    assert collect_scores([a, b], ["good"], cache_dir=False).model_names == ("a/last", "b/last")
    with pytest.raises(ValueError, match=r"two models are called .*; give them names"):
        collect_scores([a, a], ["good"], cache_dir=False)


def test_frames_datasets_files_and_folders_give_the_same_rows(two: tuple[Path, Path], tmp_path: Path) -> None:
    texts = ["good film", "NA", "not bad", "awful"]
    expected = collect_scores(two[0], texts, cache_dir=False)
    frame = pd.DataFrame(
        {"id": list("wxyz"), "review": texts, "label": ["pos", None, "", "neg"], "source": list("aabb")}
    )
    how: dict[str, Any] = dict(text_column="review", label_column="label", group_columns=["source"], cache_dir=False)
    tables = [collect_scores(two[0], frame, **how)]
    for name in ("rows.csv", "rows.tsv", "rows.parquet", "rows.jsonl"):
        path = tmp_path / name
        if name.endswith("parquet"):
            frame.to_parquet(path)
        elif name.endswith("jsonl"):
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, index=False, sep="\t" if "tsv" in name else ",")
        tables.append(collect_scores(two[0], path, **how))
    for each in tables:
        np.testing.assert_array_equal(each.scores, expected.scores)
        assert each.row_ids.tolist() == list("wxyz") and each.labels.tolist() == [1, -1, -1, 0]
        assert each.groups["source"].tolist() == list("aabb")
    folder = tmp_path / "texts" / "deep"
    folder.mkdir(parents=True)
    for i, text in enumerate(texts):
        (folder / f"{i}.txt").write_text(text, encoding="utf-8")
    found = collect_scores(two[0], folder.parent, group_columns=["folder"], cache_dir=False)
    assert found.row_ids.tolist() == [f"deep/{i}.txt" for i in range(4)] and set(found.groups["folder"]) == {"deep"}
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_datasets_give_their_labels_by_name(two: tuple[Path, Path]) -> None:
    datasets = pytest.importorskip("datasets", reason="the test of datasets.Dataset needs datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["pos", "neg"])})
    data = datasets.Dataset.from_dict({"text": ["good", "bad", "fine"], "label": [0, 1, -1]}, features=features)
    table = collect_scores(list(two), data, label_column="label", cache_dir=False)
    assert table.class_names == ("neg", "pos") and table.labels.tolist() == [1, 0, -1]
    with pytest.raises(TypeError, match="has the splits 'train'; pass one of them"):
        collect_scores(list(two), datasets.DatasetDict(train=data), cache_dir=False)
    with pytest.raises(TypeError, match="is a stream"):
        collect_scores(list(two), data.to_iterable_dataset(), cache_dir=False)


def test_pairs_of_texts(two: tuple[Path, Path]) -> None:
    frame = pd.DataFrame({"text": ["good film", "the plot"], "other": ["bad", "very fine film"]})
    table = collect_scores(two[0], frame, text_pair_column="other", cache_dir=False)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(two[0]).eval()
    words = transformers.AutoTokenizer.from_pretrained(two[0])
    with torch.no_grad():
        own = [model(**words(a, b, return_tensors="pt")).logits[0].softmax(-1) for a, b in frame.to_numpy().tolist()]
    np.testing.assert_allclose(table.scores[:, 0], torch.stack(own).numpy(), atol=1e-5)


def test_mismatched_labels_show_both_lists(two: tuple[Path, Path], save: Callable[..., Path]) -> None:
    loud, bare = save("loud", ["NEG", "POS"], 3), save("bare", ["LABEL_0", "LABEL_1"], 3)
    with pytest.raises(
        ValueError, match=r"'loud' has the labels 'NEG', 'POS', but 'small' has 'neg', 'pos'.*'NEG': 'neg'"
    ):
        collect_scores([two[0], loud], TEXTS, cache_dir=False)
    with pytest.raises(ValueError, match=r"'bare' has the labels 'LABEL_0', 'LABEL_1', but 'small' has 'neg', 'pos'"):
        collect_scores([two[0], bare], TEXTS, cache_dir=False)
    with pytest.raises(ValueError, match=r"'small' has the labels 'neg', 'pos', but class_names is 'a', 'b'"):
        collect_scores(two[0], TEXTS, class_names=["a", "b"], cache_dir=False)
    mapping = {"loud": {"NEG": "neg", "POS": "pos"}, "bare": ["pos", "neg"]}
    table = collect_scores(
        [two[0], loud, bare], ["good"], label_mapping=mapping, class_names=["pos", "neg"], cache_dir=False
    )
    # loud and bare have the same weights, and bare's outputs are said to stand the other way round
    np.testing.assert_allclose(table.scores[:, 1], table.scores[:, 2, ::-1])
    with pytest.raises(ValueError, match=r"label_mapping: loud does not have the label 'NEGG'; did you mean 'NEG'\?"):
        collect_scores([two[0], loud], TEXTS, label_mapping={"loud": {"NEGG": "neg"}}, cache_dir=False)


def test_labels_that_become_one_class_are_added_up(save: Callable[..., Path], two: tuple[Path, Path]) -> None:
    stars = save("stars", ["1", "2", "3", "4", "5"], 4)
    mapping = {"stars": {"1": "neg", "2": "neg", "3": "neg", "4": "pos", "5": "pos"}}
    table = collect_scores([two[0], stars], ["good", "bad"], label_mapping=mapping, cache_dir=False)
    own = by_hand(stars, ["good", "bad"])
    np.testing.assert_allclose(table.scores[:, 1, 1], own[:, 3:].sum(1), atol=1e-6)
    logits = collect_scores(
        [two[0], stars], ["good", "bad"], label_mapping=mapping, cache_dir=False, score_type="logit"
    )
    np.testing.assert_allclose(np.exp(logits.scores), table.scores)


def test_numbers_as_labels_need_an_order(two: tuple[Path, Path]) -> None:
    frame = pd.DataFrame({"text": ["good", "bad"], "y": [1, 0]})
    with pytest.raises(ValueError, match="the labels are numbers.*pass class_names in the order of the numbers"):
        collect_scores(list(two), frame, label_column="y", cache_dir=False)
    table = collect_scores(list(two), frame, label_column="y", class_names=["pos", "neg"], cache_dir=False)
    assert table.labels.tolist() == [1, 0] and table.class_names == ("pos", "neg")


def test_a_wrong_label_is_found_before_the_models_run(two: tuple[Path, Path]) -> None:
    frame = pd.DataFrame({"text": ["good", "bad"], "y": ["pos", "positiv"]})
    with pytest.raises(ValueError, match="'positiv' at row 1"):
        collect_scores(two[0], frame, label_column="y", cache_dir=False, progress=lambda *_: pytest.fail("it ran"))


def test_rows_without_text(two: tuple[Path, Path]) -> None:
    frame = pd.DataFrame({"id": list("abc"), "text": ["good", np.nan, "bad"]})
    with pytest.raises(
        ValueError, match=r"1 row of data \(id 'b'\) without text: fill them in, or pass missing='drop'"
    ):
        collect_scores(two[0], frame, cache_dir=False)
    with pytest.warns(UserWarning, match=r"1 row of data \(id 'b'\) without text: left out"):
        dropped = collect_scores(two[0], frame, missing="drop", cache_dir=False)
    assert dropped.row_ids.tolist() == ["a", "c"]
    empty = collect_scores(two[0], frame, missing="empty", cache_dir=False)
    np.testing.assert_allclose(empty.scores[1], collect_scores(two[0], [""], cache_dir=False).scores[0], atol=1e-6)
    with pytest.raises(TypeError, match=r"'text' holds a float at row 1 \(id '1'\)"):
        collect_scores(two[0], ["good", 3.5], cache_dir=False)
    with pytest.raises(ValueError, match="data has no rows"):
        collect_scores(two[0], [], cache_dir=False)
    with pytest.raises(ValueError, match="1 id is doubled: 'a'"):
        collect_scores(two[0], frame.assign(id=list("aab")).fillna("x"), cache_dir=False)


def test_long_texts_are_cut_where_the_model_ends(two: tuple[Path, Path]) -> None:
    with pytest.warns(
        UserWarning, match=r"small: 1 text is longer than the model takes and was cut \(50.0% of the rows\)"
    ):
        one = collect_scores(two[0], ["good " * 500, "bad"], cache_dir=False)
    with pytest.warns(UserWarning, match="cut"):
        other = collect_scores(two[0], ["good " * 22, "good " * 900], max_length=24, cache_dir=False)
    np.testing.assert_allclose(other.scores[0], one.scores[0], atol=1e-6)
    with pytest.raises(ValueError, match="max_length=99 is more than the 24 tokens that small takes"):
        collect_scores(two[0], ["good"], max_length=99, cache_dir=False)


def test_roberta_counts_positions_from_behind_its_padding(tmp_path: Path) -> None:
    config = transformers.RobertaConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=20, pad_token_id=0,
    )  # fmt: skip
    model = transformers.RobertaForSequenceClassification(config)
    words = tokenizer(tmp_path, max_length=10**30)
    words.model_input_names = ["input_ids", "attention_mask"]
    with pytest.warns(UserWarning, match="cut"):  # 20 tokens would be an index out of range
        assert collect_scores({"roberta": (model, words)}, ["good " * 100], cache_dir=False).n_rows == 1


def test_a_decoder_without_a_padding_token(tmp_path: Path) -> None:
    config = transformers.GPT2Config(
        vocab_size=len(WORDS),
        n_embd=16,
        n_layer=1,
        n_head=2,
        n_positions=32,
        num_labels=3,
        bos_token_id=2,
        eos_token_id=3,
    )
    transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path / "gpt")
    words = tokenizer(tmp_path)
    words = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words.backend_tokenizer, eos_token="[SEP]", unk_token="[UNK]"
    )
    words.save_pretrained(tmp_path / "gpt")
    alone = [
        collect_scores(tmp_path / "gpt", [text], cache_dir=False).scores[0] for text in ("good", "very very bad film")
    ]
    both = collect_scores(tmp_path / "gpt", ["good", "very very bad film"], cache_dir=False).scores
    np.testing.assert_allclose(both, alone, atol=1e-5)


def test_pickled_weights_are_refused(two: tuple[Path, Path], tmp_path: Path, table: ScoreTable) -> None:
    folder = tmp_path / "old"
    shutil.copytree(two[0], folder)
    (folder / "model.safetensors").unlink()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(two[0])
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"its weights are pickled \('pytorch_model.bin'\).*pass allow_pickle=True"):
        collect_scores(folder, TEXTS, cache_dir=False)
    with LONG:
        other = collect_scores(folder, TEXTS, allow_pickle=True, cache_dir=False, batch_size=3)
    np.testing.assert_array_equal(other.scores[:, 0], table.scores[:, 0])


def test_code_of_a_model_is_not_run(two: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "strange"
    shutil.copytree(two[0], folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "strange", "auto_map": {"AutoConfig": "code.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    mark = tmp_path / "ran"
    code = "from transformers import BertConfig\nfrom pathlib import Path\n"
    code += f"Path({str(mark)!r}).touch()\nclass Config(BertConfig):\n    model_type = 'strange'\n"
    (folder / "code.py").write_text(code)
    with pytest.raises(
        ValueError, match="strange: needs code that comes with it, which is not run; pass trust_remote_code=True"
    ):
        collect_scores(folder, TEXTS, cache_dir=False)
    assert not mark.exists()


def test_what_is_no_classifier_is_refused(two: tuple[Path, Path], tmp_path: Path, save: Callable[..., Path]) -> None:
    base = tmp_path / "base"
    shutil.copytree(two[0], base)
    bert(["a", "b"]).bert.save_pretrained(base)
    with pytest.raises(ValueError, match="base: the checkpoint has no weights for 'classifier.bias'.*would be random"):
        collect_scores(base, ["good"], cache_dir=False)
    with pytest.raises(ValueError, match="gives several labels at once"):
        collect_scores(save("tags", ["a", "b"], problem_type="multi_label_classification"), ["good"], cache_dir=False)
    with pytest.raises(ValueError, match="gives a number"):
        collect_scores(save("rank", ["score"]), ["good"], cache_dir=False)
    with pytest.raises(FileNotFoundError, match=r"\./nowhere: there is no such folder"):
        collect_scores("./nowhere", ["good"], cache_dir=False)
    with pytest.raises(ValueError, match="nobody/nothing: there is no such folder here, and the hub gave nothing"):
        collect_scores("nobody/nothing", ["good"], cache_dir=False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="has no config.json"):
        collect_scores(tmp_path / "empty", ["good"], cache_dir=False)
    (tmp_path / "empty" / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match="is an adapter"):
        collect_scores(tmp_path / "empty", ["good"], cache_dir=False)
    (base / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="base: "):
        collect_scores(base, ["good"], cache_dir=False)
    with pytest.raises(TypeError, match="must be an id, a path, a pipeline or a pair"):
        collect_scores([object()], ["good"], cache_dir=False)


def test_scores_that_are_not_finite_name_row_and_model(tmp_path: Path) -> None:
    model = bert(["a", "b"])
    with torch.no_grad():
        model.classifier.bias[:] = float("nan")
    with pytest.raises(ValueError, match=r"broken gives scores that are not finite \(row '0'\)"):
        collect_scores({"broken": (model, tokenizer(tmp_path))}, ["good"], cache_dir=False)


def test_a_model_of_the_hub_is_known_by_its_commit(
    two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "hub" / "models--someone--small"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text(commit)
    shutil.copytree(two[0], repo / "snapshots" / commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    cache = tmp_path / "cache"
    table = collect_scores("someone/small", ["good", "bad"], cache_dir=cache)
    assert table.model_names == ("small",)
    key = json.loads(next(cache.glob("small-*/key.json")).read_text())
    assert key["model"] == f"someone/small@{commit}"
    local = collect_scores(two[0], ["good", "bad"], cache_dir=False)
    np.testing.assert_array_equal(table.scores, local.scores)


def test_zero_shot_beside_a_trained_model(save: Callable[..., Path], two: tuple[Path, Path]) -> None:
    nli = save("nli", ["contradiction", "neutral", "entailment"], 5)
    topics = save("topics", ["world", "sport"], 6)
    texts = ["good film", "the sport", "very bad plot"]
    table = collect_scores(
        [topics, nli], texts, candidate_labels=["sport", "world"], class_names=["sport", "world"], cache_dir=False
    )
    pipe = transformers.pipeline("zero-shot-classification", model=str(nli), device="cpu")
    for row, found in enumerate(pipe(texts, ["sport", "world"])):
        expected = dict(zip(found["labels"], found["scores"], strict=True))
        np.testing.assert_allclose(table.scores[row, 1], [expected["sport"], expected["world"]], atol=1e-5)
    worded = collect_scores(
        nli,
        texts,
        candidate_labels={"A": "sport", "B": "world"},
        hypothesis_template="this is {}",
        cache_dir=False,
        batch_size=2,
    )
    assert worded.class_names == ("A", "B") and not np.allclose(worded.scores[:, 0], table.scores[:, 1])
    with pytest.raises(ValueError, match="must hold {}"):
        collect_scores(nli, texts, candidate_labels=["a", "b"], hypothesis_template="this", cache_dir=False)


def test_images_from_a_folder_files_arrays_and_a_dataset(vit: Path, pictures: Path) -> None:
    from PIL import Image

    table = collect_scores(vit, pictures, group_columns=["folder"], cache_dir=False)
    paths = [pictures / name for name in table.row_ids]
    assert table.class_names == ("cat", "dog", "owl") and set(table.groups["folder"]) == {"site0", "site1"}
    processor = transformers.AutoImageProcessor.from_pretrained(vit)
    model = transformers.AutoModelForImageClassification.from_pretrained(vit).eval()
    with torch.no_grad():
        logits = [model(**processor(Image.open(path), return_tensors="pt")).logits[0] for path in paths]
    np.testing.assert_allclose(table.scores[:, 0], torch.stack(logits).softmax(-1).numpy(), atol=1e-5)
    assert np.ptp(table.scores[:, 0, 0]) > 1e-3
    arrays = [np.asarray(Image.open(path)) for path in paths]
    for data in (
        paths,
        [str(p) for p in paths],
        arrays,
        [Image.open(p) for p in paths],
        pd.DataFrame({"image": paths}),
    ):
        np.testing.assert_array_equal(collect_scores(vit, data, cache_dir=False).scores, table.scores)
    datasets = pytest.importorskip("datasets", reason="the test of datasets.Dataset needs datasets")
    data = datasets.Dataset.from_dict({"image": [str(p) for p in paths]}).cast_column("image", datasets.Image())
    np.testing.assert_array_equal(collect_scores(vit, data, cache_dir=False).scores, table.scores)
    pipe = transformers.pipeline("image-classification", model=str(vit), device="cpu")
    np.testing.assert_array_equal(collect_scores(pipe, paths, cache_dir=False).scores, table.scores)


def test_broken_images_name_their_row(vit: Path, pictures: Path, tmp_path: Path, two: tuple[Path, Path]) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    frame = pd.DataFrame({"id": ["fine", "broken"], "image": [next(pictures.rglob("*.png")), bad]})
    with pytest.raises(ValueError, match="the image of the row 'broken' cannot be read"):
        collect_scores(vit, frame, cache_dir=False)
    with pytest.raises(ValueError, match="'vit' classifies images, 'small' texts; collect their scores apart"):
        collect_scores([vit, two[0]], frame, cache_dir=False)
    with pytest.raises(ValueError, match="holds no image files"):
        collect_scores(vit, two[0], cache_dir=False)


def test_clip(tmp_path: Path, pictures: Path) -> None:
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.CLIPConfig(
        text_config={
            **small,
            "vocab_size": len(WORDS),
            "max_position_embeddings": 24,
            "eos_token_id": 3,
            "pad_token_id": 0,
        },
        vision_config={**small, "image_size": 16, "patch_size": 8},
        projection_dim=16,
    )
    words, images = (
        tokenizer(tmp_path),
        transformers.CLIPImageProcessor(size={"height": 16, "width": 16}, do_center_crop=False),
    )
    model = transformers.CLIPModel(config).eval()
    pipe = transformers.pipeline(
        "zero-shot-image-classification", model=model, tokenizer=words, image_processor=images, device="cpu"
    )
    paths = sorted(pictures.rglob("*.png"))
    labels = ["good film", "bad plot"]
    table = collect_scores({"clip": pipe}, paths, candidate_labels=labels, cache_dir=False)
    for row, path in enumerate(paths):
        expected = {each["label"]: each["score"] for each in pipe(str(path), candidate_labels=labels)}
        np.testing.assert_allclose(table.scores[row, 0], [expected[name] for name in labels], atol=1e-5)
    with pytest.raises(ValueError, match="compares images with words; say which with candidate_labels"):
        collect_scores({"clip": pipe}, paths, cache_dir=False)


def test_half_precision_is_near(two: tuple[Path, Path]) -> None:
    full = collect_scores(list(two), ["good film", "bad"], cache_dir=False)
    half = collect_scores(list(two), ["good film", "bad"], dtype="bfloat16", cache_dir=False)
    np.testing.assert_allclose(half.scores, full.scores, atol=0.05)
    assert not np.array_equal(half.scores, full.scores)


def test_wrong_settings(two: tuple[Path, Path]) -> None:
    for options, match in (
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"max_length": True}, "max_length must be a whole number"),
        ({"dtype": "int8"}, "dtype must be one of"),
        ({"score_type": "margin"}, "score_type must be"),
        ({"device": "nowhere"}, "device='nowhere' is not there"),
        ({"missing": "keep"}, "missing is 'keep'"),
        ({"text_column": "body"}, "data has no column 'body'"),
        ({"label_mapping": {"other": {"a": "b"}}}, "there is no model 'other'"),
        ({"label_mapping": {"small": ["a"]}}, r"label_mapping\['small'\] has 1 classes, but the model has 2"),
    ):
        with pytest.raises(ValueError, match=match):
            collect_scores(two[0], ["good"], cache_dir=False, **options)
    with pytest.raises(TypeError, match="candidate_labels must be a list"):
        collect_scores(two[0], ["good"], candidate_labels="a", cache_dir=False)
    with pytest.raises(TypeError, match="data must be a list"):
        collect_scores(two[0], {"text": ["good"]}, cache_dir=False)
    with pytest.raises(ValueError, match="name the column of the texts with text_column; there is 'a', 'b'"):
        collect_scores(two[0], pd.DataFrame({"a": ["x"], "b": ["y"]}), cache_dir=False)


def test_the_table_goes_into_the_estimator(two: tuple[Path, Path]) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS[5:], 6)) for _ in range(60)]
    labels = ["pos" if "good" in text else "neg" if i < 25 else None for i, text in enumerate(texts)]
    frame = pd.DataFrame({"text": texts, "label": labels})
    table = collect_scores(list(two), frame, label_column="label", cache_dir=False)
    found = SSME(random_state=0).fit(table).estimate(["accuracy"])
    assert found["model"].tolist() == ["small", "large"] and found["estimate"].between(0, 1).all()
