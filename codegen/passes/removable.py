"""Removable singularities and cancelling sums in one variable: a power series near the point, the formula elsewhere.

sin(u)/u is nan at 0, and `where(u != 0, sin(u) / u, 1)` has the gradient nan there; exp(u) - 1 - u has no correct digit near
0. Where the series of `power_series` shows that a product of poles and zeros is regular, or that the leading terms of a sum
cancel, the part becomes select(|u - p| < r, polynomial, formula), with arguments kept apart so that neither branch is
evaluated where it is not good. The largest part comes first: (u - sin u) / u**3 is one polynomial, not two.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import mpmath
import sympy as sp

from ..graph import Graph, Node, postorder, rebuild
from .fold import fold
from .power_series import DIGITS, NoSeries, Series, evaluate, exact_number, series_of

__all__ = ["removable"]

#: coefficients of a series, and how far the last ones must have fallen at the radius in which it is used
_SIZE, _TAIL = 30, mpmath.mpf(2) ** -58
#: coefficients that show for most parts that nothing cancels
_PROBE = 6
_RADII = tuple(sp.Rational(1, 2**k) for k in range(24))
#: where the polynomial is compared with the formula, in units of the radius, and how well they agree
_TRIALS, _AGREEMENT = (-1, -0.7, -0.3, 0.2, 0.6, 0.95, 1), mpmath.mpf(2) ** -53
#: products of coefficients after which the search ends, and nodes of the largest part that is looked at: linear in all
_MOST_EFFORT, _LARGEST = 1_000_000, 60
#: functions that vanish with their argument; log vanishes at 1
_ODD = frozenset({"sin", "tan", "sinh", "tanh", "asin", "atan", "asinh", "erf", "expm1", "log1p"})


def removable(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Replace what is 0/0 or cancels; expects folded sums and products."""
    return _Search(graph).rewritten(roots)


@dataclass(slots=True)
class _Expansion:
    """A part that depends on one atom only, regular at atom = center, its cofactors, and the rest of the sum or product."""

    part: Node
    cofactors: tuple[Node, ...]
    rest: tuple[Node, ...]
    atom: Node
    center: sp.Expr
    series: Series
    radius: sp.Rational


