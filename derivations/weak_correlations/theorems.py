r"""Theorems 3.1, 3.2 and the SGD corollary as derivations: assumptions are objects, conclusions follow from the trees.

Every term of F(theta(s)) - F_lin(s) is a product of C_{D,d} along trees (`symtensor.expansion.update_expansion`). A tree of one
tensor is C_{0,d} with d >= 2; a tree of more has at least two end tensors, each a C_{1,d} with d >= 1. So the smallest weight of a
tree is

    min( min_{d >= 2} w(0, d),  2 min_{d >= 1} w(1, d) + (what lies between, >= 0) ).

References: Shem-Ur, Oz, arXiv 2401.04013, section 3; weak_correlations.md, sections 2, 3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sympy as sp

from symtensor.bounds import Bound, Expr, RandomTensor, bound, contract_vectors, known, outer, scale
from symtensor.bounds import Kind as BigO
from symtensor.expansion.derivative_trees import Branch, Tree
from symtensor.expansion.update_expansion import UpdateExpansion, expand_updates

__all__ = [
    "ASSUMPTIONS", "THEOREMS", "Assumption", "Kind", "MissingAssumptionError", "Rate", "Theorem", "deviation_exponent",
    "largest_rate", "learning_rate_power", "least_tree_weight", "product_bound", "required_exponent", "term_bound", "weights",
]  # fmt: skip

Kind = Literal["fixed", "exponential"]
Exponent = Callable[[int, int], Any]
#: what is compared for all d is compared up to this one; exponents are linear in d with period 2, so that this decides
HIGHEST = 40
HALF = sp.Rational(1, 2)


class MissingAssumptionError(ValueError):
    """A theorem was used without one of its assumptions; the text names it."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A hypothesis: its name, what it says (inline LaTeX), and how it can be checked on a run ("" if it cannot)."""

    name: str
    statement: str
    checked_by: str = ""


@dataclass(frozen=True, slots=True)
class Theorem:
    """A conclusion and the assumptions it needs.

    Attributes:
        name: printed number or name. assumptions: names in `ASSUMPTIONS`.
        conclusion: LaTeX. kind: which weak correlation.
    """

    name: str
    assumptions: tuple[str, ...]
    conclusion: str
    kind: Kind

    def derive(self, assumed: Mapping[str, Assumption] | frozenset[str], rate: str = "m") -> Bound:
        """F(theta(s)) - F_lin(s) as a bound in the rate m(n), computed from the trees.

        Raises:
            MissingAssumptionError: an assumption of the theorem is not among ``assumed``.
        """
        missing = [name for name in self.assumptions if name not in assumed]
        if missing:
            raise MissingAssumptionError(f"{self.name} needs {missing[0]!r}: {ASSUMPTIONS[missing[0]].statement}")
        power = HALF * least_tree_weight(weights(self.kind))
        return Bound(scale(rate) ** -power, BigO.O, provenance=f"{self.name}, least weight of a tree")


ASSUMPTIONS: dict[str, Assumption] = {
    item.name: item
    for item in (
        Assumption("analytic", r"$F$ and the loss are analytic, $\phi^{(k)} = O((k+1)!)$", "growth_condition of the activation"),
        Assumption("normalised", r"$f$, $\Theta$, the first change and $C_{D,0}$ are $O(1)$ (and $f$, $\Theta$ of order 1)",
                   "slopes of $|f|$, $C_{0,1}$ and $C' C_{0,1}$ in the width"),
        Assumption("fixed weak correlation", r"$C_{0,d} = O(1/m)$, $d \ge 2$; $C_{D,d} = O(1/\sqrt m)$, $D, d \ge 1$; uniformly",
                   "measured quantiles of $C_{D,d}$"),
        Assumption("exponential weak correlation", r"$C_{D,d} = O(m^{-d/2})$ for $(D,d) \ne (0,1)$, uniformly",
                   "measured quantiles of $C_{D,d}$"),
        Assumption("fixed number of steps", r"$s$ does not grow with $n$ (R20)"),
        Assumption("small learning rate", r"$\eta$ is below a threshold that is not explicit", "sharpness of the linear model < 2"),
        Assumption("exponential decay", r"$C'(F_{lin}(s), y) = O(e^{-s/T})$ uniformly in $s$",
                   "fit of the residual of the linear model over the steps of the run"),
    )
}  # fmt: skip

_COMMON = ("analytic", "normalised", "small learning rate")
THEOREMS: tuple[Theorem, ...] = (
    Theorem("Theorem 3.1", (*_COMMON, "fixed weak correlation", "fixed number of steps"),
            r"F(\theta(s)) - F_{lin}(s) = O(1/m)", "fixed"),
    Theorem("Theorem 3.2", (*_COMMON, "exponential weak correlation", "fixed number of steps"),
            r"F(\theta(s)) - F_{lin}(s) = O(r/m),\quad \eta \to r\,\eta", "exponential"),
    Theorem("Corollary (SGD)", (*_COMMON, "exponential weak correlation", "exponential decay"),
            r"F(\theta(s)) - F_{lin}(s) = O(s^0/m)", "exponential"),
)  # fmt: skip


