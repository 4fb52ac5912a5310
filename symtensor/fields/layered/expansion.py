r"""Numbers: the expansion in 1/n of the cumulants of the empirical kernels at all layers, by generated code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from symtensor.fields.layered.diagram_terms import LayeredSum, cumulant_terms
from symtensor.fields.layered.errors import LayeredError, LayeredMemoryError
from symtensor.fields.layered.lines import block_array, line_arrays
from symtensor.fields.layered.network import LayeredNetwork
from symtensor.fields.layered.plan import shape_of
from symtensor.fields.layered.program import Output, Program
from symtensor.fields.layered.result import LayeredExpansion
from symtensor.fields.layered.vertices import NumericalPaths, PathSource, concentrated, vertex_arrays

__all__ = ["QUANTITIES", "evaluate", "expand", "sums_of_order"]

#: the highest order in 1/n that is evaluated
MOST_ORDER = 2
#: name -> number of legs
QUANTITIES: dict[str, int] = {"mean": 1, "covariance": 2, "third_cumulant": 3}


def sums_of_order(order: int, quantities: Sequence[str]) -> tuple[LayeredSum, ...]:
    """The cumulants up to an order in 1/n: with E legs and loops, of order E - 1 + loops.

    >>> [(total.legs, total.loops) for total in sums_of_order(2, ("mean", "covariance", "third_cumulant"))]
    [(1, 1), (2, 0), (1, 2), (2, 1), (3, 0)]
    """
    legs = sorted(QUANTITIES[name] for name in quantities)
    return tuple(cumulant_terms(e, k + 1 - e) for k in range(1, order + 1) for e in legs if k + 1 - e >= 0)


def expand(
    network: LayeredNetwork,
    order: int,
    observables: Mapping[str, Any] | None = None,
    *,
    quantities: Sequence[str] = tuple(QUANTITIES),
    tol: float = 1e-10,
    memory_mb: float = 4096.0,
    paths: PathSource | None = None,
) -> LayeredExpansion:
    r"""Means, covariances and third cumulants of the empirical kernels of a network, as coefficients of 1/n, at all layers.

    E X = X_0 + X_1/n + X_2/n^2 + .., n Cov(X, Y) = V_0 + V_1/n + .., n^2 kappa_3 = W_0 + .. for kernels
    X = (1/n) sum_i f(phi_i(a)) f(phi_i(b)).

    Parameters
    ----------
    network
        The model.
    order
        The highest order in 1/n: 1 gives the means at 1/n and the leading covariance, 2 also the means at 1/n^2, the next
        coefficient of the covariance and the leading third cumulant.
    observables
        Name -> function f (an activation, a name or an expression in x); by default G (the identity) and S (the first branch).
    quantities
        Which of ``mean``, ``covariance``, ``third_cumulant`` to evaluate.
    tol
        Tolerance of the path cumulants, relative to the largest entry of each.
    memory_mb
        Refuse beyond this memory, stating the need, before anything is evaluated.
    paths
        Where the path cumulants come from; `symtensor.numerics.path` by default.

    Raises
    ------
    LayeredError
        An order below 1, an unknown quantity, float64 off in JAX.
    LayeredMemoryError
        More memory needed than allowed.

    Notes
    -----
    Every loop comes from `cumulant_terms`. With T = depth + 1, order 1 costs T^3 in matrix products. Leading third cumulants cost
    T^4, the order 1/n^2 up to T^4 times powers of the number of components.

    References
    ----------
    Hanin & Zlokapa (2023); Yaida (2020); Martin, Siggia & Rose (1973).
    """
    _check(order, quantities)
    functions = network.functions(observables)
    program = _program(order, tuple(quantities), network.drive.degree, _sizes(network, len(functions.functions)), memory_mb)
    require_memory(program, network, memory_mb)
    source = paths or NumericalPaths(network, functions, tol, memory_mb)
    kernels, means, _ = source.leading()
    arrays, lines, errors = arrays_of(network, source, program.arrays, program.later_only)
    values = evaluate(program, {**arrays, **lines})
    return LayeredExpansion(network, functions, order, program, kernels, means, slope_of(source), values, source, errors, arrays)


def _check(order: int, quantities: Sequence[str]) -> None:
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise LayeredError(f"order={order!r}: the order in 1/n is an integer >= 1")
    if order > MOST_ORDER:
        raise LayeredError(
            f"order={order}: numbers are done up to order {MOST_ORDER} in 1/n; "
            "cumulant_terms gives the diagrams and formulas of every order"
        )
    if isinstance(quantities, str) or not quantities or (unknown := [q for q in quantities if q not in QUANTITIES]):
        wrong = quantities if isinstance(quantities, str) or not quantities else unknown[0]
        raise LayeredError(f"quantities: {wrong!r} is not a sequence of some of {', '.join(QUANTITIES)}")


def _sizes(network: LayeredNetwork, functions: int) -> tuple[tuple[str, int], ...]:
    pairs = len(network.pairs)
    return (("T", network.depth + 1), ("C", functions * pairs), ("F", len(network.branches) * pairs), ("E", pairs))


@lru_cache(maxsize=32)
def _program(
    order: int, quantities: tuple[str, ...], degree: int | None, sizes: tuple[tuple[str, int], ...], memory_mb: float
) -> Program:
    outputs = [
        Output(f"cumulant_{total.legs}_{total.loops}", total, equal=total.loops > 0 or total.legs != 2)
        for total in sums_of_order(order, quantities)
    ]
    return Program.of(outputs, degree, dict(sizes), memory_mb * 1e6 / 8 / 6)


def path_patterns(names: Iterable[str], later_only: bool) -> set[tuple[int, ...]]:
    """The patterns of path cumulants that the arrays with these names are made of, with those of all lines."""
    found: set[tuple[int, ...]] = {(1,), (0, 0)}
    for name in names:
        if name.startswith("kappa_"):
            pattern = tuple(map(int, name.split("_")[2]))
            found |= {(0, 1)} if later_only and pattern == (1, 0) else concentrated(pattern)
    return found


def require_memory(program: Program, network: LayeredNetwork, limit: float) -> None:
    """Raise LayeredMemoryError if the arrays of a program need more megabytes than `limit`."""
    size = program.plan.sizes
    patterns = path_patterns(program.arrays, program.later_only)
    need = program.megabytes + 8e-6 * sum((size["T"] * size["C"]) ** len(p) * size["E"] ** sum(p) for p in patterns)
    if need > limit:
        largest = max(program.arrays, key=lambda name: prod(size[kind] for kind in shape_of(name)))
        shape = " x ".join(str(size[kind]) for kind in shape_of(largest))
        raise LayeredMemoryError(
            f"{program.title} for depth {network.depth} and {network.inputs} inputs needs about {need:,.0f} MB "
            f"(largest array {largest}: {shape}), more than memory_mb={limit:,.0f}; take fewer layers, "
            "inputs, observables or quantities, a lower order, or raise memory_mb"
        )


def slope_of(source: PathSource) -> np.ndarray:
    """dE[h_c]/dK^e, (T, C, E)."""
    return source.cumulants((1,)).values


def arrays_of(
    network: LayeredNetwork, source: PathSource, names: Sequence[str], later_only: bool
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, float]]:
    """The vertex arrays, all other arrays, and the estimated errors of the path cumulants."""
    feeding = len(network.branches) * len(network.pairs)
    _, means, error = source.leading()
    cumulants = [name for name in names if name.startswith("kappa_")]
    arrays, errors = vertex_arrays(source, cumulants, feeding, later_only)
    two_times = source.cumulants((0, 0))
    wanted = [name for name in names if name[:2] in ("R_", "C_")]
    others = line_arrays(network, means[:, :feeding], slope_of(source), two_times.values, wanted)
    for name in names:
        if name.startswith("A_"):
            others[name] = block_array(network, means[:, :feeding], int(name[2:]))
    errors |= {"leading": error, "slope": source.cumulants((1,)).error, "covariance": two_times.error}
    return arrays, others, errors


def evaluate(program: Program, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run the generated function; values by name of the output."""
    loaded = program.module.load()
    if loaded.jnp.zeros(()).dtype != "float64":
        raise LayeredError('float64 is off in JAX; call jax.config.update("jax_enable_x64", True) first')
    found = loaded.diagrams(**{name: arrays[name] for name in program.arrays})
    values = found if isinstance(found, tuple) else (found,)
    return {output.name: np.asarray(value) for output, value in zip(program.outputs, values)}
