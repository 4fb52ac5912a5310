r"""One-loop integrals at small external momenta in any dimension: expansion, average over the directions of the loop momentum.

    int d^dq/(2 pi)^d f(q) = K_d int_0^oo dq q^(d-1) <f>(q),     K_d = 2 / ((4 pi)^(d/2) Gamma(d/2)),

<q_i q_j> = q^2 delta_ij / d, and in general the average of a product of 2m components is q^(2m) / (d (d+2) .. (d+2m-2)) times the
sum over pairings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import sympy as sp

from symtensor.fields.errors import TheoryError
from symtensor.fields.momentum.vectors import ScalarProduct, multiplied_out, squared

if TYPE_CHECKING:
    from symtensor.fields.momentum.momentum_sum import MomentumSum

__all__ = ["MomentumSeries", "angular_constant", "small_momentum"]

#: the length of the loop momentum in an average
LENGTH = sp.Symbol("q", positive=True)
_SCALE = sp.Symbol("_scale")


def angular_constant(dimension: Any) -> Any:
    """K_d, the surface of the unit sphere over (2 pi)^d.

    >>> [angular_constant(d) for d in (1, 2, 3)]
    [1/pi, 1/(2*pi), 1/(2*pi**2)]
    """
    d = sp.sympify(dimension, strict=True)
    return sp.simplify(2 / ((4 * sp.pi) ** (d / 2) * sp.gamma(d / 2)))


@dataclass(frozen=True, slots=True)
class MomentumSeries:
    """The averages <f>(q) by power of the external momenta, functions of the length q and of d.

    >>> from symtensor.fields.momentum import momentum_theory
    >>> series = momentum_theory("kpz").vertex_function("xt,x", 1).at(1).small_momentum(2)
    >>> series.coefficients
    {0: 0, 1: 0, 2: D*lam**2*(d - 2)*k^2/(4*d*nu**2*q**2)}
    """

    coefficients: dict[int, Any]
    dimension: Any

    def integral(self, power: int, lower: Any = 0, upper: Any = sp.oo) -> Any:
        """K_d int dq q^(d-1) <f>(q) for one power, with a symbol K_d (`angular_constant`); factors without q in front."""
        d = self.dimension
        constant = sp.Symbol(f"K_{d}") if not sp.sympify(d).is_number else angular_constant(d)
        outside, inside = sp.factor_terms(self.coefficients[power]).as_independent(LENGTH, as_Add=False)
        if outside * inside == 0:
            return sp.S.Zero
        return constant * outside * sp.Integral(sp.powsimp(LENGTH ** (d - 1) * inside), (LENGTH, lower, upper))


def small_momentum(total: MomentumSum, order: int, omega: Any) -> MomentumSeries:
    """Expand the integrand of one loop in the external momenta, all scaled together, and average over directions.

    Raises: TheoryError for another number of loops, or if the integrand is singular at zero external momenta.
    """
    if total.loop_momenta != (sp.Symbol("q"),):
        raise TheoryError(f"the average over directions is known for one loop; this sum has {total.loops}: take .at(1)")
    (loop,) = total.loop_momenta
    found: dict[int, Any] = dict.fromkeys(range(order + 1), sp.S.Zero)
    for term in total:
        for power, value in _expanded(term.integrand_at(omega), loop, order).items():
            found[power] += _averaged(value, loop, total.theory.dimension)
    return MomentumSeries({power: sp.factor(value) for power, value in found.items()}, total.theory.dimension)


def _expanded(integrand: Any, loop: sp.Symbol, order: int) -> dict[int, Any]:
    """Coefficients of the powers of a common factor of the external momenta, by division of polynomials."""
    scaled = multiplied_out(integrand).replace(ScalarProduct, lambda a, b: _SCALE ** ((a != loop) + (b != loop)) * _as_symbol(a, b))
    above, below = sp.fraction(sp.together(scaled))
    numerator, denominator = (sp.Poly(part, _SCALE).all_coeffs()[::-1] for part in (above, below))
    lowest = next(n for n, c in enumerate(denominator) if sp.expand(c) != 0)
    if any(sp.expand(c) != 0 for c in numerator[:lowest]):
        raise TheoryError("the integrand is singular at zero external momenta; evaluate it at finite momenta instead")
    a, b = numerator[lowest:], denominator[lowest:]
    found: list[Any] = []
    for n in range(order + 1):
        rest = (a[n] if n < len(a) else sp.S.Zero) - sum(b[j] * found[n - j] for j in range(1, min(n, len(b) - 1) + 1))
        found.append(sp.cancel(rest / b[0]))
    return dict(enumerate(found))


def _as_symbol(first: Any, second: Any) -> Any:
    """A scalar product of single vectors as a symbol that polynomials can be made of."""
    return sp.Symbol(f"{first}*{second}", positive=first == second)


def _averaged(value: Any, loop: sp.Symbol, dimension: Any) -> Any:
    """The average over the directions of the loop momentum, a function of its length and of the external momenta."""
    symbols = sorted(value.free_symbols, key=str)
    mixed = {s: other for s in symbols if (other := _other(s, loop)) is not None}
    restored = {s: _vectors(s) for s in symbols if s not in mixed and "*" in s.name}
    above, below = sp.fraction(sp.together(value))
    total = sp.S.Zero
    for powers, coefficient in sp.Poly(above, *mixed).terms() if mixed else [((), above)]:
        vectors = [other for power, other in zip(powers, mixed.values()) for _ in range(power)]
        total += coefficient * _pairings(vectors, dimension)
    result = (total / below).subs(restored)
    return sp.cancel(result.xreplace({squared(loop): LENGTH**2}))


def _vectors(symbol: sp.Symbol) -> Any:
    first, second = (sp.Symbol(name) for name in symbol.name.split("*"))
    return ScalarProduct(first, second)


def _other(symbol: sp.Symbol, loop: sp.Symbol) -> sp.Symbol | None:
    """The external vector in a product with the loop momentum."""
    names = symbol.name.split("*")
    if len(names) != 2 or names.count(loop.name) != 1:
        return None
    return sp.Symbol(names[0] if names[1] == loop.name else names[1])


def _pairings(vectors: Sequence[sp.Symbol], dimension: Any) -> Any:
    """The average of the product of (v . q) over the directions of q."""
    if len(vectors) % 2:
        return sp.S.Zero
    m, dot = len(vectors) // 2, cast(Any, ScalarProduct)
    normal = sp.Mul(*(dimension + 2 * j for j in range(m)))
    products: list[Any] = [math.prod(dot(a, b) for a, b in pairs) for pairs in _matchings(list(vectors))]
    return LENGTH ** (2 * m) / normal * sp.Add(*products)


def _matchings(vectors: list[sp.Symbol]) -> Iterator[list[tuple[sp.Symbol, sp.Symbol]]]:
    if not vectors:
        yield []
        return
    for at in range(1, len(vectors)):
        rest = vectors[1:at] + vectors[at + 1 :]
        for pairs in _matchings(rest):
            yield [(vectors[0], vectors[at]), *pairs]
