"""From a request to numbers: choose the quadrature rule, generate the module, evaluate it, and estimate the error.

The rule is chosen at kernels that the network is expected to pass through, the recursion is run, and the choice is
judged again at the kernels it did pass through. The error of the outputs comes from a second run with a finer rule.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from codegen import GeneratedModule, ModuleSpec, generate
from derivations.resnet_kernel.kernels import kernels
from derivations.resnet_kernel.request import Request
from derivations.resnet_kernel.steps import steps
from symtensor.derivation.inputs import Inputs
from symtensor.expansion.gaussian import closed_form
from symtensor.numerics.moments import moment_table
from symtensor.numerics.quadrature import QuadratureNotConverged, RuleChoice, choose_rule, rule_error
from symtensor.numerics.rules import CLOSED, Rule

__all__ = ["Continuous", "KernelDiverged", "Theory", "continuous_depth", "solve"]

#: rounds of choosing the rule at the kernels of the last run
_ROUNDS = 4
_RECORDS = ("K0", "V4", "K1", "U1_model", "K1_source", "K1_transport", "V4_source", "V4_transport", "ES", "J")


class KernelDiverged(ValueError):
    """The kernel leaves the range of floating-point numbers at some layer."""


@dataclass(frozen=True, slots=True)
class Theory:
    """The hierarchy over depth 0..L: every array has the depth first.

    `choice` is the quadrature in use with the error of its moments at these kernels; `output_error` the largest
    relative deviation of K0, V4, K1 from a run with a finer (for a forced rule: a converged) rule. `leading` is the
    converged theory, which differs from this one only under a forced rule.
    """

    arrays: dict[str, np.ndarray]
    choice: RuleChoice
    output_error: float
    module: GeneratedModule
    leading: dict[str, np.ndarray]
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> np.ndarray:
        return self.arrays[key]


@dataclass(frozen=True, slots=True)
class Continuous:
    """The continuous-depth solution at the times of the layers; `failure` says why there is none."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    failure: str = ""


def solve(request: Request) -> Theory:
    """Evaluate the hierarchy for `request`.

    Raises
    ------
    KernelDiverged, NotSquareIntegrableError
        Naming the layer and the variance.
    QuadratureNotConverged
        When no rule reaches the tolerance.
    """
    first, place = _distinct_inputs(request.kernel)
    if len(first) < len(place):
        distinct = Inputs(request.kernel[np.ix_(first, first)], tuple(request.inputs.labels[a] for a in first), "")
        return _repeated(solve(replace(request, inputs=distinct)), first, place)
    return _automatic(request) if request.rule is None else _forced(request)


