"""Contractions of legs as operators on polynomials in the fields.

Joining legs by lines of a propagator (f, g) in all ways is exp(d/df d/dg) (f != g) or exp((d/df)^2 / 2) (Wick). Lines
that run from a factor at an earlier time to a factor at a later time only are a star product: x legs of the later
factor meet response legs of the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from math import comb, factorial, perm
from operator import add

__all__ = ["Contraction", "Poly", "Powers", "contract", "index_contract", "star"]

#: The exponents of a monomial: those of the fields, then that of N.
Powers = tuple[int, ...]
Poly = dict[Powers, Fraction]
#: The numbers of the two fields that a line joins.
Contraction = tuple[int, int]


def _moved(key: Powers, changes: Iterable[tuple[int, int]]) -> Powers:
    out = list(key)
    for index, change in changes:
        out[index] += change
    return tuple(out)


def contract(poly: Poly, line: Contraction, sign: int = 1) -> Poly:
    """exp(sign * line) applied to `poly`: every number of lines, each joining two legs of the fields of `line`.

    `sign` = -1 undoes it: the polynomial becomes Wick ordered.

    >>> contract({(4, 0): Fraction(1)}, (0, 0))
    {(4, 0): Fraction(1, 1), (2, 0): Fraction(6, 1), (0, 0): Fraction(3, 1)}
    """
    first, second = line
    out: Poly = {}
    for key, value in poly.items():
        a, b = key[first], key[second]
        for lines in range((a // 2 if first == second else min(a, b)) + 1):
            ways = _pairings(a, lines) if first == second else _matchings(a, b, lines)
            target = _moved(key, ((first, -lines), (second, -lines)))
            term = value * (ways * sign**lines) if lines else value
            out[target] = out[target] + term if target in out else term
    return {k: c for k, c in out.items() if c}


@cache
def _pairings(legs: int, lines: int) -> int:
    return perm(legs, 2 * lines) // (factorial(lines) * 2**lines)


@cache
def _matchings(legs: int, others: int, lines: int) -> int:
    return comb(legs, lines) * comb(others, lines) * factorial(lines)


def index_contract(poly: Poly, line: Contraction, sign: int = 1) -> Poly:
    """The same for the N-component fields of `line`, whose powers stand for powers of a scalar product.

    One field: f^(2k) stands for (f.f)^k, and half the Laplacian of (f.f)^k is k (2k - 2 + N) (f.f)^(k-1). Two fields:
    f^k g^k stands for (f.g)^k, and d/df . d/dg of it is k (k - 1 + N) (f.g)^(k-1). The last exponent of a monomial
    counts N. Setting the fields to their first component afterwards leaves the legs in direction 1.

    >>> index_contract({(2, 0): Fraction(1)}, (0, 0))
    {(2, 0): Fraction(1, 1), (0, 1): Fraction(1, 1)}
    """
    first, second = line
    step = 2 if first == second else 1
    out: Poly = {}
    for key, value in poly.items():
        for lines, ways in _index_ways(key[first] // step, step, sign):
            for power, number in enumerate(ways):
                target = list(_moved(key, ((first, -lines), (second, -lines))))
                target[-1] += power
                out[tuple(target)] = out.get(tuple(target), Fraction(0)) + value * number
    return {k: c for k, c in out.items() if c}


@cache
def _index_ways(k: int, step: int, sign: int) -> tuple[tuple[int, tuple[Fraction, ...]], ...]:
    """For each number of lines the polynomial in N that (f.f)^k (step 2) or (f.g)^k (step 1) is multiplied by."""
    current: tuple[Fraction, ...] = (Fraction(1),)
    out: list[tuple[int, tuple[Fraction, ...]]] = [(0, current)]
    for lines in range(1, k + 1):
        left = k - lines + 1
        constant, slope = left * step * (left - 1), left
        scaled = Fraction(sign, lines)
        padded = (Fraction(0), *current, Fraction(0))
        current = tuple(scaled * (constant * padded[i + 1] + slope * padded[i]) for i in range(len(current) + 1))
        out.append((lines, current))
    return tuple(out)


def star(later: Poly, earlier: Poly, lines: tuple[Contraction, ...]) -> Poly:
    """`later` times `earlier` with any number of response lines between them.

    `lines` are pairs (x, xt): legs x of `later` are joined to legs xt of `earlier`.

    >>> star({(1, 0, 0): Fraction(1)}, {(0, 1, 0): Fraction(1)}, ((0, 1),))
    {(1, 1, 0): Fraction(1, 1), (0, 0, 0): Fraction(1, 1)}
    """
    out: Poly = {}
    for ka, ca in later.items():
        for kb, cb in earlier.items():
            value = ca * cb
            for ra, rb, ways in _joined(ka, kb, lines):
                key = tuple(map(add, ra, rb))
                term = value * ways if ways != 1 else value
                out[key] = out[key] + term if key in out else term
    return {k: c for k, c in out.items() if c}


def _joined(later: Powers, earlier: Powers, lines: tuple[Contraction, ...]) -> Iterator[tuple[Powers, Powers, int]]:
    if not lines:
        yield later, earlier, 1
        return
    x, xt = lines[0]
    for number in range(min(later[x], earlier[xt]) + 1):
        ways = _matchings(later[x], earlier[xt], number)
        for a, b, more in _joined(_moved(later, ((x, -number),)), _moved(earlier, ((xt, -number),)), lines[1:]):
            yield a, b, ways * more
