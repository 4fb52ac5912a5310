"""The oracle: evaluates the input kernels, before any pass, in mpmath at a chosen number of digits.

Nothing here is shared with lowering, passes or printers: scalar expressions are evaluated as they stand, with more digits
until enough are right (`scalar_oracle`), tensor expressions by loops over every index, moments by Mehler's formula
(`moment_oracle`), kernels made of others by plain loops (`assembled_oracle`).
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from symtensor.kernels import (
    ArrayKernel,
    BatchKernel,
    CompositeKernel,
    ExpectationKernel,
    FixedPointKernel,
    Kernel,
    MomentKernel,
    OdeKernel,
    ScalarKernel,
    ScanKernel,
    TensorKernel,
)
from symtensor.tensor import Factor, Index, Term

from ..errors import GenerationError
from ..lower.moments import method_of
from ..signature import Signature, signatures
from ..spec import ModuleSpec
from .assembled_oracle import array_values, batch_values, expectation_value, fixed_point_values
from .moment_oracle import oracle_moments
from .scalar_oracle import ScalarOracle

__all__ = ["ReferenceBackend", "exact", "tensor_magnitude"]

Array = np.ndarray
Values = dict[str, Array]
#: of expectations, which take the square of the nodes of one variable
_EXPECTATION_DIGITS = 18


def exact(value: Any) -> Array:
    """An array of mpmath numbers from nested numbers (complex ones stay complex) or decimal texts."""
    source = np.asarray(value, dtype=object)
    return np.vectorize(_mp_number, otypes=[object])(source) if source.size else source


def _mp_number(value: Any) -> Any:
    return mpmath.mpc(value) if isinstance(value, complex | mpmath.mpc) else mpmath.mpf(value)


@dataclass(slots=True)
class ReferenceBackend:
    """Evaluates kernels of one specification by name; moments are remembered, because kernels share them."""

    spec: ModuleSpec
    digits: int = 30
    _moments: dict[tuple, dict[tuple[int, int], Array]] = field(default_factory=dict)
    _scalars: dict[str, ScalarOracle] = field(default_factory=dict)

    def evaluate(self, name: str, arguments: Mapping[str, Any]) -> Values:
        """Outputs of a kernel by name, as object arrays of mpmath numbers.

        Raises
        ------
        GenerationError
            For an Ode kernel: it has no finite formula (see `codegen.check` for its independent integration).
        """
        with mpmath.workdps(self.digits + 15):
            values = {key: value if isinstance(value, int) else exact(value) for key, value in arguments.items()}
            result = self._evaluate(self._kernel(name), values)
            return {key: self._chopped(value) for key, value in result.items()}

    def _chopped(self, value: Array) -> Array:
        """Rounding noise of what is exactly zero becomes zero, so that errors are not measured relative to it."""
        noise = mpmath.mpf(10) ** -(self.digits - 2)
        chop = np.vectorize(lambda entry: mpmath.mpf(0) if abs(entry) < noise else entry, otypes=[object])
        return chop(value) if np.size(value) else value

    def _kernel(self, name: str) -> Kernel:
        return next(kernel for kernel in self.spec.kernels if kernel.name == name)

    def _evaluate(self, kernel: Kernel, values: dict[str, Any]) -> Values:
        match kernel:
            case ScalarKernel():
                return self._scalar(kernel, values)
            case TensorKernel():
                return {kernel.name: _tensor(kernel, values)}
            case MomentKernel():
                return self._moment(kernel, values["K"])
            case CompositeKernel():
                return self._composite(kernel, values)
            case ScanKernel():
                return self._scan(kernel, values)
            case ArrayKernel():
                return array_values(kernel, self._names(kernel.step), values, self._by_name)
            case ExpectationKernel():
                law = self._by_name(kernel.law, {name: values[name] for name in self._names(kernel.law)})
                numbers = {name: number.item() for name, number in law.items()}
                digits = min(self.digits, _EXPECTATION_DIGITS)
                return expectation_value(kernel, values, numbers, self._program(kernel.integrand).once, digits)
            case FixedPointKernel():
                return fixed_point_values(kernel, values, self._by_name, self.digits)
            case BatchKernel():
                return batch_values(kernel, self._signatures()[kernel.name].outputs, values, self._by_name)
            case OdeKernel():
                raise GenerationError(f"{kernel.name}: an integration has no exact reference value")

    def _by_name(self, name: str, values: Mapping[str, Any]) -> Values:
        return self._evaluate(self._kernel(name), dict(values))

    def _signatures(self) -> dict[str, Signature]:
        return signatures(self.spec)

    def _names(self, name: str) -> tuple[str, ...]:
        return tuple(argument.name for argument in self._signatures()[name].arguments)

    def _program(self, name: str) -> ScalarOracle:
        """The expressions of a scalar kernel, read once."""
        if name not in self._scalars:
            kernel = self._kernel(name)
            assert isinstance(kernel, ScalarKernel)
            self._scalars[name] = ScalarOracle([expr for _, expr in kernel.outputs], self._names(name), self.digits)
        return self._scalars[name]

    def _scalar(self, kernel: ScalarKernel, values: Mapping[str, Any]) -> Values:
        """Elementwise; the expressions are read once per specification."""
        names = [argument.name for argument in kernel.arguments]
        oracle = self._program(kernel.name)
        grids = np.broadcast_arrays(*(values[name] for name in names)) if names else []
        shape = grids[0].shape if names else ()
        results = {output: np.empty(shape, dtype=object) for output, _ in kernel.outputs}
        for place in np.ndindex(*shape):
            point = {name: grid[place] for name, grid in zip(names, grids)}
            for (output, expr), number in zip(kernel.outputs, oracle.numbers(point)):
                if number is None:
                    raise GenerationError(f"{expr} is no finite real number at {point}; the reference needs one")
                results[output][place] = number
        return results

    def _moment(self, kernel: MomentKernel, K: Array) -> Values:
        key = (kernel.name, tuple(map(str, K.ravel())))
        if key not in self._moments:
            method = method_of(kernel, self.spec.rule, self.spec.derivatives)
            self._moments[key] = oracle_moments(kernel, K, method, self.digits)
        table = self._moments[key]
        return {f"m{i}{j}": table[i, j] for i, j in kernel.orders}

    def _composite(self, kernel: CompositeKernel, values: dict[str, Any]) -> Values:
        local: dict[str, Any] = {argument.name: values[argument.name] for argument in kernel.arguments}
        signature = signatures(self.spec)
        for call in kernel.assignments:
            wanted = [argument.name for argument in signature[call.kernel].arguments]
            result = self._evaluate(self._kernel(call.kernel), dict(zip(wanted, (local[name] for name in call.arguments))))
            if len(call.targets) == len(result):
                local.update(zip(call.targets, result.values()))
            local.update({f"{call.targets[0]}.{key}": value for key, value in result.items()})
        return {value.name: local[value.name] for value in kernel.returns}

    def _scan(self, kernel: ScanKernel, values: dict[str, Any]) -> Values:
        step = self._kernel(kernel.step)
        state = {name: value for name, value in values.items() if name != "depth"}
        carried = dict(kernel.carry)
        history: dict[str, list[Array]] = {}
        for _ in range(int(values["depth"]) + 1):
            now = self._evaluate(step, state)
            records = {name: value for name, value in now.items() if name not in carried.values()}
            for name, value in ({name: state[name] for name in carried} | records).items():
                history.setdefault(name, []).append(value)
            state = state | {name: now[returned] for name, returned in carried.items()}
        return {name: np.stack([np.asarray(entry, dtype=object) for entry in entries]) for name, entries in history.items()}


def _number(expr: sp.Expr, values: Mapping[str, Any]) -> Any:
    """A scalar expression at mpmath values, by SymPy's own evaluation."""
    digits = mpmath.mp.dps
    known = {symbol: sp.Float(values[symbol.name], digits) for symbol in expr.free_symbols}
    value = sp.N(expr.subs(known), digits)
    if not (value.is_real and value.is_finite):
        raise GenerationError(f"{expr} is {value} at {values}; the reference needs a real number")
    return mpmath.mpf(value._to_mpmath(mpmath.mp.prec))


