r"""Moments and joint cumulants of several variables, exact, in time polynomial in the multiplicities.

With i any index with k_i > 0 and ``B(k, j) = binom(k_i - 1, j_i - 1) prod_{l != i} binom(k_l, j_l)``,

    m(k) = sum_{j <= k, j_i >= 1} B(k, j) kappa(j) m(k - j),        m(0) = 1,

which is ``d_i M = M d_i log M`` for M(s) = sum_k m(k) s^k/k!. Solved for kappa(k) it gives cumulants from moments.

References: Smith, The American Statistician 49 (1995) 217; Leonov & Shiryaev, Theory Probab. Appl. 4 (1959) 319.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import comb, prod
from typing import Any

import sympy as sp

from .coefficient_ring import CoefficientRing
from .gaussian_law import Covariance, GaussianLaw, Mean, natural
from .moment_errors import MomentError
from .moments import GaussianMoments

__all__ = ["cumulants_from_moments", "joint_cumulant", "moments_from_cumulants", "solve_cumulants"]

Powers = tuple[int, ...]


def cumulants_from_moments(moments: Mapping[Any, Any]) -> dict[Any, Any]:
    """kappa(k) for every multi-index k of `moments`: the coefficients of the logarithm of a moment series.

    Keys are exponents (integers for one variable, tuples for several). Every multi-index below a given one must be there,
    but the moment of order zero may be left out; it is 1.

    Raises:
        MomentError: a moment is missing, the one of order zero is not 1, or a key is no multi-index.

    Example:
        >>> m, v = sp.symbols("m v")
        >>> cumulants_from_moments({1: m, 2: v + m**2, 3: m**3 + 3 * m * v})
        {1: m, 2: v, 3: 0}
    """
    return _converted(moments, 1, _cumulant)


def moments_from_cumulants(cumulants: Mapping[Any, Any]) -> dict[Any, Any]:
    """m(k) for every multi-index k of `cumulants`: the coefficients of the exponential of a cumulant series.

    Raises:
        MomentError: a cumulant is missing below a given one, the one of order zero is not 0, or a key is no multi-index.

    Example:
        >>> moments_from_cumulants({1: 0, 2: 1, 3: 0, 4: 0})
        {1: Fraction(0, 1), 2: Fraction(1, 1), 3: Fraction(0, 1), 4: Fraction(3, 1)}
    """
    return _converted(cumulants, 0, _moment)


def joint_cumulant(
    variables: Mapping[Any, int] | Sequence[Any],
    law: Callable[[dict[Any, int]], Any] | Covariance,
    mean: Mean = None,
    fields: Sequence[Any] | None = None,
) -> Any:
    """The joint cumulant of variables with multiplicities, or of a list with repetitions.

    Args:
        variables: {name: multiplicity} or a list. With a covariance, each may be a polynomial in the Gaussian variables:
            cumulants of composite operators.
        law: a function that maps {name: power} to a moment, or the covariance of Gaussian variables (`gaussian_moment`), in
            the order of `fields` if it is a matrix.
        mean: the means, with a covariance.

    Raises:
        MomentError: no variable, or a multiplicity that is no natural number; and what the moments raise.

    Example:
        >>> x, y, c = sp.symbols("x y c")
        >>> joint_cumulant([x**2, y**2], {(x, x): 1, (y, y): 1, (x, y): c})
        2*c**2
        >>> joint_cumulant({"n": 3}, lambda powers: {1: 1, 2: 2, 3: 5}[powers["n"]])  # Poisson, Bell numbers
        Fraction(1, 1)
    """
    counts = dict(variables) if isinstance(variables, Mapping) else dict(Counter(variables))
    names, top = list(counts), tuple(natural(power, name) for name, power in counts.items())
    if not any(top):
        raise MomentError("a joint cumulant of no variable; name at least one with a multiplicity of 1 or more")
    moment = law if callable(law) and not isinstance(law, sp.Basic | GaussianLaw) else _gaussian(law, mean, fields, names)
    below = [k for k in itertools.product(*(range(n + 1) for n in top)) if any(k)]
    moments = {k: moment({name: power for name, power in zip(names, k) if power}) for k in below}
    ring, values = CoefficientRing.containing(list(moments.values()))
    return ring.write(solve_cumulants(dict(zip(below, values)), [top])[top])


def _gaussian(covariance: Covariance, mean: Mean, fields: Sequence[Any] | None, names: Sequence[Any]) -> Callable[..., Any]:
    if fields is None and not isinstance(covariance, Mapping | GaussianLaw):
        fields = names
    moments = GaussianMoments(GaussianLaw.read(covariance, mean, fields))
    symbols = {name: sp.Symbol(name) if isinstance(name, str) else sp.sympify(name) for name in names}
    return lambda powers: moments.expectation(sp.Mul(*(symbols[name] ** power for name, power in powers.items())))


def solve_cumulants(moments: Mapping[Powers, Any], wanted: Sequence[Powers]) -> dict[Powers, Any]:
    """The cumulants `wanted` and those below, for moments with ``+``, ``-`` and ``*`` (numbers, ring elements, series)."""
    found: dict[Powers, Any] = {}
    for k in sorted({j for top in wanted for j in itertools.product(*(range(n + 1) for n in top)) if any(j)}, key=sum):
        found[k] = _cumulant(k, found, moments)
    return found


def _splits(k: Powers) -> Iterator[tuple[int, Powers, Powers]]:
    """B(k, j), j and k - j for all 0 < j <= k with j_i >= 1, i the first index of k; j = k comes last."""
    i = next(i for i, power in enumerate(k) if power)
    for j in itertools.product(*(range(int(l == i), n + 1) for l, n in enumerate(k))):
        factor = prod(comb(n - (l == i), m - (l == i)) for l, (n, m) in enumerate(zip(k, j)))
        yield factor, j, tuple(n - m for n, m in zip(k, j))


def _cumulant(k: Powers, cumulants: Mapping[Powers, Any], moments: Mapping[Powers, Any]) -> Any:
    total = moments[k]
    for factor, j, rest in _splits(k):
        if any(rest):
            total = total - cumulants[j] * moments[rest] * factor
    return total


def _moment(k: Powers, moments: Mapping[Powers, Any], cumulants: Mapping[Powers, Any]) -> Any:
    total = cumulants[k]
    for factor, j, rest in _splits(k):
        if any(rest):
            total = total + cumulants[j] * moments[rest] * factor
    return total


def _converted(given: Mapping[Any, Any], at_zero: int, rule: Callable[..., Any]) -> dict[Any, Any]:
    keys = {key: _multi_index(key) for key in given}
    what = "moment" if at_zero else "cumulant"
    if len({len(k) for k in keys.values()}) > 1:
        raise MomentError(f"the keys of the {what}s have different lengths; give one power for each variable")
    ring, values = CoefficientRing.containing(list(given.values()))
    table = dict(zip(keys.values(), values))
    for k in list(table):
        if not any(k) and table[k] != at_zero * ring.one:
            raise MomentError(f"the {what} of order zero is {ring.write(table[k])}; it must be {at_zero}")
        for i, power in enumerate(k):
            lower = tuple(n - (l == i) for l, n in enumerate(k))
            if power and any(lower) and lower not in table:
                raise MomentError(f"the {what} {lower} is missing; every multi-index below {k} is needed, 0 included")
    found: dict[Powers, Any] = {}
    for k in sorted(table, key=sum):
        found[k] = rule(k, found, table) if any(k) else (1 - at_zero) * ring.one
    return {key: ring.write(found[k]) for key, k in keys.items()}


def _multi_index(key: Any) -> Powers:
    powers = key if isinstance(key, tuple) else (key,)
    return tuple(natural(power, key) for power in powers)
