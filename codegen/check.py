"""An emitted module against the oracle, and its lowering for platforms that need not be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symtensor.kernels import OdeKernel

from .backends.jax_backend import call, custom_calls, stable_hlo
from .backends.numpy_backend import NumpyBackend
from .backends.reference import ReferenceBackend
from .errors import GenerationError
from .module import GeneratedModule
from .points import TOLERANCES, test_arguments

__all__ = ["LoweringError", "ModuleCheck", "check_module", "lowers"]

#: digits of the oracle: enough for double precision
_DIGITS = 20
_TIMES = np.array([0.0, 0.125, 0.5])
_HOST = ("callback", "python", "host")


class LoweringError(GenerationError):
    """An emitted function does not lower for a platform, or needs the host while it runs."""


@dataclass(frozen=True, slots=True)
class ModuleCheck:
    """Largest error of each output ("kernel.output"), relative to the largest entry of the expected array."""

    errors: Mapping[str, float]
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether every error is within the tolerance."""
        return all(error <= self.tolerance for error in self.errors.values())

    @property
    def worst(self) -> tuple[str, float]:
        """The output with the largest error."""
        return max(self.errors.items(), key=lambda item: item[1])

    def __str__(self) -> str:
        name, error = self.worst
        return f"{len(self.errors)} outputs, worst {name} {error:.1e} (tolerance {self.tolerance:.1e})"


def check_module(module: GeneratedModule, dtype: str = "float64", tolerance: float | None = None) -> ModuleCheck:
    """Execute every kernel at points that are not those embedded in the module, and compare with the oracle.

    Parameters
    ----------
    dtype
        `float64` (JAX must have x64 enabled) or `float32`.
    tolerance
        Accepted error; by default that of the self-check for this type.

    Raises
    ------
    ValueError
        float64 while JAX runs in float32.
    """
    oracle = ReferenceBackend(module.spec, _DIGITS)
    errors: dict[str, float] = {}
    for kernel in module.kernels:
        if isinstance(kernel, OdeKernel):
            pairs = [integration(module, kernel, dtype)]
        else:
            pairs = [
                (call(module, kernel.name, arguments, dtype), expected)
                for arguments in test_arguments(kernel, module.spec, salt=1)
                if (expected := _expected(oracle, kernel.name, arguments)) is not None
            ]
        for found, expected in pairs:
            for output, wanted in expected.items():
                label = kernel.name if output == kernel.name else f"{kernel.name}.{output}"
                errors[label] = max(errors.get(label, 0.0), relative_error(found[output], wanted))
    return ModuleCheck(errors, TOLERANCES[dtype] if tolerance is None else tolerance)


def _expected(oracle: ReferenceBackend, name: str, arguments: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
    """The oracle's values, or None where the mathematics has none (outside a domain)."""
    try:
        return oracle.evaluate(name, arguments)
    except (ArithmeticError, GenerationError):
        return None


def integration(module: GeneratedModule, kernel: OdeKernel, dtype: str) -> tuple[dict, dict]:
    """An ode kernel at test arguments: what the module gives, and what another method gives."""
    step = next(step for step in module.kernels if step.name == kernel.rhs)
    (values,) = test_arguments(step, module.spec, salt=1)
    numbers = {name: np.asarray(value, dtype=float) for name, value in values.items()}
    given = {name: value for name, value in numbers.items() if name != kernel.time}
    found = call(module, kernel.name, {**given, "ts": _TIMES}, dtype)
    expected = NumpyBackend(module.spec).integrate(kernel, numbers, _TIMES)
    return found, {**expected, "success": np.array(1.0)}


def relative_error(found: np.ndarray, wanted: Any) -> float:
    """max |found - wanted| / max |wanted| (or absolute if all of `wanted` is 0); inf for nan or another shape."""
    expected = np.asarray(wanted, dtype=float)
    if np.shape(found) != expected.shape or not np.isfinite(np.asarray(found, dtype=float)).all():
        return float("inf")
    scale = np.abs(expected).max(initial=0.0)
    return float(np.abs(np.asarray(found, dtype=float) - expected).max(initial=0.0) / (scale or 1.0))


def lowers(
    module: GeneratedModule,
    platforms: Iterable[str] = ("cpu", "cuda", "tpu"),
    dtypes: Iterable[str] = ("float32", "float64"),
    size: int = 3,
) -> dict[tuple[str, str, str], set[str]]:
    """Lower every function for every platform and type, without the device.

    Returns
    -------
    dict
        (kernel, platform, dtype) -> targets of custom calls in the StableHLO.

    Raises
    ------
    LoweringError
        A function does not lower, or calls back to the host.
    ValueError
        float64 while JAX runs in float32.
    """
    found = {}
    for dtype in dtypes:
        for platform in platforms:
            for kernel in module.kernels:
                try:
                    text = stable_hlo(module, kernel.name, platform, dtype, size)
                except (NotImplementedError, TypeError, RuntimeError) as error:
                    raise LoweringError(f"{kernel.name} does not lower for {platform} in {dtype}: {error}") from error
                targets = custom_calls(text)
                for target in sorted(targets):
                    if any(word in target.lower() for word in _HOST):
                        raise LoweringError(f"{kernel.name} on {platform} calls the host: {target}")
                found[kernel.name, platform, dtype] = targets
    return found
