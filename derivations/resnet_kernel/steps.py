r"""The steps of the derivation as a report prints them, each with the checks that hold it up.

The forms of the paper (GC0, LIN, GC1) are typed in here, once, to be compared with what was derived.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from derivations.resnet_kernel import equations as eq
from derivations.resnet_kernel.equations import AXES, C_W, K0, K1, PAIR_SYMMETRIC, V4, G, P, Q, Sigma, a, b, c, d, gamma, m
from symtensor.derivation.model import Check, CheckOutcome, Equation, Step
from symtensor.fields import IncrementAction
from symtensor.tensor import TensorExpr

e, f, g, h = P.indices("e f g h")


# -- the paper's forms -----------------------------------------------------------------------------------------------


def chi(first: tuple, second: tuple) -> TensorExpr:
    """chi_ab,cd = C_W J_ab,cd."""
    return eq.response_table().rename(dict(zip(AXES, (*first, *second)))) * C_W


def noise() -> TensorExpr:
    """N_ab,cd of the paper's LIN."""
    return K0[a, c] * Q[b, d] + K0[a, d] * Q[b, c] + K0[b, c] * Q[a, d] + K0[b, d] * Q[a, c]


def lin() -> TensorExpr:
    """chi V_4 + V_4 chi^T + N."""
    left = (chi((a, b), (e, f)) * V4[e, f, c, d]).sum(e, f).contract_deltas()
    right = (V4[a, b, e, f] * chi((c, d), (e, f))).sum(e, f).contract_deltas()
    return left + right + noise()


def second_derivative(tensor: TensorExpr) -> TensorExpr:
    """D^2 E[sigma sigma] contracted with a rank-4 tensor in e, f, g, h, from (1/4) E[d_e d_f d_g d_h sigma_a sigma_b]."""
    first = m.gradient(m(0, 0, a, b).terms[0].factors[0], e, f)
    total = TensorExpr.zero(a, b, e, f, g, h)
    for term in first.terms:
        for position, factor in enumerate(term.factors):
            if m.orders(factor.tensor) is not None:
                product = term.coefficient * m.gradient(factor, g, h)
                for k, other in enumerate(term.factors):
                    product = product if k == position else product * other.tensor[other.indices]
                total = total + product
    return (total * tensor).sum(e, f, g, h).contract_deltas()


def gc1() -> TensorExpr:
    """chi K_1 + (1/2) D^2 Q [V_4]."""
    transport = (chi((a, b), (e, f)) * K1[e, f]).sum(e, f).contract_deltas()
    return transport + C_W * second_derivative(V4[e, f, g, h]) / 2


# -- checks ----------------------------------------------------------------------------------------------------------


def _equal(name: str, statement: str, derived: Callable[[], TensorExpr], expected: Callable[[], TensorExpr]) -> Check:
    def run() -> CheckOutcome:
        left, right = derived().canonical(), expected().canonical()
        return CheckOutcome(left == right, f"{len(left.terms)} terms derived, difference: {(left - right).canonical()}")

    return Check(name, statement, run)


def _value(name: str, statement: str, compute: Callable[[], sp.Expr], expected: object) -> Check:
    def run() -> CheckOutcome:
        value = compute()
        return CheckOutcome(value == expected, f"computed {value}")

    return Check(name, statement, run)


def _at_zero_leak(name: str) -> Callable[[], TensorExpr]:
    return lambda: eq.equations()[name].subs({gamma: 0})


def _wishart() -> TensorExpr:
    """The conditional covariance with alpha = 0, dt = 1: independent Gaussian neurons of covariance Sigma."""
    return eq.block_noise().subs({eq.alpha: 0, eq.dt: 1})


def _exact_in_dt() -> TensorExpr:
    """A A V_4: the carrying kernel applied to both pairs, as the generated code does."""
    once = eq.equations()["V4_carry"].replace(eq.X4, lambda *i: V4[i])
    second = eq.equations()["V4_carry"].rename({a: c, b: d, c: e, d: f})
    return second.replace(eq.X4, lambda i, j, k, l: once.rename({a: k, b: l, c: i, d: j})).rename({e: a, f: b})


