"""Scales: parsing, exact comparison, several sizes, regimes, values, display."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from symtensor.bounds import Comparison, Scale, ScaleError, SizeParameter, scale
from symtensor.parsing import ExpressionSyntaxError

n, m, p = (SizeParameter(name) for name in "nmp")
A = sympy.Symbol("a", positive=True)
RATIONALS = st.fractions(min_value=-2, max_value=2, max_denominator=4)
MONOMIALS = st.builds(
    lambda a, b, c: Scale.power_of("n", *(sympy.Rational(q.numerator, q.denominator) for q in (a, b, c))),
    RATIONALS, RATIONALS, RATIONALS,
)  # fmt: skip
POWERS = st.sampled_from([0, 1, -1, sympy.Rational(1, 2), 2])
SEVERAL = st.lists(st.builds(lambda a, b, c: n**a * m**b * n.log() ** c, POWERS, POWERS, POWERS), min_size=1, max_size=3).map(
    lambda parts: Scale.max(*parts)
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqrt(n) log(n)", "sqrt(n) log n"),
        ("n^(2/3) (log n)^2 loglog n", "n^(2/3) (log n)^2 loglog n"),
        ("2 n", "n"),
        ("sqrt(log n / n)", "sqrt(log n) / sqrt(n)"),
        ("log log n", "loglog n"),
        ("n + m^2", "max(m^2, n)"),
        ("1/(n + m)", "min(1/m, 1/n)"),
        ("log(n^3 m)", "max(log m, log n)"),
        ("n^2 - n", "n^2"),
        ("exp(2 log n)", "n^2"),
        ("n^0.1", "n^(1/10)"),
        ("7", "1"),
        ("max(n, m) min(n, m)", "m n"),
        ("width^(-1/2)", "1/sqrt(width)"),
    ],
)
def test_text_as_on_paper(text, shown):
    assert str(scale(text)) == shown
    assert scale(shown) == scale(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("2^n", "2**n"),
        ("n**sqrt(log(n))", "sqrt(log(n))"),
        ("n sin(n)", "sin(n)"),
        ("exp(n)", "exp(n)"),
        ("n - m", "-m + n"),
        ("-n", "-n"),
        ("0", "0"),
        ("log(log(log(n)))", "loglog n"),
        ("log(1/n)", "log(1/n)"),
        ("n^a", "n**a"),
    ],
)
def test_growth_outside_the_group_names_the_subterm(text, named):
    with pytest.raises(ScaleError) as caught:
        scale(text)
    assert named in str(caught.value)


@pytest.mark.parametrize("text", ["", "n!", "sqt(n)", "n(n + 1)", "n(", "log", "2^^n", "__import__('os')", "n.real", "1e400"])
def test_text_outside_the_language_is_refused(text):
    with pytest.raises(ExpressionSyntaxError):
        scale(text)
    with pytest.raises(TypeError):
        scale(3.5)  # type: ignore[arg-type]


def test_sizes_restrict_the_names():
    assert scale("n", sizes=["n"]) == scale("n")
    with pytest.raises(ExpressionSyntaxError, match="k"):
        scale("n k", sizes=["n"])


@given(MONOMIALS, MONOMIALS)
@settings(max_examples=60, deadline=None)
def test_one_size_is_totally_ordered_lexicographically(f, g):
    triples = [dict(s.exponents).get("n", (0, 0, 0)) for s in (f, g)]
    difference = next((sign for x, y in zip(*triples, strict=True) if (sign := int(sympy.sign(x - y)))), 0)
    expected = {-1: Comparison.LESS, 0: Comparison.EQUAL, 1: Comparison.GREATER}[difference]
    assert f.compare(g) is expected
    assert Scale.max(f, g) == (g if difference < 0 else f)
    assert Scale.min(f, g) == (f if difference < 0 else g)
    assert (f / g).limit() == {-1: "0", 0: "1", 1: "oo"}[difference]


@given(MONOMIALS, MONOMIALS, MONOMIALS)
@settings(max_examples=40, deadline=None)
def test_group_laws(f, g, h):
    assert (f * g) * h == f * (g * h) and f * g == g * f
    assert f / f == Scale.one() and f**2 == f * f and (f**-2) ** 0.5 == 1 / f
    assert f.compare(g) is (f * h).compare(g * h)


@given(SEVERAL, SEVERAL, SEVERAL)
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_lattice_laws_in_several_sizes(f, g, h):
    def same(x, y):
        return x.within(y) and y.within(x)

    assert same(Scale.max(f, g) * h, Scale.max(f * h, g * h))
    assert same(1 / Scale.max(f, g), Scale.min(1 / f, 1 / g))
    if len(f.monomials) == len(g.monomials) == 1:
        assert Scale.max(f, g) * Scale.min(f, g) == f * g
    assert same(Scale.min(f, Scale.max(g, h)), Scale.max(Scale.min(f, g), Scale.min(f, h)))
    assert f.within(Scale.max(f, g)) and Scale.min(f, g).within(f)
    at = {"n": 2.0**40, "m": 2.0**30}
    assert Scale.max(f, g).evaluate(at) >= max(f.evaluate(at), g.evaluate(at)) * (1 - 1e-12)


@given(SEVERAL, SEVERAL)
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_what_is_proved_holds_along_every_path(f, g):
    relation = f.compare(g)
    for path in ({"m": "n"}, {"m": "n^2"}, {"m": "log n"}, {"n": "log m"}):
        on_path = f.subs(path).compare(g.subs(path))
        if relation is not Comparison.UNDECIDED:
            assert on_path is relation
        if f.within(g):
            assert on_path in (Comparison.LESS, Comparison.EQUAL)


def test_several_sizes_are_decided_only_when_all_exponents_point_one_way():
    assert (n * m).compare(n) is Comparison.GREATER
    assert (n / m).compare(1) is Comparison.UNDECIDED
    assert (n / m).limit() == "undecided"
    assert (n / m.log()).compare(1) is Comparison.UNDECIDED  # m may be exp(n)
    assert Scale.max(n, m).compare(n) is Comparison.UNDECIDED and scale("n").within(Scale.max(n, m))
    assert (n * m).within(Scale.max(n**2, m**2))


def test_symbolic_exponents_are_compared_only_when_assumptions_decide():
    real = sympy.Symbol("r", real=True)
    assert (n**A).compare(1) is Comparison.GREATER
    assert (n**real).compare(1) is Comparison.UNDECIDED
    nonnegative = sympy.Symbol("b", nonnegative=True)
    assert (n**-nonnegative).within(1) and (n**-nonnegative).compare(1) is Comparison.UNDECIDED
    assert (n**A * n.log() ** -5).limit() == "oo"
    assert len(Scale.max(n**real, n).monomials) == 2
    with pytest.raises(ScaleError, match="real"):
        n ** sympy.Symbol("z")
    with pytest.raises(ScaleError, match="sign"):
        Scale.max(n, m) ** real
    assert scale("n^a", exponents={"a": A}) == n**A


def test_logarithms_are_never_dropped_silently():
    f = n * n.log()
    assert Scale.max(n, f) == f and f.compare(n) is Comparison.GREATER
    assert f.equal_up_to_logs(n) and not f.equal_up_to_logs(n**2)
    assert f.without_logs() == scale("n")


def test_regimes_relate_sizes():
    assert Scale.max(n, m).subs({m: n}) == scale("n")
    assert (n * m).subs({"m": n**A}) == n ** (A + 1)
    assert (m.log() * m).subs({m: "n log n"}) == scale("n (log n)^2")
    assert (n / m).subs({m: 5}) == scale("n")
    assert (n**A).subs({"a": sympy.Rational(1, 2)}) == scale("sqrt(n)")
    with pytest.raises(ScaleError, match="does not tend to infinity"):
        scale("m").subs({m: "1/n"})
    with pytest.raises(ScaleError):
        scale("log log m").subs({m: "log n"})


def test_values():
    np.testing.assert_allclose(scale("sqrt(n) log n").evaluate({n: np.array([4, 9])}), [2 * np.log(4), 3 * np.log(9)])
    assert scale("max(n, m^2)").evaluate({"n": 10, "m": 3}) == 10.0
    assert (n**A).evaluate({"n": 16, "a": 0.5}) == 4.0
    assert Scale.one().evaluate({}) == 1.0
    with pytest.raises(ScaleError, match="the size n has no value"):
        scale("n").evaluate({"m": 1})
    for text, value in (("n", 0), ("n", -3), ("n", np.nan), ("log n", 1), ("loglog n", 2.5)):
        with pytest.raises(ScaleError, match="needs"):
            scale(text).evaluate({"n": value})
    assert not isinstance(scale("n").evaluate({"n": 3}), np.ndarray)


def test_too_many_incomparable_monomials_are_refused():
    sizes = [SizeParameter(f"n{i}") for i in range(30)]
    with pytest.raises(ScaleError, match="relate the sizes"):
        f = Scale.max(*sizes)
        f * Scale.max(*(s**-2 for s in sizes)) * Scale.min(*(s**3 for s in sizes))


def test_display():
    assert scale("n^(2/3) log n").latex() == r"n^{\frac{2}{3}} \, \log n"
    assert scale("log n / sqrt(n)")._repr_latex_() == r"$\displaystyle \frac{\log n}{\sqrt{n}}$"
    assert repr(n) == "n -> oo" and str(n) == "n"
    with pytest.raises(ScaleError):
        SizeParameter("2n")
