"""The input kernels in NumPy double precision: fast enough to integrate, used as the oracle of ode kernels.

Moments come from `symtensor.numerics` with its own rule, tensors from `TensorExpr.evaluate`.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symtensor.expansion.gaussian import closed_form
from symtensor.kernels import CompositeKernel, MomentKernel, OdeKernel, ScalarKernel, TensorKernel
from symtensor.numerics.rules import CLOSED, Rule

from ..errors import GenerationError
from ..signature import signatures
from ..spec import ModuleSpec

__all__ = ["NumpyBackend"]

Values = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class NumpyBackend:
    """Evaluates scalar, tensor, moment and composite kernels, and integrates ode kernels with SciPy."""

    spec: ModuleSpec

    def evaluate(self, name: str, values: Mapping[str, Any]) -> Values:
        """Outputs of a kernel by name."""
        kernel = next(kernel for kernel in self.spec.kernels if kernel.name == name)
        match kernel:
            case ScalarKernel():
                symbols = [sp.Symbol(argument.name, real=True) for argument in kernel.arguments]
                known = {str(symbol): symbol for symbol in symbols}
                return {
                    output: sp.lambdify(symbols, expr.subs({s: known[s.name] for s in expr.free_symbols}), "scipy")(
                        *(values[argument.name] for argument in kernel.arguments)
                    )
                    for output, expr in kernel.outputs
                }
            case TensorKernel():
                arrays = {argument.name: values[argument.name] for argument in kernel.arguments if argument.shape}
                scalars = {argument.name: float(values[argument.name]) for argument in kernel.arguments if not argument.shape}
                return {name: kernel.expression.evaluate(arrays, kernel.axes, scalars, check=False)}
            case MomentKernel():
                return self._moments(kernel, np.asarray(values["K"], dtype=float))
            case CompositeKernel():
                return self._composite(kernel, dict(values))
        raise GenerationError(f"{name}: not evaluated by this backend")

    def integrate(self, kernel: OdeKernel, values: Mapping[str, Any], ts: np.ndarray, tol: float = 1e-12) -> Values:
        """The states of an ode kernel at the times `ts`, by an eighth-order Runge-Kutta method."""
        from scipy.integrate import solve_ivp

        states = [state for state, _ in kernel.carry]
        shapes = [np.shape(values[state]) for state in states]
        cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

        def unpacked(flat: np.ndarray) -> dict[str, np.ndarray]:
            return {state: part.reshape(shape) for state, part, shape in zip(states, np.split(flat, cuts), shapes)}

        def rate(time: float, flat: np.ndarray) -> np.ndarray:
            now = self.evaluate(kernel.rhs, {**values, **unpacked(flat), **({kernel.time: time} if kernel.time else {})})
            return np.concatenate([np.ravel(now[returned]) for _, returned in kernel.carry])

        start = np.concatenate([np.ravel(np.asarray(values[state], dtype=float)) for state in states])
        solution = solve_ivp(rate, (ts[0], ts[-1]), start, method="DOP853", t_eval=ts, rtol=tol, atol=tol)
        if not solution.success:
            raise GenerationError(f"{kernel.name}: the reference integration failed: {solution.message}")
        columns = [unpacked(column) for column in solution.y.T]
        return {state: np.stack([column[state] for column in columns]) for state in states}

    def _moments(self, kernel: MomentKernel, K: np.ndarray) -> Values:
        from symtensor.numerics.moments import moment_table

        form = closed_form(kernel.activation)
        if form is not None:
            rule = CLOSED
        else:
            rule = Rule("trapezoid", 301, 14.0) if kernel.activation.smooth else Rule("split", 20, 12.0)
        k = np.diag(K)
        table = moment_table(kernel.activation, k[:, None], K, k[None, :], rule, "auto", kernel.orders)
        return {f"m{i}{j}": table[i, j] for i, j in kernel.orders}

    def _composite(self, kernel: CompositeKernel, local: dict[str, Any]) -> Values:
        known = signatures(self.spec)
        for call in kernel.assignments:
            wanted = [argument.name for argument in known[call.kernel].arguments]
            result = self.evaluate(call.kernel, dict(zip(wanted, (local[name] for name in call.arguments))))
            if len(call.targets) == len(result):
                local.update(zip(call.targets, result.values()))
            local.update({f"{call.targets[0]}.{key}": value for key, value in result.items()})
        return {value.name: local[value.name] for value in kernel.returns}
