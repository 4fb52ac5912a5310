"""The diagrams of layered networks against simulation at widths 8 to 32, fitted in 1/n.

Every coefficient lies within three standard errors of the diagrams, with a standard error small enough to reject the
nearest wrong answer, which is shown to be rejected: for V_4 the one-mode truncation, for K_1 the kernel-only tadpole with
V_4, for the next orders the absence of the correction. The always-on case is one of them at fewer samples.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symtensor.fields.layered import Branch, LayeredExpansion, LayeredNetwork, LayeredSum, cumulant_terms, expand
from symtensor.fields.layered.expansion import arrays_of, evaluate
from symtensor.fields.layered.program import Output, Program
from symtensor.numerics.layered_simulation import LayeredBlock, LayeredSimulation, simulate_layered

TWO = ((1.0, 0.5), (0.5, 1.5))
THREE = ((1.0, 0.4, 0.3), (0.4, 1.2, 0.5), (0.3, 0.5, 0.8))
WIDTHS = (8, 12, 16, 24, 32)
SAMPLES = 3_000_000  # neurons x networks at each width
OBSERVABLES = {"G": "x", "S": 0, "H": "x**2"}


@dataclass(frozen=True)
class Case:
    """A network, up to which order the diagrams are compared, and how much is simulated."""

    branches: tuple[tuple[str, float], ...]
    kernel: Any
    order: int
    bias: str = "0"
    alpha: float = 1.0
    dt: float = 1.0
    depth: int = 2
    neurons: int = SAMPLES
    widths: tuple[int, ...] = WIDTHS
    tol: float = 1e-8
    second_mean: str = "G"  # whose mean at 1/n^2 is compared: the one of G nearly vanishes for ReLU


MIXED = (("tanh", 2.0), ("relu", 0.5))
CASES = {
    "tanh": Case((("tanh", 3.0),), 1.5, 2, neurons=12_000_000),
    "gelu": Case((("gelu", 4.0),), 0.3, 2, neurons=12_000_000),
    "relu": Case((("relu", 2.0),), 1.5, 2, bias="0.1", dt=0.5, neurons=12_000_000, second_mean="H"),
    "two branches": Case(MIXED, 1.0, 2, bias="0.1 + S1/2 + S2^2/10", neurons=12_000_000),
    "tanh, 2 inputs": Case((("tanh", 3.0),), TWO, 1),
    "relu, 2 inputs": Case((("relu", 2.0),), TWO, 1, bias="0.1"),
    "gelu, 2 inputs": Case((("gelu", 4.0),), TWO, 1, tol=1e-6),
    "two branches, 2 inputs": Case(MIXED, TWO, 1, bias="0.1 + S1/2 + S2^2/10"),
    "tanh, 3 inputs": Case((("tanh", 3.0),), THREE, 1, neurons=1_500_000),
    "relu, 3 inputs": Case((("relu", 2.0),), THREE, 1, bias="0.1", neurons=1_500_000),
    "gelu, 3 inputs": Case((("gelu", 4.0),), THREE, 1, tol=1e-6, neurons=1_500_000),
    "two branches, 2 inputs, quick": Case(MIXED, TWO, 1, bias="0.1 + S1/2 + S2^2/10", neurons=300_000, widths=(12, 32)),
    "fast tanh": Case((("tanh", 3.0),), 1.5, 2, neurons=1_200_000, widths=(8, 16, 32)),
}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in CASES if not name.startswith("fast")]
NAMES = [*SLOW, *(name for name in CASES if name.startswith("fast"))]
HIGHER = [p for p in NAMES if CASES[getattr(p, "values", (p,))[0]].order == 2]  # type: ignore[index]


@functools.cache
def run(name: str) -> tuple[LayeredExpansion, LayeredSimulation]:
    case = CASES[name]
    observables = {key: case.branches[f][0] if isinstance(f, int) else f for key, f in OBSERVABLES.items()}
    if case.order == 1:
        del observables["H"]
    model = {"alpha": case.alpha, "dt": case.dt, "depth": case.depth, "kernel": case.kernel}
    network = LayeredNetwork([Branch(*branch) for branch in case.branches], bias=case.bias, **model)
    expression = network.bias
    levels = sp.symbols(f"S1:{len(case.branches) + 1}")
    bias = sp.lambdify(levels, expression) if expression.free_symbols else float(expression)
    samples = {n: max(case.neurons // n, 1024) for n in case.widths}
    third = ("G",) if case.order == 2 else ()
    block = LayeredBlock(case.branches, bias=bias, **model)
    simulation = simulate_layered(block, case.widths, observables, samples=samples, seed=2026, third_cumulants=third)
    return expand(network, case.order, observables, tol=case.tol), simulation


def kernel_only(simulation: LayeredSimulation) -> tuple[np.ndarray, np.ndarray]:
    """The one-mode V_4 and the kernel-only K_1 (tadpole with V_4) at the last depth, packed over pairs a <= b."""
    block, lead = simulation.block, simulation.leading
    a, b = np.triu_indices(block.inputs)
    x, y = np.triu_indices(len(a))

    def pairing(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left[a[:, None], a] * right[b[:, None], b] + left[a[:, None], b] * right[b[:, None], a]

    covariance, shift = pairing(lead.kernels[0], lead.kernels[0]), np.zeros(len(a))
    for layer in range(block.depth):
        old = block.alpha**2 * lead.kernels[layer]
        noise = lead.kernels[layer + 1] - old
        transport = block.alpha**2 * np.eye(len(a)) + lead.feedback[layer] @ lead.response[layer]
        shift = transport @ shift + lead.feedback[layer] @ (lead.curvature[layer] @ covariance[x, y])
        shift += bent(simulation, layer, covariance)
        covariance = transport @ covariance @ transport.T + pairing(old, noise) + pairing(noise, old) + pairing(noise, noise)
    return covariance, shift


def bent(simulation: LayeredSimulation, layer: int, covariance: np.ndarray) -> float:
    """Second derivative of the bias variance on the covariance of the levels S_r, within the kernel-only theory."""
    lead, pairs = simulation.leading, len(covariance)
    diagonal = [p for p, (a, b) in enumerate(zip(*np.triu_indices(simulation.block.inputs))) if a == b]
    functions = simulation._functions.branches
    response = np.stack([lead.response[layer][[f * pairs + d for d in diagonal]].mean(axis=0) for f in functions])
    return float(np.sum(lead.bend[layer] * (response @ covariance @ response.T)))


def packed(array: np.ndarray, slots: int) -> np.ndarray:
    """The last depth, pairs a <= b in each pair of input axes."""
    last = array[-1]
    a, b = np.triu_indices(last.shape[0])
    for slot in range(slots):
        last = np.moveaxis(np.moveaxis(last, (slot, slot + 1), (0, 1))[a, b], 0, slot)
    return last


def check(fit: Any, power: int, theory: np.ndarray, slots: int, relative: float) -> tuple[np.ndarray, np.ndarray]:
    """z-scores below 3 and standard errors within `relative` of the theory: the estimate and its standard error."""
    estimate = fit.coefficient(power)
    mean, error, exact = packed(estimate.mean, slots), packed(estimate.se, slots), packed(theory, slots)
    z = (mean - exact) / error
    print(f"n^-{power}: z {np.round(np.ravel(z), 2)}, relative errors {np.round(np.ravel(error / np.abs(exact)), 4)}")
    print(f"goodness of fit p >= {fit.p_value[-1].min():.2g}")
    assert np.abs(z).max() < 3
    assert (error <= relative * np.abs(exact)).all()
    return mean, error


@pytest.mark.parametrize("name", NAMES)
def test_leading_covariance_and_mean(name):
    theory, simulation = run(name)
    assert max(z.max() for z in simulation.control_z.values()) < 4.5
    wrong_covariance, wrong_shift = kernel_only(simulation)
    terms = min(3, len(simulation.widths))
    fit = simulation.fit("covariance", "G", terms=terms, linked=True)
    mean, error = check(fit, 0, theory.covariance("G", "G"), 2, 0.01)
    assert (np.abs(mean - wrong_covariance) / error).max() > 5
    fit = simulation.fit("mean", "G", terms=terms, linked=True)
    mean, error = check(fit, 0, theory.mean("G", 1), 1, 0.05)
    assert (np.abs(mean - wrong_shift[np.arange(len(mean))]) / error).min() > 5
    for first, second in (("G", "S"), ("S", "S")):
        fit = simulation.fit("covariance", first, second, terms=terms, linked=True)
        check(fit, 0, theory.covariance(first, second), 2, np.inf)
    check(simulation.fit("mean", "S", terms=terms, linked=True), 0, theory.mean("S", 1), 1, np.inf)


@pytest.mark.parametrize("name", NAMES)
def test_leading_covariance_without_knowledge_of_the_response(name):
    """The plain fit of n Cov and n (E G - K_0), in which nothing is known but the powers of 1/n."""
    theory, simulation = run(name)
    terms = min(3, len(simulation.widths))  # the covariance of GELU has a visible term of order 1/n^2
    fit = simulation.fit("covariance", "G", terms=terms)
    assert np.abs(packed(fit.coefficient(0).z(theory.covariance("G", "G")), 2)).max() < 4
    fit = simulation.fit("mean", "G", terms=terms)
    assert np.abs(packed(fit.coefficient(0).z(theory.mean("G", 1)), 1)).max() < 4


@pytest.mark.parametrize("name", HIGHER)
def test_next_orders(name):
    theory, simulation = run(name)
    fast = name.startswith("fast")
    terms = min(3, len(simulation.widths))
    fit = simulation.fit("covariance", "G", terms=terms, linked=True)
    check(fit, 1, theory.covariance("G", "G", order=1), 2, 0.15)
    fit = simulation.fit("third_cumulant", "G", terms=terms - fast)
    check(fit, 0, theory.third_cumulant("G"), 3, 0.15)
    which = CASES[name].second_mean
    fit = simulation.fit("mean", which, terms=terms - fast, linked=True)
    check(fit, 1, theory.mean(which, 2), 1, 0.15)


def parts(theory: LayeredExpansion, groups: Mapping[str, LayeredSum]) -> dict[str, np.ndarray]:
    """The values for G of sums of diagrams of V_4 at order 1/n, evaluated as `expand` does."""
    outputs = [Output(name, total) for name, total in groups.items()]
    program = Program.of(outputs, theory.network.drive.degree, theory.program.plan.sizes)
    arrays, lines, _ = arrays_of(theory.network, theory.source, program.arrays, program.later_only)
    place = theory.functions.place("G")
    return {name: value[:, place, place] for name, value in evaluate(program, {**arrays, **lines}).items()}


@pytest.mark.parametrize("name", HIGHER)
def test_dropped_diagrams_are_rejected(name):
    """V_4 at order 1/n without the diagrams with response loops, or without one of them, contradicts the simulation."""
    theory, simulation = run(name)
    total = cumulant_terms(2, 1)
    groups = {
        "loops": total.where(lambda term: term.diagram.response_cycle is not None),
        "others": total.where(lambda term: term.diagram.response_cycle is None),
        "loop_at_one_vertex": total.where(lambda term: term.vertices == ((1, 3),)),
    }
    assert [len(group) for group in groups.values()] == [9, 15, 1]
    values = parts(theory, groups)
    exact = theory.covariance("G", "G", order=1)
    np.testing.assert_allclose(values["loops"] + values["others"], exact.ravel(), rtol=1e-8, atol=1e-12)
    fit = simulation.fit("covariance", "G", terms=min(3, len(simulation.widths)), linked=True)
    estimate, error = (np.ravel(array)[-1] for array in (fit.coefficient(1).mean, fit.coefficient(1).se))
    for dropped in ("loops", "loop_at_one_vertex"):
        z = (estimate - (exact.ravel() - values[dropped])[-1]) / error
        print(f"without {dropped}: z {z:.1f}")
        assert abs(z) > 3
