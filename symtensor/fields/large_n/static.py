r"""Cumulants of the N-component theory in zero dimensions order by order in 1/N, from diagrams with symbolic N.

The diagrams are those of model ``on`` with a dressed auxiliary line, with one more vertex for each derivative of s beyond the
second; at a vertex (phi, phi, auxiliary) the auxiliary leg is ``lam``, at a vertex of s it is ``rho``, so that every line is an
entry of the matrix in `saddle` and no sum over components is left. A diagram with |Aut| = w, closed index loops l, vertices
phi phi lam: v, vertices of s of valences k, and external legs is

    (1/w) N^l (-1/T)^v prod_k (-N s^(k)/T) prod lines,

an exact function of the saddle times a power of N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from symtensor.diagrams import Diagram, Field, Model, Propagator, Vertex, enumerate_diagrams
from symtensor.diagrams.dressed import leading_order
from symtensor.diagrams.weights import dressed_weight_series
from symtensor.fields.errors import TheoryError
from symtensor.fields.large_n.saddle import NUMBER, VectorTheory
from symtensor.fields.large_n.scaled import ScaledTheory
from symtensor.fields.large_n.terms import LargeNSum, LargeNTerm

__all__ = ["cumulant", "log_partition", "mean_square", "model_of", "two_point", "vertex_function"]

FIELDS = ("phi", "rho", "lam")
#: more diagrams than this are refused
MOST = 20_000


def two_point(theory: VectorTheory, order: int = 1) -> LargeNSum:
    """<phi_1 phi_1> to the given order in 1/N.

    >>> two_point(VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2}), 1).expr
    1/2 - 2/(9*N)
    """
    return cumulant(theory, {"phi": 2}, order)


def mean_square(theory: VectorTheory, order: int = 1) -> LargeNSum:
    """<phi.phi>/N = <rho> to the given order in 1/N, from diagrams with one auxiliary leg."""
    return cumulant(theory, {"rho": 1}, order)


def log_partition(theory: VectorTheory, order: int = 1) -> LargeNSum:
    r"""log Z, Z = int d^N phi exp(-N s/T): saddle, its Gaussian fluctuations, and vacuum diagrams up to N^-order."""
    return cumulant(theory, {}, order)


def cumulant(theory: VectorTheory, legs: Mapping[str, int], order: int = 1) -> LargeNSum:
    """The joint cumulant of components phi_1, of rho = phi.phi/N and of its multiplier lam, `order` orders beyond the leading one.

    Args:
        legs: numbers of the legs, as ``{"phi": 2, "rho": 1}``; all phi legs have the same component.

    Raises: TheoryError for unknown legs, an order that is no natural number, or one with more than 20,000 diagrams.
    """
    return _summed(theory, _checked(legs), order, "connected")


def vertex_function(theory: VectorTheory, legs: Mapping[str, int], order: int = 1) -> LargeNSum:
    """The sum of the one-particle irreducible diagrams with amputated legs, at the mass of the saddle.

    Lines are dressed, tadpoles are no part of it: with the shift <lam> - m of the saddle added to m,
    1/<phi phi> = (<lam> - Sigma)/T at first order, Sigma being T times the one of two phi legs.
    """
    return _summed(theory, _checked(legs), order, "1pi")


def _checked(legs: Mapping[str, int]) -> dict[str, int]:
    counts = {}
    for name, count in legs.items():
        if name not in FIELDS:
            raise TheoryError(f"no leg is called {name!r}; there are phi (component 1), rho = phi.phi/N, and lam, its multiplier")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise TheoryError(f"the number of legs {name!r} is {count!r}; it must be an integer, 0 or more")
        counts[name] = count
    return {name: counts[name] for name in FIELDS if counts.get(name)}


def model_of(scaled: ScaledTheory) -> Model:
    """Model ``on`` with a vertex ``s_k`` for every derivative of s that does not vanish, from the third to the highest kept."""
    vertices = [Vertex("g", ("phi", "phi", "sigma"), {"g": 1})]
    vertices += [Vertex(f"s_{k}", ("sigma",) * k, {"s": 1}) for k in scaled.valences]
    fields = (Field("phi", index="N"), Field("sigma", auxiliary=True))
    lines = (Propagator("phi", "phi"), Propagator("sigma", "sigma"))
    return Model("large-n", fields, lines, tuple(vertices), description="N-component phi; sigma: phi.phi/N and its multiplier")


def check_size(model: Model, legs: Mapping[str, int], order: int, kind: str, most: int) -> None:
    """Raises TheoryError, before any search, if the exact sum of weights shows that there are more than `most` diagrams."""
    amputated: Any = "1pi" if kind == "1pi" else "connected"
    weights = dressed_weight_series(model, {n: c for n, c in legs.items() if c}, kind=amputated, order=order)
    least = math.ceil(sum(weights.values(), Fraction(0)))
    if least > most:
        raise TheoryError(
            f"order {order} in 1/N has at least {least} diagrams, more than {most}; ask for a lower order or fewer legs"
        )


@dataclass(frozen=True, slots=True)
class _Rules:
    """Values of lines and vertices; `components` has the field of each auxiliary leg by its label."""

    theory: VectorTheory
    scaled: ScaledTheory
    components: Mapping[str | None, str]

    def term(self, diagram: Diagram, order: int) -> LargeNTerm | None:
        """The diagram with its value; None if an amputated leg is not of its vertex's field."""
        theory, nodes = self.theory, diagram.nodes
        factors: list[Any] = [diagram.weight, NUMBER ** len(diagram.index_loops)]
        scaled = self.scaled.ring(1) / diagram.symmetry_factor
        for line in diagram.lines:
            first, second = (self._component(nodes[i], field) for i, field in zip((line.start, line.end), line.fields))
            if line.propagator is not None:
                factors.append(theory.line(first, second))
                scaled *= self.scaled.line(first, second)
            elif first != second:
                return None
        for node in nodes:
            if not node.is_leg:
                valence = 0 if node.name == "g" else int(node.name.removeprefix("s_"))
                factors.append((-NUMBER * theory.slope(valence) if valence else -1) / theory.temperature)
                scaled *= -self.scaled.slope(valence) if valence else -1
        return LargeNTerm(diagram, order, len(diagram.index_loops), sp.Mul(*factors), scaled)

    def _component(self, node: Any, field: str) -> str:
        if field == "phi":
            return "phi"
        if node.is_leg:
            return self.components[node.label]
        return "lam" if node.name == "g" else "rho"


