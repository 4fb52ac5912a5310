"""The command: truncated series against integrals, how the quartic series diverges, and 1/N against N."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from derivations.zero_dimensional.sums import (
    LOOPS,
    ORDER,
    cubic_mean,
    quartic_series,
    quartic_two_point,
    radial_mean_square,
    total,
    vector_theory,
)
from symtensor.derivation.field_run import (
    Compared,
    ComparisonTable,
    Curves,
    FieldResults,
    Panel,
    Table,
    Work,
    partial_sums,
    run_fields,
)
from symtensor.derivation.formats import number
from symtensor.derivation.model import Derivation
from symtensor.derivation.results import Labelled
from symtensor.derivation.settings import RunContext, RunResult, Settings
from symtensor.expansion import perturbative_moments
from symtensor.fields.large_n import RadialExpansion

__all__ = ["run_derivation"]

#: orders of the quartic series that are looked at, and the numbers of components
ORDERS, NUMBERS = 30, (8, 16, 32, 64, 128, 256, 512, 1024)
IN_N = ("leading order", "to order 1/N", "to order 1/N^2")


def run_derivation(derivation: Derivation, settings: Settings, context: RunContext) -> RunResult:
    """Run everything and leave it in the folder ``settings["out"]``."""
    return run_fields(derivation, settings, context, _compute)


def _compute(work: Work) -> FieldResults:
    g = work.settings["g"]
    with work.timed("integrals"):
        exact, mean = quartic_two_point(g), cubic_mean(g)
    with work.timed("theory"):
        terms = np.array([float(c) * g**n for n, c in enumerate(quartic_series(ORDERS))])
        quartic = _quartic_table(work, exact, terms)
        cubic = _cubic_table(work, mean)
        vector, errors = _vector_table(work)
    values = {"quartic_two_point": exact, "cubic_mean": mean, "quartic_terms": terms, "best": _best(terms, exact)}
    arrays = {
        "terms": Labelled(terms, ("order",), "terms of <x^2>, quartic theory"),
        "errors": Labelled(np.abs(np.cumsum(terms) - exact), ("order",), "error of the sum up to the order"),
        "N": Labelled(np.array(NUMBERS, float), ("N",), "number of components"),
        "errors_in_N": Labelled(errors, ("order_in_N", "N"), "error of <phi_1 phi_1> by order in 1/N"),
    }
    return FieldResults(
        comparisons=(quartic, cubic, vector), figures=(_divergence(terms, exact, g), _in_number(errors)),
        tables=(_slopes(errors),), values=values, arrays=arrays, remarks=(_remark(terms, exact, g),),
    )  # fmt: skip


def _quartic_table(work: Work, exact: float, terms: np.ndarray) -> ComparisonTable:
    """The series has alternating signs and is summable, so that the next term bounds the error."""
    sums = partial_sums(work.evaluate("quartic_two_point", g=work.settings["g"]))
    numbers = {name: float(value) for name, value in sums.items()}
    formula = sp.latex(total("phi4", "x,x").expr)
    row = Compared("<x^2>", r"\langle x^2\rangle", numbers, exact, 0.0, abs(float(terms[LOOPS + 1])), formula)
    caption = "Quartic theory; truncation: the next term, which bounds the error of this alternating series."
    return ComparisonTable(caption, "integral", (row,), "Quartic theory")


def _cubic_table(work: Work, exact: float) -> ComparisonTable:
    r"""At imaginary coupling i g the order L of <x> is i (-1)^(L-1) times that at g."""
    g = work.settings["g"]
    orders = work.evaluate("cubic_mean", g=g)
    rotated = {f"order_{loops}": (-1) ** (loops - 1) * orders[f"order_{loops}"] for loops in range(1, LOOPS + 1)}
    x, coupling = sp.symbols("x g", real=True)
    order = 2 * LOOPS + 1
    following = perturbative_moments(-coupling * x**3 / 6, {x: 1}, {coupling: order}, {(x, x): 1})[order] * sp.Float(g) ** order
    numbers = {name: float(value) for name, value in partial_sums(rotated).items()}
    row = Compared("<x>/i", r"\langle x\rangle/i", numbers, exact, 0.0, abs(float(following)))
    caption = "Cubic theory at the imaginary coupling $ig$, where the integral exists; truncation: the next term."
    return ComparisonTable(caption, "integral", (row,), "Cubic theory, imaginary coupling")


def _vector_table(work: Work) -> tuple[ComparisonTable, np.ndarray]:
    """Each N against the radial integral; the errors by order and N."""
    r, u = work.settings["r"], work.settings["u"]
    mass = float(vector_theory().numeric_mass({"r": sp.Rational(repr(r)), "u": sp.Rational(repr(u))}))
    model = type(vector_theory()).read(vector_theory().potential, values={"r": sp.Rational(repr(r)), "u": sp.Rational(repr(u))})
    later = RadialExpansion(model, ORDER + 2).cumulant({"rho": 1})[ORDER + 1 :]
    bounds = [abs(float(sp.sympify(c).subs(model.mass, mass).evalf())) for c in later]
    rows, errors = [], []
    for count in NUMBERS:
        outputs = work.evaluate("vector_two_point", N=float(count), m=mass, u=u)
        sums = list(partial_sums(outputs).values())
        exact = float(radial_mean_square(count, r, u))
        numbers = {name: float(value) for name, value in zip(IN_N, sums)}
        truncation = sum(2 * bound / count ** (ORDER + 1 + k) for k, bound in enumerate(bounds))
        rows.append(Compared(f"N = {count}", f"N = {count}", numbers, exact, 0.0, truncation))
        errors.append([abs(value - exact) for value in numbers.values()])
    caption = (
        r"$\langle\phi_1\phi_1\rangle$ against the radial integral; truncation: twice the two orders that follow, by the radial "
        "expansion."
    )
    return ComparisonTable(caption, "integral", tuple(rows), "N components, <phi_1 phi_1>"), np.array(errors).T


def _best(terms: np.ndarray, exact: float) -> dict[str, Any]:
    errors = np.abs(np.cumsum(terms) - exact)
    order = int(np.argmin(errors))
    return {"order": order, "error": float(errors[order]), "smallest_term": int(np.argmin(np.abs(terms)))}


def _remark(terms: np.ndarray, exact: float, g: float) -> str:
    best = _best(terms, exact)
    return (
        rf"At $g = {g:g}$ the smallest term of the quartic series is that of order {best['smallest_term']}, where $3/(2g) = "
        rf"{1.5 / g:.3g}$; the best sum ends at order {best['order']} with an error of {number(best['error'], 2)}, where "
        rf"$e^{{-3/(2g)}} = {number(math.exp(-1.5 / g), 2)}$."
    )


def _divergence(terms: np.ndarray, exact: float, g: float) -> Curves:
    orders = np.arange(len(terms))
    errors = np.maximum(np.abs(np.cumsum(terms) - exact), 1e-17)
    level = np.full(len(terms), math.exp(-1.5 / g))
    lines = {"term": (orders, np.abs(terms)), "error of the sum": (orders, errors), "$e^{-3/(2g)}$": (orders, level)}
    caption = "Quartic theory: size of the terms of $\\langle x^2\\rangle$ and error of the sum, by the order at which it ends."
    return Curves(caption, r"\mathrm{order\ in\ } g", (Panel(r"\langle x^2\rangle", lines, log=True),))


def _in_number(errors: np.ndarray) -> Curves:
    doublings = np.log2(np.array(NUMBERS, float))
    lines = {name: (doublings, values) for name, values in zip(IN_N, errors)}
    caption = "N components: error of $\\langle\\phi_1\\phi_1\\rangle$ by order in $1/N$."
    return Curves(caption, r"\log_2 N", (Panel(r"|\Delta|", lines, log=True),))


def _slopes(errors: np.ndarray) -> Table:
    """Powers of N with which the errors fall, from successive doublings."""
    rows = []
    for at in range(1, len(NUMBERS)):
        powers = np.log2(errors[:, at - 1] / errors[:, at])
        rows.append((f"{NUMBERS[at - 1]} to {NUMBERS[at]}", *(f"{power:.3f}" for power in powers)))
    caption = "The power of $1/N$ with which the error falls when $N$ doubles: one more than the order that is kept."
    return Table(caption, ("N", *IN_N), tuple(rows))
