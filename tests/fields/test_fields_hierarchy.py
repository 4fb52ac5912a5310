"""The moment hierarchy against Gaussian perturbation theory, exact densities, spectra, and its own identities."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.expansion import UnknownCoefficientError, perturbative_moments
from symtensor.expansion.moment_errors import NotPolynomialError
from symtensor.fields import hierarchy as hierarchy_module
from symtensor.fields.errors import SourceError, TheoryError, UnstableError
from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.fields.stationary_density import stationary_density_moments

x, y, z, g, h, T, a = sp.symbols("x y z g h T a", positive=True)
t = sp.Symbol("t", positive=True)
HALF = sp.Rational(1, 2)


def cubic() -> MomentHierarchy:
    return MomentHierarchy(-(x + g * x**3), sp.sqrt(2 * T), x, g)


def same(one: object, other: object) -> bool:
    return sp.simplify(sp.expand(sp.sympify(one) - sp.sympify(other))) == 0  # type: ignore[operator]


def gradient(potential: sp.Expr, names: list[sp.Symbol]) -> MomentHierarchy:
    return MomentHierarchy([-sp.diff(potential, n) for n in names], [sp.sqrt(2 * T)] * len(names), names, g)


@pytest.mark.parametrize("power", [1, 2, 4, 6])
@pytest.mark.parametrize("interaction", [g * x**4 / 4, g * x**3 / 3, g * x**3 / 6 + g**2 * x**4 / 24])
def test_stationary_moments_are_ratios_of_gaussian_moments(power: int, interaction: sp.Expr) -> None:
    """The cubic and the metastable quadratic drift, to the fifth order in g, with a symbolic temperature."""
    exact = perturbative_moments(-interaction / T, {x: power}, {g: 5}, {(x, x): T})
    found = gradient(x**2 / 2 + interaction, [x]).moment({x: power}, 5)
    for order in range(6):
        assert same(found[order], exact[order])


def test_mean_shift_of_the_quadratic_drift() -> None:
    """<x> = g T + 5 g^3 T^2 + 60 g^5 T^3: cumulants of exp(-x^2/2 + g x^3/3), found by hand from <x> = g <x^2>."""
    quadratic = MomentHierarchy(-x + g * x**2, sp.sqrt(2 * T), x, g)
    mean, second = quadratic.moment({x: 1}, 6), quadratic.moment({x: 2}, 6)
    assert [same(mean[n + 1], second[n]) for n in range(6)] == [True] * 6
    assert same(mean[1], T)
    assert same(mean[3], 5 * T**2)


KERNEL = sp.Matrix([[2, 1], [1, 1]])  # rates (3 +- sqrt(5))/2: the modes are irrational, the moments are not
COUPLED = x**2 + x * y + y**2 / 2 + g * (x**2 * y + y**4 / 3)


@pytest.mark.parametrize("powers", [{x: 1}, {y: 1}, {x: 1, y: 1}, {x: 2, y: 2}])
def test_moments_of_two_coupled_variables(powers: dict) -> None:
    system = gradient(COUPLED, [x, y])
    assert sorted(system.rates, key=float) == [sp.Rational(3, 2) - sp.sqrt(5) / 2, sp.Rational(3, 2) + sp.sqrt(5) / 2]
    exact = perturbative_moments(-g * (x**2 * y + y**4 / 3) / T, powers, {g: 3}, T * KERNEL.inv(), fields=[x, y])
    found = system.moment(powers, 3)
    assert all(same(found[n], exact[n]) for n in range(4))


def test_joint_cumulants() -> None:
    potential, law = -g * (x**2 * y + y**4 / 3) / T, T * KERNEL.inv()
    exact = perturbative_moments(potential, {x: 1, y: 2}, {g: 2}, law, fields=[x, y], kind="connected")
    found = gradient(COUPLED, [x, y]).cumulant({x: 1, y: 2}, 2)
    assert all(same(found[n], exact[n]) for n in range(3))


def violation(system: MomentHierarchy, one: sp.Symbol, other: sp.Symbol, order: int) -> list[bool]:
    """Where T R + dC/dt does not vanish."""
    correlation, response = system.correlation(one, other, order), system.response(one, other, order)
    return [not same(T * response[n], -sp.diff(correlation[n], t)) for n in range(order + 1)]


def test_fluctuation_dissipation_term_by_term() -> None:
    assert not any(violation(cubic(), x, x, 3))
    for one, other in [(x, x), (x, y), (y, x)]:
        assert not any(violation(gradient(COUPLED, [x, y]), one, other, 1))


def test_fluctuation_dissipation_fails_out_of_equilibrium() -> None:
    """The same check rejects a drift that is no gradient, and a noise of the wrong strength."""
    driven = MomentHierarchy([-x + g * y**2, -2 * y + g * x**3], [sp.sqrt(2 * T)] * 2, [x, y], g)
    assert violation(driven, x, y, 1) == [False, True]
    assert all(violation(MomentHierarchy(-(x + g * x**3), sp.sqrt(3 * T), x, g), x, x, 1))


def test_time_reversal_of_a_gradient_system() -> None:
    system = gradient(COUPLED, [x, y])
    forward, backward = system.correlation(x, y, 1), system.correlation(y, x, 1)
    assert all(same(forward[n], backward[n]) for n in range(2))


def test_cubic_two_point_function_by_hand() -> None:
    """First order: dC/dt = -C - 3 g T C with C(0) = T - 3 g T^2 gives T e^-t - 3 g T^2 (1 + t) e^-t."""
    found = cubic().correlation(x, x, 1)
    assert same(found[0], T * sp.exp(-t))
    assert same(found[1], -3 * T**2 * (1 + t) * sp.exp(-t))


def spectral_correlation(coupling: float, times: np.ndarray, size: int = 24) -> np.ndarray:
    """C(t) at T = 1 from the eigenvalues of the generator among polynomials orthonormal under the exact density."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights * np.exp(-coupling * nodes**4 / 4)
    weights /= weights.sum()
    basis = np.polynomial.hermite_e.hermevander(nodes, size) / np.sqrt([float(sp.factorial(n)) for n in range(size + 1)])
    slopes = np.zeros_like(basis)
    slopes[:, 1:] = basis[:, :-1] * np.sqrt(np.arange(1, size + 1))
    root = np.linalg.cholesky(basis.T @ (weights[:, None] * basis))
    energy = np.linalg.solve(root, np.linalg.solve(root, slopes.T @ (weights[:, None] * slopes)).T)
    rates, vectors = np.linalg.eigh(energy)
    overlap = vectors.T @ np.linalg.solve(root, basis.T @ (weights * nodes))
    return (overlap**2 * np.exp(-np.outer(times, rates))).sum(axis=1)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_time_dependence_against_the_spectrum(order: int) -> None:
    """What is left behind the series falls as g^(order+1) at every time."""
    times = np.array([0.0, 0.3, 1.0, 2.5])
    series = cubic().correlation(x, x, order).values(times, {T: 1})
    left = []
    for coupling in (0.002, 0.001):
        powers = coupling ** np.arange(order + 1)
        left.append(np.abs(spectral_correlation(coupling, times) - powers @ series))
    slopes = np.log2(left[0] / left[1])
    assert np.all(np.abs(slopes - (order + 1)) < 0.2), slopes