def _summed(theory: VectorTheory, legs: dict[str, int], order: int, kind: str) -> LargeNSum:
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise TheoryError(f"the order in 1/N is {order!r}; it must be an integer, 0 or more")
    amputated = kind == "1pi"
    auxiliary = [name for name in ("rho", "lam") for _ in range(legs.get(name, 0))]
    scaled = ScaledTheory(theory, 2 * order + 2 * len(auxiliary) + legs.get("phi", 0) + 2)
    terms = tuple(_terms(scaled, legs.get("phi", 0), auxiliary, order, kind))
    return LargeNSum(
        scaled, _name(legs, amputated), leading_order(legs.get("phi", 0), len(auxiliary), amputated), order,
        sp.S.Zero if amputated else _background(theory, legs), terms, tuple(legs.items()), amputated,
    )  # fmt: skip


def _terms(scaled: ScaledTheory, phi: int, auxiliary: list[str], order: int, kind: str) -> Iterator[LargeNTerm]:
    if phi % 2:
        return
    model = model_of(scaled)
    check_size(model, {"phi": phi, "sigma": len(auxiliary)}, order, kind, MOST)
    labels = {"phi": [f"phi{i + 1}" for i in range(phi)], "sigma": [f"{name}{i + 1}" for i, name in enumerate(auxiliary)]}
    rules = _Rules(scaled.theory, scaled, dict(zip(labels["sigma"], auxiliary)))
    legs = {name: given for name, given in labels.items() if given}
    for k in range(0 if legs else 1, order + 1):  # of the vacuum the order N^0 is the determinant, part of the background
        for diagram in enumerate_diagrams(model, legs or 0, kind=kind if legs else "vacuum", dressed=k):
            term = rules.term(diagram, k)
            if term is not None:
                yield term


def _background(theory: VectorTheory, legs: Mapping[str, int]) -> sp.Expr:
    """What the saddle itself contributes: to a mean, or to log Z, the determinant included."""
    if not legs:
        heat, mass = theory.temperature, theory.mass
        saddle = sp.Rational(1, 2) * (1 + sp.log(2 * sp.pi * heat / mass)) - theory.slope(0) / heat
        return NUMBER * saddle + sp.log(mass**2 / theory.curvature) / 2
    return {"rho": theory.rho, "lam": theory.mass}[next(iter(legs))] if sum(legs.values()) == 1 and "phi" not in legs else sp.S.Zero


def _name(legs: Mapping[str, int], amputated: bool) -> str:
    symbols = {"phi": r"\phi_1", "rho": r"\rho", "lam": r"\lambda"}
    inside = r"\,".join(symbols[name] for name, count in legs.items() for _ in range(count))
    if not legs:
        return r"\log Z"
    return rf"\Gamma_{{{inside}}}" if amputated else rf"\langle {inside} \rangle_c"
