r"""Derivative contractions C_{D,d} of a polynomial network function, as Gaussian networks with exact moments.

    C_{D,d} = eta^{D/2+d} / (D! d!)  grad^{D+d} F . (grad F)^{(x) d},   D slots left free     (weak_correlations, section 2)

F is multilinear in the factors of its terms, so grad^k F removes k factors, and a slot contracted with grad F puts the
gradient network in the place of the removed factor. Two model builders are here: deep linear networks, and one hidden
layer with a polynomial activation; both with one input of squared norm q = |x|^2 / n_0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial
from typing import Any

import sympy

from ._collect import collected
from ._input import exact
from .network import DELTA, GaussianNetwork, Indices, NetworkError, NetworkSum
from .network_moments import MAX_STATES, MomentScale, mixed_moment, scale_of_moment, second_moment, tidy

__all__ = ["DerivativeContraction", "deep_linear_network", "derivative_contraction", "one_hidden_network", "polynomial_of"]

ETA = sympy.Symbol("eta", positive=True)


@dataclass(frozen=True, slots=True)
class DerivativeContraction:
    """C_{D,d} as blocks: one network for each choice of the parameter tensors that the free slots belong to.

    Attributes:
        D: number of free slots.
        d: number of slots contracted with the gradient.
        blocks: (parameter tensors of the free slots, network whose free indices are their indices).
    """

    D: int
    d: int
    blocks: tuple[tuple[Indices, NetworkSum], ...]

    @property
    def degree(self) -> int:
        """Degree in the Gaussian parameters (of a component, if slots are free)."""
        return max((network.degree for _, network in self.blocks), default=0)

    @property
    def size_names(self) -> frozenset[str]:
        """Names of the symbols in the sizes."""
        return frozenset().union(*(network.size_names for _, network in self.blocks))

    def second_moment(self, max_states: int = MAX_STATES) -> sympy.Expr:
        """E C^2, for free slots E ||C||_F^2, exactly."""
        return tidy(sympy.Add(*(second_moment(network, max_states=max_states) for _, network in self.blocks)))

    def mean(self, max_states: int = MAX_STATES) -> sympy.Expr:
        """E C for D = 0."""
        if self.D:
            raise NetworkError(f"the mean of C_{{{self.D},{self.d}}} is a tensor; its norm and second moment are scalars")
        return mixed_moment(self.blocks[0][1], max_states=max_states) if self.blocks else sympy.S.Zero

    def variance(self, max_states: int = MAX_STATES) -> sympy.Expr:
        """Var C for D = 0."""
        return tidy(self.second_moment(max_states) - self.mean(max_states) ** 2)

    def moment_scale(self, growing: Iterable[str] | None = None, max_states: int = MAX_STATES) -> MomentScale:
        """C = Theta_p(scale) by R8c: the absolute value for D = 0, the Euclidean norm for D = 1, Frobenius for D >= 2."""
        if not self.blocks:
            raise NetworkError(f"C_{{{self.D},{self.d}}} vanishes identically: the function has too low a degree")
        names = frozenset(self.size_names if growing is None else growing)
        return scale_of_moment(self.second_moment(max_states), names, self.degree)


def derivative_contraction(
    function: GaussianNetwork | NetworkSum, D: int, d: int, *, eta: Any = ETA, parameters: Iterable[str] | None = None
) -> DerivativeContraction:
    """C_{D,d} of a scalar function that is a polynomial in its Gaussian parameters.

    Args:
        function: F at initialisation.
        D: free slots.
        d: slots contracted with grad F.
        eta: learning rate.
        parameters: the tensors that count as parameters; all Gaussian ones by default.

    Raises:
        NetworkError: negative D or d, or a function with free indices.

    Example:
        >>> q, eta = sympy.symbols("q eta", positive=True)
        >>> derivative_contraction(deep_linear_network(1), 0, 2).second_moment()
        eta**4*q**3/n**2
    """
    total = NetworkSum(function.terms)
    if total.free or D < 0 or d < 0:
        raise NetworkError(f"C_{{D,d}} needs a scalar function and D, d >= 0; given free indices {total.free}, D = {D}, d = {d}")
    trained = {name for term in total.terms for name, _ in term.random}
    if parameters is not None:
        unknown = set(parameters) - trained
        if unknown:
            raise NetworkError(f"{sorted(unknown)[0]} is no Gaussian tensor of the function; it has {', '.join(sorted(trained))}")
        trained = set(parameters)
    factor = exact(eta) ** (sympy.Rational(D, 2) + d) / factorial(D)
    blocks: dict[Indices, list[GaussianNetwork]] = {}
    for term in total.terms:
        where = [i for i, (name, _) in enumerate(term.factors) if name in trained]
        for free in permutations(where, D):
            for contracted in combinations([i for i in where if i not in free], d):
                for network in _replaced(term, free, contracted, total):
                    kinds = tuple(term.factors[i][0] for i in free)
                    blocks.setdefault(kinds, []).append(network * factor)
    return DerivativeContraction(D, d, tuple((kinds, NetworkSum(collected(found))) for kinds, found in sorted(blocks.items())))


def _replaced(
    term: GaussianNetwork, free: Iterable[int], contracted: tuple[int, ...], function: NetworkSum
) -> Iterable[GaussianNetwork]:
    """The term with its ``free`` factors turned into free slots and the ``contracted`` ones into gradients of F."""
    base = _Parts.of(term, "t")
    for slot, position in enumerate(free):
        base.open(position, slot)
    partial = [base]
    for copy, position in enumerate(contracted):
        partial = [grown for parts in partial for grown in _with_gradient(parts, position, function, f"g{copy}")]
    for parts in partial:
        yield parts.network()


def _with_gradient(parts: _Parts, position: int, function: NetworkSum, tag: str) -> Iterable[_Parts]:
    factor = parts.factors[position]
    assert factor is not None
    name, held = factor
    for term in function.terms:
        for at, (other, _) in enumerate(term.factors):
            if other == name:
                yield parts.grown(position, held, _Parts.of(term, tag), at)


@dataclass(slots=True)
class _Parts:
    """A network under construction; removed factors are None so that positions stay."""

    term: GaussianNetwork
    factors: list[tuple[str, Indices] | None]
    sizes: dict[str, sympy.Expr]
    free: tuple[str, ...]
    coefficient: sympy.Expr
    deltas: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, term: GaussianNetwork, tag: str) -> _Parts:
        renamed = term.renamed({i: f"{tag}.{i}" for i, _ in term.sizes})
        return cls(renamed, list(renamed.factors), dict(renamed.sizes), (), term.coefficient, ())

    def open(self, position: int, slot: int) -> None:
        """Remove a factor; its indices become the free indices of a slot."""
        factor = self.factors[position]
        assert factor is not None
        for place, index in enumerate(factor[1]):
            label = f"s{slot}.{place}"
            self.sizes[label] = self.sizes[index]
            self.free += (label,)
            self.deltas += ((label, index),)
        self.factors[position] = None

    def grown(self, position: int, held: Indices, gradient: _Parts, at: int) -> _Parts:
        removed = gradient.factors[at]
        assert removed is not None
        factors = list(self.factors)
        factors[position] = None
        factors += [f for place, f in enumerate(gradient.factors) if place != at]
        joins = tuple(zip(held, removed[1], strict=True))
        coefficient = self.coefficient * gradient.coefficient
        return _Parts(self.term, factors, self.sizes | gradient.sizes, self.free, coefficient, self.deltas + joins)

    def network(self) -> GaussianNetwork:
        factors = [f for f in self.factors if f is not None] + [(DELTA, pair) for pair in self.deltas]
        summed = tuple(i for i in self.sizes if i not in self.free)
        return GaussianNetwork(tuple(factors), self.sizes, summed, self.coefficient, self.term.variances, self.term.gram)


def deep_linear_network(hidden: int, *, width: Any = "n", q: Any = None) -> GaussianNetwork:
    """f = n^{-L/2} v W^L .. W^2 w of a deep linear network with L hidden layers; w_i = W^1_i . x / sqrt(n_0) has variance q.

    The first layer enters through its preactivation only, which has the metric q: its factor is sqrt(q) w_i, w ~ N(0, 1).
    """
    if not isinstance(hidden, int) or isinstance(hidden, bool) or hidden < 1:
        raise NetworkError(
            f"a deep network needs a fixed number of hidden layers, an integer >= 1, given {hidden!r}; a depth that grows with the "
            "width has no definite bound (long_product)"
        )
    factors = [("v", (f"i{hidden}",))]
    factors += [(f"W{layer}", (f"i{layer}", f"i{layer - 1}")) for layer in range(hidden, 1, -1)]
    factors.append(("w", ("i1",)))
    sizes = {f"i{layer}": width for layer in range(1, hidden + 1)}
    size = GaussianNetwork((), sizes).sizes[0][1]
    value = sympy.Symbol("q", positive=True) if q is None else exact(q)
    return GaussianNetwork(tuple(factors), sizes, None, sympy.sqrt(value) * size ** sympy.Rational(-hidden, 2))


def one_hidden_network(activation: Any, *, width: Any = "n", q: Any = None) -> NetworkSum:
    """f = n^{-1/2} sum_i a_i phi(sqrt(q) w_i) with a polynomial phi; a, w ~ N(0, 1).

    Args:
        activation: a polynomial: text such as ``"x + x**3/6"``, a SymPy expression in one symbol, or coefficients.
    """
    coefficients = polynomial_of(activation)
    value = sympy.Symbol("q", positive=True) if q is None else exact(q)
    size = GaussianNetwork((), {"i": width}).sizes[0][1]
    terms = []
    for power, c in enumerate(coefficients):
        if c != 0:
            factors = (("a", ("i",)), *[("w", ("i",))] * power)
            terms.append(GaussianNetwork(factors, {"i": width}, None, c * value ** sympy.Rational(power, 2) / sympy.sqrt(size)))
    return NetworkSum(tuple(terms))


def polynomial_of(activation: Any) -> tuple[sympy.Expr, ...]:
    """Coefficients of a polynomial activation, lowest first.

    Raises:
        NetworkError: a non-polynomial: only O by Chebyshev holds for it (R8c), and its moments are no finite Wick sums.
    """
    if isinstance(activation, Mapping):
        top = max(activation)
        return tuple(exact(activation.get(k, 0)) for k in range(top + 1))
    if isinstance(activation, tuple | list):
        return tuple(map(exact, activation))
    if isinstance(activation, str):
        from symtensor.activation import activation as named

        activation = named(activation).expr
    value = exact(getattr(activation, "expr", activation))
    symbols = [s for s in value.free_symbols if s.name in ("x", "h", "z")] or sorted(value.free_symbols, key=str)
    if len(symbols) != 1 or not value.is_polynomial(symbols[0]):
        raise NetworkError(
            f"{value} is no polynomial in one variable: R8c needs a polynomial of fixed degree; for a Lipschitz function "
            "there is only O by Chebyshev, M = E M + O(sqrt(Var M))"
        )
    return tuple(reversed(sympy.Poly(value, symbols[0]).all_coeffs()))
