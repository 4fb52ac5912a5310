r"""The derivation: rules, diagrams with their factors, and exact checks by routes without diagrams."""

from __future__ import annotations

from functools import cache

import mpmath
import sympy as sp

from derivations.zero_dimensional.sums import (
    LOOPS,
    ORDER,
    G,
    X,
    growth,
    limit,
    quartic_series,
    radial_mean_square,
    total,
    vector_theory,
    vector_two_point,
)
from symtensor.derivation.diagram_steps import drawings, rules_step, second_route
from symtensor.derivation.field_run import sum_kernel
from symtensor.derivation.model import Check, CheckOutcome, Drawing, Equation, Step
from symtensor.diagrams import enumerate_diagrams
from symtensor.expansion import perturbative_moments
from symtensor.fields import DiagramSum, theory
from symtensor.fields.large_n import RadialExpansion, VectorTheory, log_partition, two_point
from symtensor.fields.large_n.saddle import NUMBER
from symtensor.kernels import Argument, Kernel, ScalarKernel

__all__ = ["kernels", "steps"]

#: diagrams with more loops are counted and summed, not drawn
DRAWN = 2
#: highest number of vertices of the sum rule
VERTICES = 4


@cache
def kernels() -> tuple[Kernel, ...]:
    """The functions that the run compares with integrals, by number of loops or order in 1/N."""
    return (
        sum_kernel(total("phi4", "x,x"), "quartic_two_point", "<x^2>, weight exp(-x^2/2 - g x^4/24)"),
        sum_kernel(total("phi4", "x,x", "1pi"), "quartic_self_energy", "1 - 1/<x^2>"),
        sum_kernel(total("phi3", "x"), "cubic_mean", "<x>, weight exp(-x^2/2 - g x^3/6)"),
        _vector_kernel(),
    )


def _vector_kernel() -> ScalarKernel:
    result = vector_two_point()
    outputs = tuple((f"order_{k}", result[k] * NUMBER**-k) for k in range(ORDER + 1))
    names = {"N": "number of components", "m": "mass at the saddle point, m = r + u/m", "u": "coupling"}
    arguments = tuple(Argument(name, (), meaning) for name, meaning in names.items())
    return ScalarKernel("vector_two_point", arguments, outputs, "<phi_1 phi_1> by orders in 1/N")


@cache
def steps() -> tuple[Step, ...]:
    """The derivation."""
    quartic, cubic = theory("phi4"), theory("phi3")
    return (
        _named(rules_step(quartic), "The quartic theory: rules"),
        _sum_step(total("phi4", "x,x"), "Quartic theory: two-point function"),
        _sum_step(total("phi4", "x,x", "1pi"), "Quartic theory: self-energy", (_inverse(),)),
        _moments(),
        _effective_action(),
        _sum_rule(),
        _named(rules_step(cubic), "The cubic theory: rules"),
        _sum_step(total("phi3", "x"), "Cubic theory: mean (tadpoles)"),
        _sum_step(total("phi3", "x,x", "1pi"), "Cubic theory: self-energy"),
        _large_orders(),
        _saddle_point(),
        _large_n(),
    )


def _named(step: Step, title: str) -> Step:
    return Step(title, step.text, step.equations, step.checks, step.drawings)


def _sum_step(chosen: DiagramSum, title: str, checks: tuple[Check, ...] = ()) -> Step:
    """A function by loops: drawings of the first orders, every order in closed form, the second route."""
    counts = ", ".join(f"{loops}: {count}" for loops, count in chosen.count().items() if count)
    text = f"Numbers of diagrams by loops: {counts}. Those with up to {DRAWN} loops are drawn."
    shown = total(chosen.theory.name, ",".join(chosen.legs.names), chosen.kind, DRAWN)
    equation = Equation(rf"{chosen.latex_name()} = {sp.latex(_ordered(chosen))}")
    return Step(title, text, (equation,), (second_route(chosen), *checks), drawings(shown))


def _ordered(chosen: DiagramSum) -> sp.Expr:
    return sp.Add(*(part.expr for part in chosen.by_order().values()))


def _inverse() -> Check:
    def run() -> CheckOutcome:
        full, sigma = total("phi4", "x,x").expr, total("phi4", "x,x", "1pi").expr
        rest = sp.Poly(sp.expand(full * (1 - sigma) - 1), G)
        lowest = min((powers[0] for powers in rest.monoms()), default=LOOPS + 1)
        return CheckOutcome(lowest > LOOPS, f"what is left starts at $g^{{{lowest}}}$")

    return Check("Dyson's equation", r"$\langle x x\rangle\,(1 - \Sigma) = 1$ to the order of the sums", run)


def _moments() -> Step:
    text = (
        "A moment is the sum over the partitions of its factors of products of cumulants. The moments of the quartic theory are "
        "put together from the connected diagrams and compared with Wick's theorem for the normalised integral."
    )
    equation = Equation(r"\langle x^4\rangle = \langle x^4\rangle_c + 3\,\langle x^2\rangle^2")
    return Step("Moments", text, (equation,), (Check("fourth moment", "equal to three loops as exact rationals", _fourth),))


