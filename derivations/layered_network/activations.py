"""The same network with other activations, one input: where the closures hold and where they fail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivations.layered_network.closure import Part
from derivations.layered_network.request import Request
from derivations.layered_network.theory import baseline, exact_theory, fixed_rule, markov_theory
from symtensor.activation import Activation, activation

__all__ = ["COMPARED", "Row", "activation_rows", "path_tolerance"]

COMPARED = ("tanh", "erf", "sin", "relu", "gelu")
#: path cumulants are never asked for more than this
SMOOTH, KINKED = 1e-8, 1e-7


def path_tolerance(function: Activation, tol: float) -> float:
    """The tolerance of the path cumulants: --tol, but no smaller than what a series in Hermite degrees reaches quickly."""
    return max(tol, SMOOTH if function.smooth else KINKED)


@dataclass(frozen=True, slots=True)
class Row:
    """One activation at the last layer for the first input: exact and truncated theories, and the published quadrature."""

    name: str
    K0: float
    exact: Part
    markov: Part
    closures: dict[str, Part]
    gauss_hermite: Part | None
    failure: str = ""


def activation_rows(request: Request, memory_mb: float, tol: float = KINKED) -> list[Row]:
    """The table: the network of the request with each activation and the first input alone (other inputs do not change it)."""
    functions = {name: activation(name) for name in COMPARED} | {request.base.activation.name: request.base.activation}
    return [_row(request, function, tol, memory_mb) for function in functions.values()]


def _row(request: Request, function: Activation, tol: float, memory_mb: float) -> Row:
    kernel = request.base.kernel[:1, :1]
    network = request.network_of(function, kernel)
    try:
        exact = exact_theory(network, 1, tol, memory_mb)
        found = baseline(exact)
        markov = markov_theory(exact)
    except ValueError as error:  # this activation diverges or has no second moment here: the table says so
        nothing = Part(np.full((1,) * 5, np.nan), np.full((1,) * 3, np.nan), np.full((1,) * 3, np.nan))
        return Row(function.name, float("nan"), nothing, nothing, {}, None, str(error))
    return Row(
        function.name, float(exact.expansion.kernels[-1, 0, 0]), exact.part, markov, found, fixed_rule(request, function, kernel)
    )
