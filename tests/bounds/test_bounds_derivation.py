"""Derivations check themselves, notice every dropped hypothesis, display, and cost one rule per node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bounds_examples import EXAMPLES, gaussian_pair, matrix, scalar, vector

from symtensor.bounds import (
    ALL_MOMENTS,
    DET,
    PSI2,
    U1,
    U2,
    Bound,
    DerivationError,
    Kind,
    L,
    MissingHypothesisError,
    Mode,
    P,
    RandomTensor,
    add,
    bound,
    centred,
    contract,
    entry,
    expectation,
    fact,
    gaussian,
    iid_over,
    independent,
    known,
    moment,
    order_term,
    outer,
    scale,
    scaled,
    sum_over,
)
from symtensor.bounds.derive import Deriver

#: facts that serve as several hypotheses: the refusal names the one that is asked for
SERVES = {
    "iid_over": {"identically_distributed_over", "independent_over"},
    "gaussian": {"centred"},
    "known": {"a bound in a coarser grouping"},
}
ALL = [(rule, i) for rule, examples in sorted(EXAMPLES.items()) for i in range(len(examples))]


@pytest.mark.parametrize(("rule", "i"), ALL)
def test_dropping_any_hypothesis_raises_and_names_it(rule, i):
    found = EXAMPLES[rule][i]()
    for part in found.derivation():
        step = part.step
        assert step is not None
        for hypothesis in step.hypotheses:
            with pytest.raises(MissingHypothesisError) as caught:
                step.without(hypothesis).check()
            assert caught.value.rule == step.rule
            assert caught.value.hypothesis in {hypothesis.name, *SERVES.get(hypothesis.name, ())}


def test_every_rule_with_hypotheses_has_a_mutation():
    needing = {rule for rule in EXAMPLES if rule not in ("C", "R1", "R2", "R3", "R4", "R21", "N4", "N5", "R6", "R6b")}
    mutated = {rule for rule in EXAMPLES for example in EXAMPLES[rule] if any(s.step.hypotheses for s in example().derivation())}
    assert needing <= mutated


@pytest.mark.parametrize(("rule", "i"), ALL)
def test_a_tampered_claim_is_noticed(rule, i):
    found = EXAMPLES[rule][i]()
    with pytest.raises(DerivationError, match="is stored"):
        replace(found, scale=found.scale / "log n").check()
    if found.mode != DET:
        with pytest.raises(DerivationError):
            replace(found, mode=DET).check()


def test_a_tampered_premise_is_noticed():
    x = scalar("x", known("n"))
    found = bound(2 * x + 1)
    assert found.step is not None
    premises = tuple(replace(p, scale=p.scale / "n") for p in found.step.premises)
    with pytest.raises(DerivationError):
        replace(found, provenance=replace(found.step, premises=premises)).check()


def test_modes_are_ordered():
    chain = [DET, PSI2, ALL_MOMENTS, L(4), L(4, open=True), L(2), L(1), L(0.5), P]
    for i, strong in enumerate(chain):
        for j, weak in enumerate(chain):
            assert strong.implies(weak) is (i <= j), (strong, weak)
    assert Mode.weakest([DET, PSI2]) == PSI2 and Mode.weakest([L(2), L(4), PSI2]) == L(2)
    assert Mode.product([L(4), L(4)]) == L(2) and Mode.product([DET, L(3)]) == L(3)
    for wrong in (lambda: L(0), lambda: L(-1), lambda: Mode("L"), lambda: Mode("psi2", 2), lambda: Mode("as")):
        with pytest.raises(ValueError):
            wrong()


def test_bounds_refuse_contradictions():
    with pytest.raises(ValueError, match="lower bound of the norm"):
        Bound("n", "O", norm_status="lower")
    with pytest.raises(ValueError, match="upper bound of the norm"):
        Bound("n", "Theta", norm_status="upper")
    with pytest.raises(ValueError, match="certificate"):
        Bound("n", "O", definite="proved")
    assert Bound("n", "Theta").definite == "proved" and Bound("n").definite is None
    assert Bound("n", uniform=U1("i")).uniformity("i") == 1 and Bound("n", uniform=(U2("i"),)).uniformity("j") == 0


def test_norm_status_travels():
    measured = scalar("x", known("n", norm_status="upper"))
    assert bound(measured * 2 + 1).norm_status == "upper"
    lower = vector("u", known("n", "Omega", norm_status="lower"))
    with pytest.raises(MissingHypothesisError, match="upper bound O"):
        bound(contract(lower["i"], vector("v", known(1))["i"], over="i"))


def test_uniformity_travels_only_if_all_dependent_parts_have_it():
    x = scalar("x", known("n", uniform=U2("k")), over="k")
    y = scalar("y", known("n", uniform=U1("k")), over="k")
    z = scalar("z", known("n"), over="k")
    assert bound(x + scalar("w", known(1))).uniformity("k") == 2
    assert bound(x + y).uniformity("k") == 1
    assert bound(x + z).uniformity("k") == 0


def test_trees_show_rules_and_hypotheses():
    u, v = gaussian_pair()
    found = bound(contract(u["i"], v["i"], over="i"), [independent(u, v)])
    text, latex, html = found.tree(), found.latex_tree(), found._repr_html_()
    for word in ("R11b", "u, v are independent", "standard Gaussians", "mode L^2"):
        assert word in text and word.replace("^", r"\^{}") in latex and word in html
    assert r"\mathcal{O}\left(\sqrt{n}\right)" in found.latex() and r"n \to \infty" in found.latex()
    assert html.count("<ul>") == html.count("</ul>") and html.count("<li>") == html.count("</li>")
    assert "n -> oo" in repr(found) and found._repr_latex_().startswith("$")


def test_a_step_shows_its_rule_premises_and_hypotheses():
    u, v = gaussian_pair()
    step = bound(contract(u["i"], v["i"], over="i"), [independent(u, v)]).step
    assert step is not None
    html = step._repr_html_()
    for word in ("<b>R11b</b>", "premise: ||v[i]||", "u, v are independent", "condition: mode L^2", "&lt;u[i], v[i]&gt;_i"):
        assert word in html


def test_html_escapes_what_the_user_wrote():
    x = scalar("x", fact("on_event", index="<b>", scale="n"))
    html = bound(x, [fact("probability_to_one", "<b>")])._repr_html_()
    assert "&lt;b&gt;" in html and "event <b>" not in html


def test_shared_parts_are_shown_once():
    x = scalar("x", known("n")).expr
    y = x * x
    assert bound(y + y).tree().count("(see above)") == 1


def deep_and_wide():
    """1,000 nodes: a chain with shared parts and a wide sum of products."""
    u, v = vector("u", gaussian()), vector("v", gaussian(), label="j")
    x = scalar("x", known("sqrt(n)", mode=L(2)))
    node = x.expr
    for i in range(300):
        node = scaled(2, node) if i % 3 else add(node, x.expr, node)
    parts = [scaled("1/n", outer(u["i"], v["j"])) for _ in range(170)]
    wide = add(*parts)
    return add(contract(wide, vector("w", known(1))["i"], over="i"), outer(node, v["j"]))


def distinct(expr):
    found, stack = {id(expr)}, [expr]
    while stack:
        for child in stack.pop().children:
            if id(child) not in found:
                found.add(id(child))
                stack.append(child)
    return len(found)


def test_one_rule_application_per_distinct_node():
    expr = deep_and_wide()
    deriver = Deriver(expr)
    found = deriver.bound()
    assert 900 <= distinct(expr) <= 1100
    assert len(deriver.outcomes) == distinct(expr)
    assert len(found.rules) <= distinct(expr)
    found.check()


def test_deep_expressions_do_not_exhaust_the_stack():
    node = scalar("x", known("n")).expr
    for _ in range(1100):
        node = scaled(2, node) + 1
    found = bound(node)
    assert len(repr(node)) < 500 and found.scale == bound(scalar("x", known("n"))).scale
    found.check()
    assert found.tree().count("[R1]") == 1100 and found.latex_tree() and found._repr_html_()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: contract(vector("u")["i"], vector("v", label="j")["j"], over="i"), "must be a slot of both"),
        (lambda: contract(vector("u")["i"], vector("v", size="m")["i"], over="i"), "has size n in u"),
        (lambda: outer(vector("u")["i"], vector("v")["i"]), "occurs twice"),
        (lambda: matrix("M")["i", "i"], "occurs twice"),
        (lambda: matrix("M")["i"], "2 slots"),
        (lambda: vector("u").expr + matrix("M").expr, "cannot add"),
        (lambda: sum_over(scalar("x"), "k"), "number of copies"),
        (lambda: bound(scalar("x"), [centred()]), "names no tensor"),
        (lambda: bound(scalar("x", known(1)) + scalar("x", known("n"))), "two different tensors"),
        (lambda: RandomTensor("x", facts=[iid_over("k")]), "no family index"),
        (lambda: RandomTensor("2x"), "needs a name"),
        (lambda: bound(matrix("M", gaussian()), grouping=[["i"]]), "must contain each slot"),
        (lambda: fact("gausian", "x"), "nearest: 'gaussian'"),
        (lambda: 1 / vector("u", known(1)).expr, "cannot divide"),
        (lambda: independent("u"), "at least two"),
        (lambda: scalar("x", over="i") * vector("u"), "a slot and a family index"),
        (lambda: fact("every_subsequence", "x"), "needs scale="),
        (lambda: fact("on_event", "x", scale="n"), "needs index="),
    ],
)
def test_wrong_input_is_named(build, words):
    with pytest.raises((ValueError, TypeError), match=words):
        build()


def test_zero_has_no_order_of_its_own():
    assert (bound(order_term("n") * 0).kind, bound(scalar("x", known("1/n")) + 0).scale) == (Kind.SMALL_O, scale("1/n"))


def test_an_unknown_tensor_asks_for_a_fact():
    with pytest.raises(MissingHypothesisError, match="state known"):
        bound(scalar("x"))


def test_expectation_of_a_derived_moment_bound():
    u, v = gaussian_pair()
    inner = contract(u["i"], v["i"], over="i")
    found = bound(expectation(inner * inner), [independent(u, v)])
    assert (found.scale, found.kind, found.mode) == (bound(order_term("n")).scale, Kind.O, DET)
    assert bound(entry(u["i"]) * scalar("x", moment(2, 1))).mode == L(2, open=True)
