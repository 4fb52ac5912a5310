r"""The shift of the mean in a metastable well, dx = (-x + g x^2) dt + sqrt(2 T) dW: tadpoles at one and two loops.

* `steps`    the derivation: every tadpole with its factor, the formal series, its relation to the metastable state
* `run`      the command `symtensor run quadratic-langevin`
"""

from __future__ import annotations

from derivations.quadratic_langevin.steps import kernels, steps
from symtensor.derivation.field_run import OUTPUTS, common_options
from symtensor.derivation.model import Citation, Derivation
from symtensor.derivation.settings import Option, RunContext, RunResult, Settings

__all__ = ["DERIVATION"]


def _run(settings: Settings, context: RunContext) -> RunResult:
    from derivations.quadratic_langevin.run import run_derivation

    return run_derivation(DERIVATION, settings, context)


DERIVATION = Derivation(
    name="quadratic-langevin",
    title="Shift of the mean in a metastable well: tadpoles of a quadratic force",
    summary="dx = (-x + g x^2) dt + sqrt(2T) dW: the mean by tadpoles to two loops; an asymptotic series, with escapes counted.",
    statement=(
        r"The mean of $dx = (-x + g x^2)\,dt + \sqrt{2T}\,dW$ in the well around $x = 0$ is the sum of the diagrams with one leg, "
        r"tadpoles: $\langle x\rangle = gT + 5 g^3 T^2 + \dots$"
        "\n\n"
        r"The potential $U = x^2/2 - g x^3/3$ is not bounded from below: beyond the barrier at $x = 1/g$, of height "
        r"$\Delta U = 1/(6 g^2)$, every trajectory runs away. There is no stationary state, and the series is formal, equal order "
        r"by order to a ratio of Gaussian moments. It is asymptotic about the metastable state: its coefficients all have one sign "
        r"and grow like $n!\,(6 g^2 T)^n$, and what it cannot see is of the size $e^{-\Delta U/T} = e^{-1/(6 g^2 T)}$, that of the "
        r"rate of escape."
    ),
    assumptions=(
        r"Averages are those of the metastable state, before escape; corrections of relative size $e^{-1/(6 g^2 T)}$ are left out.",
        r"A simulation is only run if $1/(6 g^2 T) \geq 15$; trajectories that pass the bound behind the barrier are taken out and "
        r"counted.",
        r"Ito equation, $\theta(0) = 0$.",
    ),
    steps=steps,
    kernels=kernels,
    citations=(
        Citation("kramers1940", "Kramers, H. A.", "Brownian motion in a field of force and the diffusion model of chemical "
                 "reactions", "Physica 7, 284", 1940),
        Citation("legui1990", "Le Guillou, J. C. and Zinn-Justin, J.", "Large-Order Behaviour of Perturbation Theory",
                 "North-Holland", 1990),
    ),
    options=(
        Option("--g", float, 0.1, "strength of the quadratic force", group="equation", above=0),
        Option("--temperature", float, 1.0, "noise strength T: dx = .. + sqrt(2 T) dW", metavar="T", group="equation", above=0),
        Option("--step", float, 0.05, "time step of the simulation (its error is measured and extrapolated away)", metavar="H",
               group="simulation", above=0),
        Option("--duration", float, 40.0, "measured time of each trajectory", metavar="T", group="simulation", above=0),
        *common_options("quadratic-langevin"),
    ),
    run=_run,
    examples=(
        ("tadpoles to two loops, and how the series diverges", "symtensor run quadratic-langevin"),
        ("with a simulation of 20 000 trajectories", "symtensor run quadratic-langevin --samples 20000 --out out/escapes"),
    ),
    outputs=OUTPUTS.format(name="quadratic_langevin"),
)  # fmt: skip
