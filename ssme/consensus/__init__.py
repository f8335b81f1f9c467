"""Labels from the consensus of the models, recalibrated by the few labels there are.

One module of pure functions on arrays for each step:

- `_pool`: the scores of M models become one log score per class.
- `_temperature`: how sharp that consensus should be: a prior from how far the models agree and how sure they are, times
  the likelihood of the labels.
- `_bias`: what the labels say about each model beyond the consensus, shrunk, and how much may still be wrong.
- `_fit`: these together.

docs/method.md has the reasons and what was measured.
"""

from ._bias import ModelBias, hit_covariance, model_bias, tilt_for_shift
from ._fit import Consensus, ConsensusNodes, PooledNodes, fit_bias, fit_consensus, labeled_residual, systematic
from ._pool import Pool, agreement_with_others, consensus_pools, votes_of

__all__ = [
    "Consensus",
    "ConsensusNodes",
    "ModelBias",
    "Pool",
    "PooledNodes",
    "agreement_with_others",
    "consensus_pools",
    "fit_bias",
    "fit_consensus",
    "hit_covariance",
    "labeled_residual",
    "model_bias",
    "systematic",
    "tilt_for_shift",
    "votes_of",
]
