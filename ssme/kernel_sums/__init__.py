"""Logarithms of weighted sums of Gaussian product kernels: exact, stable and bounded in memory.

``log sum_j w_jc prod_l N(x_l; c_jl, h_l^2)`` for every query row x and every column c of the weights.

- `_points`: exponents of any tile. They come from ONE matrix product ``[x, 1, -x^2/2] [y, -y^2/2, 1]'`` of scaled,
  centred rows; where rows lie so far out that the cancellation would show, differences are taken instead.
- `_tiles`, `_torch`: sums of kernels relative to a shift for every row, close to its largest exponent, cut at exp(-300)
  (float32: exp(-80)), which also keeps ``exp`` and the product off the slow subnormal numbers. The matrix is kept, or
  recomputed in tiles.
- `_exact`: the public functions. Sums in which the cut could show are done again term by term. A row's own kernel never
  enters the matrix: it is added as a number of its own, so leave-one-out sums cost nothing and lose nothing, even where
  the own kernel holds all the mass.
- `_grid`: one dimension and more pairs of rows than anyone wants to visit.
- `_naive`: straight from the definition, the oracle of the tests.
"""

from ssme.kernel_sums._exact import KernelMatrix, log_kernel_sums
from ssme.kernel_sums._naive import naive_log_kernel_sums
from ssme.kernel_sums._points import DEFAULT_BUDGET

__all__ = ["DEFAULT_BUDGET", "KernelMatrix", "log_kernel_sums", "naive_log_kernel_sums"]