# -- steps -----------------------------------------------------------------------------------------------------------


def _equation(left: str, right: TensorExpr, label: str = "") -> Equation:
    return Equation(f"{left} = {right.latex()}", label)


def steps() -> tuple[Step, ...]:
    """All steps, in order; building them runs the derivation, running their checks verifies it."""
    return (_block(), _action(), _saddle(), _expansion(), _covariance(), _mean(), _initial())


def _block() -> Step:
    return Step(
        "The law of one block",
        r"Given $\phi$, the increments $\eta_i$ are iid over neurons, exactly $N(0, \Sigma)$ with "
        r"$\Sigma = C_b + C_W S$, at any width. Wick's theorem for $\eta$ and the mean over neurons give the conditional "
        r"mean of $G' = \frac{1}{n}\sum_i \phi'_i \phi'_i$ and, because neurons are independent given $\phi$, its covariance.",
        (
            Equation(r"\phi'_a = \alpha\,\phi_a + \sqrt{dt}\,\eta_a ,\qquad \eta\,|\,\phi \sim N(0,\Sigma)"),
            _equation(r"E[G'_{ab}\,|\,\phi]", eq.block_mean(), "mean"),
            _equation(r"n\,\mathrm{Cov}[G'_{ab},G'_{cd}\,|\,\phi]", eq.block_noise(), "noise"),
        ),
        (
            _equal("mean", r"$E[G'|\phi] = \alpha^2 G + dt\,\Sigma$", eq.block_mean,
                   lambda: G[a, b] * eq.alpha**2 + Sigma[a, b] * eq.dt),
            _equal("Wishart limit", r"at $\alpha = 0$, $dt = 1$ the covariance is that of a Wishart matrix", _wishart,
                   lambda: Sigma[a, c] * Sigma[b, d] + Sigma[a, d] * Sigma[b, c]),
        ),
    )  # fmt: skip


def _action() -> Step:
    action = IncrementAction(inputs=1, layers=3)
    two = IncrementAction(inputs=2, layers=1)
    return Step(
        "The increment action",
        r"With a response field for each increment the law of a path is the weight $e^{-S}$ (Ito form). The map from noise "
        r"to path is triangular with unit diagonal, so no determinant and no ghosts appear, and the integral is one.",
        (Equation(action.latex(), "MSRJD"),),
        (
            _value("unit determinant", "the Jacobian of noise to path is 1 (3 layers)", action.jacobian_determinant, 1),
            _value("normalisation", "$Z = 1$ by Gaussian integration (3 layers, one input)", action.partition_function, 1),
            _value("normalisation, two inputs", "$Z = 1$ (one layer, two inputs)", two.partition_function, 1),
        ),
    )


def _saddle() -> Step:
    return Step(
        "Order $n^0$",
        r"Closure of the paper: the single-neuron law is Gaussian with covariance $G$, so $\Sigma = Q(G)$ with "
        r"$Q = C_b + C_W\langle\sigma\sigma\rangle$. At leading order $G = K_0$.",
        (_equation("K_0'", eq.equations()["K0_step"], "discrete"), _equation(r"\dot K_0", eq.equations()["K0_rate"], "GC0")),
        (_equal("GC0", r"the paper's $\dot K_0 = Q(K_0)$", _at_zero_leak("K0_rate"), lambda: Q[a, b]),),
    )


