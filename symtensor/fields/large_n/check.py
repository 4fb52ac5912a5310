"""The exact comparison of a sum of diagrams with the radial expansion, order by order in 1/N."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symtensor.fields.errors import TheoryError
from symtensor.fields.large_n.radial import RadialExpansion

if TYPE_CHECKING:
    from symtensor.fields.large_n.terms import LargeNSum

__all__ = ["LargeNCheck", "MismatchError", "check_sum"]


class MismatchError(TheoryError):
    """The sum of the diagrams is not what the radial integral gives."""


@dataclass(frozen=True, slots=True)
class LargeNCheck:
    """What agreed: the quantity, its orders in 1/N relative to the leading one, and by which route."""

    name: str
    orders: int
    diagrams: int
    route: str

    def __str__(self) -> str:
        return f"{self.name}: {self.diagrams} diagrams, orders 0 to {self.orders} in 1/N equal to {self.route}"


def check_sum(result: LargeNSum) -> LargeNCheck:
    """Compare every order with the radial expansion, as polynomials in scaled variables; raises MismatchError naming the order.

    Raises: TheoryError for vertex functions, which the radial integral does not give directly.
    """
    if result.amputated:
        raise TheoryError(f"{result.name} is a vertex function; check the cumulants, which determine it")
    if not result.legs:
        return _check_log_partition(result)
    highest = result.leading + result.order
    right = RadialExpansion(result.theory, highest)
    value = right.scaled_cumulant(dict(result.legs))
    for absolute in range(highest + 1):
        order = absolute - result.leading
        found = result.scaled(order) if order >= 0 else result.scaled_theory.ring.zero
        if absolute == 0 and result.background != 0:
            found = found + 1  # the saddle, 1 in scaled variables
        _compare(result.name, order, found, right.scaled.coefficient(value, absolute))
    return LargeNCheck(result.name, result.order, len(result.terms), "moments of the radial integral, by parts")


def _check_log_partition(result: LargeNSum) -> LargeNCheck:
    """T d log Z/dT = N <s>/T order by order, with T d/dT s_k = p s_(k+1) + (k p - 1) s_k as the saddle moves."""
    right = RadialExpansion(result.theory, result.order + 1)
    scaled = right.scaled
    p, energy = scaled.p, right.energy()
    moved = {k: p * scaled.slope(k + 1) + (k * p - 1) * scaled.slope(k) for k in scaled.valences}
    speed = -2 * p**3 * scaled.slope(3) - p * (1 - p) * (2 * p - 1)  # T dp/dT, from p = 1/(1 + 2 s_2)
    for order in range(result.order + 1):
        value = result.scaled(order).set_ring(scaled.ring)
        slope = value.diff(p) * speed + sum((value.diff(scaled.slope(k)) * moved[k] for k in scaled.valences), scaled.ring.zero)
        found = p * slope if order else speed / 2  # the determinant is log(p)/2
        _compare(f"T d({result.name})/dT", order, found, scaled.coefficient(energy, order + 1))
    return LargeNCheck(result.name, result.order, len(result.terms), "the mean energy of the radial integral, by T d/dT")


def _compare(name: str, order: int, found: Any, right: Any) -> None:
    if found.as_expr() != right.as_expr():
        raise MismatchError(
            f"{name}, order {order} in 1/N, scaled: the diagrams add up to {found}, the radial integral gives {right}"
        )
