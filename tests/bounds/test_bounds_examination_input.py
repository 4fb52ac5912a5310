"""What users type: no text is evaluated as code, nothing hangs, and what is no scale, size or order is named."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest
import sympy

import symtensor.bounds
from symtensor.bounds import (
    Bound,
    Function,
    L,
    NetworkSum,
    RandomTensor,
    Scale,
    ScaleError,
    SizeParameter,
    apply,
    as_expr,
    bound,
    contract,
    contraction_cluster,
    deep_linear_network,
    fact,
    gaussian,
    iid_over,
    independent,
    iterate,
    known,
    max_over,
    minimal_bound,
    moment,
    moment_scale,
    power,
    scale,
    scaled,
    stochastic_taylor,
    sum_over,
    taylor_remainder,
)
from symtensor.bounds.network import GaussianNetwork, NetworkError
from symtensor.bounds.quantiles import QuantileError, QuantileFamily

SMALL = RandomTensor("D", facts=[known("1/n")])
FAMILY = RandomTensor("X", facts=[gaussian(), iid_over("k")], family={"k": "n"})
A = sympy.Symbol("a", real=True)
ENTRANCES = {
    "power": lambda s: power(SMALL, s),
    "L": L,
    "moment": lambda s: moment(s, 1),
    "max_over": lambda s: max_over(FAMILY, "k", moment=s),
    "point of a remainder": lambda s: taylor_remainder("exp(x)", SMALL, s, 1),
    "point of an expansion": lambda s: stochastic_taylor("exp(x)", SMALL, s),
    "growth": lambda s: apply("x", SMALL, growth=s),
    "growth of a function": lambda s: Function("f", None, s),
    "function": lambda s: apply(s, SMALL),
    "exponents": lambda s: scale("n^a", exponents={"a": s}),
    "power_of": lambda s: Scale.power_of("n", s),
    "power of a size": lambda s: SizeParameter("n") ** s,
    "power of a scale": lambda s: scale("n") ** s,
    "exponent in a regime": lambda s: scale("n^a", exponents={"a": A}).subs({"a": s}),
    "exponent in a value": lambda s: scale("n^a", exponents={"a": A}).evaluate({"n": 64, "a": s}),
    "scale": scale,
    "factor": lambda s: scaled(s, SMALL),
    "expression": as_expr,
    "expression in a list": lambda s: as_expr([s]),
    "expression in a tuple": lambda s: as_expr((s,)),
    "expression in a set": lambda s: as_expr({s}),
    "expression in an array": lambda s: as_expr(np.array([s])),
    "power in a tuple": lambda s: power(SMALL, (s,)),
    "size": lambda s: RandomTensor("x", {"i": s}),
    "limit": lambda s: bound(RandomTensor("x", facts=[fact("converges_to", number=s)])),
    "coefficient": lambda s: GaussianNetwork((("W", "i"),), {"i": "n"}, coefficient=s),
    "variance": lambda s: GaussianNetwork((("W", "i"),), {"i": "n"}, variances={"W": s}),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_text_is_never_evaluated(entrance, tmp_path):
    written = tmp_path / "written"
    for code in (f"__import__('pathlib').Path({str(written)!r}).touch()", f"open({str(written)!r}, 'w')"):
        with pytest.raises((ValueError, TypeError)):
            ENTRANCES[entrance](code)
    assert not written.exists()


def test_text_is_read_by_the_whitelist():
    assert power(SMALL, "1/2").data[0] == sympy.Rational(1, 2) and L("4").k == 4 and moment("3/2", 1).number == sympy.Rational(3, 2)
    assert SizeParameter("n") ** "1/2" == scale("sqrt(n)")


def test_the_package_evaluates_no_text():
    """sympify, nsimplify, parse_expr and S(..) run text as Python; strict sympify does in containers."""
    assert symtensor.bounds.__file__ is not None
    risky = re.compile(r"\b(sympify|nsimplify|parse_expr|lambdify|literal_eval|S)\(|(?<![.\w])(eval|exec)\(")
    lines = [
        f"{path.name}: {line.strip()}"
        for path in sorted(Path(symtensor.bounds.__file__).parent.rglob("*.py"))
        for line in path.read_text().splitlines()
        if risky.search(line)
    ]
    assert lines == ["_input.py: return sympy.sympify(value, strict=True)"]


# hangs


def shared(depth: int, step) -> object:
    expr = FAMILY.expr
    for _ in range(depth):
        expr = step(expr)
    return sum_over(expr, "k")


@pytest.mark.parametrize(
    ("depth", "step", "found"),
    [(40, lambda e: e + e, "sqrt(n)"), (60, lambda e: e * e, "n"), (60, lambda e: e + e, "n"), (45, lambda e: -(e + e), "sqrt(n)")],
)
def test_shared_nodes_are_decided_once(depth, step, found):
    begin = time.perf_counter()
    derived = bound(shared(depth, step))
    assert scale(found).within(derived.scale) and derived.scale.within("n")
    assert time.perf_counter() - begin < 5


def test_many_steps_are_one_power():
    begin = time.perf_counter()
    x = RandomTensor("x", facts=[known("n")])
    assert bound(iterate("x", x, 10**8)).scale == scale("n")
    assert bound(iterate("tanh(x)", x, 10**8)).scale == scale("1")
    assert bound(iterate("x^2", x, 3)).scale == scale("n^8")
    with pytest.raises(ValueError, match="64 steps"):
        bound(iterate("x^2", x, 10**8))
    assert time.perf_counter() - begin < 5


def test_products_of_maxima_are_refused_soon():
    begin = time.perf_counter()
    product = scale("1")
    with pytest.raises(ScaleError, match="relate the sizes"):
        for i in range(12):
            product = product * Scale.max(f"a{i}", f"b{i}")
    assert time.perf_counter() - begin < 4


# messages


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: taylor_remainder("exp(x)", SMALL, 0, 0.5), ValueError, "integer >= 0"),  # type: ignore[arg-type]
        (lambda: taylor_remainder("exp(x)", SMALL, 0, -2), ValueError, "integer >= 0"),
        (lambda: apply("x", SMALL, growth=float("nan")), ValueError, "not finite"),
        (lambda: apply("x", SMALL, growth=-1), ValueError, "growth is k >= 0"),
        (lambda: SizeParameter("log"), ScaleError, "function or constant"),
        (lambda: SizeParameter("loglog"), ScaleError, "function or constant"),
        (lambda: RandomTensor("x", {"i": "1/n"}), ValueError, "tends to 0"),
        (lambda: RandomTensor("x", family={"k": "1/n"}), ValueError, "tends to 0"),
        (lambda: RandomTensor("x", {"i": 0.5}), ValueError, "positive integer"),
        (lambda: RandomTensor("x", {"i": "1/2"}), ValueError, "positive integer"),
        (lambda: RandomTensor("x", {"i": sympy.Rational(1, 2)}), ValueError, "positive integer"),
        (lambda: deep_linear_network("log(n)"), NetworkError, "fixed number of hidden layers"),  # type: ignore[arg-type]
        (lambda: power(SMALL, True), TypeError, "no number"),
        (lambda: moment(-1, 1), ValueError, "positive number k"),
    ],
)
def test_what_is_no_order_or_size_is_named(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


@pytest.mark.parametrize("increasing", [True, False])
def test_quantiles_that_fall_among_the_high_levels_are_refused(increasing):
    eps, n = sympy.symbols("eps n", positive=True)
    with pytest.raises(QuantileError):
        minimal_bound(QuantileFamily("wave", 2 + sympy.sin(eps), eps, n, increasing=increasing))


# arithmetic and display


def test_a_scale_multiplies_from_the_left():
    n, x = SizeParameter("n"), RandomTensor("x", facts=[known("1/n", "Theta")])
    for product in (scale("n") * x, n * x, scale("n") * x.expr, n * x.expr, x * n):
        assert bound(product).scale == scale("1") and bound(product).kind is bound(x).kind
    assert bound(1 / scale("n") * x).scale == scale("1/n^2")
    assert bound(n / x).scale == scale("n^2") and bound(1 / x).scale == scale("n")
    with pytest.raises(ScaleError):
        _ = scale("n") * "2^n"


def test_latex_names_the_norm_and_its_status():
    shown = Bound(scale("n"), grouping=(("i", "j"), ("k",)), norm_status="upper").latex()
    assert "norm over ij|k" in shown and "upper bound of the norm" in shown
    tensor = RandomTensor("T", {"i": "n", "j": "n"}, [gaussian()])
    assert "norm over ij" in bound(tensor, grouping=(("i", "j"),)).latex_tree()


def test_a_refused_alternative_is_noted_once():
    u, v = (RandomTensor(name, {"i": "n"}, [gaussian()]) for name in "uv")
    product = contract(u["i"], v["i"], over="i")
    assert bound(product).tree().count("not used: R11b") == 1
    assert "not used: R11b" not in bound(product, [independent(u, v)]).tree()


def test_moments_and_cluster_bounds_have_a_display():
    network = NetworkSum((GaussianNetwork((("u", "i"), ("v", "i")), {"i": "n"}),))
    assert r"\Theta_p\left(\sqrt{n}\right)" in moment_scale(network)._repr_latex_()
    cluster = contraction_cluster(2, 1)
    assert len(repr(cluster)) < 300 and r"\mathcal{O}" in cluster._repr_latex_()
