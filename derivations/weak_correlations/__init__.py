r"""Weak derivative correlations: does a trained model linearise, at what rate, how far does training leave the linear model?

* `composition`  bounds of C_{D,d} of a network from the bounds of its parts
* `exponents`    exponents by composition, cluster rule, exact second moments
* `theorems`     theorems 3.1, 3.2 and the SGD corollary, with assumptions as objects; rates that exponents allow
* `steps`        the derivation from the update rule
* `measure`      C_{D,d} and training of the networks, or of a user's model, by width
* `run`          the command `symtensor run weak-correlations`
"""

from __future__ import annotations

from derivations.weak_correlations.steps import kernels, steps
from derivations.weak_correlations.theorems import ASSUMPTIONS
from symtensor.derivation.field_run import common_options
from symtensor.derivation.model import Citation, Derivation
from symtensor.derivation.settings import Option, RunContext, RunResult, Settings

__all__ = ["DERIVATION"]

OUTPUTS = """\
report.html         read this: exponents, deviation curves, criterion, metrics, the derivation; opens offline
summary.json        all numbers: slopes with intervals, verdicts, checks, warnings
results.nc          the curves, as arrays with named axes (NetCDF)
weak_correlations.py  the generated JAX module: one step of the exactly solvable network
parameters.json     what the folder was made from; other parameters in the same folder are refused
contractions.nc, ..  what was measured; read again by a run with the same parameters"""


def _run(settings: Settings, context: RunContext) -> RunResult:
    from derivations.weak_correlations.run import run_derivation

    return run_derivation(DERIVATION, settings, context)


DERIVATION = Derivation(
    name="weak-correlations",
    title="Weak derivative correlations and linearisation of gradient descent",
    summary="C_{D,d} from the update rule, their exponents (derived, exact, measured), F - F_lin in training on real images.",
    statement=(
        r"Gradient descent of $F(\theta)(x)$ is compared with that of the model linearised at $\theta(0)$. The expansion of "
        r"the update "
        r"rule has the derivative contractions $C_{D,d} = \frac{\eta^{D/2+d}}{D!\,d!}\nabla^{D+d}F\,(\nabla F)^{\times d}$ as "
        r"coefficients. If they are small (weak correlation with rate $m(n)$), $F(\theta(s)) - F_{lin}(s) = O(1/m)$ at a "
        r"fixed number of "
        r"steps. Bounds, exact moments and measurements of the $C_{D,d}$ are put beside the deviation of functions in training."
    ),
    assumptions=tuple(f"{item.name}: {item.statement}" + (f" (checkable: {item.checked_by})" if item.checked_by else "")
                      for item in ASSUMPTIONS.values()),
    steps=steps,
    kernels=kernels,
    citations=(
        Citation("shemur2024", "Shem-Ur, O. and Oz, Y.", "Weak Correlations as the Underlying Principle for Linearization of "
                 "Gradient-Based Learning Systems", "arXiv 2401.04013", 2024),
        Citation("dyer2019", "Dyer, E. and Gur-Ari, G.", "Asymptotics of Wide Networks from Feynman Diagrams",
                 "arXiv 1909.11304", 2019),
        Citation("jacot2018", "Jacot, A. and Gabriel, F. and Hongler, C.", "Neural Tangent Kernel", "arXiv 1806.07572", 2018),
    ),
    options=(
        Option("--activation", str, "tanh", "activation of the hidden layers: a name or an expression in x", group="model"),
        Option("--depth", int, 1, "hidden layers", metavar="L", group="model", minimum=1),
        Option("--model", str, None, "your own model, MODULE:FUNCTION; FUNCTION(n) gives (apply(theta, x), init(key)) at width n",
               metavar="MODULE:FUNCTION", group="model"),
        Option("--data", str, "digits", "digits, or the folder or file of MNIST, FashionMNIST, CIFAR-10 or .npz", group="data"),
        Option("--classes", str, "3,8", "the two classes that are told apart", metavar="A,B", group="data"),
        Option("--train", int, 16, "training images", metavar="N", group="data", minimum=1),
        Option("--test", int, 32, "held-out images, on which functions are compared", metavar="N", group="data", minimum=1),
        Option("--widths", str, "64,128,256,512", "widths of the training runs", metavar="N,N,..", group="training"),
        Option("--seeds", int, 20, "initialisations of each width", metavar="S", group="training", minimum=4),
        Option("--steps", int, 20, "updates", metavar="S", group="training", minimum=1),
        Option("--eta", float, 1.0, "learning rate eta_0 (the gradient is a mean over the batch)", group="training", above=0),
        Option("--alphas", str, "0", "learning rates eta_0 n^alpha", metavar="A,A,..", group="training"),
        Option("--batch", str, "full", "full, single, or a number of images", group="training"),
        Option("--sizes", str, "33,48,67,97,131,193,257,385", "widths at which C_{D,d} is measured", metavar="N,N,..",
               group="correlations"),
        Option("--samples", int, 250, "initialisations of each size", metavar="S", group="correlations", minimum=100),
        Option("--seed", int, 0, "seed of everything", group="correlations", minimum=0),
        *common_options("weak-correlations", simulation=False),
    ),
    run=_run,
    examples=(
        ("one hidden layer on scikit-learn's digits", "symtensor run weak-correlations"),
        ("two hidden layers, stochastic gradient descent", "symtensor run weak-correlations --depth 2 --batch single"),
        ("your own model", "symtensor run weak-correlations --model my_module:family --out out/mine"),
    ),
    outputs=OUTPUTS,
)  # fmt: skip
