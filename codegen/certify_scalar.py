"""Certificates of elementwise functions: every output and every derivative, point by point, against the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from symtensor.kernels import ScalarKernel

from .backends.jax_backend import call
from .backends.jax_derivatives import gradients
from .backends.scalar_oracle import Exact, ScalarOracle
from .certificate import Cancellation, Measured, PointError
from .certify_graph import find_cancellations
from .certify_points import Interval, check_domain, domain_of, sample_points
from .errors import GenerationError
from .graph import Graph, postorder
from .ir import TapeFunction
from .lower.expression import convert
from .lower.scalar import lower_scalar
from .passes import optimise

if TYPE_CHECKING:
    from .module import GeneratedModule

__all__ = ["EPS_FACTOR", "ScalarCertificate", "certify_scalar", "point_error"]

#: rounding errors beyond the tolerance that an ill-conditioned point may show, in units of eps times condition
EPS_FACTOR = 10
#: emitted operations beyond which derivatives are evaluated operation by operation instead of compiled
_COMPILED_OPERATIONS = 150
#: steps of the oracle times outputs, over all points, beyond which derivatives are compared at fewer points (but this many)
_GRADIENT_EFFORT, _LEAST_POINTS = 200_000, 6
#: candidates per point wanted; a domain of which less is usable should be declared
_TRIES = 20


@dataclass(frozen=True, slots=True)
class ScalarCertificate:
    """Parts of a certificate that come from one kernel."""

    measured: tuple[Measured, ...]
    cancellations: tuple[Cancellation, ...]
    domain: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Points:
    """Points of one type at which the input has values, what they are, and why others were left out."""

    oracle: ScalarOracle
    taken: list[dict[str, float]] = field(default_factory=list)
    exact: list[list[Exact]] = field(default_factory=list)
    left_out: Counter = field(default_factory=Counter)
    limits: int = 0


def certify_scalar(
    module: GeneratedModule,
    kernel: ScalarKernel,
    n_points: int,
    digits: int,
    tolerances: Mapping[str, float],
    gradient: bool,
    domain: Mapping[str, tuple[float, float]],
    seed: int,
) -> ScalarCertificate:
    """Measure one kernel; see `codegen.certify.certify`.

    Raises
    ------
    GenerationError
        The input has a value at none of the points: the domain has to be declared.
    """
    check_domain(kernel.arguments, domain)
    intervals = domain_of(kernel, domain)
    oracle = ScalarOracle([expr for _, expr in kernel.outputs], list(intervals), digits)
    measured: list[Measured] = []
    notes: list[str] = []
    looked_at: list[dict[str, float]] = []
    for dtype, tolerance in tolerances.items():
        # single precision has fewer digits to lose, and fewer points show them
        wanted = n_points if dtype == "float64" else max(8, n_points // 2)
        points = _chosen(kernel, oracle, intervals, wanted, seed, dtype)
        looked_at = looked_at or points.taken
        notes += [note for note in _notes(kernel, points, dtype) if note not in notes]
        measured += _values(module, kernel, points, dtype, tolerance)
        if gradient and intervals:
            slopes = _gradients(module, kernel, points, dtype, tolerance)
            measured += slopes
            missing = sorted({len(points.taken) - each.count for each in slopes} - {0})
            if missing:
                why = "kinks, no value, or more points than a large kernel needs"
                notes.append(f"{kernel.name}: derivatives in {dtype} not compared at up to {missing[-1]} points ({why})")
    lines = tuple(f"{kernel.name}: {interval}" for interval in intervals.values())
    return ScalarCertificate(tuple(measured), _cancellations(kernel, looked_at), lines, tuple(notes))


def _chosen(
    kernel: ScalarKernel, oracle: ScalarOracle, intervals: Mapping[str, Interval], wanted: int, seed: int, dtype: str
) -> _Points:
    """Points at which at least one output has a value."""
    points = _Points(oracle)
    for point in islice(sample_points(intervals, seed, dtype), _TRIES * wanted):
        found = oracle.values({name: mpmath.mpf(value) for name, value in point.items()})
        points.left_out.update(name for (name, _), exact in zip(kernel.outputs, found) if exact.value is None)
        points.limits += any(exact.limit for exact in found)
        if any(exact.value is not None for exact in found):
            points.taken.append(point)
            points.exact.append(found)
        if len(points.taken) == wanted or not intervals:
            break
    if not points.taken:
        text = ", ".join(map(str, intervals.values()))
        raise GenerationError(
            f"{kernel.name}: no output has a real finite value at any point with {text}; pass domain={{name: (low, high)}}"
        )
    return points


def _notes(kernel: ScalarKernel, points: _Points, dtype: str) -> list[str]:
    why = "where the input is no finite real number (a pole, or outside the domain)"
    notes = [f"{kernel.name}.{name}: {count} points left out in {dtype}, {why}" for name, count in sorted(points.left_out.items())]
    if points.limits:
        notes.append(f"{kernel.name}: the expected value is a limit (0/0 in the input) at {points.limits} points in {dtype}")
    return notes


# -- comparison --------------------------------------------------------------------------------------------------------


def _columns(points: _Points) -> dict[str, np.ndarray]:
    return {name: np.array([point[name] for point in points.taken]) for name in points.oracle.names}


def _values(module: GeneratedModule, kernel: ScalarKernel, points: _Points, dtype: str, tolerance: float) -> list[Measured]:
    found = call(module, kernel.name, _columns(points), dtype)
    measured = []
    for place, (name, _) in enumerate(kernel.outputs):
        column = np.broadcast_to(found[name], (len(points.taken),))
        cases = [(point, exact[place], column[row]) for row, (point, exact) in enumerate(zip(points.taken, points.exact))]
        measured.append(summary(f"{kernel.name}.{name}", dtype, tolerance, cases))
    return measured


def _gradients(module: GeneratedModule, kernel: ScalarKernel, points: _Points, dtype: str, tolerance: float) -> list[Measured]:
    count = max(_LEAST_POINTS, _GRADIENT_EFFORT // (len(points.oracle.program.steps) * points.oracle.count))
    points = _Points(points.oracle, points.taken[:count], points.exact[:count])
    found = gradients(module, kernel.name, _columns(points), dtype, compiled=_compiles_fast(module, kernel))
    exact = [points.oracle.gradients({name: mpmath.mpf(value) for name, value in point.items()}) for point in points.taken]
    measured = []
    for place, (output, _) in enumerate(kernel.outputs):
        for name in points.oracle.names:
            column = found[output][name]
            cases = [(point, exact[row][place][name], column[row]) for row, point in enumerate(points.taken)]
            measured.append(summary(f"d {kernel.name}.{output} / d {name}", dtype, tolerance, cases))
    return measured


def _compiles_fast(module: GeneratedModule, kernel: ScalarKernel) -> bool:
    """Short straight-line code, and tapes of any length."""
    cost = module.cost[kernel.name]
    operations = cost.arithmetic + cost.transcendental
    if operations <= _COMPILED_OPERATIONS:
        return True
    return operations > 1000 and isinstance(lower_scalar(kernel, module.spec.budget), TapeFunction)


def summary(quantity: str, dtype: str, tolerance: float, cases: Iterable[tuple[Mapping[str, Any], Exact, Any]]) -> Measured:
    """Worst, ill-conditioned and failing points of one quantity; points without an expected value are not compared."""
    errors = [error for point, exact, found in cases if (error := point_error(point, exact, found, dtype, tolerance))]
    well = [error for error in errors if error.allowed <= tolerance]
    return Measured(
        quantity,
        dtype,
        tolerance,
        len(errors),
        max(well, key=lambda error: error.relative, default=None),
        tuple(error for error in errors if error.allowed > tolerance and tolerance < error.relative),
        tuple(error for error in errors if error.relative > error.allowed),
    )


def point_error(point: Mapping[str, Any], exact: Exact, found: Any, dtype: str, tolerance: float) -> PointError | None:
    """The error at one point; None where there is nothing to compare: no value, or one that the type cannot hold.

    What is smaller than the smallest normal number may be flushed to zero, so so much is forgiven absolutely.
    """
    if exact.value is None:
        return None
    limits = np.finfo(dtype)
    size, spread = max(abs(exact.value), exact.floor), exact.spread or mpmath.mpf(0)
    if abs(exact.value) > mpmath.mpf(float(limits.max)):
        return None
    number = found if isinstance(found, mpmath.mpf) else mpmath.mpf(float(found))
    error = abs(number - exact.value) if mpmath.isfinite(number) else mpmath.inf
    error = mpmath.mpf(0) if error <= mpmath.mpf(float(limits.tiny)) else error
    condition = spread / size if size else (mpmath.inf if spread else mpmath.mpf(0))
    relative = error / size if size else (mpmath.inf if error else mpmath.mpf(0))
    allowed = max(tolerance, float(EPS_FACTOR * limits.eps * condition))
    if not size and error <= EPS_FACTOR * float(limits.eps) * spread:
        relative = mpmath.mpf(0)  # a zero whose rounding is that of its arguments
    return PointError(
        dict(point), repr(float(number)), str(mpmath.nstr(exact.value, 17)), float(relative), float(condition), float(allowed)
    )


def _cancellations(kernel: ScalarKernel, points: list[dict[str, float]]) -> tuple[Cancellation, ...]:
    """On the graph as it is emitted, that is after every pass."""
    graph = Graph()
    names = {argument.name: argument.name for argument in kernel.arguments}
    roots = tuple(convert(expr, names, f"{kernel.name}.{name}", graph) for name, expr in kernel.outputs)
    labels = [f"{kernel.name}.{name}" for name, _ in kernel.outputs]
    optimised = optimise(roots, graph)
    count = max(_LEAST_POINTS, _GRADIENT_EFFORT // (len(postorder(optimised)) * len(optimised)))
    return find_cancellations(dict(zip(labels, optimised)), points[:count])
