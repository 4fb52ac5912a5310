r"""Normal-ordered differential operators sum c y^p d^q, graded in a coupling: the backward generator and insertions.

The generator of dx = f dt + G dW (Ito) is L = sum_i f_i d_i + (1/2) sum_ij (G G^T)_ij d_i d_j. On monomials
``y^p d^q y^k = (k)_q y^{k-q+p}`` with falling factorials, so that a linear functional F turns into
``(F o y^p d^q)[k] = (k)_q F[k - q + p]``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import perm, prod
from typing import Any

from sympy.polys.rings import PolyRing

__all__ = ["Operator", "generator", "lowered_by", "order_key", "substituted"]

Powers = tuple[int, ...]
#: {order in the coupling: {exponents: coefficient}}
Graded = Mapping[int, Mapping[Powers, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """sum over (order, p, q) of ``terms[order, p, q] y^p d^q``; two operators are equal only if they are the same object."""

    terms: Mapping[tuple[int, Powers, Powers], Any]

    def images(self, powers: Powers) -> Iterator[tuple[int, Powers, Any]]:
        """(order, exponents, coefficient) of the operator applied to y^powers, one for each term that does not vanish."""
        for (order, p, q), factor in self.terms.items():
            if all(k >= n for k, n in zip(powers, q)):
                count = prod(perm(k, n) for k, n in zip(powers, q))
                yield order, tuple(k - n + m for k, n, m in zip(powers, q, p)), factor * count


def generator(drift: Sequence[Graded], diffusion: Sequence[Sequence[Graded]], half: Any) -> Operator:
    """L from the components of f and of G G^T; `half` is the element 1/2."""
    size = len(drift)
    terms: dict[tuple[int, Powers, Powers], Any] = defaultdict(lambda: 0 * half)
    for i in range(size):
        for order, part in drift[i].items():
            for p, c in part.items():
                terms[order, p, _unit(size, i)] += c
        for j in range(size):
            for order, part in diffusion[i][j].items():
                for p, c in part.items():
                    terms[order, p, tuple(a + b for a, b in zip(_unit(size, i), _unit(size, j)))] += half * c
    return Operator({key: c for key, c in terms.items() if c})


def order_key(powers: Powers) -> tuple[int, Powers]:
    """The order of exponents in which a hierarchy is solved: by degree, then lexicographically."""
    return sum(powers), powers


def lowered_by(operator: Operator) -> tuple[int, Powers, Powers] | None:
    """A term of order zero that leads from a moment to a higher one; None if there is none, and the hierarchy closes."""
    for order, p, q in operator.terms:
        if order == 0 and order_key(p) > order_key(q):
            return order, p, q
    return None


def substituted(parts: Graded, basis: Sequence[Sequence[Any]], ring: PolyRing) -> dict[int, dict[Powers, Any]]:
    """A graded polynomial with x = P y put in."""
    images = [sum((g * c for g, c in zip(ring.gens, row) if c), ring.zero) for row in basis]
    found = {}
    for order, part in parts.items():
        total = ring.zero
        for powers, c in part.items():
            total += prod((image**n for image, n in zip(images, powers)), start=ring.one) * c
        found[order] = dict(total.items())
    return found


def _unit(size: int, i: int) -> Powers:
    return tuple(int(j == i) for j in range(size))