def _distinct_inputs(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first occurrence of each distinct input, which of them each input is): equal inputs have equal rows of K^0."""
    _, first, place = np.unique(kernel, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[np.ravel(place)]


def _repeated(theory: Theory, first: np.ndarray, place: np.ndarray) -> Theory:
    """The theory of all inputs from that of the distinct ones, so that equal inputs are equal bit by bit.

    The response J keeps its weight on the first of equal inputs: fluctuations of equal inputs are equal.
    """

    def spread(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        spreaded = {name: values[np.ix_(np.arange(len(values)), *[place] * (values.ndim - 1))] for name, values in arrays.items()}
        once = np.zeros(len(place))
        once[first] = 1.0
        return {**spreaded, "J": spreaded["J"] * once[:, None] * once}

    leading = spread(theory.leading)
    arrays = leading if theory.leading is theory.arrays else spread(theory.arrays)
    return replace(theory, arrays=arrays, leading=leading)


def _automatic(request: Request) -> Theory:
    expected, target = _expected_kernels(request), request.tol
    for _ in range(_ROUNDS):
        choice = choose_rule(request.activation, expected, target, request.derivatives)
        module, arrays = _evaluate(request, choice.rule, choice.derivatives)
        error = choice.error if choice.rule == CLOSED else max(choice.error, _moment_error(request, arrays, choice))
        if error <= request.tol:
            break
        expected, target = arrays["K0"], max(0.3 * target * request.tol / error, 1e-13)
    else:
        raise QuadratureNotConverged(
            f"the moments of {request.activation.name!r} along the layers are known to {error:.2g}, not {request.tol:.2g}",
            replace(choice, error=error), request.tol,
        )  # fmt: skip
    arrays["V4_one_mode"] = _one_mode(request, module, arrays)
    finer = _finer(choice.rule)
    output_error = choice.error
    if finer != choice.rule:
        output_error = _deviation(arrays, _evaluate(request, finer, choice.derivatives, final=False)[1])
    return Theory(arrays, replace(choice, error=error), output_error, module, arrays, _truncation_note(request, arrays))


def _forced(request: Request) -> Theory:
    """A rule that the user names is used as it is; how far it is off is measured against a converged run."""
    assert request.rule is not None
    derivatives = request.derivatives
    if derivatives == "auto":
        derivatives = "inside" if request.activation.smooth and request.rule.kind == "trapezoid" else "hermite"
    module, arrays = _evaluate(request, request.rule, derivatives)
    error = rule_error(request.activation, _thinned(arrays["K0"]), request.rule, derivatives)
    arrays["V4_one_mode"] = _one_mode(request, module, arrays)
    converged = _automatic(replace(request, rule=None, derivatives="auto"))
    output_error = _deviation(arrays, converged.arrays)
    choice = RuleChoice(request.rule, derivatives, error)
    notes = _truncation_note(request, arrays)
    if error > request.tol:
        notes += (
            f"quadrature not converged: {choice.rule} with derivatives {derivatives} gives the Gaussian moments along the "
            f"layers to {error:.2g} relative (asked: {request.tol:.2g}) and K_0, V_4, K_1 to {output_error:.2g}; "
            f"the converged rule is {converged.choice.rule} (--quadrature auto)",
        )
    return Theory(arrays, choice, output_error, module, converged.arrays, notes)


# -- evaluation ------------------------------------------------------------------------------------------------------


def generate_module(request: Request, rule: Rule, derivatives: str, final: bool = True) -> GeneratedModule:
    """The module of the derivation for one activation and quadrature rule."""
    shown = tuple(
        f"{equation.latex}" for step in steps() for equation in step.equations if equation.label not in ("Taylor", "remainder")
    )
    return generate(
        ModuleSpec(
            name="resnet_kernel",
            title="Kernel-only hierarchy of a pre-activation ResNet (K_0, V_4, K_1)",
            statement=f"Activation: sigma(x) = {request.activation.expr}. n Cov(G) = V_4, n (E G - K_0) = K_1 at order 1/n.",
            kernels=kernels(request.activation),
            equations=shown,
            citations=("Kawase & Ota, Collective Kernel EFT for Pre-activation ResNets, arXiv:2604.15742",),
            rule=rule,
            derivatives=derivatives,  # type: ignore[arg-type]
            reference_points=final,
        )
    )


def _evaluate(request: Request, rule: Rule, derivatives: str, final: bool = True) -> tuple[GeneratedModule, dict[str, np.ndarray]]:
    """Generate, load, and run the recursion over all layers."""
    import jax

    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError('float64 is off in JAX; call jax.config.update("jax_enable_x64", True) first')
    module = generate_module(request, rule, derivatives, final)
    result = _recursion(request, module, "hierarchy" if request.published else "hierarchy_exact")
    arrays = {name: np.array(getattr(result, name)) for name in _RECORDS}
    _require_valid(request, arrays)
    return module, arrays


def _recursion(request: Request, module: GeneratedModule, scan: str) -> Any:
    """Run one of the module's scans over all layers, from the Gaussian input layer."""
    import jax.numpy as jnp

    namespace = module.load()
    K0 = jnp.asarray(request.kernel, jnp.float64)
    return getattr(namespace, scan)(
        K0, namespace.V4_initial(K0), jnp.zeros_like(K0), request.c_w, request.c_b, request.alpha, request.dt,
        depth=request.depth,
    )  # fmt: skip


