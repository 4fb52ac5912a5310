r"""Cumulants of stochastic equations loop by loop, from the moment hierarchy: the second route to a sum of diagrams.

With x = x* + s y and xt = yt/s the equation is ``dy = f(x* + s y)/s dt + G(x* + s y) dW``: a derivative of f or of G G^T that
gives a vertex with n legs carries s^{n-2}. A connected diagram with E legs and L loops has ``sum_v (n_v - 2) = 2 L - 2 + E``,
so that the coefficient of s^{2L-2+E} of the cumulant of y is the sum of all diagrams with L loops, whatever the couplings are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy as sp

from symtensor.expansion.gaussian_law import natural
from symtensor.fields._scalars import exact
from symtensor.fields.drift_diffusion import DriftDiffusion, read_drift_diffusion
from symtensor.fields.errors import PointError, SourceError
from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.fields.time_series import TimeSeries

__all__ = ["loop_cumulant"]


def loop_cumulant(
    drift: Any, noise: Any, variables: Any, legs: Any, loops: int, point: Any = None, responses: Sequence[Any] | None = None
) -> TimeSeries:
    """The joint cumulant of the legs about a stationary point, by number of loops: ``result[1]`` is the one-loop term.

    Args:
        drift, noise, variables: as for `MomentHierarchy`; any functions that are smooth at the point.
        legs: {field: power} at one time, or a sequence of these, the latest first.
        responses: names of the response fields; ``xt`` for ``x`` if not given.
        loops: the highest number of loops.
        point: {variable: value} or a sequence, where the drift vanishes; zero if not given.

    Raises:
        PointError: the drift does not vanish at the point. SourceError, UnstableError: as for `MomentHierarchy`.

    Example:
        >>> x, g, T = sp.symbols("x g T", positive=True)
        >>> loop_cumulant(-x + g * x**2, sp.sqrt(2 * T), x, {x: 1}, 2).expr
        5*T**2*g**3 + T*g
        >>> loop_cumulant(-sp.sin(x), sp.sqrt(2 * T), x, [{x: 1}, {"xt": 1}], 1)[1]
        T*t*exp(-t)/2
    """
    equations = noise if isinstance(noise, DriftDiffusion) else read_drift_diffusion(drift, noise, variables)
    place = _point(point, equations)
    groups = [g if isinstance(g, Mapping) else {g: 1} for g in (legs if isinstance(legs, list | tuple) else [legs])]
    count = sum(natural(power, name) for group in groups for name, power in group.items())
    loops = natural(loops, "the loops")
    top = 2 * loops - 2 + count
    hierarchy = _scaled(equations, place, top, responses)
    found = hierarchy.cumulant(groups, max(top, 0))
    parts = [found.parts[order] if (order := 2 * loop - 2 + count) >= 0 else {} for loop in range(loops + 1)]
    names = {str(name): value for name, value in zip(equations.variables, place)}
    single = str(next(name for group in groups for name, power in group.items() if power))
    if count == 1 and single in names and names[single] != 0:
        parts[0] = {((sp.S.Zero, 0),) * len(found.times): names[single]}
    return TimeSeries((), found.times, tuple(parts))


def _point(point: Any, equations: DriftDiffusion) -> list[sp.Expr]:
    names = [str(name) for name in equations.variables]
    if point is not None and not isinstance(point, Mapping):
        point = list(point) if hasattr(point, "__iter__") else [point]
    if isinstance(point, list) and len(point) != len(names):
        raise SourceError(f"the point does not fit: {len(point)} values for the variables {', '.join(names)}; give one for each")
    given = {} if point is None else point if isinstance(point, Mapping) else dict(zip(names, point))
    by_name = {str(name): exact(value) for name, value in given.items()}
    stray = [name for name in by_name if name not in names]
    if stray:
        raise SourceError(f"the point does not fit: {stray[0]} is no variable; give one value for each of {', '.join(names)}")
    place = [by_name.get(name, sp.S.Zero) for name in names]
    put = dict(zip(equations.variables, place))
    for name, part in zip(names, equations.drift):
        rest = sp.simplify(part.xreplace(put))
        if rest != 0:
            where = ", ".join(f"{n} = {value}" for n, value in zip(names, place))
            raise PointError(f"the drift of {name} is {sp.sstr(rest)} at {where} and must vanish; give a zero of it (point=..)")
    return place


def _scaled(equations: DriftDiffusion, place: list[sp.Expr], top: int, responses: Sequence[Any] | None) -> MomentHierarchy:
    """The hierarchy of y, with vertices up to s^top."""
    name = "s"
    while name in equations.symbols:
        name += "_"
    scale = sp.Symbol(name)
    shift = {x: value + scale * x for x, value in zip(equations.variables, place)}

    def expanded(expression: sp.Expr, degrees: int) -> list[sp.Expr]:
        moved, found = expression.xreplace(shift), []
        for degree in range(degrees + 1):
            found.append(sp.expand(moved.xreplace({scale: sp.S.Zero}) / sp.factorial(degree)))
            moved = sp.diff(moved, scale)
        return found

    top = max(top, 0)
    drift = [sp.Add(*(c * scale ** (n - 1) for n, c in enumerate(expanded(f, top + 1)) if n)) for f in equations.drift]
    strength = [[sp.Add(*(c * scale**n for n, c in enumerate(expanded(d, top)))) for d in row] for row in equations.diffusion]
    scaled = DriftDiffusion(equations.variables, tuple(drift), strength)
    return MomentHierarchy.of(scaled, scale if name in scaled.symbols else None, responses)
