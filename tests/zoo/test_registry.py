"""Names, options and their errors."""

from __future__ import annotations

import doctest
import inspect
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import N_CLASSES, TinyNet, Views, make_batch

from ssl_zoo import registry
from ssl_zoo.algorithms.base import Algorithm, EpochContext, StepContext, StepResult, forward
from ssl_zoo.losses import cross_entropy
from ssl_zoo.registry import algorithm_class, create_algorithm, list_algorithms, register, unregister

TWENTY = [
    "Supervised", "PseudoLabel", "PiModel", "MeanTeacher", "ICT", "VAT", "MixMatch", "UDA", "FixMatch", "FlexMatch",
    "FreeMatch", "SoftMatch", "UASD", "CAFA", "MTCF", "OpenMatch", "Fix_A_Step", "DS3L", "ORCA", "SORL",
]  # fmt: skip


def test_the_twenty_are_there() -> None:
    assert len(list_algorithms()) == 20
    assert {algorithm_class(name).name for name in TWENTY} == set(list_algorithms())
    assert list_algorithms(open_world=True) == ["orca", "sorl"] and len(list_algorithms(open_world=False)) == 18


@pytest.mark.parametrize("name", list_algorithms())
def test_contract_of_each_class(name: str) -> None:
    cls = algorithm_class(name)
    doc = inspect.getdoc(cls) or ""
    assert "``" in doc, "the docstring has the loss as a formula"
    assert name == "supervised" or ("References" in doc and "Defaults" in doc)
    for key in cls.option_defaults():
        assert key == "mu" or key in doc, f"{key} is not in the docstring"
    assert cls.bn_policy in ("joint", "labeled") and cls.predict_with in ("ema", "student")
    assert all(need.split("_")[0] in "lu" for need in cls.needs)
    assert cls.uses_unlabeled == any(need.startswith("u_") for need in cls.needs)
    algorithm = create_algorithm(name, n_classes=3, n_unlabeled=10)
    assert algorithm.options() == cls.option_defaults() and algorithm.mu >= 1 and name in repr(type(algorithm).name)
    lines = len(inspect.getsource(cls).splitlines())
    assert lines <= 150, "one short class a method"


def test_defaults_of_the_sources() -> None:
    def options(name: str) -> dict[str, object]:
        return algorithm_class(name).option_defaults()

    assert options("pseudolabel") | {"tau": 0.95, "lam": 1.0, "ramp": 0.4, "mu": 1} == options("pseudolabel")
    assert options("uda") | {"temperature": 0.4, "tau": 0.8, "mu": 7} == options("uda")
    assert options("ict") | {"alpha": 0.5, "weight": 100.0, "ramp": 1 / 64} == options("ict")
    assert options("vat") | {"xi": 1e-6, "eps": 6.0, "entropy_weight": 0.06} == options("vat")
    assert options("openmatch")["mu"] == 2 and options("fixmatch")["mu"] == 7 and options("cafa")["eps"] == 0.0014
    assert algorithm_class("orca").base_lr == 0.1 and algorithm_class("fixmatch").base_lr == 0.03