@dataclass(slots=True)
class _Search:
    graph: Graph
    effort: int = 0

    def rewritten(self, roots: tuple[Node, ...]) -> tuple[Node, ...]:
        """From the roots down, so that the largest part is replaced; what is replaced is not looked into."""
        replaced: dict[int, Node] = {}
        seen: set[int] = set()
        stack = list(roots[::-1])
        while stack:
            node = stack.pop()
            if node.index in seen:
                continue
            seen.add(node.index)
            made = self._replacement(node)
            if made is None:
                stack.extend(node.args[::-1])
                continue
            replaced[node.index] = made
        if not replaced:
            return roots
        return _substituted(roots, self.graph, replaced)

    def _replacement(self, node: Node) -> Node | None:
        """The node without its singularity, or None."""
        if node.op == "select":
            return self._branch(node)
        if node.op not in ("mul", "add") or not _is_small(node):
            return None
        found = self._expansion(node)
        if found is None:
            return None
        combine = self.graph.mul if node.op == "mul" else self.graph.add
        guarded = self._guarded(found)
        return combine(*found.rest, self.graph.mul(*found.cofactors, guarded) if found.cofactors else guarded)

    def _expansion(self, node: Node) -> _Expansion | None:
        for atom, part, cofactors, rest in _parts(self.graph, node):
            for center in _centers(part, atom):
                effort = _SIZE * _SIZE // 2 * len(postorder((part,)))
                if self.effort + effort > _MOST_EFFORT:
                    continue
                self.effort += effort
                try:
                    if _keeps_order(part, atom, center):
                        continue
                    series, *below = series_of((part, *part.args), atom, center, _SIZE)
                except NoSeries:
                    continue
                least = min(each.valuation for each in below if not each.is_zero)
                regular = not series.is_zero and series.valuation >= 0
                if regular and series.valuation > least and (part.op == "add" or least < 0):
                    radius = _radius(part, atom, center, series)
                    if radius is not None:
                        return _Expansion(part, cofactors, rest, atom, center, series, radius)
        return None

    def _guarded(self, found: _Expansion) -> Node:
        """select(|t| < r, t**m polynomial(t), formula), t = atom - center."""
        graph, atom, radius = self.graph, found.atom, found.radius
        t = atom if found.center == 0 else graph.add(atom, graph.const(-found.center))
        near = graph.node("compare", (graph.call("abs", t), graph.const(radius)), "<")
        u = graph.node("select", (near, t, graph.const(0)))
        v = graph.node("select", (near, graph.const(found.center + radius), atom))
        (formula,) = _substituted((found.part,), graph, {atom.index: v})
        return graph.node("select", (near, _polynomial(graph, u, found.series), formula))

    def _branch(self, node: Node) -> Node | None:
        """select(w != p, F, limit of F at p): the same as F with its singularity removed."""
        condition, yes, no = node.args
        if condition.op != "compare" or condition.value not in ("!=", "=="):
            return None
        formula, value = (yes, no) if condition.value == "!=" else (no, yes)
        for atom, point in (condition.args, condition.args[::-1]):
            if point.op != "const":
                continue
            guards = {part.index: atom for part in postorder((formula,)) if _guards(part, atom, point)}
            (plain,) = fold(_substituted((formula,), self.graph, guards), self.graph)
            found = self._expansion(plain) if plain.op in ("mul", "add") else None
            if found is None or found.atom is not atom or found.center != point.value:
                continue
            limit = exact_number(found.series.coefficients[0]) if found.series.valuation == 0 else sp.S.Zero
            made = self._replacement(plain)
            if made is None:
                continue
            whole = _substituted((made,), self.graph, {self._guarded(found).index: self.graph.const(limit)})
            if fold(whole, self.graph)[0] is value:
                return made
        return None


def _guards(node: Node, atom: Node, point: Node) -> bool:
    """select(atom != point, atom, somewhere safe): what `piecewise` puts in place of a variable."""
    if node.op != "select" or node.args[1] is not atom or node.args[2].op != "const":
        return False
    return node.args[0].op == "compare" and set(node.args[0].args) == {atom, point}


# -- candidates --------------------------------------------------------------------------------------------------------


def _is_small(node: Node) -> bool:
    """Whether there are at most `_LARGEST` nodes below; a product without a reciprocal has no pole and is not looked at."""
    if node.op == "mul" and not any(part.op == "pow" and int(part.value) < 0 for part in node.args):  # type: ignore[call-overload]
        return False
    seen: set[int] = set()
    stack = [node]
    while stack and len(seen) <= _LARGEST:
        part = stack.pop()
        if part.index not in seen:
            seen.add(part.index)
            stack.extend(part.args[: _LARGEST + 1])
    return len(seen) <= _LARGEST


def _parts(graph: Graph, node: Node) -> Iterator[tuple[Node, Node, tuple[Node, ...], tuple[Node, ...]]]:
    """(atom, part that depends on the atom alone, its cofactors, other arguments of the node)."""
    for atom in _atoms(node):
        args = _with_quotient(graph, node.args, atom) if node.op == "mul" else node.args
        alone = [part for part in args if _depends_only(part, atom) and (part.op != "const" or node.op == "add")]
        if sum(part.op != "const" for part in alone) > 1 or (node.op == "add" and len(alone) > 1):
            yield atom, graph.node(node.op, alone), (), tuple(part for part in args if part not in alone)
        if node.op == "add":
            yield from _common_cofactors(graph, node, atom)


