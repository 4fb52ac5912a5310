"""SymPy expressions into the graph; the one place that decides which nodes are supported."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce

import sympy as sp
from sympy.core.relational import Relational

from symtensor.activation.stable import Sech2, Sigmoid, Softplus, StdNormalCDF, Tanh

from ..errors import UnboundName, UnsupportedNode
from ..graph import Graph, Node
from .piecewise import piecewise

__all__ = ["FUNCTIONS", "Converter", "convert"]

#: SymPy function -> name of the function in the printers' tables
FUNCTIONS: dict[type[sp.Basic], str] = {
    sp.exp: "exp", sp.log: "log", sp.sin: "sin", sp.cos: "cos", sp.tan: "tan", sp.asin: "asin", sp.acos: "acos",
    sp.atan: "atan", sp.atan2: "atan2", sp.sinh: "sinh", sp.cosh: "cosh", sp.tanh: "tanh", sp.asinh: "asinh",
    sp.erf: "erf", sp.erfc: "erfc", sp.Abs: "abs", sp.sign: "sign",
    Tanh: "tanh", Sech2: "sech2", Sigmoid: "sigmoid", Softplus: "softplus",
}  # fmt: skip
_RELATIONS = {sp.StrictLessThan: "<", sp.LessThan: "<=", sp.Equality: "==", sp.Unequality: "!="}
_SWAPPED = {sp.StrictGreaterThan: "<", sp.GreaterThan: "<="}


def convert(expr: sp.Expr, names: Mapping[str, str], where: str, graph: Graph) -> Node:
    """The graph of an expression, node by node; `passes.stable` replaces what would overflow or cancel.

    Parameters
    ----------
    expr
        Any SymPy expression.
    names
        Symbol name -> name in the emitted code.
    where
        Kernel and output, for messages.

    Raises
    ------
    UnsupportedNode
        A node that no printer knows (gamma, KroneckerDelta, an undefined function, a power with a variable exponent).
    UnboundName
        A symbol that is not in `names`.
    """
    return Converter(dict(names), where, graph).convert(sp.sympify(expr))


@dataclass(slots=True)
class Converter:
    """One conversion. Each object of an expression is converted once, without recursion, in linear time.

    `cache` holds nodes that stand for symbols other than arguments; objects are remembered by identity, because equality
    and hashing of deep SymPy expressions are recursive (equal objects become the same node in the graph anyway).
    """

    names: dict[str, str]
    where: str
    graph: Graph
    cache: dict[sp.Basic, Node] | None = None
    _done: dict[int, Node] = field(default_factory=dict)
    _numeric: dict[int, bool] = field(default_factory=dict)
    _kept: list[sp.Basic] = field(default_factory=list)  # so that an identity is not given to another object

    def convert(self, expr: sp.Basic) -> Node:
        """The node of an expression and, before it, those of its parts."""
        if isinstance(expr, sp.Symbol) and self.cache and expr in self.cache:
            return self.cache[expr]
        if id(expr) not in self._done:
            self._kept.append(expr)
            self._note_numbers(expr)
            for part in self._parts(expr):
                self._done[id(part)] = self._node(part)
        return self._done[id(expr)]

    def _note_numbers(self, root: sp.Basic) -> None:
        """Which parts are numbers: asking each of them would look at every part below it again."""
        stack: list[tuple[sp.Basic, bool]] = [(root, False)]
        while stack:
            part, expanded = stack.pop()
            if id(part) in self._numeric:
                continue
            if not expanded and part.args:
                stack.append((part, True))
                stack.extend((argument, False) for argument in part.args)
                continue
            numeric = all(self._numeric[id(argument)] for argument in part.args)
            self._numeric[id(part)] = numeric and bool(getattr(part, "is_number", False))

    def _parts(self, root: sp.Basic) -> list[sp.Basic]:
        """The parts that need a node, arguments first: neither inside a number nor inside a piecewise function.

        Raises
        ------
        UnsupportedNode
            The outermost node that no printer knows.
        """
        order: dict[int, sp.Basic] = {}
        stack: list[tuple[sp.Basic, bool]] = [(root, False)]
        while stack:
            part, expanded = stack.pop()
            if id(part) in order or id(part) in self._done:
                continue
            if expanded or self._numeric[id(part)] or isinstance(part, sp.Symbol | sp.Piecewise):
                order[id(part)] = part
                continue
            if _handler(part) is None and type(part) not in FUNCTIONS:
                raise self.refuse(part)
            stack.append((part, True))
            stack.extend((argument, False) for argument in reversed(part.args))
        return list(order.values())

    def refuse(self, expr: sp.Basic, why: str = "") -> UnsupportedNode:
        """The error for a node."""
        text = str(expr)
        known = ", ".join(sorted({*FUNCTIONS.values(), "Max", "Min", "Heaviside", "Piecewise", "sqrt"}))
        return UnsupportedNode(
            f"{self.where}: cannot generate code for the node {type(expr).__name__} in {text[:80]}"
            f"{why or '; supported functions: ' + known}"
        )

    def _node(self, expr: sp.Basic) -> Node:
        if isinstance(expr, sp.Symbol) and self.cache and expr in self.cache:
            return self.cache[expr]
        if isinstance(expr, sp.Expr) and self._numeric[id(expr)] and not expr.free_symbols and not expr.atoms(sp.Dummy):
            return self._number(expr)
        handler = _handler(expr)
        if handler is not None:
            return handler(self, expr)
        name = FUNCTIONS.get(type(expr))
        if name is None:
            raise self.refuse(expr)
        return self.graph.call(name, *(self.convert(argument) for argument in expr.args))

    def _number(self, expr: sp.Expr) -> Node:
        if isinstance(expr, sp.Rational) and expr.is_finite:
            return self.graph.const(expr)
        if expr.atoms(sp.Function) - expr.atoms(*FUNCTIONS, StdNormalCDF, sp.Max, sp.Min):
            raise self.refuse(expr)
        exact = expr.xreplace({number: _exact(number) for number in expr.atoms(sp.Float)})
        if exact.is_real is not True or not exact.is_finite:
            value = sp.N(exact, 30)
            if not (value.is_Float and value.is_finite):
                raise self.refuse(expr, "; constants must be real and finite")
        return self.graph.const(exact)

    def _symbol(self, expr: sp.Symbol) -> Node:
        if expr.name not in self.names:
            raise UnboundName(
                f"{self.where}: symbol {expr.name!r} is not an argument; arguments: {', '.join(self.names) or 'none'}"
            )
        return self.graph.var(self.names[expr.name])

    def _sum(self, expr: sp.Add) -> Node:
        return self.graph.add(*(self.convert(term) for term in expr.args))

    def _product(self, expr: sp.Mul) -> Node:
        return self.graph.mul(*(self.convert(factor) for factor in expr.args))

    def _power(self, expr: sp.Pow) -> Node:
        base, exponent = expr.as_base_exp()
        if base is sp.E:
            return self.graph.call("exp", self.convert(exponent))
        if exponent.is_Float:
            exponent = _exact(exponent)
        if exponent.is_Integer:
            return self.graph.power(self.convert(base), int(exponent))
        if exponent.is_Rational and exponent.q == 2:
            return self.graph.power(self.graph.call("sqrt", self.convert(base)), int(exponent.p))
        if exponent.is_number and exponent.is_real:
            return self.graph.call("power", self.convert(base), self.graph.const(exponent))
        if base.is_number and base.is_positive:
            return self.graph.call("exp", self.graph.mul(self.convert(sp.log(base)), self.convert(exponent)))
        raise self.refuse(expr, "; a power needs a constant exponent (write exp(y*log(x)) if that is meant)")

    def _extremum(self, expr: sp.Max | sp.Min) -> Node:
        name = "maximum" if isinstance(expr, sp.Max) else "minimum"
        arguments = [self.convert(argument) for argument in sorted(expr.args, key=sp.default_sort_key)]
        return reduce(lambda left, right: self.graph.call(name, left, right), arguments[::-1])

    def _heaviside(self, expr: sp.Heaviside) -> Node:
        graph, argument = self.graph, self.convert(expr.args[0])
        at_zero = expr.args[1] if len(expr.args) > 1 else sp.Rational(1, 2)
        if at_zero == sp.Rational(1, 2):
            sign = graph.call("sign", argument)
            return graph.add(graph.mul(graph.const(at_zero), sign), graph.const(at_zero))
        zero, one = graph.const(0), graph.const(1)
        above = graph.node("compare", (zero, argument), "<")
        below = graph.node("compare", (argument, zero), "<")
        return graph.node("select", (above, one, graph.node("select", (below, zero, self.convert(at_zero)))))

    def _normal_cdf(self, expr: sp.Expr) -> Node:
        argument = self.convert(-expr.args[0] / sp.sqrt(2))
        return self.graph.mul(self.graph.const(sp.Rational(1, 2)), self.graph.call("erfc", argument))

    def _relation(self, expr: Relational) -> Node:
        left, right = (self.convert(side) for side in expr.args)
        if type(expr) in _SWAPPED:
            return self.graph.node("compare", (right, left), _SWAPPED[type(expr)])
        if type(expr) not in _RELATIONS:
            raise self.refuse(expr)
        return self.graph.node("compare", (left, right), _RELATIONS[type(expr)])

    def _logic(self, expr: sp.Basic) -> Node:
        name = {sp.And: "and", sp.Or: "or", sp.Not: "not"}[type(expr)]
        arguments = [self.convert(argument) for argument in sorted(expr.args, key=sp.default_sort_key)]
        if name == "not":
            return self.graph.node("not", arguments)
        return reduce(lambda left, right: self.graph.node(name, (left, right)), arguments)


def _exact(number: sp.Float) -> sp.Rational:
    """The rational number that a Float is (binary floats are exact)."""
    return sp.Rational(*number.as_integer_ratio()) if hasattr(number, "as_integer_ratio") else sp.Rational(number)


_HANDLERS: tuple[tuple[type | tuple[type, ...], Callable], ...] = (
    (sp.Symbol, Converter._symbol),
    (sp.Add, Converter._sum),
    (sp.Mul, Converter._product),
    (sp.exp, lambda self, expr: self.graph.call("exp", self.convert(expr.args[0]))),
    (sp.Pow, Converter._power),
    ((sp.Max, sp.Min), Converter._extremum),
    (sp.Heaviside, Converter._heaviside),
    (StdNormalCDF, Converter._normal_cdf),
    (sp.Piecewise, piecewise),
    (Relational, Converter._relation),
    ((sp.And, sp.Or, sp.Not), Converter._logic),
)


def _handler(expr: sp.Basic) -> Callable | None:
    """The method that converts nodes of this kind."""
    return _handler_of(type(expr))


@lru_cache(maxsize=256)
def _handler_of(wanted: type) -> Callable | None:
    return next((function for kind, function in _HANDLERS if issubclass(wanted, kind)), None)
