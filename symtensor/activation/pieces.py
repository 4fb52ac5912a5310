"""Real functions as smooth pieces: where the kinks are, and the elementary expression between two of them.

``Abs``, ``Max``, ``Min``, ``sign``, ``Heaviside`` and ``Piecewise`` are resolved innermost first: the places where a
branch changes are the real roots of the switching functions, and between two of them one branch holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

__all__ = ["KINKED", "ActivationError", "Piece", "real_roots", "smooth_pieces", "spelled"]

KINKED = (sp.Abs, sp.Max, sp.Min, sp.sign, sp.Heaviside, sp.Piecewise)
#: where undecidable signs are sampled; the assumption is recorded on the activation
SCAN = np.concatenate([-np.geomspace(60.0, 1e-3, 400), [0.0], np.geomspace(1e-3, 60.0, 400)])


class ActivationError(ValueError):
    """Not an activation: unknown, complex-valued, singular on the real line, or with undecidable kinks."""


@dataclass(frozen=True, slots=True)
class Piece:
    """``expr`` is smooth and holds on the open interval (lower, upper)."""

    lower: sp.Expr
    upper: sp.Expr
    expr: sp.Expr

    @property
    def anchor(self) -> sp.Expr:
        """A point well inside the interval."""
        if self.lower.is_finite and self.upper.is_finite:
            return (self.lower + self.upper) / 2
        if self.lower.is_finite:
            return self.lower + 1
        return self.upper - 1 if self.upper.is_finite else sp.S.Zero


def spelled(expr: sp.Basic) -> str:
    """Short text of an expression for messages."""
    text = str(expr)
    return text if len(text) <= 80 else text[:77] + "..."


def real_roots(function: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> tuple[sp.Expr, ...] | None:
    """The roots of a smooth function in an open interval, sorted; None if they are infinitely many or undecidable."""
    if function.is_nonzero or (not function.has(x) and not function.is_zero):
        return ()
    try:
        found: Any = sp.solveset(function, x, sp.Interval.open(lower, upper))
    except (NotImplementedError, ValueError, TypeError):
        return None
    if isinstance(found, sp.Intersection | sp.Complement):
        found = found.doit()
    if found is sp.S.EmptySet:
        return ()
    if not isinstance(found, sp.FiniteSet):
        return None
    roots: list[Any] = [sp.simplify(root) for root in found]
    return tuple(sorted(roots, key=lambda root: float(root.evalf(30))))


def smooth_pieces(expr: sp.Expr, x: sp.Symbol) -> tuple[Piece, ...]:
    """Split a real function of ``x`` into smooth pieces from left to right; equal neighbours are merged.

    Raises
    ------
    ActivationError
        If a switching function has infinitely many real roots, or SymPy cannot find them.
    """
    merged: list[Piece] = []
    for piece in _split(Piece(-sp.oo, sp.oo, expr), x):
        if merged and sp.expand(merged[-1].expr - piece.expr) == 0:
            piece = Piece(merged.pop().lower, piece.upper, piece.expr)
        merged.append(piece)
    return tuple(merged)


def _split(piece: Piece, x: sp.Symbol) -> Iterator[Piece]:
    atom = next((node for node in sp.postorder_traversal(piece.expr) if isinstance(node, KINKED)), None)
    if atom is None:
        yield piece
        return
    points: set[sp.Expr] = set()
    for switch in _switches(atom):
        roots = real_roots(switch, x, piece.lower, piece.upper)
        if roots is None:
            raise ActivationError(
                f"the kinks of {spelled(atom)} are the roots of {spelled(switch)}, which are infinitely many or cannot "
                "be found; write an activation with finitely many kinks at known places"
            )
        points.update(roots)
    edges = [piece.lower, *sorted(points, key=lambda point: float(point.evalf(30))), piece.upper]
    for lower, upper in pairwise(edges):
        part = Piece(lower, upper, piece.expr)
        resolved: Any = piece.expr.xreplace({atom: _branch(atom, x, part.anchor)})
        yield from _split(Piece(lower, upper, resolved), x)


def _switches(atom: Any) -> list[sp.Expr]:
    """Functions whose sign decides the branch of one kinked node."""
    arguments: tuple[Any, ...] = atom.args
    if isinstance(atom, sp.Max | sp.Min):
        return [u - v for index, u in enumerate(arguments) for v in arguments[:index] if u - v != 0]
    if isinstance(atom, sp.Piecewise):
        relations: set[Any] = atom.atoms(Relational)
        return [relation.lhs - relation.rhs for relation in relations]
    return [arguments[0]]


def _branch(atom: Any, x: sp.Symbol, anchor: sp.Expr) -> sp.Expr:
    def at(function: Any) -> float:
        return float(function.subs(x, anchor).evalf(30))

    arguments: tuple[Any, ...] = atom.args
    match atom:
        case sp.Max():
            return max(arguments, key=at)
        case sp.Min():
            return min(arguments, key=at)
        case sp.Piecewise():
            for value, condition in arguments:
                if condition.subs(x, anchor) == True:  # noqa: E712  (a SymPy truth value)
                    return value
            raise ActivationError(f"{spelled(atom)} is not defined at x = {anchor}; add a default branch")
    sign = int(np.sign(at(arguments[0])))
    if isinstance(atom, sp.Abs):
        return sign * arguments[0]
    return sp.Integer(sign) if isinstance(atom, sp.sign) else sp.Rational(1 + sign, 2)


def check_real(piece: Piece, x: sp.Symbol) -> tuple[str, ...]:
    """Refuse logarithms, roots and poles that leave the real line on a smooth piece.

    Returns
    -------
    tuple of str
        What could not be decided symbolically and was sampled instead: recorded assumptions.
    """
    assumed: list[str] = []
    for node in sp.preorder_traversal(piece.expr):
        if isinstance(node, sp.tan):
            assumed += _require(sp.cos(node.args[0]), "nonzero", node, piece, x)
        elif isinstance(node, sp.log):
            assumed += _require(node.args[0], "positive", node, piece, x)
        elif isinstance(node, sp.Pow) and node.base is not sp.E and not (node.exp.is_integer and node.exp.is_nonnegative):
            if node.exp.is_integer:
                assumed += _require(node.base, "nonzero", node, piece, x)
            elif node.exp.is_positive:
                assumed += _require(node.base, "nonnegative", node, piece, x)
            else:
                assumed += _require(node.base, "positive", node, piece, x)
    return tuple(dict.fromkeys(assumed))


def _require(argument: sp.Expr, kind: str, node: sp.Basic, piece: Piece, x: sp.Symbol) -> list[str]:
    known = {"nonzero": argument.is_nonzero, "positive": argument.is_positive, "nonnegative": argument.is_nonnegative}
    if known[kind]:
        return []
    edges = [] if kind == "nonnegative" else [edge for edge in (piece.lower, piece.upper) if edge.is_finite]
    for edge in edges:
        if argument.subs(x, edge).is_zero:
            raise ActivationError(f"{spelled(node)} is not finite at x = {edge}; an activation is finite on the real line")
    roots = real_roots(argument, x, piece.lower, piece.upper)
    if roots and kind != "nonnegative":
        raise ActivationError(
            f"{spelled(node)} has a pole or is undefined at x = {roots[0]}; an activation is finite on the real line"
        )
    lower, upper = float(piece.lower), float(piece.upper)
    if roots is None:
        points = SCAN[(lower < SCAN) & (upper > SCAN)]
    else:
        edges_and_roots = [lower, *(float(root) for root in roots), upper]
        points = np.array([_between(a, b) for a, b in pairwise(edges_and_roots)])
    values = np.array([float(argument.subs(x, sp.Float(point, 30)).evalf(15)) for point in points])
    sign_changes = bool(values.min() < 0 < values.max())
    if sign_changes if kind == "nonzero" else values.min() < 0:
        where = points[int(values.argmin())]
        what = "has a pole" if kind == "nonzero" else f"is not real, for example at x = {where:.4g}"
        raise ActivationError(f"{spelled(node)} {what}; an activation is real and finite on the real line")
    return [] if roots is not None else [f"{spelled(argument)} was taken to be {kind} on the real line (sampled)"]


def _between(a: float, b: float) -> float:
    if np.isfinite(a) and np.isfinite(b):
        return (a + b) / 2
    if np.isfinite(a):
        return a + 1
    return b - 1 if np.isfinite(b) else 0.0
