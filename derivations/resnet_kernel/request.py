"""What a run was asked, checked in full before any work starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from symtensor.activation import Activation, activation
from symtensor.derivation.inputs import Inputs, load_inputs, load_kernel
from symtensor.derivation.settings import OptionError, Settings
from symtensor.numerics.rules import Derivatives, Rule, parse_rule

__all__ = ["Request", "read_request"]

LARGEST_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Request:
    """The network, its inputs, and how to compute; `gamma` is None where continuous depth does not exist."""

    activation: Activation
    inputs: Inputs
    c_w: float
    c_b: float
    alpha: float
    dt: float
    gamma: float | None
    depth: int
    width: int
    samples: int
    seed: int
    rule: Rule | None
    derivatives: Derivatives
    tol: float
    memory_mb: float

    @property
    def kernel(self) -> np.ndarray:
        """K^0, (P, P)."""
        return self.inputs.kernel

    @property
    def published(self) -> bool:
        """Whether the published recursion applies (alpha = 1); otherwise the one exact in dt is used."""
        return self.alpha == 1.0

    def parameters(self, settings: Settings) -> Mapping[str, Any]:
        """Everything that decides the numbers, by option name, with the kernel that was read and the alpha used."""
        unused = dict.fromkeys(("inputs", "n_inputs", "input_scale")) if settings["kernel"] is not None else {}
        return {
            **settings, **unused, "activation": self.activation.name, "alpha": self.alpha, "input_kernel": self.kernel,
        }  # fmt: skip


def read_request(settings: Settings) -> Request:
    """Check all settings.

    Raises
    ------
    ValueError
        Naming the option, what was given, what is required.
    """
    function = activation(settings["activation"])
    alpha, gamma = _leak(settings)
    samples = settings["samples"]
    if samples in (1, 2):
        raise OptionError(f"--samples {samples} gives no standard error; ask for at least 3, or for 0 to skip the simulation")
    if settings["tol"] > LARGEST_TOLERANCE:
        raise OptionError(f"--tol {settings['tol']:g} is no tolerance; it is relative and at most {LARGEST_TOLERANCE:g}")
    if settings["kernel"] is not None and settings.given & {"inputs", "n_inputs", "input_scale"}:
        named = ", ".join("--" + key.replace("_", "-") for key in sorted(settings.given & {"inputs", "n_inputs", "input_scale"}))
        raise OptionError(f"--kernel gives K^0 as it is, so {named} has no effect: give one or the other")
    inputs = _inputs(settings)
    for label, variance in zip(inputs.labels, np.diag(inputs.kernel)):
        function.require_square_integrable(float(variance), f"layer 0, {label}")
    rule = parse_rule(settings["quadrature"])
    if settings["derivatives"] == "inside" and not function.smooth:
        function.derivative(2)  # raises: names the delta term and what to do instead
    return Request(
        function, inputs, settings["c_w"], settings["c_b"], alpha, settings["dt"], gamma, settings["depth"],
        settings["width"], samples, settings["seed"], rule, settings["derivatives"], settings["tol"], settings["memory_mb"],
    )  # fmt: skip


def _leak(settings: Settings) -> tuple[float, float | None]:
    """(alpha, gamma): alpha = 1 is gamma = 0; another alpha has a continuous limit only with gamma given."""
    alpha, gamma, dt = settings["alpha"], settings["gamma"], settings["dt"]
    if gamma is None:
        return alpha, 0.0 if alpha == 1.0 else None
    if gamma * dt > 1:
        raise OptionError(f"--gamma {gamma:g} with --dt {dt:g}: alpha^2 = 1 - gamma dt would be {1 - gamma * dt:g}; lower one")
    implied = math.sqrt(1 - gamma * dt)
    if "alpha" in settings.given and not math.isclose(alpha, implied, rel_tol=1e-12):
        raise OptionError(f"--alpha {alpha!r} contradicts --gamma {gamma:g}, which means alpha = {implied!r}; give one of them")
    return implied, gamma


def _inputs(settings: Settings) -> Inputs:
    """K^0 as asked; the number of inputs is held against the memory cap as soon as it is known."""
    check = partial(_check_memory, depth=settings["depth"], memory_mb=settings["memory_mb"])
    if settings["kernel"] is not None:
        return load_kernel(settings["kernel"], check)
    return load_inputs(settings["inputs"], settings["n_inputs"], settings["input_scale"], check)


def _check_memory(inputs: int, depth: int, memory_mb: float) -> None:
    """Five rank-4 tensors per depth are kept (V_4 twice, its two increments, J), and copied once to the host."""
    need = 2 * 5 * 8 * (depth + 1) * inputs**4 / 2**20
    if need > memory_mb:
        raise OptionError(
            f"the theory of {inputs} inputs and {depth} layers needs {need:.3g} MB, the cap is {memory_mb:g} MB; "
            "raise --memory-mb, or lower --n-inputs or --depth"
        )