def _tensor(kernel: TensorKernel, values: Mapping[str, Any], size: Callable[[Any], Any] = lambda number: number) -> Array:
    """Sum over terms; `size` is applied to every product before it is added."""
    sizes: dict[str, int] = {}
    for argument in kernel.arguments:
        sizes |= {name: extent for name, extent in zip(argument.shape, values[argument.name].shape) if isinstance(name, str)}
    scalars = {argument.name: values[argument.name].item() for argument in kernel.arguments if argument.shape == ()}
    scalars |= {name: mpmath.mpf(extent) for name, extent in sizes.items()}
    terms = [(size(_number(term.coefficient, scalars)), term) for term in kernel.expression.terms]
    extents = [_extent(axis, sizes) for axis in kernel.axes]
    result = np.empty(extents, dtype=object)
    for place in np.ndindex(*extents):
        free = dict(zip(kernel.axes, place))
        result[place] = sum((number * _term(term, free, values, sizes, size) for number, term in terms), mpmath.mpf(0))
    return result


def tensor_magnitude(kernel: TensorKernel, arguments: Mapping[str, Any]) -> Array:
    """Sum of the absolute values of the products that make up each entry: its rounding errors are relative to this."""
    return _tensor(kernel, {name: exact(value) for name, value in arguments.items()}, abs)


def _extent(index: Index, sizes: Mapping[str, int]) -> int:
    return index.dimension if isinstance(index.dimension, int) else sizes[index.dimension.name]


def _term(
    term: Term, free: Mapping[Index, int], values: Mapping[str, Any], sizes: Mapping[str, int], size: Callable[[Any], Any]
) -> Any:
    total = mpmath.mpf(0)
    for place in product(*(range(_extent(index, sizes)) for index in term.summed)):
        at = {**free, **dict(zip(term.summed, place))}
        total += size(mpmath.fprod(_component(factor, at, values) for factor in term.factors))
    return total


def _component(factor: Factor, at: Mapping[Index, int], values: Mapping[str, Any]) -> Any:
    place = tuple(at[slot] if isinstance(slot, Index) else slot for slot in factor.indices)
    head = factor.tensor
    if head.is_delta:
        return mpmath.mpf(place[0] == place[1])
    value = values[(head.source or head).name][place]
    if head.function is None:
        return value
    (variable,) = head.function.variables
    return _number(head.function.expr, {variable.name: value})