def test_series_against_the_exact_density() -> None:
    exact = {c: stationary_density_moments(-(x + g * x**3), sp.sqrt(2), x, [2], {g: c}, digits=25)[2] for c in ("0.002", "0.001")}
    series = cubic().moment({x: 2}, 4).values(parameters={T: 1})
    left = [float(exact[c] - mpmath.fsum(mpmath.mpf(c) ** n * mpmath.mpf(s) for n, s in enumerate(series))) for c in exact]
    assert abs(np.log2(left[0] / left[1]) - 5) < 0.3


def test_multiplicative_noise_is_read_in_the_sense_of_ito() -> None:
    """d<x^2>/dt = -2<x^2> + 2T(1 + g<x^2>) gives T/(1 - g T); in the sense of Stratonovich it were T/(1 - 2 g T)."""
    system = MomentHierarchy(-x, sp.sqrt(2 * T * (1 + g * x**2)), x, g)
    found = system.moment({x: 2}, 4)
    assert [same(found[n], T ** (n + 1)) for n in range(5)] == [True] * 5
    confined = MomentHierarchy(-(x + g * x**3), sp.sqrt(2 * (1 + g * x**2)), x, g)
    series = confined.moment({x: 2}, 3).values()
    left = []
    for c in (0.002, 0.001):
        exact = stationary_density_moments(-(x + g * x**3), sp.sqrt(2 * (1 + g * x**2)), x, [2], {g: c}, digits=20)[2]
        left.append(abs(float(exact) - series @ c ** np.arange(4)))
    assert abs(np.log2(left[0] / left[1]) - 4) < 0.3


