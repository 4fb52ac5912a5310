"""Contraction order and packing of symmetric pairs: flops by counting, values against einsum, gradients unchanged."""

from __future__ import annotations

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import ModuleSpec, generate
from codegen.cost import report
from codegen.lower.tensor import lower_tensor
from codegen.passes.contraction import contraction_plan, flops
from symtensor.kernels import Argument, TensorKernel
from symtensor.tensor import Dimension, SymmetryGroup, Tensor, TensorExpr

P, N = Dimension("P"), Dimension("N")
a, b, c, d, e, f = P.indices("a b c d e f")
i, j = N.indices("i j")
PAIRED = SymmetryGroup.product(SymmetryGroup.symmetric(2), SymmetryGroup.symmetric(2))
chi, V = Tensor("chi", (P,) * 4, symmetry=PAIRED), Tensor("V", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric())
K, W = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2)), Tensor("W", (P, P))
STEP = (chi[a, b, c, d] * V[c, d, e, f]).sum(c, d) + (chi[e, f, c, d] * V[c, d, a, b]).sum(c, d) + K[a, b] * K[e, f]


def kernel(expression: TensorExpr, axes: tuple, name: str = "step") -> TensorKernel:
    heads = {head.name: head for head in expression.heads}
    arguments = tuple(Argument(head.name, tuple(map(str, head.dimensions))) for head in heads.values())
    return TensorKernel(name, arguments, expression, axes)


