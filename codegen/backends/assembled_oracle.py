"""Kernels made of other kernels, in mpmath: arrays of entries, expectations, fixed points, batches.

Each function takes `evaluate(kernel name, arguments) -> outputs`, which evaluates the kernels below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from symtensor.kernels import (
    Argument,
    ArrayKernel,
    ArrayOutput,
    BatchKernel,
    ExpectationKernel,
    FixedPointKernel,
)

__all__ = ["array_values", "batch_values", "expectation_value", "fixed_point_values"]

Array = np.ndarray
Values = dict[str, Array]
Evaluate = Callable[[str, Mapping[str, Any]], Values]
_MOST_ITERATIONS, _MOST_NODES = 3000, 400


def array_values(kernel: ArrayKernel, wanted: tuple[str, ...], values: Mapping[str, Any], evaluate: Evaluate) -> Values:
    """Entries by the scalar kernel, whose arguments are called `wanted`, at the components of the arguments."""
    parts = {"": lambda number: number, "real": mpmath.re, "imag": mpmath.im}
    given = {
        name: np.array(parts[part.part](np.asarray(values[part.argument], dtype=object)[part.place]), dtype=object)
        for name, part in zip(wanted, kernel.inputs)
    }
    entries = evaluate(kernel.step, given)
    return {output.name: _assembled(output, entries) for output in kernel.outputs}


def _assembled(output: ArrayOutput, entries: Mapping[str, Array]) -> Array:
    numbers = [entries[entry].item() if isinstance(entry, str) else _number(entry) for entry in output.entries]
    if output.is_complex:
        half = len(numbers) // 2
        numbers = [mpmath.mpc(real, imaginary) for real, imaginary in zip(numbers[:half], numbers[half:])]
    result = np.empty(len(numbers), dtype=object)
    result[:] = numbers
    return result.reshape(output.shape)


def _number(value: Any) -> Any:
    return mpmath.mpf(sp.N(value, mpmath.mp.dps + 5)._to_mpmath(mpmath.mp.prec))  # pyright: ignore[reportAttributeAccessIssue]


def expectation_value(
    kernel: ExpectationKernel,
    values: Mapping[str, Any],
    law: Mapping[str, Any],
    integrand: Callable[[Mapping[str, Any]], list[Any]],
    digits: int,
) -> Values:
    """E f by a trapezoidal rule along the principal axes of the covariance, halved until it settles.

    `law` has the means and covariances, `integrand` gives the factors of f at a point. Neither the axes (the emitted code
    has a Cholesky factor) nor the nodes are those of the emitted code.

    Raises
    ------
    ArithmeticError
        The rule does not settle: the integrand is not smooth, or grows too fast.
    """
    fixed = {name: np.asarray(value, dtype=object).item() for name, value in values.items()}
    center, axes = _principal_axes(law, len(kernel.variables))
    radius = mpmath.sqrt(2 * (digits + 4) * mpmath.log(10))
    previous, count = None, 12
    while count <= _MOST_NODES:
        step = radius / count
        total = mpmath.mpf(0)
        for place in np.ndindex(*(2 * count + 1,) * len(center)):
            z = [step * (k - count) for k in place]
            square = mpmath.fsum(each * each for each in z)
            if square > radius * radius:
                continue
            at = [c + mpmath.fsum(row[k] * z[k] for k in range(len(z))) for c, row in zip(center, axes)]
            factors = integrand(fixed | dict(zip(kernel.variables, at)))
            if any(factor is None for factor in factors):
                raise ArithmeticError(f"{kernel.name}: the integrand has no value at {at}")
            total += mpmath.exp(-square / 2) * mpmath.fprod(factors)
        total *= (step / mpmath.sqrt(2 * mpmath.pi)) ** len(center)
        # the error of the rule is squared when the step is halved
        if previous is not None and abs(total - previous) <= mpmath.mpf(10) ** (-digits * 0.6) * (abs(total) or 1):
            return {kernel.name: np.array(total, dtype=object)}
        previous, count = total, 2 * count
    raise ArithmeticError(f"{kernel.name}: the reference quadrature did not settle with {count} nodes along an axis")


def _principal_axes(law: Mapping[str, Any], size: int) -> tuple[list[Any], list[list[Any]]]:
    """Means, and a square root of the covariance by its eigenvectors."""
    if size == 1:
        return [law["m1"]], [[mpmath.sqrt(law["k11"])]]
    covariance = mpmath.matrix([[law["k11"], law["k12"]], [law["k12"], law["k22"]]])
    values, vectors = mpmath.eigsy(covariance)
    if min(values) < 0:
        raise ArithmeticError("the covariance is not positive semidefinite")
    return [law["m1"], law["m2"]], [[vectors[i, k] * mpmath.sqrt(values[k]) for k in range(2)] for i in range(2)]


def fixed_point_values(kernel: FixedPointKernel, values: Mapping[str, Any], evaluate: Evaluate, digits: int) -> Values:
    """Iterated until nothing changes in the digits asked for.

    Raises
    ------
    ArithmeticError
        It does not converge.
    """
    state = dict(values)
    limit = mpmath.mpf(10) ** (-digits - 5)
    for _ in range(_MOST_ITERATIONS):
        now = evaluate(kernel.step, state)
        after = {name: now[returned] for name, returned in kernel.carry}
        change = max(abs(entry) for name in after for entry in np.ravel(after[name] - state[name]))
        size = max(abs(entry) for name in after for entry in np.ravel(after[name]))
        state |= after
        if change <= limit * max(size, 1):
            return {name: np.asarray(state[name], dtype=object) for name, _ in kernel.carry}
    raise ArithmeticError(f"{kernel.name}: the reference iteration did not converge in {_MOST_ITERATIONS} steps")


def batch_values(
    kernel: BatchKernel, outputs: tuple[Argument, ...], values: Mapping[str, Any], evaluate: Evaluate
) -> Values:
    """The inner kernel at every place of the first axis."""
    length = len(values[kernel.batched[0]])

    def at(place: int) -> dict[str, Any]:
        batched = {name: np.asarray(values[name][place], dtype=object) for name in kernel.batched}
        return {**values, **batched}

    rows = [evaluate(kernel.inner, at(place)) for place in range(length)]
    names = [output.name for output in outputs if output.name in rows[0]]
    renamed = {name: name for name in names} or {kernel.name: next(iter(rows[0]))}
    return {name: _stacked([row[own] for row in rows]) for name, own in renamed.items()}


def _stacked(parts: list[Any]) -> Array:
    return np.stack([np.asarray(part, dtype=object) for part in parts])

