r"""The N-component Langevin model in the time domain, order by order in 1/N with symbolic N.

    dx_i = -mu x_i dt + sqrt(2 T) dW_i,   mu = 2 s'(rho),   rho = x.x/N            (s = r rho/2 + u rho^2/4: mu = r + u rho)

relaxes to the weight exp(-N s/T) of the static theory. In the Ito form, theta(0) = 0, with response fields xt, rhot, mut,

    S = int dt [ xt.(dx/dt + mu x) - T xt.xt + rhot (N rho - x.x) + N mut (mu - 2 s'(rho)) ].

Saddle (Hartree): mu = m = 2 s'(T/m), C(t) = (T/m) exp(-m |t|), R(t) = theta(t) exp(-m t). With the bubble of R and C resummed,
k = 4 T s''/m, M = 2 m + k, g = 2 s'', for t > 0 and times 1/N:

    <rho rhot> = <mu mut> = delta(t) - k exp(-M t),   <mu rhot> = g <rho rhot>,   <rho mut> = -(2 T/m) exp(-M t),
    <rho rho> = (4 T^2/(m M)) exp(-M |t|),   <mu rho> = g <rho rho>,   <mu mu> = g^2 <rho rho>.

Vertices: xt x mu: -1, x x rhot: 2, mut rho^(n-1): 2 N s^(n). The diagrams are those of the static theory (`static`), each with all
its components at once (`component_orders`).

References: Martin, Siggia & Rose, Phys. Rev. A 8 (1973) 423; Moshe & Zinn-Justin, Phys. Rep. 385 (2003) 69, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator

from symtensor.diagrams import enumerate_diagrams
from symtensor.diagrams.dressed import leading_order
from symtensor.fields.errors import TheoryError
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.large_n.component_orders import component_integrals
from symtensor.fields.large_n.saddle import NUMBER, VectorTheory
from symtensor.fields.large_n.scaled import ScaledTheory
from symtensor.fields.large_n.static import check_size, model_of
from symtensor.fields.large_n.time_lines import UNITS, TimeRules
from symtensor.fields.large_n.time_sum import LangevinSum, LangevinTerm

__all__ = ["time_correlation", "time_response"]

#: more diagrams than this are refused: each takes from a millisecond to a second
MOST = 1000


def time_correlation(theory: VectorTheory, first: str = "x", second: str = "x", order: int = 1) -> LangevinSum:
    """The cumulant <first(t) second(0)>, t > 0, of two of x (component 1), rho = x.x/N and mu, `order` orders beyond the leading.

    Raises: TheoryError for another field, an order that is no natural number, or one with more than 1000 diagrams.

    >>> theory = VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2})
    >>> from sympy.abc import t
    >>> time_correlation(theory)[1].expr(t)
    -t*exp(-2*t)/3 - 13*exp(-2*t)/54 + exp(-8*t)/54
    """
    for name in (first, second):
        if name not in ("x", "rho", "mu"):
            raise TheoryError(f"no field is called {name!r}; there are x (component 1), rho = x.x/N and mu = 2 s'(rho)")
    return _summed(theory, (first, second), order)


def time_response(theory: VectorTheory, order: int = 1) -> LangevinSum:
    """<x(t) xt(0)>, t > 0: the response of <x_1(t)> to a field that is added to the drift of component 1 at time 0.

    >>> theory = VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2})
    >>> time_response(theory).fluctuation_dissipation()
    True
    """
    return _summed(theory, ("x", "xt"), order)


def _summed(theory: VectorTheory, fields: tuple[str, str], order: int) -> LangevinSum:
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise TheoryError(f"the order in 1/N is {order!r}; it must be an integer, 0 or more")
    phi = sum(name in ("x", "xt") for name in fields)
    rules = TimeRules(ScaledTheory(theory, 2 * order + 2 * (2 - phi) + phi + 2))
    terms = () if phi == 1 else tuple(_terms(rules, fields, order))
    return LangevinSum(rules, fields, leading_order(phi, 2 - phi, False), order, terms)


def _terms(rules: TimeRules, fields: tuple[str, str], order: int) -> Iterator[LangevinTerm]:
    names = ["later", "earlier"]
    legs = {"phi": [n for n, name in zip(names, fields) if name in ("x", "xt")]}
    legs["sigma"] = [n for n in names if n not in legs["phi"]]
    asked = {kind: labels for kind, labels in legs.items() if labels}
    check_size(model_of(rules.scaled), {name: len(labels) for name, labels in legs.items()}, order, "connected", MOST)
    leading = leading_order(len(legs["phi"]), len(legs["sigma"]), False)
    degree, heats = (sum(UNITS[name][i] for name in fields) for i in (0, 1))
    for level in range(order + 1):
        for diagram in enumerate_diagrams(model_of(rules.scaled), asked, dressed=level):
            found = component_integrals(diagram, rules, dict(zip(names, fields)), {name: i for i, name in enumerate(names)})
            powers = rules.theory.temperature**heats * NUMBER ** (-leading - level)
            terms = {key: powers * rules.written(value, degree + sum(p for _, p in key)) for key, value in found.items()}
            yield LangevinTerm(diagram, level, ExponentialSum(rules.basis, 1, terms))
