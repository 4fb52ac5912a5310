"""The front door: formulas, arrays, tensor expressions, expectations, series, recursions and kernels into one object.

    arguments.py         what the function takes          values.py    what it returns, in three kinds
    scalars.py           formulas -> scalar kernels       assemble.py  values and arguments -> kernels
    indexed, matrices    SymPy's index and matrix notation -> tensor expressions
    expectation, complex_numbers, programs               expectations; complex formulas; scans, flows, fixed points
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symtensor.kernels import ArrayKernel, BatchKernel, FixedPointKernel, Kernel, ScalarKernel, TensorKernel
from symtensor.numerics.rules import Rule, parse_rule
from symtensor.parsing import parse_expression
from symtensor.programs import FixedPoint, Ode, Scan

from ..analyse import KERNEL_KINDS
from ..cache import Cache
from ..compiled import Compiled
from ..errors import InputError
from ..module import generate
from ..names import check_identifier
from ..spec import ModuleSpec
from ..strict import check_expressions
from .assemble import assemble
from .programs import build_program
from .scalars import Build
from .values import is_series, named_values, read_values, series_outputs

__all__ = ["compile"]

_DTYPES = ("float32", "float64", "complex64", "complex128")
_REAL = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}


def compile(
    expression: Any,
    args: Any = None,
    *,
    name: str = "f",
    outputs: Any = None,
    axes: Sequence[Any] | None = None,
    dtype: str | None = None,
    batch: Iterable[str] = (),
    rule: Rule | str | None = None,
    variance: float = 4.0,
    title: str = "",
    statement: str = "",
    citations: Sequence[str] = (),
    reference_points: bool = True,
    cache: Cache | bool = False,
) -> Compiled:
    """See `symtensor.compile`."""
    request = _Request(
        name=check_identifier(name, "name"), args=args, outputs=outputs, axes=axes, batch=_names(batch), rule=_rule(rule),
        variance=_positive(variance),
        complex=_checked_dtype(dtype) is not None and str(dtype).startswith("complex"),
    )  # fmt: skip
    kernels, remark = request.kernels(expression)
    kernels = _batched(kernels, request)
    _check_range(kernels, _REAL[dtype] if dtype else "float64")
    spec = ModuleSpec(
        name=request.name, title=title or _title(expression, remark), kernels=kernels,
        statement="\n\n".join(text for text in (remark if title else "", statement) if text), citations=tuple(citations),
        reference_points=reference_points, rule=request.rule or Rule("closed"),
    )  # fmt: skip
    store = Cache() if cache is True else cache
    module = store.generate(spec) if isinstance(store, Cache) else generate(spec)
    return Compiled(module, kernels[-1].name, dtype)


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of one call."""

    name: str
    args: Any
    outputs: Any
    axes: Sequence[Any] | None
    batch: tuple[str, ...]
    rule: Rule | None
    variance: float
    complex: bool

    @property
    def inner(self) -> str:
        """The name of the function of one element."""
        return f"{self.name}_one" if self.batch else self.name

    def kernels(self, expression: Any) -> tuple[tuple[Kernel, ...], str]:
        """The kernels, the function itself last, and a remark for its docstring."""
        given = [expression] if isinstance(expression, KERNEL_KINDS) else expression
        if isinstance(given, list | tuple) and given and all(isinstance(each, KERNEL_KINDS) for each in given):
            return self._given_kernels(tuple(given)), ""
        build, remark = Build(self.inner, self.rule, self.variance), ""
        if isinstance(expression, str):
            expression = self._parsed(expression)
        if isinstance(expression, Scan | Ode | FixedPoint):
            if self.outputs is not None or self.axes is not None or self.complex:
                raise InputError(f"{self.name}: outputs, axes and complex types are not for a {type(expression).__name__}")
            build_program(build, self.inner, expression, self.args)
            return tuple(build.kernels), remark
        outputs = self.outputs
        if is_series(expression):
            expression, remark = series_outputs(expression, outputs, self.name)
            outputs = None if outputs == "coefficients" else outputs
        named, single = named_values(expression, outputs)
        values = read_values(named, self.axes, self.name, self.args)
        assemble(build, self.inner, values, self.args, single, self.complex)
        return tuple(build.kernels), remark

    def _parsed(self, text: str) -> sp.Expr:
        names = self.args.replace(",", " ").split() if isinstance(self.args, str) else list(self.args or ())
        if not names or not all(isinstance(each, str | sp.Symbol) for each in names):
            raise InputError(f"{self.name}: text is compiled with args naming its symbols, for example args='x y'")
        return parse_expression(text, tuple(str(each) for each in names))

    def _given_kernels(self, kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
        if self.args is not None or self.outputs is not None or self.axes is not None or self.complex:
            raise InputError(f"{self.name}: kernels bring their arguments and outputs; give no args, outputs, axes, complex type")
        return kernels


def _names(batch: Iterable[str]) -> tuple[str, ...]:
    return tuple(batch.replace(",", " ").split()) if isinstance(batch, str) else tuple(batch)


def _rule(rule: Rule | str | None) -> Rule | None:
    return parse_rule(rule) if isinstance(rule, str) else rule


def _positive(variance: float) -> float:
    if isinstance(variance, bool) or not isinstance(variance, int | float) or not 0 < variance < float("inf"):
        raise InputError(f"variance is {variance!r}; it is the largest variance of expectations, a positive number")
    return float(variance)


def _checked_dtype(dtype: str | None) -> str | None:
    if dtype is not None and dtype not in _DTYPES:
        raise InputError(f"dtype {dtype!r}; known are {', '.join(_DTYPES)}, or None: that of the arguments")
    return dtype


def _batched(kernels: tuple[Kernel, ...], request: _Request) -> tuple[Kernel, ...]:
    if not request.batch:
        return kernels
    inner = kernels[-1]
    if isinstance(inner, ScalarKernel | ArrayKernel | FixedPointKernel):
        raise InputError(
            f"{request.name}: functions of scalars and components take arrays as they are (leading axes broadcast); batch= is for "
            "tensors, expectations and loops"
        )
    return (*kernels, BatchKernel(request.name, inner.name, request.batch))


def _check_range(kernels: Iterable[Kernel], dtype: str) -> None:
    """Constants in the range of a type that is smaller than double precision; analysis checks the rest."""
    for kernel in kernels if dtype == "float32" else ():
        if isinstance(kernel, ScalarKernel):
            check_expressions({f"{kernel.name}.{name}": sp.sympify(expr) for name, expr in kernel.outputs}, dtype)
        if isinstance(kernel, TensorKernel):
            coefficients = dict.fromkeys(term.coefficient for term in kernel.expression.terms)
            check_expressions({f"{kernel.name}, coefficient {each}": each for each in coefficients}, dtype)


def _title(expression: Any, remark: str) -> str:
    if remark:
        return remark
    if isinstance(expression, Mapping | list | tuple) and len(expression) == 1:
        return "One function."
    kinds: tuple[tuple[Any, str], ...] = (
        (Scan, "A recursion over layers."), (Ode, "A flow in continuous time."), (FixedPoint, "A fixed point."),
        (Mapping | list | tuple, "Several functions."),
    )  # fmt: skip
    return next((text for kind, text in kinds if isinstance(expression, kind)), "One function.")
