r"""The overdamped particle in a quartic potential, dx = -(x + g x^3) dt + sqrt(2 T) dW: correlation and response to two loops.

* `sums`     the diagram sums, and the shapes that dynamic diagrams share with static ones
* `steps`    the derivation: every diagram with its factor, sums, second routes, fluctuation-dissipation
* `exact`    the correlation function from the spectrum of the Fokker-Planck operator; resummed functions of time
* `run`      the command `symtensor run cubic-langevin`
"""

from __future__ import annotations

from derivations.cubic_langevin.steps import kernels, steps
from symtensor.derivation.field_run import OUTPUTS, common_options
from symtensor.derivation.model import Citation, Derivation
from symtensor.derivation.settings import Option, RunContext, RunResult, Settings

__all__ = ["DERIVATION"]


def _run(settings: Settings, context: RunContext) -> RunResult:
    from derivations.cubic_langevin.run import run_derivation

    return run_derivation(DERIVATION, settings, context)


DERIVATION = Derivation(
    name="cubic-langevin",
    title="Langevin equation with a cubic force: correlation and response to two loops",
    summary="dx = -(x + g x^3) dt + sqrt(2T) dW: C(t), R(t), equal-time moments, Dyson's equation, against exact results.",
    statement=(
        r"The stationary correlation function $C(t) = \langle x(t)\,x(0)\rangle$ and the response $R(t)$ of "
        r"$dx = -(x + g x^3)\,dt + \sqrt{2T}\,dW$ are expanded in $g$ to two loops. The result is compared order by order with the "
        r"moment hierarchy, at equal times with the stationary density $\propto \exp(-(x^2/2 + g x^4/4)/T)$, and in time with the "
        r"spectrum of the Fokker-Planck operator and with simulation."
        "\n\n"
        r"The fluctuation-dissipation theorem $R(t) = -C'(t)/T$ holds not only order by order, but for the diagrams of each shape. "
        r"The expansion is one in $gT$; it is asymptotic, with coefficients that grow like factorials."
    ),
    assumptions=(
        r"$g > 0$ and $T > 0$: the state is stationary.",
        r"The stationary state is reached: averages do not depend on the initial condition.",
        r"Ito equation, $\theta(0) = 0$; the noise is additive, so that the discretisation does not matter for the result.",
    ),
    steps=steps,
    kernels=kernels,
    citations=(
        Citation("martin1973", "Martin, P. C. and Siggia, E. D. and Rose, H. A.", "Statistical dynamics of classical systems",
                 "Physical Review A 8, 423", 1973),
        Citation("janssen1976", "Janssen, H.-K.", "On a Lagrangean for classical field dynamics and renormalization group "
                 "calculations of dynamical critical properties", "Zeitschrift fuer Physik B 23, 377", 1976),
        Citation("risken1989", "Risken, H.", "The Fokker-Planck Equation", "Springer", 1989),
    ),
    options=(
        Option("--g", float, 0.02, "strength of the cubic force", group="equation", above=0),
        Option("--temperature", float, 0.5, "noise strength T: dx = .. + sqrt(2 T) dW", metavar="T", group="equation", above=0),
        Option("--t-max", float, 4.0, "longest time difference", metavar="T", group="equation", above=0),
        Option("--step", float, 0.05, "time step of the simulation (its error is measured and extrapolated away)", metavar="H",
               group="simulation", above=0),
        Option("--duration", float, 40.0, "measured time of each trajectory", metavar="T", group="simulation", above=0),
        *common_options("cubic-langevin"),
    ),
    run=_run,
    examples=(
        ("theory and exact curves", "symtensor run cubic-langevin"),
        ("with a simulation of 20 000 trajectories", "symtensor run cubic-langevin --samples 20000 --out out/simulated"),
        ("where the bare series fails and the resummed one does not", "symtensor run cubic-langevin --g 0.1 --out out/strong"),
    ),
    outputs=OUTPUTS.format(name="cubic_langevin"),
)  # fmt: skip
