"""The kernels handed to the code generator: the derived equations, named, with the order in which a layer calls them."""

from __future__ import annotations

from functools import cache

from derivations.resnet_kernel.equations import AXES, K1, PAIR, V4, P, a, b, c, d, equations, m, response_table
from symtensor.activation import Activation, activation
from symtensor.kernels import (
    Argument,
    Assignment,
    CompositeKernel,
    Kernel,
    MomentKernel,
    OdeKernel,
    ScanKernel,
    TensorKernel,
)
from symtensor.tensor import Index, Tensor, TensorExpr

RANK2, RANK4 = ("P", "P"), ("P",) * 4
ARGUMENTS = {
    "K0": Argument("K0", RANK2, "kernel at infinite width"),
    "K1": Argument("K1", RANK2, "n (E G - K_0)"),
    "V4": Argument("V4", RANK4, "n Cov(G)"),
    "X4": Argument("X4", RANK4, "tensor whose first pair is carried"),
    "Q": Argument("Q", RANK2, "drive C_b + C_W E[sigma sigma]"),
    "C_W": Argument("C_W", (), "weight variance times n"),
    "C_b": Argument("C_b", (), "bias variance"),
    "alpha": Argument("alpha", (), "skip strength"),
    "dt": Argument("dt", (), "step of depth time"),
    "gamma": Argument("gamma", (), "leak: alpha^2 = 1 - gamma dt"),
}
MOMENTS = ((0, 0), (2, 0), (1, 1), (4, 0), (3, 1), (2, 2))


def _argument(name: str) -> Argument:
    return ARGUMENTS.get(name) or Argument(name, RANK2, "E[sigma^(i) sigma^(j)], weak derivatives")


_INCREMENTS = {
    "K1_transport": 2, "K1_source": 2, "V4_transport": 4, "V4_source": 4, "V4_half": 4, "V4_full": 4,
}  # fmt: skip


def _tensor_kernel(name: str, expression: TensorExpr, axes: tuple[Index, ...], title: str) -> TensorKernel:
    """A kernel whose arguments are exactly what its expression contains, arrays first."""
    symbols = sorted({str(s) for term in expression.terms for s in term.coefficient.free_symbols})
    names = [head.name for head in expression.heads] + symbols
    return TensorKernel(name, tuple(map(_argument, names)), expression, axes, title)


@cache
def tensor_kernels() -> dict[str, TensorKernel]:
    """Every tensor kernel of the module by name."""
    eq = equations()
    step = {name: Tensor(name, (P,) * rank) for name, rank in _INCREMENTS.items()}
    rank2, rank4 = PAIR, AXES

    def plus(state: Tensor, *increments: str) -> TensorExpr:
        axes = rank2 if state.rank == 2 else rank4
        return sum((step[name][axes] for name in increments), state[axes])

    table = [
        ("drive", eq["drive"], rank2, "Q(K_0) = C_b + C_W E[sigma sigma]"),
        ("ES", m(0, 0, a, b), rank2, "E[sigma_a sigma_b] at K_0"),
        ("J", response_table(), rank4, "response of E[sigma_a sigma_b] to K_cd"),
        ("K0_step", eq["K0_step"], rank2, "K_0 one layer on"),
        ("V4_transport", eq["V4_transport"], rank4, "published step: increment of V_4 carried by the mean, O(dt)"),
        ("V4_source", eq["V4_source"], rank4, "published step: increment of V_4 made by the noise, O(dt)"),
        ("V4_carry", eq["V4_carry"], (c, d, a, b), "alpha^2 + dt chi on the first pair, pairs exchanged"),
        ("V4_carried", step["V4_full"][rank4] - V4[rank4], rank4, "increment of V_4 carried by the mean, exact in dt"),
        ("V4_noise", eq["V4_noise"], rank4, "increment of V_4 made by the noise, exact in dt"),
        ("V4_step", plus(V4, "V4_transport", "V4_source"), rank4, "V_4 one layer on"),
        ("K1_transport", eq["K1_transport"], rank2, "increment of K_1 carried by the mean"),
        ("K1_source", eq["K1_source"], rank2, "increment of K_1 made by V_4 (kernel-only tadpole)"),
        ("K1_step", plus(K1, "K1_transport", "K1_source"), rank2, "K_1 one layer on"),
        ("U1_model", eq["U1_model"], rank2, "kernel-only source n (E S - E[sigma sigma]) - J K_1"),
        ("K0_rate", eq["K0_rate"], rank2, "dK_0/dt"),
        ("V4_rate", eq["V4_rate"], rank4, "dV_4/dt"),
        ("K1_rate", eq["K1_rate"], rank2, "dK_1/dt"),
        ("V4_initial", eq["V4_initial"], rank4, "n Cov(G) of a Gaussian input layer"),
    ]
    ARGUMENTS.update({name: Argument(name, RANK2 if head.rank == 2 else RANK4, "") for name, head in step.items()})
    return {name: _tensor_kernel(name, expression, axes, title) for name, expression, axes, title in table}


