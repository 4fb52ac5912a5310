"""The expression reader: what it accepts means what it says, and everything else is refused by name."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.parsing import CONSTANTS, FUNCTIONS, ExpressionSyntaxError, name_problem, parse_expression

x, y = sp.Symbol("x", real=True), sp.Symbol("y", real=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", x),
        ("0.1*x", x / 10),
        (".5 + 1. - 1.5e-3", sp.Rational(1, 2) + 1 - sp.Rational(3, 2000)),
        ("2^x^2", 2 ** (x**2)),
        ("-x**2", -(x**2)),
        ("pi*E", sp.pi * sp.E),
        ("Max(0,x)-0.3*Max(0,-x)", sp.Max(0, x) - sp.Rational(3, 10) * sp.Max(0, -x)),
        ("abs(x) + ln(2) + arctan(x)", sp.Abs(x) + sp.log(2) + sp.atan(x)),
        ("gelu(x)", x * (1 + sp.erf(x / sp.sqrt(2))) / 2),
        ("softplus(2*x)", sp.log(1 + sp.exp(2 * x))),
        ("leaky_relu(x, 0.2)", x / 5 + sp.Rational(4, 5) * sp.Max(0, x)),
    ],
)
def test_reads(text: str, expected: sp.Expr) -> None:
    assert sp.simplify(parse_expression(text) - expected) == 0


def test_decimals_are_exact() -> None:
    assert parse_expression("0.1") == sp.Rational(1, 10)
    assert not parse_expression("0.1*x + 1e-7").atoms(sp.Float)


def test_more_variables() -> None:
    assert parse_expression("x*y", symbols=("x", "y")) == x * y


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("x.__class__", "x.__class__"),
        ("__import__('os')", "__import__"),
        ("(lambda: 1)()", "(lambda: 1)"),
        ("x[0]", "x[0]"),
        ("'x'", "'x'"),
        ("[x for x in x]", "[x for x in x]"),
        ("x if x else 2", "x if x else 2"),
        ("x < 1", "x < 1"),
        ("x or 1", "x or 1"),
        ("f'{x}'", "f'{x}'"),
        ("1j*x", "1j"),
        ("True*x", "True"),
        ("foo(x)", "foo"),
        ("y + x", "'y'"),
        ("I*x", "'I'"),
        ("tanh(x=x)", "tanh(x=x)"),
        ("tanh(*x)", "*x"),
        ("exp(x, x)", "exp(x, x)"),
        ("tanh + x", "write tanh(...)"),
        ("x // 2", "x // 2"),
        ("x @ x", "x @ x"),
        ("9**9**9", "9**9"),
        ("x**101", "x**101"),
        ("10**31", "10**31"),
        ("1e400", "1e400"),
        ("exp(exp(exp(exp(9))))", "exp(exp(9))"),
        ("x/0", "x/0"),
        ("0**-1", "0**-1"),
        ("log(0)", "log(0)"),
        ("sqrt(-1)", "sqrt(-1)"),
    ],
)
def test_refuses_and_names_the_token(text: str, token: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse_expression(text)
    assert token in str(caught.value)


@pytest.mark.parametrize("text", ["", "   ", "x +", "tanh(x", "x; x", "x\nimport os", "(" * 70 + "x" + ")" * 70, "x+" * 600 + "x"])
def test_refuses_text_that_is_no_formula(text: str) -> None:
    with pytest.raises(ExpressionSyntaxError):
        parse_expression(text)


def test_refuses_what_is_not_text() -> None:
    with pytest.raises(TypeError, match="int"):
        parse_expression(3)  # type: ignore[arg-type]


def test_unknown_function_suggests_the_nearest() -> None:
    with pytest.raises(ExpressionSyntaxError, match="tanh"):
        parse_expression("tahn(x)")


def test_long_sums_are_fine() -> None:
    assert parse_expression("+".join(["x"] * 250)) == 250 * x


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="x0123456789.+-*/^() eEpi,tanhsqrlogM[]'_", max_size=30))
def test_any_text_gives_an_expression_or_a_named_error(text: str) -> None:
    try:
        value = parse_expression(text)
    except ExpressionSyntaxError:
        return
    assert isinstance(value, sp.Expr)
    assert value.free_symbols <= {x}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_listed_function_can_be_called(name: str) -> None:
    least, _, _ = FUNCTIONS[name]
    arguments = ", ".join(["x", "2"][:least] if least <= 2 else ["x"])
    assert isinstance(parse_expression(f"{name}({arguments})"), sp.Expr)


_U = sp.Array(sp.symbols("u_1 u_2", real=True))
_J = sp.Array([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dot(u, u)", _U[0] ** 2 + _U[1] ** 2),
        ("sum(i, sum(j, u[i]*J[i,j]*u[j]))", _U[0] ** 2 + 5 * _U[0] * _U[1] + 4 * _U[1] ** 2),
        ("sum(i, 2, 2, u[i] - u[i-1])", _U[1] - _U[0]),
        ("sum(i, 3, 1, u[i])", sp.S.Zero),
        ("a*u[2]^2", sp.Symbol("a", real=True) * _U[1] ** 2),
    ],
)
def test_arrays_and_parameters(text: str, expected: sp.Expr) -> None:
    assert sp.expand(parse_expression(text, (), arrays={"u": _U, "J": _J}, parameters=True) - expected) == 0


def test_arrays_and_parameters_are_read_only_if_asked_for() -> None:
    for text in ("u[1]", "dot(u, u)", "sum(i, 1, 2, x)", "a*x"):
        with pytest.raises(ExpressionSyntaxError):
            parse_expression(text)


def test_symbols_stand_for_what_they_are_given_for() -> None:
    assert parse_expression("2*x", {"x": sp.Symbol("x", positive=True) + 1}) == 2 * sp.Symbol("x", positive=True) + 2


@pytest.mark.parametrize("name", ["", "1x", "_x", "x__y", "x.y", "é", "ｘ", "lambda", "I", *CONSTANTS, *FUNCTIONS, "sum", "dot"])
def test_names_that_cannot_be_used(name: str) -> None:
    assert repr(name) in name_problem(name)


@pytest.mark.parametrize("name", ["x", "g_1", "Tc", "beta", "N0"])
def test_names_that_can_be_used(name: str) -> None:
    assert name_problem(name) == ""
    assert parse_expression(name, (), parameters=True) == sp.Symbol(name, real=True)


def test_letters_that_look_alike_are_refused_by_their_names() -> None:
    for text, word in (("х", "CYRILLIC"), ("ｘ", "FULLWIDTH"), ("x − 1", "MINUS SIGN")):
        with pytest.raises(ExpressionSyntaxError, match=word):
            parse_expression(text)