def _common_cofactors(
    graph: Graph, node: Node, atom: Node
) -> Iterator[tuple[Node, Node, tuple[Node, ...], tuple[Node, ...]]]:
    """Terms of a sum that are one product of other things times functions of the atom, of which one has a pole."""
    groups: dict[tuple[Node, ...], list[tuple[Node, Node]]] = {}
    for term in node.args:
        factors = _in_terms_of(graph, term.args, atom) if term.op == "mul" else (term,)
        cofactors = tuple(factor for factor in factors if not _depends_only(factor, atom))
        alone = [factor for factor in factors if factor not in cofactors]
        if cofactors and alone:
            groups.setdefault(tuple(sorted(cofactors, key=lambda one: one.index)), []).append((term, graph.mul(*alone)))
    for cofactors, found in groups.items():
        poles = any(part.op == "pow" and int(part.value) < 0 for _, term in found for part in (term, *term.args))  # type: ignore[call-overload]
        if len(found) > 1 and poles:
            terms = [term for term, _ in found]
            part = graph.node("add", [term for _, term in found])
            yield atom, part, cofactors, tuple(arg for arg in node.args if arg not in terms)


def _in_terms_of(graph: Graph, factors: tuple[Node, ...], atom: Node) -> tuple[Node, ...]:
    """1/x**k as y**k / (x y)**k, if x y is the atom; the powers of y gathered."""
    if atom.op != "mul":
        return factors
    product = graph.mul(*factors)
    for factor in (part for part in atom.args if part.op != "const"):
        for pole in [part for part in factors if part.op == "pow" and part.args[0] is factor and int(part.value) < 0]:  # type: ignore[call-overload]
            others = [part for part in atom.args if part is not factor]
            power = -int(pole.value)  # type: ignore[call-overload]
            rest = [part for part in factors if part is not pole]
            (product,) = fold((graph.mul(*rest, *(graph.power(part, power) for part in others), graph.power(atom, -power)),), graph)
            return product.args if product.op == "mul" else (product,)
    return factors


def _atoms(node: Node) -> list[Node]:
    """Variables, then arguments of functions and bases of powers (without numbers in front or behind)."""
    variables = [part for part in postorder((node,)) if part.op == "var"]
    inner: dict[Node, None] = {}
    for part in node.args:
        for call in (part, *(argument for argument in part.args)):
            if call.op in ("call", "pow") and call.args:
                inner.setdefault(_bare(call.args[0]))
    composite = [part for part in inner if part.op in ("mul", "add", "select")]
    return [*(variables if len(variables) < 5 else []), *composite]


def _bare(node: Node) -> Node:
    """u of k u."""
    return node.args[1] if node.op == "mul" and len(node.args) == 2 and node.args[0].op == "const" else node


def _with_quotient(graph: Graph, args: tuple[Node, ...], atom: Node) -> tuple[Node, ...]:
    """1/x 1/y as 1/(x y), if x y is the atom; numbers of the atom aside."""
    if atom.op != "mul":
        return args
    wanted = [graph.power(factor, -1) for factor in atom.args if factor.op != "const"]
    if not all(factor in args for factor in wanted):
        return args
    number = [graph.const(factor.value) for factor in atom.args if factor.op == "const"]  # type: ignore[arg-type]
    return (*(factor for factor in args if factor not in wanted), graph.power(atom, -1), *number)


def _depends_only(node: Node, atom: Node) -> bool:
    """Whether the node is a function of the atom."""
    stack, seen = [node], set()
    while stack:
        part = stack.pop()
        if part is atom or part.index in seen:
            continue
        if part.op in ("var", "select"):
            return False
        seen.add(part.index)
        stack.extend(part.args)
    return True


def _centers(part: Node, atom: Node) -> list[sp.Expr]:
    """Zeros of denominators; of a sum also 0."""
    found: dict[sp.Expr, None] = {}
    for node in postorder((part,)):
        if node.op == "pow" and int(node.value) < 0:  # type: ignore[call-overload]
            zero = _zero(node.args[0], atom, sp.S.Zero)
            if zero is not None:
                found.setdefault(zero)
    if part.op == "add":
        found.setdefault(sp.S.Zero)
    return list(found)


