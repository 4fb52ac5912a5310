"""Everything that would be silently wrong at run time is an error while generating, and names what is wrong."""

from __future__ import annotations

import ast

import pytest
import sympy as sp

import symtensor
from codegen import (
    ConstantRange,
    DivisionByZero,
    GenerationError,
    ModuleSpec,
    NameClash,
    ShapeError,
    UnboundName,
    UnsupportedNode,
    generate,
)
from codegen.names import identifier
from codegen.strict import check_expressions, nodes_of
from symtensor.kernels import (
    Argument,
    ArrayKernel,
    ArrayOutput,
    BatchKernel,
    Component,
    CompositeKernel,
    ExpectationKernel,
    ScalarKernel,
    ScanKernel,
)
from symtensor.numerics.rules import Rule
from symtensor.tensor import Dimension, Tensor

x, y = sp.symbols("x y", real=True)
P = Dimension("P")
p, q = P.indices("p q")


def compiled(expression, args=None, **options):  # type: ignore[no-untyped-def]
    return symtensor.compile(expression, args, reference_points=False, **options)


# -- symbols -----------------------------------------------------------------------------------------------------------


def test_two_symbols_of_one_name_are_told_apart() -> None:
    """SymPy keeps Symbol('x') and Symbol('x', real=True) apart; emitted code would add them."""
    for twin in (sp.Symbol("x"), sp.Dummy("x"), sp.Symbol("x", positive=True)):
        kernel = ScalarKernel("f", (Argument("x"),), (("out", x + 2 * twin),))
        with pytest.raises(NameClash, match="two different symbols are called 'x'"):
            generate(ModuleSpec("m", "t", (kernel,)))
        with pytest.raises(NameClash, match="'x'"):
            compiled(x + 2 * twin)


def test_the_symbol_of_the_expression_must_be_the_argument() -> None:
    with pytest.raises(NameClash, match="their assumptions differ"):
        compiled(sp.Symbol("x") ** 2, [x])
    with pytest.raises(UnboundName, match="symbol 'y' is not an argument; arguments: x"):
        compiled(x + y, [x])
    with pytest.raises(UnboundName, match="tensor 'K' is not an argument"):
        compiled(Tensor("K", (P, P))[p, q] * x, [x])
    with pytest.raises(UnboundName, match="tensor 'K' is not an argument"):
        compiled(Tensor("K", (P, P))[p, q], [Tensor("K", (P,))])


def test_symbols_that_become_one_name_clash() -> None:
    with pytest.raises(NameClash, match="two arguments are called 'alpha'"):
        compiled(sp.Symbol(r"\alpha") + sp.Symbol("alpha"))
    with pytest.raises(NameClash, match="two arguments are called 'x'"):
        compiled(x + y, [x, x, y])


def test_symbols_that_do_not_commute() -> None:
    first, second = sp.symbols("A B", commutative=False)
    with pytest.raises(UnsupportedNode, match="does not commute"):
        compiled(first * second - second * first)


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [sp.Integer(10) ** 400, sp.exp(1000), sp.Rational(1, 10**400), sp.factorial(200)], ids=str)
def test_constants_out_of_range(constant: sp.Expr) -> None:
    with pytest.raises(ConstantRange, match=r"f\.value: the constant .* (over|under)flows in float64"):
        compiled(constant * x + 1)


def test_constants_are_judged_as_they_are_multiplied() -> None:
    assert float(compiled(sp.exp(1000) * sp.Integer(10) ** -400 * x)(1.0)) == pytest.approx(float(sp.exp(1000) / 10**400))


def test_range_of_float32() -> None:
    assert float(compiled(x * 10**40)(1.0)) == 1e40
    with pytest.raises(ConstantRange, match="overflows in float32"):
        compiled(x * 10**40, dtype="float32")


@pytest.mark.parametrize("number", [sp.oo, sp.nan, sp.zoo], ids=str)
def test_infinities(number: sp.Expr) -> None:
    with pytest.raises(UnsupportedNode, match="must be finite"):
        check_expressions({"f": sp.Add(x, sp.exp(x) * number, evaluate=False)})


ZEROS = [(x + 1) ** 2 - x**2 - 2 * x - 1, sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1, sp.cosh(x) - (sp.exp(x) + sp.exp(-x)) / 2]


@pytest.mark.parametrize("zero", ZEROS, ids=str)
def test_division_by_a_symbolic_zero(zero: sp.Expr) -> None:
    for expression in (x / zero, x + zero ** sp.Rational(-3, 2), y * sp.log(zero), sp.tanh(1 / (1 + y / zero))):
        with pytest.raises(DivisionByZero, match="is zero for all values of its symbols"):
            compiled(expression)


def test_denominators_that_nearly_vanish_are_kept() -> None:
    tiny = sp.Rational(1, 10**30)
    f = compiled(x / ((x + 1) ** 2 - x**2 - 2 * x - 1 + tiny))
    assert f is not None
    compiled(1 / (x - y))
    compiled(1 / (sp.exp(x) - 1))


def test_deep_formulas_do_not_exhaust_the_stack() -> None:
    deep = x
    for _ in range(3000):
        deep = sp.Add(1, sp.Pow(deep, -1, evaluate=False), evaluate=False)
    check_expressions({"f": deep})
    assert sum(1 for _ in nodes_of(deep)) > 6000


# -- nodes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "node", [sp.gamma(x), sp.Function("mystery")(x), sp.DiracDelta(x), sp.zeta(x), sp.Integral(sp.exp(-(y**2) * x), (y, 0, x)),
             sp.Derivative(sp.Function("g")(x), x), sp.Piecewise((x, x > 0)), sp.I * x], ids=str,
)  # fmt: skip
def test_unsupported_nodes_are_named(node: sp.Expr) -> None:
    with pytest.raises(UnsupportedNode, match=r"f\.value"):
        compiled(node + x)


