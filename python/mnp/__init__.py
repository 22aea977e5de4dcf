"""Markov Neural Processes: distributions over functions, given some of their points.

    import mnp

    process = mnp.load("mnp-monotonic")                  # or mnp.train(...), mnp.fit(...)
    posterior = process.condition(x, y)                  # x (n,), y (n,)
    posterior.mean(at), posterior.sd(at), posterior.sample(at, 20)

All this is computed by libmnp, which is part of the package; NumPy is all that it needs. The
estimators of `mnp.sklearn` need scikit-learn, and `GPRegressor` solves its equations with SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._context import set_threads
from ._structs import VERSION as __version__
from .data import Data, families
from .errors import Error
from .errors import Warning as Warning
from .posterior import Posterior
from .posteriors import Posteriors
from .process import Process, load, models, train

if TYPE_CHECKING:
    from . import bandits, frames, maps, plotting, scores
    from .fitting import Fit, fit

# What costs time to import, or is not needed by most, comes when it is asked for.
_LATER = {
    "fit": "fitting",
    "Fit": "fitting",
}
_MODULES = ("bandits", "fitting", "frames", "maps", "plotting", "scores", "sklearn")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LATER:
        value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})


# Without Warning: `from mnp import *` would hide the builtin one.
__all__ = [
    "Data",
    "Error",
    "Fit",
    "Posterior",
    "Posteriors",
    "Process",
    "__version__",
    "bandits",
    "errors",
    "families",
    "fit",
    "frames",
    "load",
    "maps",
    "models",
    "plotting",
    "scores",
    "set_threads",
    "train",
]
