"""Expansion of gradient descent in C_{D,d}: against training itself, against hand computation, and after corruption."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import sympy as sp

from symtensor.expansion.derivative_trees import Branch, Tree
from symtensor.expansion.update_expansion import UpdateExpansionError, expand_updates, loss_derivative, one_step

P, ETA = 3, 0.8


def exponential(D: int, d: int) -> int:
    return d


def none(D: int, d: int) -> int:
    return 0


def symmetric(rng: np.random.Generator, order: int) -> np.ndarray:
    tensor = rng.standard_normal((P,) * order)
    return sum((np.transpose(tensor, axes) for axes in permutations(range(order))), np.zeros_like(tensor)) / 2


class Cubic:
    """F(theta)(x) = sum_k T_k[theta^k]/k! up to k = 3, different tensors for each input: derivatives at 0 are the T_k."""

    def __init__(self, labels: str, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.tensors = {(x, k): symmetric(rng, k) if k else np.array(rng.standard_normal()) for x in labels for k in range(4)}

    def derivative(self, label: str, k: int) -> np.ndarray:
        return self.tensors.get((label, k), np.zeros((P,) * k))

    def at(self, label: str, theta: np.ndarray, free: int = 0) -> np.ndarray:
        total = 0.0
        for k in range(4 - free):
            part = self.derivative(label, k + free)
            for _ in range(k):
                part = part @ theta / 1.0
            total = total + part / sp.factorial(k).__int__()
        return np.asarray(total)


def trained(model: Cubic, batches: list[str], targets: dict[str, float], slope, mean: bool = False):
    """theta(s), and F_lin on every input after every step, by iterating the update rules of section 1."""
    theta = np.zeros(P)
    linear = {x: float(model.at(x, theta)) for x in targets}
    history = []
    for batch in batches:
        history.append(dict(linear))
        scale = 1 / len(batch) if mean else 1
        pull = {b: slope(linear[b] - targets[b]) for b in batch}
        step = sum(slope(float(model.at(b, theta)) - targets[b]) * model.at(b, theta, 1) for b in batch)
        linear = {
            x: linear[x] - scale * sum(ETA * model.derivative(x, 1) @ model.derivative(b, 1) * pull[b] for b in batch)
            for x in linear
        }
        theta = theta - ETA * scale * step
    return theta, linear, history


@pytest.mark.parametrize(
    ("batches", "mean"),
    [(["a"], False), (["a", "b"], False), (["ab"], True), pytest.param(["ab", "b"], True, marks=pytest.mark.slow)],
)
def test_a_cubic_model_with_square_loss_is_exact(batches: list[str], mean: bool) -> None:
    model, targets = Cubic("abx"), {"a": 0.4, "b": -0.7, "x": 0.1}
    theta, linear, history = trained(model, batches, targets, lambda r: r, mean)
    losses = {
        loss_derivative(1, s, x): values[x] - targets[x] for s, values in enumerate(history) for x in targets
    }
    found = expand_updates(batches, weight=none, cut=0, order=3, loss="square", mean=mean)
    exact = float(model.at("x", theta)) - linear["x"]
    assert found.evaluate(model.derivative, ETA, losses) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("free", [1, 2, 3])
def test_the_scaled_derivatives_change_as_the_expansion_says(free: int) -> None:
    model, targets = Cubic("abx", 1), {"a": 0.4, "b": -0.7, "x": 0.1}
    theta, _, history = trained(model, ["a", "b"], targets, lambda r: r)
    losses = {loss_derivative(1, s, x): values[x] - targets[x] for s, values in enumerate(history) for x in targets}
    found = expand_updates(["a", "b"], weight=none, cut=0, order=3, free=free, loss="square")
    change = ETA ** (free / 2) / float(sp.factorial(free)) * (model.at("x", theta, free) - model.derivative("x", free))
    value = found.evaluate(model.derivative, ETA, losses) + np.zeros_like(change)
    np.testing.assert_allclose(value, change, rtol=1e-11, atol=1e-13)


def test_a_general_loss_is_right_to_the_order_of_the_cut() -> None:
    """With derivatives of order k multiplied by h^{k-1}, a term of weight w is of order h^w: the error is of order h^{cut+1}."""
    base, targets = Cubic("ax", 2), {"a": 0.4, "x": 0.1}
    found = expand_updates(["a", "a"], weight=lambda D, d: D + d - 1, cut=2)
    errors = []
    for h in (0.02, 0.01):
        model = Cubic("ax", 2)
        model.tensors = {key: value * h ** max(key[1] - 1, 0) for key, value in base.tensors.items()}
        theta, linear, history = trained(model, ["a", "a"], targets, np.tanh)
        derivatives = [np.tanh, lambda r: 1 / np.cosh(r) ** 2, lambda r: -2 * np.tanh(r) / np.cosh(r) ** 2]
        losses = {
            loss_derivative(j + 1, s, "a"): derivatives[j](values["a"] - targets["a"])
            for s, values in enumerate(history) for j in range(3)
        }  # fmt: skip
        errors.append(abs(float(found.evaluate(model.derivative, ETA, losses)) - (float(model.at("x", theta)) - linear["x"])))
    assert 6.5 < errors[0] / errors[1] < 9.5  # h^3; h^2 would give 4, h^4 16


def test_a_corrupted_coefficient_or_a_missing_term_is_noticed() -> None:
    model, targets = Cubic("abx"), {"a": 2.4, "b": -2.7, "x": 0.1}
    theta, linear, history = trained(model, ["a", "b"], targets, lambda r: r)
    losses = {loss_derivative(1, s, x): values[x] - targets[x] for s, values in enumerate(history) for x in targets}
    found = expand_updates(["a", "b"], weight=none, cut=0, order=3, loss="square")
    exact = float(model.at("x", theta)) - linear["x"]
    for at, term in list(enumerate(found.terms))[::9]:
        rest = found.terms[:at] + found.terms[at + 1 :]
        wrong = [replace(found, terms=rest), replace(found, terms=(*rest, replace(term, coefficient=-term.coefficient)))]
        for other in wrong:
            assert abs(float(other.evaluate(model.derivative, ETA, losses)) / exact - 1) > 1e-11, str(term)


def test_one_step_gives_the_definition_of_the_correlations() -> None:
    """Section 2: eta^{D/2}/D! grad^D F(theta - eta g v) = sum_d (-g)^d C_{D,d}."""
    g = loss_derivative(1, 0, "x")
    for free in range(3):
        found = one_step(5, free)
        first = 2 if free == 0 else 1
        assert [(term.correlations, term.coefficient) for term in found.terms] == [
            (((free, d),), (-g) ** d) for d in range(first, 6 - free)
        ]


def test_eta_never_remains_and_batches_add() -> None:
    found = expand_updates([["a", "b"], ["b"]], weight=exponential, cut=2)
    assert all(not term.coefficient.has(sp.Symbol("eta", positive=True)) for term in found.terms)
    single = {str(term.trees): term.coefficient for term in expand_updates(["ab"], weight=exponential, cut=2).terms}
    ga, gb = loss_derivative(1, 0, "a"), loss_derivative(1, 0, "b")
    assert sorted(single.values(), key=str) == sorted([ga**2, gb**2, 2 * ga * gb], key=str)


def test_every_tree_is_bounded_by_its_correlations() -> None:
    """N4 with the subordinate norms of vertices: matrices and vectors here, hence exact norms."""
    model = Cubic("abx", 5)
    for term in expand_updates(["a", "b"], weight=exponential, cut=2, order=2).terms:
        for tree in term.trees:
            size = 1.0
            stack = [tree.root]
            while stack:
                branch = stack.pop()
                if not branch.children and branch is not tree.root:
                    size *= float(np.linalg.norm(model.derivative(branch.label, 1)))
                else:
                    order = len(branch.children) + (branch is not tree.root)
                    size *= float(np.linalg.norm(model.derivative(branch.label, order), 2 if order == 2 else None))
                stack += branch.children
            assert abs(float(tree.value(model.derivative))) <= size * (1 + 1e-12)


def test_trees_have_no_root() -> None:
    leaf = Branch("v")
    bent = Branch("y", (leaf, Branch("x", (leaf, leaf))))
    rooted = [Tree(bent), Tree(Branch("v", (Branch("y", (Branch("x", (leaf, leaf)),)),)))]
    assert rooted[0] == rooted[1]
    assert rooted[0].correlations == ((1, 1), (1, 2))
    rng = np.random.default_rng(0)
    tensors = {("x", 3): symmetric(rng, 3), ("y", 2): symmetric(rng, 2), ("v", 1): rng.standard_normal(3)}
    straight = tensors["x", 3] @ tensors["v", 1] @ tensors["v", 1] @ (tensors["y", 2] @ tensors["v", 1])
    assert float(rooted[1].value(lambda label, k: tensors[label, k])) == pytest.approx(straight, rel=1e-12)


def test_refusals_say_what_is_required() -> None:
    with pytest.raises(UpdateExpansionError, match="batch"):
        expand_updates([], weight=exponential, cut=2)
    with pytest.raises(UpdateExpansionError, match="give order="):
        expand_updates(["a"], weight=lambda D, d: 2 if D == 0 else 1, cut=2)
    with pytest.raises(UpdateExpansionError, match="'general'"):
        expand_updates(["a"], weight=exponential, cut=1, loss="hinge")  # type: ignore[arg-type]
    assert not expand_updates(["a"], weight=exponential, cut=3, order=2).complete
