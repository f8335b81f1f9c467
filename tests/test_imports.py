"""Who may import whom, held on the syntax trees, and what `import ssme` must not drag in."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ssme"

# From low to high. A module imports from lower floors only; within a floor only where it is said below.
FLOORS: dict[str, int] = {
    **dict.fromkeys(
        ["_validation", "_atomic", "transforms", "metrics", "bandwidth", "kernel_sums", "results", "_format"], 0
    ),
    **dict.fromkeys(["_table_io", "score_table", "_em", "consensus", "posterior", "intervals"], 1),
    **dict.fromkeys(
        [
            *("_fitting", "_mixture", "_metric_bias", "_tables", "_labeled_only"),
            *("decisions", "label_design", "prevalence", "shift", "summaries", "curves"),
        ],
        2,
    ),
    "_questions": 3,
    "estimator": 4,
    **dict.fromkeys(["baselines", "partitioned", "report", "inspection"], 5),
    **dict.fromkeys(["_console", "_options", "adapters", "plots"], 5),
    **dict.fromkeys(["study", "html_report", "_doctor", "labeling_app"], 6),
    **dict.fromkeys(["demo", "_collect_command", "_study_command", "_question_commands", "_report_command", "cli"], 7),
    **dict.fromkeys(["_doctor_command", "_app_command"], 7),
    "__main__": 8,
}
APART = {0, 2}  # on these floors modules do not import each other
ARRAYS_ONLY = {name for name, floor in FLOORS.items() if floor == 0} - {"_format"}
# Imported inside functions only.
LATE = {"torch", "matplotlib", "KDEpy", "pyarrow", "transformers", "datasets", "plotly", "jinja2", "streamlit"}
STANDARD = set(sys.stdlib_module_names)


def module_name(path: Path) -> str:
    """`ssme/metrics/_linear.py` -> `metrics`; `ssme/cli.py` -> `cli`: a package counts as one module."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def floor(name: str) -> int:
    assert name in FLOORS, f"ssme/{name} stands on no floor: give it one in FLOORS and in docs/architecture.md"
    return FLOORS[name]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(tree: ast.AST, package: str, inside: bool = False) -> Iterator[tuple[str, bool, int]]:
    """Every import as (dotted name, inside a function, line); what only type checkers see is skipped."""
    for node in ast.iter_child_nodes(tree):
        if is_type_checking(node):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, inside, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            name = ".".join([*parents, *([node.module] if node.module else [])])
            named = [f"{name}.{alias.name}" for alias in node.names] if name == "ssme" else [name]
            yield from ((each, inside, node.lineno) for each in named)
        else:
            function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from imports(node, package, inside or function)


def parsed(path: Path) -> list[tuple[str, bool, int]]:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    return list(imports(ast.parse(path.read_text(encoding="utf-8")), package))


def own_names(path: Path) -> list[tuple[str, int]]:
    """The modules of ssme that a file imports, wherever in the file."""
    return [(name.split(".")[1], line) for name, _, line in parsed(path) if name.startswith("ssme.")]


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_imports_go_downwards(path: Path) -> None:
    me = module_name(path)
    for other, line in own_names(path):
        if other == me or other.startswith("__"):
            continue
        allowed = floor(other) < floor(me) or (floor(other) == floor(me) and floor(me) not in APART)
        assert allowed, f"{path.name}:{line}: {me} (floor {floor(me)}) imports {other} (floor {floor(other)})"


def test_no_circles() -> None:
    graph = {module_name(p): set() for p in modules()}
    for path in modules():
        graph[module_name(path)] |= {o for o, _ in own_names(path) if o != module_name(path) and o in graph}
    while graph:
        free = {name for name, needs in graph.items() if not needs & set(graph)}
        assert free, f"these modules import each other in a circle: {sorted(graph)}"
        graph = {name: needs for name, needs in graph.items() if name not in free}


@pytest.mark.parametrize("path", [p for p in modules() if module_name(p) in ARRAYS_ONLY], ids=lambda p: p.stem)
def test_array_modules_need_numpy_and_scipy_only(path: Path) -> None:
    me = module_name(path)
    for name, inside, line in parsed(path):
        top = name.split(".")[0]
        lazily = inside and (top in {"KDEpy", "torch"} or (top == "pandas" and me == "_validation"))
        own = name.startswith(f"ssme.{me}")
        assert top in {"numpy", "scipy", *STANDARD} or own or lazily, f"{path.name}:{line}: imports {name}"


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_heavy_packages_only_inside_functions(path: Path) -> None:
    for name, inside, line in parsed(path):
        assert inside or name.split(".")[0] not in LATE, f"{path.name}:{line}: {name} belongs inside a function"