def arrays(expression: TensorExpr, size: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng, found = np.random.default_rng(seed), {}
    for head in sorted(expression.heads, key=lambda head: head.name):
        raw = rng.normal(size=(size,) * head.rank)
        found[head.name] = sum(np.transpose(raw, order) for order, _ in head.symmetry.elements)
    return found


def emitted(*kernels: TensorKernel, always: bool = False):  # type: ignore[no-untyped-def]
    """The module; with `always`, packing is used at every size."""
    module = generate(ModuleSpec("m", "Tensors.", kernels, reference_points=False))
    if not always:
        return module.load()
    source, count = re.subn(r"work < \d+ \*", "work < 0 *", module.source)
    assert count == 1
    scope: dict = {"__name__": "packed"}
    exec(source, scope)
    return type("Module", (), scope)


# -- order ------------------------------------------------------------------------------------------------------------


def cheapest(operands: tuple[str, ...], output: str, sizes: dict[str, int]) -> int:
    """Flops of the best order, by trying all."""
    if len(operands) == 1:
        return 0
    best = None
    for one, two in itertools.combinations(range(len(operands)), 2):
        rest = [letters for place, letters in enumerate(operands) if place not in (one, two)]
        kept = set(output).union(*rest)
        pair = [operands[one], operands[two]]
        result = "".join(letter for letter in dict.fromkeys("".join(pair)) if letter in kept)
        total = flops(pair, result, sizes) + cheapest((*rest, result), output, sizes)
        best = total if best is None else min(best, total)
    assert best is not None
    return best


OPERAND = st.text("abcde", min_size=1, max_size=3).map(lambda text: "".join(dict.fromkeys(text)))


@settings(max_examples=60, deadline=None)
@given(st.lists(OPERAND, min_size=3, max_size=5), st.data())
def test_plans_are_the_best_and_pairwise(operands: list[str], data: st.DataObject) -> None:
    letters = sorted(set("".join(operands)))
    sizes = {letter: data.draw(st.integers(2, 9)) for letter in letters}
    alone = [letter for letter in letters if sum(letter in operand for operand in operands) == 1]
    output = "".join(sorted({*alone, *data.draw(st.lists(st.sampled_from(letters), max_size=2))}))
    plan = contraction_plan(operands, output, sizes)
    assert len(plan.steps) == len(operands) - 1 and all(len(step) == 2 for step in plan.steps)
    assert plan.flops == cheapest(tuple(operands), output, sizes)


def test_memory_cap_changes_the_plan() -> None:
    operands, sizes = ["ebd", "a", "cde", "c"], {"a": 50, "b": 10, "c": 3, "d": 50, "e": 50}
    free = contraction_plan(operands, "ab", sizes)
    capped = contraction_plan(operands, "ab", sizes, memory=free.largest - 1)
    assert capped.largest < free.largest and capped.flops > free.flops


def test_search_of_many_operands_is_bounded() -> None:
    """The chain of jax issue 24929 and longer ones: a plan at once."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    chain = [letters[k : k + 2] for k in range(24)]
    assert len(contraction_plan(chain, "ay", dict.fromkeys(letters, 2)).steps) == 23


def test_chain_is_contracted_from_the_cheap_end() -> None:
    v = Tensor("v", (P,))
    chain = (W[a, b] * W[b, c] * W[c, d] * v[d]).sum(b, c, d)
    assert all(len(step.output) == 1 for step in lower_tensor(kernel(chain, (a,))).contractions)
    found = report(generate(ModuleSpec("m", "t", (kernel(chain, (a,)),), reference_points=False)))["step"]
    assert found.flops == 6 * sp.Symbol("P", positive=True, integer=True) ** 2


# -- packing ----------------------------------------------------------------------------------------------------------


def test_transposed_copies_are_contracted_once_and_packed() -> None:
    (step,) = lower_tensor(kernel(STEP, (a, b, e, f))).contractions
    found = {frozenset(pair) for pair in step.pairs}
    assert found == {frozenset(letters[k : k + 2]) for letters in step.letters for k in (0, 2)} and len(found) == 3


@pytest.mark.parametrize("size", [1, 2, 5])
def test_packed_values(size: int) -> None:
    values = arrays(STEP, size)
    found = emitted(kernel(STEP, (a, b, e, f)), always=True).step(**values)
    moved = np.einsum("abcd,cdef->abef", values["chi"], values["V"])
    wanted = moved + moved.transpose(2, 3, 0, 1) + np.einsum("ab,ef->abef", values["K"], values["K"])
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-12)
    assert np.abs(found - (moved + np.einsum("ab,ef->abef", values["K"], values["K"]))).max() > 0.01  # a term less is seen


@pytest.mark.parametrize(
    ("expression", "axes"),
    [
        ((chi[a, b, c, d] * V[c, d, e, f]).sum(c, d), (e, a, f, b)),
        ((V[a, c, b, d] * V[c, e, d, f]).sum(c, d), (a, b, e, f)),
        ((chi[a, b, c, d] * K[c, d]).sum(c, d), (b, a)),
        ((V[a, b, c, d] * V[c, d, a, b]).sum(a, b, c, d), ()),
        ((V[a, b, c, d] * V[c, d, e, f] * chi[e, f, b, e]).sum(c, d, e, f), (a, b)),
        ((V[a, b, c, d] * V[c, d, e, f] * V[e, f, a, b]).sum(c, d, e, f), (a, b)),
    ],
    ids=["axes mixed", "pairs crossed", "matrix", "scalar", "repeated", "three"],
)
def test_packing_where_it_applies_and_where_it_does_not(expression: TensorExpr, axes: tuple) -> None:
    values = arrays(expression, 4, seed=3)
    step = kernel(expression, axes)
    packed = any(part.pairs for part in lower_tensor(step).contractions)
    found = emitted(step, always=packed).step(**values)
    wanted = expression.evaluate_by_loops(values, axes, {}, sizes={"P": 4})
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-10)


def test_no_packing_without_symmetry() -> None:
    loose = Tensor("loose", (P,) * 4)
    (step,) = lower_tensor(kernel((loose[a, b, c, d] * V[c, d, e, f]).sum(c, d), (a, b, e, f))).contractions
    assert step.pairs == ()
    anti = Tensor("anti", (P, P), symmetry=SymmetryGroup.antisymmetric(2))
    expression = (anti[c, d] * Tensor("other", (P, P), symmetry=SymmetryGroup.antisymmetric(2))[c, d]).sum(c, d)
    assert all(not part.pairs for part in lower_tensor(kernel(expression, ())).contractions)


def test_gradients_are_those_without_packing() -> None:
    step, values = kernel(STEP, (a, b, e, f)), arrays(STEP, 3)
    for name in ("chi", "V"):

        def total(x, module, name=name):  # type: ignore[no-untyped-def]
            return jnp.sum(jnp.sin(module.step(**{**values, name: x})))

        packed, plain = (jax.grad(total)(values[name], emitted(step, always=always)) for always in (True, False))
        np.testing.assert_allclose(packed, plain, rtol=1e-11, atol=1e-11)
        one, two = emitted(step, always=True), emitted(step)
        tangents = [jax.jvp(lambda x, m=m: total(x, m), (values[name],), (values[name],))[1] for m in (one, two)]
        np.testing.assert_allclose(*tangents, rtol=1e-11)


def test_report_of_packing() -> None:
    found = report(generate(ModuleSpec("m", "t", (kernel(STEP, (a, b, e, f)),), reference_points=False)))["step"]
    size = sp.Symbol("P", positive=True, integer=True)
    assert found.flops_unpacked == 2 * size**6
    assert sp.expand(found.flops - 2 * (size * (size + 1) / 2) ** 3) == 0
    assert found.largest == size**4
