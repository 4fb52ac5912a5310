r"""The point of expansion: a real stationary point of an action, or a fixed point of a drift, that is stable.

Static: dS/dx = 0, the Hessian is positive. Stochastic: f(x) = 0, all eigenvalues of A = -df/dx have positive real parts.

Points are found exactly where the equations are polynomials that can be solved, and numerically (30 digits) where all
parameters have values. Of several, the stable one is taken; where stability depends on parameters without values, the origin
is preferred, and the conditions are recorded. Two stable points are an error: the expansion is around one of them, so the
choice is the caller's (`point`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symtensor.fields._stability import DIGITS, Verdict, examine, reads_zero, reality, tidy
from symtensor.fields._stationary_roots import polynomial_solutions, refined, searched
from symtensor.fields.errors import PointError, SourceError, UnstableError, ZeroModeError
from symtensor.parsing import ExpressionSyntaxError, parse_expression, suggestion

__all__ = ["StationaryPoint", "stationary_point"]

#: a given decimal point may be this far from stationary, relative to the terms of the gradient; it is then refined
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class StationaryPoint:
    """The values of the fields at the point of expansion, in their order; iterating gives the values.

    Attributes:
        fields, point: symbols and values; exact, or numbers of 30 digits.
        matrix: the Hessian of the action, or A = -df/dx, at the point.
        conditions: relations between the parameters that stability and reality need, as far as they are open.
        others: further stationary points, with the reason why they were not taken.
        complete: whether all real stationary points (with an inverse of the matrix) are known.
    """

    fields: tuple[sp.Symbol, ...]
    point: tuple[sp.Expr, ...]
    matrix: sp.ImmutableMatrix
    conditions: tuple[Any, ...] = ()
    others: tuple[tuple[tuple[sp.Expr, ...], str], ...] = ()
    complete: bool = True

    def __iter__(self) -> Iterator[sp.Expr]:
        return iter(self.point)

    def __len__(self) -> int:
        return len(self.point)

    def __getitem__(self, at: int) -> sp.Expr:
        return self.point[at]

    @property
    def exact(self) -> bool:
        """Whether the values are exact."""
        return not any(value.atoms(sp.Float) for value in self.point)


def stationary_point(
    gradient: Sequence[Any],
    fields: Sequence[sp.Symbol],
    point: Any = None,
    values: Mapping[Any, Any] | None = None,
    *,
    drift: bool = False,
    invertible: bool = False,
) -> StationaryPoint:
    """The stationary point to expand around.

    Args:
        gradient: dS/dx of every field; with `drift`, f(x) of every variable.
        fields: the fields x.
        point: the values {field: value}, or a sequence; checked, and refined if they are decimals. Without it, it is sought.
        values: numbers of the parameters, by name or symbol. They decide what is stable, and allow a numerical search; an
            exact point keeps its symbols.
        drift: the functions are a drift, so that minus their derivative has to be stable.
        invertible: the matrix only needs an inverse (imaginary contours, formal series), not to be positive.

    Raises:
        PointError: no stationary point, several stable ones, a given point that is not stationary (the residual is named).
        ZeroModeError, UnstableError: the direction, or the eigenvalue, that makes the point useless.

    Example:
        >>> x, r, g = sp.symbols("x r g", real=True)
        >>> stationary_point([-x + g * x**2], [x], drift=True).point
        (0,)
        >>> stationary_point([r * x + g * x**3 / 6], [x]).conditions
        (r > 0,)
        >>> stationary_point([x - sp.tanh(2 * x) / 4 - 1], [x], values={}).point
        (1.24660817325754010368738981727,)
    """
    functions, symbols = [sp.sympify(g) for g in gradient], tuple(fields)
    if len(functions) != len(symbols) or not symbols:
        raise PointError(f"{len(functions)} functions of {len(symbols)} fields; give one derivative for each field")
    known = _read_values(functions, symbols, values)
    task = _Task(functions, symbols, known, drift, invertible)
    try:
        return task.checked(point) if point is not None else task.found()
    except NameError as error:  # the numerical search met the derivative of a jump
        raise PointError(
            "the functions have a jump or a kink (sign, abs, max, Heaviside), where the search for a stationary point fails; "
            "replace it by a smooth function, or give point= away from it"
        ) from error


@dataclass(frozen=True, slots=True)
class _Task:
    functions: list[Any]
    fields: tuple[sp.Symbol, ...]
    values: dict[Any, Any]
    drift: bool
    invertible: bool

    @property
    def what(self) -> str:
        return "fixed point of the drift" if self.drift else "stationary point of the action"

    def matrix(self, point: Mapping[Any, Any]) -> sp.ImmutableMatrix:
        jacobian = sp.Matrix(self.functions).jacobian(list(self.fields)) * (-1 if self.drift else 1)
        at = jacobian.subs(dict(point), simultaneous=True).applyfunc(lambda e: tidy(sp.sympify(e).doit()))
        if at.has(sp.nan, sp.zoo, sp.oo, -sp.oo, sp.DiracDelta):
            raise PointError(
                f"the {self.what} {_shown(point)} is where its functions have no derivative; expand around another point"
            )
        return sp.ImmutableMatrix(at)

    def numeric(self) -> list[Any] | None:
        """The functions with numbers for all parameters, if there are such."""
        functions = [f.subs(self.values, simultaneous=True) for f in self.functions]
        return functions if all(f.free_symbols <= set(self.fields) for f in functions) else None

    def checked(self, given: Any) -> StationaryPoint:
        point = _read_point(given, self.functions, self.fields)
        residual = [f.subs(point, simultaneous=True) for f in self.functions]
        bad = [at for at, r in enumerate(residual) if not self._vanishes(r, at, point)]
        if bad:
            name = "f" if self.drift else "dS/d"
            shown = ", ".join(f"{name}{'_' if self.drift else ''}{self.fields[at]} = {_number(residual[at])}" for at in bad)
            raise PointError(f"the point {_shown(point)} is no {self.what}: {shown} there instead of 0{self._nearest(point)}")
        if any(sp.sympify(v).atoms(sp.Float) for v in point.values()) and (numeric := self.numeric()) is not None:
            better = refined(numeric, self.fields, [point[s] for s in self.fields])
            if better is not None and all(abs(better[s] - point[s]) < 1e-3 * (1 + abs(point[s])) for s in self.fields):
                point = better
        verdict = examine(self.matrix(point), self.fields, self.values, self.invertible)
        self._refuse([(point, verdict)])
        return self._result(point, verdict.conditions, [], True)

    def _vanishes(self, residual: Any, at: int, point: Mapping[Any, Any]) -> bool:
        if reads_zero(residual):
            return True
        number = residual.subs(self.values)
        if number.is_number and (number.atoms(sp.Float) or not residual.is_number):
            terms = [abs(sp.N(t.subs(point).subs(self.values))) for t in sp.Add.make_args(sp.expand(self.functions[at]))]
            return bool(abs(sp.N(number)) <= TOLERANCE * max(terms, default=1))
        return not residual.is_number and residual.count_ops() < 200 and sp.simplify(residual) == 0

    def _nearest(self, point: Mapping[Any, Any]) -> str:
        numeric = self.numeric()
        start = [sp.sympify(point[s]).subs(self.values) for s in self.fields]
        if numeric is None or any(not v.is_number for v in start):
            return "; leave point out to have it found"
        near = refined(numeric, self.fields, start)
        return f"; the nearest is {_shown(near)}" if near else ""

    def found(self) -> StationaryPoint:
        points, complete = self._candidates()
        judged: list[tuple[dict[Any, Any], Verdict]] = []
        for point in points:
            real = reality([point[s] for s in self.fields], self.values)
            if real is None:
                continue
            verdict = examine(self.matrix(point), self.fields, self.values, self.invertible)
            if verdict.status in ("stable", "conditional") and (real or verdict.conditions):
                verdict = Verdict("conditional", tuple(dict.fromkeys((*real, *verdict.conditions))))
            judged.append((point, verdict))
        return self._chosen(judged, complete)

    def _candidates(self) -> tuple[list[dict[Any, Any]], bool]:
        """Stationary points, and whether they are all that can be meant."""
        solutions = polynomial_solutions(self.functions, self.fields)
        points, complete, numeric = solutions.points, solutions.complete, self.numeric()
        if not complete and numeric is not None:
            solutions = polynomial_solutions(numeric, self.fields)
            complete = solutions.complete
            more = solutions.points if complete else searched(numeric, self.fields)
            points = [*points, *(p for p in more if not any(self._same(p, q) for q in points))]
        # the origin is also tested where it is degenerate, which the exact route leaves out, to name its zero mode
        points = [*points, *(p for p in self._origin() if not any(all(q[s] == 0 for s in self.fields) for q in points))]
        return [self._written(point) for point in points], complete

    def _written(self, point: Mapping[Any, Any]) -> dict[Any, Any]:
        """The point in the order of the fields; roots of polynomials without closed form as numbers."""
        implicit = any(sp.sympify(v).has(sp.polys.rootoftools.ComplexRootOf) for v in point.values())
        return {s: sp.N(point[s], DIGITS) if implicit and point[s].is_number else point[s] for s in self.fields}

    def _origin(self) -> list[dict[Any, Any]]:
        """The origin, if it is stationary."""
        origin: dict[Any, Any] = dict.fromkeys(self.fields, sp.S.Zero)
        return [origin] if all(reads_zero(f.subs(origin, simultaneous=True)) for f in self.functions) else []

    def _same(self, left: Mapping[Any, Any], right: Mapping[Any, Any]) -> bool:
        differences = [sp.N((left[s] - right[s]).subs(self.values), DIGITS) for s in self.fields]
        return all(d.is_number and bool(abs(d) < 1e-12) for d in differences)

    def _chosen(self, judged: list[tuple[dict[Any, Any], Verdict]], complete: bool) -> StationaryPoint:
        if not judged:
            symbols = {s for f in self.functions for s in f.free_symbols} - set(self.fields)
            names = ", ".join(sorted(map(str, symbols)))
            hint = "" if complete else f"; give point=, or values= for {names}" if names else "; give point="
            raise PointError(f"no real {self.what} was found for {', '.join(map(str, self.fields))}{hint}")
        for status in ("stable", "conditional"):
            good = [(p, v) for p, v in judged if v.status == status]
            origin = [(p, v) for p, v in good if all(value == 0 for value in p.values())]
            if status == "conditional" and len(good) > 1 and origin:
                good = origin
            if len(good) > 1:
                listed = "; ".join(_shown(p) + (f" if {_joined(v.conditions)}" if v.conditions else "") for p, v in good)
                raise PointError(f"there are {len(good)} stable points: {listed}; choose one with point={{...}}, or give values=")
            if good:
                (point, verdict), rest = good[0], [(p, v) for p, v in judged if p is not good[0][0]]
                return self._result(point, verdict.conditions, rest, complete)
        self._refuse(judged)
        raise AssertionError("a point that is refused has a reason")

    def _refuse(self, judged: list[tuple[dict[Any, Any], Verdict]]) -> None:
        """Raise if none of the points will do, with the reason for each."""
        if any(v.status in ("stable", "conditional") for _, v in judged):
            return
        matrix = "linearised drift -df/dx" if self.drift else "quadratic form"
        reasons = "; ".join(f"at {_shown(p)}: {v.reason}" for p, v in judged[:6])
        if all(v.status == "zero" for _, v in judged):
            raise ZeroModeError(
                f"the {matrix} has no inverse, {reasons}; add a term that fixes this direction, or expand elsewhere"
            )
        raise UnstableError(f"the {matrix} is not stable, {reasons}; expand around a stable point, or change the parameters")

    def _result(self, point: Mapping[Any, Any], conditions: Any, rest: Any, complete: bool) -> StationaryPoint:
        others = tuple((tuple(p[s] for s in self.fields), v.reason or f"if {_joined(v.conditions)}") for p, v in rest)
        values = tuple(sp.sympify(point[s]) for s in self.fields)
        return StationaryPoint(self.fields, values, self.matrix(point), tuple(conditions), others, complete)


def _read_values(functions: Sequence[Any], fields: Sequence[sp.Symbol], values: Any) -> dict[Any, Any]:
    symbols = {s.name: s for f in functions for s in f.free_symbols if s not in fields}
    known = {}
    for key, value in dict(values or {}).items():
        number = _read_number(value, f"the value of {key}", {})
        number = number.xreplace({part: sp.Rational(str(part)) for part in number.atoms(sp.Float)})
        if not number.is_number or not number.is_real:
            raise PointError(f"the value of {key} must be a real number, got {value}")
        if str(key) in symbols:
            known[symbols[str(key)]] = number
    return known


def _read_point(given: Any, functions: Sequence[Any], fields: Sequence[sp.Symbol]) -> dict[Any, Any]:
    symbols = {s.name: s for f in functions for s in f.free_symbols if s not in fields}
    names = {s.name: s for s in fields}
    if isinstance(given, Mapping):
        entries = {str(key): value for key, value in given.items()}
    elif isinstance(given, Sequence) and not isinstance(given, str) and len(given) == len(fields):
        entries = dict(zip(names, given))
    else:
        raise PointError(f"the point {given!r} must give a value for each of {', '.join(names)}, as {{{next(iter(names))!r}: 0}}")
    for name in entries:
        if name not in names:
            raise PointError(
                f"the point names {name!r}, which is no field{suggestion(name, names)}; the fields are {', '.join(names)}"
            )
    missing = [name for name in names if name not in entries]
    if missing:
        raise PointError(f"the point gives no value for {', '.join(missing)}; give one for each field")
    return {names[name]: _read_number(value, f"the value of {name}", symbols) for name, value in entries.items()}


def _read_number(value: Any, what: str, symbols: Mapping[str, Any]) -> sp.Expr:
    """A number, or an expression in parameters; decimals of Python stay decimals."""
    if isinstance(value, str):
        try:
            return parse_expression(value, symbols)
        except ExpressionSyntaxError as error:
            raise SourceError(f"{what}: {error}") from None
    try:
        read = sp.sympify(value, strict=True)
    except sp.SympifyError:
        read = None
    if isinstance(value, bool) or not isinstance(read, sp.Expr) or read.has(sp.oo, sp.zoo, sp.nan, sp.I):
        raise PointError(f"{what} must be a real number or an expression in parameters, got {value!r}")
    return read


def _shown(point: Mapping[Any, Any]) -> str:
    return ", ".join(f"{s} = {_number(v)}" for s, v in point.items())


def _number(value: Any) -> str:
    value = sp.sympify(value)
    text = sp.sstr(value.evalf(8) if value.atoms(sp.Float) or value.atoms(sp.polys.rootoftools.ComplexRootOf) else value)
    return text if len(text) <= 120 else text[:117] + "..."


def _joined(conditions: Sequence[Any]) -> str:
    return " and ".join(sp.sstr(c) for c in conditions)
