r"""Gradient descent as an expansion in derivative contractions: F(theta(s)) about its linearisation, from the update rule alone.

    theta(s+1) = theta(s) - eta sum_b w_b C'(F(theta(s))(x_b), y_b) grad F(theta(s))(x_b)

Everything on the right is expanded about theta(0): the gradient in the displacement u(s) = theta(s) - theta(0), and C' about the
linear model F_lin(s). What comes out is a sum of contractions of derivative tensors along trees (`derivative_trees`), each of them
a product of correlations C_{D,d}; eta and the factorials of the definition of C_{D,d} are what the expansion asks for.

Terms are kept by weight: every C_{D,d} beyond the kernel has one, and a product has the sum. With the weight k/2 of n^{-k/2} the
truncation is an expansion in the width.

References: Shem-Ur, Oz, arXiv 2401.04013; weak_correlations.md, sections 1 to 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any, Literal

import numpy as np
import sympy

from .derivative_trees import ETA, Branch, Tensors, Tree, Weight, least_weight

__all__ = ["Term", "UpdateExpansion", "UpdateExpansionError", "expand_updates", "loss_derivative", "one_step"]

#: no expansion looks for derivatives beyond this order before it gives up
HIGHEST = 64
Product = tuple[Tree, ...]
Sum = dict[Product, sympy.Expr]


class UpdateExpansionError(ValueError):
    """A request that has no finite expansion, or batches and weights that make no sense."""


def loss_derivative(order: int, step: int, label: str) -> sympy.Symbol:
    """The derivative of the loss of that order in F, at F_lin(step)(label).

    >>> loss_derivative(1, 0, "x")
    c1_0_x
    """
    return sympy.Symbol(f"c{order}_{step}_{label}")


@dataclass(frozen=True, slots=True)
class Term:
    """coefficient times a product of correlations contracted along trees.

    Attributes:
        coefficient: a polynomial in the derivatives of the loss: eta and the factorials are inside the C_{D,d}.
        trees: the factors.
        weight: the sum of the weights of their correlations.
    """

    coefficient: sympy.Expr
    trees: Product
    weight: sympy.Expr

    @property
    def correlations(self) -> tuple[tuple[int, int], ...]:
        """(D, d) of all factors, the kernel (0, 1) included."""
        return tuple(sorted(pair for tree in self.trees for pair in tree.correlations))

    def __str__(self) -> str:
        return " ".join([f"({self.coefficient})", *map(str, self.trees)])

    def latex(self) -> str:
        """The term as LaTeX."""
        factored: Any = sympy.factor(self.coefficient)
        text = sympy.latex(factored, symbol_names=_names(factored))
        return " ".join([rf"\left({text}\right)" if factored.is_Add else text, *(tree.latex() for tree in self.trees)])


def _names(expr: sympy.Expr) -> dict[sympy.Symbol, str]:
    found = {}
    for symbol in expr.free_symbols:
        order, step, label = symbol.name[1:].split("_", 2)  # type: ignore[attr-defined]
        found[symbol] = f"C{chr(39) * int(order)}_{{{step}}}({label})" if int(order) < 4 else f"C^{{({order})}}_{{{step}}}({label})"
    return found


@dataclass(frozen=True, slots=True, eq=False)
class UpdateExpansion:
    """F(theta(s))(x) - F_lin(s)(x), or the change of a scaled derivative, as a sum of products of C_{D,d}.

    Attributes:
        steps: s. input: x. free: D of the scaled derivative eta^{D/2}/D! grad^D F, 0 for the function.
        terms: by weight, then by number of factors.
        order: the highest derivative kept. cut: the highest weight kept.
        complete: no term within `cut` has been left out because of `order`.
    """

    steps: int
    input: str
    free: int
    terms: tuple[Term, ...]
    order: int
    cut: sympy.Expr
    complete: bool

    def evaluate(self, tensors: Tensors, eta: float, losses: Mapping[sympy.Symbol, float]) -> np.ndarray:
        """The sum, from derivative tensors of F at theta(0) and the derivatives of the loss along the linear model."""
        total: Any = 0.0
        for term in self.terms:
            factor = prod(float(tree.factor(eta)) for tree in term.trees)
            number = float(term.coefficient.subs(list(losses.items()))) / factor
            total = total + number * reduce(np.multiply, (tree.value(tensors) for tree in term.trees))
        return np.asarray(total)

    def __str__(self) -> str:
        return "\n".join(map(str, self.terms)) or "0"


def expand_updates(
    batches: Sequence[Iterable[str]],
    input: str = "x",
    *,
    weight: Weight,
    cut: Any,
    free: int = 0,
    order: int | None = None,
    loss: Literal["general", "square"] = "general",
    mean: bool = False,
) -> UpdateExpansion:
    """Expand F(theta(s))(input) - F_lin(s)(input), s the number of batches, up to the weight `cut`.

    Args:
        batches: the inputs of each step: ``["a"]`` for SGD, all inputs for gradient descent.
        weight: (D, d) -> weight >= 0 of C_{D,d}, for example d: the powers of m^{-1/2} of exponential weak correlation.
        free: D > 0 expands the change of the scaled D-th derivative instead.
        order: the highest derivative of F; by default all that reach `cut`.
        loss: "square" has C'' = 1 and no higher derivative.
        mean: average over a batch instead of the sum.

    Raises:
        UpdateExpansionError: no batch, an empty one, or infinitely many orders below `cut` (then give ``order``).

    Example:
        One step: the C_{0,d} with the powers of -C', and nothing else.

        >>> print(expand_updates([["x"]], weight=lambda D, d: d, cut=3))
        (c1_0_x**2) C_{0,2}(x; x, x)
        (-c1_0_x**3) C_{0,3}(x; x, x, x)
    """
    draws = [tuple(batch) for batch in batches]
    if not draws or not all(draws):
        raise UpdateExpansionError(f"batches = {draws}: one non-empty batch of inputs is required for each step")
    if free < 0 or sympy.sympify(cut).is_negative:
        raise UpdateExpansionError(f"free = {free}, cut = {cut}: both must be non-negative")
    limit, complete = _highest(weight, cut, free, order)
    machine = _Expander(weight, sympy.sympify(cut), limit, loss, mean)
    displacement: dict[tuple[Branch, Product], sympy.Expr] = {}
    for step, batch in enumerate(draws):
        displacement = machine.updated(displacement, step, batch, draws[:step])
    found = machine.deviation(displacement, input, draws, free)
    terms = []
    for trees, coefficient in found.items():
        scaled = sympy.expand(coefficient * prod((tree.factor() for tree in trees), start=sympy.S.One))
        scaled = sympy.expand(scaled * ETA ** sympy.Rational(free, 2) / factorial(free))
        if scaled != 0:
            terms.append(Term(scaled, trees, machine.total(trees)))
    terms.sort(key=lambda term: (term.weight, len(term.trees), term.trees))
    return UpdateExpansion(len(draws), input, free, tuple(terms), limit, machine.cut, complete)


def one_step(order: int, free: int = 0) -> UpdateExpansion:
    """One step on one input, exactly up to the derivative ``order``: sum_d (-C')^d C_{D,d}.

    Example:
        >>> print(one_step(3, free=1))
        (-c1_0_x) C_{1,1}(x; x)
        (c1_0_x**2) C_{1,2}(x; x, x)
    """
    return expand_updates([["x"]], weight=_zero, cut=0, free=free, order=order)


def _zero(D: int, d: int) -> int:
    return 0


def _highest(weight: Weight, cut: Any, free: int, order: int | None) -> tuple[int, bool]:
    """The highest derivative that a tree of weight <= cut may contain, and whether `order` allows it."""
    ends = min(min(weight(1, d), weight(0, d + 1)) for d in range(1, HIGHEST))

    def reaches(k: int) -> bool:
        return any(weight(D, k - D) + max(D - free, 0) * ends <= cut for D in range(k + 1))

    possible = [k for k in range(2, HIGHEST + 1) if reaches(k)]
    needed = max(possible, default=1)
    if order is None:
        if needed >= HIGHEST:
            raise UpdateExpansionError(
                f"derivatives of every order have weight <= {cut} (a bound that is uniform in d does not fall with d); give order="
            )
        return max(needed, free + 1), True
    if order < 1:
        raise UpdateExpansionError(f"order = {order}: the expansion needs at least the gradient, order >= 1")
    return order, order >= needed


class _Expander:
    """The recursion over steps with its truncation."""

    def __init__(self, weight: Weight, cut: sympy.Expr, order: int, loss: str, mean: bool) -> None:
        if loss not in ("general", "square"):
            raise UpdateExpansionError(f"loss = {loss!r}: 'general' (analytic) or 'square' is required")
        self.weight, self.cut, self.order, self.square, self.mean = weight, cut, order, loss == "square", mean

    def total(self, trees: Product) -> sympy.Expr:
        return sympy.Add(*(tree.weight(self.weight) for tree in trees))

    # -- the displacement -------------------------------------------------------------------------------------------

    def updated(
        self, u: dict[tuple[Branch, Product], sympy.Expr], step: int, batch: tuple[str, ...], before: list[tuple[str, ...]]
    ) -> dict[tuple[Branch, Product], sympy.Expr]:
        """u(step + 1) = u(step) - eta sum_b w C' grad F(theta(step))(x_b)."""
        grown = dict(u)
        for label in batch:
            slope = self._slope(self.deviation(u, label, before, 0), step, label)
            for (branch, trees), coefficient in self._expanded(u, label, 1).items():
                for more, value in slope.items():
                    product = tuple(sorted((*trees, *more)))
                    if least_weight(branch, self.weight) + self.total(product) > self.cut:
                        continue
                    change = -ETA * coefficient * value / (len(batch) if self.mean else 1)
                    grown[branch, product] = sympy.expand(grown.get((branch, product), 0) + change)
        return grown

    def _slope(self, deviation: Sum, step: int, label: str) -> Sum:
        """C'(F_lin + deviation) as a sum over products of trees."""
        total: Sum = {(): loss_derivative(1, step, label)}
        power: Sum = {(): sympy.S.One}
        for j in range(1, HIGHEST):
            power = self._times(power, deviation)
            derivative = (sympy.S.One if j == 1 else sympy.S.Zero) if self.square else loss_derivative(j + 1, step, label)
            if not power or derivative == 0:
                return total
            for trees, value in power.items():
                total[trees] = total.get(trees, sympy.S.Zero) + value * derivative / factorial(j)
        raise UpdateExpansionError("the deviation has no positive weight: give every C_{D,d} beyond the kernel a weight")

    def _times(self, left: Sum, right: Sum) -> Sum:
        found: Sum = {}
        for a, x in left.items():
            for b, y in right.items():
                trees = tuple(sorted((*a, *b)))
                if self.total(trees) <= self.cut:
                    found[trees] = found.get(trees, sympy.S.Zero) + x * y
        return found

    # -- Taylor in the displacement ----------------------------------------------------------------------------------

    def deviation(self, u: dict[tuple[Branch, Product], sympy.Expr], label: str, batches: list[tuple[str, ...]], free: int) -> Sum:
        """F(theta(s))(label) - F_lin(s)(label); for open slots the change of the derivative."""
        found: Sum = {}
        for (root, trees), coefficient in self._expanded(u, label, free).items():
            product = tuple(sorted((Tree(root, free), *trees)))
            if root.children and self.total(product) <= self.cut:
                found[product] = sympy.expand(found.get(product, 0) + coefficient)
        if not free:
            for step, batch in enumerate(batches):
                for other in batch:
                    kernel = (Tree(Branch(label, (Branch(other),))),)
                    change = ETA * loss_derivative(1, step, other) / (len(batch) if self.mean else 1)
                    found[kernel] = sympy.expand(found.get(kernel, 0) + change)
        return {trees: value for trees, value in found.items() if value != 0}

    def _expanded(
        self, u: dict[tuple[Branch, Product], sympy.Expr], label: str, free: int
    ) -> dict[tuple[Branch, Product], sympy.Expr]:
        """grad^free F(theta(0) + u)(label) = sum_k 1/k! grad^{free+k} F[u, .., u], within the cut."""
        found: dict[tuple[Branch, Product], sympy.Expr] = {(Branch(label), ()): sympy.S.One}
        parts = list(u.items())
        for k in range(1, self.order - free + 1):
            for chosen in combinations_with_replacement(range(len(parts)), k):
                branches = tuple(sorted(parts[i][0][0] for i in chosen))
                trees = tuple(sorted(tree for i in chosen for tree in parts[i][0][1]))
                if self._least(label, branches, free) + self.total(trees) > self.cut:
                    continue
                repeated = prod(factorial(chosen.count(i)) for i in set(chosen))
                value = prod((parts[i][1] for i in chosen), start=sympy.S.One) / repeated
                key = Branch(label, branches), trees
                found[key] = found.get(key, sympy.S.Zero) + value
        return {key: sympy.expand(value) for key, value in found.items()}

    def _least(self, label: str, branches: tuple[Branch, ...], free: int) -> sympy.Expr:
        """A lower bound of the weight of what the vertex can become a part of."""
        root = Branch(label, branches)
        if free == 1:
            return least_weight(root, self.weight)
        return Tree(root, free).weight(self.weight)