def _fourth() -> CheckOutcome:
    order = 3
    # four legs: tree level is of order g, so that two loops reach g^3
    found = total("phi4", "x,x,x,x", loops=order - 1).expr + 3 * total("phi4", "x,x").expr ** 2
    exact = perturbative_moments(-G * X**4 / 24, {X: 4}, {G: order}, {(X, X): 1}).expr
    found = sum(sp.expand(found).coeff(G, n) * G**n for n in range(order + 1))
    return CheckOutcome(sp.expand(found - exact) == 0, f"${sp.latex(exact)}$")


def _effective_action() -> Step:
    action = theory("phi4").effective_action(loops=2, degree=4)
    text = (
        r"The one-particle irreducible functions are the derivatives of the effective action $\Gamma(\varphi)$, the Legendre "
        r"transform of $\log Z$ as a function of a source. With one loop it is $\frac{1}{2}\log S''(\varphi)$."
    )

    def legendre() -> CheckOutcome:
        parts = action.verify()
        return CheckOutcome(True, ", ".join(f"{loops}: ${sp.latex(value)}$" for loops, value in parts.items()))

    def one_loop() -> CheckOutcome:
        exact = sp.series(sp.log(1 + G * X**2 / 2) / 2, X, 0, 5).removeO()
        return CheckOutcome(sp.expand(action.at(1) - exact) == 0, f"${sp.latex(sp.expand(exact))}$")

    checks = (
        Check("Legendre transform", "every 1PI function to two loops equals that of the Legendre transform of $\\log Z$", legendre),
        Check("one loop", r"the part of one loop is $\frac{1}{2}\log(1 + g\varphi^2/2)$", one_loop),
    )
    equation = Equation(r"\Gamma(\varphi) = " + sp.latex(action.expr.subs(X, sp.Symbol("varphi"))))
    return Step("Quartic theory: effective action to two loops", text, (equation,), checks)


def _sum_rule() -> Step:
    text = (
        r"With $n$ vertices and $k$ legs, the weights of all diagrams, disconnected ones and vacuum parts included, add up to what "
        r"the Gaussian integral of $x^k (x^4)^n$ says. The sum fails if one diagram is missing or one symmetry factor is wrong."
    )
    equation = Equation(r"\sum_{\mathrm{diagrams}} \frac{1}{|\mathrm{Aut}|} = \frac{(4n + k - 1)!!}{n!\,(4!)^n}")
    check = Check("sum rule", f"for $k = 0$ and $k = 2$, $n$ up to {VERTICES}", _weights)
    return Step("Symmetry factors: the sum rule", text, (equation,), (check,))


def _weights() -> CheckOutcome:
    found = []
    for legs in (0, 2):
        for n in range(1, VERTICES + 1):
            # the model counts a vertex of four legs as g^2
            diagrams = list(enumerate_diagrams("phi4", {"x": legs} if legs else {}, orders={"g": 2 * n}, kind="all"))
            weight = sum((sp.Rational(str(diagram.weight)) for diagram in diagrams), sp.S.Zero)
            exact = sp.Rational(sp.factorial2(4 * n + legs - 1), sp.factorial(n) * 24**n)
            found.append((legs, n, len(diagrams), weight, exact))
    wrong = [f"k = {k}, n = {n}: {weight}, not {exact}" for k, n, _, weight, exact in found if weight != exact]
    detail = ", ".join(f"k = {k}, n = {n}: {count} diagrams, {weight}" for k, n, count, weight, _ in found)
    return CheckOutcome(not wrong, "; ".join(wrong) or detail)


def _large_orders() -> Step:
    text = (
        r"At negative $g$ the integral does not exist, so that the series cannot converge. Its coefficients at large order come "
        r"from the complex saddle points $x^2 = -6/g$, where $S = -3/(2g)$: a dispersion relation in $g$ with their discontinuity "
        r"yields $Z_n \simeq (-2/3)^n (n-1)!/(\sqrt{2}\,\pi)$, and the factor $x^2$ there multiplies it by $4n$. The terms of "
        r"$\langle x^2\rangle$ fall until $n \approx 3/(2g)$; the smallest is of the size $e^{-3/(2g)}$."
    )
    equation = Equation(
        r"\langle x^2\rangle = \sum_n c_n g^n,\qquad c_n \simeq \frac{2\sqrt{2}}{\pi}\, n!\,\Big(-\frac{2}{3}\Big)^n"
    )
    checks = (
        Check("saddle", r"$S' = 0$ off the origin has $x^2 = -6/g$, $S = -3/(2g)$", _action),
        Check("growth", r"$c_n$ over its leading growth tends to 1", _growth),
    )
    return Step("Quartic theory: large orders", text, (equation,), checks)


def _action() -> CheckOutcome:
    action = -theory("phi4").density
    square = sp.Symbol("s")
    slope = sp.cancel(action.diff(X) / X).subs(X**2, square)
    roots = sp.solve(slope, square)
    value = sp.cancel(action.subs(X, sp.sqrt(roots[0])))
    return CheckOutcome(roots == [-6 / G] and value == -3 / (2 * G), f"$x^2 = {sp.latex(roots[0])}$, $S = {sp.latex(value)}$")


