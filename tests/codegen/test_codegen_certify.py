"""Certificates: what is right passes, what is corrupted, cancels or is ill-conditioned is reported as such."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import sympy as sp
from codegen_kernel_set import golden_specification, tensor_kernels

from codegen import GenerationError, ModuleSpec, generate
from codegen.certificate import CancellationWarning, Certificate
from codegen.certify import certify
from codegen.certify_points import Interval, domain_of, sample_points
from symtensor.kernels import Argument, Assignment, CompositeKernel, Kernel, ScalarKernel, ScanKernel

x, y = sp.symbols("x y", real=True)


def scalar(name: str = "f", **outputs: sp.Expr) -> ScalarKernel:
    names = sorted({symbol.name for expr in outputs.values() for symbol in expr.free_symbols})
    return ScalarKernel(name, tuple(map(Argument, names)), tuple(outputs.items()))


def module_of(*kernels: Kernel, **options):  # type: ignore[no-untyped-def]
    return generate(ModuleSpec("m", "M.", kernels, reference_points=False, **options))


def certified(expr: sp.Expr, n_points: int = 24, **options) -> Certificate:  # type: ignore[no-untyped-def]
    return certify(module_of(scalar(out=expr)), n_points, **options)


@pytest.mark.parametrize(
    "expr",
    [sp.tanh(x * y) + sp.exp(-(x**2)), (1 + x * y) / (1 + x**2 + y**2), (sp.exp(x) - 1) / x, sp.erf(x) * sp.log(1 + y**2)], ids=str,
)  # fmt: skip
def test_good_code_is_certified(expr: sp.Expr) -> None:
    certificate = certified(expr)
    assert certificate.passed, str(certificate)
    assert certificate.cancellations == ()
    for dtype, limit in (("float64", 1e-13), ("float32", 1e-4)):
        for gradients in (False, True):
            worst = certificate.worst(dtype, gradients)  # type: ignore[arg-type]
            assert worst is not None and 0 <= worst.error < limit and worst.count >= 8
    names = {part.quantity for part in certificate.measured}
    assert names == {"f.out", *(f"d f.out / d {symbol.name}" for symbol in expr.free_symbols)}


@pytest.mark.parametrize(
    ("old", "new"), [("jnp.tanh(x * y)", "jnp.tanh(x + y)"), ("jnp.exp(-x**2)", "(1 + 1e-9) * jnp.exp(-x**2)")]
)
def test_corrupted_code_fails_with_its_point(old: str, new: str) -> None:
    module = module_of(scalar(out=sp.tanh(x * y) + sp.exp(-(x**2))))
    assert old in module.source
    certificate = certify(dataclasses.replace(module, source=module.source.replace(old, new)), 24)
    assert not certificate.passed
    worst = certificate.worst()
    assert worst is not None and worst.failures and set(worst.failures[0].point) == {"x", "y"}
    assert "FAILED f.out in float64: error" in str(certificate)


def test_a_wrong_derivative_rule_fails_although_the_values_are_right() -> None:
    module = module_of(scalar(out=1 - sp.tanh(x) ** 2))
    assert "-2 * jnp.tanh(x) * value * dx" in module.source
    bad = dataclasses.replace(module, source=module.source.replace("-2 * jnp.tanh(x) * value", "-3 * jnp.tanh(x) * value"))
    certificate = certify(bad, 16, dtypes=("float64",))
    assert {part.quantity: part.passed for part in certificate.measured} == {"f.out": True, "d f.out / d x": False}
    assert certify(bad, 16, gradient=False).passed


def test_naive_code_of_a_removable_singularity_fails() -> None:
    """The text that a plain printer emits: 0/0 at 0, and a gradient without digits near it."""
    module = module_of(scalar(out=(sp.exp(x) - 1) / x))
    start, end = module.source.index("    t0 = "), module.source.rindex("\n")
    naive = module.source[:start] + "    return (jnp.exp(x) - 1) / x" + module.source[end:]
    certificate = certify(dataclasses.replace(module, source=naive), 24, dtypes=("float64",))
    value, slope = certificate.measured
    assert value.error == np.inf and value.failures[0].point == {"x": 0.0} and value.failures[0].expected == "1.0"
    assert sum(failure.relative > 1e-3 for failure in slope.failures) >= 2
    assert any("limit (0/0 in the input) at 1 points" in note for note in certificate.notes)


def test_ill_conditioned_points_are_reported_not_hidden() -> None:
    """sin(1000 x^3): the argument is rounded, so the error is eps times the condition number, which is 1e6."""
    certificate = certified(sp.sin(1000 * x**3), 40, dtypes=("float64",))
    (value, slope) = certificate.measured
    assert certificate.passed
    assert len(value.ill_conditioned) > 2
    for point in value.ill_conditioned:
        assert point.condition > 100 and value.tolerance < point.relative <= point.allowed
    assert value.error < 1e-12 and "ill-conditioned: f.out in float64 at" in str(certificate)
    assert slope.ill_conditioned


def test_cancellation_is_a_warning_that_names_the_step() -> None:
    polynomial = sp.expand((x - 1) ** 8)
    with pytest.warns(CancellationWarning, match=r"f\.out loses .* digits in .*x"):
        certificate = certified(polynomial, dtypes=("float64",), domain={"x": (0.5, 1.5)})
    assert certificate.cancellations[0].digits_lost > 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert certified(sp.factor(polynomial), dtypes=("float64",), domain={"x": (0.5, 1.5)}).passed


def test_poles_are_left_out_and_counted() -> None:
    certificate = certified(sp.log(x) / y, dtypes=("float64",))
    assert certificate.passed
    assert any("f.out: " in note and "pole, or outside the domain" in note for note in certificate.notes)
    kinked = certified(sp.Max(x, 0) * y, dtypes=("float64",))
    assert kinked.passed and any("kinks" in note for note in kinked.notes)


def test_domain_comes_from_assumptions_and_declarations() -> None:
    p, n = sp.Symbol("p", positive=True), sp.Symbol("n", integer=True, nonnegative=True)
    kernel = scalar(out=sp.log(p) * n + x)
    found = domain_of(kernel, {"x": (2, 3)})
    assert (found["p"].low, found["p"].open_low, found["n"].low, found["n"].integer) == (0.0, True, 0.0, True)
    points = [point for point, _ in zip(sample_points(found, 0), range(200))]
    assert all(point["p"] > 0 and point["n"] == round(point["n"]) >= 0 and 2 <= point["x"] <= 3 for point in points)
    assert min(point["p"] for point in points) < 1e-3 < 10 < max(point["p"] for point in points)
    certificate = certify(module_of(kernel), 16, domain={"x": (2, 3)}, dtypes=("float64",))
    assert (
        certificate.passed and "f: x in [2, 3]" in certificate.domain and not any("left out" in note for note in certificate.notes)
    )


def test_points_are_numbers_of_their_type() -> None:
    for point, _ in zip(sample_points({"x": Interval("x", 0.1, 0.7)}, 0, "float32"), range(60)):
        assert point["x"] == float(np.float32(point["x"])) and 0.1 <= point["x"] <= 0.7
    first, again = ([p for p, _ in zip(sample_points({"x": Interval("x")}, 3), range(9))] for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"digits": 10}, "at least 20 digits"), ({"n_points": 0}, "at least 20 digits and 1 point"),
        ({"domain": {"z": (0, 1)}}, "domain of z"),
        ({"domain": {"x": (1, 1)}}, "low < high"), ({"domain": {"x": (0, float("inf"))}}, "finite numbers"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(GenerationError, match=message):
        certified(sp.exp(x), **options)


def test_other_objects_and_empty_domains_are_refused() -> None:
    with pytest.raises(TypeError, match="got str"):
        certify("not a module")
    with pytest.raises(GenerationError, match=r"no output has a real finite value .*pass domain"):
        certified(sp.log(x), domain={"x": (-3, -1)})


def test_anything_with_a_module_can_be_certified() -> None:
    @dataclasses.dataclass
    class Holder:
        module: object

    assert certify(Holder(module_of(scalar(out=sp.exp(x)))), 8, dtypes=("float64",)).passed


def test_text_and_table() -> None:
    certificate = certified(sp.exp(x), 8)
    assert str(certificate).startswith("certificate of m: passed against 30 digits")
    assert certificate._repr_html_().count("<tr>") == 1 + len(certificate.measured)


# -- kernels of arrays -------------------------------------------------------------------------------------------------


def small_hierarchy() -> tuple[Kernel, ...]:
    step = CompositeKernel(
        "layer", (Argument("a"), Argument("b")), (Assignment(("c", "d"), "f", ("a", "b")),), (Argument("c"), Argument("d"))
    )
    return (
        scalar(c=sp.tanh(sp.Symbol("a", real=True)) / 2 + sp.Symbol("b", real=True), d=sp.cos(sp.Symbol("b", real=True))),
        step,
        ScanKernel("loop", "layer", (("a", "c"), ("b", "d"))),
    )


def test_tensors_composites_and_loops_are_certified() -> None:
    tensors = tuple(kernel for kernel in tensor_kernels() if kernel.name in ("V4_transport", "U1_model"))
    certificate = certify(module_of(*tensors, *small_hierarchy()), 8, dtypes=("float64",))
    assert certificate.passed, str(certificate)
    quantities = {part.quantity for part in certificate.measured}
    assert {
        "V4_transport",
        "d V4_transport in reverse",
        "layer.c",
        "d layer in reverse",
        "loop.a",
        "d loop.b along a direction",
    } <= quantities
    assert max(part.error for part in certificate.measured if part.dtype == "float64") < 1e-14


@pytest.mark.parametrize(
    ("old", "new"), [('_broadcast("ba->abef", m20)', '_broadcast("ab->abef", m20)'), ("0.25 * V4_aabb", "0.2500000001 * V4_aabb")]
)
def test_corrupted_tensor_code_fails(old: str, new: str) -> None:
    module = module_of(*(kernel for kernel in tensor_kernels() if kernel.name in ("V4_transport", "U1_model")))
    assert old in module.source
    bad = dataclasses.replace(module, source=module.source.replace(old, new))
    certificate = certify(bad, dtypes=("float64",))
    assert not certificate.passed and not all(part.passed for part in certificate.measured if part.quantity.startswith("d "))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erf_closed", "relu_closed", "tanh_inside"])
def test_golden_modules_are_certified(name: str) -> None:
    """Moments, layers, loops and an ode: error at most 1e-12 in float64, gradients included."""
    certificate = certify(generate(golden_specification(name)))
    assert certificate.passed, str(certificate)
    errors = [part.error for part in certificate.measured if part.dtype == "float64" and "continuous" not in part.quantity]
    assert max(errors) < 1e-12
