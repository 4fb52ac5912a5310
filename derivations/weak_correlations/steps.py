r"""The derivation: the update rule expanded, correlations and their bounds, theorems with assumptions, what the exponents allow."""

from __future__ import annotations

from functools import cache, partial

import sympy as sp

from derivations.weak_correlations.exponents import ARCHITECTURES, architecture, derived_scale, exact_scale, exponent_law, power_of
from derivations.weak_correlations.theorems import (
    ASSUMPTIONS,
    THEOREMS,
    Kind,
    MissingAssumptionError,
    deviation_exponent,
    largest_rate,
    learning_rate_power,
    product_bound,
    required_exponent,
    weights,
)
from symtensor.activation import ActivationError, X
from symtensor.activation.growth_condition import growth_at, growth_condition
from symtensor.bounds import Scale, neuron_contraction, scale
from symtensor.derivation.model import Check, CheckOutcome, Equation, Step
from symtensor.expansion.derivative_trees import Weight
from symtensor.expansion.update_expansion import UpdateExpansion, expand_updates, loss_derivative, one_step
from symtensor.kernels import Argument, Kernel, ScalarKernel

__all__ = ["kernels", "linear_step", "steps"]

#: steps whose terms are checked one by one
STEPS = 2
ETA, Q, N, F, TH, SLOPE, V2 = sp.symbols("eta q n f Th g S", positive=True)


@cache
def linear_step() -> dict[str, sp.Expr]:
    r"""One step of one hidden linear layer, derived from the update of v and w: f = sqrt(q/n) v.w, S = |v|^2 + |w|^2.

    v' = v - eta g sqrt(q/n) w and w' = w - eta g sqrt(q/n) v give v'.w' and |v'|^2 + |w'|^2 by expansion.
    """
    t = ETA * SLOPE * sp.sqrt(Q / N)
    dot, total = F / sp.sqrt(Q / N), TH * N / Q
    new_dot = dot - t * total + t**2 * dot
    new_total = total * (1 + t**2) - 4 * t * dot
    function, kernel = sp.expand(sp.sqrt(Q / N) * new_dot), sp.expand(Q / N * new_total)
    return {"f": function, "Th": kernel, "deviation": sp.expand(function - (F - ETA * TH * SLOPE))}


@cache
def kernels() -> tuple[Kernel, ...]:
    """The exact map of one hidden linear layer."""
    arguments = tuple(Argument(str(s)) for s in (ETA, Q, N, F, TH, SLOPE))
    outputs = tuple((name, expr) for name, expr in linear_step().items())
    return (ScalarKernel("linear_step", arguments, outputs, "one step of gradient descent of one hidden linear layer"),)


@cache
def steps() -> tuple[Step, ...]:
    """The derivation."""
    return (_one_step(), _several(), _derivatives(), _bounds(), _composition(), _theorems(), _findings(), _growth(), _exact())


def _shown(found: UpdateExpansion, left: str) -> Equation:
    return Equation(left + " = " + " + ".join(term.latex() for term in found.terms) + r" + \cdots")


def _one_step() -> Step:
    text = (
        r"$F(\theta - \eta\,C' v)$ with $v = \nabla F$ is expanded in the update. The coefficient of $(-C')^d$ is the derivative "
        r"of order $d$ along $v$ with the factor $\eta^d/d!$: this is $C_{0,d}$, and $C_{D,d}$ for the scaled derivative of "
        r"order $D$."
    )
    check = Check("definition", r"$\eta^{D/2}\nabla^D F(\theta(1))/D! = \sum_d (-C')^d C_{D,d}$, $D \le 3$, $d \le 6$", _definition)
    equations = (_shown(one_step(4), r"F(\theta(1)) - F_{lin}(1)"), _shown(one_step(3, 1), r"\sqrt\eta\,\Delta\nabla F"))
    return Step("One step: the correlations are the coefficients", text, equations, (check,))


def _definition() -> CheckOutcome:
    for D in range(4):
        for term in one_step(D + 6, D).terms:
            ((found, d),) = term.correlations
            symbol = loss_derivative(1, 0, "x")
            if found != D or sp.expand(term.coefficient - (-symbol) ** d) != 0:
                return CheckOutcome(False, f"{term}")
    return CheckOutcome(True, "eta and factorials are those of the definition, in every term")