def test_report_reads_results_only_and_adapters_score_tables_only() -> None:
    for path in modules():
        me = module_name(path)
        allowed = {
            "report": {"report", "results", "_format"},
            "plots": {"plots", "results", "curves", "_format"},
            "adapters": {"adapters", "score_table", "_validation", "_atomic"},
        }
        if me in allowed:
            others = {name for name, _ in own_names(path)}
            assert others <= allowed[me], f"{path.name} imports {sorted(others - allowed[me])}"


def test_ssme_does_not_know_its_neighbours() -> None:
    for path in [PACKAGE / "__init__.py", *modules()]:
        for name, _, line in parsed(path):
            assert name.split(".")[0] not in {"ssl_zoo", "benchmarks", "tests"}, f"{path.name}:{line}: imports {name}"


# A sweep reads the scores of its runs, and its workers end as those of a study do.
USED_BY_SWEEP = {"ssme.score_table", "ssme.study._workers"}
# Curves are estimates of ssme: they use its public face.
USED_BY_CURVES = {"ssme.SSME", "ssme.ScoreTable", "ssme.score_table", "ssme.decisions", "ssme.metrics", "ssme.results"}

# The demo shows what ssme makes of a sweep: its tables, plots and page.
USED_BY_DEMO = {"ssme._format", "ssme.plots", "ssme.html_report"}


def test_neighbours_import_the_score_table_only() -> None:
    for path in sorted((ROOT / "ssl_zoo").rglob("*.py")):
        for name, _, line in parsed(path):
            if name.split(".")[0] == "ssme":
                allowed = path.name == "scores.py" and name in {"ssme.ScoreTable", "ssme.score_table"}
                allowed |= path.parent.name == "sweep" and name in USED_BY_SWEEP
                allowed |= path.parent.name == "curves" and name in USED_BY_CURVES
                allowed |= path.name == "_demo_command.py" and name in USED_BY_DEMO
                assert allowed, f"{path.name}:{line}: imports {name}"
            assert name.split(".")[0] != "benchmarks", f"{path.name}:{line}: imports {name}"


def run_python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_ssme_is_light() -> None:
    heavy = ("torch", "matplotlib", "KDEpy", "pyarrow", "transformers")
    code = f"import sys, ssme; print([m for m in {heavy} if m in sys.modules])"
    assert run_python(code) == "[]"


def test_using_the_estimator_leaves_torch_and_matplotlib_out() -> None:
    code = (
        "import sys, numpy as np, warnings; warnings.simplefilter('ignore'); from ssme import SSME\n"
        "p = np.random.default_rng(0).random((60, 2)); y = np.r_[np.arange(20) % 2, np.full(40, -1)]\n"
        "SSME(random_state=0).fit(p, y).estimate(('accuracy',))\n"
        "print([m for m in ('torch', 'matplotlib', 'transformers') if m in sys.modules])"
    )
    assert run_python(code) == "[]"


def test_import_is_quick_because_nothing_heavy_comes_along() -> None:
    code = "import sys, ssme; print([m for m in ('numpy', 'pandas', 'scipy', 'sklearn', 'torch') if m in sys.modules])"
    assert run_python(code) == "[]"


def test_the_walker_sees_every_kind_of_import() -> None:
    code = (
        "from __future__ import annotations\nimport torch.nn as nn\n"
        "from ssme import report\nfrom ssme._em import run_em\n"
        "from ._specs import MetricSpec\nfrom . import other\n"
        "if TYPE_CHECKING:\n    import pandas\n"
        "try:\n    import scipy\nexcept ImportError:\n    pass\ndef f():\n    import KDEpy\n"
    )
    found = {name: inside for name, inside, _ in imports(ast.parse(code), "ssme.metrics")}
    outside = {"__future__", "torch.nn", "ssme.report", "ssme._em", "ssme.metrics._specs", "ssme.metrics", "scipy"}
    assert found == {**dict.fromkeys(outside, False), "KDEpy": True}
