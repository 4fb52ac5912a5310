"""Actions and equations as text: they mean what SymPy expressions written by hand mean; everything else is refused by name."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.fields.errors import SourceError, TheoryError
from symtensor.fields.reading import read_action, read_equations

x, y, g, r, T, s, k = sp.symbols("x y g r T s k", real=True)
u1, u2, u3 = sp.symbols("u_1 u_2 u_3", real=True)


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("x^2/2 + g*x^4/24", ["x"], x**2 / 2 + g * x**4 / 24),
        ("0.1*x**2 - tanh(x)*y", "x, y", x**2 / 10 - sp.tanh(x) * y),
        ("r*dot(u, u)/2", {"u": 3}, r * (u1**2 + u2**2 + u3**2) / 2),
        ("sum(i, u[i]^4) + sum(i, 1, 2, (u[i+1] - u[i])^2)", {"u": 3}, u1**4 + u2**4 + u3**4 + (u2 - u1) ** 2 + (u3 - u2) ** 2),
        ("u[2]*x + u[1]^2", {"u": 2, "x": None}, u2 * x + u1**2),
        ("sum(i, sum(j, i*j*u[i]*u[j]))", {"u": 2}, (u1 + 2 * u2) ** 2),
    ],
)
def test_action_text_is_the_expression(text: str, fields: object, expected: sp.Expr) -> None:
    read = read_action(text, fields)  # type: ignore[arg-type]
    assert sp.expand(read.expression - expected) == 0
    assert set(read.parameters) == expected.free_symbols - set(read.fields)


def test_matrix_parameters() -> None:
    read = read_action("sum(i, sum(j, u[i]*J[i,j]*u[j]))/2", {"u": 2}, {"J": (2, 2)})
    matrix = sp.Matrix(2, 2, sp.symbols("J_1_1 J_1_2 J_2_1 J_2_2", real=True))
    vector = sp.Matrix([u1, u2])
    assert sp.expand(read.expression - (vector.T * matrix * vector)[0] / 2) == 0
    assert read.components == (("u", (u1, u2)),)
    assert list(read.gradient) == [sp.diff(read.expression, u1), sp.diff(read.expression, u2)]


def test_given_symbols_keep_their_assumptions() -> None:
    temperature = sp.Symbol("T", positive=True)
    assert read_action("sqrt(T^2)*x^2", ["x"], [temperature]).expression == temperature * x**2
    field = sp.Symbol("x", positive=True)
    assert read_action("x^2", [field]).fields == (field,)
    assert read_action(field**2, ["x"]).fields == (field,)


def test_floats_in_expressions_become_the_decimals_they_show() -> None:
    assert read_action(0.1 * x**2, ["x"]).expression == x**2 / 10


EVIL = [
    ("__import__('os').system('true')*x", "__import__"),
    ("x.__class__", "x.__class__"),
    ("(lambda: x)()", "lambda"),
    ("x**2 + __x__", "__x__"),
    ("lambda*x^2", "lam"),
    ("I*x", "imaginary unit"),
    ("х*x", "CYRILLIC"),
    ("ｘ*x", "FULLWIDTH"),
    ("x[1]", "components"),
    ("foo(x)", "foo"),
    ("tahn(x)", "tanh"),
    ("9**9**9*x", "9**9"),
    ("x^101", "x**101"),
    ("2 x", "written with"),
    ("sum(i, x)", "limits"),
    ("dot(x, x)", "components"),
    ("sum(x, 1, 2, x)", "means something else"),
    ("sum(i, 1, 10^9, x)", "parts"),
    ("sum(1, x)", "no sum"),
    ("f'{x}'*x", "f'{x}'"),
    ("[x for x in x]", "[x for"),
    ("1j*x", "1j"),
    ("", "empty"),
    ("x if x else 1", "x if"),
]


@pytest.mark.parametrize(("text", "word"), EVIL)
def test_other_text_is_refused_by_name(text: str, word: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_action(text, ["x"])
    assert word in str(caught.value)
    if text.isascii() and "=" not in text and text and "sum" not in text:
        with pytest.raises(SourceError):
            read_equations(f"dx = ({text}) dt + dW")


@pytest.mark.parametrize(
    ("text", "fields", "parameters", "word"),
    [
        ("x^2 + h*x^4", ["x"], ["g"], "'h'"),
        ("x^2", ["x", "y"], None, "field y"),
        ("x^2", ["sin"], None, "function"),
        ("x^2", ["E"], None, "constant"),
        ("x^2", ["_x"], None, "'_x'"),
        ("x^2", ["x", "x"], None, "twice"),
        ("x^2", ["x"], ["x"], "clashes"),
        ("x^2", {"x": 2, "x_1": None}, None, "clashes"),
        ("x^2", {"x": 0}, None, "0 components"),
        ("x^2", {"x": 10**6}, None, "at most"),
        ("dot(x, x)", {"x": True}, None, "components"),
        ("u[3]^2", {"u": 2}, None, "1 to 2"),
        ("u[i]^2", {"u": 2}, None, "sum(i"),
        ("u^2", {"u": 2}, None, "u[1]"),
        ("dot(u, v)", {"u": 2, "v": 3}, None, "equal length"),
        ("sum(i, u[i]*v[i])", {"u": 2, "v": 3}, None, "different sizes"),
        ("sum(i, sum(i, u[i]))", {"u": 2}, None, "means something else"),
        ("x^2", [], None, "at least one field"),
    ],
)
def test_names_that_do_not_fit(text: str, fields: object, parameters: object, word: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_action(text, fields, parameters)  # type: ignore[arg-type]
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "word"),
    [(sp.I * x, "not real"), (sp.Function("f")(x), "f(x)"), (x + sp.Symbol("x"), "assumptions"), (3, "does not contain"),
     (None, "NoneType"), (sp.Eq(x, 1), "SymPy expression"), (x * sp.oo, "finite")],
)  # fmt: skip
def test_expressions_that_are_no_action(expression: object, word: str) -> None:
    with pytest.raises(SourceError, match=word.replace("(", r"\(").replace(")", r"\)")):
        read_action(expression, ["x"])


def _linear(text: str, **options: object) -> tuple[tuple[sp.Expr, ...], sp.ImmutableMatrix]:
    read = read_equations(text, **options)  # type: ignore[arg-type]
    return read.drift, read.noise


@pytest.mark.parametrize(
    ("text", "drift", "noise"),
    [
        ("dx = -(x + g*x^3) dt + sqrt(2*T) dW", [-x - g * x**3], [[sp.sqrt(2 * T)]]),
        ("dx=-(x+g*x^3)*dt+sqrt(2*T)*dW", [-x - g * x**3], [[sp.sqrt(2 * T)]]),
        ("dx = dt*(1 - x)/2 + s*(1 + x)dW1 - 2 dW2", [(1 - x) / 2], [[s * (1 + x), -2]]),
        ("dx = y dt  # velocity\n\n dy = (-y - x) dt + s dW", [y, -y - x], [[0], [s]]),
        ("dy = -y dt + x dW_a; dx = -x dt + dW_b + dW_a", [-y, -x], [[x, 0], [1, 1]]),
        ("dx = -x/2 dt - 2^x dW", [-x / 2], [[-(2**x)]]),
        ("dx = -x dt + y dt + dW - 2*dW; dy = -y dt", [y - x, -y], [[-1], [0]]),
    ],
)
def test_equation_text(text: str, drift: list[sp.Expr], noise: list[list[sp.Expr]]) -> None:
    read = read_equations(text)
    assert [sp.expand(a - b) for a, b in zip(read.drift, drift)] == [0] * len(drift)
    assert sp.simplify(sp.Matrix(read.noise) - sp.Matrix(noise)).is_zero_matrix


def test_components_and_noise_of_each() -> None:
    text = "du[i] = (-u[i] + sum(j, J[i,j]*u[j]^2)) dt + sqrt(2*T) dW[i]"
    drift, noise = _linear(text, variables={"u": 2}, parameters={"J": (2, 2), "T": None})
    j = sp.Matrix(2, 2, sp.symbols("J_1_1 J_1_2 J_2_1 J_2_2", real=True))
    assert sp.Matrix(drift).equals(-sp.Matrix([u1, u2]) + j * sp.Matrix([u1**2, u2**2]))
    assert noise == sp.sqrt(2 * T) * sp.eye(2)
    separate = "du[1] = -u[1] dt + dW[2]; du[2] = -u[2] dt + dW[1]"
    assert sp.Matrix(_linear(separate, variables={"u": 2})[1]).equals(sp.eye(2))  # columns in the order of their first use


def test_coloured_noise_has_the_stated_variance() -> None:
    read = read_equations("dx = (-x + eta) dt; eta = OU(k, s)")
    eta = read.variables[1]
    (rate,) = (-sp.diff(f, eta) for f in read.drift[1:])
    assert rate == k
    assert sp.simplify(read.diffusion[1, 1] / (2 * rate) - s) == 0  # variance of an Ornstein-Uhlenbeck process
    assert read.noise[0, 0] == 0
    assert read.wieners == ("W_eta",)
    both = read_equations("dx[i] = (-x[i] + e[i]) dt; e[i] = OU(1/2, 3)", variables={"x": 2, "e": 2})
    assert both.diffusion == sp.diag(0, 0, 3, 3)


def test_mapping_of_drifts_is_the_text() -> None:
    wanted = read_equations("dx = (-x + g*y) dt + s dW_x; dy = -y dt + x dW_y")
    for read in (
        read_equations({"x": "-x + g*y", "y": "-y"}, {"x": "s", "y": "x"}),
        read_equations({x: -x + g * y, y: -y}, sp.Matrix([[s, 0], [0, x]])),
        read_equations({"x": "(-x + g*y) dt + s dW_x", "y": "-y dt + x dW_y"}),
    ):
        assert (read.variables, read.drift, read.noise) == (wanted.variables, wanted.drift, wanted.noise)
    assert read_equations({x: -x}, 0.5).noise == sp.Matrix([[sp.Rational(1, 2)]])


def test_text_of_equations_is_read_back() -> None:
    for source in ("dx = -(x + g*x^3) dt + sqrt(2*T) dW", "dx = v dt; dv = (-v - tanh(x)) dt + x dW1 - exp(-x) dW2"):
        read = read_equations(source)
        assert read_equations(read.text) == read
        assert r"dW" in read.latex() and "aligned" in read.latex()


def test_stratonovich_geometric_brownian_motion() -> None:
    # x = exp(a t + s W) solves dx = a x dt + s x o dW; Ito's formula gives the drift (a + s^2/2) x
    a, w, t = sp.symbols("a w t", real=True)
    read = read_equations("dx = a*x dt + s*x dW", interpretation="stratonovich")
    solution = sp.exp(a * t + s * w)
    ito = sp.diff(solution, t) + sp.diff(solution, w, 2) / 2
    assert sp.simplify(read.drift[0].subs(x, solution) - ito) == 0
    assert read.correction == (s**2 * x / 2,)
    assert read_equations("dx = -x dt + s dW", interpretation="stratonovich").correction == (0,)
    with pytest.raises(SourceError, match="interpretation='stratonovich'"):
        read_equations("dx = -x dt + x o dW")


def test_stratonovich_of_two_variables_with_common_noise() -> None:
    # rotation by a common noise keeps x^2 + y^2: in Ito's sense both drifts get -1/2 of the variable
    read = read_equations("dx = -y dW - 0*x dt; dy = x dW + 0*y dt - y dt", interpretation="stratonovich")
    assert read.correction == (-x / 2, -y / 2)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("dx = -x + g dt + dW", "neither dt nor dW"),
        ("dx = -x dt + dW*dW", "not linear"),
        ("dx = sin(dt)*x + dW", "not linear"),
        ("dx = -x dt", "no noise"),
        ("dx/dt = -x + xi", "differentials"),
        ("x' = -x", "differentials"),
        ("x = -x dt + dW", "no differential"),
        ("dx = -x dt + dW; dx = -x dt", "two equations"),
        ("dx == -x dt", "equality signs"),
        ("-x dt + dW", "equality signs"),
        ("", "no equation"),
        ("# nothing", "no equation"),
        ("dx = -x*t dt + dW", "time t"),
        ("dt = -x dt + dW", "stands for time"),
        ("dW = -x dt + dW", "Wiener process"),
        ("dx = -x dt + dy; dy = -y dt + dW", "dy stands inside"),
        ("dx = (-x + eta) dt; eta = OU(k)", "OU(rate, variance)"),
        ("dx = (-x + eta) dt; eta = OU(x, 1)", "depends on the variable x"),
        ("dx = (-x + eta) dt; eta = OU(-1, 1)", "positive"),
        ("du[i] = -u[i] dt + dW[i]", "variables={'u': 2}"),
        ("dx = -x dt + dW[1]", "dW1"),
        ("dx = g dt + dW", "does not depend on the variables"),
        ("dx_ = -x_ dt + dx_", "stands inside"),
        ("d__x = -x dt + dW", "__x"),
    ],
)
def test_equations_that_cannot_be_read(text: str, word: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_equations(text)
    assert word in str(caught.value)


def test_equations_and_options_that_do_not_fit() -> None:
    for call, word in [
        (lambda: read_equations("dx = -x dt + dW", variables=["x", "y"]), "no equation for y"),
        (lambda: read_equations("dy = -y dt + dW", variables=["x"]), "no variable"),
        (lambda: read_equations("du[i] = -u[i] dt + dW[i]; du[1] = dt", variables={"u": 2}), "two equations"),
        (lambda: read_equations("du[3] = -u[1] dt + dW", variables={"u": 2}), "1 to 2"),
        (lambda: read_equations("du = -u[1] dt + dW", variables={"u": 2}), "du[i]"),
        (lambda: read_equations("dx = -g*x dt + dW", parameters=["h"]), "'g'"),
        (lambda: read_equations("dx = -W*x dt + dW", parameters=["W"]), "Wiener process"),
        (lambda: read_equations("dx = -x dt + dW", interpretation="backward"), "interpretation"),  # type: ignore[arg-type]
        (lambda: read_equations("dx = -x dt + dW", 1), "mapping of drifts"),
        (lambda: read_equations({"x": -x, "y": -y}, [[1]]), "2 rows"),
        (lambda: read_equations({"x": -x}, {"z": 1}), "'z'"),
        (lambda: read_equations({"x": -x, "y": -y}, {"x": 1}, variables=["x"]), "one drift for each"),
        (lambda: read_equations(7), "int"),
    ]:
        with pytest.raises(SourceError) as caught:
            call()
        assert word in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="xyduvWT0123.+-*/^() =;\n[],tginhsqroOU_'", max_size=40))
def test_any_text_gives_a_value_or_a_theory_error(text: str) -> None:
    for reader in (read_equations, lambda t: read_action(t, ["x"]), lambda t: read_equations(f"dx = {t} dt + dW")):
        try:
            reader(text)
        except TheoryError:
            continue


_POLYNOMIAL = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(-5, 5), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(_POLYNOMIAL, _POLYNOMIAL, st.integers(1, 9))
def test_printed_expressions_mean_themselves(drift: dict, amplitude: dict, scale: int) -> None:
    f, h = (sp.Add(*(sp.Rational(c, scale) * x**a * y**b for (a, b), c in d.items())) for d in (drift, amplitude))
    read = read_equations(f"dx = ({f}) dt + ({h}) dW; dy = -y dt + dW")
    assert (read.drift[0], read.noise[0, 0], read.noise[1, 0]) == (f, h, 1)
