"""Every rule derives what it should; every counterexample of the specification is refused or gives the weaker result."""

from __future__ import annotations

import re

import pytest
from bounds_examples import EXAMPLES, GROUPED, gaussian_pair, matrix, scalar, vector

from symtensor.bounds import (
    ALL_MOMENTS,
    DET,
    PSI2,
    RULES,
    U1,
    U2,
    Bound,
    Kind,
    L,
    MissingHypothesisError,
    Mode,
    P,
    RandomTensor,
    apply,
    assemble,
    block_diagonal,
    bound,
    bounded_fact,
    centred,
    chaos_degree,
    coarser,
    conditional,
    contract,
    contract_vectors,
    derivative,
    dominated,
    entry,
    entry_variance,
    expectation,
    fact,
    fluctuation,
    gaussian,
    given_event,
    identically_distributed_over,
    iid_entries,
    iid_over,
    independent,
    independent_over,
    integral,
    inverse,
    inverse_remainder,
    iterate,
    known,
    limit_over,
    max_of,
    max_over,
    moment,
    negatively_associated,
    order_term,
    outer,
    power,
    reindexed,
    scale,
    scaled,
    second_moment,
    sigma_min,
    sub_gaussian_entries,
    sum_over,
    taylor_remainder,
    trace,
    uniformly_integrable,
    variance,
)

SPECIFIED = (
    "R1 R2 R3 R4 R5 R6 R6b R7 R8a R8b R8c R9 R10 R10b R11a R11b R11c R12 R13 R13b R14 R14b R15 R16 R17 R18 R19 R20 R21 "
    "R22 N1 N2 N3 N4 N5 N6 N7 N8"
).split()


def refused(expr, rule: str, hypothesis: str, assume=(), grouping=None) -> MissingHypothesisError:
    """The refusal, which must name rule, hypothesis, subject and fix."""
    with pytest.raises(MissingHypothesisError) as caught:
        bound(expr, assume, grouping)
    error = caught.value
    assert (error.rule, error.hypothesis) == (rule, hypothesis), error
    assert error.subject and error.fix and error.rule in str(error) and error.fix in str(error)
    return error


def gives(expr, text: str, kind: str = "O", mode: Mode | None = None, assume=(), grouping=None) -> Bound:
    found = bound(expr, assume, grouping)
    assert (found.scale, found.kind) == (scale(text), Kind(kind)), found
    assert mode is None or found.mode == mode, found
    found.check()
    return found


def test_every_rule_of_the_specification_is_a_rule():
    assert set(SPECIFIED) <= set(RULES)
    assert set(EXAMPLES) == set(RULES)
    for rule in RULES.values():
        assert rule.statement and rule.function.__doc__


@pytest.mark.parametrize("rule", sorted(EXAMPLES))
def test_examples_use_their_rule_and_check(rule):
    for example in EXAMPLES[rule]:
        found = example()
        assert rule in found.rules
        found.check()


# R1, R2, R21 ---------------------------------------------------------------------------------------------------------


def test_sum_takes_the_largest_scale_and_the_weakest_mode():
    gives(scalar("x", known("n", mode=L(4))) + scalar("y", known("n log n", mode=PSI2)), "n log n", "O", L(4))


def test_x_minus_x_is_an_upper_bound_not_zero_and_not_theta():
    x = scalar("x", known("n", "Theta")).expr
    assert gives(x - x, "n").definite is None


def test_sum_with_a_dominant_theta_term_is_theta():
    gives(scalar("x", known("n", "Theta")) - scalar("y", known("n", "o")), "n", "Theta")
    gives(scalar("x", known("n", "Theta")) + scalar("y", known("n")), "n", "O")


def test_small_o_survives_only_where_every_term_is_small():
    gives(scalar("x", known("n", "o")) + scalar("y", known("sqrt(n)")), "n", "o")
    gives(scalar("x", known("n", "o")) + scalar("y", known("n")), "n", "O")


def test_a_lower_bound_alone_does_not_bound_a_sum():
    refused(scalar("x", known("n", "Omega")) + scalar("y", known("n")), "R1", "upper bound O")


