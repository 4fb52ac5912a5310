"""Weak moments of kinked functions with their delta terms written out: no digits are lost near a singular covariance.

The weak derivative of a piecewise smooth function is ``sigma^(i) = s_i + sum_c sum_(a<i) J_a delta_c^(i-1-a)``, where
s_i is the derivative between the kinks and J_a the jump of sigma^(a) at the kink c.  A delta fixes one variable; then
what is left is the Gaussian of the other one given it, in one dimension:

    E[delta_c^(r)(x) g(y)] = (-d/dx)^r ( p(x) E[g(y) | x] ) at c ,      d/dx E[g(y) | x] = (k12/k11) E[g'(y) | x] .

Integration by parts (``hermite``) divides differences by powers of the determinant instead: at correlation 1 - 1e-8
it keeps four digits where this keeps twelve.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.rules import Rule
from symtensor.numerics.split import outer_panels

__all__ = ["delta_terms"]


@dataclass(frozen=True, slots=True)
class _Given:
    """One variable fixed at a kink c of its own factor: its density there, and the law of the other one."""

    at: float
    deviation: float
    slope: float
    rest: float

    def density(self, r: int) -> float:
        """r-th derivative of the density of the fixed variable at c."""
        u = self.at / self.deviation
        return (-1) ** r * _he(r, u) * _density(u) / self.deviation ** (r + 1)


def delta_terms(activation: Activation, k11: float, k12: float, k22: float, rule: Rule, i: int, j: int) -> float:
    """m_ij minus E[s_i(x) s_j(y)]: every term with at least one delta, for a regular pair."""
    det = k11 * k22 - k12 * k12
    total = 0.0
    # a delta of the x factor against the whole weak derivative of y; then one of y against the function s_i of x alone
    for own, other, first, k_own in ((i, j, 0, k11), (j, i, i, k22)):
        for order in range(own):
            for kink, jump in zip(activation.kinks, activation.jumps(order)):
                if jump != 0:
                    given = _Given(float(kink), np.sqrt(k_own), k12 / k_own, np.sqrt(det / k_own))
                    total += float(jump) * _delta(activation, given, rule, own - 1 - order, other, first)
    return total


def _delta(activation: Activation, given: _Given, rule: Rule, r: int, other: int, first: int) -> float:
    """E[delta_c^(r) of the fixed variable times the other factor's derivative of order ``other``]."""
    return (-1) ** r * sum(
        comb(r, k) * given.density(r - k) * given.slope**k * _conditional(activation, given, rule, other + k, first)
        for k in range(r + 1)
    )


def _conditional(activation: Activation, given: _Given, rule: Rule, order: int, first: int) -> float:
    """E of the weak derivative of s_first up to ``order`` of the other variable, given the fixed one."""
    center = given.slope * given.at
    kinks = np.array([float(kink) for kink in activation.kinks])
    z, w = outer_panels(rule, (kinks - center, given.rest, 0.0))
    total = float(w @ activation.smooth_part(order)(center + given.rest * z))
    for a in range(first, order):
        t = order - 1 - a
        for kink, jump in zip(kinks, activation.jumps(a)):
            u = (kink - center) / given.rest
            total += float(jump) * _he(t, u) * _density(u) / given.rest ** (t + 1)
    return total


def _he(order: int, z: float) -> float:
    return float(np.polynomial.hermite_e.hermeval(z, [0.0] * order + [1.0]))


def _density(u: float) -> float:
    return float(np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi))
