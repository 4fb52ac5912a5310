"""The one place where `symtensor` reaches the code generator: lazily, and with a clear error if another package hides it.

`symtensor` never imports `codegen` statically, so it works without JAX and Jinja2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symtensor.numerics.rules import Rule

__all__ = ["codegen", "compile"]


def codegen() -> ModuleType:
    """The package `codegen` that belongs to symtensor.

    Raises
    ------
    ImportError
        It is not installed, or another distribution called `codegen` comes first on the path.

    Examples
    --------
    >>> codegen().ModuleSpec.__name__
    'ModuleSpec'
    """
    package = import_module("codegen")
    if not hasattr(package, "ModuleSpec"):
        place = getattr(package, "__file__", None) or ", ".join(getattr(package, "__path__", [])) or "an unknown place"
        raise ImportError(
            f"the package 'codegen' found at {place} is not the one of symtensor but another one of the same name; "
            "uninstall it, or put symtensor's installation first on the path"
        )
    return package


def compile(
    expression: Any,
    args: Any = None,
    *,
    name: str = "f",
    outputs: Any = None,
    axes: Sequence[Any] | None = None,
    dtype: str | None = None,
    batch: str | Iterable[str] = (),
    rule: Rule | str | None = None,
    variance: float = 4.0,
    title: str = "",
    statement: str = "",
    citations: Sequence[str] = (),
    reference_points: bool = True,
    cache: Any = False,
) -> Any:
    """A jitted JAX function of a formula, with its source, its cost, a certificate and an export.

    Parameters
    ----------
    expression
        A SymPy expression (piecewise, special functions, `GaussianExpectation` included), matrix or N-dimensional array;
        sums over IndexedBase components; matrix expressions; a tensor expression; a truncated series of `symtensor.series` or
        `symtensor.taylor`; a `Scan`, `Ode` or `FixedPoint`; kernels (`symtensor.kernels`); a text in the symbols of
        `args`. A sequence or mapping of expressions is a function with several outputs, a named tuple.
    args
        In order: symbols, IndexedBase, MatrixSymbol, Tensor, or a text of names; a mapping name -> such a thing, or name -> an
        array of symbols (one array argument whose components they are). By default everything the expression contains, by name.
        Symbols get names that Python allows (lambda -> lambda_, a Greek letter is spelled out).
    name
        Of the function and of the module.
    outputs
        Names of several outputs; `coefficients` for the coefficients of a series.
    axes
        Order of the free indices of a tensor; by name by default, as einsum does.
    dtype
        float32, float64, complex64 or complex128: arguments and results have this type. With a complex one, symbols that are not
        declared real are complex. By default the type follows the arguments.
    batch
        Arguments of a tensor function, an expectation or a loop that get a new first axis. Functions of scalars and of components
        take arrays as they are.
    rule
        Quadrature of expectations without a closed form, such as `trapezoid:113@8.5`; by default one is chosen.
    variance
        Largest variance at which a rule that is chosen has to be right (to 1e-12 of E |f|).
    title, statement, citations
        For the docstring of the module.
    reference_points
        Whether the module holds 30-digit values for its own check.
    cache
        True, or a `codegen.Cache`: keep generated modules on disk (see `symtensor cache`).

    Returns
    -------
    codegen.compiled.Compiled
        Call it. `source`, `write(path)`, `cost`, `certify(n_points, digits)`, `check()`, `export(platforms)`, `function`, `module`.

    Raises
    ------
    codegen.GenerationError
        Or a subclass: whatever is wrong is reported here, with the name of the node, symbol, or shape: an unsupported function, an
        unbound symbol, a name used twice, a constant out of range, a denominator that is zero.

    Examples
    --------
    >>> import sympy as sp
    >>> x, y = sp.symbols("x y", real=True)
    >>> f = compile(x**2 + y, [x, y])
    >>> f, float(f(3.0, 1.0))
    (<compiled f(x, y) -> value>, 10.0)
    >>> g = compile({"mean": (x + y) / 2, "product": x * y}, name="pair")
    >>> float(g(2.0, 4.0).product)
    8.0
    """
    return codegen().compile(
        expression, args, name=name, outputs=outputs, axes=axes, dtype=dtype, batch=batch, rule=rule,
        variance=variance, title=title, statement=statement, citations=citations, reference_points=reference_points, cache=cache,
    )  # fmt: skip