def _several() -> Step:
    found = expand_updates([["x_0"], ["x_1"]], weight=weights("exponential"), cut=2)
    text = (
        r"Several steps, one input $x_s$ each (a batch is a sum over its inputs): the gradient at $\theta(s)$ and $C'$ about "
        r"$F_{lin}(s)$ are "
        r"expanded too. Terms are contractions along trees; $C_{1,1}(b;a)[\,\cdot\,]$ contracts its free slot. Kept are all "
        r"terms with at most "
        r"two contracted gradients, that is $O(1/m)$ under exponential weak correlation."
    )
    return Step("Several steps, stochastic or full batch, any loss", text, (_shown(found, r"F(\theta(2)) - F_{lin}(2)"),), (
        Check("no learning rate is left", r"in every term $\eta$ and the factorials are those of the $C_{D,d}$", _no_eta),
    ))  # fmt: skip


def _no_eta() -> CheckOutcome:
    eta = sp.Symbol("eta", positive=True)
    terms = [t for loss in ("general", "square") for t in expand_updates([["a", "b"], ["b"]], weight=weights("exponential"), cut=2,
                                                                          loss=loss).terms]  # fmt: skip
    left = [str(term) for term in terms if term.coefficient.has(eta)]
    return CheckOutcome(not left, f"{len(terms)} terms, batches of two and one" if not left else left[0])


def _derivatives() -> Step:
    found = expand_updates([["x_0"], ["x_1"]], weight=weights("exponential"), cut=1, free=1)
    return Step("The gradient along training", r"The change of $\sqrt\eta\,\nabla F$, to the order $1/\sqrt m$.",
                (_shown(found, r"\sqrt\eta\,[\nabla F(\theta(2)) - \nabla F(\theta(0))]"),))  # fmt: skip


def _bounds() -> Step:
    text = (
        r"A tree is a sequence of single contractions: rule N4 of the bound algebra gives the product of the norms of its "
        r"$C_{D,d}$. "
        r"A tree of one tensor is $C_{0,d}$, $d \ge 2$; any other has two end tensors $C_{1,d}$ at least. So the least power "
        r"of $m^{-1/2}$ is "
        r"2 under both definitions."
    )
    check = Check("term by term", rf"after {STEPS} steps every term is $O(1/m)$ by the algebra, and one attains it", _terms)
    return Step("Bounds of the terms", text, (Equation(r"F(\theta(s)) - F_{lin}(s) = O(1/m)"),), (check,))


def _terms() -> CheckOutcome:
    counts = []
    given: tuple[tuple[Kind, int | None], ...] = (("fixed", 3), ("exponential", None))
    for kind, order in given:
        weight = weights(kind)
        found = expand_updates([["x"]] * STEPS, weight=weight, cut=3, order=order)
        scales = [product_bound(term.trees, partial(_text_of, weight)).scale for term in found.terms]
        if not all(size.within("1/m") for size in scales) or not any(size == scale("1/m") for size in scales):
            return CheckOutcome(False, f"{kind}: {sorted(map(str, scales))}")
        counts.append(f"{len(scales)} terms ({kind})")
    return CheckOutcome(True, ", ".join(counts))


def _text_of(weight: Weight, D: int, d: int) -> str:
    free = (D, d) in ((0, 0), (0, 1), (1, 0))
    return "1" if free else str(Scale.power_of("m", -sp.Rational(weight(D, d), 2)))


def _composition() -> Step:
    text = (
        r"$F = n^{-1/2}\sum_i a_i\phi_i(z_i)$ by Faa di Bruno's formula: every set partition of the slots is a term with a "
        r"bound from the "
        r"algebra. Without free slots it is a sum over neurons (centred for even $d$, since $F$ and $v$ are odd in $a$), "
        r"with one free slot a "
        r"vector (R22), with more a maximum (R10), which is where logarithms come from. Hidden layers and residual blocks "
        r"map bounds of "
        r"$z$ to bounds of the next $z$. Beyond one hidden layer two assumptions enter: contracted gradients are spread over the "
        r"neurons, and neurons are uncorrelated."
    )
    rows = []
    for name in ARCHITECTURES:
        pairs = ((0, 2), (0, 3), (1, 1), (2, 0), (2, 1))
        parts = ", ".join(rf"C_{{{D},{d}}}: {derived_scale(name, D, d).latex()}" for D, d in pairs)
        rows.append(Equation(rf"\text{{{name}}}:\ {parts}"))
    return Step("Composition of layers", text, tuple(rows), (
        Check("law in d", r"$c(D, d+2) = c(D, d) + 1$ and $c(D, d)$ is equal for all $D \ge 2$ on the derived table", _law),
        Check("per-neuron activations", "the bound is that of the supremum over neurons of the growth constants", _per_neuron),
        Check("needs its assumption", r"without uncorrelated neurons $C_{0,2}$ is only $O(n^{-1/2})$", _needs),
    ))  # fmt: skip