def weights(kind: Kind) -> Callable[[int, int], sp.Integer]:
    """The powers of m^{-1/2} that a definition gives C_{D,d}; C_{D,0} with D >= 2 is only O(1), by normalisation."""
    if kind == "exponential":
        return lambda D, d: sp.Integer(d)
    return lambda D, d: sp.Integer(0 if d == 0 else 2 if D == 0 else 1)


def least_tree_weight(weight: Callable[[int, int], sp.Expr], ends: int = 2) -> sp.Expr:
    """The smallest weight of a tree beyond the kernel: one C_{0,d}, d >= 2, or two ends C_{1,d} (weights must not be negative).

    Example:
        >>> least_tree_weight(weights("fixed")), least_tree_weight(weights("exponential"))
        (2, 2)
    """
    alone = min(weight(0, d) for d in range(2, HIGHEST))
    end = min(weight(1, d) for d in range(1, HIGHEST))
    return min(alone, ends * end)


def learning_rate_power(tree: Tree) -> int:
    """The power of r in a tree under eta -> r eta: C_{D,d} has eta^{D/2+d}.

    Example:
        >>> learning_rate_power(Tree(Branch("x", (Branch("a"), Branch("b")))))
        2
    """
    return int(sum(HALF * D + d for D, d in tree.correlations))


def term_bound(tree: Tree, bounds: Callable[[int, int], str]) -> Bound:
    """The bound of a tree through the algebra: single contractions of vectors (N4), one rule a vertex."""

    def node(branch: Branch, slot: str) -> Expr:
        children = [child for child in branch.children if child.children]
        below = [f"{slot or 's'}{k}" for k in range(len(children))]
        labels = tuple(([slot] if slot else []) + below)
        tensor = RandomTensor(f"C{slot}", dict.fromkeys(labels, "n"), [known(bounds(len(labels), branch.leaves))])
        found = tensor[labels] if labels else tensor.expr
        inner = {label: node(child, label) for label, child in zip(below, children)}
        return contract_vectors(found, inner) if inner else found

    if tree.correlations == ((0, 1),):
        return bound(RandomTensor("kernel", facts=[known(bounds(0, 1))]))
    return bound(node(tree.root, ""))


def product_bound(trees: tuple[Tree, ...], bounds: Callable[[int, int], str]) -> Bound:
    """The bound of a product of trees (R3)."""
    parts = [RandomTensor(f"tree{k}", facts=[known(term_bound(tree, bounds).scale)]).expr for k, tree in enumerate(trees)]
    total = parts[0]
    for part in parts[1:]:
        total = outer(total, part)
    return bound(total)


# -- rates for given exponents -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rate:
    """sup of the exponents mu with m = n^mu allowed, and the correlation that stops there."""

    exponent: Any
    worst: tuple[int, int]


def required_exponent(kind: Kind, D: int, d: int, mu: Any) -> Any:
    """c with C_{D,d} = O(n^-c) asked for by the definition with m = n^mu.

    Example:
        >>> required_exponent("exponential", 0, 3, sp.Rational(3, 2))
        9/4
    """
    return HALF * mu * weights(kind)(D, d)


def largest_rate(exponents: Exponent, kind: Kind, highest: int = HIGHEST) -> Rate:
    """The largest m = n^mu for which C_{D,d} = O(n^{-exponents(D,d)}) satisfies the definition.

    Args:
        exponents: (D, d) -> c, up to logarithms. kind: which definition. highest: D + d <= highest is compared.

    Example:
        >>> rate = largest_rate(lambda D, d: sp.Rational(d // 2) if D == 0 else sp.Rational(d + (D > 1), 2), "exponential")
        >>> rate.exponent, rate.worst
        (2/3, (0, 3))
    """
    w = weights(kind)
    pairs = [(D, d) for d in range(1, highest + 1) for D in range(highest + 1 - d) if (D, d) != (0, 1)]
    found = {pair: exponents(*pair) / (HALF * w(*pair)) for pair in pairs}
    worst = min(found, key=lambda pair: (found[pair], sum(pair)))
    return Rate(sp.Rational(found[worst]), worst)


def deviation_exponent(exponents: Exponent, steps: int = 2) -> tuple[Any, tuple[str, ...], UpdateExpansion]:
    """The order n^-c of F - F_lin after a few steps, with the kinds of terms of that order, from exponents of the C_{D,d}.

    The expansion is cut at the order of the leading term.
    """
    cut = least_tree_weight(exponents)
    found = expand_updates([["x"]] * steps, weight=exponents, cut=cut)
    lowest = min(term.weight for term in found.terms)
    leading = [term for term in found.terms if term.weight == lowest]
    kinds = {" ".join(f"C_{{{D},{d}}}" for D, d in term.correlations if (D, d) != (0, 1)) for term in leading}
    return sp.Rational(lowest), tuple(sorted(kinds)), found
