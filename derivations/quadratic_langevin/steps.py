r"""The derivation: tadpoles of one and two loops, the formal series, the barrier."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import sympy as sp

from symtensor.derivation.diagram_steps import diagram_step, rules_step, second_route
from symtensor.derivation.field_run import loop_name, sum_kernel
from symtensor.derivation.model import Check, CheckOutcome, Equation, Step
from symtensor.derivation.shapes import static_values, summed_by_shape
from symtensor.expansion import perturbative_moments
from symtensor.fields import DiagramSum, FieldTheory, theory
from symtensor.kernels import Kernel

__all__ = ["LOOPS", "G", "T", "correlation", "formal_series", "kernels", "mean", "steps"]

LOOPS = 2
TIME = sp.Symbol("t", nonnegative=True)
G, T = sp.symbols("g T", real=True)


@cache
def mean() -> DiagramSum:
    """<x>: the sum of the tadpoles."""
    return theory("quadratic-langevin").cumulant("x", LOOPS)


@cache
def static_mean() -> DiagramSum:
    """<x> of the formal static theory with weight exp(-U/T)."""
    return FieldTheory.static("(x^2/2 - g*x^3/3)/T", "x", name="cubic").cumulant("x", LOOPS)


@cache
def correlation() -> DiagramSum:
    """<x(t) x(0)> - <x>^2."""
    return theory("quadratic-langevin").cumulant("x,x", LOOPS)


@cache
def response() -> DiagramSum:
    """<x(t) xt(0)>."""
    return theory("quadratic-langevin").cumulant("x,xt", LOOPS)


def formal_series(power: int, loops: int) -> tuple[sp.Expr, ...]:
    """The joint cumulant of `power` factors x by number of loops, as ratios of Gaussian moments: no time, no diagrams.

    >>> formal_series(1, 3)
    (0, T*g, 5*T**2*g**3, 60*T**3*g**5)
    """
    x = sp.Symbol("x", real=True)
    lowest = power - 2  # tree level is of order g^(power - 2), every loop brings g^2
    top = max(lowest + 2 * loops, 0)
    found = perturbative_moments(G * x**3 / (3 * T), {x: power}, {G: top}, {(x, x): T}, kind="connected")
    orders = (lowest + 2 * number for number in range(loops + 1))
    return tuple(sp.expand(found[n] * G**n) if n >= 0 else sp.S.Zero for n in orders)


@cache
def kernels() -> tuple[Kernel, ...]:
    """The mean and the correlation function, by number of loops."""
    return (
        sum_kernel(mean(), "mean", "<x>"),
        sum_kernel(correlation(), "correlation", "C(t) = <x(t) x(0)> - <x>^2, t >= 0"),
    )


@cache
def steps() -> tuple[Step, ...]:
    """The derivation."""
    orders = [_order(loops) for loops in range(1, LOOPS + 1)]
    return (rules_step(theory("quadratic-langevin")), *orders, _sum(), _fluctuations(), _asymptotic())


def _order(loops: int) -> Step:
    text = (
        r"A diagram with one leg hangs on it by one line: a tadpole. It is the mean force of the fluctuations of the order before, "
        r"and the mean shifts until the linear force balances it."
        if loops == 1
        else ""
    )
    title = f"The mean: {loop_name(loops)}"
    return diagram_step(mean().at(loops), title, text, rf"\langle x\rangle_{{{loops}}}", [_by_shape(loops)])


def _by_shape(loops: int) -> Check:
    def run() -> CheckOutcome:
        part, still = mean().at(loops), static_mean().at(loops)
        found, expected = summed_by_shape(part, still), static_values(still)
        signs = {term.sign for term in part}
        values = ", ".join(f"1/{t.symmetry_factor}: ${sp.latex(t.expr)}$" for t in still)
        return CheckOutcome(found == expected and signs == {1}, f"{len(part)} diagrams, {len(still)} static ones: {values}")

    statement = (
        "the diagrams that differ by the direction of time add up to one static tadpole, weight and all; every one shifts the mean "
        "towards the barrier"
    )
    return Check(f"static limit, {loop_name(loops)}", statement, run)


def _sum() -> Step:
    text = (
        r"The density $e^{-U/T}$ cannot be normalised, but its moments, expanded in $g$ under the integral, are ratios of Gaussian "
        r"moments. This formal series is what the diagrams give, order by order."
    )
    checks = (
        second_route(mean()),
        Check("ratios of Gaussian moments", "every order equals that of the formal series", _formal),
        Check("mean force", r"$-\langle x\rangle + g\,\langle x^2\rangle = 0$ order by order", _balance),
    )
    equation = Equation(rf"\langle x\rangle = {sp.latex(mean().expr)} + O(g^{2 * LOOPS + 1})")
    return Step("Sum, and the same without diagrams", text, (equation,), checks)


def _formal() -> CheckOutcome:
    exact = formal_series(1, LOOPS)
    found = [sp.expand(part.expr) for part in mean().by_order().values()]
    return CheckOutcome(found == list(exact), ", ".join(f"${sp.latex(value)}$" for value in exact))


def _balance() -> CheckOutcome:
    average = mean().expr
    square = correlation().expr.subs(TIME, 0) + average**2
    rest = sp.expand(-average + G * square)
    left = min((sum(powers) for powers in sp.Poly(rest, G).monoms()), default=0) if rest != 0 else 2 * LOOPS + 1
    return CheckOutcome(left > 2 * LOOPS - 1, f"what is left is of order $g^{{{left}}}$")


def _fluctuations() -> Step:
    total = correlation()
    text = (
        rf"The {len(total)} diagrams of the correlation function are summed, not drawn; the theorem $R(t) = -C'(t)/T$ holds for "
        r"the formal series as it does in equilibrium, because the force is a gradient."
    )
    equation = Equation(rf"C(t) = {sp.latex(total.expr)}")
    checks = (
        second_route(total),
        Check("variance", "at equal times every order is that of the formal series", _variance),
        Check("fluctuation-dissipation", r"$R(t) = -C'(t)/T$ in every order", _theorem),
    )
    return Step("Fluctuations about the mean", text, (equation,), checks)


def _variance() -> CheckOutcome:
    found = [sp.expand(part.expr.subs(TIME, 0)) for part in correlation().by_order().values()]
    exact = formal_series(2, LOOPS)
    return CheckOutcome(found == list(exact), ", ".join(f"${sp.latex(value)}$" for value in exact))


def _theorem() -> CheckOutcome:
    late, answer = correlation().by_order(), response().by_order()
    rest = [sp.expand(T * answer[loops].expr + late[loops].expr.diff(TIME)) for loops in late]
    return CheckOutcome(not any(rest), f"{len(correlation())} diagrams of $C$, {len(response())} of $R$")


def _asymptotic() -> Step:
    text = (
        r"The formal series knows nothing of the escape over the barrier, and is not the expansion of a stationary average. With "
        r"$\lambda = g^2 T$ its coefficients grow as $n!\,(6\lambda)^n$, the inverse of the barrier $\Delta U/T = 1/(6\lambda)$ "
        r"being the scale: the terms fall until their number is about $1/(6\lambda)$, and the smallest one is of the size "
        r"$e^{-1/(6\lambda)}$, as is the rate of escape $r = e^{-1/(6\lambda)}/(2\pi)$ (Kramers). All coefficients have one sign: "
        r"the sum has no unique value, and the ambiguity is what escape does to the average."
    )
    equations = (
        Equation(r"U(1/g) - U(0) = \frac{1}{6 g^2}"),
        Equation(r"r = \frac{\sqrt{U''(0)\,|U''(1/g)|}}{2\pi}\, e^{-\Delta U/T} = \frac{1}{2\pi}\, e^{-1/(6 g^2 T)}"),
    )
    check = Check("growth", r"the ratio of successive coefficients of $\langle x\rangle$, divided by $6n$, tends to 1", _growth)
    return Step("What the series cannot see", text, equations, (check,))


def _growth() -> CheckOutcome:
    """Ratios c_(n+1)/c_n = 6 n (1 + a/n + ..): Richardson extrapolation of ratio/(6 n) to infinite n."""
    values = formal_series(1, 25)
    numbers = [value.subs({G: 1, T: 1}) for value in values[1:]]
    ratios = [later / (6 * n * earlier) for n, (earlier, later) in enumerate(pairwise(numbers), start=1)]
    last = len(ratios)
    weights = [(-1) ** (4 - k) * sp.Rational((last - 4 + k) ** 4, sp.factorial(k) * sp.factorial(4 - k)) for k in range(5)]
    limit = float(sum(w * ratios[last - 5 + k] for k, w in enumerate(weights)))
    detail = f"at $n = {last}$: {float(ratios[-1]):.4f}; extrapolated in $1/n$: {limit:.5f}"
    return CheckOutcome(all(number > 0 for number in numbers) and abs(limit - 1) < 2e-3, detail)
