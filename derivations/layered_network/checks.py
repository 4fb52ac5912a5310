"""Numerical second routes for the steps of the derivation: closed forms and recursions that use no diagram."""

from __future__ import annotations

from functools import cache

import numpy as np
import sympy as sp

from derivations.layered_network.closure import one_time_by_rule, wick
from derivations.layered_network.theory import Exact, baseline, exact_theory, mode_parts
from symtensor.activation import activation
from symtensor.derivation.model import CheckOutcome
from symtensor.fields.layered import LayeredNetwork, cumulant_terms, expand
from symtensor.fields.layered.lines import line_arrays
from symtensor.numerics.rules import Rule

__all__ = [
    "EXAMPLE",
    "closed_form",
    "closed_form_agrees",
    "counts",
    "example",
    "linear_third_cumulant",
    "mlp_agrees",
    "mlp_by_recursion",
    "one_mode_agrees",
    "response_agrees",
    "variance_chain",
]  # fmt: skip

EXAMPLE = {"c_w": 1.5, "c_b": 0.1, "alpha": 0.8, "dt": 0.4, "depth": 5, "kernel": 1.3}
MEMORY_MB = 2000.0
#: all, causal, sum of weights 1/|Aut| of the causal ones, by (legs, loops)
COUNTS = {(1, 1): (3, 2), (3, 0): (7, 7), (2, 1): (33, 24), (1, 2): (93, 38)}
WEIGHTS = {(1, 1): "3/2", (3, 0): "7", (2, 1): "37/2", (1, 2): "269/12"}


@cache
def example() -> Exact:
    """A leaky tanh network with one input, to order 1/n."""
    return exact_theory(LayeredNetwork.single("tanh", **EXAMPLE), 1, 1e-9, MEMORY_MB)


def _close(name: str, found: np.ndarray, expected: np.ndarray, tolerance: float) -> CheckOutcome:
    scale = float(np.max(np.abs(expected)))
    gap = float(np.max(np.abs(found - expected))) / (scale or 1.0)
    return CheckOutcome(gap < tolerance, f"{name}: largest difference {gap:.1e} of {scale:.6g}")


def _both(first: CheckOutcome, second: CheckOutcome) -> CheckOutcome:
    return CheckOutcome(first.passed and second.passed, f"{first.detail}; {second.detail}")


# -- vertices and lines ------------------------------------------------------------------------------------------------


def variance_chain() -> CheckOutcome:
    """dK_m/dS_k of the recursion K' = alpha^2 K + dt Sigma(S), by differentiation, against dt alpha^{2(m-1-k)} dSigma/dS."""
    alpha, dt, c_w, c_b = sp.symbols("alpha dt C_W C_b", positive=True)
    means = sp.symbols("S0:4")
    variances = [sp.Symbol("K0")]
    for mean in means:
        variances.append(alpha**2 * variances[-1] + dt * (c_b + c_w * mean))
    wrong = [
        (m, k)
        for m, variance in enumerate(variances)
        for k, mean in enumerate(means)
        if sp.expand(sp.diff(variance, mean) - (dt * c_w * alpha ** (2 * (m - 1 - k)) if k < m else 0)) != 0
    ]
    return CheckOutcome(not wrong, f"{len(variances) * len(means)} derivatives" + (f", wrong: {wrong}" if wrong else ""))


def response_agrees() -> CheckOutcome:
    """R summed over the layers of a uniform source against the finite difference of the order n^0 recursion in C_b."""
    exact, step = example(), 1e-4
    network = exact.network
    lines = line_arrays(
        network, exact.expansion.means[:, :1], exact.expansion.slope, exact.paths.cumulants((0, 0)).values, ["R_EF", "R_CC"]
    )
    shift = network.dt * np.array([sum(network.alpha ** (2 * i) for i in range(l)) for l in range(network.depth + 1)])
    direct = exact.expansion.slope[:, 0, 0] * shift  # what a uniform change of C_b does to E[h] before it feeds back
    predicted = lines["R_CC"][:, 0, :, 0] @ direct
    around = []
    for sign in (1, -1):
        moved = LayeredNetwork.single("tanh", **{**EXAMPLE, "c_b": EXAMPLE["c_b"] + sign * step})
        around.append(_leading(moved))
    return _close("response of E S to C_b", predicted, (around[0] - around[1]) / (2 * step), 1e-6)