def test_unknown_names_and_options_are_errors_that_help() -> None:
    with pytest.raises(ValueError, match="no algorithm 'fixmach'; did you mean 'fixmatch'"):
        create_algorithm("fixmach", n_classes=3)
    with pytest.raises(ValueError, match="list_algorithms"):
        create_algorithm("qqqqqq", n_classes=3)
    with pytest.raises(ValueError, match=r"did you mean 'tau'\?\); its options are: lam, mu, passes, tau"):
        create_algorithm("fixmatch", n_classes=3, taus=0.9)
    with pytest.raises(ValueError, match="flexmatch remembers each unlabeled sample: give n_unlabeled"):
        create_algorithm("flexmatch", n_classes=3)
    with pytest.raises(ValueError, match="n_classes is 1"):
        create_algorithm("fixmatch", n_classes=1)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("fixmatch", {"tau": 1.5}, r"tau is 1.5; it must be in \[0, 1\]"),
        ("fixmatch", {"tau": "high"}, "tau is 'high'; it must be a number"),
        ("fixmatch", {"tau": float("nan")}, "tau is nan"),
        ("fixmatch", {"lam": -1}, "lam is -1; it must be 0 or more"),
        ("fixmatch", {"mu": 1.5}, "mu is 1.5; it must be a whole number"),
        ("fixmatch", {"mu": 0}, "mu is 0; it must be above 0"),
        ("fixmatch", {"mu": True}, "mu is True; it must be a whole number"),
        ("fixmatch", {"passes": "two"}, "passes is 'two'; it must be one of joint, split"),
        ("uda", {"temperature": 0}, "temperature is 0; it must be above 0"),
        ("uda", {"tsa": "cosine"}, "none, linear, log, exp"),
        ("flexmatch", {"warmup": 1}, "warmup is 1; it must be true or false"),
        ("uda", {"tsa": 1}, "none, linear, log, exp"),
        ("orca", {"n_novel": 2.5}, "n_novel is 2.5; it must be a whole number"),
    ],
)
def test_wrong_values_are_errors(name: str, options: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        create_algorithm(name, n_classes=3, n_unlabeled=4, **options)


def test_whole_numbers_serve_as_numbers() -> None:
    assert create_algorithm("fixmatch", n_classes=3, lam=2).options()["lam"] == 2.0
    assert create_algorithm("orca", n_classes=3).n_outputs == 6
    assert create_algorithm("orca", n_classes=3, n_novel=1).n_outputs == 4


def test_an_algorithm_of_ones_own() -> None:
    with pytest.raises(ValueError, match="'Fix-Match' is taken by ssl_zoo.algorithms.fixmatch.FixMatch"):

        @register("Fix-Match")
        class Rival(Algorithm):
            """Takes a name that is not free."""

    @register("own")
    class Own(Algorithm):
        """CE and nothing else."""

        needs = ("l_weak",)
        uses_unlabeled = False
        shift: float = -0.5
        word: str = "a"

        def compute(self, ctx: StepContext) -> StepResult:
            (labeled,) = forward(ctx.model, *self.views(ctx))
            loss = cross_entropy(labeled.logits, ctx.batch.y_l).mean() + self.shift
            return StepResult(loss=loss, loss_l=loss, loss_u=loss.new_zeros(()))

    try:
        assert "own" in list_algorithms()
        assert create_algorithm("OWN", n_classes=3, shift=-2).options() == {"mu": 7, "shift": -2.0, "word": "a"}
        with pytest.raises(ValueError, match="word is 3; it must be a word"):
            create_algorithm("own", n_classes=3, word=3)
        net = TinyNet()
        algorithm = create_algorithm("own", n_classes=N_CLASSES)
        context = StepContext(model=net, teacher=None, augment=Views(), batch=make_batch())  # type: ignore[arg-type]
        before = net.head.weight.detach().clone()
        result = algorithm.step(context, torch.optim.SGD(net.parameters(), lr=0.1))
        assert result.loss.grad_fn is None and not torch.equal(before, net.head.weight)
    finally:
        unregister("own")
    assert "own" not in list_algorithms()
    with pytest.raises(NotImplementedError, match="Algorithm has no compute"):
        Algorithm(n_classes=2).compute(context)


def test_what_the_base_offers() -> None:
    algorithm, net = create_algorithm("fixmatch", n_classes=N_CLASSES, tau=0.9), TinyNet().eval()
    x = make_batch().x_l
    assert torch.equal(algorithm.predict(net, x), net(x)) and algorithm.n_outputs == N_CLASSES
    assert "tau=0.9" in repr(algorithm)
    assert create_algorithm("orca", n_classes=3, n_novel=None).n_outputs == 6
    assert algorithm.epoch_end(EpochContext(model=net, augment=Views())) is None  # type: ignore[arg-type,func-returns-value]


def test_the_example_of_the_docstring() -> None:
    result = doctest.testmod(registry, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0 and result.attempted >= 8
