r"""Layered networks of finite width beyond the kernel-only closure: from the effective action to diagrams, numbers and a report.

* `steps`, `recursions`   the derivation: action, vertices, lines, diagrams, formulas; the layer recursions of an MLP
* `theory`, `paths`       the sum of all diagrams, and the same diagrams with truncated two-time covariances
* `closure`, `continuous`, `activations`   what it is compared with
* `options`, `request`, `run`, `report`, `output`   the command `symtensor run layered-network`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from derivations.layered_network.options import EXAMPLES, OPTIONS, OUTPUTS
from derivations.layered_network.steps import steps
from symtensor.derivation.model import Citation, Derivation
from symtensor.derivation.settings import RunContext, RunResult, Settings

if TYPE_CHECKING:
    from symtensor.kernels import Kernel

__all__ = ["DERIVATION"]


def _run(settings: Settings, context: RunContext) -> RunResult:
    from derivations.layered_network.run import run_derivation  # JAX is imported only when something runs

    return run_derivation(DERIVATION, settings, context)


def _kernels() -> tuple[Kernel, ...]:
    from derivations.layered_network.kernels import kernels

    return kernels()


DERIVATION = Derivation(
    name="layered-network",
    title="Finite-width theory of layered networks by diagrams",
    summary="K_0, V_4, K_1, S_1, U_1 (and K2, V4_1, kappa3) of a random ResNet, leaky network or MLP, exact in depth, against "
            "simulation.",
    statement=(
        r"For $\phi^{l+1} = \alpha\,\phi^l + \sqrt{dt}\,\eta^{l+1}$, $\eta^{l+1}_i = \sum_j W_{ij}\sigma(\phi^l_j) + b_i$, the "
        r"kernels $G_{ab} = \frac1n\sum_i \phi_i(a)\phi_i(b)$ and $S_{ab} = \frac1n\sum_i \sigma(\phi_i(a))\sigma(\phi_i(b))$ have "
        r"$E\,G = K_0 + K_1/n + K_2/n^2 + \dots$ and $n\,\mathrm{Cov}(G_{ab}, G_{cd}) = V_4 + V_{4,1}/n + \dots$ All "
        r"coefficients are "
        r"sums of Feynman diagrams of an effective action for $S$, without any closure, at every finite depth. The published "
        r"kernel-only closure is one truncation of them; what it leaves out is computed term by term."
    ),
    assumptions=(
        r"$W_{ij} \sim N(0, C_W/n)$, $b_i \sim N(0, C_b)$ independent; $\phi^0_i \sim N(0, K^0)$ iid over neurons.",
        r"$E\,\sigma^4$ is finite under every $K_0^l$ (checked): the covariance of $S$ exists.",
        r"The expansion is asymptotic in $1/n$ at fixed depth; results of order $1/n$ hold up to relative $O(1/n)$.",
    ),
    steps=steps,
    kernels=_kernels,
    citations=(
        Citation("kawase2026collective", "Kawase and Ota", "Collective Kernel EFT for Pre-activation ResNets",
                 "arXiv:2604.15742", 2026),
        Citation("yaida2020", "Yaida, Sho", "Non-Gaussian processes and neural networks at finite widths",
                 "Mathematical and Scientific Machine Learning, arXiv:1910.00019", 2020),
        Citation("roberts2022", "Roberts, Daniel A. and Yaida, Sho and Hanin, Boris", "The Principles of Deep Learning Theory",
                 "Cambridge University Press, arXiv:2106.10165", 2022),
        Citation("msr1973", "Martin, P. C. and Siggia, E. D. and Rose, H. A.", "Statistical dynamics of classical systems",
                 "Physical Review A 8, 423", 1973),
    ),
    options=OPTIONS,
    run=_run,
    examples=EXAMPLES,
    outputs=OUTPUTS,
)  # fmt: skip