def _leading(network: LayeredNetwork) -> np.ndarray:
    from symtensor.numerics.path import leading_order

    functions = network.functions()
    return leading_order(
        functions.functions, 1, network.drive, network.alpha, network.dt, network.depth, network.kernel, tol=1e-12
    ).means[:, 0]


def counts() -> CheckOutcome:
    """Numbers of diagrams and sums of weights, with and without the pruning rule."""
    from symtensor.diagrams import enumerate_diagrams

    found, right = [], True
    for (legs, loops), expected in COUNTS.items():
        everything = sum(1 for _ in enumerate_diagrams("layered-network", f"s:{legs}", loops, causality="none"))
        total = cumulant_terms(legs, loops)
        found.append(f"E = {legs}, loops {loops}: {everything} diagrams, {len(total)} causal, weight {total.weight}")
        right &= (everything, len(total)) == expected and str(total.weight) == WEIGHTS[legs, loops]
    return CheckOutcome(right, "; ".join(found))


# -- order 1/n by closed forms (one input) ------------------------------------------------------------------------------


def closed_form(exact: Exact) -> dict[str, np.ndarray]:
    """V_4, U_1 and K_1 of one input by the two-time formulas: a recursion for the accumulated drive, no R and no diagram."""
    network, paths = exact.network, exact.paths
    layers = network.depth + 1
    c, later = paths.cumulants((0, 0)).values, paths.cumulants((0, 1), True).values[..., 0]
    h, g = 0, exact.expansion.functions.place("G")
    slope, curvature = paths.cumulants((1,)).values[:, h, 0], paths.cumulants((2,)).values[:, h, 0, 0]
    strength = network.dt * network.branches[0].c_w
    gam = np.zeros((layers, layers))  # X_t = sum_k gam[t, k] M_k
    for t in range(layers - 1):
        gam[t + 1] = (network.alpha**2 + strength * slope[t]) * gam[t]
        gam[t + 1, t] += strength
    drive = gam @ c[:, h, :, h] @ gam.T
    cross = gam @ c[:, h, :, g]
    V4 = np.diagonal(c[:, g, :, g] + cross + cross.T + drive)
    K1, U1 = np.zeros(layers), np.zeros(layers)
    for t in range(layers):
        memory = later[:t, h, t, h] + slope[:t] * (gam[:t, :t] @ later[:t, h, t, h])
        age = network.alpha ** (2.0 * (t - 1 - np.arange(t)))
        U1[t] = strength * age @ memory + curvature[t] * drive[t, t] / 2
        if t < network.depth:
            K1[t + 1] = network.alpha**2 * K1[t] + strength * (slope[t] * K1[t] + U1[t])
    return {"V4": V4, "U1": U1, "K1": K1}


def closed_form_agrees(*names: str) -> CheckOutcome:
    """The diagrams against the closed forms."""
    exact = example()
    expected = closed_form(exact)
    outcomes = [_close(name, np.ravel(getattr(exact.part, name)), expected[name], 1e-11) for name in names]
    return CheckOutcome(all(each.passed for each in outcomes), "; ".join(each.detail for each in outcomes))


def one_mode_agrees() -> CheckOutcome:
    """The diagrams with Hermite degree 2 alone against the recursion of V_4 and K_1 that is exact in dt."""
    exact = example()
    truncated, recursion = mode_parts(exact)["2"], baseline(exact)["one_mode"]
    return _both(_close("V_4", truncated.V4, recursion.V4, 1e-8), _close("K_1", truncated.K1, recursion.K1, 1e-8))


