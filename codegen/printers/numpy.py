"""Text for NumPy and SciPy: the reference in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .base import Printer

__all__ = ["namespace", "numpy_printer"]


def _sech2(x: Any) -> Any:
    decay = np.exp(-2 * np.abs(x))
    return 4 * decay / (1 + decay) ** 2


_CALLABLES: dict[str, Any] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "erf": special.erf, "erfc": special.erfc, "abs": np.abs,
    "sign": np.sign, "maximum": np.maximum, "minimum": np.minimum, "power": np.power, "sech2": _sech2,
    "sigmoid": special.expit, "softplus": lambda x: np.logaddexp(0.0, x),
}  # fmt: skip


def namespace() -> dict[str, Any]:
    """What the text refers to."""
    return {f"f_{name}": function for name, function in _CALLABLES.items()} | {"where": np.where}


def numpy_printer() -> Printer:
    """A printer whose text is run in `namespace()`."""
    return Printer({name: f"f_{name}" for name in _CALLABLES}, "where")
