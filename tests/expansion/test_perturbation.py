"""Perturbation series in zero dimensions: written-out exponentials, integrals, diagram weights, and Dyson's equation."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any, Literal

import mpmath
import pytest
import sympy as sp

from symtensor.diagrams import Field, Model, Propagator, Vertex, enumerate_diagrams, theory
from symtensor.diagrams.weights import weight_series
from symtensor.expansion import Series, UnknownCoefficientError
from symtensor.expansion.cumulants import cumulants_from_moments
from symtensor.expansion.gaussian_law import GaussianLaw
from symtensor.expansion.legendre import effective_action
from symtensor.expansion.moment_errors import CovarianceError, GradingError, MomentError, NotPolynomialError
from symtensor.expansion.moments import polynomial_moment, vector_moment
from symtensor.expansion.perturbation import CouplingSeries, PerturbationTheory, perturbative_moments

x, y, xt, phi, g, h, a, b, c = sp.symbols("x y xt phi g h a b c")
UNIT = {(x, x): 1}
Kind = Literal["all", "connected", "1pi"]

#: Models by name, most with formal covariances: every propagator is the number 1.
MODELS: dict[str, Model] = {
    "phi3": theory("phi3"),
    "phi4": theory("phi4"),
    "phi3+phi4": theory("phi3+phi4"),
    "kpz": theory("kpz"),
    "cubic-langevin": theory("cubic-langevin"),
    "mixing": Model(
        "mixing",
        (Field("u"), Field("v")),
        (Propagator("u", "u"), Propagator("v", "v"), Propagator("u", "v")),
        (Vertex("g", ("u", "u", "v"), {"g": 1}), Vertex("h", ("v", "v", "v", "u"), {"h": 1})),
    ),
    "singular": Model(
        "singular",
        (Field("u"), Field("v")),
        (Propagator("u", "u"),  Propagator("v", "v"), Propagator("u", "v")),
        (Vertex("g", ("u", "v", "v"), {"g": 1}), Vertex("t", ("u",), {"t": 1})),
    ),
    "charged": Model(
        "charged",
        (Field("p", conjugate="q"), Field("q"), Field("A")),
        (Propagator("p", "q"), Propagator("A", "A")),
        (Vertex("e", ("p", "q", "A"), {"e": 1}),),
    ),
}  # fmt: skip


def potential_of(model: Model) -> sp.Expr:
    """V = sum over vertices of (coupling) prod x^k/k!."""
    terms = []
    for vertex in model.vertices:
        counts = {name: vertex.count(name) for name in set(vertex.legs)}
        legs = sp.Mul(*(sp.Symbol(name) ** k / sp.factorial(k) for name, k in counts.items()))
        terms.append(sp.Symbol(f"c_{vertex.name}") * legs)
    return sp.Add(*terms)


def setting(name: str, bound: tuple[int, ...]) -> tuple[sp.Expr, dict[str, int], dict[tuple[str, str], int], list[str]]:
    model = MODELS[name]
    order = {f"c_{vertex.name}": n for vertex, n in zip(model.vertices, bound)}
    lines = {(p.first, p.second): 1 for p in model.propagators}
    return potential_of(model), order, lines, [f.name for f in model.fields]


def weights(name: str, legs: dict[str, int], kind: Kind, bound: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    model = MODELS[name]
    grading = {vertex.name: tuple(int(vertex is other) for other in model.vertices) for vertex in model.vertices}
    return weight_series(model, legs, kind=kind, grading=grading, bound=bound)


# Orders: phi3 legs 0 at g^10 are six loops, phi4 legs 2 at g^6 six loops, kpz legs x, xt at g^10 five loops.
CASES = [
    ("phi3", {}, (10,)), ("phi3", {"x": 1}, (9,)), ("phi3", {"x": 2}, (10,)), ("phi3", {"x": 3}, (11,)),
    ("phi4", {}, (7,)), ("phi4", {"x": 2}, (6,)), ("phi4", {"x": 4}, (6,)),
    ("phi3+phi4", {"x": 1}, (4, 4)), ("phi3+phi4", {"x": 2}, (4, 3)),
    ("kpz", {"x": 1, "xt": 1}, (10,)), ("kpz", {"x": 2}, (8,)), ("kpz", {"xt": 1}, (5,)), ("kpz", {"xt": 2, "x": 1}, (7,)),
    ("cubic-langevin", {"x": 1, "xt": 1}, (5,)), ("cubic-langevin", {"x": 2}, (5,)),
    ("mixing", {"u": 1, "v": 1}, (4, 2)), ("mixing", {"v": 1}, (3, 3)), ("mixing", {"u": 2, "v": 1}, (3, 2)),
    ("singular", {"u": 1, "v": 1}, (5, 3)), ("singular", {"u": 1}, (4, 4)),
    ("charged", {"p": 1, "q": 1}, (10,)), ("charged", {"A": 2}, (8,)), ("charged", {"A": 1}, (9,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "legs", "bound"), CASES, ids=lambda value: str(value))
def test_series_are_the_weights_of_all_and_connected_diagrams(name: str, legs: dict[str, int], bound: tuple[int, ...]) -> None:
    potential, order, lines, fields = setting(name, bound)
    for kind, ours in (("all", "unnormalised"), ("connected", "connected")):
        found = perturbative_moments(potential, legs, order, lines, fields=fields, kind=ours)  # type: ignore[arg-type]
        assert found.terms == weights(name, legs, kind, bound), kind  # type: ignore[arg-type]
        assert found.terms


@pytest.mark.parametrize(("name", "legs", "bound"), [case for case in CASES if case[1]], ids=lambda value: str(value))
def test_vertex_functions_are_the_weights_of_irreducible_diagrams(name: str, legs: dict[str, int], bound: tuple[int, ...]) -> None:
    bound = tuple(min(n, 6) if len(bound) == 1 else min(n, 3) for n in bound)
    potential, order, lines, fields = setting(name, bound)
    action = effective_action(potential, order, lines, fields=fields, degree=sum(legs.values()))
    assert action.vertex(legs).terms == weights(name, legs, "1pi", bound)


@pytest.mark.parametrize(("name", "bound"), [("phi3", 10), ("phi4", 6)])
def test_vertex_functions_to_five_loops(name: str, bound: int) -> None:
    potential, order, lines, fields = setting(name, (bound,))
    action = effective_action(potential, order, lines, fields=fields, degree=2)
    expected = weights(name, {"x": 2}, "1pi", (bound,))
    assert action.vertex({"x": 2}).terms == expected
    assert max(expected) == (bound,)


@pytest.mark.parametrize(
    ("name", "legs", "order", "kind"),
    [
        ("phi3", {}, 8, "connected"), ("phi3", {"x": 2}, 8, "connected"), ("phi3", {"x": 2}, 8, "1pi"),
        ("phi4", {"x": 2}, 5, "connected"), ("phi4", {"x": 2}, 5, "1pi"),
        ("mixing", {"u": 1, "v": 1}, 2, "connected"), ("mixing", {"u": 1, "v": 1}, 2, "1pi"),
        ("kpz", {"x": 1, "xt": 1}, 4, "connected"), ("kpz", {"x": 1, "xt": 1}, 4, "1pi"),
    ],
)  # fmt: skip
def test_series_are_sums_over_enumerated_diagrams(name: str, legs: dict[str, int], order: int, kind: Kind) -> None:
    """Diagram by diagram: the enumerated symmetry factors add up to the coefficient; one diagram less does not."""
    model = MODELS[name]
    potential, bound, lines, fields = setting(name, (order,) * len(model.vertices))
    if kind == "1pi":
        series = effective_action(potential, bound, lines, fields=fields, degree=sum(legs.values())).vertex(legs)
    else:
        series = perturbative_moments(potential, legs, bound, lines, fields=fields, kind="connected")
    sums: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    counting = sorted({name for vertex in model.vertices for name in vertex.orders})
    per_vertex = {vertex.name: next(iter(vertex.orders.items())) for vertex in model.vertices}
    limits = {name: (0, order * max(n for key, n in per_vertex.values() if key == name)) for name in counting}
    diagrams = list(enumerate_diagrams(model, legs, kind=kind, orders=limits, causality="none" if name == "kpz" else None))
    for diagram in diagrams:
        key = tuple(diagram.vertex_counts.get(vertex.name, 0) for vertex in model.vertices)
        sums[key] += diagram.weight
    expected = {key: value for key, value in sums.items() if max(key) <= order}
    assert len(diagrams) > 5
    assert series.terms == expected
    last = diagrams[-1]
    key = tuple(last.vertex_counts.get(vertex.name, 0) for vertex in model.vertices)
    assert series[key] != expected[key] - last.weight


def test_one_loop_of_phi3_has_a_bubble_and_a_tadpole() -> None:
    """Two diagrams of weight 1/2 (form 474); phi^3 + phi^4 at two loops: 1/12 + 1/8 + dumbbell 1/8 (form 485)."""
    assert perturbative_moments(g * x**3 / 6, x**2, 2, UNIT, kind="connected")[2] == Fraction(1, 2) + Fraction(1, 2)
    vacuum = perturbative_moments(g * x**3 / 6 + h * x**4 / 24, 1, 2, UNIT, {"g": 1, "h": 2}, kind="connected")
    assert (vacuum[2, 0], vacuum[0, 1]) == (Fraction(1, 12) + Fraction(1, 8), Fraction(1, 8))


# --- the definition: exp V written out ------------------------------------------------------------------------------


def written_out(potential: sp.Expr, observable: sp.Expr, order: int, law: dict[Any, Any], mean: dict[Any, Any]) -> list[sp.Expr]:
    """Coefficients of <O exp(s V)>, by expanding the exponential and averaging every power of V."""
    terms = []
    for k in range(order + 1):
        integrand = sp.expand(observable * potential**k / sp.factorial(k))
        terms.append(sp.sympify(polynomial_moment(integrand, law, mean)))
    return terms


@pytest.mark.parametrize("mean", [{}, {x: sp.Rational(1, 2), y: -1}])
def test_moments_are_those_of_the_written_exponential(mean: dict[Any, Any]) -> None:
    law = {(x, x): sp.Rational(2, 3), (x, y): -1, (y, y): 2}
    potential = g * x**2 * y / 2 + h * (x - y) ** 3 + g * y
    s = sp.Symbol("s")
    direct = sp.Add(*written_out(potential, x * y, 3, law, mean))
    found = perturbative_moments(potential, x * y, 3, law, mean=mean, kind="unnormalised")
    assert sp.expand(direct - found.expr) == 0
    vacuum = sp.Add(*written_out(potential, sp.S.One, 3, law, mean))
    scaled = [sp.expand(one.subs({g: s * g, h: s * h}, simultaneous=True)) for one in (direct, vacuum)]
    ratio = sp.series(scaled[0] / scaled[1], s, 0, 4).removeO().subs(s, 1)
    assert sp.expand(ratio - perturbative_moments(potential, x * y, 3, law, mean=mean).expr) == 0
    logarithm = sp.series(sp.log(scaled[1]), s, 0, 4).removeO().subs(s, 1)
    assert sp.expand(logarithm - perturbative_moments(potential, 1, 3, law, mean=mean, kind="connected").expr) == 0


def test_parameters_weights_and_several_observables() -> None:
    potential = a * g**2 * x**4 + b * g * x**3
    one, two, three = perturbative_moments(potential, [x, {"x": 2}, x**2 - c * x], 4, {(x, x): c}, {g: 1})
    assert sp.expand(three.expr - (two.expr - c * one.expr)) == 0
    assert one[1] == 3 * b * c**2 and one[3].has(a) and one.couplings == (g,)
    assert sp.expand(one[1] - polynomial_moment(x * b * x**3, {(x, x): c})) == 0
    by_weight = perturbative_moments(potential, x, 5, {(x, x): c}, {g: 2})
    assert by_weight.terms == {k: v for k, v in one.terms.items() if k[0] <= 2}
    boxed = perturbative_moments(g * x**3 + h * x**4, x, {g: 1, h: 2}, UNIT)
    total = perturbative_moments(g * x**3 + h * x**4, x, 3, UNIT)
    assert boxed.terms == {k: v for k, v in total.terms.items() if k[0] <= 1 and k[1] <= 2}
    as_table = perturbative_moments({(3,): g, (4,): h}, {"x": 1}, 3, UNIT)
    assert as_table.terms == total.terms


def test_normalised_moments_give_the_connected_ones() -> None:
    """The joint cumulant by its definition in moments, order by order, with two couplings."""
    potential = g * x**2 * y / 2 + h * y**3 / 6
    law = {(x, x): 2, (x, y): 1, (y, y): 3}
    ones = perturbative_moments(potential, [x, y, x * y], 4, law)
    direct = sp.expand(ones[2].expr - ones[0].expr * ones[1].expr)
    found = perturbative_moments(potential, x * y, 4, law, kind="connected")
    low = sp.Add(*(term for term in direct.args if sp.Poly(term, g, h).total_degree() <= 4))
    assert sp.expand(low - found.expr) == 0


def test_the_series_approximates_the_integral() -> None:
    """<x^2> of exp(-x^2/2 - u x^4/24) by quadrature: each order more makes the error smaller by about u."""
    series = perturbative_moments(g * x**4 / 24, x**2, 6, UNIT)
    with mpmath.workdps(40):
        for u in (mpmath.mpf(1) / 200, mpmath.mpf(1) / 800):
            def weight(s: Any, u: Any = u) -> Any:
                return mpmath.exp(-(s**2) / 2 - u * s**4 / 24)

            exact = mpmath.quad(lambda s: s**2 * weight(s), [-30, 0, 30]) / mpmath.quad(weight, [-30, 0, 30])
            for order in range(1, 6):
                partial = sum(mpmath.mpf(v.numerator) / v.denominator * (-u) ** k for (k,), v in series.terms.items() if k <= order)
                coefficient = series[order + 1]
                following = abs(mpmath.mpf(coefficient.numerator) / coefficient.denominator * u ** (order + 1))
                assert 0.9 * following < abs(exact - partial) < following


def test_numbers_may_be_floats() -> None:
    exact = perturbative_moments(g * x**3 / 6, x**2, 4, {(x, x): sp.Rational(1, 2)})
    floats = perturbative_moments({(3,): g * 0.16666666666666666}, {x: 2}, 4, {(x, x): 0.5})
    for k, value in exact.terms.items():
        assert abs(float(floats[k]) - float(value)) < 1e-12 * abs(float(value))


def test_float_covariances_reach_the_logarithm_and_the_effective_action() -> None:
    potential = g * x**3 / 6
    exact, floats = ({(x, x): value} for value in (sp.Rational(3, 2), 1.5))
    one, two = (perturbative_moments(potential, 1, 6, law, kind="connected") for law in (exact, floats))
    three, four = (effective_action(potential, 4, law).vertex({x: 2}, at="mean") for law in (exact, floats))
    for right, found in ((one, two), (three, four)):
        assert right.terms.keys() == found.terms.keys() and right.terms
        for k, value in right.terms.items():
            assert isinstance(found[k], float) and abs(found[k] - float(value)) < 1e-12 * abs(float(value))


def test_the_cost_is_counted() -> None:
    """phi^4 to order n: at most (n + 1)(4n + 3) moments for <x^2>, not the (4n + 1)!! pairings."""
    for order in (5, 10, 20):
        read = PerturbationTheory.read(g * x**4 / 24, order, GaussianLaw.read(UNIT))
        read.moment((2,))
        assert read.entries <= (order + 1) * (4 * order + 3)


def test_vector_model_by_index_loops() -> None:
    """log <exp(g (u.u)^2/8)> in symbolic N against diagrams of phi phi sigma counted by index loops."""
    N = sp.Symbol("N")
    moments = {k: sp.sympify(vector_moment({("u", "u"): 2 * k}, 1)) / 8**k for k in range(6)}
    logarithm = cumulants_from_moments(moments)
    weight = weight_series(theory("on"), {}, kind="connected", grading={"g": (1,)}, bound=(10,), by_index_loops=True)
    for k in range(1, 6):
        expected = sp.Add(*(sp.Rational(v.numerator, v.denominator) * N**loops for (n, loops), v in weight.items() if n == 2 * k))
        assert sp.expand(sp.sympify(logarithm[k]) / sp.factorial(k) - expected) == 0
        assert expected.has(N)


# --- the effective action -------------------------------------------------------------------------------------------


def test_the_mean_field_is_the_mean() -> None:
    law = {(x, x): 2, (x, y): 1, (y, y): sp.Rational(1, 2)}
    potential = g * x**2 * y / 2 + h * x**3 / 6 + g * y
    action = effective_action(potential, 4, law, mean={x: 1})
    means = perturbative_moments(potential, [x, y], 4, law, mean={x: 1})
    assert sp.expand(action.mean_field()[x].expr + 1 - means[0].expr) == 0
    assert sp.expand(action.mean_field()[y].expr - means[1].expr) == 0


@pytest.mark.parametrize("name", ["mixing", "kpz", "singular", "charged", "cubic-langevin"])
def test_dyson_equation_of_several_fields(name: str) -> None:
    """G = C + C Sigma G with Sigma the second derivative at the mean field, tadpoles included; singular C as well."""
    bound = tuple(4 if len(MODELS[name].vertices) == 1 else 2 for _ in MODELS[name].vertices)
    potential, order, lines, fields = setting(name, bound)
    action = effective_action(potential, order, lines, fields=fields)
    pairs = list(itertools.product(fields, repeat=2))
    legs = [{p: 1, q: 1} if p != q else {p: 2} for p, q in pairs]
    full = [perturbative_moments(potential, one, order, lines, fields=fields, kind="connected").expr for one in legs]
    size = len(fields)
    propagator = sp.Matrix(size, size, full)
    energy = sp.Matrix(size, size, [action.vertex(one, at="mean").expr for one in legs])
    bare = sp.Matrix(size, size, [lines.get((p, q), lines.get((q, p), 0)) for p, q in pairs])
    residual = (bare + bare * energy * propagator - propagator).applyfunc(sp.expand)
    symbols = [sp.Symbol(s) for s in order]
    for entry in residual:
        terms = sp.Poly(entry, *symbols).terms()
        assert all(any(k > n for k, n in zip(powers, bound)) for powers, value in terms if value)
    assert energy != sp.zeros(size, size)
    at_zero = sp.Matrix(size, size, [action.vertex(one).expr for one in legs])
    if name not in ("cubic-langevin",):  # no tadpoles there
        assert sp.expand(energy - at_zero) != sp.zeros(size, size)


def test_legendre_transform_by_series_reversion() -> None:
    """W(J) from plain moments, phi = W'(J) reverted by SymPy; Gamma' = J(phi). The covariance stays a symbol."""
    order, degree = 2, 3
    J, p = sp.symbols("J p")
    potential = g * x**3 / 6 + g**2 * x**4 / 24
    action = effective_action(potential, order, {(x, x): c}, degree=degree)
    slope = sum(
        perturbative_moments(potential, {x: n}, order, {(x, x): c}, kind="connected").expr * J ** (n - 1) / sp.factorial(n - 1)
        for n in range(1, degree + order + 1)
    )
    reverted = p / c
    for _ in range(order + 1):
        gap = sp.expand(slope.subs(J, reverted) - p)
        reverted = sp.expand(reverted - gap / c)
        reverted = sp.Add(*(term for term in sp.Add.make_args(reverted) if sp.degree(term, g) <= order))
    difference = sp.expand(sp.diff(action.expr, x).subs(x, p) - reverted)
    assert sp.Poly(difference, g, p).terms()[0][1] == 0 or all(k[1] >= degree for k, _ in sp.Poly(difference, g, p).terms())


def test_the_effective_action_of_a_quadratic_potential_is_quadratic() -> None:
    """exp(g x^2/2): Gamma = (1/c - g) phi^2/2 + log(1 - g c)/2, order by order."""
    action = effective_action(g * x**2 / 2, 5, {(x, x): c})
    assert action.vertex({x: 2}).terms == {(1,): 1}
    for k in range(1, 6):
        assert sp.expand(action.vertex({})[k] - c**k / (2 * k)) == 0
    assert action.mean_field()[x].terms == {}
    assert sp.expand(action.expr - (x**2 / (2 * c) - action.interaction_expr)) == 0


def test_a_zero_mode_is_named() -> None:
    action = effective_action(g * x * y**2 / 2, 2, {(x, x): 1, (x, y): 1, (y, y): 1})
    assert action.interaction_expr.has(g)
    with pytest.raises(CovarianceError, match=r"zero mode \{'x': -1, 'y': 1\}"):
        _ = action.expr


# --- series as values, refusals -------------------------------------------------------------------------------------


def test_a_series_is_a_series() -> None:
    found = perturbative_moments(g * x**4 / 24, x**2, 3, UNIT)
    assert isinstance(found.series(), Series)
    assert str(found.series()) == "1 + g/2 + 2*g**2/3 + 11*g**3/8 + O(g**4, g -> 0)"
    assert repr(found).startswith("(1)*1 + (1/2)*g")
    with pytest.raises(UnknownCoefficientError, match="ask for a higher order"):
        found[4]
    with pytest.raises(MomentError, match="give one for each"):
        found[1, 1]
    two = perturbative_moments(g * x**3 + h * x**4, x, 2, UNIT)
    assert isinstance(two, CouplingSeries)
    with pytest.raises(MomentError, match="only a series in one"):
        two.series()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: perturbative_moments(g * sp.cos(x), x, 2, UNIT), NotPolynomialError, r"^cos\(x\) is not .* symtensor.taylor"),
        (lambda: perturbative_moments(x**3 * sp.exp(g), x, 2, UNIT), NotPolynomialError, r"^exp\(g\) is not"),
        (lambda: perturbative_moments(x**3 / g, x, 2, UNIT), NotPolynomialError, "is not a polynomial in x, g"),
        (lambda: perturbative_moments(g * x**3, sp.tanh(x), 2, UNIT), NotPolynomialError, "tanh"),
        (lambda: perturbative_moments("g*x**3", x, 2, UNIT), NotPolynomialError, "parse_expression"),
        (lambda: perturbative_moments(g * x**3 + x**2 / 2, x, 2, UNIT), GradingError, r"x\*\*2/2 of the potential has no coupling"),
        (lambda: perturbative_moments(x**4, x, 2, UNIT), GradingError, "no coupling among none"),
        (lambda: perturbative_moments(g * x**3, x, -1, UNIT), GradingError, "order in g is -1"),
        (lambda: perturbative_moments(g * x**3, x, 1.5, UNIT), GradingError, "order in g is 1.5"),  # type: ignore[arg-type]
        (lambda: perturbative_moments(g * x**3, x, 2, UNIT, {g: 0}), GradingError, "weight 0"),
        (lambda: perturbative_moments(g * x**3, x, 2, UNIT, {x: 1}), GradingError, "x is a field"),
        (lambda: perturbative_moments(g * x**3 + h * x, x, {g: 2}, UNIT, {g: 1, h: 1}), GradingError, "does not bound the"),
        (lambda: perturbative_moments(g * x**3, x, 2, UNIT, kind="all"), MomentError, "choose normalised"),  # type: ignore[arg-type]
        (lambda: perturbative_moments(g * x**3, x + x**2, 2, UNIT, kind="connected"), MomentError, "no product of fields"),
        (lambda: perturbative_moments(g * x**3, g * x, 2, UNIT), MomentError, "contains a coupling"),
        (lambda: perturbative_moments({(3, 1): g}, x, 2, UNIT), MomentError, "tuple of 1"),
        (lambda: perturbative_moments(g * x**3, {"y": 1}, 2, UNIT), CovarianceError, "y has no covariance"),
        (lambda: effective_action(g * x**3, 2, UNIT, degree=0), MomentError, "degree 0"),
        (lambda: effective_action(g * x**3, 2, UNIT).vertex({x: 3}), MomentError, "more than the degree 2"),
        (lambda: effective_action(g * x**3, 2, UNIT).vertex({x: 1}, at="there"), MomentError, "choose 'zero' or 'mean'"),
    ],
)
def test_bad_input_has_a_named_error(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_wrong_vertex_factor_is_noticed() -> None:
    """The comparison with the weights can fail: 1/5 for 1/6 changes every order."""
    wrong = perturbative_moments(g * x**3 / 5, {"x": 2}, 4, UNIT, kind="connected")
    right = weights("phi3", {"x": 2}, "connected", (4,))
    assert all(wrong[key] != value for key, value in right.items() if any(key))
    assert math.prod(key[0] for key in right if any(key)) == 8
