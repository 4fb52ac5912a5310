"""One derivation for every rule, shared by the tests of the rules and of their mutations."""

from __future__ import annotations

from collections.abc import Callable

from symtensor.bounds import (
    DET,
    PSI2,
    U1,
    U2,
    Bound,
    Function,
    L,
    RandomTensor,
    add,
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
    dominated,
    entry,
    entry_variance,
    expectation,
    fact,
    fluctuation,
    gaussian,
    given_event,
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
    scaled,
    second_moment,
    sigma_min,
    sub_gaussian_entries,
    sum_over,
    taylor_remainder,
    trace,
    uncorrelated_over,
    uniformly_integrable,
    variance,
)


def scalar(name: str = "x", *facts, over: str | None = None, size="n") -> RandomTensor:
    return RandomTensor(name, facts=facts, family=None if over is None else {over: size})


def vector(name: str = "u", *facts, label: str = "i", size="n", over: str | None = None) -> RandomTensor:
    return RandomTensor(name, {label: size}, facts, None if over is None else {over: "n"})


def matrix(name: str = "M", *facts, size="n", over: str | None = None) -> RandomTensor:
    return RandomTensor(name, {"i": size, "j": size}, facts, None if over is None else {over: "n"})


def gaussian_pair() -> tuple[RandomTensor, RandomTensor]:
    return vector("u", gaussian()), vector("v", gaussian())


def _inner(*assume) -> Bound:
    u, v = gaussian_pair()
    return bound(contract(u["i"], v["i"], over="i"), assume)


def _white() -> Bound:
    u = vector("u", iid_entries(), centred(), entry_variance("1/n"))
    return bound(contract(u["i"], vector("v", moment(2, "sqrt(n)"))["i"], over="i"), [independent("u", "v")])


def _bernstein(*extra) -> Bound:
    x = matrix("X", known(1, mode=DET, uniform=U1("k")), independent_over("k"), centred(), *extra, over="k")
    return bound(sum_over(x.expr, "k"))


def _entries_product() -> Bound:
    u, v = gaussian_pair()
    return bound(sum_over(entry(u["k"]) * entry(v["k"]), "k"), [independent(u, v)])