def test_equal_order_terms_are_two_unknowns_and_do_not_cancel():
    gives(order_term("n") - order_term("n"), "n")
    one = order_term("n")
    gives(one - one, "n")


def test_order_terms_do_not_divide():
    with pytest.raises(MissingHypothesisError, match=re.escape("O(f)/O(f) is undefined")) as caught:
        order_term("n") / order_term("n")
    assert caught.value.rule == "R21"
    refused(1 / (order_term("n") + 0 * scalar("x") + order_term("n")), "R5", "lower bound Omega")
    gives(order_term("n") / order_term("n^2", "Theta"), "1/n")


# R3, R4, R15 and N1-N4 ------------------------------------------------------------------------------------------------


def test_product_modes_follow_hoelder_and_independence():
    x, y = scalar("x", known("n", mode=L(4))), scalar("y", known("n", mode=L(4)))
    gives(x * y, "n^2", "O", L(2))
    gives(x * y, "n^2", "O", L(4), [independent(x, y)])
    gives(scalar("x", known(1, mode=PSI2)) * scalar("y", known(1, mode=PSI2)), "1", "O", ALL_MOMENTS)
    gives(scalar("x", known(1, mode=PSI2)) * scalar("y", known(1, mode=L(2))), "1", "O", L(2, open=True))


def test_product_is_theta_only_if_both_are():
    gives(scalar("x", known("n", "Theta")) * scalar("y", known("n", "Theta")), "n^2", "Theta")
    gives(scalar("x", known("n", "Theta")) * scalar("y", known("n")), "n^2", "O")
    refused(scalar("x", known("n", "Omega")) * scalar("y", known("n")), "R3", "upper bound O")


def test_pairwise_independence_is_not_mutual():
    x, y, z = (scalar(name, moment(2, 1)) for name in "xyz")
    product = (x * y) * z
    pairwise = [independent(x, y), independent(y, z), independent(x, z)]
    assert bound(product, pairwise).mode == L(1)  # x y by independence, then Hoelder with z
    assert bound(product, [independent(x, y, z)]).mode == L(2)


def test_gaussian_inner_product_is_n_without_independence_and_sqrt_n_with_it():
    u, v = gaussian_pair()
    inner = contract(u["i"], v["i"], over="i")
    plain = gives(inner, "n")
    assert plain.rules[-1] == "R4" and "R11b (needs 'independent'" in plain.tree()
    sharp = gives(inner, "sqrt(n)", "O", L(2), [independent(u, v)])
    assert sharp.rules[-1] == "R11b"
    gives(contract(u["i"], u["i"], over="i"), "n", assume=[independent(u, v)])  # |u|^2 = n: u is not independent of u


def test_double_contraction_of_identities_is_refused_with_both_alternatives():
    one, two = matrix("I", known(1, "Theta", DET)), matrix("J", known(1, "Theta", DET))
    pairs = contract(one["i", "j"], two["i", "j"], over=("i", "j"))
    error = refused(pairs, "N3", "grouped norm over (i j)")
    assert "grouping=" in error.fix and "nuclear" in error.fix and "<I_n, I_n> = n" in error.counterexample
    frobenius = known("sqrt(n)", "Theta", DET, grouping=GROUPED)
    a, b = matrix("I", frobenius), matrix("J", frobenius)
    gives(contract(a["i", "j"], b["i", "j"], over=("i", "j")), "n")  # the truth is n
    c = matrix("J", bounded_fact("nuclear", Bound("n", "Theta", DET)))
    gives(contract(one["i", "j"], c["i", "j"], over=("i", "j")), "n")
    gives(contract(coarser(one.expr), coarser(two.expr), over=("i", "j")), "n")


def test_the_single_contraction_rules_refuse_two_pairs():
    from symtensor.bounds.rules import Given, apply_rule

    one = matrix("I", known(1, "Theta", DET))
    premise = bound(one)
    pairs = contract(one["i", "j"], one["i", "j"], over=("i", "j"))
    for rule in ("R4", "N2"):
        with pytest.raises(MissingHypothesisError, match="exactly one contracted pair"):
            apply_rule(rule, pairs, (premise, premise), Given(()), ())


