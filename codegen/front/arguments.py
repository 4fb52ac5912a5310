"""The arguments of a compiled function, read from what a user writes them as.

    Symbol, or its name in a text "x y"     a scalar (arrays broadcast)
    {"x": Matrix of symbols}                an array argument x whose components are these symbols
    IndexedBase("x", shape=(3,))            an array argument x, components x[0], x[1], x[2]
    MatrixSymbol("A", 2, 2)                 an array argument A, components A[0, 0], ..
    Tensor("K", (P, P))                     an array argument K of a tensor expression
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import sympy as sp

from symtensor.kernels import Argument, Component
from symtensor.programs import GaussianExpectation
from symtensor.tensor import Dimension, Tensor

from ..errors import InputError, NameClash, UnboundName
from ..names import check_identifier, fresh_names, identifier
from ..signature import size_of
from ..strict import described, nodes_of

__all__ = ["Given", "Inputs", "read_arguments"]


@dataclass(frozen=True, slots=True)
class Given:
    """One argument: a scalar (`symbols` has one entry), an array of components (row by row), or a tensor (no symbols)."""

    name: str
    shape: tuple[int | str, ...] = ()
    symbols: tuple[sp.Expr, ...] = ()
    tensor: Tensor | None = None

    @property
    def argument(self) -> Argument:
        """As kernels have it."""
        return Argument(self.name, self.shape)

    @property
    def places(self) -> Iterator[tuple[int, ...]]:
        """Indices of the components, row by row."""
        return product(*(range(int(size)) for size in self.shape))


@dataclass(frozen=True, slots=True)
class Inputs:
    """All arguments. `renamed` maps what stands in the user's expressions to symbols that emitted code can name."""

    given: tuple[Given, ...]
    renamed: dict[sp.Expr, sp.Symbol] = field(default_factory=dict)
    components: dict[str, Component] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """As kernels have them."""
        return tuple(given.argument for given in self.given)

    @property
    def scalar_only(self) -> bool:
        """Whether every argument is a scalar."""
        return all(given.shape == () and given.tensor is None for given in self.given)

    @property
    def names(self) -> set[str]:
        """Names of arguments and of their components."""
        return {given.name for given in self.given} | set(self.components)

    def symbol(self, name: str) -> sp.Symbol:
        """The symbol that stands for a scalar argument or component in the rewritten expressions."""
        return next(symbol for symbol in self.renamed.values() if symbol.name == name)

    def rewritten(self, expression: sp.Expr) -> sp.Expr:
        """The expression in the symbols of emitted code."""
        changed = {old: new for old, new in self.renamed.items() if old != new}
        if not changed:
            return expression
        return _with_own_variables(expression).xreplace(changed)


def _with_own_variables(expression: sp.Expr) -> sp.Expr:
    """Variables of expectations as dummies, so that replacing an argument of the same name leaves them alone."""
    nodes = [node for node in nodes_of(expression) if isinstance(node, GaussianExpectation)]
    replaced = {}
    for node in nodes:
        own = {name: sp.Dummy(name.name, **name._assumptions_orig) for name in node.variables}
        replaced[node] = GaussianExpectation(node.function.xreplace(own), list(own.values()), node.covariance, node.mean)
    return expression.xreplace(replaced) if replaced else expression


def read_arguments(
    args: Any, symbols: Iterable[sp.Symbol], tensors: Iterable[Tensor] = (), arrays: Iterable[Any] = ()
) -> Inputs:
    """Read the arguments; `symbols`, `tensors` and `arrays` (whose components occur) are those of the expressions.

    Parameters
    ----------
    args
        A sequence of the things above, a mapping name -> such a thing, a text of names, or None: every symbol and
        tensor of the expressions, sorted by name.

    Raises
    ------
    InputError
        Something that is no argument, or a group of symbols without a name.
    NameClash
        Two arguments with one name in emitted code, one symbol in two arguments, a reserved name.
    UnboundName
        A symbol or tensor of the expressions that is no argument.
    """
    found, heads = sorted(set(symbols), key=lambda symbol: (symbol.name, str(symbol.assumptions0))), tuple(dict.fromkeys(tensors))
    if args is None:
        args = sorted([*found, *heads, *dict.fromkeys(arrays)], key=lambda item: str(item.name))
    given = tuple(_as_tensor(_read(item, name, found), heads) for item, name in _items(args))
    _check_names(given)
    inputs = _with_components(given)
    _check_bound(inputs, found, heads)
    return inputs