def _call(kernel: str, *targets: str, **renamed: str) -> Assignment:
    """A call with arguments of the same names; tables of moments come from the local `m`."""
    names = [argument.name for argument in tensor_kernels()[kernel].arguments]
    arguments = tuple(f"m.{name}" if name[0] == "m" and name[1:].isdigit() else renamed.get(name, name) for name in names)
    return Assignment(targets or (kernel,), kernel, arguments)


def _layer(name: str, title: str, covariance_calls: tuple[Assignment, ...]) -> CompositeKernel:
    """One layer; the two variants differ in how V_4 is carried and fed."""
    calls = (
        Assignment(("m",), "moments", ("K0",)),
        _call("drive", "Q"),
        _call("ES"), _call("J"), _call("K0_step", "K0_next"),
        *covariance_calls, _call("V4_step", "V4_next"),
        _call("K1_transport"), _call("K1_source"), _call("K1_step", "K1_next"), _call("U1_model"),
    )  # fmt: skip
    states = tuple(ARGUMENTS[key] for key in ("K0", "V4", "K1", "C_W", "C_b", "alpha", "dt"))
    rank2 = ("K0_next", "K1_next", "U1_model", "K1_source", "K1_transport", "ES")
    rank4 = ("V4_next", "V4_source", "V4_transport", "J")
    returns = tuple(Argument(key, RANK2) for key in rank2) + tuple(Argument(key, RANK4) for key in rank4)
    return CompositeKernel(name, states, calls, returns, title)


def kernels(function: Activation | None = None) -> tuple[Kernel, ...]:
    """Everything the generated module contains, in the order of definition."""
    state = (("K0", "K0_next"), ("V4", "V4_next"), ("K1", "K1_next"))
    published = (_call("V4_transport"), _call("V4_source"))
    exact = (
        _call("V4_carry", "V4_half", X4="V4"), _call("V4_carry", "V4_full", X4="V4_half"),
        _call("V4_carried", "V4_transport"), _call("V4_noise", "V4_source"),
    )  # fmt: skip
    rates = (
        Assignment(("m",), "moments", ("K0",)), _call("drive", "Q"),
        _call("K0_rate"), _call("V4_rate"), _call("K1_rate"),
    )  # fmt: skip
    flow_arguments = tuple(ARGUMENTS[key] for key in ("K0", "V4", "K1", "C_W", "C_b", "gamma"))
    flow_returns = (Argument("K0_rate", RANK2), Argument("V4_rate", RANK4), Argument("K1_rate", RANK2))
    return (
        MomentKernel("moments", function or activation("tanh"), MOMENTS, "weak Gaussian moments of the activation"),
        *tensor_kernels().values(),
        _layer("layer", "one layer of the published recursion (alpha = 1, first order in dt)", published),
        _layer("layer_exact", "one layer, exact in dt (any alpha)", exact),
        ScanKernel("hierarchy", "layer", state, "the published recursion over depth"),
        ScanKernel("hierarchy_exact", "layer_exact", state, "the recursion exact in dt over depth"),
        CompositeKernel("flow", flow_arguments, rates, flow_returns, "rates in continuous depth"),
        OdeKernel("continuous", "flow", (("K0", "K0_rate"), ("V4", "V4_rate"), ("K1", "K1_rate")), "continuous depth"),
    )