def test_contraction_with_vectors_is_a_chain_of_single_pairs():
    t = RandomTensor("T", {"i": "n", "j": "n", "k": "n"}, [gaussian()])
    vectors = {label: vector(label + "v", known(1, mode=DET), label=label)[label] for label in "ij"}
    gives(contract_vectors(t.expr, vectors), "sqrt(n)", "O", PSI2)
    with pytest.raises(ValueError, match="must be a vector with that label"):
        contract_vectors(t.expr, {"i": matrix("A").expr})


def test_trace_costs_the_dimension():
    gives(trace(matrix("M", known(1, "Theta", DET)).expr, "i", "j"), "n")


def test_regrouping_costs_dimensions_upwards_and_nothing_downwards():
    gives(matrix("M", known("sqrt(n)", grouping=GROUPED)), "sqrt(n)")
    refused(matrix("M", known(1)), "A", "a bound in the norm over i j", grouping=GROUPED)
    gives(coarser(matrix("M", known(1))), "sqrt(n)", grouping=GROUPED)
    t = RandomTensor("T", {"i": "n", "j": "n", "k": "n"}, [gaussian()])
    gives(t, "sqrt(n)", "Theta")
    gives(t, "n", "Theta", grouping=(("i",), ("j", "k")))
    gives(t, "n^(3/2)", "Theta", grouping=(("i", "j", "k"),))


def test_facts_about_the_plain_norm_do_not_bound_grouped_norms():
    for known_fact in (moment(2, 1), fact("every_subsequence", scale=1), fact("conditional_bound", scale=1, index="F")):
        with pytest.raises(MissingHypothesisError, match="in the norm over i j"):
            bound(matrix("M", known_fact), grouping=GROUPED)


def test_symmetric_norm_needs_symmetry():
    diagonal = bounded_fact("diagonal_bound", Bound("n"))
    gives(matrix("M", fact("symmetric"), diagonal), "n")
    refused(matrix("M", diagonal), "N7", "symmetric")


def test_block_diagonal_is_a_maximum_for_matrices_and_an_l2_sum_for_vectors():
    blocks = matrix("M", known(1, mode=PSI2), iid_over("k"), over="k", size=2)
    gives(block_diagonal(blocks.expr, "k"), "sqrt(log n)")
    gives(block_diagonal(vector("u", known(1, mode=DET, uniform=U1("k")), over="k", size=2)["i"], "k"), "sqrt(n)")
    gives(block_diagonal(matrix("M", known(1, mode=DET, uniform=U1("k")), over="k").expr, "k"), "1")
    refused(block_diagonal(vector("u", known(1), iid_over("k"), over="k")["i"], "k"), "N8", "mode L^2")


def test_hoelder_for_expectations():
    x, y = scalar("x", moment(2, "n")), scalar("y", moment(2, "n"))
    gives(expectation(x * y), "n^2", "O", DET)
    a, b = scalar("a", moment(1, "n")), scalar("b", moment(1, "n"))
    error = refused(expectation(a * b), "R15", "negatively_associated")
    assert "E|XY| = 1 > 2/pi" in error.counterexample
    gives(expectation(a * b), "n^2", "O", DET, [independent(a, b)])
    gives(expectation(a * b), "n^2", "O", DET, [negatively_associated(a, b)])
    both = [negatively_associated(a, b), independent(a, b)]
    refused(expectation(a * a), "R15", "negatively_associated", both)  # E a^2 is not (E|a|)^2
    gives(expectation(scalar("x", moment(3, 1)) * scalar("y", moment(1.5, 1))), "1")


# R5, R6, R6b, R7, R20 -------------------------------------------------------------------------------------------------


def test_negative_powers_need_a_lower_bound():
    refused(power(scalar("x", known("n")), -1), "R5", "lower bound Omega")
    gives(power(scalar("x", known("n", "Omega")), -1), "1/n")
    gives(power(scalar("x", known("n", "Theta")), -2), "1/n^2", "Theta", P)


