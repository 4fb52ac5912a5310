"""Self-consistent closures: exact cases, and agreement with the expansion to the order of the self-energy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import sympy as sp

from symtensor.fields import FieldTheory, TheoryError
from symtensor.fields._skeletons import skeleton_terms
from symtensor.fields.closure import self_consistent
from symtensor.numerics.iteration import NotConvergedWarning, fixed_point

CUBIC = "dx = -(x + g*x^3) dt + sqrt(2*T) dW"
QUADRATIC = "dx = (-x + g*x^2) dt + sqrt(2*T) dW"


@pytest.fixture(autouse=True)
def _float64() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def number(expression: Any, **values: float) -> float:
    value = sp.sympify(expression)
    return float(sp.re(value.subs({s: values[s.name] for s in value.free_symbols}).evalf()))


# -- zero dimensions -----------------------------------------------------------------------------------------------------


def test_two_loop_skeletons_of_the_quartic_theory_make_their_equation() -> None:
    """1/G = 1 + g G/2 - g^2 G^3/6."""
    found = self_consistent(FieldTheory.static("x^2/2 + g*x^4/24", "x"), 2, values={"g": 1.0})
    line = found.equal_time[0, 0]
    assert found.report.converged
    assert 1 / line == pytest.approx(1 + line / 2 - line**3 / 6, abs=1e-10)


def test_static_closure_reproduces_the_expansion_to_its_order() -> None:
    """With cubic and quartic vertices the error of mean and correlator falls like the next order of the coupling."""
    theory = FieldTheory.static("x^2/2 + h*x^3/6 + h^2*x^4/8", "x")
    off = []
    for h in (0.2, 0.1):
        found = self_consistent(theory, 1, values={"h": h})
        mean = number(theory.cumulant("x", loops=1).expr, h=h)
        line = number(theory.cumulant("x,x", loops=1).expr, h=h)
        off.append((abs(found.mean[0] - mean), abs(found.equal_time[0, 0] - line)))
    assert off[0][0] / off[1][0] > 6  # h^3
    assert off[0][1] / off[1][1] > 10  # h^4


def test_gaussian_theories_are_exact() -> None:
    found = self_consistent(FieldTheory.static("x^2 + y^2 - x*y + x", "x,y"))
    np.testing.assert_allclose(found.equal_time, np.linalg.inv([[2, -1], [-1, 2]]), atol=1e-12)
    np.testing.assert_allclose(found.mean, [-2 / 3, -1 / 3], atol=1e-12)


def test_hartree_of_a_vector_is_the_limit_of_many_components() -> None:
    """S = sum x_i^2/2 + (sum x_i^2)^2 u/4: Hartree G = 1/(1 + u (N + 2) G), which the spherical limit u N fixed approaches."""
    count, strength = 3, 0.4
    theory = FieldTheory.static("dot(x, x)/2 + u*dot(x, x)^2/4", {"x": count})
    found = self_consistent(theory, values={"u": strength}, hartree=True)
    line = found.equal_time[0, 0]
    np.testing.assert_allclose(found.equal_time, line * np.eye(count), atol=1e-10)
    assert line * (1 + strength * (count + 2) * line) == pytest.approx(1, abs=1e-9)


# -- skeleton diagrams ---------------------------------------------------------------------------------------------------


def test_insertions_are_left_out() -> None:
    """Of the two-loop self-energy of phi^4 the sunset is kept, the double bubble (a loop on a loop) is not."""
    theory = FieldTheory.static("x^2/2 + g*x^4/24", "x")
    kept = [term for term in skeleton_terms(theory, ("x", "x"), 2) if term.loops == 2]
    assert [term.symmetry_factor for term in kept] == [6]
    assert len(theory.vertex_function("x,x", loops=2).at(2)) == 2


def test_an_insertion_counted_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: with the double bubble among the skeletons the expansion is wrong at second order already."""
    theory = FieldTheory.static("x^2/2 + g*x^4/24", "x")

    def off() -> float:
        series = number(theory.cumulant("x,x", loops=2).expr, g=0.02)
        return abs(self_consistent(theory, 2, values={"g": 0.02}).equal_time[0, 0] - series)

    right = off()
    monkeypatch.setattr("symtensor.fields._skeletons.is_skeleton", lambda diagram: True)
    assert off() > 5 * right


# -- stochastic theories -------------------------------------------------------------------------------------------------


def test_hartree_of_the_cubic_equation_is_its_quadratic_equation() -> None:
    """m = 1 + 3 g C, C = T/m; R = exp(-m t), C(t) = C exp(-m t)."""
    found = self_consistent(FieldTheory.langevin(CUBIC), values={"g": 0.5, "T": 1.0}, times=np.linspace(0, 8, 161))
    exact = (np.sqrt(7) - 1) / 3
    rate = 1 + 1.5 * exact
    assert found.report.converged
    assert found.change < 1e-9
    assert found.equal_time[0, 0] == pytest.approx(exact, abs=2e-5)
    correlator, response = found.lagged()
    early = found.times < 3
    np.testing.assert_allclose(response[early, 0, 0], np.exp(-rate * found.times[early]), atol=2e-5)
    np.testing.assert_allclose(correlator[early, 0, 0], exact * np.exp(-rate * found.times[early]), atol=3e-5)


