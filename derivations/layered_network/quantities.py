"""Names, axes and meanings of the arrays of a run, and which of them are compared with simulation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from derivations.layered_network.diagnosis import Diagnosis
from derivations.resnet_kernel.theory import Theory
from symtensor.derivation.hierarchy_run import Quantity
from symtensor.derivation.results import Labelled

__all__ = ["labelled", "main_quantities", "other_quantities", "theory_arrays"]

_INPUTS = ("a", "b", "c", "d", "e", "f")
MEANING: Mapping[str, str] = {
    "t": "depth time l dt", "K0": "kernel at infinite width", "V4": "n Cov(G), leading", "K1": "n (E G - K_0), leading",
    "S0": "E S at infinite width", "S1": "n (E S - S_0), leading", "U1": "S_1 - J K_1",
    "K2": "coefficient of n^-2 in E G", "V4_1": "coefficient of 1/n in n Cov(G)", "kappa3": "n^2 third cumulant of G, leading",
    "V4_kernel_only": "V_4, published closure", "K1_kernel_only": "K_1, published closure", "U1_kernel_only": "U_1, published "
                                                                                                              "closure",
    "V4_one_mode": "V_4, Hermite degree 2 only", "K1_one_mode": "K_1, Hermite degree 2 only", "U1_one_mode": "U_1, Hermite "
                                                                                                             "degree 2 only",
    "K1_V4_for_w": "K_1 of one mode with V_4 in place of V_4 - w", "V4_markov": "V_4, (G, S) hierarchy",
    "K1_markov": "K_1, (G, S) hierarchy", "U1_markov": "U_1, (G, S) hierarchy", "V4_32_nodes": "V_4, published closure, 32 nodes",
    "K1_32_nodes": "K_1, published closure, 32 nodes", "K_next": "K_0 + K_1/n at the width of the run",
    "V4_next": "V_4 + V4_1/n at the width of the run", "K1_next": "K_1 + K_2/n at the width of the run", "K": "E G",
}  # fmt: skip


def labelled(name: str, values: np.ndarray, first: str = "depth") -> Labelled:
    """An array with its axes: depth (or `first`), then inputs."""
    return Labelled(values, (first, *_INPUTS[: values.ndim - 1]), MEANING.get(name, ""))


def theory_arrays(found: Diagnosis, published: Theory, t: np.ndarray, width: int) -> dict[str, Labelled]:
    """The theories over depth, by name."""
    exact = found.exact.arrays()
    arrays = {
        "t": t, **exact, "K_next": exact["K0"] + exact["K1"] / width,
        "V4_kernel_only": published["V4"], "K1_kernel_only": published["K1"], "U1_kernel_only": published["U1_model"],
        "V4_one_mode": published["V4_one_mode"], "K1_one_mode": found.closures["one_mode"].K1,
        "U1_one_mode": found.closures["one_mode"].U1, "K1_V4_for_w": found.closures["V4_for_w"].K1,
        "V4_markov": found.markov.V4, "K1_markov": found.markov.K1, "U1_markov": found.markov.U1,
        "V4_32_nodes": found.gauss_hermite.V4, "K1_32_nodes": found.gauss_hermite.K1,
    }  # fmt: skip
    if "K2" in exact:
        arrays |= {"V4_next": exact["V4"] + exact["V4_1"] / width, "K1_next": exact["K1"] + exact["K2"] / width}
    return {name: labelled(name, values) for name, values in arrays.items()}


def main_quantities() -> tuple[Quantity, ...]:
    """K_0, V_4, K_1 as the exact theory has them."""
    return (
        Quantity("K", "K0", "K", "K_0", "K_0", "mean kernel at infinite width; at width $n$ the mean differs by $K_1/n$", ode="K0"),
        Quantity("V4", "V4", "V4", "V_4", "V_4", "kernel covariance times $n$, exact at leading order; at width $n$ it differs by "
                 "$V_{4,1}/n$", alternative="V4_kernel_only"),
        Quantity("K1", "K1", "K1", "K_1", "K_1", "mean correction times $n$, exact at leading order; at width $n$ it differs by "
                 "$K_2/n$", alternative="K1_kernel_only"),
    )  # fmt: skip


def other_quantities(order: int) -> tuple[Quantity, ...]:
    """What else is compared: S_1, U_1, the next order where it is known, and the truncations."""
    further = (
        Quantity("K_next", "K_next", "K", "K_0 + K_1/n", "K_0 + K_1/n", "mean kernel to order $1/n$", alternative="K0"),
        Quantity("S1", "S1", "S1", "S_1", "S_1", "mean correction of $S$ times $n$, leading"),
        Quantity("U1", "U1", "U1", "U_1", "U_1", "source of $K_1$, leading", alternative="U1_kernel_only"),
    )
    if order > 1:
        further += (
            Quantity("V4_next", "V4_next", "V4", "V_4 + V_{4,1}/n", "V_4 + V4_1/n", "kernel covariance times $n$, to order $1/n$",
                     alternative="V4"),
            Quantity("K1_next", "K1_next", "K1", "K_1 + K_2/n", "K_1 + K_2/n", "mean correction times $n$, to order $1/n$",
                     alternative="K1"),
        )  # fmt: skip
    truncations = {"kernel_only": "kernel-only", "one_mode": "one mode", "markov": "(G, S)"}
    return further + tuple(
        _truncated(name, latex, key, text) for key, text in truncations.items() for name, latex in (("V4", "V_4"), ("K1", "K_1"))
    )


def _truncated(name: str, latex: str, key: str, text: str) -> Quantity:
    above = text.replace(" ", "~").replace("-", "~")
    return Quantity(
        f"{name}_{key}", f"{name}_{key}", name, rf"{latex}^{{\mathrm{{{above}}}}}", f"{latex} {text}",
        f"the same, {text} truncation",
    )  # fmt: skip
