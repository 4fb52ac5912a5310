r"""The derivation: fixed point, rules, diagrams with their factors, and what decides that they are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from derivations.rate_network.network import DEFAULT, PAIRS, VARIABLES, D, Network
from symtensor.derivation.diagram_steps import diagram_step, rounded
from symtensor.derivation.field_run import sum_kernel
from symtensor.derivation.model import Check, CheckOutcome, Equation, Step
from symtensor.fields import DiagramSum, Term
from symtensor.kernels import Argument, Kernel, ScalarKernel

__all__ = ["class_of", "kernels", "linear_theory", "means_by_hand", "relative_difference", "steps"]

Array = NDArray[np.float64]
#: digits of the numbers that are shown
SHOWN = 6
#: the two routes are sums of different terms, evaluated in float64 from numbers of 30 digits
TOLERANCE = 1e-11
CLASSES = {
    "tadpole": "slope at the shifted mean",
    "self-loop": "slope averaged over the noise",
    "bubble": "fluctuations fed back with delay",
    "noise": "fluctuations that act as further noise",
}


# -- kernels -----------------------------------------------------------------------------------------------------------


@cache
def kernels(network: Network = DEFAULT) -> tuple[Kernel, ...]:
    """Means, two-point functions by loops, and the one-loop part of each two-point function by diagrams."""
    means = (sum_kernel(network.mean(i), f"mean_{x}", f"<{x}>, about the fixed point") for i, x in enumerate(VARIABLES))
    pairs = (sum_kernel(network.covariance(p), f"c_{p}", f"<{p[0]}(t) {p[1]}(0)> connected, t >= 0") for p in PAIRS)
    return (*means, *pairs, *(_parts_kernel(network.covariance(p).at(1), p) for p in PAIRS))


def _parts_kernel(total: DiagramSum, pair: str) -> ScalarKernel:
    outputs = tuple((f"diagram_{n}", term.expr) for n, term in enumerate(total, start=1))
    arguments = (Argument(str(total.legs.windows[0]), (), "time difference"), Argument(str(D), (), "noise strength"))
    return ScalarKernel(f"diagrams_{pair}", arguments, outputs, f"the diagrams of <{pair[0]}(t) {pair[1]}(0)> with one loop")


# -- steps -------------------------------------------------------------------------------------------------------------


@cache
def steps(network: Network = DEFAULT) -> tuple[Step, ...]:
    """The derivation for one network."""
    return (_model(network), _rules(network), *_means(network), *_covariances(network), _classes(network), _scaling(network))


def _model(network: Network) -> Step:
    lhs = ("du", "dv" if network.tau == 1 else rf"{sp.latex(network.tau)}\,dv")
    drive = [sp.latex(sp.N(s, SHOWN)) for s in network.drives()]
    equations = [
        Equation(rf"{left} = \left[-{x} + \varphi\!\left({s}\right)\right] dt + {sp.latex(sp.sqrt(2 * D) * t)}\,dW_{x}")
        for left, x, s, t in zip(lhs, VARIABLES, drive, network.times)
    ]
    equations += [
        Equation(rf"\varphi(x) = {sp.latex(network.phi)}"),
        Equation(rf"(u^*, v^*) = ({', '.join(sp.latex(sp.N(x, 10)) for x in network.point)})", "fixed point"),
        Equation(rf"A = {_matrix(network.linear.drift)},\qquad \text{{rates }} {_numbers(network.linear.rates)}"),
    ]
    text = (
        r"The fixed point solves $x_i = \varphi(s_i)$ with $s_i = \sum_j w_{ij} x_j + h_i$. It has no closed form; it is found "
        r"with 30 digits and refined to that precision. $A = -\partial f/\partial x$ there decides its stability: the real parts "
        r"of its eigenvalues, the relaxation rates, must be positive."
    )
    checks = (Check("fixed point", r"$\varphi(s_i) - x_i$ vanishes to 25 digits, evaluated with 50", lambda: _residual(network)),)
    return Step("Network and fixed point", text, tuple(equations), checks)


def _residual(network: Network) -> CheckOutcome:
    put = {x: sp.Float(value, 50) for x, value in zip(VARIABLES, network.point)}
    rest = [abs(sp.N(f.subs(put), 50)) for f in network.drift().values()]
    return CheckOutcome(bool(max(rest) < sp.Float(10) ** -25), f"largest residual {float(max(rest)):.1e}")


def _rules(network: Network) -> Step:
    theory = network.theory
    text = "\n\n".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in theory.conventions_latex)
    text += (
        "\n\n"
        r"The linear equation mixes $u$ and $v$, so that both belong to one kind of line; a diagram stands for the sum over the "
        r"components at the ends of its lines. A vertex with the response field $\tilde x_i$ and $k \geq 2$ fields has the factor "
        r"below; there is none with two response fields, since the noise is additive."
    )
    slopes = (
        rf"\varphi^{{({k})}}(s_u) = {sp.latex(slopes[0].n(SHOWN))},\quad \varphi^{{({k})}}(s_v) = {sp.latex(slopes[1].n(SHOWN))}"
        for k in (1, 2, 3)
        for slopes in (network.slopes(k),)
    )
    equations = (
        Equation(r"v_{\tilde x_i x_{j_1}\cdots x_{j_k}} = \frac{1}{\tau_i}\,\varphi^{(k)}(s_i)\, w_{i j_1}\cdots w_{i j_k}"),
        *map(Equation, slopes),
        Equation(rf"C(0) = {_matrix(network.linear.covariance)}", "tree level"),
    )
    checks = (
        Check("vertices", r"every vertex of the theory is this product, to 25 digits", lambda: _vertices(network)),
        Check("linear theory", r"$C(0)$ solves $A C + C A^T = 2D$ in float64 arithmetic", lambda: _lyapunov(network)),
    )
    return Step("Rules", text, equations, checks)


def _vertices(network: Network) -> CheckOutcome:
    """The derivatives of the density against the product of slopes and weights."""
    worst, count = 0.0, 0
    for powers, value in network.theory.derivatives(4).items():
        fields, responses = powers[:2], powers[2:]
        i = responses.index(1)
        expected = network.slopes(sum(fields))[i] / network.times[i]
        for w, power in zip(network.weights[i], fields):
            expected *= w**power
        worst, count = max(worst, float(abs(sp.N(value, 30) - expected) / abs(expected))), count + 1
    return CheckOutcome(worst < 1e-25 and count > 0, f"{count} vertices, largest relative difference {worst:.1e}")


def linear_theory(network: Network) -> tuple[Array, Array]:
    """A and C(0)/D in float64, from slopes and weights alone."""
    from scipy.linalg import solve_continuous_lyapunov

    slopes, times = (np.array([float(s) for s in row]) for row in (network.slopes(1), network.times))
    weights = np.array([[float(w) for w in row] for row in network.weights])
    drift = (np.eye(2) - slopes[:, None] * weights) / times[:, None]
    return drift, solve_continuous_lyapunov(drift, 2 * np.eye(2))


def _lyapunov(network: Network) -> CheckOutcome:
    _, expected = linear_theory(network)
    found = np.array([[float(entry.subs(D, 1)) for entry in row] for row in network.linear.covariance.tolist()])
    error = float(np.max(np.abs(found - expected)))
    return CheckOutcome(error < TOLERANCE * float(np.max(np.abs(expected))), f"largest difference {error:.1e} D")


def _means(network: Network) -> list[Step]:
    text = (
        r"The noise samples the curvature of $\varphi$: the mean of $\varphi$ over the fluctuations differs from $\varphi$ at the "
        r"mean. The line that carries the shift to the leg has had infinite time to act, $\int_0^\infty\! R\,dt = A^{-1}$."
    )
    formula = r"\langle x\rangle_1 = A^{-1} m,\qquad m_i = \frac{1}{2\tau_i}\,\varphi''(s_i)\, w_i^T C(0)\, w_i"
    found = []
    for i, x in enumerate(VARIABLES):
        checks = [_second_route(f"<{x}>", network.mean(i), {i: 1}, network)]
        if i == 0:
            checks += [Check("by hand", "the formula, evaluated in float64 with slopes and weights", lambda: _by_hand(network))]
        name = rf"\langle {x}\rangle_1"
        step = diagram_step(network.mean(i).at(1), f"Mean of ${x}$: the tadpole", text if i == 0 else "", name, checks, SHOWN)
        found.append(Step(step.title, step.text, (*((Equation(formula),) if i == 0 else ()), *step.equations), step.checks,
                          step.drawings))  # fmt: skip
    return found


def means_by_hand(network: Network) -> Array:
    """<x>_1/D = A^-1 m."""
    drift, covariance = linear_theory(network)
    curvature, times = (np.array([float(s) for s in row]) for row in (network.slopes(2), network.times))
    weights = np.array([[float(w) for w in row] for row in network.weights])
    return np.linalg.solve(drift, curvature * np.einsum("ij,jk,ik->i", weights, covariance, weights) / (2 * times))


def _by_hand(network: Network) -> CheckOutcome:
    expected = means_by_hand(network)
    found = np.array([float(network.mean(i).at(1).expr.subs(D, 1)) for i in range(2)])
    error = float(np.max(np.abs(found - expected)))
    return CheckOutcome(
        error < TOLERANCE * float(np.max(np.abs(expected))), f"{expected.tolist()} D, differences below {error:.1e}"
    )


def _covariances(network: Network) -> list[Step]:
    text = (
        r"All diagrams of $\langle u(t)\,u(0)\rangle$; those of the other pairs are the same with other components at the legs. "
        r"A pair of conjugate rates gives sines and cosines."
    )
    first = diagram_step(
        network.covariance("uu").at(1), "Covariance at one loop", text, r"\langle u(t)\,u(0)\rangle_1",
        [_second_route("<u(t) u(0)>", network.covariance("uu"), [{0: 1}, {0: 1}], network)], SHOWN,
    )  # fmt: skip
    others = [pair for pair in PAIRS if pair != "uu"]
    equations = tuple(
        Equation(rf"\langle {p[0]}(t)\,{p[1]}(0)\rangle_1 = {sp.latex(rounded(network.covariance(p).at(1).expr, SHOWN))}")
        for p in others
    )
    checks = [
        _second_route(f"<{p[0]}(t) {p[1]}(0)>", network.covariance(p), [{PAIRS[p][0]: 1}, {PAIRS[p][1]: 1}], network)
        for p in others
    ]
    checks.append(
        Check("equal times", r"at $t = 0$, $\langle uv\rangle$ does not depend on which is later", lambda: _equal(network))
    )
    rest = Step("The other pairs", "Sums of the same diagrams.", equations, tuple(checks))
    return [first, rest]


def _equal(network: Network) -> CheckOutcome:
    one, other = (_values(network.covariance(pair).at(1), np.zeros(1))[0] for pair in ("uv", "vu"))
    return CheckOutcome(abs(one - other) <= TOLERANCE * abs(one), f"{one:.12g} D^2 and {other:.12g} D^2")


def class_of(term: Term) -> str:
    """What a one-loop diagram of a two-point function does: a key of CLASSES."""
    graph = term.diagram.graph
    if term.diagram.tadpoles:
        return "tadpole"
    if any(line.is_self_loop for line in graph.lines):
        return "self-loop"
    outer = [line for line in graph.lines if line.start in graph.legs or line.end in graph.legs]
    return "noise" if all(line.response for line in outer) else "bubble"


def _classes(network: Network) -> Step:
    text = (
        "A diagram of the covariance at one loop does one of four things. Its tadpoles move the point at which the slope is taken; "
        "a line that starts and ends at one vertex averages the slope over the fluctuations; a bubble feeds fluctuations back with "
        "a delay; and a bubble that both legs leave by response lines is a source of fluctuations, beside the noise."
    )
    counts = {name: sum(class_of(term) == name for term in network.covariance("uu").at(1)) for name in CLASSES}
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    equation = Equation(r"C_1 = C_{\mathrm{tadpole}} + C_{\mathrm{loop}} + C_{\mathrm{bubble}} + C_{\mathrm{noise}}", "classes")
    check = Check(
        "slope alone", "tadpoles and self-loops together are the change of the linear theory when its slopes change",
        lambda: _slope_alone(network),
    )  # fmt: skip
    return Step("What each diagram does", f"{text} Diagrams: {listed}.", (equation,), (check,))


def _slope_alone(network: Network) -> CheckOutcome:
    """d C(0)/d A in the direction of the mean change of A: sum_k phi''(s) w w <x>_1 + phi''' w w (w C w)/2."""
    from scipy.linalg import solve_continuous_lyapunov

    drift, covariance = linear_theory(network)
    second, third, times = (np.array([float(s) for s in row]) for row in (network.slopes(2), network.slopes(3), network.times))
    weights = np.array([[float(w) for w in row] for row in network.weights])
    spread = np.einsum("ij,jk,ik->i", weights, covariance, weights)
    change = -((second * (weights @ means_by_hand(network)) + third * spread / 2) / times)[:, None] * weights
    expected = solve_continuous_lyapunov(drift, -(change @ covariance + covariance @ change.T))
    local = ("tadpole", "self-loop")
    found = [
        sum(_values_of(term, np.zeros(1))[0] for term in network.covariance(p).at(1) if class_of(term) in local) for p in PAIRS
    ]
    error = float(np.max(np.abs(np.array(found).reshape(2, 2) - expected)))
    return CheckOutcome(error <= TOLERANCE * float(np.max(np.abs(expected))), f"largest difference {error:.1e} D^2")


def _scaling(network: Network) -> Step:
    text = (
        r"Every line $C$ is proportional to $D$ and nothing else depends on it, so that the order in loops is the order in $D$. "
        r"The size of the correction relative to tree level therefore grows linearly with the noise strength."
    )
    equations = (
        Equation(r"\langle x_i\rangle_L \propto D^L,\qquad \langle x_i\,x_j\rangle_L \propto D^{L+1}"),
        Equation(r"\frac{\langle x_i x_j\rangle_1}{\langle x_i x_j\rangle_0} \propto D"),
    )
    check = Check("powers of D", "the terms of every order have exactly this power of $D$", lambda: _powers(network))
    return Step("Scaling with the noise strength", text, equations, (check,))


def _powers(network: Network) -> CheckOutcome:
    sums = [(network.mean(i), 0) for i in range(2)] + [(network.covariance(p), 1) for p in PAIRS]
    wrong = []
    for total, extra in sums:
        for loops, part in total.by_order().items():
            powers = {sp.Poly(sp.expand(c), D).monoms() == [(loops + extra,)] for c in part.value.terms.values()}
            wrong += [f"{total.title}, {loops} loops"] if powers - {True} else []
    return CheckOutcome(not wrong, "; ".join(wrong) or f"{len(sums)} functions, tree level and one loop")


# -- the second route --------------------------------------------------------------------------------------------------


def _second_route(name: str, total: DiagramSum, legs: Any, network: Network) -> Check:
    def run() -> CheckOutcome:
        errors = relative_difference(total, legs, network)
        detail = ", ".join(f"{loops} loops: {error:.1e}" for loops, error in errors.items())
        return CheckOutcome(max(errors.values()) < TOLERANCE, f"largest relative difference with {detail}")

    statement = (
        "the moment hierarchy of the drift expanded about the fixed point, without propagators, vertices or diagrams, gives the "
        "same function of time at every order"
    )
    return Check(f"second route of {name}", statement, run)


def relative_difference(total: DiagramSum, legs: Any, network: Network) -> dict[int, float]:
    """By loops: the largest difference from the moment hierarchy over times, relative to the largest value; D = 1."""
    series = network.without_diagrams(legs, total.loops)
    times = np.linspace(0, 4, 9)
    found = {}
    for loops, part in total.by_order().items():
        value = series.values(times if series.times else None, {D: 1})[loops]
        if loops == 0 and not series.times:
            continue  # the fixed point, about which the hierarchy is expanded
        mine = _values(part, times)
        found[loops] = float(np.max(np.abs(mine - value)) / np.max(np.abs(value)))
    return found


def _values(part: DiagramSum, times: Array) -> Array:
    return sum((_values_of(term, times) for term in part), np.zeros(len(times)))


def _values_of(term: Term, times: Array) -> Array:
    """A term at D = 1; for equal times the value, repeated."""
    evaluate: Callable[..., Any] = term.value.evaluate
    put: Mapping[Any, Any] = {D: 1}
    if not term.value.windows:
        return np.full(len(times), float(complex(evaluate(values=put)).real))
    return np.array([complex(evaluate(sp.Float(float(t)), values=put)).real for t in times])


def _matrix(table: sp.MatrixBase) -> str:
    return sp.latex(table.applyfunc(lambda entry: rounded(sp.N(entry), SHOWN)))


def _numbers(values: Any) -> str:
    return ", ".join(sp.latex(rounded(sp.N(value), SHOWN)) for value in values)