def test_transient_of_the_hartree_equation() -> None:
    """dC/dt = 2 T - 2 (1 + 3 g C) C from C = 0."""
    found = self_consistent(
        FieldTheory.langevin(CUBIC), values={"g": 0.5, "T": 1.0}, times=np.linspace(0, 4, 161), initial=0.0, hartree=True
    )
    equal = np.einsum("titi->t", found.correlator)
    upper, lower = (np.sqrt(7) - 1) / 3, (-np.sqrt(7) - 1) / 3
    left = upper / lower * np.exp(-2 * np.sqrt(7) * found.times)
    np.testing.assert_allclose(equal, (upper - lower * left) / (1 - left), atol=1e-4)
    assert equal[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equations", "loops", "values", "ratio"),
    [(CUBIC, 2, {"T": 1.0, "g": 0.02}, 6.0), (QUADRATIC, 1, {"T": 1.0, "g": 0.1}, 11.0)],
)
def test_memory_reproduces_the_expansion_to_its_order(equations: str, loops: int, values: dict[str, float], ratio: float) -> None:
    """Halving g divides what is missing by 2^3 (two loops, g^3) or 2^4 (one loop of g^2)."""
    theory = FieldTheory.langevin(equations)
    off = []
    for factor in (1.0, 0.5):
        given = {**values, "g": values["g"] * factor}
        found = self_consistent(theory, loops, values=given, times=np.linspace(0, 12, 161))
        correlator, response = (table[10, 0, 0] for table in found.lagged())
        here = {**given, "t": found.times[10]}
        off.append([
            abs(correlator - number(theory.cumulant("x,x", loops=loops).expr, **here)),
            abs(response - number(theory.cumulant("x,xt", loops=loops).expr, **here)),
        ])  # fmt: skip
    assert np.all(np.array(off[0]) / np.array(off[1]) > ratio)


@pytest.mark.slow
def test_gaussian_equations_stay_as_they_are() -> None:
    found = self_consistent(FieldTheory.langevin("dx = (-x + y) dt + dW1\ndy = -2*y dt + dW2"), times=np.linspace(0, 2, 21))
    assert found.report.iterations <= 2
    drift = np.array([[1.0, -1.0], [0.0, 2.0]])
    np.testing.assert_allclose(drift @ found.equal_time + found.equal_time @ drift.T, np.eye(2), atol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": {"g": 0.5}}, "numbers are needed for T, g"),
        ({"times": np.linspace(0, 8, 160)}, "odd number"),
        ({"loops": 0}, "1 loop or more"),
        ({"memory_mb": 0.01}, "MB, more than"),
    ],
)
def test_requests_that_cannot_be_met(options: dict[str, Any], message: str) -> None:
    given = {"values": {"g": 0.5, "T": 1.0}, "times": np.linspace(0, 8, 161), **options}
    with pytest.raises(TheoryError, match=message):
        self_consistent(FieldTheory.langevin(CUBIC), **given)


# -- the solver ----------------------------------------------------------------------------------------------------------


def test_anderson_mixing_needs_fewer_steps_than_plain_iteration() -> None:
    matrix = np.array([[0.9, 0.05], [0.0, 0.5]])
    plain = fixed_point(lambda z: matrix @ z + 1, np.zeros(2), depth=0, most=2000)
    mixed = fixed_point(lambda z: matrix @ z + 1, np.zeros(2))
    np.testing.assert_allclose(plain[0], np.linalg.solve(np.eye(2) - matrix, [1, 1]), rtol=1e-9)
    np.testing.assert_allclose(mixed[0], plain[0], rtol=1e-9)
    assert mixed[1].iterations <= 6 < plain[1].iterations
    assert plain[1].rate == pytest.approx(0.9, abs=1e-3)


def test_divergence_is_never_silent() -> None:
    with pytest.warns(NotConvergedWarning, match="NOT converged"):
        _, report = fixed_point(lambda z: 3 * z + 1, np.ones(1), depth=0, most=30)
    assert not report.converged
    assert report.rate == pytest.approx(3, rel=0.2) or report.rate > 1
    with pytest.warns(NotConvergedWarning, match="finite"), np.errstate(all="ignore"):
        fixed_point(lambda z: z / (z - z), np.ones(1) * 5, depth=0)
    with pytest.raises(ValueError, match="damping"):
        fixed_point(np.cos, np.ones(1), damping=0.0)
