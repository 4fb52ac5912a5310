"""How many diagrams a request has at least, from its generating function, before anything is enumerated."""

from __future__ import annotations

from fractions import Fraction

from symtensor.diagrams.errors import ModelError, RequestError
from symtensor.diagrams.request import Request
from symtensor.diagrams.weights import burnside_by_loops, weight_by_loops

__all__ = ["lower_bound"]

#: Weights without snails take minutes beyond this power of the couplings.
SNAIL_ORDER = 20
#: Burnside counts are quick up to this power.
BURNSIDE_ORDER = 26


def lower_bound(request: Request) -> Fraction | None:
    """What the number of diagrams is not below: the sum of weights, or the number itself where Burnside's lemma has it.

    None where neither is known, or takes long.

    >>> from symtensor.diagrams import enumerate_diagrams
    >>> lower_bound(enumerate_diagrams("phi4", 2, 2).request), lower_bound(enumerate_diagrams("phi4", 2, 2, kind="1pi").request)
    (Fraction(3, 1), Fraction(5, 12))
    """
    if request.loops is None or request.orders or request.no_self_energies or request.where or request.dressed is not None:
        return None
    size = 2 * request.loops + len(request.legs)
    if request.no_snails and size > SNAIL_ORDER:
        return None
    try:
        if request.kind != "1pi" and request.causality == "none" and not request.filters and size <= BURNSIDE_ORDER:
            kind, labelled = request.kind, request.labelled
            return Fraction(burnside_by_loops(request.model, request.leg_counts, request.loops, kind=kind, labelled=labelled))
        return weight_by_loops(
            request.model, request.leg_counts, request.loops, kind=request.kind, causality=request.causality,
            labelled=request.labelled, no_self_loops=request.no_self_loops, no_tadpoles=request.no_tadpoles,
            no_snails=request.no_snails, bridges=request.irreducible,
        )  # fmt: skip
    except (RequestError, ModelError):
        return None
