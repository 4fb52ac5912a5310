"""The options of `symtensor run resnet-kernel`, as the command line shows them."""

from __future__ import annotations

from symtensor.derivation.settings import Option

__all__ = ["EXAMPLES", "OPTIONS", "OUTPUTS"]

_NETWORK, _INPUTS, _SIMULATION, _NUMERICS, _OUTPUT = "network", "inputs (K^0)", "simulation", "numerics", "output"

OPTIONS = (
    Option("--activation", str, "tanh",
           "tanh, erf, sin, relu, leaky-relu:SLOPE, gelu, softplus, sigmoid, identity, or an expression in x such as "
           "'x*tanh(x)' (parsed, never evaluated)", metavar="NAME", group=_NETWORK),
    Option("--c-w", float, 2.0, "weight variance C_W: W_ij ~ N(0, C_W/n)", metavar="C_W", group=_NETWORK, minimum=0),
    Option("--c-b", float, 0.0, "bias variance C_b", metavar="C_b", group=_NETWORK, minimum=0),
    Option("--alpha", float, 1.0, "skip strength: 1 ResNet, 0 (with --dt 1) MLP, between them leaky", group=_NETWORK, minimum=0),
    Option("--dt", float, 0.1, "step of depth time per layer (the paper's eps^2)", group=_NETWORK, above=0),
    Option("--gamma", float, None, "leak rate: alpha^2 = 1 - gamma dt, which gives alpha != 1 a continuous-depth limit",
           group=_NETWORK, minimum=0),
    Option("--depth", int, 20, "number of layers L", metavar="L", group=_NETWORK, minimum=1),
    Option("--kernel", str, None, "the kernel K^0: a number, or a .csv or .npy file with a P x P matrix",
           metavar="NUMBER|FILE", group=_INPUTS),
    Option("--inputs", str, "digits", "raw inputs, one row each: a .csv or .npy file, or the data set 'digits' (8 x 8 "
           "images shipped with scikit-learn); K^0 = scale x x^T / features", metavar="FILE|NAME", group=_INPUTS,
           unless="kernel"),
    Option("--n-inputs", int, None, "take the first P rows (all rows of a file, 2 of a data set)", metavar="P",
           group=_INPUTS, minimum=1, unless="kernel"),
    Option("--input-scale", float, 1.0, "scale of K^0, the C_W of the input layer", metavar="S", group=_INPUTS, above=0,
           unless="kernel"),
    Option("--samples", int, 20000, "simulated networks; 0 skips the simulation", metavar="M", group=_SIMULATION, minimum=0),
    Option("--width", int, 32, "width n of the simulated networks", metavar="N", group=_SIMULATION, minimum=1),
    Option("--seed", int, 0, "every draw is keyed by (seed, sample, layer)", group=_SIMULATION, minimum=0),
    Option("--memory-mb", float, 2048.0, "cap on the memory of theory and simulation", metavar="MB", group=_SIMULATION, above=0),
    Option("--tol", float, 1e-10, "relative tolerance of the Gaussian expectations", group=_NUMERICS, above=0),
    Option("--quadrature", str, "auto", "auto (chosen by its own error), closed, trapezoid:N, gh:N or split:N",
           metavar="RULE", group=_NUMERICS),
    Option("--derivatives", str, "auto", "derivatives of expectations: inside them, or by parts as Hermite coefficients",
           choices=("auto", "inside", "hermite"), group=_NUMERICS),
    Option("--out", str, "out/resnet-kernel", "folder of the results", metavar="DIR", group=_OUTPUT),
    Option("--resume", bool, False, "go on with the run in --out; options that are not given are taken from there",
           group=_OUTPUT),
)  # fmt: skip

EXAMPLES = (
    ("two real images through twenty tanh blocks, theory against simulation", "symtensor run resnet-kernel"),
    (
        "the paper's point (variance 2, 800 layers), theory alone",
        "symtensor run resnet-kernel --kernel 2 --dt 0.0025 --depth 800 --samples 0 --out out/paper",
    ),
    (
        "what the published quadrature gives there (flagged as unconverged)",
        "symtensor run resnet-kernel --kernel 2 --dt 0.0025 --depth 800 --samples 0 --quadrature gh:32 "
        "--derivatives inside --out out/gh32",
    ),
    ("an MLP with GELU", "symtensor run resnet-kernel --activation gelu --alpha 0 --dt 1 --depth 4 --out out/mlp"),
    ("more samples for the first run", "symtensor run resnet-kernel --resume --samples 100000"),
)

OUTPUTS = """\
report.html         read this: equations, checks, tables, plots, validity window; opens offline
summary.json        all numbers: theory, theory_ode, simulation, z, quadrature, warnings
results.nc          all arrays with named axes (NetCDF)
resnet_kernel.py    the generated JAX module; it needs only jax and diffrax
parameters.json     what the folder was made from; other parameters in the same folder are refused
simulation/         state of the simulation, from which it is resumed or extended"""
