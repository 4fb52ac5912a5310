r"""The effective action in zero dimensions: Legendre transform of the logarithm of the generating function, tadpoles included.

With x = m + xi, xi Gaussian of covariance C, and ``A(psi) = log E exp V(m + psi + xi)``,

    W(J) = J.m + J.C.J/2 + A(C J),    phi = dW/dJ - m = psi + C A'(psi),
    Gamma(phi) = J.(m + phi) - W(J) = phi.C^{-1}.phi/2 - G(phi),    G(phi) = A(psi) + A'(psi).C.A'(psi)/2.

G, the sum of all one-particle irreducible amputated diagrams (those with self-loops included), needs no inverse of C, so
singular and formal covariances are all right. psi(phi) = phi - C A'(psi) is solved by iteration: A' has a power of a
coupling in every term. The mean field (J = 0) solves phi = C G'(phi): the tadpoles, to all orders kept.

Reference: Zinn-Justin, Quantum Field Theory and Critical Phenomena (2002), section 6.2 (Legendre transformation, 1PI).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, factorial, prod
from typing import Any

import sympy as sp

from .gaussian_law import Covariance, GaussianLaw, Mean, natural
from .moment_errors import CovarianceError, MomentError
from .moment_recursion import MomentRecursion, Term
from .perturbation import CouplingSeries, Order, PerturbationTheory
from .truncated import Truncated, Truncation

__all__ = ["EffectiveAction", "effective_action"]

Powers = tuple[int, ...]


def effective_action(
    potential: Any,
    order: Order,
    covariance: Covariance,
    grading: Mapping[Any, int] | None = None,
    *,
    degree: int = 2,
    mean: Mean = None,
    fields: Sequence[Any] | None = None,
) -> EffectiveAction:
    """The effective action of exp(V) over a Gaussian, to an order in the couplings and `degree` in the fields.

    Arguments and errors are those of `perturbative_moments`; `degree` (at least 1) is the highest number of legs of a
    vertex function that can be asked for, about phi = 0 or about the mean field.

    Example:
        >>> x, g = sp.symbols("x g")
        >>> action = effective_action(g * x**3 / 6, 3, {(x, x): 1}, degree=3)
        >>> action.vertex({x: 2}).expr, action.vertex({x: 3}).expr
        (g**2/2, g**3 + g)
        >>> action.mean_field()[x].expr
        5*g**3/8 + g/2
    """
    degree = natural(degree, "the fields (degree)")
    if degree < 1:
        raise MomentError("degree 0 leaves no leg; ask for a degree of 1 or more, log Z comes from perturbative_moments")
    theory = PerturbationTheory.read(potential, order, GaussianLaw.read(covariance, mean, fields), grading)
    return EffectiveAction(theory, degree, _interaction(theory, degree))


@dataclass(frozen=True, slots=True)
class EffectiveAction:
    """Gamma(phi) = phi C^{-1} phi/2 - G(phi); phi counts from the mean of the free law. See the text of the module.

    `interaction` is G as a series in the couplings, then the fields, to all degrees that a shift by the mean field needs.
    """

    theory: PerturbationTheory
    degree: int
    interaction: Truncated
    _mean: list[Truncated] = field(default_factory=list, init=False)

    def vertex(self, legs: Mapping[Any, int], at: str = "zero") -> CouplingSeries:
        """The vertex function d^n G/dphi^n with the given numbers of legs, at phi = 0 (``zero``) or at the ``mean`` field.

        Raises:
            MomentError: more legs than `degree`, or another place.
        """
        powers = self.theory.law.powers(legs)
        if sum(powers) > self.degree:
            raise MomentError(f"{sum(powers)} legs are more than the degree {self.degree}; ask for a higher degree")
        if at not in ("zero", "mean"):
            raise MomentError(f"a vertex function at {at!r}; choose 'zero' or 'mean'")
        series = self.interaction if at == "zero" else self._shifted()
        scale = prod(map(factorial, powers))
        return self.theory.written(Truncated(self.theory.truncation, dict(series.part(self._places, powers))) * scale)

    def mean_field(self) -> dict[Any, CouplingSeries]:
        """The mean shift <x> - m of every field: the sum of all tadpoles."""
        origin = (0,) * len(self._places)
        found = {}
        for name, series in zip(self.theory.law.names, self._stationary()):
            terms = dict(series.part(self._places, origin))
            found[name] = self.theory.written(Truncated(self.theory.truncation, terms))
        return found

    @property
    def interaction_expr(self) -> sp.Expr:
        """G(phi) to the degree asked for, in the symbols of the fields."""
        symbols = (*self.theory.couplings, *self.theory.law.symbols())
        kept = [(k, c) for k, c in sorted(self.interaction.terms.items()) if sum(k[i] for i in self._places) <= self.degree]
        return sp.Add(*(self.theory.ring.write(c) * sp.Mul(*(s**e for s, e in zip(symbols, k))) for k, c in kept))

    @property
    def expr(self) -> sp.Expr:
        """Gamma(phi) to the degree asked for.

        Raises:
            CovarianceError: the covariance has no inverse; the message gives the zero mode.
        """
        law = self.theory.law
        matrix = sp.Matrix([[sp.sympify(v) for v in row] for row in law.covariance])
        determinant = sp.expand(matrix.det(method="berkowitz"))
        if determinant == 0:
            mode = dict(zip(map(str, law.names), matrix.nullspace()[0]))
            raise CovarianceError(f"the covariance has the zero mode {mode}, so Gamma is infinite there; use interaction_expr")
        vector = sp.Matrix(law.symbols())
        return sp.expand((vector.T * matrix.adjugate() * vector)[0, 0] / 2) / determinant - self.interaction_expr

    @property
    def _places(self) -> tuple[int, ...]:
        start = len(self.theory.couplings)
        return tuple(range(start, start + len(self.theory.law.names)))

    def _stationary(self) -> list[Truncated]:
        """phi* = C G'(phi*), iterated from 0 until it stands."""
        if not self._mean:
            forces = [_times_covariance(self.theory, i, self._places, self.interaction) for i in range(len(self._places))]
            values = [Truncated(self.interaction.truncation, {})] * len(self._places)
            self._mean.extend(_fixed_point(forces, values, self._places, self.theory.ring.one, [None] * len(values)))
        return self._mean

    def _shifted(self) -> Truncated:
        """G(phi* + eta) as a series in eta."""
        one = self.theory.ring.one
        values = {}
        for place, series in zip(self._places, self._stationary()):
            values[place] = series + _variable(self.interaction.truncation, place, one)
        return self.interaction.substituted(values, one)