def test_power_of_a_mode():
    gives(scalar("x", moment(4, "n")).expr ** 2, "n^2", "O", L(2))
    gives(scalar("x", known("n", mode=PSI2)).expr ** 0.5, "sqrt(n)", "O", PSI2)


def test_continuous_function_of_a_bounded_quantity():
    gives(apply("exp(x)", scalar("x", known(1))), "1")
    refused(apply("sign(x)*exp(x)", scalar("x", known(1))), "R6b", "growth")
    gives(apply("cosh(x)", scalar("x", known("n", "o")) / scale("n")), "1")


def test_exponential_of_a_growing_quantity_is_refused():
    z = scalar("z", gaussian())
    error = refused(apply("exp(x)", scaled("log n", z)), "R6b", "growth")
    assert "n^|Z|" in error.counterexample and any(other.rule == "R6" for other in error.others)


def test_polynomial_growth_and_growth_inside_the_scale_group():
    gives(apply("x^3 - x", scalar("x", known("n", mode=L(6)))), "n^3", "O", L(2))
    gives(apply("x^3", scalar("x", known("1/n"))), "1")
    gives(apply("tanh(x)", scalar("x", known("n"))), "1", "O", DET)
    gives(apply("log(1 + x^2)", scalar("x", known("n"))), "log n")
    gives(apply("log(1 + exp(x))", scalar("x", known("n"))), "n")


def test_entrywise_functions_need_a_fixed_dimension():
    refused(apply("x^2", vector("u", gaussian())), "R6b", "fixed dimension")
    gives(apply("x^2", vector("u", gaussian(), size=3)), "1")


def test_taylor_remainder_needs_a_vanishing_deviation_and_smoothness():
    gives(taylor_remainder("exp(x)", scalar("d", known("1/sqrt(n)", "Theta")), 0, 2), "1/n^(3/2)", "Theta")
    gives(taylor_remainder("cos(x)", scalar("d", known("1/sqrt(n)", "Theta")), 0, 2), "1/n^(3/2)", "O")
    refused(taylor_remainder("exp(x)", scalar("d", known(1)), 0, 2), "R7", "D -> 0")
    refused(taylor_remainder("abs(x)", scalar("d", known("1/n")), 0, 1), "R7", "smooth")
    for phi in ("x*abs(x)", "max(0, x)", "(x^2)^(3/4)", "sqrt(x)", "1/x", "log(x)", "exp(-1/x^2)"):
        refused(taylor_remainder(phi, scalar("d", known("1/n")), 0, 1), "R7", "smooth")
    refused(taylor_remainder("sin(n*x)", scalar("d", known("1/n")), 0, 1), "R7", "derivative_bound")
    refused(taylor_remainder("exp(x)", scalar("d", known("1/n")), 0, None), "R7", "a finite order")
    refused(taylor_remainder("exp(x)", vector("d", known("1/n")), 0, 1), "R7", "derivative_bound")


def test_iteration_of_a_growing_number_of_steps_is_refused():
    start = scalar("x", known(1))
    gives(iterate("2*x", start, 10), "1")
    refused(iterate("2*x", start, "n"), "R20", "fixed number of steps")
    with pytest.raises(ValueError, match="positive integer"):
        iterate("2*x", start, 0)


# R8 ------------------------------------------------------------------------------------------------------------------


def test_expectation_of_a_bound_in_probability_is_refused():
    x = scalar("x", known("n")).expr
    error = refused(expectation(x), "R8a", "uniformly_integrable")
    assert "n^2 with probability 1/n" in error.counterexample
    gives(expectation(x), "n", "O", DET, [uniformly_integrable(x, "n")])
    refused(expectation(x), "R8a", "uniformly_integrable", [uniformly_integrable(x, "n^2")])
    refused(expectation(scalar("x", moment(0.5, "n"))), "R8a", "uniformly_integrable")
    gives(expectation(scalar("x", known("n", "Theta", PSI2))), "n", "O", DET)