def test_square_root_process_has_a_gamma_law() -> None:
    """dx = (a - x) dt + sqrt(2 x) dW: the noise is linear in x at order zero, the moments are a (a+1) .. (a+k-1)."""
    system = MomentHierarchy(a - x, sp.sqrt(2 * x), x)
    assert all(same(system.moment({x: k}, 0)[0], sp.rf(a, k).expand(func=True)) for k in range(1, 6))
    assert same(system.correlation(x, x, 0)[0], a * sp.exp(-t))


def test_noise_quadratic_at_order_zero_has_finitely_many_moments() -> None:
    """dx = -x dt + sqrt(1 + x^2/2) dW: <x^2> = 1/(2 - 1/2); the rate of <x^5> vanishes, that of <x^6> is negative."""
    system = MomentHierarchy(-x, sp.sqrt(1 + x**2 / 2), x)
    assert system.moment({x: 2}, 0)[0] == sp.Rational(2, 3)
    with pytest.raises(UnstableError, match=r"\(6,\) has the rate"):
        system.moment({x: 6}, 0)


def test_coloured_noise_with_the_rate_of_the_variable() -> None:
    """The drift matrix has no second eigenvector; C(t) = (T/2)(1 + t) exp(-t)."""
    system = MomentHierarchy({x: -x + y - g * x**3, y: -y}, [0, sp.sqrt(2 * T)], [x, y], g)
    assert same(system.correlation(x, x, 0)[0], T * (1 + t) * sp.exp(-t) / 2)
    near = MomentHierarchy({x: -x + y - g * x**3, y: -sp.Rational(1001, 1000) * y}, [0, sp.sqrt(2 * T)], [x, y], g)
    times = np.array([0.0, 0.5, 2.0])
    one, other = (m.correlation(x, x, 2).values(times, {T: 1}) for m in (system, near))
    assert np.allclose(one, other, rtol=0.02)
    assert not np.allclose(one, other, rtol=1e-5)


def test_a_defective_matrix_without_triangular_order() -> None:
    """A = S [[1, 1], [0, 1]] S^-1 with full S: the moments are those of the transformed equation."""
    turn = sp.Matrix([[1, 2], [1, 3]])
    inner = MomentHierarchy([-x - y, -y + g * x**2], [1, 1], [x, y], g)
    u, v = turn.inv() * sp.Matrix([x, y])
    outer = MomentHierarchy(list((turn * sp.Matrix([-u - v, -v + g * u**2])).applyfunc(sp.expand)), turn, [x, y], g)
    one, other = outer.correlation(x, x, 1), [inner.correlation(p, q, 1) for p in (x, y) for q in (x, y)]
    for n in range(2):
        assert same(one[n], other[0][n] + 2 * other[1][n] + 2 * other[2][n] + 4 * other[3][n])


def test_response_fields() -> None:
    system = cubic()
    only = [{"xt": 2}, [{"xt": 1}, {x: 1}], [{"xt": 1}, {"xt": 1}], {x: 1, "xt": 1}]
    for legs in only:  # <xt ..> vanishes if nothing comes later; theta(0) = 0
        assert all(system.moment(legs, 2)[n] == 0 for n in range(3))
    assert same(system.moment([{x: 2}, {"xt": 2}], 0)[0], 2 * sp.exp(-2 * t))
    # a field that is switched on for good: the susceptibility is the derivative of the mean, d<x>/dh = <x^2>/T
    total = [sp.integrate(system.response(x, x, 2)[n], (t, 0, sp.oo)) for n in range(3)]
    assert all(same(total[n], system.moment({x: 2}, 2)[n] / T) for n in range(3))


def test_response_is_the_derivative_of_the_moments_in_a_constant_field() -> None:
    """Out of equilibrium: int R dt = d<x>/dh, with h treated as the coupling of the drift."""
    driven = [-x + g * y**2 + g * x * y, -2 * y + g * x**3]
    system = MomentHierarchy(driven, [1, 1], [x, y], g)
    for late in (x, y):
        response = system.response(late, y, 2)
        tilted = MomentHierarchy([driven[0], driven[1] + h], [1, 1], [x, y], {g: 1, h: 1})
        mean = tilted.moment({late: 1}, 3).expr
        for n in range(3):
            assert same(sp.integrate(response[n], (t, 0, sp.oo)), sp.Poly(mean, g, h).coeff_monomial(g**n * h))


