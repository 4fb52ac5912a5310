"""A kernel hierarchy written by hand from the theory page, as input for the generator's tests."""

from __future__ import annotations

import sympy as sp

from codegen import ModuleSpec
from symtensor.activation import activation
from symtensor.kernels import (
    Argument,
    Assignment,
    CompositeKernel,
    Kernel,
    MomentKernel,
    OdeKernel,
    ScalarKernel,
    ScanKernel,
    TensorKernel,
)
from symtensor.numerics.rules import parse_rule
from symtensor.tensor import Dimension, SymmetryGroup, Tensor, TensorExpr, delta

P = Dimension("P")
a, b, c, d, e, f = P.indices("a b c d e f")
PAIR, FOUR = ("P", "P"), ("P", "P", "P", "P")
c_w, c_b, alpha, dt = sp.symbols("c_w c_b alpha dt", real=True)
K = Tensor("K0", (P, P), symmetry=SymmetryGroup.symmetric(2))
K1 = Tensor("K1", (P, P), symmetry=SymmetryGroup.symmetric(2))
Q = Tensor("Q0", (P, P), symmetry=SymmetryGroup.symmetric(2))
V = Tensor("V4", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric())
SYMMETRIC = {"m00", "m11", "m22"}
TABLES = {
    name: Tensor(name, (P, P), symmetry=SymmetryGroup.symmetric(2) if name in SYMMETRIC else None)
    for name in ("m00", "m20", "m11", "m40", "m31", "m22")
}
SOURCE = Tensor("source", (P, P), symmetry=SymmetryGroup.symmetric(2))
NOISE, TRANSPORT = Tensor("noise", (P,) * 4), Tensor("transport", (P,) * 4)
MOVED = Tensor("moved", (P, P))


def first_derivative(fluctuation) -> TensorExpr:  # type: ignore[no-untyped-def]
    """D E[h_ab][x] by Price's theorem; `fluctuation(i, j)` is the fluctuation of K_ij."""
    m20, m11 = TABLES["m20"], TABLES["m11"]
    return (
        m20[a, b] * fluctuation(a, a) + 2 * m11[a, b] * fluctuation(a, b) + m20[b, a] * fluctuation(b, b)
    ) / 2


def second_derivative() -> TensorExpr:
    """D^2 E[h_ab][V]."""
    m40, m31, m22 = TABLES["m40"], TABLES["m31"], TABLES["m22"]
    return (
        m40[a, b] * V[a, a, a, a] + 4 * m31[a, b] * V[a, a, a, b] + m22[a, b] * (2 * V[a, a, b, b] + 4 * V[a, b, a, b])
        + 4 * m31[b, a] * V[a, b, b, b] + m40[b, a] * V[b, b, b, b]
    ) / 4  # fmt: skip


def tensor_kernels() -> tuple[TensorKernel, ...]:
    """Every step of the hierarchy with alpha = 1."""
    ones = delta(a, a) * delta(b, b)
    transport = c_w * first_derivative(lambda i, j: V[i, j, e, f])
    swapped = transport.rename({a: e, b: f, e: a, f: b})
    noise = K[a, c] * Q[b, d] + K[a, d] * Q[b, c] + K[b, c] * Q[a, d] + K[b, d] * Q[a, c]
    A = _argument
    return (
        TensorKernel("Q", (A(c_w), A(c_b), A(TABLES["m00"])), c_b * ones + c_w * TABLES["m00"][a, b], (a, b), "Drive."),
        TensorKernel("K0_step", (A(alpha), A(dt), A(K), A(Q)), alpha**2 * K[a, b] + dt * Q[a, b], (a, b)),
        TensorKernel("V4_noise", (A(K), A(Q)), noise, (a, b, c, d), "Noise of one layer."),
        TensorKernel(
            "V4_transport", (A(c_w), A(TABLES["m20"]), A(TABLES["m11"]), A(V)), transport + swapped, (a, b, e, f)
        ),
        TensorKernel(
            "V4_step", (A(dt), A(V), A(TRANSPORT), A(NOISE)),
            V[a, b, c, d] + dt * (TRANSPORT[a, b, c, d] + NOISE[a, b, c, d]), (a, b, c, d),
        ),
        TensorKernel("U1_model", (A(TABLES["m40"]), A(TABLES["m31"]), A(TABLES["m22"]), A(V)), second_derivative() / 2, (a, b)),
        TensorKernel(
            "K1_transport", (A(c_w), A(TABLES["m20"]), A(TABLES["m11"]), A(K1)),
            c_w * first_derivative(lambda i, j: K1[i, j]), (a, b),
        ),
        TensorKernel(
            "K1_step", (A(dt), A(c_w), A(K1), A(MOVED), A(SOURCE)),
            K1[a, b] + dt * (MOVED[a, b] + c_w * SOURCE[a, b]), (a, b),
        ),
        TensorKernel(
            "drift", (A(c_w), A(MOVED), A(SOURCE)), MOVED[a, b] + c_w * SOURCE[a, b], (a, b)
        ),
        TensorKernel("V4_drift", (A(TRANSPORT), A(NOISE)), TRANSPORT[a, b, c, d] + NOISE[a, b, c, d], (a, b, c, d)),
    )  # fmt: skip


def _argument(value) -> Argument:  # type: ignore[no-untyped-def]
    if isinstance(value, Tensor):
        return Argument(value.name, tuple(str(dimension) for dimension in value.dimensions))
    return Argument(value.name)


