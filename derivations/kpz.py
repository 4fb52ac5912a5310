r"""Growing interfaces, dh/dt = nu lap h + (lam/2) (grad h)^2 + noise (KPZ): combinatorics, and the one-loop self-energy.

Wave vectors flow along the lines; the integrals over times are done exactly, those over loop momenta are left. Expanded at small
wave vectors the self-energy and the noise vertex give the renormalised viscosity and noise strength in any dimension.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from symtensor.derivation.field_run import (
    OUTPUTS,
    Compared,
    ComparisonTable,
    Curves,
    FieldResults,
    Panel,
    Work,
    common_options,
    run_fields,
)
from symtensor.derivation.model import Check, CheckOutcome, Citation, Derivation, Equation, Step
from symtensor.derivation.momentum_command import momentum_rules_step, momentum_step
from symtensor.derivation.results import Labelled
from symtensor.derivation.settings import Option, RunContext, RunResult, Settings
from symtensor.diagrams import enumerate_diagrams
from symtensor.fields.momentum import (
    MomentumSum,
    MomentumTheory,
    angular_constant,
    in_one_dimension,
    momentum_theory,
    multiplied_out,
    squared,
)
from symtensor.kernels import Argument, Kernel, ScalarKernel

__all__ = ["DERIVATION"]

NU, D, LAM = sp.symbols("nu D lam", positive=True)
K, Q = sp.symbols("k q")
LENGTH, OMEGA = sp.Symbol("q", positive=True), sp.Symbol("omega", real=True)
#: wave numbers of the curve, in units of the crossover
SPAN = (0.05, 20.0)


@cache
def kpz() -> MomentumTheory:
    """The theory."""
    return momentum_theory("kpz")


@cache
def one_loop(legs: str) -> MomentumSum:
    """The one-loop diagrams of a vertex function."""
    return kpz().vertex_function(legs, 1).at(1)


@cache
def corrections() -> tuple[Any, Any]:
    """What one loop adds to nu and to D at small wave vectors: averages over the directions of q, by length q and dimension."""
    viscosity = -one_loop("xt,x").small_momentum(2).coefficients[2] / squared(K)
    noise = one_loop("xt,xt").small_momentum(0).coefficients[0] / 2
    return sp.factor(viscosity), sp.factor(noise)


def even(expression: Any) -> Any:
    """The part of a one-dimensional integrand that is even in q."""
    flat = in_one_dimension(expression)
    return sp.cancel(sp.together((flat + flat.subs(Q, -Q)) / 2))


@cache
def self_energy_in_one_dimension() -> Any:
    """Sigma(k, omega = 0) in d = 1, integrated over q symbolically, for k > 0."""
    k, q = sp.Symbol("k", positive=True), sp.Symbol("q", real=True)
    integrand = even(one_loop("xt,x").integrand_at(0)).subs({K: k, Q: q})
    return sp.simplify(sp.integrate(integrand, (q, -sp.oo, sp.oo)) / (2 * sp.pi))


def kernels() -> tuple[Kernel, ...]:
    """The averaged integrands at small wave vectors, and the self-energy in one dimension."""
    d = sp.sympify(kpz().dimension)
    viscosity, noise = corrections()
    parameters = tuple(Argument(str(s), (), "parameter") for s in (D, LAM, NU))
    loop = (Argument("q", (), "length of the loop momentum"), Argument(str(d), (), "dimension"))
    outputs = (("viscosity", viscosity), ("noise", noise))
    line = ScalarKernel(
        "self_energy", (Argument("k", (), "wave number, positive"), *parameters),
        (("sigma", self_energy_in_one_dimension()),), "One-loop self-energy in one dimension at zero frequency",
    )  # fmt: skip
    return (ScalarKernel("corrections", (*loop, *parameters), outputs, "What one loop adds to nu and D, per mode"), line)


# -- steps ---------------------------------------------------------------------------------------------------------------


def steps() -> tuple[Step, ...]:
    """The derivation."""
    return (momentum_rules_step(kpz()), _combinatorics(), _self_energy(), _noise(), _small(), _one_dimension(), _galilei())


def _combinatorics() -> Step:
    text = (
        r"Of the diagrams of $\langle h h\rangle$ only those without a closed loop of response lines are not zero; the others are "
        r"never built. With three loops that leaves about a fifth."
    )
    check = Check("causal diagrams", "counts up to three loops, each enumeration proved complete", _counts)
    return Step("Combinatorics", text, (), (check,))


def _counts() -> CheckOutcome:
    found = []
    for loops in range(4):
        causal, every = (enumerate_diagrams("kpz", "x:2", loops=loops, causality=rule) for rule in ("local", "none"))
        proof = causal.verify()
        found.append(f"{loops} loops: {proof.count} of {every.count()}, weight {proof.weight}")
    return CheckOutcome(True, "; ".join(found))  # verify raises if a diagram is missing


def _self_energy() -> Step:
    text = r"The inverse response is $-i\omega + \nu k^2 - \Sigma(k, \omega)$."
    return momentum_step(one_loop("xt,x"), "Self-energy with one loop", text)


def _noise() -> Step:
    return momentum_step(one_loop("xt,xt"), "Noise vertex with one loop", r"The noise strength is $2D$ plus this vertex.")


def _small() -> Step:
    viscosity, noise = corrections()
    equations = (
        Equation(rf"\nu_{{\text{{eff}}}} = \nu + K_d \int\! dq\, q^{{d-1}}\, \left({sp.latex(viscosity)}\right)"),
        Equation(rf"D_{{\text{{eff}}}} = D + K_d \int\! dq\, q^{{d-1}}\, \left({sp.latex(noise)}\right)"),
        Equation(r"K_d = \frac{2}{(4\pi)^{d/2}\,\Gamma(d/2)}"),
    )
    text = (
        r"At small $k$ and $\omega = 0$ the integrands are expanded and averaged over the directions of $q$. The correction of the "
        r"viscosity changes its sign at $d = 2$."
    )
    checks = (
        Check("no mass", r"$\Sigma$ has no terms of order $k^0$ and $k^1$: a flat interface stays flat", _massless),
        Check("Medina, Hwa, Kardar, Zhang", r"$\delta\nu/\nu : \delta D/D = (2 - d)/d$", _ratio),
    )
    return Step("Small wave vectors", text, equations, checks)


def _massless() -> CheckOutcome:
    found = one_loop("xt,x").small_momentum(2).coefficients
    return CheckOutcome(found[0] == 0 and found[1] == 0 and found[2] != 0, f"order $k^2$: ${sp.latex(found[2])}$")


def _ratio() -> CheckOutcome:
    d = sp.sympify(kpz().dimension)
    viscosity, noise = corrections()
    ratio = sp.simplify((viscosity / NU) / (noise / D))
    return CheckOutcome(sp.simplify(ratio - (2 - d) / d) == 0, f"${sp.latex(ratio)}$")


def _one_dimension() -> Step:
    text = (
        r"In one dimension the stationary measure is Gaussian whatever $\lambda$ is, so that $D/\nu$ must not be renormalised; in "
        r"more dimensions this is not so."
    )
    checks = (
        Check("viscosity and noise", r"at $d = 1$: $\delta\nu/\nu = \delta D/D$", _equal),
        Check("fluctuation-dissipation", r"the noise vertex is $-\frac{D}{\nu k^2}\,(\Sigma(\omega) + \Sigma(-\omega))$", _theorem),
        Check("third cumulant", r"$\langle hhh\rangle$ at equal times vanishes at $d = 1$, and does not in general", _third),
    )
    equation = Equation(rf"\Sigma(k, 0) = {sp.latex(self_energy_in_one_dimension())} \quad (d = 1)")
    return Step("One dimension", text, (equation,), checks)


def _equal() -> CheckOutcome:
    viscosity, noise = (value.subs(sp.sympify(kpz().dimension), 1) for value in corrections())
    return CheckOutcome(sp.simplify(viscosity / NU - noise / D) == 0, f"${sp.latex(sp.factor(viscosity / NU))}$ per mode")


def _theorem() -> CheckOutcome:
    shift, noise = (even(one_loop(legs).integrand_at()) for legs in ("xt,x", "xt,xt"))
    rest = sp.cancel(sp.together(noise + D / (NU * K**2) * (shift + shift.subs(OMEGA, -OMEGA))))
    return CheckOutcome(rest == 0 and noise != 0, "the integrands agree, at every q")


def _third() -> CheckOutcome:
    three = kpz().cumulant("x,x,x", 0).at(0).integrand
    flat, full = in_one_dimension(three), multiplied_out(three)
    return CheckOutcome(sp.cancel(sp.together(flat)) == 0 and sp.cancel(sp.together(full)) != 0, "tree level, all wave vectors")


def _galilei() -> Step:
    text = (
        r"A tilted interface moves as an untilted one does in a moving frame. The vertex $\lambda$ is therefore not renormalised "
        r"at small wave vectors, in any dimension."
    )
    return Step("Galilean invariance", text, (), (Check("vertex", "the one-loop triangles cancel to second order", _triangles),))


def _triangles() -> CheckOutcome:
    total = one_loop("xt,x,x")
    found = total.small_momentum(2).coefficients
    first = MomentumSum(kpz(), total.legs, 1, "1pi", total.times, 1, {1: tuple(total)[:1]}).small_momentum(2).coefficients
    return CheckOutcome(not any(found.values()) and first[2] != 0, f"{len(tuple(total))} diagrams; the first alone is not zero")


# -- run -----------------------------------------------------------------------------------------------------------------


def _compute(work: Work) -> FieldResults:
    """The self-energy in one dimension: symbolic integral against quadrature; where one loop overtakes the bare viscosity."""
    numbers = {"nu": work.settings["nu"], "D": work.settings["noise"], "lam": work.settings["coupling"]}
    crossover = _crossover(numbers)
    k = crossover * np.geomspace(*SPAN, 41)
    curve = work.evaluate("self_energy", k=k, **numbers)["self_energy"]
    rows = []
    for at in range(0, 41, 8):
        with work.timed("quadrature"):
            found = one_loop("xt,x").evaluate({**numbers, "k": float(k[at]), "omega": 0.0}, dimension=1)
        theory = {"bare": 0.0, "one loop": float(curve[at])}
        rows.append(Compared(f"Sigma(k={k[at]:.3g})", rf"\Sigma({k[at]:.3g})", theory, found.real, 0.0, abs(found.error)))
    table = ComparisonTable(
        r"$\Sigma(k, 0)$ in one dimension: integrated symbolically, against quadrature of the integrand (truncation: its error).",
        "quadrature", tuple(rows), "Self-energy in one dimension",
    )  # fmt: skip
    lines = {"bare, $\\nu k^2$": (k, numbers["nu"] * k**2), "one loop, $-\\Sigma(k, 0)$": (k, -curve)}
    figure = Curves(
        r"The rate at which a perturbation of wave number $k$ decays in one dimension: bare, and what one loop adds.", "k",
        (Panel("rate", lines, log=True),),
    )  # fmt: skip
    remark = (
        rf"Below $k = {crossover:.3g}$ the correction is larger than $\nu k^2$: there the loop expansion breaks down, and the "
        r"interface is rough with exponents of its own."
    )
    arrays = {"k": Labelled(k, ("wave_number",)), "sigma": Labelled(curve, ("wave_number",))}
    values = {"crossover": crossover, "K_d": {str(n): float(angular_constant(n)) for n in (1, 2, 3)}}
    return FieldResults((table,), (figure,), (), values, arrays, (remark,))


def _crossover(numbers: dict[str, float]) -> float:
    """The wave number at which -Sigma(k, 0) = nu k^2."""
    k = sp.Symbol("k", positive=True)
    (solution,) = sp.solve(sp.Eq(-self_energy_in_one_dimension(), NU * k**2), k)
    return float(solution.subs({NU: numbers["nu"], D: numbers["D"], LAM: numbers["lam"]}))


def _run(settings: Settings, context: RunContext) -> RunResult:
    return run_fields(DERIVATION, settings, context, _compute)


DERIVATION = Derivation(
    name="kpz",
    title="Kardar-Parisi-Zhang equation: diagrams and the one-loop self-energy",
    summary="dh/dt = nu lap h + (lam/2) (grad h)^2 + noise: causal diagrams, self-energy, renormalised nu and D in d dimensions.",
    statement=(
        r"The response of $\partial_t h = \nu\nabla^2 h + \frac{\lambda}{2}(\nabla h)^2 + \eta$, "
        r"$\langle\eta\eta\rangle = 2D\,\delta\,\delta$, is $1/(-i\omega + \nu k^2 - \Sigma(k, \omega))$. The one-loop self-energy "
        r"$\Sigma$ and noise vertex follow from the diagrams as integrals over one wave vector; at small $k$ they renormalise "
        r"$\nu$ and $D$, in one dimension by the same factor."
    ),
    assumptions=(
        r"Stationary state; the average slope is zero, and the mode $k = 0$ (the growth of the mean height) is left out.",
        r"Ito equation, $\theta(0) = 0$; integrals over $q$ have a cutoff where they need one.",
    ),
    steps=steps,
    kernels=kernels,
    citations=(
        Citation("kpz1986", "Kardar, M. and Parisi, G. and Zhang, Y.-C.", "Dynamic scaling of growing interfaces",
                 "Phys. Rev. Lett. 56, 889", 1986),
        Citation("medina1989", "Medina, E. and Hwa, T. and Kardar, M. and Zhang, Y.-C.", "Burgers equation with correlated noise",
                 "Phys. Rev. A 39, 3053", 1989),
    ),
    options=(
        Option("--nu", float, 1.0, "viscosity", group="equation", above=0),
        Option("--noise", float, 1.0, "noise strength D", metavar="D", group="equation", above=0),
        Option("--coupling", float, 1.0, "strength lam of the nonlinear term", metavar="LAM", group="equation", above=0),
        *common_options("kpz", simulation=False),
    ),
    run=_run,
    examples=(
        ("diagrams, self-energy and checks", "symtensor run kpz"),
        ("the formula alone", "symtensor fields kpz --vertex xt,x --loops 1 --latex"),
    ),
    outputs=OUTPUTS.format(name="kpz"),
)  # fmt: skip