def test_variance_gives_the_fluctuation_and_probability_does_not():
    gives(fluctuation(scalar("x", variance("n"))), "sqrt(n)", "O", L(2))
    gives(fluctuation(scalar("x", moment(2, "n"))), "n", "O", L(2))
    with pytest.raises(MissingHypothesisError):
        bound(fluctuation(scalar("x", known("n"))))


def test_gaussian_polynomials_are_theta_for_scalars_and_frobenius_norms_only():
    found = gives(scalar("x", chaos_degree(3), second_moment("n")), "sqrt(n)", "Theta", ALL_MOMENTS)
    assert found.definite == "proved"
    m = matrix("M", chaos_degree(2), second_moment("n^2", frobenius=True))
    gives(m, "n", "Theta", grouping=GROUPED)
    refused(m, "R8c", "scalar or one block (Frobenius)")
    refused(scalar("x", chaos_degree("q"), second_moment("n")), "R8c", "fixed degree")
    refused(scalar("x", chaos_degree(3)), "R8c", "second_moment")


# R9, R10 -------------------------------------------------------------------------------------------------------------


def test_fixed_maximum():
    gives(max_of(scalar("x", known("n", "Theta")), scalar("y", known("log n", mode=L(2)))), "n", "Theta", P)


def test_maximum_over_a_growing_family_needs_tails_or_moments():
    error = refused(max_over(scalar("x", known(1), iid_over("k"), over="k"), "k"), "R10", "mode psi2")
    assert {other.hypothesis for other in error.others} == {"mode L^k"}
    gives(max_over(scalar("z", gaussian(), iid_over("k"), over="k"), "k"), "sqrt(log n)", "Theta", PSI2)
    gives(max_over(scalar("z", known(1, mode=PSI2), iid_over("k"), over="k"), "k"), "sqrt(log n)", "O")
    gives(max_over(scalar("z", moment(2, 1), iid_over("k"), over="k"), "k"), "sqrt(n)", "O", L(2))
    gives(max_over(scalar("z", gaussian(), identically_distributed_over("k"), over="k"), "k"), "sqrt(log n)", "O")


def test_pointwise_bounds_over_a_growing_family_are_not_uniform():
    spike = scalar("x", known(1, mode=PSI2), over="k")  # also n 1{n = k} has a pointwise bound
    error = refused(max_over(spike, "k"), "R10", "U1(k)")
    assert "n 1{n = k}" in error.counterexample
    refused(sum_over(scalar("x", moment(1, 1), over="k"), "k"), "R11a", "U1(k)")


def test_u2_suffices_for_maxima_and_sums_and_u1_does_not():
    gives(max_over(scalar("x", known("n", uniform=U2("k")), over="k"), "k"), "n")
    gives(sum_over(scalar("x", known(1, uniform=U2("k")), over="k"), "k"), "n")
    refused(max_over(scalar("x", known("n", uniform=U1("k")), over="k"), "k"), "R10", "mode psi2")
    refused(sum_over(scalar("x", known(1, uniform=U1("k")), over="k"), "k"), "R11a", "mode L^1")


# R11 -----------------------------------------------------------------------------------------------------------------


def test_sum_of_n_terms_that_are_only_bounded_in_probability_is_refused():
    error = refused(sum_over(scalar("c", known(1), iid_over("k"), over="k"), "k"), "R11a", "mode L^1")
    assert "n |Cauchy|" in error.counterexample
    assert {other.rule for other in error.others} == {"R11b", "R11c"}


def test_sums_by_triangle_and_by_lack_of_correlation():
    gives(sum_over(scalar("z", moment(2, 1), iid_over("k"), over="k"), "k"), "n", "O", L(2))  # the mean is not known
    gives(sum_over(scalar("z", moment(2, 1), iid_over("k"), centred(), over="k"), "k"), "sqrt(n)", "O", L(2))
    gives(sum_over(scalar("z", moment(2, 1), identically_distributed_over("k"), centred(), over="k"), "k"), "n")
    gives(sum_over(scalar("z", moment(1.5, 1), iid_over("k"), centred(), over="k"), "k"), "n")  # tail index below 2
    gives(sum_over(scalar("z", moment(2, 1)), "k", "n"), "n")  # identical copies


