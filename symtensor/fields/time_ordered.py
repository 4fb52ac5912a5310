"""Exact integration over the internal times of a diagram.

API
---
``TimedLine(start, end, weights, rates, equal=None, delta=0)`` : a line between two nodes, a sum of two exponentials::

    t_end > t_start :  weights[0] exp(-rates[0] (t_end - t_start))          weights = (end later, start later)
    t_start > t_end :  weights[1] exp(-rates[1] (t_start - t_end))          rates   = (end later, start later)
    start == end    :  equal                                                plus  delta * delta(t_end - t_start)

``TimedLine.response(earlier, later, rate, weight=1)`` : theta(t) weight exp(-rate t), with theta(0) = 0.
``TimedLine.correlation(start, end, rate, weight, start_rate=None)`` : the same weight for both orders; `rate` holds if
`end` is later, `start_rate` (by default the same) if `start` is later.
``integrate_times(lines, external, internal) -> ExponentialSum`` : nodes 0 .. external-1 are fixed at the distinct times
t_0 > t_1 > .. (several legs at one time, or an amputated vertex, are one node, with or without lines), nodes external ..
external+internal-1 are integrated over the whole real line. The windows of the result are t_0 - t_1, t_1 - t_2, ..; its
`.expr(*times)`, `.evaluate`, `.fourier`, `.equal_time`, `+`, `*` are those of `ExponentialSum`. Factors of vertices and
symmetry factors are the caller's: multiply the result.

Rates are SymPy expressions or numbers (`_linear_rates` finds the elementary ones), weights SymPy expressions.

Method
------
Times are read downwards. S is the set of nodes already passed, E(S) the sum of the rates of the lines that leave it.
Between external times the amplitude of S obeys  -dG_S/dt = -E(S) G_S + sum over v of w_v(S - v) G_{S - v},  in the past of
all external times  F(S) = (1/E(S)) sum over v of w_v(S) F(S + v),  F(all) = 1,  and likewise in their future. The cost is
the number of sets, 2^internal, not the number of orders of the times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy as sp

from symtensor.fields._down_sets import DirectedLine, DivergentCut, TimeOrders
from symtensor.fields._linear_rates import linear_rates
from symtensor.fields._rate_field import RateField
from symtensor.fields.errors import TheoryError
from symtensor.fields.exponential_sum import ExponentialSum

__all__ = ["DivergentTimeIntegral", "TimeOrderError", "TimedLine", "integrate_times"]

#: more internal times than this are refused: the number of sets doubles with each
MOST_INTERNAL = 16


class TimeOrderError(TheoryError):
    """Lines and nodes that make no diagram with fixed and integrated times."""


class DivergentTimeIntegral(TimeOrderError):
    """No line decays across a cut: the integral over a time difference is infinite; the message names the nodes."""


@dataclass(frozen=True, slots=True)
class TimedLine:
    """A line between two nodes as a function of their times; see the formula at the top of this module.

    Parameters
    ----------
    start, end : numbers of the nodes.
    weights : (end later, start later).
    rates : (end later, start later), numbers or expressions with a positive real part, units 1/time.
    equal : value if both ends have the same time (needed for a line that starts and ends at one node). If not given: the
        weight, where both weights are equal, and 0 (theta(0) = 0), where one of them is zero.
    delta : coefficient of delta(t_end - t_start), which makes one node of both ends.

    Examples
    --------
    >>> T, m = sp.symbols("T m", positive=True)
    >>> TimedLine.response(1, 0, m).weights
    (1, 0)
    >>> TimedLine.correlation(0, 1, m, T / m).equal
    T/m
    """

    start: int
    end: int
    weights: tuple[sp.Expr, sp.Expr]
    rates: tuple[sp.Expr, sp.Expr]
    equal: sp.Expr | None = None
    delta: sp.Expr = sp.Integer(0)

    def __post_init__(self) -> None:
        for name, value in (("weights", self.weights), ("rates", self.rates)):
            if len(value) != 2:
                raise TimeOrderError(f"line {self.start}-{self.end} has {len(value)} {name}; (end later, start later) is required")
            object.__setattr__(self, name, tuple(sp.sympify(v, strict=True) for v in value))
        late, early = self.weights
        equal = (late if late == early else 0 if 0 in (late, early) else None) if self.equal is None else self.equal
        object.__setattr__(self, "equal", None if equal is None else sp.sympify(equal, strict=True))
        object.__setattr__(self, "delta", sp.sympify(self.delta, strict=True))
        for weight, rate in zip(self.weights, self.rates):
            if weight != 0 and rate.is_number and sp.re(rate).is_negative:
                raise TimeOrderError(f"line {self.start}-{self.end} grows with time: its rate {rate} needs a positive real part")

    @classmethod
    def response(cls, earlier: int, later: int, rate: Any, weight: Any = 1, delta: Any = 0) -> TimedLine:
        """theta(t_later - t_earlier) weight exp(-rate (t_later - t_earlier)), theta(0) = 0."""
        return cls(earlier, later, (weight, sp.Integer(0)), (rate, rate), delta=delta)

    @classmethod
    def correlation(cls, start: int, end: int, rate: Any, weight: Any, start_rate: Any = None, delta: Any = 0) -> TimedLine:
        """weight exp(-rate |t|); with `start_rate`, that is the rate if `start` is the later end."""
        return cls(start, end, (weight, weight), (rate, rate if start_rate is None else start_rate), delta=delta)


def integrate_times(lines: Iterable[TimedLine], external: int, internal: int) -> ExponentialSum:
    """The integral over the times of the internal nodes of the product of the lines.

    Parameters
    ----------
    lines : each between nodes 0 .. external+internal-1.
    external : number of distinct external times, node k at t_k, t_0 > t_1 > ..; at least one.
    internal : number of nodes integrated over the real line.

    Returns the sum in the time differences t_0 - t_1, t_1 - t_2, ..; for one external time a constant (`.value`). Contact
    terms at coinciding external times (a `delta` between two of them) are left out.

    Raises
    ------
    TimeOrderError : a node that does not exist, too many internal nodes, no external one, delta(0), or a line that needs
        `equal`.
    DivergentTimeIntegral : nothing decays across a cut, which is named.

    Examples
    --------
    The response of a linear chain, and the variance of an Ornstein-Uhlenbeck process from its noise:

    >>> a, b, B = sp.symbols("a b B", positive=True)
    >>> t = sp.Symbol("t", positive=True)
    >>> chain = integrate_times([TimedLine.response(1, 2, a), TimedLine.response(2, 0, b)], external=2, internal=1)
    >>> sp.simplify(chain.expr(t) - (sp.exp(-a * t) - sp.exp(-b * t)) / (b - a))
    0
    >>> variance = integrate_times([TimedLine.response(1, 0, a), TimedLine.response(1, 0, a)], external=1, internal=1)
    >>> (B * variance).value
    B/(2*a)
    """
    given = tuple(lines)
    _check(given, external, internal)
    parts = [_integrated(*part, external) for part in _contractions(given, external, external + internal)]
    return ExponentialSum.total(parts, windows=external - 1)


def _check(lines: Sequence[TimedLine], external: int, internal: int) -> None:
    if external < 1 or internal < 0:
        raise TimeOrderError(
            f"{external} external and {internal} internal nodes given; at least one external time is required (all times can be "
            "shifted together) and the number of internal nodes is not negative"
        )
    if internal > MOST_INTERNAL:
        raise TimeOrderError(f"{internal} internal times; at most {MOST_INTERNAL} are integrated, since the cost doubles with each")
    for line in lines:
        for node in (line.start, line.end):
            if not 0 <= node < external + internal:
                raise TimeOrderError(
                    f"line {line.start}-{line.end} ends at node {node}; nodes are 0 .. {external - 1} (external) and "
                    f"{external} .. {external + internal - 1} (internal)"
                )


Part = tuple[sp.Expr, list[TimedLine], int]


def _contractions(lines: Sequence[TimedLine], external: int, nodes: int) -> Iterator[Part]:
    """Factor, lines and number of nodes for every choice of the lines that act as delta functions."""
    local = [line for line in lines if line.delta != 0]
    for chosen in itertools.product((False, True), repeat=len(local)):
        merged = [line for line, taken in zip(local, chosen) if taken]
        kept = [line for line in lines if not any(line is other for other in merged)]
        number = _merged_numbers(merged, external, nodes)
        if number is not None:
            moved = [replace(line, start=number[line.start], end=number[line.end]) for line in kept]
            yield sp.Mul(*(line.delta for line in merged)), moved, max(number) + 1


def _merged_numbers(merged: Sequence[TimedLine], external: int, nodes: int) -> list[int] | None:
    """New numbers of the nodes after each line has made one node of its ends; None if two external times would coincide."""
    root = list(range(nodes))
    for line in merged:
        low, high = sorted((root[line.start], root[line.end]))
        if low == high:
            raise TimeOrderError(
                f"the delta function of line {line.start}-{line.end} acts within one time, delta(0): local lines must not form "
                "a loop; take the local part of such a loop out of the diagram"
            )
        root = [low if r == high else r for r in root]
    if any(root[k] != k for k in range(external)):
        return None
    numbers = {r: n for n, r in enumerate(sorted(set(root)))}
    return [numbers[r] for r in root]


def _integrated(factor: sp.Expr, lines: Sequence[TimedLine], nodes: int, external: int) -> ExponentialSum:
    """The integral without delta functions."""
    factors = [factor]
    open_lines = []
    for line in lines:
        if line.start == line.end:
            factors.append(_equal_value(line))
        else:
            factors.append(line.weights[0] if line.weights[0] != 0 else line.weights[1])
            open_lines.append(line)
    overall = sp.Mul(*factors)
    if overall == 0:
        return ExponentialSum.constant(0, external - 1)
    basis, vectors = linear_rates([rate for line in open_lines for rate in line.rates])
    orders = _time_orders(open_lines, basis, vectors, nodes, external)
    try:
        terms = orders.integral()
    except DivergentCut as cut:
        raise _divergence(cut, external) from None
    degree = external - nodes
    return ExponentialSum(
        basis,
        external - 1,
        {key: overall * orders.field.expression(c, degree + sum(p for _, p in key)) for key, c in terms.items()},
    )


def _equal_value(line: TimedLine) -> sp.Expr:
    if line.equal is None:
        raise TimeOrderError(
            f"line {line.start}-{line.end} joins equal times, where its weights {line.weights[0]} and {line.weights[1]} differ; "
            "give equal=.."
        )
    return line.equal


def _time_orders(
    lines: Sequence[TimedLine], basis: Sequence[sp.Expr], vectors: Sequence[tuple[int, ...]], nodes: int, external: int
) -> TimeOrders:
    """Every line seen from both ends, relative to the weight that `_integrated` has taken out."""
    ratios = [line.weights[1] / line.weights[0] if line.weights[0] != 0 else sp.Integer(1) for line in lines]
    field = RateField(basis, tuple(dict.fromkeys(ratio for ratio in ratios if not ratio.is_Rational)))
    views: list[list[DirectedLine]] = [[] for _ in range(nodes)]
    for n, (line, ratio) in enumerate(zip(lines, ratios)):
        end_later = field.one if line.weights[0] != 0 else field.zero
        views[line.end].append(DirectedLine(line.start, end_later, vectors[2 * n]))
        views[line.start].append(DirectedLine(line.end, field.weight(ratio), vectors[2 * n + 1]))
    return TimeOrders(tuple(map(tuple, views)), external, field, len(basis))


def _divergence(cut: DivergentCut, external: int) -> DivergentTimeIntegral:
    names = ", ".join(f"t_{n}" if n < external else f"node {n}" for n in cut.nodes)
    side = "later than every external time" if cut.future else "with the remaining nodes in the far past"
    return DivergentTimeIntegral(
        f"the time integral diverges: no line decays across the cut that separates {{{names}}} from the rest, {side}; "
        "a part without external legs, or a line with rate zero, cannot be integrated over all times"
    )