def _interaction(theory: PerturbationTheory, degree: int) -> Truncated:
    truncation = _with_fields(theory, degree)
    count, size = len(theory.couplings), len(theory.law.names)
    places = tuple(range(count, count + size))
    amputated = _amputated(theory, truncation)
    one = theory.ring.one
    bare = [_variable(truncation, place, one) for place in places]
    forces = [_times_covariance(theory, i, places, amputated) * -1 for i in range(size)]
    psi = _fixed_point(forces, bare, places, one, bare)
    values = dict(zip(places, psi))
    powers: dict[Powers, Truncated] = {}
    result = amputated.substituted(values, one, powers)
    slopes = [amputated.derivative(place).substituted(values, one, powers) for place in places]
    half = theory.ring.rational(1, 2)
    for i, j in itertools.product(range(size), repeat=2):
        if theory.covariance[i][j]:
            result = result + slopes[i] * slopes[j] * theory.covariance[i][j] * half
    return result


def _with_fields(theory: PerturbationTheory, degree: int) -> Truncation:
    """The orders of the theory, and degree in the fields + order <= degree + the highest order.

    A tadpole takes away a leg for a power of a coupling at least, so what is left out never comes back.
    """
    size = len(theory.law.names)
    kept = theory.truncation
    highest = max((sum(w * e for w, e in zip(theory.weights, g)) for g in kept.monomials), default=0)
    constraints = [((*weights, *(0,) * size), limit) for weights, limit in kept.constraints]
    return Truncation((*constraints, ((*theory.weights, *(1,) * size), degree + highest)))


def _amputated(theory: PerturbationTheory, truncation: Truncation) -> Truncated:
    """A(psi) = log E exp V(psi + x): the fields psi are further couplings of the potential V(psi + x)."""
    size = len(theory.law.names)
    weights = (*theory.weights, *(0,) * size)
    recursion = MomentRecursion(
        theory.covariance, theory.mean, theory.ring.zero, theory.ring.one, _split(theory.terms, truncation), weights,
        True, theory.ring.rational, theory.law.elimination,
    )  # fmt: skip
    count = len(theory.couplings)
    found = {g: recursion.log_partition(g) for g in truncation.monomials if any(g[:count])}
    return Truncated(truncation, {g: c for g, c in found.items() if c})


def _split(terms: Sequence[Term], truncation: Truncation) -> list[Term]:
    """Every term c t^h (psi + x)^p by powers of psi and x."""
    found = []
    for order, powers, factor in terms:
        for outer in itertools.product(*(range(p + 1) for p in powers)):
            grade = (*order, *outer)
            if truncation.allows(grade):
                ways = prod(comb(p, s) for p, s in zip(powers, outer))
                found.append((grade, tuple(p - s for p, s in zip(powers, outer)), factor * ways))
    return found


def _variable(truncation: Truncation, place: int, one: Any) -> Truncated:
    return Truncated(truncation, {tuple(int(i == place) for i in range(truncation.size)): one})


def _times_covariance(theory: PerturbationTheory, i: int, places: Powers, series: Truncated) -> Truncated:
    """sum_j C_ij d series/d phi_j."""
    total = Truncated(series.truncation, {})
    for entry, place in zip(theory.covariance[i], places):
        if entry:
            total = total + series.derivative(place) * entry
    return total


def _fixed_point(
    forces: Sequence[Truncated], start: Sequence[Truncated], places: Powers, one: Any, bare: Sequence[Truncated | None]
) -> list[Truncated]:
    """phi_i = bare_i + forces_i(phi), exact in as many rounds as there are orders: each settles one more."""
    values = list(start)
    for _ in range(sum(forces[0].truncation.bounds) + 2):
        inner, powers = dict(zip(places, values)), {}
        found = [force.substituted(inner, one, powers) for force in forces]
        found = [force if free is None else force + free for force, free in zip(found, bare)]
        if found == values:
            break
        values = found
    return values