# -- MLP ----------------------------------------------------------------------------------------------------------------

MLP = {"c_w": 1.2, "c_b": 0.0, "alpha": 0.0, "dt": 1.0, "depth": 3, "kernel": np.array([[1.2, 0.48], [0.48, 0.84]])}


def mlp_by_recursion(network: LayeredNetwork, name: str) -> tuple[np.ndarray, np.ndarray]:
    """V and K_1 over layers (components a <= b) by the recursions, with moments by the trapezoidal rule."""
    function, size = activation(name), network.inputs
    law = one_time_by_rule(network, function, Rule("trapezoid", 241, 9.0), "inside")
    c_w = network.branches[0].c_w
    V, K1 = [np.zeros((law.means.shape[1],) * 2)], [np.zeros(law.means.shape[1])]
    rows, columns = np.triu_indices(size)
    for K, mean, slope, curvature in zip(law.kernels, law.means, law.slope, law.curvature):
        four = _four(name, K)[rows, columns][:, rows, columns] - np.outer(mean, mean)
        source = np.einsum("cef,ef->c", curvature, V[-1]) / 2
        K1.append(c_w * (slope @ K1[-1] + source))
        V.append(c_w**2 * (four + slope @ V[-1] @ slope.T))
    return np.stack(V[:-1]), np.stack(K1[:-1])


def _four(name: str, K: np.ndarray) -> np.ndarray:
    """E[s_a s_b s_c s_d] by a tensor grid in whitened coordinates."""
    z, step = np.linspace(-9, 9, 201, retstep=True)
    grid = np.meshgrid(*[z] * len(K), indexing="ij")
    points = np.stack([each.ravel() for each in grid])
    weight = np.exp(-(points**2).sum(0) / 2) * (step / np.sqrt(2 * np.pi)) ** len(K)
    expression = activation(name).expr
    s = sp.lambdify(sorted(expression.free_symbols, key=str), expression, "numpy")
    values = s(np.linalg.cholesky(K) @ points)
    return np.einsum("az,bz,cz,dz,z->abcd", values, values, values, values, weight, optimize=True)


def mlp_agrees() -> CheckOutcome:
    """Diagrams of an MLP with two inputs against the recursions: V_4 = w + V, K_1."""
    network = LayeredNetwork.single("tanh", **MLP)
    exact = exact_theory(network, 1, 1e-8, MEMORY_MB)
    V, K1 = mlp_by_recursion(network, "tanh")
    rows, columns = np.triu_indices(network.inputs)
    w = np.stack([wick(K, K) / 2 for K in exact.expansion.kernels])
    packed = exact.part.V4[:, rows, columns][:, :, rows, columns]
    return _both(_close("V", packed - w, V, 1e-7), _close("K_1", exact.part.K1[:, rows, columns], K1, 1e-7))


# -- higher orders ------------------------------------------------------------------------------------------------------


def linear_third_cumulant() -> CheckOutcome:
    """The leading third cumulant of a linear network against its exact solution in rational numbers, which knows no diagrams."""
    from symtensor.fields.layered_exact import ExactLinearNetwork

    depth = 3
    network = LayeredNetwork.single("identity", c_w=1, c_b=0.25, alpha=1, dt=0.5, depth=depth, kernel=1.0)
    expansion = expand(network, 2, {"G": "identity"}, quantities=("third_cumulant",), tol=1e-10)
    exact = ExactLinearNetwork(kernel=1, alpha=1, dt="1/2", c_w=1, bias="1/4", depth=depth)
    leading = exact.cumulant(*[(depth, 0, 0)] * 3)[0]
    return _close("n^2 kappa_3", np.ravel(expansion.third_cumulant("G")[-1]), np.array([float(leading)]), 1e-9)