def _one_mode(request: Request, module: GeneratedModule, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """V_4 of the same closure with the step exact in dt (at alpha = 1 the published step keeps the first order only)."""
    if not request.published:
        return arrays["V4"]
    return np.array(_recursion(request, module, "hierarchy_exact").V4)


def _truncation_note(request: Request, arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Says how much of V_4 the published step leaves out, where that is visible."""
    exact, published = arrays["V4_one_mode"][-1], arrays["V4"][-1]
    size = float(np.max(np.abs(exact)))
    missing = float(np.max(np.abs(exact - published))) / size if size else 0.0
    if missing < 0.01:
        return ()
    return (
        f"at alpha = 1 V4_kernel_only is the published explicit step, first order in dt = {request.dt:g}: at the last layer it "
        f"differs by {missing:.0%} from the same closure with the step exact in dt (V4_one_mode); that part of the "
        "difference to simulation is not the closure's",
    )


def _require_valid(request: Request, arrays: dict[str, np.ndarray]) -> None:
    """Square integrability and finiteness at every layer, first layer first."""
    variances = np.diagonal(arrays["K0"], axis1=1, axis2=2)
    critical = float(request.activation.critical_variance)
    for layer, row in enumerate(variances):
        if not np.isfinite(row).all():
            before = float(np.max(variances[max(layer - 1, 0)]))
            raise KernelDiverged(
                f"K_0 is not finite at layer {layer} (largest variance a layer before: {before:.4g}); "
                "lower --depth, --dt, --c-w or the input kernel"
            )
        if np.max(row) >= critical:
            request.activation.require_square_integrable(float(np.max(row)), f"layer {layer}")
    for name in ("V4", "K1"):
        finite = np.isfinite(arrays[name]).reshape(len(variances), -1).all(axis=1)
        if not finite.all():
            layer = int(np.argmin(finite))
            raise KernelDiverged(
                f"{name} is not finite at layer {layer} (variance {np.max(variances[layer]):.4g}); lower --depth, --dt or --c-w"
            )


def continuous_depth(request: Request, module: GeneratedModule, t: np.ndarray) -> Continuous:
    """Integrate the rates at the times of the layers, if continuous depth exists for this network."""
    if request.gamma is None:
        return Continuous(failure=(
            f"alpha = {request.alpha!r} has no continuous-depth limit: theory_ode needs alpha = 1, or alpha^2 = 1 - gamma dt "
            "with --gamma given"
        ))  # fmt: skip
    import jax.numpy as jnp

    namespace = module.load()
    K0 = jnp.asarray(request.kernel, jnp.float64)
    result = namespace.continuous(
        K0, namespace.V4_initial(K0), jnp.zeros_like(K0), request.c_w, request.c_b, request.gamma, ts=jnp.asarray(t)
    )
    if not bool(result.success):
        return Continuous(failure="the integration in continuous depth did not reach the last layer")
    return Continuous({name: np.array(getattr(result, name)) for name in ("K0", "V4", "K1")})


# -- the rule --------------------------------------------------------------------------------------------------------


def _expected_kernels(request: Request) -> np.ndarray:
    """Kernels about where the layers will be: at most 33 steps of the K_0 recursion with a rough rule."""
    if closed_form(request.activation) is not None:
        return request.kernel[None]  # no nodes to choose
    count = min(request.depth, 32)
    stride = request.depth / count
    rule = Rule("trapezoid", 161) if request.activation.smooth else Rule("split", 12)
    found = [request.kernel]
    for _ in range(count):
        K = found[-1]
        variances = np.diag(K)
        a, b = np.meshgrid(variances, variances, indexing="ij")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            table = moment_table(request.activation, a, K, b, rule, "hermite", orders=((0, 0),))
            drive = request.c_b + request.c_w * table[0, 0]
            K = K + stride * ((request.alpha**2 - 1) * K + request.dt * drive)
        usable = np.isfinite(K).all() and np.max(np.diag(K)) < min(float(request.activation.critical_variance), 1e12)
        if not usable or np.linalg.eigvalsh(K)[0] < -1e-12 * np.trace(K):
            break  # a rough step too far: the rule is judged again at the true kernels
        found.append(K)
    return np.stack(found)


def _moment_error(request: Request, arrays: dict[str, np.ndarray], choice: RuleChoice) -> float:
    return rule_error(request.activation, _thinned(arrays["K0"]), choice.rule, choice.derivatives)


def _thinned(kernels_of_layers: np.ndarray, count: int = 48) -> np.ndarray:
    """At most `count` layers, evenly spread, both ends included."""
    index = np.unique(np.linspace(0, len(kernels_of_layers) - 1, count).round().astype(int))
    return kernels_of_layers[index]


def _finer(rule: Rule) -> Rule:
    """A rule with a third more nodes per unit length and a longer range; a closed form has none."""
    if rule.kind == "trapezoid":
        return Rule("trapezoid", 2 * int(0.75 * rule.n) + 1, 1.12 * rule.radius)
    if rule.kind == "split":
        return Rule("split", rule.n + 8, 1.12 * rule.radius)
    return rule


def _deviation(arrays: dict[str, np.ndarray], reference: dict[str, np.ndarray]) -> float:
    """Largest deviation over depth, relative to the size of the quantity (of K_0 where K_1 all but vanishes)."""
    floor = {"K0": 0.0, "V4": 0.0, "K1": 1e-3 * float(np.max(np.abs(reference["K0"])))}
    worst = 0.0
    for name, least in floor.items():
        scale = max(float(np.max(np.abs(reference[name]))), least)
        worst = max(worst, float(np.max(np.abs(arrays[name] - reference[name]))) / scale if scale else 0.0)
    return worst
