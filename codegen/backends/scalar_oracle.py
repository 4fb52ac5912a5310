r"""Values, gradients and condition numbers of scalar expressions to a promised number of digits.

Every number is computed at two working precisions, the second at least twice the first, until both agree to the digits
asked for: cancellation in the input costs time, never digits. At a point where the input has no value (0/0), or where it
lies on the edge of a branch or on a kink, the limit is taken along several directions; if they disagree there is no value.

The componentwise condition number of f at x is kappa = sum_i |x_i d_i f| / |f|: relative errors eps of the arguments
change the value by kappa eps (Higham, Accuracy and Stability of Numerical Algorithms, section 1.6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import mpmath
import sympy as sp

from .scalar_program import Program, Trace

__all__ = ["Exact", "ScalarOracle"]

_GUARD, _MOST_DOUBLINGS = 15, 5
#: directions of a limit: no two components, nor sums of them, are in a simple ratio
_SLOPES = (1, "1.3247179572447461", "0.7548776662466927", "1.7548776662466927", "0.5698402909980532", "1.4655712318767680")

Point = Mapping[str, Any]
_Results = list[Any]


@dataclass(frozen=True, slots=True)
class Exact:
    """One output at one point.

    Attributes
    ----------
    value
        The number, or None if there is none (a pole, a complex value, outside the domain).
    spread
        sum_i |x_i d_i value|: by so much relative errors of the arguments are multiplied. None without derivatives.
    limit
        Whether the value is a limit: the input is 0/0 at the point itself, or the point is on a kink.
    floor
        Errors are relative to this where the value is smaller: |f| / max(1, |x|) of a derivative df/dx, because a
        derivative that vanishes relative to its function (tanh at saturation) needs no digits of its own.
    """

    value: Any
    spread: Any = None
    limit: bool = False
    floor: Any = 0


class ScalarOracle:
    """Expressions in mpmath.

    Parameters
    ----------
    expressions
        Any number, with common subexpressions.
    names
        Symbols of the gradient, in order.
    digits
        Significant digits that are promised.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> oracle = ScalarOracle([(sp.exp(x) - 1) / x, 1 - sp.cos(x)], ["x"])
    >>> [mpmath.nstr(exact.value, 12) for exact in oracle.values({"x": mpmath.mpf("1e-9")})]
    ['1.0000000005', '5.0e-19']
    >>> oracle.values({"x": mpmath.mpf(0)})[0].value, oracle.gradients({"x": mpmath.mpf(0)})[0]["x"].value
    (mpf('1.0'), mpf('0.5'))
    """

    def __init__(self, expressions: Sequence[sp.Expr], names: Sequence[str], digits: int = 30) -> None:
        self.program = Program(tuple(map(sp.sympify, expressions)))
        self.names = tuple(names)
        self.digits = digits
        self.count = len(self.program.roots)

    def once(self, point: Point) -> list[Any]:
        """The value of every output at the working precision in force, without a promise: for sums over many points."""
        return [self._real(result) for result in self._outputs(self.program.run(point))]

    def numbers(self, point: Point) -> list[Any]:
        """The value of every output at the point itself; None where there is none."""
        results, _ = self._settled(self._outputs, point)
        return [self._real(result) for result in results]

    def values(self, point: Point) -> list[Exact]:
        """Every output, with its spread."""
        found, limits = self._evaluated(self._outputs, point, edges=False)
        slopes, _ = self._evaluated(self._slopes, point, edges=True)
        return [
            Exact(value, self._spread(slopes, output, point), limits[output]) if value is not None else Exact(None)
            for output, value in enumerate(found)
        ]

    def gradients(self, point: Point, conditioned: bool = True) -> list[dict[str, Exact]]:
        """d output / d name for every output and name; `conditioned` adds the spread of each derivative."""
        size = len(self.names)
        values, _ = self._evaluated(self._outputs, point, edges=False)
        found, limits = self._evaluated(self._slopes, point, edges=True)
        spreads = self._gradient_spreads(point, found) if conditioned else [None] * len(found)
        result = []
        for output in range(self.count):
            places = range(output * size, (output + 1) * size)
            height = abs(values[output]) if values[output] is not None else mpmath.mpf(0)
            result.append(
                {
                    name: Exact(found[place], spreads[place], limits[place], height / max(1, abs(point[name])))
                    for name, place in zip(self.names, places)
                }
            )
        return result

    # -- what is read off a trace -------------------------------------------------------------------------------------

    def _outputs(self, trace: Trace) -> _Results:
        return [trace.values[self.program.place(root)] for root in range(self.count)]

    def _slopes(self, trace: Trace) -> _Results:
        slopes: _Results = []
        for output in range(self.count):
            exists = self._real(trace.values[self.program.place(output)]) is not None
            gradient = self.program.gradient(trace, output) if exists else None
            slopes += [None if gradient is None else gradient.get(name, mpmath.mpf(0)) for name in self.names]
        return slopes

    def _spread(self, slopes: _Results, output: int, point: Point) -> Any:
        size = len(self.names)
        own = slopes[output * size : (output + 1) * size]
        if any(slope is None for slope in own):
            return None
        return mpmath.fsum(abs(slope * point[name]) for slope, name in zip(own, self.names))

    def _gradient_spreads(self, point: Point, slopes: _Results) -> _Results:
        """sum_j |x_j d_j (slope)|, by a difference quotient; a few digits are enough."""
        totals = [mpmath.mpf(0)] * len(slopes)
        on_edge = self.program.run(point).on_edge
        with mpmath.workdps((6 if on_edge else 2) * self.digits):
            step = mpmath.mpf(10) ** (-2 * self.digits if on_edge else -self.digits // 2)
            base = self._beside(point) if on_edge else point
            here = self._slopes(self.program.run(base))
            for name in self.names:
                if point[name] == 0:
                    continue
                moved = self._slopes(self.program.run({**base, name: base[name] * (1 + step)}))
                for place, (before, after) in enumerate(zip(here, moved)):
                    if before is not None and after is not None and totals[place] is not None:
                        totals[place] += abs(after - before) / step
                    else:
                        totals[place] = None
        return totals

    def _beside(self, point: Point) -> Point:
        """A point very near one that is on an edge, on a side where derivatives exist."""
        candidates = list(self._neighbours(point, self._widths[0]))
        return max(candidates, key=lambda near: sum(slope is not None for slope in self._slopes(self.program.run(near))))

    # -- digits and limits --------------------------------------------------------------------------------------------

    def _evaluated(self, read: Callable[[Trace], _Results], point: Point, edges: bool) -> tuple[_Results, list[bool]]:
        """`read` at the point, by limits where there is no value (or on edges); and which results are limits."""
        results, on_edge = self._settled(read, point)
        wanted = [place for place, result in enumerate(results) if self._real(result) is None or (edges and on_edge)]
        limits = [False] * len(results)
        if wanted:
            limit = self._limits(read, point)
            for place in wanted:
                results[place], limits[place] = limit[place], limit[place] is not None
        return [self._real(result) for result in results], limits

    def _settled(self, read: Callable[[Trace], _Results], point: Point) -> tuple[_Results, bool]:
        """Results that two precisions agree on; what shrinks with every precision, up to the highest, is zero."""
        precision = self.digits + _GUARD
        with mpmath.workdps(precision):
            trace = self.program.run(point)
            before = read(trace)
        for _ in range(_MOST_DOUBLINGS):
            precision *= 2
            with mpmath.workdps(precision):
                trace = self.program.run(point)
                after = read(trace)
                agreed = [self._agree(old, new, trace.cancelled) for old, new in zip(before, after)]
            if all(agreed):
                break
            before = after
        return [new if same else mpmath.mpf(0) for same, new in zip(agreed, after)], trace.on_edge

    def _agree(self, old: Any, new: Any, cancelled: bool) -> bool:
        """Whether two precisions give the same; a zero that may be what cancellation left has to be looked at further."""
        if old is None or new is None or not mpmath.isfinite(new):
            return True
        if new == 0 and old == 0:
            return not cancelled
        return abs(new - old) <= abs(new) * mpmath.mpf(10) ** -self.digits

    @property
    def _widths(self) -> tuple[Any, Any]:
        return mpmath.mpf(10) ** (-self.digits - 5), mpmath.mpf(10) ** (-2 * self.digits - 10)

    def _neighbours(self, point: Point, width: Any) -> Iterator[Point]:
        """Points at this distance in several directions."""
        for signs in _directions(len(self.names)):
            with mpmath.workdps(8 * self.digits):
                moved = {
                    name: point[name] + sign * mpmath.mpf(slope) * width * max(abs(point[name]), 1)
                    for name, sign, slope in zip(self.names, signs, _SLOPES * len(self.names))
                }
            yield {**point, **moved}

    def _limits(self, read: Callable[[Trace], _Results], point: Point) -> _Results:
        """Limits along straight lines through the point: in every direction that has values, at two distances."""
        near, nearer = ([self._settled(read, place)[0] for place in self._neighbours(point, width)] for width in self._widths)
        return [self._common(first, second) for first, second in zip(zip(*near), zip(*nearer))]

    def _common(self, near: Sequence[Any], nearer: Sequence[Any]) -> Any:
        """The number that all directions and both distances agree on; the mean cancels what is odd in the distance."""
        first, second = ([value for value in map(self._real, part) if value is not None] for part in (near, nearer))
        if not first or not second:
            return None
        close = mpmath.mpf(10) ** (-self.digits // 2)
        scale = max(map(abs, first + second))
        if max(abs(value - first[0]) for value in first + second) > close * max(scale, close):
            return None
        with mpmath.workdps(3 * self.digits):
            mean = mpmath.fsum(second) / len(second)
        return mpmath.mpf(0) if abs(mean) < close**2 else mean

    def _real(self, value: Any) -> Any:
        """A finite real number or None."""
        if value is None or isinstance(value, bool) or not mpmath.isfinite(value):
            return None
        if isinstance(value, mpmath.mpc):
            return value.real if value.imag == 0 or abs(value.imag) < abs(value) * mpmath.mpf(10) ** -self.digits else None
        return value


def _directions(size: int) -> list[tuple[int, ...]]:
    """Signs of the components: all of them for few variables, else two opposite pairs; opposite ones are neighbours."""
    half = list(product((1, -1), repeat=size - 1)) if 0 < size <= 3 else [(1,) * (size - 1), (-1, 1) * (size // 2)]
    return [tuple(sign * part for part in (1, *signs[: size - 1])) for signs in half for sign in (1, -1)]
