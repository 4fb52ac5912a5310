r"""Contractions of derivative tensors of a function F(theta)(x) along trees, and their factors C_{D,d}.

A vertex is grad^k F at one input, an edge one contracted parameter index; a vertex of one edge is a gradient. With D edges to
other tensors of order two and more and d edges to gradients, a vertex is

    grad^{D+d} F [v, .., v] = D! d! eta^{-(D/2+d)} C_{D,d},      v = grad F,

so that a tree of V such vertices and L gradients is a contraction of V correlations, with eta^{-(V - 1 + L)} in all. Trees have
no root: grad F(x) . H(x') v and H(x')[v(x), v] are one number. By N4 (single contractions) a tree is at most the product of the
subordinate norms of its C_{D,d}.

References: weak_correlations.md, section 2; the trees are those of a B-series (Hairer, Lubich, Wanner, Geometric Numerical
Integration, chapter III).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
import sympy

__all__ = ["ETA", "Branch", "Tree", "Weight", "least_weight"]

ETA = sympy.Symbol("eta", positive=True)
#: (D, d) -> weight of C_{D,d}
Weight = Callable[[int, int], Any]
#: (input, order) -> the derivative tensor grad^order F(input) at theta(0), as an array
Tensors = Callable[[str, int], np.ndarray]


@dataclass(frozen=True, slots=True, order=True)
class Branch:
    """A derivative tensor at input ``label`` with a branch in each slot but those left open; without children: a gradient."""

    label: str
    children: tuple[Branch, ...] = ()

    @property
    def leaves(self) -> int:
        """Number of children that are gradients."""
        return sum(not child.children for child in self.children)

    @property
    def inner(self) -> int:
        """Number of children that are tensors of higher order."""
        return len(self.children) - self.leaves

    def vector(self, tensors: Tensors) -> np.ndarray:
        """The parameter vector of a branch with one open slot."""
        return _contracted(self, tensors, 1)


def _contracted(branch: Branch, tensors: Tensors, free: int) -> np.ndarray:
    tensor = np.asarray(tensors(branch.label, len(branch.children) + free))
    for child in branch.children:
        tensor = tensor @ child.vector(tensors)
    return tensor


@dataclass(frozen=True, slots=True, order=True)
class Tree:
    """A contraction of derivative tensors along a tree, with ``free`` open slots at its root.

    Without open slots the root is chosen by the canonical form, so that equal contractions are equal objects.

    Example:
        >>> H = Branch("x", (Branch("a"),))
        >>> Tree(Branch("b", (H,))) == Tree(Branch("x", (Branch("a"), Branch("b"))))
        True
        >>> print(Tree(Branch("b", (H,))), "and", Tree(Branch("x", (H, H))))
        C_{0,2}(x; a, b) and C_{1,1}(x; a)[C_{2,0}(x)[C_{1,1}(x; a)]]
    """

    root: Branch
    free: int = 0

    def __post_init__(self) -> None:
        if not self.free:
            object.__setattr__(self, "root", _canonical(self.root))

    @property
    def correlations(self) -> tuple[tuple[int, int], ...]:
        """(D, d) of every factor, sorted; (0, 1) for the tangent kernel, (0, 0) for the function, (1, 0) for an open gradient."""
        return tuple(sorted((big, small) for big, small, _ in _vertices(self)))

    @property
    def gradients(self) -> int:
        """Number of gradients that are contracted."""
        return sum(d for _, d in self.correlations) + (self.correlations == ((0, 1),))

    def weight(self, weight: Weight) -> sympy.Expr:
        """The sum of the weights of the factors; the kernel, the function and an open gradient have none."""
        found = [pair for pair in self.correlations if pair not in ((0, 0), (0, 1), (1, 0))]
        return sympy.Add(*(weight(*pair) for pair in found))

    def factor(self, eta: Any = ETA) -> sympy.Expr:
        """What the product of the C_{D,d} is multiplied by: prod D! d! eta^{-(D/2 + d)}."""
        value = sympy.S.One
        for D, d in self.correlations:
            value *= factorial(D) * factorial(d) * sympy.sympify(eta) ** -(sympy.Rational(D, 2) + d)
        return value

    def value(self, tensors: Tensors) -> np.ndarray:
        """The contraction itself, from given derivative tensors: a number, or an array with ``free`` axes."""
        return _contracted(self.root, tensors, self.free)

    def __str__(self) -> str:
        return _written(self.root, self.free, "C_{{{},{}}}({}{})", "; ")

    def latex(self) -> str:
        """The contraction as LaTeX."""
        return _written(self.root, self.free, r"C_{{{},{}}}({}{})", ";")


def _vertices(tree: Tree) -> Iterator[tuple[int, int, Branch]]:
    """(D, d, vertex) of the tensors of order two and more; of the root alone if there is none."""
    order = len(tree.root.children) + tree.free
    if order <= 1:
        yield tree.free, len(tree.root.children), tree.root
        return
    stack = [(tree.root, tree.free)]
    while stack:
        branch, above = stack.pop()
        yield above + branch.inner, branch.leaves, branch
        stack += [(child, 1) for child in branch.children if child.children]


def _written(branch: Branch, above: int, form: str, mark: str) -> str:
    gradients = sorted(child.label for child in branch.children if not child.children)
    inner = [_written(child, 1, form, mark) for child in branch.children if child.children]
    text = form.format(above + len(inner), len(gradients), branch.label, mark + ", ".join(gradients) if gradients else "")
    return text + (f"[{', '.join(inner)}]" if inner else "")


@lru_cache(maxsize=65536)
def _canonical(root: Branch) -> Branch:
    """The smallest of the trees rooted at a tensor of order two and more, or at a gradient if there is none."""
    labels: list[str] = []
    edges: list[list[int]] = []

    def visit(branch: Branch) -> int:
        at = len(labels)
        labels.append(branch.label)
        edges.append([])
        for child in branch.children:
            below = visit(child)
            edges[at].append(below)
            edges[below].append(at)
        return at

    visit(root)

    def hung(at: int, above: int) -> Branch:
        return Branch(labels[at], tuple(sorted(hung(to, at) for to in edges[at] if to != above)))

    inner = [at for at, near in enumerate(edges) if len(near) >= 2]
    return min(hung(at, -1) for at in inner or range(len(labels)))


def least_weight(branch: Branch, weight: Weight) -> sympy.Expr:
    """A lower bound of the weight of every tree that contains this branch with one slot open."""
    return _least(branch, weight)


@lru_cache(maxsize=65536)
def _least(branch: Branch, weight: Weight) -> sympy.Expr:
    if not branch.children:
        return sympy.S.Zero
    top = min(weight(branch.inner + 1, branch.leaves), _or_zero(weight, branch.inner, branch.leaves + 1))
    return sympy.sympify(top) + sympy.Add(*(_below(child, weight) for child in branch.children))


def _below(branch: Branch, weight: Weight) -> sympy.Expr:
    """The exact weight of a branch that hangs on a tensor of order two and more."""
    if not branch.children:
        return sympy.S.Zero
    return sympy.sympify(weight(branch.inner + 1, branch.leaves)) + sympy.Add(*(_below(child, weight) for child in branch.children))


def _or_zero(weight: Weight, D: int, d: int) -> Any:
    return sympy.S.Zero if (D, d) in ((0, 0), (0, 1), (1, 0)) else weight(D, d)