GROUPED = (("i", "j"),)
EXAMPLES: dict[str, list[Callable[[], Bound]]] = {
    "C": [lambda: bound(order_term("n", "Theta") * 2 + 3)],
    "A": [lambda: bound(scalar("x", known("n")))],
    "G": [
        lambda: bound(matrix("M", gaussian())),
        lambda: bound(matrix("M", iid_entries(), centred(), sub_gaussian_entries())),
        lambda: bound(entry(vector("u", iid_entries(), centred(), entry_variance("1/n"))["i"])),
    ],
    "U1": [lambda: bound(scalar("x", known("n"), iid_over("k"), over="k"))],
    "R1": [
        lambda: bound(add(scalar("x", known("n", "Theta")), scalar("y", known("sqrt(n)")))),
        lambda: bound(scalar("x", known("n")) + scalar("y", known("n", "o"))),
    ],
    "R2": [lambda: bound(scaled("1/sqrt(n)", vector("u", gaussian())))],
    "R3": [
        lambda: bound(outer(vector("u", gaussian())["i"], vector("v", gaussian())["j"])),
        lambda: bound(scalar("x", known("n", mode=L(2))) * scalar("y", known("n", mode=L(2))), [independent("x", "y")]),
    ],
    "R4": [
        lambda: _inner(),
        lambda: bound(
            contract(vector("u", moment(2, "n"))["i"], vector("v", moment(2, "n"))["i"], over="i"), [independent("u", "v")]
        ),
    ],
    "R5": [
        lambda: bound(power(vector("u", gaussian()), 2)),
        lambda: bound(power(vector("u", gaussian()), -1)),
        lambda: bound(power(vector("u", known("n")), 0.5)),
    ],
    "R6": [lambda: bound(apply("exp(x)", scalar("x", known(1))))],
    "R6b": [
        lambda: bound(apply("x^2 + tanh(x)", scalar("x", known("n", mode=L(4))))),
        lambda: bound(apply("x*(1+x^2)^(1/2)", scalar("x", known("n")))),
    ],
    "R7": [
        lambda: bound(taylor_remainder("exp(x)", scalar("d", known("1/n", "Theta")), 0, 1)),
        lambda: bound(taylor_remainder("tanh(x)", scalar("d", known("1/n")), 0, 1)),
        lambda: bound(
            taylor_remainder(Function("f"), vector("d", known("1/n")), 0, 1),
            [fact("derivative_bound", "f", number=2, scale="sqrt(n)")],
        ),
        lambda: bound(taylor_remainder(Function("f"), scalar("d", known("1/n")), 0, 1), [fact("smooth", "f", number=2)]),
    ],
    "R8a": [
        lambda: bound(expectation(scalar("x", moment(1.5, "n")))),
        lambda: bound(expectation(X := scalar("x", known("n")).expr), [uniformly_integrable(X, "n")]),
    ],
    "R8b": [
        lambda: bound(scalar("x", moment(3, "n"))),
        lambda: bound(fluctuation(scalar("x", variance("n")))),
        lambda: bound(fluctuation(scalar("x", moment(1, "n")))),
    ],
    "R8c": [lambda: bound(scalar("x", chaos_degree(3), second_moment("n^2")))],
    "R9": [
        lambda: bound(max_of(scalar("x", known("n", "Theta")), scalar("y", known("log n")))),
        lambda: bound(max_of(scalar("x", known("n")), scalar("y", known("log n")))),
    ],
    "R10": [
        lambda: bound(max_over(scalar("z", gaussian(), iid_over("k"), over="k"), "k")),
        lambda: bound(max_over(scalar("z", known(1, mode=PSI2, uniform=U1("k")), over="k"), "k")),
        lambda: bound(max_over(scalar("z", known(1, mode=DET, uniform=U1("k")), over="k"), "k")),
        lambda: bound(max_over(scalar("z", known(1, uniform=U2("k")), over="k"), "k")),
    ],
    "R10b": [lambda: bound(max_over(scalar("z", moment(2, "n"), iid_over("k"), over="k"), "k"))],
    "R11a": [
        lambda: bound(sum_over(scalar("z", moment(1, "n"), iid_over("k"), over="k"), "k")),
        lambda: bound(sum_over(scalar("z", known("n", uniform=U2("k")), over="k"), "k")),
    ],
    "R11b": [
        lambda: bound(sum_over(scalar("z", gaussian(), iid_over("k"), fact("fixed_law"), over="k"), "k")),
        lambda: bound(sum_over(scalar("z", gaussian(), iid_over("k"), over="k"), "k")),
        lambda: bound(
            sum_over(scalar("z", known(1, mode=L(2), uniform=U1("k")), centred(), uncorrelated_over("k"), over="k"), "k")
        ),
        lambda: _inner(independent("u", "v")),
        _white,
        _entries_product,
    ],
    "R11c": [_bernstein, lambda: _bernstein(fact("variance_proxy", scale="log n"))],
    "R12": [lambda: bound(limit_over(scalar("x", known("n"), iid_over("m"), over="m", size="m"), "m"))],
    "R13": [lambda: bound(inverse(matrix("M", sigma_min("sqrt(n)"))))],
    "R13b": [
        lambda: bound(inverse(matrix("A", sigma_min(1)) + matrix("E", known("1/n")))),
        lambda: bound(inverse_remainder(matrix("A", sigma_min(1)), matrix("E", known("1/n")))),
    ],
    "R14": [
        lambda: bound(given_event(scalar("x", known("n")), "B"), [fact("probability_bounded_below", "B")]),
        lambda: bound(conditional(scalar("x", fact("conditional_bound", index="F", scale="n")), "F")),
    ],
    "R14b": [
        lambda: bound(dominated(scalar("x"), scalar("y", known("n"))), [fact("dominated_by", "x", "y")]),
    ],
    "R15": [
        lambda: bound(expectation(scalar("x", moment(2, "n")) * scalar("y", moment(2, "n")))),
        lambda: bound(expectation(scalar("x", moment(1, "n")) * scalar("y", moment(1, "n"))), [independent("x", "y")]),
        lambda: bound(expectation(scalar("x", moment(1, "n")) * scalar("y", moment(1, "n"))), [negatively_associated("x", "y")]),
    ],
    "R16": [
        lambda: bound(scalar("x", fact("on_event", index="B", scale="n")), [fact("probability_to_one", "B")]),
    ],
    "R17": [lambda: bound(scalar("x", fact("every_subsequence", scale="n")))],
    "R18": [
        lambda: bound(reindexed(scalar("x", known("n")), {"n": "m^2"})),
        lambda: bound(
            reindexed(scalar("x", known("n")), {"n": "m"}, random="N"),
            [independent("N", "x"), fact("random_size", "N", scale="m")],
        ),
        lambda: bound(
            reindexed(scalar("x", known("n"), fact("anscombe")), {"n": "m"}, random="N"),
            [fact("random_size", "N", scale="m")],
        ),
    ],
    "R19": [
        lambda: bound(integral(scalar("x", moment(1, "n"), iid_over("t"), over="t", size=1), "t")),
        lambda: bound(integral(scalar("x", known("n", uniform=U2("t")), over="t", size=1), "t")),
    ],
    "R20": [
        lambda: bound(iterate("x^2 + 1", scalar("x", known("n")), 3)),
        lambda: bound(I := iterate("2*x", scalar("x", known(1)), "n"), [fact("groenwall", I, scale="n")]),
    ],
    "R21": [lambda: bound(order_term("n") - order_term("n"))],
    "R22": [
        lambda: bound(entry(vector("u", known("n"))["i"])),
        lambda: bound(assemble(scalar("x", moment(2, 1), iid_over("k"), over="k"), "k")),
        lambda: bound(assemble(scalar("x", known(1, uniform=U2("k")), over="k"), "k")),
    ],
    "N1": [
        lambda: bound(outer(vector("a", known("n", "Theta", DET))["i"], vector("b", known("n", "Theta", DET))["j"])),
        lambda: bound(outer(vector("a", known("n", mode=DET))["i"], vector("b", known("n", mode=DET))["j"])),
    ],
    "N2": [
        lambda: bound(contract(matrix("A", known(1, mode=DET)).expr, vector("b", known("n", mode=DET))["i"], over="i")),
    ],
    "N3": [
        lambda: bound(
            contract(matrix("A", gaussian())["i", "j"], matrix("B", known("n", grouping=GROUPED))["i", "j"], over=("i", "j"))
        ),
        lambda: bound(contract(matrix("A", known(1)).expr, matrix("B", bounded_fact("nuclear", Bound("n"))).expr, over=("i", "j"))),
    ],
    "N4": [
        lambda: bound(
            contract_vectors(
                RandomTensor("T", {"i": "n", "j": "n", "k": "n"}, [gaussian()]).expr,
                {"i": vector("a", gaussian())["i"], "j": vector("b", gaussian())["j"]},
            )
        )
    ],
    "N5": [lambda: bound(trace(matrix("M", known(1)).expr, "i", "j"))],
    "N6": [
        lambda: bound(matrix("M", known("n", grouping=GROUPED))),
        lambda: bound(coarser(matrix("M", known(1))), grouping=GROUPED),
    ],
    "N7": [
        lambda: bound(matrix("M", fact("symmetric"), bounded_fact("diagonal_bound", Bound("n", "Theta")))),
    ],
    "N8": [
        lambda: bound(block_diagonal(matrix("M", known(1, mode=PSI2), iid_over("k"), over="k", size=2).expr, "k")),
        lambda: bound(block_diagonal(vector("u", moment(2, 1), iid_over("k"), over="k", size=2)["i"], "k")),
    ],
}
