"""Products and contractions of Gaussian tensors, written as expressions, as contraction networks: from O by R4 to Theta by R8c."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import sympy

from .errors import MissingHypothesisError
from .expr import Expr
from .facts import Fact
from .network import DELTA, GaussianNetwork
from .rules.base import Given
from .scale import Scale, ScaleError

__all__ = ["FIXED", "NotANetworkError", "network_of"]

#: stands for every dimension that does not grow; its value does not change an order
FIXED = sympy.Symbol("(fixed dimension)", positive=True)  # no name that a size can have
TENSOR = "tensor "
_JOINS = ("contract", "contract_vectors", "trace", "outer")


class NotANetworkError(ValueError):
    """An expression that is no single product or contraction of Gaussian tensors."""


def network_of(expr: Expr, assume: Iterable[Fact] = ()) -> GaussianNetwork:
    """The network of a product, contraction, trace or multiple of tensors with independent standard Gaussian entries.

    Sizes of slots are scales, known up to constants. For a single product that is enough: E M^2 is a sum over pairings of
    positive terms, so its order is exact. In a sum they could cancel, which needs a `NetworkSum` with exact sizes.

    Raises:
        NotANetworkError: a sum, a function, a family, or a tensor without the fact ``gaussian``.
        MissingHypothesisError: independence of the tensors is not stated.

    Example:
        >>> from symtensor.bounds.facts import gaussian, independent
        >>> from symtensor.bounds.operations import contract
        >>> from symtensor.bounds.tensors import RandomTensor
        >>> u, v = (RandomTensor(name, {"i": "n"}, [gaussian()]) for name in "uv")
        >>> network_of(contract(u["i"], v["i"], over="i"), [independent(u, v)]).second_moment()
        n
    """
    builder = _Builder()
    labels, coefficient = builder.read(expr)
    given = Given([*(fact for leaf in builder.leaves for fact in leaf.data.facts), *assume])
    for leaf in builder.leaves:
        if given.find("gaussian", leaf) is None:
            raise NotANetworkError(f"{leaf} is not known to have independent standard Gaussian entries; state gaussian()")
    distinct = {leaf.data.name: leaf for leaf in builder.leaves}
    if len(distinct) > 1 and given.find("independent", *distinct.values()) is None:
        names = ", ".join(sorted(distinct))
        raise MissingHypothesisError(
            "R8c", "independent", names, f"state independent({names})", "u.v of two Gaussian vectors is of order n if u = v"
        )
    free = set(labels.values())
    summed = [i for i in builder.sizes if i not in free]
    return GaussianNetwork(tuple(builder.factors), builder.sizes, summed, coefficient)


class _Builder:
    """Factors, deltas and sizes collected from the leaves up; every slot of every occurrence has an index of its own."""

    def __init__(self) -> None:
        self.factors: list[tuple[str, tuple[str, ...]]] = []
        self.sizes: dict[str, sympy.Expr] = {}
        self.leaves: list[Expr] = []
        self.fresh = count()

    def read(self, node: Expr) -> tuple[dict[str, str], sympy.Expr]:
        """The index of each free label, and the coefficient."""
        if node.family:
            raise NotANetworkError(f"{node} is a family over {node.family[0][0]}; take one member")
        if node.op == "leaf":
            return self.leaf(node), sympy.S.One
        if node.op == "scaled":
            labels, coefficient = self.read(node.children[0])
            return labels, coefficient * (as_sympy(node.data) if isinstance(node.data, Scale) else node.data)
        if node.op not in _JOINS:
            raise NotANetworkError(f"{node} ({node.op}) is no product or contraction of Gaussian tensors")
        if node.op == "trace":
            labels, coefficient = self.read(node.children[0])
            self.factors.append((DELTA, (labels.pop(node.data[0]), labels.pop(node.data[1]))))
            return labels, coefficient
        return self.joined(node)

    def leaf(self, node: Expr) -> dict[str, str]:
        labels = {label: f"x{next(self.fresh)}" for label in node.labels}
        self.sizes |= {labels[label]: as_sympy(size) for label, size in node.slots}
        self.factors.append((TENSOR + node.data.name, tuple(labels.values())))  # a tensor may be called delta
        self.leaves.append(node)
        return labels

    def joined(self, node: Expr) -> tuple[dict[str, str], sympy.Expr]:
        over = node.data if node.op in ("contract", "contract_vectors") else ()
        labels: dict[str, str] = {}
        coefficient = sympy.S.One
        for child in node.children:
            more, factor = self.read(child)
            coefficient *= factor
            for label in over:
                if label in more and label in labels:
                    self.factors.append((DELTA, (labels.pop(label), more.pop(label))))
            labels |= more
        return labels, coefficient


def as_sympy(value: Scale) -> sympy.Expr:
    """A scale without max and min as a SymPy expression in positive symbols."""
    if value == Scale.one():
        return FIXED
    try:
        powers = value.exponents
    except ScaleError as error:
        raise NotANetworkError(f"the size {value} is no monomial; relate the sizes first") from error
    total = sympy.S.One
    for name, (a, b, c) in powers:
        size = sympy.Symbol(name, positive=True)
        total *= size**a * sympy.log(size) ** b * sympy.log(sympy.log(size)) ** c
    return total
