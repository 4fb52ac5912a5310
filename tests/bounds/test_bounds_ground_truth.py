"""Bounds of random expressions are never smaller than the orders measured by simulation (table of known objects).

Each expression is built twice, as an `Expr` and as NumPy samples at two sizes. The growth of the median from the
smaller to the larger size may exceed the growth of the bound only by the tolerance, which is small enough to reject a
bound that is too small by a factor n^(1/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from symtensor.bounds import (
    Bound,
    Expr,
    Kind,
    RandomTensor,
    add,
    apply,
    bound,
    contract,
    fact,
    gaussian,
    iid_over,
    independent,
    known,
    max_of,
    max_over,
    outer,
    power,
    scale,
    scaled,
    sum_over,
    trace,
)

SIZES = (16, 128)
SAMPLES = 100
#: 4.5 standard errors of a difference of two log medians of |Z| (1.17 sqrt 2 / sqrt S); a factor n^(1/2) is log(8)/2 = 1.04
TOLERANCE = 0.75
U, V = (RandomTensor(name, {"i": "n"}, [gaussian()]) for name in "uv")
G, H = (RandomTensor(name, {"i": "n", "j": "n"}, [gaussian()]) for name in "GH")
Z = RandomTensor("z", facts=[gaussian(), iid_over("k"), fact("fixed_law")], family={"k": "n"})
C = RandomTensor("c", facts=[known(1)])
FACTS = (independent(U, V, G, H, C, Z),)
Samples = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Pair:
    """An expression with samples of its absolute value at both sizes."""

    expr: Expr
    samples: Samples
    text: str


@cache
def draws() -> tuple[dict[str, np.ndarray], ...]:
    found = []
    for i, n in enumerate(SIZES):
        rng = np.random.default_rng([7, i])
        shapes = {"u": (n,), "v": (n,), "G": (n, n), "H": (n, n), "z": (n,)}
        arrays = {name: rng.standard_normal((SAMPLES, *shape)) for name, shape in shapes.items()}
        arrays["c"] = rng.standard_cauchy((SAMPLES, n)).mean(axis=1)  # the mean of Cauchys is Cauchy
        found.append(arrays)
    return tuple(found)


def _pair(expr: Expr, text: str, compute) -> Pair:
    return Pair(expr, tuple(compute(d) for d in draws()), text)  # type: ignore[arg-type]


@cache
def atoms() -> tuple[Pair, ...]:
    return (
        _pair(power(U, 1), "||u||", lambda d: np.linalg.norm(d["u"], axis=1)),
        _pair(contract(U["i"], V["i"], over="i"), "u.v", lambda d: np.einsum("si,si->s", d["u"], d["v"])),
        _pair(contract(U["i"], U["i"], over="i"), "u.u", lambda d: np.einsum("si,si->s", d["u"], d["u"])),
        _pair(power(G, 1), "||G||", lambda d: np.sqrt(np.linalg.eigvalsh(d["G"].transpose(0, 2, 1) @ d["G"])[:, -1])),
        _pair(trace(G.expr, "i", "j"), "tr G", lambda d: np.trace(d["G"], axis1=1, axis2=2)),
        _pair(contract(G["i", "j"], H["i", "j"], over=("i", "j")), "<G,H>", lambda d: np.einsum("sij,sij->s", d["G"], d["H"])),
        _pair(
            contract(contract(G["i", "j"], U["i"], over="i"), V["j"], over="j"),
            "uGv",
            lambda d: np.einsum("sij,si,sj->s", d["G"], d["u"], d["v"]),
        ),
        _pair(max_over(Z, "k"), "max z", lambda d: np.abs(d["z"]).max(axis=1)),
        _pair(sum_over(Z, "k"), "sum z", lambda d: d["z"].sum(axis=1)),
        _pair(C.expr, "cauchy", lambda d: d["c"]),
    )


def _map(text: str, expr: Expr, compute, *parts: Pair) -> Pair:
    return Pair(expr, tuple(compute(*(p.samples[i] for p in parts)) for i in (0, 1)), text)  # type: ignore[arg-type]


def _grow(rng: np.random.Generator, depth: int) -> Pair:
    if depth == 0:
        return atoms()[rng.integers(len(atoms()))]
    a, b = _grow(rng, depth - 1), _grow(rng, depth - 1)
    match rng.integers(7):
        case 0:
            return _map(f"({a.text} + {b.text})", add(a.expr, b.expr), np.add, a, b)
        case 1:
            return _map(f"({a.text} - {b.text})", a.expr - b.expr, np.subtract, a, b)
        case 2:
            return _map(f"{a.text}*{b.text}", outer(a.expr, b.expr), np.multiply, a, b)
        case 3:
            p = float(rng.choice([0.5, 1.5, 2]))
            return _map(f"|{a.text}|^{p}", power(a.expr, p), lambda x: np.abs(x) ** p, a)
        case 4:
            e = rng.choice([-1, -0.5, 0.5])
            factors = [n ** float(e) for n in SIZES]
            product = tuple(x * f for x, f in zip(a.samples, factors, strict=True))
            return Pair(scaled(scale("n") ** float(e), a.expr), product, f"n^{e} {a.text}")  # type: ignore[arg-type]
        case 5:
            return _map(f"max({a.text}, {b.text})", max_of(a.expr, b.expr), lambda x, y: np.maximum(abs(x), abs(y)), a, b)
        case _:
            return _map(f"phi({a.text})", apply("x^2/(1 + x^2) + abs(x)", a.expr), lambda x: x**2 / (1 + x**2) + abs(x), a)


def growth(samples: Samples) -> float:
    """Growth of the log median between the two sizes, with the median floored where it vanishes."""
    low, high = (np.log(max(np.median(np.abs(x)), 1e-300)) for x in samples)
    return float(high - low)


def claimed(found: Bound) -> float:
    low, high = (np.log(found.scale.evaluate({"n": n})) for n in SIZES)
    return float(high - low)


@pytest.mark.parametrize("seed", range(150))
def test_the_bound_is_never_smaller_than_the_truth(seed):
    rng = np.random.default_rng([11, seed])
    pair = _grow(rng, int(rng.integers(1, 4)))
    facts = FACTS if rng.integers(2) else ()
    found = bound(pair.expr, facts)
    found.check()
    excess = growth(pair.samples) - claimed(found)
    assert excess < TOLERANCE, (pair.text, found)
    if found.kind is Kind.THETA:
        assert excess > -TOLERANCE, (pair.text, found)


@pytest.mark.parametrize("i", range(10))
def test_the_comparison_rejects_a_bound_that_is_too_small(i):
    pair = atoms()[i]
    found = bound(pair.expr, FACTS)
    tight = {"||u||", "u.v", "u.u", "||G||", "max z", "sum z", "cauchy"}
    excess = growth(pair.samples) - claimed(found)
    assert excess < TOLERANCE
    if pair.text in tight:
        smaller = Bound(found.scale / scale("sqrt(n)"))
        assert growth(pair.samples) - claimed(smaller) > TOLERANCE


@pytest.mark.parametrize(
    ("text", "assume", "order", "kind"),
    [
        ("||u||", (), "sqrt(n)", "Theta"),
        ("u.v", (), "n", "O"),
        ("u.v", FACTS, "sqrt(n)", "O"),
        ("||G||", (), "sqrt(n)", "Theta"),
        ("tr G", (), "n^(3/2)", "O"),
        ("<G,H>", FACTS, "n^2", "O"),
        ("max z", (), "sqrt(log n)", "Theta"),
        ("sum z", (), "sqrt(n)", "Theta"),
    ],
)
def test_orders_of_the_table(text, assume, order, kind):
    pair = next(p for p in atoms() if p.text == text)
    found = bound(pair.expr, assume)
    assert (found.scale, found.kind) == (scale(order), Kind(kind))
