r"""The derivation: rules, diagrams with their factors, sums, and what decides that they are right."""

from __future__ import annotations

from functools import cache

import sympy as sp

from derivations.cubic_langevin.sums import (
    LOOPS,
    TIME,
    G,
    T,
    correlation,
    dyson,
    fourth_cumulant,
    response,
    resummed,
    static_two_point,
)
from symtensor.derivation.diagram_steps import diagram_step, rules_step, second_route
from symtensor.derivation.field_run import loop_name, sum_kernel
from symtensor.derivation.model import Check, CheckOutcome, Equation, Step
from symtensor.derivation.shapes import static_values, summed_by_shape
from symtensor.expansion import perturbative_moments
from symtensor.fields import theory
from symtensor.kernels import Kernel

__all__ = ["kernels", "steps"]

OMEGA = sp.Symbol("omega", real=True)


@cache
def kernels() -> tuple[Kernel, ...]:
    """The correlation function, the response and the fourth cumulant, by number of loops."""
    return (
        sum_kernel(correlation(), "correlation", "C(t) = <x(t) x(0)>, t >= 0"),
        sum_kernel(response(), "response", "R(t) = <x(t) xt(0)>, t > 0"),
        sum_kernel(fourth_cumulant(), "fourth_cumulant", "<x^4> - 3 <x^2>^2"),
    )


@cache
def steps() -> tuple[Step, ...]:
    """The derivation."""
    found = [rules_step(theory("cubic-langevin"))]
    for loops in range(1, LOOPS + 1):
        found += _order(loops)
    return (*found, _sums(), _shapes(), _equal_times(), _fourth(), _causality(), _resummed())


def _order(loops: int) -> list[Step]:
    name = loop_name(loops).capitalize()
    late = rf"C_{{{loops}}}(t)"
    answer = rf"R_{{{loops}}}(t)"
    text = r"Times of vertices are integrated over the whole line; a response line vanishes unless its head is later. $t > 0$."
    return [
        diagram_step(correlation().at(loops), f"{name}: correlation", text, late),
        diagram_step(response().at(loops), f"{name}: response", "", answer),
    ]


def _sums() -> Step:
    equations = (Equation(rf"C(t) = {sp.latex(correlation().expr)}"), Equation(rf"R(t) = {sp.latex(response().expr)}"))
    text = (
        "The moment hierarchy $d\\langle x^n\\rangle/dt = -n\\langle x^n\\rangle - n g\\langle x^{n+2}\\rangle + "
        "n(n-1)T\\langle x^{n-2}\\rangle$ is solved order by order in $g$: no propagators, no vertices, no diagrams."
    )
    checks = (second_route(correlation()), second_route(response()), Check("initial value", "$R(0^+) = 1$ in every order", _unit))
    return Step("Sum, and the same without diagrams", text, equations, checks)


def _unit() -> CheckOutcome:
    values = [sp.expand(part.expr.subs(TIME, 0)) for part in response().by_order().values()]
    return CheckOutcome(values == [1, *(0 for _ in range(LOOPS))], f"orders at $t = 0^+$: {values}")


def _shapes() -> Step:
    text = (
        r"If response fields and the direction of time are forgotten, a dynamic diagram becomes one of the static theory with "
        r"weight $e^{-U/T}$, $U = x^2/2 + g x^4/4$: its shape. The diagrams of $C$ and of $R$ have the same shapes, and the "
        r"theorem holds for each: the sum of the diagrams of $R$ is $-1/T$ times the derivative of the sum of those of $C$. At "
        r"$t = 0$ the diagrams of $C$ of one shape add up to the static diagram, symmetry factor and all."
    )
    checks = (
        Check("theorem by shapes", r"$R_s(t) = -C_s'(t)/T$ for the diagrams of every shape $s$", _theorem),
        Check("static limit", r"$C_s(0)$ is the value of the static diagram $s$", _static),
    )
    return Step("Fluctuation-dissipation theorem, shape by shape", text, (Equation(r"R(t) = -\frac{1}{T}\frac{dC}{dt}"),), checks)


def _theorem() -> CheckOutcome:
    late, answer = (summed_by_shape(total, static_two_point()) for total in (correlation(), response()))
    rest = {key: sp.expand(T * answer.get(key, sp.S.Zero) + late[key].diff(TIME)) for key in late}
    wrong = [key for key, value in rest.items() if value != 0] + sorted(set(answer) - set(late))
    detail = f"{len(late)} shapes with {len(correlation())} diagrams of $C$ and {len(response())} of $R$"
    return CheckOutcome(not wrong, detail + (f"; it fails for {', '.join(wrong)}" if wrong else ""))


