r"""Hermite functions on nodes and products of one-neuron functions there: what multiplication operators are made of.

With phi_l = sqrt(K_l) z and the orthonormal psi_n = He_n / sqrt(n!), the table A[n, m] = psi_n(z_m) sqrt(w_m) of a
quadrature rule gives <psi_j, g psi_k> = (A diag(g) A^T)[j, k]; with the root of the weight on either side no entry is large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, product

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.path.hermite_kernels import hermite_table
from symtensor.numerics.rules import Rule, nodes_weights
from symtensor.numerics.split import outer_panels

__all__ = ["Resolution1", "Tables", "multiset_index", "nodes_for"]


@dataclass(frozen=True, slots=True)
class Resolution1:
    """Nodes in one coordinate: `bandwidth` is the largest wave number of the functions in z that is resolved."""

    bandwidth: float
    radius: float

    def rule(self, degree: int, smooth: bool) -> Rule:
        """Nodes that also resolve the product of two Hermite functions of this degree."""
        wave = self.bandwidth + 2 * np.sqrt(degree + 1)
        if smooth:
            return Rule("trapezoid", 2 * int(np.ceil(self.radius * wave / (2 * np.pi))) + 1, self.radius)
        # Gauss-Legendre on a panel of width 1 needs half the wave number, and a few more
        return Rule("split", int(np.ceil(wave / 2)) + 10, self.radius)


def nodes_for(functions: Sequence[Activation], rule: Rule, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in z for functions of deviation * z: panels end at the kinks."""
    if rule.kind == "trapezoid":
        return nodes_weights(rule)
    kinks = np.unique([float(kink) for function in functions for kink in function.kinks])
    return outer_panels(rule, (kinks, deviation, 0.0))


@lru_cache(maxsize=64)
def multiset_index(count: int, size: int) -> tuple[tuple[tuple[int, ...], ...], np.ndarray]:
    """The multisets of `size` among `count` functions, and the position of each ordered choice among them.

    Examples
    --------
    >>> multiset_index(2, 2)
    (((0, 0), (0, 1), (1, 1)), array([0, 1, 1, 2]))
    """
    found = tuple(combinations_with_replacement(range(count), size))
    number = {members: index for index, members in enumerate(found)}
    ordered = [number[tuple(sorted(choice))] for choice in product(range(count), repeat=size)]
    return found, np.array(ordered, dtype=int)


@dataclass(frozen=True, slots=True)
class Tables:
    """Hermite functions and centred values of the components at the nodes of every layer.

    Attributes
    ----------
    hermite
        One table (degrees, nodes) for all layers, or one for each.
    values
        For each layer (C, nodes): h_c - E h_c (or h_c, if not centred), with h_c = f_c^2.
    """

    hermite: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        variances: np.ndarray,
        functions: Sequence[Activation],
        resolution: Resolution1,
        degree: int,
        centred: bool = True,
    ) -> Tables:
        """Tables of degrees 0..degree."""
        smooth = all(function.smooth for function in functions)
        moving = any(float(kink) for function in functions for kink in function.kinks)
        rule = resolution.rule(degree, smooth)
        hermite: list[np.ndarray] = []
        values = []
        for variance in variances:
            deviation = float(np.sqrt(variance))
            z, w = nodes_for(functions, rule, deviation if moving else 1.0)
            root = np.sqrt(w)
            if moving or not hermite:
                hermite.append(_weighted(degree, z, root))
            found = np.stack([function.numpy_function()(deviation * z) ** 2 for function in functions])
            # where the weight underflows nothing is left of the functions either
            found = np.where(root > 0, found, 0.0)
            values.append(found - (found @ w)[:, None] / w.sum() if centred else found)
        return cls(tuple(hermite), tuple(values))

    @property
    def shared(self) -> bool:
        """Whether all layers have the same nodes."""
        return len(self.hermite) < max(len(self.values), 2)

    def at(self, layer: int) -> np.ndarray:
        """(degrees, nodes)."""
        return self.hermite[0 if self.shared else layer]

    def part(self, layers: np.ndarray) -> Tables:
        """The tables of some of the layers."""
        hermite = self.hermite if self.shared else tuple(self.hermite[layer] for layer in layers)
        return Tables(hermite, tuple(self.values[layer] for layer in layers))

    def missing(self, modes: int) -> float:
        """The largest fraction of the variance of a component at a layer that lies beyond the degrees below `modes`."""
        worst = 0.0
        for layer, values in enumerate(self.values):
            A = self.at(layer)
            weighted = values * A[0]
            norm = (weighted**2).sum(axis=1)
            kept = ((weighted @ A[:modes].T) ** 2).sum(axis=1)
            lost = np.divide(norm - kept, norm, out=np.zeros_like(norm), where=norm > 0)
            worst = max(worst, float(lost.max(initial=0.0)))
        return worst

    def products(self, layer: int, size: int) -> np.ndarray:
        """(multisets, nodes): products of `size` components."""
        members, _ = multiset_index(len(self.values[layer]), size)
        return np.stack([np.prod(self.values[layer][list(m)], axis=0) for m in members])


def _weighted(degree: int, z: np.ndarray, root: np.ndarray) -> np.ndarray:
    """psi_n(z) sqrt(w), without overflow of psi_n where the weight underflows."""
    inside = root > 0
    if inside.all():
        table = hermite_table(degree, np.ascontiguousarray(z))
        table *= root
        return table
    table = np.zeros((degree + 1, len(z)))
    table[:, inside] = hermite_table(degree, np.ascontiguousarray(z[inside])) * root[inside]
    return table
