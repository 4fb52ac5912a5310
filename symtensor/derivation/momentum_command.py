"""`symtensor fields` for theories whose lines carry momenta: formulas as loop integrals, numbers by quadrature, a report."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import sympy as sp

from symtensor.arguments import UsageError
from symtensor.derivation.derivation_document import add_steps
from symtensor.derivation.document import Document
from symtensor.derivation.model import Drawing, Equation, Step
from symtensor.derivation.output import prepare_output
from symtensor.derivation.results import write_text
from symtensor.fields.momentum import MomentumSum, MomentumTheory, momentum_theory
from symtensor.parsing import parse_expression

__all__ = ["answer", "momentum_rules_step", "momentum_step"]

PROGRAM = "symtensor fields"
SHOWN = 60


def answer(options: argparse.Namespace, parameters: dict[str, Any]) -> int:
    """Print what is asked of the theory `options.model`; write the folder if there is one. Returns the exit status."""
    if options.verify:
        raise UsageError("--verify compares sums in closed form; a sum of loop integrals has none, leave it out")
    total = _asked(options)
    values = _numbers(options.at) if options.at else None
    if options.out is not None:
        if not options.out.strip():
            raise UsageError("--out needs the name of a folder, got an empty text")
        prepare_output(Path(options.out), parameters)
    found = None if values is None else _evaluated(total, values)
    print(json.dumps(_record(total, found), indent=1) if options.json else _text(total, found, options.latex))
    if options.out is not None:
        folder = Path(options.out)
        write_text(folder / "terms.json", json.dumps(_record(total, found), indent=1) + "\n")
        write_text(folder / "formula.tex", f"{total.latex_name()} = {total.latex()}\n")
        write_text(folder / "index.html", document(total).html())
        print(f"written to {folder}: index.html, terms.json, formula.tex", file=sys.stderr if options.json else sys.stdout)
    return 0


def _asked(options: argparse.Namespace) -> MomentumSum:
    if options.cumulant is not None and options.vertex is not None:
        raise UsageError("--cumulant and --vertex are two questions; ask one of them")
    theory = momentum_theory(options.model)
    legs, loops = options.cumulant or options.vertex, 1 if options.loops is None else options.loops
    taken = [*([] if legs else ["--vertex xt,x" if theory.stochastic else "--vertex x,x"])]
    taken += [] if options.loops is not None else ["--loops 1"]
    if taken:
        print(f"{PROGRAM}: not given, so taken: {' '.join(taken)}", file=sys.stderr)
    make = theory.cumulant if options.cumulant is not None else theory.vertex_function
    return make(legs or ("xt,x" if theory.stochastic else "x,x"), loops, options.times)


def _numbers(text: str) -> dict[str, float]:
    values = {}
    for part in text.split(","):
        name, equal, value = part.partition("=")
        if not equal or not name.strip():
            raise UsageError(f"--at {part!r}: write NAME=VALUE, as --at k=1,omega=0,nu=1,D=1,lam=1,d=1")
        values[name.strip()] = float(parse_expression(value, []))
    return values


def _evaluated(total: MomentumSum, values: dict[str, float]) -> dict[str, Any]:
    """The number of each order; `d` is the dimension and `cutoff` the largest loop momentum among the values."""
    plain = {name: value for name, value in values.items() if name not in ("d", "cutoff")}
    dimension = sp.nsimplify(values["d"]) if "d" in values else None
    orders = {loops: part for loops, part in total.by_order().items() if len(part)}
    found = {loops: part.evaluate(plain, dimension=dimension, cutoff=values.get("cutoff")) for loops, part in orders.items()}
    return {str(loops): {"value": _plain(part.value), "error": part.error} for loops, part in found.items()}


def _plain(value: complex) -> Any:
    return value.real if value.imag == 0 else [value.real, value.imag]


def _text(total: MomentumSum, found: dict[str, Any] | None, latex: bool) -> str:
    theory = total.theory
    lines = [f"{theory.name}: {theory.title}", *(f"  {sentence}" for sentence in theory.conventions), "", str(total)]
    lines += ["", f"{total.latex_name()} = {total.latex()}"] if latex else []
    if found is not None:
        lines += ["", *(f"  {loops} loops: {part['value']} +- {part['error']:.1e}" for loops, part in found.items())]
    return "\n".join(lines)


def _record(total: MomentumSum, found: dict[str, Any] | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "theory": total.theory.name, "legs": list(total.legs), "momenta": [sp.sstr(p) for p in total.external],
        "kind": total.kind, "loops": total.loops, "times": total.times, "conventions": list(total.theory.conventions),
        "terms": [
            {"loops": t.loops, "diagram": t.diagram.canonical, "symmetry_factor": t.symmetry_factor, "sign": t.sign,
             "vertex_factors": [sp.sstr(factor) for _, factor in t.vertex_factors], "integrand": sp.sstr(t.integrand_at()),
             "formula": t.latex()}
            for t in total
        ],
    }  # fmt: skip
    return record if found is None else {**record, "values": found}


def document(total: MomentumSum) -> Document:
    """The report: rules, then the diagrams of each order with their formulas."""
    page = Document(total.title, total.theory.title)
    steps = [momentum_rules_step(total.theory)]
    steps += [momentum_step(part, f"{n} loops" if n != 1 else "One loop") for n, part in total.by_order().items() if len(part)]
    add_steps(page, steps, ())
    return page


def momentum_rules_step(theory: MomentumTheory) -> Step:
    """The rules of a theory with momenta: lines, vertices, conventions."""
    if theory.stochastic:
        rate = theory.latex(theory.rate)
        equations = [
            Equation(rf"R(p, t) = \theta(t)\,\exp\left(-{rate}\,t\right)"),
            Equation(rf"C(p, t) = {theory.latex(theory.noise / (2 * theory.rate))}\,\exp\left(-{rate}\,|t|\right)"),
        ]
    else:
        equations = [Equation(rf"D(p) = {theory.latex(theory.propagator)}")]
    names = {"x": "x", "xt": r"\tilde x"}
    for vertex in theory.vertices:
        legs = r"\,".join(f"{names[leg]}({sp.latex(p)})" for leg, p in zip(vertex.legs, vertex.symbols))
        equations.append(Equation(rf"v[{legs}] = {theory.latex(vertex.factor)}"))
    text = (
        r"Weight $e^{-S}$; a vertex factor is minus the derivative of $S$ at wave vectors that add up to zero; a diagram is "
        r"divided by its symmetry factor. $x(r) = \int d^dk/(2\pi)^d\, e^{ik\cdot r}\, x(k)$, every loop is "
        r"$\int d^dq/(2\pi)^d$. The origin of a loop momentum is placed so that the sum of the squares of the momenta of all "
        r"lines is stationary at zero."
    )
    return Step("Rules", text, tuple(equations))


def momentum_step(total: MomentumSum, title: str, text: str = "", checks: Any = ()) -> Step:
    """The diagrams of one order, each with its formula."""
    terms = list(total)
    shown = tuple(
        Drawing(t.diagram.to_svg(), (t.latex(),), f"symmetry factor {t.symmetry_factor}") for t in terms[:SHOWN]
    )
    more = f" The first {SHOWN} are drawn." if len(terms) > SHOWN else ""
    legs = ", ".join(f"{at + 1} is ${sp.latex(sp.Symbol(name))}$ with momentum ${sp.latex(p)}$"
                     for at, (name, p) in enumerate(zip(total.legs, total.external)))  # fmt: skip
    legs = legs.replace("$xt$", r"$\tilde x$")
    prose = f"{text} {len(terms)} diagram{'' if len(terms) == 1 else 's'}; leg {legs}.{more}".strip()
    return Step(title, prose, (), tuple(checks), shown)