def _expansion() -> Step:
    taylor = eq.expectation()
    return Step(
        "Taylor expansion of the drift",
        r"$G = K_0 + \Delta$; derivatives of Gaussian expectations in the covariance by Price's theorem, "
        r"$\partial E f/\partial K_{cd} = \tfrac12 E\,\partial_c\partial_d f$, with $\langle\sigma^{(i)}\sigma^{(j)}\rangle_{ab}"
        r" = E_{K_0}[\sigma^{(i)}(\phi_a)\sigma^{(j)}(\phi_b)]$ in the weak sense.",
        (
            Equation(rf"\langle\sigma\sigma\rangle_{{ab}}\big|_{{K_0+\Delta}} = {taylor.latex(3)}", "Taylor"),
            Equation(f"R_3 = {taylor.remainder(3).latex()}", "remainder"),
            _equation(r"J_{ab,cd}", eq.response_table(), "response"),
        ),
        (
            _equal("second order", r"the quadratic term is $\frac12\cdot\frac14 E[\partial_e\partial_f\partial_g\partial_h\,"
                   r"\sigma_a\sigma_b]\,\Delta_{ef}\Delta_{gh}$", lambda: taylor.series.coefficient(2),
                   lambda: second_derivative(eq.Delta[e, f] * eq.Delta[g, h]) / 2),
        ),
    )  # fmt: skip


def _covariance() -> Step:
    equations = eq.equations()
    carried, made = eq.next_covariance()
    return Step(
        "Covariance at order $1/n$",
        r"Law of total covariance: what the linear drift carries, and what the noise makes. To first order in $dt$ at "
        r"$\alpha = 1$ this is one explicit step of the published hierarchy; for $\alpha \neq 1$ the exact form is used.",
        (
            _equation("V_4'", made, "noise part, exact in dt"),
            _equation(r"\dot V_4", equations["V4_rate"], "LIN"),
        ),
        (
            _equal("LIN", r"the paper's $\dot V_4 = \chi V_4 + V_4\chi^T + N$", _at_zero_leak("V4_rate"), lin),
            _equal("carried twice", r"$(\alpha^2 + dt\,\chi)$ on each pair, as the code applies it, is the derived carried part",
                   _exact_in_dt, lambda: carried),
            _value("pair symmetry", "$V_4'$ keeps the symmetry of pairs", lambda: sp.Integer(
                (carried + made).has_symmetry(PAIR_SYMMETRIC, AXES)), 1),
        ),
    )  # fmt: skip


def _mean() -> Step:
    equations = eq.equations()
    return Step(
        "Mean at order $1/n$",
        r"$E\Delta = K_1/n$ and $\mathrm{Cov}\,\Delta = V_4/n$ in the expanded drift: a transport term and the kernel-only "
        r"tadpole. The same expansion of $\langle\sigma\sigma\rangle$ gives the closure's $U_1 = n(E S - \langle\sigma\sigma"
        r"\rangle_{K_0}) - J K_1$, which is exactly $0$ at $l = 0$ while the closure says otherwise.",
        (_equation(r"\dot K_1", equations["K1_rate"], "GC1"), _equation(r"U_1^{\mathrm{model}}", equations["U1_model"], "U1")),
        (
            _equal("GC1", r"the paper's $\dot K_1 = \chi K_1 + \frac12 D^2Q[V_4]$", _at_zero_leak("K1_rate"), gc1),
            _equal("source", r"the source of $K_1$ is $dt\,C_W\,U_1^{\mathrm{model}}$", lambda: equations["K1_source"],
                   lambda: equations["U1_model"] * (eq.dt * C_W)),
        ),
    )  # fmt: skip


def _initial() -> Step:
    return Step(
        "Input layer",
        r"$\phi^0$ is Gaussian with covariance $K^0$ and the neurons are independent: $K_1(0) = 0$, and Wick's theorem gives "
        r"the covariance of $G_0$.",
        (_equation("V_4(0)", eq.equations()["V4_initial"], "input"),),
        (
            _equal("Gaussian input", r"$V_4(0)_{ab,cd} = K_{ac}K_{bd} + K_{ad}K_{bc}$", lambda: eq.equations()["V4_initial"],
                   lambda: K0[a, c] * K0[b, d] + K0[a, d] * K0[b, c]),
        ),
    )  # fmt: skip


__all__ = ["gc1", "lin", "steps"]