def _law() -> CheckOutcome:
    for name in ARCHITECTURES:
        law = exponent_law(name)
        wrong = [(D, d) for D in range(4) for d in range(7 - D) if D + d and power_of(_up_to(name, D, d)) != law(D, d)]
        if wrong:
            return CheckOutcome(False, f"{name}: {wrong}")
    return CheckOutcome(True, f"{len(ARCHITECTURES)} architectures, D + d <= 4 (one hidden layer: 6)")


def _up_to(name: str, D: int, d: int) -> Scale:
    """The derived scale where the parts are known (D + d <= 4 beyond one hidden layer), else that of the law."""
    if name != ARCHITECTURES[0] and D + d > 4:
        return Scale.power_of("n", -exponent_law(name)(D, d))
    return derived_scale(name, D, d)


def _per_neuron() -> CheckOutcome:
    names = ("tanh", "sin", "erf")
    constants = {name: growth_condition(name).constant for name in names}
    worst = max(constants, key=lambda name: constants[name])
    finite = all(value < float("inf") for value in constants.values())
    shown = ", ".join(f"{name} {value:.3g}" for name, value in constants.items())
    return CheckOutcome(finite, f"{shown}: the largest is {worst}")


def _needs() -> CheckOutcome:
    from derivations.weak_correlations.composition import read_out

    part = architecture(ARCHITECTURES[1])
    without, with_it = (read_out(part, 0, 2, uncorrelated=value)[0].scale for value in (False, True))
    return CheckOutcome(without == scale("1/sqrt(n)") and with_it == scale("1/n"), f"without: {without}; with: {with_it}")


def _theorems() -> Step:
    stated = [f"{t.name} assumes {'; '.join(ASSUMPTIONS[name].statement for name in t.assumptions)}." for t in THEOREMS]
    text = " ".join(["Assumptions are objects; a theorem without one of them is refused.", *stated])
    powers = (
        r"Under $\eta \to r\eta$ a tree has the factor $r^{D/2+d}$ of each of its tensors, at least $r^2$: at a fixed number "
        r"of steps the "
        r"derivation gives $O(r^2/m)$, which for $r \le 1$ is sharper than the printed $O(r/m)$."
    )
    equations = tuple(Equation(t.conclusion, t.name) for t in THEOREMS)
    return Step("Theorems 3.1, 3.2 and the corollary", f"{text} {powers}", equations, (
        Check("conclusions", "each follows from its assumptions", _conclusions),
        Check("assumptions are used", "each theorem is refused without any one of its assumptions", _refused),
        Check("rescaled learning rate", r"the smallest power of $r$ in a term is 2", _rescaled),
    ))  # fmt: skip


def _conclusions() -> CheckOutcome:
    found = {theorem.name: theorem.derive(frozenset(ASSUMPTIONS)) for theorem in THEOREMS}
    good = all(value.scale == scale("1/m") for value in found.values())
    return CheckOutcome(good, "; ".join(f"{name}: {value}" for name, value in found.items()))


def _refused() -> CheckOutcome:
    count = 0
    for theorem in THEOREMS:
        for name in theorem.assumptions:
            try:
                theorem.derive(frozenset(ASSUMPTIONS) - {name})
            except MissingAssumptionError:
                count += 1
                continue
            return CheckOutcome(False, f"{theorem.name} does not use {name}")
    return CheckOutcome(True, f"{count} refusals")


def _rescaled() -> CheckOutcome:
    found = expand_updates([["x"]] * STEPS, weight=weights("exponential"), cut=3)
    powers = [sum(learning_rate_power(tree) for tree in term.trees) for term in found.terms]
    return CheckOutcome(min(powers) == 2, f"powers {sorted(set(powers))}")


def _findings() -> Step:
    law = exponent_law(ARCHITECTURES[0])
    rates = {kind: largest_rate(law, kind) for kind in ("fixed", "exponential")}
    order, kinds, _ = deviation_exponent(law)
    needed = required_exponent("exponential", 0, 3, sp.Rational(3, 2))
    text = (
        rf"With the exponents of one hidden layer the largest allowed rate $m = n^\mu$ is $\mu = "
        rf"{sp.latex(rates['fixed'].exponent)}$ for the "
        rf"fixed definition and $\mu = {sp.latex(rates['exponential'].exponent)}$ for the exponential one, where "
        rf"$C_{{{rates['exponential'].worst[0]},{rates['exponential'].worst[1]}}}$ stops it. From the exponents themselves "
        rf"the deviation is "
        rf"$O(n^{{-{order}}})$; its leading terms are ${', '.join(kinds)}$. A rate $n^{{3/2}}$ would need $C_{{0,3}} = "
        rf"O(n^{{-{needed}}})$, "
        rf"and $C_{{0,2}} = \Theta(1/n)$ forbids any $m$ above $n$."
    )
    shown = [rf"m_{{{kind}}} = n^{{{rate.exponent}}}" for kind, rate in rates.items()]
    equation = Equation(r",\qquad ".join(shown))
    return Step("What the exponents of networks allow", text, (equation,), (
        Check("lower bounds", r"$C_{0,2}$ and $C_{0,3}$ are $\Theta(1/n)$ for a cubic activation, exactly", _definite),
        Check("all architectures", "the same rates hold for the four architectures", _everywhere),
    ))  # fmt: skip


