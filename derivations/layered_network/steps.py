r"""The steps of the derivation as a report prints them, each with the checks that hold it up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import sympy as sp

from derivations.layered_network import checks, recursions
from derivations.resnet_kernel.equations import C_W, K0, K1
from symtensor.derivation.model import Check, CheckOutcome, Drawing, Equation, Step
from symtensor.fields.layered import LayeredNetwork, LayeredSum, cumulant_terms
from symtensor.tensor import TensorExpr

__all__ = ["steps"]

#: the path law and order n^0
_PATH = r"\mathrm{Cov}(\phi_s(a), \phi_t(b)) = \alpha^{t-s} K_s(a,b)\;(s \le t),\qquad K_{l+1} = \alpha^2 K_l + dt\,\Sigma(S_l)"
_SADDLE = r"S_0^l = E_{N(0,K_0^l)}[h],\qquad K_0^{l+1} = \alpha^2 K_0^l + dt\,(C_b + C_W S_0^l)"


def steps() -> tuple[Step, ...]:
    """All steps, in order."""
    return (
        _action(), _saddle(), _vertices(), _pruning(), _covariance(), _mean(), _closure(), _markov(), _recursions(), _higher()
    )  # fmt: skip


def _network() -> LayeredNetwork:
    return LayeredNetwork.single("tanh", **checks.EXAMPLE)


def _value(name: str, statement: str, compute: Callable[[], sp.Expr | int], expected: object) -> Check:
    def run() -> CheckOutcome:
        value = compute()
        return CheckOutcome(bool(value == expected), f"computed {value}")

    return Check(name, statement, run)


def _equal(name: str, statement: str, derived: Callable[[], TensorExpr], expected: Callable[[], TensorExpr]) -> Check:
    def run() -> CheckOutcome:
        left, right = derived().canonical(), expected().canonical()
        return CheckOutcome(left == right, f"{len(left.terms)} terms derived, difference: {(left - right).canonical()}")

    return Check(name, statement, run)


def _drawings(total: LayeredSum, limit: int = 30) -> tuple[Drawing, ...]:
    return tuple(
        Drawing(term.diagram.to_svg(), (term.latex(),), f"symmetry factor {term.symmetry_factor}") for term in total.terms[:limit]
    )


def _action() -> Step:
    action = _network().action()
    return Step(
        "The effective action",
        r"Given the path of $S$ the neurons are independent, each a Gaussian process whose covariance is linear in $\Sigma(S)$. "
        r"Imposing $S_l = \frac1n\sum_i h(\phi^l_i)$, $h_{ab}(\phi) = \sigma(\phi_a)\sigma(\phi_b)$, by a conjugate field $\hat "
        r"S$ on "
        r"the imaginary axis gives $n$ times a function of $S$ and $\hat S$: $1/n$ counts loops. $W(S, 0) = 0$, so that there "
        r"is no "
        r"determinant and no ghost. Before the increments are integrated this is the discrete MSRJD action below.",
        (Equation(action.latex(), "action"), Equation(action.increments.latex(), "MSRJD")),
        (
            _value("normalisation", "$Z = 1$, by Gaussian integration of the increments (2 layers)", action.partition_function, 1),
            _value("unit determinant", "the Jacobian of noise to path is 1", action.jacobian_determinant, 1),
        ),
    )


def _saddle() -> Step:
    return Step(
        "Order $n^0$",
        r"At the saddle $\hat S = 0$ and $S = S_0$. A path is Gaussian, and depends on $S$ only through the variances $K_m$.",
        (Equation(_PATH, "path"), Equation(_SADDLE, "saddle")),
        (
            Check("variances", r"$\partial K_m/\partial S_k = dt\,\alpha^{2(m-1-k)}\,\partial\Sigma/\partial S$ for $k < m$, "
                               r"else 0",
                  checks.variance_chain),
        ),
    )  # fmt: skip


def _vertices() -> Step:
    return Step(
        "Vertices and lines",
        r"With $J = -\hat S$ every sign is +. A vertex with $p$ legs $s$ and $q$ legs $J$ is a derivative of a joint cumulant "
        r"of $h$ "
        r"along one path. Each $s$ leg acts through the variance $K_m$ at the time $m$ of one of the $J$ legs. The response $R$ "
        r"resums "
        r"the linear feedback $M$; observables that do not feed forward (as $G$, with $h = \phi_a\phi_b$) respond only to "
        r"themselves and "
        r"through $M$.",
        (
            Equation(r"(p, q):\quad \frac{n}{p!\,q!}\,\frac{\partial^p \kappa_q(h_{l_1}, \dots, h_{l_q})}"
                     r"{\partial S_{k_1}\cdots\partial S_{k_p}},\qquad p + q \ge 3,\ q \ge 1", "vertex"),
            Equation(r"\frac{\partial E[F]}{\partial K_m} = \tfrac12\,E\Big[\big(\partial_m^2 + 2{\textstyle\sum_{t>m}}"
                     r"\alpha^{t-m}\partial_m\partial_t\big) F\Big]", "Price"),
            Equation(r"M_{lk} = \frac{\partial E[h_l]}{\partial K_l}\,\frac{\partial K_l}{\partial S_k},\qquad R = (1 - M)^{-1} = "
                     r"n\,\langle s J\rangle,\qquad n\,\langle s s\rangle = R\,\kappa_2\,R^T,\qquad \langle J J\rangle = "
                     r"0", "lines"),
        ),
        (
            Check("response", r"$R$ against the finite difference of the order $n^0$ recursion in $C_b$ (tanh, leaky)",
                  checks.response_agrees),
        ),
    )  # fmt: skip


def _pruning() -> Step:
    return Step(
        "Diagrams and the pruning rule",
        r"A connected diagram with $E$ external legs and $\ell$ loops is of order $n^{-(E-1)-\ell}$ and has the weight 1/|Aut|. "
        r"$\theta(0) = 1$ for $R$, self-contractions included. A vertex is nonzero only if each $s$ leg is earlier than its "
        r"latest $J$ "
        r"leg; a response line may return to an $s$ leg at or after an earlier $J$ leg. Hence the exact rule: a diagram "
        r"vanishes if and "
        r"only if some nonempty set of its vertices has no response line leaving it. At $\alpha = 0$ all response cycles vanish.",
        (),
        (Check("counts", "mean at $1/n$, third cumulant, $V_4$ at next order, mean at $1/n^2$: all, causal, sum of weights",
               checks.counts),),
    )  # fmt: skip


def _covariance() -> Step:
    total = cumulant_terms(2, 0)
    return Step(
        "Covariance at leading order",
        r"One diagram, the correlator. For $G$ its rows of $R$ add the accumulated drive $X_t$ to the fluctuation of free "
        r"neurons. In "
        r"the closed form, with $X_{t+1} = \alpha^2 X_t + dt\,C_W\,dS_t$ and $X_t = \sum_{k<t}\Gamma_{tk} M_k$:",
        (
            Equation(f"n\\,\\mathrm{{Cov}} = {total.latex()}", "diagram"),
            Equation(r"V_4(t) = c(\phi\phi_t, \phi\phi_t) + \Big[\sum_k \Gamma_{tk}\,c(h_k, \phi\phi_t) + \mathrm{transpose}\Big]"
                     r" + \sum_{k k'} \Gamma_{tk}\,c(h_k, h_{k'})\,\Gamma_{tk'}^T", "closed form"),
        ),
        (Check("closed form", "the diagram equals the closed form (tanh, leaky, 5 layers)",
               partial(checks.closed_form_agrees, "V4")),),
        _drawings(total),
    )  # fmt: skip


def _mean() -> Step:
    total = cumulant_terms(1, 1)
    return Step(
        "Mean at order $1/n$",
        r"Two tadpoles. In the first both $s$ legs of a vertex (2, 1) are joined by a correlator: the curvature of $E[h]$ in "
        r"$K$ sees "
        r"the covariance of the accumulated drive, $\langle K K\rangle$, not $V_4$. In the second the $s$ leg of a vertex (1, "
        r"2) is "
        r"joined by a response to one of its own $J$ legs: a neuron that fluctuates at layer $k$ shifts the drive of all "
        r"neurons, to "
        r"which it is itself correlated at the later layer $T$. The external line turns $U$ into $S_1$.",
        (
            Equation(f"U = {' + '.join(_amputated(term.latex()) for term in total)}", "diagrams"),
            Equation(r"U(T) = \tfrac12\,\frac{\partial^2 E[h_T]}{\partial K_T^2} : \langle K_T K_T\rangle + \sum_{k<T} "
                     r"\frac{\partial \kappa_2(h_k, h_T)}{\partial K_T}\cdot\langle K_T J_k\rangle", "U"),
            Equation(r"S_1 = \frac{\partial E[h]}{\partial K}\,K_1 + U,\qquad K_1^{l+1} = \alpha^2 K_1^l + dt\,C_W\,S_1^l", "K_1"),
        ),
        (Check("closed form", "$U_1$ and $K_1$ by the diagrams equal the closed forms (tanh, leaky, 5 layers)",
               partial(checks.closed_form_agrees, "U1", "K1")),),
        _drawings(total),
    )  # fmt: skip


def _amputated(latex: str) -> str:
    """A term without its external line."""
    return latex.replace(r"\,\langle s_{T} J_{l_{1}}\rangle", "").replace("l_{1}", "T")


def _closure() -> Step:
    return Step(
        "Where the kernel-only closure differs",
        r"Two-time covariances are sums over Hermite degrees. The law of one neuron given $G$ is Gaussian with covariance $G$ "
        r"only to "
        r"degree 2: there $h$ fluctuates with $\phi\phi$ alone, and the drive follows $G$. Degree 2 of the exact theory closes "
        r"in depth "
        r"(*one mode*). The published closure takes the explicit step and puts $V_4$ where $\langle K K\rangle = V_4 - w$ belongs, "
        r"$w_{ab,cd} = K_{ac}K_{bd} + K_{ad}K_{bc}$: at $l = 0$ it has a source of $K_1$ where there is none. These, and the "
        r"degrees "
        r"other than 2, are its error.".replace("*one mode*", "one mode"),
        (
            Equation(r"V_4' = A V_4 A^T + \alpha^2 dt\,N + dt^2 (Q_{ac}Q_{bd} + Q_{ad}Q_{bc}),\qquad A = \alpha^2 + "
                     r"dt\,\chi", "one mode"),
            Equation(r"U = \tfrac12 D^2 E[h][V_4 - w]", "one mode"),
            Equation(r"U = \tfrac12 D^2 E[h][V_4]", "kernel-only"),
        ),
        (Check("degree 2", "the diagrams restricted to Hermite degree 2 equal this recursion (tanh, leaky, 5 layers)",
               checks.one_mode_agrees),),
    )  # fmt: skip


def _markov() -> Step:
    return Step(
        "The (G, S) hierarchy as a truncation",
        r"Following the fluctuations $u = (\phi\phi, h)$ of $G$ and $S$ together, and nothing else, means that the memory "
        r"between layers "
        r"passes through them by linear regression. The same diagrams are evaluated with these covariances.",
        (Equation(r"c(f_k, g_t) = c(f_k, u_k) \prod_{j=k}^{t-2} \left[c(u_j, u_j)^{-1} c(u_j, u_{j+1})\right] "
                  r"c(u_{t-1}, u_{t-1})^{-1} c(u_{t-1}, g_t)", "regression"),),
    )  # fmt: skip


def _recursions() -> Step:
    first, second = cumulant_terms(1, 1)
    reason = next(filter(None, (recursions.layer_value(network)[1] for network in second.networks(1))))
    return Step(
        "Layer recursions of an MLP",
        r"At $\alpha = 0$, $dt = 1$ one neuron's pre-activations at different layers are independent: two-time covariances at "
        r"different "
        r"layers vanish, and every factor of a diagram stands at one layer. The second tadpole vanishes: " + reason + r". With "
        r"$V = \langle K K\rangle = V_4 - w$, for any number of inputs (a prime on the left marks the next layer):",
        (
            Equation(f"V'_{{abcd}} = {recursions.covariance_recursion().latex()}", "V"),
            Equation(f"K_{{1,ab}}' = {recursions.mean_recursion().latex()}", "K_1"),
        ),
        (
            _equal("V", "this is the recursion of Yaida, equal widths", recursions.covariance_recursion,
                   recursions.published_covariance),
            _equal("K_1", "this is the recursion of Roberts, Yaida and Hanin, equal widths", recursions.mean_recursion,
                   recursions.published_mean),
            _equal("source", "the source of $K_1'$ is $C_W$ times the first tadpole alone", recursions.source,
                   lambda: recursions.layer_value(first.networks(1)[0])[0]),
            _equal("V_4 in place of V", "with $V_4$ for $V$ the closure would add "
                                        "$(C_W/8)\\,w\\,d^4\\langle\\sigma\\sigma\\rangle$",
                   _closure_excess, _closure_excess_published),
            Check("numbers", "the diagrams, evaluated for two inputs, three layers, obey both (tanh)", checks.mlp_agrees),
        ),
    )  # fmt: skip


def _closure_excess() -> TensorExpr:
    """C_W times (the source with V_4 for V, minus the source), w = K K + K K in place of V."""
    return (_with_w(recursions.source()) * C_W).canonical()


def _closure_excess_published() -> TensorExpr:
    without = recursions.published_mean().replace(K1, lambda i, j: TensorExpr.zero(i, j))
    return _with_w(without).canonical()


def _with_w(expression: TensorExpr) -> TensorExpr:
    return expression.replace(recursions.V, lambda i, j, k, l: K0[i, k] * K0[j, l] + K0[i, l] * K0[j, k])


def _higher() -> Step:
    third, covariance = cumulant_terms(3, 0), cumulant_terms(2, 1)
    return Step(
        "Higher orders",
        "The same rules give every order. Leading third cumulant and next order of the covariance are drawn; "
        + "; ".join(cumulant_terms(*each).title for each in ((3, 0), (2, 1), (1, 2)))
        + ".",
        (),
        (Check("linear network", "the leading third cumulant of a linear network, against its exact solution in rational numbers",
               checks.linear_third_cumulant),),
        _drawings(third) + _drawings(covariance),
    )  # fmt: skip
