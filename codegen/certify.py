"""Certificates: emitted code against its input in high precision, with gradients, conditioning and lost digits.

The oracle evaluates the input kernels in mpmath, before any pass (`backends/scalar_oracle.py`, `backends/reference.py`);
the emitted module runs as it is. An error is judged against the tolerance where the problem is well conditioned, and
against 10 eps times the condition number elsewhere; the points of the second kind are listed.

References: N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002), sections 1.6 (condition) and 3.1.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symtensor.kernels import ScalarKernel

from .backends.jax_backend import require_dtype
from .certificate import Cancellation, CancellationWarning, Certificate, Measured, PointError
from .certify_arrays import certify_arrays
from .certify_scalar import certify_scalar
from .errors import GenerationError
from .module import GeneratedModule

__all__ = ["Cancellation", "CancellationWarning", "Certificate", "Measured", "PointError", "certify"]

#: relative error in double precision at well-conditioned points
TOLERANCE = 1e-12
_LEAST_DIGITS = 20


def certify(
    compiled: Any,
    n_points: int = 64,
    digits: int = 30,
    *,
    dtypes: Sequence[str] = ("float64", "float32"),
    gradient: bool = True,
    domain: Mapping[str, tuple[float, float]] | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> Certificate:
    """Measure how well emitted code agrees with the mathematics it was generated from.

    Parameters
    ----------
    compiled
        A `GeneratedModule`, or anything whose attribute `module` is one.
    n_points
        Points per elementwise kernel and type (half as many in float32); kernels of arrays use a few random arrays.
    digits
        Significant digits of the oracle, at least 20.
    dtypes
        Types to run; float64 needs JAX's x64.
    gradient
        Whether `jax.jacobian` of every output is compared with the oracle's derivatives.
    domain
        Argument -> (low, high), within what the assumptions of its symbol allow; by default magnitudes up to 30.
    tolerance
        Relative error accepted in float64 at well-conditioned points; other types get as many units of rounding.
    seed
        Of the points.

    Returns
    -------
    Certificate
        `passed`, the worst errors with their points, ill-conditioned points, steps that lose digits, and notes.

    Raises
    ------
    GenerationError
        Fewer than 20 digits or no points; a domain for something that is no argument, or in which nothing has a value.
    TypeError
        Not a generated module.
    ValueError
        float64 while JAX runs in float32.

    Warns
    -----
    CancellationWarning
        For each step that loses more than two digits beyond the condition of the problem.

    Examples
    --------
    >>> import sympy as sp, jax
    >>> from symtensor.kernels import Argument, ScalarKernel
    >>> from codegen import ModuleSpec, generate
    >>> jax.config.update("jax_enable_x64", True)
    >>> x = sp.Symbol("x", real=True)
    >>> kernel = ScalarKernel("f", (Argument("x"),), (("y", sp.exp(x) - 1),))
    >>> certificate = certify(generate(ModuleSpec("example", "One function.", (kernel,))), n_points=20)
    >>> certificate.passed, certificate.worst().error < 1e-15
    (True, True)
    """
    module = _module(compiled)
    if digits < _LEAST_DIGITS or n_points < 1:
        raise GenerationError(f"digits {digits}, n_points {n_points}: at least {_LEAST_DIGITS} digits and 1 point are needed")
    for dtype in dtypes:
        require_dtype(dtype)
    scale = float(np.finfo(np.float64).eps)
    tolerances = {dtype: tolerance * max(1.0, float(np.finfo(dtype).eps) / scale) for dtype in dtypes}
    known = {argument.name for signature in module.signatures.values() for argument in signature.arguments}
    if unknown := set(domain or {}) - known:
        names = ", ".join(sorted(known))
        raise GenerationError(f"domain of {', '.join(sorted(unknown))}: no kernel has this argument; known: {names}")
    parts = []
    for kernel in module.kernels:
        if isinstance(kernel, ScalarKernel):
            own = {argument.name for argument in kernel.arguments}
            given = {name: ends for name, ends in (domain or {}).items() if name in own}
            parts.append(certify_scalar(module, kernel, n_points, digits, tolerances, gradient, given, seed))
        else:
            parts.append(certify_arrays(module, kernel, digits, tolerances, gradient, seed))
    certificate = Certificate(
        module.name,
        digits,
        tuple(line for part in parts for line in part.domain),
        tuple(entry for part in parts for entry in part.measured),
        tuple(item for part in parts for item in part.cancellations),
        tuple(note for part in parts for note in part.notes),
    )
    for item in certificate.cancellations:
        warnings.warn(str(item), CancellationWarning, stacklevel=2)
    return certificate


def _module(compiled: Any) -> GeneratedModule:
    module = compiled if isinstance(compiled, GeneratedModule) else getattr(compiled, "module", None)
    if not isinstance(module, GeneratedModule):
        raise TypeError(f"certify takes a generated module or what symtensor.compile returns, got {type(compiled).__name__}")
    return module