def _items(args: Any) -> Iterator[tuple[Any, str]]:
    """(thing, name given for it or empty)."""
    if isinstance(args, Mapping):
        for name, item in args.items():
            yield item, check_identifier(name, "argument")
        return
    if isinstance(args, str):
        args = args.replace(",", " ").split()
    elif isinstance(args, sp.Symbol | sp.Idx | sp.IndexedBase | sp.MatrixSymbol | Tensor):
        args = [args]
    elif not isinstance(args, Sequence):
        raise InputError(f"args is {args!r} ({type(args).__name__}); give a sequence of symbols, a mapping of names, or a text")
    for item in args:
        for part in item.replace(",", " ").split() if isinstance(item, str) else [item]:
            yield part, ""


def _read(item: Any, name: str, found: Sequence[sp.Symbol]) -> Given:
    match item:
        case str():
            return Given(check_identifier(name or item, "argument"), (), (_named(item, found),))
        case sp.Idx() if isinstance(item.label, sp.Symbol):
            return _read(item.label, name, found)
        case sp.Symbol():
            return Given(name or identifier(item.name), (), (item,))
        case sp.IndexedBase() | sp.MatrixSymbol():
            return _array(item, name)
        case Tensor():
            check_identifier(item.name, "tensor")
            if name and name != item.name:
                raise NameClash(f"tensor {item.name!r} is given as argument {name!r}; an array has its tensor's own name")
            return Given(item.name, tuple(size_of(dimension) for dimension in item.dimensions), (), item)
        case sp.MatrixBase() | sp.NDimArray() | list() | tuple():
            return _group(item, name)
    kinds = "Symbol, IndexedBase, MatrixSymbol, Tensor or array of symbols"
    raise InputError(f"argument {item!r} ({type(item).__name__}) is no {kinds}")


def _as_tensor(given: Given, heads: Sequence[Tensor]) -> Given:
    """An array of which the expressions use the tensor, not the components."""
    if given.shape and given.tensor is None:
        return next((Given(given.name, given.shape, (), head) for head in heads if head.name == given.name), given)
    return given


def _named(text: str, found: Sequence[sp.Symbol]) -> sp.Symbol:
    same = [symbol for symbol in found if symbol.name == text]
    if len(same) > 1:
        raise NameClash(f"argument {text!r}: the expressions contain {len(same)} different symbols of this name; pass the symbol")
    return same[0] if same else sp.Symbol(text, real=True)


def _array(item: Any, name: str) -> Given:
    label = name or identifier(str(item.name))
    if item.shape is None:
        raise InputError(f"argument {item}: an IndexedBase needs a shape, IndexedBase({str(item)!r}, shape=(..))")
    if all(getattr(size, "is_Integer", isinstance(size, int)) for size in item.shape):
        shape = tuple(int(size) for size in item.shape)
        return Given(label, shape, tuple(item[place] for place in product(*map(range, shape))))
    return _read(tensor_of(item), "", ())


def tensor_of(item: Any) -> Tensor:
    """The tensor head of an IndexedBase or MatrixSymbol with symbolic sizes."""
    sizes = [int(size) if sp.sympify(size).is_Integer else _dimension(size, item) for size in item.shape]
    return Tensor(identifier(str(item.name)), tuple(sizes))


