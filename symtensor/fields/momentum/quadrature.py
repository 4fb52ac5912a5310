r"""Numbers for loop integrals over momenta, with an error: Gauss-Legendre rules on the mapped half line, doubled until they agree.

    one dimension, any number of loops      q = s tan(x) for each loop momentum, opposite momenta averaged
    integer dimension, one loop             length q = s tan(x), angle to the external momentum with weight sin^(d-2)

With a cut-off the lengths of the loop momenta end there. Rational integrands are analytic in x, so that the error falls
exponentially; an integral that does not exist does not settle, which is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symtensor.fields.errors import TheoryError
from symtensor.fields.momentum.momentum_term import TIME
from symtensor.fields.momentum.vectors import ScalarProduct, in_one_dimension, multiplied_out, squared

if TYPE_CHECKING:
    from symtensor.fields.momentum.momentum_sum import MomentumSum

__all__ = ["MomentumValue", "evaluate"]

#: the most points of a rule, and the number that is evaluated at a time
MOST_POINTS, CHUNK = 2**23, 2**18


class DivergentMomentumIntegral(TheoryError):
    """The values of finer and finer rules do not settle."""


@dataclass(frozen=True, slots=True)
class MomentumValue:
    """A number: the value, the difference to a coarser rule, and the number of points of the rule."""

    value: complex
    error: float
    points: int

    @property
    def real(self) -> float:
        """The real part."""
        return float(np.real(self.value))


def evaluate(
    total: MomentumSum, values: Mapping[str, Any], dimension: Any = None, cutoff: float | None = None,
    tolerance: float | None = None, scale: float | None = None,
) -> MomentumValue:
    """The sum over all orders of a `MomentumSum` at numbers.

    Args:
        values: parameters, k (or k1, ..; numbers, in more than one dimension the length of k), omega or t where two times are
            kept: with t, the function of time without contact terms.
        dimension: an integer, where the theory leaves it open.
        cutoff: the largest length of loop momenta; none if not given.
        tolerance: relative difference between a rule and one of half the nodes at which the finer one is accepted; by default
            1e-9 for one loop in one dimension, 1e-6 in more, 1e-5 for several loops.
        scale: a length at which the integrand changes; by default |k|, or 1.

    Raises: TheoryError for missing values, or for several loops in more than one dimension; DivergentMomentumIntegral if the
        integral does not settle, as without a cut-off if it diverges.

    >>> from symtensor.fields.momentum import momentum_theory
    >>> shift = momentum_theory("kpz").vertex_function("xt,x", 1).at(1)
    >>> round(shift.evaluate({"nu": 1, "D": 1, "lam": 1, "k": 2, "omega": 0}, dimension=1).real, 9)  # -lam^2 D |k| / (4 nu^2)
    -0.5
    """
    d = _dimension(total, dimension)
    accepted = tolerance or (1e-9 if d == 1 and total.loops <= 1 else 1e-6 if total.loops <= 1 else 1e-5)
    numbers = {name: _number(value) for name, value in values.items()}
    _check_values(total, numbers)
    parts = []
    for loops, part in total.by_order().items():
        integrand = part.integrand if "t" in numbers else part.integrand_at()
        if integrand != 0:
            parts.append(_one_order(part, integrand.subs(total.theory.dimension, d), loops, d, numbers, cutoff, accepted, scale))
    return MomentumValue(
        sum((p.value for p in parts), 0.0), sum(p.error for p in parts), max((p.points for p in parts), default=0)
    )


def _dimension(total: MomentumSum, dimension: Any) -> int:
    chosen = total.theory.dimension if dimension is None else dimension
    if not sp.sympify(chosen, strict=True).is_Integer or int(chosen) < 1:
        raise TheoryError(f"dimension={chosen}: numbers need an integer dimension, 1 or more")
    if total.theory.dimension.is_Integer and int(chosen) != total.theory.dimension:
        raise TheoryError(f"{total.theory.name} lives in dimension {total.theory.dimension}, not {chosen}")
    if int(chosen) > 1 and (total.loops > 1 or len(total.legs) > 2):
        raise TheoryError(
            "more than one dimension is covered for one loop and one external momentum; use dimension=1, or integrate .expr"
        )
    return int(chosen)


def _number(value: Any) -> complex | float:
    found = complex(value)
    return found.real if found.imag == 0 else found


def _check_values(total: MomentumSum, numbers: Mapping[str, Any]) -> None:
    needed = {s.name for s in total.theory.parameters} | {s.name for p in total.external for s in _symbols(p)}
    if total.theory.stochastic and total.times == "t,0" and "t" not in numbers:
        needed.add("omega")
    missing, stray = sorted(needed - set(numbers)), sorted(set(numbers) - needed - {"t", "omega"})
    if missing or stray:
        what = f"no value for {', '.join(missing)}" if missing else f"{', '.join(stray)} does not occur"
        raise TheoryError(f"{what}; the values wanted are {', '.join(sorted(needed))}")


def _symbols(expression: Any) -> set[Any]:
    return expression.free_symbols


def _one_order(
    part: MomentumSum, integrand: Any, loops: int, d: int, numbers: Mapping[str, Any], cutoff: float | None, tolerance: float,
    scale: float | None,
) -> MomentumValue:  # fmt: skip
    flat = in_one_dimension(integrand) if d == 1 or not loops else multiplied_out(integrand)
    known = {sp.Symbol("omega", real=True): numbers.get("omega"), TIME: numbers.get("t")}
    known |= {s: numbers[s.name] for s in _symbols(integrand) if s.name in numbers}
    if not loops:
        return MomentumValue(complex(_numeric(flat, known)), 0.0, 1)
    external = abs(numbers.get("k", 1.0)) or 1.0
    rule = _Rule(part.loop_momenta, d, float(scale or external), cutoff, external / 2)
    previous: complex | None = None
    for nodes in _sizes(rule.points):
        value = sum(np.sum(weight * _numeric(flat, known | points)) for points, weight in rule.chunks(nodes, numbers))
        error = np.inf if previous is None else abs(value - previous)
        if error <= tolerance * abs(value) + 1e-300:
            return MomentumValue(complex(value), float(error), rule.points(nodes))
        previous = value
    raise DivergentMomentumIntegral(
        f"{part.title}: the integral over {', '.join(map(str, part.loop_momenta))} does not settle (last value {previous:.6g}, "
        f"difference {error:.2g}); if it diverges give cutoff=.., otherwise scale=.. or a larger tolerance"
    )


def _sizes(points: Any) -> Iterator[int]:
    nodes = 16
    while points(nodes) <= MOST_POINTS and nodes <= 4096:
        yield nodes
        nodes *= 2


@dataclass(frozen=True, slots=True)
class _Rule:
    """Points and weights for the loop momenta."""

    loops: tuple[sp.Symbol, ...]
    dimension: int
    scale: float
    cutoff: float | None
    kink: float

    def points(self, nodes: int) -> int:
        """The number of points with so many nodes a length."""
        return (2 * nodes) ** len(self.loops) if self.dimension == 1 else 4 * nodes * nodes

    def _lengths(self, nodes: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights on the half line; in more dimensions a break at |k|/2, where a line can have no momentum."""
        x, weight = np.polynomial.legendre.leggauss(nodes)
        end = np.pi / 2 if self.cutoff is None else np.arctan(self.cutoff / self.scale)
        middle = float(np.arctan(self.kink / self.scale)) if self.dimension > 1 else 0.0
        breaks = [0.0, middle, end] if 0 < middle < end else [0.0, end]
        angle = np.concatenate([a + (b - a) * (x + 1) / 2 for a, b in itertools.pairwise(breaks)])
        weights = np.concatenate([weight * (b - a) / 2 for a, b in itertools.pairwise(breaks)])
        return self.scale * np.tan(angle), weights * self.scale / np.cos(angle) ** 2

    def chunks(self, nodes: int, numbers: Mapping[str, Any]) -> Iterator[tuple[dict[Any, Any], np.ndarray]]:
        """{symbol or scalar product: values} and weights, a bounded number of points at a time."""
        length, weight = self._lengths(nodes)
        if self.dimension > 1:
            yield self._ball(length, weight, numbers)
            return
        line, weights = np.concatenate([-length[::-1], length]), np.concatenate([weight[::-1], weight]) / (2 * np.pi)
        count = len(line) ** len(self.loops)
        for start in range(0, count, CHUNK):
            place = np.arange(start, min(start + CHUNK, count))
            found, product = {}, np.ones(len(place))
            for loop in self.loops:
                found[loop] = line[place % len(line)]
                product = product * weights[place % len(line)]
                place = place // len(line)
            yield found, product

    def _ball(self, length: np.ndarray, weight: np.ndarray, numbers: Mapping[str, Any]) -> tuple[dict[Any, Any], np.ndarray]:
        """Length and angle to k; the other angles are a factor."""
        d = self.dimension
        x, angular = np.polynomial.legendre.leggauss(len(length))
        theta = np.pi * (x + 1) / 2
        sphere = float(2 * np.pi ** ((d - 1) / 2) / sp.gamma(sp.Rational(d - 1, 2)))
        weights = np.outer(weight * length ** (d - 1), angular * np.pi / 2 * np.sin(theta) ** (d - 2)).ravel()
        q, cosine = np.repeat(length, len(theta)), np.tile(np.cos(theta), len(length))
        (loop,) = self.loops
        k, external = float(np.real(numbers.get("k", 0.0))), sp.Symbol("k")
        dots = {squared(loop): q * q, ScalarProduct(external, loop): k * q * cosine, squared(external): k * k}
        return dots, weights * sphere / (2 * np.pi) ** d


def _numeric(expression: Any, known: Mapping[Any, Any]) -> Any:
    """An expression of sums, products, powers and exponentials at arrays."""
    if expression in known:
        return known[expression]
    if expression.is_number:
        value = complex(expression)
        return value.real if value.imag == 0 else value
    parts = [_numeric(part, known) for part in expression.args]
    if expression.is_Add:
        return sum(parts[1:], parts[0])
    if expression.is_Mul:
        result = parts[0]
        for part in parts[1:]:
            result = result * part
        return result
    if expression.is_Pow:
        exponent = expression.exp
        return parts[0] ** int(exponent) if exponent.is_Integer else np.asarray(parts[0]) ** parts[1]
    if isinstance(expression, sp.exp):
        return np.exp(parts[0])
    raise TheoryError(f"{expression.func.__name__} in an integrand has no numerical value; propagators are rational functions")