def _static() -> CheckOutcome:
    late, still = summed_by_shape(correlation(), static_two_point()), static_values(static_two_point())
    rest = {key: late.get(key, sp.S.Zero).subs(TIME, 0) - still.get(key, sp.S.Zero) for key in {**late, **still}}
    wrong = [key for key, value in rest.items() if sp.expand(value) != 0]
    values = ", ".join(f"${sp.latex(value)}$" for value in still.values())
    return CheckOutcome(not wrong, f"static diagrams: {values}")


def _equal_times() -> Step:
    value = sp.expand(correlation().expr.subs(TIME, 0))
    text = (
        r"The stationary density is $\propto e^{-U/T}$. Its second moment, expanded in $g$ under the integral, is a series of "
        r"ratios of Gaussian moments."
    )
    check = Check("stationary density", "every order equals the ratio of Gaussian moments", _density)
    return Step("Equal times", text, (Equation(rf"\langle x^2\rangle = {sp.latex(value)} + O(g^{LOOPS + 1})"),), (check,))


def _density() -> CheckOutcome:
    x = sp.Symbol("x", real=True)
    exact = perturbative_moments(-G * x**4 / (4 * T), {x: 2}, {G: LOOPS}, {(x, x): T}).expr
    value = correlation().expr.subs(TIME, 0)
    return CheckOutcome(sp.expand(value - exact) == 0, f"${sp.latex(sp.expand(exact))}$")


def _fourth() -> Step:
    total = fourth_cumulant()
    equation = Equation(rf"\langle x^4\rangle - 3\langle x^2\rangle^2 = {sp.latex(total.expr)} + O(g^3)")
    text = (
        rf"The fourth cumulant at equal times measures how far the state is from Gaussian. Its {len(total)} diagrams, "
        r"with four distinguishable legs and all orders of the times, are counted and summed, not drawn."
    )
    return Step("The fourth cumulant", text, (equation,), (second_route(total),))


def _causality() -> Step:
    text = (
        r"Averages of response fields alone vanish, because every diagram has a closed loop of response lines, along which time "
        r"would have to increase all the way round. For the same reason there are no vacuum diagrams: $Z = 1$."
    )
    return Step("Normalisation", text, (Equation(r"\langle\tilde x(t_1)\cdots\tilde x(t_n)\rangle = 0"),), (
        Check("response fields alone", r"$\langle\tilde x\rangle$ and $\langle\tilde x\,\tilde x\rangle$ have no diagram",
              _responses_alone),
    ))  # fmt: skip


def _responses_alone() -> CheckOutcome:
    model = theory("cubic-langevin")
    sums = [model.cumulant(legs, LOOPS) for legs in ("xt", "xt,xt")]
    return CheckOutcome(all(len(total) == 0 and total.empty_reason for total in sums), sums[0].empty_reason)


def _resummed() -> Step:
    kernel = dyson()
    retarded = kernel.self_energy(OMEGA)[0, 0]
    above, below = sp.fraction(sp.together(kernel.noise(OMEGA)[0, 0]))
    noise = sp.cancel(sp.expand(above) / sp.expand(below))
    text = (
        r"The self-energy $\Sigma_R$ and the correction of the noise $\Sigma_C$ are the amputated diagrams that no cut of one line "
        r"separates. In the bare series the shift of the relaxation rate appears as powers of $g t$, which are large at long "
        r"times; Dyson's equation sums them to exponentials. Expanded in $g$ it returns the two-point functions above."
    )
    equations = (
        Equation(rf"\Sigma_R(\omega) = {sp.latex(retarded)}"),
        Equation(rf"\Sigma_C(\omega) = {sp.latex(noise)}"),
        Equation(r"R(\omega) = \frac{1}{1 - i\omega - \Sigma_R(\omega)},\qquad C(\omega) = |R(\omega)|^2\,[2T + \Sigma_C(\omega)]"),
    )
    checks = (
        Check("expansion", "expanded to the order of the self-energy, it is the Fourier transform of the series", _expanded),
        Check("theorem after resummation", r"$C(\omega) = (2T/\omega)\,\mathrm{Im}\,R(\omega)$ exactly, to all orders", _imaginary),
    )
    return Step("Dyson's equation", text, equations, checks)


def _expanded() -> CheckOutcome:
    answer = resummed("response", OMEGA)
    wrong = []
    for loops, part in response().by_order().items():
        coefficient = answer.diff(G, loops).subs(G, 0) * G**loops / sp.factorial(loops)
        if sp.cancel(coefficient - part.value.fourier(OMEGA)) != 0:
            wrong.append(str(loops))
    return CheckOutcome(not wrong, f"orders 0 to {LOOPS}" + (f"; it fails at {', '.join(wrong)}" if wrong else ""))


def _imaginary() -> CheckOutcome:
    answer = resummed("response", OMEGA)
    difference = resummed("correlation", OMEGA) - T * (answer - answer.subs(OMEGA, -OMEGA)) / (sp.I * OMEGA)
    return CheckOutcome(sp.cancel(sp.together(difference)) == 0, "the difference of the two rational functions is zero")