def test_a_mean_adds_its_own_sum():
    z = scalar("z", moment(2, 1), iid_over("k"), centred(), over="k")
    gives(sum_over(z, "k") + scaled("n", 3), "n", "Theta")


def test_common_random_factor_keeps_terms_uncorrelated_but_not_independent():
    z = scalar("z", gaussian(), iid_over("k"), over="k")
    w = scalar("w", moment(2, "n"))
    found = gives(sum_over(z * w, "k"), "n^(3/2)", "O", L(2), [independent(z, w)])
    assert found.step is not None and found.step.variant == ("second moment",)
    gives(sum_over(z * w, "k"), "n^2")


def test_spectral_norm_of_a_sum_is_matrix_bernstein_not_the_square_root():
    x = matrix("X", known(1, mode=DET, uniform=U1("k")), independent_over("k"), centred(), over="k")
    gives(sum_over(x.expr, "k"), "sqrt(n log n)", "O", ALL_MOMENTS)
    with_proxy = matrix("X", *x.facts, fact("variance_proxy", scale=1), over="k")
    gives(sum_over(with_proxy.expr, "k"), "log n")
    heavy = matrix("X", known(1, mode=L(2), uniform=U1("k")), independent_over("k"), centred(), over="k")
    plain = gives(sum_over(heavy.expr, "k"), "n")
    assert "R11c (needs 'mode det'" in plain.tree() and "R11b (needs 'scalar or one block" in plain.tree()
    frobenius = matrix("X", known(1, mode=L(2), uniform=U1("k"), grouping=GROUPED), independent_over("k"), centred(), over="k")
    gives(sum_over(frobenius.expr, "k"), "sqrt(n)", grouping=GROUPED)


# R12, R13, R14, R16-R19, R22 -----------------------------------------------------------------------------------------


def test_interchange_of_limits_needs_uniformity():
    x = scalar("x", known(1), over="m", size="m")
    assert "1{m > n}" in refused(limit_over(x, "m"), "R12", "U1(m)").counterexample
    gives(limit_over(scalar("x", known(1, uniform=U1("m")), over="m", size="m"), "m"), "1")
    refused(limit_over(scalar("x", known("m", uniform=U1("m")), over="m", size="m"), "m"), "R12", "a scale free of the index")


def test_inverse_needs_the_least_singular_value():
    error = refused(inverse(matrix("G", known("sqrt(n)", "Omega"))), "R13", "sigma_min")
    assert "||G^-1|| ~ sqrt n" in error.counterexample
    refused(inverse(matrix("G", gaussian())), "R13", "sigma_min")
    inverted = inverse(matrix("G", sigma_min("1/sqrt(n)")))
    gives(inverted, "sqrt(n)", "O", P)
    refused(expectation(inverted), "R8a", "uniformly_integrable")  # 1/N(0,1) is O_p(1) with infinite mean


def test_perturbed_inverse_needs_a_vanishing_perturbation():
    a = matrix("A", sigma_min(1))
    gives(inverse(a + matrix("E", known("1/sqrt(n)"))), "1")
    gives(inverse_remainder(a, matrix("E", known("1/sqrt(n)"))), "1/n")
    gives(inverse(a + matrix("E", known(1, "o"))), "1")
    error = refused(inverse(a + matrix("E", known(1))), "R13", "sigma_min")
    assert [other.hypothesis for other in error.others] == ["E = o(1)"]
    refused(inverse_remainder(matrix("A", sigma_min("1/n")), matrix("E", known("1/n^2"))), "R13b", "||A^-1|| = O(1)")


def test_conditioning_on_a_vanishing_event_is_refused():
    x = scalar("x", known("n", "Theta", L(2)))
    error = refused(given_event(x, "B"), "R14", "probability_bounded_below")
    assert "n 1_A" in error.counterexample
    gives(given_event(x, "B"), "n", "Theta", L(2), [fact("probability_bounded_below", "B")])
    gives(conditional(scalar("x", fact("conditional_bound", scale="n", index="F")), "F"), "n")
    refused(conditional(scalar("x", fact("conditional_bound", scale="n", index="F")), "H"), "R14", "conditional_bound")


