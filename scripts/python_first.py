"""What a newcomer does first, with NumPy alone: a shipped model, three points, a prediction.

scripts/python_test.sh runs it with the wheel and NumPy installed and nothing else.
"""

import sys

import numpy as np

import mnp

x, y = np.array([-1.0, 0.0, 1.0]), np.array([-1.5, -0.5, 1.0])
at = np.linspace(-1.0, 1.0, 21)  # (21,)
process = mnp.load("mnp-monotonic")
posterior = process.condition(x, y)
mean, sd = posterior.mean(at), posterior.sd(at)
assert mean.shape == sd.shape == (21,)
# Increasing curves: the mean follows the points, and is surer at the middle one than beside it.
assert mean[0] < mean[5] < mean[10] < mean[15] < mean[20], mean
assert np.max(np.abs(mean[[0, 10, 20]] - y)) < 0.4, mean
assert sd[10] < 0.5 * sd[13], sd
for other in ("pandas", "polars", "scipy", "matplotlib", "sklearn", "xarray"):
    assert other not in sys.modules, other
print(f"mnp {mnp.__version__}: {len(mnp.models())} models, mean at 0 is {mean[10]:.3f}")
