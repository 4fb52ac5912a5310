r"""The cluster rule: a fast exponent for products of derivative tensors of a network function at initialisation.

Vertex = derivative tensor (the function itself counts, with no index), edge = contracted pair of parameter indices. With m
vertices and n_e, n_o connected components of even and odd size,

    E[product] = O(n^s),    s = n_e + n_o/2 - m/2    (Dyer, Gur-Ari, arXiv 1909.11304; Aitken, Gur-Ari, arXiv 2006.06687).

It is an upper bound, and never the definite one: one hidden linear layer has C_{0,3} = 0 exactly where s = -1. Exact moments
that do give a Theta are in `derivative_contraction`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import networkx
import sympy

from .definite_error import NoDefiniteBoundError
from .modes import DET, Kind, L
from .scale import Scale, SizeParameter
from .value import Bound

__all__ = ["PROVED_FOR", "ClusterBound", "ClusterError", "Correlation", "cluster_exponent", "contraction_cluster"]

#: the architectures for which the rule is a theorem; for others it is the conjecture of Dyer and Gur-Ari
PROVED_FOR: dict[str, str] = {
    "deep linear": "deep linear networks, any depth",
    "one smooth hidden layer": "one hidden layer with a smooth activation",
    "polynomial": "polynomial activations at any depth",
}


class ClusterError(ValueError):
    """A product of derivative tensors that is no full contraction, or a network outside the theorem."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """A fully contracted product of derivative tensors, as a graph.

    Attributes:
        tensors: the parameter indices of each tensor; ``()`` is the network function itself.

    Raises:
        ClusterError: no tensor, or an index that does not stand exactly twice.

    Example:
        >>> Correlation((("a", "b"), ("a",), ("b",))).components
        (3,)
    """

    tensors: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        tensors = tuple(tuple(t.split()) if isinstance(t, str) else tuple(map(str, t)) for t in self.tensors)
        object.__setattr__(self, "tensors", tensors)
        if not tensors:
            raise ClusterError("the product has no tensor; the function itself is written ()")
        for index, count in Counter(i for held in tensors for i in held).items():
            if count != 2:
                raise ClusterError(
                    f"index {index} stands {count} time{'s' if count > 1 else ''}; each is contracted once, with one partner. "
                    "A tensor with free slots has the exponent of its doubled graph: contraction_cluster(D, d)"
                )

    @classmethod
    def from_pairs(cls, orders: Iterable[int], pairs: Iterable[tuple[int, int]]) -> Correlation:
        """From the derivative order of each tensor and the contracted pairs of tensors.

        Example:
            >>> Correlation.from_pairs([2, 1, 1], [(0, 1), (0, 2)]) == Correlation((("e0", "e1"), ("e0",), ("e1",)))
            True
        """
        orders = list(orders)
        held: list[list[str]] = [[] for _ in orders]
        for number, (i, j) in enumerate(pairs):
            for vertex in (i, j):
                if not 0 <= vertex < len(orders):
                    raise ClusterError(f"the pair ({i}, {j}) names tensor {vertex}; there are {len(orders)}, counted from 0")
                held[vertex].append(f"e{number}")
        for vertex, (order, found) in enumerate(zip(orders, held, strict=True)):
            if order != len(found):
                raise ClusterError(f"tensor {vertex} is a derivative of order {order} but has {len(found)} contracted indices")
        return cls(tuple(map(tuple, held)))

    def __mul__(self, other: Correlation) -> Correlation:
        """The product of two correlations, indices kept apart."""
        left = [[f"0.{i}" for i in held] for held in self.tensors]
        right = [[f"1.{i}" for i in held] for held in other.tensors]
        return Correlation(tuple(map(tuple, left + right)))

    @property
    def orders(self) -> tuple[int, ...]:
        """Derivative order of each tensor."""
        return tuple(map(len, self.tensors))

    @property
    def components(self) -> tuple[int, ...]:
        """Sizes of the connected components, largest first."""
        graph = networkx.Graph()
        graph.add_nodes_from(range(len(self.tensors)))
        where: dict[str, int] = {}
        for vertex, held in enumerate(self.tensors):
            for index in held:
                graph.add_edge(where.setdefault(index, vertex), vertex)
        return tuple(sorted((len(part) for part in networkx.connected_components(graph)), reverse=True))


@dataclass(frozen=True, slots=True, repr=False)
class ClusterBound:
    """E[product] = O(n^exponent), with the graph behind it and the conditions under which it is proved.

    Attributes:
        correlation: the product.
        components: sizes of the connected components.
        exponent: s = n_e + n_o/2 - m/2.
        size: the width.
        proved_for: the architectures of the theorem.
        architecture: the one it was asked for, or None: then the bound is conditional on it.
        root: 1, or 2 if the product is the square of the quantity meant.
        what: the quantity, as text.
        free: number of free slots of that quantity; its Frobenius norm is meant.
    """

    correlation: Correlation
    components: tuple[int, ...]
    exponent: sympy.Expr
    size: SizeParameter
    proved_for: tuple[str, ...] = tuple(PROVED_FOR.values())
    architecture: str | None = None
    root: int = 1
    what: str = "product"
    free: int = 0

    @property
    def m(self) -> int:
        """Number of tensors."""
        return len(self.correlation.tensors)

    @property
    def even(self) -> int:
        """Number of components with an even number of tensors."""
        return sum(size % 2 == 0 for size in self.components)

    @property
    def odd(self) -> int:
        """Number of components with an odd number of tensors."""
        return sum(size % 2 for size in self.components)

    @property
    def proved(self) -> bool:
        """Whether the architecture was stated (and is one of the theorem's)."""
        return self.architecture is not None

    @property
    def definite(self) -> None:
        """Never proved: the rule is an upper bound."""
        return None

    @property
    def scale(self) -> Scale:
        """n^exponent, the scale of the expectation."""
        return Scale.power_of(self.size, self.exponent)

    def bound(self) -> Bound:
        """The O-bound: of the expectation (det), or of the quantity whose square is the product (L^2, by R8b)."""
        scale = self.scale ** sympy.Rational(1, self.root)
        grouping = (tuple(f"p{slot}" for slot in range(self.free)),) if self.free else ()
        mode = DET if self.root == 1 else L(2)
        return Bound(scale, Kind.O, mode, (), grouping, "exact", None, f"cluster rule: {self}")

    def refusal(self) -> NoDefiniteBoundError:
        """What `definite_bound` raises for it: the exponent is an upper bound."""
        return NoDefiniteBoundError(
            f"{self.what}: the cluster exponent {self.exponent} is an upper bound, never the definite one (one hidden linear layer "
            "has C_{0,3} = 0 where it says -1); use derivative_contraction for the exact second moment",
            "cluster rule",
        )

    def __repr__(self) -> str:
        return f"ClusterBound({self})"

    def _repr_latex_(self) -> str:
        what = self.what.replace("norm_F(", r"\|").replace("norm(", r"\|").replace(")^2", r"\|^2") if self.free else self.what
        mark = r"\text{proved}" if self.proved else r"\text{conditional}"
        return rf"$\displaystyle E\left[{what}\right] = \mathcal{{O}}\left({self.scale.latex()}\right)\quad {mark}$"

    def __str__(self) -> str:
        condition = f"for {PROVED_FOR[self.architecture]}" if self.architecture else f"if one of: {'; '.join(self.proved_for)}"
        return (
            f"E[{self.what}] = O({self.size}^({self.exponent})), m = {self.m}, components {list(self.components)} "
            f"(n_e = {self.even}, n_o = {self.odd}), upper bound, proved {condition}"
        )


def cluster_exponent(correlation: Correlation | Iterable[Any], *, size: str = "n", architecture: str | None = None) -> ClusterBound:
    """The cluster rule for a fully contracted product of derivative tensors.

    Args:
        correlation: a `Correlation`, or the index tuples of the tensors.
        size: the width.
        architecture: a key of `PROVED_FOR`, if known.

    Raises:
        ClusterError: an uncontracted index, or an architecture outside the theorem.

    Example:
        >>> cluster_exponent(["", ""]).exponent, cluster_exponent(["a", "a"]).exponent
        (0, 0)
        >>> print(cluster_exponent(["a b c", "a", "b", "c"], architecture="deep linear"))
        E[product] = O(n^(-1)), m = 4, components [4] (n_e = 1, n_o = 0), upper bound, proved for deep linear networks, any depth
    """
    graph = correlation if isinstance(correlation, Correlation) else Correlation(tuple(correlation))
    if architecture is not None and architecture not in PROVED_FOR:
        from symtensor.parsing import suggestion

        raise ClusterError(
            f"the cluster rule is proved for {', '.join(PROVED_FOR)}, not for {architecture!r}"
            f"{suggestion(architecture, PROVED_FOR)}; leave architecture out to get the bound as a conditional statement"
        )
    parts = graph.components
    even, odd = sum(p % 2 == 0 for p in parts), sum(p % 2 for p in parts)
    exponent = even + sympy.Rational(odd, 2) - sympy.Rational(len(graph.tensors), 2)
    return ClusterBound(graph, parts, exponent, SizeParameter(size), architecture=architecture)


def contraction_cluster(
    D: int, d: int, *, squared: bool | None = None, size: str = "n", architecture: str | None = None
) -> ClusterBound:
    """The cluster rule for C_{D,d}: of E C_{0,d}, of E C_{0,d}^2, or of E ||C_{D,d}||_F^2 for D >= 1.

    The doubled graph joins the D free slots of two copies. For D >= 2 it bounds the Frobenius norm only; the subordinate norm
    may be smaller (the Hessian: n^0 against sqrt(log n / n)).

    Args:
        squared: whether the square is meant; by default for D >= 1 (there is no other choice) and for even d, where
            C_{0,d} is odd in the last-layer weights and its mean vanishes.

    Example:
        >>> contraction_cluster(0, 2).exponent, contraction_cluster(0, 3).exponent, contraction_cluster(2, 1).bound()
        (-2, -1, O(1/sqrt(n)) [L^2, norm over p0p1], n -> oo)
    """
    if D < 0 or d < 0:
        raise ClusterError(f"C_{{D,d}} needs D, d >= 0, given D = {D}, d = {d}")
    double = (D > 0 or d % 2 == 0) if squared is None else squared
    if D and not double:
        raise ClusterError(f"C_{{{D},{d}}} has free slots: only its squared norm is a full contraction")
    copies = range(2 if double else 1)
    tensors = []
    for copy in copies:
        contracted = [f"{copy}.{k}" for k in range(d)]
        tensors.append((*contracted, *(f"s{slot}" for slot in range(D))))
        tensors += [(index,) for index in contracted]
    name = f"C_{{{D},{d}}}"
    what = name if not double else f"{name}^2" if D == 0 else f"{'norm_F' if D > 1 else 'norm'}({name})^2"
    found = cluster_exponent(Correlation(tuple(tensors)), size=size, architecture=architecture)
    return replace(found, root=len(copies), what=what, free=D)
