"""Exact moments of contraction networks of Gaussian tensors, as polynomials in the sizes, and the Theta that follows.

    E M^2 exactly by Wick's theorem, then M = Theta_p(sqrt(E M^2)) for a polynomial of fixed degree (rule R8c).

The sum over pairings is grouped by isomorphism (`symtensor.bounds._wick`), so the cost is the number of classes of partial
pairings, not (2k - 1)!!: E tr (W W^T)^10 has 6.5e8 pairings and a few hundred classes. Beyond ``max_states`` classes the
sum is refused with an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from math import factorial, prod
from operator import mul
from typing import Any

import sympy

from ._leading import leading_scale
from ._wick import WickCostError, WickEngine, pairings
from .network import DELTA, GaussianNetwork, NetworkError, NetworkSum, check_compatible
from .scale import Scale

__all__ = [
    "MAX_STATES",
    "GaussianNetwork",
    "MomentScale",
    "NetworkError",
    "NetworkSum",
    "WickCostError",
    "mixed_moment",
    "moment",
    "moment_scale",
    "pairing_count",
    "second_moment",
    "trace_moment",
    "variance",
]

MAX_STATES = 100_000
Network = GaussianNetwork | NetworkSum


def moment(network: Network, power: int = 1, *, max_states: int = MAX_STATES) -> sympy.Expr:
    """E M^power of a scalar network, exactly.

    Raises:
        NetworkError: free indices (their moments are `second_moment` and `trace_moment`), or a power below 1.
        WickCostError: more than ``max_states`` classes of partial pairings.

    Example:
        >>> f = GaussianNetwork((("v", "i"), ("w", "i")), sizes={"i": "n"}, coefficient="1/sqrt(n)")
        >>> moment(f, 2), moment(f, 4)
        (1, 3 + 6/n)
    """
    return mixed_moment(*([network] * power), max_states=max_states) if power >= 1 else _refuse_power(power)


def _refuse_power(power: int) -> sympy.Expr:
    raise NetworkError(f"a moment needs a power of at least 1, given {power}")


def mixed_moment(*networks: Network, max_states: int = MAX_STATES) -> sympy.Expr:
    """E of the product of scalar networks; tensors of equal name are the same tensor."""
    if not networks:
        raise NetworkError("a mixed moment needs at least one network")
    for network in networks:
        if network.free:
            raise NetworkError(f"the free indices {', '.join(network.free)} are left: sum them, or use second_moment for norms")
    return expectation_of([(prefix(f"{k}.", n), ()) for k, n in enumerate(networks)], max_states)


def second_moment(network: Network, *, max_states: int = MAX_STATES) -> sympy.Expr:
    """E M^2 of a scalar, E ||M||_F^2 of a tensor network.

    Example:
        >>> W = GaussianNetwork.from_einsum("ij,kj->ik", ("W", "W"), {"i": "n", "k": "n", "j": "p"})
        >>> second_moment(W)
        n**2*p + n*p**2 + n*p
    """
    left, right = prefix("0.", network), prefix("1.", network)
    joined = tuple((f"0.{i}", f"1.{i}") for i in network.free)
    return expectation_of([(left, ()), (right, joined)], max_states)


def variance(network: Network, *, max_states: int = MAX_STATES) -> sympy.Expr:
    """Var M of a scalar, E ||M - E M||_F^2 of a tensor network.

    ||E M||_F^2 is E <M, M'> with an independent copy M', so free indices need no symbolic mean.
    """
    left, right = prefix("0.", network), prefix("1.", network)
    copy = NetworkSum(tuple(_independent(term) for term in right.terms))
    joined = tuple((f"0.{i}", f"1.{i}") for i in network.free)
    squared_mean = expectation_of([(left, ()), (copy, joined)], max_states)
    return tidy(second_moment(network, max_states=max_states) - squared_mean)


def trace_moment(network: Network, k: int, *, max_states: int = MAX_STATES) -> sympy.Expr:
    """E tr (M M^T)^k of a network with two free indices, rows first.

    Example:
        >>> W = GaussianNetwork((("W", "i j"),), sizes={"i": "m", "j": "n"}, summed=())
        >>> trace_moment(W, 2)
        m**2*n + m*n**2 + m*n
    """
    if len(network.free) != 2 or k < 1:
        raise NetworkError(f"tr (M M^T)^k needs two free indices and k >= 1, given {len(network.free)} free indices and k = {k}")
    row, column = network.free
    parts: list[tuple[NetworkSum, tuple[tuple[str, str], ...]]] = []
    for step in range(2 * k):
        shared, held = (column, f"{step - 1}.{column}") if step % 2 else (row, f"{step - 1}.{row}")
        joins = [(held, f"{step}.{shared}")] if step else []
        if step == 2 * k - 1:
            joins.append((f"{step}.{row}", f"0.{row}"))
        parts.append((prefix(f"{step}.", network), tuple(joins)))
    return expectation_of(parts, max_states)


def pairing_count(*networks: GaussianNetwork) -> int:
    """Number of pairings of the product: what an enumeration would cost.

    Example:
        >>> W = GaussianNetwork((("W", "i j"),), sizes={"i": "n", "j": "n"})
        >>> pairing_count(*[W] * 20)
        654729075
    """
    names = [name for network in networks for name, _ in network.random]
    return pairings([names.count(name) for name in dict.fromkeys(names)])


@dataclass(frozen=True, slots=True)
class MomentScale:
    """The size of a fixed-degree Gaussian polynomial (rule R8c): M = Theta_p(scale), in Frobenius norm with free indices.

    Attributes:
        scale: sqrt(E ||M||_F^2) up to a constant.
        second_moment: E ||M||_F^2, exactly.
        constant: limit of sqrt(E ||M||_F^2) / scale; None with several sizes that are not related.
        degree: the degree in the Gaussian entries.
        assumptions: signs of leading coefficients that could not be decided; E M^2 >= 0 leaves only zeros to exclude.
    """

    scale: Scale
    second_moment: sympy.Expr
    constant: sympy.Expr | None
    degree: int
    assumptions: tuple[str, ...] = ()

    def _repr_latex_(self) -> str:
        moment, constant = sympy.latex(self.second_moment), "" if self.constant is None else f",\\ c = {sympy.latex(self.constant)}"
        assumed = "".join(rf",\ \text{{assumed }} {a}" for a in self.assumptions)
        return rf"$\displaystyle \Theta_p\left({self.scale.latex()}\right),\ E\|M\|^2 = {moment}{constant}{assumed}$"


def moment_scale(network: Network, *, growing: Iterable[str] | None = None, max_states: int = MAX_STATES) -> MomentScale:
    """The scale of M by its exact second moment.

    Args:
        growing: names of the sizes that tend to infinity, all size names by default; the others stay fixed.

    Raises:
        NetworkError: M vanishes identically, so no scale exists.

    Example:
        >>> n = sympy.Symbol("n", positive=True)
        >>> dot = GaussianNetwork((("u", "i"), ("v", "i")), sizes={"i": n})
        >>> moment_scale(dot)
        MomentScale(scale=sqrt(n), second_moment=n, constant=1, degree=2, assumptions=())
    """
    names = frozenset(network.size_names if growing is None else growing)
    value = second_moment(network, max_states=max_states)
    return scale_of_moment(value, names, network.degree)


def scale_of_moment(value: sympy.Expr, names: frozenset[str], degree: int) -> MomentScale:
    """Square root of a second moment that is a rational function of the sizes ``names``."""
    if value == 0:
        raise NetworkError("the second moment is 0: the polynomial vanishes identically and has no scale")
    top, bottom = (sympy.expand(part) for part in sympy.fraction(sympy.together(value)))
    (above, assumed), (below, further) = leading_scale(top, names), leading_scale(bottom, names)
    scale = (above / below) ** sympy.S.Half
    return MomentScale(scale, value, _constant(top, bottom, names), degree, (*assumed, *further))


def _constant(top: sympy.Expr, bottom: sympy.Expr, names: frozenset[str]) -> sympy.Expr | None:
    sizes = [s for s in (top / bottom).free_symbols if s.name in names]  # type: ignore[attr-defined]
    if not sizes:
        return sympy.sqrt(top / bottom)
    if len(sizes) > 1 or not (top.is_polynomial(*sizes) and bottom.is_polynomial(*sizes)):
        return None
    return sympy.sqrt(sympy.factor(sympy.LC(top, sizes[0]) / sympy.LC(bottom, sizes[0])))


def prefix(text: str, network: Network) -> NetworkSum:
    """A copy with ``text`` in front of every index."""
    return NetworkSum(tuple(term.renamed({i: text + i for i, _ in term.sizes}) for term in network.terms))


def _independent(term: GaussianNetwork) -> GaussianNetwork:
    names = {name: f"{name}'" for name, _ in term.random}
    factors = tuple((names.get(name, name), held) for name, held in term.factors)
    variances = {names.get(name, name): value for name, value in term.variances}
    return GaussianNetwork(factors, term.sizes, term.summed, term.coefficient, variances, term.gram)


def expectation_of(parts: list[tuple[NetworkSum, tuple[tuple[str, str], ...]]], max_states: int) -> sympy.Expr:
    """E of a product of sums with index identifications, all indices summed; equal factors are grouped."""
    every = [term for part, _ in parts for term in part.terms]
    check_compatible(every)
    engine, weights = _engine(every, max_states)
    deltas = [pair for _, joins in parts for pair in joins]
    total: dict[sympy.Expr, dict[tuple[int, ...], int]] = {}
    for count, chosen in _products([part.terms for part, _ in parts], interchangeable=not deltas):
        factors = [f for term in chosen for f in term.factors if f[0] != DELTA]
        inner = [f[1] for term in chosen for f in term.factors if f[0] == DELTA]
        indices = [i for term in chosen for i, _ in term.sizes]
        found = engine.expectation(factors, [*deltas, *((i, j) for i, j in inner)], indices)
        scaled = reduce(mul, (_weight(term) for term in chosen), sympy.S.One)
        part = total.setdefault(scaled, {})
        for mono, value in found.items():
            part[mono] = part.get(mono, 0) + count * value
    return tidy(sympy.Add(*(scaled * _polynomial(part, weights) for scaled, part in total.items())))


def _products(choices: list[tuple[GaussianNetwork, ...]], interchangeable: bool) -> Iterable[tuple[int, list[GaussianNetwork]]]:
    """All products of one term per sum; a power of one sum is expanded by multinomial coefficients."""
    copies, terms = len(choices), len(choices[0])
    same = interchangeable and all(len(c) == terms for c in choices) and _equal_sums(choices)
    if not same:
        ranges: list[list[GaussianNetwork]] = [[]]
        for options in choices:
            ranges = [[*done, term] for done in ranges for term in options]
        yield from ((1, chosen) for chosen in ranges)
        return
    for numbers in combinations_with_replacement(range(terms), copies):
        ways = factorial(copies) // prod(factorial(numbers.count(i)) for i in set(numbers))
        yield ways, [choices[place][number] for place, number in enumerate(numbers)]


def _equal_sums(choices: list[tuple[GaussianNetwork, ...]]) -> bool:
    """Whether all sums are copies that differ by the prefix of their indices."""
    stripped = [[(t.factors, t.coefficient, t.summed) for t in _bare(options)] for options in choices]
    return all(found == stripped[0] for found in stripped)


def _bare(options: tuple[GaussianNetwork, ...]) -> list[GaussianNetwork]:
    return [term.renamed({i: i.partition(".")[2] for i, _ in term.sizes}) for term in options]


def _weight(term: GaussianNetwork) -> sympy.Expr:
    """The coefficient times a standard deviation per Gaussian factor."""
    variances = dict(term.variances)
    counts = [name for name, _ in term.random]
    powers = (variances.get(name, sympy.S.One) ** sympy.Rational(counts.count(name), 2) for name in dict.fromkeys(counts))
    return reduce(mul, powers, term.coefficient)


def _engine(terms: list[GaussianNetwork], max_states: int) -> tuple[WickEngine, list[sympy.Expr]]:
    gram = {pair: value for term in terms for pair, value in term.gram}
    fixed = {name for pair in gram for name in pair}
    values = sorted({size for term in terms for _, size in term.sizes}, key=sympy.default_sort_key)
    numbers = {size: number for number, size in enumerate(values)}
    sizes: dict[Any, int] = {i: numbers[size] for term in terms for i, size in term.sizes}
    inner = {pair: len(values) + number for number, pair in enumerate(sorted(gram))}
    weights = [*values, *(gram[pair] for pair in sorted(gram))]
    names = {name for term in terms for name, _ in term.random}
    return WickEngine(names, fixed, sizes, inner, len(weights), max_states), weights


def _polynomial(part: dict[tuple[int, ...], int], weights: list[sympy.Expr]) -> sympy.Expr:
    return sympy.Add(*(count * sympy.Mul(*(w**e for w, e in zip(weights, mono, strict=True) if e)) for mono, count in part.items()))


def tidy(value: sympy.Expr) -> sympy.Expr:
    """Expanded: sums of monomials with exact coefficients."""
    return sympy.expand(value)