def _zero(node: Node, atom: Node, level: sp.Expr) -> sp.Expr | None:
    """Where node = level, for linear functions of the atom and functions with one simple zero."""
    while node is not atom:
        if node.op == "add" and len(node.args) == 2 and node.args[1].op == "const":
            level, node = level - node.args[1].value, node.args[0]  # type: ignore[operator]
        elif node.op == "mul" and len(node.args) == 2 and node.args[0].op == "const":
            level, node = level / node.args[0].value, node.args[1]  # type: ignore[operator]
        elif node.op == "call" and level == 0 and (node.value in _ODD or node.value == "log"):
            level, node = sp.Integer(node.value == "log"), node.args[0]
        elif node.op == "pow" and level == 0 and int(node.value) > 0:  # type: ignore[call-overload]
            node = node.args[0]
        else:
            return None
    return level if isinstance(level, sp.Rational) else None


# -- the polynomial ----------------------------------------------------------------------------------------------------


def _radius(part: Node, atom: Node, center: sp.Expr, series: Series) -> sp.Rational | None:
    """The largest radius at which the last terms are below the accuracy and the polynomial agrees with the formula."""
    with mpmath.workdps(DIGITS):
        sizes = [abs(value) for value in series.coefficients]
        for radius in _RADII:
            scaled = [size * mpmath.mpf(radius.p) ** k / mpmath.mpf(radius.q) ** k for k, size in enumerate(sizes)]
            if max(scaled[-4:]) <= _TAIL * scaled[0] and _agrees(part, atom, center, series, radius):
                return radius
    return None


def _agrees(part: Node, atom: Node, center: sp.Expr, series: Series, radius: sp.Rational) -> bool:
    """In more digits than the formula loses. Gaps in a series hide terms that are not known, so its tail is not enough."""
    with mpmath.workdps(4 * DIGITS):
        for trial in _TRIALS:
            t = mpmath.mpf(trial) * radius.p / radius.q
            place = {atom.index: mpmath.mpf(center.p) / center.q + t}  # pyright: ignore[reportAttributeAccessIssue]
            try:
                (wanted,) = evaluate((part,), place)
            except (KeyError, TypeError, ValueError, ZeroDivisionError):
                return False
            found = t**series.valuation * mpmath.polyval(list(series.coefficients[::-1]), t)
            if not abs(found - wanted) <= _AGREEMENT * abs(wanted):
                return False
    return True


def _polynomial(graph: Graph, u: Node, series: Series) -> Node:
    """t**valuation times Horner's form, in t**2 if every other coefficient is zero."""
    numbers = list(series.coefficients)
    step = 2 if not any(numbers[1::2]) else 1
    numbers = numbers[::step]
    variable = graph.power(u, step)
    total = graph.const(exact_number(numbers[-1]))
    for number in numbers[-2::-1]:
        total = graph.mul(variable, total) if total.op != "const" or total.value != 0 else total
        if number:
            constant = graph.const(exact_number(number))
            total = constant if total.op == "const" and total.value == 0 else graph.add(total, constant)
    return graph.mul(graph.power(u, series.valuation), total) if series.valuation else total


def _keeps_order(part: Node, atom: Node, center: sp.Expr) -> bool:
    """Whether the first coefficients show that nothing cancels; what they do not decide needs all of them."""
    try:
        series, *below = series_of((part, *part.args), atom, center, _PROBE)
    except NoSeries:
        return False
    if series.is_zero or any(each.is_zero for each in below):
        return False
    return series.valuation <= min(each.valuation for each in below)


def _substituted(roots: Iterable[Node], graph: Graph, known: Mapping[int, Node]) -> tuple[Node, ...]:
    return rebuild(tuple(roots), graph, lambda graph, node, args: known.get(node.index))
