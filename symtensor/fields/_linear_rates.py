"""Rates as integer vectors over rates that are linearly independent over the rationals."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from symtensor.fields._float_rates import aligned, simplest_rational

__all__ = ["linear_rates"]

#: the largest integer in a relation that is looked for
LARGEST = 10**5

Expansion = dict[sp.Expr, Any]


def linear_rates(rates: Iterable[Any]) -> tuple[tuple[sp.Expr, ...], tuple[tuple[int, ...], ...]]:
    """Elementary rates and, for each given rate, its integer vector over them.

    A rate is a number or an expression. Expanded, it is a sum of rational multiples of products (``m``, ``sqrt(5)``,
    ``I*w``, ..); these products, divided by a common denominator, are the elementary rates. Two sums of rates are equal
    exactly if their vectors are: products that are not plain monomials (fractions, roots) are examined for relations such
    as ``a/(a + b) + b/(a + b) = 1`` at a random point, by the PSLQ algorithm. A floating-point number stands for the
    simplest rational within its rounding, and relations with small integers between floating-point rates (equal eigenvalues, one
    the sum of two others) are made exact: see `_float_rates`.

    Raises ValueError for a rate that is not finite.

    >>> a, b = sp.symbols("a b")
    >>> linear_rates([a + b / 2, 2 * a, 0])
    ((a, b/2), ((1, 1), (2, 0), (0, 0)))
    >>> linear_rates([sp.Rational(1, 2), 0.75])
    ((1/4,), ((2,), (3,)))
    >>> linear_rates([a / (a + b), b / (a + b), 1])[1]
    ((1, 0), (0, 1), (1, 1))
    """
    return _linear_rates(tuple(sp.sympify(rate, strict=True) for rate in rates))


@lru_cache(maxsize=256)
def _linear_rates(rates: tuple[sp.Expr, ...]) -> tuple[tuple[sp.Expr, ...], tuple[tuple[int, ...], ...]]:
    exact = aligned(dict.fromkeys(rates))
    known = {rate: _expansion(exact.get(rate, rate)) for rate in dict.fromkeys(rates)}
    relation = _relation(_products(known.values()))
    while relation is not None:
        known = {rate: _eliminated(expansion, relation) for rate, expansion in known.items()}
        relation = _relation(_products(known.values()))
    products = _products(known.values())
    unit = {a: math.lcm(*(int(e[a].q) for e in known.values() if a in e)) for a in products}
    vectors = tuple(tuple(int(known[rate].get(a, sp.Integer(0)) * unit[a]) for a in products) for rate in rates)
    return tuple(a / unit[a] for a in products), vectors


def _products(expansions: Iterable[Expansion]) -> list[sp.Expr]:
    return sorted({product for expansion in expansions for product in expansion}, key=sp.default_sort_key)


def _expansion(rate: sp.Expr) -> Expansion:
    """{product: rational coefficient} of the expanded rate."""
    exact = rate.xreplace({number: simplest_rational(number) for number in rate.atoms(sp.Float)})
    if exact.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
        raise ValueError(f"rate {rate} is not finite; a finite rate with a positive real part is required")
    terms = sp.expand(exact).as_coefficients_dict()
    return {product: sp.Rational(c) for product, c in terms.items() if c != 0}


def _relation(products: list[sp.Expr]) -> dict[sp.Expr, int] | None:
    """Integers, not all zero, whose combination of the products vanishes identically; None if there are none.

    Distinct monomials, I among their factors, are independent. Otherwise the products are evaluated at a random point,
    where a relation with small integers is an identity with overwhelming probability. Real and imaginary parts are added
    with a random factor, so that one real relation stands for both.
    """
    if len(products) < 2 or all(_is_monomial(product) for product in products):
        return None
    source = random.Random(len(products))
    digits = 40 + 8 * len(products)  # (2 LARGEST)^products combinations must not come near zero by chance
    symbols = sorted({s for product in products for s in product.free_symbols}, key=sp.default_sort_key)
    with mpmath.workdps(digits):
        point = {s: sp.Float(str(mpmath.mpf(source.getrandbits(500)) / 2**500 + 0.5), digits) for s in symbols}
        factor = mpmath.mpf(source.getrandbits(500)) / 2**500
        numbers = [mpmath.mpmathify(sp.N(product.xreplace(point), digits + 10)) for product in products]
        found: Any = mpmath.pslq(
            [mpmath.re(n) + factor * mpmath.im(n) for n in numbers],
            tol=mpmath.mpf(10) ** (12 - digits),
            maxcoeff=LARGEST,
            maxsteps=10**5,
        )
    return None if found is None else dict(zip(products, found))


def _is_monomial(product: sp.Expr) -> bool:
    bases = [factor.as_base_exp() for factor in sp.Mul.make_args(product)]
    return all(base is sp.I or base.is_Rational or base.is_Symbol for base, _ in bases) and all(n.is_Integer for _, n in bases)


def _eliminated(expansion: Expansion, relation: dict[sp.Expr, int]) -> Expansion:
    """The expansion without the first product of the relation."""
    gone = next(product for product, n in relation.items() if n)
    if gone not in expansion:
        return expansion
    kept = {product: c for product, c in expansion.items() if product != gone}
    for product, n in relation.items():
        if product != gone and n:
            kept[product] = kept.get(product, sp.Integer(0)) - expansion[gone] * sp.Rational(n, relation[gone])
    return {product: c for product, c in kept.items() if c != 0}
