"""A made-up hierarchy run for layout tests: arrays by formulas, not physics. Tests get it as the fixture `fake`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from symtensor.derivation.hierarchy_run import HierarchyRun
from symtensor.derivation.model import Check, CheckOutcome, Citation, Derivation, Equation, Step
from symtensor.derivation.results import Labelled


@dataclass(frozen=True)
class Estimate:
    mean: np.ndarray
    se: np.ndarray


@dataclass(frozen=True)
class Simulation:
    K: Estimate
    V4: Estimate
    K1: Estimate
    S1: Estimate
    U1: Estimate
    gain: dict[str, np.ndarray] = field(default_factory=dict)


PASSING = Check("unit determinant", r"$\det \partial\eta/\partial\phi = 1$", lambda: CheckOutcome(True, "1 - 1 = `0`"))
FAILING = Check("normalisation", "$Z = 1$", lambda: CheckOutcome(False, "found 2 <b>"))
STEPS = (
    Step(
        "Order $n^0$",
        "Neurons are independent once the path of $S$ is fixed.\n\nSo the kernel obeys a closed recursion.",
        (
            Equation(
                r"K_0^{l+1} = \alpha^2 K_0^l + \Delta t \left( C_b + C_W\, \mathbb{E}_{K_0^l}[\sigma\sigma] \right)",
                "GC0",
            ),
            Equation(r"\begin{aligned} V' &= A V A^\top + N \\ A &= \alpha^2 + \Delta t\,\chi \end{aligned}", "LIN"),
        ),
        (PASSING,),
    ),
    Step(
        "Price's theorem", "Derivatives in the covariance.", (Equation(r"\frac{\partial Q}{\partial K_{ab}} = \chi"),)
    ),
)
CITATION = Citation("price1958", "Robert Price", "A useful theorem", "IRE Trans. Inf. Theory 4, 69", 1958)


def derivation(**changes: object) -> Derivation:
    values: dict = {
        "name": "toy",
        "title": "Finite-width kernels of a toy network",
        "statement": r"The kernel $G_{ab}$ of a network of width $n$ has mean $K_0 + K_1/n$ and covariance $V_4/n$.",
        "assumptions": ("Gaussian weights with variance $C_W/n$.", "Square-integrable activation."),
        "steps": STEPS,
        "kernels": (),
        "citations": (CITATION,),
        "options": (),
        "run": lambda settings, context: 0,
        "summary": "A toy for tests.",
    }
    return Derivation(**{**values, **changes})


def hierarchy_run(inputs: int = 1, depth: int = 8, simulated: bool = True, **changes: object) -> HierarchyRun:
    """Smooth curves in t with noise of known size; K_1 of the 'simulation' differs on purpose."""
    t = np.linspace(0, 2, depth + 1)
    two, four = ("depth", "a", "b"), ("depth", "a", "b", "c", "d")
    base = 0.4 * np.ones((inputs, inputs)) + 0.6 * np.eye(inputs)
    k0 = 2 * np.exp(0.4 * t)[:, None, None] * base
    w = np.einsum("tac,tbd->tabcd", k0, k0) + np.einsum("tad,tbc->tabcd", k0, k0)
    v4, k1 = w * (1 + t)[:, None, None, None, None], -0.5 * t[:, None, None] * base
    u1 = -0.3 * (1 + t[:, None, None]) * base
    exact = np.where(np.arange(depth + 1)[:, None, None] == 0, 0.0, np.nan) * base
    theory = {
        "K0": Labelled(k0, two, "mean kernel"),
        "V4_kernel_only": Labelled(v4, four, "kernel covariance times n"),
        "K1_kernel_only": Labelled(k1, two, "mean correction times n"),
        "U1_model": Labelled(u1, two, "source of K1, model"),
        "U1_exact": Labelled(exact, two, "source of K1, exact"),
        "V4_source": Labelled(0.1 * v4[:-1], ("layer", *four[1:])),
        "V4_transport": Labelled(0.2 * v4[:-1], ("layer", *four[1:])),
        "K1_source": Labelled(0.1 * k1[:-1], ("layer", *two[1:])),
        "K1_transport": Labelled(0.2 * k1[:-1], ("layer", *two[1:])),
    }
    ode = {name: Labelled(theory[key].values * 1.02, theory[key].axes) for name, key in ODE.items()}
    values: dict = {
        "derivation": derivation(),
        "steps": STEPS,
        "parameters": {
            "activation": "tanh",
            "c_w": 2.0,
            "dt": 0.25,
            "depth": depth,
            "width": 64,
            "samples": 4096,
            "seed": 0,
        },
        "inputs": "digits of scikit-learn, first 2 rows",
        "t": t,
        "theory": theory,
        "theory_ode": ode,
        "simulation": simulation(k0, v4, 0.45 * k1, u1 * (1 - np.exp(-3 * t))[:, None, None]) if simulated else None,
        "quadrature": {"rule": "trapezoid:161", "error": 3.2e-13, "derivatives": "inside", "converged": True},
        "condition": 12.5,
        "labels": tuple(f"{index + 1}: digit {index}" for index in range(inputs)),
        "module_source": '"""A module."""\n\nx = 1 < 2 & 3\n',
        "versions": {"symtensor": "0.1.0", "numpy": "2.4"},
        "timings": {"theory": 1.25, "simulation": 40.5},
        "command": "symtensor run toy --activation tanh --seed 0",
        "files": (("summary.json", "all numbers"), ("results.nc", "all arrays with named axes")),
    }
    if simulated:
        gap = values["simulation"].K1.mean - k1
        values["residual"] = {"source": 0.3 * gap, "transport": 0.7 * gap}
    return HierarchyRun(**{**values, **changes})


ODE = {"K0": "K0", "V4": "V4_kernel_only", "K1": "K1_kernel_only"}


def simulation(k0: np.ndarray, v4: np.ndarray, k1: np.ndarray, u1: np.ndarray) -> Simulation:
    """Estimates around the given means with relative standard errors of 0.2 %, 1 % and absolute 0.02."""
    random = np.random.default_rng(7)

    def around(mean: np.ndarray, se: np.ndarray) -> Estimate:
        return Estimate(mean + se * random.standard_normal(mean.shape), se)

    noise = np.full(k1.shape, 0.02)
    gain = {"K1": 1 + 80 * np.ones_like(k1), "V4": 3 * np.ones_like(v4)}
    k1_estimate = around(k1, noise)
    return Simulation(
        around(k0, 0.002 * np.abs(k0)), around(v4, 0.01 * np.abs(v4)), k1_estimate, k1_estimate, around(u1, noise), gain
    )


__all__ = [
    "CITATION",
    "FAILING",
    "PASSING",
    "STEPS",
    "Estimate",
    "Simulation",
    "derivation",
    "hierarchy_run",
    "replace",
]
