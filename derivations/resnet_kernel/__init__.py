r"""The kernel-only hierarchy K_0, V_4, K_1 of a pre-activation ResNet, from the law of one block to a report.

* `equations`  the derivation: everything computed from the block `phi' = alpha phi + sqrt(dt) eta`
* `steps`      the same as prose with checks against the forms of the paper
* `kernels`    what the code generator is given
* `options`, `request`, `theory`, `run`   the command `symtensor run resnet-kernel`

Reference: Kawase & Ota, "Collective Kernel EFT for Pre-activation ResNets", arXiv:2604.15742.
"""

from __future__ import annotations

from derivations.resnet_kernel.kernels import kernels
from derivations.resnet_kernel.options import EXAMPLES, OPTIONS, OUTPUTS
from derivations.resnet_kernel.steps import steps
from symtensor.derivation.model import Citation, Derivation
from symtensor.derivation.settings import RunContext, RunResult, Settings

__all__ = ["DERIVATION"]


def _run(settings: Settings, context: RunContext) -> RunResult:
    from derivations.resnet_kernel.run import run_derivation  # JAX is imported only when something runs

    return run_derivation(DERIVATION, settings, context)


DERIVATION = Derivation(
    name="resnet-kernel",
    title="Kernel hierarchy of a pre-activation ResNet at finite width (kernel-only closure)",
    summary="K_0, V_4 = n Cov(G), K_1 = n (E G - K_0) of a random ResNet, leaky network or MLP, against exact simulation.",
    statement=(
        r"For $\phi^{l+1} = \alpha\,\phi^l + \sqrt{dt}\,\eta^{l+1}$, $\eta^{l+1}_i = \sum_j W_{ij}\sigma(\phi^l_j) + b_i$, "
        r"the empirical kernel $G_{ab} = \frac1n\sum_i \phi_i(a)\phi_i(b)$ has $E\,G = K_0 + K_1/n + O(n^{-2})$ and "
        r"$\mathrm{Cov}(G_{ab}, G_{cd}) = V_4/n + O(n^{-2})$. Under the closure of the paper (one neuron is Gaussian with "
        r"covariance $G$) $K_0$, $V_4$, $K_1$ obey closed recursions in depth, derived below from the law of one block."
    ),
    assumptions=(
        r"$W_{ij} \sim N(0, C_W/n)$, $b_i \sim N(0, C_b)$ independent; $\phi^0_i \sim N(0, K^0)$ iid over neurons.",
        r"$E\,\sigma^2$ is finite under every $K_0^l$ (checked).",
        r"Kernel-only closure: given $G$, the pre-activations of one neuron are Gaussian with covariance $G$, so $\Sigma = Q(G)$. "
        r"This is what the comparison with simulation puts to the test.",
        r"Fluctuations $\Delta = G - K_0$ have cumulants of order $n^{1-r}$; terms beyond $1/n$ are dropped.",
        r"At $\alpha = 1$ the published explicit step (first order in $dt$) is used; otherwise the step exact in $dt$.",
    ),
    steps=steps,
    kernels=kernels,
    citations=(
        Citation("kawase2026collective", "Kawase and Ota", "Collective Kernel EFT for Pre-activation ResNets",
                 "arXiv:2604.15742", 2026),
        Citation("price1958", "Price, Robert", "A useful theorem for nonlinear devices having Gaussian inputs",
                 "IRE Transactions on Information Theory 4, 69", 1958),
    ),
    options=OPTIONS,
    run=_run,
    examples=EXAMPLES,
    outputs=OUTPUTS,
)  # fmt: skip
