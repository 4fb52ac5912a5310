"""Counts of what the emitted code does, so that tests can hold the generator to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .graph import Node, postorder
from .ir import Function, MomentFunction, ScalarFunction, TensorFunction

__all__ = ["Cost", "cost_of"]

_TRANSCENDENTAL = frozenset(
    "exp expm1 log log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh erf erfc sech2 sigmoid softplus power".split()
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Per element of the output (scalar and tensor kernels) or per quadrature node (moments).

    Attributes
    ----------
    arithmetic
        Additions, multiplications, divisions, roots.
    transcendental
        exp, tanh and the like.
    contractions
        Pairwise einsum calls.
    """

    arithmetic: int = 0
    transcendental: int = 0
    contractions: int = 0


def cost_of(function: Function) -> Cost:
    """Operations of one function; 0 for functions that only call others."""
    match function:
        case ScalarFunction():
            return _scalar(function.plan.results)
        case MomentFunction():
            plan = function.plan or function.value
            return _scalar(plan.results)
        case TensorFunction():
            products = [product for summand in function.summands for _, group in summand.parts for product in group]
            arithmetic = sum(max(len(product.factors), 1) for product in products)
            return Cost(arithmetic=arithmetic, contractions=len(function.contractions))
    return Cost()


def _scalar(roots: Iterable[Node]) -> Cost:
    nodes = postorder(roots)
    called = [str(node.value) for node in nodes if node.op == "call"]
    transcendental = sum(name in _TRANSCENDENTAL for name in called)
    arithmetic = len(called) - transcendental
    arithmetic += sum(max(len(node.args) - 1, 1) for node in nodes if node.op in ("add", "mul", "pow", "select"))
    return Cost(arithmetic, transcendental)
