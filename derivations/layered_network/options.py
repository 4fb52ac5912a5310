"""The options of `symtensor run layered-network`: those of resnet-kernel and the order in 1/n."""

from __future__ import annotations

from dataclasses import replace

from derivations.resnet_kernel.options import OPTIONS as KERNEL_ONLY
from symtensor.derivation.settings import Option

__all__ = ["EXAMPLES", "OPTIONS", "OUTPUTS"]


def _order(text: str) -> int:
    if text not in ("1", "2"):
        raise ValueError(f"must be 1 or 2 (the order in 1/n), got {text!r}")
    return int(text)


_CHANGED = {
    "--out": {"default": "out/layered-network"},
    "--quadrature": {"help": "rule of the kernel-only baseline: auto (chosen by its own error), closed, trapezoid:N, gh:N or "
                             "split:N; "
                             "the exact theory always controls its own error"},
    "--derivatives": {"help": "derivatives of expectations in the kernel-only baseline: inside them, or by parts as Hermite "
                              "coefficients"},
    "--tol": {"help": "relative tolerance of the Gaussian expectations and of the path cumulants; what is reached is reported"},
}  # fmt: skip

OPTIONS = (
    Option("--order", _order, 1, "order in 1/n: 1 gives V_4, K_1, S_1, U_1; 2 also K2, V4_1, kappa3 (one input)",
           group="expansion", metavar="1|2"),
    *(replace(option, **_CHANGED.get(option.name, {})) for option in KERNEL_ONLY),
)  # fmt: skip

EXAMPLES = (
    ("two real images through twenty tanh blocks: exact theory, closures, simulation", "symtensor run layered-network"),
    ("order 1/n^2 of the mean, 1/n of V_4, third cumulant", "symtensor run layered-network --order 2 --kernel 2 --depth 8 --dt "
                                                            "0.25 "
     "--out out/second-order"),
    ("a one-sided activation, where the closure fails", "symtensor run layered-network --activation relu --kernel 2 --dt 0.1 "
     "--depth 10 --width 64 --out out/relu"),
    ("the point of the published figures, theory alone", "symtensor run layered-network --kernel 2 --dt 0.0025 --depth 800 "
     "--samples 0 --out out/long"),
    ("an MLP: the layer recursions", "symtensor run layered-network --activation gelu --alpha 0 --dt 1 --depth 4 --out out/mlp"),
)  # fmt: skip

OUTPUTS = """\
report.html         read this: derivation, diagrams, tables, diagnosis, validity; opens offline
summary.json        all numbers: theory, theory_ode, theory_continuous, diagnosis, simulation, z, quadrature, warnings
results.nc          all arrays with named axes (NetCDF)
layered_network.py  the generated JAX module of the diagrams
parameters.json     what the folder was made from; other parameters in the same folder are refused
simulation/         state of the simulation, from which it is resumed or extended"""