STATE = (Argument("K0", PAIR, "mean kernel"), Argument("V4", FOUR, "covariance of the kernel, times n"), Argument("K1", PAIR))
COMMON = (
    Assignment(("m",), "moments", ("K0",)),
    Assignment(("Q0",), "Q", ("c_w", "c_b", "m.m00")),
    Assignment(("noise",), "V4_noise", ("K0", "Q0")),
    Assignment(("transport",), "V4_transport", ("c_w", "m.m20", "m.m11", "V4")),
    Assignment(("U1",), "U1_model", ("m.m40", "m.m31", "m.m22", "V4")),
    Assignment(("moved",), "K1_transport", ("c_w", "m.m20", "m.m11", "K1")),
)


def layer() -> CompositeKernel:
    """One layer."""
    return CompositeKernel(
        "layer",
        (*STATE, *map(Argument, ("c_w", "c_b", "alpha", "dt"))),
        (
            *COMMON,
            Assignment(("K0_next",), "K0_step", ("alpha", "dt", "K0", "Q0")),
            Assignment(("V4_next",), "V4_step", ("dt", "V4", "transport", "noise")),
            Assignment(("K1_next",), "K1_step", ("dt", "c_w", "K1", "moved", "U1")),
        ),
        (
            Argument("K0_next", PAIR), Argument("V4_next", FOUR), Argument("K1_next", PAIR), Argument("U1", PAIR),
        ),
        "One layer of the kernel-only hierarchy.",
    )  # fmt: skip


def flow() -> CompositeKernel:
    """The right-hand side in continuous depth."""
    return CompositeKernel(
        "flow",
        (*STATE, *map(Argument, ("c_w", "c_b"))),
        (
            *COMMON,
            Assignment(("V4_rate",), "V4_drift", ("transport", "noise")),
            Assignment(("K1_rate",), "drift", ("c_w", "moved", "U1")),
        ),
        (Argument("Q0", PAIR), Argument("V4_rate", FOUR), Argument("K1_rate", PAIR)),
    )


ORDERS = ((0, 0), (2, 0), (1, 1), (4, 0), (3, 1), (2, 2))


def hierarchy(name: str, *, ode: bool = False) -> tuple[Kernel, ...]:
    """All kernels of the hierarchy for an activation."""
    kernels: tuple[Kernel, ...] = (
        MomentKernel("moments", activation(name), ORDERS, "Weak Gaussian moments."),
        *tensor_kernels(),
        layer(),
        ScanKernel("hierarchy", "layer", (("K0", "K0_next"), ("V4", "V4_next"), ("K1", "K1_next")), "All layers."),
    )
    if not ode:
        return kernels
    carry = (("K0", "Q0"), ("V4", "V4_rate"), ("K1", "K1_rate"))
    return (*kernels, flow(), OdeKernel("continuous", "flow", carry, "The hierarchy in continuous depth."))


def scalar_kernel(name: str, arguments: str, **outputs: sp.Expr) -> ScalarKernel:
    """A scalar kernel of space-separated argument names."""
    return ScalarKernel(name, tuple(map(Argument, arguments.split())), tuple(outputs.items()))


def specification(name: str, rule: str, derivatives: str = "auto", *, ode: bool = False, **options) -> ModuleSpec:  # type: ignore[no-untyped-def]
    """The whole hierarchy of an activation as a specification."""
    parsed = parse_rule(rule)
    assert parsed is not None
    return ModuleSpec(
        name=options.pop("module", "hierarchy_module"),
        title=f"Kernel hierarchy of a residual network with activation {name}.",
        kernels=options.pop("kernels", None) or hierarchy(name, ode=ode),
        rule=parsed,
        derivatives=derivatives,  # type: ignore[arg-type]
        **options,
    )


def response(name: str) -> tuple[Kernel, ...]:
    """A small set: moments, drive, transport and tadpole."""
    wanted = ("Q", "K1_transport", "U1_model")
    tensors = tuple(kernel for kernel in tensor_kernels() if kernel.name in wanted)
    return (MomentKernel("moments", activation(name), ORDERS, "Weak Gaussian moments."), *tensors)


STATEMENT = """\
n Cov(G_ab, G_cd) = V_4 and n (E G - K_0) = K_1 at order 1/n, for
phi' = phi + sqrt(dt) eta,  eta | phi ~ N(0, C_b + C_W S),  S_ab = mean_i sigma(phi_a) sigma(phi_b)."""
EQUATIONS = (
    r"K_0' = K_0 + dt\,(C_b + C_W\,\mathrm{E}[\sigma\sigma])",
    r"V_4' = V_4 + dt\,(\chi V_4 + V_4 \chi^T + N)",
)
_GOLDEN = {
    "tanh_inside": ("tanh", "trapezoid:113@8.5", "inside", True),
    "tanh_hermite": ("tanh", "gh:32", "hermite", False),
    "relu_closed": ("relu", "closed", "auto", False),
    "erf_closed": ("erf", "closed", "auto", False),
    "gelu_inside": ("gelu", "trapezoid:113@8.5", "auto", False),
    "abs_split": ("Abs(x)", "split:12", "hermite", False),
}
GOLDEN = tuple(_GOLDEN)


def golden_specification(name: str) -> ModuleSpec:
    """The specification of one golden module; the first has everything, the others the small set."""
    activation_name, rule, derivatives, whole = _GOLDEN[name]
    kernels = hierarchy(activation_name, ode=True) if whole else response(activation_name)
    return specification(
        activation_name, rule, derivatives, module=name, kernels=kernels, statement=STATEMENT, equations=EQUATIONS,
        citations=("Kawase & Ota, Collective Kernel EFT for Pre-activation ResNets, arXiv:2604.15742",),
    )  # fmt: skip
