r"""Zero-dimensional field theories: phi^3, phi^4 and the O(N) model, where every sum of diagrams can be checked exactly.

* `sums`     the sums of diagrams, and exact integrals
* `steps`    the derivation: diagrams with their factors, Wick's theorem, Legendre transform, sum rule, large orders, 1/N
* `run`      the command `symtensor run zero-dimensional`
"""

from __future__ import annotations

from derivations.zero_dimensional.steps import kernels, steps
from symtensor.derivation.field_run import OUTPUTS, common_options
from symtensor.derivation.model import Citation, Derivation
from symtensor.derivation.settings import Option, RunContext, RunResult, Settings

__all__ = ["DERIVATION"]


def _run(settings: Settings, context: RunContext) -> RunResult:
    from derivations.zero_dimensional.run import run_derivation

    return run_derivation(DERIVATION, settings, context)


DERIVATION = Derivation(
    name="zero-dimensional",
    title="Field theory in zero dimensions: diagrams, Wick's theorem, large orders, 1/N",
    summary="phi^3, phi^4, O(N) integrals: diagrams to five loops as exact rationals, large orders, 1/N against exact integrals.",
    statement=(
        r"The integrals $\langle x^k\rangle = Z^{-1}\int dx\, x^k e^{-S(x)}$ with $S = x^2/2 + g x^3/6$ and $S = x^2/2 + g x^4/24$ "
        r"are expanded in diagrams to five loops. Connected and one-particle irreducible functions equal, as exact "
        r"rational numbers, what Wick's theorem and the Legendre transform of $\log Z$ give without diagrams."
        "\n\n"
        r"The series diverge: the coefficients of the quartic theory grow as $n!\,(-2/3)^n$, the inverse action of a complex "
        r"saddle, and the best that a truncated series can do is an error of about $e^{-3/(2g)}$. With $N$ components and a "
        r"coupling of order $1/N$, the expansion in $1/N$ resums chains of bubbles. It is compared with the radial "
        r"integral at $N = 8$ to $1024$."
    ),
    assumptions=(
        r"Series in $g$ are formal; for $x^3$ at real $g$ the integral does not exist, and numbers are compared at imaginary $g$.",
        r"$g > 0$ for the quartic theory; $r + u\rho > 0$ at the saddle point of the $N$-component one.",
    ),
    steps=steps,
    kernels=kernels,
    citations=(
        Citation("bender1969", "Bender, C. M. and Wu, T. T.", "Anharmonic oscillator", "Physical Review 184, 1231", 1969),
        Citation("cvitanovic1978", "Cvitanovic, P. and Lautrup, B. and Pearson, R. B.", "Number and weights of Feynman diagrams",
                 "Physical Review D 18, 1939", 1978),
        Citation("moshe2003", "Moshe, M. and Zinn-Justin, J.", "Quantum field theory in the large N limit: a review",
                 "Physics Reports 385, 69", 2003),
    ),
    options=(
        Option("--g", float, 0.2, "coupling of the cubic and the quartic theory", group="theory", above=0),
        Option("--r", float, 1.0, "mass term of the N-component theory, r phi.phi/2", group="theory", above=0),
        Option("--u", float, 6.0, "its coupling, u (phi.phi)^2/(4 N)", group="theory", above=0),
        *common_options("zero-dimensional", simulation=False),
    ),
    run=_run,
    examples=(
        ("everything at g = 0.2", "symtensor run zero-dimensional"),
        ("a stronger coupling, where fewer orders help", "symtensor run zero-dimensional --g 0.5 --out out/strong"),
    ),
    outputs="\n".join(OUTPUTS.format(name="zero_dimensional").splitlines()[:-1]),
)  # fmt: skip
