"""Statements that were once derived and are false: the rule refuses, or gives a bound that the numbers obey."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from symtensor.bounds import (
    DET,
    U1,
    U2,
    ContradictionError,
    Fact,
    Function,
    L,
    MissingHypothesisError,
    NoDefiniteBoundError,
    P,
    RandomTensor,
    as_expr,
    bound,
    chaos_degree,
    contract,
    definite_bound,
    derivative,
    dominated,
    fact,
    fluctuation,
    gaussian,
    identically_distributed_over,
    iid_over,
    independent,
    independent_over,
    integral,
    iterate,
    known,
    max_over,
    moment,
    order_term,
    outer,
    power,
    reindexed,
    scale,
    second_moment,
    stochastic_taylor,
    sum_over,
    taylor_remainder,
    trace,
    variance,
)
from symtensor.bounds.modes import Kind


def members(name: str, *facts: Fact, slots: dict | None = None, over: str = "k") -> RandomTensor:
    return RandomTensor(name, slots, [iid_over(over), *facts], family={over: "n"})


def scalar(name: str, *facts: Fact, **options) -> RandomTensor:
    return RandomTensor(name, facts=facts, **options)


def at_least(expr, truth: str, assume=()) -> None:
    """The derived upper bound is not below the true order."""
    found = bound(expr, assume)
    assert found.kind.upper and scale(truth).within(found.scale), f"{found}, but the truth is {truth}"


def growth(sample, sizes=(64, 1024), draws: int = 200) -> float:
    """Slope of the log median of |M_n| between two sizes."""
    rng = np.random.default_rng(7)
    low, high = (np.median([abs(sample(n, rng)) for _ in range(draws)]) for n in sizes)
    return float(np.log(high / low) / np.log(sizes[1] / sizes[0]))


# 1: a factor that occurs twice is not independent of the rest


def test_a_shared_factor_is_not_independent_of_itself():
    x = members("X", gaussian()).expr
    at_least(sum_over(x * x, "k"), "n")
    g = members("g", gaussian(), slots={"i": "n"}).expr
    at_least(sum_over(contract(g, g, "i"), "k"), "n^2")
    b = scalar("B", gaussian())
    at_least(sum_over(outer(x, x, b.expr), "k"), "n", [independent("X", "B")])
    assert abs(growth(lambda n, rng: np.sum(rng.standard_normal(n) ** 2)) - 1) < 0.02


def test_a_sum_of_squares_has_no_certificate_of_the_clt():
    x = members("X", gaussian(), fact("fixed_law")).expr
    square = x * x
    with pytest.raises(NoDefiniteBoundError):
        definite_bound(sum_over(square, "k"), assume=[fact("fixed_law", square)])


def test_a_random_index_is_not_independent_of_an_unknown():
    stated = [fact("random_size", "N", scale="m"), independent("N", "Z")]  # nothing about the O-term
    with pytest.raises(MissingHypothesisError, match="anscombe"):
        bound(reindexed(order_term("n"), {"n": "m"}, random="N"), stated)


# 2: an index that is bound inside is no dependence


def test_an_inner_sum_over_the_same_index_is_common_to_all_members():
    x, y, n = members("X", gaussian()), members("Y", gaussian()), members("N", moment(4, 1))
    at_least(sum_over(x + sum_over(y, "k"), "k"), "n^(3/2)", [independent(x, y)])
    at_least(sum_over(n * sum_over(y, "k"), "k"), "n^(3/2)", [independent(n, y)])
    slope = growth(lambda n, rng: np.sum(rng.standard_normal(n)) + n * np.sum(rng.standard_normal(n)))
    assert abs(slope - 1.5) < 0.1


@pytest.mark.parametrize(
    "common",
    [
        lambda y: sum_over(y, "k"),
        lambda y: fluctuation(max_over(y, "k")),
        lambda y: integral(y, "k"),
        lambda y: fluctuation(sum_over(y, "k") * y.expr),
    ],
)
def test_every_binder_of_the_index_makes_the_members_dependent(common):
    x, y = members("X", gaussian()), members("Y", gaussian())
    assert "R11b" not in bound(sum_over(fluctuation(x + common(y)), "k"), [independent(x, y)]).rules[-1:]


def test_the_law_of_a_member_with_a_common_part_is_not_one_law():
    q = scalar("Q", identically_distributed_over("k"), known(1), family={"k": "n"})
    mixed = fluctuation(q + sum_over(q, "k"))
    assert bound(q).uniformity("k") == 1
    assert bound(mixed, [known("n", of=mixed)]).uniformity("k") == 0


# 3: the order of subjects


def test_domination_holds_in_the_stated_order_only():
    m, f = scalar("M", known(1)), scalar("F")
    stated = fact("dominated_by", m, f)  # ||M|| = O(||F||): says nothing about the size of F
    with pytest.raises(MissingHypothesisError, match="dominated_by"):
        bound(dominated(f, by=m), [stated])
    assert bound(dominated(f, by=m), [fact("dominated_by", f, m)]).scale == scale("1")
    with pytest.raises(ValueError, match="two tensors"):
        fact("dominated_by", m)


# 4: names that mean something inside


def test_a_tensor_called_delta_is_a_tensor():
    d = RandomTensor("delta", {"i": "n", "j": "n"}, [gaussian()])
    assert definite_bound(trace(d["i", "j"], "i", "j")).scale == scale("sqrt(n)")
    u, v = (RandomTensor(name, {"i": "n"}, [gaussian()]) for name in "uv")
    form = contract(contract(u["i"], d["i", "j"], "i"), v["j"], "j")
    assert definite_bound(form, assume=[independent(u, v, d)]).scale == scale("n")
    assert abs(growth(lambda n, rng: np.trace(rng.standard_normal((n, n))), (16, 128)) - 0.5) < 0.12


def test_a_size_may_have_any_name():
    w = RandomTensor("W", {"i": "fixed_dimension", "j": "fixed_dimension"}, [gaussian()])
    assert definite_bound(trace(w["i", "j"], "i", "j")).scale == scale("sqrt(fixed_dimension)")


# 5: groupings are partitions


@pytest.mark.parametrize("blocks", [[["i"]], [], [["i", "j"], []], [["i", "j"], ["j"]], [["i", "j", "k"]]])
def test_a_grouping_is_a_partition_of_the_slots(blocks):
    w = RandomTensor("W", {"i": "n", "j": "m"}, [gaussian()])
    for ask in (
        lambda: power(w.expr, 1, grouping=blocks),
        lambda: bound(w, grouping=blocks),
        lambda: definite_bound(w, grouping=blocks),
    ):
        with pytest.raises(ValueError, match="grouping"):
            ask()
    if blocks:  # an empty one means that none is stated
        with pytest.raises(ValueError, match="grouping"):
            bound(RandomTensor("V", {"i": "n", "j": "m"}, [known("n", grouping=blocks)]))


# 6: Taylor at a point that grows


def test_the_point_of_an_expansion_is_fixed():
    n, a = sympy.Symbol("n"), sympy.Symbol("a", real=True)
    d = scalar("D", known("1/n", "Theta", DET))
    for phi, order in (("x^2", 0), ("exp(x)", 1)):  # (n + D)^2 - n^2 = 2 n D + D^2 is about 2
        with pytest.raises(MissingHypothesisError, match="fixed point"):
            bound(taylor_remainder(phi, d, n, order))
        with pytest.raises(MissingHypothesisError, match="fixed point"):
            stochastic_taylor(phi, d, n, order)
    fixed = stochastic_taylor("exp(x)", d, a, 1, [fact("fixed", "a")])
    assert fixed.remainder.kind is Kind.THETA and fixed.remainder.scale == scale("1/n^2")
    with pytest.raises(ValueError, match="finite real number"):
        taylor_remainder("exp(x)", d, sympy.I, 1)


def test_a_stated_derivative_bound_covers_a_growing_point():
    n = sympy.Symbol("n", positive=True)
    d = scalar("D", known("1/n", "Theta", DET))
    found = bound(taylor_remainder("x^2", d, n, 0), [fact("derivative_bound", "x**2", number=1, scale="n")])
    assert (found.scale, found.kind) == (scale("1"), Kind.O)


def test_coefficients_that_grow_are_part_of_the_terms():
    d = scalar("D", known("1/n", "Theta", DET))
    with pytest.raises(MissingHypothesisError, match="fixed point"):
        stochastic_taylor("sin(n*x)", d, 0, 1, [fact("derivative_bound", "sin(n*x)", number=2, scale="n^2")])


# 7: which norm a second moment is about


def test_the_second_moment_of_a_matrix_names_its_norm():
    spectral = RandomTensor("W", {"i": "n", "j": "n"}, [chaos_degree(1), second_moment("n")])
    with pytest.raises(MissingHypothesisError, match="frobenius_moment"):
        bound(spectral, grouping=[["i", "j"]])
    frobenius = RandomTensor("W", {"i": "n", "j": "n"}, [chaos_degree(1), second_moment("n^2", frobenius=True)])
    assert bound(frobenius, grouping=[["i", "j"]]).scale == scale("n")
    assert bound(RandomTensor("v", {"i": "n"}, [chaos_degree(1), second_moment("n")])).scale == scale("sqrt(n)")
    rng = np.random.default_rng(0)
    w = rng.standard_normal((64, 64))
    assert abs(np.linalg.norm(w) / 64 - 1) < 0.1 and np.linalg.norm(w, 2) < 3 * 8


# 8: limits


def test_a_limit_is_a_fixed_number_of_a_scalar():
    with pytest.raises(NoDefiniteBoundError):
        definite_bound(RandomTensor("v", {"i": "n"}, [fact("converges_to", number=1), known("n")]))
    with pytest.raises(ContradictionError, match="-> 2 in probability"):
        definite_bound(scalar("q", fact("converges_to", number=2), known("1/n")))
    with pytest.raises(ValueError, match="fixed real number"):
        definite_bound(scalar("q", fact("converges_to", number=sympy.Symbol("n", positive=True))))
    assert bound(scalar("q", fact("converges_to", number=2))).kind is Kind.THETA
    assert bound(scalar("q", fact("converges_to", number=0))).kind is Kind.SMALL_O


# 9: one value of a size is no limit


@pytest.mark.parametrize("known_fact", [known(1, "o"), known("1/n", "Theta", DET), known("n")])
def test_a_fixed_value_of_a_size_is_no_limit(known_fact):
    with pytest.raises(ValueError, match="n = 5 does not tend to infinity"):
        reindexed(scalar("o", known_fact), {"n": 5})


# 10: uniformity is about the upper half


def test_uniform_upper_bounds_do_not_invert():
    for mode in (P, DET):
        u = scalar("U", known(1, "Theta", mode, uniform=U2("k")), family={"k": "n"})
        inverse = power(u, -1)
        assert bound(inverse).uniform == ()
        for expr in (max_over(inverse, "k"), sum_over(inverse, "k"), sum_over(1 / u, "k")):
            with pytest.raises(MissingHypothesisError):
                bound(expr)
    assert abs(growth(lambda n, rng: np.max(1 / rng.random(n))) - 1) < 0.15


# 11: facts over one of several indices


def test_independence_over_an_index_is_joint_over_the_others():
    for make in (iid_over, independent_over, identically_distributed_over):
        assert "jointly in its other indices" in str(make("i", "C"))
        assert "jointly in its other indices" in (make.__doc__ or "")
    c = RandomTensor("C", facts=[gaussian(), iid_over("i"), iid_over("j")], family={"i": "n", "j": "n"})
    total = bound(sum_over(sum_over(c, "j"), "i"))
    assert total.scale == scale("n") and "jointly" in total.tree()
    one = RandomTensor("C", facts=[gaussian(), iid_over("i")], family={"i": "n", "j": "n"})
    with pytest.raises(MissingHypothesisError):
        bound(sum_over(sum_over(one, "j"), "i"))


def test_cyclic_rows_are_not_jointly_independent():
    def cyclic(n, rng):
        return n * np.sum(rng.standard_normal(n))  # C_ij = eps_{(j - i) mod n}: every eps n times

    assert abs(growth(cyclic) - 1.5) < 0.1


# 12: iterated functions that change with n


def test_an_iterated_function_does_not_change_with_the_size():
    n, x = sympy.Symbol("n"), sympy.Symbol("x", real=True)
    with pytest.raises(MissingHypothesisError, match="growth"):
        bound(iterate(Function("n*x", n * x, 1, True), scalar("x", known(1)), 2))


# 14: facts that exclude each other


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (RandomTensor("g", {"i": "n"}, [gaussian(), known(1, "Theta", DET)]), ("Gaussian", "Theta(1)")),
        (RandomTensor("x", facts=[known("n", "Omega"), known(1)]), ("Omega(n)", "O(1)")),
        (RandomTensor("x", facts=[known("n", "Theta"), moment(2, 1)]), ("Theta(n)", "E ||x||^2")),
        (RandomTensor("x", facts=[known("n", "Omega"), known("n", "o")]), ("Omega(n)", "o(n)")),
        (
            RandomTensor("M", {"i": "n", "j": "n"}, [known("n", "Omega"), known(1, grouping=(("i", "j"),))]),
            ("Omega(n)", "norm over ij"),
        ),
    ],
)
def test_facts_that_exclude_each_other_are_both_named(tensor, words):
    for ask in (bound, definite_bound):
        with pytest.raises(ContradictionError) as refusal:
            ask(tensor)
        for word in words:
            assert word in str(refusal.value)


@pytest.mark.parametrize(
    "facts",
    [
        [gaussian(), fact("deterministic")],
        [fact("deterministic"), fact("fixed_law"), known(1)],
        [fact("converges_to", number=1), fact("converges_to", number=2)],
    ],
)
def test_facts_that_exclude_each_other_without_a_scale(facts):
    with pytest.raises(ContradictionError):
        bound(scalar("x", *facts))


def test_a_stated_bound_of_an_expression_may_not_contradict_what_follows():
    x = as_expr(scalar("x", known(1)))
    total = x + 1
    with pytest.raises(ContradictionError):
        bound(total, [known("n", "Omega", of=total)])


def test_sharper_and_weaker_facts_agree():
    x = scalar("x", known("n", "O"), known("sqrt(n)", "Theta"), known(1, "Omega"), known("n", uniform=U1("k")))
    assert bound(x).kind is Kind.THETA and bound(x).scale == scale("sqrt(n)")


def test_a_derivative_in_the_index_needs_the_joint_law_of_the_members() -> None:
    """X_t = cos(t^2) Z1 + sin(t^2) Z2 is N(0, 1) for every t, but its derivative has the variance 4 t^2."""
    member = RandomTensor("Q", (), (identically_distributed_over("k"),), family={"k": "n"})
    slope = derivative(member.expr, "k")
    with pytest.raises(MissingHypothesisError):
        bound(max_over(fluctuation(slope), "k"), assume=(variance(1, slope),))
    gaussian_member = RandomTensor("X", (), (gaussian(), iid_over("k")), family={"k": "n"})
    step = derivative(gaussian_member.expr, "k")
    stated = known(1, "Theta", L(2), of=step, uniform=U1("k"))
    total = bound(sum_over(step, "k"), assume=(stated, fact("centred", step)))
    assert total.definite is None and total.scale == scale("n")  # differences telescope: sqrt(n) would be too small a certificate