def _growth() -> CheckOutcome:
    highest = 40
    values = [coefficient / growth(n) for n, coefficient in enumerate(quartic_series(highest)) if n]
    last, extrapolated = float(values[-1]), float(limit([sp.N(v, 40) for v in values], 1))
    return CheckOutcome(abs(extrapolated - 1) < 1e-6, f"{last:.5f} at $n = {highest}$, {extrapolated:.9f} extrapolated in $1/n$")


def _saddle_point() -> Step:
    gap = vector_theory().gap_equation
    text = (
        r"For $N$ components and $S = \frac{r}{2}\phi\cdot\phi + \frac{u}{4N}(\phi\cdot\phi)^2$, let $\rho = \phi\cdot\phi/N$ with "
        r"multiplier $\lambda$. Without $\phi$ the action is of order $N$, and its saddle point has $\lambda = m$, $\rho = 1/m$. "
        r"Its fluctuations are the chain of bubbles, $q = m^2 + u$:"
    )
    equations = (
        Equation(rf"0 = {sp.latex(gap)}"),
        Equation(r"\langle\rho\rho\rangle = \frac{2}{N q},\qquad \langle\rho\lambda\rangle = -\frac{2 m^2}{N q},\qquad "
                 r"\langle\lambda\lambda\rangle = -\frac{2 m^2 u}{N q}"),
    )  # fmt: skip
    return Step("N components: saddle point and dressed line", text, equations, (Check("lines", "as entered here", _lines),))


def _lines() -> CheckOutcome:
    model, u, m = vector_theory(), sp.Symbol("u", real=True), vector_theory().mass
    q = m**2 + u
    expected = {
        ("rho", "rho"): 2 / (NUMBER * q),
        ("rho", "lam"): -2 * m**2 / (NUMBER * q),
        ("lam", "lam"): -2 * m**2 * u / (NUMBER * q),
    }
    wrong = [pair for pair, value in expected.items() if sp.simplify(model.line(*pair) - value) != 0]
    return CheckOutcome(not wrong, "the inverse Hessian at the saddle point")


def _large_n() -> Step:
    result = vector_two_point()
    orders = result.by_order()
    text = (
        rf"Each diagram is an exact function of the saddle point times a power of $N$: {len(orders[1])} diagrams of order $1/N$, "
        rf"drawn here, {len(orders[2])} of order $1/N^2$. The second route expands the radial integral by parts, without diagrams."
    )
    shown = tuple(Drawing(t.diagram.to_svg(), (t.latex(),), f"symmetry factor {t.symmetry_factor}") for t in orders[1])
    equations = tuple(Equation(rf"\langle\phi_1\phi_1\rangle_{{1/N^{k}}} = {sp.latex(sp.factor(result[k]))}") for k in (1, 2))
    checks = (
        Check("radial integral, two-point function", "orders 0 to 2 equal, exactly", lambda: CheckOutcome(True, _verified())),
        Check("radial integral, free energy", r"orders 0 to 2 of $\log Z$ equal, exactly", _free_energy),
        Check("error", r"at $r = 1$, $u = 6$ the error of order $K$ is $N^{-K-1}$ times the next coefficient", _errors),
    )
    return Step("N components: two-point function to order $1/N^2$", text, equations, checks, shown)


def _verified() -> str:
    check = vector_two_point().verify()  # raises if an order differs
    return f"{check.diagrams} diagrams, orders 0 to {check.orders}"


def _free_energy() -> CheckOutcome:
    check = log_partition(vector_theory(), ORDER).verify()
    return CheckOutcome(check.orders == ORDER, f"{check.diagrams} diagrams, orders 0 to {check.orders}")


def _errors() -> CheckOutcome:
    """N^(K+1) (exact - sum to order K) tends to the next coefficient: within 3% at N = 1024, closer than at N = 256."""
    model = VectorTheory.read(vector_theory().potential, values={"r": 1, "u": 6})  # m = 3, all coefficients rational
    coefficients = RadialExpansion(model, ORDER + 1).cumulant({"rho": 1})
    result, found = two_point(model, ORDER), []
    with mpmath.workdps(25):
        following = [mpmath.mpf(sp.N(c, 25)) for c in coefficients]
        exact = {n: radial_mean_square(n, 1.0, 6.0) for n in (256, 1024)}
        for order in range(ORDER + 1):
            partial = sp.Add(*(result[k] * NUMBER**-k for k in range(order + 1)))
            left = {n: exact[n] - mpmath.mpf(sp.N(partial.subs(NUMBER, n), 25)) for n in exact}
            found.append([float(left[n] * mpmath.mpf(n) ** (order + 1) / following[order + 1]) for n in exact])
    passed = all(abs(far - 1) < 0.03 and abs(far - 1) < abs(near - 1) for near, far in found)
    detail = ", ".join(f"order {k}: ratio {near:.4f} at 256, {far:.4f} at 1024" for k, (near, far) in enumerate(found))
    return CheckOutcome(passed, detail)
