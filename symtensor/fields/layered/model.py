r"""The effective action of a layered network, printed: n[Shat.S + W], its saddle, vertices, lines and conventions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from symtensor.fields.increment_action import IncrementAction

if TYPE_CHECKING:
    from symtensor.fields.layered.network import LayeredNetwork

__all__ = ["CONVENTIONS", "LayeredAction"]

CONVENTIONS = (
    "The weight of a path of S is exp(n[Shat.S + W(S, -Shat)]), Shat imaginary; with J = -Shat every sign of a diagram is +.",
    "W(S, 0) = 0: the determinant is 1, there are no ghosts, and Z = 1.",
    "The expansion is around Shat = 0, S = S_0 (not around the true mean), so tadpoles are kept; 1/n counts loops.",
    "Independent components are pairs a <= b of inputs; d/dK_aa = (1/2) d_a^2, d/dK_ab = d_a d_b.",
    "<s_t J_k> = R_tk/n with theta(0) = 1, self-contractions included; <s s> = R kappa_2 R^T/n; <J J> = 0.",
    "A diagram has the weight 1/|Aut|, and vanishes if some nonempty set of its vertices has no response line leaving it.",
)


@dataclass(frozen=True, eq=False)
class LayeredAction:
    """The action of a network; print it, or show it in a notebook.

    >>> from symtensor.fields.layered import LayeredNetwork
    >>> action = LayeredNetwork.single("tanh", c_w=2, alpha=1, dt=0.1, depth=3, kernel=2.0).action()
    >>> action.vertex(2, 1)
    'n d^2 kappa_1(h_l1) / dS_k1 dS_k2 / (2! 1!)'
    >>> action.partition_function()
    1
    """

    network: LayeredNetwork

    @cached_property
    def increments(self) -> IncrementAction:
        """The discrete action before the increments are integrated (two blocks of it are enough to see it)."""
        return IncrementAction(inputs=min(self.network.inputs, 2), layers=2)

    def partition_function(self) -> sp.Expr:
        """Z of the discrete action, by exact integration block by block."""
        return self.increments.partition_function()

    def jacobian_determinant(self) -> sp.Expr:
        """The determinant of the map from the path to its noise."""
        return self.increments.jacobian_determinant()

    def drive(self) -> dict[tuple[int, int], sp.Expr]:
        """Sigma_ab as a function of the components S{r}_{a}{b}, for pairs a <= b counted from 0."""
        return {pair: self.network.drive.expression(pair) for pair in self.network.pairs}

    def vertex(self, p: int, q: int) -> str:
        """The vertex with p legs s and q legs J, as text; raises ValueError if it is none (p + q >= 3, q >= 1)."""
        if q < 1 or p + q < 3 or p < 0:
            raise ValueError(f"vertex ({p}, {q}): a vertex has q >= 1 legs J and p legs s, p + q >= 3; those with q = 0 vanish")
        cumulant = f"kappa_{q}({', '.join(f'h_l{j + 1}' for j in range(q))})"
        if not p:
            return f"n {cumulant} / {q}!"
        below = " ".join(f"dS_k{i + 1}" for i in range(p))
        return f"n d{f'^{p}' if p > 1 else ''} {cumulant} / {below} / ({p}! {q}!)"

    def latex(self) -> str:
        """The action, the law of the path and the drive, in LaTeX."""
        sums = "+".join(rf"C_{{W,{r + 1}}} S^{{{r + 1}}}_{{l}}" for r in range(len(self.network.branches)))
        return (
            r"\begin{aligned} Z &= \int \mathrm dS\,\mathrm d\hat S\; e^{\,n\left[\sum_l \hat S_l\cdot S_l + W(S,-\hat S)\right]},"
            r"\qquad W(S,J) = \log \mathbb E_{\phi\sim \mathcal N(0, C[S])}\, e^{\sum_l J_l\cdot h(\phi_l)},\\"
            r"C_{st} &= \alpha^{t-s} K_s\;(s\le t),\qquad K_{l+1} = \alpha^2 K_l + \mathrm dt\,\Sigma_l,\qquad"
            rf"\Sigma_l = C_b(S_l) + {sums} \end{{aligned}}"
        )

    def __str__(self) -> str:
        net = self.network
        lines = [
            f"Layered network: {net!r}",
            "  action   n[ sum_l Shat_l . S_l + W(S, -Shat) ],  W(S, J) = log E_path exp( sum_l J_l . h(phi_l) )",
            f"  h        {', '.join(f'{b.activation.name}(phi_a) {b.activation.name}(phi_b)' for b in net.branches)}",
            "  path     Gaussian, Cov(phi_s, phi_t) = alpha^(t-s) K_s for s <= t,  K_{l+1} = alpha^2 K_l + dt Sigma(S_l)",
        ]
        lines += [f"  Sigma    [{a + 1}{b + 1}] = {sp.sstr(value)}" for (a, b), value in self.drive().items()]
        lines += [f"  vertex   ({p}, {q}): {self.vertex(p, q)}" for p, q in ((2, 1), (1, 2), (0, 3))]
        lines += [f"  lines    {CONVENTIONS[4]}", "  before the increments are integrated, per neuron:"]
        lines += ["    sum_l { i etahat^{l+1} . (phi^{l+1} - alpha phi^l) + (dt/2) etahat^{l+1} . Sigma(phi^l) etahat^{l+1} }"]
        return "\n".join([*lines, *(f"  {text}" for text in CONVENTIONS)])

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex()} $$"