def test_several_times() -> None:
    system = cubic()
    t1, t2 = sp.symbols("t1 t2", positive=True)
    moment = system.moment([{x: 1}, {x: 2}, {x: 1}], 0)  # Isserlis
    assert same(moment[0], T**2 * (sp.exp(-t1 - t2) + 2 * sp.exp(-t1 - t2)))
    assert system.cumulant([{x: 1}, {x: 2}, {x: 1}], 0)[0] == 0
    four = system.cumulant([{x: 1}, {x: 1}, {x: 1}, {x: 1}], 1)[1]
    merged = four.subs({sp.Symbol("t1", positive=True): 0, sp.Symbol("t2", positive=True): 0, sp.Symbol("t3", positive=True): t})
    joint = system.correlation({x: 3}, x, 1)[1]
    assert same(merged, joint)
    equal, late = system.moment({x: 2}, 1), system.correlation(x, x, 1)
    assert same(system.moment([{x: 3}, {x: 1}], 1)[1], joint + 3 * (equal[0] * late[1] + equal[1] * late[0]))


def test_an_empty_time_does_not_matter() -> None:
    system = cubic()
    between = system.moment([{x: 1}, {}, {x: 1}], 2)
    t1, t2 = between.times
    assert all(same(between[n], system.moment([{x: 1}, {x: 1}], 2)[n].subs(t, t1 + t2)) for n in range(3))


coefficient = st.fractions(min_value=-2, max_value=2, max_denominator=3)


@settings(max_examples=4, deadline=None)
@given(st.lists(coefficient, min_size=6, max_size=6), st.lists(coefficient, min_size=2, max_size=2))
def test_equation_of_motion_of_any_polynomial_system(numbers: list[Fraction], coupled: list[Fraction]) -> None:
    """d/dt <x(t) y(0)^2> = <f(t) y(0)^2> and <L(x y)> = 0, order by order, for modes that are real, complex or irrational."""
    p, q, r, s, u, v = (sp.Rational(n) for n in numbers)
    s = s + 3  # the coupling has to occur
    b, c = (sp.Rational(n) for n in coupled)
    f = [-3 * x + b * y + g * (p * x**2 + q * y**2), c * x - 4 * y + g * (r * x * y + s * x**3)]
    system = MomentHierarchy(f, [[1, u], [0, 1 + v**2]], [x, y], g)
    order = 1

    def two_time(late: dict) -> object:
        return system.moment([late, {y: 2}], order)

    left = two_time({x: 1})
    right = {k: two_time(k_) for k, k_ in {"x": {x: 1}, "y": {y: 1}, "xx": {x: 2}, "yy": {y: 2}}.items()}
    for n in range(order + 1):
        total = -3 * right["x"][n] + b * right["y"][n]
        total += p * right["xx"][n - 1] + q * right["yy"][n - 1] if n else 0
        difference = sp.diff(left[n], t) - total
        assert abs(complex(difference.subs(t, sp.Rational(7, 10)).evalf(30))) < 1e-20
    moments = {k: system.moment(dict(zip((x, y), k)), order) for k in [(1, 1), (2, 0), (0, 2), (2, 1), (0, 3), (4, 0)]}
    for n in range(order + 1):
        drifted = -7 * moments[1, 1][n] + b * moments[0, 2][n] + c * moments[2, 0][n]
        if n:
            drifted += p * moments[2, 1][n - 1] + q * moments[0, 3][n - 1]
            drifted += r * moments[2, 1][n - 1] + s * moments[4, 0][n - 1]
        assert same(drifted + (u * (1 + v**2) if n == 0 else 0), 0)


def test_rates_without_a_closed_form() -> None:
    """Three variables with a cubic characteristic polynomial: 40 digits of the exact rational moments."""
    kernel = sp.Matrix([[2, 1, 0], [1, 2, HALF], [0, HALF, 1]])
    quadratic = (sp.Matrix([[x, y, z]]) * kernel * sp.Matrix([x, y, z]))[0] / 2
    system = gradient(sp.expand(quadratic + g * (x * y * z + z**4)), [x, y, z])
    assert any("digits" in note for note in system.assumptions)
    exact = perturbative_moments(-g * (x * y * z + z**4) / T, {x: 1, z: 1}, {g: 1}, T * kernel.inv(), fields=[x, y, z])
    found = system.moment({x: 1, z: 1}, 1)
    assert all(abs(sp.N((found[n] - exact[n]).subs(T, 1), 40)) < sp.Float(10) ** -38 for n in range(2))


