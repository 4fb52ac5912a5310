r"""Two populations of neurons with noise: mean and covariance at one loop about a fixed point that is found numerically.

* `network`  the equations, the diagram sums, and the same moments without diagrams
* `steps`    the derivation: fixed point, rules, every diagram with its factor, checks
* `run`      the command `symtensor run rate-network`
"""

from __future__ import annotations

from derivations.rate_network.network import DEFAULT
from derivations.rate_network.steps import kernels, steps
from symtensor.derivation.field_run import OUTPUTS, common_options
from symtensor.derivation.model import Citation, Derivation
from symtensor.derivation.settings import Option, RunContext, RunResult, Settings

__all__ = ["DERIVATION"]


def _run(settings: Settings, context: RunContext) -> RunResult:
    from derivations.rate_network.run import run_derivation

    return run_derivation(DERIVATION, settings, context)


DERIVATION = Derivation(
    name="rate-network",
    title="Two populations of neurons: mean and covariance at one loop",
    summary="du = (-u + phi(a u - b v + h)) dt + .., dv likewise: mean, covariance and C(t) at one loop, each diagram's share.",
    statement=(
        r"An excitatory and an inhibitory population with rates $u$, $v$ obey $du = (-u + \varphi(a u - b v + h_u))\,dt + "
        r"\sqrt{2D}\,dW_u$ and $\tau\,dv = (-v + \varphi(c u - d v + h_v))\,dt + \tau\sqrt{2D}\,dW_v$ with a smooth "
        r"nonlinearity $\varphi$. The fixed point has no closed form and is found numerically; the expansion about it is in loops, "
        r"which is one in the noise strength $D$: an $n$-point cumulant with $L$ loops is proportional to $D^{n-1+L}$."
        "\n\n"
        r"At tree level the mean is the fixed point and the covariance that of the linear equation. One loop shifts the mean by "
        r"the curvature of $\varphi$, and changes the covariance, whose diagrams are shown one by one with the share of each."
    ),
    assumptions=(
        r"$\varphi$ is smooth, and the fixed point is stable.",
        r"The noise is so weak that the state stays near this fixed point: contributions of other fixed points, of the order "
        r"$e^{-\mathrm{const}/D}$, are not in any order of the series.",
        r"The stationary state is reached. Ito equation with additive noise, $\theta(0) = 0$.",
    ),
    steps=steps,
    kernels=kernels,
    citations=(
        Citation("wilson1972", "Wilson, H. R. and Cowan, J. D.", "Excitatory and inhibitory interactions in localized populations "
                 "of model neurons", "Biophysical Journal 12, 1", 1972),
        Citation("ocker2017", "Ocker, G. K. and Josic, K. and Shea-Brown, E. and Buice, M. A.", "Linking structure and activity in "
                 "nonlinear spiking networks", "PLOS Computational Biology 13, e1005583", 2017),
        Citation("helias2020", "Helias, M. and Dahmen, D.", "Statistical Field Theory for Neural Networks", "Springer", 2020),
    ),
    options=(
        Option("--nonlinearity", str, DEFAULT.name, "tanh, erf, sigmoid, softplus, gelu, sin, or an expression in x such as "
               "'x/(1+x^2)' (parsed, never evaluated); it must be smooth", metavar="NAME", group="network"),
        Option("--a", float, float(DEFAULT.weights[0][0]), "weight from u to u", group="network"),
        Option("--b", float, -float(DEFAULT.weights[0][1]), "weight from v to u (inhibitory: enters as -b)", group="network"),
        Option("--c", float, float(DEFAULT.weights[1][0]), "weight from u to v", group="network"),
        Option("--d", float, -float(DEFAULT.weights[1][1]), "weight from v to v (enters as -d)", group="network"),
        Option("--h-u", float, float(DEFAULT.inputs[0]), "input to u", metavar="H", group="network"),
        Option("--h-v", float, float(DEFAULT.inputs[1]), "input to v", metavar="H", group="network"),
        Option("--tau", float, float(DEFAULT.tau), "time constant of v in units of that of u", group="network", above=0),
        Option("--noise", float, 0.01, "noise strength D: dx = .. + sqrt(2 D) dW", metavar="D", group="network", above=0),
        Option("--u0", float, None, "where there are several stable fixed points: u there, to 7 digits", group="network"),
        Option("--v0", float, None, "the same for v", group="network"),
        Option("--t-max", float, 4.0, "longest time difference", metavar="T", group="network", above=0),
        Option("--step", float, 0.1, "time step of the simulation (its error is measured and extrapolated away)", metavar="H",
               group="simulation", above=0),
        Option("--duration", float, 20.0, "measured time of each trajectory", metavar="T", group="simulation", above=0),
        *common_options("rate-network"),
    ),
    run=_run,
    examples=(
        ("one loop, and the share of each diagram", "symtensor run rate-network"),
        ("with simulations at D, D/2, D/4, 20 000 trajectories each", "symtensor run rate-network --samples 20000 --out out/rates"),
        ("another nonlinearity", "symtensor run rate-network --nonlinearity sigmoid --a 6 --c 5 --out out/sigmoid"),
    ),
    outputs=OUTPUTS.format(name="rate_network").replace("simulation.nc    ", "simulation_?.nc  "),
)  # fmt: skip
