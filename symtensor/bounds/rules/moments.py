"""R8a-R8c and R15: expectations, second moments, Gaussian polynomials, Hoelder."""

from __future__ import annotations

from ..modes import ALL_MOMENTS, DET, Kind, L, Mode
from ..scale import Scale
from ..value import Bound
from .base import Call, rule
from .independence import mutually_independent

_UI = "state uniformly_integrable(M, f), a moment moment(1 + delta, f), or a bound in mode L(k), psi2 or det"


@rule(
    "R8a",
    "||E M|| <= E ||M|| = O(f) if ||M||/f is uniformly integrable",
    ("uniformly_integrable, or mode L^k with k >= 1",),
    "n^2 with probability 1/n is O_p(0) and has mean n",
    variants=(("moments",), ("integrable",)),
)
def expectation(call: Call) -> Bound:
    """The expectation of a norm that is bounded in L^1, or in probability with uniform integrability."""
    (bound,) = call.premises
    call.need_upper(0)
    if "moments" in call.variant:
        call.need_moment(0, 1, _UI)
    else:
        call.plain_norm("uniformly_integrable")
        found = call.require("uniformly_integrable", call.node.children[0], fix=_UI)
        if found.scale is None or not found.scale.within(bound.scale):
            raise call.missing("uniformly_integrable", f"||{call.part(0)}|| / ({bound.scale})", _UI)
    # without uniform integrability over an index the constants of different members are not comparable
    keeps = None if "moments" in call.variant else ()
    return call.conclude(bound.scale, bound.kind.upper_half, DET, keeps)


@rule(
    "R8b",
    "E ||M||^k = O(f^k) gives M = O(f) in L^k; M - E M = O(sqrt Var) in L^2",
    ("moment, or variance",),
    "the converse is false: n^2 with probability 1/n",
    variants=(("moment",), ("variance",), ("triangle",)),
)
def moment_bound(call: Call) -> Bound:
    """A known moment of a tensor; a known variance, or moments, of a fluctuation."""
    if call.node.op != "fluctuation":
        call.plain_norm("moment")
        found = call.require("moment", call.node, number=call.extra, fix="state moment(k, f): E ||M||^k = O(f^k)")
        return call.conclude(found.scale or Scale.one(), Kind.O, L(found.number), ())
    (child,) = call.node.children
    if "variance" in call.variant:
        call.plain_norm("variance")
        found = call.require("variance", child, fix="state variance(f): E ||M - E M||^2 = O(f), or a bound in L^k, k >= 1")
        return call.conclude((found.scale or Scale.one()) ** 0.5, Kind.O, L(2), ())
    if "triangle" in call.variant and call.premises:
        (bound,) = call.premises
        call.need_upper(0)
        call.need_moment(0, 1, "state variance(f), or a bound of M in mode L^k with k >= 1")
        return call.conclude(bound.scale, bound.kind.upper_half, bound.mode)
    raise call.missing("variance", child, "state variance(f): E ||M - E M||^2 = O(f)")


@rule(
    "R8c",
    "a scalar (or Frobenius norm of a) polynomial of fixed degree in independent Gaussians is Theta(sqrt(E M^2))",
    ("chaos_degree", "second_moment", "scalar or one block (Frobenius)"),
    "the Frobenius moment E ||M||_F^2 is not the size of spectral and injective norms, nor E ||M||^2 that of the Frobenius norm; "
    "Lipschitz non-polynomials have only O",
    tight="two-sided, hence definite (hypercontractivity; Carbery, Wright 2001)",
)
def gaussian_polynomial(call: Call) -> Bound:
    """Exact second moment of a fixed-degree Gaussian polynomial: a definite two-sided bound."""
    degree = call.require("chaos_degree", call.node, fix="state chaos_degree(q) with a fixed integer q")
    if not (isinstance(degree.number, int) and degree.number >= 0):
        raise call.missing("fixed degree", f"chaos_degree({degree.number}) of {call.node}", "the degree must be a fixed integer")
    if len(call.grouping) > 1:
        raise call.missing(
            "scalar or one block (Frobenius)", f"{call.node} with norm over {'|'.join(map(''.join, call.grouping))}",
            "ask for the Frobenius norm with grouping=[all slots in one block]",
        )  # fmt: skip
    fix = "state second_moment(f): E ||M||^2 = Theta(f), exactly of that order"
    if call.node.valence > 1:  # the norm of a fact without a grouping is the subordinate one
        found = call.require("frobenius_moment", call.node, fix="state second_moment(f, frobenius=True): E ||M||_F^2 = Theta(f)")
    else:
        names = [name for name in ("second_moment", "frobenius_moment") if call.given.find(name, call.node)]
        found = call.require(names[0] if names else "second_moment", call.node, fix=fix)
    scale = (found.scale or Scale.one()) ** 0.5
    return call.conclude(scale, Kind.THETA, DET if degree.number == 0 else ALL_MOMENTS, ())


@rule(
    "R15",
    "E|XY| <= ||X||_p ||Y||_q for 1/p + 1/q = 1 and any dependence; E|X| E|Y| if independent or negatively associated",
    ("L^p and L^q with 1/p + 1/q <= 1, or independent, or negatively_associated",),
    "E|XY| <= E|X| E|Y| fails for X = Z, Y = -Z: E|XY| = 1 > 2/pi",
    variants=(("hoelder",), ("independent",), ("negative",)),
    tight="no",
)
def hoelder(call: Call) -> Bound:
    """Expectation of a product; the child's premises are the factors."""
    (child,) = call.node.children
    for i in range(len(call.premises)):
        call.need_upper(i)
    scale = Scale.one()
    for bound in call.premises:
        scale = scale * bound.scale
    small = any(bound.kind is Kind.SMALL_O for bound in call.premises)
    if "hoelder" in call.variant:
        _hoelder_orders(call)
        return call.conclude(scale, Kind.SMALL_O if small else Kind.O, DET)
    for i in range(len(call.premises)):
        call.need_moment(i, 1, _UI)
    if "independent" in call.variant:
        found = mutually_independent(child.children, call.given)
        if found is None:
            raise call.missing("independent", child, "state independent(X, Y), or moments with 1/p + 1/q <= 1")
        call.use(*found)
    else:
        fix = "state moments with 1/p + 1/q <= 1, independent(..) or negatively_associated(..)"
        if len(child.children) != 2:
            raise call.missing("negatively_associated", child, fix)
        call.require("negatively_associated", *child.children, fix=fix)
    return call.conclude(scale, Kind.SMALL_O if small else Kind.O, DET)


def _hoelder_orders(call: Call) -> None:
    """Record the moment that each factor contributes, and check that they suffice."""
    total = Mode.product(bound.mode for bound in call.premises)
    names = ", ".join(f"{call.part(i)} in {bound.mode}" for i, bound in enumerate(call.premises))
    fix = f"1/p + 1/q <= 1 is needed ({names}); raise the moments, or state independent(..)"
    for i, bound in enumerate(call.premises):
        call.need("mode", i, f"moment of factor {i + 1}", bound.mode.moment(1), fix)
    if not total.moment(1):
        raise call.missing("1/p + 1/q <= 1", call.node, fix)