def test_numerical_modes_agree_with_the_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = gradient(COUPLED, [x, y]).correlation(x, y, 2)

    def refuse(_: sp.Matrix) -> None:
        raise TheoryError("no closed form")

    monkeypatch.setattr(hierarchy_module, "eigenvalues", refuse)
    system = gradient(COUPLED, [x, y])
    times = np.array([0.0, 0.4, 3.0])
    assert np.allclose(system.correlation(x, y, 2).values(times, {T: 1}), exact.values(times, {T: 1}), rtol=1e-13)


def test_several_couplings_are_counted_with_weights() -> None:
    """A cubic vertex counts once, a quartic one twice: the grading of loops in zero dimensions."""
    interaction = g * x**3 / 6 + h * x**4 / 24
    system = MomentHierarchy(-(x + sp.diff(interaction, x)), sp.sqrt(2 * T), x, {g: 1, h: 2})
    exact = perturbative_moments(-interaction / T, {x: 2}, 4, {(x, x): T}, {g: 1, h: 2})
    assert same(system.moment({x: 2}, 4).expr, exact.expr)


def test_decimals_are_the_rationals_they_print_as() -> None:
    system = MomentHierarchy(-0.1 * x - g * x**3, 0.3, x, g)
    assert system.rates == (sp.Rational(1, 10),)
    assert system.moment({x: 2}, 0)[0] == sp.Rational(9, 20)


def test_symbolic_rates_are_recorded() -> None:
    b = sp.Symbol("b")
    assert MomentHierarchy(-b * x - g * x**3, 1, x, g).assumptions == ("b > 0",)
    assert cubic().assumptions == ()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((x - g * x**3, 1, x, g), UnstableError, "rate -1"),
        ((-g * x**3, 1, x, g), UnstableError, "rate 0"),
        ((-x - x**3, 1, x, g), SourceError, "g is no parameter"),
        ((-x - x**3 + g, 1, x, g), UnstableError, "degree 3"),
        ((-x, sp.sqrt(1 + x**3) + g, x, g), NotPolynomialError, "not a polynomial"),
        ((-x - g * sp.tanh(x), 1, x, g), NotPolynomialError, "tanh"),
        (("-x", 1, x, g), SourceError, "is text"),
        (([-x, -y], 1, [x, y], None), SourceError, "1 components for the 2"),
        (([-x], [[1, 0], [0, 1]], [x], None), SourceError, "2 rows"),
        (({y: -x}, 1, x, None), SourceError, "entry for y"),
        ((-x, 1, [x, x], None), SourceError, "each once"),
        ((-x - g * x**3, 1, x, x), SourceError, "x is no parameter"),
        ((-x - g * x**3, 1, x, {g: 0}), SourceError, "weight 0"),
        ((-sp.sqrt(a) * x - a * g * x, 1, x, g), TheoryError, "under a root"),
        (([-x - a * y, x - 3 * y], [1, 1], [x, y], None), TheoryError, "no root that is"),
        ((-x + sp.oo, 1, x, None), SourceError, "no finite expression"),
    ],
)
def test_bad_equations(arguments: tuple, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        MomentHierarchy(*arguments)


def test_bad_questions() -> None:
    system = cubic()
    for call, words in [
        (lambda: system.moment({"q": 1}, 1), "q is no field"),
        (lambda: system.moment({}, 1), "no leg"),
        (lambda: system.moment({x: -1}, 1), "power of x"),
        (lambda: system.moment({x: 1}, -1), "coupling is -1"),
        (lambda: system.response(x, "xt", 1), "xt is no variable"),
        (lambda: system.correlation(x, x, 1).values(0.5), "T have no value"),
        (lambda: system.correlation(x, x, 1).values([0.5, 1.0], {}), "T have no value"),
        (lambda: system.moment({x: 2}, 1).values(0.5, {T: 1}), "1 time differences"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(UnknownCoefficientError, match="order 3"):
        system.moment({x: 2}, 2)[3]
    with pytest.raises(SourceError, match="name of another field"):
        MomentHierarchy([-x, -y], [1, 1], [x, y], responses=["y", "u"])
