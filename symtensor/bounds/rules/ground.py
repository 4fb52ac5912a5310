"""Bounds of single tensors: stated by the user, or known for Gaussian and sub-Gaussian entries."""

from __future__ import annotations

from typing import Any

from .._input import exact
from ..expr import Expr
from ..facts import Fact
from ..modes import PSI2, U1, Kind, L, P, Uniform
from ..scale import Scale
from ..value import Bound
from .base import Call, rule
from .independence import same_law
from .norms import translated


@rule("A", "a bound that the user states", ("known",))
def assumed(call: Call) -> Bound:
    """The stated bound, if it is about the norm that is asked for."""
    fact = call.extra
    fix = "state known(f, ..), moment(k, f), gaussian(), or another fact that bounds it"
    if fact is not None and fact in call.given.all("converges_to", call.node):
        return _limit(call, fact)
    if fact is None or fact not in call.given.all("known", call.node):
        raise call.missing("known", call.node, fix)
    bound = translated(call.node, fact.bound)
    if bound.grouping != call.grouping:
        shown = "|".join(map(" ".join, call.grouping)) or "no slots"
        raise call.missing(f"a bound in the norm over {shown}", call.node, "state known(f, grouping=..), or use coarser(M) (N6)")
    call.use(fact)
    return Bound(bound.scale, bound.kind, bound.mode, bound.uniform, call.grouping, bound.norm_status)


def _limit(call: Call, fact: Fact) -> Bound:
    """A scalar with a limit other than 0 is of order 1, with limit 0 of smaller order."""
    if call.node.valence or call.node.family:
        raise call.missing("a scalar", call.node, "a limit is a number; state known(f, ..) for a tensor or a family")
    call.use(fact)
    return call.conclude(Scale.one(), Kind.THETA if limit_value(fact) else Kind.SMALL_O, P, ())


def limit_value(fact: Fact) -> Any:
    """The number that a scalar converges to.

    Raises:
        ValueError: no fixed real number.
    """
    number = exact(fact.number)
    if not (number.is_number and number.is_extended_real and number.is_finite):
        raise ValueError(f"'{fact}' needs a fixed real number as the limit; what changes with the sizes is no limit")
    return 0 if number.is_zero is True or number.equals(0) else number


@rule(
    "G",
    "independent standard Gaussian entries: norm = Theta(max over blocks sqrt(size)) in psi2; one entry Theta(1)",
    ("gaussian; or iid_entries, centred, sub_gaussian_entries for O",),
    "iid entries that are not centred: the all-ones matrix has norm n, an iid +-1 matrix sqrt n",
    variants=(("gaussian",), ("sub-gaussian",), ("variance",)),
    tight="two-sided for Gaussians",
)
def gaussian_tensor(call: Call) -> Bound:
    """Gordon, Chevet: sum over blocks of sqrt(size) from above, one fixed block from below; Lipschitz concentration."""
    tensor, uniform = _tensor(call)
    scale = _largest_block(call.node, call)
    if "gaussian" in call.variant:
        call.require("gaussian", tensor, fix="state gaussian(), or another fact that bounds it")
        return call.conclude(scale, Kind.THETA, PSI2, uniform)
    if "sub-gaussian" in call.variant:
        for name in ("iid_entries", "centred", "sub_gaussian_entries"):
            call.require(name, tensor, fix="state iid_entries(), centred() and sub_gaussian_entries()")
        return call.conclude(scale, Kind.O, PSI2, uniform)
    if call.node.op != "entry" or call.node.valence:
        raise call.missing("gaussian", tensor, "state gaussian(), known(f, ..) or moment(k, f)")
    call.require("centred", tensor, fix="state centred()")
    found = call.require("entry_variance", tensor, fix="state entry_variance(f)")
    return call.conclude((found.scale or Scale.one()) ** 0.5, Kind.O, L(2), uniform)


def _tensor(call: Call) -> tuple[Expr, tuple[Uniform, ...]]:
    """The tensor behind a leaf, or behind entries of it (identical laws, so uniform over the new indices)."""
    if call.node.op == "leaf":
        return call.node, ()
    (child,) = call.node.children
    if child.op != "leaf":
        raise call.missing("entries of a tensor", child, "only entries of a tensor itself have a law of their own")
    return child, tuple(U1(label) for label in call.node.data)


def _largest_block(node: Expr, call: Call) -> Scale:
    blocks = [Scale.one()]
    for block in call.grouping:
        size = Scale.one()
        for label in block:
            size = size * node.size(label)
        blocks.append(size**0.5)
    return Scale.max(*blocks)


@rule(
    "U1",
    "members of one law: a pointwise bound is U1",
    ("iid_over or identically_distributed_over",),
    "M^k_n = n 1{n = k} is 0 eventually for every k, and unbounded uniformly",
)
def one_law(call: Call) -> Bound:
    """Equal laws make the constants of all members equal."""
    index, (bound,) = call.extra, call.premises
    proof = same_law(call.node, index, call.given) if len(call.node.tensors) == 1 else None
    if not proof:
        raise call.missing("identically_distributed_over", call.node, "state iid_over(index) or known(.., uniform=U1(index))")
    call.use(*proof)
    return Bound(bound.scale, bound.kind, bound.mode, (*bound.uniform, U1(index)), call.grouping, bound.norm_status, bound.definite)