def _dimension(size: Any, item: Any) -> Dimension:
    if not isinstance(size, sp.Symbol):
        raise InputError(f"argument {item}: size {size} is neither an integer nor a symbol")
    return Dimension(identifier(size.name))


def _group(item: Any, name: str) -> Given:
    if not name:
        raise InputError(f"the group of symbols {item!r} needs a name: args={{'x': {item!r}, ..}}")
    try:
        array = sp.ImmutableDenseNDimArray(item.tolist() if isinstance(item, sp.MatrixBase) else item)
    except (ValueError, TypeError, sp.SympifyError):
        raise InputError(f"argument {name}: {item!r} is no array of symbols (rows of different lengths?)") from None
    flat = tuple(array.reshape(len(array)).tolist()) if len(array) else ()
    if not flat or not all(isinstance(symbol, sp.Symbol) for symbol in flat):
        raise InputError(f"argument {name}: {item!r} is no array of symbols")
    return Given(name, tuple(map(int, array.shape)), flat)


def _check_names(given: tuple[Given, ...]) -> None:
    names: dict[str, Given] = {}
    symbols: dict[sp.Expr, str] = {}
    for each in given:
        check_identifier(each.name, "argument")
        if each.name in names:
            one, other = names[each.name], each
            if one.symbols and other.symbols and one.symbols != other.symbols and str(one.symbols[0]) == str(other.symbols[0]):
                kinds = "; ".join(described(value.symbols[0]) for value in (one, other))
                raise NameClash(f"two different symbols are called {each.name!r} ({kinds}); make them one symbol, or rename one")
            first, second = _spelled(one), _spelled(other)
            raise NameClash(f"two arguments are called {each.name!r} in emitted code ({first} and {second}); name one in a mapping")
        names[each.name] = each
        for symbol in each.symbols:
            if symbol in symbols:
                raise NameClash(f"symbol {symbol} stands in two arguments, {symbols[symbol]} and {each.name}")
            symbols[symbol] = each.name


def _spelled(given: Given) -> str:
    return repr(str(given.symbols[0])) if len(given.symbols) == 1 else given.name


def _with_components(given: tuple[Given, ...]) -> Inputs:
    """Scalars keep their names, components get new ones: x_0_1."""
    inputs = Inputs(given)
    taken = {each.name for each in given}
    for each in given:
        for place, symbol in zip(each.places, each.symbols) if each.tensor is None else ():
            name = each.name
            if each.shape:
                wanted = "_".join([each.name, *map(str, place)])
                name = wanted if wanted not in taken else next(fresh_names(wanted + "_", taken))
                taken.add(name)
            assumptions = getattr(symbol, "_assumptions_orig", {}) if isinstance(symbol, sp.Symbol) else {"real": True}
            same = type(symbol) is sp.Symbol and symbol.name == name
            inputs.renamed[symbol] = symbol if same else sp.Symbol(name, **assumptions)
            inputs.components[name] = Component(each.name, place)
    return inputs


def _check_bound(inputs: Inputs, found: Sequence[sp.Symbol], heads: Sequence[Tensor]) -> None:
    sizes = {size for each in inputs.given for size in each.shape if isinstance(size, str)}
    names = ", ".join(given.name for given in inputs.given) or "none"
    for symbol in found:
        if symbol in inputs.renamed or symbol.name in sizes:
            continue
        twins = [other for other in inputs.renamed if isinstance(other, sp.Symbol) and other.name == symbol.name]
        if twins:
            raise NameClash(
                f"symbol {symbol.name!r} of the expression is not the argument {symbol.name!r}: their assumptions differ "
                f"({described(symbol)}; {described(twins[0])}); make them one symbol"
            )
        raise UnboundName(f"symbol {symbol.name!r} is not an argument; arguments: {names}")
    tensors = {given.tensor for given in inputs.given}
    for head in heads:
        if head not in tensors:
            raise UnboundName(f"tensor {head.name!r} is not an argument (or differs in shape or symmetry); arguments: {names}")