# -- kernels that are assembled by hand --------------------------------------------------------------------------------

SQUARE = ScalarKernel("square", (Argument("x"),), (("out", x**2),))


def refused(*kernels: object, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        generate(ModuleSpec("m", "t", kernels))  # type: ignore[arg-type]


def test_array_kernels() -> None:
    vector, part = (Argument("v", (2,)),), (Component("v", (1,)),)
    good = ArrayOutput("out", (2,), ("out", sp.Integer(1)))
    assert generate(ModuleSpec("m", "t", (SQUARE, ArrayKernel("f", vector, "square", part, (good,))))).check().passed
    refused(SQUARE, ArrayKernel("f", vector, "cube", part, (good,)), error=UnboundName, match="'cube' is no scalar kernel")
    refused(SQUARE, ArrayKernel("f", vector, "square", (), (good,)), error=GenerationError, match="takes 1 arguments, got 0")
    outside = (Component("v", (2,)),)
    refused(SQUARE, ArrayKernel("f", vector, "square", outside, (good,)), error=ShapeError, match=r"component \(2,\) of v")
    unknown = (Component("w", (0,)),)
    refused(SQUARE, ArrayKernel("f", vector, "square", unknown, (good,)), error=UnboundName, match="'w', which is no argument")
    short = ArrayOutput("out", (3,), ("out",))
    refused(SQUARE, ArrayKernel("f", vector, "square", part, (short,)), error=ShapeError, match="has 1 entries, needs 3")
    wrong = ArrayOutput("out", (1,), ("value",))
    refused(SQUARE, ArrayKernel("f", vector, "square", part, (wrong,)), error=UnboundName, match="'value' of out is no output")


def test_expectation_and_batch_kernels() -> None:
    law = ScalarKernel("law", (Argument("s"),), (("m1", sp.S.Zero), ("k11", sp.Symbol("s", positive=True))))
    rule = Rule("trapezoid", 41, 8.0)
    good = ExpectationKernel("mean", (Argument("s"),), "square", "law", ("x",), rule)
    assert generate(ModuleSpec("m", "t", (SQUARE, law, good, BatchKernel("many", "mean", ("s",))))).check().passed
    missing = ExpectationKernel("mean", (), "square", "law", ("x",), rule)
    refused(SQUARE, law, missing, error=UnboundName, match="'s' is neither a Gaussian variable nor an argument")
    swapped = ExpectationKernel("mean", (Argument("s"),), "law", "square", ("x",), rule)
    refused(SQUARE, law, swapped, error=GenerationError, match="a law with outputs")
    gauss = ExpectationKernel("mean", (Argument("s"),), "square", "law", ("x",), Rule("gh", 20))
    refused(SQUARE, law, gauss, error=GenerationError, match="takes a trapezoid")
    refused(SQUARE, BatchKernel("many", "square", ("y",)), error=UnboundName, match="are not arguments of square")
    refused(SQUARE, BatchKernel("many", "cube", ("x",)), error=UnboundName, match="'cube' is not among")


def test_single_composites_are_no_steps() -> None:
    from symtensor.kernels import Assignment

    step = CompositeKernel("step", (Argument("x"),), (Assignment(("u",), "square", ("x",)),), (Argument("u"),), single=True)
    refused(SQUARE, step, ScanKernel("loop", "step", (("x", "u"),)), error=UnboundName, match="with a named tuple")


# -- names and texts from users ----------------------------------------------------------------------------------------

TEXTS = [
    '"""\nimport os\nos.system("true")\n"""', "'", "\\", "{{ 7*7 }}", "{% for a in b %}", "\u2028import os", "x\nimport os",
    "__import__('os')", "\u0445", "\uff46", "x; import os", "%(a)s {0}", "\u202etxet", "__class__", "a.b", "x=1",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_name_of_a_symbol_becomes_code(text: str) -> None:
    """Only the names of arguments differ from the module of a plain symbol."""
    plain = ast.parse(compiled(sp.Symbol("plain", real=True) ** 2).source)
    f = compiled(sp.Symbol(text, real=True) ** 2, title=text, statement=text, citations=(text,))
    tree = ast.parse(f.source)
    (argument,) = f.arguments
    assert argument.name == identifier(text) and argument.name.isascii() and argument.name.isidentifier()
    renamed = f.source.replace(argument.name, "plain")
    assert len(tree.body) == len(plain.body)
    assert [type(node) for node in tree.body] == [type(node) for node in plain.body]
    assert ast.dump(ast.parse(renamed).body[-1].body[-1]) == ast.dump(plain.body[-1].body[-1])  # type: ignore[attr-defined]
    assert float(f(3.0)) == 9.0


@pytest.mark.parametrize("name", ["x y", "__init__", "lambda", "jnp", "\u0445", "f\n", "", "1f", "print", "a.b", "{{x}}"])
def test_names_that_the_user_gives_are_checked_not_changed(name: str) -> None:
    with pytest.raises(NameClash, match=r"is no name|is a Python keyword|is used by"):
        compiled(x**2, name=name)
    with pytest.raises(NameClash):
        compiled({name: x**2})
    with pytest.raises(NameClash):
        compiled(x**2, {name: x})
    with pytest.raises(NameClash):
        compiled(x * y, {name: [x, y]})


def test_look_alikes_do_not_meet() -> None:
    latin, cyrillic, wide = sp.symbols("a \u0430 \uff41", real=True)
    f = compiled(latin + 10 * cyrillic + 100 * wide, [latin, cyrillic, wide])
    assert [argument.name for argument in f.arguments] == ["a", "u0430", "uff41"]
    assert float(f(1, 2, 3)) == 321.0