def test_conditioning_changes_independence():
    z, w = scalar("z", gaussian()), scalar("w", moment(2, 1))
    product = expectation(given_event(w, "B") * scalar("y", moment(1, 1)))
    likely = fact("probability_bounded_below", "B")
    refused(product, "R15", "negatively_associated", [likely, independent("w", "y")])
    gives(product, "1", "O", DET, [likely, independent("w", "y", "B")])
    assert bound(z * w).mode == L(2, open=True)


def test_random_scale_and_likely_events():
    m = dominated(scalar("x"), scalar("y", known("n")))
    refused(m, "R14b", "dominated_by")
    gives(m, "n", assume=[fact("dominated_by", "x", "y")])
    x = scalar("x", fact("on_event", index="B", scale="n"))
    refused(x, "R16", "probability_to_one")
    gives(x, "n", assume=[fact("probability_to_one", "B")])


def test_one_subsequence_proves_nothing():
    x = scalar("x", fact("along_subsequence", scale="n"))
    assert "odd n" in refused(x, "R17", "every_subsequence").counterexample


def test_a_random_index_needs_independence_or_anscombe():
    x = scalar("x", known("n log n"))
    gives(reindexed(x, {"n": "m^2"}), "m^2 log m")
    size = fact("random_size", "N", scale="m")
    refused(reindexed(x, {"n": "m"}, random="N"), "R18", "anscombe", [size])
    gives(reindexed(x, {"n": "m"}, random="N"), "m log m", assume=[size, independent("N", "x")])
    with pytest.raises(MissingHypothesisError, match="random_size"):
        bound(reindexed(x, {"n": "m"}, random="N"), [independent("N", "x")])


def test_integral_needs_moments_or_u2_and_derivatives_are_refused():
    error = refused(integral(scalar("x", known(0.5, uniform=U1("t")), over="t", size=1), "t"), "R19", "mode L^1")
    assert "its integral is 2n" in error.counterexample
    x = scalar("x", known("n", uniform=U2("t")), over="t", size=1)
    gives(integral(x, "t"), "n")
    slope = derivative(x, "t")
    assert "sin(n^2 t)/n" in refused(slope, "R19", "a bound of the derivative").counterexample
    gives(slope, "n^2", assume=[known("n^2", of=slope)])


def test_entries_and_norms():
    found = bound(entry(vector("u", known("n"))["i"]))
    assert (found.scale, found.uniformity("i")) == (scale("n"), 2)
    assert bound(entry(vector("u", gaussian())["i"])).scale == scale("1")
    cauchy = scalar("c", known(1), iid_over("k"), over="k")
    assert "Cauchy entries" in refused(assemble(cauchy, "k"), "R22", "mode L^2").counterexample
    gives(assemble(scalar("z", moment(2, 1), iid_over("k"), over="k"), "k"), "sqrt(n)", "O", L(2))
    pairs = RandomTensor("z", facts=[moment(2, 1), iid_over("a"), identically_distributed_over("b")], family={"a": "n", "b": "n"})
    gives(assemble(pairs.expr, "a", "b"), "n")  # the all-ones matrix attains it
    signs = matrix("S", iid_entries(), centred(), sub_gaussian_entries())
    gives(signs, "sqrt(n)", "O", PSI2)
    refused(matrix("S", iid_entries(), sub_gaussian_entries()), "G", "centred")


def test_white_vector_against_an_independent_one():
    u = vector("u", iid_entries(), centred(), entry_variance("1/n"))
    v = vector("v", moment(2, "sqrt(n)"))
    inner = contract(u["i"], v["i"], over="i")
    gives(inner, "1", "O", L(2), [independent(u, v)])
    with pytest.raises(MissingHypothesisError):
        bound(inner)
    outer_product = outer(u["i"], v["j"])
    with pytest.raises(MissingHypothesisError):
        bound(outer_product)
