"""Modules and a loader -> scores."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the torch adapter needs torch")

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ssme.adapters.torch as adapter
from ssme.adapters.torch import collect_scores


@pytest.fixture
def nets() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"a": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)), "b": nn.Linear(4, 3)}


X = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 2, 1, -1, -1, -1, -1, -1, -1, 0])


def test_scores_labels_and_modes(nets: dict[str, nn.Module]) -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=4)
    table = collect_scores(
        nets, loader, class_names=["x", "y", "z"], labels="batch", row_ids=list("abcdefghij"), groups=[0, 1] * 5
    )
    assert nets["a"].training and nets["a"][1].num_batches_tracked == 0  # neither trained nor left in another mode
    with torch.no_grad():
        own = [net.eval()(X).double().softmax(-1).numpy() for net in nets.values()]
    np.testing.assert_allclose(table.scores, np.stack(own, 1), atol=1e-6)
    assert table.labels.tolist() == Y.tolist() and table.row_ids[2] == "c" and table.groups["group"][1] == "1"


def test_outputs_are_matched_by_name(nets: dict[str, nn.Module]) -> None:
    names = {"a": ["x", "y", "z"], "b": ["z", "x", "y"]}
    table = collect_scores(nets, [X], class_names=names)
    plain = collect_scores(nets, [X])
    np.testing.assert_array_equal(table.scores[:, 1], plain.scores[:, 1][:, [1, 2, 0]])
    with pytest.raises(ValueError, match="'b' has the labels 'z', 'x', 'w', but 'a' has 'x', 'y', 'z'"):
        collect_scores(nets, [X], class_names={**names, "b": ["z", "x", "w"]})
    with pytest.raises(ValueError, match="does not name the outputs of 'b'"):
        collect_scores(nets, [X], class_names={"a": ["x", "y", "z"]})
    with pytest.raises(ValueError, match="a has 3 outputs, but class_names names 2"):
        collect_scores(nets, [X], class_names=["x", "y"])


def test_kinds_of_outputs(nets: dict[str, nn.Module]) -> None:
    logits = collect_scores(nets["b"], [X]).scores
    for output, change in (("probability", lambda z: z.softmax(-1)), ("log_probability", lambda z: z.log_softmax(-1))):
        found = collect_scores(nets["b"], [X], output=output, forward=lambda net, x, f=change: f(net(x)))
        np.testing.assert_allclose(found.scores, logits, atol=1e-6)
    one = nn.Linear(4, 1)
    odds = collect_scores(one, [X, X]).scores
    np.testing.assert_allclose(odds[:10, 0, 1], one(X).sigmoid()[:, 0].detach().numpy(), atol=1e-6)
    found = collect_scores(one, [X, X], output="probability", forward=lambda net, x: net(x).sigmoid()[:, 0])
    np.testing.assert_allclose(found.scores, odds, atol=1e-6)


def test_batches_that_are_dicts(nets: dict[str, nn.Module]) -> None:
    batch = {"input": X, "labels": Y}
    assert collect_scores(nets["b"], [batch], labels="batch").equals(
        collect_scores(nets["b"], [(X, Y)], labels="batch")
    )


def test_what_is_refused(nets: dict[str, nn.Module]) -> None:
    data = TensorDataset(X, Y)
    cases: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: collect_scores(nets, DataLoader(data, shuffle=True)), "loader shuffles"),
        (lambda: collect_scores(nets, DataLoader(data, batch_size=3, drop_last=True)), "leaves out its last rows"),
        (lambda: collect_scores(nets, []), "no batches"),
        (lambda: collect_scores({}, [X]), "is empty"),
        (lambda: collect_scores(nets, [X], labels="batch"), "a batch has no labels"),
        (lambda: collect_scores(nets, [X], labels="them"), "an array or 'batch'"),
        (lambda: collect_scores(nets, [X], output="margin"), "output must be"),
        (lambda: collect_scores(nets, [X], output="probability"), "are no probabilities"),
        (lambda: collect_scores(nets, [X * float("nan")]), "not finite"),
        (lambda: collect_scores(nn.Identity(), [X[None]]), "must be \\(batch, classes\\)"),
    )
    for call, match in cases:
        with pytest.raises(ValueError, match=match):
            call()
    for bad, match in (({"a": 3}, "must be a torch module"), ([nets["b"], "x"], "must be a torch module")):
        with pytest.raises(TypeError, match=match):
            collect_scores(bad, [X])
    with pytest.raises(TypeError, match="iterable of batches"):
        collect_scores(nets, 3)
    with pytest.raises(TypeError, match="gives a tuple and no tensor"):
        collect_scores(nets["b"], [X], forward=lambda net, x: (net(x),))


def run_skipped(text: str, names: dict[str, object]) -> None:
    """Run the examples that are skipped where torch is absent."""
    test = doctest.DocTestParser().get_doctest(text, names, "example", None, 0)
    for example in test.examples:
        example.options.pop(doctest.SKIP, None)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert test.examples and doctest.DocTestRunner(optionflags=flags).run(test).failed == 0


def test_the_example_of_the_docstring() -> None:
    run_skipped(collect_scores.__doc__ or "", dict(vars(adapter)))


def test_the_example_of_the_hugging_face_adapter(
    save: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason="the Hugging Face adapter needs transformers")
    from ssme.adapters import huggingface

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSME_CACHE", str(tmp_path / "cache"))
    for seed, name in enumerate(("bert", "tiny")):
        save(name, ["no", "yes"], seed, folder=tmp_path / "runs")
    Path("reviews.csv").write_text("text\n" + "good film\n" * 6)
    run_skipped(huggingface.collect_scores.__doc__ or "", dict(vars(huggingface)))