def _definite() -> CheckOutcome:
    found = {d: exact_scale("x + x**3/6", 0, d) for d in (2, 3)}
    return CheckOutcome(all(value == "1/n" for value in found.values()), f"C_02 = Theta({found[2]}), C_03 = Theta({found[3]})")


def _everywhere() -> CheckOutcome:
    found = {}
    for name in ARCHITECTURES:
        law = exponent_law(name)
        found[name] = largest_rate(law, "fixed").exponent, largest_rate(law, "exponential").exponent
    return CheckOutcome(len(set(found.values())) == 1, "; ".join(f"{name}: {pair}" for name, pair in found.items()))


def _growth() -> Step:
    names = ("tanh", "erf", "sigmoid", "softplus", "gelu", "sin")
    shown = [growth_condition(name) for name in names]
    lines = [rf"\text{{{g.activation}}}:\ B = {g.constant:.4g}\ (k = {g.order}),\ a = {sp.latex(g.strip)}" for g in shown]
    text = (
        r"$B = \sup_k\sup_x|\phi^{(k)}(x)|/(k+1)!$ over bounded orders, and the distance $a$ of the nearest singularity from "
        r"the real axis. "
        r"At 0 alone $1/(1-x)^2$ has $\phi^{(k)}(0) = (k+1)!$ and is borderline; as an activation of a Gaussian layer it is "
        r"refused."
    )
    return Step("Condition on the activation", text, tuple(map(Equation, lines)), (
        Check("borderline at a point", r"$1/(1-x)^2$: all ratios at 0 are 1", _borderline),
        Check("refusals", "its pole and the kink of ReLU are found", _refusals),
    ))  # fmt: skip


def _borderline() -> CheckOutcome:
    found = growth_at(1 / (1 - X) ** 2)
    return CheckOutcome(set(found.ratios) == {sp.S.One} and found.verdict == "borderline", f"radius {found.radius}")


def _refusals() -> CheckOutcome:
    try:
        growth_condition("1/(1-x)**2")
    except ActivationError as error:
        return CheckOutcome(growth_condition("relu").verdict == "not analytic", str(error))
    return CheckOutcome(False, "the pole was not found")


def _exact() -> Step:
    found = linear_step()
    equations = tuple(Equation(rf"{name} = {sp.latex(found[key])}") for name, key in (("f'", "f"), (r"\mathrm{Th}'", "Th")))
    text = (
        r"$f = \sqrt{q/n}\,v\cdot w$, $\mathrm{Th} = (q/n)(|v|^2 + |w|^2)$: the update of $v$ and $w$ closes in $f$ and Th. "
        r"$C_{0,2} = \eta^2 q f/n$ and no further $C_{0,d}$."
    )
    return Step("Exactly solvable: one hidden linear layer", text, equations, (
        Check("one step", r"$F - F_{lin} = C_{0,2}\,g^2$ exactly", _linear_deviation),
        Check("flow", r"$\mathrm{Th}^2 - 4(q/n) f^2$ is constant to first order in $\eta$", _invariant),
        Check("moments", r"$C_{0,2}$ has second moment $\eta^4 q^3/n^2$, $C_{0,3} = 0$", _linear_moments),
    ))  # fmt: skip


def _linear_deviation() -> CheckOutcome:
    return CheckOutcome(sp.expand(linear_step()["deviation"] - ETA**2 * Q * F / N * SLOPE**2) == 0, str(linear_step()["deviation"]))


def _invariant() -> CheckOutcome:
    found = linear_step()
    invariant = found["Th"] ** 2 - 4 * Q / N * found["f"] ** 2
    return CheckOutcome(sp.expand(invariant.diff(ETA).subs(ETA, 0)) == 0, "its derivative in the learning rate vanishes at 0")


def _linear_moments() -> CheckOutcome:
    eta, q, n = (sp.Symbol(name, positive=True) for name in ("eta", "q", "n"))
    second, third = (neuron_contraction("identity", 0, d).second_moment() for d in (2, 3))
    return CheckOutcome(sp.simplify(second - eta**4 * q**3 / n**2) == 0 and third == 0, f"{second}, {third}")
