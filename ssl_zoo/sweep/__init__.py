"""Many runs as one: algorithms x contamination factors x values x seeds, every run in a folder named by its content.

`plan_sweep` says which runs these are, `run_sweep` trains what is not there yet, `sweep_results`, `sweep_diagnostics`
and `load_scores` read what is there.
"""

from ssl_zoo.sweep._config import FactorConfig, SweepConfig, list_presets, load_sweep
from ssl_zoo.sweep._plan import PlannedRun, plan_sweep
from ssl_zoo.sweep._results import load_scores, sweep_diagnostics, sweep_results
from ssl_zoo.sweep._run import run_sweep

__all__ = [
    "FactorConfig",
    "PlannedRun",
    "SweepConfig",
    "list_presets",
    "load_scores",
    "load_sweep",
    "plan_sweep",
    "run_sweep",
    "sweep_diagnostics",
    "sweep_results",
]
