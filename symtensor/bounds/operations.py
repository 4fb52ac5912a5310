"""The operations on expressions: contraction, trace, sums and maxima over families, expectation, inverse, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from ._input import exact
from .expr import Expr, as_expr, check_distinct, families, merged
from .functions import Function, as_function
from .scale import as_scale

__all__ = [
    "apply", "assemble", "block_diagonal", "coarser", "conditional", "contract", "contract_vectors", "derivative", "dominated",
    "entry", "expectation", "fluctuation", "given_event", "integral", "inverse", "inverse_remainder", "iterate", "limit_over",
    "max_of", "max_over", "reindexed", "sum_over", "trace",
]  # fmt: skip


def _labels(over: str | tuple[str, ...]) -> tuple[str, ...]:
    return (over,) if isinstance(over, str) else tuple(over)


def contract(a: Any, b: Any, over: str | tuple[str, ...]) -> Expr:
    """Sum over the labels ``over`` that both factors carry: one pair is R4, two or more at once N3.

    Raises:
        ValueError: a label that is not in both factors, has two sizes, or a common label that is not summed.
    """
    left, right, summed = as_expr(a), as_expr(b), _labels(over)
    check_distinct(summed, "the contracted labels")
    if not summed:
        raise ValueError("a contraction sums over at least one label; the outer product is a * b")
    for label in summed:
        if label not in left.labels or label not in right.labels:
            raise ValueError(f"{label!r} must be a slot of both factors: {left} has {left.labels}, {right} has {right.labels}")
        if left.size(label) != right.size(label):
            raise ValueError(f"the slot {label!r} has size {left.size(label)} in {left} and {right.size(label)} in {right}")
    slots = tuple(s for s in (*left.slots, *right.slots) if s[0] not in summed)
    check_distinct(tuple(label for label, _ in slots), "the contraction; add it to over=, or rename it in one factor")
    return Expr("contract", (left, right), summed, slots, families((left, right)))


def contract_vectors(tensor: Any, vectors: Mapping[str, Any]) -> Expr:
    """M[g_1, .., g_d, .]: each named slot contracted with a vector carrying that label alone (N4)."""
    main = as_expr(tensor)
    children = (main, *(as_expr(g) for g in vectors.values()))
    for label, g in zip(vectors, children[1:], strict=True):
        if g.labels != (label,):
            raise ValueError(f"the factor for slot {label!r} must be a vector with that label, {g} has {g.labels}")
        if main.size(label) != g.size(label):
            raise ValueError(f"slot {label!r}: sizes {main.size(label)} and {g.size(label)} differ")
    slots = tuple(s for s in main.slots if s[0] not in vectors)
    return Expr("contract_vectors", children, tuple(vectors), slots, families(children))


def trace(expr: Any, first: str, second: str) -> Expr:
    """Sum over two slots of one tensor set equal (N5)."""
    child = as_expr(expr)
    if first == second or not {first, second} <= set(child.labels):
        raise ValueError(f"a trace needs two different slots of {child}, given {first!r} and {second!r}")
    if child.size(first) != child.size(second):
        raise ValueError(f"a trace needs equal sizes; {first!r} has {child.size(first)}, {second!r} {child.size(second)}")
    slots = tuple(s for s in child.slots if s[0] not in (first, second))
    return Expr("trace", (child,), (first, second), slots, child.family)


def apply(phi: Any, expr: Any, growth: Any = None, continuous: bool | None = None) -> Expr:
    """phi applied to every entry (R6, R6b); ``phi`` is text in x, a SymPy expression, or a `Function`."""
    child = as_expr(expr)
    return Expr("apply", (child,), as_function(phi, growth, continuous), child.slots, child.family)


def expectation(expr: Any) -> Expr:
    """E M, deterministic (R8a; R15 for a product)."""
    child = as_expr(expr)
    return Expr("expectation", (child,), None, child.slots, child.family)


def fluctuation(expr: Any) -> Expr:
    """M - E M (R8b)."""
    child = as_expr(expr)
    return Expr("fluctuation", (child,), None, child.slots, child.family)


def max_of(*terms: Any) -> Expr:
    """Largest norm of a fixed number of tensors, a scalar (R9)."""
    children = tuple(map(as_expr, terms))
    if not children:
        raise ValueError("a maximum needs at least one member")
    return Expr("max_of", children, None, (), families(children))


def _over(op: str, expr: Any, index: str, data: Any, scalar: bool) -> Expr:
    child = as_expr(expr)
    if not child.depends_on(index) and not isinstance(data, tuple):
        known = ", ".join(name for name, _ in child.family) or "none"
        raise ValueError(f"{child} does not depend on {index!r} (its indices: {known}); declare family={{{index!r}: size}}")
    family = tuple(item for item in child.family if item[0] != index)
    return Expr(op, (child,), data, () if scalar else child.slots, family)


def sum_over(expr: Any, index: str, size: Any = None) -> Expr:
    """Sum over all members of a family (R11), or of ``size`` identical copies if the term does not depend on it (R2)."""
    child = as_expr(expr)
    if child.depends_on(index):
        return _over("sum_over", child, index, index, False)
    if size is None:
        raise ValueError(f"{child} does not depend on {index!r}: give the number of copies as size=, or declare the family")
    return Expr("scaled", (child,), as_scale(size), child.slots, child.family)


def max_over(expr: Any, index: str, moment: Any = None) -> Expr:
    """Largest norm over a family (R10 by sub-Gaussian tails, R10b by k-th moments), a scalar.

    ``moment`` chooses k in R10b where the tails give every moment.
    """
    result = _over("max_over", expr, index, index, True)
    result.data = (index, None if moment is None else exact(moment))
    return result


def limit_over(expr: Any, index: str) -> Expr:
    """Limit of a family as its index tends to infinity (R12)."""
    return _over("limit_over", expr, index, index, False)


def integral(expr: Any, index: str) -> Expr:
    """Integral over a parameter in a compact range, with the family index as parameter (R19)."""
    return _over("integral", expr, index, index, False)


def derivative(expr: Any, index: str) -> Expr:
    """Derivative in a parameter: no bound of the function bounds it (R19)."""
    child = as_expr(expr)
    return Expr("derivative", (child,), index, child.slots, child.family)


def inverse(expr: Any) -> Expr:
    """The inverse of a square matrix, slots exchanged (R13; R13b for a sum whose last term is small)."""
    child = as_expr(expr)
    _square(child)
    parts = (child,)
    if child.op == "sum" and len(child.children) == 2:  # R13b: A^-1 and E
        parts = (child, inverse(child.children[0]), child.children[1])
    return Expr("inverse", parts, None, tuple(reversed(child.slots)), child.family)


def inverse_remainder(a: Any, e: Any) -> Expr:
    """(A + E)^-1 - A^-1 + A^-1 E A^-1 (R13b)."""
    left, right = as_expr(a), as_expr(e)
    _square(left)
    if left.slots != right.slots:
        raise ValueError(f"A and E need the same slots, given {left.labels} and {right.labels}")
    children = (inverse(left), right)
    return Expr("inverse_remainder", children, None, tuple(reversed(left.slots)), families(children))


def _square(child: Expr) -> None:
    if child.valence != 2 or child.slots[0][1] != child.slots[1][1]:
        raise ValueError(f"an inverse needs a square matrix; {child} has slots {dict(child.slots)}")


def entry(expr: Any, *labels: str) -> Expr:
    """Entries: the slots become family indices, uniformly bounded by the norm (R22)."""
    child = as_expr(expr)
    chosen = labels or child.labels
    missing = sorted(set(chosen) - set(child.labels))
    if missing:
        raise ValueError(f"{child} has no slot {missing[0]!r}; its slots: {child.labels}")
    moved = tuple(s for s in child.slots if s[0] in chosen)
    return Expr("entry", (child,), chosen, tuple(s for s in child.slots if s[0] not in chosen), merged(child.family, moved))


def assemble(expr: Any, *indices: str) -> Expr:
    """The tensor whose entries are the members of a family: indices become slots (R22, needs L^2)."""
    child = as_expr(expr)
    if not indices or any(not child.depends_on(index) for index in indices):
        raise ValueError(f"assemble needs family indices of {child}, given {indices}; it has {dict(child.family)}")
    moved = tuple((index, child.size(index)) for index in indices)
    family = tuple(item for item in child.family if item[0] not in indices)
    return Expr("assemble", (child,), indices, (*child.slots, *moved), family)


def block_diagonal(block: Any, index: str, valence: int | None = None) -> Expr:
    """The block-diagonal tensor with the members of a family as blocks (N8): r >= 2 the maximum, r = 1 the l2 sum.

    Its slots keep the labels of the block; their size is the number of blocks times the size in the block.
    """
    child = as_expr(block)
    if not child.depends_on(index) or child.valence == 0:
        raise ValueError(f"the blocks must be tensors of a family over {index!r}, given {child}")
    if valence is not None and valence != child.valence:
        raise ValueError(f"{child} has {child.valence} slots, not {valence}")
    number = child.size(index)
    slots = tuple((label, size * number) for label, size in child.slots)
    family = tuple(item for item in child.family if item[0] != index)
    parts = (child,) if child.valence == 1 else (max_over(child, index),)
    return Expr("block_diagonal", parts, index, slots, family)


def coarser(expr: Any) -> Expr:
    """The same tensor, its grouped norms bounded by the plain norm times dimension factors (N6)."""
    child = as_expr(expr)
    return Expr("coarser", (child,), None, child.slots, child.family)


def dominated(expr: Any, by: Any) -> Expr:
    """M with ||M|| = O(||F||), F random (R14b): the fact ``dominated_by(M, F)`` is required."""
    child, other = as_expr(expr), as_expr(by)
    return Expr("dominated", (child, other), None, child.slots, families((child, other)))


def conditional(expr: Any, sigma_field: str) -> Expr:
    """M bounded conditionally on a sigma-field (R14): the fact ``conditional_bound`` gives the bound of M."""
    child = as_expr(expr)
    return Expr("conditional", (child,), sigma_field, child.slots, child.family)


def given_event(expr: Any, event: str) -> Expr:
    """M under the law conditioned on an event (R14): needs a probability bounded below."""
    child = as_expr(expr)
    return Expr("given_event", (child,), event, child.slots, child.family)


def reindexed(expr: Any, relations: Mapping[Any, Any], random: str | None = None) -> Expr:
    """M_{m(n)}: a size replaced by another one that tends to infinity (R18); ``random`` names a random index."""
    child = as_expr(expr)
    images = {getattr(key, "name", str(key)): as_scale(value) for key, value in relations.items()}
    fixed = [name for name, image in images.items() if image.limit() != "oo"]
    if fixed:
        given = {getattr(key, "name", str(key)): value for key, value in relations.items()}
        raise ValueError(f"{fixed[0]} = {given[fixed[0]]} does not tend to infinity: a bound is about large sizes only")
    slots = tuple((label, size.subs(images)) for label, size in child.slots)
    family = tuple((index, size.subs(images)) for index, size in child.family)
    return Expr("reindexed", (child,), (tuple(images.items()), random), slots, family)


def iterate(phi: Any, start: Any, steps: Any) -> Expr:
    """x_{s+1} = phi(x_s) from x_0 = start, ``steps`` times (R20): an integer, or a size (needs a uniform argument)."""
    child, function = as_expr(start), as_function(phi)
    if not isinstance(steps, int):
        steps = as_scale(steps)
    elif steps < 1:
        raise ValueError(f"the number of steps is a positive integer or a size, given {steps}")
    return Expr("iterate", (child,), (function, steps), child.slots, child.family)


def taylor_remainder(phi: Any, deviation: Any, point: Any, order: int | None) -> Expr:
    """phi(x0 + D) minus its Taylor polynomial of degree ``order`` in the deviation D (R7).

    Raises:
        ValueError: a degree that is no integer >= 0, or a point that is no finite real number or expression.
    """
    child = as_expr(deviation)
    function = phi if isinstance(phi, Function) else as_function(phi)
    if order is not None and (not isinstance(order, int) or isinstance(order, bool) or order < 0):
        raise ValueError(f"order is the degree of the Taylor polynomial, an integer >= 0, given {order!r}")
    x0 = exact(point)
    if not isinstance(x0, sympy.Expr) or (x0.is_number and not (x0.is_extended_real and x0.is_finite)):
        raise ValueError(f"the point of a Taylor expansion is a finite real number, given {point!r}")
    return Expr("taylor", (child,), (function, x0, order), (), child.family)
